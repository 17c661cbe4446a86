// SPDX-License-Identifier: MIT
/*
 * Latency: one operation at a time, from its call to its completion.
 *
 * Copies that need no network may take less time than reading the clock. They are timed in batches,
 * alternating with memcpy() between the same kinds of memory.
 */
#include <stdio.h>
#include <string.h>

#include "mode.h"

#define SAMPLES		1000
#define WARM_UP		16
#define CHECK_EVERY	256
#define BATCH_NS	20000
#define BATCH_MAX	4096

static const struct perf_list default_sizes = { 3, { 8, 1024, 65536 } };

const struct perf_list *perf_list_or(const struct perf_list *given, const struct perf_list *other)
{
	return given->n != 0 ? given : other;
}

static uint64_t time_one(const struct perf_op *op, const struct perf_job *job, size_t size)
{
	uint64_t begin = perf_now(), end;
	acp_handle_t handle = perf_op_issue(op, job, size, 0);

	acp_complete(handle);
	end = perf_now();
	perf_finish(handle, op->name);
	return end - begin;
}

/* Execute some operations between two checks: up to CHECK_EVERY, fewer when time is over. */
static void measure_round(struct perf_run *run, const struct perf_op *op, size_t size,
			  const struct perf_pace *pace, struct perf_samples *samples,
			  struct perf_row *row)
{
	const struct perf_job *job = &run->job;
	uint64_t seed = row->checks, n = 0;

	if (run->options->check)
		perf_op_prepare(op, job, size, seed);
	do {
		perf_samples_add(samples, (double)time_one(op, job, size));
		n++;
	} while (n < CHECK_EVERY && perf_pace_more(pace, samples->n));
	if (!run->options->check)
		return;
	row->checks++;
	row->wrong += !perf_op_verify(op, job, size, seed, n, true);
}

static void measure_remote(struct perf_run *run, const struct perf_op *op, size_t size)
{
	struct perf_row row = { .mode = "latency", .op = op->name, .size = size };
	struct perf_samples samples = { 0 };
	struct perf_pace pace;
	int i;

	for (i = 0; i < WARM_UP; i++)
		time_one(op, &run->job, size);
	pace = perf_pace_start(run->options, SAMPLES);
	while (perf_pace_more(&pace, samples.n))
		measure_round(run, op, size, &pace, &samples, &row);
	row.time = perf_samples_close(&samples);
	if (run->udp_median > 0) {
		row.ratio = row.time.median / run->udp_median;
		row.ratio_to = "udp";
	}
	perf_report_row(&run->report, &row);
}

/*
 * The next two functions call the operation and acp_complete() with as little overhead as possible.
 */
static acp_handle_t run_atomics(const struct perf_op *op, acp_ga_t dst, acp_ga_t src, uint64_t n)
{
	acp_handle_t handle = ACP_HANDLE_NULL;
	uint64_t i;

	for (i = 0; i < n; i++) {
		handle = op->atomic8(dst, src, i, ACP_HANDLE_NULL);
		if (handle == ACP_HANDLE_NULL)
			break;
		acp_complete(handle);
	}
	return handle;
}

static acp_handle_t run_copies(acp_ga_t dst, acp_ga_t src, size_t size, uint64_t n)
{
	acp_handle_t handle = ACP_HANDLE_NULL;

	while (n-- > 0) {
		handle = acp_copy(dst, src, size, ACP_HANDLE_NULL);
		if (handle == ACP_HANDLE_NULL)
			break;
		acp_complete(handle);
	}
	return handle;
}

static uint64_t time_batch(const struct perf_op *op, const struct perf_job *job, size_t size,
			   uint64_t batch)
{
	acp_ga_t dst = job->area[op->dst].ga, src = job->area[op->src].ga;
	uint64_t begin = perf_now(), end;
	acp_handle_t handle = op->width == 8 ? run_atomics(op, dst, src, batch) :
					       run_copies(dst, src, size, batch);

	end = perf_now();
	perf_finish(handle, op->name);
	return end - begin;
}

static uint64_t time_memcpy(void *dst, const void *src, size_t size, uint64_t batch)
{
	void *(*copy)(void *dst, const void *src, size_t size) = memcpy;
	uint64_t begin, i;

	/* Hide the function from the compiler, which could otherwise merge calls. */
	__asm__("" : "+r"(copy));
	begin = perf_now();
	for (i = 0; i < batch; i++)
		copy(dst, src, size);
	return perf_now() - begin;
}

/* Return a number of operations for which reading the clock is negligible. */
static uint64_t choose_batch(const struct perf_op *op, const struct perf_job *job, size_t size)
{
	uint64_t batch = 1;

	time_batch(op, job, size, WARM_UP);
	while (batch < BATCH_MAX && time_batch(op, job, size, batch) < BATCH_NS)
		batch *= 2;
	return batch;
}

/* Return memory of this process of the same kind as an area, or NULL. */
static void *twin(const struct perf_job *job, enum perf_place place)
{
	void *own = place == PERF_HEAP ? acp_query_address(job->own_heap) :
					 acp_query_address(job->area[place].ga);

	/* For registered memory of another rank, use own memory registered in the same way. */
	return own == NULL && place == PERF_TARGET ? acp_query_address(job->area[PERF_NEAR].ga) :
						     own;
}

static void check_local(struct perf_run *run, const struct perf_op *op, size_t size,
			struct perf_row *row)
{
	if (!run->options->check)
		return;
	perf_op_prepare(op, &run->job, size, row->checks);
	perf_finish(perf_op_issue(op, &run->job, size, 0), op->name);
	row->wrong += !perf_op_verify(op, &run->job, size, row->checks, 1, true);
	row->checks++;
}

static void report_local(struct perf_run *run, struct perf_row *row, struct perf_samples *ours,
			 struct perf_samples *theirs)
{
	struct perf_row other = { .mode = row->mode, .op = "memcpy", .size = row->size };

	row->time = perf_samples_close(ours);
	row->mb_per_s = row->time.median > 0 ? 1e3 * (double)row->size / row->time.median : 0;
	if (theirs->n == 0) {
		perf_report_row(&run->report, row);
		return;
	}
	other.time = perf_samples_close(theirs);
	other.mb_per_s = other.time.median > 0 ? 1e3 * (double)row->size / other.time.median : 0;
	if (row->time.median > 0) {
		row->ratio = other.time.median / row->time.median;
		row->ratio_to = "memcpy";
	}
	perf_report_row(&run->report, row);
	perf_report_row(&run->report, &other);
}

static void measure_local(struct perf_run *run, const struct perf_op *op, size_t size)
{
	struct perf_row row = { .mode = "latency", .op = op->name, .size = size };
	struct perf_samples ours = { 0 }, theirs = { 0 };
	const struct perf_job *job = &run->job;
	const void *src = twin(job, op->src);
	void *dst = twin(job, op->dst);
	uint64_t batch = choose_batch(op, job, size);
	struct perf_pace pace;

	check_local(run, op, size, &row);
	pace = perf_pace_start(run->options, SAMPLES);
	while (perf_pace_more(&pace, ours.n)) {
		if (op->width == 0 && dst != NULL && src != NULL)
			perf_samples_add(&theirs, (double)time_memcpy(dst, src, size, batch) /
						  (double)batch);
		perf_samples_add(&ours, (double)time_batch(op, job, size, batch) / (double)batch);
	}
	check_local(run, op, size, &row);
	report_local(run, &row, &ours, &theirs);
}

/* True if the operation needs no network. */
static bool within_node(const struct perf_op *op, const struct perf_job *job)
{
	return op->src == PERF_HEAP ||
	       (op->width == 0 && !job->area[op->dst].away && !job->area[op->src].away);
}

static void measure(struct perf_run *run, const struct perf_op *op, size_t size)
{
	const char *why = perf_op_obstacle(op, &run->job, size);

	perf_report_progress(&run->report, "latency", op->name, size);
	if (why != NULL)
		perf_report_skip(&run->report, "latency", op->name, size, why);
	else if (within_node(op, &run->job))
		measure_local(run, op, size);
	else
		measure_remote(run, op, size);
}

void perf_latency(struct perf_run *run)
{
	const struct perf_list *sizes = perf_list_or(&run->options->sizes, &default_sizes);
	uint32_t ops = run->options->ops ? run->options->ops : perf_op_all();
	size_t i, j;

	for (i = 0; i < perf_op_count; i++) {
		const struct perf_op *op = &perf_op_table[i];

		if (!(ops >> i & 1))
			continue;
		if (op->width != 0)
			measure(run, op, op->width);
		for (j = 0; op->width == 0 && j < sizes->n; j++)
			measure(run, op, sizes->value[j]);
	}
}
