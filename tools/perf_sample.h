/* SPDX-License-Identifier: MIT */
/*
 * Time: the clock, how long to go on, and what a set of samples amounts to.
 */
#ifndef PERF_SAMPLE_H
#define PERF_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "perf_options.h"

/* Nanoseconds since some moment; no system call where the C library has a vDSO clock. */
static inline uint64_t perf_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* When a series of samples ends. */
struct perf_pace {
	uint64_t least, most;	/* samples */
	double limit;		/* nanoseconds */
	uint64_t begin;
};

/* Start a series now: the user's --iters and --seconds, else the mode's number of samples. */
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

/* Ends the job when memory is out. */
void perf_samples_add(struct perf_samples *s, double value);

/* Sums up and frees the samples. */
struct perf_summary perf_samples_close(struct perf_samples *s);

#endif
