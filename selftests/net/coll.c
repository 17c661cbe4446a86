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

/* Four children; for more than 4096 bytes a chain, if not longer than there are pieces, or two. */
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

/* ---- Blocks ---- */

static const size_t block_sizes[] = { 1, 200, 5000, 70000 };

#define BLOCKS	(sizeof(block_sizes) / sizeof(block_sizes[0]))

static void gather(acpx_group_t group, int number, int size, int root, size_t block)
{
	acpx_coll_t coll;
	uint64_t round;
	int m;

	CHECK_EQ(acpx_coll_gather_create(group, root, dst_ga, src_ga, block, &coll), 0);
	for (round = 0; round < ROUNDS; round++) {
		memset(dst, 0, block * (size_t)size + 1);
		put_bytes(src, block, round, number, root);
		run_once(coll);
		for (m = 0; m < size && number == root; m++)
			check_bytes(dst + (size_t)m * block, block, round, m, root);
		CHECK_EQ(dst[number == root ? block * (size_t)size : 0], 0);
	}
	CHECK_EQ(acpx_coll_free(coll), 0);
}

static void scatter(acpx_group_t group, int number, int size, int root, size_t block)
{
	acpx_coll_t coll;
	uint64_t round;
	int m;

	CHECK_EQ(acpx_coll_scatter_create(group, root, dst_ga, src_ga, block, &coll), 0);
	for (round = 0; round < ROUNDS; round++) {
		memset(dst, 0, block + 1);
		for (m = 0; m < size && number == root; m++)
			put_bytes(src + (size_t)m * block, block, round, root, m);
		run_once(coll);
		check_bytes(dst, block, round, root, number);
		CHECK_EQ(dst[block], 0);
	}
	CHECK_EQ(acpx_coll_free(coll), 0);
}

/* In place: the own block is where it belongs. */
static void allgather(acpx_group_t group, int number, int size, size_t block, bool in_place)
{
	const size_t own = (size_t)number * block;
	acpx_coll_t coll;
	uint64_t round;
	int m;

	CHECK_EQ(acpx_coll_allgather_create(group, dst_ga, in_place ? dst_ga + own : src_ga, block,
					    &coll), 0);
	for (round = 0; round < ROUNDS; round++) {
		memset(dst, 0, block * (size_t)size + 1);
		put_bytes(in_place ? dst + own : src, block, round, number, 0);
		run_once(coll);
		for (m = 0; m < size; m++)
			check_bytes(dst + (size_t)m * block, block, round, m, 0);
		CHECK_EQ(dst[block * (size_t)size], 0);
	}
	CHECK_EQ(acpx_coll_free(coll), 0);
}

static void alltoall(acpx_group_t group, int number, int size, size_t block, bool in_place)
{
	unsigned char *from = in_place ? dst : src;
	acpx_coll_t coll;
	uint64_t round;
	int m;

	CHECK_EQ(acpx_coll_alltoall_create(group, dst_ga, in_place ? dst_ga : src_ga, block, &coll),
		 0);
	for (round = 0; round < ROUNDS; round++) {
		memset(dst, 0, block * (size_t)size);
		for (m = 0; m < size; m++)
			put_bytes(from + (size_t)m * block, block, round, number, m);
		run_once(coll);
		for (m = 0; m < size; m++)
			check_bytes(dst + (size_t)m * block, block, round, m, number);
	}
	CHECK_EQ(acpx_coll_free(coll), 0);
}

static void blocks(acpx_group_t group, int number, int size)
{
	size_t i;

	for (i = 0; i < BLOCKS; i++) {
		gather(group, number, size, (int)i % size, block_sizes[i]);
		scatter(group, number, size, (int)(i + 1) % size, block_sizes[i]);
		allgather(group, number, size, block_sizes[i], i % 2);
		alltoall(group, number, size, block_sizes[i], i % 2);
	}
	put_bytes(src, 100, 7, number, 0);
	CHECK_EQ(acpx_allgather(group, dst_ga, src_ga, 100), 0);
	check_bytes(dst + (size - 1) * 100, 100, 7, size - 1, 0);
	put_bytes(src + (size - 1) * 100, 100, 8, number, size - 1);
	CHECK_EQ(acpx_alltoall(group, dst_ga, src_ga, 100), 0);
	if (number == size - 1)
		check_bytes(dst, 100, 8, 0, number);
}

static void all_blocks(void)
{
	begin();
	for_groups(blocks);
	end();
}

TEST(blocks_get_to_the_members_they_belong_to)
{
	members_run(RANKS, PER_NODE, all_blocks);
}

TEST_LONG(blocks_over_a_bad_network, PATIENCE_LONG_TEST)
{
	members_run_over("loss 3% duplicate 3%", RANKS, PER_NODE, all_blocks);
}

/* ---- Blocks of different sizes ---- */

/* What a member sends to another one: also nothing, and much. */
static size_t bytes_between(int from, int to)
{
	const int mixed = (from * 5 + to * 3) % 7;

	return mixed == 0 ? 0 : mixed == 1 ? 66001 : (size_t)mixed * 333;
}

/* Blocks in the reverse order, with gaps; of_source: what the member sends, else what it gets. */
static size_t lay_out(struct acpx_block *blocks, int size, int number, bool of_source)
{
	size_t at = 5;
	int m;

	for (m = size - 1; m >= 0; m--) {
		blocks[m].offset = at;
		blocks[m].size = of_source ? bytes_between(number, m) : bytes_between(m, number);
		at += blocks[m].size + 3;
	}
	return at;
}

static void check_gap(const struct acpx_block *block)
{
	CHECK_EQ(dst[block->offset + block->size], 0xee);
}

static void alltoallv(acpx_group_t group, int number, int size)
{
	struct acpx_block to[RANKS], from[RANKS];
	acpx_coll_t coll;
	uint64_t round;
	int m;

	lay_out(to, size, number, false);
	lay_out(from, size, number, true);
	CHECK_EQ(acpx_coll_alltoallv_create(group, dst_ga, to, src_ga, from, &coll), 0);
	for (round = 0; round < ROUNDS; round++) {
		memset(dst, 0xee, ROOM);
		for (m = 0; m < size; m++)
			put_bytes(src + from[m].offset, from[m].size, round, number, m);
		run_once(coll);
		for (m = 0; m < size; m++) {
			check_bytes(dst + to[m].offset, to[m].size, round, m, number);
			check_gap(&to[m]);
		}
	}
	CHECK_EQ(acpx_coll_free(coll), 0);
}

static void gatherv(acpx_group_t group, int number, int size, int root)
{
	const size_t own = bytes_between(number, root);
	struct acpx_block list[RANKS];
	acpx_coll_t coll;
	uint64_t round;
	int m;

	lay_out(list, size, root, false);
	CHECK_EQ(acpx_coll_gatherv_create(group, root, dst_ga, number == root ? list : NULL,
					  src_ga, own, &coll), 0);
	for (round = 0; round < ROUNDS; round++) {
		memset(dst, 0xee, ROOM);
		put_bytes(src, own, round, number, root);
		run_once(coll);
		for (m = 0; m < size && number == root; m++) {
			check_bytes(dst + list[m].offset, list[m].size, round, m, root);
			check_gap(&list[m]);
		}
	}
	CHECK_EQ(acpx_coll_free(coll), 0);
}

static void scatterv(acpx_group_t group, int number, int size, int root)
{
	const struct acpx_block own = { 0, bytes_between(root, number) };
	struct acpx_block list[RANKS];
	acpx_coll_t coll;
	uint64_t round;
	int m;

	lay_out(list, size, root, true);
	CHECK_EQ(acpx_coll_scatterv_create(group, root, dst_ga, own.size, src_ga,
					   number == root ? list : NULL, &coll), 0);
	for (round = 0; round < ROUNDS; round++) {
		memset(dst, 0xee, ROOM);
		for (m = 0; m < size && number == root; m++)
			put_bytes(src + list[m].offset, list[m].size, round, root, m);
		run_once(coll);
		check_bytes(dst, own.size, round, root, number);
		check_gap(&own);
	}
	CHECK_EQ(acpx_coll_free(coll), 0);
}

static void allgatherv(acpx_group_t group, int number, int size)
{
	struct acpx_block list[RANKS];
	acpx_coll_t coll;
	uint64_t round;
	int m;

	lay_out(list, size, 3, false);
	CHECK_EQ(acpx_coll_allgatherv_create(group, dst_ga, list, src_ga, &coll), 0);
	for (round = 0; round < ROUNDS; round++) {
		memset(dst, 0xee, ROOM);
		put_bytes(src, list[number].size, round, number, 0);
		run_once(coll);
		for (m = 0; m < size; m++) {
			check_bytes(dst + list[m].offset, list[m].size, round, m, 0);
			check_gap(&list[m]);
		}
	}
	CHECK_EQ(acpx_coll_free(coll), 0);
}

static void vectors(acpx_group_t group, int number, int size)
{
	alltoallv(group, number, size);
	gatherv(group, number, size, size / 2);
	scatterv(group, number, size, size - 1);
	allgatherv(group, number, size);
}

static void all_vectors(void)
{
	begin();
	for_groups(vectors);
	end();
}

TEST(blocks_of_different_sizes_leave_gaps_alone)
{
	members_run(RANKS, PER_NODE, all_vectors);
}

/* ---- Neighbours ---- */

/* Edge e goes round by 1 and back by 1, to the caller itself, to nobody; twice round by 1. */
static int step_of(int e)
{
	static const int steps[] = { 1, -1, 0, 1, -1 };

	return steps[e];
}

#define EDGES	5

static const size_t edge_sizes[EDGES] = { 1000, 70001, 10, 0, 333 };

/* What the other end of an edge is: that of the neighbour which leads back. */
static int other_end(int size, int e)
{
	static const int far[EDGES] = { 1, 0, 2, 4, 3 };
	static const int near[EDGES] = { 0, 1, 2, 3, 4 };

	/* With one member, all edges lead to itself: edge k is edge k. With two, 1 is -1. */
	return size <= 2 ? near[e] : far[e];
}

static void neighbours(acpx_group_t group, int number, int size)
{
	struct acpx_neighbour list[EDGES + 1] = { [EDGES] = { .member = -1 } };
	acpx_coll_t coll;
	uint64_t round;
	size_t at;
	int e, other;

	for (e = 0, at = 0; e < EDGES; e++, at += 80000) {
		list[e].member = (number + step_of(e) + size) % size;
		list[e].out = (struct acpx_block){ at, edge_sizes[e] };
		list[e].in = (struct acpx_block){ at + 7, edge_sizes[other_end(size, e)] };
	}
	CHECK_EQ(acpx_coll_neighbours_create(group, dst_ga, src_ga, list, EDGES + 1, &coll), 0);
	for (round = 0; round < 2 * ROUNDS; round++) {
		memset(dst, 0xee, ROOM);
		for (e = 0; e < EDGES; e++)
			put_bytes(src + list[e].out.offset, list[e].out.size, round, number, e);
		run_once(coll);
		for (e = 0; e < EDGES; e++) {
			other = list[e].member;
			check_bytes(dst + list[e].in.offset, list[e].in.size, round, other,
				    other_end(size, e));
			check_gap(&list[e].in);
		}
	}
	CHECK_EQ(acpx_coll_free(coll), 0);
}

static void all_neighbours(void)
{
	begin();
	for_groups(neighbours);
	end();
}

TEST(neighbours_exchange_blocks)
{
	members_run(RANKS, PER_NODE, all_neighbours);
}

/* ---- Several at a time ---- */

#define FLIGHT	6

/* Groups overlap, and ranks start their collectives in different orders. */
static void overlap(void)
{
	uint64_t *from, *to, seed, round;
	acpx_coll_t coll[FLIGHT] = { NULL };
	acpx_group_t group[FLIGHT];
	int i, k, size;

	begin();
	from = (uint64_t *)(void *)src;
	to = (uint64_t *)(void *)dst;
	for (i = 0; i < FLIGHT; i++) {
		group[i] = group_of(i % 2 ? RANKS : 3 + i, i % 3);
		if (acpx_group_rank(group[i]) >= 0)
			CHECK_EQ(acpx_coll_allreduce_create(group[i], dst_ga + 8 * (uint64_t)i,
							    src_ga + 8 * (uint64_t)i, 1, ACPX_SUM,
							    ACPX_UINT64, &coll[i]), 0);
	}
	for (round = 1; round <= 10; round++) {
		seed = round * 100 + (uint64_t)acp_rank();
		k = (int)(next_random(&seed) % FLIGHT);
		for (i = 0; i < FLIGHT; i++, k = (k + 5) % FLIGHT) {
			from[k] = round * 1000 + (uint64_t)acp_rank();
			if (coll[k])
				CHECK_EQ(acpx_coll_start(coll[k]), 0);
		}
		for (i = 0; i < FLIGHT; i++) {
			uint64_t sum = 0;

			if (!coll[i])
				continue;
			CHECK_EQ(acpx_coll_wait(coll[i], ACPX_FOREVER), 0);
			size = acpx_group_size(group[i]);
			for (k = 0; k < size; k++)
				sum += round * 1000 +
				       (uint64_t)acpx_group_translate(group[i], k);
			CHECK_EQ(to[i], sum);
		}
	}
	for (i = 0; i < FLIGHT; i++) {
		CHECK_EQ(coll[i] ? acpx_coll_free(coll[i]) : 0, 0);
		CHECK_EQ(acpx_group_free(group[i]), 0);
	}
	end();
}

TEST(groups_that_overlap_start_in_any_order)
{
	members_run(RANKS, PER_NODE, overlap);
}

/* The text is complete if it has room, and cut off otherwise. */
static void describe(void)
{
	char text[4000], part[20];
	acpx_group_t group = NULL;
	acpx_coll_t coll;
	int length;

	begin();
	CHECK_EQ(acpx_group_world(&group), 0);
	CHECK_EQ(acpx_coll_barrier_create(group, &coll), 0);
	run_once(coll);
	length = acpx_coll_describe(coll, text, sizeof(text));
	CHECK(length > 0 && (size_t)length == strlen(text));
	CHECK(!strncmp(text, "barrier of 8 members", 20) && strstr(text, "wait for counter"));
	CHECK_EQ(acpx_coll_describe(coll, NULL, 0), length);
	CHECK_EQ(acpx_coll_describe(coll, part, sizeof(part)), length);
	CHECK(strlen(part) == sizeof(part) - 1 && !strncmp(part, text, sizeof(part) - 1));
	run_once(coll);
	CHECK_EQ(acpx_coll_free(coll), 0);
	CHECK_EQ(acpx_group_free(group), 0);
	end();
}

TEST(a_collective_is_described)
{
	members_run(RANKS, PER_NODE, describe);
}
