// SPDX-License-Identifier: GPL-2.0-only
/* The barrier of a job: see barrier.h. */
#include <linux/slab.h>
#include "barrier.h"
#include "node.h"
#include "queue.h"

static u32 parent(const struct acp_job *job)
{
	return (job->me - 1) / ACP_BARRIER_ARITY;
}

static void tell(struct acp_job *job, u32 node, u8 flags, u64 number)
{
	struct acp_item *item;
	struct acp_peer *peer;

	local_bh_disable();
	peer = acp_peer_get(job, node, 0);
	item = peer ? kzalloc(sizeof(*item), GFP_ATOMIC | __GFP_NOWARN) : NULL;
	if (item) {
		item->out.m.type = ACP_MSG_BARRIER;
		item->out.m.flags = flags;
		item->out.m.origin = job->me;
		item->out.m.ticket = number;
		acp_peer_send(peer, item);
		acp_peer_kick(peer);
	} else {
		acp_stat_inc(job->node, drop_nomem);
		WRITE_ONCE(job->barrier.broken, true);
		wake_up_all(&job->barrier.wait);
	}
	local_bh_enable();
}

static void tell_children(struct acp_job *job, u8 flags, u64 number)
{
	u32 i;

	for (i = 0; i < job->barrier.children; i++)
		tell(job, job->me * ACP_BARRIER_ARITY + 1 + i, flags, number);
}

static void tell_all(struct acp_job *job, u8 flags)
{
	if (job->me)
		tell(job, parent(job), flags, 0);
	tell_children(job, flags, 0);
}

static void release(struct acp_job *job, u64 number)
{
	tell_children(job, ACP_MSG_RELEASE, number);
	wake_up_all(&job->barrier.wait);
}

/* All of this node and below are here?  Then up, or (root) down.  Drops the lock. */
static void check_and_unlock(struct acp_barrier *b, struct acp_job *job)
	__releases(&b->lock)
{
	u64 number = b->released + 1;

	if (b->local < b->expected || b->below < b->children) {
		spin_unlock_bh(&b->lock);
		return;
	}
	b->local = 0;
	b->below = 0;
	if (!job->me)
		WRITE_ONCE(b->released, number);
	spin_unlock_bh(&b->lock);
	if (job->me)
		tell(job, parent(job), 0, number);
	else
		release(job, number);
}

static void arrive(struct acp_context *ctx)
{
	struct acp_barrier *b = &ctx->job->barrier;

	spin_lock_bh(&b->lock);
	ctx->sync_want = b->released + 1;
	b->local++;
	check_and_unlock(b, ctx->job);
}

static bool over(struct acp_context *ctx)
{
	const struct acp_job *job = ctx->job;

	return READ_ONCE(job->barrier.released) >= ctx->sync_want ||
	       READ_ONCE(job->barrier.broken) || READ_ONCE(job->aborted);
}

static int result(struct acp_context *ctx, long left)
{
	const struct acp_job *job = ctx->job;

	if (READ_ONCE(job->barrier.released) >= ctx->sync_want) {
		ctx->sync_want = 0;
		ctx->finished |= ctx->final;
		return 0;
	}
	if (READ_ONCE(job->aborted))
		return -ECANCELED;
	if (READ_ONCE(job->barrier.broken))
		return -EPIPE;
	return left < 0 ? -EINTR : -ETIMEDOUT;
}

int acp_barrier_wait(struct acp_context *ctx, bool final, u64 timeout_ns)
{
	struct acp_barrier *b = &ctx->job->barrier;
	unsigned long ticks = MAX_SCHEDULE_TIMEOUT;
	long left;
	int err;

	if (xchg(&ctx->syncing, true))
		return -EBUSY;
	if (READ_ONCE(ctx->job->aborted)) {
		err = -ECANCELED;
	} else if (READ_ONCE(b->broken)) {
		err = -EPIPE;
	} else {
		ctx->final = final;
		if (!ctx->sync_want)
			arrive(ctx);
		if (timeout_ns < (u64)MAX_JIFFY_OFFSET * (NSEC_PER_SEC / HZ))
			ticks = nsecs_to_jiffies(timeout_ns) + 1;
		left = wait_event_interruptible_timeout(b->wait, over(ctx), ticks);
		err = result(ctx, left);
	}
	/* What this call changed, before the next may enter: pairs with xchg() above. */
	smp_store_release(&ctx->syncing, false);
	return err;
}

void acp_barrier_break(struct acp_job *job)
{
	struct acp_barrier *b = &job->barrier;
	bool first;

	spin_lock_bh(&b->lock);
	first = !b->broken;
	WRITE_ONCE(b->broken, true);
	spin_unlock_bh(&b->lock);
	if (!first)
		return;
	tell_all(job, ACP_MSG_BROKEN);
	wake_up_all(&b->wait);
}

void acp_barrier_abort(struct acp_job *job, bool tell)
{
	struct acp_context *ctx;
	unsigned long i;

	if (xchg(&job->aborted, true))
		return;
	if (tell)
		tell_all(job, ACP_MSG_ABORT);
	wake_up_all(&job->barrier.wait);
	rcu_read_lock();
	xa_for_each(&job->ranks, i, ctx)
		acp_queue_abort(ctx);
	rcu_read_unlock();
}

void acp_barrier_leave(struct acp_context *ctx)
{
	if (!ctx->finished)
		acp_barrier_break(ctx->job);
}

void acp_barrier_arrived(struct acp_job *job, const struct acp_msg *m)
{
	struct acp_barrier *b = &job->barrier;

	if (m->flags & ACP_MSG_ABORT) {
		acp_barrier_abort(job, true);
		return;
	}
	if (m->flags & ACP_MSG_BROKEN) {
		acp_barrier_break(job);
		return;
	}
	spin_lock_bh(&b->lock);
	if (m->ticket != b->released + 1) {
		spin_unlock_bh(&b->lock);
		acp_stat_inc(job->node, drop_bad_msg);
		return;
	}
	if (m->flags & ACP_MSG_RELEASE) {
		WRITE_ONCE(b->released, m->ticket);
		spin_unlock_bh(&b->lock);
		release(job, m->ticket);
		return;
	}
	b->below++;
	check_and_unlock(b, job);
}
