/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pings: how long is the way to another node of a job and back, from one
 * kernel to the other, on the job's own flow?  Nobody sleeps for it: who asked
 * over netlink gets a message when the answer is there, or when it will not be.
 */
#ifndef ACP_PING_H
#define ACP_PING_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct acp_item;
struct acp_job;
struct acp_msg;
struct acp_peer;
struct net;

/* Of a job. */
struct acp_pings {
	spinlock_t lock;	/* bh; guards all */
	struct list_head open;	/* those nobody was told of */
	u32 count;		/* of these, and those that only wait to be sent */
	u64 last;		/* number of the latest */
	bool over;		/* no more: the job has ended here */
};

/* What is asked, and whom to tell. */
struct acp_ping_ask {
	u32 node, color;
	u32 rank;		/* if has_rank: told again */
	bool has_rank;
	u32 size;		/* bytes of payload */
	u32 timeout;		/* ms */
	u32 portid, seq;	/* of the request */
};

/* What came of it. */
struct acp_ping_result {
	struct acp_ping_ask ask;
	bool opened;		/* the flow had to be opened first */
	u64 rtt;		/* ns */
	int error;		/* or why there is none: -errno */
};

void acp_pings_init(struct acp_pings *p);

/* Send one.  0; -ENOMEM, -EBUSY, -EDQUOT, -ENOENT (the job has ended).  The job is held. */
int acp_ping_start(struct acp_job *job, const struct acp_ping_ask *ask);

/* An answer came; one's item has been delivered, or will not be.  BH off. */
void acp_ping_answered(struct acp_peer *peer, const struct acp_msg *m);
void acp_ping_sent(struct acp_item *item);

/* The job ends: whoever waits is told. */
void acp_pings_end(struct acp_job *job);

/* The socket is gone: nobody is to be told. */
void acp_pings_forget(struct net *net, u32 portid);

#endif /* ACP_PING_H */
