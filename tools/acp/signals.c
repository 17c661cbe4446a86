// SPDX-License-Identifier: MIT
/* Signals that end or suspend a command: see signals.h. */
#define _GNU_SOURCE
#include "signals.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#define S		1000000000
#define PATIENCE	5	/* seconds for which nobody reads the output, until it is killed */

static volatile sig_atomic_t end, pause_wanted;
static sigset_t caught;		/* initially empty */

static void note(int number)
{
	if (number == SIGTSTP) {
		pause_wanted = 1;
		return;
	}
	end = 1;
	alarm(PATIENCE);
}

/*
 * The process may block forever in a write that nobody reads. Or the machine is slow: what can
 * write will end.
 */
static void late(int number)
{
	struct pollfd p[] = {
		{ .fd = STDOUT_FILENO, .events = POLLOUT },
		{ .fd = STDERR_FILENO, .events = POLLOUT },
	};
	const int before = errno;

	if (poll(p, 2, 0) == 2) {
		alarm(PATIENCE);
	} else {
		signal(number, SIG_DFL);
		raise(number);
	}
	errno = before;
}

void ctl_signal_catch(int number)
{
	/*
	 * Restart interrupted writes. Otherwise output would be truncated and treated as an error.
	 */
	struct sigaction action = { .sa_handler = note, .sa_flags = SA_RESTART }, before;
	struct sigaction alarmed = { .sa_handler = late, .sa_flags = SA_RESTART };

	/*
	 * Shells make background commands ignore SIGINT. A SIGINT that is sent nevertheless is
	 * intended.
	 */
	if (number != SIGINT && number != SIGTERM &&
	    (sigaction(number, NULL, &before) || before.sa_handler == SIG_IGN))
		return;
	sigaction(SIGALRM, &alarmed, NULL);
	sigaction(number, &action, NULL);
	sigaddset(&caught, number);
}

bool ctl_signal_end(void)
{
	return end != 0;
}

bool ctl_signal_pause(void)
{
	return pause_wanted != 0;
}

void ctl_signal_stop_here(void)
{
	struct sigaction usual = { .sa_handler = SIG_DFL }, ours;

	/* Not SIGSTOP, which would stop an orphaned process group that no shell can continue. */
	sigaction(SIGTSTP, &usual, &ours);
	pause_wanted = 0;
	raise(SIGTSTP);
	sigaction(SIGTSTP, &ours, NULL);
}

int ctl_signal_poll(struct pollfd *p, nfds_t count, int64_t ns)
{
	struct timespec t = { (time_t)(ns / S), (long)(ns % S) };
	sigset_t before;
	int n = -1;

	sigprocmask(SIG_BLOCK, &caught, &before);
	errno = EINTR;
	if (!end && !pause_wanted)
		n = ppoll(p, count, ns < 0 ? NULL : &t, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return n;
}
