/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Notifications by netlink: events (netlink_event.c) and results of pings.  The
 * functions may be called in any context.  Without a listener an event costs
 * next to nothing.  If there is no memory for an event, listeners get -ENOBUFS.
 */
#ifndef ACP_NOTIFY_H
#define ACP_NOTIFY_H

#include <linux/uidgid.h>
#include "acp_nl.h"

struct acp_job;
struct acp_node;
struct acp_peer;
struct acp_ping_result;

/**
 * acp_nl_tell_init() - prepare the notifications of a new network namespace
 * @node: the namespace's node
 *
 * Context: process.
 */
void acp_nl_tell_init(struct acp_node *node);

/**
 * acp_nl_tell_job() - send an event of a job
 * @job: the job
 * @event: ACP_NL_EVENT_
 *
 * Context: any.
 */
void acp_nl_tell_job(struct acp_job *job, u32 event);

/**
 * acp_nl_tell_rank() - send an event of a rank
 * @job: the job
 * @rank: number of the rank
 * @finished: the rank has completed a final barrier
 * @event: ACP_NL_EVENT_
 *
 * Context: any.
 */
void acp_nl_tell_rank(struct acp_job *job, u32 rank, bool finished, u32 event);

/**
 * acp_nl_tell_node() - send an event of another node
 * @peer: the node, on one color
 * @event: ACP_NL_EVENT_NODE_LOST, which includes the flow's status, or ACP_NL_EVENT_NODE_BACK
 *
 * Context: any.
 */
void acp_nl_tell_node(struct acp_peer *peer, u32 event);

/**
 * acp_nl_tell_limit() - send the event that a limit was reached
 * @node: the node; the rate of these events is limited
 * @uid: the user who reached the limit
 * @limit: ACP_LIMIT_
 *
 * Context: any.
 */
void acp_nl_tell_limit(struct acp_node *node, kuid_t uid, u32 limit);

/**
 * acp_nl_tell_ping() - send the result of a ping to its requester
 * @job: the job
 * @result: the result, which includes the requester's port
 *
 * Without memory the requester gets no message.
 *
 * Context: any.
 */
void acp_nl_tell_ping(struct acp_job *job, const struct acp_ping_result *result);

#endif /* ACP_NOTIFY_H */
