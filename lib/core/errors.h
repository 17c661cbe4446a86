/* SPDX-License-Identifier: MIT */
/* Texts and errno values of statuses, and what they say of an entry. */
#ifndef LIBACP_ERRORS_H
#define LIBACP_ERRORS_H

#include <stdbool.h>
#include <stdint.h>

#include "acp_abi.h"

#pragma GCC visibility push(hidden)

/**
 * libacp_errno() - get the errno value of a status
 * @status: enum acp_status
 *
 * Context: any thread; does not block.
 * Return: the positive errno value; 0 for ACP_ST_OK.
 */
int libacp_errno(int status);

/**
 * libacp_is_loss() - does a status say that a rank, or its node, was lost?
 * @status: enum acp_status
 *
 * Context: any thread; does not block.
 * Return: true if it does.
 */
static inline bool libacp_is_loss(int status)
{
	return status == ACP_ST_RANK || status == ACP_ST_TIMEOUT || status == ACP_ST_PEER ||
	       status == ACP_ST_ROUTE;
}

/**
 * libacp_wait_name() - get one of the ranks that an access waits for
 * @wait: an entry with ACP_OP_WAIT
 * @i: place of the rank, less than 6
 *
 * Context: any thread; does not block.
 * Return: the rank, or -1 if there is none at this place.
 */
static inline int libacp_wait_name(const struct acp_sqe *wait, int i)
{
	const uint64_t pairs[] = { wait->dst, wait->size, wait->b };

	return (int)((uint32_t)(pairs[i / 2] >> 32 * (i % 2)) - 1u);
}

#pragma GCC visibility pop

#endif /* LIBACP_ERRORS_H */
