/* SPDX-License-Identifier: MIT */
/*
 * What went over the network: counters of this node, in /proc/net/acp.
 */
#ifndef PERF_FRAMES_H
#define PERF_FRAMES_H

#include <stdint.h>

/* Frames with data that this node has sent, and bare acknowledgements. -1: not to be had. */
int perf_frames_read(uint64_t *data, uint64_t *acks);

#endif
