/* SPDX-License-Identifier: MIT */
/* Barriers of all ranks. */
#ifndef LIBACP_BARRIER_H
#define LIBACP_BARRIER_H

#include <stdint.h>

#include "acp_abi.h"
#include "core/internal.h"

#pragma GCC visibility push(hidden)

/**
 * libacp_barrier_wait() - wait in a barrier until all ranks have entered it
 * @sync: the caller sets size and flags (ACP_SYNC_); node receives the node of this rank or, with
 *	-EPROTO, the node whose parameters differ
 * @end: libacp_now() at which to give up; UINT64_MAX: never
 *
 * Signals do not extend the wait. Threads of a process take turns; @end does not limit the time
 * until it is the turn of the caller.
 *
 * Context: any thread of a rank; may block; takes the barrier lock (barrier.c).
 * Return: 0; -ETIMEDOUT; -ECANCELED if the job was aborted; -EPIPE if a rank left, so that no
 * barrier can complete; -EPROTO; -EIO if the module does not answer; or another -errno.
 */
int libacp_barrier_wait(struct acp_sync *sync, uint64_t end);

/**
 * libacp_barrier() - wait in a barrier without timeout
 * @flags: ACP_SYNC_, or 0
 *
 * Context: as libacp_barrier_wait().
 * Return: as libacp_barrier_wait().
 */
int libacp_barrier(uint32_t flags);

/**
 * libacp_barrier_failed() - handle the failure of a barrier
 * @call: name of the function that failed, for the message
 * @error: -errno of libacp_barrier_wait(), or 0
 *
 * In the default error mode, a barrier that can never complete (-EPIPE) ends the job, because the
 * application may ignore the return value; and an aborted job (-ECANCELED) ends the process. All
 * other errors are left to the caller.
 *
 * Context: any thread of a rank; may block for up to a second. Does not return if it ends the
 * process.
 */
void libacp_barrier_failed(const char *call, int error);

/**
 * libacp_barrier_in() - wait in a barrier without timeout, and handle failures
 * @call: name of the function that waits, for the message
 * @flags: ACP_SYNC_, or 0
 *
 * Handles failures by libacp_barrier_failed().
 *
 * Context: as libacp_barrier_wait().
 * Return: 0, or -1 with errno set.
 */
int libacp_barrier_in(const char *call, uint32_t flags);

#pragma GCC visibility pop

#endif /* LIBACP_BARRIER_H */
