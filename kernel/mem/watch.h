/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sleeping until words of a rank's memory are written; the protocol is described
 * in acp_abi.h (struct acp_watch).
 *
 * Each write to a region ends with acp_watch_written(), which is a full barrier
 * and a load if nothing waits.  Otherwise threads that wait for one of the
 * written cache lines are woken and check their words again.
 *
 * Commands wait for words, too (ACP_OP_WAIT; exec/word.h): queues that do so are
 * counted beside "armed".  After a write to such a line, a tasklet of the rank
 * (poller.c) lets its queues look at their words: never the writer itself, which
 * may be in the middle of a frame, or drain another queue.
 */
#ifndef ACP_WATCH_H
#define ACP_WATCH_H

#include "acp_abi.h"
#include "region.h"

/* Wake the owner's waiters if they wait for [offset, offset + size), which was just written. */
void acp_watch_look(struct acp_region *r, u64 offset, u64 size);

/* Does anything wait for memory of the rank?  "armed" and "waits", in one load. */
static inline bool acp_watch_is_awaited(const struct acp_watch *w)
{
	BUILD_BUG_ON(offsetof(struct acp_watch, armed) % sizeof(u64));
	BUILD_BUG_ON(offsetof(struct acp_watch, waits) !=
		     offsetof(struct acp_watch, armed) + sizeof(w->armed));
	return READ_ONCE(*(const u64 *)&w->armed);
}

/* [offset, offset + size) was written.  The caller has a reference in r->users.  Any context. */
static inline void acp_watch_written(struct acp_region *r, u64 offset, u64 size)
{
	smp_mb();	/* pairs with the waiter's fence between setting armed and its check */
	if (unlikely(acp_watch_is_awaited(r->owner->watch)))
		acp_watch_look(r, offset, size);
}

/**
 * acp_watch_scattered() - blocks anywhere in a region were written: wake waiters
 * @r: the region; the caller has a reference in r->users
 *
 * Context: any.
 */
static inline void acp_watch_scattered(struct acp_region *r)
{
	acp_watch_written(r, 0, ACP_WATCH_LINES * 64);
}

/**
 * acp_watch_wake() - wake all waiters of a rank, unless its memory is gone
 * @rank: the rank; the caller keeps it from being freed, by a reference or RCU
 *
 * Context: any.
 */
void acp_watch_wake(struct acp_rank *rank);

/**
 * acp_watch_begin() - a queue begins to wait for a word
 * @rank: its rank
 * @offset: offset of the word in its region
 *
 * The caller sets queue->word before, and reads the word once more afterwards.
 *
 * Context: any; the rank's library region exists.
 */
void acp_watch_begin(struct acp_rank *rank, u64 offset);

/**
 * acp_watch_end() - a queue does not wait for a word any more
 * @rank: its rank
 * @offset: as for acp_watch_begin()
 *
 * Context: any; the rank's library region exists.
 */
void acp_watch_end(struct acp_rank *rank, u64 offset);

/**
 * acp_watch_gone() - memory of a rank has gone: commands that wait for words in it end
 * @rank: the rank, whose regions exist no longer than the rank
 *
 * Called when the region cannot be found any more, or is marked as revoked.
 *
 * Context: any.
 */
void acp_watch_gone(struct acp_rank *rank);

/**
 * acp_watch_gone_all() - a rank or a node has gone: commands of this node that named it may end
 * @job: the job
 *
 * Called when it is recorded that it has gone.
 *
 * Context: any.
 */
void acp_watch_gone_all(struct acp_job *job);

/**
 * acp_watch_wake_all() - wake all waiters of a job's ranks on this node
 * @job: the job
 *
 * Context: any.
 */
void acp_watch_wake_all(struct acp_job *job);

/**
 * acp_watch_wait() - sleep until the rank's count of wake-ups differs from @wakes
 * @rank: the rank; its file is open
 * @wakes: the count before the caller set "armed"
 * @timeout_ns: ns; 0: do not sleep; KTIME_MAX or more: no time-out
 *
 * Context: process, sleeps.
 * Return: 0; -ETIMEDOUT; -EINTR after a signal; -ECANCELED if the job was aborted.
 */
int acp_watch_wait(struct acp_rank *rank, u64 wakes, u64 timeout_ns);

/**
 * acp_watch_arm() - let poll() report when the rank's count of wake-ups differs from @wakes
 * @rank: the rank; its file is open
 * @wakes: the count before the caller set "armed"
 *
 * Context: process.
 */
void acp_watch_arm(struct acp_rank *rank, u64 wakes);

/**
 * acp_watch_disarm() - let poll() report no wake-ups any more
 * @rank: the rank; its file is open
 *
 * Context: process.
 */
void acp_watch_disarm(struct acp_rank *rank);

/**
 * acp_watch_changed() - does the count of wake-ups differ from that of acp_watch_arm()?
 * @rank: the rank; its file is open
 *
 * Context: any.
 * Return: true if it does; false also if nothing was armed.
 */
bool acp_watch_changed(const struct acp_rank *rank);

#endif /* ACP_WATCH_H */
