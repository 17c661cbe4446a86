// SPDX-License-Identifier: MIT
/* selftest: cpus=2 leaks */
/*
 * Commands that combine numbers (ACP_OP_REDUCE) of ranks of one node: results in all of memory,
 * order, what is refused, and memory that changes or goes meanwhile. That each result is right in
 * all its bits is for unit/test_reduce.
 */
#include "isolated.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "rank.h"

#define RANKS	3
#define HEAP	(256 * 1024UL)
#define LONG	4096UL			/* more bytes are combined later */

static struct rank r[RANKS];
static char *model[RANKS];
static uint64_t seed = 77;

static uint64_t draw(uint64_t most)
{
	return next_random(&seed) % most;
}

/* Fill with numbers that are good for all types: no NaN, and sums that are rounded. */
static void fill_numbers(char *p, size_t size, int type)
{
	size_t i, n = size / (type & 1 ? 8 : 4);

	for (i = 0; i < n; i++) {
		const int64_t x = (int64_t)next_random(&seed);

		if (type == ACP_REDUCE_F32)
			((float *)(void *)p)[i] = (float)(int32_t)x / 1000.f;
		else if (type == ACP_REDUCE_F64)
			((double *)(void *)p)[i] = (double)x / 1000.;
		else if (type & 1)
			((int64_t *)(void *)p)[i] = x;
		else
			((int32_t *)(void *)p)[i] = (int32_t)x;
	}
}

static void begin(void)
{
	struct setup s;
	uint32_t i;

	for (i = 0; i < RANKS; i++) {
		setup_local(&s, i, RANKS);
		s.join.heap_size = HEAP;
		s.join.depth = 512;
		if (i)
			s.join.job = r[0].join.job;
		rank_open(&r[i], &s);
		model[i] = malloc(HEAP);
		fill_numbers(r[i].heap, HEAP, ACP_REDUCE_F64);
		memcpy(model[i], r[i].heap, HEAP);
	}
}

static void check_memory(void)
{
	uint32_t i;

	for (i = 0; i < RANKS; i++)
		CHECK(!memcmp(r[i].heap, model[i], HEAP));
}

static uint64_t start(struct rank *by, uint64_t dst, uint64_t src, uint64_t size, uint64_t what,
		      uint64_t order)
{
	const struct acp_sqe e = {
		.op = ACP_OP_REDUCE, .dst = dst, .src = src, .size = size, .a = what,
		.order = order, .seen = order ? 0 : rank_completed(by),
	};

	return rank_submit(by, &e);
}

static int run(struct rank *by, uint64_t dst, uint64_t src, uint64_t size, uint64_t what)
{
	return rank_await(by, start(by, dst, src, size, what, 0), PATIENCE_WORK);
}

/* ---- What the processor computes ---- */

#define COMBINE(x, y)								\
	switch (op) {								\
	case ACP_REDUCE_SUM:							\
		(x) = (__typeof__(x))((x) + (y));				\
		break;								\
	case ACP_REDUCE_PROD:							\
		(x) = (__typeof__(x))((x) * (y));				\
		break;								\
	case ACP_REDUCE_MIN:							\
		(x) = (y) < (x) ? (y) : (x);					\
		break;								\
	case ACP_REDUCE_MAX:							\
		(x) = (y) > (x) ? (y) : (x);					\
		break;								\
	default:								\
		(x) = (y);							\
	}

static uint64_t bits(int op, uint64_t x, uint64_t y)
{
	return op == ACP_REDUCE_AND ? x & y : op == ACP_REDUCE_OR ? x | y : x ^ y;
}

static void combine(char *to, const char *from, int op, int type)
{
	union number {
		int32_t s32;
		int64_t s64;
		uint32_t u32;
		uint64_t u64;
		float f32;
		double f64;
	} x = { 0 }, y = { 0 };
	const size_t width = type & 1 ? 8 : 4;

	memcpy(&x, to, width);
	memcpy(&y, from, width);
	if (op >= ACP_REDUCE_AND && op <= ACP_REDUCE_XOR) {
		x.u64 = bits(op, x.u64, y.u64);
	} else if (op <= ACP_REDUCE_PROD && type <= ACP_REDUCE_S64) {
		/* Overflow is defined as that of unsigned numbers. */
		COMBINE(x.u64, y.u64);
	} else if (type == ACP_REDUCE_S32) {
		COMBINE(x.s32, y.s32);
	} else if (type == ACP_REDUCE_S64) {
		COMBINE(x.s64, y.s64);
	} else if (type == ACP_REDUCE_U32) {
		COMBINE(x.u32, y.u32);
	} else if (type == ACP_REDUCE_U64) {
		COMBINE(x.u64, y.u64);
	} else if (type == ACP_REDUCE_F32) {
		COMBINE(x.f32, y.f32);
	} else {
		COMBINE(x.f64, y.f64);
	}
	memcpy(to, &x, width);
}

static void expect(uint32_t to, uint64_t dst, uint32_t from, uint64_t src, uint64_t size, int op,
		   int type)
{
	const uint64_t width = type & 1 ? 8 : 4;
	uint64_t i;

	for (i = 0; i < size; i += width)
		combine(model[to] + dst + i, model[from] + src + i, op, type);
}

/* ---- Results ---- */

static bool is_operation(int op, int type)
{
	return type < ACP_REDUCE_F32 || op < ACP_REDUCE_AND || op == ACP_REDUCE_REPLACE;
}

/* Combine numbers of any two ranks, at any places, in their order. */
static void one_of(int op, int type, uint64_t size)
{
	const uint64_t width = type & 1 ? 8 : 4;
	const uint32_t by = (uint32_t)draw(RANKS), to = (uint32_t)draw(RANKS);
	const uint32_t from = (uint32_t)draw(RANKS);
	const uint64_t dst = draw(HEAP / 2 - size) / width * width;
	const uint64_t src = HEAP / 2 + draw(HEAP / 2 - size) / width * width;

	fill_numbers(r[to].heap + dst, size, type);
	memcpy(model[to], r[to].heap, HEAP);
	fill_numbers(r[from].heap + src, size, type);
	memcpy(model[from], r[from].heap, HEAP);
	CHECK_EQ(run(&r[by], heap_ga(&r[to], dst), heap_ga(&r[from], src), size,
		     ACP_REDUCE(op, type)), ACP_ST_OK);
	expect(to, dst, from, src, size, op, type);
	check_memory();
}

TEST(all_operations_on_all_types)
{
	static const uint64_t sizes[] = { 8, 16, 24, 800, LONG, LONG + 8, 70000 };
	int op, type;
	size_t i;

	begin();
	for (type = 0; type < ACP_REDUCE_TYPE_END; type++)
		for (op = 0; op < ACP_REDUCE_OP_END; op++)
			for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
				if (is_operation(op, type))
					one_of(op, type, sizes[i]);
}

/* Also of registered memory, which is not contiguous in the kernel. */
TEST(numbers_of_registered_memory)
{
	struct memory to, from;
	uint64_t i, size = 5 * PAGE;
	double *sum = malloc(size);

	begin();
	memory_open(&r[1], &to, size + PAGE);
	memory_open(&r[2], &from, size + PAGE);
	fill_numbers(to.addr, size + PAGE, ACP_REDUCE_F64);
	fill_numbers(from.addr, size + PAGE, ACP_REDUCE_F64);
	for (i = 0; i < size / 8; i++)
		sum[i] = ((double *)(void *)to.addr)[1 + i] +
			 ((double *)(void *)from.addr)[100 + i];
	CHECK_EQ(run(&r[0], memory_ga(&to, 8), memory_ga(&from, 800), size,
		     ACP_REDUCE(ACP_REDUCE_SUM, ACP_REDUCE_F64)), ACP_ST_OK);
	CHECK(!memcmp(to.addr + 8, sum, size));
}

TEST(no_numbers_need_no_addresses)
{
	begin();
	CHECK_EQ(run(&r[0], 5, ~0ULL, 0, ACP_REDUCE(ACP_REDUCE_MAX, ACP_REDUCE_F32)), ACP_ST_OK);
	CHECK_EQ(run(&r[0], 5, ~0ULL, 0, ACP_REDUCE(ACP_REDUCE_AND, ACP_REDUCE_F32)), ACP_ST_OP);
	check_memory();
}

/* dst may be src; if they overlap otherwise, the overlap has any numbers, and nothing else does. */
TEST(dst_may_be_src_and_overlap_does_no_harm)
{
	static const uint64_t sizes[] = { 800, 40000 };
	uint64_t i, at = 64 * 1024, apart;

	begin();
	for (i = 0; i < 2; i++) {
		CHECK_EQ(run(&r[0], heap_ga(&r[1], at), heap_ga(&r[1], at), sizes[i],
			     ACP_REDUCE(ACP_REDUCE_SUM, ACP_REDUCE_F64)), ACP_ST_OK);
		expect(1, at, 1, at, sizes[i], ACP_REDUCE_SUM, ACP_REDUCE_F64);
		check_memory();
		for (apart = 8; apart < sizes[i]; apart = apart * 3 / 8 * 8) {
			CHECK_EQ(run(&r[0], heap_ga(&r[1], at), heap_ga(&r[1], at - apart),
				     sizes[i], ACP_REDUCE(ACP_REDUCE_XOR, ACP_REDUCE_U64)),
				 ACP_ST_OK);
			memcpy(model[1] + at, r[1].heap + at, sizes[i]);
			check_memory();
			CHECK_EQ(run(&r[0], heap_ga(&r[1], at - apart), heap_ga(&r[1], at),
				     sizes[i], ACP_REDUCE(ACP_REDUCE_XOR, ACP_REDUCE_U64)),
				 ACP_ST_OK);
			memcpy(model[1] + at - apart, r[1].heap + at - apart, sizes[i]);
			check_memory();
		}
	}
}

/* ---- Order ---- */

/* Each one reads what the one before wrote, whether it is combined at once or later. */
TEST(commands_behind_each_other)
{
	const uint64_t what = ACP_REDUCE(ACP_REDUCE_SUM, ACP_REDUCE_S64);
	uint64_t ticket = 0, size;
	int i;

	begin();
	for (i = 0; i < 200; i++) {
		const uint32_t to = (uint32_t)draw(RANKS), from = (uint32_t)draw(RANKS);

		size = i % 4 ? 400 : 3 * LONG;
		if (i % 3) {
			ticket = start(&r[0], heap_ga(&r[to], 0), heap_ga(&r[from], HEAP / 2),
				       size, what, ticket);
			expect(to, 0, from, HEAP / 2, size, ACP_REDUCE_SUM, ACP_REDUCE_S64);
		} else {
			ticket = rank_copy(&r[0], heap_ga(&r[to], HEAP / 2), heap_ga(&r[from], 0),
					   size, ticket);
			memmove(model[to] + HEAP / 2, model[from], size);
		}
	}
	CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_WORK), ACP_ST_OK);
	check_memory();
}

TEST(nothing_is_combined_behind_a_failure)
{
	uint64_t bad, behind;

	begin();
	bad = rank_copy(&r[0], heap_ga(&r[0], HEAP), heap_ga(&r[0], 0), 8, 0);
	behind = start(&r[0], heap_ga(&r[1], 0), heap_ga(&r[2], 0), 80,
		       ACP_REDUCE(ACP_REDUCE_SUM, ACP_REDUCE_F64), bad);
	CHECK_EQ(rank_await(&r[0], behind, PATIENCE_SOON), ACP_ST_ORDER);
	check_memory();
}

/* Copies, numbers combined at once and later, and waits for what they wrote, in turn. */
TEST(waits_and_copies_between_them)
{
	const uint64_t what = ACP_REDUCE(ACP_REDUCE_SUM, ACP_REDUCE_U64), size = 65536;
	uint64_t *x, ticket = 0, i;

	begin();
	x = (uint64_t *)(void *)r[1].heap;
	memset(x, 0, HEAP);
	x[0] = 1;
	x[size / 8 - 1] = 1;
	for (i = 1; i <= 60; i++) {
		ticket = rank_copy(&r[1], heap_ga(&r[2], size), heap_ga(&r[1], 0), size, ticket);
		ticket = start(&r[1], heap_ga(&r[1], 0), heap_ga(&r[2], size), size, what, ticket);
		ticket = rank_submit(&r[1], &(struct acp_sqe){
			.op = ACP_OP_WAIT, .src = heap_ga(&r[1], size - 8), .a = 1ULL << i,
			.order = ticket });
		ticket = start(&r[1], heap_ga(&r[1], size), heap_ga(&r[1], 0), 8, what, ticket);
	}
	CHECK_EQ(rank_await(&r[1], ticket, PATIENCE_WORK), ACP_ST_OK);
	CHECK_EQ(x[0], 1ULL << 60);
	CHECK_EQ(x[size / 8 - 1], 1ULL << 60);
	CHECK_EQ(x[size / 8], (1ULL << 61) - 2);
}

/* Waits for a word are told that it was written. */
TEST(a_wait_ends_when_its_word_is_combined)
{
	const uint64_t sizes[] = { 8, 2 * LONG };
	uint64_t i, ticket;

	begin();
	for (i = 0; i < 2; i++) {
		const struct acp_sqe e = {
			.op = ACP_OP_WAIT, .src = heap_ga(&r[1], 0), .a = 10,
			.seen = rank_completed(&r[1]),
		};

		*(uint64_t *)(void *)r[1].heap = 4;
		*(uint64_t *)(void *)r[2].heap = 6;
		ticket = rank_submit(&r[1], &e);
		CHECK_EQ(rank_wait(&r[1], ticket, 0), -1);
		CHECK_EQ(run(&r[0], heap_ga(&r[1], 0), heap_ga(&r[2], 0), sizes[i],
			     ACP_REDUCE(ACP_REDUCE_SUM, ACP_REDUCE_U64)), ACP_ST_OK);
		CHECK_EQ(rank_await(&r[1], ticket, PATIENCE_SOON), ACP_ST_OK);
	}
}

/* ---- What is refused ---- */

static int refused(struct acp_sqe e)
{
	e.op = ACP_OP_REDUCE;
	e.dst = e.dst ?: heap_ga(&r[1], 0);
	e.src = e.src ?: heap_ga(&r[2], 0);
	e.size = e.size ?: 80;
	e.seen = rank_completed(&r[0]);
	return rank_await(&r[0], rank_submit(&r[0], &e), PATIENCE_SOON);
}

TEST(wrong_entries_are_refused)
{
	const uint64_t wide = ACP_REDUCE(ACP_REDUCE_SUM, ACP_REDUCE_F64);
	const uint64_t narrow = ACP_REDUCE(ACP_REDUCE_SUM, ACP_REDUCE_F32);
	uint64_t i, what;

	begin();
	for (i = 1; i < 8; i++) {
		CHECK_EQ(refused((struct acp_sqe){ .a = wide, .size = 80 + i }), ACP_ST_OP);
		CHECK_EQ(refused((struct acp_sqe){ .a = wide, .dst = heap_ga(&r[1], i) }),
			 ACP_ST_ALIGN);
		CHECK_EQ(refused((struct acp_sqe){ .a = wide, .src = heap_ga(&r[1], i) }),
			 ACP_ST_ALIGN);
		if (i == 4)
			continue;
		CHECK_EQ(refused((struct acp_sqe){ .a = narrow, .size = 80 + i }), ACP_ST_OP);
		CHECK_EQ(refused((struct acp_sqe){ .a = narrow, .dst = heap_ga(&r[1], i) }),
			 ACP_ST_ALIGN);
	}
	for (i = ACP_REDUCE_AND; i <= ACP_REDUCE_XOR; i++) {
		what = ACP_REDUCE(i, ACP_REDUCE_F32);
		CHECK_EQ(refused((struct acp_sqe){ .a = what }), ACP_ST_OP);
		CHECK_EQ(refused((struct acp_sqe){ .a = what + 256 }), ACP_ST_OP);
	}
	CHECK_EQ(refused((struct acp_sqe){ .a = ACP_REDUCE_OP_END }), ACP_ST_OP);
	CHECK_EQ(refused((struct acp_sqe){ .a = 255 }), ACP_ST_OP);
	CHECK_EQ(refused((struct acp_sqe){ .a = ACP_REDUCE(0, ACP_REDUCE_TYPE_END) }), ACP_ST_OP);
	for (i = 16; i < 64; i++)
		CHECK_EQ(refused((struct acp_sqe){ .a = wide | 1ULL << i }), ACP_ST_OP);
	CHECK_EQ(refused((struct acp_sqe){ .a = wide, .b = 1 }), ACP_ST_OP);
	CHECK_EQ(refused((struct acp_sqe){ .a = wide, .flags = ACP_SQE_RETRY }), ACP_ST_OP);
	CHECK_EQ(refused((struct acp_sqe){ .a = wide, .flags = ACP_SQE_RENDEZVOUS }), ACP_ST_OP);
	CHECK_EQ(refused((struct acp_sqe){ .a = wide, .size = ~7ULL }), ACP_ST_OP);
	CHECK_EQ(refused((struct acp_sqe){ .a = wide, .size = ACP_COPY_MAX }), ACP_ST_RANGE);
	CHECK_EQ(refused((struct acp_sqe){ .a = wide, .dst = 8 }), ACP_ST_GA);
	CHECK_EQ(refused((struct acp_sqe){ .a = wide, .src = ~7ULL }), ACP_ST_GA);
	CHECK_EQ(refused((struct acp_sqe){ .a = wide, .dst = heap_ga(&r[1], HEAP - 72) }),
		 ACP_ST_RANGE);
	CHECK_EQ(refused((struct acp_sqe){ .a = wide, .src = heap_ga(&r[1], HEAP - 72) }),
		 ACP_ST_RANGE);
	CHECK_EQ(refused((struct acp_sqe){
		.a = wide, .src = rank_ga(&r[0], 1, ACP_STAG_USER, 0) }), ACP_ST_STAG);
	/* Long ones are checked as a whole before the first number changes. */
	CHECK_EQ(refused((struct acp_sqe){
		.a = wide, .dst = heap_ga(&r[1], HEAP - 80000), .size = 80008 }), ACP_ST_RANGE);
	CHECK_EQ(refused((struct acp_sqe){
		.a = wide, .src = heap_ga(&r[1], HEAP - 80000), .size = 80008 }), ACP_ST_RANGE);
	check_memory();
}

/* The second operands are read, the first ones written: whoever may write may have them read. */
TEST(memory_must_permit_it)
{
	static const uint32_t rights[] = {
		0, ACP_ACCESS_READ, ACP_ACCESS_WRITE, ACP_ACCESS_ATOMIC, ACP_ACCESS_ALL,
		ACP_ACCESS_READ | ACP_ACCESS_RO,
	};
	const uint64_t what = ACP_REDUCE(ACP_REDUCE_OR, ACP_REDUCE_S32);
	uint64_t size;
	size_t i;

	begin();
	for (i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
		struct memory m;

		CHECK_EQ(rank_register(&r[1], &m, pages(3 * PAGE, PROT_READ | PROT_WRITE),
				       3 * PAGE, rights[i]), 0);
		for (size = 8; size <= 3 * PAGE; size += 3 * PAGE - 8) {
			CHECK_EQ(run(&r[0], memory_ga(&m, 0), heap_ga(&r[2], 0), size, what),
				 rights[i] & ACP_ACCESS_WRITE ? ACP_ST_OK : ACP_ST_ACCESS);
			CHECK_EQ(run(&r[0], heap_ga(&r[2], 0), memory_ga(&m, 0), size, what),
				 rights[i] & ACP_ACCESS_READ ? ACP_ST_OK : ACP_ST_ACCESS);
			/* Its owner may do what it wants, unless it is pinned for reading. */
			CHECK_EQ(run(&r[1], memory_ga(&m, 0), memory_ga(&m, 0), size, what),
				 rights[i] & ACP_ACCESS_RO ? ACP_ST_ACCESS : ACP_ST_OK);
		}
	}
}

/* ---- Where memory begins, ends, and is the same ---- */

/* Return whether exactly the bytes [first, end) of the pages are set. */
static bool only_set(const char *p, size_t size, uint64_t first, uint64_t end)
{
	uint64_t i;

	for (i = 0; i < size; i++)
		if (p[i] != (char)(i >= first && i < end ? 0xff : 0))
			return false;
	return true;
}

TEST(memory_that_begins_and_ends_within_a_page)
{
	const uint64_t what = ACP_REDUCE(ACP_REDUCE_OR, ACP_REDUCE_U64), length = 2 * PAGE + 48;
	char *p = pages(4 * PAGE, PROT_READ | PROT_WRITE);
	uint64_t begin_at, first, size;
	uint32_t left;

	begin();
	memset(r[2].heap, 0xff, 4 * PAGE);
	for (begin_at = 0; begin_at < 24; begin_at++) {
		struct memory m;

		memset(p, 0, 4 * PAGE);
		CHECK_EQ(rank_register(&r[1], &m, p + begin_at, length, ACP_ACCESS_ALL), 0);
		first = (begin_at + 7) & ~7ULL;
		size = (begin_at + length - first) & ~7ULL;
		CHECK_EQ(run(&r[0], memory_ga(&m, first - begin_at), heap_ga(&r[2], 0), size + 8,
			     what), ACP_ST_RANGE);
		CHECK_EQ(run(&r[0], heap_ga(&r[2], 0), memory_ga(&m, first - begin_at), size + 8,
			     what), ACP_ST_RANGE);
		CHECK_EQ(run(&r[0], memory_ga(&m, first - begin_at), heap_ga(&r[2], 0), size,
			     what), ACP_ST_OK);
		CHECK(only_set(p, 4 * PAGE, first, first + size));
		CHECK_EQ(rank_unregister(&r[1], m.reg.key, &left), 0);
	}
}

/* Two ranks have registered the same pages: the overlap is not known by its addresses. */
TEST(overlap_by_other_addresses_does_no_harm)
{
	const uint64_t all = 40 * PAGE, size = 36 * PAGE;
	char *p = pages(all, PROT_READ | PROT_WRITE);
	struct memory a, b;
	uint64_t apart;

	begin();
	CHECK_EQ(rank_register(&r[1], &a, p + 2 * PAGE, size, ACP_ACCESS_ALL), 0);
	CHECK_EQ(rank_register(&r[2], &b, p, all, ACP_ACCESS_ALL), 0);
	for (apart = 0; apart < 4 * PAGE; apart += 1016) {
		memset(p, 0, all);
		memset(p + 2 * PAGE, 0xff, size);
		CHECK_EQ(run(&r[0], memory_ga(&a, 0), memory_ga(&b, apart), size,
			     ACP_REDUCE(ACP_REDUCE_OR, ACP_REDUCE_U32)), ACP_ST_OK);
		CHECK(only_set(p, all, 2 * PAGE, 2 * PAGE + size));
	}
}

#define HUGE	(2UL << 20)	/* bytes of a huge page, where it matters */

/* Huge pages, if there are any, with small ones, at offsets that differ. */
TEST(numbers_of_huge_pages)
{
	const uint64_t what = ACP_REDUCE(ACP_REDUCE_SUM, ACP_REDUCE_U64), n = 3 * HUGE / 8;
	char *p = pages(4 * HUGE, PROT_READ | PROT_WRITE);
	uint64_t *x = (void *)(((uintptr_t)p + HUGE - 1) & ~(HUGE - 1)), *y, i;
	struct memory m, small;

	begin();
	madvise(x, 3 * HUGE, MADV_HUGEPAGE);
	memory_open(&r[2], &small, 3 * HUGE);
	y = (void *)small.addr;
	for (i = 0; i < n; i++) {
		x[i] = i;
		y[i] = 3 * i;
	}
	CHECK_EQ(rank_register(&r[1], &m, x, 3 * HUGE, ACP_ACCESS_ALL), 0);
	CHECK_EQ(run(&r[0], memory_ga(&m, 8), memory_ga(&small, 16), 3 * HUGE - 16, what),
		 ACP_ST_OK);
	CHECK(!x[0] && x[n - 1] == n - 1);
	for (i = 1; i < n - 1; i++)
		CHECK_EQ(x[i], 4 * i + 3);
	CHECK_EQ(run(&r[0], memory_ga(&small, 24), memory_ga(&m, 8), 3 * HUGE - 24, what),
		 ACP_ST_OK);
	for (i = 3; i < n; i++)
		CHECK_EQ(y[i], 7 * i - 5);
}

/* ---- Memory that goes or changes meanwhile ---- */

#define MUCH	(8UL << 20)	/* more than a call combines: a worker does the rest */

static int stop;

/* Remove memory while its numbers are combined.  True if the command found that. */
static bool removed_meanwhile(bool dst)
{
	const uint64_t what = ACP_REDUCE(ACP_REDUCE_PROD, ACP_REDUCE_F32);
	struct memory going, other;
	char *before = malloc(MUCH);
	uint64_t ticket;
	uint32_t left;
	int status;

	memory_open(&r[1], &going, MUCH);
	memory_open(&r[2], &other, MUCH);
	memset(going.addr, 0x3f, MUCH);
	memset(other.addr, 0x3e, MUCH);
	ticket = start(&r[0], memory_ga(dst ? &going : &other, 0),
		       memory_ga(dst ? &other : &going, 0), MUCH, what, 0);
	CHECK_EQ(rank_unregister(&r[1], going.reg.key, &left), 0);
	memcpy(before, going.addr, MUCH);
	status = rank_await(&r[0], ticket, PATIENCE_WORK);
	CHECK(status == ACP_ST_OK || status == ACP_ST_STAG);
	/* Nobody has written to it any more. */
	CHECK(!memcmp(before, going.addr, MUCH));
	CHECK_EQ(rank_unregister(&r[2], other.reg.key, &left), 0);
	munmap(going.addr, MUCH);
	munmap(other.addr, MUCH);
	free(before);
	return status == ACP_ST_STAG;
}

TEST(memory_that_is_unregistered_meanwhile)
{
	struct patience p = patience_begin(PATIENCE_WORK);
	int i, found = 0;

	begin();
	for (i = 0; i < 10 || (found < 2 && !patience_over(&p)); i++)
		found += removed_meanwhile(i % 2);
	CHECK(found);
	CHECK_EQ(run(&r[0], heap_ga(&r[1], 0), heap_ga(&r[2], 0), 800,
		     ACP_REDUCE(ACP_REDUCE_SUM, ACP_REDUCE_F64)), ACP_ST_OK);
	expect(1, 0, 2, 0, 800, ACP_REDUCE_SUM, ACP_REDUCE_F64);
	check_memory();
}

static void *write_again_and_again(void *unused)
{
	uint64_t *p = (uint64_t *)(void *)r[1].heap, *q = (uint64_t *)(void *)r[2].heap, i;

	for (i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
		/* All halves of these numbers are alike: a number that is torn is seen. */
		__atomic_store_n(&p[i % 512], (i & 0xff) * 0x0101010101010101ULL, __ATOMIC_RELAXED);
		__atomic_store_n(&q[i % 512], (i >> 9 & 0xff) * 0x0101010101010101ULL,
				 __ATOMIC_RELAXED);
	}
	return unused;
}

/* A number is read and written at once, whoever writes it meanwhile. */
TEST(numbers_are_not_torn)
{
	uint64_t *p, i, k;
	pthread_t thread;

	begin();
	p = (uint64_t *)(void *)r[1].heap;
	memset(r[1].heap, 0, 4096);
	memset(r[2].heap, 0, 4096);
	CHECK_EQ(pthread_create(&thread, NULL, write_again_and_again, NULL), 0);
	for (i = 0; i < 2000; i++) {
		CHECK_EQ(run(&r[0], heap_ga(&r[1], 0), heap_ga(&r[2], 0), 4096,
			     ACP_REDUCE(ACP_REDUCE_XOR, ACP_REDUCE_U64)), ACP_ST_OK);
		for (k = 0; k < 512; k++) {
			const uint64_t x = __atomic_load_n(&p[k], __ATOMIC_RELAXED);

			CHECK_EQ(x, (x & 0xff) * 0x0101010101010101ULL);
		}
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

/* The rank that asked leaves before all is done. */
TEST(a_rank_leaves_with_numbers_to_combine)
{
	struct memory from, to;
	int i;

	begin();
	memory_open(&r[1], &from, 1 << 20);
	memory_open(&r[2], &to, 1 << 20);
	for (i = 0; i < 100; i++)
		start(&r[0], memory_ga(&to, 0), memory_ga(&from, 0), 1 << 20,
		      ACP_REDUCE(ACP_REDUCE_PROD, ACP_REDUCE_F32), 0);
	rank_close(&r[0]);
	rank_works(&r[1]);
	rank_works(&r[2]);
}

/* So do the owners of the numbers: first that of the results, then the other one. */
TEST(owners_leave_while_their_numbers_are_combined)
{
	struct memory from, to;
	uint64_t ticket;
	int status;

	begin();
	memory_open(&r[1], &from, MUCH);
	memory_open(&r[2], &to, MUCH);
	ticket = start(&r[0], memory_ga(&to, 0), memory_ga(&from, 0), MUCH,
		       ACP_REDUCE(ACP_REDUCE_PROD, ACP_REDUCE_F32), 0);
	rank_close(&r[2]);
	status = rank_await(&r[0], ticket, PATIENCE_WORK);
	CHECK(status == ACP_ST_OK || status == ACP_ST_STAG || status == ACP_ST_RANK);
	CHECK_EQ(run(&r[0], memory_ga(&to, 0), memory_ga(&from, 0), MUCH,
		     ACP_REDUCE(ACP_REDUCE_PROD, ACP_REDUCE_F32)), ACP_ST_RANK);
	rank_close(&r[1]);
	rank_works(&r[0]);
}

static void *combine_again_and_again(void *by)
{
	uint64_t i;

	for (i = 0; i < 96; i++)
		CHECK_EQ(run(by, heap_ga(&r[1], 0), heap_ga(&r[2], 0), i % 2 ? 100000 : LONG,
			     ACP_REDUCE(i % ACP_REDUCE_OP_END, ACP_REDUCE_U64)), ACP_ST_OK);
	return NULL;
}

/* Two ranks combine at one place: nothing is lost but numbers. */
TEST(two_combine_at_one_place)
{
	pthread_t thread;

	begin();
	CHECK_EQ(pthread_create(&thread, NULL, combine_again_and_again, &r[0]), 0);
	combine_again_and_again(&r[1]);
	pthread_join(thread, NULL);
	memcpy(model[1], r[1].heap, 100000);
	check_memory();
}
