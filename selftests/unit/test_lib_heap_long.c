// SPDX-License-Identifier: MIT
/*
 * Three million allocations and frees by all ranks in all heaps, near and far, with verification of
 * contents and of all invariants. Built like the library; test_lib_heap runs the same with
 * sanitizers.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "fake_acp.h"
#include "test.h"

#include "heap_play.h"

#define KIB	1024u
#define LOOK	500u		/* steps between two checks of a whole heap */

enum { STEPS };			/* words of all ranks: number of successful allocations and frees */

struct plan {
	unsigned int steps;	/* of each player */
	int threads;		/* threads per rank */
	uint64_t most;		/* maximum size of a block */
	unsigned int blocks;	/* maximum number at a time, per thread */
};

static void play(const struct plan *plan, uint64_t seed)
{
	struct heap_play p = {
		.seed = seed, .most = plan->most, .ranks = acp_procs(), .blocks = plan->blocks,
	};
	unsigned int i;

	heap_play_open(&p);
	for (i = 0; i < plan->steps; i++) {
		CHECK_EQ(heap_play_step(&p), 0);
		if (i % LOOK == 0)
			CHECK_EQ(acpx_heap_check((int)heap_play_draw(&p, (uint64_t)p.ranks)), 0);
	}
	heap_play_free_all(&p);
	CHECK_EQ(p.uncertain, 0);
	__atomic_add_fetch(fake_word(STEPS), p.mallocs + p.frees, __ATOMIC_RELAXED);
	heap_play_close(&p);
}

struct player {
	const struct plan *plan;
	uint64_t seed;
};

static void *play_thread(void *arg)
{
	struct player *p = arg;

	play(p->plan, p->seed);
	return NULL;
}

static void all_in_all(void *arg)
{
	const struct plan *plan = arg;
	struct player players[8];
	pthread_t threads[8];
	int i;

	for (i = 0; i < plan->threads; i++) {
		players[i] = (struct player){ plan, fake_random() };
		CHECK_EQ(pthread_create(&threads[i], NULL, play_thread, &players[i]), 0);
	}
	for (i = 0; i < plan->threads; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(acp_sync(), 0);
	heap_play_check_empty(acp_rank());
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() == 0)
		printf("# %llu operations\n", (unsigned long long)*fake_word(STEPS));
}

TEST(A1_random_operations_in_the_own_heap)
{
	struct plan plan = { 1000000, 1, 1500, 100 };
	struct fake_acp f = { .heap_size = 64 * KIB };

	fake_run(&f, all_in_all, &plan);
}

TEST(A1_random_operations_by_ranks_of_a_node)
{
	struct plan plan = { 250000, 1, 1500, 60 };
	struct fake_acp f = { .ranks = 4, .nodes = 1, .heap_size = 100 * KIB };

	fake_run(&f, all_in_all, &plan);
}

TEST(A1_random_operations_by_ranks_of_several_nodes)
{
	struct plan plan = { 80000, 1, 1500, 60 };
	struct fake_acp f = { .ranks = 4, .nodes = 2, .heap_size = 100 * KIB };

	fake_run(&f, all_in_all, &plan);
}

TEST(A1_random_operations_by_threads)
{
	struct plan plan = { 170000, 3, 500, 20 };
	struct fake_acp f = { .ranks = 2, .nodes = 1, .heap_size = 32 * KIB };

	fake_run(&f, all_in_all, &plan);
}

TEST_MAIN
