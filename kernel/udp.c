// SPDX-License-Identifier: GPL-2.0-only
/*
 * The UDP transport, what goes out: routes, frames, datagrams; see udp.h.
 * What comes in is in socket.c.
 */
#include <linux/ipv6.h>
#include <linux/slab.h>
#include <linux/udp.h>
#include <linux/version.h>
#include <net/inet_common.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/ipv6_stubs.h>
#include <net/route.h>
#include <net/udp.h>
#include "bypass.h"
#include "core/tag.h"
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#include <linux/skbuff_ref.h>
#endif
#include "node.h"
#include "trace.h"
#include "train.h"
#include "udp.h"

#define SPARE_MOST	2048	/* bytes of an skb that is kept */
#define SPARES		16	/* skbs that a processor keeps */
#define MTU_LEAST	576
#define MTU_SEALED	(SKB_WITH_OVERHEAD(SZ_8K) - 128)	/* and room for what is below IP */
#define NARROW_NS	(600 * NSEC_PER_SEC)	/* as long as the kernel believes in a path MTU */

/* ---- datagrams out ---- */

/* Bytes of the headers around a frame. */
static u32 overhead(const struct acp_peer *peer)
{
	return sizeof(struct udphdr) + (peer->job->family == AF_INET ? sizeof(struct iphdr) :
					sizeof(struct ipv6hdr));
}

/* ... and around what is in it, if that is encrypted. */
static u32 around(const struct acp_peer *peer)
{
	return overhead(peer) + (acp_job_sealed(peer->job) ? ACP_FRAME_SEALED : 0);
}

static struct sock *peer_sk(struct acp_peer *peer)
{
	return peer->job->sockets[peer->color]->sock->sk;
}

static const u8 *peer_source(struct acp_peer *peer)
{
	return peer->job->sockets[peer->color]->addr;
}

static struct dst_entry *route4(struct acp_peer *peer)
{
	struct flowi4 fl = {
		.flowi4_proto = IPPROTO_UDP,
		.fl4_sport = htons(peer->job->port),
		.fl4_dport = htons(peer->job->port),
	};
	struct rtable *rt;

	memcpy(&fl.saddr, peer_source(peer), 4);
	memcpy(&fl.daddr, peer->addr, 4);
	rt = ip_route_output_flow(peer->job->node->net, &fl, NULL);
	return IS_ERR(rt) ? ERR_CAST(rt) : &rt->dst;
}

#if IS_ENABLED(CONFIG_IPV6)
static struct dst_entry *route6(struct acp_peer *peer)
{
	struct flowi6 fl = {
		.flowi6_proto = IPPROTO_UDP,
		.fl6_sport = htons(peer->job->port),
		.fl6_dport = htons(peer->job->port),
	};

	memcpy(&fl.saddr, peer_source(peer), 16);
	memcpy(&fl.daddr, peer->addr, 16);
	return ipv6_stub->ipv6_dst_lookup_flow(peer->job->node->net, peer_sk(peer), &fl, NULL);
}

static u32 route_cookie(struct acp_peer *peer, struct dst_entry *dst)
{
	return peer->job->family == AF_INET6 ? rt6_get_cookie((struct rt6_info *)dst) : 0;
}
#else
static struct dst_entry *route6(struct acp_peer *peer)
{
	return ERR_PTR(-EAFNOSUPPORT);
}

static u32 route_cookie(struct acp_peer *peer, struct dst_entry *dst)
{
	return 0;
}
#endif

/* The route is kept while it is valid. */
void acp_udp_find_route(struct acp_peer *peer)
{
	struct dst_entry *dst = peer->dst;

	if (dst && (!dst->obsolete || dst->ops->check(dst, peer->dst_cookie)))
		return;
	dst_release(dst);
	dst = peer->job->family == AF_INET ? route4(peer) : route6(peer);
	if (IS_ERR(dst)) {
		acp_stat_inc(peer->job->node, tx_errors);
		peer->dst = NULL;
		return;
	}
	peer->dst = dst;
	peer->dst_cookie = route_cookie(peer, dst);
	acp_udp_measure(peer);
}

/* ---- what the path takes ---- */

/*
 * A card's MTU may change and its routes stay, so this is asked before a long
 * frame is cut.  What was cut before is fragmented if need be, and so is what
 * a router finds too long (IPv4), or has told of (IPv6, from then on).  But a
 * path may also swallow what is too long, as switches do: see doubt() in peer.c.
 */
void acp_udp_measure(struct acp_peer *peer)
{
	u32 mtu;

	if (!peer->dst)
		return;
	/* What is encrypted is in one piece of memory, of which two pages are mostly to be had. */
	mtu = clamp_t(u32, dst_mtu(peer->dst), MTU_LEAST,
		      acp_job_sealed(peer->job) ? MTU_SEALED : ACP_MTU_MOST);
	if (unlikely(peer->narrow)) {
		if (acp_now() >= peer->narrow_until)
			peer->narrow = 0;
		else
			mtu = min_t(u32, mtu, peer->narrow);
	}
	peer->mtu = mtu - around(peer);
}

u32 acp_udp_narrower(const struct acp_peer *peer, u32 size)
{
	u32 least = peer->job->family == AF_INET ? MTU_LEAST : IPV6_MIN_MTU;
	u32 mtu = min(size, peer->mtu) + around(peer);

	if (mtu <= least)
		return 0;
	if (mtu > ETH_DATA_LEN)
		return ETH_DATA_LEN;
	return mtu > IPV6_MIN_MTU ? IPV6_MIN_MTU : least;
}

void acp_udp_narrow(struct acp_peer *peer, u32 width, u64 now)
{
	peer->narrow = width;
	peer->narrow_until = now + NARROW_NS;
	acp_udp_measure(peer);
	acp_stat_inc(peer->job->node, narrowed);
	net_warn_ratelimited("acp: job %u: long datagrams do not reach node %u; now of %u bytes\n",
			     peer->job->id, peer->node, width);
}

/* In what pieces IP sends a frame that was cut before it was known what the path takes. */
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

/* As udp_set_csum() for what is no train: the card sums up, or who sends without one. */
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

/* As ip4_dst_hoplimit(), which looks for the namespace that we know. */
static u8 hoplimit(const struct acp_peer *peer)
{
	return dst_metric_raw(peer->dst, RTAX_HOPLIMIT) ?:
	       READ_ONCE(peer->job->node->net->ipv4.sysctl_ip_default_ttl);
}

static void push_ip4(struct acp_peer *peer, struct sk_buff *skb, const struct acp_frame *f, u8 ecn)
{
	struct iphdr *iph;
	__be32 saddr, daddr;

	memcpy(&saddr, peer_source(peer), 4);
	memcpy(&daddr, peer->addr, 4);
	if (!all_tagged(f))
		check4(skb, saddr, daddr);
	iph = __skb_push(skb, sizeof(*iph));
	skb_reset_network_header(skb);
	iph->version = 4;
	iph->ihl = sizeof(*iph) / 4;
	iph->tos = ecn;
	iph->frag_off = skb->len < MTU_LEAST ? htons(IP_DF) : 0;
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
/* Not inline: its arrays would cost the stack of an IPv4 frame a guard. */
static noinline void push_ip6(struct acp_peer *peer, struct sk_buff *skb, u8 ecn)
{
	struct in6_addr saddr, daddr;
	struct ipv6hdr *iph;

	memcpy(&saddr, peer_source(peer), 16);
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

/* Encrypt a datagram that is ready but for that. */
static noinline bool close_frame(struct acp_peer *peer, struct sk_buff *skb)
{
	u8 *frame = skb_transport_header(skb) + sizeof(struct udphdr);
	u32 size = skb_tail_pointer(skb) - frame;

	if (!acp_aead_close(&peer->secret, frame,
			    size - sizeof(struct acp_frame_hdr) - ACP_FRAME_SEALED))
		return true;
	acp_stat_inc(peer->job->node, tx_nomem);
	return false;
}

static int send_datagram(struct acp_peer *peer, struct net *net, struct sk_buff *skb)
{
	/* The neighbour's entry need not be checked: the peer answers. */
	if (READ_ONCE(peer->confirmed)) {
		WRITE_ONCE(peer->confirmed, false);
		skb_set_dst_pending_confirm(skb, 1);
	}
	if (peer->job->family != AF_INET)
		return ip6_local_out(net, peer_sk(peer), skb);
	return acp_bypass_xmit(peer->job->node, peer_sk(peer), skb);
}

void acp_udp_send(struct acp_peer *peer, struct acp_outbox *out)
{
	struct acp_node *node = peer->job->node;
	struct sk_buff *skb, *next;
	u32 frames;
	int err;

	for (skb = out->first; skb; skb = next) {
		next = skb->next;
		skb_mark_not_on_list(skb);
		if (acp_job_sealed(peer->job) && !close_frame(peer, skb)) {
			kfree_skb(skb);
			continue;
		}
		frames = 1;
		if (skb_is_gso(skb)) {
			acp_train_close(peer, skb);
			frames = skb_shinfo(skb)->gso_segs;
		}
		acp_stat_add(node, tx_frames, frames);
		err = send_datagram(peer, node->net, skb);
		if (unlikely(net_xmit_eval(err)))
			acp_stat_add(node, tx_errors, frames);
	}
}

/* ---- frames out, under the peer's lock ---- */

/*
 * The skbs of frames that were taken in carry what this processor sends next:
 * two allocations, which Debian's kernels also clear, are a good part of the
 * cost of a short message.  Only plain ones, whose head is ours alone and not
 * much bigger than needed; the fragments of a train are given back.
 */
struct spares {
	u32 count;
	struct sk_buff *skbs[SPARES];
};

static DEFINE_PER_CPU(struct spares, spares);

static bool reusable(struct sk_buff *skb)
{
	return skb_end_offset(skb) <= SPARE_MOST &&
	       !skb_cloned(skb) && !skb_shared(skb) && !skb_zcopy(skb) &&
	       skb->fclone == SKB_FCLONE_UNAVAILABLE && !skb->pp_recycle && !skb->pfmemalloc &&
	       !skb_has_frag_list(skb) && !skb_shinfo(skb)->tx_flags;
}

/* As it came from the allocator. */
static void renew(struct sk_buff *skb)
{
	bool head_frag = skb->head_frag;

	/* By words: a part of the instructions of memset() for so few bytes. */
	BUILD_BUG_ON(offsetof(struct sk_buff, tail) % 4);
	memset64((u64 *)skb, 0, offsetof(struct sk_buff, tail) / 8);
	if (offsetof(struct sk_buff, tail) % 8)
		*((u32 *)&skb->tail - 1) = 0;
	skb->head_frag = head_frag;
	skb->alloc_cpu = raw_smp_processor_id();
	skb->truesize = SKB_TRUESIZE(skb_end_offset(skb));
	skb->data = skb->head;
	skb_reset_tail_pointer(skb);
	skb->mac_header = (typeof(skb->mac_header))~0U;
	skb->transport_header = (typeof(skb->transport_header))~0U;
	BUILD_BUG_ON(offsetof(struct skb_shared_info, dataref) % 8);
	memset64((u64 *)skb_shinfo(skb), 0, offsetof(struct skb_shared_info, dataref) / 8);
}

static struct sk_buff *spare_skb(u32 size)
{
	struct spares *s = this_cpu_ptr(&spares);
	struct sk_buff *skb;

	if (!s->count || skb_end_offset(s->skbs[s->count - 1]) < size)
		return NULL;
	skb = s->skbs[--s->count];
	renew(skb);
	return skb;
}

static void drop_fragments(struct sk_buff *skb)
{
	int i;

	for (i = 0; i < skb_shinfo(skb)->nr_frags; i++)
		skb_frag_unref(skb, i);
	skb_shinfo(skb)->nr_frags = 0;
	skb->len -= skb->data_len;
	skb->data_len = 0;
}

void acp_udp_free(struct sk_buff *skb)
{
	struct spares *s = this_cpu_ptr(&spares);

	if (!skb || !reusable(skb)) {
		consume_skb(skb);
		return;
	}
	/* If all are there, it takes the place of a smaller one. */
	if (s->count == SPARES) {
		if (skb_end_offset(s->skbs[SPARES - 1]) >= skb_end_offset(skb)) {
			consume_skb(skb);
			return;
		}
		consume_skb(s->skbs[--s->count]);
	}
	if (skb_is_nonlinear(skb))
		drop_fragments(skb);
	/* It outlives what it came from: nothing of that stays with it. */
	skb_dst_drop(skb);
	skb_orphan(skb);
	nf_reset_ct(skb);
	skb_ext_reset(skb);
	s->skbs[s->count++] = skb;
}

void acp_udp_exit(void)
{
	int cpu;

	acp_train_exit();
	for_each_possible_cpu(cpu) {
		struct spares *s = per_cpu_ptr(&spares, cpu);

		while (s->count)
			consume_skb(s->skbs[--s->count]);
	}
}

struct sk_buff *acp_udp_frame_new(struct acp_peer *peer, u32 linear)
{
	u32 room, head = sizeof(struct acp_frame_hdr);
	struct sk_buff *skb;

	if (!peer->dst)
		return NULL;
	if (acp_job_sealed(peer->job)) {
		head += sizeof(struct acp_frame_seal);
		linear += ACP_FRAME_SEALED;
	}
	room = LL_RESERVED_SPACE(peer->dst->dev) + overhead(peer);
	skb = spare_skb(room + linear) ?: alloc_skb(room + linear, GFP_ATOMIC | __GFP_NOWARN);
	if (!skb) {
		acp_stat_inc(peer->job->node, tx_nomem);
		return NULL;
	}
	skb_reserve(skb, room);
	__skb_put(skb, head);
	return skb;
}

/* What a frame needs to be encrypted, but that: a nonce, and room for the code. */
static noinline void seal(struct acp_peer *peer, struct sk_buff *skb, struct acp_frame *f)
{
	f->flags |= ACP_FRAME_AEAD;
	f->length -= sizeof(struct acp_frame_seal);
	acp_aead_nonce(&peer->secret, (void *)skb->data + sizeof(struct acp_frame_hdr));
	skb_put(skb, ACP_FRAME_CODE);
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
				     const struct acp_frame *f)
{
	trace_acp_xmit(peer, f);
	h->tag = cpu_to_be64(acp_udp_tag_of(peer->job, h, f));
	peer->traffic.tx_frames++;
	peer->traffic.tx_bytes += acp_frame_size(f);
}

void acp_udp_head(struct acp_peer *peer, struct acp_frame_hdr *h, struct acp_frame *f)
{
	fill_head(peer, h, f);
}

void acp_udp_tag(struct acp_peer *peer, struct acp_frame_hdr *h, const struct acp_frame *f)
{
	fill_tag(peer, h, f);
}

void acp_udp_header(struct acp_peer *peer, struct acp_frame_hdr *h, struct acp_frame *f)
{
	fill_head(peer, h, f);
	fill_tag(peer, h, f);
}

/* Header, tag, UDP and IP header around a frame whose body is in the skb. */
void acp_udp_frame_finish(struct acp_peer *peer, struct sk_buff *skb, struct acp_frame *f)
{
	struct acp_frame_hdr *h = (struct acp_frame_hdr *)skb->data;
	struct acp_job *job = peer->job;
	u8 ecn;

	f->length = skb->len - sizeof(*h);
	if (acp_job_sealed(job))
		seal(peer, skb, f);
	fill_head(peer, h, f);
	fill_tag(peer, h, f);
	/* It goes out before bottom halves are on again; a queue takes a reference. */
	skb_dst_set_noref(skb, peer->dst);
	skb->ignore_df = 1;
	push_udp(skb, job->port);
	/* What the window holds back may be marked instead of dropped; other DATA is little. */
	ecn = h->type == ACP_FRAME_DATA ? INET_ECN_ECT_0 : INET_ECN_NOT_ECT;
	if (job->family == AF_INET)
		push_ip4(peer, skb, f, ecn);
	else
		push_ip6(peer, skb, ecn);
}
