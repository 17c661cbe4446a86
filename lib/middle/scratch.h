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

/**
 * libacp_scratch_get() - take a block of scratch memory
 * @size: smallest size of the block in bytes
 * @ga: receives the global address of the block, aligned to 64
 *
 * The contents are undefined. The caller must return the block by libacp_scratch_put().
 *
 * Context: any thread of a rank; does not wait for other ranks; a system call unless a free block
 * is cached.
 * Return: the block, aligned to 64; NULL if memory is exhausted or cannot be registered.
 */
void *libacp_scratch_get(size_t size, acp_ga_t *ga);

/**
 * libacp_scratch_put() - return a block of scratch memory
 * @block: the block, from libacp_scratch_get(); NULL is ignored
 *
 * All accesses to the block must be complete, because it may be reused immediately.
 *
 * Context: any thread, also after the process has stopped being a rank; does not wait for other
 * ranks.
 */
void libacp_scratch_put(void *block);

/**
 * libacp_scratch_close() - free the cached blocks when the process stops being a rank
 *
 * Blocks in use are freed when they are returned.
 *
 * Context: the thread that leaves, before libacp.state changes; does not wait for other ranks.
 */
void libacp_scratch_close(void);

#pragma GCC visibility pop

#endif /* LIBACP_SCRATCH_H */
