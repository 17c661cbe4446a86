# SPDX-License-Identifier: MIT
"""Mailboxes: messages of any ranks into memory of the receiver. See acpx_mailbox_create(3).

send() in access.py sends to the global address of a mailbox. Timeouts are seconds, None means no
limit. Any thread may call any function, but free() only if no other thread uses the mailbox; other
threads run while one waits.
"""
from __future__ import annotations

import ctypes
import errno
from typing import List, NamedTuple, Optional, TypeVar

from .binding import MessageInfo, is_child, lib, number, rank_or_raise
from .wait import nanoseconds, result_or_none

_Self = TypeVar("_Self", bound="Receiver")


class Message(NamedTuple):
    """A message. data is empty if it was not received; rank is that of its sender."""
    data: bytes
    size: int
    tag: int
    rank: int


class Receiver:
    """What a rank has created in its heap to receive messages. ga is the global address for send(). A
    with statement frees it at its end."""
    _free = ""              # the function of the library

    def __init__(self) -> None:
        rank_or_raise()
        self._handle, self.ga = ctypes.c_void_p(), 0
        self._kept: List[Message] = []      # of calls that took a message, but were interrupted

    def free(self) -> None:
        """Free it; a second call does nothing. Messages in it are dropped.

        Raises EBUSY if other threads use it, or if messages are being written to it: call again."""
        if not self._handle:
            return
        try:
            result_or_none("free", getattr(lib, self._free)(self._handle))
        except OSError as e:
            if e.errno == errno.EBUSY:
                raise
            self._forget()
            raise
        self._forget()

    def _forget(self) -> None:
        self._handle, self.ga = ctypes.c_void_p(), 0

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if not is_child():
            self.free()


class Mailbox(Receiver):
    """Memory of nbytes in the heap of this rank that receives messages of all ranks.

    Each message takes 24 bytes and its size, rounded up to a multiple of 8, until it has been
    received. ga is the global address for send(). A with statement frees the mailbox at its end. All
    functions raise Error: ENOMEM (the heap is full), ENOTCONN (the job was left), EBADMSG (other
    ranks have overwritten the mailbox), ECANCELED (the job was aborted), EINVAL (nbytes out of
    range; the mailbox was freed)."""
    _free = "acpx_mailbox_free"

    def __init__(self, nbytes: int) -> None:
        super().__init__()
        result_or_none("Mailbox", lib.acpx_mailbox_create(number(nbytes, 63, "nbytes"), 0, ctypes.byref(self._handle)))
        self.ga = lib.acpx_mailbox_ga(self._handle)

    def recv(self, timeout: Optional[float] = None) -> Optional[Message]:
        """Wait for a message and remove it from the mailbox. Returns None after the timeout."""
        if self._kept:
            return self._kept.pop(0)
        info = MessageInfo()
        try:
            if result_or_none("recv", lib.acpx_recv_lend(self._handle, ctypes.byref(info), nanoseconds(timeout)),
                              errno.ETIMEDOUT) is None:
                return None
            return self._take(info)
        except BaseException:       # of a signal handler: the next call returns the message
            if info.data:
                self._kept.append(self._take(info))
            raise

    def _take(self, info: MessageInfo) -> Message:
        # string_at() would take the size for a C int.
        data = bytes((ctypes.c_char * info.size).from_address(info.data))
        result_or_none("recv", lib.acpx_recv_return(self._handle, ctypes.byref(info)))
        info.data = None
        return Message(data, info.size, info.tag, info.rank)

    def probe(self, timeout: Optional[float] = 0) -> Optional[Message]:
        """Return the message that recv() would return, without its data, and leave it in the
        mailbox; None after the timeout. By default it does not wait."""
        if self._kept:
            return self._kept[0]._replace(data=b"")
        info = MessageInfo()
        if result_or_none("probe", lib.acpx_probe(self._handle, ctypes.byref(info), nanoseconds(timeout)),
                          errno.ETIMEDOUT) is None:
            return None
        return Message(b"", info.size, info.tag, info.rank)

    def free(self) -> None:
        """Free the mailbox; a second call does nothing. Messages in it are dropped.

        Waits for messages that are being written to it. Raises EBUSY if other threads receive, or
        if such a message takes too long: call again."""
        super().free()
