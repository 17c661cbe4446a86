# SPDX-License-Identifier: MIT
"""Where the ends of a measurement run: network namespaces of this machine, or machines that a remote shell reaches.

A place has nodes; a node runs commands. A job is what acp_perf needs: ranks, dealt out to the nodes.
"""
import os
import re
import secrets
import shlex
import subprocess
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
TRIES = 300             # until the other end of a measurement listens
# A machine that counts instructions lets its clock jump whenever it waits, also for its files: there seconds are hardly
# a measure of patience (100 that it sleeps through take one). Whoever runs the machine looks whether it gets on.
FOREVER = 100000
LONG = 3000             # for a command that may sleep for ever
PUSHED = "/tmp/acp-bench"


class Unable(Exception):
    """Something cannot be measured; the text says why, in a line."""


class Late(Unable):
    """A command took too long."""


def excuse(text):
    """The last line of what a failed command printed, short enough for a table."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no output"]
    return lines[-1][:160]


class Node:
    """One end. prefix: what makes a command run there."""

    def __init__(self, name, address, card, prefix=(), least=0):
        """least: seconds that any command may take, whatever its caller says."""
        self.name, self.address, self.card, self.prefix, self.least = name, address, card, list(prefix), least

    def command(self, words, env=None):
        values = [f"{name}={value}" for name, value in (env or {}).items()]
        return [*self.prefix, *(["env", *values] if values else []), *words]

    def start(self, words, env=None):
        """A command that is to be ended by stop()."""
        return subprocess.Popen(self.command(words, env), cwd=TOP, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, errors="replace")

    @staticmethod
    def stop(running):
        """End it, as far as it has not ended. Returns what it printed."""
        if running.poll() is None:
            running.terminate()
        try:
            return running.communicate(timeout=5)[0]
        except subprocess.TimeoutExpired:
            running.kill()
            return running.communicate()[0]

    def run(self, words, env=None, patience=120):
        """What a command prints; Unable if it fails."""
        patience = max(patience, self.least)
        try:
            done = subprocess.run(self.command(words, env), cwd=TOP, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, errors="replace", timeout=patience, check=False)
        except subprocess.TimeoutExpired as e:
            raise Late(f"{words[0]}: out of time ({patience} s)") from e
        except OSError as e:
            raise Unable(f"{words[0]}: {e.strerror}") from e
        if done.returncode:
            raise Unable(f"{os.path.basename(words[0])}: {excuse(done.stdout)}")
        return done.stdout

    def need(self, *programs):
        for program in programs:
            try:
                self.run(["sh", "-c", f"command -v {shlex.quote(program)}"])
            except Unable as e:
                raise Unable(f"no program {program} on {self.name}") from e

    def program(self, path):
        """Where a program of this checkout is found on the node."""
        return os.path.join(TOP, path)


class Remote(Node):
    """A machine that is reached by a remote shell, as ssh: words of a command, then the host."""

    def __init__(self, name, address, card, shell):
        super().__init__(name, address, card)
        self.shell = [*shell, name]
        self.pushed = {}

    def command(self, words, env=None):
        values = [f"{key}={value}" for key, value in (env or {}).items()]
        line = shlex.join([*(["env", *values] if values else []), *words])
        return [*self.shell, f"PATH=$PATH:/usr/sbin:/sbin; export PATH; {line}"]

    def wait(self, patience=300):
        """Until it can be reached."""
        end = time.monotonic() + patience
        while True:
            try:
                self.run(["true"], patience=60)
                return
            except Unable:
                if time.monotonic() > end:
                    raise
                time.sleep(0.5)

    # The remote command ends when its input does, so that nothing is left there.
    GUARD = ('exec 3<&0; "$@" </dev/null 3<&- & p=$!; { cat <&3; kill $p; } >/dev/null 2>&1 & '
             'wait $p; s=$?; exec 3<&-; exit $s')

    def start(self, words, env=None):
        return super().start(["sh", "-c", self.GUARD, "sh", *(["env", *(f"{k}={v}" for k, v in env.items())] if env else []),
                              *words])

    @staticmethod
    def stop(running):
        try:
            return running.communicate(timeout=5)[0]       # this closes its input
        except subprocess.TimeoutExpired:
            running.kill()
            return running.communicate()[0]

    def program(self, path):
        """The same path there if it is there, else a copy."""
        here = os.path.join(TOP, path)
        if here not in self.pushed:
            try:
                self.run(["test", "-x", here])
                self.pushed[here] = here
            except Unable:
                self.pushed[here] = self.push(here)
        return self.pushed[here]

    def push(self, path):
        there = f"{PUSHED}.{os.getpid()}/{os.path.basename(path)}"
        with open(path, "rb") as f:
            self.write(there, f.read(), "755")
        return there

    def write(self, path, data, mode):
        quoted = shlex.quote(path)
        line = f"umask 077; mkdir -p {shlex.quote(os.path.dirname(path))} && cat >{quoted} && chmod {mode} {quoted}"
        try:
            done = subprocess.run([*self.shell, line], input=data, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=300, check=False)
        except subprocess.TimeoutExpired as e:
            raise Unable(f"{self.name}: out of time") from e
        if done.returncode:
            raise Unable(f"{self.name}: {excuse(done.stdout.decode(errors='replace'))}")


def rank0(text):
    """Lines of rank 0 among those of all, as scripts/cluster prints them."""
    return [line.removeprefix("[0] ") for line in text.splitlines() if not re.match(r"\[[1-9]\d*\] ", line)]


class Namespaces:
    """Two namespaces joined by veth, made here; jobs get fresh ones of their own by scripts/cluster."""
    kind = "icount"

    def __init__(self):
        self.here = Node("here", "127.0.0.1", "lo", least=LONG)
        self.names = [f"bench-{os.getpid()}-{i}" for i in (1, 2)]
        self.nodes = [Node(name, f"10.9.0.{i}", "eth0", ["ip", "netns", "exec", name], LONG)
                      for i, name in enumerate(self.names, 1)]
        for name in self.names:
            self.here.run(["ip", "netns", "add", name])
        one, two = self.names
        self.here.run(["ip", "link", "add", "eth0", "netns", one, "type", "veth", "peer", "name", "eth0", "netns", two])
        for node in self.nodes:
            node.run(["ip", "addr", "add", f"{node.address}/24", "dev", "eth0"])
            node.run(["ip", "link", "set", "eth0", "up"])
            node.run(["ip", "link", "set", "lo", "up"])

    def close(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)

    def job(self, words, ranks=2, nodes=2, more=(), env=None, patience=300):
        """Rank 0's lines of a job."""
        command = ["scripts/cluster", "--namespaces", str(nodes), "--ranks", str(ranks), "--timeout", str(FOREVER), *more]
        for name, value in (env or {}).items():
            command += ["--env", f"{name}={value}"]
        return rank0(self.here.run([*command, "--", self.here.program(words[0]), *words[1:]], patience=patience))


class Machines:
    """Two machines: this one, and another that a remote shell reaches; acp is loaded on both."""

    def __init__(self, addresses, card, shell, kind):
        self.kind = kind
        self.here = Node("here", addresses[0], card)
        self.nodes = [self.here, Remote(addresses[1], addresses[1], card, shell)]
        self.nodes[1].wait()
        self.key = secrets.token_hex(16) + "\n"
        self.nodes[1].write(f"{PUSHED}.{os.getpid()}/key", self.key.encode(), "600")
        handle, self.key_here = tempfile.mkstemp(prefix="acp-bench.")
        with os.fdopen(handle, "w") as f:
            f.write(self.key)

    def close(self):
        os.unlink(self.key_here)
        try:
            self.nodes[1].run(["rm", "-rf", f"{PUSHED}.{os.getpid()}"])
        except Unable:
            pass                            # it has gone before us

    def environment(self, rank, ranks, nodes, number, env):
        key = self.key_here if rank * len(nodes) // ranks == 0 else f"{PUSHED}.{os.getpid()}/key"
        return {"ACP_RANK": rank, "ACP_NPROCS": ranks, "ACP_NODES": " ".join(node.address for node in nodes),
                "ACP_JOB": number, "ACP_KEYFILE": key, **(env or {})}

    def job(self, words, ranks=2, nodes=2, more=(), env=None, patience=300):
        if nodes > 2 or more:
            raise Unable("between two machines as they are only")
        number = 1 + secrets.randbelow(2**32 - 1)
        running, there = [], self.nodes[:nodes]
        homes = [there[rank * nodes // ranks] for rank in reversed(range(ranks))]
        try:
            for rank, node in zip(reversed(range(ranks)), homes):
                running.append(node.start([node.program(words[0]), *words[1:]],
                                          self.environment(rank, ranks, there, number, env)))
            text = running[-1].communicate(timeout=patience)[0]
            if running[-1].returncode:
                raise Unable(f"{os.path.basename(words[0])}: {excuse(text)}")
            return text.splitlines()
        except subprocess.TimeoutExpired as e:
            raise Unable(f"{os.path.basename(words[0])}: out of time ({patience} s)") from e
        finally:
            for one, node in zip(running, homes):
                if not one.stdout.closed:
                    node.stop(one)


def ask(node, words, env=None, patience=120):
    """Run the asking end again and again until the serving one is there."""
    end = time.monotonic() + max(patience, node.least)
    for _ in range(TRIES):
        try:
            return node.run(words, env, max(1, int(end - time.monotonic())))
        except Late:
            raise
        except Unable as e:
            why = e
            if time.monotonic() > end:
                break
            time.sleep(0.2)
    raise why


def pair(place, serving, asking, env=None, patience=120):
    """A measurement by a program with two ends: the second node serves. Returns what the asking one prints."""
    server = place.nodes[1].start(serving, env)
    try:
        return ask(place.nodes[0], asking, env, patience)
    except Unable as e:
        if server.poll() not in (None, 0):
            raise Unable(f"{e}; the serving end: {excuse(server.stdout.read())}") from e
        raise
    finally:
        place.nodes[1].stop(server)
