/* SPDX-License-Identifier: MIT */
/*
 * Signals that end or suspend a command that runs until it is told to stop. Signals are recorded,
 * and the command checks them between two steps. No signal is lost between the check and a wait,
 * and none interrupts output.
 */
#ifndef CTL_SIGNALS_H
#define CTL_SIGNALS_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Record this signal from now on, unless it is ignored (SIGINT and SIGTERM are always recorded). A
 * command is killed five seconds after a request to end, or later, if nobody reads its output.
 */
void ctl_signal_catch(int number);

/* True if the end was requested; true if a pause (SIGTSTP) was requested. */
bool ctl_signal_end(void);
bool ctl_signal_pause(void);

/*
 * Stop like SIGTSTP does by default, and return when continued. In an orphaned process group, where
 * no shell could continue it, return immediately.
 */
void ctl_signal_stop_here(void);

/*
 * poll(2) for at most @ns (negative: no limit). Returns -1 with EINTR immediately if a signal is
 * recorded.
 */
int ctl_signal_poll(struct pollfd *p, nfds_t count, int64_t ns);

#endif /* CTL_SIGNALS_H */
