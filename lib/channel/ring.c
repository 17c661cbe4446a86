// SPDX-License-Identifier: MIT
/* Frames in a ring: see ring.h. */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "channel/ring.h"

#define KIND_BITS	4
#define SIZE_BITS	16
#define POSITION_SHIFT	(KIND_BITS + SIZE_BITS)

static uint64_t make_head(uint64_t at, enum libacp_frame_kind kind, uint32_t size)
{
	return at << POSITION_SHIFT | (uint64_t)size << KIND_BITS | kind;
}

static uint64_t digest(uint64_t head, const void *payload, uint32_t size)
{
	return XXH3_64bits_withSeed(payload, size, head);
}

static uint64_t *word_at(uint64_t *ring, uint64_t at)
{
	return &ring[at % LIBACP_RING_WORDS];
}

uint32_t libacp_ring_write(uint64_t *ring, uint64_t at, enum libacp_frame_kind kind,
			   const void *payload, uint32_t size)
{
	uint64_t *words = word_at(ring, at);

	if (size)
		memcpy(&words[2], payload, size);
	words[0] = make_head(at, kind, size);
	words[1] = digest(words[0], &words[2], size);
	return libacp_frame_words(size);
}

uint32_t libacp_ring_write_skip(uint64_t *ring, uint64_t at)
{
	uint32_t left = libacp_ring_left(at);

	if (left >= libacp_frame_words(0))
		libacp_ring_write(ring, at, LIBACP_FRAME_SKIP, NULL, 0);
	return left;
}

/* Decode a head. True if it is valid for a frame at that position. */
static bool read_head(uint64_t head, uint64_t at, struct libacp_frame *frame)
{
	const uint32_t kind = head % (1u << KIND_BITS), left = libacp_ring_left(at);

	frame->kind = kind;
	frame->size = (uint32_t)(head >> KIND_BITS) % (1u << SIZE_BITS);
	frame->words = kind == LIBACP_FRAME_SKIP ? left : libacp_frame_words(frame->size);
	return head >> POSITION_SHIFT == at && kind && kind < LIBACP_FRAME_KINDS &&
	       frame->size <= LIBACP_FRAME_BYTES && libacp_frame_words(frame->size) <= left;
}

/* An invalid head may have arrived partially. */
bool libacp_ring_look(const uint64_t *ring, uint64_t at, struct libacp_frame *frame)
{
	const uint64_t *words = &ring[at % LIBACP_RING_WORDS];
	uint64_t head;

	if (libacp_ring_left(at) < libacp_frame_words(0)) {
		*frame = (struct libacp_frame){ .kind = LIBACP_FRAME_SKIP, .words = 1 };
		return true;
	}
	head = __atomic_load_n(&words[0], __ATOMIC_ACQUIRE);
	if (!read_head(head, at, frame))
		return false;
	frame->payload = &words[2];
	return __atomic_load_n(&words[1], __ATOMIC_ACQUIRE) ==
	       digest(head, frame->payload, frame->size);
}
