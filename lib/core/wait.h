/* SPDX-License-Identifier: MIT */
/* Waiting for completion. */
#ifndef LIBACP_WAIT_H
#define LIBACP_WAIT_H

#include <stdint.h>

#include "acp.h"
#include "core/queue.h"
#include "core/rings.h"

#pragma GCC visibility push(hidden)

/* Wait for a ticket of a queue, or for all of its tickets. Returns 0 or -errno. */
int libacp_wait_for(const struct libacp_queue *queue, uint64_t ticket);
int libacp_queue_wait(const struct libacp_queue *queue);

/**
 * libacp_wait_some() - wait for a ticket of a queue for some time
 * @queue: the queue
 * @ticket: the ticket
 * @timeout_ns: nanoseconds; 0: do not wait; UINT64_MAX: no limit
 *
 * The ticket waits for what others do. So with a single CPU, which they may need, the thread sleeps
 * without polling.
 *
 * Context: any thread of a rank; may block.
 * Return: 0, -ETIMEDOUT, or another negative errno.
 */
int libacp_wait_some(const struct libacp_queue *queue, uint64_t ticket, uint64_t timeout_ns);

/**
 * libacp_gma_wait() - wait for a handle of any queue
 * @handle: handle of the access; ACP_HANDLE_ALL, ACP_HANDLE_CONT: all accesses of the queue of the
 *	calling thread; invalid handles and those of closed contexts count as complete
 *
 * Polls for some time before it sleeps.
 *
 * Context: any thread of a rank; may block.
 * Return: 0 or -errno; 0 does not mean that the access succeeded.
 */
int libacp_gma_wait(acp_handle_t handle);

/*
 * Wait until the ring has a free slot; the caller holds the right to submit. Returns the newest
 * completed ticket, or 0 if there will never be a free slot. After a sleep a quarter of the ring is
 * free, so that a busy queue sleeps seldom.
 */
uint64_t libacp_wait_for_room(const struct libacp_queue *queue);

/* As libacp_wait_for_room(), inline for the usual case that a slot is free. */
static inline uint64_t libacp_find_room(const struct libacp_queue *queue)
{
	uint64_t completed = libacp_rings_completed(&queue->rings);

	return libacp_rings_room(&queue->rings, completed) ? completed :
							     libacp_wait_for_room(queue);
}

/* CPU hint between two polls. */
static inline void libacp_pause(void)
{
#if __has_builtin(__builtin_ia32_pause)
	__builtin_ia32_pause();
#endif
}

#pragma GCC visibility pop

#endif /* LIBACP_WAIT_H */
