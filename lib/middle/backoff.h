/* SPDX-License-Identifier: MIT */
/* Exponential back-off: pauses between tries that become longer. */
#ifndef LIBACP_BACKOFF_H
#define LIBACP_BACKOFF_H

#include <stdint.h>

/**
 * libacp_backoff() - determine how long to pause before the next try
 * @pause: the last pause, which is replaced by the next one; 0 begins anew
 * @first: the first pause, in the unit of @max
 * @max: the longest pause
 *
 * Each pause is twice as long as the last one, up to @max. The caller sleeps.
 *
 * Context: any thread that alone uses @pause; does not block.
 * Return: the next pause.
 */
static inline uint64_t libacp_backoff(uint64_t *pause, uint64_t first, uint64_t max)
{
	*pause = *pause ? *pause * 2 : first;
	if (*pause > max)
		*pause = max;
	return *pause;
}

#endif /* LIBACP_BACKOFF_H */
