/* SPDX-License-Identifier: MIT */
/* Memory in the heap of the own rank to which kernels write, from its allocation to its end. */
#ifndef LIBACP_MEMORY_H
#define LIBACP_MEMORY_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acp.h"
#include "core/process.h"
#include "core/wait_until.h"
#include "heap/heap.h"

#define LIBACP_MEMORY_LINE	64u	/* bytes of a cache line */

struct libacp_memory {
	acp_ga_t ga;		/* of its first byte, at the beginning of a cache line */
	acp_ga_t block;		/* from acp_malloc() */
	uint64_t joined;	/* libacp.joins: it belongs to this one */
};

/**
 * libacp_memory_alloc() - allocate memory
 * @m: the memory
 * @size: in bytes, less than the size of an address space by a cache line
 * @quiet: print no message if there is no room
 *
 * Preserves errno. acp_free() frees the block.
 *
 * Context: a thread that has called libacp_watch_enter().
 * Return: its address, or NULL.
 */
static inline void *libacp_memory_alloc(struct libacp_memory *m, uint64_t size, bool quiet)
{
	const int former = errno;
	void *address = NULL;

	m->joined = libacp.joins;
	size += LIBACP_MEMORY_LINE - 8;
	m->block = quiet ? libacp_heap_take(size, acp_rank()) : acp_malloc(size, acp_rank());
	m->ga = (m->block + LIBACP_MEMORY_LINE - 1) & ~(acp_ga_t)(LIBACP_MEMORY_LINE - 1);
	if (m->block != ACP_GA_NULL)
		address = acp_query_address(m->ga);
	errno = former;
	return address;
}

/**
 * libacp_memory_enter() - begin to use memory
 * @m: the memory
 *
 * Context: any thread; does not block.
 * Return: 0: libacp_watch_leave() must follow. -ENOTCONN: it went with the job.
 */
static inline int libacp_memory_enter(const struct libacp_memory *m)
{
	if (!libacp_watch_enter())
		return -ENOTCONN;
	if (m->joined == libacp.joins)
		return 0;
	libacp_watch_leave();
	return -ENOTCONN;
}

#endif /* LIBACP_MEMORY_H */
