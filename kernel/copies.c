// SPDX-License-Identifier: GPL-2.0-only
/* Long copies within a node: see copies.h. */
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include <linux/workqueue.h>
#include "copies.h"
#include "region.h"
#include "station.h"
#include "strided.h"

#define STEP	65536	/* bytes copied between two looks up */
#define LEAST	4096	/* bytes that a copy counts as */

static struct workqueue_struct *worker;

struct long_copy {
	struct work_struct work;
	struct list_head link;		/* of the context's: nobody is at it; under its lock */
	refcount_t refs;		/* who is to end it, and its work while that is queued */
	struct acp_job *job;
	struct acp_context *ctx;
	struct acp_msg m;
	u64 offset;			/* so much is done */
	struct acp_item *done;
	struct acp_peer *peer;
};

/* ---- copying ---- */

u8 acp_copies_now(struct acp_job *job, const struct acp_msg *m, u64 offset, u64 size)
{
	struct acp_region *src, *dst;
	u8 status;

	if (unlikely(m->op == ACP_OP_STRIDED))
		return acp_strided_local(job, m, offset, size);
	src = acp_region_get(job, m->src + offset, size, m->origin, ACP_ACCESS_READ, &status);
	if (!src)
		return status;
	dst = acp_region_get(job, m->dst + offset, size, m->origin, ACP_ACCESS_WRITE, &status);
	if (dst) {
		acp_region_copy(dst, acp_ga_offset(&job->ga, m->dst + offset), src,
				acp_ga_offset(&job->ga, m->src + offset), size);
		acp_region_put(dst);
	}
	acp_region_put(src);
	return status;
}

/* The whole range must be good before the first byte moves. */
static u8 check(struct acp_job *job, const struct acp_msg *m)
{
	struct acp_region *r;
	u8 status;

	if (unlikely(m->op == ACP_OP_STRIDED))
		return acp_strided_local(job, m, 0, 0);
	r = acp_region_get(job, m->src, m->size, m->origin, ACP_ACCESS_READ, &status);
	if (!r)
		return status;
	acp_region_put(r);
	r = acp_region_get(job, m->dst, m->size, m->origin, ACP_ACCESS_WRITE, &status);
	if (r)
		acp_region_put(r);
	return status;
}

static void put(struct long_copy *c)
{
	struct acp_job *job = c->job;

	if (!refcount_dec_and_test(&c->refs))
		return;
	if (c->ctx)
		acp_context_put(c->ctx);
	kfree(c);
	if (atomic_dec_and_test(&job->copies))
		wake_up_var(&job->copies);
	acp_job_put(job);
}

static void end(struct long_copy *c, u8 status)
{
	local_bh_disable();
	acp_station_copied(c->job, &c->m, status, c->done, c->peer);
	local_bh_enable();
	put(c);
}

/* At most so many bytes, in whole steps; how many it were.  *ended: it is at its end, and gone. */
static u64 proceed(struct long_copy *c, u64 most, bool *ended)
{
	u8 status = c->offset ? ACP_ST_OK : check(c->job, &c->m);
	u64 done = 0, n;

	while (!status && done < most && c->offset < c->m.size) {
		n = min_t(u64, STEP, c->m.size - c->offset);
		status = acp_copies_now(c->job, &c->m, c->offset, n);
		c->offset += n;
		done += n;
		cond_resched();
	}
	*ended = status || c->offset == c->m.size;
	if (*ended)
		end(c, status);
	return done;
}

/* ---- who does it ---- */

static void work(struct work_struct *work)
{
	struct long_copy *c = container_of(work, struct long_copy, work);
	struct acp_context *ctx = c->ctx;
	bool mine = !ctx, ended;

	if (ctx) {
		spin_lock_bh(&ctx->lock);
		mine = !list_empty(&c->link);
		list_del_init(&c->link);
		spin_unlock_bh(&ctx->lock);
	}
	if (mine)
		proceed(c, U64_MAX, &ended);
	put(c);
}

static void to_worker(struct long_copy *c)
{
	refcount_inc(&c->refs);
	if (!queue_work(worker, &c->work))
		refcount_dec(&c->refs);
}

static void wait_in_list(struct long_copy *c, bool first)
{
	struct acp_context *ctx = c->ctx;

	spin_lock_bh(&ctx->lock);
	if (first)
		list_add(&c->link, &ctx->copies);
	else
		list_add_tail(&c->link, &ctx->copies);
	smp_mb();	/* in the list, before the look for helpers: acp_copies_leave() */
	/* Nobody takes it while we have the lock. */
	if (first || !atomic_read(&ctx->helpers))
		to_worker(c);
	spin_unlock_bh(&ctx->lock);
}

bool acp_copies_start(struct acp_job *job, const struct acp_msg *m, struct acp_context *ctx,
		      struct acp_item *done, struct acp_peer *peer)
{
	struct long_copy *c = kmalloc(sizeof(*c), GFP_ATOMIC | __GFP_NOWARN);

	if (!c)
		return false;
	INIT_WORK(&c->work, work);
	INIT_LIST_HEAD(&c->link);
	refcount_set(&c->refs, 1);
	refcount_inc(&job->refs);
	atomic_inc(&job->copies);
	c->job = job;
	c->ctx = ctx;
	c->m = *m;
	c->offset = 0;
	c->done = done;
	c->peer = peer;
	if (ctx) {
		acp_context_get(ctx);
		wait_in_list(c, false);
	} else {
		/* Its reference goes with the end of the copy, the work's with the work. */
		to_worker(c);
	}
	return true;
}

static struct long_copy *take(struct acp_context *ctx)
{
	struct long_copy *c;

	spin_lock_bh(&ctx->lock);
	c = list_first_entry_or_null(&ctx->copies, struct long_copy, link);
	if (c)
		list_del_init(&c->link);
	spin_unlock_bh(&ctx->lock);
	return c;
}

void acp_copies_take(struct acp_context *ctx, u64 *room)
{
	struct long_copy *c;
	bool ended;

	while (*room && !signal_pending(current) && (c = take(ctx))) {
		/* One that fails at once counts, too: others may follow without end. */
		*room -= min(*room, max_t(u64, proceed(c, *room, &ended), LEAST));
		if (!ended)
			wait_in_list(c, true);
	}
}

/* To the worker. */
void acp_copies_give(struct acp_context *ctx)
{
	struct long_copy *c;

	spin_lock_bh(&ctx->lock);
	list_for_each_entry(c, &ctx->copies, link)
		to_worker(c);
	spin_unlock_bh(&ctx->lock);
}

/* ---- the worker ---- */

/* Not for those of others, which may be very long: the caller has the node's lock. */
void acp_copies_flush(struct acp_job *job)
{
	wait_var_event(&job->copies, !atomic_read_acquire(&job->copies));
}

int acp_copies_init(void)
{
	worker = alloc_workqueue("acp", WQ_UNBOUND, 0);
	return worker ? 0 : -ENOMEM;
}

void acp_copies_exit(void)
{
	destroy_workqueue(worker);
}
