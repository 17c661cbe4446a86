// SPDX-License-Identifier: MIT
/* Runs of ranks: a compact encoding of the node of each rank. */
#include "acp_abi.h"
#include "core/job.h"
#include "core/parameters.h"

static uint32_t run_node(const struct acp_rank_run *run, uint32_t rank)
{
	return run->node + (rank - run->first) / run->block % run->nodes;
}

uint32_t libacp_boot_node_of(const struct libacp_boot *boot, uint32_t rank)
{
	uint32_t low = 0, high = boot->rank_run_count - 1;

	while (low < high) {
		uint32_t middle = high - (high - low) / 2;

		if (boot->rank_runs[middle].first <= rank)
			low = middle;
		else
			high = middle - 1;
	}
	return run_node(&boot->rank_runs[low], rank);
}

/* Return the longest run of at most @count ranks that starts at nodes[0]. */
static struct acp_rank_run longest_run(const uint32_t *nodes, uint32_t count)
{
	struct acp_rank_run run = { .node = nodes[0], .nodes = UINT32_MAX };
	uint32_t i = 1;

	while (i < count && nodes[i] == run.node)
		i++;
	run.block = i;
	for (; i < count; i++) {
		if (nodes[i] == run_node(&run, i))
			continue;
		if (run.nodes != UINT32_MAX || nodes[i] != run.node || i % run.block)
			break;
		run.nodes = i / run.block;	/* continues at its first node */
	}
	if (run.nodes == UINT32_MAX)
		run.nodes = (i - 1) / run.block + 1;
	run.count = i;
	return run;
}

uint32_t libacp_boot_encode(const uint32_t *nodes, uint32_t nprocs, struct acp_rank_run *runs,
			    uint32_t max)
{
	uint32_t count = 0, rank;

	for (rank = 0; rank < nprocs; rank += runs[count++].count) {
		if (count == max)
			return 0;
		runs[count] = longest_run(nodes + rank, nprocs - rank);
		runs[count].first = rank;
	}
	return count;
}
