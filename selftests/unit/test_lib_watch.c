// SPDX-License-Identifier: MIT
/*
 * Waiting for changes of own memory, with a fake device. Ranks 0 and 1 are on the node of rank 0, 2
 * and 3 on another one. If the device is "deaf", only a wake-up ends a sleep: a lost one hangs.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "acp.h"
#include "acp_ga.h"
#include "acp_abi.h"
#include "core/internal.h"
#include "core/process.h"
#include "test.h"
#include "test_lib_device.h"

#define MS	1000000ULL	/* ns */
#define THREADS	4
#define ROUNDS	200

static int start(void)
{
	setenv("ACP_RANK", "0", 1);
	setenv("ACP_NPROCS", "4", 1);
	setenv("ACP_NODES", "10.0.0.1 10.0.0.2", 1);
	setenv("ACP_INSECURE", "1", 1);
	setenv("ACP_QUEUE_DEPTH", "64", 1);
	setenv("ACP_STARTER_SIZE", "65536", 1);
	acpx_set_error_mode(ACPX_ERRORS_RETURN);
	return acp_init(NULL, NULL);
}

static acp_ga_t at(int rank, size_t offset)
{
	return acp_query_starter_ga(rank) + offset;
}

static uint64_t *word(size_t offset)
{
	return (uint64_t *)(void *)(fake.memory[ACP_STAG_STARTER][0] + offset);
}

static struct acpx_condition flag(size_t offset, int compare, uint64_t value)
{
	return (struct acpx_condition){
		.flag = word(offset), .size = 8, .compare = compare, .value = value,
	};
}

static int wait_ge(size_t offset, uint64_t value, uint64_t timeout_ns)
{
	return acpx_wait_until(word(offset), 8, ACPX_CMP_GE, value, timeout_ns);
}

/* ---- Conditions ---- */

TEST(compare__all_of_both_sizes)
{
	static const struct {
		uint64_t word, value;
		int order;		/* of the word and the value: -1, 0, 1 */
		int signed_order;
	} table[] = {
		{ 5, 5, 0, 0 }, { 4, 5, -1, -1 }, { 6, 5, 1, 1 }, { 0, UINT64_MAX, -1, 1 },
		{ UINT64_MAX, 0, 1, -1 }, { UINT64_MAX, UINT64_MAX, 0, 0 },
	};
	int size, sign, order;
	uint32_t half;
	uint64_t all;
	size_t i;

	CHECK(start() == 0);
	for (i = 0; i < 2 * 2 * sizeof(table) / sizeof(table[0]); i++) {
		size = i % 2 ? 4 : 8;
		sign = i / 2 % 2 ? ACPX_CMP_SIGNED : 0;
		all = table[i / 4].word;
		half = (uint32_t)all;
#define IS(compare) acpx_test(size == 4 ? (void *)&half : (void *)&all, (size_t)size,	\
			      (compare) | sign, table[i / 4].value)
		order = sign ? table[i / 4].signed_order : table[i / 4].order;
		CHECK(IS(ACPX_CMP_EQ) == (order == 0) && IS(ACPX_CMP_NE) == (order != 0));
		CHECK(IS(ACPX_CMP_GT) == (order > 0) && IS(ACPX_CMP_GE) == (order >= 0));
		CHECK(IS(ACPX_CMP_LT) == (order < 0) && IS(ACPX_CMP_LE) == (order <= 0));
	}
	CHECK(acp_finalize() == 0);
}

/* For words of 4 bytes, only the lower half of the value counts. */
TEST(compare__half_a_value)
{
	uint32_t half[2] = { 7, 1 };

	CHECK(start() == 0);
	CHECK(acpx_test(&half[0], 4, ACPX_CMP_EQ, 0x100000007) == 1);
	CHECK(acpx_test(&half[0], 4, ACPX_CMP_EQ, 8) == 0);
	CHECK(acp_finalize() == 0);
}

TEST(wait__impossible)
{
	struct acpx_condition c = { 0 };
	size_t index;

	CHECK(acpx_wait_until(&c.value, 8, ACPX_CMP_EQ, 0, 0) == -ENOTCONN);
	CHECK(start() == 0);
	CHECK(acpx_wait_until(NULL, 8, ACPX_CMP_EQ, 0, 0) == -EINVAL);
	CHECK(acpx_wait_until(word(0), 2, ACPX_CMP_EQ, 0, 0) == -EINVAL);
	CHECK(acpx_wait_until(word(0), SIZE_MAX, ACPX_CMP_EQ, 0, 0) == -EINVAL);
	CHECK(acpx_wait_until(word(4), 8, ACPX_CMP_EQ, 0, 0) == -EINVAL);
	CHECK(acpx_wait_until((char *)word(2), 4, ACPX_CMP_EQ, 0, 0) == -EINVAL);
	CHECK(acpx_wait_until(word(0), 8, 0, 0, 0) == -EINVAL);
	CHECK(acpx_wait_until(word(0), 8, 7, 0, 0) == -EINVAL);
	CHECK(acpx_test(word(0), 8, 16, 0) == -EINVAL && acpx_test(NULL, 8, 1, 0) == -EINVAL);
	CHECK(acpx_wait_until_all(NULL, 1, 0) == -EINVAL);
	CHECK(acpx_wait_until_any(NULL, 1, 0) == -EINVAL);
	c = flag(0, ACPX_CMP_EQ, 0);
	CHECK(acpx_wait_until_some(&c, 1, NULL, 0) == -EINVAL);
	CHECK(acpx_test_some(&c, 1, NULL) == -EINVAL && acpx_test_some(&c, 1, &index) == 1);
	CHECK(acp_finalize() == 0);
	CHECK(acpx_test_all(&c, 1) == -ENOTCONN);
}

TEST(arrays__that_hold_in_part)
{
	struct acpx_condition c[4];
	size_t indices[4];
	int i;

	CHECK(start() == 0);
	for (i = 0; i < 4; i++)
		c[i] = flag(8 * (size_t)i, ACPX_CMP_NE, 0);
	CHECK(acpx_test_all(c, 4) == 0 && acpx_test_any(c, 4) == -EAGAIN);
	CHECK(acpx_test_some(c, 4, indices) == 0);
	CHECK(acpx_wait_until_any(c, 4, 1) == -ETIMEDOUT);
	CHECK(acpx_wait_until_some(c, 4, indices, 1) == -ETIMEDOUT);
	CHECK(acpx_wait_until_all(c, 4, 1) == -ETIMEDOUT);
	*word(8) = 1;
	*word(24) = 1;
	CHECK(acpx_test_all(c, 4) == 0 && acpx_test_any(c, 4) == 1);
	CHECK(acpx_wait_until_any(c, 4, ACPX_FOREVER) == 1);
	CHECK(acpx_wait_until_some(c, 4, indices, ACPX_FOREVER) == 2);
	CHECK(indices[0] == 1 && indices[1] == 3);
	c[1].flag = NULL;
	CHECK(acpx_wait_until_any(c, 4, ACPX_FOREVER) == 3);
	c[0].flag = NULL;
	c[2].flag = NULL;
	CHECK(acpx_wait_until_all(c, 4, ACPX_FOREVER) == 0 && acpx_test_all(c, 4) == 1);
	CHECK(acp_finalize() == 0);
}

/* Without conditions there is no endless wait. */
TEST(arrays__that_are_empty)
{
	struct acpx_condition none[2] = { { 0 } };
	size_t indices[2];

	CHECK(start() == 0);
	CHECK(acpx_wait_until_all(none, 2, ACPX_FOREVER) == 0 && acpx_test_all(NULL, 0) == 1);
	CHECK(acpx_wait_until_any(none, 2, ACPX_FOREVER) == -ENOENT);
	CHECK(acpx_wait_until_any(NULL, 0, ACPX_FOREVER) == -ENOENT);
	CHECK(acpx_wait_until_some(none, 2, indices, ACPX_FOREVER) == 0);
	CHECK(acpx_test_any(NULL, 0) == -ENOENT && acpx_test_some(NULL, 0, NULL) == 0);
	CHECK(acp_finalize() == 0);
}

/* ---- Sleeping ---- */

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

TEST(wait__times_out_asleep)
{
	uint64_t begin, cpu;

	CHECK(start() == 0);
	begin = libacp_now();
	CHECK(wait_ge(0, 1, 0) == -ETIMEDOUT && fake.watches == 0);
	cpu = cpu_ns();
	CHECK(wait_ge(0, 1, 300 * MS) == -ETIMEDOUT);
	CHECK(libacp_now() - begin >= 300 * MS && cpu_ns() - cpu < 100 * MS);
	CHECK(fake.watches >= 1 && fake.watches < 10);
	CHECK(libacp.watch->armed == 0 && libacp.watch->lines[0] == 0);
	CHECK(acp_finalize() == 0);
}

TEST(wait__goes_on_after_signals)
{
	uint64_t begin;

	CHECK(start() == 0);
	fake.signals = 20;
	begin = libacp_now();
	CHECK(wait_ge(0, 1, 100 * MS) == -ETIMEDOUT);
	CHECK(libacp_now() - begin >= 100 * MS && fake.signals == 0);
	CHECK(acp_finalize() == 0);
}

/* A thread that waits for a word, started until it is asleep. */
struct sleeper {
	pthread_t thread;
	size_t offset;
	uint64_t value;
	int result;
};

static void *sleep_thread(void *arg)
{
	struct sleeper *s = arg;

	s->result = wait_ge(s->offset, s->value, ACPX_FOREVER);
	return NULL;
}

static void sleeper_start(struct sleeper *s, size_t offset, uint64_t value)
{
	*s = (struct sleeper){ .offset = offset, .value = value, .result = 1 };
	fake_start_sleeper(&s->thread, sleep_thread, s);
}

static int sleeper_end(struct sleeper *s)
{
	pthread_join(s->thread, NULL);
	return s->result;
}

TEST(wake__by_the_kernel)
{
	struct sleeper s;

	CHECK(start() == 0);
	fake.deaf = true;
	test_limit(PATIENCE_SOON);
	*(uint64_t *)(void *)fake.memory[ACP_STAG_STARTER][2] = 5;
	sleeper_start(&s, 4096 + 64, 5);
	acp_complete(acp_copy(at(0, 4096 + 64), at(2, 0), 8, ACP_HANDLE_NULL));
	CHECK(sleeper_end(&s) == 0);
	CHECK(acp_finalize() == 0);
}

TEST(wake__by_another_thread)
{
	struct sleeper s[2];

	CHECK(start() == 0);
	fake.deaf = true;
	test_limit(PATIENCE_SOON);
	sleeper_start(&s[0], 128, 1);
	sleeper_start(&s[1], 192, 1);
	*word(1024) = 1;
	CHECK(acp_copy(at(0, 128), at(0, 1024), 8, ACP_HANDLE_NULL) & 1);
	CHECK(sleeper_end(&s[0]) == 0 && s[1].result == 1);
	CHECK(acp_add8(at(0, 2048), at(0, 192), 1, ACP_HANDLE_NULL) & 1);
	CHECK(sleeper_end(&s[1]) == 0);
	CHECK(acp_finalize() == 0);
}

/* "wakes" is at the end of a page, everything else in the next one */
static struct acp_watch *split;

/* The count is about to be read: now the rank is woken for another word. */
static void wake_between(int signal)
{
	(void)signal;
	mprotect((char *)split + sizeof(split->wakes) - 4096, 4096, PROT_READ | PROT_WRITE);
	split->armed = 0;
	split->wakes++;
}

/* The wake-up disarms, but the waiter has read the old count, or arms again. */
TEST(wake__for_others_while_falling_asleep)
{
	struct sigaction a = { .sa_handler = wake_between };
	struct sleeper s;
	char *pages, *before;

	CHECK(start() == 0);
	fake.deaf = true;
	test_limit(PATIENCE_SOON);
	pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(pages != MAP_FAILED);
	before = fake.memory[ACP_STAG_LIBRARY][0];
	split = (struct acp_watch *)(void *)(pages + 4096 - sizeof(split->wakes));
	fake.memory[ACP_STAG_LIBRARY][0] = (char *)split - ACP_WATCH_OFFSET;
	libacp.watch = split;
	CHECK(sigaction(SIGSEGV, &a, NULL) == 0);
	CHECK(mprotect(pages, 4096, PROT_NONE) == 0);
	sleeper_start(&s, 4096, 1);
	CHECK(split->wakes == 1);
	*(uint64_t *)(void *)fake.memory[ACP_STAG_STARTER][2] = 1;
	acp_complete(acp_copy(at(0, 4096), at(2, 0), 8, ACP_HANDLE_NULL));
	CHECK(sleeper_end(&s) == 0);
	fake.memory[ACP_STAG_LIBRARY][0] = before;
	CHECK(acp_finalize() == 0);
}

/* The destination of the previous value of an atomic. */
TEST(wake__by_what_an_atomic_leaves)
{
	struct sleeper s;

	CHECK(start() == 0);
	fake.deaf = true;
	test_limit(PATIENCE_SOON);
	*word(1024) = 3;
	sleeper_start(&s, 512, 3);
	CHECK(acp_add8(at(0, 512), at(0, 1024), 1, ACP_HANDLE_NULL) & 1);
	CHECK(sleeper_end(&s) == 0);
	CHECK(acp_finalize() == 0);
}

/* A copy that begins and ends in other lines than that of the word. */
TEST(wake__by_the_middle_of_a_copy)
{
	struct sleeper s;

	CHECK(start() == 0);
	fake.deaf = true;
	test_limit(PATIENCE_SOON);
	memset(word(8192), 1, 8192);
	sleeper_start(&s, 1024, 1);
	acp_copy(at(0, 960), at(0, 8192), 192, ACP_HANDLE_NULL);
	CHECK(sleeper_end(&s) == 0);
	sleeper_start(&s, 4096, 1);
	acp_copy(at(0, 2048), at(0, 8192), 8000, ACP_HANDLE_NULL);
	CHECK(sleeper_end(&s) == 0);
	CHECK(acp_finalize() == 0);
}

/* A neighbour is woken only if it waits for that line; remote ranks are woken by the kernel. */
TEST(wake__of_a_neighbour)
{
	struct acp_watch *watch;

	CHECK(start() == 0);
	watch = fake_watch_of(1);
	watch->lines[3] = 1;
	acp_copy(at(1, 3 * 64), at(0, 0), 8, ACP_HANDLE_NULL);
	CHECK(fake.wakes == 0);
	watch->armed = 1;
	acp_copy(at(1, 4 * 64), at(0, 0), 8, ACP_HANDLE_NULL);
	acp_copy(at(1, 3 * 64), at(0, 0), 0, ACP_HANDLE_NULL);
	acp_copy(at(0, 3 * 64), at(1, 3 * 64), 8, ACP_HANDLE_NULL);
	CHECK(fake.wakes == 0);
	acp_copy(at(1, 4096 + 3 * 64 + 56), at(0, 0), 8, ACP_HANDLE_NULL);
	CHECK(fake.wakes == 1 && fake.woken == 1 && watch->armed == 0);
	watch->armed = 1;
	acp_add8(at(0, 0), at(1, 3 * 64), 1, ACP_HANDLE_NULL);
	CHECK(fake.wakes == 2);
	watch->armed = 1;
	acp_copy(at(1, 0), at(0, 0), 200, ACP_HANDLE_NULL);
	CHECK(fake.wakes == 3);
	watch->armed = 1;
	acp_copy(at(1, 4 * 64), at(0, 0), 63 * 64, ACP_HANDLE_NULL);
	CHECK(fake.wakes == 3);
	acp_copy(at(1, 4 * 64), at(0, 0), 63 * 64 + 1, ACP_HANDLE_NULL);
	CHECK(fake.wakes == 4);
	CHECK(acp_finalize() == 0);
}

/* They are true one after the other, never all at the same time. */
/* ---- Accesses that wait for a word ---- */

/* Complete at once, without the kernel, or not. */
static bool is_here(uint64_t now, uint64_t value)
{
	const uint64_t newest = fake.sq->tail;

	*word(64) = now;
	acpx_wait_word(at(0, 64), value, ACP_HANDLE_NULL);
	CHECK(fake.sq->tail - newest <= 1);
	return fake.sq->tail == newest;
}

TEST(word__that_has_reached_the_value)
{
	CHECK_EQ(acpx_wait_word(8, 0, ACP_HANDLE_NULL), ACP_HANDLE_NULL);
	CHECK(start() == 0);
	fake_set_hold(true);
	CHECK(is_here(0, 0) && is_here(7, 7) && is_here(8, 7) && !is_here(6, 7));
	CHECK(is_here(3, UINT64_MAX) && !is_here(UINT64_MAX, 3));
	CHECK(is_here((1ULL << 61) - 1, 0) && !is_here(1ULL << 63, 0));
	CHECK(!is_here(ACPX_REVOKED, 0) && !is_here(ACPX_REVOKED + 9, 9));
	*word(64) = 9;
	CHECK_EQ(acp_inquire(acpx_wait_word(at(0, 64), 9, ACP_HANDLE_ALL)), 1);
	fake_set_hold(false);
	CHECK(acp_finalize() == 0);
}

/* The kernel checks everything in the entry. */
TEST(word__as_the_kernel_sees_it)
{
	acp_handle_t h, first = ACP_HANDLE_NULL;
	const struct acp_sqe *e;
	acp_ga_t ga;
	size_t i;

	CHECK(start() == 0);
	fake_set_hold(true);
	*word(64) = 4;
	for (i = 0; i < 6; i++) {
		const acp_ga_t all[] = {
			0, at(0, 64), at(1, 64), at(0, 68), at(0, 65536), UINT64_MAX,
		};

		ga = all[i];
		h = acpx_wait_word(ga, 5, first);
		e = (const struct acp_sqe *)(fake.sq + 1) + ((h >> 1) & 63);
		CHECK(e->op == ACP_OP_WAIT && !e->flags && e->src == ga && e->a == 5);
		CHECK(!e->dst && !e->size && !e->b && e->order == (uint64_t)first >> 1);
		first = first ? first : h;
	}
	fake_set_hold(false);
	CHECK(acp_finalize() == 0);
}

static const struct acp_sqe *entry_of(acp_handle_t h)
{
	return (const struct acp_sqe *)(fake.sq + 1) + ((h >> 1) & 63);
}

/* The kernel decides, also if the word is reached. */
TEST(word__names_ranks)
{
	static const int ranks[] = { 5, 0, 1, 2, 3, 7, 4 };
	const struct acp_sqe *e;
	acp_handle_t h;
	int i;

	CHECK_EQ(acpx_wait_word_of(8, 0, ranks, 1, ACP_HANDLE_NULL), ACP_HANDLE_NULL);
	CHECK(start() == 0);
	fake_set_hold(true);
	*word(64) = 9;
	for (i = 0; i <= ACPX_WAIT_RANKS_MAX; i++) {
		h = acpx_wait_word_of(at(0, 64), 9, ranks, i, ACP_HANDLE_NULL);
		e = entry_of(h);
		CHECK(e->op == ACP_OP_WAIT && !e->flags && e->src == at(0, 64) && e->a == 9);
		CHECK_EQ(e->dst, ACP_WAIT_RANKS(i > 0 ? 5 : -1, i > 1 ? 0 : -1));
		CHECK_EQ(e->size, ACP_WAIT_RANKS(i > 2 ? 1 : -1, i > 3 ? 2 : -1));
		CHECK_EQ(e->b, ACP_WAIT_RANKS(i > 4 ? 3 : -1, i > 5 ? 7 : -1));
		CHECK(!e->order);
	}
	CHECK(!entry_of(acpx_wait_word_of(at(0, 64), 9, ranks, 7, ACP_HANDLE_NULL))->op);
	CHECK(!entry_of(acpx_wait_word_of(at(0, 64), 9, ranks, -1, ACP_HANDLE_NULL))->op);
	CHECK(!entry_of(acpx_wait_word_of(at(0, 64), 9, NULL, 1, ACP_HANDLE_NULL))->op);
	CHECK(!entry_of(acpx_wait_word_of(at(0, 64), 9, &(int){ -1 }, 1, ACP_HANDLE_NULL))->op);
	CHECK(entry_of(acpx_wait_word_of(at(0, 64), 9, NULL, 0, ACP_HANDLE_NULL))->op);
	fake_set_hold(false);
	CHECK(acp_finalize() == 0);
}

/* Whether the order has failed before or not: the kernel looks at it. */
TEST(word__behind_what_has_failed)
{
	const struct acp_sqe *e;
	acp_handle_t good, bad, h;

	CHECK(start() == 0);
	acpx_set_error_mode(ACPX_ERRORS_RETURN);
	good = acp_copy(at(2, 0), at(0, 0), 8, ACP_HANDLE_NULL);
	bad = acp_copy(at(2, 0), at(0, 1 << 20), 8, ACP_HANDLE_NULL);
	acp_complete(bad);
	CHECK(acpx_status(good) == 0 && acpx_status(bad) == ACPX_ERANGE);
	fake_set_hold(true);
	h = acpx_wait_word_of(at(0, 64), 0, NULL, 0, bad);
	e = entry_of(h);
	CHECK(e->order == (uint64_t)bad >> 1 && e->seen == e->order - 1);
	h = acpx_copy_signal(at(2, 8), at(0, 0), 8, at(2, 64), 1,
			     ACPX_SIGNAL_ADD | ACPX_SIGNAL_REVOKE, bad);
	e = entry_of(h);
	CHECK(e->op == ACP_OP_COPY_ADD && e->flags == ACP_SQE_REVOKE);
	CHECK(e->order == (uint64_t)bad >> 1 && e->seen == e->order - 1);
	h = acpx_copy_signal(at(2, 8), at(0, 0), 0, at(1, 64), 1,
			     ACPX_SIGNAL_ADD | ACPX_SIGNAL_REVOKE, good);
	e = entry_of(h);
	CHECK(e->op == ACP_OP_COPY_ADD && e->flags == ACP_SQE_REVOKE && !e->size);
	CHECK(e->order == (uint64_t)good >> 1 && e->seen == e->order - 1);
	/* Data and flag on two nodes: the copy fails with the order, the signal with the copy. */
	h = acpx_copy_signal(at(2, 8), at(0, 0), 8, at(0, 64), 1,
			     ACPX_SIGNAL_ADD | ACPX_SIGNAL_REVOKE, bad);
	e = entry_of(h - 2);
	CHECK(e->op == ACP_OP_COPY && e->flags == ACP_SQE_MORE && e->order == (uint64_t)bad >> 1);
	CHECK_EQ(e->seen, e->order - 1);
	e = entry_of(h);
	CHECK(e->op == ACP_OP_COPY_ADD && e->flags == ACP_SQE_REVOKE);
	CHECK(e->order == (uint64_t)(h - 2) >> 1 && e->seen == e->order - 1);
	/* Others do not fail because of what is over. */
	e = entry_of(acp_copy(at(2, 0), at(0, 0), 8, bad));
	CHECK(!e->order && e->seen >= (uint64_t)bad >> 1);
	/* A flag that is set cannot be revoked. */
	CHECK(!entry_of(acpx_copy_signal(at(2, 8), at(0, 0), 8, at(2, 64), 1, ACPX_SIGNAL_REVOKE,
					 bad))->op);
	fake_set_hold(false);
	CHECK(acp_finalize() == 0);
}

/* With nothing that can fail, it is a signal like any other. */
TEST(word__signal_that_cannot_be_revoked)
{
	acp_handle_t h;

	CHECK(start() == 0);
	*word(64) = 3;
	h = acpx_copy_signal(at(0, 8), at(0, 0), 8, at(0, 64), 2,
			     ACPX_SIGNAL_ADD | ACPX_SIGNAL_REVOKE, ACP_HANDLE_NULL);
	CHECK((h & 1) && *word(64) == 5);
	CHECK(acp_finalize() == 0);
}

/* A neighbour has no sleeping thread, but a command that waits. */
TEST(word__of_a_neighbour_is_told)
{
	struct acp_watch *w;
	unsigned int wakes;
	acp_ga_t there;

	CHECK(start() == 0);
	there = at(1, 4096);
	acp_complete(acp_copy(there, at(0, 0), 8, ACP_HANDLE_NULL));
	w = fake_watch_of(1);
	wakes = fake.wakes;
	w->waits = 1;
	w->lines[ACP_WATCH_LINE(4096)] = 1;
	acp_complete(acp_copy(there, at(0, 0), 8, ACP_HANDLE_NULL));
	acp_complete(acp_add8(at(0, 0), there, 1, ACP_HANDLE_NULL));
	CHECK_EQ(fake.wakes, wakes + 2);
	CHECK_EQ(fake.woken, 1);
	acp_complete(acp_copy(at(1, 4096 + 64), at(0, 0), 8, ACP_HANDLE_NULL));
	w->waits = 0;
	acp_complete(acp_copy(there, at(0, 0), 8, ACP_HANDLE_NULL));
	CHECK_EQ(fake.wakes, wakes + 2);
	CHECK(acp_finalize() == 0);
}

/* So is the own process: the kernel looks when it is told. */
TEST(word__of_the_own_rank_is_told)
{
	unsigned int wakes;

	CHECK(start() == 0);
	wakes = fake.wakes;
	fake_watch_of(0)->waits = 1;
	fake_watch_of(0)->lines[ACP_WATCH_LINE(64)] = 1;
	acp_complete(acp_copy(at(0, 64), at(0, 0), 8, ACP_HANDLE_NULL));
	acp_complete(acp_copy(at(0, 60), at(0, 0), 8, ACP_HANDLE_NULL));
	acp_complete(acp_add8(at(0, 128), at(0, 64), 0, ACP_HANDLE_NULL));
	CHECK(fake.wakes == wakes + 3 && fake.woken == 0);
	fake_watch_of(0)->waits = 0;
	CHECK(acp_finalize() == 0);
}

TEST(all__need_not_hold_together)
{
	struct acpx_condition c[2];
	struct sleeper s;

	CHECK(start() == 0);
	*word(0) = 1;
	sleeper_start(&s, 128, 1);
	c[0] = flag(0, ACPX_CMP_EQ, 1);
	c[1] = flag(128, ACPX_CMP_EQ, 1);
	CHECK(acpx_wait_until_all(c, 2, 10 * MS) == -ETIMEDOUT);
	acp_add8(at(0, 2048), at(0, 128), 1, ACP_HANDLE_NULL);
	CHECK(sleeper_end(&s) == 0 && acpx_wait_until_all(c, 2, ACPX_FOREVER) == 0);
	CHECK(acp_finalize() == 0);
}

/* ---- Ends of waits ---- */

TEST(abort__ends_waits)
{
	struct sleeper s;

	CHECK(start() == 0);
	fake.deaf = true;
	test_limit(PATIENCE_SOON);
	sleeper_start(&s, 0, 1);
	fake_abort();
	CHECK(sleeper_end(&s) == -ECANCELED);
	CHECK(wait_ge(0, 1, ACPX_FOREVER) == -ECANCELED && wait_ge(0, 0, ACPX_FOREVER) == 0);
	CHECK(acp_finalize() == -1);
}

TEST(finalize__ends_waits)
{
	struct sleeper s[THREADS];
	int i;

	CHECK(start() == 0);
	fake.deaf = true;
	test_limit(PATIENCE_SOON);
	for (i = 0; i < THREADS; i++)
		sleeper_start(&s[i], 64 * (size_t)i, 1);
	CHECK(acp_finalize() == 0);
	for (i = 0; i < THREADS; i++)
		CHECK(sleeper_end(&s[i]) == -ENOTCONN);
	fake.deaf = false;
	CHECK(start() == 0 && wait_ge(0, 1, 10 * MS) == -ETIMEDOUT);
	CHECK(acp_finalize() == 0);
}

TEST(fork__child_does_not_wait)
{
	struct sleeper s;
	int status;
	pid_t pid;

	CHECK(start() == 0);
	sleeper_start(&s, 0, 1);
	pid = fork();
	if (!pid)
		_exit(acpx_test(&status, 4, ACPX_CMP_EQ, 0) == -ENOTCONN ? 0 : 1);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	acp_add8(at(0, 2048), at(0, 0), 1, ACP_HANDLE_NULL);
	CHECK(sleeper_end(&s) == 0);
	CHECK(acp_finalize() == 0);
}

/* In the default error mode, a rank does not wait for the answer to a failed access. */
TEST(failure__ends_the_job_of_who_waits)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		start();
		fake.deaf = true;
		test_limit(PATIENCE_SOON);
		acpx_set_error_mode(ACPX_ERRORS_ABORT);
		fake_set_hold(true);
		acp_copy(at(2, 1 << 30), at(0, 0), 8, ACP_HANDLE_NULL);
		fake_set_hold(false);
		wait_ge(0, 1, ACPX_FOREVER);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	CHECK(WEXITSTATUS(status) == 255);
}

/* ---- Many threads ---- */

/* A cycle of threads: each waits for its word, then changes that of the next one. */
struct player {
	pthread_t thread;
	size_t own, next, scratch;
	bool far;			/* through the kernel */
	int bad;
};

static void *play(void *arg)
{
	struct player *p = arg;
	acp_ga_t former = p->far ? at(2, p->scratch) : at(0, p->scratch);
	uint64_t i;

	for (i = 1; i <= ROUNDS; i++) {
		if (wait_ge(p->own, i, ACPX_FOREVER))
			p->bad++;
		/*
		 * The device also executes atomics of other ranks, and writes the previous value.
		 */
		if (acp_add8(former, at(0, p->next), 1, ACP_HANDLE_NULL) ==
		    (acp_handle_t)ACP_HANDLE_NULL)
			p->bad++;
	}
	return NULL;
}

static void play_all(size_t distance, bool spin)
{
	struct player p[THREADS];
	int i;

	CHECK(start() == 0);
	libacp.spin = spin;
	fake.deaf = true;
	test_limit(2 * PATIENCE_WORK);
	for (i = 0; i < THREADS; i++) {
		p[i] = (struct player){
			.own = distance * (size_t)i, .next = distance * (size_t)((i + 1) % THREADS),
			.scratch = 32768 + 64 * (size_t)i, .far = i % 2,
		};
		CHECK(pthread_create(&p[i].thread, NULL, play, &p[i]) == 0);
	}
	acp_add8(at(0, 40960), at(0, 0), 1, ACP_HANDLE_NULL);
	for (i = 0; i < THREADS; i++) {
		pthread_join(p[i].thread, NULL);
		CHECK(p[i].bad == 0);
	}
	acp_complete((acp_handle_t)ACP_HANDLE_ALL);
	CHECK(*word(0) == ROUNDS + 1 && libacp.watch->armed == 0);
	CHECK(acp_finalize() == 0);
}

TEST(threads__in_lines_of_their_own)
{
	play_all(4096 + 64, false);
}

TEST(threads__in_one_line)
{
	play_all(8, false);
}

TEST(threads__that_look_before_they_sleep)
{
	play_all(64, true);
}

TEST_MAIN
