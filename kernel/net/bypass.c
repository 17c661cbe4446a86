// SPDX-License-Identifier: GPL-2.0-only
/* Shortcuts around the network stack: see bypass.h. */
#include <linux/bpf-cgroup.h>
#include <linux/ip.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/neighbour.h>
#include <net/raw.h>
#include <net/route.h>
#include <net/udp.h>
#include <net/xfrm.h>
#include "bypass.h"
#include "../compat.h"

/* Is no hook (of a firewall, security module, connection tracking) registered there? */
static bool no_hooks(const struct net *net, unsigned int hook)
{
	return !rcu_access_pointer(net->nf.hooks_ipv4[hook]);
}

/*
 * With BH off, no neighbour or hook is freed, as in an RCU read-side critical section.  Only
 * lockdep needs the real one.
 */
static inline void all_stay(void)
{
	if (IS_ENABLED(CONFIG_PROVE_RCU))
		rcu_read_lock();
}

static inline void all_may_go(void)
{
	if (IS_ENABLED(CONFIG_PROVE_RCU))
		rcu_read_unlock();
}

/* ---- transmission ---- */

/* As ip_skb_dst_mtu() for datagrams that are not forwarded, mostly without a call. */
static u32 route_mtu(const struct dst_entry *dst, const struct net_device *dev)
{
	if (((const struct rtable *)dst)->rt_pmtu || dst_metric_raw(dst, RTAX_MTU))
		return dst_mtu(dst);
	return READ_ONCE(dev->mtu);
}

/* Would it go to the device of its route unchanged and in one piece? */
static bool may_xmit(struct net *net, const struct sk_buff *skb, const struct dst_entry *dst)
{
	const struct net_device *dev = READ_ONCE(dst->dev);

	/* ip_output: neither IPsec, nor multicast, nor a dead route. */
	return READ_ONCE(dst->output) == ip_output && !dst->lwtstate &&
	       ((const struct rtable *)dst)->rt_type == RTN_UNICAST &&
	       no_hooks(net, NF_INET_LOCAL_OUT) && !netif_is_l3_slave(dev) &&
	       skb_headroom(skb) >= LL_RESERVED_SPACE(dev) && !skb_is_gso(skb) &&
	       !IPCB(skb)->frag_max_size && skb->len <= route_mtu(dst, dev);
}

/*
 * As neigh_output(), but with the cached header also while the neighbour entry is in state DELAY or
 * PROBE: neigh_resolve_output() would build the same header again.
 */
static int to_known(struct neighbour *neigh, struct sk_buff *skb, bool is_v6)
{
	const u8 valid = NUD_CONNECTED | NUD_DELAY | NUD_PROBE;
	unsigned long now = jiffies;

	if (is_v6 || !(READ_ONCE(neigh->nud_state) & valid) || !READ_ONCE(neigh->hh.hh_len))
		return neigh_output(neigh, skb, is_v6);
	/* Mark the entry as used, so that garbage collection spares it. */
	if (READ_ONCE(neigh->used) != now)
		WRITE_ONCE(neigh->used, now);
	return neigh_hh_output(&neigh->hh, skb);
}

/* As ip_finish_output2(). */
static inline int to_neighbour(struct sk_buff *skb)
{
	struct neighbour *neigh;
	bool is_v6 = false;
	int err;

	all_stay();
	neigh = ip_neigh_for_gw(skb_rtable(skb), skb, &is_v6);
	if (!IS_ERR(neigh)) {
		if (skb_get_dst_pending_confirm(skb))
			neigh_confirm(neigh);
		err = to_known(neigh, skb, is_v6);
	} else {
		err = PTR_ERR(neigh);
		kfree_skb(skb);
	}
	all_may_go();
	return err;
}

/* As ip_finish_output(): BPF programs of control groups decide last. */
static inline int finish(struct sock *sk, struct sk_buff *skb)
{
	int err = BPF_CGROUP_RUN_PROG_INET_EGRESS(sk, skb);

	if (unlikely(err && err != NET_XMIT_CN)) {
		kfree_skb(skb);
		return err;
	}
	return to_neighbour(skb) ?: err;
}

/* As nf_hook(). */
static int after_routing(struct net *net, struct sock *sk, struct sk_buff *skb)
{
	struct nf_hook_state state acp_uncleared;
	struct nf_hook_entries *all;
	int err = 1;

	all_stay();
	all = rcu_dereference(net->nf.hooks_ipv4[NF_INET_POST_ROUTING]);
	if (all) {
		nf_hook_state_init(&state, NF_INET_POST_ROUTING, NFPROTO_IPV4, NULL, skb->dev, sk,
				   net, ip_output);
		err = nf_hook_slow(skb, &state, all, 0);
	}
	all_may_go();
	return err;
}

/*
 * Count what ip_local_out() counts.  Since 6.7, transmissions count separately: acp_bypass_xmit()
 * does.
 */
static void count_request(struct net *net)
{
#ifdef ACP_HAS_OUTREQUESTS
	IP_INC_STATS(net, IPSTATS_MIB_OUTREQUESTS);
#endif
}

int acp_bypass_xmit(struct acp_node *node, struct sock *sk, struct sk_buff *skb)
{
	struct dst_entry *dst = skb_dst(skb);
	struct net *net = node->net;
	struct iphdr *iph = ip_hdr(skb);
	u32 len = skb->len;
	int err;

	if (!acp_bypass_out(node, sk) || !may_xmit(net, skb, dst))
		return ip_local_out(net, sk, skb);
	acp_stat_inc(node, tx_direct);
	count_request(net);
	iph->tot_len = htons(len);
	iph->check = 0;
	iph->check = ip_fast_csum(iph, iph->ihl);
	skb->dev = READ_ONCE(dst->dev);
	/*
	 * If a hook queues it, ip_output() continues, not our code, which may be gone by then.  The
	 * flag keeps ip_output() from running the hooks again.
	 */
	IPCB(skb)->flags |= IPSKB_REROUTED;
	err = after_routing(net, sk, skb);
	/* ip_output() also counts what was queued.  A datagram with a new route is sent there. */
	if (!err)
		return 0;
	if (err == 1 && unlikely(skb_dst(skb) != dst))
		return dst_output(net, sk, skb);
	IP_UPD_PO_STATS(net, IPSTATS_MIB_OUT, len);
	return err == 1 ? finish(sk, skb) : err;
}

/* ---- reception ---- */

/* Is the UDP checksum known to be right without reading the bytes? */
static bool sum_right(const struct sk_buff *skb, const struct iphdr *iph, const struct udphdr *uh)
{
	if (skb_csum_unnecessary(skb) || !uh->check)
		return true;
	/*
	 * The device has summed up everything from the IP header on; the sum of that header is 0.
	 */
	return skb->ip_summed == CHECKSUM_COMPLETE &&
	       !csum_fold(csum_add(skb->csum, csum_tcpudp_nofold(iph->saddr, iph->daddr,
								 ntohs(uh->len), IPPROTO_UDP, 0)));
}

/* Does no IPsec policy apply, and was the datagram not encrypted? */
static bool no_policy(struct net *net, struct sk_buff *skb)
{
#ifdef CONFIG_XFRM
	return __xfrm_check_nopolicy(net, skb, XFRM_POLICY_IN);
#else
	return true;
#endif
}

/* Does no raw socket receive UDP (or another protocol with the same hash)? */
static bool no_listener(const struct net *net)
{
	return hlist_empty(&raw_v4_hashinfo.ht[raw_hashfunc(net, IPPROTO_UDP)]);
}

bool acp_bypass_may_receive(const struct sk_buff *skb)
{
	const struct dst_entry *dst = skb_dst(skb);

	if (dst->lwtstate || READ_ONCE(dst->input) != ip_local_deliver ||
	    netif_is_l3_master(skb->dev))
		return false;
#ifdef CONFIG_IP_ROUTE_CLASSID
	return !dst->tclassid;
#else
	return true;
#endif
}

bool acp_bypass_receive(struct net *net, struct sk_buff *skb)
{
	const struct iphdr *iph = ip_hdr(skb);
	const struct udphdr *uh = (const struct udphdr *)(iph + 1);

	/* A datagram that a hook in PRE_ROUTING has queued may continue in another context. */
	if (!in_softirq() || !no_hooks(net, NF_INET_LOCAL_IN) || skb_is_gso(skb) ||
	    ntohs(uh->len) != skb->len - sizeof(*iph) || !sum_right(skb, iph, uh) ||
	    !no_policy(net, skb) || !no_listener(net))
		return false;
	__IP_INC_STATS(net, IPSTATS_MIB_INDELIVERS);
	acp_count_udp(net, UDP_MIB_INDATAGRAMS);
	nf_reset_ct(skb);
	__skb_pull(skb, sizeof(*iph));
	skb_set_transport_header(skb, 0);
	return true;
}
