/* SPDX-License-Identifier: MIT */
/*
 * A played basic layer: everything in acp.h, for ranks that are processes of
 * a test.  It goes instead of the basic files of lib/ (boot, init, reset, mem,
 * local, gma, event), with those of the middle layer on top:
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
 * Order and failure are as acp_copy(3) says.  What is not local is delayed and
 * reordered as the order allows, by a generator with a seed; source and
 * destination are read and written at different times, and so are the words
 * of a copy, in any order.  A copy done by the
 * calling thread (own memory; starter and heap of ranks on the node) is at once.
 *
 * Registered memory is moved to shared pages below its address, so register
 * whole pages if other threads write beside it, and unregister before it is
 * freed.
 */
#ifndef FAKE_ACP_H
#define FAKE_ACP_H

#include <stdbool.h>
#include <stdint.h>

#include "acp.h"

#define FAKE_RANKS	64

struct fake_acp {
	/* for the test to set; 0: what stands here */
	int ranks;			/* 1 */
	int nodes;			/* ranks; rank r is on node r % nodes */
	int colors;			/* 1 */
	uint64_t starter_size;		/* 64 KiB */
	uint64_t heap_size;		/* 1 MiB */
	uint64_t heap_sizes[FAKE_RANKS];	/* of single ranks; heap_size */
	uint64_t seed;			/* of $ACP_TEST_SEED, or of the clock; printed on failure */
	unsigned int speed;		/* of the clock libacp_now: 1; 100: 2 s last 20 ms */
	unsigned int delay_us;		/* most that the network idles before an access: 0 */
	bool errors_return;		/* acpx_set_error_mode for all from the start */
	uint64_t die[FAKE_RANKS];	/* the rank is killed at its n-th access; see fake_die_at */
	bool may_fail;			/* a rank may end with a status: no failure of the test */
	/* for the test to look at afterwards */
	int dead;			/* ranks that were killed */
	int status[FAKE_RANKS];		/* as of waitpid */
};

/*
 * Fork the ranks, run the function in each, wait for all.  A rank that fails
 * a CHECK or ends otherwise than by return fails the test, unless it was killed
 * on purpose.  Ranks wait for each other before and after the function, as
 * acp_init and acp_finalize do (the dead are not waited for).
 */
void fake_run(struct fake_acp *f, void (*rank)(void *arg), void *arg);

/* ---- In a rank ---- */

/* Accesses this rank issued, those that were not local, and round trips that it waited for. */
uint64_t fake_accesses(void);
uint64_t fake_remote_accesses(void);
uint64_t fake_trips(void);

/*
 * Kill this rank when it has issued so many accesses more (0: now).  What it
 * issued then and before happens in part: a random part of it as order allows,
 * now, a moment later (less than a second of libacp_now), or never.
 */
void fake_die_at(uint64_t accesses);

/* Kill another rank, wherever it is; it is dead on return. */
void fake_kill(int rank);

/* What acpx_peer_state says of a rank: ACPX_PEER_*, or -1: the truth again. */
void fake_set_state(int rank, int state);

/* Accesses between that rank's node and others fail (by timeout), until it is back. */
void fake_cut(int rank, bool cut);

/* A word for all ranks, zero at first: to count and to agree. */
uint64_t *fake_word(unsigned int number);	/* below 256 */

/* A number from the rank's generator. */
uint64_t fake_random(void);

/* Registrations of this rank: to see leaks. */
unsigned int fake_regions(void);

#endif /* FAKE_ACP_H */
