// SPDX-License-Identifier: MIT
/* Counters: see frames.h. */
#include "frames.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { COMMANDS, LOCAL, FENCED, FRAMES, ACKS, COUNTERS };

static const char *const names[COUNTERS] = {
	[COMMANDS] = "commands", [LOCAL] = "local", [FENCED] = "fenced",
	[FRAMES] = "tx_frames", [ACKS] = "tx_acks",
};

int perf_frames_read(struct perf_frames *frames)
{
	FILE *file = fopen("/proc/net/acp", "re");
	uint64_t value, of[COUNTERS] = { 0 };
	char name[32];
	int i, found = 0;

	if (file == NULL)
		return -1;
	while (fscanf(file, "%31s %" SCNu64, name, &value) == 2) {
		for (i = 0; i < COUNTERS; i++) {
			if (strcmp(name, names[i]) != 0)
				continue;
			of[i] = value;
			found++;
		}
	}
	fclose(file);
	*frames = (struct perf_frames){
		.data = of[FRAMES] - of[ACKS], .acks = of[ACKS],
		.trips = of[COMMANDS] - of[LOCAL] - of[FENCED],
	};
	return found == COUNTERS ? 0 : -1;
}
