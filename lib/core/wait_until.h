/* SPDX-License-Identifier: MIT */
/* Waiting until other ranks change words of own memory. */
#ifndef LIBACP_WAIT_UNTIL_H
#define LIBACP_WAIT_UNTIL_H

#pragma GCC visibility push(hidden)

/*
 * Make all waiting threads return -ENOTCONN and wait until they have left. The state is no longer
 * LIBACP_IN, and the memory is still mapped.
 */
void libacp_watch_close(void);

#pragma GCC visibility pop

#endif /* LIBACP_WAIT_UNTIL_H */
