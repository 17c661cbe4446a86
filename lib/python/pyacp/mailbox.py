# SPDX-License-Identifier: MIT
"""Mailboxes: messages of any ranks into memory of the receiver. See acpx_mailbox_create(3).

send() in access.py sends to the global address of a mailbox. Timeouts are seconds, None means no
limit. Any thread may call any function, but free() only if no other thread uses the mailbox; other
threads run while one waits.
"""
from __future__ import annotations

import ctypes
import errno
from typing import Callable, List, NamedTuple, Optional, TypeVar

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
        # Before the call: a signal handler may raise an exception when it has returned.
        handle, ga, self._handle, self.ga = self._handle, self.ga, ctypes.c_void_p(), 0
        result = getattr(lib, self._free)(handle)
        if result == -errno.EBUSY:
            self._handle, self.ga = handle, ga
        result_or_none("free", result)

    def _pop(self, wanted: Callable[[Message], bool] = lambda _: True) -> Optional[Message]:
        """Return a message that a call took, but could not return."""
        for message in list(self._kept):
            if wanted(message):
                try:
                    self._kept.remove(message)
                except ValueError:          # another thread has it
                    continue
                return message
        return None

    def _take(self, info: MessageInfo, what: str, give_back: Callable[..., int], *how: object) -> Message:
        """Return a message whose memory is given back; from _pop() if a signal handler raises an exception."""
        # string_at() would take the size for a C int.
        data = bytes((ctypes.c_char * info.size).from_address(info.data))
        message, lent = Message(data, info.size, info.tag, info.rank), MessageInfo(info.data)
        self._kept.append(message)
        info.data = None
        result_or_none(what, give_back(self._handle, ctypes.byref(lent), *how))
        self._kept.remove(message)
        return message

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
        kept = self._pop()
        if kept:
            return kept
        info = MessageInfo()
        try:
            if result_or_none("recv", lib.acpx_recv_lend(self._handle, ctypes.byref(info), nanoseconds(timeout)),
                              errno.ETIMEDOUT) is None:
                return None
            return self._take(info, "recv", lib.acpx_recv_return)
        except BaseException:       # of a signal handler: the next call returns the message
            if info.data:
                self._kept.append(self._take(info, "recv", lib.acpx_recv_return))
            raise

    def probe(self, timeout: Optional[float] = 0) -> Optional[Message]:
        """Return the message that recv() would return, without its data, and leave it in the
        mailbox; None after the timeout. By default it does not wait."""
        for message in list(self._kept):
            return message._replace(data=b"")
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
