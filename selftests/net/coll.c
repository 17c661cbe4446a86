// SPDX-License-Identifier: MIT
/* selftest: gate=uml */
/*
 * Collectives by the library, over a network: four nodes of two ranks. Each one with groups of
 * several sizes, several roots, and different data in each round.
 */
#include "coll_play.h"

#define ROUNDS	3

static const size_t sizes[] = { 1, 8, 1000, 4096, 66000, 300001 };

#define SIZES	(sizeof(sizes) / sizeof(sizes[0]))

/* ---- Barrier ---- */

/* All add to a word of the first one before they come, and read it afterwards. */
static void barriers(acpx_group_t group, int number, int size)
{
	const int first = acpx_group_translate(group, 0);
	const acp_ga_t own = member_at(acp_rank(), 0), word = member_at(first, 64);
	acpx_coll_t coll;
	uint64_t round, begun;

	(void)number;
	CHECK_EQ(acpx_barrier(group), 0);
	CHECK_EQ(member_status(acp_copy(own, word, 8, ACP_HANDLE_NULL)), 0);
	begun = *member_word(0);
	CHECK_EQ(acpx_coll_barrier_create(group, &coll), 0);
	for (round = 1; round <= 10; round++) {
		CHECK_EQ(member_status(acp_add8(own + 8, word, 1, ACP_HANDLE_NULL)), 0);
		run_once(coll);
		CHECK_EQ(member_status(acp_copy(own, word, 8, ACP_HANDLE_NULL)), 0);
		CHECK(*member_word(0) - begun >= round * (uint64_t)size);
		CHECK(*member_word(0) - begun <= (round + 1) * (uint64_t)size);
	}
	CHECK_EQ(acpx_coll_free(coll), 0);
}

static void all_barriers(void)
{
	begin();
	for_groups(barriers);
	end();
}

TEST(a_barrier_ends_when_all_have_come)
{
	members_run(RANKS, PER_NODE, all_barriers);
}

TEST_LONG(barriers_over_a_bad_network, PATIENCE_LONG_TEST)
{
	members_run_over("loss 5% duplicate 5%", RANKS, PER_NODE, all_barriers);
}

/* ---- Broadcast ---- */

static void bcast(acpx_group_t group, int number, int root, size_t size)
{
	acpx_coll_t coll;
	uint64_t round;

	CHECK_EQ(acpx_coll_bcast_create(group, root, dst_ga, size, &coll), 0);
	for (round = 0; round < ROUNDS; round++) {
		memset(dst, 0, size + 1);
		if (number == root)
			put_bytes(dst, size, round, root, 0);
		run_once(coll);
		check_bytes(dst, size, round, root, 0);
		CHECK_EQ(dst[size], 0);
	}
	CHECK_EQ(acpx_coll_free(coll), 0);
}

static void bcasts(acpx_group_t group, int number, int size)
{
	size_t i;

	for (i = 0; i < SIZES; i++)
		bcast(group, number, (int)i * 3 % size, sizes[i]);
	CHECK_EQ(acpx_bcast(group, size - 1, dst_ga, 0), 0);
}

static void all_bcasts(void)
{
	begin();
	for_groups(bcasts);
	end();
}

TEST(a_broadcast_copies_the_buffer_of_the_root)
{
	members_run(RANKS, PER_NODE, all_bcasts);
}

