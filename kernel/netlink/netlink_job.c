// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jobs over netlink, with their ranks, regions and flows: see netlink.h.
 *
 * Between its parts a dump keeps keys, no pointers.  Within a part it has a
 * reference to the job, so that it can reschedule between ranks and flows.
 */
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include "../exec/barrier.h"
#include "../exec/event.h"
#include "netlink_put.h"
#include "../mem/region.h"

#define LOOK_MAX	4096	/* at most so many items are counted under a flow's lock */

/* ---- jobs ---- */

/* RCU. */
static struct acp_job *hold(struct acp_job *job)
{
	return job && refcount_inc_not_zero(&job->refs) ? job : NULL;
}

struct acp_job *acp_nl_find_job(struct acp_node *node, const struct acp_nl_reader *reader,
				struct nlattr **attrs)
{
	u32 id = nla_get_u32(attrs[ACP_NL_A_JOB]);
	unsigned long i, last = acp_job_index(id, U16_MAX);
	struct acp_job *job, *found = NULL;

	rcu_read_lock();
	if (attrs[ACP_NL_A_GENERATION]) {
		job = acp_job_find(node, id, nla_get_u32(attrs[ACP_NL_A_GENERATION]));
		if (job && acp_nl_sees(reader, job))
			found = job;
	} else {
		xa_for_each_range(&node->jobs, i, job, acp_job_index(id, 0), last)
			if (acp_nl_sees(reader, job))
				found = job;
	}
	found = hold(found);
	rcu_read_unlock();
	return found;
}

/* The job of a request, with a reference.  NULL: *err and the extended ack are set. */
static struct acp_job *job_of(struct sk_buff *request, struct genl_info *info, int *err)
{
	struct acp_nl_reader reader = acp_nl_reader(request);
	struct acp_job *job;

	*err = -EINVAL;
	if (GENL_REQ_ATTR_CHECK(info, ACP_NL_A_JOB))
		return NULL;
	*err = -ENOENT;
	job = acp_nl_find_job(acp_node_of(genl_info_net(info)), &reader, info->attrs);
	if (!job)
		GENL_SET_ERR_MSG(info, "no such job here, or it is another user's");
	return job;
}

/* The next job of a dump that matches its filter and that its reader sees, with a reference. */
static struct acp_job *next_job(struct netlink_callback *cb)
{
	struct nlattr **attrs = acp_nl_dump_attrs(cb);
	const struct nlattr *id = attrs[ACP_NL_A_JOB], *generation = attrs[ACP_NL_A_GENERATION];
	struct acp_nl_cursor *c = acp_nl_cursor(cb);
	unsigned long index = c->job, last = ULONG_MAX;
	struct acp_job *job;

	if (id) {
		index = max(index, acp_job_index(nla_get_u32(id), 0));
		last = acp_job_index(nla_get_u32(id), U16_MAX);
	}
	for (;;) {
		rcu_read_lock();
		job = xa_find(&acp_nl_dump_node(cb)->jobs, &index, last, XA_PRESENT);
		if (job && (generation && job->generation != nla_get_u32(generation)))
			job = NULL;
		else if (!job)
			index = ULONG_MAX;
		if (job)
			job = acp_nl_sees(&c->reader, job) ? hold(job) : NULL;
		rcu_read_unlock();
		if (index != c->job) {
			c->job = index;
			c->at = 0;
			c->sub = 0;
		}
		if (job || index == ULONG_MAX)
			return job;
		index++;
		cond_resched();
	}
}

/* Call "fill" for each job until the part is full. */
static int each_job(struct sk_buff *skb, struct netlink_callback *cb,
		    int (*fill)(struct sk_buff *skb, struct netlink_callback *cb,
				struct acp_job *job))
{
	struct acp_nl_cursor *c = acp_nl_cursor(cb);
	struct acp_job *job;
	int err = 0;

	while (!err && c->job != ULONG_MAX && (job = next_job(cb))) {
		err = fill(skb, cb, job);
		acp_job_put(job);
		if (!err) {
			c->job++;
			c->at = 0;
			c->sub = 0;
		}
	}
	return skb->len;
}

static u32 state_of(const struct acp_job *job)
{
	if (!READ_ONCE(job->members))
		return ACP_NL_JOB_LINGERING;
	return READ_ONCE(job->aborted) ? ACP_NL_JOB_ABORTED : ACP_NL_JOB_RUNNING;
}

static u64 memory_of(struct acp_job *job)
{
	u64 kib = job->run_kib + (u64)READ_ONCE(job->flows) * ACP_PEER_KIB +
		  (u64)atomic_read(&job->flow_kib);
	const struct acp_queue *queue;
	const struct acp_rank *rank;

	rcu_read_lock();
	list_for_each_entry_rcu(queue, &job->queue_list, job_link)
		kib += queue->ring_kib;
	list_for_each_entry_rcu(rank, &job->rank_list, link)
		kib += READ_ONCE(rank->region_pages) * (PAGE_SIZE >> 10);
	rcu_read_unlock();
	return kib << 10;
}

static int put_fixed(struct sk_buff *skb, const struct acp_job *job)
{
	return nla_put_u32(skb, ACP_NL_A_UID,
			   from_kuid_munged(job->node->net->user_ns, job->owner)) ?:
	       nla_put_u32(skb, ACP_NL_A_NPROCS, job->ga.nprocs) ?:
	       nla_put_u32(skb, ACP_NL_A_NODES, job->nodes) ?:
	       nla_put_u32(skb, ACP_NL_A_ME, job->me) ?:
	       nla_put_u32(skb, ACP_NL_A_COLORS, job->colors) ?:
	       nla_put_u32(skb, ACP_NL_A_FAMILY, job->family) ?:
	       nla_put_u32(skb, ACP_NL_A_PORT, job->port) ?:
	       nla_put_u32(skb, ACP_NL_A_INTEGRITY, job->integrity) ?:
	       nla_put_u32(skb, ACP_NL_A_TIMEOUT, div_u64(job->limit, NSEC_PER_MSEC)) ?:
	       nla_put_u32(skb, ACP_NL_A_OPEN_TIMEOUT, div_u64(job->open_limit, NSEC_PER_MSEC)) ?:
	       nla_put_u32(skb, ACP_NL_A_PLACED, job->barrier.expected);
}

static int put_job(struct sk_buff *skb, struct acp_job *job)
{
	u32 mismatched = READ_ONCE(job->mismatched);

	return acp_nl_put_job(skb, job) ?: put_fixed(skb, job) ?:
	       nla_put_u32(skb, ACP_NL_A_JOB_STATE, state_of(job)) ?:
	       nla_put_u32(skb, ACP_NL_A_RANKS, READ_ONCE(job->members)) ?:
	       acp_nl_put_u64(skb, ACP_NL_A_BARRIERS, READ_ONCE(job->barrier.released)) ?:
	       acp_nl_put_flag(skb, ACP_NL_A_BROKEN, READ_ONCE(job->barrier.broken)) ?:
	       acp_nl_put_flag(skb, ACP_NL_A_ABORTED, READ_ONCE(job->aborted)) ?:
	       (mismatched ? nla_put_u32(skb, ACP_NL_A_MISMATCHED, mismatched - 1) : 0) ?:
	       nla_put_u32(skb, ACP_NL_A_FLOWS, READ_ONCE(job->flows)) ?:
	       acp_nl_put_u64(skb, ACP_NL_A_AGE, div_u64(acp_now() - job->begun, NSEC_PER_MSEC)) ?:
	       acp_nl_put_u64(skb, ACP_NL_A_MEMORY, memory_of(job));
}

/* Reply with the attributes that "put" adds for a job.  Gives up the reference to the job. */
static int reply_about(struct genl_info *info, struct acp_job *job,
		       int (*put)(struct sk_buff *skb, struct acp_job *job, u32 rank), u32 rank)
{
	void *head;
	struct sk_buff *skb = acp_nl_reply_new(info, &head);
	int err = skb ? put(skb, job, rank) : -ENOMEM;

	acp_job_put(job);
	return skb ? acp_nl_reply(skb, head, err, info) : err;
}

static int put_job_reply(struct sk_buff *skb, struct acp_job *job, u32 rank)
{
	return put_job(skb, job);
}

int acp_nl_job_get(struct sk_buff *request, struct genl_info *info)
{
	int err;
	struct acp_job *job = job_of(request, info, &err);

	return job ? reply_about(info, job, put_job_reply, 0) : err;
}

static int fill_job(struct sk_buff *skb, struct netlink_callback *cb, struct acp_job *job)
{
	void *head = acp_nl_dump_entry(skb, cb, ACP_NL_CMD_JOB_GET);
	int err = head ? put_job(skb, job) : -EMSGSIZE;

	if (err)
		genlmsg_cancel(skb, head);
	else
		genlmsg_end(skb, head);
	return err;
}

int acp_nl_job_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	return each_job(skb, cb, fill_job);
}

int acp_nl_job_abort(struct sk_buff *request, struct genl_info *info)
{
	int err;
	struct acp_job *job = job_of(request, info, &err);

	if (!job)
		return err;
	/* Under RCU the job has all its peers, or is marked dead. */
	rcu_read_lock();
	acp_barrier_abort(job, true);
	rcu_read_unlock();
	acp_job_put(job);
	return 0;
}

void acp_nl_sum(struct acp_job *job, struct acp_nl_sums *s)
{
	const struct acp_queue *queue;
	const struct acp_rank *rank;
	struct acp_peer *peer;
	unsigned long i;

	spin_lock_bh(&job->node->poll_lock);
	s->completed = job->gone.completed;
	s->failed = job->gone.failed;
	list_for_each_entry(queue, &job->queue_list, job_link) {
		s->completed += READ_ONCE(queue->completed) - queue->first;
		s->failed += READ_ONCE(queue->failed);
	}
	list_for_each_entry(rank, &job->rank_list, link) {
		s->completed += rank->gone.completed;
		s->failed += rank->gone.failed;
		s->ranks++;
	}
	spin_unlock_bh(&job->node->poll_lock);
	rcu_read_lock();
	xa_for_each(&job->peers, i, peer) {
		const u64 *from = (const u64 *)&peer->traffic;
		u64 *to = (u64 *)&s->traffic;
		u32 k;

		spin_lock_bh(&peer->lock);
		for (k = 0; k < sizeof(s->traffic) / sizeof(u64); k++)
			to[k] += from[k];
		spin_unlock_bh(&peer->lock);
		s->flows++;
		/* The walk goes on by index: it does not need this peer any more. */
		if (!(s->flows & 63)) {
			rcu_read_unlock();
			cond_resched();
			rcu_read_lock();
		}
	}
	rcu_read_unlock();
}

/* ---- ranks ---- */

static int put_state(struct sk_buff *skb, struct acp_job *job, u32 rank)
{
	u8 status;
	u32 state = acp_event_state(job, rank, &status);

	return acp_nl_put_job(skb, job) ?:
	       nla_put_u32(skb, ACP_NL_A_RANK, rank) ?:
	       nla_put_u32(skb, ACP_NL_A_NODE, acp_job_node_of(job, rank)) ?:
	       nla_put_u32(skb, ACP_NL_A_RANK_STATE, state) ?:
	       (state == ACP_RANK_DOWN ? nla_put_u32(skb, ACP_NL_A_STATUS, status) : 0);
}

/* The commands of a rank, in all its queues. */
struct work {
	u64 taken, completed, failed;
	u32 queues;
};

static void add_work(struct work *w, const struct acp_queue *queue)
{
	u64 completed = READ_ONCE(queue->completed) - queue->first;
	u64 taken = READ_ONCE(queue->taken) - queue->first;

	if (queue->counted)
		return;
	/* The two reads are not atomic: commands may have been taken and completed in between. */
	w->taken += max(taken, completed);
	w->completed += completed;
	w->failed += READ_ONCE(queue->failed);
	w->queues++;
}

/* RCU. */
static struct work work_of(struct acp_rank *rank)
{
	const struct acp_queue *queue;
	struct work w = {};
	unsigned long i;

	spin_lock_bh(&rank->job->node->poll_lock);
	add_work(&w, &rank->own);
	xa_for_each(&rank->queues, i, queue)
		add_work(&w, queue);
	/* Queues that were closed and added to "gone" have no commands in progress. */
	w.taken += rank->gone.completed;
	w.completed += rank->gone.completed;
	w.failed += rank->gone.failed;
	spin_unlock_bh(&rank->job->node->poll_lock);
	return w;
}

/* RCU. */
static int put_here(struct sk_buff *skb, struct acp_rank *rank)
{
	struct work w = work_of(rank);
	u32 pid = pid_nr_ns(rank->pid, task_active_pid_ns(current));
	bool waits = READ_ONCE(rank->syncing) && READ_ONCE(rank->sync_want);

	return (pid ? nla_put_u32(skb, ACP_NL_A_PID, pid) : 0) ?:
	       nla_put_u32(skb, ACP_NL_A_UID,
			   from_kuid_munged(rank->job->node->net->user_ns, rank->job->owner)) ?:
	       nla_put_u32(skb, ACP_NL_A_DEPTH, rank->own.depth) ?:
	       nla_put_u32(skb, ACP_NL_A_QUEUES, w.queues) ?:
	       acp_nl_put_u64(skb, ACP_NL_A_TAKEN, w.taken) ?:
	       acp_nl_put_u64(skb, ACP_NL_A_COMPLETED, w.completed) ?:
	       acp_nl_put_u64(skb, ACP_NL_A_FAILED, w.failed) ?:
	       nla_put_u32(skb, ACP_NL_A_IN_FLIGHT, w.taken - w.completed) ?:
	       acp_nl_put_u64(skb, ACP_NL_A_STARTER, rank->starter_bytes) ?:
	       acp_nl_put_u64(skb, ACP_NL_A_HEAP, rank->heap_bytes) ?:
	       nla_put_u32(skb, ACP_NL_A_REGIONS, READ_ONCE(rank->n_regions)) ?:
	       (waits ? acp_nl_put_u64(skb, ACP_NL_A_BARRIER, READ_ONCE(rank->sync_want)) : 0) ?:
	       acp_nl_put_flag(skb, ACP_NL_A_FINISHED, READ_ONCE(rank->finished));
}

static int put_rank(struct sk_buff *skb, struct acp_job *job, u32 rank)
{
	u32 color, node = acp_job_node_of(job, rank);
	struct acp_rank *here;
	int err = put_state(skb, job, rank);
	u8 addr[16];

	for (color = 0; !err && color < job->colors; color++) {
		acp_job_address(job, node, color, addr);
		err = acp_nl_put_address(skb, job, addr);
	}
	rcu_read_lock();
	here = node == job->me ? acp_job_rank(job, rank) : NULL;
	if (!err && here)
		err = put_here(skb, here);
	rcu_read_unlock();
	return err;
}

/* The rank of a request.  -EINVAL: the job has no such rank. */
static int rank_of(struct acp_job *job, struct genl_info *info, u32 *rank)
{
	*rank = nla_get_u32(info->attrs[ACP_NL_A_RANK]);
	if (*rank < job->ga.nprocs)
		return 0;
	NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[ACP_NL_A_RANK],
			    "the job has no such rank");
	return -EINVAL;
}

int acp_nl_rank_get(struct sk_buff *request, struct genl_info *info)
{
	struct acp_job *job;
	u32 rank;
	int err;

	if (GENL_REQ_ATTR_CHECK(info, ACP_NL_A_RANK))
		return -EINVAL;
	job = job_of(request, info, &err);
	if (!job)
		return err;
	err = rank_of(job, info, &rank);
	if (!err)
		return reply_about(info, job, put_rank, rank);
	acp_job_put(job);
	return err;
}

static int fill_ranks(struct sk_buff *skb, struct netlink_callback *cb, struct acp_job *job)
{
	struct acp_nl_cursor *c = acp_nl_cursor(cb);
	struct acp_rank *rank;
	int err = 0;

	rcu_read_lock();
	xa_for_each_start(&job->ranks, c->at, rank, c->at) {
		void *head = acp_nl_dump_entry(skb, cb, ACP_NL_CMD_RANK_GET);

		err = head ? put_state(skb, job, rank->number) ?: put_here(skb, rank) : -EMSGSIZE;
		if (err) {
			genlmsg_cancel(skb, head);
			break;
		}
		genlmsg_end(skb, head);
	}
	rcu_read_unlock();
	return err;
}

int acp_nl_rank_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	if (acp_nl_dump_attrs(cb)[ACP_NL_A_RANK]) {
		NL_SET_ERR_MSG(cb->extack, "a dump is of all ranks");
		return -EINVAL;
	}
	return each_job(skb, cb, fill_ranks);
}

/* ---- regions ---- */

static u32 kind_of(const struct acp_region *r)
{
	static const u32 kinds[] = {
		[ACP_STAG_STARTER] = ACP_NL_REGION_STARTER,
		[ACP_STAG_HEAP] = ACP_NL_REGION_HEAP,
		[ACP_STAG_LIBRARY] = ACP_NL_REGION_LIBRARY,
	};

	return r->registered || r->stag >= ARRAY_SIZE(kinds) ? ACP_NL_REGION_USER : kinds[r->stag];
}

static int put_region(struct sk_buff *skb, const struct acp_rank *rank,
		      const struct acp_region *r)
{
	return acp_nl_put_job(skb, rank->job) ?:
	       nla_put_u32(skb, ACP_NL_A_RANK, rank->number) ?:
	       nla_put_u32(skb, ACP_NL_A_STAG, r->stag) ?:
	       acp_nl_put_u64(skb, ACP_NL_A_KEY,
			      acp_ga_make(&rank->job->ga, rank->number, r->color, r->stag, 0)) ?:
	       nla_put_u32(skb, ACP_NL_A_COLOR, r->color) ?:
	       nla_put_u32(skb, ACP_NL_A_ACCESS, r->access) ?:
	       nla_put_u32(skb, ACP_NL_A_KIND, kind_of(r)) ?:
	       acp_nl_put_u64(skb, ACP_NL_A_LENGTH, r->end - r->base) ?:
	       acp_nl_put_u64(skb, ACP_NL_A_PAGES, r->npages) ?:
	       (r->registered ? acp_nl_put_u64(skb, ACP_NL_A_START, r->start + r->base) ?:
		nla_put_u32(skb, ACP_NL_A_REGISTRATIONS, READ_ONCE(r->count)) : 0) ?:
	       acp_nl_put_flag(skb, ACP_NL_A_REVOKED, READ_ONCE(r->revoked));
}

/* Dump the regions of a rank, from c->sub on.  RCU. */
static int fill_regions_of(struct sk_buff *skb, struct netlink_callback *cb,
			   struct acp_rank *rank)
{
	struct acp_nl_cursor *c = acp_nl_cursor(cb);
	const struct acp_region *r;

	xa_for_each_start(&rank->regions, c->sub, r, c->sub) {
		void *head = acp_nl_dump_entry(skb, cb, ACP_NL_CMD_REGION_GET);
		int err = head ? put_region(skb, rank, r) : -EMSGSIZE;

		if (err) {
			genlmsg_cancel(skb, head);
			return err;
		}
		genlmsg_end(skb, head);
	}
	c->sub = 0;
	return 0;
}

static int fill_regions(struct sk_buff *skb, struct netlink_callback *cb, struct acp_job *job)
{
	const struct nlattr *only = acp_nl_dump_attrs(cb)[ACP_NL_A_RANK];
	struct acp_nl_cursor *c = acp_nl_cursor(cb);
	unsigned long number = only ? nla_get_u32(only) : c->at;
	unsigned long last = only ? number : ULONG_MAX;
	struct acp_rank *rank;
	int err = 0;

	rcu_read_lock();
	while (!err && (rank = xa_find(&job->ranks, &number, last, XA_PRESENT))) {
		/* The last part ended within another rank: start at this one's first region. */
		if (number != c->at) {
			c->at = number;
			c->sub = 0;
		}
		err = fill_regions_of(skb, cb, rank);
		if (err || number == last)
			break;
		c->at = ++number;
	}
	rcu_read_unlock();
	return err;
}

int acp_nl_region_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	return each_job(skb, cb, fill_regions);
}

/* ---- flows ---- */

/* A snapshot of a flow. */
struct look {
	struct acp_traffic traffic;
	u64 srtt, rttvar, rtt_min, rto, used;
	u32 state, fate, window, in_flight, waiting, mtu;
	u8 status;
};

static u32 count_items(const struct list_head *list, u32 n)
{
	const struct list_head *p;

	list_for_each(p, list)
		if (++n >= LOOK_MAX)
			break;
	return n;
}

static void look_at(struct acp_peer *peer, struct look *l)
{
	static const u32 states[] = {
		[ACP_FLOW_CLOSED] = ACP_NL_FLOW_CLOSED,
		[ACP_FLOW_OPENING] = ACP_NL_FLOW_OPENING,
		[ACP_FLOW_OPEN] = ACP_NL_FLOW_OPEN,
	};
	static const u32 fates[] = {
		[ACP_FATE_NONE] = ACP_NL_FATE_NONE,
		[ACP_FATE_LOST] = ACP_NL_FATE_LOST,
		[ACP_FATE_BACK] = ACP_NL_FATE_BACK,
	};
	const struct acp_flow *f = &peer->flow;

	spin_lock_bh(&peer->lock);
	*l = (struct look){
		.traffic = peer->traffic, .srtt = f->srtt, .rttvar = f->rttvar,
		.rtt_min = f->cong.rtt_min, .rto = f->rto, .used = peer->used,
		.state = states[f->state], .fate = fates[peer->fates.fate],
		.window = f->cong.window, .in_flight = f->flight, .mtu = peer->mtu,
		.waiting = count_items(&peer->answers, count_items(&peer->pending, 0)),
		.status = peer->fates.status,
	};
	spin_unlock_bh(&peer->lock);
}

static int put_traffic(struct sk_buff *skb, const struct acp_traffic *t)
{
	return acp_nl_put_u64(skb, ACP_NL_A_TX_FRAMES, t->tx_frames) ?:
	       acp_nl_put_u64(skb, ACP_NL_A_TX_BYTES, t->tx_bytes) ?:
	       acp_nl_put_u64(skb, ACP_NL_A_TX_RETRANSMITS, t->tx_retransmits) ?:
	       acp_nl_put_u64(skb, ACP_NL_A_RX_FRAMES, t->rx_frames) ?:
	       acp_nl_put_u64(skb, ACP_NL_A_RX_BYTES, t->rx_bytes) ?:
	       acp_nl_put_u64(skb, ACP_NL_A_RX_DUPLICATES, t->rx_duplicates) ?:
	       acp_nl_put_u64(skb, ACP_NL_A_TIMEOUTS, t->timeouts);
}

static int put_look(struct sk_buff *skb, const struct look *l)
{
	return nla_put_u32(skb, ACP_NL_A_FLOW_STATE, l->state) ?:
	       nla_put_u32(skb, ACP_NL_A_FLOW_FATE, l->fate) ?:
	       (l->fate != ACP_NL_FATE_NONE ? nla_put_u32(skb, ACP_NL_A_STATUS, l->status) : 0) ?:
	       acp_nl_put_u64(skb, ACP_NL_A_SRTT, l->srtt) ?:
	       acp_nl_put_u64(skb, ACP_NL_A_RTTVAR, l->rttvar) ?:
	       acp_nl_put_u64(skb, ACP_NL_A_RTT_MIN, l->rtt_min) ?:
	       acp_nl_put_u64(skb, ACP_NL_A_RTO, l->rto) ?:
	       nla_put_u32(skb, ACP_NL_A_WINDOW, l->window) ?:
	       nla_put_u32(skb, ACP_NL_A_IN_FLIGHT, l->in_flight) ?:
	       nla_put_u32(skb, ACP_NL_A_WAITING, l->waiting) ?:
	       nla_put_u32(skb, ACP_NL_A_MTU, l->mtu) ?:
	       put_traffic(skb, &l->traffic);
}

/* RCU. */
static int fill_flow(struct sk_buff *skb, struct netlink_callback *cb, struct acp_peer *peer)
{
	void *head = acp_nl_dump_entry(skb, cb, ACP_NL_CMD_FLOW_GET);
	u64 now = acp_now(), begun;
	struct look l;
	int err = -EMSGSIZE;

	if (head) {
		look_at(peer, &l);
		begun = max(l.used, peer->job->begun);
		err = acp_nl_put_job(skb, peer->job) ?:
		      nla_put_u32(skb, ACP_NL_A_NODE, peer->node) ?:
		      nla_put_u32(skb, ACP_NL_A_COLOR, peer->color) ?:
		      acp_nl_put_address(skb, peer->job, peer->addr) ?:
		      put_look(skb, &l) ?:
		      nla_put_u32(skb, ACP_NL_A_DELEGATED, atomic_read(&peer->delegated)) ?:
		      acp_nl_put_u64(skb, ACP_NL_A_IDLE,
				     now > begun ? div_u64(now - begun, NSEC_PER_MSEC) : 0);
	}
	if (err)
		genlmsg_cancel(skb, head);
	else
		genlmsg_end(skb, head);
	return err;
}

static bool wanted_flow(const struct acp_peer *peer, struct nlattr **attrs)
{
	const struct nlattr *node = attrs[ACP_NL_A_NODE], *color = attrs[ACP_NL_A_COLOR];

	return (!node || nla_get_u32(node) == peer->node) &&
	       (!color || nla_get_u32(color) == peer->color);
}

static int fill_flows(struct sk_buff *skb, struct netlink_callback *cb, struct acp_job *job)
{
	struct nlattr **attrs = acp_nl_dump_attrs(cb);
	struct acp_nl_cursor *c = acp_nl_cursor(cb);
	struct acp_peer *peer;
	u32 looked = 0;
	int err = 0;

	rcu_read_lock();
	xa_for_each_start(&job->peers, c->at, peer, c->at) {
		if (wanted_flow(peer, attrs))
			err = fill_flow(skb, cb, peer);
		if (err)
			break;
		if (++looked & 63)
			continue;
		rcu_read_unlock();
		cond_resched();
		rcu_read_lock();
	}
	rcu_read_unlock();
	return err;
}

int acp_nl_flow_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	return each_job(skb, cb, fill_flows);
}

/* ---- ping ---- */

/* The n below count for which addr = base + n, in network order; or -1. */
static s64 distance(const u8 *addr, const u8 *base, u32 width, u32 count)
{
	s64 n = 0;
	u32 i;

	for (i = 0; i < width; i++) {
		n = n * 256 + addr[i] - base[i];
		/* Further bytes cannot bring such a distance back into the range. */
		if (n > U32_MAX || n < -(s64)U32_MAX)
			return -1;
	}
	return n >= 0 && n < count ? n : -1;
}

/* Find the node that has an address, on any color or on the given one: 0 or -EHOSTUNREACH. */
static int find_address(struct acp_job *job, const struct nlattr *attr, const struct nlattr *color,
			struct acp_ping_ask *ask)
{
	u32 i, width = job->family == AF_INET ? 4 : 16;

	for (i = 0; i < job->n_node_runs && nla_len(attr) == width; i++) {
		const struct acp_node_run *r = &job->node_runs[i];
		s64 n = distance(nla_data(attr), r->addr, width, r->count);

		if (n >= 0 && (!color || nla_get_u32(color) == r->color)) {
			ask->node = r->first + n;
			ask->color = r->color;
			return 0;
		}
		if (!(i & 1023))
			cond_resched();
	}
	return -EHOSTUNREACH;
}

static int target_of(struct acp_job *job, struct genl_info *info, struct acp_ping_ask *ask)
{
	struct nlattr **a = info->attrs;
	int err = 0;

	if (!!a[ACP_NL_A_RANK] + !!a[ACP_NL_A_NODE] + !!a[ACP_NL_A_ADDRESS] != 1) {
		GENL_SET_ERR_MSG(info, "either a rank, a node or an address");
		return -EINVAL;
	}
	if (a[ACP_NL_A_COLOR])
		ask->color = nla_get_u32(a[ACP_NL_A_COLOR]);
	if (a[ACP_NL_A_ADDRESS]) {
		err = find_address(job, a[ACP_NL_A_ADDRESS], a[ACP_NL_A_COLOR], ask);
		if (err)
			GENL_SET_ERR_MSG(info, "no node of the job has that address");
	} else if (a[ACP_NL_A_RANK]) {
		ask->has_rank = true;
		err = rank_of(job, info, &ask->rank);
		if (!err)
			ask->node = acp_job_node_of(job, ask->rank);
	} else {
		ask->node = nla_get_u32(a[ACP_NL_A_NODE]);
	}
	if (err)
		return err;
	if (ask->node >= job->nodes || ask->color >= job->colors) {
		GENL_SET_ERR_MSG(info, "the job has no such node or color");
		return -EINVAL;
	}
	if (ask->node == job->me) {
		GENL_SET_ERR_MSG(info, "that is this node: there is no way to measure");
		return -EINVAL;
	}
	return 0;
}

static u32 u32_or(const struct nlattr *attr, u32 otherwise)
{
	return attr ? nla_get_u32(attr) : otherwise;
}

int acp_nl_ping(struct sk_buff *request, struct genl_info *info)
{
	struct acp_ping_ask ask = {
		.size = u32_or(info->attrs[ACP_NL_A_SIZE], 0),
		.timeout = u32_or(info->attrs[ACP_NL_A_TIMEOUT], ACP_NL_PING_TIMEOUT),
		.portid = info->snd_portid, .seq = info->snd_seq,
	};
	int err;
	struct acp_job *job = job_of(request, info, &err);

	if (!job)
		return err;
	err = target_of(job, info, &ask);
	if (!err) {
		err = acp_ping_start(job, &ask);
		if (err == -EBUSY)
			GENL_SET_ERR_MSG(info, "as many pings of the job as may be are under way");
		else if (err == -EDQUOT)
			GENL_SET_ERR_MSG(info, "no flow: no memory, or as many as job_peers allows");
		else if (err == -ENOENT)
			GENL_SET_ERR_MSG(info, "the job has just ended here");
	}
	acp_job_put(job);
	return err;
}
