// SPDX-License-Identifier: MIT
/* Tests in processes of their own (see isolated.h). */
#include "isolated.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

/* Results of the processes of a test for the harness: the first report counts. */
struct report {
	int state;		/* 0, TEST_FAILED, TEST_SKIPPED; atomic */
	char text[500];
};

static struct test *first, **last = &first;
static struct report *report;	/* shared with the processes of the tests */

void test_add(struct test *t)
{
	*last = t;
	last = &t->next;
}

bool test_short(void)
{
	return getenv("ACP_TEST_SHORT");
}

void test_end(int state, const char *file, int line, const char *format, ...)
{
	const char *base = strrchr(file, '/');
	int unset = 0, length = 0;
	va_list args;

	if (__atomic_compare_exchange_n(&report->state, &unset, state, false, __ATOMIC_SEQ_CST,
					__ATOMIC_SEQ_CST)) {
		if (state == TEST_FAILED)
			length = snprintf(report->text, sizeof(report->text), "%s:%d: ",
					  base ? base + 1 : file, line);
		va_start(args, format);
		vsnprintf(report->text + length, sizeof(report->text) - (size_t)length, format,
			  args);
		va_end(args);
	}
	fflush(stdout);
	_exit(state == TEST_FAILED);
}

int child_status(void (*run)(void))
{
	int status = 0;
	pid_t child = fork();

	if (!child) {
		run();
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	return status;
}

void in_child(void (*run)(void))
{
	CHECK_EQ(child_status(run), 0);
}

bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

/* Read a file of a thread. False if there is none, or it has ended. */
static bool read_of_thread(pid_t pid, int thread, const char *name, char *text, size_t size)
{
	char path[100];
	size_t length;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, thread, name);
	f = fopen(path, "r");
	if (!f)
		return false;
	length = fread(text, 1, size - 1, f);
	text[length] = 0;
	fclose(f);
	return length;
}

static bool sleeps_waiting(pid_t pid, int thread)
{
	char text[1000];
	char *name_end;
	long call;

	if (!read_of_thread(pid, thread, "stat", text, sizeof(text)))
		return false;
	name_end = strrchr(text, ')');
	if (!name_end || strncmp(name_end, ") S", 3))
		return false;
	if (!read_of_thread(pid, thread, "syscall", text, sizeof(text)))
		return true;		/* not all kernels tell */
	return sscanf(text, "%ld", &call) == 1 && (call == SYS_ioctl || call == SYS_futex);
}

static int count_asleep(pid_t pid)
{
	struct dirent *e;
	char path[100];
	int count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir)))
		count += atoi(e->d_name) > 0 && sleeps_waiting(pid, atoi(e->d_name));
	if (dir)
		closedir(dir);
	return count;
}

void wait_asleep(pid_t pid, int threads)
{
	struct patience p = patience_begin(PATIENCE_WORK);
	int looks = 0;

	/* Check twice with a pause: they must not merely be waiting for a lock. */
	while (looks < 2) {
		CHECK(!patience_over(&p));
		looks = count_asleep(pid) >= threads ? looks + 1 : 0;
		usleep(20000);
	}
}

void stay_on(int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	CHECK_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
}

bool set_processor(bool on)
{
	return write_file("/sys/devices/system/cpu/cpu1/online", on ? "1" : "0");
}

bool set_swap(bool on)
{
	const char *command = on ?
		"{ modprobe zram && echo 64M >/sys/block/zram0/disksize && mkswap /dev/zram0 && "
		"swapon /dev/zram0; } >/dev/null 2>&1" :
		"{ swapoff /dev/zram0 && rmmod zram; } >/dev/null 2>&1";

	return system(command) == 0;
}

static void start(const struct test *t)
{
	setpgid(0, 0);
	signal(SIGTERM, SIG_DFL);
	errno = 0;
	t->run();
	fflush(stdout);
	_exit(0);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Print a file in /proc of a process, as KTAP comments. */
static void show(int pid, int thread, const char *name)
{
	char path[100], line[300];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, thread, name);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		printf("# %s%s", line, strchr(line, '\n') ? "" : "\n");
	if (f)
		fclose(f);
}

static void show_threads(int pid)
{
	char path[100];
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir)))
		if (atoi(e->d_name) > 0) {
			printf("# thread %s of process %d:\n", e->d_name, pid);
			show(pid, atoi(e->d_name), "stat");
			show(pid, atoi(e->d_name), "syscall");
			show(pid, atoi(e->d_name), "stack");
		}
	if (dir)
		closedir(dir);
}

/* Show where the processes of a hanging test are. */
static void show_group(pid_t group)
{
	struct dirent *e;
	DIR *dir = opendir("/proc");

	while (dir && (e = readdir(dir)))
		if (atoi(e->d_name) > 0 && getpgid(atoi(e->d_name)) == group)
			show_threads(atoi(e->d_name));
	if (dir)
		closedir(dir);
}

/* Kill what a test has left behind, and wait until it has ended. */
static void sweep(pid_t group)
{
	kill(-group, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static pid_t group;		/* of the running test, or 0 */

static bool verdict(int number, const struct test *t, int status, bool late, double seconds)
{
	bool ok = !late && !status && report->state != TEST_FAILED;

	printf("# %.1f s\n", seconds);
	printf("%s %d - %s", ok ? "ok" : "not ok", number, t->name);
	if (report->state == TEST_FAILED)
		printf(" # %s", report->text);
	else if (late)
		printf(" # hung");
	else if (status && WIFSIGNALED(status))
		printf(" # killed by signal %d", WTERMSIG(status));
	else if (status)
		printf(" # exit status %d", WEXITSTATUS(status));
	else if (report->state == TEST_SKIPPED)
		printf(" # SKIP %s", report->text);
	printf("\n");
	fflush(stdout);
	return ok;
}

/* Wait for a child. False if it has not ended within a limit. */
static bool await(pid_t child, int *status, uint64_t limit)
{
	struct patience p = patience_begin(limit);
	bool over = false;

	patience_interrupts(true);
	while (!over && waitpid(child, status, 0) < 0) {
		patience_tick(patience_clock);
		over = patience_over(&p);
	}
	patience_interrupts(false);
	return !over;
}

/* Run a test in a child. True if it passed or was skipped. */
static bool run(int number, const struct test *t)
{
	double begun = now();
	int status = 0;
	pid_t child;
	bool late;

	memset(report, 0, sizeof(*report));
	child = fork();
	if (!child)
		start(t);
	setpgid(child, child);
	group = child;
	late = !await(child, &status, t->limit * (test_short() ? 2 : 1));
	if (late)
		show_group(child);
	sweep(child);
	group = 0;
	return verdict(number, t, status, late, now() - begun);
}

static bool wanted(const struct test *t, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (strstr(t->name, argv[i]))
			return true;
	return argc < 2;
}

static void interrupt(int signal)
{
	(void)signal;
}

/*
 * Timed out: otherwise the processes of the test would remain, and keep the pipe of the caller
 * open.
 */
static void end_all(int signal)
{
	if (group)
		kill(-group, SIGKILL);
	_exit(128 + signal);
}

int main(int argc, char **argv)
{
	struct sigaction late = { .sa_handler = interrupt };
	int count = 0, number = 0, failed = 0;
	struct test *t;

	report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (report == MAP_FAILED || !patience_share())
		return 1;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigaction(SIGALRM, &late, NULL);
	signal(SIGTERM, end_all);
	for (t = first; t; t = t->next)
		count += wanted(t, argc, argv);
	printf("KTAP version 1\n1..%d\n", count);
	fflush(stdout);
	for (t = first; t; t = t->next)
		if (wanted(t, argc, argv))
			failed += !run(++number, t);
	return failed != 0;
}
