// SPDX-License-Identifier: GPL-2.0-only
/* Nodes and peers: see node.h. */
#include <linux/proc_fs.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <net/dst.h>
#include <net/netns/generic.h>
#include "barrier.h"
#include "copies.h"
#include "core/flow.h"
#include "demux.h"
#include "node.h"
#include "notice.h"
#include "poller.h"
#include "queue.h"
#include "region.h"

#define LINGER_QUIET	(200 * NSEC_PER_MSEC)	/* without frames in flight, after the last rank */
#define LINGER_POLL	(HZ / 10)
#define TEND_EVERY	(5 * HZ)

static unsigned int node_id;
static struct workqueue_struct *tenders;	/* of our own, so that the module can wait for it */

struct acp_node *acp_node_of(struct net *net)
{
	return net_generic(net, node_id);
}

/* ---- peers ---- */

/* Random numbers other than 0, and other than each other. */
static void draw_epochs(u32 e[2])
{
	do {
		get_random_bytes(e, 2 * sizeof(*e));
	} while (!e[0] || !e[1] || e[0] == e[1]);
}

static struct acp_peer *peer_new(struct acp_job *job, u32 node, u32 color)
{
	struct acp_peer *peer = kzalloc(sizeof(*peer), GFP_ATOMIC | __GFP_NOWARN);
	u32 epochs[2];

	if (!peer)
		return NULL;
	peer->job = job;
	peer->node = node;
	peer->color = color;
	acp_job_address(job, node, color, peer->addr);
	spin_lock_init(&peer->lock);
	INIT_LIST_HEAD(&peer->pending);
	INIT_LIST_HEAD(&peer->answers);
	INIT_LIST_HEAD(&peer->dropped);
	__skb_queue_head_init(&peer->held);
	draw_epochs(epochs);
	acp_flow_init(&peer->flow, epochs[0], epochs[1], job->limit, acp_job_open_limit(job));
	if (acp_job_sealed(job))
		acp_aead_secret(&peer->secret, job, node, color);
	acp_peer_init(peer);
	return peer;
}

/*
 * Is it a flow that job_peers is for?  Those over which barriers go are not:
 * they are at most ACP_BARRIER_ARITY + 1, and all nodes would suffer.
 */
static bool is_limited(const struct acp_job *job, u32 node, u32 color)
{
	return color || !acp_barrier_neighbour(job, node);
}

/* Count it as a flow of its job and as memory of its user. */
static bool count_peer(struct acp_job *job, bool limited)
{
	if (limited &&
	    !acp_limit_take(&job->n_peers, 1, acp_limit(job->node, ACP_LIMIT_JOB_PEERS)))
		return false;
	if (!acp_user_charge(job->user, ACP_LIMIT_USER_MEMORY, ACP_PEER_KIB))
		return true;
	if (limited)
		atomic_long_dec(&job->n_peers);
	return false;
}

static void uncount_peer(struct acp_job *job, bool limited)
{
	acp_user_uncharge(job->user, ACP_LIMIT_USER_MEMORY, ACP_PEER_KIB);
	if (limited)
		atomic_long_dec(&job->n_peers);
}

/* In the table of its job, whose lock is held: so that none is counted twice. */
static struct acp_peer *peer_add(struct acp_job *job, u32 node, u32 color)
{
	bool limited = is_limited(job, node, color);
	struct acp_peer *peer;

	if (!count_peer(job, limited)) {
		acp_stat_inc(job->node, limit_peers);
		acp_nl_tell_limit(job->node, job->owner, ACP_LIMIT_JOB_PEERS);
		return NULL;
	}
	peer = peer_new(job, node, color);
	if (peer && !__xa_insert(&job->peers, acp_peer_index(node, color), peer,
				 GFP_ATOMIC | __GFP_NOWARN)) {
		acp_near_set(&job->near_peers, node + color, peer);
		WRITE_ONCE(job->flows, job->flows + 1);
		acp_changed(job->node);
		return peer;
	}
	kfree_sensitive(peer);
	uncount_peer(job, limited);
	return NULL;
}

struct acp_peer *acp_peer_make(struct acp_job *job, u32 node, u32 color)
{
	struct acp_peer *peer;

	xa_lock_bh(&job->peers);
	peer = xa_load(&job->peers, acp_peer_index(node, color)) ?: peer_add(job, node, color);
	xa_unlock_bh(&job->peers);
	return peer;
}

static void peer_gone(struct rcu_head *rcu)
{
	kfree_sensitive(container_of(rcu, struct acp_peer, rcu));
}

static void peer_free(struct acp_peer *peer)
{
	dst_release(peer->dst);
	acp_peer_give_back_slots(peer);
	kfree(peer->fails);
	acp_user_uncharge(peer->job->user, ACP_LIMIT_USER_MEMORY, ACP_PEER_KIB);
	call_rcu(&peer->rcu, peer_gone);
}

/*
 * First all stop, then all give up what they hold: an item of one may have
 * been waiting for another.
 */
void acp_peer_destroy_all(struct acp_job *job)
{
	struct acp_peer *peer;
	unsigned long i;

	xa_for_each(&job->peers, i, peer)
		acp_peer_stop(peer);
	xa_for_each(&job->peers, i, peer) {
		xa_erase_bh(&job->peers, i);
		acp_near_clear(&job->near_peers, peer->node + peer->color, peer);
		peer_free(peer);
	}
}

/* ---- jobs ---- */

void acp_job_changed(struct acp_job *job)
{
	acp_changed(job->node);
}

/* A job counts from when it is in the table until it is out of it.  Under node->lock. */
static int count_job(struct acp_job *job)
{
	struct acp_node *node = job->node;
	int err;

	if (node->n_jobs >= acp_limit(node, ACP_LIMIT_JOBS))
		return acp_over(ACP_LIMIT_JOBS);
	err = acp_user_charge(job->user, ACP_LIMIT_USER_JOBS, 1);
	if (err)
		return err;
	err = acp_job_charge_runs(job);
	if (err)
		acp_user_uncharge(job->user, ACP_LIMIT_USER_JOBS, 1);
	else
		node->n_jobs++;
	return err;
}

static void uncount_job(struct acp_job *job)
{
	job->node->n_jobs--;
	acp_user_uncharge(job->user, ACP_LIMIT_USER_JOBS, 1);
}

/* Out of the table, nothing arrives any more, nothing is left.  Under node->lock. */
static void job_destroy(struct acp_job *job)
{
	WRITE_ONCE(job->dead, true);
	if (cancel_delayed_work(&job->tend))
		acp_job_put(job);	/* the work's */
	xa_erase(&job->node->jobs, acp_job_index(job->id, job->generation));
	acp_near_clear(&job->node->near_jobs, job->id, job);
	uncount_job(job);
	synchronize_rcu();
	acp_copies_flush(job);
	acp_peer_destroy_all(job);
	acp_pings_end(job);
	acp_socket_close(job);
	if (acp_job_sealed(job))
		acp_aead_release();
	xa_destroy(&job->seats);
	acp_changed(job->node);
	acp_nl_tell_job(job, ACP_NL_EVENT_JOB_ENDED);
	acp_job_put(job);
}

static bool job_quiet(struct acp_job *job)
{
	struct acp_peer *peer;
	unsigned long i;
	bool quiet = true;

	xa_for_each(&job->peers, i, peer) {
		spin_lock_bh(&peer->lock);
		quiet &= acp_peer_idle(peer);
		spin_unlock_bh(&peer->lock);
	}
	return quiet;
}

static void reclaim(struct acp_job *job)
{
	struct acp_peer *peer;
	unsigned long i;

	xa_for_each(&job->peers, i, peer)
		acp_peer_reclaim(peer);
}

/* May the job go?  Peers may still repeat what we acknowledged, or lack what we sent. */
static bool lingered(struct acp_job *job)
{
	u64 age = acp_now() - job->left_at;

	return age > job->limit || (age > LINGER_QUIET && job_quiet(job));
}

/* Now and then: idle peers give memory back; a job without ranks ends when it may. */
static void tend(struct work_struct *work)
{
	struct acp_job *job = container_of(to_delayed_work(work), struct acp_job, tend);
	struct acp_node *node = job->node;
	bool again = false;

	mutex_lock(&node->lock);
	if (!job->dead && !job->members && lingered(job)) {
		job_destroy(job);
	} else if (!job->dead) {
		acp_barrier_tend(job);
		if (job->members)
			reclaim(job);
		again = queue_delayed_work(tenders, &job->tend,
					   job->members ? TEND_EVERY : LINGER_POLL);
	}
	/* Under the lock: who waits for it finds this memory free, if nobody else holds the job. */
	if (!again)
		acp_job_put(job);
	mutex_unlock(&node->lock);
}

/* Into the table, which then holds a reference, as does the tending work.  Under node->lock. */
static int job_add(struct acp_node *node, struct acp_job *job)
{
	int err = count_job(job);

	if (err)
		return err;
	INIT_DELAYED_WORK(&job->tend, tend);
	if (acp_job_sealed(job))
		acp_aead_hold();
	err = acp_socket_open(job);
	if (!err)
		err = xa_err(xa_store(&node->jobs, acp_job_index(job->id, job->generation), job,
				      GFP_KERNEL_ACCOUNT));
	if (err) {
		acp_socket_close(job);
		if (acp_job_sealed(job))
			acp_aead_release();
		uncount_job(job);
		return err;
	}
	acp_near_set(&node->near_jobs, job->id, job);
	refcount_add(2, &job->refs);
	queue_delayed_work(tenders, &job->tend, TEND_EVERY);
	acp_changed(node);
	acp_nl_tell_job(job, ACP_NL_EVENT_JOB_BEGUN);
	return 0;
}

/* ---- ranks ---- */

/*
 * A rank is here once in the life of a job: tickets begin anew, and what is
 * under way for the first one would be taken for the second one's.
 */
static int seat_free(struct acp_job *job, u32 rank)
{
	void *seat = xa_load(&job->seats, rank);

	if (seat)
		return seat == ACP_SEAT_LEFT ? -ESTALE : -EEXIST;
	return 0;
}

static int take_seat(struct acp_job *job, u32 rank)
{
	return xa_err(xa_store_bh(&job->seats, rank, ACP_SEAT_TAKEN, GFP_KERNEL_ACCOUNT));
}

/* The job, if others here have joined it and the rank may, too.  NULL: nobody has. */
static struct acp_job *joined_by_others(struct acp_node *node, const struct acp_job *wanted,
					u32 rank)
{
	struct acp_job *job = acp_job_find(node, wanted->id, wanted->generation);
	int err;

	if (!job || !job->members)
		return NULL;
	err = acp_job_match(job, wanted) ?: seat_free(job, rank);
	return err ? ERR_PTR(err) : job;
}

/* Put the wanted job into the table, in place of one that lingers. */
static struct acp_job *begin(struct acp_node *node, struct acp_job *wanted)
{
	struct acp_job *former = acp_job_find(node, wanted->id, wanted->generation);
	int err = acp_settings_apply(wanted);

	if (err)
		return ERR_PTR(err);
	if (former)
		job_destroy(former);
	err = acp_poller_start(node) ?: job_add(node, wanted);
	return err ? ERR_PTR(err) : wanted;
}

/* What a rank begins with counts before anything is made: its user is told at once. */
static int pay(struct acp_context *ctx, const struct acp_job *job, const struct acp_join *join)
{
	unsigned long kib = 0;
	int err = acp_queue_price(job->node, join->depth, &kib);

	err = err ?: acp_region_price(job, join->starter_size, &kib);
	err = err ?: acp_region_price(job, join->heap_size, &kib);
	err = err ?: acp_region_price(job, PAGE_SIZE, &kib);
	err = err ?: acp_user_charge(ctx->user, ACP_LIMIT_USER_RANKS, 1);
	if (err)
		return err;
	err = acp_user_charge(ctx->user, ACP_LIMIT_USER_MEMORY, kib);
	if (err)
		acp_user_uncharge(ctx->user, ACP_LIMIT_USER_RANKS, 1);
	else
		ctx->paid = kib;
	return err;
}

static void pay_back(struct acp_context *ctx)
{
	acp_user_uncharge(ctx->user, ACP_LIMIT_USER_MEMORY, ctx->paid);
	acp_user_uncharge(ctx->user, ACP_LIMIT_USER_RANKS, 1);
}

static struct acp_job *join_wanted(struct acp_node *node, struct acp_job *wanted,
				   const struct acp_join *join, struct acp_context *ctx)
{
	struct acp_job *job;
	int err;

	if (node->dying)
		return ERR_PTR(-ENODEV);
	job = joined_by_others(node, wanted, join->rank);
	err = PTR_ERR_OR_ZERO(job) ?: pay(ctx, wanted, join);
	if (err)
		return ERR_PTR(err);
	if (!job)
		job = begin(node, wanted);
	err = PTR_ERR_OR_ZERO(job) ?: take_seat(job, join->rank);
	if (err) {
		pay_back(ctx);
		return ERR_PTR(err);
	}
	job->members++;
	refcount_inc(&job->refs);
	return job;
}

struct acp_job *acp_node_join(struct acp_node *node, const struct acp_join *join,
			      struct acp_context *ctx)
{
	/* Not under the lock: user memory may take as long as its owner likes. */
	struct acp_job *wanted = acp_job_create(node, join), *job;

	if (IS_ERR(wanted))
		return wanted;
	mutex_lock(&node->lock);
	job = join_wanted(node, wanted, join, ctx);
	mutex_unlock(&node->lock);
	acp_job_put(wanted);
	return job;
}

void acp_node_arrived(struct acp_job *job, u32 rank)
{
	/* Unless the job has ended meanwhile; its seats went with it. */
	xa_cmpxchg_bh(&job->seats, rank, ACP_SEAT_TAKEN, ACP_SEAT_HERE, GFP_KERNEL);
}

void acp_node_leave(struct acp_job *job, u32 rank, enum acp_leave how)
{
	struct acp_node *node = job->node;
	void *seat = how == ACP_LEAVE_UNSEEN ? NULL : ACP_SEAT_LEFT;

	mutex_lock(&node->lock);
	if (!job->dead)
		xa_store_bh(&job->seats, rank, seat, GFP_KERNEL);
	if (!--job->members && !job->dead) {
		job->left_at = acp_now();
		if (!mod_delayed_work(tenders, &job->tend, LINGER_POLL))
			refcount_inc(&job->refs);
	}
	/* Under the lock: before the job ends, and before the rank comes again. */
	if (how != ACP_LEAVE_UNSEEN)
		acp_nl_tell_rank(job, rank, how == ACP_LEAVE_FINISHED, ACP_NL_EVENT_RANK_LEFT);
	mutex_unlock(&node->lock);
	acp_job_put(job);
}

/* ---- counters ---- */

static const char * const stat_names[] = {
#define ACP_STAT_NAME(name, text) #name,
	ACP_STATS(ACP_STAT_NAME)
#undef ACP_STAT_NAME
};

static int stats_show(struct seq_file *seq, void *v)
{
	struct acp_node *node = acp_node_of(seq_file_single_net(seq));
	int i, cpu;

	for (i = 0; i < ACP_STAT_COUNT; i++) {
		u64 sum = 0;

		for_each_possible_cpu(cpu)
			sum += per_cpu_ptr(node->stats, cpu)->v[i];
		seq_printf(seq, "%s %llu\n", stat_names[i], sum);
	}
	return 0;
}

/* ---- network namespaces ---- */

static int __net_init node_enter(struct net *net)
{
	struct acp_node *node = acp_node_of(net);

	node->net = net;
	mutex_init(&node->lock);
	xa_init(&node->jobs);
	INIT_LIST_HEAD(&node->sockets);
	spin_lock_init(&node->poll_lock);
	INIT_LIST_HEAD(&node->poll_list);
	node->stats = alloc_percpu(struct acp_stats);
	if (!node->stats)
		return -ENOMEM;
	acp_poller_init(node);
	acp_settings_init(&node->settings);
	acp_nl_tell_init(node);
	if (acp_limits_enter(node))
		goto stats;
	if (!proc_create_net_single("acp", 0444, net->proc_net, stats_show, NULL))
		goto limits;
	return 0;

limits:
	acp_limits_leave(node);
stats:
	free_percpu(node->stats);
	return -ENOMEM;
}

/* The namespace goes away: jobs end, whoever still holds their files. */
static void __net_exit node_leave(struct net *net)
{
	struct acp_node *node = acp_node_of(net);
	struct acp_job *job;
	unsigned long i;

	remove_proc_entry("acp", net->proc_net);
	acp_limits_leave(node);
	mutex_lock(&node->lock);
	node->dying = true;
	xa_for_each(&node->jobs, i, job) {
		acp_barrier_abort(job, false);
		job_destroy(job);
	}
	mutex_unlock(&node->lock);
	/* A tender may want the lock, and a frame be on its way through a closed socket. */
	flush_workqueue(tenders);
	synchronize_rcu();
	acp_demux_stop(node);
	acp_poller_exit(node);
	xa_destroy(&node->jobs);
	free_percpu(node->stats);
}

static struct pernet_operations node_ops = {
	.init = node_enter,
	.exit = node_leave,
	.id = &node_id,
	.size = sizeof(struct acp_node),
};

int acp_node_init(void)
{
	int err;

	tenders = alloc_workqueue("acp_tend", 0, 0);
	if (!tenders)
		return -ENOMEM;
	err = register_pernet_subsys(&node_ops);
	if (err)
		destroy_workqueue(tenders);
	return err;
}

void acp_node_exit(void)
{
	unregister_pernet_subsys(&node_ops);
	destroy_workqueue(tenders);
}
