// SPDX-License-Identifier: MIT
/*
 * Puts between two marks in the list of system calls: what strace shows between them is what
 * the puts needed. The waiting is done with acp_inquire, which never sleeps.
 */
#define _GNU_SOURCE
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "perf_mode.h"

#define PUTS		100000
#define WARM_UP		1000
#define WINDOW_MAX	1024
#define SIZE		8

/* Two calls in a row that nothing else here makes. */
static void mark(void)
{
	syscall(SYS_getppid);
	syscall(SYS_getppid);
}

static void spin_until_done(acp_handle_t handle)
{
	if (handle == ACP_HANDLE_NULL)
		perf_fatal("put: not accepted");
	while (acp_inquire(handle) != 0)
		__asm__ volatile("" ::: "memory");
}

/* Issue n puts, window of them outstanding, and wait for all. Returns those that failed. */
static uint64_t put_many(const struct perf_run *run, uint64_t n, uint64_t window)
{
	const struct perf_op *op = &perf_op_table[perf_op_find("put")];
	acp_handle_t handle[WINDOW_MAX] = { 0 };
	uint64_t failed = 0, i;

	for (i = 0; i < n + window; i++) {
		acp_handle_t *place = &handle[i % window];

		if (i >= window && i - window < n) {
			spin_until_done(*place);
			failed += acpx_status(*place) != 0;
		}
		if (i < n)
			*place = perf_op_issue(op, &run->job, SIZE, 0);
	}
	return failed;
}

static long context_switches(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) != 0)
		perf_fatal("getrusage failed");
	return usage.ru_nvcsw;
}

void perf_syscalls(struct perf_run *run)
{
	const struct perf_op *op = &perf_op_table[perf_op_find("put")];
	struct perf_row row = { .mode = "syscalls", .op = "put", .size = SIZE };
	struct perf_samples samples = { 0 };
	uint64_t n = run->options->iters ? run->options->iters : PUTS;
	uint64_t begin, end, failed;
	long sleeps;

	row.window = run->options->windows.n ? run->options->windows.value[0] : 64;
	if (row.window == 0 || row.window > WINDOW_MAX)
		row.window = WINDOW_MAX;
	perf_report_progress(&run->report, "syscalls", "put", SIZE);
	perf_op_prepare(op, &run->job, SIZE, n);
	failed = put_many(run, WARM_UP, row.window);
	sleeps = context_switches();
	begin = perf_now();
	mark();
	failed += put_many(run, n, row.window);
	mark();
	end = perf_now();
	sleeps = context_switches() - sleeps;
	if (failed != 0)
		perf_fatal("%llu puts failed", (unsigned long long)failed);
	row.checks = 1;
	row.wrong = !perf_op_verify(op, &run->job, SIZE, n, n, false);
	perf_samples_add(&samples, (double)(end - begin) / (double)n);
	row.time = perf_samples_close(&samples);
	row.ops_per_s = row.time.median > 0 ? 1e9 / row.time.median : 0;
	row.note = sleeps == 0 ? "the process never slept" : "the process slept, or was traced";
	perf_report_row(&run->report, &row);
}
