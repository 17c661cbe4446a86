// SPDX-License-Identifier: GPL-2.0-only
/* Grants to messages that asked: see grant.h. */
#include "grant.h"
#include "item.h"
#include "../job/node.h"
#include "../queue/queue.h"

static void send(struct acp_job *job, struct acp_item *item, u32 node, u32 color, u32 epoch)
{
	struct acp_peer *peer = acp_peer_find(job, node, color);

	if (!peer || READ_ONCE(job->dead)) {
		acp_item_free(item);
		return;
	}
	acp_peer_send(peer, item, epoch);
	acp_peer_kick(peer);
}

bool acp_grant_ok(struct acp_job *job, const struct acp_msg *m, u32 from)
{
	bool back = m->flags & ACP_MSG_FAIL;

	return acp_ga_valid(&job->ga, m->dst) &&
	       acp_job_ga_node(job, m->dst) == (back ? job->me : from) &&
	       acp_job_node_of(job, m->origin) == (back ? from : job->me);
}

bool acp_grant_take(struct acp_job *job, const struct acp_msg *m)
{
	struct acp_queue *queue = acp_job_queue(job, m->origin, m->ticket);

	return queue && acp_queue_grant(queue, m->ticket, m->dst, m->a);
}

bool acp_grant_gone(struct acp_job *job, u32 rank, u64 ticket, u64 mailbox, u32 color, u32 epoch)
{
	u32 node = acp_job_node_of(job, rank);
	struct acp_queue *queue;
	struct acp_peer *peer;

	if (node == job->me) {
		queue = acp_job_queue(job, rank, ticket);
		return !queue || !acp_queue_asks(queue, ticket, mailbox);
	}
	peer = acp_peer_find(job, node, color);
	return !peer || acp_peer_epoch(peer) != epoch;
}

static bool send_copy(struct acp_job *job, const struct acp_msg *m, u32 node, u32 color, u32 epoch)
{
	struct acp_item *item = acp_item_alloc(GFP_ATOMIC | __GFP_NOWARN);

	if (!item)
		return false;
	item->out.m = *m;
	send(job, item, node, color, epoch);
	return true;
}

bool acp_grant_send(struct acp_job *job, const struct acp_msg *m, u32 color, u32 epoch)
{
	u32 node = acp_job_node_of(job, m->origin);

	return node == job->me ? acp_grant_take(job, m) : send_copy(job, m, node, color, epoch);
}

void acp_grant_return(struct acp_job *job, const struct acp_msg *m)
{
	send_copy(job, m, acp_job_ga_node(job, m->dst), acp_ga_color(&job->ga, m->dst), 0);
}

void acp_grant_refuse(struct acp_job *job, u32 rank, u64 ticket, u32 color, u8 status)
{
	const struct acp_msg m = { .origin = rank, .ticket = ticket };
	struct acp_queue *queue;
	struct acp_item *item;

	if (acp_job_node_of(job, rank) != job->me) {
		item = acp_item_alloc(GFP_KERNEL | __GFP_NOFAIL);
		acp_out_done(&item->out, &m, status);
		local_bh_disable();
		send(job, item, acp_job_node_of(job, rank), color, 0);
		local_bh_enable();
		return;
	}
	local_bh_disable();
	queue = acp_job_queue(job, rank, ticket);
	if (queue)
		acp_queue_complete(queue, ticket, status);
	local_bh_enable();
}
