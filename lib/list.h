/* SPDX-License-Identifier: MIT */
/*
 * Lists: what the files of the family share.
 *
 *	list.c		single elements, iterators
 *	list_range.c	ranges and whole lists: copies, splicing, swapping
 *	list_sort.c	other orders: sort, merge, reverse, remove, unique
 *
 * Words in global memory, as in ACP 3.0.0:
 *	list	GA of the first element, GA of the last, number
 *	element	GA of the next, GA of the previous, size; then the bytes
 * The list is the neighbour of both ends, so that its first two words are
 * those of an element: what links elements need not know about ends.
 */
#ifndef LIBACP_LIST_H
#define LIBACP_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acp.h"
#include "round.h"

#pragma GCC visibility push(hidden)

/* Where words are, in bytes. */
enum {
	LIBACP_LIST_NEXT = 0,		/* of a list: the first */
	LIBACP_LIST_PREV = 8,		/* of a list: the last */
	LIBACP_LIST_SIZE = 16,		/* of a list: the number */
	LIBACP_LIST_DATA = 24
};

#define LIBACP_LIST_WORDS	3u

/* A list (size: number) or an element as it was read. */
struct libacp_node {
	acp_ga_t ga, next, prev;
	uint64_t size;
};

/* Elements in a row. */
struct libacp_nodes {
	struct libacp_node *at;		/* malloc'ed */
	size_t count, room;
};

/* errno, if that is an error: false. */
bool libacp_list_good(int err);

/* The bytes of an element. */
acp_element_t libacp_list_data(const struct libacp_node *node);

/*
 * Read those at nodes[].ga, at most 4, which may be the same ones; the
 * first "lists" are lists, and an error if they are damaged.  0 or -errno.
 */
int libacp_list_load(struct libacp_round *r, struct libacp_node *nodes, unsigned int count,
		     unsigned int lists);

/*
 * Read the elements [start, end) of a list, of which end may be the list; it
 * is an error if end does not come.  The nodes are to be freed in any case.
 */
int libacp_list_walk(struct libacp_round *r, const struct libacp_node *list, acp_ga_t start,
		     acp_ga_t end, struct libacp_nodes *nodes);
int libacp_list_add(struct libacp_nodes *nodes, struct libacp_node node);
void libacp_list_drop(struct libacp_nodes *nodes);

/* A new element on a rank, its words not yet written.  0 or -errno. */
int libacp_list_allocate(uint64_t size, int rank, acp_ga_t *ga);

/* Free elements that no list knows any more.  0, or the first -errno; lost ranks' stay. */
int libacp_list_free(const struct libacp_nodes *nodes);

#pragma GCC visibility pop

#endif /* LIBACP_LIST_H */
