# SPDX-License-Identifier: MIT
"""The table of layers (rules.txt), as a dictionary: section -> [(line number, words, rest)]."""
import os

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
PATH = "scripts/check/rules.txt"


def load():
    sections, lines = {}, None
    with open(os.path.join(TOP, PATH), encoding="utf-8") as f:
        for line in f:
            line = line.split("#")[0].rstrip()
            if line.startswith("["):
                lines = sections.setdefault(line.strip("[]"), [])
            elif line and line[0].isspace():
                lines[-1] += " " + line.strip()
            elif line:
                lines.append(line)
    return sections


def levels(lines):
    """Return file name -> level, from 0 at the bottom."""
    return {name: level for level, line in enumerate(lines) for name in line.split()}


def level_of(name, level):
    """Return the level of a file, or else of its folder, or None."""
    return level.get(name, level.get(name.split("/")[0] + "/"))


def pairs(lines):
    """Return lines "key: value" as a list of pairs."""
    return [tuple(part.strip() for part in line.split(":", 1)) for line in lines]
