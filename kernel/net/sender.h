/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The socket on whose behalf a job sends.  It is never bound and never receives.  It is made as if
 * the process that joined first had called socket(2), so it has the control group, user, mark,
 * device and security label of that process.  Each frame of the job belongs to it: queueing
 * disciplines, filters and BPF programs of the control group treat the frame like any other
 * datagram of the process, and route lookups use its user, mark, device and label.
 *
 * All ranks of a job on a node share its flows, so there is one socket per job; a job has one user.
 * Ranks in other control groups send on behalf of the first rank, too.
 */
#ifndef ACP_SENDER_H
#define ACP_SENDER_H

#include <linux/bpf-cgroup.h>
#include <linux/skbuff.h>
#include <net/sock.h>
#include "../job/node.h"

struct acp_socket;

/*
 * Make the job's socket, in the context of the process that joins. -EPERM: a security module or a
 * BPF program of the control group denies the process a socket. -ENODEV: the namespace is being
 * destroyed. acp_sender_close() accepts a job without a socket.
 */
int acp_sender_open(struct acp_job *job);
void acp_sender_close(struct acp_job *job);

/*
 * Return the device to which the socket of one of our addresses must be bound: the link of a
 * link-local address, the VRF of the process, or the VRF of the address; or 0.
 */
int acp_sender_device(struct acp_job *job, u32 color, const u8 *addr);

/* Return the device through which frames to the peer must leave; 0 if the routes decide. */
int acp_sender_way(struct acp_peer *peer);

/* Make the job's socket the owner of the skb.  BH off. */
static inline void acp_sender_own(struct sk_buff *skb, struct sock *sk)
{
	skb->mark = READ_ONCE(sk->sk_mark);
	skb->priority = READ_ONCE(sk->sk_priority);
	sock_hold(sk);
	skb->sk = sk;
	skb->destructor = sock_efree;
}

/* Do BPF programs of the job's control group accept the datagram?  RCU. */
static inline bool acp_sender_admits(const struct acp_job *job, struct sk_buff *skb)
{
	return !BPF_CGROUP_RUN_PROG_INET_INGRESS(job->sender, skb);
}

#endif /* ACP_SENDER_H */
