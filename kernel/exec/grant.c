// SPDX-License-Identifier: GPL-2.0-only
/* Grants to messages that asked: see grant.h. */
#include "grant.h"
#include "item.h"
#include "../job/node.h"
#include "../queue/queue.h"

#define HERE	1	/* the incarnation of what is no flow */

static u32 send(struct acp_job *job, struct acp_item *item, u32 node, u32 color)
{
	struct acp_peer *peer = acp_peer_find(job, node, color);
	u32 epoch;

	if (!peer || READ_ONCE(job->dead)) {
		acp_item_free(item);
		return 0;
	}
	epoch = acp_peer_send(peer, item, 0);
	acp_peer_kick(peer);
	return epoch;
}

bool acp_grant_take(struct acp_job *job, const struct acp_msg *m)
{
	struct acp_queue *queue = acp_job_queue(job, m->origin, m->ticket);

	return queue && acp_queue_grant(queue, m->ticket, m->dst, m->a);
}

bool acp_grant_known(struct acp_job *job, u32 rank, u64 ticket, u64 mailbox)
{
	struct acp_queue *queue = acp_job_queue(job, rank, ticket);

	return queue && acp_queue_asks(queue, ticket, mailbox);
}

static u32 send_copy(struct acp_job *job, const struct acp_msg *m, u32 node, u32 color)
{
	struct acp_item *item = acp_item_alloc(GFP_ATOMIC | __GFP_NOWARN);

	if (!item)
		return 0;
	item->out.m = *m;
	return send(job, item, node, color);
}

u32 acp_grant_send(struct acp_job *job, const struct acp_msg *m, u32 color)
{
	u32 node = acp_job_node_of(job, m->origin);

	if (node == job->me)
		return acp_grant_take(job, m) ? HERE : 0;
	return send_copy(job, m, node, color);
}

void acp_grant_return(struct acp_job *job, const struct acp_msg *m)
{
	send_copy(job, m, acp_job_ga_node(job, m->dst), acp_ga_color(&job->ga, m->dst));
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
		send(job, item, acp_job_node_of(job, rank), color);
		local_bh_enable();
		return;
	}
	local_bh_disable();
	queue = acp_job_queue(job, rank, ticket);
	if (queue)
		acp_queue_complete(queue, ticket, status);
	local_bh_enable();
}
