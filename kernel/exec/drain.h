/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Draining: entries of a ring become commands, and commands start as soon as their order allows.
 *
 * Doorbells, the poller, softirqs and workers drain, one at a time for each queue and without a
 * lock: queue->drain counts the requests.  The caller that raises it from 0 drains until all
 * requests are served; other callers return at once.
 */
#ifndef ACP_DRAIN_H
#define ACP_DRAIN_H

#include "../job/rank.h"

/**
 * acp_drain() - take entries of a queue and start commands
 * @queue: the queue
 * @budget: what may be done; reduced by what was done
 *
 * Context: bottom halves off.
 * Return: true if the budget was used up and entries or commands are left, for which the caller
 * calls again with a new budget or wakes the worker; false also if another CPU drains the queue.
 */
bool acp_drain(struct acp_queue *queue, struct acp_budget *budget);

#endif /* ACP_DRAIN_H */
