/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tag of a frame: SipHash-2-4 with a precomputed start.
 *
 * The first three tagged words state the kind of the frame, its length, its node and job, and the
 * incarnation of its flow. Consecutive frames usually agree in them, so the state of the hash after
 * these words is kept; if the fourth word is 0, as in all frames without a number, the state after
 * that word. The rest is computed inline, which for short frames takes a third of the instructions
 * of a call of the general function. The caller owns the kept state, zeroes it at first, uses it
 * for one key only, and serializes its use.
 */
#ifndef ACP_TAG_H
#define ACP_TAG_H

#include "port.h"

#define ACP_TAG_WORDS	3	/* of 8 bytes */

/* The first words of a frame (all 0: none yet), and the state of the hash after them. */
struct acp_tag_start {
	u64 words[ACP_TAG_WORDS];
	u64 v[4];
	u32 size;		/* bytes absorbed: these words, perhaps one more, which is 0 */
};

/* Words extend across the fields of a frame, which a fortified memcpy() would not allow. */
static inline u64 acp_tag_word(const void *p)
{
	__le64 w;

	__builtin_memcpy(&w, p, sizeof(w));
	return le64_to_cpu(w);
}

/**
 * acp_tag_begins() - test whether data begins with the words of a kept start
 * @s: start
 * @data: more than ACP_TAG_WORDS words, the first of which is not 0 (it has the frame's version)
 *
 * Context: The caller serializes the use of @s.
 * Return: True if @s can be used for @data.
 */
static inline bool acp_tag_begins(const struct acp_tag_start *s, const void *data)
{
	return !((s->words[0] ^ acp_tag_word(data)) | (s->words[1] ^ acp_tag_word(data + 8)) |
		 (s->words[2] ^ acp_tag_word(data + 16))) &&
	       (s->size == 8 * ACP_TAG_WORDS || !acp_tag_word(data + 8 * ACP_TAG_WORDS));
}

/**
 * acp_tag_begin() - replace a kept start
 * @s: start to fill
 * @key: key of the tag
 * @data: more than ACP_TAG_WORDS words
 *
 * Context: The caller serializes the use of @s.
 */
void acp_tag_begin(struct acp_tag_start *s, const u64 key[2], const void *data);

/**
 * acp_tag() - compute SipHash-2-4
 * @s: start with the key, for which acp_tag_begins() is true
 * @data: bytes to hash
 * @size: their number, a multiple of 8
 *
 * Context: The caller serializes the use of @s.
 * Return: The hash.
 */
u64 acp_tag(const struct acp_tag_start *s, const void *data, u32 size);

/* ---- the same in steps, for data that is not contiguous: nh.h ---- */

/* The state after "size" bytes; after two more words; the tag of "size" bytes in total. */
void acp_tag_open(u64 v[4], const struct acp_tag_start *s, const void *data, u32 size);
void acp_tag_absorb(u64 v[4], u64 first, u64 second);
u64 acp_tag_close(u64 v[4], u32 size);

/* SipHash-2-4 of two words. */
u64 acp_tag_pair(const u64 key[2], u64 first, u64 second);

#endif /* ACP_TAG_H */
