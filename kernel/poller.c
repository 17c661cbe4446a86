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
		smp_mb();	/* pairs with acp_poller_kick(): a kick from here on is seen */
		if (look(node))
			WRITE_ONCE(p->asleep, false);
	}
	return 0;
}

void acp_poller_kick(struct acp_node *node)
{
	smp_mb();	/* what is to be looked at, before the look at "asleep" */
	if (READ_ONCE(node->poller.asleep)) {
		WRITE_ONCE(node->poller.asleep, false);
		wake_up(&node->poller.wait);
		acp_stat_inc(node, poller_wakeups);
	}
}

void acp_poller_bell(struct acp_node *node)
{
	struct acp_poller *p = &node->poller;
	u64 now;

	if (!READ_ONCE(poll_us) || num_online_cpus() == 1 || !READ_ONCE(p->asleep))
		return;
	if (++p->bells < BELLS_TO_WAKE)
		return;
	now = acp_now();
	if (now - p->first_bell < BELL_INTERVAL)
		acp_poller_kick(node);
	p->first_bell = now;
	p->bells = 0;
}

void acp_poller_add(struct acp_node *node, struct acp_context *ctx)
{
	spin_lock_bh(&node->poll_lock);
	list_add_tail_rcu(&ctx->poll_link, &node->poll_list);
	list_add_tail_rcu(&ctx->job_link, &ctx->job->contexts);
	spin_unlock_bh(&node->poll_lock);
}

void acp_poller_remove(struct acp_node *node, struct acp_context *ctx)
{
	spin_lock_bh(&node->poll_lock);
	list_del_rcu(&ctx->poll_link);
	list_del_rcu(&ctx->job_link);
	/* Ticket 1 was complete before the first command. */
	ctx->job->gone.completed += READ_ONCE(ctx->completed) - 1;
	ctx->job->gone.failed += READ_ONCE(ctx->failed);
	spin_unlock_bh(&node->poll_lock);
	synchronize_rcu();
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
