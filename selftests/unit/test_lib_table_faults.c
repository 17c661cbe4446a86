// SPDX-License-Identifier: MIT
/* Sets, multisets and maps with insufficient memory or time, or lost members. */
#include "table_play.h"
#include "middle/txlock.h"

/* ---- No memory ---- */

/* A full heap: keys that do not fit are not inserted, and nothing else changes. */
static void fill_heap(void *arg)
{
	const struct play_kind *k = arg;
	const int ranks[] = { 1, 0 };
	struct play_table t, other;
	struct play_model m = { .count = { 0 } };
	acp_ga_t ballast;
	unsigned int key, full = 0;

	if (acp_rank())
		return;
	errno = 0;
	t = k->create(2, ranks, 4, 0);
	other = k->create(1, ranks, 2, 0);
	CHECK_EQ(k->insert(other, play_pair(90, 1)), 1);
	ballast = acp_malloc(4500, 1);
	for (key = 0; key < 80; key++) {
		if (k->insert(t, play_pair(key, key)) == 1) {
			m.count[key] = 1;
			m.value[key] = key;
			continue;
		}
		CHECK_EQ(errno, ENOMEM);
		CHECK_EQ(play_rank_of(t, key), 1);
		errno = 0;
		full++;
	}
	CHECK(full > 10);
	play_check(k, t, &m);
	k->assign(t, other);
	k->assign(other, t);
	k->swap(t, other);
	errno = 0;
	play_check_layout(t);
	play_check_layout(other);
	acp_free(ballast);
	k->clear(t);
	for (key = 0; key < 20; key++)
		CHECK_EQ(k->insert(t, play_pair(key, key)), 1);
	k->destroy(t);
	k->destroy(other);
	CHECK_EQ(play_blocks(), 0);
	CHECK_EQ(errno, 0);
}

TEST(table__no_memory)
{
	struct fake_acp f = { .ranks = 2, .heap_sizes = { 0, 8192 } };

	fake_run(&f, fill_heap, (void *)&play_set);
	fake_run(&f, fill_heap, (void *)&play_map);
}

/* An assignment or swap that does not fit changes nothing. */
static void all_or_nothing(void *arg)
{
	const struct play_kind *k = arg;
	const int zero[] = { 0 }, one[] = { 1 };
	struct play_model small = { .count = { 0 } }, large = { .count = { 0 } };
	struct play_table a, b;
	unsigned int key;
	size_t blocks;

	if (acp_rank())
		return;
	a = k->create(1, one, 4, 1);
	b = k->create(1, zero, 4, 0);
	for (key = 0; key < 60; key++) {
		CHECK_EQ(k->insert(b, play_pair(key, key)), 1);
		large.count[key] = 1;
		large.value[key] = key;
	}
	CHECK_EQ(k->insert(a, play_pair(70, 7)), 1);
	small.count[70] = 1;
	small.value[70] = 7;
	blocks = play_blocks();
	errno = 0;
	k->assign(a, b);
	CHECK_EQ(errno, ENOMEM);
	play_check(k, a, &small);
	errno = 0;
	k->swap(b, a);
	CHECK_EQ(errno, ENOMEM);
	play_check(k, a, &small);
	play_check(k, b, &large);
	CHECK_EQ(play_blocks(), blocks);
	k->destroy(a);
	k->destroy(b);
}

TEST(table__all_or_nothing)
{
	struct fake_acp f = { .ranks = 2, .heap_sizes = { 0, 4096 } };

	fake_run(&f, all_or_nothing, (void *)&play_set);
	fake_run(&f, all_or_nothing, (void *)&play_multiset);
	fake_run(&f, all_or_nothing, (void *)&play_map);
}

/* ---- No memory for registration ---- */

static bool scarce;
static unsigned int refusals;

void *__real_libacp_scratch_get(size_t size, acp_ga_t *ga);

void *__wrap_libacp_scratch_get(size_t size, acp_ga_t *ga)
{
	if (!scarce || fake_random() % 6)
		return __real_libacp_scratch_get(size, ga);
	refusals++;
	return NULL;
}

/*
 * Make a call whose registrations may fail: it is executed completely or not at all. Returns
 * whether it was.
 */
static bool call_scarcely(const struct play_kind *k, struct play_table t, unsigned int key,
			  bool insert)
{
	bool done;

	scarce = true;
	if (insert)
		done = k->insert(t, play_pair(key, key)) == 1;
	else
		k->remove_all(t, play_key(key));
	scarce = false;
	if (!insert)
		done = errno == 0;
	CHECK(errno == (done ? 0 : ENOMEM) || (insert && k->values && !errno));
	errno = 0;
	return done;
}

static void be_refused(void *arg)
{
	const struct play_kind *k = arg;
	const int ranks[] = { 1, 0 };
	struct play_model m = { .count = { 0 } };
	unsigned int i, key, lost = 0, before;
	struct play_table t;
	bool insert;

	if (acp_rank())
		return;
	t = k->create(2, ranks, 8, 1);
	for (i = 0; i < 2000; i++) {
		key = (unsigned int)(fake_random() % KEYS);
		insert = fake_random() % 2;
		before = refusals;
		if (call_scarcely(k, t, key, insert))
			m.count[key] = !insert ? 0 : k->counts ? m.count[key] + 1 : 1;
		m.value[key] = key;
		lost += refusals != before;
	}
	CHECK(lost > 100);
	play_check(k, t, &m);
	k->clear(t);
	k->destroy(t);
	CHECK_EQ(errno, 0);
	/* Freeing needs registered memory too, but then that of the call itself is available. */
	CHECK(play_blocks() <= lost);
}

TEST(table__no_memory_to_register)
{
	struct fake_acp f = { .ranks = 2 };

	fake_run(&f, be_refused, (void *)&play_set);
	fake_run(&f, be_refused, (void *)&play_multiset);
	fake_run(&f, be_refused, (void *)&play_map);
}

/* ---- Many copies ---- */

/* Counts saturate. */
static void double_often(void *arg)
{
	const int ranks[] = { 0 };
	acp_multiset_t set = acp_create_multiset(1, ranks, 1, 0);
	int i;

	(void)arg;
	CHECK_EQ(acp_insert_multiset(set, play_key(1)), 1);
	for (i = 0; i < 63; i++)
		acp_merge_multiset(set, set);
	CHECK_EQ(acp_retrieve_multiset(set, play_key(1)), 1ull << 63);
	acp_merge_multiset(set, set);
	CHECK_EQ(acp_retrieve_multiset(set, play_key(1)), UINT64_MAX);
	CHECK_EQ(acp_insert_multiset(set, play_key(1)), 1);
	CHECK_EQ(acp_retrieve_multiset(set, play_key(1)), UINT64_MAX);
	acp_remove_multiset(set, play_key(1));
	CHECK_EQ(acp_retrieve_multiset(set, play_key(1)), UINT64_MAX - 1);
	acp_remove_all_multiset(set, play_key(1));
	CHECK_EQ(acp_size_multiset(set), 0);
	acp_destroy_multiset(set);
	CHECK_EQ(errno, 0);
}

TEST(multiset__counts_do_not_wrap)
{
	struct fake_acp f = { .ranks = 1 };

	fake_run(&f, double_often, NULL);
}

/* ---- Slow calls ---- */

#define CHAIN	400u

static acp_element_t number_key(uint64_t number)
{
	acp_ga_t ga;

	memcpy(play_area(&ga)->key, &number, sizeof(number));
	return (acp_element_t){ ga + offsetof(struct play_area, key), sizeof(number) };
}

enum { TABLE, REMOVALS, THROUGH };	/* words shared by all ranks */

static uint64_t shared_word(int number)
{
	return __atomic_load_n(fake_word((unsigned int)number), __ATOMIC_ACQUIRE);
}

/* Remove keys continuously, so that no search without lock reaches the end of the chain. */
static void disturb(acp_set_t set)
{
	do {
		CHECK_EQ(acp_insert_set(set, number_key(CHAIN)), 1);
		acp_remove_set(set, number_key(CHAIN));
		__atomic_add_fetch(fake_word(REMOVALS), 1, __ATOMIC_RELEASE);
	} while (!shared_word(THROUGH));
}

static bool disturbed;

int __real_libacp_txlock_enter(struct libacp_txlock *s, acp_ga_t at, acp_ga_t low, uint64_t span,
			       struct libacp_fetch *fetches, unsigned int n);

/* Remove a key between each search without lock and the lock. */
int __wrap_libacp_txlock_enter(struct libacp_txlock *s, acp_ga_t at, acp_ga_t low, uint64_t span,
			       struct libacp_fetch *fetches, unsigned int n)
{
	uint64_t removals = shared_word(REMOVALS);

	while (disturbed && shared_word(REMOVALS) == removals)
		usleep(100);
	return __real_libacp_txlock_enter(s, at, low, span, fetches, n);
}

static void work_slowly(acp_set_t set)
{
	uint64_t i;

	disturbed = true;
	for (i = 0; i < 3; i++) {
		CHECK_EQ(acp_insert_set(set, number_key(2 * CHAIN + i)), 1);
		CHECK_EQ(errno, 0);
		CHECK(acp_find_set(set, number_key(2 * CHAIN + i)).elem != ACP_GA_NULL);
		acp_remove_set(set, number_key(i));
		CHECK_EQ(acp_find_set(set, number_key(i)).elem, ACP_GA_NULL);
	}
	CHECK_EQ(errno, 0);
	disturbed = false;
	__atomic_store_n(fake_word(THROUGH), 1, __ATOMIC_RELEASE);
}

/* A search of the chain takes several times longer than a lease. */
static void be_slow(void *arg)
{
	const int ranks[] = { 0 };
	acp_set_t set;
	uint64_t i;

	(void)arg;
	libacp_txlock_times.lease = 10000000;
	if (acp_rank() == 0) {
		set = acp_create_set(1, ranks, 1, 0);
		for (i = 0; i < CHAIN; i++)
			CHECK_EQ(acp_insert_set(set, number_key(i)), 1);
		*fake_word(TABLE) = set.ga;
	}
	CHECK_EQ(acp_sync(), 0);
	set = (acp_set_t){ *fake_word(TABLE), 1, 1 };
	errno = 0;
	if (acp_rank())
		work_slowly(set);
	else
		disturb(set);
	CHECK_EQ(acp_sync(), 0);
	CHECK_EQ(acp_size_set(set), CHAIN);
}

TEST(table__long_stays_are_renewed)
{
	struct fake_acp f = { .ranks = 2, .delay_us = 20 };

	fake_run(&f, be_slow, NULL);
}

/* ---- Lost members ---- */

/* Keys on a rank that is gone do not count; others can be used, and errno is set. */
static void lose_a_member(void *arg)
{
	const struct play_kind *k = arg;
	const int ranks[] = { 0, 2, 1 };
	unsigned int key, there = 0, gone = 0, walked = 0;
	struct play_table t;
	struct play_it it;
	bool lost[KEYS];

	if (acp_rank() == 2) {
		while (!__atomic_load_n(fake_word(0), __ATOMIC_ACQUIRE))
			libacp_sleep(1000000);
		fake_die_at(0);
	}
	if (acp_rank())
		return;
	t = k->create(3, ranks, 5, 0);
	for (key = 0; key < KEYS; key++) {
		lost[key] = play_rank_of(t, key) == 2;
		if (key < KEYS / 2)
			CHECK_EQ(k->insert(t, play_pair(key, key)), 1);
		there += key < KEYS / 2 && !lost[key];
		gone += lost[key];
	}
	CHECK(gone > 5 && there > 5);
	__atomic_store_n(fake_word(0), 1, __ATOMIC_RELEASE);
	while (acpx_peer_state(2) != ACPX_PEER_DOWN)
		libacp_sleep(1000000);
	for (key = 0; key < KEYS; key++) {
		errno = 0;
		it = k->find(t, play_key(key));
		CHECK_EQ(errno, lost[key] ? EHOSTDOWN : 0);
		CHECK_EQ(it.elem != ACP_GA_NULL, key < KEYS / 2 && !lost[key]);
		if (key < KEYS / 2)
			continue;
		errno = 0;
		CHECK_EQ(k->insert(t, play_pair(key, key)), !lost[key]);
		CHECK_EQ(errno, lost[key] ? EHOSTDOWN : 0);
		there += !lost[key];
	}
	errno = 0;
	CHECK_EQ(k->size(t), there);
	CHECK_EQ(errno, EHOSTDOWN);
	for (it = k->begin(t); it.elem != ACP_GA_NULL; it = k->next(it), walked++)
		CHECK(!lost[play_key_of(k->content(it).first)]);
	CHECK_EQ(walked, there);
	errno = 0;
	k->destroy(t);
	CHECK_EQ(errno, EHOSTDOWN);
	CHECK_EQ(play_blocks(), 0);
}

TEST(A2_table__a_member_is_lost)
{
	struct fake_acp f = { .ranks = 3 };

	fake_run(&f, lose_a_member, (void *)&play_set);
	fake_run(&f, lose_a_member, (void *)&play_map);
}

/* ---- Nodes that cannot be reached temporarily ---- */

#define CUTTER		3	/* rank that disconnects the others, */
#define CUTS		40u	/* number of disconnections */

struct cuts {
	const struct play_kind *kind;
	struct play_table table;
	size_t blocks;
	unsigned int failed, cut_calls;
};

/* True if a call succeeded, or failed for a plausible reason. */
static bool ended_well(struct cuts *c)
{
	if (!errno)
		return true;
	CHECK(errno == EIO || errno == ETIMEDOUT || errno == EHOSTDOWN || errno == ECONNRESET);
	__atomic_add_fetch(&c->failed, 1, __ATOMIC_RELAXED);
	errno = 0;
	return false;
}

enum state { ABSENT, THERE, DOUBTFUL };

/*
 * A call on a key used by this rank only. After a failure it may be executed later: its result is
 * unknown until the end.
 */
static enum state step_own(struct cuts *c, unsigned int key, enum state state)
{
	const struct play_kind *k = c->kind;
	uint64_t what = fake_random() % 3;
	int result = 0;
	uint64_t count;

	if (what == 0)
		result = k->insert(c->table, play_pair(key, key));
	else if (what == 1)
		k->remove_all(c->table, play_key(key));
	if (!ended_well(c))
		return what < 2 ? DOUBTFUL : state;
	if (state != DOUBTFUL && what == 0)
		CHECK_EQ(result, !k->values || state == ABSENT);
	if (state != DOUBTFUL && what < 2)
		state = what == 0 ? THERE : ABSENT;
	count = play_look(k, c->table, key);
	if (ended_well(c) && state != DOUBTFUL)
		CHECK_EQ(count != 0, state == THERE);
	return state;
}

static void cut_and_mend(void)
{
	unsigned int i;
	int rank;

	for (i = 0; i < CUTS; i++) {
		rank = (int)(fake_random() % 3);
		usleep((useconds_t)(fake_random() % 10000));
		fake_cut(rank, true);
		usleep((useconds_t)(fake_random() % 10000));
		fake_cut(rank, false);
	}
	__atomic_store_n(fake_word(0), 1, __ATOMIC_RELEASE);
}

/* When all ranks can be reached again, one insertion and one removal resolve unknown states. */
static void settle_own(struct cuts *c)
{
	unsigned int key;

	for (key = (unsigned int)acp_rank(); key < KEYS; key += 3) {
		CHECK(c->kind->insert(c->table, play_pair(key, 1)) >= 0);
		CHECK_EQ(errno, 0);
		c->kind->remove_all(c->table, play_key(key));
		CHECK_EQ(errno, 0);
		CHECK_EQ(play_look(c->kind, c->table, key), 0);
	}
}

static void be_cut_off(void *arg)
{
	enum state states[KEYS] = { ABSENT };
	const int ranks[] = { 1, 2 };
	struct cuts *c = arg;
	unsigned int key;

	/*
	 * 5 and 7.5 seconds of this clock: a rank that was disconnected with a lock makes others
	 * wait.
	 */
	libacp_txlock_times.forsaken = 100000000000;
	libacp_txlock_times.patience = 150000000000;
	if (acp_rank() == 0) {
		c->blocks = play_blocks();
		c->table = c->kind->create(2, ranks, 8, 0);
		CHECK(c->table.ga != ACP_GA_NULL);
	}
	CHECK_EQ(acp_sync(), 0);
	errno = 0;
	if (acp_rank() == CUTTER)
		cut_and_mend();
	while (acp_rank() != CUTTER && !__atomic_load_n(fake_word(0), __ATOMIC_ACQUIRE)) {
		key = (unsigned int)(fake_random() % (KEYS / 3)) * 3 + (unsigned int)acp_rank();
		states[key] = step_own(c, key, states[key]);
		__atomic_add_fetch(&c->cut_calls, 1, __ATOMIC_RELAXED);
	}
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() != CUTTER)
		settle_own(c);
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank())
		return;
	CHECK_EQ(play_check_layout(c->table), 0);
	c->kind->destroy(c->table);
	CHECK_EQ(errno, 0);
	CHECK(play_blocks() - c->blocks <= c->failed);
}

static void run_cuts(const struct play_kind *kind)
{
	struct fake_acp f = { .ranks = 4, .speed = 20, .errors_return = true };
	struct cuts *c;
	unsigned int round;

	for (round = 0; round < LONG; round++) {
		c = play_shared(sizeof(*c));
		c->kind = kind;
		f.seed = 0;
		fake_run(&f, be_cut_off, c);
		CHECK(c->failed > 0 && c->failed < c->cut_calls);
		munmap(c, sizeof(*c));
	}
}

TEST(A2_set__members_are_cut_off)
{
	run_cuts(&play_set);
}

TEST(A2_multiset__members_are_cut_off)
{
	run_cuts(&play_multiset);
}

TEST(A2_map__members_are_cut_off)
{
	run_cuts(&play_map);
}

TEST_MAIN
