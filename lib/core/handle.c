// SPDX-License-Identifier: MIT
/*
 * Handles: the state of an access that was issued.
 *
 * A handle is ticket * 2 + local. local = 1: the calling thread executed the access before it
 * returned, and the ticket is the newest that was assigned at that time, because completion is in
 * order. The ticket contains the number of the queue.
 */
#include "acp.h"
#include "core/handle.h"
#include "core/process.h"
#include "core/queue.h"
#include "core/rings.h"

bool libacp_handle_reached(acp_handle_t handle)
{
	struct libacp_queue *other = libacp_queue_hold(libacp_handle_queue(&libacp_main, handle));
	bool complete;

	if (!other)
		return true;		/* closed: all its commands are complete */
	complete = libacp_queue_reached(other, libacp_handle_ticket(other, handle));
	libacp_queue_release(other);
	return complete;
}

int acp_inquire(acp_handle_t handle)
{
	const struct libacp_queue *queue;
	bool complete;

	if (!libacp_in())
		return 0;
	queue = libacp_queue_now();
	complete = libacp_handle_elsewhere(queue, handle) ?
		   libacp_handle_reached(handle) :
		   libacp_queue_reached(queue, libacp_handle_ticket(queue, handle));
	if (complete)
		return 0;
	return !libacp_rings_aborted(&libacp_main.rings);
}

/* A message that waited for its receive may end before earlier accesses. */
static int early_status(const struct libacp_queue *queue, uint64_t ticket)
{
	int status = libacp_rings_status(&queue->rings, ticket);

	if (libacp_rings_aborted(&queue->rings))
		return ACPX_EABORT;
	if (status >= 0 && (status & ACP_CQ_ENDED))
		return status & ~(int)ACP_CQ_ENDED;
	return ACPX_EPENDING;
}

static int status_in(const struct libacp_queue *queue, acp_handle_t handle)
{
	uint64_t ticket = (uint64_t)handle >> 1;
	int status;

	if (handle <= 0 || ticket > libacp_rings_newest(&queue->rings))
		return libacp_rings_aborted(&queue->rings) ? ACPX_EABORT : ACPX_EOP;
	if (handle & 1)
		return 0;
	if (!libacp_queue_reached(queue, ticket))
		return early_status(queue, ticket);
	status = libacp_rings_status(&queue->rings, ticket);
	return status < 0 ? ACPX_EUNKNOWN : status & ~(int)ACP_CQ_ENDED;
}

int acpx_status(acp_handle_t handle)
{
	struct libacp_queue *queue, *other;
	int status;

	if (!libacp_in())
		return ACPX_EABORT;
	queue = libacp_queue_now();
	if (!libacp_handle_elsewhere(queue, handle))
		return status_in(queue, handle);
	other = libacp_queue_hold(libacp_handle_queue(queue, handle));
	if (!other)
		return handle & 1 ? 0 : ACPX_EUNKNOWN;
	status = status_in(other, handle);
	libacp_queue_release(other);
	return status;
}
