/* SPDX-License-Identifier: MIT */
/* Queues of single threads. */
#ifndef LIBACP_CONTEXT_H
#define LIBACP_CONTEXT_H

#include "acp.h"
#include "core/queue.h"

#pragma GCC visibility push(hidden)

/**
 * libacp_contexts_complete() - wait for all commands of all contexts, and unbind the calling thread
 *
 * In the default error mode, unreported failures of these commands end the job, and an aborted job
 * ends the process.
 *
 * Context: a thread of a rank that holds the membership lock (join.c); may block.
 * Return: the queue to which the calling thread was bound, or NULL.
 */
struct libacp_queue *libacp_contexts_complete(void);

/**
 * libacp_context_queue() - get the queue of a context
 * @context: the context
 *
 * Context: any thread of a rank; does not block.
 * Return: its queue.
 */
struct libacp_queue *libacp_context_queue(acpx_context_t context);

#pragma GCC visibility pop

#endif /* LIBACP_CONTEXT_H */
