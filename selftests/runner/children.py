# SPDX-License-Identifier: MIT
"""Processes that run tests: they end with the run, and their time limits grow with the load."""
import os
import signal
import subprocess
import time

import headers

TOP = os.path.dirname(headers.TESTS)
OVERLOAD = 20       # processes per processor above which limits do not grow
workers = 5 * (os.cpu_count() or 1) // 2      # items at a time: more than half of a test is waiting


def load():
    """Return the number of runnable processes per processor: 1 if none has to wait for one."""
    return min(OVERLOAD, max(workers, os.getloadavg()[0]) / (os.cpu_count() or 1))


def await_end(child, limit):
    """Return true if a child ends within the limit, which is longer on a loaded machine. It remains
    to be waited for.
    """
    spent, before = 0, time.monotonic()
    while not os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        time.sleep(.1)
        now = time.monotonic()
        spent, before = spent + (now - before) / load(), now
        if spent > limit:
            return False
    return True


def end_group(child):
    """Terminate a running child and its descendants; then kill them."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if child.poll() is None:
            try:
                os.killpg(child.pid, number)
                child.wait(10)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                # it has just ended, and another thread has noticed; or it remains
                pass


def kill_group(child):
    """Kill the descendants that a child leaves behind, which has ended, but is not waited for."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass            # only the child itself is left


class Children:
    """The running processes, so that all can be ended, and none starts afterwards."""

    def __init__(self):
        self.running = set()
        self.over = False

    def start(self, command, **options):
        if self.over:
            raise SystemExit
        child = subprocess.Popen(command, cwd=TOP, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT,
                                 start_new_session=True, **options)
        self.running.add(child)
        return child

    def end(self, child):
        end_group(child)
        self.running.discard(child)

    def end_all(self):
        self.over = True
        for child in list(self.running):
            end_group(child)


children = Children()
