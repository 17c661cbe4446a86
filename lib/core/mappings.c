// SPDX-License-Identifier: MIT
/*
 * Why the module does not register memory: what is mapped there, for a message. The rules are those
 * of kernel/mem/pages.c, as far as /proc/self/maps shows them.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "core/mappings.h"

#define LINE_BYTES	4300	/* of /proc/self/maps, with a path */
#define PATH_SHOWN	150

/* A line of /proc/self/maps; the name may be empty. */
struct mapping {
	uint64_t start, end;
	char rights[5];
	const char *name;
};

static bool parse(char *line, struct mapping *m)
{
	int name = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %*s %n", &m->start, &m->end,
		   m->rights, &name) < 3)
		return false;
	m->name = line + name;
	return true;
}

/* Files in memory whose names lead to no file: of memfd_create(2), shmget(2), /dev/zero. */
static bool is_nameless_memory(const char *name)
{
	return strncmp(name, "/memfd:", 7) == 0 || strncmp(name, "/SYSV", 5) == 0 ||
	       strncmp(name, "/dev/zero", 9) == 0 || strncmp(name, "/anon_hugepage", 14) == 0;
}

static bool is_in_memory(const char *name)
{
	struct statfs fs;

	if (is_nameless_memory(name) || statfs(name, &fs))
		return true;	/* it is not known that it is not */
	return fs.f_type == TMPFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC;
}

/* Return the reason why a mapping is not registered, with a remedy; NULL: none is visible. */
static const char *reason(const struct mapping *m, bool writable)
{
	const bool shared = m->rights[3] == 's', file = *m->name == '/';

	if (*m->name == '[' && strncmp(m->name, "[v", 2) == 0)
		return "belongs to the kernel";
	if (writable && m->rights[1] != 'w')
		return "is not writable: use mprotect(), or register it with ACPX_ACCESS_RO";
	if (m->rights[0] != 'r' && m->rights[1] != 'w')
		return "is not readable: use mprotect()";
	if (shared && m->rights[1] != 'w')
		return "is a shared mapping that is not writable: map it with MAP_PRIVATE";
	if (shared && file && !is_in_memory(m->name))
		return "is a shared mapping of a file or device: use MAP_PRIVATE, "
		       "memfd_create() or a file in /dev/shm";
	return NULL;
}

/* Find the first page of [*start, end) that is not mapped, or mapped in a way that is refused. */
static const char *find(FILE *maps, uint64_t *start, uint64_t *end, bool writable,
			char name[LINE_BYTES])
{
	char line[LINE_BYTES];
	struct mapping m;
	const char *why;

	while (*start < *end && fgets(line, sizeof(line), maps)) {
		if (!parse(line, &m) || m.end <= *start)
			continue;
		if (m.start > *start) {
			if (m.start < *end)
				*end = m.start;
			return "is not mapped";
		}
		why = reason(&m, writable);
		if (why) {
			*start = m.start;
			*end = m.end;
			strcpy(name, m.name);
			return why;
		}
		*start = m.end;
	}
	return *start < *end ? "is not mapped" : NULL;
}

void libacp_mapping_text(uint64_t start, uint64_t end, bool writable,
			 char text[LIBACP_MAPPING_TEXT])
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	FILE *maps = fopen("/proc/self/maps", "re");
	char name[LINE_BYTES] = "";
	const char *why = NULL;

	start &= ~(page - 1);
	end = (end + page - 1) & ~(page - 1);
	if (maps) {
		why = find(maps, &start, &end, writable, name);
		fclose(maps);
	}
	if (!why)
		snprintf(text, LIBACP_MAPPING_TEXT,
			 "a part of it is not mapped, or of a kind that cannot be pinned");
	else
		snprintf(text, LIBACP_MAPPING_TEXT, "0x%" PRIx64 "-0x%" PRIx64 "%s%.*s%s %s", start,
			 end, *name ? " (" : "", PATH_SHOWN, name, *name ? ")" : "", why);
}
