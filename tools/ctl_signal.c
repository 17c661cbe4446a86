// SPDX-License-Identifier: MIT
/* Signals that end or stop a command: see ctl_signal.h. */
#define _GNU_SOURCE
#include "ctl_signal.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#define S		1000000000
#define PATIENCE	5	/* seconds to end in */

static volatile sig_atomic_t end, pause_wanted;
static sigset_t caught;		/* all zero is the empty set */

static void note(int number)
{
	if (number == SIGTSTP) {
		pause_wanted = 1;
		return;
	}
	end = 1;
	/* Nobody may take what it writes, and it would wait for ever. */
	alarm(PATIENCE);
}

void ctl_signal_catch(int number)
{
	/* A write goes on, else a table or a summary were cut short and called an error. */
	struct sigaction action = { .sa_handler = note, .sa_flags = SA_RESTART }, before;

	/* Shells let commands in the background ignore SIGINT: who sends it there means it. */
	if (number != SIGINT && number != SIGTERM &&
	    (sigaction(number, NULL, &before) || before.sa_handler == SIG_IGN))
		return;
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

	/* Not SIGSTOP, which would stop it where no shell can make it go on. */
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
