// SPDX-License-Identifier: MIT
/*
 * The whole protocol core in a simulated job (sim.h): random puts, gets, third-party copies,
 * strided copies, copies that change a flag, atomics and ordered chains, while the network has all
 * kinds of faults. Checked throughout: a completed command has had its effect exactly once; nothing
 * else was written; a flag is never visible before its data; a command whose predecessor failed had
 * no effect.
 *
 *	test_sim [--seed S] [--frames N] [part of a test's name ...]
 *
 * --frames applies to each test. The same seed and number of frames repeat a run exactly. test_sim
 * is built with sanitizers, test_sim_long without, for more frames.
 */
#include "sim.h"
#include "test.h"

static u64 base_seed = 1;
#ifndef FRAMES
#define FRAMES 1000000	/* the Makefile sets another value */
#endif

static u64 frames_wanted = FRAMES;

/* ---- the memory of a rank ---- */

#define SOURCE_BYTES	16384		/* never written */
#define NUMBERS		1024		/* number[i] == i, never written */
#define COUNTERS	8		/* u64 each, see enum counter */
#define DATA_BYTES	3072		/* data of a chain */
#define SLOTS		32
#define SLOT_BYTES	4096

#define AT_SOURCE	0
#define AT_NUMBERS	(AT_SOURCE + SOURCE_BYTES)
#define AT_COUNTERS	(AT_NUMBERS + 8 * NUMBERS)
#define AT_FLAGS	(AT_COUNTERS + 8 * COUNTERS)	/* one per origin */
#define AT_DATA		(AT_FLAGS + 8 * SIM_RANKS)
#define AT_SLOTS	(AT_DATA + DATA_BYTES * SIM_RANKS)
#define MEMORY		(AT_SLOTS + SLOTS * SLOT_BYTES)

/* The operation on a counter word, always the same one for a word. */
enum counter { ADD_ONE, ADD_ONE_4, XOR, SWAP, KINDS };

#define FETCHED_MAX	(1u << 20)

/* What the test knows about a counter. */
struct tally {
	u64 count, value;		/* number of operations; their sum or XOR */
	u64 given, taken;		/* SWAP: sum of values stored, returned */
	u8 *fetched;			/* ADD_ONE: which values were returned */
};

enum job { COPY, STRIDED, SIGNAL, ATOMIC, CHAIN_DATA, CHAIN_FLAG, CHAIN_BOTH, BAD };

/* A command in progress. */
struct work {
	enum job job;
	u64 seen, order;
	u32 dst, slot;			/* rank; slot that the command owns */
	u64 at, length;			/* destination in the memory of rank dst */
	u32 src;
	u64 from;			/* source in the memory of rank src */
	u64 desc, dst_stride, src_stride;	/* STRIDED */
	u32 counter;			/* ATOMIC, SIGNAL */
	u32 counter_rank;		/* SIGNAL */
	u64 operand, generation;
	u8 status;			/* valid when it is complete */
	u8 expected;			/* BAD: the expected status */
	u32 phase;			/* of the test, at submission */
};

#define CHAIN		64

/* A generation of a chain: data, then a flag. */
struct link {
	u64 generation;
	u32 data_rank, flag_rank, src;
	u64 from, length;
};

struct chain {
	bool stopped;			/* a command of the chain failed because of the network */
	u64 issued, visible;		/* generations */
	u64 last_flag;			/* ticket of its command */
	struct link link[CHAIN];
};

struct test_job {
	u8 *shadow[SIM_RANKS];		/* expected contents of memory, except chains */
	bool slot_busy[SIM_RANKS][SLOTS];
	struct work work[SIM_RANKS][SIM_DEPTH];
	struct tally tally[SIM_RANKS][COUNTERS];
	struct chain chain[SIM_RANKS];
	u32 window[SIM_RANKS];
	bool submitting[SIM_RANKS];
	u64 enough;			/* number of frames after which the test ends */
	u64 commands, failed, dependents_failed;
	u32 phase;
	u32 bad;			/* probability of a command that fails */
	bool may_fail;			/* the network may make commands fail */
	bool may_vanish;		/* source memory may be revoked */
	bool no_chains;
	bool blind;			/* failures are not recorded */
	bool rebooting;
	u32 rebooted;			/* node whose memory was reset; ~0: none */
};

static struct test_job *test_of(struct sim *s)
{
	return s->test;
}

static u64 pick(struct sim *s, u64 count)
{
	return sim_random(s) % count;
}

static u64 address(struct sim *s, u32 rank, u64 at)
{
	return acp_ga_make(&s->ga, rank, pick(s, s->colors), SIM_STAG, at);
}

/* ---- what is written must be what the chains expect ---- */

static const u8 *chain_source(struct sim *s, const struct link *l)
{
	return s->rank[l->src].memory + AT_SOURCE + l->from;
}

static struct link *link_of(struct chain *c, u64 generation)
{
	struct link *l = &c->link[generation % CHAIN];

	return l->generation == generation ? l : NULL;
}

static void flag_written(struct sim *s, u32 rank, u32 origin)
{
	struct chain *c = &test_of(s)->chain[origin];
	struct link *l;
	u64 value, generation;

	if (c->stopped)
		return;
	memcpy(&value, s->rank[rank].memory + AT_FLAGS + 8 * origin, 8);
	for (generation = c->visible + 1; generation <= c->issued; generation++)
		if (generation % NUMBERS == value)
			break;
	if (generation > c->issued)
		SIM_FAIL(s, "flag %llu of rank %u again or never given, %llu is visible",
			 (unsigned long long)value, origin, (unsigned long long)c->visible);
	l = link_of(c, generation);
	SIM_CHECK(s, l && l->flag_rank == rank);
	if (memcmp(s->rank[l->data_rank].memory + AT_DATA + DATA_BYTES * origin,
		   chain_source(s, l), l->length))
		SIM_FAIL(s, "flag %llu of rank %u is visible before its data",
			 (unsigned long long)value, origin);
	if (!test_of(s)->may_fail && !test_of(s)->may_vanish && !test_of(s)->bad)
		SIM_CHECK(s, generation == c->visible + 1);
	c->visible = generation;
}

/* Data must belong to the generation after the visible one. */
static void data_written(struct sim *s, u32 rank, u64 at, u64 length)
{
	u32 origin = (at - AT_DATA) / DATA_BYTES;
	struct chain *c = &test_of(s)->chain[origin];
	u64 offset = (at - AT_DATA) % DATA_BYTES;
	struct link *l = link_of(c, c->visible + 1);

	if (test_of(s)->may_fail || test_of(s)->may_vanish || test_of(s)->bad)
		return;
	SIM_CHECK(s, l && l->data_rank == rank && offset + length <= l->length);
	if (memcmp(s->rank[rank].memory + at, chain_source(s, l) + offset, length))
		SIM_FAIL(s, "data of rank %u changed before its flag was written", origin);
}

static void wrote(struct sim *s, u32 rank, u64 at, u64 length)
{
	SIM_CHECK(s, at >= AT_COUNTERS);
	if (at >= AT_FLAGS && at < AT_DATA)
		flag_written(s, rank, (at - AT_FLAGS) / 8);
	else if (length && at >= AT_DATA && at < AT_SLOTS)
		data_written(s, rank, at, length);
}

/* ---- commands ---- */

/* Take a slot of any rank; only this origin uses it. */
static bool take_slot(struct sim *s, u32 origin, struct work *w)
{
	u32 dst = pick(s, s->ranks), slot = pick(s, SLOTS / SIM_RANKS) * SIM_RANKS + origin;

	if (test_of(s)->slot_busy[dst][slot])
		return false;
	test_of(s)->slot_busy[dst][slot] = true;
	w->dst = dst;
	w->slot = slot;
	w->at = AT_SLOTS + w->slot * SLOT_BYTES;
	return true;
}

static u64 random_length(struct sim *s, u64 most)
{
	u64 kind = pick(s, 100), length;

	if (kind < 5)
		return 0;
	if (kind < 70)
		length = 1 + pick(s, 128);
	else if (kind < 95)
		length = 1 + pick(s, 700);
	else
		length = 1 + pick(s, 4000);
	return min_t(u64, length, most);
}

static u64 submit(struct sim *s, u32 origin, const struct acp_msg *m, struct work *w)
{
	u64 ticket = s->rank[origin].tail + 1;

	w->seen = s->rank[origin].completed;
	w->phase = test_of(s)->phase;
	test_of(s)->work[origin][ticket % SIM_DEPTH] = *w;
	test_of(s)->commands++;
	return sim_submit(s, origin, m, w->order);
}

/* The commands that a command waits for: usually none, or the previous one. */
static u64 random_order(struct sim *s, u32 origin)
{
	u64 kind = pick(s, 10), tail = s->rank[origin].tail;

	if (kind < 5)
		return 0;
	return kind < 9 ? tail : tail - pick(s, tail - s->rank[origin].completed + 1);
}

static void do_copy(struct sim *s, u32 origin)
{
	struct work w = { .job = COPY, .order = random_order(s, origin) };
	struct acp_msg m = { .op = ACP_OP_COPY };
	u64 shift = pick(s, 16);

	if (!take_slot(s, origin, &w))
		return;
	w.at += shift;
	w.length = random_length(s, SLOT_BYTES - shift);
	w.src = pick(s, s->ranks);
	w.from = AT_SOURCE + pick(s, SOURCE_BYTES - w.length);
	m.dst = address(s, w.dst, w.at);
	m.src = address(s, w.src, w.from);
	if (test_of(s)->may_vanish && pick(s, 2))
		m.src += 1ULL << s->ga.offset_bits;	/* SIM_STAG_LOST */
	m.size = w.length;
	submit(s, origin, &m, &w);
}

/*
 * Returns a stride of blocks that do not overlap; *first: a place of block 0 so that all are within
 * "room".
 */
static u64 random_stride(struct sim *s, u64 desc, u64 room, u64 *first)
{
	u64 block = (u32)desc, last = (desc >> 32) - 1, most = (room - block) / last;
	u64 stride = block + pick(s, most - block + 1), rest = room - block - last * stride;
	bool back = pick(s, 3) == 0;

	*first = pick(s, rest + 1) + (back ? last * stride : 0);
	return back ? -stride : stride;
}

static void do_strided(struct sim *s, u32 origin)
{
	struct work w = { .job = STRIDED, .order = random_order(s, origin) };
	struct acp_msg m = { .op = ACP_OP_STRIDED };
	u64 to, from, block, count;

	if (!take_slot(s, origin, &w))
		return;
	count = 2 + pick(s, pick(s, 4) ? 8 : 200);
	block = 1 + pick(s, SLOT_BYTES / count / (1 + pick(s, 4)));
	w.desc = ACP_BLOCKS(block, count);
	w.dst_stride = random_stride(s, w.desc, SLOT_BYTES, &to);
	w.src_stride = random_stride(s, w.desc, SOURCE_BYTES, &from);
	w.length = SLOT_BYTES;
	w.src = pick(s, s->ranks);
	w.from = AT_SOURCE + from;
	w.operand = to;
	m.dst = address(s, w.dst, w.at + to);
	m.src = address(s, w.src, w.from);
	if (test_of(s)->may_vanish && pick(s, 2))
		m.src += 1ULL << s->ga.offset_bits;	/* SIM_STAG_LOST */
	m.a = w.dst_stride;
	m.b = w.src_stride;
	m.size = w.desc;
	acp_cmd_from_entry(&m);
	submit(s, origin, &m, &w);
}

/* A copy that adds one to a counter of the destination or of another rank on the same node. */
static void do_signal(struct sim *s, u32 origin)
{
	struct work w = { .job = SIGNAL, .order = random_order(s, origin) };
	struct acp_msg m = { .op = ACP_OP_COPY_ADD, .b = 1 };

	if (!take_slot(s, origin, &w))
		return;
	w.counter = ADD_ONE + KINDS * pick(s, COUNTERS / KINDS);
	w.counter_rank = w.dst;
	if (w.dst + s->nodes < s->ranks && pick(s, 2))
		w.counter_rank += s->nodes;
	w.length = random_length(s, SLOT_BYTES);
	w.src = pick(s, s->ranks);
	w.from = AT_SOURCE + pick(s, SOURCE_BYTES - w.length);
	m.dst = address(s, w.dst, w.at);
	m.src = address(s, w.src, w.from);
	if (test_of(s)->may_vanish && pick(s, 2))
		m.src += 1ULL << s->ga.offset_bits;	/* SIM_STAG_LOST */
	m.size = w.length;
	m.c = address(s, w.counter_rank, AT_COUNTERS + 8 * w.counter);
	submit(s, origin, &m, &w);
}

static void do_atomic(struct sim *s, u32 origin)
{
	static const u8 ops[] = { ACP_OP_ADD8, ACP_OP_ADD4, ACP_OP_XOR8, ACP_OP_SWAP8 };
	struct work w = { .job = ATOMIC, .order = random_order(s, origin) };
	struct acp_msg m = { 0 };

	if (!take_slot(s, origin, &w))
		return;
	w.counter = pick(s, COUNTERS);
	m.op = ops[w.counter % KINDS];
	w.length = acp_op_width(m.op);
	w.src = pick(s, s->ranks);
	w.from = AT_COUNTERS + 8 * w.counter;
	w.operand = w.counter % KINDS < XOR ? 1 : sim_random(s);
	m.dst = address(s, w.dst, w.at);
	m.src = address(s, w.src, w.from);
	m.a = w.operand;
	submit(s, origin, &m, &w);
}

/* A command that fails, or whose destination on a third node fails. */
static u64 do_bad(struct sim *s, u32 origin, u64 order)
{
	struct work w = { .job = BAD, .order = order, .length = 8 };
	struct acp_msg m = { .op = ACP_OP_COPY };
	u64 good = address(s, pick(s, s->ranks), AT_NUMBERS);
	u64 bad = address(s, pick(s, s->ranks), MEMORY - 4 + 4 * pick(s, 3));

	w.expected = ACP_ST_RANGE;
	if (pick(s, 2)) {
		bad = acp_ga_make(&s->ga, pick(s, s->ranks), 0, SIM_STAG + 7, 0);
		w.expected = ACP_ST_STAG;
	}
	m.size = pick(s, 2) ? 8 : 2000;
	m.dst = bad;
	m.src = good;
	if (pick(s, 3) == 0) {
		m.src = bad;
		m.dst = address(s, pick(s, s->ranks), AT_SLOTS);
	} else if (pick(s, 3) == 0) {
		/* Numbers never change: if the copy fails, neither does its flag. */
		m.op = ACP_OP_COPY_SET;
		m.c = address(s, acp_ga_rank(&s->ga, bad), AT_NUMBERS);
		m.b = 1;
	}
	return submit(s, origin, &m, &w);
}

/* The last block is out of range: nothing is copied, neither read nor written. */
static u64 do_bad_strided(struct sim *s, u32 origin, u64 order)
{
	struct work w = { .job = BAD, .order = order, .length = 8, .expected = ACP_ST_RANGE };
	struct acp_msg m = { .op = ACP_OP_STRIDED, .a = 512, .b = 16, .size = 1600 };

	m.c = ACP_BLOCKS(16, 100);
	m.dst = address(s, pick(s, s->ranks), MEMORY - 99 * 512 - 15);
	m.src = address(s, pick(s, s->ranks), AT_NUMBERS);
	if (pick(s, 2)) {
		m.dst = address(s, pick(s, s->ranks), AT_SLOTS);
		m.b = -512ULL;
		m.src += 98 * 512 + 511 - AT_NUMBERS % 512;
		m.src -= acp_ga_offset(&s->ga, m.src) - (98 * 512 + 511);
	}
	return submit(s, origin, &m, &w);
}

/* Write the flag: by a copy from any rank or by an atomic swap. */
static void do_flag(struct sim *s, u32 origin, struct link *l, u64 order)
{
	u64 value = l->generation % NUMBERS;
	u64 flag = address(s, l->flag_rank, AT_FLAGS + 8 * origin);
	struct work w = { .job = CHAIN_FLAG, .order = order, .generation = l->generation };
	struct acp_msg m = { .op = ACP_OP_COPY, .dst = flag, .size = 8 };

	m.src = address(s, pick(s, s->ranks), AT_NUMBERS + 8 * value);
	w.slot = ~0u;
	if (pick(s, 2) && take_slot(s, origin, &w)) {
		m = (struct acp_msg){ .op = ACP_OP_SWAP8, .src = flag, .a = value };
		m.dst = address(s, w.dst, w.at);
	}
	test_of(s)->chain[origin].last_flag = submit(s, origin, &m, &w);
}

/* Data and flag in one command, if both are on one node. */
static bool do_both(struct sim *s, u32 origin, struct link *l, const struct acp_msg *data)
{
	struct work w = { .job = CHAIN_BOTH, .slot = ~0u, .generation = l->generation };
	struct acp_msg m = *data;

	if (sim_node_of(s, l->data_rank) != sim_node_of(s, l->flag_rank) || pick(s, 2))
		return false;
	w.order = test_of(s)->chain[origin].last_flag;
	m.op = ACP_OP_COPY_SET;
	m.c = address(s, l->flag_rank, AT_FLAGS + 8 * origin);
	m.b = l->generation % NUMBERS;
	test_of(s)->chain[origin].last_flag = submit(s, origin, &m, &w);
	return true;
}

/* Data, then a flag that is ordered after it; both are ordered after the previous flag. */
static void do_chain(struct sim *s, u32 origin)
{
	struct chain *c = &test_of(s)->chain[origin];
	struct link *l = &c->link[(c->issued + 1) % CHAIN];
	struct work w = { .job = CHAIN_DATA, .order = c->last_flag };
	struct acp_msg m = { .op = ACP_OP_COPY };
	u64 ticket;

	if (c->stopped || test_of(s)->no_chains)
		return;
	*l = (struct link){ .generation = ++c->issued };
	l->data_rank = pick(s, s->ranks);
	l->flag_rank = pick(s, 2) ? l->data_rank : pick(s, s->ranks);
	l->src = pick(s, s->ranks);
	l->length = random_length(s, DATA_BYTES);
	l->from = pick(s, SOURCE_BYTES - l->length);
	m.dst = address(s, l->data_rank, AT_DATA + DATA_BYTES * origin);
	m.src = address(s, l->src, AT_SOURCE + l->from);
	m.size = l->length;
	w.generation = l->generation;
	if (do_both(s, origin, l, &m))
		return;
	ticket = submit(s, origin, &m, &w);
	if (sim_chance(s, test_of(s)->bad))
		ticket = do_bad(s, origin, ticket);
	do_flag(s, origin, l, ticket);
}

static bool chain_fits(struct sim_rank *r)
{
	return !r->commands[(r->tail + 2) % SIM_DEPTH].busy &&
	       !r->commands[(r->tail + 3) % SIM_DEPTH].busy;
}

static void submit_some(struct sim *s, void *what, u64 origin)
{
	struct test_job *t = test_of(s);
	struct sim_rank *r = &s->rank[origin];
	u32 tries;

	(void)what;
	t->submitting[origin] = false;
	if (s->n.sent >= t->enough)
		return;
	for (tries = 0; tries < 8 && r->tail - r->completed < t->window[origin]; tries++) {
		u64 kind = pick(s, 100);

		if (!sim_room(s, origin) || r->tail + 3 - r->completed >= SIM_DEPTH / 2)
			break;
		if (sim_chance(s, t->bad) && pick(s, 4))
			do_bad(s, origin, random_order(s, origin));
		else if (sim_chance(s, t->bad))
			do_bad_strided(s, origin, random_order(s, origin));
		else if (kind < 25)
			do_copy(s, origin);
		else if (kind < 37)
			do_strided(s, origin);
		else if (kind < 45)
			do_signal(s, origin);
		else if (kind < 75)
			do_atomic(s, origin);
		else if (chain_fits(r))
			do_chain(s, origin);
		else
			tries = 8;
	}
	if (pick(s, 64) == 0)
		t->window[origin] = 1 + pick(s, SIM_DEPTH / 2 - 4);
}

static void submit_soon(struct sim *s, u32 origin)
{
	struct test_job *t = test_of(s);

	if (t->submitting[origin])
		return;
	t->submitting[origin] = true;
	sim_after(s, pick(s, 4 * SIM_US), submit_some, NULL, origin);
}

/* ---- completions ---- */

static void count_atomic(struct sim *s, struct work *w)
{
	struct tally *y = &test_of(s)->tally[w->src][w->counter];
	u64 old = 0;

	memcpy(&old, s->rank[w->dst].memory + w->at, w->length);
	memcpy(test_of(s)->shadow[w->dst] + w->at, &old, w->length);
	y->count++;
	switch (w->counter % KINDS) {
	case ADD_ONE:
	case ADD_ONE_4:
		SIM_CHECK(s, old < FETCHED_MAX);
		if (!y->fetched)
			y->fetched = calloc(1, FETCHED_MAX);
		SIM_CHECK(s, !y->fetched[old]);
		y->fetched[old] = 1;
		y->value++;
		break;
	case XOR:
		y->value ^= w->operand;
		break;
	default:
		y->given += w->operand;
		y->taken += old;
	}
}

static void check_copy(struct sim *s, struct work *w)
{
	const u8 *source = s->rank[w->src].memory + w->from;

	if (memcmp(s->rank[w->dst].memory + w->at, source, w->length))
		SIM_FAIL(s, "copy of %llu bytes from rank %u to %u is complete, data is not there",
			 (unsigned long long)w->length, w->src, w->dst);
	memcpy(test_of(s)->shadow[w->dst] + w->at, source, w->length);
}

/* All blocks have been copied, and nothing between them has changed. */
static void check_strided(struct sim *s, struct work *w)
{
	const u8 *source = s->rank[w->src].memory + w->from;
	u8 *shadow = test_of(s)->shadow[w->dst] + w->at;
	u64 block = (u32)w->desc, i;

	if (sim_node_of(s, w->dst) == test_of(s)->rebooted)
		memcpy(shadow, s->rank[w->dst].memory + w->at, SLOT_BYTES);
	for (i = 0; i < w->desc >> 32; i++)
		memcpy(shadow + w->operand + i * w->dst_stride, source + i * w->src_stride, block);
	if (memcmp(s->rank[w->dst].memory + w->at, shadow, SLOT_BYTES))
		SIM_FAIL(s, "strided copy from rank %u to %u is complete, data is not there, or more",
			 w->src, w->dst);
}

static void check_flag(struct sim *s, u32 origin, struct work *w)
{
	SIM_CHECK(s, test_of(s)->chain[origin].visible >= w->generation);
	if (w->slot != ~0u)
		memcpy(test_of(s)->shadow[w->dst] + w->at, s->rank[w->dst].memory + w->at, 8);
}

/* It must have failed if and only if a command failed on which it depends. */
static void check_order(struct sim *s, u32 origin, const struct work *w, u8 status)
{
	bool failed = false;
	u64 t;

	for (t = w->seen + 1; t <= w->order; t++)
		failed |= test_of(s)->work[origin][t % SIM_DEPTH].status != ACP_ST_OK;
	if (status == ACP_ST_OK && failed)
		SIM_FAIL(s, "a command of rank %u ran although one before it failed", origin);
	if (status == ACP_ST_ORDER && !test_of(s)->blind)
		SIM_CHECK(s, failed);
	test_of(s)->dependents_failed += failed;
}

static bool plausible(const struct test_job *t, const struct work *w, u8 status)
{
	if (t->may_fail)
		return true;
	if (w->job == BAD)
		return status == w->expected || status == ACP_ST_ORDER;
	if (status == ACP_ST_STAG)
		return t->may_vanish && (w->job == COPY || w->job == STRIDED || w->job == SIGNAL);
	return status == ACP_ST_OK || (status == ACP_ST_ORDER && (t->bad || t->may_vanish));
}

/* After a reboot, the memory of a node does not show the effects of earlier commands. */
static bool comparable(struct sim *s, const struct work *w)
{
	struct test_job *t = test_of(s);

	if (w->job == ATOMIC && sim_node_of(s, w->src) == t->rebooted)
		return false;
	if (w->job == SIGNAL && sim_node_of(s, w->dst) == t->rebooted)
		return false;
	return w->phase == t->phase || (sim_node_of(s, w->src) != t->rebooted &&
					sim_node_of(s, w->dst) != t->rebooted);
}

static void check_effect(struct sim *s, u32 origin, struct work *w)
{
	if (w->job == SIGNAL)
		test_of(s)->tally[w->counter_rank][w->counter].value++;
	if (w->job == COPY || w->job == SIGNAL)
		check_copy(s, w);
	else if (w->job == STRIDED)
		check_strided(s, w);
	else if (w->job == ATOMIC)
		count_atomic(s, w);
	else if ((w->job == CHAIN_FLAG || w->job == CHAIN_BOTH) &&
		 !test_of(s)->chain[origin].stopped)
		check_flag(s, origin, w);
}

static bool owns_slot(const struct work *w)
{
	return w->job == COPY || w->job == STRIDED || w->job == SIGNAL || w->job == ATOMIC ||
	       (w->job == CHAIN_FLAG && w->slot != ~0u);
}

static void completed(struct sim *s, u32 origin, u64 ticket, u8 status)
{
	struct test_job *t = test_of(s);
	struct work *w = &t->work[origin][ticket % SIM_DEPTH];
	bool known = true;

	w->status = status;
	s->n.completions++;
	if (t->rebooting)
		return;
	t->failed += status != ACP_ST_OK;
	check_order(s, origin, w, status);
	SIM_CHECK(s, plausible(t, w, status));
	if (status != ACP_ST_OK)
		t->chain[origin].stopped |= t->may_fail || t->may_vanish;
	else if (comparable(s, w))
		check_effect(s, origin, w);
	else
		known = false;
	/* The slot of a command that failed with its flow may still be written. */
	if (owns_slot(w) && (status == ACP_ST_OK || !t->may_fail)) {
		t->slot_busy[w->dst][w->slot] = false;
		if (!known || (status != ACP_ST_OK && t->may_vanish))
			memcpy(t->shadow[w->dst] + w->at, s->rank[w->dst].memory + w->at,
			       w->length);
	}
	submit_soon(s, origin);
}

/* ---- the run ---- */

static void fill_memory(struct sim *s)
{
	struct test_job *t = test_of(s);
	u32 rank, i;

	for (rank = 0; rank < s->ranks; rank++) {
		u64 *words = (void *)s->rank[rank].memory;

		for (i = 0; i < SOURCE_BYTES / 8; i++)
			words[i] = sim_random(s);
		for (i = 0; i < NUMBERS; i++)
			words[AT_NUMBERS / 8 + i] = i;
		t->shadow[rank] = malloc(MEMORY);
		memcpy(t->shadow[rank], words, MEMORY);
		t->window[rank] = 1 + pick(s, SIM_DEPTH / 2 - 4);
	}
}

static void job_init(struct sim *s, const char *name, u64 enough)
{
	struct test_job *t = calloc(1, sizeof(*t));
	u32 rank;

	s->name = name;
	s->memory = MEMORY;
	s->wrote = wrote;
	s->completed = completed;
	s->test = t;
	t->enough = enough;
	t->rebooted = ~0u;
	sim_init(s, base_seed);
	fill_memory(s);
	for (rank = 0; rank < s->ranks; rank++)
		submit_soon(s, rank);
}

static void job_free(struct sim *s)
{
	struct test_job *t = test_of(s);
	u32 rank, i;

	for (rank = 0; rank < s->ranks; rank++) {
		free(t->shadow[rank]);
		for (i = 0; i < COUNTERS; i++)
			free(t->tally[rank][i].fetched);
	}
	sim_free(s);
	free(t);
	free(s);
}

static bool all_complete(struct sim *s)
{
	u32 rank;

	if (s->n.sent < test_of(s)->enough)
		return false;
	for (rank = 0; rank < s->ranks; rank++)
		if (s->rank[rank].completed != s->rank[rank].tail)
			return false;
	return true;
}

/* Run until all commands of all ranks are complete, then let the flows become idle. */
static void run_job(struct sim *s)
{
	u64 hang = s->now, before = 0, rest;
	u32 rank;

	while (!all_complete(s)) {
		if (!sim_step(s))
			break;	/* failed commands own all slots, nothing can be submitted */
		if (s->n.completions != before)
			hang = s->now;
		before = s->n.completions;
		if (s->now - hang > 60 * SIM_S)
			SIM_FAIL(s, "nothing was completed for a minute");
	}
	for (rest = s->now + 30 * SIM_S; s->nevents && s->now < rest;)
		sim_step(s);
	for (rank = 0; rank < s->ranks; rank++)
		SIM_CHECK(s, s->rank[rank].completed == s->rank[rank].tail);
}

/* When nothing is in progress, slots of failed commands can be used again. */
static void free_slots(struct sim *s)
{
	struct test_job *t = test_of(s);
	u32 rank;

	for (rank = 0; rank < s->ranks; rank++)
		memcpy(t->shadow[rank] + AT_SLOTS, s->rank[rank].memory + AT_SLOTS,
		       SLOTS * SLOT_BYTES);
	memset(t->slot_busy, 0, sizeof(t->slot_busy));
}

static void check_counters(struct sim *s)
{
	u32 rank, i;

	for (rank = 0; rank < s->ranks; rank++) {
		for (i = 0; i < COUNTERS; i++) {
			struct tally *y = &test_of(s)->tally[rank][i];
			u64 value;

			memcpy(&value, s->rank[rank].memory + AT_COUNTERS + 8 * i, 8);
			if (test_of(s)->may_fail)
				SIM_CHECK(s, i % KINDS >= XOR || value >= y->value ||
					  sim_node_of(s, rank) == test_of(s)->rebooted);
			else if (i % KINDS == SWAP)
				SIM_CHECK(s, y->taken + value == y->given);
			else
				SIM_CHECK(s, value == y->value);
		}
	}
}

static void check_memory(struct sim *s)
{
	u32 rank, i;

	for (rank = 0; rank < s->ranks; rank++) {
		const u8 *memory = s->rank[rank].memory, *shadow = test_of(s)->shadow[rank];

		SIM_CHECK(s, !memcmp(memory, shadow, AT_COUNTERS));
		if (sim_node_of(s, rank) == test_of(s)->rebooted)
			continue;
		for (i = 0; i < SLOTS; i++) {
			u64 at = AT_SLOTS + i * SLOT_BYTES;

			if (!test_of(s)->slot_busy[rank][i] &&
			    memcmp(memory + at, shadow + at, SLOT_BYTES))
				SIM_FAIL(s, "slot %u of rank %u is not what it should be", i, rank);
		}
	}
}

/* Continue with more commands. */
static void next_phase(struct sim *s, u64 frames)
{
	u32 rank;

	check_memory(s);
	free_slots(s);
	test_of(s)->phase++;
	test_of(s)->enough = s->n.sent + frames;
	for (rank = 0; rank < s->ranks; rank++)
		submit_soon(s, rank);
	run_job(s);
}

/* Nothing of what was in progress may be left. */
static void check_rest(struct sim *s)
{
	u32 node, i, color;

	SIM_CHECK(s, s->n.items == 0);
	for (node = 0; node < s->nodes; node++) {
		for (i = 0; i < s->nodes; i++) {
			for (color = 0; color < s->colors; color++) {
				struct sim_peer *p = sim_peer(s, node, i, color);

				SIM_CHECK(s, !p->pending.first && !p->flow.n_held && !p->delegated);
				SIM_CHECK(s, p->flow.una == p->flow.next && !p->flow.flight);
				SIM_CHECK(s, !p->flow.lost && !p->flow.expect);
			}
		}
	}
}

static void report(struct sim *s)
{
	const struct sim_counts *n = &s->n;
	struct test_job *t = test_of(s);

	printf("# seed %llu: %llu frames, %llu commands in %llu ms; %llu lost, %llu doubled, "
	       "%llu damaged, %llu replayed\n", (unsigned long long)s->seed,
	       (unsigned long long)n->sent, (unsigned long long)t->commands,
	       (unsigned long long)((s->now - SIM_S) / SIM_MS), (unsigned long long)n->lost,
	       (unsigned long long)n->duplicated, (unsigned long long)n->damaged,
	       (unsigned long long)n->replayed);
	printf("#   %llu sent again, %llu duplicates, %llu held, %llu refused, %llu bad tags, "
	       "%llu bad crc, %llu of other incarnations, %llu failed; at most %llu items\n",
	       (unsigned long long)n->resent, (unsigned long long)n->duplicates,
	       (unsigned long long)n->held, (unsigned long long)n->refused,
	       (unsigned long long)n->bad_tag, (unsigned long long)n->bad_crc,
	       (unsigned long long)n->bad_epoch, (unsigned long long)t->failed,
	       (unsigned long long)n->items_max);
}

static void finish(struct sim *s)
{
	check_rest(s);
	check_counters(s);
	check_memory(s);
	SIM_CHECK(s, s->n.items_max <= (u64)s->ranks * SIM_DEPTH * 4);
	report(s);
	job_free(s);
}

/* Run a job in which no flow may fail. */
static void run_and_check(struct sim *s)
{
	run_job(s);
	SIM_CHECK(s, s->n.failures == 0 && s->n.restarts == 0);
	SIM_CHECK(s, s->n.future == 0 || s->net.replay);
	SIM_CHECK(s, s->n.strays == 0);
	finish(s);
}

/* A network without faults; each test adds its own faults. */
static struct sim *new_sim(u32 nodes, u32 ranks, u32 colors)
{
	struct sim *s = calloc(1, sizeof(*s));

	s->nodes = nodes;
	s->ranks = ranks;
	s->colors = colors;
	s->mtu = 600;
	s->net = (struct sim_net){ .delay = 20 * SIM_US, .jitter = 2 * SIM_US,
				   .apply = 3 * SIM_US };
	return s;
}

#define PERCENT	(SIM_ALWAYS / 100)

static void with_loss(const char *name, u32 loss, u32 ack_loss)
{
	struct sim *s = new_sim(4, 8, 2);

	s->net.loss = loss;
	s->net.ack_loss = ack_loss;
	job_init(s, name, frames_wanted);
	run_and_check(s);
}

TEST(sim__no_faults)
{
	with_loss(__func__, 0, 0);
}

TEST(sim__marks)
{
	struct sim *s = new_sim(4, 8, 2);

	s->net.mark = 30 * PERCENT;
	s->net.loss = PERCENT;
	job_init(s, __func__, frames_wanted / 4);
	run_and_check(s);
}

TEST(sim__N1_loss_one_in_a_thousand)
{
	with_loss(__func__, PERCENT / 10, 0);
}

TEST(sim__N1_loss_1_percent)
{
	with_loss(__func__, PERCENT, 0);
}

TEST(sim__N1_loss_10_percent)
{
	with_loss(__func__, 10 * PERCENT, 0);
}

TEST(sim__N1_loss_50_percent)
{
	with_loss(__func__, 50 * PERCENT, 0);
}

TEST(sim__N1_loss_of_acks)
{
	with_loss(__func__, 0, 70 * PERCENT);
}

TEST(sim__N2_every_frame_twice)
{
	struct sim *s = new_sim(3, 6, 1);

	s->net.duplicate = SIM_ALWAYS;
	s->net.jitter = 60 * SIM_US;
	job_init(s, __func__, frames_wanted);
	run_and_check(s);
}

TEST(sim__N3_reordering)
{
	struct sim *s = new_sim(5, 5, 2);

	s->net.jitter = 500 * SIM_US;
	job_init(s, __func__, frames_wanted);
	run_and_check(s);
}

TEST(sim__N3_slow_application)
{
	struct sim *s = new_sim(4, 4, 1);

	s->net.loss = PERCENT;
	s->net.jitter = 100 * SIM_US;
	s->net.apply = 300 * SIM_US;
	job_init(s, __func__, frames_wanted);
	run_and_check(s);
}

TEST(sim__N4_damage)
{
	struct sim *s = new_sim(3, 6, 2);

	s->crc = true;
	s->net.damage = 10 * PERCENT;
	job_init(s, __func__, frames_wanted);
	run_and_check(s);
}

TEST(sim__N5_truncated)
{
	struct sim *s = new_sim(3, 3, 1);

	s->net.truncate = 10 * PERCENT;
	job_init(s, __func__, frames_wanted);
	run_and_check(s);
}

TEST(sim__N11_replay)
{
	struct sim *s = new_sim(4, 4, 2);

	s->net.replay = 20 * PERCENT;
	s->net.loss = 2 * PERCENT;
	job_init(s, __func__, frames_wanted);
	run_and_check(s);
}

TEST(sim__N15_receiver_out_of_memory)
{
	struct sim *s = new_sim(4, 8, 1);

	s->net.refuse = 20 * PERCENT;
	s->net.loss = PERCENT;
	job_init(s, __func__, frames_wanted);
	run_and_check(s);
}

TEST(sim__N1_N2_N3_N4_all_at_once)
{
	struct sim *s = new_sim(8, 16, 2);

	s->crc = true;
	s->net.loss = 5 * PERCENT;
	s->net.duplicate = 5 * PERCENT;
	s->net.damage = 2 * PERCENT;
	s->net.truncate = PERCENT;
	s->net.replay = 5 * PERCENT;
	s->net.refuse = PERCENT;
	s->net.jitter = 200 * SIM_US;
	s->net.apply = 20 * SIM_US;
	job_init(s, __func__, 2 * frames_wanted);
	run_and_check(s);
}

/* ---- commands that fail ---- */

TEST(sim__A5_failures_in_chains)
{
	struct sim *s = new_sim(4, 4, 1);

	s->net.loss = 2 * PERCENT;
	s->net.jitter = 20 * SIM_US;
	job_init(s, __func__, frames_wanted);
	test_of(s)->bad = 5 * PERCENT;
	run_and_check(s);
}

/* Hundreds of failures in progress in both directions: their answers must get through. */
TEST(sim__A5_nothing_but_failures)
{
	struct sim *s = new_sim(2, 16, 1);

	s->net.loss = PERCENT;
	s->mtu = 256;
	job_init(s, __func__, frames_wanted / 4);
	test_of(s)->bad = SIM_ALWAYS;
	run_and_check(s);
}

/*
 * If failures are not recorded, commands with a dependency may fail although nothing failed, and
 * nothing worse happens.
 */
TEST(sim__A5_no_memory_to_remember_failures)
{
	struct sim *s = new_sim(4, 4, 1);

	s->net.loss = 2 * PERCENT;
	s->net.forget = 95 * PERCENT;
	job_init(s, __func__, frames_wanted / 4);
	test_of(s)->bad = 5 * PERCENT;
	test_of(s)->blind = true;
	run_and_check(s);
}

static void revoke_sources(struct sim *s, void *what, u64 number)
{
	(void)what;
	(void)number;
	s->lost_revoked = true;
}

TEST(sim__M3_source_unregistered_while_it_is_sent)
{
	struct sim *s = new_sim(4, 8, 1);

	s->net.loss = 5 * PERCENT;
	job_init(s, __func__, frames_wanted / 4);
	test_of(s)->may_vanish = true;
	sim_after(s, 5 * SIM_MS, revoke_sources, NULL, 0);
	run_and_check(s);
}

/* ---- nodes that cannot be reached, nodes that restart ---- */

/* Disconnect a node, or connect it again. */
static void cut_node(struct sim *s, u32 node, bool cut)
{
	u32 i;

	for (i = 0; i < s->nodes; i++) {
		s->cut[node][i] = cut;
		s->cut[i][node] = cut;
	}
}

static void cut_off(struct sim *s, void *what, u64 node)
{
	(void)what;
	cut_node(s, node, true);
}

static void join_again(struct sim *s, void *what, u64 node)
{
	(void)what;
	cut_node(s, node, false);
}

TEST(sim__N17_cut_off_for_a_second)
{
	struct sim *s = new_sim(4, 8, 2);

	job_init(s, __func__, frames_wanted / 2);
	sim_after(s, 3 * SIM_MS, cut_off, NULL, 0);
	sim_after(s, SIM_S, join_again, NULL, 0);
	run_and_check(s);
}

/* Commands that need the node fail; when it is connected again, it works as before. */
TEST(sim__N17_cut_off_for_ever)
{
	struct sim *s = new_sim(4, 8, 2);

	job_init(s, __func__, frames_wanted / 2);
	test_of(s)->may_fail = true;
	sim_after(s, 3 * SIM_MS, cut_off, NULL, 0);
	run_job(s);
	SIM_CHECK(s, test_of(s)->failed > 0 && s->n.failures > 0);
	SIM_CHECK(s, s->n.told_lost > 0 && !s->n.told_back);
	cut_node(s, 0, false);
	next_phase(s, frames_wanted / 8);
	test_of(s)->failed = 0;
	next_phase(s, frames_wanted / 8);
	SIM_CHECK(s, test_of(s)->failed == 0 && s->n.told_back == s->n.told_lost);
	finish(s);
}

/* Each node once: answers in transit never arrive, but their commands end. */
TEST(sim__N17_cut_off_one_after_the_other)
{
	struct sim *s = new_sim(4, 8, 2);
	u32 node;

	s->net.jitter = 100 * SIM_US;
	job_init(s, __func__, frames_wanted / 8);
	test_of(s)->may_fail = true;
	run_job(s);
	for (node = 0; node < s->nodes; node++) {
		sim_after(s, SIM_MS, cut_off, NULL, node);
		next_phase(s, frames_wanted / 8);
		cut_node(s, node, false);
		next_phase(s, frames_wanted / 64);
	}
	SIM_CHECK(s, test_of(s)->failed > 0 && s->n.failures > 0);
	finish(s);
}

/* ---- a dead node, and an attacker who replays its frames ---- */

#define TIME_OUT	(10 * SIM_S)		/* of simulated flows */

/* Incarnations of flows to the dead node that have awaited something ever since it died. */
struct wake {
	u32 epoch[SIM_NODES][SIM_COLORS];	/* 0: none */
	u32 node, flows;
	u64 until;
};

static bool waits(const struct sim_peer *p)
{
	return p->flow.state == ACP_FLOW_OPEN &&
	       (p->flow.una != p->flow.next || p->flow.expect);
}

/* Replay everything to all nodes. Flows that no longer wait are not checked any more. */
static void replay_again(struct sim *s, void *what, u64 number)
{
	struct wake *w = what;
	u32 i, color;

	sim_replay_kept(s);
	for (i = 0; i < s->nodes; i++) {
		for (color = 0; color < s->colors; color++) {
			struct sim_peer *p = sim_peer(s, i, w->node, color);

			if (!waits(p) || p->flow.epoch != w->epoch[i][color])
				w->epoch[i][color] = 0;
		}
	}
	if (s->now < w->until)
		sim_after(s, 50 * SIM_MS, replay_again, w, number);
}

static void node_dies(struct sim *s, void *what, u64 node)
{
	struct wake *w = what;
	u32 i, color;

	cut_node(s, node, true);
	s->net.replay = 0;		/* kept frames stay */
	w->node = node;
	w->until = s->now + 3 * TIME_OUT;
	for (i = 0; i < s->nodes; i++) {
		for (color = 0; i != node && color < s->colors; color++) {
			struct sim_peer *p = sim_peer(s, i, node, color);

			w->epoch[i][color] = waits(p) ? p->flow.epoch : 0;
			w->flows += waits(p);
		}
	}
	replay_again(s, w, 0);
}

static void all_have_noticed(struct sim *s, void *what, u64 number)
{
	const struct wake *w = what;
	u32 i, color;

	(void)number;
	for (i = 0; i < s->nodes; i++)
		for (color = 0; color < s->colors; color++)
			if (w->epoch[i][color])
				SIM_FAIL(s, "node %u still waits for the dead one", i);
}

/* Commands that wait for the dead node end in time, whatever is replayed. */
TEST(sim__N11_replays_keep_no_dead_node_alive)
{
	struct sim *s = new_sim(4, 8, 2);
	struct wake w = { .flows = 0 };

	s->net.replay = 50 * PERCENT;
	job_init(s, __func__, frames_wanted / 2);
	test_of(s)->may_fail = true;
	sim_after(s, 3 * SIM_MS, node_dies, &w, 0);
	/* Twice the time-out, because a frame sent before it has passed restarts it, once. */
	sim_after(s, 3 * SIM_MS + 24 * TIME_OUT / 10, all_have_noticed, &w, 0);
	run_job(s);
	SIM_CHECK(s, w.flows > 0 && s->n.replayed > 100);
	SIM_CHECK(s, test_of(s)->failed > 0 && s->n.failures > 0);
	finish(s);
}

static void reboot(struct sim *s, void *what, u64 node)
{
	u32 rank;

	(void)what;
	test_of(s)->rebooting = true;
	test_of(s)->rebooted = node;
	test_of(s)->phase++;
	sim_reboot(s, node);
	for (rank = node; rank < s->ranks; rank += s->nodes) {
		memcpy(s->rank[rank].memory, test_of(s)->shadow[rank], AT_COUNTERS);
		submit_soon(s, rank);
	}
	test_of(s)->rebooting = false;
}

/* Frames of its former incarnation, late or replayed, must not affect the new one. */
TEST(sim__P3_N11_reboot_of_a_node)
{
	struct sim *s = new_sim(4, 4, 2);

	s->net.loss = PERCENT;
	s->net.replay = 5 * PERCENT;
	s->net.jitter = 100 * SIM_US;
	s->net.apply = 300 * SIM_US;
	job_init(s, __func__, frames_wanted / 2);
	test_of(s)->may_fail = true;
	test_of(s)->no_chains = true;
	sim_after(s, 5 * SIM_MS, reboot, NULL, 1);
	run_job(s);
	SIM_CHECK(s, test_of(s)->failed > 0 && s->n.restarts > 0);
	SIM_CHECK(s, s->n.told_lost > 0 && s->n.told_back == s->n.told_lost);
	next_phase(s, frames_wanted / 8);
	test_of(s)->failed = 0;
	next_phase(s, frames_wanted / 8);
	SIM_CHECK(s, test_of(s)->failed == 0);
	finish(s);
}

/* Datagrams that are too long for the path vanish: shorter ones are used, and nothing fails. */
TEST(sim__N18_path_swallows_what_is_long)
{
	struct sim *s = new_sim(3, 6, 1);

	s->net.swallow = 300;
	s->net.loss = PERCENT;
	job_init(s, __func__, frames_wanted / 4);
	run_job(s);
	SIM_CHECK(s, s->n.swallowed > 0 && s->n.narrowed > 0);
	SIM_CHECK(s, s->n.failures == 0 && s->n.restarts == 0 && s->n.strays == 0);
	finish(s);
}

/* ---- nodes whose settings of the job differ, or that begin later ---- */

static bool touches(struct sim *s, u32 origin, const struct work *w, u32 node)
{
	return sim_node_of(s, origin) == node || sim_node_of(s, w->src) == node ||
	       sim_node_of(s, w->dst) == node;
}

static void completed_but(struct sim *s, u32 origin, u64 ticket, u8 status)
{
	const struct work *w = &test_of(s)->work[origin][ticket % SIM_DEPTH];

	if (w->job == COPY && status == ACP_ST_PEER)
		SIM_CHECK(s, touches(s, origin, w, 2));
	completed(s, origin, ticket, status);
}

/* The settings of node 2 differ: it and all others learn of it, however often frames are lost. */
static void other_set_up(const char *name, bool alone)
{
	struct sim *s = new_sim(4, 8, 2);
	u32 i;

	s->net.loss = 10 * PERCENT;
	s->net.replay = 10 * PERCENT;
	job_init(s, name, frames_wanted / 8);
	s->completed = completed_but;
	test_of(s)->may_fail = true;
	s->node[2].setup.digest++;
	for (i = 0; alone && i < s->ranks; i++)
		if (sim_node_of(s, i) != 2)
			test_of(s)->window[i] = 0;
	run_job(s);
	for (i = 0; i < s->nodes; i++)
		SIM_CHECK(s, s->node[i].mismatched);
	SIM_CHECK(s, test_of(s)->failed > 0 && s->n.others > 0 && s->n.refusals >= 2);
	SIM_CHECK(s, s->n.failures == 0 && s->n.restarts == 0 && !s->n.told_back);
	finish(s);
}

TEST(sim__N12_other_set_up_of_the_job)
{
	other_set_up(__func__, false);
}

/* Nodes that have nothing to send to node 2 also open the flow. */
TEST(sim__N12_other_set_up_speaks_alone)
{
	other_set_up(__func__, true);
}

static void arrive(struct sim *s, void *what, u64 node)
{
	u32 rank;

	(void)what;
	s->node[node].away = false;
	for (rank = node; rank < s->ranks; rank += s->nodes) {
		test_of(s)->window[rank] = SIM_DEPTH / 4;
		submit_soon(s, rank);
	}
}

/* Requests to the node wait until its first rank has attached. */
TEST(sim__P1_a_node_begins_later)
{
	struct sim *s = new_sim(4, 8, 2);
	u32 rank;

	s->net.loss = PERCENT;
	job_init(s, __func__, frames_wanted / 8);
	s->node[1].away = true;
	for (rank = 1; rank < s->ranks; rank += s->nodes)
		test_of(s)->window[rank] = 0;
	sim_after(s, SIM_S, arrive, NULL, 1);
	run_job(s);
	SIM_CHECK(s, s->n.absent > 0 && test_of(s)->failed == 0);
	SIM_CHECK(s, s->n.failures == 0 && s->n.restarts == 0 && s->n.strays == 0);
	finish(s);
}

/* ---- throughput ---- */

#define PUT_BYTES	32768
#define PUTS		1500

static void wrote_nothing(struct sim *s, u32 rank, u64 at, u64 length)
{
	(void)s;
	(void)rank;
	(void)at;
	(void)length;
}

static void put_more(struct sim *s, u32 rank, u64 ticket, u8 status)
{
	struct acp_msg m = { .op = ACP_OP_COPY, .size = PUT_BYTES };

	SIM_CHECK(s, status == ACP_ST_OK);
	m.src = acp_ga_make(&s->ga, 0, 0, SIM_STAG, 0);
	m.dst = acp_ga_make(&s->ga, 1, 0, SIM_STAG, 0);
	if (ticket < PUTS)
		sim_submit(s, rank, &m, 0);
}

/* MB/s of puts over a link of 10 Gbit/s with a delay of 20 us. */
static u64 goodput(u32 loss)
{
	struct sim *s = new_sim(2, 2, 1);
	u32 i;
	u64 begin, rate;

	s->mtu = 1472;
	s->memory = PUT_BYTES;
	s->net = (struct sim_net){ .loss = loss, .delay = 10 * SIM_US, .jitter = SIM_US,
				   .kib_ns = 819, .queue_ns = SIM_MS };
	s->name = "sim__N1_goodput";
	s->wrote = wrote_nothing;
	s->completed = put_more;
	sim_init(s, base_seed);
	begin = s->now;
	for (i = 0; i < 16; i++)
		put_more(s, 0, 0, ACP_ST_OK);
	while (s->rank[0].completed < PUTS)
		SIM_CHECK(s, sim_step(s));
	rate = PUT_BYTES * (u64)PUTS * 1000 / (s->now - begin);
	while (s->nevents && sim_step(s))
		;
	sim_free(s);
	free(s);
	return rate;
}

TEST(sim__N1_goodput)
{
	u64 whole = goodput(0), one = goodput(PERCENT), ten = goodput(10 * PERCENT);

	printf("# goodput: %llu MB/s, 1 %% loss: %llu (%llu %%), 10 %% loss: %llu (%llu %%)\n",
	       (unsigned long long)whole, (unsigned long long)one,
	       (unsigned long long)(100 * one / whole), (unsigned long long)ten,
	       (unsigned long long)(100 * ten / whole));
	CHECK(whole >= 1000);
}

/* ---- main ---- */

int main(int argc, char **argv)
{
	while (argc > 2 && !strncmp(argv[1], "--", 2)) {
		if (!strcmp(argv[1], "--seed"))
			base_seed = strtoull(argv[2], NULL, 0);
		else if (!strcmp(argv[1], "--frames"))
			frames_wanted = strtoull(argv[2], NULL, 0);
		argv[2] = argv[0];
		argv += 2;
		argc -= 2;
	}
	return test_main(argc, argv);
}
