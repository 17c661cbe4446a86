// SPDX-License-Identifier: GPL-2.0-only
/* Words that commands wait for: see word.h. */
#include "../job/job.h"
#include "../job/node.h"
#include "../mem/region.h"
#include "../mem/watch.h"
#include "word.h"

bool acp_word_is_over(struct acp_queue *queue, const struct acp_cmd *cmd, u8 *status)
{
	const struct acp_msg *m = &cmd->item.out.m;
	struct acp_job *job = queue->job;
	struct acp_region *r;
	u64 word;

	*status = ACP_ST_ABORT;
	if (READ_ONCE(job->aborted) || READ_ONCE(job->dead))
		return true;
	r = acp_region_get_bh(job, m->src, sizeof(word), m->origin, ACP_ACCESS_READ, status);
	if (!r)
		return true;
	acp_stat_inc(job->node, words_checked);
	word = acp_region_read_word(r, acp_ga_offset(&job->ga, m->src));
	acp_region_put(r);
	smp_rmb();	/* the word, before what the commands behind it read */
	return (s64)(word - m->a) >= 0;
}

bool acp_word_begin(struct acp_queue *queue, struct acp_cmd *cmd, u8 *status)
{
	const struct acp_msg *m = &cmd->item.out.m;

	if (acp_word_is_over(queue, cmd, status))
		return true;
	WRITE_ONCE(queue->word, m->ticket);
	acp_watch_begin(queue->rank, acp_ga_offset(&queue->job->ga, m->src));
	if (acp_word_is_over(queue, cmd, status)) {
		acp_queue_unwatch(queue);
		return true;
	}
	/* The slot is filled before: pairs with whoever looks at the state. */
	smp_store_release(&cmd->state, ACP_CMD_WATCHING);
	return false;
}
