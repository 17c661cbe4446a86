// SPDX-License-Identifier: GPL-2.0-only
/* Bursts: many pieces of a long copy that are built together, see build.h. */
#include "../upcall.h"
#include "build.h"
#include "framing.h"
#include "parts.h"
#include "route.h"

/*
 * A burst: consecutive pieces of a long copy, without its last one.  They differ in their numbers
 * and places only, so everything else is computed and written once.
 */
struct burst {
	struct acp_item *item;
	struct acp_region *source;
	u32 length;		/* bytes of each piece */
	u32 size;		/* bytes of head that are used */
	bool begun;		/* f and head are filled in */
	struct acp_frame f;
	union acp_bulk_head head;
};

/*
 * May its pieces go in bursts?  Only those of a copy that waits for nothing and has no checksum.
 * The first piece of a message that is behind others goes alone.
 */
static bool is_even(const struct acp_peer *peer, const struct acp_item *item)
{
	const struct acp_out *o = &item->out;

	if (o->m.type != ACP_MSG_DATA || o->m.op == ACP_OP_STRIDED || o->inline_data || o->fence ||
	    o->failed || o->chained || acp_op_accumulates(o->m.op) || acp_part_crc(peer))
		return false;
	if (unlikely(acp_msg_is_behind(&o->m)))
		return o->cut && !acp_station_due(item);
	return !o->m.depends;
}

static void burst_begin(struct acp_peer *peer, struct burst *w, u64 seq)
{
	struct acp_msg m acp_uncleared;
	bool fence;

	acp_out_piece(&w->item->out, 0, w->length, &m, &fence);
	acp_msg_encode(&w->head.m, &m);
	w->f = (struct acp_frame){ .type = ACP_FRAME_DATA, .seq = seq,
				   .flags = acp_job_encrypted(peer->job) ? ACP_FRAME_AEAD :
					    m.op ? ACP_FRAME_BULK | ACP_FRAME_MORE :
						   ACP_FRAME_BULK };
	if (fence)
		w->f.flags |= ACP_FRAME_FENCE;
	acp_flow_fill(&peer->flow, &w->f);
	w->f.length = w->size - sizeof(w->head.h) + w->length;
	acp_framing_head(peer, &w->head.h, &w->f);
	w->begun = true;
}

/* Begin the next frame, which will be encrypted, and copy its payload. */
static noinline bool burst_copy(struct acp_peer *peer, const struct acp_outbox *out,
				struct burst *w, struct acp_bulk *b, u64 offset)
{
	u32 size = w->size + w->length, head = w->size - sizeof(w->head.h);

	if (!acp_gso_begin(peer, out, b, size, size + ACP_FRAME_ENCRYPTED, 0))
		return false;
	acp_region_read_long(w->source, offset, acp_gso_body(peer, b) + head, w->length);
	return true;
}

/* ... or attach it. */
static __always_inline bool burst_attach(struct acp_peer *peer, const struct acp_outbox *out,
					 struct burst *w, struct acp_bulk *b, u64 offset)
{
	u32 head = w->size;
	u32 pages = PAGE_ALIGN(offset_in_page(offset) + w->length) / PAGE_SIZE;

	if (!acp_gso_begin(peer, out, b, head, head + w->length, pages))
		return false;
	acp_part_attach(b->skb, w->source, offset, w->length);
	return true;
}

/*
 * Build the next piece, as build_bulk() or build_encrypted() would.  Return false if there is no
 * memory.
 */
static bool burst_send(struct acp_peer *peer, struct acp_outbox *out, struct burst *w, u64 now)
{
	struct acp_out *o = &w->item->out;
	struct acp_sent *s = &peer->sent[peer->flow.next % ACP_FRAME_WINDOW];
	u64 seq = acp_flow_send(&peer->flow, s, now), cut = o->cut;
	u64 offset = acp_ga_offset(&peer->job->ga, o->m.src + cut);
	struct acp_bulk b;
	bool ok;

	s->piece = w->item;
	s->offset = cut;
	s->length = w->length;
	w->item->frames++;
	acp_out_cut(o, w->length);
	b.alone = false;
	ok = unlikely(acp_job_encrypted(peer->job)) ? burst_copy(peer, out, w, &b, offset) :
						   burst_attach(peer, out, w, &b, offset);
	if (!ok)
		return false;
	if (!w->begun)
		burst_begin(peer, w, seq);
	else if (unlikely(w->f.flags & ACP_FRAME_FENCE))
		acp_flow_set_fenced(&peer->flow, seq);
	w->f.flags &= ~ACP_FRAME_LAZY;
	if (acp_flow_lazy(&peer->flow, seq, !acp_part_awaited(w->item)))
		w->f.flags |= ACP_FRAME_LAZY;
	w->f.seq = seq;
	w->head.h.flags = w->f.flags;
	w->head.h.seq = cpu_to_be64(seq);
	if (likely(w->size == ACP_BULK_HEAD))
		w->head.m.dst = cpu_to_be64(o->m.dst + cut);
	else
		w->head.more.offset = cpu_to_be64(cut);
	acp_gso_end_burst(peer, out, &b, &w->f, &w->head, w->size);
	return true;
}

int acp_build_burst(struct acp_peer *peer, struct acp_outbox *out, int budget, u64 now)
{
	struct acp_item *item = list_first_entry(&peer->pending, struct acp_item, link);
	struct acp_out *o = &item->out;
	struct burst w acp_uncleared;
	bool ok = true;
	int n, sent;
	u8 status;

	if (!is_even(peer, item))
		return 0;
	acp_route_check(peer);
	if (!peer->measured) {
		acp_route_measure(peer);
		peer->measured = true;
	}
	w.item = item;
	w.begun = false;
	w.length = acp_part_max(peer, o);
	w.size = acp_op_indirect(o->m.op) ? sizeof(w.head) : ACP_BULK_HEAD;
	n = (u32)min_t(u64, o->m.size - o->cut - 1, (u64)budget * w.length) / w.length;
	if (n < 2)
		return 0;
	w.source = acp_region_get(peer->job, o->m.src + o->cut, (u64)n * w.length, o->m.origin,
				  ACP_ACCESS_READ, &status);
	if (!w.source)
		return 0;
	for (sent = 0; sent < n && acp_flow_room(&peer->flow) && ok; sent++)
		ok = burst_send(peer, out, &w, now);
	acp_region_put(w.source);
	acp_stat_add(peer->job->node, tx_burst, sent);
	peer->used = now;
	return ok ? sent : -ENOMEM;
}
