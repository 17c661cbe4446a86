/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Combination of the numbers of two regions of this node, or of a region with those that a frame
 * brings: ACP_OP_REDUCE, ACP_OP_ACCUMULATE.
 */
#ifndef ACP_EXEC_REDUCE_H
#define ACP_EXEC_REDUCE_H

#include "../mem/region.h"

/**
 * acp_reduce_local() - combine a part of the numbers of a command, or check all of it
 * @job: the job
 * @m: the command, whose source and destination are on this node
 * @offset: where the part begins, a multiple of the size of the numbers
 * @size: bytes, likewise; 0: only check whether the memory of all numbers may be accessed
 *
 * Context: any.
 * Return: ACP_ST_OK, or why nothing was changed.
 */
u8 acp_reduce_local(struct acp_job *job, const struct acp_msg *m, u64 offset, u64 size);

#endif /* ACP_EXEC_REDUCE_H */
