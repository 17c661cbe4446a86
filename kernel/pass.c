// SPDX-License-Identifier: GPL-2.0-only
/* Which queues are looked at after a pass: see pass.h. */
#include <linux/rculist.h>
#include "job.h"
#include "pass.h"
#include "poller.h"
#include "queue.h"

#define BUSY		XA_MARK_0
#define PASSES_MOST	64	/* that find nothing under way, before the mark goes */

/* Only its drainer can make it so. */
static bool is_busy(struct acp_context *ctx)
{
	return acp_queue_ready(ctx) || READ_ONCE(ctx->taken) != READ_ONCE(ctx->completed);
}

void acp_pass_mark(struct acp_context *ctx)
{
	struct xarray *queues = &ctx->main->queues;

	smp_mb();	/* what was taken, before the look at the mark: pairs with unmark() */
	if (READ_ONCE(ctx->marked) || !is_busy(ctx))
		return;
	xa_lock(queues);
	__xa_set_mark(queues, acp_context_queue_number(ctx), BUSY);
	WRITE_ONCE(ctx->marked, true);
	xa_unlock(queues);
	WRITE_ONCE(ctx->passes, 0);
	smp_mb();	/* the mark, before what can go on: pairs with acp_station_idle() */
}

static void go_on(struct acp_context *ctx)
{
	if (acp_queue_ready(ctx) && acp_queue_drain(ctx, ACP_DRAIN_SOFTIRQ))
		acp_poller_more(ctx);
}

static void unmark(struct acp_context *ctx)
{
	struct xarray *queues = &ctx->main->queues;

	xa_lock(queues);
	__xa_clear_mark(queues, acp_context_queue_number(ctx), BUSY);
	WRITE_ONCE(ctx->marked, false);
	xa_unlock(queues);
	smp_mb();	/* the mark, before what was taken: pairs with acp_pass_mark() */
	if (!is_busy(ctx))
		return;
	acp_pass_mark(ctx);
	/* A pass of another processor may have gone by between the two. */
	go_on(ctx);
}

static noinline void look_at_marked(struct acp_context *main)
{
	struct acp_context *ctx;
	unsigned long i;

	xa_for_each_marked(&main->queues, i, ctx, BUSY) {
		u32 passes = is_busy(ctx) ? 0 : READ_ONCE(ctx->passes) + 1;

		WRITE_ONCE(ctx->passes, passes);
		if (!passes)
			go_on(ctx);
		else if (passes > PASSES_MOST)
			unmark(ctx);
	}
}

void acp_station_idle(struct acp_job *job)
{
	struct acp_context *ctx;

	smp_mb();	/* states of commands before the flags of their queue, and its mark */
	/* BH is off: no context goes meanwhile (RCU). */
	list_for_each_entry_rcu(ctx, &job->contexts, job_link) {
		/* Ranks' own come first. */
		if (ctx->main != ctx)
			break;
		go_on(ctx);
		if (unlikely(xa_marked(&ctx->queues, BUSY)))
			look_at_marked(ctx);
	}
}
