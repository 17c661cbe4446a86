// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sockets of the UDP transport, and reception of datagrams.
 *
 * Datagrams are received in the socket's encapsulation hook, in softirq, and go directly into
 * memory; nothing is queued.
 */
#include <linux/ipv6.h>
#include <linux/slab.h>
#include <linux/udp.h>
#include <net/ipv6.h>
#include <net/udp.h>
#include <net/udp_tunnel.h>
#include "demux.h"
#include "gso_rx.h"
#include "rx.h"
#include "sender.h"

/* ---- reception ---- */

/*
 * Receive a datagram or a GSO batch, which begins at the UDP header.  Takes @skb.  Softirq, RCU
 * read side.
 */
static void receive(struct sock *sk, struct sk_buff *skb, bool known)
{
	struct acp_socket *socket = rcu_dereference_sk_user_data(sk);

	if (!socket) {
		kfree_skb(skb);
		return;
	}
	if (known)
		acp_stat_inc(socket->node, rx_direct);
	__skb_pull(skb, sizeof(struct udphdr));
	if (skb_is_gso(skb))
		acp_gso_received(socket->node, socket, skb);
	else
		acp_rx_take(socket, skb, known, NULL);
}

static void receive_known(struct sock *sk, struct sk_buff *skb)
{
	receive(sk, skb, true);
}

/* Always takes @skb: returns 0. */
static int received(struct sock *sk, struct sk_buff *skb)
{
	receive(sk, skb, false);
	return 0;
}

/* ---- sockets ---- */

static int bind_socket(struct socket *sock, const struct acp_socket *s)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(s->port) };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(s->port) };
	int err;

	if (s->device && sock_bindtoindex(sock->sk, s->device, true))
		return -EADDRNOTAVAIL;
	if (s->family == AF_INET) {
		memcpy(&in.sin_addr, s->addr, 4);
		return kernel_bind(sock, (void *)&in, sizeof(in));
	}
	ip6_sock_set_v6only(sock->sk);
	memcpy(&in6.sin6_addr, s->addr, 16);
	err = kernel_bind(sock, (void *)&in6, sizeof(in6));
	/* A link-local address without a link, or with one that does not exist. */
	return err == -EINVAL || err == -ENODEV ? -EADDRNOTAVAIL : err;
}

static void take_datagrams(struct acp_socket *s)
{
	struct sock *sk = s->sock->sk;

	rcu_assign_sk_user_data(sk, s);
	udp_sk(sk)->encap_type = 1;
	udp_sk(sk)->encap_rcv = received;
	udp_allow_gso(sk);
	udp_tunnel_encap_enable(sk);
}

static struct acp_socket *socket_new(struct acp_node *node, const struct acp_socket *like)
{
	struct acp_socket *s = kmemdup(like, sizeof(*like), GFP_KERNEL_ACCOUNT);
	int err;

	if (!s)
		return ERR_PTR(-ENOMEM);
	err = sock_create_kern(node->net, s->family, SOCK_DGRAM, IPPROTO_UDP, &s->sock);
	if (err == -ENFILE)
		err = -ENOMEM;	/* sockets return -ENFILE when memory is short */
	if (err)
		goto free;
	s->sock->sk->sk_allocation = GFP_ATOMIC;
	err = bind_socket(s->sock, s);
	if (err)
		goto close;
	err = acp_demux_start(node, receive_known);
	if (err)
		goto close;
	s->node = node;
	take_datagrams(s);
	list_add(&s->link, &node->sockets);
	return s;

close:
	sock_release(s->sock);
free:
	kfree(s);
	return ERR_PTR(err);
}

static struct acp_socket *socket_get(struct acp_job *job, u32 color)
{
	struct acp_socket like = { .family = job->family, .port = job->port }, *s;

	acp_job_address(job, job->me, color, like.addr);
	like.device = acp_sender_device(job, color, like.addr);
	list_for_each_entry(s, &job->node->sockets, link)
		if (s->family == like.family && s->port == like.port &&
		    s->device == like.device &&
		    !memcmp(s->addr, like.addr, job->family == AF_INET ? 4 : 16))
			goto found;
	s = socket_new(job->node, &like);
	if (IS_ERR(s))
		return s;
found:
	s->users++;
	return s;
}

int acp_socket_open(struct acp_job *job)
{
	struct acp_socket *s;
	int err = acp_sender_open(job);
	u32 i;

	if (err)
		return err;
	for (i = 0; i < job->colors; i++) {
		s = socket_get(job, i);
		if (IS_ERR(s))
			return PTR_ERR(s);
		job->sockets[i] = s;
	}
	return 0;
}

/* The peers of the job are gone; received() may still be running. */
void acp_socket_close(struct acp_job *job)
{
	u32 i;

	for (i = 0; i < job->colors; i++) {
		struct acp_socket *s = job->sockets[i];

		job->sockets[i] = NULL;
		if (!s || --s->users)
			continue;
		list_del(&s->link);
		rcu_assign_sk_user_data(s->sock->sk, NULL);
		/* A datagram that was queued elsewhere may arrive after this module is gone. */
		WRITE_ONCE(udp_sk(s->sock->sk)->encap_rcv, NULL);
		synchronize_rcu();	/* no frame learns the socket any more */
		acp_demux_forget(job->node, s->sock->sk);
		kernel_sock_shutdown(s->sock, SHUT_RDWR);
		sock_release(s->sock);
		kfree_rcu(s, rcu);
	}
	acp_sender_close(job);
}
