/* SPDX-License-Identifier: MIT */
/*
 * Tests in C as in ../test.h, but each in a process of its own:
 *
 *		TEST(K1_null_pointer)
 *		{
 *			CHECK(open("/dev/null", O_RDONLY) >= 0);
 *			CHECK_ERRNO(close(-1), EBADF);
 *		}
 *
 * What a test leaves behind (open files, mappings, children, a crash) does not affect the next one,
 * and a hanging test is killed. A failed CHECK ends its process; it may be used in threads and
 * children of the test. isolated.c has main(): arguments select tests by a part of their names.
 */
#ifndef ISOLATED_H
#define ISOLATED_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../patience.h"

struct test {
	const char *name;
	void (*run)(void);
	uint64_t limit;		/* until it counts as hanging; see patience.h */
	struct test *next;
};

/* Define a test. It registers itself, in the order of the file. */
#define TEST_LONG(name, limit)							\
	static void name(void);							\
	__attribute__((constructor)) static void name##_register(void)		\
	{									\
		static struct test self = { #name, name, limit, NULL };		\
										\
		test_add(&self);						\
	}									\
	static void name(void)

#define TEST(name)	TEST_LONG(name, PATIENCE_TEST)

void test_add(struct test *t);

enum { TEST_FAILED = 1, TEST_SKIPPED = 2 };

/* End this process. The first process that ends as failed or skipped determines the result. */
void test_end(int state, const char *file, int line, const char *format, ...)
	__attribute__((noreturn, format(printf, 4, 5)));

/* True if $ACP_TEST_SHORT is set: be brief, because the machine is slow. */
bool test_short(void);

/* Run a function in a child, which may drop privileges. It must end with 0 or by a CHECK. */
void in_child(void (*run)(void));

/*
 * The same for a caller that must clean up afterwards. Return 0, or the status of a child that
 * failed.
 */
int child_status(void (*run)(void));

/* Write a file of the kernel. False if that is not possible. */
bool write_file(const char *path, const char *text);

/*
 * Wait until @threads threads of a process sleep, in an ioctl or on a futex if the kernel tells the
 * call.
 */
void wait_asleep(pid_t pid, int threads);

/* Bind this thread, and the softirqs that it causes, to @processor. */
void stay_on(int processor);

/* Set processor 1 online or offline. False if this machine cannot do that. */
bool set_processor(bool on);

/* Swap to 64 MB of compressed memory, or no longer. False if this machine cannot do that. */
bool set_swap(bool on);

#define FAIL(...)	test_end(TEST_FAILED, __FILE__, __LINE__, __VA_ARGS__)
#define SKIP(...)	test_end(TEST_SKIPPED, __FILE__, __LINE__, __VA_ARGS__)

#define CHECK(condition)							\
	do {									\
		if (!(condition))						\
			FAIL("%s", #condition);					\
	} while (0)

/* Check that two integers are equal; print both if not. */
#define CHECK_EQ(found, wanted)							\
	do {									\
		long long found_ = (long long)(found);				\
		long long wanted_ = (long long)(wanted);			\
										\
		if (found_ != wanted_)						\
			FAIL("%s is %lld (0x%llx), not %s = %lld (0x%llx)", #found,	\
			     found_, found_, #wanted, wanted_, wanted_);	\
	} while (0)

/* Check that a call fails with this errno. */
#define CHECK_ERRNO(call, wanted)						\
	do {									\
		int errno_ = (long)(call) == -1 ? errno : 0;			\
										\
		if (errno_ != (wanted))						\
			FAIL("%s: %s, wanted %s", #call, strerrorname_np(errno_), \
			     strerrorname_np(wanted));				\
	} while (0)

#endif /* ISOLATED_H */
