// SPDX-License-Identifier: GPL-2.0-only
/* Past a network stack that has nothing to decide: see bypass.h. */
#include <linux/ip.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/udp.h>
#include <linux/version.h>
#include <net/ip.h>
#include <net/neighbour.h>
#include <net/raw.h>
#include <net/route.h>
#include <net/udp.h>
#include <net/xfrm.h>
#include "bypass.h"

/* Has nobody (firewall, security module, connection tracking) a hook there? */
static bool no_hooks(const struct net *net, unsigned int hook)
{
	return !rcu_access_pointer(net->nf.hooks_ipv4[hook]);
}

/* BH is off, which is as good: no neighbour or hook goes meanwhile.  But lockdep does not know. */
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

/* ---- out ---- */

/* As ip_skb_dst_mtu() of what is not forwarded, mostly without a call. */
static u32 route_mtu(const struct dst_entry *dst, const struct net_device *dev)
{
	if (((const struct rtable *)dst)->rt_pmtu || dst_metric_raw(dst, RTAX_MTU))
		return dst_mtu(dst);
	return READ_ONCE(dev->mtu);
}

/* Would it go to the device of its route, unchanged and in one piece? */
static bool may_xmit(struct net *net, const struct sk_buff *skb, const struct dst_entry *dst)
{
	const struct net_device *dev = READ_ONCE(dst->dev);

	/* ip_output: no IPsec, no multicast, and not dead. */
	return READ_ONCE(dst->output) == ip_output && !dst->lwtstate &&
	       ((const struct rtable *)dst)->rt_type == RTN_UNICAST &&
	       no_hooks(net, NF_INET_LOCAL_OUT) && !netif_is_l3_slave(dev) &&
	       skb_headroom(skb) >= LL_RESERVED_SPACE(dev) && !skb_is_gso(skb) &&
	       !IPCB(skb)->frag_max_size && skb->len <= route_mtu(dst, dev);
}

/*
 * As neigh_output(), but with the header that is kept also where the neighbour is asked, or
 * about to be, whether it is still there: neigh_resolve_output() would write the same anew.
 */
static int to_known(struct neighbour *neigh, struct sk_buff *skb, bool is_v6)
{
	const u8 valid = NUD_CONNECTED | NUD_DELAY | NUD_PROBE;
	unsigned long now = jiffies;

	if (is_v6 || !(READ_ONCE(neigh->nud_state) & valid) || !READ_ONCE(neigh->hh.hh_len))
		return neigh_output(neigh, skb, is_v6);
	/* It is used: that keeps the table from forgetting it. */
	if (READ_ONCE(neigh->used) != now)
		WRITE_ONCE(neigh->used, now);
	return neigh_hh_output(&neigh->hh, skb);
}

/* As ip_finish_output2(). */
static int to_neighbour(struct sk_buff *skb)
{
	struct neighbour *neigh;
	bool is_v6 = false;
	int err;

	all_stay();
	neigh = ip_neigh_for_gw(skb_rtable(skb), skb, &is_v6);
	if (!IS_ERR(neigh)) {
		sock_confirm_neigh(skb, neigh);
		err = to_known(neigh, skb, is_v6);
	} else {
		err = PTR_ERR(neigh);
		kfree_skb(skb);
	}
	all_may_go();
	return err;
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

/* What ip_local_out() counts: since 6.7 apart from what leaves, which acp_bypass_xmit() counts. */
static void count_request(struct net *net)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
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

	if (!may_xmit(net, skb, dst))
		return ip_local_out(net, sk, skb);
	acp_stat_inc(node, tx_direct);
	count_request(net);
	iph->tot_len = htons(len);
	iph->check = 0;
	iph->check = ip_fast_csum(iph, iph->ihl);
	skb->dev = READ_ONCE(dst->dev);
	/* Who queues it there hands it to the kernel's function, not to us, who may be gone. */
	IPCB(skb)->flags |= IPSKB_REROUTED;
	err = after_routing(net, sk, skb);
	/* That function counts what was queued; and what got another route goes there now. */
	if (!err)
		return 0;
	if (err == 1 && unlikely(skb_dst(skb) != dst))
		return dst_output(net, sk, skb);
	IP_UPD_PO_STATS(net, IPSTATS_MIB_OUT, len);
	return err == 1 ? to_neighbour(skb) : err;
}

/* ---- in ---- */

/* Is the UDP checksum right, without a look at the bytes?  If that is not known: no. */
static bool sum_right(const struct sk_buff *skb, const struct iphdr *iph, const struct udphdr *uh)
{
	if (skb_csum_unnecessary(skb) || !uh->check)
		return true;
	/* The card has summed up all from the IP header on, and that header's sum is 0. */
	return skb->ip_summed == CHECKSUM_COMPLETE &&
	       !csum_fold(csum_add(skb->csum, csum_tcpudp_nofold(iph->saddr, iph->daddr,
								 ntohs(uh->len), IPPROTO_UDP, 0)));
}

/* Is there no IPsec policy, and was it not encrypted? */
static bool no_policy(struct net *net, struct sk_buff *skb)
{
#ifdef CONFIG_XFRM
	return __xfrm_check_nopolicy(net, skb, XFRM_POLICY_IN);
#else
	return true;
#endif
}

/* Does no raw socket listen to UDP?  (Or to another protocol of that hash.) */
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

	/* Who queued it in a chain of PRE_ROUTING may let it go on from elsewhere. */
	if (!in_softirq() || !no_hooks(net, NF_INET_LOCAL_IN) || skb_is_gso(skb) ||
	    ntohs(uh->len) != skb->len - sizeof(*iph) || !sum_right(skb, iph, uh) ||
	    !no_policy(net, skb) || !no_listener(net))
		return false;
	__IP_INC_STATS(net, IPSTATS_MIB_INDELIVERS);
	__UDP_INC_STATS(net, UDP_MIB_INDATAGRAMS, 0);
	nf_reset_ct(skb);
	__skb_pull(skb, sizeof(*iph));
	skb_set_transport_header(skb, 0);
	return true;
}
