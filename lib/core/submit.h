/* SPDX-License-Identifier: MIT */
/* Issuing accesses. */
#ifndef LIBACP_SUBMIT_H
#define LIBACP_SUBMIT_H

#include <stdbool.h>
#include <stddef.h>

#include "acp.h"
#include "acp_abi.h"
#include "acp_ga.h"
#include "core/process.h"
#include "core/queue.h"

#pragma GCC visibility push(hidden)

/**
 * libacp_may_start() - is what an access waits for complete?
 * @order: its order
 *
 * Context: any thread of a rank; does not block.
 * Return: true if the calling thread may execute the access itself.
 */
bool libacp_may_start(acp_handle_t order);

/**
 * libacp_done_locally() - get the handle of an access that the calling thread has executed
 *
 * Context: any thread of a rank; does not block.
 * Return: a handle that is complete.
 */
acp_handle_t libacp_done_locally(void);

/**
 * libacp_submit_one() - submit one entry to the kernel
 * @entry: the entry without order; the function sets that
 * @order: condition under which it may start
 *
 * Context: any thread of a rank; blocks while no slot of the queue is free.
 * Return: its handle, or ACP_HANDLE_NULL.
 */
acp_handle_t libacp_submit_one(struct acp_sqe *entry, acp_handle_t order);

/**
 * libacp_note_message() - remember the newest message of the calling thread's queue
 * @handle: its handle, or ACP_HANDLE_NULL
 *
 * Context: any thread of a rank; does not block.
 * Return: @handle.
 */
acp_handle_t libacp_note_message(acp_handle_t handle);

/**
 * libacp_messages_complete() - are all messages of the calling thread's queue complete?
 *
 * Context: any thread of a rank; does not block.
 * Return: true if none is under way.
 */
bool libacp_messages_complete(void);

#define LIBACP_BEHIND	UINT64_MAX	/* order of an entry: behind the previous one */
#define LIBACP_STRICT	UINT64_MAX	/* seen of the first entry: see libacp_submit() */

/* Fills in an entry: op, addresses, size, operands. */
typedef void libacp_next_t(struct acp_sqe *entry, void *state);

/**
 * libacp_submit() - submit entries that belong together
 * @n: their number, from 1
 * @next: called for each of them, in their order
 * @state: argument of @next
 * @order: condition under which they may start; one whose order is LIBACP_BEHIND waits for the
 *	   previous one instead
 *
 * An access fails if one fails that it waits for, unless that was complete when it was issued. If
 * "seen" of the first entry is LIBACP_STRICT, it fails also if the access that @order names has
 * failed before, as long as the queue knows that.
 *
 * Context: any thread of a rank; blocks while no slot of the queue is free.
 * Return: the handle of the last one, which fails if any of them fails; or ACP_HANDLE_NULL.
 */
acp_handle_t libacp_submit(size_t n, libacp_next_t *next, void *state, acp_handle_t order);

/**
 * libacp_ring() - tell the kernel of entries that were written to a ring, unless it polls
 * @queue: the queue
 *
 * Context: the thread that has written them; a system call.
 */
void libacp_ring(const struct libacp_queue *queue);

/**
 * libacp_own_nothing() - get an address of this rank at which 0 bytes can be read and written
 *
 * It is not in starter memory, whose size may be 0.
 *
 * Context: any thread of a rank.
 * Return: the address.
 */
static inline acp_ga_t libacp_own_nothing(void)
{
	return acp_ga_make(&libacp.layout, libacp.rank, 0, ACP_STAG_LIBRARY, 0);
}

#pragma GCC visibility pop

#endif /* LIBACP_SUBMIT_H */
