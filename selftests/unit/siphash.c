// SPDX-License-Identifier: MIT
/* SipHash-2-4: see siphash.h. */
#include "siphash.h"

static inline uint64_t rotate(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

/* Read bytes 0 .. count - 1 as a little-endian number. */
static inline uint64_t load(const uint8_t *p, size_t count)
{
	uint64_t x = 0;

	while (count--)
		x = x << 8 | p[count];
	return x;
}

static inline void rounds(uint64_t v[4], int count)
{
	uint64_t a = v[0], b = v[1], c = v[2], d = v[3];

	while (count--) {
		a += b;
		c += d;
		b = rotate(b, 13) ^ a;
		d = rotate(d, 16) ^ c;
		a = rotate(a, 32);
		c += b;
		a += d;
		b = rotate(b, 17) ^ c;
		d = rotate(d, 21) ^ a;
		c = rotate(c, 32);
	}
	v[0] = a;
	v[1] = b;
	v[2] = c;
	v[3] = d;
}

static inline void absorb(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	rounds(v, 2);
	v[0] ^= word;
}

struct siphash_key siphash_key_of(const uint8_t bytes[16])
{
	return (struct siphash_key){ { load(bytes, 8), load(bytes + 8, 8) } };
}

uint64_t siphash24(const struct siphash_key *key, const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t v[4] = {
		0x736f6d6570736575 ^ key->k[0], 0x646f72616e646f6d ^ key->k[1],
		0x6c7967656e657261 ^ key->k[0], 0x7465646279746573 ^ key->k[1],
	};
	size_t left;

	for (left = len; left >= 8; left -= 8, p += 8)
		absorb(v, load(p, 8));
	absorb(v, (uint64_t)len << 56 | load(p, left));
	v[2] ^= 0xff;
	rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
