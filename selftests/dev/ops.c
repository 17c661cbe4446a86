// SPDX-License-Identifier: MIT
/*
 * Every operation between ranks of one node: results, all placements, and the status of each
 * command that must fail without writing anything.
 */
#include "isolated.h"

#include <pthread.h>

#include "traffic.h"

#define MB (1UL << 20)

static struct rank r[3];
static struct traffic t;

static void begin(size_t half)
{
	rank_open_local(r, 3);
	traffic_open(&t, r, 3, half, 0);
}

TEST(every_copy)
{
	static const size_t sizes[] = {
		0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 1000, 1399,
		1400, 1401, 4095, 4096, 4097, 16383, 16384, 16385, 65536, 100001, MB,
	};

	begin(MB);
	traffic_every_copy(&t, sizes, sizeof(sizes) / sizeof(sizes[0]));
	traffic_close(&t);
}

TEST(every_atomic)
{
	int i;

	begin(PAGE);
	for (i = 0; i < 10; i++)
		traffic_every_atomic(&t);
	traffic_close(&t);
}

TEST(many_at_once)
{
	begin(MB);
	traffic_random(&t, test_short() ? 20 : 100, 60, 50000);
	traffic_close(&t);
}

TEST(counting_exactly_once)
{
	begin(MB);
	traffic_count(&t, 1, test_short() ? 1000 : 10000);
}

static bool stop;

/* Atomic instructions of the owner on the same word count, too. */
static void *add_by_cpu(void *arg)
{
	uint64_t *word = arg, *count = calloc(1, sizeof(*count));

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		__atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
		++*count;
	}
	return count;
}

TEST(atomic_against_the_owners_cpu)
{
	struct memory m;
	pthread_t thread;
	uint64_t i, count = test_short() ? 5000 : 50000, *word;
	void *added;

	rank_open_local(r, 2);
	memory_open(&r[1], &m, PAGE);
	word = (uint64_t *)m.addr;
	CHECK_EQ(pthread_create(&thread, NULL, add_by_cpu, word), 0);
	for (i = 0; i < count; i++)
		rank_atomic(&r[0], ACP_OP_ADD8, heap_ga(&r[0], 0), memory_ga(&m, 0), 1, 0, 0);
	CHECK_EQ(rank_await(&r[0], r[0].last, PATIENCE_WORK), ACP_ST_OK);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	CHECK_EQ(pthread_join(thread, &added), 0);
	CHECK_EQ(*word, count + *(uint64_t *)added);
}

TEST(flag_after_data)
{
	begin(MB);
	traffic_flags(&t, TRAFFIC_HANDLE, 5000, 5);
	traffic_flags(&t, TRAFFIC_CONT, 5000, 5);
	traffic_flags(&t, TRAFFIC_ATOMIC, 5000, 5);
	traffic_flags(&t, TRAFFIC_HANDLE, MB, 1);
}

/* ---- Commands that must fail ---- */

/* Memory of rank 1 for rank 0: with all rights, with some, with none. */
static struct memory all, none, read_write, only_read, only_write, only_atomic, ro;
static char *area;

#define AREAS	7
#define AREA	(2 * PAGE)

static void share(struct memory *m, int i, uint32_t access)
{
	CHECK_EQ(rank_register(&r[1], m, area + i * AREA + 64, AREA - 128, access), 0);
}

static void begin_failing(void)
{
	struct setup s;

	setup_local(&s, 0, 3);
	rank_open(&r[0], &s);
	setup_local(&s, 1, 3);
	rank_open(&r[1], &s);
	area = pages(AREAS * AREA, PROT_READ | PROT_WRITE);
	fill(area, AREAS * AREA, 1);
	share(&all, 0, ACP_ACCESS_ALL);
	share(&none, 1, 0);
	share(&read_write, 2, ACP_ACCESS_READ | ACP_ACCESS_WRITE);
	share(&only_read, 3, ACP_ACCESS_READ);
	share(&only_write, 4, ACP_ACCESS_WRITE);
	share(&only_atomic, 5, ACP_ACCESS_ATOMIC);
	share(&ro, 6, ACP_ACCESS_RO | ACP_ACCESS_READ);
	fill(r[0].heap, r[0].join.heap_size, 2);
	fill(r[1].heap, r[1].join.heap_size, 3);
}

static void nothing_changed(const char *what)
{
	if (!filled(area, AREAS * AREA, 1) || !filled(r[0].heap, r[0].join.heap_size, 2) ||
	    !filled(r[1].heap, r[1].join.heap_size, 3))
		FAIL("%s: something was written", what);
}

static void copy_fails(uint64_t dst, uint64_t src, uint64_t size, int wanted, const char *what)
{
	int status = rank_do_copy(&r[0], dst, src, size);

	if (status != wanted)
		FAIL("%s: status %d, wanted %d", what, status, wanted);
	nothing_changed(what);
}

/* Every atomic of a width: 8 or 4 bytes. */
static void atomics_fail(unsigned int width, uint64_t dst, uint64_t src, int wanted,
			 const char *what)
{
	unsigned int op;

	for (op = ACP_OP_CAS4; op <= ACP_OP_AND8; op++) {
		int status;

		if (atomic_width(op) != width)
			continue;
		status = rank_do_atomic(&r[0], op, dst, src, 5, 0);
		if (status != wanted)
			FAIL("%s: operation %u: status %d, wanted %d", what, op, status, wanted);
	}
	nothing_changed(what);
}

TEST(N9_addresses_of_nobody)
{
	uint64_t seed = 1, mine, bad;
	int i;

	begin_failing();
	mine = heap_ga(&r[0], 0);
	copy_fails(0, mine, 8, ACP_ST_GA, "dst 0");
	copy_fails(mine, 0, 8, ACP_ST_GA, "src 0");
	copy_fails(~0ULL, mine, 8, ACP_ST_GA, "dst ~0");
	copy_fails(mine, ~0ULL, 8, ACP_ST_GA, "src ~0");
	copy_fails(mine, rank_ga(&r[0], 3, ACP_STAG_HEAP, 0), 8, ACP_ST_GA, "no such rank");
	copy_fails(acp_ga_make(&r[0].layout, 1, 1, ACP_STAG_HEAP, 0), mine, 8, ACP_ST_GA,
		   "no such color");
	copy_fails(mine, acp_ga_make(&r[0].layout, 0, 3, ACP_STAG_HEAP, 0), 8, ACP_ST_GA,
		   "no such color, own rank");
	for (i = 0; i < 1000; i++) {
		bad = next_random(&seed) & ((1ULL << (64 - r[0].layout.rank_bits)) - 1);
		CHECK_EQ(rank_do_copy(&r[0], bad, mine, 8), ACP_ST_GA);
		CHECK_EQ(rank_do_copy(&r[0], mine, bad, 8), ACP_ST_GA);
		CHECK_EQ(rank_do_atomic(&r[0], ACP_OP_ADD8, mine, bad & -8UL, 1, 0), ACP_ST_GA);
	}
	nothing_changed("random addresses of nobody");
}

static int do_signal(uint64_t dst, uint64_t src, uint64_t flag)
{
	struct acp_sqe e = { .op = ACP_OP_COPY_ADD, .dst = dst, .src = src, .a = flag, .b = 1 };

	return rank_await(&r[0], rank_submit(&r[0], &e), PATIENCE_SOON);
}

/* With a size of 0, the library checks no address except that of a flag. */
TEST(E4_zero_bytes_have_no_address)
{
	uint64_t bytes[] = { 0, ACP_BLOCKS(0, 5), ACP_BLOCKS(5, 0) };
	uint64_t bad[] = { 0, ~0ULL, 0, 0, 0, 0 };
	uint64_t *flag, former;
	struct acp_sqe e;
	unsigned int i, j;

	begin_failing();
	flag = (uint64_t *)(void *)only_atomic.addr;
	former = *flag;
	bad[2] = rank_ga(&r[0], 2, ACP_STAG_HEAP, 0);		/* not joined */
	bad[3] = memory_ga(&none, 0);				/* no rights */
	bad[4] = memory_ga(&all, AREA);				/* beyond the end */
	bad[5] = rank_ga(&r[0], 3, ACP_STAG_HEAP, 0);		/* no such rank */
	for (i = 0; i < 36; i++) {
		for (j = 0; j < 3; j++) {
			e = (struct acp_sqe){ .op = j ? ACP_OP_STRIDED : ACP_OP_COPY,
					      .dst = bad[i / 6], .src = bad[i % 6],
					      .size = bytes[j], .a = j, .b = j };
			CHECK_EQ(rank_await(&r[0], rank_submit(&r[0], &e), PATIENCE_SOON),
				 ACP_ST_OK);
		}
		CHECK_EQ(do_signal(bad[i / 6], bad[i % 6], memory_ga(&only_atomic, 0)), ACP_ST_OK);
		CHECK_EQ(*flag, former + i + 1);
	}
	CHECK_EQ(do_signal(0, 0, 0), ACP_ST_GA);
	CHECK_EQ(do_signal(0, 0, memory_ga(&none, 0)), ACP_ST_ACCESS);
	*flag = former;
	nothing_changed("zero bytes");
}

TEST(N9_rank_that_is_not_there)
{
	uint64_t mine, theirs;

	begin_failing();
	mine = heap_ga(&r[0], 0);
	theirs = rank_ga(&r[0], 2, ACP_STAG_HEAP, 0);
	copy_fails(mine, theirs, 8, ACP_ST_RANK, "src not joined");
	copy_fails(theirs, mine, 8, ACP_ST_RANK, "dst not joined");
	atomics_fail(8, mine, theirs, ACP_ST_RANK, "not joined");
	theirs = heap_ga(&r[1], 0);
	rank_close(&r[1]);
	CHECK_EQ(rank_do_copy(&r[0], theirs, mine, 8), ACP_ST_RANK);
	CHECK_EQ(rank_do_copy(&r[0], mine, theirs, 8), ACP_ST_RANK);
}

TEST(N9_regions_that_are_not_there)
{
	uint64_t mine, gone;
	uint32_t stag;

	begin_failing();
	mine = heap_ga(&r[0], 0);
	gone = memory_ga(&all, 0);
	copy_fails(mine, rank_ga(&r[0], 1, ACP_STAG_RESERVED, 0), 8, ACP_ST_STAG, "reserved STag");
	for (stag = ACP_STAG_USER + AREAS; stag < ACP_STAG_USER + 100; stag++)
		copy_fails(rank_ga(&r[0], 1, stag, 0), mine, 8, ACP_ST_STAG, "unused STag");
	stag = (1u << r[0].layout.stag_bits) - 1;
	copy_fails(rank_ga(&r[0], 1, stag, 0), mine, 8, ACP_ST_STAG, "last STag");
	atomics_fail(8, mine, rank_ga(&r[0], 1, stag, 0), ACP_ST_STAG, "last STag");
	CHECK_EQ(rank_unregister(&r[1], all.reg.key, NULL), 0);
	copy_fails(gone, mine, 8, ACP_ST_STAG, "unregistered");
	copy_fails(mine, gone, 8, ACP_ST_STAG, "unregistered");
}

TEST(N9_beyond_a_region)
{
	uint64_t mine, size = AREA - 128, heap;

	begin_failing();
	mine = heap_ga(&r[0], 0);
	heap = heap_ga(&r[1], 0);
	copy_fails(memory_ga(&all, size), mine, 1, ACP_ST_RANGE, "right behind the end");
	copy_fails(memory_ga(&all, size - 7), mine, 8, ACP_ST_RANGE, "last byte too many");
	copy_fails(memory_ga(&all, -1UL), mine, 1, ACP_ST_RANGE, "byte before the start");
	copy_fails(all.reg.key, mine, 8, ACP_ST_RANGE, "start of the first page");
	copy_fails(memory_ga(&all, 0), mine, size + 1, ACP_ST_RANGE, "a byte longer");
	copy_fails(mine, memory_ga(&all, 0), size + 1, ACP_ST_RANGE, "a byte longer, to read");
	copy_fails(memory_ga(&all, 0), mine, ACP_COPY_MAX, ACP_ST_RANGE, "2^62 bytes");
	copy_fails(mine, memory_ga(&all, 0), ACP_COPY_MAX, ACP_ST_RANGE, "2^62 bytes, to read");
	copy_fails(heap, mine, r[1].join.heap_size + 1, ACP_ST_RANGE, "longer than both heaps");
	copy_fails(heap + 1, mine, r[1].join.heap_size, ACP_ST_RANGE, "heap, one byte off");
	copy_fails(mine + 1, heap, r[1].join.heap_size, ACP_ST_RANGE, "own heap, one byte off");
	copy_fails(heap + r[1].join.heap_size, mine, 1, ACP_ST_RANGE, "behind the heap");
	copy_fails(rank_ga(&r[0], 1, ACP_STAG_HEAP, (1ULL << r[0].layout.offset_bits) - 1), mine,
		   1, ACP_ST_RANGE, "last offset");
	copy_fails(rank_ga(&r[0], 1, ACP_STAG_LIBRARY, PAGE - 7), mine, 8, ACP_ST_RANGE,
		   "library page");
	atomics_fail(8, mine, heap + r[1].join.heap_size, ACP_ST_RANGE, "word behind the heap");
	atomics_fail(4, mine, memory_ga(&all, size), ACP_ST_RANGE, "word behind the region");
	atomics_fail(8, mine + r[0].join.heap_size, heap, ACP_ST_RANGE, "result behind the heap");
	CHECK_EQ(rank_do_copy(&r[0], mine, memory_ga(&all, size), 0), ACP_ST_OK);
}

TEST(N10_rights)
{
	uint64_t mine;

	begin_failing();
	mine = heap_ga(&r[0], 0);
	copy_fails(mine, memory_ga(&none, 0), 8, ACP_ST_ACCESS, "read, no rights");
	copy_fails(memory_ga(&none, 0), mine, 8, ACP_ST_ACCESS, "write, no rights");
	copy_fails(memory_ga(&only_read, 0), mine, 8, ACP_ST_ACCESS, "write to read-only");
	copy_fails(mine, memory_ga(&only_write, 0), 8, ACP_ST_ACCESS, "read from write-only");
	copy_fails(mine, memory_ga(&only_atomic, 0), 8, ACP_ST_ACCESS, "read from atomic-only");
	copy_fails(memory_ga(&only_atomic, 0), mine, 8, ACP_ST_ACCESS, "write to atomic-only");
	copy_fails(memory_ga(&ro, 0), mine, 8, ACP_ST_ACCESS, "write to RO");
	copy_fails(memory_ga(&only_read, 0), mine, AREA - 128, ACP_ST_ACCESS, "long write");
	atomics_fail(8, mine, memory_ga(&none, 0), ACP_ST_ACCESS, "no rights");
	atomics_fail(8, mine, memory_ga(&only_read, 0), ACP_ST_ACCESS, "read-only");
	atomics_fail(4, mine, memory_ga(&read_write, 0), ACP_ST_ACCESS, "no atomics");
	atomics_fail(8, mine, memory_ga(&ro, 0), ACP_ST_ACCESS, "RO");
	atomics_fail(8, memory_ga(&only_read, 0), memory_ga(&all, 0), ACP_ST_ACCESS,
		     "result to read-only");
}

TEST(N10_rights_do_not_bind_the_owner_but_for_read_only)
{
	begin_failing();
	CHECK_EQ(rank_do_copy(&r[1], memory_ga(&none, 0), heap_ga(&r[1], 0), 8), ACP_ST_OK);
	CHECK_EQ(rank_do_copy(&r[1], heap_ga(&r[1], 0), memory_ga(&none, 0), 8), ACP_ST_OK);
	CHECK_EQ(rank_do_atomic(&r[1], ACP_OP_ADD8, heap_ga(&r[1], 0), memory_ga(&none, 0), 1, 0),
		 ACP_ST_OK);
	CHECK_EQ(rank_do_copy(&r[1], heap_ga(&r[1], 0), memory_ga(&ro, 0), 8), ACP_ST_OK);
	CHECK_EQ(rank_do_copy(&r[1], memory_ga(&ro, 0), heap_ga(&r[1], 0), 8), ACP_ST_ACCESS);
	CHECK_EQ(rank_do_atomic(&r[1], ACP_OP_ADD8, heap_ga(&r[1], 0), memory_ga(&ro, 0), 1, 0),
		 ACP_ST_ACCESS);
	CHECK_EQ(rank_do_atomic(&r[0], ACP_OP_ADD8, heap_ga(&r[0], 0), memory_ga(&only_atomic, 0),
				1, 0), ACP_ST_OK);
}

TEST(N10_unaligned_atomics)
{
	uint64_t mine, theirs, i;

	begin_failing();
	mine = heap_ga(&r[0], 0);
	theirs = memory_ga(&all, 0);
	for (i = 1; i < 8; i++) {
		atomics_fail(8, mine, theirs + i, ACP_ST_ALIGN, "source, 8 bytes");
		atomics_fail(8, mine + i, theirs, ACP_ST_ALIGN, "result, 8 bytes");
	}
	for (i = 1; i < 4; i++) {
		atomics_fail(4, mine, theirs + i, ACP_ST_ALIGN, "source, 4 bytes");
		atomics_fail(4, mine + i, theirs, ACP_ST_ALIGN, "result, 4 bytes");
	}
}

/* A part of a long copy would be valid: still no byte is written. */
TEST(N10_no_partial_effect)
{
	begin_failing();
	copy_fails(heap_ga(&r[1], 30000), heap_ga(&r[0], 0), 40000, ACP_ST_RANGE, "to, too long");
	copy_fails(heap_ga(&r[1], 0), heap_ga(&r[0], 30000), 40000, ACP_ST_RANGE, "from, too long");
	copy_fails(heap_ga(&r[1], 0), memory_ga(&none, 0), AREA - 128, ACP_ST_ACCESS, "no right");
}
