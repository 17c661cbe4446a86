// SPDX-License-Identifier: GPL-2.0-only
/* The poller: see poller.h. */
#include <linux/kthread.h>
#include <linux/moduleparam.h>
#include <linux/rculist.h>
#include "../compat.h"
#include "poller.h"
#include "drain.h"

#define BELLS_TO_WAKE	16
#define BELL_INTERVAL	(2 * NSEC_PER_MSEC)

static unsigned int poll_us = 500;
module_param(poll_us, uint, 0644);
MODULE_PARM_DESC(poll_us, "microseconds the poller goes on looking at idle rings; 0: no poller");

/*
 * Doorbell moderation of a queue replaces the poller on machines with one CPU: while it lasts, no
 * doorbells are needed, because a timer polls the ring.  Commands issued meanwhile share frames,
 * poll rounds and acknowledgements.
 */
#define MODERATION_BELLS_MAX	16384
#define MODERATION_MIN	4	/* commands in one drain that make it worthwhile */
#define MODERATION_VAIN	2	/* consecutive runs of the timer with fewer that end it */
#define MODERATION_US_MAX	1000
#define RATION_NS	(40 * NSEC_PER_USEC)	/* if there is no moderation */

static unsigned int moderation_us = 40;
module_param(moderation_us, uint, 0644);
MODULE_PARM_DESC(moderation_us,
		 "microseconds that a busy ring may wait for a look, on one processor; 0: none");

/* Was anything taken or completed, by anyone, since the last call? */
static bool moved(struct acp_queue *queue)
{
	u64 former = queue->polled;

	queue->polled = READ_ONCE(queue->taken) + READ_ONCE(queue->completed);
	return queue->polled != former;
}

/* Drain a ring that is ready.  Returns true if more is left, which the rank's worker does. */
static bool look_at(struct acp_queue *queue, struct acp_budget *budget)
{
	bool more = true;

	if (!acp_queue_ready(queue))
		return false;
	if (acp_budget_left(budget)) {
		local_bh_disable();
		more = acp_drain(queue, budget);
		local_bh_enable();
	}
	if (more)
		acp_worker_kick(queue->rank);
	return more;
}

/* Poll rings "from" to "to" - 1.  Returns how many there are, "to" at most.  *busy: see look(). */
static u32 look_at_rings(struct acp_node *node, struct acp_budget *budget, u32 from, u32 to,
			 bool *busy)
{
	struct acp_queue *queue;
	u32 i = 0;

	list_for_each_entry_rcu(queue, &node->poll_list, poll_link) {
		if (i == to)
			break;
		if (i++ < from)
			continue;
		*busy |= look_at(queue, budget);
		*busy |= moved(queue);
	}
	return i;
}

/*
 * Poll all rings once, with one budget.  If it does not suffice for all, the next scan begins with
 * the next ring.  Returns true if there is traffic, or if entries are left.
 */
static bool look(struct acp_node *node)
{
	struct acp_poller *p = &node->poller;
	struct acp_budget budget;
	bool busy = false;
	u32 rings;

	acp_budget_begin(&budget);
	rcu_read_lock();
	rings = look_at_rings(node, &budget, p->turn, U32_MAX, &busy);
	if (p->turn)
		look_at_rings(node, &budget, 0, p->turn, &busy);
	rcu_read_unlock();
	if (!acp_budget_left(&budget))
		p->turn = p->turn + 1 < rings ? p->turn + 1 : 0;
	return busy;
}

/* Ask for doorbells, or stop asking.  Returns true if no ring has new entries. */
static bool need_wakeup(struct acp_node *node, bool set)
{
	struct acp_queue *queue;
	bool quiet = true;

	rcu_read_lock();
	list_for_each_entry_rcu(queue, &node->poll_list, poll_link)
		quiet &= acp_queue_need_wakeup(queue, set);
	rcu_read_unlock();
	return quiet;
}

static void look_while_busy(struct acp_node *node)
{
	u64 last = acp_now();

	while (!kthread_should_stop()) {
		if (look(node))
			last = acp_now();
		else if (acp_now() - last > (u64)READ_ONCE(poll_us) * NSEC_PER_USEC)
			break;
		cpu_relax();
		cond_resched();
	}
}

static int poller_thread(void *data)
{
	struct acp_node *node = data;
	struct acp_poller *p = &node->poller;

	while (!kthread_should_stop()) {
		wait_event_interruptible(p->wait, !READ_ONCE(p->asleep) || kthread_should_stop());
		need_wakeup(node, false);
		do {
			look_while_busy(node);
		} while (!need_wakeup(node, true) && !kthread_should_stop());
		/* A kick before this is lost.  It is a hint: its sender has drained the ring. */
		WRITE_ONCE(p->asleep, true);
	}
	return 0;
}

static void kick(struct acp_node *node)
{
	if (READ_ONCE(node->poller.asleep)) {
		WRITE_ONCE(node->poller.asleep, false);
		wake_up(&node->poller.wait);
		acp_stat_inc(node, poller_wakeups);
	}
}

/* ---- doorbell moderation ---- */

static u64 moderation_ns(void)
{
	return min_t(u64, READ_ONCE(moderation_us), MODERATION_US_MAX) * NSEC_PER_USEC;
}

/* Poll the ring again in a while.  Until then the flag is clear, or about to be set. */
static void moderation_on(struct acp_queue *queue, u64 more_ns)
{
	WRITE_ONCE(queue->moderation.most, 0);
	hrtimer_start(&queue->moderation.timer, ns_to_ktime(moderation_ns() + more_ns),
		      HRTIMER_MODE_REL_SOFT);
}

static void moderation_begin(struct acp_queue *queue)
{
	queue->moderation.was_worth = false;
	queue->moderation.vain = 0;
	/* Not preempted in between: other threads stop ringing as soon as the flag is clear. */
	preempt_disable();
	acp_queue_need_wakeup(queue, false);
	moderation_on(queue, 0);
	preempt_enable();
}

/*
 * All timers of queues on a CPU share one budget per interval.  An interval is as long as that of
 * moderation, and begins after the previous one is over.  Without moderation, the timers of parked
 * commands are left.
 */
struct ration {
	u64 until;		/* ns */
	struct acp_budget budget;
};

static DEFINE_PER_CPU(struct ration, rations);

static u64 ration_ns(void)
{
	return moderation_ns() ?: RATION_NS;
}

/*
 * Take what is there.  The rank's worker does what the ration does not suffice for.  Returns true
 * if more is left.
 */
static bool moderation_drain(struct acp_queue *queue, u64 begin)
{
	struct ration *r = this_cpu_ptr(&rations);
	bool more = true;

	if (begin >= r->until) {
		acp_budget_begin(&r->budget);
		r->until = begin + ration_ns();
	}
	if (acp_budget_left(&r->budget)) {
		u32 done = r->budget.done;

		more = acp_drain(queue, &r->budget);
		if (r->budget.done != done) {
			acp_stat_inc(queue->job->node, rounds);
			acp_stat_add(queue->job->node, rounds_commands, r->budget.done - done);
		}
		if (!acp_budget_left(&r->budget)) {
			acp_stat_inc(queue->job->node, rounds_cut);
			begin = acp_now();
			r->until = max(r->until, begin + ration_ns());
		}
	}
	if (more)
		acp_worker_kick(queue->rank);
	return more;
}

/*
 * End moderation and ask for doorbells.  Entries submitted before their owner saw the flag are
 * taken now, as when the poller falls asleep.
 */
static void moderation_end(struct acp_queue *queue)
{
	struct acp_moderation *m = &queue->moderation;

	m->wanted = m->was_worth ? BELLS_TO_WAKE : min(2 * m->wanted, MODERATION_BELLS_MAX);
	if (!acp_queue_need_wakeup(queue, true) && acp_queue_ready(queue))
		moderation_drain(queue, acp_now());
}

/*
 * The timer's callback, in softirq; it uses half of the CPU's time at most.  One run that finds
 * little does not end moderation: the poll round that the previous run led to may have taken so
 * long that the owner did not run since.
 */
static enum hrtimer_restart moderation_look(struct hrtimer *timer)
{
	struct acp_queue *queue = container_of(timer, struct acp_queue, moderation.timer);
	struct acp_moderation *m = &queue->moderation;
	u64 begin = acp_now();
	bool more = acp_queue_ready(queue) && moderation_drain(queue, begin);

	if (more || READ_ONCE(m->most) >= MODERATION_MIN) {
		m->was_worth = true;
		m->vain = 0;
	} else {
		m->vain++;
	}
	if (m->vain < MODERATION_VAIN && READ_ONCE(moderation_us) && !READ_ONCE(queue->closed))
		moderation_on(queue, acp_now() - begin);
	else
		moderation_end(queue);
	return HRTIMER_NORESTART;
}

/*
 * A doorbell with one CPU: begin moderation if they are frequent.  After each moderation that was
 * not worthwhile, more doorbells are needed to begin the next one.
 */
static void moderation_bell(struct acp_queue *queue)
{
	struct acp_moderation *m = &queue->moderation;
	u64 now;

	if (!READ_ONCE(moderation_us) || ++m->bells < m->wanted)
		return;
	now = acp_now();
	if (now - m->first_bell < m->bells * (BELL_INTERVAL / BELLS_TO_WAKE))
		moderation_begin(queue);
	m->first_bell = now;
	m->bells = 0;
}

void acp_poller_bell(struct acp_queue *queue)
{
	struct acp_poller *p = &queue->job->node->poller;
	u64 now;

	if (num_online_cpus() == 1) {
		moderation_bell(queue);
		return;
	}
	if (!READ_ONCE(poll_us) || !READ_ONCE(p->asleep))
		return;
	if (++p->bells < BELLS_TO_WAKE)
		return;
	now = acp_now();
	if (now - p->first_bell < BELL_INTERVAL)
		kick(queue->job->node);
	p->first_bell = now;
	p->bells = 0;
}

/* Commands that found a buffer full start again: the timer's callback, in softirq. */
static enum hrtimer_restart retry_due(struct hrtimer *timer)
{
	struct acp_queue *queue = container_of(timer, struct acp_queue, retry.timer);

	spin_lock(&queue->lock);
	queue->retry.at = ~0ULL;
	spin_unlock(&queue->lock);
	/* Before the request to drain: pairs with resume() in drain.c. */
	WRITE_ONCE(queue->retry_due, true);
	acp_queue_resume(queue);
	moderation_drain(queue, acp_now());
	return HRTIMER_NORESTART;
}

static void look_at_word(struct acp_queue *queue)
{
	if (!READ_ONCE(queue->word))
		return;
	acp_queue_resume(queue);
	moderation_drain(queue, acp_now());
}

/* Words that commands of a rank wait for may have been written: a tasklet, in softirq. */
static void words_due(struct tasklet_struct *words)
{
	struct acp_rank *rank = container_of(words, struct acp_rank, words);
	struct acp_queue *queue;
	unsigned long i;

	look_at_word(&rank->own);
	/* In softirq, no queue goes away (RCU). */
	xa_for_each(&rank->queues, i, queue)
		look_at_word(queue);
}

void acp_poller_prepare_rank(struct acp_rank *rank)
{
	tasklet_setup(&rank->words, words_due);
}

void acp_poller_stop_rank(struct acp_rank *rank)
{
	tasklet_kill(&rank->words);
}

void acp_poller_prepare(struct acp_queue *queue)
{
	hrtimer_setup(&queue->moderation.timer, moderation_look, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_SOFT);
	queue->moderation.wanted = BELLS_TO_WAKE;
	queue->retry.at = ~0ULL;
	hrtimer_setup(&queue->retry.timer, retry_due, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
}

void acp_poller_add(struct acp_node *node, struct acp_queue *queue)
{
	spin_lock_bh(&node->poll_lock);
	list_add_tail_rcu(&queue->poll_link, &node->poll_list);
	list_add_tail_rcu(&queue->job_link, &queue->job->queue_list);
	if (acp_queue_is_own(queue))
		list_add_tail_rcu(&queue->rank->link, &queue->job->rank_list);
	spin_unlock_bh(&node->poll_lock);
}

void acp_poller_unlink(struct acp_node *node, struct acp_queue *queue)
{
	spin_lock_bh(&node->poll_lock);
	WRITE_ONCE(queue->closed, true);
	list_del_rcu(&queue->poll_link);
	spin_unlock_bh(&node->poll_lock);
}

void acp_poller_gone(struct acp_node *node, struct acp_queue *queue)
{
	struct acp_rank *rank = queue->rank;
	struct acp_job *job = rank->job;

	spin_lock_bh(&node->poll_lock);
	list_del_rcu(&queue->job_link);
	queue->counted = true;
	rank->gone.completed += READ_ONCE(queue->completed) - queue->first;
	rank->gone.failed += READ_ONCE(queue->failed);
	if (acp_queue_is_own(queue)) {
		list_del_rcu(&rank->link);
		job->gone.completed += rank->gone.completed;
		job->gone.failed += rank->gone.failed;
	}
	spin_unlock_bh(&node->poll_lock);
}

void acp_poller_stop(struct acp_queue *queue)
{
	hrtimer_cancel(&queue->moderation.timer);
	hrtimer_cancel(&queue->retry.timer);
}

void acp_poller_remove(struct acp_node *node, struct acp_queue *queue)
{
	acp_poller_unlink(node, queue);
	/* Its answers will find no queue: nobody else would stop to expect them. */
	acp_queue_cut(queue);
	acp_poller_gone(node, queue);
	synchronize_rcu();
	/* Not earlier: RCU readers that found the queue may have begun moderation. */
	acp_poller_stop(queue);
}

void acp_poller_init(struct acp_node *node)
{
	init_waitqueue_head(&node->poller.wait);
	node->poller.asleep = true;
	node->poller.task = NULL;
}

void acp_poller_exit(struct acp_node *node)
{
	if (node->poller.task)
		kthread_stop(node->poller.task);
	node->poller.task = NULL;
}

int acp_poller_start(struct acp_node *node)
{
	struct task_struct *task;

	if (node->poller.task)
		return 0;
	task = kthread_run(poller_thread, node, "acp_poll");
	if (IS_ERR(task))
		return PTR_ERR(task);
	node->poller.task = task;
	return 0;
}
