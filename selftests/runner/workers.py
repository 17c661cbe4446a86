# SPDX-License-Identifier: MIT
"""The tests as a queue of items, the longest first, taken by several workers at a time."""
import collections
import functools
import math
import os
import re
import subprocess
import threading

import children
import guests
import headers
import here

PARCEL = 300        # seconds of tests for a guest: booting it and its search for leaks cost time, too
HERE_SUITES = ["unit", "fuzz", "model", "package"]
BUILT = {"debug": "debug-kernel", "uml": "uml-kernel"}     # kernels that are built here, and by what
CHECK = f"{children.TOP}/scripts/check/run"


class Item:
    """Something that a worker runs: the seconds it is expected to take, the kernel it needs, or ""."""

    def __init__(self, seconds, kernel, call):
        self.seconds, self.kernel, self.call = seconds, kernel, call


def check_gates():
    return subprocess.run([CHECK, "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()


class Plan:
    """What runs where, for some options: tier, only, configurations, length."""

    def __init__(self, opts, times, tally):
        self.opts, self.times, self.tally = opts, times, tally
        self.suites = {suite: self._wanted(headers.executables(suite)) for suite in headers.SUITES}
        self.suites["check"] = self._wanted([f"check/{gate}" for gate in check_gates()])
        self.modules = {}
        self.locks = collections.defaultdict(threading.Lock)

    def _wanted(self, names):
        return [name for name in names if not self.opts.only or re.search(self.opts.only, name)]

    def length(self, where):
        """The emulated debug kernel takes half a day for all of it."""
        return self.opts.length or ("short" if self.opts.tier == "gate" or where == "debug" else "full")

    def configurations(self, name):
        """Return where a test runs: names of configurations; "" is this machine."""
        if self.opts.tier == "gate":
            return headers.gate_of(name)
        if not headers.in_guest(name):
            return [""]
        return [one for one in self.opts.configurations if headers.runs_on(name, headers.CONFIGURATIONS[one][0])]

    def pairs(self):
        """Return all (test, configuration) that will run."""
        return [(name, where) for names in self.suites.values() for name in names for where in self.configurations(name)]

    def items(self):
        pairs = self.pairs()
        items = [self._here(name) for name, where in pairs if not where]
        alike = collections.defaultdict(list)
        for name, where in pairs:
            if where:
                alike[where, headers.machine_of(name, where)].append(name)
        for (where, _), names in alike.items():
            items += [self._guest(where, parcel) for parcel in self._parcels(where, names)]
        return sorted(items, key=lambda item: -item.seconds)

    def _here(self, name):
        suite, _, base = name.partition("/")
        cost = self.times.seconds(name, "", self.length(""))
        kernel = self.cluster_kernel() if suite == "cluster" else ""
        return Item(cost, kernel, functools.partial(self.run_here, name))

    def cluster_kernel(self):
        return "6.12" if self.opts.tier == "gate" else headers.CONFIGURATIONS[self.opts.configurations[0]][0]

    def run_here(self, name):
        """Run a test on this machine; return the Test, or None if what it needs does not build."""
        suite, _, base = name.partition("/")
        env = {"ACP_TEST_SHORT": "1"} if self.length("") == "short" else {}
        where = ""
        if suite == "cluster":
            where = env["ACP_KERNEL"] = self.cluster_kernel()
            if not self.module(where):
                return None
        command = [CHECK, "--ktap", base] if suite == "check" else [os.path.join(headers.TESTS, name)]
        return here.run(self.tally, name, command, self.times.limit(name, "", self.length("")), where, env)

    def _parcels(self, where, names):
        """Distribute tests to guests that take about as long."""
        length = self.length(where)
        cost = {name: self.times.seconds(name, where, length) for name in names}
        count = min(len(names), math.ceil(sum(cost.values()) / PARCEL))
        found = [[0, []] for _ in range(count)]
        for name in sorted(names, key=lambda name: -cost[name]):
            least = min(found, key=lambda parcel: parcel[0])
            least[0] += cost[name]
            least[1].append(name)
        return found

    def _guest(self, where, parcel):
        kernel = headers.CONFIGURATIONS[where][0]
        return Item(parcel[0], kernel, functools.partial(self.run_guest, where, parcel[1]))

    def run_guest(self, where, names):
        if self.module(headers.CONFIGURATIONS[where][0]):
            length = self.length(where)
            limits = {name: self.times.limit(name, where, length) for name in names}
            guests.run(self.tally, where, limits, length)

    def module(self, kernel):
        """Build the module for a kernel, once; return true if it builds."""
        with self.locks[kernel]:
            if kernel not in self.modules:
                self.modules[kernel] = guests.build_module(self.tally, kernel)
            return self.modules[kernel]


class Workers:
    """Run items; those that need a kernel that is built here when it is. building: kernel -> process"""

    def __init__(self, items, tally, building):
        self.left, self.tally, self.building = items, tally, building
        self.lock = threading.Lock()

    def _ready(self, item):
        return item.kernel not in self.building or self.building[item.kernel].poll() is not None

    def _take(self):
        """Return the next item that can run now; if there is none, one that must be waited for."""
        with self.lock:
            ready = [item for item in self.left if self._ready(item)] or self.left
            if not ready:
                return None
            self.left.remove(item := ready[0])
            return item

    def _worker(self):
        for item in iter(self._take, None):
            try:
                item.call()
            except Exception as trouble:    # errors in a separate thread must be reported, too
                self.tally.add(False, "run", repr(trouble))

    def run(self):
        others = [threading.Thread(target=self._worker, daemon=True) for _ in range(children.workers - 1)]
        for worker in others:
            worker.start()
        self._worker()
        for worker in others:
            worker.join()
