// SPDX-License-Identifier: MIT
/*
 * When a command starts, and what happens to it when a command that it waits for fails. So that
 * commands stay incomplete, the job has a second node that never answers.
 */
#include "isolated.h"

#include "rank.h"

#define SILENT_MS	4000	/* until a command to the silent node fails */

static struct rank r;

static void begin(void)
{
	static const char *const addresses[] = { "127.0.0.1", "127.0.0.2", NULL };
	struct setup s;

	setup_nodes(&s, 0, 2, 2, addresses);
	s.join.open_timeout_ms = SILENT_MS;
	s.join.heap_size = 1 << 24;
	rank_open(&r, &s);
}

/* A command that fails after SILENT_MS. */
static uint64_t pending(void)
{
	return rank_copy(&r, rank_ga(&r, 1, ACP_STAG_HEAP, 0), heap_ga(&r, 0), 8, 0);
}

/* A command that fails immediately. */
static uint64_t failing(void)
{
	return rank_copy(&r, 0, heap_ga(&r, 0), 8, 0);
}

/* Copy word i of the heap to word i + 100, which was 0. */
static uint64_t move_word(unsigned int i, uint64_t order)
{
	((uint64_t *)r.heap)[i] = i + 1;
	((uint64_t *)r.heap)[i + 100] = 0;
	return rank_copy(&r, heap_ga(&r, (i + 100) * 8), heap_ga(&r, i * 8), 8, order);
}

static bool moved(unsigned int i)
{
	return __atomic_load_n((uint64_t *)r.heap + i + 100, __ATOMIC_ACQUIRE) == i + 1;
}

static void ends(uint64_t ticket, int wanted)
{
	CHECK_EQ(rank_await(&r, ticket, PATIENCE_SOON), wanted);
}

static void moved_soon(unsigned int i)
{
	struct patience p = patience_begin(PATIENCE_SOON);

	while (!moved(i) && !patience_over(&p))
		;
	CHECK(moved(i));
}

/* Unordered: it is executed immediately, although it completes after the other. */
TEST(no_order)
{
	uint64_t first, second;

	begin();
	first = pending();
	second = move_word(1, 0);
	moved_soon(1);
	CHECK_EQ(rank_completed(&r), 1);
	ends(first, ACP_ST_TIMEOUT);
	ends(second, ACP_ST_OK);
	CHECK_EQ(r.cq->failed, 1);
}

TEST(A5_order_waits_and_fails)
{
	uint64_t first, second;

	begin();
	first = pending();
	second = move_word(1, first);
	sleep_ms(SILENT_MS / 3);
	CHECK(!moved(1));
	CHECK_EQ(rank_completed(&r), 1);
	ends(first, ACP_ST_TIMEOUT);
	ends(second, ACP_ST_ORDER);
	CHECK(!moved(1));
	CHECK_EQ(r.cq->failed, 2);
}

/* Order on a complete command is no condition. */
TEST(order_on_what_is_complete)
{
	uint64_t done, first, second;

	begin();
	done = move_word(1, 0);
	ends(done, ACP_ST_OK);
	first = pending();
	second = move_word(2, done);
	moved_soon(2);
	ends(first, ACP_ST_TIMEOUT);
	ends(second, ACP_ST_OK);
}

/* "All up to" a command that has completed itself, while an earlier one has not. */
TEST(A5_order_means_all_before)
{
	uint64_t first, second, third;

	begin();
	first = pending();
	second = move_word(1, 0);
	moved_soon(1);
	third = move_word(2, second);
	sleep_ms(SILENT_MS / 3);
	CHECK(!moved(2));
	ends(first, ACP_ST_TIMEOUT);
	ends(second, ACP_ST_OK);
	ends(third, ACP_ST_ORDER);
}

/* A waiting command does not delay those after it. */
TEST(others_overtake_who_waits)
{
	uint64_t first, second, third;

	begin();
	first = pending();
	second = move_word(1, first);
	third = move_word(2, 0);
	moved_soon(2);
	CHECK(!moved(1));
	ends(first, ACP_ST_TIMEOUT);
	ends(second, ACP_ST_ORDER);
	ends(third, ACP_ST_OK);
}

TEST(A5_chain_of_dependents)
{
	uint64_t ticket[20];
	unsigned int i;

	begin();
	ticket[0] = pending();
	for (i = 1; i < 20; i++)
		ticket[i] = move_word(i, ticket[i - 1]);
	ends(ticket[0], ACP_ST_TIMEOUT);
	for (i = 1; i < 20; i++) {
		ends(ticket[i], ACP_ST_ORDER);
		CHECK(!moved(i));
	}
	CHECK_EQ(r.cq->failed, 20);
	ends(move_word(20, 0), ACP_ST_OK);
}

static uint64_t with_flags(uint8_t flags, uint64_t order, uint64_t seen)
{
	struct acp_sqe e = {
		.op = ACP_OP_COPY, .flags = flags, .dst = heap_ga(&r, 0), .src = heap_ga(&r, 8),
		.size = 8, .order = order, .seen = seen,
	};

	return rank_submit(&r, &e);
}

/* A command ordered after a failure that the program has seen is executed. */
TEST(A5_failure_that_was_seen)
{
	uint64_t failed;

	begin();
	failed = failing();
	ends(failed, ACP_ST_GA);
	ends(with_flags(0, failed, failed), ACP_ST_OK);
	ends(with_flags(0, failed, failed - 1), ACP_ST_ORDER);
	ends(with_flags(0, failed, 0), ACP_ST_ORDER);
	ends(with_flags(0, r.last, r.last), ACP_ST_OK);
	ends(with_flags(0, failed - 1, 0), ACP_ST_OK);
}

TEST(A5_continuation_of_a_failure)
{
	uint64_t failed;

	begin();
	failed = failing();
	ends(with_flags(ACP_SQE_CONT, failed, failed - 1), ACP_ST_ORDER);
	ends(with_flags(ACP_SQE_CONT, r.last, r.last), ACP_ST_OK);
}

/* Long copies, each of which reads what the previous one wrote. */
TEST(A5_chain_of_long_copies)
{
	size_t size = 1 << 20;
	uint64_t order = 0;
	int i, round;

	begin();
	for (round = 0; round < 5; round++) {
		fill(r.heap, size, (uint64_t)round);
		for (i = 1; i < 16; i++)
			order = rank_copy(&r, heap_ga(&r, i * size), heap_ga(&r, (i - 1) * size),
					  size, i > 1 ? order : 0);
		ends(order, ACP_ST_OK);
		CHECK(filled(r.heap + 15 * size, size, (uint64_t)round));
	}
}

/* More dependents than the kernel keeps commands. */
TEST(A5_more_waiting_than_in_flight)
{
	static const char *const addresses[] = { "127.0.0.1", "127.0.0.2", NULL };
	uint64_t first;
	struct setup s;
	int i;

	setup_nodes(&s, 0, 2, 2, addresses);
	s.join.open_timeout_ms = SILENT_MS;
	s.join.depth = 4096;
	rank_open(&r, &s);
	first = pending();
	((uint64_t *)r.heap)[1] = 1;
	/* Not seen, however long it takes to issue them. */
	for (i = 0; i < 3000; i++)
		with_flags(0, first, first - 1);
	ends(first, ACP_ST_TIMEOUT);
	CHECK(rank_await(&r, r.last, PATIENCE_SOON) >= 0);
	/* None had an effect. */
	CHECK_EQ(*(uint64_t *)r.heap, 0);
	CHECK_EQ(r.cq->failed, 3001);
}
