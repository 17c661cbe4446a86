// SPDX-License-Identifier: MIT
/* Limits that administrators set, for messages. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "acp_abi.h"
#include "core/limits.h"

#define LINE_BYTES	200
#define GROUP_BYTES	1024

/* Return the bytes of this process that count against RLIMIT_MEMLOCK. */
static uint64_t locked_here(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	unsigned long long kib = 0;
	char line[LINE_BYTES];

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "VmPin: %llu kB", &kib) == 1)
			break;
	if (status)
		fclose(status);
	return kib << 10;
}

uint64_t libacp_memlock(void)
{
	struct rlimit limit = { 0, 0 };

	getrlimit(RLIMIT_MEMLOCK, &limit);
	return limit.rlim_cur;
}

void libacp_memlock_text(uint64_t bytes, uint64_t enough, char text[LIBACP_MEMLOCK_TEXT])
{
	const uint64_t locked = locked_here();

	if (libacp_memlock() == RLIM_INFINITY) {
		libacp_memory_text(bytes, text);
		return;
	}
	if (enough < locked + bytes)
		enough = locked + bytes;
	snprintf(text, LIBACP_MEMLOCK_TEXT,
		 "RLIMIT_MEMLOCK is %" PRIu64
		 " bytes for all processes of this user together, of which this one has %" PRIu64
		 " locked, and %" PRIu64 " more are needed: raise it (ulimit -l %" PRIu64
		 " or more, or /etc/security/limits.d/acp.conf), or end other processes",
		 libacp_memlock(), locked, bytes, enough / 1024 + (enough % 1024 != 0));
}

/* ---- Control groups ---- */

/* Get the path of the control group (version 2) of this process, without a final slash. */
static bool find_group(char group[GROUP_BYTES])
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[GROUP_BYTES];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		found = strncmp(line, "0::/", 4) == 0;
	}
	if (file)
		fclose(file);
	if (found)
		strcpy(group, strcmp(line, "0::/") == 0 ? "" : line + 3);
	return found;
}

/* False if the file has no number, but "max". */
static bool read_group(const char *group, const char *name, uint64_t *number)
{
	char path[GROUP_BYTES + LINE_BYTES];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", group, name);
	file = fopen(path, "re");
	if (file) {
		found = fscanf(file, "%" SCNu64, number) == 1;
		fclose(file);
	}
	return found;
}

void libacp_memory_text(uint64_t bytes, char text[LIBACP_MEMLOCK_TEXT])
{
	char group[GROUP_BYTES];
	uint64_t max, used;
	bool more = find_group(group);

	/* The limits of all groups around it count as well. */
	while (more) {
		if (read_group(group, "memory.max", &max) &&
		    read_group(group, "memory.current", &used) &&
		    (used > max || bytes > max - used)) {
			snprintf(text, LIBACP_MEMLOCK_TEXT,
				 "the control group %.150s may have %" PRIu64
				 " bytes (memory.max), of which %" PRIu64
				 " are used: raise it (MemoryMax= of a unit, --memory of a container or job)",
				 *group ? group : "/", max, used);
			return;
		}
		more = *group;
		if (more)
			*strrchr(group, '/') = '\0';
	}
	snprintf(text, LIBACP_MEMLOCK_TEXT, "too little memory of this machine is free");
}

/* ---- Limits of the module ---- */

const char *libacp_limit_name(uint64_t limit)
{
	static const char *const names[ACP_LIMIT_END] = {
		[ACP_LIMIT_JOBS] = "net.acp.jobs (jobs on this node)",
		[ACP_LIMIT_USER_JOBS] = "net.acp.user_jobs (jobs of a user)",
		[ACP_LIMIT_USER_RANKS] = "net.acp.user_ranks (ranks of a user)",
		[ACP_LIMIT_USER_REGIONS] = "net.acp.user_regions (registered regions of a user)",
		[ACP_LIMIT_USER_MEMORY] = "net.acp.user_memory (KiB of a user)",
		[ACP_LIMIT_DEPTH] = "net.acp.depth (ACP_QUEUE_DEPTH)",
	};

	if (limit == ACP_LIMIT_MEMORY)
		return "memory (KiB of all users)";
	return limit < ACP_LIMIT_END && names[limit] ? names[limit] : "net.acp";
}

const char *libacp_limit_place(uint64_t limit)
{
	return limit == ACP_LIMIT_MEMORY ? "cat /sys/module/acp/parameters/memory" :
					   "sysctl net.acp";
}
