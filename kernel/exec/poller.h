/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The poller: a thread of a node that polls the rings while there is traffic, so that submitting
 * needs no system call, and sleeps otherwise.  Frequent doorbells wake it.  It is never woken on a
 * machine with one CPU, where a doorbell is faster.
 */
#ifndef ACP_POLLER_H
#define ACP_POLLER_H

#include "../job/node.h"

/**
 * acp_poller_init() - prepare the poller of a new node
 * @node: the node
 *
 * Context: process context.
 */
void acp_poller_init(struct acp_node *node);

/**
 * acp_poller_exit() - stop the thread, if there is one
 * @node: the node; it has no queues any more
 *
 * Context: process context, sleeps.
 */
void acp_poller_exit(struct acp_node *node);

/**
 * acp_poller_start() - start the thread, unless the node has it
 * @node: the node
 *
 * Context: process context, may sleep.  The caller holds node->lock.
 * Return: 0 or -errno of kthread_run().
 */
int acp_poller_start(struct acp_node *node);

/**
 * acp_poller_add() - add a queue to the lists of its node and job
 * @node: the node
 * @queue: the queue; for a rank's own queue, the rank is added to the list of its job, too
 *
 * From now on its ring is polled.
 *
 * Context: process context or softirq; takes node->poll_lock.
 */
void acp_poller_add(struct acp_node *node, struct acp_queue *queue);

/**
 * acp_poller_remove() - remove a queue from all lists and stop its timer
 * @node: the node
 * @queue: the queue
 *
 * Combines acp_poller_unlink(), acp_poller_gone() and, a grace period later, acp_poller_stop():
 * the ring is not polled afterwards.
 *
 * Context: process context, sleeps.
 */
void acp_poller_remove(struct acp_node *node, struct acp_queue *queue);

/**
 * acp_poller_prepare() - prepare the timers of a new queue
 * @queue: the queue
 *
 * Before any other function of this file is called for the queue.
 *
 * Context: process context.
 */
void acp_poller_prepare(struct acp_queue *queue);

/**
 * acp_poller_prepare_rank() - prepare the tasklet of a new rank that looks at awaited words
 * @rank: the rank
 *
 * Context: process context.
 */
void acp_poller_prepare_rank(struct acp_rank *rank);

/**
 * acp_poller_stop_rank() - stop the tasklet of a rank
 * @rank: the rank, whose regions have been removed: nothing schedules the tasklet any more
 *
 * Context: process context, may sleep.
 */
void acp_poller_stop_rank(struct acp_rank *rank);

/**
 * acp_poller_unlink() - mark a queue as closed and remove it from the list of the poller
 * @node: the node
 * @queue: the queue
 *
 * RCU readers that have found the queue before may still poll its ring.
 *
 * Context: process context or softirq; takes node->poll_lock.
 */
void acp_poller_unlink(struct acp_node *node, struct acp_queue *queue);

/**
 * acp_poller_gone() - remove a queue from the list of its job and add its counters to its rank's
 * @node: the node
 * @queue: the queue, after acp_poller_unlink(); its counters do not change any more
 *
 * For a rank's own queue, the rank is removed and its counters are added to its job's.  Under
 * node->poll_lock each command is counted once, either in the queue or in these sums.
 *
 * Context: process context or softirq; takes node->poll_lock.
 */
void acp_poller_gone(struct acp_node *node, struct acp_queue *queue);

/**
 * acp_poller_stop() - stop the timers of a queue
 * @queue: the queue
 *
 * Doorbells and RCU readers that have found the queue before may start them again.
 *
 * Context: process context; waits for the timer's callback.
 */
void acp_poller_stop(struct acp_queue *queue);

/**
 * acp_poller_bell() - count a doorbell
 * @queue: its queue
 *
 * If doorbells are frequent, wakes the poller, or with one CPU starts doorbell moderation.
 *
 * Context: process context, bottom halves on.
 */
void acp_poller_bell(struct acp_queue *queue);

#endif /* ACP_POLLER_H */
