// SPDX-License-Identifier: MIT
/* The parts of the middle layer begin when a process has become a rank, and end when it leaves. */
#include "heap.h"
#include "middle.h"
#include "scratch.h"
#include "section.h"

int libacp_middle_open(void)
{
	libacp_section_open();
	return libacp_heap_open();
}

void libacp_middle_close(void)
{
	libacp_scratch_close();
}
