# SPDX-License-Identifier: MIT
"""Mailboxes: messages of any ranks into memory of the receiver. See acpx_mailbox_create(3).

send() in access.py sends to the global address of a mailbox. Timeouts are seconds, None means no
limit. Any thread may call any function, but free() only if no other thread uses the mailbox; other
threads run while one waits.
"""
from __future__ import annotations

import ctypes
import errno
from typing import NamedTuple, Optional

from .binding import MessageInfo, is_child, lib, number, rank_or_raise
from .wait import nanoseconds, result_or_none


class Message(NamedTuple):
    """A message. data is empty if it was not received; rank is that of its sender."""
    data: bytes
    size: int
    tag: int
    rank: int


class Mailbox:
    """Memory of nbytes in the heap of this rank that receives messages of all ranks.

    Each message takes 24 bytes and its size, rounded up to a multiple of 8, until it has been
    received. ga is the global address for send(). A with statement frees the mailbox at its end. All
    functions raise Error: ENOMEM (the heap is full), ENOTCONN (the job was left), EBADMSG (other
    ranks have overwritten the mailbox), ECANCELED (the job was aborted), EINVAL (nbytes out of
    range; the mailbox was freed)."""

    def __init__(self, nbytes: int) -> None:
        rank_or_raise()
        self._mailbox = ctypes.c_void_p()
        result_or_none("Mailbox", lib.acpx_mailbox_create(number(nbytes, 63, "nbytes"), 0, ctypes.byref(self._mailbox)))
        self.ga = lib.acpx_mailbox_ga(self._mailbox)

    def recv(self, timeout: Optional[float] = None) -> Optional[Message]:
        """Wait for a message and remove it from the mailbox. Returns None after the timeout."""
        info = MessageInfo()
        try:
            if result_or_none("recv", lib.acpx_recv_lend(self._mailbox, ctypes.byref(info), nanoseconds(timeout)),
                              errno.ETIMEDOUT) is None:
                return None
            # string_at() would take the size for a C int.
            data = bytes((ctypes.c_char * info.size).from_address(info.data))
        finally:            # also if a signal handler has raised an exception: the mailbox would never be empty
            if info.data:
                result_or_none("recv", lib.acpx_recv_return(self._mailbox, ctypes.byref(info)))
        return Message(data, info.size, info.tag, info.rank)

    def probe(self, timeout: Optional[float] = 0) -> Optional[Message]:
        """Return the message that recv() would return, without its data, and leave it in the
        mailbox; None after the timeout. By default it does not wait."""
        info = MessageInfo()
        if result_or_none("probe", lib.acpx_probe(self._mailbox, ctypes.byref(info), nanoseconds(timeout)),
                          errno.ETIMEDOUT) is None:
            return None
        return Message(b"", info.size, info.tag, info.rank)

    def free(self) -> None:
        """Free the mailbox; a second call does nothing. Messages in it are dropped.

        Waits for messages that are being written to it. Raises EBUSY if other threads receive, or
        if such a message takes too long: call again."""
        if not self._mailbox:
            return
        try:
            result_or_none("free", lib.acpx_mailbox_free(self._mailbox))
        except OSError as e:
            if e.errno == errno.EBUSY:
                raise
            self._forget()
            raise
        self._forget()

    def _forget(self) -> None:
        self._mailbox, self.ga = ctypes.c_void_p(), 0

    def __enter__(self) -> Mailbox:
        return self

    def __exit__(self, *exception: object) -> None:
        if not is_child():
            self.free()
