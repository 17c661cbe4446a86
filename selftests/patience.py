# SPDX-License-Identifier: MIT
"""How long a test in Python waits for what must happen; patience.h says the same for tests in C.

    limit = patience.Limit(patience.SOON)
    while not condition():
        ktap.check(not limit.over(), "...")
        time.sleep(0.05)

A limit counts by a clock that advances only as far as the machine delivers: at a tenth while the
machine is stopped, and slower if a calibrated loop takes longer than it did at best; at the
least a tenth of the time that passes. A thread ticks it.
"""
import subprocess
import threading
import time
import zlib

BRIEF = 3       # seconds on an idle machine: until another try
SOON = 20       # seconds on an idle machine: what is due at once
WORK = 60       # after a lot of work, or losses
LONG = 300      # a whole job, a boot, a program under emulation
TICK = 0.25
GAP = 1         # the machine was stopped if there is no tick for that long
EXTENSIONS = 10
SAMPLES = 20
BLOCK = bytes(100000)


class Clock:
    """Seconds that the machine has delivered."""

    def __init__(self, now=time.monotonic):
        self.now = now
        self.work, self.seen = 0, now()
        self.best, self.factor, self.measured = None, 1, None

    def measure(self):
        """Run the loop. The shortest sample is what it takes undisturbed."""
        taken = []
        for _ in range(SAMPLES):
            begun = self.now()
            zlib.crc32(BLOCK)
            taken.append(self.now() - begun)
        self.best = min(taken + ([self.best] if self.best else []))
        self.factor = sum(taken) / len(taken) / self.best if self.best else 1
        self.measured = self.now()

    def advance(self):
        now = self.now()
        span, self.seen = now - self.seen, now
        self.work += span / (EXTENSIONS if span >= GAP else min(max(self.factor, 1), EXTENSIONS))

    def tick(self):
        self.advance()
        if self.measured is None or self.seen - self.measured >= 1:
            self.measure()

    def run(self):
        while True:
            self.tick()
            time.sleep(TICK)


clock = Clock()
threading.Thread(target=clock.run, daemon=True).start()


class Limit:
    def __init__(self, base, by=None):
        self.clock = by or clock
        self.base, self.told = base + TICK, 0
        self.begun, self.work = self.clock.now(), self.clock.work

    def over(self):
        passed, work = self.clock.now() - self.begun, self.clock.work - self.work
        if work < self.base and passed >= self.base * (self.told + 1):
            self.told += 1
            print(f"# patience: extended: of {passed:.1f} s, the machine delivered {work:.1f} s", flush=True)
        return work >= self.base

    def left(self):
        """Return the seconds for which to wait next, in a call that has a timeout."""
        return max(self.base - (self.clock.work - self.work), TICK)


def until(condition, base=SOON, pause=0.05):
    """Poll until the condition returns a true value, and return that; or return the last one."""
    limit = Limit(base)
    while True:
        found = condition()
        if found or limit.over():
            return found
        time.sleep(pause)


def communicate(process, base=LONG, given=None):
    """Return the output of a process, like Popen.communicate(); subprocess.TimeoutExpired if late."""
    limit = Limit(base)
    while True:
        try:
            return process.communicate(given, timeout=limit.left())
        except subprocess.TimeoutExpired:
            given = None
            if limit.over():
                raise


def seconds(base=LONG):
    """Return the limit of a program that has an option for one. It cannot be extended later, so it
    is twice what the machine would need now.
    """
    clock.measure()
    return str(round(2 * base * min(clock.factor, EXTENSIONS)))


def run(words, base=LONG, input=None, **more):
    """Run a command like subprocess.run(); it is killed if it is late."""
    with subprocess.Popen(words, **more) as process:
        try:
            out, errors = communicate(process, base, input)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(words, process.returncode, out, errors)
