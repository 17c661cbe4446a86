/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A rank's registered user memory by address: does an existing region cover a new registration?
 *
 * The regions form a tree, sorted by class (color and access together) and start address.  Each
 * node stores which region of its subtree reaches farthest, by class and end.  One walk from the
 * root to a leaf therefore finds a region that covers an interval, or finds that there is none,
 * regardless of how many regions there are and how they overlap.
 *
 * The caller holds the rank's reg_lock.
 */
#ifndef ACP_COVER_H
#define ACP_COVER_H

#include <linux/rbtree.h>
#include <linux/types.h>

/* Embedded in a region.  Set class, first and end before adding it. */
struct acp_cover {
	struct rb_node node;	/* cleared: not in a tree */
	struct acp_cover *farthest;	/* of its subtree */
	u64 class;
	u64 first, end;		/* user addresses [first, end) */
};

static inline u64 acp_cover_class(u32 color, u32 access)
{
	return (u64)color << 32 | access;
}

static inline void acp_cover_init(struct acp_cover *c)
{
	RB_CLEAR_NODE(&c->node);
}

void acp_cover_add(struct rb_root *root, struct acp_cover *c);

/* Does nothing if c is not in the tree. */
void acp_cover_remove(struct rb_root *root, struct acp_cover *c);

/* A region of the class that covers [first, end), or NULL; adds the visited nodes to *steps. */
struct acp_cover *acp_cover_find(const struct rb_root *root, u64 class, u64 first, u64 end,
				 u32 *steps);

#endif /* ACP_COVER_H */
