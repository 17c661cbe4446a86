/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Early demultiplexing.  The kernel looks up a route and a socket for every
 * datagram that comes in; for connected sockets it remembers both and skips
 * the lookups.  Ours are not connected, they talk to all peers: so we remember
 * by address, and attach both to a datagram at the end of PRE_ROUTING, where
 * the kernel does it itself, as long as that route is valid.  Firewalls see
 * the datagram as any other; rules that would route it by something else than
 * its addresses do not.
 */
#ifndef ACP_DEMUX_H
#define ACP_DEMUX_H

#include <linux/skbuff.h>
#include <net/sock.h>
#include "node.h"

/*
 * From the first socket on (again and again: 0 or an error) until the node goes.
 * Sleep.  receive() takes a datagram whose way is known, from its UDP header on,
 * if nobody else has a say in it.
 */
int acp_demux_start(struct acp_node *node,
		    void (*receive)(struct sock *sk, struct sk_buff *skb));
void acp_demux_stop(struct acp_node *node);

/* An authentic frame came this way: others like it will.  Softirq. */
void acp_demux_learn(struct acp_node *node, struct sock *sk, const struct sk_buff *skb);

/* The socket, of which nobody learns any more, will be gone after a grace period. */
void acp_demux_forget(struct acp_node *node, const struct sock *sk);

#endif /* ACP_DEMUX_H */
