/* SPDX-License-Identifier: MIT */
/* Layout of a heap, which is described in heap.c. Offsets count from the first byte of the heap. */
#ifndef LIBACP_HEAP_H
#define LIBACP_HEAP_H

#include "core/internal.h"
#include "middle/txlock.h"

#define LIBACP_HEAP_STORES	12u

struct libacp_heap_head {
	uint64_t txlock[LIBACP_TXLOCK_BYTES(LIBACP_HEAP_STORES) / 8];
	uint64_t size;		/* of the heap; a tag, as the next four */
	uint64_t first;		/* list: link of the first free area */
	uint64_t link;		/* copy of that link */
	uint64_t follower;	/* copy of the head behind that area; 0: unknown */
	uint64_t foot;		/* copy of the foot of that area */
	uint64_t used;		/* bytes in allocated areas */
	uint64_t blocks;	/* number of allocated areas */
	uint64_t begin;		/* foot of a sentinel: no area precedes the first one */
};

#define LIBACP_HEAP_AREAS	sizeof(struct libacp_heap_head)	/* offset of the first area */
#define LIBACP_HEAP_AREA_MIN	24u
#define LIBACP_HEAP_MIN		(LIBACP_HEAP_AREAS + LIBACP_HEAP_AREA_MIN + 8)

/* Kind of a tag, 3 bits as in ACP 3.0.0. */
enum libacp_heap_kind {
	LIBACP_HEAP_LINK = 0,		/* offset or size, not of an area */
	LIBACP_HEAP_USED = 3,
	LIBACP_HEAP_FREE = 5,
	LIBACP_HEAP_EXTENSION = 6	/* free, not in the list: belongs to the area before */
};

#define LIBACP_HEAP_VALUE_MASK	(((1ull << 40) - 1) & ~7ull)

/* Position of a foot for its tag, which distinguishes it from a head at the same position. */
#define LIBACP_HEAP_FOOT(at)	((at) + 1)

/* Return a tag. Its upper 24 bits are a Fibonacci hash of its position and contents. */
static inline uint64_t libacp_heap_tag(uint64_t at, uint64_t value, enum libacp_heap_kind kind)
{
	uint64_t low = value | kind;

	return low | ((low ^ at * 0xff51afd7ed558ccdull) * 0x9e3779b97f4a7c15ull) >> 40 << 40;
}

/* Usage of a heap in bytes. size 0: no heap. */
struct libacp_heap_use {
	uint64_t size, used;
};

/* Reasons for which an address cannot be freed. */
enum libacp_heap_fault {
	LIBACP_HEAP_ELSEWHERE,		/* in no heap */
	LIBACP_HEAP_NO_BLOCK,
	LIBACP_HEAP_FREED		/* freed already */
};

/**
 * libacp_heap_take() - allocate a block, as acp_malloc() but without messages
 * @size: size of the block in bytes
 * @rank: rank in whose heap to allocate it
 *
 * Context: any thread; may block, as it takes the lock of the heap.
 * Return: global address of the block, or ACP_GA_NULL with errno set.
 */
acp_ga_t libacp_heap_take(size_t size, int rank);

/* ---- heap_report.c ---- */

/* ACP_DEBUG=1: report program errors that are otherwise ignored. */
extern bool libacp_debug;

/* Report, once per process, that a block of @wanted bytes could not be allocated on @rank. */
void libacp_heap_tell_full(int rank, uint64_t wanted, const struct libacp_heap_use *use);

/* Report that @ga could not be freed. */
void libacp_heap_tell_free(acp_ga_t ga, enum libacp_heap_fault fault);

static inline uint64_t libacp_heap_value(uint64_t tag)
{
	return tag & LIBACP_HEAP_VALUE_MASK;
}

static inline enum libacp_heap_kind libacp_heap_kind(uint64_t tag)
{
	return (enum libacp_heap_kind)(tag & 7);
}

/* True if this tag was written for that position. */
static inline bool libacp_heap_tag_right(uint64_t at, uint64_t tag)
{
	return tag == libacp_heap_tag(at, libacp_heap_value(tag), libacp_heap_kind(tag));
}

#pragma GCC visibility push(hidden)

/**
 * libacp_heap_open() - initialize the heap of this rank
 *
 * If the heap is too small for any block, its first word becomes LIBACP_TXLOCK_NEVER; if it is too
 * small for that word, nothing is written.
 *
 * Context: the thread that joins, after the process became a rank and before the first barrier, so
 * that no other rank uses the heap; does not block.
 * Return: 0, or -EFAULT if the heap cannot be accessed.
 */
int libacp_heap_open(void);

/* ---- heap_check.c ---- */

/* Check all invariants of a heap that no other thread changes. Returns 0 or -EUCLEAN. */
int libacp_heap_verify(const char *bytes, uint64_t size);

#pragma GCC visibility pop

#endif /* LIBACP_HEAP_H */
