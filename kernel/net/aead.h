/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Encrypted frames: jobs with integrity aead.
 *
 * The module requests ciphers from the kernel's crypto API by name when the first such job begins.
 * Other jobs never load them, and the module itself loads without them.  Every node has
 * ChaCha20-Poly1305.  Two nodes that both have instructions for it use AEGIS-128, or else
 * AES-256-GCM; for AEGIS-128 the module also has faster code of its own (aegis.h).  Each CPU has
 * ciphers of its own, which are set to the keys of peers as needed: making a peer or receiving a
 * frame neither allocates a cipher nor waits for one.
 *
 * Keys are derived from the job's key, one per sender and receiver.  Each peer draws the first part
 * of its nonces at random and counts in the second part; PROTOCOL.md explains why no nonce is used
 * twice.
 */
#ifndef ACP_AEAD_H
#define ACP_AEAD_H

#include <linux/kconfig.h>
#include <linux/types.h>
#include "../core/frame.h"

#define ACP_AEAD_KEY	32
#define ACP_AEGIS_KEY	16
/* Offset of the body of an encrypted frame. */
#define ACP_AEAD_BODY	(sizeof(struct acp_frame_hdr) + sizeof(struct acp_frame_nonce))
#define ACP_AEAD_ROOM	32768	/* bytes for the decrypted frames of a GSO batch */

struct acp_cipher;
struct acp_job;

/* The keys of one direction: what one node sends to another on one color. */
struct acp_way {
	u8 key[ACP_AEAD_KEY];	/* for ChaCha20-Poly1305 */
	u8 aes[ACP_AEAD_KEY];	/* for AES-256-GCM */
	u8 aegis[ACP_AEGIS_KEY];	/* for AEGIS-128 */
	u64 id;			/* of the AES key: no other key ever has it */
};

/* The secrets that two nodes share on one color; part of a peer. */
struct acp_secret {
	struct acp_cipher __percpu *ciphers;	/* the job's ciphers */
	struct acp_way out, in;	/* keys for sending and receiving */
	u32 wanted;		/* ACP_CIPHER_WISHES of the last frame that we decrypted */
	u64 drawn;		/* first part of the nonces, random; both under peer->lock */
	u32 count;		/* second part of the next nonce; if 0, drawn is renewed */
};

#if IS_ENABLED(CONFIG_CRYPTO_AEAD2)
/**
 * acp_aead_start() - allocate the ciphers, if no earlier job has done so
 * @job: job with integrity aead that is being made; @job->ciphers is set
 *
 * The ciphers stay until acp_aead_exit().  The job is published after this call,
 * so users that find a job find complete ciphers.
 *
 * Context: process context; may sleep.
 * Return: 0; -EOPNOTSUPP if the kernel lacks a cipher; -ENOMEM; or -EINTR.
 */
int acp_aead_start(struct acp_job *job);

/**
 * acp_aead_hold() - count a job whose frames use the ciphers
 *
 * Called before the first frame of a job with integrity aead.
 *
 * Context: process context; may sleep.
 */
void acp_aead_hold(void);
/**
 * acp_aead_release() - undo acp_aead_hold()
 *
 * Called after the last frame of a job.  The call for the last job erases the
 * keys that the ciphers still have.
 *
 * Context: process context; may sleep.
 */
void acp_aead_release(void);

/**
 * acp_aead_exit() - free the ciphers
 *
 * Called when no job is left.
 *
 * Context: process context; may sleep.
 */
void acp_aead_exit(void);

/**
 * acp_aead_secret() - derive the keys for a job's traffic with a node
 * @s: the keys, for both directions
 * @job: job of which acp_aead_start() has set the ciphers
 * @node: the other node's number in the job
 * @color: color of the flow
 *
 * Context: any.
 */
void acp_aead_secret(struct acp_secret *s, const struct acp_job *job, u32 node, u32 color);

/* Fill in the next nonce and the choice of the cipher.  Under peer->lock. */
void acp_aead_nonce(struct acp_secret *s, struct acp_frame_nonce *block, bool hello);

/* Note the wishes that an authentic frame carries. */
void acp_aead_heard(struct acp_secret *s, u32 cipher);

/*
 * Encrypt or decrypt the body of a frame of @size bytes in place, between the nonce block and the
 * authentication tag.  BH off.  Return 0; acp_aead_open(): -EBADMSG if the frame is not authentic,
 * in which case the body is garbage; or -ENOMEM.  Before decryption, body and authentication tag
 * may also be elsewhere, at @from, if that is not NULL; others may write there meanwhile.
 */
int acp_aead_close(const struct acp_secret *s, void *frame, u32 size);
int acp_aead_open(const struct acp_secret *s, void *frame, const void *from, u32 size);

/*
 * Return this CPU's ACP_AEAD_ROOM bytes for decrypted frames, or NULL if they are in use.  BH must
 * stay off until acp_aead_room_put().
 */
void *acp_aead_room_get(const struct acp_secret *s);
void acp_aead_room_put(const struct acp_secret *s);
#else
/**
 * acp_aead_start() - stub for kernels without AEAD ciphers
 * @job: not used
 *
 * Return: -EOPNOTSUPP.
 */
static inline int acp_aead_start(struct acp_job *job)
{
	return -EOPNOTSUPP;
}

/**
 * acp_aead_hold() - stub for kernels without AEAD ciphers
 */
static inline void acp_aead_hold(void)
{
}

/**
 * acp_aead_release() - stub for kernels without AEAD ciphers
 */
static inline void acp_aead_release(void)
{
}

/**
 * acp_aead_exit() - stub for kernels without AEAD ciphers
 */
static inline void acp_aead_exit(void)
{
}

/**
 * acp_aead_secret() - stub for kernels without AEAD ciphers
 * @s: not used
 * @job: not used
 * @node: not used
 * @color: not used
 */
static inline void acp_aead_secret(struct acp_secret *s, const struct acp_job *job, u32 node,
				   u32 color)
{
}

static inline void acp_aead_nonce(struct acp_secret *s, struct acp_frame_nonce *block, bool hello)
{
}

static inline void acp_aead_heard(struct acp_secret *s, u32 cipher)
{
}

static inline int acp_aead_close(const struct acp_secret *s, void *frame, u32 size)
{
	return -EOPNOTSUPP;
}

static inline int acp_aead_open(const struct acp_secret *s, void *frame, const void *from,
				u32 size)
{
	return -EOPNOTSUPP;
}

static inline void *acp_aead_room_get(const struct acp_secret *s)
{
	return NULL;
}

static inline void acp_aead_room_put(const struct acp_secret *s)
{
}
#endif

#endif /* ACP_AEAD_H */
