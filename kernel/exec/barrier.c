// SPDX-License-Identifier: GPL-2.0-only
/* The barrier of a job: see barrier.h. */
#include <linux/slab.h>
#include "barrier.h"
#include "event.h"
#include "../job/node.h"
#include "../netlink/notify.h"
#include "../queue/queue.h"
#include "../upcall.h"

#define ABOVE	0	/* neighbours by index: the parent, then the children */

static u32 neighbour(const struct acp_job *job, u32 i)
{
	if (i == ABOVE)
		return (job->me - 1) / ACP_BARRIER_ARITY;
	return job->me * ACP_BARRIER_ARITY + i;
}

/* Index of the first neighbour and of the last.  The root has no parent. */
static u32 first(const struct acp_job *job)
{
	return job->me ? ABOVE : ABOVE + 1;
}

static u32 last(const struct acp_job *job)
{
	return ABOVE + job->barrier.children;
}

/* ---- awaiting neighbours ---- */

/*
 * Mark the children whose arrival is still missing as awaited, under the lock.  The flows
 * have locks of their own: settle_and_unlock() updates them after the lock was dropped.
 */
static void await_missing(struct acp_job *job)
{
	u32 i;

	for (i = ABOVE + 1; i <= last(job); i++)
		if (!(job->barrier.below & BIT(i)))
			job->barrier.awaited |= BIT(i);
}

/* Is a message awaited and not expected by the flow, or the reverse?  Under the lock. */
static bool is_unsettled(const struct acp_barrier *b, u32 i)
{
	return !!(b->awaited & BIT(i)) != !!b->epoch[i];
}

/*
 * Record that a message is expected in this incarnation of the flow.  Returns 0, or the epoch if
 * another CPU has recorded one already, or if the message is not awaited any more.
 */
static u32 keep_epoch(struct acp_barrier *b, u32 i, u32 epoch)
{
	spin_lock(&b->lock);
	if ((b->awaited & BIT(i)) && !b->epoch[i]) {
		b->epoch[i] = epoch;
		epoch = 0;
	}
	spin_unlock(&b->lock);
	return epoch;
}

/* Take the incarnation in which a message that is not awaited any more was expected; 0: none. */
static u32 take_epoch(struct acp_barrier *b, u32 i)
{
	u32 epoch = 0;

	spin_lock(&b->lock);
	if (!(b->awaited & BIT(i)))
		swap(epoch, b->epoch[i]);
	spin_unlock(&b->lock);
	return epoch;
}

/* BH off, so the peer stays. */
static void settle_one(struct acp_job *job, u32 i)
{
	struct acp_barrier *b = &job->barrier;
	struct acp_peer *peer;
	u32 epoch = 0;

	if (READ_ONCE(b->awaited) & BIT(i)) {
		peer = acp_peer_get(job, neighbour(job, i), 0);
		if (peer)
			epoch = keep_epoch(b, i, acp_peer_expect(peer));
	} else {
		epoch = take_epoch(b, i);
		peer = epoch ? acp_peer_find(job, neighbour(job, i), 0) : NULL;
	}
	if (epoch && peer)
		acp_peer_unexpect(peer, epoch);
}

/* Drop the lock, and make the flows expect what is awaited, unless that changes again. */
static void settle_and_unlock(struct acp_barrier *b, struct acp_job *job)
	__releases(&b->lock)
{
	u32 i, mask = 0;

	for (i = first(job); i <= last(job); i++)
		if (is_unsettled(b, i))
			mask |= BIT(i);
	spin_unlock(&b->lock);
	for (i = first(job); i <= last(job); i++)
		if (mask & BIT(i))
			settle_one(job, i);
	local_bh_enable();
}

/* ---- telling neighbours ---- */

/* BH off. */
static bool tell_peer(struct acp_peer *peer, u8 flags, u64 number)
{
	struct acp_item *item = kzalloc(sizeof(*item), GFP_ATOMIC | __GFP_NOWARN);

	if (!item)
		return false;
	item->out.m.type = ACP_MSG_BARRIER;
	item->out.m.flags = flags;
	item->out.m.origin = peer->job->me;
	item->out.m.ticket = number;
	acp_peer_send(peer, item, 0);
	acp_peer_kick(peer);
	return true;
}

static bool tell(struct acp_job *job, u32 i, u8 flags, u64 number)
{
	struct acp_peer *peer;
	bool told;

	local_bh_disable();
	peer = acp_peer_get(job, neighbour(job, i), 0);
	told = peer && tell_peer(peer, flags, number);
	local_bh_enable();
	return told;
}

/* Send the end of all barriers; acp_barrier_tend() repeats what cannot be sent now. */
static void tell_all(struct acp_job *job, u8 flag)
{
	struct acp_barrier *b = &job->barrier;
	u32 i;

	for (i = first(job); i <= last(job); i++) {
		/* A dead job has sent all that it had to send. */
		if (tell(job, i, flag, READ_ONCE(job->mismatched)) || READ_ONCE(job->dead))
			continue;
		acp_stat_inc(job->node, drop_nomem);
		spin_lock_bh(&b->lock);
		b->owed[i] |= flag;
		spin_unlock_bh(&b->lock);
	}
}

void acp_barrier_tend(struct acp_job *job)
{
	static const u8 flags[] = { ACP_MSG_BROKEN, ACP_MSG_ABORT };
	struct acp_barrier *b = &job->barrier;
	u32 i, k;

	for (i = first(job); i <= last(job); i++) {
		for (k = 0; k < ARRAY_SIZE(flags); k++) {
			if (!(READ_ONCE(b->owed[i]) & flags[k]) ||
			    !tell(job, i, flags[k], READ_ONCE(job->mismatched)))
				continue;
			spin_lock_bh(&b->lock);
			b->owed[i] &= ~flags[k];
			spin_unlock_bh(&b->lock);
		}
	}
}

/* Report to all neighbours except "from" that a rank has left.  Failures are not repeated. */
static void tell_left(struct acp_job *job, u32 rank, u32 from)
{
	u64 what = (u64)(rank + 1) << 32 | READ_ONCE(job->mismatched);
	u32 i;

	for (i = first(job); i <= last(job); i++)
		if (neighbour(job, i) != from && !tell(job, i, ACP_MSG_BROKEN, what) &&
		    !READ_ONCE(job->dead))
			acp_stat_inc(job->node, drop_nomem);
}

/*
 * Report that a rank of this node has left to all other nodes with which it has an open flow, too:
 * they may wait for it, and the tree may have lost a node in between.
 */
static void tell_others_left(struct acp_job *job, u32 rank)
{
	u64 what = (u64)(rank + 1) << 32 | READ_ONCE(job->mismatched);
	struct acp_peer *peer;
	unsigned long i;

	smp_mb();	/* that it has left, before states: pairs with acp_station_opened() */
	/* The rank is a member of the job until it has left, so the peers stay. */
	xa_for_each(&job->peers, i, peer) {
		if (READ_ONCE(peer->flow.state) != ACP_FLOW_OPEN ||
		    acp_barrier_neighbour(job, peer->node))
			continue;
		local_bh_disable();
		if (!tell_peer(peer, ACP_MSG_BROKEN, what))
			acp_stat_inc(job->node, drop_nomem);
		local_bh_enable();
		cond_resched();
	}
}

/* Earlier messages may have been lost with a flow, or the node was not known then. */
void acp_station_opened(struct acp_peer *peer)
{
	struct acp_job *job = peer->job;
	u64 mismatched = READ_ONCE(job->mismatched);
	unsigned long rank;
	void *left;

	/* The state of the flow, then the ranks that left: pairs with tell_others_left(). */
	smp_mb();
	if (!READ_ONCE(job->events.n_left) || READ_ONCE(job->dead) || READ_ONCE(job->aborted))
		return;
	xa_for_each(&job->events.left, rank, left)
		if (acp_job_node_of(job, rank) == job->me &&
		    !tell_peer(peer, ACP_MSG_BROKEN, (u64)(rank + 1) << 32 | mismatched))
			acp_stat_inc(job->node, drop_nomem);
}

static void release(struct acp_job *job, u64 number)
{
	bool told = true;
	u32 i;

	for (i = ABOVE + 1; i <= last(job); i++)
		told &= tell(job, i, ACP_MSG_RELEASE, number);
	wake_up_all(&job->barrier.wait);
	if (!told)
		acp_barrier_break(job);
}

/*
 * If all ranks of this node and all children have arrived, report to the parent, or at the root
 * release all nodes.  Drops the lock.
 */
static void check_and_unlock(struct acp_barrier *b, struct acp_job *job)
	__releases(&b->lock)
{
	u64 number = b->released + 1;

	if (b->local < b->expected || hweight8(b->below) < b->children) {
		if (b->local == b->expected && !b->broken)
			await_missing(job);
		settle_and_unlock(b, job);
		return;
	}
	b->local = 0;
	b->below = 0;
	if (!job->me)
		WRITE_ONCE(b->released, number);
	else if (!b->broken)
		b->awaited |= BIT(ABOVE);
	settle_and_unlock(b, job);
	if (!job->me)
		release(job, number);
	else if (!tell(job, ABOVE, 0, number))
		acp_barrier_break(job);
}

static void arrive(struct acp_rank *rank)
{
	struct acp_barrier *b = &rank->job->barrier;

	spin_lock_bh(&b->lock);
	rank->sync_want = b->released + 1;
	b->local++;
	check_and_unlock(b, rank->job);
}

static bool over(struct acp_rank *rank)
{
	const struct acp_job *job = rank->job;

	return READ_ONCE(job->barrier.released) >= rank->sync_want ||
	       READ_ONCE(job->barrier.broken) || READ_ONCE(job->aborted);
}

/* Why no barrier will complete any more; 0 if they will. */
static int broken(const struct acp_job *job)
{
	if (READ_ONCE(job->aborted))
		return -ECANCELED;
	/* Pairs with acp_barrier_break(): read that it is broken, then why. */
	if (!smp_load_acquire(&job->barrier.broken))
		return 0;
	return READ_ONCE(job->mismatched) ? -EPROTO : -EPIPE;
}

static int result(struct acp_rank *rank, int err)
{
	const struct acp_job *job = rank->job;

	if (READ_ONCE(job->barrier.released) >= rank->sync_want) {
		rank->sync_want = 0;
		rank->finished |= rank->final;
		return 0;
	}
	return broken(job) ?: err == -ERESTARTSYS ? -EINTR : -ETIMEDOUT;
}

int acp_barrier_wait(struct acp_rank *rank, bool final, u64 timeout_ns)
{
	struct acp_barrier *b = &rank->job->barrier;
	int err = 0;

	if (xchg(&rank->syncing, true))
		return -EBUSY;
	if (!rank->sync_want)
		err = broken(rank->job);
	if (!err) {
		rank->final = final;
		if (!rank->sync_want)
			arrive(rank);
		err = wait_event_interruptible_hrtimeout(b->wait, over(rank),
							 min_t(u64, timeout_ns, KTIME_MAX));
		err = result(rank, err);
	}
	/* Release what this call has changed to the next one: pairs with xchg() above. */
	smp_store_release(&rank->syncing, false);
	return err;
}

void acp_barrier_break(struct acp_job *job)
{
	struct acp_barrier *b = &job->barrier;
	bool before;

	spin_lock_bh(&b->lock);
	before = b->broken;
	/* After job->mismatched was set: pairs with broken(). */
	smp_store_release(&b->broken, true);
	if (!before)
		b->awaited = 0;
	settle_and_unlock(b, job);
	if (before)
		return;
	/* Before other nodes are told: they may send further events then. */
	acp_event_add(job, &(struct acp_event_record){ .type = ACP_EVENT_BROKEN });
	tell_all(job, ACP_MSG_BROKEN);
	wake_up_all(&b->wait);
}

void acp_barrier_abort(struct acp_job *job, bool tell)
{
	struct acp_rank *rank;
	unsigned long i;

	if (xchg(&job->aborted, true))
		return;
	acp_nl_tell_job(job, ACP_NL_EVENT_JOB_ABORTED);
	spin_lock_bh(&job->barrier.lock);
	job->barrier.awaited = 0;
	settle_and_unlock(&job->barrier, job);
	if (tell)
		tell_all(job, ACP_MSG_ABORT);
	wake_up_all(&job->barrier.wait);
	rcu_read_lock();
	xa_for_each(&job->ranks, i, rank)
		acp_queue_abort_all(rank);
	rcu_read_unlock();
}

void acp_barrier_leave(struct acp_rank *rank)
{
	struct acp_job *job = rank->job;

	if (rank->finished)
		return;
	acp_barrier_break(job);
	if (READ_ONCE(job->aborted) || !acp_event_left(job, rank->number))
		return;
	tell_left(job, rank->number, job->me);
	tell_others_left(job, rank->number);
}

static void broken_arrived(struct acp_job *job, const struct acp_msg *m)
{
	u32 mismatched = m->ticket, left = m->ticket >> 32;

	if (mismatched && mismatched <= job->nodes)
		acp_job_set_mismatched(job, mismatched - 1);
	acp_barrier_break(job);
	if (left && left <= job->ga.nprocs && acp_event_left(job, left - 1))
		tell_left(job, left - 1, m->origin);
}

void acp_barrier_arrived(struct acp_job *job, const struct acp_msg *m)
{
	struct acp_barrier *b = &job->barrier;
	u32 i = m->origin - job->me * ACP_BARRIER_ARITY;

	if (m->flags & ACP_MSG_ABORT) {
		acp_barrier_abort(job, true);
		return;
	}
	if (m->flags & ACP_MSG_BROKEN) {
		broken_arrived(job, m);
		return;
	}
	spin_lock_bh(&b->lock);
	if (m->ticket != b->released + 1 ||
	    (m->flags & ACP_MSG_RELEASE ? !job->me || m->origin != neighbour(job, ABOVE) :
					  !i || i > last(job) || (b->below & BIT(i)))) {
		spin_unlock_bh(&b->lock);
		acp_stat_inc(job->node, drop_bad_msg);
		return;
	}
	if (m->flags & ACP_MSG_RELEASE) {
		WRITE_ONCE(b->released, m->ticket);
		b->awaited &= ~BIT(ABOVE);
		settle_and_unlock(b, job);
		release(job, m->ticket);
		return;
	}
	b->below |= BIT(i);
	b->awaited &= ~BIT(i);
	check_and_unlock(b, job);
}
