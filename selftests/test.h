/* SPDX-License-Identifier: MIT */
/*
 * Tests in C: a file of TEST(function__case) { ... CHECK(...); ... } and one TEST_MAIN. Prints
 * KTAP; the exit status is 1 if a test failed. Each test runs in a process of its own: a crash, or
 * open files, do not affect the next one. The first failed CHECK ends that process, even in a
 * thread, in another file, or in a child of the test.
 *
 * Arguments of a test program: parts of names; only matching tests run.
 */
#ifndef ACP_TEST_H
#define ACP_TEST_H

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "patience.h"

#define TEST_MAX	256

struct test {
	const char *name;
	void (*run)(void);
};

/* The result of a test, shared with the processes it starts. */
struct test_end {
	int failed, skipped;
	char why[500];
	uint64_t limit;		/* base of test_limit() */
	unsigned int limits;	/* number of calls; atomic */
};

struct test_state {
	struct test all[TEST_MAX];
	int count;
	struct test_end *end;
	pid_t group;		/* of the running test, or 0 */
};

/* One for all files of a program. */
__attribute__((weak)) struct test_state test_state;

/* Define a test. It registers itself, in the order of the file. */
#define TEST(name)								\
	static void name(void);							\
	__attribute__((constructor)) static void name##_register(void)		\
	{									\
		test_add(#name, name);						\
	}									\
	static void name(void)

static inline void test_add(const char *name, void (*run)(void))
{
	if (test_state.count == TEST_MAX)
		abort();
	test_state.all[test_state.count++] = (struct test){ name, run };
}

/* End the running test as failed, with file:line and a printf-like reason; the first one counts. */
#define FAIL(...)								\
	do {									\
		if (!__atomic_exchange_n(&test_state.end->failed, 1, __ATOMIC_SEQ_CST)) {	\
			char *why_ = test_state.end->why;			\
			int at_ = snprintf(why_, 100, "%.80s:%d ", __FILE__, __LINE__);	\
										\
			snprintf(why_ + at_, sizeof(test_state.end->why) - at_, __VA_ARGS__); \
		}								\
		fflush(stdout);							\
		_exit(1);							\
	} while (0)

/* End the running test as skipped. */
#define SKIP(...)								\
	do {									\
		snprintf(test_state.end->why, sizeof(test_state.end->why), __VA_ARGS__); \
		test_state.end->skipped = 1;					\
		fflush(stdout);							\
		_exit(0);							\
	} while (0)

#define CHECK(condition)							\
	do {									\
		if (!(condition))						\
			FAIL("%s", #condition);					\
	} while (0)

/* Check that two integers are equal; print both if not. */
#define CHECK_EQ(a, b)								\
	do {									\
		unsigned long long a_ = (unsigned long long)(a);		\
		unsigned long long b_ = (unsigned long long)(b);		\
										\
		if (a_ != b_)							\
			FAIL("%s == %s: %llu (0x%llx), not %llu (0x%llx)", #a, #b, a_,	\
			     a_, b_, b_);					\
	} while (0)

static inline int test_wanted(const char *name, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (strstr(name, argv[i]))
			return 1;
	return argc < 2;
}

/* From now on, the running test may take that long (see patience.h) before it counts as hanging. */
static inline void test_limit(uint64_t base)
{
	test_state.end->limit = base;
	__atomic_add_fetch(&test_state.end->limits, 1, __ATOMIC_RELEASE);
}

static inline void test_interrupt(int signal)
{
	(void)signal;
}

/* The test has a process group of its own, which does not end with this process. */
static inline void test_end_all(int signal)
{
	if (test_state.group)
		kill(-test_state.group, SIGKILL);
	_exit(128 + signal);
}

/* Wait for a test; kill its processes if it hangs. Returns its status. */
static inline int test_await(pid_t child, struct test_end *end)
{
	struct patience p = { 0 };
	unsigned int seen = 0, limits;
	int status;

	patience_interrupts(true);
	while (waitpid(child, &status, 0) != child) {
		if (errno != EINTR)
			abort();
		patience_tick(patience_clock);
		limits = __atomic_load_n(&end->limits, __ATOMIC_ACQUIRE);
		if (limits != seen)
			p = patience_begin(end->limit);
		seen = limits;
		if (seen && !end->failed && patience_over(&p)) {
			snprintf(end->why, sizeof(end->why), "hung");
			end->failed = 1;
			kill(-child, SIGKILL);
		}
	}
	patience_interrupts(false);
	return status;
}

/* Run a test in a child and wait for it. */
static inline void test_in_child(const struct test *t, struct test_end *end)
{
	struct sigaction tick = { .sa_handler = test_interrupt };
	pid_t child;
	int status;

	memset(end, 0, sizeof(*end));
	fflush(NULL);
	sigaction(SIGALRM, &tick, NULL);
	child = fork();
	if (child < 0)
		abort();
	setpgid(child, 0);
	if (!child) {
		signal(SIGALRM, SIG_DFL);
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
		errno = 0;
		t->run();
		exit(0);
	}
	test_state.group = child;
	status = test_await(child, end);
	test_state.group = 0;
	if (end->failed || !status)
		return;
	end->failed = 1;
	if (WIFSIGNALED(status))
		snprintf(end->why, sizeof(end->why), "killed by signal %d", WTERMSIG(status));
	else
		snprintf(end->why, sizeof(end->why), "exit status %d", WEXITSTATUS(status));
}

static inline int test_main(int argc, char **argv)
{
	void *shared = mmap(NULL, sizeof(struct test_end), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct test_end *end = shared;
	int i, number = 0, failed = 0;

	if (shared == MAP_FAILED || !patience_share())
		abort();
	signal(SIGINT, test_end_all);
	signal(SIGTERM, test_end_all);
	test_state.end = end;
	printf("KTAP version 1\n");
	for (i = 0; i < test_state.count; i++)
		number += test_wanted(test_state.all[i].name, argc, argv);
	printf("1..%d\n", number);
	number = 0;
	for (i = 0; i < test_state.count; i++) {
		const struct test *t = &test_state.all[i];

		if (!test_wanted(t->name, argc, argv))
			continue;
		test_in_child(t, end);
		failed += end->failed;
		printf("%sok %d - %s", end->failed ? "not " : "", ++number, t->name);
		if (end->failed || end->skipped)
			printf(" # %s%s", end->skipped ? "SKIP " : "", end->why);
		printf("\n");
	}
	return failed != 0;
}

#define TEST_MAIN								\
	int main(int argc, char **argv)						\
	{									\
		return test_main(argc, argv);					\
	}

#endif /* ACP_TEST_H */
