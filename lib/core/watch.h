/* SPDX-License-Identifier: MIT */
/* Waking threads that wait until words change. */
#ifndef LIBACP_WATCH_H
#define LIBACP_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acp.h"
#include "acp_abi.h"

#pragma GCC visibility push(hidden)

/*
 * Wake threads that wait for a change of @size bytes at the address @at, which is @ga. Returns
 * true, so that callers can tail-call it.
 */
bool libacp_watch_wake(struct acp_watch *watch, acp_ga_t ga, const void *at, uint64_t size);

_Static_assert(offsetof(struct acp_watch, waits) == offsetof(struct acp_watch, armed) + 4 &&
	       offsetof(struct acp_watch, armed) % 8 == 0, "read in one go");

/**
 * libacp_watch_armed() - does anything wait for changes of memory?
 * @watch: that of the owner of the memory
 *
 * To be called after each write to memory with global addresses on this node. The fence pairs with
 * the one in arm() in wait_until.c, and with that of the kernel.
 *
 * Context: any.
 * Return: true if a thread of the owner may be asleep until such memory changes, or a command of
 * the owner may wait for it (acpx_wait_word).
 */
static inline bool libacp_watch_armed(const struct acp_watch *watch)
{
	typedef uint64_t __attribute__((may_alias)) both_t;	/* "armed" and "waits" */

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __builtin_expect(__atomic_load_n((const both_t *)(const void *)&watch->armed,
						__ATOMIC_RELAXED) != 0, 0);
}

/*
 * Wake waiting threads, if any, after a write. Returns true, so that the call of
 * libacp_watch_wake() is a tail call and costs nothing when it is not taken.
 */
static inline bool libacp_watch_written(struct acp_watch *watch, acp_ga_t ga, const void *at,
					uint64_t size)
{
	if (libacp_watch_armed(watch))
		return libacp_watch_wake(watch, ga, at, size);
	return true;
}

/**
 * libacp_watch_wake_rank() - wake all threads that wait until words of a rank's memory change
 * @rank: number of a rank on this node; others are ignored
 *
 * Preserves errno.
 *
 * Context: any thread of a rank; does not block.
 */
void libacp_watch_wake_rank(uint32_t rank);

#pragma GCC visibility pop

#endif /* LIBACP_WATCH_H */
