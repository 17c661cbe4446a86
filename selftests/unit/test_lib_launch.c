// SPDX-License-Identifier: MIT
/*
 * Processes that are started by a launcher with PMIx, or belong to one of several programs. The
 * launcher ("engine") and libpmix are simulated here.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "boot/boot.h"
#include "core/internal.h"
#include "core/job.h"
#include "core/parameters.h"
#include "last_error.h"
#include "test.h"
#include "test_lib_engine.h"

#define RANKS	6

static unsigned int failures;

/* Replaces the function of process.c. */
uint64_t libacp_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void libacp_sleep(uint64_t ns)
{
	const struct timespec pause = { 0, (long)ns };

	nanosleep(&pause, NULL);
}

/* Only the variable is set that indicates a launcher. It has three nodes, the middle one idle. */
static void start_engine(uint32_t rank)
{
	static const char *const variables[] = {
		"ACP_RANK", "ACP_NPROCS", "ACP_NODES", "ACP_PLACEMENT", "ACP_JOB", "ACP_KEYFILE",
		"ACP_MULTIRUN", "ACP_PORTFILE", "ACP_OFFSETRANK", "ACP_INIT_TIMEOUT",
		"SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE",
	};
	size_t i;

	for (i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
	setenv("PMIX_NAMESPACE", NSPACE, 1);
	libacp_pmix_leave();
	free(engine.plan);
	memset(&engine, 0, sizeof(engine));
	engine.rank = rank;
	engine.size = RANKS;
	engine.nodes = "10.7.0.1,10.7.0.5,10.7.0.2";
	engine.peers[0] = "024";
	engine.peers[1] = "";
	engine.peers[2] = "135";
	errors = 0;
	last_error[0] = '\0';
}

/* True if rejected with one line that contains the word, without leaks. */
static bool refused(const char *word)
{
	struct libacp_boot boot;
	int result = libacp_boot_load(&boot, NULL, NULL);

	libacp_boot_free(&boot);
	libacp_pmix_leave();
	return result == -1 && errors == 1 && strstr(last_error, word) && engine.inits == 0;
}

static bool has_address(const struct libacp_boot *boot, uint32_t node, const char *text)
{
	char *found = libacp_node_text(boot, node);
	bool same = found && strcmp(found, text) == 0;

	free(found);
	return same;
}

/* ---- Started by an engine ---- */

TEST(engine__first_rank_finds_all_and_tells_the_others)
{
	struct libacp_boot first, other;
	char *plan;

	start_engine(0);
	CHECK(libacp_boot_load(&first, NULL, NULL) == 0 && engine.inits == 1);
	CHECK(first.rank == 0 && first.nprocs == RANKS && first.engine);
	CHECK(first.nodes == 2 && first.colors == 1 && first.rank_run_count == 1);
	CHECK(has_address(&first, 0, "10.7.0.1") && has_address(&first, 1, "10.7.0.2"));
	CHECK(libacp_boot_node_of(&first, 4) == 0 && libacp_boot_node_of(&first, 5) == 1);
	plan = strdup(engine.plan);

	start_engine(5);
	engine.nodes = "nobody.invalid";	/* not visible unless it is queried */
	engine.plan = plan;
	CHECK(libacp_boot_load(&other, NULL, NULL) == 0 && errors == 0);
	CHECK(other.rank == 5 && other.nprocs == RANKS && other.nodes == 2);
	CHECK(has_address(&other, 1, "10.7.0.2") && libacp_boot_node_of(&other, 3) == 1);
	CHECK(other.job == first.job && memcmp(other.key, first.key, 16) == 0);
	libacp_boot_free(&first);
	libacp_boot_free(&other);
	CHECK(engine.inits == 1);
	libacp_pmix_leave();
	CHECK(engine.inits == 0);
}

/* A process that disconnected and connected again would disturb a fence in which others wait. */
TEST(engine__is_met_once_by_a_process_that_tries_again)
{
	struct libacp_boot boot;
	int i;

	start_engine(0);
	for (i = 0; i < 3; i++) {
		CHECK(libacp_boot_load(&boot, NULL, NULL) == 0 && boot.rank == 0);
		CHECK(engine.inits == 1 && engine.fences == (unsigned int)i + 1);
		libacp_boot_free(&boot);
		CHECK(engine.inits == 1);
	}
}

/* A job without a launcher: what was agreed on with one is forgotten. */
static void forget_plan(void)
{
	struct libacp_boot boot;

	setenv("ACP_RANK", "0", 1);
	CHECK(libacp_boot_load(&boot, NULL, NULL) == 0 && !boot.engine && boot.nprocs == 1);
	libacp_boot_free(&boot);
	unsetenv("ACP_RANK");
}

/* The second job of a process has the plan of the first, whatever the launcher says now. */
static void check_plan_stays(uint32_t rank)
{
	struct libacp_boot one, two;
	char *plan = engine.plan ? strdup(engine.plan) : NULL;

	start_engine(rank);
	engine.plan = plan;
	CHECK(libacp_boot_load(&one, NULL, NULL) == 0 && engine.fences == 1);
	libacp_boot_agreed();
	libacp_pmix_leave();
	engine.nodes = "nobody.invalid";
	engine.silent = true;
	CHECK(libacp_boot_load(&two, NULL, NULL) == 0 && errors == 0);
	CHECK(engine.inits == 1 && engine.fences == 1 && two.engine && two.rank == rank);
	CHECK(two.job == one.job && memcmp(two.key, one.key, 16) == 0 && two.nprocs == RANKS);
	CHECK(has_address(&two, 1, "10.7.0.2") && libacp_boot_node_of(&two, 3) == 1);
	libacp_boot_free(&one);
	libacp_boot_free(&two);
	forget_plan();
}

/* Processes that disconnect and connect again cannot rely on a fence of the launcher. */
TEST(engine__is_not_asked_for_the_plan_of_a_second_job)
{
	check_plan_stays(0);
	check_plan_stays(5);
}

/* Return how often a process that calls the function and ends by exit() has disconnected. */
static int left_by(void (*live)(struct libacp_boot *boot))
{
	struct libacp_boot boot;
	int status;
	pid_t pid;

	start_engine(0);
	*finalized = 0;
	pid = fork();
	if (pid == 0) {
		live(&boot);
		exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return *finalized;
}

static void live_in_the_midst(struct libacp_boot *boot)
{
	if (libacp_boot_load(boot, NULL, NULL) != 0)
		_exit(1);
}

static void live_and_finalize(struct libacp_boot *boot)
{
	live_in_the_midst(boot);
	libacp_boot_free(boot);
}

/* Its child is no rank: it neither disconnects nor can it begin a job. */
static void live_with_a_child(struct libacp_boot *boot)
{
	int status;
	pid_t pid;

	live_and_finalize(boot);
	pid = fork();
	if (pid == 0) {
		if (libacp_boot_load(boot, NULL, NULL) != -1 || !strstr(last_error, "child"))
			_exit(2);
		exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status != 0 || *finalized != 0)
		_exit(3);
}

TEST(engine__is_left_when_the_process_ends)
{
	finalized = mmap(NULL, sizeof(*finalized), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(finalized != MAP_FAILED);
	CHECK_EQ(left_by(live_and_finalize), 1);
	CHECK_EQ(left_by(live_in_the_midst), 0);
	CHECK_EQ(left_by(live_with_a_child), 1);
}

TEST(engine__each_job_has_a_key_and_number_of_its_own)
{
	static const uint8_t none[16];
	struct libacp_boot one, two;

	start_engine(0);
	CHECK(libacp_boot_load(&one, NULL, NULL) == 0);
	CHECK(libacp_boot_load(&two, NULL, NULL) == 0);
	CHECK(memcmp(one.key, none, 16) != 0 && memcmp(one.key, two.key, 16) != 0);
	CHECK(one.job != two.job);
	libacp_boot_free(&one);
	CHECK(memcmp(one.key, none, 16) == 0);
	libacp_boot_free(&two);
}

TEST(engine__settings_override_it)
{
	struct libacp_boot boot;

	start_engine(0);
	setenv("ACP_NODES", "10.9.%,10.8.0.%", 1);	/* names that do not resolve */
	CHECK(refused("ACP_NODES"));

	start_engine(0);
	engine.nodes = "1,7,2";
	setenv("ACP_NODES", "10.9.0.%,10.8.0.%", 1);
	setenv("ACP_JOB", "77", 1);
	CHECK(libacp_boot_load(&boot, NULL, NULL) == 0 && errors == 0);
	CHECK(boot.colors == 2 && has_address(&boot, 1, "10.9.0.2,10.8.0.2") && boot.job == 77);
	libacp_boot_free(&boot);

	start_engine(0);
	setenv("ACP_NODES", "fd07::4;fd07::9", 1);
	setenv("ACP_PLACEMENT", "block", 1);
	CHECK(libacp_boot_load(&boot, NULL, NULL) == 0);
	CHECK(has_address(&boot, 1, "fd07::9") && libacp_boot_node_of(&boot, 1) == 0);
	libacp_boot_free(&boot);

	start_engine(3);
	setenv("ACP_RANK", "1", 1);
	setenv("ACP_NPROCS", "2", 1);
	CHECK(libacp_boot_load(&boot, NULL, NULL) == 0 && engine.fences == 0);
	CHECK(boot.rank == 1 && boot.nprocs == 2 && !boot.engine);
	libacp_boot_free(&boot);

	start_engine(3);
	setenv("ACP_NPROCS", "4", 1);
	CHECK(refused("ACP_NPROCS"));
}

/* True if a process that the launcher has started alone, or that says so itself, is a rank. */
static bool is_rank_0_of_1(const char *variable, const char *size, const char *rank)
{
	struct libacp_boot boot;
	bool good;

	start_engine(0);
	unsetenv("PMIX_NAMESPACE");
	if (rank)
		setenv("ACP_RANK", rank, 1);
	setenv(variable, size, 1);
	good = libacp_boot_load(&boot, NULL, NULL) == 0 && boot.rank == 0 && boot.nprocs == 1 &&
	       errors == 0;
	libacp_boot_free(&boot);
	unsetenv(variable);
	return good;
}

/* A launcher without PMIx; all of its processes were rank 0 of 1. */
TEST(engine__that_is_not_known_does_not_start_many_ranks_0)
{
	static const char *const known[][2] = {
		{ "SLURM_STEP_NUM_TASKS", "srun --mpi=pmix" },
		{ "OMPI_COMM_WORLD_SIZE", "acprun" }, { "MV2_COMM_WORLD_SIZE", "acprun" },
		{ "PMI_SIZE", "acprun" },
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		start_engine(0);
		unsetenv("PMIX_NAMESPACE");
		setenv(known[i][0], "4", 1);
		CHECK(refused(known[i][1]) && strstr(last_error, known[i][0]));
		setenv("ACP_NPROCS", "4", 1);
		errors = 0;
		CHECK(refused(known[i][1]));
		unsetenv(known[i][0]);
		CHECK(is_rank_0_of_1(known[i][0], "4", "0"));
		CHECK(is_rank_0_of_1(known[i][0], "1", NULL));
	}
}

TEST(engine__idle_nodes_are_left_out_wherever_they_are)
{
	struct libacp_boot boot;

	start_engine(0);
	engine.peers[0] = "";
	engine.peers[1] = "135";
	engine.peers[2] = "024";
	CHECK(libacp_boot_load(&boot, NULL, NULL) == 0 && errors == 0 && boot.nodes == 2);
	CHECK(has_address(&boot, 0, "10.7.0.5") && has_address(&boot, 1, "10.7.0.2"));
	CHECK(libacp_boot_node_of(&boot, 1) == 0 && libacp_boot_node_of(&boot, 0) == 1);
	libacp_boot_free(&boot);

	start_engine(0);
	engine.peers[0] = "";
	engine.peers[1] = "";
	engine.peers[2] = "012345";
	CHECK(libacp_boot_load(&boot, NULL, NULL) == 0 && errors == 0 && boot.nodes == 1);
	libacp_boot_free(&boot);

	start_engine(0);
	engine.peers[0] = "";
	CHECK(refused("PMIx"));
}

TEST(engine__one_node_needs_no_name)
{
	struct libacp_boot boot;

	start_engine(0);
	engine.nodes = "nobody.invalid";
	engine.peers[0] = "012345";
	CHECK(libacp_boot_load(&boot, NULL, NULL) == 0 && errors == 0);
	CHECK(has_address(&boot, 0, "127.0.0.1"));
	libacp_boot_free(&boot);
}

TEST(engine__maps_that_make_no_sense_are_refused)
{
	static const char *const wrong[][2] = {
		{ "024", "13" }, { "024", "1350" }, { "024", "139" }, { "", "" },
	};
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		start_engine(0);
		engine.peers[0] = wrong[i][0];
		engine.peers[2] = wrong[i][1];
		CHECK(refused("PMIx"));
		/* no other rank waits */
		CHECK(engine.fences == 1 && strcmp(engine.plan, "") == 0);
	}
	start_engine(RANKS);
	CHECK(refused("PMIx"));
	start_engine(0);
	engine.size = 0;
	CHECK(refused("PMIx"));
}

TEST(engine__loopback_of_another_node_is_refused)
{
	start_engine(0);
	engine.nodes = "10.7.0.1,10.7.0.5,127.0.1.1";
	CHECK(refused("loopback"));
}

TEST(engine__who_waits_for_others_does_not_wait_for_ever)
{
	start_engine(2);
	engine.silent = true;
	setenv("ACP_INIT_TIMEOUT", "30", 1);
	CHECK(refused("ACP_INIT_TIMEOUT"));
}

/* A truncated or changed plan is rejected, without further damage. */
TEST(engine__plans_that_are_cut_or_changed_are_refused)
{
	struct libacp_boot boot;
	size_t length, i;
	char *plan;

	start_engine(0);
	CHECK(libacp_boot_load(&boot, NULL, NULL) == 0);
	libacp_boot_free(&boot);
	plan = strdup(engine.plan);
	length = strlen(plan);
	for (i = 0; i < length; i++) {
		start_engine(1);
		engine.plan = strndup(plan, i);
		CHECK(refused("rank 0"));
		start_engine(1);
		engine.plan = strdup(plan);
		engine.plan[i] = '!';
		CHECK(libacp_boot_load(&boot, NULL, NULL) == -1 && errors == 1);
		libacp_boot_free(&boot);
	}
	free(plan);
}

TEST(plans__the_key_does_not_stay_in_the_text)
{
	char text[] = "acp-plan-1 0 1 1 7 00112233445566778899aabbccddeeff\n127.0.0.1\nblock\n";
	struct libacp_plan plan;
	size_t i;

	CHECK(libacp_plan_parse(&plan, text) && plan.keyed && plan.key[15] == 0xff);
	for (i = 0; i < sizeof(text); i++)
		CHECK_EQ(text[i], 0);
	libacp_plan_free(&plan);
	strcpy(text, "acp-plan-1 0 1 1 7 00112233445566778899aabbccddeeff\n127.0.0.1\n");
	CHECK(!libacp_plan_parse(&plan, text));
	CHECK(text[0] == 0 && text[20] == 0);
}

static void count_failure(void)
{
	failures++;
}

static void count_done(pmix_status_t status, pmix_info_t *results, size_t count,
		       pmix_op_cbfunc_t done, void *thisdata, void *data)
{
	(void)status;
	(void)results;
	(void)count;
	(void)done;
	(void)thisdata;
	++*(unsigned int *)data;
}

TEST(engine__failures_are_heard_of_while_somebody_listens)
{
	struct libacp_boot boot;
	unsigned int done = 0;

	start_engine(0);
	failures = 0;
	CHECK(libacp_boot_load(&boot, NULL, NULL) == 0);
	libacp_pmix_watch(count_failure, libacp_end_of(PATIENCE_SOON));
	CHECK(engine.handlers == 1);
	engine.handler(5, PMIX_ERR_PROC_ABORTED, NULL, NULL, 0, NULL, 0, count_done, &done);
	CHECK(failures == 1 && done == 1);
	libacp_pmix_watch(NULL, 0);
	CHECK(engine.handlers == 0);
	engine.handler(5, PMIX_ERR_PROC_ABORTED, NULL, NULL, 0, NULL, 0, count_done, &done);
	CHECK(failures == 1 && done == 2);
	libacp_pmix_abort("over");
	CHECK(engine.aborts == 1);
	libacp_boot_free(&boot);
}

/* ---- Several programs ---- */

static char directory[40], port[64];

/* Create a new directory for the files of a test. */
static bool make_directory(void)
{
	strcpy(directory, "/tmp/test_lib_launch.XXXXXX");
	if (!mkdtemp(directory))
		return false;
	snprintf(port, sizeof(port), "%s/port", directory);
	return true;
}

static void be_part(uint32_t first, const char *nprocs, const char *nodes)
{
	char number[12];

	start_engine(0);
	unsetenv("PMIX_NAMESPACE");
	snprintf(number, sizeof(number), "%u", first);
	setenv("ACP_RANK", "0", 1);
	setenv("ACP_NPROCS", nprocs, 1);
	setenv("ACP_NODES", nodes, 1);
	setenv("ACP_MULTIRUN", "5", 1);
	setenv("ACP_OFFSETRANK", number, 1);
	setenv("ACP_PORTFILE", port, 1);
	setenv("ACP_INIT_TIMEOUT", "20000", 1);
}

/* Ranks 2, 3 and 4 on two nodes; the first of these is the last node of the other program. */
static int second_program(int end)
{
	struct libacp_boot boot;
	int status = 1;
	char byte;

	be_part(2, "3", "10.7.0.2 10.7.0.3");
	usleep(50000);
	if (libacp_boot_load(&boot, NULL, NULL) == 0 && boot.rank == 2 && boot.nprocs == 5 &&
	    boot.nodes == 3 && has_address(&boot, 2, "10.7.0.3") &&
	    libacp_boot_node_of(&boot, 3) == 1 && libacp_boot_node_of(&boot, 4) == 2)
		status = boot.key[0];
	if (read(end, &byte, 1) != 1)		/* the real function is a barrier here */
		status = 1;
	libacp_boot_free(&boot);
	return status;
}

TEST(parts__programs_put_their_nodes_together)
{
	struct libacp_boot boot;
	struct stat st;
	char name[80];
	int status, ends[2];
	pid_t pid;

	CHECK(make_directory() && pipe(ends) == 0);
	pid = fork();
	if (pid == 0)
		_exit(second_program(ends[0]));
	be_part(0, "2", "10.7.0.1;10.7.0.2");
	CHECK(libacp_boot_load(&boot, NULL, NULL) == 0 && errors == 0);
	CHECK(boot.rank == 0 && boot.nprocs == 5 && boot.nodes == 3);
	CHECK(libacp_boot_node_of(&boot, 1) == 1 && libacp_boot_node_of(&boot, 2) == 1);
	snprintf(name, sizeof(name), "%s.0", port);
	CHECK(stat(name, &st) == 0 && (st.st_mode & 0777) == 0600);
	CHECK(write(ends[1], "", 1) == 1 && close(ends[0]) == 0 && close(ends[1]) == 0);
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), boot.key[0]);
	CHECK(boot.job > 1);			/* other jobs here have another number */
	libacp_boot_free(&boot);
	CHECK(rmdir(directory) == 0);		/* it is empty */
}

TEST(parts__who_does_not_fit_is_refused)
{
	char name[80];
	FILE *file;

	CHECK(make_directory());
	be_part(3, "3", "10.7.0.1");
	CHECK(refused("ACP_MULTIRUN"));
	be_part(0, "2", "10.7.0.1");
	unsetenv("ACP_PORTFILE");
	CHECK(refused("ACP_PORTFILE"));
	be_part(0, "2", "10.7.0.1");
	setenv("ACP_INIT_TIMEOUT", "50", 1);
	CHECK(refused("rank 2"));

	/* Files with wrong permissions or contents, or of a previous run. */
	snprintf(name, sizeof(name), "%s.2", port);
	file = fopen(name, "w");
	fputs("acp-plan-1 2 3 6 1 -\n10.7.0.1\nblock\n", file);
	fclose(file);
	be_part(0, "2", "10.7.0.1");
	chmod(name, 0644);
	CHECK(refused("open to others"));
	be_part(0, "2", "10.7.0.1");
	chmod(name, 0600);
	CHECK(refused("ACP_MULTIRUN"));
	be_part(2, "3", "10.7.0.1");
	CHECK(refused("former run"));
	CHECK(unlink(name) == 0 && rmdir(directory) == 0);
}

TEST(parts__loopback_is_for_one_node)
{
	char name[80];
	FILE *file;

	CHECK(make_directory());
	snprintf(name, sizeof(name), "%s.2", port);
	file = fopen(name, "w");
	fputs("acp-plan-1 2 3 5 1 -\n127.0.1.1\nblock\n", file);
	fclose(file);
	chmod(name, 0600);
	be_part(0, "2", "10.7.0.1");
	CHECK(refused("127.0.1.1"));
	CHECK(unlink(name) == 0 && rmdir(directory) == 0);
}

/* ---- Launchers that cannot be reached ---- */

TEST(engine__without_libpmix_it_says_so)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {		/* once loaded, it stays loaded, except in another program */
		execl("/proc/self/exe", "test_lib_launch", "--missing", NULL);
		_exit(2);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--missing") == 0) {
		start_engine(0);
		engine.missing = true;
		return !refused("libpmix2");
	}
	return test_main(argc, argv);
}
