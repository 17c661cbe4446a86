// SPDX-License-Identifier: MIT
/* Detection of pointers that are used as global addresses. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "core/internal.h"

#define USER_BITS	47		/* of user addresses, unless a process asks for more */

bool libacp_is_pointer(acp_ga_t ga)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	unsigned char resident;

	if (ga < page || ga >> USER_BITS)
		return false;
	return mincore((void *)((uintptr_t)ga & ~(page - 1)), 1, &resident) == 0;
}
