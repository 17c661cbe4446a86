/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * GSO batches: frames of one peer that share an skb and have the same size, except that the last
 * one may be shorter.  Routing, firewalls, queueing disciplines and devices handle one datagram
 * instead of many (UDP GSO).  Each frame is complete, with a header and a tag of its own; the
 * kernel splits a batch for devices and paths that do not support GSO.
 *
 * Only frames with long payloads share an skb: BULK frames, whose payload stays in its pages, and
 * encrypted frames, which are written one after the other to memory of the module.
 *
 * All functions run under peer->lock unless stated otherwise.
 */
#ifndef ACP_GSO_TX_H
#define ACP_GSO_TX_H

#include "udp.h"

/* A BULK frame, or an encrypted frame with a long payload, that is being built. */
struct acp_bulk {
	struct sk_buff *skb;
	struct acp_frame_hdr *h;	/* header, followed by all that precedes the payload */
	u32 size;			/* of the frame, with nonce block and authentication tag */
	int first;			/* index of the payload's first fragment */
	bool alone;			/* set by the caller: no other frame may share the skb */
	bool joined;			/* the skb has other frames before this one */
};

/*
 * Begin a frame of @size bytes, of which @head precede the payload.  The payload will be attached
 * in at most @frags fragments.  The frame goes behind the last one in @out, or in an skb of its
 * own.  A frame that will be encrypted has no fragments: @head is header and body, and @size
 * includes nonce block and authentication tag.  Return false if there is no memory or no route.
 */
bool acp_gso_begin(struct acp_peer *peer, const struct acp_outbox *out, struct acp_bulk *b,
		   u32 head, u32 size, u32 frags);

/* Attach a part of the payload. */
void acp_gso_attach(struct sk_buff *skb, struct page *page, u32 offset, u32 size);

/*
 * Attach @size zeros of padding, less than 8.  They belong to this frame alone: others may rely on
 * the contents of a page of zeros that is shared.  Before the frame begins, acp_gso_reserve() must
 * reserve memory for its @head and ACP_GSO_PAD more bytes; it returns false if there is none.  BH
 * must stay off from then on.
 */
#define ACP_GSO_PAD	8
bool acp_gso_reserve(u32 size);
void acp_gso_pad(struct sk_buff *skb, u32 size);

/* Return the address of the frame's message. */
static inline void *acp_gso_body(const struct acp_peer *peer, const struct acp_bulk *b)
{
	return (void *)(b->h + 1) +
	       (acp_job_encrypted(peer->job) ? sizeof(struct acp_frame_nonce) : 0);
}

/* Write header and tag, and append the frame to @out if it has an skb of its own. */
void acp_gso_end(struct acp_peer *peer, struct acp_outbox *out, struct acp_bulk *b,
		 struct acp_frame *f);

/*
 * The same for a frame of a burst: @head has everything before the payload but the tag, @size
 * bytes.
 */
void acp_gso_end_burst(struct acp_peer *peer, struct acp_outbox *out, struct acp_bulk *b,
		       struct acp_frame *f, const union acp_bulk_head *head, u32 size);

/*
 * Encrypt the frames of an skb, which are otherwise complete.  BH off, without peer->lock.  Return
 * false if there is no memory.
 */
bool acp_gso_close_frames(struct acp_peer *peer, struct sk_buff *skb);

/* Complete the UDP and IP headers of a batch that has all its frames.  Without peer->lock. */
void acp_gso_close(struct acp_peer *peer, struct sk_buff *skb);

/**
 * acp_gso_exit() - free the memory for headers and encrypted frames
 *
 * Called when nothing is sent any more.
 *
 * Context: process context.
 */
void acp_gso_exit(void);

#endif /* ACP_GSO_TX_H */
