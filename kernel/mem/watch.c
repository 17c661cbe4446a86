// SPDX-License-Identifier: GPL-2.0-only
/* Sleeping until memory is written: see watch.h. */
#include <linux/rculist.h>
#include <linux/sched/signal.h>
#include <linux/wait.h>
#include "../job/job.h"
#include "watch.h"

static void wake(struct acp_rank *rank, struct acp_watch *w)
{
	/*
	 * A waiter that set armed before this xchg() has read the old count, so the increment ends
	 * its wait.  A waiter that sets it afterwards stays armed.
	 */
	xchg(&w->armed, 0);
	/* User space can write it: it is only compared, never trusted. */
	atomic64_inc((atomic64_t *)&w->wakes);
	if (wq_has_sleeper(&rank->watchers))
		wake_up_all(&rank->watchers);
	if (READ_ONCE(w->waits))
		tasklet_schedule(&rank->words);
}

/* Does a waiter wait for one of the lines of [address, address + size)? */
static bool looked_at(const struct acp_watch *w, u64 address, u64 size)
{
	u64 line = address >> 6, last = (address + size - 1) >> 6;

	if (!size)
		return false;
	if (last - line >= ACP_WATCH_LINES)
		return true;
	for (; line <= last; line++)
		if (READ_ONCE(w->lines[line % ACP_WATCH_LINES]))
			return true;
	return false;
}

void acp_watch_look(struct acp_region *r, u64 offset, u64 size)
{
	/* Offsets start at a page boundary, so offset and address select the same lines. */
	if (looked_at(r->owner->watch, offset, size))
		wake(r->owner, r->owner->watch);
}

void acp_watch_wake(struct acp_rank *rank)
{
	struct acp_region *r;

	rcu_read_lock();
	r = xa_load(&rank->regions, ACP_STAG_LIBRARY);
	if (r && !refcount_inc_not_zero(&r->users))
		r = NULL;
	rcu_read_unlock();
	if (!r)
		return;
	wake(rank, rank->watch);
	acp_region_put(r);
}

/* The line that counts the waits for the word at an offset of any region. */
static atomic_t *line_of(struct acp_watch *w, u64 offset)
{
	return (atomic_t *)&w->lines[(offset >> 6) % ACP_WATCH_LINES];
}

void acp_watch_begin(struct acp_rank *rank, u64 offset)
{
	atomic_inc(line_of(rank->watch, offset));
	atomic_inc((atomic_t *)&rank->watch->waits);
	smp_mb();	/* before the word is read: pairs with acp_watch_written() */
}

void acp_watch_end(struct acp_rank *rank, u64 offset)
{
	atomic_dec(line_of(rank->watch, offset));
	atomic_dec((atomic_t *)&rank->watch->waits);
}

void acp_watch_gone(struct acp_rank *rank)
{
	smp_mb();	/* what has changed, before "waits" is read: pairs with acp_watch_begin() */
	/* A rank that could not join has no library region. */
	if (rank->watch && READ_ONCE(rank->watch->waits))
		tasklet_schedule(&rank->words);
}

void acp_watch_gone_all(struct acp_job *job)
{
	struct acp_rank *rank;

	/* A rank in the list has its memory for a grace period at least. */
	rcu_read_lock();
	list_for_each_entry_rcu(rank, &job->rank_list, link)
		acp_watch_gone(rank);
	rcu_read_unlock();
}

void acp_watch_wake_all(struct acp_job *job)
{
	struct acp_rank *rank;

	rcu_read_lock();
	list_for_each_entry_rcu(rank, &job->rank_list, link)
		acp_watch_wake(rank);
	rcu_read_unlock();
}

static bool over(const struct acp_rank *rank, u64 wakes)
{
	return READ_ONCE(rank->watch->wakes) != wakes || READ_ONCE(rank->job->aborted);
}

void acp_watch_arm(struct acp_rank *rank, u64 wakes)
{
	WRITE_ONCE(rank->armed_at, wakes);
	/* Before "wakes" is read: pairs with wq_has_sleeper() in wake(). */
	smp_store_mb(rank->armed, true);
	/* epoll polls only after a wake-up, which may have come while nothing was armed. */
	if (over(rank, wakes))
		wake_up_all(&rank->watchers);
}

void acp_watch_disarm(struct acp_rank *rank)
{
	WRITE_ONCE(rank->armed, false);
}

bool acp_watch_changed(const struct acp_rank *rank)
{
	return READ_ONCE(rank->armed) && READ_ONCE(rank->watch->wakes) != READ_ONCE(rank->armed_at);
}

int acp_watch_wait(struct acp_rank *rank, u64 wakes, u64 timeout_ns)
{
	ktime_t timeout = min_t(u64, timeout_ns, KTIME_MAX);
	int err = -ETIME;

	if (timeout || over(rank, wakes))
		err = wait_event_interruptible_hrtimeout(rank->watchers, over(rank, wakes),
							 timeout);
	if (READ_ONCE(rank->job->aborted))
		return -ECANCELED;
	if (READ_ONCE(rank->watch->wakes) != wakes)
		return 0;
	return err == -ERESTARTSYS ? -EINTR : -ETIMEDOUT;
}
