// SPDX-License-Identifier: GPL-2.0-only
/* Early demultiplexing: see demux.h. */
#include <linux/bpf-netns.h>
#include <linux/filter.h>
#include <linux/inetdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <linux/netfilter_bridge.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <linux/udp.h>
#include <net/dst.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ip6_fib.h>
#include "bypass.h"
#include "demux.h"

#define KNOWN	256	/* a power of two */
#define TURN	16	/* misses until another source takes over an entry */
#define LASTS	HZ	/* lifetime of an entry; some changes only show when it expires */

/* Route and socket of the last datagram from an address.  RCU. */
struct known {
	u8 family;
	int device;
	__be32 ports;		/* of both ends */
	__be32 class;		/* class4(), class6() */
	u32 mark;		/* skb->mark */
	u64 rp_filter;		/* rp_filter() when the source was last validated */
	unsigned long until;	/* jiffies, when the entry expires */
	unsigned long settled;	/* jiffies, when settings were last checked */
	u64 ends;		/* IPv4: both addresses */
	__be32 from[4], to[4];	/* IPv6: both addresses */
	struct dst_entry *dst;
	u32 cookie;
	bool direct;		/* datagrams with this route may be delivered directly */
	struct sock *sk;
	struct rcu_head rcu;
};

struct acp_demux {
	void (*receive)(struct sock *sk, struct sk_buff *skb);
	struct nf_hook_ops hooks[2];	/* IPv4, IPv6 */
	struct known *known[KNOWN];	/* by source address; those of a job are often in a row */
};

static DEFINE_PER_CPU(u32, misses);

static struct known **entry(struct acp_demux *demux, __be32 from)
{
	return &demux->known[be32_to_cpu(from) % KNOWN];
}

/*
 * The fields by which rules may distinguish datagrams with the same addresses and ports, and the
 * header length, which tells whether there are options.  Without ECN.
 */
static __be32 class4(const struct iphdr *iph)
{
	return *(const __be32 *)iph & htonl(0xff000000 | (0xff & ~INET_ECN_MASK) << 16);
}

static __be32 class6(const struct ipv6hdr *iph)
{
	return *(const __be32 *)iph & ~htonl(INET_ECN_MASK << 20);
}

static __be32 ports(const struct udphdr *uh)
{
	return *(const __be32 *)uh;
}

/* Return both addresses. */
static u64 ends4(const struct iphdr *iph)
{
	BUILD_BUG_ON(offsetofend(struct iphdr, saddr) != offsetof(struct iphdr, daddr));
	return get_unaligned((const u64 *)&iph->saddr);
}

/*
 * Does it go to the same place as the known one?  Only if its ports are in the skb's linear part.
 */
static bool is_like4(const struct sk_buff *skb, const struct known *k)
{
	const struct iphdr *iph = ip_hdr(skb);
	const struct udphdr *uh = (const struct udphdr *)(iph + 1);

	return k->ends == ends4(iph) && k->family == AF_INET &&
	       k->device == skb->dev->ifindex && iph->protocol == IPPROTO_UDP &&
	       !ip_is_fragment(iph) && (u8 *)(uh + 1) <= skb_tail_pointer(skb) &&
	       ports(uh) == k->ports &&
	       !((skb->mark ^ k->mark) | (__force u32)(class4(iph) ^ k->class));
}

static bool is_like6(const struct sk_buff *skb, const struct known *k)
{
	const struct ipv6hdr *iph = ipv6_hdr(skb);
	const struct udphdr *uh = (const struct udphdr *)(iph + 1);

	return k->family == AF_INET6 && k->device == skb->dev->ifindex &&
	       iph->nexthdr == IPPROTO_UDP && (u8 *)(uh + 1) <= skb_tail_pointer(skb) &&
	       ports(uh) == k->ports && skb->mark == k->mark && class6(iph) == k->class &&
	       !memcmp(k->from, &iph->saddr, sizeof(k->from)) &&
	       !memcmp(k->to, &iph->daddr, sizeof(k->to));
}

/*
 * UDP segments a GSO batch before it gives it to a socket of our kind, unless the batch is marked
 * as one of a tunnel; nothing else takes our frames for tunneled ones.  Clones share the mark, and
 * a capture may have one or a mirror may forward one, so the skb is uncloned first.
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

/*
 * Does nothing own the datagram yet?  Not in a bridge: what only RCU protects must not be queued
 * there, and the route does not count.
 */
static bool untouched(const struct sk_buff *skb)
{
#if IS_ENABLED(CONFIG_BRIDGE_NETFILTER)
	if (nf_bridge_info_exists(skb))
		return false;
#endif
	return !skb_dst(skb) && !skb->sk && !skb->destructor && skb->pkt_type == PACKET_HOST;
}

/* Does a BPF program select sockets here? */
static inline bool chooses_socket(const struct net *net)
{
	return static_branch_unlikely(&bpf_sk_lookup_enabled) &&
	       rcu_access_pointer(net->bpf.run_array[NETNS_BPF_SK_LOOKUP]);
}

/* Do the sysctls enable early demultiplexing? */
static inline bool is_allowed(const struct net *net)
{
	return READ_ONCE(net->ipv4.sysctl_ip_early_demux) &
	       READ_ONCE(net->ipv4.sysctl_udp_early_demux);
}

/* Return the two rp_filter settings that IN_DEV_RPFILTER() combines for a device.  IPv4, RCU. */
static u64 rp_filter(const struct net *net, const struct net_device *dev)
{
	const struct in_device *in_dev = __in_dev_get_rcu(dev);
	u32 all = READ_ONCE(net->ipv4.devconf_all->data[IPV4_DEVCONF_RP_FILTER - 1]);

	if (unlikely(!in_dev))
		return ~0ULL;
	return (u64)all << 32 | (u32)READ_ONCE(in_dev->cnf.data[IPV4_DEVCONF_RP_FILTER - 1]);
}

/* Has the entry expired? */
static inline bool is_old(const struct known *k)
{
	return time_after(jiffies, k->until);
}

/* Others may still use the entry and its route: both are freed after a grace period. */
static void known_free(struct known *k)
{
	dst_release(k->dst);
	kfree_rcu(k, rcu);
}

/* Remove a stale entry: the next datagram is learned again. */
static noinline void forget(struct known **e, struct known *k)
{
	if (cmpxchg(e, k, NULL) == k)
		known_free(k);
}

/*
 * Does our hook run last?  A hook of the same priority that was registered earlier runs after it.
 */
static bool is_last(const struct net *net, const void *demux)
{
	const struct nf_hook_entries *all =
		rcu_dereference(net->nf.hooks_ipv4[NF_INET_PRE_ROUTING]);

	return all && all->hooks[all->num_hook_entries - 1].priv == demux;
}

/*
 * Is the entry still valid?  A change of rp_filter does not invalidate routes.  Such settings are
 * checked once per tick.
 */
static noinline bool settle(struct known **e, struct known *k, const struct net *net,
			    const struct net_device *dev)
{
	if (!is_allowed(net))
		return false;
	if (is_old(k) || k->rp_filter != rp_filter(net, dev)) {
		forget(e, k);
		return false;
	}
	WRITE_ONCE(k->settled, jiffies);
	return true;
}

static unsigned int before_routing4(void *demux, struct sk_buff *skb,
				    const struct nf_hook_state *state)
{
	struct known **e = entry(demux, ip_hdr(skb)->saddr), *k = READ_ONCE(*e);

	if (!k || !untouched(skb) || !is_like4(skb, k) || chooses_socket(state->net))
		return NF_ACCEPT;
	if (unlikely(time_after(jiffies, READ_ONCE(k->settled))) &&
	    !settle(e, k, state->net, skb->dev))
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
	struct known **e = entry(demux, ipv6_hdr(skb)->saddr.s6_addr32[3]), *k = READ_ONCE(*e);

	if (!k || !untouched(skb) || !is_like6(skb, k) || chooses_socket(state->net) ||
	    !is_allowed(state->net))
		return NF_ACCEPT;
	if (likely(!is_old(k)))
		attach(skb, k);
	else
		forget(e, k);
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

/* ---- learning ---- */

static void set_way(struct known *k, const struct sk_buff *skb)
{
	memset(k, 0, sizeof(*k));
	k->ports = ports(udp_hdr(skb));
	k->device = skb->dev->ifindex;
	k->mark = skb->mark;
	k->until = jiffies + LASTS;
	k->settled = jiffies - 1;
	if (ip_hdr(skb)->version == 4) {
		k->family = AF_INET;
		k->class = class4(ip_hdr(skb));
		k->rp_filter = rp_filter(dev_net(skb->dev), skb->dev);
		k->ends = ends4(ip_hdr(skb));
	} else {
		k->family = AF_INET6;
		k->class = class6(ipv6_hdr(skb));
		memcpy(k->from, &ipv6_hdr(skb)->saddr, sizeof(k->from));
		memcpy(k->to, &ipv6_hdr(skb)->daddr, sizeof(k->to));
	}
}

static struct known *known_new(const struct acp_job *job, struct sock *sk,
			       const struct sk_buff *skb)
{
	struct known *k = kmalloc(sizeof(*k), GFP_ATOMIC | __GFP_NOWARN);

	if (!k)
		return NULL;
	set_way(k, skb);
	k->sk = sk;
	k->dst = skb_dst(skb);
	k->direct = k->family == AF_INET && acp_bypass_may_receive(skb) &&
		    acp_bypass_in(job->node, job->sender);
	if (k->family == AF_INET6)
		k->cookie = rt6_get_cookie((struct rt6_info *)k->dst);
	if (dst_hold_safe(k->dst))
		return k;
	kfree(k);
	return NULL;
}

/* Does the entry already lead datagrams like this one to the same place? */
static bool is_known(const struct known *k, const struct sock *sk, const struct sk_buff *skb)
{
	if (!k || k->sk != sk || k->dst != skb_dst(skb) || k->device != skb->dev->ifindex ||
	    k->mark != skb->mark)
		return false;
	/* The socket implies the ports and the destination address. */
	if (ip_hdr(skb)->version == 4)
		return k->ends == ends4(ip_hdr(skb)) && k->class == class4(ip_hdr(skb));
	/* After a change of addresses or routes, the same route has another cookie. */
	return !memcmp(k->from, &ipv6_hdr(skb)->saddr, sizeof(k->from)) &&
	       k->class == class6(ipv6_hdr(skb)) &&
	       k->cookie == rt6_get_cookie((const struct rt6_info *)skb_dst(skb));
}

static bool has_options(const struct sk_buff *skb)
{
	return ip_hdr(skb)->version == 4 && ip_hdr(skb)->ihl != sizeof(struct iphdr) / 4;
}

void acp_demux_learn(const struct acp_job *job, struct sock *sk, const struct sk_buff *skb)
{
	struct known **e = entry(job->node->demux, ip_hdr(skb)->version == 4 ?
				 ip_hdr(skb)->saddr : ipv6_hdr(skb)->saddr.s6_addr32[3]);
	struct known *k = READ_ONCE(*e);

	if (!skb_dst(skb) || !skb->dev || has_options(skb) || is_known(k, sk, skb))
		return;
	if (READ_ONCE(job->node->bypass) == ACP_BYPASS_NEVER)
		return;
	/*
	 * Sources that share an entry take turns, but not at each frame; a stale entry is replaced
	 * at once.
	 */
	if (k && dst_check(k->dst, k->cookie) && this_cpu_inc_return(misses) % TURN)
		return;
	k = known_new(job, sk, skb);
	if (!k)
		return;
	k = xchg(e, k);
	if (k)
		known_free(k);
}

/* Forget the entries of a socket, or all if @sk is NULL. */
static void forget_known(struct acp_node *node, const struct sock *sk)
{
	u32 i;

	rcu_read_lock();
	for (i = 0; i < KNOWN; i++) {
		struct known *k = READ_ONCE(node->demux->known[i]);

		if (k && (!sk || k->sk == sk) && cmpxchg(&node->demux->known[i], k, NULL) == k)
			known_free(k);
	}
	rcu_read_unlock();
}

void acp_demux_forget(struct acp_node *node, const struct sock *sk)
{
	forget_known(node, sk);
}

void acp_demux_forget_all(struct acp_node *node)
{
	/* Frames that learn according to the old setting are done after this. */
	synchronize_rcu();
	mutex_lock(&node->lock);
	if (node->demux)
		forget_known(node, NULL);
	mutex_unlock(&node->lock);
}
