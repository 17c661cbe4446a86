/* SPDX-License-Identifier: MIT */
/*
 * The rings as seen by user space. This is the only file of the library with their memory barriers.
 * acp_abi.h has the contract; the labels (A) to (D) are those of its table. The kernel's side is in
 * kernel/queue/queue.c.
 *
 *	function		may run at the same time as
 *	libacp_rings_push	everything but itself: callers hold a lock, or are alone
 *	all others		everything
 *
 * Positions and tickets count from 1; ticket 1 is complete from the start. The tickets of a context
 * begin at a value that its creator sets (acp_abi.h).
 */
#ifndef LIBACP_RINGS_H
#define LIBACP_RINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "acp_abi.h"

struct libacp_rings {
	struct acp_sq *sq;
	struct acp_sqe *entries;	/* depth of them, directly behind sq */
	const struct acp_cq *cq;
	uint64_t newest;		/* newest ticket assigned; never read back from sq */
	uint64_t first;			/* the ticket that was complete from the start */
	uint32_t depth;			/* a power of two */
	uint32_t mask;
};

/* Initialize from the two mappings that the kernel provides after the join. */
static inline void libacp_rings_init(struct libacp_rings *rings, void *sq, const void *cq,
				     uint32_t depth)
{
	rings->sq = sq;
	rings->entries = (struct acp_sqe *)(rings->sq + 1);
	rings->cq = cq;
	rings->depth = depth;
	rings->mask = depth - 1;
	rings->newest = 1;
	rings->first = 1;
}

/**
 * libacp_rings_newest() - get the newest ticket that was assigned
 * @rings: the rings
 *
 * Context: any thread; does not block.
 * Return: the ticket.
 */
static inline uint64_t libacp_rings_newest(const struct libacp_rings *rings)
{
	return __atomic_load_n(&rings->newest, __ATOMIC_RELAXED);
}

/**
 * libacp_rings_completed() - get the newest completed ticket
 * @rings: the rings
 *
 * All commands up to it are complete: their effects, their status and their slots may be accessed.
 * (D), pairs with (C).
 *
 * Context: any thread; does not block.
 * Return: the ticket.
 */
static inline uint64_t libacp_rings_completed(const struct libacp_rings *rings)
{
	return __atomic_load_n(&rings->cq->completed, __ATOMIC_ACQUIRE);
}

/* Return the number of completed commands that failed. */
static inline uint64_t libacp_rings_failed(const struct libacp_rings *rings)
{
	return __atomic_load_n(&rings->cq->failed, __ATOMIC_RELAXED);
}

/* True if the job was aborted. */
static inline bool libacp_rings_aborted(const struct libacp_rings *rings)
{
	return __atomic_load_n(&rings->cq->flags, __ATOMIC_RELAXED) & ACP_CQ_ABORTED;
}

/* True if the kernel does not poll the ring. For waiting threads only a hint. */
static inline bool libacp_rings_asleep(const struct libacp_rings *rings)
{
	return __atomic_load_n(&rings->cq->flags, __ATOMIC_RELAXED) & ACP_CQ_NEED_WAKEUP;
}

/* True if a slot is free; @completed is the value of libacp_rings_completed(). */
static inline bool libacp_rings_room(const struct libacp_rings *rings, uint64_t completed)
{
	return libacp_rings_newest(rings) - completed < rings->depth;
}

/**
 * libacp_rings_push() - submit an entry
 * @rings: the rings
 * @entry: the entry
 *
 * A slot must be free according to libacp_rings_completed(): its (D) makes the slot ours again.
 *
 * Context: the thread that holds the right to submit; does not block.
 * Return: its ticket.
 */
static inline uint64_t libacp_rings_push(struct libacp_rings *rings, const struct acp_sqe *entry)
{
	uint64_t ticket = libacp_rings_newest(rings) + 1;

	rings->entries[ticket & rings->mask] = *entry;
	/* Before the tail: a thread that sees an effect of this command sees newest as well. */
	__atomic_store_n(&rings->newest, ticket, __ATOMIC_RELAXED);
	__atomic_store_n(&rings->sq->tail, ticket, __ATOMIC_RELEASE);	/* (A), pairs with (B) */
	return ticket;
}

/*
 * True if the doorbell must be rung after a push. The fence is between our store to tail and our
 * load of flags; the kernel's fence is between its store to flags and its load of tail. Therefore
 * at least one side sees the other's store.
 */
static inline bool libacp_rings_must_ring(const struct libacp_rings *rings)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return libacp_rings_asleep(rings);
}

/**
 * libacp_rings_status() - get the status of a completed ticket
 * @rings: the rings
 * @ticket: the ticket
 *
 * Context: any thread; does not block.
 * Return: the status (enum acp_status), or -1 if a newer command may have reused its slot.
 */
static inline int libacp_rings_status(const struct libacp_rings *rings, uint64_t ticket)
{
	int status = __atomic_load_n(&rings->cq->status[ticket & rings->mask], __ATOMIC_ACQUIRE);

	/* The kernel writes this slot for ticket + depth only after (A), and so after newest. */
	return libacp_rings_newest(rings) - ticket < rings->depth ? status : -1;
}

/**
 * libacp_rings_entry() - copy the entry of a ticket
 * @rings: the rings
 * @ticket: the ticket
 * @entry: receives the entry
 *
 * Context: any thread; does not block.
 * Return: false if its slot may have been reused.
 */
static inline bool libacp_rings_entry(const struct libacp_rings *rings, uint64_t ticket,
				      struct acp_sqe *entry)
{
	*entry = rings->entries[ticket & rings->mask];
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return libacp_rings_newest(rings) - ticket < rings->depth;
}

#endif /* LIBACP_RINGS_H */
