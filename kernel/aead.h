/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Frames that are encrypted: jobs with integrity aead.
 *
 * ChaCha20-Poly1305 is asked of the kernel's crypto API by name, when the
 * first such job begins; other jobs never load it, and the module loads
 * without it.  Each processor has a cipher of its own, which takes the key of
 * the peer anew for each frame: that is a copy of 32 bytes, and nothing is
 * allocated or waited for where peers are made and frames come.
 *
 * Keys are derived from the job's, one per sender and receiver; nonces are
 * drawn at random and counted from there, per peer: PROTOCOL.md says why none
 * is used twice.
 */
#ifndef ACP_AEAD_H
#define ACP_AEAD_H

#include <linux/kconfig.h>
#include <linux/types.h>
#include "core/frame.h"

#define ACP_AEAD_KEY	32

struct acp_cipher;
struct acp_job;

/* What two nodes share, on one color; part of a peer. */
struct acp_secret {
	struct acp_cipher __percpu *ciphers;	/* the job's */
	u8 out[ACP_AEAD_KEY];	/* key of what we send */
	u8 in[ACP_AEAD_KEY];	/* ... of what comes */
	u64 drawn;		/* first part of the nonces, at random; under the peer's lock ... */
	u32 count;		/* ... and the second one of the next; at 0, it is drawn anew */
};

#if IS_ENABLED(CONFIG_CRYPTO_AEAD2)
/*
 * See to the ciphers, which stay until the end.  Whoever finds a job finds them
 * by it, and so finished.  May sleep.  0, -EOPNOTSUPP: the kernel has none,
 * -ENOMEM, -EINTR.
 */
int acp_aead_start(struct acp_job *job);

/*
 * Around the time in which frames of such a job come and go.  With the last one
 * that ends, the ciphers forget the keys that they had last.  May sleep.
 */
void acp_aead_hold(void);
void acp_aead_release(void);

/* Once no job is left. */
void acp_aead_exit(void);

/* Derive the keys for a job's traffic with a node. */
void acp_aead_secret(struct acp_secret *s, const struct acp_job *job, u32 node, u32 color);

/* The next nonce.  Under the peer's lock. */
void acp_aead_nonce(struct acp_secret *s, struct acp_frame_seal *seal);

/*
 * Encrypt or decrypt a frame in place: "length" bytes of body, behind header
 * and seal, before the code.  BH off.  0; open: -EBADMSG, it is not authentic
 * and the body is spoiled; -ENOMEM.
 */
int acp_aead_close(const struct acp_secret *s, void *frame, u32 length);
int acp_aead_open(const struct acp_secret *s, void *frame, u32 length);
#else
static inline int acp_aead_start(struct acp_job *job)
{
	return -EOPNOTSUPP;
}

static inline void acp_aead_hold(void)
{
}

static inline void acp_aead_release(void)
{
}

static inline void acp_aead_exit(void)
{
}

static inline void acp_aead_secret(struct acp_secret *s, const struct acp_job *job, u32 node,
				   u32 color)
{
}

static inline void acp_aead_nonce(struct acp_secret *s, struct acp_frame_seal *seal)
{
}

static inline int acp_aead_close(const struct acp_secret *s, void *frame, u32 length)
{
	return -EOPNOTSUPP;
}

static inline int acp_aead_open(const struct acp_secret *s, void *frame, u32 length)
{
	return -EOPNOTSUPP;
}
#endif

#endif /* ACP_AEAD_H */
