// SPDX-License-Identifier: MIT
/*
 * Common properties of sets, multisets and maps: the hash, the layout in memory, round trips,
 * invalid arguments, and iterators.
 */
#include "table_play.h"
#include "middle/scratch.h"

/* ---- The hash ---- */

/* Appendix A of the paper: key 00 .. 0f, messages of 0 .. n - 1 bytes 00 01 02 ... */
TEST(hash__known_vectors)
{
	static const struct {
		size_t size;
		unsigned char hash[8];
	} known[] = {
		{ 0, { 0x31, 0x0e, 0x0e, 0xdd, 0x47, 0xdb, 0x6f, 0x72 } },
		{ 1, { 0xfd, 0x67, 0xdc, 0x93, 0xc5, 0x39, 0xf8, 0x74 } },
		{ 2, { 0x5a, 0x4f, 0xa9, 0xd9, 0x09, 0x80, 0x6c, 0x0d } },
		{ 7, { 0x37, 0xd1, 0x01, 0x8b, 0xf5, 0x00, 0x02, 0xab } },
		{ 8, { 0x62, 0x24, 0x93, 0x9a, 0x79, 0xf5, 0xf5, 0x93 } },
		{ 15, { 0xe5, 0x45, 0xbe, 0x49, 0x61, 0xca, 0x29, 0xa1 } },
		{ 63, { 0x72, 0x45, 0x06, 0xeb, 0x4c, 0x32, 0x8a, 0x95 } },
	};
	const struct libacp_hash_key key = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 };
	unsigned char message[64];
	unsigned int i;

	for (i = 0; i < sizeof(message); i++)
		message[i] = (unsigned char)i;
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		CHECK_EQ(libacp_hash(key, message, known[i].size),
			 libacp_hash_load(known[i].hash, 8));
}

/* ---- Scratch memory ---- */

static void use_scratch(void *arg)
{
	char *blocks[8];
	acp_ga_t ga;
	unsigned int i, round;

	(void)arg;
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 8; i++) {
			blocks[i] = libacp_scratch_get(100 << 2 * i, &ga);
			CHECK(blocks[i] && (uintptr_t)blocks[i] % 64 == 0);
			CHECK_EQ(acp_query_address(ga), blocks[i]);
			memset(blocks[i], 'x', 100 << 2 * i);
		}
		for (i = 0; i < 8; i++)
			libacp_scratch_put(blocks[i]);
		CHECK(fake_regions() >= 5 && fake_regions() <= 8);
	}
	libacp_scratch_put(NULL);
	CHECK(!libacp_scratch_get(SIZE_MAX, &ga));
	CHECK(!libacp_scratch_get(SIZE_MAX / 2, &ga));
	libacp_scratch_close();
	CHECK_EQ(fake_regions(), 0);
	blocks[0] = libacp_scratch_get(1, &ga);
	libacp_scratch_close();
	libacp_scratch_put(blocks[0]);
}

TEST(scratch__blocks_come_back)
{
	struct fake_acp f = { .ranks = 1 };

	fake_run(&f, use_scratch, NULL);
}

/* ---- Layout ---- */

static uint64_t word_of(acp_ga_t ga, unsigned int number)
{
	return play_word(ga + 8 * number);
}

static void look_at_words(void *arg)
{
	const int ranks[] = { 1, 0, 1 };
	acp_ga_t slots, elem;
	acp_set_t set;
	acp_multiset_t multiset;
	acp_map_t map;
	acp_pair_t pair;

	(void)arg;
	if (acp_rank())
		return;
	set = acp_create_set(3, ranks, 1, 1);
	CHECK_EQ(set.num_ranks, 3);
	CHECK_EQ(set.num_slots, 1);
	CHECK_EQ(acp_query_rank(set.ga), 1);
	CHECK_EQ(acp_query_rank(word_of(set.ga, 0)), 1);
	CHECK_EQ(acp_query_rank(word_of(set.ga, 1)), 0);
	CHECK_EQ(acp_query_rank(word_of(set.ga, 2)), 1);
	acp_destroy_set(set);

	set = acp_create_set(1, ranks, 1, 0);
	CHECK_EQ(acp_insert_set(set, play_key(4)), 1);
	slots = word_of(set.ga, 0);
	elem = word_of(slots, 1);
	CHECK_EQ(word_of(slots, 0), 0);
	CHECK_EQ(word_of(slots, 2), elem);
	CHECK_EQ(word_of(slots, 3), 1);
	CHECK_EQ(acp_query_rank(elem), 1);
	CHECK_EQ(word_of(elem, 0), ACP_GA_NULL);
	CHECK_EQ(word_of(elem, 1), ACP_GA_NULL);
	CHECK_EQ(word_of(elem, 2), play_key(4).size);
	CHECK_EQ(play_key_of((acp_element_t){ elem + 24, play_key(4).size }), 4);
	acp_destroy_set(set);

	multiset = acp_create_multiset(1, ranks, 1, 0);
	CHECK_EQ(acp_insert_multiset(multiset, play_key(9)), 1);
	CHECK_EQ(acp_insert_multiset(multiset, play_key(9)), 1);
	elem = word_of(word_of(multiset.ga, 0), 1);
	CHECK_EQ(word_of(elem, 2), 2);
	CHECK_EQ(word_of(elem, 3), play_key(9).size);
	CHECK_EQ(play_key_of((acp_element_t){ elem + 32, play_key(9).size }), 9);
	acp_destroy_multiset(multiset);

	map = acp_create_map(1, ranks, 1, 0);
	pair = play_pair(11, 5);
	CHECK_EQ(acp_insert_map(map, pair), 1);
	elem = word_of(word_of(map.ga, 0), 1);
	CHECK_EQ(word_of(elem, 2), 8 + pair.first.size + pair.second.size);
	CHECK_EQ(word_of(elem, 3), pair.first.size);
	CHECK_EQ(play_key_of((acp_element_t){ elem + 32, pair.first.size }), 11);
	CHECK(play_same_value((acp_element_t){ elem + 32 + pair.first.size, pair.second.size }, 5));
	acp_destroy_map(map);
	CHECK_EQ(play_blocks(), 0);
}

TEST(table__words_as_in_acp_3)
{
	struct fake_acp f = { .ranks = 2 };

	fake_run(&f, look_at_words, NULL);
}

/* ---- Round trips ---- */

static uint64_t trips_since(uint64_t *begin)
{
	uint64_t now = fake_trips(), trips = now - *begin;

	*begin = now;
	return trips;
}

/*
 * Everything is on another node. The first access to a member takes one round trip for the
 * directory; a search takes one for the slot, and one for each element up to the key.
 */
static void count_trips(void *arg)
{
	const int ranks[] = { 1 };
	struct play_table t;
	uint64_t begin;

	(void)arg;
	if (acp_rank())
		return;
	t = map_create(1, ranks, 4096, 1);
	begin = fake_trips();
	CHECK_EQ(map_find(t, play_key(0)).rank, 1);
	CHECK_EQ(trips_since(&begin), 2);	/* directory, slot */
	CHECK_EQ(map_find(t, play_key(0)).rank, 1);
	CHECK_EQ(trips_since(&begin), 1);	/* slot */
	CHECK_EQ(map_insert(t, play_pair(0, 1)), 1);
	CHECK_EQ(trips_since(&begin), 5);	/* slot; allocation: 2; lock, store */
	CHECK_EQ(map_find(t, play_key(0)).rank, 0);
	CHECK_EQ(trips_since(&begin), 2);	/* slot, element */
	CHECK_EQ(map_insert(t, play_pair(0, 2)), 0);
	CHECK_EQ(trips_since(&begin), 2);
	map_remove(t, play_key(0));
	CHECK_EQ(trips_since(&begin), 6);	/* slot, element; lock, store; free: 2 */
	map_remove(t, play_key(0));
	CHECK_EQ(trips_since(&begin), 1);
	map_destroy(t);
	CHECK_EQ(errno, 0);
}

TEST(table__round_trips)
{
	struct fake_acp f = { .ranks = 2 };

	fake_run(&f, count_trips, NULL);
}

/*
 * Another table replaces one in memory, with its members exchanged: cached addresses are verified.
 */
static void come_again(void *arg)
{
	const int ranks[] = { 0, 1 };
	struct play_model m = { .count = { 0 } };
	struct play_table t;
	uint64_t *directory;
	unsigned int key;

	(void)arg;
	if (acp_rank())
		return;
	t = set_create(2, ranks, 8, 0);
	for (key = 0; key < KEYS; key++)
		CHECK_EQ(set_find(t, play_key(key)).elem, ACP_GA_NULL);
	directory = acp_query_address(t.ga);
	directory[0] ^= directory[1];
	directory[1] ^= directory[0];
	directory[0] ^= directory[1];
	for (key = 0; key < KEYS; key++) {
		CHECK_EQ(set_insert(t, play_pair(key, 0)), 1);
		m.count[key] = 1;
	}
	play_check(&play_set, t, &m);
	set_destroy(t);
	CHECK_EQ(play_blocks(), 0);
}

TEST(table__comes_again)
{
	struct fake_acp f = { .ranks = 2 };

	fake_run(&f, come_again, NULL);
}

/* A rank that can access everything directly needs no other accesses. */
static void count_local(void *arg)
{
	const int ranks[] = { 0, 1 };
	const struct play_kind *k = arg;
	struct play_table t;
	unsigned int key;

	if (acp_rank())
		return;
	t = k->create(2, ranks, 8, 1);
	for (key = 0; key < KEYS; key++) {
		CHECK_EQ(k->insert(t, play_pair(key, key)), 1);
		CHECK(k->find(t, play_key(key)).elem != ACP_GA_NULL);
		k->remove(t, play_key(key));
	}
	k->destroy(t);
	CHECK_EQ(fake_remote_accesses(), 0);
	CHECK_EQ(fake_trips(), 0);
}

TEST(table__local_is_local)
{
	struct fake_acp f = { .ranks = 2, .nodes = 1 };

	fake_run(&f, count_local, (void *)&play_set);
	fake_run(&f, count_local, (void *)&play_map);
}

/* ---- Long values ---- */

#define LONG_VALUE	200001

static char longest[2][204800] __attribute__((aligned(4096)));

static void check_long_value(acp_map_t map, acp_ga_t back, size_t room)
{
	acp_pair_t pair = play_pair(5, 0);
	size_t size = room < LONG_VALUE ? room : LONG_VALUE;

	pair.second = (acp_element_t){ back, room };
	memset(longest[1], '?', sizeof(longest[1]));
	CHECK_EQ(acp_retrieve_map(map, pair), size);
	CHECK(!memcmp(longest[0], longest[1], size));
	CHECK_EQ(longest[1][size], '?');
}

static void put_long_values(void *arg)
{
	const int zero[] = { 0 }, one[] = { 1 };
	acp_map_t a, b;
	acp_atkey_t key;
	acp_pair_t pair;
	acp_ga_t ga;
	size_t i;

	(void)arg;
	if (acp_rank())
		return;
	key = acp_register_memory(longest, sizeof(longest), 0);
	ga = acp_query_ga(key, longest);
	for (i = 0; i < sizeof(longest[0]); i++)
		longest[0][i] = (char)(i * 13 + i / 1000);
	a = acp_create_map(1, one, 2, 0);
	b = acp_create_map(1, zero, 3, 1);
	pair = play_pair(5, 0);
	pair.second = (acp_element_t){ ga, LONG_VALUE };
	CHECK_EQ(acp_insert_map(a, pair), 1);
	CHECK_EQ(acp_insert_map(a, pair), 0);
	check_long_value(a, ga + sizeof(longest[0]), LONG_VALUE);
	check_long_value(a, ga + sizeof(longest[0]), 5000);
	acp_merge_map(b, a);
	check_long_value(b, ga + sizeof(longest[0]), LONG_VALUE + 1);
	acp_swap_map(a, b);
	check_long_value(a, ga + sizeof(longest[0]), LONG_VALUE);
	acp_destroy_map(a);
	acp_destroy_map(b);
	pair.second.size = sizeof(longest) + 1;
	a = acp_create_map(1, one, 2, 0);
	CHECK_EQ(acp_insert_map(a, pair), 0);
	CHECK_EQ(errno, EFAULT);
	pair.second.size = 20000000;
	CHECK_EQ(acp_insert_map(a, pair), 0);
	CHECK_EQ(errno, ENOMEM);
	acp_destroy_map(a);
	acp_unregister_memory(key);
	CHECK_EQ(play_blocks(), 0);
}

TEST(table__long_values)
{
	struct fake_acp f = { .ranks = 2 };

	fake_run(&f, put_long_values, NULL);
}

/* ---- Invalid arguments ---- */

static void refuse_creation(const struct play_kind *k, int n, const int *ranks, int slots, int rank)
{
	errno = 0;
	CHECK_EQ(k->create(n, ranks, slots, rank).ga, ACP_GA_NULL);
	CHECK_EQ(errno, EINVAL);
}

static void call_nothing(const struct play_kind *k, struct play_table t)
{
	const struct play_it nowhere = { t, 0, 0, ACP_GA_NULL };

	CHECK_EQ(k->insert(t, play_pair(1, 1)), 0);
	CHECK_EQ(k->find(t, play_key(1)).elem, ACP_GA_NULL);
	k->remove(t, play_key(1));
	k->remove_all(t, play_key(1));
	CHECK_EQ(k->size(t) + k->size_local(t), 0);
	CHECK_EQ(k->empty(t), 1);
	CHECK_EQ(k->begin(t).elem, ACP_GA_NULL);
	CHECK_EQ(k->begin_local(t).elem, ACP_GA_NULL);
	CHECK_EQ(k->next(nowhere).elem, ACP_GA_NULL);
	CHECK_EQ(k->content(nowhere).first.ga, ACP_GA_NULL);
	k->clear(t);
	k->clear_local(t);
	k->assign(t, t);
	k->merge(t, t);
	k->move(t, t);
	k->swap(t, t);
	k->destroy(t);
}

static void call_nonsense(void *arg)
{
	const struct play_kind *k = arg;
	const int ranks[] = { 0, 1 }, bad[] = { 0, 2 };
	const acp_element_t empty = { acp_query_starter_ga(0), 0 }, nowhere = { 1, 8 };
	const acp_element_t huge = { acp_query_starter_ga(0), SIZE_MAX };
	struct play_table t;
	acp_pair_t pair;

	if (acp_rank())
		return;
	refuse_creation(k, 0, ranks, 1, 0);
	refuse_creation(k, -1, ranks, 1, 0);
	refuse_creation(k, 2, NULL, 1, 0);
	refuse_creation(k, 2, bad, 1, 0);
	refuse_creation(k, 2, ranks, 0, 0);
	refuse_creation(k, 2, ranks, -1, 0);
	refuse_creation(k, 2, ranks, 1, 2);
	refuse_creation(k, 2, ranks, 1, -1);
	errno = 0;
	CHECK_EQ(k->create(2, ranks, INT32_MAX, 0).ga, ACP_GA_NULL);
	CHECK_EQ(errno, ENOMEM);
	CHECK_EQ(play_blocks(), 0);
	call_nothing(k, (struct play_table){ ACP_GA_NULL, 1, 1 });
	call_nothing(k, (struct play_table){ 12345, 1, 1 });
	call_nothing(k, (struct play_table){ acp_query_starter_ga(0) + 40000, 0, 1 });
	call_nothing(k, (struct play_table){ acp_query_starter_ga(0) + 40000, 1, 0 });
	call_nothing(k, (struct play_table){ acp_query_starter_ga(0) + 40000, 1, 1 });
	call_nothing(k, (struct play_table){ acp_query_starter_ga(0) + 65528, 4, 1 });

	t = k->create(2, ranks, 4, 1);
	pair = play_pair(1, 1);
	pair.first = empty;
	CHECK_EQ(k->insert(t, pair), 0);
	CHECK_EQ(k->find(t, empty).elem, ACP_GA_NULL);
	pair.first = nowhere;
	CHECK_EQ(k->insert(t, pair), 0);
	CHECK_EQ(k->find(t, nowhere).elem, ACP_GA_NULL);
	pair.first = huge;
	CHECK_EQ(k->insert(t, pair), 0);
	CHECK_EQ(k->find(t, huge).elem, ACP_GA_NULL);
	CHECK_EQ(k->size(t), 0);

	play_check_blocks(t, 0);
	CHECK_EQ(k->insert(t, play_pair(1, 1)), 1);
	k->destroy(t);
	CHECK_EQ(play_blocks(), 0);
	errno = 0;
	call_nothing(k, t);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(play_blocks(), 0);
	CHECK_EQ(acpx_heap_check(0), 0);
	CHECK_EQ(acpx_heap_check(1), 0);
}

TEST(table__nonsense)
{
	struct fake_acp f = { .ranks = 2 };

	fake_run(&f, call_nonsense, (void *)&play_set);
	fake_run(&f, call_nonsense, (void *)&play_multiset);
	fake_run(&f, call_nonsense, (void *)&play_map);
}

/* ---- Iterators ---- */

static void check_nowhere(const struct play_kind *k, struct play_it it, int why)
{
	struct play_it next;

	errno = 0;
	CHECK_EQ(k->content(it).first.ga, ACP_GA_NULL);
	CHECK_EQ(errno, why);
	next = k->next(it);
	CHECK_EQ(next.rank, it.table.num_ranks);
	CHECK_EQ(next.elem, ACP_GA_NULL);
}

static void walk_past_the_end(void *arg)
{
	const struct play_kind *k = arg;
	const int ranks[] = { 0, 1 };
	struct play_table t;
	struct play_it it;
	unsigned int i;

	if (acp_rank())
		return;
	t = k->create(2, ranks, 4, 1);
	check_nowhere(k, k->end(t), EINVAL);
	check_nowhere(k, k->begin(t), EINVAL);
	CHECK_EQ(k->insert(t, play_pair(1, 1)), 1);
	errno = 0;
	it = k->begin(t);
	for (i = 0; i < 5; i++) {
		it = k->next(it);
		CHECK_EQ(it.rank, 2);
		CHECK_EQ(it.elem, ACP_GA_NULL);
	}
	CHECK_EQ(errno, 0);
	it = k->begin(t);
	k->remove(t, play_key(1));
	check_nowhere(k, it, ESTALE);
	it.elem = 3;
	check_nowhere(k, it, ESTALE);
	it.elem = acp_query_starter_ga(0);
	check_nowhere(k, it, EFAULT);
	it.elem = acp_query_starter_ga(0) + 8;
	check_nowhere(k, it, ESTALE);
	it = (struct play_it){ t, INT32_MAX, INT32_MIN, t.ga };
	check_nowhere(k, it, EINVAL);
	it.rank = -1;
	check_nowhere(k, it, EINVAL);
	play_check_blocks(t, 0);
	k->destroy(t);
}

TEST(A2_iterator__past_the_end)
{
	struct fake_acp f = { .ranks = 2 };

	fake_run(&f, walk_past_the_end, (void *)&play_set);
	fake_run(&f, walk_past_the_end, (void *)&play_multiset);
	fake_run(&f, walk_past_the_end, (void *)&play_map);
}

/* The same rank several times, and none on the last one. */
static void walk_locally(void *arg)
{
	const int ranks[] = { 0, 1, 0, 0, 2 };
	struct play_model m = { .count = { 0 } };
	struct play_table t;
	unsigned int key;

	(void)arg;
	if (acp_rank() == 0) {
		t = set_create(5, ranks, 3, 0);
		for (key = 0; key < KEYS; key++)
			if (play_rank_of(t, key) != 2)
				set_insert(t, play_pair(key, 0));
		*fake_word(0) = t.ga;
	}
	CHECK_EQ(acp_sync(), 0);
	t = (struct play_table){ *fake_word(0), 5, 3 };
	for (key = 0; key < KEYS; key++)
		m.count[key] = play_rank_of(t, key) != 2;
	play_check(&play_set, t, &m);
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() == 1)
		acp_clear_local_set(set_to(t));
	CHECK_EQ(acp_sync(), 0);
	for (key = 0; key < KEYS; key++)
		m.count[key] = play_rank_of(t, key) == 0;
	play_check(&play_set, t, &m);
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() == 2)
		set_destroy(t);
}

TEST(A2_iterator__local_parts)
{
	struct fake_acp f = { .ranks = 3, .nodes = 2 };

	fake_run(&f, walk_locally, NULL);
}

/* Keys that are not removed are visited once in each iteration, whatever changes concurrently. */
static void walk_in_traffic(void *arg)
{
	const int ranks[] = { 0, 1 };
	struct play_table t;
	struct play_it it;
	unsigned int key, walk, seen[KEYS];

	(void)arg;
	if (acp_rank() == 0) {
		t = set_create(2, ranks, 7, 0);
		for (key = 0; key < KEYS; key += 2)
			CHECK_EQ(set_insert(t, play_pair(key, 0)), 1);
		*fake_word(0) = t.ga;
	}
	CHECK_EQ(acp_sync(), 0);
	t = (struct play_table){ *fake_word(0), 2, 7 };
	for (walk = 0; acp_rank() && walk < 400; walk++) {
		key = (unsigned int)(fake_random() % (KEYS / 2)) * 2 + 1;
		set_insert(t, play_pair(key, 0));
	}
	for (walk = 0; acp_rank() == 0 && walk < 20; walk++) {
		memset(seen, 0, sizeof(seen));
		for (it = set_begin(t); it.elem != ACP_GA_NULL; it = set_next(it)) {
			key = play_key_of(set_content(it).first);
			CHECK(!seen[key]++);
		}
		for (key = 0; key < KEYS; key += 2)
			CHECK_EQ(seen[key], 1);
	}
	CHECK_EQ(errno, 0);
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() == 0)
		set_destroy(t);
}

TEST(A2_iterator__new_elements_do_not_disturb)
{
	struct fake_acp f = { .ranks = 4 };

	fake_run(&f, walk_in_traffic, NULL);
}

/* Merging in both directions concurrently ends, and nothing is lost. */
static void merge_against_each_other(void *arg)
{
	const int ranks[] = { 0, 1 };
	struct play_table a, b;
	unsigned int key, i;

	(void)arg;
	if (acp_rank() == 0) {
		a = set_create(2, ranks, 3, 0);
		b = set_create(1, ranks, 4, 1);
		for (key = 0; key < KEYS; key++)
			CHECK_EQ(set_insert(key % 2 ? a : b, play_pair(key, 0)), 1);
		*fake_word(0) = a.ga;
		*fake_word(1) = b.ga;
	}
	CHECK_EQ(acp_sync(), 0);
	a = (struct play_table){ *fake_word(0), 2, 3 };
	b = (struct play_table){ *fake_word(1), 1, 4 };
	for (i = 0; i < 3; i++)
		set_merge(acp_rank() ? a : b, acp_rank() ? b : a);
	CHECK_EQ(acp_sync(), 0);
	CHECK_EQ(set_size(a), KEYS);
	CHECK_EQ(set_size(b), KEYS);
	CHECK_EQ(errno, 0);
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank())
		return;
	set_destroy(a);
	set_destroy(b);
	CHECK_EQ(play_blocks(), 0);
}

TEST(A2_table__merges_against_each_other)
{
	struct fake_acp f = { .ranks = 2 };

	fake_run(&f, merge_against_each_other, NULL);
}

TEST_MAIN
