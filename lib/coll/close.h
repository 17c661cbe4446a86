/* SPDX-License-Identifier: MIT */
/* Collectives when the process stops being a rank. */
#ifndef LIBACP_CLOSE_H
#define LIBACP_CLOSE_H

#pragma GCC visibility push(hidden)

/**
 * libacp_coll_close() - end all rounds, and destroy their queues
 *
 * Waits for active collectives, but not longer than the time-out of the job: other ranks may not
 * have started theirs.
 *
 * Context: the thread that leaves; no other thread uses a collective.
 */
void libacp_coll_close(void);

#pragma GCC visibility pop

#endif /* LIBACP_CLOSE_H */
