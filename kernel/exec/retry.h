/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Commands that found a buffer full and are started again (ACP_SQE_RETRY): the queue parks them
 * (queue.c), its timer expires, and the drainer starts those whose time has come.
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

/**
 * acp_retry_resume() - let parked commands whose time has come wait for their start
 * @queue: the queue, whose timer has expired
 *
 * The timer is started again for the others.
 *
 * Context: the queue's drainer, bottom halves off.
 * Return: how many commands it has looked at, for the budget.
 */
u32 acp_retry_resume(struct acp_queue *queue);

#endif /* ACP_RETRY_H */
