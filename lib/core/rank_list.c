// SPDX-License-Identifier: MIT
/* Text form of a list of ranks, for messages. */
#include <stdio.h>

#include "core/rank_list.h"

void libacp_ranks_add(struct libacp_ranks *r, uint32_t rank)
{
	r->count++;
	if (r->ranges && !r->more && r->range[r->ranges - 1].last + 1 == rank) {
		r->range[r->ranges - 1].last = rank;
	} else if (r->ranges < LIBACP_RANK_RANGES) {
		r->range[r->ranges].first = rank;
		r->range[r->ranges++].last = rank;
	} else {
		r->more++;
	}
}

struct item {
	uint32_t first, last;
};

/* Split ranges of two ranks into two items. Returns the number of items. */
static uint32_t list_items(const struct libacp_ranks *r, struct item items[2 * LIBACP_RANK_RANGES])
{
	uint32_t count = 0, i;

	for (i = 0; i < r->ranges; i++) {
		const uint32_t first = r->range[i].first, last = r->range[i].last;

		items[count++] = (struct item){ first, last == first + 1 ? first : last };
		if (last == first + 1)
			items[count++] = (struct item){ last, last };
	}
	return count;
}

/* Examples: "rank 3"; "ranks 1, 2, 5 to 9 and 11"; "ranks 1, ... 30 and 17 more". */
void libacp_ranks_name(const struct libacp_ranks *r, char text[LIBACP_RANKS_TEXT])
{
	int length = snprintf(text, LIBACP_RANKS_TEXT, "rank%s", r->count == 1 ? "" : "s");
	struct item items[2 * LIBACP_RANK_RANGES];
	uint32_t count = list_items(r, items), i;

	for (i = 0; i < count; i++) {
		const char *before = i == 0 ? "" : i + 1 < count || r->more ? "," : " and";

		length += snprintf(text + length, LIBACP_RANKS_TEXT - (size_t)length, "%s %u",
				   before, items[i].first);
		if (items[i].last > items[i].first)
			length += snprintf(text + length, LIBACP_RANKS_TEXT - (size_t)length,
					   " to %u", items[i].last);
	}
	if (r->more)
		snprintf(text + length, LIBACP_RANKS_TEXT - (size_t)length, " and %u more",
			 r->more);
}
