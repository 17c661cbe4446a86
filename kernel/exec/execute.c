// SPDX-License-Identifier: GPL-2.0-only
/* Commands of this node's ranks, and commands with both ends here: see station.h and execute.h. */
#include "barrier.h"
#include "chain.h"
#include "copies.h"
#include "execute.h"
#include "grant.h"
#include "indirect.h"
#include "item.h"
#include "mailbox.h"
#include "matching.h"
#include "poller.h"
#include "../mem/watch.h"
#include "../queue/queue.h"
#include "strided.h"

/* ---- batches ---- */

/* Give the collected items to the peer, and send them. */
static void batch_flush(struct acp_batch *batch)
{
	if (batch->count)
		acp_peer_flush_burst(batch->peer, &batch->items, batch->epoch);
	else
		acp_peer_flush(batch->peer);
	batch->count = 0;
}

/* The next item is for another peer: give the collected ones to this peer, which sends later. */
static noinline void batch_leave(struct acp_batch *batch)
{
	struct acp_peer *peer = batch->peer;
	u32 i = (peer->node ^ peer->color << 5) % ACP_BATCH_OTHERS;

	if (batch->count)
		acp_peer_send_burst(peer, &batch->items, batch->epoch);
	batch->count = 0;
	if (batch->others & BIT_ULL(i) && batch->other[i] != peer)
		acp_peer_flush(batch->other[i]);
	batch->other[i] = peer;
	batch->others |= BIT_ULL(i);
}

static noinline void flush_others(struct acp_batch *batch)
{
	u32 i;

	for (; batch->others; batch->others &= batch->others - 1) {
		i = __ffs64(batch->others);
		if (batch->other[i] != batch->peer)
			acp_peer_flush(batch->other[i]);
	}
}

/* Collect an item for the peer of the batch.  Returns the incarnation of its flow. */
static u32 batch_add(struct acp_batch *batch, struct acp_item *item)
{
	if (!batch->count++) {
		INIT_LIST_HEAD(&batch->items);
		batch->epoch = acp_peer_epoch(batch->peer);
	}
	acp_items_add(&batch->items, item);
	return batch->epoch;
}

/* The only incarnation in which an item may go out: that of what it depends on; 0: any. */
static u32 incarnation(const struct acp_cmd *cmd, const struct acp_run *run)
{
	if (cmd->item.out.fence)
		return run->epoch;
	return acp_msg_is_behind(&cmd->item.out.m) ? cmd->older_sent : 0;
}

/* Will the burst of the batch go out in the incarnation in which the item has to? */
static bool fits_batch(const struct acp_batch *batch, const struct acp_cmd *cmd)
{
	if (cmd->step.plan != ACP_PLAN_SEND || cmd->item.out.fence)
		return false;
	return likely(!acp_msg_is_behind(&cmd->item.out.m)) ||
	       (batch->count && cmd->older_sent == batch->epoch);
}

static u32 batch_send(struct acp_batch *batch, struct acp_peer *peer, struct acp_cmd *cmd,
		      struct acp_run *run)
{
	u32 epoch;

	if (batch->peer && batch->peer != peer)
		batch_leave(batch);
	batch->peer = peer;
	if (fits_batch(batch, cmd)) {
		epoch = batch_add(batch, &cmd->item);
	} else {
		if (batch->count)
			acp_peer_send_burst(peer, &batch->items, batch->epoch);
		batch->count = 0;
		epoch = acp_peer_send(peer, &cmd->item, incarnation(cmd, run));
	}
	acp_run_sent(run, cmd->item.out.m.ticket, epoch);
	return epoch;
}

void acp_batch_flush(struct acp_batch *batch)
{
	if (batch->source)
		acp_region_put(batch->source);
	batch->source = NULL;
	if (unlikely(batch->others))
		flush_others(batch);
	if (batch->peer)
		batch_flush(batch);
	batch->peer = NULL;
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

u8 acp_execute_change_flag(struct acp_job *job, const struct acp_msg *m)
{
	struct acp_region *r;
	u8 status;

	if (!acp_ga_valid(&job->ga, m->c))
		return ACP_ST_GA;
	if (m->c & 7)
		return ACP_ST_ALIGN;
	r = acp_region_get_bh(job, m->c, 8, m->origin, ACP_ACCESS_ATOMIC, &status);
	if (!r)
		return status;
	acp_region_atomic(r, acp_ga_offset(&job->ga, m->c), acp_op_of_flag(m->op), m->b, 0);
	acp_region_put(r);
	return ACP_ST_OK;
}

u8 acp_execute_end(struct acp_job *job, const struct acp_msg *m, u8 status)
{
	/* As acp_indirect_direct() has set them. */
	const struct acp_place place = {
		.dst = m->dst, .room = m->size, .list = m->a >> 32, .entry = m->a,
	};

	if (likely(m->op < ACP_OP_SEND) || acp_op_accumulates(m->op))
		return status ?: acp_execute_flag(job, m);
	if (m->op == ACP_OP_SEND)
		return acp_mailbox_end(job, &place, m->origin, m->size, status);
	if (acp_op_chain(m->op))
		acp_chain_close(acp_chain_of(m));
	return status;
}

/* A message that was granted an entry goes there. */
static void set_entry(struct acp_cmd *cmd)
{
	cmd->item.out.m.flags |= ACP_MSG_GRANTED;
	cmd->item.out.m.c = cmd->entry;
}

/* The bytes of a message will not go where they were granted an entry. */
static void return_grant(struct acp_job *job, const struct acp_cmd *cmd)
{
	const struct acp_msg *m = &cmd->item.out.m;
	const struct acp_msg back = {
		.type = ACP_MSG_GRANT, .flags = ACP_MSG_FAIL, .status = ACP_ST_RANK,
		.origin = m->origin, .ticket = m->ticket, .dst = m->dst, .a = cmd->entry,
	};

	if (cmd->step.plan == ACP_PLAN_LOCAL)
		acp_matching_gone(job, &back);
	else
		acp_grant_return(job, &back);
}

u8 acp_execute_local(struct acp_job *job, const struct acp_msg *m)
{
	struct acp_region *dst;
	u64 old;
	u8 status;

	if (!acp_op_width(m->op))
		return acp_execute_end(job, m, acp_copies_now(job, m, 0, m->size));
	dst = acp_region_get_bh(job, m->dst, acp_op_width(m->op), m->origin, ACP_ACCESS_WRITE,
				&status);
	if (!dst)
		return status;
	status = local_atomic(job, m, dst, &old);
	acp_region_put(dst);
	return status;
}

/* ---- starting commands of this node's ranks ---- */

/* The command waits for a grant from this node. */
static void ask_here(struct acp_queue *queue, struct acp_cmd *cmd)
{
	const struct acp_msg *m = &cmd->item.out.m;
	u8 status;

	cmd->asked = true;
	status = acp_indirect_source(queue->job, m) ?: acp_mailbox_ask(queue->job, m, 0);
	if (status)
		acp_queue_complete(queue, m->ticket, status);
	else
		acp_queue_accepted(queue, cmd);
}

static void start_local(struct acp_queue *queue, struct acp_cmd *cmd)
{
	struct acp_msg *m = &cmd->item.out.m;
	u8 status = ACP_ST_OK;

	acp_stat_inc(queue->job->node, local);
	if (unlikely(cmd->rendezvous)) {
		if (!cmd->granted) {
			ask_here(queue, cmd);
			return;
		}
		set_entry(cmd);
	}
	if (unlikely(m->op >= ACP_OP_INDIRECT) && m->op < ACP_OP_REDUCE)
		status = acp_indirect_direct(queue->job, m);
	if (status) {
		if (unlikely(cmd->granted))
			return_grant(queue->job, cmd);
		acp_queue_complete(queue, m->ticket, status);
		return;
	}
	if (acp_cmd_long(m)) {
		if (acp_copies_start(queue->job, m, queue, NULL, NULL))
			return;
		status = acp_execute_end(queue->job, m, ACP_ST_NOMEM);
	} else {
		status = acp_execute_local(queue->job, m);
	}
	acp_queue_complete(queue, m->ticket, status);
}

/* DATA of a command that copies or sends 8 bytes. */
static __always_inline u8 make_word(struct acp_job *job, struct acp_out *out,
				    struct acp_batch *batch)
{
	struct acp_msg *m = &out->m;
	struct acp_region *r;
	u8 status;

	r = acp_region_of_word(job, m->src, m->origin, ACP_ACCESS_READ, &batch->source, &status);
	if (!r)
		return status;
	acp_out_word(out, sizeof(m->a), acp_region_read_word(r, acp_ga_offset(&job->ga, m->src)));
	acp_out_data(out);
	return ACP_ST_OK;
}

/* DATA of a copy whose source is a chain.  For its destination, it is an ordinary copy. */
static u8 make_gathered(struct acp_job *job, struct acp_out *out)
{
	struct acp_chain *c;
	u8 status;

	c = acp_chain_open(job, &out->m, out->m.size, &status);
	if (!c)
		return status;
	acp_out_data(out);
	out->m.op = 0;
	out->m.b = (unsigned long)c;
	out->chained = true;
	return ACP_ST_OK;
}

/* DATA of any other command. */
static noinline u8 make_other(struct acp_job *job, struct acp_out *out)
{
	struct acp_msg *m = &out->m;
	struct acp_region *r;
	u64 old = 0;
	u8 status;

	if (!acp_op_width(m->op)) {
		if (unlikely(m->op == ACP_OP_GATHER))
			return make_gathered(job, out);
		if (unlikely(m->op == ACP_OP_STRIDED))
			r = acp_strided_src(job, m, &status);
		else
			r = acp_region_get_bh(job, m->src, m->size, m->origin, ACP_ACCESS_READ,
					      &status);
		if (!r)
			return status;
		if (m->size <= sizeof(m->a) && m->op != ACP_OP_STRIDED &&
		    !acp_op_accumulates(m->op)) {
			acp_region_read(r, acp_ga_offset(&job->ga, m->src), &m->a, m->size);
			out->inline_data = true;
		}
		acp_region_put(r);
	} else {
		status = local_atomic(job, m, NULL, &old);
		if (status)
			return status;
		acp_out_word(out, acp_op_width(m->op), old);
	}
	acp_out_data(out);
	return ACP_ST_OK;
}

static __always_inline u8 make_data(struct acp_job *job, struct acp_out *out,
				    struct acp_batch *batch)
{
	if (out->m.size == sizeof(out->m.a) &&
	    (out->m.op == ACP_OP_COPY || out->m.op == ACP_OP_SEND))
		return make_word(job, out, batch);
	return make_other(job, out);
}

u8 acp_execute_data(struct acp_job *job, struct acp_out *out, struct acp_batch *batch)
{
	return make_data(job, out, batch);
}

static u8 no_peer(struct acp_job *job)
{
	return READ_ONCE(job->dead) ? ACP_ST_ABORT : ACP_ST_NOMEM;
}

bool acp_station_ready(struct acp_job *job, struct acp_cmd *cmd, u8 *status)
{
	const struct acp_step *s = &cmd->step;
	struct acp_peer *peer = acp_peer_find(job, s->node, s->color), *third;

	if (peer && !acp_delegates(acp_peer_delegated(peer)))
		return false;
	if (!s->third)
		return true;
	third = acp_peer_get(job, s->dst_node, s->dst_color);
	if (third)
		return acp_peer_ready(third, &cmd->epoch[ACP_EXPECT_RESULT - 1], status);
	*status = no_peer(job);
	return true;
}

/*
 * Record that an answer is expected in this incarnation of the peer's flow: as long as the
 * incarnation lasts, the answer will come, or has come already.
 */
static u8 expect_in(struct acp_queue *queue, struct acp_cmd *cmd, struct acp_peer *peer, u32 epoch,
		    u8 expected)
{
	bool started;

	spin_lock(&queue->lock);
	/* Not if the command has ended meanwhile. */
	started = cmd->state == ACP_CMD_STARTED;
	if (started) {
		cmd->epoch[expected - 1] = epoch;
		cmd->expected |= expected;
		/* The caller that takes that back counts it off: see acp_queue_complete(). */
		if (cmd->step.plan == ACP_PLAN_SEND)
			atomic_inc(&peer->asked);
	}
	spin_unlock(&queue->lock);
	if (!started) {
		acp_peer_unexpect(peer, epoch);
		return ACP_ST_PEER;
	}
	/*
	 * Pairs with smp_mb() in acp_station_lost(): it finds the command, or we see the new
	 * incarnation.
	 */
	smp_mb();
	return acp_peer_epoch(peer) == epoch ? ACP_ST_OK : ACP_ST_PEER;
}

/* A grant is expected. */
static void expect_grant(struct acp_queue *queue, struct acp_cmd *cmd, struct acp_peer *peer)
{
	u32 epoch = acp_peer_expect(peer);
	u8 status = expect_in(queue, cmd, peer, epoch, ACP_EXPECT_SOURCE);

	if (epoch != cmd->sent)
		status = ACP_ST_PEER;
	/* It may have been granted already: then this has no effect. */
	if (status)
		acp_queue_complete(queue, cmd->item.out.m.ticket, status);
}

/* If the result goes to a third node, that node answers, too. */
static u8 expect_result(struct acp_queue *queue, struct acp_cmd *cmd)
{
	u32 epoch = cmd->epoch[ACP_EXPECT_RESULT - 1];
	const struct acp_step *s = &cmd->step;
	struct acp_peer *third;
	u8 status;

	if (!s->third)
		return ACP_ST_OK;
	third = acp_peer_find(queue->job, s->dst_node, s->dst_color);
	if (!third)
		return ACP_ST_ABORT;
	status = expect_in(queue, cmd, third, acp_peer_expect(third), ACP_EXPECT_RESULT);
	return cmd->epoch[ACP_EXPECT_RESULT - 1] == epoch ? status : ACP_ST_PEER;
}

static u8 prepare_remote(struct acp_queue *queue, struct acp_cmd *cmd, struct acp_peer *peer,
			 struct acp_batch *batch)
{
	if (!peer)
		return no_peer(queue->job);
	if (unlikely(cmd->rendezvous)) {
		if (!cmd->granted) {
			cmd->asked = true;
			cmd->item.out.m.type = ACP_MSG_ASK;
			return acp_indirect_source(queue->job, &cmd->item.out.m);
		}
		set_entry(cmd);
	}
	if (cmd->step.plan == ACP_PLAN_SEND)
		return make_data(queue->job, &cmd->item.out, batch);
	cmd->item.out.m.type = ACP_MSG_CMD;
	return expect_result(queue, cmd);
}

u8 acp_station_due(const struct acp_item *item)
{
	const struct acp_msg *m = &item->out.m;
	u64 first, last;

	if (!acp_msg_waits(m, &first, &last) || !item->queue)
		return ACP_ST_OK;
	if (acp_msg_is_behind(m))
		return acp_queue_older_refused(item->queue, item) ? ACP_ST_AGAIN : ACP_ST_OK;
	return acp_queue_failed(item->queue, first, last) ? ACP_ST_ORDER : ACP_ST_OK;
}

void acp_station_start(struct acp_queue *queue, struct acp_cmd *cmd, struct acp_batch *batch)
{
	struct acp_peer *peer;
	u32 epoch;
	u8 status;

	if (cmd->step.plan == ACP_PLAN_LOCAL) {
		start_local(queue, cmd);
		return;
	}
	peer = batch->peer;
	if (!peer || peer->node != cmd->step.node || peer->color != cmd->step.color)
		peer = acp_peer_get(queue->job, cmd->step.node, cmd->step.color);
	status = prepare_remote(queue, cmd, peer, batch);
	if (status) {
		if (unlikely(cmd->granted))
			return_grant(queue->job, cmd);
		acp_queue_complete(queue, cmd->item.out.m.ticket, status);
		return;
	}
	cmd->item.queue = queue;
	acp_queue_get(queue);
	cmd->busy = true;
	epoch = batch_send(batch, peer, cmd, &queue->run);
	if (cmd->step.plan == ACP_PLAN_SEND) {
		cmd->sent = epoch;
		if (unlikely(cmd->rendezvous) && !cmd->granted)
			expect_grant(queue, cmd, peer);
		return;
	}
	status = expect_in(queue, cmd, peer, epoch, ACP_EXPECT_SOURCE);
	/* The command may have ended already. */
	if (status)
		acp_queue_complete(queue, cmd->item.out.m.ticket, status);
}

/* ---- the end of a flow ---- */

void acp_station_lost(struct acp_peer *peer, u8 status)
{
	u32 epoch = acp_peer_epoch(peer);
	struct acp_job *job = peer->job;
	struct acp_queue *queue;

	smp_mb();	/* pairs with smp_mb() in expect_in() */
	rcu_read_lock();
	list_for_each_entry_rcu(queue, &job->queue_list, job_link)
		acp_queue_lost(queue, peer->node, peer->color, epoch, status);
	rcu_read_unlock();
	acp_watch_gone_all(job);
	acp_barrier_break(job);
	if (atomic_read(&job->asks))
		acp_station_tend(job, true);
}

int acp_station_init(void)
{
	int err = acp_items_init();

	if (err)
		return err;
	err = acp_copies_init();
	if (err)
		acp_items_exit();
	return err;
}

void acp_station_exit(void)
{
	acp_copies_exit();
	acp_items_exit();
}
