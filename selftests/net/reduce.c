// SPDX-License-Identifier: MIT
/* selftest: cpus=2 leaks */
/*
 * Commands that combine numbers (ACP_OP_REDUCE) in a job of several nodes: they are part of
 * schedules, and refused where a number is memory of another node.
 */
#include "../dev/isolated.h"

#include <string.h>

#include "nodes.h"

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
	const struct acp_join wish = { .heap_size = 1 << 20, .depth = 512 };

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

	t = submit(0, (struct acp_sqe){ .op = ACP_OP_WAIT, .src = heap_ga(&r[0], COUNTER),
					.a = round * (RANKS - 1) });
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
