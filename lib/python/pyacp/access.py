# SPDX-License-Identifier: MIT
"""Global memory access: copies, atomics, completion. See acp_copy(3).

An access is issued and returns a handle, an int; it is complete some time later. Until then its source must not be
changed and its destination not be read. Issuing waits only while 48 accesses are outstanding, for the oldest one.
The argument order says when the access may start: NULL at once (the default), a handle after that access and all before
it, ALL after all before it, CONT after the one before it in the same direction, without waiting for an answer.
If an access fails, those that wait for it fail, too; that is said by complete().

dst and src are global addresses (int) of any ranks. Atomics change the word of 4 or 8 bytes at src and store its former
value at dst; both must be aligned. Threads: all functions may be called by any of them.
"""
import collections
import ctypes
import errno
import os
import threading

from .binding import Error, Iov, lib, number, signed

NULL = 0                    # as an order: at once
ALL = -1                    # all accesses before
CONT = -2                   # in the same direction, without overtaking
PENDING, UNKNOWN = 101, 100  # ACPX_EPENDING, ACPX_EUNKNOWN
MOST = 48                   # issued and not looked at: less than the least ACP_QUEUE_DEPTH, that statuses are kept for


class AccessError(Exception):
    """Accesses failed: status and text of the first one, its handle; failures: all (handle, status) that are known."""

    def __init__(self, failures):
        self.failures = failures
        self.handle, self.status = failures[0]
        more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
        super().__init__(f"access {self.handle}: {strerror(self.status)}{more}")


class Outstanding:
    """Of a queue: handles whose status was not asked for yet, oldest first; and what failed among those that were."""

    def __init__(self):
        self.lock = threading.Lock()
        self.handles = collections.deque()
        self.failures = []
        self.job = jobs         # which it is of
        self.ended = False

    @property
    def over(self):
        """Is the queue gone?"""
        return self.ended or self.job != jobs

    def clear(self):
        with self.lock:
            self.handles.clear()
            self.failures.clear()

    def issue(self, function, *arguments, alone=False):
        """Call a function that returns a handle, and remember it. alone: it takes the place of very many."""
        with self.lock:
            while self.handles and (alone or (self.handles[-1] - self.handles[0]) // 2 >= MOST - 1):
                self.look(wait=True)
            handle = function(*arguments)
            if handle == NULL:
                raise Error("the process is not a rank (any more)")
            if not handle & 1:              # else the caller has done it already
                self.handles.append(handle)
                queues[handle >> QUEUE_SHIFT] = self
            return handle

    def look(self, wait=False, upto=None):
        """With the lock: ask for the status of those that are complete. wait: of one at least."""
        if wait:
            lib.acp_complete(self.handles[0])
        while self.handles and (upto is None or self.handles[0] <= upto):
            status = lib.acpx_status(self.handles[0])
            if status == PENDING:
                break
            handle = self.handles.popleft()
            if status:
                self.failures.append((handle, status))

    def finish(self):
        """Wait for all: what failed and was not told."""
        with self.lock:
            while self.handles:
                self.look(wait=True)
            return list(self.failures)

    def end(self):
        """The queue is gone: whoever uses it is back at that of the process."""
        self.ended = True
        for name in [n for n, o in list(queues.items()) if o is self]:
            del queues[name]

    def settle(self, handle):
        """After waiting for a handle: raise if it or one before it has failed."""
        with self.lock:
            self.look(upto=None if handle == ALL else handle)
            mine = [f for f in self.failures if handle == ALL or f[0] <= handle]
            self.failures = [f for f in self.failures if f not in mine]
        if mine:
            raise AccessError(mine)


jobs = 0                            # that were begun or left
outstanding = Outstanding()         # of the process's queue, which is number 0
queues = {0: outstanding}           # those that have issued anything, by the number that is in their handles
QUEUE_SHIFT = 49
_thread = threading.local()


def _here():
    """Of the queue that this thread uses."""
    own = getattr(_thread, "own", None)
    return own if own and not own.over else outstanding


def _of(handle):
    """Of the queue that a handle is of, or None: it is gone, or has issued nothing."""
    return _here() if handle in (ALL, CONT) else queues.get(handle >> QUEUE_SHIFT)


def finish_all():
    """Wait for the accesses of all queues: what failed and was not told."""
    return [f for queue in list(queues.values()) for f in queue.finish()]


def forget_all():
    """The job was left, or begins: all contexts are gone, whether they had issued anything or not."""
    global jobs
    jobs += 1
    for number_ in list(queues):
        if queues[number_] is not outstanding:
            del queues[number_]
    outstanding.clear()


class Context:
    """A queue of accesses for one thread at a time, so that threads do not take turns to issue and to complete.

    What the bound thread issues goes by it: ALL, CONT, and complete() without a handle are of the context then. Handles
    are good in any thread. depth: how many accesses may be outstanding, a power of two, 64 to 65536; 0:
    ACP_QUEUE_DEPTH. In a with statement it is bound to this thread at the begin, and destroyed at the end; one that is not
    destroyed ends with the job. See
    acpx_context_create(3); functions raise Error: ENOSPC (256 contexts), EDQUOT (a limit of the administrator), EBUSY
    (another thread is bound to it), EINVAL (no such depth; it is gone)."""

    def __init__(self, depth=0):
        self._context = ctypes.c_void_p()
        self._check("Context", lib.acpx_context_create(number(depth, 32, "depth"), ctypes.byref(self._context)))
        self._outstanding = Outstanding()

    @staticmethod
    def _check(what, result):
        if result < 0:
            raise Error(-result, f"{what}: {os.strerror(-result)}")

    def bind(self):
        """Bind this thread to it, in place of the one it was bound to. It is free again when the thread ends."""
        self._check("bind", lib.acpx_context_bind(self._context) if not self._outstanding.over else -errno.EINVAL)
        _thread.own = self._outstanding

    @staticmethod
    def unbind():
        """This thread goes back to the queue of the process."""
        Context._check("unbind", lib.acpx_context_bind(None))
        _thread.own = None

    def destroy(self):
        """Wait for its accesses, and end it. Raises AccessError, at its end, if some have failed that no complete() told
        of. A second time does nothing."""
        if self._outstanding.over:
            return
        lost = self._outstanding.finish()
        self._check("destroy", lib.acpx_context_destroy(self._context))
        self._context = ctypes.c_void_p()
        self._outstanding.end()
        if lost:
            raise AccessError(lost)

    def __enter__(self):
        self.bind()
        return self

    def __exit__(self, kind, *exception):
        try:
            self.destroy()
        except AccessError:
            if kind is None:
                raise


def _order(order):
    return order if order in (ALL, CONT) else number(order, 63, "order")


def copy(dst, src, size, order=NULL):
    """Copy size bytes (0 to 2^62) from src to dst. Returns a handle."""
    return _here().issue(lib.acp_copy, number(dst, 64, "dst"), number(src, 64, "src"), number(size, 63, "size"),
                             _order(order))


def copy_strided(dst, src, block, count, dst_stride, src_stride, order=NULL):
    """Copy count blocks of block bytes: the i-th from src + i * src_stride to dst + i * dst_stride. Returns a handle."""
    return _here().issue(lib.acpx_copy_strided, number(dst, 64, "dst"), number(src, 64, "src"),
                             number(block, 63, "block"), number(count, 63, "count"),
                             signed(dst_stride, "dst_stride", 64), signed(src_stride, "src_stride", 64), _order(order))


def copyv(pieces, order=NULL):
    """Copy pieces, each of them (dst, src, size), at most 1024, as one access. Returns a handle. Waits for all before."""
    vector = [(number(dst, 64, "dst"), number(src, 64, "src"), number(size, 63, "size")) for dst, src, size in pieces]
    return _here().issue(lib.acpx_copyv, (Iov * len(vector))(*vector), len(vector), _order(order), alone=True)


def copy_signal(dst, src, size, flag, operand, add=False, order=NULL):
    """Copy size bytes from src to dst; when they are there, set the 8 bytes at flag to operand, or add it to them."""
    return _here().issue(lib.acpx_copy_signal, number(dst, 64, "dst"), number(src, 64, "src"),
                             number(size, 63, "size"), number(flag, 64, "flag"), number(operand, 64, "operand"),
                             int(bool(add)), _order(order))


def _atomic(name, bits, what):
    function = getattr(lib, f"acp_{name}")

    def atomic(dst, src, value, order=NULL):
        return _here().issue(function, number(dst, 64, "dst"), number(src, 64, "src"),
                                 number(value, bits, "value"), _order(order))
    atomic.__name__ = atomic.__qualname__ = name
    atomic.__doc__ = f"{what} of the {bits // 8} bytes at src, former value to dst. Returns a handle."
    return atomic


def _compare(name, bits):
    function = getattr(lib, f"acp_{name}")

    def atomic(dst, src, oldval, newval, order=NULL):
        return _here().issue(function, number(dst, 64, "dst"), number(src, 64, "src"),
                                 number(oldval, bits, "oldval"), number(newval, bits, "newval"), _order(order))
    atomic.__name__ = atomic.__qualname__ = name
    atomic.__doc__ = (f"Set the {bits // 8} bytes at src to newval if they are oldval; former value to dst. "
                      "Returns a handle.")
    return atomic


cas4, cas8 = _compare("cas4", 32), _compare("cas8", 64)
swap4, swap8 = _atomic("swap4", 32, "Replacement"), _atomic("swap8", 64, "Replacement")
add4, add8 = _atomic("add4", 32, "Addition modulo 2^32"), _atomic("add8", 64, "Addition modulo 2^64")
xor4, xor8 = _atomic("xor4", 32, "Exclusive or"), _atomic("xor8", 64, "Exclusive or")
or4, or8 = _atomic("or4", 32, "Or"), _atomic("or8", 64, "Or")
and4, and8 = _atomic("and4", 32, "And"), _atomic("and8", 64, "And")


def complete(handle=ALL):
    """Wait until that access and all before it are complete. Raises AccessError if any of them failed that no call has
    raised it for. A node that does not answer is waited for ACP_TIMEOUT milliseconds."""
    handle = handle if handle in (ALL, CONT) else number(handle, 63, "handle")
    lib.acp_complete(handle)
    queue = _of(handle)
    if queue:
        queue.settle(ALL if handle == CONT else handle)


def inquire(handle=ALL):
    """Whether that access and all before it are complete; does not wait, and does not raise what failed."""
    return lib.acp_inquire(handle if handle in (ALL, CONT) else number(handle, 63, "handle")) == 0


def status(handle):
    """How an access ended: 0, or a number that strerror() explains; 101: not complete yet."""
    return lib.acpx_status(number(handle, 63, "handle"))


def strerror(number_):
    """What a status means, in English."""
    return lib.acpx_strerror(number_).decode()
