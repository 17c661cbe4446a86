/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Early demultiplexing.  The kernel looks up a route and a socket for each datagram that it
 * receives.  For connected sockets it remembers both and skips the lookups.  Our sockets are not
 * connected, since they receive from all peers.  So we remember route and socket by source address
 * and attach them to a datagram at the end of PRE_ROUTING, where the kernel does it itself, as long
 * as the route is valid.  Firewalls see the datagram as usual; fields that rules may match are
 * remembered, too.
 *
 * Early demultiplexing is off if the administrator disables it, if a BPF program selects sockets,
 * or if rp_filter has changed since.  Entries expire after a second.
 */
#ifndef ACP_DEMUX_H
#define ACP_DEMUX_H

#include <linux/skbuff.h>
#include <net/sock.h>
#include "../job/node.h"

/*
 * Register the hooks of the node, unless that was done before; they stay until acp_demux_stop().
 * @receive takes a datagram that is delivered directly, starting at its UDP header.  Return 0 or an
 * error.  Sleeps.
 */
int acp_demux_start(struct acp_node *node,
		    void (*receive)(struct sock *sk, struct sk_buff *skb));
/**
 * acp_demux_stop() - unregister the hooks of a node
 * @node: node that is being destroyed; all its sockets are closed, which
 *        has emptied the table
 *
 * Does nothing if acp_demux_start() never succeeded.
 *
 * Context: process context; sleeps for an RCU grace period.
 */
void acp_demux_stop(struct acp_node *node);

/*
 * Remember the route and the socket of an authentic frame of the job, for similar ones.  Softirq.
 */
void acp_demux_learn(const struct acp_job *job, struct sock *sk, const struct sk_buff *skb);

/* Forget a socket that will be freed after a grace period; no frame learns it any more. */
void acp_demux_forget(struct acp_node *node, const struct sock *sk);

/**
 * acp_demux_forget_all() - forget all routes and sockets of a node
 * @node: the node, whose sysctl net.acp.bypass was set
 *
 * Frames that are received after the call are learned according to the new setting.
 *
 * Context: process context; takes node->lock, and sleeps for an RCU grace period.
 */
void acp_demux_forget_all(struct acp_node *node);

#endif /* ACP_DEMUX_H */
