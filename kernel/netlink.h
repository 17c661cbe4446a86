/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The generic netlink family of uapi/acp_nl.h.  netlink.c: the family, who may
 * do what, the node and its settings; netlink_job.c: jobs and what they are
 * made of; netlink_event.c: what is told without being asked.
 */
#ifndef ACP_NETLINK_H
#define ACP_NETLINK_H

#include <linux/uidgid.h>
#include "acp_nl.h"

struct acp_context;
struct acp_job;
struct acp_node;
struct acp_peer;
struct acp_ping_result;

int acp_nl_init(void);
void acp_nl_exit(void);

/*
 * Events, ACP_NL_EVENT_; without a listener that costs next to nothing.  Any
 * context.  What cannot be told for want of memory, listeners hear as -ENOBUFS.
 */
void acp_nl_tell_job(struct acp_job *job, u32 event);
void acp_nl_tell_rank(struct acp_context *ctx, u32 event);
void acp_nl_tell_node(struct acp_peer *peer, u32 event);
void acp_nl_tell_limit(struct acp_node *node, kuid_t uid, u32 limit);

/* The result of a ping, to whoever asked.  Any context. */
void acp_nl_tell_ping(struct acp_job *job, const struct acp_ping_result *result);

#endif /* ACP_NETLINK_H */
