/* SPDX-License-Identifier: MIT */
/*
 * Curves of results: a data file, a gnuplot script for it, and the pictures that gnuplot makes.
 *
 * The script names the files without their directory, so that all of them can be moved together.
 */
#ifndef PERF_PLOT_H
#define PERF_PLOT_H

#include "perf_job.h"
#include "perf_options.h"
#include "perf_report.h"

struct perf_plot {
	const struct perf_options *options;	/* the prefix of the files, words of the caption */
	const struct perf_job *job;
	const struct perf_report *report;	/* which kept the results */
};

/* Write PREFIX.dat and PREFIX.gp. Returns 0, or -1 after a line on standard error. */
int perf_plot_write(const struct perf_plot *plot);

/* Have gnuplot write PREFIX.svg and PREFIX.png. Returns likewise. */
int perf_plot_draw(const struct perf_plot *plot);

#endif
