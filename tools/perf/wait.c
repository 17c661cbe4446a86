// SPDX-License-Identifier: MIT
/*
 * Round trips of a word: each of two ranks sleeps in acpx_wait_until() until the put of the other
 * one wakes it. Also the cost of a wait that times out.
 */
#include <stddef.h>
#include <time.h>

#include "mode.h"

#define SAMPLES	1000
#define WARM_UP	16
#define IDLE_NS	3000000000ULL
#define LAST	(1ULL << 63)	/* flag of the last word */

static void put_number(struct perf_job *job, int rank, uint64_t number)
{
	acp_ga_t from = acp_query_starter_ga(job->rank) + offsetof(struct perf_board, sent);
	acp_ga_t to = acp_query_starter_ga(rank) + offsetof(struct perf_board, word);

	job->board->sent = number;
	perf_finish(acp_copy(to, from, sizeof(number), ACP_HANDLE_NULL), "put");
}

static uint64_t await_number(struct perf_job *job, uint64_t number)
{
	if (acpx_wait_until(&job->board->word, sizeof(number), ACPX_CMP_GE, number,
			    ACPX_FOREVER) != 0)
		perf_fatal("acpx_wait_until failed");
	return job->board->word;
}

static void answer(struct perf_job *job)
{
	uint64_t number = 0;

	while (!(number & LAST)) {
		number = await_number(job, (number & ~LAST) + 1);
		put_number(job, 0, number);
	}
}

static uint64_t round_trip(struct perf_job *job, uint64_t number)
{
	uint64_t begin = perf_now();

	put_number(job, job->target, number);
	await_number(job, number);
	return perf_now() - begin;
}

static void measure_turns(struct perf_run *run)
{
	struct perf_row row = { .mode = "wait", .op = "round_trip", .size = 8 };
	struct perf_samples samples = { 0 };
	struct perf_pace pace;
	uint64_t number = 0;

	perf_report_progress(&run->report, row.mode, row.op, row.size);
	while (number < WARM_UP)
		round_trip(&run->job, ++number);
	pace = perf_pace_start(run->options, SAMPLES);
	while (perf_pace_more(&pace, samples.n))
		perf_samples_add(&samples, (double)round_trip(&run->job, ++number));
	round_trip(&run->job, (number + 1) | LAST);
	row.time = perf_samples_close(&samples);
	perf_report_row(&run->report, &row);
}

static uint64_t cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void measure_idle(struct perf_run *run)
{
	struct perf_row row = { .mode = "wait", .op = "idle", .size = 8,
				.note = "processor time of each second" };
	struct perf_samples samples = { 0 };
	uint64_t begin = cpu_now();
	const uint64_t *word = &run->job.board->word;

	perf_report_progress(&run->report, row.mode, row.op, row.size);
	acpx_wait_until(word, sizeof(*word), ACPX_CMP_EQ, 0, IDLE_NS);
	perf_samples_add(&samples, (double)(cpu_now() - begin) * 1e9 / (double)IDLE_NS);
	row.time = perf_samples_close(&samples);
	perf_report_row(&run->report, &row);
}

void perf_wait(struct perf_run *run)
{
	if (run->job.procs == 1) {
		perf_report_skip(&run->report, "wait", "round_trip", 8, "one rank");
		return;
	}
	if (run->job.rank == run->job.target)
		answer(&run->job);
	if (run->job.rank == 0) {
		measure_turns(run);
		measure_idle(run);
	}
}
