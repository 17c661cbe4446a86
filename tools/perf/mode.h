/* SPDX-License-Identifier: MIT */
/*
 * The measurements. struct perf_run is what they share; each function prints its lines into the
 * report.
 */
#ifndef PERF_MODE_H
#define PERF_MODE_H

#include "job.h"
#include "op.h"
#include "options.h"
#include "report.h"

struct perf_run {
	const struct perf_options *options;
	struct perf_job job;
	struct perf_report report;	/* rank 0 only */
	double udp_median;		/* nanoseconds, or 0: not measured */
	bool failed;			/* rank 0: a file could not be written or drawn */
};

/* Executed by rank 0 alone, while the others wait in acp_sync(). */
void perf_latency(struct perf_run *run);
void perf_bandwidth(struct perf_run *run);
void perf_rate(struct perf_run *run);
void perf_register(struct perf_run *run);
void perf_regions(struct perf_run *run);
void perf_syscalls(struct perf_run *run);
void perf_heap(struct perf_run *run);
void perf_sweep(struct perf_run *run);

/* Executed by all ranks. */
void perf_barrier(struct perf_run *run);
void perf_channel(struct perf_run *run);
void perf_coll(struct perf_run *run);
void perf_idle(struct perf_run *run);
void perf_mailbox(struct perf_run *run);
void perf_map(struct perf_run *run);
void perf_tag(struct perf_run *run);
void perf_udp(struct perf_run *run);
void perf_wait(struct perf_run *run);

/* Rate of the threads of rank 0 (--threads), for all these windows. */
void perf_threads(struct perf_run *run, const struct perf_op *op, size_t size,
		  const struct perf_list *windows);

/* Default sizes of a sweep. */
extern const struct perf_list perf_sweep_sizes;

/* Return the list given by the user if it is not empty, otherwise @other. */
const struct perf_list *perf_list_or(const struct perf_list *given, const struct perf_list *other);

#endif
