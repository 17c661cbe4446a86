// SPDX-License-Identifier: MIT
/* Ranks that left the job or are unreachable according to the kernel, for messages. */
#define _GNU_SOURCE
#include <stdio.h>

#include "acp.h"
#include "acp_abi.h"
#include "core/event.h"
#include "core/gone.h"
#include "core/internal.h"
#include "core/process.h"
#include "core/queue.h"
#include "core/rank_list.h"
#include "core/rings.h"

#define MS		1000000u
/* a broken barrier is known slightly earlier than the rank that left */
#define EVENT_MS	1000
#define STEP_MS		5
#define LOOKED_AT	(1u << 20)	/* upper limit of ranks to query */

static void find_gone(struct libacp_gone *gone)
{
	const uint32_t ranks = libacp.nprocs < LOOKED_AT ? libacp.nprocs : LOOKED_AT;
	struct acp_rank_state s;
	uint32_t rank;

	*gone = (struct libacp_gone){ .status = 0 };
	for (rank = 0; rank < ranks; rank++) {
		s = libacp_rank_state(rank);
		if (s.state != ACP_RANK_DOWN)
			continue;
		if (s.status == ACP_ST_RANK) {
			libacp_ranks_add(&gone->left, rank);
			continue;
		}
		gone->status = gone->lost.count ? gone->status : (int)s.status;
		libacp_ranks_add(&gone->lost, rank);
	}
}

void libacp_gone_await(struct libacp_gone *gone)
{
	const uint64_t end = libacp_now() + (uint64_t)EVENT_MS * MS;

	find_gone(gone);
	while (!gone->left.count && !gone->lost.count && libacp_now() < end &&
	       !libacp_rings_aborted(&libacp_main.rings)) {
		libacp_sleep(STEP_MS * MS);
		find_gone(gone);
	}
}

void libacp_gone_name(const struct libacp_gone *gone, const char *how,
		      char text[LIBACP_REASON_TEXT])
{
	char left[LIBACP_RANKS_TEXT], lost[LIBACP_RANKS_TEXT];

	libacp_ranks_name(&gone->left, left);
	libacp_ranks_name(&gone->lost, lost);
	if (gone->left.count && gone->lost.count)
		snprintf(text, LIBACP_REASON_TEXT, "%.150s %s, and %.100s cannot be reached: %s",
			 left, how, lost, acpx_strerror(gone->status));
	else if (gone->lost.count)
		snprintf(text, LIBACP_REASON_TEXT, "%s cannot be reached: %s", lost,
			 acpx_strerror(gone->status));
	else
		snprintf(text, LIBACP_REASON_TEXT, "%s %s", gone->left.count ? left : "a rank",
			 how);
}

void libacp_die_of_absence(const char *call)
{
	char text[LIBACP_REASON_TEXT];
	struct libacp_gone gone;

	libacp_gone_await(&gone);
	/*
	 * Ranks of this node that end because of the abort look like ranks that left. Another rank
	 * reports the cause.
	 */
	if (libacp_rings_aborted(&libacp_main.rings))
		libacp_job_aborted();
	libacp_gone_name(&gone, "left without acp_finalize", text);
	libacp_die("%s failed: %s", call, text);
}
