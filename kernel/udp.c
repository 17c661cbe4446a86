// SPDX-License-Identifier: GPL-2.0-only
/*
 * The UDP transport: datagrams, routes, sockets; see udp.h.
 *
 * Receiving happens in the socket's encapsulation hook, in softirq, straight
 * into memory; nothing is queued.
 */
#include <linux/crc32.h>
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
#include <net/udp_tunnel.h>
#include "bypass.h"
#include "core/tag.h"
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#include <linux/skbuff_ref.h>
#endif
#include "demux.h"
#include "node.h"
#include "trace.h"
#include "train.h"
#include "udp.h"

#define SPARE_MOST	2048	/* bytes of an skb that is kept */
#define SPARES		16	/* skbs that a processor keeps */
#define MTU_LEAST	576
#define MTU_SEALED	(SKB_WITH_OVERHEAD(SZ_8K) - 128)	/* and room for what is below IP */
#define NARROW_NS	(600 * NSEC_PER_SEC)	/* as long as the kernel believes in a path MTU */

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

static bool route_valid(const struct acp_peer *peer, struct dst_entry *dst)
{
	if (peer->job->family == AF_INET && acp_bypass_valid(peer->job->node->net, dst))
		return true;
	return !dst->obsolete || dst->ops->check(dst, peer->dst_cookie);
}

/* The route is kept while it is valid. */
void acp_udp_route(struct acp_peer *peer)
{
	struct dst_entry *dst = peer->dst;

	if (dst && route_valid(peer, dst))
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
	struct udphdr *uh;

	__skb_push(skb, sizeof(*uh));
	skb_reset_transport_header(skb);
	uh = udp_hdr(skb);
	uh->source = htons(port);
	uh->dest = htons(port);
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

static void push_ip4(struct acp_peer *peer, struct sk_buff *skb, const struct acp_frame *f, u8 ecn)
{
	struct iphdr *iph;
	__be32 saddr, daddr;

	memcpy(&saddr, peer_source(peer), 4);
	memcpy(&daddr, peer->addr, 4);
	if (!all_tagged(f))
		check4(skb, saddr, daddr);
	__skb_push(skb, sizeof(*iph));
	skb_reset_network_header(skb);
	iph = ip_hdr(skb);
	iph->version = 4;
	iph->ihl = sizeof(*iph) / 4;
	iph->tos = ecn;
	iph->frag_off = skb->len < MTU_LEAST ? htons(IP_DF) : 0;
	iph->id = 0;
	iph->ttl = ip4_dst_hoplimit(skb_dst(skb));
	iph->protocol = IPPROTO_UDP;
	iph->saddr = saddr;
	iph->daddr = daddr;
	if (!iph->frag_off)
		__ip_select_ident(peer->job->node->net, iph, 1);
	skb->protocol = htons(ETH_P_IP);
	memset(IPCB(skb), 0, sizeof(*IPCB(skb)));
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
	memset(IP6CB(skb), 0, sizeof(*IP6CB(skb)));
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

/* Hand built datagrams to the network.  Without the lock, BH off. */
void acp_udp_xmit(struct acp_peer *peer, struct sk_buff_head *out)
{
	struct net *net = peer->job->node->net;
	struct sk_buff *skb;
	u32 frames;
	int err;

	while ((skb = __skb_dequeue(out))) {
		if (acp_job_sealed(peer->job) && !close_frame(peer, skb)) {
			kfree_skb(skb);
			continue;
		}
		frames = 1;
		if (skb_is_gso(skb)) {
			acp_train_close(peer, skb);
			frames = skb_shinfo(skb)->gso_segs;
		}
		acp_stat_add(peer->job->node, tx_frames, frames);
		err = send_datagram(peer, net, skb);
		if (unlikely(net_xmit_eval(err)))
			acp_stat_add(peer->job->node, tx_errors, frames);
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

/* BH off. */
static u64 tag_of(const struct acp_job *job, const struct acp_frame_hdr *h,
		  const struct acp_frame *f)
{
	u32 size = acp_frame_tagged(f) - sizeof(h->tag);
	/* For some flows, both ways of each, and kinds of frames at a time. */
	u32 at = (f->node * 5 + f->length / 8 * 3 + f->type) % ACP_TAG_STARTS;

	if (unlikely(size % 8))
		return siphash(&h->version, size, &job->key);
	return acp_tag(this_cpu_ptr(&job->tags->starts[at]), job->key.key, &h->version, size);
}

/* What a frame needs to be encrypted, but that: a nonce, and room for the code. */
static noinline void seal(struct acp_peer *peer, struct sk_buff *skb, struct acp_frame *f)
{
	f->flags |= ACP_FRAME_AEAD;
	f->length -= sizeof(struct acp_frame_seal);
	acp_aead_nonce(&peer->secret, (void *)skb->data + sizeof(struct acp_frame_hdr));
	skb_put(skb, ACP_FRAME_CODE);
}

static __always_inline void fill_head(struct acp_peer *peer, struct acp_frame_hdr *h,
				      struct acp_frame *f)
{
	struct acp_job *job = peer->job;

	f->color = peer->color;
	f->job = job->id;
	f->generation = job->generation;
	f->node = job->me;
	acp_frame_encode(h, f);
}

static __always_inline void fill_tag(struct acp_peer *peer, struct acp_frame_hdr *h,
				     const struct acp_frame *f)
{
	trace_acp_xmit(peer, f);
	h->tag = cpu_to_be64(tag_of(peer->job, h, f));
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

/* ---- datagrams in ---- */

/* Is the datagram from the node it claims to be from?  *peer: that node, or NULL if unknown. */
static bool source_ok(struct acp_job *job, struct acp_socket *socket, const struct sk_buff *skb,
		      const struct acp_frame *f, struct acp_peer **peer)
{
	const u8 *from;
	u8 addr[16];

	if (f->color >= job->colors || f->node >= job->nodes || f->node == job->me ||
	    job->sockets[f->color] != socket || udp_hdr(skb)->source != htons(job->port))
		return false;
	*peer = acp_peer_find(job, f->node, f->color);
	from = *peer ? (*peer)->addr : addr;
	if (!*peer)
		acp_job_address(job, f->node, f->color, addr);
	if (job->family == AF_INET)
		return skb->protocol == htons(ETH_P_IP) &&
		       (__force u32)ip_hdr(skb)->saddr == get_unaligned((const u32 *)from);
	return skb->protocol == htons(ETH_P_IPV6) && !memcmp(&ipv6_hdr(skb)->saddr, from, 16);
}

static u32 skb_crc(struct sk_buff *skb, u32 from, u32 to)
{
	struct skb_seq_state state;
	u32 crc = ~0u, at = 0, n;
	const u8 *p;

	skb_prepare_seq_read(skb, from, to, &state);
	while ((n = skb_seq_read(at, &p, &state))) {
		n = min(n, to - from - at);	/* it may tell of bytes behind */
		crc = __crc32c_le(crc, p, n);
		at += n;
	}
	return ~crc;
}

/* The checksum of a bulk frame's payload, which its message says the length of. */
static bool payload_right(struct sk_buff *skb, u32 at, const struct acp_frame_hdr *h,
			  const struct acp_frame *f, u32 crc)
{
	const struct acp_msg_data *m = (const void *)(h + 1);
	u32 tagged = acp_frame_tagged(f), length = be32_to_cpu(m->h.length);

	return (f->flags & ACP_FRAME_CRC) && length <= acp_frame_size(f) - tagged &&
	       skb_crc(skb, at + tagged, at + tagged + length) == crc;
}

bool acp_udp_bulk_right(struct acp_job *job, struct sk_buff *skb, u32 at,
			const struct acp_frame_hdr *h, const struct acp_frame *f)
{
	u32 crc = 0;

	if ((f->flags & ACP_FRAME_CRC) && !acp_frame_crc(h, &crc)) {
		acp_stat_inc(job->node, drop_bad_flags);
		trace_acp_drop(job->node, skb, f, ACP_STAT_drop_bad_flags);
		return false;
	}
	if (job->integrity != ACP_INTEGRITY_CRC32C || payload_right(skb, at, h, f, crc))
		return true;
	acp_stat_inc(job->node, drop_bad_crc);
	trace_acp_drop(job->node, skb, f, ACP_STAT_drop_bad_crc);
	return false;
}

/* Decrypt a frame that is linear and ours alone. */
static bool opened(struct acp_job *job, const struct acp_peer *peer, struct sk_buff *skb,
		   const struct acp_frame *f)
{
	struct acp_secret unknown;
	int err;

	if (peer) {
		err = acp_aead_open(&peer->secret, skb->data, f->length);
	} else {
		acp_aead_secret(&unknown, job, f->node, f->color);
		err = acp_aead_open(&unknown, skb->data, f->length);
		memzero_explicit(&unknown, sizeof(unknown));
	}
	if (err == -EBADMSG)
		acp_stat_inc(job->node, drop_bad_aead);
	else if (err)
		acp_stat_inc(job->node, drop_nomem);
	if (err)
		trace_acp_drop(job->node, skb, f, err == -EBADMSG ? ACP_STAT_drop_bad_aead :
								    ACP_STAT_drop_nomem);
	return !err;
}

/*
 * Is a frame encrypted, as the job wants it, and right?  Decrypts it.  A HELLO
 * is let through by its tag if only one of both, frame and job, is encrypted:
 * its sender runs another set-up of the job, and that is all to know of it.
 */
static noinline bool sealed_right(struct acp_job *job, const struct acp_peer *peer,
				  struct sk_buff *skb, const struct acp_frame *f)
{
	bool aead = f->flags & ACP_FRAME_AEAD;

	/* Who does not know its sender has no use for it: not worth deciphering. */
	if (!peer && f->type != ACP_FRAME_HELLO) {
		acp_stat_inc(job->node, drop_bad_epoch);
		trace_acp_drop(job->node, skb, f, ACP_STAT_drop_bad_epoch);
		return false;
	}
	if (aead != acp_job_sealed(job)) {
		/* Its body is all that is looked at: where it begins must be linear, too. */
		if (f->type == ACP_FRAME_HELLO && pskb_may_pull(skb, acp_frame_body(f)))
			return true;
		acp_stat_inc(job->node, drop_bad_flags);
		trace_acp_drop(job->node, skb, f, ACP_STAT_drop_bad_flags);
		return false;
	}
	if (skb->len > ACP_MTU_MOST) {
		acp_stat_inc(job->node, drop_bad_len);
		trace_acp_drop(job->node, skb, f, ACP_STAT_drop_bad_len);
		return false;
	}
	if (skb_ensure_writable(skb, skb->len)) {
		acp_stat_inc(job->node, drop_nomem);
		trace_acp_drop(job->node, skb, f, ACP_STAT_drop_nomem);
		return false;
	}
	if (!acp_frame_seal(skb->data)) {
		acp_stat_inc(job->node, drop_bad_flags);
		trace_acp_drop(job->node, skb, f, ACP_STAT_drop_bad_flags);
		return false;
	}
	return opened(job, peer, skb, f);
}

bool acp_udp_tag_right(const struct acp_job *job, const struct acp_frame_hdr *h,
		       const struct acp_frame *f)
{
	return tag_of(job, h, f) == be64_to_cpu(h->tag);
}

/* Tag and checksum; makes the tagged part linear. */
static bool authentic(struct acp_job *job, const struct acp_peer *peer, struct sk_buff *skb,
		      const struct acp_frame *f)
{
	const struct acp_frame_hdr *h;

	if (!pskb_may_pull(skb, acp_frame_tagged(f))) {
		acp_stat_inc(job->node, drop_nomem);
		trace_acp_drop(job->node, skb, f, ACP_STAT_drop_nomem);
		return false;
	}
	h = (const struct acp_frame_hdr *)skb->data;
	if (!acp_udp_tag_right(job, h, f)) {
		acp_stat_inc(job->node, drop_bad_mac);
		trace_acp_drop(job->node, skb, f, ACP_STAT_drop_bad_mac);
		return false;
	}
	if (unlikely((u32)acp_job_sealed(job) | (f->flags & ACP_FRAME_AEAD)))
		return sealed_right(job, peer, skb, f);
	return !(f->flags & ACP_FRAME_BULK) || acp_udp_bulk_right(job, skb, 0, h, f);
}

void acp_udp_bad_header(struct acp_node *node, enum acp_frame_error error,
			const struct sk_buff *skb)
{
	switch (error) {
	case ACP_FRAME_OK:
		break;
	case ACP_FRAME_BAD_LEN:
		acp_stat_inc(node, drop_bad_len);
		trace_acp_drop(node, skb, NULL, ACP_STAT_drop_bad_len);
		break;
	case ACP_FRAME_BAD_VERSION:
		acp_stat_inc(node, drop_bad_version);
		trace_acp_drop(node, skb, NULL, ACP_STAT_drop_bad_version);
		break;
	case ACP_FRAME_BAD_TYPE:
		acp_stat_inc(node, drop_bad_type);
		trace_acp_drop(node, skb, NULL, ACP_STAT_drop_bad_type);
		break;
	case ACP_FRAME_BAD_FLAGS:
		acp_stat_inc(node, drop_bad_flags);
		trace_acp_drop(node, skb, NULL, ACP_STAT_drop_bad_flags);
		break;
	}
}

/* The job a frame belongs to, if it comes from where it should; *peer as above. */
static __always_inline struct acp_job *job_of(struct acp_socket *socket, const struct sk_buff *skb,
					      const struct acp_frame *f, struct acp_peer **peer)
{
	struct acp_node *node = socket->node;
	struct acp_job *job = acp_job_find(node, f->job, f->generation);

	if (!job) {
		acp_stat_inc(node, drop_no_job);
		trace_acp_drop(node, skb, f, ACP_STAT_drop_no_job);
		return NULL;
	}
	if (!source_ok(job, socket, skb, f, peer)) {
		acp_stat_inc(node, drop_bad_source);
		trace_acp_drop(node, skb, f, ACP_STAT_drop_bad_source);
		return NULL;
	}
	return job;
}

struct acp_job *acp_udp_job(struct acp_socket *socket, const struct sk_buff *skb,
			    const struct acp_frame *f, struct acp_peer **peer)
{
	return job_of(socket, skb, f, peer);
}

/* Whose frame is not dropped though its sender is unknown: who says hello. */
static struct acp_peer *new_peer(struct acp_job *job, const struct acp_frame *f)
{
	struct acp_peer *peer;

	if (f->type != ACP_FRAME_HELLO) {
		acp_stat_inc(job->node, drop_bad_epoch);
		trace_acp_drop(job->node, NULL, f, ACP_STAT_drop_bad_epoch);
		return NULL;
	}
	peer = acp_peer_get(job, f->node, f->color);
	if (!peer && READ_ONCE(job->dead)) {
		acp_stat_inc(job->node, drop_no_job);
		trace_acp_drop(job->node, NULL, f, ACP_STAT_drop_no_job);
	} else if (!peer) {
		acp_stat_inc(job->node, drop_nomem);
		trace_acp_drop(job->node, NULL, f, ACP_STAT_drop_nomem);
	}
	return peer;
}

/* A frame, from its header on; known: early demultiplexing has found the socket.  Takes it. */
static void take(struct acp_socket *socket, struct sk_buff *skb, bool known)
{
	enum acp_frame_error error = ACP_FRAME_BAD_LEN;
	struct acp_peer *peer;
	struct acp_job *job;
	struct acp_frame f acp_uncleared;

	if (pskb_may_pull(skb, sizeof(struct acp_frame_hdr)))
		error = acp_frame_decode(&f, (struct acp_frame_hdr *)skb->data, skb->len);
	if (!error && acp_frame_tagged(&f) > ACP_MTU_MOST)
		error = ACP_FRAME_BAD_LEN;	/* nobody sends it: no memory for strangers */
	if (error) {
		acp_udp_bad_header(socket->node, error, skb);
		goto drop;
	}
	job = job_of(socket, skb, &f, &peer);
	if (!job || !authentic(job, peer, skb, &f))
		goto drop;
	if (!peer)
		peer = new_peer(job, &f);
	if (!peer)
		goto drop;
	trace_acp_receive(peer, &f);
	if (!known)
		acp_demux_learn(socket->node, socket->sock->sk, skb);
	__skb_pull(skb, acp_frame_body(&f));
	*acp_frame_cb(skb) = (struct acp_frame_cb){
		.body = skb->data,
		.at = acp_bytes_first(skb),
		.seq = f.seq,
		.length = f.length,
		.tagged = acp_frame_covered(&f),
		.fence = f.flags & ACP_FRAME_FENCE,
		.lazy = f.flags & ACP_FRAME_LAZY,
	};
	acp_peer_frame(peer, skb, &f);
	return;
drop:
	kfree_skb(skb);
}

void acp_udp_take(struct acp_socket *socket, struct sk_buff *skb)
{
	take(socket, skb, false);
}

/* A datagram came, or several, from the UDP header on.  Softirq, RCU read side.  Takes it. */
static void receive(struct sock *sk, struct sk_buff *skb, bool known)
{
	struct acp_socket *socket = rcu_dereference_sk_user_data(sk);

	if (!socket) {
		kfree_skb(skb);
		return;
	}
	if (known)
		acp_stat_inc(socket->node, rx_direct);
	__skb_pull(skb, sizeof(struct udphdr));
	if (skb_is_gso(skb))
		acp_train_received(socket->node, socket, skb);
	else
		take(socket, skb, known);
}

static void receive_known(struct sock *sk, struct sk_buff *skb)
{
	receive(sk, skb, true);
}

/* Always takes it: returns 0. */
static int received(struct sock *sk, struct sk_buff *skb)
{
	receive(sk, skb, false);
	return 0;
}

/* ---- sockets ---- */

static int bind_socket(struct socket *sock, const struct acp_socket *s)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(s->port) };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(s->port) };

	if (s->family == AF_INET) {
		memcpy(&in.sin_addr, s->addr, 4);
		return kernel_bind(sock, (struct sockaddr *)&in, sizeof(in));
	}
	ip6_sock_set_v6only(sock->sk);
	memcpy(&in6.sin6_addr, s->addr, 16);
	return kernel_bind(sock, (struct sockaddr *)&in6, sizeof(in6));
}

static void take_datagrams(struct acp_socket *s)
{
	struct sock *sk = s->sock->sk;

	rcu_assign_sk_user_data(sk, s);
	udp_sk(sk)->encap_type = 1;
	udp_sk(sk)->encap_rcv = received;
	udp_allow_gso(sk);
	udp_tunnel_encap_enable(sk);
}

static struct acp_socket *socket_new(struct acp_node *node, const struct acp_socket *like)
{
	struct acp_socket *s = kmemdup(like, sizeof(*like), GFP_KERNEL_ACCOUNT);
	int err;

	if (!s)
		return ERR_PTR(-ENOMEM);
	err = sock_create_kern(node->net, s->family, SOCK_DGRAM, IPPROTO_UDP, &s->sock);
	if (err == -ENFILE)
		err = -ENOMEM;	/* what sockets say for it */
	if (err)
		goto free;
	s->sock->sk->sk_allocation = GFP_ATOMIC;
	err = bind_socket(s->sock, s);
	if (err)
		goto close;
	err = acp_demux_start(node, receive_known);
	if (err)
		goto close;
	s->node = node;
	take_datagrams(s);
	list_add(&s->link, &node->sockets);
	return s;

close:
	sock_release(s->sock);
free:
	kfree(s);
	return ERR_PTR(err);
}

static struct acp_socket *socket_get(struct acp_job *job, u32 color)
{
	struct acp_socket like = { .family = job->family, .port = job->port }, *s;

	acp_job_address(job, job->me, color, like.addr);
	list_for_each_entry(s, &job->node->sockets, link)
		if (s->family == like.family && s->port == like.port &&
		    !memcmp(s->addr, like.addr, job->family == AF_INET ? 4 : 16))
			goto found;
	s = socket_new(job->node, &like);
	if (IS_ERR(s))
		return s;
found:
	s->users++;
	return s;
}

int acp_socket_open(struct acp_job *job)
{
	struct acp_socket *s;
	u32 i;

	for (i = 0; i < job->colors; i++) {
		s = socket_get(job, i);
		if (IS_ERR(s))
			return PTR_ERR(s);
		job->sockets[i] = s;
	}
	return 0;
}

/* The peers of the job are gone; the network may still be in received(). */
void acp_socket_close(struct acp_job *job)
{
	u32 i;

	for (i = 0; i < job->colors; i++) {
		struct acp_socket *s = job->sockets[i];

		job->sockets[i] = NULL;
		if (!s || --s->users)
			continue;
		list_del(&s->link);
		rcu_assign_sk_user_data(s->sock->sk, NULL);
		/* A datagram that somebody has queued may come after this module is gone. */
		WRITE_ONCE(udp_sk(s->sock->sk)->encap_rcv, NULL);
		synchronize_rcu();	/* nobody learns of it any more */
		acp_demux_forget(job->node, s->sock->sk);
		kernel_sock_shutdown(s->sock, SHUT_RDWR);
		sock_release(s->sock);
		kfree_rcu(s, rcu);
	}
}
