// SPDX-License-Identifier: GPL-2.0-only
/* Answers to frames from other nodes: see answer.h. */
#include <linux/slab.h>
#include "answer.h"

bool acp_answer_arrival(struct acp_arriving *f)
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

bool acp_answer_can(struct acp_arriving *f)
{
	return acp_answer_arrival(f) && (f->spare || acp_answer_reserve(f, 1));
}

void acp_answer_hold(struct acp_arriving *f, struct acp_item *item)
{
	f->pending = true;
	refcount_inc(&f->arrival->refs);
	item->arrival = f->arrival;
}

void acp_answer_failure(struct acp_arriving *f, const struct acp_msg *m, u8 status)
{
	struct acp_item *item;

	if (!acp_answer_can(f)) {
		/*
		 * The frame will be sent again; failures of earlier pieces must not be lost.  A
		 * whole indirect copy has none, and the pointer decides anew.
		 */
		if (m->type == ACP_MSG_DATA && !(acp_op_indirect(m->op) && !m->b))
			acp_peer_fail(f->peer, f->epoch, m, status, 0);
		f->refused = true;
		return;
	}
	item = acp_answer_item(f);
	/* Behind what takes room, only messages in their turn are fenced, and only until it has. */
	if (acp_msg_in_turn(m) ? status == ACP_ST_AGAIN : !acp_op_takes_room(m->op))
		acp_peer_fail(f->peer, f->epoch, m, status, acp_fails_until(f->cb->seq));
	acp_answer_hold(f, item);
	acp_answer(f, f->peer, item, m, status);
}

struct acp_item *acp_answer_return(struct acp_arriving *f, const struct acp_msg *m, u8 flags,
				   u8 status)
{
	struct acp_item *item = acp_answer_item(f);

	item->out.m = *m;
	item->out.m.flags = flags;
	item->out.m.status = status;
	return item;
}
