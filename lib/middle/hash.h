/* SPDX-License-Identifier: MIT */
/*
 * SipHash-2-4 (Aumasson, Bernstein 2012), which determines the place of a key in a set, multiset or
 * map. All ranks of a job must compute the same value, so the hash key is the constant
 * LIBACP_HASH_KEY, and words are read as little-endian on all machines.
 */
#ifndef LIBACP_HASH_H
#define LIBACP_HASH_H

#include <stddef.h>
#include <stdint.h>

struct libacp_hash_key {
	uint64_t k0, k1;
};

/* The first 128 bits of the fraction of pi. */
#define LIBACP_HASH_KEY	((struct libacp_hash_key){ 0x243f6a8885a308d3, 0x13198a2e03707344 })

struct libacp_hash_state {
	uint64_t v0, v1, v2, v3;
};

static inline uint64_t libacp_hash_rotate(uint64_t x, unsigned int by)
{
	return x << by | x >> (64 - by);
}

static inline void libacp_hash_rounds(struct libacp_hash_state *s, unsigned int rounds)
{
	for (; rounds; rounds--) {
		s->v0 += s->v1;
		s->v2 += s->v3;
		s->v1 = libacp_hash_rotate(s->v1, 13) ^ s->v0;
		s->v3 = libacp_hash_rotate(s->v3, 16) ^ s->v2;
		s->v0 = libacp_hash_rotate(s->v0, 32);
		s->v2 += s->v1;
		s->v0 += s->v3;
		s->v1 = libacp_hash_rotate(s->v1, 17) ^ s->v2;
		s->v3 = libacp_hash_rotate(s->v3, 21) ^ s->v0;
		s->v2 = libacp_hash_rotate(s->v2, 32);
	}
}

static inline void libacp_hash_word(struct libacp_hash_state *s, uint64_t word)
{
	s->v3 ^= word;
	libacp_hash_rounds(s, 2);
	s->v0 ^= word;
}

/* Read count <= 8 bytes as a little-endian number. */
static inline uint64_t libacp_hash_load(const unsigned char *bytes, size_t count)
{
	uint64_t word = 0;
	size_t i;

	for (i = 0; i < count; i++)
		word |= (uint64_t)bytes[i] << (8 * i);
	return word;
}

/**
 * libacp_hash() - compute the hash of some bytes
 * @key: the hash key, LIBACP_HASH_KEY if other ranks must compute the same value
 * @data: the bytes
 * @size: number of bytes
 *
 * Context: any thread; does not block.
 * Return: the hash, 64 bits.
 */
static inline uint64_t libacp_hash(struct libacp_hash_key key, const void *data, size_t size)
{
	struct libacp_hash_state s = {
		.v0 = key.k0 ^ 0x736f6d6570736575, .v1 = key.k1 ^ 0x646f72616e646f6d,
		.v2 = key.k0 ^ 0x6c7967656e657261, .v3 = key.k1 ^ 0x7465646279746573,
	};
	const unsigned char *bytes = data;
	size_t left = size;

	for (; left >= 8; left -= 8, bytes += 8)
		libacp_hash_word(&s, libacp_hash_load(bytes, 8));
	libacp_hash_word(&s, (uint64_t)size << 56 | libacp_hash_load(bytes, left));
	s.v2 ^= 0xff;
	libacp_hash_rounds(&s, 4);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

#endif /* LIBACP_HASH_H */
