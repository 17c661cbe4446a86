// SPDX-License-Identifier: MIT
/* selftest: gate=uml */
/*
 * The global heap over networks: all ranks use all heaps concurrently, with losses, and with one
 * rank that is killed.
 */
#include "../dev/isolated.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "heap_play.h"
#include "members.h"

#define RANKS		8
#define PER_NODE	2
#define VICTIM		3
#define STEPS		800u	/* 27 times as many as a rank has blocks at a time */
#define ALIVE_STEPS	200u	/* before the victim dies */

enum { BEGUN = 0, THROUGH = 8, ADDED = 16 };	/* offsets in starter memory */

static struct members m;

static uint64_t seed_of(int rank)
{
	const char *text = getenv("ACP_TEST_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);

	printf("# rank %d: seed %llu\n", rank, (unsigned long long)seed);
	return seed * 1000 + (uint64_t)rank;
}

static void begin(struct heap_play *p)
{
	setenv("ACP_HEAP_SIZE", "64K", 1);
	setenv("ACP_TIMEOUT", "2000", 0);
	member_init();
	*p = (struct heap_play){ .most = 1500, .ranks = acp_procs(), .blocks = 30 };
	p->seed = seed_of(acp_rank());
	heap_play_open(p);
}

/* Check that nothing is allocated in the own heap, and that it is one free block. */
static void check_empty(void)
{
	struct acpx_heap_stats stats;
	acp_ga_t all;

	CHECK_EQ(acpx_heap_check(acp_rank()), 0);
	CHECK_EQ(acpx_heap_stats(acp_rank(), &stats), 0);
	CHECK_EQ(stats.used, 0);
	CHECK_EQ(stats.blocks, 0);
	all = acp_malloc(stats.size - 16, acp_rank());
	CHECK(all != ACP_GA_NULL);
	CHECK_EQ(acpx_free(all), 0);
}

static void play(void)
{
	struct heap_play p;
	unsigned int i;

	begin(&p);
	for (i = 0; i < (test_short() ? STEPS / 4 : STEPS); i++) {
		CHECK_EQ(heap_play_step(&p), 0);
		if (i % 100 == 0)
			CHECK_EQ(acpx_heap_check((acp_rank() + 1) % RANKS), 0);
	}
	heap_play_free_all(&p);
	CHECK_EQ(p.uncertain, 0);
	CHECK_EQ(acp_sync(), 0);
	check_empty();
	heap_play_close(&p);
	CHECK_EQ(acp_finalize(), 0);
}

TEST(A1_all_ranks_in_all_heaps)
{
	members_run(RANKS, PER_NODE, play);
}

TEST(A1_all_ranks_in_all_heaps_with_loss)
{
	members_run_over("loss 1%", RANKS, PER_NODE, play);
}

/* ---- One dies ---- */

/*
 * There are no barriers if a rank is missing: ranks that are finished report to rank 0, and wait
 * until "count" have; or until rank 0, which saw it, is gone.
 */
static void meet_survivors(uint64_t count)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	acp_ga_t here = member_at(acp_rank(), ADDED), there = member_at(0, THROUGH);
	int status;

	CHECK_EQ(member_status(acp_add8(here, there, 1, ACP_HANDLE_NULL)), 0);
	do {
		nanosleep(&moment, NULL);
		status = member_status(acp_copy(here, there, 8, ACP_HANDLE_NULL));
	} while (!status && *member_word(ADDED) < count);
	CHECK(!status || acp_rank());
}

/* The victim continues until it is killed, mostly while it holds the lock of a heap. */
static void play_until_killed(struct heap_play *p)
{
	unsigned int i;

	for (i = 0;; i++) {
		if (i == ALIVE_STEPS)
			member_status(acp_copy(member_at(0, BEGUN), member_at(VICTIM, BEGUN), 8,
					       ACP_HANDLE_NULL));
		heap_play_step(p);
	}
}

static void play_with_victim(void)
{
	struct heap_play p;
	unsigned int i, more = 0;

	begin(&p);
	*member_word(BEGUN) = acp_rank() == VICTIM;
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() == VICTIM)
		play_until_killed(&p);
	if (acp_rank() == 0) {
		while (!__atomic_load_n(member_word(BEGUN), __ATOMIC_ACQUIRE))
			heap_play_step(&p);
		CHECK_EQ(kill(getppid(), SIGUSR1), 0);
	}
	for (i = 0; more < ALIVE_STEPS; i++) {
		heap_play_step(&p);
		more += acpx_peer_state(VICTIM) == ACPX_PEER_DOWN;
	}
	CHECK_EQ(acp_malloc(8, VICTIM) != ACP_GA_NULL,
		 acpx_query_node(VICTIM) == acpx_query_node(acp_rank()));
	heap_play_free_all(&p);
	for (i = 0; i < RANKS; i++)
		if (i != VICTIM)
			CHECK_EQ(acpx_heap_check((int)i), 0);
	heap_play_close(&p);
	meet_survivors(RANKS - 1);
	acp_finalize();
}

/* Start all ranks. Returns after rank 0 has sent its signal. */
static void start_and_wait(void (*body)(void))
{
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	members_start_all(&m, body);
	CHECK_EQ(sigwait(&set, &number), 0);
}

static void with_victim(const char *impairment)
{
	int r;

	members_open(&m, RANKS, PER_NODE);
	if (impairment)
		nodes_impair_all(&m.nodes, impairment);
	start_and_wait(play_with_victim);
	kill(m.pid[VICTIM], SIGKILL);
	for (r = 0; r < RANKS; r++)
		CHECK_EQ(members_wait(&m, r), r == VICTIM ? DIED - SIGKILL : 0);
}

TEST(A1_a_rank_is_killed_in_a_heap)
{
	with_victim(NULL);
}

TEST(A1_a_rank_is_killed_in_a_heap_with_loss)
{
	with_victim("loss 1%");
}

/* A heap whose node cannot be reached: an error, and the others continue. */
static void play_beside_the_lost(void)
{
	struct heap_play p;
	unsigned int i;

	begin(&p);
	p.blocks = 10;			/* freeing one there takes timeouts */
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() / PER_NODE == RANKS / PER_NODE - 1)
		for (;;)
			pause();
	if (acp_rank() == 0)
		CHECK_EQ(kill(getppid(), SIGUSR1), 0);
	while (acpx_peer_state(RANKS - 1) != ACPX_PEER_DOWN)
		heap_play_step(&p);
	CHECK_EQ(acp_malloc(8, RANKS - 1), ACP_GA_NULL);
	CHECK(acpx_heap_check(RANKS - 1) > 0);
	p.ranks = RANKS - PER_NODE;
	for (i = 0; i < ALIVE_STEPS; i++)
		heap_play_step(&p);
	CHECK_EQ(acpx_heap_check(0), 0);
	heap_play_close(&p);
	meet_survivors(RANKS - PER_NODE);
	_exit(0);
}

TEST(A1_a_heap_is_out_of_reach)
{
	int r;

	/* many timeouts are waited for */
	setenv("ACP_TIMEOUT", test_short() ? "2000" : "1000", 1);
	members_open(&m, RANKS, PER_NODE);
	start_and_wait(play_beside_the_lost);
	nodes_impair(&m.nodes, RANKS / PER_NODE - 1, "loss 100%");
	for (r = 0; r < RANKS - PER_NODE; r++)
		CHECK_EQ(members_wait(&m, r), 0);
	for (; r < RANKS; r++) {
		kill(m.pid[r], SIGKILL);
		members_wait(&m, r);
	}
}
