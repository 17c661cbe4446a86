// SPDX-License-Identifier: MIT
/*
 * A simulated node's stations: the queue of each rank, and what arrives.
 * A command executes where its source lives; see kernel/core/cmd.h, sim.h.
 */
#include "sim.h"
#include "test.h"

#define HEADER	((u32)sizeof(struct acp_frame_hdr))

static void complete(struct sim *s, u32 rank, u64 ticket, u8 status);

/* ---- memory ---- */

/* Where an address of this node is, or NULL and why not. */
static u8 *reach(struct sim *s, u32 node, u64 ga, u64 length, u8 *status)
{
	u64 offset = acp_ga_offset(&s->ga, ga);
	u32 stag = acp_ga_stag(&s->ga, ga);

	*status = ACP_ST_OK;
	if (!acp_ga_valid(&s->ga, ga))
		*status = ACP_ST_GA;
	else if (sim_node_of(s, acp_ga_rank(&s->ga, ga)) != node)
		*status = ACP_ST_RANK;
	else if (stag != SIM_STAG && (stag != SIM_STAG_LOST || s->lost_revoked))
		*status = ACP_ST_STAG;
	else if (length > s->memory || offset > s->memory - length)
		*status = ACP_ST_RANGE;
	else
		return s->rank[acp_ga_rank(&s->ga, ga)].memory + offset;
	return NULL;
}

static u8 write_memory(struct sim *s, u32 node, u64 ga, const void *data, u64 length)
{
	u8 status;
	u8 *p = reach(s, node, ga, length, &status);

	if (status)
		return status;
	memcpy(p, data, length);
	s->wrote(s, acp_ga_rank(&s->ga, ga), acp_ga_offset(&s->ga, ga), length);
	return ACP_ST_OK;
}

/* All blocks of one end are there: the first byte of its memory, or NULL and why not. */
static u8 *reach_all(struct sim *s, u32 node, u64 ga, u64 stride, u64 shape, u8 *status)
{
	u64 first, size;

	*status = ACP_ST_RANGE;
	if (!acp_shape_span(&s->ga, ga, stride, shape, &first, &size) ||
	    !reach(s, node, first, size, status))
		return NULL;
	return s->rank[acp_ga_rank(&s->ga, ga)].memory;
}

/* Scatter bytes of the stream from a position on. */
static u8 write_blocks(struct sim *s, u32 node, const struct acp_msg *m, u64 position,
		       const u8 *data, u64 length)
{
	u8 status, *memory = reach_all(s, node, m->dst, m->a, m->c, &status);
	struct acp_walk w;
	u32 n;

	if (!memory)
		return status;
	acp_walk_begin(&w, acp_ga_offset(&s->ga, m->dst), m->a, m->c, position);
	for (; length; length -= n, data += n) {
		n = acp_walk_run(&w, length);
		memcpy(memory + w.at, data, n);
		s->wrote(s, acp_ga_rank(&s->ga, m->dst), w.at, n);
		acp_walk_skip(&w, n);
	}
	return ACP_ST_OK;
}

/* Both ends are here. */
static u8 copy_blocks(struct sim *s, u32 node, const struct acp_msg *m)
{
	u8 status, *from = reach_all(s, node, m->src, m->b, m->c, &status);
	u64 position = 0;
	struct acp_walk w;

	if (!from)
		return status;
	acp_walk_begin(&w, acp_ga_offset(&s->ga, m->src), m->b, m->c, 0);
	for (; !status && position < m->size; position += w.block) {
		status = write_blocks(s, node, m, position, from + w.at, w.block);
		acp_walk_skip(&w, w.block);
	}
	return status;
}

static u8 do_atomic(struct sim *s, u32 node, const struct acp_msg *m, u64 *old)
{
	int width = acp_op_width(m->op);
	u64 new;
	u8 status;
	u8 *p = reach(s, node, m->src, width, &status);

	if (status)
		return status;
	*old = 0;
	memcpy(old, p, width);
	new = acp_op_result(m->op, *old, m->a, m->b);
	memcpy(p, &new, width);
	s->wrote(s, acp_ga_rank(&s->ga, m->src), acp_ga_offset(&s->ga, m->src), width);
	return ACP_ST_OK;
}

/* All of a copy is there: change its flag, if it has one. */
static u8 raise_flag(struct sim *s, u32 node, const struct acp_msg *m)
{
	struct acp_msg flag = { .op = ACP_OP_SWAP8, .src = m->c, .a = m->b };
	u64 old;

	if (!acp_op_signals(m->op))
		return ACP_ST_OK;
	if (m->op == ACP_OP_COPY_ADD)
		flag.op = ACP_OP_ADD8;
	return do_atomic(s, node, &flag, &old);
}

/* Both ends are here. */
static u8 do_local(struct sim *s, u32 node, const struct acp_msg *m)
{
	int width = acp_op_width(m->op);
	u64 old;
	u8 status, *p;

	if (m->op == ACP_OP_STRIDED)
		return copy_blocks(s, node, m);
	reach(s, node, m->dst, width ? (u64)width : m->size, &status);
	if (status)
		return status;
	if (width) {
		status = do_atomic(s, node, m, &old);
		return status ? status : write_memory(s, node, m->dst, &old, width);
	}
	p = reach(s, node, m->src, m->size, &status);
	if (!status)
		status = write_memory(s, node, m->dst, p, m->size);
	return status ? status : raise_flag(s, node, m);
}

/* ---- the queue of a rank ---- */

static struct sim_command *command_of(struct sim *s, u32 rank, u64 ticket)
{
	struct sim_command *c = &s->rank[rank].commands[ticket % SIM_DEPTH];

	return c->ticket == ticket ? c : NULL;
}

/* Did one that the command waits for fail, as far as is known here? */
static bool order_failed(struct sim *s, const struct sim_command *c)
{
	u64 t;

	if (s->rank[c->rank].last_failed <= c->seen)
		return false;
	for (t = c->seen + 1; t <= c->order; t++) {
		const struct sim_command *earlier = command_of(s, c->rank, t);

		if (earlier && earlier->state == SIM_COMPLETE && earlier->status)
			return true;
	}
	return false;
}

/* Turn a command whose source is here into the DATA for its destination. */
static u8 make_data(struct sim *s, u32 node, struct acp_out *out)
{
	struct acp_msg *m = &out->m;
	u8 status;

	if (m->op == ACP_OP_STRIDED) {
		reach_all(s, node, m->src, m->b, m->c, &status);
	} else if (!acp_op_width(m->op)) {
		reach(s, node, m->src, m->size, &status);
		if (!status && m->size <= 8 && sim_random(s) % 2) {
			memcpy(&m->a, reach(s, node, m->src, m->size, &status), m->size);
			out->inline_data = true;
		}
	} else {
		u64 old = 0;

		status = do_atomic(s, node, m, &old);
		m->size = acp_op_width(m->op);
		m->a = old;
		out->inline_data = true;
	}
	m->type = ACP_MSG_DATA;
	m->op = m->op < ACP_OP_STRIDED ? 0 : m->op;
	return status;
}

/* Answers are awaited of whoever executes, and of whoever gets the result. */
static void expect(struct sim *s, struct sim_command *c)
{
	u32 me = sim_node_of(s, c->rank), i;

	c->expects[0] = sim_peer(s, me, c->step.node, c->step.color);
	if (c->step.third)
		c->expects[1] = sim_peer(s, me, c->step.dst_node, c->step.dst_color);
	for (i = 0; i < 2; i++) {
		if (!c->expects[i])
			continue;
		c->expects_life[i] = c->expects[i]->life;
		sim_peer_expect(s, c->expects[i], 1);
	}
}

static void stop_expecting(struct sim *s, struct sim_command *c)
{
	u32 i;

	for (i = 0; i < 2; i++) {
		struct sim_peer *p = c->expects[i];

		c->expects[i] = NULL;
		if (p && p->life == c->expects_life[i])
			sim_peer_expect(s, p, -1);
	}
}

/* Before its first message is sent: may it still have its effect? */
void sim_station_due(struct sim *s, struct sim_item *item)
{
	if (item->command && item->out.m.depends && order_failed(s, item->command))
		acp_out_fail(&item->out, ACP_ST_ORDER);
}

static void start(struct sim *s, struct sim_command *c, bool fenced)
{
	struct sim_rank *r = &s->rank[c->rank];
	struct acp_out *out = &c->item.out;
	u32 me = sim_node_of(s, c->rank);
	u8 status = ACP_ST_OK;

	c->state = SIM_STARTED;
	acp_run_started(&r->run, r->completed, c->ticket, &c->step);
	if (c->step.plan == ACP_PLAN_LOCAL) {
		complete(s, c->rank, c->ticket, do_local(s, me, &out->m));
		return;
	}
	if (fenced) {
		out->fence = true;
		out->m.depends = c->ticket - (r->completed + 1);
		out->m.upto = c->ticket - c->order;
	}
	if (c->step.plan == ACP_PLAN_SEND) {
		status = make_data(s, me, out);
	} else {
		out->m.type = ACP_MSG_CMD;
		out->m.flags = fenced && c->step.home ? ACP_MSG_ORDERED : 0;
		expect(s, c);
	}
	if (status) {
		complete(s, c->rank, c->ticket, status);
		return;
	}
	c->busy = true;
	sim_peer_send(s, sim_peer(s, me, c->step.node, c->step.color), &c->item);
}

/*
 * A third node that gets the result says when it is there.  If it began anew
 * after that, only an open flow tells; one that opens later does not.
 */
static bool third_is_open(struct sim *s, struct sim_command *c)
{
	u32 me = sim_node_of(s, c->rank);
	struct sim_peer *p;

	if (!c->step.third)
		return true;
	p = sim_peer(s, me, c->step.dst_node, c->step.dst_color);
	c->opens = sim_peer_open(s, p) ? NULL : p;
	return !c->opens;
}

static void try_start(struct sim *s, struct sim_command *c)
{
	struct sim_rank *r = &s->rank[c->rank];
	enum acp_start how;

	if (order_failed(s, c)) {
		c->state = SIM_STARTED;
		complete(s, c->rank, c->ticket, ACP_ST_ORDER);
		return;
	}
	how = acp_run_ask(&r->run, r->completed, c->order, &c->step);
	if (how != ACP_START_WAIT && third_is_open(s, c))
		start(s, c, how == ACP_START_FENCED);
}

static void drain(struct sim *s, u32 rank)
{
	struct sim_rank *r = &s->rank[rank];
	u64 t;

	r->again = true;
	if (r->draining)
		return;
	r->draining = true;
	while (r->again) {
		r->again = false;
		for (t = r->completed + 1; t <= r->tail; t++)
			if (command_of(s, rank, t)->state == SIM_WAITING)
				try_start(s, command_of(s, rank, t));
	}
	r->draining = false;
	sim_node_flush(s, sim_node_of(s, rank));
}

static void complete(struct sim *s, u32 rank, u64 ticket, u8 status)
{
	struct sim_command *c = command_of(s, rank, ticket);
	struct sim_rank *r = &s->rank[rank];

	if (!c || c->state != SIM_STARTED) {
		s->n.strays++;
		return;
	}
	c->state = SIM_COMPLETE;
	c->status = status;
	if (status)
		r->last_failed = max_t(u64, r->last_failed, ticket);
	stop_expecting(s, c);
	for (;;) {
		c = command_of(s, rank, r->completed + 1);
		if (r->completed == r->tail || c->state != SIM_COMPLETE)
			break;
		r->completed++;
		s->completed(s, rank, r->completed, c->status);
	}
	drain(s, rank);
}

bool sim_room(struct sim *s, u32 rank)
{
	struct sim_rank *r = &s->rank[rank];

	return r->tail - r->completed < SIM_DEPTH / 2 &&
	       !r->commands[(r->tail + 1) % SIM_DEPTH].busy;
}

u64 sim_submit(struct sim *s, u32 rank, const struct acp_msg *m, u64 order)
{
	struct sim_rank *r = &s->rank[rank];
	u64 ticket = ++r->tail;
	struct sim_command *c = &r->commands[ticket % SIM_DEPTH];
	u32 me = sim_node_of(s, rank);

	memset(c, 0, sizeof(*c));
	c->item.out.m = *m;
	c->item.out.m.origin = rank;
	c->item.out.m.ticket = ticket;
	c->item.command = c;
	c->ticket = ticket;
	c->rank = rank;
	c->order = order;
	c->seen = r->completed;
	c->state = SIM_STARTED;
	if (acp_cmd_check(&s->ga, s->colors, m)) {
		complete(s, rank, ticket, acp_cmd_check(&s->ga, s->colors, m));
		return ticket;
	}
	c->state = SIM_WAITING;
	acp_step_set(&c->step, &s->ga, m, me, sim_node_of(s, acp_ga_rank(&s->ga, m->src)),
		     sim_node_of(s, acp_ga_rank(&s->ga, m->dst)));
	drain(s, rank);
	return ticket;
}

/* ---- what arrives ---- */

static struct sim_item *item_new(struct sim *s)
{
	struct sim_item *item = calloc(1, sizeof(*item));

	s->n.items++;
	s->n.items_most = max_t(u64, s->n.items_most, s->n.items);
	return item;
}

static void item_free(struct sim *s, struct sim_item *item)
{
	s->n.items--;
	free(item);
}

/* Tell the origin, through "p", how its command ended; "hold": not applied before it knows. */
static void answer(struct sim *s, struct sim_peer *p, const struct acp_msg *m, u8 status,
		   struct sim_arrival *hold)
{
	struct sim_item *item = item_new(s);

	item->out.m = (struct acp_msg){ .type = ACP_MSG_DONE, .origin = m->origin,
					.ticket = m->ticket, .status = status };
	item->arrival = hold;
	if (hold)
		hold->refs++;
	sim_peer_send(s, p, item);
}

/* A failure that dependents behind the same flow must see, and the origin before the ack. */
static void answer_failure(struct sim *s, struct sim_arrival *a, struct sim_peer *to,
			   const struct acp_msg *m, u8 status)
{
	SIM_CHECK(s, acp_fails_add(&a->peer->fails, m->origin, m->ticket, status,
				   a->seq + ACP_FRAME_WINDOW));
	answer(s, to, m, status, a);
}

static bool depends_failed(struct sim *s, struct sim_peer *p, const struct acp_msg *m)
{
	const struct sim_command *own = NULL;

	if (!m->depends)
		return false;
	if (sim_node_of(s, m->origin) == p->me->id)
		own = command_of(s, m->origin, m->ticket);
	return (own && order_failed(s, own)) || acp_fails_depends(&p->fails, m, p->flow.rcv);
}

static void take_data(struct sim *s, struct sim_arrival *a, const struct acp_msg *m,
		      const u8 *payload)
{
	struct sim_peer *p = a->peer;
	u32 me = p->me->id, origin = sim_node_of(s, m->origin);
	u8 status, earlier;

	if (m->flags & ACP_MSG_FAIL)
		status = m->status;
	else if (depends_failed(s, p, m))
		status = ACP_ST_ORDER;
	else if (m->op == ACP_OP_STRIDED)
		status = write_blocks(s, me, m, m->b, payload, m->length);
	else
		status = write_memory(s, me, m->dst, payload, m->length);
	if (!(m->flags & ACP_MSG_LAST)) {
		if (status)
			SIM_CHECK(s, acp_fails_add(&p->fails, m->origin, m->ticket, status, 0));
		return;
	}
	earlier = acp_fails_take(&p->fails, m->origin, m->ticket);
	status = earlier ? earlier : status;
	if (!status)
		status = raise_flag(s, me, m);
	if (origin == me) {
		complete(s, m->origin, m->ticket, status);
	} else {
		struct sim_peer *to = sim_peer(s, me, origin, p->color);

		if (status)
			answer_failure(s, a, to, m, status);
		else if (to != p)
			answer(s, to, m, ACP_ST_OK, NULL);
	}
}

static void take_cmd(struct sim *s, struct sim_arrival *a, const struct acp_msg *m)
{
	struct sim_peer *p = a->peer;
	u32 me = p->me->id, dst;
	struct sim_item *item;
	u8 status = m->flags & ACP_MSG_FAIL ? m->status : acp_cmd_check(&s->ga, s->colors, m);

	if (!status && depends_failed(s, p, m))
		status = ACP_ST_ORDER;
	if (status) {
		answer_failure(s, a, p, m, status);
		return;
	}
	dst = sim_node_of(s, acp_ga_rank(&s->ga, m->dst));
	if (dst == me) {
		status = do_local(s, me, m);
		if (status)
			answer_failure(s, a, p, m, status);
		else
			answer(s, p, m, ACP_ST_OK, NULL);
		return;
	}
	item = item_new(s);
	item->out.m = *m;
	item->out.m.flags = 0;
	item->out.fence = m->flags & ACP_MSG_ORDERED;
	if (!item->out.fence) {
		item->out.m.depends = 0;
		item->out.m.upto = 0;
	}
	status = make_data(s, me, &item->out);
	if (status) {
		item_free(s, item);
		answer_failure(s, a, p, m, status);
		return;
	}
	item->requester = p;
	p->delegated++;
	sim_peer_send(s, sim_peer(s, me, dst, acp_ga_color(&s->ga, m->dst)), item);
}

/* Bytes between the message of a frame and its payload. */
static u32 gap_of(const struct sim_packet *packet)
{
	const struct acp_frame_hdr *h = (const void *)packet->bytes;

	return h->flags & ACP_FRAME_CRC ? sizeof(struct acp_frame_crc) : 0;
}

void sim_station_apply(struct sim *s, struct sim_arrival *a)
{
	const u8 *body = a->packet->bytes + HEADER;
	u32 gap = gap_of(a->packet), at, size, length = a->packet->length - HEADER - gap;
	struct acp_msg m;

	if (a->peer->life != a->life)
		return;
	for (at = 0; at < length; at += size) {
		size = acp_msg_decode(&m, body + at, length - at, length - at);
		SIM_CHECK(s, size);
		if (m.type == ACP_MSG_DATA)
			take_data(s, a, &m, body + at + acp_msg_head(&m) + gap);
		else if (m.type == ACP_MSG_CMD)
			take_cmd(s, a, &m);
		else
			complete(s, m.origin, m.ticket, m.status);
	}
}

bool sim_station_admits(struct sim *s, struct sim_peer *p, const struct sim_packet *packet)
{
	struct acp_msg m;
	u32 at, size, length = packet->length - HEADER - gap_of(packet), commands = 0;

	for (at = 0; at < length; at += size) {
		size = acp_msg_decode(&m, packet->bytes + HEADER + at, length - at, length - at);
		SIM_CHECK(s, size);
		commands += m.type == ACP_MSG_CMD;
	}
	return p->delegated + commands <= SIM_DELEGATED;
}

/* ---- what became of items ---- */

void sim_station_done(struct sim *s, struct sim_item *item)
{
	struct sim_command *c = item->command;
	struct sim_arrival *arrival = item->arrival;
	struct sim_peer *requester = item->requester;
	u8 status = item->status ? item->status : item->out.failed;

	item->arrival = NULL;
	item->requester = NULL;
	if (arrival)
		sim_arrival_put(s, arrival);
	if (c) {
		c->busy = false;
		if (c->state == SIM_STARTED && (item->out.m.type == ACP_MSG_DATA || status))
			complete(s, c->rank, c->ticket, status);
		return;
	}
	if (requester) {
		requester->delegated--;
		if (item->status)
			answer(s, requester, &item->out.m, item->status, NULL);
	}
	item_free(s, item);
}

void sim_station_opened(struct sim *s, struct sim_peer *p)
{
	u32 rank;

	for (rank = p->me->id; rank < s->ranks; rank += s->nodes)
		drain(s, rank);
}

void sim_station_lost(struct sim *s, struct sim_peer *p, u8 status)
{
	u32 rank, i;

	for (rank = p->me->id; rank < s->ranks; rank += s->nodes) {
		for (i = 0; i < SIM_DEPTH; i++) {
			struct sim_command *c = &s->rank[rank].commands[i];

			if (c->state == SIM_WAITING && c->opens == p)
				c->state = SIM_STARTED;
			else if (c->state != SIM_STARTED ||
				 (c->expects[0] != p && c->expects[1] != p))
				continue;
			complete(s, rank, c->ticket, status);
		}
	}
}
