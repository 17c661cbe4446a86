// SPDX-License-Identifier: GPL-2.0-only
/* Trains of frames: see train.h. */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/sock.h>
#include <net/udp.h>
#include "trace.h"
#include "train.h"

#define FRAMES_MOST	128	/* of a train that came; the kernel makes none that are longer */
#define HEAD		sizeof(union acp_bulk_head)
#define HEAD_MOST	(HEAD + sizeof(struct acp_msg_more) + sizeof(struct acp_frame_crc))

/* ---- out ---- */

/* Memory for the headers of frames that are not the first one in their skb. */
static DEFINE_PER_CPU(struct page_frag, heads);

void acp_train_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		if (per_cpu(heads, cpu).page)
			put_page(per_cpu(heads, cpu).page);
}

void acp_train_attach(struct sk_buff *skb, struct page *page, u32 offset, u32 size)
{
	get_page(page);
	skb_fill_page_desc(skb, skb_shinfo(skb)->nr_frags, page, offset, size);
	skb->len += size;
	skb->data_len += size;
	skb->truesize += size;
}

/* Bytes of the headers around the first frame. */
static u32 around(const struct sk_buff *skb)
{
	return skb_transport_offset(skb) + sizeof(struct udphdr);
}

/* Size of its frames, but for the last. */
static u32 each_of(const struct sk_buff *train)
{
	return skb_shinfo(train)->gso_size ?: train->len - around(train);
}

/*
 * May a frame come behind those in the skb?  Not if a frame may have to be sent in fragments, or
 * if IPsec would have to take the train apart.
 */
static bool may_join(const struct acp_peer *peer, const struct sk_buff *train, u32 size, u32 frags)
{
	u32 each;

	if (!train || train != peer->train || !peer->dst || dst_xfrm(peer->dst) || peer->narrow)
		return false;
	each = each_of(train);
	return size <= each && !((train->len - around(train)) % each) &&
	       skb_shinfo(train)->nr_frags + 1 + frags <= MAX_SKB_FRAGS &&
	       train->len + size <= U16_MAX;
}

static bool join(struct sk_buff *train, struct acp_bulk *b, u32 head)
{
	struct page_frag *mem = this_cpu_ptr(&heads);
	struct skb_shared_info *info = skb_shinfo(train);

	if (!skb_page_frag_refill(head, mem, GFP_ATOMIC | __GFP_NOWARN))
		return false;
	info->gso_size = each_of(train);
	info->gso_segs = max_t(u16, info->gso_segs, 1) + 1;
	info->gso_type = SKB_GSO_UDP_L4;
	b->skb = train;
	b->h = page_address(mem->page) + mem->offset;
	acp_train_attach(train, mem->page, mem->offset, head);
	mem->offset += head;
	return true;
}

static bool begin(struct acp_peer *peer, struct acp_bulk *b, u32 head)
{
	b->skb = acp_udp_frame_new(peer, head);
	if (!b->skb)
		return false;
	skb_put(b->skb, head - sizeof(*b->h));
	b->h = (struct acp_frame_hdr *)b->skb->data;
	return true;
}

bool acp_train_begin(struct acp_peer *peer, const struct acp_outbox *out, struct acp_bulk *b,
		     u32 head, u32 size, u32 frags)
{
	struct sk_buff *last = out->last;

	b->size = size;
	b->joined = !b->alone && may_join(peer, last, size, frags) && join(last, b, head);
	if (!b->joined) {
		if (!begin(peer, b, head))
			return false;
		peer->train = b->alone ? NULL : b->skb;
	}
	b->first = skb_shinfo(b->skb)->nr_frags;
	return true;
}

void acp_train_end(struct acp_peer *peer, struct acp_outbox *out, struct acp_bulk *b,
		   struct acp_frame *f)
{
	if (b->joined) {
		f->length = b->size - sizeof(*b->h);
		acp_udp_header(peer, b->h, f);
		return;
	}
	acp_udp_frame_finish(peer, b->skb, f);
	acp_outbox_add(out, b->skb);
}

void acp_train_end_row(struct acp_peer *peer, struct acp_outbox *out, struct acp_bulk *b,
		       struct acp_frame *f, const union acp_bulk_head *head)
{
	memcpy(b->h, head, sizeof(*head));
	if (b->joined)
		acp_udp_tag(peer, b->h, f);
	else
		acp_train_end(peer, out, b, f);
}

void acp_train_close(struct acp_peer *peer, struct sk_buff *skb)
{
	struct udphdr *uh = udp_hdr(skb);
	u32 size = skb->len - skb_transport_offset(skb);

	uh->len = htons(size);
	if (skb->protocol == htons(ETH_P_IP)) {
		struct iphdr *iph = ip_hdr(skb);

		uh->check = ~udp_v4_check(size, iph->saddr, iph->daddr, 0);
		__ip_select_ident(peer->job->node->net, iph, skb_shinfo(skb)->gso_segs);
	} else {
		struct ipv6hdr *iph = ipv6_hdr(skb);

		uh->check = ~udp_v6_check(size, &iph->saddr, &iph->daddr, 0);
	}
}

/* ---- in ---- */

struct train {
	struct acp_socket *socket;
	struct acp_node *node;
	struct sk_buff *skb;
	struct acp_job *job;		/* of the last frame, and its sender */
	struct acp_peer *peer;
	struct acp_bytes at;		/* where the frame is */
	u32 size;
	u32 alone;			/* so many are taken one by one, from this one on */
	struct acp_frame f;
	u8 memory[HEAD_MOST] __aligned(8);	/* what of it is before the payload */
	u8 next[HEAD] __aligned(8);		/* ... of one that may continue it */
};

static void drop(struct train *t, const struct acp_frame *f, enum acp_stat reason)
{
	this_cpu_inc(t->node->stats->v[reason]);
	trace_acp_drop(t->node, t->skb, f, reason);
}

struct sk_buff *acp_train_single(const struct sk_buff *train, u32 at, u32 size)
{
	u32 around = -skb_network_offset(train);
	struct sk_buff *skb = alloc_skb(around + size, GFP_ATOMIC | __GFP_NOWARN);

	if (!skb)
		return NULL;
	skb_put_data(skb, skb_network_header(train), around);
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, around - sizeof(struct udphdr));
	__skb_pull(skb, around);
	skb->protocol = train->protocol;
	skb->dev = train->dev;
	if (!skb_copy_bits(train, at, skb_put(skb, size), size))
		return skb;
	kfree_skb(skb);
	return NULL;
}

static void take_alone(struct train *t)
{
	struct sk_buff *skb;

	if (t->size > ACP_MTU_MOST) {
		drop(t, NULL, ACP_STAT_drop_bad_len);
		return;
	}
	skb = acp_train_single(t->skb, t->at.at, t->size);
	if (skb)
		acp_udp_take(t->socket, skb);
	else
		drop(t, NULL, ACP_STAT_drop_nomem);
}

/* Of a job of ours, and from where it should be?  Mostly as the one before it. */
static bool find_job(struct train *t, const struct acp_frame *last)
{
	const struct acp_frame *f = &t->f;

	if (t->job && f->job == last->job && f->generation == last->generation &&
	    f->node == last->node && f->color == last->color)
		return true;
	t->job = acp_udp_job(t->socket, t->skb, f, &t->peer);
	return t->job;
}

/* A BULK frame, of which "h" has all but the payload. */
static void take_bulk(struct train *t, const struct acp_frame_hdr *h)
{
	struct sk_buff *skb = t->skb;

	if (!acp_udp_tag_right(t->job, h, &t->f)) {
		drop(t, &t->f, ACP_STAT_drop_bad_mac);
		return;
	}
	if (!acp_udp_bulk_right(t->job, skb, t->at.at, h, &t->f))
		return;
	trace_acp_receive(t->peer, &t->f);
	acp_frame_note(skb, &t->f, (const u8 *)(h + 1), acp_frame_covered(&t->f));
	acp_frame_cb(skb)->at = (struct acp_bytes){ t->at.at + sizeof(*h), t->at.frag,
						    t->at.start };
	acp_frame_cb(skb)->size = t->size;
	acp_peer_frame(t->peer, skb_get(skb), &t->f);
}

#define SEQ	(offsetof(union acp_bulk_head, h.seq) / sizeof(__be64))
#define DST	(offsetof(union acp_bulk_head, m.dst) / sizeof(__be64))

/*
 * May others continue it?  Its message as it came, for they must be like it, and what it says
 * in *m: a piece in the middle of a copy that waits for nothing.
 */
static bool is_middle(const struct train *t, struct acp_msg *m)
{
	const union acp_bulk_head *first = (const void *)t->memory;

	if ((t->f.flags & ~(ACP_FRAME_MARKS | ACP_FRAME_LAZY)) != ACP_FRAME_BULK ||
	    first->m.h.word != cpu_to_be64((u64)ACP_MSG_DATA << 56))
		return false;
	return acp_msg_decode(m, &first->m, t->f.length, sizeof(first->m)) == t->f.length;
}

/*
 * Is the next one the frame that continues them, the one number i behind the first?  Its number
 * and address tell; all else but the tag is the same.
 */
static bool continues(const struct train *t, const struct acp_msg *m, u32 i)
{
	const __be64 *a = ((const union acp_bulk_head *)t->memory)->words;
	const __be64 *b = ((const union acp_bulk_head *)t->next)->words;
	__be64 other = 0;
	u32 k;

	for (k = 1; k < HEAD / sizeof(__be64); k++)
		if (k != SEQ && k != DST)
			other |= a[k] ^ b[k];
	return !other && b[SEQ] == cpu_to_be64(t->f.seq + i) &&
	       b[DST] == cpu_to_be64(m->dst + (u64)i * m->length);
}

static void trace_pieces(const struct train *t, u32 count)
{
	struct acp_frame f = t->f;

	for (; count; count--, f.seq++)
		trace_acp_receive(t->peer, &f);
}

/*
 * A BULK frame and all behind it that continue it, each authentic by its own tag, in one go: one
 * look-up, one reference, two times the lock.  Returns how many; 0: it must be taken by itself.
 */
static u32 take_pieces(struct train *t)
{
	const struct acp_frame_hdr *h = (const void *)t->memory;
	struct acp_bytes at = { t->at.at + HEAD, t->at.frag, t->at.start };
	struct acp_pieces pieces = { .at = at, .distance = t->size };
	struct acp_msg m acp_uncleared;
	u32 n = 0;

	if (t->job->integrity == ACP_INTEGRITY_CRC32C || !is_middle(t, &m) ||
	    !acp_udp_tag_right(t->job, h, &t->f))
		return 0;
	do {
		n++;
		at.at = t->at.at + n * t->size;
		if (t->skb->len - at.at < t->size ||
		    acp_bytes_copy(t->skb, &at, t->next, HEAD))
			break;
	} while (continues(t, &m, n) &&
		 acp_udp_tag_right(t->job, (const void *)t->next, &t->f));
	pieces.count = n;
	pieces.length = m.length;
	if (n == 1 || !acp_peer_pieces(t->peer, t->skb, &t->f, &m, &pieces)) {
		/* All of them: who looked anew behind each would look at each of them n times. */
		t->alone = n;
		return 0;
	}
	if (trace_acp_receive_enabled())
		trace_pieces(t, n);
	return n;
}

/* All before the payload, once: what the others look at is this copy. */
static bool read_head(struct train *t)
{
	struct acp_bytes at = t->at;
	u32 more = 0;
	u8 flags;

	if (acp_bytes_copy(t->skb, &at, t->memory, HEAD))
		return false;
	acp_frame_cb(t->skb)->body = t->memory + sizeof(struct acp_frame_hdr);
	flags = ((const struct acp_frame_hdr *)t->memory)->flags;
	if (flags & ACP_FRAME_MORE)
		more += sizeof(struct acp_msg_more);
	if (flags & ACP_FRAME_CRC)
		more += sizeof(struct acp_frame_crc);
	return !acp_bytes_copy(t->skb, &at, t->memory + HEAD, more);
}

/* The frame at t->at, and perhaps some behind it: how many. */
static u32 take(struct train *t)
{
	const struct acp_frame_hdr *h = (const void *)t->memory;
	struct acp_frame last = t->f;
	enum acp_frame_error error = ACP_FRAME_BAD_LEN;
	u32 count;

	*acp_frame_cb(t->skb) = (struct acp_frame_cb){ .size = t->size };
	if (t->size <= HEAD_MOST) {
		take_alone(t);
		return 1;
	}
	if (read_head(t))
		error = acp_frame_decode(&t->f, h, t->size);
	if (error) {
		acp_udp_bad_header(t->node, error, t->skb);
		t->job = NULL;
		return 1;
	}
	if (!find_job(t, &last))
		return 1;
	if (!t->peer || !(t->f.flags & ACP_FRAME_BULK) || acp_job_sealed(t->job)) {
		take_alone(t);
		return 1;
	}
	count = t->alone ? 0 : take_pieces(t);
	if (count)
		return count;
	t->alone -= !!t->alone;
	take_bulk(t, h);
	return 1;
}

void acp_train_received(struct acp_node *node, struct acp_socket *socket, struct sk_buff *skb)
{
	struct train t acp_uncleared;
	u32 each = skb_shinfo(skb)->gso_size, count;

	t.node = node;
	t.socket = socket;
	t.skb = skb;
	t.job = NULL;
	t.peer = NULL;
	t.alone = 0;
	memset(&t.f, 0, sizeof(t.f));
	*acp_frame_cb(skb) = (struct acp_frame_cb){ .size = skb->len };
	/* Nobody makes a train of what is no frame, or so long a one. */
	if (each < sizeof(struct acp_frame_hdr) || skb->len > each * FRAMES_MOST) {
		drop(&t, NULL, ACP_STAT_drop_bad_len);
		kfree_skb(skb);
		return;
	}
	for (t.at = acp_bytes_first(skb); t.at.at < skb->len; t.at.at += each * count) {
		t.size = min(each, skb->len - t.at.at);
		acp_bytes_seek(skb, &t.at);
		count = take(&t);
	}
	acp_udp_free(skb);
}
