/* SPDX-License-Identifier: MIT */
/*
 * Curves of results: a data file, a gnuplot script, and the pictures that gnuplot generates.
 *
 * The script refers to the files without directory, so that all of them can be moved together.
 */
#ifndef PERF_PLOT_H
#define PERF_PLOT_H

#include "job.h"
#include "options.h"
#include "report.h"

struct perf_plot {
	const struct perf_options *options;	/* prefix of the files, texts of the caption */
	const struct perf_job *job;
	const struct perf_report *report;	/* with the kept results */
};

/* Write PREFIX.dat and PREFIX.gp. Returns 0, or -1 after a message. */
int perf_plot_write(const struct perf_plot *plot);

/* Run gnuplot to write PREFIX.svg and PREFIX.png. Returns 0, or -1 after a message. */
int perf_plot_draw(const struct perf_plot *plot);

#endif
