// SPDX-License-Identifier: MIT
/*
 * The environment of the commands of a simulated node: the memory and the queue of each rank, and
 * the effects of what arrives there. The core (kernel/core/) decides what happens to a command. See
 * sim.h.
 */
#include "sim.h"
#include "test.h"

#define HEADER	((u32)sizeof(struct acp_frame_hdr))

static void complete(struct sim *s, u32 rank, u64 ticket, u8 status);

/* ---- memory ---- */

/* Translate an address of this node; returns NULL and sets the status if that is not possible. */
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

/* The first byte of the range that contains all blocks of one end, or NULL and the status. */
static u8 *reach_all(struct sim *s, u32 node, u64 ga, u64 stride, u64 desc, u8 *status)
{
	u64 first, size;

	*status = ACP_ST_RANGE;
	if (!acp_strided_span(&s->ga, ga, stride, desc, &first, &size) ||
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

/* Both ends are on this node. */
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

/* A copy is complete: change its flag, if it has one. */
static u8 raise_flag(struct sim *s, u32 node, const struct acp_msg *m)
{
	struct acp_msg flag = { .op = acp_op_of_flag(m->op), .src = m->c, .a = m->b };
	u64 old;

	if (!acp_op_signals(m->op))
		return ACP_ST_OK;
	return do_atomic(s, node, &flag, &old);
}

/* Both ends are on this node. */
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

/* Did one of these fail, as far as is known on this node? */
static bool any_failed(struct sim *s, u32 rank, u64 first, u64 last)
{
	if (s->rank[rank].last_failed < first)
		return false;
	for (; first <= last; first++) {
		const struct sim_command *c = command_of(s, rank, first);

		if (c && c->state == SIM_COMPLETE && c->status)
			return true;
	}
	return false;
}

/* Turn a command whose source is on this node into the DATA for its destination. */
static u8 make_data(struct sim *s, u32 node, struct acp_out *out)
{
	struct acp_msg *m = &out->m;
	u64 word = 0;
	u8 status;

	if (m->op == ACP_OP_STRIDED) {
		reach_all(s, node, m->src, m->b, m->c, &status);
	} else if (acp_op_width(m->op)) {
		status = do_atomic(s, node, m, &word);
		acp_out_word(out, acp_op_width(m->op), word);
	} else {
		const u8 *p = reach(s, node, m->src, m->size, &status);

		if (!status && m->op != ACP_OP_SEND && m->size <= 8 && sim_random(s) % 2) {
			memcpy(&word, p, m->size);
			acp_out_word(out, m->size, word);
		}
	}
	acp_out_data(out);
	return status;
}

static struct sim_peer *source_of(struct sim *s, const struct sim_command *c)
{
	return sim_peer(s, sim_node_of(s, c->rank), c->step.node, c->step.color);
}

static struct sim_peer *third_of(struct sim *s, const struct sim_command *c)
{
	return sim_peer(s, sim_node_of(s, c->rank), c->step.dst_node, c->step.dst_color);
}

/* Answers are awaited from the node that executes it and from the node that receives the result. */
static void expect(struct sim *s, struct sim_command *c)
{
	c->expected = ACP_EXPECT_SOURCE;
	c->epoch[ACP_EXPECT_SOURCE - 1] = sim_peer_expect(s, source_of(s, c));
	if (!c->step.third)
		return;
	c->expected |= ACP_EXPECT_RESULT;
	c->epoch[ACP_EXPECT_RESULT - 1] = sim_peer_expect(s, third_of(s, c));
}

static void stop_expecting(struct sim *s, struct sim_command *c)
{
	u8 expected = c->expected;

	c->expected = 0;
	if (expected & ACP_EXPECT_SOURCE)
		sim_peer_unexpect(s, source_of(s, c), c->epoch[ACP_EXPECT_SOURCE - 1]);
	if (expected & ACP_EXPECT_RESULT)
		sim_peer_unexpect(s, third_of(s, c), c->epoch[ACP_EXPECT_RESULT - 1]);
}

/* Before its first message is sent: may it still take effect? */
void sim_ranks_due(struct sim *s, struct sim_item *item)
{
	u64 first, last;

	if (item->command && acp_msg_waits(&item->out.m, &first, &last) &&
	    any_failed(s, item->command->rank, first, last))
		acp_out_fail(&item->out, ACP_ST_ORDER);
}

static void start(struct sim *s, struct sim_command *c)
{
	struct sim_rank *r = &s->rank[c->rank];
	struct acp_out *out = &c->item.out;
	u32 me = sim_node_of(s, c->rank), epoch;
	u8 status = ACP_ST_OK;

	c->state = SIM_STARTED;
	acp_run_started(&r->run, r->completed, c->ticket, &c->step);
	if (c->step.plan == ACP_PLAN_LOCAL) {
		complete(s, c->rank, c->ticket, do_local(s, me, &out->m));
		return;
	}
	if (c->step.plan == ACP_PLAN_SEND) {
		status = make_data(s, me, out);
	} else {
		out->m.type = ACP_MSG_CMD;
		expect(s, c);
	}
	if (status) {
		complete(s, c->rank, c->ticket, status);
		return;
	}
	c->busy = true;
	epoch = sim_peer_send(s, source_of(s, c), &c->item, out->fence ? r->run.epoch : 0);
	acp_run_sent(&r->run, c->ticket, epoch);
}

/*
 * A third node that receives the result reports its arrival. If that node restarts afterwards, only
 * an open flow detects it; a flow that opens later does not.
 */
static bool is_ready(struct sim *s, struct sim_command *c, u8 *status)
{
	struct sim_peer *third = third_of(s, c);

	if (c->step.plan != ACP_PLAN_DELEGATE)
		return true;
	if (!acp_delegates(source_of(s, c)->flow.expect))
		return false;
	if (!c->step.third)
		return true;
	switch (acp_flow_ready(&third->flow, &c->epoch[ACP_EXPECT_RESULT - 1])) {
	case ACP_READY_OPEN:
		return true;
	case ACP_READY_NOT_YET:
		sim_peer_open(s, third);
		return false;
	default:
		*status = third->fates.status;
		return true;
	}
}

static void try_start(struct sim *s, struct sim_command *c)
{
	struct sim_rank *r = &s->rank[c->rank];
	enum acp_start how = acp_run_ask(&r->run, r->completed, c->order, &c->step);
	u8 status = ACP_ST_OK;

	if (how == ACP_START_WAIT)
		return;
	if (any_failed(s, c->rank, c->seen + 1, c->order))
		status = ACP_ST_ORDER;
	else if (!is_ready(s, c, &status))
		return;
	if (status) {
		c->state = SIM_STARTED;
		complete(s, c->rank, c->ticket, status);
		return;
	}
	if (how == ACP_START_FENCED)
		acp_step_fence(&c->item.out, &c->step, r->completed, c->seen, c->order);
	start(s, c);
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
	s->n.items_max = max_t(u64, s->n.items_max, s->n.items);
	return item;
}

static void item_free(struct sim *s, struct sim_item *item)
{
	s->n.items--;
	free(item);
}

/* Report the end of a command to its origin, through "p"; hold: pending until delivered. */
static void answer(struct sim *s, struct sim_peer *p, const struct acp_msg *m, u8 status,
		   struct sim_arrival *hold)
{
	struct sim_item *item = item_new(s);

	acp_out_done(&item->out, m, status);
	item->arrival = hold;
	if (hold) {
		hold->refs++;
		hold->pending = true;
	}
	sim_peer_send(s, p, item, 0);
}

/* Record a failure of the peer's command. False: the frame must be refused. */
static bool remember(struct sim *s, struct sim_peer *p, const struct acp_msg *m, u8 status,
		     u64 until)
{
	if (!p->failures.known && !sim_chance(s, s->net.forget))
		p->failures.known = &p->fails;
	return acp_failures_add(&p->failures, m->origin, m->ticket, status, until, p->flow.rcv);
}

/* A failure that dependents on the same flow must see, and the origin before the ack. */
static void answer_failure(struct sim *s, struct sim_arrival *a, const struct acp_msg *m,
			   u8 status)
{
	SIM_CHECK(s, remember(s, a->peer, m, status, acp_fails_until(a->taken.seq)));
	answer(s, a->peer, m, status, a);
}

static bool depends_failed(struct sim *s, struct sim_peer *p, const struct acp_msg *m)
{
	u64 first, last;

	if (!acp_msg_waits(m, &first, &last))
		return false;
	if (sim_node_of(s, m->origin) == p->me->id)
		return any_failed(s, m->origin, first, last);
	return acp_failures_depends(&p->failures, m, p->flow.rcv);
}

/* All data of a command has arrived, or will not arrive: the command ends. */
static void end_command(struct sim *s, struct sim_arrival *a, const struct acp_msg *m, u8 status)
{
	u32 me = a->peer->me->id, origin = sim_node_of(s, m->origin);

	if (!status)
		status = raise_flag(s, me, m);
	switch (acp_end_tell(me, a->peer->node, origin, status)) {
	case ACP_TELL_US:
		complete(s, m->origin, m->ticket, status);
		break;
	case ACP_TELL_FAILED:
		answer_failure(s, a, m, status);
		break;
	case ACP_TELL_ORIGIN:
		answer(s, sim_peer(s, me, origin, a->peer->color), m, status, NULL);
		break;
	case ACP_TELL_NOBODY:
		break;
	}
}

static void take_data(struct sim *s, struct sim_arrival *a, const struct acp_msg *m,
		      const u8 *payload)
{
	struct sim_peer *p = a->peer;
	u32 me = p->me->id;
	u8 status, earlier;

	if (m->flags & ACP_MSG_FAIL)
		status = m->status;
	else if (depends_failed(s, p, m))
		status = ACP_ST_ORDER;
	else if (m->op == ACP_OP_SEND)
		status = s->message(s, p->node, m, payload);
	else if (m->op == ACP_OP_STRIDED)
		status = write_blocks(s, me, m, m->b, payload, m->length);
	else
		status = write_memory(s, me, m->dst, payload, m->length);
	if (!(m->flags & ACP_MSG_LAST)) {
		a->refused = status && !remember(s, p, m, status, 0);
		return;
	}
	earlier = p->failures.known ? acp_fails_take(p->failures.known, m->origin, m->ticket) :
		  ACP_ST_OK;
	end_command(s, a, m, earlier ? earlier : status);
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
		answer_failure(s, a, m, status);
		return;
	}
	dst = sim_node_of(s, acp_ga_rank(&s->ga, m->dst));
	if (dst == me) {
		status = do_local(s, me, m);
		if (status)
			answer_failure(s, a, m, status);
		else
			answer(s, p, m, ACP_ST_OK, NULL);
		return;
	}
	item = item_new(s);
	acp_out_forward(&item->out, m);
	status = make_data(s, me, &item->out);
	if (status) {
		item_free(s, item);
		answer_failure(s, a, m, status);
		return;
	}
	item->requester = p;
	p->delegated++;
	sim_peer_send(s, sim_peer(s, me, dst, acp_ga_color(&s->ga, m->dst)), item, 0);
}

/* Bytes between the message of a frame and its payload. */
static u32 gap_of(const struct sim_packet *packet)
{
	const struct acp_frame_hdr *h = (const void *)packet->bytes;

	return h->flags & ACP_FRAME_CRC ? sizeof(struct acp_frame_crc) : 0;
}

void sim_ranks_apply(struct sim *s, struct sim_arrival *a)
{
	const u8 *body = a->packet->bytes + HEADER;
	u32 gap = gap_of(a->packet), at, size, length = a->packet->length - HEADER - gap;
	struct acp_msg m;

	if (a->peer->flow.epoch != a->taken.epoch)
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

bool sim_ranks_admits(struct sim *s, struct sim_peer *p, const struct sim_packet *packet)
{
	struct acp_msg m;
	u32 at, size, length = packet->length - HEADER - gap_of(packet), commands = 0;

	for (at = 0; at < length; at += size) {
		size = acp_msg_decode(&m, packet->bytes + HEADER + at, length - at, length - at);
		SIM_CHECK(s, size);
		commands += m.type == ACP_MSG_CMD;
	}
	return acp_delegated_fit(p->delegated, commands);
}

/* ---- finished items ---- */

void sim_ranks_done(struct sim *s, struct sim_item *item)
{
	struct sim_command *c = item->command;
	struct sim_arrival *arrival = item->arrival;
	struct sim_peer *requester = item->requester;
	u8 status;

	item->arrival = NULL;
	item->requester = NULL;
	if (arrival)
		sim_arrival_put(s, arrival);
	if (c) {
		c->busy = false;
		if (acp_out_ends(&item->out, item->status, &status) && c->state == SIM_STARTED)
			complete(s, c->rank, c->ticket, status);
		return;
	}
	if (requester) {
		requester->delegated--;
		if (acp_out_lost(&item->out, item->status))
			answer(s, requester, &item->out.m, item->status, NULL);
	}
	item_free(s, item);
}

/* What waits for a flow may continue. */
void sim_ranks_opened(struct sim *s, struct sim_peer *p)
{
	u32 rank;

	for (rank = p->me->id; rank < s->ranks; rank += s->nodes)
		drain(s, rank);
}

void sim_ranks_lost(struct sim *s, struct sim_peer *p, u8 status)
{
	u32 rank, i;

	for (rank = p->me->id; rank < s->ranks; rank += s->nodes) {
		for (i = 0; i < SIM_DEPTH; i++) {
			struct sim_command *c = &s->rank[rank].commands[i];
			u8 lost;

			if (c->state != SIM_STARTED)
				continue;
			lost = acp_expect_lost(&c->step, c->expected, c->epoch, p->node, p->color,
					       p->flow.epoch);
			c->expected &= ~lost;
			if (lost)
				complete(s, rank, c->ticket, status);
		}
		drain(s, rank);
	}
}
