/* SPDX-License-Identifier: MIT */
/*
 * Commands between ranks, every result checked: one process holds all ranks,
 * so it sees their memory and keeps a model of what must be in it.
 *
 * Each rank has a region of two halves.  Copies read the first and write the
 * second, in places that differ within a batch, so the model is exact
 * whatever the order; atomics have words of their own at its end.
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
	uint64_t patience;		/* ns that a command may take */
};

/* Registers memory at all ranks for a color; half: the longest copy that fits. */
void traffic_open(struct traffic *t, struct rank *ranks, uint32_t count, size_t half,
		  uint32_t color);
void traffic_close(struct traffic *t);

/* The memory of all ranks is as the model says, also around what was written. */
void traffic_check(struct traffic *t);

/* One copy of each size from anyone's to anyone's memory, issued by anyone. */
void traffic_every_copy(struct traffic *t, const size_t *sizes, uint32_t n);

/* The same, of sizes around all that makes a difference in the network. */
void traffic_common_copies(struct traffic *t);

/* A long one between any two, each issued by another rank. */
void traffic_long_copies(struct traffic *t, size_t size);

/* Every atomic, everywhere. */
void traffic_every_atomic(struct traffic *t);

/* Many at once: batches of random copies and atomics. */
void traffic_random(struct traffic *t, uint32_t batches, uint32_t batch, size_t longest);

/* All ranks add 1 to one word, many times at once: each former value comes once. */
void traffic_count(struct traffic *t, uint32_t target, uint32_t each);

/* What a flag is sent behind. */
enum traffic_order { TRAFFIC_HANDLE, TRAFFIC_CONT, TRAFFIC_ATOMIC };

/* Data, then a flag: whoever sees the flag must see all data.  For all places. */
void traffic_flags(struct traffic *t, enum traffic_order order, size_t size, uint32_t rounds);

/* All of that, between ranks that have nothing registered; copies of up to a MiB. */
void traffic_everything(struct traffic *t, struct rank *ranks, uint32_t count, uint32_t color);

#endif /* TRAFFIC_H */
