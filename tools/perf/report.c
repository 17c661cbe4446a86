// SPDX-License-Identifier: MIT
/*
 * Results as text, CSV and JSON. No string contains quotes, so none needs escaping; notes may
 * contain commas.
 */
#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *where(const struct perf_area *area)
{
	if (area->rank == 0)
		return "itself";
	return area->away ? "another node" : "same node";
}

/* Return the time for reading the clock twice, which is part of every sample. */
static double clock_cost(void)
{
	const int rounds = 1000;
	uint64_t begin = perf_now(), end = begin;
	int i;

	for (i = 0; i < rounds; i++)
		end = perf_now();
	return (double)(end - begin) / rounds;
}

static void open_text(const struct perf_job *job)
{
	const struct perf_area *target = &job->area[PERF_TARGET];
	const struct perf_area *third = &job->area[PERF_THIRD];

	printf("acp_perf: %d rank%s; rank 0 drives, target is rank %d (%s)", job->procs,
	       job->procs == 1 ? "" : "s", target->rank, where(target));
	if (third->rank >= 0)
		printf(", third is rank %d (%s)", third->rank, where(third));
	printf("\ntimes in microseconds; a reading of the clock, %.3f us, is part of each\n",
	       clock_cost() / 1e3);
}

static void open_json(const struct perf_job *job)
{
	printf("{\n  \"ranks\": %d, \"target\": %d, \"target_on_other_node\": %s,\n", job->procs,
	       job->target, job->area[PERF_TARGET].away ? "true" : "false");
	printf("  \"third\": %d, \"clock_us\": %.3f,\n  \"results\": [", job->third,
	       clock_cost() / 1e3);
}

/* In the order of csv_row(). */
static void open_csv(void)
{
	static const char *const columns[] = {
		"mode", "op", "size", "window", "samples", "min_us", "median_us", "p99_us",
		"max_us", "mb_per_s", "ops_per_s", "checks", "wrong", "ratio", "ratio_to", "note",
	};
	size_t i, n = sizeof(columns) / sizeof(columns[0]);

	for (i = 0; i < n; i++)
		printf("%s%s", columns[i], i + 1 < n ? "," : "\n");
}

void perf_report_open(struct perf_report *r, const struct perf_options *o,
		      const struct perf_job *job)
{
	*r = (struct perf_report){
		.format = o->format,
		.progress = !o->quiet && isatty(STDERR_FILENO),
	};
	if (o->format == PERF_TEXT && !o->quiet)
		open_text(job);
	if (o->format == PERF_JSON)
		open_json(job);
	if (o->format == PERF_CSV)
		open_csv();
	fflush(stdout);
}

/* Format a size: 8, 1K, 1M. */
static const char *human(uint64_t value, char text[24])
{
	static const char suffix[] = " KMG";
	int i = 0;

	for (; value >= 1024 && value % 1024 == 0 && i < 3; i++)
		value /= 1024;
	snprintf(text, 24, "%" PRIu64 "%.*s", value, i > 0, suffix + i);
	return text;
}

void perf_report_progress(struct perf_report *r, const char *mode, const char *op, uint64_t size)
{
	char text[24];

	if (!r->progress)
		return;
	fflush(stdout);
	fprintf(stderr, "\r\033[K%s %s %s ...", mode, op, size ? human(size, text) : "");
}

static void erase_progress(const struct perf_report *r)
{
	if (r->progress)
		fputs("\r\033[K", stderr);
}

static void text_heading(struct perf_report *r, const char *mode)
{
	if (r->mode != NULL && strcmp(r->mode, mode) == 0)
		return;
	r->mode = mode;
	printf("\n%-10s %6s %6s %8s %10s %10s %10s %10s %9s %10s  %s\n", mode, "size", "window",
	       "samples", "min", "median", "p99", "max", "MB/s", "ops/s", "checks");
}

static void text_column(double value, int width, int digits)
{
	if (value > 0)
		printf(" %*.*f", width, digits, value);
	else
		printf(" %*s", width, "-");
}

static void text_row(struct perf_report *r, const struct perf_row *row)
{
	char text[24];

	text_heading(r, row->mode);
	printf("%-10s %6s", row->op, row->size ? human(row->size, text) : "-");
	printf(" %6s %8zu", row->window ? human(row->window, text) : "-", row->time.n);
	text_column(row->time.min / 1e3, 10, 3);
	text_column(row->time.median / 1e3, 10, 3);
	text_column(row->time.p99 / 1e3, 10, 3);
	text_column(row->time.max / 1e3, 10, 3);
	text_column(row->mb_per_s, 9, 1);
	text_column(row->ops_per_s, 10, 0);
	if (row->wrong != 0)
		printf("  %" PRIu64 " of %" PRIu64 " WRONG", row->wrong, row->checks);
	else if (row->checks != 0)
		printf("  %" PRIu64 " right", row->checks);
	else
		printf("  none");
	if (row->ratio_to != NULL)
		printf("  %.3f x %s", row->ratio, row->ratio_to);
	printf("%s%s\n", row->note ? "  " : "", row->note ? row->note : "");
}

static void csv_row(const struct perf_row *row)
{
	printf("%s,%s,%" PRIu64 ",%" PRIu64 ",%zu,", row->mode, row->op, row->size, row->window,
	       row->time.n);
	printf("%.4f,%.4f,%.4f,%.4f,", row->time.min / 1e3, row->time.median / 1e3,
	       row->time.p99 / 1e3, row->time.max / 1e3);
	printf("%.3f,%.1f,%" PRIu64 ",%" PRIu64 ",", row->mb_per_s, row->ops_per_s, row->checks,
	       row->wrong);
	if (row->ratio_to != NULL)
		printf("%.4f,%s,", row->ratio, row->ratio_to);
	else
		printf(",,");
	if (row->note != NULL && strchr(row->note, ',') != NULL)
		printf("\"%s\"\n", row->note);
	else
		printf("%s\n", row->note ? row->note : "");
}

static void json_row(const struct perf_report *r, const struct perf_row *row)
{
	printf("%s\n    {\"mode\": \"%s\", \"op\": \"%s\", \"size\": %" PRIu64
	       ", \"window\": %" PRIu64 ", \"samples\": %zu,", r->rows ? "," : "", row->mode,
	       row->op, row->size, row->window, row->time.n);
	printf(" \"min_us\": %.4f, \"median_us\": %.4f, \"p99_us\": %.4f, \"max_us\": %.4f,",
	       row->time.min / 1e3, row->time.median / 1e3, row->time.p99 / 1e3,
	       row->time.max / 1e3);
	printf(" \"mb_per_s\": %.3f, \"ops_per_s\": %.1f, \"checks\": %" PRIu64 ", \"wrong\": %"
	       PRIu64, row->mb_per_s, row->ops_per_s, row->checks, row->wrong);
	if (row->ratio_to != NULL)
		printf(", \"ratio\": %.4f, \"ratio_to\": \"%s\"", row->ratio, row->ratio_to);
	if (row->note != NULL)
		printf(", \"note\": \"%s\"", row->note);
	printf("}");
}

static void keep_row(struct perf_report *r, const struct perf_row *row)
{
	if (r->n == r->room) {
		r->room = r->room ? 2 * r->room : 64;
		r->kept = realloc(r->kept, r->room * sizeof(*r->kept));
		if (r->kept == NULL)
			perf_fatal("out of memory for results");
	}
	r->kept[r->n++] = *row;
}

void perf_report_row(struct perf_report *r, const struct perf_row *row)
{
	erase_progress(r);
	if (r->keep && row->time.n != 0)
		keep_row(r, row);
	if (r->format == PERF_TEXT)
		text_row(r, row);
	else if (r->format == PERF_CSV)
		csv_row(row);
	else
		json_row(r, row);
	fflush(stdout);
	r->rows++;
	r->wrong += row->wrong;
}

void perf_report_skip(struct perf_report *r, const char *mode, const char *op, uint64_t size,
		      const char *why)
{
	struct perf_row row = { .mode = mode, .op = op, .size = size, .note = why };
	char text[24];

	if (r->format != PERF_TEXT) {
		perf_report_row(r, &row);
		return;
	}
	erase_progress(r);
	text_heading(r, mode);
	printf("%-10s %6s  skipped: %s\n", op, size ? human(size, text) : "-", why);
	fflush(stdout);
}

int perf_report_close(struct perf_report *r)
{
	erase_progress(r);
	free(r->kept);
	if (r->format == PERF_JSON)
		printf("\n  ],\n  \"wrong\": %" PRIu64 "\n}\n", r->wrong);
	else if (r->wrong != 0)
		fprintf(stderr, "acp_perf: %" PRIu64 " comparisons FAILED\n", r->wrong);
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	perror("acp_perf: writing results");
	return -1;
}
