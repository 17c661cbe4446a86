// SPDX-License-Identifier: MIT
/*
 * tables - all ranks use a set, a multiset and a map at once, with separate keys
 *
 *		tables STEPS [DYING]	calls of each rank; a rank that will be killed
 *
 * The dying rank continues until it is killed; the others repeat their steps when they know that it
 * is dead. No part of the tables is on it. At the end the tables contain what the survivors know,
 * and at most what the dead rank knew, and their memory is freed.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "member.h"

#define KEYS		40U	/* of each rank, in each table */
#define SLOTS		16
#define RANKS_MAX	16

struct board {
	acp_set_t set;			/* set by rank 0 */
	acp_multiset_t multiset;
	acp_map_t map;
	uint64_t key, value, back;	/* of a call */
	uint64_t scrap;
	uint64_t keys[3];		/* number of keys of a rank in the tables at the end */
	uint64_t through;		/* rank 0: ranks that have finished */
	uint64_t over;			/* rank 0 has checked everything */
};

#define AT(rank, member)	board_at(rank, offsetof(struct board, member))

static struct board *board;
static acp_set_t set;
static acp_multiset_t multiset;
static acp_map_t map;
static uint64_t counts[3][KEYS], values[KEYS];	/* contents of the tables */
static uint64_t seed;
static int dying = -1;

static acp_element_t key(unsigned int number)
{
	board->key = (uint64_t)(me + 1) << 32 | number;
	return (acp_element_t){ AT(me, key), sizeof(board->key) };
}

/* Check the result of a call: it must not have failed. */
static void check(bool right, const char *what)
{
	if (errno)
		fail("%s: %s", what, strerror(errno));
	if (!right)
		fail("%s: not what was expected", what);
}

static void step_set(unsigned int k, unsigned int what)
{
	if (what == 0) {
		check(acp_insert_set(set, key(k)) == 1, "insert into set");
		counts[0][k] = 1;
	} else if (what == 1) {
		acp_remove_set(set, key(k));
		counts[0][k] = 0;
	}
	check((acp_find_set(set, key(k)).elem != ACP_GA_NULL) == (counts[0][k] != 0), "find");
}

static void step_multiset(unsigned int k, unsigned int what)
{
	if (what == 0) {
		check(acp_insert_multiset(multiset, key(k)) == 1, "insert into multiset");
		counts[1][k]++;
	} else if (what == 1) {
		acp_remove_multiset(multiset, key(k));
		counts[1][k] -= counts[1][k] != 0;
	}
	check(acp_retrieve_multiset(multiset, key(k)) == counts[1][k], "count");
}

static void step_map(unsigned int k, unsigned int what)
{
	acp_pair_t pair = { key(k), { AT(me, value), sizeof(board->value) } };

	if (what == 0) {
		board->value = next_random(&seed);
		check(acp_insert_map(map, pair) == !counts[2][k], "insert into map");
		values[k] = counts[2][k] ? values[k] : board->value;
		counts[2][k] = 1;
	} else if (what == 1) {
		acp_remove_map(map, pair.first);
		counts[2][k] = 0;
	}
	pair.second.ga = AT(me, back);
	check(acp_retrieve_map(map, pair) == (counts[2][k] ? sizeof(board->back) : 0), "size");
	check(!counts[2][k] || board->back == values[k], "value");
}

static void step(void)
{
	unsigned int k = (unsigned int)(next_random(&seed) % KEYS);
	unsigned int what = (unsigned int)(next_random(&seed) % 3);

	errno = 0;
	switch (next_random(&seed) % 3) {
	case 0:
		step_set(k, what);
		break;
	case 1:
		step_multiset(k, what);
		break;
	default:
		step_map(k, what);
	}
}

static void create(void)
{
	int ranks[RANKS_MAX], count = 0, r;

	for (r = 0; r < procs; r++)
		if (r != dying)
			ranks[count++] = r;
	errno = 0;
	board->set = acp_create_set(count, ranks, SLOTS, 0);
	board->multiset = acp_create_multiset(count, ranks, SLOTS, 0);
	board->map = acp_create_map(count, ranks, SLOTS, 0);
	check(board->map.ga != ACP_GA_NULL, "create");
}

static void open_tables(void)
{
	if (me == 0)
		create();
	rendezvous();
	if (me)
		must(acp_copy(AT(me, set), AT(0, set), offsetof(struct board, key),
			      ACP_HANDLE_NULL), "tables");
	set = board->set;
	multiset = board->multiset;
	map = board->map;
	rendezvous();
}

/* Not a barrier: a rank may be missing. */
static void come_through(void)
{
	unsigned int t, k;

	for (t = 0; t < 3; t++)
		for (k = 0; k < KEYS; k++)
			board->keys[t] += counts[t][k] != 0;
	must(acp_add8(AT(me, scrap), AT(0, through), 1, ACP_HANDLE_NULL), "through");
}

static size_t size_of(unsigned int t)
{
	return t == 0 ? acp_size_set(set) : t == 1 ? acp_size_multiset(multiset) :
						     acp_size_map(map);
}

/* Rank 0, when all survivors have finished. */
static void judge(void)
{
	uint64_t keys[3] = { 0 }, size, blocks = 0;
	struct acpx_heap_stats stats;
	unsigned int t;
	int r;

	for (r = 0; r < procs; r++) {
		if (r == dying)
			continue;
		for (t = 0; t < 3; t++) {
			must(acp_copy(AT(0, back), AT(r, keys) + 8 * t, 8, ACP_HANDLE_NULL), "keys");
			keys[t] += board->back;
		}
	}
	errno = 0;
	for (t = 0; t < 3; t++) {
		size = size_of(t);
		check(size >= keys[t] && size <= keys[t] + (dying < 0 ? 0 : KEYS), "size");
	}
	/* The next change completes what the dead rank had begun; here, it changes everything. */
	acp_clear_set(set);
	acp_clear_multiset(multiset);
	acp_clear_map(map);
	check(size_of(0) + size_of(1) + size_of(2) == 0, "clear");
	acp_destroy_set(set);
	acp_destroy_multiset(multiset);
	acp_destroy_map(map);
	check(true, "destroy");
	for (r = 0; r < procs; r++) {
		if (r == dying)
			continue;
		check(acpx_heap_check(r) == 0 && acpx_heap_stats(r, &stats) == 0, "heap");
		blocks += stats.blocks;
	}
	if (blocks > (dying < 0 ? 0 : 1))
		fail("%d blocks are lost", (int)blocks);
}

static void work(unsigned int steps)
{
	unsigned int i;

	for (i = 0; i < steps; i++) {
		step();
		if (i == 0)
			say("working");
	}
	while (me == dying || (dying >= 0 && acpx_peer_state(dying) != ACPX_PEER_DOWN))
		step();
	for (i = 0; dying >= 0 && i < steps; i++)
		step();
}

int main(int argc, char **argv)
{
	const char *text = getenv("ACP_TEST_SEED");
	int r;

	board = member_begin(&argc, &argv, sizeof(*board));
	if (argc < 2 || procs > RANKS_MAX)
		fail("usage: tables STEPS [DYING]");
	dying = argc > 2 ? atoi(argv[2]) : -1;
	seed = text ? strtoull(text, NULL, 0) : now_ms();
	say("seed %llu", (unsigned long long)seed);
	seed = seed * 1000 + (uint64_t)me + 1;
	open_tables();
	work((unsigned int)atoi(argv[1]));
	come_through();
	if (me == 0) {
		wait_for(&board->through, (uint64_t)procs - (dying >= 0), "the others");
		judge();
		for (r = 1; r < procs; r++)
			if (r != dying)
				must(acp_add8(AT(0, scrap), AT(r, over), 1, ACP_HANDLE_NULL),
				     "end");
	} else {
		wait_for(&board->over, 1, "rank 0");
	}
	if ((acp_finalize() == 0) != (dying < 0))
		fail("acp_finalize misses somebody, or does not");
	say("all well");
	return 0;
}
