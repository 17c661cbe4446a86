/* SPDX-License-Identifier: MIT */
/* Placement of ranks on nodes. */
#ifndef LIBACP_JOB_H
#define LIBACP_JOB_H

#include <stdint.h>

#include "acp_abi.h"
#include "core/parameters.h"

#pragma GCC visibility push(hidden)

/* Return the node of @rank, which must be < nprocs. */
uint32_t libacp_boot_node_of(const struct libacp_boot *boot, uint32_t rank);

/* Encode nodes[0 .. nprocs - 1] as runs. Returns their number, or 0 if there are more than @max. */
uint32_t libacp_boot_encode(const uint32_t *nodes, uint32_t nprocs, struct acp_rank_run *runs,
			    uint32_t max);

#pragma GCC visibility pop

#endif /* LIBACP_JOB_H */
