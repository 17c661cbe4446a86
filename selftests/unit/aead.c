// SPDX-License-Identifier: MIT
/* ChaCha20-Poly1305 and BLAKE2s: see aead.h. */
#include <string.h>

#include "aead.h"

static uint32_t left(uint32_t x, int by)
{
	return x << by | x >> (32 - by);
}

static uint32_t load(const uint8_t *p)
{
	return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24;
}

static void store(uint8_t *p, uint64_t x, int bytes)
{
	for (; bytes--; x >>= 8)
		*p++ = (uint8_t)x;
}

/* ---- ChaCha20 ---- */

static void quarter(uint32_t *s, int a, int b, int c, int d)
{
	s[a] += s[b];
	s[d] = left(s[d] ^ s[a], 16);
	s[c] += s[d];
	s[b] = left(s[b] ^ s[c], 12);
	s[a] += s[b];
	s[d] = left(s[d] ^ s[a], 8);
	s[c] += s[d];
	s[b] = left(s[b] ^ s[c], 7);
}

static void chacha_block(uint8_t out[64], const uint8_t key[32], const uint8_t nonce[12],
			 uint32_t counter)
{
	uint32_t first[16] = { 0x61707865, 0x3320646e, 0x79622d32, 0x6b206574 }, s[16];
	int i;

	for (i = 0; i < 8; i++)
		first[4 + i] = load(key + 4 * i);
	first[12] = counter;
	for (i = 0; i < 3; i++)
		first[13 + i] = load(nonce + 4 * i);
	memcpy(s, first, sizeof(s));
	for (i = 0; i < 10; i++) {
		quarter(s, 0, 4, 8, 12);
		quarter(s, 1, 5, 9, 13);
		quarter(s, 2, 6, 10, 14);
		quarter(s, 3, 7, 11, 15);
		quarter(s, 0, 5, 10, 15);
		quarter(s, 1, 6, 11, 12);
		quarter(s, 2, 7, 8, 13);
		quarter(s, 3, 4, 9, 14);
	}
	for (i = 0; i < 16; i++)
		store(out + 4 * i, s[i] + first[i], 4);
}

static void chacha(const uint8_t key[32], const uint8_t nonce[12], uint8_t *text, size_t len)
{
	uint8_t stream[64];
	size_t i;

	for (i = 0; i < len; i++) {
		if (i % 64 == 0)
			chacha_block(stream, key, nonce, 1 + (uint32_t)(i / 64));
		text[i] ^= stream[i % 64];
	}
}

/* ---- Poly1305: numbers as five limbs of 26 bits ---- */

#define LIMB	0x3ffffffu

struct poly {
	uint32_t r[5], h[5];
};

static void take_limbs(uint32_t l[5], const uint8_t p[16], uint32_t top)
{
	l[0] = load(p) & LIMB;
	l[1] = load(p + 3) >> 2 & LIMB;
	l[2] = load(p + 6) >> 4 & LIMB;
	l[3] = load(p + 9) >> 6 & LIMB;
	l[4] = load(p + 12) >> 8 | top << 24;
}

static void carry(uint64_t d[5], uint32_t h[5])
{
	uint64_t c = 0;
	int i;

	for (i = 0; i < 5; i++) {
		d[i] += c;
		c = d[i] >> 26;
		h[i] = d[i] & LIMB;
	}
	d[0] = h[0] + 5 * c;
	h[0] = d[0] & LIMB;
	h[1] += (uint32_t)(d[0] >> 26);
}

/* h = (h + block) * r mod 2^130 - 5 */
static void poly_block(struct poly *p, const uint8_t block[16])
{
	uint64_t d[5] = { 0 };
	uint32_t m[5];
	int i, j;

	take_limbs(m, block, 1);
	for (i = 0; i < 5; i++)
		p->h[i] += m[i];
	for (i = 0; i < 5; i++)
		for (j = 0; j < 5; j++)
			d[(i + j) % 5] += (uint64_t)p->h[i] * p->r[j] * (i + j < 5 ? 1 : 5);
	carry(d, p->h);
}

/* Process data, padded with zeros to whole blocks. */
static void poly_padded(struct poly *p, const uint8_t *data, size_t len)
{
	uint8_t block[16];
	size_t n;

	for (; len; data += n, len -= n) {
		n = len < 16 ? len : 16;
		memset(block, 0, sizeof(block));
		memcpy(block, data, n);
		poly_block(p, block);
	}
}

static void poly_end(struct poly *p, const uint8_t key[16], uint8_t out[16])
{
	uint64_t d[5], c, sum;
	uint32_t g[5];
	int i;

	for (i = 0; i < 2; i++) {
		int j;

		for (j = 0; j < 5; j++)
			d[j] = p->h[j];
		carry(d, p->h);
	}
	/* h, or h - p if that is not negative: h + 5 then reaches 2^130. */
	for (i = 0, c = 5; i < 5; i++) {
		c += p->h[i];
		g[i] = c & LIMB;
		c >>= 26;
	}
	if (c)
		memcpy(p->h, g, sizeof(g));
	for (i = 0, sum = 0; i < 4; i++) {
		static const int low[4] = { 0, 6, 12, 18 };

		sum += (uint32_t)(p->h[i] >> low[i] | (uint64_t)p->h[i + 1] << (26 - low[i]));
		sum += load(key + 4 * i);
		store(out + 4 * i, sum, 4);
		sum >>= 32;
	}
}

static void tag_of(const uint8_t key[32], const uint8_t nonce[12], const void *clear,
		   size_t clear_len, const void *text, size_t len, uint8_t tag[16])
{
	uint8_t once[64], lengths[16];
	struct poly p = { { 0 }, { 0 } };
	int i;

	chacha_block(once, key, nonce, 0);
	for (i = 3; i < 16; i += 4)
		once[i] &= 15;
	for (i = 4; i < 16; i += 4)
		once[i] &= 252;
	take_limbs(p.r, once, 0);
	store(lengths, clear_len, 8);
	store(lengths + 8, len, 8);
	poly_padded(&p, clear, clear_len);
	poly_padded(&p, text, len);
	poly_padded(&p, lengths, sizeof(lengths));
	poly_end(&p, once + 16, tag);
}

void aead_close(const uint8_t key[32], const uint8_t nonce[12], const void *clear,
		size_t clear_len, void *text, size_t len, uint8_t tag[16])
{
	chacha(key, nonce, text, len);
	tag_of(key, nonce, clear, clear_len, text, len, tag);
}

bool aead_open(const uint8_t key[32], const uint8_t nonce[12], const void *clear,
	       size_t clear_len, void *text, size_t len, const uint8_t tag[16])
{
	uint8_t right[16];

	tag_of(key, nonce, clear, clear_len, text, len, right);
	if (memcmp(right, tag, sizeof(right)))
		return false;
	chacha(key, nonce, text, len);
	return true;
}

/* ---- BLAKE2s ---- */

static const uint32_t iv[8] = {
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
	0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

static const uint8_t sigma[10][16] = {
	{ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
	{ 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3 },
	{ 11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4 },
	{ 7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8 },
	{ 9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13 },
	{ 2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9 },
	{ 12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11 },
	{ 13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10 },
	{ 6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5 },
	{ 10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0 },
};

static void mix(uint32_t *v, int a, int b, int c, int d, uint32_t x, uint32_t y)
{
	v[a] += v[b] + x;
	v[d] = left(v[d] ^ v[a], 16);
	v[c] += v[d];
	v[b] = left(v[b] ^ v[c], 20);
	v[a] += v[b] + y;
	v[d] = left(v[d] ^ v[a], 24);
	v[c] += v[d];
	v[b] = left(v[b] ^ v[c], 25);
}

static void compress(uint32_t h[8], const uint8_t block[64], uint64_t bytes, bool last)
{
	uint32_t v[16], m[16];
	int i, round;

	for (i = 0; i < 16; i++)
		m[i] = load(block + 4 * i);
	memcpy(v, h, sizeof(iv));
	memcpy(v + 8, iv, sizeof(iv));
	v[12] ^= (uint32_t)bytes;
	v[13] ^= (uint32_t)(bytes >> 32);
	v[14] ^= last ? ~0u : 0;
	for (round = 0; round < 10; round++) {
		const uint8_t *s = sigma[round];

		for (i = 0; i < 4; i++)
			mix(v, i, 4 + i, 8 + i, 12 + i, m[s[2 * i]], m[s[2 * i + 1]]);
		for (i = 0; i < 4; i++)
			mix(v, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4,
			    m[s[8 + 2 * i]], m[s[9 + 2 * i]]);
	}
	for (i = 0; i < 8; i++)
		h[i] ^= v[i] ^ v[8 + i];
}

void blake2s(uint8_t out[32], const void *key, size_t key_len, const void *data, size_t len)
{
	uint8_t block[64] = { 0 };
	const uint8_t *p = data;
	uint64_t bytes = key_len ? sizeof(block) : 0;
	uint32_t h[8];
	size_t n;
	int i;

	memcpy(h, iv, sizeof(h));
	h[0] ^= 0x01010000 | (uint32_t)key_len << 8 | 32;
	memcpy(block, key, key_len);
	if (key_len || !len)
		compress(h, block, bytes, !len);
	for (; len; p += n, len -= n) {
		n = len < sizeof(block) ? len : sizeof(block);
		memset(block, 0, sizeof(block));
		memcpy(block, p, n);
		bytes += n;
		compress(h, block, bytes, len == n);
	}
	for (i = 0; i < 8; i++)
		store(out + 4 * i, h[i], 4);
}
