/* SPDX-License-Identifier: MIT */
/*
 * Groups of ranks. A group does not change until it is freed, so any number of threads may use it.
 *
 *	group.c		groups of a process, without communication
 *	exchange.c	the members tell each other some words
 *	split.c		splitting: these words are colors and keys
 */
#ifndef LIBACP_GROUP_H
#define LIBACP_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "acp.h"

#pragma GCC visibility push(hidden)

/* Member i is start + i * stride if ranks are not listed, otherwise ranks[i]. */
struct acpx_group {
	int users;			/* references, atomic */
	int start, stride, count;
	bool listed;
	bool ascending;			/* the ranks that are listed */
	int ranks[];
};

/**
 * libacp_group_at() - return a member
 * @group: the group
 * @i: its number in the group, less than the number of members
 *
 * Context: any thread; does not block.
 * Return: its rank.
 */
static inline int libacp_group_at(const struct acpx_group *group, int i)
{
	return group->listed ? group->ranks[i] : group->start + i * group->stride;
}

/**
 * libacp_group_hold() - take a reference, which acpx_group_free() returns
 * @group: the group
 *
 * Context: any thread; does not block.
 * Return: @group.
 */
static inline acpx_group_t libacp_group_hold(acpx_group_t group)
{
	__atomic_add_fetch(&group->users, 1, __ATOMIC_RELAXED);
	return group;
}

/**
 * libacp_group_id() - compute what tells groups apart
 * @group: the group
 *
 * Context: any thread; does not block.
 * Return: a number that depends on the members and on their order only.
 */
uint64_t libacp_group_id(const struct acpx_group *group);

#pragma GCC visibility pop

#endif /* LIBACP_GROUP_H */
