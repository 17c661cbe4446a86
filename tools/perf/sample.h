/* SPDX-License-Identifier: MIT */
/* The clock, the length of a series of samples, and the summary of samples. */
#ifndef PERF_SAMPLE_H
#define PERF_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "options.h"

/* Return CLOCK_MONOTONIC in nanoseconds; no system call if the C library uses the vDSO. */
static inline uint64_t perf_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Conditions for the end of a series of samples. */
struct perf_pace {
	uint64_t least, most;	/* samples */
	double limit;		/* nanoseconds */
	uint64_t begin;
};

/*
 * Start a series: --iters and --seconds of the user, otherwise @samples, the default of the mode.
 */
struct perf_pace perf_pace_start(const struct perf_options *o, uint64_t samples);
bool perf_pace_more(const struct perf_pace *pace, uint64_t done);

struct perf_samples {
	double *value;		/* nanoseconds */
	size_t n, room;
};

struct perf_summary {
	size_t n;
	double min, median, p99, max;
};

/* Ends the job if memory is exhausted. */
void perf_samples_add(struct perf_samples *s, double value);

/* Summarize and free the samples. */
struct perf_summary perf_samples_close(struct perf_samples *s);

#endif
