/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sleeping until somebody writes to words of a rank's memory; the protocol is
 * in acp_abi.h (struct acp_watch).
 *
 * What a region is written with ends with acp_watch_written(): a fence and a
 * load, as long as nobody sleeps.  Whoever sleeps and looks at what lies in the
 * lines that were written is woken, and decides for himself.
 */
#ifndef ACP_WATCH_H
#define ACP_WATCH_H

#include "acp_abi.h"
#include "region.h"

/* Wake the owner's waiters, if they look at [offset, offset + size), which was just written. */
void acp_watch_look(struct acp_region *r, u64 offset, u64 size);

/* With a user's reference to the region, any context. */
static inline void acp_watch_written(struct acp_region *r, u64 offset, u64 size)
{
	smp_mb();	/* pairs with the waiter's between armed and the words */
	if (unlikely(READ_ONCE(r->owner->watch->armed)))
		acp_watch_look(r, offset, size);
}

/* The same, for blocks anywhere in it. */
static inline void acp_watch_scattered(struct acp_region *r)
{
	acp_watch_written(r, 0, ACP_WATCH_LINES * 64);
}

/* Wake all who wait in this rank, if it is still there; all ranks of the job on this node. */
void acp_watch_wake(struct acp_context *ctx);
void acp_watch_wake_all(struct acp_job *job);

/*
 * Sleep until the count of wake-ups is not "wakes": 0, -EINTR, -ETIMEDOUT,
 * -ECANCELED.  By a process that has the file open.
 */
int acp_watch_wait(struct acp_context *ctx, u64 wakes, u64 timeout_ns);

#endif /* ACP_WATCH_H */
