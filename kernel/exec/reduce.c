// SPDX-License-Identifier: GPL-2.0-only
/* Combination of the numbers of two regions of this node: see reduce.h. */
#include "reduce.h"

u8 acp_reduce_local(struct acp_job *job, const struct acp_msg *m, u64 offset, u64 size)
{
	bool atomic = acp_op_accumulates(m->op);
	u64 range = size ?: m->size;
	struct acp_region *src, *dst;
	u8 status;

	src = acp_region_get(job, m->src + offset, range, m->origin, ACP_ACCESS_READ, &status);
	if (!src)
		return status;
	dst = acp_region_get(job, m->dst + offset, range, m->origin,
			     atomic ? ACP_ACCESS_ATOMIC : ACP_ACCESS_WRITE, &status);
	if (dst) {
		acp_region_reduce(dst, acp_ga_offset(&job->ga, m->dst + offset), src,
				  acp_ga_offset(&job->ga, m->src + offset), size,
				  atomic ? m->a : m->c, atomic);
		acp_region_put(dst);
	}
	acp_region_put(src);
	return status;
}
