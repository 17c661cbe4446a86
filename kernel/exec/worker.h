/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The worker of a rank: a thread that continues when a budget is used up (budget.h), with the
 * rank's queues and with frames for the rank that had to wait for earlier ones
 * (acp_station_late()), even if the rank's process sleeps, computes or is stopped.  It is started
 * when first needed and ends with the rank.  It has the lowest priority of normal tasks (nice 19).
 * After some steps it moves to the control groups of the process, until it has been idle for a
 * while: its work is accounted and limited there.
 *
 * It is a kernel thread because no interface that modules can use on all kernels makes a process
 * run code in the kernel while that process is elsewhere.
 */
#ifndef ACP_WORKER_H
#define ACP_WORKER_H

#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

struct acp_rank;

struct acp_worker {
	wait_queue_head_t wait;
	struct task_struct *task;	/* NULL: not started yet */
	struct work_struct make;	/* starts it */
	bool due;			/* the rank's queues are to be drained */
	bool late;			/* held frames of peers are to be processed */
	bool away;			/* it is in the control groups of the process */
	u32 steps;			/* since these were last compared */
};

/**
 * acp_worker_prepare() - prepare the worker of a new rank
 * @rank: the rank
 *
 * Context: any.
 */
void acp_worker_prepare(struct acp_rank *rank);

/**
 * acp_worker_kick() - let the worker drain the queues of a rank
 * @rank: the rank; RCU or an open file keeps it
 *
 * Called when a queue has more work than the caller's budget allows.  The first call starts the
 * thread.
 *
 * Context: process context or softirq.
 */
void acp_worker_kick(struct acp_rank *rank);

/**
 * acp_worker_stop() - stop the worker of a rank
 * @rank: the rank; its own queue is closed, and a grace period has passed since poll rounds could
 *	find it
 *
 * Context: process context, sleeps.
 */
void acp_worker_stop(struct acp_rank *rank);

/**
 * acp_worker_init() - allocate the workqueue that starts workers
 *
 * Context: process context, may sleep.
 * Return: 0 or -ENOMEM.
 */
int acp_worker_init(void);

/**
 * acp_worker_exit() - free it when the module is unloaded
 *
 * Context: process context, sleeps.
 */
void acp_worker_exit(void);

#endif /* ACP_WORKER_H */
