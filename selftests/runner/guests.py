# SPDX-License-Identifier: MIT
"""Run tests in guests, by selftests/guest-run."""
import math
import os
import re
import shlex
import signal
import subprocess
import threading

import headers
import results
from children import TOP, children, end_group, load

BOOT = {"debug": 180}       # seconds to boot a guest and load the module, if not the usual ones
USUAL_BOOT = 90
GRACE = 120                 # seconds after the limit that the guest enforces, until it counts as hanging
EVIDENCE = 120              # seconds for a guest that hangs to say where

# Lines of a kernel warning that are less important than its call trace, which should be visible at
# a glance.
REGISTERS = re.compile(r"(\[[ .\d]*\] )?(Code:|[A-Z]S:|R[A-Z0-9]{2}: |CR\d: |DR\d: |PKRU:|PGD |#PF: | \? |Modules linked)")
# QEMU 7.2 with two processors sometimes executes code that the kernel has patched meanwhile: a
# breakpoint in a kernel function that no longer exists (text is patched when hooks, tracepoints and
# sockets are added or removed). Or it takes that breakpoint in an endless loop: the guest hangs,
# with a processor at the entry of the trap.
PHANTOM = re.compile(r"kernel of guest \d+ complains:\n[^\n]*\bint3: 0000 .*?\bRIP: [^\n\[]*\n|"
                     r"NMI backtrace for cpu \d+\n(?:(?!NMI backtrace).)*?\bRIP: 0010:asm_exc_int3\+", re.S)


def essence(lines):
    return [text for text in lines if not REGISTERS.match(text) or "RIP:" in text]


class GuestRun:
    """Tests in a guest. If one kills its guest it fails, and those after it get a new guest.

    limits: name of a test -> seconds, in the order in which they run.
    """

    def __init__(self, tally, where, machine, limits, length):
        self.tally, self.where, self.limits, self.length = tally, where, limits, length
        self.kernel, self.processors, self.memory, self.leaks = machine
        self.waiting = list(limits)
        self.test = None
        self.hung = None    # a timer that ends the guest
        self.splats = 0
        self.bad = 0        # tests of this guest that failed
        self.phantoms = 0   # guests that the emulator killed

    def _command(self):
        self.factor = math.ceil(load())
        tests = [f"{name}:{self.limits[name] * self.factor}" for name in self.waiting]
        boot = BOOT.get(self.kernel, USUAL_BOOT) * self.factor
        run = shlex.join(["selftests/guest-run", "-t", str(boot), *tests])
        if self.length == "short":
            run = "ACP_TEST_SHORT=1 " + run
        total = 2 * boot + sum(self.limits[name] for name in self.waiting) * self.factor
        more = ["--kmemleak"] if self.leaks else []
        return [f"{TOP}/scripts/harness/vm", "--kernel", self.kernel, "--smp", str(self.processors),
                "--mem", self.memory, "--timeout", str(total), *more, "--", run]

    def _end_hung(self, vm):
        """Let a guest say where it hangs; then end it."""
        try:
            vm.send_signal(signal.SIGUSR1)
            vm.wait(EVIDENCE)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass
        end_group(vm)

    def _await_test(self, vm, name):
        """Set the time at which the guest counts as hanging in the test that begins now."""
        self._await_nothing()
        limit = self.limits.get(name, BOOT.get(self.kernel, USUAL_BOOT))
        self.hung = threading.Timer(limit * self.factor + GRACE, self._end_hung, [vm])
        self.hung.daemon = True
        self.hung.start()

    def _await_nothing(self):
        if self.hung:
            self.hung.cancel()

    def _begin(self, name, vm):
        if self.test:
            self.bad += 1
            self.test.end("no result")
        self._await_test(vm, name)
        self.test = results.Test(self.tally, name, self.where, vm.pid)
        if name in self.waiting:
            self.waiting.remove(name)

    def _line(self, text):
        """Process a line of guest-run; return true if it was known."""
        if self.test and text.startswith("    "):
            self.test.line(text[4:])
        elif self.test and results.RESULT.match(text):
            bad, _, remark = results.RESULT.match(text).groups()
            self.splats += "complained" in (remark or "")
            self.bad += bool(bad)
            self.test.end((remark or "failed") if bad else "")
            self.test = None
        elif text != "KTAP version 1" and not results.PLAN.match(text):
            return False
        return True

    def _boot(self):
        """Run one guest; return true if another one makes sense."""
        other = []
        before = len(self.waiting)
        vm = children.start(self._command(), stdout=subprocess.PIPE, text=True, errors="replace")
        self._await_test(vm, "boot")
        try:
            for text in vm.stdout:
                text = text.rstrip("\n")
                if text.startswith("# Subtest: "):
                    self._begin(text[len("# Subtest: "):], vm)
                elif not self._line(text):
                    other.append(text)
            status = vm.wait()
        finally:
            self._await_nothing()
            children.end(vm)
        again = self._met_phantom(other)
        if not again:
            self._explain(status, other)
        return self.waiting and (again or len(self.waiting) < before)

    def _met_phantom(self, other):
        """Return true if the emulator killed the guest: then an interrupted test is repeated."""
        if self.phantoms == 2 or not PHANTOM.search("\n".join(other)):
            return False
        self.phantoms += 1
        name = self.test.name if self.test else "guest"
        with self.tally.lock:
            print(f"# {self.where} {name}: the emulator met a breakpoint that is not there; once more in a new guest",
                  flush=True)
        if name in self.limits:         # it was not booting, loading or unloading the module
            self.waiting.insert(0, name)
        self.test = None
        return True

    def _explain(self, status, other):
        """Record a guest that did not end through guest-run."""
        if self.test:
            self.test.why = essence(other)
            self.test.end(f"the guest died or hung, status {status}")
            self.test = None
        elif not (status == 99 and self.splats or status == 1 and self.bad or status == 0 and not self.waiting):
            test = results.Test(self.tally, "guest", self.where)
            test.why = essence(other)
            test.end(f"status {status}" + (", the kernel complained" if status == 99 else ""))

    def run(self):
        while self._boot():
            self.splats = self.bad = 0
        for name in self.waiting:
            self.tally.add(False, f"{self.where} {name}", "not run")


def build_module(tally, kernel):
    """Build the module for that kernel; return true on success. A failure is a result."""
    # Workers that need it wait meanwhile: as many jobs as there are processors.
    built = subprocess.run([f"{TOP}/scripts/harness/build-module", kernel, f"-j{os.cpu_count()}"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if built.returncode:
        test = results.Test(tally, "module", kernel)
        test.output = built.stderr.splitlines()
        test.end("does not build")
    return not built.returncode


def run(tally, where, limits, length):
    """Run tests that need the same guest, in one."""
    machine = headers.machine_of(next(iter(limits)), where)
    GuestRun(tally, where, machine, limits, length).run()
