/* SPDX-License-Identifier: MIT */
/* States of other ranks, and events. */
#ifndef LIBACP_EVENT_H
#define LIBACP_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "acp_abi.h"

#pragma GCC visibility push(hidden)

/**
 * libacp_rank_state() - ask the kernel for the state of a rank
 * @rank: number of the rank
 *
 * Tells what this node knows already: there is no communication with other nodes.
 *
 * Context: any thread of a rank; a system call.
 * Return: the state (ACP_RANK_) and, if it is ACP_RANK_DOWN, the status with which an access would
 * end (ACP_ST_); the state is ACP_RANK_UNKNOWN if the call fails.
 */
struct acp_rank_state libacp_rank_state(uint32_t rank);

/**
 * libacp_rank_has_left() - has a rank of this node left the job?
 * @rank: any number
 *
 * Its process has ended, or has closed the device: it does not write to memory of others any more.
 *
 * Context: any thread of a rank; a system call.
 * Return: true if it has.
 */
bool libacp_rank_has_left(uint32_t rank);

#pragma GCC visibility pop

#endif /* LIBACP_EVENT_H */
