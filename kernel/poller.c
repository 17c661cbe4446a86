// SPDX-License-Identifier: GPL-2.0-only
/* The poller: see poller.h. */
#include <linux/kthread.h>
#include <linux/moduleparam.h>
#include <linux/rculist.h>
#include "poller.h"
#include "queue.h"

#define BELLS_TO_WAKE	16
#define BELL_INTERVAL	(2 * NSEC_PER_MSEC)

static unsigned int poll_us = 500;
module_param(poll_us, uint, 0644);
MODULE_PARM_DESC(poll_us, "microseconds the poller goes on looking at idle rings; 0: no poller");

/*
 * The hold of a context, in place of the poller where there is one processor:
 * while it lasts nobody needs to ring, for a timer looks at the ring.  Commands
 * that are issued meanwhile share frames, passes and acknowledgements.
 */
#define HOLD_BELLS_MOST	16384
#define HOLD_LEAST	4	/* commands in one drain that make it worth while */
#define HOLD_VAIN	2	/* looks in a row without: the end */
#define HOLD_US_MOST	1000
#define HOLD_BUDGET	128	/* entries of a look: softirq */

static unsigned int hold_us = 40;
module_param(hold_us, uint, 0644);
MODULE_PARM_DESC(hold_us, "microseconds that a busy ring may wait for a look, on one processor; 0: none");

/* Was something taken or completed since the last look, by whomever? */
static bool moved(struct acp_context *ctx)
{
	u64 former = ctx->polled;

	ctx->polled = READ_ONCE(ctx->taken) + READ_ONCE(ctx->completed);
	return ctx->polled != former;
}

/* Look at all rings once.  True: there is traffic, or something is left to take. */
static bool look(struct acp_node *node)
{
	struct acp_context *ctx;
	bool busy = false;

	rcu_read_lock();
	list_for_each_entry_rcu(ctx, &node->poll_list, poll_link) {
		if (acp_queue_ready(ctx)) {
			local_bh_disable();
			busy |= acp_queue_drain(ctx, ACP_DRAIN_CALLER);
			local_bh_enable();
		}
		busy |= moved(ctx);
	}
	rcu_read_unlock();
	return busy;
}

/* Ask for doorbells, or not.  True: no ring has anything that came meanwhile. */
static bool need_wakeup(struct acp_node *node, bool set)
{
	struct acp_context *ctx;
	bool quiet = true;

	rcu_read_lock();
	list_for_each_entry_rcu(ctx, &node->poll_list, poll_link)
		quiet &= acp_queue_need_wakeup(ctx, set);
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
		WRITE_ONCE(p->asleep, true);
		smp_mb();	/* pairs with kick(): a kick from here on is seen */
		if (look(node))
			WRITE_ONCE(p->asleep, false);
	}
	return 0;
}

static void kick(struct acp_node *node)
{
	smp_mb();	/* what is to be looked at, before the look at "asleep" */
	if (READ_ONCE(node->poller.asleep)) {
		WRITE_ONCE(node->poller.asleep, false);
		wake_up(&node->poller.wait);
		acp_stat_inc(node, poller_wakeups);
	}
}

/* ---- holds ---- */

/* Look again in a while; until then the flag is cleared, or about to be set. */
static void hold_on(struct acp_context *ctx, u64 more_ns)
{
	u64 ns = min_t(u64, READ_ONCE(hold_us), HOLD_US_MOST) * NSEC_PER_USEC;

	WRITE_ONCE(ctx->hold.most, 0);
	hrtimer_start(&ctx->hold.timer, ns_to_ktime(ns + more_ns), HRTIMER_MODE_REL_SOFT);
}

static void hold_begin(struct acp_context *ctx)
{
	ctx->hold.was_worth = false;
	ctx->hold.vain = 0;
	/* Another thread that sees no need to ring is looked after at once. */
	preempt_disable();
	acp_queue_need_wakeup(ctx, false);
	hold_on(ctx, 0);
	preempt_enable();
}

void acp_poller_more(struct acp_context *ctx)
{
	if (num_online_cpus() == 1 && READ_ONCE(hold_us))
		hold_begin(ctx);
	else
		kick(ctx->job->node);
}

/*
 * No more looks: doorbells, please.  What was submitted before its owner saw
 * that is there to be taken now, as when the poller falls asleep.
 */
static void hold_off(struct acp_context *ctx)
{
	struct acp_hold *h = &ctx->hold;

	h->wanted = h->was_worth ? BELLS_TO_WAKE : min(2 * h->wanted, HOLD_BELLS_MOST);
	if (!acp_queue_need_wakeup(ctx, true) && acp_queue_drain(ctx, HOLD_BUDGET))
		acp_poller_more(ctx);
}

/*
 * The timer's look, in softirq, of which it takes half of the time at most.
 * One in vain is not the end: the pass that the look before led to may have
 * taken so long that the owner has not run since.
 */
static enum hrtimer_restart hold_look(struct hrtimer *timer)
{
	struct acp_context *ctx = container_of(timer, struct acp_context, hold.timer);
	struct acp_hold *h = &ctx->hold;
	u64 begin = acp_now();
	bool more = acp_queue_ready(ctx) && acp_queue_drain(ctx, HOLD_BUDGET);

	if (more || READ_ONCE(h->most) >= HOLD_LEAST) {
		h->was_worth = true;
		h->vain = 0;
	} else {
		h->vain++;
	}
	if (h->vain < HOLD_VAIN && READ_ONCE(hold_us) && !READ_ONCE(ctx->closed))
		hold_on(ctx, acp_now() - begin);
	else
		hold_off(ctx);
	return HRTIMER_NORESTART;
}

/* Doorbells come fast.  If little comes between two looks, it takes longer until the next try. */
static void hold_bell(struct acp_context *ctx)
{
	struct acp_hold *h = &ctx->hold;
	u64 now;

	if (!READ_ONCE(hold_us) || ++h->bells < h->wanted)
		return;
	now = acp_now();
	if (now - h->first_bell < h->bells * (BELL_INTERVAL / BELLS_TO_WAKE))
		hold_begin(ctx);
	h->first_bell = now;
	h->bells = 0;
}

void acp_poller_bell(struct acp_context *ctx)
{
	struct acp_poller *p = &ctx->job->node->poller;
	u64 now;

	if (num_online_cpus() == 1) {
		hold_bell(ctx);
		return;
	}
	if (!READ_ONCE(poll_us) || !READ_ONCE(p->asleep))
		return;
	if (++p->bells < BELLS_TO_WAKE)
		return;
	now = acp_now();
	if (now - p->first_bell < BELL_INTERVAL)
		kick(ctx->job->node);
	p->first_bell = now;
	p->bells = 0;
}

void acp_poller_prepare(struct acp_context *ctx)
{
	hrtimer_init(&ctx->hold.timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	ctx->hold.timer.function = hold_look;
	ctx->hold.wanted = BELLS_TO_WAKE;
}

void acp_poller_add(struct acp_node *node, struct acp_context *ctx)
{
	spin_lock_bh(&node->poll_lock);
	list_add_tail_rcu(&ctx->poll_link, &node->poll_list);
	/* Ranks' own queues first: see acp_station_idle(). */
	if (ctx->main == ctx)
		list_add_rcu(&ctx->job_link, &ctx->job->contexts);
	else
		list_add_tail_rcu(&ctx->job_link, &ctx->job->contexts);
	spin_unlock_bh(&node->poll_lock);
}

void acp_poller_unlink(struct acp_node *node, struct acp_context *ctx)
{
	spin_lock_bh(&node->poll_lock);
	WRITE_ONCE(ctx->closed, true);
	list_del_rcu(&ctx->poll_link);
	spin_unlock_bh(&node->poll_lock);
}

void acp_poller_gone(struct acp_node *node, struct acp_context *ctx)
{
	struct acp_context *main = ctx->main;

	spin_lock_bh(&node->poll_lock);
	list_del_rcu(&ctx->job_link);
	ctx->counted = true;
	main->gone.completed += READ_ONCE(ctx->completed) - ctx->first;
	main->gone.failed += READ_ONCE(ctx->failed);
	if (ctx == main) {
		ctx->job->gone.completed += ctx->gone.completed;
		ctx->job->gone.failed += ctx->gone.failed;
	}
	spin_unlock_bh(&node->poll_lock);
}

void acp_poller_stop(struct acp_context *ctx)
{
	hrtimer_cancel(&ctx->hold.timer);
}

void acp_poller_remove(struct acp_node *node, struct acp_context *ctx)
{
	acp_poller_unlink(node, ctx);
	acp_poller_gone(node, ctx);
	synchronize_rcu();
	/* Not before: who still saw the context may have begun a hold. */
	acp_poller_stop(ctx);
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

/* Under node->lock. */
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
