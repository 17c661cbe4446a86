// SPDX-License-Identifier: GPL-2.0-only
/* Chains of descriptors: see chain.h. */
#include "chain.h"

void acp_chain_begin(struct acp_chain *c, struct acp_chain_walk *w,
		     const struct acp_ga_layout *l, u64 first, u64 size)
{
	c->count = 0;
	c->rank = acp_ga_rank(l, first);
	c->size = size;
	w->at = first;
	w->left = size;
}

/* Is it an address of the owner's memory? */
static bool is_own(const struct acp_chain *c, const struct acp_ga_layout *l, u64 ga)
{
	return acp_ga_valid(l, ga) && acp_ga_rank(l, ga) == c->rank;
}

u8 acp_chain_visit(struct acp_chain *c, struct acp_chain_walk *w, const struct acp_ga_layout *l)
{
	u32 i;

	if (!w->at || c->count == ACP_CHAIN_MAX)
		return ACP_ST_CHAIN;
	if (!is_own(c, l, w->at))
		return ACP_ST_GA;
	if (w->at & 7)
		return ACP_ST_ALIGN;
	for (i = 0; i < c->count; i++)
		if (w->seen[i] == w->at)
			return ACP_ST_CHAIN;
	w->seen[c->count] = w->at;
	return ACP_ST_OK;
}

/* Is it well formed, whatever its addresses are? */
static bool is_well_formed(const struct acp_descriptor *d)
{
	if (!d->block || !d->count || (d->flags & ~ACP_CHAIN_FLAGS) || d->reserved)
		return false;
	return d->count == 1 || acp_strided_apart(d->stride, ACP_BLOCKS(d->block, d->count));
}

u8 acp_chain_add(struct acp_chain *c, struct acp_chain_walk *w, const struct acp_ga_layout *l,
		 const struct acp_descriptor *d, u32 use)
{
	u64 desc = ACP_BLOCKS(d->block, d->count), stride = d->stride, first, size;

	if (!is_well_formed(d))
		return ACP_ST_CHAIN;
	if (!(d->flags & use))
		return ACP_ST_ACCESS;
	if (!is_own(c, l, d->address))
		return ACP_ST_GA;
	if (!acp_strided_span(l, d->address, stride, desc, &first, &size))
		return ACP_ST_RANGE;
	c->e[c->count++] = (struct acp_chain_part){ d->address, stride, desc };
	w->left -= min_t(u64, w->left, acp_strided_size(desc));
	w->at = d->next;
	return ACP_ST_OK;
}
