# SPDX-License-Identifier: MIT
"""Collective operations of the members of a group. See acpx_coll_barrier_create(3).

A method of Group such as allreduce() does it once and returns when it is complete here. That with
_init returns a Collective, which all members start any number of times; the kernel executes it, so
the process may compute meanwhile.

All members call the same functions in the same order. Buffers are objects with a buffer (bytearray,
array.array, NumPy arrays, ...), which are registered as long as the collective exists, or
Registrations. Between start and completion, neither write to them nor read out. Where out may be
omitted, src itself gets the result. A block is a tuple (offset, size), in bytes.

Numbers are combined in an order that depends on the group only: the same bits each time. op is
"sum", "prod", "min", "max", "and", "or", "xor" (these three: of integers), or "replace"; or SUM, ...
type is "int32", "int64", "uint32", "uint64", "float" or "double", or INT32, ...; if it is omitted,
that of the elements of src.
"""
from __future__ import annotations

import ctypes
import errno
import sys
import threading
from typing import Any, Callable, Iterable, Optional, Sequence, Tuple, Union

from .binding import Block, Neighbour, is_child, lib, number, rank_or_raise, signed
from .memory import ATOMIC, READ, READ_ONLY, WRITE, Registration, register
from .wait import nanoseconds, result_or_none

Buffer = Any                                    # an object with a buffer, or a Registration
BlockOf = Tuple[int, int]                       # offset, size
Operation = Union[str, int]
Type = Union[str, int]

OPERATIONS = ("sum", "prod", "min", "max", "and", "or", "xor", "replace")       # ACPX_SUM, ...
TYPES = ("int32", "int64", "uint32", "uint64", "float", "double")               # ACPX_INT32, ...
SIZES = (4, 8, 4, 8, 4, 8)
FORMATS = {**dict.fromkeys("bhilqn", "int"), **dict.fromkeys("BHILQN", "uint"), "f": "float", "d": "double"}

_lock = threading.Lock()
_live = set()               # keeps them alive until they are freed


class Memory:
    """The buffers of a collective: each is registered once, unless it is a Registration."""

    def __init__(self) -> None:
        self._own, self._seen = [], {}

    def of(self, buffer: Buffer, written: bool = True) -> Registration:
        """Return the registration of a buffer."""
        if isinstance(buffer, Registration):
            return buffer
        if id(buffer) not in self._seen:
            read_only = not written and memoryview(buffer).readonly
            registration = register(buffer, access=READ_ONLY | READ if read_only else READ | WRITE | ATOMIC)
            self._own.append(registration)
            self._seen[id(buffer)] = registration
        return self._seen[id(buffer)]

    def release(self) -> None:
        """Unregister the buffers that were registered here."""
        for registration in self._own:
            registration.unregister()
        self._own, self._seen = [], {}


class Collective:
    """A collective operation that all members of a group have created. start() and wait() any number
    of times, then free(). A with statement waits and frees at its end.

    One thread at a time uses a collective. All functions raise Error: EINVAL (it was freed), EBUSY
    (it is active), EHOSTDOWN, ECONNRESET, EHOSTUNREACH (a member was lost), EPROTO (others have
    created something else), ECANCELED (the job was aborted). After a failure it is of no use any
    more: free it."""

    def __init__(self, what: str, memory: Memory, create: Callable[..., int], *arguments: object) -> None:
        self._handle, self._what, self._memory = ctypes.c_void_p(), what, memory
        try:
            result_or_none(what, create(*arguments, ctypes.byref(self._handle)))
        except BaseException:
            memory.release()
            raise
        with _lock:
            _live.add(self)

    def start(self) -> None:
        """Begin a round. Does not wait for other members."""
        result_or_none(self._what, lib.acpx_coll_start(self._own()))

    def test(self) -> bool:
        """Return whether the round is complete here. Does not wait."""
        return result_or_none(self._what, lib.acpx_coll_test(self._own())) == 1

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Wait until the round is complete here. Returns False after the timeout, in seconds; then it
        is still active."""
        late = () if timeout is None else (errno.ETIMEDOUT,)
        return result_or_none(self._what, lib.acpx_coll_wait(self._own(), nanoseconds(timeout)), *late) is not None

    def free(self) -> None:
        """Free it and unregister its buffers; a second call does nothing. Does not wait."""
        if not self._handle:
            return
        result_or_none(self._what, lib.acpx_coll_free(self._handle))
        self._forget()
        self._memory.release()

    @property
    def failed_rank(self) -> Optional[int]:
        """The rank whose loss has ended it, or None."""
        return result_or_none(self._what, lib.acpx_coll_failed_rank(self._own()), errno.ENOENT)

    def describe(self) -> str:
        """Return what this member does in each round."""
        size = result_or_none(self._what, lib.acpx_coll_describe(self._own(), None, 0)) + 1
        text = ctypes.create_string_buffer(size)
        result_or_none(self._what, lib.acpx_coll_describe(self._own(), text, size))
        return text.value.decode()

    def _own(self) -> ctypes.c_void_p:
        """Return the handle, or raise an exception if there is none any more."""
        if not self._handle:
            rank_or_raise()
            result_or_none(self._what, -errno.EINVAL)
        return self._handle

    def _forget(self) -> None:
        self._handle = ctypes.c_void_p()
        with _lock:
            _live.discard(self)

    def _left(self) -> None:
        """The job was left, which has unregistered its buffers."""

    def __enter__(self) -> Collective:
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        if is_child() or not self._handle:
            return
        if kind is not None and lib.acpx_coll_test(self._handle) == 0:
            return              # active: the exception is more important
        try:
            if kind is None:
                self.wait()
        finally:
            self.free()


def forget() -> None:
    """The job was left: no collective exists any more."""
    with _lock:
        left = list(_live)
        _live.clear()
    for collective in left:
        handle, collective._handle = collective._handle, ctypes.c_void_p()
        lib.acpx_coll_free(handle)
        collective._left()


def _once(collective: Collective) -> None:
    """Execute a collective once."""
    with collective:
        collective.start()


def _blocks(blocks: Iterable[BlockOf], members: int, nbytes: int) -> ctypes.Array:
    """Return an array of struct acpx_block, one for each member, within a buffer."""
    array = [Block(number(offset, 63, "offset"), number(size, 63, "size")) for offset, size in blocks]
    if len(array) != members:
        raise ValueError(f"{len(array)} blocks for {members} members")
    if any(block.offset + block.size > nbytes for block in array):
        raise ValueError(f"a block is not within the {nbytes} bytes of the buffer")
    return (Block * members)(*array)


def _same_size(what: str, have: int, want: int) -> None:
    if have != want:
        raise ValueError(f"{what} must have {want} bytes, not {have}")


def _part(what: str, nbytes: int, members: int) -> int:
    """Return the bytes of a block of each member."""
    if nbytes % members:
        raise ValueError(f"{what} has {nbytes} bytes, which {members} members cannot share")
    return nbytes // members


def _type_of(buffer: Buffer, wanted: Optional[Type]) -> int:
    """Return the type of the numbers in a buffer, for C."""
    if wanted is None:
        view = memoryview(buffer.buffer if isinstance(buffer, Registration) else buffer)
        format_ = view.format.lstrip("@=<" if sys.byteorder == "little" else "@=>")
        wanted = FORMATS.get(format_, format_)
        if wanted in ("int", "uint"):
            wanted += str(8 * view.itemsize)
    if isinstance(wanted, int) and 0 <= wanted < len(TYPES):
        return wanted
    if wanted not in TYPES:
        raise TypeError(f"numbers of type {wanted} cannot be combined; type is one of {', '.join(TYPES)}")
    return TYPES.index(wanted)


def _operation(op: Operation) -> int:
    if isinstance(op, int) and 0 <= op < len(OPERATIONS):
        return op
    if op not in OPERATIONS:
        raise ValueError(f"op must be one of {', '.join(OPERATIONS)}, not {op}")
    return OPERATIONS.index(op)


def _numbers(nbytes: int, type_: int) -> int:
    """Return how many numbers there are in so many bytes."""
    if nbytes % SIZES[type_]:
        raise ValueError(f"{nbytes} bytes are no whole number of {TYPES[type_]}")
    return nbytes // SIZES[type_]


class Collectives:
    """The collectives of a Group."""
    _handle: ctypes.c_void_p

    def __len__(self) -> int:
        raise NotImplementedError

    @property
    def rank(self) -> Optional[int]:
        """The number of this rank in the group, or None."""
        raise NotImplementedError

    def _is(self, root: int) -> bool:
        return self.rank == signed(root, "root")

    def _combine(self, name: str, src: Buffer, op: Operation, out: Buffer, type_: Optional[Type], root: Sequence[int] = (),
                 parts: int = 1) -> Collective:
        """Create a collective that combines numbers; out has 1/parts of the size of src."""
        code, operation, memory = _type_of(src, type_), _operation(op), Memory()
        try:
            stores = not root or self._is(root[0])
            # The destination first: a source alone may be read only.
            to = memory.of(src if out is None else out) if stores else None
            from_ = memory.of(src, written=False)
            nbytes = _part("src", from_.nbytes, parts)
            if to:
                _same_size("out", to.nbytes, nbytes)
            count = _numbers(nbytes, code)
        except BaseException:
            memory.release()
            raise
        return Collective(name, memory, getattr(lib, f"acpx_coll_{name}_create"), self._handle, *root, to.ga if to else 0,
                          from_.ga, count, operation, code)

    def _copy(self, name: str, src: Optional[Buffer], out: Optional[Buffer], arguments: Callable[..., tuple]) -> Collective:
        """Create a collective that copies; arguments returns those for C from the registrations of
        src and out, which may be None."""
        memory = Memory()
        try:
            to = None if out is None else memory.of(out)
            from_ = None if src is None else memory.of(src, written=False)
            values = arguments(from_, to)
        except BaseException:
            memory.release()
            raise
        return Collective(name, memory, getattr(lib, f"acpx_coll_{name}_create"), self._handle, *values)

    def barrier_init(self) -> Collective:
        """See barrier()."""
        return Collective("barrier", Memory(), lib.acpx_coll_barrier_create, self._handle)

    def barrier(self) -> None:
        """Wait until all members have called."""
        _once(self.barrier_init())

    def bcast_init(self, buffer: Buffer, root: int = 0) -> Collective:
        """See bcast()."""
        return self._copy("bcast", None, buffer, lambda _, both: (signed(root, "root"), both.ga, both.nbytes))

    def bcast(self, buffer: Buffer, root: int = 0) -> None:
        """Copy the buffer of member root to those of all others, which have the same size."""
        _once(self.bcast_init(buffer, root))

    def reduce_init(self, src: Buffer, op: Operation = "sum", root: int = 0, out: Optional[Buffer] = None,
                    type: Optional[Type] = None) -> Collective:
        """See reduce()."""
        return self._combine("reduce", src, op, out, type, (root,))

    def reduce(self, src: Buffer, op: Operation = "sum", root: int = 0, out: Optional[Buffer] = None,
               type: Optional[Type] = None) -> None:
        """Combine the numbers of all members in out at member root."""
        _once(self.reduce_init(src, op, root, out, type))

    def allreduce_init(self, src: Buffer, op: Operation = "sum", out: Optional[Buffer] = None,
                       type: Optional[Type] = None) -> Collective:
        """See allreduce()."""
        return self._combine("allreduce", src, op, out, type)

    def allreduce(self, src: Buffer, op: Operation = "sum", out: Optional[Buffer] = None,
                  type: Optional[Type] = None) -> None:
        """Combine the numbers of all members in out at all members."""
        _once(self.allreduce_init(src, op, out, type))

    def reduce_scatter_init(self, src: Buffer, out: Buffer, op: Operation = "sum", type: Optional[Type] = None) -> Collective:
        """See reduce_scatter()."""
        return self._combine("reduce_scatter", src, op, out, type, parts=len(self))

    def reduce_scatter(self, src: Buffer, out: Buffer, op: Operation = "sum", type: Optional[Type] = None) -> None:
        """Combine the numbers of all members: member i gets block i of as many as there are members."""
        _once(self.reduce_scatter_init(src, out, op, type))

    def scan_init(self, src: Buffer, op: Operation = "sum", out: Optional[Buffer] = None,
                  type: Optional[Type] = None) -> Collective:
        """See scan()."""
        return self._combine("scan", src, op, out, type)

    def scan(self, src: Buffer, op: Operation = "sum", out: Optional[Buffer] = None, type: Optional[Type] = None) -> None:
        """Combine the numbers of all members up to this one."""
        _once(self.scan_init(src, op, out, type))

    def exscan_init(self, src: Buffer, op: Operation = "sum", out: Optional[Buffer] = None,
                    type: Optional[Type] = None) -> Collective:
        """See exscan()."""
        return self._combine("exscan", src, op, out, type)

    def exscan(self, src: Buffer, op: Operation = "sum", out: Optional[Buffer] = None, type: Optional[Type] = None) -> None:
        """Combine the numbers of all members before this one. Nothing is stored at member 0."""
        _once(self.exscan_init(src, op, out, type))

    def gather_init(self, src: Buffer, out: Optional[Buffer] = None, root: int = 0) -> Collective:
        """See gather()."""
        def arguments(from_: Registration, to: Optional[Registration]) -> tuple:
            if to:
                _same_size("out", to.nbytes, len(self) * from_.nbytes)
            return root, to.ga if to else 0, from_.ga, from_.nbytes
        return self._copy("gather", src, _needed(out) if self._is(root) else None, arguments)

    def gather(self, src: Buffer, out: Optional[Buffer] = None, root: int = 0) -> None:
        """Copy src of all members to out of member root, one behind the other; others have no out."""
        _once(self.gather_init(src, out, root))

    def scatter_init(self, src: Optional[Buffer], out: Buffer, root: int = 0) -> Collective:
        """See scatter()."""
        def arguments(from_: Optional[Registration], to: Registration) -> tuple:
            if from_:
                _same_size("src", from_.nbytes, len(self) * to.nbytes)
            return root, to.ga, from_.ga if from_ else 0, to.nbytes
        return self._copy("scatter", _needed(src) if self._is(root) else None, out, arguments)

    def scatter(self, src: Optional[Buffer], out: Buffer, root: int = 0) -> None:
        """Copy block i of src of member root to out of member i; others have no src."""
        _once(self.scatter_init(src, out, root))

    def allgather_init(self, src: Buffer, out: Buffer) -> Collective:
        """See allgather()."""
        def arguments(from_: Registration, to: Registration) -> tuple:
            _same_size("out", to.nbytes, len(self) * from_.nbytes)
            return to.ga, from_.ga, from_.nbytes
        return self._copy("allgather", src, out, arguments)

    def allgather(self, src: Buffer, out: Buffer) -> None:
        """Copy src of all members to out of all members, one behind the other."""
        _once(self.allgather_init(src, out))

    def alltoall_init(self, src: Buffer, out: Buffer) -> Collective:
        """See alltoall()."""
        def arguments(from_: Registration, to: Registration) -> tuple:
            _same_size("out", to.nbytes, from_.nbytes)
            return to.ga, from_.ga, _part("src", from_.nbytes, len(self))
        return self._copy("alltoall", src, out, arguments)

    def alltoall(self, src: Buffer, out: Buffer) -> None:
        """Copy block i of src of this member to member i, whose out gets those of all members, one
        behind the other."""
        _once(self.alltoall_init(src, out))

    def gatherv_init(self, src: Buffer, out: Optional[Buffer] = None, blocks: Iterable[BlockOf] = (),
                     root: int = 0) -> Collective:
        """See gatherv()."""
        def arguments(from_: Registration, to: Optional[Registration]) -> tuple:
            return (root, to.ga if to else 0, _blocks(blocks, len(self), to.nbytes) if to else None, from_.ga,
                    from_.nbytes)
        return self._copy("gatherv", src, _needed(out) if self._is(root) else None, arguments)

    def gatherv(self, src: Buffer, out: Optional[Buffer] = None, blocks: Iterable[BlockOf] = (), root: int = 0) -> None:
        """Copy src of member i to block i of out of member root; others have neither out nor blocks."""
        _once(self.gatherv_init(src, out, blocks, root))

    def scatterv_init(self, src: Optional[Buffer], blocks: Iterable[BlockOf], out: Buffer, root: int = 0) -> Collective:
        """See scatterv()."""
        def arguments(from_: Optional[Registration], to: Registration) -> tuple:
            return (root, to.ga, to.nbytes, from_.ga if from_ else 0,
                    _blocks(blocks, len(self), from_.nbytes) if from_ else None)
        return self._copy("scatterv", _needed(src) if self._is(root) else None, out, arguments)

    def scatterv(self, src: Optional[Buffer], blocks: Iterable[BlockOf], out: Buffer, root: int = 0) -> None:
        """Copy block i of src of member root to out of member i; src and blocks are those of root."""
        _once(self.scatterv_init(src, blocks, out, root))

    def allgatherv_init(self, src: Buffer, out: Buffer, blocks: Iterable[BlockOf]) -> Collective:
        """See allgatherv()."""
        def arguments(from_: Registration, to: Registration) -> tuple:
            array = _blocks(blocks, len(self), to.nbytes)
            _same_size("src", from_.nbytes, array[self.rank].size if self.rank is not None else from_.nbytes)
            return to.ga, array, from_.ga
        return self._copy("allgatherv", src, out, arguments)

    def allgatherv(self, src: Buffer, out: Buffer, blocks: Iterable[BlockOf]) -> None:
        """Copy src of member i to block i of out of all members."""
        _once(self.allgatherv_init(src, out, blocks))

    def alltoallv_init(self, src: Buffer, src_blocks: Iterable[BlockOf], out: Buffer,
                       out_blocks: Iterable[BlockOf]) -> Collective:
        """See alltoallv()."""
        def arguments(from_: Registration, to: Registration) -> tuple:
            return (to.ga, _blocks(out_blocks, len(self), to.nbytes), from_.ga,
                    _blocks(src_blocks, len(self), from_.nbytes))
        return self._copy("alltoallv", src, out, arguments)

    def alltoallv(self, src: Buffer, src_blocks: Iterable[BlockOf], out: Buffer, out_blocks: Iterable[BlockOf]) -> None:
        """Copy block i of src to member i, where it becomes the block of this member in out."""
        _once(self.alltoallv_init(src, src_blocks, out, out_blocks))

    def neighbours_init(self, src: Buffer, out: Buffer,
                        neighbours: Iterable[Tuple[int, BlockOf, BlockOf]]) -> Collective:
        """See neighbours()."""
        def arguments(from_: Registration, to: Registration) -> tuple:
            listed = [(signed(member, "member"), tuple(sent), tuple(got)) for member, sent, got in neighbours]
            sent = _blocks([n[1] for n in listed], len(listed), from_.nbytes)
            got = _blocks([n[2] for n in listed], len(listed), to.nbytes)
            array = [Neighbour(n[0], sent[i], got[i]) for i, n in enumerate(listed)]
            return to.ga, from_.ga, (Neighbour * len(array))(*array), len(array)
        return self._copy("neighbours", src, out, arguments)

    def neighbours(self, src: Buffer, out: Buffer, neighbours: Iterable[Tuple[int, BlockOf, BlockOf]]) -> None:
        """Exchange blocks with some members: for each, a tuple (member, block of src that it gets,
        block of out that it fills). Member -1 is none. src and out may be the same object."""
        _once(self.neighbours_init(src, out, neighbours))


def _needed(buffer: Optional[Buffer]) -> Buffer:
    """Return the buffer that the root must have."""
    if buffer is None:
        raise TypeError("the root needs both buffers")
    return buffer
