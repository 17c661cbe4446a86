/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The queues of a context: takes entries from its ring, decides when each may
 * start, publishes completions in order.  The only kernel file with ring
 * barriers; the contract is in acp_abi.h.
 *
 * Draining is done by whoever comes first (doorbell, poller, softirq), one at
 * a time without a lock: the counter "drain" says how often it was asked for;
 * who raises it from 0 drains until all requests are served.
 */
#ifndef ACP_QUEUE_H
#define ACP_QUEUE_H

#include "context.h"

/*
 * Last ticket that is complete, as the user sees it; ctx->completed is ahead
 * of it while commands are published, and not for the user to hear of.
 */
static inline u64 acp_queue_completed(const struct acp_context *ctx)
{
	return READ_ONCE(ctx->cq->completed);
}

/*
 * Add the KiB that rings take to *kib: 0, -EINVAL, acp_over().  create: they are
 * ctx->paid; number: of the queue.
 */
int acp_queue_price(const struct acp_node *node, u32 depth, unsigned long *kib);
int acp_queue_create(struct acp_context *ctx, u32 depth, u32 number);
void acp_queue_destroy(struct acp_context *ctx);

#define ACP_DRAIN_CALLER	256	/* entries, on the time of a thread */
#define ACP_DRAIN_SOFTIRQ	32	/* ... and in softirq; the poller does the rest */

/* Take and start at most "budget" entries.  BH off.  True: more is left. */
bool acp_queue_drain(struct acp_context *ctx, int budget);

/* Entries in the ring that nobody has taken; a tail that makes no sense is none. */
static inline u64 acp_queue_available(const struct acp_context *ctx)
{
	u64 n;

	/* (B): the tail before the entry; pairs with the user's (A) */
	n = smp_load_acquire(&ctx->sq->tail) - READ_ONCE(ctx->taken);
	return n <= ctx->depth ? n : 0;
}

/* Is there one, or something that may start now? */
static inline bool acp_queue_ready(const struct acp_context *ctx)
{
	if (READ_ONCE(ctx->closed))
		return false;
	return READ_ONCE(ctx->waiting) || READ_ONCE(ctx->starved) || acp_queue_available(ctx);
}

/*
 * A command of this rank ended.  False: there is no such command (any more).
 * BH off, no lock held.  The caller sees to acp_station_idle() afterwards.
 */
bool acp_queue_complete(struct acp_context *ctx, u64 ticket, u8 status);

/*
 * Puts of this queue were delivered: the items from "link" on, up to "end" or the first
 * that is something else, which is returned.  The same as acp_queue_complete() and
 * acp_queue_item_back() of each, at once; there is one at least.
 */
struct list_head *acp_queue_delivered(struct acp_context *ctx, struct list_head *link,
				      const struct list_head *end);

/* The transport gave a command's item back. */
void acp_queue_item_back(struct acp_context *ctx, struct acp_cmd *cmd);

/*
 * Did a command of from .. to fail, as far as is known?  All of them were
 * taken.  Only those still on record, as many as the queue is deep, count.
 */
bool acp_queue_failed(struct acp_context *ctx, u64 from, u64 to);

/* End the commands that wait for a peer whose flow has a new life. */
void acp_queue_lost(struct acp_context *ctx, u32 node, u32 color, u32 life, u8 status);

/* The job ended: flag it, wake everybody, of all queues of a rank.  RCU if it has several. */
void acp_queue_abort(struct acp_context *ctx);

/* It was marked as closed: nobody drains it any more, what was taken ends.  Sleeps.  Once. */
void acp_queue_cut(struct acp_context *ctx);

/* The doorbell flag; set: returns true if it is safe to sleep. */
bool acp_queue_need_wakeup(struct acp_context *ctx, bool set);

#endif /* ACP_QUEUE_H */
