/* SPDX-License-Identifier: MIT */
/*
 * The layout of a heap; what it means is in heap.c.  Offsets count from the
 * first byte of the heap.
 */
#ifndef LIBACP_HEAP_H
#define LIBACP_HEAP_H

#include "middle.h"
#include "section.h"

#define LIBACP_HEAP_STORES	12u

struct libacp_heap_head {
	uint64_t section[LIBACP_SECTION_BYTES(LIBACP_HEAP_STORES) / 8];
	uint64_t size;		/* of the heap; a tag, as the next four */
	uint64_t first;		/* list: the link of the first free area */
	uint64_t link;		/* what belongs there, ... */
	uint64_t follower;	/* ... a copy of the head behind that area; 0: nothing is known */
	uint64_t foot;		/* ... its foot */
	uint64_t used;		/* bytes in allocated areas */
	uint64_t blocks;	/* their number */
	uint64_t begin;		/* the foot of a sentinel: no area is in front of the first */
};

#define LIBACP_HEAP_AREAS	sizeof(struct libacp_heap_head)	/* offset of the first area */
#define LIBACP_HEAP_AREA_MIN	24u
#define LIBACP_HEAP_MIN		(LIBACP_HEAP_AREAS + LIBACP_HEAP_AREA_MIN + 8)

/* What a tag tells: 3 bits, as in ACP 3.0.0. */
enum libacp_heap_kind {
	LIBACP_HEAP_LINK = 0,		/* an offset or a size, not of an area */
	LIBACP_HEAP_USED = 3,
	LIBACP_HEAP_FREE = 5,
	LIBACP_HEAP_EXTENSION = 6	/* free, not in the list: belongs to the area before */
};

#define LIBACP_HEAP_VALUE_MASK	(((1ull << 40) - 1) & ~7ull)

/* A foot is told from a head at the same place, which is what this makes of the offset. */
#define LIBACP_HEAP_FOOT(at)	((at) + 1)

/* The upper 24 bits of a tag: Fibonacci hashing of where it stands and what it says. */
static inline uint64_t libacp_heap_tag(uint64_t at, uint64_t value, enum libacp_heap_kind kind)
{
	uint64_t low = value | kind;

	return low | ((low ^ at * 0xff51afd7ed558ccdull) * 0x9e3779b97f4a7c15ull) >> 40 << 40;
}

static inline uint64_t libacp_heap_value(uint64_t tag)
{
	return tag & LIBACP_HEAP_VALUE_MASK;
}

static inline enum libacp_heap_kind libacp_heap_kind(uint64_t tag)
{
	return (enum libacp_heap_kind)(tag & 7);
}

/* Is this a tag that was written for that place? */
static inline bool libacp_heap_tag_right(uint64_t at, uint64_t tag)
{
	return tag == libacp_heap_tag(at, libacp_heap_value(tag), libacp_heap_kind(tag));
}

#pragma GCC visibility push(hidden)

/* The own heap, empty.  0 or -errno. */
int libacp_heap_open(void);

/* ---- census.c ---- */

/* All invariants of a heap, whose bytes nobody changes: 0 or -EUCLEAN. */
int libacp_heap_verify(const char *bytes, uint64_t size);

#pragma GCC visibility pop

#endif /* LIBACP_HEAP_H */
