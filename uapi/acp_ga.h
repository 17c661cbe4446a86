/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note OR MIT */
/*
 * Global addresses: the bit layout shared by kernel and library.
 *
 * From the most significant bit: rank + 1, color, STag, offset.  The widths
 * depend on the number of ranks of the job, so a global address (GA) is valid
 * in one job only.  The rank field of a valid address is never 0: ACP_GA_NULL
 * (0) and all other values below 2^(64 - rank bits) belong to no rank.
 *
 *	ranks		rank	color	STag	offset
 *	1		1	2	21	40
 *	4		3	2	20	39
 *	1,024		11	2	17	34
 *	1,048,576	21	2	7	34
 *	16,777,215	24	2	6	32
 *
 * The offset is relative to the page in which the region starts, so that a GA
 * has the same alignment as the memory that it names.  An address translation
 * key is the GA of offset 0 of its region.
 */
#ifndef ACP_GA_H
#define ACP_GA_H

#include <linux/types.h>

#define ACP_RANKS_MAX		((1u << 24) - 1)
#define ACP_COLOR_BITS		2
#define ACP_COLORS_MAX		(1u << ACP_COLOR_BITS)

/* STags of memory allocated by the kernel; registered regions follow. */
enum {
	ACP_STAG_STARTER	= 0,
	ACP_STAG_HEAP		= 1,
	ACP_STAG_LIBRARY	= 2,	/* one page for internal use of the library */
	ACP_STAG_RESERVED	= 3,
	ACP_STAG_USER		= 4,	/* first STag of a registration */
};

/* Widths in bits; rank + ACP_COLOR_BITS + stag + offset = 64. */
struct acp_ga_layout {
	__u32 nprocs;
	__u8 rank_bits;
	__u8 stag_bits;
	__u8 offset_bits;
	__u8 pad;
};

static inline struct acp_ga_layout acp_ga_layout(__u32 nprocs)
{
	struct acp_ga_layout l = { .nprocs = nprocs };
	unsigned int rest;

	while (nprocs >> l.rank_bits)
		l.rank_bits++;
	rest = 64 - ACP_COLOR_BITS - l.rank_bits;
	if (rest > 60)
		l.offset_bits = rest - 21;
	else if (rest >= 54)
		l.offset_bits = rest - 20;
	else if (rest >= 40)
		l.offset_bits = 34;
	else
		l.offset_bits = rest - 6;
	l.stag_bits = rest - l.offset_bits;
	return l;
}

static inline __u64 acp_ga_make(const struct acp_ga_layout *l, __u32 rank,
				__u32 color, __u32 stag, __u64 offset)
{
	return (((__u64)rank + 1) << (64 - l->rank_bits)) |
	       ((__u64)color << (l->stag_bits + l->offset_bits)) |
	       ((__u64)stag << l->offset_bits) | offset;
}

/* Is this the address of a rank of the job?  Regions are not checked. */
static inline int acp_ga_valid(const struct acp_ga_layout *l, __u64 ga)
{
	return ((ga >> (64 - l->rank_bits)) - 1) < l->nprocs;
}

static inline __u32 acp_ga_rank(const struct acp_ga_layout *l, __u64 ga)
{
	return (__u32)((ga >> (64 - l->rank_bits)) - 1);
}

static inline __u32 acp_ga_color(const struct acp_ga_layout *l, __u64 ga)
{
	return (ga >> (l->stag_bits + l->offset_bits)) & (ACP_COLORS_MAX - 1);
}

static inline __u32 acp_ga_stag(const struct acp_ga_layout *l, __u64 ga)
{
	return (ga >> l->offset_bits) & ((1u << l->stag_bits) - 1);
}

static inline __u64 acp_ga_offset(const struct acp_ga_layout *l, __u64 ga)
{
	return ga & ((1ULL << l->offset_bits) - 1);
}

#endif /* ACP_GA_H */
