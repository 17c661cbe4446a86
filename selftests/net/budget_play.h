/* SPDX-License-Identifier: MIT */
/* Ranks of jobs on two nodes, whose rings are filled without a doorbell. */
#ifndef BUDGET_PLAY_H
#define BUDGET_PLAY_H

#include "nodes.h"

#define ENTRIES		200		/* per ring */
#define LONG		16384		/* bytes of the longest copy that is executed at once */

static struct nodes n;
static struct rank idle[32], putter, target;

static uint32_t job;		/* 0: default of the process */

static void join(struct rank *r, uint32_t rank, uint32_t nprocs)
{
	struct setup s;

	nodes_setup(&n, &s, rank, nprocs);
	s.join.depth = 256;
	s.join.heap_size = 4 * LONG;
	if (job)
		s.join.job = job;
	nodes_join(&n, r, &s);
}

static bool combine;		/* push numbers to be combined in place of copies */

/* Push copies within the heap of a rank, without doorbell. */
static void push(struct rank *r, unsigned int count, uint64_t size, bool in_order)
{
	struct acp_sqe e = { .op = ACP_OP_COPY, .dst = heap_ga(r, 0), .src = heap_ga(r, LONG),
			     .size = size, .seen = rank_completed(r) };

	if (combine) {
		e.op = ACP_OP_REDUCE;
		e.a = ACP_REDUCE(ACP_REDUCE_SUM, ACP_REDUCE_F32);
	}
	while (count--) {
		e.order = in_order ? r->last : 0;
		rank_push(r, &e);
	}
}

#endif /* BUDGET_PLAY_H */
