/* SPDX-License-Identifier: MIT */
/*
 * Scratch memory: memory of this process that global memory accesses can read and write, used by
 * the middle layer for staging.
 *
 * Blocks are registered memory and not part of the heap, so that a full heap does not prevent
 * reading. Free blocks are cached, so that a call normally needs no registration, which is a system
 * call. At most LIBACP_SCRATCH_KEEP bytes are cached; acp_finalize() and acp_reset() free them.
 *
 * Thread-safe. No lock is held on return or while waiting for another rank.
 */
#ifndef LIBACP_SCRATCH_H
#define LIBACP_SCRATCH_H

#include <stddef.h>

#include "acp.h"

#pragma GCC visibility push(hidden)

/* limit of cached blocks per process, bytes */
#define LIBACP_SCRATCH_KEEP	((size_t)1 << 20)

/*
 * Return a block of at least @size bytes with undefined contents, and its global address in *ga,
 * both aligned to 64. NULL if memory is exhausted. The caller must return it by
 * libacp_scratch_put().
 */
void *libacp_scratch_get(size_t size, acp_ga_t *ga);

/*
 * Return a block; NULL is ignored. All accesses to it must be complete, because it may be reused
 * immediately.
 */
void libacp_scratch_put(void *block);

/*
 * Called when the process stops being a rank: free the cached blocks. Blocks in use are freed when
 * they are returned.
 */
void libacp_scratch_close(void);

#pragma GCC visibility pop

#endif /* LIBACP_SCRATCH_H */
