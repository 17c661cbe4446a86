// SPDX-License-Identifier: GPL-2.0-only
/* Headers around the messages of a frame: see framing.h. */
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ipv6.h>
#include <net/udp.h>
#include "../trace.h"
#include "framing.h"
#include "payload.h"
#include "skbs.h"

/*
 * Return the size of IP fragments for a frame that was built before the path's limit was known, or
 * 0.
 */
static u16 pieces(const struct acp_peer *peer, const struct sk_buff *skb)
{
	if (likely(!peer->narrow) || skb->len <= peer->narrow)
		return 0;
	return min_t(u32, peer->narrow, dst_mtu(peer->dst));
}

static void push_udp(struct sk_buff *skb, u16 port)
{
	struct udphdr *uh = __skb_push(skb, sizeof(*uh));

	skb_reset_transport_header(skb);
	uh->source = htons(port);
	uh->dest = uh->source;
	uh->len = htons(skb->len);
	uh->check = 0;
}

/*
 * As udp_set_csum() without GSO: the device computes the checksum, or the kernel for devices that
 * cannot.
 */
static void check4(struct sk_buff *skb, __be32 saddr, __be32 daddr)
{
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_transport_header(skb) - skb->head;
	skb->csum_offset = offsetof(struct udphdr, check);
	udp_hdr(skb)->check = ~udp_v4_check(skb->len, saddr, daddr, 0);
}

/* Does the tag cover all of the frame? */
static bool all_tagged(const struct acp_frame *f)
{
	return !(f->flags & ACP_FRAME_BULK);
}

/* As ip4_dst_hoplimit(), which would have to look up the namespace. */
static u8 hoplimit(const struct acp_peer *peer)
{
	return dst_metric_raw(peer->dst, RTAX_HOPLIMIT) ?:
	       READ_ONCE(peer->job->node->net->ipv4.sysctl_ip_default_ttl);
}

static void push_ip4(struct acp_peer *peer, struct sk_buff *skb, const struct acp_frame *f, u8 ecn)
{
	struct iphdr *iph;
	__be32 saddr, daddr;

	memcpy(&saddr, acp_udp_source(peer), 4);
	memcpy(&daddr, peer->addr, 4);
	if (!all_tagged(f))
		check4(skb, saddr, daddr);
	iph = __skb_push(skb, sizeof(*iph));
	skb_reset_network_header(skb);
	iph->version = 4;
	iph->ihl = sizeof(*iph) / 4;
	iph->tos = ecn;
	iph->frag_off = skb->len < ACP_MTU_MIN ? htons(IP_DF) : 0;
	iph->id = 0;
	iph->ttl = hoplimit(peer);
	iph->protocol = IPPROTO_UDP;
	iph->saddr = saddr;
	iph->daddr = daddr;
	if (!iph->frag_off)
		__ip_select_ident(peer->job->node->net, iph, 1);
	skb->protocol = htons(ETH_P_IP);
	IPCB(skb)->frag_max_size = pieces(peer, skb);
}

#if IS_ENABLED(CONFIG_IPV6)
/* noinline: with its arrays, IPv4 frames would need a stack protector, too. */
static noinline void push_ip6(struct acp_peer *peer, struct sk_buff *skb, u8 ecn)
{
	struct in6_addr saddr, daddr;
	struct ipv6hdr *iph;

	memcpy(&saddr, acp_udp_source(peer), 16);
	memcpy(&daddr, peer->addr, 16);
	udp6_set_csum(false, skb, &saddr, &daddr, skb->len);
	__skb_push(skb, sizeof(*iph));
	skb_reset_network_header(skb);
	iph = ipv6_hdr(skb);
	ip6_flow_hdr(iph, ecn, 0);
	iph->payload_len = htons(skb->len - sizeof(*iph));
	iph->nexthdr = IPPROTO_UDP;
	iph->hop_limit = ip6_dst_hoplimit(skb_dst(skb));
	iph->saddr = saddr;
	iph->daddr = daddr;
	skb->protocol = htons(ETH_P_IPV6);
	IP6CB(skb)->frag_max_size = pieces(peer, skb);
}
#else
static void push_ip6(struct acp_peer *peer, struct sk_buff *skb, u8 ecn)
{
}
#endif

struct sk_buff *acp_framing_new(struct acp_peer *peer, u32 linear)
{
	u32 room, head = sizeof(struct acp_frame_hdr);
	struct sk_buff *skb;

	if (!peer->dst)
		return NULL;
	if (acp_job_encrypted(peer->job)) {
		head += sizeof(struct acp_frame_nonce);
		linear += ACP_FRAME_ENCRYPTED;
	}
	room = LL_RESERVED_SPACE(peer->dst->dev) + acp_udp_overhead(peer);
	skb = acp_skb_new(room + linear);
	if (!skb) {
		acp_stat_inc(peer->job->node, tx_nomem);
		return NULL;
	}
	skb_reserve(skb, room);
	__skb_put(skb, head);
	return skb;
}

/* Prepare a frame for encryption: write a nonce, and make room for the authentication tag. */
static noinline void begin_encrypted(struct acp_peer *peer, struct sk_buff *skb,
				     struct acp_frame *f)
{
	f->flags |= ACP_FRAME_AEAD;
	f->length -= sizeof(struct acp_frame_nonce);
	acp_aead_nonce(&peer->secret, (void *)skb->data + sizeof(struct acp_frame_hdr),
		       f->type == ACP_FRAME_HELLO);
	skb_put(skb, ACP_FRAME_AEAD_TAG);
}

static __always_inline void fill_head(const struct acp_peer *peer, struct acp_frame_hdr *h,
				      const struct acp_frame *f)
{
	const struct acp_job *job = peer->job;
	struct acp_frame all = *f;

	all.color = peer->color;
	all.job = job->id;
	all.generation = job->generation;
	all.node = job->me;
	acp_frame_encode(h, &all);
}

static __always_inline void fill_tag(struct acp_peer *peer, struct acp_frame_hdr *h,
				     const struct acp_frame *f, u64 tag)
{
	trace_acp_xmit(peer, f);
	h->tag = cpu_to_be64(tag);
	peer->traffic.tx_frames++;
	peer->traffic.tx_bytes += acp_frame_size(f);
}

void acp_framing_head(struct acp_peer *peer, struct acp_frame_hdr *h, struct acp_frame *f)
{
	fill_head(peer, h, f);
}

void acp_framing_tag(struct acp_peer *peer, struct acp_frame_hdr *h, const struct acp_frame *f,
		     const struct sk_buff *skb, struct acp_bytes at)
{
	if (acp_payload_tagged(peer->job, f))
		fill_tag(peer, h, f, acp_payload_tag(peer->job, h, f, skb, at));
	else
		fill_tag(peer, h, f, acp_udp_tag_of(peer->job, h, f));
}

/* The tag of a frame with a long payload.  noinline: only such frames compute its position. */
static noinline u64 tag_of_bulk(const struct acp_job *job, const struct acp_frame_hdr *h,
				const struct acp_frame *f, const struct sk_buff *skb)
{
	return acp_payload_tag(job, h, f, skb, acp_bytes_behind(skb, acp_frame_tagged(f)));
}

void acp_framing_finish(struct acp_peer *peer, struct sk_buff *skb, struct acp_frame *f)
{
	struct acp_frame_hdr *h = (struct acp_frame_hdr *)skb->data;
	struct acp_job *job = peer->job;
	u8 ecn;

	f->length = skb->len - sizeof(*h);
	if (acp_job_encrypted(job))
		begin_encrypted(peer, skb, f);
	fill_head(peer, h, f);
	fill_tag(peer, h, f, unlikely(acp_payload_tagged(job, f)) ? tag_of_bulk(job, h, f, skb) :
		 acp_udp_tag_of(job, h, f));
	/* The frame is sent before bottom halves are on again; a queue takes a reference. */
	skb_dst_set_noref(skb, peer->dst);
	skb->ignore_df = 1;
	push_udp(skb, job->port);
	/*
	 * DATA that the window limits may be marked instead of dropped; there is little other DATA.
	 */
	ecn = h->type == ACP_FRAME_DATA ? INET_ECN_ECT_0 : INET_ECN_NOT_ECT;
	if (job->family == AF_INET)
		push_ip4(peer, skb, f, ecn);
	else
		push_ip6(peer, skb, ecn);
}
