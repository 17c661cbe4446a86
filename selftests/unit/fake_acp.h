/* SPDX-License-Identifier: MIT */
/*
 * A fake basic layer: implements everything in acp.h for ranks that are processes of a test. It
 * replaces the basic files of lib/ (boot, init, reset, mem, local, gma, event); the middle layer is
 * linked on top:
 *
 *	static void rank(void *arg) { ... acp_malloc(8, 1) ... CHECK(...) ... }
 *
 *	TEST(heap__something)
 *	{
 *		struct fake_acp f = { .ranks = 4, .nodes = 4 };
 *
 *		fake_run(&f, rank, NULL);
 *		CHECK_EQ(f.dead, 0);
 *	}
 *
 * Order and failures are as in acp_copy(3). Remote accesses are delayed and reordered as far as
 * their order permits, by a generator with a seed. Source and destination are read and written at
 * different times, and so are the words of a copy, in any order. A copy that the calling thread
 * executes (own memory; starter memory and heap of ranks on the node) is immediate.
 *
 * Registered memory is replaced by shared pages at its address. Therefore register whole pages if
 * other threads write next to it, and unregister memory before it is freed.
 */
#ifndef FAKE_ACP_H
#define FAKE_ACP_H

#include <stdbool.h>
#include <stdint.h>

#include "acp.h"

#define FAKE_RANKS	64

struct fake_acp {
	/* set by the test; 0: the value in the comment */
	int ranks;			/* 1 */
	int nodes;			/* ranks; rank r is on node r % nodes */
	int colors;			/* 1 */
	uint64_t starter_size;		/* 64 KiB */
	uint64_t heap_size;		/* 1 MiB */
	uint64_t heap_sizes[FAKE_RANKS];	/* of single ranks; heap_size */
	/* from $ACP_TEST_SEED, or from the clock; printed on failure */
	uint64_t seed;
	unsigned int speed;		/* of libacp_now(): 1; 100: 2 s take 20 ms */
	unsigned int delay_us;		/* maximum delay of the network before an access: 0 */
	bool errors_return;		/* acpx_set_error_mode() for all ranks from the start */
	/* the rank is killed at its n-th access; see fake_die_at() */
	uint64_t die[FAKE_RANKS];
	/*
	 * One rank runs at a time, until it calls a function of this layer: the same seed gives the
	 * same run, except for effects of time and of threads of the test.
	 */
	bool turns;
	/* a rank may return a nonzero status without failing the test */
	bool may_fail;
	/* results for the test */
	int dead;			/* number of ranks that were killed */
	int status[FAKE_RANKS];		/* as returned by waitpid() */
	uint64_t trace;			/* turns: a digest of the schedule */
};

/*
 * Fork the ranks, run the function in each, and wait for all. A rank that fails a CHECK or ends
 * other than by return fails the test, unless it was killed on purpose. Ranks synchronize before
 * and after the function, like acp_init and acp_finalize do (except the dead ones).
 */
void fake_run(struct fake_acp *f, void (*rank)(void *arg), void *arg);

/* ---- Functions for ranks ---- */

/*
 * Return the number of accesses that this rank issued, of those that were remote, and of round
 * trips that it waited for.
 */
uint64_t fake_accesses(void);
uint64_t fake_remote_accesses(void);
uint64_t fake_trips(void);

/*
 * Kill this rank after a number of further accesses (0: now). Its accesses in flight are executed
 * partially: a random part of them as their order permits, now, a moment later (less than a second
 * of libacp_now()), or never.
 */
void fake_die_at(uint64_t accesses);

/* Result of libacp_timeout_ms(). */
extern uint64_t fake_timeout_ms;

/* Kill another rank. It is dead on return. */
void fake_kill(int rank);

/* Set the result of acpx_peer_state() for a rank: ACPX_PEER_*, or -1: the real state. */
void fake_set_state(int rank, int state);

/*
 * Make accesses between the node of that rank and others fail (by timeout), until it is
 * reconnected.
 */
void fake_cut(int rank, bool cut);

/*
 * Delay copies of at least that many bytes to memory of this rank: they have read their source, but
 * do not write yet. 0: none. fake_holds() returns whether there are any.
 */
void fake_hold(uint64_t least);
bool fake_holds(void);

/* Return a word shared by all ranks, initially zero. */
uint64_t *fake_word(unsigned int number);	/* below 256 */

/* Return a number from the generator of the rank. */
uint64_t fake_random(void);

/* Return the number of registrations of this rank, to detect leaks. */
unsigned int fake_regions(void);

#endif /* FAKE_ACP_H */
