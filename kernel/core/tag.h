/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tag of a frame: SipHash-2-4, begun in advance.
 *
 * The first three words of what is tagged say what kind of frame it is, of what
 * length, of which node of which job, and in which life of its flow: frames that
 * follow each other mostly agree in them, and the state of the hash behind them is
 * kept; if the fourth one is 0, as in all that have no number, behind that.  What is
 * left is done in place: for frames as short as most are, that is a third of the
 * instructions of a call of the general function.  What is kept is the caller's, zeroed
 * at first, for one key, and nobody else uses it meanwhile.
 */
#ifndef ACP_TAG_H
#define ACP_TAG_H

#include "port.h"

#define ACP_TAG_WORDS	3	/* of 8 bytes */

/* The first words of a frame (all 0: none yet), and the hash's state behind them. */
struct acp_tag_start {
	u64 words[ACP_TAG_WORDS];
	u64 v[4];
	u32 size;		/* of these words, in bytes, and of one more that is 0 */
};

/* Words go across a frame's fields, at which memcpy() would stop. */
static inline u64 acp_tag_word(const void *p)
{
	__le64 w;

	__builtin_memcpy(&w, p, sizeof(w));
	return le64_to_cpu(w);
}

/*
 * Is it the beginning of these data, of more than ACP_TAG_WORDS?  Their first word is not 0 (it
 * has the frame's version).
 */
static inline bool acp_tag_begins(const struct acp_tag_start *s, const void *data)
{
	return !((s->words[0] ^ acp_tag_word(data)) | (s->words[1] ^ acp_tag_word(data + 8)) |
		 (s->words[2] ^ acp_tag_word(data + 16))) &&
	       (s->size == 8 * ACP_TAG_WORDS || !acp_tag_word(data + 8 * ACP_TAG_WORDS));
}

/* From now on it is. */
void acp_tag_begin(struct acp_tag_start *s, const u64 key[2], const void *data);

/* SipHash-2-4 of "size" bytes, whole words, that begin as "s" does, with its key. */
u64 acp_tag(const struct acp_tag_start *s, const void *data, u32 size);

#endif /* ACP_TAG_H */
