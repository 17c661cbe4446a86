/* SPDX-License-Identifier: MIT */
/*
 * Scratch space: memory of this process that global memory accesses can
 * begin and end in, for what the middle layer stages on the way.
 *
 * Blocks are registered memory, not heap: a full heap stops nobody from
 * reading, and what is free is kept for the next one who asks, so that an
 * ordinary call costs no registration, which is a system call.  At most
 * LIBACP_SCRATCH_KEEP bytes are kept; acp_finalize() and acp_reset() give
 * them back.
 *
 * Safe among threads.  No lock is held on return, and none is held while
 * waiting for another rank.
 */
#ifndef LIBACP_SCRATCH_H
#define LIBACP_SCRATCH_H

#include <stddef.h>

#include "acp.h"

#pragma GCC visibility push(hidden)

#define LIBACP_SCRATCH_KEEP	((size_t)1 << 20)	/* bytes, free blocks of a process */

/*
 * A block of at least size bytes, with any contents, and its address in *ga,
 * both aligned to 64; or NULL if there is no memory.  It belongs to the
 * caller until libacp_scratch_put().
 */
void *libacp_scratch_get(size_t size, acp_ga_t *ga);

/*
 * Give a block back; NULL is nothing.  All accesses to it must be complete:
 * the next one who asks may get it at once.
 */
void libacp_scratch_put(void *block);

/* The process stops being a rank: give all free blocks back, forget the others. */
void libacp_scratch_close(void);

#pragma GCC visibility pop

#endif /* LIBACP_SCRATCH_H */
