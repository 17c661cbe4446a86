/* SPDX-License-Identifier: MIT */
/* Failed accesses. */
#ifndef LIBACP_FAILURE_H
#define LIBACP_FAILURE_H

#include <stdbool.h>
#include <stdint.h>

#include "acp.h"
#include "core/handle.h"
#include "core/queue.h"
#include "core/rings.h"

#pragma GCC visibility push(hidden)

/* per slot of the queue of the process: its ticket is quiet */
extern uint8_t *libacp_quiet_marks;
extern _Thread_local bool libacp_quiet_now LIBACP_QUICK;
/* newest ticket at the start of the chain */
extern _Thread_local uint64_t libacp_chain_since LIBACP_QUICK;

/**
 * libacp_gma_open() - reset the state of failures
 *
 * Context: the thread that joins, after the rings of libacp_main were mapped and before the process
 * is a rank.
 * Return: 0 or -ENOMEM; libacp_gma_close() may be called in both cases.
 */
int libacp_gma_open(void);

/**
 * libacp_gma_close() - free the state of failures
 *
 * Context: the thread that leaves; no thread issues accesses any more. Also without
 * libacp_gma_open().
 */
void libacp_gma_close(void);

/*
 * Record the status of the failed ticket @former, whose slot is about to be reused. For the queue
 * of the process, the caller holds its lock.
 */
void libacp_lose_status(struct libacp_queue *queue, uint64_t former, int status);

/**
 * libacp_take_slot() - prepare the slot of the next ticket
 * @queue: the queue, which has a free slot
 *
 * Context: the thread that holds the right to submit; does not block.
 */
static inline void libacp_take_slot(struct libacp_queue *queue)
{
	const struct libacp_rings *rings = &queue->rings;
	uint64_t ticket = libacp_rings_newest(rings) + 1, former = ticket - rings->depth;
	int status = ticket - rings->first > rings->depth ? libacp_rings_status(rings, former) : 0;

	if (status > 0)
		libacp_lose_status(queue, former, status);
	if (libacp_queue_shared(queue))
		libacp_quiet_marks[ticket & rings->mask] = libacp_quiet_now;
}

/*
 * True if an access of the current chain, up to @order, has failed. @completed: the newest ticket
 * that was complete when the caller checked.
 */
static inline bool libacp_chain_broken(const struct libacp_queue *queue, acp_handle_t order,
				       uint64_t completed)
{
	uint64_t ticket, last;

	if (!libacp_quiet_now || order == (acp_handle_t)ACP_HANDLE_NULL)
		return false;
	last = libacp_handle_ticket(queue, order);
	last = last < completed ? last : completed;
	for (ticket = libacp_chain_since; ticket < last;)
		if (libacp_rings_status(&queue->rings, ++ticket))
			return true;
	return false;
}

#pragma GCC visibility pop

#endif /* LIBACP_FAILURE_H */
