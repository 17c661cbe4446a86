/* SPDX-License-Identifier: MIT */
/* Regions of this rank, lookup of global addresses. */
#ifndef LIBACP_MEM_H
#define LIBACP_MEM_H

#include <stdbool.h>
#include <stdint.h>

#include "acp.h"
#include "acp_abi.h"
#include "acp_ga.h"
#include "core/process.h"

#pragma GCC visibility push(hidden)

struct libacp_region {
	/* color and STag as in the global address, plus 1; 0: free. Stored last. */
	uint64_t tag;
	char *base;		/* first byte */
	acp_ga_t ga;		/* global address of base */
	uint64_t size;		/* bytes */
	uint64_t writable;	/* size, or 0 if the owner must not write */
	uint64_t word_reads;	/* number of offsets at which 8 bytes can be read; 0: none */
	uint64_t word_writes;	/* the same for writing. Both are stored last, as the tag is. */
	uint64_t unused;	/* padding to one cache line */
};

#define LIBACP_CHUNK	64u	/* regions per chunk; any job has at least as many STags */

/* The STag table of this rank, in two levels: STag / LIBACP_CHUNK, STag % LIBACP_CHUNK. */
extern struct libacp_region **libacp_chunks;

/*
 * Return color and STag of an own global address as one number. For addresses of other ranks,
 * higher bits are set.
 */
static inline uint64_t libacp_mem_tag(acp_ga_t ga)
{
	return (ga ^ libacp.own) >> libacp.layout.offset_bits;
}

/*
 * Return the registered region to which @ga of this rank belongs by color and STag, or NULL. The
 * offset is not checked. Lock-free.
 */
static inline struct libacp_region *libacp_mem_region(acp_ga_t ga)
{
	uint64_t tag = libacp_mem_tag(ga);
	uint32_t stag = tag & libacp.stag_mask;
	struct libacp_region *region =
		__atomic_load_n(&libacp_chunks[stag / LIBACP_CHUNK], __ATOMIC_ACQUIRE);

	if (!region)
		return NULL;
	region += stag % LIBACP_CHUNK;
	return __atomic_load_n(&region->tag, __ATOMIC_ACQUIRE) == tag + 1 ? region : NULL;
}

/**
 * libacp_mem_find() - find memory of this rank
 * @ga: global address of its first byte
 * @size: in bytes
 * @write: the owner is to write to it
 *
 * Context: any thread of a rank; takes no lock.
 * Return: its address, or NULL if it is not in one region of this rank that permits the access.
 */
static inline void *libacp_mem_find(acp_ga_t ga, uint64_t size, bool write)
{
	const struct libacp_region *region = libacp_mem_region(ga);
	uint64_t offset, room;

	if (!region)
		return NULL;
	offset = ga - region->ga;
	room = write ? region->writable : region->size;
	if (offset > room || size > room - offset)
		return NULL;
	return region->base + offset;
}

/*
 * Faster variant of libacp_mem_find() for 8 bytes of color 0 in the first chunk. @tag is
 * libacp_mem_tag(ga) and indexes the chunk. A region of another color at this index is recognized
 * by its distance, which exceeds the size of any region. False: use libacp_mem_find(). Lock-free.
 */
static inline bool libacp_mem_find_word(acp_ga_t ga, uint64_t tag, bool write, char **word)
{
	const struct libacp_region *region;
	uint64_t offset, end;

	if (tag >= LIBACP_CHUNK)
		return false;
	region = libacp.first_chunk + tag;
	end = __atomic_load_n(write ? &region->word_writes : &region->word_reads, __ATOMIC_ACQUIRE);
	offset = ga - region->ga;
	if (offset >= end)
		return false;
	*word = region->base + offset;
	return true;
}

/**
 * libacp_mem_open() - create the STag table of this rank, with its memory from the kernel
 *
 * Maps starter memory, heap and library page, and sets libacp.first_chunk and libacp.watch.
 *
 * Context: the thread that joins, before the process is a rank; libacp.fd has joined, and
 * libacp.rank and the members that depend on the layout of addresses are set.
 * Return: 0 or -errno; libacp_mem_close() must be called in both cases.
 */
int libacp_mem_open(void);

/**
 * libacp_mem_close() - unmap starter memory, heap and library page, and free the STag table
 *
 * Children get memory again that was registered with ACPX_ACCESS_DONTFORK.
 *
 * Context: the thread that leaves; no thread may use the memory or the table any more. Takes no
 * lock. Also without libacp_mem_open().
 */
void libacp_mem_close(void);

/* Return the watch structure at the end of a library page. */
static inline struct acp_watch *libacp_mem_watch(void *page)
{
	return (struct acp_watch *)(void *)((char *)page + ACP_WATCH_OFFSET);
}

/**
 * libacp_mem_own() - find own memory from the kernel
 * @stag: ACP_STAG_STARTER, ACP_STAG_HEAP or ACP_STAG_LIBRARY
 *
 * Context: any thread, between libacp_mem_open() and libacp_mem_close(); does not block.
 * Return: address of the memory, or NULL if it has size 0.
 */
void *libacp_mem_own(uint32_t stag);

/*
 * Map the starter memory, heap or library page of @rank. @size in bytes, rounded up to pages by the
 * kernel. Returns NULL with errno set on failure.
 */
void *libacp_mem_map(uint32_t stag, uint32_t rank, uint64_t size);
void libacp_mem_unmap(void *addr, uint64_t size);

/*
 * Read the sizes in bytes of starter memory, heap and library page of a rank on this node. Returns
 * 0 or -errno.
 */
int libacp_mem_sizes(uint32_t rank, uint64_t sizes[ACP_STAG_RESERVED]);

#pragma GCC visibility pop

#endif /* LIBACP_MEM_H */
