// SPDX-License-Identifier: MIT
/* Counters: see perf_frames.h. */
#include "perf_frames.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int perf_frames_read(uint64_t *data, uint64_t *acks)
{
	FILE *file = fopen("/proc/net/acp", "re");
	uint64_t value, all = 0;
	char name[32];
	int found = 0;

	*acks = 0;
	if (file == NULL)
		return -1;
	while (fscanf(file, "%31s %" SCNu64, name, &value) == 2) {
		if (strcmp(name, "tx_frames") == 0) {
			all = value;
			found |= 1;
		} else if (strcmp(name, "tx_acks") == 0) {
			*acks = value;
			found |= 2;
		}
	}
	fclose(file);
	*data = all - *acks;
	return found == 3 ? 0 : -1;
}
