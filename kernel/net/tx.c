// SPDX-License-Identifier: GPL-2.0-only
/* Transmission of finished datagrams: see tx.h. */
#include <net/ip.h>
#include <net/ipv6.h>
#include "bypass.h"
#include "gso_tx.h"
#include "sender.h"
#include "tx.h"

/* Encrypt the frames, which are otherwise complete. */
static noinline bool close_frames(struct acp_peer *peer, struct sk_buff *skb)
{
	if (acp_gso_close_frames(peer, skb))
		return true;
	acp_stat_inc(peer->job->node, tx_nomem);
	return false;
}

static int send_datagram(struct acp_peer *peer, struct net *net, struct sock *sk,
			 struct sk_buff *skb)
{
	/* The peer answers, so its neighbour entry needs no probe. */
	if (READ_ONCE(peer->confirmed)) {
		WRITE_ONCE(peer->confirmed, false);
		skb_set_dst_pending_confirm(skb, 1);
	}
	acp_sender_own(skb, sk);
	if (sk->sk_family != AF_INET)
		return ip6_local_out(net, sk, skb);
	return acp_bypass_xmit(peer->job->node, sk, skb);
}

/*
 * The neighbour table of the machine is full if there is no entry for the next hop: IPv6 says
 * -EINVAL then, and it has no other reason to.
 */
static noinline void count_error(struct acp_node *node, const struct sock *sk, int err, u32 frames)
{
	if (err == (sk->sk_family == AF_INET ? -ENOBUFS : -EINVAL))
		acp_stat_add(node, tx_neighbour, frames);
	else
		acp_stat_add(node, tx_errors, frames);
}

void acp_tx_send(struct acp_peer *peer, struct acp_outbox *out)
{
	struct acp_node *node = peer->job->node;
	struct sock *sk = peer->job->sender;
	struct sk_buff *skb, *next;
	u32 frames;
	int err;

	for (skb = out->first; skb; skb = next) {
		next = skb->next;
		skb_mark_not_on_list(skb);
		if (acp_job_encrypted(peer->job) && !close_frames(peer, skb)) {
			kfree_skb(skb);
			continue;
		}
		frames = 1;
		if (skb_is_gso(skb)) {
			acp_gso_close(peer, skb);
			frames = skb_shinfo(skb)->gso_segs;
		}
		acp_stat_add(node, tx_frames, frames);
		err = send_datagram(peer, node->net, sk, skb);
		if (unlikely(net_xmit_eval(err)))
			count_error(node, sk, err, frames);
	}
}
