/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Notices: what netlink tells without being asked (netlink_event.c), and what
 * came of a ping.  Any context; without a listener it costs next to nothing.
 * What cannot be told for want of memory, listeners hear as -ENOBUFS.
 */
#ifndef ACP_NOTICE_H
#define ACP_NOTICE_H

#include <linux/uidgid.h>
#include "acp_nl.h"

struct acp_job;
struct acp_node;
struct acp_peer;
struct acp_ping_result;

/* A namespace begins. */
void acp_nl_tell_init(struct acp_node *node);

/* Events, ACP_NL_EVENT_. */
void acp_nl_tell_job(struct acp_job *job, u32 event);
void acp_nl_tell_rank(struct acp_job *job, u32 rank, bool finished, u32 event);
void acp_nl_tell_node(struct acp_peer *peer, u32 event);
void acp_nl_tell_limit(struct acp_node *node, kuid_t uid, u32 limit);

/* The result of a ping, to whoever asked. */
void acp_nl_tell_ping(struct acp_job *job, const struct acp_ping_result *result);

#endif /* ACP_NOTICE_H */
