// SPDX-License-Identifier: GPL-2.0-only
/* Life cycle of a command: see cmd.h. */
#include "cmd.h"
#include "word.h"

u64 acp_op_result(u8 op, u64 old, u64 a, u64 b)
{
	switch (op) {
	case ACP_OP_CAS4:
		return (u32)old == (u32)a ? b : old;
	case ACP_OP_CAS8:
		return old == a ? b : old;
	case ACP_OP_SWAP4:
	case ACP_OP_SWAP8:
		return a;
	case ACP_OP_ADD4:
	case ACP_OP_ADD8:
		return old + a;
	case ACP_OP_XOR4:
	case ACP_OP_XOR8:
		return old ^ a;
	case ACP_OP_OR4:
	case ACP_OP_OR8:
		return old | a;
	default:
		return old & a;
	}
}

void acp_cmd_from_entry(struct acp_msg *m)
{
	u64 numbers = m->size;

	if (m->op == ACP_OP_WAIT) {
		m->c = m->dst;
		m->dst = m->src;	/* so that it executes where the word is */
		return;
	}
	if (m->op != ACP_OP_STRIDED) {
		m->c = m->a;
		m->a = 0;
		if (acp_op_accumulates(m->op))
			acp_numbers_split(numbers, &m->a, &m->size);
		return;
	}
	m->c = m->size;
	m->size = acp_strided_size(m->c);
	if (acp_strided_wanted(m->c) &&
	    (m->a != acp_strided_block(m->c) || m->b != acp_strided_block(m->c)))
		return;
	m->op = ACP_OP_COPY;
	m->a = 0;
	m->b = 0;
	m->c = 0;
}

/* The copy that does the same as one of another kind that has no bytes. */
static void become_copy(struct acp_msg *m)
{
	if (acp_op_accumulates(m->op)) {
		m->op = acp_op_copies(m->op);
		m->a = 0;
	} else if (m->op != ACP_OP_SEND && m->op <= ACP_OP_GATHER) {
		m->op = ACP_OP_COPY;
	}
}

void acp_cmd_no_bytes(const struct acp_ga_layout *l, struct acp_msg *m)
{
	u64 own = acp_ga_make(l, m->origin, 0, ACP_STAG_LIBRARY, 0);

	if (m->op >= ACP_OP_INDIRECT)
		become_copy(m);
	if ((m->op != ACP_OP_COPY && m->op < ACP_OP_COPY_SET) || m->op == ACP_OP_WAIT)
		return;
	m->src = own;
	if (m->op != ACP_OP_SEND)
		m->dst = m->op == ACP_OP_COPY || m->op == ACP_OP_REDUCE ? own : m->c;
}

void acp_cmd_revoke(const struct acp_ga_layout *l, struct acp_msg *m)
{
	if (acp_op_width(m->op))
		m->c = m->src;
	m->op = ACP_OP_COPY_SET;
	m->size = 0;
	m->a = 0;
	m->b = ACP_WORD_REVOKED;
	acp_cmd_no_bytes(l, m);
}

/* Do not send what fits into no region. */
static u8 check_strided(const struct acp_ga_layout *l, const struct acp_msg *m)
{
	u64 first, size;

	if (!acp_strided_wanted(m->c) || !acp_strided_apart(m->a, m->c) ||
	    !acp_strided_apart(m->b, m->c))
		return ACP_ST_OP;
	if (!acp_ga_valid(l, m->src) || !acp_ga_valid(l, m->dst))
		return ACP_ST_GA;
	if (!acp_strided_span(l, m->dst, m->a, m->c, &first, &size) ||
	    !acp_strided_span(l, m->src, m->b, m->c, &first, &size))
		return ACP_ST_RANGE;
	return ACP_ST_OK;
}

/* A rank waits for its own memory only. */
static u8 check_wait(const struct acp_ga_layout *l, const struct acp_msg *m)
{
	u32 i;

	for (i = 0; i < ACP_WAIT_NAMES; i++)
		if (acp_wait_name(m, i) != ACP_WAIT_NOBODY && acp_wait_name(m, i) >= l->nprocs)
			return ACP_ST_RANK;
	if (!acp_ga_valid(l, m->src))
		return ACP_ST_GA;
	if (acp_ga_rank(l, m->src) != m->origin)
		return ACP_ST_ACCESS;
	return m->src & 7 ? ACP_ST_ALIGN : ACP_ST_OK;
}

static u8 check_reduce(const struct acp_msg *m)
{
	u32 width = acp_reduce_width(m->c);

	if (!width || m->size % width || m->a || m->b)
		return ACP_ST_OP;
	return (m->src | m->dst) & (width - 1) ? ACP_ST_ALIGN : ACP_ST_OK;
}

static u8 check_flag(const struct acp_ga_layout *l, u32 colors, const struct acp_msg *m)
{
	if (!acp_ga_valid(l, m->c) || acp_ga_color(l, m->c) >= colors)
		return ACP_ST_GA;
	return m->c & 7 ? ACP_ST_ALIGN : ACP_ST_OK;
}

static u8 check_accumulate(const struct acp_ga_layout *l, u32 colors, const struct acp_msg *m)
{
	u32 width = acp_reduce_width(m->a);

	if (!width || m->size % width)
		return ACP_ST_OP;
	if (!acp_op_signals(m->op) && (m->b || m->c))
		return ACP_ST_OP;
	if ((m->src | m->dst) & (width - 1))
		return ACP_ST_ALIGN;
	return acp_op_signals(m->op) ? check_flag(l, colors, m) : ACP_ST_OK;
}

/* The operands of all commands except plain copies. */
static noinline u8 check_operands(const struct acp_ga_layout *l, u32 colors,
				  const struct acp_msg *m)
{
	int width = acp_op_width(m->op);

	if (width)
		return width < 0 || m->size || m->c ? ACP_ST_OP : ACP_ST_OK;
	if (m->op == ACP_OP_WAIT)
		return check_wait(l, m);
	if (m->size > ACP_COPY_MAX)
		return ACP_ST_OP;
	if (m->op == ACP_OP_STRIDED)
		return check_strided(l, m);
	if (m->op == ACP_OP_REDUCE)
		return check_reduce(m);
	if (acp_op_accumulates(m->op))
		return check_accumulate(l, colors, m);
	if (m->a)
		return ACP_ST_OP;
	if (m->op >= ACP_OP_INDIRECT) {
		if (m->c || (m->op != ACP_OP_SEND && (m->b || !m->size)))
			return ACP_ST_OP;
		return (m->op == ACP_OP_GATHER ? m->src : m->dst) & 7 ? ACP_ST_ALIGN : ACP_ST_OK;
	}
	return check_flag(l, colors, m);
}

u8 acp_cmd_check(const struct acp_ga_layout *l, u32 colors, const struct acp_msg *m)
{
	int width = 0;
	u8 status;

	if (m->op != ACP_OP_COPY) {
		status = check_operands(l, colors, m);
		if (status)
			return status;
		width = acp_op_width(m->op);
	} else if (m->a | m->b | m->c || m->size > ACP_COPY_MAX) {
		return ACP_ST_OP;
	}
	if (!acp_ga_valid(l, m->src) || !acp_ga_valid(l, m->dst))
		return ACP_ST_GA;
	if (acp_ga_color(l, m->src) >= colors || acp_ga_color(l, m->dst) >= colors)
		return ACP_ST_GA;
	if (width && ((m->src | m->dst) & (width - 1)))
		return ACP_ST_ALIGN;
	return ACP_ST_OK;
}

void acp_step_set(struct acp_step *s, const struct acp_ga_layout *l, const struct acp_msg *m,
		  u32 me, u32 src_node, u32 dst_node)
{
	s->plan = acp_cmd_plan(me, src_node, dst_node);
	s->atomic = m->op != ACP_OP_COPY && m->op < ACP_OP_STRIDED;
	s->home = s->plan == ACP_PLAN_DELEGATE && dst_node == me;
	s->third = s->plan == ACP_PLAN_DELEGATE && dst_node != me && dst_node != src_node;
	s->later = s->third || (src_node == dst_node && acp_cmd_long(m)) ||
		   acp_op_takes_room(m->op);
	s->dst_node = dst_node;
	s->dst_color = acp_ga_color(l, m->dst);
	s->node = s->plan == ACP_PLAN_SEND ? dst_node : src_node;
	s->color = s->plan == ACP_PLAN_SEND ? s->dst_color : acp_ga_color(l, m->src);
}

/* ---- when a command starts ---- */

static bool same_flow(const struct acp_run *r, const struct acp_step *s)
{
	return s->plan != ACP_PLAN_LOCAL && s->node == r->node && s->color == r->color;
}

/*
 * Would a fence put all effects of s after all effects of the run? Puts take effect at the peer
 * before later frames are applied; an atomic on local memory would take effect at once. Results
 * come from the peer to this node: only another result on the same flow stays behind them, the
 * effect of an atomic at the peer does not.
 */
static bool orderable(const struct acp_run *r, const struct acp_step *s)
{
	if (!same_flow(r, s) || (s->plan == ACP_PLAN_SEND && s->atomic))
		return false;
	return !r->results || (s->home && !s->atomic && s->dst_color == r->dst_color);
}

enum acp_start acp_run_ask(const struct acp_run *r, u64 completed, u64 order,
			   const struct acp_step *s)
{
	if (order <= completed)
		return ACP_START_NOW;
	if (r->first <= completed + 1 && r->last >= order && orderable(r, s))
		return ACP_START_FENCED;
	return ACP_START_WAIT;
}

/* Can one fence put later commands after both the run and s? */
static bool joins(const struct acp_run *r, const struct acp_step *s)
{
	return same_flow(r, s) && (!r->results || !s->home || s->dst_color == r->dst_color);
}

/* A run that is complete is over: its results have arrived and restrict nothing any more. */
void acp_run_started(struct acp_run *r, u64 completed, u64 ticket, const struct acp_step *s)
{
	bool follows = r->first <= r->last && r->last > completed && ticket == r->last + 1;

	if (s->later) {
		r->first = ticket + 1;
		r->last = ticket;
		return;
	}
	if (s->plan == ACP_PLAN_LOCAL) {
		r->first = follows ? r->first : ticket + 1;
		r->last = ticket;
		return;
	}
	if (!follows || !joins(r, s)) {
		r->first = ticket;
		r->node = s->node;
		r->color = s->color;
		r->results = false;
	}
	r->last = ticket;
	if (s->home) {
		r->results = true;
		r->dst_color = s->dst_color;
	}
}

void acp_run_sent(struct acp_run *r, u64 ticket, u32 epoch)
{
	if (r->epoch != epoch && r->first < ticket)
		r->first = ticket;
	r->epoch = epoch;
}

void acp_step_fence(struct acp_out *o, const struct acp_step *s, u64 completed, u64 seen,
		    u64 order)
{
	u64 past = max_t(u64, completed, seen);

	o->fence = true;
	if (past < order) {
		o->m.depends = o->m.ticket - past - 1;
		o->m.upto = o->m.ticket - order;
	}
	if (s->home)
		o->m.flags |= ACP_MSG_ORDERED;
}

/* ---- items to be sent ---- */

void acp_out_piece(const struct acp_out *o, u64 offset, u32 length, struct acp_msg *m,
		   bool *fence)
{
	*m = o->m;
	*fence = o->fence;
	if (o->failed) {
		m->flags |= ACP_MSG_FAIL;
		m->status = o->failed;
	}
	/* Messages take their records in the order in which they are sent. */
	if (m->op == ACP_OP_SEND && m->type != ACP_MSG_CMD)
		*fence = true;
	if (m->type != ACP_MSG_DATA)
		return;
	if (m->op == ACP_OP_SEND) {
		m->a = acp_out_tag(m);
		m->c = m->size;
	}
	if (m->op == ACP_OP_STRIDED || acp_op_indirect(m->op))
		m->b = offset;
	else
		m->dst += offset;
	if (m->op != ACP_OP_STRIDED)
		m->src += offset;
	m->length = length;
	m->size = 0;
	if (offset + length == o->m.size || !length) {
		m->flags |= ACP_MSG_LAST;
		*fence |= offset > 0;
	} else if (acp_op_signals(m->op)) {
		/* Numbers are combined piece by piece. */
		m->op = acp_op_accumulates(m->op) ? ACP_OP_ACCUMULATE : 0;
		m->b = 0;
		m->c = 0;
	}
	if (o->failed) {
		m->length = 0;
		m->op = 0;
	}
}

/* ---- completion ---- */

u8 acp_expect_lost(const struct acp_step *s, u8 expected, const u32 *epoch, u32 node, u32 color,
		   u32 now)
{
	u8 lost = 0;

	if (s->node == node && s->color == color && epoch[ACP_EXPECT_SOURCE - 1] != now)
		lost |= ACP_EXPECT_SOURCE;
	if (s->dst_node == node && s->dst_color == color && epoch[ACP_EXPECT_RESULT - 1] != now)
		lost |= ACP_EXPECT_RESULT;
	return lost & expected;
}

/* ---- failures that a receiving flow records ---- */

static void forget(struct acp_fails *t, u32 i)
{
	t->e[i] = t->e[--t->count];
}

void acp_fails_expire(struct acp_fails *t, u64 rcv)
{
	u32 i = 0;

	while (i < t->count) {
		if (t->e[i].until && t->e[i].until < rcv)
			forget(t, i);
		else
			i++;
	}
}

/*
 * Make room in a full table. Commands whose entries are lost are treated as failed, so it is the
 * one that expires first. Refusing frames instead would keep rcv from ever passing "until".
 */
static bool forget_one(struct acp_fails *t)
{
	u32 i, first = t->count;

	for (i = 0; i < t->count; i++)
		if (t->e[i].until && (first == t->count || t->e[i].until < t->e[first].until))
			first = i;
	if (first == t->count)
		return false;
	t->blind = max_t(u64, t->blind, t->e[first].until);
	forget(t, first);
	return true;
}

bool acp_fails_add(struct acp_fails *t, u32 origin, u64 ticket, u8 status, u64 until)
{
	u32 i;

	for (i = 0; i < t->count; i++)
		if (t->e[i].origin == origin && t->e[i].ticket == ticket &&
		    !t->e[i].until == !until) {
			/* A command that is tried again may fail again. */
			t->e[i].until = max_t(u64, t->e[i].until, until);
			return true;
		}
	if (t->count == ACP_FAILS && !forget_one(t)) {
		t->blind = max_t(u64, t->blind, until);
		return until;
	}
	t->e[t->count++] = (struct acp_fail){ ticket, until, origin, status };
	return true;
}

/* The failed piece of a command; t->count: there is none. */
static u32 find_piece(const struct acp_fails *t, u32 origin, u64 ticket)
{
	u32 i;

	for (i = 0; i < t->count; i++)
		if (t->e[i].origin == origin && t->e[i].ticket == ticket && !t->e[i].until)
			break;
	return i;
}

u8 acp_fails_see(const struct acp_fails *t, u32 origin, u64 ticket)
{
	u32 i = find_piece(t, origin, ticket);

	return i < t->count ? t->e[i].status : ACP_ST_OK;
}

u8 acp_fails_take(struct acp_fails *t, u32 origin, u64 ticket)
{
	u8 status = acp_fails_see(t, origin, ticket);

	if (status)
		forget(t, find_piece(t, origin, ticket));
	return status;
}

void acp_fails_forget(struct acp_fails *t, u32 origin, u64 ticket)
{
	u32 i;

	for (i = 0; i < t->count; i++)
		if (t->e[i].origin == origin && t->e[i].ticket == ticket && t->e[i].until) {
			forget(t, i);
			return;
		}
}

bool acp_fails_depends(struct acp_fails *t, const struct acp_msg *m, u64 rcv)
{
	u64 from = m->ticket - m->depends, to = m->ticket - m->upto;
	bool found = m->depends && rcv <= t->blind;
	u32 i;

	acp_fails_expire(t, rcv);
	for (i = 0; i < t->count; i++) {
		const struct acp_fail *e = &t->e[i];

		found |= e->until && m->depends && e->origin == m->origin &&
			 e->ticket >= from && e->ticket <= to;
	}
	return found;
}
