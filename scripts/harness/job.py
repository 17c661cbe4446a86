# SPDX-License-Identifier: MIT
"""An ACP job for its launcher: the environment of its ranks, and running those of one node."""
import os
import secrets
import signal
import sys
import time

import child

TIMED_OUT = 124
GRACE = 2.0     # seconds between SIGTERM and SIGKILL


def write_key(path):
    """Write a new job key that only this user can read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as f:
        f.write(secrets.token_hex(16) + "\n")


def inherited():
    """Return our own variables that ranks inherit, also those in guests."""
    return {k: v for k, v in os.environ.items() if k.startswith("ACP_") or k == "LD_LIBRARY_PATH"}


def environment(nodes, ranks, keyfile, more):
    """Return the variables common to all ranks. nodes: for each node the list of its addresses, one
    per color.
    """
    return {**inherited(),
            "ACP_NPROCS": str(ranks),
            "ACP_NODES": " ".join(",".join(addresses) for addresses in nodes),
            "ACP_JOB": str(1 + secrets.randbelow(2**32 - 1)),
            "ACP_KEYFILE": keyfile,
            **more}


def ranks_of_node(node, nodes, ranks):
    """Block placement, the default of ACP_PLACEMENT: consecutive ranks fill a node."""
    per_node = -(-ranks // nodes)
    return range(node * per_node, min((node + 1) * per_node, ranks))


class StopFile:
    """Tells the launchers of all nodes through a shared file that a rank has failed, and its
    status.
    """

    def __init__(self, path):
        self.path = path

    def read(self):
        """Return the status of the first rank that failed, or 0."""
        try:
            with open(self.path) as f:
                return int(f.read() or TIMED_OUT)
        except FileNotFoundError:
            return 0

    def write(self, status):
        try:
            with open(self.path, "x") as f:
                f.write(str(status))
        except FileExistsError:
            pass


class Ranks:
    """The ranks of a job on this machine."""

    def __init__(self, commands, environ, prefixes):
        """commands: rank -> argument vector"""
        self.living = {}
        self.status = 0
        for rank, command in commands.items():
            env = {**os.environ, **environ, "ACP_RANK": str(rank)}
            self.living[rank] = child.Child(command, f"[{rank}] " if prefixes else "", env=env)
        self.pump = child.Pump(self.living.values())

    def kill(self, number):
        for rank in self.living.values():
            rank.kill(number)

    def _reap(self, silent):
        """Remove ranks that have ended; return the status of one that failed now, or 0."""
        failed = 0
        for rank, proc in list(self.living.items()):
            code = proc.process.poll()
            if code is None:
                continue
            del self.living[rank]
            if code and not silent:
                failed = failed or (code if code > 0 else 128 - code)
                how = f"exited with status {code}" if code > 0 else f"was killed by signal {-code}"
                print(f"cluster: rank {rank} {how}", file=sys.stderr, flush=True)
        return failed

    def _note(self, failed, stop):
        """Record the first failure and tell the other nodes."""
        if failed and not self.status:
            self.status = failed
            if stop:
                stop.write(failed)

    def wait(self, timeout, keep_going, stop=None):
        """Run to the end; a failure (here, or elsewhere through the stop file) or timeout ends all.

        Returns the status of the first rank here that failed, TIMED_OUT, or 0.
        """
        end = time.monotonic() + timeout
        killed = None       # when the ranks were told to end
        while self.living:
            if not self.pump.run(0.1):
                time.sleep(0.02)
            failed = self._reap(killed)
            now = time.monotonic()
            if killed is None:
                if now >= end and not failed:
                    print("cluster: out of time", file=sys.stderr, flush=True)
                    failed = TIMED_OUT
                self._note(failed, stop)
                if now >= end or (not keep_going and (self.status or (stop and stop.read()))):
                    killed = now
                    self.kill(signal.SIGTERM)
            elif now - killed > GRACE:
                self.kill(signal.SIGKILL)
        self.pump.run(0.5)      # do not wait for pipes that descendants of a rank still hold open
        return self.status
