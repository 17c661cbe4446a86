// SPDX-License-Identifier: MIT
/* Tags of frames with long payloads: see longtag.h. */
#include <string.h>

#include "longtag.h"

#define HEAD_MAX	200
#define BLOCKS_MAX	64

/* Read @size bytes as a little-endian number, padded with zeros to 8. */
static uint64_t number(const uint8_t *p, size_t size)
{
	uint64_t x = 0;
	size_t i;

	for (i = 0; i < size && i < 8; i++)
		x |= (uint64_t)p[i] << 8 * i;
	return x;
}

static void store(uint8_t *p, uint64_t x)
{
	size_t i;

	for (i = 0; i < 8; i++)
		p[i] = (uint8_t)(x >> 8 * i);
}

static uint64_t key_word(const struct siphash_key *key, uint64_t i)
{
	uint8_t of[16] = "acp-nh";

	store(of + 8, i);
	return siphash24(key, of, sizeof(of));
}

/* Word i of a block. */
static uint64_t word(const uint8_t *block, size_t size, size_t i)
{
	return 8 * i < size ? number(block + 8 * i, size - 8 * i) : 0;
}

/* Schoolbook multiplication by halves. */
static void multiply(uint64_t a, uint64_t b, uint64_t product[2])
{
	uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
	uint64_t middle = (al * bl >> 32) + (uint32_t)(ah * bl) + (uint32_t)(al * bh);

	product[0] = a * b;
	product[1] = ah * bh + (ah * bl >> 32) + (al * bh >> 32) + (middle >> 32);
}

void longtag_nh(const struct siphash_key *key, const void *block, size_t size, uint64_t sum[2])
{
	uint64_t product[2];
	size_t i;

	sum[0] = 0;
	sum[1] = 0;
	for (i = 0; 8 * i < size; i += 2) {
		multiply(word(block, size, i) + key_word(key, i),
			 word(block, size, i + 1) + key_word(key, i + 1), product);
		sum[0] += product[0];
		sum[1] += product[1] + (sum[0] < product[0]);
	}
}

uint64_t longtag(const struct siphash_key *key, const void *head, size_t head_size,
		 const void *payload, size_t size)
{
	uint8_t all[HEAD_MAX + 16 * BLOCKS_MAX];
	const uint8_t *p = payload;
	size_t n = head_size, part;
	uint64_t sum[2];

	memcpy(all, head, head_size);
	for (; size; p += part, size -= part) {
		part = size < LONGTAG_BLOCK ? size : LONGTAG_BLOCK;
		longtag_nh(key, p, part, sum);
		store(all + n, sum[0]);
		store(all + n + 8, sum[1]);
		n += 16;
	}
	return siphash24(key, all, n);
}
