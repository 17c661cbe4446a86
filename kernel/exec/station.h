/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The station executes commands: those from the rings of ranks on this node (command station), and
 * those in messages from other nodes (delegate station).  See core/cmd.h for what happens on which
 * node, and upcall.h for the calls from lower layers.
 */
#ifndef ACP_STATION_H
#define ACP_STATION_H

#include "../job/rank.h"
#include "../job/node.h"
#include "../upcall.h"

#define ACP_BATCH_OTHERS	64

/*
 * Peers that were given items and not flushed yet, so that the items of each share frames.
 * Consecutive puts to one peer are collected here first, and it gets all of them in one call.
 */
struct acp_batch {
	struct acp_peer *peer;		/* that of the last item */
	struct list_head items;		/* collected for it; valid if count is not 0 */
	u32 count;
	u32 epoch;			/* incarnation of its flow that they belong to */
	struct acp_region *source;	/* region of the last word read, kept for the next one */
	u64 others;			/* bit i: other[i] is one of the others; not cleared: */
	struct acp_peer *other[ACP_BATCH_OTHERS];
};

static inline void acp_batch_init(struct acp_batch *batch)
{
	batch->peer = NULL;
	batch->count = 0;
	batch->source = NULL;
	batch->others = 0;
}

/* Send what was collected, and release the region.  BH off. */
void acp_batch_flush(struct acp_batch *batch);

/*
 * May a command be delegated to another node?  Not while that node has ACP_DELEGATED commands of
 * ours.  If the result goes to a third node, only when the flow to that node is open: only an open
 * flow detects that the third node begins a new incarnation.  acp_station_idle() asks again.
 * Returns true with *status set if the command ends with that status instead.  BH off.
 */
bool acp_station_ready(struct acp_job *job, struct acp_cmd *cmd, u8 *status);

/* Start a command that was checked and whose order allows it.  BH off. */
void acp_station_start(struct acp_queue *queue, struct acp_cmd *cmd, struct acp_batch *batch);

/**
 * acp_station_init() - allocate what all namespaces share
 *
 * Context: process context, may sleep.
 * Return: 0 or -ENOMEM.
 */
int acp_station_init(void);

/**
 * acp_station_exit() - free it when the module is unloaded
 *
 * All jobs have ended and all items are freed.
 *
 * Context: process context, may sleep.
 */
void acp_station_exit(void);

#endif /* ACP_STATION_H */
