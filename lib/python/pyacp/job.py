# SPDX-License-Identifier: MIT
"""Infrastructure: join a job, synchronize its ranks, leave it. See acp_init(3) and acp(7).

init, finalize, reset and sync are collective: all ranks call them, and no call returns before
all have called.
"""
from __future__ import annotations

import contextlib
import ctypes
import sys
import traceback
from typing import Iterator, List, NoReturn, Optional

from . import collective, memory
from .access import ALL, access_error, finish_all, forget_all
from .binding import Session, check, failed, is_child, lib, no_rank, rank_or_raise, signed

ERRORS_RETURN = 1


def init(argv: Optional[List[str]] = None) -> None:
    """Join the job that the environment and options describe, as a rank.

    Waits for all ranks, up to ACP_INIT_TIMEOUT milliseconds. Removes options that begin with
    --acp- from argv, a list (by default sys.argv). Starter memory is zero afterwards. Raises
    Error; the reason and its remedy are printed on standard error."""
    argv = sys.argv if argv is None else argv
    if not isinstance(argv, list) or not all(isinstance(word, str) for word in argv):
        raise TypeError("argv must be a list of str")
    words = [word.encode(errors="surrogateescape") for word in argv]
    count = ctypes.c_int(len(words))
    array = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    pointer = ctypes.cast(array, ctypes.POINTER(ctypes.c_char_p))
    sys.stdout.flush()
    ctypes.set_errno(0)
    if lib.acp_init(ctypes.byref(count), ctypes.byref(pointer)) != 0:
        raise failed("init")
    argv[:] = [pointer[i].decode(errors="surrogateescape") for i in range(count.value)]
    Session.begin()
    forget_all()
    lib.acpx_set_error_mode(ERRORS_RETURN)


def finalize() -> None:
    """Complete all accesses, wait for all ranks, and leave the job, even if an Error is raised.

    Registrations become invalid; remaining views of starter memory show zeros from then on. No
    other thread may use the module. Finally raises AccessError if accesses failed that no
    complete() has reported."""
    rank_or_raise()
    lib.acp_complete(ALL)
    lost = finish_all()
    ctypes.set_errno(0)
    result = lib.acp_finalize()
    collective.forget()
    memory.forget()
    forget_all()
    check("finalize", result)
    if lost:
        raise access_error(lost)


def reset(rank: int) -> None:
    """Leave the job and join it again as another rank; the numbers of all ranks are a permutation.

    Registrations become invalid, and former views must not be used any more. Raises Error; if
    the numbers are not a permutation, nothing changes. No other thread may use the module."""
    rank_or_raise()
    rank = signed(rank, "rank")
    lib.acp_complete(ALL)
    lost = finish_all()
    ctypes.set_errno(0)
    result = lib.acp_reset(rank)
    if result == 0 or lib.acp_rank() < 0:
        collective.forget()
        memory.forget()
        forget_all()
    check("reset", result)
    if lost:
        raise access_error(lost)


def abort(text: object = None) -> NoReturn:
    """End the job on all nodes. Does not return.

    Prints text on standard error and ends this process with status 255, without running exit
    handlers. From then on, calls of other ranks fail."""
    sys.stdout.flush()
    sys.stderr.flush()
    lib.acp_abort(None if text is None else str(text).encode(errors="replace"))
    raise no_rank()


def sync() -> None:
    """Wait until all ranks have called, without a time limit.

    Neither completes nor orders accesses: call complete() first. Raises Error: EPIPE (a rank has
    left), ECANCELED (the job was aborted)."""
    rank_or_raise()
    ctypes.set_errno(0)
    check("sync", lib.acp_sync())


def rank() -> int:
    """Return the rank of this process, 0 to procs() - 1. Raises Error if it is not a rank."""
    return rank_or_raise()


def procs() -> int:
    """Return the number of ranks, 1 to 16777215."""
    rank_or_raise()
    return lib.acp_procs()


def peer_state(rank: int) -> int:
    """Return what is known of another rank, without communication: 0 nothing, 1 up, 2 down, 3
    back. See acpx_peer_state(3)."""
    return _of_rank("peer_state", lib.acpx_peer_state(signed(rank, "rank")), rank)


def node(rank: int) -> int:
    """Return the number of the node on which a rank was placed, from 0."""
    return _of_rank("node", lib.acpx_query_node(signed(rank, "rank")), rank)


def _of_rank(what: str, result: int, rank: int) -> int:
    rank_or_raise()
    if result < 0:
        raise ValueError(f"{what}: there is no rank {rank}")
    return result


@contextlib.contextmanager
def job(argv: Optional[List[str]] = None) -> Iterator[None]:
    """For a with statement: call init() at its start and finalize() at its end.

    An exception that leaves the statement is printed and ends the job on all nodes; otherwise
    the other ranks would wait for this one. A child that was forked within the statement leaves it
    without effect on the job."""
    init(argv)
    try:
        yield
    except BaseException as e:
        if is_child():
            raise
        if not (isinstance(e, SystemExit) and e.code in (None, 0)):
            traceback.print_exc()
            abort(f"{type(e).__name__}: {e}")
        finalize()
        raise
    if not is_child():
        finalize()
