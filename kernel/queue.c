// SPDX-License-Identifier: GPL-2.0-only
/* The queues of a context: see queue.h. */
#include <linux/delay.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "job.h"
#include "node.h"
#include "pass.h"
#include "queue.h"
#include "region.h"
#include "station.h"
#include "trace.h"
#include "watch.h"

/* ---- making ---- */

#define CMD_BYTES	PAGE_ALIGN(ACP_INFLIGHT * sizeof(struct acp_cmd))

static size_t sq_bytes(u32 depth)
{
	return PAGE_ALIGN(sizeof(struct acp_sq) + depth * sizeof(struct acp_sqe));
}

static size_t cq_bytes(u32 depth)
{
	return PAGE_ALIGN(sizeof(struct acp_cq) + depth);
}

static u32 rings_kib(u32 depth)
{
	return (sq_bytes(depth) + cq_bytes(depth) + CMD_BYTES) >> 10;
}

int acp_queue_price(const struct acp_node *node, u32 depth, unsigned long *kib)
{
	if (depth < ACP_DEPTH_MIN || depth > ACP_DEPTH_MAX || !is_power_of_2(depth))
		return -EINVAL;
	if (depth > acp_limit(node, ACP_LIMIT_DEPTH))
		return acp_over(ACP_LIMIT_DEPTH);
	*kib += rings_kib(depth);
	return 0;
}

int acp_queue_create(struct acp_context *ctx, u32 depth, u32 number)
{
	u64 first = ((u64)number << ACP_TICKET_BITS) + 1;

	ctx->depth = depth;
	ctx->sq_bytes = sq_bytes(depth);
	ctx->cq_bytes = cq_bytes(depth);
	ctx->ring_kib = rings_kib(depth);
	ctx->paid -= ctx->ring_kib;
	ctx->sq = acp_region_pages(ctx->sq_bytes);
	ctx->cq = acp_region_pages(ctx->cq_bytes);
	ctx->cmds = acp_region_pages(CMD_BYTES);
	if (!ctx->sq || !ctx->cq || !ctx->cmds)
		return -ENOMEM;
	ctx->entries = (struct acp_sqe *)(ctx->sq + 1);
	ctx->sq->tail = first;
	ctx->cq->completed = first;
	ctx->cq->flags = ACP_CQ_NEED_WAKEUP;
	ctx->first = first;
	ctx->taken = first;
	ctx->completed = first;
	ctx->run.first = first + 1;
	ctx->run.last = first;
	ctx->armed = ~0ULL;
	return 0;
}

void acp_queue_destroy(struct acp_context *ctx)
{
	vfree(ctx->sq);
	vfree(ctx->cq);
	vfree(ctx->cmds);
}

/* ---- completion ---- */

/*
 * Of commands that belong together (ACP_SQE_MORE) the last one tells of the first that
 * failed.  Whether that happens is known as soon as the former is published.
 */
static noinline void carry_status(struct acp_context *ctx, struct acp_cmd *cmd, u64 t)
{
	if (ctx->doomed == t && (!cmd->status || cmd->status == ACP_ST_ORDER)) {
		WRITE_ONCE(cmd->status, ctx->doom);
		if (ctx->last_failed < t)
			WRITE_ONCE(ctx->last_failed, t);
	}
	ctx->doom = cmd->status;
}

/* Publish what ended in order.  Under ctx->lock. */
static __always_inline void publish(struct acp_context *ctx)
{
	u64 t = ctx->completed + 1;
	struct acp_cmd *cmd = acp_context_cmd(ctx, t);

	lockdep_assert_held(&ctx->lock);
	for (; cmd->state == ACP_CMD_ENDED && cmd->item.out.m.ticket == t;
	     cmd = acp_context_cmd(ctx, ++t)) {
		bool carries = cmd->more || ctx->doomed;

		if (unlikely(carries))
			carry_status(ctx, cmd, t);
		WRITE_ONCE(ctx->cq->status[t & (ctx->depth - 1)], cmd->status);
		if (cmd->status) {
			ctx->failed++;
			acp_stat_inc(ctx->job->node, commands_failed);
		}
		trace_acp_complete(ctx, t, cmd->status);
		/* The status first: pairs with has_failed(). */
		smp_store_release(&ctx->completed, t);
		if (unlikely(carries)) {
			u64 next = cmd->more && cmd->status ? t + 1 : 0;

			/* What was doomed is on record now: pairs with order_failed(). */
			smp_store_release(&ctx->doomed, next);
		}
		/* Our reads of the command, before it is taken again: pairs with slot_free(). */
		smp_store_release(&cmd->state, ACP_CMD_FREE);
	}
	WRITE_ONCE(ctx->cq->failed, ctx->failed);
	/* (C): effects and status first; pairs with the user's (D) */
	smp_store_release(&ctx->cq->completed, t - 1);
}

static void unexpect(struct acp_context *ctx, const struct acp_step *s, const u32 *life,
		     u8 expected)
{
	struct acp_peer *peer;

	if (expected & ACP_EXPECT_SOURCE) {
		peer = acp_peer_find(ctx->job, s->node, s->color);
		if (peer)
			acp_peer_unexpect(peer, life[ACP_EXPECT_SOURCE - 1]);
	}
	if (expected & ACP_EXPECT_RESULT) {
		peer = acp_peer_find(ctx->job, s->dst_node, s->dst_color);
		if (peer)
			acp_peer_unexpect(peer, life[ACP_EXPECT_RESULT - 1]);
	}
}

static bool is_started(const struct acp_cmd *cmd)
{
	/* Then the slot is filled: pairs with the releases of try_start() and end(). */
	return smp_load_acquire(&cmd->state) == ACP_CMD_STARTED;
}

bool acp_queue_complete(struct acp_context *ctx, u64 ticket, u8 status)
{
	struct acp_cmd *cmd = acp_context_cmd(ctx, ticket);
	struct acp_step step acp_uncleared;
	u32 life[2] acp_uncleared;
	u8 expected;

	spin_lock(&ctx->lock);
	if (!is_started(cmd) || READ_ONCE(cmd->item.out.m.ticket) != ticket) {
		spin_unlock(&ctx->lock);
		return false;
	}
	expected = cmd->expected;
	if (expected) {
		step = cmd->step;
		memcpy(life, cmd->life, sizeof(life));
		cmd->expected = 0;
	}
	cmd->status = status;
	if (status && ctx->last_failed < ticket)
		WRITE_ONCE(ctx->last_failed, ticket);
	/* The status first: pairs with has_failed(). */
	smp_store_release(&cmd->state, ACP_CMD_ENDED);
	publish(ctx);
	spin_unlock(&ctx->lock);
	if (expected)
		unexpect(ctx, &step, life, expected);
	if (wq_has_sleeper(&ctx->wait))
		wake_up_all(&ctx->wait);
	/* Who waits for an answer may wait in vain. */
	if (unlikely(status))
		acp_watch_wake(ctx->main);
	return true;
}

void acp_queue_item_back(struct acp_context *ctx, struct acp_cmd *cmd)
{
	/* The transport is through with the item: pairs with slot_free(). */
	smp_store_release(&cmd->busy, false);
	acp_context_put(ctx);
}

struct list_head *acp_queue_delivered(struct acp_context *ctx, struct list_head *link,
				      const struct list_head *end)
{
	u32 n;

	spin_lock(&ctx->lock);
	for (n = 0; link != end; n++) {
		struct acp_item *item = list_entry(link, struct acp_item, link);
		struct acp_cmd *cmd = container_of(item, struct acp_cmd, item);

		if (item->context != ctx || !acp_item_is_put(item))
			break;
		link = link->next;
		item->context = NULL;
		if (is_started(cmd)) {
			cmd->status = ACP_ST_OK;
			/* The status first: pairs with has_failed(). */
			smp_store_release(&cmd->state, ACP_CMD_ENDED);
		}
		/* The last that is done with one that ended before: pairs with slot_free(). */
		smp_store_release(&cmd->busy, false);
	}
	publish(ctx);
	spin_unlock(&ctx->lock);
	if (wq_has_sleeper(&ctx->wait))
		wake_up_all(&ctx->wait);
	acp_context_put_some(ctx, n);
	return link;
}

void acp_queue_lost(struct acp_context *ctx, u32 node, u32 color, u32 life, u8 status)
{
	u32 i;

	for (i = 0; i < ACP_INFLIGHT; i++) {
		struct acp_cmd *cmd = &ctx->cmds[i];
		u8 hit = 0;
		u64 ticket;

		spin_lock(&ctx->lock);
		ticket = 0;
		if (is_started(cmd) && cmd->expected) {
			ticket = cmd->item.out.m.ticket;
			if (cmd->step.node == node && cmd->step.color == color &&
			    cmd->life[ACP_EXPECT_SOURCE - 1] != life)
				hit |= ACP_EXPECT_SOURCE;
			if (cmd->step.dst_node == node && cmd->step.dst_color == color &&
			    cmd->life[ACP_EXPECT_RESULT - 1] != life)
				hit |= ACP_EXPECT_RESULT;
			hit &= cmd->expected;
			cmd->expected &= ~hit;
		}
		spin_unlock(&ctx->lock);
		if (hit)
			acp_queue_complete(ctx, ticket, status);
	}
}

static void tell_end(struct acp_context *ctx)
{
	WRITE_ONCE(ctx->cq->flags, ACP_CQ_ABORTED | ACP_CQ_NEED_WAKEUP);
	wake_up_all(&ctx->wait);
}

void acp_queue_abort(struct acp_context *ctx)
{
	struct acp_context *further;
	unsigned long i;

	xa_for_each(&ctx->queues, i, further)
		tell_end(further);
	tell_end(ctx);
	acp_watch_wake(ctx);
}

static bool is_over(const struct acp_context *ctx)
{
	return READ_ONCE(ctx->job->aborted) || READ_ONCE(ctx->closed);
}

bool acp_queue_need_wakeup(struct acp_context *ctx, bool set)
{
	u32 flags = is_over(ctx) ? ACP_CQ_ABORTED : 0;

	if (set || flags)
		flags |= ACP_CQ_NEED_WAKEUP;
	WRITE_ONCE(ctx->cq->flags, flags);
	smp_mb();	/* pairs with the user's fence between tail and flags */
	/* Somebody may have ended it since the first look. */
	if (is_over(ctx))
		WRITE_ONCE(ctx->cq->flags, ACP_CQ_ABORTED | ACP_CQ_NEED_WAKEUP);
	return !set || READ_ONCE(ctx->starved) || !acp_queue_available(ctx);
}

/* ---- taking ---- */

static u8 check_entry(struct acp_context *ctx, const struct acp_sqe *e, u64 ticket)
{
	struct acp_job *job = ctx->job;
	u8 status = acp_sqe_check(e, ticket);

	/* The next number is another queue's. */
	if (unlikely((ticket ^ ctx->first) >> ACP_TICKET_BITS))
		status = ACP_ST_OP;
	if (!status && (READ_ONCE(job->aborted) || READ_ONCE(job->dead)))
		status = ACP_ST_ABORT;
	return status;
}

/*
 * The only read of the entry, each of its words once: what counts from here on is what was read.
 * The status of what does not belong to its command.
 */
static u8 read_entry(struct acp_context *ctx, struct acp_cmd *cmd, u64 ticket)
{
	const struct acp_sqe *entry = &ctx->entries[ticket & (ctx->depth - 1)];
	u64 first = READ_ONCE(*(const u64 *)entry);
	struct acp_msg *m = &cmd->item.out.m;
	struct acp_sqe e acp_uncleared;

	BUILD_BUG_ON(offsetof(struct acp_sqe, dst) != sizeof(first));
	memcpy(&e, &first, sizeof(first));
	e.order = READ_ONCE(entry->order);
	m->word = 0;
	m->op = e.op;
	m->dst = READ_ONCE(entry->dst);
	m->src = READ_ONCE(entry->src);
	m->size = READ_ONCE(entry->size);
	m->a = READ_ONCE(entry->a);
	m->b = READ_ONCE(entry->b);
	cmd->more = e.flags & ACP_SQE_MORE;
	cmd->order = e.order;
	cmd->seen = READ_ONCE(entry->seen);
	return check_entry(ctx, &e, ticket);
}

/* Make the command out of the entry; its status if it cannot be one. */
static u8 prepare(struct acp_context *ctx, struct acp_cmd *cmd, u64 ticket)
{
	struct acp_job *job = ctx->job;
	struct acp_msg *m = &cmd->item.out.m;
	u8 status = read_entry(ctx, cmd, ticket);

	m->origin = ctx->rank;
	m->length = 0;
	m->ticket = ticket;
	m->c = 0;
	if (unlikely(m->op >= ACP_OP_STRIDED))
		acp_cmd_shape(m);
	acp_out_begin(&cmd->item.out);
	memset(cmd->life, 0, sizeof(cmd->life));
	cmd->expected = 0;
	cmd->item.frames = 0;
	cmd->item.status = 0;
	if (!status)
		status = acp_cmd_check(&job->ga, job->colors, m);
	if (unlikely(m->op >= ACP_OP_STRIDED) && !status)
		status = acp_job_check_flag(job, m);
	if (!status)
		acp_step_set(&cmd->step, &job->ga, m, job->me, acp_job_ga_node(job, m->src),
			     acp_job_ga_node(job, m->dst));
	return status;
}

/* One that ended, published or not. */
static bool has_failed(struct acp_context *ctx, u64 ticket)
{
	struct acp_cmd *cmd = acp_context_cmd(ctx, ticket);

	/* Pairs with acp_queue_complete(). */
	if (smp_load_acquire(&cmd->state) == ACP_CMD_ENDED &&
	    READ_ONCE(cmd->item.out.m.ticket) == ticket)
		return READ_ONCE(cmd->status);
	/* Pairs with publish(): what is not there any more is on record here. */
	return smp_load_acquire(&ctx->completed) >= ticket &&
	       READ_ONCE(ctx->cq->status[ticket & (ctx->depth - 1)]);
}

bool acp_queue_failed(struct acp_context *ctx, u64 from, u64 to)
{
	/* Before last_failed: pairs with publish(). */
	u64 completed = smp_load_acquire(&ctx->completed), kept = ctx->depth - 1;

	if (completed > kept)
		from = max(from, completed - kept + 1);
	to = min(to, READ_ONCE(ctx->taken));
	if (READ_ONCE(ctx->last_failed) < from)
		return false;
	for (; from <= to; from++)
		if (has_failed(ctx, from))
			return true;
	return false;
}

/* Did a command that this one waits for fail?  Only those still on record count. */
static bool order_failed(struct acp_context *ctx, const struct acp_cmd *cmd)
{
	/* Pairs with publish(): what is doomed no longer has failed. */
	u64 doomed = smp_load_acquire(&ctx->doomed);

	if (unlikely(doomed) && cmd->seen < doomed && doomed <= cmd->order)
		return true;
	return cmd->seen < cmd->order && acp_queue_failed(ctx, cmd->seen + 1, cmd->order);
}

static void end(struct acp_context *ctx, struct acp_cmd *cmd, u8 status)
{
	/* The filled command, before it can be completed from elsewhere. */
	smp_store_release(&cmd->state, ACP_CMD_STARTED);
	acp_queue_complete(ctx, cmd->item.out.m.ticket, status);
}

/* What waits to start does so no more; what has started ends now, and its answer is stray. */
void acp_queue_cut(struct acp_context *ctx)
{
	u64 t;

	/* Who drains stops soon, for it is closed; who comes later finds it taken for good. */
	while (atomic_cmpxchg(&ctx->drain, 0, 1))
		usleep_range(10, 100);
	local_bh_disable();
	for (t = READ_ONCE(ctx->completed) + 1; t <= ctx->taken; t++) {
		struct acp_cmd *cmd = acp_context_cmd(ctx, t);

		if (cmd->state == ACP_CMD_WAITING)
			end(ctx, cmd, ACP_ST_ABORT);
		else
			acp_queue_complete(ctx, t, ACP_ST_ABORT);
	}
	WRITE_ONCE(ctx->waiting, 0);
	tell_end(ctx);
	local_bh_enable();
}

/* Start the command if its order allows; else it waits. */
static bool try_start(struct acp_context *ctx, struct acp_cmd *cmd, struct acp_batch *batch)
{
	/* Before what order_failed() looks at: pairs with publish(). */
	u64 completed = smp_load_acquire(&ctx->completed), ticket = cmd->item.out.m.ticket;
	enum acp_start how = acp_run_ask(&ctx->run, completed, cmd->order, &cmd->step);
	struct acp_msg *m = &cmd->item.out.m;
	u8 status = ACP_ST_OK;

	if (how == ACP_START_WAIT)
		return false;
	if (order_failed(ctx, cmd))
		status = ACP_ST_ORDER;
	else if (cmd->step.plan == ACP_PLAN_DELEGATE && !acp_station_ready(ctx->job, cmd, &status))
		return false;
	if (status) {
		end(ctx, cmd, status);
		return true;
	}
	if (how == ACP_START_FENCED) {
		u64 seen = max(completed, cmd->seen);

		cmd->item.out.fence = true;
		if (seen < cmd->order) {
			m->depends = ticket - seen - 1;
			m->upto = ticket - cmd->order;
		}
		if (cmd->step.home)
			m->flags |= ACP_MSG_ORDERED;
		acp_stat_inc(ctx->job->node, fenced);
	}
	acp_run_started(&ctx->run, completed, ticket, &cmd->step);
	/* The filled command, before it can be completed from elsewhere. */
	smp_store_release(&cmd->state, ACP_CMD_STARTED);
	acp_station_start(ctx, cmd, batch);
	return true;
}

static void start_waiting(struct acp_context *ctx, struct acp_batch *batch)
{
	u64 t;

	for (t = ctx->completed + 1; ctx->waiting && t <= ctx->taken; t++) {
		struct acp_cmd *cmd = acp_context_cmd(ctx, t);

		if (cmd->state == ACP_CMD_WAITING && try_start(ctx, cmd, batch))
			WRITE_ONCE(ctx->waiting, ctx->waiting - 1);
	}
}

static bool slot_free(const struct acp_cmd *cmd)
{
	/* Pair with publish() and acp_queue_item_back(). */
	if (smp_load_acquire(&cmd->state) != ACP_CMD_FREE)
		return false;
	/* see above */
	return !smp_load_acquire(&cmd->busy);
}

/* Take one entry.  False: there is none, or no room for it. */
static bool take(struct acp_context *ctx, struct acp_batch *batch)
{
	u64 ticket = ctx->taken + 1;
	struct acp_cmd *cmd = acp_context_cmd(ctx, ticket);
	u8 status;

	if (!acp_queue_available(ctx)) {
		WRITE_ONCE(ctx->starved, false);
		return false;
	}
	if (!slot_free(cmd)) {
		WRITE_ONCE(ctx->starved, true);
		return false;
	}
	status = prepare(ctx, cmd, ticket);
	trace_acp_submit(ctx, cmd, status);
	WRITE_ONCE(ctx->taken, ticket);
	acp_stat_inc(ctx->job->node, commands);
	if (status) {
		end(ctx, cmd, status);
	} else if (!try_start(ctx, cmd, batch)) {
		/* The filled command first, as above. */
		smp_store_release(&cmd->state, ACP_CMD_WAITING);
		WRITE_ONCE(ctx->waiting, ctx->waiting + 1);
	}
	return true;
}

/*
 * Could it go on now?  The drainer asks after each pass, see acp_queue_drain.
 * What began to wait in the pass is tried once more: whoever opened its flow or
 * made room at its peer meanwhile may not have seen that anything waits.
 */
static bool can_go_on(struct acp_context *ctx, u64 completed, u32 waited)
{
	smp_mb();	/* pairs with that in acp_station_idle(): flags before states */
	if (ctx->waiting > waited || (ctx->waiting && READ_ONCE(ctx->completed) != completed))
		return true;
	return acp_queue_available(ctx) && slot_free(acp_context_cmd(ctx, ctx->taken + 1));
}

bool acp_queue_drain(struct acp_context *ctx, int budget)
{
	u64 completed, first = READ_ONCE(ctx->taken);
	struct acp_batch batch acp_uncleared;
	u32 waited;
	int asked;

	if (atomic_inc_return(&ctx->drain) != 1)
		return false;
	acp_batch_init(&batch);
	do {
		/* Before all that is looked at: who asks later is counted anew. */
		asked = atomic_read_acquire(&ctx->drain);
		do {
			completed = READ_ONCE(ctx->completed);
			if (READ_ONCE(ctx->closed))
				break;
			if (ctx->waiting)
				start_waiting(ctx, &batch);
			waited = ctx->waiting;
			while (budget-- > 0 && take(ctx, &batch))
				;
			if (ctx->main != ctx)
				acp_pass_mark(ctx);
		} while (budget > 0 && can_go_on(ctx, completed, waited));
		acp_batch_flush(&batch);
		if (ctx->taken - first > READ_ONCE(ctx->hold.most))
			WRITE_ONCE(ctx->hold.most, ctx->taken - first);
	} while (budget > 0 && atomic_sub_return(asked, &ctx->drain));
	if (budget > 0)
		return false;
	/* In full order: who comes from here on drains, or we see what it brought. */
	atomic_xchg(&ctx->drain, 0);
	return acp_queue_ready(ctx);
}
