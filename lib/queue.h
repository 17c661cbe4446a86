/* SPDX-License-Identifier: MIT */
/*
 * The rings as user space sees them, and the only file of the library with
 * memory barriers.  acp_abi.h has the contract; the labels (A) to (D) are
 * those of its table, and the kernel's ends of them are in kernel/queue.c.
 *
 *	function		may run at the same time as
 *	libacp_queue_push	everything but itself: callers hold a lock, or are alone
 *	all others		everything
 *
 * Positions and tickets count from 1; ticket 1 is complete from the start.  Those
 * of a context begin elsewhere (acp_abi.h), its caller says where.
 */
#ifndef LIBACP_QUEUE_H
#define LIBACP_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "acp_abi.h"

struct libacp_queue {
	struct acp_sq *sq;
	struct acp_sqe *entries;	/* depth of them, right behind sq */
	const struct acp_cq *cq;
	uint64_t newest;		/* last ticket given out; never read back from sq */
	uint64_t first;			/* the one that was complete from the start */
	uint32_t depth;			/* a power of two */
	uint32_t mask;
};

/* sq and cq: the two mappings, as the kernel made them at the join. */
static inline void libacp_queue_init(struct libacp_queue *q, void *sq, const void *cq,
				     uint32_t depth)
{
	q->sq = sq;
	q->entries = (struct acp_sqe *)(q->sq + 1);
	q->cq = cq;
	q->depth = depth;
	q->mask = depth - 1;
	q->newest = 1;
	q->first = 1;
}

/* The last ticket that was given out. */
static inline uint64_t libacp_queue_newest(const struct libacp_queue *q)
{
	return __atomic_load_n(&q->newest, __ATOMIC_RELAXED);
}

/*
 * All commands up to this ticket are complete; their effects, their status
 * and their slots are the caller's to look at.  (D), pairs with (C).
 */
static inline uint64_t libacp_queue_completed(const struct libacp_queue *q)
{
	return __atomic_load_n(&q->cq->completed, __ATOMIC_ACQUIRE);
}

/* How many of the completed commands failed. */
static inline uint64_t libacp_queue_failed(const struct libacp_queue *q)
{
	return __atomic_load_n(&q->cq->failed, __ATOMIC_RELAXED);
}

static inline bool libacp_queue_aborted(const struct libacp_queue *q)
{
	return __atomic_load_n(&q->cq->flags, __ATOMIC_RELAXED) & ACP_CQ_ABORTED;
}

/* Is the kernel not looking at the ring?  A hint for those who wait. */
static inline bool libacp_queue_asleep(const struct libacp_queue *q)
{
	return __atomic_load_n(&q->cq->flags, __ATOMIC_RELAXED) & ACP_CQ_NEED_WAKEUP;
}

/* Is there a free slot, given what libacp_queue_completed() said? */
static inline bool libacp_queue_room(const struct libacp_queue *q, uint64_t completed)
{
	return libacp_queue_newest(q) - completed < q->depth;
}

/*
 * Submit an entry and return its ticket.  Needs room, seen with
 * libacp_queue_completed(): the (D) that makes the slot ours again.
 */
static inline uint64_t libacp_queue_push(struct libacp_queue *q, const struct acp_sqe *entry)
{
	uint64_t ticket = libacp_queue_newest(q) + 1;

	q->entries[ticket & q->mask] = *entry;
	/* Before the tail: who sees an effect of this command sees newest too. */
	__atomic_store_n(&q->newest, ticket, __ATOMIC_RELAXED);
	__atomic_store_n(&q->sq->tail, ticket, __ATOMIC_RELEASE);	/* (A), pairs with (B) */
	return ticket;
}

/*
 * After a push: must the doorbell be rung?  The fence stands between our
 * store to tail and our load of flags, as the kernel's stands between its
 * store to flags and its load of tail: one of the two sees the other.
 */
static inline bool libacp_queue_must_ring(const struct libacp_queue *q)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return libacp_queue_asleep(q);
}

/*
 * Status of a completed ticket (enum acp_status), or -1 when it is no
 * longer kept: a younger command may have taken its place.
 */
static inline int libacp_queue_status(const struct libacp_queue *q, uint64_t ticket)
{
	int status = __atomic_load_n(&q->cq->status[ticket & q->mask], __ATOMIC_ACQUIRE);

	/* The kernel writes there for ticket + depth, after (A) and so after newest. */
	return libacp_queue_newest(q) - ticket < q->depth ? status : -1;
}

/* The entry of a ticket, for messages: false when it is no longer kept. */
static inline bool libacp_queue_entry(const struct libacp_queue *q, uint64_t ticket,
				      struct acp_sqe *entry)
{
	*entry = q->entries[ticket & q->mask];
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return libacp_queue_newest(q) - ticket < q->depth;
}

#endif /* LIBACP_QUEUE_H */
