/* SPDX-License-Identifier: MIT */
/* State of an access. */
#ifndef LIBACP_HANDLE_H
#define LIBACP_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "acp.h"
#include "acp_abi.h"
#include "core/queue.h"
#include "core/rings.h"

#pragma GCC visibility push(hidden)

static inline acp_handle_t libacp_handle_make(uint64_t ticket, bool local)
{
	return (acp_handle_t)(ticket << 1 | local);
}

/* True if the calling thread executed the access: it was complete at once, and did not fail. */
static inline bool libacp_handle_is_local(acp_handle_t handle)
{
	return handle > 0 && (handle & 1);
}

/* Return the number of the queue of a handle. Special handles belong to @queue. */
static inline uint32_t libacp_handle_queue(const struct libacp_queue *queue, acp_handle_t handle)
{
	return handle > 0 ? (uint32_t)(handle >> (ACP_TICKET_BITS + 1)) : queue->number;
}

/*
 * Return the ticket of @queue that a handle refers to. For invalid handles it is 0, which is always
 * complete.
 */
static inline uint64_t libacp_handle_ticket(const struct libacp_queue *queue, acp_handle_t handle)
{
	uint64_t newest = libacp_rings_newest(&queue->rings);
	uint64_t ticket = (uint64_t)handle >> 1;

	if (handle == (acp_handle_t)ACP_HANDLE_ALL || handle == (acp_handle_t)ACP_HANDLE_CONT)
		return newest;
	return ticket <= newest ? ticket : 0;
}

/* True if the handle belongs to another queue. */
static inline bool libacp_handle_elsewhere(const struct libacp_queue *queue, acp_handle_t handle)
{
	return libacp_handle_queue(queue, handle) != queue->number;
}

/* True if the access of a handle of another queue is complete. */
bool libacp_handle_reached(acp_handle_t handle);

#pragma GCC visibility pop

#endif /* LIBACP_HANDLE_H */
