// SPDX-License-Identifier: GPL-2.0-only
/* Further queues of a rank: see attach.h. */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include "attach.h"
#include "job.h"
#include "node.h"
#include "poller.h"
#include "queue.h"

/*
 * The rings of a queue are freed a grace period after it is closed, and count for
 * nobody meanwhile: who has closed so much waits for one.
 */
#define FREED_KIB_MOST	(16 << 10)

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
		err = xa_insert_bh(&main->queues, number, ctx, GFP_KERNEL_ACCOUNT);
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

/* What is under way ends here; who completes it later finds it ended, or finds nothing. */
static void shut(struct acp_context *ctx)
{
	struct acp_context *main = ctx->main;
	struct acp_node *node = ctx->job->node;

	acp_poller_unlink(node, ctx);
	acp_queue_cut(ctx);
	acp_poller_gone(node, ctx);
	xa_erase_bh(&main->queues, acp_context_queue_number(ctx));
	WRITE_ONCE(main->n_queues, main->n_queues - 1);
	acp_poller_stop(ctx);
	acp_job_changed(main->job);
}

/* Under queues_lock. */
static void wait_for_rings(struct acp_context *main, u32 kib)
{
	main->freed_kib += kib;
	if (main->freed_kib < FREED_KIB_MOST)
		return;
	main->freed_kib = 0;
	synchronize_rcu();
}

void acp_attach_leave(struct acp_context *ctx)
{
	struct acp_context *main = ctx->main;

	mutex_lock(&main->queues_lock);
	if (!ctx->closed) {
		shut(ctx);
		wait_for_rings(main, ctx->ring_kib);
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
	xa_for_each(&main->queues, i, ctx)
		shut(ctx);
	mutex_unlock(&main->queues_lock);
}
