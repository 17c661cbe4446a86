/* SPDX-License-Identifier: MIT */
/*
 * Who takes part in a measurement, and the memory they lend to it.
 */
#ifndef PERF_JOB_H
#define PERF_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "acp.h"
#include "perf_options.h"

/*
 * Areas that operations work on. Each of the ranks 0, target and third lends memory with one area
 * for each purpose, so that the areas never overlap, whoever plays the parts.
 */
enum perf_place {
	PERF_OWN,		/* rank 0 */
	PERF_TARGET,
	PERF_THIRD,
	PERF_NEAR,		/* rank 0 again, another area */
	PERF_HEAP,		/* a block in the heap of another rank on the node of rank 0 */
	PERF_PLACES,
};

struct perf_area {
	int rank;		/* -1: there is none */
	bool away;		/* on another node than rank 0 */
	acp_ga_t ga;
	size_t size;
};

/* At the start of each rank's starter memory; what ranks tell each other. */
struct perf_board {
	uint64_t node;		/* equal on ranks of one node */
	uint64_t memory_ga;	/* lent memory, or null */
	uint64_t heap_size;
	uint64_t area_size;	/* rank 0 says, as the rest does */
	uint64_t count;		/* rounds of a barrier */
	uint64_t verdict;	/* wrong results */
	uint64_t reached;	/* every rank: rounds of a barrier it passed */
	int32_t target, third, heap;
	int32_t unused;
	struct sockaddr_storage udp;	/* target: where it echoes; family 0: nowhere */
	uint64_t word;		/* mode wait: what the other one has sent, */
	uint64_t sent;		/* and this one */
};

struct perf_job {
	int rank, procs;
	struct perf_board *board;		/* mine, in starter memory */
	int target, third;			/* ranks; third -1: there is none */
	struct perf_area area[PERF_PLACES];	/* rank 0 only */
	acp_ga_t own_heap;			/* rank 0: a block of its own heap */
	char *scratch;				/* rank 0: for checks, area_size bytes */
	acp_ga_t scratch_ga;
	/* private */
	char *memory;
	acp_atkey_t key;
	size_t area_size;
};

/* Collective: choose the parts, lend the memory. Ends the job on failure. */
void perf_job_open(struct perf_job *job, const struct perf_options *o);
void perf_job_close(struct perf_job *job);

/* The board of a rank, as it is now; valid until the next call. */
const struct perf_board *perf_job_fetch(const struct perf_job *job, int rank);

/* acp_sync, or the end of the job. */
void perf_sync(void);

/* Wait for an access (and those before it). One that was refused or failed ends the job. */
void perf_finish(acp_handle_t handle, const char *what);

/* One line on standard error, then the end of the job. */
void perf_fatal(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
