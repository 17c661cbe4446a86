/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a job's ranks here are told of others: nodes that are lost or there
 * again, ranks that left.  The last few events are kept for each rank to
 * read; who is late hears how many it missed.  And what is known of a rank
 * without asking anybody.
 */
#ifndef ACP_EVENT_H
#define ACP_EVENT_H

#include "context.h"
#include "job.h"

/* Tell the ranks here.  Any context, BH off or not. */
void acp_event_add(struct acp_job *job, const struct acp_news *news);

/*
 * A rank of any node has left without having finalized.  False: that is known,
 * or so many have left that no more are counted.
 */
bool acp_event_left(struct acp_job *job, u32 rank);

/*
 * The next one for this rank, which then takes it by the number it has got, if
 * no other thread took it meanwhile.  Next: 0, or -EAGAIN.
 */
int acp_event_next(struct acp_context *ctx, struct acp_event *event, u64 *number);
bool acp_event_take(struct acp_context *ctx, u64 number);

/* Is there one? */
static inline bool acp_event_pending(const struct acp_context *ctx)
{
	return READ_ONCE(ctx->job->events.count) != READ_ONCE(ctx->events_read);
}

/* ACP_RANK_ of any rank of the job, and why it is down. */
u32 acp_event_state(struct acp_job *job, u32 rank, u8 *status);

#endif /* ACP_EVENT_H */
