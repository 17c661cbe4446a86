// SPDX-License-Identifier: GPL-2.0-only
/* Pings: see ping.h. */
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <linux/timer.h>
#include "acp_nl.h"
#include "node.h"
#include "notice.h"
#include "ping.h"

/*
 * One holds its job.  It is held by the transport until its message was
 * delivered or dropped, and by its timer until that was stopped or has run.
 */
struct ping {
	struct acp_item item;
	struct list_head link;	/* in the job's list; empty: somebody has been told, or will be */
	struct acp_job *job;
	struct timer_list timer;
	refcount_t refs;
	u64 begun;		/* ns */
	bool forgotten;		/* who asked has gone; under the job's lock of pings */
	struct acp_ping_result result;
};

void acp_pings_init(struct acp_pings *p)
{
	spin_lock_init(&p->lock);
	INIT_LIST_HEAD(&p->open);
}

static void put(struct ping *ping)
{
	struct acp_job *job = ping->job;

	if (!refcount_dec_and_test(&ping->refs))
		return;
	spin_lock_bh(&job->pings.lock);
	job->pings.count--;
	spin_unlock_bh(&job->pings.lock);
	atomic_dec(&job->node->pings);
	kfree(ping);
	acp_job_put(job);
}

/* Out of the list?  Then it is the caller who tells.  Under the lock. */
static bool take(struct ping *ping)
{
	if (list_empty(&ping->link))
		return false;
	list_del_init(&ping->link);
	return true;
}

/* Whoever took it says what came of it, with a reference of its own. */
static void finish(struct ping *ping, int error)
{
	ping->result.error = error;
	if (!error)
		ping->result.rtt = max_t(u64, acp_now() - ping->begun, 1);
	if (!ping->forgotten)
		acp_nl_tell_ping(ping->job, &ping->result);
	if (del_timer(&ping->timer))
		put(ping);
}

static void end(struct ping *ping, int error)
{
	bool mine;

	spin_lock_bh(&ping->job->pings.lock);
	mine = take(ping);
	spin_unlock_bh(&ping->job->pings.lock);
	if (mine)
		finish(ping, error);
}

static void timed_out(struct timer_list *t)
{
	struct ping *ping = from_timer(ping, t, timer);

	end(ping, -ETIMEDOUT);
	put(ping);
}

/* Counted as one of its job, and in its list. */
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
		/* From here on it may end at any time. */
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

/* BH off, so that the peer stays. */
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

/* The open one with that number, which was sent to that peer; the caller is to tell. */
static struct ping *find(struct acp_peer *peer, u64 number)
{
	struct acp_pings *p = &peer->job->pings;
	struct ping *ping, *found = NULL;

	spin_lock_bh(&p->lock);
	list_for_each_entry(ping, &p->open, link) {
		if (ping->item.out.m.ticket == number && ping->result.ask.node == peer->node &&
		    ping->result.ask.color == peer->color) {
			found = ping;
			refcount_inc(&ping->refs);
			take(ping);
			break;
		}
	}
	spin_unlock_bh(&p->lock);
	return found;
}

void acp_ping_answered(struct acp_peer *peer, const struct acp_msg *m)
{
	struct ping *ping = find(peer, m->ticket);

	/* Nobody waits for it any more, or ever did. */
	if (!ping)
		return;
	finish(ping, 0);
	put(ping);
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

	if (item->status)
		end(ping, error_of(item->status));
	put(ping);
}

void acp_pings_end(struct acp_job *job)
{
	struct acp_pings *p = &job->pings;
	struct ping *ping;

	spin_lock_bh(&p->lock);
	p->over = true;
	while ((ping = list_first_entry_or_null(&p->open, struct ping, link))) {
		refcount_inc(&ping->refs);
		take(ping);
		spin_unlock_bh(&p->lock);
		finish(ping, -ECANCELED);
		put(ping);
		spin_lock_bh(&p->lock);
	}
	spin_unlock_bh(&p->lock);
}

void acp_pings_forget(struct net *net, u32 portid)
{
	struct acp_node *node = acp_node_of(net);
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
