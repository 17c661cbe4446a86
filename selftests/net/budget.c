// SPDX-License-Identifier: MIT
/* selftest: cpus=2 */
/*
 * K8: commands in rings whose doorbell was not rung are executed in poll rounds of other ranks, up
 * to one budget at a time for all ranks together (kernel/queue/budget.h); the rest is executed by
 * workers of the ranks, accounted to their processes.
 */
#include "../dev/isolated.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "nodes.h"

#define ENTRIES		200		/* per ring */
#define LONG		16384		/* bytes of the longest copy that is executed at once */
#define BUDGET_ENTRIES	64
#define BUDGET_BYTES	65536
#define IDLE_RANKS	8

static struct nodes n;
static struct rank idle[32], putter, target;

static uint32_t job;		/* 0: default of the process */

static void join(struct rank *r, uint32_t rank, uint32_t nprocs)
{
	struct setup s;

	nodes_setup(&n, &s, rank, nprocs);
	s.join.depth = 256;
	s.join.heap_size = 4 * LONG;
	if (job)
		s.join.job = job;
	nodes_join(&n, r, &s);
}

/* Join ranks 0 .. count - 1 and one more on node 0, and one rank of as many on node 1. */
static void join_all(unsigned int count)
{
	uint32_t nprocs = 2 * (count + 1), i;

	for (i = 0; i < count; i++)
		join(&idle[i], i, nprocs);
	join(&putter, count, nprocs);
	join(&target, count + 1, nprocs);
	CHECK_EQ(rank_do_copy(&putter, heap_ga(&target, 0), heap_ga(&putter, 0), 8), ACP_ST_OK);
}

static void begin(unsigned int count)
{
	nodes_open(&n, 2, 1, false);
	join_all(count);
}

static bool combine;		/* push numbers to be combined in place of copies */

/* Push copies within the heap of a rank, without doorbell. */
static void push(struct rank *r, unsigned int count, uint64_t size, bool in_order)
{
	struct acp_sqe e = { .op = ACP_OP_COPY, .dst = heap_ga(r, 0), .src = heap_ga(r, LONG),
			     .size = size, .seen = rank_completed(r) };

	if (combine) {
		e.op = ACP_OP_REDUCE;
		e.a = ACP_REDUCE(ACP_REDUCE_SUM, ACP_REDUCE_F32);
	}
	while (count--) {
		e.order = in_order ? r->last : 0;
		rank_push(r, &e);
	}
}

static void put_one(void)
{
	CHECK_EQ(rank_do_copy(&putter, heap_ga(&target, 0), heap_ga(&putter, 0), 8), ACP_ST_OK);
}

/* All commands complete although their ranks make no calls. */
static void all_end(unsigned int count)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	unsigned int i;

	for (i = 0; i < count; i++)
		while (rank_completed(&idle[i]) < idle[i].last)
			CHECK(!patience_over(&p));
}

/* Execute one put while all these commands are in the rings. */
static void one_put(uint64_t size, unsigned int most, bool in_order)
{
	struct count rounds, commands, workers;
	long long took, ran;
	unsigned int i;

	begin(IDLE_RANKS);
	/* Read before them: a round of the put that started everything may end late. */
	rounds = nodes_count(&n, 0, "rounds");
	commands = nodes_count(&n, 0, "rounds_commands");
	workers = nodes_count(&n, 0, "worker_wakeups");
	for (i = 0; i < IDLE_RANKS; i++)
		push(&idle[i], ENTRIES, size, in_order);
	put_one();
	all_end(IDLE_RANKS);
	ran = nodes_counter(&n, 0, "rounds") - rounds.before;
	took = nodes_counter(&n, 0, "rounds_commands") - commands.before;
	printf("# %lld commands in %lld rounds\n", took, ran);
	CHECK(took <= ran * most);
	CHECK(nodes_counter(&n, 0, "worker_wakeups") > workers.before);
	for (i = 0; i < IDLE_RANKS; i++)
		CHECK_EQ(idle[i].cq->failed, 0);
}

TEST(K8_short_entries_of_all_ranks_share_one_budget)
{
	one_put(8, BUDGET_ENTRIES, false);
}

TEST(K8_long_entries_of_all_ranks_share_one_budget)
{
	one_put(LONG, BUDGET_BYTES / LONG, false);
}

/* Numbers take longer than copies: they count eight times. */
TEST(K8_combinations_share_one_budget)
{
	combine = true;
	one_put(4096, BUDGET_BYTES / 4096 / 8, false);
}

TEST(K8_entries_in_order_share_one_budget)
{
	one_put(LONG, BUDGET_BYTES / LONG, true);
}

/* Additional queues of a rank share its worker. */
TEST(K8_additional_queues_share_the_budget)
{
	struct rank further[4];
	struct patience p = patience_begin(PATIENCE_SOON);
	unsigned int i;

	begin(1);
	for (i = 0; i < 4; i++) {
		nodes_enter(&n, 0);
		rank_attach(&further[i], &idle[0]);
		nodes_leave(&n);
		/* A command that waits for the network makes rounds poll the queue. */
		rank_copy(&further[i], heap_ga(&target, 8), heap_ga(&idle[0], 0), 8, 0);
		push(&further[i], ENTRIES / 2, LONG, false);
	}
	put_one();
	for (i = 0; i < 4; i++) {
		put_one();
		while (rank_completed(&further[i]) < further[i].last)
			CHECK(!patience_over(&p));
	}
}

/* ---- the owner ---- */

/* A rank leaves while its worker runs. */
TEST(K8_a_rank_leaves_while_its_worker_runs)
{
	unsigned int i, k;

	nodes_open(&n, 2, 1, false);
	for (i = 0; i < 20; i++) {
		job = 1000 + i;
		join_all(4);
		for (k = 0; k < 4; k++)
			push(&idle[k], ENTRIES, LONG, false);
		put_one();
		for (k = 0; k < 4; k++)
			rank_close(&idle[k]);
		rank_close(&putter);
		rank_close(&target);
	}
}

#define GROUP	"/tmp/acp-budget"

static void write_number(const char *path, int number)
{
	char text[20];

	snprintf(text, sizeof(text), "%d", number);
	if (!write_file(path, text))
		FAIL("%s: %s", path, strerror(errno));
}

/* True if the name of a process begins with @begin. */
static bool is_named(int pid, const char *begin)
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

static bool worker_in_group(void)
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

static bool is_frozen(void)
{
	FILE *f = fopen(GROUP "/group/cgroup.events", "r");
	char name[40];
	int value = 0;

	CHECK(f);
	while (fscanf(f, "%39s %d", name, &value) == 2 && strcmp(name, "frozen"))
		value = 0;
	fclose(f);
	return value;
}

/* A rank in a group, stopped with a full ring; its parent reads the mapping. */
static void stopped_child(const volatile int *go)
{
	write_number(GROUP "/group/cgroup.procs", getpid());
	join(&idle[0], 0, 4);
	push(&idle[0], ENTRIES, LONG, false);
	while (!*go)
		raise(SIGSTOP);
	_exit(rank_completed(&idle[0]) == idle[0].last ? 0 : 1);
}

TEST(K8_the_worker_of_a_stopped_process_is_in_its_control_group)
{
	volatile int *go = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct count commands;
	struct patience p;
	int status;
	pid_t child;

	mkdir(GROUP, 0700);
	if (mount("none", GROUP, "cgroup2", 0, NULL))
		SKIP("no cgroup2: %s", strerror(errno));
	CHECK(!mkdir(GROUP "/group", 0700) || errno == EEXIST);
	CHECK(go != MAP_FAILED);
	nodes_open(&n, 2, 1, false);
	job = 1000;
	child = fork();
	if (!child)
		stopped_child(go);
	CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
	CHECK(WIFSTOPPED(status));
	join(&putter, 1, 4);
	join(&target, 2, 4);
	commands = nodes_count(&n, 0, "commands");
	put_one();
	nodes_counted(&commands, ENTRIES + 1);
	p = patience_begin(PATIENCE_SOON);
	while (!worker_in_group())
		CHECK(!patience_over(&p));
	/*
	 * After some idle time the worker has left: a group with a kernel thread could never be
	 * frozen.
	 */
	while (worker_in_group())
		CHECK(!patience_over(&p));
	CHECK(write_file(GROUP "/group/cgroup.freeze", "1"));
	while (!is_frozen())
		CHECK(!patience_over(&p));
	CHECK(write_file(GROUP "/group/cgroup.freeze", "0"));
	*go = 1;
	kill(child, SIGCONT);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	/* The group becomes empty, so that it can be removed. */
	p = patience_begin(PATIENCE_SOON);
	while (rmdir(GROUP "/group"))
		CHECK(errno == EBUSY && !patience_over(&p));
	umount(GROUP);
}

/* ---- turns ---- */

#define ROUNDS	(IDLE_RANKS + 1)	/* the rank that puts has its turn, too */
#define FEW	8			/* but more than the bytes of a budget do for */

/* What else would look at rings, or give other tasks the processor, while this test needs it. */
static const struct {
	const char *path, *during, *after;
} settings[] = {
	{ "/sys/module/acp/parameters/poll_us", "0", "500" },
	{ "/sys/module/acp/parameters/moderation_us", "0", "40" },
	{ "/proc/sys/kernel/sched_rt_runtime_us", "-1", "950000" },
};

#define SETTINGS	(sizeof(settings) / sizeof(settings[0]))

static void pin(int pid)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	CHECK_EQ(sched_setaffinity(pid, sizeof(set), &set), 0);
}

static void urge(int pid)
{
	struct sched_param most_urgent = { .sched_priority = 2 };

	CHECK_EQ(sched_setscheduler(pid, SCHED_FIFO, &most_urgent), 0);
}

static void calm(int pid)
{
	struct sched_param usual = { 0 };

	CHECK_EQ(sched_setscheduler(pid, SCHED_OTHER, &usual), 0);
}

/* Do something to all processes of that name.  How many there are. */
static unsigned int for_all(const char *name, void (*act)(int pid))
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

/* The workers run on this processor, and from now on nothing but this process and softirqs does. */
static void take_processor(void)
{
	struct sched_param urgent = { .sched_priority = 1 };
	char name[20];

	stay_on(0);
	snprintf(name, sizeof(name), "acp/%d\n", getpid());
	/* That of the rank that puts was started if the processor was taken from it once. */
	CHECK(for_all(name, pin) >= IDLE_RANKS);
	CHECK_EQ(sched_setscheduler(0, SCHED_FIFO, &urgent), 0);
}

static void give_processor(void)
{
	calm(0);
}

/* A put for which this process does not sleep. */
static void put_awake(void)
{
	uint64_t ticket = rank_copy(&putter, heap_ga(&target, 0), heap_ga(&putter, 0), 8, 0);
	struct patience p = patience_begin(PATIENCE_SOON);

	while (rank_completed(&putter) < ticket)
		CHECK(!patience_over(&p));
}

/* How many of the entries of an idle rank have been done. */
static uint64_t done(unsigned int i)
{
	return rank_completed(&idle[i]) - (idle[i].last - FEW);
}

static void all_push(unsigned int count)
{
	unsigned int i;

	for (i = 0; i < IDLE_RANKS; i++)
		push(&idle[i], count, LONG, false);
}

/* The workers do the rest, and come to rest. */
static void workers_end(void)
{
	all_end(IDLE_RANKS);
	sleep_ms(2);
}

/* All have workers.  From here on nothing but rounds and doorbells does anything. */
static void begin_alone(void)
{
	begin(IDLE_RANKS);
	all_push(FEW);
	put_one();
	workers_end();
	take_processor();
}

/* The rest is executed, and nothing but rounds and doorbells does anything again. */
static void begin_again(void)
{
	give_processor();
	workers_end();
	take_processor();
}

#define ATTEMPTS	50
#define DISTURBANCES	10		/* more of them are not by chance */

static struct count rounds, commands;

static void count_rounds(void)
{
	rounds = nodes_count(&n, 0, "rounds");
	commands = nodes_count(&n, 0, "rounds_commands");
}

/*
 * Have more rounds executed commands than were meant to?  A frame that is late makes a round, too,
 * for what a ring is being filled with, or for a put before its doorbell.  The attempt counts for
 * nothing then.
 */
static bool disturbed(long long meant)
{
	static unsigned int times;
	long long ran = nodes_counter(&n, 0, "rounds") - rounds.before;

	if (ran <= meant)
		return false;
	printf("# disturbed: %lld rounds executed commands, not %lld\n", ran, meant);
	CHECK(++times <= DISTURBANCES);
	begin_again();
	return true;
}

static long long rounds_commands(void)
{
	return nodes_counter(&n, 0, "rounds_commands") - commands.before;
}

/* All have something, and a round comes. */
static void one_round(void)
{
	do {
		count_rounds();
		all_push(FEW);
		put_awake();
	} while (disturbed(1));
}

/* The rank that a round did something for. */
static unsigned int first_of_round(void)
{
	unsigned int i, first;

	one_round();
	for (first = 0; first < IDLE_RANKS - 1 && !done(first); first++)
		;
	CHECK_EQ(done(first), BUDGET_BYTES / LONG);
	for (i = first + 1; i < IDLE_RANKS; i++)
		CHECK_EQ(done(i), 0);
	CHECK_EQ(rounds_commands(), BUDGET_BYTES / LONG);
	begin_again();
	return first;
}

static void rounds_in_turn(void)
{
	bool was_first[IDLE_RANKS] = { false };
	unsigned int i;

	begin_alone();
	for (i = 0; i < ROUNDS; i++)
		was_first[first_of_round()] = true;
	for (i = 0; i < IDLE_RANKS; i++)
		if (!was_first[i])
			FAIL("in %d rounds, rank %u was never first", ROUNDS, i);
}

static void rounds_with_full_rings(void)
{
	unsigned int i;

	begin_alone();
	do {
		count_rounds();
		all_push(ENTRIES);
		for (i = 0; i < ROUNDS; i++)
			put_awake();
	} while (disturbed(1));
	CHECK_EQ(rounds_commands(), BUDGET_BYTES / LONG);
	give_processor();
	workers_end();
}

static void round_after_doorbell(void)
{
	begin_alone();
	do {
		count_rounds();
		all_push(FEW);
		put_awake();
		CHECK_EQ(ioctl(idle[0].fd, ACP_IOC_DOORBELL), 0);
		CHECK_EQ(rank_completed(&idle[0]), idle[0].last);
		push(&idle[0], 1, LONG, false);
		put_awake();
		CHECK_EQ(rank_completed(&idle[0]), idle[0].last);
	} while (disturbed(2));
	CHECK_EQ(rounds_commands(), BUDGET_BYTES / LONG + 1);
	give_processor();
	workers_end();
}

/*
 * Ring for all entries of a rank; the call takes a new budget at least @least times. Another
 * processor may take some of the entries first, in a round or for the rank's worker: then the
 * attempt counts for nothing.
 */
static void one_doorbell(uint64_t size, bool in_order, long long least)
{
	struct count cut;
	long long most = 0, times;
	unsigned int i;

	for (i = 0; i < ATTEMPTS && most < least; i++) {
		cut = nodes_count(&n, 0, "doorbells_cut");
		push(&idle[0], ENTRIES, size, in_order);
		CHECK_EQ(ioctl(idle[0].fd, ACP_IOC_DOORBELL), 0);
		all_end(1);
		times = nodes_counter(&n, 0, "doorbells_cut") - cut.before;
		most = times > most ? times : most;
	}
	printf("# %lld budgets at most, in %u attempts\n", most, i);
	CHECK(most >= least);
}

static void doorbells(void)
{
	begin(1);
	one_doorbell(8, false, ENTRIES / BUDGET_ENTRIES);
	one_doorbell(8, true, ENTRIES / BUDGET_ENTRIES);
	one_doorbell(LONG, false, ENTRIES * LONG / BUDGET_BYTES - 1);
	one_doorbell(LONG, true, ENTRIES * LONG / BUDGET_BYTES - 1);
}

static void with_settings(void (*run)(void))
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

/* Of ranks with more than a budget each, another one comes first in each round. */
TEST(K8_each_rank_has_its_turn)
{
	with_settings(rounds_in_turn);
}

/* Not a budget in each round, as long as workers have to do what the first one left. */
TEST(K8_full_rings_cost_rounds_one_budget)
{
	with_settings(rounds_with_full_rings);
}

/* But a rank that has rung, and so has nothing left, is one of those that rounds serve. */
TEST(K8_rounds_serve_those_again_that_have_rung)
{
	with_settings(round_after_doorbell);
}

/* A system call for a ring, too, has bottom halves off for one budget at a time. */
TEST(K8_a_doorbell_takes_one_budget_at_a_time)
{
	with_settings(doorbells);
}

/* ---- a bystander ---- */

#define PUTS	200
#define TIMED	20000		/* puts that are timed */
#define CROWD	32
#define FILLERS	1000		/* their job */
#define ANOTHER	65534		/* their user */
#define MOST	3		/* times as long as alone that a put may take */

/* Become another user, who keeps the right to change the namespace. */
static void become_another(void)
{
	CHECK_EQ(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP), 0);
	CHECK_EQ(setresgid(ANOTHER, ANOTHER, ANOTHER), 0);
	CHECK_EQ(setresuid(ANOTHER, ANOTHER, ANOTHER), 0);
}

/* In the rings of 32 ranks there is always something, for which none of them rings. */
static void keep_full(uint64_t size)
{
	unsigned int i;

	become_another();
	for (i = 0; i < CROWD; i++)
		join(&idle[i], i, 2 * (CROWD + 1));
	/* This process is there for its rings: it delays nobody itself. */
	nice(19);
	for (;; usleep(1000))
		for (i = 0; i < CROWD; i++)
			push(&idle[i], ENTRIES - (idle[i].last - rank_completed(&idle[i])), size,
			     false);
}

/* Another rank of their job puts now and then: each time there is a round. */
static void put_often(void)
{
	become_another();
	join(&putter, CROWD, 2 * (CROWD + 1));
	join(&target, CROWD + 1, 2 * (CROWD + 1));
	/* As little else as possible: its time counts for whom it interrupts. */
	for (;; usleep(1000)) {
		rank_copy(&putter, heap_ga(&target, 0), heap_ga(&putter, 0), 8, 0);
		CHECK_EQ(putter.cq->failed, 0);
	}
}

static pid_t children[2];

static void disturb(uint64_t size)
{
	job = FILLERS;
	children[0] = fork();
	if (!children[0])
		put_often();
	children[1] = size ? fork() : 0;
	if (!children[1] && size)
		keep_full(size);
	job = 0;
}

static void leave_alone(void)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		if (!children[i])
			continue;
		kill(children[i], SIGKILL);
		CHECK_EQ(waitpid(children[i], NULL, 0), children[i]);
	}
}

/* As many commands of others as fill all rings complete in time. */
static void others_go_on(void)
{
	long long least = nodes_counter(&n, 0, "commands") + CROWD * ENTRIES;
	struct patience p = patience_begin(PATIENCE_SOON);

	while (nodes_counter(&n, 0, "commands") < least) {
		CHECK(!patience_over(&p));
		sleep_ms(20);
	}
}

static struct rank mine[2];

static void begin_beside(void)
{
	nodes_open(&n, 2, 1, false);
	join(&mine[0], 0, 2);
	join(&mine[1], 1, 2);
}

TEST(K8_a_bystander_of_32_ranks_with_full_rings)
{
	unsigned int i;

	begin_beside();
	disturb(LONG);
	others_go_on();
	for (i = 0; i < PUTS; i++)
		CHECK_EQ(rank_do_copy(&mine[0], heap_ga(&mine[1], 0), heap_ga(&mine[0], 0), 8),
			 ACP_ST_OK);
	others_go_on();
	leave_alone();
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t took[TIMED];

/* Times of puts, in nanoseconds: half of them take at most the first, 99 of 100 the second. */
struct times {
	uint64_t median, p99;
};

static struct times sorted(const char *beside)
{
	struct times t;

	qsort(took, TIMED, sizeof(took[0]), compare);
	t = (struct times){ took[TIMED / 2], took[TIMED / 100 * 99] };
	printf("# %s: 50 %% %.1f us, 99 %% %.1f us, 99.9 %% %.1f us, all %.1f us\n", beside,
	       (double)t.median / 1000, (double)t.p99 / 1000,
	       (double)took[TIMED / 1000 * 999] / 1000, (double)took[TIMED - 1] / 1000);
	return t;
}

static struct times time_puts(const char *beside)
{
	unsigned int i;

	for (i = 0; i < TIMED; i++) {
		uint64_t begun = now_ns(), ticket;

		ticket = rank_copy(&mine[0], heap_ga(&mine[1], 0), heap_ga(&mine[0], 0), 8, 0);
		while (rank_completed(&mine[0]) < ticket)
			;
		took[i] = now_ns() - begun;
	}
	return sorted(beside);
}

/* The ranks of another user begin, and puts are timed: below three times as long as alone. */
static void time_beside(const struct times *alone, uint64_t size, const char *beside)
{
	struct times t;

	disturb(size);
	if (size)
		others_go_on();
	else
		sleep_ms(200);
	t = time_puts(beside);
	leave_alone();
	if (t.median >= MOST * alone->median || t.p99 >= MOST * alone->p99)
		FAIL("%s: median %.1f and p99 %.1f times those alone", beside,
		     (double)t.median / (double)alone->median, (double)t.p99 / (double)alone->p99);
}

/*
 * Times say something only in a machine that counts them in instructions, and is alone: there it
 * takes minutes.
 */
TEST_LONG(K8_times_of_a_bystander, 3 * PATIENCE_LONG_TEST)
{
	struct times alone;

	if (!getenv("ACP_TEST_LONG"))
		SKIP("ACP_TEST_LONG is not set");
	begin_beside();
	time_puts("warm");
	alone = time_puts("alone");
	time_beside(&alone, 0, "beside puts of others");
	time_beside(&alone, 8, "... and 32 rings full of copies of 8 bytes");
	time_beside(&alone, LONG, "... and 32 rings full of copies of 16 KiB");
}
