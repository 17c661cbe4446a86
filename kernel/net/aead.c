// SPDX-License-Identifier: GPL-2.0-only
/* Encrypted frames: see aead.h. */
#include <crypto/aead.h>
#include <crypto/algapi.h>
#include <linux/kmod.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/random.h>
#include <linux/scatterlist.h>
#include <asm/simd.h>
#include "aead.h"
#include "aegis.h"
#include "../compat.h"
#include "../job/job.h"

/* Additional data: the header after its tag, and the nonce block. */
#define CLEAR (sizeof(struct acp_frame_hdr) - sizeof(__be64) + sizeof(struct acp_frame_nonce))

#define KEYED	8	/* ciphers of a CPU that keep a key; a power of two */

/*
 * Setting the key of ChaCha20-Poly1305 or AEGIS-128 is a copy, so it is done for each frame.  AES
 * expands its key, which costs as much as a short frame, so a CPU has several of these ciphers, and
 * each keeps its last key.
 */
struct acp_cipher {
	struct crypto_aead *tfm;
	struct aead_request *req;
	struct crypto_aead *keyed[KEYED];
	u64 ids[KEYED];			/* of their keys; 0: none */
	struct aead_request *aes_req;
	struct crypto_aead *aegis, *slow_aegis;
	struct aead_request *aegis_req, *slow_aegis_req;
	void *room;			/* for decrypted frames of a GSO batch */
	bool taken;			/* room is in use */
};

/* How this kernel implements a cipher for which CPUs have instructions. */
enum how {
	NONE,
	SLOW,		/* with tables only, or put together from parts */
	QUICK,		/* with instructions; checks itself whether they may be used */
	INTERNAL,	/* with instructions; the caller checks that */
};

struct kind {
	const char *name;	/* in the crypto API: asynchronous, slow, or QUICK */
	const char *internal;	/* the fast cipher behind an asynchronous one */
	u32 wants;		/* ACP_CIPHER_ flag of nodes with instructions for it */
	enum how how;		/* set once, under ciphers_lock, before the ciphers are published */
};

static struct kind aes = { "gcm(aes)", "__gcm(aes)", ACP_CIPHER_WANTS };
static struct kind aegis = { "aegis128", "__aegis128", ACP_CIPHER_WANTS_AEGIS };

/* Is our own AEGIS-128 used, which computes the same as the kernel's?  Set once, like how. */
static bool own_aegis;

static bool use_aegis = true;
module_param_named(aegis, use_aegis, bool, 0644);
MODULE_PARM_DESC(aegis, "encrypt by AEGIS-128 where both nodes have instructions for it; N: by AES");

static DEFINE_MUTEX(ciphers_lock);
static struct acp_cipher __percpu *ciphers;	/* set once, under ciphers_lock */

static DEFINE_MUTEX(keys_lock);
static u32 holders;	/* jobs that use the ciphers; under keys_lock */

static atomic64_t key_ids;	/* last id that was assigned */

/* ---- ciphers ---- */

static void free_cipher(struct acp_cipher *c)
{
	u32 i;

	aead_request_free(c->req);
	aead_request_free(c->aes_req);
	aead_request_free(c->aegis_req);
	aead_request_free(c->slow_aegis_req);
	if (c->tfm)
		crypto_free_aead(c->tfm);
	if (c->aegis)
		crypto_free_aead(c->aegis);
	if (c->slow_aegis)
		crypto_free_aead(c->slow_aegis);
	for (i = 0; i < KEYED; i++)
		if (c->keyed[i])
			crypto_free_aead(c->keyed[i]);
	if (c->room)
		free_pages_exact(c->room, ACP_AEAD_ROOM);
}

static void free_ciphers(struct acp_cipher __percpu *all)
{
	int cpu;

	for_each_possible_cpu(cpu)
		free_cipher(per_cpu_ptr(all, cpu));
	free_percpu(all);
}

/* Allocate the internal cipher, which uses instructions and has no asynchronous wrapper. */
static struct crypto_aead *alloc_internal(const struct kind *k)
{
	return crypto_alloc_aead(k->internal, CRYPTO_ALG_INTERNAL,
				 CRYPTO_ALG_INTERNAL | CRYPTO_ALG_ASYNC);
}

static struct crypto_aead *alloc_plain(const struct kind *k)
{
	return crypto_alloc_aead(k->name, 0, CRYPTO_ALG_ASYNC);
}

static struct crypto_aead *alloc_quick(const struct kind *k)
{
	return k->how == INTERNAL ? alloc_internal(k) : alloc_plain(k);
}

/*
 * A name may find a slow cipher of a loaded module although a module that is not loaded has a fast
 * one.  So load all modules that provide parts of the ciphers.
 */
static void load_modules(void)
{
	static const char *const parts[] = { "aes", "ghash", "aegis128", "chacha20", "poly1305" };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(parts); i++)
		request_module("crypto-%s", parts[i]);
}

/*
 * Does it use tables? "generic-gcm-aesni", the name of a fast driver since 6.16, means GCM in
 * general.  "gcm_base(...)" is put together from parts: whatever these are, it allocates memory
 * when it takes a key, and may sleep.
 */
static bool is_slow(struct crypto_aead *tfm)
{
	const char *name = crypto_tfm_alg_driver_name(crypto_aead_tfm(tfm));

	return strstr(name, "-generic") || strstr(name, "-lib") || strstarts(name, "gcm_base(");
}

static enum how find(const struct kind *k)
{
	struct crypto_aead *tfm = alloc_plain(k);
	enum how how = SLOW;

	if (IS_ERR(tfm))
		return NONE;
	if (!is_slow(tfm))
		how = QUICK;
	crypto_free_aead(tfm);
	if (how == QUICK)
		return how;
	tfm = alloc_internal(k);
	if (IS_ERR(tfm))
		return how;
	crypto_free_aead(tfm);
	return INTERNAL;
}

static int take(struct crypto_aead *tfm, struct crypto_aead **to)
{
	if (IS_ERR(tfm))
		return PTR_ERR(tfm);
	*to = tfm;
	return crypto_aead_setauthsize(tfm, ACP_FRAME_AEAD_TAG);
}

static int make_request(struct crypto_aead *tfm, struct aead_request **req)
{
	*req = aead_request_alloc(tfm, GFP_KERNEL);
	if (!*req)
		return -ENOMEM;
	aead_request_set_callback(*req, 0, NULL, NULL);
	aead_request_set_ad(*req, CLEAR);
	return 0;
}

static int make_one(struct crypto_aead *tfm, struct crypto_aead **to, struct aead_request **req)
{
	return take(tfm, to) ?: make_request(tfm, req);
}

/*
 * One request serves all these ciphers.  The kernel may register another implementation of the name
 * at any time, so they may differ: the one that needs the largest request determines its size.
 */
static int make_aes(struct acp_cipher *c)
{
	struct crypto_aead *largest = NULL;
	int err = 0;
	u32 i;

	for (i = 0; i < KEYED && !err; i++) {
		err = take(alloc_quick(&aes), &c->keyed[i]);
		if (!err && (!i || crypto_aead_reqsize(c->keyed[i]) > crypto_aead_reqsize(largest)))
			largest = c->keyed[i];
	}
	return err ?: make_request(largest, &c->aes_req);
}

static int make_aegis(struct acp_cipher *c)
{
	int err = make_one(alloc_plain(&aegis), &c->slow_aegis, &c->slow_aegis_req);

	return err ?: make_one(alloc_quick(&aegis), &c->aegis, &c->aegis_req);
}

static int make_cipher(struct acp_cipher *c)
{
	/* Synchronous ciphers only: a frame is complete when the call returns. */
	int err = make_one(crypto_alloc_aead("rfc7539(chacha20,poly1305)", 0, CRYPTO_ALG_ASYNC),
			   &c->tfm, &c->req);

	if (!err && aes.how > SLOW)
		err = make_aes(c);
	if (!err && aegis.how)
		err = make_aegis(c);
	if (err)
		return err;
	c->room = alloc_pages_exact(ACP_AEAD_ROOM, GFP_KERNEL | __GFP_ZERO);
	return c->room ? 0 : -ENOMEM;
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

static void forget_key(struct crypto_aead *tfm, struct aead_request *req, u32 size)
{
	static const u8 none[ACP_AEAD_KEY];

	if (!tfm)
		return;
	crypto_aead_setkey(tfm, none, size);
	memzero_explicit(req->__ctx, crypto_aead_reqsize(tfm));
}

static void forget_keys(void)
{
	int cpu;
	u32 i;

	for_each_possible_cpu(cpu) {
		struct acp_cipher *c = per_cpu_ptr(ciphers, cpu);

		forget_key(c->tfm, c->req, ACP_AEAD_KEY);
		forget_key(c->aegis, c->aegis_req, ACP_AEGIS_KEY);
		forget_key(c->slow_aegis, c->slow_aegis_req, ACP_AEGIS_KEY);
		for (i = 0; i < KEYED; i++) {
			c->ids[i] = 0;
			forget_key(c->keyed[i], c->aes_req, ACP_AEAD_KEY);
		}
		memzero_explicit(c->room, ACP_AEAD_ROOM);
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
		synchronize_rcu();	/* frames that were built before are encrypted by then */
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

static void derive(u8 key[ACP_AEAD_KEY], u32 cipher, const struct acp_job *job, u32 from, u32 to,
		   u32 color)
{
	__le64 base[2] = { cpu_to_le64(job->key.key[0]), cpu_to_le64(job->key.key[1]) };
	struct acp_frame_key k;

	acp_frame_key(&k, cipher, job->id, job->generation, from, to, color);
	acp_blake2s(key, ACP_AEAD_KEY, &k, sizeof(k), base, sizeof(base));
	memzero_explicit(base, sizeof(base));
}

static void derive_way(struct acp_way *way, const struct acp_job *job, u32 from, u32 to,
		       u32 color)
{
	u8 key[ACP_AEAD_KEY];

	derive(way->key, 0, job, from, to, color);
	derive(way->aes, ACP_CIPHER_AES, job, from, to, color);
	derive(key, ACP_CIPHER_AEGIS, job, from, to, color);
	memcpy(way->aegis, key, sizeof(way->aegis));
	memzero_explicit(key, sizeof(key));
	way->id = atomic64_inc_return(&key_ids);
}

void acp_aead_secret(struct acp_secret *s, const struct acp_job *job, u32 node, u32 color)
{
	s->ciphers = job->ciphers;
	derive_way(&s->out, job, job->me, node, color);
	derive_way(&s->in, job, node, job->me, color);
	s->wanted = 0;
	s->count = 0;
}

/*
 * Return the flags of the ciphers for which this node has instructions, and which it asks its peers
 * to use.
 */
static u32 wishes(void)
{
	u32 all = aes.how > SLOW ? aes.wants : 0;

	return aegis.how > SLOW && READ_ONCE(use_aegis) ? all | aegis.wants : all;
}

void acp_aead_nonce(struct acp_secret *s, struct acp_frame_nonce *block, bool hello)
{
	u32 cipher = wishes(), both = hello ? 0 : cipher & READ_ONCE(s->wanted);
	__be64 drawn;
	__be32 count;

	/*
	 * Use instructions if both ends have them.  The receiver of a HELLO may not know the cipher
	 * at all.
	 */
	if (both & ACP_CIPHER_WANTS_AEGIS)
		cipher |= ACP_CIPHER_AEGIS;
	else if (both & ACP_CIPHER_WANTS)
		cipher |= ACP_CIPHER_AES;
	if (!s->count)
		s->drawn = get_random_u64();
	drawn = cpu_to_be64(s->drawn);
	count = cpu_to_be32(s->count++);
	memcpy(block->nonce, &drawn, sizeof(drawn));
	memcpy(block->nonce + sizeof(drawn), &count, sizeof(count));
	block->cipher = cpu_to_be32(cipher);
}

void acp_aead_heard(struct acp_secret *s, u32 cipher)
{
	WRITE_ONCE(s->wanted, cipher & ACP_CIPHER_WISHES);
}

/* ---- frames ---- */

/*
 * Return a request with the key of this direction.  QUICK ciphers check themselves whether vector
 * registers may be used here.  Setting the key of an AES that works with tables allocates memory
 * and may sleep, so there is none: a node without instructions asks nobody for AES, and where
 * vector registers are in use just now, the frame counts as lost.
 */
static struct aead_request *with_aes(struct acp_cipher *c, const struct acp_way *way, int *err)
{
	u32 i = way->id % KEYED;

	if (aes.how <= SLOW || (aes.how == INTERNAL && !may_use_simd())) {
		*err = -EBADMSG;
		return NULL;
	}
	*err = 0;
	if (c->ids[i] != way->id) {
		c->ids[i] = 0;
		*err = crypto_aead_setkey(c->keyed[i], way->aes, ACP_AEAD_KEY);
		if (!*err)
			c->ids[i] = way->id;
	}
	aead_request_set_tfm(c->aes_req, c->keyed[i]);
	return c->aes_req;
}

static struct aead_request *with_aegis(struct acp_cipher *c, const struct acp_way *way, int *err)
{
	struct aead_request *req = c->aegis_req;

	if (aegis.how == NONE) {
		*err = -EBADMSG;
		return NULL;
	}
	if (aegis.how == INTERNAL && !may_use_simd())
		req = c->slow_aegis_req;
	*err = crypto_aead_setkey(crypto_aead_reqtfm(req), way->aegis, ACP_AEGIS_KEY);
	return req;
}

/*
 * Run a cipher on a frame whose body and authentication tag have @length bytes; @size of these are
 * input.
 */
static int crypt(int (*cipher)(struct aead_request *), const struct acp_secret *s,
		 const struct acp_way *way, void *frame, u32 length, u32 size)
{
	const struct acp_frame_nonce *block = frame + sizeof(struct acp_frame_hdr);
	struct acp_cipher *c = this_cpu_ptr(s->ciphers);
	struct aead_request *req = c->req;
	u8 nonce[sizeof(*block)];	/* AEGIS uses all bytes, the others the first 12 */
	struct scatterlist sg;
	int err;

	if (block->cipher & cpu_to_be32(ACP_CIPHER_AEGIS))
		req = with_aegis(c, way, &err);
	else if (block->cipher & cpu_to_be32(ACP_CIPHER_AES))
		req = with_aes(c, way, &err);
	else
		err = crypto_aead_setkey(c->tfm, way->key, ACP_AEAD_KEY);
	if (err)
		return err;
	memcpy(nonce, block, sizeof(nonce));
	sg_init_one(&sg, frame + sizeof(__be64), CLEAR + length);
	aead_request_set_crypt(req, &sg, &sg, size, nonce);
	return cipher(req);
}

/* Is the frame's cipher AEGIS-128, and may our own code run here? */
static bool is_own(const struct acp_frame_nonce *block)
{
	return own_aegis && (block->cipher & cpu_to_be32(ACP_CIPHER_AEGIS)) && may_use_simd();
}

static struct acp_aegis own(const struct acp_way *way, void *frame, const void *from, u32 size)
{
	return (struct acp_aegis){
		.key = way->aegis, .nonce = frame + sizeof(struct acp_frame_hdr),
		.clear = frame + sizeof(__be64), .clear_size = CLEAR,
		.from = from, .to = frame + ACP_AEAD_BODY,
		.size = size - ACP_AEAD_BODY - ACP_FRAME_AEAD_TAG,
	};
}

static int open_own(const struct acp_way *way, void *frame, const void *from, u32 size)
{
	struct acp_aegis a = own(way, frame, from, size);
	u8 tag[ACP_FRAME_AEAD_TAG];

	acp_aegis_open(&a, tag);
	return crypto_memneq(tag, from + a.size, sizeof(tag)) ? -EBADMSG : 0;
}

int acp_aead_close(const struct acp_secret *s, void *frame, u32 size)
{
	struct acp_aegis a acp_uncleared;

	if (!is_own(frame + sizeof(struct acp_frame_hdr)))
		return crypt(crypto_aead_encrypt, s, &s->out, frame, size - ACP_AEAD_BODY,
			     size - ACP_AEAD_BODY - ACP_FRAME_AEAD_TAG);
	a = own(&s->out, frame, frame + ACP_AEAD_BODY, size);
	acp_aegis_close(&a, frame + size - ACP_FRAME_AEAD_TAG);
	return 0;
}

int acp_aead_open(const struct acp_secret *s, void *frame, const void *from, u32 size)
{
	if (is_own(frame + sizeof(struct acp_frame_hdr)))
		return open_own(&s->in, frame, from ?: frame + ACP_AEAD_BODY, size);
	if (from)
		memcpy(frame + ACP_AEAD_BODY, from, size - ACP_AEAD_BODY);
	size -= ACP_AEAD_BODY;
	return crypt(crypto_aead_decrypt, s, &s->in, frame, size, size);
}

void *acp_aead_room_get(const struct acp_secret *s)
{
	struct acp_cipher *c = this_cpu_ptr(s->ciphers);

	/*
	 * It is in use if reception nests: some tc rules deliver a datagram while it is being sent.
	 */
	if (c->taken)
		return NULL;
	c->taken = true;
	return c->room;
}

void acp_aead_room_put(const struct acp_secret *s)
{
	this_cpu_ptr(s->ciphers)->taken = false;
}

/* ---- start ---- */

/* Bytes of the bodies that are tested: none, a block and a part, pairs of blocks and a part. */
static const u32 trials[] = { 0, 27, 107 };

#define TRIAL	(ACP_AEAD_BODY + 107 + ACP_FRAME_AEAD_TAG)

/* Do our code and the kernel's agree on a frame of @size bytes?  BH off. */
static bool agree(struct acp_secret *s, u8 *frame, u8 *other, u32 size)
{
	struct acp_frame_nonce *block = (void *)(frame + sizeof(struct acp_frame_hdr));
	struct acp_aegis a;

	get_random_bytes(frame, size);
	get_random_bytes(s->out.aegis, sizeof(s->out.aegis));
	block->cipher = cpu_to_be32(ACP_CIPHER_AEGIS);
	memcpy(other, frame, size);
	if (!may_use_simd() ||
	    crypt(crypto_aead_encrypt, s, &s->out, frame, size - ACP_AEAD_BODY,
		  size - ACP_AEAD_BODY - ACP_FRAME_AEAD_TAG))
		return false;
	a = own(&s->out, other, other + ACP_AEAD_BODY, size);
	acp_aegis_close(&a, other + size - ACP_FRAME_AEAD_TAG);
	if (memcmp(frame, other, size))
		return false;
	return !open_own(&s->out, other, frame + ACP_AEAD_BODY, size);
}

static bool try_own(void)
{
	struct acp_secret *s = kzalloc(sizeof(*s), GFP_KERNEL);
	u8 *frames = kmalloc(2 * TRIAL, GFP_KERNEL);
	bool ok = s && frames;
	u32 i;

	if (ok) {
		s->ciphers = ciphers;
		local_bh_disable();
		for (i = 0; i < ARRAY_SIZE(trials); i++)
			ok &= agree(s, frames, frames + TRIAL,
				    ACP_AEAD_BODY + trials[i] + ACP_FRAME_AEAD_TAG);
		local_bh_enable();
		if (!ok)
			pr_warn("acp: its AEGIS-128 differs from the kernel's, which it uses\n");
	}
	kfree(frames);
	kfree(s);
	return ok;
}

int acp_aead_start(struct acp_job *job)
{
	/* Nonces are drawn in contexts that cannot wait. */
	int err = wait_for_random_bytes();

	if (err)
		return -EINTR;
	/*
	 * Another caller may take a while to make the ciphers; only a fatal signal ends the wait.
	 */
	if (mutex_lock_killable(&ciphers_lock))
		return -EINTR;
	if (!ciphers) {
		load_modules();
		aes.how = find(&aes);
		aegis.how = find(&aegis);
		err = make_ciphers();
		if (!err)
			own_aegis = aegis.how > SLOW && acp_aegis_able() && try_own();
	}
	job->ciphers = ciphers;
	mutex_unlock(&ciphers_lock);
	return !err || err == -ENOMEM || err == -EINTR ? err : -EOPNOTSUPP;
}
