// SPDX-License-Identifier: GPL-2.0-only
/*
 * The UDP transport: frames <-> datagrams, around core/flow.
 *
 * Receiving happens in the socket's encapsulation hook, in softirq, straight
 * into memory; nothing is queued.  What a pass over the network's events
 * leaves to do (acknowledge, send what the window now allows, time-outs) is
 * done by the peer's tasklet at its end, once for all frames of the pass.
 *
 * Locking: peer->lock (bh) guards the flow and the queues of a peer.  It is
 * dropped around every call to the station and before a datagram is handed
 * to the network, and nests inside nothing but a context's lock.
 */
#include <linux/crc32c.h>
#include <linux/ipv6.h>
#include <linux/slab.h>
#include <linux/udp.h>
#include <net/inet_common.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/ipv6_stubs.h>
#include <net/route.h>
#include <net/udp.h>
#include <net/udp_tunnel.h>
#include "node.h"
#include "region.h"

#define SEND_BUDGET	64	/* frames built in one go */
#define SPARE_MOST	2048	/* bytes of the skb that a peer keeps */
#define HELD_MAX	64	/* fenced frames of a peer that wait */
#define RETRY_NS	(2 * NSEC_PER_MSEC)
#define IDLE_NS		(10ULL * NSEC_PER_SEC)	/* until an idle peer gives its slots back */
#define MTU_LEAST	576
#define MTU_MOST	16384

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

/* The route, kept while it is valid; NULL if there is none.  Under the lock. */
static struct dst_entry *peer_route(struct acp_peer *peer)
{
	bool v4 = peer->job->family == AF_INET;
	struct dst_entry *dst = peer->dst;

	if (dst && (!dst->obsolete || dst->ops->check(dst, peer->dst_cookie)))
		return dst;
	dst_release(dst);
	dst = v4 ? route4(peer) : route6(peer);
	if (IS_ERR(dst))
		dst = NULL;
	peer->dst = dst;
	if (dst) {
		peer->dst_cookie = route_cookie(peer, dst);
		peer->mtu = clamp_t(u32, dst_mtu(dst), MTU_LEAST, MTU_MOST);
		peer->mtu -= sizeof(struct udphdr) +
			     (v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr));
	}
	return dst;
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

static void push_ip4(struct acp_peer *peer, struct sk_buff *skb)
{
	struct iphdr *iph;
	__be32 saddr, daddr;

	memcpy(&saddr, peer_source(peer), 4);
	memcpy(&daddr, peer->addr, 4);
	udp_set_csum(false, skb, saddr, daddr, skb->len);
	__skb_push(skb, sizeof(*iph));
	skb_reset_network_header(skb);
	iph = ip_hdr(skb);
	iph->version = 4;
	iph->ihl = sizeof(*iph) / 4;
	iph->tos = 0;
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
}

#if IS_ENABLED(CONFIG_IPV6)
static void push_ip6(struct acp_peer *peer, struct sk_buff *skb)
{
	struct in6_addr saddr, daddr;
	struct ipv6hdr *iph;

	memcpy(&saddr, peer_source(peer), 16);
	memcpy(&daddr, peer->addr, 16);
	udp6_set_csum(false, skb, &saddr, &daddr, skb->len);
	__skb_push(skb, sizeof(*iph));
	skb_reset_network_header(skb);
	iph = ipv6_hdr(skb);
	ip6_flow_hdr(iph, 0, 0);
	iph->payload_len = htons(skb->len - sizeof(*iph));
	iph->nexthdr = IPPROTO_UDP;
	iph->hop_limit = ip6_dst_hoplimit(skb_dst(skb));
	iph->saddr = saddr;
	iph->daddr = daddr;
	skb->protocol = htons(ETH_P_IPV6);
	memset(IP6CB(skb), 0, sizeof(*IP6CB(skb)));
}
#else
static void push_ip6(struct acp_peer *peer, struct sk_buff *skb)
{
}
#endif

/* Hand built datagrams to the network.  Without the lock, BH off. */
static void xmit_all(struct acp_peer *peer, struct sk_buff_head *out)
{
	struct net *net = peer->job->node->net;
	struct sk_buff *skb;
	int err;

	while ((skb = __skb_dequeue(out))) {
		acp_stat_inc(peer->job->node, tx_frames);
		if (peer->job->family == AF_INET)
			err = ip_local_out(net, peer_sk(peer), skb);
		else
			err = ip6_local_out(net, peer_sk(peer), skb);
		if (unlikely(net_xmit_eval(err)))
			acp_stat_inc(peer->job->node, tx_errors);
	}
}

/* ---- building frames, under the lock ---- */

/*
 * The skb of a frame that was taken in carries what is sent next: two
 * allocations, which Debian's kernels also clear, are a good part of the
 * cost of a short message.  Only plain ones, whose head is ours alone and
 * not much bigger than needed.
 */
static bool reusable(const struct sk_buff *skb)
{
	return skb_end_offset(skb) <= SPARE_MOST &&
	       !skb_cloned(skb) && !skb_shared(skb) && !skb_is_nonlinear(skb) &&
	       skb->fclone == SKB_FCLONE_UNAVAILABLE && !skb->pp_recycle && !skb->pfmemalloc &&
	       !skb_has_frag_list(skb) && !skb_shinfo(skb)->tx_flags;
}

/* As it came from the allocator. */
static void renew(struct sk_buff *skb)
{
	bool head_frag = skb->head_frag;

	skb_dst_drop(skb);
	skb_orphan(skb);
	nf_reset_ct(skb);
	skb_ext_put(skb);
	/* By words: a quarter of the instructions of memset() for so few bytes. */
	BUILD_BUG_ON(offsetof(struct sk_buff, tail) % 4);
	memset32((u32 *)skb, 0, offsetof(struct sk_buff, tail) / 4);
	skb->head_frag = head_frag;
	skb->alloc_cpu = raw_smp_processor_id();
	skb->data = skb->head;
	skb_reset_tail_pointer(skb);
	skb->mac_header = (typeof(skb->mac_header))~0U;
	skb->transport_header = (typeof(skb->transport_header))~0U;
	memset32((u32 *)skb_shinfo(skb), 0, offsetof(struct skb_shared_info, dataref) / 4);
}

static struct sk_buff *spare_skb(struct acp_peer *peer, u32 size)
{
	struct sk_buff *skb = peer->spare;

	if (!skb || skb_end_offset(skb) < size)
		return NULL;
	peer->spare = NULL;
	renew(skb);
	return skb;
}

/* Returns the one that is not kept. */
static struct sk_buff *keep_spare(struct acp_peer *peer, struct sk_buff *skb)
{
	if (skb && reusable(skb))
		swap(peer->spare, skb);
	return skb;
}

static struct sk_buff *frame_skb(struct acp_peer *peer, u32 linear)
{
	struct dst_entry *dst = peer_route(peer);
	u32 room;
	struct sk_buff *skb;

	if (!dst) {
		acp_stat_inc(peer->job->node, tx_errors);
		return NULL;
	}
	room = LL_RESERVED_SPACE(dst->dev) + sizeof(struct udphdr) +
	       (peer->job->family == AF_INET ? sizeof(struct iphdr) : sizeof(struct ipv6hdr));
	skb = spare_skb(peer, room + linear) ?: alloc_skb(room + linear, GFP_ATOMIC | __GFP_NOWARN);
	if (!skb) {
		acp_stat_inc(peer->job->node, tx_nomem);
		return NULL;
	}
	skb_reserve(skb, room);
	skb_put(skb, sizeof(struct acp_frame_hdr));
	return skb;
}

/* Header, tag, UDP and IP header around a frame whose body is in the skb. */
static void finish(struct acp_peer *peer, struct sk_buff *skb, struct acp_frame *f)
{
	struct acp_job *job = peer->job;
	struct acp_frame_hdr *h = (struct acp_frame_hdr *)skb->data;

	f->color = peer->color;
	f->job = job->id;
	f->generation = job->generation;
	f->node = job->me;
	f->length = skb->len - sizeof(*h);
	f->tag = 0;
	acp_frame_encode(h, f);
	h->tag = cpu_to_be64(siphash(h, acp_frame_tagged(f), &job->key));
	dst_hold(peer->dst);
	skb_dst_set(skb, peer->dst);
	skb->ignore_df = 1;
	push_udp(skb, job->port);
	if (job->family == AF_INET)
		push_ip4(peer, skb);
	else
		push_ip6(peer, skb);
}

static void build_hello(struct acp_peer *peer, struct acp_frame *f, struct sk_buff_head *out)
{
	struct sk_buff *skb = frame_skb(peer, sizeof(struct acp_frame_hdr) +
					sizeof(struct acp_frame_hello));
	struct acp_frame_hello *h;

	if (!skb)
		return;
	h = skb_put(skb, sizeof(*h));
	h->nprocs = cpu_to_be32(peer->job->ga.nprocs);
	h->nodes = cpu_to_be32(peer->job->nodes);
	h->digest = cpu_to_be64(peer->job->digest);
	finish(peer, skb, f);
	__skb_queue_tail(out, skb);
}

static bool build_ack(struct acp_peer *peer, struct sk_buff_head *out)
{
	u32 map = acp_flow_map_needed(&peer->flow) ? sizeof(struct acp_frame_ack) : 0;
	struct sk_buff *skb = frame_skb(peer, sizeof(struct acp_frame_hdr) + map);
	struct acp_frame f = { .type = ACP_FRAME_ACK };

	if (!skb)
		return false;
	if (map)
		acp_flow_fill_map(&peer->flow, skb_put(skb, map));
	acp_flow_fill(&peer->flow, &f);
	finish(peer, skb, &f);
	acp_stat_inc(peer->job->node, tx_acks);
	__skb_queue_tail(out, skb);
	return true;
}

static void attach(struct sk_buff *skb, struct page *page, u32 offset, u32 size)
{
	get_page(page);
	skb_fill_page_desc(skb, skb_shinfo(skb)->nr_frags, page, offset, size);
	skb->len += size;
	skb->data_len += size;
	skb->truesize += size;
}

/* The payload stays in the pages it is in: they become fragments. */
static void attach_pages(struct sk_buff *skb, struct acp_region *r, u64 offset, u32 length)
{
	while (length) {
		u32 n = min_t(u32, length, PAGE_SIZE - offset_in_page(offset));

		attach(skb, acp_region_page(r, offset), offset_in_page(offset), n);
		offset += n;
		length -= n;
	}
}

static u32 frags_crc(const struct sk_buff *skb)
{
	u32 crc = ~0u;
	int i;

	for (i = 0; i < skb_shinfo(skb)->nr_frags; i++) {
		const skb_frag_t *frag = &skb_shinfo(skb)->frags[i];
		u8 *p = kmap_local_page(skb_frag_page(frag));

		crc = __crc32c_le(crc, p + skb_frag_off(frag), skb_frag_size(frag));
		kunmap_local(p);
	}
	return ~crc;
}

/* Append a short message with its payload. */
static void put_short(struct sk_buff *skb, const struct acp_msg *m, struct acp_region *r,
		      const void *inline_data, u64 offset)
{
	u32 head = acp_msg_head(m->type), size = acp_msg_size(m);
	u8 *p = skb_put(skb, size);

	acp_msg_encode(p, m);
	if (inline_data)
		memcpy(p + head, inline_data, m->length);
	else if (m->length)
		acp_region_read(r, offset, p + head, m->length);
	memset(p + head + m->length, 0, size - head - m->length);
}

static void put_bulk(struct acp_peer *peer, struct sk_buff *skb, struct acp_frame *f,
		     const struct acp_msg *m, struct acp_region *r, u64 offset)
{
	acp_msg_encode(skb_put(skb, acp_msg_head(m->type)), m);
	attach_pages(skb, r, offset, m->length);
	f->flags |= ACP_FRAME_BULK;
	if (peer->job->integrity == ACP_INTEGRITY_CRC32C) {
		f->flags |= ACP_FRAME_CRC;
		f->crc = frags_crc(skb);
	}
	if (m->length & 7)
		attach(skb, ZERO_PAGE(0), 0, -m->length & 7);
}

/* Append the piece of an item, or word that its source is gone. */
static void put_piece(struct acp_peer *peer, struct sk_buff *skb, struct acp_frame *f,
		      struct acp_item *item, u64 offset, u32 length)
{
	const struct acp_ga_layout *l = &peer->job->ga;
	struct acp_out *out = &item->out;
	struct acp_region *r = NULL;
	struct acp_msg m;
	bool fence;
	u8 status;

	acp_out_again(out, offset, length, &m, &fence);
	if (m.length && !out->inline_data) {
		r = acp_region_get(peer->job, m.src, m.length, m.origin, ACP_ACCESS_READ, &status);
		if (!r) {
			acp_out_fail(out, status);
			acp_out_again(out, offset, length, &m, &fence);
		}
	}
	if (fence)
		f->flags |= ACP_FRAME_FENCE;
	if (m.length > ACP_FRAME_SHORT)
		put_bulk(peer, skb, f, &m, r, acp_ga_offset(l, m.src));
	else
		put_short(skb, &m, r, out->inline_data ? &out->m.a : NULL,
			  acp_ga_offset(l, m.src));
	if (r)
		acp_region_put(r);
}

static u32 payload_most(struct acp_peer *peer)
{
	return (peer->mtu - sizeof(struct acp_frame_hdr) - sizeof(struct acp_msg_data)) & ~7u;
}

/* Does the item share frames, and how much does it take? */
static u32 short_size(const struct acp_item *item)
{
	const struct acp_out *out = &item->out;

	if (out->m.type != ACP_MSG_DATA)
		return acp_msg_head(out->m.type);
	if (out->m.size > ACP_FRAME_SHORT)
		return 0;
	return acp_msg_head(ACP_MSG_DATA) + ((out->m.size + 7) & ~7u);
}

/* Cut the next frame off a list of items: one piece, or many short messages. */
static void cut(struct acp_peer *peer, struct list_head *from, struct acp_sent *s)
{
	struct acp_item *item = list_first_entry(from, struct acp_item, link);
	u32 room = peer->mtu - sizeof(struct acp_frame_hdr), size = short_size(item), n = 0;
	struct acp_msg m;
	bool fence;

	INIT_LIST_HEAD(&s->items);
	s->piece = NULL;
	if (!size) {
		s->piece = item;
		s->offset = item->out.cut;
		if (!s->offset && !acp_station_due(item))
			acp_out_fail(&item->out, ACP_ST_ORDER);
		acp_out_next(&item->out, payload_most(peer), &m, &fence);
		s->length = m.length;
		item->frames++;
		if (item->out.finished)
			list_del_init(&item->link);
		return;
	}
	do {
		if (!acp_station_due(item))
			acp_out_fail(&item->out, ACP_ST_ORDER);
		acp_out_next(&item->out, ACP_FRAME_SHORT, &m, &fence);
		item->frames++;
		list_move_tail(&item->link, &s->items);
		room -= size;
		if (list_empty(from) || ++n == ACP_FRAME_MSGS)
			break;
		item = list_first_entry(from, struct acp_item, link);
		size = short_size(item);
	} while (size && size <= room && !item->out.fence);
}

/* Does somebody wait for the acknowledgement: is a put of ours in the frame? */
static bool awaited(const struct acp_sent *s)
{
	const struct acp_item *item;

	if (s->piece)
		return s->piece->context;
	list_for_each_entry(item, &s->items, link)
		if (item->arrival || (item->context && item->out.m.type == ACP_MSG_DATA))
			return true;
	return false;
}

/* The frame of a slot, first or again. */
static struct sk_buff *build(struct acp_peer *peer, struct acp_sent *s, u64 seq)
{
	struct acp_frame f = { .type = ACP_FRAME_DATA, .seq = seq };
	struct acp_item *item;
	struct sk_buff *skb;
	u32 linear = sizeof(struct acp_frame_hdr);

	if (!awaited(s))
		f.flags |= ACP_FRAME_LAZY;
	if (s->piece)
		linear += acp_msg_head(ACP_MSG_DATA) +
			  (s->length <= ACP_FRAME_SHORT ? ACP_FRAME_SHORT : 0);
	list_for_each_entry(item, &s->items, link)
		linear += short_size(item);
	skb = frame_skb(peer, linear);
	if (!skb)
		return NULL;
	if (s->piece)
		put_piece(peer, skb, &f, s->piece, s->offset, s->length);
	list_for_each_entry(item, &s->items, link)
		put_piece(peer, skb, &f, item, 0, item->out.m.type == ACP_MSG_DATA ?
			  item->out.m.size : 0);
	acp_flow_fill(&peer->flow, &f);
	finish(peer, skb, &f);
	return skb;
}

static bool need_slots(struct acp_peer *peer)
{
	if (peer->slots)
		return true;
	peer->slots = kcalloc(ACP_FRAME_WINDOW, sizeof(*peer->slots), GFP_ATOMIC | __GFP_NOWARN);
	peer->sent = kcalloc(ACP_FRAME_WINDOW, sizeof(*peer->sent), GFP_ATOMIC | __GFP_NOWARN);
	if (peer->slots && peer->sent) {
		peer->flow.slots = peer->slots;
		return true;
	}
	kfree(peer->slots);
	kfree(peer->sent);
	peer->slots = NULL;
	peer->sent = NULL;
	acp_stat_inc(peer->job->node, tx_nomem);
	return false;
}

/* A new frame.  False: no memory or route; what was cut, the time-out repeats. */
static bool send_new(struct acp_peer *peer, struct list_head *from, struct sk_buff_head *out,
		     u64 now)
{
	struct acp_flow *flow = &peer->flow;
	struct sk_buff *skb;
	struct acp_sent *s;
	u64 seq;

	if (!need_slots(peer) || !peer_route(peer))
		return false;
	s = &peer->sent[flow->next % ACP_FRAME_WINDOW];
	cut(peer, from, s);
	if (from == &peer->answers)
		seq = acp_flow_send_answer(flow, s, now);
	else
		seq = acp_flow_send(flow, s, now);
	peer->used = now;
	skb = build(peer, s, seq);
	if (!skb)
		return false;
	__skb_queue_tail(out, skb);
	return true;
}

/* What the window allows: lost frames first, then new ones.  False: no memory. */
static bool transmit(struct acp_peer *peer, struct sk_buff_head *out, u64 now)
{
	struct acp_flow *flow = &peer->flow;
	int budget = SEND_BUDGET;
	struct sk_buff *skb;
	u64 seq;

	while (budget && (seq = acp_flow_lost(flow))) {
		skb = build(peer, acp_flow_token(flow, seq), seq);
		if (!skb)
			return false;
		acp_flow_resend(flow, seq, now);
		acp_stat_inc(peer->job->node, tx_again);
		__skb_queue_tail(out, skb);
		budget--;
	}
	while (budget && !list_empty(&peer->answers) && acp_flow_room_answer(flow)) {
		if (!send_new(peer, &peer->answers, out, now))
			return false;
		budget--;
	}
	while (budget && !list_empty(&peer->pending) && acp_flow_room(flow)) {
		if (!send_new(peer, &peer->pending, out, now))
			return false;
		budget--;
	}
	if (!budget)
		tasklet_schedule(&peer->work);
	return true;
}

/* ---- the end of a flow's life, under the lock ---- */

/* An item is in one place only: pending, or in the slots; collect each once. */
static void drop_frame(struct acp_peer *peer, struct acp_sent *s)
{
	list_splice_tail_init(&s->items, &peer->dropped);
	if (s->piece && !--s->piece->frames && s->piece->out.finished)
		list_add_tail(&s->piece->link, &peer->dropped);
	s->piece = NULL;
}

static void drop_all(struct acp_peer *peer, u8 status)
{
	struct acp_flow *flow = &peer->flow;
	u64 seq;

	for (seq = flow->una; seq < flow->next; seq++)
		if (flow->slots[seq % ACP_FRAME_WINDOW].state != ACP_SLOT_ACKED)
			drop_frame(peer, acp_flow_token(flow, seq));
	list_splice_tail_init(&peer->pending, &peer->dropped);
	list_splice_tail_init(&peer->answers, &peer->dropped);
	__skb_queue_purge(&peer->held);
	if (peer->fails)
		memset(peer->fails, 0, sizeof(*peer->fails));
	peer->blind = 0;
	peer->dropped_status = status;
	peer->lost = true;
	peer->wanted = false;
	tasklet_schedule(&peer->work);
}

static u32 new_epoch(u32 other)
{
	u32 epoch;

	do {
		epoch = get_random_u32();
	} while (!epoch || epoch == other);
	return epoch;
}

static void flow_failed(struct acp_peer *peer, u8 status)
{
	u32 epoch = new_epoch(peer->flow.epoch);

	drop_all(peer, status);
	acp_flow_init(&peer->flow, epoch, new_epoch(epoch), peer->job->limit,
		      acp_job_open_limit(peer->job));
	acp_stat_inc(peer->job->node, flows_failed);
}

static void flow_restarted(struct acp_peer *peer, u32 epoch_peer, u64 now)
{
	drop_all(peer, ACP_ST_PEER);
	acp_flow_restart(&peer->flow, epoch_peer, new_epoch(peer->flow.epoch_next), now);
	acp_stat_inc(peer->job->node, flows_restarted);
}

/* ---- the pass over a peer ---- */

static void arm(struct acp_peer *peer, u64 now)
{
	u64 when = acp_flow_deadline(&peer->flow);

	if (peer->retry)
		when = min_t(u64, when, now + RETRY_NS);
	if (when >= peer->armed || peer->dead)
		return;
	peer->armed = when;
	hrtimer_start(&peer->timer, ns_to_ktime(when), HRTIMER_MODE_ABS_SOFT);
}

static enum hrtimer_restart timer_fired(struct hrtimer *timer)
{
	struct acp_peer *peer = container_of(timer, struct acp_peer, timer);

	tasklet_schedule(&peer->work);
	return HRTIMER_NORESTART;
}

static void give_back_slots(struct acp_peer *peer)
{
	kfree(peer->slots);
	kfree(peer->sent);
	kfree_skb(peer->spare);
	peer->slots = NULL;
	peer->sent = NULL;
	peer->spare = NULL;
	peer->flow.slots = NULL;
	if (!peer->fails || peer->fails->count || peer->fails->blind >= peer->flow.rcv)
		return;
	kfree(peer->fails);
	peer->fails = NULL;
}

static void tick(struct acp_peer *peer, struct sk_buff_head *out, u64 now)
{
	struct acp_frame f = {};

	switch (acp_flow_tick(&peer->flow, now)) {
	case ACP_FLOW_QUIET:
		break;
	case ACP_FLOW_RESEND:
		acp_stat_inc(peer->job->node, timeouts);
		break;
	case ACP_FLOW_ASK:
		acp_flow_ask(&peer->flow, &f);
		build_hello(peer, &f, out);
		break;
	case ACP_FLOW_FAILED:
		flow_failed(peer, peer->dst ? ACP_ST_TIMEOUT : ACP_ST_ROUTE);
		break;
	}
}

/* Everything that a peer's state asks to be sent.  Under the lock. */
static void pass(struct acp_peer *peer, struct sk_buff_head *out, u64 now)
{
	if (peer->dead)
		return;
	if (now >= peer->armed) {
		peer->armed = ~0ULL;
		tick(peer, out, now);
	}
	if (peer->flow.state == ACP_FLOW_OPEN)
		peer->wanted = false;
	if (peer->flow.state == ACP_FLOW_CLOSED &&
	    (peer->wanted || !acp_peer_idle(peer))) {
		struct acp_frame f = {};

		acp_flow_open(&peer->flow, now);
		acp_flow_ask(&peer->flow, &f);
		build_hello(peer, &f, out);
	}
	peer->retry = !transmit(peer, out, now);
	if (peer->flow.ack_due && peer->flow.state == ACP_FLOW_OPEN)
		peer->retry |= !build_ack(peer, out);
	arm(peer, now);
}

u32 acp_peer_send(struct acp_peer *peer, struct acp_item *item, u32 life)
{
	u32 epoch;

	spin_lock_bh(&peer->lock);
	epoch = peer->flow.epoch;
	if (peer->dead) {
		list_add_tail(&item->link, &peer->dropped);
		peer->dropped_status = ACP_ST_ABORT;
	} else if (life && life != epoch) {
		list_add_tail(&item->link, &peer->dropped);
		tasklet_schedule(&peer->work);
	} else {
		list_add_tail(&item->link, item->arrival ? &peer->answers : &peer->pending);
	}
	spin_unlock_bh(&peer->lock);
	return epoch;
}

void acp_peer_flush(struct acp_peer *peer)
{
	struct sk_buff_head out;

	__skb_queue_head_init(&out);
	spin_lock_bh(&peer->lock);
	pass(peer, &out, acp_now());
	spin_unlock_bh(&peer->lock);
	xmit_all(peer, &out);
}

u32 acp_peer_expect(struct acp_peer *peer)
{
	u32 life;

	spin_lock_bh(&peer->lock);
	acp_flow_expect(&peer->flow, 1, peer->flow.expect ? 0 : acp_now());
	life = peer->flow.epoch;
	spin_unlock_bh(&peer->lock);
	return life;
}

void acp_peer_unexpect(struct acp_peer *peer, u32 life)
{
	spin_lock_bh(&peer->lock);
	if (peer->flow.epoch == life && peer->flow.expect)
		acp_flow_expect(&peer->flow, -1, 0);
	spin_unlock_bh(&peer->lock);
}

bool acp_peer_ready(struct acp_peer *peer, u32 *life, u8 *status)
{
	bool known = true;

	spin_lock_bh(&peer->lock);
	if (peer->dead) {
		*status = ACP_ST_ABORT;
	} else if (*life && *life != peer->flow.epoch) {
		*status = peer->dropped_status;
	} else {
		*life = peer->flow.epoch;
		known = peer->flow.state == ACP_FLOW_OPEN;
		if (!known && !peer->wanted) {
			peer->wanted = true;
			tasklet_schedule(&peer->work);
		}
	}
	spin_unlock_bh(&peer->lock);
	return known;
}

static void report_dropped(struct acp_peer *peer, struct list_head *dropped, u8 status)
{
	struct acp_item *item, *next;

	list_for_each_entry_safe(item, next, dropped, link) {
		list_del_init(&item->link);
		item->frames = 0;
		item->status = status;
		acp_station_done(item);
	}
}

/* ---- receiving ---- */

/* What is kept of a frame beside its skb, whose data begins at the messages. */
struct frame_cb {
	u64 seq;
	u32 length;
	u32 tagged;
	bool fence;
	bool lazy;
};

static struct frame_cb *frame_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct frame_cb) > sizeof(skb->cb));
	return (struct frame_cb *)skb->cb;
}

static bool hold(struct acp_peer *peer, struct sk_buff *skb)
{
	struct sk_buff *other;

	skb_queue_walk(&peer->held, other)
		if (frame_cb(other)->seq == frame_cb(skb)->seq)
			return false;
	if (skb_queue_len(&peer->held) >= HELD_MAX) {
		acp_stat_inc(peer->job->node, drop_held_full);
		return false;
	}
	__skb_queue_tail(&peer->held, skb);
	acp_stat_inc(peer->job->node, rx_held);
	return true;
}

/* Give an accepted frame to the station.  Drops the lock meanwhile. */
static void apply(struct acp_peer *peer, struct sk_buff *skb, u64 now)
{
	const struct frame_cb cb = *frame_cb(skb);
	u32 epoch = peer->flow.epoch;
	enum acp_arrived verdict;
	bool due;

	spin_unlock_bh(&peer->lock);
	verdict = acp_station_arrived(peer, cb.seq, epoch, skb, cb.length, cb.tagged);
	spin_lock_bh(&peer->lock);
	kfree_skb(keep_spare(peer, skb));
	if (verdict == ACP_MALFORMED)
		acp_stat_inc(peer->job->node, drop_bad_msg);
	else if (verdict != ACP_REFUSED)
		acp_stat_inc(peer->job->node, rx_frames);
	if (epoch != peer->flow.epoch || verdict == ACP_PENDING)
		return;
	if (verdict == ACP_REFUSED) {
		acp_flow_refuse(&peer->flow, cb.seq);
		return;
	}
	due = peer->flow.ack_due;
	acp_flow_applied(&peer->flow, cb.seq);
	if (cb.lazy && !due)
		acp_flow_ack_later(&peer->flow, now);
}

/* A DATA frame.  Under the lock; takes the skb. */
static void data(struct acp_peer *peer, struct sk_buff *skb, u64 now)
{
	const struct frame_cb *cb = frame_cb(skb);

	switch (acp_flow_accept(&peer->flow, cb->seq, cb->fence)) {
	case ACP_FLOW_NEW:
		apply(peer, skb, now);
		return;
	case ACP_FLOW_HOLD:
		if (hold(peer, skb))
			return;
		break;
	case ACP_FLOW_DUPLICATE:
		acp_stat_inc(peer->job->node, drop_duplicate);
		break;
	case ACP_FLOW_FUTURE:
		acp_stat_inc(peer->job->node, drop_future);
		break;
	}
	kfree_skb(skb);
}

/* Fenced frames whose turn has come. */
static void release_held(struct acp_peer *peer, u64 now)
{
	struct sk_buff *skb, *next;
	bool again;

	do {
		again = false;
		skb_queue_walk_safe(&peer->held, skb, next) {
			if (frame_cb(skb)->seq > peer->flow.rcv)
				continue;
			__skb_unlink(skb, &peer->held);
			data(peer, skb, now);
			again = true;
			break;
		}
	} while (again);
}

static void work(struct tasklet_struct *t)
{
	struct acp_peer *peer = from_tasklet(peer, t, work);
	struct sk_buff_head out;
	LIST_HEAD(dropped);
	u64 now = acp_now();
	bool lost;
	u8 status;

	__skb_queue_head_init(&out);
	spin_lock_bh(&peer->lock);
	/* Not once acp_station_flush() has waited for what this may start. */
	if (!READ_ONCE(peer->job->dead))
		release_held(peer, now);
	pass(peer, &out, now);
	list_splice_init(&peer->dropped, &dropped);
	status = peer->dropped_status;
	lost = peer->lost;
	peer->lost = false;
	spin_unlock_bh(&peer->lock);
	xmit_all(peer, &out);
	report_dropped(peer, &dropped, status);
	if (lost)
		acp_station_lost(peer, status);
	acp_station_idle(peer->job);
}

/* One frame was acknowledged: which items are complete with it? */
static void acked(struct acp_sent *s, struct list_head *done)
{
	struct acp_item *item;

	list_for_each_entry(item, &s->items, link)
		item->frames--;
	list_splice_tail_init(&s->items, done);
	if (s->piece && !--s->piece->frames && s->piece->out.finished)
		list_add_tail(&s->piece->link, done);
	s->piece = NULL;
}

static void acknowledgement(struct acp_peer *peer, const struct acp_frame *f,
			    const struct acp_frame_ack *map, struct list_head *done, u64 now)
{
	struct acp_flow_ack ack;
	struct acp_sent *s;

	if (!peer->slots && f->ack == peer->flow.next)
		return;
	if (!peer->slots || !acp_flow_ack_begin(&peer->flow, &ack, f, map)) {
		acp_stat_inc(peer->job->node, drop_bad_ack);
		return;
	}
	while ((s = acp_flow_ack_next(&peer->flow, &ack, now)))
		acked(s, done);
	acp_flow_ack_end(&peer->flow, &ack, now);
}

/* Does the peer run the job as we do? */
static bool same_setup(struct acp_peer *peer, const struct acp_frame_hello *h)
{
	const struct acp_job *job = peer->job;

	if (be32_to_cpu(h->nprocs) == job->ga.nprocs && be32_to_cpu(h->nodes) == job->nodes &&
	    be64_to_cpu(h->digest) == job->digest)
		return true;
	acp_stat_inc(job->node, drop_mismatch);
	net_warn_ratelimited("acp: job %u: node %u runs another set-up of the job\n", job->id,
			     peer->node);
	return false;
}

static void hello(struct acp_peer *peer, const struct acp_frame *f,
		  const struct acp_frame_hello *h, struct sk_buff_head *out, u64 now)
{
	struct acp_frame reply = {};
	bool same = same_setup(peer, h);
	u32 verdict;

	if (!READ_ONCE(peer->job->members) && f->epoch_src != peer->flow.epoch_peer) {
		acp_stat_inc(peer->job->node, drop_no_job);
		return;
	}
	if (!same && peer->flow.state == ACP_FLOW_OPENING) {
		flow_failed(peer, ACP_ST_PEER);
		return;
	}
	verdict = acp_flow_hello(&peer->flow, f, &reply, now);
	if (verdict & ACP_FLOW_RESTART)
		flow_restarted(peer, f->epoch_src, now);
	if (verdict & ACP_FLOW_OPENED)
		acp_stat_inc(peer->job->node, flows_opened);
	if (verdict & ACP_FLOW_REPLY)
		build_hello(peer, &reply, out);
}

/* A frame that is authentic.  The skb's data begins behind its header. */
static void frame(struct acp_peer *peer, struct sk_buff *skb, const struct acp_frame *f)
{
	struct sk_buff_head out;
	LIST_HEAD(done);
	u64 now = acp_now();
	u32 verdict;

	__skb_queue_head_init(&out);
	spin_lock_bh(&peer->lock);
	if (peer->dead)
		goto drop;
	if (f->type == ACP_FRAME_HELLO) {
		hello(peer, f, (const struct acp_frame_hello *)skb->data, &out, now);
		tasklet_schedule(&peer->work);
		goto drop;
	}
	verdict = acp_flow_admit(&peer->flow, f, now);
	if (verdict == ACP_FLOW_DROP) {
		acp_stat_inc(peer->job->node, drop_bad_epoch);
		goto drop;
	}
	if (verdict & ACP_FLOW_RESTART)
		flow_restarted(peer, f->epoch_src, now);
	if (verdict & ACP_FLOW_OPENED)
		acp_stat_inc(peer->job->node, flows_opened);
	acknowledgement(peer, f, f->type == ACP_FRAME_ACK && f->length ? (void *)skb->data : NULL,
			&done, now);
	if (f->type == ACP_FRAME_DATA) {
		data(peer, skb, now);
		skb = NULL;
	}
	/* A train is answered once, at the end of the pass; all else at once. */
	if ((f->flags & ACP_FRAME_BULK) || peer->lost || !skb_queue_empty(&peer->held))
		tasklet_schedule(&peer->work);
	else
		pass(peer, &out, now);
	skb = keep_spare(peer, skb);
drop:
	spin_unlock_bh(&peer->lock);
	kfree_skb(skb);
	xmit_all(peer, &out);
	report_dropped(peer, &done, ACP_ST_OK);
	acp_station_idle(peer->job);
}

/* Is the datagram from the node it claims to be from? */
static bool source_ok(struct acp_job *job, struct acp_socket *socket, const struct sk_buff *skb,
		      const struct acp_frame *f, __be16 port)
{
	u8 addr[16];

	if (f->color >= job->colors || f->node >= job->nodes || f->node == job->me ||
	    job->sockets[f->color] != socket || port != htons(job->port))
		return false;
	acp_job_address(job, f->node, f->color, addr);
	if (job->family == AF_INET)
		return skb->protocol == htons(ETH_P_IP) && !memcmp(&ip_hdr(skb)->saddr, addr, 4);
	return skb->protocol == htons(ETH_P_IPV6) && !memcmp(&ipv6_hdr(skb)->saddr, addr, 16);
}

/* The checksum of a bulk frame's payload, which its message says the length of. */
static bool payload_right(struct sk_buff *skb, const struct acp_frame *f, u32 tagged)
{
	const struct acp_msg_data *m;
	u32 length;

	if (!(f->flags & ACP_FRAME_CRC) || skb_linearize(skb))
		return false;
	m = (const void *)skb->data + sizeof(struct acp_frame_hdr);
	length = be32_to_cpu(m->h.length);
	return length <= skb->len - tagged &&
	       ~__crc32c_le(~0u, skb->data + tagged, length) == f->crc;
}

/* Tag and checksum; makes the tagged part linear. */
static bool authentic(struct acp_job *job, struct sk_buff *skb, const struct acp_frame *f)
{
	u32 tagged = acp_frame_tagged(f);
	struct acp_frame_hdr *h;

	if (skb_ensure_writable(skb, tagged)) {
		acp_stat_inc(job->node, drop_nomem);
		return false;
	}
	h = (struct acp_frame_hdr *)skb->data;
	h->tag = 0;
	if (siphash(h, tagged, &job->key) != f->tag) {
		acp_stat_inc(job->node, drop_bad_mac);
		return false;
	}
	if (job->integrity != ACP_INTEGRITY_CRC32C || !(f->flags & ACP_FRAME_BULK) ||
	    payload_right(skb, f, tagged))
		return true;
	acp_stat_inc(job->node, drop_bad_crc);
	return false;
}

static void count_bad_header(struct acp_node *node, enum acp_frame_error error)
{
	switch (error) {
	case ACP_FRAME_OK:
		break;
	case ACP_FRAME_BAD_LEN:
		acp_stat_inc(node, drop_bad_len);
		break;
	case ACP_FRAME_BAD_VERSION:
		acp_stat_inc(node, drop_bad_version);
		break;
	case ACP_FRAME_BAD_TYPE:
		acp_stat_inc(node, drop_bad_type);
		break;
	case ACP_FRAME_BAD_FLAGS:
		acp_stat_inc(node, drop_bad_flags);
		break;
	}
}

/* The job a frame belongs to, if it comes from where it should. */
static struct acp_job *frame_job(struct acp_socket *socket, const struct sk_buff *skb,
				 const struct acp_frame *f, __be16 port)
{
	struct acp_node *node = socket->node;
	struct acp_job *job = xa_load(&node->jobs, acp_job_index(f->job, f->generation));

	if (!job) {
		acp_stat_inc(node, drop_no_job);
		return NULL;
	}
	if (!source_ok(job, socket, skb, f, port)) {
		acp_stat_inc(node, drop_bad_source);
		return NULL;
	}
	return job;
}

static struct acp_peer *frame_peer(struct acp_job *job, const struct acp_frame *f)
{
	struct acp_peer *peer;

	if (f->type == ACP_FRAME_HELLO) {
		peer = acp_peer_get(job, f->node, f->color);
		if (!peer && READ_ONCE(job->dead))
			acp_stat_inc(job->node, drop_no_job);
		else if (!peer)
			acp_stat_inc(job->node, drop_nomem);
		return peer;
	}
	peer = acp_peer_find(job, f->node, f->color);
	if (!peer)
		acp_stat_inc(job->node, drop_bad_epoch);
	return peer;
}

/* A datagram came.  Softirq, RCU read side.  Always takes it: returns 0. */
static int received(struct sock *sk, struct sk_buff *skb)
{
	struct acp_socket *socket = rcu_dereference_sk_user_data(sk);
	enum acp_frame_error error = ACP_FRAME_BAD_LEN;
	struct acp_peer *peer;
	struct acp_job *job;
	struct acp_frame f;
	__be16 port;

	if (!socket)
		goto drop;
	port = udp_hdr(skb)->source;
	__skb_pull(skb, sizeof(struct udphdr));
	if (pskb_may_pull(skb, sizeof(struct acp_frame_hdr)))
		error = acp_frame_decode(&f, (struct acp_frame_hdr *)skb->data, skb->len);
	if (!error && acp_frame_tagged(&f) > MTU_MOST)
		error = ACP_FRAME_BAD_LEN;	/* nobody sends it: no memory for strangers */
	if (error) {
		count_bad_header(socket->node, error);
		goto drop;
	}
	job = frame_job(socket, skb, &f, port);
	if (!job || !authentic(job, skb, &f))
		goto drop;
	peer = frame_peer(job, &f);
	if (!peer)
		goto drop;
	__skb_pull(skb, sizeof(struct acp_frame_hdr));
	*frame_cb(skb) = (struct frame_cb){
		.seq = f.seq,
		.length = f.length,
		.tagged = acp_frame_tagged(&f) - sizeof(struct acp_frame_hdr),
		.fence = f.flags & ACP_FRAME_FENCE,
		.lazy = f.flags & ACP_FRAME_LAZY,
	};
	frame(peer, skb, &f);
	return 0;
drop:
	kfree_skb(skb);
	return 0;
}

void acp_peer_applied(struct acp_peer *peer, u64 seq, u32 epoch)
{
	spin_lock_bh(&peer->lock);
	if (epoch == peer->flow.epoch && !peer->dead) {
		acp_flow_applied(&peer->flow, seq);
		tasklet_schedule(&peer->work);
	}
	spin_unlock_bh(&peer->lock);
}

/* ---- failures ---- */

bool acp_peer_fail(struct acp_peer *peer, u32 origin, u64 ticket, u8 status, u64 until)
{
	bool ok = false;

	spin_lock_bh(&peer->lock);
	if (!peer->fails)
		peer->fails = kzalloc(sizeof(*peer->fails), GFP_ATOMIC | __GFP_NOWARN);
	if (peer->fails) {
		ok = acp_fails_add(peer->fails, origin, ticket, status, until);
	} else if (until) {
		peer->blind = max(peer->blind, until);
		ok = true;
	}
	spin_unlock_bh(&peer->lock);
	return ok;
}

u8 acp_peer_take_fail(struct acp_peer *peer, u32 origin, u64 ticket)
{
	u8 status = ACP_ST_OK;

	if (!READ_ONCE(peer->fails))
		return status;
	spin_lock_bh(&peer->lock);
	if (peer->fails)
		status = acp_fails_take(peer->fails, origin, ticket);
	spin_unlock_bh(&peer->lock);
	return status;
}

bool acp_peer_depends(struct acp_peer *peer, const struct acp_msg *m)
{
	bool found = false;

	if (!READ_ONCE(peer->fails) && !READ_ONCE(peer->blind))
		return false;
	spin_lock_bh(&peer->lock);
	if (peer->fails)
		found = acp_fails_depends(peer->fails, m, peer->flow.rcv);
	found |= peer->flow.rcv <= peer->blind;
	spin_unlock_bh(&peer->lock);
	return found;
}

/* ---- peers ---- */

void acp_udp_peer_init(struct acp_peer *peer)
{
	hrtimer_init(&peer->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	peer->timer.function = timer_fired;
	peer->armed = ~0ULL;
	peer->mtu = 1400;
	tasklet_setup(&peer->work, work);
}

/* An idle peer keeps its flow's numbers and gives back the rest. */
void acp_udp_peer_reclaim(struct acp_peer *peer)
{
	spin_lock_bh(&peer->lock);
	if (peer->slots && acp_peer_idle(peer) &&
	    acp_now() - peer->used >= IDLE_NS)
		give_back_slots(peer);
	spin_unlock_bh(&peer->lock);
}

/* No more frames, timers, tasklets; all items come back.  Sleeps. */
void acp_udp_peer_stop(struct acp_peer *peer)
{
	LIST_HEAD(dropped);

	spin_lock_bh(&peer->lock);
	drop_all(peer, ACP_ST_ABORT);
	peer->flow.una = peer->flow.next;
	peer->dead = true;
	list_splice_init(&peer->dropped, &dropped);
	spin_unlock_bh(&peer->lock);
	hrtimer_cancel(&peer->timer);
	tasklet_kill(&peer->work);
	local_bh_disable();
	report_dropped(peer, &dropped, ACP_ST_ABORT);
	local_bh_enable();
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
		kernel_sock_shutdown(s->sock, SHUT_RDWR);
		sock_release(s->sock);
		kfree_rcu(s, rcu);
	}
}
