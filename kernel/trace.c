// SPDX-License-Identifier: GPL-2.0-only
/* The tracepoints: see trace.h.  This is where their code is. */
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/ip.h>
#include "node.h"
#include "udp.h"

/* A datagram whose UDP header was pulled: the header of its frame, or NULL if it is too short. */
static inline const struct acp_frame_hdr *header_in(const struct sk_buff *skb)
{
	const u8 *h = skb_transport_header(skb) + sizeof(struct udphdr);
	const u8 *body = ((const struct acp_frame_cb *)skb->cb)->body;

	/* Of a train, the one that is looked at. */
	if (skb_is_gso(skb))
		return body ? (const struct acp_frame_hdr *)body - 1 : NULL;
	if (skb_tail_pointer(skb) - h < (long)sizeof(struct acp_frame_hdr))
		return NULL;
	return (const struct acp_frame_hdr *)h;
}

/* Where it comes from; IPv4 as IPv6 has it: ::ffff:192.0.2.1. */
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
