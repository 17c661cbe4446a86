// SPDX-License-Identifier: MIT
/* selftest: gate=uml cpus=2 leaks */
/*
 * Numbers that are combined with those of other ranks (ACP_OP_ACCUMULATE): all types, operations
 * and placements; each number once, whatever is lost, repeated or done to it meanwhile.
 */
#include "../dev/isolated.h"

#include <pthread.h>
#include <string.h>

#include "members.h"

#define RANKS	6		/* on three nodes: 0 and 1, 2 and 3, 4 and 5 */
#define NODES	3
#define SOURCE	(64 * 1024UL)	/* offsets in heaps; numbers begin at 0 */
#define MODEL	(256 * 1024UL)
#define COUNTER	(512 * 1024UL)
#define HEAP	(1024 * 1024UL)

static struct nodes n;
static struct rank r[RANKS];
static uint64_t seed = 99;

static void begin_with(uint32_t integrity, uint32_t timeout_ms, const char *netem)
{
	const struct acp_join wish = {
		.integrity = integrity, .heap_size = HEAP, .depth = 512,
		.timeout_ms = timeout_ms, .open_timeout_ms = timeout_ms,
	};

	nodes_open(&n, NODES, 1, false);
	nodes_ranks_like(&n, r, RANKS, &wish);
	if (*netem)
		nodes_impair_all(&n, netem);
}

static void begin(void)
{
	begin_with(ACP_INTEGRITY_TAG, 30000, "");
}

static uint64_t what(int op, int type, uint64_t count)
{
	return ACP_NUMBERS((unsigned int)op, (unsigned int)type, count);
}

static uint64_t submit(uint32_t by, struct acp_sqe e)
{
	e.seen = e.order ? 0 : rank_completed(&r[by]);
	return rank_submit(&r[by], &e);
}

static uint64_t start(uint32_t by, uint64_t dst, uint64_t src, uint64_t numbers)
{
	return submit(by, (struct acp_sqe){
		.op = ACP_OP_ACCUMULATE, .dst = dst, .src = src, .size = numbers });
}

static int run(uint32_t by, uint64_t dst, uint64_t src, uint64_t numbers)
{
	return rank_await(&r[by], start(by, dst, src, numbers), PATIENCE_WORK);
}

static int64_t *word(uint32_t rank, uint64_t offset)
{
	return (int64_t *)(void *)(r[rank].heap + offset);
}

/* ---- Results ---- */

static bool is_operation(int op, int type)
{
	return type < ACP_REDUCE_F32 || op < ACP_REDUCE_AND || op == ACP_REDUCE_REPLACE;
}

/* Any numbers; those of float and double are of a size with which nothing overflows. */
static void draw_numbers(char *to, uint64_t size, int type)
{
	uint64_t i;

	for (i = 0; i < size; i += 8) {
		const uint64_t x = next_random(&seed);
		const double wide = (double)(int32_t)x / 65536;
		const float narrow[2] = { (float)wide, (float)(int16_t)(x >> 32) / 8 };

		if (type == ACP_REDUCE_F64)
			memcpy(to + i, &wide, 8);
		else if (type == ACP_REDUCE_F32)
			memcpy(to + i, narrow, 8);
		else
			memcpy(to + i, &x, 8);
	}
}

/* Compare with what ACP_OP_REDUCE makes of the same numbers at the target, and with all around. */
static void one_of(uint32_t by, uint32_t to, uint32_t from, int op, int type, uint64_t size)
{
	const uint64_t width = type & 1 ? 8 : 4;
	const struct acp_sqe reduce = {
		.op = ACP_OP_REDUCE, .dst = heap_ga(&r[to], MODEL + 8),
		.src = heap_ga(&r[to], MODEL + SOURCE), .size = size, .a = what(op, type, 0),
	};

	draw_numbers(r[to].heap, size + 16, type);
	draw_numbers(r[from].heap + SOURCE, size, type);
	memcpy(r[to].heap + MODEL, r[to].heap, size + 16);
	memcpy(r[to].heap + MODEL + SOURCE, r[from].heap + SOURCE, size);
	CHECK_EQ(rank_await(&r[to], submit(to, reduce), PATIENCE_WORK), ACP_ST_OK);
	CHECK_EQ(run(by, heap_ga(&r[to], 8), heap_ga(&r[from], SOURCE),
		     what(op, type, size / width)), ACP_ST_OK);
	if (memcmp(r[to].heap, r[to].heap + MODEL, size + 16))
		FAIL("operation %d of type %d, %lu bytes, from %u to %u by %u", op, type, size,
		     from, to, by);
}

static void all_operations(size_t count)
{
	static const uint64_t sizes[] = { 136, 8, 128, 4096, 20000 };
	int op, type;
	size_t i;

	for (type = 0; type < ACP_REDUCE_TYPE_END; type++)
		for (op = 0; op < ACP_REDUCE_OP_END; op++)
			for (i = 0; i < count; i++)
				if (is_operation(op, type))
					one_of(0, 2, 1, op, type, sizes[i]);
}

TEST(all_operations_on_all_types)
{
	begin();
	all_operations(5);
}

TEST(all_operations_on_all_types_encrypted)
{
	begin_with(ACP_INTEGRITY_AEAD, 30000, "");
	all_operations(2);
	one_of(0, 2, 1, ACP_REDUCE_SUM, ACP_REDUCE_F64, 20000);
}

TEST(all_operations_on_all_types_with_checksums)
{
	begin_with(ACP_INTEGRITY_CRC32C, 30000, "");
	all_operations(2);
	one_of(0, 2, 1, ACP_REDUCE_SUM, ACP_REDUCE_F64, 20000);
}

/* The numbers go from any rank to any rank, whoever asks for it. */
TEST(memory_of_any_ranks)
{
	static const uint64_t sizes[] = { 8, 120, 4000, 30000 };
	uint32_t by, to, from, i;

	begin();
	for (by = 0; by < RANKS; by += 2)
		for (to = 0; to < RANKS; to++)
			for (from = 0; from < RANKS; from++)
				for (i = 0; i < 4; i++)
					one_of(by, to, from, i, ACP_REDUCE_F64, sizes[i]);
}

/* Frames of all lengths that a path may have. */
TEST(long_frames_are_cut_to_what_a_frame_may_bring)
{
	static const uint32_t mtus[] = { 1280, 4200, 9000 };
	size_t i;

	begin();
	for (i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++) {
		nodes_set_mtu(&n, mtus[i]);
		one_of(0, 2, 1, ACP_REDUCE_SUM, ACP_REDUCE_S32, 40004);
		one_of(0, 2, 4, ACP_REDUCE_SUM, ACP_REDUCE_S64, 40000);
	}
	CHECK_EQ(nodes_counters(&n, "drop_bad_msg"), 0);
}

/* Also of registered memory, which is not contiguous in the kernel, and begins at any number. */
TEST(numbers_of_registered_memory)
{
	const uint64_t size = 5 * PAGE;
	struct memory to, from;
	uint64_t i;

	begin();
	memory_open(&r[2], &to, size + PAGE);
	memory_open(&r[0], &from, size + PAGE);
	for (i = 0; i < (size + PAGE) / 4; i++) {
		((uint32_t *)(void *)to.addr)[i] = (uint32_t)i;
		((uint32_t *)(void *)from.addr)[i] = (uint32_t)i << 16;
	}
	CHECK_EQ(run(0, memory_ga(&to, 4), memory_ga(&from, 804),
		     what(ACP_REDUCE_SUM, ACP_REDUCE_U32, size / 4)), ACP_ST_OK);
	for (i = 0; i < (size + PAGE) / 4; i++)
		CHECK_EQ(((uint32_t *)(void *)to.addr)[i],
			 i && i <= size / 4 ? (uint32_t)(i + ((i + 200) << 16)) : (uint32_t)i);
}

/* ---- Each number once ---- */

#define LENGTH	400		/* numbers: three frames */

/* So many sums from several ranks to one vector, in flight together. Each adds 1. */
static void add_together(uint64_t each, const char *netem)
{
	static const uint32_t adders[] = { 0, 1, 4, 5 };
	uint64_t i, k;
	uint32_t a;

	begin_with(ACP_INTEGRITY_TAG, 30000, netem);
	for (a = 0; a < 4; a++)
		for (k = 0; k < LENGTH; k++)
			word(adders[a], SOURCE)[k] = 1 + (int64_t)k;
	for (i = 0; i < each; i++)
		for (a = 0; a < 4; a++)		/* that of rank 5 is asked for by rank 0 */
			start(adders[a] % 5, heap_ga(&r[2], 0), heap_ga(&r[adders[a]], SOURCE),
			      what(ACP_REDUCE_SUM, ACP_REDUCE_S64, i % 3 ? LENGTH : 3));
	for (a = 0; a < 3; a++)
		for (i = 0; i < each; i++)
			CHECK_EQ(rank_await(&r[adders[a]], r[adders[a]].last - i, PATIENCE_WORK),
				 ACP_ST_OK);
	for (i = 0; i < each; i++)
		CHECK_EQ(rank_await(&r[0], r[0].last - each - i, PATIENCE_WORK), ACP_ST_OK);
	for (k = 0; k < LENGTH; k++)
		CHECK_EQ(word(2, 0)[k], (1 + (int64_t)k) * 4 *
			 (int64_t)(k < 3 ? each : each - (each + 2) / 3));
	CHECK_EQ(word(2, 0)[LENGTH], 0);
}

TEST(each_number_is_added_once)
{
	add_together(60, "");
}

TEST(each_number_is_added_once_whatever_is_lost)
{
	add_together(15, "loss 20% duplicate 20% delay 1ms 1ms");
}

TEST(each_number_is_added_once_whatever_is_repeated)
{
	add_together(40, "duplicate 90% delay 1ms 1ms reorder 50%");
}

struct adder {
	volatile bool over;
	uint64_t done;
};

/* The owner of the memory adds by instructions of the processor. */
static void *add_here(void *state)
{
	struct adder *a = state;

	for (; !a->over; a->done++)
		__atomic_fetch_add(word(2, 0) + a->done % 8, 1, __ATOMIC_RELAXED);
	return NULL;
}

static int64_t sum_of_8(void)
{
	int64_t sum = 0;
	int i;

	for (i = 0; i < 8; i++)
		sum += __atomic_load_n(word(2, 0) + i, __ATOMIC_RELAXED);
	return sum;
}

/* Sums, atomics of other ranks, and those of the owner change the same words. */
TEST(accumulations_are_atomic_with_all_atomics)
{
	struct adder a = { 0 };
	pthread_t thread;
	int i, k;

	begin();
	for (i = 0; i < 8; i++) {
		word(0, SOURCE)[i] = 3;
		word(4, SOURCE)[i] = 5;
	}
	CHECK(!pthread_create(&thread, NULL, add_here, &a));
	for (i = 0; i < 200; i++) {
		start(0, heap_ga(&r[2], 0), heap_ga(&r[0], SOURCE),
		      what(ACP_REDUCE_SUM, ACP_REDUCE_S64, 8));
		start(4, heap_ga(&r[2], 0), heap_ga(&r[4], SOURCE),
		      what(ACP_REDUCE_SUM, ACP_REDUCE_U64, 8));
		start(3, heap_ga(&r[2], 0), heap_ga(&r[4], SOURCE),
		      what(ACP_REDUCE_SUM, ACP_REDUCE_U64, 8));
		rank_atomic(&r[1], ACP_OP_ADD8, heap_ga(&r[1], 0), heap_ga(&r[2], 8), 7, 0, 0);
		rank_atomic(&r[3], ACP_OP_ADD8, heap_ga(&r[3], 0), heap_ga(&r[2], 0), 9, 0, 0);
		if (i % 50 == 49)
			for (k = 0; k < 5; k++)
				CHECK(k == 2 || rank_await(&r[k], r[k].last, PATIENCE_WORK) ==
						ACP_ST_OK);
	}
	a.over = true;
	CHECK(!pthread_join(thread, NULL));
	CHECK_EQ(sum_of_8(), (int64_t)a.done + 200 * (8 * 3 + 2 * 8 * 5 + 7 + 9));
}

/* ---- Order and signals ---- */

static struct acp_sqe with_signal(uint8_t op, uint64_t count, uint64_t flag, uint64_t operand)
{
	return (struct acp_sqe){
		.op = op, .dst = heap_ga(&r[2], 0), .src = heap_ga(&r[0], SOURCE),
		.size = what(ACP_REDUCE_SUM, ACP_REDUCE_S64, count), .a = flag, .b = operand,
	};
}

static void await_word(int64_t *at, int64_t value)
{
	struct patience p = patience_begin(PATIENCE_WORK);

	while (__atomic_load_n(at, __ATOMIC_ACQUIRE) != value)
		CHECK(!patience_over(&p));
}

/* Whoever sees the flag sees the sums; from another rank, too; and without numbers as well. */
TEST(a_signal_is_behind_all_numbers)
{
	static const uint64_t counts[] = { 1, 10, 16, 17, 3000, 0 };
	int64_t total = 0;
	uint32_t round, i;

	begin_with(ACP_INTEGRITY_TAG, 30000, "loss 10% duplicate 10%");
	for (i = 0; i < 3000; i++)
		word(0, SOURCE)[i] = 1;
	for (round = 0; round < 12; round++) {
		const uint64_t count = counts[round % 6], by = round % 4 ? 0 : 4;
		const uint64_t at = heap_ga(&r[2], COUNTER);
		const bool set = round % 5 == 4;

		memset(r[2].heap, 0, 3000 * 8);
		total = set ? 1000 * round : total + round + 1;
		submit((uint32_t)by, with_signal(set ? ACP_OP_ACCUMULATE_SET :
						 ACP_OP_ACCUMULATE_ADD, count, at,
						 set ? 1000 * round : round + 1));
		await_word(word(2, COUNTER), total);
		for (i = 0; i < 3000; i++)
			CHECK_EQ(word(2, 0)[i], i < count);
		CHECK_EQ(rank_await(&r[by], r[by].last, PATIENCE_WORK), ACP_ST_OK);
	}
}

/* What is ordered behind an accumulation finds its result, and it the result of those before. */
TEST(accumulations_are_ordered_as_copies)
{
	uint64_t t = 0;
	int i;

	begin_with(ACP_INTEGRITY_TAG, 30000, "loss 10% delay 1ms 1ms");
	for (i = 0; i < LENGTH; i++)
		word(0, SOURCE)[i] = 2;
	for (i = 0; i < 24; i++) {
		const uint8_t op = i % 2 ? ACP_REDUCE_PROD : ACP_REDUCE_SUM;

		t = submit(0, (struct acp_sqe){
			.op = ACP_OP_ACCUMULATE, .dst = heap_ga(&r[2], 0), .order = t,
			.src = heap_ga(&r[0], SOURCE), .size = what(op, ACP_REDUCE_U64, LENGTH) });
		if (i % 8 == 7)
			t = submit(0, (struct acp_sqe){
				.op = ACP_OP_COPY, .dst = heap_ga(&r[0], (uint64_t)i / 8 * 4096),
				.src = heap_ga(&r[2], 0), .size = 8 * LENGTH, .order = t });
	}
	CHECK_EQ(rank_await(&r[0], t, PATIENCE_WORK), ACP_ST_OK);
	/* x := (x + 2) * 2, four times: x := 16 x + 60. */
	for (i = 0; i < 3; i++) {
		uint64_t x = 0;
		int k;

		for (k = 0; k <= i; k++)
			x = 16 * x + 60;
		for (k = 0; k < LENGTH; k++)
			CHECK_EQ((uint64_t)word(0, (uint64_t)i * 4096)[k], x);
	}
}

/* A wait starts an accumulation; a revocation takes the place of one whose wait has failed. */
TEST(a_schedule_of_accumulations)
{
	uint64_t t;
	int i;

	begin();
	for (i = 0; i < 10; i++)
		word(4, SOURCE)[i] = word(0, SOURCE)[i] = i;
	t = submit(0, (struct acp_sqe){
		.op = ACP_OP_WAIT, .src = heap_ga(&r[0], COUNTER), .a = 1 });
	submit(0, (struct acp_sqe){
		.op = ACP_OP_ACCUMULATE_ADD, .dst = heap_ga(&r[2], 0), .src = heap_ga(&r[0], 0),
		.size = what(ACP_REDUCE_SUM, ACP_REDUCE_S64, 10), .a = heap_ga(&r[2], COUNTER),
		.b = 1, .order = t });
	submit(4, (struct acp_sqe){
		.op = ACP_OP_ACCUMULATE_ADD, .dst = heap_ga(&r[0], 0),
		.src = heap_ga(&r[4], SOURCE), .a = heap_ga(&r[0], COUNTER), .b = 1,
		.size = what(ACP_REDUCE_SUM, ACP_REDUCE_S64, 10) });
	await_word(word(2, COUNTER), 1);
	for (i = 0; i < 10; i++)
		CHECK_EQ(word(2, 0)[i], i);
	t = submit(0, (struct acp_sqe){
		.op = ACP_OP_WAIT, .src = heap_ga(&r[0], COUNTER), .a = 9,
		.dst = ACP_WAIT_RANKS(5, -1) });
	submit(0, (struct acp_sqe){
		.op = ACP_OP_ACCUMULATE_ADD, .flags = ACP_SQE_REVOKE, .dst = heap_ga(&r[2], 0),
		.src = heap_ga(&r[0], 0), .size = what(ACP_REDUCE_SUM, ACP_REDUCE_S64, 10),
		.a = heap_ga(&r[2], COUNTER), .b = 1, .order = t });
	rank_close(&r[5]);
	await_word(word(2, COUNTER), (int64_t)ACP_WORD_REVOKED);
	for (i = 0; i < 10; i++)
		CHECK_EQ(word(2, 0)[i], i);
}

/* ---- What is refused ---- */

static void fails(struct acp_sqe e, int status)
{
	uint32_t i;

	CHECK_EQ(rank_await(&r[0], submit(0, e), PATIENCE_WORK), status);
	for (i = 0; i < 64; i++)
		CHECK_EQ(word(2, 0)[i], 0);
	CHECK_EQ(*word(2, COUNTER), 0);
}

TEST(operands_that_make_no_sense)
{
	const struct acp_sqe good = { .op = ACP_OP_ACCUMULATE };
	struct acp_sqe e;
	unsigned int i;

	begin();
	memset(r[0].heap + SOURCE, 0xff, 4096);
	for (i = 0; i < 8; i++) {
		e = with_signal(ACP_OP_ACCUMULATE, 4, 0, 0);
		e.dst += i;
		e.src += i & 4;
		if (i)
			fails(e, ACP_ST_ALIGN);
		e.dst = heap_ga(&r[2], 0);
		e.src = heap_ga(&r[0], SOURCE) + i;
		if (i)
			fails(e, ACP_ST_ALIGN);
		e = with_signal(ACP_OP_ACCUMULATE_ADD, 4, heap_ga(&r[2], COUNTER) + i, 1);
		if (i)
			fails(e, ACP_ST_ALIGN);
	}
	e = with_signal(good.op, 4, 0, 1);
	fails(e, ACP_ST_OP);
	e = with_signal(good.op, 4, heap_ga(&r[2], COUNTER), 0);
	fails(e, ACP_ST_OP);
	for (i = 0; i < 100; i++) {
		const int op = i % 10 < 9 ? (int)i % 10 : 255, type = i < 90 ? (int)i / 10 : 255;

		e.a = 0;
		e.size = what(op, type, 4);
		if (op >= ACP_REDUCE_OP_END || type >= ACP_REDUCE_TYPE_END ||
		    !is_operation(op, type))
			fails(e, ACP_ST_OP);
	}
	/* The flag is on the node of dst. */
	fails(with_signal(ACP_OP_ACCUMULATE_ADD, 4, heap_ga(&r[4], COUNTER), 1), ACP_ST_OP);
	fails(with_signal(ACP_OP_ACCUMULATE_SET, 4, 0, 1), ACP_ST_GA);
	e = with_signal(good.op, 4, 0, 0);
	e.dst = 0;
	fails(e, ACP_ST_GA);
	/* Without numbers, no addresses are needed, but an operation is. */
	e.size = what(ACP_REDUCE_SUM, ACP_REDUCE_F64, 0);
	fails(e, ACP_ST_OK);
	e.size = what(ACP_REDUCE_OR, ACP_REDUCE_F64, 0);
	fails(e, ACP_ST_OP);
}

/* A command fails without effect where all of its numbers are in one frame. */
TEST(bounds_and_rights)
{
	struct memory closed, shown, written, open;
	struct acp_sqe e = { .op = ACP_OP_ACCUMULATE };
	const uint64_t one = what(ACP_REDUCE_SUM, ACP_REDUCE_S64, 1);
	uint64_t i;

	begin();
	*word(0, SOURCE) = 1;
	CHECK_EQ(rank_register(&r[2], &closed, pages(PAGE, PROT_READ | PROT_WRITE), PAGE, 0), 0);
	CHECK_EQ(rank_register(&r[2], &shown, pages(PAGE, PROT_READ | PROT_WRITE), PAGE,
			       ACP_ACCESS_READ), 0);
	CHECK_EQ(rank_register(&r[2], &written, pages(PAGE, PROT_READ | PROT_WRITE), PAGE,
			       ACP_ACCESS_READ | ACP_ACCESS_WRITE), 0);
	CHECK_EQ(rank_register(&r[2], &open, pages(PAGE, PROT_READ | PROT_WRITE), PAGE,
			       ACP_ACCESS_ATOMIC), 0);
	e.size = one;
	e.src = heap_ga(&r[0], SOURCE);
	e.dst = memory_ga(&closed, 0);
	fails(e, ACP_ST_ACCESS);
	e.dst = memory_ga(&shown, 0);
	fails(e, ACP_ST_ACCESS);
	e.dst = memory_ga(&written, 0);
	fails(e, ACP_ST_ACCESS);
	e.dst = memory_ga(&open, 0);
	fails(e, ACP_ST_OK);
	e.src = memory_ga(&open, 0);
	e.dst = heap_ga(&r[2], 0);
	fails(e, ACP_ST_ACCESS);		/* it is not for reading */
	e.src = heap_ga(&r[0], SOURCE);
	e.dst = heap_ga(&r[2], HEAP - 8);
	fails(e, ACP_ST_OK);
	e.dst += 8;
	fails(e, ACP_ST_RANGE);
	e.dst -= 8;
	e.size = what(ACP_REDUCE_SUM, ACP_REDUCE_S64, 2);
	fails(e, ACP_ST_RANGE);
	e.size = one;
	e.src = heap_ga(&r[0], HEAP);
	fails(e, ACP_ST_RANGE);
	e.size = what(ACP_REDUCE_SUM, ACP_REDUCE_S64, (1ULL << 48) - 1);
	fails(e, ACP_ST_RANGE);
	/* The flag does not permit it, after the numbers were combined, or does not exist. */
	e = with_signal(ACP_OP_ACCUMULATE_ADD, 1, memory_ga(&shown, 0), 1);
	e.dst = memory_ga(&open, 0);
	fails(e, ACP_ST_ACCESS);
	e.a = heap_ga(&r[2], HEAP);
	fails(e, ACP_ST_RANGE);
	CHECK_EQ(*(int64_t *)(void *)closed.addr + *(int64_t *)(void *)shown.addr +
		 *(int64_t *)(void *)written.addr, 0);
	CHECK_EQ(*(int64_t *)(void *)open.addr, 3);
	CHECK_EQ(word(2, HEAP)[-1], 1);
	/* A long vector fails, its numbers change once at most, and its flag does not. */
	for (i = 0; i < 3000; i++)
		word(0, SOURCE)[i] = 1;
	e = with_signal(ACP_OP_ACCUMULATE_ADD, 3000, heap_ga(&r[2], COUNTER), 1);
	e.dst = heap_ga(&r[2], HEAP - 8 * 1500);
	memset(r[2].heap + HEAP - 8 * 1500, 0, 8 * 1500);
	fails(e, ACP_ST_RANGE);
	for (i = 0; i < 1500; i++)
		CHECK(word(2, HEAP - 8 * 1500)[i] == 0 || word(2, HEAP - 8 * 1500)[i] == 1);
}

/* The memory goes, the target goes: an error within the time-out, and no number changes twice. */
TEST(the_target_goes)
{
	struct memory m;
	uint32_t left;
	uint64_t i;

	begin_with(ACP_INTEGRITY_TAG, 3000, "");
	memory_open(&r[2], &m, 64 * PAGE);
	for (i = 0; i < 64 * PAGE / 8; i++)
		word(0, SOURCE)[i] = 1;
	start(0, memory_ga(&m, 0), heap_ga(&r[0], SOURCE),
	      what(ACP_REDUCE_SUM, ACP_REDUCE_S64, 64 * PAGE / 8));
	CHECK_EQ(rank_unregister(&r[2], m.reg.key, &left), 0);
	i = (uint64_t)rank_await(&r[0], r[0].last, PATIENCE_WORK);
	CHECK(i == ACP_ST_STAG || i == ACP_ST_OK);
	for (i = 0; i < 64 * PAGE / 8; i++)
		CHECK((uint64_t)((int64_t *)(void *)m.addr)[i] <= 1);
	nodes_impair(&n, 1, "loss 100%");
	start(0, heap_ga(&r[2], 0), heap_ga(&r[0], SOURCE),
	      what(ACP_REDUCE_SUM, ACP_REDUCE_S64, 1000));
	start(4, heap_ga(&r[2], 0), heap_ga(&r[0], SOURCE),
	      what(ACP_REDUCE_SUM, ACP_REDUCE_S64, 1000));
	CHECK_EQ(rank_await(&r[0], r[0].last, PATIENCE_WORK), ACP_ST_TIMEOUT);
	CHECK_EQ(rank_await(&r[4], r[4].last, PATIENCE_WORK), ACP_ST_TIMEOUT);
	rank_close(&r[3]);
	rank_close(&r[2]);
	nodes_impair(&n, 1, "");
	CHECK_EQ(run(0, heap_ga(&r[4], 0), heap_ga(&r[0], SOURCE),
		     what(ACP_REDUCE_SUM, ACP_REDUCE_S64, 1000)), ACP_ST_OK);
}

/* ---- The library ---- */

#define AT	64		/* offsets in starter memory */
#define FLAG	1024

static int accumulate(int to, int from, size_t count, int op, int type)
{
	return member_status(acpx_accumulate(member_at(to, AT), member_at(from, AT), count, op,
					     type, ACP_HANDLE_ALL));
}

/* Numbers of rank 1 go to rank 3, the flag is that of any rank. */
static int signal_of_3(int rank, int signal)
{
	return member_status(acpx_accumulate_signal(member_at(3, AT), member_at(1, AT), 4, ACPX_MAX,
						    ACPX_DOUBLE, member_at(rank, FLAG), 5, signal,
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
		CHECK_EQ(accumulate(2, 3, 10, ACPX_SUM, ACPX_DOUBLE), 0);
		CHECK_EQ(accumulate(2, 2, 5, ACPX_PROD, ACPX_DOUBLE), 0);
		CHECK_EQ(accumulate(2, 1, 10, ACPX_REPLACE + 1, ACPX_DOUBLE), ACPX_EOP);
		CHECK_EQ(accumulate(2, 1, 10, ACPX_AND, ACPX_FLOAT), ACPX_EOP);
		CHECK_EQ(accumulate(2, 1, SIZE_MAX, ACPX_AND, ACPX_INT64), ACPX_EOP);
		CHECK_EQ(accumulate(2, 1, 1000000, ACPX_SUM, ACPX_DOUBLE), ACPX_ERANGE);
		CHECK_EQ(accumulate(2, 3, 0, ACPX_SUM, ACPX_DOUBLE), 0);
		/* The flag may be anywhere. */
		for (i = 0; i < 4; i++)
			CHECK_EQ(signal_of_3(i, i % 2 ? ACPX_SIGNAL_ADD : ACPX_SIGNAL_SET), 0);
		CHECK_EQ(signal_of_3(3, 4), ACPX_EOP);
	}
	CHECK_EQ(acp_sync(), 0);
	CHECK_EQ(*(uint64_t *)(void *)member_word(FLAG), 5);
	for (i = 0; i < 20 && acp_rank() == 2; i++) {
		const double sum = i < 10 ? 2 + i + 3 + i : 2 + i;

		CHECK(here[i] == (i < 5 ? sum * sum : sum));
	}
	CHECK_EQ(acp_finalize(), 0);
}

TEST(the_library_accumulates)
{
	members_run(4, 2, use_library);
}
