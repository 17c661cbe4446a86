// SPDX-License-Identifier: MIT
/*
 * Waking threads that wait for a change of memory that has just been written. acp_abi.h describes
 * the protocol (struct acp_watch); wait_until.c is the other side.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/ioctl.h>

#include "acp.h"
#include "acp_abi.h"
#include "acp_ga.h"
#include "core/process.h"
#include "core/watch.h"

static bool looked_at(const struct acp_watch *watch, uintptr_t address, uint64_t size)
{
	uint64_t lines = ((address + size - 1) >> 6) - (address >> 6) + 1, i;

	if (!size)
		return false;
	if (lines > ACP_WATCH_LINES)
		return true;
	for (i = 0; i < lines; i++)
		if (__atomic_load_n(&watch->lines[ACP_WATCH_LINE(address + 64 * i)],
				    __ATOMIC_RELAXED))
			return true;
	return false;
}

void libacp_watch_wake_rank(uint32_t rank)
{
	struct acp_wake w = { .size = sizeof(w), .rank = rank };
	int saved = errno;

	ioctl(libacp.fd, ACP_IOC_WAKE, &w);	/* fails if the rank has left */
	errno = saved;
}

bool libacp_watch_wake(struct acp_watch *watch, acp_ga_t ga, const void *at, uint64_t size)
{
	if (looked_at(watch, (uintptr_t)at, size))
		libacp_watch_wake_rank(acp_ga_rank(&libacp.layout, ga));
	return true;
}
