# SPDX-License-Identifier: MIT
"""What is known of a test that hangs, taken before it is ended."""
import glob
import os
import shutil
import signal
import subprocess

from results import family

SHOWN = 400         # lines
SECONDS = 60        # of a debugger
GUESTS = 90         # seconds until guests have said where they hang


def _read(path):
    try:
        with open(path, errors="replace") as f:
            return f.read().replace("\0", " ").strip()
    except OSError as trouble:
        return f"({trouble.strerror})"


def _threads(pid):
    """Return what each thread of a process waits for."""
    lines = [f"process {pid}: {_read(f'/proc/{pid}/cmdline')}"]
    for task in sorted(glob.glob(f"/proc/{pid}/task/*")):
        state = _read(f"{task}/stat").rpartition(")")[2].split()[:1]
        lines.append(f"  thread {os.path.basename(task)}: state {''.join(state)}, waits in {_read(f'{task}/wchan')}, "
                     f"system call {_read(f'{task}/syscall')}")
        lines += [f"    {text}" for text in _read(f"{task}/stack").splitlines()]
    return lines


def _debugger(pid):
    """Return the stacks of a process in user space; nothing without gdb."""
    if not shutil.which("gdb"):
        return []
    try:
        ran = subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 30"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace",
                             timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return []
    return [f"  {text}" for text in ran.stdout.splitlines() if text.startswith(("#", "Thread"))]


def of_family(pid):
    """Return lines about a process and its descendants: states, kernel stacks, user stacks."""
    lines = []
    for process in family(pid):
        lines += _threads(process)
        if "qemu" not in _read(f"/proc/{process}/comm"):
            lines += _debugger(process)
    return lines[:SHOWN]


def _can_be_asked(process, test):
    """Is it a program that runs guests, and says upon SIGUSR1 where these hang?"""
    if any(word.endswith("scripts/harness/vm") for word in _read(f"/proc/{process}/cmdline").split()[:3]):
        return True
    caught = [line.split()[1] for line in _read(f"/proc/{process}/status").splitlines() if line.startswith("SigCgt:")]
    return process == test and bool(caught) and bool(int(caught[0], 16) >> (signal.SIGUSR1 - 1) & 1)


def ask_guests(pid):
    """Have the guests of a test say where they hang, in its output, and end. Return true if there are any."""
    asked = [process for process in family(pid) if _can_be_asked(process, pid)]
    for process in asked:
        try:
            os.kill(process, signal.SIGUSR1)
        except ProcessLookupError:
            pass
    return bool(asked)
