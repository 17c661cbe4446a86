/* SPDX-License-Identifier: MIT */
/* Three ranks with the provider of libfabric; what programs about RMA and atomics share. */
#ifndef FI_PLAY_H
#define FI_PLAY_H

#include "fabric_play.h"

#define RANKS	3
#define THERE	1		/* the rank whose memory is accessed */
#define HALF	(PLAY_BYTES / 2)
static struct play p;

#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))

static inline void run(void (*body)(void))
{
	play_prepare();
	members_run(RANKS, 1, body);
}

static inline struct fi_cq_tagged_entry done(void)
{
	struct fi_cq_tagged_entry entry = { 0 };

	play_await(p.cq, &entry);
	return entry;
}

static inline uint64_t *word(size_t offset)
{
	return (uint64_t *)(void *)(p.memory + offset);
}

#endif /* FI_PLAY_H */
