// SPDX-License-Identifier: GPL-2.0-only
/* Transmitted GSO batches: see gso_tx.h. */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/udp.h>
#include "framing.h"
#include "gso_tx.h"

#define STORES		4	/* memory blocks that a CPU uses in turn */

/* Memory for the headers of frames that are not the first in their skb. */
static DEFINE_PER_CPU(struct page_frag, heads);

/*
 * Memory for encrypted frames, whole ones, that are not the first in their skb.  A block is used
 * again in its turn if all its frames have been sent by then: the kernel would clear a new one.
 */
struct stores {
	struct page_frag mem[STORES];
	u32 at;
};

static DEFINE_PER_CPU(struct stores, stores);

static void put_mem(struct page_frag *mem)
{
	if (mem->page)
		put_page(mem->page);
	mem->page = NULL;
}

void acp_gso_exit(void)
{
	int cpu, i;

	for_each_possible_cpu(cpu) {
		put_mem(per_cpu_ptr(&heads, cpu));
		for (i = 0; i < STORES; i++)
			put_mem(&per_cpu_ptr(&stores, cpu)->mem[i]);
	}
}

/*
 * Programs have these pages mapped, too.  Code that changes a datagram in place must copy it first,
 * as this flag requires: see skb_has_shared_frag().
 */
void acp_gso_attach(struct sk_buff *skb, struct page *page, u32 offset, u32 size)
{
	get_page(page);
	skb_fill_page_desc(skb, skb_shinfo(skb)->nr_frags, page, offset, size);
	skb_shinfo(skb)->flags |= SKBFL_SHARED_FRAG;
	skb->len += size;
	skb->data_len += size;
	skb->truesize += size;
}

bool acp_gso_reserve(u32 size)
{
	return skb_page_frag_refill(size, this_cpu_ptr(&heads), GFP_ATOMIC | __GFP_NOWARN);
}

/* Return contiguous memory for a whole frame, or NULL. */
static struct page_frag *store(u32 size)
{
	struct stores *s = this_cpu_ptr(&stores);
	struct page_frag *mem = &s->mem[s->at];

	if (mem->page && mem->offset + size <= mem->size)
		return mem;
	s->at = (s->at + 1) % STORES;
	mem = &s->mem[s->at];
	if (!skb_page_frag_refill(size, mem, GFP_ATOMIC | __GFP_NOWARN))
		return NULL;
	if (mem->offset + size <= mem->size)
		return mem;
	put_mem(mem);	/* a single page: no larger block was available */
	return NULL;
}

/* Attach the next bytes of the block, which are often contiguous with the skb's last fragment. */
static void attach_stored(struct sk_buff *skb, const struct page_frag *mem, u32 size)
{
	int last = skb_shinfo(skb)->nr_frags;

	if (!skb_can_coalesce(skb, last, mem->page, mem->offset)) {
		acp_gso_attach(skb, mem->page, mem->offset, size);
		return;
	}
	skb_frag_size_add(&skb_shinfo(skb)->frags[last - 1], size);
	skb->len += size;
	skb->data_len += size;
	skb->truesize += size;
}

void acp_gso_pad(struct sk_buff *skb, u32 size)
{
	struct page_frag *mem = this_cpu_ptr(&heads);

	memset(page_address(mem->page) + mem->offset, 0, size);
	acp_gso_attach(skb, mem->page, mem->offset, size);
	mem->offset += ACP_GSO_PAD;
}

/* Bytes of the headers before the first frame. */
static u32 around(const struct sk_buff *skb)
{
	return skb_transport_offset(skb) + sizeof(struct udphdr);
}

/* Size of its frames; the last one may be shorter. */
static u32 each_of(const struct sk_buff *batch)
{
	return skb_shinfo(batch)->gso_size ?: batch->len - around(batch);
}

/*
 * May a frame be appended to those in the skb?  Not if a frame may have to be sent in fragments, or
 * if IPsec would have to segment the batch.
 */
static bool may_join(const struct acp_peer *peer, const struct sk_buff *batch, u32 size, u32 frags)
{
	u32 each;

	if (!batch || batch != peer->batch || !peer->dst || dst_xfrm(peer->dst) || peer->narrow)
		return false;
	each = each_of(batch);
	return size <= each && !((batch->len - around(batch)) % each) &&
	       skb_shinfo(batch)->nr_frags + 1 + frags <= MAX_SKB_FRAGS &&
	       batch->len + size <= U16_MAX;
}

static void count_in(struct sk_buff *batch)
{
	struct skb_shared_info *info = skb_shinfo(batch);

	info->gso_size = each_of(batch);
	info->gso_segs = max_t(u16, info->gso_segs, 1) + 1;
	info->gso_type = SKB_GSO_UDP_L4;
}

static bool join(struct sk_buff *batch, struct acp_bulk *b, u32 head)
{
	struct page_frag *mem = this_cpu_ptr(&heads);

	if (!acp_gso_reserve(head))
		return false;
	count_in(batch);
	b->skb = batch;
	b->h = page_address(mem->page) + mem->offset;
	acp_gso_attach(batch, mem->page, mem->offset, head);
	mem->offset += head;
	return true;
}

/* The same for a frame that will be encrypted: the whole frame is contiguous. */
static noinline bool join_encrypted(struct sk_buff *batch, struct acp_bulk *b)
{
	struct page_frag *mem = store(b->size);

	if (!mem)
		return false;
	count_in(batch);
	b->skb = batch;
	b->h = page_address(mem->page) + mem->offset;
	attach_stored(batch, mem, b->size);
	mem->offset += b->size;
	return true;
}

static bool begin(struct acp_peer *peer, struct acp_bulk *b, u32 head)
{
	b->skb = acp_framing_new(peer, head);
	if (!b->skb)
		return false;
	skb_put(b->skb, head - sizeof(*b->h));
	b->h = (struct acp_frame_hdr *)b->skb->data;
	return true;
}

bool acp_gso_begin(struct acp_peer *peer, const struct acp_outbox *out, struct acp_bulk *b,
		   u32 head, u32 size, u32 frags)
{
	struct sk_buff *last = out->last;

	bool encrypted = acp_job_encrypted(peer->job);

	b->size = size;
	b->joined = !b->alone && may_join(peer, last, size, frags) &&
		    (encrypted ? join_encrypted(last, b) : join(last, b, head));
	if (!b->joined) {
		if (!begin(peer, b, head))
			return false;
		peer->batch = b->alone ? NULL : b->skb;
	}
	b->first = skb_shinfo(b->skb)->nr_frags;
	return true;
}

/* Return the position of the payload of a joined frame, which is the last one in its skb. */
static struct acp_bytes payload_of(const struct acp_bulk *b, const struct acp_frame *f)
{
	u32 at = b->skb->len - (b->size - acp_frame_tagged(f));

	return (struct acp_bytes){ .at = at, .frag = b->first, .start = at };
}

/*
 * Write nonce block and tag of a frame that will be encrypted; its header is complete.  The tag
 * covers no more than these.
 */
static void end_encrypted(struct acp_peer *peer, struct acp_bulk *b, const struct acp_frame *f)
{
	acp_aead_nonce(&peer->secret, (void *)(b->h + 1), false);
	acp_framing_tag(peer, b->h, f, b->skb, acp_bytes_first(b->skb));
}

void acp_gso_end(struct acp_peer *peer, struct acp_outbox *out, struct acp_bulk *b,
		 struct acp_frame *f)
{
	if (!b->joined) {
		acp_framing_finish(peer, b->skb, f);
		acp_outbox_add(out, b->skb);
	} else if (acp_job_encrypted(peer->job)) {
		f->flags |= ACP_FRAME_AEAD;
		f->length = b->size - sizeof(*b->h) - ACP_FRAME_ENCRYPTED;
		acp_framing_head(peer, b->h, f);
		end_encrypted(peer, b, f);
	} else {
		f->length = b->size - sizeof(*b->h);
		acp_framing_head(peer, b->h, f);
		acp_framing_tag(peer, b->h, f, b->skb, payload_of(b, f));
	}
}

static noinline void end_encrypted_burst(struct acp_peer *peer, struct acp_bulk *b,
					 const struct acp_frame *f, const union acp_bulk_head *head,
					 u32 size)
{
	memcpy(b->h, &head->h, sizeof(head->h));
	memcpy(acp_gso_body(peer, b), &head->m, size - sizeof(head->h));
	if (b->joined)
		end_encrypted(peer, b, f);
}

void acp_gso_end_burst(struct acp_peer *peer, struct acp_outbox *out, struct acp_bulk *b,
		       struct acp_frame *f, const union acp_bulk_head *head, u32 size)
{
	if (unlikely(acp_job_encrypted(peer->job)))
		end_encrypted_burst(peer, b, f, head, size);
	else if (likely(size == ACP_BULK_HEAD))
		memcpy(b->h, head, ACP_BULK_HEAD);
	else
		memcpy(b->h, head, sizeof(*head));
	if (!b->joined)
		acp_gso_end(peer, out, b, f);
	else if (likely(!acp_job_encrypted(peer->job)))
		acp_framing_tag(peer, b->h, f, b->skb, payload_of(b, f));
}

bool acp_gso_close_frames(struct acp_peer *peer, struct sk_buff *skb)
{
	const struct skb_shared_info *info = skb_shinfo(skb);
	void *frame = skb_transport_header(skb) + sizeof(struct udphdr);
	u32 i, at, n, size = skb_tail_pointer(skb) - (u8 *)frame;
	int err = acp_aead_close(&peer->secret, frame, size);

	for (i = 0; i < info->nr_frags && !err; i++) {
		frame = skb_frag_address(&info->frags[i]);
		size = skb_frag_size(&info->frags[i]);
		for (at = 0; at < size && !err; at += n) {
			n = min_t(u32, info->gso_size, size - at);
			err = acp_aead_close(&peer->secret, frame + at, n);
		}
	}
	return !err;
}

void acp_gso_close(struct acp_peer *peer, struct sk_buff *skb)
{
	struct udphdr *uh = udp_hdr(skb);
	u32 size = skb->len - skb_transport_offset(skb);

	uh->len = htons(size);
	/*
	 * A frame that its tag or authentication tag covers has no UDP checksum, but a batch must.
	 */
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_transport_header(skb) - skb->head;
	skb->csum_offset = offsetof(struct udphdr, check);
	if (skb->protocol == htons(ETH_P_IP)) {
		struct iphdr *iph = ip_hdr(skb);

		uh->check = ~udp_v4_check(size, iph->saddr, iph->daddr, 0);
		__ip_select_ident(peer->job->node->net, iph, skb_shinfo(skb)->gso_segs);
	} else {
		struct ipv6hdr *iph = ipv6_hdr(skb);

		uh->check = ~udp_v6_check(size, &iph->saddr, &iph->daddr, 0);
	}
}
