/* SPDX-License-Identifier: MIT */
/* Blocks of buffers, and the pieces in which they are sent. */
#ifndef LIBACP_PIECES_H
#define LIBACP_PIECES_H

#include <stddef.h>
#include <stdint.h>

#include "acp.h"

#define LIBACP_LINE	64u		/* bytes; pieces end at multiples of it */
#define LIBACP_PIECES_MAX	64u	/* of a block */

/* Return the size of the pieces of a block: at least @least bytes, but for the last one. */
static inline size_t libacp_piece_size(size_t block, size_t least)
{
	const size_t share = block / LIBACP_PIECES_MAX + (block % LIBACP_PIECES_MAX != 0);

	if (share <= least)
		return least;
	return share + (LIBACP_LINE - share % LIBACP_LINE) % LIBACP_LINE;
}

/* Return how many pieces a block has: 0 if it has no bytes. */
static inline size_t libacp_piece_count(size_t block, size_t piece)
{
	return block / piece + (block % piece != 0);
}

/* Return piece q of a block, as a block itself. */
static inline struct acpx_block libacp_piece_at(const struct acpx_block *block, size_t piece,
						size_t q)
{
	const size_t begin = q * piece, left = block->size - begin;

	return (struct acpx_block){ block->offset + begin, left < piece ? left : piece };
}

/**
 * libacp_blocks_join() - join blocks that follow each other
 * @to: receives them; has room for @count
 * @blocks: the blocks
 * @count: their number
 *
 * Return: how many there are; those without bytes are left out.
 */
static inline size_t libacp_blocks_join(struct acpx_block *to, const struct acpx_block *blocks,
					size_t count)
{
	size_t i, n = 0;

	for (i = 0; i < count; i++) {
		if (!blocks[i].size)
			continue;
		if (n && to[n - 1].offset + to[n - 1].size == blocks[i].offset)
			to[n - 1].size += blocks[i].size;
		else
			to[n++] = blocks[i];
	}
	return n;
}

/* Return where the last one ends, in bytes; SIZE_MAX if that is not a number. */
static inline size_t libacp_blocks_end(const struct acpx_block *blocks, size_t count)
{
	size_t i, end = 0;

	for (i = 0; i < count; i++) {
		if (blocks[i].offset > SIZE_MAX - blocks[i].size)
			return SIZE_MAX;
		if (blocks[i].size && blocks[i].offset + blocks[i].size > end)
			end = blocks[i].offset + blocks[i].size;
	}
	return end;
}

#endif /* LIBACP_PIECES_H */
