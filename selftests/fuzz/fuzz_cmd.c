// SPDX-License-Identifier: MIT
/*
 * Fuzzer of kernel/core/cmd.c: ring entries and commands as a hostile process or peer could write
 * them (K3, N9, N10), the division of transfers into pieces, ordered commands, and remembered
 * failures. The first byte of an input selects one. The expected results are implemented a second
 * time, following acp_cmd.h of uapi/, acp_ga.h and cmd.h.
 */
#include "fuzz.h"
#include "cmd.h"
#include "word.h"
#include "../unit/order_model.h"

static_assert(ACP_OP_END == 27);	/* the rules of a new operation belong here */

/* ---- Entries ---- */

struct job {
	struct acp_ga_layout l;
	u32 nprocs, colors;
	u32 nodes;		/* rank r is on node r % nodes */
	u32 rank_bits;
};

static void take_job(struct input *in, struct job *j)
{
	j->nprocs = 1 + take_number(in) % ACP_RANKS_MAX;
	j->colors = 1 + take(in, 1) % ACP_COLORS_MAX;
	j->nodes = 1 + take(in, 1) % 4;
	j->l = acp_ga_layout(j->nprocs);
	for (j->rank_bits = 0; j->nprocs >> j->rank_bits; j->rank_bits++)
		;
	ENSURE(j->l.rank_bits == j->rank_bits);
	ENSURE(j->l.rank_bits + ACP_COLOR_BITS + j->l.stag_bits + j->l.offset_bits == 64);
	ENSURE(j->l.stag_bits >= 6 && j->l.offset_bits >= 32);
}

/* An address: any number, or one whose rank and color are near the limits. */
static u64 take_address(struct input *in, const struct job *j)
{
	u32 how = take(in, 1);
	u64 rest = take(in, 1 + how % 8), rank, color;

	if (how & 8)
		return rest;
	rank = how & 16 ? j->nprocs + take(in, 1) - 128 : take_number(in) % j->nprocs;
	color = how & 32 ? take(in, 1) % 4 : take(in, 1) % j->colors;
	return (rank + 1) << (64 - j->rank_bits) | color << (62 - j->rank_bits) |
	       rest << 2 >> 2 >> j->rank_bits;
}

static bool address_rule(const struct job *j, u64 ga)
{
	u64 rank_plus_1 = ga >> (64 - j->rank_bits);
	u32 color = ga << j->rank_bits >> 62;

	return rank_plus_1 >= 1 && rank_plus_1 <= j->nprocs && color < j->colors;
}

/* Assembling the fields must give the address again. */
static void same_address(const struct job *j, u64 ga)
{
	const struct acp_ga_layout *l = &j->l;
	u64 again = acp_ga_make(l, acp_ga_rank(l, ga), acp_ga_color(l, ga), acp_ga_stag(l, ga),
				acp_ga_offset(l, ga));

	ENSURE(acp_ga_valid(l, ga) && acp_ga_rank(l, ga) < j->nprocs);
	ENSURE(again == ga);
}

static u32 node_of(const struct job *j, u64 ga)
{
	return ((ga >> (64 - j->rank_bits)) - 1) % j->nodes;
}

/* One end of a strided copy, computed with sufficiently wide integers. */
static u8 end_rule(const struct job *j, u64 ga, u64 stride, u64 size)
{
	__int128 offset = ga & ((1ULL << j->l.offset_bits) - 1), block = (u32)size;
	__int128 step = (int64_t)stride, far = step * ((size >> 32) - 1);

	if ((step < 0 ? -step : step) < block)
		return ACP_ST_OP;
	if (offset + (far < 0 ? far : 0) < 0 ||
	    offset + (far > 0 ? far : 0) + block > (__int128)1 << j->l.offset_bits)
		return ACP_ST_RANGE;
	return ACP_ST_OK;
}

static bool in_one_piece(const struct acp_sqe *e)
{
	u64 block = (u32)e->size;

	return !block || e->size >> 32 < 2 || (e->a == block && e->b == block);
}

static u8 strided_rule(const struct job *j, const struct acp_sqe *e)
{
	u8 dst = end_rule(j, e->dst, e->a, e->size), src = end_rule(j, e->src, e->b, e->size);
	u64 block = (u32)e->size;
	bool nobody = !address_rule(j, e->src) || !address_rule(j, e->dst);

	if (block * (e->size >> 32) > 1ULL << 62)
		return ACP_ST_OP;
	if (in_one_piece(e))
		return nobody ? ACP_ST_GA : ACP_ST_OK;
	if (dst == ACP_ST_OP || src == ACP_ST_OP)
		return ACP_ST_OP;
	if (!acp_ga_valid(&j->l, e->src) || !acp_ga_valid(&j->l, e->dst))
		return ACP_ST_GA;
	if (dst || src)
		return ACP_ST_RANGE;
	return nobody ? ACP_ST_GA : ACP_ST_OK;
}

static u8 signal_rule(const struct job *j, const struct acp_sqe *e)
{
	if (e->size > 1ULL << 62)
		return ACP_ST_OP;
	if (!address_rule(j, e->a))
		return ACP_ST_GA;
	if (e->a & 7)
		return ACP_ST_ALIGN;
	return address_rule(j, e->src) && address_rule(j, e->dst) ? ACP_ST_OK : ACP_ST_GA;
}

static u8 indirect_rule(const struct job *j, const struct acp_sqe *e)
{
	if (e->size > 1ULL << 62 || e->a || (e->op != 19 && (!e->size || e->b)))
		return ACP_ST_OP;
	if ((e->op == 21 ? e->src : e->dst) & 7)
		return ACP_ST_ALIGN;
	return address_rule(j, e->src) && address_rule(j, e->dst) ? ACP_ST_OK : ACP_ST_GA;
}

/* The origin of all commands here is rank 0. */
static u8 wait_rule(const struct job *j, const struct acp_sqe *e)
{
	const u64 names[] = { e->dst, e->size, e->b };
	u32 i;

	for (i = 0; i < 6; i++)
		if ((names[i / 2] >> 32 * (i % 2) & 0xffffffff) > j->l.nprocs)
			return ACP_ST_RANK;
	if (!acp_ga_valid(&j->l, e->src))
		return ACP_ST_GA;
	if (e->src >> (64 - j->rank_bits) != 1)
		return ACP_ST_ACCESS;
	if (e->src & 7)
		return ACP_ST_ALIGN;
	return address_rule(j, e->src) ? ACP_ST_OK : ACP_ST_GA;
}

static u8 reduce_rule(const struct job *j, const struct acp_sqe *e)
{
	u64 op = e->a % 256, type = e->a / 256, low = type % 2 ? 7 : 3;

	if (op > 7 || type > 5 || (type > 3 && op > 3 && op < 7))
		return ACP_ST_OP;
	if (e->size > 1ULL << 62 || e->size & low || e->b)
		return ACP_ST_OP;
	if (e->src & low || e->dst & low)
		return ACP_ST_ALIGN;
	return address_rule(j, e->src) && address_rule(j, e->dst) ? ACP_ST_OK : ACP_ST_GA;
}

static u8 accumulate_rule(const struct job *j, const struct acp_sqe *e)
{
	u64 op = e->size % 256, type = e->size / 256 % 256, low = type % 2 ? 7 : 3;

	if (op > 7 || type > 5 || (type > 3 && op > 3 && op < 7))
		return ACP_ST_OP;
	if (e->op == 24 && (e->a || e->b))
		return ACP_ST_OP;
	if (e->src & low || e->dst & low)
		return ACP_ST_ALIGN;
	if (e->op > 24 && !address_rule(j, e->a))
		return ACP_ST_GA;
	if (e->op > 24 && e->a & 7)
		return ACP_ST_ALIGN;
	return address_rule(j, e->src) && address_rule(j, e->dst) ? ACP_ST_OK : ACP_ST_GA;
}

static u8 command_rule(const struct job *j, const struct acp_sqe *e)
{
	u64 low = e->op % 2 ? 7 : 3;

	if (e->op > 23 && e->op < 27)
		return accumulate_rule(j, e);
	if (e->op == 23)
		return reduce_rule(j, e);
	if (e->op == 22)
		return wait_rule(j, e);
	if (e->op < 1 || e->op > 21)
		return ACP_ST_OP;
	if (e->op == 14)
		return strided_rule(j, e);
	if (e->op > 16)
		return indirect_rule(j, e);
	if (e->op > 14)
		return signal_rule(j, e);
	if (e->op == 1 ? e->a || e->b || e->size > 1ULL << 62 : e->size)
		return ACP_ST_OP;
	if (!address_rule(j, e->src) || !address_rule(j, e->dst))
		return ACP_ST_GA;
	return e->op > 1 && (e->src & low || e->dst & low) ? ACP_ST_ALIGN : ACP_ST_OK;
}

static u8 entry_rule(const struct acp_sqe *e, u64 ticket)
{
	u32 i;

	for (i = 0; i < sizeof(e->reserved); i++)
		if (e->reserved[i])
			return ACP_ST_OP;
	if (e->flags > 63 || (e->flags & 4 && e->op != 18 && e->op != 19) ||
	    (e->flags & 8 && e->op != 19) ||
	    (e->flags & 16 && e->op != 7 && e->op != 16 && e->op != 26) ||
	    (e->flags & 32 && e->op != 1 && e->op != 15 && e->op != 16 &&
	     (e->op < 24 || e->op > 26)))
		return ACP_ST_OP;
	return e->order >= ticket ? ACP_ST_OP : ACP_ST_OK;
}

static void take_entry(struct input *in, const struct job *j, struct acp_sqe *e)
{
	u32 odd = take(in, 1), i;
	bool plain;

	e->op = take(in, 1) % (odd & 1 ? 256 : ACP_OP_END);
	plain = e->op == ACP_OP_COPY || e->op > ACP_OP_COPY_ADD;
	e->flags = take(in, 1) % (odd & 2 ? 256 : 32);
	for (i = 0; i < sizeof(e->reserved); i++)
		e->reserved[i] = odd & 4 ? take(in, 1) : 0;
	e->order = take_number(in);
	e->seen = take_number(in);
	e->src = take_address(in, j);
	e->dst = take_address(in, j);
	if (odd & 8) {
		e->src &= ~7ULL;
		e->dst &= ~7ULL;
	}
	e->size = acp_op_width(e->op) <= 0 || odd & 16 ? take_number(in) : 0;
	e->a = !plain || odd & 32 ? take_number(in) : 0;
	e->b = !plain || odd & 64 ? take_number(in) : 0;
	if (e->op == ACP_OP_STRIDED && !(odd & 16)) {
		e->size = ACP_BLOCKS(e->size % 100, take(in, 1));
		e->a = e->a % 20000 - (odd & 32 ? 10000 : 0);
		e->b = e->b % 20000 - (odd & 64 ? 10000 : 0);
	}
	if (e->op == ACP_OP_WAIT && !(odd & 16)) {
		u64 names = take_number(in);

		e->dst = ACP_WAIT_RANKS(names % (j->l.nprocs + 1) - 1, -1);
		e->size = ACP_WAIT_RANKS(-1, names % j->l.nprocs);
		e->b = odd & 64 ? e->b : 0;
		e->a = take_number(in);
	}
	if (e->op == ACP_OP_REDUCE && !(odd & 16)) {
		e->a = take(in, 1) % 9 | take(in, 1) % 7 << 8;
		e->size &= ~(u64)(odd & 64 ? 3 : 7);
	}
	if (acp_op_accumulates(e->op) && !(odd & 16))
		e->size = ACP_NUMBERS(take(in, 1) % 9, take(in, 1) % 7, e->size);
	if (acp_op_signals(e->op) && !(odd & 32))
		e->a = take_address(in, j) & (odd & 64 ? ~7ULL : ~0ULL);
}

/* A valid command must also be valid on the node to which it is delegated. */
static void over_the_wire(const struct job *j, const struct acp_msg *m)
{
	u32 size = acp_msg_size(m);
	struct acp_msg out;
	void *p = calloc(1, size);

	acp_msg_encode(p, m);
	ENSURE(acp_msg_decode(&out, p, size, size) == size);
	ENSURE(out.op == m->op && out.src == m->src && out.dst == m->dst && out.size == m->size);
	ENSURE(out.a == m->a && out.c == m->c && (out.b == m->b || acp_op_args(m->op) < 2));
	ENSURE(acp_cmd_check(&j->l, j->colors, &out) == ACP_ST_OK);
	free(p);
}

static void step_rule(const struct job *j, const struct acp_msg *m, u32 me)
{
	u32 src = node_of(j, m->src), dst = node_of(j, m->dst);
	bool far = src != me, copy = m->op == ACP_OP_COPY || m->op > 13;
	bool much = m->size > (m->op >= 23 ? 4096 : m->op > 19 ? ACP_COPY_BLOCKS : ACP_COPY_LONG) ||
		    (m->op == 14 && m->c >> 32 > ACP_COPY_BLOCKS);
	struct acp_step s;

	memset(&s, 0xa5, sizeof(s));
	acp_step_set(&s, &j->l, m, me, src, dst);
	ENSURE(s.plan == (far ? ACP_PLAN_DELEGATE : dst == me ? ACP_PLAN_LOCAL : ACP_PLAN_SEND));
	ENSURE(s.atomic == !copy);
	ENSURE(s.home == (far && dst == me) && s.third == (far && dst != me && dst != src));
	ENSURE(s.later == (s.third || (src == dst && copy && much) || m->op == 18 ||
			   m->op == 19));
	ENSURE(s.dst_node == dst && s.dst_color == acp_ga_color(&j->l, m->dst));
	if (s.plan == ACP_PLAN_SEND)
		ENSURE(s.node == dst && s.color == s.dst_color);
	else
		ENSURE(s.node == src && s.color == acp_ga_color(&j->l, m->src));
}

/* The result of an atomic, all significant bits. */
static void result_rule(const struct acp_sqe *e, u64 old)
{
	u64 mask = e->op % 2 ? ~0ULL : 0xffffffff;
	u64 a = e->a & mask, x = old & mask, want;

	switch (e->op / 2) {
	case 1:
		want = x == a ? e->b : x;
		break;
	case 2:
		want = a;
		break;
	case 3:
		want = x + a;
		break;
	case 4:
		want = x ^ a;
		break;
	case 5:
		want = x | a;
		break;
	default:
		want = x & a;
	}
	ENSURE((acp_op_result(e->op, old, e->a, e->b) & mask) == (want & mask));
	ENSURE(acp_op_width(e->op) == (e->op % 2 ? 8 : 4));
}

/* A command that revokes: 0 bytes and the word, which must be valid without further checks. */
static void revoke_rule(const struct job *j, const struct acp_sqe *e, struct acp_msg m, u32 me)
{
	u64 word = e->op == 7 ? e->src : e->a;
	struct acp_step s;

	acp_cmd_revoke(&j->l, &m);
	ENSURE(m.op == ACP_OP_COPY_SET && !m.size && !m.a && m.b == 1ULL << 62 && m.c == word);
	ENSURE(m.dst == word && acp_ga_rank(&j->l, m.src) == m.origin);
	ENSURE(acp_cmd_check(&j->l, j->colors, &m) == ACP_ST_OK);
	acp_step_set(&s, &j->l, &m, me, me, node_of(j, m.dst));
	ENSURE(s.plan == (node_of(j, word) == me ? ACP_PLAN_LOCAL : ACP_PLAN_SEND));
	ENSURE(!s.later && !s.atomic);
}

static void word_rule(u64 word, u64 value)
{
	u64 beyond = word - value;

	ENSURE(acp_word_state(word, value) ==
	       (beyond >> 63 ? ACP_WORD_BEFORE : beyond >> 61 ? ACP_WORD_IS_REVOKED :
							       ACP_WORD_REACHED));
}

static void entries(struct input *in)
{
	struct acp_sqe *e = calloc(1, sizeof(*e));
	u32 me = take(in, 1) % 4;
	struct acp_msg m;
	struct job j;
	u64 ticket, old;

	take_job(in, &j);
	take_entry(in, &j, e);
	ticket = take_number(in);
	old = take_number(in);
	ENSURE(acp_sqe_check(e, ticket) == entry_rule(e, ticket));
	word_rule(old, e->a);
	m = (struct acp_msg){ .type = ACP_MSG_CMD, .op = e->op, .ticket = ticket, .dst = e->dst,
			      .src = e->src, .size = e->size, .a = e->a, .b = e->b };
	if (e->op >= ACP_OP_STRIDED)
		acp_cmd_from_entry(&m);
	ENSURE(acp_cmd_check(&j.l, j.colors, &m) == command_rule(&j, e));
	if (command_rule(&j, e) == ACP_ST_OK && e->op != ACP_OP_WAIT) {
		same_address(&j, e->src);
		same_address(&j, e->dst);
		if (e->op != ACP_OP_REDUCE && (m.size || !acp_op_accumulates(e->op)))
			over_the_wire(&j, &m);
		step_rule(&j, &m, me % j.nodes);
		if (e->op == 7 || e->op == 16 || e->op == 26)
			revoke_rule(&j, e, m, me % j.nodes);
		if (e->op != ACP_OP_COPY && e->op < ACP_OP_STRIDED)
			result_rule(e, old);
		if (e->op == ACP_OP_STRIDED)
			ENSURE((m.op == ACP_OP_COPY) == in_one_piece(e));
	}
	free(e);
}

/* ---- Pieces ---- */

#define PIECES	64		/* then the source fails, unless it failed before */

/* A piece as first sent, or as retransmitted after the source failed. */
static void piece_rule(const struct acp_out *o, u64 at, u32 length)
{
	bool data = o->m.type == ACP_MSG_DATA;
	bool last = data && (!length || at + length == o->m.size), fence;
	bool numbers = data && o->m.op > 23, signal = acp_op_signals(o->m.op);
	bool strided = data && o->m.op == 14;
	bool placed = strided || (data && o->m.op > 16 && !numbers);
	bool bare = data && (o->failed || (signal && !last));
	struct acp_msg m;

	acp_out_piece(o, at, length, &m, &fence);
	ENSURE(m.type == o->m.type && m.ticket == o->m.ticket);
	ENSURE(m.op == (!bare ? o->m.op : numbers && !o->failed ? ACP_OP_ACCUMULATE : 0));
	ENSURE(m.dst == o->m.dst + (data && !placed ? at : 0));
	ENSURE(m.src == o->m.src + (data && !strided ? at : 0));
	ENSURE(m.b == (placed ? at : data && signal && !last ? 0 : o->m.b));
	ENSURE(m.length == (o->failed || !data ? 0 : length));
	ENSURE(m.size == (data ? 0 : o->m.size));
	ENSURE(m.status == o->failed && !!(m.flags & ACP_MSG_FAIL) == !!o->failed);
	ENSURE(!!(m.flags & ACP_MSG_LAST) == last);
	ENSURE(fence == (o->fence || (last && at > 0)));
}

/* Divide the whole transfer: pieces must be contiguous, and only the last one marked as such. */
static void pieces(struct input *in)
{
	u32 odd = take(in, 1), payload, count = 0, length, fail;
	struct acp_out o = { .fence = odd & 1, .failed = odd & 2 ? ACP_ST_ORDER : 0 };
	u64 at;

	o.m.type = odd & 4 ? ACP_MSG_CMD : ACP_MSG_DATA;
	o.m.op = odd & 4 ? ACP_OP_COPY : odd & 16 ? ACP_OP_STRIDED + odd / 32 % 5 : 0;
	if (o.m.op && !(odd & 4) && odd / 32 > 4)
		o.m.op = ACP_OP_ACCUMULATE + odd / 32 - 5;
	o.m.ticket = take_number(in);
	o.m.dst = take_number(in);
	o.m.src = take_number(in);
	o.m.size = take_number(in) % (ACP_COPY_MAX + 1);
	payload = 1 + take(in, 2);
	fail = take(in, 1) % PIECES;
	ENSURE(acp_out_single(&o, payload) == (o.m.type != ACP_MSG_DATA || o.m.size <= payload));
	do {
		at = o.cut;
		if (count == fail && odd & 8)
			acp_out_fail(&o, ACP_ST_STAG);
		if (count == PIECES)
			acp_out_fail(&o, ACP_ST_ABORT);
		length = acp_out_cut(&o, payload);
		ENSURE(length <= payload && o.cut == at + length && o.cut <= o.m.size);
		ENSURE(length || o.finished);
		piece_rule(&o, at, length);
		ENSURE(!acp_out_single(&o, payload) || o.finished);
	} while (!o.finished && ++count <= PIECES);
	ENSURE(o.finished && (o.failed || o.m.type != ACP_MSG_DATA || o.cut == o.m.size));
	acp_out_fail(&o, ACP_ST_STAG);
	if (at)
		piece_rule(&o, 0, min_t(u64, payload, at));
}

/* ---- Order ---- */

#define COMMANDS	24
#define NODES		3
#define COLORS		2

/* Commands 2 .. COMMANDS + 1 of a rank on node ORIGIN; indexed by ticket. */
struct queue {
	struct acp_run run;
	struct model c[COMMANDS + 2];
	u32 epoch_of[COMMANDS + 2];	/* of the flow on which it was or will be sent */
	u32 epoch[NODES][COLORS];	/* of each flow */
	u32 epochs;
	u64 completed;
};

static void advance(struct queue *q)
{
	while (q->completed < COMMANDS + 1 && q->c[q->completed + 1].complete)
		q->completed++;
}

/*
 * All that a command waits for has taken effect before, or was sent in an epoch covered by its
 * fence.
 */
static void fence_rule(const struct queue *q, u64 t)
{
	const struct model *c = &q->c[t];
	u64 i;

	ENSURE(c->s.plan != ACP_PLAN_LOCAL);
	for (i = q->completed + 1; i <= c->order; i++) {
		const struct model *before = &q->c[i];

		ENSURE(guaranteed(before, c));
		ENSURE(before->complete || before->s.plan == ACP_PLAN_LOCAL ||
		       q->epoch_of[i] == q->run.epoch);
	}
}

/* Process a command that may be due, as the queue and the station do. */
static void start(struct queue *q, u64 t)
{
	struct model *c = &q->c[t];
	enum acp_start how;
	u32 epoch;

	if (c->started)
		return;
	how = acp_run_ask(&q->run, q->completed, c->order, &c->s);
	ENSURE((how == ACP_START_NOW) == (c->order <= q->completed));
	if (how == ACP_START_WAIT)
		return;
	if (how == ACP_START_FENCED)
		fence_rule(q, t);
	c->started = true;
	c->fenced = how == ACP_START_FENCED;
	c->complete = c->s.plan == ACP_PLAN_LOCAL && !c->s.later;
	epoch = q->run.epoch;
	acp_run_started(&q->run, q->completed, t, &c->s);
	ENSURE(q->run.last >= t || q->run.first > q->run.last);
	if (c->s.plan != ACP_PLAN_LOCAL) {
		/*
		 * A command behind a fence of an ended epoch fails with that epoch, as do the next
		 * ones.
		 */
		q->epoch_of[t] = c->fenced ? epoch : q->epoch[c->s.node][c->s.color];
		acp_run_sent(&q->run, t, q->epoch_of[t]);
	}
	advance(q);
}

static void take_commands(struct input *in, struct queue *q)
{
	struct job j = { .l = acp_ga_layout(NODES) };
	struct acp_msg m;
	u32 what;
	u64 t;

	for (t = 2; t <= COMMANDS + 1; t++) {
		u32 src, dst;

		what = take(in, 2);
		src = what % NODES;
		dst = what / NODES % NODES;
		m = (struct acp_msg){ .op = what & 0x1000 ? ACP_OP_ADD8 : ACP_OP_COPY };
		m.src = acp_ga_make(&j.l, src, what >> 13 & 1, ACP_STAG_USER, 0);
		m.dst = acp_ga_make(&j.l, dst, what >> 14 & 1, ACP_STAG_USER, 0);
		m.size = what >> 15 && m.op == ACP_OP_COPY ? ACP_COPY_LONG + 1 : 0;
		acp_step_set(&q->c[t].s, &j.l, &m, ORIGIN, src, dst);
		derive(&q->c[t]);
		what = take(in, 1);
		q->c[t].order = what < 160 ? t - 1 : what % t;
	}
}

static void order(struct input *in)
{
	struct queue q = { .run = { .first = 2, .last = 1 }, .completed = 1 };
	u32 i, what;

	for (i = 0; i < NODES * COLORS; i++)
		q.epoch[i / COLORS][i % COLORS] = ++q.epochs;
	take_commands(in, &q);
	while (in->left) {
		u64 t;

		what = take(in, 1);
		t = 2 + what / 4 % COMMANDS;
		if (what % 4 == 0 && q.c[t].started)
			q.c[t].complete = true;
		else if (what % 4 == 3 && what >= 200)
			q.epoch[what % NODES][what / 4 % COLORS] = ++q.epochs;
		else
			start(&q, t);
		advance(&q);
	}
	/* In any state, all commands can start once all before them are complete. */
	for (i = 2; i <= COMMANDS + 1; i++) {
		start(&q, i);
		ENSURE(q.c[i].started);
		q.c[i].complete = true;
		advance(&q);
	}
}

/* ---- Failures ---- */

#define ORIGINS		2
#define TICKETS		512

/* The failures added to the table, without its limits. */
struct memory {
	struct acp_fails *t;
	u8 piece[ORIGINS][TICKETS];	/* status, 0: none */
	u64 until[ORIGINS][TICKETS];	/* 0: none */
	u64 rcv, latest;
	bool full;			/* more failures than fit */
};

static u32 pieces_known(const struct memory *m)
{
	u32 i, n = 0;

	for (i = 0; i < m->t->count; i++)
		n += !m->t->e[i].until;
	return n;
}

static void add(struct memory *m, u32 origin, u64 ticket, u8 status, u64 until)
{
	/* What is over may have left the table. */
	bool known = until ? m->until[origin][ticket] >= m->rcv : m->piece[origin][ticket];
	bool room = m->t->count < ACP_FAILS, ok;

	m->full |= !room && !known && until;
	ok = acp_fails_add(m->t, origin, ticket, status, until);
	ENSURE(ok || (!until && !room && !known && pieces_known(m) == ACP_FAILS));
	if (!ok)
		return;
	if (!until)
		m->piece[origin][ticket] = known ? m->piece[origin][ticket] : status;
	else
		m->until[origin][ticket] = until;
	m->full |= !room && !known;
	m->latest = max_t(u64, m->latest, until);
}

static void add_some(struct memory *m, struct input *in)
{
	u32 how = take(in, 1), count = how & 4 ? take(in, 1) : 1;
	u64 ticket = take(in, 2);
	u8 status = 1 + take(in, 1) % 255;

	for (; count; count--, ticket++)
		add(m, how % ORIGINS, ticket % TICKETS, status,
		    how & 2 ? 1 + ticket % TICKETS * 16 : 0);
}

static void take_fail(struct memory *m, struct input *in)
{
	u32 origin = take(in, 1) % ORIGINS;
	u64 ticket = take(in, 2) % TICKETS;

	ENSURE(acp_fails_see(m->t, origin, ticket) == m->piece[origin][ticket]);
	ENSURE(acp_fails_take(m->t, origin, ticket) == m->piece[origin][ticket]);
	ENSURE(acp_fails_take(m->t, origin, ticket) == ACP_ST_OK);
	m->piece[origin][ticket] = 0;
}

/*
 * The table must never miss a failure; false positives are allowed only while more failures were
 * added than fit.
 */
static void depends(struct memory *m, struct input *in)
{
	struct acp_msg msg = { .type = ACP_MSG_DATA };
	bool want = false, found;
	u64 t;

	msg.origin = take(in, 1) % ORIGINS;
	msg.ticket = take(in, 2) % (2 * TICKETS);
	msg.depends = take(in, 2) % (msg.ticket + 1);
	msg.upto = msg.depends ? 1 + take(in, 2) % msg.depends : 0;
	for (t = msg.ticket - msg.depends; msg.depends && t <= msg.ticket - msg.upto; t++)
		want |= t < TICKETS && m->until[msg.origin][t] >= m->rcv;
	found = acp_fails_depends(m->t, &msg, m->rcv);
	ENSURE(found == want || (found && m->full && msg.depends && m->rcv <= m->latest));
}

static void failures(struct input *in)
{
	struct memory *m = calloc(1, sizeof(*m));
	u64 i;

	m->t = calloc(1, sizeof(*m->t));
	m->rcv = 1;
	while (in->left) {
		u32 what = take(in, 1);

		if (what % 4 == 0)
			take_fail(m, in);
		else if (what % 4 == 1)
			depends(m, in);
		else if (what % 4 == 2)
			add_some(m, in);
		else
			m->rcv += what / 4 * (what / 4);
		ENSURE(m->t->count <= ACP_FAILS);
	}
	m->rcv = max_t(u64, m->rcv, m->latest + 1);
	acp_fails_depends(m->t, &(struct acp_msg){ .depends = 1, .upto = 1 }, m->rcv);
	ENSURE(m->t->count == pieces_known(m));
	for (i = 0; i < (u64)ORIGINS * TICKETS; i++)
		ENSURE(acp_fails_take(m->t, i % ORIGINS, i / ORIGINS) ==
		       m->piece[i % ORIGINS][i / ORIGINS]);
	ENSURE(!m->t->count);
	free(m->t);
	free(m);
}

int fuzz_one(const u8 *data, size_t size)
{
	static void (*const parts[])(struct input *) = { entries, pieces, order, failures };
	struct input in = { data, size };

	parts[take(&in, 1) % 4](&in);
	return 0;
}
