/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tag of a frame with a long payload: SipHash-2-4 over the header and the message, as in all
 * other frames, and then over a universal hash of each block of the payload.
 *
 * The universal hash is NH with words of 64 bits (Black, Halevi, Krawczyk, Krovetz and Rogaway,
 * "UMAC: Fast and Secure Message Authentication", 1999). It needs one multiplication per 16 bytes
 * and no vector registers, so that it can run in any context, and all machines compute the same.
 * PROTOCOL.md explains why it is secure.
 */
#ifndef ACP_NH_H
#define ACP_NH_H

#include "tag.h"

#define ACP_NH_BLOCK	2048			/* bytes of payload per NH hash */
#define ACP_NH_WORDS	(ACP_NH_BLOCK / 8)
#define ACP_NH_PAIR	16			/* bytes per multiplication */

/* As secret as the key of the job, from which it is derived. */
struct acp_nh_key {
	u64 words[ACP_NH_WORDS];
};

/**
 * acp_nh_derive() - derive the NH key from the key of a job
 * @nh: key to fill
 * @key: key of the job
 *
 * Context: Any context.
 */
void acp_nh_derive(struct acp_nh_key *nh, const u64 key[2]);

/* A tag that is being computed. Its contents are secret. */
struct acp_nh {
	const struct acp_nh_key *key;
	u64 v[4];		/* state of SipHash after all complete blocks */
	u64 low, high;		/* NH of the present block so far */
	u32 at;			/* bytes of the present block in low and high */
	u32 size;		/* bytes that SipHash has absorbed */
	u32 kept;		/* bytes of an incomplete pair */
	u8 pair[ACP_NH_PAIR];
};

/**
 * acp_nh_begin() - begin the tag of a frame with a long payload
 * @t: tag to initialize
 * @key: NH key; must remain valid until acp_nh_end()
 * @s: start of the tag, which must match @data: acp_tag_begins()
 * @data: the bytes that precede the payload
 * @size: their number, a multiple of 8
 *
 * Context: Any context.
 */
void acp_nh_begin(struct acp_nh *t, const struct acp_nh_key *key, const struct acp_tag_start *s,
		  const void *data, u32 size);

/**
 * acp_nh_add() - add a piece of the payload
 * @t: tag
 * @data: bytes of the piece; they may change meanwhile, and the tag is then meaningless
 * @size: their number, any value
 *
 * Context: Any context.
 */
void acp_nh_add(struct acp_nh *t, const void *data, size_t size);

/**
 * acp_nh_end() - finish a tag
 * @t: tag; acp_nh_begin() makes it usable again
 *
 * Context: Any context.
 * Return: The tag.
 */
u64 acp_nh_end(struct acp_nh *t);

#endif /* ACP_NH_H */
