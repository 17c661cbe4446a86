/* SPDX-License-Identifier: MIT */
/* Parameters of a job, and the rank of this process; boot/ reads them. */
#ifndef LIBACP_PARAMETERS_H
#define LIBACP_PARAMETERS_H

#include <stdbool.h>
#include <stdint.h>

#include "acp_abi.h"
#include "core/internal.h"

#pragma GCC visibility push(hidden)

/* Names of the network devices to which link-local addresses belong. */
struct libacp_cards {
	struct libacp_card {
		char name[16];
	} *card;
	uint32_t count;
};

/* Parameters of a job, and the rank of this process. */
struct libacp_boot {
	uint32_t rank, nprocs;
	uint32_t job;
	uint32_t nodes, colors;
	uint32_t port;
	uint32_t integrity;		/* ACP_INTEGRITY_ */
	uint32_t timeout_ms, init_timeout_ms;
	uint64_t init_end;		/* libacp_now() at which acp_init() gives up */
	uint32_t depth;
	uint64_t starter_size, heap_size;	/* bytes */
	uint32_t rank_run_count, node_run_count;
	struct acp_rank_run *rank_runs;	/* allocated by malloc(), like all pointers here */
	struct acp_node_run *node_runs;	/* scope: index into cards plus 1, or 0 */
	struct libacp_cards cards;
	char *keyfile;			/* file with the job key; NULL: see key */
	uint8_t key[16];		/* all zero: no key */
	bool debug;			/* ACP_DEBUG */
	bool engine;			/* started by a launcher that provides PMIx */
};

#pragma GCC visibility pop

#endif /* LIBACP_PARAMETERS_H */
