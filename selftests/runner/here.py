# SPDX-License-Identifier: MIT
"""Run a test on this machine."""
import os
import tempfile

import evidence
import results
from children import await_end, children, kill_group


def _lines(printed):
    return printed.decode(errors="replace").splitlines()


def run(tally, name, command, limit, where="", env=()):
    """Run a test; its descendants end with it. Return the Test."""
    with tempfile.TemporaryFile() as out:
        child = children.start(command, stdout=out, env={**os.environ, **dict(env)})
        trouble, end = "", None
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
                end = os.fstat(out.fileno()).st_size
                if evidence.ask_guests(child.pid):
                    await_end(child, evidence.GUESTS)
        finally:
            children.end(child)
        out.seek(0)
        printed = out.read()
        for text in _lines(printed[:end]):
            test.line(text)
        if end is not None:     # no results any more: its guests have been ended
            test.why += _lines(printed[end:])
    test.end(trouble)
    return test
