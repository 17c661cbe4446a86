/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Additional queues of a rank (ACP_IOC_ATTACH): each is an open file with its own rings, commands
 * and waiters.  Regions, events, barriers and membership belong to the rank.
 *
 * The upper bits of a ticket are the number of its queue.  A number is used once in the lifetime of
 * a rank, so late answers find no queue.  Other nodes need not know about queues, because rank and
 * ticket identify a command.
 *
 * Lifetime: see queue.h.  When the rank leaves, its additional queues are closed: commands in
 * flight end, and no more are taken.  Their files stay open, but calls on them fail.
 */
#ifndef ACP_ATTACH_H
#define ACP_ATTACH_H

#include "../job/rank.h"

/**
 * acp_attach_init() - initialize a new rank and its own queue
 * @rank: zeroed
 * @job: the job; the rank gets a reference of its own
 * @number: number of the rank
 *
 * Sets everything but the rings, the regions and what is charged to the user.
 *
 * Context: process context of the process that joins.
 */
void acp_attach_init(struct acp_rank *rank, struct acp_job *job, u32 number);

/**
 * acp_attach() - make an additional queue
 * @rank: its rank, whose file the caller holds
 * @a: depth is read; queue, first, sq_bytes and cq_bytes are filled in
 *
 * The reference returned belongs to the file; acp_attach_leave() drops it.
 *
 * Context: process context, may sleep; takes rank->queues_lock.
 * Return: the queue; ERR_PTR(-EINVAL) if the depth is not valid, ERR_PTR(-ENOSPC) if the rank has
 * too many queues or had too many, ERR_PTR(-ENOMEM), or ERR_PTR(acp_over()) of the limit reached.
 */
struct acp_queue *acp_attach(struct acp_rank *rank, struct acp_attach *a);

/**
 * acp_attach_leave() - close an additional queue whose file is closed
 * @queue: the queue; the caller's reference is dropped
 *
 * Context: process context, sleeps; takes rank->queues_lock.
 */
void acp_attach_leave(struct acp_queue *queue);

/**
 * acp_attach_end() - close all additional queues of a rank that leaves
 * @rank: the rank; its own queue is marked as closed
 *
 * Context: process context, sleeps; takes rank->queues_lock.
 */
void acp_attach_end(struct acp_rank *rank);

#endif /* ACP_ATTACH_H */
