# SPDX-License-Identifier: MIT
"""How long tests take: a table in the repository, selftests/times, from which follow their order,
their distribution to guests, and their limits of time.

A line: test, configuration of guests or "here", length, seconds, seconds of processors. They were
measured while twice as many tests as there are processors were running, or some more; `selftests/run
--update-times` replaces those of the tests that it ran and that passed.
"""
import os

import headers

PATH = os.path.join(headers.TESTS, "times")
LEAST = 1               # shorter ones are not listed
USUAL = 8               # seconds of a test that the table does not have, short; EACH is for each of its tests
EACH = 1.0
FULL = 4                # how much longer the full length is, if the table has the short one only
SLOWER = {"debug": 4}   # how much slower a kernel is than 6.12, if the table does not have it
LIMIT, AGAIN = 60, 4    # a test may take a minute and four times what it took


class Times:
    def __init__(self):
        self.known = {}
        with open(PATH, encoding="utf-8") as f:
            for line in f:
                if not line.startswith("#"):
                    name, where, length, wall, cpu = line.split()
                    self.known[name, where, length] = float(wall), float(cpu)

    def seconds(self, name, where, length):
        """Return the expected duration of a test."""
        where = where or "here"
        if (name, where, length) in self.known:
            return self.known[name, where, length][0]
        if (name, where, "short") in self.known:
            return self.known[name, where, "short"][0] * FULL
        if (name, where, "full") in self.known:     # tests that can be brief take less
            return self.known[name, where, "full"][0]
        usual = max(USUAL, EACH * headers.count(name)) * (FULL if length == "full" else 1)
        return usual * SLOWER.get(where, 1)

    def limit(self, name, where, length):
        """Return the seconds after which a test counts as hanging, on a machine that is not overloaded."""
        if (name, where or "here", length) in self.known:
            return round(LIMIT + AGAIN * self.seconds(name, where, length))
        return round(5 * LIMIT + AGAIN * self.seconds(name, where, length))

    def update(self, tests, length):
        """Replace what is known of tests that passed, and write the table."""
        for test in tests:
            key = test.name, test.where if headers.in_guest(test.name) else "here", length
            if not test.failed:
                self.known.pop(key, None)
            if not test.failed and test.wall >= LEAST:
                self.known[key] = test.wall, test.cpu
        with open(PATH, "w", encoding="utf-8") as f:
            f.write("# SPDX-License-Identifier: MIT\n# Written by selftests/run --update-times; read by selftests/runner/times.py\n")
            for (name, where, kind), (wall, cpu) in sorted(self.known.items()):
                f.write(f"{name} {where} {kind} {wall:.0f} {cpu:.0f}\n")
