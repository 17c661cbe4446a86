// SPDX-License-Identifier: GPL-2.0-only
/* Frames that are encrypted: see aead.h. */
#include <crypto/aead.h>
#include <crypto/blake2s.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/random.h>
#include <linux/scatterlist.h>
#include "aead.h"
#include "job.h"

/* What is authenticated in clear: all of the header behind the tag, and the nonce. */
#define CLEAR (sizeof(struct acp_frame_hdr) - sizeof(__be64) + sizeof(struct acp_frame_seal))

struct acp_cipher {
	struct crypto_aead *tfm;
	struct aead_request *req;
};

static DEFINE_MUTEX(lock);
static struct acp_cipher __percpu *ciphers;	/* set once, under the lock */

static DEFINE_MUTEX(keys_lock);
static u32 holders;	/* of keys: jobs; under the lock above */

/* ---- ciphers ---- */

static void free_ciphers(struct acp_cipher __percpu *all)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct acp_cipher *c = per_cpu_ptr(all, cpu);

		aead_request_free(c->req);
		if (c->tfm)
			crypto_free_aead(c->tfm);
	}
	free_percpu(all);
}

static int make_cipher(struct acp_cipher *c)
{
	/* None that works asynchronously: a frame is done when the call returns. */
	struct crypto_aead *tfm = crypto_alloc_aead("rfc7539(chacha20,poly1305)", 0,
						    CRYPTO_ALG_ASYNC);
	int err;

	if (IS_ERR(tfm))
		return PTR_ERR(tfm);
	c->tfm = tfm;
	err = crypto_aead_setauthsize(tfm, ACP_FRAME_CODE);
	if (err)
		return err;
	c->req = aead_request_alloc(tfm, GFP_KERNEL);
	if (!c->req)
		return -ENOMEM;
	aead_request_set_callback(c->req, 0, NULL, NULL);
	aead_request_set_ad(c->req, CLEAR);
	return 0;
}

static int make_ciphers(void)
{
	struct acp_cipher __percpu *all = alloc_percpu(struct acp_cipher);
	int cpu, err;

	if (!all)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		err = make_cipher(per_cpu_ptr(all, cpu));
		if (err) {
			free_ciphers(all);
			return err;
		}
	}
	ciphers = all;
	return 0;
}

int acp_aead_start(struct acp_job *job)
{
	/* Nonces are drawn where nobody can wait. */
	int err = wait_for_random_bytes();

	if (err)
		return -EINTR;
	/* Whoever makes them takes a while; a signal that is handled is no reason to fail. */
	if (mutex_lock_killable(&lock))
		return -EINTR;
	if (!ciphers)
		err = make_ciphers();
	job->ciphers = ciphers;
	mutex_unlock(&lock);
	return !err || err == -ENOMEM || err == -EINTR ? err : -EOPNOTSUPP;
}

static void forget_keys(void)
{
	static const u8 none[ACP_AEAD_KEY];
	int cpu;

	for_each_possible_cpu(cpu) {
		struct acp_cipher *c = per_cpu_ptr(ciphers, cpu);

		crypto_aead_setkey(c->tfm, none, sizeof(none));
		memzero_explicit(c->req->__ctx, crypto_aead_reqsize(c->tfm));
	}
}

void acp_aead_hold(void)
{
	mutex_lock(&keys_lock);
	holders++;
	mutex_unlock(&keys_lock);
}

void acp_aead_release(void)
{
	mutex_lock(&keys_lock);
	if (!--holders) {
		synchronize_rcu();	/* nobody encrypts any more what was built before */
		forget_keys();
	}
	mutex_unlock(&keys_lock);
}

void acp_aead_exit(void)
{
	if (ciphers)
		free_ciphers(ciphers);
}

/* ---- keys and nonces ---- */

static void derive(u8 key[ACP_AEAD_KEY], const struct acp_job *job, u32 from, u32 to, u32 color)
{
	__le64 base[2] = { cpu_to_le64(job->key.key[0]), cpu_to_le64(job->key.key[1]) };
	struct acp_frame_key k;

	acp_frame_key(&k, job->id, job->generation, from, to, color);
	blake2s(key, (const u8 *)&k, (const u8 *)base, ACP_AEAD_KEY, sizeof(k), sizeof(base));
	memzero_explicit(base, sizeof(base));
}

void acp_aead_secret(struct acp_secret *s, const struct acp_job *job, u32 node, u32 color)
{
	s->ciphers = job->ciphers;
	derive(s->out, job, job->me, node, color);
	derive(s->in, job, node, job->me, color);
	s->count = 0;
}

void acp_aead_nonce(struct acp_secret *s, struct acp_frame_seal *seal)
{
	__be64 drawn;
	__be32 count;

	if (!s->count)
		s->drawn = get_random_u64();
	drawn = cpu_to_be64(s->drawn);
	count = cpu_to_be32(s->count++);
	memcpy(seal->nonce, &drawn, sizeof(drawn));
	memcpy(seal->nonce + sizeof(drawn), &count, sizeof(count));
	seal->reserved = 0;
}

/* ---- frames ---- */

/* Body and code are "length" bytes, of which "size" go in. */
static int crypt(int (*cipher)(struct aead_request *), const struct acp_secret *s, const u8 *key,
		 void *frame, u32 length, u32 size)
{
	const struct acp_frame_seal *seal = frame + sizeof(struct acp_frame_hdr);
	const struct acp_cipher *c = this_cpu_ptr(s->ciphers);
	u8 nonce[ACP_FRAME_NONCE];
	struct scatterlist sg;
	int err;

	err = crypto_aead_setkey(c->tfm, key, ACP_AEAD_KEY);
	if (err)
		return err;
	memcpy(nonce, seal->nonce, sizeof(nonce));
	sg_init_one(&sg, frame + sizeof(__be64), CLEAR + length);
	aead_request_set_crypt(c->req, &sg, &sg, size, nonce);
	return cipher(c->req);
}

int acp_aead_close(const struct acp_secret *s, void *frame, u32 length)
{
	return crypt(crypto_aead_encrypt, s, s->out, frame, length + ACP_FRAME_CODE, length);
}

int acp_aead_open(const struct acp_secret *s, void *frame, u32 length)
{
	length += ACP_FRAME_CODE;
	return crypt(crypto_aead_decrypt, s, s->in, frame, length, length);
}
