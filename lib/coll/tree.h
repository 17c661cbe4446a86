/* SPDX-License-Identifier: MIT */
/*
 * Trees of the members of a group, by their numbers: the children of member i, counted from the
 * root, are radix * i + 1 to radix * i + radix. With radix 1 it is a chain.
 */
#ifndef LIBACP_TREE_H
#define LIBACP_TREE_H

#define LIBACP_RADIX_MAX	4

struct libacp_tree {
	int size;		/* number of members, from 1 */
	int root;		/* its number */
	int radix;		/* 1 to LIBACP_RADIX_MAX */
};

/* Return the number of a member counted from the root, and the reverse. */
static inline int libacp_tree_place(const struct libacp_tree *t, int number)
{
	return number >= t->root ? number - t->root : number - t->root + t->size;
}

static inline int libacp_tree_number(const struct libacp_tree *t, int place)
{
	return place < t->size - t->root ? place + t->root : place + t->root - t->size;
}

/* Return the number of the parent of a member; -1: it is the root. */
static inline int libacp_tree_parent(const struct libacp_tree *t, int number)
{
	const int place = libacp_tree_place(t, number);

	return place ? libacp_tree_number(t, (place - 1) / t->radix) : -1;
}

/* Return which child of its parent a member is, from 0; not for the root. */
static inline int libacp_tree_index(const struct libacp_tree *t, int number)
{
	return (libacp_tree_place(t, number) - 1) % t->radix;
}

/* Return the number of child i of a member, or -1. Of child i + 1 on there are none, either. */
static inline int libacp_tree_child(const struct libacp_tree *t, int number, int i)
{
	const long place = (long)libacp_tree_place(t, number) * t->radix + 1 + i;

	return i < t->radix && place < t->size ? libacp_tree_number(t, (int)place) : -1;
}

#endif /* LIBACP_TREE_H */
