# SPDX-License-Identifier: MIT
"""Global memory management: memory of this process for all ranks, and views of it. See acp_register_memory(3).

Nothing here waits for other ranks. Threads: all functions may be called by any of them.
"""
import ctypes
import errno
import mmap
import threading
import weakref

from .binding import check, failed, lib, number, signed

READ, WRITE, ATOMIC, READ_ONLY = 1, 2, 4, 8     # ACPX_ACCESS_*
SIMPLE, WRITABLE = 0, 1                         # PyBUF_*: bytes in one piece

MAP_NORESERVE, MAP_FIXED_NOREPLACE = 0x4000, 0x100000
MAP_FAILED = ctypes.c_void_p(-1).value

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


class PyBuffer(ctypes.Structure):
    """Py_buffer of the stable ABI: somebody's memory, which stays where it is until the buffer is released."""
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
_registrations = set()      # they live until they are given back, whoever forgets them
_views = []                 # weak references to what memoryviews of the library's memory keep alive, address, size


class Registration:
    """Memory that all ranks can reach.

    ga is the global address of its first byte, nbytes its size, buffer the object that has it. The object's memory is
    held, so that it can be neither freed nor resized (a bytearray refuses with BufferError), until unregister() or
    finalize(), even if nobody else knows the object any more. Use it in a with statement to have it unregistered at
    the end."""

    def __init__(self, buffer, color, access):
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

    def ga_at(self, offset):
        """The global address of a byte of it, 0 to nbytes - 1; nbytes is one behind the last."""
        if not 0 <= offset <= self.nbytes:
            raise IndexError(f"{offset} is not from 0 to {self.nbytes}")
        return self.ga + offset

    def unregister(self):
        """Give it back. When this returns no byte of it can change any more by what others do; accesses of theirs that
        come later fail. A second time does nothing."""
        with _lock:
            if self not in _registrations:
                return
            check("unregister", lib.acp_unregister_memory(self.key))
            self._drop()

    def _drop(self):
        _registrations.discard(self)
        _release_buffer(self._held)
        self.buffer, self.key, self.ga = None, 0, 0

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.unregister()


def register(buffer, color=0, access=READ | WRITE | ATOMIC):
    """Make the memory of an object with a buffer (bytearray, array.array, mmap, memoryview, NumPy array) reachable for
    all ranks, without copying it, by color (0 to colors() - 1). access: a sum of READ, WRITE and ATOMIC, what other
    ranks may do; or READ_ONLY + READ, for memory that nobody may write, as bytes. Returns a Registration.

    The memory must be in one piece (a BufferError, or ValueError of NumPy, says if it is not). It is pinned, which
    counts against RLIMIT_MEMLOCK. Raises Error: EINVAL (no bytes, no such color, the process is not a rank), EFAULT
    (cannot be pinned), ENOMEM, EDQUOT (a limit of the administrator), ENOSPC (too many), EOVERFLOW (too long)."""
    return Registration(buffer, color, number(access, 4, "access"))


def _view(address, size):
    memory = (ctypes.c_char * size).from_address(address)
    with _lock:
        _views[:] = [v for v in _views if v[0]() is not None]
        _views.append((weakref.ref(memory), address, size))
    return memoryview(memory).cast("B")


def starter():
    """The starter memory of this rank, writable, as a memoryview of bytes; zero when the job starts. Other ranks write
    to it at any time. After finalize() and reset() views show memory that is this process's alone, all zero."""
    address = lib.acp_query_address(starter_ga(rank_or_raise()))
    return _view(address, starter_size())


def view(ga, size):
    """A writable memoryview of size bytes at a global address, which must be of this rank, or starter memory or heap of a
    rank on the same node; LookupError if it is not. Registered memory of this rank is valid as long as its object."""
    first = lib.acp_query_address(number(ga, 64, "ga"))
    last = lib.acp_query_address(ga + size - 1) if size > 0 else None
    if not first or last != first + size - 1:
        raise LookupError(f"{size} bytes at {ga:#x} are not within memory that this process can reach")
    return _view(first, size)


def rank_or_raise():
    """The own rank, or the exception for a process that has none."""
    rank = lib.acp_rank()
    if rank < 0:
        raise failed_no_rank()
    return rank


def failed_no_rank():
    ctypes.set_errno(0)
    return failed("the process is not a rank: this call")


def _address(ga, what, rank):
    if not ga:
        raise ValueError(f"{what}: there is no rank {rank}") if lib.acp_rank() >= 0 else failed_no_rank()
    return ga


def starter_ga(rank):
    """The global address of the first byte of a rank's starter memory."""
    return _address(lib.acp_query_starter_ga(signed(rank, "rank")), "starter_ga", rank)


def heap_ga(rank):
    """The global address of the first byte of a rank's heap, which belongs to acp_malloc(3)."""
    return _address(lib.acpx_query_heap_ga(signed(rank, "rank")), "heap_ga", rank)


def starter_size():
    """Bytes of this rank's starter memory (ACP_STARTER_SIZE)."""
    return lib.acpx_starter_size()


def heap_size():
    """Bytes of this rank's heap (ACP_HEAP_SIZE)."""
    return lib.acpx_heap_size()


def colors():
    """Number of colors, 1 to 4."""
    rank_or_raise()
    return lib.acp_colors()


def query_rank(ga):
    """Whose memory a global address names; -1 if nobody's. Looks at the number alone."""
    return lib.acp_query_rank(number(ga, 64, "ga"))


def query_color(ga):
    """By which color a global address is reached; -1 if it is none. Looks at the number alone."""
    return lib.acp_query_color(number(ga, 64, "ga"))


def forget():
    """The job was left: let go of what was registered, and give the views that are left something to show."""
    with _lock:
        for registration in list(_registrations):
            registration._drop()
        left = [(address, size) for memory, address, size in _views if memory() is not None]
        _views.clear()
    for address, size in left:
        _fill(address - address % mmap.PAGESIZE, -(-(address + size) // mmap.PAGESIZE) * mmap.PAGESIZE)


def _fill(begin, end):
    """Memory where there is none in a range of whole pages. What is there stays as it is: registered memory of this
    process, which nobody has taken away, or of another view."""
    parts = [(begin, end)]
    while parts:
        begin, end = parts.pop()
        got = _libc.mmap(begin, end - begin, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS |
                         MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0)
        if got == MAP_FAILED and ctypes.get_errno() == errno.EEXIST and end - begin > mmap.PAGESIZE:
            middle = begin + (end - begin) // 2 // mmap.PAGESIZE * mmap.PAGESIZE
            parts += [(begin, middle), (middle, end)]
