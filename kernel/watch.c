// SPDX-License-Identifier: GPL-2.0-only
/* Sleeping until somebody writes: see watch.h. */
#include <linux/rculist.h>
#include <linux/sched/signal.h>
#include <linux/wait.h>
#include "job.h"
#include "watch.h"

static void wake(struct acp_context *ctx, struct acp_watch *w)
{
	/* Who has armed it before this has read the old count; who does later is armed. */
	xchg(&w->armed, 0);
	/* The user has it, too: it is not believed, only compared. */
	atomic64_inc((atomic64_t *)&w->wakes);
	if (wq_has_sleeper(&ctx->watchers))
		wake_up_all(&ctx->watchers);
}

/* Does anybody look at the lines of [address, address + size)? */
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
	/* Offsets count from a page's start, so the lines are those of the address. */
	if (looked_at(r->owner->watch, offset, size))
		wake(r->owner, r->owner->watch);
}

void acp_watch_wake(struct acp_context *ctx)
{
	struct acp_region *r;

	rcu_read_lock();
	r = xa_load(&ctx->regions, ACP_STAG_LIBRARY);
	if (r && !refcount_inc_not_zero(&r->users))
		r = NULL;
	rcu_read_unlock();
	if (!r)
		return;
	wake(ctx, ctx->watch);
	acp_region_put(r);
}

void acp_watch_wake_all(struct acp_job *job)
{
	struct acp_context *ctx;

	rcu_read_lock();
	list_for_each_entry_rcu(ctx, &job->contexts, job_link)
		acp_watch_wake(ctx);
	rcu_read_unlock();
}

static bool over(const struct acp_context *ctx, u64 wakes)
{
	return READ_ONCE(ctx->watch->wakes) != wakes || READ_ONCE(ctx->job->aborted);
}

int acp_watch_wait(struct acp_context *ctx, u64 wakes, u64 timeout_ns)
{
	ktime_t timeout = min_t(u64, timeout_ns, KTIME_MAX);
	int err = -ETIME;

	if (timeout || over(ctx, wakes))
		err = wait_event_interruptible_hrtimeout(ctx->watchers, over(ctx, wakes), timeout);
	if (READ_ONCE(ctx->job->aborted))
		return -ECANCELED;
	if (READ_ONCE(ctx->watch->wakes) != wakes)
		return 0;
	return err == -ERESTARTSYS ? -EINTR : -ETIMEDOUT;
}
