/* SPDX-License-Identifier: MIT */
/* Failed rounds. */
#ifndef LIBACP_COLL_FAILURE_H
#define LIBACP_COLL_FAILURE_H

#include "coll/coll.h"

#pragma GCC visibility push(hidden)

/**
 * libacp_coll_judge() - look for failures in a round
 * @c: the collective; all entries are complete that the end of the round waits for
 *
 * If one has failed, the collective is FAILED, and the members to which the caller sends something
 * are told: their counters are revoked, so that neither this round nor a later one waits for them.
 * The kernel has done so as far as it knew; this is for what was sent before the failure.
 *
 * Context: the thread that uses the collective; does not wait for others.
 * Return: 0 or -errno.
 */
int libacp_coll_judge(struct acpx_coll *c);

/**
 * libacp_coll_judge_tail() - the same for what the last round sent at its end
 * @c: the collective, which is IDLE; what is not complete is not looked at
 */
int libacp_coll_judge_tail(struct acpx_coll *c);

/**
 * libacp_coll_told() - return the queue of a failed collective when others have been told
 * @c: the collective
 *
 * Context: the thread that uses it; does not wait for ranks that seem to be lost.
 */
void libacp_coll_told(struct acpx_coll *c);

/**
 * libacp_coll_abandon() - tell others that the caller has not created a collective
 * @c: the collective; all others have got as far as the caller, and may have created it
 *
 * Context: the thread that creates it; waits for the memory of others.
 */
void libacp_coll_abandon(struct acpx_coll *c);

#pragma GCC visibility pop

#endif /* LIBACP_COLL_FAILURE_H */
