// SPDX-License-Identifier: MIT
/*
 * A4: copies to where a pointer of the receiver says, and appending to a buffer: short and in many
 * frames, over networks that lose and duplicate, with pointers that are wrong or change meanwhile.
 */
#include "../dev/isolated.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "nodes.h"

#define RANKS	3			/* each on a node of its own */
#define HEAP	(4U << 20)
#define BUFFER	4096			/* offset of what pointers point to */
#define ROOM	(HEAP - BUFFER)

static struct nodes n;
static struct rank r[RANKS];

static void begin(const char *netem)
{
	const struct acp_join wish = { .heap_size = HEAP };

	nodes_open(&n, RANKS, 1, false);
	nodes_ranks_like(&n, r, RANKS, &wish);
	if (netem)
		nodes_impair_all(&n, netem);
}

static uint64_t *words(uint32_t rank)
{
	return (uint64_t *)(void *)r[rank].heap;
}

/* The pointer of a rank, and the end of its buffer. */
static void point(uint32_t rank, uint64_t next, uint64_t end)
{
	__atomic_store_n(&words(rank)[1], end, __ATOMIC_RELAXED);
	__atomic_store_n(&words(rank)[0], next, __ATOMIC_RELEASE);
}

static uint64_t start(uint32_t by, unsigned int op, uint64_t pointer, uint64_t src, uint64_t size)
{
	const struct acp_sqe e = {
		.op = (uint8_t)op, .dst = pointer, .src = src, .size = size,
		.seen = rank_completed(&r[by]),
	};

	return rank_submit(&r[by], &e);
}

/* ... and try again while the buffer is full. */
static uint64_t start_retry(uint32_t by, uint64_t src, uint64_t size, uint64_t order)
{
	const struct acp_sqe e = {
		.op = ACP_OP_APPEND, .flags = ACP_SQE_RETRY, .dst = heap_ga(&r[1], 0), .src = src,
		.size = size, .seen = rank_completed(&r[by]), .order = order,
	};

	return rank_submit(&r[by], &e);
}

static int run(uint32_t by, unsigned int op, uint64_t pointer, uint64_t src, uint64_t size)
{
	return rank_await(&r[by], start(by, op, pointer, src, size), PATIENCE_SOON);
}

/* Rank "by" copies memory of rank "from" to where the pointer of rank 1 says. */
static void one_copy(uint32_t by, uint32_t from, unsigned int op, size_t size)
{
	static uint64_t seed;
	char *there = r[1].heap + BUFFER, *end = there + size;

	seed++;
	memset(there, 0, size + 64);
	fill(r[from].heap + HEAP / 2, size, seed);
	point(1, heap_ga(&r[1], BUFFER), heap_ga(&r[1], HEAP / 2));
	CHECK_EQ(run(by, op, heap_ga(&r[1], 0), heap_ga(&r[from], HEAP / 2), size), ACP_ST_OK);
	CHECK(filled(there, size, seed));
	for (; end < there + size + 64; end++)
		CHECK_EQ(*end, 0);
	CHECK_EQ(words(1)[0], heap_ga(&r[1], BUFFER) +
		 (op == ACP_OP_APPEND ? (size + 7) & ~7UL : 0));
}

static void all_copies(void)
{
	static const size_t sizes[] = {
		1, 4, 8, 9, 100, 129, 1300, 1400, 1500, 5000, 70001, 300000,
	};
	static const unsigned int ops[] = { ACP_OP_INDIRECT, ACP_OP_APPEND };
	size_t i, k;
	uint32_t from;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (k = 0; k < 2; k++)
			for (from = 0; from < RANKS; from++)
				one_copy(0, from, ops[k], sizes[i]);
}

TEST(A4_data_lands_where_the_receiver_says)
{
	begin(NULL);
	all_copies();
}

TEST(A4_data_lands_where_the_receiver_says_over_a_bad_network)
{
	begin("loss 5% duplicate 5% delay 1ms 1ms");
	all_copies();
}

/* The rank that owns the pointer reads and writes by it, too. */
TEST(A4_a_rank_uses_its_own_pointer)
{
	begin(NULL);
	one_copy(1, 1, ACP_OP_INDIRECT, 100);
	one_copy(1, 1, ACP_OP_APPEND, 100000);
	one_copy(1, 0, ACP_OP_APPEND, 100000);
}

TEST(A4_no_bytes_need_no_pointer)
{
	begin(NULL);
	point(1, 0, 0);
	CHECK_EQ(run(0, ACP_OP_INDIRECT, heap_ga(&r[1], 0), 0, 0), ACP_ST_OK);
	CHECK_EQ(run(0, ACP_OP_APPEND, 0, 0, 0), ACP_ST_OK);
}

/* ---- appending by several ranks ---- */

struct record {
	uint32_t from, number, size;
	uint32_t zero;
	char data[];
};

#define RECORDS	150

/* Some are longer than a frame. */
static uint32_t size_of(uint32_t from, uint32_t number)
{
	uint64_t seed = from * 1000 + number;

	return (uint32_t)(sizeof(struct record) +
			  next_random(&seed) % (number % 10 ? 200 : 6000));
}

static void append_all(uint32_t by)
{
	uint32_t i, size, at = HEAP / 2;
	uint64_t ticket = 0;

	for (i = 0; i < RECORDS; i++) {
		struct record *x = (struct record *)(void *)(r[by].heap + at);

		size = size_of(by, i);
		*x = (struct record){ by, i, size, 0 };
		fill(x->data, size - sizeof(*x), by * 1000 + i);
		ticket = start(by, ACP_OP_APPEND, heap_ga(&r[1], 0), heap_ga(&r[by], at), size);
		at += (size + 7) & ~7U;
	}
	CHECK_EQ(rank_await(&r[by], ticket, PATIENCE_SOON), ACP_ST_OK);
	CHECK_EQ(r[by].cq->failed, 0);
}

static void *append_in_thread(void *by)
{
	append_all(*(uint32_t *)by);
	return NULL;
}

/* Each record is in the buffer once, and nothing else is. */
static void all_there(void)
{
	bool seen[RANKS][RECORDS] = { { false } };
	uint64_t used = words(1)[0] - heap_ga(&r[1], BUFFER), at;
	const struct record *x;
	uint32_t count = 0;

	for (at = 0; at < used; at += (x->size + 7) & ~7U, count++) {
		x = (const struct record *)(void *)(r[1].heap + BUFFER + at);
		CHECK(x->from < RANKS && x->number < RECORDS);
		CHECK_EQ(x->size, size_of(x->from, x->number));
		CHECK(!seen[x->from][x->number]);
		seen[x->from][x->number] = true;
		CHECK(filled(x->data, x->size - sizeof(*x), x->from * 1000 + x->number));
	}
	CHECK_EQ(at, used);
	CHECK_EQ(count, 2 * RECORDS);
}

static void append_by_two(const char *netem)
{
	uint32_t others[] = { 0, 2 };
	pthread_t threads[2];
	int i;

	begin(netem);
	point(1, heap_ga(&r[1], BUFFER), heap_ga(&r[1], HEAP));
	for (i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, append_in_thread, &others[i]), 0);
	for (i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	all_there();
}

TEST(A4_two_ranks_append_each_record_once)
{
	append_by_two(NULL);
}

TEST(A4_two_ranks_append_each_record_once_over_a_bad_network)
{
	append_by_two("loss 5% duplicate 5% delay 1ms 1ms");
}

#define PARTS	2
#define PART	4096
#define RECORD	64		/* bytes; the last word is not 0 */
#define NUMBERS	(test_short() ? 300U : 3000U)

static void *append_words(void *by)
{
	uint32_t me = *(uint32_t *)by, i;
	const uint64_t src = heap_ga(&r[me], HEAP / 2);
	uint64_t *record = words(me) + HEAP / 16;
	int status;

	for (i = 0; i < NUMBERS; i++) {
		fill(record, RECORD - 8, me * 100000 + i);
		record[RECORD / 8 - 1] = me * 100000 + i + 1;
		do {
			status = run(me, ACP_OP_APPEND, heap_ga(&r[1], 0), src, RECORD);
		} while (status == ACP_ST_AGAIN);
		CHECK_EQ(status, ACP_ST_OK);
	}
	return NULL;
}

/* Is a record in memory? Its words appear in any order. *last: the last one. */
static bool is_there(const uint64_t *record, uint64_t *last)
{
	*last = __atomic_load_n(&record[RECORD / 8 - 1], __ATOMIC_ACQUIRE);
	return *last && filled(record, RECORD - 8, *last - 1);
}

/* Take the records of a part; each is there soon, if not yet. Returns their number. */
static uint32_t take_part(uint64_t *part, uint64_t bytes, uint32_t next[RANKS])
{
	struct patience p = patience_begin(PATIENCE_SOON);
	uint64_t last, at;

	CHECK(bytes <= PART && bytes % RECORD == 0);
	for (at = 0; at < bytes / 8; at += RECORD / 8) {
		while (!is_there(&part[at], &last))
			CHECK(!patience_over(&p));
		CHECK((last - 1) / 100000 < RANKS);
		/* Each rank waits for each of its records: they are in order. */
		CHECK_EQ((last - 1) % 100000, next[(last - 1) / 100000]++);
	}
	memset(part, 0, PART);
	return (uint32_t)(bytes / RECORD);
}

/* The owner gives another buffer whenever something is in the present one. */
TEST(A4_the_owner_changes_buffers_while_others_append)
{
	uint32_t others[] = { 0, 2 }, next[RANKS] = { 0 }, count = 0, k = 0;
	struct patience p = patience_begin(PATIENCE_TEST / 2);
	uint64_t starts[PARTS], former;
	pthread_t threads[2];
	int i;

	begin(NULL);
	for (i = 0; i < PARTS; i++)
		starts[i] = heap_ga(&r[1], BUFFER + (uint64_t)i * PART);
	point(1, starts[0], starts[0] + PART);
	for (i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, append_words, &others[i]), 0);
	for (; count < 2 * NUMBERS; k ^= 1) {
		while (__atomic_load_n(&words(1)[0], __ATOMIC_RELAXED) == starts[k])
			CHECK(!patience_over(&p));
		__atomic_store_n(&words(1)[1], 0, __ATOMIC_SEQ_CST);
		former = __atomic_exchange_n(&words(1)[0], starts[k ^ 1], __ATOMIC_SEQ_CST);
		__atomic_store_n(&words(1)[1], starts[k ^ 1] + PART, __ATOMIC_RELEASE);
		count += take_part(words(1) + (BUFFER + k * PART) / 8, former - starts[k], next);
	}
	for (i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK(next[0] == NUMBERS && next[2] == NUMBERS);
}

/* ---- full, and wrong ---- */

TEST(A4_a_full_buffer_is_said_and_nothing_is_written)
{
	static const uint64_t sizes[] = { 65, 1500, 100000 };
	size_t i;

	begin(NULL);
	memset(r[1].heap + BUFFER, 7, 200);
	for (i = 0; i < 3; i++) {
		point(1, heap_ga(&r[1], BUFFER), heap_ga(&r[1], BUFFER + 64));
		CHECK_EQ(run(0, ACP_OP_APPEND, heap_ga(&r[1], 0), heap_ga(&r[0], 64), sizes[i]),
			 ACP_ST_AGAIN);
		CHECK_EQ(run(1, ACP_OP_APPEND, heap_ga(&r[1], 0), heap_ga(&r[1], 8192), sizes[i]),
			 ACP_ST_AGAIN);
		CHECK_EQ(words(1)[0], heap_ga(&r[1], BUFFER));
	}
	for (i = 0; i < 200; i++)
		CHECK_EQ(r[1].heap[BUFFER + i], 7);
	/* What fits exactly is taken. */
	CHECK_EQ(run(0, ACP_OP_APPEND, heap_ga(&r[1], 0), heap_ga(&r[0], 64), 61), ACP_ST_OK);
	CHECK_EQ(words(1)[0], heap_ga(&r[1], BUFFER + 64));
	CHECK_EQ(run(0, ACP_OP_APPEND, heap_ga(&r[1], 0), heap_ga(&r[0], 64), 1), ACP_ST_AGAIN);
}

/* Ranks with this time-out. */
static void begin_short(unsigned int timeout_ms, uint32_t depth)
{
	const struct acp_join wish = { .heap_size = HEAP, .timeout_ms = timeout_ms,
				       .depth = depth };

	nodes_open(&n, RANKS, 1, false);
	nodes_ranks_like(&n, r, RANKS, &wish);
	point(1, heap_ga(&r[1], BUFFER), heap_ga(&r[1], BUFFER));
}

/* From another node, within a node, and delegated; short, and in many frames. */
TEST(A4_a_copy_waits_until_a_full_buffer_has_room)
{
	static const uint64_t sizes[] = { 8, 1000, 100000 };
	struct count again;
	uint64_t ticket;
	unsigned int i, by, from;

	begin_short(20000, 64);
	for (i = 0; i < 27; i++) {
		by = i / 3 % 3;
		from = i / 9;
		again = nodes_count(&n, by, "commands_retried");
		point(1, heap_ga(&r[1], BUFFER), heap_ga(&r[1], BUFFER));
		memset(r[1].heap + BUFFER, 0, sizes[i % 3]);
		fill(r[from].heap + HEAP / 2, sizes[i % 3], i);
		ticket = start_retry(by, heap_ga(&r[from], HEAP / 2), sizes[i % 3], 0);
		while (nodes_counter(&n, by, "commands_retried") < again.before + 3)
			CHECK_EQ(rank_wait(&r[by], ticket, MS), -1);
		CHECK_EQ(words(1)[0], heap_ga(&r[1], BUFFER));
		point(1, heap_ga(&r[1], BUFFER), heap_ga(&r[1], HEAP / 2));
		CHECK_EQ(rank_await(&r[by], ticket, PATIENCE_SOON), ACP_ST_OK);
		CHECK(filled(r[1].heap + BUFFER, sizes[i % 3], i));
		CHECK_EQ(words(1)[0], heap_ga(&r[1], BUFFER + sizes[i % 3]));
	}
}

TEST(A4_a_copy_that_waits_for_room_ends_with_the_time_out)
{
	uint64_t begun, ticket[2];

	begin_short(300, 64);
	begun = now_ns();
	ticket[0] = start_retry(0, heap_ga(&r[0], 64), 100, 0);
	ticket[1] = start_retry(0, heap_ga(&r[0], 64), 100, ticket[0]);
	CHECK_EQ(rank_await(&r[0], ticket[0], PATIENCE_SOON), ACP_ST_AGAIN);
	CHECK(now_ns() - begun >= 250 * MS);
	CHECK_EQ(rank_await(&r[0], ticket[1], PATIENCE_SOON), ACP_ST_ORDER);
}

/* What is ordered behind it comes behind it, and nothing else waits. */
TEST(A4_order_holds_behind_a_copy_that_waits_for_room)
{
	uint64_t record, later, other, i;

	begin_short(20000, 64);
	for (i = 1; i <= 20; i++) {
		point(1, heap_ga(&r[1], BUFFER), heap_ga(&r[1], BUFFER));
		words(1)[BUFFER / 8] = 0;
		words(0)[8] = i;
		words(0)[9] = 1000 + i;
		record = start_retry(0, heap_ga(&r[0], 64), 8, 0);
		later = rank_copy(&r[0], heap_ga(&r[1], 24), heap_ga(&r[0], 72), 8, record);
		other = rank_copy(&r[0], heap_ga(&r[1], 32), heap_ga(&r[0], 72), 8, 0);
		while (__atomic_load_n(&words(1)[4], __ATOMIC_ACQUIRE) != 1000 + i)
			CHECK_EQ(rank_wait(&r[0], other, MS), -1);
		sleep_ms(2);
		CHECK_EQ(words(1)[3], i == 1 ? 0 : 1000 + i - 1);
		point(1, heap_ga(&r[1], BUFFER), heap_ga(&r[1], BUFFER + 8));
		while (__atomic_load_n(&words(1)[3], __ATOMIC_ACQUIRE) != 1000 + i)
			rank_wait(&r[0], later, MS);
		CHECK_EQ(words(1)[BUFFER / 8], i);
		CHECK_EQ(rank_await(&r[0], other, PATIENCE_SOON), ACP_ST_OK);
	}
}

/* A queue full of them, with a buffer that gets room for one after the other. */
static void many_wait(uint32_t by, uint32_t from, const char *netem)
{
	const uint32_t many = test_short() ? 200 : 1000;
	uint64_t last = 0, at;
	uint32_t i, seen[1000] = { 0 };

	/*
	 * With this time-out, none ends by it.  The ring has room for all: what comes may take the
	 * room of one that was lost on its way, and the rest of the room must come nevertheless.
	 */
	begin_short(3600000, 1024);
	if (netem)
		nodes_impair_all(&n, netem);
	for (i = 0; i < many; i++)
		words(from)[HEAP / 16 + i] = i + 1;
	for (i = 0; i < many; i++) {
		last = start_retry(by, heap_ga(&r[from], HEAP / 2 + 8UL * i), 8, 0);
		if (i >= 150)
			__atomic_fetch_add(&words(1)[1], 8, __ATOMIC_RELAXED);
	}
	while (i-- > many - 150)
		__atomic_fetch_add(&words(1)[1], 8, __ATOMIC_RELAXED);
	CHECK_EQ(rank_await(&r[by], last, PATIENCE_WORK), ACP_ST_OK);
	for (i = 0; i < r[by].join.depth; i++)
		CHECK_EQ(r[by].cq->status[i], ACP_ST_OK);
	CHECK_EQ(r[by].cq->failed, 0);
	CHECK_EQ(words(1)[0], heap_ga(&r[1], BUFFER + 8UL * many));
	for (i = 0; i < many; i++) {
		at = words(1)[BUFFER / 8 + i];
		CHECK(at >= 1 && at <= many && !seen[at - 1]++);
	}
}

TEST(A4_many_copies_wait_for_room_and_each_comes_once)
{
	many_wait(0, 0, "loss 2%");
}

TEST(A4_many_copies_within_a_node_wait_for_room)
{
	many_wait(1, 1, NULL);
}

TEST(A4_many_delegated_copies_wait_for_room)
{
	many_wait(1, 0, "loss 2%");
}

/* However many wait for room at one place, one at a time is tried, and less and less often. */
TEST(A4_commands_that_wait_for_room_are_no_storm)
{
	uint64_t began, ms;
	long long tries;
	uint32_t i;

	begin_short(60000, 256);
	began = now_ns();
	for (i = 0; i < 200; i++)
		start_retry(0, heap_ga(&r[0], 64), 8, 0);
	sleep_ms(500);
	tries = nodes_counter(&n, 0, "commands_retried");
	ms = (now_ns() - began) / MS;
	CHECK(tries > 0 && (uint64_t)tries <= 10 + ms / 12);
	point(1, heap_ga(&r[1], BUFFER), heap_ga(&r[1], HEAP));
	CHECK_EQ(rank_await(&r[0], r[0].last, PATIENCE_SOON), ACP_ST_OK);
	CHECK_EQ(r[0].cq->failed, 0);
}

/* A full buffer is no failure of which later commands of anybody could have to know. */
TEST(A4_full_buffers_make_no_other_command_fail)
{
	uint64_t last = 0, flag, i;

	begin_short(20000, 1024);
	for (i = 0; i < 600; i++)
		last = start(0, ACP_OP_APPEND, heap_ga(&r[1], 0), heap_ga(&r[0], 64), 8);
	CHECK_EQ(rank_await(&r[0], last, PATIENCE_WORK), ACP_ST_AGAIN);
	CHECK_EQ(r[0].cq->failed, 600);
	for (i = 1; i < 100; i++) {
		CHECK_EQ(run(0, ACP_OP_APPEND, heap_ga(&r[1], 0), heap_ga(&r[0], 64), 8),
			 ACP_ST_AGAIN);
		words(0)[8] = i;
		flag = rank_copy(&r[0], heap_ga(&r[1], 24), heap_ga(&r[0], 64), 8, 0);
		flag = rank_copy(&r[0], heap_ga(&r[1], 32), heap_ga(&r[0], 64), 8, flag);
		CHECK_EQ(rank_await(&r[0], flag, PATIENCE_SOON), ACP_ST_OK);
		CHECK_EQ(words(1)[3], i);
		CHECK_EQ(words(1)[4], i);
	}
}

/* Ranks leave while copies wait for room: their own, others', of other nodes. */
TEST(A4_leaving_while_copies_wait_for_room)
{
	struct setup s;
	uint32_t i, k;

	nodes_open(&n, RANKS, 1, false);
	for (k = 0; k < (test_short() ? 5 : 50); k++) {
		for (i = 0; i < RANKS; i++) {
			nodes_setup(&n, &s, i, RANKS);
			s.join.job += k;
			s.join.heap_size = HEAP;
			nodes_join(&n, &r[i], &s);
		}
		point(1, heap_ga(&r[1], BUFFER), heap_ga(&r[1], BUFFER));
		for (i = 0; i < 60; i++)
			start_retry(i % RANKS, heap_ga(&r[0], 64), 8UL + 3000UL * (i & 1), 0);
		sleep_ms(k % 8);
		for (i = 0; i < RANKS; i++)
			rank_close(&r[(i + k) % RANKS]);
	}
	for (i = 0; i < RANKS; i++)
		CHECK(nodes_counter(&n, i, "commands_retried") > 0);
}

/* RETRY belongs to APPEND only. */
TEST(A4_retry_of_other_operations_is_refused)
{
	struct acp_sqe e = { .flags = ACP_SQE_RETRY };

	begin(NULL);
	e.dst = heap_ga(&r[1], 0);
	e.src = heap_ga(&r[0], 0);
	for (e.op = 0; e.op < ACP_OP_APPEND; e.op++) {
		e.size = e.op == ACP_OP_COPY || e.op > ACP_OP_AND8 ? 8 : 0;
		CHECK_EQ(rank_await(&r[0], rank_submit(&r[0], &e), PATIENCE_SOON), ACP_ST_OP);
	}
}

/* The pointer has this value: how do short and long copies end? It is not advanced. */
static void ends(unsigned int op, uint64_t next, uint64_t end, int status)
{
	static const uint64_t sizes[] = { 8, 1000, 10000 };
	size_t i;

	for (i = 0; i < 3; i++) {
		point(1, next, end);
		CHECK_EQ(run(0, op, heap_ga(&r[1], 0), heap_ga(&r[0], 64), sizes[i]), status);
		CHECK_EQ(run(1, op, heap_ga(&r[1], 0), heap_ga(&r[1], 8192), sizes[i]), status);
		CHECK_EQ(words(1)[0], next);
	}
}

TEST(A4_wrong_pointers_have_a_named_end)
{
	begin(NULL);
	ends(ACP_OP_INDIRECT, 0, 0, ACP_ST_GA);
	ends(ACP_OP_INDIRECT, ~0ULL, 0, ACP_ST_GA);
	ends(ACP_OP_INDIRECT, heap_ga(&r[2], BUFFER), 0, ACP_ST_GA);
	ends(ACP_OP_INDIRECT, heap_ga(&r[1], HEAP - 4), 0, ACP_ST_RANGE);
	ends(ACP_OP_INDIRECT, rank_ga(&r[1], 1, 900, 0), 0, ACP_ST_STAG);
	ends(ACP_OP_APPEND, 0, ~0ULL, ACP_ST_GA);
	ends(ACP_OP_APPEND, heap_ga(&r[2], 0), heap_ga(&r[2], HEAP), ACP_ST_GA);
	ends(ACP_OP_APPEND, heap_ga(&r[1], HEAP - 4), ~0ULL, ACP_ST_RANGE);
	ends(ACP_OP_APPEND, heap_ga(&r[1], 8), heap_ga(&r[1], 0), ACP_ST_AGAIN);
	CHECK_EQ(run(0, ACP_OP_INDIRECT, heap_ga(&r[1], 4), heap_ga(&r[0], 64), 8), ACP_ST_ALIGN);
	CHECK_EQ(run(0, ACP_OP_INDIRECT, 0, heap_ga(&r[0], 64), 8), ACP_ST_GA);
	CHECK_EQ(run(0, ACP_OP_INDIRECT, heap_ga(&r[1], HEAP), heap_ga(&r[0], 64), 8),
		 ACP_ST_RANGE);
	CHECK_EQ(run(0, ACP_OP_APPEND, heap_ga(&r[1], HEAP - 8), heap_ga(&r[0], 64), 8),
		 ACP_ST_RANGE);
}

TEST(A4_rights_of_pointer_and_buffer_count)
{
	struct memory read_only, no_atomics;

	begin(NULL);
	read_only.addr = pages(4096, PROT_READ | PROT_WRITE);
	no_atomics.addr = pages(4096, PROT_READ | PROT_WRITE);
	nodes_enter(&n, 1);
	CHECK_EQ(rank_register(&r[1], &read_only, read_only.addr, 4096, ACP_ACCESS_READ), 0);
	CHECK_EQ(rank_register(&r[1], &no_atomics, no_atomics.addr, 4096,
			       ACP_ACCESS_READ | ACP_ACCESS_WRITE), 0);
	nodes_leave(&n);
	point(1, memory_ga(&read_only, 0), memory_ga(&read_only, 4096));
	CHECK_EQ(run(0, ACP_OP_INDIRECT, heap_ga(&r[1], 0), heap_ga(&r[0], 64), 8), ACP_ST_ACCESS);
	CHECK_EQ(run(0, ACP_OP_APPEND, heap_ga(&r[1], 0), heap_ga(&r[0], 64), 8), ACP_ST_ACCESS);
	CHECK_EQ(run(0, ACP_OP_APPEND, memory_ga(&no_atomics, 0), heap_ga(&r[0], 64), 8),
		 ACP_ST_ACCESS);
}

static bool is_zero(const char *p, size_t size)
{
	return !p[0] && !memcmp(p, p + 1, size - 1);
}

/* Not a byte of a copy is written that exceeds the memory at its end only. */
TEST(A4_a_copy_that_does_not_fit_its_memory_writes_nothing)
{
	static const uint64_t sizes[] = { 1000, 10000, 100000 };
	unsigned int i, op;
	uint64_t next;

	begin(NULL);
	fill(r[0].heap + 64, sizes[2], 1);
	for (op = ACP_OP_INDIRECT; op <= ACP_OP_APPEND; op++) {
		for (i = 0; i < 3; i++) {
			next = heap_ga(&r[1], (HEAP - sizes[i] + 8) & ~7UL);
			memset(r[1].heap + HEAP - sizes[i], 0, sizes[i]);
			point(1, next, ~0ULL);
			CHECK_EQ(run(0, op, heap_ga(&r[1], 0), heap_ga(&r[0], 64), sizes[i]),
				 ACP_ST_RANGE);
			CHECK_EQ(run(1, op, heap_ga(&r[1], 0), heap_ga(&r[1], 64), sizes[i]),
				 ACP_ST_RANGE);
			CHECK_EQ(words(1)[0], next);
			CHECK(is_zero(r[1].heap + HEAP - sizes[i], sizes[i]));
		}
	}
}

/* A source that cannot be read takes no room, wherever the ends of the copy are. */
TEST(A4_a_bad_source_takes_no_room)
{
	static const uint64_t sizes[] = { 8, 1000, 100000 };
	unsigned int i, by, from;

	begin(NULL);
	point(1, heap_ga(&r[1], BUFFER), heap_ga(&r[1], HEAP));
	for (i = 0; i < 3; i++) {
		for (by = 0; by < RANKS; by++) {
			for (from = 0; from < RANKS; from++)
				CHECK_EQ(run(by, ACP_OP_APPEND, heap_ga(&r[1], 0),
					     rank_ga(&r[0], from, ACP_STAG_USER + 7, 0), sizes[i]),
					 ACP_ST_STAG);
		}
	}
	CHECK_EQ(words(1)[0], heap_ga(&r[1], BUFFER));
}

/* All of a copy goes to one place, whatever its owner does with the pointer meanwhile. */
TEST(A4_the_owner_changes_the_pointer_while_pieces_arrive)
{
	const size_t size = 100000;
	char *places[2];
	uint64_t ticket, seed;
	unsigned int i, k;

	begin("delay 2ms 1ms loss 3%");
	for (k = 0; k < 2; k++)
		places[k] = r[1].heap + BUFFER + k * HEAP / 2;
	for (seed = 1; seed <= (test_short() ? 5 : 30); seed++) {
		for (k = 0; k < 2; k++)
			memset(places[k], 0, size);
		fill(r[0].heap + 64, size, seed);
		point(1, heap_ga(&r[1], BUFFER), 0);
		ticket = start(0, ACP_OP_INDIRECT, heap_ga(&r[1], 0), heap_ga(&r[0], 64), size);
		for (i = 0; rank_completed(&r[0]) < ticket; i++) {
			point(1, heap_ga(&r[1], BUFFER + (i & 1) * HEAP / 2), 0);
			sleep_ms(i ? 1 : 0);
		}
		CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_SOON), ACP_ST_OK);
		CHECK_EQ(filled(places[0], size, seed) + filled(places[1], size, seed), 1);
	}
}

/* More copies in pieces than a window has numbers, one behind the other. */
TEST(A4_many_copies_in_pieces_at_once)
{
	uint64_t ticket = 0;
	unsigned int i;

	begin("delay 1ms 1ms loss 1%");
	point(1, heap_ga(&r[1], BUFFER), heap_ga(&r[1], HEAP));
	for (i = 0; i < 200; i++)
		ticket = start(0, ACP_OP_APPEND, heap_ga(&r[1], 0), heap_ga(&r[0], 64), 2000);
	CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_SOON), ACP_ST_OK);
	CHECK_EQ(r[0].cq->failed, 0);
	CHECK_EQ(words(1)[0], heap_ga(&r[1], BUFFER + 200 * 2000));
}
