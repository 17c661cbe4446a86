/* SPDX-License-Identifier: MIT */
/* Queues of single threads. */
#ifndef LIBACP_CONTEXT_H
#define LIBACP_CONTEXT_H

#include "core/queue.h"

#pragma GCC visibility push(hidden)

/*
 * Wait for all commands of all contexts and unbind the calling thread. Returns the queue to which
 * it was bound, or NULL.
 */
struct libacp_queue *libacp_contexts_complete(void);

#pragma GCC visibility pop

#endif /* LIBACP_CONTEXT_H */
