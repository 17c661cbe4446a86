/* SPDX-License-Identifier: MIT */
/*
 * Sets, multisets and maps for tests: one set of functions for all three, keys and values that are
 * numbers to the test, a simple model, and checks of the words in memory.
 */
#ifndef TABLE_PLAY_H
#define TABLE_PLAY_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acp.h"
#include "fake_acp.h"
#include "middle/hash.h"
#include "core/internal.h"
#include "test.h"

#define KEYS		96u	/* keys are the numbers 0 .. KEYS - 1 */
#define KEY_MAX	160u	/* bytes */
#define VALUE_MAX	300u
#define PLAY_RANKS	8
#define LONG		(getenv("ACP_TEST_LONG") ? 50u : 1u)

/* ---- Sets, multisets and maps ---- */

/* Like acp_set_t etc., and their iterators. */
struct play_table {
	acp_ga_t ga;
	uint64_t num_ranks, num_slots;
};

struct play_it {
	struct play_table table;
	int rank, slot;
	acp_ga_t elem;
};

typedef void (*play_void)(struct play_table t);
typedef size_t (*play_size)(struct play_table t);
typedef int (*play_empty)(struct play_table t);
typedef void (*play_two)(struct play_table a, struct play_table b);
typedef struct play_it (*play_start)(struct play_table t);
typedef void (*play_remove)(struct play_table t, acp_element_t key);

struct play_kind {
	const char *name;
	bool counts, values;
	struct play_table (*create)(int num_ranks, const int *ranks, int num_slots, int rank);
	play_void destroy, clear, clear_local;
	play_size size, size_local;
	play_empty empty, empty_local;
	play_two assign, assign_local, merge, merge_local, move, move_local, swap;
	play_start begin, begin_local, end, end_local;
	struct play_it (*next)(struct play_it it);
	struct play_it (*find)(struct play_table t, acp_element_t key);
	acp_pair_t (*content)(struct play_it it);
	int (*insert)(struct play_table t, acp_pair_t pair);
	play_remove remove, remove_all;
};

#define X	set
#include "kind_play.h"
#undef X
#define X	multiset
#include "kind_play.h"
#undef X
#define X	map
#include "kind_play.h"
#undef X

static inline int set_insert(struct play_table t, acp_pair_t pair)
{
	return acp_insert_set(set_to(t), pair.first);
}

static inline int multiset_insert(struct play_table t, acp_pair_t pair)
{
	return acp_insert_multiset(multiset_to(t), pair.first);
}

static inline int map_insert(struct play_table t, acp_pair_t pair)
{
	return acp_insert_map(map_to(t), pair);
}

static inline acp_pair_t set_content(struct play_it it)
{
	return (acp_pair_t){ acp_dereference_set_it(set_it(it)), { ACP_GA_NULL, 0 } };
}

static inline acp_pair_t multiset_content(struct play_it it)
{
	return (acp_pair_t){ acp_dereference_multiset_it(multiset_it(it)), { ACP_GA_NULL, 0 } };
}

static inline acp_pair_t map_content(struct play_it it)
{
	return acp_dereference_map_it(map_it(it));
}

static inline void multiset_remove_all(struct play_table t, acp_element_t key)
{
	acp_remove_all_multiset(multiset_to(t), key);
}

static const struct play_kind play_set = {
	"set", false, false, set_create, set_destroy, set_clear, set_clear_local, set_size,
	set_size_local, set_empty, set_empty_local, set_assign, set_assign_local, set_merge,
	set_merge_local, set_move, set_move_local, set_swap, set_begin, set_begin_local, set_end,
	set_end_local, set_next, set_find, set_content, set_insert, set_remove, set_remove,
};

static const struct play_kind play_multiset = {
	"multiset", true, false, multiset_create, multiset_destroy, multiset_clear,
	multiset_clear_local, multiset_size, multiset_size_local, multiset_empty,
	multiset_empty_local, multiset_assign, multiset_assign_local, multiset_merge,
	multiset_merge_local, multiset_move, multiset_move_local, multiset_swap, multiset_begin,
	multiset_begin_local, multiset_end, multiset_end_local, multiset_next, multiset_find,
	multiset_content, multiset_insert, multiset_remove, multiset_remove_all,
};

static const struct play_kind play_map = {
	"map", false, true, map_create, map_destroy, map_clear, map_clear_local, map_size,
	map_size_local, map_empty, map_empty_local, map_assign, map_assign_local, map_merge,
	map_merge_local, map_move, map_move_local, map_swap, map_begin, map_begin_local, map_end,
	map_end_local, map_next, map_find, map_content, map_insert, map_remove, map_remove,
};

/* ---- Keys and values ---- */

/*
 * Return the bytes of a key: short ones, some as long as what is read of an element at once; long
 * ones with a common prefix.
 */
static inline size_t key_bytes(unsigned int key, char *bytes)
{
	static const size_t sizes[] = { 1, 3, 8, 20, 24, 25, 31, 32, 33, 40, 100, KEY_MAX };
	size_t size = sizes[key % 12], i;

	for (i = 0; i + 1 < size; i++)
		bytes[i] = size > 40 && i < 70 ? 'x' : (char)(key * 7 + i);
	bytes[i] = (char)key;
	return size;
}

static inline size_t value_bytes(unsigned int value, char *bytes)
{
	size_t size = value * 37 % (VALUE_MAX + 1), i;

	for (i = 0; i < size; i++)
		bytes[i] = (char)(value + i * 3);
	if (size >= 4)
		memcpy(bytes, &value, 4);
	return size;
}

/* Layout of the own starter memory; each thread of a rank has its own. */
struct play_area {
	char key[KEY_MAX + 8];
	char value[VALUE_MAX + 8];
	char back[VALUE_MAX + 8];
};

static _Thread_local int play_thread;

static inline struct play_area *play_area(acp_ga_t *ga)
{
	size_t at = (size_t)play_thread * sizeof(struct play_area);

	*ga = acp_query_starter_ga(acp_rank()) + at;
	return (struct play_area *)(void *)((char *)acp_query_address(*ga) + 0);
}

static inline acp_pair_t play_pair(unsigned int key, unsigned int value)
{
	acp_ga_t ga;
	struct play_area *area = play_area(&ga);

	return (acp_pair_t){
		{ ga + offsetof(struct play_area, key), key_bytes(key, area->key) },
		{ ga + offsetof(struct play_area, value), value_bytes(value, area->value) },
	};
}

static inline acp_element_t play_key(unsigned int key)
{
	return play_pair(key, 0).first;
}

/* Read an element; at most VALUE_MAX bytes. */
static inline const char *play_fetch(acp_element_t e)
{
	acp_ga_t ga;
	struct play_area *area = play_area(&ga);

	CHECK(e.size <= VALUE_MAX);
	CHECK_EQ(libacp_finish(acp_copy(ga + offsetof(struct play_area, back), e.ga, e.size,
					ACP_HANDLE_NULL)), 0);
	return area->back;
}

/* Return the number of a key. */
static inline unsigned int play_key_of(acp_element_t e)
{
	char bytes[KEY_MAX];
	const char *there;
	unsigned int key;

	CHECK(e.size > 0 && e.size <= KEY_MAX);
	there = play_fetch(e);
	key = (unsigned char)there[e.size - 1];
	CHECK(key < KEYS);
	CHECK_EQ(key_bytes(key, bytes), e.size);
	CHECK(!memcmp(there, bytes, e.size));
	return key;
}

static inline bool play_same_value(acp_element_t e, unsigned int value)
{
	char bytes[VALUE_MAX];

	return value_bytes(value, bytes) == e.size && !memcmp(play_fetch(e), bytes, e.size);
}

/* Return the number of copies of a key, its value + 1, or 1; 0 if it is not found. */
static inline uint64_t play_look(const struct play_kind *k, struct play_table t, unsigned int key)
{
	struct play_it it;

	if (k->counts)
		return acp_retrieve_multiset(multiset_to(t), play_key(key));
	it = k->find(t, play_key(key));
	return it.elem != ACP_GA_NULL;
}

/* ---- The model ---- */

struct play_model {
	uint64_t count[KEYS];		/* 0: not present; sets and maps: 1 */
	unsigned int value[KEYS];
};

/* Return the place of a key, as specified by API and layout. */
static inline uint64_t play_slot(struct play_table t, unsigned int key, uint64_t *member)
{
	char bytes[KEY_MAX];
	uint64_t hash = libacp_hash(LIBACP_HASH_KEY, bytes, key_bytes(key, bytes));

	*member = hash / t.num_slots % t.num_ranks;
	return hash % t.num_slots;
}

static inline uint64_t play_word(acp_ga_t ga)
{
	uint64_t word;

	memcpy(&word, play_fetch((acp_element_t){ ga, 8 }), 8);
	return word;
}

/* Return the rank of a key. */
static inline int play_rank_of(struct play_table t, unsigned int key)
{
	uint64_t member;

	play_slot(t, key, &member);
	return acp_query_rank(play_word(t.ga + 8 * member));
}

static inline size_t model_size(const struct play_model *m)
{
	size_t size = 0;
	unsigned int i;

	for (i = 0; i < KEYS; i++)
		size += m->count[i] != 0;
	return size;
}

/* ---- Checks of memory ---- */

/* Check the words of a slot and its chain. Returns the number of elements. */
static inline uint64_t play_check_slot(acp_ga_t slot)
{
	acp_ga_t elem = play_word(slot + 8), before = ACP_GA_NULL;
	uint64_t number = 0;

	for (; elem != ACP_GA_NULL; elem = play_word(elem)) {
		CHECK_EQ(elem % 8, 0);
		CHECK_EQ(play_word(elem + 8), before);
		before = elem;
		CHECK(++number < 100000);
	}
	CHECK_EQ(play_word(slot), 0);
	CHECK_EQ(play_word(slot + 16), before);
	CHECK_EQ(play_word(slot + 24), number);
	return number;
}

/* Check the whole table while it is not changed. */
static inline uint64_t play_check_layout(struct play_table t)
{
	uint64_t member, slot, number = 0;

	for (member = 0; member < t.num_ranks; member++)
		for (slot = 0; slot < t.num_slots; slot++)
			number += play_check_slot(play_word(t.ga + 8 * member) + 32 * slot);
	return number;
}

/* Return the number of blocks in all heaps. */
static inline size_t play_blocks(void)
{
	struct acpx_heap_stats stats;
	size_t blocks = 0;
	int r;

	for (r = 0; r < acp_procs(); r++) {
		if (acpx_peer_state(r) == ACPX_PEER_DOWN)
			continue;
		CHECK_EQ(acpx_heap_stats(r, &stats), 0);
		blocks += stats.blocks;
	}
	return blocks;
}

/* Check that everything allocated belongs to the table: directory, slots, elements. */
static inline void play_check_blocks(struct play_table t, size_t before)
{
	CHECK_EQ(play_blocks(), before + 1 + t.num_ranks + play_check_layout(t));
}

/*
 * Check that an iteration finds each key of the model once; on "rank" only those there (-1: all).
 */
static inline void play_check_walk(const struct play_kind *k, struct play_table t,
				   const struct play_model *m, int rank)
{
	struct play_it it, end = rank < 0 ? k->end(t) : k->end_local(t);
	bool seen[KEYS] = { false };
	acp_pair_t pair;
	unsigned int key;
	size_t number = 0;

	for (it = rank < 0 ? k->begin(t) : k->begin_local(t);
	     it.rank != end.rank || it.slot != end.slot || it.elem != end.elem; it = k->next(it)) {
		pair = k->content(it);
		key = play_key_of(pair.first);
		CHECK(m->count[key] && !seen[key]);
		seen[key] = true;
		number++;
		if (k->values)
			CHECK(play_same_value(pair.second, m->value[key]));
		if (rank >= 0)
			CHECK_EQ(play_rank_of(t, key), rank);
	}
	CHECK_EQ(number, rank < 0 ? k->size(t) : k->size_local(t));
	CHECK_EQ(number == 0, rank < 0 ? k->empty(t) : k->empty_local(t));
	for (key = 0; key < KEYS; key++)
		if (rank < 0 || play_rank_of(t, key) == rank)
			CHECK_EQ(seen[key], m->count[key] != 0);
}

static inline void play_check(const struct play_kind *k, struct play_table t,
			      const struct play_model *m)
{
	unsigned int key;

	play_check_walk(k, t, m, -1);
	play_check_walk(k, t, m, acp_rank());
	CHECK_EQ(play_check_layout(t), model_size(m));
	for (key = 0; k->counts && key < KEYS; key++)
		CHECK_EQ(play_look(k, t, key), m->count[key]);
}

/* Return memory shared by all ranks of a test. */
static inline void *play_shared(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED);
	return memory;
}

#endif /* TABLE_PLAY_H */
