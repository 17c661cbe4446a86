/* SPDX-License-Identifier: MIT */
/*
 * Tests in C as in ../test.h, but each in a process of its own:
 *
 *	TEST(K1_null_pointer)
 *	{
 *		CHECK(open("/dev/null", O_RDONLY) >= 0);
 *		CHECK_ERRNO(close(-1), EBADF);
 *	}
 *
 * What a test leaves behind (open files, mappings, children, a crash) does
 * not reach the next one, and a test that hangs is ended.  A CHECK that fails
 * ends its process; it may stand in threads and in children of the test.
 * isolated.c has main(): arguments choose tests by a part of their names.
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

#define TEST_SECONDS	180	/* until a test counts as hung */

struct test {
	const char *name;
	void (*run)(void);
	unsigned int seconds;
	struct test *next;
};

/* A test: registers itself, in the order of the file. */
#define TEST_LONG(name, limit)							\
	static void name(void);							\
	__attribute__((constructor)) static void name##_register(void)		\
	{									\
		static struct test self = { #name, name, limit, NULL };		\
										\
		test_add(&self);						\
	}									\
	static void name(void)

#define TEST(name)	TEST_LONG(name, TEST_SECONDS)

void test_add(struct test *t);

enum { TEST_FAILED = 1, TEST_SKIPPED = 2 };

/* End this process; the first that does so as failed or skipped gives the verdict. */
void test_end(int state, const char *file, int line, const char *format, ...)
	__attribute__((noreturn, format(printf, 4, 5)));

/* $ACP_TEST_SHORT: be brief, the machine is slow. */
bool test_short(void);

/* Run a function in a child that may lower its rights; it ends with 0 or by a CHECK. */
void in_child(void (*run)(void));

/* The same for who has to put something right then: 0, or the status of a child that failed. */
int child_status(void (*run)(void));

/* Write a file of the kernel's; false: it cannot be. */
bool write_file(const char *path, const char *text);

/* Wait until so many threads of a process sleep in an ioctl or on a futex. */
void wait_asleep(pid_t pid, int threads);

/* This thread runs on that processor from now on, and so do the softirqs that it causes. */
void stay_on(int processor);

/* Processor 1 on or off; false if this machine cannot. */
bool set_processor(bool on);

#define FAIL(...)	test_end(TEST_FAILED, __FILE__, __LINE__, __VA_ARGS__)
#define SKIP(...)	test_end(TEST_SKIPPED, __FILE__, __LINE__, __VA_ARGS__)

#define CHECK(condition)							\
	do {									\
		if (!(condition))						\
			FAIL("%s", #condition);					\
	} while (0)

/* Two integers are the same; says both if not. */
#define CHECK_EQ(found, wanted)							\
	do {									\
		long long found_ = (long long)(found);				\
		long long wanted_ = (long long)(wanted);			\
										\
		if (found_ != wanted_)						\
			FAIL("%s is %lld (0x%llx), not %s = %lld (0x%llx)", #found,	\
			     found_, found_, #wanted, wanted_, wanted_);	\
	} while (0)

/* A call that must fail with an errno. */
#define CHECK_ERRNO(call, wanted)						\
	do {									\
		int errno_ = (long)(call) == -1 ? errno : 0;			\
										\
		if (errno_ != (wanted))						\
			FAIL("%s: %s, wanted %s", #call, strerrorname_np(errno_), \
			     strerrorname_np(wanted));				\
	} while (0)

#endif /* ISOLATED_H */
