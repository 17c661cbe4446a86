// SPDX-License-Identifier: MIT
/*
 * A map that ranks of several nodes use at once, with the kernel module below:
 * inserting, finding, removing; over links that lose frames; while a rank is killed that
 * only uses it, or that holds a part of it.
 */
#include "../dev/isolated.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

#include "members.h"

#define RANKS_MOST	8
#define EIGHT_NODES_SECONDS	600	/* to make them is a minute's work on a slow machine */
#define SLOTS		16

/* What a test does.  A slow machine does a tenth of it: a key costs some 20 round trips. */
struct amount {
	int own_keys;			/* of each rank */
	int shared_keys;		/* that all are after */
	int rounds;
};

/* Starter memory: what calls begin and end in, and the map's reference. */
struct desk {
	uint64_t key, value, back;
	acp_map_t map;
};

/* Seen by all processes of a test, for there is no barrier when a rank has died. */
struct board {
	uint32_t here;			/* ranks that wait */
	uint32_t won;			/* shared keys that somebody got in */
	uint32_t busy;			/* calls of the rank that is to be killed */
	uint32_t gone;			/* it is dead */
};

static struct members m;
static int ranks = 4, per_node = 2;
static struct amount amount = { .own_keys = 60, .shared_keys = 40, .rounds = 4 };
static struct board *board;
static struct desk *desk;
static acp_ga_t desk_ga;
static acp_map_t map;
static int me;

/* ---- Calls ---- */

/* Keys of ranks, and shared ones, with RANKS_MOST for the rank. */
static uint64_t key_of(int rank, int number)
{
	return (uint64_t)(rank + 1) << 32 | (uint64_t)number;
}

static acp_pair_t pair_of(uint64_t key)
{
	acp_pair_t pair = {
		{ desk_ga + offsetof(struct desk, key), 8 },
		{ desk_ga + offsetof(struct desk, value), 8 },
	};

	desk->key = key;
	desk->value = ~key;
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

/* Is it there, with its value? */
static bool find(uint64_t key)
{
	acp_pair_t pair = pair_of(key);
	size_t size;

	pair.second.ga = desk_ga + offsetof(struct desk, back);
	desk->back = 0;
	errno = 0;
	size = acp_retrieve_map(map, pair);
	CHECK(size == 0 || (size == 8 && desk->back == ~key));
	return size == 8;
}

/* ---- Beginning ---- */

static void wait_here(uint32_t count)
{
	__atomic_add_fetch(&board->here, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&board->here, __ATOMIC_SEQ_CST) < count)
		sleep_ms(1);
}

/* Become a rank; rank 0 makes the map, on "members" ranks, 0 to members - 1. */
static void begin(int members)
{
	const int all[RANKS_MOST] = { 0, 1, 2, 3, 4, 5, 6, 7 };

	if (test_short()) {
		amount.own_keys = (amount.own_keys + 4) / 5;
		amount.shared_keys = (amount.shared_keys + 4) / 5;
		amount.rounds = (amount.rounds + 1) / 2;
	}
	setenv("ACP_HEAP_SIZE", "1M", 1);
	setenv("ACP_TIMEOUT", "2000", 1);
	CHECK_EQ(acp_init(NULL, NULL), 0);
	me = acp_rank();
	desk_ga = member_at(me, 0);
	desk = acp_query_address(desk_ga);
	if (me == 0) {
		desk->map = acp_create_map(members, all, SLOTS, 0);
		CHECK(desk->map.ga != ACP_GA_NULL);
	}
	CHECK_EQ(acp_sync(), 0);
	if (me)
		CHECK_EQ(member_status(acp_copy(desk_ga + offsetof(struct desk, map),
						member_at(0, offsetof(struct desk, map)),
						sizeof(map), ACP_HANDLE_NULL)), 0);
	map = desk->map;
	CHECK_EQ(acp_sync(), 0);
}

/* Heaps are sound; how many blocks are in use in those of ranks 0 to count - 1? */
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

/* ---- All at once ---- */

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

/* Each shared key is put in by one of them. */
static void put_shared(void)
{
	int i;

	for (i = 0; i < amount.shared_keys; i++) {
		if (insert(key_of(RANKS_MOST, i)))
			__atomic_add_fetch(&board->won, 1, __ATOMIC_SEQ_CST);
		CHECK_EQ(errno, 0);
		CHECK(find(key_of(RANKS_MOST, i)));
	}
}

static void look_for_all(void)
{
	int r, i;

	for (r = 0; r < ranks; r++)
		for (i = 0; i < amount.own_keys; i++)
			CHECK(find(key_of(r, i)));
	for (i = 0; i < amount.shared_keys; i++)
		CHECK(find(key_of(RANKS_MOST, i)));
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
		remove_key(key_of(RANKS_MOST, i));
		CHECK(!find(key_of(RANKS_MOST, i)));
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

/* All members of a job, "nodes" of them, over links that do that to what they carry. */
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
	CHECK(nodes_counters(&m.nodes, "tx_again") > 0);
}

TEST_LONG(A2_insert_find_remove_by_all_of_eight_nodes_with_loss, EIGHT_NODES_SECONDS)
{
	ranks = 8;
	amount = (struct amount){ .own_keys = 30, .shared_keys = 20, .rounds = 2 };
	open_all(8, "loss 1%");
	members_start_all(&m, all_at_once);
	members_expect(&m, 0);
	CHECK(nodes_counters(&m.nodes, "tx_again") > 0);
}

/* ---- Deaths ---- */

/* Put in and out until the end comes. */
static void use_until_killed(void)
{
	int i;

	for (i = 0;; i = (i + 1) % amount.own_keys) {
		insert(key_of(RANKS_MOST, i));
		insert(key_of(me, i));
		__atomic_add_fetch(&board->busy, 1, __ATOMIC_SEQ_CST);
		remove_key(key_of(RANKS_MOST, i));
		remove_key(key_of(me, i));
	}
}

static bool is_gone(void)
{
	return __atomic_load_n(&board->gone, __ATOMIC_SEQ_CST);
}

/* What one's own keys tell stays true, before, while and after the other one dies. */
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
			insert(key_of(RANKS_MOST, i));
		}
		for (i = 0; i < amount.own_keys; i++) {
			remove_key(key_of(me, i));
			CHECK(!find(key_of(me, i)));
			remove_key(key_of(RANKS_MOST, i));
			CHECK(!all_members_live || !errno);
		}
	}
}

/* The last rank is no member, or (the other test) one. */
static void user_dies(void)
{
	begin(ranks - 1);
	if (me == ranks - 1)
		use_until_killed();
	go_on(true);
	wait_here((uint32_t)ranks - 1);
	if (me == 0) {
		/* What the dead put in last is all that can be left. */
		CHECK_EQ(walk(), acp_size_map(map));
		CHECK(walk() <= 2);
		acp_clear_map(map);
		CHECK_EQ(walk(), 0);
		acp_destroy_map(map);
		CHECK_EQ(errno, 0);
		/* It may have died with memory in its hands. */
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

TEST_LONG(A2_a_user_of_a_map_on_eight_nodes_is_killed, EIGHT_NODES_SECONDS)
{
	ranks = 8;
	amount = (struct amount){ .own_keys = 15, .shared_keys = 10, .rounds = 2 };
	kill_last(8, user_dies, 40);
}

/* No rank is left on its node, which then says nothing: each access waits for ACP_TIMEOUT. */
TEST_LONG(A2_a_member_of_a_map_on_eight_nodes_is_killed, EIGHT_NODES_SECONDS)
{
	ranks = 8;
	amount = (struct amount){ .own_keys = 4, .rounds = 1 };
	kill_last(8, member_dies, 40);
}
