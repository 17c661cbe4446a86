/* SPDX-License-Identifier: MIT */
/* Exponential back-off: pauses between tries that become longer. */
#ifndef LIBACP_BACKOFF_H
#define LIBACP_BACKOFF_H

#include <stdint.h>

/*
 * Return how long to pause before the next try: @first, then twice as long each time, at most @max.
 * *@pause is the last pause; 0 begins anew.
 */
static inline uint64_t libacp_backoff(uint64_t *pause, uint64_t first, uint64_t max)
{
	*pause = *pause ? *pause * 2 : first;
	if (*pause > max)
		*pause = max;
	return *pause;
}

#endif /* LIBACP_BACKOFF_H */
