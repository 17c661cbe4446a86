/* SPDX-License-Identifier: MIT */
/*
 * Frames in a ring: how a message travels in one access.
 *
 * The receiver has the ring; the sender has a copy of it in which it makes its
 * frames, and puts them to the same place there.  After reading, the receiver
 * tells the sender that it may use the place again.
 *
 * A put says nothing about the order in which its bytes arrive.  So a frame
 * begins with a word that can be there only once, for it has its position in
 * it, and a digest (XXH3, 64 bits) of that word and the payload: the frame is
 * there when they agree.
 *
 *	position, size, kind | digest | payload
 *
 * A frame is in one piece: what is left where the ring ends is one to skip, or
 * a single word, where none can be.
 *
 * Positions are words, counted from the beginning of the channel.
 */
#ifndef LIBACP_RING_H
#define LIBACP_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

#define LIBACP_RING_WORDS	4096u	/* 32 KiB; a power of two */
#define LIBACP_FRAME_BYTES	8192u	/* of payload, at most */

enum libacp_frame_kind {
	LIBACP_FRAME_SKIP = 1,		/* to the end of the ring */
	LIBACP_FRAME_WHOLE = 2,		/* a message */
	LIBACP_FRAME_FIRST = 3,		/* the size of one that follows in parts */
	LIBACP_FRAME_PART = 4,
	LIBACP_FRAME_LOAN = 5,		/* size and address of one: fetch it */
	LIBACP_FRAME_CLOSE = 6,		/* nothing follows */
	LIBACP_FRAME_KINDS
};

/* A frame that is there. */
struct libacp_frame {
	enum libacp_frame_kind kind;
	uint32_t size;			/* bytes of payload */
	uint32_t words;
	const void *payload;		/* in the ring */
};

/* Words of a frame with so many bytes of payload. */
static inline uint32_t libacp_frame_words(uint32_t size)
{
	return 2 + (size + 7) / 8;
}

/* Words from a position to the end of the ring. */
static inline uint32_t libacp_ring_left(uint64_t at)
{
	return LIBACP_RING_WORDS - (uint32_t)(at % LIBACP_RING_WORDS);
}

/* Words to skip so that a frame of so many does not meet the end of the ring. */
static inline uint32_t libacp_ring_skip(uint64_t at, uint32_t words)
{
	uint32_t left = libacp_ring_left(at);

	return left < words ? left : 0;
}

/*
 * Make a frame at a position where there is room in one piece, or one that
 * skips the rest of the ring; returns its words.
 */
uint32_t libacp_ring_write(uint64_t *ring, uint64_t at, enum libacp_frame_kind kind,
			   const void *payload, uint32_t size);
uint32_t libacp_ring_write_skip(uint64_t *ring, uint64_t at);

/* Is there a whole frame?  One to skip if there can be none. */
bool libacp_ring_look(const uint64_t *ring, uint64_t at, struct libacp_frame *frame);

#pragma GCC visibility pop

#endif /* LIBACP_RING_H */
