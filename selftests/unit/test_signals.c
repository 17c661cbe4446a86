// SPDX-License-Identifier: MIT
/* Commands that are told to end (tools/acp/signals.c), on a slow machine, and if nobody reads. */
#include "test.h"

#include "../../tools/acp/signals.h"

#define LONG	7	/* seconds: longer than a command lives on if nobody reads */

static char block[65536];

/* A command that needs so many seconds to end. Its output goes to the pipe. */
static pid_t start_ending(const int pipes[2], unsigned int seconds, bool writes)
{
	pid_t child = fork();

	if (child)
		return child;
	dup2(pipes[1], STDOUT_FILENO);
	close(pipes[0]);
	close(pipes[1]);
	ctl_signal_catch(SIGTERM);
	raise(SIGTERM);
	CHECK(ctl_signal_end());
	while (seconds)
		seconds = sleep(seconds);	/* what is left, after a signal */
	while (writes && write(STDOUT_FILENO, block, sizeof(block)) > 0)
		;
	_exit(0);
}

static int status_of(pid_t child)
{
	int status;

	CHECK_EQ(waitpid(child, &status, 0), child);
	return status;
}

TEST(late__a_slow_machine_is_no_reason_to_be_killed)
{
	int pipes[2];

	CHECK(!pipe(pipes));
	CHECK_EQ(status_of(start_ending(pipes, LONG, false)), 0);
}

TEST(late__killed_if_nobody_reads)
{
	int pipes[2];

	CHECK(!pipe(pipes));
	CHECK_EQ(status_of(start_ending(pipes, 0, true)), SIGALRM);
}

TEST_MAIN
