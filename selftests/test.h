/* SPDX-License-Identifier: MIT */
/*
 * Tests in C: a file of TEST(function__case) { ... CHECK(...); ... } and one
 * TEST_MAIN.  Prints KTAP; the exit status is 1 if a test failed.  The first
 * CHECK that fails ends its test, wherever it stands.
 *
 * Arguments of a test program: parts of names; only such tests run.
 */
#ifndef ACP_TEST_H
#define ACP_TEST_H

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEST_MOST	256

struct test {
	const char *name;
	void (*run)(void);
};

struct test_state {
	struct test all[TEST_MOST];
	int count;
	jmp_buf out;		/* where a failed or skipped test goes */
	char why[400];
};

static struct test_state test_state;

/* A test: registers itself, in the order of the file. */
#define TEST(name)								\
	static void name(void);							\
	__attribute__((constructor)) static void name##_register(void)		\
	{									\
		test_add(#name, name);						\
	}									\
	static void name(void)

static inline void test_add(const char *name, void (*run)(void))
{
	if (test_state.count == TEST_MOST)
		abort();
	test_state.all[test_state.count++] = (struct test){ name, run };
}

/* End the running test as failed: file:line and printf-like reason. */
#define FAIL(...)								\
	do {									\
		int at_ = snprintf(test_state.why, sizeof(test_state.why), "%s:%d ",	\
				   __FILE__, __LINE__);				\
		snprintf(test_state.why + at_, sizeof(test_state.why) - at_, __VA_ARGS__); \
		longjmp(test_state.out, 1);					\
	} while (0)

/* End the running test as skipped. */
#define SKIP(...)								\
	do {									\
		snprintf(test_state.why, sizeof(test_state.why), __VA_ARGS__);	\
		longjmp(test_state.out, 2);					\
	} while (0)

#define CHECK(condition)							\
	do {									\
		if (!(condition))						\
			FAIL("%s", #condition);					\
	} while (0)

/* Two integers are the same; says both if not. */
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

/* Run one; whether it did not fail. */
static inline int test_one(const struct test *t, int number)
{
	int how;

	how = setjmp(test_state.out);
	if (!how)
		t->run();
	if (how == 1)
		printf("not ok %d - %s # %s\n", number, t->name, test_state.why);
	else if (how == 2)
		printf("ok %d - %s # SKIP %s\n", number, t->name, test_state.why);
	else
		printf("ok %d - %s\n", number, t->name);
	fflush(stdout);
	return how != 1;
}

static inline int test_main(int argc, char **argv)
{
	int i, number = 0, failed = 0;

	printf("KTAP version 1\n");
	for (i = 0; i < test_state.count; i++)
		number += test_wanted(test_state.all[i].name, argc, argv);
	printf("1..%d\n", number);
	number = 0;
	for (i = 0; i < test_state.count; i++)
		if (test_wanted(test_state.all[i].name, argc, argv))
			failed += !test_one(&test_state.all[i], ++number);
	return failed != 0;
}

#define TEST_MAIN								\
	int main(int argc, char **argv)						\
	{									\
		return test_main(argc, argv);					\
	}

#endif /* ACP_TEST_H */
