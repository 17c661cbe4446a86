// SPDX-License-Identifier: MIT
/*
 * Why frames of this node were not sent, or those of others not accepted, while acp_init() waited:
 * the counters of the network namespace tell. They count for all jobs, so this is a likely cause.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "acp.h"
#include "boot/boot.h"

#define COUNTERS	"/proc/thread-self/net/acp"
#define LINE_BYTES	100

/* What a node notices when others cannot reach it; the surest cause first. */
static const struct {
	const char *counter, *one, *several, *cause;
} causes[] = {
	{ "drop_bad_source", "frame came", "frames came",
	  "from other addresses than the nodes have, as behind address translation (masquerade)" },
	{ "drop_bad_version", "frame", "frames",
	  "of another version of the module came, which must be the same on all nodes" },
	{ "drop_denied", "frame was", "frames were",
	  "refused by a BPF program of this control group" },
	{ "tx_neighbour", "frame had", "frames had",
	  "no room in the neighbour table (sysctl net.ipv4.neigh.default.gc_thresh3 or "
	  "net.ipv6...)" },
	{ "tx_errors", "frame was", "frames were",
	  "refused by the network of this machine: by its routes, or by firewall rules for what "
	  "it sends" },
};

#define CAUSES	(sizeof(causes) / sizeof(causes[0]))

static uint64_t before[CAUSES];		/* guarded by membership (join.c) */

static void read_counters(uint64_t now[CAUSES])
{
	FILE *file = fopen(COUNTERS, "re");
	char line[LINE_BYTES], name[LINE_BYTES];
	uint64_t value;
	size_t i;

	memset(now, 0, CAUSES * sizeof(*now));
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%s %" SCNu64, name, &value) != 2)
			continue;
		for (i = 0; i < CAUSES; i++)
			if (strcmp(name, causes[i].counter) == 0)
				now[i] = value;
	}
	if (file)
		fclose(file);
}

void libacp_drops_begin(void)
{
	read_counters(before);
}

bool libacp_drops_name(char *text, size_t size)
{
	uint64_t now[CAUSES];
	size_t i;

	read_counters(now);
	for (i = 0; i < CAUSES; i++) {
		if (now[i] <= before[i])
			continue;
		snprintf(text, size, "%" PRIu64 " %s %s", now[i] - before[i],
			 now[i] - before[i] == 1 ? causes[i].one : causes[i].several,
			 causes[i].cause);
		return true;
	}
	return false;
}
