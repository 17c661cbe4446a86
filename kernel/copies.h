/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Long copies within a node: not done at once, but in steps, by somebody who
 * may be interrupted.
 *
 * A command of a rank of this node waits in the list of its context, for the
 * caller: who is in a system call of that rank does them with his own time,
 * for that takes no wake-up and no change of processes.  But only ACP_COPY_OWN
 * bytes in a call.  What nobody comes for, what is more, and what other nodes
 * ask for is the worker's.
 *
 * A region is held for a step only, so nobody who unregisters waits for more.
 */
#ifndef ACP_COPIES_H
#define ACP_COPIES_H

#include "context.h"
#include "job.h"

#define ACP_COPY_OWN	1048576		/* bytes; in a call */

/* Some of a copy, at most as long as regions are there; its status. */
u8 acp_copies_now(struct acp_job *job, const struct acp_msg *m, u64 offset, u64 size);

/*
 * Begin a long one: a command of ctx, or, if that is NULL, one of the node
 * "peer", which "done" will tell of its end; acp_station_copied() is called
 * then.  False: no memory, and "done" is still the caller's.  BH off.
 */
bool acp_copies_start(struct acp_job *job, const struct acp_msg *m, struct acp_context *ctx,
		      struct acp_item *done, struct acp_peer *peer);

/*
 * The caller's time: what starts between these two, and what had started, is
 * done by acp_copies_help(), as long as *room lasts and no signal comes.  The
 * worker does what is left at the end.  Sleep.
 */
static inline void acp_copies_enter(struct acp_context *ctx)
{
	atomic_inc(&ctx->helpers);
}

void acp_copies_take(struct acp_context *ctx, u64 *room);
void acp_copies_give(struct acp_context *ctx);

static inline void acp_copies_help(struct acp_context *ctx, u64 *room)
{
	if (!list_empty(&ctx->copies))
		acp_copies_take(ctx, room);
}

static inline void acp_copies_leave(struct acp_context *ctx)
{
	/* In full order: what was left to us is seen here, later ones see that we have gone. */
	atomic_dec_return(&ctx->helpers);
	if (!list_empty(&ctx->copies))
		acp_copies_give(ctx);
}

/* Wait for the end of a job's copies, none of which begin any more.  Sleeps. */
void acp_copies_flush(struct acp_job *job);

int acp_copies_init(void);
void acp_copies_exit(void);

#endif /* ACP_COPIES_H */
