// SPDX-License-Identifier: MIT
/*
 * Memory with a global address, for use by the library. It is allocated from the heap, because
 * ranks on the same node access the heap without the kernel. If the heap is full or too small, it
 * is allocated from the process and registered.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heap/heap.h"
#include "channel/rendezvous.h"
#include "core/internal.h"

static int from_heap(struct libacp_block *block, size_t size)
{
	block->ga = libacp_heap_take(size, acp_rank());
	if (block->ga == ACP_GA_NULL)
		return -ENOMEM;
	block->memory = acp_query_address(block->ga);
	block->key = ACP_ATKEY_NULL;
	return 0;
}

/* Allocate whole pages, so that nothing else is pinned with them. */
static int from_process(struct libacp_block *block, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	size = (size + page - 1) / page * page;
	if (posix_memalign(&block->memory, page, size))
		return -ENOMEM;
	memset(block->memory, 0, size);
	block->key = acp_register_memory(block->memory, size, 0);
	if (block->key == ACP_ATKEY_NULL) {
		free(block->memory);
		block->memory = NULL;
		return -ENOMEM;
	}
	block->ga = acp_query_ga(block->key, block->memory);
	return 0;
}

int libacp_block_get(struct libacp_block *block, size_t size)
{
	if (from_heap(block, size) < 0)
		return from_process(block, size);
	memset(block->memory, 0, size);
	return 0;
}

void libacp_block_put(struct libacp_block *block)
{
	if (!block->memory)
		return;
	if (block->key == ACP_ATKEY_NULL) {
		acp_free(block->ga);
	} else {
		acp_unregister_memory(block->key);
		free(block->memory);
	}
	block->memory = NULL;
}
