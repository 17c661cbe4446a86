// SPDX-License-Identifier: MIT
/*
 * The environment of a simulated node's ends of its flows: builds frames from items, keeps lists,
 * sets timers, and passes events to the core (kernel/core/), which decides what to do. See sim.h.
 */
#include "crc32c.h"
#include "sim.h"
#include "test.h"

#define JOB		77
#define GENERATION	3
#define HEADER		((u32)sizeof(struct acp_frame_hdr))
#define ACK_DELAY	(2 * SIM_US)
#define LIMIT		(10 * SIM_S)
#define BIGGEST		2048

static u64 tag_of(const struct sim *s, const void *wire, const struct acp_frame *f)
{
	const struct acp_frame_hdr *h = wire;

	return siphash24(&s->key, &h->version, acp_frame_tagged(f) - sizeof(h->tag));
}

static void flush(struct sim *s, struct sim_peer *p);
static void take(struct sim *s, struct sim_peer *p, struct sim_packet *packet, u64 seq, bool fence);

/* ---- lists of items ---- */

static void list_init(struct sim_list *l)
{
	l->first = NULL;
	l->last = &l->first;
}

static void list_add(struct sim_list *l, struct sim_item *item)
{
	item->next = NULL;
	*l->last = item;
	l->last = &item->next;
}

static struct sim_item *list_take(struct sim_list *l)
{
	struct sim_item *item = l->first;

	l->first = item->next;
	if (!l->first)
		l->last = &l->first;
	return item;
}

/* ---- building frames ---- */

static struct acp_frame header(const struct sim_peer *p, u8 type)
{
	return (struct acp_frame){ .type = type, .color = p->color, .job = JOB,
				   .generation = GENERATION, .node = p->me->id };
}

/* Limit of datagrams. What was cut before a lower limit was known is fragmented, as by IP. */
static u32 width_of(const struct sim *s, const struct sim_peer *p)
{
	return p->narrow ? p->narrow : s->mtu;
}

/* Complete the header of a frame of "length" bytes and send it. */
static void emit(struct sim *s, struct sim_peer *p, struct acp_frame *f, u8 *wire, u32 length)
{
	struct acp_frame_hdr *h = (void *)wire;

	f->length = length - HEADER;
	acp_frame_encode(h, f);
	h->tag = cpu_to_be64(tag_of(s, wire, f));
	if (s->net.swallow && min_t(u32, length, width_of(s, p)) > s->net.swallow)
		s->n.swallowed++;
	else
		sim_transmit(s, p->me->id, p->node, p->color, wire, length);
}

static u32 max_payload(const struct sim *s, const struct sim_peer *p, const struct acp_out *out)
{
	u32 head = acp_out_head(out) + (s->crc ? sizeof(struct acp_frame_crc) : 0);

	return (width_of(s, p) - HEADER - head) & ~7u;
}

/* Memory from which a piece is read, or NULL if it no longer exists. */
static const u8 *source_of(struct sim *s, const struct acp_msg *m)
{
	if (acp_ga_stag(&s->ga, m->src) == SIM_STAG_LOST && s->lost_revoked)
		return NULL;
	return s->rank[acp_ga_rank(&s->ga, m->src)].memory + acp_ga_offset(&s->ga, m->src);
}

/* Does anything wait for the acknowledgement? */
static bool is_awaited(const struct sim_item *item)
{
	return item->arrival || (item->command && item->out.m.type == ACP_MSG_DATA);
}

/* Start of the payload of a message in a frame that may have a checksum. */
static u32 payload_at(const struct acp_frame *f, const struct acp_msg *m)
{
	return acp_msg_head(m) + (f->flags & ACP_FRAME_CRC ? sizeof(struct acp_frame_crc) : 0);
}

static void put_crc(struct acp_frame *f, void *at, u32 crc)
{
	struct acp_frame_crc *c = at;

	f->flags |= ACP_FRAME_CRC;
	c->crc = cpu_to_be32(crc);
	c->reserved = 0;
}

/* The payload of a piece. If it is not contiguous, it is gathered in "room". */
static const u8 *payload_of(struct sim *s, const struct sim_item *item, const struct acp_msg *m,
			    u8 *room)
{
	const u8 *source = source_of(s, m);
	struct acp_walk w;
	u32 at, n;

	if (!source || m->op != ACP_OP_STRIDED)
		return source;
	acp_walk_begin(&w, acp_ga_offset(&s->ga, m->src), item->out.m.b, m->c, m->b);
	for (at = 0; at < m->length; at += n) {
		n = acp_walk_run(&w, m->length - at);
		SIM_CHECK(s, n && w.at <= s->memory && n <= s->memory - w.at);
		memcpy(room + at, s->rank[acp_ga_rank(&s->ga, m->src)].memory + w.at, n);
		acp_walk_skip(&w, n);
	}
	return room;
}

/* Write a message or a piece of a transfer; returns its size. */
static u32 put_message(struct sim *s, struct sim_item *item, u64 offset, u32 length,
		       struct acp_frame *f, u8 *at)
{
	const u8 *source = (const u8 *)&item->out.m.a;
	u8 room[BIGGEST];
	struct acp_msg m;
	bool fence;
	u32 head;

	acp_out_piece(&item->out, offset, length, &m, &fence);
	if (m.length && !item->out.inline_data)
		source = payload_of(s, item, &m, room);
	if (!source) {
		acp_out_fail(&item->out, ACP_ST_STAG);
		acp_out_piece(&item->out, offset, length, &m, &fence);
	}
	acp_msg_encode(at, &m);
	if (m.length > ACP_FRAME_SHORT)
		f->flags |= ACP_FRAME_BULK | (m.op ? ACP_FRAME_MORE : 0);
	if (m.length > ACP_FRAME_SHORT && s->crc)
		put_crc(f, at + acp_msg_head(&m), crc32c(source, m.length));
	head = payload_at(f, &m);
	if (m.length) {
		memcpy(at + head, source, m.length);
		memset(at + head + m.length, 0, -m.length & 7);
	}
	if (fence)
		f->flags |= ACP_FRAME_FENCE;
	if (is_awaited(item))
		f->flags &= ~ACP_FRAME_LAZY;
	return head + ((m.length + 7) & ~7u);
}

/* Build a frame from its contents, also to retransmit it, and send it. */
static void send_frame(struct sim *s, struct sim_peer *p, u64 seq)
{
	struct sim_sent *t = acp_flow_token(&p->flow, seq);
	u8 wire[BIGGEST] __attribute__((aligned(8)));
	struct acp_frame f = header(p, ACP_FRAME_DATA);
	struct sim_item *item;
	u32 at = HEADER;

	f.seq = seq;
	f.flags = ACP_FRAME_LAZY;
	acp_flow_fill(&p->flow, &f);
	if (t->piece)
		at += put_message(s, t->piece, t->offset, t->length, &f, wire + at);
	for (item = t->items; item; item = item->next)
		at += put_message(s, item, 0, item->out.m.size, &f, wire + at);
	if (!acp_flow_lazy(&p->flow, seq, f.flags & ACP_FRAME_LAZY))
		f.flags &= ~ACP_FRAME_LAZY;
	SIM_CHECK(s, at <= s->mtu);
	SIM_CHECK(s, t->fence == !!(f.flags & ACP_FRAME_FENCE));
	s->n.data++;
	t->size = at;
	emit(s, p, &f, wire, at);
}

static bool fits_with_others(const struct sim_item *item)
{
	return acp_out_single(&item->out, ACP_FRAME_SHORT);
}

/* Short messages share a frame, in the order in which they were queued. */
static void load_messages(struct sim *s, struct sim_peer *p, struct sim_list *from,
			  struct sim_sent *t)
{
	struct sim_list items;
	struct acp_msg m;
	u32 at = HEADER, count = 0;
	bool fence;

	list_init(&items);
	while (from->first && fits_with_others(from->first) && count < ACP_FRAME_MSGS) {
		struct sim_item *item = from->first;
		u32 payload = item->out.m.type == ACP_MSG_DATA ? item->out.m.size : 0;
		u32 size = acp_msg_head(&item->out.m) + ((payload + 7) & ~7u);

		if (at + size > width_of(s, p) || (count && item->out.fence && sim_random(s) % 2))
			break;
		sim_ranks_due(s, item);
		acp_out_cut(&item->out, ACP_FRAME_SHORT);
		acp_out_piece(&item->out, 0, item->out.cut, &m, &fence);
		SIM_CHECK(s, item->out.finished);
		list_add(&items, list_take(from));
		item->frames = 1;
		t->fence |= fence;
		at += size;
		count++;
	}
	t->items = items.first;
}

static void load_piece(struct sim *s, struct sim_peer *p, struct sim_sent *t)
{
	struct sim_item *item = p->pending.first;
	struct acp_msg m;

	t->piece = item;
	t->offset = item->out.cut;
	sim_ranks_due(s, item);
	if (!item->out.failed && !source_of(s, &item->out.m))
		acp_out_fail(&item->out, ACP_ST_STAG);
	t->length = acp_out_cut(&item->out, max_payload(s, p, &item->out));
	acp_out_piece(&item->out, t->offset, t->length, &m, &t->fence);
	item->frames++;
	if (item->out.finished)
		list_take(&p->pending);
}

static void send_new(struct sim *s, struct sim_peer *p)
{
	struct sim_sent *t = &p->sent[p->flow.next % ACP_FRAME_WINDOW];
	u64 seq = acp_flow_send(&p->flow, t, s->now);

	*t = (struct sim_sent){ 0 };
	if (fits_with_others(p->pending.first))
		load_messages(s, p, &p->pending, t);
	else
		load_piece(s, p, t);
	send_frame(s, p, seq);
}

static void send_answers(struct sim *s, struct sim_peer *p)
{
	struct sim_sent *t = &p->sent[p->flow.next % ACP_FRAME_WINDOW];
	u64 seq = acp_flow_send_answer(&p->flow, t, s->now);

	*t = (struct sim_sent){ 0 };
	load_messages(s, p, &p->answers, t);
	send_frame(s, p, seq);
}

static bool waiting(const struct sim_peer *p)
{
	return p->pending.first || p->answers.first;
}

/* ---- time ---- */

static void send_hello(struct sim *s, struct sim_peer *p, struct acp_frame *f)
{
	u8 wire[HEADER + sizeof(struct acp_frame_hello)] __attribute__((aligned(8)));
	struct acp_frame_hello *h = (void *)(wire + HEADER);

	acp_hello_fill(h, &p->me->setup);
	s->n.hellos++;
	emit(s, p, f, wire, sizeof(wire));
}

static void ask(struct sim *s, struct sim_peer *p)
{
	struct acp_frame f = header(p, ACP_FRAME_HELLO);

	acp_flow_ask(&p->flow, &f, s->now);
	send_hello(s, p, &f);
}

static void down(struct sim *s, struct sim_peer *p, u8 status, u32 epoch_peer);
static void tell(struct sim *s, struct sim_peer *p);

static void tick(struct sim *s, void *what, u64 number);

static void arm(struct sim *s, struct sim_peer *p)
{
	u64 when = acp_flow_arm(&p->flow, p->armed);

	if (when == ~0ULL)
		return;
	p->armed = when;
	sim_after(s, when > s->now ? when - s->now : 0, tick, p, when);
}

static void send_ack(struct sim *s, void *what, u64 number)
{
	u8 wire[HEADER + sizeof(struct acp_frame_ack)] __attribute__((aligned(8)));
	struct sim_peer *p = what;
	struct acp_frame f = header(p, ACP_FRAME_ACK);

	(void)number;
	p->ack_armed = false;
	if (!acp_flow_ack_now(&p->flow))
		return;
	acp_flow_fill(&p->flow, &f);
	acp_flow_fill_map(&p->flow, (void *)(wire + HEADER));
	emit(s, p, &f, wire, sizeof(wire));
}

/* The next smaller datagram size to try for the oldest frame, or 0. */
static u32 narrower(const struct sim_peer *p)
{
	const struct sim_sent *t = acp_flow_token(&p->flow, p->flow.una);
	u32 now = p->narrow ? min_t(u32, p->narrow, t->size) : t->size;

	return now > 400 ? 400 : now > 256 ? 256 : 0;
}

/* Does the path drop long datagrams? */
static void doubt(struct sim *s, struct sim_peer *p)
{
	u32 width = narrower(p);

	switch (acp_doubt_think(&p->doubt, &p->flow, width, p->narrow)) {
	case ACP_DOUBT_NOTHING:
		break;
	case ACP_DOUBT_ASK:
		ask(s, p);
		break;
	case ACP_DOUBT_NARROW:
		p->narrow = width;
		s->n.narrowed++;
		break;
	case ACP_DOUBT_WIDEN:
		p->narrow = 0;
		s->n.widened++;
		break;
	}
}

static void tick(struct sim *s, void *what, u64 number)
{
	struct sim_peer *p = what;
	enum acp_flow_tick t;

	if (p->armed != number)
		return;
	p->armed = ~0ULL;
	t = acp_flow_tick(&p->flow, s->now);
	if (t == ACP_FLOW_RESEND && acp_doubt_due(&p->flow))
		doubt(s, p);
	if (acp_flow_asks(&p->flow, t, s->now))
		ask(s, p);
	if (t == ACP_FLOW_FAILED) {
		s->n.failures++;
		if (acp_doubt_ends(&p->doubt, &p->flow) && narrower(p))
			p->narrow = narrower(p);
		down(s, p, ACP_ST_TIMEOUT, 0);
		sim_node_flush(s, p->me->id);
	}
	if (p->flow.ack_due)
		send_ack(s, p, 0);
	tell(s, p);
	flush(s, p);
}

static void arm_ack(struct sim *s, struct sim_peer *p)
{
	if (!p->flow.ack_due || p->ack_armed)
		return;
	p->ack_armed = true;
	sim_after(s, ACK_DELAY, send_ack, p, 0);
}

/* ---- sending ---- */

/* Send the next frame, if one may be sent. */
static bool send_next(struct sim *s, struct sim_peer *p)
{
	u64 seq;

	switch (acp_flow_turn(&p->flow, p->answers.first, p->pending.first, &seq)) {
	case ACP_TURN_LOST:
		acp_flow_resend(&p->flow, seq, s->now);
		s->n.resent++;
		send_frame(s, p, seq);
		return true;
	case ACP_TURN_ANSWER:
		send_answers(s, p);
		return true;
	case ACP_TURN_NEW:
		send_new(s, p);
		return true;
	default:
		return false;
	}
}

static void flush(struct sim *s, struct sim_peer *p)
{
	if (acp_flow_open_wanted(&p->flow, waiting(p), s->now))
		ask(s, p);
	while (send_next(s, p))
		;
	arm_ack(s, p);
	arm(s, p);
}

void sim_node_flush(struct sim *s, u32 node)
{
	u32 i, color;

	for (i = 0; i < s->nodes; i++)
		for (color = 0; color < s->colors; color++)
			if (waiting(sim_peer(s, node, i, color)))
				flush(s, sim_peer(s, node, i, color));
}

static void send_not(struct sim *s, void *what, u64 status)
{
	struct sim_item *item = what;

	item->status = status;
	sim_ranks_done(s, item);
}

u32 sim_peer_send(struct sim *s, struct sim_peer *p, struct sim_item *item, u32 within)
{
	SIM_CHECK(s, p->node != p->me->id);
	if (!acp_flow_lasts(&p->flow, within)) {
		s->n.too_late++;
		sim_after(s, 0, send_not, item, p->fates.status);
		return within;
	}
	list_add(item->arrival ? &p->answers : &p->pending, item);
	return p->flow.epoch;
}

void sim_peer_open(struct sim *s, struct sim_peer *p)
{
	if (!acp_flow_open_wanted(&p->flow, true, s->now))
		return;
	ask(s, p);
	arm(s, p);
}

u32 sim_peer_expect(struct sim *s, struct sim_peer *p)
{
	u32 epoch = p->flow.epoch;

	acp_flow_expect(&p->flow, 1, s->now);
	flush(s, p);
	return epoch;
}

void sim_peer_unexpect(struct sim *s, struct sim_peer *p, u32 epoch)
{
	acp_flow_unexpect(&p->flow, epoch);
	flush(s, p);
}

/* A frame is no longer in flight: collect the items that are finished. */
static void collect(struct sim_sent *t, u8 status, struct sim_list *done)
{
	struct sim_item *item, *next;

	for (item = t->items; item; item = next) {
		next = item->next;
		item->frames--;
		item->status = status;
		list_add(done, item);
	}
	item = t->piece;
	if (item && !--item->frames && item->out.finished) {
		item->status = status;
		list_add(done, item);
	}
}

static void finish(struct sim *s, struct sim_list *done)
{
	while (done->first)
		sim_ranks_done(s, list_take(done));
}

static void take_ack(struct sim *s, struct sim_peer *p, const struct acp_frame *f,
		     const struct acp_frame_ack *map)
{
	struct acp_flow_ack a;
	struct sim_list done;
	void *t;

	if (!acp_flow_ack_tells(&p->flow, f))
		return;
	if (!acp_flow_ack_begin(&p->flow, &a, f, map)) {
		s->n.bad_ack++;
		return;
	}
	list_init(&done);
	while ((t = acp_flow_ack_next(&p->flow, &a, s->now)))
		collect(t, ACP_ST_OK, &done);
	acp_flow_ack_end(&p->flow, &a, s->now);
	finish(s, &done);
}

/* ---- the end of an incarnation ---- */

static u32 draw_epoch(struct sim *s)
{
	return (u32)sim_random(s) | 1;
}

static void flow_init(struct sim *s, struct sim_peer *p)
{
	acp_flow_init(&p->flow, draw_epoch(s), draw_epoch(s), LIMIT, LIMIT);
	p->flow.slots = p->slots;
}

static void free_held(struct sim_peer *p)
{
	u32 i;

	for (i = 0; i < p->flow.n_held; i++)
		sim_packet_free(p->held[i]);
}

/* Report to the ranks; check that the peer is alternately lost and back. */
static void tell(struct sim *s, struct sim_peer *p)
{
	struct acp_fates told = acp_fates_tell(&p->fates);

	if (told.lost) {
		SIM_CHECK(s, !p->known_lost && told.status);
		p->known_lost = true;
		s->n.told_lost++;
	}
	if (told.back) {
		SIM_CHECK(s, p->known_lost);
		p->known_lost = false;
		s->n.told_back++;
	}
}

static void opened(struct sim *s, struct sim_peer *p)
{
	s->n.opened++;
	acp_fates_open(&p->fates);
	sim_ranks_opened(s, p);
}

/* Everything in flight fails. epoch_peer: epoch of the peer's new incarnation, or 0. */
static void down(struct sim *s, struct sim_peer *p, u8 status, u32 epoch_peer)
{
	struct sim_list done;
	u64 seq;

	list_init(&done);
	for (seq = p->flow.una; seq < p->flow.next; seq++)
		if (acp_flow_token(&p->flow, seq))
			collect(acp_flow_token(&p->flow, seq), status, &done);
	while (waiting(p)) {
		struct sim_item *item = list_take(p->answers.first ? &p->answers : &p->pending);

		SIM_CHECK(s, !item->frames);
		item->status = status;
		list_add(&done, item);
	}
	free_held(p);
	acp_doubt_begin(&p->doubt);
	acp_failures_begin(&p->failures);
	p->failures.known = NULL;
	memset(p->slots, 0, sizeof(p->slots));
	acp_fates_lost(&p->fates, status);
	if (epoch_peer) {
		acp_flow_restart(&p->flow, epoch_peer, draw_epoch(s), s->now);
		acp_fates_open(&p->fates);
	} else {
		flow_init(s, p);
	}
	sim_ranks_lost(s, p, status);
	finish(s, &done);
}

/* ---- receiving ---- */

static u64 number_of(const struct sim_packet *packet)
{
	return be64_to_cpu(((const struct acp_frame_hdr *)packet->bytes)->seq);
}

/* Take a held frame that can be processed, or NULL. */
static struct sim_packet *unhold(struct sim_peer *p)
{
	u32 i;

	for (i = 0; i < p->flow.n_held; i++) {
		struct sim_packet *packet = p->held[i];

		if (!acp_flow_turn_came(&p->flow, number_of(packet)))
			continue;
		acp_flow_unhold(&p->flow, number_of(packet));
		p->held[i] = p->held[p->flow.n_held];
		return packet;
	}
	return NULL;
}

static void release_held(struct sim *s, struct sim_peer *p)
{
	struct sim_packet *packet;

	while ((packet = unhold(p)))
		take(s, p, packet, number_of(packet), true);
}

static void applied(struct sim *s, struct sim_peer *p)
{
	release_held(s, p);
	arm(s, p);
	arm_ack(s, p);
}

void sim_arrival_put(struct sim *s, struct sim_arrival *a)
{
	struct sim_peer *p = a->peer;

	if (--a->refs)
		return;
	if (a->pending && acp_flow_settled(&p->flow, a->taken.epoch, a->taken.seq))
		applied(s, p);
	sim_packet_free(a->packet);
	free(a);
}

/* It was applied, unless answers delay this. */
static void settle(struct sim *s, void *what, u64 late)
{
	struct sim_arrival *a = what;
	struct sim_peer *p = a->peer;

	if (late)
		sim_ranks_apply(s, a);
	if (a->refused)
		s->n.refused++;
	if (acp_flow_arrived(&p->flow, &a->taken, a->refused ? ACP_REFUSED :
			     a->pending ? ACP_PENDING : ACP_APPLIED, s->now))
		applied(s, p);
	sim_arrival_put(s, a);
	sim_node_flush(s, p->me->id);
}

/* Applying takes a while, on another CPU. The effect happens at the start or at the end. */
static void begin_apply(struct sim *s, struct sim_peer *p, struct sim_packet *packet,
			const struct acp_flow_taken *taken)
{
	struct sim_arrival *a = malloc(sizeof(*a));
	bool late = sim_random(s) % 2;

	*a = (struct sim_arrival){ .peer = p, .packet = packet, .taken = *taken, .refs = 1 };
	if (!late)
		sim_ranks_apply(s, a);
	if (s->net.apply && sim_random(s) % 4)
		sim_after(s, sim_random(s) % s->net.apply, settle, a, late);
	else
		settle(s, a, late);
}

static void hold(struct sim *s, struct sim_peer *p, struct sim_packet *packet, u64 seq)
{
	u32 n = p->flow.n_held;

	if (acp_flow_hold(&p->flow, seq) != ACP_HOLD_KEPT) {
		s->n.held_dropped++;
		sim_packet_free(packet);
		return;
	}
	s->n.held++;
	p->held[n] = packet;
}

static void take(struct sim *s, struct sim_peer *p, struct sim_packet *packet, u64 seq, bool fence)
{
	const struct acp_frame_hdr *h = (const void *)packet->bytes;
	const struct acp_flow_taken taken = { seq, p->flow.epoch, 1, packet->marked,
					      h->flags & ACP_FRAME_LAZY };

	switch (acp_flow_accept(&p->flow, seq, fence)) {
	case ACP_FLOW_NEW:
		if (!sim_chance(s, s->net.refuse) && sim_ranks_admits(s, p, packet)) {
			begin_apply(s, p, packet, &taken);
			return;
		}
		acp_flow_arrived(&p->flow, &taken, ACP_REFUSED, s->now);
		s->n.refused++;
		break;
	case ACP_FLOW_HOLD:
		hold(s, p, packet, seq);
		return;
	case ACP_FLOW_DUPLICATE:
		s->n.duplicates++;
		break;
	case ACP_FLOW_FUTURE:
		s->n.future++;
		break;
	}
	sim_packet_free(packet);
}

static void refused(struct sim *s, struct sim_peer *p)
{
	s->n.refusals++;
	p->me->mismatched = true;
	down(s, p, ACP_ST_PEER, 0);
}

static void receive_hello(struct sim *s, struct sim_peer *p, const struct acp_frame *f,
			  const struct acp_frame_hello *h)
{
	struct acp_frame reply = header(p, ACP_FRAME_HELLO);
	const struct acp_presence us = { .here = !p->me->away,
					 .assembling = !p->me->assembled && !p->me->mismatched };
	u32 verdict = acp_hello_take(&p->flow, &p->me->setup, us, f, h, &reply, s->now);

	s->n.absent += !!(verdict & ACP_HELLO_ABSENT);
	s->n.others += !!(verdict & ACP_HELLO_OTHER);
	if (verdict & ACP_HELLO_ASK)
		sim_peer_open(s, p);
	if (verdict & ACP_FLOW_RESTART) {
		s->n.restarts++;
		down(s, p, ACP_ST_PEER, f->epoch_src);
	}
	if (verdict & ACP_FLOW_OPENED)
		opened(s, p);
	if (verdict & ACP_FLOW_REPLY)
		send_hello(s, p, &reply);
	if (verdict & ACP_FLOW_REFUSED)
		refused(s, p);
}

/* DATA and ACK; takes ownership of the packet. */
static void receive_frame(struct sim *s, struct sim_peer *p, const struct acp_frame *f,
			  struct sim_packet *packet)
{
	u32 verdict = acp_flow_admit(&p->flow, f, s->now);

	if (verdict == ACP_FLOW_DROP) {
		s->n.bad_epoch++;
		sim_packet_free(packet);
		return;
	}
	if (verdict & ACP_FLOW_RESTART) {
		s->n.restarts++;
		down(s, p, ACP_ST_PEER, f->epoch_src);
	}
	if (verdict & ACP_FLOW_OPENED)
		opened(s, p);
	if (f->type == ACP_FRAME_ACK) {
		take_ack(s, p, f, (const void *)(packet->bytes + HEADER));
		sim_packet_free(packet);
		return;
	}
	take_ack(s, p, f, NULL);
	take(s, p, packet, f->seq, f->flags & ACP_FRAME_FENCE);
}

/* Was the frame made with the key, for this job, and is it complete? */
static bool authentic(struct sim *s, const struct acp_frame *f, struct sim_packet *packet)
{
	const struct acp_frame_hdr *h = (const void *)packet->bytes;
	struct acp_msg m;
	u32 crc;

	if (tag_of(s, h, f) != be64_to_cpu(h->tag)) {
		s->n.bad_tag++;
		return false;
	}
	SIM_CHECK(s, f->job == JOB && f->generation == GENERATION && f->node == packet->from);
	SIM_CHECK(s, f->color == packet->color);
	if (!(f->flags & ACP_FRAME_CRC))
		return true;
	SIM_CHECK(s, acp_frame_crc(h, &crc));
	acp_msg_decode(&m, packet->bytes + HEADER, f->length,
		       acp_frame_tagged(f) - HEADER - sizeof(struct acp_frame_crc));
	SIM_CHECK(s, acp_msg_head(&m) + sizeof(struct acp_frame_crc) + HEADER ==
		     acp_frame_tagged(f));
	if (crc32c(packet->bytes + acp_frame_tagged(f), m.length) == crc)
		return true;
	s->n.bad_crc++;
	return false;
}

void sim_receive(struct sim *s, struct sim_packet *packet)
{
	struct sim_peer *p = sim_peer(s, packet->to, packet->from, packet->color);
	struct acp_frame f;

	if (packet->length < HEADER ||
	    acp_frame_decode(&f, (const void *)packet->bytes, packet->length)) {
		s->n.bad_frame++;
		sim_packet_free(packet);
		return;
	}
	if (!authentic(s, &f, packet)) {
		sim_packet_free(packet);
		return;
	}
	if (f.type == ACP_FRAME_HELLO) {
		receive_hello(s, p, &f, (const void *)(packet->bytes + HEADER));
		sim_packet_free(packet);
	} else {
		receive_frame(s, p, &f, packet);
	}
	tell(s, p);
	if (!acp_flow_quiet(&p->flow, p->armed, s->now) || waiting(p))
		flush(s, p);
	sim_node_flush(s, p->me->id);
}

/* ---- nodes ---- */

void sim_node_init(struct sim *s, u32 node)
{
	u32 i, color, rank;

	s->node[node].id = node;
	s->node[node].setup = (struct acp_setup){ s->ranks, s->nodes, s->seed, false };
	for (i = 0; i < s->nodes; i++) {
		for (color = 0; color < s->colors; color++) {
			struct sim_peer *p = sim_peer(s, node, i, color);

			p->me = &s->node[node];
			p->node = i;
			p->color = color;
			p->armed = ~0ULL;
			list_init(&p->pending);
			list_init(&p->answers);
			flow_init(s, p);
		}
	}
	for (rank = node; rank < s->ranks; rank += s->nodes) {
		s->rank[rank].tail = 1;
		s->rank[rank].completed = 1;
		s->rank[rank].run = (struct acp_run){ .first = 1, .last = 0 };
	}
}

/* Twice: what the first round ended may have queued an answer. */
static void forget_peers(struct sim *s, u32 node)
{
	u32 i, color, times;

	for (times = 0; times < 2; times++)
		for (i = 0; i < s->nodes; i++)
			for (color = 0; color < s->colors; color++)
				down(s, sim_peer(s, node, i, color), ACP_ST_ABORT, 0);
	for (i = 0; i < s->nodes; i++) {
		for (color = 0; color < s->colors; color++) {
			sim_peer(s, node, i, color)->fates = (struct acp_fates){ 0 };
			sim_peer(s, node, i, color)->known_lost = false;
		}
	}
}

void sim_reboot(struct sim *s, u32 node)
{
	u32 rank;

	for (rank = node; rank < s->ranks; rank += s->nodes)
		s->rank[rank].draining = true;
	forget_peers(s, node);
	for (rank = node; rank < s->ranks; rank += s->nodes) {
		u8 *memory = s->rank[rank].memory;

		memset(memory, 0, s->memory);
		s->rank[rank] = (struct sim_rank){ .memory = memory };
		s->rank[rank].tail = 1;
		s->rank[rank].completed = 1;
		s->rank[rank].run = (struct acp_run){ .first = 1, .last = 0 };
	}
}

void sim_node_free(struct sim *s, u32 node)
{
	u32 i, color;

	for (i = 0; i < s->nodes; i++)
		for (color = 0; color < s->colors; color++)
			free_held(sim_peer(s, node, i, color));
}
