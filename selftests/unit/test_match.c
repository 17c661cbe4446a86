// SPDX-License-Identifier: MIT
/*
 * kernel/core/match.c: random receives and messages, against a model that searches lists; and what
 * a match costs when there are many of them.
 */
#include <stdlib.h>
#include "test.h"
#include "match.h"

#define RECEIVES	32u
#define MESSAGES	24u
#define BYTES		512u
#define RANKS		3u
#define STEPS		200000u
#define ANY		(~0u)

static u64 random_state;

static u64 rnd(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 0x2545f4914f6cdd1d >> 16;
}

static void *open_matcher(struct acp_matcher *m, u32 receives, u32 messages, u64 bytes)
{
	const u64 secret[] = { rnd(), rnd() };
	void *memory;

	*m = (struct acp_matcher){
		.receives = receives, .messages = messages, .masks = 3, .masks_max = 3,
		.mask = { 0, ~0ULL, 6 }, .bytes = bytes,
	};
	memory = calloc(1, acp_matcher_bytes(m));
	acp_matcher_init(m, memory, secret);
	return memory;
}

/* ---- the model ---- */

struct want {
	u64 order;		/* 0: not posted */
	u64 was;		/* "order" before a message matched it */
	u64 tag, ignore;
	u32 rank;
};

struct had {
	u64 order;		/* 0: not kept */
	u64 tag;
	u64 at, length;
	u32 rank;
	u32 taken_by;		/* NONE: listed */
	bool arriving, given;
	bool asks;		/* it has no place */
};

static struct want want[RECEIVES];
static bool busy[RECEIVES];	/* BUSY: a message is on its way */
static struct had had[MESSAGES];
static u64 clock_;

static bool accepts(const struct want *w, u32 rank, u64 tag)
{
	return (w->rank == ANY || w->rank == rank) && !((w->tag ^ tag) & ~w->ignore);
}

static u32 model_receive(u32 rank, u64 tag)
{
	u32 best = ACP_MATCH_NONE, i;

	for (i = 0; i < RECEIVES; i++)
		if (want[i].order && accepts(&want[i], rank, tag) &&
		    (best == ACP_MATCH_NONE || want[i].order < want[best].order))
			best = i;
	return best;
}

static u32 model_message(const struct want *w)
{
	u32 best = ACP_MATCH_NONE, i;

	for (i = 0; i < MESSAGES; i++)
		if (had[i].order && had[i].taken_by == ACP_MATCH_NONE && !had[i].given &&
		    accepts(w, had[i].rank, had[i].tag) &&
		    (best == ACP_MATCH_NONE || had[i].order < had[best].order))
			best = i;
	return best;
}

static void check_place(u32 message)
{
	const struct had *h = &had[message];
	u32 i;

	CHECK(h->at + h->length <= BYTES && h->at % 8 == 0);
	for (i = 0; i < MESSAGES; i++)
		if (i != message && had[i].order && !had[i].asks)
			CHECK(had[i].at >= h->at + h->length || had[i].at + had[i].length <= h->at);
}

/* ---- steps ---- */

/* A receive has got a message that asked. */
static void check_granted(struct acp_matcher *m, u32 number, u32 message)
{
	struct acp_receive *r = &m->receive[number];

	CHECK(r->granted && r->state == ACP_RECEIVE_BUSY);
	CHECK_EQ(r->rank, had[message].rank);
	CHECK_EQ(r->tag, had[message].tag);
	CHECK_EQ(r->size, had[message].length);
	CHECK_EQ(r->ask.ticket, had[message].order);
	/* As when its first bytes are here. */
	r->granted = false;
	m->granted--;
}

static void do_post(struct acp_matcher *m)
{
	static const u64 masks[] = { 0, ~0ULL, 6 };
	u32 number = rnd() % RECEIVES, mask, found;
	struct acp_key key;
	struct want w;

	if (want[number].order || busy[number])
		return;
	w = (struct want){
		.order = ++clock_, .tag = rnd() % 8, .ignore = masks[rnd() % 3],
		.rank = rnd() % 2 ? ANY : rnd() % RANKS,
	};
	/* Until it is learned, anything else may happen. */
	mask = acp_matcher_learn(m, w.ignore, rnd() % 4);
	if (mask == ACP_MATCH_LATER)
		return;
	key = acp_matcher_key(m, w.rank, w.tag, mask);
	found = acp_matcher_find(m, &key);
	CHECK_EQ(found, model_message(&w));
	if (found == ACP_MATCH_NONE) {
		acp_matcher_post(m, number, &key, number, 10);
		want[number] = w;
		return;
	}
	if (had[found].asks) {
		acp_matcher_post(m, number, &key, number, 10);
		acp_matcher_grant(m, found, number);
		check_granted(m, number, found);
		want[number] = w;
		want[number].was = w.order;
		want[number].order = 0;
		busy[number] = true;
		had[found].order = 0;
		return;
	}
	CHECK_EQ(acp_matcher_take(m, found, number), !had[found].arriving);
	had[found].given = !had[found].arriving;
	if (had[found].arriving) {
		had[found].taken_by = number;
		busy[number] = true;
	}
}

static void do_arrive(struct acp_matcher *m)
{
	u32 rank = rnd() % RANKS, wanted, found;
	u64 tag = rnd() % 8, size = rnd() % 5 ? rnd() % 60 : rnd() % 600;
	u8 status;

	wanted = model_receive(rank, tag);
	found = acp_matcher_match(m, rank, tag, size);
	CHECK_EQ(found, wanted);
	if (found != ACP_MATCH_NONE) {
		CHECK_EQ(m->receive[found].size, size);
		CHECK_EQ(m->receive[found].buffer, found);
		want[found].was = want[found].order;
		want[found].order = 0;
		busy[found] = true;
		return;
	}
	status = acp_matcher_keep(m, rank, tag, size, &found);
	CHECK_EQ(status == ACP_ST_RANGE, size > BYTES);
	if (status)
		return;
	CHECK(!had[found].order);
	had[found] = (struct had){
		.order = ++clock_, .tag = tag, .rank = rank, .at = m->kept[found].at,
		.length = size ? (size + 7) / 8 * 8 : 8, .taken_by = ACP_MATCH_NONE,
		.arriving = true,
	};
	check_place(found);
}

/* A message asks; or one that asks is given a place, or refused. */
static void do_ask(struct acp_matcher *m)
{
	u32 rank = rnd() % RANKS, i = rnd() % MESSAGES;
	u64 tag = rnd() % 8, size = rnd() % 600;
	struct acp_ask ask = { .ticket = clock_ + 1 };
	u32 unused = m->unused;
	u8 status;

	if (had[i].order && had[i].asks) {
		status = acp_matcher_admit(m, i);
		CHECK_EQ(status == ACP_ST_RANGE, had[i].length > BYTES);
		if (!status) {
			CHECK(m->kept[i].granted && m->kept[i].arriving);
			m->kept[i].granted = false;
			m->granted--;
			had[i].asks = false;
			had[i].arriving = true;
			had[i].at = m->kept[i].at;
			had[i].length = had[i].length ? (had[i].length + 7) / 8 * 8 : 8;
			check_place(i);
		} else if (rnd() % 2) {
			acp_matcher_refuse(m, i);
			had[i].order = 0;
		}
		return;
	}
	if (model_receive(rank, tag) != ACP_MATCH_NONE)
		return;
	status = acp_matcher_ask(m, rank, tag, size, &ask);
	CHECK_EQ(status, unused == MESSAGES ? ACP_ST_AGAIN : ACP_ST_OK);
	if (status)
		return;
	CHECK(!had[unused].order);
	had[unused] = (struct had){
		.order = ++clock_, .tag = tag, .rank = rank, .length = size,
		.taken_by = ACP_MATCH_NONE, .asks = true,
	};
}

/* The bytes of a message are there, or it fails. */
static void do_complete(struct acp_matcher *m)
{
	u32 i = rnd() % MESSAGES, found;
	bool failed = !(rnd() % 8);

	if (!had[i].order || !had[i].arriving)
		return;
	found = acp_matcher_kept(m, i, failed);
	CHECK_EQ(found, had[i].taken_by);
	had[i].arriving = false;
	if (found != ACP_MATCH_NONE) {
		busy[found] = false;
		had[i].taken_by = ACP_MATCH_NONE;
		had[i].given = true;
	}
	if (failed)
		had[i].order = 0;
}

static bool taken(u32 receive)
{
	u32 i;

	for (i = 0; i < MESSAGES; i++)
		if (had[i].order && had[i].taken_by == receive)
			return true;
	return false;
}

static void do_end(struct acp_matcher *m)
{
	u32 i = rnd() % RECEIVES, j = rnd() % MESSAGES;

	if (want[i].order && !(rnd() % 4)) {
		acp_matcher_withdraw(m, i);
		want[i].order = 0;
	} else if (busy[i] && !taken(i)) {
		if (rnd() % 3) {
			acp_matcher_done(m, i);
		} else {
			acp_matcher_return(m, i);
			want[i].order = want[i].was;
		}
		busy[i] = false;
	}
	if (had[j].order && had[j].given && !had[j].arriving) {
		acp_matcher_release(m, j);
		had[j].order = 0;
	}
}

static u32 count_asking(void)
{
	u32 count = 0, i;

	for (i = 0; i < MESSAGES; i++)
		count += had[i].order && had[i].asks;
	return count;
}

static u32 count_busy(void)
{
	u32 count = 0, i;

	for (i = 0; i < RECEIVES; i++)
		count += busy[i];
	for (i = 0; i < MESSAGES; i++)
		count += had[i].order && had[i].arriving;
	return count;
}

static void reset(void)
{
	memset(want, 0, sizeof(want));
	memset(busy, 0, sizeof(busy));
	memset(had, 0, sizeof(had));
	clock_ = 0;
}

static void do_step(struct acp_matcher *m)
{
	static void (*const steps[])(struct acp_matcher *m) = {
		do_post, do_arrive, do_complete, do_end, do_ask,
	};

	steps[rnd() % 5](m);
	CHECK_EQ(m->busy, count_busy());
	CHECK_EQ(m->asking, count_asking());
	CHECK_EQ(m->granted, 0);
}

/* Posting, matching, keeping and releasing do what searching the lists does. */
TEST(match__A4_the_oldest_that_matches_gets_it)
{
	struct acp_matcher m;
	void *memory;
	u32 i;

	random_state = 88172645463325252ULL;
	reset();
	memory = open_matcher(&m, RECEIVES, MESSAGES, BYTES);
	CHECK_EQ(acp_matcher_mask(&m, 5), ACP_MATCH_NONE);
	for (i = 0; i < STEPS; i++)
		do_step(&m);
	CHECK_EQ(acp_matcher_learn(&m, 5, 1), ACP_MATCH_NONE);
	free(memory);
}

static void *open_learner(struct acp_matcher *m)
{
	const u64 secret[] = { rnd(), rnd() };
	void *memory;

	*m = (struct acp_matcher){
		.receives = RECEIVES, .messages = MESSAGES, .masks = 1, .masks_max = 3,
		.mask = { ~0ULL }, .bytes = BYTES,
	};
	memory = calloc(1, acp_matcher_bytes(m));
	acp_matcher_init(m, memory, secret);
	return memory;
}

static void learn_all(struct acp_matcher *m)
{
	static const u64 masks[] = { 0, 6 };
	u32 i;

	for (i = 0; i < 2; i++)
		while (acp_matcher_learn(m, masks[i], 1) == ACP_MATCH_LATER)
			;
	CHECK_EQ(m->masks, 3);
	CHECK_EQ(acp_matcher_learn(m, 5, 1), ACP_MATCH_NONE);
}

/*
 * So it is if masks are learned while messages are kept, whatever they were listed for before, and
 * whatever happens meanwhile.
 */
TEST(match__A4_a_mask_that_is_learned_finds_what_was_kept_before)
{
	struct acp_matcher m;
	u32 i, round;
	void *memory;

	random_state = 3141592653ULL;
	for (round = 0; round < 1000; round++) {
		reset();
		memory = open_learner(&m);
		for (i = 0; i < MESSAGES; i++)
			do_arrive(&m);
		for (i = 0; i < 200; i++)
			do_step(&m);
		learn_all(&m);
		for (i = 0; i < 100; i++)
			do_step(&m);
		free(memory);
	}
}

/* One step lists one message, and none is listed twice. */
TEST(match__A4_learning_takes_a_step_for_each_message)
{
	const u32 kept = 1000;
	struct acp_matcher m = {
		.receives = 1, .messages = kept, .masks = 1, .masks_max = 3,
		.mask = { ~0ULL }, .bytes = 8 * kept,
	};
	const u64 secret[] = { 1, 2 };
	void *memory = calloc(1, acp_matcher_bytes(&m));
	struct acp_key key;
	u32 i, found;

	acp_matcher_init(&m, memory, secret);
	for (i = 0; i < kept; i++)
		CHECK_EQ(acp_matcher_keep(&m, i % 3, i % 7, 8, &found), ACP_ST_OK);
	for (i = 0; i < kept - 1; i++)
		CHECK_EQ(acp_matcher_learn(&m, 0, 1), ACP_MATCH_LATER);
	CHECK_EQ(acp_matcher_learn(&m, 0, 1), 1);
	key = acp_matcher_key(&m, 1, 4, 1);
	/* Those of rank 1 with tag 4, the oldest first. */
	for (i = 0; i < kept; i++) {
		if (i % 3 != 1 || i % 7 != 4)
			continue;
		found = acp_matcher_find(&m, &key);
		CHECK_EQ(found, i);
		CHECK(!acp_matcher_take(&m, found, 0));
	}
	CHECK_EQ(acp_matcher_find(&m, &key), ACP_MATCH_NONE);
	free(memory);
}

/* When all is released, all memory can be used again, at once. */
TEST(match__A4_released_memory_is_whole_again)
{
	u32 message, numbers[MESSAGES], n, i, round;
	struct acp_key key;
	struct acp_matcher m;
	void *memory;

	random_state = 1;
	memory = open_matcher(&m, RECEIVES, MESSAGES, BYTES);
	for (round = 0; round < 100; round++) {
		for (n = 0; n < MESSAGES; n++) {
			if (acp_matcher_keep(&m, 0, n, rnd() % 40, &numbers[n]))
				break;
			acp_matcher_kept(&m, numbers[n], false);
		}
		for (i = 0; i < n; i++) {
			key = acp_matcher_key(&m, ANY, i, 0);
			message = acp_matcher_find(&m, &key);
			CHECK_EQ(message, numbers[i]);
			CHECK(acp_matcher_take(&m, message, 0));
			acp_matcher_release(&m, message);
		}
		CHECK_EQ(acp_matcher_keep(&m, 0, 0, BYTES + 1, &message), ACP_ST_RANGE);
		CHECK_EQ(acp_matcher_keep(&m, 0, 0, BYTES, &message), ACP_ST_OK);
		CHECK_EQ(acp_matcher_keep(&m, 0, 0, 0, &message), ACP_ST_AGAIN);
		key = acp_matcher_key(&m, 0, 0, 1);
		message = acp_matcher_find(&m, &key);
		acp_matcher_kept(&m, message, true);
		CHECK_EQ(acp_matcher_find(&m, &key), ACP_MATCH_NONE);
	}
	free(memory);
}

/* Entries that are visited until the first of a key is found. */
static u32 steps_to(const struct acp_keys *t, u32 entry)
{
	u32 bucket, i, steps;

	while (!t->e[entry].first)
		entry = t->e[entry].prev;
	for (bucket = 0; bucket < 1u << (64 - t->shift); bucket++)
		for (i = t->buckets[bucket], steps = 1; i != ACP_MATCH_NONE;
		     i = t->e[i].chain, steps++)
			if (i == entry)
				return steps;
	return ~0u;
}

/* With 10,000 receives, of one key or of as many, the search is short. */
TEST(match__A4_ten_thousand_receives_cost_no_search)
{
	const u32 many = 10000;
	struct acp_matcher m;
	struct acp_key key;
	void *memory;
	u32 i;

	random_state = 7;
	memory = open_matcher(&m, many, 1, 8);
	for (i = 0; i < many; i++) {
		key = acp_matcher_key(&m, i % 2 ? ANY : 1, i % 3 ? 5 : i, 0);
		acp_matcher_post(&m, i, &key, 0, 0);
	}
	for (i = 0; i < many; i += 97)
		CHECK(steps_to(&m.by_receive, i) <= 12);
	/* Those of one key come in their order. */
	CHECK_EQ(acp_matcher_match(&m, 1, 5, 0), 1);
	CHECK_EQ(acp_matcher_match(&m, 1, 5, 0), 2);
	CHECK_EQ(acp_matcher_match(&m, 2, 5, 0), 5);
	CHECK_EQ(acp_matcher_match(&m, 2, 5, 0), 7);
	CHECK_EQ(acp_matcher_match(&m, 1, 5, 0), 4);
	free(memory);
}

TEST_MAIN
