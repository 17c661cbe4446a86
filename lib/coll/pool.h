/* SPDX-License-Identifier: MIT */
/*
 * Queues for rounds of collectives: one for each that is active, so that two collectives never wait
 * for each other. Queues are created when needed, and kept for later rounds. All functions are
 * thread-safe; a queue is used by the thread that uses its collective.
 */
#ifndef LIBACP_POOL_H
#define LIBACP_POOL_H

#include "acp_abi.h"
#include "coll/coll.h"

#pragma GCC visibility push(hidden)

/**
 * libacp_pool_get() - take a queue
 * @owner: the collective that uses it
 * @entries: number of entries that it must have room for
 * @queue: receives the queue, all commands of which are complete: a free one, or a resting one of
 *	another collective
 *
 * Context: any thread of a rank; system calls, unless a queue is free.
 * Return: 0 or -errno; -E2BIG: no queue has that many entries.
 */
int libacp_pool_get(struct acpx_coll *owner, uint32_t entries, struct libacp_pool_queue **queue);

/* Return a queue, all commands of which are complete. */
void libacp_pool_put(struct libacp_pool_queue *queue);

/*
 * Leave a queue whose commands before the ticket @tail have been judged; others may not be complete
 * yet. Another collective may take it when all of them have succeeded.
 */
void libacp_pool_rest(struct libacp_pool_queue *queue, uint64_t tail);

/* Return to the queue that a collective has left; NULL if another one has taken it. */
struct libacp_pool_queue *libacp_pool_resume(const struct acpx_coll *owner);

/* Return the newest ticket that was given to a queue. */
uint64_t libacp_pool_newest(const struct libacp_pool_queue *queue);

/* Give an entry to a queue, which has room for it; its order is a ticket. Returns its ticket. */
uint64_t libacp_pool_push(struct libacp_pool_queue *queue, const struct acp_sqe *entry);

/* Tell the kernel of entries that were given. */
void libacp_pool_ring(struct libacp_pool_queue *queue);

/* Has the queue room for @n more entries? */
bool libacp_pool_room(const struct libacp_pool_queue *queue, uint32_t n);

/* True if all commands up to a ticket are complete. */
bool libacp_pool_reached(const struct libacp_pool_queue *queue, uint64_t ticket);

/* Wait until they are. Returns 0, -ETIMEDOUT, or another -errno. */
int libacp_pool_wait(struct libacp_pool_queue *queue, uint64_t ticket, uint64_t timeout_ns);

/* Return the status of a ticket that is complete, and copy its entry. */
int libacp_pool_status(const struct libacp_pool_queue *queue, uint64_t ticket,
		       struct acp_sqe *entry);

/* Destroy a queue; commands that are not complete end. */
void libacp_pool_remove(struct libacp_pool_queue *queue);

/* Return a collective that has a queue, also a resting one, or NULL. */
struct acpx_coll *libacp_pool_owner(void);

/* Destroy all queues, when no collective has one any more. */
void libacp_pool_clear(void);

/**
 * libacp_pool_forget() - forget all queues in the child after fork()
 *
 * Context: the only thread of the child. Takes no lock.
 */
void libacp_pool_forget(void);

#pragma GCC visibility pop

#endif /* LIBACP_POOL_H */
