// SPDX-License-Identifier: MIT
/*
 * O9: long copies within a node. The caller executes a part of them, a worker the rest, while calls
 * are interrupted, wait, or the rank leaves.
 */
#include "isolated.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "rank.h"

#define MB	(1UL << 20)

static struct rank r[2];
static struct memory from, to;

static void begin(size_t size)
{
	rank_open_local(r, 2);
	memory_open(&r[0], &from, size);
	memory_open(&r[1], &to, size);
	fill(from.addr, size, 1);
}

static uint64_t start(size_t offset, size_t size, uint64_t order)
{
	return rank_copy(&r[0], memory_ga(&to, offset), memory_ga(&from, offset), size, order);
}

/* Nobody else reads the ring, so the doorbell executes the copy. */
TEST(O9_done_when_the_doorbell_returns)
{
	int i;

	begin(MB);
	for (i = 0; i < 10; i++) {
		bool asleep = r[0].cq->flags & ACP_CQ_NEED_WAKEUP;
		uint64_t ticket;

		fill(from.addr, MB, (uint64_t)i);
		ticket = start(0, MB, 0);
		if (asleep)
			CHECK(rank_completed(&r[0]) >= ticket);
		CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_SOON), ACP_ST_OK);
		CHECK(filled(to.addr, MB, (uint64_t)i));
		sleep_ms(5);
	}
}

#ifdef __x86_64__
#define VECTORS	16

/* The contents of all vector registers before and after a doorbell. */
static void doorbell_with(int fd, const uint8_t before[VECTORS][32], uint8_t behind[VECTORS][32])
{
	long result = SYS_fdatasync;

#define LOAD(n)		"vmovdqu 32*" #n "(%[before]), %%ymm" #n "\n\t"
#define STORE(n)	"vmovdqu %%ymm" #n ", 32*" #n "(%[behind])\n\t"
	asm volatile(LOAD(0) LOAD(1) LOAD(2) LOAD(3) LOAD(4) LOAD(5) LOAD(6) LOAD(7)
		     LOAD(8) LOAD(9) LOAD(10) LOAD(11) LOAD(12) LOAD(13) LOAD(14) LOAD(15)
		     "syscall\n\t"
		     STORE(0) STORE(1) STORE(2) STORE(3) STORE(4) STORE(5) STORE(6) STORE(7)
		     STORE(8) STORE(9) STORE(10) STORE(11) STORE(12) STORE(13) STORE(14) STORE(15)
		     : "+a" (result)
		     : "D" (fd), [before] "r" (before), [behind] "r" (behind)
		     : "rcx", "r11", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
		       "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
		       "xmm14", "xmm15");
	CHECK_EQ(result, ACP_RUNG);
}

/* The module copies with vector registers: it must preserve those of its caller. */
TEST(O9_the_callers_registers_stay)
{
	uint8_t before[VECTORS][32], behind[VECTORS][32];
	struct acp_sqe e = { .op = ACP_OP_COPY, .size = MB };
	uint64_t ticket, i;

	if (!__builtin_cpu_supports("avx"))
		SKIP("no vector registers");
	begin(MB);
	e.dst = memory_ga(&to, 0);
	e.src = memory_ga(&from, 0);
	for (i = 0; i < 50; i++) {
		fill(from.addr, MB, i);
		fill((char *)before, sizeof(before), 1000 + i);
		ticket = rank_push(&r[0], &e);
		doorbell_with(r[0].fd, before, behind);
		CHECK(!memcmp(before, behind, sizeof(before)));
		CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_SOON), ACP_ST_OK);
		CHECK(filled(to.addr, MB, i));
	}
}
#endif

/* A copy longer than one call executes, and a command ordered after it. */
TEST(O9_longer_than_a_call_does)
{
	uint64_t ticket, behind;

	begin(8 * MB);
	ticket = start(0, 8 * MB, 0);
	*(uint64_t *)r[0].heap = ~0ULL;
	behind = rank_copy(&r[0], heap_ga(&r[0], 0), memory_ga(&to, 8 * MB - 8), 8, ticket);
	CHECK_EQ(rank_await(&r[0], behind, PATIENCE_WORK), ACP_ST_OK);
	CHECK(filled(to.addr, 8 * MB, 1));
	CHECK(!memcmp(r[0].heap, from.addr + 8 * MB - 8, 8));
}

/* A wait with timeout 0 returns soon, and the copy continues. */
TEST(O9_no_time_to_wait)
{
	struct patience p;
	uint64_t ticket;
	int status;

	begin(8 * MB);
	ticket = start(0, 8 * MB, 0);
	p = patience_begin(PATIENCE_SOON);
	while ((status = rank_wait(&r[0], ticket, 0)) < 0 && !patience_over(&p))
		;
	CHECK_EQ(status, ACP_ST_OK);
	CHECK(filled(to.addr, 8 * MB, 1));
}

TEST(O9_many_at_once)
{
	uint64_t last = 0;
	size_t i;

	begin(8 * MB);
	for (i = 0; i < 40; i++)
		last = start(i * 200000, 200000, i % 3 ? 0 : last);
	CHECK_EQ(rank_await(&r[0], last, PATIENCE_WORK), ACP_ST_OK);
	CHECK(!memcmp(to.addr, from.addr, 8000000));
}

/*
 * A range that exceeds its region is detected before the first byte is copied; a bad command does
 * not stop others.
 */
TEST(O9_out_of_range)
{
	uint64_t bad, good;

	begin(2 * MB);
	bad = start(MB, MB + 1, 0);
	good = start(0, MB, 0);
	CHECK_EQ(rank_await(&r[0], good, PATIENCE_SOON), ACP_ST_OK);
	CHECK_EQ(rank_await(&r[0], bad, PATIENCE_SOON), ACP_ST_RANGE);
	CHECK(!memcmp(to.addr, from.addr, MB));
	CHECK_EQ(to.addr[MB] | to.addr[2 * MB - 1], 0);
}

static void nothing(int number)
{
	(void)number;
}

/* With frequent signals: an interrupted call returns, and the copies complete. */
TEST(O9_interrupted)
{
	struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction action = { .sa_handler = nothing };
	int i;

	begin(4 * MB);
	CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
	CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
	for (i = 0; i < (test_short() ? 5 : 20); i++) {
		uint64_t ticket;

		fill(from.addr, 4 * MB, (uint64_t)i);
		ticket = start(0, 4 * MB, 0);
		while (rank_completed(&r[0]) < ticket)
			rank_wait(&r[0], ticket, MS);
		CHECK_EQ(rank_wait(&r[0], ticket, MS), ACP_ST_OK);
		CHECK(filled(to.addr, 4 * MB, (uint64_t)i));
	}
}

static bool stop;

static void *copy_on(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		CHECK_EQ(rank_await(&r[0], start(0, 8 * MB, 0), PATIENCE_WORK), ACP_ST_OK);
	return arg;
}

/* Endless copies of one rank must not delay short commands of another. */
TEST(O9_others_go_on)
{
	pthread_t thread;
	struct patience soon;
	uint64_t begun;
	int i;

	begin(8 * MB);
	CHECK_EQ(pthread_create(&thread, NULL, copy_on, NULL), 0);
	begun = now_ns();
	soon = patience_begin(PATIENCE_SOON);
	for (i = 0; i < 200; i++)
		CHECK_EQ(rank_do_copy(&r[1], heap_ga(&r[1], 0), heap_ga(&r[1], 64), 8), ACP_ST_OK);
	printf("# a short one took %llu us\n", (unsigned long long)(now_ns() - begun) / 200000);
	CHECK(!patience_over(&soon));
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

/* Closing a rank does not wait for the copy, and nothing of it remains. */
TEST(O9_left_meanwhile)
{
	int i;

	for (i = 0; i < 5; i++) {
		begin(8 * MB);
		start(0, 8 * MB, 0);
		start(0, 4 * MB, 0);
		if (i % 2)
			CHECK_EQ(rank_unregister(&r[1], to.reg.key, NULL), 0);
		rank_close(&r[i & 1]);
		munmap(from.addr, from.size);
		munmap(to.addr, to.size);
		rank_close(&r[!(i & 1)]);
	}
}

/* A job that ends waits only for its own copies, and nobody waits for the job. */
TEST(O9_other_jobs_end)
{
	struct acp_sqe e = { .op = ACP_OP_STRIDED, .size = ACP_BLOCKS(1, 4 * MB), .a = 2, .b = 1 };
	struct patience p;
	struct setup s;
	struct rank b;
	int i, fd;

	/* Copying single bytes takes long, and no caller executes it. */
	begin(8 * MB);
	e.dst = memory_ga(&to, 0);
	e.src = memory_ga(&from, 0);
	setup_local(&s, 0, 1);
	s.join.job += 1000000;
	rank_open(&b, &s);
	for (i = 0; i < 60; i++)
		rank_push(&r[0], &e);
	CHECK_EQ(ioctl(r[0].fd, ACP_IOC_DOORBELL), 0);
	rank_close(&b);
	/*
	 * Joining a job that all its ranks have left ends that job first, or waits until it has
	 * ended.
	 */
	p = patience_begin(PATIENCE_WORK);
	while ((fd = setup_join(&s)) < 0 && !patience_over(&p))
		sleep_ms(20);
	CHECK(fd >= 0);
	CHECK(rank_completed(&r[0]) < r[0].last);
	close(fd);
}
