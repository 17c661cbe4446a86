/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The descriptor of a strided copy: "count" blocks of "block" bytes. Each end has its own stride,
 * the distance from block to block.
 *
 * Such a copy is a stream, the concatenation of all blocks. It is cut, sent, retransmitted and
 * completed like any other copy. Only its two ends use the descriptor: the source gathers a piece
 * of the stream, the destination scatters it.
 */
#ifndef ACP_STRIDED_DESC_H
#define ACP_STRIDED_DESC_H

#include "port.h"
#include "acp_abi.h"
#include "acp_ga.h"

/**
 * acp_strided_block() - get the bytes of a block
 * @desc: descriptor, as made by ACP_BLOCKS
 *
 * Context: Any context.
 * Return: Bytes, may be 0.
 */
static inline u32 acp_strided_block(u64 desc)
{
	return (u32)desc;
}

static inline u32 acp_strided_count(u64 desc)
{
	return desc >> 32;
}

/**
 * acp_strided_size() - get the bytes of the stream
 * @desc: descriptor, as made by ACP_BLOCKS
 *
 * Context: Any context.
 * Return: Bytes, may be 0.
 */
static inline u64 acp_strided_size(u64 desc)
{
	return (u64)acp_strided_block(desc) * acp_strided_count(desc);
}

/* Does it need a strided copy? If not, it has no bytes or only one block. */
static inline bool acp_strided_wanted(u64 desc)
{
	return acp_strided_block(desc) && acp_strided_count(desc) > 1;
}

/* Do blocks with this stride not overlap? Then a stream is not longer than memory. */
static inline bool acp_strided_apart(u64 stride, u64 desc)
{
	return (stride >> 63 ? -stride : stride) >= acp_strided_block(desc);
}

/**
 * acp_strided_span() - get the range that contains all blocks of one end
 * @l: layout of global addresses of the job
 * @ga: global address of block 0
 * @stride: stride of this end, signed
 * @desc: descriptor; acp_strided_wanted() must be true
 * @first: set to the lowest address
 * @size: set to the bytes from there to the end of the highest block
 *
 * Context: Any context.
 * Return: False if the range extends beyond the offsets that an address can have.
 */
static inline bool acp_strided_span(const struct acp_ga_layout *l, u64 ga, u64 stride, u64 desc,
				    u64 *first, u64 *size)
{
	u64 offset = acp_ga_offset(l, ga), room = (1ULL << l->offset_bits) - offset, far;
	u32 block = acp_strided_block(desc);
	bool back = stride >> 63;

	/* From the first block to the last one, in either direction. */
	if (__builtin_mul_overflow(back ? -stride : stride, (u64)acp_strided_count(desc) - 1, &far))
		return false;
	if (block > room || far > (back ? offset : room - block))
		return false;
	*first = back ? ga - far : ga;
	*size = far + block;
	return true;
}

/* An iterator over the blocks of one end. */
struct acp_walk {
	u64 at;			/* address (or offset) of the next byte */
	u64 step;		/* from the end of a block to the start of the next one */
	u32 block;
	u32 left;		/* bytes left in this block */
};

/**
 * acp_walk_begin() - set an iterator to a position of the stream
 * @w: iterator to initialize
 * @at: address or offset of block 0
 * @stride: stride of this end, signed
 * @desc: descriptor; acp_strided_wanted() must be true
 * @position: byte of the stream
 *
 * Context: Any context.
 */
static inline void acp_walk_begin(struct acp_walk *w, u64 at, u64 stride, u64 desc, u64 position)
{
	u32 block = acp_strided_block(desc);
	u64 i = position / block;

	w->block = block;
	w->left = block - (u32)(position - i * block);
	w->step = stride - block;
	w->at = at + i * stride + (block - w->left);
}

/**
 * acp_walk_run() - get the contiguous bytes at &acp_walk.at
 * @w: iterator
 * @most: upper limit
 *
 * Context: Any context.
 * Return: Bytes, at most @most.
 */
static inline u32 acp_walk_run(const struct acp_walk *w, u64 most)
{
	return min_t(u64, w->left, most);
}

/**
 * acp_walk_skip() - advance an iterator
 * @w: iterator
 * @n: bytes, at most what acp_walk_run() returns
 *
 * Context: Any context.
 */
static inline void acp_walk_skip(struct acp_walk *w, u32 n)
{
	w->at += n;
	w->left -= n;
	if (!w->left) {
		w->at += w->step;
		w->left = w->block;
	}
}

#endif /* ACP_STRIDED_DESC_H */
