// SPDX-License-Identifier: MIT
/* selftest: leaks */
/*
 * Begin and end of ranks with libacp, four of them on two nodes: repeated joining and leaving,
 * acp_reset(), acp_abort(), fork(), and mismatched parameters.
 */
#include "../dev/isolated.h"

#include <pthread.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "members.h"

#define RANKS		4
#define PER_NODE	2
#define ENDED		255	/* exit status of acp_abort() and of the ranks it ends */

/* Offsets in starter memory. */
enum { HERE = 0, OWN = 8, COUNTER = 16, FORMER = 64 };

static struct members m;
static int pipes[2], gate[2];	/* between processes of a test */

/* ---- Actions of ranks ---- */

/* Each rank sends its number to its right neighbour. */
static void greet(void)
{
	int me = acp_rank(), procs = acp_procs();

	*member_word(OWN) = 100 + (uint64_t)me;
	CHECK_EQ(member_status(acp_copy(member_at((me + 1) % procs, HERE), member_at(me, OWN), 8,
					ACP_HANDLE_NULL)), 0);
	CHECK_EQ(acp_sync(), 0);
	CHECK_EQ(*member_word(HERE), 100 + (me + procs - 1) % procs);
	CHECK_EQ(acp_sync(), 0);
}

static void check_outside(void)
{
	CHECK_EQ(acp_rank(), -1);
	CHECK_EQ(acp_procs(), -1);
	CHECK_EQ(acp_colors(), -1);
	CHECK_EQ(acp_sync(), -1);
	CHECK_EQ(acp_finalize(), -1);
	CHECK_EQ(acp_reset(0), -1);
	CHECK_EQ(acp_query_starter_ga(0), ACP_GA_NULL);
	CHECK_EQ(acp_register_memory(pipes, sizeof(pipes), 0), ACP_ATKEY_NULL);
	CHECK_EQ(acp_copy(64, 128, 8, ACP_HANDLE_NULL), ACP_HANDLE_NULL);
	CHECK_EQ(acp_add8(64, 128, 8, ACP_HANDLE_NULL), ACP_HANDLE_NULL);
	CHECK_EQ(acp_inquire(4), 0);
	acp_complete(4);
}

static void leave(void)
{
	CHECK_EQ(acp_finalize(), 0);
}

/* ---- Joining and leaving ---- */

static void again_and_again(void)
{
	int i;

	check_outside();
	for (i = 0; i < 10; i++) {
		member_init();
		CHECK_EQ(acp_init(NULL, NULL), -1);
		CHECK_EQ(*member_word(OWN), 0);
		greet();
		leave();
		check_outside();
	}
}

TEST(P6_init_and_finalize_again_and_again)
{
	members_run(RANKS, PER_NODE, again_and_again);
}

static void other_sizes(void)
{
	acp_ga_t there, here;

	setenv("ACP_STARTER_SIZE", "20000", 1);
	member_init();
	CHECK_EQ(acpx_starter_size(), 20000);
	greet();
	leave();
	setenv("ACP_STARTER_SIZE", "1M", 1);
	setenv("ACP_HEAP_SIZE", "2M", 1);
	member_init();
	CHECK_EQ(acpx_starter_size(), 1 << 20);
	CHECK_EQ(acpx_heap_size(), 2 << 20);
	there = acpx_query_heap_ga((acp_rank() + 2) % RANKS) + (2 << 20) - 8;
	here = member_at(acp_rank(), (1 << 20) - 8);
	CHECK_EQ(member_status(acp_copy(there, here, 8, ACP_HANDLE_NULL)), 0);
	greet();
	leave();
}

TEST(P6_other_sizes_the_second_time)
{
	members_run(RANKS, PER_NODE, other_sizes);
}

/* ---- acp_reset() ---- */

/* Return the new number of a rank in a round: reversed, rotated, unchanged, swapped in pairs. */
static int new_number(int me, int procs, int round)
{
	switch (round) {
	case 0:
		return procs - 1 - me;
	case 1:
		return (me + 1) % procs;
	case 2:
		return me;
	default:
		return (me ^ 1) < procs ? me ^ 1 : me;
	}
}

static void reset(void)
{
	int round, next, me;

	member_init();
	for (round = 0; round < 4; round++) {
		me = acp_rank();
		next = new_number(me, RANKS, round);
		*member_word(HERE) = 7;
		CHECK_EQ(acp_reset(next), 0);
		CHECK_EQ(acp_rank(), next);
		CHECK_EQ(*member_word(HERE), 0);
		CHECK_EQ(acp_sync(), 0);
		greet();
	}
	leave();
}

TEST(P6_reset_to_permutations)
{
	members_run(RANKS, PER_NODE, reset);
}

/* The job continues unchanged. */
static void no_permutation(void)
{
	int me;

	member_init();
	me = acp_rank();
	greet();
	CHECK_EQ(acp_reset(me ? me : 1), -1);
	CHECK_EQ(acp_reset(me == RANKS - 1 ? RANKS : me), -1);
	CHECK_EQ(acp_reset(me ? me : -1), -1);
	CHECK_EQ(acp_rank(), me);
	CHECK_EQ(*member_word(OWN), 100 + me);
	greet();
	leave();
}

TEST(P6_reset_refuses_what_is_no_permutation)
{
	members_run(RANKS, PER_NODE, no_permutation);
}

/* Accesses issued before take effect; registrations are invalid afterwards. */
static void reset_in_traffic(void)
{
	static char block[100000];
	acp_atkey_t key;
	acp_ga_t ga;
	int i, me;

	member_init();
	me = acp_rank();
	key = acp_register_memory(block, sizeof(block), 0);
	ga = acp_query_ga(key, block);
	CHECK(ga != ACP_GA_NULL);
	for (i = 0; i < 100; i++) {
		acp_copy(member_at((me + 2) % RANKS, 1000), ga, 9000, ACP_HANDLE_NULL);
		acp_add8(member_at(me, FORMER), member_at(0, COUNTER), 1, ACP_HANDLE_NULL);
	}
	CHECK_EQ(acp_reset(RANKS - 1 - me), 0);
	CHECK_EQ(acp_query_ga(key, block), ACP_GA_NULL);
	CHECK_EQ(acp_unregister_memory(key), -1);
	greet();
	leave();
}

TEST(P6_reset_during_traffic)
{
	members_run(RANKS, PER_NODE, reset_in_traffic);
}

/* ---- acp_abort() ---- */

static void one_aborts(void)
{
	acp_handle_t h;

	member_init();
	if (acp_rank() == RANKS - 1)
		acp_abort("that is enough");
	CHECK_ERRNO(acp_sync(), ECANCELED);
	h = acp_copy(member_at((acp_rank() + 2) % RANKS, HERE), member_at(acp_rank(), OWN), 8,
		     ACP_HANDLE_NULL);
	CHECK_EQ(member_status(h), ACPX_EABORT);
	CHECK_ERRNO(acp_sync(), ECANCELED);
	CHECK_EQ(acp_finalize(), -1);
	check_outside();
}

TEST(P6_abort_is_seen_by_all)
{
	int r;

	members_open(&m, RANKS, PER_NODE);
	members_start_all(&m, one_aborts);
	for (r = 0; r < RANKS - 1; r++)
		CHECK_EQ(members_wait(&m, r), 0);
	CHECK_EQ(members_wait(&m, r), ENDED);
	CHECK(members_said(&m, r, "that is enough"));
}

/* The others are in a barrier, in an endless access, and between accesses. */
static void one_aborts_all(void)
{
	CHECK_EQ(acp_init(NULL, NULL), 0);
	switch (acp_rank()) {
	case 0:
		sleep_ms(1000);
		acp_abort(NULL);
		break;
	case 1:
		acp_sync();
		break;
	default:
		for (;;)
			acp_complete(acp_copy(member_at(0, HERE), member_at(acp_rank(), OWN), 8,
					      ACP_HANDLE_NULL));
	}
	FAIL("went on after the end of the job");
}

TEST(P6_abort_ends_all_by_default)
{
	members_open(&m, RANKS, PER_NODE);
	members_start_all(&m, one_aborts_all);
	members_expect(&m, ENDED);
}

static void one_fails(void)
{
	CHECK_EQ(acp_init(NULL, NULL), 0);
	if (acp_rank() == 1)
		acp_complete(acp_copy(member_at(3, 1 << 20), member_at(1, HERE), 8,
				      ACP_HANDLE_NULL));
	acp_sync();
	FAIL("went on after a failed access");
}

TEST(P6_failed_access_ends_all_by_default)
{
	members_open(&m, RANKS, PER_NODE);
	members_start_all(&m, one_fails);
	members_expect(&m, ENDED);
	CHECK(members_said(&m, 1, "acp_copy failed: reaches beyond the registered memory"));
}

/* Accesses to a rank that leaves fail soon, and permanently. */
static void wait_until_gone(int left)
{
	acp_ga_t mine = member_at(acp_rank(), OWN), former = member_at(acp_rank(), FORMER);
	acp_ga_t there = member_at(left, HERE);
	int status;

	while (!(status = member_status(acp_copy(there, mine, 8, ACP_HANDLE_NULL))))
		sleep_ms(1);
	CHECK(status == ACPX_ERANK || status == ACPX_ESTAG);
	CHECK_EQ(member_status(acp_copy(mine, there, 8, ACP_HANDLE_NULL)), ACPX_ERANK);
	CHECK_EQ(member_status(acp_add8(former, there, 8, ACP_HANDLE_NULL)), ACPX_ERANK);
}

/*
 * A rank leaves without acp_finalize(), by exit() or killed: barriers and accesses to it fail,
 * everything else works.
 */
static void without_farewell(void (*leave_so)(void))
{
	int me, left = 2;

	member_init();
	me = acp_rank();
	greet();
	if (me == left)
		leave_so();
	CHECK_ERRNO(acp_sync(), EPIPE);
	if (me / PER_NODE != left / PER_NODE)
		wait_until_gone(left);
	CHECK_EQ(member_status(acp_add8(member_at(me, FORMER), member_at(me, COUNTER), 1,
					ACP_HANDLE_NULL)), 0);
	CHECK_EQ(acp_finalize(), -1);
	check_outside();
}

static void exit_at_once(void)
{
	exit(0);
}

static void be_killed(void)
{
	raise(SIGKILL);
}

static void one_exits(void)
{
	without_farewell(exit_at_once);
}

static void one_is_killed(void)
{
	without_farewell(be_killed);
}

TEST(P1_exit_without_finalize)
{
	members_run(RANKS, PER_NODE, one_exits);
}

TEST(P1_killed_rank)
{
	int r;

	members_open(&m, RANKS, PER_NODE);
	members_start_all(&m, one_is_killed);
	for (r = 0; r < RANKS; r++)
		CHECK_EQ(members_wait(&m, r), r == 2 ? DIED - SIGKILL : 0);
}

/* ---- Forks ---- */

static void check_child(void)
{
	check_outside();
	CHECK_EQ(acp_init(NULL, NULL), -1);
}

static void wait_child(pid_t child)
{
	int status;

	CHECK(child > 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

/* Children that fork as well; parents and traffic are not affected. */
static void forks(void)
{
	pid_t child;

	member_init();
	greet();
	child = fork();
	if (!child) {
		check_child();
		child = fork();
		if (child)
			wait_child(child);
		check_child();
		exit(0);
	}
	greet();
	wait_child(child);
	greet();
	leave();
}

TEST(P4_child_is_no_rank)
{
	members_run(RANKS, PER_NODE, forks);
}

static void runs_programs(void)
{
	pid_t child;

	member_init();
	CHECK_EQ(system("exit 3"), 3 << 8);
	greet();
	child = vfork();
	if (!child) {
		execlp("true", "true", NULL);
		_exit(1);
	}
	wait_child(child);
	greet();
	leave();
}

TEST(P4_vfork_and_exec)
{
	members_run(RANKS, PER_NODE, runs_programs);
}

/* The parent ends; its child lives until the pipe is closed, and keeps no rank. */
static void leaves_child(void)
{
	char c;

	member_init();
	greet();
	if (!fork()) {
		close(pipes[1]);
		CHECK_EQ(read(pipes[0], &c, 1), 0);
		check_child();
		_exit(0);
	}
	leave();
}

static void meet_and_leave(void)
{
	member_init();
	greet();
	leave();
}

TEST(P4_parent_ends_first)
{
	CHECK(!pipe(pipes));
	members_open(&m, RANKS, PER_NODE);
	members_start_all(&m, leaves_child);
	members_expect(&m, 0);
	members_start_all(&m, meet_and_leave);
	members_expect(&m, 0);
	close(pipes[1]);
}

/* ---- Mismatched parameters ---- */

/* The running job is not affected. */
static void waits_for_the_test(void)
{
	char c;

	member_init();
	greet();
	CHECK_EQ(write(pipes[1], "", 1), 1);
	CHECK_EQ(read(gate[0], &c, 1), 1);
	greet();
	leave();
}

static void init_fails(void)
{
	CHECK_EQ(acp_init(NULL, NULL), -1);
	check_outside();
}

TEST(P7_rank_is_taken)
{
	struct members second;
	char c;
	int r;

	CHECK(!pipe(pipes) && !pipe(gate));
	members_open(&m, RANKS, PER_NODE);
	members_start_all(&m, waits_for_the_test);
	for (r = 0; r < RANKS; r++)
		CHECK_EQ(read(pipes[0], &c, 1), 1);
	second = m;
	members_start(&second, 1, init_fails);
	CHECK_EQ(members_wait(&second, 1), 0);
	CHECK(members_said(&second, 1, "has this rank on this node already"));
	for (r = 0; r < RANKS; r++)
		CHECK_EQ(write(gate[1], "", 1), 1);
	members_expect(&m, 0);
}

/* Start all ranks, those of the last node with another value of a variable. */
static void start_disagreeing(const char *name, const char *value, const char *other)
{
	int r;

	for (r = 0; r < m.count; r++) {
		setenv(name, r < m.count - PER_NODE ? value : other, 1);
		members_start(&m, r, init_fails);
	}
	setenv(name, value, 1);
}

/* Each reports the node that differs, long before the timeout. */
static void all_say_so(struct patience *soon)
{
	int r, last = m.count / PER_NODE - 1;
	char text[100];

	members_expect(&m, 0);
	for (r = 0; r < m.count; r++) {
		snprintf(text, sizeof(text), "the nodes disagree about the job: node %d has another",
			 r / PER_NODE == last ? 0 : last);
		CHECK(members_said(&m, r, text));
	}
	CHECK(!patience_over(soon));
}

/* Node 1 is configured for a fifth rank, which would be there. */
TEST(P7_wrong_number_of_ranks)
{
	struct patience soon;
	int r;

	members_open(&m, RANKS, PER_NODE);
	soon = patience_begin(PATIENCE_SOON);
	for (r = 0; r < RANKS; r++) {
		setenv("ACP_NPROCS", r < PER_NODE ? "4" : "5", 1);
		setenv("ACP_PLACEMENT", r < PER_NODE ? "block" : "0+2@0,2+3@1", 1);
		members_start(&m, r, init_fails);
	}
	all_say_so(&soon);
}

/* Then with correct parameters, immediately: nothing remains of the first attempt. */
TEST(P7_disagreement_is_mended)
{
	struct patience soon;
	int i;

	members_open(&m, RANKS, PER_NODE);
	for (i = 0; i < 3; i++) {
		soon = patience_begin(PATIENCE_SOON);
		start_disagreeing("ACP_INTEGRITY", "udp", i == 1 ? "tag" : "crc32c");
		all_say_so(&soon);
		members_start_all(&m, meet_and_leave);
		members_expect(&m, 0);
	}
}

/* All ranks have a key. */
static void give_key(void)
{
	char path[] = "/tmp/key.XXXXXX";
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, "0123456789abcdef0123456789abcdef\n", 33), 33);
	close(fd);
	setenv("ACP_KEYFILE", path, 1);
}

/* Neither can read the frames of the other, and each reports it. */
TEST(P7_one_node_encrypts)
{
	struct patience soon;

	give_key();
	members_open(&m, RANKS, PER_NODE);
	soon = patience_begin(PATIENCE_SOON);
	start_disagreeing("ACP_PRIVACY", "none", "aead");
	all_say_so(&soon);
	soon = patience_begin(PATIENCE_SOON);
	start_disagreeing("ACP_PRIVACY", "aead", "none");
	all_say_so(&soon);
	setenv("ACP_PRIVACY", "aead", 1);
	members_start_all(&m, meet_and_leave);
	members_expect(&m, 0);
	unlink(getenv("ACP_KEYFILE"));
}

/* Node 1 never communicates with node 2, and hears of the mismatch from node 0. */
TEST(P7_disagreement_is_told_to_all)
{
	struct patience soon;

	members_open(&m, RANKS + PER_NODE, PER_NODE);
	soon = patience_begin(PATIENCE_SOON);
	start_disagreeing("ACP_PLACEMENT", "block", "0+1@0,1+3@1,4+2@2");
	all_say_so(&soon);
}

/* Two ranks of a node disagree: the second one reports it. */
TEST(P7_wrong_number_of_ranks_on_the_same_node)
{
	setenv("ACP_INIT_TIMEOUT", "6000", 1);
	members_open(&m, RANKS, PER_NODE);
	members_start(&m, 0, init_fails);
	/* It has joined, however long that took, and waits for others: its placement counts. */
	wait_asleep(m.pid[0], 1);
	sleep_ms(500);
	setenv("ACP_NPROCS", "5", 1);
	setenv("ACP_PLACEMENT", "0+2@0,2+3@1", 1);
	members_start(&m, 1, init_fails);
	CHECK_EQ(members_wait(&m, 1), 0);
	CHECK(members_said(&m, 1, "the ranks of job 1 on this node disagree"));
	CHECK_EQ(members_wait(&m, 0), 0);
}

/* ---- Threads and signals ---- */

#define THREADS		8
#define ADDS		300

/* Check each command, so that the first one that failed is reported. */
static void all_ok(const acp_handle_t *handles, int from, int to)
{
	int i;

	for (i = from; i <= to; i++)
		CHECK_EQ(member_status(handles[i]), 0);
}

static void *add(void *arg)
{
	size_t former = FORMER + 8 * (size_t)(uintptr_t)arg;
	acp_handle_t handles[ADDS];
	int i, checked = 0;

	for (i = 0; i < ADDS; i++) {
		handles[i] = acp_add8(member_at(acp_rank(), former),
				      member_at((acp_rank() + i) % RANKS, COUNTER), 1,
				      i % 5 || !i ? (acp_handle_t)ACP_HANDLE_NULL : handles[i - 1]);
		if (i % 16 == 0 || i + 1 == ADDS) {
			all_ok(handles, checked, i);
			CHECK_EQ(acp_inquire(handles[i]), 0);
			checked = i + 1;
		}
	}
	return NULL;
}

static void storm(void)
{
	pthread_t thread[THREADS];
	uint64_t sum = 0;
	uintptr_t i;

	for (i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, add, (void *)i));
	for (i = 0; i < THREADS; i++)
		CHECK(!pthread_join(thread[i], NULL));
	CHECK_EQ(acp_sync() ? errno : 0, 0);
	for (i = 0; i < RANKS; i++) {
		CHECK_EQ(member_status(acp_copy(member_at(acp_rank(), HERE),
						member_at((int)i, COUNTER), 8,
						ACP_HANDLE_NULL)), 0);
		sum += *member_word(HERE);
	}
	CHECK_EQ(sum, RANKS * THREADS * ADDS);
	CHECK_EQ(acp_sync(), 0);
}

static void threads(void)
{
	member_init();
	storm();
	leave();
}

TEST(P8_threads)
{
	members_run(RANKS, PER_NODE, threads);
}

static void ignore(int number)
{
	(void)number;
}

/* No call may end early or fail because of signals. */
static void signals(void)
{
	const struct sigaction action = { .sa_handler = ignore };
	/* A slow kernel would do little but handle signals. */
	const long us = test_short() ? 50000 : 2000;
	const struct itimerval often = { { 0, us }, { 0, us } }, never = { 0 };

	member_init();
	CHECK(!sigaction(SIGALRM, &action, NULL));
	CHECK(!setitimer(ITIMER_REAL, &often, NULL));
	if (!acp_rank())
		sleep_ms(300);
	greet();
	storm();
	CHECK(!setitimer(ITIMER_REAL, &never, NULL));
	leave();
}

TEST(P8_signals_in_every_wait)
{
	members_run(RANKS, PER_NODE, signals);
}

#define STORM_MS	1000

static void check_took(uint64_t begin, struct patience *soon)
{
	CHECK(now_ns() - begin >= STORM_MS * MS);
	CHECK(!patience_over(soon));
}

/* A storm of signals: calls with a time-out end at that time. */
static void storm_of(int flags)
{
	const struct sigaction action = { .sa_handler = ignore, .sa_flags = flags };
	const long us = test_short() ? 50000 : 1000;
	const struct itimerval often = { { 0, us }, { 0, us } };
	struct patience soon;
	uint64_t begin;

	CHECK(!sigaction(SIGALRM, &action, NULL));
	CHECK(!setitimer(ITIMER_REAL, &often, NULL));
	begin = now_ns();
	soon = patience_begin(PATIENCE_SOON);
	CHECK_EQ(acp_init(NULL, NULL), -1);
	check_took(begin, &soon);
	setenv("ACP_NPROCS", "1", 1);
	setenv("ACP_NODES", m.nodes.address[0], 1);
	member_init();
	begin = now_ns();
	soon = patience_begin(PATIENCE_SOON);
	CHECK_EQ(acpx_wait_until(member_word(HERE), 8, ACPX_CMP_EQ, 1,
				 STORM_MS * 1000000ULL), -ETIMEDOUT);
	check_took(begin, &soon);
	CHECK_EQ(acp_finalize(), 0);
}

static void storm_restarts(void)
{
	storm_of(SA_RESTART);
}

static void storm_interrupts(void)
{
	storm_of(0);
}

/* One rank of several: the others do not come. */
static void run_alone(void (*body)(void))
{
	members_open(&m, RANKS, PER_NODE);
	setenv("ACP_INIT_TIMEOUT", "1000", 1);
	members_start(&m, 0, body);
	CHECK_EQ(members_wait(&m, 0), 0);
}

TEST(P8_time_outs_in_a_storm_of_signals)
{
	run_alone(storm_interrupts);
}

TEST(P8_time_outs_in_a_storm_of_signals_that_restart)
{
	run_alone(storm_restarts);
}
