/* SPDX-License-Identifier: MIT */
/* Waiting until other ranks change words of own memory. */
#ifndef LIBACP_WAIT_UNTIL_H
#define LIBACP_WAIT_UNTIL_H

#pragma GCC visibility push(hidden)

/**
 * libacp_watch_close() - make all threads that wait for words return, and wait for them
 *
 * The threads return -ENOTCONN. Clears libacp.watch.
 *
 * Context: the thread that leaves; libacp.state is no longer LIBACP_IN, and the memory is still
 * mapped. May block.
 */
void libacp_watch_close(void);

#pragma GCC visibility pop

#endif /* LIBACP_WAIT_UNTIL_H */
