/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Frames <-> datagrams.  udp.c finds the way and writes, socket.c checks everything
 * around a frame's messages; peer.c decides what is sent, and takes what came.
 */
#ifndef ACP_UDP_H
#define ACP_UDP_H

#include "bypass.h"
#include "bytes.h"
#include "core/tag.h"
#include "node.h"

#define ACP_MTU_MOST	16384	/* bytes of a datagram */

/* An address and port of ours, for all jobs that have them. */
struct acp_socket {
	struct list_head link;
	struct acp_node *node;
	struct socket *sock;
	u8 family;
	u8 addr[16];
	u16 port;
	u32 users;		/* jobs and colors */
	struct rcu_head rcu;
};

/* Finished datagrams, in the order in which they were built; empty: both are NULL. */
struct acp_outbox {
	struct sk_buff *first, *last;
};

static inline void acp_outbox_add(struct acp_outbox *out, struct sk_buff *skb)
{
	if (out->first)
		out->last->next = skb;
	else
		out->first = skb;
	out->last = skb;
}

static inline struct acp_frame_cb *acp_frame_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct acp_frame_cb) > sizeof(skb->cb));
	return (struct acp_frame_cb *)skb->cb;
}

/* Note what of a frame, whose messages begin at "body", is kept beside its skb. */
static inline void acp_frame_note(struct sk_buff *skb, const struct acp_frame *f, const u8 *body,
				  u32 tagged)
{
	struct acp_frame_cb *cb = acp_frame_cb(skb);

	cb->body = body;
	cb->seq = f->seq;
	cb->length = f->length;
	cb->tagged = tagged;
	cb->fence = f->flags & ACP_FRAME_FENCE;
	cb->lazy = f->flags & ACP_FRAME_LAZY;
}

/* Where a frame's kind is remembered.  BH off. */
static inline struct acp_kind *acp_udp_kind(const struct acp_job *job,
					    const struct acp_frame_hdr *h)
{
	const u8 *node = (const u8 *)&h->node, *length = (const u8 *)&h->length;
	u32 at = node[3] * 5 + length[1] / 8 * 3 + h->type;	/* the lower bits will do */

	return this_cpu_ptr(&job->kinds->kinds[at % ACP_KINDS]);
}

/* The tag of a frame of which "h" is all that it covers.  BH off. */
static inline u64 acp_udp_tag_of(const struct acp_job *job, const struct acp_frame_hdr *h,
				 const struct acp_frame *f)
{
	u32 size = acp_frame_tagged(f) - sizeof(h->tag);
	struct acp_kind *kind = acp_udp_kind(job, h);

	if (unlikely(size % 8))
		return siphash(&h->version, size, &job->key);
	if (unlikely(!acp_tag_begins(&kind->start, &h->version))) {
		acp_tag_begin(&kind->start, job->key.key, &h->version);
		kind->peer = NULL;
	}
	return acp_tag(&kind->start, &h->version, size);
}

/* ---- peer.c to udp.c; under the peer's lock unless said ---- */

/* Find a route anew. */
void acp_udp_find_route(struct acp_peer *peer);

/* See to peer->dst, the route, and with it to peer->mtu; before frames are made.  NULL: none. */
static inline void acp_udp_route(struct acp_peer *peer)
{
	if (!peer->dst || peer->job->family != AF_INET ||
	    !acp_bypass_valid(peer->job->node->net, peer->dst))
		acp_udp_find_route(peer);
}

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

/*
 * Header and tag alone, at "h", where all is that the tag covers; f->length is set.  Or one after
 * the other: what is the same in all frames of a row is written once.
 */
void acp_udp_head(struct acp_peer *peer, struct acp_frame_hdr *h, struct acp_frame *f);
void acp_udp_tag(struct acp_peer *peer, struct acp_frame_hdr *h, const struct acp_frame *f);
void acp_udp_header(struct acp_peer *peer, struct acp_frame_hdr *h, struct acp_frame *f);

/* The frame, or NULL, is not needed any more; perhaps for the next one.  BH off. */
void acp_udp_free(struct sk_buff *skb);

/* Hand finished datagrams, of which there are some, to the network.  Without the lock, BH off. */
void acp_udp_send(struct acp_peer *peer, struct acp_outbox *out);

/* ... if there are any. */
static inline void acp_udp_xmit(struct acp_peer *peer, struct acp_outbox *out)
{
	if (out->first)
		acp_udp_send(peer, out);
}

/* ---- socket.c to train.c, of frames that came ---- */

/* One that has an skb of its own; data begins at its header.  Takes it. */
void acp_udp_take(struct acp_socket *socket, struct sk_buff *skb);

/* Its header was refused. */
void acp_udp_bad_header(struct acp_node *node, enum acp_frame_error error,
			const struct sk_buff *skb);

/* The job that it belongs to and *peer, its sender or NULL; NULL: dropped, not from there. */
struct acp_job *acp_udp_job(struct acp_socket *socket, const struct sk_buff *skb,
			    const struct acp_frame *f, struct acp_peer **peer);

/* "h" is all of it that the tag covers. */
bool acp_udp_tag_right(const struct acp_job *job, const struct acp_frame_hdr *h,
		       const struct acp_frame *f);

/*
 * The checksum of a BULK frame, of which "h" is what comes before the payload, if the job or
 * the frame wants one; the frame begins at "at" in the skb.  False: counted as dropped.
 */
bool acp_udp_bulk_right(struct acp_job *job, struct sk_buff *skb, u32 at,
			const struct acp_frame_hdr *h, const struct acp_frame *f);

/* ---- socket.c, train.c to peer.c ---- */

/*
 * A frame that is authentic; acp_frame_cb(skb) says where.  Takes a reference to the skb, which
 * is the only one but for the frames of a train (skb_is_gso()).  Softirq.
 */
void acp_peer_frame(struct acp_peer *peer, struct sk_buff *skb, const struct acp_frame *f);

/*
 * Frames of a train that are consecutive pieces of one copy: f->seq is the number of the first
 * one and m its message; all else of the others' headers is the same.  None is fenced, and none
 * has the last piece.  False: they must be taken one by one.
 */
bool acp_peer_pieces(struct acp_peer *peer, struct sk_buff *skb, const struct acp_frame *f,
		     const struct acp_msg *m, const struct acp_pieces *pieces);

#endif /* ACP_UDP_H */
