// SPDX-License-Identifier: GPL-2.0-only
/* Further queues of a rank: see attach.h. */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include "attach.h"
#include "job.h"
#include "node.h"
#include "poller.h"
#include "queue.h"

/* ---- coming ---- */

/* Give up what its file holds, once nobody finds it. */
static void drop(struct acp_context *ctx)
{
	acp_user_uncharge(ctx->user, ACP_LIMIT_USER_MEMORY, ctx->paid);
	mmdrop(ctx->mm);
	acp_context_put(ctx);
}

static struct acp_context *create(struct acp_context *main, u32 depth, u32 number)
{
	struct acp_context *ctx;
	unsigned long kib = 0;
	int err = acp_queue_price(main->job->node, depth, &kib);

	err = err ?: acp_user_charge(main->user, ACP_LIMIT_USER_MEMORY, kib);
	if (err)
		return ERR_PTR(err);
	ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);
	if (!ctx) {
		acp_user_uncharge(main->user, ACP_LIMIT_USER_MEMORY, kib);
		return ERR_PTR(-ENOMEM);
	}
	ctx->user = acp_user_hold(main->user);
	ctx->paid = kib;
	acp_context_init(ctx, main->job, main->rank, main);
	err = acp_queue_create(ctx, depth, number);
	if (!err)
		err = xa_insert(&main->queues, number, ctx, GFP_KERNEL_ACCOUNT);
	if (!err)
		return ctx;
	drop(ctx);
	return ERR_PTR(err);
}

/* Under queues_lock. */
static struct acp_context *add(struct acp_context *main, u32 depth)
{
	struct acp_context *ctx;

	if (main->n_queues == ACP_QUEUES_MAX || main->last_queue == ACP_QUEUE_LAST)
		return ERR_PTR(-ENOSPC);
	ctx = create(main, depth, main->last_queue + 1);
	if (IS_ERR(ctx))
		return ctx;
	main->last_queue++;
	WRITE_ONCE(main->n_queues, main->n_queues + 1);
	smp_mb();	/* pairs with xchg() in acp_barrier_abort(): it finds us, or we see it */
	if (READ_ONCE(main->job->aborted))
		acp_queue_abort(ctx);
	acp_poller_add(main->job->node, ctx);
	acp_job_changed(main->job);
	return ctx;
}

struct acp_context *acp_attach(struct acp_context *main, struct acp_attach *a)
{
	struct acp_context *ctx;

	mutex_lock(&main->queues_lock);
	ctx = add(main, a->depth);
	mutex_unlock(&main->queues_lock);
	if (IS_ERR(ctx))
		return ctx;
	a->queue = acp_context_queue_number(ctx);
	a->first = ctx->first;
	a->sq_bytes = ctx->sq_bytes;
	a->cq_bytes = ctx->cq_bytes;
	return ctx;
}

/* ---- going ---- */

/* Nobody begins to drain it any more.  A grace period later nobody is at it. */
static void hide(struct acp_context *ctx)
{
	acp_poller_unlink(ctx->job->node, ctx);
}

/* What is under way ends here; who completes it later finds it ended, or finds nothing. */
static void cut(struct acp_context *ctx)
{
	struct acp_context *main = ctx->main;

	acp_queue_cut(ctx);
	xa_erase(&main->queues, acp_context_queue_number(ctx));
	WRITE_ONCE(main->n_queues, main->n_queues - 1);
	acp_job_changed(main->job);
}

void acp_attach_leave(struct acp_context *ctx)
{
	struct acp_context *main = ctx->main;

	mutex_lock(&main->queues_lock);
	if (!ctx->closed) {
		hide(ctx);
		synchronize_rcu();
		cut(ctx);
	}
	mutex_unlock(&main->queues_lock);
	/* Also if it was closed before: a doorbell under way then may have begun a hold. */
	acp_poller_stop(ctx);
	drop(ctx);
}

void acp_attach_end(struct acp_context *main)
{
	struct acp_context *ctx;
	unsigned long i;

	mutex_lock(&main->queues_lock);
	if (main->n_queues) {
		xa_for_each(&main->queues, i, ctx)
			hide(ctx);
		synchronize_rcu();
		xa_for_each(&main->queues, i, ctx) {
			acp_poller_stop(ctx);
			cut(ctx);
		}
	}
	mutex_unlock(&main->queues_lock);
}
