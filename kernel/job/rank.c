// SPDX-License-Identifier: GPL-2.0-only
/* Ranks: see rank.h. */
#include <linux/pid.h>
#include <linux/slab.h>
#include "node.h"

void acp_rank_end(struct acp_rank *rank)
{
	acp_user_put(rank->user);
}

void acp_rank_free(struct acp_rank *rank)
{
	acp_job_put(rank->job);
	put_pid(rank->pid);
	kfree(rank);
}

void acp_rank_changed(const struct acp_rank *rank)
{
	acp_changed(rank->job->node);
}
