// SPDX-License-Identifier: MIT
/* acp_sync of all ranks, in rounds whose length rank 0 determines. Only rank 0 reads the clock. */
#include "mode.h"

#define SAMPLES	1000
#define ROUND	32	/* barriers between two reads of the board of rank 0 */

/* True if the target has passed as many rounds as this rank: each rank publishes its number. */
static bool all_came(const struct perf_job *job)
{
	return perf_job_fetch(job, job->target)->reached == job->board->reached;
}

static void pass(struct perf_job *job, uint64_t count, struct perf_samples *samples)
{
	uint64_t begin, i;

	for (i = 0; i < count; i++) {
		job->board->reached++;
		begin = perf_now();
		perf_sync();
		if (samples != NULL)
			perf_samples_add(samples, (double)(perf_now() - begin));
	}
}

/*
 * After the last barrier of a round, no rank continues before perf_agree_on_count(), so the boards
 * do not change.
 */
static void drive(struct perf_run *run)
{
	struct perf_row row = { .mode = "barrier", .op = "acp_sync" };
	struct perf_samples samples = { 0 };
	struct perf_pace pace = perf_pace_start(run->options, SAMPLES);
	uint64_t count;

	perf_report_progress(&run->report, "barrier", "acp_sync", 0);
	while (perf_pace_more(&pace, samples.n)) {
		count = pace.most - samples.n < ROUND ? pace.most - samples.n : ROUND;
		perf_agree_on_count(&run->job, count);
		pass(&run->job, count, &samples);
		if (!run->options->check)
			continue;
		row.checks++;
		row.wrong += !all_came(&run->job);
	}
	perf_agree_on_count(&run->job, 0);
	row.time = perf_samples_close(&samples);
	if (row.time.median > 0)
		row.ops_per_s = 1e9 / row.time.median;
	perf_report_row(&run->report, &row);
}

void perf_barrier(struct perf_run *run)
{
	uint64_t count;

	if (run->job.rank == 0) {
		drive(run);
		return;
	}
	while ((count = perf_agree_on_count(&run->job, 0)) != 0)
		pass(&run->job, count, NULL);
}
