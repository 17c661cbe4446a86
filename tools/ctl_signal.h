/* SPDX-License-Identifier: MIT */
/*
 * Signals that end or stop a command which goes on until it is told not to. They
 * are noted; the command looks between two steps. None comes between looking and
 * waiting, none spoils what is being written.
 */
#ifndef CTL_SIGNAL_H
#define CTL_SIGNAL_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * From now on, note that signal, unless it is ignored (SIGINT and SIGTERM in any
 * case). A command that has not ended five seconds after one that asks for the end
 * is ended: nobody takes what it writes.
 */
void ctl_signal_catch(int number);

/* Whether the end was asked for; whether a pause (SIGTSTP). */
bool ctl_signal_end(void);
bool ctl_signal_pause(void);

/*
 * Stop, as SIGTSTP does by itself; go on when told so. Where no shell could tell
 * (an orphaned process group), go on at once.
 */
void ctl_signal_stop_here(void);

/*
 * poll(2) for ns at most (negative: without end); at once -1 with EINTR if one of
 * the signals is noted.
 */
int ctl_signal_poll(struct pollfd *p, nfds_t count, int64_t ns);

#endif /* CTL_SIGNAL_H */
