/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A context: one open /dev/acp that joined a job as a rank; its queues, its
 * commands in flight, its memory, its accounting.  Or a further queue of a
 * rank (attach.h), which has rings and commands of its own, and nothing else.
 *
 * Lifetime: the open file holds a reference, and so does each command that
 * a transport still has.  What the process sees (mappings, registrations,
 * the rank itself) ends with the file; the structure with the last reference,
 * after a grace period.
 */
#ifndef ACP_CONTEXT_H
#define ACP_CONTEXT_H

#include <linux/hrtimer.h>
#include <linux/kref.h>
#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/xarray.h>
#include "near.h"
#include "transport.h"

#define ACP_INFLIGHT	256	/* commands taken, not complete; 2^n */

struct acp_region;
struct acp_user;

enum acp_cmd_state {
	ACP_CMD_FREE,
	ACP_CMD_WAITING,	/* for its order */
	ACP_CMD_STARTED,
	ACP_CMD_ENDED,		/* completed, waits for earlier ones */
};

#define ACP_EXPECT_SOURCE	1	/* of step.node, which executes the command */
#define ACP_EXPECT_RESULT	2	/* of step.dst_node, which tells that the result arrived */

/* A command in flight: its own copy of the entry, and the item it sends. */
struct acp_cmd {
	struct acp_item item;	/* item.out.m: the command itself */
	u64 order, seen;
	struct acp_step step;
	u32 life[2];		/* of the flows that answers are expected on, by ACP_EXPECT_ - 1 */
	u8 state;		/* enum acp_cmd_state; under the queue lock */
	u8 status;
	bool busy;		/* the transport still has the item; under the queue lock */
	bool more;		/* if it fails, the next one does: ACP_SQE_MORE */
	u8 expected;		/* ACP_EXPECT_: who owes an answer; under the queue lock */
};

/* See poller.c: while its timer runs, the ring is looked at without a doorbell. */
struct acp_hold {
	struct hrtimer timer;
	u32 bells, wanted;	/* doorbells so far, and until the next hold */
	u64 first_bell;		/* ns, of these */
	u64 most;		/* commands taken in one drain, since the timer's last look */
	u8 vain;		/* looks in a row that found little */
	bool was_worth;		/* one found several commands */
};

struct acp_context {
	struct acp_job *job;
	u32 rank;
	struct mm_struct *mm;	/* of the process that joined; grabbed, for accounting */
	struct acp_user *user;	/* whom it counts for */
	unsigned long paid;	/* KiB counted for the user that no ring or region has yet */
	struct kref refs;
	struct rcu_head rcu;
	bool closed;		/* the rank has left, or the further queue was closed */

	struct acp_context *main;	/* the rank's own; held by a further queue */
	u64 first;		/* its last ticket before the first command */
	struct mutex queues_lock;	/* further queues come and go */
	struct xarray queues;	/* by number; readers: RCU; its lock: BH */
	u32 n_queues, last_queue;
	u32 freed_kib;		/* of those closed since a grace period; under queues_lock */
	struct {		/* done by those that were closed; under node's poll_lock */
		u64 completed, failed;
	} gone;
	bool counted;		/* among main's "gone"; likewise */
	bool marked;		/* in main's queues: see pass.h; under their lock */
	u32 passes;		/* since it had anything under way; a hint */

	/* the ring, written by the user; nothing is believed */
	struct acp_sq *sq;
	struct acp_sqe *entries;
	u32 depth;
	size_t sq_bytes, cq_bytes;
	u32 ring_kib;		/* counted for the user */
	struct acp_cq *cq;	/* written by us, read-only for the user */

	/* draining: one at a time, whoever comes; see queue.c */
	atomic_t drain;
	u64 taken;		/* last ticket taken; drainer only */
	struct acp_run run;	/* drainer only */
	bool starved;		/* entries are left for want of a free command */
	u32 waiting;		/* commands WAITING; drainer only */

	spinlock_t lock;	/* bh; guards the states of commands, and publishing */
	u64 completed;		/* last ticket published; soon in cq->completed */
	u64 failed;
	u64 last_failed;	/* ticket, the highest */
	u64 doomed;		/* ticket whose former failed, and carries it along; 0: none */
	u8 doom;		/* ... with this status */
	struct acp_cmd *cmds;	/* [ACP_INFLIGHT], by ticket */
	struct list_head copies;	/* long ones that wait for somebody; under lock: copies.c */
	atomic_t helpers;	/* calls under way that will look there */
	wait_queue_head_t wait;
	u64 armed;		/* ticket poll() waits for; ~0: none */
	struct acp_hold hold;
	struct acp_watch *watch;	/* in the library region, there while others are */
	wait_queue_head_t watchers;	/* who sleep until somebody writes; see watch.h */
	u64 polled;		/* tickets taken plus completed, at the poller's last look */

	struct mutex reg_lock;	/* registrations */
	struct xarray regions;	/* STag -> region; RCU */
	struct acp_near near_regions;
	u32 next_stag;
	u64 starter_bytes, heap_bytes;
	u64 region_pages;	/* of all its regions; under reg_lock */
	u32 n_regions;		/* registered; likewise */
	struct pid *pid;	/* of the process that joined */

	u64 sync_want;		/* barrier this rank has arrived at, 0: none */
	bool syncing, final;
	bool finished;		/* passed a final barrier */

	u64 events_read;	/* of the job's; under the lock of these */

	struct list_head poll_link;	/* in the node's list, RCU */
	struct list_head job_link;	/* in the job's, RCU */
};

/* Who uses which queue; main: the rank's own, NULL: this is it.  By the process. */
void acp_context_init(struct acp_context *ctx, struct acp_job *job, u32 rank,
		      struct acp_context *main);
void acp_context_free(struct kref *ref);

static inline void acp_context_get(struct acp_context *ctx)
{
	kref_get(&ctx->refs);
}

static inline void acp_context_put(struct acp_context *ctx)
{
	kref_put(&ctx->refs, acp_context_free);
}

/* Several at once, the caller's. */
static inline void acp_context_put_some(struct acp_context *ctx, u32 n)
{
	if (refcount_sub_and_test(n, &ctx->refs.refcount))
		acp_context_free(&ctx->refs);
}

static inline struct acp_cmd *acp_context_cmd(struct acp_context *ctx, u64 ticket)
{
	return &ctx->cmds[ticket & (ACP_INFLIGHT - 1)];
}

static inline u32 acp_context_queue_number(const struct acp_context *ctx)
{
	return ctx->first >> ACP_TICKET_BITS;
}

/* The queue of a rank that a ticket is of, or NULL.  RCU. */
static inline struct acp_context *acp_context_queue(struct acp_context *main, u64 ticket)
{
	if (likely(!(ticket >> ACP_TICKET_BITS)))
		return main;
	return xa_load(&main->queues, ticket >> ACP_TICKET_BITS);
}

#endif /* ACP_CONTEXT_H */
