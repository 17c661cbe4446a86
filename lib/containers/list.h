/* SPDX-License-Identifier: MIT */
/*
 * Declarations shared by the files of lists.
 *
 *	list.c		single elements, iterators
 *	list_range.c	ranges and whole lists: copies, splicing, swapping
 *	list_sort.c	reordering: sort, merge, reverse, remove, unique
 *
 * Words in global memory, as in ACP 3.0.0:
 *	list	GA of the first element, GA of the last, number
 *	element	GA of the next, GA of the previous, size; then the bytes
 * The list is the neighbour of both ends and its first two words are like those of an element, so
 * that linking elements needs no special case for the ends.
 */
#ifndef LIBACP_LIST_H
#define LIBACP_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acp.h"
#include "containers/batch.h"

#pragma GCC visibility push(hidden)

/* Offsets of words in bytes. */
enum {
	LIBACP_LIST_NEXT = 0,		/* of a list: first element */
	LIBACP_LIST_PREV = 8,		/* of a list: last element */
	LIBACP_LIST_SIZE = 16,		/* of a list: number of elements */
	LIBACP_LIST_DATA = 24
};

#define LIBACP_LIST_WORDS	3u

/* A list (size: number of elements) or an element, as it was read. */
struct libacp_node {
	acp_ga_t ga, next, prev;
	uint64_t size;
};

/* A sequence of elements. */
struct libacp_nodes {
	struct libacp_node *at;		/* allocated by malloc() */
	size_t count, room;
};

/* Set errno if @err is an error. Returns true if it is none. */
bool libacp_list_good(int err);

/* Return the bytes of an element. */
acp_element_t libacp_list_data(const struct libacp_node *node);

/*
 * Read the nodes at nodes[].ga, at most 4; duplicates are allowed. The first @lists nodes are
 * lists, which are checked for consistency. Returns 0 or -errno.
 */
int libacp_list_load(struct libacp_round *r, struct libacp_node *nodes, unsigned int count,
		     unsigned int lists);

/*
 * Read the elements [start, end) of a list; @end may be the list. It is an error if @end is not
 * reached. The caller frees the nodes in any case. Returns 0 or -errno.
 */
int libacp_list_walk(struct libacp_round *r, const struct libacp_node *list, acp_ga_t start,
		     acp_ga_t end, struct libacp_nodes *nodes);

/* Append a node. Returns 0 or -ENOMEM. */
int libacp_list_add(struct libacp_nodes *nodes, struct libacp_node node);

/* Free the array of nodes, not the elements. */
void libacp_list_drop(struct libacp_nodes *nodes);

/* Allocate an element on a rank, without initializing its words. Returns 0 or -errno. */
int libacp_list_allocate(uint64_t size, int rank, acp_ga_t *ga);

/*
 * Free elements that are in no list. Returns 0 or the first -errno; those of lost ranks are
 * skipped.
 */
int libacp_list_free(const struct libacp_nodes *nodes);

#pragma GCC visibility pop

#endif /* LIBACP_LIST_H */
