// SPDX-License-Identifier: GPL-2.0-only
/* Routes to peers, and their MTU: see route.h. */
#include <linux/security.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/route.h>
#include "../compat.h"
#include "framing.h"
#include "route.h"
#include "sender.h"

#define NARROW_NS	(600 * NSEC_PER_SEC)	/* the kernel's default lifetime of PMTUs */
#define MTU_ENCRYPTED	(SKB_WITH_OVERHEAD(SZ_8K) - 128)	/* room for headers below IP */

/* Bytes of the headers around the body of a frame, including nonce block and authentication tag. */
static u32 around(const struct acp_peer *peer)
{
	return acp_udp_overhead(peer) + (acp_job_encrypted(peer->job) ? ACP_FRAME_ENCRYPTED : 0);
}

static struct dst_entry *route4(struct acp_peer *peer)
{
	struct sock *sk = peer->job->sender;
	struct flowi4 fl = {
		.flowi4_oif = acp_sender_way(peer),
		.flowi4_mark = READ_ONCE(sk->sk_mark),
		.flowi4_uid = sk->sk_uid,
		.flowi4_proto = IPPROTO_UDP,
		.fl4_sport = htons(peer->job->port),
		.fl4_dport = htons(peer->job->port),
	};
	struct rtable *rt;

	memcpy(&fl.saddr, acp_udp_source(peer), 4);
	memcpy(&fl.daddr, peer->addr, 4);
	security_sk_classify_flow(sk, flowi4_to_flowi_common(&fl));
	rt = ip_route_output_flow(peer->job->node->net, &fl, sk);
	return IS_ERR(rt) ? ERR_CAST(rt) : &rt->dst;
}

#if IS_ENABLED(CONFIG_IPV6)
static struct dst_entry *route6(struct acp_peer *peer)
{
	struct sock *sk = peer->job->sender;
	struct flowi6 fl = {
		.flowi6_oif = acp_sender_way(peer),
		.flowi6_mark = READ_ONCE(sk->sk_mark),
		.flowi6_uid = sk->sk_uid,
		.flowi6_proto = IPPROTO_UDP,
		.fl6_sport = htons(peer->job->port),
		.fl6_dport = htons(peer->job->port),
	};

	memcpy(&fl.saddr, acp_udp_source(peer), 16);
	memcpy(&fl.daddr, peer->addr, 16);
	security_sk_classify_flow(sk, flowi6_to_flowi_common(&fl));
	return ip6_dst_lookup_flow(peer->job->node->net, sk, &fl, NULL);
}

static u32 route_cookie(struct acp_peer *peer, struct dst_entry *dst)
{
	return peer->job->family == AF_INET6 ? rt6_get_cookie((struct rt6_info *)dst) : 0;
}
#else
static struct dst_entry *route6(struct acp_peer *peer)
{
	return ERR_PTR(-EAFNOSUPPORT);
}

static u32 route_cookie(struct acp_peer *peer, struct dst_entry *dst)
{
	return 0;
}
#endif

/* Keep the route as long as it is valid. */
void acp_route_find(struct acp_peer *peer)
{
	struct dst_entry *dst = peer->dst;

	if (dst && (!dst->obsolete || dst->ops->check(dst, peer->dst_cookie)))
		return;
	dst_release(dst);
	dst = peer->job->family == AF_INET ? route4(peer) : route6(peer);
	if (IS_ERR(dst)) {
		acp_stat_inc(peer->job->node, tx_errors);
		peer->dst = NULL;
		return;
	}
	peer->dst = dst;
	peer->dst_cookie = route_cookie(peer, dst);
	acp_route_measure(peer);
}

/* ---- MTU ---- */

/*
 * The MTU of a device may change while its routes stay, so it is read before a long frame is cut.
 * IP fragments what was cut before, if necessary; so it does what a router finds too long (IPv4) or
 * has reported as too long (IPv6, from then on).  But a path may also drop long datagrams silently,
 * as switches do: see doubt() in peer_flow.c.
 */
void acp_route_measure(struct acp_peer *peer)
{
	u32 mtu;

	if (!peer->dst)
		return;
	/* Encrypted frames are contiguous in memory; two contiguous pages are usually available. */
	mtu = clamp_t(u32, dst_mtu(peer->dst), ACP_MTU_MIN,
		      acp_job_encrypted(peer->job) ? MTU_ENCRYPTED : ACP_MTU_MAX);
	if (unlikely(peer->narrow)) {
		if (acp_now() >= peer->narrow_until)
			peer->narrow = 0;
		else
			mtu = min_t(u32, mtu, peer->narrow);
	}
	peer->mtu = mtu - around(peer);
}

u32 acp_route_narrower(const struct acp_peer *peer, u32 size)
{
	u32 least = peer->job->family == AF_INET ? ACP_MTU_MIN : IPV6_MIN_MTU;
	u32 mtu = min(size, peer->mtu) + around(peer);

	if (mtu <= least)
		return 0;
	if (mtu > ETH_DATA_LEN)
		return ETH_DATA_LEN;
	return mtu > IPV6_MIN_MTU ? IPV6_MIN_MTU : least;
}

void acp_route_narrow(struct acp_peer *peer, u32 width, u64 now)
{
	peer->narrow = width;
	peer->narrow_until = now + NARROW_NS;
	acp_route_measure(peer);
	acp_stat_inc(peer->job->node, narrowed);
	net_warn_ratelimited("acp: job %u: long datagrams do not reach node %u; now of %u bytes\n",
			     peer->job->id, peer->node, width);
}
