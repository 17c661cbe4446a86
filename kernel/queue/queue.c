// SPDX-License-Identifier: GPL-2.0-only
/* The queues of a rank: see queue.h. */
#include <linux/delay.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "../job/job.h"
#include "../job/node.h"
#include "queue.h"
#include "../mem/region.h"
#include "../trace.h"
#include "../mem/watch.h"

/* ---- creation ---- */

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

int acp_queue_create(struct acp_queue *queue, u32 depth, u32 number)
{
	u64 first = ((u64)number << ACP_TICKET_BITS) + 1;

	queue->depth = depth;
	queue->sq_bytes = sq_bytes(depth);
	queue->cq_bytes = cq_bytes(depth);
	queue->ring_kib = rings_kib(depth);
	queue->sq = acp_region_pages(queue->sq_bytes);
	queue->cq = acp_region_pages(queue->cq_bytes);
	queue->cmds = acp_region_pages(CMD_BYTES);
	if (!queue->sq || !queue->cq || !queue->cmds)
		return -ENOMEM;
	queue->entries = (struct acp_sqe *)(queue->sq + 1);
	queue->sq->tail = first;
	queue->cq->completed = first;
	queue->cq->flags = ACP_CQ_NEED_WAKEUP;
	queue->first = first;
	queue->taken = first;
	queue->completed = first;
	queue->run.first = first + 1;
	queue->run.last = first;
	queue->armed = ~0ULL;
	return 0;
}

/* ---- freeing ---- */

static void free_rcu(struct rcu_head *rcu)
{
	struct acp_queue *queue = container_of(rcu, struct acp_queue, rcu);
	struct acp_rank *rank = queue->rank;

	/* RCU readers that found it may have begun moderation, or parked a command. */
	hrtimer_cancel(&queue->moderation.timer);
	hrtimer_cancel(&queue->retry.timer);
	vfree(queue->sq);
	vfree(queue->cq);
	vfree(queue->cmds);
	if (acp_queue_is_own(queue)) {
		acp_rank_free(rank);
	} else {
		kfree(queue);
		acp_rank_put(rank);
	}
}

void acp_queue_free(struct kref *ref)
{
	struct acp_queue *queue = container_of(ref, struct acp_queue, refs);
	struct acp_rank *rank = queue->rank;

	/* Not when the rings are freed: a user that runs again at once should not wait for that. */
	acp_user_uncharge(rank->user, ACP_LIMIT_USER_MEMORY, queue->ring_kib);
	if (acp_queue_is_own(queue))
		acp_rank_end(rank);
	call_rcu(&queue->rcu, free_rcu);
}

/* ---- completion ---- */

/*
 * In a chain of commands (ACP_SQE_MORE) the last one reports the first failure.  A command inherits
 * a failure as soon as the previous one is published.
 */
static noinline void carry_status(struct acp_queue *queue, struct acp_cmd *cmd, u64 t)
{
	if (queue->doomed == t && (!cmd->status || cmd->status == ACP_ST_ORDER)) {
		WRITE_ONCE(cmd->status, queue->doom);
		if (queue->last_failed < t)
			WRITE_ONCE(queue->last_failed, t);
	}
	queue->doom = cmd->status;
}

/* Publish commands that have ended, in order.  Under queue->lock. */
static __always_inline void publish(struct acp_queue *queue)
{
	u64 t = queue->completed + 1;
	struct acp_cmd *cmd = acp_queue_cmd(queue, t);

	lockdep_assert_held(&queue->lock);
	for (; cmd->state == ACP_CMD_ENDED && cmd->item.out.m.ticket == t;
	     cmd = acp_queue_cmd(queue, ++t)) {
		bool carries = (cmd->flags & ACP_SQE_MORE) || queue->doomed;

		if (unlikely(carries))
			carry_status(queue, cmd, t);
		WRITE_ONCE(queue->cq->status[t & (queue->depth - 1)], cmd->status);
		if (cmd->status) {
			queue->failed++;
			acp_stat_inc(queue->job->node, commands_failed);
		}
		trace_acp_complete(queue, t, cmd->status);
		/* The status first: pairs with has_failed(). */
		smp_store_release(&queue->completed, t);
		if (unlikely(carries)) {
			u64 next = (cmd->flags & ACP_SQE_MORE) && cmd->status ? t + 1 : 0;

			/* A command that was doomed is on record now: pairs with order_failed(). */
			smp_store_release(&queue->doomed, next);
		}
		/* Read the command before its slot is reused: pairs with slot_free(). */
		smp_store_release(&cmd->state, ACP_CMD_FREE);
	}
	WRITE_ONCE(queue->cq->failed, queue->failed);
	/* (C): effects and status first; pairs with the user's (D) */
	smp_store_release(&queue->cq->completed, t - 1);
}

/* A command with this source does not wait any more for a grant of the peer. */
static void asks_less(struct acp_peer *peer, const struct acp_step *s)
{
	if (peer && s->plan == ACP_PLAN_SEND)
		atomic_dec(&peer->asked);
}

static void unexpect(struct acp_queue *queue, const struct acp_step *s, const u32 *epoch,
		     u8 expected)
{
	struct acp_peer *peer;

	if (expected & ACP_EXPECT_SOURCE) {
		peer = acp_peer_find(queue->job, s->node, s->color);
		asks_less(peer, s);
		if (peer)
			acp_peer_unexpect(peer, epoch[ACP_EXPECT_SOURCE - 1]);
	}
	if (expected & ACP_EXPECT_RESULT) {
		peer = acp_peer_find(queue->job, s->dst_node, s->dst_color);
		if (peer)
			acp_peer_unexpect(peer, epoch[ACP_EXPECT_RESULT - 1]);
	}
}

static bool is_started(const struct acp_cmd *cmd)
{
	/* Then the slot is filled: pairs with the releases in try_start() and acp_queue_end(). */
	return smp_load_acquire(&cmd->state) == ACP_CMD_STARTED;
}

static bool is_over(const struct acp_queue *queue)
{
	return READ_ONCE(queue->job->aborted) || READ_ONCE(queue->closed);
}

/* Let a command start again later.  Returns whether there is time for it.  Under queue->lock. */
static bool park(struct acp_queue *queue, struct acp_cmd *cmd, u64 now, u64 again)
{
	if (is_over(queue))
		return false;
	if (cmd->until <= ACP_CMD_SHOWN) {
		cmd->place = cmd->item.out.m.dst;
		WRITE_ONCE(cmd->until, now + queue->job->limit);
	}
	if (now >= cmd->until)
		return false;
	/* The last try is at the end of the time. */
	cmd->again = min(again, cmd->until);
	/* Time and place first: pairs with resume(). */
	smp_store_release(&cmd->state, ACP_CMD_PARKED);
	return true;
}

/* A command has found no room.  Does it start again later?  Under queue->lock. */
static noinline bool park_refused(struct acp_queue *queue, struct acp_cmd *cmd)
{
	u64 now = acp_now(), again = now + acp_queue_retry_wait(cmd);

	if (!cmd->retry || cmd->item.out.m.op == ACP_OP_WAIT)
		return false;
	if (cmd->tries < ACP_RETRY_SHIFT)
		cmd->tries++;
	if (!park(queue, cmd, now, again))
		return false;
	/* A reader that sees it knows that it is no longer STARTED: pairs with ask_turn(). */
	smp_store_release(&cmd->refused, cmd->refused + 1);
	acp_queue_retry_at(queue, cmd->again);
	return true;
}

u8 acp_queue_park_behind(struct acp_queue *queue, struct acp_cmd *cmd)
{
	u64 now = acp_now();
	bool parked;

	spin_lock(&queue->lock);
	parked = park(queue, cmd, now, now);
	if (parked)
		acp_queue_retry_at(queue, cmd->until);
	spin_unlock(&queue->lock);
	if (parked)
		return ACP_ST_OK;
	return is_over(queue) ? ACP_ST_ABORT : ACP_ST_AGAIN;
}

bool acp_queue_older_refused(struct acp_queue *queue, const struct acp_item *item)
{
	const struct acp_cmd *cmd = container_of(item, struct acp_cmd, item), *older;
	u64 ticket = item->out.m.ticket - item->out.m.depends;

	older = acp_queue_cmd(queue, ticket);
	/* If it has left its slot, it waits for no room any more. */
	return READ_ONCE(older->item.out.m.ticket) == ticket &&
	       READ_ONCE(older->refused) != cmd->older_refused;
}

/*
 * A message ends that waited for its receive.  Earlier ones may still wait, and then it is not
 * complete: its sender learns of its end in this way.
 */
static void show_end(struct acp_queue *queue, struct acp_cmd *cmd, u8 status)
{
	u8 *shown = &queue->cq->status[cmd->item.out.m.ticket & (queue->depth - 1)];

	/* Others may still be ordered behind the command that had the slot before. */
	cmd->former = *shown;
	/* Effects, and "former", first; pairs with the user's load, and with published_status(). */
	smp_store_release(shown, status | ACP_CQ_ENDED);
}

/*
 * A command ends that was PARKED: another one is the oldest now that waits for room at its place,
 * and if this one has found room, two more may find some.  The caller calls acp_station_idle()
 * later, which sees it.  Under queue->lock.
 */
static noinline void end_of_parked(struct acp_queue *queue, struct acp_cmd *cmd, u8 status)
{
	if (cmd->until == ACP_CMD_SHOWN) {
		show_end(queue, cmd, status);
		return;
	}
	if (!status) {
		if (queue->room != cmd->place)
			queue->grants = 0;
		queue->room = cmd->place;
		queue->grants += 2;
	}
	WRITE_ONCE(queue->retry_due, true);
	acp_queue_resume(queue);
}

/* End it, and publish what can be.  Under queue->lock. */
static __always_inline void end(struct acp_queue *queue, struct acp_cmd *cmd, u64 ticket, u8 status)
{
	cmd->status = status;
	if (unlikely(cmd->until))
		end_of_parked(queue, cmd, status);
	if (status && queue->last_failed < ticket)
		WRITE_ONCE(queue->last_failed, ticket);
	/* The status first: pairs with has_failed(). */
	smp_store_release(&cmd->state, ACP_CMD_ENDED);
	publish(queue);
}

bool acp_queue_complete(struct acp_queue *queue, u64 ticket, u8 status)
{
	struct acp_cmd *cmd = acp_queue_cmd(queue, ticket);
	struct acp_step step acp_uncleared;
	u32 epoch[2] acp_uncleared;
	bool parked;
	u8 expected;

	spin_lock(&queue->lock);
	if (!is_started(cmd) || READ_ONCE(cmd->item.out.m.ticket) != ticket) {
		spin_unlock(&queue->lock);
		return false;
	}
	expected = cmd->expected;
	if (expected) {
		step = cmd->step;
		memcpy(epoch, cmd->epoch, sizeof(epoch));
		cmd->expected = 0;
	}
	parked = unlikely(status == ACP_ST_AGAIN) && park_refused(queue, cmd);
	if (!parked)
		end(queue, cmd, ticket, status);
	spin_unlock(&queue->lock);
	if (expected)
		unexpect(queue, &step, epoch, expected);
	if (unlikely(parked))
		return true;
	if (wq_has_sleeper(&queue->wait))
		wake_up_all(&queue->wait);
	/* A watcher that waits for an answer may wait in vain. */
	if (unlikely(status))
		acp_watch_wake(queue->rank);
	return true;
}

/* Has it asked?  In all states until it has ended.  Under queue->lock. */
static bool asks(const struct acp_cmd *cmd, u64 ticket, u64 mailbox)
{
	/* Then the slot is filled, as in is_started(). */
	u8 state = smp_load_acquire(&cmd->state);

	return state != ACP_CMD_FREE && state != ACP_CMD_ENDED && cmd->rendezvous &&
	       READ_ONCE(cmd->item.out.m.ticket) == ticket && cmd->item.out.m.dst == mailbox;
}

bool acp_queue_asks(struct acp_queue *queue, u64 ticket, u64 mailbox)
{
	bool found;

	spin_lock(&queue->lock);
	found = asks(acp_queue_cmd(queue, ticket), ticket, mailbox);
	spin_unlock(&queue->lock);
	return found;
}

/* Has it asked, and was it not refused?  It may have been granted its bytes.  Under queue->lock. */
static bool is_asking(const struct acp_cmd *cmd)
{
	const u8 state = READ_ONCE(cmd->state);

	return state == ACP_CMD_STARTED || state == ACP_CMD_GRANTED;
}

void acp_queue_accepted(struct acp_queue *queue, struct acp_cmd *cmd)
{
	spin_lock(&queue->lock);
	/* Unless it was refused before its frame was acknowledged. */
	if (cmd->until > ACP_CMD_SHOWN && is_asking(cmd)) {
		end_of_parked(queue, cmd, ACP_ST_OK);
		WRITE_ONCE(cmd->until, 0);
	}
	spin_unlock(&queue->lock);
}

bool acp_queue_grant(struct acp_queue *queue, u64 ticket, u64 mailbox, u64 entry)
{
	struct acp_cmd *cmd = acp_queue_cmd(queue, ticket);
	struct acp_step step acp_uncleared;
	u32 epoch[2] acp_uncleared;
	bool found;
	u8 expected = 0;

	spin_lock(&queue->lock);
	found = asks(cmd, ticket, mailbox);
	/* A grant may be repeated. */
	if (found && is_started(cmd) && READ_ONCE(cmd->asked) && !cmd->granted) {
		step = cmd->step;
		memcpy(epoch, cmd->epoch, sizeof(epoch));
		expected = cmd->expected;
		cmd->expected = 0;
		cmd->entry = entry;
		cmd->granted = true;
		/* The entry first: pairs with resume(). */
		smp_store_release(&cmd->state, ACP_CMD_GRANTED);
		acp_queue_retry_at(queue, acp_now());
	}
	spin_unlock(&queue->lock);
	if (expected)
		unexpect(queue, &step, epoch, expected);
	return found;
}

void acp_queue_item_back(struct acp_queue *queue, struct acp_cmd *cmd)
{
	/* The transport has finished with the item: pairs with slot_free(). */
	smp_store_release(&cmd->busy, false);
	acp_queue_put(queue);
}

void acp_queue_end(struct acp_queue *queue, struct acp_cmd *cmd, u8 status)
{
	/* Fill the command before it can be completed by others: pairs with is_started(). */
	smp_store_release(&cmd->state, ACP_CMD_STARTED);
	acp_queue_complete(queue, cmd->item.out.m.ticket, status);
}

struct list_head *acp_queue_delivered(struct acp_queue *queue, struct list_head *link,
				      const struct list_head *end)
{
	u32 n;

	spin_lock(&queue->lock);
	for (n = 0; link != end; n++) {
		struct acp_item *item = list_entry(link, struct acp_item, link);
		struct acp_cmd *cmd = container_of(item, struct acp_cmd, item);

		if (item->queue != queue || !acp_item_is_put(item))
			break;
		link = link->next;
		item->queue = NULL;
		if (is_started(cmd)) {
			cmd->status = ACP_ST_OK;
			if (unlikely(cmd->until))
				end_of_parked(queue, cmd, ACP_ST_OK);
			/* The status first: pairs with has_failed(). */
			smp_store_release(&cmd->state, ACP_CMD_ENDED);
		}
		/*
		 * Last access to the slot, if the command has ended before: pairs with slot_free().
		 */
		smp_store_release(&cmd->busy, false);
	}
	publish(queue);
	spin_unlock(&queue->lock);
	if (wq_has_sleeper(&queue->wait))
		wake_up_all(&queue->wait);
	acp_queue_put_some(queue, n);
	return link;
}

void acp_queue_lost(struct acp_queue *queue, u32 node, u32 color, u32 epoch, u8 status)
{
	u32 i;

	for (i = 0; i < ACP_INFLIGHT; i++) {
		struct acp_cmd *cmd = &queue->cmds[i];
		struct acp_step step acp_uncleared;
		u8 hit = 0;
		u64 ticket;

		spin_lock(&queue->lock);
		ticket = 0;
		if (is_started(cmd) && cmd->expected) {
			ticket = cmd->item.out.m.ticket;
			step = cmd->step;
			hit = acp_expect_lost(&cmd->step, cmd->expected, cmd->epoch, node, color,
					      epoch);
			cmd->expected &= ~hit;
		}
		spin_unlock(&queue->lock);
		if (hit & ACP_EXPECT_SOURCE)
			asks_less(acp_peer_find(queue->job, step.node, step.color), &step);
		if (hit)
			acp_queue_complete(queue, ticket, status);
	}
}

void acp_queue_abort(struct acp_queue *queue)
{
	WRITE_ONCE(queue->cq->flags, ACP_CQ_ABORTED | ACP_CQ_NEED_WAKEUP);
	wake_up_all(&queue->wait);
}

void acp_queue_abort_all(struct acp_rank *rank)
{
	struct acp_queue *queue;
	unsigned long i;

	xa_for_each(&rank->queues, i, queue)
		acp_queue_abort(queue);
	acp_queue_abort(&rank->own);
	acp_watch_wake(rank);
}

bool acp_queue_need_wakeup(struct acp_queue *queue, bool set)
{
	u32 flags = is_over(queue) ? ACP_CQ_ABORTED : 0;

	if (set || flags)
		flags |= ACP_CQ_NEED_WAKEUP;
	WRITE_ONCE(queue->cq->flags, flags);
	smp_mb();	/* pairs with the user's fence between tail and flags */
	/* It may have ended since the check above. */
	if (is_over(queue))
		WRITE_ONCE(queue->cq->flags, ACP_CQ_ABORTED | ACP_CQ_NEED_WAKEUP);
	return !set || READ_ONCE(queue->starved) || !acp_queue_available(queue);
}

/* ---- failures ---- */

/* The status of a published command; one that is not published may use its slot, see show_end(). */
static u8 published_status(struct acp_queue *queue, u64 ticket)
{
	/* Pairs with show_end(). */
	u8 status = smp_load_acquire(&queue->cq->status[ticket & (queue->depth - 1)]);

	if (unlikely(status & ACP_CQ_ENDED))
		return READ_ONCE(acp_queue_cmd(queue, ticket + queue->depth)->former);
	return status;
}

/* Has a command that ended, published or not, failed? */
static bool has_failed(struct acp_queue *queue, u64 ticket)
{
	struct acp_cmd *cmd = acp_queue_cmd(queue, ticket);

	/* Pairs with acp_queue_complete(). */
	if (smp_load_acquire(&cmd->state) == ACP_CMD_ENDED &&
	    READ_ONCE(cmd->item.out.m.ticket) == ticket)
		return READ_ONCE(cmd->status);
	/* Pairs with publish(): a command that has left its slot is on record here. */
	return smp_load_acquire(&queue->completed) >= ticket && published_status(queue, ticket);
}

bool acp_queue_failed(struct acp_queue *queue, u64 from, u64 to)
{
	/* Before last_failed: pairs with publish(). */
	u64 completed = smp_load_acquire(&queue->completed), kept = queue->depth - 1;

	if (completed > kept)
		from = max(from, completed - kept + 1);
	to = min(to, READ_ONCE(queue->taken));
	if (READ_ONCE(queue->last_failed) < from)
		return false;
	for (; from <= to; from++)
		if (has_failed(queue, from))
			return true;
	return false;
}

/* ---- closing ---- */

/* Does a command wait for anything but answers? */
static bool is_idle(const struct acp_cmd *cmd)
{
	return cmd->state == ACP_CMD_WAITING || cmd->state == ACP_CMD_PARKED ||
	       cmd->state == ACP_CMD_GRANTED || cmd->state == ACP_CMD_WATCHING;
}

void acp_queue_unexpect(struct acp_queue *queue, const struct acp_cmd *cmd)
{
	const struct acp_msg *m = &cmd->item.out.m;
	struct acp_job *job = queue->job;
	struct acp_peer *peer;
	u32 i;

	for (i = 0; i < ACP_WAIT_NAMES; i++) {
		if (!queue->named[i])
			continue;
		peer = acp_peer_find(job, acp_job_node_of(job, acp_wait_name(m, i)),
				     acp_ga_color(&job->ga, m->src));
		if (peer) {
			atomic_dec(&peer->asked);
			acp_peer_unexpect(peer, queue->named[i]);
		}
		queue->named[i] = 0;
	}
}

void acp_queue_unwatch(struct acp_queue *queue)
{
	const struct acp_cmd *cmd = acp_queue_cmd(queue, queue->word);

	acp_watch_end(queue->rank, acp_ga_offset(&queue->job->ga, cmd->item.out.m.src));
	WRITE_ONCE(queue->word, 0);
	acp_queue_unexpect(queue, cmd);
}

/*
 * Commands that wait, or are parked, are not started any more; started ones end now, and late
 * answers are stray.
 */
void acp_queue_cut(struct acp_queue *queue)
{
	u64 t;

	/*
	 * The drainer stops soon, as the queue is closed; later callers find drain taken, and
	 * return.
	 */
	while (atomic_cmpxchg(&queue->drain, 0, 1))
		usleep_range(10, 100);
	local_bh_disable();
	if (queue->word)
		acp_queue_unwatch(queue);
	for (t = READ_ONCE(queue->completed) + 1; t <= queue->taken; t++) {
		struct acp_cmd *cmd = acp_queue_cmd(queue, t);

		/* A started one may become parked until it is ended here, but not later. */
		acp_queue_complete(queue, t, ACP_ST_ABORT);
		if (is_idle(cmd))
			acp_queue_end(queue, cmd, ACP_ST_ABORT);
	}
	WRITE_ONCE(queue->waiting, 0);
	acp_queue_abort(queue);
	local_bh_enable();
}
