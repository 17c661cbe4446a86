# SPDX-License-Identifier: MIT
"""Global memory access: copies, atomics, completion. See acp_copy(3).

Issuing an access returns a handle, an int; the access is complete some time later. Until then, do
not change its source or read its destination. Issuing does not wait unless 48 accesses are
outstanding; it then waits for the oldest one. The argument order selects when the access may start:
NULL at once (the default), a handle after that access and all before it, ALL after all previous
accesses, CONT after the previous one in the same direction, without waiting for an answer. If an
access fails, all that wait for it also fail; complete() reports this.

dst and src are global addresses (int) of any ranks. Atomics change the word of 4 or 8 bytes at
src and store its former value at dst; both must be aligned. Any thread may call any function.
"""
from __future__ import annotations

import collections
import ctypes
import errno
import os
import struct
import threading
from typing import Callable, Iterable, List, Optional, Tuple

from .binding import Error, Iov, is_child, lib, no_rank, number, rank_or_raise, signed

NULL = 0                    # order: at once
ALL = -1                    # order: after all previous accesses
CONT = -2                   # order: after the previous access in the same direction
# What reduce() does, and with which numbers.
SUM, PROD, MIN, MAX, AND, OR, XOR, REPLACE = range(8)
INT32, INT64, UINT32, UINT64, FLOAT, DOUBLE = range(6)
PENDING, UNKNOWN = 101, 100  # ACPX_EPENDING, ACPX_EUNKNOWN
MOST = 48                   # accesses with unread status: less than the smallest ACP_QUEUE_DEPTH


ARGUMENTS = {
    "copy": ("dst", "src", "size"), "copy_strided": ("dst", "src", "block", "count", "dst_stride", "src_stride"),
    "copy_indirect": ("pointer", "src", "size", "advance"), "send": ("mailbox", "src", "size", "tag"),
    "copy_notify": ("dst", "src", "size", "mailbox", "tag"), "copy_scatter": ("chain", "src", "size"),
    "copy_gather": ("dst", "chain", "size"), "wait_word": ("word", "value"), "wait_word_of": ("word", "value"),
    "reduce": ("dst", "src", "count", "operation", "of"), "counter_add": ("counter", "value"),
    "copy_signal": ("dst", "src", "size", "flag", "operand", "add"), "cas4": ("dst", "src", "oldval", "newval"),
    "cas8": ("dst", "src", "oldval", "newval"),
}
GLOBAL_ADDRESSES = ("dst", "src", "flag", "pointer", "mailbox", "chain", "word", "counter")


def _argument(name: str, value: int) -> str:
    if name not in GLOBAL_ADDRESSES:
        return f"{name}={value}"
    rank = lib.acp_query_rank(value)
    return f"{name}={value:#x} of {f'rank {rank}' if rank >= 0 else 'no rank'}"


def _describe(function: str, arguments: tuple) -> str:
    """Return the operation and the addresses of an access."""
    operation = function.split("_", 1)[1]
    if operation == "copyv":
        return f"copyv of {arguments[1]} pieces"
    names = ARGUMENTS.get(operation, ("dst", "src", "value"))
    return f"{operation}({', '.join(_argument(*pair) for pair in zip(names, arguments))})"


class AccessError(Exception):
    """Accesses failed.

    status and the text are those of the first one, handle is its handle, operation its operation
    and addresses. failures has all (handle, status) that are known."""

    def __init__(self, failures: List[Tuple[int, int]], operation: str = "access") -> None:
        self.failures = failures
        self.handle, self.status = failures[0]
        self.operation = operation
        more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
        super().__init__(f"access {self.handle}, {operation}: {strerror(self.status)}{more}")


def access_error(failures: list) -> AccessError:
    """Return the exception for failures with their operations."""
    return AccessError([(handle, status) for handle, status, _ in failures], failures[0][2])


class Outstanding:
    """The accesses of a queue whose status has not been read yet, oldest first, and the known
    failures."""

    def __init__(self):
        self.lock = threading.Lock()
        self.handles = collections.deque()
        self.failures = []
        self.job = jobs         # job that the queue belongs to
        self.ended = False

    @property
    def over(self) -> bool:
        """Has the queue been destroyed?"""
        return self.ended or self.job != jobs

    def clear(self) -> None:
        with self.lock:
            self.handles.clear()
            self.failures.clear()

    def issue(self, function, *arguments, alone: bool = False) -> int:
        """Call a function that returns a handle, and record it. alone: it takes the place of very
        many accesses."""
        with self.lock:
            while self.handles and (alone or (self.handles[-1][0] - self.handles[0][0]) // 2 >= MOST - 1):
                self.look(wait=True)
            handle = function(*arguments)
            if handle == NULL:
                raise no_rank() if lib.acp_rank() < 0 else Error("the job was aborted, or what the access waits for failed")
            if not handle & 1:              # otherwise it is already complete
                self.handles.append((handle, function.__name__, arguments))
                queues[handle >> QUEUE_SHIFT] = self
            return handle

    def look(self, wait: bool = False, upto: Optional[int] = None) -> None:
        """With the lock held: read the status of complete accesses. wait: wait for at least one."""
        if wait:
            lib.acp_complete(self.handles[0][0])
        while self.handles and (upto is None or self.handles[0][0] <= upto):
            status = lib.acpx_status(self.handles[0][0])
            if status == PENDING:
                break
            handle, function, arguments = self.handles.popleft()
            if status:
                self.failures.append((handle, status, _describe(function, arguments)))

    def finish(self) -> list:
        """Wait for all accesses; return the failures that have not been reported."""
        with self.lock:
            while self.handles:
                self.look(wait=True)
            return list(self.failures)

    def end(self) -> None:
        """The queue was destroyed: threads that use it return to the queue of the process."""
        self.ended = True
        for name in [n for n, o in list(queues.items()) if o is self]:
            del queues[name]

    def settle(self, handle: int) -> None:
        """After waiting for a handle: raise an exception if it or an earlier access has failed."""
        with self.lock:
            self.look(upto=None if handle == ALL else handle)
            mine = [f for f in self.failures if handle == ALL or f[0] <= handle]
            self.failures = [f for f in self.failures if f not in mine]
        if mine:
            raise access_error(mine)


jobs = 0                            # number of times that a job was joined or left
outstanding = Outstanding()         # of the queue of the process, number 0
queues = {0: outstanding}           # queues that have issued accesses, by the number in their handles
QUEUE_SHIFT = 49
_thread = threading.local()


def _here() -> Outstanding:
    """Return the accesses of the queue that this thread uses."""
    own = getattr(_thread, "own", None)
    return own if own and not own.over else outstanding


def _of(handle: int) -> Optional[Outstanding]:
    """Return the accesses of a handle's queue; None if it was destroyed or has issued nothing."""
    return _here() if handle in (ALL, CONT) else queues.get(handle >> QUEUE_SHIFT)


def finish_all() -> list:
    """Wait for the accesses of all queues; return the failures that have not been reported."""
    return [f for queue in list(queues.values()) for f in queue.finish()]


def forget_all() -> None:
    """A job was left or joined: all contexts are gone, even if they have not issued anything."""
    global jobs
    jobs += 1
    for number_ in list(queues):
        if queues[number_] is not outstanding:
            del queues[number_]
    outstanding.clear()


class Context:
    """A queue of accesses for one thread at a time, so that threads do not contend for one queue.

    All accesses of the bound thread use it, and ALL, CONT, and complete() without a handle refer to
    it. Handles are valid in any thread. depth: the most accesses that may be outstanding, a power
    of two, 64 to 65536; 0: ACP_QUEUE_DEPTH. A with statement binds the context to this thread at
    its start and destroys it at its end. A context that is not destroyed ends with the job.

    See acpx_context_create(3). Functions raise Error: ENOSPC (256 contexts), EDQUOT (a limit set
    by the administrator), EBUSY (another thread is bound to it), EINVAL (invalid depth; it was
    destroyed)."""

    def __init__(self, depth: int = 0) -> None:
        rank_or_raise()
        self._context = ctypes.c_void_p()
        self._check("Context", lib.acpx_context_create(number(depth, 32, "depth"), ctypes.byref(self._context)))
        self._outstanding = Outstanding()

    @staticmethod
    def _check(what: str, result: int) -> None:
        if result < 0:
            raise Error(-result, f"{what}: {os.strerror(-result)}")

    def bind(self) -> None:
        """Bind this thread to the context instead of the present one, until the thread ends."""
        self._check("bind", lib.acpx_context_bind(self._context) if not self._outstanding.over else -errno.EINVAL)
        _thread.own = self._outstanding

    @staticmethod
    def unbind() -> None:
        """Return this thread to the queue of the process."""
        Context._check("unbind", lib.acpx_context_bind(None))
        _thread.own = None

    def destroy(self) -> None:
        """Wait for the accesses of the context and destroy it; a second call does nothing.

        Raises AccessError, after that, if accesses failed that no complete() has reported."""
        if self._outstanding.over:
            return
        lost = self._outstanding.finish()
        self._check("destroy", lib.acpx_context_destroy(self._context))
        self._context = ctypes.c_void_p()
        self._outstanding.end()
        if lost:
            raise access_error(lost)

    def __enter__(self) -> Context:
        self.bind()
        return self

    def __exit__(self, kind: object, *exception: object) -> None:
        if is_child():
            return
        try:
            self.destroy()
        except AccessError:
            if kind is None:
                raise


def _order(order: int, what: str = "order") -> int:
    return order if isinstance(order, int) and order in (ALL, CONT) else number(order, 63, what)


def copy(dst: int, src: int, size: int, order: int = NULL) -> int:
    """Copy size bytes (0 to 2^62) from src to dst. Returns a handle."""
    return _here().issue(lib.acp_copy, number(dst, 64, "dst"), number(src, 64, "src"), number(size, 63, "size"),
                             _order(order))


def copy_strided(dst: int, src: int, block: int, count: int, dst_stride: int, src_stride: int,
                 order: int = NULL) -> int:
    """Copy count blocks of block bytes, the i-th from src + i * src_stride to dst + i *
    dst_stride. Returns a handle."""
    return _here().issue(lib.acpx_copy_strided, number(dst, 64, "dst"), number(src, 64, "src"),
                             number(block, 63, "block"), number(count, 63, "count"),
                             signed(dst_stride, "dst_stride", 64), signed(src_stride, "src_stride", 64), _order(order))


def copyv(pieces: Iterable[Tuple[int, int, int]], order: int = NULL) -> int:
    """Copy at most 1024 pieces (dst, src, size) as one access. Waits for all accesses before it.
    Returns a handle."""
    vector = [(number(dst, 64, "dst"), number(src, 64, "src"), number(size, 63, "size")) for dst, src, size in pieces]
    return _here().issue(lib.acpx_copyv, (Iov * len(vector))(*vector), len(vector), _order(order), alone=True)


def copy_signal(dst: int, src: int, size: int, flag: int, operand: int, add: bool = False, order: int = NULL,
                revoke: bool = False) -> int:
    """Copy size bytes from src to dst, then set the 8 bytes at flag to operand, or add operand
    to them. With add and revoke, revoke the flag instead if the order has failed: accesses that
    wait for it (wait_word with ranks) fail, too. Returns a handle."""
    return _here().issue(lib.acpx_copy_signal, number(dst, 64, "dst"), number(src, 64, "src"),
                             number(size, 63, "size"), number(flag, 64, "flag"), number(operand, 64, "operand"),
                             int(bool(add)) + 2 * int(bool(revoke)), _order(order))


def copy_indirect(pointer: int, src: int, size: int, advance: bool = False, order: int = NULL,
                  retry: bool = False) -> int:
    """Copy size bytes from src to the global address in the 8 bytes at pointer, of the same rank.
    With advance, append them to a buffer: pointer is the address of two such addresses, next and
    end; the status is AGAIN if they do not fit, with retry only after the time-out. Returns a
    handle."""
    return _here().issue(lib.acpx_copy_indirect, number(pointer, 64, "pointer"), number(src, 64, "src"),
                             number(size, 63, "size"), int(bool(advance)) + 2 * int(bool(retry)), _order(order))


def wait_word(word: int, value: int, order: int = NULL, ranks: Optional[Iterable[int]] = None) -> int:
    """Return a handle that is complete when the 8 bytes at word, in memory of this rank, have
    reached value, as a counter that only grows. Accesses behind it start then, also while the
    process sleeps. With ranks (at most 6, which write to the word), it fails if one of them is
    lost. See acpx_wait_word(3)."""
    if ranks is not None:
        names = [number(rank, 31, "ranks") for rank in ranks]
        return _here().issue(lib.acpx_wait_word_of, number(word, 64, "word"), number(value, 64, "value"),
                             (ctypes.c_int * len(names))(*names), len(names), _order(order))
    return _here().issue(lib.acpx_wait_word, number(word, 64, "word"), number(value, 64, "value"), _order(order))


def counter_add(counter: int, value: int = 1, order: int = NULL) -> int:
    """Add value to the counter at a global address, see Counter. Returns a handle."""
    return _here().issue(lib.acpx_counter_add, number(counter, 64, "counter"), number(value, 64, "value"), _order(order))


def reduce(dst: int, src: int, count: int, operation: int = SUM, of: int = DOUBLE, order: int = NULL) -> int:
    """Combine count numbers at dst with those at src, in memory of ranks on this node: SUM, PROD,
    MIN, MAX, AND, OR, XOR or REPLACE of INT32, INT64, UINT32, UINT64, FLOAT or DOUBLE. Returns a
    handle. See acpx_reduce(3)."""
    return _here().issue(lib.acpx_reduce, number(dst, 64, "dst"), number(src, 64, "src"), number(count, 60, "count"),
                         number(operation, 8, "operation"), number(of, 8, "of"), _order(order))


def accumulate(dst: int, src: int, count: int, operation: int = SUM, of: int = DOUBLE, order: int = NULL) -> int:
    """The same in memory of any ranks, each number atomically. See acpx_accumulate(3)."""
    return _here().issue(lib.acpx_accumulate, number(dst, 64, "dst"), number(src, 64, "src"), number(count, 60, "count"),
                         number(operation, 8, "operation"), number(of, 8, "of"), _order(order))


def accumulate_signal(dst: int, src: int, count: int, flag: int, operand: int, operation: int = SUM, of: int = DOUBLE,
                      add: bool = False, order: int = NULL, revoke: bool = False) -> int:
    """The same, then the 8 bytes at flag change as with copy_signal()."""
    return _here().issue(lib.acpx_accumulate_signal, number(dst, 64, "dst"), number(src, 64, "src"),
                         number(count, 60, "count"), number(operation, 8, "operation"), number(of, 8, "of"),
                         number(flag, 64, "flag"), number(operand, 64, "operand"),
                         int(bool(add)) + 2 * int(bool(revoke)), _order(order))


def copy_scatter(chain: int, src: int, size: int, order: int = NULL) -> int:
    """Copy size bytes from src along the chain of descriptors that begins at chain, see
    descriptor(). Returns a handle."""
    return _here().issue(lib.acpx_copy_scatter, number(chain, 64, "chain"), number(src, 64, "src"),
                         number(size, 63, "size"), _order(order))


def copy_gather(dst: int, chain: int, size: int, order: int = NULL) -> int:
    """Copy size bytes to dst from the blocks of the chain of descriptors that begins at chain, see
    descriptor(). Returns a handle."""
    return _here().issue(lib.acpx_copy_gather, number(dst, 64, "dst"), number(chain, 64, "chain"),
                         number(size, 63, "size"), _order(order))


def descriptor(address: int, size: int, count: int = 1, stride: int = 0, following: int = NULL,
               scatter: bool = True, gather: bool = True) -> bytes:
    """Return a descriptor of a chain: count blocks of size bytes, the i-th at address + i * stride.
    following is the global address of the next descriptor, or NULL; scatter and gather permit
    copies to and from the blocks. Write it to memory of the rank whose blocks they are, at a
    multiple of 8."""
    return struct.pack("=QqIIQII", number(address, 64, "address"), signed(stride, "stride", 64),
                       number(size, 32, "size"), number(count, 32, "count"), number(following, 64, "following"),
                       int(bool(scatter)) + 2 * int(bool(gather)), 0)


def send(mailbox: int, src: int, size: int, tag: int = 0, order: int = NULL, retry: bool = False,
         rendezvous: bool = False) -> int:
    """Send size bytes from src as a message into the mailbox at a global address, with a number of
    64 bits. The status is AGAIN if there is no room, with retry only after the time-out. With
    rendezvous, the bytes are sent to a MatchList when a receive has matched. Returns a handle,
    which is complete when the message is in the mailbox, or in the buffer. See Mailbox."""
    return _here().issue(lib.acpx_send, number(mailbox, 64, "mailbox"), number(src, 64, "src"),
                             number(size, 63, "size"), number(tag, 64, "tag"),
                             2 * int(bool(retry)) + 4 * int(bool(rendezvous)), _order(order))


def copy_notify(dst: int, src: int, size: int, mailbox: int, tag: int = 0, order: int = NULL,
                retry: bool = False) -> int:
    """Copy size bytes from src to dst, and then send an empty message with the tag into the mailbox:
    its receiver finds the bytes in their place. See send. Returns a handle."""
    return _here().issue(lib.acpx_copy_notify, number(dst, 64, "dst"), number(src, 64, "src"),
                         number(size, 63, "size"), number(mailbox, 64, "mailbox"), number(tag, 64, "tag"),
                         2 * int(bool(retry)), _order(order))


def _atomic(name: str, bits: int, what: str) -> Callable[..., int]:
    function = getattr(lib, f"acp_{name}")

    def atomic(dst: int, src: int, value: int, order: int = NULL) -> int:
        return _here().issue(function, number(dst, 64, "dst"), number(src, 64, "src"),
                                 number(value, bits, "value"), _order(order))
    atomic.__name__ = atomic.__qualname__ = name
    atomic.__doc__ = (f"Atomic {what} on the {bits // 8} bytes at src; stores the former value at dst. "
                      "Returns a handle.")
    return atomic


def _compare(name: str, bits: int) -> Callable[..., int]:
    function = getattr(lib, f"acp_{name}")

    def atomic(dst: int, src: int, oldval: int, newval: int, order: int = NULL) -> int:
        return _here().issue(function, number(dst, 64, "dst"), number(src, 64, "src"),
                                 number(oldval, bits, "oldval"), number(newval, bits, "newval"), _order(order))
    atomic.__name__ = atomic.__qualname__ = name
    atomic.__doc__ = (f"Set the {bits // 8} bytes at src to newval if they are oldval; "
                      "store the former value at dst. Returns a handle.")
    return atomic


cas4, cas8 = _compare("cas4", 32), _compare("cas8", 64)
swap4, swap8 = _atomic("swap4", 32, "exchange"), _atomic("swap8", 64, "exchange")
add4, add8 = _atomic("add4", 32, "addition modulo 2^32"), _atomic("add8", 64, "addition modulo 2^64")
xor4, xor8 = _atomic("xor4", 32, "exclusive or"), _atomic("xor8", 64, "exclusive or")
or4, or8 = _atomic("or4", 32, "or"), _atomic("or8", 64, "or")
and4, and8 = _atomic("and4", 32, "and"), _atomic("and8", 64, "and")


def complete(handle: int = ALL) -> None:
    """Wait until an access and all accesses before it are complete.

    Raises AccessError for failures that no call has reported yet. Accesses to a node
    that does not answer fail after ACP_TIMEOUT milliseconds."""
    rank_or_raise()
    handle = _order(handle, "handle")
    lib.acp_complete(handle)
    queue = _of(handle)
    if queue:
        queue.settle(ALL if handle == CONT else handle)


def inquire(handle: int = ALL) -> bool:
    """Return whether an access and all accesses before it are complete. Does not wait and does
    not raise exceptions for failed accesses."""
    rank_or_raise()
    return lib.acp_inquire(_order(handle, "handle")) == 0


def status(handle: int) -> int:
    """Return the status of an access: 0, or a number that strerror() explains; 101: not complete
    yet."""
    rank_or_raise()
    return lib.acpx_status(number(handle, 63, "handle"))


def strerror(number_: int) -> str:
    """Return the meaning of a status, in English."""
    return lib.acpx_strerror(signed(number_, "status")).decode()
