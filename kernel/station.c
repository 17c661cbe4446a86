// SPDX-License-Identifier: GPL-2.0-only
/* The station: see station.h. */
#include <linux/slab.h>
#include "barrier.h"
#include "copies.h"
#include "ping.h"
#include "poller.h"
#include "queue.h"
#include "region.h"
#include "station.h"
#include "strided.h"
#include "trace.h"

#define STOCK_MOST	64		/* items of a processor */

static struct kmem_cache *items;

/* ---- items ---- */

/* Items that belong to nobody: a chain by link.next. */
static void chain_add(struct list_head **first, struct acp_item *item)
{
	item->link.next = *first;
	*first = &item->link;
}

static struct acp_item *chain_take(struct list_head **first)
{
	struct acp_item *item = list_entry(*first, struct acp_item, link);

	*first = item->link.next;
	return item;
}

/* Some that are not needed now, by processor: the slab's cost more than what they are used for. */
struct stock {
	struct list_head *first;
	u32 count;
};

static DEFINE_PER_CPU(struct stock, stock);

/* Have that many.  They are there until BH is on again, but for those that item_new() takes. */
static bool stock_up(u32 count)
{
	struct stock *s = this_cpu_ptr(&stock);

	while (s->count < count) {
		struct acp_item *item = kmem_cache_alloc(items, GFP_ATOMIC | __GFP_NOWARN);

		if (!item)
			return false;
		chain_add(&s->first, item);
		s->count++;
	}
	return true;
}

/* One of those, cleared but for its message and its link.  BH off, as for all of these. */
static struct acp_item *item_new(void)
{
	struct stock *s = this_cpu_ptr(&stock);
	struct acp_item *item = chain_take(&s->first);
	const size_t from = offsetofend(struct acp_item, out.m);

	s->count--;
	memset((void *)item + from, 0, sizeof(*item) - from);
	return item;
}

static void item_free(struct acp_item *item)
{
	struct stock *s = this_cpu_ptr(&stock);

	if (s->count == STOCK_MOST) {
		kmem_cache_free(items, item);
		return;
	}
	chain_add(&s->first, item);
	s->count++;
}

/* Give the peer what was put aside for it, and let it go out. */
static void batch_flush(struct acp_batch *batch)
{
	if (batch->count)
		acp_peer_flush_row(batch->peer, &batch->items, batch->life);
	else
		acp_peer_flush(batch->peer);
	batch->count = 0;
}

/* Put aside an item that follows others, or is the first.  Returns the life that it goes out in. */
static u32 batch_add(struct acp_batch *batch, struct acp_item *item)
{
	if (!batch->count++) {
		INIT_LIST_HEAD(&batch->items);
		batch->life = acp_peer_life(batch->peer);
	}
	acp_items_add(&batch->items, item);
	return batch->life;
}

/* Fenced behind the run so far: in the same life of the flow, or not at all. */
static u32 batch_send(struct acp_batch *batch, struct acp_peer *peer, struct acp_cmd *cmd,
		      struct acp_run *run)
{
	u32 life;

	if (batch->peer && batch->peer != peer)
		batch_flush(batch);
	batch->peer = peer;
	if (cmd->step.plan == ACP_PLAN_SEND && !cmd->item.out.fence) {
		life = batch_add(batch, &cmd->item);
	} else {
		if (batch->count)
			acp_peer_send_row(peer, &batch->items, batch->life);
		batch->count = 0;
		life = acp_peer_send(peer, &cmd->item, cmd->item.out.fence ? run->life : 0);
	}
	acp_run_sent(run, cmd->item.out.m.ticket, life);
	return life;
}

void acp_batch_flush(struct acp_batch *batch)
{
	if (batch->source)
		acp_region_put(batch->source);
	batch->source = NULL;
	if (batch->peer)
		batch_flush(batch);
	batch->peer = NULL;
}

/*
 * The region of 8 bytes at ga, kept in *kept (NULL: none yet) for the next one:
 * a row of words is mostly in one region.  NULL and *status, as acp_region_get().
 */
static __always_inline struct acp_region *region_of_word(struct acp_job *job, u64 ga, u32 rank,
							 u32 need, struct acp_region **kept,
							 u8 *status)
{
	u64 offset = acp_ga_offset(&job->ga, ga);

	if (*kept && ga - offset == (*kept)->key) {
		*status = acp_region_check(*kept, offset, sizeof(u64),
					   acp_ga_rank(&job->ga, ga) == rank, need);
		return *status ? NULL : *kept;
	}
	if (*kept)
		acp_region_put(*kept);
	*status = ACP_ST_OK;
	*kept = acp_region_near(job, ga, sizeof(u64), rank, need) ?:
		acp_region_get_bh(job, ga, sizeof(u64), rank, need, status);
	return *kept;
}

/* ---- commands with both ends here ---- */

static u8 local_atomic(struct acp_job *job, const struct acp_msg *m, struct acp_region *dst,
		       u64 *old)
{
	int width = acp_op_width(m->op);
	struct acp_region *src;
	u8 status;

	src = acp_region_get_bh(job, m->src, width, m->origin, ACP_ACCESS_ATOMIC, &status);
	if (!src)
		return status;
	*old = acp_region_atomic(src, acp_ga_offset(&job->ga, m->src), m->op, m->a, m->b);
	acp_region_put(src);
	if (dst)
		acp_region_write(dst, acp_ga_offset(&job->ga, m->dst), old, width);
	return ACP_ST_OK;
}

/* All of a copy is in memory: change its flag. */
static noinline u8 change_flag(struct acp_job *job, const struct acp_msg *m)
{
	u8 op = m->op == ACP_OP_COPY_ADD ? ACP_OP_ADD8 : ACP_OP_SWAP8, status;
	struct acp_region *r;

	if (!acp_ga_valid(&job->ga, m->c))
		return ACP_ST_GA;
	if (m->c & 7)
		return ACP_ST_ALIGN;
	r = acp_region_get_bh(job, m->c, 8, m->origin, ACP_ACCESS_ATOMIC, &status);
	if (!r)
		return status;
	acp_region_atomic(r, acp_ga_offset(&job->ga, m->c), op, m->b, 0);
	acp_region_put(r);
	return ACP_ST_OK;
}

/* ... if it has one. */
static inline u8 raise_flag(struct acp_job *job, const struct acp_msg *m)
{
	return unlikely(acp_op_signals(m->op)) ? change_flag(job, m) : ACP_ST_OK;
}

static u8 local_now(struct acp_job *job, const struct acp_msg *m)
{
	struct acp_region *dst;
	u64 old;
	u8 status;

	if (!acp_op_width(m->op))
		return acp_copies_now(job, m, 0, m->size) ?: raise_flag(job, m);
	dst = acp_region_get_bh(job, m->dst, acp_op_width(m->op), m->origin, ACP_ACCESS_WRITE,
				&status);
	if (!dst)
		return status;
	status = local_atomic(job, m, dst, &old);
	acp_region_put(dst);
	return status;
}

static bool local_is_long(const struct acp_msg *m)
{
	return acp_cmd_long(m);
}

/* ---- starting commands of our own ---- */

static void start_local(struct acp_context *ctx, struct acp_cmd *cmd)
{
	const struct acp_msg *m = &cmd->item.out.m;
	u8 status;

	acp_stat_inc(ctx->job->node, local);
	if (local_is_long(m)) {
		if (acp_copies_start(ctx->job, m, ctx, NULL, NULL))
			return;
		status = ACP_ST_NOMEM;
	} else {
		status = local_now(ctx->job, m);
	}
	acp_queue_complete(ctx, m->ticket, status);
}

/* One that copies 8 bytes. */
static __always_inline u8 make_word(struct acp_job *job, struct acp_out *out,
				    struct acp_batch *batch)
{
	struct acp_msg *m = &out->m;
	struct acp_region *r;
	u8 status;

	r = region_of_word(job, m->src, m->origin, ACP_ACCESS_READ, &batch->source, &status);
	if (!r)
		return status;
	m->a = acp_region_read_word(r, acp_ga_offset(&job->ga, m->src));
	out->inline_data = true;
	m->type = ACP_MSG_DATA;
	m->op = 0;
	return ACP_ST_OK;
}

/* Any other one. */
static noinline u8 make_other(struct acp_job *job, struct acp_out *out)
{
	struct acp_msg *m = &out->m;
	struct acp_region *r;
	u64 old = 0;
	u8 status;

	if (!acp_op_width(m->op)) {
		if (unlikely(m->op == ACP_OP_STRIDED))
			r = acp_strided_src(job, m, &status);
		else
			r = acp_region_get_bh(job, m->src, m->size, m->origin, ACP_ACCESS_READ,
					      &status);
		if (!r)
			return status;
		if (m->size <= sizeof(m->a) && m->op != ACP_OP_STRIDED) {
			acp_region_read(r, acp_ga_offset(&job->ga, m->src), &m->a, m->size);
			out->inline_data = true;
		}
		acp_region_put(r);
	} else {
		status = local_atomic(job, m, NULL, &old);
		if (status)
			return status;
		m->size = acp_op_width(m->op);
		m->a = old;
		out->inline_data = true;
	}
	m->type = ACP_MSG_DATA;
	if (m->op < ACP_OP_STRIDED)
		m->op = 0;
	return ACP_ST_OK;
}

/* Turn a command whose source is here into the DATA that goes to its destination. */
static __always_inline u8 make_data(struct acp_job *job, struct acp_out *out,
				    struct acp_batch *batch)
{
	if (out->m.op == ACP_OP_COPY && out->m.size == sizeof(out->m.a))
		return make_word(job, out, batch);
	return make_other(job, out);
}

static u8 no_peer(struct acp_job *job)
{
	return READ_ONCE(job->dead) ? ACP_ST_ABORT : ACP_ST_NOMEM;
}

bool acp_station_ready(struct acp_job *job, struct acp_cmd *cmd, u8 *status)
{
	const struct acp_step *s = &cmd->step;
	struct acp_peer *peer = acp_peer_find(job, s->node, s->color), *third;

	if (peer && acp_peer_awaited(peer) >= ACP_DELEGATED)
		return false;
	if (!s->third)
		return true;
	third = acp_peer_get(job, s->dst_node, s->dst_color);
	if (third)
		return acp_peer_ready(third, &cmd->life[ACP_EXPECT_RESULT - 1], status);
	*status = no_peer(job);
	return true;
}

/*
 * An answer is expected in this life of the peer's flow: as long as it lasts, the answer
 * will come, or has come already.
 */
static u8 expect_in(struct acp_context *ctx, struct acp_cmd *cmd, struct acp_peer *peer, u32 life,
		    u8 who)
{
	bool started;

	spin_lock(&ctx->lock);
	/* Not if it ended meanwhile. */
	started = cmd->state == ACP_CMD_STARTED;
	if (started) {
		cmd->life[who - 1] = life;
		cmd->expected |= who;
	}
	spin_unlock(&ctx->lock);
	if (!started) {
		acp_peer_unexpect(peer, life);
		return ACP_ST_PEER;
	}
	/* Pairs with that in acp_station_lost(): it finds us, or we see the new life. */
	smp_mb();
	return acp_peer_life(peer) == life ? ACP_ST_OK : ACP_ST_PEER;
}

/* A third node that gets the result will answer, too. */
static u8 expect_result(struct acp_context *ctx, struct acp_cmd *cmd)
{
	u32 life = cmd->life[ACP_EXPECT_RESULT - 1];
	const struct acp_step *s = &cmd->step;
	struct acp_peer *third;
	u8 status;

	if (!s->third)
		return ACP_ST_OK;
	third = acp_peer_find(ctx->job, s->dst_node, s->dst_color);
	if (!third)
		return ACP_ST_ABORT;
	status = expect_in(ctx, cmd, third, acp_peer_expect(third), ACP_EXPECT_RESULT);
	return cmd->life[ACP_EXPECT_RESULT - 1] == life ? status : ACP_ST_PEER;
}

static u8 prepare_remote(struct acp_context *ctx, struct acp_cmd *cmd, struct acp_peer *peer,
			 struct acp_batch *batch)
{
	if (!peer)
		return no_peer(ctx->job);
	if (cmd->step.plan == ACP_PLAN_SEND)
		return make_data(ctx->job, &cmd->item.out, batch);
	cmd->item.out.m.type = ACP_MSG_CMD;
	return expect_result(ctx, cmd);
}

bool acp_station_due(const struct acp_item *item)
{
	const struct acp_msg *m = &item->out.m;

	return !m->depends || !item->context ||
	       !acp_queue_failed(item->context, m->ticket - m->depends, m->ticket - m->upto);
}

void acp_station_start(struct acp_context *ctx, struct acp_cmd *cmd, struct acp_batch *batch)
{
	struct acp_peer *peer;
	u32 life;
	u8 status;

	if (cmd->step.plan == ACP_PLAN_LOCAL) {
		start_local(ctx, cmd);
		return;
	}
	peer = batch->peer;
	if (!peer || peer->node != cmd->step.node || peer->color != cmd->step.color)
		peer = acp_peer_get(ctx->job, cmd->step.node, cmd->step.color);
	status = prepare_remote(ctx, cmd, peer, batch);
	if (status) {
		acp_queue_complete(ctx, cmd->item.out.m.ticket, status);
		return;
	}
	cmd->item.context = ctx;
	acp_context_get(ctx);
	cmd->busy = true;
	life = batch_send(batch, peer, cmd, &ctx->run);
	if (cmd->step.plan == ACP_PLAN_SEND)
		return;
	status = expect_in(ctx, cmd, peer, life, ACP_EXPECT_SOURCE);
	/* It may have ended otherwise. */
	if (status)
		acp_queue_complete(ctx, cmd->item.out.m.ticket, status);
}

/* ---- what arrives ---- */

static void arrival_put(struct acp_arrival *a)
{
	if (!refcount_dec_and_test(&a->refs))
		return;
	acp_peer_applied(a->peer, a->seq, a->epoch);
	kfree(a);
}

/* A command of a rank of this node ended somewhere.  BH is off: nothing goes meanwhile (RCU). */
static void complete_own(struct acp_job *job, u32 rank, u64 ticket, u8 status)
{
	struct acp_context *ctx = acp_job_context(job, rank);

	if (ctx)
		ctx = acp_context_queue(ctx, ticket);
	if (!ctx || !acp_queue_complete(ctx, ticket, status))
		acp_stat_inc(job->node, stray_done);
}

/* One frame being applied. */
struct frame {
	struct acp_peer *peer;
	struct acp_job *job;
	const struct acp_frame_cb *cb;
	u32 epoch;
	struct acp_arrival *arrival;	/* made when first needed */
	u32 spare;			/* items of the stock that its messages may take */
	u32 count;			/* messages */
	u32 gap;			/* bytes between a DATA message and its payload */
	u32 end_node;			/* of the last message that ends: where its origin is */
	bool lone_put;
	bool pending;
	bool refused;			/* for want of memory to tell how it ended */
	u32 first_size;
	struct acp_batch batch;		/* what goes to other peers */
	struct acp_msg first;		/* its first message; mostly the only one */
};

/*
 * Send what was queued: soon.  The peer that a frame came from is looked at
 * anyway; one other at the end of the frame, more of them by their tasklets.
 */
static void send_soon(struct frame *f, struct acp_peer *peer)
{
	if (f && peer == f->peer)
		return;
	if (f && !f->batch.peer)
		f->batch.peer = peer;
	else if (!f || f->batch.peer != peer)
		acp_peer_kick(peer);
}

/* Tell the origin, through "peer", how its command ended. */
static void answer(struct frame *f, struct acp_peer *peer, struct acp_item *item,
		   const struct acp_msg *m, u8 status)
{
	item->out = (struct acp_out){};
	item->out.m.type = ACP_MSG_DONE;
	item->out.m.origin = m->origin;
	item->out.m.ticket = m->ticket;
	item->out.m.status = status;
	acp_peer_send(peer, item, 0);
	send_soon(f, peer);
}

void acp_station_copied(struct acp_job *job, const struct acp_msg *m, u8 status,
			struct acp_item *done, struct acp_peer *peer)
{
	if (!status)
		status = raise_flag(job, m);
	if (done)
		answer(NULL, peer, done, m, status);
	else
		complete_own(job, m->origin, m->ticket, status);
	acp_station_idle(job);
}

static bool need_arrival(struct frame *f)
{
	if (f->arrival)
		return true;
	f->arrival = kzalloc(sizeof(*f->arrival), GFP_ATOMIC | __GFP_NOWARN);
	if (!f->arrival)
		return false;
	f->arrival->peer = f->peer;
	f->arrival->seq = f->cb->seq;
	f->arrival->epoch = f->epoch;
	refcount_set(&f->arrival->refs, 1);
	return true;
}

/* All that applying may need, so that it cannot stop half way. */
static bool reserve(struct frame *f, int needs)
{
	/* A lone message that fails has no effect: if there is no memory then, it comes again. */
	if (needs && f->count > 1 && !need_arrival(f))
		return false;
	if (!stock_up(needs))
		return false;
	f->spare = needs;
	return true;
}

static struct acp_item *take_spare(struct frame *f)
{
	f->spare--;
	return item_new();
}

/* The frame stays unacknowledged until this item was delivered or came to an end. */
static void hold_arrival(struct frame *f, struct acp_item *item)
{
	f->pending = true;
	refcount_inc(&f->arrival->refs);
	item->arrival = f->arrival;
}

/*
 * A command of the peer that sent this frame failed.  It must know before it
 * sees the acknowledgement, and what it fenced behind it must fail, too.
 */
static void answer_failure(struct frame *f, const struct acp_msg *m, u8 status)
{
	struct acp_item *item;

	if (!need_arrival(f) || (!f->spare && !reserve(f, 1))) {
		/* The frame comes again; what earlier pieces met must not be lost. */
		if (m->type == ACP_MSG_DATA)
			acp_peer_fail(f->peer, m->origin, m->ticket, status, 0);
		f->refused = true;
		return;
	}
	item = take_spare(f);
	acp_peer_fail(f->peer, m->origin, m->ticket, status, f->cb->seq + ACP_FRAME_WINDOW);
	hold_arrival(f, item);
	answer(f, f->peer, item, m, status);
}

/* Did a command fail that this message must not come after? */
static bool depends_failed(struct frame *f, const struct acp_msg *m)
{
	struct acp_context *ctx;
	bool failed;

	if (!m->depends)
		return false;
	if (acp_job_node_of(f->job, m->origin) != f->job->me)
		return acp_peer_depends(f->peer, m);
	rcu_read_lock();
	ctx = acp_job_context(f->job, m->origin);
	if (ctx)
		ctx = acp_context_queue(ctx, m->ticket);
	failed = ctx && acp_queue_failed(ctx, m->ticket - min_t(u16, m->depends, ACP_INFLIGHT),
					 m->ticket - m->upto);
	rcu_read_unlock();
	return failed;
}

/* A piece of a strided copy: nothing of it moves unless all of the copy may. */
static noinline u8 apply_strided(struct acp_job *job, const struct acp_msg *m,
				 struct sk_buff *skb, u32 at)
{
	struct acp_region *r;
	u8 status;

	r = acp_strided_dst(job, m, &status);
	if (!r)
		return status;
	status = acp_strided_write_skb(r, &job->ga, m, skb, at);
	acp_region_put(r);
	return status;
}

/* A payload that may be in many fragments. */
static u8 apply_bytes(struct acp_region *r, u64 offset, struct sk_buff *skb,
		      const struct acp_frame_cb *cb, u32 at, u32 length)
{
	struct acp_bytes from = cb->at;
	u32 word;

	from.at += at;
	if (length != sizeof(word))
		return acp_region_write_skb(r, offset, skb, from, length) ? ACP_ST_RANGE :
									    ACP_ST_OK;
	/* It is there, but perhaps in memory of a device. */
	if (acp_bytes_copy(skb, &from, &word, sizeof(word)))
		return ACP_ST_RANGE;
	acp_region_write(r, offset, &word, sizeof(word));
	return ACP_ST_OK;
}

static u8 apply_data(struct frame *f, const struct acp_msg *m, struct sk_buff *skb, u32 at)
{
	const struct acp_frame_cb *cb = f->cb;
	struct acp_job *job = f->job;
	struct acp_region *r;
	u64 word;
	u8 status;

	if (m->flags & ACP_MSG_FAIL)
		return m->status;
	if (depends_failed(f, m))
		return ACP_ST_ORDER;
	if (!acp_ga_valid(&job->ga, m->dst))
		return ACP_ST_GA;
	if (unlikely(m->op == ACP_OP_STRIDED))
		return apply_strided(job, m, skb, cb->at.at + at);
	r = acp_region_get_bh(job, m->dst, m->length, m->origin, ACP_ACCESS_WRITE, &status);
	if (!r)
		return status;
	if (m->length == sizeof(word) && at + sizeof(word) <= cb->tagged) {
		memcpy(&word, cb->body + at, sizeof(word));
		acp_region_write_word(r, acp_ga_offset(&job->ga, m->dst), word);
	} else {
		status = apply_bytes(r, acp_ga_offset(&job->ga, m->dst), skb, cb, at, m->length);
	}
	acp_region_put(r);
	return status;
}

/* All of a command's data has come, or will not come: its end. */
static void end_command(struct frame *f, const struct acp_msg *m, u32 origin, u8 status)
{
	struct acp_job *job = f->job;
	struct acp_peer *to;

	if (unlikely(m->op) && !status)
		status = raise_flag(job, m);
	if (origin == job->me) {
		complete_own(job, m->origin, m->ticket, status);
	} else if (origin == f->peer->node) {
		if (status)
			answer_failure(f, m, status);
	} else {
		to = acp_peer_find(job, origin, f->peer->color);
		if (to)
			answer(f, to, take_spare(f), m, status);
	}
}

static bool take_data(struct frame *f, const struct acp_msg *m, struct sk_buff *skb, u32 at)
{
	u8 status = apply_data(f, m, skb, at), earlier;

	if (m->flags & ACP_MSG_LAST) {
		earlier = acp_peer_take_fail(f->peer, m->origin, m->ticket);
		end_command(f, m, f->count == 1 ? f->end_node :
			    acp_job_node_of(f->job, m->origin), earlier ?: status);
		return !f->refused;
	}
	if (status)
		return acp_peer_fail(f->peer, m->origin, m->ticket, status, 0);
	return true;
}

/* Words by many commands.  No piece was before them, and they depend on nothing. */
static void take_words(struct frame *f, struct acp_msg *m, const struct acp_msg_word *w)
{
	u32 count = acp_msg_count(m), origin = acp_job_node_of(f->job, m->origin);
	const struct acp_ga_layout *l = &f->job->ga;
	struct acp_region *kept = NULL, *r;
	u64 word;
	u8 status;

	for (; count--; w++, m->ticket++) {
		m->dst = be64_to_cpu(w->dst);
		status = ACP_ST_GA;
		r = NULL;
		if (acp_ga_valid(l, m->dst))
			r = region_of_word(f->job, m->dst, m->origin, ACP_ACCESS_WRITE, &kept,
					   &status);
		if (r) {
			memcpy(&word, w->data, sizeof(word));
			acp_region_write_word(r, acp_ga_offset(l, m->dst), word);
		}
		end_command(f, m, origin, status);
	}
	if (kept)
		acp_region_put(kept);
}

static u8 check_cmd(struct frame *f, const struct acp_msg *m)
{
	struct acp_job *job = f->job;
	u8 status = m->flags & ACP_MSG_FAIL ? m->status :
					      acp_cmd_check(&job->ga, job->colors, m);

	if (!status && acp_job_ga_node(job, m->src) != job->me)
		status = ACP_ST_RANK;
	if (unlikely(m->op >= ACP_OP_STRIDED) && !status)
		status = acp_job_check_flag(job, m);
	if (!status && depends_failed(f, m))
		status = ACP_ST_ORDER;
	return status;
}

/* A delegated command whose result stays on this node. */
static void take_local(struct frame *f, const struct acp_msg *m)
{
	struct acp_item *item;
	u8 status = ACP_ST_OK;

	if (!local_is_long(m))
		status = local_now(f->job, m);
	if (status) {
		answer_failure(f, m, status);
		return;
	}
	item = take_spare(f);
	item->requester = f->peer;
	atomic_inc(&f->peer->delegated);
	if (!local_is_long(m))
		answer(f, f->peer, item, m, ACP_ST_OK);
	else if (!acp_copies_start(f->job, m, NULL, item, f->peer))
		answer(f, f->peer, item, m, ACP_ST_NOMEM);
}

static void take_cmd(struct frame *f, const struct acp_msg *m)
{
	struct acp_job *job = f->job;
	u8 status = check_cmd(f, m);
	struct acp_peer *to;
	struct acp_item *item;
	u32 dst;

	acp_stat_inc(job->node, delegated);
	if (status) {
		answer_failure(f, m, status);
		return;
	}
	dst = acp_job_ga_node(job, m->dst);
	if (dst == job->me) {
		take_local(f, m);
		return;
	}
	to = acp_peer_get(job, dst, acp_ga_color(&job->ga, m->dst));
	if (!to) {
		answer_failure(f, m, ACP_ST_NOMEM);
		return;
	}
	item = take_spare(f);
	item->out.m = *m;
	item->out.m.flags = 0;
	item->out.fence = m->flags & ACP_MSG_ORDERED;
	if (!item->out.fence) {
		item->out.m.depends = 0;
		item->out.m.upto = 0;
	}
	status = make_data(job, &item->out, &f->batch);
	if (status) {
		item_free(item);
		f->spare++;
		answer_failure(f, m, status);
		return;
	}
	item->requester = f->peer;
	atomic_inc(&f->peer->delegated);
	acp_peer_send(to, item, 0);
	send_soon(f, to);
}

/* A probe: it goes back, counted as a command that is under way for the peer. */
static void take_ping(struct frame *f, const struct acp_msg *m)
{
	struct acp_item *item;

	if (m->flags & ACP_MSG_ANSWER) {
		acp_ping_answered(f->peer, m);
		return;
	}
	item = take_spare(f);
	item->out.m = *m;
	item->out.m.flags = ACP_MSG_ANSWER;
	item->out.m.origin = f->job->me;
	item->requester = f->peer;
	atomic_inc(&f->peer->delegated);
	acp_peer_send(f->peer, item, 0);
	send_soon(f, f->peer);
}

static bool message_ok(struct frame *f, const struct acp_msg *m)
{
	struct acp_job *job = f->job;

	if (m->type == ACP_MSG_BARRIER || m->type == ACP_MSG_PING)
		return m->origin == f->peer->node;
	if (m->origin >= job->ga.nprocs)
		return false;
	if (m->type == ACP_MSG_CMD)
		return acp_job_node_of(job, m->origin) == f->peer->node;
	if (m->type == ACP_MSG_DONE)
		return acp_job_node_of(job, m->origin) == job->me;
	return true;
}

/* Does it make something be sent that counts as under way for the peer? */
static bool is_work(const struct acp_msg *m)
{
	return m->type == ACP_MSG_CMD ||
	       (m->type == ACP_MSG_PING && !(m->flags & ACP_MSG_ANSWER));
}

/* The items that it may take to tell the origin of the ends of this message's commands. */
static int end_needs(struct frame *f, const struct acp_msg *m)
{
	u32 node;

	if (m->type == ACP_MSG_DATA && !(m->flags & ACP_MSG_LAST))
		return 0;
	node = acp_job_node_of(f->job, m->origin);
	f->end_node = node;
	if (node == f->job->me)
		return 0;
	f->lone_put = node == f->peer->node;
	if (!f->lone_put)
		f->refused |= !acp_peer_get(f->job, node, f->peer->color);
	return acp_msg_count(m);
}

/* Is every message well formed?  How many items may they need, how many are commands? */
static int survey(struct frame *f, u32 length, u32 tagged, u32 *cmds)
{
	struct acp_msg *m = &f->first, other acp_uncleared;
	u32 at, n;
	int needs = 0;

	for (at = 0; at < length; at += n, m = &other) {
		if (tagged <= at)
			return -1;
		n = acp_msg_decode(m, f->cb->body + at, length - at, tagged - at);
		if (!n || !message_ok(f, m))
			return -1;
		f->count += acp_msg_count(m);
		if (f->count > ACP_FRAME_MSGS)
			return -1;
		/* Where the tag ends, the payload begins. */
		if (tagged < length && acp_msg_head(m) != tagged)
			return -1;
		if (!at)
			f->first_size = n;
		if (m->type == ACP_MSG_DATA || m->type == ACP_MSG_WORDS) {
			needs += end_needs(f, m);
		} else if (is_work(m)) {
			++*cmds;
			needs++;
		}
	}
	/* It needs an answer only if it fails, without effect. */
	f->lone_put &= f->count == 1;
	return f->lone_put ? 0 : needs;
}

static bool apply(struct frame *f, struct sk_buff *skb, u32 length, u32 tagged)
{
	struct acp_msg *m = &f->first, other acp_uncleared;
	u32 at, n = f->first_size;

	for (at = 0; at < length; at += n) {
		if (at) {
			m = &other;
			n = acp_msg_decode(m, f->cb->body + at, length - at, tagged - at);
		}
		switch (m->type) {
		case ACP_MSG_DATA:
			if (!take_data(f, m, skb, at + acp_msg_head(m) + f->gap))
				return false;
			break;
		case ACP_MSG_CMD:
			take_cmd(f, m);
			if (f->refused)
				return false;
			break;
		case ACP_MSG_DONE:
			complete_own(f->job, m->origin, m->ticket, m->status);
			break;
		case ACP_MSG_BARRIER:
			acp_barrier_arrived(f->job, m);
			break;
		case ACP_MSG_PING:
			take_ping(f, m);
			break;
		case ACP_MSG_WORDS:
			take_words(f, m, (const void *)f->cb->body + at + acp_msg_head(m));
			break;
		}
	}
	return true;
}

/*
 * A lone DATA of a command of the node that it comes from, or of ours that asked for it, which
 * ends well.  False: it is something else, and nothing was done.
 */
static bool take_lone(struct acp_peer *peer, const struct acp_frame_cb *cb)
{
	const struct acp_msg_lone *lone = (const void *)cb->body;
	struct acp_job *job = peer->job;
	u32 origin, node;
	struct acp_region *r;
	u64 dst, ticket, word;

	if (cb->length != sizeof(*lone) || cb->tagged != sizeof(*lone) ||
	    lone->h.word != ACP_MSG_LONE || lone->h.length != cpu_to_be32(sizeof(lone->data)) ||
	    READ_ONCE(peer->fails))
		return false;
	origin = be32_to_cpu(lone->h.origin);
	dst = be64_to_cpu(lone->dst);
	if (origin >= job->ga.nprocs)
		return false;
	node = acp_job_node_of(job, origin);
	if (node != peer->node && node != job->me)
		return false;
	r = acp_region_near(job, dst, sizeof(word), origin, ACP_ACCESS_WRITE);
	if (!r)
		return false;
	ticket = be64_to_cpu(lone->h.ticket);
	memcpy(&word, lone->data, sizeof(word));
	acp_region_write_word(r, acp_ga_offset(&job->ga, dst), word);
	acp_region_put(r);
	if (node == job->me)
		complete_own(job, origin, ticket, ACP_ST_OK);
	return true;
}

/* Any other frame, or one that ends otherwise. */
static noinline enum acp_arrived take_any(struct acp_peer *peer, u32 epoch, struct sk_buff *skb,
					  const struct acp_frame_cb *cb)
{
	u32 length = cb->length, tagged = cb->tagged;
	enum acp_arrived verdict = ACP_APPLIED;
	struct frame f acp_uncleared;
	u32 cmds = 0;
	int needs;

	/* Not all of it: the message alone is as long as the rest, and filled anyway. */
	memset(&f, 0, offsetof(struct frame, batch));
	acp_batch_init(&f.batch);
	f.peer = peer;
	f.job = peer->job;
	f.cb = cb;
	f.epoch = epoch;
	/* The payload of a lone message begins behind what is tagged, perhaps a checksum. */
	if (tagged < length) {
		f.gap = (tagged - sizeof(struct acp_msg_data)) % sizeof(struct acp_msg_more);
		tagged -= f.gap;
		length -= f.gap;
	}
	needs = survey(&f, length, tagged, &cmds);
	if (needs < 0)
		return ACP_MALFORMED;
	/* Peers keep to ACP_DELEGATED, but may think that one has ended a bit before we do. */
	if (cmds && atomic_read(&peer->delegated) + cmds > 2 * ACP_DELEGATED) {
		acp_stat_inc(f.job->node, drop_busy);
		trace_acp_drop(f.job->node, skb, NULL, ACP_STAT_drop_busy);
		return ACP_REFUSED;
	}
	if (f.refused || !reserve(&f, needs)) {
		acp_stat_inc(f.job->node, drop_nomem);
		trace_acp_drop(f.job->node, skb, NULL, ACP_STAT_drop_nomem);
		verdict = ACP_REFUSED;
	} else if (!apply(&f, skb, length, tagged)) {
		/* Only a message that is alone in its frame can fail so, without effect. */
		acp_stat_inc(f.job->node, drop_nomem);
		trace_acp_drop(f.job->node, skb, NULL, ACP_STAT_drop_nomem);
		verdict = ACP_REFUSED;
	} else if (f.pending) {
		verdict = ACP_PENDING;
		arrival_put(f.arrival);
		f.arrival = NULL;
	}
	kfree(f.arrival);
	acp_batch_flush(&f.batch);
	return verdict;
}

enum acp_arrived acp_station_arrived(struct acp_peer *peer, u32 epoch, struct sk_buff *skb,
				     const struct acp_frame_cb *cb)
{
	return take_lone(peer, cb) ? ACP_APPLIED : take_any(peer, epoch, skb, cb);
}

bool acp_station_pieces(struct acp_peer *peer, const struct acp_msg *m, const struct sk_buff *skb,
			const struct acp_pieces *pieces)
{
	struct acp_job *job = peer->job;
	struct acp_region *r;
	u8 status;
	int err;

	if (m->origin >= job->ga.nprocs || !acp_ga_valid(&job->ga, m->dst))
		return false;
	r = acp_region_get(job, m->dst, (u64)pieces->count * pieces->length, m->origin,
			   ACP_ACCESS_WRITE, &status);
	if (!r)
		return false;
	err = acp_region_write_pieces(r, acp_ga_offset(&job->ga, m->dst), skb, *pieces);
	acp_region_put(r);
	return !err;
}

/* ---- what became of items ---- */

/* Part of a command of ours. */
static void own_done(struct acp_item *item)
{
	struct acp_cmd *cmd = container_of(item, struct acp_cmd, item);
	struct acp_context *ctx = item->context;
	u8 status = item->status ?: item->out.failed;

	if (item->out.m.type == ACP_MSG_DATA || status)
		acp_queue_complete(ctx, item->out.m.ticket, status);
	item->context = NULL;
	acp_queue_item_back(ctx, cmd);
}

/* The result of a delegated command could not be delivered: tell the origin. */
static bool report(struct acp_item *item)
{
	struct acp_peer *requester = item->requester;
	struct acp_msg m = item->out.m;

	if (!requester)
		return false;
	atomic_dec(&requester->delegated);
	item->requester = NULL;
	if (!item->status || m.type == ACP_MSG_DONE || m.type == ACP_MSG_PING ||
	    READ_ONCE(requester->job->dead))
		return false;
	answer(NULL, requester, item, &m, item->status);
	return true;
}

static __always_inline void item_done(struct acp_item *item)
{
	struct acp_arrival *arrival = item->arrival;

	item->arrival = NULL;
	if (arrival)
		arrival_put(arrival);
	if (item->context)
		own_done(item);
	else if (item->out.m.type == ACP_MSG_BARRIER)
		kfree(item);
	else if (item->out.m.type == ACP_MSG_PING && !(item->out.m.flags & ACP_MSG_ANSWER))
		acp_ping_sent(item);
	else if (!report(item))
		item_free(item);
}

void acp_station_done(struct acp_item *item)
{
	item_done(item);
}

void acp_station_delivered(struct list_head *items)
{
	struct list_head *link = items->next;

	while (link != items) {
		struct acp_item *item = list_entry(link, struct acp_item, link);

		if (acp_item_is_put(item)) {
			link = acp_queue_delivered(item->context, link, items);
			continue;
		}
		link = link->next;
		item->frames = 0;
		item->status = ACP_ST_OK;
		item_done(item);
	}
}

void acp_station_lost(struct acp_peer *peer, u8 status)
{
	u32 life = acp_peer_life(peer);
	struct acp_job *job = peer->job;
	struct acp_context *ctx;

	smp_mb();	/* pairs with that in expect_in() */
	rcu_read_lock();
	list_for_each_entry_rcu(ctx, &job->contexts, job_link)
		acp_queue_lost(ctx, peer->node, peer->color, life, status);
	rcu_read_unlock();
	acp_barrier_break(job);
}

int acp_station_init(void)
{
	int err;

	items = KMEM_CACHE(acp_item, SLAB_ACCOUNT);
	if (!items)
		return -ENOMEM;
	err = acp_copies_init();
	if (err)
		kmem_cache_destroy(items);
	return err;
}

void acp_station_exit(void)
{
	int cpu;

	acp_copies_exit();
	for_each_possible_cpu(cpu) {
		struct stock *s = per_cpu_ptr(&stock, cpu);

		for (; s->count; s->count--)
			kmem_cache_free(items, chain_take(&s->first));
	}
	kmem_cache_destroy(items);
}
