// SPDX-License-Identifier: GPL-2.0-only
/* The tag of a frame: see tag.h. */
#include "tag.h"

#define ROUND() SIPHASH_PERMUTATION(v0, v1, v2, v3)

/* Two rounds for one word. */
#define ABSORB(word)		\
	do {			\
		u64 w = word;	\
				\
		v3 ^= w;	\
		ROUND();	\
		ROUND();	\
		v0 ^= w;	\
	} while (0)

/* The same for that at p + n, which is read twice: to keep it would be an instruction more. */
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

	/* In fours: the loop around each would be a tenth of all. */
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
