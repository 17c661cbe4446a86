# SPDX-License-Identifier: MIT
"""Groups of ranks. See acpx_group_world(3).

Any thread may call any function; one thread of a process splits at a time, and other threads run
while one waits for the other members.
"""
from __future__ import annotations

import ctypes
import errno
from typing import Iterable, Iterator, Optional

from .binding import integer, lib, rank_or_raise, signed
from .collective import Collectives
from .transfer import Transfers
from .wait import result_or_none

NO_COLOR = -1               # ACPX_NO_COLOR


class Group(Collectives, Transfers):
    """A sequence of different ranks, the members, which are numbered from 0; without an argument,
    all ranks of the job.

    A range takes constant memory, and so does any other iterable whose ranks have equal distances.
    len(group), group[number], iteration and "rank in group" are those of a sequence, but negative
    numbers are not counted from the end. Creating a group is local: no other rank takes part.
    collective.py describes the collectives, such as allreduce(), transfer.py bcast_direct() and others."""

    def __init__(self, ranks: Optional[Iterable[int]] = None) -> None:
        self._handle = ctypes.c_void_p()
        rank_or_raise()
        if ranks is None:
            result = lib.acpx_group_world(ctypes.byref(self._handle))
        elif isinstance(ranks, range):
            first, stride = signed(ranks.start, "rank"), signed(ranks.step, "rank")
            result = lib.acpx_group_strided(first, stride, len(ranks), ctypes.byref(self._handle))
        else:
            listed = [signed(r, "rank") for r in ranks]
            result = lib.acpx_group_list((ctypes.c_int * len(listed))(*listed), len(listed),
                                         ctypes.byref(self._handle))
        result_or_none("Group", result)

    def __del__(self) -> None:
        handle, self._handle = getattr(self, "_handle", None), ctypes.c_void_p()
        if handle:
            lib.acpx_group_free(handle)

    def split(self, color: int, key: int = 0) -> Optional[Group]:
        """Return the group of all members with the same color, from 0, ordered by key and then as
        here; None if color is NO_COLOR. Waits until all members have called it.

        Raises Error: EINVAL (this rank is not a member), EHOSTDOWN, ETIMEDOUT, ECONNRESET (a member
        was lost), ENOMEM (also of the first member)."""
        part = object.__new__(Group)
        part._handle = ctypes.c_void_p()
        result_or_none("split", lib.acpx_group_split(self._handle, signed(color, "color"), signed(key, "key"),
                                                     ctypes.byref(part._handle)))
        return part if part._handle else None

    @property
    def rank(self) -> Optional[int]:
        """The number of this rank in the group, or None."""
        return result_or_none("rank", lib.acpx_group_rank(self._handle), errno.ENOENT)

    def find(self, rank: int) -> Optional[int]:
        """Return the number of a rank in the group, or None."""
        return result_or_none("find", lib.acpx_group_find(self._handle, signed(rank, "rank")), errno.ENOENT)

    def __len__(self) -> int:
        return lib.acpx_group_size(self._handle)

    def __getitem__(self, number: int) -> int:
        number = integer(number, "number")
        if not 0 <= number < len(self):
            raise IndexError(f"member {number} of a group of {len(self)}")
        return lib.acpx_group_translate(self._handle, number)

    def __iter__(self) -> Iterator[int]:
        return (self[i] for i in range(len(self)))

    def __contains__(self, rank: int) -> bool:
        return rank >= 0 and self.find(rank) is not None
