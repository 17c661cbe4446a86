# SPDX-License-Identifier: MIT
"""Places for measurements: network namespaces of this machine, or machines that a remote shell
reaches.

A place has nodes; a node runs commands. A job, as acp_perf needs it, has ranks that are
distributed over the nodes.
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
# A machine that counts instructions advances its clock whenever it waits, also for its files.
# There, timeouts in seconds are of little use (100 seconds of sleep may take one). Whoever runs the
# machine checks its progress.
FOREVER = 100000
LONG = 3000             # for a command that may sleep forever
PUSHED = "/tmp/acp-bench"


class Unable(Exception):
    """Something cannot be measured; the text is the reason, in one line."""


class Late(Unable):
    """A command took too long."""


def excuse(text):
    """Return the last line of the output of a failed command, short enough for a table."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no output"]
    return lines[-1][:160]


class Node:
    """One node. prefix: command that runs another command there."""

    def __init__(self, name, address, card, prefix=(), least=0):
        """least: minimum timeout in seconds of any command, whatever its caller specifies."""
        self.name, self.address, self.card, self.prefix, self.least = name, address, card, list(prefix), least

    def command(self, words, env=None):
        values = [f"{name}={value}" for name, value in (env or {}).items()]
        return [*self.prefix, *(["env", *values] if values else []), *words]

    def start(self, words, env=None):
        """Start a command that stop() ends."""
        return subprocess.Popen(self.command(words, env), cwd=TOP, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, errors="replace")

    @staticmethod
    def stop(running):
        """End a command if it is still running. Return its output."""
        if running.poll() is None:
            running.terminate()
        try:
            return running.communicate(timeout=5)[0]
        except subprocess.TimeoutExpired:
            running.kill()
            return running.communicate()[0]

    def run(self, words, env=None, patience=120):
        """Return the output of a command; raise Unable if it fails."""
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
        """Return the path on the node of a program of this source tree."""
        return os.path.join(TOP, path)


class Remote(Node):
    """A machine that is reached by a remote shell like ssh: words of a command, followed by the
    host.
    """

    def __init__(self, name, address, card, shell):
        super().__init__(name, address, card)
        self.shell = [*shell, name]
        self.pushed = {}

    def command(self, words, env=None):
        values = [f"{key}={value}" for key, value in (env or {}).items()]
        line = shlex.join([*(["env", *values] if values else []), *words])
        return [*self.shell, f"PATH=$PATH:/usr/sbin:/sbin; export PATH; {line}"]

    def wait(self, patience=300):
        """Wait until it can be reached."""
        end = time.monotonic() + patience
        while True:
            try:
                self.run(["true"], patience=60)
                return
            except Unable:
                if time.monotonic() > end:
                    raise
                time.sleep(0.5)

    # The remote command ends when its standard input is closed, so that none is left behind.
    GUARD = ('exec 3<&0; "$@" </dev/null 3<&- & p=$!; { cat <&3; kill $p; } >/dev/null 2>&1 & '
             'wait $p; s=$?; exec 3<&-; exit $s')

    def start(self, words, env=None):
        return super().start(["sh", "-c", self.GUARD, "sh", *(["env", *(f"{k}={v}" for k, v in env.items())] if env else []),
                              *words])

    @staticmethod
    def stop(running):
        try:
            return running.communicate(timeout=5)[0]       # this closes its standard input
        except subprocess.TimeoutExpired:
            running.kill()
            return running.communicate()[0]

    def program(self, path):
        """Return the same path if it exists there, otherwise that of a copy."""
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
    """Return the lines of rank 0 from the output of all ranks, as scripts/harness/cluster prints
    it.
    """
    return [line.removeprefix("[0] ") for line in text.splitlines() if not re.match(r"\[[1-9]\d*\] ", line)]


class Namespaces:
    """Two namespaces connected by veth, which are created here; jobs get new ones from
    scripts/harness/cluster. name: of the emulated processor, under which results are stored.
    """
    kind = "icount"

    def __init__(self, name="icount"):
        self.name = name
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
        """Run a job and return the output of rank 0."""
        command = ["scripts/harness/cluster", "--namespaces", str(nodes), "--ranks", str(ranks), "--timeout", str(FOREVER), *more]
        for name, value in (env or {}).items():
            command += ["--env", f"{name}={value}"]
        return rank0(self.here.run([*command, "--", self.here.program(words[0]), *words[1:]], patience=patience))


class Machines:
    """Two machines: this one, and another one reached by a remote shell; acp is loaded on both."""

    def __init__(self, addresses, card, shell, kind):
        self.kind = self.name = kind
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
            pass                            # already removed

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
    """Run the client repeatedly until the server is ready."""
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
    """Measure with a client and a server, which runs on the second node. Return the output of the
    client.
    """
    server = place.nodes[1].start(serving, env)
    try:
        return ask(place.nodes[0], asking, env, patience)
    except Unable as e:
        if server.poll() not in (None, 0):
            raise Unable(f"{e}; the serving end: {excuse(server.stdout.read())}") from e
        raise
    finally:
        place.nodes[1].stop(server)
