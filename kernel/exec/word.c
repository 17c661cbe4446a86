// SPDX-License-Identifier: GPL-2.0-only
/* Words that commands wait for: see word.h. */
#include "../job/job.h"
#include "../job/node.h"
#include "../mem/region.h"
#include "../mem/watch.h"
#include "event.h"
#include "word.h"

/* ---- the word ---- */

/* Does the command end, whatever became of the ranks that it names? */
static bool says_end(struct acp_queue *queue, const struct acp_cmd *cmd, u8 *status)
{
	const struct acp_msg *m = &cmd->item.out.m;
	struct acp_job *job = queue->job;
	enum acp_word state;
	struct acp_region *r;

	*status = ACP_ST_ABORT;
	if (READ_ONCE(job->aborted) || READ_ONCE(job->dead))
		return true;
	r = acp_region_get_bh(job, m->src, sizeof(u64), m->origin, ACP_ACCESS_READ, status);
	if (!r)
		return true;
	acp_stat_inc(job->node, words_checked);
	state = acp_word_state(acp_region_read_word(r, acp_ga_offset(&job->ga, m->src)), m->a);
	acp_region_put(r);
	smp_rmb();	/* the word, before what the commands behind it read */
	if (state == ACP_WORD_IS_REVOKED)
		*status = ACP_ST_ORDER;
	return state != ACP_WORD_BEFORE;
}

/* ---- the ranks that a command names ---- */

/* Why a rank will write nothing any more, or ACP_ST_OK.  What it wrote may be lost as well. */
static u8 is_lost(struct acp_job *job, const struct acp_cmd *cmd, u32 rank)
{
	u32 node = acp_job_node_of(job, rank);
	const struct acp_peer *peer;

	if (acp_event_has_left(job, rank))
		return ACP_ST_RANK;
	if (node == job->me)
		return ACP_ST_OK;
	peer = acp_peer_find(job, node, acp_ga_color(&job->ga, cmd->item.out.m.src));
	/* Pairs with set_lost() in peer_flow.c. */
	if (!peer || smp_load_acquire(&peer->loss) <= cmd->losses)
		return ACP_ST_OK;
	return READ_ONCE(peer->fates.status);
}

static noinline u8 is_one_lost(struct acp_job *job, const struct acp_cmd *cmd)
{
	u8 status = ACP_ST_OK;
	u32 i, rank;

	for (i = 0; i < ACP_WAIT_NAMES && !status; i++) {
		rank = acp_wait_name(&cmd->item.out.m, i);
		if (rank != ACP_WAIT_NOBODY)
			status = is_lost(job, cmd, rank);
	}
	return status;
}

/* As long as the command waits, its peers are probed: a flow that ends is noticed. */
static noinline u8 expect(struct acp_queue *queue, const struct acp_cmd *cmd)
{
	const struct acp_msg *m = &cmd->item.out.m;
	struct acp_job *job = queue->job;
	struct acp_peer *peer;
	u32 i, node;

	for (i = 0; i < ACP_WAIT_NAMES; i++) {
		if (acp_wait_name(m, i) == ACP_WAIT_NOBODY)
			continue;
		node = acp_job_node_of(job, acp_wait_name(m, i));
		if (node == job->me)
			continue;
		peer = acp_peer_get(job, node, acp_ga_color(&job->ga, m->src));
		if (!peer) {
			acp_queue_unexpect(queue, cmd);
			return READ_ONCE(job->dead) ? ACP_ST_ABORT : ACP_ST_NOMEM;
		}
		atomic_inc(&peer->asked);
		queue->named[i] = acp_peer_expect(peer);
	}
	return ACP_ST_OK;
}

/* ---- both ---- */

bool acp_word_is_over(struct acp_queue *queue, const struct acp_cmd *cmd, u8 *status)
{
	u8 lost;

	if (says_end(queue, cmd, status))
		return true;
	if (likely(!acp_wait_names(&cmd->item.out.m)))
		return false;
	lost = is_one_lost(queue->job, cmd);
	if (!lost)
		return false;
	/* The last write of a rank that has gone may have come before that. */
	if (says_end(queue, cmd, status))
		return true;
	acp_stat_inc(queue->job->node, words_lost);
	*status = lost;
	return true;
}

bool acp_word_begin(struct acp_queue *queue, struct acp_cmd *cmd, u8 *status)
{
	const struct acp_msg *m = &cmd->item.out.m;

	if (acp_word_is_over(queue, cmd, status))
		return true;
	if (acp_wait_names(m)) {
		*status = expect(queue, cmd);
		if (*status)
			return true;
	}
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
