# SPDX-License-Identifier: MIT
"""What is known of a test that hangs, taken before it is ended."""
import glob
import os
import shutil
import subprocess

from results import family

SHOWN = 400         # lines
SECONDS = 60        # of a debugger


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
