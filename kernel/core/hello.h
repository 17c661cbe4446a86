/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which nodes communicate: how a node responds to a HELLO. The flow (flow.h) distinguishes the
 * incarnations of a peer. Before a HELLO reaches it, the peer must have the same settings of the
 * job as this node, and this node must take part in the job.
 */
#ifndef ACP_HELLO_H
#define ACP_HELLO_H

#include "flow.h"

/* Settings on which all nodes of a job must agree. */
struct acp_setup {
	u32 nprocs, nodes;
	u64 digest;
	bool encrypted;		/* frames are encrypted */
};

/* The state of this node in the job. */
struct acp_presence {
	bool here;		/* a rank has attached for good */
	bool assembling;	/* not all ranks have joined yet, and they still may */
};

/* Verdicts in addition to those of the flow (ACP_FLOW_); a bit mask. */
#define ACP_HELLO_ABSENT	32	/* too early: drop it */
#define ACP_HELLO_OTHER		64	/* the settings of the peer differ: report it */
#define ACP_HELLO_ASK		128	/* open the flow: only an answer proves the mismatch */

/**
 * acp_hello_fill() - fill the body of a HELLO
 * @h: body
 * @s: settings of the job
 *
 * Context: Any context.
 */
void acp_hello_fill(struct acp_frame_hello *h, const struct acp_setup *s);

/**
 * acp_hello_take() - process a HELLO frame
 * @f: flow to the sender
 * @s: settings of the job
 * @us: state of this node
 * @fr: header of the frame, which must be authentic
 * @h: body of the frame
 * @reply: filled if the verdict has ACP_FLOW_REPLY; the caller adds its body
 * @now: time in ns
 *
 * Context: The caller serializes calls on one flow.
 * Return: The verdict, flags ACP_FLOW_ and ACP_HELLO_.
 */
u32 acp_hello_take(struct acp_flow *f, const struct acp_setup *s, struct acp_presence us,
		   const struct acp_frame *fr, const struct acp_frame_hello *h,
		   struct acp_frame *reply, u64 now);

#endif /* ACP_HELLO_H */
