// SPDX-License-Identifier: MIT
/* Limits that grow with what the machine does not deliver: ../patience.h, and its use in test.h. */
#include "test.h"

#define MS	1000000ULL

/* ---- By a clock that is played ---- */

TEST(advance__counts_from_the_first_tick)
{
	struct patience_clock c = { 0 };

	patience_advance(&c, 5 * PATIENCE_S);
	CHECK_EQ(c.work, 0);
	patience_advance(&c, 5 * PATIENCE_S + 250 * MS);
	CHECK_EQ(c.work, 250 * MS);
}

TEST(advance__a_slow_machine_delivers_less)
{
	struct patience_clock c = { .percent = 400 };

	patience_advance(&c, PATIENCE_S);
	patience_advance(&c, PATIENCE_S + 400 * MS);
	CHECK_EQ(c.work, 100 * MS);
	c.percent = 90;
	patience_advance(&c, PATIENCE_S + 500 * MS);
	CHECK_EQ(c.work, 200 * MS);
}

TEST(advance__a_stopped_machine_delivers_a_tenth)
{
	struct patience_clock c = { .percent = 400 };

	patience_advance(&c, PATIENCE_S);
	patience_advance(&c, 4 * PATIENCE_S);
	CHECK_EQ(c.work, 300 * MS);
}

TEST(advance__never_less_than_a_tenth)
{
	struct patience_clock c = { .percent = 1000000 };

	patience_advance(&c, PATIENCE_S);
	patience_advance(&c, PATIENCE_S + 500 * MS);
	CHECK_EQ(c.work, 50 * MS);
}

TEST(measure__knows_what_the_loop_takes_at_best)
{
	struct patience_clock c = { 0 };
	uint64_t best;

	patience_measure(&c);
	CHECK(c.best && c.percent >= 100);
	best = c.best;
	patience_measure(&c);
	CHECK(c.best <= best && c.percent >= 100);
	c.best = 1;
	patience_measure(&c);
	CHECK(c.percent > 100 * PATIENCE_EXTENSIONS);
}

/* ---- By the clock of this machine ---- */

TEST(over__after_the_base)
{
	struct patience p = patience_begin(100 * MS);

	CHECK(!patience_over(&p));
	while (!patience_over(&p))
		usleep(1000);
	CHECK(patience_time() - p.begun >= 100 * MS);
}

struct stopped {
	int ready, flag, failed;	/* atomic */
};

/* Wait for a flag, with a clock of its own. */
static void wait_for_flag(struct stopped *s)
{
	struct patience p;

	patience_clock = &patience_own;
	p = patience_begin(2 * PATIENCE_S);
	__atomic_store_n(&s->ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&s->flag, __ATOMIC_ACQUIRE) && !s->failed) {
		s->failed = patience_over(&p);
		usleep(10000);
	}
	/* the end is that of a limit that was not extended */
	if (patience_time() - p.begun < 3 * PATIENCE_S)
		s->failed = 2;
	_exit(0);
}

TEST(over__not_while_the_process_is_stopped)
{
	struct stopped *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	CHECK(s != MAP_FAILED);
	child = fork();
	if (!child)
		wait_for_flag(s);
	while (!__atomic_load_n(&s->ready, __ATOMIC_ACQUIRE))
		usleep(1000);
	CHECK(!kill(child, SIGSTOP));
	sleep(3);
	CHECK(!kill(child, SIGCONT));
	usleep(100000);
	__atomic_store_n(&s->flag, 1, __ATOMIC_RELEASE);
	CHECK_EQ(waitpid(child, NULL, 0), child);
	CHECK_EQ(s->failed, 0);
}

TEST(poll__says_whether_there_was_an_event)
{
	int pipes[2];

	CHECK(!pipe(pipes));
	CHECK(!patience_poll(pipes[0], POLLIN, 10 * MS));
	CHECK_EQ(write(pipes[1], "", 1), 1);
	CHECK(patience_poll(pipes[0], POLLIN, PATIENCE_SOON));
}

/* ---- The limit of a test ---- */

static void wait_long_enough(void)
{
	usleep(2 * PATIENCE_TICK / 1000);
}

static void check_errno(void)
{
	CHECK_EQ(errno, 0);
}

/* Ticks interrupt the harness, not the tests. */
TEST(limit__leaves_no_errno_to_tests)
{
	const struct test first = { "first", wait_long_enough }, second = { "second", check_errno };

	CHECK(patience_share());
	test_state.end = mmap(NULL, sizeof(*test_state.end), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(test_state.end != MAP_FAILED);
	test_in_child(&first, test_state.end);
	test_in_child(&second, test_state.end);
	CHECK_EQ(test_state.end->failed, 0);
}

static void hang(void)
{
	test_limit(100 * MS);
	fork();
	for (;;)
		pause();
}

/* Its other process has the pipe, too: it must end as well. */
TEST(limit__ends_all_processes_of_a_test_that_hangs)
{
	const struct test t = { "hang", hang };
	int pipes[2];
	char byte;

	CHECK(!pipe(pipes));
	CHECK(patience_share());
	test_state.end = mmap(NULL, sizeof(*test_state.end), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(test_state.end != MAP_FAILED);
	test_in_child(&t, test_state.end);
	CHECK(test_state.end->failed && !strcmp(test_state.end->why, "hung"));
	close(pipes[1]);
	CHECK_EQ(read(pipes[0], &byte, 1), 0);
}

TEST_MAIN
