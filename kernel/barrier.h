/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The barrier of a job: each node waits for its ranks and for the nodes below
 * it in a tree, then tells the node above; the root's release comes back
 * down.  Nobody is woken until the end.  Memory: a few counters a node.
 * Who waits for a neighbour's message asks its node whether it lives.
 */
#ifndef ACP_BARRIER_H
#define ACP_BARRIER_H

#include "context.h"
#include "job.h"

/* Is a node next to this one in the tree? */
static inline bool acp_barrier_neighbour(const struct acp_job *job, u32 node)
{
	return (node && (node - 1) / ACP_BARRIER_ARITY == job->me) ||
	       (job->me && (job->me - 1) / ACP_BARRIER_ARITY == node);
}

/* Wait for all ranks of the job; errors as of ACP_IOC_SYNC. */
int acp_barrier_wait(struct acp_context *ctx, bool final, u64 timeout_ns);

/* A BARRIER message came.  Softirq. */
void acp_barrier_arrived(struct acp_job *job, const struct acp_msg *m);

/* A rank left: unless it passed a final barrier, none will complete any more. */
void acp_barrier_leave(struct acp_context *ctx);

/* A node is lost, or a stranger (job->stranger): none will complete any more. */
void acp_barrier_break(struct acp_job *job);

/* Now and then: tell neighbours what could not be told for want of memory. */
void acp_barrier_tend(struct acp_job *job);

/* The job ends here, and (tell) on all nodes. */
void acp_barrier_abort(struct acp_job *job, bool tell);

#endif /* ACP_BARRIER_H */
