/* SPDX-License-Identifier: MIT */
/*
 * Frames in a ring: a message is transferred by one access.
 *
 * The receiver has the ring. The sender has a copy of it, in which it writes its frames, and puts
 * them to the same place of the ring. After reading, the receiver tells the sender that it may
 * reuse the place.
 *
 * The bytes of a put arrive in any order. Therefore a frame begins with a word that is unique
 * because it contains the position of the frame, followed by a digest (XXH3, 64 bits) of that word
 * and the payload. The frame is complete when the digest matches.
 *
 *	position, size, kind | digest | payload
 *
 * A frame is contiguous. The rest at the end of the ring is filled by a frame to skip, or is a
 * single word, which is too short for a frame.
 *
 * Positions are words, counted from the start of the channel.
 */
#ifndef LIBACP_RING_H
#define LIBACP_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

#define LIBACP_RING_WORDS	4096u	/* 32 KiB; a power of two */
#define LIBACP_FRAME_BYTES	8192u	/* maximum payload */

enum libacp_frame_kind {
	LIBACP_FRAME_SKIP = 1,		/* skip to the end of the ring */
	LIBACP_FRAME_WHOLE = 2,		/* a message */
	LIBACP_FRAME_FIRST = 3,		/* size of a message that follows in parts */
	LIBACP_FRAME_PART = 4,
	LIBACP_FRAME_LOAN = 5,		/* size and address of a message to fetch */
	LIBACP_FRAME_CLOSE = 6,		/* nothing follows */
	LIBACP_FRAME_KINDS
};

/* A complete frame. */
struct libacp_frame {
	enum libacp_frame_kind kind;
	uint32_t size;			/* bytes of payload */
	uint32_t words;
	const void *payload;		/* in the ring */
};

/* Return the words of a frame with @size bytes of payload. */
static inline uint32_t libacp_frame_words(uint32_t size)
{
	return 2 + (size + 7) / 8;
}

/* Return the words from a position to the end of the ring. */
static inline uint32_t libacp_ring_left(uint64_t at)
{
	return LIBACP_RING_WORDS - (uint32_t)(at % LIBACP_RING_WORDS);
}

/* Return the words to skip so that a frame of @words does not cross the end of the ring. */
static inline uint32_t libacp_ring_skip(uint64_t at, uint32_t words)
{
	uint32_t left = libacp_ring_left(at);

	return left < words ? left : 0;
}

/*
 * Write a frame at a position with enough contiguous space, or one that skips the rest of the ring.
 * Returns its words.
 */
uint32_t libacp_ring_write(uint64_t *ring, uint64_t at, enum libacp_frame_kind kind,
			   const void *payload, uint32_t size);
uint32_t libacp_ring_write_skip(uint64_t *ring, uint64_t at);

/*
 * Check whether a complete frame has arrived at a position. If the rest of the ring is too short
 * for a frame, it is one to skip.
 */
bool libacp_ring_look(const uint64_t *ring, uint64_t at, struct libacp_frame *frame);

#pragma GCC visibility pop

#endif /* LIBACP_RING_H */
