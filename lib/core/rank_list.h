/* SPDX-License-Identifier: MIT */
/* Text form of a list of ranks. */
#ifndef LIBACP_RANK_LIST_H
#define LIBACP_RANK_LIST_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

#define LIBACP_RANKS_TEXT	200
/* ranges that are listed; ranks beyond them are only counted */
#define LIBACP_RANK_RANGES	8

/* A list of ranks for a message. */
struct libacp_ranks {
	struct {
		uint32_t first, last;
	} range[LIBACP_RANK_RANGES];
	uint32_t ranges, count;
	uint32_t more;			/* ranks that are in no range */
};

/* Add a rank. Ranks must be added in ascending order. */
void libacp_ranks_add(struct libacp_ranks *r, uint32_t rank);

/* Write the list as text: "rank 3", "ranks 1, 2 and 5 to 9". */
void libacp_ranks_name(const struct libacp_ranks *r, char text[LIBACP_RANKS_TEXT]);

#pragma GCC visibility pop

#endif /* LIBACP_RANK_LIST_H */
