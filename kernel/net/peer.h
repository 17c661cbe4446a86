/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of a peer share: peer_memory.c has the memory that is charged to the job's user,
 * peer_flow.c what is sent and when, and peer.c the rest: calls of the station, and frames that
 * arrive.  Callers hold peer->lock.
 */
#ifndef ACP_PEER_H
#define ACP_PEER_H

#include "../job/node.h"
#include "udp.h"

/* ---- memory ---- */

/* Charge memory to the job's user.  Return false if the limit does not allow it. */
bool acp_peer_take_kib(struct acp_peer *peer, u32 kib);
void acp_peer_give_kib(struct acp_peer *peer, u32 kib);

/* Allocate the slots of frames in flight, which all frames but HELLOs need. */
bool acp_peer_get_slots(struct acp_peer *peer);

static inline bool acp_peer_need_slots(struct acp_peer *peer)
{
	return likely(peer->slots) || acp_peer_get_slots(peer);
}

/* Allocate the table of @failures, which are the peer's.  Without memory there is none. */
void acp_peer_get_fails(struct acp_peer *peer, struct acp_failures *failures);

/* The memory of a held frame. */
static inline u32 acp_peer_held_kib(const struct sk_buff *skb)
{
	return DIV_ROUND_UP(skb->truesize, SZ_1K);
}

/* Allocate the table of landings, unless there is one.  Return false if there is no memory. */
bool acp_peer_get_landings(struct acp_peer *peer);

/* Is it known where the copy of this piece goes?  The caller holds peer->lock. */
bool acp_peer_has_landed(const struct acp_peer *peer, const struct acp_msg *m);

/* Free the landings of indirect copies, if there are any. */
void acp_peer_free_landings(struct acp_peer *peer);

/* ---- items and frames ---- */

/* Is anything waiting to be sent? */
static inline bool acp_peer_has_items(const struct acp_peer *peer)
{
	return !list_empty(&peer->pending) || !list_empty(&peer->answers);
}

/* A frame that carried a piece of the item is done; after the last one, move the item to @to. */
static inline void acp_peer_piece_done(struct acp_item *item, struct list_head *to)
{
	if (!--item->frames && item->out.finished)
		acp_items_add(to, item);
}

/* Take a frame off the held ones; it then belongs to the caller. */
static inline void acp_peer_unhold(struct acp_peer *peer, struct sk_buff *skb)
{
	acp_flow_unhold(&peer->flow, acp_frame_cb(skb)->seq);
	acp_peer_give_kib(peer, acp_peer_held_kib(skb));
	__skb_unlink(skb, &peer->held);
}

/* ---- the flow ---- */

/*
 * The flow has ended: drop all items and held frames.  The tasklet reports them with that status.
 */
void acp_peer_drop_all(struct acp_peer *peer, u8 status);

/* The peer is lost; its flow begins anew. */
void acp_peer_failed(struct acp_peer *peer, u8 status);

/* The peer has begun a new incarnation. */
void acp_peer_restarted(struct acp_peer *peer, u32 epoch_peer, u64 now);

void acp_peer_opened(struct acp_peer *peer);

/* Do all that is due for a peer, and build the frames for it. */
void acp_peer_process(struct acp_peer *peer, struct acp_outbox *out, u64 now);

#endif /* ACP_PEER_H */
