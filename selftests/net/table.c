// SPDX-License-Identifier: MIT
/* selftest: gate=uml */
/*
 * A map that ranks of several nodes use concurrently, with the kernel module: insertion, search,
 * removal; with packet loss; and while a rank is killed that only uses it, or that holds a part of
 * it.
 */
#include "../dev/isolated.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

#include "members.h"

#define TABLE_RANKS_MAX	8
#define EIGHT_NODES_TEST	(2 * PATIENCE_LONG_TEST)	/* creating them takes a minute */
#define SLOTS		16

/* Amount of work of a test. A slow machine does a fifth of it: a key takes about 20 round trips. */
struct amount {
	int own_keys;			/* per rank */
	int shared_keys;		/* used by all ranks */
	int rounds;			/* from the second one on, freed memory is used again */
};

/* Starter memory: sources and destinations of calls, and the reference of the map. */
struct area {
	uint64_t key, value, back;
	acp_map_t map;
};

/* Shared by all processes of a test, because there are no barriers after a rank has died. */
struct board {
	uint32_t here;			/* number of waiting ranks */
	uint32_t won;			/* shared keys that were inserted */
	uint32_t busy;			/* calls of the rank that will be killed */
	uint32_t gone;			/* it is dead */
};

static struct members m;
static int ranks = 4, per_node = 2;
static struct amount amount = { .own_keys = 60, .shared_keys = 40, .rounds = 2 };
static struct board *board;
static struct area *area;
static acp_ga_t area_ga;
static acp_map_t map;
static int me;

/* ---- Calls ---- */

/* Keys of ranks; for shared ones the rank is TABLE_RANKS_MAX. */
static uint64_t key_of(int rank, int number)
{
	return (uint64_t)(rank + 1) << 32 | (uint64_t)number;
}

static acp_pair_t pair_of(uint64_t key)
{
	acp_pair_t pair = {
		{ area_ga + offsetof(struct area, key), 8 },
		{ area_ga + offsetof(struct area, value), 8 },
	};

	area->key = key;
	area->value = ~key;
	return pair;
}

static int insert(uint64_t key)
{
	errno = 0;
	return acp_insert_map(map, pair_of(key));
}

static void remove_key(uint64_t key)
{
	errno = 0;
	acp_remove_map(map, pair_of(key).first);
}

/* True if the key is found with its value. */
static bool find(uint64_t key)
{
	acp_pair_t pair = pair_of(key);
	size_t size;

	pair.second.ga = area_ga + offsetof(struct area, back);
	area->back = 0;
	errno = 0;
	size = acp_retrieve_map(map, pair);
	CHECK(size == 0 || (size == 8 && area->back == ~key));
	return size == 8;
}

/* ---- Beginning ---- */

static void wait_here(uint32_t count)
{
	__atomic_add_fetch(&board->here, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&board->here, __ATOMIC_SEQ_CST) < count)
		sleep_ms(1);
}

/* Join; rank 0 creates the map on ranks 0 to members - 1. */
static void begin(int members)
{
	const int all[TABLE_RANKS_MAX] = { 0, 1, 2, 3, 4, 5, 6, 7 };

	if (test_short()) {
		amount.own_keys = (amount.own_keys + 4) / 5;
		amount.shared_keys = (amount.shared_keys + 4) / 5;
	}
	setenv("ACP_HEAP_SIZE", "1M", 1);
	setenv("ACP_TIMEOUT", "2000", 1);
	member_init();
	me = acp_rank();
	area_ga = member_at(me, 0);
	area = acp_query_address(area_ga);
	if (me == 0) {
		area->map = acp_create_map(members, all, SLOTS, 0);
		CHECK(area->map.ga != ACP_GA_NULL);
	}
	CHECK_EQ(acp_sync(), 0);
	if (me)
		CHECK_EQ(member_status(acp_copy(area_ga + offsetof(struct area, map),
						member_at(0, offsetof(struct area, map)),
						sizeof(map), ACP_HANDLE_NULL)), 0);
	map = area->map;
	CHECK_EQ(acp_sync(), 0);
}

/* Check the heaps. Returns the number of used blocks in those of ranks 0 to count - 1. */
static uint64_t blocks_of(int count)
{
	struct acpx_heap_stats stats;
	uint64_t blocks = 0;
	int r;

	for (r = 0; r < count; r++) {
		CHECK_EQ(acpx_heap_check(r), 0);
		CHECK_EQ(acpx_heap_stats(r, &stats), 0);
		blocks += stats.blocks;
	}
	return blocks;
}

static void end(void)
{
	CHECK_EQ(acp_sync(), 0);
	if (me == 0) {
		CHECK_EQ(acp_size_map(map), 0);
		acp_destroy_map(map);
		CHECK_EQ(errno, 0);
		CHECK_EQ(blocks_of(ranks), 0);
	}
	CHECK_EQ(acp_finalize(), 0);
}

static void open_board(void)
{
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	CHECK(board != MAP_FAILED);
}

/* ---- Concurrent use ---- */

static size_t walk(void)
{
	acp_map_it_t it;
	size_t number = 0;

	for (it = acp_begin_map(map); it.elem != ACP_GA_NULL; it = acp_increment_map_it(it)) {
		acp_pair_t pair = acp_dereference_map_it(it);

		CHECK_EQ(pair.first.size, 8);
		CHECK_EQ(pair.second.size, 8);
		number++;
	}
	return number;
}

static void put_own(void)
{
	int i;

	for (i = 0; i < amount.own_keys; i++) {
		CHECK_EQ(insert(key_of(me, i)), 1);
		CHECK_EQ(insert(key_of(me, i)), 0);
		CHECK_EQ(errno, 0);
		CHECK(find(key_of(me, i)));
	}
}

/* Each shared key is inserted by exactly one rank. */
static void put_shared(void)
{
	int i;

	for (i = 0; i < amount.shared_keys; i++) {
		if (insert(key_of(TABLE_RANKS_MAX, i)))
			__atomic_add_fetch(&board->won, 1, __ATOMIC_SEQ_CST);
		CHECK_EQ(errno, 0);
		CHECK(find(key_of(TABLE_RANKS_MAX, i)));
	}
}

static void look_for_all(void)
{
	int r, i;

	for (r = 0; r < ranks; r++)
		for (i = 0; i < amount.own_keys; i++)
			CHECK(find(key_of(r, i)));
	for (i = 0; i < amount.shared_keys; i++)
		CHECK(find(key_of(TABLE_RANKS_MAX, i)));
	CHECK_EQ(walk(), ranks * amount.own_keys + amount.shared_keys);
	CHECK_EQ(acp_size_map(map), ranks * amount.own_keys + amount.shared_keys);
}

static void remove_all(void)
{
	int i;

	for (i = 0; i < amount.own_keys; i++) {
		remove_key(key_of(me, i));
		CHECK(!find(key_of(me, i)));
	}
	for (i = 0; i < amount.shared_keys; i++) {
		remove_key(key_of(TABLE_RANKS_MAX, i));
		CHECK(!find(key_of(TABLE_RANKS_MAX, i)));
	}
	CHECK_EQ(errno, 0);
}

static void all_at_once(void)
{
	int round;

	begin(ranks);
	for (round = 1; round <= amount.rounds; round++) {
		put_own();
		put_shared();
		CHECK_EQ(acp_sync(), 0);
		CHECK_EQ(board->won, round * amount.shared_keys);
		look_for_all();
		CHECK_EQ(acp_sync(), 0);
		remove_all();
		CHECK_EQ(acp_sync(), 0);
	}
	end();
}

/* Start all members of a job on "nodes" nodes, with impaired links. */
static void open_all(int nodes, const char *netem)
{
	open_board();
	per_node = ranks / nodes;
	members_open(&m, ranks, per_node);
	if (netem)
		nodes_impair_all(&m.nodes, netem);
}

TEST(A2_insert_find_remove_by_all)
{
	open_all(2, NULL);
	members_start_all(&m, all_at_once);
	members_expect(&m, 0);
}

TEST(A2_insert_find_remove_by_all_with_loss)
{
	open_all(2, "loss 1%");
	members_start_all(&m, all_at_once);
	members_expect(&m, 0);
	CHECK(nodes_counters(&m.nodes, "tx_retransmits") > 0);
}

TEST_LONG(A2_insert_find_remove_by_all_of_eight_nodes_with_loss, EIGHT_NODES_TEST)
{
	ranks = 8;
	amount = (struct amount){ .own_keys = 30, .shared_keys = 20, .rounds = 2 };
	open_all(8, "loss 1%");
	members_start_all(&m, all_at_once);
	members_expect(&m, 0);
	CHECK(nodes_counters(&m.nodes, "tx_retransmits") > 0);
}

/* ---- Deaths ---- */

/* Insert and remove until the end. */
static void use_until_killed(void)
{
	int i;

	for (i = 0;; i = (i + 1) % amount.own_keys) {
		insert(key_of(TABLE_RANKS_MAX, i));
		insert(key_of(me, i));
		__atomic_add_fetch(&board->busy, 1, __ATOMIC_SEQ_CST);
		remove_key(key_of(TABLE_RANKS_MAX, i));
		remove_key(key_of(me, i));
	}
}

static bool is_gone(void)
{
	return __atomic_load_n(&board->gone, __ATOMIC_SEQ_CST);
}

/* The own keys of a rank are correct before, while and after the other one dies. */
static void go_on(bool all_members_live)
{
	int i, after = 0;

	while (after < amount.rounds) {
		after += is_gone();
		for (i = 0; i < amount.own_keys; i++) {
			if (insert(key_of(me, i)))
				CHECK(find(key_of(me, i)) || (errno && !all_members_live));
			else
				CHECK(!all_members_live && errno);
			insert(key_of(TABLE_RANKS_MAX, i));
		}
		for (i = 0; i < amount.own_keys; i++) {
			remove_key(key_of(me, i));
			CHECK(!find(key_of(me, i)));
			remove_key(key_of(TABLE_RANKS_MAX, i));
			CHECK(!all_members_live || !errno);
		}
	}
}

/* The last rank is no member or, in the other test, is one. */
static void user_dies(void)
{
	begin(ranks - 1);
	if (me == ranks - 1)
		use_until_killed();
	go_on(true);
	wait_here((uint32_t)ranks - 1);
	if (me == 0) {
		/* Only the keys it inserted last can be left. */
		CHECK_EQ(walk(), acp_size_map(map));
		CHECK(walk() <= 2);
		acp_clear_map(map);
		CHECK_EQ(walk(), 0);
		acp_destroy_map(map);
		CHECK_EQ(errno, 0);
		/* It may have died with an allocated block. */
		CHECK(blocks_of(ranks - 1) <= 1);
	}
	wait_here(2 * ((uint32_t)ranks - 1));
	CHECK_EQ(acp_finalize(), -1);
}

static void member_dies(void)
{
	begin(ranks);
	if (me == ranks - 1)
		use_until_killed();
	go_on(false);
	wait_here((uint32_t)ranks - 1);
	if (me == 0) {
		CHECK(walk() <= 2);
		CHECK(errno);
	}
	wait_here(2 * ((uint32_t)ranks - 1));
	CHECK_EQ(acp_finalize(), -1);
}

static void kill_last(int nodes, void (*body)(void), uint32_t calls)
{
	int r;

	open_all(nodes, "loss 1%");
	members_start_all(&m, body);
	while (__atomic_load_n(&board->busy, __ATOMIC_SEQ_CST) < calls)
		sleep_ms(1);
	CHECK(!kill(m.pid[ranks - 1], SIGKILL));
	CHECK_EQ(members_wait(&m, ranks - 1), DIED - SIGKILL);
	__atomic_store_n(&board->gone, 1, __ATOMIC_SEQ_CST);
	for (r = 0; r < ranks - 1; r++)
		CHECK_EQ(members_wait(&m, r), 0);
}

TEST(A2_a_user_of_a_map_is_killed)
{
	kill_last(2, user_dies, 50);
}

TEST(A2_a_user_of_a_map_is_killed_at_another_moment)
{
	kill_last(2, user_dies, 77);
}

TEST(A2_a_member_of_a_map_is_killed)
{
	kill_last(2, member_dies, 50);
}

TEST_LONG(A2_a_user_of_a_map_on_eight_nodes_is_killed, EIGHT_NODES_TEST)
{
	ranks = 8;
	amount = (struct amount){ .own_keys = 15, .shared_keys = 10, .rounds = 2 };
	kill_last(8, user_dies, 40);
}

/* No rank is left on its node, which then is silent: each access waits for ACP_TIMEOUT. */
TEST_LONG(A2_a_member_of_a_map_on_eight_nodes_is_killed, EIGHT_NODES_TEST)
{
	ranks = 8;
	amount = (struct amount){ .own_keys = 4, .rounds = 1 };
	kill_last(8, member_dies, 40);
}
