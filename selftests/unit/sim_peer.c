// SPDX-License-Identifier: MIT
/*
 * A simulated node's ends of its flows: frames out of items, items out of
 * acknowledgements, and all that the core wants to be told.  See sim.h.
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

/* ---- what a frame is made of ---- */

static struct acp_frame header(const struct sim_peer *p, u8 type)
{
	return (struct acp_frame){ .type = type, .color = p->color, .job = JOB,
				   .generation = GENERATION, .node = p->me->id };
}

/* Complete the header of a frame of "length" bytes and send it. */
static void emit(struct sim *s, struct sim_peer *p, struct acp_frame *f, u8 *wire, u32 length)
{
	struct acp_frame_hdr *h = (void *)wire;

	f->length = length - HEADER;
	acp_frame_encode(h, f);
	h->tag = cpu_to_be64(tag_of(s, wire, f));
	sim_transmit(s, p->me->id, p->node, p->color, wire, length);
}

static u32 most_payload(const struct sim *s, const struct acp_out *out)
{
	u32 head = acp_out_head(out) + (s->crc ? sizeof(struct acp_frame_crc) : 0);

	return (s->mtu - HEADER - head) & ~7u;
}

/* Memory that a piece is read from, or NULL: it is no longer there. */
static const u8 *source_of(struct sim *s, const struct acp_msg *m)
{
	if (acp_ga_stag(&s->ga, m->src) == SIM_STAG_LOST && s->lost_revoked)
		return NULL;
	return s->rank[acp_ga_rank(&s->ga, m->src)].memory + acp_ga_offset(&s->ga, m->src);
}

/* Does somebody wait until this is acknowledged? */
static bool is_awaited(const struct sim_item *item)
{
	return item->arrival || (item->command && item->out.m.type == ACP_MSG_DATA);
}

/* Where the payload of a message begins in a frame that may have a checksum. */
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

/* The payload of a piece: what is not in one piece is gathered in "room". */
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

/* Write a message, or a piece of a transfer; its size. */
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

/* Build a frame anew from what it carries, and send it. */
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
	emit(s, p, &f, wire, at);
}

static bool fits_with_others(const struct sim_item *item)
{
	return acp_out_single(&item->out, ACP_FRAME_SHORT);
}

/* Small messages share a frame, in the order in which they were queued. */
static void load_messages(struct sim *s, struct sim_list *from, struct sim_sent *t)
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

		if (at + size > s->mtu || (count && item->out.fence && sim_random(s) % 2))
			break;
		sim_station_due(s, item);
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
	if (!t->offset)
		sim_station_due(s, item);
	if (!item->out.failed && !source_of(s, &item->out.m))
		acp_out_fail(&item->out, ACP_ST_STAG);
	t->length = acp_out_cut(&item->out, most_payload(s, &item->out));
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
		load_messages(s, &p->pending, t);
	else
		load_piece(s, p, t);
	send_frame(s, p, seq);
}

static void send_answers(struct sim *s, struct sim_peer *p)
{
	struct sim_sent *t = &p->sent[p->flow.next % ACP_FRAME_WINDOW];
	u64 seq = acp_flow_send_answer(&p->flow, t, s->now);

	*t = (struct sim_sent){ 0 };
	load_messages(s, &p->answers, t);
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

	h->nprocs = cpu_to_be32(s->ranks);
	h->nodes = cpu_to_be32(s->nodes);
	h->digest = cpu_to_be64(s->seed);
	s->n.hellos++;
	emit(s, p, f, wire, sizeof(wire));
}

static void ask(struct sim *s, struct sim_peer *p)
{
	struct acp_frame f = header(p, ACP_FRAME_HELLO);

	acp_flow_ask(&p->flow, &f);
	send_hello(s, p, &f);
}

static void down(struct sim *s, struct sim_peer *p, u8 status, u32 epoch_peer);

static void tick(struct sim *s, void *what, u64 number);

static void arm(struct sim *s, struct sim_peer *p)
{
	u64 deadline = acp_flow_deadline(&p->flow);

	if (deadline >= p->armed)
		return;
	p->armed = deadline;
	sim_after(s, deadline > s->now ? deadline - s->now : 0, tick, p, deadline);
}

static void send_ack(struct sim *s, void *what, u64 number)
{
	u8 wire[HEADER + sizeof(struct acp_frame_ack)] __attribute__((aligned(8)));
	struct sim_peer *p = what;
	struct acp_frame f = header(p, ACP_FRAME_ACK);

	(void)number;
	p->ack_armed = false;
	if (!p->flow.ack_due || p->flow.state != ACP_FLOW_OPEN)
		return;
	acp_flow_fill(&p->flow, &f);
	acp_flow_fill_map(&p->flow, (void *)(wire + HEADER));
	emit(s, p, &f, wire, sizeof(wire));
}

static void tick(struct sim *s, void *what, u64 number)
{
	struct sim_peer *p = what;

	if (p->armed != number)
		return;
	p->armed = ~0ULL;
	switch (acp_flow_tick(&p->flow, s->now)) {
	case ACP_FLOW_ASK:
		ask(s, p);
		break;
	case ACP_FLOW_FAILED:
		s->n.failures++;
		down(s, p, ACP_ST_TIMEOUT, 0);
		sim_node_flush(s, p->me->id);
		break;
	default:
		break;
	}
	if (p->flow.ack_due)
		send_ack(s, p, 0);
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

static void flush(struct sim *s, struct sim_peer *p)
{
	u64 seq;

	while ((seq = acp_flow_lost(&p->flow))) {
		acp_flow_resend(&p->flow, seq, s->now);
		s->n.resent++;
		send_frame(s, p, seq);
	}
	while (p->answers.first && acp_flow_room_answer(&p->flow))
		send_answers(s, p);
	while (p->pending.first && acp_flow_room(&p->flow))
		send_new(s, p);
	if (p->flow.state == ACP_FLOW_CLOSED && (waiting(p) || p->flow.expect)) {
		acp_flow_open(&p->flow, s->now);
		ask(s, p);
	}
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

void sim_peer_send(struct sim *s, struct sim_peer *p, struct sim_item *item)
{
	SIM_CHECK(s, p->node != p->me->id);
	list_add(item->arrival ? &p->answers : &p->pending, item);
}

bool sim_peer_open(struct sim *s, struct sim_peer *p)
{
	if (p->flow.state == ACP_FLOW_CLOSED) {
		acp_flow_open(&p->flow, s->now);
		ask(s, p);
		arm(s, p);
	}
	return p->flow.state == ACP_FLOW_OPEN;
}

void sim_peer_expect(struct sim *s, struct sim_peer *p, int n)
{
	acp_flow_expect(&p->flow, n, s->now);
	flush(s, p);
}

/* A frame is no longer in flight: collect what has come to its end. */
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
		sim_station_done(s, list_take(done));
}

static void take_ack(struct sim *s, struct sim_peer *p, const struct acp_frame *f,
		     const struct acp_frame_ack *map)
{
	struct acp_flow_ack a;
	struct sim_list done;
	void *t;

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

/* ---- the end of a life ---- */

static u32 draw_epoch(struct sim *s)
{
	return (u32)sim_random(s) | 1;
}

static void flow_init(struct sim *s, struct sim_peer *p)
{
	acp_flow_init(&p->flow, draw_epoch(s), draw_epoch(s), LIMIT, LIMIT);
	p->flow.slots = p->slots;
}

/* All that was under way fails; epoch_peer: of the peer's new life, or 0. */
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
	while (p->nheld)
		sim_packet_free(p->held[--p->nheld]);
	p->fails.count = 0;
	p->life++;
	memset(p->slots, 0, sizeof(p->slots));
	if (epoch_peer)
		acp_flow_restart(&p->flow, epoch_peer, draw_epoch(s), s->now);
	else
		flow_init(s, p);
	sim_station_lost(s, p, status);
	finish(s, &done);
}

/* ---- receiving ---- */

static void settle(struct sim *s, void *what, u64 late)
{
	struct sim_arrival *a = what;
	u32 node = a->peer->me->id;

	if (late)
		sim_station_apply(s, a);
	sim_arrival_put(s, a);
	sim_node_flush(s, node);
}

/* Applying takes a while, on another CPU; its effect may be at the start or at the end. */
static void begin_apply(struct sim *s, struct sim_peer *p, struct sim_packet *packet, u64 seq)
{
	struct sim_arrival *a = malloc(sizeof(*a));
	bool late = sim_random(s) % 2;

	*a = (struct sim_arrival){ p, packet, seq, p->life, 1 };
	if (!late)
		sim_station_apply(s, a);
	if (s->net.apply && sim_random(s) % 4)
		sim_after(s, sim_random(s) % s->net.apply, settle, a, late);
	else
		settle(s, a, late);
}

/* Fenced frames that were too early. */
static void retry_held(struct sim *s, struct sim_peer *p)
{
	struct sim_packet *held[SIM_HELD];
	u32 i, count = p->nheld;

	memcpy(held, p->held, count * sizeof(held[0]));
	p->nheld = 0;
	for (i = 0; i < count; i++) {
		struct acp_frame f;

		acp_frame_decode(&f, (const void *)held[i]->bytes, held[i]->length);
		take(s, p, held[i], f.seq, true);
	}
}

void sim_arrival_put(struct sim *s, struct sim_arrival *a)
{
	const struct acp_frame_hdr *h = (const void *)a->packet->bytes;
	struct sim_peer *p = a->peer;

	if (--a->refs)
		return;
	if (p->life == a->life) {
		bool due = p->flow.ack_due, moved = acp_flow_applied(&p->flow, a->seq);

		if (!due && (h->flags & ACP_FRAME_LAZY))
			acp_flow_ack_later(&p->flow, 1, s->now);
		if (moved && p->nheld)
			retry_held(s, p);
		arm(s, p);
		arm_ack(s, p);
	}
	sim_packet_free(a->packet);
	free(a);
}

static void hold(struct sim *s, struct sim_peer *p, struct sim_packet *packet, u64 seq)
{
	struct acp_frame f;
	u32 i;

	for (i = 0; i < p->nheld; i++) {
		acp_frame_decode(&f, (const void *)p->held[i]->bytes, p->held[i]->length);
		if (f.seq == seq)
			break;
	}
	if (i < p->nheld || p->nheld == SIM_HELD) {
		s->n.held_dropped++;
		sim_packet_free(packet);
		return;
	}
	s->n.held++;
	p->held[p->nheld++] = packet;
}

static void take(struct sim *s, struct sim_peer *p, struct sim_packet *packet, u64 seq, bool fence)
{
	switch (acp_flow_accept(&p->flow, seq, fence)) {
	case ACP_FLOW_NEW:
		if (packet->marked)
			acp_flow_marked(&p->flow);
		if (!sim_chance(s, s->net.refuse) && sim_station_admits(s, p, packet)) {
			begin_apply(s, p, packet, seq);
			return;
		}
		acp_flow_refuse(&p->flow, seq);
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

static void receive_hello(struct sim *s, struct sim_peer *p, const struct acp_frame *f)
{
	struct acp_frame reply = header(p, ACP_FRAME_HELLO);
	u32 verdict = acp_flow_hello(&p->flow, f, &reply, s->now);

	if (verdict & ACP_FLOW_RESTART) {
		s->n.restarts++;
		down(s, p, ACP_ST_PEER, f->epoch_src);
	}
	if (verdict & ACP_FLOW_OPENED) {
		s->n.opened++;
		sim_station_opened(s, p);
	}
	if (verdict & ACP_FLOW_REPLY)
		send_hello(s, p, &reply);
}

/* DATA and ACK; takes the packet over. */
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
	if (verdict & ACP_FLOW_OPENED) {
		s->n.opened++;
		sim_station_opened(s, p);
	}
	if (f->type == ACP_FRAME_ACK) {
		take_ack(s, p, f, (const void *)(packet->bytes + HEADER));
		sim_packet_free(packet);
		return;
	}
	take_ack(s, p, f, NULL);
	take(s, p, packet, f->seq, f->flags & ACP_FRAME_FENCE);
}

/* Was the frame made by who knows the key, for this job, and is it whole? */
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
		receive_hello(s, p, &f);
		sim_packet_free(packet);
	} else {
		receive_frame(s, p, &f, packet);
	}
	flush(s, p);
	sim_node_flush(s, p->me->id);
}

/* ---- nodes ---- */

void sim_node_init(struct sim *s, u32 node)
{
	u32 i, color, rank;

	s->node[node].id = node;
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

/* Twice: what ended the first time may have queued an answer. */
static void forget_peers(struct sim *s, u32 node)
{
	u32 i, color, times;

	for (times = 0; times < 2; times++)
		for (i = 0; i < s->nodes; i++)
			for (color = 0; color < s->colors; color++)
				down(s, sim_peer(s, node, i, color), ACP_ST_ABORT, 0);
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
			while (sim_peer(s, node, i, color)->nheld)
				sim_packet_free(sim_peer(s, node, i, color)->
						held[--sim_peer(s, node, i, color)->nheld]);
}
