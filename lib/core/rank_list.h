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

/**
 * libacp_ranks_add() - add a rank to a list
 * @r: the list, initially zero
 * @rank: number of the rank, greater than that of all ranks in the list
 *
 * Context: any thread that alone uses @r; does not block.
 */
void libacp_ranks_add(struct libacp_ranks *r, uint32_t rank);

/**
 * libacp_ranks_name() - write a list of ranks as text
 * @r: the list
 * @text: receives the text, such as "rank 3", "ranks 1, 2 and 5 to 9"
 *
 * Context: any thread; does not block.
 */
void libacp_ranks_name(const struct libacp_ranks *r, char text[LIBACP_RANKS_TEXT]);

#pragma GCC visibility pop

#endif /* LIBACP_RANK_LIST_H */
