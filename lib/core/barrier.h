/* SPDX-License-Identifier: MIT */
/* Barriers of all ranks. */
#ifndef LIBACP_BARRIER_H
#define LIBACP_BARRIER_H

#include <stdint.h>

#include "acp_abi.h"
#include "core/internal.h"

#pragma GCC visibility push(hidden)

/*
 * Wait in a barrier until all ranks have entered it, or until libacp_now() is @end (UINT64_MAX:
 * never); signals do not extend it. Threads of a process take turns. Returns 0 or -errno; with
 * -EPROTO, sync->node is the node whose parameters differ.
 */
int libacp_barrier_wait(struct acp_sync *sync, uint64_t end);

/* As libacp_barrier_wait(), with @flags (ACP_SYNC_), without timeout. */
int libacp_barrier(uint32_t flags);

/*
 * Handle the failure of a barrier (-errno). In the default error mode, a barrier that can never
 * complete ends the job, because the application may ignore the return value.
 */
void libacp_barrier_failed(const char *call, int error);

/*
 * Wait in a barrier for the function named @call, without timeout, and handle failures. Returns 0,
 * or -1 with errno set.
 */
int libacp_barrier_in(const char *call, uint32_t flags);

#pragma GCC visibility pop

#endif /* LIBACP_BARRIER_H */
