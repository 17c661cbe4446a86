// SPDX-License-Identifier: MIT
/* selftest: cpus=2 */
/*
 * K8: commands in rings whose doorbell was not rung are executed in poll rounds of other ranks, up
 * to one budget at a time for all ranks together (kernel/queue/budget.h); the rest is executed by
 * workers of the ranks, accounted to their processes.
 */
#include "../dev/isolated.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "budget_play.h"
#include "workers.h"

#define BUDGET_ENTRIES	64
#define BUDGET_BYTES	65536
#define IDLE_RANKS	8

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

	group_open();
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
	group_close();
}

/* ---- turns ---- */

#define ROUNDS	(IDLE_RANKS + 1)	/* the rank that puts has its turn, too */
#define FEW	8			/* but more than the bytes of a budget do for */

/* Wait for a command without sleeping. */
static void await_awake(const struct rank *r, uint64_t ticket)
{
	struct patience p = patience_begin(PATIENCE_SOON);

	while (rank_completed(r) < ticket)
		CHECK(!patience_over(&p));
}

static void put_awake(void)
{
	await_awake(&putter, rank_copy(&putter, heap_ga(&target, 0), heap_ga(&putter, 0), 8, 0));
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
	take_processor(IDLE_RANKS);
}

/* The rest is executed, and nothing but rounds and doorbells does anything again. */
static void begin_again(void)
{
	give_processor();
	workers_end();
	take_processor(IDLE_RANKS);
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

/* ---- several jobs ---- */

#define JOBS	4

/*
 * Of each job: a rank with a full ring, one that puts, and its target. That of the bystander is not
 * full: its frame comes after that of a job which uses up the budget, and before others.
 */
static struct {
	struct rank full, putter, target;
	uint64_t put;
} jobs[JOBS];

#define BYSTANDER	1

static void join_jobs(void)
{
	unsigned int i;

	for (i = 0; i < JOBS; i++) {
		job = 1000 + i;
		join(&jobs[i].full, 0, 4);
		join(&jobs[i].putter, 1, 4);
		join(&jobs[i].target, 2, 4);
	}
}

static void jobs_push(void)
{
	unsigned int i;

	for (i = 0; i < JOBS; i++)
		if (i != BYSTANDER)
			push(&jobs[i].full, FEW, LONG, false);
}

static void jobs_put(void)
{
	unsigned int i;

	for (i = 0; i < JOBS; i++)
		jobs[i].put = rank_copy(&jobs[i].putter, heap_ga(&jobs[i].target, 0),
					heap_ga(&jobs[i].putter, 0), 8, 0);
}

static void jobs_end(void)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	unsigned int i;

	for (i = 0; i < JOBS; i++)
		while (rank_completed(&jobs[i].putter) < jobs[i].put ||
		       rank_completed(&jobs[i].full) < jobs[i].full.last)
			CHECK(!patience_over(&p));
	sleep_ms(2);
}

/* How many of the entries in full rings have been done. */
static uint64_t jobs_done(void)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < JOBS; i++)
		if (i != BYSTANDER)
			sum += rank_completed(&jobs[i].full) + FEW - jobs[i].full.last;
	return sum;
}

/* The acknowledgements of all puts come at once. Returns how many entries rounds have done. */
static uint64_t jobs_answered(void)
{
	struct rank *r = &jobs[BYSTANDER].putter;
	uint64_t behind;
	unsigned int i;

	jobs_push();
	jobs_put();
	/* It has to wait, and nothing but the round of its job starts it. */
	behind = rank_copy(r, heap_ga(r, 64), heap_ga(r, 0), 8, jobs[BYSTANDER].put);
	for (i = 0; i < JOBS; i++)
		await_awake(&jobs[i].putter, jobs[i].put);
	await_awake(r, behind);
	return jobs_done();
}

static void jobs_in_one_softirq(void)
{
	unsigned int attempts = 0;
	uint64_t rounds_did;

	nodes_open(&n, 2, 1, false);
	join_jobs();
	jobs_put();
	jobs_push();
	jobs_put();
	jobs_end();
	nodes_impair(&n, 1, "delay 1ms slot 50ms 50ms");
	/* On a machine that is slow at the moment, some of them come in the next slot. */
	do {
		CHECK(++attempts <= ATTEMPTS);
		take_processor(JOBS - 1);
		rounds_did = jobs_answered();
		give_processor();
		printf("# rounds have done %llu entries\n", (unsigned long long)rounds_did);
		jobs_end();
	} while (rounds_did != BUDGET_BYTES / LONG);
}

/* One budget for the rounds of all jobs whose frames come at once; each may start a short one. */
TEST(K8_jobs_share_one_budget)
{
	with_settings(jobs_in_one_softirq);
}
