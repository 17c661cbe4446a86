# SPDX-License-Identifier: MIT
"""Sleep until other ranks have changed words of this rank's memory. See acpx_wait_until(3).

A word is specified by its global address, which must be in memory of this rank: starter memory,
heap, or registered memory. Its size is 4 or 8 bytes, and it is aligned to its size. compare is
EQ, NE, GT, GE, LT or LE: word > value, for example; unsigned, or signed if SIGNED is added.
Conditions are tuples (ga, compare, value) or (ga, compare, value, size); one with a ga of 0 is
ignored. Timeouts are seconds, None means no limit. Signals do not interrupt a wait:
KeyboardInterrupt is raised when it returns. Any thread may call any function; other threads run
while one waits.
"""
from __future__ import annotations

import ctypes
import errno
import os
from typing import Iterable, List, Optional, Tuple, Union

from .binding import Condition, Error, integer, lib, number, rank_or_raise

Conditions = Iterable[Union[Tuple[int, int, int], Tuple[int, int, int, int]]]

EQ, NE, GT, GE, LT, LE, SIGNED = 1, 2, 3, 4, 5, 6, 8     # ACPX_CMP_*
FOREVER = 2 ** 64 - 1


def _flag(ga: int) -> Optional[int]:
    rank_or_raise()
    ga = number(ga, 64, "ga")
    if not ga:
        return None
    address = lib.acp_query_address(ga)
    if not address:
        raise LookupError(f"{ga:#x} is not within memory of this rank")
    return address


def _value(value: int) -> int:
    value = integer(value, "value")
    if not -1 << 63 <= value < 1 << 64:
        raise ValueError(f"value {value} has more than 64 bits")
    return value % (1 << 64)


def _condition(ga: int, compare: int, value: int, size: int = 8) -> Condition:
    return Condition(_flag(ga), _value(value), number(size, 31, "size"), number(compare, 31, "compare"))


def _conditions(conditions: Conditions) -> tuple:
    rank_or_raise()
    array = [_condition(*c) for c in conditions]
    return (Condition * len(array))(*array), len(array)


def nanoseconds(timeout: Optional[float]) -> int:
    """Return a timeout in seconds as nanoseconds."""
    if timeout is not None and not isinstance(timeout, (int, float)):
        raise TypeError(f"timeout must be a number of seconds or None, not {type(timeout).__name__}")
    return FOREVER if timeout is None else int(max(0, min(timeout * 1e9, FOREVER)))


def result_or_none(what: str, result: int, *none: int) -> Optional[int]:
    """Return the result of a call; None for errors that are a regular answer."""
    if result >= 0:
        return result
    if -result in none:
        return None
    raise Error(-result, f"{what}: {os.strerror(-result)}")


def _some(what: str, function, conditions: Conditions, *timeout: int) -> List[int]:
    array, count = _conditions(conditions)
    indices = (ctypes.c_size_t * max(count, 1))()
    found = result_or_none(what, function(array, count, indices, *timeout), errno.ETIMEDOUT)
    return list(indices[:found or 0])


def wait_until(ga: int, compare: int, value: int, size: int = 8, timeout: Optional[float] = None) -> bool:
    """Sleep until the comparison of the word at ga with value is true. Returns False after the
    timeout.

    Raises Error: EINVAL (not a word of this rank's memory, no such comparison), ECANCELED (the
    job was aborted)."""
    if not ga:
        raise ValueError("wait_until: no address")
    result = lib.acpx_wait_until(_flag(ga), number(size, 31, "size"), number(compare, 31, "compare"), _value(value),
                                 nanoseconds(timeout))
    return result_or_none("wait_until", result, errno.ETIMEDOUT) is not None


def wait_until_all(conditions: Conditions, timeout: Optional[float] = None) -> bool:
    """Sleep until each condition has been true at some time. Returns False after the timeout.
    Raises the exceptions of wait_until()."""
    return result_or_none("wait_until_all", lib.acpx_wait_until_all(*_conditions(conditions), nanoseconds(timeout)),
                   errno.ETIMEDOUT) is not None


def wait_until_any(conditions: Conditions, timeout: Optional[float] = None) -> Optional[int]:
    """Sleep until a condition is true. Returns the index of the first one, or None after the
    timeout.

    Raises the exceptions of wait_until(), and ENOENT if all conditions are ignored."""
    return result_or_none("wait_until_any", lib.acpx_wait_until_any(*_conditions(conditions), nanoseconds(timeout)),
                   errno.ETIMEDOUT)


def wait_until_some(conditions: Conditions, timeout: Optional[float] = None) -> List[int]:
    """Sleep until conditions are true. Returns the list of their indices; it is empty after the
    timeout, or if all conditions are ignored."""
    return _some("wait_until_some", lib.acpx_wait_until_some, conditions, nanoseconds(timeout))


def test(ga: int, compare: int, value: int, size: int = 8) -> bool:
    """Return whether the comparison of the word at ga with value is true. Does not wait."""
    if not ga:
        raise ValueError("test: no address")
    return result_or_none("test", lib.acpx_test(_flag(ga), number(size, 31, "size"), number(compare, 31, "compare"),
                                         _value(value))) == 1


def test_all(conditions: Conditions) -> bool:
    """Return whether all conditions are true. Does not wait."""
    return result_or_none("test_all", lib.acpx_test_all(*_conditions(conditions))) == 1


def test_any(conditions: Conditions) -> Optional[int]:
    """Return the index of the first true condition, or None. Does not wait. Raises ENOENT if all
    conditions are ignored."""
    return result_or_none("test_any", lib.acpx_test_any(*_conditions(conditions)), errno.EAGAIN)


def test_some(conditions: Conditions) -> List[int]:
    """Return the list of the indices of all true conditions. Does not wait."""
    return _some("test_some", lib.acpx_test_some, conditions)
