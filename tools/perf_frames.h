/* SPDX-License-Identifier: MIT */
/*
 * What went over the network: counters of this node, in /proc/net/acp.
 */
#ifndef PERF_FRAMES_H
#define PERF_FRAMES_H

#include <stdint.h>

struct perf_frames {
	uint64_t data;		/* frames that the node has sent, but bare acknowledgements */
	uint64_t acks;		/* these */
	/*
	 * Accesses that began when all that they had to wait for was complete,
	 * not behind a fence: of accesses one after the other, the round trips.
	 */
	uint64_t trips;
};

/* Until now.  -1: not to be had. */
int perf_frames_read(struct perf_frames *frames);

#endif
