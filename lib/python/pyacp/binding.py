# SPDX-License-Identifier: MIT
"""The functions of libacp for ctypes. Each call releases the interpreter's lock."""
from __future__ import annotations

import ctypes
import operator
import os
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint, c_uint32, c_uint64, c_void_p

LIBRARY = "libacp.so.1"


class Error(OSError):
    """A call of the library failed. errno has the reason if the manual page names errors, else
    None."""


GA = KEY = c_uint64
HANDLE = c_int64
COLL = POINTER(c_void_p)    # where a collective is returned


class Iov(ctypes.Structure):
    """struct acpx_iov"""
    _fields_ = [("dst", GA), ("src", GA), ("size", c_size_t)]


class Condition(ctypes.Structure):
    """struct acpx_condition"""
    _fields_ = [("flag", c_void_p), ("value", c_uint64), ("size", c_int), ("compare", c_int)]


class MessageInfo(ctypes.Structure):
    """struct acpx_message"""
    _fields_ = [("data", c_void_p), ("size", c_size_t), ("tag", c_uint64), ("rank", c_int)]


class MatchLimits(ctypes.Structure):
    """struct acpx_match_limits"""
    _fields_ = [("bytes", c_size_t), ("receives", c_uint32), ("messages", c_uint32), ("masks", c_uint32),
                ("mask", c_uint64 * 4)]


class Block(ctypes.Structure):
    """struct acpx_block"""
    _fields_ = [("offset", c_size_t), ("size", c_size_t)]


class Neighbour(ctypes.Structure):
    """struct acpx_neighbour"""
    _fields_ = [("member", c_int), ("out", Block), ("in_", Block)]


PROTOTYPES = {
    "acp_init": (c_int, [POINTER(c_int), POINTER(POINTER(c_char_p))]),
    "acp_finalize": (c_int, []),
    "acp_reset": (c_int, [c_int]),
    "acp_abort": (None, [c_char_p]),
    "acp_sync": (c_int, []),
    "acp_rank": (c_int, []),
    "acp_procs": (c_int, []),
    "acp_colors": (c_int, []),
    "acp_query_starter_ga": (GA, [c_int]),
    "acp_unregister_memory": (c_int, [KEY]),
    "acp_query_ga": (GA, [KEY, c_void_p]),
    "acp_query_address": (c_void_p, [GA]),
    "acp_query_rank": (c_int, [GA]),
    "acp_query_color": (c_int, [GA]),
    "acp_copy": (HANDLE, [GA, GA, c_size_t, HANDLE]),
    "acpx_copy_strided": (HANDLE, [GA, GA, c_size_t, c_size_t, c_int64, c_int64, HANDLE]),
    "acpx_copyv": (HANDLE, [POINTER(Iov), c_size_t, HANDLE]),
    "acpx_copy_notify": (HANDLE, [GA, GA, c_size_t, GA, c_uint64, c_int, HANDLE]),
    "acpx_copy_indirect": (HANDLE, [GA, GA, c_size_t, c_int, HANDLE]),
    "acpx_copy_scatter": (HANDLE, [GA, GA, c_size_t, HANDLE]),
    "acpx_copy_gather": (HANDLE, [GA, GA, c_size_t, HANDLE]),
    "acpx_wait_word": (HANDLE, [GA, c_uint64, HANDLE]),
    "acpx_wait_word_of": (HANDLE, [GA, c_uint64, POINTER(c_int), c_int, HANDLE]),
    "acpx_reduce": (HANDLE, [GA, GA, c_size_t, c_int, c_int, HANDLE]),
    "acpx_accumulate": (HANDLE, [GA, GA, c_size_t, c_int, c_int, HANDLE]),
    "acpx_accumulate_signal": (HANDLE, [GA, GA, c_size_t, c_int, c_int, GA, c_uint64, c_int, HANDLE]),
    "acpx_copy_signal": (HANDLE, [GA, GA, c_size_t, GA, c_uint64, c_int, HANDLE]),
    "acpx_send": (HANDLE, [GA, GA, c_size_t, c_uint64, c_int, HANDLE]),
    "acpx_mailbox_create": (c_int, [c_size_t, c_int, POINTER(c_void_p)]),
    "acpx_mailbox_ga": (GA, [c_void_p]),
    "acpx_mailbox_free": (c_int, [c_void_p]),
    "acpx_probe": (c_int, [c_void_p, POINTER(MessageInfo), c_uint64]),
    "acpx_recv_lend": (c_int, [c_void_p, POINTER(MessageInfo), c_uint64]),
    "acpx_recv_return": (c_int, [c_void_p, POINTER(MessageInfo)]),
    "acpx_match_create": (c_int, [POINTER(MatchLimits), POINTER(c_void_p)]),
    "acpx_match_ga": (GA, [c_void_p]),
    "acpx_match_free": (c_int, [c_void_p]),
    "acpx_post": (c_int, [c_void_p, c_int, c_uint64, c_uint64, GA, c_size_t, POINTER(c_void_p)]),
    "acpx_receive_wait": (c_int64, [c_void_p, POINTER(MessageInfo), c_uint64]),
    "acpx_receive_cancel": (c_int, [c_void_p]),
    "acpx_match_probe": (c_int, [c_void_p, c_int, c_uint64, c_uint64, POINTER(MessageInfo), c_uint64]),
    "acpx_mprobe": (c_int, [c_void_p, c_int, c_uint64, c_uint64, POINTER(MessageInfo), c_uint64]),
    "acpx_mrecv": (c_int64, [c_void_p, POINTER(MessageInfo), c_void_p, c_size_t]),
    "acpx_group_world": (c_int, [POINTER(c_void_p)]),
    "acpx_group_strided": (c_int, [c_int, c_int, c_int, POINTER(c_void_p)]),
    "acpx_group_list": (c_int, [POINTER(c_int), c_int, POINTER(c_void_p)]),
    "acpx_group_split": (c_int, [c_void_p, c_int, c_int, POINTER(c_void_p)]),
    "acpx_group_size": (c_int, [c_void_p]),
    "acpx_group_rank": (c_int, [c_void_p]),
    "acpx_group_translate": (c_int, [c_void_p, c_int]),
    "acpx_group_find": (c_int, [c_void_p, c_int]),
    "acpx_group_free": (c_int, [c_void_p]),
    "acpx_coll_barrier_create": (c_int, [c_void_p, COLL]),
    "acpx_coll_bcast_create": (c_int, [c_void_p, c_int, GA, c_size_t, COLL]),
    "acpx_coll_reduce_create": (c_int, [c_void_p, c_int, GA, GA, c_size_t, c_int, c_int, COLL]),
    "acpx_coll_gather_create": (c_int, [c_void_p, c_int, GA, GA, c_size_t, COLL]),
    "acpx_coll_scatter_create": (c_int, [c_void_p, c_int, GA, GA, c_size_t, COLL]),
    "acpx_coll_allgather_create": (c_int, [c_void_p, GA, GA, c_size_t, COLL]),
    "acpx_coll_alltoall_create": (c_int, [c_void_p, GA, GA, c_size_t, COLL]),
    "acpx_coll_gatherv_create": (c_int, [c_void_p, c_int, GA, POINTER(Block), GA, c_size_t, COLL]),
    "acpx_coll_scatterv_create": (c_int, [c_void_p, c_int, GA, c_size_t, GA, POINTER(Block), COLL]),
    "acpx_coll_allgatherv_create": (c_int, [c_void_p, GA, POINTER(Block), GA, COLL]),
    "acpx_coll_alltoallv_create": (c_int, [c_void_p, GA, POINTER(Block), GA, POINTER(Block), COLL]),
    "acpx_coll_neighbours_create": (c_int, [c_void_p, GA, GA, POINTER(Neighbour), c_int, COLL]),
    "acpx_coll_bcast_direct_create": (c_int, [c_void_p, c_void_p, c_size_t, c_uint, COLL]),
    "acpx_coll_bcast_buffered_create": (c_int, [c_void_p, c_size_t, COLL]),
    "acpx_coll_allgather_direct_create": (c_int, [c_void_p, c_void_p, c_size_t, c_uint, COLL]),
    "acpx_coll_allgather_buffered_create": (c_int, [c_void_p, c_size_t, COLL]),
    "acp_send_bcast_direct": (c_int, [c_void_p, c_size_t, c_size_t]),
    "acp_send_bcast_buffered": (c_int, [c_void_p, c_void_p, c_size_t]),
    "acp_send_allgather_direct": (c_int, [c_void_p, c_size_t, c_size_t]),
    "acp_send_allgather_buffered": (c_int, [c_void_p, c_void_p, c_size_t]),
    "acpx_coll_receive": (c_int64, [c_void_p, c_uint64]),
    "acpx_counter_create": (c_int, [GA, POINTER(c_void_p)]),
    "acpx_counter_ga": (GA, [c_void_p]),
    "acpx_counter_add": (HANDLE, [GA, c_uint64, HANDLE]),
    "acpx_counter_read": (c_int, [c_void_p, POINTER(c_uint64)]),
    "acpx_counter_wait": (c_int, [c_void_p, c_uint64, c_uint64]),
    "acpx_counter_reset": (c_int, [c_void_p, POINTER(c_uint64)]),
    "acpx_counter_free": (c_int, [c_void_p]),
    "acpx_coll_start": (c_int, [c_void_p]),
    "acpx_coll_test": (c_int, [c_void_p]),
    "acpx_coll_wait": (c_int, [c_void_p, c_uint64]),
    "acpx_coll_free": (c_int, [c_void_p]),
    "acpx_coll_failed_rank": (c_int, [c_void_p]),
    "acpx_coll_describe": (c_int, [c_void_p, c_char_p, c_size_t]),
    "acpx_context_create": (c_int, [c_uint, POINTER(c_void_p)]),
    "acpx_context_bind": (c_int, [c_void_p]),
    "acpx_context_destroy": (c_int, [c_void_p]),
    "acpx_wait_until": (c_int, [c_void_p, c_size_t, c_int, c_uint64, c_uint64]),
    "acpx_wait_until_all": (c_int, [POINTER(Condition), c_size_t, c_uint64]),
    "acpx_wait_until_any": (c_int64, [POINTER(Condition), c_size_t, c_uint64]),
    "acpx_wait_until_some": (c_int64, [POINTER(Condition), c_size_t, POINTER(c_size_t), c_uint64]),
    "acpx_test": (c_int, [c_void_p, c_size_t, c_int, c_uint64]),
    "acpx_test_all": (c_int, [POINTER(Condition), c_size_t]),
    "acpx_test_any": (c_int64, [POINTER(Condition), c_size_t]),
    "acpx_test_some": (c_int64, [POINTER(Condition), c_size_t, POINTER(c_size_t)]),
    "acp_complete": (None, [HANDLE]),
    "acp_inquire": (c_int, [HANDLE]),
    "acpx_register_memory": (KEY, [c_void_p, c_size_t, c_int, c_uint]),
    "acpx_query_heap_ga": (GA, [c_int]),
    "acpx_starter_size": (c_size_t, []),
    "acpx_heap_size": (c_size_t, []),
    "acpx_status": (c_int, [HANDLE]),
    "acpx_strerror": (c_char_p, [c_int]),
    "acpx_set_error_mode": (c_int, [c_int]),
    "acpx_peer_state": (c_int, [c_int]),
    "acpx_query_node": (c_int, [c_int]),
    "acp_cas4": (HANDLE, [GA, GA, c_uint32, c_uint32, HANDLE]),
    "acp_cas8": (HANDLE, [GA, GA, c_uint64, c_uint64, HANDLE]),
}
for _name in ("swap", "add", "xor", "or", "and"):
    PROTOTYPES[f"acp_{_name}4"] = (HANDLE, [GA, GA, c_uint32, HANDLE])
    PROTOTYPES[f"acp_{_name}8"] = (HANDLE, [GA, GA, c_uint64, HANDLE])
for _name in ("allreduce", "reduce_scatter", "scan", "exscan"):
    PROTOTYPES[f"acpx_coll_{_name}_create"] = (c_int, [c_void_p, GA, GA, c_size_t, c_int, c_int, COLL])


def load() -> ctypes.CDLL:
    library = ctypes.CDLL(LIBRARY, use_errno=True)
    for name, (result, arguments) in PROTOTYPES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


lib = load()


class Session:
    """Whether this process has been a rank, and its process id at that time."""
    begun = False
    pid = 0

    @classmethod
    def begin(cls) -> None:
        cls.begun, cls.pid = True, os.getpid()


def is_child() -> bool:
    """True in a process that a rank has forked."""
    return Session.begun and Session.pid != os.getpid()


def no_rank() -> Error:
    """Return the exception for a process that is not a rank."""
    if not Session.begun:
        return Error("not a rank yet: call init()")
    if is_child():
        return Error("not a rank: this process is a child of one, made by fork")
    return Error("not a rank any more: the job was left")


def rank_or_raise() -> int:
    """Return the rank of this process, or raise an exception if it has none."""
    rank = lib.acp_rank()
    if rank < 0:
        raise no_rank()
    return rank


def failed(what: str) -> Error:
    """Return the exception for a call that has just failed, with its errno if it has set one."""
    number = ctypes.get_errno()
    return Error(number, f"{what}: {os.strerror(number)}") if number else Error(f"{what} failed")


def check(what: str, result: int) -> int:
    """Return the result of a call, or raise an exception if it is negative."""
    if result < 0:
        raise failed(what)
    return result


def integer(value, what: str) -> int:
    """Return the value as an int; any type that can be used as an index is accepted."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{what} must be an int, not {type(value).__name__}") from None


def number(value, bits: int, what: str) -> int:
    """Return the value as an int that a C type of so many bits can hold; ctypes would truncate
    it."""
    value = integer(value, what)
    if not 0 <= value < 1 << bits:
        raise ValueError(f"{what} must be from 0 to {(1 << bits) - 1}, not {value}")
    return value


def signed(value, what: str, bits: int = 32) -> int:
    """Return the value as an int that fits into a C int, or into another signed type."""
    value = integer(value, what)
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(f"{what} {value} is out of range" if bits != 32 else f"{what} {value} is no rank or color")
    return value
