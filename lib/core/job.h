/* SPDX-License-Identifier: MIT */
/* Placement of ranks on nodes. */
#ifndef LIBACP_JOB_H
#define LIBACP_JOB_H

#include <stdint.h>

#include "acp_abi.h"
#include "core/parameters.h"

#pragma GCC visibility push(hidden)

/**
 * libacp_boot_node_of() - find the node of a rank
 * @boot: parameters of the job, with at least one rank run
 * @rank: number of the rank, less than @boot->nprocs
 *
 * Context: any thread; does not block.
 * Return: number of the node.
 */
uint32_t libacp_boot_node_of(const struct libacp_boot *boot, uint32_t rank);

/**
 * libacp_boot_encode() - encode the nodes of all ranks as runs
 * @nodes: the node of each rank
 * @nprocs: number of ranks, at least 1
 * @runs: receives the runs
 * @max: number of runs for which @runs has room
 *
 * Context: any thread; does not block.
 * Return: number of runs, or 0 if there are more than @max.
 */
uint32_t libacp_boot_encode(const uint32_t *nodes, uint32_t nprocs, struct acp_rank_run *runs,
			    uint32_t max);

#pragma GCC visibility pop

#endif /* LIBACP_JOB_H */
