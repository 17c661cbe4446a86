/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tag of a frame: SipHash-2-4, begun in advance.
 *
 * The first three words of what is tagged say what kind of frame it is, of what
 * length, of which node of which job, and in which life of its flow: frames that
 * follow each other mostly agree in them, and the state of the hash behind them is
 * kept.  What is left is done in place: for frames as short as most are, that is a
 * third of the instructions of a call of the general function.
 */
#ifndef ACP_TAG_H
#define ACP_TAG_H

#include "port.h"

#define ACP_TAG_WORDS	3	/* of 8 bytes */

/* The first words of a frame (all 0: none yet), and the hash's state behind them. */
struct acp_tag_start {
	u64 words[ACP_TAG_WORDS];
	u64 v[4];
};

/*
 * SipHash-2-4 of "size" bytes, which are ACP_TAG_WORDS or more, and whole words;
 * the first of these is not 0 (it is the frame's version).  "s" is what the caller
 * keeps from one call with this key to the next, zeroed at first, and nobody else
 * uses meanwhile.
 */
u64 acp_tag(struct acp_tag_start *s, const u64 key[2], const void *data, u32 size);

#endif /* ACP_TAG_H */
