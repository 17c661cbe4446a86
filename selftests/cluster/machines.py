# SPDX-License-Identifier: MIT
"""Guests that a test boots, gives commands, cuts off, kills and boots again.

    with Machines(3) as machines:
        job = Job(machines, 6, ["selftests/cluster/programs/steady"])
        job.wait_line("running")
        machines[2].link(False)

Guest i has the addresses 10.7.C.i and fd07:0:0:C::i on ethC, as in scripts/harness/vm. The module is loaded.
"""
import argparse
import copy
import os
import random
import re
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import time

import ktap
import patience

sys.path.insert(0, os.path.join(ktap.TOP, "scripts/harness"))
import child  # noqa: E402 (in scripts)
import guest  # noqa: E402
import job as launcher  # noqa: E402

PATIENCE = 2 * patience.WORK     # base of the limit of every operation


def wait_until(condition, what, base=PATIENCE):
    """Poll until the condition returns a true value, and return that; what: text for the error
    message.
    """
    found = patience.until(condition, base)
    if not found:
        raise ktap.Failure(f"{what() if callable(what) else what}: not within {base} s")
    return found


def read(path):
    try:
        with open(path, errors="replace") as f:
            return f.read()
    except FileNotFoundError:
        return ""


class Process:
    """A command that runs in a guest."""

    def __init__(self, machine, number, name):
        self.machine, self.name = machine, name
        self.base = f"{machine.dir}/{number}"

    def output(self):
        return read(f"{self.base}.out")

    def ended(self):
        return os.path.exists(f"{self.base}.status")

    def _explain(self):
        return f"{self.name} on {self.machine.name}, which {self.machine.state()}, printed:\n{self.output()}"

    def wait(self):
        """Wait for its end; return its exit status."""
        wait_until(lambda: self.ended() or not self.machine.alive(), lambda: f"end of {self._explain()}")
        ktap.check(self.ended(), self._explain())
        return int(read(f"{self.base}.status"))

    def wait_line(self, pattern):
        """Wait until it has printed a line that matches; return the match."""
        def look():
            return re.search(pattern, self.output(), re.M) or self.ended() or not self.machine.alive()
        wait_until(look, lambda: f"'{pattern}' of {self._explain()}")
        match = re.search(pattern, self.output(), re.M)
        ktap.check(match, f"no '{pattern}': {self._explain()}")
        return match

    def kill(self, signal="KILL"):
        """Kill it, or send it another signal."""
        pid = wait_until(lambda: read(f"{self.base}.pid").strip(), f"process of {self.name}")
        self.machine.run(f"kill -{signal} {pid}")


class Machine:
    """A guest, which may be booted several times with the same addresses."""

    def __init__(self, machines, me):
        self.machines, self.me, self.name = machines, me, f"g{me}"
        self.life = 0
        self.qemu = None

    def alive(self):
        return self.qemu is not None and self.qemu.process.poll() is None

    def state(self):
        return "runs" if self.alive() else f"ended, console:\n{read(self.console())[-3000:]}"

    def console(self):
        return f"{self.dir}/g{self.me}.console"

    def boot(self):
        """Start it; up() waits until it has booted."""
        self.life += 1
        self.started = 0
        self.dir = f"{self.machines.share}/{self.name}.{self.life}"
        os.mkdir(self.dir)
        command = self.machines.qemu_command(self.me, self.dir)
        open(self.console(), "wb").close()
        with open(f"{self.dir}/qemu", "wb") as errors:
            self.qemu = child.Child(command, stderr=errors)

    def up(self):
        """Wait for the boot, then load the module."""
        self.must_run(f"insmod {shlex.quote(self.machines.module)}")

    def kill(self):
        """Cut the power."""
        if self.alive():
            self.qemu.kill()
            self.qemu.process.wait()
            self.qemu.process.stdout.close()

    def _monitor(self, command):
        prompt = b"(qemu) "
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.settimeout(PATIENCE)
            s.connect(guest.monitor_path(self.machines.work, self.me))
            for line in ("", command):
                s.sendall(line.encode() + b"\n" if line else b"")
                seen = b""
                while not seen.endswith(prompt):
                    more = s.recv(4096)
                    ktap.check(more, f"machine {self.me}: QEMU is gone")
                    seen += more

    def link(self, up, card=0):
        """Connect or disconnect the cable of a network interface."""
        self._monitor(f"set_link n{card} {'on' if up else 'off'}")

    def start(self, command, environ=None):
        """Run a shell script; return the Process."""
        number = self.started
        self.started += 1
        words = [f"export {k}={shlex.quote(v)}\n" for k, v in (environ or {}).items()]
        with open(f"{self.dir}/new", "w") as f:
            f.write("".join(words) + command + "\n")
        os.rename(f"{self.dir}/new", f"{self.dir}/{number}.command")
        return Process(self, number, command.split("\n", 1)[0])

    def run(self, command):
        """Run a shell script to its end; return its exit status and output."""
        process = self.start(command)
        return process.wait(), process.output()

    def must_run(self, command):
        status, output = self.run(command)
        ktap.check(status == 0, f"{self.name}: {command}: exit status {status}\n{output}")
        return output

    def counter(self, name):
        """Return a counter of /proc/net/acp."""
        match = re.search(fr"^{name}\s+(\d+)", self.must_run("cat /proc/net/acp"), re.M)
        ktap.check(match, f"no counter {name}")
        return int(match[1])

    def check_sound(self):
        """Check that it runs, that the module can be unloaded (it is loaded again), and that the
        kernel logged no problem.
        """
        ktap.check(self.alive(), f"{self.name} {self.state()}")
        self.must_run("rmmod acp")
        self.up()
        splat = guest.splat(self.console())
        ktap.check(not splat, f"the kernel of {self.name} complains:\n{splat}")


class Machines(list):
    """Several guests on the same networks."""

    def __init__(self, count, cards=1):
        super().__init__(Machine(self, me) for me in range(1, count + 1))
        kernel = os.environ.get("ACP_KERNEL", "6.1")
        self.release, _, self.image = guest.resolve_kernel(kernel)
        build = os.environ.get("ACP_BUILD", os.path.join(ktap.TOP, "build"))
        self.module = os.path.join(build, self.release, "acp.ko")
        ktap.check(os.path.exists(self.module), f"no {self.module}: scripts/harness/build-module {kernel}")
        self.cards, self.memory = cards, "1G" if kernel == "debug" else "256M"
        self.net = ("239.255.%d.%d" % (random.randrange(256), random.randrange(1, 255)), random.randrange(20000, 60000))

    def explain(self, *_):
        """Print where the machines hang, which ends them."""
        for machine in self:
            if machine.alive():
                print(f"# {machine.name} ran out of time\n{guest.evidence(self.work, machine.me, machine.console())}", flush=True)

    def __enter__(self):
        child.exit_on_signals()
        signal.signal(signal.SIGUSR1, self.explain)
        self.work = tempfile.mkdtemp(prefix=f"acp-machines.{os.getpid()}.")
        self.share = os.path.join(self.work, "share")
        os.mkdir(self.share)
        self.base = guest.base_archive(self.work, self.release, os.path.isdir(f"/lib/modules/{self.release}"), [])
        self.kernel = guest.elf_image(self.image)
        try:
            self.boot()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.kill()
        shutil.rmtree(self.work, ignore_errors=True)

    def qemu_command(self, me, directory):
        command = f"exec /run/vm/busybox sh selftests/cluster/agent.sh {shlex.quote(directory)}"
        opts = argparse.Namespace(
            commands=[command] * len(self), kmemleak=False, see=[], share=[self.share], smp="1", icount=False,
            mem=self.memory, append="", reboot=False, monitor=True, nics=self.cards, net="mcast",
            mcast=self.net[0], port=self.net[1], root="/", init="")
        initrd = guest.write_initrd(self.work, self.base, me, opts)
        return guest.qemu_command(self.work, directory, self.kernel, initrd, me, opts)

    def boot(self):
        """Boot those that are not running."""
        down = [m for m in self if not m.alive()]
        for machine in down:
            shutil.rmtree(f"{self.work}/tree{machine.me}", ignore_errors=True)
            machine.boot()
        for machine in down:
            machine.up()

    def kill(self):
        for machine in self:
            machine.kill()

    def check_sound(self):
        """Check all running guests."""
        for machine in self:
            if machine.alive():
                machine.check_sound()


class Job:
    """Ranks that run a command on some machines, in blocks; their Processes are job[RANK]."""

    def __init__(self, machines, ranks, command, colors=1, **environ):
        """environ: variables for all ranks; colors: how many of the networks to use."""
        self.machines, self.ranks, self.command = machines, ranks, command
        key = f"{machines[0].dir}/key.{time.monotonic_ns()}"
        launcher.write_key(key)
        nodes = [[f"10.7.{c}.{m.me}" for c in range(colors)] for m in machines]
        self.environ = launcher.environment(nodes, ranks, key, environ)
        self.begin()

    def begin(self):
        self.processes = {}
        for rank in range(self.ranks):
            self.start(rank)

    def machine(self, rank):
        return self.machines[rank // -(-self.ranks // len(self.machines))]

    def start(self, rank):
        """Start a rank, possibly again."""
        environ = {**self.environ, "ACP_RANK": str(rank)}
        self.processes[rank] = self.machine(rank).start(f"exec {self.command}", environ)

    def again(self, command):
        """Return the same job with the same id, for another program."""
        job = copy.copy(self)
        job.command = command
        job.begin()
        return job

    def __getitem__(self, rank):
        return self.processes[rank]

    def wait_line(self, pattern, ranks=None):
        for rank in ranks or range(self.ranks):
            self[rank].wait_line(pattern)

    def check_running(self):
        """Check that no rank has ended."""
        for rank, process in self.processes.items():
            ktap.check(not process.ended(), f"rank {rank} ended:\n{process.output()}")

    def check_end(self, ranks=None):
        """Check that the ranks end with status 0."""
        for rank in ranks or range(self.ranks):
            status = self[rank].wait()
            ktap.check(status == 0, f"rank {rank}: exit status {status}\n{self[rank].output()}")
