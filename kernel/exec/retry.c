// SPDX-License-Identifier: GPL-2.0-only
/* The timer of commands that are started again: see retry.h. */
#include <linux/hrtimer.h>
#include "../compat.h"
#include "../job/node.h"
#include "drain.h"
#include "retry.h"
#include "worker.h"

/* The timer's callback, in softirq. */
static enum hrtimer_restart expired(struct hrtimer *timer)
{
	struct acp_queue *queue = container_of(timer, struct acp_queue, retry.timer);
	struct acp_budget budget;

	spin_lock(&queue->lock);
	queue->retry.at = ~0ULL;
	spin_unlock(&queue->lock);
	/* Before the request to drain: pairs with acp_drain(). */
	WRITE_ONCE(queue->retry_due, true);
	acp_budget_begin(&budget);
	if (acp_drain(queue, &budget))
		acp_worker_kick(queue->rank);
	return HRTIMER_NORESTART;
}

void acp_retry_prepare(struct acp_queue *queue)
{
	queue->retry.at = ~0ULL;
	hrtimer_setup(&queue->retry.timer, expired, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
}
