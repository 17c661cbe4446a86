# SPDX-License-Identifier: MIT
"""ACP, one-sided communication, from Python: the basic layer of libacp, see acp(7).

    import pyacp as acp

    with acp.job():                                 # as many processes as the job has ranks run this
        board = acp.starter().cast("Q")             # 8-byte numbers that all ranks can reach
        right = acp.starter_ga((acp.rank() + 1) % acp.procs())
        board[0] = acp.rank()
        acp.complete(acp.copy(right + 8, acp.starter_ga(acp.rank()), 8))
        acp.sync()
        print("my left neighbour is", board[1])

Names are those of C without acp_ or acpx_; the manual pages (acp_init(3), acp_register_memory(3), acp_copy(3)) say
more about each. What returns an error in C raises here: Error (an OSError) for a call, AccessError for an access that
failed. Global addresses, handles and keys are int. Sizes and offsets are bytes.

Threads: all functions may be called by any thread, but finalize and reset by one while no other uses the module. The
interpreter's lock is released in every call of the library, so other threads run while one waits. They share one queue
of accesses; a Context is one for a thread. What waits for other ranks (init, finalize, reset, sync, complete,
wait_until) is not ended by signals: KeyboardInterrupt comes when it returns.
A process made by os.fork() or multiprocessing's fork is no rank.
"""
from .access import (ALL, CONT, NULL, AccessError, Context, add4, add8, and4, and8, cas4, cas8, complete, copy,
                     copy_signal, copy_strided, copyv, inquire, or4, or8, status, strerror, swap4, swap8, xor4, xor8)
from .binding import Error
from .job import abort, finalize, init, job, node, peer_state, procs, rank, reset, sync
from .memory import (ATOMIC, READ, READ_ONLY, WRITE, Registration, colors, heap_ga, heap_size, query_color,
                     query_rank, register, starter, starter_ga, starter_size, view)
from .wait import (EQ, GE, GT, LE, LT, NE, SIGNED, test, test_all, test_any, test_some, wait_until, wait_until_all,
                   wait_until_any, wait_until_some)

__all__ = [
    "ALL", "ATOMIC", "AccessError", "CONT", "Context", "EQ", "Error", "GE", "GT", "LE", "LT", "NE", "NULL", "READ",
    "READ_ONLY", "Registration", "SIGNED", "WRITE", "abort", "add4", "add8", "and4", "and8", "cas4", "cas8", "colors",
    "complete", "copy", "copy_signal", "copy_strided", "copyv", "finalize", "heap_ga", "heap_size", "init", "inquire",
    "job", "node", "or4", "or8", "peer_state", "procs", "query_color", "query_rank", "rank", "register", "reset",
    "starter", "starter_ga", "starter_size", "status", "strerror", "swap4", "swap8", "sync", "test", "test_all",
    "test_any", "test_some", "view", "wait_until", "wait_until_all", "wait_until_any", "wait_until_some", "xor4", "xor8",
]
