// SPDX-License-Identifier: MIT
/* selftest: gate=uml */
/*
 * Groups by the library, over a network: three nodes of two ranks. Ranks split groups that overlap
 * and change, also over a bad network, and when one of them is killed.
 */
#include "../dev/isolated.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "members.h"

#define RANKS		6
#define PER_NODE	2
#define ROUNDS		(test_short() ? 20U : 200U)

static uint64_t mix(uint64_t round, uint64_t rank)
{
	uint64_t seed = round * 1000 + rank;

	return next_random(&seed);
}

static int color_of(uint64_t round, int rank)
{
	return (int)(mix(round, (uint64_t)rank) % 3) - 1;
}

static int key_of(uint64_t round, int rank)
{
	return (int)(mix(round + 500, (uint64_t)rank) % 5) - 2;
}

/* The part has the members with the own color, ordered by key and then as in the group. */
static void check_part(uint64_t round, acpx_group_t group, acpx_group_t part)
{
	const int own = color_of(round, acp_rank());
	int i, rank, before, count = 0;

	for (i = 0; i < acpx_group_size(group); i++)
		count += color_of(round, acpx_group_translate(group, i)) == own;
	CHECK_EQ(acpx_group_size(part), count);
	CHECK_EQ(acpx_group_translate(part, acpx_group_rank(part)), acp_rank());
	for (i = 0; i < count; i++) {
		rank = acpx_group_translate(part, i);
		CHECK_EQ(acpx_group_find(part, rank), i);
		CHECK(acpx_group_find(group, rank) >= 0);
		CHECK_EQ(color_of(round, rank), own);
		before = i ? acpx_group_translate(part, i - 1) : rank;
		CHECK(key_of(round, before) < key_of(round, rank) ||
		      (key_of(round, before) == key_of(round, rank) &&
		       acpx_group_find(group, before) <= acpx_group_find(group, rank)));
	}
}

static void split(uint64_t round, acpx_group_t group)
{
	const int color = color_of(round, acp_rank());
	acpx_group_t part = NULL;

	CHECK_EQ(acpx_group_split(group, color, key_of(round, acp_rank()), &part), 0);
	CHECK_EQ(!part, color < 0);
	if (!part)
		return;
	check_part(round, group, part);
	CHECK_EQ(acpx_group_free(part), 0);
}

/* All ranks, all but one in a different order, and each second one. */
static acpx_group_t group_of(uint64_t round)
{
	acpx_group_t group;
	int ranks[RANKS], i;

	if (round % 3 == 0) {
		CHECK_EQ(acpx_group_world(&group), 0);
	} else if (round % 3 == 1) {
		for (i = 0; i < RANKS - 1; i++)
			ranks[i] = (int)((uint64_t)(5 * i) + round) % RANKS;
		CHECK_EQ(acpx_group_list(ranks, RANKS - 1, &group), 0);
	} else {
		CHECK_EQ(acpx_group_strided((int)round % 2, 2, RANKS / 2, &group), 0);
	}
	return group;
}

/* Ranks that are not members of a group are not waited for. */
static void many(void)
{
	struct acpx_heap_stats before, after;
	acpx_group_t group;
	uint64_t round;

	member_init();
	CHECK_EQ(acpx_heap_stats(acp_rank(), &before), 0);
	for (round = 0; round < ROUNDS; round++) {
		group = group_of(round);
		if (acpx_group_rank(group) >= 0)
			split(round, group);
		CHECK_EQ(acpx_group_free(group), 0);
	}
	CHECK_EQ(acpx_heap_stats(acp_rank(), &after), 0);
	CHECK_EQ(after.blocks, before.blocks);
	CHECK_EQ(acp_finalize(), 0);
}

TEST(groups_are_split)
{
	members_run(RANKS, PER_NODE, many);
}

TEST(groups_are_split_over_a_bad_network)
{
	members_run_over("loss 5% duplicate 5%", RANKS, PER_NODE, many);
}

static int mortal;

/* One rank is killed while others split: all others end with an error, and go on without it. */
static void survive(void)
{
	int ranks[RANKS], count = 0, i, error, rounds = 0;
	acpx_group_t world, part, rest;

	member_init();
	CHECK_EQ(acpx_group_world(&world), 0);
	for (;;) {
		part = NULL;
		if (acp_rank() == mortal && rounds == 3)
			kill(getpid(), SIGKILL);
		error = acpx_group_split(world, acp_rank() % 2, 0, &part);
		if (error)
			break;
		CHECK_EQ(acpx_group_size(part), RANKS / 2);
		CHECK_EQ(acpx_group_free(part), 0);
		rounds++;
	}
	CHECK(!part && rounds <= 3);
	CHECK(error == -EHOSTDOWN || error == -ECONNRESET || error == -ETIMEDOUT);
	for (i = 0; i < RANKS; i++)
		if (i != mortal)
			ranks[count++] = i;
	CHECK_EQ(acpx_group_list(ranks, count, &rest), 0);
	CHECK_EQ(acpx_group_split(rest, 0, -acp_rank(), &part), 0);
	CHECK_EQ(acpx_group_size(part), count);
	CHECK_EQ(acpx_group_translate(part, count - 1), ranks[0]);
	CHECK_EQ(acpx_group_free(part), 0);
	CHECK_EQ(acpx_group_free(rest), 0);
	CHECK_EQ(acpx_group_free(world), 0);
}

static void killed(int rank)
{
	struct members m;
	int i;

	mortal = rank;
	members_open(&m, RANKS, PER_NODE);
	members_start_all(&m, survive);
	for (i = 0; i < RANKS; i++)
		CHECK_EQ(members_wait(&m, i), i == rank ? DIED - SIGKILL : 0);
}

TEST(P1_the_first_member_of_a_group_is_killed)
{
	killed(0);
}

TEST(P1_a_member_on_the_node_of_the_first_one_is_killed)
{
	killed(1);
}

TEST(P1_a_member_on_another_node_is_killed)
{
	killed(RANKS - 1);
}

/* Split again and again, until it fails. */
static void until_an_error(void)
{
	acpx_group_t world, part = NULL;
	int error;

	member_init();
	CHECK_EQ(acpx_group_world(&world), 0);
	while (!(error = acpx_group_split(world, 0, 0, &part)))
		CHECK_EQ(acpx_group_free(part), 0);
	CHECK(error == -ETIMEDOUT || error == -ECONNRESET || error == -EHOSTUNREACH ||
	      error == -EHOSTDOWN);
	CHECK_EQ(acpx_group_free(world), 0);
}

/* All learn of it within the time-out, those on that node, too. */
TEST(P3_a_node_of_a_group_falls_silent)
{
	struct members m;

	setenv("ACP_TIMEOUT", "1000", 1);
	members_open(&m, RANKS, PER_NODE);
	members_start_all(&m, until_an_error);
	sleep_ms(500);
	nodes_impair(&m.nodes, 2, "loss 100%");
	members_expect(&m, 0);
}

/* A rank that ends without acp_finalize. */
static void missing(void)
{
	acpx_group_t world, part = NULL;
	int error;

	member_init();
	CHECK_EQ(acpx_group_world(&world), 0);
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() == RANKS - 1)
		_exit(0);
	error = acpx_group_split(world, 0, 0, &part);
	CHECK(error < 0 && !part);
	CHECK_EQ(acpx_group_free(world), 0);
}

TEST(P1_a_member_leaves_without_splitting)
{
	members_run(RANKS, PER_NODE, missing);
}
