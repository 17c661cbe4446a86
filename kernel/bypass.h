/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the network stack has nothing to decide about a datagram, it need not
 * walk through it: a good part of the cost of a short message are steps that
 * look for a firewall, a policy, a fragment, a socket and find that there is none.
 *
 * That is asked for each datagram, so that a rule which is added counts from
 * the next one on.  What is bypassed are only steps that would have had no
 * effect, and the kernel's counters go on; queueing disciplines, the neighbour
 * table, captures and XDP see everything.  IPv4 only, as most clusters are.
 * The counters tx_direct and rx_direct tell how many went that way.
 */
#ifndef ACP_BYPASS_H
#define ACP_BYPASS_H

#include <linux/skbuff.h>
#include <net/dst.h>
#include <net/net_namespace.h>
#include <net/route.h>
#include <net/sock.h>
#include "node.h"

/* ip_local_out() of an IPv4 datagram with its headers and a route, as short as may be.  BH off. */
int acp_bypass_xmit(struct acp_node *node, struct sock *sk, struct sk_buff *skb);

/* May what has the route of an IPv4 datagram that came be given to its socket at once? */
bool acp_bypass_may_receive(const struct sk_buff *skb);

/* Is an IPv4 route still the one?  If that is not clear: no; dst_check() knows. */
static inline bool acp_bypass_valid(struct net *net, const struct dst_entry *dst)
{
	return READ_ONCE(dst->obsolete) == DST_OBSOLETE_FORCE_CHK && !dst_xfrm(dst) &&
	       ((const struct rtable *)dst)->rt_genid == rt_genid_ipv4(net);
}

/*
 * May an IPv4 datagram in PRE_ROUTING, whose route and socket are known, be given to
 * that socket at once?  Then it is made as it would come there, from its UDP header
 * on, and counted.  RCU.
 */
bool acp_bypass_receive(struct net *net, struct sk_buff *skb);

#endif /* ACP_BYPASS_H */
