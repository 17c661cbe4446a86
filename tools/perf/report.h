/* SPDX-License-Identifier: MIT */
/* Output: lines of a table, of CSV, or JSON objects; and progress on a terminal. */
#ifndef PERF_REPORT_H
#define PERF_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "job.h"
#include "options.h"
#include "sample.h"

/* One result. Members that do not apply are 0 or NULL. */
struct perf_row {
	const char *mode, *op;
	uint64_t size;			/* bytes */
	uint64_t window;		/* operations outstanding */
	struct perf_summary time;	/* nanoseconds per operation */
	double mb_per_s;		/* 10^6 bytes */
	double ops_per_s;
	uint64_t checks, wrong;		/* number of comparisons, and of failed ones */
	double ratio;
	const char *ratio_to;
	const char *note;		/* why there is no result, or a remark */
};

struct perf_report {
	enum perf_format format;
	bool progress;			/* standard error is a terminal that may be used */
	const char *mode;		/* of the last line, for headings */
	uint64_t rows, wrong;
	bool keep;			/* keep results for the curves of a sweep */
	struct perf_row *kept;
	size_t n, room;
};

/* Called by rank 0 only. */
void perf_report_open(struct perf_report *r, const struct perf_options *o,
		      const struct perf_job *job);
void perf_report_progress(struct perf_report *r, const char *mode, const char *op, uint64_t size);
void perf_report_row(struct perf_report *r, const struct perf_row *row);
void perf_report_skip(struct perf_report *r, const char *mode, const char *op, uint64_t size,
		      const char *why);

/* Print the end. Returns 0, or -1 if not everything could be written. */
int perf_report_close(struct perf_report *r);

#endif
