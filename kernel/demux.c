// SPDX-License-Identifier: GPL-2.0-only
/* Early demultiplexing: see demux.h. */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <linux/netfilter_bridge.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/slab.h>
#include <linux/udp.h>
#include <net/dst.h>
#include <net/ip.h>
#include <net/ip6_fib.h>
#include "bypass.h"
#include "demux.h"

#define KNOWN	256	/* 2^n */
#define TURN	16	/* misses until an entry is taken over */

/* Where the last datagram from an address went.  RCU. */
struct known {
	u8 family;
	__be16 port;		/* of both ends */
	int device;
	__be32 from[4], to[4];	/* addresses */
	struct dst_entry *dst;
	u32 cookie;
	bool direct;		/* what has this route may be given to the socket at once */
	struct sock *sk;
	struct rcu_head rcu;
};

struct acp_demux {
	void (*receive)(struct sock *sk, struct sk_buff *skb);
	struct nf_hook_ops hooks[2];	/* IPv4, IPv6 */
	struct known *known[KNOWN];	/* by address: those of a job are often consecutive */
};

static DEFINE_PER_CPU(u32, misses);

static struct known **entry(struct acp_demux *demux, __be32 from)
{
	return &demux->known[be32_to_cpu(from) % KNOWN];
}

/* Does it go where the one that is known went?  Its port is in the skb's head, or unknown. */
static bool is_like4(const struct sk_buff *skb, const struct known *k)
{
	const struct iphdr *iph = ip_hdr(skb);
	const struct udphdr *uh = (const struct udphdr *)(iph + 1);

	return k->from[0] == iph->saddr && k->to[0] == iph->daddr &&
	       k->family == AF_INET && k->device == skb->dev->ifindex &&
	       iph->protocol == IPPROTO_UDP && iph->ihl == sizeof(*iph) / 4 &&
	       !ip_is_fragment(iph) && (u8 *)(uh + 1) <= skb_tail_pointer(skb) &&
	       uh->dest == k->port;
}

static bool is_like6(const struct sk_buff *skb, const struct known *k)
{
	const struct ipv6hdr *iph = ipv6_hdr(skb);
	const struct udphdr *uh = (const struct udphdr *)(iph + 1);

	return k->family == AF_INET6 && k->device == skb->dev->ifindex &&
	       iph->nexthdr == IPPROTO_UDP && (u8 *)(uh + 1) <= skb_tail_pointer(skb) &&
	       uh->dest == k->port && !memcmp(k->from, &iph->saddr, sizeof(k->from)) &&
	       !memcmp(k->to, &iph->daddr, sizeof(k->to));
}

/*
 * UDP takes a train apart before it gives it to a socket of our kind, unless the train is said to
 * be one of a tunnel, which our frames are not taken for anywhere else.  But what is said of it
 * is said of its clones, too, which captures have, or a mirror sends on.
 */
static void keep_whole(struct sk_buff *skb)
{
	if ((skb_shinfo(skb)->gso_type & SKB_GSO_UDP_L4) &&
	    !(skb_shinfo(skb)->gso_type & SKB_GSO_FRAGLIST) &&
	    !skb_unclone(skb, GFP_ATOMIC | __GFP_NOWARN))
		skb_shinfo(skb)->gso_type |= SKB_GSO_UDP_TUNNEL;
}

static void attach(struct sk_buff *skb, const struct known *k)
{
	struct dst_entry *dst = dst_check(k->dst, k->cookie);

	if (!dst)
		return;
	if (skb_is_gso(skb))
		keep_whole(skb);
	skb_dst_set_noref(skb, dst);
	skb->sk = k->sk;
	skb->destructor = sock_pfree;
}

/* Not in a bridge: what RCU alone keeps must not be queued, and its route counts for nothing. */
static bool untouched(const struct sk_buff *skb)
{
#if IS_ENABLED(CONFIG_BRIDGE_NETFILTER)
	if (nf_bridge_info_exists(skb))
		return false;
#endif
	return !skb_dst(skb) && !skb->sk && !skb->destructor && skb->pkt_type == PACKET_HOST;
}

/* Does nobody come after us, who was there first and wants to be last, too? */
static bool is_last(const struct net *net, const void *demux)
{
	const struct nf_hook_entries *all =
		rcu_dereference(net->nf.hooks_ipv4[NF_INET_PRE_ROUTING]);

	return all && all->hooks[all->num_hook_entries - 1].priv == demux;
}

static unsigned int before_routing4(void *demux, struct sk_buff *skb,
				    const struct nf_hook_state *state)
{
	const struct known *k = READ_ONCE(*entry(demux, ip_hdr(skb)->saddr));

	if (!k || !untouched(skb) || !is_like4(skb, k))
		return NF_ACCEPT;
	if (k->direct && is_last(state->net, demux) && acp_bypass_valid(state->net, k->dst) &&
	    acp_bypass_receive(state->net, skb)) {
		((const struct acp_demux *)demux)->receive(k->sk, skb);
		return NF_STOLEN;
	}
	attach(skb, k);
	return NF_ACCEPT;
}

static unsigned int before_routing6(void *demux, struct sk_buff *skb,
				    const struct nf_hook_state *state)
{
	const struct known *k = READ_ONCE(*entry(demux, ipv6_hdr(skb)->saddr.s6_addr32[3]));

	if (k && untouched(skb) && is_like6(skb, k))
		attach(skb, k);
	return NF_ACCEPT;
}

static const struct nf_hook_ops hooks[] = {
	{
		.hook = before_routing4, .pf = NFPROTO_IPV4,
		.hooknum = NF_INET_PRE_ROUTING, .priority = NF_IP_PRI_LAST,
	},
	{
		.hook = before_routing6, .pf = NFPROTO_IPV6,
		.hooknum = NF_INET_PRE_ROUTING, .priority = NF_IP6_PRI_LAST,
	},
};

int acp_demux_start(struct acp_node *node,
		    void (*receive)(struct sock *sk, struct sk_buff *skb))
{
	struct acp_demux *demux;
	u32 i;
	int err;

	if (node->demux)
		return 0;
	demux = kzalloc(sizeof(*demux), GFP_KERNEL);
	if (!demux)
		return -ENOMEM;
	demux->receive = receive;
	memcpy(demux->hooks, hooks, sizeof(hooks));
	for (i = 0; i < ARRAY_SIZE(hooks); i++)
		demux->hooks[i].priv = demux;
	err = nf_register_net_hooks(node->net, demux->hooks, ARRAY_SIZE(hooks));
	if (err)
		kfree(demux);
	else
		node->demux = demux;
	return err;
}

void acp_demux_stop(struct acp_node *node)
{
	if (!node->demux)
		return;
	nf_unregister_net_hooks(node->net, node->demux->hooks, ARRAY_SIZE(hooks));
	synchronize_rcu();
	kfree(node->demux);
	node->demux = NULL;
}

/* ---- what is known ---- */

/* Who found it a moment ago may go on with it, and with its route: both go after a grace period. */
static void known_free(struct known *k)
{
	dst_release(k->dst);
	kfree_rcu(k, rcu);
}

static void set_way(struct known *k, const struct sk_buff *skb)
{
	memset(k, 0, sizeof(*k));
	k->port = udp_hdr(skb)->dest;
	k->device = skb->dev->ifindex;
	if (ip_hdr(skb)->version == 4) {
		k->family = AF_INET;
		k->from[0] = ip_hdr(skb)->saddr;
		k->to[0] = ip_hdr(skb)->daddr;
	} else {
		k->family = AF_INET6;
		memcpy(k->from, &ipv6_hdr(skb)->saddr, sizeof(k->from));
		memcpy(k->to, &ipv6_hdr(skb)->daddr, sizeof(k->to));
	}
}

static struct known *known_new(struct sock *sk, const struct sk_buff *skb)
{
	struct known *k = kmalloc(sizeof(*k), GFP_ATOMIC | __GFP_NOWARN);

	if (!k)
		return NULL;
	set_way(k, skb);
	k->sk = sk;
	k->dst = skb_dst(skb);
	k->direct = k->family == AF_INET && acp_bypass_may_receive(skb);
	if (k->family == AF_INET6)
		k->cookie = rt6_get_cookie((struct rt6_info *)k->dst);
	if (dst_hold_safe(k->dst))
		return k;
	kfree(k);
	return NULL;
}

/* Did this one go the way that the next one will be sent? */
static bool is_known(const struct known *k, const struct sock *sk, const struct sk_buff *skb)
{
	if (!k || k->sk != sk || k->dst != skb_dst(skb) || k->device != skb->dev->ifindex)
		return false;
	/* Its port and address are the socket's. */
	if (ip_hdr(skb)->version == 4)
		return k->from[0] == ip_hdr(skb)->saddr;
	return !memcmp(k->from, &ipv6_hdr(skb)->saddr, sizeof(k->from));
}

void acp_demux_learn(struct acp_node *node, struct sock *sk, const struct sk_buff *skb)
{
	struct known **e = entry(node->demux, ip_hdr(skb)->version == 4 ?
				 ip_hdr(skb)->saddr : ipv6_hdr(skb)->saddr.s6_addr32[3]);
	struct known *k = READ_ONCE(*e);

	if (!skb_dst(skb) || !skb->dev || is_known(k, sk, skb))
		return;
	/* Sources that share an entry take turns, but not at each frame; a stale one has none. */
	if (k && dst_check(k->dst, k->cookie) && this_cpu_inc_return(misses) % TURN)
		return;
	k = known_new(sk, skb);
	if (!k)
		return;
	k = xchg(e, k);
	if (k)
		known_free(k);
}

void acp_demux_forget(struct acp_node *node, const struct sock *sk)
{
	u32 i;

	rcu_read_lock();
	for (i = 0; i < KNOWN; i++) {
		struct known *k = READ_ONCE(node->demux->known[i]);

		if (k && k->sk == sk && cmpxchg(&node->demux->known[i], k, NULL) == k)
			known_free(k);
	}
	rcu_read_unlock();
}
