// SPDX-License-Identifier: GPL-2.0-only
/* The worker of a rank: see worker.h. */
#include <linux/cgroup.h>
#include <linux/kthread.h>
#include <linux/pid.h>
#include <linux/sched/task.h>
#include "../queue/budget.h"
#include "../job/node.h"
#include "../upcall.h"
#include "drain.h"
#include "worker.h"

/*
 * Steps, of one budget each, between two checks of the process's control groups.  Moving between
 * groups takes some milliseconds and global locks, which a rank that needs its worker only now and
 * then should not cause.  So up to 1 MiB or 1,024 entries of each rank are not accounted.
 */
#define STEPS_ALIKE	16
#define REST		HZ	/* idle until it leaves them; they cannot be frozen meanwhile */

static struct workqueue_struct *makers;

/* ---- accounting ---- */

static bool same_groups(struct task_struct *a, struct task_struct *b)
{
#ifdef CONFIG_CGROUPS
	return rcu_access_pointer(a->cgroups) == rcu_access_pointer(b->cgroups);
#else
	return true;
#endif
}

/* If that fails, or the process has ended, the worker stays where it is. */
static void follow_owner(struct acp_rank *rank)
{
	struct task_struct *owner = get_pid_task(rank->pid, PIDTYPE_TGID);

	if (!owner)
		return;
	if (!same_groups(owner, current))
		cgroup_attach_task_all(owner, current);
	rank->worker.away = true;
	put_task_struct(owner);
}

/* Move back to the control groups that kernel threads start in. */
static void go_home(struct acp_rank *rank)
{
	struct task_struct *home = rank->job->node->poller.task;

	if (!same_groups(home, current))
		cgroup_attach_task_all(home, current);
	rank->worker.away = false;
	rank->worker.steps = 0;
}

static void count_step(struct acp_rank *rank)
{
	if (++rank->worker.steps < STEPS_ALIKE)
		return;
	rank->worker.steps = 0;
	follow_owner(rank);
}

/* ---- the work ---- */

/* Drain a queue with one budget.  Returns true if more is left. */
static bool step(struct acp_queue *queue)
{
	struct acp_budget budget;
	bool more;

	local_bh_disable();
	acp_budget_begin(&budget);
	more = acp_drain(queue, &budget);
	local_bh_enable();
	cond_resched();
	return more;
}

/* The next additional queue that is ready, from *number on; the caller gets a reference. */
static struct acp_queue *next_queue(struct acp_rank *rank, unsigned long *number)
{
	struct acp_queue *queue;

	rcu_read_lock();
	queue = xa_find(&rank->queues, number, ULONG_MAX, XA_PRESENT);
	while (queue && !(acp_queue_ready(queue) && acp_queue_get_if_there(queue)))
		queue = xa_find_after(&rank->queues, number, ULONG_MAX, XA_PRESENT);
	rcu_read_unlock();
	return queue;
}

/* The next peer that is behind, from *index on.  BH is off then, until when the peer stays. */
static struct acp_peer *next_behind(struct acp_job *job, unsigned long *index)
{
	struct acp_peer *peer;

	rcu_read_lock();
	peer = xa_find(&job->peers, index, ULONG_MAX, XA_PRESENT);
	while (peer && !READ_ONCE(peer->behind))
		peer = xa_find_after(&job->peers, index, ULONG_MAX, XA_PRESENT);
	local_bh_disable();
	rcu_read_unlock();
	return peer;
}

/* Process held frames of each peer that is behind, with one budget.  True if more is left. */
static bool release(struct acp_rank *rank, bool account)
{
	struct acp_peer *peer;
	unsigned long i = 0;
	bool more = false;

	/* Before the peers are looked at: pairs with acp_station_late(). */
	if (!READ_ONCE(rank->worker.late) || !xchg(&rank->worker.late, false))
		return false;
	do {
		peer = next_behind(rank->job, &i);
		more |= peer && acp_peer_release(peer);
		local_bh_enable();
		cond_resched();
		if (account)
			count_step(rank);
		i++;
	} while (peer);
	if (more)
		WRITE_ONCE(rank->worker.late, true);
	return more;
}

/* Drain each queue with one budget.  Returns true if more is left in any of them. */
static bool one_round(struct acp_rank *rank, bool account)
{
	struct acp_queue *queue;
	unsigned long number = 0;
	bool more = acp_queue_ready(&rank->own) && step(&rank->own);

	if (account)
		count_step(rank);
	more |= release(rank, account);
	while ((queue = next_queue(rank, &number))) {
		more |= step(queue);
		acp_queue_put(queue);
		number++;
		if (account)
			count_step(rank);
	}
	return more;
}

static void serve(struct acp_rank *rank, bool account)
{
	/*
	 * Fully ordered: a later kick sets it again, or its entries are seen here: pairs with
	 * acp_worker_kick().
	 */
	xchg(&rank->worker.due, false);
	while (one_round(rank, account) && !READ_ONCE(rank->own.closed))
		;
}

static bool wanted(const struct acp_worker *w)
{
	return READ_ONCE(w->due) || kthread_should_stop();
}

static void rest(struct acp_rank *rank)
{
	struct acp_worker *w = &rank->worker;

	if (w->away && !wait_event_idle_timeout(w->wait, wanted(w), REST))
		go_home(rank);
	wait_event_idle(w->wait, wanted(w));
}

static int worker_thread(void *data)
{
	struct acp_rank *rank = data;

	/* Lowest priority: work without doorbells must not delay tasks that compute or wait. */
	set_user_nice(current, MAX_NICE);
	while (!kthread_should_stop()) {
		rest(rank);
		if (!kthread_should_stop())
			serve(rank, true);
	}
	return 0;
}

/* ---- requests ---- */

/* Start the thread.  If that fails, the work is done here and not accounted. */
static void make(struct work_struct *work)
{
	struct acp_rank *rank = container_of(work, struct acp_rank, worker.make);
	struct task_struct *task = rank->worker.task;

	if (!READ_ONCE(rank->own.closed) && !task) {
		task = kthread_run(worker_thread, rank, "acp/%d", pid_nr(rank->pid));
		if (!IS_ERR(task))
			WRITE_ONCE(rank->worker.task, task);
		else
			serve(rank, false);
	}
	/*
	 * The thread may have served and gone to sleep before rank->worker.task was set: a caller
	 * that asked in between has queued this work again, and could not wake the thread.
	 */
	if (!READ_ONCE(rank->own.closed) && rank->worker.task)
		wake_up(&rank->worker.wait);
	acp_rank_put(rank);
}

void acp_worker_kick(struct acp_rank *rank)
{
	struct acp_worker *w = &rank->worker;

	/* Fully ordered: what is to be drained, before the request: pairs with serve(). */
	if (xchg(&w->due, true))
		return;
	acp_stat_inc(rank->job->node, worker_wakeups);
	if (READ_ONCE(w->task))
		wake_up(&w->wait);
	else if (acp_rank_get_if_there(rank) && !queue_work(makers, &w->make))
		acp_rank_put(rank);
}

/* The rank that an address belongs to if it is one of this node, or another one; or NULL. */
static struct acp_rank *rank_here(struct acp_job *job, u64 target)
{
	struct acp_rank *rank = acp_job_rank(job, acp_ga_rank(&job->ga, target));

	return rank ?: list_first_or_null_rcu(&job->rank_list, struct acp_rank, link);
}

bool acp_station_late(struct acp_peer *peer, u64 target)
{
	struct acp_rank *rank = rank_here(peer->job, target);

	/* BH is off, so no rank goes away (RCU). */
	if (!rank)
		return false;
	WRITE_ONCE(rank->worker.late, true);
	/* Fully ordered, unless it is due anyway, when it is still to look: pairs with serve(). */
	acp_worker_kick(rank);
	return true;
}

/* The worker has been stopped, perhaps before it could do this. */
static void hand_back(struct acp_job *job)
{
	struct acp_peer *peer;
	unsigned long i = 0;

	do {
		peer = next_behind(job, &i);
		if (peer)
			acp_peer_release_here(peer);
		local_bh_enable();
		i++;
	} while (peer);
}

void acp_worker_prepare(struct acp_rank *rank)
{
	init_waitqueue_head(&rank->worker.wait);
	INIT_WORK(&rank->worker.make, make);
}

void acp_worker_stop(struct acp_rank *rank)
{
	/* Callers that still ask, through a closed additional queue, find the rank closed, too. */
	if (cancel_work_sync(&rank->worker.make))
		acp_rank_put(rank);
	if (rank->worker.task)
		kthread_stop(rank->worker.task);
	if (rank->worker.late)
		hand_back(rank->job);
}

int acp_worker_init(void)
{
	makers = alloc_workqueue("acp_worker", WQ_UNBOUND, 0);
	return makers ? 0 : -ENOMEM;
}

void acp_worker_exit(void)
{
	destroy_workqueue(makers);
}
