// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events and results of pings: see notify.h.
 *
 * Listeners with CAP_NET_ADMIN receive the events of all jobs, others those of
 * their own user's jobs.  If the kernel cannot filter the receivers of a
 * multicast message, the group requires CAP_NET_ADMIN.
 */
#include <linux/file.h>
#include <linux/ktime.h>
#include <linux/ratelimit.h>
#include <net/sock.h>
#include "../compat.h"
#include "netlink_put.h"

#define GFP_EVENT	(GFP_ATOMIC | __GFP_NOWARN)
#define EVENT_BYTES	256
#define LIMIT_EVERY	(5 * HZ)	/* interval for LIMIT_BURST events */
#define LIMIT_BURST	10

#ifdef ACP_HAS_GENL_FILTER
#define GROUP_FLAGS	0
#else
#define GROUP_FLAGS	GENL_MCAST_CAP_NET_ADMIN
#endif

const struct genl_multicast_group acp_nl_groups[1] = {
	{ .name = ACP_NL_GROUP_EVENTS, .flags = GROUP_FLAGS },
};

/* Set only while the family is registered. */
static const struct genl_family __rcu *family;

void acp_nl_speak(const struct genl_family *as)
{
	rcu_assign_pointer(family, as);
	synchronize_rcu();
}

/* The receivers of an event. */
struct audience {
	struct net *net;
	kuid_t uid;		/* user whom the event is about; invalid: all listeners */
};

/* An event that is being written. */
struct note {
	const struct genl_family *family;
	struct audience to;
	struct sk_buff *skb;
	void *head;
	int err;
};

#ifdef ACP_HAS_GENL_FILTER
/* The filter: 1 if a listener must not receive the event.  The socket's opener counts. */
static int is_deaf(struct sock *sk, struct sk_buff *skb, void *data)
{
	const struct audience *to = data;
	bool hears = !uid_valid(to->uid) || uid_eq(sk_uid(sk), to->uid);

	if (hears)
		return 0;
	/* The file cannot be freed while sk_socket is set, which this lock guards. */
	read_lock_bh(&sk->sk_callback_lock);
	hears = sk->sk_socket && sk->sk_socket->file &&
		file_ns_capable(sk->sk_socket->file, to->net->user_ns, CAP_NET_ADMIN);
	read_unlock_bh(&sk->sk_callback_lock);
	return !hears;
}

static void send(struct note *n)
{
	genlmsg_multicast_netns_filtered(n->family, n->to.net, n->skb, 0, 0, GFP_EVENT, is_deaf,
					 &n->to);
}
#else
static void send(struct note *n)
{
	genlmsg_multicast_netns(n->family, n->to.net, n->skb, 0, 0, GFP_EVENT);
}
#endif

/* Begin an event.  False: no listener or no memory.  RCU read side until it is sent. */
static bool begin(struct note *n, struct acp_node *node, kuid_t uid, u32 event)
{
	*n = (struct note){ .family = rcu_dereference(family), .to = { node->net, uid } };
	if (!n->family || !genl_has_listeners(n->family, node->net, 0))
		return false;
	n->skb = nlmsg_new(EVENT_BYTES, GFP_EVENT);
	n->head = n->skb ? genlmsg_put(n->skb, 0, 0, n->family, 0, ACP_NL_CMD_EVENT) : NULL;
	if (!n->head) {
		nlmsg_free(n->skb);
		genl_set_err(n->family, node->net, 0, 0, -ENOBUFS);
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
	send(n);
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
			 nla_put_u32(n.skb, ACP_NL_A_STATUS, READ_ONCE(peer->fates.status)) : 0);
		end(&n);
	}
	rcu_read_unlock();
}

void acp_nl_tell_init(struct acp_node *node)
{
	ratelimit_state_init(&node->limit_events, LIMIT_EVERY, LIMIT_BURST);
	/* Do not log suppressed events. */
	ratelimit_set_flags(&node->limit_events, RATELIMIT_MSG_ON_RELEASE);
}

void acp_nl_tell_limit(struct acp_node *node, kuid_t uid, u32 limit)
{
	const struct genl_family *as;
	struct note n;

	rcu_read_lock();
	as = rcu_dereference(family);
	if (as && genl_has_listeners(as, node->net, 0) &&
	    __ratelimit(&node->limit_events) && begin(&n, node, uid, ACP_NL_EVENT_LIMIT_REACHED)) {
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
	const struct acp_ping_ask *ask = &result->ask;
	const struct genl_family *as;
	struct sk_buff *skb;
	void *head = NULL;

	rcu_read_lock();
	as = rcu_dereference(family);
	skb = as ? nlmsg_new(EVENT_BYTES, GFP_EVENT) : NULL;
	if (skb)
		head = genlmsg_put(skb, ask->portid, ask->seq, as, 0, ACP_NL_CMD_PING);
	if (head && !put_ping(skb, job, result)) {
		genlmsg_end(skb, head);
		genlmsg_unicast(job->node->net, skb, ask->portid);
	} else {
		nlmsg_free(skb);
	}
	rcu_read_unlock();
}
