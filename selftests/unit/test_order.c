// SPDX-License-Identifier: MIT
/* kernel/core/cmd.c: order of commands, pieces, and the record of failures at a receiver. */
#include "cmd_play.h"

/* ---- order ---- */

static struct acp_step random_step(void)
{
	struct acp_step s = { .plan = rnd() % 10 ? 1 + rnd() % 2 : ACP_PLAN_LOCAL };

	s.atomic = rnd() % 2;
	s.node = 1 + (rnd() % 4 == 0);
	s.color = rnd() % 8 == 0;
	s.dst_node = s.plan == ACP_PLAN_SEND ? s.node : rnd() % 3;
	s.dst_color = s.plan == ACP_PLAN_SEND ? s.color : rnd() % 8 == 0;
	if (s.plan == ACP_PLAN_LOCAL) {
		s.node = ORIGIN;
		s.dst_node = ORIGIN;
	}
	s.home = s.plan == ACP_PLAN_DELEGATE && s.dst_node == ORIGIN;
	s.third = s.plan == ACP_PLAN_DELEGATE && !s.home && s.dst_node != s.node;
	s.later = s.third || (s.dst_node == s.node && s.plan != ACP_PLAN_SEND && !s.atomic &&
			      rnd() % 4 == 0);
	return s;
}

#define COMMANDS	16

/* Commands 2 .. COMMANDS + 1 of a rank, indexed by ticket. */
struct queue {
	struct acp_run run;
	struct model c[COMMANDS + 2];
	u64 completed;
	u64 fenced;
};

static void advance(struct queue *q)
{
	while (q->completed < COMMANDS + 1 && q->c[q->completed + 1].complete)
		q->completed++;
}

static void try_start(struct queue *q, u64 t)
{
	struct model *c = &q->c[t];
	enum acp_start how = acp_run_ask(&q->run, q->completed, c->order, &c->s);
	u64 i;

	if (how == ACP_START_WAIT)
		return;
	if (how == ACP_START_NOW)
		CHECK(c->order <= q->completed);
	if (how == ACP_START_FENCED) {
		q->fenced++;
		CHECK(c->s.plan != ACP_PLAN_LOCAL);
		for (i = q->completed + 1; i <= c->order; i++)
			if (!guaranteed(&q->c[i], c))
				FAIL("seed state %llx: %llu (plan %u%s) is not before %llu (plan %u%s)",
				     (unsigned long long)random_state, (unsigned long long)i,
				     q->c[i].s.plan, q->c[i].s.atomic ? " atomic" : "",
				     (unsigned long long)t, c->s.plan,
				     c->s.atomic ? " atomic" : "");
	}
	c->started = true;
	c->fenced = how == ACP_START_FENCED;
	c->complete = c->s.plan == ACP_PLAN_LOCAL && !c->s.later;
	acp_run_started(&q->run, q->completed, t, &c->s);
	advance(q);
}

/* Execute one random event: a command starts, in order or not, or completes. */
static void random_event(struct queue *q, bool in_order)
{
	u64 t = 2 + rnd() % COMMANDS;

	if (rnd() % 5) {
		if (in_order)
			for (t = 2; t < COMMANDS + 1 && q->c[t].started; t++)
				;
		if (!q->c[t].started)
			try_start(q, t);
	} else if (q->c[t].started) {
		q->c[t].complete = true;
		advance(q);
	}
}

static u64 random_queue(bool in_order)
{
	struct queue q = { .run = { .first = 1, .last = 0 }, .completed = 1 };
	u64 t;

	for (t = 2; t <= COMMANDS + 1; t++) {
		q.c[t].s = random_step();
		q.c[t].order = rnd() % 3 ? t - 1 : rnd() % t;
		derive(&q.c[t]);
	}
	for (t = 0; t < 10000 && q.completed < COMMANDS + 1; t++)
		random_event(&q, in_order);
	CHECK_EQ(q.completed, COMMANDS + 1);
	return q.fenced;
}

TEST(order__N3_fence_only_if_everything_earlier_precedes)
{
	u64 fenced = 0;
	u32 seed;

	for (seed = 1; seed <= 100000; seed++) {
		random_state = seed * 0x9e3779b97f4a7c15;
		fenced += random_queue(seed % 4);
	}
	CHECK(fenced > 50000);
}

static struct acp_step step(u8 plan, bool atomic, u32 node, u32 dst_node)
{
	return (struct acp_step){ .plan = plan, .atomic = atomic, .node = node,
				  .dst_node = dst_node,
				  .home = plan == ACP_PLAN_DELEGATE && dst_node == ORIGIN,
				  .third = plan == ACP_PLAN_DELEGATE && dst_node != ORIGIN &&
					   dst_node != node,
				  .later = plan == ACP_PLAN_DELEGATE && dst_node != ORIGIN &&
					   dst_node != node };
}

/* Start "first" as ticket 2, then query the start of "second", which waits for it. */
static enum acp_start pair(struct acp_step first, struct acp_step second)
{
	struct acp_run r = { .first = 1, .last = 0 };

	acp_run_started(&r, 1, 2, &first);
	return acp_run_ask(&r, 1, 2, &second);
}

TEST(order__pairs_that_cost_no_round_trip)
{
	struct acp_step put = step(ACP_PLAN_SEND, false, 1, 1);
	struct acp_step get = step(ACP_PLAN_DELEGATE, false, 1, 0);
	struct acp_step third = step(ACP_PLAN_DELEGATE, false, 1, 2);
	struct acp_step fetch = step(ACP_PLAN_DELEGATE, true, 1, 0);
	struct acp_step there = step(ACP_PLAN_DELEGATE, true, 1, 1);

	CHECK_EQ(pair(put, put), ACP_START_FENCED);
	CHECK_EQ(pair(put, get), ACP_START_FENCED);
	CHECK_EQ(pair(put, third), ACP_START_FENCED);
	CHECK_EQ(pair(put, fetch), ACP_START_FENCED);
	CHECK_EQ(pair(put, there), ACP_START_FENCED);
	CHECK_EQ(pair(there, put), ACP_START_FENCED);
	CHECK_EQ(pair(get, get), ACP_START_FENCED);
	CHECK_EQ(pair(fetch, get), ACP_START_FENCED);
}

TEST(order__pairs_that_must_wait)
{
	struct acp_step put = step(ACP_PLAN_SEND, false, 1, 1);
	struct acp_step other = step(ACP_PLAN_SEND, false, 2, 2);
	struct acp_step color = put;
	struct acp_step send_atomic = step(ACP_PLAN_SEND, true, 1, 1);
	struct acp_step get = step(ACP_PLAN_DELEGATE, false, 1, 0);
	struct acp_step third = step(ACP_PLAN_DELEGATE, false, 1, 2);
	struct acp_step fetch = step(ACP_PLAN_DELEGATE, true, 1, 0);
	struct acp_step local = step(ACP_PLAN_LOCAL, false, 0, 0);

	color.color = 1;
	color.dst_color = 1;
	CHECK_EQ(pair(put, other), ACP_START_WAIT);
	CHECK_EQ(pair(put, color), ACP_START_WAIT);
	CHECK_EQ(pair(put, local), ACP_START_WAIT);
	CHECK_EQ(pair(put, send_atomic), ACP_START_WAIT);
	CHECK_EQ(pair(get, put), ACP_START_WAIT);
	CHECK_EQ(pair(fetch, put), ACP_START_WAIT);
	CHECK_EQ(pair(get, third), ACP_START_WAIT);
	CHECK_EQ(pair(third, third), ACP_START_WAIT);
	CHECK_EQ(pair(third, put), ACP_START_WAIT);
	CHECK_EQ(pair(third, get), ACP_START_WAIT);
	CHECK_EQ(pair(get, fetch), ACP_START_WAIT);
	CHECK_EQ(pair(fetch, fetch), ACP_START_WAIT);
}

/* A put after a pending result waits for it. Two puts after its arrival are ordered by a fence. */
TEST(order__results_that_are_here_bind_nobody)
{
	struct acp_step put = step(ACP_PLAN_SEND, false, 1, 1);
	struct acp_step fetch = step(ACP_PLAN_DELEGATE, true, 1, 0);
	struct acp_run r = { .first = 1, .last = 0 };

	acp_run_started(&r, 1, 2, &fetch);
	acp_run_started(&r, 1, 3, &put);
	CHECK_EQ(acp_run_ask(&r, 1, 3, &put), ACP_START_WAIT);
	CHECK_EQ(acp_run_ask(&r, 2, 3, &put), ACP_START_WAIT);
	r = (struct acp_run){ .first = 1, .last = 0 };
	acp_run_started(&r, 1, 2, &fetch);
	acp_run_started(&r, 2, 3, &put);
	CHECK_EQ(acp_run_ask(&r, 2, 3, &put), ACP_START_FENCED);
	CHECK_EQ(acp_run_ask(&r, 3, 3, &put), ACP_START_NOW);
}

/* put, long local copy, put of the copied data: only completion orders the last one. */
TEST(order__nothing_is_fenced_behind_a_long_copy)
{
	struct acp_run r = { .first = 1, .last = 0 };
	struct acp_step put = step(ACP_PLAN_SEND, false, 1, 1);
	struct acp_step copy = step(ACP_PLAN_LOCAL, false, 0, 0);

	copy.later = true;
	acp_run_started(&r, 1, 2, &put);
	acp_run_started(&r, 1, 3, &copy);
	CHECK_EQ(acp_run_ask(&r, 1, 3, &put), ACP_START_WAIT);
	CHECK_EQ(acp_run_ask(&r, 2, 3, &put), ACP_START_WAIT);
	CHECK_EQ(acp_run_ask(&r, 3, 3, &put), ACP_START_NOW);
	copy = step(ACP_PLAN_DELEGATE, false, 1, 1);
	copy.later = true;
	CHECK_EQ(pair(copy, put), ACP_START_WAIT);
}

TEST(order__no_fence_reaches_an_earlier_life_of_the_flow)
{
	struct acp_run r = { .first = 1, .last = 0 };
	struct acp_step put = step(ACP_PLAN_SEND, false, 1, 1);

	acp_run_started(&r, 1, 2, &put);
	acp_run_sent(&r, 2, 7);
	acp_run_started(&r, 1, 3, &put);
	acp_run_sent(&r, 3, 7);
	CHECK_EQ(acp_run_ask(&r, 1, 3, &put), ACP_START_FENCED);
	acp_run_started(&r, 1, 4, &put);
	acp_run_sent(&r, 4, 8);
	CHECK_EQ(acp_run_ask(&r, 1, 4, &put), ACP_START_WAIT);
	CHECK_EQ(acp_run_ask(&r, 3, 4, &put), ACP_START_FENCED);
}

TEST(order__what_is_complete_needs_no_fence)
{
	struct acp_run r = { .first = 1, .last = 0 };
	struct acp_step put = step(ACP_PLAN_SEND, false, 1, 1);
	struct acp_step local = step(ACP_PLAN_LOCAL, false, 0, 0);

	acp_run_started(&r, 1, 2, &put);
	CHECK_EQ(acp_run_ask(&r, 1, 0, &local), ACP_START_NOW);
	CHECK_EQ(acp_run_ask(&r, 1, 1, &local), ACP_START_NOW);
	CHECK_EQ(acp_run_ask(&r, 2, 2, &local), ACP_START_NOW);
	acp_run_started(&r, 1, 3, &local);
	CHECK_EQ(acp_run_ask(&r, 1, 3, &put), ACP_START_FENCED);
}

/* ---- pieces ---- */

static void next_piece(struct acp_out *o, u32 payload, struct acp_msg *m, bool *fence)
{
	u64 offset = o->cut;
	u32 length = acp_out_cut(o, payload);

	acp_out_piece(o, offset, length, m, fence);
}

/* Split a transfer. The pieces must cover it exactly, and the last one is marked. */
static void cut(u64 size, u32 payload)
{
	struct acp_out o = { .m = { .type = ACP_MSG_DATA, .size = size, .dst = 1000, .src = 5000,
				    .ticket = 9, .origin = 3 } };
	struct acp_msg m, again;
	bool fence, fence_again;
	u64 at = 0;

	do {
		next_piece(&o, payload, &m, &fence);
		CHECK(m.dst == 1000 + at && m.src == 5000 + at && m.ticket == 9 && m.origin == 3);
		CHECK(m.length <= payload && m.size == 0 && (m.length || !size));
		acp_out_piece(&o, at, m.length, &again, &fence_again);
		CHECK(!memcmp(&m, &again, sizeof(m)) && fence == fence_again);
		at += m.length;
		CHECK_EQ(!!(m.flags & ACP_MSG_LAST), at == size);
		CHECK_EQ(fence, at == size && size > payload);
		CHECK_EQ(o.finished, at == size);
	} while (!o.finished);
	CHECK_EQ(at, size);
}

TEST(out__pieces_cover_a_transfer_once)
{
	u64 size;

	for (size = 0; size < 300; size++) {
		cut(size, 1);
		cut(size, 7);
		cut(size, 64);
		cut(size, 1400);
	}
	cut(10 * 1400, 1400);
	cut(10 * 1400 + 1, 1400);
}

TEST(out__single)
{
	struct acp_out o = { .m = { .type = ACP_MSG_DATA, .size = 100 } };

	CHECK(acp_out_single(&o, 100));
	CHECK(!acp_out_single(&o, 99));
	o.m.type = ACP_MSG_CMD;
	CHECK(acp_out_single(&o, 8));
}

TEST(out__other_messages_go_as_they_are)
{
	struct acp_out o = { .m = { .type = ACP_MSG_CMD, .op = ACP_OP_COPY, .size = 1ULL << 40,
				    .dst = 8, .src = 16 }, .fence = true };
	struct acp_msg m;
	bool fence;

	next_piece(&o, 1, &m, &fence);
	CHECK(!memcmp(&m, &o.m, sizeof(m)) && fence && o.finished);
}

TEST(out__fence_is_of_every_piece)
{
	struct acp_out o = { .m = { .type = ACP_MSG_DATA, .size = 100 }, .fence = true };
	struct acp_msg m;
	bool fence;

	do {
		next_piece(&o, 30, &m, &fence);
		CHECK(fence);
	} while (!o.finished);
}

/* The source fails after some pieces: one more message ends the command. */
TEST(out__source_fails_on_the_way)
{
	struct acp_out o = { .m = { .type = ACP_MSG_DATA, .size = 100 } };
	struct acp_msg m;
	bool fence;

	next_piece(&o, 30, &m, &fence);
	next_piece(&o, 30, &m, &fence);
	acp_out_fail(&o, ACP_ST_STAG);
	CHECK(!o.finished);
	next_piece(&o, 30, &m, &fence);
	CHECK(o.finished && fence);
	CHECK_EQ(m.flags, ACP_MSG_FAIL | ACP_MSG_LAST);
	CHECK(m.status == ACP_ST_STAG && m.length == 0);
	acp_out_piece(&o, 60, 0, &m, &fence);
	CHECK(fence);
	CHECK_EQ(m.flags, ACP_MSG_FAIL | ACP_MSG_LAST);
	acp_out_piece(&o, 30, 30, &m, &fence);
	CHECK(!fence);
	CHECK_EQ(m.flags, ACP_MSG_FAIL);
	CHECK(m.status == ACP_ST_STAG && m.length == 0 && m.dst == 30);
}

TEST(out__source_fails_before_the_first_piece)
{
	struct acp_out o = { .m = { .type = ACP_MSG_DATA, .size = 100 } };
	struct acp_msg m;
	bool fence;

	acp_out_fail(&o, ACP_ST_RANGE);
	next_piece(&o, 30, &m, &fence);
	CHECK(o.finished && !fence);
	CHECK_EQ(m.flags, ACP_MSG_FAIL | ACP_MSG_LAST);
	CHECK_EQ(m.status, ACP_ST_RANGE);
}

/* ---- failures ---- */

TEST(fails__first_status_counts_and_is_taken_once)
{
	struct acp_fails t = { 0 };

	CHECK(acp_fails_add(&t, 1, 10, ACP_ST_STAG, 0));
	CHECK(acp_fails_add(&t, 1, 10, ACP_ST_RANGE, 0));
	CHECK(acp_fails_add(&t, 2, 10, ACP_ST_ACCESS, 0));
	CHECK_EQ(t.count, 2);
	CHECK_EQ(acp_fails_take(&t, 1, 11), ACP_ST_OK);
	CHECK_EQ(acp_fails_see(&t, 1, 11), ACP_ST_OK);
	CHECK_EQ(acp_fails_see(&t, 1, 10), ACP_ST_STAG);
	CHECK_EQ(acp_fails_take(&t, 1, 10), ACP_ST_STAG);
	CHECK_EQ(acp_fails_take(&t, 1, 10), ACP_ST_OK);
	CHECK_EQ(acp_fails_take(&t, 2, 10), ACP_ST_ACCESS);
	CHECK_EQ(t.count, 0);
}

static struct acp_msg dependent(u32 origin, u64 ticket, u16 depends, u16 upto)
{
	return (struct acp_msg){ .type = ACP_MSG_DATA, .origin = origin, .ticket = ticket,
				 .depends = depends, .upto = upto };
}

TEST(fails__dependents)
{
	struct acp_fails t = { 0 };
	struct acp_msg m;

	CHECK(acp_fails_add(&t, 1, 10, ACP_ST_STAG, 500));
	CHECK(acp_fails_add(&t, 1, 12, ACP_ST_STAG, 0));
	m = dependent(1, 15, 5, 1);
	CHECK(acp_fails_depends(&t, &m, 400));
	m = dependent(1, 15, 5, 5);
	CHECK(acp_fails_depends(&t, &m, 400));
	m = dependent(1, 15, 6, 6);
	CHECK(!acp_fails_depends(&t, &m, 400));
	m = dependent(1, 15, 4, 1);
	CHECK(!acp_fails_depends(&t, &m, 400));
	m = dependent(2, 15, 5, 1);
	CHECK(!acp_fails_depends(&t, &m, 400));
	m = dependent(1, 10, 0, 0);
	CHECK(!acp_fails_depends(&t, &m, 400));
	m = dependent(1, 15, 5, 1);
	CHECK(acp_fails_depends(&t, &m, 500));
	CHECK_EQ(t.count, 2);
	CHECK(!acp_fails_depends(&t, &m, 501));
	CHECK_EQ(t.count, 1);
	CHECK_EQ(acp_fails_take(&t, 1, 12), ACP_ST_STAG);
}

/* A message that is tried again may be refused again, and finds room in the end. */
TEST(fails__last_refusal_counts_until_room_is_found)
{
	const struct acp_msg behind = { .origin = 1, .ticket = 11, .depends = 1, .upto = 1 };
	struct acp_fails t = { 0 };

	CHECK(acp_fails_add(&t, 1, 10, ACP_ST_AGAIN, 500));
	CHECK(acp_fails_add(&t, 1, 10, ACP_ST_AGAIN, 700));
	CHECK(acp_fails_add(&t, 1, 10, ACP_ST_AGAIN, 600));
	CHECK_EQ(t.count, 1);
	CHECK(acp_fails_depends(&t, &behind, 700));
	acp_fails_forget(&t, 2, 10);
	acp_fails_forget(&t, 1, 11);
	CHECK(acp_fails_depends(&t, &behind, 700));
	acp_fails_forget(&t, 1, 10);
	CHECK(!acp_fails_depends(&t, &behind, 700));
	CHECK_EQ(t.count, 0);
}

static void fill(struct acp_fails *t, u64 until)
{
	u64 i;

	for (i = 0; i < ACP_FAILS; i++)
		CHECK(acp_fails_add(t, 1, i, ACP_ST_STAG, until));
	CHECK_EQ(t->count, ACP_FAILS);
}

/*
 * If the record is full, failures are not lost: temporarily more commands depend on them than
 * necessary.
 */
TEST(fails__full_of_commands)
{
	struct acp_msg known = dependent(1, 4, 1, 1), other = dependent(2, 1000, 1, 1);
	struct acp_msg none = dependent(2, 1000, 0, 0);
	struct acp_fails t = { 0 };

	fill(&t, 100);
	CHECK(!acp_fails_depends(&t, &other, 50));
	CHECK(acp_fails_add(&t, 2, 999, ACP_ST_STAG, 120));
	CHECK_EQ(t.count, ACP_FAILS);
	CHECK(acp_fails_depends(&t, &other, 50));
	CHECK(acp_fails_depends(&t, &known, 50));
	CHECK(!acp_fails_depends(&t, &none, 50));
	CHECK(acp_fails_depends(&t, &other, 120));
	CHECK(!acp_fails_depends(&t, &other, 121));
	CHECK_EQ(t.count, 0);
}

TEST(fails__full_of_pieces)
{
	struct acp_fails t = { 0 };
	struct acp_msg m = dependent(2, 1000, 1, 1);

	fill(&t, 0);
	CHECK(!acp_fails_add(&t, 2, 999, ACP_ST_STAG, 0));
	CHECK(acp_fails_add(&t, 2, 999, ACP_ST_STAG, 100));
	CHECK(acp_fails_depends(&t, &m, 100));
	CHECK_EQ(acp_fails_take(&t, 1, 7), ACP_ST_STAG);
	CHECK(acp_fails_add(&t, 2, 999, ACP_ST_STAG, 0));
}

TEST_MAIN
