/* SPDX-License-Identifier: MIT */
/*
 * Workers of ranks (kernel/exec/worker.h): tests in which they do not run, because the test has the
 * only processor that they may use, and the control group that they move to.
 */
#ifndef WORKERS_H
#define WORKERS_H

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nodes.h"

/* True if the name of a process begins with @begin. */
static inline bool is_named(int pid, const char *begin)
{
	char path[40], name[40] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	f = fopen(path, "r");
	if (f && !fgets(name, sizeof(name), f))
		name[0] = 0;
	if (f)
		fclose(f);
	return !strncmp(name, begin, strlen(begin));
}

static inline void pin(int pid)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	CHECK_EQ(sched_setaffinity(pid, sizeof(set), &set), 0);
}

static inline void urge(int pid)
{
	struct sched_param most_urgent = { .sched_priority = 2 };

	CHECK_EQ(sched_setscheduler(pid, SCHED_FIFO, &most_urgent), 0);
}

static inline void calm(int pid)
{
	struct sched_param usual = { 0 };

	CHECK_EQ(sched_setscheduler(pid, SCHED_OTHER, &usual), 0);
}

/* Do something to all processes of that name.  How many there are. */
static inline unsigned int for_all(const char *name, void (*act)(int pid))
{
	DIR *processes = opendir("/proc");
	struct dirent *process;
	unsigned int found = 0;

	CHECK(processes);
	while ((process = readdir(processes))) {
		int pid = atoi(process->d_name);

		if (pid <= 0 || !is_named(pid, name))
			continue;
		act(pid);
		found++;
	}
	closedir(processes);
	return found;
}

/*
 * The workers, so many at least, run on this processor, and from now on nothing but this process
 * and softirqs does.
 */
static inline void take_processor(unsigned int workers)
{
	struct sched_param urgent = { .sched_priority = 1 };
	char name[20];

	stay_on(0);
	snprintf(name, sizeof(name), "acp/%d\n", getpid());
	/* That of the rank that puts was started if the processor was taken from it once. */
	CHECK(for_all(name, pin) >= workers);
	CHECK_EQ(sched_setscheduler(0, SCHED_FIFO, &urgent), 0);
}

static inline void give_processor(void)
{
	calm(0);
}

/* What else would look at rings, or give other tasks the processor, while this test needs it. */
static const struct {
	const char *path, *during, *after;
} settings[] = {
	{ "/sys/module/acp/parameters/poll_us", "0", "500" },
	{ "/sys/module/acp/parameters/moderation_us", "0", "40" },
	{ "/proc/sys/kernel/sched_rt_runtime_us", "-1", "950000" },
};

#define SETTINGS	(sizeof(settings) / sizeof(settings[0]))

static inline void with_settings(void (*run)(void))
{
	unsigned int i;
	int status;

	for (i = 0; i < SETTINGS; i++)
		CHECK(write_file(settings[i].path, settings[i].during));
	CHECK_EQ(for_all("ksoftirqd/0\n", urge), 1);
	status = child_status(run);
	for_all("ksoftirqd/0\n", calm);
	for (i = 0; i < SETTINGS; i++)
		CHECK(write_file(settings[i].path, settings[i].after));
	CHECK_EQ(status, 0);
}

/* ---- control groups ---- */

#define GROUP	"/tmp/acp-budget"

/* A control group for processes of the test. */
static inline void group_open(void)
{
	mkdir(GROUP, 0700);
	if (mount("none", GROUP, "cgroup2", 0, NULL))
		SKIP("no cgroup2: %s", strerror(errno));
	CHECK(!mkdir(GROUP "/group", 0700) || errno == EEXIST);
}

/* The group becomes empty, so that it can be removed. */
static inline void group_close(void)
{
	struct patience p = patience_begin(PATIENCE_SOON);

	while (rmdir(GROUP "/group"))
		CHECK(errno == EBUSY && !patience_over(&p));
	umount(GROUP);
}

static inline void write_number(const char *path, int number)
{
	char text[20];

	snprintf(text, sizeof(text), "%d", number);
	if (!write_file(path, text))
		FAIL("%s: %s", path, strerror(errno));
}

static inline bool worker_in_group(void)
{
	FILE *f = fopen(GROUP "/group/cgroup.procs", "r");
	bool found = false;
	int pid;

	CHECK(f);
	while (!found && fscanf(f, "%d", &pid) == 1)
		found = is_named(pid, "acp/");
	fclose(f);
	return found;
}

#endif /* WORKERS_H */
