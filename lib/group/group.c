// SPDX-License-Identifier: MIT
/* Groups of ranks, without communication: see group.h. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "acp.h"
#include "group/group.h"
#include "middle/hash.h"

/* ---- Creation ---- */

static int new_strided(int start, int stride, int count, acpx_group_t *group)
{
	struct acpx_group *g = malloc(sizeof(*g));

	if (!g)
		return -ENOMEM;
	*g = (struct acpx_group){
		.users = 1, .start = start, .stride = stride, .count = count,
	};
	*group = g;
	return 0;
}

static bool is_rank(int64_t rank)
{
	return rank >= 0 && rank < acp_procs();
}

int acpx_group_strided(int start, int stride, int count, acpx_group_t *group)
{
	if (acp_procs() < 0)
		return -ENOTCONN;
	if (!group || count < 1 || !is_rank(start) || (!stride && count > 1) ||
	    !is_rank(start + (int64_t)stride * (count - 1)))
		return -EINVAL;
	return new_strided(start, count > 1 ? stride : 1, count, group);
}

int acpx_group_world(acpx_group_t *group)
{
	return acpx_group_strided(0, 1, acp_procs(), group);
}

static bool is_strided(const int *ranks, int count)
{
	int i;

	for (i = 2; i < count; i++)
		if ((int64_t)ranks[i] - ranks[i - 1] != (int64_t)ranks[1] - ranks[0])
			return false;
	return count < 2 || ranks[0] != ranks[1];
}

static bool is_ascending(const int *ranks, int count)
{
	int i;

	for (i = 1; i < count; i++)
		if (ranks[i] <= ranks[i - 1])
			return false;
	return true;
}

static int compare(const void *a, const void *b)
{
	const int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

/* Is any rank listed twice? Returns 0, -EINVAL or -ENOMEM. */
static int check_different(const int *ranks, int count)
{
	int *sorted = malloc((size_t)count * sizeof(*sorted));
	bool different;

	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, ranks, (size_t)count * sizeof(*sorted));
	qsort(sorted, (size_t)count, sizeof(*sorted), compare);
	different = is_ascending(sorted, count);
	free(sorted);
	return different ? 0 : -EINVAL;
}

static int new_listed(const int *ranks, int count, acpx_group_t *group)
{
	const size_t bytes = (size_t)count * sizeof(*ranks);
	const bool ascending = is_ascending(ranks, count);
	int error = ascending ? 0 : check_different(ranks, count);
	struct acpx_group *g;

	if (error)
		return error;
	g = malloc(sizeof(*g) + bytes);
	if (!g)
		return -ENOMEM;
	*g = (struct acpx_group){
		.users = 1, .count = count, .listed = true, .ascending = ascending,
	};
	memcpy(g->ranks, ranks, bytes);
	*group = g;
	return 0;
}

int acpx_group_list(const int *ranks, int count, acpx_group_t *group)
{
	int i;

	if (acp_procs() < 0)
		return -ENOTCONN;
	if (!group || !ranks || count < 1 || count > acp_procs())
		return -EINVAL;
	for (i = 0; i < count; i++)
		if (!is_rank(ranks[i]))
			return -EINVAL;
	if (is_strided(ranks, count))
		return new_strided(ranks[0], count > 1 ? ranks[1] - ranks[0] : 1, count, group);
	return new_listed(ranks, count, group);
}

int acpx_group_free(acpx_group_t group)
{
	if (!group)
		return -EINVAL;
	if (!__atomic_sub_fetch(&group->users, 1, __ATOMIC_ACQ_REL))
		free(group);
	return 0;
}

/* ---- Queries ---- */

int acpx_group_size(acpx_group_t group)
{
	return group ? group->count : -EINVAL;
}

int acpx_group_translate(acpx_group_t group, int number)
{
	if (!group || number < 0 || number >= group->count)
		return -EINVAL;
	return libacp_group_at(group, number);
}

static int find_strided(const struct acpx_group *g, int rank)
{
	const int64_t distance = (int64_t)rank - g->start, number = distance / g->stride;

	if (distance % g->stride || number < 0 || number >= g->count)
		return -ENOENT;
	return (int)number;
}

static int find_listed(const struct acpx_group *g, int rank)
{
	const int *at = NULL;
	int i;

	if (g->ascending)
		at = bsearch(&rank, g->ranks, (size_t)g->count, sizeof(rank), compare);
	for (i = 0; i < g->count && !g->ascending && !at; i++)
		if (g->ranks[i] == rank)
			at = &g->ranks[i];
	return at ? (int)(at - g->ranks) : -ENOENT;
}

int acpx_group_find(acpx_group_t group, int rank)
{
	if (!group || rank < 0)
		return -EINVAL;
	return group->listed ? find_listed(group, rank) : find_strided(group, rank);
}

int acpx_group_rank(acpx_group_t group)
{
	const int own = acp_rank();

	return group && own < 0 ? -ENOTCONN : acpx_group_find(group, own);
}

uint64_t libacp_group_id(const struct acpx_group *g)
{
	const int fixed[3] = { g->start, g->stride, g->count };
	const void *data = g->listed ? (const void *)g->ranks : fixed;

	return libacp_hash(LIBACP_HASH_KEY, data,
			   g->listed ? (size_t)g->count * sizeof(int) : sizeof(fixed));
}
