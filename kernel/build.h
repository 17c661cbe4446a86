/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Items become frames, and frames become skbs at the end of a queue of them.
 *
 * A short message shares a frame with others, or is in one alone; it is copied. Of something
 * long each piece is a frame, whose payload stays in the pages it is in; pieces in the middle
 * of a plain copy go in rows, and frames of one length share an skb (train.h).
 *
 * All of this is under the peer's lock, and adds to "out" what the caller hands to the
 * network when it has dropped that.
 */
#ifndef ACP_BUILD_H
#define ACP_BUILD_H

#include "udp.h"

/* A HELLO, as the flow has filled it in, or an acknowledgement.  False: no memory. */
void acp_build_hello(struct acp_peer *peer, struct acp_frame *f, struct acp_outbox *out);
bool acp_build_ack(struct acp_peer *peer, struct acp_outbox *out);

/*
 * The next frame off a list of items, for which there is a slot: one piece, a short message alone,
 * or many.  Behind what is in "out", as are all others.  False: no memory or route; what was cut,
 * the time-out repeats.
 */
bool acp_build_new(struct acp_peer *peer, struct list_head *from, struct acp_outbox *out,
		   u64 now);

/* The frame of a slot again.  False: no memory. */
bool acp_build_again(struct acp_peer *peer, struct acp_outbox *out, struct acp_sent *s, u64 seq);

/* Bytes of that frame. */
u32 acp_build_size(const struct acp_peer *peer, const struct acp_sent *s);

/*
 * New frames of the first item that is pending, for which there are slots: as many as the window
 * and the budget allow, but not the last one, which is fenced.  Returns how many; 0: not in a
 * row; -ENOMEM.
 */
int acp_build_row(struct acp_peer *peer, struct acp_outbox *out, int budget, u64 now);

#endif /* ACP_BUILD_H */
