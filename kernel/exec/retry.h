/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Commands that found a buffer full and are started again (ACP_SQE_RETRY): the queue parks them
 * (queue.c), its timer expires, and the drainer starts those whose time has come (drain.c).
 */
#ifndef ACP_RETRY_H
#define ACP_RETRY_H

struct acp_queue;

/**
 * acp_retry_prepare() - prepare the timer of a new queue
 * @queue: the queue
 *
 * Context: process context.
 */
void acp_retry_prepare(struct acp_queue *queue);

#endif /* ACP_RETRY_H */
