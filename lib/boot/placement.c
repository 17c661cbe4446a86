// SPDX-License-Identifier: MIT
/* ACP_PLACEMENT: the node of each rank, stored as runs of ranks. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acp_abi.h"
#include "acp_ga.h"
#include "boot/boot.h"
#include "core/internal.h"
#include "core/job.h"
#include "core/parameters.h"

static int one_run(struct libacp_boot *boot, uint32_t nodes, uint32_t block)
{
	boot->rank_runs = malloc(sizeof(*boot->rank_runs));
	if (!boot->rank_runs) {
		libacp_error("no memory for the placement");
		return -1;
	}
	boot->rank_runs[0] = (struct acp_rank_run){
		.first = 0, .count = boot->nprocs, .node = 0, .nodes = nodes, .block = block,
	};
	boot->rank_run_count = 1;
	return 0;
}

static int place_blocks(struct libacp_boot *boot, const char *text)
{
	uint64_t block = (boot->nprocs + (uint64_t)boot->nodes - 1) / boot->nodes;

	if (*text == ':') {
		text++;
		if (!libacp_read_number(&text, ACP_RANKS_MAX, &block) || block == 0 ||
		    *text != '\0') {
			libacp_error("ACP_PLACEMENT: want block:N with N ranks on a node");
			return -1;
		}
		if (block * boot->nodes < boot->nprocs) {
			libacp_error("ACP_PLACEMENT: %u nodes of %llu ranks are too few for %u ranks",
				     boot->nodes, (unsigned long long)block, boot->nprocs);
			return -1;
		}
	}
	return one_run(boot, boot->nodes, (uint32_t)block);
}

/* Parse FIRST+COUNT@NODE[/NODES[/BLOCK]] and advance *text. */
static bool parse_rank_run(const char **text, struct acp_rank_run *run)
{
	uint64_t first, count, node, nodes = 1, block = 1;

	if (!libacp_read_number(text, ACP_RANKS_MAX, &first) || *(*text)++ != '+' ||
	    !libacp_read_number(text, ACP_RANKS_MAX, &count) || *(*text)++ != '@' ||
	    !libacp_read_number(text, ACP_RANKS_MAX, &node))
		return false;
	if (**text == '/') {
		++*text;
		if (!libacp_read_number(text, ACP_RANKS_MAX, &nodes))
			return false;
	}
	if (**text == '/') {
		++*text;
		if (!libacp_read_number(text, ACP_RANKS_MAX, &block))
			return false;
	}
	*run = (struct acp_rank_run){
		.first = (uint32_t)first, .count = (uint32_t)count,
		.node = (uint32_t)node, .nodes = (uint32_t)nodes, .block = (uint32_t)block,
	};
	return count && nodes && block && (**text == ',' || **text == '\0');
}

static int place_runs(struct libacp_boot *boot, const char *text)
{
	struct acp_rank_run run;
	uint32_t room = 1, placed = 0;
	const char *p;

	for (p = text; *p; p++)
		room += *p == ',';
	boot->rank_runs = room <= ACP_RUNS_MAX ? calloc(room, sizeof(run)) : NULL;
	if (!boot->rank_runs) {
		libacp_error("ACP_PLACEMENT: too many runs");
		return -1;
	}
	for (p = text;; p++) {
		if (!parse_rank_run(&p, &run)) {
			libacp_error("ACP_PLACEMENT: want block, block:N, cyclic, or runs FIRST+COUNT@NODE[/NODES[/BLOCK]],...");
			return -1;
		}
		if (run.first != placed || run.count > boot->nprocs - placed) {
			libacp_error("ACP_PLACEMENT: the runs must cover the ranks 0 to %u in order, once each",
				     boot->nprocs - 1);
			return -1;
		}
		if (run.node >= boot->nodes || run.nodes > boot->nodes - run.node) {
			libacp_error("ACP_PLACEMENT: the run of rank %u leaves the %u nodes",
				     run.first, boot->nodes);
			return -1;
		}
		boot->rank_runs[boot->rank_run_count++] = run;
		placed += run.count;
		if (*p == '\0')
			break;
	}
	if (placed == boot->nprocs)
		return 0;
	libacp_error("ACP_PLACEMENT: the runs place %u of %u ranks", placed, boot->nprocs);
	return -1;
}

/* Truncate the list of nodes. */
static void keep_nodes(struct libacp_boot *boot, uint32_t nodes)
{
	uint32_t kept = 0, i;

	for (i = 0; i < boot->node_run_count; i++) {
		struct acp_node_run run = boot->node_runs[i];

		if (run.first >= nodes)
			continue;
		if (run.count > nodes - run.first)
			run.count = nodes - run.first;
		boot->node_runs[kept++] = run;
	}
	boot->node_run_count = kept;
	boot->nodes = nodes;
}

/* Return how many of its nodes a run uses. */
static uint32_t used_nodes(const struct acp_rank_run *run)
{
	uint32_t blocks = (run->count - 1) / run->block + 1;

	return blocks < run->nodes ? blocks : run->nodes;
}

/* The kernel requires a rank on each node: remove unused nodes at the end, reject others. */
static int drop_unused(struct libacp_boot *boot)
{
	uint8_t *used = calloc(boot->nodes / 8 + 1, 1);
	uint32_t end = 0, i, j;
	int result = 0;

	if (!used) {
		libacp_error("no memory for the placement");
		return -1;
	}
	for (i = 0; i < boot->rank_run_count; i++) {
		const struct acp_rank_run *run = &boot->rank_runs[i];
		uint32_t count = used_nodes(run);

		for (j = run->node; j < run->node + count; j++)
			used[j / 8] |= (uint8_t)(1u << j % 8);
		if (end < run->node + count)
			end = run->node + count;
	}
	for (j = 0; j < end && (used[j / 8] >> j % 8 & 1); j++)
		;
	if (j < end) {
		libacp_error("ACP_PLACEMENT: no rank is placed on node %u", j);
		result = -1;
	}
	free(used);
	if (result == 0)
		keep_nodes(boot, end);
	return result;
}

int libacp_boot_placement(struct libacp_boot *boot, const char *text)
{
	int result;

	if (strcmp(text, "cyclic") == 0)
		result = one_run(boot, boot->nodes, 1);
	else if (strncmp(text, "block", 5) == 0 && (text[5] == '\0' || text[5] == ':'))
		result = place_blocks(boot, text + 5);
	else
		result = place_runs(boot, text);
	return result < 0 ? result : drop_unused(boot);
}

/* upper limit of the length of FIRST+COUNT@NODE/NODES/BLOCK */
#define RUN_MAX	60

char *libacp_placement_text(const uint32_t *nodes, uint32_t nprocs)
{
	uint32_t max = nprocs < ACP_RUNS_MAX ? nprocs : ACP_RUNS_MAX;
	struct acp_rank_run *runs = calloc(max, sizeof(*runs));
	uint32_t count = runs ? libacp_boot_encode(nodes, nprocs, runs, max) : 0;
	char *text = count ? malloc(count * (size_t)RUN_MAX) : NULL;
	char *at = text;
	uint32_t i;

	if (!text)
		libacp_error(runs && !count ? "too many runs of ranks on nodes"
					    : "no memory for the placement");
	for (i = 0; text && i < count; i++)
		at += snprintf(at, RUN_MAX, "%s%u+%u@%u/%u/%u", i ? "," : "", runs[i].first,
			       runs[i].count, runs[i].node, runs[i].nodes, runs[i].block);
	free(runs);
	return text;
}
