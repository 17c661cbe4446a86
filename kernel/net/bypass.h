/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shortcuts around steps of the network stack that would not affect a datagram.  A large part of
 * the cost of a short message is spent on steps that look for a firewall, a policy, a fragment or a
 * socket, and find none.
 *
 * The conditions are checked for each datagram, so a new rule takes effect with the next one;
 * rp_filter and early demultiplexing are checked once per tick.  Only steps without any effect are
 * bypassed, and the kernel's counters stay correct.  BPF programs of control groups, queueing
 * disciplines, the neighbour table, captures and XDP see every datagram.  The shortcuts are for
 * IPv4 only, which most clusters use.  The counters tx_direct and rx_direct count the datagrams
 * that took them.
 *
 * The sysctl net.acp.bypass of the namespace enables or disables the shortcuts.
 */
#ifndef ACP_BYPASS_H
#define ACP_BYPASS_H

#include <linux/bpf-cgroup.h>
#include <linux/skbuff.h>
#include <net/dst.h>
#include <net/net_namespace.h>
#include <net/route.h>
#include <net/sock.h>
#include "../job/node.h"

/* Values of net.acp.bypass. */
enum acp_bypass {
	ACP_BYPASS_NEVER,
	ACP_BYPASS_ALWAYS,	/* BPF programs of control groups run nevertheless */
	ACP_BYPASS_AUTO,	/* unless such a program is attached; the default */
};

/* Is a BPF program attached to the sender's control group or an ancestor of it?  RCU or BH off. */
#ifdef CONFIG_CGROUP_BPF
#define acp_bypass_has_program(sk, type)					\
	(cgroup_bpf_enabled(type) && cgroup_bpf_sock_enabled(sk, type))
#else
#define acp_bypass_has_program(sk, type)	(false)
#endif

static inline bool acp_bypass_allows(const struct acp_node *node, bool has_program)
{
	unsigned int bypass = READ_ONCE(node->bypass);

	return bypass == ACP_BYPASS_ALWAYS || (bypass == ACP_BYPASS_AUTO && !has_program);
}

/*
 * May datagrams of the job with this sender bypass steps on transmission?  Programs of other
 * control groups do not count: systemd attaches some to each service.
 */
static inline bool acp_bypass_out(const struct acp_node *node, struct sock *sk)
{
	return acp_bypass_allows(node, acp_bypass_has_program(sk, CGROUP_INET_EGRESS));
}

/* ... and on reception? */
static inline bool acp_bypass_in(const struct acp_node *node, struct sock *sk)
{
	return acp_bypass_allows(node, acp_bypass_has_program(sk, CGROUP_INET_INGRESS));
}

/*
 * Send an IPv4 datagram that has its headers and a route, as ip_local_out() would, but by the
 * shortest path.  BH off.
 */
int acp_bypass_xmit(struct acp_node *node, struct sock *sk, struct sk_buff *skb);

/* May datagrams with the route of this received IPv4 datagram be delivered directly? */
bool acp_bypass_may_receive(const struct sk_buff *skb);

/*
 * Is an IPv4 route still valid?  False may also mean unknown; dst_check() gives the exact answer.
 */
static inline bool acp_bypass_valid(struct net *net, const struct dst_entry *dst)
{
	return READ_ONCE(dst->obsolete) == DST_OBSOLETE_FORCE_CHK && !dst_xfrm(dst) &&
	       ((const struct rtable *)dst)->rt_genid == rt_genid_ipv4(net);
}

/*
 * May an IPv4 datagram in PRE_ROUTING, whose route and socket are known, be delivered to that
 * socket directly?  If so, prepare it as the stack would deliver it, starting at its UDP header,
 * and count it.  RCU.
 */
bool acp_bypass_receive(struct net *net, struct sk_buff *skb);

#endif /* ACP_BYPASS_H */
