// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of a poll round over events of a peer: commands that waited for these events may start.
 *
 * The own queue of each rank is checked, and additional queues that are marked (marks.h).
 */
#include <linux/rculist.h>
#include "../job/job.h"
#include "../job/node.h"
#include "../upcall.h"
#include "drain.h"
#include "marks.h"

#define ROUNDS_MAX	64	/* that find the queue idle, before the mark is removed */

/*
 * The worker does what a budget does not suffice for, until the queue was drained to its end: rings
 * that are always full cost other ranks one budget now and then, not one in each round.
 */
static void go_on(struct acp_queue *queue, struct acp_budget *budget)
{
	if (!acp_queue_ready(queue))
		return;
	if (!READ_ONCE(queue->behind) && acp_budget_left(budget) && !acp_drain(queue, budget))
		return;
	WRITE_ONCE(queue->behind, true);
	acp_worker_kick(queue->rank);
}

static noinline void look_at_marked(struct acp_rank *rank, struct acp_budget *budget)
{
	struct acp_queue *queue;
	unsigned long i;

	xa_for_each_marked(&rank->queues, i, queue, ACP_MARK_BUSY) {
		u32 rounds = acp_marks_is_busy(queue) ? 0 : READ_ONCE(queue->rounds) + 1;

		WRITE_ONCE(queue->rounds, rounds);
		if (!rounds)
			go_on(queue, budget);
		else if (rounds > ROUNDS_MAX && acp_marks_clear(queue))
			go_on(queue, budget);	/* a round of another CPU may have missed it */
	}
}

/* Check ranks "from" to "to" - 1 of the list.  Returns how many there are, "to" at most. */
static u32 look_at_ranks(struct acp_job *job, struct acp_budget *budget, u32 from, u32 to)
{
	struct acp_rank *rank;
	u32 i = 0;

	list_for_each_entry_rcu(rank, &job->rank_list, link) {
		if (i == to)
			break;
		if (i++ < from)
			continue;
		go_on(&rank->own, budget);
		if (unlikely(xa_marked(&rank->queues, ACP_MARK_BUSY)))
			look_at_marked(rank, budget);
	}
	return i;
}

static void count_round(struct acp_job *job, const struct acp_budget *budget, u32 done)
{
	acp_stat_inc(job->node, rounds);
	acp_stat_add(job->node, rounds_commands, done);
	if (!acp_budget_left(budget))
		acp_stat_inc(job->node, rounds_cut);
}

/* If the budget is used up, the next round of the job begins with the next rank. */
static noinline void look_at_all(struct acp_job *job)
{
	struct acp_budget own acp_uncleared, *budget = acp_budget_of_softirq(&own);
	u32 turn = READ_ONCE(job->turn), done = budget->done, ranks;

	ranks = look_at_ranks(job, budget, turn, U32_MAX);
	if (turn)
		look_at_ranks(job, budget, 0, turn);
	if (budget->done != done)
		count_round(job, budget, budget->done - done);
	if (!acp_budget_left(budget))
		WRITE_ONCE(job->turn, turn + 1 < ranks ? turn + 1 : 0);
}

void acp_station_idle(struct acp_job *job)
{
	struct acp_rank *rank;

	/*
	 * States of commands before the flags of their queue and its mark: pairs with smp_mb() in
	 * can_go_on() and acp_marks_set().
	 */
	smp_mb();
	/* BH is off, so no rank goes away (RCU). */
	list_for_each_entry_rcu(rank, &job->rank_list, link) {
		if (acp_queue_ready(&rank->own) ||
		    unlikely(xa_marked(&rank->queues, ACP_MARK_BUSY))) {
			look_at_all(job);
			break;
		}
	}
}
