/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * AEGIS-128 with the AES and AVX instructions of x86-64.  The kernel has it, too, but each call of
 * its crypto API costs about as much as the encryption of a frame.  This code also reads a frame in
 * one place and writes it to another, which saves a copy.
 *
 * Each byte of a text is read once: if others change it meanwhile, this only changes what is
 * encrypted or rejected.
 */
#ifndef ACP_AEGIS_H
#define ACP_AEGIS_H

#include <linux/types.h>

#define ACP_AEGIS_BLOCK	16	/* bytes of a key, a nonce, an authentication tag */

struct acp_aegis {
	const u8 *key, *nonce;
	const void *clear;	/* additional data: authenticated only */
	u32 clear_size;		/* 1 to 64 */
	const void *from;	/* the text; it is written to @to, which may be the same place */
	void *to;
	u32 size;
};

/* Return whether the CPU has the instructions. */
bool acp_aegis_able(void);

/*
 * Encrypt or decrypt a text and compute its authentication tag in @tag.  The caller has checked
 * that vector registers may be used.
 */
void acp_aegis_close(const struct acp_aegis *a, u8 tag[ACP_AEGIS_BLOCK]);
void acp_aegis_open(const struct acp_aegis *a, u8 tag[ACP_AEGIS_BLOCK]);

#endif /* ACP_AEGIS_H */
