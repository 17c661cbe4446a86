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

/* Return the queue of a context. */
struct libacp_queue *libacp_context_queue(acpx_context_t context);

#pragma GCC visibility pop

#endif /* LIBACP_CONTEXT_H */
