// SPDX-License-Identifier: MIT
/*
 * How a process ends that a launcher with PMIx has started: the launcher hears a proper end exactly
 * once, whoever calls acp_finalize() and whatever follows. Launcher and device are played.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "acp.h"
#include "test.h"
#include "test_lib_device.h"
#include "test_lib_engine.h"

static bool in_destructor;	/* ... acp_finalize() is called */

/* The launcher may hear it no later: after the barrier, a process can end in any way. */
static void check_leaving(void)
{
	if (fake.final)
		_exit(9);
}

static void begin(void)
{
	if (acp_init(NULL, NULL) != 0)
		_exit(8);
}

static void finalize(void)
{
	if (acp_finalize() != 0)
		_exit(7);
}

static void begin_and_finalize(void)
{
	begin();
	finalize();
}

/* A destructor of the program is called after all exit handlers. */
__attribute__((destructor)) static void destroy(void)
{
	if (in_destructor)
		finalize();
}

/* Return how often a process that runs @live has told the engine of its end; its status is 0. */
static int ends_told_by(void (*live)(void))
{
	int status;
	pid_t pid;

	if (!finalized)
		finalized = mmap(NULL, sizeof(*finalized), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(finalized != MAP_FAILED);
	setenv("PMIX_NAMESPACE", NSPACE, 1);
	engine.size = 1;
	engine.nodes = "here";
	engine.peers[0] = "0";
	engine.leaving = check_leaving;
	*finalized = 0;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		live();
		exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
	return *finalized;
}

/* ---- Before the end ---- */

TEST(end__in_main)
{
	CHECK_EQ(ends_told_by(begin_and_finalize), 1);
}

TEST(end__without_finalize_is_none)
{
	CHECK_EQ(ends_told_by(begin), 0);
}

/* Only the first job needs a fence of the launcher, which may never end for a second one. */
static void live_twice(void)
{
	begin_and_finalize();
	engine.silent = true;
	begin_and_finalize();
	if (engine.fences != 1)
		_exit(3);
}

static void live_twice_and_die(void)
{
	begin_and_finalize();
	begin();
}

TEST(end__of_each_job_of_a_process)
{
	CHECK_EQ(ends_told_by(live_twice), 2);
	CHECK_EQ(ends_told_by(live_twice_and_die), 1);
}

/* ---- In the end ---- */

static void handler_before_init(void)
{
	if (atexit(finalize))
		_exit(6);
	begin();
}

static void handler_after_init(void)
{
	begin();
	if (atexit(finalize))
		_exit(6);
}

static void quick_handler(void)
{
	if (at_quick_exit(finalize))
		_exit(6);
	begin();
	quick_exit(0);
}

static void destructor(void)
{
	in_destructor = true;
	begin();
}

/* A whole job, after acp_init() was called and failed. */
static void job_in_handler(void)
{
	if (atexit(begin_and_finalize))
		_exit(6);
	fake.sync_error = ETIMEDOUT;
	if (acp_init(NULL, NULL) != -1)
		_exit(5);
	fake.sync_error = 0;
}

TEST(end__in_exit_handlers)
{
	CHECK_EQ(ends_told_by(handler_before_init), 1);
	CHECK_EQ(ends_told_by(handler_after_init), 1);
	CHECK_EQ(ends_told_by(quick_handler), 1);
	CHECK_EQ(ends_told_by(destructor), 1);
	CHECK_EQ(ends_told_by(job_in_handler), 2);
}

static void *finalize_later(void *arg)
{
	usleep(20000);
	finalize();
	return arg;
}

static void main_thread_ends_first(void)
{
	pthread_t thread;

	begin();
	if (pthread_create(&thread, NULL, finalize_later, NULL))
		_exit(6);
	pthread_exit(NULL);
}

TEST(end__by_another_thread_than_the_main_one)
{
	CHECK_EQ(ends_told_by(main_thread_ends_first), 1);
}

/* ---- After finalize ---- */

static void then_end_at_once(void)
{
	begin_and_finalize();
	_exit(0);
}

static void then_end_quickly(void)
{
	begin_and_finalize();
	quick_exit(0);
}

static void then_exec(void)
{
	begin_and_finalize();
	execlp("true", "true", NULL);
	_exit(4);
}

TEST(end__before_what_runs_no_exit_handlers)
{
	CHECK_EQ(ends_told_by(then_end_at_once), 1);
	CHECK_EQ(ends_told_by(then_end_quickly), 1);
	CHECK_EQ(ends_told_by(then_exec), 1);
}

/* ---- Failures ---- */

static void fail(void)
{
	fake.sync_error = ETIMEDOUT;
	if (acp_init(NULL, NULL) != -1 || *finalized)
		_exit(5);
}

TEST(end__of_a_process_that_did_not_become_a_rank)
{
	setenv("ACP_INIT_TIMEOUT", "10", 1);
	CHECK_EQ(ends_told_by(fail), 1);
}

TEST_MAIN
