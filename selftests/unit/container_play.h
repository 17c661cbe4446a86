/* SPDX-License-Identifier: MIT */
/*
 * Ranks that take turns on containers, for tests against a simple model.
 *
 * All ranks execute the same sequence of steps, drawn by the same generator, and keep the same
 * model. One rank executes the step in global memory and tells the others whether it succeeded.
 *
 * Link with PLAY_WRAPS: allocations are counted, and fail on request; overlapping copies to higher
 * addresses are detected.
 */
#ifndef CONTAINER_PLAY_H
#define CONTAINER_PLAY_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acp.h"
#include "fake_acp.h"
#include "test.h"

#define STAGE	32768u		/* bytes of starter memory for staging */
#define FINE	4711		/* errno before each call */

/* Words shared by all ranks: results of the last RECORDS steps, and others. */
enum { OUTCOME = 0, SAID = 64, RECORDS = 64, DONE = 128, LIVE, ARRIVALS };

static uint64_t play_state;
static bool play_alone;			/* no other rank takes turns */
static bool play_own;			/* ... or accesses the objects of this rank */
static uint64_t play_blocks;		/* allocated by this rank and not freed */
static uint64_t play_done;		/* steps */
static uint64_t play_say;		/* value that the rank whose turn it is tells the others */
static unsigned int play_fail_at;	/* number of the allocation that fails; 0: none */
/* accesses that others wait for complete before those are issued */
static bool play_late;
static unsigned int play_late_failures;	/* ... and failed */

/* ---- Random numbers, the same on all ranks ---- */

static inline uint64_t draw(uint64_t below)
{
	uint64_t x;

	play_state += 0x9e3779b97f4a7c15;
	x = play_state;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (x ^ x >> 31) % below;
}

/*
 * Number of steps of all ranks together in tests without turns. Fewer with sanitizers; the programs
 * *_long, without sanitizers, execute a million.
 */
#ifndef MANY
#define MANY	3000
#endif

/* Return the number of steps: more with ACP_TEST_LONG. */
static inline unsigned int steps(unsigned int n)
{
	return getenv("ACP_TEST_LONG") ? 50 * n : n;
}

/* ---- Memory ---- */

acp_ga_t __real_acp_malloc(size_t size, int rank);
int __real_acpx_free(acp_ga_t ga);
acp_handle_t __real_acp_copy(acp_ga_t dst, acp_ga_t src, size_t size, acp_handle_t order);

acp_ga_t __wrap_acp_malloc(size_t size, int rank)
{
	acp_ga_t ga;

	if (play_fail_at && --play_fail_at == 0) {
		errno = ENOMEM;
		return ACP_GA_NULL;
	}
	ga = __real_acp_malloc(size, rank);
	if (ga != ACP_GA_NULL) {
		__atomic_fetch_add(fake_word(LIVE), 1, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(&play_blocks, 1, __ATOMIC_RELAXED);
	}
	return ga;
}

int __wrap_acpx_free(acp_ga_t ga)
{
	int err = __real_acpx_free(ga);

	CHECK(ga != ACP_GA_NULL);
	if (!err) {
		__atomic_fetch_sub(fake_word(LIVE), 1, __ATOMIC_SEQ_CST);
		__atomic_fetch_sub(&play_blocks, 1, __ATOMIC_RELAXED);
	}
	return err;
}

static void until_complete(acp_handle_t handle)
{
	while (acp_inquire(handle))
		usleep(10);
}

/* A copy that waits for a failed one has no effect. */
static acp_handle_t copy_late(acp_ga_t dst, acp_ga_t src, size_t size, acp_handle_t order)
{
	acp_handle_t handle;

	until_complete(order);
	handle = __real_acp_copy(dst, src, size, order);
	if (acpx_status(order)) {
		play_late_failures++;
		until_complete(handle);
		CHECK(acpx_status(handle) != 0);
	}
	return handle;
}

acp_handle_t __wrap_acp_copy(acp_ga_t dst, acp_ga_t src, size_t size, acp_handle_t order)
{
	CHECK(dst <= src || dst - src >= size || acp_query_address(dst));
	if (play_late && order != (acp_handle_t)ACP_HANDLE_NULL)
		return copy_late(dst, src, size, order);
	return __real_acp_copy(dst, src, size, order);
}

/* Return the number of blocks allocated by all ranks that take turns. */
static inline uint64_t live(void)
{
	return play_own ? play_blocks : __atomic_load_n(fake_word(LIVE), __ATOMIC_SEQ_CST);
}

/* Return memory of this rank for staging. */
static inline char *stage(void)
{
	return acp_query_address(acp_query_starter_ga(acp_rank()));
}

static inline acp_ga_t stage_ga(void)
{
	return acp_query_starter_ga(acp_rank());
}

/* Read bytes from an address. */
static inline const char *fetch(acp_ga_t ga, size_t size)
{
	CHECK(size <= STAGE);
	acp_complete(acp_copy(stage_ga() + STAGE, ga, size, ACP_HANDLE_NULL));
	return stage() + STAGE;
}

static inline uint64_t fetch_word(acp_ga_t ga)
{
	uint64_t word;

	memcpy(&word, fetch(ga, sizeof(word)), sizeof(word));
	return word;
}

/* ---- Steps ---- */

/* Barrier of all ranks. */
static inline void rendezvous(void)
{
	uint64_t n = (uint64_t)acp_procs();
	uint64_t mine = __atomic_fetch_add(fake_word(ARRIVALS), 1, __ATOMIC_SEQ_CST);

	while (__atomic_load_n(fake_word(ARRIVALS), __ATOMIC_SEQ_CST) < (mine / n + 1) * n)
		usleep(50);
}

/*
 * One rank executes the statement; all ranks get the same result: its errno or 0, and the value it
 * set in play_say. A call that succeeds must preserve errno.
 */
#define TURN(rank, statement)							\
	({									\
		if ((rank) == acp_rank()) {					\
			errno = FINE;						\
			statement;						\
			play_tell(errno == FINE ? 0 : (uint64_t)errno);		\
		}								\
		play_hear();							\
	})

static uint64_t play_outcome;		/* of the last step, if this rank is alone */

static inline void play_tell(uint64_t outcome)
{
	uint64_t n = play_done % RECORDS;

	if (play_alone) {
		play_outcome = outcome;
		return;
	}
	__atomic_store_n(fake_word(OUTCOME + (unsigned int)n), outcome, __ATOMIC_SEQ_CST);
	__atomic_store_n(fake_word(SAID + (unsigned int)n), play_say, __ATOMIC_SEQ_CST);
	__atomic_store_n(fake_word(DONE), play_done + 1, __ATOMIC_SEQ_CST);
}

static inline int play_hear(void)
{
	uint64_t n = play_done++ % RECORDS;
	int outcome;

	if (play_alone)
		return (int)play_outcome;
	while (__atomic_load_n(fake_word(DONE), __ATOMIC_SEQ_CST) < play_done)
		usleep(50);
	outcome = (int)__atomic_load_n(fake_word(OUTCOME + (unsigned int)n), __ATOMIC_SEQ_CST);
	play_say = __atomic_load_n(fake_word(SAID + (unsigned int)n), __ATOMIC_SEQ_CST);
	/* No rank is more than RECORDS steps ahead of another. */
	if (n + 1 == RECORDS)
		rendezvous();
	return outcome;
}

/* Return the rank whose turn it is, for several steps in a row. */
static inline int whose_turn(void)
{
	static int rank;
	static uint64_t since;

	if (play_done - since > 20) {
		since = play_done;
		rank = (int)draw((uint64_t)acp_procs());
	}
	return rank;
}

/* Check that a call fails with this errno. */
#define FAILS(error, statement)							\
	do {									\
		errno = FINE;							\
		statement;							\
		CHECK_EQ(errno, error);						\
	} while (0)

/* Check that a call succeeds within a number of round trips. */
#define TRIPS(most, statement)							\
	do {									\
		uint64_t begin_ = fake_trips();					\
										\
		errno = FINE;							\
		statement;							\
		CHECK_EQ(errno, FINE);						\
		if (getenv("ACP_TEST_TRIPS"))					\
			printf("# %llu %s\n", (unsigned long long)(fake_trips() - begin_),	\
			       #statement);					\
		CHECK(fake_trips() - begin_ <= (most));				\
	} while (0)

#define HEAP_TRIPS	2	/* of acp_malloc and acp_free */

static inline void wait_for_the_end_of(int rank)
{
	while (acpx_peer_state(rank) != ACPX_PEER_DOWN)
		usleep(100);
}

static struct fake_acp play_job;

/* Run a job with a number of ranks and nodes. */
static inline void play(int ranks, int nodes, void (*body)(void *arg))
{
	play_job = (struct fake_acp){
		.ranks = ranks, .nodes = nodes,
		.starter_size = 2 * (uint64_t)STAGE,
	};
	fake_run(&play_job, body, &play_job);
	CHECK_EQ(play_job.dead, 0);
}

/* Many steps by all ranks concurrently, each on its own containers. Prints their number. */
static inline void play_many(const char *what, int ranks, int nodes, void (*body)(void *arg))
{
	play(ranks, nodes, body);
	printf("# %u random steps on %s by %d rank%s on %d node%s, seed %llu\n",
	       MANY / (unsigned int)ranks * (unsigned int)ranks, what, ranks, ranks > 1 ? "s" : "",
	       nodes, nodes > 1 ? "s" : "", (unsigned long long)play_job.seed);
}

#endif /* CONTAINER_PLAY_H */
