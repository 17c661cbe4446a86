// SPDX-License-Identifier: GPL-2.0-only
/* Draining: see drain.h. */
#include "../job/job.h"
#include "../job/node.h"
#include "../trace.h"
#include "drain.h"
#include "marks.h"
#include "station.h"

static u8 check_entry(struct acp_queue *queue, const struct acp_sqe *e, u64 ticket)
{
	struct acp_job *job = queue->job;
	u8 status = acp_sqe_check(e, ticket);

	/* A ticket beyond the queue's range would have the number of another queue. */
	if (unlikely((ticket ^ queue->first) >> ACP_TICKET_BITS))
		status = ACP_ST_OP;
	if (!status && (READ_ONCE(job->aborted) || READ_ONCE(job->dead)))
		status = ACP_ST_ABORT;
	return status;
}

/*
 * The only read of the entry, each word once: from here on, what was read counts.  Returns the
 * status of the fields that are not part of the command.
 */
static u8 read_entry(struct acp_queue *queue, struct acp_cmd *cmd, u64 ticket)
{
	const struct acp_sqe *entry = &queue->entries[ticket & (queue->depth - 1)];
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
	cmd->retry = e.flags & ACP_SQE_RETRY;
	cmd->order = e.order;
	cmd->seen = READ_ONCE(entry->seen);
	return check_entry(queue, &e, ticket);
}

/* Build the command from the entry.  Returns its status if the entry is not valid. */
static u8 prepare(struct acp_queue *queue, struct acp_cmd *cmd, u64 ticket)
{
	struct acp_job *job = queue->job;
	struct acp_msg *m = &cmd->item.out.m;
	u8 status = read_entry(queue, cmd, ticket);

	m->origin = queue->origin;
	m->length = 0;
	m->ticket = ticket;
	m->c = 0;
	if (unlikely(m->op >= ACP_OP_STRIDED))
		acp_cmd_from_entry(m);
	if (unlikely(!m->size))
		acp_cmd_no_bytes(&job->ga, m);
	acp_out_begin(&cmd->item.out);
	memset(cmd->epoch, 0, sizeof(cmd->epoch));
	cmd->expected = 0;
	cmd->until = 0;
	cmd->tries = 0;
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

/* Did a command that this one waits for fail?  Only those still on record count. */
static bool order_failed(struct acp_queue *queue, const struct acp_cmd *cmd)
{
	/* Pairs with publish(): a command that is no longer doomed is on record as failed. */
	u64 doomed = smp_load_acquire(&queue->doomed);

	if (unlikely(doomed) && cmd->seen < doomed && doomed <= cmd->order)
		return true;
	return cmd->seen < cmd->order && acp_queue_failed(queue, cmd->seen + 1, cmd->order);
}

/* Bytes that starting the command moves, or lets a flow move. */
static u32 price(const struct acp_cmd *cmd)
{
	const struct acp_msg *m = &cmd->item.out.m;

	/* Short ones cost the same wherever they are moved, so skip the checks. */
	if (likely(m->size <= ACP_FRAME_SHORT))
		return m->size;
	if (cmd->step.plan == ACP_PLAN_DELEGATE ||
	    (cmd->step.plan == ACP_PLAN_LOCAL && acp_cmd_long(m)))
		return 0;
	return min_t(u64, m->size, ACP_BUDGET_BYTES);
}

/* Start the command if its order and the budget allow it; otherwise it waits. */
static bool try_start(struct acp_queue *queue, struct acp_cmd *cmd, struct acp_batch *batch,
		      struct acp_budget *budget)
{
	/* Before what order_failed() reads: pairs with publish(). */
	u64 completed = smp_load_acquire(&queue->completed), ticket = cmd->item.out.m.ticket;
	enum acp_start how = acp_run_ask(&queue->run, completed, cmd->order, &cmd->step);
	u8 status = ACP_ST_OK;

	if (how == ACP_START_WAIT || !acp_budget_pay(budget, price(cmd)))
		return false;
	if (order_failed(queue, cmd))
		status = ACP_ST_ORDER;
	else if (cmd->step.plan == ACP_PLAN_DELEGATE &&
		 !acp_station_ready(queue->job, cmd, &status))
		return false;
	if (status) {
		acp_queue_end(queue, cmd, status);
		return true;
	}
	if (how == ACP_START_FENCED) {
		acp_step_fence(&cmd->item.out, &cmd->step, completed, cmd->seen, cmd->order);
		acp_stat_inc(queue->job->node, fenced);
	}
	acp_run_started(&queue->run, completed, ticket, &cmd->step);
	/* Fill the command before it can be completed by others: pairs with is_started(). */
	smp_store_release(&cmd->state, ACP_CMD_STARTED);
	acp_station_start(queue, cmd, batch);
	return true;
}

/* ---- commands that start again: ACP_SQE_RETRY ---- */

/* The command as it was read from the ring. */
static void begin_again(struct acp_cmd *cmd)
{
	struct acp_msg *m = &cmd->item.out.m;
	u8 op = m->op;

	m->word = 0;
	m->op = op;
	m->a = 0;
	m->c = 0;	/* b is 0 already, or the tag of a message */
	acp_out_begin(&cmd->item.out);
	memset(cmd->epoch, 0, sizeof(cmd->epoch));
	cmd->item.frames = 0;
	cmd->item.status = 0;
}

#define PLACES	8

/* Buffers and mailboxes at which commands wait for room. */
struct places {
	u64 ga[PLACES];
	u32 count;
};

/*
 * Is a command the first one found there?  Behind more places than are remembered, none is: those
 * commands have to wait.
 */
static bool first_at(struct places *p, u64 ga)
{
	u32 i;

	for (i = 0; i < p->count; i++)
		if (p->ga[i] == ga)
			return false;
	if (p->count == PLACES)
		return false;
	p->ga[p->count++] = ga;
	return true;
}

/*
 * When may a parked command start again?  Of all that wait for room at one place, the oldest one is
 * tried, and when it has found room, all of them; at the end of its time, each one.
 */
static u64 starts_at(const struct acp_cmd *cmd, bool first, u64 room)
{
	if (cmd->place == room)
		return 0;
	return first ? cmd->again : cmd->until;
}

/*
 * Let parked commands wait for their start whose time has come, and start the timer again for the
 * others.  Returns how many it has looked at, for the budget.
 */
static noinline u32 resume(struct acp_queue *queue)
{
	u64 t, now, room, when, next = ~0ULL;
	struct places places = { .count = 0 };
	u32 looks = 0;

	/* Before the states are read: a timer that expires meanwhile sets it again. */
	xchg(&queue->retry_due, false);
	room = xchg(&queue->room, 0);
	now = acp_now();
	for (t = READ_ONCE(queue->completed) + 1; t <= queue->taken; t++, looks++) {
		struct acp_cmd *cmd = acp_queue_cmd(queue, t);
		u8 state;
		bool first;

		/* The place after it, and so below: pairs with park(). */
		if (!smp_load_acquire(&cmd->until))
			continue;
		/* Pairs with park(), too. */
		state = smp_load_acquire(&cmd->state);
		if (state == ACP_CMD_FREE || state == ACP_CMD_ENDED)
			continue;
		first = first_at(&places, cmd->place);
		if (state != ACP_CMD_PARKED)
			continue;
		when = starts_at(cmd, first, room);
		/* The item comes back when its frame is acknowledged: as in slot_free(). */
		if (when <= now && smp_load_acquire(&cmd->busy))
			when = now + acp_queue_retry_wait(cmd);
		if (when > now) {
			next = min(next, when);
			continue;
		}
		begin_again(cmd);
		acp_stat_inc(queue->job->node, commands_retried);
		/* Fill the command before it can be completed by others, as in take(). */
		smp_store_release(&cmd->state, ACP_CMD_WAITING);
		WRITE_ONCE(queue->waiting, queue->waiting + 1);
	}
	if (next != ~0ULL) {
		spin_lock(&queue->lock);
		acp_queue_retry_at(queue, next);
		spin_unlock(&queue->lock);
	}
	return looks;
}

/* ---- draining ---- */

static void start_waiting(struct acp_queue *queue, struct acp_batch *batch,
			  struct acp_budget *budget)
{
	u64 t = queue->completed + 1;

	/* A new budget suffices to check all of them. */
	BUILD_BUG_ON(ACP_BUDGET_ENTRIES * ACP_BUDGET_LOOKS < 2 * ACP_INFLIGHT);
	for (; queue->waiting && t <= queue->taken && acp_budget_left(budget); t++) {
		struct acp_cmd *cmd = acp_queue_cmd(queue, t);

		budget->looks--;
		if (cmd->state != ACP_CMD_WAITING || !try_start(queue, cmd, batch, budget))
			continue;
		WRITE_ONCE(queue->waiting, queue->waiting - 1);
		budget->looks -= ACP_BUDGET_LOOKS;
		budget->done++;
	}
}

static bool slot_free(const struct acp_cmd *cmd)
{
	/* Pairs with publish(). */
	if (smp_load_acquire(&cmd->state) != ACP_CMD_FREE)
		return false;
	/* Pairs with acp_queue_item_back() and acp_queue_delivered(). */
	return !smp_load_acquire(&cmd->busy);
}

/* Take one entry.  Returns false if there is none, or no free slot for it. */
static bool take(struct acp_queue *queue, struct acp_batch *batch, struct acp_budget *budget)
{
	u64 ticket = queue->taken + 1;
	struct acp_cmd *cmd = acp_queue_cmd(queue, ticket);
	u8 status;

	if (!acp_queue_available(queue)) {
		WRITE_ONCE(queue->starved, false);
		return false;
	}
	if (!slot_free(cmd)) {
		WRITE_ONCE(queue->starved, true);
		return false;
	}
	status = prepare(queue, cmd, ticket);
	trace_acp_submit(queue, cmd, status);
	WRITE_ONCE(queue->taken, ticket);
	acp_stat_inc(queue->job->node, commands);
	if (status) {
		acp_queue_end(queue, cmd, status);
	} else if (!try_start(queue, cmd, batch, budget)) {
		/* Fill the command before it can be completed by others, as above. */
		smp_store_release(&cmd->state, ACP_CMD_WAITING);
		WRITE_ONCE(queue->waiting, queue->waiting + 1);
	}
	return true;
}

/*
 * Can anything start now?  The drainer asks after each iteration, see acp_drain().  Commands that
 * began to wait in this iteration are tried once more: a CPU that opened the flow or made room at
 * the peer meanwhile may not have seen that a command waits.
 */
static bool can_go_on(struct acp_queue *queue, u64 completed, u32 waited)
{
	smp_mb();	/* pairs with that in acp_station_idle(): flags before states */
	if (queue->waiting > waited || (queue->waiting && READ_ONCE(queue->completed) != completed))
		return true;
	/* A parked command has ended, perhaps by this drain: others may start. */
	if (unlikely(READ_ONCE(queue->retry_due)))
		return true;
	return acp_queue_available(queue) && slot_free(acp_queue_cmd(queue, queue->taken + 1));
}

/* Each check for an entry is charged, even if there is none: requests to drain may never end. */
static void take_all(struct acp_queue *queue, struct acp_batch *batch, struct acp_budget *budget)
{
	u64 first = queue->taken;

	while (acp_budget_entry(budget) && take(queue, batch, budget))
		;
	budget->done += queue->taken - first;
}

bool acp_drain(struct acp_queue *queue, struct acp_budget *budget)
{
	u64 completed, first = READ_ONCE(queue->taken);
	struct acp_batch batch acp_uncleared;
	u32 waited;
	int asked;

	if (atomic_inc_return(&queue->drain) != 1)
		return false;
	acp_batch_init(&batch);
	do {
		/* Before everything else is read: later requests are counted separately. */
		asked = atomic_read_acquire(&queue->drain);
		do {
			completed = READ_ONCE(queue->completed);
			if (READ_ONCE(queue->closed))
				break;
			if (unlikely(READ_ONCE(queue->retry_due)))
				budget->looks -= resume(queue);
			if (queue->waiting)
				start_waiting(queue, &batch, budget);
			waited = queue->waiting;
			take_all(queue, &batch, budget);
			if (!acp_queue_is_own(queue))
				acp_marks_set(queue);
		} while (acp_budget_left(budget) && can_go_on(queue, completed, waited));
		acp_batch_flush(&batch);
		if (queue->taken - first > READ_ONCE(queue->moderation.most))
			WRITE_ONCE(queue->moderation.most, queue->taken - first);
		if (unlikely(!acp_budget_left(budget))) {
			/* Fully ordered: a later caller drains, or its entries are seen here. */
			atomic_xchg(&queue->drain, 0);
			if (acp_queue_ready(queue))
				return true;
			break;
		}
	} while (atomic_sub_return(asked, &queue->drain));
	if (unlikely(READ_ONCE(queue->behind)))
		WRITE_ONCE(queue->behind, false);
	return false;
}
