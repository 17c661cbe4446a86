/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The barrier of a job.  The nodes form a tree.  Each node waits for its ranks and for its
 * children, then reports to its parent; the root's release goes back down.  Waiting ranks are woken
 * once, at the end.  Each node needs a few counters.
 *
 * While a message of a neighbour is awaited, the flow to that neighbour expects an answer, so the
 * loss of the neighbour is detected.
 */
#ifndef ACP_BARRIER_H
#define ACP_BARRIER_H

#include "../job/rank.h"
#include "../job/job.h"

/**
 * acp_barrier_neighbour() - is a node the parent or a child of this one in the tree?
 * @job: the job
 * @node: number of the node, less than @job->nodes
 *
 * Context: any.
 * Return: true if this node exchanges barrier messages with @node.
 */
static inline bool acp_barrier_neighbour(const struct acp_job *job, u32 node)
{
	return (node && (node - 1) / ACP_BARRIER_ARITY == job->me) ||
	       (job->me && (job->me - 1) / ACP_BARRIER_ARITY == node);
}

/**
 * acp_barrier_wait() - wait until all ranks of the job have arrived at the barrier
 * @rank: the caller's rank
 * @final: the rank leaves the job after this barrier
 * @timeout_ns: ns to wait; larger values are treated as KTIME_MAX
 *
 * The rank has arrived even if the call times out or is interrupted; the next call waits for the
 * same barrier.  When a final barrier succeeds, the rank counts as finished.
 *
 * Context: process context, may sleep.
 * Return: 0; -EBUSY if another thread of the rank waits; -ETIMEDOUT; -EINTR; -ECANCELED if the job
 * was aborted; -EPIPE if a rank left or a node is lost; -EPROTO if a node is mismatched.
 */
int acp_barrier_wait(struct acp_rank *rank, bool final, u64 timeout_ns);

/* A BARRIER message arrived.  Softirq. */
void acp_barrier_arrived(struct acp_job *job, const struct acp_msg *m);

/**
 * acp_barrier_leave() - a rank leaves
 * @rank: the rank
 *
 * Unless the rank has passed a final barrier, the barrier is broken, and all nodes receive the
 * number of the rank.
 *
 * Context: process context or softirq.
 */
void acp_barrier_leave(struct acp_rank *rank);

/* A node is lost or mismatched (job->mismatched), or a rank left: no barrier completes any more. */
void acp_barrier_break(struct acp_job *job);

/**
 * acp_barrier_tend() - send what could not be sent for lack of memory
 * @job: the job
 *
 * Called periodically.  Repeats the messages that neighbours must get: that the barrier is broken,
 * and that the job was aborted.
 *
 * Context: process context.  The caller holds node->lock.
 */
void acp_barrier_tend(struct acp_job *job);

/**
 * acp_barrier_abort() - abort a job
 * @job: the job
 * @tell: abort it on all other nodes, too; otherwise on this node only
 *
 * All calls that wait return, and the rings get ACP_CQ_ABORTED.  Only the first call has an
 * effect.
 *
 * Context: process context or softirq.
 */
void acp_barrier_abort(struct acp_job *job, bool tell);

#endif /* ACP_BARRIER_H */
