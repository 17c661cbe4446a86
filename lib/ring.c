// SPDX-License-Identifier: MIT
/* Frames in a ring: see ring.h. */
#include <errno.h>
#include <string.h>

#include "ring.h"

#define MASK		(LIBACP_RING_WORDS - 1)
#define HEAD		3u		/* bytes before the first piece */
#define ONES		0x0101010101010101ull
#define FRAME_WORDS	(LIBACP_FRAME_BYTES / 8 + LIBACP_FRAME_BYTES / LIBACP_PIECE / 8 + 3)

/* A frame in a row. */
union row {
	uint64_t words[FRAME_WORDS];
	uint8_t bytes[FRAME_WORDS * 8];
};

static bool has_zero_byte(uint64_t word)
{
	return (word - ONES) & ~word & ONES << 7;
}

/* A number other than 0 that is not among at most 254. */
static uint8_t absent(const uint8_t *bytes, uint32_t size)
{
	uint64_t present[4] = { 1, 0, 0, 0 };
	uint32_t i;

	for (i = 0; i < size; i++)
		present[bytes[i] >> 6] |= 1ull << (bytes[i] & 63);
	for (i = 0; !~present[i]; i++)
		;
	return (uint8_t)(i * 64 + (uint32_t)__builtin_ctzll(~present[i]));
}

static void mix(uint8_t *to, const uint8_t *from, uint32_t size, uint8_t mask)
{
	uint32_t i;

	for (i = 0; i < size; i++)
		to[i] = from[i] ^ mask;
}

static uint8_t *write_pieces(uint8_t *to, const uint8_t *from, uint32_t size)
{
	uint32_t n;

	for (; size; size -= n, from += n) {
		n = size < LIBACP_PIECE ? size : LIBACP_PIECE;
		*to = absent(from, n);
		mix(to + 1, from, n, *to);
		to += 1 + n;
	}
	return to;
}

uint32_t libacp_ring_write(uint64_t *ring, uint64_t at, enum libacp_frame_kind kind,
			   const void *payload, uint32_t size)
{
	uint32_t words = libacp_frame_words(size), i;
	uint8_t *end;
	union row row;

	row.bytes[0] = (uint8_t)kind;
	row.bytes[1] = (uint8_t)(0x80 | size % 128);
	row.bytes[2] = (uint8_t)(0x80 | size / 128);
	end = write_pieces(row.bytes + HEAD, payload, size);
	memset(end, 0xff, words * 8 - (size_t)(end - row.bytes));
	for (i = 0; i < words; i++)
		ring[(at + i) & MASK] = row.words[i];
	return words;
}

static bool is_there(const uint64_t *ring, uint64_t at)
{
	return !has_zero_byte(__atomic_load_n(&ring[at & MASK], __ATOMIC_ACQUIRE));
}

int libacp_ring_look(const uint64_t *ring, uint64_t at, uint32_t *seen, struct libacp_frame *frame)
{
	uint8_t head[8];

	if (!*seen && !is_there(ring, at))
		return 0;
	memcpy(head, &ring[at & MASK], sizeof(head));
	frame->kind = head[0];
	frame->size = (head[1] & 127u) + (head[2] & 127u) * 128;
	frame->words = libacp_frame_words(frame->size);
	if (frame->kind >= LIBACP_FRAME_KINDS || frame->size > LIBACP_FRAME_BYTES)
		return -EPROTO;
	if (!*seen)
		*seen = 1;
	for (; *seen < frame->words; ++*seen)
		if (!is_there(ring, at + *seen))
			return 0;
	return 1;
}

void libacp_ring_read(const uint64_t *ring, uint64_t at, const struct libacp_frame *frame,
		      void *payload, uint32_t size)
{
	const uint8_t *from;
	uint8_t *to = payload;
	union row row;
	uint32_t i, n;

	for (i = 0; i < frame->words; i++)
		row.words[i] = ring[(at + i) & MASK];
	from = row.bytes + HEAD;
	for (; size; size -= n, to += n) {
		n = size < LIBACP_PIECE ? size : LIBACP_PIECE;
		mix(to, from + 1, n, *from);
		from += 1 + LIBACP_PIECE;
	}
}

void libacp_ring_clear(uint64_t *ring, uint64_t at, uint32_t words)
{
	uint32_t i;

	for (i = 0; i < words; i++)
		__atomic_store_n(&ring[(at + i) & MASK], 0, __ATOMIC_RELAXED);
}
