// SPDX-License-Identifier: MIT
/* selftest: cpus=2 leaks */
/*
 * Commands that combine numbers (ACP_OP_REDUCE) in a job of several nodes: they are part of
 * schedules, and refused where a number is memory of another node.
 */
#include "../dev/isolated.h"

#include <string.h>

#include "members.h"

#define RANKS	6		/* on three nodes: 0 and 1, 2 and 3, 4 and 5 */
#define NODES	3
#define COUNT	300		/* numbers: more than a frame */
#define BYTES	(COUNT * sizeof(double))
#define COUNTER	0		/* offsets in heaps */
#define OWN	4096
#define SLOTS	8192
#define SLOT	4096
#define RESULT	65536

static struct nodes n;
static struct rank r[RANKS];

static void begin(const char *netem)
{
	const struct acp_join wish = {
		.heap_size = 1 << 20, .depth = 512, .timeout_ms = 30000, .open_timeout_ms = 30000,
	};

	nodes_open(&n, NODES, 1, false);
	nodes_ranks_like(&n, r, RANKS, &wish);
	if (netem)
		nodes_impair_all(&n, netem);
}

static double *numbers(uint32_t rank, uint64_t offset)
{
	return (double *)(void *)(r[rank].heap + offset);
}

static int run(uint32_t by, uint32_t to, uint32_t from, uint64_t size)
{
	const struct acp_sqe e = {
		.op = ACP_OP_REDUCE, .dst = heap_ga(&r[to], OWN), .src = heap_ga(&r[from], OWN),
		.size = size, .a = ACP_REDUCE(ACP_REDUCE_SUM, ACP_REDUCE_F64),
		.seen = rank_completed(&r[by]),
	};

	return rank_await(&r[by], rank_submit(&r[by], &e), PATIENCE_WORK);
}

/* All placements: only those with both ends on the node of the caller are executed. */
TEST(memory_of_other_nodes_is_refused)
{
	static const uint64_t sizes[] = { 8, BYTES, 40000 };
	uint32_t by, to, from, i;

	begin(NULL);
	for (by = 0; by < RANKS; by++)
		for (to = 0; to < RANKS; to++)
			for (from = 0; from < RANKS; from++)
				for (i = 0; i < 3; i++) {
					const bool here = to / 2 == by / 2 && from / 2 == by / 2;

					*numbers(to, OWN) = 1;
					*numbers(from, OWN) = 2;
					CHECK_EQ(run(by, to, from, sizes[i]),
						 here ? ACP_ST_OK : ACP_ST_OP);
					CHECK(*numbers(from, OWN) == (to == from && here ? 4 : 2));
					CHECK(to == from || *numbers(to, OWN) == (here ? 3 : 1));
				}
	CHECK_EQ(nodes_counters(&n, "delegated"), 0);
}

static uint64_t submit(uint32_t by, struct acp_sqe e)
{
	e.seen = e.order ? 0 : rank_completed(&r[by]);
	return rank_submit(&r[by], &e);
}

/*
 * A round of a sum at rank 0, which gets a vector from each other rank into a slot of that rank,
 * and sends the result to all. Returns the last ticket of rank 0.
 */
static uint64_t root_of_round(uint64_t round)
{
	uint64_t t;
	uint32_t i;

	t = submit(0, (struct acp_sqe){
		.op = ACP_OP_WAIT, .src = heap_ga(&r[0], COUNTER), .a = round * (RANKS - 1) });
	for (i = 1; i < RANKS; i++)
		t = submit(0, (struct acp_sqe){
			.op = ACP_OP_REDUCE, .dst = heap_ga(&r[0], OWN),
			.src = heap_ga(&r[0], SLOTS + i * SLOT), .size = BYTES, .order = t,
			.a = ACP_REDUCE(ACP_REDUCE_SUM, ACP_REDUCE_F64) });
	for (i = 1; i < RANKS; i++)
		submit(0, (struct acp_sqe){
			.op = ACP_OP_COPY_ADD, .dst = heap_ga(&r[i], RESULT),
			.src = heap_ga(&r[0], OWN), .size = BYTES, .a = heap_ga(&r[i], COUNTER),
			.b = 1, .order = t });
	return r[0].last;
}

static void leaf_of_round(uint32_t i)
{
	submit(i, (struct acp_sqe){
		.op = ACP_OP_COPY_ADD, .dst = heap_ga(&r[0], SLOTS + i * SLOT),
		.src = heap_ga(&r[i], OWN), .size = BYTES, .a = heap_ga(&r[0], COUNTER), .b = 1 });
}

static void sums(uint64_t rounds, const char *netem)
{
	uint64_t round, last, k;
	uint32_t i;

	begin(netem);
	for (round = 1; round <= rounds; round++) {
		struct patience p = patience_begin(PATIENCE_WORK);

		for (i = 0; i < RANKS; i++)
			for (k = 0; k < COUNT; k++)
				numbers(i, OWN)[k] = 0.1 * (double)(round * 1000 * (i + 1) + k);
		last = root_of_round(round);
		for (i = 1; i < RANKS; i++)
			leaf_of_round(i);
		for (i = 1; i < RANKS; i++)
			CHECK_EQ(rank_await(&r[i], r[i].last, PATIENCE_WORK), ACP_ST_OK);
		CHECK_EQ(rank_await(&r[0], last, PATIENCE_WORK), ACP_ST_OK);
		for (i = 1; i < RANKS; i++)
			while (__atomic_load_n((uint64_t *)(void *)(r[i].heap + COUNTER),
					       __ATOMIC_ACQUIRE) < round)
				CHECK(!patience_over(&p));
		for (k = 0; k < COUNT; k++) {
			double sum = 0.1 * (double)(round * 1000 + k);

			for (i = 1; i < RANKS; i++)
				sum += numbers(i, OWN)[k];
			for (i = 1; i < RANKS; i++)
				CHECK(numbers(i, RESULT)[k] == sum);
		}
	}
}

TEST(a_schedule_sums_vectors_of_all_ranks)
{
	sums(50, NULL);
}

TEST(each_number_is_added_once_whatever_is_lost)
{
	sums(20, "loss 20% duplicate 20% delay 1ms 1ms");
}

/* ---- the library ---- */

#define AT	64		/* offset of numbers in starter memory */

static struct members m;

static int reduce(int to, int from, size_t count, int op, int type)
{
	return member_status(acpx_reduce(member_at(to, AT), member_at(from, AT), count, op, type,
					 ACP_HANDLE_ALL));
}

/* Ranks 0 and 1 are on one node, 2 and 3 on another one. */
static void use_library(void)
{
	double *here;
	int i;

	member_init();
	here = (double *)(void *)member_word(AT);
	for (i = 0; i < 20; i++)
		here[i] = acp_rank() + i;
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() == 1) {
		CHECK_EQ(reduce(0, 1, 10, ACPX_SUM, ACPX_DOUBLE), 0);
		CHECK_EQ(reduce(0, 0, 5, ACPX_PROD, ACPX_DOUBLE), 0);
		CHECK_EQ(reduce(2, 1, 10, ACPX_SUM, ACPX_DOUBLE), ACPX_EOP);
		CHECK_EQ(reduce(1, 2, 10, ACPX_SUM, ACPX_DOUBLE), ACPX_EOP);
		CHECK_EQ(reduce(2, 3, 10, ACPX_SUM, ACPX_DOUBLE), ACPX_EOP);
		CHECK_EQ(reduce(0, 1, 10, ACPX_REPLACE + 1, ACPX_DOUBLE), ACPX_EOP);
		CHECK_EQ(reduce(0, 1, 10, ACPX_AND, ACPX_FLOAT), ACPX_EOP);
		CHECK_EQ(reduce(0, 1, SIZE_MAX, ACPX_AND, ACPX_INT64), ACPX_EOP);
		CHECK_EQ(reduce(0, 1, 1000000, ACPX_SUM, ACPX_DOUBLE), ACPX_ERANGE);
		CHECK_EQ(reduce(2, 3, 0, ACPX_SUM, ACPX_DOUBLE), 0);
	}
	CHECK_EQ(acp_sync(), 0);
	for (i = 0; i < 20 && !acp_rank(); i++) {
		const double sum = i < 10 ? 2 * i + 1 : i;

		CHECK(here[i] == (i < 5 ? sum * sum : sum));
	}
	CHECK_EQ(acp_finalize(), 0);
}

TEST(the_library_combines_numbers_of_its_node)
{
	members_run(4, 2, use_library);
}

static void fail(int to, int from, int op)
{
	member_init();
	acpx_set_error_mode(ACPX_ERRORS_ABORT);
	if (acp_rank() == 1)
		acp_complete(acpx_reduce(member_at(to, AT), member_at(from, AT), 1, op, ACPX_FLOAT,
					 ACP_HANDLE_NULL));
	acp_finalize();
}

static void read_elsewhere(void)
{
	fail(0, 2, ACPX_SUM);
}

static void write_elsewhere(void)
{
	fail(3, 1, ACPX_SUM);
}

static void combine_bits(void)
{
	fail(0, 1, ACPX_OR);
}

static void ends_with(void (*body)(void), const char *text)
{
	int i;

	members_open(&m, 4, 2);
	members_start_all(&m, body);
	for (i = 0; i < 4; i++)
		members_wait(&m, i);
	CHECK(members_said(&m, 1, text));
}

TEST(the_library_says_that_src_is_elsewhere)
{
	ends_with(read_elsewhere, "src is memory of another node: numbers of node 0 only");
}

TEST(the_library_says_that_dst_is_elsewhere)
{
	ends_with(write_elsewhere, "dst is memory of another node: numbers of node 0 only");
}

TEST(the_library_says_that_bits_of_float_are_not_combined)
{
	ends_with(combine_bits, "operation 5 of 4 bytes of type 4");
}
