/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Execution of a command on the node of its source, and of its flag on that of its destination.  BH
 * off, as for all of these.
 */
#ifndef ACP_EXECUTE_H
#define ACP_EXECUTE_H

#include "../mem/region.h"
#include "station.h"

/*
 * The region of 8 bytes at ga, kept in *kept (NULL: none yet) for the next word, because
 * consecutive words are mostly in one region.  Returns NULL with *status set, as acp_region_get().
 */
static __always_inline struct acp_region *acp_region_of_word(struct acp_job *job, u64 ga, u32 rank,
							     u32 need, struct acp_region **kept,
							     u8 *status)
{
	u64 offset = acp_ga_offset(&job->ga, ga);

	if (*kept && ga - offset == (*kept)->key) {
		*status = acp_region_check(*kept, offset, sizeof(u64),
					   acp_ga_rank(&job->ga, ga) == rank, need);
		return *status ? NULL : *kept;
	}
	if (*kept)
		acp_region_put(*kept);
	*status = ACP_ST_OK;
	*kept = acp_region_cached(job, ga, sizeof(u64), rank, need) ?:
		acp_region_get_bh(job, ga, sizeof(u64), rank, need, status);
	return *kept;
}

/* Execute a command that is not long and has both ends here. */
u8 acp_execute_local(struct acp_job *job, const struct acp_msg *m);

/* Turn a command whose source is here into the DATA that goes to its destination. */
u8 acp_execute_data(struct acp_job *job, struct acp_out *out, struct acp_batch *batch);

u8 acp_execute_change_flag(struct acp_job *job, const struct acp_msg *m);

/* All bytes of a copy are in memory: change its flag, if it has one. */
static inline u8 acp_execute_flag(struct acp_job *job, const struct acp_msg *m)
{
	if (likely(m->op < ACP_OP_COPY_SET) || !acp_op_signals(m->op))
		return ACP_ST_OK;
	return acp_execute_change_flag(job, m);
}

/* A copy with both ends here has ended: change its flag or the state of its record. */
u8 acp_execute_end(struct acp_job *job, const struct acp_msg *m, u8 status);

#endif /* ACP_EXECUTE_H */
