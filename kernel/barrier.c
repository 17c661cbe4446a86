// SPDX-License-Identifier: GPL-2.0-only
/* The barrier of a job: see barrier.h. */
#include <linux/slab.h>
#include "barrier.h"
#include "event.h"
#include "node.h"
#include "notice.h"
#include "queue.h"

#define ABOVE	0	/* neighbours: the node above, then the children */

static u32 neighbour(const struct acp_job *job, u32 i)
{
	if (i == ABOVE)
		return (job->me - 1) / ACP_BARRIER_ARITY;
	return job->me * ACP_BARRIER_ARITY + i;
}

/* From the first neighbour, which the root has not, to the last. */
static u32 first(const struct acp_job *job)
{
	return job->me ? ABOVE : ABOVE + 1;
}

static u32 last(const struct acp_job *job)
{
	return ABOVE + job->barrier.children;
}

/* ---- awaiting neighbours, under the lock ---- */

/* A message of the neighbour will come, or we hear that its node is lost. */
static void expect(struct acp_job *job, u32 i)
{
	struct acp_peer *peer = acp_peer_get(job, neighbour(job, i), 0);

	if (peer && !job->barrier.life[i])
		job->barrier.life[i] = acp_peer_expect(peer);
}

static void unexpect(struct acp_job *job, u32 i)
{
	struct acp_peer *peer = acp_peer_find(job, neighbour(job, i), 0);

	if (peer && job->barrier.life[i])
		acp_peer_unexpect(peer, job->barrier.life[i]);
	job->barrier.life[i] = 0;
}

static void expect_missing(struct acp_job *job)
{
	u32 i;

	for (i = ABOVE + 1; i <= last(job); i++)
		if (!(job->barrier.below & BIT(i)))
			expect(job, i);
}

static void unexpect_all(struct acp_job *job)
{
	u32 i;

	for (i = first(job); i <= last(job); i++)
		unexpect(job, i);
}

/* ---- telling neighbours ---- */

static bool tell(struct acp_job *job, u32 i, u8 flags, u64 number)
{
	struct acp_item *item;
	struct acp_peer *peer;

	local_bh_disable();
	peer = acp_peer_get(job, neighbour(job, i), 0);
	item = peer ? kzalloc(sizeof(*item), GFP_ATOMIC | __GFP_NOWARN) : NULL;
	if (item) {
		item->out.m.type = ACP_MSG_BARRIER;
		item->out.m.flags = flags;
		item->out.m.origin = job->me;
		item->out.m.ticket = number;
		acp_peer_send(peer, item, 0);
		acp_peer_kick(peer);
	}
	local_bh_enable();
	return item;
}

/* The end of all barriers: who cannot be told now is told later. */
static void tell_all(struct acp_job *job, u8 flag)
{
	struct acp_barrier *b = &job->barrier;
	u32 i;

	for (i = first(job); i <= last(job); i++) {
		/* A job that goes has told all that it had to tell. */
		if (tell(job, i, flag, READ_ONCE(job->stranger)) || READ_ONCE(job->dead))
			continue;
		acp_stat_inc(job->node, drop_nomem);
		spin_lock_bh(&b->lock);
		b->owed[i] |= flag;
		spin_unlock_bh(&b->lock);
	}
}

void acp_barrier_tend(struct acp_job *job)
{
	static const u8 flags[] = { ACP_MSG_BROKEN, ACP_MSG_ABORT };
	struct acp_barrier *b = &job->barrier;
	u32 i, k;

	for (i = first(job); i <= last(job); i++) {
		for (k = 0; k < ARRAY_SIZE(flags); k++) {
			if (!(READ_ONCE(b->owed[i]) & flags[k]) ||
			    !tell(job, i, flags[k], READ_ONCE(job->stranger)))
				continue;
			spin_lock_bh(&b->lock);
			b->owed[i] &= ~flags[k];
			spin_unlock_bh(&b->lock);
		}
	}
}

/* A rank has left: all neighbours hear of it, but "from".  Who is not told now, is not. */
static void tell_left(struct acp_job *job, u32 rank, u32 from)
{
	u64 what = (u64)(rank + 1) << 32 | READ_ONCE(job->stranger);
	u32 i;

	for (i = first(job); i <= last(job); i++)
		if (neighbour(job, i) != from && !tell(job, i, ACP_MSG_BROKEN, what) &&
		    !READ_ONCE(job->dead))
			acp_stat_inc(job->node, drop_nomem);
}

static void release(struct acp_job *job, u64 number)
{
	bool told = true;
	u32 i;

	for (i = ABOVE + 1; i <= last(job); i++)
		told &= tell(job, i, ACP_MSG_RELEASE, number);
	wake_up_all(&job->barrier.wait);
	if (!told)
		acp_barrier_break(job);
}

/* All of this node and below are here?  Then up, or (root) down.  Drops the lock. */
static void check_and_unlock(struct acp_barrier *b, struct acp_job *job)
	__releases(&b->lock)
{
	u64 number = b->released + 1;

	if (b->local < b->expected || hweight8(b->below) < b->children) {
		if (b->local == b->expected && !b->broken)
			expect_missing(job);
		spin_unlock_bh(&b->lock);
		return;
	}
	b->local = 0;
	b->below = 0;
	if (!job->me)
		WRITE_ONCE(b->released, number);
	else if (!b->broken)
		expect(job, ABOVE);
	spin_unlock_bh(&b->lock);
	if (!job->me)
		release(job, number);
	else if (!tell(job, ABOVE, 0, number))
		acp_barrier_break(job);
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

/* Why none will complete any more; 0: they will. */
static int broken(const struct acp_job *job)
{
	if (READ_ONCE(job->aborted))
		return -ECANCELED;
	/* Pairs with acp_barrier_break(): first that it is, then why. */
	if (!smp_load_acquire(&job->barrier.broken))
		return 0;
	return READ_ONCE(job->stranger) ? -EPROTO : -EPIPE;
}

static int result(struct acp_context *ctx, int err)
{
	const struct acp_job *job = ctx->job;

	if (READ_ONCE(job->barrier.released) >= ctx->sync_want) {
		ctx->sync_want = 0;
		ctx->finished |= ctx->final;
		return 0;
	}
	return broken(job) ?: err == -ERESTARTSYS ? -EINTR : -ETIMEDOUT;
}

int acp_barrier_wait(struct acp_context *ctx, bool final, u64 timeout_ns)
{
	struct acp_barrier *b = &ctx->job->barrier;
	int err = 0;

	if (xchg(&ctx->syncing, true))
		return -EBUSY;
	if (!ctx->sync_want)
		err = broken(ctx->job);
	if (!err) {
		ctx->final = final;
		if (!ctx->sync_want)
			arrive(ctx);
		err = wait_event_interruptible_hrtimeout(b->wait, over(ctx),
							 min_t(u64, timeout_ns, KTIME_MAX));
		err = result(ctx, err);
	}
	/* What this call changed, before the next may enter: pairs with xchg() above. */
	smp_store_release(&ctx->syncing, false);
	return err;
}

void acp_barrier_break(struct acp_job *job)
{
	struct acp_barrier *b = &job->barrier;
	bool before;

	spin_lock_bh(&b->lock);
	before = b->broken;
	/* After job->stranger: pairs with broken(). */
	smp_store_release(&b->broken, true);
	if (!before)
		unexpect_all(job);
	spin_unlock_bh(&b->lock);
	if (before)
		return;
	/* Before others know, and with it send what else they have to tell. */
	acp_event_add(job, &(struct acp_news){ .type = ACP_EVENT_BROKEN });
	tell_all(job, ACP_MSG_BROKEN);
	wake_up_all(&b->wait);
}

void acp_barrier_abort(struct acp_job *job, bool tell)
{
	struct acp_context *ctx;
	unsigned long i;

	if (xchg(&job->aborted, true))
		return;
	acp_nl_tell_job(job, ACP_NL_EVENT_JOB_ABORTED);
	spin_lock_bh(&job->barrier.lock);
	unexpect_all(job);
	spin_unlock_bh(&job->barrier.lock);
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
	struct acp_job *job = ctx->job;

	if (ctx->finished)
		return;
	acp_barrier_break(job);
	if (!READ_ONCE(job->aborted) && acp_event_left(job, ctx->rank))
		tell_left(job, ctx->rank, job->me);
}

static void broken_arrived(struct acp_job *job, const struct acp_msg *m)
{
	u32 stranger = m->ticket, left = m->ticket >> 32;

	if (stranger && stranger <= job->nodes)
		acp_job_set_stranger(job, stranger - 1);
	acp_barrier_break(job);
	if (left && left <= job->ga.nprocs && acp_event_left(job, left - 1))
		tell_left(job, left - 1, m->origin);
}

void acp_barrier_arrived(struct acp_job *job, const struct acp_msg *m)
{
	struct acp_barrier *b = &job->barrier;
	u32 i = m->origin - job->me * ACP_BARRIER_ARITY;

	if (m->flags & ACP_MSG_ABORT) {
		acp_barrier_abort(job, true);
		return;
	}
	if (m->flags & ACP_MSG_BROKEN) {
		broken_arrived(job, m);
		return;
	}
	spin_lock_bh(&b->lock);
	if (m->ticket != b->released + 1 ||
	    (m->flags & ACP_MSG_RELEASE ? !job->me || m->origin != neighbour(job, ABOVE) :
					  !i || i > last(job) || (b->below & BIT(i)))) {
		spin_unlock_bh(&b->lock);
		acp_stat_inc(job->node, drop_bad_msg);
		return;
	}
	if (m->flags & ACP_MSG_RELEASE) {
		WRITE_ONCE(b->released, m->ticket);
		unexpect(job, ABOVE);
		spin_unlock_bh(&b->lock);
		release(job, m->ticket);
		return;
	}
	b->below |= BIT(i);
	unexpect(job, i);
	check_and_unlock(b, job);
}
