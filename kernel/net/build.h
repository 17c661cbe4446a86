/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Build frames from items, as skbs that are appended to an outbox.
 *
 * A short message shares a frame with others or has a frame of its own; it is copied.  A long
 * transfer is cut into pieces of one frame each.  The payload of a piece stays in its pages, or is
 * copied if the job encrypts.  Pieces before the last one are mostly built in bursts (burst.c), and
 * frames of the same length share an skb (gso_tx.h).
 *
 * All functions run under peer->lock and append to @out, which the caller sends after it has
 * dropped the lock.
 */
#ifndef ACP_BUILD_H
#define ACP_BUILD_H

#include "udp.h"

/*
 * Build a HELLO, which the flow has filled in, or an acknowledgement. acp_build_ack() returns false
 * if there is no memory or route.
 */
void acp_build_hello(struct acp_peer *peer, struct acp_frame *f, struct acp_outbox *out);
bool acp_build_ack(struct acp_peer *peer, struct acp_outbox *out);

/*
 * Build the next frame from a list of items: one piece, a single short message, or several.  The
 * flow must have a free slot.  The frame goes behind those in @out.  Return false if there is no
 * memory or no route; the retransmission timeout repeats what was cut.
 */
bool acp_build_new(struct acp_peer *peer, struct list_head *from, struct acp_outbox *out,
		   u64 now);

/* Build the frame of a slot again.  Return false if there is no memory or no route. */
bool acp_build_again(struct acp_peer *peer, struct acp_outbox *out, struct acp_sent *s, u64 seq);

/* Return the bytes of the frame of a slot. */
u32 acp_build_size(const struct acp_peer *peer, const struct acp_sent *s);

/*
 * Build frames from the first pending item, as many as the window and @budget allow, but not the
 * last piece, which is fenced.  Return their number; 0 if the item does not go in bursts; or
 * -ENOMEM.
 */
int acp_build_burst(struct acp_peer *peer, struct acp_outbox *out, int budget, u64 now);

#endif /* ACP_BUILD_H */
