// SPDX-License-Identifier: MIT
/*
 * Cost of an idle job: rank 0 sleeps in nanosleep, the others in acp_sync. Measures the CPU time of
 * all ranks and, on the node of rank 0, of the kernel threads of the module. The note is the load
 * of the whole machine, whatever runs there.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mode.h"

#define SECONDS		5.0
#define KTHREAD		0x00200000u	/* PF_KTHREAD, in /proc/PID/stat */
#define SETTLE_NS	500000000	/* until deferred work of the start of the job is done */

/* Return the CPU time of this process in nanoseconds. */
static uint64_t own_time(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0)
		perf_fatal("no clock of the process");
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void nap(double seconds)
{
	struct timespec t = { (time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds)) };

	nanosleep(&t, NULL);
}

/* True if /proc/PID/stat describes a kernel thread of the module, recognized by its name. */
static bool is_ours(const char *pid)
{
	char path[300], name[32], state;
	unsigned int flags;
	FILE *file;
	int n;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	n = fscanf(file, "%*d (%31[^)]) %c %*d %*d %*d %*d %*d %u", name, &state, &flags);
	fclose(file);
	return n == 3 && flags & KTHREAD && strncmp(name, "acp", 3) == 0;
}

/* Return the CPU time of a thread in nanoseconds, or 0. */
static uint64_t time_of(const char *pid)
{
	unsigned long long ns = 0;
	char path[300];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/schedstat", pid);
	file = fopen(path, "re");
	if (file == NULL)
		return 0;
	if (fscanf(file, "%llu", &ns) != 1)
		ns = 0;
	fclose(file);
	return ns;
}

static uint64_t threads_time(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	uint64_t sum = 0;

	if (proc == NULL)
		perf_fatal("no /proc");
	while ((entry = readdir(proc)) != NULL) {
		if (isdigit((unsigned char)entry->d_name[0]) && is_ours(entry->d_name))
			sum += time_of(entry->d_name);
	}
	closedir(proc);
	return sum;
}

/* Return the seconds for which the CPUs of this machine were not idle. */
static double busy_seconds(void)
{
	unsigned long long value[8] = { 0 };
	FILE *file = fopen("/proc/stat", "re");
	int n = 0;

	if (file != NULL) {
		n = fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu",
			   &value[0], &value[1], &value[2], &value[3], &value[4], &value[5],
			   &value[6], &value[7]);
		fclose(file);
	}
	if (n != 8)	/* user nice system idle iowait irq softirq steal */
		return 0;
	return (double)(value[0] + value[1] + value[2] + value[5] + value[6]) /
	       (double)sysconf(_SC_CLK_TCK);
}

/* All ranks: measure the own CPU time between two barriers. Rank 0 enters the second one late. */
static void sleep_between(struct perf_run *run, double seconds)
{
	uint64_t begin;

	perf_sync();
	begin = own_time();
	if (run->job.rank == 0)
		nap(seconds);
	perf_sync();
	run->job.board->count = own_time() - begin;
	perf_sync();
}

static uint64_t ranks_time(const struct perf_job *job)
{
	uint64_t sum = job->board->count;
	int rank;

	for (rank = 1; rank < job->procs; rank++)
		sum += perf_job_fetch(job, rank)->count;
	return sum;
}

void perf_idle(struct perf_run *run)
{
	double seconds = run->options->seconds > 0 ? run->options->seconds : SECONDS, busy;
	struct perf_row row = { .mode = "idle", .op = "sleep", .ratio_to = "processor" };
	uint64_t threads, ranks;
	char note[120];

	perf_report_progress(&run->report, "idle", "sleep", 0);
	sleep_between(run, SETTLE_NS / 1e9);
	threads = run->job.rank == 0 ? threads_time() : 0;
	busy = busy_seconds();
	sleep_between(run, seconds);
	if (run->job.rank != 0)
		return;
	busy = busy_seconds() - busy;
	threads = threads_time() - threads;
	ranks = ranks_time(&run->job);
	snprintf(note, sizeof(note),
		 "%.1f s: ranks %.3f ms; threads of acp %.3f ms; machine busy %.2f s",
		 seconds, (double)ranks / 1e6, (double)threads / 1e6, busy);
	row.time.n = (size_t)run->job.procs;
	row.ratio = (double)(ranks + threads) / (1e9 * seconds);
	row.note = note;
	perf_report_row(&run->report, &row);
}
