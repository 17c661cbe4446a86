// SPDX-License-Identifier: MIT
/*
 * Number of system calls for a long sequence of puts. The kernel counts them (a perf event on the
 * tracepoint of system call entry), and two markers show in a trace where the sequence begins and
 * ends. Waits use acp_inquire(), which never sleeps.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mode.h"

#define PUTS		100000
#define WARM_UP		1000
#define WARM_UP_ROUNDS	50
#define WINDOW_MAX	1024
#define SIZE		8

/* Two consecutive system calls that are used nowhere else here. */
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

/*
 * Issue n puts with a window of outstanding ones, and wait for all. Returns the number of failures.
 */
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

/* Return the ID of the tracepoint for perf events, or 0. */
static uint64_t tracepoint_id(void)
{
	static const char *const files[] = {
		"/sys/kernel/tracing/events/raw_syscalls/sys_enter/id",
		"/sys/kernel/debug/tracing/events/raw_syscalls/sys_enter/id",
	};
	unsigned long long id = 0;
	FILE *file = NULL;
	size_t i;

	for (i = 0; file == NULL && i < sizeof(files) / sizeof(files[0]); i++)
		file = fopen(files[i], "re");
	if (file == NULL)
		return 0;
	if (fscanf(file, "%llu", &id) != 1)
		id = 0;
	fclose(file);
	return id;
}

/* Open a counter of the system calls of this thread. Returns -1 on failure. */
static int open_counter(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = tracepoint_id(),
	};

	if (attr.config == 0)
		return -1;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Read the counter. Each read is a system call and counts. */
static uint64_t read_counter(int fd)
{
	uint64_t value;

	if (fd < 0)
		return 0;
	if (read(fd, &value, sizeof(value)) != sizeof(value))
		perf_fatal("reading the counter of system calls: %s", strerror(errno));
	return value;
}

/* Execute n puts between markers. Returns the system calls between two reads of the counter. */
static uint64_t put_between_marks(const struct perf_run *run, int counter, uint64_t n,
				  uint64_t window)
{
	uint64_t before = read_counter(counter), failed;

	mark();
	failed = put_many(run, n, window);
	mark();
	if (failed != 0)
		perf_fatal("%llu puts failed", (unsigned long long)failed);
	return read_counter(counter) - before;
}

/* Put until no system call is needed, because the poller is awake, or until a limit. */
static void warm_up(const struct perf_run *run, int counter, uint64_t own, uint64_t window)
{
	int i;

	for (i = 0; i < WARM_UP_ROUNDS; i++) {
		if (put_between_marks(run, counter, WARM_UP, window) == own)
			return;
	}
}

/* Measure the sequence. The note is the number of system calls. */
static void measure(struct perf_run *run, struct perf_row *row, uint64_t n, char *note, size_t room)
{
	struct perf_samples samples = { 0 };
	int counter = open_counter();
	uint64_t begin, own, all;

	own = put_between_marks(run, counter, 0, row->window);
	warm_up(run, counter, own, row->window);
	begin = perf_now();
	all = put_between_marks(run, counter, n, row->window);
	perf_samples_add(&samples, (double)(perf_now() - begin) / (double)n);
	row->time = perf_samples_close(&samples);
	if (counter < 0) {
		snprintf(note, room, "system calls not counted: needs tracefs and perf events");
		return;
	}
	close(counter);
	snprintf(note, room, "%llu system calls for %llu puts", (unsigned long long)(all - own),
		 (unsigned long long)n);
}

void perf_syscalls(struct perf_run *run)
{
	const struct perf_op *op = &perf_op_table[perf_op_find("put")];
	struct perf_row row = { .mode = "syscalls", .op = "put", .size = SIZE };
	uint64_t n = run->options->iters ? run->options->iters : PUTS;
	char note[80];

	row.window = run->options->windows.n ? run->options->windows.value[0] : 64;
	if (row.window == 0 || row.window > WINDOW_MAX)
		row.window = WINDOW_MAX;
	perf_report_progress(&run->report, "syscalls", "put", SIZE);
	perf_op_prepare(op, &run->job, SIZE, n);
	measure(run, &row, n, note, sizeof(note));
	row.checks = 1;
	row.wrong = !perf_op_verify(op, &run->job, SIZE, n, n, false);
	row.ops_per_s = row.time.median > 0 ? 1e9 / row.time.median : 0;
	row.note = note;
	perf_report_row(&run->report, &row);
}
