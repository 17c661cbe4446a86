/* SPDX-License-Identifier: MIT */
/* Network traffic: counters of this node, from /proc/net/acp. */
#ifndef PERF_FRAMES_H
#define PERF_FRAMES_H

#include <stdint.h>

struct perf_frames {
	uint64_t data;		/* frames sent by the node, except pure acknowledgments */
	uint64_t acks;		/* pure acknowledgments */
	/*
	 * Number of accesses that started when everything they wait for was complete, not behind a
	 * fence. For sequential accesses this is the number of round trips.
	 */
	uint64_t trips;
};

/* Read the counters. Returns 0, or -1 if they are not available. */
int perf_frames_read(struct perf_frames *frames);

#endif
