// SPDX-License-Identifier: MIT
/* selftest: cpus=2 */
/*
 * K8: what a bystander feels of ranks of another user, whose rings are always full although nobody
 * rings for them (kernel/queue/budget.h).
 */
#include "../dev/isolated.h"

#include <linux/securebits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "budget_play.h"

#define PUTS	200
#define TIMED	20000		/* puts that are timed */
#define CROWD	32
#define FILLERS	1000		/* their job */
#define ANOTHER	65534		/* their user */
#define MOST	3		/* times as long as alone that a put may take */
#define ATTEMPTS	5

/* Become another user, who keeps the right to change the namespace. */
static void become_another(void)
{
	CHECK_EQ(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP), 0);
	CHECK_EQ(setresgid(ANOTHER, ANOTHER, ANOTHER), 0);
	CHECK_EQ(setresuid(ANOTHER, ANOTHER, ANOTHER), 0);
}

/* In the rings of 32 ranks there is always something, for which none of them rings. */
static void keep_full(uint64_t size)
{
	unsigned int i;

	become_another();
	for (i = 0; i < CROWD; i++)
		join(&idle[i], i, 2 * (CROWD + 1));
	/* This process is there for its rings: it delays nobody itself. */
	nice(19);
	for (;; usleep(1000))
		for (i = 0; i < CROWD; i++)
			push(&idle[i], ENTRIES - (idle[i].last - rank_completed(&idle[i])), size,
			     false);
}

/* Another rank of their job puts now and then: each time there is a round. */
static void put_often(void)
{
	become_another();
	join(&putter, CROWD, 2 * (CROWD + 1));
	join(&target, CROWD + 1, 2 * (CROWD + 1));
	/* As little else as possible: its time counts for whom it interrupts. */
	for (;; usleep(1000)) {
		rank_copy(&putter, heap_ga(&target, 0), heap_ga(&putter, 0), 8, 0);
		CHECK_EQ(putter.cq->failed, 0);
	}
}

static pid_t children[2];

static void disturb(uint64_t size)
{
	job = FILLERS;
	children[0] = fork();
	if (!children[0])
		put_often();
	children[1] = size ? fork() : 0;
	if (!children[1] && size)
		keep_full(size);
	job = 0;
}

static void leave_alone(void)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		if (!children[i])
			continue;
		kill(children[i], SIGKILL);
		CHECK_EQ(waitpid(children[i], NULL, 0), children[i]);
	}
}

/* As many commands of others as fill all rings complete in time. */
static void others_go_on(void)
{
	long long least = nodes_counter(&n, 0, "commands") + CROWD * ENTRIES;
	struct patience p = patience_begin(PATIENCE_SOON);

	while (nodes_counter(&n, 0, "commands") < least) {
		CHECK(!patience_over(&p));
		sleep_ms(20);
	}
}

static struct rank mine[2];

static void begin_beside(void)
{
	nodes_open(&n, 2, 1, false);
	join(&mine[0], 0, 2);
	join(&mine[1], 1, 2);
}

TEST(K8_a_bystander_of_32_ranks_with_full_rings)
{
	unsigned int i;

	begin_beside();
	disturb(LONG);
	others_go_on();
	for (i = 0; i < PUTS; i++)
		CHECK_EQ(rank_do_copy(&mine[0], heap_ga(&mine[1], 0), heap_ga(&mine[0], 0), 8),
			 ACP_ST_OK);
	others_go_on();
	leave_alone();
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t took[TIMED];

/* Times of puts, in nanoseconds: half of them take at most the first, 99 of 100 the second. */
struct times {
	uint64_t median, p99;
};

static struct times sorted(const char *beside)
{
	struct times t;

	qsort(took, TIMED, sizeof(took[0]), compare);
	t = (struct times){ took[TIMED / 2], took[TIMED / 100 * 99] };
	printf("# %s: 50 %% %.1f us, 99 %% %.1f us, 99.9 %% %.1f us, all %.1f us\n", beside,
	       (double)t.median / 1000, (double)t.p99 / 1000,
	       (double)took[TIMED / 1000 * 999] / 1000, (double)took[TIMED - 1] / 1000);
	return t;
}

static struct times time_puts(const char *beside)
{
	unsigned int i;

	for (i = 0; i < TIMED; i++) {
		uint64_t begun = now_ns(), ticket;

		ticket = rank_copy(&mine[0], heap_ga(&mine[1], 0), heap_ga(&mine[0], 0), 8, 0);
		while (rank_completed(&mine[0]) < ticket)
			;
		took[i] = now_ns() - begun;
	}
	return sorted(beside);
}

/*
 * The ranks of another user begin, and puts are timed: do they take less than three times as long
 * as alone, just before?
 */
static bool is_bounded(uint64_t size, const char *beside)
{
	struct times alone = time_puts("alone"), t;

	disturb(size);
	if (size)
		others_go_on();
	else
		sleep_ms(200);
	t = time_puts(beside);
	leave_alone();
	printf("# %s: median %.1f and p99 %.1f times those alone\n", beside,
	       (double)t.median / (double)alone.median, (double)t.p99 / (double)alone.p99);
	return t.median < MOST * alone.median && t.p99 < MOST * alone.p99;
}

/*
 * The machine may have other things to do at the moment, for which the puts of one attempt have to
 * wait. Rounds that cost more than they may do so in every attempt.
 */
static void time_beside(uint64_t size, const char *beside)
{
	int i;

	for (i = 0; i < ATTEMPTS; i++)
		if (is_bounded(size, beside))
			return;
	FAIL("%s: not once in %d attempts below %d times those alone", beside, ATTEMPTS, MOST);
}

TEST_LONG(K8_times_of_a_bystander, 3 * PATIENCE_LONG_TEST)
{
	if (test_short())
		SKIP("takes minutes");
	begin_beside();
	time_puts("warm");
	time_beside(0, "beside puts of others");
	time_beside(8, "... and 32 rings full of copies of 8 bytes");
	time_beside(LONG, "... and 32 rings full of copies of 16 KiB");
}
