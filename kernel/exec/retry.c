// SPDX-License-Identifier: GPL-2.0-only
/* Commands that are started again: see retry.h. */
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

/* The command as it was read from the ring. */
static void begin_again(struct acp_cmd *cmd)
{
	struct acp_msg *m = &cmd->item.out.m;
	u8 op = m->op;

	m->word = 0;
	m->op = op;
	m->a = 0;
	m->b = 0;
	m->c = 0;
	acp_out_begin(&cmd->item.out);
	memset(cmd->epoch, 0, sizeof(cmd->epoch));
	cmd->item.frames = 0;
	cmd->item.status = 0;
}

u32 acp_retry_resume(struct acp_queue *queue)
{
	u64 t = READ_ONCE(queue->completed) + 1, now = acp_now(), next = ~0ULL;
	u32 looks = 0;

	WRITE_ONCE(queue->retry_due, false);
	for (; t <= queue->taken; t++, looks++) {
		struct acp_cmd *cmd = acp_queue_cmd(queue, t);

		/* Pairs with park(). */
		if (smp_load_acquire(&cmd->state) != ACP_CMD_PARKED)
			continue;
		/* The item comes back when its frame is acknowledged: as in slot_free(). */
		if (cmd->again > now || smp_load_acquire(&cmd->busy)) {
			next = min(next, max(cmd->again, now + ACP_RETRY_NS));
			continue;
		}
		begin_again(cmd);
		acp_stat_inc(queue->job->node, commands_retried);
		smp_store_release(&cmd->state, ACP_CMD_WAITING);
		WRITE_ONCE(queue->waiting, queue->waiting + 1);
	}
	if (next != ~0ULL) {
		spin_lock(&queue->lock);
		acp_queue_retry_at(queue, next);
		spin_unlock(&queue->lock);
	}
	return looks;
}
