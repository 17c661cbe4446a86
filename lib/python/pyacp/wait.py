# SPDX-License-Identifier: MIT
"""Sleeping until others have changed words of own memory. See acpx_wait_until(3).

A word is named by its global address, which must be of this rank: starter memory, heap, or memory it registered; its
size is 4 or 8 bytes, to which it is aligned. compare is EQ, NE, GT, GE, LT or LE: word > value; as unsigned numbers, or
with SIGNED added to it as signed ones. Conditions are tuples (ga, compare, value) or (ga, compare, value, size); one
whose ga is 0 is left out. Timeouts are seconds, None is for ever; signals do not end a wait, so KeyboardInterrupt comes
when it returns. Threads: all functions may be called by any of them; others run while one waits.
"""
import ctypes
import errno
import os

from .binding import Condition, Error, lib, number
from .memory import rank_or_raise

EQ, NE, GT, GE, LT, LE, SIGNED = 1, 2, 3, 4, 5, 6, 8     # ACPX_CMP_*
FOREVER = 2 ** 64 - 1


def _flag(ga):
    if not ga:
        return None
    address = lib.acp_query_address(number(ga, 64, "ga"))
    if not address:
        rank_or_raise()
        raise LookupError(f"{ga:#x} is not within memory of this rank")
    return address


def _value(value):
    value = value.__index__()
    if not -1 << 63 <= value < 1 << 64:
        raise ValueError(f"value {value} has more than 64 bits")
    return value % (1 << 64)


def _condition(ga, compare, value, size=8):
    return Condition(_flag(ga), _value(value), number(size, 31, "size"), number(compare, 31, "compare"))


def _conditions(conditions):
    array = [_condition(*c) for c in conditions]
    return (Condition * len(array))(*array), len(array)


def _nanoseconds(timeout):
    return FOREVER if timeout is None else int(max(0, min(timeout * 1e9, FOREVER)))


def _result(what, result, *none):
    """What a call returned; None for errors that are an answer."""
    if result >= 0:
        return result
    if -result in none:
        return None
    raise Error(-result, f"{what}: {os.strerror(-result)}")


def _some(what, function, conditions, *timeout):
    array, count = _conditions(conditions)
    indices = (ctypes.c_size_t * max(count, 1))()
    found = _result(what, function(array, count, indices, *timeout), errno.ETIMEDOUT)
    return list(indices[:found or 0])


def wait_until(ga, compare, value, size=8, timeout=None):
    """Sleep until the word at ga compares so with value. False: that long nothing has come. Raises Error: EINVAL (not
    a word of this rank's memory, no such comparison), ECANCELED (the job was aborted)."""
    if not ga:
        raise ValueError("wait_until: no address")
    result = lib.acpx_wait_until(_flag(ga), number(size, 31, "size"), number(compare, 31, "compare"), _value(value),
                                 _nanoseconds(timeout))
    return _result("wait_until", result, errno.ETIMEDOUT) is not None


def wait_until_all(conditions, timeout=None):
    """Sleep until each condition has held at some moment. False: not all have, that long. Raises as wait_until()."""
    return _result("wait_until_all", lib.acpx_wait_until_all(*_conditions(conditions), _nanoseconds(timeout)),
                   errno.ETIMEDOUT) is not None


def wait_until_any(conditions, timeout=None):
    """Sleep until a condition holds: the index of the first that does. None: that long none did. Raises as wait_until(),
    and ENOENT if all are left out."""
    return _result("wait_until_any", lib.acpx_wait_until_any(*_conditions(conditions), _nanoseconds(timeout)),
                   errno.ETIMEDOUT)


def wait_until_some(conditions, timeout=None):
    """Sleep until conditions hold: the indices of all that do, a list. Empty: that long none did, or all are left out."""
    return _some("wait_until_some", lib.acpx_wait_until_some, conditions, _nanoseconds(timeout))


def test(ga, compare, value, size=8):
    """Whether the word at ga compares so with value; does not wait."""
    if not ga:
        raise ValueError("test: no address")
    return _result("test", lib.acpx_test(_flag(ga), number(size, 31, "size"), number(compare, 31, "compare"),
                                         _value(value))) == 1


def test_all(conditions):
    """Whether all conditions hold; does not wait."""
    return _result("test_all", lib.acpx_test_all(*_conditions(conditions))) == 1


def test_any(conditions):
    """The index of the first condition that holds, or None; does not wait. Raises ENOENT if all are left out."""
    return _result("test_any", lib.acpx_test_any(*_conditions(conditions)), errno.EAGAIN)


def test_some(conditions):
    """The indices of all conditions that hold, a list; does not wait."""
    return _some("test_some", lib.acpx_test_some, conditions)
