/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A rank: an open /dev/acp that has joined a job.  It has memory, charges, a state in barriers
 * and events, and a worker.  It also has queues: its own queue, number 0, which is part of the
 * structure, and additional ones (attach.h).
 *
 * Lifetime: a rank exists as long as its own queue.  The reference count of that queue (queue.h)
 * is also the rank's.  References are held by
 *	its open file, until it is closed
 *	each item of a command of its own queue that a transport still has
 *	each long copy that a command of its own queue began (copies.c)
 *	the work that creates its worker's thread, while it is queued (worker.c)
 *	each additional queue, until a grace period after the last reference to that queue
 * The visible state (its place in the job, registrations, the worker) ends when the file is
 * closed.  Lookups in the job's tables run under RCU: close() waits for a grace period after the
 * rank was removed from them.  With the last reference the user is no longer charged for the
 * rings of the rank's own queue, and is put.  A grace period later the structure and these rings
 * are freed, and the reference to the job is given up.
 */
#ifndef ACP_RANK_H
#define ACP_RANK_H

#include <linux/interrupt.h>
#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <linux/xarray.h>
#include "../mem/memlock.h"
#include "../mem/cache.h"
#include "../exec/worker.h"
#include "../queue/queue.h"

struct acp_user;

struct acp_rank {
	struct acp_queue own;	/* same lifetime; first member: same address as the rank */
	struct acp_job *job;	/* a reference */
	u32 number;		/* in the job */
	u32 n_queues;		/* additional queues; under queues_lock */
	struct xarray queues;	/* additional queues by number; readers: RCU; its lock: BH */
	struct acp_watch *watch;	/* in the library region, which outlives all others */

	struct list_head link;	/* in the job's list of ranks, RCU */
	struct mm_struct *mm;	/* of the process that joined; its file holds it */
	struct pid *pid;	/* of that process; a reference */
	struct acp_user *user;	/* is charged for the rank, until the last reference is put */
	unsigned long paid;	/* KiB charged for rings and regions that do not exist yet */
	struct acp_memlock locked;	/* likewise, the pages of these regions */

	struct mutex queues_lock;	/* adding, removing additional queues and lists */
	u32 last_queue;		/* number of the latest; under queues_lock */
	u32 freed_kib;		/* of queues closed since a grace period; likewise */
	u32 n_lists, last_list;	/* match lists, and the number of the latest; likewise */
	struct xarray lists;	/* match lists by number; readers: RCU */
	struct {		/* commands of closed queues; under node's poll_lock */
		u64 completed, failed;
	} gone;
	struct acp_worker worker;
	wait_queue_head_t watchers;	/* sleep until memory is written; see watch.h */
	u64 armed_at;		/* what "wakes" was; poll() looks whether it has changed */
	bool armed;
	struct tasklet_struct words;	/* looks at words that commands wait for; see poller.c */

	struct mutex reg_lock;	/* registrations; not held over pinning */
	struct rb_root covers;	/* registered regions by address, see cover.h */
	struct xarray regions;	/* STag -> region; RCU */
	struct acp_cache region_cache;
	u64 starter_bytes, heap_bytes;
	u64 region_pages;	/* of all its regions; under reg_lock */
	u32 n_regions;		/* registered; likewise */
	u32 next_stag;

	u64 sync_want;		/* barrier this rank has arrived at, 0: none */
	bool syncing, final;
	bool finished;		/* has completed a final barrier */

	u64 events_read;	/* events of the job read; under job->events.lock */
};

/**
 * acp_rank_end() - put the rank's user, after the last reference to the rank has been put
 * @rank: the rank
 *
 * Called by acp_queue_free() only.
 *
 * Context: any.
 */
void acp_rank_end(struct acp_rank *rank);

/**
 * acp_rank_free() - free a rank and give up its references
 * @rank: the rank
 *
 * Called a grace period after acp_rank_end().
 *
 * Context: RCU callback.
 */
void acp_rank_free(struct acp_rank *rank);

/**
 * acp_rank_changed() - report that queues or regions of a rank were added or removed
 * @rank: the rank
 *
 * Netlink dumps in progress are marked as inconsistent.
 *
 * Context: any.
 */
void acp_rank_changed(const struct acp_rank *rank);

/**
 * acp_rank_get() - take another reference to a rank
 * @rank: the rank, to which the caller has a reference
 *
 * Context: any.
 */
static inline void acp_rank_get(struct acp_rank *rank)
{
	acp_queue_get(&rank->own);
}

/**
 * acp_rank_get_if_there() - take a reference to a rank unless the last one has been put
 * @rank: the rank
 *
 * Context: RCU read side, or the caller has a reference to an additional queue of the rank.
 * Return: true if a reference was taken.
 */
static inline bool acp_rank_get_if_there(struct acp_rank *rank)
{
	return acp_queue_get_if_there(&rank->own);
}

/**
 * acp_rank_put() - give up a reference to a rank
 * @rank: the rank
 *
 * Context: any.
 */
static inline void acp_rank_put(struct acp_rank *rank)
{
	acp_queue_put(&rank->own);
}

/**
 * acp_queue_is_own() - is a queue its rank's own queue, number 0?
 * @queue: the queue
 *
 * Context: any.
 * Return: true for the rank's own queue, false for an additional one.
 */
static inline bool acp_queue_is_own(const struct acp_queue *queue)
{
	return queue == &queue->rank->own;
}

/* The queue of a rank that a ticket belongs to, or NULL.  RCU. */
static inline struct acp_queue *acp_rank_queue(struct acp_rank *rank, u64 ticket)
{
	if (likely(!(ticket >> ACP_TICKET_BITS)))
		return &rank->own;
	return xa_load(&rank->queues, ticket >> ACP_TICKET_BITS);
}

#endif /* ACP_RANK_H */
