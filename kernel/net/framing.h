/* SPDX-License-Identifier: GPL-2.0-only */
/* Headers, nonce and tag around the messages of a frame.  All under peer->lock. */
#ifndef ACP_FRAMING_H
#define ACP_FRAMING_H

#include "udp.h"

/*
 * Return an skb in which the frame's header is reserved, with room for @linear bytes including the
 * header; NULL if there is no memory or no route.
 */
struct sk_buff *acp_framing_new(struct acp_peer *peer, u32 linear);

/* Write header, tag, UDP header and IP header around a frame whose body is in @skb. */
void acp_framing_finish(struct acp_peer *peer, struct sk_buff *skb, struct acp_frame *f);

/*
 * Write only the header, or only the tag, at @h, which has everything before the payload.  The
 * payload begins at @at in the skb; f->length is set.  Frames of a burst have the same header but
 * for some fields, so it is written once for all of them.
 */
void acp_framing_head(struct acp_peer *peer, struct acp_frame_hdr *h, struct acp_frame *f);
void acp_framing_tag(struct acp_peer *peer, struct acp_frame_hdr *h, const struct acp_frame *f,
		     const struct sk_buff *skb, struct acp_bytes at);

#endif /* ACP_FRAMING_H */
