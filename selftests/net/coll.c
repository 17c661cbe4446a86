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


/* ---- Reductions ---- */

/* Number i of a member in a round: the sum of several depends on the order. */
static double number_of(uint64_t round, int member, size_t i)
{
	uint64_t seed = round * 1000003 + (uint64_t)member * 1009 + i;
	const double x = (double)(next_random(&seed) % 2000001) - 1000000;

	return i % 3 ? x / 3 : x * 1e9 / 7;
}

static void put_numbers(void *at, size_t count, uint64_t round, int member)
{
	double *numbers = at;
	size_t i;

	for (i = 0; i < count; i++)
		numbers[i] = number_of(round, member, i);
}

/* The documented order: a member's own number, then what each child has, in their order. */
static double combined(uint64_t round, int size, int radix, int root, int place, size_t i)
{
	double sum = number_of(round, (place + root) % size, i);
	int child;

	for (child = radix * place + 1; child <= radix * place + radix && child < size; child++)
		sum += combined(round, size, radix, root, child, i);
	return sum;
}

/* Four children; for more than 4096 bytes a chain, if it has no more members than pieces, or two. */
static int radix_of(int size, size_t count)
{
	const size_t bytes = 8 * count, share = (bytes + 63) / 64;
	const size_t piece = share <= 4096 ? 4096 : (share + 63) / 64 * 64;

	if (bytes <= 4096)
		return 4;
	return (size_t)size <= (bytes + piece - 1) / piece ? 1 : 2;
}

static void check_sums(const void *at, size_t first, size_t count, uint64_t round, int size,
		       int radix, int root)
{
	const double *numbers = at;
	double expected;
	size_t i;

	for (i = 0; i < count; i++) {
		expected = combined(round, size, radix, root, 0, first + i);
		if (memcmp(&numbers[i], &expected, sizeof(expected)))
			FAIL("rank %d, %d members, round %llu: sum %zu is %a, not %a", acp_rank(),
			     size, (unsigned long long)round, i, numbers[i], expected);
	}
}

static const size_t counts[] = { 1, 37, 512, 513, 1500, 40000 };

#define COUNTS	(sizeof(counts) / sizeof(counts[0]))

static void allreduce(int size, acpx_group_t group, int number, size_t count, bool in_place)
{
	acpx_coll_t coll;
	uint64_t round;

	CHECK_EQ(acpx_coll_allreduce_create(group, dst_ga, in_place ? dst_ga : src_ga, count,
					    ACPX_SUM, ACPX_DOUBLE, &coll), 0);
	for (round = 0; round < ROUNDS; round++) {
		memset(dst, 0, 8 * count + 8);
		put_numbers(in_place ? dst : src, count, round, number);
		run_once(coll);
		check_sums(dst, 0, count, round, size, radix_of(size, count), 0);
		CHECK_EQ(((uint64_t *)(void *)dst)[count], 0);
	}
	CHECK_EQ(acpx_coll_free(coll), 0);
}

static void allreduces(acpx_group_t group, int number, int size)
{
	size_t i;

	for (i = 0; i < COUNTS; i++)
		allreduce(size, group, number, counts[i], i % 2);
	allreduce(size, group, number, 0, false);
}

static void all_allreduces(void)
{
	begin();
	for_groups(allreduces);
	end();
}

TEST(an_allreduce_has_the_bits_of_its_documented_order)
{
	members_run(RANKS, PER_NODE, all_allreduces);
}

TEST_LONG(allreduces_over_a_bad_network, PATIENCE_LONG_TEST)
{
	members_run_over("loss 3% duplicate 3%", RANKS, PER_NODE, all_allreduces);
}

static void reduce(int size, acpx_group_t group, int number, int root, size_t count)
{
	acpx_coll_t coll;
	uint64_t round;

	CHECK_EQ(acpx_coll_reduce_create(group, root, dst_ga, src_ga, count, ACPX_SUM, ACPX_DOUBLE,
					 &coll), 0);
	for (round = 0; round < 2 * ROUNDS; round++) {
		memset(dst, 0, 8 * count);
		put_numbers(src, count, round, number);
		run_once(coll);
		if (number == root)
			check_sums(dst, 0, count, round, size, radix_of(size, count), root);
		else
			CHECK(count == 0 || dst[8 * count - 1] == 0);
	}
	CHECK_EQ(acpx_coll_free(coll), 0);
}

static void reduces(acpx_group_t group, int number, int size)
{
	size_t i;

	for (i = 0; i < COUNTS; i++)
		reduce(size, group, number, (int)i * 2 % size, counts[i]);
}

static void all_reduces(void)
{
	begin();
	for_groups(reduces);
	end();
}

TEST(a_reduce_has_the_bits_of_its_documented_order_at_the_root)
{
	members_run(RANKS, PER_NODE, all_reduces);
}

static void reduce_scatter(int size, acpx_group_t group, int number, size_t count)
{
	const size_t all = count * (size_t)size;
	acpx_coll_t coll;
	uint64_t round;

	CHECK_EQ(acpx_coll_reduce_scatter_create(group, dst_ga, src_ga, count, ACPX_SUM,
						 ACPX_DOUBLE, &coll), 0);
	for (round = 0; round < ROUNDS; round++) {
		memset(dst, 0, 8 * count);
		put_numbers(src, all, round, number);
		run_once(coll);
		check_sums(dst, count * (size_t)number, count, round, size, radix_of(size, all), 0);
	}
	CHECK_EQ(acpx_coll_free(coll), 0);
}

static void reduce_scatters(acpx_group_t group, int number, int size)
{
	reduce_scatter(size, group, number, 1);
	reduce_scatter(size, group, number, 300);
	reduce_scatter(size, group, number, 3001);
}

static void all_reduce_scatters(void)
{
	begin();
	for_groups(reduce_scatters);
	end();
}

TEST(a_reduce_scatter_gives_each_member_its_block_of_the_sums)
{
	members_run(RANKS, PER_NODE, all_reduce_scatters);
}

/* ---- Scans ---- */

static void check_scan(const double *numbers, size_t count, uint64_t round, int last)
{
	double expected;
	size_t i;
	int m;

	for (i = 0; i < count; i++) {
		expected = number_of(round, 0, i);
		for (m = 1; m <= last; m++)
			expected += number_of(round, m, i);
		CHECK(memcmp(&numbers[i], &expected, sizeof(expected)) == 0);
	}
}

static void scan(acpx_group_t group, int number, size_t count, bool exclusive, bool in_place)
{
	double *result = (double *)(void *)dst, *from = in_place ? result : (double *)(void *)src;
	const acp_ga_t from_ga = in_place ? dst_ga : src_ga;
	acpx_coll_t coll;
	uint64_t round;

	CHECK_EQ((exclusive ? acpx_coll_exscan_create : acpx_coll_scan_create)
		 (group, dst_ga, from_ga, count, ACPX_SUM, ACPX_DOUBLE, &coll), 0);
	for (round = 0; round < 2 * ROUNDS; round++) {
		memset(dst, 0, 8 * count);
		put_numbers(from, count, round, number);
		run_once(coll);
		if (!exclusive)
			check_scan(result, count, round, number);
		else if (number)
			check_scan(result, count, round, number - 1);
	}
	CHECK_EQ(acpx_coll_free(coll), 0);
}

static void scans(acpx_group_t group, int number, int size)
{
	size_t i;

	(void)size;
	for (i = 0; i < COUNTS - 1; i++) {
		scan(group, number, counts[i], false, i % 2);
		scan(group, number, counts[i], true, i % 2);
	}
}

static void all_scans(void)
{
	begin();
	for_groups(scans);
	end();
}

TEST(scans_combine_in_the_order_of_numbers)
{
	members_run(RANKS, PER_NODE, all_scans);
}
