/* SPDX-License-Identifier: MIT */
/*
 * The measurements. A run is what they share; each function prints its lines into the report.
 */
#ifndef PERF_MODE_H
#define PERF_MODE_H

#include "perf_job.h"
#include "perf_op.h"
#include "perf_options.h"
#include "perf_report.h"

struct perf_run {
	const struct perf_options *options;
	struct perf_job job;
	struct perf_report report;	/* rank 0 only */
	double udp_median;		/* nanoseconds, or 0: not measured */
	bool failed;			/* rank 0: a file could not be written or drawn */
};

/* By rank 0 alone, while the others wait in acp_sync. */
void perf_latency(struct perf_run *run);
void perf_bandwidth(struct perf_run *run);
void perf_rate(struct perf_run *run);
void perf_register(struct perf_run *run);
void perf_syscalls(struct perf_run *run);
void perf_heap(struct perf_run *run);
void perf_sweep(struct perf_run *run);

/* By all ranks. */
void perf_barrier(struct perf_run *run);
void perf_channel(struct perf_run *run);
void perf_idle(struct perf_run *run);
void perf_map(struct perf_run *run);
void perf_udp(struct perf_run *run);
void perf_wait(struct perf_run *run);

/* Rate of rank 0's threads (--threads), for all these windows. */
void perf_threads(struct perf_run *run, const struct perf_op *op, size_t size,
		  const struct perf_list *windows);

/* The sizes of a sweep, if the user does not say. */
extern const struct perf_list perf_sweep_sizes;

/* The list the user gave, else the other one. */
const struct perf_list *perf_list_or(const struct perf_list *given, const struct perf_list *other);

#endif
