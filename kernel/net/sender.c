// SPDX-License-Identifier: GPL-2.0-only
/* The socket on whose behalf a job sends: see sender.h. */
#include <linux/in.h>
#include <linux/inetdevice.h>
#include <linux/net.h>
#include <linux/security.h>
#include <net/l3mdev.h>
#include "../compat.h"
#include "sender.h"
#include "udp.h"

/* ---- the socket ---- */

/* Map errors of socket(2) to those of ACP_IOC_JOIN. */
static int error_of(int err)
{
	if (err == -ENFILE || err == -ENOBUFS)
		return -ENOMEM;
	return err == -EACCES ? -EPERM : err;
}

static int create(const struct acp_job *job, struct net *net, bool kernel, struct socket **sock)
{
	return error_of(__sock_create(net, job->family, SOCK_DGRAM, IPPROTO_UDP, sock, kernel));
}

/* Copy what the kernel and BPF programs of the control group have set in the process's socket. */
static void take_after(struct acp_job *job, struct sock *sk, const struct sock *model)
{
	sk->sk_uid = job->owner;
	sk->sk_mark = READ_ONCE(model->sk_mark);
	sk->sk_priority = READ_ONCE(model->sk_priority);
	sk->sk_bound_dev_if = READ_ONCE(model->sk_bound_dev_if);
	security_sk_clone(model, sk);
}

/*
 * A socket of the process would keep the namespace alive as long as the job, but the end of the
 * namespace must end the job.  So that socket is only made to check permissions and to copy its
 * attributes; the job keeps a kernel socket.
 */
static int make(struct acp_job *job, struct net *net)
{
	struct socket *model, *sock;
	int err = create(job, net, false, &model);

	if (err)
		return err;
	err = create(job, net, true, &sock);
	if (!err) {
		take_after(job, sock->sk, model->sk);
		/* Datagrams that are being sent may use it until a grace period has passed. */
		sock_set_flag(sock->sk, SOCK_RCU_FREE);
		job->sender = sock->sk;
	}
	sock_release(model);
	return err;
}

int acp_sender_open(struct acp_job *job)
{
	struct net *net = maybe_get_net(job->node->net);
	int err;

	if (!net)
		return -ENODEV;
	err = make(job, net);
	put_net(net);
	return err;
}

void acp_sender_close(struct acp_job *job)
{
	struct sock *sk = job->sender;

	job->sender = NULL;
	if (sk)
		sock_release(sk->sk_socket);
}

/* ---- devices ---- */

static __be32 in4(const u8 *addr)
{
	__be32 in;

	memcpy(&in, addr, sizeof(in));
	return in;
}

#if IS_ENABLED(CONFIG_IPV6)
/* IPv6 finds no addresses in VRFs, unless it is asked for each device there. */
static struct net_device *device_of6(struct net *net, const u8 *addr)
{
	struct net_device *card, *dev;
	struct in6_addr in6;

	memcpy(&in6, addr, sizeof(in6));
	dev = ipv6_dev_find(net, &in6, NULL);
	if (dev)
		return dev;
	for_each_netdev_rcu(net, card) {
		if (netif_is_l3_master(card) || netif_is_l3_slave(card))
			dev = ipv6_dev_find(net, &in6, card);
		if (dev)
			return dev;
	}
	return NULL;
}
#else
static struct net_device *device_of6(struct net *net, const u8 *addr)
{
	return NULL;
}
#endif

/* Return the device that has the address, or NULL.  RCU. */
static struct net_device *device_of(struct net *net, u8 family, const u8 *addr)
{
	return family == AF_INET ? __ip_dev_find(net, in4(addr), false) : device_of6(net, addr);
}

static int vrf_of(struct net *net, u8 family, const u8 *addr)
{
	const struct net_device *dev;
	int vrf = 0;

	rcu_read_lock();
	dev = device_of(net, family, addr);
	if (dev)
		vrf = l3mdev_master_ifindex_rcu(dev);
	rcu_read_unlock();
	return vrf;
}

int acp_sender_device(struct acp_job *job, u32 color, const u8 *addr)
{
	return job->scopes[color] ?: READ_ONCE(job->sender->sk_bound_dev_if) ?:
	       vrf_of(job->node->net, job->family, addr);
}

/* Is the peer in the subnet of our address on its device?  RCU. */
static bool is_near(const struct net_device *dev, __be32 ours, __be32 theirs)
{
	const struct in_device *in_dev = __in_dev_get_rcu(dev);
	const struct in_ifaddr *ifa;

	if (!in_dev)
		return false;
	in_dev_for_each_ifa_rcu(ifa, in_dev)
		if (ifa->ifa_local == ours && inet_ifa_match(theirs, ifa))
			return true;
	return false;
}

/*
 * Return the device of a color's own address, or 0.  For IPv4, a device makes every destination
 * without a route a neighbour there, so only use the device if the peer is one.  For IPv6, a device
 * is only a preference.
 */
static int card_of(struct acp_peer *peer, const u8 *ours)
{
	const struct acp_job *job = peer->job;
	const struct net_device *dev;
	int card = 0;

	rcu_read_lock();
	dev = device_of(job->node->net, job->family, ours);
	if (dev && !(dev->flags & IFF_LOOPBACK) &&
	    (job->family == AF_INET6 || is_near(dev, in4(ours), in4(peer->addr))))
		card = dev->ifindex;
	rcu_read_unlock();
	return card;
}

int acp_sender_way(struct acp_peer *peer)
{
	const struct acp_socket *s = peer->job->sockets[peer->color];

	if (s->device || peer->job->colors == 1)
		return s->device;
	return card_of(peer, s->addr);
}
