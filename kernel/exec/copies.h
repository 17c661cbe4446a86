/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Long copies within a node.  They are done in steps, in preemptible context.
 *
 * A copy that a rank of this node submits waits in the list of its queue.  A system call on that
 * queue does it in the time of its caller, which saves a wake-up and a context switch, but no more
 * than ACP_COPY_OWN bytes per call.  The workqueue does the rest: copies that no system call comes
 * for, bytes beyond that limit, and copies that other nodes ask for.
 *
 * A region is held for one step only, so unregistering it waits for one step at most.
 */
#ifndef ACP_COPIES_H
#define ACP_COPIES_H

#include "../job/rank.h"
#include "../job/job.h"

#define ACP_COPY_OWN	1048576		/* bytes per system call */

/* Copy size bytes from offset on.  Returns ACP_ST_OK, or why these bytes must not be copied. */
u8 acp_copies_now(struct acp_job *job, const struct acp_msg *m, u64 offset, u64 size);

/**
 * acp_copies_start() - begin a long copy within this node
 * @job: the job
 * @m: the command; copied
 * @queue: the queue of the command; NULL: another node asked for the copy
 * @done: item for the message that reports the end; only if @queue is NULL
 * @peer: the node to report to; only if @queue is NULL
 *
 * The copy holds a reference to @job, and one to @queue, until it ends.  acp_station_copied() is
 * called at its end.
 *
 * Context: bottom halves off.
 * Return: true on success; false without memory, and @done still belongs to the caller.
 */
bool acp_copies_start(struct acp_job *job, const struct acp_msg *m, struct acp_queue *queue,
		      struct acp_item *done, struct acp_peer *peer);

/**
 * acp_copies_enter() - announce that the caller will do copies of a queue
 * @queue: the queue
 *
 * Until acp_copies_leave(), copies that start are left to acp_copies_help() and not given to the
 * workqueue.
 *
 * Context: process context.
 */
static inline void acp_copies_enter(struct acp_queue *queue)
{
	atomic_inc(&queue->helpers);
}

void acp_copies_take(struct acp_queue *queue, u64 *room);
void acp_copies_give(struct acp_queue *queue);

/**
 * acp_copies_help() - do copies of a queue
 * @queue: the queue; between acp_copies_enter() and acp_copies_leave()
 * @room: bytes that the caller still may copy; the bytes done are subtracted
 *
 * Ends early if a signal is pending.
 *
 * Context: process context, may sleep.
 */
static inline void acp_copies_help(struct acp_queue *queue, u64 *room)
{
	if (!list_empty(&queue->copies))
		acp_copies_take(queue, room);
}

/**
 * acp_copies_leave() - give the copies that are left to the workqueue
 * @queue: the queue of acp_copies_enter()
 *
 * Context: process context.
 */
static inline void acp_copies_leave(struct acp_queue *queue)
{
	/*
	 * Fully ordered: copies that were left to us are seen here, later ones see that we have
	 * gone.  Pairs with smp_mb() in wait_in_list().
	 */
	atomic_dec_return(&queue->helpers);
	if (!list_empty(&queue->copies))
		acp_copies_give(queue);
}

/**
 * acp_copies_flush() - wait until all long copies of a job have ended
 * @job: the job; dead, so no copies begin any more
 *
 * Context: process context, sleeps.  The caller holds node->lock.
 */
void acp_copies_flush(struct acp_job *job);

int acp_copies_init(void);
void acp_copies_exit(void);

#endif /* ACP_COPIES_H */
