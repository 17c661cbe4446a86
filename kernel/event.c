// SPDX-License-Identifier: GPL-2.0-only
/* Events: see event.h. */
#include <linux/errno.h>
#include <linux/poll.h>
#include "event.h"
#include "node.h"

/* With what has come: who polls for completions at edges is not to see one here. */
static void wake(struct acp_job *job)
{
	struct acp_context *ctx;

	rcu_read_lock();
	list_for_each_entry_rcu(ctx, &job->contexts, job_link)
		wake_up_poll(&ctx->wait, EPOLLPRI);
	rcu_read_unlock();
}

void acp_event_add(struct acp_job *job, const struct acp_news *news)
{
	struct acp_events *e = &job->events;

	spin_lock_bh(&e->lock);
	e->last[e->count % ACP_EVENTS] = *news;
	WRITE_ONCE(e->count, e->count + 1);
	spin_unlock_bh(&e->lock);
	wake(job);
}

bool acp_event_left(struct acp_job *job, u32 rank)
{
	struct acp_news news = {
		.type = ACP_EVENT_LEFT, .node = acp_job_node_of(job, rank), .rank = rank,
	};
	struct acp_events *e = &job->events;
	bool new = false;

	xa_lock_bh(&e->left);
	/* Its neighbours count too: memory for the dead is bounded. */
	if (e->n_left < ACP_LEFT_MOST && !xa_load(&e->left, rank)) {
		e->n_left++;
		/* Without memory it is told, but not remembered. */
		__xa_store(&e->left, rank, xa_mk_value(1), GFP_ATOMIC | __GFP_NOWARN);
		new = true;
	}
	xa_unlock_bh(&e->left);
	if (new)
		acp_event_add(job, &news);
	return new;
}

int acp_event_next(struct acp_context *ctx, struct acp_event *event, u64 *number)
{
	struct acp_events *e = &ctx->job->events;
	struct acp_news news;
	u64 missed = 0, at;

	spin_lock_bh(&e->lock);
	at = ctx->events_read;
	if (e->count == at) {
		spin_unlock_bh(&e->lock);
		return -EAGAIN;
	}
	if (e->count - at > ACP_EVENTS)
		missed = e->count - at - ACP_EVENTS;
	at += missed;
	news = e->last[at % ACP_EVENTS];
	spin_unlock_bh(&e->lock);
	*number = at;
	*event = (struct acp_event){
		.size = sizeof(*event), .missed = min_t(u64, missed, U32_MAX), .type = news.type,
		.status = news.status, .color = news.color, .node = news.node, .rank = news.rank,
	};
	return 0;
}

bool acp_event_take(struct acp_context *ctx, u64 number)
{
	struct acp_events *e = &ctx->job->events;
	bool first;

	spin_lock_bh(&e->lock);
	first = ctx->events_read <= number;
	if (first)
		WRITE_ONCE(ctx->events_read, number + 1);
	spin_unlock_bh(&e->lock);
	return first;
}

/* Of a rank on this node: has it come, has it left, is it just leaving? */
static u32 state_here(struct acp_job *job, u32 rank)
{
	void *seat;
	u32 state;

	rcu_read_lock();
	seat = xa_load(&job->seats, rank);
	smp_rmb();	/* a rank that has its seat has been in the table; pairs with join_job() */
	if (acp_job_context(job, rank))
		state = ACP_RANK_UP;
	else if (xa_load(&job->events.left, rank) || (seat && seat != ACP_SEAT_TAKEN))
		state = ACP_RANK_DOWN;
	else
		state = ACP_RANK_UNKNOWN;
	rcu_read_unlock();
	return state;
}

/* Of a node: one way that works will do, but a life that ended counts for ever. */
static u32 state_of_node(struct acp_job *job, u32 node, u8 *status)
{
	u32 color, state = ACP_RANK_UNKNOWN;
	bool open = false, back = false;

	local_bh_disable();
	for (color = 0; color < job->colors; color++) {
		const struct acp_peer *peer = acp_peer_find(job, node, color);
		u8 fate = peer ? READ_ONCE(peer->fate) : ACP_FATE_NONE;

		if (fate == ACP_FATE_LOST) {
			state = ACP_RANK_DOWN;
			*status = READ_ONCE(peer->lost_status);
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
