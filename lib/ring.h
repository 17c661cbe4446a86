/* SPDX-License-Identifier: MIT */
/*
 * Frames in a ring: how a message travels in one access.
 *
 * The receiver has the ring, all zero where nothing was received; the sender
 * has a copy of it in which it makes its frames, and puts them to the same
 * place there.  A put says nothing about the order in which its bytes arrive.
 * So no byte of a frame is zero: a frame is there when its last byte is, and
 * every other.  After reading, the receiver clears the bytes, and tells the
 * sender that it may use them again.
 *
 * A frame is a kind, the size of its payload in two bytes of 7 bits, and the
 * payload in pieces of up to LIBACP_PIECE bytes.  In front of each is a number
 * that does not occur in it, with which all its bytes were xored.  Frames begin
 * at words; what is over at the end is filled with 0xff.
 *
 *	kind | 0x80 | size % 128 | 0x80 | size / 128 | mask | piece | mask | piece ...
 *
 * Positions are words, counted from the beginning of the channel.
 */
#ifndef LIBACP_RING_H
#define LIBACP_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

#define LIBACP_RING_WORDS	2048u	/* 16 KiB; a power of two */
#define LIBACP_FRAME_BYTES	4096u	/* of payload, at most */
#define LIBACP_PIECE		254u	/* one of 255 numbers is then free */

enum libacp_frame_kind {
	LIBACP_FRAME_WHOLE = 1,		/* a message */
	LIBACP_FRAME_FIRST = 2,		/* the size of one that follows in parts */
	LIBACP_FRAME_PART = 3,
	LIBACP_FRAME_LOAN = 4,		/* size and address of one: fetch it */
	LIBACP_FRAME_CLOSE = 5,		/* nothing follows */
	LIBACP_FRAME_KINDS
};

/* A frame that is there. */
struct libacp_frame {
	enum libacp_frame_kind kind;
	uint32_t size;			/* bytes of payload */
	uint32_t words;
};

/* Words of a frame with so many bytes of payload. */
static inline uint32_t libacp_frame_words(uint32_t size)
{
	return (3 + size + (size + LIBACP_PIECE - 1) / LIBACP_PIECE + 7) / 8;
}

/* Make a frame at a position where there is room; returns its words. */
uint32_t libacp_ring_write(uint64_t *ring, uint64_t at, enum libacp_frame_kind kind,
			   const void *payload, uint32_t size);

/*
 * Is there a whole frame?  *seen counts the words of it that were seen before,
 * 0 for a new position.  1, 0, or -EPROTO for something that is no frame.
 */
int libacp_ring_look(const uint64_t *ring, uint64_t at, uint32_t *seen,
		     struct libacp_frame *frame);

/* The first "size" bytes of the payload of a frame that is there. */
void libacp_ring_read(const uint64_t *ring, uint64_t at, const struct libacp_frame *frame,
		      void *payload, uint32_t size);

/* Make a frame's place all zero. */
void libacp_ring_clear(uint64_t *ring, uint64_t at, uint32_t words);

#pragma GCC visibility pop

#endif /* LIBACP_RING_H */
