// SPDX-License-Identifier: MIT
/* AES-256-GCM: see gcm.h. */
#include <string.h>

#include "gcm.h"

#define ROUNDS	14

struct aes {
	uint8_t keys[ROUNDS + 1][16];
};

/* ---- AES ---- */

/* Multiply by x in the field of AES. */
static uint8_t twice(uint8_t a)
{
	return (uint8_t)(a << 1 ^ (a & 0x80 ? 0x1b : 0));
}

static uint8_t times(uint8_t a, uint8_t b)
{
	uint8_t sum = 0;

	for (; b; b >>= 1, a = twice(a))
		if (b & 1)
			sum ^= a;
	return sum;
}

static uint8_t turn(uint8_t a, int by)
{
	return (uint8_t)(a << by | a >> (8 - by));
}

/* The S-box: the inverse, a^254, followed by an affine map. */
static uint8_t substitute(uint8_t a)
{
	static uint8_t box[256];
	uint8_t inverse = 1;
	int i;

	if (box[a])
		return box[a];
	for (i = 0; i < 254; i++)
		inverse = times(inverse, a);
	box[a] = inverse ^ turn(inverse, 1) ^ turn(inverse, 2) ^ turn(inverse, 3) ^
		 turn(inverse, 4) ^ 0x63;
	return box[a];
}

static void expand(struct aes *aes, const uint8_t key[32])
{
	uint8_t *w = aes->keys[0], round = 1, t[4];
	int i, k;

	memcpy(w, key, 32);
	for (i = 8; i < 4 * (ROUNDS + 1); i++) {
		for (k = 0; k < 4; k++) {
			t[k] = w[4 * (i - 1) + (i % 8 ? k : (k + 1) % 4)];
			if (i % 4 == 0)
				t[k] = substitute(t[k]);
		}
		if (i % 8 == 0) {
			t[0] ^= round;
			round = twice(round);
		}
		for (k = 0; k < 4; k++)
			w[4 * i + k] = w[4 * (i - 8) + k] ^ t[k];
	}
}

static void mix(uint8_t s[16])
{
	int c, k;

	for (c = 0; c < 16; c += 4) {
		uint8_t a[4];

		memcpy(a, s + c, 4);
		for (k = 0; k < 4; k++)
			s[c + k] = twice(a[k]) ^ times(a[(k + 1) % 4], 3) ^ a[(k + 2) % 4] ^
				   a[(k + 3) % 4];
	}
}

static void substitute_and_shift(uint8_t out[16], const uint8_t in[16])
{
	int i;

	for (i = 0; i < 16; i++)
		out[i] = substitute(in[(i + 4 * (i % 4)) % 16]);
}

void aes_round(uint8_t out[16], const uint8_t in[16], const uint8_t key[16])
{
	uint8_t t[16];
	int i;

	substitute_and_shift(t, in);
	mix(t);
	for (i = 0; i < 16; i++)
		out[i] = t[i] ^ key[i];
}

static void encrypt_block(const struct aes *aes, const uint8_t in[16], uint8_t out[16])
{
	uint8_t s[16], t[16];
	int round, i;

	for (i = 0; i < 16; i++)
		s[i] = in[i] ^ aes->keys[0][i];
	for (round = 1; round < ROUNDS; round++)
		aes_round(s, s, aes->keys[round]);
	substitute_and_shift(t, s);
	for (i = 0; i < 16; i++)
		out[i] = t[i] ^ aes->keys[ROUNDS][i];
}

/* ---- GHASH ---- */

static void multiply(uint8_t y[16], const uint8_t h[16])
{
	uint8_t z[16] = { 0 }, v[16], low;
	int bit, i;

	memcpy(v, h, 16);
	for (bit = 0; bit < 128; bit++) {
		if (y[bit / 8] >> (7 - bit % 8) & 1)
			for (i = 0; i < 16; i++)
				z[i] ^= v[i];
		low = v[15] & 1;
		for (i = 15; i > 0; i--)
			v[i] = (uint8_t)(v[i] >> 1 | v[i - 1] << 7);
		v[0] >>= 1;
		if (low)
			v[0] ^= 0xe1;
	}
	memcpy(y, z, 16);
}

static void add(uint8_t y[16], const uint8_t h[16], const uint8_t *p, size_t len)
{
	size_t i, n;

	for (; len; p += n, len -= n) {
		n = len < 16 ? len : 16;
		for (i = 0; i < n; i++)
			y[i] ^= p[i];
		multiply(y, h);
	}
}

/* ---- GCM ---- */

static void tag_of(const struct aes *aes, const uint8_t nonce[12], const void *clear,
		   size_t clear_len, const void *text, size_t len, uint8_t tag[16])
{
	uint8_t h[16] = { 0 }, y[16] = { 0 }, sizes[16], first[16] = { 0 };
	int i;

	encrypt_block(aes, h, h);
	add(y, h, clear, clear_len);
	add(y, h, text, len);
	for (i = 0; i < 8; i++) {
		sizes[i] = (uint8_t)((uint64_t)clear_len * 8 >> (56 - 8 * i));
		sizes[8 + i] = (uint8_t)((uint64_t)len * 8 >> (56 - 8 * i));
	}
	add(y, h, sizes, 16);
	memcpy(first, nonce, 12);
	first[15] = 1;
	encrypt_block(aes, first, first);
	for (i = 0; i < 16; i++)
		tag[i] = y[i] ^ first[i];
}

static void stream(const struct aes *aes, const uint8_t nonce[12], uint8_t *text, size_t len)
{
	uint8_t counter[16], block[16];
	uint32_t number = 2;
	size_t i;

	memcpy(counter, nonce, 12);
	for (i = 0; i < len; i++) {
		if (i % 16 == 0) {
			counter[12] = (uint8_t)(number >> 24);
			counter[13] = (uint8_t)(number >> 16);
			counter[14] = (uint8_t)(number >> 8);
			counter[15] = (uint8_t)number++;
			encrypt_block(aes, counter, block);
		}
		text[i] ^= block[i % 16];
	}
}

void gcm_close(const uint8_t key[32], const uint8_t nonce[12], const void *clear,
	       size_t clear_len, void *text, size_t len, uint8_t tag[16])
{
	struct aes aes;

	expand(&aes, key);
	stream(&aes, nonce, text, len);
	tag_of(&aes, nonce, clear, clear_len, text, len, tag);
}

bool gcm_open(const uint8_t key[32], const uint8_t nonce[12], const void *clear,
	      size_t clear_len, void *text, size_t len, const uint8_t tag[16])
{
	uint8_t right[16];
	struct aes aes;

	expand(&aes, key);
	tag_of(&aes, nonce, clear, clear_len, text, len, right);
	if (memcmp(right, tag, 16))
		return false;
	stream(&aes, nonce, text, len);
	return true;
}
