# SPDX-License-Identifier: MIT
"""Tests of a cluster in Python: results as KTAP, and helpers to run programs and check their
output.
"""
import os
import re
import sys
import traceback

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(1, os.path.join(TOP, "selftests"))     # where patience is


class Failure(Exception):
    """A test failed; the text is the reason."""


class Skip(Exception):
    """A test is not possible here; the text is the reason."""


def check(condition, why):
    if not condition:
        raise Failure(why)


def check_lines(text, *patterns):
    """Check that each pattern matches a whole line of the text."""
    for pattern in patterns:
        check(re.search(f"^{pattern}$", text, re.M), f"no line like '{pattern}' in:\n{text}")


def main(tests, brief=None):
    """Run functions in order, and print their results; brief: those that run where $ACP_TEST_SHORT
    asks to be brief. Arguments of the program select tests by parts of their names.
    """
    if brief is not None and os.environ.get("ACP_TEST_SHORT") and not sys.argv[1:]:
        tests = brief
    wanted = [t for t in tests if not sys.argv[1:] or any(a in t.__name__ for a in sys.argv[1:])]
    failed = 0
    print(f"KTAP version 1\n1..{len(wanted)}", flush=True)
    for number, test in enumerate(wanted, 1):
        try:
            test()
            print(f"ok {number} - {test.__name__}", flush=True)
        except Skip as e:
            print(f"ok {number} - {test.__name__} # SKIP {e}", flush=True)
        except Exception as e:      # whatever it is, the others must still run
            failed += 1
            text = str(e) if isinstance(e, Failure) else traceback.format_exc()
            reason = (text.strip() or "no reason").splitlines()[-1]
            print("".join(f"# {line}\n" for line in text.splitlines()), end="")
            print(f"not ok {number} - {test.__name__} # {reason}", flush=True)
    return 1 if failed else 0
