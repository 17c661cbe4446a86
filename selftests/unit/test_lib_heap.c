// SPDX-License-Identifier: MIT
/*
 * The global heap: concurrent use, and deaths at any time. ACP_TEST_LONG=1: several hundred times
 * longer.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

#include "fake_acp.h"
#include "heap/heap.h"
#include "core/internal.h"
#include "test.h"

#include "heap_play.h"

#define KIB		1024u
#define HEAD(member)	offsetof(struct libacp_heap_head, member)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED	1
#else
#define SANITIZED	0
#endif

static unsigned int rounds(unsigned int number)
{
	return getenv("ACP_TEST_LONG") ? number * 100 : number;
}

/* ---- One, several, all ---- */

static void play(void *arg)
{
	struct heap_play p = {
		.seed = fake_random(), .most = 2000, .ranks = acp_procs(), .blocks = 60,
	};
	unsigned int i, steps = rounds(*(const unsigned int *)arg);

	heap_play_open(&p);
	for (i = 0; i < steps; i++) {
		CHECK_EQ(heap_play_step(&p), 0);
		if (i % 64 == 0)
			CHECK_EQ(acpx_heap_check((int)heap_play_draw(&p, (uint64_t)p.ranks)), 0);
	}
	CHECK(p.mallocs > steps / 4 && p.frees > steps / 8);
	heap_play_free_all(&p);
	CHECK_EQ(p.uncertain, 0);
	CHECK_EQ(acp_sync(), 0);
	heap_play_check_empty(acp_rank());
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() == 0)
		heap_play_check_empty(acp_procs() - 1);
	heap_play_close(&p);
}

TEST(heap__one_rank)
{
	unsigned int steps = 5000;
	struct fake_acp f = { .heap_size = 40 * KIB };

	fake_run(&f, play, &steps);
}

TEST(heap__same_node)
{
	unsigned int steps = 2000;
	struct fake_acp f = { .ranks = 3, .nodes = 1, .heap_size = 60 * KIB };

	fake_run(&f, play, &steps);
}

TEST(heap__other_nodes)
{
	unsigned int steps = 500;
	struct fake_acp f = { .ranks = 4, .heap_size = 60 * KIB };

	fake_run(&f, play, &steps);
}

TEST(heap__some_nodes)
{
	unsigned int steps = 300;
	struct fake_acp f = { .ranks = 5, .nodes = 2, .heap_size = 50 * KIB, .delay_us = 20 };

	fake_run(&f, play, &steps);
}

/* All ranks use the same small heap. */
static void play_crowded(void *arg)
{
	struct heap_play p = { .seed = fake_random(), .most = 300, .ranks = 1, .blocks = 8 };
	unsigned int i, steps = rounds(*(const unsigned int *)arg);

	heap_play_open(&p);
	for (i = 0; i < steps; i++)
		CHECK_EQ(heap_play_step(&p), 0);
	heap_play_free_all(&p);
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() == 1)
		heap_play_check_empty(0);
	heap_play_close(&p);
}

TEST(A1_ranks_in_one_small_heap)
{
	unsigned int steps = 300;
	struct fake_acp f = { .ranks = 6, .nodes = 3, .heap_size = 4 * KIB };

	fake_run(&f, play_crowded, &steps);
}

static void *play_thread(void *arg)
{
	struct heap_play p = {
		.seed = (uint64_t)(uintptr_t)arg, .most = 500, .ranks = acp_procs(), .blocks = 10,
	};
	unsigned int i;

	heap_play_open(&p);
	for (i = 0; i < rounds(200); i++)
		CHECK_EQ(heap_play_step(&p), 0);
	heap_play_free_all(&p);
	heap_play_close(&p);
	return NULL;
}

static void play_threads(void *arg)
{
	pthread_t threads[4];
	int i;

	for (i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, play_thread,
					(void *)(uintptr_t)fake_random()), 0);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	acp_sync();
	heap_play_check_empty(acp_rank());
	(void)arg;
}

TEST(heap__threads)
{
	struct fake_acp f = { .ranks = 2, .heap_size = 16 * KIB };

	fake_run(&f, play_threads, NULL);
}

TEST(heap__threads_same_node)
{
	struct fake_acp f = { .ranks = 2, .nodes = 1, .heap_size = 16 * KIB };

	fake_run(&f, play_threads, NULL);
}

/* ---- Costs ---- */

static void count_trips(void *arg)
{
	acp_ga_t block[40], spare;
	uint64_t begin;
	int i;

	(void)arg;
	if (acp_rank() == 0) {
		spare = acp_malloc(8, 1);	/* the scratch memory has been allocated */
		for (i = 0; i < 40; i++) {
			begin = fake_trips();
			block[i] = acp_malloc(100 + 10 * (size_t)i, 1);
			CHECK(block[i]);
			CHECK_EQ(fake_trips() - begin, 2);
		}
		for (i = 0; i < 40; i++) {
			begin = fake_trips();
			CHECK_EQ(acpx_free(block[i * 7 % 40]), 0);
			CHECK_EQ(fake_trips() - begin, 2);
			begin = fake_trips();
			CHECK(acp_malloc(20, 1));
			CHECK_EQ(fake_trips() - begin, 2);
		}
		CHECK_EQ(acpx_free(spare), 0);
		CHECK_EQ(acpx_heap_check(1), 0);
		begin = fake_remote_accesses();
		CHECK_EQ(acpx_free(acp_malloc(100, 0)), 0);
		CHECK_EQ(fake_remote_accesses() - begin, 0);
	}
}

TEST(heap__trips)
{
	struct fake_acp f = { .ranks = 2 };

	fake_run(&f, count_trips, NULL);
}

/* ---- Bad arguments, exhaustion ---- */

static void expect_no_block(acp_ga_t ga, int rank)
{
	struct acpx_heap_stats before, after;

	CHECK_EQ(acpx_heap_stats(rank, &before), 0);
	CHECK_EQ(acpx_free(ga), -EINVAL);
	acp_free(ga);
	CHECK_EQ(acpx_heap_stats(rank, &after), 0);
	CHECK_EQ(after.used, before.used);
	CHECK_EQ(acpx_heap_check(rank), 0);
}

static void free_what_is_none(int rank)
{
	acp_ga_t a = acp_malloc(64, rank), b = acp_malloc(64, rank), base;
	uint64_t i;

	base = acpx_query_heap_ga(rank);
	CHECK(a && b);
	for (i = 1; i < 72; i++)
		expect_no_block(a + i, rank);
	for (i = 0; i < 400; i += 4)
		if (base + i != a && base + i != b)
			expect_no_block(base + i, rank);
	for (i = 0; i < 64; i += 4)
		expect_no_block(base + 64 * KIB - i, rank);
	expect_no_block(base + (1ull << 38), rank);
	expect_no_block(acp_query_starter_ga(rank), rank);
	expect_no_block(acp_query_starter_ga(rank) + 4096, rank);
	expect_no_block(5, rank);
	expect_no_block(~0ull, rank);
	CHECK_EQ(acpx_free(ACP_GA_NULL), 0);
	acp_free(ACP_GA_NULL);
	CHECK_EQ(acpx_free(a), 0);
	expect_no_block(a, rank);
	CHECK_EQ(acpx_free(b), 0);
	expect_no_block(b, rank);
	expect_no_block(a, rank);
}

static void bad_frees(void *arg)
{
	static char memory[8192] __attribute__((aligned(4096)));
	acp_atkey_t key = acp_register_memory(memory, sizeof(memory), 0);

	(void)arg;
	if (acp_rank() == 0) {
		expect_no_block(acp_query_ga(key, memory + 4096), 0);
		free_what_is_none(0);
		free_what_is_none(1);
		heap_play_check_empty(0);
		heap_play_check_empty(1);
	}
	acp_sync();
	acp_unregister_memory(key);
}

TEST(A1_free_of_what_is_no_block)
{
	struct fake_acp f = { .ranks = 2, .heap_size = 64 * KIB };

	fake_run(&f, bad_frees, NULL);
}

/* Words of a block that look like the head of one. */
static void bad_looks(void *arg)
{
	acp_ga_t a = acp_malloc(256, 0), base = acpx_query_heap_ga(0);
	uint64_t *words = acp_query_address(a), at;
	int i;

	(void)arg;
	at = a - base;
	for (i = 0; i < 32; i++)
		words[i] = words[-1];
	for (i = 1; i < 32; i++)
		expect_no_block(a + 8 * (acp_ga_t)i, 0);
	words[31] = libacp_heap_tag(at + 8 * 31, 1 << 20, LIBACP_HEAP_USED);
	expect_no_block(a + 256, 0);
	CHECK_EQ(acpx_free(a), 0);
	heap_play_check_empty(0);
}

TEST(A1_free_of_what_looks_like_a_block)
{
	struct fake_acp f = { .ranks = 1 };

	fake_run(&f, bad_looks, NULL);
}

/* A write beyond a block is detected, and does no further damage. */
static void overrun(void *arg)
{
	acp_ga_t a, b, c, zero = acp_query_starter_ga(0);

	(void)arg;
	if (acp_rank() == 0) {		/* alone, so that b is behind a */
		a = acp_malloc(64, 1);
		b = acp_malloc(64, 1);
		c = acp_malloc(64, 1);
		CHECK(a && b && c);
		acp_complete(acp_copy(a + 64, zero, 8, ACP_HANDLE_NULL));
		CHECK_EQ(acpx_heap_check(1), ACPX_ECORRUPT);
		CHECK_EQ(acpx_free(b), -EUCLEAN);
		CHECK_EQ(acpx_free(c), 0);
		acp_complete(acp_copy(acpx_query_heap_ga(1) + HEAD(size), zero, 48,
				      ACP_HANDLE_NULL));
		CHECK_EQ(acp_malloc(8, 1), ACP_GA_NULL);
		CHECK(acpx_free(a) < 0);
	}
	acp_sync();
}

TEST(A1_overrun)
{
	struct fake_acp f = { .ranks = 2 };

	fake_run(&f, overrun, NULL);
}

static void exhaust(void *arg)
{
	acp_ga_t block[64];
	int i, n, rank;

	(void)arg;
	for (rank = 0; rank < 2 && acp_rank() == 0; rank++) {
		errno = 0;
		CHECK_EQ(acp_malloc(SIZE_MAX, rank), ACP_GA_NULL);
		CHECK_EQ(errno, ENOMEM);
		CHECK_EQ(acp_malloc(SIZE_MAX - 20, rank), ACP_GA_NULL);
		CHECK_EQ(acp_malloc(1ull << 39, rank), ACP_GA_NULL);
		for (n = 0; n < 64; n++) {
			block[n] = acp_malloc(n % 2 ? 0 : 100, rank);
			if (!block[n])
				break;
		}
		CHECK(n > 20 && n < 64);
		CHECK_EQ(acpx_heap_check(rank), 0);
		for (i = 0; i < n; i++)
			CHECK_EQ(acpx_free(block[i * 3 % n]), n % 3 ? 0 : 0);
		heap_play_check_empty(rank);
	}
	CHECK_EQ(acp_malloc(8, -1), ACP_GA_NULL);
	CHECK_EQ(acp_malloc(8, 2), ACP_GA_NULL);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(acpx_heap_check(2), ACPX_EOP);
	CHECK_EQ(acpx_heap_stats(0, NULL), ACPX_EOP);
	acp_sync();
}

TEST(A1_exhaustion_and_sizes_0_and_SIZE_MAX)
{
	struct fake_acp f = { .ranks = 2, .heap_size = 3000 };

	fake_run(&f, exhaust, NULL);
}

/* Heaps of all small sizes work, or do not exist. */
static void small(void *arg)
{
	int rank;

	(void)arg;
	for (rank = 0; rank < acp_procs(); rank++) {
		acp_ga_t ga = acp_malloc(8, rank);
		struct acpx_heap_stats stats;

		if (ga == ACP_GA_NULL)
			CHECK_EQ(errno, ENOMEM);
		else
			CHECK_EQ(acpx_free(ga), 0);
		if (acpx_heap_stats(rank, &stats) == 0)
			CHECK_EQ(acpx_heap_check(rank), 0);
	}
	acp_sync();
}

TEST(heap__small)
{
	struct fake_acp f = { .ranks = 60, .nodes = 2 };
	int i;

	for (i = 0; i < 60; i++)
		f.heap_sizes[i] = 1 + 7 * (uint64_t)i;
	fake_run(&f, small, NULL);
}

/* ---- Death ---- */

/* Continue to use the heap of rank 0 after a death. */
static void go_on(struct heap_play *p)
{
	unsigned int i;

	for (i = 0; i < 10; i++)
		heap_play_step(p);
	CHECK_EQ(p->uncertain, 0);
	heap_play_free_all(p);
	CHECK_EQ(acpx_heap_check(0), 0);
}

/* Rank 1 dies at some access; all ranks use heap 0. */
static void die_far(void *arg)
{
	struct heap_play p = { .seed = fake_random(), .most = 200, .ranks = 1, .blocks = 6 };
	unsigned int i;

	if (acp_rank() == 1)
		fake_die_at(*(const uint64_t *)arg);
	heap_play_open(&p);
	for (i = 0; i < 12 || acp_rank() == 1; i++)
		CHECK_EQ(heap_play_step(&p), 0);
	while (acpx_peer_state(1) != ACPX_PEER_DOWN)
		libacp_sleep(1000000);
	go_on(&p);
	heap_play_close(&p);
}

TEST(A1_death_far)
{
	uint64_t at;

	for (at = 1; at <= rounds(80); at++) {
		struct fake_acp f = { .ranks = 3, .heap_size = 4 * KIB, .speed = 200 };
		uint64_t when = 1 + at % 120;

		fake_run(&f, die_far, &when);
		CHECK_EQ(f.dead, 1);
	}
}

/* The owner of the heap dies; its heap fails, the others continue. */
static void die_owner(void *arg)
{
	struct heap_play p = {
		.seed = fake_random(), .most = 200, .ranks = 3, .blocks = 30,
	};
	unsigned int i;

	(void)arg;
	if (acp_rank() == 1)
		fake_die_at(100 + fake_random() % 200);
	heap_play_open(&p);
	for (i = 0; i < 200 || acp_rank() == 1; i++)
		heap_play_step(&p);
	while (acpx_peer_state(1) != ACPX_PEER_DOWN)
		libacp_sleep(1000000);
	CHECK_EQ(acp_malloc(8, 1), ACP_GA_NULL);
	CHECK_EQ(errno, EHOSTDOWN);
	CHECK_EQ(acpx_heap_check(1), ACPX_ERANK);
	heap_play_free_all(&p);
	CHECK_EQ(acpx_heap_check(acp_rank()), 0);
	CHECK_EQ(acpx_heap_check(2 - acp_rank()), 0);
	heap_play_close(&p);
}

TEST(A1_death_of_owner)
{
	unsigned int i;

	for (i = 0; i < rounds(10); i++) {
		struct fake_acp f = {
			.ranks = 3, .heap_size = 8 * KIB, .speed = 200, .errors_return = true,
		};

		fake_run(&f, die_owner, NULL);
		CHECK_EQ(f.dead, 1);
	}
}

enum word { READY, GO, VICTIM };

/* The victim allocates and frees in a near heap until it is killed at some instruction. */
static void be_stepped(void)
{
	acp_ga_t a[3] = { acp_malloc(40, 0), acp_malloc(50, 0), acp_malloc(60, 0) };

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	__atomic_store_n(fake_word(VICTIM), (uint64_t)getpid(), __ATOMIC_RELEASE);
	__atomic_store_n(fake_word(READY), 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(fake_word(GO), __ATOMIC_ACQUIRE))
		;
	for (;;) {
		acpx_free(a[0]);
		a[0] = acp_malloc(30, 0);
		acpx_free(a[2]);
		acpx_free(a[1]);
		a[1] = acp_malloc(150, 0);
		a[2] = acp_malloc(60, 0);
	}
}

/* Single-step the victim. False if that is not permitted here. */
static bool step_victim(uint64_t steps)
{
	pid_t pid;
	int status;

	while (!__atomic_load_n(fake_word(READY), __ATOMIC_ACQUIRE))
		usleep(50);
	pid = (pid_t)*fake_word(VICTIM);
	if (ptrace(PTRACE_ATTACH, pid, 0, 0) < 0)
		return false;
	CHECK_EQ(waitpid(pid, &status, __WALL), pid);
	__atomic_store_n(fake_word(GO), 1, __ATOMIC_RELEASE);
	while (steps--) {
		CHECK_EQ(ptrace(PTRACE_SINGLESTEP, pid, 0, 0), 0);
		CHECK_EQ(waitpid(pid, &status, __WALL), pid);
	}
	ptrace(PTRACE_DETACH, pid, 0, SIGSTOP);
	return true;
}

static void die_near(void *arg)
{
	struct heap_play p = { .seed = fake_random(), .most = 200, .ranks = 1, .blocks = 6 };
	bool allowed = true;

	if (acp_rank() == 1)
		be_stepped();
	if (acp_rank() == 2) {
		allowed = step_victim(*(const uint64_t *)arg);
		fake_kill(1);
	}
	while (acpx_peer_state(1) != ACPX_PEER_DOWN)
		libacp_sleep(1000000);
	if (!allowed)
		exit(0);
	heap_play_open(&p);
	go_on(&p);
	heap_play_close(&p);
}

TEST(A1_death_near)
{
	unsigned int i;

	for (i = 0; i < rounds(20); i++) {
		struct fake_acp f = {
			.ranks = 3, .nodes = 1, .heap_size = 4 * KIB, .speed = 200, .seed = i + 1,
		};
		uint64_t steps = i * 2654435761u % (SANITIZED ? 8000 : 1600);

		fake_run(&f, die_near, &steps);
		CHECK_EQ(f.dead, 1);
	}
}

/* Near and far ranks die one after the other, also while they end the hold of another one. */
static void die_in_turn(void *arg)
{
	struct heap_play p = { .seed = fake_random(), .most = 200, .ranks = 1, .blocks = 6 };
	int r;

	(void)arg;
	if (acp_rank())
		fake_die_at(1 + fake_random() % 60);
	heap_play_open(&p);
	do {
		CHECK_EQ(heap_play_step(&p), 0);
	} while (acp_rank());
	for (r = 1; r < acp_procs(); r++)
		while (acpx_peer_state(r) != ACPX_PEER_DOWN)
			CHECK_EQ(heap_play_step(&p), 0);
	go_on(&p);
	heap_play_close(&p);
}

TEST(A1_deaths)
{
	unsigned int i;

	for (i = 0; i < rounds(20); i++) {
		struct fake_acp f = {
			.ranks = 6, .nodes = i % 2 ? 3 : 6, .heap_size = 8 * KIB, .speed = 200,
		};

		fake_run(&f, die_in_turn, NULL);
		CHECK_EQ(f.dead, 5);
	}
}

/* ---- Networks ---- */

/* Rank 1 is disconnected repeatedly, for short and long times; no rank dies. */
static void be_cut(void *arg)
{
	struct heap_play p = { .seed = fake_random(), .most = 200, .ranks = 1, .blocks = 6 };
	unsigned int i;

	(void)arg;
	heap_play_open(&p);
	for (i = 0; i < 20 && acp_rank() == 3; i++) {
		libacp_sleep(fake_random() % 3000000000);
		fake_cut(1, true);
		libacp_sleep(fake_random() % (i % 2 ? 100000000 : 4000000000));
		fake_cut(1, false);
	}
	if (acp_rank() == 3)
		*fake_word(GO) = 1;
	while (!__atomic_load_n(fake_word(GO), __ATOMIC_ACQUIRE))
		heap_play_step(&p);
	if (acp_rank() != 1)
		CHECK_EQ(p.uncertain, 0);
	heap_play_free_all(&p);
	CHECK_EQ(acpx_heap_check(0), 0);
	acp_sync();
	heap_play_close(&p);
}

TEST(A1_cut_off)
{
	struct fake_acp f = {
		.ranks = 4, .heap_size = 64 * KIB, .speed = 100, .errors_return = true,
	};
	unsigned int i;

	for (i = 0; i < rounds(3); i++)
		fake_run(&f, be_cut, NULL);
}

/* ---- A hold that does not end ---- */

/*
 * Rank 1 is alive but does not continue: its lock is taken over if it is on another node, and not
 * if it is on that of the heap.
 */
static void keep_the_lock(void *arg)
{
	acp_ga_t base = acpx_query_heap_ga(0);
	struct libacp_txlock s;
	bool given_up = *(const bool *)arg;

	libacp_txlock_times.forsaken = 20000000000;
	libacp_txlock_times.patience = 30000000000;
	if (acp_rank() == 1) {
		CHECK_EQ(libacp_txlock_enter(&s, base, base, 64, NULL, 0), 0);
		libacp_txlock_store(&s, base + HEAD(blocks), 77);
	}
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() == 2) {
		uint64_t begin = libacp_now();
		acp_ga_t ga = acp_malloc(8, 0);

		CHECK_EQ(ga != ACP_GA_NULL, given_up);
		CHECK_EQ(errno == ETIMEDOUT, !given_up);
		CHECK(libacp_now() - begin >= libacp_txlock_times.forsaken);
		CHECK_EQ(acpx_free(ga), 0);
	}
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() == 1)
		CHECK_EQ(libacp_txlock_leave(&s) == 0, !given_up);
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() == 2 && given_up)
		heap_play_check_empty(0);
}

TEST(A1_stopped)
{
	struct fake_acp f = { .ranks = 3, .speed = 20 };
	bool given_up = true;

	fake_run(&f, keep_the_lock, &given_up);
	f.nodes = 1;
	given_up = false;
	fake_run(&f, keep_the_lock, &given_up);
}

TEST_MAIN
