# SPDX-License-Identifier: MIT
"""Infrastructure: join a job, meet its ranks, leave. See acp_init(3) and acp(7).

init, finalize, reset and sync are collective: every rank calls them, and none returns before all have called.
"""
import contextlib
import ctypes
import sys
import traceback

from . import memory
from .access import ALL, AccessError, finish_all, forget_all
from .binding import check, failed, lib, signed
from .memory import failed_no_rank, rank_or_raise

ERRORS_RETURN = 1


def init(argv=None):
    """Become a rank of the job that environment and options describe; waits for all ranks, up to ACP_INIT_TIMEOUT
    milliseconds. Options that begin with --acp- are taken out of argv, a list (by default sys.argv). Starter memory is
    zero afterwards. Raises Error; the reason and its remedy are on standard error."""
    argv = sys.argv if argv is None else argv
    words = [word.encode(errors="surrogateescape") for word in argv]
    count = ctypes.c_int(len(words))
    array = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    pointer = ctypes.cast(array, ctypes.POINTER(ctypes.c_char_p))
    sys.stdout.flush()
    ctypes.set_errno(0)
    if lib.acp_init(ctypes.byref(count), ctypes.byref(pointer)) != 0:
        raise failed("init")
    argv[:] = [pointer[i].decode(errors="surrogateescape") for i in range(count.value)]
    forget_all()
    lib.acpx_set_error_mode(ERRORS_RETURN)


def finalize():
    """Complete all accesses, wait for all ranks, and leave the job, even if it fails (Error). Registrations are void;
    views of starter memory that are still there show zeros from now on. No other thread may use the module.
    Raises AccessError, at its end, if accesses have failed that no complete() told of."""
    rank_or_raise()
    lib.acp_complete(ALL)
    lost = finish_all()
    ctypes.set_errno(0)
    result = lib.acp_finalize()
    memory.forget()
    forget_all()
    check("finalize", result)
    if lost:
        raise AccessError(lost)


def reset(rank):
    """Leave the job and join it again as another rank; all ranks together give a permutation. Registrations are void, and
    views of before must not be used any more. Raises Error; if the numbers are no permutation everything stays as it was.
    No other thread may use the module."""
    rank_or_raise()
    lib.acp_complete(ALL)
    lost = finish_all()
    ctypes.set_errno(0)
    result = lib.acp_reset(signed(rank, "rank"))
    if result == 0 or lib.acp_rank() < 0:
        memory.forget()
        forget_all()
    check("reset", result)
    if lost:
        raise AccessError(lost)


def abort(text=None):
    """End the job on all nodes: prints text on standard error and ends this process with status 255, without running
    exit handlers. Calls of other ranks fail from then on. Does not return."""
    sys.stdout.flush()
    sys.stderr.flush()
    lib.acp_abort(None if text is None else str(text).encode(errors="replace"))
    raise failed_no_rank()      # only who is no rank gets here


def sync():
    """Wait until all ranks are here; there is no limit of time. Neither completes nor orders accesses: call complete()
    before. Raises Error: EPIPE (a rank is gone), ECANCELED (the job was aborted)."""
    ctypes.set_errno(0)
    check("sync", lib.acp_sync())


def rank():
    """The own rank, 0 to procs() - 1. Raises Error in a process that is no rank."""
    return rank_or_raise()


def procs():
    """The number of ranks, 1 to 16777215."""
    rank_or_raise()
    return lib.acp_procs()


def peer_state(rank):
    """What is known of another rank, without asking it: 0 nothing, 1 up, 2 down, 3 back. See acpx_peer_state(3)."""
    return _of_rank("peer_state", lib.acpx_peer_state(signed(rank, "rank")), rank)


def node(rank):
    """The number of the node that a rank was placed on, from 0."""
    return _of_rank("node", lib.acpx_query_node(signed(rank, "rank")), rank)


def _of_rank(what, result, rank):
    rank_or_raise()
    if result < 0:
        raise ValueError(f"{what}: there is no rank {rank}")
    return result


@contextlib.contextmanager
def job(argv=None):
    """For a with statement: init() at its begin, finalize() at its end. An exception that leaves it ends the job on all
    nodes, after it was printed: else the other ranks would wait for this one."""
    init(argv)
    try:
        yield
    except BaseException as e:
        if not (isinstance(e, SystemExit) and e.code in (None, 0)):
            traceback.print_exc()
            abort(f"rank {lib.acp_rank()}: {type(e).__name__}: {e}")
        finalize()
        raise
    finalize()
