# SPDX-License-Identifier: MIT
"""Global memory management: memory of this process for all ranks, and views of it.

See acp_register_memory(3). No function waits for other ranks. Any thread may call any function.
"""
from __future__ import annotations

import ctypes
import errno
import mmap
import threading
import weakref

from .binding import check, failed, integer, is_child, lib, no_rank, number, rank_or_raise, signed

READ, WRITE, ATOMIC, READ_ONLY, DONT_FORK = 1, 2, 4, 8, 16      # ACPX_ACCESS_*
SIMPLE, WRITABLE = 0, 1                         # PyBUF_*: contiguous bytes

MAP_NORESERVE, MAP_FIXED_NOREPLACE = 0x4000, 0x100000
MAP_FAILED = ctypes.c_void_p(-1).value

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


class PyBuffer(ctypes.Structure):
    """Py_buffer of the stable ABI: memory of an object, which does not move until the buffer is
    released."""
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
                ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p)]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(PyBuffer), ctypes.c_int]
_get_buffer.restype = ctypes.c_int
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = [ctypes.POINTER(PyBuffer)]
_release_buffer.restype = None

_lock = threading.RLock()
_registrations = set()      # keeps them alive until they are unregistered
_views = []                 # (weak reference to the memory of a view, address, size)


class Registration:
    """Memory that all ranks can reach.

    ga is the global address of its first byte, nbytes its size, buffer the object that owns it.
    The memory can be neither freed nor resized (a bytearray raises BufferError) before
    unregister() or finalize(), even if nothing else refers to the object. A with statement
    unregisters it at its end."""

    def __init__(self, buffer, color: int, access: int) -> None:
        rank_or_raise()
        color = signed(color, "color")
        self.buffer = buffer
        self._held = PyBuffer()
        _get_buffer(buffer, self._held, SIMPLE if access & READ_ONLY else WRITABLE)
        self.nbytes = self._held.len
        self.key = lib.acpx_register_memory(self._held.buf, self.nbytes, color, access)
        if not self.key:
            error = failed("register")
            _release_buffer(self._held)
            raise error
        self.ga = lib.acp_query_ga(self.key, self._held.buf)
        with _lock:
            _registrations.add(self)

    def ga_at(self, offset: int) -> int:
        """Return the global address of byte offset, 0 to nbytes - 1; nbytes is the end."""
        offset = integer(offset, "offset")
        if not 0 <= offset <= self.nbytes:
            raise IndexError(f"{offset} is not from 0 to {self.nbytes}")
        return self.ga + offset

    def unregister(self) -> None:
        """Unregister the memory; a second call does nothing.

        After this returns, accesses of other ranks cannot change the memory any more; later ones
        fail."""
        with _lock:
            if self not in _registrations:
                return
            check("unregister", lib.acp_unregister_memory(self.key))
            self._drop()

    def _drop(self) -> None:
        _registrations.discard(self)
        _release_buffer(self._held)
        self.buffer, self.key, self.ga = None, 0, 0

    def __enter__(self) -> Registration:
        return self

    def __exit__(self, *exception: object) -> None:
        if not is_child():
            self.unregister()


def register(buffer, color: int = 0, access: int = READ | WRITE | ATOMIC) -> Registration:
    """Make the memory of an object reachable for all ranks, without copying it. Returns a
    Registration.

    buffer: an object with a buffer (bytearray, array.array, mmap, memoryview, NumPy array). color:
    0 to colors() - 1. access: what other ranks may do, a sum of READ, WRITE and ATOMIC; or
    READ_ONLY + READ for memory that cannot be written, such as bytes. With DONT_FORK in addition,
    children do not get its whole pages; os.fork() would copy them at once.

    The memory must be contiguous (otherwise BufferError, or ValueError from NumPy). It is
    pinned, which counts against RLIMIT_MEMLOCK. Raises Error: EINVAL (no bytes, no such color),
    EFAULT (cannot be pinned), ENOMEM, EDQUOT (a limit set by the administrator), ENOSPC (too
    many), EOVERFLOW (too long)."""
    return Registration(buffer, color, number(access, 4, "access"))


def _view(address: int, size: int) -> memoryview:
    memory = (ctypes.c_char * size).from_address(address)
    with _lock:
        _views[:] = [v for v in _views if v[0]() is not None]
        _views.append((weakref.ref(memory), address, size))
    return memoryview(memory).cast("B")


def starter() -> memoryview:
    """Return the starter memory of this rank, a writable memoryview of bytes.

    It is zero when the job starts. Other ranks can write to it at any time. After finalize() and
    reset(), former views show private memory of this process, which is zero."""
    address = lib.acp_query_address(starter_ga(rank_or_raise()))
    return _view(address, starter_size())


def view(ga: int, size: int) -> memoryview:
    """Return a writable memoryview of size bytes at a global address.

    They must be memory of this rank, or starter memory or heap of a rank on the same node;
    otherwise raises LookupError. A view of registered memory of this rank is valid as long as
    its object."""
    rank_or_raise()
    ga, size = number(ga, 64, "ga"), integer(size, "size")
    first = lib.acp_query_address(ga)
    last = lib.acp_query_address(ga + size - 1) if size > 0 else None
    if not first or last != first + size - 1:
        raise LookupError(f"{size} bytes at {ga:#x} are not within memory that this process can reach")
    return _view(first, size)


def _address(ga: int, what: str, rank: int) -> int:
    if not ga:
        raise ValueError(f"{what}: there is no rank {rank}") if lib.acp_rank() >= 0 else no_rank()
    return ga


def starter_ga(rank: int) -> int:
    """Return the global address of the first byte of a rank's starter memory."""
    return _address(lib.acp_query_starter_ga(signed(rank, "rank")), "starter_ga", rank)


def heap_ga(rank: int) -> int:
    """Return the global address of the first byte of a rank's heap, which acp_malloc(3) manages."""
    return _address(lib.acpx_query_heap_ga(signed(rank, "rank")), "heap_ga", rank)


def starter_size() -> int:
    """Return the bytes of this rank's starter memory (ACP_STARTER_SIZE)."""
    rank_or_raise()
    return lib.acpx_starter_size()


def heap_size() -> int:
    """Return the bytes of this rank's heap (ACP_HEAP_SIZE)."""
    rank_or_raise()
    return lib.acpx_heap_size()


def colors() -> int:
    """Return the number of colors, 1 to 4."""
    rank_or_raise()
    return lib.acp_colors()


def query_rank(ga: int) -> int:
    """Return the rank that a global address refers to, or -1. Only the number is examined."""
    return lib.acp_query_rank(number(ga, 64, "ga"))


def query_color(ga: int) -> int:
    """Return the color by which a global address is reached, or -1. Only the number is examined."""
    return lib.acp_query_color(number(ga, 64, "ga"))


def forget() -> None:
    """The job was left: release registered memory, and put memory behind the remaining views."""
    with _lock:
        for registration in list(_registrations):
            registration._drop()
        left = [(address, size) for memory, address, size in _views if memory() is not None]
        _views.clear()
    for address, size in left:
        _fill(address - address % mmap.PAGESIZE, -(-(address + size) // mmap.PAGESIZE) * mmap.PAGESIZE)


def _fill(begin: int, end: int) -> None:
    """Map memory where there is none in a range of whole pages. Existing mappings are not
    changed: they are registered memory of this process, which still owns it, or belong to
    another view."""
    parts = [(begin, end)]
    while parts:
        begin, end = parts.pop()
        got = _libc.mmap(begin, end - begin, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS |
                         MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0)
        if got == MAP_FAILED and ctypes.get_errno() == errno.EEXIST and end - begin > mmap.PAGESIZE:
            middle = begin + (end - begin) // 2 // mmap.PAGESIZE * mmap.PAGESIZE
            parts += [(begin, middle), (middle, end)]
