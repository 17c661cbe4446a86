// SPDX-License-Identifier: MIT
/* selftest: cpus=2 */
/*
 * Rings with a misbehaving owner: K3 entries and tail change while the kernel reads them, K4
 * completions are never read, doorbells ring all the time. Only the culprit may suffer.
 */
#include "isolated.h"

#include <sched.h>

#include "bystanders.h"

static bool stop;

static bool stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static unsigned int run_time(void)
{
	return test_short() ? 1000 : 3000;
}

/* ---- The culprit ---- */

struct culprit {
	struct rank r;
	struct bystanders *others;
	uint64_t seed;
};

/* An address: mostly of an existing object, sometimes slightly off, or random. */
static uint64_t some_ga(struct culprit *c, uint64_t *seed)
{
	uint64_t x = next_random(seed), offset = next_random(seed) % 9000;

	switch (x % 8) {
	case 0:
		return heap_ga(&c->r, offset);
	case 1:
		return starter_ga(&c->r, offset & -8UL);
	case 2:
		return memory_ga(&c->others->secret, offset);
	case 3:
		return memory_ga(&c->others->read_only, offset & -8UL);
	case 4:
		return rank_ga(&c->r, (uint32_t)(x >> 8) % 5, (uint32_t)(x >> 16) % 8, offset);
	case 5:
		return memory_ga(&c->others->secret, 0) - offset;
	case 6:
		return heap_ga(&c->r, (offset & 1) ? 65536 - 8 : 0);
	default:
		return x;
	}
}

static void random_entry(struct culprit *c, struct acp_sqe *e, uint64_t *seed)
{
	uint64_t x = next_random(seed);

	memset(e, 0, sizeof(*e));
	e->op = x & 1 ? ACP_OP_COPY : (uint8_t)((x >> 1) % 24);
	e->flags = (x >> 8) % 8 ? 0 : (uint8_t)(x >> 16);
	e->reserved[(x >> 24) % 6] = (x >> 28) % 16 ? 0 : 1;
	e->dst = some_ga(c, seed);
	e->src = some_ga(c, seed);
	if (e->op == ACP_OP_COPY || e->op == ACP_OP_COPY_SET || e->op == ACP_OP_COPY_ADD) {
		e->size = (x >> 32) % 16 ? (x >> 36) % 5000 : next_random(seed);
		e->a = e->op == ACP_OP_COPY ? 0 : some_ga(c, seed);
	} else if (e->op == ACP_OP_STRIDED) {
		e->size = ACP_BLOCKS((x >> 32) % 200, (x >> 40) % 50);
		e->a = (x >> 48) % 8 ? next_random(seed) % 2000 - 1000 : next_random(seed);
		e->b = (x >> 51) % 8 ? next_random(seed) % 2000 - 1000 : next_random(seed);
	} else {
		e->a = x >> 40;
	}
	e->order = (x >> 52) % 4 ? 0 : next_random(seed) % (c->r.last + 4);
	e->seen = (x >> 56) % 4 ? 0 : next_random(seed) % (c->r.last + 4);
}

/* Entries change while the kernel may be reading them, never atomically. */
static void *rewrite_entries(void *arg)
{
	struct culprit *c = arg;
	uint64_t seed = c->seed ^ 0x5555;

	while (!stopped()) {
		struct acp_sqe *e = &c->r.entries[next_random(&seed) % c->r.join.depth];
		uint64_t value = next_random(&seed);

		switch (value % 4) {
		case 0:
			__atomic_store_n(&e->dst, some_ga(c, &seed), __ATOMIC_RELAXED);
			break;
		case 1:
			__atomic_store_n(&e->src, some_ga(c, &seed), __ATOMIC_RELAXED);
			break;
		case 2:
			__atomic_store_n(&e->size, value >> 32, __ATOMIC_RELAXED);
			break;
		default:
			__atomic_store_n(&e->op, (uint8_t)(value >> 8), __ATOMIC_RELAXED);
		}
	}
	return NULL;
}

static void *ring_bell(void *arg)
{
	struct culprit *c = arg;

	while (!stopped())
		CHECK_EQ(ioctl(c->r.fd, ACP_IOC_DOORBELL), 0);
	return NULL;
}

static void culprit_open(struct culprit *c, struct bystanders *others)
{
	struct setup s;

	setup_local(&s, 0, 3);
	rank_open(&c->r, &s);
	c->others = others;
	c->seed = (uint64_t)getpid();
	printf("# seed %llu\n", (unsigned long long)c->seed);
}

/* Stop the threads of the culprit, and check that the bystanders were not disturbed. */
static void end_all(struct bystanders *others)
{
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	bystanders_close(others);
}

/* A rank that joins afterwards finds a working device. */
static void all_is_well(void)
{
	struct setup s;
	struct rank r;

	setup_local(&s, 0, 3);
	s.join.job++;
	rank_open(&r, &s);
	rank_works(&r);
	rank_close(&r);
}

TEST(K3_entries_rewritten_while_read)
{
	struct bystanders others;
	struct culprit c;
	pthread_t thread;
	uint64_t end;

	bystanders_open(&others);
	culprit_open(&c, &others);
	CHECK_EQ(pthread_create(&thread, NULL, rewrite_entries, &c), 0);
	for (end = in_ms(run_time()); now_ns() < end;) {
		struct acp_sqe e;

		random_entry(&c, &e, &c.seed);
		rank_submit(&c.r, &e);
	}
	CHECK(rank_await(&c.r, c.r.last, PATIENCE_WORK) >= 0);
	end_all(&others);
	pthread_join(thread, NULL);
	rank_close(&c.r);
	all_is_well();
}

/* The user writes tail: it may have any value, and change at any time. */
static uint64_t some_tail(const struct culprit *c, uint64_t *seed)
{
	uint64_t x = next_random(seed), completed = rank_completed(&c->r);

	switch (x % 10) {
	case 0:
		return 0;
	case 1:
		return ~0ULL;
	case 2:
		return 1;
	case 3:
		return completed - 1;
	case 4:
		return completed + c->r.join.depth;
	case 5:
		return completed + c->r.join.depth + 1;
	case 6:
		return 1ULL << 63;
	case 7:
		return x;
	case 8:
		return completed + 1;
	default:
		return completed + (x >> 8) % (c->r.join.depth + 2);
	}
}

TEST(K3_tail_jumps)
{
	struct bystanders others;
	struct culprit c;
	pthread_t thread;
	uint64_t end;

	bystanders_open(&others);
	culprit_open(&c, &others);
	CHECK_EQ(pthread_create(&thread, NULL, ring_bell, &c), 0);
	for (end = in_ms(run_time()); now_ns() < end;) {
		random_entry(&c, &c.r.entries[next_random(&c.seed) % c.r.join.depth], &c.seed);
		__atomic_store_n(&c.r.sq->tail, some_tail(&c, &c.seed), __ATOMIC_RELEASE);
		if (!(next_random(&c.seed) % 64))
			sched_yield();
	}
	end_all(&others);
	pthread_join(thread, NULL);
	rank_close(&c.r);
	all_is_well();
}

/* The ring works again once tail has a valid value. */
TEST(K3_tail_comes_back)
{
	static const uint64_t bad[] = { 0, ~0ULL, 1ULL << 63, 1ULL << 32 };
	struct rank r;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		rank_open_local(&r, 1);
		CHECK_EQ(rank_do_copy(&r, heap_ga(&r, 8), heap_ga(&r, 0), 8), ACP_ST_OK);
		__atomic_store_n(&r.sq->tail, bad[i], __ATOMIC_RELEASE);
		ioctl(r.fd, ACP_IOC_DOORBELL);
		ioctl(r.fd, ACP_IOC_DOORBELL);
		CHECK(rank_completed(&r) - 2 <= r.join.depth);
		rank_close(&r);
	}
	all_is_well();
}

/* A malformed entry fails with its reason; its neighbours do not. */
TEST(K3_malformed_entries)
{
	static const struct acp_sqe bad[] = {
		{ .op = 0 }, { .op = ACP_OP_END }, { .op = 255 },
		{ .op = ACP_OP_COPY, .flags = 4 }, { .op = ACP_OP_COPY, .flags = 128 },
		{ .op = ACP_OP_COPY, .reserved = { 1 } },
		{ .op = ACP_OP_COPY, .reserved = { [5] = 1 } },
		{ .op = ACP_OP_COPY, .a = 1 }, { .op = ACP_OP_COPY, .b = 1 },
		{ .op = ACP_OP_COPY, .size = ACP_COPY_MAX + 1 },
		{ .op = ACP_OP_COPY, .size = ~0ULL }, { .op = ACP_OP_COPY, .order = ~0ULL },
		{ .op = ACP_OP_COPY, .order = 1000 }, { .op = ACP_OP_ADD8, .size = 8 },
		{ .op = ACP_OP_STRIDED, .size = ACP_BLOCKS(8, 2), .a = 7, .b = 8 },
		{ .op = ACP_OP_STRIDED, .size = ACP_BLOCKS(8, 2), .a = 8, .b = 0 },
		{ .op = ACP_OP_STRIDED, .size = ACP_BLOCKS(8, 2), .a = 8, .b = -1ULL },
		{ .op = ACP_OP_STRIDED, .size = ~0ULL, .a = 1ULL << 33, .b = 1ULL << 33 },
		{ .op = ACP_OP_COPY_SET, .size = ~0ULL }, { .op = ACP_OP_COPY_ADD, .flags = 8 },
		{ .op = ACP_OP_ADD8, .order = ~0ULL - 1 },
		{ .op = ACP_OP_REDUCE, .size = 4, .a = ACP_REDUCE(ACP_REDUCE_SUM, ACP_REDUCE_F64) },
		{ .op = ACP_OP_REDUCE, .size = 8, .a = ACP_REDUCE(ACP_REDUCE_AND, ACP_REDUCE_F64) },
		{ .op = ACP_OP_REDUCE, .size = 8, .a = ~0ULL }, { .op = ACP_OP_REDUCE, .b = 1 },
		{ .op = ACP_OP_ACCUMULATE, .size = ACP_NUMBERS(ACP_REDUCE_AND, ACP_REDUCE_F64, 1) },
		{ .op = ACP_OP_ACCUMULATE, .size = ~0ULL },
		{ .op = ACP_OP_ACCUMULATE, .size = ACP_NUMBERS(0, 0, 1), .b = 1 },
		{ .op = ACP_OP_ACCUMULATE, .size = ACP_NUMBERS(0, 0, 1), .a = 8 },
	};
	struct rank r;
	size_t i;

	rank_open_local(&r, 1);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct acp_sqe e = bad[i];
		int status;

		e.dst = heap_ga(&r, 64);
		e.src = heap_ga(&r, 0);
		status = rank_await(&r, rank_submit(&r, &e), PATIENCE_SOON);
		if (status != ACP_ST_OP)
			FAIL("bad entry %zu: status %d", i, status);
		CHECK_EQ(r.cq->failed, i + 1);
		CHECK_EQ(rank_do_copy(&r, heap_ga(&r, 64), heap_ga(&r, 0), 8), ACP_ST_OK);
	}
	CHECK_EQ(rank_await(&r, rank_copy(&r, heap_ga(&r, 64), heap_ga(&r, 0), 8, r.last + 1),
			    PATIENCE_SOON), ACP_ST_OP);
}

/* ---- K4 ---- */

TEST(K4_ring_full)
{
	struct acp_sqe e = { .op = ACP_OP_ADD8, .a = 1 };
	struct setup s;
	struct rank r;
	uint64_t i;

	setup_local(&s, 0, 1);
	s.join.depth = ACP_DEPTH_DEFAULT;
	rank_open(&r, &s);
	e.src = heap_ga(&r, 0);
	e.dst = heap_ga(&r, 8);
	for (i = 1; i <= r.join.depth; i++)
		rank_push(&r, &e);
	CHECK_EQ(ioctl(r.fd, ACP_IOC_DOORBELL), 0);
	CHECK_EQ(rank_await(&r, r.last, PATIENCE_WORK), ACP_ST_OK);
	CHECK_EQ(rank_completed(&r), 1 + r.join.depth);
	CHECK_EQ(*(uint64_t *)r.heap, r.join.depth);
	CHECK_EQ(*(uint64_t *)(r.heap + 8), r.join.depth - 1);
}

TEST(fdatasync_is_a_doorbell)
{
	struct acp_sqe e = { .op = ACP_OP_ADD8, .a = 1 };
	struct rank r;
	int i;

	rank_open_local(&r, 1);
	e.src = heap_ga(&r, 0);
	e.dst = heap_ga(&r, 8);
	for (i = 1; i <= 3; i++) {
		rank_push(&r, &e);
		CHECK_EQ(i == 3 ? fsync(r.fd) : fdatasync(r.fd), ACP_RUNG);
		CHECK_EQ(rank_completed(&r), r.last);
		CHECK_EQ(*(uint64_t *)r.heap, (uint64_t)i);
	}
}

/* No status is ever read: the ring wraps many times, memory stays bounded. */
TEST(K4_completions_never_looked_at)
{
	struct acp_sqe e = { .op = ACP_OP_ADD4, .a = 1 };
	uint64_t i, count = test_short() ? 50000 : 500000;
	long long before;
	struct rank r[2];

	rank_open_local(r, 2);
	e.src = heap_ga(&r[1], 0);
	e.dst = heap_ga(&r[0], 8);
	before = meminfo_kib("Slab");
	for (i = 0; i < count; i++)
		rank_submit(&r[0], &e);
	CHECK_EQ(rank_await(&r[0], r[0].last, PATIENCE_WORK), ACP_ST_OK);
	CHECK_EQ(*(uint32_t *)r[1].heap, (uint32_t)count);
	CHECK(meminfo_kib("Slab") - before < 16384);
}

/* A ring whose owner keeps overwriting entries that were not taken yet. */
TEST(K4_ring_overrun)
{
	struct bystanders others;
	struct culprit c;
	uint64_t end;

	bystanders_open(&others);
	culprit_open(&c, &others);
	for (end = in_ms(run_time()); now_ns() < end;) {
		struct acp_sqe e;

		random_entry(&c, &e, &c.seed);
		rank_push(&c.r, &e);
	}
	CHECK_EQ(ioctl(c.r.fd, ACP_IOC_DOORBELL), 0);
	end_all(&others);
	rank_close(&c.r);
	all_is_well();
}

TEST(K4_doorbell_storm)
{
	struct bystanders others;
	struct culprit c;
	pthread_t thread[16];
	uint64_t i, end, count = 0;

	bystanders_open(&others);
	culprit_open(&c, &others);
	for (i = 0; i < 16; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, ring_bell, &c), 0);
	for (end = in_ms(run_time()); now_ns() < end; count++)
		rank_atomic(&c.r, ACP_OP_ADD8, heap_ga(&c.r, 8), heap_ga(&c.r, 0), 1, 0, 0);
	CHECK_EQ(rank_await(&c.r, c.r.last, PATIENCE_WORK), ACP_ST_OK);
	end_all(&others);
	for (i = 0; i < 16; i++)
		pthread_join(thread[i], NULL);
	CHECK_EQ(*(uint64_t *)c.r.heap, count);
	rank_close(&c.r);
}

static void *wait_at_random(void *arg)
{
	struct culprit *c = arg;
	uint64_t seed = now_ns();

	while (!stopped()) {
		struct acp_wait w = {
			.size = sizeof(w), .ticket = next_random(&seed) % 100000,
			.flags = next_random(&seed) % 2, .timeout_ns = next_random(&seed) % MS,
		};

		if (ioctl(c->r.fd, ACP_IOC_WAIT, &w))
			CHECK(errno == ETIMEDOUT || errno == EINVAL);
	}
	return NULL;
}

/* Many threads wait for existing and non-existing tickets while the ring is in use. */
TEST(K4_waiter_storm)
{
	struct culprit c = { 0 };
	pthread_t thread[16];
	uint64_t i, count = test_short() ? 2000 : 20000;

	rank_open_local(&c.r, 1);
	for (i = 0; i < 16; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, wait_at_random, &c), 0);
	for (i = 0; i < count; i++)
		rank_atomic(&c.r, ACP_OP_ADD8, heap_ga(&c.r, 8), heap_ga(&c.r, 0), 1, 0, 0);
	CHECK_EQ(rank_await(&c.r, c.r.last, PATIENCE_WORK), ACP_ST_OK);
	CHECK_EQ(*(uint64_t *)c.r.heap, count);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < 16; i++)
		pthread_join(thread[i], NULL);
}
