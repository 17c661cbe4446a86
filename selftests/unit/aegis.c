// SPDX-License-Identifier: MIT
/* AEGIS-128: see aegis.h. */
#include <string.h>

#include "aegis.h"
#include "gcm.h"

struct aegis {
	uint8_t s[5][16];
};

static void add(uint8_t to[16], const uint8_t a[16])
{
	int i;

	for (i = 0; i < 16; i++)
		to[i] ^= a[i];
}

/* Absorb a block of 16 bytes. */
static void update(struct aegis *a, const uint8_t m[16])
{
	struct aegis old = *a;
	int i;

	for (i = 0; i < 5; i++)
		aes_round(a->s[i], old.s[(i + 4) % 5], old.s[i]);
	add(a->s[0], m);
}

static void begin(struct aegis *a, const uint8_t key[16], const uint8_t nonce[16])
{
	static const uint8_t fibonacci[2][16] = {
		{ 0x00, 0x01, 0x01, 0x02, 0x03, 0x05, 0x08, 0x0d,
		  0x15, 0x22, 0x37, 0x59, 0x90, 0xe9, 0x79, 0x62 },
		{ 0xdb, 0x3d, 0x18, 0x55, 0x6d, 0xc2, 0x2f, 0xf1,
		  0x20, 0x11, 0x31, 0x42, 0x73, 0xb5, 0x28, 0xdd },
	};
	uint8_t both[16];
	int i;

	memcpy(both, key, 16);
	add(both, nonce);
	memcpy(a->s[0], both, 16);
	memcpy(a->s[1], fibonacci[1], 16);
	memcpy(a->s[2], fibonacci[0], 16);
	memcpy(a->s[3], key, 16);
	add(a->s[3], fibonacci[0]);
	memcpy(a->s[4], key, 16);
	add(a->s[4], fibonacci[1]);
	for (i = 0; i < 10; i++)
		update(a, i % 2 ? both : key);
}

/* Return the key stream for a block. */
static void stream(const struct aegis *a, uint8_t z[16])
{
	int i;

	for (i = 0; i < 16; i++)
		z[i] = a->s[1][i] ^ a->s[4][i] ^ (a->s[2][i] & a->s[3][i]);
}

static void take_clear(struct aegis *a, const uint8_t *p, size_t len)
{
	uint8_t block[16];
	size_t n;

	for (; len; p += n, len -= n) {
		n = len < 16 ? len : 16;
		memset(block, 0, sizeof(block));
		memcpy(block, p, n);
		update(a, block);
	}
}

/* The plain text is absorbed in both directions. */
static void crypt(struct aegis *a, uint8_t *p, size_t len, bool encrypt)
{
	uint8_t z[16], block[16];
	size_t n, i;

	for (; len; p += n, len -= n) {
		n = len < 16 ? len : 16;
		stream(a, z);
		memset(block, 0, sizeof(block));
		for (i = 0; i < n; i++) {
			block[i] = encrypt ? p[i] : p[i] ^ z[i];
			p[i] ^= z[i];
		}
		update(a, block);
	}
}

static void end(struct aegis *a, size_t clear_len, size_t len, uint8_t tag[16])
{
	uint8_t sizes[16];
	int i;

	for (i = 0; i < 8; i++) {
		sizes[i] = (uint8_t)((uint64_t)clear_len * 8 >> 8 * i);
		sizes[8 + i] = (uint8_t)((uint64_t)len * 8 >> 8 * i);
	}
	add(sizes, a->s[3]);
	for (i = 0; i < 7; i++)
		update(a, sizes);
	memset(tag, 0, 16);
	for (i = 0; i < 5; i++)
		add(tag, a->s[i]);
}

void aegis_close(const uint8_t key[16], const uint8_t nonce[16], const void *clear,
		 size_t clear_len, void *text, size_t len, uint8_t tag[16])
{
	struct aegis a;

	begin(&a, key, nonce);
	take_clear(&a, clear, clear_len);
	crypt(&a, text, len, true);
	end(&a, clear_len, len, tag);
}

bool aegis_open(const uint8_t key[16], const uint8_t nonce[16], const void *clear,
		size_t clear_len, void *text, size_t len, const uint8_t tag[16])
{
	uint8_t right[16];
	struct aegis a;

	begin(&a, key, nonce);
	take_clear(&a, clear, clear_len);
	crypt(&a, text, len, false);
	end(&a, clear_len, len, right);
	return !memcmp(right, tag, 16);
}
