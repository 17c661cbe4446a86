// SPDX-License-Identifier: MIT
/*
 * Sections: all of a stay's stores are done or none, whoever dies, is stopped
 * or is given up, at whatever access, while it ends another's stay or its own.
 * ACP_TEST_LONG=1: some hundred times as long.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>

#include "fake_acp.h"
#include "section_part.h"
#include "test.h"

#define WORDS	16u		/* that every stay changes, all in the same way */
#define APART	3u		/* between these, so that they are no run; but the first two are */

static unsigned int rounds(unsigned int number)
{
	return getenv("ACP_TEST_LONG") ? number * 100 : number;
}

/* ---- What stays do ---- */

/* The section is at the start of rank 0's starter memory, the words behind it. */
static acp_ga_t section_ga(void)
{
	return acp_query_starter_ga(0);
}

static acp_ga_t word_ga(unsigned int i)
{
	return section_ga() + 1024 + 8 * (i < 2 ? i : APART * i);
}

/* The span that is fetched: all words and what is between. */
#define SPAN	(8 * APART * WORDS)

static int enter(struct libacp_section *s, struct libacp_fetch *fetch)
{
	*fetch = (struct libacp_fetch){ .ga = word_ga(0), .size = 8 };
	return libacp_section_enter(s, section_ga(), section_ga(), 1024 + SPAN, fetch, 1);
}

static void stage(struct libacp_section *s, uint64_t value)
{
	unsigned int i;

	for (i = 0; i < WORDS; i++)
		libacp_section_store(s, word_ga(i), value + i);
}

/* Add one to all words: 0, or -errno. */
static int add_one(void)
{
	struct libacp_section s;
	struct libacp_fetch fetch;
	int error = enter(&s, &fetch);

	if (error)
		return error;
	stage(&s, *(const uint64_t *)fetch.bytes + 1);
	return libacp_section_leave(&s);
}

/* Add many: how often it was done.  "again" is nothing; what is unknown may be more. */
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

/* Inside: all words are the same number; which? */
static uint64_t look_inside(void)
{
	struct libacp_section s;
	struct libacp_fetch fetch;
	uint64_t first, there;
	unsigned int i;

	CHECK_EQ(enter(&s, &fetch), 0);
	first = *(const uint64_t *)fetch.bytes;
	for (i = 1; i < WORDS; i++) {
		fetch.ga = word_ga(i);
		CHECK_EQ(libacp_section_fetch(&s, &fetch), 0);
		memcpy(&there, fetch.bytes, 8);
		CHECK_EQ(there, first + i);
	}
	libacp_section_drop(&s);
	return first;
}

static void begin(void)
{
	unsigned int i;

	for (i = 0; i < WORDS && acp_rank() == 0; i++)
		*(uint64_t *)acp_query_address(word_ga(i)) = i;
	CHECK_EQ(acp_sync(), 0);
}

/* ---- Everybody lives ---- */

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

TEST(section__near_and_far_together)
{
	struct fake_acp f = { .ranks = 6, .nodes = 3 };
	unsigned int count = rounds(60);

	fake_run(&f, add_together, &count);
}

static void wrap_stamps(void *arg)
{
	libacp_section_stamp = (1ull << (64 - STAMP_SHIFT)) - 20;
	add_together(arg);
}

TEST(section__stamps_wrap)
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

TEST(section__threads)
{
	struct fake_acp f = { .ranks = 4, .nodes = 2 };

	fake_run(&f, add_in_threads, NULL);
}

/* ---- Death ---- */

/*
 * The last ranks die, one after the other; their stays counted or not, but
 * whole.  All others come at the same time, so that several take over at once.
 */
static void die_in_turn(void *arg)
{
	const int living = *(const int *)arg;
	uint64_t unknown = 0, done;
	int r;

	begin();
	if (acp_rank() >= living && acpx_query_node(acp_rank())) {
		fake_die_at(1 + fake_random() % 40);
		for (;;)
			CHECK(add_one() <= 0);
	}
	done = add_many(10, &unknown);
	for (r = living; r < acp_procs(); r++) {
		if (!acpx_query_node(r))
			continue;	/* no access of its own that it could die at */
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
		struct fake_acp f = { .ranks = ranks, .nodes = nodes, .speed = 200 };

		fake_run(&f, die_in_turn, &living);
		CHECK_EQ(f.dead, deaths);
	}
}

TEST(section__death_far)
{
	run_deaths(3, 3, 2, 1, 100);
}

TEST(section__deaths_far)
{
	run_deaths(6, 6, 2, 4, 20);
}

TEST(section__deaths_near_and_far)
{
	run_deaths(8, 4, 4, 3, 20);
}

/*
 * What is left behind by who died before it was whole, word by word: a journal
 * of which some words are missing is none.
 */
static void leave_parts(void *arg)
{
	uint64_t *words = acp_query_address(section_ga()), full[2 + 2 * WORDS], mask;
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
		full[0] = libacp_section_digest(full, WORDS);
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

TEST(section__parts_of_a_journal)
{
	struct fake_acp f = { .ranks = 2, .speed = 1000 };

	fake_run(&f, leave_parts, NULL);
}

/* ---- Stopped ---- */

static uint64_t stop_at;	/* copies from now on until it sleeps; 0: never */

acp_handle_t __real_acp_copy(acp_ga_t dst, acp_ga_t src, size_t size, acp_handle_t order);
acp_handle_t __wrap_acp_copy(acp_ga_t dst, acp_ga_t src, size_t size, acp_handle_t order);

/* A rank that is stopped right after an access, for longer than others wait. */
acp_handle_t __wrap_acp_copy(acp_ga_t dst, acp_ga_t src, size_t size, acp_handle_t order)
{
	acp_handle_t handle = __real_acp_copy(dst, src, size, order);

	if (stop_at && !--stop_at)
		libacp_sleep(libacp_section_times.forsaken + 4 * libacp_section_times.grace);
	return handle;
}

static void be_stopped(void *arg)
{
	uint64_t unknown = 0, done = 0;

	begin();
	libacp_section_times.forsaken = 20000000000;
	libacp_section_times.patience = 30000000000 * 40;
	if (acp_rank() == 1)
		stop_at = *(const uint64_t *)arg;
	done = add_many(acp_rank() == 1 ? 3 : 30, &unknown);
	/* Two more, when the others have seen for long that rank 1 does not go on. */
	if (acp_rank() == 2) {
		libacp_sleep(libacp_section_times.forsaken / 2);
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

TEST(section__stopped_anywhere)
{
	uint64_t at;

	for (at = 1; at <= 40; at++) {
		struct fake_acp f = { .ranks = 3, .speed = 100 };

		fake_run(&f, be_stopped, &at);
	}
}

/* ---- Nonsense ---- */

static void nonsense(void *arg)
{
	uint64_t *words = acp_query_address(section_ga());
	struct libacp_section s;
	struct libacp_fetch fetch;

	(void)arg;
	begin();
	words[0] = 1ull << STAMP_SHIFT | 7;	/* there is no such rank */
	CHECK_EQ(enter(&s, &fetch), -EUCLEAN);
	words[0] = LIBACP_SECTION_NEVER;
	CHECK_EQ(enter(&s, &fetch), -ENXIO);
	words[0] = 1ull << STAMP_SHIFT | FAR | 1;	/* of this rank, which gave it up */
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

TEST(section__nonsense)
{
	struct fake_acp f = { .ranks = 1 };

	fake_run(&f, nonsense, NULL);
}

/*
 * Rank 1, of the other node, is inside in the memory of rank 0, which dies.  It
 * lives and will do no more there: rank 2, of rank 0's node, goes on soon.
 */
static void enter_after_owner(void *arg)
{
	uint64_t *words, begun;

	(void)arg;
	begin();
	if (acp_rank() != 2)
		return;
	libacp_section_times.forsaken = 1000000000000;
	libacp_section_times.patience = 2000000000000;
	words = acp_query_address(section_ga());
	CHECK(words);
	words[0] = 1ull << STAMP_SHIFT | FAR | 2;
	fake_kill(0);
	begun = libacp_now();
	CHECK_EQ(look_inside(), 0);
	CHECK(libacp_now() - begun < libacp_section_times.forsaken / 2);
}

TEST(section__owner_of_the_memory_dies)
{
	struct fake_acp f = { .ranks = 3, .nodes = 2, .speed = 100 };

	fake_run(&f, enter_after_owner, NULL);
	CHECK_EQ(f.dead, 1);
}

TEST_MAIN
