# SPDX-License-Identifier: MIT
"""Counters that all ranks add to. See acpx_counter_create(3).

counter_add() in access.py adds to the global address of a counter, behind other accesses. Any thread
may call any function, but free() only if no other thread uses the counter.
"""
from __future__ import annotations

import ctypes
import errno
from typing import Optional

from .binding import is_child, lib, number, rank_or_raise
from .wait import nanoseconds, result_or_none


class Counter:
    """A counter of this rank, from 0: the 8 bytes at the global address word, or, without it, in its
    heap. ga is its global address, for counter_add() and wait_word(). A with statement frees it at
    its end.

    All functions raise Error: EINVAL (it was freed), EIO (it was revoked), ENOTCONN (the job was
    left), ECANCELED (the job was aborted)."""

    def __init__(self, word: int = 0) -> None:
        rank_or_raise()
        self._handle, self.ga = ctypes.c_void_p(), 0
        result_or_none("Counter", lib.acpx_counter_create(number(word, 64, "word"), ctypes.byref(self._handle)))
        self.ga = lib.acpx_counter_ga(self._handle)

    def read(self) -> int:
        """Return the value."""
        value = ctypes.c_uint64()
        result_or_none("read", lib.acpx_counter_read(self._handle, ctypes.byref(value)))
        return value.value

    def wait(self, value: int, timeout: Optional[float] = None) -> bool:
        """Wait until the counter is at least value. Returns False after the timeout, in seconds."""
        result = lib.acpx_counter_wait(self._handle, number(value, 61, "value"), nanoseconds(timeout))
        return result_or_none("wait", result, errno.ETIMEDOUT) is not None

    def reset(self) -> int:
        """Set it to 0, and return what it was."""
        value = ctypes.c_uint64()
        result_or_none("reset", lib.acpx_counter_reset(self._handle, ctypes.byref(value)))
        return value.value

    def free(self) -> None:
        """Free it; a second call does nothing."""
        handle, self._handle, self.ga = self._handle, ctypes.c_void_p(), 0
        if handle:
            result_or_none("free", lib.acpx_counter_free(handle))

    def __enter__(self) -> Counter:
        return self

    def __exit__(self, *exception: object) -> None:
        if not is_child():
            self.free()
