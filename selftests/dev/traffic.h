/* SPDX-License-Identifier: MIT */
/*
 * Commands between ranks, with all results checked. One process has all ranks, so it can read their
 * memory and keeps a model of the expected contents.
 *
 * Each rank has a region of two halves. Copies read the first and write the second, at places that
 * differ within a batch, so the model is exact in any order of execution. Atomics have separate
 * words at the end of the region.
 */
#ifndef TRAFFIC_H
#define TRAFFIC_H

#include "rank.h"

#define TRAFFIC_WORDS	64	/* 8-byte words for atomics, at the end of a region */

struct traffic {
	struct rank *ranks;
	uint32_t count;
	size_t half;			/* bytes of each half */
	struct memory memory[RANKS_MAX];
	char *model[RANKS_MAX];
	uint64_t seed;
	unsigned int late_ms;		/* how long the network may delay a copy of a datagram */
};

/* Register memory at all ranks for a color. @half: the longest copy that fits. */
void traffic_open(struct traffic *t, struct rank *ranks, uint32_t count, size_t half,
		  uint32_t color);
void traffic_close(struct traffic *t);

/* Check that the memory of all ranks is as the model says, also around what was written. */
void traffic_check(struct traffic *t);

/* One copy of each size between all pairs of ranks, issued by each rank. */
void traffic_every_copy(struct traffic *t, const size_t *sizes, uint32_t n);

/* The same, for sizes around all limits of the protocol. */
void traffic_common_copies(struct traffic *t);

/* A long copy between all pairs of ranks, issued by a third rank each. */
void traffic_long_copies(struct traffic *t, size_t size);

/* Every atomic between all ranks. */
void traffic_every_atomic(struct traffic *t);

/* Batches of random copies and atomics. */
void traffic_random(struct traffic *t, uint32_t batches, uint32_t batch, size_t longest);

/* All ranks add 1 to one word, many at once; each former value must occur once. */
void traffic_count(struct traffic *t, uint32_t target, uint32_t each);

/* How a flag is ordered after data. */
enum traffic_order { TRAFFIC_HANDLE, TRAFFIC_CONT, TRAFFIC_ATOMIC };

/* Data, then a flag: a rank that sees the flag must see all data. For all placements. */
void traffic_flags(struct traffic *t, enum traffic_order order, size_t size, uint32_t rounds);

/* All of these tests, between ranks that have nothing registered; copies of up to 1 MiB. */
void traffic_everything(struct traffic *t, struct rank *ranks, uint32_t count, uint32_t color);

#endif /* TRAFFIC_H */
