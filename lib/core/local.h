/* SPDX-License-Identifier: MIT */
/* Copies and atomics that the calling thread executes. */
#ifndef LIBACP_LOCAL_H
#define LIBACP_LOCAL_H

#include <stdbool.h>
#include <stdint.h>

#include "acp.h"
#include "core/mem.h"

#pragma GCC visibility push(hidden)

/**
 * libacp_local_close() - unmap the memory of all other ranks
 *
 * Context: the thread that leaves; no thread may use that memory any more. Takes no lock.
 */
void libacp_local_close(void);

/*
 * Copy an aligned word. The store becomes visible after previous stores (data before flag) and is
 * never torn.
 */
static inline void libacp_copy_word(void *dst, const void *src)
{
	__atomic_store_n((uint64_t *)dst, __atomic_load_n((const uint64_t *)src, __ATOMIC_ACQUIRE),
			 __ATOMIC_RELEASE);
}

/*
 * Fast path for the most frequent access: copy an aligned word within memory of this rank. @to
 * receives the destination, for the check of waiting threads. False: use libacp_local_copy().
 */
static inline bool libacp_local_copy_word(acp_ga_t dst, acp_ga_t src, char **to)
{
	const uint64_t dst_tag = libacp_mem_tag(dst), src_tag = libacp_mem_tag(src);
	char *from;

	if (!libacp_mem_find_word(dst, dst_tag, true, to) ||
	    !libacp_mem_find_word(src, src_tag, false, &from) ||
	    (((uintptr_t)*to | (uintptr_t)from) & (sizeof(uint64_t) - 1)))
		return false;
	libacp_copy_word(*to, from);
	return true;
}

/**
 * libacp_local_reach() - find bytes that this process can access
 * @ga: their global address
 * @size: their number
 * @write: is it to write to them?
 *
 * Context: any thread of a rank; may map memory of another rank of the node.
 * Return: their address, or NULL if this process cannot access them.
 */
void *libacp_local_reach(acp_ga_t ga, uint64_t size, bool write);

/**
 * libacp_local_reach_watched() - find bytes to write to, and who waits for their change
 * @ga: their global address
 * @size: their number
 * @watch: set to the structure that tells of threads that wait for changes of this memory
 *
 * Context: as libacp_local_reach().
 * Return: as libacp_local_reach().
 */
void *libacp_local_reach_watched(acp_ga_t ga, uint64_t size, struct acp_watch **watch);

/* Wake threads that wait for a change of these bytes, which the caller has just written. */
void libacp_local_written(acp_ga_t ga, uint64_t size);

/**
 * libacp_local_copy() - execute a copy in the calling thread
 * @dst: destination
 * @src: source
 * @size: bytes
 *
 * Context: any thread of a rank; may map memory of another rank of the node.
 * Return: false, without any effect, if this process cannot reach both ends or an argument is
 * invalid: the kernel must execute or fail it.
 */
bool libacp_local_copy(acp_ga_t dst, acp_ga_t src, uint64_t size);

/* The same for others. */
bool libacp_local_atomic(unsigned int op, acp_ga_t dst, acp_ga_t src, uint64_t a, uint64_t b);
bool libacp_local_signal(acp_ga_t dst, acp_ga_t src, uint64_t size, acp_ga_t flag,
			 uint64_t operand, bool add);

#pragma GCC visibility pop

#endif /* LIBACP_LOCAL_H */
