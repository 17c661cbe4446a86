// SPDX-License-Identifier: MIT
/*
 * Splitting of groups: an exchange (exchange.h) of colors and keys. The table of the first member
 * has an entry for each member, which is its part, and then the ranks of all parts.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "acp.h"
#include "group/exchange.h"
#include "group/group.h"

#define SPLIT	0x73706c6974ull		/* the first word of the exchange */

/* An entry of the table: the part of a member is ranks[first] to ranks[first + count - 1]. */
struct entry {
	uint32_t first, count;
};

struct split {
	acpx_group_t part;		/* of the first member */
};

/* ---- The first member ---- */

static int32_t color_of(const struct libacp_member *m)
{
	return (int32_t)m->words[1];
}

static int32_t key_of(const struct libacp_member *m)
{
	return (int32_t)m->words[2];
}

static int compare(const void *a, const void *b)
{
	const struct libacp_member *x = a, *y = b;

	if (color_of(x) != color_of(y))
		return color_of(x) < color_of(y) ? -1 : 1;
	if (key_of(x) != key_of(y))
		return key_of(x) < key_of(y) ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

/* Compute the parts. Those of no color have none. Returns that of the first member. */
static struct entry fill_table(struct libacp_exchange *x, uint32_t *ranks)
{
	const uint32_t count = (uint32_t)x->group->count;
	struct libacp_member *m = x->members;
	struct entry own = { 0 }, entry, *table = x->table;
	uint32_t first, end, i;

	qsort(m, count, sizeof(*m), compare);
	for (first = 0; first < count; first = end) {
		for (end = first; end < count && color_of(&m[end]) == color_of(&m[first]); end++)
			ranks[end] = (uint32_t)libacp_group_at(x->group, (int)m[end].number);
		entry = (struct entry){
			.first = first, .count = color_of(&m[first]) < 0 ? 0 : end - first,
		};
		for (i = first; i < end; i++) {
			table[m[i].number] = entry;
			if (m[i].number == 0)
				own = entry;
		}
	}
	return own;
}

/* Copy a part. Returns 0 or -errno. */
static int make_part(const uint32_t *ranks, uint32_t count, acpx_group_t *part)
{
	int error = acpx_group_list((const int *)ranks, (int)count, part);

	return error == -EINVAL ? -EBADMSG : error;
}

/*
 * Fill the table, and make the part of the first member before others can write to it: if there is
 * no memory for that, all members fail. Returns 0 or -errno.
 */
static int fill(struct libacp_exchange *x, void *state)
{
	uint32_t *ranks = (uint32_t *)(void *)((struct entry *)x->table + x->group->count);
	const struct entry own = fill_table(x, ranks);
	struct split *s = state;

	return own.count ? make_part(ranks + own.first, own.count, &s->part) : 0;
}

/* ---- Other members ---- */

/* Read the own part from the table, which other ranks may have overwritten. */
static int read_part(const struct libacp_exchange *x, acpx_group_t *part)
{
	const uint32_t size = (uint32_t)x->group->count;
	const acp_ga_t ranks_ga = x->table_ga + size * sizeof(struct entry);
	struct entry own;
	uint32_t *ranks;
	int error = libacp_exchange_read(&own, x->table_ga + (size_t)x->number * sizeof(own),
					 sizeof(own));

	if (error || !own.count)
		return error;
	if (own.first >= size || own.count > size - own.first)
		return -EBADMSG;
	ranks = malloc(own.count * sizeof(*ranks));
	if (!ranks)
		return -ENOMEM;
	error = libacp_exchange_read(ranks, ranks_ga + own.first * sizeof(*ranks),
				     own.count * sizeof(*ranks));
	if (!error)
		error = make_part(ranks, own.count, part);
	free(ranks);
	return error;
}

/* ---- All members ---- */

static int split(struct libacp_exchange *x, struct split *s)
{
	int error = libacp_exchange_begin(x);

	if (error)
		return error;
	if (x->number)
		error = read_part(x, &s->part);
	libacp_exchange_leave(x);
	return error;
}

int acpx_group_split(acpx_group_t group, int color, int key, acpx_group_t *part)
{
	const int number = acpx_group_rank(group);
	struct split s = { NULL };
	struct libacp_exchange x = {
		.group = group, .number = number, .fill = fill, .state = &s,
		.words = { SPLIT, (uint32_t)color, (uint32_t)key }, .entry = sizeof(struct entry),
		.extra = sizeof(uint32_t),
	};
	int error;

	if (number < 0)
		return number == -ENOENT ? -EINVAL : number;
	if (!part || color < ACPX_NO_COLOR)
		return -EINVAL;
	error = split(&x, &s);
	if (!error && (s.part ? acpx_group_rank(s.part) < 0 || color < 0 : color >= 0))
		error = -EBADMSG;
	if (!error)
		*part = s.part;
	else if (s.part)
		acpx_group_free(s.part);
	return error;
}
