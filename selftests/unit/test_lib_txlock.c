// SPDX-License-Identifier: MIT
/*
 * Journaled locks: all stores of a hold are executed or none, even if ranks die, are stopped or
 * lose their lock, at any access, while they end their own hold or that of another one.
 * ACP_TEST_LONG=1: several hundred times longer.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>

#include "fake_acp.h"
#include "middle/txlock_part.h"
#include "test.h"

#define WORDS	16u		/* words that every hold changes in the same way */
/* distance of the words, so that they are not adjacent; only the first two are */
#define APART	3u

static unsigned int rounds(unsigned int number)
{
	return getenv("ACP_TEST_LONG") ? number * 100 : number;
}

/* ---- Holds ---- */

/* The lock is at the start of the starter memory of rank 0, followed by the words. */
static acp_ga_t txlock_ga(void)
{
	return acp_query_starter_ga(0);
}

static acp_ga_t word_ga(unsigned int i)
{
	return txlock_ga() + 1024 + 8 * (i < 2 ? i : APART * i);
}

/* The range that is fetched: all words and the gaps. */
#define SPAN	(8 * APART * WORDS)

static int enter(struct libacp_txlock *s, struct libacp_fetch *fetch)
{
	*fetch = (struct libacp_fetch){ .ga = word_ga(0), .size = 8 };
	return libacp_txlock_enter(s, txlock_ga(), txlock_ga(), 1024 + SPAN, fetch, 1);
}

static void stage(struct libacp_txlock *s, uint64_t value)
{
	unsigned int i;

	for (i = 0; i < WORDS; i++)
		libacp_txlock_store(s, word_ga(i), value + i);
}

/* Add one to all words. Returns 0 or -errno. */
static int add_one(void)
{
	struct libacp_txlock s;
	struct libacp_fetch fetch;
	int error = enter(&s, &fetch);

	if (error)
		return error;
	stage(&s, *(const uint64_t *)fetch.bytes + 1);
	return libacp_txlock_leave(&s);
}

/*
 * Add repeatedly. Returns how often it succeeded; -EAGAIN does not count, and *unknown is the
 * number of unknown results.
 */
static uint64_t add_many(unsigned int count, uint64_t *unknown)
{
	uint64_t done = 0;
	int error;

	while (count) {
		error = add_one();
		if (error == -EAGAIN)
			continue;
		count--;
		done += !error;
		*unknown += error != 0;
	}
	return done;
}

/* While holding the lock: check that all words are equal, and return their value. */
static uint64_t look_inside(void)
{
	struct libacp_txlock s;
	struct libacp_fetch fetch;
	uint64_t first, there;
	unsigned int i;

	CHECK_EQ(enter(&s, &fetch), 0);
	first = *(const uint64_t *)fetch.bytes;
	for (i = 1; i < WORDS; i++) {
		fetch.ga = word_ga(i);
		CHECK_EQ(libacp_txlock_fetch(&s, &fetch), 0);
		memcpy(&there, fetch.bytes, 8);
		CHECK_EQ(there, first + i);
	}
	libacp_txlock_drop(&s);
	return first;
}

static void begin(void)
{
	unsigned int i;

	for (i = 0; i < WORDS && acp_rank() == 0; i++)
		*(uint64_t *)acp_query_address(word_ga(i)) = i;
	CHECK_EQ(acp_sync(), 0);
}

/* ---- Without failures ---- */

static void add_together(void *arg)
{
	uint64_t unknown = 0;

	begin();
	__atomic_add_fetch(fake_word(0), add_many(*(unsigned int *)arg, &unknown),
			   __ATOMIC_RELAXED);
	CHECK_EQ(unknown, 0);
	CHECK_EQ(acp_sync(), 0);
	CHECK_EQ(look_inside(), *fake_word(0));
	CHECK_EQ(acp_sync(), 0);
}

TEST(txlock__near_and_far_together)
{
	struct fake_acp f = { .ranks = 6, .nodes = 3 };
	unsigned int count = rounds(60);

	fake_run(&f, add_together, &count);
}

static void wrap_stamps(void *arg)
{
	libacp_txlock_stamp = (1ull << (64 - STAMP_SHIFT)) - 20;
	add_together(arg);
}

TEST(txlock__stamps_wrap)
{
	struct fake_acp f = { .ranks = 4, .nodes = 2 };
	unsigned int count = 50;

	fake_run(&f, wrap_stamps, &count);
}

static void *add_in_thread(void *arg)
{
	uint64_t unknown = 0;

	(void)arg;
	__atomic_add_fetch(fake_word(0), add_many(rounds(20), &unknown), __ATOMIC_RELAXED);
	CHECK_EQ(unknown, 0);
	return NULL;
}

static void add_in_threads(void *arg)
{
	pthread_t threads[4];
	int i;

	(void)arg;
	begin();
	for (i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, add_in_thread, NULL), 0);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(acp_sync(), 0);
	CHECK_EQ(look_inside(), *fake_word(0));
	CHECK_EQ(acp_sync(), 0);
}

static void check_times(void *arg)
{
	(void)arg;
	setenv("ACP_TIMEOUT", "10", 1);
	fake_timeout_ms = 60000;
	libacp_txlock_open();
	CHECK(libacp_txlock_times.forsaken >= 180000000000);
	CHECK(libacp_txlock_times.patience > libacp_txlock_times.forsaken);
}

/* --acp-timeout sets the time-out of a job as well as the variable does. */
TEST(txlock__times_follow_the_time_out_of_the_job)
{
	struct fake_acp f = { .ranks = 1, .nodes = 1 };

	fake_run(&f, check_times, NULL);
}

TEST(txlock__threads)
{
	struct fake_acp f = { .ranks = 4, .nodes = 2 };

	fake_run(&f, add_in_threads, NULL);
}

/* ---- Death ---- */

#define SPEED	200

/*
 * The last ranks die, one after the other; their holds count completely or not at all. All others
 * compete for the lock, so that several take it over at the same time.
 */
static void die_in_turn(void *arg)
{
	const int living = *(const int *)arg;
	uint64_t unknown = 0, done;
	int r;

	/* A machine that is slow three times in a row must not make results unknown. */
	libacp_txlock_times.lease *= SPEED;
	begin();
	if (acp_rank() >= living && acpx_query_node(acp_rank())) {
		fake_die_at(1 + fake_random() % 40);
		for (;;)
			CHECK(add_one() <= 0);
	}
	done = add_many(10, &unknown);
	for (r = living; r < acp_procs(); r++) {
		if (!acpx_query_node(r))
			continue;	/* makes no access at which it could die */
		while (acpx_peer_state(r) != ACPX_PEER_DOWN)
			libacp_sleep(1000000);
		done += add_many(1, &unknown);
	}
	CHECK_EQ(unknown, 0);
	CHECK(look_inside() >= done);
}

static void run_deaths(int ranks, int nodes, int living, int deaths, unsigned int number)
{
	unsigned int i;

	for (i = 0; i < rounds(number); i++) {
		struct fake_acp f = { .ranks = ranks, .nodes = nodes, .speed = SPEED };

		fake_run(&f, die_in_turn, &living);
		CHECK_EQ(f.dead, deaths);
	}
}

TEST(txlock__death_far)
{
	run_deaths(3, 3, 2, 1, 100);
}

TEST(txlock__deaths_far)
{
	run_deaths(6, 6, 2, 4, 20);
}

TEST(txlock__deaths_near_and_far)
{
	run_deaths(8, 4, 4, 3, 20);
}

/*
 * State left by a rank that died before its journal was complete: a journal with missing words is
 * ignored.
 */
static void leave_parts(void *arg)
{
	uint64_t *words = acp_query_address(txlock_ga()), full[2 + 2 * WORDS], mask;
	const unsigned int parts = 3 + 2 * WORDS - 1;
	unsigned int round, i;

	(void)arg;
	begin();
	if (acp_rank() == 1)
		fake_die_at(0);
	while (acpx_peer_state(1) != ACPX_PEER_DOWN)
		libacp_sleep(1000000);
	for (round = 0; acp_rank() == 0 && round < rounds(40); round++) {
		const uint64_t mark = (1000 + round) << STAMP_SHIFT | FAR | 2;
		const uint64_t before = look_inside();

		memset(words + 1, 0, sizeof(full));
		full[0] = mark;
		full[1] = WORDS;
		for (i = 0; i < WORDS; i++) {
			full[2 + 2 * i] = word_ga(i);
			full[3 + 2 * i] = before + 100 + i;
		}
		full[0] = libacp_txlock_digest(full, WORDS);
		/* One word is missing, or a random half of them, or none. */
		mask = round < parts ? ~(1ull << round) : fake_random() & ~(1ull << 5);
		mask = round == parts ? ~0ull : mask;
		for (i = 0; i < 2 + 2 * WORDS; i++)
			words[1 + i] = mask >> i & 1 ? full[i] : 0;
		words[0] = mark;
		CHECK_EQ(look_inside(), before + (memcmp(words + 1, full, sizeof(full)) ? 0 : 100));
		CHECK_EQ(words[0], 0);
	}
}

TEST(txlock__parts_of_a_journal)
{
	struct fake_acp f = { .ranks = 2, .speed = 1000 };

	fake_run(&f, leave_parts, NULL);
}

/* ---- Stopped ranks ---- */

static uint64_t stop_at;	/* number of copies until it sleeps; 0: never */

acp_handle_t __real_acp_copy(acp_ga_t dst, acp_ga_t src, size_t size, acp_handle_t order);
acp_handle_t __wrap_acp_copy(acp_ga_t dst, acp_ga_t src, size_t size, acp_handle_t order);

/* Stop a rank directly after an access, for longer than others wait. */
acp_handle_t __wrap_acp_copy(acp_ga_t dst, acp_ga_t src, size_t size, acp_handle_t order)
{
	acp_handle_t handle = __real_acp_copy(dst, src, size, order);

	if (stop_at && !--stop_at)
		libacp_sleep(libacp_txlock_times.forsaken + 4 * libacp_txlock_times.grace);
	return handle;
}

static void be_stopped(void *arg)
{
	uint64_t unknown = 0, done = 0;

	begin();
	libacp_txlock_times.forsaken = 20000000000;
	libacp_txlock_times.patience = 30000000000 * 40;
	if (acp_rank() == 1)
		stop_at = *(const uint64_t *)arg;
	done = add_many(acp_rank() == 1 ? 3 : 30, &unknown);
	/* Two more, after the others have seen for long that rank 1 does not continue. */
	if (acp_rank() == 2) {
		libacp_sleep(libacp_txlock_times.forsaken / 2);
		done += add_many(30, &unknown);
	}
	__atomic_add_fetch(fake_word(0), done, __ATOMIC_RELAXED);
	__atomic_add_fetch(fake_word(1), unknown, __ATOMIC_RELAXED);
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() != 1) {
		uint64_t sum = look_inside();

		CHECK(sum >= *fake_word(0) && sum <= *fake_word(0) + *fake_word(1));
	}
	CHECK_EQ(acp_sync(), 0);
}

TEST(txlock__stopped_anywhere)
{
	uint64_t at;

	for (at = 1; at <= 40; at++) {
		struct fake_acp f = { .ranks = 3, .speed = 100 };

		fake_run(&f, be_stopped, &at);
	}
}

/* ---- Invalid contents ---- */

static void nonsense(void *arg)
{
	uint64_t *words = acp_query_address(txlock_ga());
	struct libacp_txlock s;
	struct libacp_fetch fetch;

	(void)arg;
	begin();
	words[0] = 1ull << STAMP_SHIFT | 7;	/* there is no such rank */
	CHECK_EQ(enter(&s, &fetch), -EUCLEAN);
	words[0] = LIBACP_TXLOCK_NEVER;
	CHECK_EQ(enter(&s, &fetch), -ENXIO);
	words[0] = 1ull << STAMP_SHIFT | FAR | 1;	/* abandoned by this rank */
	words[1] = words[0];
	words[2] = UINT64_MAX;
	CHECK_EQ(look_inside(), 0);
	words[0] = 2ull << STAMP_SHIFT | FAR | REDO | 1;
	CHECK_EQ(enter(&s, &fetch), -EUCLEAN);
	words[0] = 3ull << STAMP_SHIFT | FAR | REDO | 1;
	words[2] = 1;
	words[3] = word_ga(0) + 4;
	CHECK_EQ(enter(&s, &fetch), -EUCLEAN);
	words[0] = 0;
	CHECK_EQ(look_inside(), 0);
}

TEST(txlock__nonsense)
{
	struct fake_acp f = { .ranks = 1 };

	fake_run(&f, nonsense, NULL);
}

/*
 * Rank 1, on another node, holds a lock in memory of rank 0, which dies. It is alive but can do
 * nothing there any more: rank 2, on the node of rank 0, continues soon.
 */
static void enter_after_owner(void *arg)
{
	uint64_t *words, begun;

	(void)arg;
	begin();
	if (acp_rank() != 2)
		return;
	libacp_txlock_times.forsaken = 1000000000000;
	libacp_txlock_times.patience = 2000000000000;
	words = acp_query_address(txlock_ga());
	CHECK(words);
	words[0] = 1ull << STAMP_SHIFT | FAR | 2;
	fake_kill(0);
	begun = libacp_now();
	CHECK_EQ(look_inside(), 0);
	CHECK(libacp_now() - begun < libacp_txlock_times.forsaken / 2);
}

TEST(txlock__owner_of_the_memory_dies)
{
	struct fake_acp f = { .ranks = 3, .nodes = 2, .speed = 100 };

	fake_run(&f, enter_after_owner, NULL);
	CHECK_EQ(f.dead, 1);
}

TEST_MAIN
