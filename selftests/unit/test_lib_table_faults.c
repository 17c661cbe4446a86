// SPDX-License-Identifier: MIT
/* Sets, multisets and maps where memory, time or members are wanting. */
#include "table_play.h"
#include "section.h"

/* ---- No memory ---- */

/* A full heap: what does not fit is not there, and all else as it was. */
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

/* An assignment or an exchange that does not fit changes nothing. */
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

/* ---- Many copies ---- */

/* A count that would be too large stays the largest there is, instead of none. */
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

	memcpy(play_desk(&ga)->key, &number, sizeof(number));
	return (acp_element_t){ ga + offsetof(struct play_desk, key), sizeof(number) };
}

enum { TABLE, REMOVALS, THROUGH };	/* words for all ranks */

static uint64_t shared_word(int number)
{
	return __atomic_load_n(fake_word((unsigned int)number), __ATOMIC_ACQUIRE);
}

/* Removals all the time: nobody gets to the end of the chain without the lock. */
static void disturb(acp_set_t set)
{
	do {
		CHECK_EQ(acp_insert_set(set, number_key(CHAIN)), 1);
		acp_remove_set(set, number_key(CHAIN));
		__atomic_add_fetch(fake_word(REMOVALS), 1, __ATOMIC_RELEASE);
	} while (!shared_word(THROUGH));
}

static bool disturbed;

int __real_libacp_section_enter(struct libacp_section *s, acp_ga_t at, acp_ga_t low, uint64_t span,
				struct libacp_fetch *fetches, unsigned int n);

/* Something is removed each time between a look without the lock and the lock. */
int __wrap_libacp_section_enter(struct libacp_section *s, acp_ga_t at, acp_ga_t low, uint64_t span,
				struct libacp_fetch *fetches, unsigned int n)
{
	uint64_t removals = shared_word(REMOVALS);

	while (disturbed && shared_word(REMOVALS) == removals)
		usleep(100);
	return __real_libacp_section_enter(s, at, low, span, fetches, n);
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

/* To look through the chain takes several times as long as a stay may last. */
static void be_slow(void *arg)
{
	const int ranks[] = { 0 };
	acp_set_t set;
	uint64_t i;

	(void)arg;
	libacp_section_times.lease = 10000000;
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

/* What is on a rank that is gone counts as nothing; the rest can be used, and errno says so. */
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

TEST_MAIN
