// SPDX-License-Identifier: MIT
/*
 * Strided copies, copies that change a flag, and commands that complete together: all placements of
 * source and destination, good and impaired networks, all kinds of jobs.
 *
 * The expected contents of memory are computed block by block, and all of it is compared.
 */
#include "../dev/isolated.h"

#include <pthread.h>

#define SLOTS		(RANKS * RANKS)
#define SLOT		(24 * 1024UL)	/* more than is copied at once within a node */
#define SOURCE		(64 * 1024UL)	/* never written */
#define AT_SLOTS	SOURCE
#define AT_COUNTER	(AT_SLOTS + SLOTS * SLOT)
#define AT_FLAGS	(AT_COUNTER + 64)	/* one per slot */
#define HEAP		(AT_FLAGS + 8 * SLOTS + 64)

#include "modelled.h"

static uint64_t submit(struct rank *rank, struct acp_sqe *e)
{
	e->seen = rank_completed(rank);
	return rank_submit(rank, e);
}

static int ends(struct rank *rank, struct acp_sqe *e)
{
	return rank_await(rank, submit(rank, e), PATIENCE_WORK);
}

/*
 * Choose a stride for blocks that do not overlap in "room" bytes, and the position of the first
 * one.
 */
static int64_t some_stride(uint64_t block, uint64_t count, uint64_t room, uint64_t *first)
{
	uint64_t stride = block + draw((room - block) / (count - 1) - block + 1);
	uint64_t rest = room - block - (count - 1) * stride;
	bool back = draw(3) == 0;

	*first = draw(rest + 1) + (back ? (count - 1) * stride : 0);
	return back ? -(int64_t)stride : (int64_t)stride;
}

/* Few long blocks, many short ones, or something in between. */
static void some_blocks(uint64_t *block, uint64_t *count)
{
	static const uint64_t blocks[] = { 1, 3, 4, 8, 16, 40, 100, 300, 600, 1500, 5000 };

	*block = blocks[draw(sizeof(blocks) / sizeof(blocks[0]))];
	*count = SLOT / 2 / *block;
	*count = 2 + draw(*count < 1000 ? *count : 1000);
}

/* Strided copy to a slot of a rank, by the ring and in the model. */
static void strided(struct rank *origin, uint32_t dst, uint32_t src, uint32_t slot)
{
	struct acp_sqe e = { .op = ACP_OP_STRIDED };
	uint64_t block, count, to, from, i;
	int64_t dst_stride, src_stride;

	some_blocks(&block, &count);
	dst_stride = some_stride(block, count, SLOT, &to);
	src_stride = some_stride(block, count, SOURCE, &from);
	to += AT_SLOTS + slot * SLOT;
	e.dst = heap_ga(&r[dst], to);
	e.src = heap_ga(&r[src], from);
	e.size = ACP_BLOCKS(block, count);
	e.a = (uint64_t)dst_stride;
	e.b = (uint64_t)src_stride;
	submit(origin, &e);
	for (i = 0; i < count; i++)
		memcpy(model[dst] + to + (int64_t)i * dst_stride,
		       model[src] + from + (int64_t)i * src_stride, block);
}

/* Copy to a slot that adds to the counter of the rank, or sets the flag of the slot. */
static void signalled(struct rank *origin, uint32_t dst, uint32_t src, uint32_t slot)
{
	static const uint64_t sizes[] = { 0, 1, 8, 100, 128, 129, 1300, 1400, 5000, 20000 };
	uint64_t size = sizes[draw(sizeof(sizes) / sizeof(sizes[0]))], from = draw(SOURCE - size);
	uint64_t at = AT_SLOTS + slot * SLOT;
	bool add = draw(2);
	struct acp_sqe e = {
		.op = add ? ACP_OP_COPY_ADD : ACP_OP_COPY_SET, .dst = heap_ga(&r[dst], at),
		.src = heap_ga(&r[src], from), .size = size, .b = next_random(&seed),
		.a = heap_ga(&r[dst], add ? AT_COUNTER : AT_FLAGS + 8 * slot),
	};

	submit(origin, &e);
	memcpy(model[dst] + at, model[src] + from, size);
	if (add)
		*(uint64_t *)(model[dst] + AT_COUNTER) += e.b;
	else
		*(uint64_t *)(model[dst] + AT_FLAGS + 8 * slot) = e.b;
}

/* Every origin, destination and source. */
static void everywhere(uint32_t rounds)
{
	uint32_t round, origin, dst, src;

	for (round = 0; round < rounds; round++) {
		for (origin = 0; origin < RANKS; origin++)
			for (dst = 0; dst < RANKS; dst++)
				for (src = 0; src < RANKS; src++)
					strided(&r[origin], dst, src, origin * RANKS + src);
		compare("strided copies");
		for (origin = 0; origin < RANKS; origin++)
			for (dst = 0; dst < RANKS; dst++)
				signalled(&r[origin], dst, (uint32_t)draw(RANKS), origin);
		compare("copies with a signal");
	}
}

TEST(strided_over_all_placements)
{
	without_loss(everywhere, 3);
}

TEST(N1_strided_with_loss_and_duplicates)
{
	with_loss_and_duplicates(everywhere);
}

TEST(N4_strided_with_corruption_and_crc32c)
{
	with_corruption_and_crc32c(everywhere);
}

TEST(strided_encrypted_with_loss)
{
	encrypted_with_loss(everywhere);
}

/* ---- partially invalid ranges ---- */

static void nothing_moved(const char *what)
{
	uint32_t i;

	for (i = 0; i < RANKS; i++)
		if (memcmp(r[i].heap, model[i], HEAP))
			FAIL("a strided copy out of range wrote to rank %u: %s", i, what);
}

/* The last block, or one byte of it, is outside of the region: nothing is copied. */
TEST(K3_strided_range_is_checked_before_a_byte_moves)
{
	static const struct { uint64_t at; int64_t stride; uint32_t block, count; } bad[] = {
		{ HEAP - 99 * 512 - 15, 512, 16, 100 },
		{ 99 * 512 - 1, -512, 16, 100 },
		{ AT_SLOTS, 1LL << 40, 16, 2 }, { AT_SLOTS, -(1LL << 40), 16, 2 },
		{ AT_SLOTS, INT64_MAX, 16, 3 }, { AT_SLOTS, INT64_MIN, 16, 3 },
		{ AT_SLOTS, INT64_MIN, 1, 0x7fffffff }, { AT_SLOTS, 1LL << 32, 1, ~0u },
		{ AT_SLOTS, 1000, 200, 100000 },
	};
	struct acp_sqe e = { .op = ACP_OP_STRIDED };
	uint32_t dst, src, i;

	begin(ACP_INTEGRITY_TAG, "");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		for (dst = 0; dst < RANKS; dst++) {
			for (src = 0; src < RANKS; src++) {
				e.size = ACP_BLOCKS(bad[i].block, bad[i].count);
				e.dst = heap_ga(&r[dst], bad[i].at);
				e.a = (uint64_t)bad[i].stride;
				e.src = heap_ga(&r[src], 0);
				e.b = bad[i].block;
				CHECK_EQ(ends(&r[0], &e), ACP_ST_RANGE);
				nothing_moved("destination");
				e.dst = heap_ga(&r[dst], AT_SLOTS);
				e.a = bad[i].block;
				e.src = heap_ga(&r[src], bad[i].at);
				e.b = (uint64_t)bad[i].stride;
				CHECK_EQ(ends(&r[0], &e), ACP_ST_RANGE);
				nothing_moved("source");
			}
		}
	}
}

/* ---- flags ---- */

/* If a copy fails, at either end, in its first or last piece, the flag does not change. */
TEST(A5_a_flag_does_not_change_when_its_data_fails)
{
	struct acp_sqe e = { .op = ACP_OP_COPY_ADD, .b = 1 };
	uint32_t origin, dst, src, i;

	begin(ACP_INTEGRITY_TAG, "");
	for (origin = 0; origin < RANKS; origin += 2) {
		for (dst = 0; dst < RANKS; dst++) {
			for (src = 0; src < RANKS; src++) {
				e.a = heap_ga(&r[dst], AT_COUNTER);
				e.size = 20000;
				e.dst = heap_ga(&r[dst], HEAP - 19999);
				e.src = heap_ga(&r[src], 0);
				CHECK_EQ(ends(&r[origin], &e), ACP_ST_RANGE);
				e.dst = heap_ga(&r[dst], AT_SLOTS);
				e.src = heap_ga(&r[src], HEAP - 19999);
				CHECK_EQ(ends(&r[origin], &e), ACP_ST_RANGE);
				e.size = 8;
				e.src = rank_ga(&r[src], src, ACP_STAG_USER + 7, 0);
				CHECK_EQ(ends(&r[origin], &e), ACP_ST_STAG);
				e.src = heap_ga(&r[src], 0);
				e.dst = rank_ga(&r[dst], dst, ACP_STAG_USER + 7, 0);
				CHECK_EQ(ends(&r[origin], &e), ACP_ST_STAG);
			}
		}
	}
	sleep_ms(20);
	for (i = 0; i < RANKS; i++)
		CHECK_EQ(*(uint64_t *)(r[i].heap + AT_COUNTER), 0);
}

/* ... nor if an access it waits for failed, before or after it was issued. */
TEST(A5_a_flag_does_not_change_when_what_it_waits_for_failed)
{
	struct acp_sqe bad = { .op = ACP_OP_COPY, .size = 5000 };
	struct acp_sqe e = { .op = ACP_OP_COPY_ADD, .b = 1, .size = 8 };
	uint32_t dst, src, i;

	begin(ACP_INTEGRITY_TAG, "");
	for (dst = 0; dst < RANKS; dst++) {
		for (src = 0; src < RANKS; src++) {
			bad.dst = rank_ga(&r[dst], dst, ACP_STAG_USER + 7, 0);
			bad.src = heap_ga(&r[src], 0);
			e.dst = heap_ga(&r[dst], AT_SLOTS);
			e.src = heap_ga(&r[src], 0);
			e.a = heap_ga(&r[dst], AT_COUNTER);
			bad.seen = rank_completed(&r[0]);
			e.seen = bad.seen;
			e.order = rank_push(&r[0], &bad);
			rank_submit(&r[0], &e);
			CHECK_EQ(rank_await(&r[0], r[0].last, PATIENCE_WORK), ACP_ST_ORDER);
		}
	}
	sleep_ms(20);
	for (i = 0; i < RANKS; i++)
		CHECK_EQ(*(uint64_t *)(r[i].heap + AT_COUNTER), 0);
}

/* Its address is validated like that of an atomic, and must be on the rank of the destination. */
TEST(N9_addresses_of_flags)
{
	struct acp_sqe e = { .op = ACP_OP_COPY_SET, .size = 8, .b = 1 };
	uint32_t dst;

	begin(ACP_INTEGRITY_TAG, "");
	for (dst = 0; dst < RANKS; dst++) {
		e.dst = heap_ga(&r[dst], AT_SLOTS);
		e.src = heap_ga(&r[0], 0);
		e.a = 8;
		CHECK_EQ(ends(&r[0], &e), ACP_ST_GA);
		e.a = heap_ga(&r[dst], AT_COUNTER + 4);
		CHECK_EQ(ends(&r[0], &e), ACP_ST_ALIGN);
		e.a = heap_ga(&r[dst], HEAP);
		CHECK_EQ(ends(&r[0], &e), ACP_ST_RANGE);
		e.a = rank_ga(&r[dst], dst, ACP_STAG_USER + 7, 0);
		CHECK_EQ(ends(&r[0], &e), ACP_ST_STAG);
		e.a = heap_ga(&r[(dst + 2) % RANKS], AT_COUNTER);
		CHECK_EQ(ends(&r[0], &e), ACP_ST_OP);
		e.a = heap_ga(&r[dst ^ 1], AT_COUNTER);
		CHECK_EQ(ends(&r[0], &e), ACP_ST_OK);
		CHECK_EQ(*(uint64_t *)(r[dst ^ 1].heap + AT_COUNTER), 1);
	}
}

/* Poll the flag: when it is set, all of its data must be there. */
static void *look(void *arg)
{
	volatile uint64_t *flag = (uint64_t *)(r[3].heap + AT_FLAGS);
	uint64_t value, last = *(uint64_t *)arg;

	for (value = 1; value <= last; value++) {
		while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != value)
			;
		if (!filled(r[3].heap + AT_SLOTS, 20000, value))
			FAIL("flag %llu is there before its data", (unsigned long long)value);
		__atomic_store_n((uint64_t *)(r[0].heap + AT_FLAGS), value, __ATOMIC_RELEASE);
	}
	return NULL;
}

TEST(N3_flag_after_its_data)
{
	uint64_t value, last = test_short() ? 10 : 60;
	struct acp_sqe e = { .op = ACP_OP_COPY_SET, .size = 20000 };
	pthread_t looker;

	begin(ACP_INTEGRITY_TAG, "delay 1ms 1ms loss 5%");
	pthread_create(&looker, NULL, look, &last);
	for (value = 1; value <= last; value++) {
		fill(r[0].heap, 20000, value);
		e.dst = heap_ga(&r[3], AT_SLOTS);
		e.src = heap_ga(&r[0], 0);
		e.a = heap_ga(&r[3], AT_FLAGS);
		e.b = value;
		CHECK_EQ(ends(&r[0], &e), ACP_ST_OK);
		while (__atomic_load_n((uint64_t *)(r[0].heap + AT_FLAGS),
				       __ATOMIC_ACQUIRE) != value)
			sleep_ms(1);
	}
	pthread_join(looker, NULL);
}

/*
 * One datagram and one acknowledgement, like a put without flag. Repeated if a long pause caused a
 * retransmission.
 */
TEST(a_short_copy_and_its_flag_are_one_frame)
{
	struct acp_sqe e = { .op = ACP_OP_COPY_ADD, .b = 1, .size = 64 };
	struct count there, back, again;
	uint64_t tries = 0;

	begin(ACP_INTEGRITY_TAG, "");
	e.dst = heap_ga(&r[3], AT_SLOTS);
	e.src = heap_ga(&r[0], 0);
	e.a = heap_ga(&r[3], AT_COUNTER);
	CHECK_EQ(ends(&r[0], &e), ACP_ST_OK);
	do {
		CHECK(tries++ < 5);
		sleep_ms(50);
		again = nodes_count(&n, 0, "tx_retransmits");
		there = nodes_count(&n, 0, "tx_frames");
		back = nodes_count(&n, 1, "tx_frames");
		CHECK_EQ(ends(&r[0], &e), ACP_ST_OK);
		sleep_ms(50);
	} while (nodes_counter(&n, 0, again.name) != again.before);
	nodes_counted(&there, 1);
	nodes_counted(&back, 1);
	CHECK_EQ(*(uint64_t *)(r[3].heap + AT_COUNTER), 1 + tries);
}

/* ---- commands that complete together ---- */

/*
 * "count" copies of which one fails (or none), then one that waits for the last. Returns its
 * status.
 */
static int together(uint32_t count, uint32_t failing, uint32_t dst, int *waiting)
{
	struct acp_sqe e = { .op = ACP_OP_COPY, .size = 8, .seen = rank_completed(&r[0]) };
	uint64_t last = 0;
	uint32_t i;
	int status;

	for (i = 0; i < count; i++) {
		e.dst = i == failing ? rank_ga(&r[dst], dst, ACP_STAG_USER + 7, 0) :
				       heap_ga(&r[dst], AT_SLOTS + 8 * i);
		e.src = heap_ga(&r[0], 8 * i);
		e.flags = i < count - 1 ? ACP_SQE_MORE : 0;
		last = rank_push(&r[0], &e);
	}
	e.dst = heap_ga(&r[dst], AT_COUNTER);
	e.flags = 0;
	e.order = last;
	rank_submit(&r[0], &e);
	*waiting = rank_await(&r[0], r[0].last, PATIENCE_WORK);
	status = r[0].cq->status[last & (r[0].join.depth - 1)];
	CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[0], AT_SLOTS), heap_ga(&r[0], 0), 8), ACP_ST_OK);
	return status;
}

TEST(A5_the_last_of_several_tells_of_the_first_that_failed)
{
	uint32_t dst, i;
	int waiting;

	begin(ACP_INTEGRITY_TAG, "");
	for (dst = 0; dst < RANKS; dst++) {
		CHECK_EQ(together(20, 20, dst, &waiting), ACP_ST_OK);
		CHECK_EQ(waiting, ACP_ST_OK);
		*(uint64_t *)(r[dst].heap + AT_COUNTER) = 0;
		for (i = 0; i < 20; i += 3) {
			CHECK_EQ(together(20, i, dst, &waiting), ACP_ST_STAG);
			CHECK_EQ(waiting, ACP_ST_ORDER);
		}
		CHECK_EQ(*(uint64_t *)(r[dst].heap + AT_COUNTER), 0);
	}
}

/* ---- the other end disappears ---- */

/* Its memory, its rank, or the network of its node: commands in flight end, none hangs. */
TEST(N12_strided_end_when_the_other_end_goes)
{
	struct acp_sqe e = { .op = ACP_OP_STRIDED, .size = ACP_BLOCKS(100, 200), .a = 110,
			     .b = 100 };
	struct acp_sqe s = { .op = ACP_OP_COPY_ADD, .size = 20000, .b = 1 };
	uint32_t i, k;

	begin(ACP_INTEGRITY_TAG, "delay 2ms");
	for (k = 0; k < 2; k++) {
		uint64_t before = r[0].cq->failed;

		for (i = 0; i < 40; i++) {
			e.dst = heap_ga(&r[i % 2 ? 3 : 0], AT_SLOTS + (i % SLOTS) * SLOT);
			e.src = heap_ga(&r[i % 2 ? 0 : 3], 0);
			submit(&r[0], &e);
			s.dst = e.dst;
			s.src = e.src;
			s.a = heap_ga(&r[i % 2 ? 3 : 0], AT_COUNTER);
			submit(&r[0], &s);
		}
		if (!k) {
			sleep_ms(4);
			rank_close(&r[3]);
		}
		CHECK(rank_await(&r[0], r[0].last, PATIENCE_WORK) >= 0);
		if (k)
			CHECK_EQ(r[0].cq->failed - before, 80);
	}
	CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[2], 8), heap_ga(&r[0], 0), 8), ACP_ST_OK);
}
