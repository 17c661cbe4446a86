// SPDX-License-Identifier: MIT
/*
 * Collectives of all ranks, created once and started again and again. Each rank measures its own
 * time from the start to the end; a sample is that of the slowest rank. Between series of rounds,
 * whose length rank 0 determines, all ranks verify what they have got.
 */
#include "coll.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mode.h"

#define SAMPLES		1000
#define SERIES		32	/* rounds between two checks, at most; the first series are short */
#define WARM_UP		4	/* rounds */
#define AREA_MAX	(UINT64_C(1) << 28)	/* bytes of src, and of dst */
#define BANDWIDTH_MIN	4096	/* bytes of a block, from which on MB/s is printed */

static const struct perf_list default_sizes = { 3, { 8, 1024, 65536 } };

struct bench {
	struct perf_job *job;
	const struct perf_coll *op;
	struct perf_coll_memory memory;	/* of the collective */
	char *dst, *src;
	size_t area;			/* bytes of src, and of dst */
	/* Of each round of a series, and 1 if something is wrong: of this rank, and the maximum. */
	double *mine, *worst;
	acpx_coll_t maximum, coll;
	char *mapped;
	acp_atkey_t key;
	unsigned int series;		/* data of each are different */
};

static void need(int result, const char *what)
{
	if (result < 0)
		perf_fatal("%s: %s", what, strerror(-result));
}

static void execute(acpx_coll_t coll)
{
	need(acpx_coll_start(coll), "acpx_coll_start");
	need(acpx_coll_wait(coll, ACPX_FOREVER), "acpx_coll_wait");
}

/* One round of the collective that is measured. */
static void play(const struct bench *b)
{
	if (!b->op->start) {
		execute(b->coll);
		return;
	}
	need(b->op->start(&b->memory, b->coll), b->op->name);
	need(acpx_coll_wait(b->coll, ACPX_FOREVER), "acpx_coll_wait");
}

/* ---- Data ---- */

static size_t blocks(const struct bench *b, int number)
{
	return (size_t)(number < 0 ? b->job->procs : number);
}

/* The sum of number @index in a block of the source of some members: small, so it is exact. */
static double number_of(const struct bench *b, const struct perf_coll_origin *o, size_t index)
{
	double members = o->end - o->first, sum = members * (o->first + o->end - 1) / 2;

	return sum + members * (3.0 * o->block + (double)(index % 7) + b->series % 100 + 1);
}

static void fill(struct bench *b)
{
	struct perf_coll_origin own = { b->job->rank, b->job->rank + 1, 0 };
	size_t i, count = (b->memory.size + sizeof(double) - 1) / sizeof(double), left;
	double number;
	char *to;

	for (own.block = 0; (size_t)own.block < blocks(b, b->op->src_blocks); own.block++) {
		to = b->src + (size_t)own.block * b->memory.size;
		for (i = 0; i < count; i++) {
			number = number_of(b, &own, i);
			left = b->memory.size - i * sizeof(double);
			memcpy(to + i * sizeof(double), &number,
			       left < sizeof(number) ? left : sizeof(number));
		}
	}
	memset(b->dst, 0, blocks(b, b->op->dst_blocks) * b->memory.size);
}

static bool block_is_right(const struct bench *b, int block)
{
	struct perf_coll_place at = { b->job->rank, b->job->procs, block };
	const char *is = b->dst + (size_t)block * b->memory.size;
	struct perf_coll_origin origin;
	size_t at_byte, left;
	double number;

	if (!b->op->origin(at, &origin))
		return true;
	for (at_byte = 0; at_byte < b->memory.size; at_byte += sizeof(number)) {
		number = number_of(b, &origin, at_byte / sizeof(number));
		left = b->memory.size - at_byte;
		if (memcmp(is + at_byte, &number, left < sizeof(number) ? left : sizeof(number)))
			return false;
	}
	return true;
}

static bool all_right(const struct bench *b)
{
	int block;

	for (block = 0; (size_t)block < blocks(b, b->op->dst_blocks); block++) {
		if (b->memory.size > 0 && !block_is_right(b, block))
			return false;
	}
	return true;
}

/* ---- Measurement ---- */

/* All ranks: @count rounds, and the maximum of what they have measured. */
static void measure_series(struct bench *b, uint64_t count, bool check)
{
	uint64_t begin, i;

	b->series++;
	fill(b);
	memset(b->mine, 0, (SERIES + 1) * sizeof(*b->mine));
	for (i = 0; i < count; i++) {
		begin = perf_now();
		play(b);
		b->mine[i] = (double)(perf_now() - begin);
	}
	b->mine[SERIES] = check && !all_right(b);
	execute(b->maximum);
}

/* Rank 0: one series with the others. */
static void drive_series(struct bench *b, struct perf_row *row, uint64_t count, bool check)
{
	perf_agree_on_count(b->job, count);
	measure_series(b, count, check);
	row->checks += check;
	row->wrong += b->worst[SERIES] != 0;
}

/* Rank 0 determines how many rounds there are. */
static void drive(struct bench *b, struct perf_run *run, struct perf_row *row)
{
	bool check = run->options->check && row->size > 0;
	struct perf_samples samples = { 0 };
	struct perf_pace pace;
	uint64_t count, left, i;

	drive_series(b, row, WARM_UP, check);
	pace = perf_pace_start(run->options, SAMPLES);
	while (perf_pace_more(&pace, samples.n)) {
		left = pace.most - samples.n;
		count = samples.n < SERIES ? samples.n + 1 : SERIES;
		count = count < left ? count : left;
		drive_series(b, row, count, check);
		for (i = 0; i < count; i++)
			perf_samples_add(&samples, b->worst[i]);
	}
	perf_agree_on_count(b->job, 0);
	row->time = perf_samples_close(&samples);
}

static void report(struct perf_run *run, struct perf_row *row)
{
	if (row->time.median > 0 && row->size >= BANDWIDTH_MIN)
		row->mb_per_s = 1e3 * (double)row->size / row->time.median;
	if (row->time.median > 0)
		row->ops_per_s = 1e9 / row->time.median;
	perf_report_row(&run->report, row);
}

static void measure(struct bench *b, struct perf_run *run, const struct perf_coll *op, size_t size)
{
	struct perf_row row = { .mode = "coll", .op = op->name, .size = size };
	uint64_t count;

	b->op = op;
	b->memory.size = size;
	if (b->job->rank == 0)
		perf_report_progress(&run->report, row.mode, row.op, row.size);
	need(op->create(&b->memory, &b->coll), op->name);
	if (b->job->rank == 0)
		drive(b, run, &row);
	else
		while ((count = perf_agree_on_count(b->job, 0)) != 0)
			measure_series(b, count, run->options->check && size > 0);
	perf_sync();			/* all have read that the count is 0 */
	need(acpx_coll_free(b->coll), "acpx_coll_free");
	if (b->job->rank == 0)
		report(run, &row);
}

/* Why all ranks omit this one, or NULL. */
static const char *obstacle(const struct bench *b, const struct perf_coll *op, uint64_t size)
{
	if (op->numbers && (size == 0 || size % sizeof(double) != 0))
		return "the size is not that of numbers (8)";
	if (size == 0 || size > AREA_MAX / (uint64_t)b->job->procs)
		return size ? "too long for so many ranks" : "no data";
	return NULL;
}

static void measure_sizes(struct bench *b, struct perf_run *run, const struct perf_coll *op)
{
	const struct perf_list *sizes = perf_list_or(&run->options->sizes, &default_sizes);
	const char *why;
	size_t i;

	if (op->dst_blocks == 0) {
		measure(b, run, op, 0);
		return;
	}
	for (i = 0; i < sizes->n; i++) {
		why = obstacle(b, op, sizes->value[i]);
		if (why == NULL)
			measure(b, run, op, sizes->value[i]);
		else if (b->job->rank == 0)
			perf_report_skip(&run->report, "coll", op->name, sizes->value[i], why);
	}
}

/* ---- Memory ---- */

static uint64_t area_size(const struct bench *b, const struct perf_options *o)
{
	const struct perf_list *sizes = perf_list_or(&o->sizes, &default_sizes);
	uint64_t limit = AREA_MAX / (uint64_t)b->job->procs, largest = sizeof(double);
	size_t i;

	for (i = 0; i < sizes->n; i++) {
		if (sizes->value[i] <= limit && sizes->value[i] > largest)
			largest = sizes->value[i];
	}
	return (largest * (uint64_t)b->job->procs + 63) & ~(uint64_t)63;
}

static void open_bench(struct bench *b, struct perf_run *run)
{
	const size_t results = (SERIES + 1) * sizeof(double);
	acp_ga_t ga;

	*b = (struct bench){ .job = &run->job };
	b->area = area_size(b, run->options);
	b->mapped = calloc(1, 2 * b->area + 2 * results);
	b->key = b->mapped ? acp_register_memory(b->mapped, 2 * b->area + 2 * results, 0) :
		 ACP_ATKEY_NULL;
	if (b->key == ACP_ATKEY_NULL)
		perf_fatal("cannot register %zu bytes (see ulimit -l)", 2 * b->area + 2 * results);
	ga = acp_query_ga(b->key, b->mapped);
	b->dst = b->mapped;
	b->src = b->mapped + b->area;
	b->mine = (double *)(b->src + b->area);
	b->worst = b->mine + SERIES + 1;
	b->memory.dst = ga;
	b->memory.src = ga + b->area;
	need(acpx_group_world(&b->memory.group), "acpx_group_world");
	need(acpx_coll_allreduce_create(b->memory.group, ga + 2 * b->area + results,
					ga + 2 * b->area, SERIES + 1, ACPX_MAX, ACPX_DOUBLE,
					&b->maximum), "acpx_coll_allreduce_create");
}

static void close_bench(struct bench *b)
{
	need(acpx_coll_free(b->maximum), "acpx_coll_free");
	acpx_group_free(b->memory.group);
	if (acp_unregister_memory(b->key) != 0)
		perf_fatal("cannot unregister memory");
	free(b->mapped);
}

void perf_coll(struct perf_run *run)
{
	struct bench b;
	size_t i;

	open_bench(&b, run);
	for (i = 0; i < perf_coll_count; i++) {
		if (run->options->colls == 0 || run->options->colls & UINT32_C(1) << i)
			measure_sizes(&b, run, &perf_coll_table[i]);
	}
	close_bench(&b);
}
