# SPDX-License-Identifier: MIT
"""ACP, one-sided communication, from Python: the basic layer of libacp, see acp(7).

    import pyacp as acp

    with acp.job():                                 # each process of the job runs this
        board = acp.starter().cast("Q")             # 8-byte numbers that all ranks can reach
        right = acp.starter_ga((acp.rank() + 1) % acp.procs())
        board[0] = acp.rank()
        acp.complete(acp.copy(right + 8, acp.starter_ga(acp.rank()), 8))
        acp.sync()
        print("my left neighbour is", board[1])

Names are those of C without acp_ or acpx_; the manual pages (acp_init(3), acp_register_memory(3),
acp_copy(3)) describe each. Where C returns an error, this module raises an exception: Error (an
OSError) for a call, AccessError for a failed access. Global addresses, handles and keys are int.
Sizes and offsets are bytes.

Threads: any thread may call any function, except that finalize and reset require that no other
thread uses the module. Each call of the library releases the interpreter's lock, so other threads
run while one waits. Threads share one queue of accesses; a Context is a queue for one thread.
Signals do not interrupt functions that wait for other ranks (init, finalize, reset, sync, complete,
wait_until, Mailbox.recv, MatchList.mrecv, Receive.wait, Group.split, collectives): KeyboardInterrupt is
raised when they return.

A process created by os.fork() or by the fork method of multiprocessing is not a rank.
"""
from .access import (ALL, AND, CONT, DOUBLE, FLOAT, INT32, INT64, MAX, MIN, NULL, OR, PROD, REPLACE, SUM, UINT32,
                     UINT64, XOR, AccessError, Context, accumulate, accumulate_signal, add4, add8, and4, and8, cas4,
                     cas8, complete, copy, copy_gather, copy_indirect, copy_notify, copy_scatter, copy_signal,
                     copy_strided, copyv, counter_add, descriptor, inquire, or4, or8, reduce, send, status, strerror,
                     swap4, swap8, wait_word, xor4, xor8)
from .binding import Error
from .collective import Collective
from .counter import Counter
from .group import NO_COLOR, Group
from .job import abort, finalize, init, job, node, peer_state, procs, rank, reset, sync
from .mailbox import Mailbox, Message
from .matching import ANY_RANK, MatchList, Receive
from .memory import (ATOMIC, DONT_FORK, READ, READ_ONLY, WRITE, Registration, colors, heap_ga, heap_size, query_color,
                     query_rank, register, starter, starter_ga, starter_size, view)
from .transfer import Transfer
from .wait import (EQ, GE, GT, LE, LT, NE, SIGNED, test, test_all, test_any, test_some, wait_until, wait_until_all,
                   wait_until_any, wait_until_some)

__version__ = "3.0.0"

__all__ = [
    "ALL", "AND", "ANY_RANK", "ATOMIC", "AccessError", "CONT", "Collective", "Context", "Counter", "DONT_FORK", "DOUBLE", "EQ", "Error",
    "FLOAT", "GE", "GT", "Group", "INT32", "INT64", "LE", "LT", "MAX", "MIN", "Mailbox", "MatchList", "Message", "NE", "NO_COLOR",
    "NULL", "OR", "PROD", "READ", "READ_ONLY", "REPLACE", "Receive", "Registration", "SIGNED", "SUM", "Transfer", "UINT32", "UINT64",
    "WRITE", "XOR", "abort", "accumulate", "accumulate_signal", "add4", "add8", "and4", "and8", "cas4", "cas8", "colors", "complete", "copy", "copy_gather",
    "copy_indirect", "copy_notify", "copy_scatter", "copy_signal", "copy_strided", "copyv", "counter_add", "descriptor", "finalize",
    "heap_ga", "heap_size", "init", "inquire",
    "job", "node", "or4", "or8", "peer_state", "procs", "query_color", "query_rank", "rank", "reduce", "register", "reset",
    "send", "starter", "starter_ga", "starter_size", "status", "strerror", "swap4", "swap8", "sync", "test",
    "test_all", "test_any", "test_some", "view", "wait_until", "wait_until_all", "wait_until_any", "wait_until_some",
    "wait_word", "xor4", "xor8",
]
