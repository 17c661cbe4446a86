// SPDX-License-Identifier: MIT
/*
 * How many instructions an access takes that the caller does itself: counted
 * one by one by a parent that traces the rank.  Built as the library is.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "acp.h"
#include "test.h"
#include "test_lib_device.h"

#define MOST_OWN	150	/* a copy of 8 bytes within the process */
#define MOST_NEIGHBOUR	250	/* ... from the starter memory of a rank on the node */

static char memory[2 * FAKE_PAGE] __attribute__((aligned(FAKE_PAGE)));

static void mark(void)
{
	raise(SIGUSR1);
}

/* What is measured, between marks: nothing, a copy of its own, one of a neighbour's. */
static void rank(void)
{
	acp_ga_t own, other;

	setenv("ACP_RANK", "0", 1);
	setenv("ACP_NPROCS", "4", 1);
	setenv("ACP_NODES", "10.0.0.1 10.0.0.2", 1);
	setenv("ACP_INSECURE", "1", 1);
	if (acp_init(NULL, NULL) < 0)
		_exit(1);
	own = acp_query_ga(acp_register_memory(memory, sizeof(memory), 0), memory);
	other = acp_query_starter_ga(1);
	acp_copy(own, other, 8, ACP_HANDLE_NULL);
	mark();
	mark();
	mark();
	acp_copy(own, own + FAKE_PAGE, 8, ACP_HANDLE_NULL);
	mark();
	mark();
	acp_copy(own, other, 8, ACP_HANDLE_NULL);
	mark();
}

/* Instructions until the next mark; -1 if the rank ended. */
static long count_steps(pid_t pid)
{
	long steps = 0;
	int status;

	do {
		if (ptrace(PTRACE_SINGLESTEP, pid, 0, 0) < 0 || waitpid(pid, &status, 0) < 0 ||
		    !WIFSTOPPED(status))
			return -1;
		steps++;
	} while (WSTOPSIG(status) != SIGUSR1);
	return steps;
}

static bool run_to_mark(pid_t pid)
{
	int status, signal = 0;

	for (;;) {
		if (waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status))
			return false;
		if (WSTOPSIG(status) == SIGUSR1)
			return true;
		signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
		ptrace(PTRACE_CONT, pid, 0, signal);
	}
}

TEST(copy__instructions)
{
	long nothing, own, neighbour;
	pid_t pid = fork();

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
			_exit(2);
		rank();
		_exit(0);
	}
	if (!run_to_mark(pid))
		SKIP("ptrace is not allowed here");
	nothing = count_steps(pid);
	count_steps(pid);
	own = count_steps(pid) - nothing;
	count_steps(pid);
	neighbour = count_steps(pid) - nothing;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	printf("# 8 bytes: own %ld, neighbour %ld instructions\n", own, neighbour);
	CHECK(nothing > 0 && own > 0 && own <= MOST_OWN);
	CHECK(neighbour > 0 && neighbour <= MOST_NEIGHBOUR);
}

TEST_MAIN
