# SPDX-License-Identifier: MIT
"""Results of tests: counted, printed as KTAP, and kept until a second look at those that failed."""
import collections
import glob
import os
import re
import sys
import threading
import time

SHOWN = 200                 # lines of a failed test's output
LATE = "out of time"         # how the reason of a failure begins that is about time only

RESULT = re.compile(r"(not )?ok\b\s*\d*\s*-?\s*([^#]*?)\s*(?:#\s*(.*))?$")
PLAN = re.compile(r"1\.\.(\d+)\s*$")


def family(ancestor):
    """Return process -> processor ticks of a process and its descendants; none if it has ended."""
    ticks, children_of = {}, collections.defaultdict(list)
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, errors="replace") as f:
                number, _, rest = f.read().partition(" ")
        except OSError:
            continue                    # it has just ended
        field = rest.rpartition(")")[2].split()
        children_of[int(field[1])].append(int(number))
        # its own, and that of children it waited for
        ticks[int(number)] = sum(map(int, field[11:15]))
    todo, found = [ancestor], {}
    while todo:
        process = todo.pop()
        if process in ticks:
            found[process] = ticks[process]
        todo += children_of[process]
    return found


def cpu_seconds(ancestor):
    """Return the processor time of a process and its descendants; 0 if it has ended."""
    return sum(family(ancestor).values()) / os.sysconf("SC_CLK_TCK")


class Tally:
    """Counts results and prints them as KTAP; its lock keeps the lines of a test together."""

    def __init__(self):
        self.number = self.passed = self.failed = self.skipped = self.unsteady = 0
        self.ended = []     # tests that have ended, in that order
        self.lock = threading.RLock()

    def add(self, ok, name, remark=""):
        with self.lock:
            self._add(ok, name, remark)

    def _add(self, ok, name, remark):
        self.number += 1
        if ok and remark.upper().startswith("SKIP"):
            self.skipped += 1
        elif ok:
            self.passed += 1
        else:
            self.failed += 1
        print(f"{'' if ok else 'not '}ok {self.number} - {name}{' # ' + remark if remark else ''}", flush=True)


class Test:
    """A running test: takes its output, and adds its results to the tally. name: SUITE/NAME; where:
    what it runs on, a configuration of guests or "".
    """

    def __init__(self, tally, name, where="", process=0):
        self.tally, self.name, self.where, self.process = tally, name, where, process
        self.title = f"{where} {name}".strip()
        self.before = cpu_seconds(process)
        self.cpu = 0        # processor seconds that it took
        self.wall = 0
        self.planned = None
        self.results = 0
        self.failed = []    # (name, reason) of results
        self.begun = time.monotonic()
        self.why = []       # reasons reported by those that saw it end
        self.output = []

    def line(self, text):
        self.output.append(text)
        plan = PLAN.match(text)
        result = RESULT.match(text)
        if plan and self.planned is None:
            self.planned = int(plan[1])
        elif result:
            self.results += 1
            self._count(not result[1], result[2], result[3] or "")

    def _count(self, ok, name, remark):
        if not ok:
            self.failed.append((name, remark))
        self.tally.add(ok, f"{self.title}: {name}" if name else self.title, remark)

    def measure(self):
        self.cpu = max(self.cpu, cpu_seconds(self.process) - self.before)

    def end(self, trouble=""):
        """trouble: the reason if the test as a whole failed."""
        with self.tally.lock:
            self._end(trouble)

    def _end(self, trouble):
        self.measure()
        self.wall = time.monotonic() - self.begun
        if not trouble and self.planned is not None and self.results != self.planned:
            trouble = f"{self.results} results, {self.planned} planned"
        if not trouble and self.planned == 0:
            trouble = "no tests in it"
        if trouble and not (self.failed and trouble.startswith("exit status")):
            self._count(False, "", trouble)
        elif not self.results:
            self._count(True, "", "")
        self.tally.ended.append(self)
        if self.failed:
            for text in self.why + self.output[-SHOWN:]:
                print(f"#   {text}")
            sys.stdout.flush()
