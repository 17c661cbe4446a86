# SPDX-License-Identifier: MIT
"""Child processes whose output is forwarded line by line, and that do not outlive their parent."""
import ctypes
import os
import selectors
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1


def exit_on_signals():
    """Make the usual signals end the program through its finally clauses."""
    def leave(number, _):
        raise SystemExit(128 + number)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, leave)


def _die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Child:
    """A process in its own session. stderr: a file to write to, or None to forward lines."""

    def __init__(self, command, prefix="", log=None, stderr=None, env=None):
        self.prefix, self.log = prefix.encode(), log
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=stderr or subprocess.PIPE, env=env, start_new_session=True,
                                        preexec_fn=_die_with_parent)
        self.partial = {self.process.stdout: b"", self.process.stderr: b""}

    def lines(self, pipe, data):
        """Forward whole lines of a pipe's output with a prefix; no data means the end."""
        if self.log:
            self.log.write(data)
            self.log.flush()
        *lines, rest = (self.partial[pipe] + data).split(b"\n")
        if not data and rest:
            lines, rest = [rest], b""
        self.partial[pipe] = rest
        return [self.prefix + line.rstrip(b"\r") + b"\n" for line in lines]

    def kill(self, number=signal.SIGKILL):
        """Signal the process and its descendants, if it still runs."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)


class Pump:
    """Forwards the output of children to standard output."""

    def __init__(self, children, quiet=False):
        self.quiet = quiet
        self.selector = selectors.DefaultSelector()
        for child in children:
            for pipe, ours in ((child.process.stdout, sys.stdout), (child.process.stderr, sys.stderr)):
                if pipe:
                    self.selector.register(pipe, selectors.EVENT_READ, (child, ours.buffer))

    def run(self, seconds):
        """Forward for that long; return early, and False, when all pipes are closed."""
        end = time.monotonic() + seconds
        while self.selector.get_map():
            left = end - time.monotonic()
            if left <= 0:
                return True
            for key, _ in self.selector.select(left):
                self._pass_on(key)
        return False

    def _pass_on(self, key):
        child, ours = key.data
        data = os.read(key.fd, 65536)
        lines = child.lines(key.fileobj, data)
        if not self.quiet:
            ours.writelines(lines)
            ours.flush()
        if not data:
            self.selector.unregister(key.fileobj)
