// SPDX-License-Identifier: MIT
/*
 * A rank that allocates and frees blocks of all heaps at random, like all others.
 *
 *		heaps STEPS [VICTIM]
 *
 * VICTIM continues until it is killed; the others until STEPS after its end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "member.h"

#define CHECK(x)	do { if (!(x)) fail("line %d: %s", __LINE__, #x); } while (0)
#define CHECK_EQ(a, b)	CHECK((a) == (b))
#define FAIL		fail
#include "../../unit/heap_play.h"

#define LOOK	100u		/* steps between two checks of a whole heap */

static void begin(struct heap_play *p)
{
	const char *text = getenv("ACP_TEST_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);

	say("seed %llu", (unsigned long long)seed);
	*p = (struct heap_play){
		.seed = seed * 1000 + (uint64_t)me, .most = 1500, .ranks = procs, .blocks = 30,
	};
	heap_play_open(p);
}

static void play(struct heap_play *p, unsigned int steps)
{
	unsigned int i;

	for (i = 0; i < steps; i++) {
		CHECK_EQ(heap_play_step(p), 0);
		if (i % LOOK == 0)
			CHECK_EQ(acpx_heap_check((int)heap_play_draw(p, (uint64_t)procs)), 0);
	}
	heap_play_free_all(p);
	CHECK_EQ(p->uncertain, 0);
	rendezvous();
}

static void play_until_killed(struct heap_play *p)
{
	unsigned int i;

	for (i = 0;; i++) {
		if (i == LOOK)
			say("working");
		heap_play_step(p);
	}
}

/* Blocks of the victim's heap are lost, and nothing else. */
static void play_beside(struct heap_play *p, int victim, unsigned int steps)
{
	uint64_t count = 0;
	int r;

	while (count < steps) {
		heap_play_step(p);
		count += acpx_peer_state(victim) == ACPX_PEER_DOWN;
	}
	heap_play_free_all(p);
	for (r = 0; r < procs; r++)
		if (r != victim)
			CHECK_EQ(acpx_heap_check(r), 0);
}

/* No barrier is possible without the victim: each rank tells all others that it has finished. */
static void wait_for_survivors(const uint64_t *through, int victim)
{
	int r;

	for (r = 0; r < procs; r++)
		if (r != victim)
			must(acp_add8(board_at(me, 8), board_at(r, 0), 1, ACP_HANDLE_NULL),
			     "add to a board");
	wait_for(through, (uint64_t)procs - 1, "the others to be through");
}

int main(int argc, char **argv)
{
	const uint64_t *board = member_begin(&argc, &argv, 16);
	unsigned int steps = argc > 1 ? (unsigned int)atoi(argv[1]) : 1000;
	int victim = argc > 2 ? atoi(argv[2]) : -1;
	struct heap_play p;

	begin(&p);
	rendezvous();
	if (me == victim)
		play_until_killed(&p);
	if (victim < 0) {
		play(&p, steps);
	} else {
		play_beside(&p, victim, steps);
		wait_for_survivors(board, victim);
	}
	heap_play_close(&p);
	say("all well");
	acp_finalize();
	return 0;
}
