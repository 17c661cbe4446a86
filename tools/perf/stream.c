// SPDX-License-Identifier: MIT
/* Bandwidth and rate: bursts of operations with a window of outstanding ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mode.h"

#define SAMPLES		100
#define CHECK_EVERY	16
#define BURST_BYTES	(256 * 1024)	/* target size of a burst, */
#define BURST_MAX	1024		/* maximum number of operations, */
#define BURST_NS	50e6		/* maximum time, */
#define BURST_MIN	2		/* minimum number of windows */

struct stream {
	const char *mode;
	const struct perf_op *op;
	size_t size;
	uint64_t window;
	uint64_t burst;		/* operations of a sample */
	uint64_t slots;		/* positions in the areas, used in turn */
	acp_handle_t *handle;	/* the outstanding operations: "window" entries */
};

/* Choose the length of a burst by these limits. @ns: time of an operation, or 0 if unknown. */
static void set_burst(struct stream *s, const struct perf_job *job, double ns)
{
	size_t dst = job->area[s->op->dst].size, src = job->area[s->op->src].size;

	s->burst = BURST_BYTES / (s->size ? s->size : 1);
	if (s->burst > BURST_MAX)
		s->burst = BURST_MAX;
	if (ns == 0 || (double)s->burst * ns > BURST_NS)
		s->burst = ns > 0 ? (uint64_t)(BURST_NS / ns) : 0;
	if (s->burst < BURST_MIN * s->window)
		s->burst = BURST_MIN * s->window;
	s->slots = 1;
	if (s->op->width == 0 && s->op->copy == NULL && s->size > 0)
		s->slots = (dst < src ? dst : src) / s->size;
	if (s->slots > s->burst)
		s->slots = s->burst;
}

/* Take one sample: nanoseconds from the first call until all operations are complete. */
static uint64_t run_burst(const struct stream *s, const struct perf_job *job)
{
	uint64_t begin = perf_now(), end, i, slot = 0, place = 0;

	for (i = 0; i < s->burst; i++) {
		if (i >= s->window)
			perf_finish(s->handle[place], s->op->name);
		s->handle[place] = perf_op_issue(s->op, job, s->size, slot * s->size);
		if (++place == s->window)
			place = 0;
		if (++slot == s->slots)
			slot = 0;
	}
	acp_complete(ACP_HANDLE_ALL);
	end = perf_now();
	for (i = 0; i < s->window && i < s->burst; i++)
		perf_finish(s->handle[i], s->op->name);
	return end - begin;
}

/* Take a sample, and periodically verify everything it wrote. */
static uint64_t run_sample(struct perf_run *run, const struct stream *s, uint64_t index,
			   struct perf_row *row)
{
	bool check = run->options->check && index % CHECK_EVERY == 0;
	size_t size = s->op->width ? s->size : s->slots * s->size;
	uint64_t time;

	if (check)
		perf_op_prepare(s->op, &run->job, size, index);
	time = run_burst(s, &run->job);
	if (check) {
		row->checks++;
		row->wrong += !perf_op_verify(s->op, &run->job, size, index, s->burst,
					      s->window == 1);
	}
	return time;
}

static void measure(struct perf_run *run, struct stream *s)
{
	struct perf_row row = { .mode = s->mode, .op = s->op->name, .size = s->size,
				.window = s->window };
	struct perf_samples samples = { 0 };
	struct perf_pace pace;

	set_burst(s, &run->job, 0);
	s->handle = calloc(s->window, sizeof(*s->handle));
	if (s->handle == NULL)
		perf_fatal("out of memory for a window of %llu", (unsigned long long)s->window);
	run_burst(s, &run->job);
	set_burst(s, &run->job, (double)run_burst(s, &run->job) / (double)s->burst);
	pace = perf_pace_start(run->options, SAMPLES);
	while (perf_pace_more(&pace, samples.n))
		perf_samples_add(&samples, (double)run_sample(run, s, samples.n, &row) /
					   (double)s->burst);
	free(s->handle);
	row.time = perf_samples_close(&samples);
	if (row.time.median > 0) {
		row.mb_per_s = 1e3 * (double)s->size / row.time.median;
		row.ops_per_s = 1e9 / row.time.median;
	}
	perf_report_row(&run->report, &row);
}

static void measure_windows(struct perf_run *run, struct stream *s, const struct perf_list *windows)
{
	const char *why = perf_op_obstacle(s->op, &run->job, s->size);
	size_t i;

	if (run->options->threads != 0 && strcmp(s->mode, "rate") == 0) {
		perf_threads(run, s->op, s->size, windows);
		return;
	}
	if (why != NULL) {
		perf_report_skip(&run->report, s->mode, s->op->name, s->size, why);
		return;
	}
	for (i = 0; i < windows->n; i++) {
		s->window = windows->value[i] ? windows->value[i] : 1;
		perf_report_progress(&run->report, s->mode, s->op->name, s->size);
		measure(run, s);
	}
}

static uint32_t ops_named(const char *const *names, size_t n)
{
	uint32_t ops = 0;

	while (n-- > 0)
		ops |= UINT32_C(1) << perf_op_find(names[n]);
	return ops;
}

/* Measure all combinations requested by the user, or the given defaults. */
static void measure_all(struct perf_run *run, const char *mode, uint32_t ops,
			const struct perf_list *sizes, const struct perf_list *windows)
{
	struct stream s = { .mode = mode };
	size_t i, j;

	ops = run->options->ops ? run->options->ops : ops;
	sizes = perf_list_or(&run->options->sizes, sizes);
	windows = perf_list_or(&run->options->windows, windows);
	for (i = 0; i < perf_op_count; i++) {
		if (!(ops >> i & 1))
			continue;
		s.op = &perf_op_table[i];
		for (j = 0; j < sizes->n; j++) {
			s.size = s.op->width ? s.op->width : sizes->value[j];
			measure_windows(run, &s, windows);
			if (s.op->width)
				break;
		}
	}
}

void perf_bandwidth(struct perf_run *run)
{
	static const struct perf_list sizes = { 4, { 8, 1024, 65536, 1048576 } };
	static const struct perf_list windows = { 2, { 1, 16 } };
	static const char *const names[] = { "put", "get", "copy3" };

	measure_all(run, "bandwidth", ops_named(names, 3), &sizes, &windows);
}

void perf_rate(struct perf_run *run)
{
	static const struct perf_list sizes = { 1, { 8 } };
	static const struct perf_list windows = { 3, { 1, 16, 256 } };
	static const char *const names[] = { "put", "get", "add8" };

	measure_all(run, "rate", ops_named(names, 3), &sizes, &windows);
}
