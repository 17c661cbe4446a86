// SPDX-License-Identifier: MIT
/* Messages about full heaps and, with ACP_DEBUG, about invalid frees. */
#include <inttypes.h>

#include "heap/heap.h"

#define MIB		(UINT64_C(1) << 20)
#define LARGEST		(UINT64_C(1) << 40)	/* maximum of ACP_HEAP_SIZE */

bool libacp_debug;

/* Return a sufficient size of the heap in MiB, a power of two; 0: more than allowed. */
static uint64_t enough_mib(uint64_t wanted, const struct libacp_heap_use *use)
{
	uint64_t size = MIB;

	while (size <= LARGEST && size < 2 * use->used + wanted)
		size *= 2;
	if (size <= use->size)
		size *= 2;
	return size > LARGEST ? 0 : size / MIB;
}

/* Printed once: a program may free memory and try again. */
void libacp_heap_tell_full(int rank, uint64_t wanted, const struct libacp_heap_use *use)
{
	static int told;
	uint64_t mib;

	if (__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
		return;
	if (!use->size) {
		libacp_error("acp_malloc: rank %d has no heap, or one that is too small for any block: set ACP_HEAP_SIZE for that rank (1M is usual)",
			     rank);
		return;
	}
	mib = enough_mib(wanted, use);
	libacp_error("acp_malloc: the heap of rank %d is full: no %" PRIu64
		     " bytes are free in one piece, %" PRIu64 " of %" PRIu64
		     " bytes are in use: set ACP_HEAP_SIZE for that rank, for example to %" PRIu64 "M",
		     rank, wanted, use->used, use->size, mib ? mib : LARGEST / MIB);
}

void libacp_heap_tell_free(acp_ga_t ga, enum libacp_heap_fault fault)
{
	int rank = acp_query_rank(ga);

	if (fault == LIBACP_HEAP_FREED)
		libacp_error("acp_free: 0x%016" PRIx64 ": this block in the heap of rank %d was freed before",
			     (uint64_t)ga, rank);
	else if (fault == LIBACP_HEAP_NO_BLOCK)
		libacp_error("acp_free: 0x%016" PRIx64 ": no block begins there, at offset %" PRIu64
			     " of the heap of rank %d",
			     (uint64_t)ga, (uint64_t)(ga - acpx_query_heap_ga(rank)), rank);
	else if (libacp_is_pointer(ga))
		libacp_error("acp_free: 0x%016" PRIx64 ": this is a pointer, not a global address",
			     (uint64_t)ga);
	else if (rank >= 0)
		libacp_error("acp_free: 0x%016" PRIx64 ": this is memory of rank %d, but not in its heap",
			     (uint64_t)ga, rank);
	else
		libacp_error("acp_free: 0x%016" PRIx64 ": this is no global address of any rank",
			     (uint64_t)ga);
}
