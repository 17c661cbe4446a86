// SPDX-License-Identifier: GPL-2.0-only
/* Received GSO batches: see gso_rx.h. */
#include <linux/udp.h>
#include <net/sock.h>
#include <net/udp.h>
#include "../drop.h"
#include "../trace.h"
#include "gso_rx.h"
#include "gso_tx.h"
#include "payload.h"
#include "rx.h"
#include "skbs.h"

#define FRAMES_MAX	128	/* frames of a received batch; the kernel builds no longer ones */
#define HEAD_MAX	(sizeof(union acp_bulk_head) + sizeof(struct acp_frame_crc))

/* Memory for copies of received payloads. */
static DEFINE_PER_CPU(struct page_frag, copies);

void acp_gso_rx_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct page_frag *mem = per_cpu_ptr(&copies, cpu);

		if (mem->page)
			put_page(mem->page);
		mem->page = NULL;
	}
}

/*
 * A burst of decrypted frames, in memory of this CPU: consecutive pieces of one copy, at a distance
 * of gso_in.each bytes.
 */
struct gso_burst {
	u8 *room;		/* NULL: there is none */
	u32 count;
	struct acp_peer *peer;
	struct acp_frame f;	/* header of the first frame, and its message */
	struct acp_msg m;
};

struct gso_in {
	struct acp_socket *socket;
	struct acp_node *node;
	struct sk_buff *skb;
	struct acp_verdict verdict;
	struct acp_job *job;		/* job of the last frame, and its sender */
	struct acp_peer *peer;
	struct acp_bytes at;		/* position of the current frame */
	u32 size, each;			/* its bytes, and those of all frames but the last */
	u32 head;			/* bytes before its payload, without a checksum */
	struct gso_burst burst;
	const struct acp_secret *opener;	/* owner of burst.room */
	u32 alone;			/* frames to process one by one, from this one on */
	struct acp_frame f;
	u8 memory[HEAD_MAX] __aligned(8);	/* what precedes the payload */
	union acp_bulk_head next;	/* ... of a frame that may continue the run */
};

static void drop(struct gso_in *t, const struct acp_frame *f, enum acp_stat reason)
{
	acp_drop(t->node, t->skb, f, reason);
}

static void take_alone(struct gso_in *t)
{
	struct sk_buff *skb;

	if (t->size > ACP_MTU_MAX) {
		drop(t, NULL, ACP_STAT_drop_bad_len);
		return;
	}
	skb = acp_skb_part(t->skb, t->at.at, t->size);
	if (skb)
		acp_rx_take(t->socket, skb, false, &t->verdict);
	else
		drop(t, NULL, ACP_STAT_drop_nomem);
}

/*
 * Does the frame belong to a job of ours, and is its source right?  Mostly as for the frame before.
 */
static bool find_job(struct gso_in *t, const struct acp_frame *last)
{
	const struct acp_frame *f = &t->f;

	if (t->job && f->job == last->job && f->generation == last->generation &&
	    f->node == last->node && f->color == last->color)
		return true;
	t->job = acp_rx_job(t->socket, &t->verdict, f, &t->peer);
	return t->job;
}

/* Is the tag of a BULK frame right?  @h: all but the payload, which is at t->at + @behind. */
static bool tag_right(const struct gso_in *t, const struct acp_frame_hdr *h, u32 behind)
{
	const struct acp_bytes at = { t->at.at + behind, t->at.frag, t->at.start };

	return acp_rx_tag_right(t->job, h, &t->f, t->skb, at);
}

/* Process a BULK frame.  @h: all but the payload. */
static void take_bulk(struct gso_in *t, const struct acp_frame_hdr *h)
{
	struct sk_buff *skb = t->skb;

	if (acp_payload_shared(t->job, &t->f, skb)) {
		take_alone(t);
		return;
	}
	if (!tag_right(t, h, acp_frame_tagged(&t->f))) {
		drop(t, &t->f, ACP_STAT_drop_bad_mac);
		return;
	}
	if (!acp_rx_bulk_right(t->job, skb, t->at.at, h, &t->f))
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
#define OFFSET	(offsetof(union acp_bulk_head, more.offset) / sizeof(__be64))

/* Can other frames continue this one?  *@m: its message. */
static bool is_in_run(const struct gso_in *t, struct acp_msg *m)
{
	const union acp_bulk_head *first = (const void *)t->memory;

	/* The head of a run has no checksum. */
	if ((first->m.h.flags & (ACP_MSG_LAST | ACP_MSG_FAIL)) || (t->f.flags & ACP_FRAME_CRC))
		return false;
	return acp_msg_decode(m, &first->m, t->f.length, t->head - sizeof(first->h)) ==
		       t->f.length &&
	       !m->op == !(t->f.flags & ACP_FRAME_MORE) &&
	       acp_msg_in_run(m, t->f.flags & ACP_FRAME_FENCE);
}

/*
 * Does the frame in t->next continue the run as number i after the first?  Its number and its place
 * must fit; everything else but the tag must be the same.
 */
static bool continues(const struct gso_in *t, const struct acp_msg *m, u32 i)
{
	const __be64 *a = ((const union acp_bulk_head *)t->memory)->words, *b = t->next.words;
	u32 k, place = m->op ? OFFSET : DST;
	__be64 other = 0;

	for (k = 1; k < t->head / sizeof(__be64); k++)
		if (k != SEQ && k != place)
			other |= a[k] ^ b[k];
	return !other && b[SEQ] == cpu_to_be64(t->f.seq + i) &&
	       b[place] == cpu_to_be64((m->op ? m->b : m->dst) + (u64)i * m->length);
}

/*
 * Read what precedes the payload of the frame number i after the current one, and move @at behind
 * it.  Return false if there is no such frame.
 */
static bool read_next(struct gso_in *t, struct acp_bytes *at, u32 i)
{
	at->at = t->at.at + i * t->size;
	return t->skb->len >= at->at + t->size && !acp_bytes_copy(t->skb, at, &t->next, t->head);
}

static void trace_pieces(const struct gso_in *t, u32 count)
{
	struct acp_frame f = t->f;

	for (; count; count--, f.seq++)
		trace_acp_receive(t->peer, &f);
}

/*
 * Return how many frames, from the current one on, form a run and have the right tags.  The next
 * frame is known to continue the run.
 */
static u32 check_burst(struct gso_in *t, const struct acp_msg *m)
{
	struct acp_bytes at = { t->at.at + t->head, t->at.frag, t->at.start };
	const void *h = t->memory;
	u32 n;

	for (n = 0; acp_rx_tag_right(t->job, h, &t->f, t->skb, at); h = &t->next) {
		n++;
		if (!read_next(t, &at, n) || !continues(t, m, n))
			break;
	}
	return n;
}

/*
 * Return memory for copies of payloads of @size bytes, one after the other.  *@most: how many fit.
 */
static struct page *copies_get(u32 size, u32 *most)
{
	struct page_frag *mem = this_cpu_ptr(&copies);

	if (!skb_page_frag_refill(2 * size, mem, GFP_ATOMIC | __GFP_NOWARN))
		return NULL;
	*most = mem->size / size;
	/* If reception nests, the inner one must get other memory. */
	mem->offset = mem->size;
	get_page(mem->page);
	return mem->page;
}

/* The same for payloads that others may write to: each is copied to @to and checked there. */
static noinline u32 check_copies(struct gso_in *t, const struct acp_msg *m, u8 *to, u32 most)
{
	struct acp_bytes at = { t->at.at + t->head, t->at.frag, t->at.start };
	const struct acp_frame_hdr *h = (const void *)t->memory;
	u32 n, size = t->size - t->head;

	for (n = 0; n < most; h = &t->next.h, to += size) {
		if (acp_bytes_copy(t->skb, &at, to, size) ||
		    acp_payload_tag_of(t->job, h, &t->f, to) != be64_to_cpu(h->tag))
			break;
		n++;
		if (!read_next(t, &at, n) || !continues(t, m, n))
			break;
	}
	return n;
}

/* Process a run of checked frames as a whole.  Return the number of frames, or 0 if that failed. */
static u32 take_burst(struct gso_in *t, const struct acp_msg *m, const struct acp_pieces *pieces)
{
	u32 n = pieces->count;

	if (n <= 1 || !acp_peer_pieces(t->peer, t->skb, &t->f, m, pieces)) {
		/*
		 * Process all of them one by one: a new run after each would check each frame up to
		 * n times.
		 */
		t->alone = n;
		return 0;
	}
	if (trace_acp_receive_enabled())
		trace_pieces(t, n);
	return n;
}

static noinline u32 take_copies(struct gso_in *t, const struct acp_msg *m)
{
	struct acp_pieces pieces = { .length = m->length, .distance = t->size - t->head };
	struct page *page;
	u32 most, count;
	u8 *to;

	page = copies_get(pieces.distance, &most);
	if (!page)
		return 0;
	to = page_address(page);
	pieces.data = to;
	pieces.count = check_copies(t, m, to, most);
	count = take_burst(t, m, &pieces);
	put_page(page);
	return count;
}

/*
 * Process a BULK frame and all frames that continue it at once, each authenticated by its own tag:
 * one lookup, one reference, and taking the lock twice.  Return the number of frames; 0 if the
 * frame must be processed by itself.
 */
static u32 take_pieces(struct gso_in *t)
{
	struct acp_bytes at = { t->at.at + t->head, t->at.frag, t->at.start };
	struct acp_pieces pieces = { .at = at, .distance = t->size };
	struct acp_msg m acp_uncleared;

	/* Check the tag last: for a long payload it is expensive. */
	if (t->job->integrity == ACP_INTEGRITY_CRC32C || !is_in_run(t, &m) ||
	    !read_next(t, &at, 1) || !continues(t, &m, 1))
		return 0;
	if (acp_payload_shared(t->job, &t->f, t->skb))
		return take_copies(t, &m);
	pieces.length = m.length;
	pieces.count = check_burst(t, &m);
	return take_burst(t, &m, &pieces);
}

/* ---- encrypted frames ---- */

/* Process a decrypted frame as if it had been received alone. */
static void deliver(struct gso_in *t, struct acp_peer *peer, const u8 *frame,
		    const struct acp_frame *f)
{
	struct sk_buff *skb = acp_skb_like(t->skb, f->length);

	if (!skb) {
		drop(t, f, ACP_STAT_drop_nomem);
		return;
	}
	skb_put_data(skb, frame + ACP_AEAD_BODY, f->length);
	trace_acp_receive(peer, f);
	acp_frame_note(skb, f, skb->data, f->length);
	acp_frame_cb(skb)->at = acp_bytes_first(skb);
	acp_frame_cb(skb)->size = 0;
	acp_peer_frame(peer, skb, f);
}

/* Process the run as a whole, or else each frame by itself. */
static void end_burst(struct gso_in *t)
{
	struct gso_burst *r = &t->burst;
	struct acp_pieces pieces = { .count = r->count, .distance = t->each };
	bool taken = false;
	u32 i;

	if (r->count > 1) {
		pieces.data = r->room + ACP_AEAD_BODY + acp_msg_head(&r->m);
		pieces.length = r->m.length;
		taken = acp_peer_pieces(r->peer, t->skb, &r->f, &r->m, &pieces);
	}
	for (i = 0; i < r->count; i++, r->f.seq++) {
		if (!taken)
			deliver(t, r->peer, r->room + i * t->each, &r->f);
		else
			trace_acp_receive(r->peer, &r->f);
	}
	r->count = 0;
}

/* As is_in_run(), for a decrypted frame. */
static bool is_open_in_run(const struct gso_in *t, const u8 *frame, struct acp_msg *m)
{
	const struct acp_msg_hdr *h = (const void *)(frame + ACP_AEAD_BODY);

	return t->f.length > sizeof(struct acp_msg_data) + ACP_FRAME_SHORT &&
	       acp_msg_decode(m, h, t->f.length, t->f.length) == t->f.length &&
	       acp_msg_in_run(m, t->f.flags & ACP_FRAME_FENCE);
}

/* Is the place of a message behind that of the last one of the run?  The rest must be the same. */
static bool is_next_place(const struct gso_burst *r, const struct acp_msg_data *m,
			  const struct acp_msg_data *n)
{
	const struct acp_msg_more *a = (const void *)(m + 1), *b = (const void *)(n + 1);
	u64 more = (u64)r->count * r->m.length;

	if (!r->m.op)
		return n->dst == cpu_to_be64(r->m.dst + more);
	return n->dst == m->dst && a->total == b->total && a->tag == b->tag &&
	       b->offset == cpu_to_be64(r->m.b + more);
}

/* As continues(): does the decrypted frame continue the run? */
static bool is_next(const struct gso_in *t, const u8 *frame)
{
	const struct gso_burst *r = &t->burst;
	const struct acp_frame_hdr *a = (const void *)r->room, *b = (const void *)frame;
	const struct acp_msg_data *m = (const void *)(r->room + ACP_AEAD_BODY);
	const struct acp_msg_data *n = (const void *)(frame + ACP_AEAD_BODY);

	return b->seq == cpu_to_be64(r->f.seq + r->count) && b->ack == a->ack &&
	       !memcmp(&a->version, &b->version, offsetof(struct acp_frame_hdr, seq) -
		       offsetof(struct acp_frame_hdr, version)) &&
	       !memcmp(&m->h, &n->h, sizeof(m->h)) && is_next_place(r, m, n);
}

/* Process a frame that was decrypted behind the run. */
static void take_open(struct gso_in *t, u8 *frame)
{
	struct gso_burst *r = &t->burst;

	if (r->count && !is_next(t, frame)) {
		end_burst(t);
		memmove(r->room, frame, t->size);
		frame = r->room;
	}
	if (!r->count) {
		if (!is_open_in_run(t, frame, &r->m)) {
			deliver(t, t->peer, frame, &t->f);
			return;
		}
		r->peer = t->peer;
		r->f = t->f;
	}
	r->count++;
}

/* May the frame be decrypted here: is it an encrypted DATA frame of a peer, with the right tag? */
static bool may_open(struct gso_in *t, const struct acp_frame_hdr *h, u32 *cipher)
{
	if (!t->peer || t->f.type != ACP_FRAME_DATA || !(t->f.flags & ACP_FRAME_AEAD) ||
	    t->each > ACP_MTU_MAX || !acp_frame_nonce(h, cipher) || !tag_right(t, h, ACP_AEAD_BODY))
		return false;
	if (!t->burst.room) {
		t->burst.room = acp_aead_room_get(&t->peer->secret);
		t->opener = &t->peer->secret;
	}
	return t->burst.room;
}

static noinline void close_room(struct gso_in *t)
{
	end_burst(t);
	acp_aead_room_put(t->opener);
}

/* Decrypt a frame behind its run.  Return false if the frame must be processed alone. */
static noinline bool take_encrypted(struct gso_in *t)
{
	struct acp_bytes at = { t->at.at + ACP_AEAD_BODY, t->at.frag, t->at.start };
	struct gso_burst *r = &t->burst;
	const void *from;
	u8 *frame;
	u32 cipher;
	int err = 0;

	if (!may_open(t, (const void *)t->memory, &cipher))
		return false;
	if ((r->count + 1) * t->each > ACP_AEAD_ROOM)
		end_burst(t);
	frame = r->room + r->count * t->each;
	memcpy(frame, t->memory, ACP_AEAD_BODY);
	from = acp_bytes_straight(t->skb, &at, t->size - ACP_AEAD_BODY);
	if (!from)
		err = acp_bytes_copy(t->skb, &at, frame + ACP_AEAD_BODY, t->size - ACP_AEAD_BODY);
	if (!err)
		err = acp_aead_open(&t->peer->secret, frame, from, t->size);
	if (err) {
		drop(t, &t->f, err == -EBADMSG ? ACP_STAT_drop_bad_aead : ACP_STAT_drop_nomem);
		return true;
	}
	acp_aead_heard(&t->peer->secret, cipher);
	take_open(t, frame);
	return true;
}

/* Read everything before the payload once; all checks use this copy. */
static bool read_head(struct gso_in *t)
{
	struct acp_bytes at = t->at;
	u32 more;
	u8 flags;

	t->head = ACP_BULK_HEAD;
	if (acp_bytes_copy(t->skb, &at, t->memory, ACP_BULK_HEAD))
		return false;
	acp_frame_cb(t->skb)->body = t->memory + sizeof(struct acp_frame_hdr);
	flags = ((const struct acp_frame_hdr *)t->memory)->flags;
	if (flags & ACP_FRAME_MORE)
		t->head += sizeof(struct acp_msg_more);
	more = t->head - ACP_BULK_HEAD;
	if (flags & ACP_FRAME_CRC)
		more += sizeof(struct acp_frame_crc);
	return !acp_bytes_copy(t->skb, &at, t->memory + ACP_BULK_HEAD, more);
}

/* Process the frame at t->at, and perhaps some after it.  Return the number of frames. */
static u32 take(struct gso_in *t)
{
	const struct acp_frame_hdr *h = (const void *)t->memory;
	struct acp_frame last = t->f;
	enum acp_frame_error error = ACP_FRAME_BAD_LEN;
	u32 count;

	*acp_frame_cb(t->skb) = (struct acp_frame_cb){ .size = t->size };
	if (t->size <= HEAD_MAX) {
		take_alone(t);
		return 1;
	}
	if (read_head(t))
		error = acp_frame_decode(&t->f, h, t->size);
	if (error) {
		acp_rx_bad_header(t->node, error, t->skb);
		t->job = NULL;
		return 1;
	}
	if (!find_job(t, &last))
		return 1;
	if (!t->peer || !(t->f.flags & ACP_FRAME_BULK) || acp_job_encrypted(t->job)) {
		if (!acp_job_encrypted(t->job) || !take_encrypted(t))
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

void acp_gso_received(struct acp_node *node, struct acp_socket *socket, struct sk_buff *skb)
{
	struct gso_in t acp_uncleared;
	u32 each = skb_shinfo(skb)->gso_size, count;

	t.node = node;
	t.socket = socket;
	t.skb = skb;
	t.verdict.skb = skb;
	t.verdict.job = NULL;
	t.job = NULL;
	t.peer = NULL;
	t.alone = 0;
	t.each = each;
	t.burst.room = NULL;
	t.burst.count = 0;
	memset(&t.f, 0, sizeof(t.f));
	*acp_frame_cb(skb) = (struct acp_frame_cb){ .size = skb->len };
	/*
	 * No sender builds a GSO batch of datagrams that are too short for frames, or such a long
	 * one.
	 */
	if (each < sizeof(struct acp_frame_hdr) || skb->len > each * FRAMES_MAX) {
		drop(&t, NULL, ACP_STAT_drop_bad_len);
		kfree_skb(skb);
		return;
	}
	for (t.at = acp_bytes_first(skb); t.at.at < skb->len; t.at.at += each * count) {
		t.size = min(each, skb->len - t.at.at);
		acp_bytes_seek(skb, &t.at);
		count = take(&t);
	}
	if (t.burst.room)
		close_room(&t);
	acp_skb_free(skb);
}
