/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Trains: frames of one peer, all of one size but for the last, that share an
 * skb, so that routing, firewalls, queueing disciplines and devices see one
 * datagram in their place (UDP GSO).  Each is a whole frame with a header and
 * a tag of its own; who cannot take a train, a card or a path, is given the
 * frames one by one by the kernel.
 *
 * Only frames whose payload stays in its pages (BULK) are put together, and
 * only those of a train that came are taken where they are: any other one is
 * given an skb of its own, and goes the way that it would have come without.
 */
#ifndef ACP_TRAIN_H
#define ACP_TRAIN_H

#include "node.h"
#include "udp.h"

/* What of a BULK frame comes before its payload, if it has neither an operation nor a checksum. */
union acp_bulk_head {
	struct {
		struct acp_frame_hdr h;
		struct acp_msg_data m;
	};
	__be64 words[(sizeof(struct acp_frame_hdr) + sizeof(struct acp_msg_data)) /
		     sizeof(__be64)];
};

/* ---- out, under the peer's lock ---- */

/* A BULK frame that is being built. */
struct acp_bulk {
	struct sk_buff *skb;
	struct acp_frame_hdr *h;	/* and what is before the payload */
	u32 size;			/* of all of it */
	int first;			/* the payload's first fragment */
	bool alone;			/* by the caller: no other frame may share its skb */
	bool joined;			/* other frames are before it in the skb */
};

/*
 * Begin a frame of "size" bytes, of which "head" come before the payload, which is to be
 * attached in at most "frags" fragments: behind the last one in "out", or in an skb of its own.
 * False: no memory, or no route.
 */
bool acp_train_begin(struct acp_peer *peer, const struct acp_outbox *out, struct acp_bulk *b,
		     u32 head, u32 size, u32 frags);

/* A piece of the payload, or padding. */
void acp_train_attach(struct sk_buff *skb, struct page *page, u32 offset, u32 size);

/* Header and tag; then it is in "out". */
void acp_train_end(struct acp_peer *peer, struct acp_outbox *out, struct acp_bulk *b,
		   struct acp_frame *f);

/* The same, if all before the payload is already there as it will be, but for the tag. */
void acp_train_end_row(struct acp_peer *peer, struct acp_outbox *out, struct acp_bulk *b,
		       struct acp_frame *f, const union acp_bulk_head *head);

/* The last frame is in it: what its UDP and IP headers say of all of it. */
void acp_train_close(struct acp_peer *peer, struct sk_buff *skb);

/* Once nothing is sent any more: give all memory back. */
void acp_train_exit(void);

/* ---- in ---- */

/* Datagrams in one skb (UDP GSO), from the first one's frame on.  Takes the skb.  Softirq. */
void acp_train_received(struct acp_node *node, struct acp_socket *socket, struct sk_buff *skb);

/*
 * A copy of a part of it, from "at" on, in an skb of its own, which has the same IP and UDP
 * headers; or NULL.
 */
struct sk_buff *acp_train_single(const struct sk_buff *train, u32 at, u32 size);

#endif /* ACP_TRAIN_H */
