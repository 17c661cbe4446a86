/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared declarations of the UDP transport, which converts between frames and datagrams.
 *
 * Transmission: peer_flow.c decides what is sent, build.c makes messages of it, gso_tx.c and
 * framing.c make frames of the messages, with routes from route.c and skbs from skbs.c; tx.c hands
 * them to the network.  Reception: socket.c receives datagrams, gso_rx.c splits GSO batches, rx.c
 * checks all of a frame but its messages; peer.c takes it.
 */
#ifndef ACP_UDP_H
#define ACP_UDP_H

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include "bytes.h"
#include "../core/tag.h"
#include "../job/node.h"

#define ACP_MTU_MAX	16384	/* bytes of a datagram */
#define ACP_MTU_MIN	576	/* every IPv4 path carries it */

/* A local address and port, shared by all jobs that use it. */
struct acp_socket {
	struct list_head link;
	struct acp_node *node;
	struct socket *sock;
	u8 family;
	u8 addr[16];
	u16 port;
	int device;		/* index; 0: bound to no device */
	u32 users;		/* one per job and color */
	struct rcu_head rcu;
};

/* What precedes the payload of a BULK frame that has no checksum. */
union acp_bulk_head {
	struct {
		struct acp_frame_hdr h;
		struct acp_msg_data m;
		struct acp_msg_more more;	/* if the message has an operation */
	};
	__be64 words[(sizeof(struct acp_frame_hdr) + sizeof(struct acp_msg_data) +
		      sizeof(struct acp_msg_more)) / sizeof(__be64)];
};

#define ACP_BULK_HEAD	offsetof(union acp_bulk_head, more)	/* without an operation */

/* Finished datagrams in the order they were built; empty: both are NULL. */
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

/* Save the state of a frame, whose messages begin at @body, in its skb. */
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

/* Bytes of the UDP and IP headers around a frame to the peer. */
static inline u32 acp_udp_overhead(const struct acp_peer *peer)
{
	return sizeof(struct udphdr) + (peer->job->family == AF_INET ? sizeof(struct iphdr) :
					sizeof(struct ipv6hdr));
}

/* Our address, the source of frames to the peer. */
static inline const u8 *acp_udp_source(const struct acp_peer *peer)
{
	return peer->job->sockets[peer->color]->addr;
}

/* Return the entry of the header prediction for this header.  BH off. */
static inline struct acp_predicted *acp_udp_predicted(const struct acp_job *job,
						      const struct acp_frame_hdr *h)
{
	const u8 *node = (const u8 *)&h->node, *length = (const u8 *)&h->length;
	u32 at = node[3] * 5 + length[1] / 8 * 3 + h->type;	/* the lower bits suffice */

	return this_cpu_ptr(&job->predictions->entries[at % ACP_PREDICTIONS]);
}

/*
 * Return the hash state after the first words of this header, with which its tag begins.  BH off.
 */
static inline const struct acp_tag_start *acp_udp_start(const struct acp_job *job,
							const struct acp_frame_hdr *h)
{
	struct acp_predicted *p = acp_udp_predicted(job, h);

	if (unlikely(!acp_tag_begins(&p->start, &h->version))) {
		acp_tag_begin(&p->start, job->key.key, &h->version);
		p->peer = NULL;
	}
	return &p->start;
}

/* Return the tag of a frame that it covers completely, at @h.  BH off. */
static inline u64 acp_udp_tag_of(const struct acp_job *job, const struct acp_frame_hdr *h,
				 const struct acp_frame *f)
{
	u32 size = acp_frame_tagged(f) - sizeof(h->tag);

	if (unlikely(size % 8))
		return siphash(&h->version, size, &job->key);
	return acp_tag(acp_udp_start(job, h), &h->version, size);
}

/* ---- frames for peer.c ---- */

/*
 * Process an authentic frame; acp_frame_cb(skb) describes it.  Takes over a reference to the skb,
 * which is the only one except for frames of a GSO batch (skb_is_gso()).  Softirq.
 */
void acp_peer_frame(struct acp_peer *peer, struct sk_buff *skb, const struct acp_frame *f);

/*
 * Process frames of a GSO batch that are consecutive pieces of one copy, see acp_msg_in_run().
 * f->seq is the number of the first one and @m its message; the headers of the others are otherwise
 * the same.  Return false if the frames must be processed one by one.  Softirq.
 */
bool acp_peer_pieces(struct acp_peer *peer, struct sk_buff *skb, const struct acp_frame *f,
		     const struct acp_msg *m, const struct acp_pieces *pieces);

#endif /* ACP_UDP_H */
