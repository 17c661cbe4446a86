// SPDX-License-Identifier: MIT
/* selftest: cpus=2 leaks */
/*
 * P1, P2: a rank is killed during a command that it issued, or that others issued on its memory.
 * Waiting ranks are soon told the reason; commands of the dead rank complete or disappear; its
 * memory is freed and not written any more; uninvolved ranks are not affected; and nothing remains
 * that would keep the job or the module busy.
 */
#include "../dev/isolated.h"

#include <pthread.h>
#include <sys/wait.h>

#include "../dev/reload.h"
#include "nodes.h"

#define MB		(1UL << 20)
/* memory of a rank: transferring it takes three seconds at RATE */
#define SIZE		MB
#define RATE		"rate 3mbit"
#define FRESH		(16 * MB)
#define NODES		4

/*
 * One node each except for the last. Rank 2, a process of its own, will die. Ranks 0 and 3 may be
 * involved, ranks 1 and 3 access each other meanwhile, and rank 4 shares the node of rank 2, which
 * keeps answering.
 */
enum { ORIGIN, HEALTHY, MORTAL, THIRD, LAST, RANKS };

/* Communication between the processes. */
struct stage {
	bool go, busy;			/* atomic */
	uint64_t ga[RANKS];		/* of the memory of the ranks */
};

static struct nodes n;
static struct rank r[RANKS];
static struct memory m[RANKS];
static struct stage *stage;
static uint32_t job;
static pid_t mortal;
static long pinned;

static struct {
	pthread_t thread;
	uint64_t rounds;		/* atomic */
	bool stop;			/* atomic */
} healthy;

/* ---- The machine ---- */

/* Return the number of pages that are pinned long-term by anybody. */
static long pinned_pages(void)
{
	char line[200];
	long value, sum = 0;
	FILE *f;

	write_file("/proc/sys/vm/stat_refresh", "1");	/* else they are a second old */
	f = fopen("/proc/vmstat", "r");
	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "nr_foll_pin_acquired %ld", &value) == 1)
			sum += value;
		if (sscanf(line, "nr_foll_pin_released %ld", &value) == 1)
			sum -= value;
	}
	fclose(f);
	return sum;
}

static void wait_unpinned(void)
{
	struct patience p = patience_begin(PATIENCE_SOON);

	while (pinned_pages() != pinned) {
		CHECK(!patience_over(&p));
		sleep_ms(50);
	}
}

static bool look(const bool *flag)
{
	return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static void raise_flag(bool *flag)
{
	__atomic_store_n(flag, true, __ATOMIC_RELEASE);
}

static void await(const bool *flag)
{
	struct patience p = patience_begin(PATIENCE_WORK);

	while (!look(flag)) {
		sleep_ms(1);
		CHECK(!patience_over(&p));
	}
}

/* ---- Ranks ---- */

static void join(uint32_t rank)
{
	struct setup s;

	nodes_setup(&n, &s, rank, RANKS);
	s.ranks[0] = (struct acp_rank_run){ 0, NODES, 0, NODES, 1, 0 };
	s.ranks[1] = (struct acp_rank_run){ LAST, 1, MORTAL, 1, 1, 0 };
	s.join.rank_runs = 2;
	s.join.job = job;
	s.join.timeout_ms = 120000;
	nodes_join(&n, &r[rank], &s);
	memory_open(&r[rank], &m[rank], SIZE);
	fill(m[rank].addr, SIZE, rank);
	stage->ga[rank] = memory_ga(&m[rank], 0);
}

/* Ranks 1 and 3 copy back and forth, and verify every byte. */
static void *work(void *arg)
{
	struct rank *a = &r[HEALTHY];
	uint64_t to = heap_ga(&r[THIRD], 0), i;

	for (i = 0; !look(&healthy.stop); i++) {
		fill(a->heap, 1000, i);
		CHECK_EQ(rank_do_copy(a, to, heap_ga(a, 0), 1000), ACP_ST_OK);
		CHECK_EQ(rank_do_copy(a, heap_ga(a, 1000), to, 1000), ACP_ST_OK);
		CHECK(filled(a->heap + 1000, 1000, i));
		CHECK_EQ(rank_do_atomic(a, ACP_OP_ADD8, heap_ga(a, 2000),
					heap_ga(&r[THIRD], 2000), 1, 0), ACP_ST_OK);
		CHECK_EQ(*(uint64_t *)(a->heap + 2000), i);
		__atomic_fetch_add(&healthy.rounds, 1, __ATOMIC_RELEASE);
	}
	return arg;
}

static void wait_rounds(uint64_t more)
{
	struct patience p = patience_begin(PATIENCE_WORK);

	more += __atomic_load_n(&healthy.rounds, __ATOMIC_ACQUIRE);
	while (__atomic_load_n(&healthy.rounds, __ATOMIC_ACQUIRE) < more) {
		sleep_ms(1);
		CHECK(!patience_over(&p));
	}
}

static void nothing(void)
{
}

/* All ranks join; the victim calls the function and then waits for its end. */
static void begin(void (*role)(void))
{
	stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	CHECK(stage != MAP_FAILED);
	job = (uint32_t)getpid();
	nodes_open(&n, NODES, 1, false);
	mortal = fork();
	if (!mortal) {
		await(&stage->go);
		join(MORTAL);
		role();
		raise_flag(&stage->busy);
		for (;;)
			pause();
	}
	join(ORIGIN);
	join(HEALTHY);
	join(THIRD);
	join(LAST);
	pinned = pinned_pages();
	nodes_impair_all(&n, RATE);
	CHECK_EQ(rank_do_copy(&r[HEALTHY], heap_ga(&r[THIRD], 0), heap_ga(&r[HEALTHY], 0), 8),
		 ACP_ST_OK);
	CHECK_EQ(pthread_create(&healthy.thread, NULL, work, NULL), 0);
	wait_rounds(1);
	raise_flag(&stage->go);
	await(&stage->busy);
}

static void kill_it(void)
{
	CHECK_EQ(kill(mortal, SIGKILL), 0);
	CHECK_EQ(waitpid(mortal, NULL, 0), mortal);
}

/* A command that needs the dead rank fails at once. */
static void fails(uint64_t ticket)
{
	int status = rank_await(&r[ORIGIN], ticket, PATIENCE_SOON);

	if (status != ACP_ST_RANK && status != ACP_ST_STAG)
		FAIL("a command that needs the dead ended with %d", status);
}

static uint64_t copy(uint32_t to, uint32_t from)
{
	return rank_copy(&r[ORIGIN], stage->ga[to], stage->ga[from], SIZE, 0);
}

/* The memory of a survivor that the dead rank was writing to does not change any more. */
static void comes_to_rest(uint32_t rank)
{
	char *before = pages(SIZE, PROT_READ | PROT_WRITE);
	struct patience p = patience_begin(PATIENCE_SOON);

	do {
		memcpy(before, m[rank].addr, SIZE);
		sleep_ms(300);
		CHECK(!patience_over(&p));
	} while (memcmp(before, m[rank].addr, SIZE));
}

/*
 * The memory of the dead rank is reused, and no one else writes to it; everything else continues.
 */
static void aftermath(void)
{
	char *fresh;
	int i;

	wait_unpinned();
	nodes_impair_all(&n, "");
	fresh = pages(FRESH, PROT_READ | PROT_WRITE);
	memset(fresh, 0x5a, FRESH);
	for (i = 0; i < 5; i++) {
		fails(copy(MORTAL, ORIGIN));
		fails(copy(MORTAL, THIRD));
		fails(copy(THIRD, MORTAL));
		fails(rank_atomic(&r[ORIGIN], ACP_OP_ADD8, stage->ga[ORIGIN], stage->ga[MORTAL], 1,
				  0, 0));
		fails(rank_atomic(&r[ORIGIN], ACP_OP_ADD8, stage->ga[MORTAL], stage->ga[THIRD], 1,
				  0, 0));
	}
	wait_rounds(5);
	CHECK(fresh[0] == 0x5a && !memcmp(fresh, fresh + 1, FRESH - 1));
	CHECK_EQ(nodes_counters(&n, "flows_failed"), 0);
	raise_flag(&healthy.stop);
	pthread_join(healthy.thread, NULL);
	for (i = 0; i < RANKS; i++)
		if (i != MORTAL)
			rank_close(&r[i]);
	module_unload_soon();
	CHECK_EQ(module_load(""), 0);
}

/* ---- It is the origin ---- */

static void puts_to_another(void)
{
	rank_copy(&r[MORTAL], stage->ga[ORIGIN], stage->ga[MORTAL], SIZE, 0);
}

static void gets_from_another(void)
{
	rank_copy(&r[MORTAL], stage->ga[MORTAL], stage->ga[ORIGIN], SIZE, 0);
}

static void copies_between_others(void)
{
	rank_copy(&r[MORTAL], stage->ga[THIRD], stage->ga[ORIGIN], SIZE, 0);
}

/* Killed a while after the start, and long before the end. */
static void killed_as_origin(void (*role)(void))
{
	begin(role);
	sleep_ms(100);
	kill_it();
}

TEST(P1_P2_killed_in_a_put)
{
	killed_as_origin(puts_to_another);
	comes_to_rest(ORIGIN);
	CHECK(!filled(m[ORIGIN].addr, SIZE, MORTAL));	/* it was not finished */
	aftermath();
}

TEST(P1_P2_killed_in_a_get)
{
	killed_as_origin(gets_from_another);
	CHECK(filled(m[ORIGIN].addr, SIZE, ORIGIN));
	aftermath();
}

/* Others may complete it: whole pieces, at their places. */
TEST(P1_P2_killed_in_a_third_party_copy)
{
	size_t i;

	killed_as_origin(copies_between_others);
	comes_to_rest(THIRD);
	for (i = 0; i < SIZE; i++)
		CHECK(m[THIRD].addr[i] == m[ORIGIN].addr[i] ||
		      m[THIRD].addr[i] == m[MORTAL].addr[i]);
	aftermath();
}

static void adds_without_end(void)
{
	struct rank *me = &r[MORTAL];

	raise_flag(&stage->busy);
	for (;;) {
		rank_atomic(me, ACP_OP_ADD8, stage->ga[MORTAL], stage->ga[ORIGIN], 1, 0, 0);
		rank_atomic(me, ACP_OP_ADD8, stage->ga[THIRD], stage->ga[ORIGIN], 1, 0, 0);
		rank_atomic(me, ACP_OP_ADD8, stage->ga[ORIGIN] + 8, stage->ga[THIRD] + 8, 1, 0, 0);
	}
}

TEST(P1_P2_killed_in_an_atomic)
{
	volatile uint64_t *word;
	uint64_t begun;

	begin(adds_without_end);
	word = (uint64_t *)m[ORIGIN].addr;
	begun = *word;
	while (*word < begun + 100)
		sleep_ms(1);
	kill_it();
	comes_to_rest(ORIGIN);
	comes_to_rest(THIRD);
	/* The previous value that arrived last is older than its last result. */
	CHECK(*(uint64_t *)m[THIRD].addr < *word);
	aftermath();
}

/* ---- It owns the memory ---- */

static void killed_under_way(uint32_t to, uint32_t from)
{
	uint64_t ticket;

	begin(nothing);
	ticket = copy(to, from);
	CHECK_EQ(rank_wait(&r[ORIGIN], ticket, 100 * MS), -1);
	kill_it();
	fails(ticket);
	wait_rounds(5);
	aftermath();
}

TEST(P1_killed_in_a_put_to_it)
{
	killed_under_way(MORTAL, ORIGIN);
}

TEST(P1_killed_in_a_get_from_it)
{
	killed_under_way(ORIGIN, MORTAL);
}

TEST(P1_killed_in_a_third_party_copy_to_it)
{
	killed_under_way(MORTAL, THIRD);
}

TEST(P1_killed_in_a_third_party_copy_from_it)
{
	killed_under_way(THIRD, MORTAL);
}

/* Add 1 repeatedly until a failure. Returns the number of successes. */
static uint64_t add_until_it_dies(uint64_t result, uint64_t word)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	uint64_t count = 0;
	int status;

	do {
		if (count == 20)
			kill_it();
		status = rank_do_atomic(&r[ORIGIN], ACP_OP_ADD8, result, word, 1, 0);
		count += status == ACP_ST_OK;
		CHECK(!patience_over(&p));
	} while (status == ACP_ST_OK);
	if (status != ACP_ST_RANK && status != ACP_ST_STAG)
		FAIL("status %d", status);
	CHECK(count >= 20);
	return count;
}

TEST(P1_killed_in_an_atomic_on_it)
{
	begin(nothing);
	add_until_it_dies(stage->ga[ORIGIN], stage->ga[MORTAL]);
	aftermath();
}

/*
 * The word is in a surviving rank; adds whose result could not be reported are executed at most
 * once.
 */
TEST(P1_killed_in_an_atomic_that_reports_to_it)
{
	uint64_t count, former, *word;

	begin(nothing);
	word = (uint64_t *)m[THIRD].addr;
	former = *word;
	count = add_until_it_dies(stage->ga[MORTAL], stage->ga[THIRD]);
	CHECK(*word == former + count || *word == former + count + 1);
	aftermath();
}

/* ---- Registering ---- */

static void registers_without_end(struct rank *me)
{
	size_t size = 16 * MB;
	char *p = pages(size, PROT_READ | PROT_WRITE);
	struct memory one;

	for (;;) {
		CHECK_EQ(rank_register(me, &one, p, size, ACP_ACCESS_ALL), 0);
		__atomic_store_n(&stage->ga[MORTAL], memory_ga(&one, 0), __ATOMIC_RELEASE);
		raise_flag(&stage->busy);
		rank_do_copy(me, memory_ga(&one, 0), memory_ga(&one, MB), 100000);
		CHECK_EQ(rank_unregister(me, one.reg.key, NULL), 0);
	}
}

/* Killed while another rank writes to its registrations. */
static void killed_while_registering(unsigned int ms)
{
	struct rank me;
	struct setup s;
	uint64_t end;
	int status;

	memset(stage, 0, sizeof(*stage));
	setup_local(&s, 0, 2);
	s.join.job += ms;
	mortal = fork();
	if (!mortal) {
		s.join.rank = 1;
		rank_open(&me, &s);
		registers_without_end(&me);
	}
	rank_open(&me, &s);
	await(&stage->busy);
	for (end = in_ms(ms); now_ns() < end;) {
		status = rank_do_copy(&me, __atomic_load_n(&stage->ga[MORTAL], __ATOMIC_ACQUIRE),
				      heap_ga(&me, 0), 30000);
		CHECK(status == ACP_ST_OK || status == ACP_ST_STAG);
	}
	kill_it();
	wait_unpinned();
	CHECK(rank_do_copy(&me, stage->ga[MORTAL], heap_ga(&me, 0), 8) != ACP_ST_OK);
	rank_works(&me);
	rank_close(&me);
}

TEST(P1_killed_while_registering)
{
	unsigned int i;

	stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	CHECK(stage != MAP_FAILED);
	pinned = pinned_pages();
	for (i = 1; i <= (test_short() ? 4 : 10); i++)
		killed_while_registering(i * 7);
	module_unload_soon();
	CHECK_EQ(module_load(""), 0);
}
