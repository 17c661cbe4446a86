/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The shape of a strided copy: "count" blocks of "block" bytes, each end with
 * its own distance from block to block.
 *
 * Such a copy is a stream, all blocks end to end: it is cut, sent, sent again
 * and completed like any other copy.  Only its two ends look at the shape: the
 * source gathers a piece of the stream, the destination scatters it.
 */
#ifndef ACP_SHAPE_H
#define ACP_SHAPE_H

#include "port.h"
#include "acp_abi.h"
#include "acp_ga.h"

/* A shape is a number, as in ACP_BLOCKS. */
static inline u32 acp_shape_block(u64 shape)
{
	return (u32)shape;
}

static inline u32 acp_shape_count(u64 shape)
{
	return shape >> 32;
}

/* Bytes of the stream. */
static inline u64 acp_shape_size(u64 shape)
{
	return (u64)acp_shape_block(shape) * acp_shape_count(shape);
}

/* Is it one that needs a strided copy?  Others are copies of nothing, or of one block. */
static inline bool acp_shape_wanted(u64 shape)
{
	return acp_shape_block(shape) && acp_shape_count(shape) > 1;
}

/* Do blocks with this stride not overlap?  So a stream is no longer than memory is. */
static inline bool acp_shape_apart(u64 stride, u64 shape)
{
	return (stride >> 63 ? -stride : stride) >= acp_shape_block(shape);
}

/*
 * All blocks, the first one at "ga", lie within [*first, *first + *size).  False:
 * they reach beyond what the offset of an address can say.
 */
static inline bool acp_shape_span(const struct acp_ga_layout *l, u64 ga, u64 stride, u64 shape,
				  u64 *first, u64 *size)
{
	u64 offset = acp_ga_offset(l, ga), room = (1ULL << l->offset_bits) - offset, far;
	u32 block = acp_shape_block(shape);
	bool back = stride >> 63;

	/* From the first block to the last one, either way. */
	if (__builtin_mul_overflow(back ? -stride : stride, (u64)acp_shape_count(shape) - 1, &far))
		return false;
	if (block > room || far > (back ? offset : room - block))
		return false;
	*first = back ? ga - far : ga;
	*size = far + block;
	return true;
}

/* A way through the blocks of one end. */
struct acp_walk {
	u64 at;			/* address (or offset) of the next byte */
	u64 step;		/* from the end of a block to the next one */
	u32 block;
	u32 left;		/* bytes of this block */
};

static inline void acp_walk_begin(struct acp_walk *w, u64 at, u64 stride, u64 shape, u64 position)
{
	u32 block = acp_shape_block(shape);
	u64 i = position / block;

	w->block = block;
	w->left = block - (u32)(position - i * block);
	w->step = stride - block;
	w->at = at + i * stride + (block - w->left);
}

/* Bytes in one piece at w->at, of at most "most". */
static inline u32 acp_walk_run(const struct acp_walk *w, u64 most)
{
	return min_t(u64, w->left, most);
}

/* Go on by so many, no more than the run. */
static inline void acp_walk_skip(struct acp_walk *w, u32 n)
{
	w->at += n;
	w->left -= n;
	if (!w->left) {
		w->at += w->step;
		w->left = w->block;
	}
}

#endif /* ACP_SHAPE_H */
