// SPDX-License-Identifier: GPL-2.0-only
/* Build frames from items: see build.h. */
#include "build.h"
#include "crc.h"
#include "../mem/region.h"
#include "../exec/chain.h"
#include "../exec/strided.h"
#include "framing.h"
#include "gso_tx.h"
#include "parts.h"
#include "route.h"
#include "../upcall.h"

#define LAZY_MSGS	8	/* in a frame whose acknowledgement may be late */
#define ATTACHED	512	/* bytes of a block; shorter blocks are copied */

void acp_build_hello(struct acp_peer *peer, struct acp_frame *f, struct acp_outbox *out)
{
	const struct acp_setup setup = acp_job_setup(peer->job);
	struct acp_frame_hello *h;
	struct sk_buff *skb;

	acp_route_check(peer);
	skb = acp_framing_new(peer, sizeof(struct acp_frame_hdr) + sizeof(*h));
	if (!skb)
		return;
	h = skb_put(skb, sizeof(*h));
	acp_hello_fill(h, &setup);
	acp_framing_finish(peer, skb, f);
	acp_outbox_add(out, skb);
}

bool acp_build_ack(struct acp_peer *peer, struct acp_outbox *out)
{
	u32 map = acp_flow_map_needed(&peer->flow) ? sizeof(struct acp_frame_ack) : 0;
	struct acp_frame f acp_uncleared;
	struct sk_buff *skb;

	f.type = ACP_FRAME_ACK;
	f.flags = 0;
	f.seq = 0;

	acp_route_check(peer);
	skb = acp_framing_new(peer, sizeof(struct acp_frame_hdr) + map);
	if (!skb)
		return false;
	if (map)
		acp_flow_fill_map(&peer->flow, skb_put(skb, map));
	acp_flow_fill(&peer->flow, &f);
	acp_framing_finish(peer, skb, &f);
	acp_stat_inc(peer->job->node, tx_acks);
	acp_outbox_add(out, skb);
	return true;
}

/* Attach copies of its pages, which nothing changes.  Return false if there is no memory. */
static bool copy_pages(struct sk_buff *skb, struct acp_region *r, u64 offset, u32 length)
{
	u32 n;

	for (; length; length -= n, offset += n) {
		struct page *page = alloc_page(GFP_ATOMIC | __GFP_NOWARN);

		if (!page)
			return false;
		n = min_t(u32, length, PAGE_SIZE);
		acp_region_read(r, offset, page_address(page), n);
		acp_gso_attach(skb, page, 0, n);
		put_page(page);
	}
	return true;
}

/* Return the checksum of the fragments from number i on. */
static u32 frags_crc(const struct sk_buff *skb, int i)
{
	u32 crc = ~0u;

	for (; i < skb_shinfo(skb)->nr_frags; i++) {
		const skb_frag_t *frag = &skb_shinfo(skb)->frags[i];
		u8 *p = kmap_local_page(skb_frag_page(frag));

		crc = acp_crc32c(crc, p + skb_frag_off(frag), skb_frag_size(frag));
		kunmap_local(p);
	}
	return ~crc;
}

/*
 * Long blocks stay in their pages, too, if the skb has enough fragments for all blocks of a piece
 * of @length bytes (one at each end of a page, and one for padding).  Otherwise they are copied.
 */
static bool blocks_attached(const struct acp_out *out, u32 length)
{
	u32 block = acp_strided_block(out->m.c), runs = length / block + 2;

	return block >= ATTACHED && 2 * runs + length / PAGE_SIZE < MAX_SKB_FRAGS;
}

static void attach_blocks(struct sk_buff *skb, struct acp_region *r, const struct acp_ga_layout *l,
			  const struct acp_msg *m, u64 stride)
{
	struct acp_walk w acp_uncleared;
	u32 n, left;

	acp_walk_begin(&w, acp_ga_offset(l, m->src), stride, m->c, m->b);
	for (left = m->length; left; left -= n) {
		n = acp_walk_run(&w, left);
		acp_part_attach(skb, r, w.at, n);
		acp_walk_skip(&w, n);
	}
}

/* Gather the payload of a piece.  Only that of a chain may fail. */
static noinline u8 copy_blocks(const struct acp_peer *peer, void *to, const struct acp_out *out,
			       const struct acp_msg *m, struct acp_region *r)
{
	if (out->chained)
		return acp_chain_read(peer->job, acp_chain_of(&out->m), m->origin,
				      m->src - out->m.src, to, m->length);
	acp_strided_read(r, &peer->job->ga, &out->m, m->b, to, m->length);
	return ACP_ST_OK;
}

/* Copy the payload of a piece. */
static u8 copy_payload(const struct acp_peer *peer, void *to, const struct acp_out *out,
		       const struct acp_msg *m, struct acp_region *r)
{
	const struct acp_ga_layout *l = &peer->job->ga;

	if (out->inline_data)
		memcpy(to, &out->m.a, m->length);
	else if (m->type == ACP_MSG_PING)
		memset(to, 0, m->length);
	else if (m->length && (!r || m->op == ACP_OP_STRIDED))
		return copy_blocks(peer, to, out, m, r);
	else if (m->length)
		acp_region_read(r, acp_ga_offset(l, m->src), to, m->length);
	return ACP_ST_OK;
}

/* Append a message with a copy of its payload, unless that fails. */
static u8 put_copy(const struct acp_peer *peer, struct sk_buff *skb, const struct acp_out *out,
		   const struct acp_msg *m, struct acp_region *r)
{
	u32 head = acp_msg_head(m), size = acp_msg_size(m);
	u8 *p = skb_put(skb, size), status;

	acp_msg_encode(p, m);
	status = copy_payload(peer, p + head, out, m, r);
	if (unlikely(status))
		skb_trim(skb, skb->len - size);
	else if (m->length & 7)
		memset(p + head + m->length, 0, size - head - m->length);
	return status;
}

/* Does it have 8 bytes, which wait for nothing? */
static __always_inline bool is_short(const struct acp_out *o)
{
	return o->m.size == sizeof(u64) && o->inline_data && !o->fence && !o->failed;
}

/* Is it a put of 8 bytes that waits for nothing? */
static bool is_word(const struct acp_out *o)
{
	const struct acp_msg data = { .type = ACP_MSG_DATA };

	return o->m.word == data.word && is_short(o);
}

/* Is it a message of 8 bytes? */
static bool is_short_message(const struct acp_out *o)
{
	return o->m.type == ACP_MSG_DATA && o->m.op == ACP_OP_SEND && is_short(o);
}

/* Messages that depend on nothing, or the second one on the first one. */
static bool in_sequence(const struct acp_out *o, const struct acp_out *former)
{
	if (acp_msg_is_behind(&o->m))
		return o->m.depends == 1 && acp_msg_in_turn(&former->m);
	return !(o->m.flags | o->m.depends | former->m.flags | former->m.depends);
}

/* The same for messages.  What is behind one that was refused fails, see cut_message(). */
static noinline bool joins_messages(const struct acp_item *item, const struct acp_out *former)
{
	const struct acp_out *o = &item->out;

	return is_short_message(o) && is_short_message(former) && o->m.dst == former->m.dst &&
	       in_sequence(o, former) && !acp_station_due(item);
}

/* Can the item share one WORDS message with the preceding item of the frame? */
static bool joins(const struct acp_item *item, const struct acp_out *former)
{
	const struct acp_out *o = &item->out;

	if (o->m.ticket != former->m.ticket + 1 || o->m.origin != former->m.origin)
		return false;
	return o->m.op ? joins_messages(item, former) : is_word(o) && is_word(former);
}

/* Return the next item of a frame, or NULL. */
static struct acp_item *next_item(const struct acp_sent *s, struct acp_item *item)
{
	return list_is_last(&item->link, &s->items) ? NULL : list_next_entry(item, link);
}

/* Append this item and all that are joined to it.  Return the item after them. */
static struct acp_item *put_words(struct sk_buff *skb, struct acp_frame *f,
				  const struct acp_sent *s, struct acp_item *item)
{
	struct acp_msg m = item->out.m;
	struct acp_msg_hdr *h;

	m.type = ACP_MSG_WORDS;
	m.length = 0;
	h = __skb_put(skb, acp_msg_head(&m));
	/* As in acp_out_piece(). */
	if (m.op)
		f->flags |= ACP_FRAME_FENCE;
	do {
		struct acp_msg_word *w = __skb_put(skb, sizeof(*w));

		w->dst = cpu_to_be64(m.op ? item->out.m.b : item->out.m.dst);
		memcpy(w->data, &item->out.m.a, sizeof(w->data));
		m.length += sizeof(*w);
		item = next_item(s, item);
	} while (item && item->joined);
	acp_msg_encode(h, &m);
	return item;
}

/*
 * Describe the piece of an item in @m.  Return the region of its payload; NULL if it is in those of
 * a chain, or if there is no payload (any more).
 */
static struct acp_region *open_piece(struct acp_peer *peer, struct acp_frame *f,
				     struct acp_item *item, u64 offset, u32 length,
				     struct acp_msg *m)
{
	struct acp_out *out = &item->out;
	struct acp_region *r = NULL;
	bool fence;
	u8 status;

	acp_out_piece(out, offset, length, m, &fence);
	if (m->length && !out->inline_data && m->type == ACP_MSG_DATA && !out->chained) {
		if (unlikely(m->op == ACP_OP_STRIDED))
			r = acp_strided_src(peer->job, &out->m, &status);
		else
			r = acp_region_get_bh(peer->job, m->src, m->length, m->origin,
					      ACP_ACCESS_READ, &status);
		if (!r) {
			acp_out_fail(out, status);
			acp_out_piece(out, offset, length, m, &fence);
		}
	}
	if (fence)
		f->flags |= ACP_FRAME_FENCE;
	return r;
}

/* Is the item a single message that is ready to send: without payload, or with an inline one? */
static bool is_whole(const struct acp_out *out)
{
	if (out->m.type == ACP_MSG_DATA)
		return out->inline_data && !out->failed;
	return !out->m.length && !out->failed;
}

/* The operands of a message are not those of its command; as in acp_out_piece(). */
static noinline void put_tag(struct acp_msg_hdr *h, struct acp_frame *f, const struct acp_msg *m)
{
	struct acp_msg_more *more = (void *)h + sizeof(struct acp_msg_data);

	more->total = cpu_to_be64(m->size);
	more->offset = 0;
	more->tag = cpu_to_be64(acp_out_tag(m));
	f->flags |= ACP_FRAME_FENCE;
}

static void put_whole(struct sk_buff *skb, struct acp_frame *f, const struct acp_out *out)
{
	const struct acp_msg *m = &out->m;
	u32 head = acp_msg_head(m), size = m->type == ACP_MSG_DATA ? m->size : 0;
	struct acp_msg_hdr *h = __skb_put(skb, head + ((size + 7) & ~7u));

	acp_msg_encode(h, m);
	if (out->fence || m->type == ACP_MSG_ASK)
		f->flags |= ACP_FRAME_FENCE;
	if (m->type != ACP_MSG_DATA)
		return;
	if (unlikely(m->op == ACP_OP_SEND))
		put_tag(h, f, m);
	h->flags |= ACP_MSG_LAST;
	h->length = cpu_to_be32(size);
	if (size)
		memcpy((void *)h + head, &m->a, sizeof(m->a));
}

/* Append the piece of an item, or a message that its source is gone. */
static noinline void put_part(struct acp_peer *peer, struct sk_buff *skb, struct acp_frame *f,
			      struct acp_item *item, u64 offset, u32 length)
{
	struct acp_msg m acp_uncleared;
	struct acp_region *r = open_piece(peer, f, item, offset, length, &m);
	u8 status = put_copy(peer, skb, &item->out, &m, r);

	if (unlikely(status)) {
		acp_out_fail(&item->out, status);
		open_piece(peer, f, item, offset, length, &m);
		put_copy(peer, skb, &item->out, &m, NULL);
	}
	if (r)
		acp_region_put(r);
}

static void put_piece(struct acp_peer *peer, struct sk_buff *skb, struct acp_frame *f,
		      struct acp_item *item, u64 offset, u32 length)
{
	if (likely(is_whole(&item->out)))
		put_whole(skb, f, &item->out);
	else
		put_part(peer, skb, f, item, offset, length);
}

/* Return the bytes that an item takes in a shared frame, or 0 if it does not share frames. */
static u32 short_size(const struct acp_item *item)
{
	const struct acp_out *out = &item->out;

	if (out->m.type != ACP_MSG_DATA)
		return acp_msg_size(&out->m);
	if (out->m.size > ACP_FRAME_SHORT)
		return 0;
	return acp_out_head(out) + ((out->m.size + 7) & ~7u);
}

/* If others are joined to a message, WORDS have only its tag of what DATA say about it. */
static u32 spared(const struct acp_sent *s, struct acp_item *item)
{
	const struct acp_item *next = item->out.m.op == ACP_OP_SEND ? next_item(s, item) : NULL;

	return next && next->joined ? sizeof(struct acp_msg_more) -
				      sizeof_field(struct acp_msg_word, tag) : 0;
}

/* Return the bytes of all items of a frame. */
static u32 items_size(const struct acp_sent *s)
{
	struct acp_item *item;
	u32 size = 0;

	list_for_each_entry(item, &s->items, link)
		size += item->joined ? sizeof(struct acp_msg_word) :
				       short_size(item) - spared(s, item);
	return size;
}

/* Cut the next message of an item.  The item fails if what it waits for has failed. */
static u32 cut_message(struct acp_item *item, u32 payload)
{
	u8 status = item->out.failed || item->joined ? ACP_ST_OK : acp_station_due(item);

	if (status)
		acp_out_fail(&item->out, status);
	item->frames++;
	return acp_out_cut(&item->out, payload);
}

static void cut_frame(struct acp_peer *peer, struct list_head *from, struct acp_sent *s)
{
	struct acp_item *item = list_first_entry(from, struct acp_item, link), *former;
	u32 room = peer->mtu - sizeof(struct acp_frame_hdr), size = short_size(item), n = 0;

	if (!size || list_is_singular(from)) {
		s->piece = item;
		if (!size && !peer->measured) {
			acp_route_measure(peer);
			peer->measured = true;
		}
		s->offset = item->out.cut;
		item->joined = false;
		s->length = cut_message(item, size ? ACP_FRAME_SHORT :
						acp_part_max(peer, &item->out));
		if (item->out.finished)
			acp_items_del(item);
		return;
	}
	s->piece = NULL;
	INIT_LIST_HEAD(&s->items);
	item->joined = false;
	do {
		cut_message(item, ACP_FRAME_SHORT);
		acp_items_del(item);
		acp_items_add(&s->items, item);
		room -= size;
		if (list_empty(from) || ++n == ACP_FRAME_MSGS)
			break;
		former = item;
		item = list_first_entry(from, struct acp_item, link);
		item->joined = joins(item, &former->out);
		size = item->joined ? sizeof(struct acp_msg_word) : short_size(item);
	} while (size && size <= room && !item->out.fence);
}

/*
 * Is the acknowledgement urgent: does something wait for an item of the frame, such as a put of
 * ours, or does it have so many messages that room for more may run short?
 */
static bool awaited(const struct acp_sent *s)
{
	const struct acp_item *item;
	u32 n = 0;

	if (s->piece)
		return acp_part_awaited(s->piece);
	list_for_each_entry(item, &s->items, link)
		if (++n > LAZY_MSGS || acp_part_awaited(item))
			return true;
	return false;
}

static void put_items(struct acp_peer *peer, struct sk_buff *skb, struct acp_frame *f,
		      const struct acp_sent *s)
{
	struct acp_item *item = list_first_entry(&s->items, struct acp_item, link), *next;

	for (; item; item = next) {
		next = next_item(s, item);
		if (next && next->joined)
			next = put_words(skb, f, s, item);
		else
			put_piece(peer, skb, f, item, 0, item->out.m.type == ACP_MSG_DATA ?
				  item->out.m.size : 0);
	}
}

/* Is it a piece of a long transfer? */
static bool is_bulk(const struct acp_sent *s)
{
	return s->piece && s->length > ACP_FRAME_SHORT;
}

/* Bytes of the messages that are copied. */
static u32 copied_size(const struct acp_sent *s)
{
	if (s->piece)
		return acp_out_head(&s->piece->out) +
		       max_t(u32, ACP_FRAME_SHORT, (s->length + 7) & ~7u);
	return items_size(s);
}

/* Build a frame that is copied into contiguous memory. */
static bool build_copy(struct acp_peer *peer, struct acp_outbox *out, struct acp_frame *f,
		       struct acp_sent *s)
{
	struct sk_buff *skb = acp_framing_new(peer, sizeof(struct acp_frame_hdr) +
						      copied_size(s));

	if (!skb)
		return false;
	if (s->piece)
		put_piece(peer, skb, f, s->piece, s->offset, s->length);
	else
		put_items(peer, skb, f, s);
	acp_flow_fill(&peer->flow, f);
	acp_framing_finish(peer, skb, f);
	acp_outbox_add(out, skb);
	return true;
}

/* Write the message and the checksum of a payload that is in the skb's fragments, or in @copy. */
static void put_bulk_head(struct acp_peer *peer, void *p, const struct acp_msg *m,
			  struct acp_frame *f, const struct acp_bulk *b, const u8 *copy)
{
	struct acp_frame_crc *c = p + acp_msg_head(m);

	acp_msg_encode(p, m);
	f->flags |= ACP_FRAME_BULK;
	if (m->op)
		f->flags |= ACP_FRAME_MORE;
	if (!acp_part_crc(peer))
		return;
	f->flags |= ACP_FRAME_CRC;
	c->crc = cpu_to_be32(copy ? ~acp_crc32c(~0u, copy, m->length) :
				    frags_crc(b->skb, b->first));
	c->reserved = 0;
}

/* Build a frame whose payload stays in its pages; it may share an skb with the last one in @out. */
static bool build_bulk(struct acp_peer *peer, struct acp_outbox *out, struct acp_frame *f,
		       const struct acp_msg *m, struct acp_region *r, bool again)
{
	u32 head = sizeof(struct acp_frame_hdr) + acp_msg_head(m) + acp_part_crc(peer);
	u64 offset = acp_ga_offset(&peer->job->ga, m->src);
	u32 pages = PAGE_ALIGN(offset_in_page(offset) + m->length) / PAGE_SIZE;
	u32 pad = -m->length & 7;
	struct acp_bulk b;

	if (pad && !acp_gso_reserve(head + ACP_GSO_PAD))
		return false;
	/* If the path drops GSO batches, retransmitted frames get through alone. */
	b.alone = again;
	if (!acp_gso_begin(peer, out, &b, head, head + m->length + pad, pages + !!pad))
		return false;
	/*
	 * Retransmit a copy: if the owner keeps writing to the payload, tag or checksum are wrong
	 * each time.
	 */
	if (!again) {
		acp_part_attach(b.skb, r, offset, m->length);
	} else if (!copy_pages(b.skb, r, offset, m->length)) {
		kfree_skb(b.skb);
		acp_stat_inc(peer->job->node, tx_nomem);
		return false;
	}
	put_bulk_head(peer, b.h + 1, m, f, &b, NULL);
	if (pad)
		acp_gso_pad(b.skb, pad);
	acp_flow_fill(&peer->flow, f);
	acp_gso_end(peer, out, &b, f);
	return true;
}

/* The source of a piece has failed; its frame has not been begun, but for the skb. */
static bool give_up(struct acp_bulk *b, struct acp_out *o, u8 status)
{
	kfree_skb(b->skb);
	acp_out_fail(o, status);
	return false;
}

/* The same for a piece of a copy from many blocks, which has an skb of its own. */
static noinline bool build_blocks(struct acp_peer *peer, struct acp_outbox *out,
				  struct acp_frame *f, struct acp_out *o, const struct acp_msg *m,
				  struct acp_region *r, bool again)
{
	u32 head = sizeof(struct acp_frame_hdr) + acp_msg_head(m) + acp_part_crc(peer);
	const struct acp_ga_layout *l = &peer->job->ga;
	bool attached = !again && r && blocks_attached(o, m->length);
	u32 pad = -m->length & 7;
	struct acp_bulk b = {};
	u8 *copy = NULL, status;

	if (pad && !acp_gso_reserve(ACP_GSO_PAD))
		return false;
	b.skb = acp_framing_new(peer, head + (attached ? 0 : m->length));
	if (!b.skb)
		return false;
	skb_put(b.skb, head - sizeof(*b.h));
	if (attached) {
		attach_blocks(b.skb, r, l, m, o->m.b);
	} else {
		copy = skb_put(b.skb, m->length);
		status = copy_blocks(peer, copy, o, m, r);
		if (unlikely(status))
			return give_up(&b, o, status);
	}
	put_bulk_head(peer, b.skb->data + sizeof(*b.h), m, f, &b, copy);
	if (pad)
		acp_gso_pad(b.skb, pad);
	acp_flow_fill(&peer->flow, f);
	acp_framing_finish(peer, b.skb, f);
	acp_outbox_add(out, b.skb);
	return true;
}

/*
 * Build a frame that will be encrypted; it may share an skb with the last one in @out.  Encryption
 * is in place, and the owner of the payload may write to it meanwhile, so the payload is copied.
 */
static bool build_encrypted(struct acp_peer *peer, struct acp_outbox *out, struct acp_frame *f,
			    struct acp_out *o, const struct acp_msg *m, struct acp_region *r,
			    bool again)
{
	u32 size = sizeof(struct acp_frame_hdr) + acp_msg_size(m), pad = -m->length & 7;
	struct acp_bulk b;
	u8 status;
	void *p;

	b.alone = again || !r;
	if (!acp_gso_begin(peer, out, &b, size, size + ACP_FRAME_ENCRYPTED, 0))
		return false;
	p = acp_gso_body(peer, &b);
	acp_msg_encode(p, m);
	p += acp_msg_head(m);
	status = copy_payload(peer, p, o, m, r);
	if (unlikely(status))
		return give_up(&b, o, status);
	memset(p + m->length, 0, pad);
	acp_flow_fill(&peer->flow, f);
	acp_gso_end(peer, out, &b, f);
	return true;
}

/*
 * Build the frame of a piece of a long transfer. noinline: short frames do not pay for its
 * variables.
 */
static noinline bool build_long(struct acp_peer *peer, struct acp_outbox *out,
				struct acp_frame *f, struct acp_sent *s, bool again)
{
	struct acp_msg m acp_uncleared;
	struct acp_region *r;
	bool built;

	r = open_piece(peer, f, s->piece, s->offset, s->length, &m);
	if (!m.length)
		return build_copy(peer, out, f, s);
	if (acp_job_encrypted(peer->job))
		built = build_encrypted(peer, out, f, &s->piece->out, &m, r, again);
	else if (unlikely(!r || m.op == ACP_OP_STRIDED))
		built = build_blocks(peer, out, f, &s->piece->out, &m, r, again);
	else
		built = build_bulk(peer, out, f, &m, r, again);
	if (r)
		acp_region_put(r);
	return built || (s->piece->out.failed && build_copy(peer, out, f, s));
}

/* Build the frame of a slot, for the first time or again. */
static __always_inline bool build(struct acp_peer *peer, struct acp_outbox *out,
				  struct acp_sent *s, u64 seq, bool again)
{
	struct acp_frame f acp_uncleared;

	f.type = ACP_FRAME_DATA;
	f.flags = 0;
	f.seq = seq;
	if (acp_flow_lazy(&peer->flow, seq, !awaited(s)))
		f.flags |= ACP_FRAME_LAZY;
	if (is_bulk(s))
		return build_long(peer, out, &f, s, again);
	return build_copy(peer, out, &f, s);
}

/* Cut a put of 8 bytes and build a frame of it alone: a fast path with the same result. */
static bool build_lone(struct acp_peer *peer, struct acp_outbox *out, struct acp_item *item,
		       struct acp_sent *s, u64 now)
{
	u64 seq = acp_flow_send(&peer->flow, s, now);
	struct acp_msg_lone *lone;
	struct acp_frame f acp_uncleared;
	struct sk_buff *skb;

	s->piece = item;
	s->offset = 0;
	s->length = sizeof(lone->data);
	item->frames++;
	item->out.cut = sizeof(lone->data);
	item->out.finished = true;
	acp_items_del(item);
	f.type = ACP_FRAME_DATA;
	f.flags = acp_flow_lazy(&peer->flow, seq, !acp_part_awaited(item)) ? ACP_FRAME_LAZY : 0;
	f.seq = seq;
	skb = acp_framing_new(peer, sizeof(struct acp_frame_hdr) + sizeof(*lone));
	if (!skb)
		return false;
	lone = __skb_put(skb, sizeof(*lone));
	lone->h.word = ACP_MSG_LONE;
	lone->h.origin = cpu_to_be32(item->out.m.origin);
	lone->h.length = cpu_to_be32(sizeof(lone->data));
	lone->h.ticket = cpu_to_be64(item->out.m.ticket);
	lone->dst = cpu_to_be64(item->out.m.dst);
	memcpy(lone->data, &item->out.m.a, sizeof(lone->data));
	acp_flow_fill(&peer->flow, &f);
	acp_framing_finish(peer, skb, &f);
	acp_outbox_add(out, skb);
	return true;
}

bool acp_build_new(struct acp_peer *peer, struct list_head *from, struct acp_outbox *out,
		   u64 now)
{
	struct acp_item *item = list_first_entry(from, struct acp_item, link);
	struct acp_flow *flow = &peer->flow;
	struct acp_sent *s = &peer->sent[flow->next % ACP_FRAME_WINDOW];
	u64 seq;

	/* Even without a route the frame gets a number, so that its timeout runs. */
	acp_route_check(peer);
	peer->used = now;
	if (likely(from == &peer->pending && is_word(&item->out) && list_is_singular(from)))
		return build_lone(peer, out, item, s, now);
	cut_frame(peer, from, s);
	if (from == &peer->answers)
		seq = acp_flow_send_answer(flow, s, now);
	else
		seq = acp_flow_send(flow, s, now);
	return build(peer, out, s, seq, false);
}

bool acp_build_again(struct acp_peer *peer, struct acp_outbox *out, struct acp_sent *s, u64 seq)
{
	return build(peer, out, s, seq, true);
}

u32 acp_build_size(const struct acp_peer *peer, const struct acp_sent *s)
{
	u32 size = sizeof(struct acp_frame_hdr);

	if (s->piece && s->piece->out.failed)
		return size + sizeof(struct acp_msg_data);
	if (s->piece)
		return size + acp_out_head(&s->piece->out) + acp_part_crc(peer) +
		       round_up(s->length, 8);
	return size + items_size(s);
}
