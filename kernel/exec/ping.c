// SPDX-License-Identifier: GPL-2.0-only
/* Pings: see ping.h. */
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <linux/timer.h>
#include "acp_nl.h"
#include "../compat.h"
#include "../job/node.h"
#include "../netlink/notify.h"
#include "ping.h"

/*
 * A ping holds a reference to its job.  The transport holds a reference to the ping until its
 * message was delivered or dropped; the timer holds one until it was stopped or has run.
 *
 * The result is sent when the ping was answered and the transport has finished with it: the answer
 * may arrive before the acknowledgement, and the receiver of a result may send another ping at
 * once.  On a timeout the result is sent immediately, answered or not; the transport may still have
 * the ping, which then still counts.
 */
struct ping {
	struct acp_item item;
	struct list_head link;	/* in the list of its job; empty: it has ended */
	struct list_head ended;	/* in a list of pings whose result is to be sent */
	struct acp_job *job;
	struct timer_list timer;
	refcount_t refs;
	u64 begun;		/* ns; when it was sent */
	/* Under the lock of the job's pings: */
	bool sent;		/* delivered, or dropped */
	bool answered;
	bool forgotten;		/* the socket that asked was closed */
	struct acp_ping_result result;
};

static void put(struct ping *ping)
{
	struct acp_job *job = ping->job;

	if (!refcount_dec_and_test(&ping->refs))
		return;
	atomic_dec(&job->node->pings);
	kfree(ping);
	acp_job_put(job);
}

/* End an open ping.  Under the lock; the caller then sends the result with tell(). */
static void end(struct ping *ping, int error, struct list_head *ended)
{
	list_del_init(&ping->link);
	if (ping->sent)
		ping->job->pings.count--;
	ping->result.error = error;
	refcount_inc(&ping->refs);
	list_add_tail(&ping->ended, ended);
}

/* Send the results of pings that ended.  No lock held: netlink takes locks and wakes listeners. */
static void tell(struct list_head *ended)
{
	struct ping *ping, *next;

	list_for_each_entry_safe(ping, next, ended, ended) {
		if (!READ_ONCE(ping->forgotten))
			acp_nl_tell_ping(ping->job, &ping->result);
		if (timer_delete(&ping->timer))
			put(ping);
		put(ping);
	}
}

static u64 deadline(const struct ping *ping)
{
	return ping->begun + ping->result.ask.timeout * (u64)NSEC_PER_MSEC;
}

static void timed_out(struct timer_list *t)
{
	struct ping *ping = timer_container_of(ping, t, timer);
	struct acp_pings *p = &ping->job->pings;
	LIST_HEAD(ended);

	spin_lock_bh(&p->lock);
	/* Jiffies were behind the clock when the timer was set. */
	if (!list_empty(&ping->link) && acp_now() < deadline(ping)) {
		mod_timer(&ping->timer, jiffies + 1);
		spin_unlock_bh(&p->lock);
		return;
	}
	if (!list_empty(&ping->link))
		end(ping, ping->answered ? 0 : -ETIMEDOUT, &ended);
	spin_unlock_bh(&p->lock);
	tell(&ended);
	put(ping);
}

/* Count a ping and add it to the list of its job. */
static int enter(struct ping *ping)
{
	struct acp_pings *p = &ping->job->pings;
	int err = 0;

	spin_lock_bh(&p->lock);
	if (p->over) {
		err = -ENOENT;
	} else if (p->count >= ACP_NL_PINGS_MAX) {
		err = -EBUSY;
	} else {
		p->count++;
		ping->item.out.m.ticket = ++p->last;
		list_add_tail(&ping->link, &p->open);
		atomic_inc(&ping->job->node->pings);
		/* It may end at any time from here on. */
		refcount_inc(&ping->job->refs);
		mod_timer(&ping->timer, jiffies + msecs_to_jiffies(ping->result.ask.timeout) + 1);
	}
	spin_unlock_bh(&p->lock);
	return err;
}

static struct ping *make(struct acp_job *job, const struct acp_ping_ask *ask)
{
	struct ping *ping = kzalloc(sizeof(*ping), GFP_KERNEL_ACCOUNT);

	if (!ping)
		return NULL;
	ping->job = job;
	ping->result.ask = *ask;
	ping->item.out.m.type = ACP_MSG_PING;
	ping->item.out.m.origin = job->me;
	ping->item.out.m.length = ask->size;
	INIT_LIST_HEAD(&ping->link);
	timer_setup(&ping->timer, timed_out, 0);
	refcount_set(&ping->refs, 2);
	return ping;
}

/* BH off, so the peer stays. */
static int launch(struct ping *ping)
{
	const struct acp_ping_ask *ask = &ping->result.ask;
	struct acp_peer *peer = acp_peer_get(ping->job, ask->node, ask->color);
	int err;

	if (!peer)
		return READ_ONCE(ping->job->dead) ? -ENOENT : -EDQUOT;
	ping->result.opened = READ_ONCE(peer->flow.state) != ACP_FLOW_OPEN;
	ping->begun = acp_now();
	err = enter(ping);
	if (err)
		return err;
	acp_peer_send(peer, &ping->item, 0);
	acp_peer_flush(peer);
	return 0;
}

int acp_ping_start(struct acp_job *job, const struct acp_ping_ask *ask)
{
	struct ping *ping = make(job, ask);
	int err;

	if (!ping)
		return -ENOMEM;
	local_bh_disable();
	err = launch(ping);
	local_bh_enable();
	if (err)
		kfree(ping);
	return err;
}

/* The open ping with that number, if it was sent to that peer.  Under the lock. */
static struct ping *find(struct acp_peer *peer, u64 number)
{
	struct ping *ping;

	list_for_each_entry(ping, &peer->job->pings.open, link)
		if (ping->item.out.m.ticket == number && ping->result.ask.node == peer->node &&
		    ping->result.ask.color == peer->color)
			return ping;
	return NULL;
}

void acp_ping_answered(struct acp_peer *peer, const struct acp_msg *m)
{
	struct acp_pings *p = &peer->job->pings;
	struct ping *ping;
	LIST_HEAD(ended);

	spin_lock_bh(&p->lock);
	ping = find(peer, m->ticket);
	/* If there is none, the ping has ended or never existed. */
	if (ping && !ping->answered) {
		ping->answered = true;
		ping->result.rtt = max_t(u64, acp_now() - ping->begun, 1);
		if (ping->sent)
			end(ping, 0, &ended);
	}
	spin_unlock_bh(&p->lock);
	tell(&ended);
}

static int error_of(u8 status)
{
	switch (status) {
	case ACP_ST_TIMEOUT:
		return -EHOSTDOWN;
	case ACP_ST_ROUTE:
		return -ENETUNREACH;
	case ACP_ST_PEER:
		return -ECONNRESET;
	default:
		return -ECANCELED;
	}
}

void acp_ping_sent(struct acp_item *item)
{
	struct ping *ping = container_of(item, struct ping, item);
	struct acp_pings *p = &ping->job->pings;
	LIST_HEAD(ended);

	spin_lock_bh(&p->lock);
	ping->sent = true;
	if (list_empty(&ping->link))
		p->count--;
	else if (ping->answered || item->status)
		end(ping, ping->answered ? 0 : error_of(item->status), &ended);
	spin_unlock_bh(&p->lock);
	tell(&ended);
	put(ping);
}

void acp_pings_end(struct acp_job *job)
{
	struct acp_pings *p = &job->pings;
	struct ping *ping, *next;
	LIST_HEAD(ended);

	spin_lock_bh(&p->lock);
	p->over = true;
	list_for_each_entry_safe(ping, next, &p->open, link)
		end(ping, ping->answered ? 0 : -ECANCELED, &ended);
	spin_unlock_bh(&p->lock);
	tell(&ended);
}

void acp_pings_forget(struct acp_node *node, u32 portid)
{
	struct acp_job *job;
	struct ping *ping;
	unsigned long i;

	if (!atomic_read(&node->pings))
		return;
	rcu_read_lock();
	xa_for_each(&node->jobs, i, job) {
		spin_lock_bh(&job->pings.lock);
		list_for_each_entry(ping, &job->pings.open, link)
			if (ping->result.ask.portid == portid)
				ping->forgotten = true;
		spin_unlock_bh(&job->pings.lock);
	}
	rcu_read_unlock();
}
