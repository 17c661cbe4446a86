# SPDX-License-Identifier: MIT
"""Run a test on this machine."""
import os
import tempfile

import evidence
import results
from children import await_end, children, kill_group


def run(tally, name, command, limit, where="", env=()):
    """Run a test; its descendants end with it. Return the Test."""
    with tempfile.TemporaryFile("w+", errors="replace") as out:
        child = children.start(command, stdout=out, env={**os.environ, **dict(env)})
        trouble = ""
        try:
            test = results.Test(tally, name, where, child.pid)
            if await_end(child, limit):
                test.measure()
                kill_group(child)
                status = child.wait()
                if status:
                    trouble = f"exit status {status}" if status > 0 else f"killed by signal {-status}"
            else:
                trouble = f"{results.LATE} ({limit} s)"
                test.why = evidence.of_family(child.pid)
        finally:
            children.end(child)
        out.seek(0)
        for text in out:
            test.line(text.rstrip("\n"))
    test.end(trouble)
    return test
