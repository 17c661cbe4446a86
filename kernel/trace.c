// SPDX-License-Identifier: GPL-2.0-only
/* The tracepoints: see trace.h.  This file instantiates them. */
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/ip.h>
#include "drop.h"
#include "job/node.h"
#include "net/udp.h"

/*
 * Return the header of the frame in a datagram whose UDP header was pulled, or NULL if it is too
 * short.
 */
static inline const struct acp_frame_hdr *header_in(const struct sk_buff *skb)
{
	const u8 *h = skb_transport_header(skb) + sizeof(struct udphdr);
	const u8 *body = ((const struct acp_frame_cb *)skb->cb)->body;

	/* In a GSO batch: the header of the frame that is being processed. */
	if (skb_is_gso(skb))
		return body ? (const struct acp_frame_hdr *)body - 1 : NULL;
	if (skb_tail_pointer(skb) - h < (long)sizeof(struct acp_frame_hdr))
		return NULL;
	return (const struct acp_frame_hdr *)h;
}

/* The source address; IPv4 addresses are mapped to IPv6: ::ffff:192.0.2.1. */
static inline void sender_of(const struct sk_buff *skb, u8 addr[16])
{
	if (skb->protocol == htons(ETH_P_IP))
		ipv6_addr_set_v4mapped(ip_hdr(skb)->saddr, (struct in6_addr *)addr);
	else
		memcpy(addr, &ipv6_hdr(skb)->saddr, 16);
}

static inline u32 size_in(const struct sk_buff *skb)
{
	if (skb_is_gso(skb))
		return ((const struct acp_frame_cb *)skb->cb)->size;
	return ntohs(udp_hdr(skb)->len) - sizeof(struct udphdr);
}

#define CREATE_TRACE_POINTS
#include "trace.h"

void acp_drop(const struct acp_node *node, const struct sk_buff *skb, const struct acp_frame *f,
	      enum acp_stat reason)
{
	this_cpu_inc(node->stats->v[reason]);
	trace_acp_drop(node, skb, f, reason);
}
