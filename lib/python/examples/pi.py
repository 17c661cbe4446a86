#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pi - all ranks integrate 4 / (1 + x^2), with work dealt out by an atomic counter

Shows: starter memory as the place where ranks meet; a counter on rank 0 from which each rank takes its next piece of
work by fetch-and-add, so that fast ranks do more; an array of its own that rank 0 registers without copying it, into
which the others put their sums. With NumPy the pieces are computed by it, else in Python.

    ACP_NPROCS=2 ACP_RANK=0 python3 pi.py & ACP_NPROCS=2 ACP_RANK=1 python3 pi.py; wait
"""
import array
import math

import pyacp as acp

try:
    import numpy
except ImportError:
    numpy = None

PIECES, POINTS = 64, 2000
STEP = 1 / (PIECES * POINTS)
COUNTER, FORMER, TABLE, MINE = 0, 1, 2, 3       # words of 8 bytes in starter memory


def integrate(piece):
    """The sum over one piece, midpoint rule."""
    first = piece * POINTS + 0.5
    if numpy:
        x = (numpy.arange(POINTS) + first) * STEP
        return float(numpy.sum(4 / (1 + x * x)))
    return sum(4 / (1 + ((first + i) * STEP) ** 2) for i in range(POINTS))


def take(here, words):
    """The number of the next piece that nobody has taken."""
    acp.complete(acp.add8(here + 8 * FORMER, acp.starter_ga(0) + 8 * COUNTER, 1))
    return words[FORMER]


def main():
    here, words = acp.starter_ga(acp.rank()), acp.starter().cast("Q")
    sums = array.array("d", bytes(8 * acp.procs()))
    with acp.register(sums) as table:
        words[TABLE] = table.ga
        acp.sync()                              # now everybody may ask rank 0 where its table is
        acp.complete(acp.copy(here + 8 * TABLE, acp.starter_ga(0) + 8 * TABLE, 8))
        total, pieces = 0.0, 0
        while (piece := take(here, words)) < PIECES:
            total, pieces = total + integrate(piece), pieces + 1
        words.cast("B").cast("d")[MINE] = total * STEP
        acp.complete(acp.copy(words[TABLE] + 8 * acp.rank(), here + 8 * MINE, 8))
        acp.sync()                              # all sums are there
    print(f"rank {acp.rank()}: {pieces} pieces", flush=True)
    if acp.rank() == 0:
        print(f"pi is about {sum(sums):.12f}, wrong by {abs(sum(sums) - math.pi):.1e}", flush=True)


with acp.job():
    main()
