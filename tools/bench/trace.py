# SPDX-License-Identifier: MIT
"""Traces of the instructions that a machine executes, by the debugger interface of QEMU.

While a machine is stepped, it takes no interrupts, and its timers do not advance: the trace
shows only the code between two points. Softirqs run where code enables them.
"""
import socket
import struct
import time

REGISTERS = ["rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
             "rip"]
LAYOUT = struct.Struct("<17Q")


class Stub:
    """Client of the debugger protocol of QEMU. The machine is stopped from the connection on."""

    def __init__(self, path, patience=60):
        self.socket = socket.socket(socket.AF_UNIX)
        end = time.monotonic() + patience
        while True:
            try:
                self.socket.connect(path)
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
        self.buffer = b""
        self.ask("?")

    def _fill(self):
        data = self.socket.recv(65536)
        if not data:
            raise EOFError("the machine is gone")
        self.buffer += data

    def send(self, text):
        body = text.encode()
        self.socket.sendall(b"$%s#%02x" % (body, sum(body) & 255))

    def answer(self, patience=None):
        """Return the contents of the next packet."""
        self.socket.settimeout(patience)
        while True:
            begin = self.buffer.find(b"$")
            end = self.buffer.find(b"#", begin) if begin >= 0 else -1
            if end >= 0 and len(self.buffer) >= end + 3:
                found, self.buffer = self.buffer[begin + 1:end], self.buffer[end + 3:]
                return found
            self._fill()

    def ask(self, text, patience=60):
        self.send(text)
        return self.answer(patience)

    def registers(self):
        return LAYOUT.unpack(bytes.fromhex(self.ask("g")[:2 * LAYOUT.size].decode()))

    def read(self, address, size):
        """Return memory, or nothing if there is none."""
        found = self.ask(f"m{address:x},{size:x}")
        return b"" if found.startswith(b"E") else bytes.fromhex(found.decode())

    def word(self, address):
        found = self.read(address, 8)
        return struct.unpack("<Q", found)[0] if len(found) == 8 else 0

    def step(self):
        self.ask("s")

    def run_to(self, address, patience):
        """Continue until the machine reaches an address, which it is not at."""
        self.ask(f"Z0,{address:x},1")
        try:
            self.ask("c", patience)
        finally:
            self.ask(f"z0,{address:x},1")

    def leave(self):
        """Let the machine continue without debugger."""
        try:
            self.send("D")
            self.answer(5)
        except (OSError, EOFError):
            pass
        self.socket.close()


class Follower:
    """Traces the instructions of an operation: the function and the node they belong to, and what
    is copied.

    resolve: returns the name of the function at an address. receive: addresses where a packet
    arrives, with a pointer to it (or to a list of packets, if the value is true) in rdi. Until
    such a function returns, instructions count for the node whose device received the packet;
    all others count for the process that is stepped, on node 0. send: addresses where a packet
    is passed to a device, which is in rsi. A device that a node sends through is its own.
    Devices through which nobody has sent belong to further nodes, in the order in which they
    receive packets, up to the given number of nodes; if all are known, they belong to node 0.
    before: functions that precede it in a softirq; they are counted with the next packet.
    copiers: functions that copy by loops: start address -> index of the register with the
    length.
    """
    DEV = 16            # offset of the device in a packet: after two pointers
    # bytes that an iteration of rep movs copies
    REP = {b"\xf3\xa4": 1, b"\xf3\x48\xa5": 8, b"\xf3\xa5": 4}
    ROUNDS = 64         # limit of iterations to step

    def __init__(self, stub, resolve, receive, send=(), nodes=2, before=(), copiers=None):
        self.stub, self.resolve, self.receive, self.send, self.nodes = stub, resolve, receive, set(send), nodes
        self.before, self.copiers = set(before), copiers or {}
        self.node_of = {}           # card -> node
        self.known = 1              # nodes
        self.side = 0               # node that the executed instructions count for
        self.inner = []             # [stack pointer, previous side]
        self.pending = {}           # function -> instructions that belong to the next packet
        self.count = {}             # (side, function) -> instructions
        # (side, function) -> [copies, their bytes, copies of payload, their bytes]
        self.copied = {}
        # address -> (bytes per iteration, length of the instruction), or None
        self.rep = {}
        self.steps = 0

    def _node(self, packet, is_list):
        card = self.stub.word((self.stub.word(packet) if is_list else packet) + self.DEV)
        if card not in self.node_of:
            self.node_of[card] = self.known if self.known < self.nodes else 0
            self.known += self.known < self.nodes
        return self.node_of[card]

    def _add(self, side, name, n):
        self.count[side, name] = self.count.get((side, name), 0) + n

    def _settle(self, side):
        for name, n in self.pending.items():
            self._add(side, name, n)
        self.pending.clear()

    def _enter(self, registers):
        self.inner.append((registers[7], self.side))
        self.side = self._node(registers[5], self.receive[registers[16]])
        self._settle(self.side)

    def _leave(self, stack):
        """The packet has been processed when the stack frame that received it is gone."""
        while self.inner and 0 < stack - self.inner[-1][0] < 1 << 14:
            self.side = self.inner.pop()[1]

    def _copy(self, name, size, piece):
        cell = self.copied.setdefault((self.side, name), [0, 0, 0, 0])
        large = size >= piece
        for i, n in enumerate((1, size, large, size * large)):
            cell[i] += n

    def _rep(self, rip):
        """Check whether an instruction is a rep movs."""
        if rip not in self.rep:
            code = self.stub.read(rip, 3)
            found = [(self.REP[code[:n]], n) for n in (3, 2) if code[:n] in self.REP]
            self.rep[rip] = found[0] if found else None
        return self.rep[rip]

    def instruction(self, registers, piece):
        """Record the next instruction, and execute it. piece: minimum size in bytes of a copy that
        counts as payload.
        """
        rip, n = registers[16], 1
        self._leave(registers[7])
        if rip in self.send:
            self.node_of.setdefault(registers[4], self.side)
        if rip in self.receive:
            self._enter(registers)
        name = self.resolve(rip)
        if rip in self.copiers:
            self._copy(name, registers[self.copiers[rip]], piece)
        rep = self._rep(rip)
        if rep and rip != self.last:
            self._copy(name, rep[0] * registers[2], piece)
        self.last = rip
        if rep and registers[2] > self.ROUNDS:
            n = registers[2]
            self.stub.run_to(rip + rep[1], 60)
        else:
            self.stub.step()
        self.steps += n
        if name in self.before and not self.inner:
            self.pending[name] = self.pending.get(name, 0) + n
        else:
            self._add(self.side, name, n)

    def follow(self, until, times, piece, most):
        """Step until the machine has returned to its current address that many times. Return how
        often it did.
        """
        hits = 0
        self.last = 0
        while self.steps < most:
            registers = self.stub.registers()
            if registers[16] == until and self.steps:
                hits += 1
                if hits == times:
                    break
            self.instruction(registers, piece)
        self._settle(0)
        return hits
