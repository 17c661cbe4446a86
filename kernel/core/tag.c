// SPDX-License-Identifier: GPL-2.0-only
/* The tag of a frame: see tag.h. */
#include "tag.h"

#define ROUND() SIPHASH_PERMUTATION(v0, v1, v2, v3)

/* Absorb one word, with two rounds. */
#define ABSORB(word)		\
	do {			\
		u64 w = word;	\
				\
		v3 ^= w;	\
		ROUND();	\
		ROUND();	\
		v0 ^= w;	\
	} while (0)

/*
 * The same for the word at p + n, which is read twice: keeping it would cost one more instruction.
 */
#define ABSORB_AT(n)				\
	do {					\
		v3 ^= acp_tag_word(p + (n));	\
		ROUND();			\
		ROUND();			\
		acp_unknown(p);			\
		v0 ^= acp_tag_word(p + (n));	\
	} while (0)

void acp_tag_begin(struct acp_tag_start *s, const u64 key[2], const void *data)
{
	u64 v0 = SIPHASH_CONST_0 ^ key[0], v1 = SIPHASH_CONST_1 ^ key[1];
	u64 v2 = SIPHASH_CONST_2 ^ key[0], v3 = SIPHASH_CONST_3 ^ key[1];
	u32 i;

	for (i = 0; i < ACP_TAG_WORDS; i++) {
		s->words[i] = acp_tag_word(data + 8 * i);
		ABSORB(s->words[i]);
	}
	s->size = 8 * ACP_TAG_WORDS;
	if (!acp_tag_word(data + s->size)) {
		ABSORB(0);
		s->size += 8;
	}
	s->v[0] = v0;
	s->v[1] = v1;
	s->v[2] = v2;
	s->v[3] = v3;
}

u64 acp_tag(const struct acp_tag_start *s, const void *data, u32 size)
{
	const u8 *p = data + s->size, *end = data + size;
	u64 v0 = s->v[0], v1 = s->v[1], v2 = s->v[2], v3 = s->v[3];

	/* Unrolled four times: the loop overhead per word would be a tenth of the time. */
	for (; p <= end - 32; p += 32) {
		ABSORB_AT(0);
		ABSORB_AT(8);
		ABSORB_AT(16);
		ABSORB_AT(24);
	}
	if (p <= end - 16) {
		ABSORB_AT(0);
		ABSORB_AT(8);
		p += 16;
	}
	if (p != end)
		ABSORB_AT(0);
	ABSORB((u64)size << 56);
	v2 ^= 0xff;
	ROUND();
	ROUND();
	ROUND();
	ROUND();
	return (v0 ^ v1) ^ (v2 ^ v3);
}

#define LOAD(v)		u64 v0 = (v)[0], v1 = (v)[1], v2 = (v)[2], v3 = (v)[3]
#define STORE(v)		\
	do {			\
		(v)[0] = v0;	\
		(v)[1] = v1;	\
		(v)[2] = v2;	\
		(v)[3] = v3;	\
	} while (0)

void acp_tag_open(u64 v[4], const struct acp_tag_start *s, const void *data, u32 size)
{
	const u8 *p = data + s->size, *end = data + size;

	LOAD(s->v);

	for (; p != end; p += 8)
		ABSORB_AT(0);
	STORE(v);
}

void acp_tag_absorb(u64 v[4], u64 first, u64 second)
{
	LOAD(v);

	ABSORB(first);
	ABSORB(second);
	STORE(v);
}

u64 acp_tag_close(u64 v[4], u32 size)
{
	LOAD(v);

	ABSORB((u64)size << 56);
	v2 ^= 0xff;
	ROUND();
	ROUND();
	ROUND();
	ROUND();
	return (v0 ^ v1) ^ (v2 ^ v3);
}

u64 acp_tag_pair(const u64 key[2], u64 first, u64 second)
{
	u64 v[4] = { SIPHASH_CONST_0 ^ key[0], SIPHASH_CONST_1 ^ key[1],
		     SIPHASH_CONST_2 ^ key[0], SIPHASH_CONST_3 ^ key[1] };

	acp_tag_absorb(v, first, second);
	return acp_tag_close(v, 16);
}
