/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Frames <-> datagrams.  udp.c finds the way, writes and checks everything
 * around a frame's messages; peer.c decides what is sent, and takes what came.
 */
#ifndef ACP_UDP_H
#define ACP_UDP_H

#include "node.h"

/* What is kept of a frame beside its skb, whose data begins at the messages. */
struct acp_frame_cb {
	u64 seq;
	u32 length;
	u32 tagged;
	bool fence;
	bool lazy;
};

static inline struct acp_frame_cb *acp_frame_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct acp_frame_cb) > sizeof(skb->cb));
	return (struct acp_frame_cb *)skb->cb;
}

/* ---- peer.c to udp.c; under the peer's lock unless said ---- */

/* See to peer->dst, the route, and with it to peer->mtu; before frames are made.  NULL: none. */
void acp_udp_route(struct acp_peer *peer);

/* The path's MTU may have changed: peer->mtu as of now. */
void acp_udp_measure(struct acp_peer *peer);

/*
 * The next smaller datagrams (bytes of IP) to try when a frame of so many bytes does not get
 * through, or 0; and from now on to send no larger ones.
 */
u32 acp_udp_narrower(const struct acp_peer *peer, u32 size);
void acp_udp_narrow(struct acp_peer *peer, u32 width, u64 now);

/* An empty frame, its header reserved, room for "linear" bytes with it; or NULL. */
struct sk_buff *acp_udp_frame_new(struct acp_peer *peer, u32 linear);

/* Header, tag, UDP and IP header around a frame whose body is in the skb. */
void acp_udp_frame_finish(struct acp_peer *peer, struct sk_buff *skb, struct acp_frame *f);

/* The frame, or NULL, is not needed any more; perhaps for the next one.  BH off. */
void acp_udp_free(struct sk_buff *skb);

/* Hand finished datagrams to the network.  Without the lock, BH off. */
void acp_udp_xmit(struct acp_peer *peer, struct sk_buff_head *out);

/* ---- udp.c to peer.c ---- */

/* A frame that is authentic; data begins behind its header.  Takes the skb.  Softirq. */
void acp_peer_frame(struct acp_peer *peer, struct sk_buff *skb, const struct acp_frame *f);

#endif /* ACP_UDP_H */
