/* SPDX-License-Identifier: MIT */
/* Ranks that take part in a measurement, and their memory. */
#ifndef PERF_JOB_H
#define PERF_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "acp.h"
#include "options.h"

/*
 * Areas for operations. Each of the ranks 0, target and third registers memory with one area for
 * each purpose, so that areas never overlap, even if a rank has several roles.
 */
enum perf_place {
	PERF_OWN,		/* rank 0 */
	PERF_TARGET,
	PERF_THIRD,
	PERF_NEAR,		/* rank 0, another area */
	PERF_HEAP,		/* a block in the heap of another rank on the node of rank 0 */
	PERF_PLACES,
};

struct perf_area {
	int rank;		/* -1: none */
	bool away;		/* on another node than rank 0 */
	acp_ga_t ga;
	size_t size;
};

/* Board at the start of the starter memory of each rank, for communication between ranks. */
struct perf_board {
	uint64_t node;		/* equal on ranks of one node */
	uint64_t memory_ga;	/* registered memory, or null */
	uint64_t pointer;	/* to where indirect copies go */
	uint64_t heap_size;
	uint64_t area_size;	/* written by rank 0, like the following members */
	uint64_t count;		/* number of barriers, or of collectives, of a round */
	uint64_t verdict;	/* number of wrong results */
	uint64_t reached;	/* all ranks: rounds of barriers passed */
	int32_t target, third, heap;
	int32_t unused;
	struct sockaddr_storage udp;	/* target: address of the UDP echo; family 0: none */
	uint64_t word;		/* mode wait: word sent by the other rank, */
	uint64_t sent;		/* and by this one */
	uint64_t mailbox;	/* modes mailbox, tag: of this rank */
};

struct perf_job {
	int rank, procs;
	struct perf_board *board;		/* own board, in starter memory */
	int target, third;			/* ranks; third -1: none */
	struct perf_area area[PERF_PLACES];	/* rank 0 only */
	acp_ga_t own_heap;			/* rank 0: a block of its own heap */
	char *scratch;				/* rank 0: area_size bytes for checks */
	acp_ga_t scratch_ga;
	/* private */
	char *memory;
	acp_atkey_t key;
	size_t area_size;
};

/* Collective: assign the roles, register the memory. Ends the job on failure. */
void perf_job_open(struct perf_job *job, const struct perf_options *o);
void perf_job_close(struct perf_job *job);

/* Read the board of a rank. Valid until the next call. */
const struct perf_board *perf_job_fetch(const struct perf_job *job, int rank);

/*
 * All ranks: rank 0 publishes a count (0: end), the others return it. All must have returned before
 * rank 0 calls it again.
 */
uint64_t perf_agree_on_count(struct perf_job *job, uint64_t count);

/* acp_sync(), or end the job. */
void perf_sync(void);

/* Wait for an access (and those before it). Ends the job if it was refused or failed. */
void perf_finish(acp_handle_t handle, const char *what);

/* Print one line to standard error and end the job. */
void perf_fatal(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
