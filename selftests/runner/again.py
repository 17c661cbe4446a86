# SPDX-License-Identifier: MIT
"""A second look at tests that failed for want of time: each runs again at the end, twice, alone.

If it passes twice it was unsteady, which is told and does not count as failed. All other failures
count at once: a complaint of the kernel or of a sanitizer, a crash, a guest that died, wrong data,
and each assertion that is not about time, as is CHECK(!patience_over(...)). selftests/UNSTEADY.md
has the names that were seen.
"""
import os
import re

import children
import headers
import results

KEPT = os.path.join(children.TOP, "build", "tests")
FORGIVEN = 3        # unsteady tests; more are a failure
# Reasons of failures that are about time: of a test's limit, of isolated.h and test.h, of
# patience.h
LATE = re.compile(results.LATE + r"|hung$|\S+:\d+:? !?patience_over\(")
SANITIZER = r"Sanitizer|runtime error:"
SEED = re.compile(r"\bseed[ =:]+(\d+)", re.I)


def keep(test):
    """Keep the output of a failed test; return the file's name."""
    os.makedirs(KEPT, exist_ok=True)
    path = os.path.join(KEPT, re.sub(r"\W+", "_", test.title) + ".log")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(test.why + test.output) + "\n")
    return path


def complaints():
    """Return a pattern of what a kernel or a sanitizer says about faults."""
    with open(os.path.join(children.TOP, "scripts", "harness", "splats"), encoding="utf-8") as f:
        return re.compile("|".join([SANITIZER] + [text.rstrip("\n") for text in f if not text.startswith("#")]))


def about_time(test):
    """Return true if nothing but patience ran out."""
    return (test.failed and all(LATE.match(reason) for _, reason in test.failed)
            and not any(map(complaints().search, test.output)))


def passes_twice(plan, test):
    for _ in range(2):
        before = len(plan.tally.ended)
        if headers.in_guest(test.name):
            plan.run_guest(test.where, [test.name])
        else:
            plan.run_here(test.name)
        ended = plan.tally.ended[before:]
        if not any(one.name == test.name for one in ended) or any(one.failed for one in ended):
            return False
    return True


def second_look(plan):
    """Run what failed for want of time again; return lines about those that were unsteady."""
    tally = plan.tally
    failed = [test for test in tally.ended if test.failed]
    for test in failed:
        keep(test)
    if len([test for test in failed if about_time(test)]) > FORGIVEN:
        return []
    lines = []
    for test in failed:
        if not about_time(test):
            continue
        print(f"# {test.title}: {test.failed[0][1]}; it runs again, twice, alone", flush=True)
        if not passes_twice(plan, test):
            continue
        tally.failed -= len(test.failed)
        tally.unsteady += 1
        seed = SEED.search("\n".join(test.output))
        lines.append(f"# unsteady: {test.title}: {'; '.join(': '.join(filter(None, one)) for one in test.failed)}"
                     f"{', seed ' + seed[1] if seed else ''}; output: {os.path.relpath(keep(test), children.TOP)}")
    return lines
