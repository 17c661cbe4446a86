# SPDX-License-Identifier: MIT
"""Match lists: messages into posted receives, by sender and tag. See acpx_match_create(3).

send() in access.py sends to the global address of a match list. Timeouts are seconds, None means no
limit. Any thread may call any function, but only one at a time those of a Receive, and free() only
if no other thread uses the list; other threads run while one waits.
"""
from __future__ import annotations

import ctypes
import errno
from typing import Iterable, Optional

from .binding import MatchLimits, MessageInfo, lib, number, signed
from .mailbox import Message, Receiver
from .wait import nanoseconds, result_or_none

ANY_RANK = -1               # ACPX_ANY_RANK
MASKS_MAX = 4
STAYS = (-errno.ETIMEDOUT, -errno.EBUSY, -errno.ECANCELED, -errno.ENOTCONN)     # the receive has not ended


class Receive:
    """A posted receive: see MatchList.post()."""

    def __init__(self, matches: MatchList, handle: ctypes.c_void_p) -> None:
        self._matches, self._handle = matches, handle

    def _own(self) -> ctypes.c_void_p:
        """Return the receive for C, NULL if it went with its list."""
        return self._handle if self._matches.ga else ctypes.c_void_p()

    def wait(self, timeout: Optional[float] = None) -> Optional[Message]:
        """Wait until the message is in the buffer. Returns the message, without its data, or None
        after the timeout; then the receive remains posted.

        If size is more than the room of the buffer, the message was truncated. Raises Error, after
        which the receive has ended: ECONNRESET (the sender failed in the middle of the message),
        EFAULT (the buffer is not registered any more, or not for writing), EINVAL (it has ended
        before)."""
        info = MessageInfo(rank=ANY_RANK)
        try:
            result = lib.acpx_receive_wait(self._own(), ctypes.byref(info), nanoseconds(timeout))
            if result not in STAYS:
                self._forget()
        except BaseException:       # of a signal handler, before or after the receive has ended
            if info.rank != ANY_RANK:
                self._forget()
            raise
        if result_or_none("wait", result, errno.ETIMEDOUT) is None:
            return None
        return Message(b"", info.size, info.tag, info.rank)

    def cancel(self) -> bool:
        """Withdraw the receive, which ends. Returns False if it is too late: wait() for it."""
        # A signal handler may raise an exception after its end: then its handle may be another's.
        handle, self._handle = self._own(), ctypes.c_void_p()
        result = lib.acpx_receive_cancel(handle)
        if result in STAYS:
            self._handle = handle
        return result_or_none("cancel", result, errno.EBUSY) is not None

    def _forget(self) -> None:
        self._handle = ctypes.c_void_p()


class MatchList(Receiver):
    """Posted receives of this rank, and nbytes in its heap for messages that none of them accepts.

    receives may be posted at a time, and messages kept. masks has up to 4 values that the argument
    ignore of the functions may have; without any, 0. ga is the global address for send(). A with
    statement frees the list at its end. All functions raise Error: ENOMEM (the heap is full), EDQUOT
    (a limit set by the administrator), ENOSPC (as many receives are posted as may be), ENOTCONN (the
    job was left), EBADMSG (other ranks have overwritten the list), ECANCELED (the job was aborted),
    EINVAL (an argument out of range; the list was freed)."""
    _free = "acpx_match_free"

    def __init__(self, nbytes: int, receives: int = 64, messages: int = 64, masks: Iterable[int] = ()) -> None:
        super().__init__()
        mask = [number(m, 64, "mask") for m in masks]
        if len(mask) > MASKS_MAX:
            raise ValueError(f"{len(mask)} masks, not {MASKS_MAX} at most")
        limits = MatchLimits(number(nbytes, 63, "nbytes"), number(receives, 32, "receives"),
                             number(messages, 32, "messages"), len(mask), (ctypes.c_uint64 * MASKS_MAX)(*mask))
        result_or_none("MatchList", lib.acpx_match_create(ctypes.byref(limits), ctypes.byref(self._handle)))
        self.ga = lib.acpx_match_ga(self._handle)

    def post(self, buffer: int, room: int, tag: int = 0, rank: int = ANY_RANK, ignore: int = 0) -> Receive:
        """Post a receive, which gets a message of rank, or of any, whose tag equals tag in all bits
        but those of ignore. buffer: the global address of room bytes of this rank, which must stay
        registered until the receive has ended. Does not wait."""
        receive = Receive(self, ctypes.c_void_p())
        result_or_none("post", lib.acpx_post(self._handle, *_selection(rank, tag, ignore), number(buffer, 64, "buffer"),
                                             number(room, 63, "room"), ctypes.byref(receive._handle)))
        return receive

    def probe(self, tag: int = 0, rank: int = ANY_RANK, ignore: int = 0,
              timeout: Optional[float] = 0) -> Optional[Message]:
        """Return the message that a receive with these arguments would get at once, without its
        data, and leave it there; None after the timeout. By default it does not wait."""
        info = MessageInfo()
        found = result_or_none("probe", lib.acpx_match_probe(self._handle, *_selection(rank, tag, ignore),
                                                             ctypes.byref(info), nanoseconds(timeout)), errno.ETIMEDOUT)
        return None if found is None else Message(b"", info.size, info.tag, info.rank)

    def mrecv(self, tag: int = 0, rank: int = ANY_RANK, ignore: int = 0,
              timeout: Optional[float] = None) -> Optional[Message]:
        """Wait for a message that no posted receive has accepted, and take it. Returns None after
        the timeout."""
        kept = self._pop(lambda m: rank in (ANY_RANK, m.rank) and not (m.tag ^ tag) & ~ignore)
        if kept:
            return kept
        info = MessageInfo()
        try:
            found = lib.acpx_mprobe(self._handle, *_selection(rank, tag, ignore), ctypes.byref(info),
                                    nanoseconds(timeout))
            if result_or_none("mrecv", found, errno.ETIMEDOUT) is None:
                return None
            return self._take(info, "mrecv", lib.acpx_mrecv, None, 0)
        except BaseException:       # of a signal handler: a later call returns the message
            if info.data:
                self._kept.append(self._take(info, "mrecv", lib.acpx_mrecv, None, 0))
            raise


def _selection(rank: int, tag: int, ignore: int) -> tuple:
    return signed(rank, "rank"), number(tag, 64, "tag"), number(ignore, 64, "ignore")
