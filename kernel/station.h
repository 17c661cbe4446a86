/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The station: executes commands, whoever asked.  From its own ranks' rings
 * (command station) it gets commands to start; from other nodes (delegate
 * station) messages that arrived.  See core/cmd.h for what happens where, and
 * transport.h for the calls that come from below.
 */
#ifndef ACP_STATION_H
#define ACP_STATION_H

#include "context.h"
#include "node.h"

/*
 * Peers that got items and want a flush; consecutive items share frames.  Puts in a row
 * are put aside first, so that the peer gets them at once.
 */
struct acp_batch {
	struct acp_peer *peer;
	struct list_head items;		/* put aside for it, if there are any */
	u32 count;
	u32 life;			/* of its flow, that they go out in */
	struct acp_region *source;	/* of the last word read; the next one may be there */
};

static inline void acp_batch_init(struct acp_batch *batch)
{
	batch->peer = NULL;
	batch->count = 0;
	batch->source = NULL;
}

void acp_batch_flush(struct acp_batch *batch);

/*
 * May a command be asked of another node?  Not when that has ACP_DELEGATED of
 * ours; and if the result goes to a third node, only once the flow to it is
 * open, which alone tells when that node begins anew.  acp_station_idle() asks
 * again.  *status: what the command ends with instead.  BH off.
 */
bool acp_station_ready(struct acp_job *job, struct acp_cmd *cmd, u8 *status);

/* Start a command that was checked and may start.  BH off. */
void acp_station_start(struct acp_context *ctx, struct acp_cmd *cmd, struct acp_batch *batch);

/* A long copy is at its end, see acp_copies_start().  BH off. */
void acp_station_copied(struct acp_job *job, const struct acp_msg *m, u8 status,
			struct acp_item *done, struct acp_peer *peer);

int acp_station_init(void);
void acp_station_exit(void);

#endif /* ACP_STATION_H */
