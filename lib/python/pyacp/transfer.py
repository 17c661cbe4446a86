# SPDX-License-Identifier: MIT
"""Persistent broadcasts and allgathers of arrays. See acp_create_bcast_direct(3).

Methods of Group create a Transfer; all members call them. Each send has another part of one array
(direct), or another array (buffered). Arrays are objects with a writable buffer. An allgather's array
has a part for each member, in their order. Sizes and offsets are bytes.
"""
from __future__ import annotations

import ctypes
import errno
from typing import Any, Optional

from .binding import failed, lib, number
from .collective import Collective, _part
from .memory import WRITABLE, PyBuffer, _get_buffer, _release_buffer
from .wait import nanoseconds, result_or_none

ROOT_DRIVEN = 1             # ACPX_ROOT_DRIVEN


class Pinned:
    """The memory of an object, which does not move until release()."""

    def __init__(self, buffer: Any) -> None:
        self._held = PyBuffer()
        _get_buffer(buffer, self._held, WRITABLE)
        self.address, self.nbytes = self._held.buf, self._held.len

    def release(self) -> None:
        """Let it go; a second call does nothing."""
        if self.address is not None:
            self.address = None
            _release_buffer(self._held)


class Transfer(Collective):
    """A broadcast or an allgather of arrays. send() and receive(), or wait(), any number of times,
    then free(). A with statement waits for what was sent, and frees, at its end.

    All members call send() with the same arguments; if the root drives a broadcast, only the root.
    Until a send has ended, neither write to what it sends nor read what it receives."""

    def __init__(self, what: str, group: Any, memory: Optional[Pinned], *arguments: object) -> None:
        self._members, self._sent, self._array = len(group), False, memory
        super().__init__(what, self, getattr(lib, f"acpx_coll_{what}_create"), group._handle, *arguments)

    def send(self, array: Any = None, offset: int = 0, size: Optional[int] = None) -> None:
        """Begin to send an array (buffered), or size bytes at offset of the array, or of the part of
        each member (direct); without a size, all up to its end. Does not wait."""
        if self._what.endswith("_buffered"):
            self._send_array(Pinned(array))
        elif array is not None:
            raise TypeError("the array was named when this was created")
        else:
            offset = number(offset, 63, "offset")
            size = max(self._share() - offset, 0) if size is None else number(size, 63, "size")
            self._send(offset, size)

    def receive(self, timeout: Optional[float] = None) -> Optional[int]:
        """Wait until the send has ended here, and return its size; None after the timeout, in seconds.
        If the root drives a broadcast, others wait for the next bytes, and get their number."""
        return result_or_none(self._what, lib.acpx_coll_receive(self._own(), nanoseconds(timeout)), errno.ETIMEDOUT)

    def release(self) -> None:
        """Called when it is freed."""
        if self._array is not None:
            self._array.release()

    def _left(self) -> None:
        self.release()

    def _share(self) -> int:
        """Return the bytes of the array, or of the part of each member."""
        nbytes = self._array.nbytes if self._array else 0
        return _part("array", nbytes, self._members) if self._what.startswith("allgather") else nbytes

    def _send(self, *arguments: object) -> None:
        if getattr(lib, f"acp_send_{self._what}")(self._own(), *arguments) != 0:
            raise failed(self._what)
        self._sent = True

    def _send_array(self, array: Pinned) -> None:
        before, self._array = self._array, array
        try:
            self._send(array.address, self._share())
        except BaseException:
            self._array = before
            array.release()
            raise
        if before is not None:
            before.release()

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        if kind is None and not self._sent:
            self.free()         # nothing is under way
        else:
            super().__exit__(kind, value, trace)


class Transfers:
    """The transfers of a Group, whose member 0 is the root."""
    _handle: ctypes.c_void_p

    def _direct(self, what: str, array: Any, root_driven: bool) -> Transfer:
        memory = Pinned(array)
        try:
            return Transfer(what, self, memory, memory.address, memory.nbytes, ROOT_DRIVEN if root_driven else 0)
        except BaseException:
            memory.release()
            raise

    def bcast_direct(self, array: Any, root_driven: bool = False) -> Transfer:
        """Return a Transfer that copies parts of the root's array to the same places of others. With
        root_driven, the root alone sends, and others only receive, or not even that."""
        return self._direct("bcast_direct", array, root_driven)

    def bcast_buffered(self, buffersize: int) -> Transfer:
        """Return a Transfer that copies arrays of the root to those of others, through buffers of so
        many bytes."""
        return Transfer("bcast_buffered", self, None, number(buffersize, 63, "buffersize"))

    def allgather_direct(self, array: Any, root_driven: bool = False) -> Transfer:
        """Return a Transfer that copies parts of each member's part of the array to all others. With
        root_driven, each member does so when it sends, whether others do or not."""
        return self._direct("allgather_direct", array, root_driven)

    def allgather_buffered(self, buffersize: int) -> Transfer:
        """Return a Transfer that copies each member's part of an array to those of all others."""
        return Transfer("allgather_buffered", self, None, number(buffersize, 63, "buffersize"))
