/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Chains of descriptors: ACP_OP_SCATTER and ACP_OP_GATHER of acp_cmd.h.
 *
 * The owner of a chain can change it at any time. So each descriptor is read once, checked, and
 * kept in a form of its own, which alone is used afterwards:
 *
 *	acp_chain_begin();
 *	do {
 *		status = acp_chain_visit();	may the descriptor at &acp_chain_walk.at be read?
 *		read it
 *		status = acp_chain_add();
 *	} while (walk.left);
 *
 * with an end as soon as a status is not ACP_ST_OK.
 */
#ifndef ACP_CHAIN_H
#define ACP_CHAIN_H

#include "strided_desc.h"

/* A descriptor that was read, as one end of a strided copy. */
struct acp_chain_part {
	u64 ga;			/* global address of block 0 */
	u64 stride;
	u64 desc;		/* as in ACP_BLOCKS */
};

/* The descriptors of one copy. */
struct acp_chain {
	u32 count;
	u32 rank;		/* the owner of descriptors and blocks */
	u64 size;		/* bytes of the copy; the parts have as many, or more */
	struct acp_chain_part e[ACP_CHAIN_MAX];
};

/* A chain that is being read. */
struct acp_chain_walk {
	u64 at;			/* global address of the next descriptor */
	u64 left;		/* bytes of the copy that no descriptor has yet */
	u64 seen[ACP_CHAIN_MAX];	/* where the former ones were */
};

/**
 * acp_chain_begin() - initialize a chain of which nothing has been read
 * @c: chain to fill
 * @w: its walk
 * @l: layout of global addresses of the job
 * @first: valid global address of its first descriptor
 * @size: bytes of the copy, not 0
 *
 * Context: Any context.
 */
void acp_chain_begin(struct acp_chain *c, struct acp_chain_walk *w,
		     const struct acp_ga_layout *l, u64 first, u64 size);

/**
 * acp_chain_visit() - check the address of the next descriptor
 * @c: chain
 * @w: its walk; left is not 0
 * @l: layout of global addresses of the job
 *
 * Context: Any context.
 * Return: ACP_ST_OK: read it; ACP_ST_CHAIN, ACP_ST_GA, ACP_ST_ALIGN.
 */
u8 acp_chain_visit(struct acp_chain *c, struct acp_chain_walk *w, const struct acp_ga_layout *l);

/**
 * acp_chain_add() - check a descriptor and add it to its chain
 * @c: chain
 * @w: its walk
 * @l: layout of global addresses of the job
 * @d: copy of the descriptor
 * @use: ACP_CHAIN_SCATTER or ACP_CHAIN_GATHER
 *
 * The region of the blocks is left to the caller.
 *
 * Context: Any context.
 * Return: ACP_ST_OK, ACP_ST_CHAIN, ACP_ST_ACCESS, ACP_ST_GA or ACP_ST_RANGE.
 */
u8 acp_chain_add(struct acp_chain *c, struct acp_chain_walk *w, const struct acp_ga_layout *l,
		 const struct acp_descriptor *d, u32 use);

/**
 * acp_chain_find() - find the part that has a byte of the copy
 * @c: complete chain
 * @position: byte of the copy; set to the byte of the part
 *
 * Context: Any context.
 * Return: The part; the bytes of those after it follow.
 */
static inline const struct acp_chain_part *acp_chain_find(const struct acp_chain *c, u64 *position)
{
	const struct acp_chain_part *p = c->e;
	u64 size;

	for (; p < c->e + c->count - 1; p++) {
		size = acp_strided_size(p->desc);
		if (*position < size)
			break;
		*position -= size;
	}
	return p;
}

#endif /* ACP_CHAIN_H */
