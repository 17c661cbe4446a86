/* SPDX-License-Identifier: MIT */
/*
 * The command line of acp_perf.
 */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PERF_LIST_MAX	64
#define PERF_THREADS_MAX	64

enum perf_format { PERF_TEXT, PERF_CSV, PERF_JSON };

/* One bit per mode. PERF_ALL: the modes of "all", which are useful for administrators. */
enum perf_mode {
	PERF_UDP = 1 << 0,
	PERF_LATENCY = 1 << 1,
	PERF_BANDWIDTH = 1 << 2,
	PERF_RATE = 1 << 3,
	PERF_REGISTER = 1 << 4,
	PERF_BARRIER = 1 << 5,
	PERF_SYSCALLS = 1 << 6,
	PERF_HEAP_MODE = 1 << 7,
	PERF_CHANNEL = 1 << 8,
	PERF_MAP = 1 << 9,
	PERF_SWEEP = 1 << 10,
	PERF_WAIT = 1 << 11,
	PERF_IDLE = 1 << 12,
	PERF_REGIONS = 1 << 13,
	PERF_MAILBOX = 1 << 14,
	PERF_TAG = 1 << 15,
	PERF_COLL = 1 << 16,
	PERF_ALL = PERF_LATENCY | PERF_BANDWIDTH | PERF_RATE | PERF_REGISTER | PERF_BARRIER,
};

/* Numbers in the given order; empty (n == 0): the default of the mode. */
struct perf_list {
	size_t n;
	uint64_t value[PERF_LIST_MAX];
};

struct perf_options {
	unsigned int modes;		/* of enum perf_mode */
	/* bit mask of indices of perf_op_table; 0: default of the mode */
	uint32_t ops;
	uint32_t colls;			/* the same of perf_coll_table */
	struct perf_list sizes;		/* bytes */
	struct perf_list windows;	/* operations outstanding */
	uint64_t iters;			/* samples per row; 0: not given */
	double seconds;			/* time per row; 0: not given */
	enum perf_format format;
	bool check;			/* verify results */
	bool quiet;			/* no progress, no heading */
	bool baseline_udp;		/* run mode udp first */
	int target, third;		/* ranks, or -1: automatic */
	uint64_t threads;		/* rate: concurrent threads; 0: only the main thread */
	/* ... with a context each instead of the queue of the process */
	bool contexts;
	const char *output;		/* sweep: prefix of its files */
	const char *machine;		/* sweep: machine for the caption, or NULL */
	const char *date;		/* sweep: date for the caption; NULL: today */
	bool draw;			/* sweep: run gnuplot */
};

/*
 * Parse the arguments (after acp_init() took its own) for a job of @procs ranks. Returns 0, or -1
 * with one line about the first error in error[].
 */
int perf_options_parse(struct perf_options *o, int procs, int argc, char **argv, char *error,
		       size_t room);

/* True if the arguments request help, which needs no job. */
bool perf_options_want_help(int argc, char **argv);
void perf_options_help(FILE *out);

#endif
