// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is told without being asked, and the results of pings: see netlink.h.
 *
 * Listeners hear of their own user's jobs, admins of all.  Where the kernel
 * cannot send a message to some members of a group only, the group is for
 * admins.
 */
#include <linux/file.h>
#include <linux/ktime.h>
#include <linux/ratelimit.h>
#include <net/sock.h>
#include "netlink_put.h"

#define CAN_FILTER	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0))
#define GFP_EVENT	(GFP_ATOMIC | __GFP_NOWARN)
#define EVENT_BYTES	256
#define LIMIT_EVERY	(5 * HZ)	/* so often, LIMIT_BURST times at most */
#define LIMIT_BURST	10

const struct genl_multicast_group acp_nl_groups[1] = {
	{ .name = ACP_NL_GROUP_EVENTS, .flags = CAN_FILTER ? 0 : GENL_MCAST_CAP_NET_ADMIN },
};

/* Only while the family is registered; RCU. */
static bool speaking;

void acp_nl_speak(bool on)
{
	WRITE_ONCE(speaking, on);
	if (!on)
		synchronize_rcu();
}

/* Whom an event is about. */
struct audience {
	struct net *net;
	kuid_t uid;		/* invalid: everybody */
};

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
/* May a listener not hear it?  By what its socket's opener was and could. */
static int is_deaf(struct sock *sk, struct sk_buff *skb, void *data)
{
	const struct audience *to = data;
	bool hears = !uid_valid(to->uid) || uid_eq(sock_i_uid(sk), to->uid);

	if (hears)
		return 0;
	/* The file stays as long as the socket has not been taken from it. */
	read_lock_bh(&sk->sk_callback_lock);
	hears = sk->sk_socket && sk->sk_socket->file &&
		file_ns_capable(sk->sk_socket->file, to->net->user_ns, CAP_NET_ADMIN);
	read_unlock_bh(&sk->sk_callback_lock);
	return !hears;
}

static void send(struct sk_buff *skb, struct audience *to)
{
	genlmsg_multicast_netns_filtered(&acp_nl_family, to->net, skb, 0, 0, GFP_EVENT, is_deaf,
					 to);
}
#else
static void send(struct sk_buff *skb, struct audience *to)
{
	genlmsg_multicast_netns(&acp_nl_family, to->net, skb, 0, 0, GFP_EVENT);
}
#endif

/* One event being written. */
struct note {
	struct audience to;
	struct sk_buff *skb;
	void *head;
	int err;
};

/* False: nobody listens, or there is no memory.  RCU read side until sent. */
static bool begin(struct note *n, struct acp_node *node, kuid_t uid, u32 event)
{
	*n = (struct note){ .to = { node->net, uid } };
	if (!READ_ONCE(speaking) || !genl_has_listeners(&acp_nl_family, node->net, 0))
		return false;
	n->skb = nlmsg_new(EVENT_BYTES, GFP_EVENT);
	n->head = n->skb ? genlmsg_put(n->skb, 0, 0, &acp_nl_family, 0, ACP_NL_CMD_EVENT) : NULL;
	if (!n->head) {
		nlmsg_free(n->skb);
		genl_set_err(&acp_nl_family, node->net, 0, 0, -ENOBUFS);
		return false;
	}
	n->err = nla_put_u32(n->skb, ACP_NL_A_EVENT, event) ?:
		 acp_nl_put_u64(n->skb, ACP_NL_A_TIME, ktime_get_real_ns());
	if (uid_valid(uid))
		n->err = n->err ?: nla_put_u32(n->skb, ACP_NL_A_UID,
					       from_kuid_munged(node->net->user_ns, uid));
	return true;
}

static void end(struct note *n)
{
	if (WARN_ON_ONCE(n->err)) {
		nlmsg_free(n->skb);
		return;
	}
	genlmsg_end(n->skb, n->head);
	send(n->skb, &n->to);
}

void acp_nl_tell_job(struct acp_job *job, u32 event)
{
	struct note n;

	rcu_read_lock();
	if (begin(&n, job->node, job->owner, event)) {
		n.err = n.err ?: acp_nl_put_job(n.skb, job);
		end(&n);
	}
	rcu_read_unlock();
}

void acp_nl_tell_rank(struct acp_job *job, u32 rank, bool finished, u32 event)
{
	struct note n;

	rcu_read_lock();
	if (begin(&n, job->node, job->owner, event)) {
		n.err = n.err ?: acp_nl_put_job(n.skb, job) ?:
			nla_put_u32(n.skb, ACP_NL_A_RANK, rank) ?:
			acp_nl_put_flag(n.skb, ACP_NL_A_FINISHED, finished);
		end(&n);
	}
	rcu_read_unlock();
}

void acp_nl_tell_node(struct acp_peer *peer, u32 event)
{
	struct acp_job *job = peer->job;
	struct note n;

	rcu_read_lock();
	if (begin(&n, job->node, job->owner, event)) {
		n.err = n.err ?: acp_nl_put_job(n.skb, job) ?:
			nla_put_u32(n.skb, ACP_NL_A_NODE, peer->node) ?:
			nla_put_u32(n.skb, ACP_NL_A_COLOR, peer->color) ?:
			acp_nl_put_address(n.skb, job, peer->addr) ?:
			(event == ACP_NL_EVENT_NODE_LOST ?
			 nla_put_u32(n.skb, ACP_NL_A_STATUS, READ_ONCE(peer->lost_status)) : 0);
		end(&n);
	}
	rcu_read_unlock();
}

void acp_nl_tell_init(struct acp_node *node)
{
	ratelimit_state_init(&node->limit_notices, LIMIT_EVERY, LIMIT_BURST);
	/* What is left out is not worth a line in the log. */
	ratelimit_set_flags(&node->limit_notices, RATELIMIT_MSG_ON_RELEASE);
}

void acp_nl_tell_limit(struct acp_node *node, kuid_t uid, u32 limit)
{
	struct note n;

	rcu_read_lock();
	if (READ_ONCE(speaking) && genl_has_listeners(&acp_nl_family, node->net, 0) &&
	    __ratelimit(&node->limit_notices) && begin(&n, node, uid, ACP_NL_EVENT_LIMIT_REACHED)) {
		n.err = n.err ?: nla_put_string(n.skb, ACP_NL_A_NAME, acp_limits_name(limit));
		end(&n);
	}
	rcu_read_unlock();
}

void acp_nl_tell_setting(struct acp_node *node, const char *name, u64 value)
{
	struct note n;

	rcu_read_lock();
	if (begin(&n, node, INVALID_UID, ACP_NL_EVENT_SETTING)) {
		n.err = n.err ?: nla_put_string(n.skb, ACP_NL_A_NAME, name) ?:
			acp_nl_put_u64(n.skb, ACP_NL_A_VALUE, value);
		end(&n);
	}
	rcu_read_unlock();
}

void acp_nl_tell_color(struct acp_node *node, u32 color, const u8 *addr, u32 width)
{
	struct note n;

	rcu_read_lock();
	if (begin(&n, node, INVALID_UID, ACP_NL_EVENT_SETTING)) {
		n.err = n.err ?: nla_put_u32(n.skb, ACP_NL_A_COLOR, color) ?:
			(addr ? nla_put(n.skb, ACP_NL_A_ADDRESS, width, addr) : 0);
		end(&n);
	}
	rcu_read_unlock();
}

static int put_ping(struct sk_buff *skb, struct acp_job *job, const struct acp_ping_result *r)
{
	const struct acp_ping_ask *ask = &r->ask;
	u8 addr[16];

	acp_job_address(job, ask->node, ask->color, addr);
	return acp_nl_put_job(skb, job) ?:
	       nla_put_u32(skb, ACP_NL_A_NODE, ask->node) ?:
	       nla_put_u32(skb, ACP_NL_A_COLOR, ask->color) ?:
	       acp_nl_put_address(skb, job, addr) ?:
	       nla_put_u32(skb, ACP_NL_A_SIZE, ask->size) ?:
	       (ask->has_rank ? nla_put_u32(skb, ACP_NL_A_RANK, ask->rank) : 0) ?:
	       acp_nl_put_flag(skb, ACP_NL_A_OPENED, r->opened) ?:
	       (r->error ? nla_put_u32(skb, ACP_NL_A_ERROR, -r->error) :
		acp_nl_put_u64(skb, ACP_NL_A_RTT, r->rtt));
}

void acp_nl_tell_ping(struct acp_job *job, const struct acp_ping_result *result)
{
	struct sk_buff *skb = nlmsg_new(EVENT_BYTES, GFP_EVENT);
	void *head = skb ? genlmsg_put(skb, result->ask.portid, result->ask.seq, &acp_nl_family, 0,
				       ACP_NL_CMD_PING) : NULL;

	if (!head || put_ping(skb, job, result)) {
		nlmsg_free(skb);
		return;
	}
	genlmsg_end(skb, head);
	genlmsg_unicast(job->node->net, skb, result->ask.portid);
}
