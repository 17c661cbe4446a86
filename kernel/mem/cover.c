// SPDX-License-Identifier: GPL-2.0-only
/* Registered memory by address: see cover.h. */
#include <linux/rbtree_augmented.h>
#include "cover.h"

static struct acp_cover *cover_of(struct rb_node *node)
{
	return rb_entry_safe(node, struct acp_cover, node);
}

/* Does "a" reach as far as (class, end)? */
static bool reaches(const struct acp_cover *a, u64 class, u64 end)
{
	return a->class > class || (a->class == class && a->end >= end);
}

/* Does "a" begin at or before (class, first)? */
static bool begins(const struct acp_cover *a, u64 class, u64 first)
{
	return a->class < class || (a->class == class && a->first <= first);
}

/*
 * The one of the two that reaches farther.  Ties are broken by address, so the order is total: the
 * farthest region of a subtree is also the farthest of each smaller subtree that contains it.
 * Therefore no node keeps a pointer to a region that was removed.
 */
static struct acp_cover *farther(struct acp_cover *a, struct acp_cover *b)
{
	if (a->class != b->class)
		return a->class > b->class ? a : b;
	if (a->end != b->end)
		return a->end > b->end ? a : b;
	return a > b ? a : b;
}

static struct acp_cover *farther_below(struct acp_cover *a, struct rb_node *child)
{
	return child ? farther(a, cover_of(child)->farthest) : a;
}

/* Recompute a node from its children.  True: unchanged, so its ancestors need no update. */
static bool update(struct acp_cover *c, bool stop)
{
	struct acp_cover *farthest = farther_below(c, c->node.rb_left);

	farthest = farther_below(farthest, c->node.rb_right);
	if (stop && c->farthest == farthest)
		return true;
	c->farthest = farthest;
	return false;
}

RB_DECLARE_CALLBACKS(static, callbacks, struct acp_cover, node, farthest, update)

void acp_cover_add(struct rb_root *root, struct acp_cover *c)
{
	struct rb_node **at = &root->rb_node, *above = NULL;

	while (*at) {
		struct acp_cover *other = cover_of(*at);

		above = *at;
		other->farthest = farther(other->farthest, c);
		at = begins(other, c->class, c->first) ? &above->rb_right : &above->rb_left;
	}
	c->farthest = c;
	rb_link_node(&c->node, above, at);
	rb_insert_augmented(&c->node, root, &callbacks);
}

void acp_cover_remove(struct rb_root *root, struct acp_cover *c)
{
	if (RB_EMPTY_NODE(&c->node))
		return;
	rb_erase_augmented(&c->node, root, &callbacks);
	RB_CLEAR_NODE(&c->node);
}

/*
 * If c begins at or before (class, first), all regions in its left subtree do, too.  One of them
 * that reaches (class, end) is of this class: regions of lower classes do not reach so far, and
 * regions of higher classes begin later.
 */
struct acp_cover *acp_cover_find(const struct rb_root *root, u64 class, u64 first, u64 end,
				 u32 *steps)
{
	struct acp_cover *c = cover_of(root->rb_node);

	while (c) {
		struct acp_cover *left = cover_of(c->node.rb_left);

		++*steps;
		if (!reaches(c->farthest, class, end))
			return NULL;
		if (!begins(c, class, first)) {
			c = left;
			continue;
		}
		if (reaches(c, class, end))
			return c;
		if (left && reaches(left->farthest, class, end))
			return left->farthest;
		c = cover_of(c->node.rb_right);
	}
	return NULL;
}
