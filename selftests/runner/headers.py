# SPDX-License-Identifier: MIT
"""What a test says of itself in its first lines: where, and how, it runs.

One line of its first 30 has "selftest:" and words after it:

  gate=A,B,...      what the gate runs it on: names of configurations (see CONFIGURATIONS); here, for
                    tests that run on this machine; none, if only `make test-all` runs it
  cpus=2            guests need two processors, whatever the configuration says: it is about races
  leaks             kernels that can (debug, uml) search for leaked memory afterwards
  kernels=A,B,...   only these kernels can run it

The defaults: tests of dev/ and net/ run on 6.12 and uml in the gate, all others here. The test of
the same name with _long is the one at full length, with _tsan the one with that sanitizer: their
first lines are those of the source they are built from.
"""
import functools
import os
import re

TESTS = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
SUITES = ["unit", "fuzz", "model", "dev", "net", "cluster", "package"]
GUEST_SUITES = ["dev", "net"]
FIRST = 30          # lines
WORDS = {"gate", "cpus", "leaks", "kernels"}

# Name of a configuration of guests: its kernel, processors, and memory.
CONFIGURATIONS = {
    "6.1": ("6.1", 2, "2G"),
    "6.12": ("6.12", 2, "2G"),
    "6.12-1cpu": ("6.12", 1, "2G"),
    "rt": ("rt", 1, "2G"),
    "debug": ("debug", 1, "1G"),    # searching for leaks takes time in proportion to its memory
    "uml": ("uml", 1, "1G"),
}
CHECKED = {"debug", "uml"}          # kernels that can search for leaks
GATE = {"dev": ["6.12", "uml"], "net": ["6.12", "uml"]}


def executables(suite):
    directory = os.path.join(TESTS, suite)
    if not os.path.isdir(directory):
        return []
    return sorted(f"{suite}/{name}" for name in os.listdir(directory)
                  if os.path.isfile(os.path.join(directory, name)) and os.access(os.path.join(directory, name), os.X_OK))


def in_guest(name):
    return name.partition("/")[0] in GUEST_SUITES


def source(name):
    """Return the file that describes a test: the program itself if it is a script."""
    for base in (name, re.sub(r"_(long|tsan)$", "", name)):
        path = os.path.join(TESTS, base + ".c")
        if os.path.exists(path):
            return path
    return os.path.join(TESTS, name)


@functools.cache
def words(name):
    """Return what the first lines of a test say: word -> its value, or True."""
    if not os.path.exists(source(name)):    # a static gate
        return {}
    with open(source(name), encoding="utf-8", errors="replace") as f:
        lines = [f.readline() for _ in range(FIRST)]
    found = [m[1] for m in (re.search(r"\bselftest: *(.*?)\s*(?:\*/)?$", line) for line in lines) if m]
    said = {}
    for word in " ".join(found).split():
        key, equals, value = word.partition("=")
        if key not in WORDS:
            raise SystemExit(f"{source(name)}: 'selftest: {word}' is not known; see {__file__}")
        said[key] = value if equals else True
    return said


@functools.cache
def count(name):
    """Return the number of tests in the source of a program; 0 if it has none."""
    if not os.path.exists(source(name)):
        return 0
    with open(source(name), encoding="utf-8", errors="replace") as f:
        return len(re.findall(r"^TEST\w*\(", f.read(), re.M))


def gate_of(name):
    """Return the configurations on which the gate runs a test; [""] is this machine."""
    suite = name.partition("/")[0]
    said = words(name).get("gate")
    if name.endswith("_long"):
        return []
    if said is None:
        return GATE.get(suite, [""])
    if said == "none":
        return []
    configurations = ["" if one == "here" else one for one in said.split(",")]
    for one in configurations:
        if one and one not in CONFIGURATIONS:
            raise SystemExit(f"{source(name)}: 'gate={said}': there is no configuration '{one}'")
    return configurations


def runs_on(name, kernel):
    """Return true if a kernel can run a test."""
    said = words(name).get("kernels")
    return said is None or kernel in said.split(",")


def machine_of(name, configuration):
    """Return the guest that a test needs: kernel, processors, memory, search for leaks."""
    kernel, processors, memory = CONFIGURATIONS[configuration]
    if words(name).get("cpus") and not configuration.endswith("-1cpu") and kernel != "uml":
        processors = max(processors, int(words(name)["cpus"]))
    return kernel, processors, memory, kernel in CHECKED and "leaks" in words(name)
