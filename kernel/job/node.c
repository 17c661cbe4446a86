// SPDX-License-Identifier: GPL-2.0-only
/* Nodes, their jobs and ranks: see node.h. */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <net/netns/generic.h>
#include "../exec/barrier.h"
#include "../exec/copies.h"
#include "../exec/matching.h"
#include "../net/demux.h"
#include "node.h"
#include "../netlink/notify.h"
#include "../exec/poller.h"
#include "../queue/queue.h"
#include "../mem/region.h"
#include "../upcall.h"

#define LINGER_QUIET	(200 * NSEC_PER_MSEC)	/* after the last rank, if flows are idle */
#define LINGER_POLL	(HZ / 10)
#define TEND_EVERY	(5 * HZ)
#define TEND_GRANTS	HZ

static unsigned int node_id;
static struct workqueue_struct *tenders;	/* our own: the module flushes it on exit */

struct acp_node *acp_node_of(struct net *net)
{
	return net_generic(net, node_id);
}

/* ---- jobs ---- */

/* A job counts while it is in the table.  Under node->lock. */
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

/*
 * Remove a job from the table, stop its arrivals and free what it has.  The structure itself stays
 * until the last reference is put.  Under node->lock.
 */
static void job_destroy(struct acp_job *job)
{
	WRITE_ONCE(job->dead, true);
	if (cancel_delayed_work(&job->tend))
		acp_job_put(job);	/* the reference of the work */
	xa_erase(&job->node->jobs, acp_job_index(job->id, job->generation));
	acp_cache_clear(&job->node->job_cache, job->id, job);
	uncount_job(job);
	synchronize_rcu();
	acp_copies_flush(job);
	acp_peer_destroy_all(job);
	acp_pings_end(job);
	acp_socket_close(job);
	if (acp_job_encrypted(job))
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

/* May the job end?  Peers may still repeat frames that we acknowledged, or miss frames we sent. */
static bool lingered(struct acp_job *job)
{
	u64 age = acp_now() - job->left_at;

	return age > job->limit || (age > LINGER_QUIET && job_quiet(job));
}

/* Periodic work: idle peers give back memory; a job without ranks ends as soon as it may. */
static void tend(struct work_struct *work)
{
	struct acp_job *job = container_of(to_delayed_work(work), struct acp_job, tend);
	struct acp_node *node = job->node;
	bool again = false, granted;

	mutex_lock(&node->lock);
	WRITE_ONCE(job->tending, false);
	if (!job->dead && !job->members && lingered(job)) {
		job_destroy(job);
	} else if (!job->dead) {
		acp_barrier_tend(job);
		if (job->members)
			reclaim(job);
		if (atomic_read(&job->asks))
			acp_matching_tend(job);
		granted = atomic_read(&job->grants);
		if (granted)
			WRITE_ONCE(job->tending, true);
		again = queue_delayed_work(tenders, &job->tend, !job->members ? LINGER_POLL :
					   granted ? TEND_GRANTS : TEND_EVERY);
	}
	/*
	 * Under the lock: the next owner of the lock finds the memory uncharged, unless somebody
	 * else holds the job.
	 */
	if (!again)
		acp_job_put(job);
	mutex_unlock(&node->lock);
}

/* Add a job to the table.  The table and the work each hold a reference.  Under node->lock. */
static int job_add(struct acp_node *node, struct acp_job *job)
{
	int err = count_job(job);

	if (err)
		return err;
	INIT_DELAYED_WORK(&job->tend, tend);
	if (acp_job_encrypted(job))
		acp_aead_hold();
	err = acp_socket_open(job);
	if (!err)
		err = xa_err(xa_store(&node->jobs, acp_job_index(job->id, job->generation), job,
				      GFP_KERNEL_ACCOUNT));
	if (err) {
		acp_socket_close(job);
		if (acp_job_encrypted(job))
			acp_aead_release();
		uncount_job(job);
		return err;
	}
	acp_cache_set(&node->job_cache, job->id, job);
	refcount_add(2, &job->refs);
	queue_delayed_work(tenders, &job->tend, TEND_EVERY);
	acp_changed(node);
	acp_nl_tell_job(job, ACP_NL_EVENT_JOB_BEGUN);
	return 0;
}

void acp_station_tend(struct acp_job *job, bool now)
{
	if (!now && READ_ONCE(job->tending))
		return;
	WRITE_ONCE(job->tending, true);
	/* For the work, if it is not pending already; it does nothing if the job has ended. */
	refcount_inc(&job->refs);
	if (mod_delayed_work(tenders, &job->tend, now ? 1 : TEND_GRANTS))
		acp_job_put(job);
}

/* ---- ranks ---- */

/*
 * A rank may join only once while its job exists: its tickets would start again
 * at the same numbers, and answers to commands of the first instance would be
 * taken for answers to commands of the second.
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

/* The job if other ranks of this node are in it and the rank may join; NULL: there are none. */
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

/* Add the wanted job to the table, in place of a former one that lingers. */
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

/* Charge for the memory of a new rank before anything is created: a refusal has no effects. */
static int pay(struct acp_rank *rank, const struct acp_job *job, const struct acp_join *join)
{
	unsigned long kib = 0, locked = 0;
	int err = acp_queue_price(job->node, join->depth, &kib);

	err = err ?: acp_region_price(job, join->starter_size, &locked);
	err = err ?: acp_region_price(job, join->heap_size, &locked);
	err = err ?: acp_region_price(job, PAGE_SIZE, &locked);
	err = err ?: acp_user_charge(rank->user, ACP_LIMIT_USER_RANKS, 1);
	if (err)
		return err;
	err = acp_user_charge(rank->user, ACP_LIMIT_USER_MEMORY, kib + locked);
	if (err)
		goto ranks;
	err = acp_memlock_charge(&rank->locked, current->mm, rank->user,
				 locked / (PAGE_SIZE >> 10));
	if (err)
		goto memory;
	rank->paid = kib + locked;
	return 0;

memory:
	acp_user_uncharge(rank->user, ACP_LIMIT_USER_MEMORY, kib + locked);
ranks:
	acp_user_uncharge(rank->user, ACP_LIMIT_USER_RANKS, 1);
	return err;
}

static void pay_back(struct acp_rank *rank)
{
	acp_memlock_uncharge(&rank->locked);
	acp_user_uncharge(rank->user, ACP_LIMIT_USER_MEMORY, rank->paid);
	acp_user_uncharge(rank->user, ACP_LIMIT_USER_RANKS, 1);
}

static struct acp_job *join_wanted(struct acp_node *node, struct acp_job *wanted,
				   const struct acp_join *join, struct acp_rank *rank)
{
	struct acp_job *job;
	int err;

	if (node->dying)
		return ERR_PTR(-ENODEV);
	job = joined_by_others(node, wanted, join->rank);
	err = PTR_ERR_OR_ZERO(job) ?: pay(rank, wanted, join);
	if (err)
		return ERR_PTR(err);
	if (!job)
		job = begin(node, wanted);
	err = PTR_ERR_OR_ZERO(job) ?: take_seat(job, join->rank);
	if (err) {
		pay_back(rank);
		return ERR_PTR(err);
	}
	job->members++;
	refcount_inc(&job->refs);
	return job;
}

struct acp_job *acp_node_join(struct acp_node *node, const struct acp_join *join,
			      struct acp_rank *rank)
{
	/* Not under the lock: page faults of user memory may take arbitrarily long. */
	struct acp_job *wanted = acp_job_create(node, join), *job;

	if (IS_ERR(wanted))
		return wanted;
	mutex_lock(&node->lock);
	job = join_wanted(node, wanted, join, rank);
	mutex_unlock(&node->lock);
	acp_job_put(wanted);
	return job;
}

void acp_node_arrived(struct acp_job *job, u32 rank)
{
	/* No effect if the job has ended meanwhile: its seats are destroyed. */
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
	/* Others may have matched messages for which it asked. */
	if (job->members && !job->dead && atomic_read(&job->asks))
		acp_station_tend(job, true);
	/* Under the lock: the event precedes the end of the job and another join of the rank. */
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

/* The namespace goes away: no file holds it any more, and jobs that linger end here. */
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
	/* Work may wait for the lock, and a closed socket may still be receiving a frame. */
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
