/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A frame from another node that is being applied (receive.c), and the answers to its messages.
 * What they need is reserved before the first message has an effect.
 */
#ifndef ACP_ANSWER_H
#define ACP_ANSWER_H

#include "item.h"
#include "station.h"

/* A frame that is being applied. */
struct acp_arriving {
	struct acp_peer *peer;
	struct acp_job *job;
	const struct acp_frame_cb *cb;
	u32 epoch;
	struct acp_arrival *arrival;	/* allocated when first needed */
	u32 spare;			/* items reserved for its messages */
	u32 count;			/* messages */
	u32 gap;			/* bytes between a DATA message and its payload */
	u32 end_node;			/* node of the last ending message's origin */
	bool lone_put;
	bool pending;
	bool refused;			/* there was no memory to report a failure */
	u32 first_size;
	struct acp_batch batch;		/* for other peers */
	struct acp_msg first;		/* the first message, mostly the only one */
};

/* Make f->arrival, if there is none.  Returns false if there is no memory. */
bool acp_answer_arrival(struct acp_arriving *f);

/* Reserve all that applying may need, so that it cannot stop halfway. */
static inline bool acp_answer_reserve(struct acp_arriving *f, int needs)
{
	/*
	 * A lone message that fails has no effect: without memory, the frame is refused and sent
	 * again.
	 */
	if (needs && f->count > 1 && !acp_answer_arrival(f))
		return false;
	if (!acp_item_reserve(needs))
		return false;
	f->spare = needs;
	return true;
}

/* Is there what acp_answer_failure() needs? */
bool acp_answer_can(struct acp_arriving *f);

/* An item that was reserved. */
static inline struct acp_item *acp_answer_item(struct acp_arriving *f)
{
	f->spare--;
	return acp_item_new();
}

/*
 * Send soon what was queued.  The peer that the frame came from sends anyway; one other peer is
 * flushed at the end of the frame, further ones by their tasklets.  @f may be NULL.
 */
static inline void acp_answer_soon(struct acp_arriving *f, struct acp_peer *peer)
{
	if (f && peer == f->peer)
		return;
	if (f && !f->batch.peer)
		f->batch.peer = peer;
	else if (!f || f->batch.peer != peer)
		acp_peer_kick(peer);
}

/* Report to the origin, through @peer, how its command ended.  @f may be NULL. */
static inline void acp_answer(struct acp_arriving *f, struct acp_peer *peer, struct acp_item *item,
			      const struct acp_msg *m, u8 status)
{
	acp_out_done(&item->out, m, status);
	acp_peer_send(peer, item, 0);
	acp_answer_soon(f, peer);
}

/* The frame stays unacknowledged until this item was delivered or has failed. */
void acp_answer_hold(struct acp_arriving *f, struct acp_item *item);

/*
 * A command of the peer that sent this frame failed.  The peer must know that before it sees the
 * acknowledgement, and the commands that it fenced behind this one must fail, too.
 */
void acp_answer_failure(struct acp_arriving *f, const struct acp_msg *m, u8 status);

/* An item that returns a message to the peer. */
struct acp_item *acp_answer_return(struct acp_arriving *f, const struct acp_msg *m, u8 flags,
				   u8 status);

#endif /* ACP_ANSWER_H */
