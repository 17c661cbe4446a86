/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pings: they measure the round-trip time to another node of a job, from kernel to kernel, on the
 * job's own flow.  No task sleeps meanwhile: the netlink socket that asked gets a message when the
 * answer arrives, or when it is certain that none will.
 */
#ifndef ACP_PING_H
#define ACP_PING_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct acp_item;
struct acp_job;
struct acp_msg;
struct acp_node;
struct acp_peer;

/* The pings of a job. */
struct acp_pings {
	spinlock_t lock;	/* bh; guards all below */
	struct list_head open;	/* those whose result was not sent yet */
	u32 count;		/* of these, and of ended ones that the transport still has */
	u64 last;		/* number of the last one */
	bool over;		/* the job has ended here: no more begin */
};

/* A request, and where its result goes. */
struct acp_ping_ask {
	u32 node, color;
	u32 rank;		/* if has_rank: repeated in the result */
	bool has_rank;
	u32 size;		/* bytes of payload */
	u32 timeout;		/* ms */
	u32 portid, seq;	/* of the netlink request */
};

/* The result. */
struct acp_ping_result {
	struct acp_ping_ask ask;
	bool opened;		/* the flow was not open at first */
	u64 rtt;		/* ns; valid if error is 0 */
	int error;		/* 0 or -errno */
};

/**
 * acp_pings_init() - prepare the pings of a job
 * @pings: zeroed
 *
 * Context: any.
 */
static inline void acp_pings_init(struct acp_pings *pings)
{
	spin_lock_init(&pings->lock);
	INIT_LIST_HEAD(&pings->open);
}

/**
 * acp_ping_start() - send a ping
 * @job: the job; the caller holds a reference
 * @ask: what to send, and where the result goes; color is valid, node is another node of the job
 *
 * Context: process context, may sleep.
 * Return: 0; -ENOMEM; -EBUSY if ACP_NL_PINGS_MAX pings of the job are in flight; -EDQUOT if there
 * is no flow to the node and none can be made; -ENOENT if the job has ended on this node.
 */
int acp_ping_start(struct acp_job *job, const struct acp_ping_ask *ask);

/* An answer arrived.  BH off. */
void acp_ping_answered(struct acp_peer *peer, const struct acp_msg *m);

/* The transport has delivered or dropped the item of a ping.  BH off. */
void acp_ping_sent(struct acp_item *item);

/**
 * acp_pings_end() - end all pings of a job
 * @job: the job, which ends on this node
 *
 * Pings without an answer end with -ECANCELED; the results are sent.  No more begin.
 *
 * Context: process context.
 */
void acp_pings_end(struct acp_job *job);

/**
 * acp_pings_forget() - a netlink socket was closed: send it no results
 * @node: the node
 * @portid: of the socket
 *
 * Context: process context; takes the locks of the pings of all jobs, one at a time.
 */
void acp_pings_forget(struct acp_node *node, u32 portid);

#endif /* ACP_PING_H */
