// SPDX-License-Identifier: GPL-2.0-only
/* Events: see event.h. */
#include <linux/errno.h>
#include <linux/poll.h>
#include "event.h"
#include "../job/node.h"
#include "../mem/watch.h"

/* EPOLLPRI only: waiters for completions with edge-triggered epoll must not be woken. */
static void wake(struct acp_job *job)
{
	struct acp_queue *queue;

	rcu_read_lock();
	list_for_each_entry_rcu(queue, &job->queue_list, job_link)
		wake_up_poll(&queue->wait, EPOLLPRI);
	rcu_read_unlock();
}

void acp_event_add(struct acp_job *job, const struct acp_event_record *record)
{
	struct acp_events *e = &job->events;

	spin_lock_bh(&e->lock);
	e->last[e->count % ACP_EVENTS] = *record;
	WRITE_ONCE(e->count, e->count + 1);
	spin_unlock_bh(&e->lock);
	wake(job);
}

bool acp_event_left(struct acp_job *job, u32 rank)
{
	struct acp_event_record record = {
		.type = ACP_EVENT_LEFT, .node = acp_job_node_of(job, rank), .rank = rank,
	};
	struct acp_events *e = &job->events;
	bool new = false;

	xa_lock_bh(&e->left);
	/* ACP_LEFT_MAX bounds the memory for ranks that left. */
	if (e->n_left < ACP_LEFT_MAX && !xa_load(&e->left, rank)) {
		WRITE_ONCE(e->n_left, e->n_left + 1);
		/* Without memory it is reported, but not remembered. */
		__xa_store(&e->left, rank, xa_mk_value(1), GFP_ATOMIC | __GFP_NOWARN);
		new = true;
	}
	xa_unlock_bh(&e->left);
	if (new) {
		acp_event_add(job, &record);
		acp_watch_gone_all(job);
	}
	return new;
}

int acp_event_next(struct acp_rank *rank, struct acp_event *event, u64 *number)
{
	struct acp_events *e = &rank->job->events;
	struct acp_event_record record;
	u64 missed = 0, at;

	spin_lock_bh(&e->lock);
	at = rank->events_read;
	if (e->count == at) {
		spin_unlock_bh(&e->lock);
		return -EAGAIN;
	}
	if (e->count - at > ACP_EVENTS)
		missed = e->count - at - ACP_EVENTS;
	at += missed;
	record = e->last[at % ACP_EVENTS];
	spin_unlock_bh(&e->lock);
	*number = at;
	*event = (struct acp_event){
		.size = sizeof(*event), .missed = min_t(u64, missed, U32_MAX), .type = record.type,
		.status = record.status, .color = record.color,
		.node = record.node, .rank = record.rank,
	};
	return 0;
}

bool acp_event_take(struct acp_rank *rank, u64 number)
{
	struct acp_events *e = &rank->job->events;
	bool first;

	spin_lock_bh(&e->lock);
	first = rank->events_read <= number;
	if (first)
		WRITE_ONCE(rank->events_read, number + 1);
	spin_unlock_bh(&e->lock);
	return first;
}

/* State of a rank of this node: unknown before it came; down as soon as it is leaving. */
static u32 state_here(struct acp_job *job, u32 rank)
{
	void *seat;
	u32 state;

	rcu_read_lock();
	seat = xa_load(&job->seats, rank);
	/* Seats before ranks: a rank that has its seat was among these; pairs with join_job(). */
	smp_rmb();
	if (acp_job_rank(job, rank))
		state = ACP_RANK_UP;
	else if (xa_load(&job->events.left, rank) || (seat && seat != ACP_SEAT_TAKEN))
		state = ACP_RANK_DOWN;
	else
		state = ACP_RANK_UNKNOWN;
	rcu_read_unlock();
	return state;
}

bool acp_event_has_left(struct acp_job *job, u32 rank)
{
	if (acp_job_node_of(job, rank) == job->me)
		return state_here(job, rank) == ACP_RANK_DOWN;
	return xa_load(&job->events.left, rank);
}

/* State of a node: up if one color has an open flow, but a lost incarnation is remembered. */
static u32 state_of_node(struct acp_job *job, u32 node, u8 *status)
{
	u32 color, state = ACP_RANK_UNKNOWN;
	bool open = false, back = false;

	local_bh_disable();
	for (color = 0; color < job->colors; color++) {
		const struct acp_peer *peer = acp_peer_find(job, node, color);
		u8 fate = peer ? READ_ONCE(peer->fates.fate) : ACP_FATE_NONE;

		if (fate == ACP_FATE_LOST) {
			state = ACP_RANK_DOWN;
			*status = READ_ONCE(peer->fates.status);
		}
		back |= fate != ACP_FATE_NONE;
		open |= peer && READ_ONCE(peer->flow.state) == ACP_FLOW_OPEN;
	}
	local_bh_enable();
	if (open)
		state = back ? ACP_RANK_BACK : ACP_RANK_UP;
	if (state != ACP_RANK_DOWN)
		*status = ACP_ST_OK;
	return state;
}

u32 acp_event_state(struct acp_job *job, u32 rank, u8 *status)
{
	u32 node = acp_job_node_of(job, rank), state;

	*status = ACP_ST_RANK;
	if (node != job->me && !xa_load(&job->events.left, rank))
		return state_of_node(job, node, status);
	state = node == job->me ? state_here(job, rank) : ACP_RANK_DOWN;
	if (state != ACP_RANK_DOWN)
		*status = ACP_ST_OK;
	return state;
}
