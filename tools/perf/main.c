// SPDX-License-Identifier: MIT
/*
 * acp_perf - measure ACP between the ranks of a job
 *
 * See acp_perf --help, which needs no job. All ranks execute the same list of measurements; rank 0
 * drives and prints. While it works alone, the others sleep in acp_sync().
 */
#include <stdio.h>
#include <stdlib.h>

#include "mode.h"

/* In this order. The baseline is first, because latencies are compared with it. */
static const struct {
	enum perf_mode mode;
	bool together;		/* executed by all ranks, otherwise by rank 0 alone */
	void (*measure)(struct perf_run *run);
} measurements[] = {
	{ PERF_UDP, true, perf_udp },
	{ PERF_LATENCY, false, perf_latency },
	{ PERF_BANDWIDTH, false, perf_bandwidth },
	{ PERF_RATE, false, perf_rate },
	{ PERF_REGISTER, false, perf_register },
	{ PERF_REGIONS, false, perf_regions },
	{ PERF_BARRIER, true, perf_barrier },
	{ PERF_COLL, true, perf_coll },
	{ PERF_SYSCALLS, false, perf_syscalls },
	{ PERF_HEAP_MODE, false, perf_heap },
	{ PERF_CHANNEL, true, perf_channel },
	{ PERF_MAILBOX, true, perf_mailbox },
	{ PERF_TAG, true, perf_tag },
	{ PERF_MAP, true, perf_map },
	{ PERF_WAIT, true, perf_wait },
	{ PERF_SWEEP, false, perf_sweep },
	{ PERF_IDLE, true, perf_idle },
};

static void measure(struct perf_run *run)
{
	size_t i;

	for (i = 0; i < sizeof(measurements) / sizeof(measurements[0]); i++) {
		if (!(run->options->modes & measurements[i].mode))
			continue;
		/* Curves show the results of a sweep and of its baseline. */
		run->report.keep = run->options->modes & PERF_SWEEP &&
				   measurements[i].mode & (PERF_UDP | PERF_SWEEP);
		if (measurements[i].together || run->job.rank == 0)
			measurements[i].measure(run);
		perf_sync();
	}
}

/* All ranks end with the status of rank 0. */
static int agree(struct perf_job *job, int status)
{
	if (job->rank == 0)
		job->board->verdict = (uint64_t)status;
	perf_sync();
	return job->rank == 0 ? status : (int)perf_job_fetch(job, 0)->verdict;
}

static int run(const struct perf_options *options)
{
	struct perf_run run = { .options = options };
	int status = EXIT_SUCCESS;

	perf_job_open(&run.job, options);
	if (run.job.rank == 0)
		perf_report_open(&run.report, options, &run.job);
	measure(&run);
	if (run.job.rank == 0) {
		if (perf_report_close(&run.report) != 0 || run.report.wrong != 0 || run.failed)
			status = EXIT_FAILURE;
	}
	status = agree(&run.job, status);
	perf_job_close(&run.job);
	return status;
}

static int start(int argc, char **argv)
{
	struct perf_options options;
	char error[200];

	if (perf_options_parse(&options, acp_procs(), argc, argv, error, sizeof(error)) != 0) {
		if (acp_rank() == 0)
			fprintf(stderr, "acp_perf: %s\n", error);
		return 2;
	}
	acpx_set_error_mode(ACPX_ERRORS_RETURN);
	return run(&options);
}

int main(int argc, char **argv)
{
	int status;

	if (perf_options_want_help(argc, argv)) {
		perf_options_help(stdout);
		return EXIT_SUCCESS;
	}
	if (acp_init(&argc, &argv) != 0) {
		fprintf(stderr, "acp_perf: acp_init failed\n");
		return EXIT_FAILURE;
	}
	status = start(argc, argv);
	if (acp_finalize() != 0) {
		fprintf(stderr, "acp_perf: acp_finalize failed\n");
		status = EXIT_FAILURE;
	}
	return status;
}
