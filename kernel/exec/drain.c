// SPDX-License-Identifier: GPL-2.0-only
/* Draining: see drain.h. */
#include "../job/job.h"
#include "../job/node.h"
#include "../trace.h"
#include "drain.h"
#include "marks.h"
#include "station.h"
#include "word.h"

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
	cmd->flags = e.flags;
	cmd->retry = e.flags & ACP_SQE_RETRY;
	cmd->rendezvous = e.flags & ACP_SQE_RENDEZVOUS;
	cmd->item.lazy = e.flags & ACP_SQE_LAZY;
	cmd->asked = false;
	cmd->granted = false;
	cmd->order = e.order;
	cmd->seen = READ_ONCE(entry->seen);
	return check_entry(queue, &e, ticket);
}

/*
 * A message that is not tried again takes effect when it arrives, like a put.  Only its failure is
 * not recorded by the receiver: a mailbox may be full often.
 */
static bool is_single_message(const struct acp_cmd *cmd)
{
	return cmd->item.out.m.op == ACP_OP_SEND && !cmd->retry && !cmd->rendezvous &&
	       cmd->step.plan == ACP_PLAN_SEND;
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
	if (unlikely(m->op >= ACP_OP_STRIDED)) {
		acp_cmd_from_entry(m);
		if (m->op == ACP_OP_WAIT) {
			cmd->retry = true;
			cmd->losses = atomic64_read(&job->losses);
		}
	}
	if (unlikely(!m->size))
		acp_cmd_no_bytes(&job->ga, m);
	acp_out_begin(&cmd->item.out);
	memset(cmd->epoch, 0, sizeof(cmd->epoch));
	cmd->expected = 0;
	cmd->until = 0;
	cmd->older = ticket - 1;
	cmd->tries = 0;
	cmd->refused = 0;
	cmd->item.frames = 0;
	cmd->item.status = 0;
	if (!status)
		status = acp_cmd_check(&job->ga, job->colors, m);
	if (unlikely(m->op >= ACP_OP_STRIDED) && !status && acp_op_needs_one_node(m->op))
		status = acp_job_check_nodes(job, m);
	if (!status)
		acp_step_set(&cmd->step, &job->ga, m, job->me, acp_job_ga_node(job, m->src),
			     acp_job_ga_node(job, m->dst));
	/* A node that only forwards a message cannot be granted anything. */
	if (status || cmd->step.plan == ACP_PLAN_DELEGATE)
		cmd->rendezvous = false;
	if (unlikely(is_single_message(cmd)))
		cmd->step.later = false;
	return status;
}

static bool is_wait(const struct acp_cmd *cmd)
{
	return cmd->item.out.m.op == ACP_OP_WAIT;
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

/*
 * A command that this one waited for has failed.  Returns the status with which it ends; ACP_ST_OK:
 * it starts, but revokes the word that it would have added to.
 */
static noinline u8 fail_or_revoke(struct acp_queue *queue, struct acp_cmd *cmd)
{
	struct acp_msg *m = &cmd->item.out.m;
	struct acp_job *job = queue->job;

	if (!(cmd->flags & ACP_SQE_REVOKE))
		return ACP_ST_ORDER;
	acp_cmd_revoke(&job->ga, m);
	acp_step_set(&cmd->step, &job->ga, m, job->me, acp_job_ga_node(job, m->src),
		     acp_job_ga_node(job, m->dst));
	/* It waits for no success any more, also if the budget does not allow the start now. */
	cmd->seen = cmd->order;
	acp_stat_inc(job->node, words_revoked);
	return ACP_ST_OK;
}

/* Must it not start behind a fence, where only the target knows what has failed before? */
static bool is_unfenced(const struct acp_queue *queue, const struct acp_cmd *cmd, u64 completed)
{
	/* It must not start behind a message whose failure would be its own, either. */
	return (cmd->flags & ACP_SQE_REVOKE) | (queue->message > max(completed, cmd->seen));
}

/* Bytes that starting the command moves, or lets a flow move. */
static u32 price(const struct acp_cmd *cmd)
{
	const struct acp_msg *m = &cmd->item.out.m;

	/* Short ones cost the same wherever they are moved, so skip the checks. */
	if (likely(m->size <= ACP_FRAME_SHORT))
		return m->size;
	if (m->op >= ACP_OP_REDUCE && cmd->step.plan == ACP_PLAN_LOCAL)
		return acp_cmd_long(m) ? 0 : m->size * ACP_REDUCE_PRICE;
	if (cmd->step.plan == ACP_PLAN_DELEGATE ||
	    (cmd->step.plan == ACP_PLAN_LOCAL && acp_cmd_long(m)))
		return 0;
	return min_t(u64, m->size, ACP_BUDGET_BYTES);
}

/* Can it start only after queue->word? */
static bool is_held(const struct acp_queue *queue, const struct acp_cmd *cmd)
{
	return queue->word && (cmd->order >= queue->word || is_wait(cmd));
}

/* ---- commands that start again: ACP_SQE_RETRY ---- */

/*
 * The last older command with RETRY to the same buffer or mailbox that has not ended, or NULL.
 * A command that was looked at before is not looked at again.
 */
static struct acp_cmd *older_at(struct acp_queue *queue, struct acp_cmd *cmd,
				struct acp_budget *budget)
{
	u64 completed = READ_ONCE(queue->completed), t;

	for (t = cmd->older; t > completed; t--, budget->looks--) {
		struct acp_cmd *older = acp_queue_cmd(queue, t);
		/* Pairs with whoever ends it. */
		u8 state = smp_load_acquire(&older->state);

		/* One that is behind a word starts later than all that are not. */
		if (older->retry && older->item.out.m.dst == cmd->item.out.m.dst &&
		    state != ACP_CMD_ENDED && state != ACP_CMD_FREE && !is_wait(older) &&
		    !(state == ACP_CMD_WAITING && is_held(queue, older)))
			break;
	}
	cmd->older = t;
	return t > completed ? acp_queue_cmd(queue, t) : NULL;
}

/* Is it a message whose data leaves from here?  These stay in their order in flight, too. */
static bool in_turn(const struct acp_cmd *cmd)
{
	return cmd->item.out.m.op == ACP_OP_SEND && cmd->step.plan == ACP_PLAN_SEND;
}

/* A message finds no room if the older one, which is in flight, finds none. */
static void set_turn(struct acp_cmd *cmd, const struct acp_cmd *older, u8 refused)
{
	struct acp_msg *m = &cmd->item.out.m;

	if (!in_turn(cmd))
		return;
	/* It may have been set before, when the budget did not allow the start. */
	m->flags = ACP_MSG_ORDERED;
	m->depends = 0;
	if (older) {
		m->flags |= ACP_MSG_BEHIND;
		m->depends = m->ticket - older->item.out.m.ticket;
		cmd->older_refused = refused;
		cmd->older_sent = older->sent;
	}
	m->upto = m->depends;
}

enum turn {
	TURN_NOW,
	TURN_LATER,	/* an older one at the same place has to start before */
	TURN_TAKEN,	/* it does not wait for its start: an older one waits for room, or a WAIT */
};

/* ---- commands behind one that waits for a word ---- */

/* Those that are behind the word are not checked again and again while it is awaited. */
static void hold(struct acp_queue *queue, struct acp_budget *budget)
{
	u32 held = 0;
	u64 t;

	for (t = queue->word + 1; t <= queue->taken; t++, budget->looks--) {
		const struct acp_cmd *cmd = acp_queue_cmd(queue, t);

		held += cmd->state == ACP_CMD_WAITING && is_held(queue, cmd);
	}
	queue->held = held;
	WRITE_ONCE(queue->waiting, queue->waiting - held);
}

static void count_waiting(struct acp_queue *queue, const struct acp_cmd *cmd)
{
	if (unlikely(is_held(queue, cmd)))
		queue->held++;
	else
		WRITE_ONCE(queue->waiting, queue->waiting + 1);
}

#define LOOKS_OF_A_WORD	4
#define LOOKS_OF_NAMES	ACP_BUDGET_LOOKS	/* of all ranks that a command names, at most */

/* Charge for a look at a word, and at the ranks that the command names. */
static void pay_look(struct acp_budget *budget, const struct acp_cmd *cmd)
{
	budget->looks -= LOOKS_OF_A_WORD;
	if (acp_wait_names(&cmd->item.out.m))
		budget->looks -= LOOKS_OF_NAMES;
}

/* Something may have been written to the word. */
static void look_at_word(struct acp_queue *queue, struct acp_budget *budget)
{
	struct acp_cmd *cmd = acp_queue_cmd(queue, queue->word);
	u8 status;

	pay_look(budget, cmd);
	if (!acp_word_is_over(queue, cmd, &status))
		return;
	acp_queue_unwatch(queue);
	WRITE_ONCE(queue->waiting, queue->waiting + queue->held);
	queue->held = 0;
	budget->done++;
	acp_queue_end(queue, cmd, status);
}

/* A WAIT looks at its word when it is the first command that is not complete. */
static enum turn ask_word(struct acp_queue *queue, struct acp_cmd *cmd, struct acp_budget *budget)
{
	u8 status;

	/* What earlier commands have written, before the word: pairs with publish(). */
	if (smp_load_acquire(&queue->completed) + 1 != cmd->item.out.m.ticket)
		return TURN_LATER;
	pay_look(budget, cmd);
	if (acp_word_begin(queue, cmd, &status))
		acp_queue_end(queue, cmd, status);
	else
		hold(queue, budget);
	return TURN_TAKEN;
}

/* ---- turns ---- */

/*
 * May a command with RETRY start?  Those to the same buffer or mailbox start in their order.  Or
 * may a WAIT end?
 */
static noinline enum turn ask_turn(struct acp_queue *queue, struct acp_cmd *cmd,
				   struct acp_budget *budget, enum acp_start how, u8 *status)
{
	struct acp_cmd *older;
	u8 refused = 0;

	if (is_wait(cmd))
		return ask_word(queue, cmd, budget);
	older = older_at(queue, cmd, budget);
	if (older) {
		/* Before the state: if it finds no room later, "refused" will differ. */
		refused = smp_load_acquire(&older->refused);
		switch (READ_ONCE(older->state)) {
		case ACP_CMD_PARKED:
			*status = acp_queue_park_behind(queue, cmd);
			return *status ? TURN_NOW : TURN_TAKEN;
		case ACP_CMD_WAITING:
			return TURN_LATER;
		default:
			/*
			 * A message depends on one thing only, which the receiver of both knows; it
			 * would not know what the older one of another kind is behind.
			 */
			if (how == ACP_START_FENCED || (in_turn(cmd) && !in_turn(older)))
				return TURN_LATER;
		}
	}
	set_turn(cmd, older, refused);
	return TURN_NOW;
}

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

/* Commands at one place may start since others have found room there. */
struct grants {
	u64 place;
	u32 count;
	bool kept;	/* one of them cannot start yet */
};

/* Of these, long ones keep their pace: they may find no room where short ones do. */
#define GRANT_BYTES	4096

/*
 * When may a parked command start?  The oldest at its place in its time; after each one that found
 * room there, two more; the others when they have become the oldest, or after their time, to end.
 */
static u64 start_at(const struct acp_cmd *cmd, const struct acp_cmd *older,
		    const struct grants *grants)
{
	bool granted = grants->count && grants->place == cmd->place;

	/* The end of one that was PARKED is noticed, see end_of_parked(); that of others is not. */
	if (older && (READ_ONCE(older->state) == ACP_CMD_PARKED ||
		      (READ_ONCE(older->until) > ACP_CMD_SHOWN && !granted)))
		return cmd->until;
	return granted && cmd->item.out.m.size <= GRANT_BYTES ? 0 : cmd->again;
}

/* What was read from the entry is in the command: it waits for its start again. */
static void wait_again(struct acp_queue *queue, struct acp_cmd *cmd)
{
	/* Fill the command before it can be completed by others, as in take(). */
	smp_store_release(&cmd->state, ACP_CMD_WAITING);
	WRITE_ONCE(queue->waiting, queue->waiting + 1);
}

/* A command may send its bytes.  Returns when to look again, if the transport has its item. */
static u64 start_granted(struct acp_queue *queue, struct acp_cmd *cmd, u64 now)
{
	/* As for parked ones, see resume(). */
	if (smp_load_acquire(&cmd->busy))
		return now + ACP_RETRY_NS;
	begin_again(cmd);
	WRITE_ONCE(cmd->until, ACP_CMD_SHOWN);
	wait_again(queue, cmd);
	return ~0ULL;
}

/* A parked command is due: let it wait for its start, or end it if its time is over. */
static void start_parked(struct acp_queue *queue, struct acp_cmd *cmd,
			 const struct acp_cmd *older, u64 now, struct grants *grants)
{
	begin_again(cmd);
	if (now >= cmd->until && older && READ_ONCE(older->state) == ACP_CMD_PARKED) {
		acp_queue_end(queue, cmd, ACP_ST_AGAIN);
		return;
	}
	if (grants->count && grants->place == cmd->place)
		grants->count--;
	if (cmd->refused)
		acp_stat_inc(queue->job->node, commands_retried);
	cmd->asked = false;
	cmd->granted = false;
	wait_again(queue, cmd);
}

static void take_grants(struct acp_queue *queue, struct grants *grants)
{
	spin_lock(&queue->lock);
	*grants = (struct grants){ .place = queue->room, .count = queue->grants };
	queue->grants = 0;
	spin_unlock(&queue->lock);
}

/* Keep what could not be used yet, and start the timer. */
static void keep_grants(struct acp_queue *queue, const struct grants *grants, u64 next)
{
	spin_lock(&queue->lock);
	if (grants->kept && queue->room == grants->place)
		queue->grants += grants->count;
	if (next != ~0ULL)
		acp_queue_retry_at(queue, next);
	spin_unlock(&queue->lock);
}

/*
 * Let parked commands wait for their start whose time has come, and start the timer again for the
 * others.
 */
static void resume_parked(struct acp_queue *queue, struct acp_budget *budget)
{
	u64 t, now, when, next = ~0ULL;
	struct grants grants;

	take_grants(queue, &grants);
	now = acp_now();
	for (t = READ_ONCE(queue->completed) + 1; t <= queue->taken; t++, budget->looks--) {
		struct acp_cmd *cmd = acp_queue_cmd(queue, t), *older;
		/* Pairs with park() and acp_queue_grant(). */
		u8 state = smp_load_acquire(&cmd->state);

		if (state == ACP_CMD_GRANTED)
			next = min(next, start_granted(queue, cmd, now));
		if (state != ACP_CMD_PARKED)
			continue;
		older = older_at(queue, cmd, budget);
		when = start_at(cmd, older, &grants);
		/* The item comes back when its frame is acknowledged: as in slot_free(). */
		if (when <= now && smp_load_acquire(&cmd->busy)) {
			when = now + (grants.count && grants.place == cmd->place ?
				      ACP_RETRY_NS : acp_queue_retry_wait(cmd));
			grants.kept |= grants.place == cmd->place;
		}
		if (when <= now)
			start_parked(queue, cmd, older, now, &grants);
		else
			next = min(next, when);
	}
	keep_grants(queue, &grants, next);
	/* As in can_go_on(), for those that now wait. */
	smp_mb();
}

static noinline void resume(struct acp_queue *queue, struct acp_budget *budget)
{
	/* Before what has changed is read: what changes meanwhile sets it again. */
	xchg(&queue->resume_due, false);
	if (queue->word)
		look_at_word(queue, budget);
	if (xchg(&queue->retry_due, false))
		resume_parked(queue, budget);
}

/* ---- starting ---- */

/* Start the command if its order and the budget allow it; otherwise it waits. */
static bool try_start(struct acp_queue *queue, struct acp_cmd *cmd, struct acp_batch *batch,
		      struct acp_budget *budget)
{
	/* Before what order_failed() reads: pairs with publish(). */
	u64 completed = smp_load_acquire(&queue->completed), ticket = cmd->item.out.m.ticket;
	enum acp_start how = acp_run_ask(&queue->run, completed, cmd->order, &cmd->step);
	enum turn turn = TURN_NOW;
	u8 status = ACP_ST_OK;

	if (how == ACP_START_WAIT ||
	    (how == ACP_START_FENCED && is_unfenced(queue, cmd, completed)))
		return false;
	if (order_failed(queue, cmd))
		status = fail_or_revoke(queue, cmd);
	else if (unlikely(cmd->retry) && !cmd->granted)
		turn = ask_turn(queue, cmd, budget, how, &status);
	if (unlikely(turn != TURN_NOW))
		return turn == TURN_TAKEN;
	if (!status && !acp_budget_pay(budget, price(cmd)))
		return false;
	if (!status && cmd->step.plan == ACP_PLAN_DELEGATE &&
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
	if (unlikely(is_single_message(cmd)))
		queue->message = ticket;
	/* Fill the command before it can be completed by others: pairs with is_started(). */
	smp_store_release(&cmd->state, ACP_CMD_STARTED);
	acp_station_start(queue, cmd, batch);
	return true;
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
		count_waiting(queue, cmd);
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
	if (unlikely(READ_ONCE(queue->resume_due)))
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
			if (unlikely(READ_ONCE(queue->resume_due)))
				resume(queue, budget);
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
