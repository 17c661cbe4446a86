/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The route to a peer, and the longest datagrams that it carries.  All under peer->lock.
 *
 * peer->dst is the route or NULL; peer->mtu is the size of the longest frame that fits a datagram.
 */
#ifndef ACP_ROUTE_H
#define ACP_ROUTE_H

#include "bypass.h"
#include "udp.h"

/* Look up a route if the peer has no valid one. */
void acp_route_find(struct acp_peer *peer);

/* The same, with a fast path for a valid route; called before frames are built. */
static inline void acp_route_check(struct acp_peer *peer)
{
	if (!peer->dst || peer->job->family != AF_INET ||
	    !acp_bypass_valid(peer->job->node->net, peer->dst))
		acp_route_find(peer);
}

/* Recompute peer->mtu: the MTU of the path may have changed. */
void acp_route_measure(struct acp_peer *peer);

/*
 * Return the next smaller size of datagrams (bytes including the IP header) to try when a frame of
 * @size bytes does not get through, or 0 if there is none.
 */
u32 acp_route_narrower(const struct acp_peer *peer, u32 size);

/* Send no datagrams longer than @width (bytes including the IP header) for the next ten minutes. */
void acp_route_narrow(struct acp_peer *peer, u32 width, u64 now);

#endif /* ACP_ROUTE_H */
