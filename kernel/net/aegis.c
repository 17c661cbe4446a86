// SPDX-License-Identifier: GPL-2.0-only
/* AEGIS-128 with CPU instructions: see aegis.h. */
#include <linux/kernel.h>
#include <linux/string.h>
#include "aegis.h"

#if defined(CONFIG_X86_64) && !defined(CONFIG_UML)
#include <asm/cpufeature.h>
#include <asm/fpu/api.h>

#define BLOCK	ACP_AEGIS_BLOCK
#define CLEAR	64		/* most bytes of additional data; absorbed in pairs of blocks */

/* S0 to S4 of the specification, which also defines the names of the steps. */
struct state {
	u8 s[5][BLOCK];
};

/*
 * Between steps, S0 to S3 are in xmm0 to xmm3.  S4 is in "s4" before a step and in "next" after it,
 * so these two registers swap roles with each step, and the code does two steps at a time.
 */
#define LOAD_STATE \
	"vmovdqu 0(%[s]), %%xmm0\n\t" \
	"vmovdqu 16(%[s]), %%xmm1\n\t" \
	"vmovdqu 32(%[s]), %%xmm2\n\t" \
	"vmovdqu 48(%[s]), %%xmm3\n\t" \
	"vmovdqu 64(%[s]), %%xmm4\n\t"
#define STORE_STATE(s4) \
	"vmovdqu %%xmm0, 0(%[s])\n\t" \
	"vmovdqu %%xmm1, 16(%[s])\n\t" \
	"vmovdqu %%xmm2, 32(%[s])\n\t" \
	"vmovdqu %%xmm3, 48(%[s])\n\t" \
	"vmovdqu %%" #s4 ", 64(%[s])\n\t"

/* StateUpdate128() with a block as operand. */
#define STEP(block, s4, next) \
	"vaesenc %%" #s4 ", %%xmm3, %%" #next "\n\t" \
	"vaesenc %%xmm3, %%xmm2, %%xmm3\n\t" \
	"vaesenc %%xmm2, %%xmm1, %%xmm2\n\t" \
	"vaesenc %%xmm1, %%xmm0, %%xmm1\n\t" \
	"vpxor " block ", %%xmm0, %%xmm0\n\t" \
	"vaesenc %%xmm0, %%" #s4 ", %%xmm0\n\t"

/* Compute in xmm6 the key stream for a block of the text. */
#define KEYSTREAM(s4) \
	"vpand %%xmm2, %%xmm3, %%xmm6\n\t" \
	"vpxor %%" #s4 ", %%xmm1, %%xmm7\n\t" \
	"vpxor %%xmm6, %%xmm7, %%xmm6\n\t"

/* Encrypt or decrypt the block at "at" plus "offset" to xmm6, and absorb the plain text. */
#define CLOSE(offset, s4, next) \
	KEYSTREAM(s4) \
	"vmovdqu " #offset "(%[from], %[at]), %%xmm7\n\t" \
	"vpxor %%xmm7, %%xmm6, %%xmm6\n\t" \
	"vmovdqu %%xmm6, " #offset "(%[to], %[at])\n\t" \
	STEP("%%xmm7", s4, next)
#define OPEN(offset, s4, next) \
	KEYSTREAM(s4) \
	"vpxor " #offset "(%[from], %[at]), %%xmm6, %%xmm6\n\t" \
	"vmovdqu %%xmm6, " #offset "(%[to], %[at])\n\t" \
	STEP("%%xmm6", s4, next)

/* Process a text of whole pairs of blocks: "size" bytes, at least one pair. */
#define PAIRS(what, st, source, target, size) do { \
	long at = -(long)(size);	/* from the end, up to 0 */ \
	asm volatile(LOAD_STATE \
		     "1:\n\t" \
		     what(0, xmm4, xmm5) \
		     what(16, xmm5, xmm4) \
		     "addq $32, %[at]\n\t" \
		     "jnz 1b\n\t" \
		     STORE_STATE(xmm4) \
		     : [at] "+r" (at) \
		     : [s] "r" (st), [from] "r" ((source) + (size)), [to] "r" ((target) + (size)) \
		     : "memory", "cc"); \
} while (0)

/* Absorb pairs of blocks that are not output, each "step" bytes after the previous one. */
static void absorb(struct state *s, const u8 *blocks, long step, u32 pairs)
{
	asm volatile(LOAD_STATE
		     "1:\n\t"
		     STEP("0(%[at])", xmm4, xmm5)
		     STEP("16(%[at])", xmm5, xmm4)
		     "addq %[step], %[at]\n\t"
		     "decl %[pairs]\n\t"
		     "jnz 1b\n\t"
		     STORE_STATE(xmm4)
		     : [at] "+r" (blocks), [pairs] "+r" (pairs)
		     : [s] "r" (s), [step] "r" (step)
		     : "memory", "cc");
}

static void absorb_one(struct state *s, const u8 block[BLOCK])
{
	asm volatile(LOAD_STATE
		     STEP("0(%[at])", xmm4, xmm5)
		     STORE_STATE(xmm5)
		     : : [s] "r" (s), [at] "r" (block)
		     : "memory", "cc");
}

static void keystream(const struct state *s, u8 block[BLOCK])
{
	asm volatile(LOAD_STATE
		     KEYSTREAM(xmm4)
		     "vmovdqu %%xmm6, 0(%[at])\n\t"
		     : : [s] "r" (s), [at] "r" (block)
		     : "memory", "cc");
}

static void xor(u8 *to, const u8 *a, const u8 *b)
{
	u64 x[2], y[2];

	memcpy(x, a, BLOCK);
	memcpy(y, b, BLOCK);
	x[0] ^= y[0];
	x[1] ^= y[1];
	memcpy(to, x, BLOCK);
}

static void begin(struct state *s, const struct acp_aegis *a)
{
	static const u8 constants[2][BLOCK] = {
		{ 0x00, 0x01, 0x01, 0x02, 0x03, 0x05, 0x08, 0x0d,
		  0x15, 0x22, 0x37, 0x59, 0x90, 0xe9, 0x79, 0x62 },
		{ 0xdb, 0x3d, 0x18, 0x55, 0x6d, 0xc2, 0x2f, 0xf1,
		  0x20, 0x11, 0x31, 0x42, 0x73, 0xb5, 0x28, 0xdd },
	};
	u8 pair[2][BLOCK], clear[CLEAR] = {};

	memcpy(pair[0], a->key, BLOCK);
	xor(pair[1], a->key, a->nonce);
	memcpy(s->s[0], pair[1], BLOCK);
	memcpy(s->s[1], constants[1], BLOCK);
	memcpy(s->s[2], constants[0], BLOCK);
	xor(s->s[3], a->key, constants[0]);
	xor(s->s[4], a->key, constants[1]);
	absorb(s, pair[0], 0, 5);
	memzero_explicit(pair, sizeof(pair));
	memcpy(clear, a->clear, a->clear_size);
	absorb(s, clear, 2 * BLOCK, DIV_ROUND_UP(a->clear_size, 2 * BLOCK));
}

static void end(struct state *s, const struct acp_aegis *a, u8 tag[BLOCK])
{
	const __le64 bits[2] = { cpu_to_le64(8ULL * a->clear_size), cpu_to_le64(8ULL * a->size) };
	u8 pair[2][BLOCK];
	u32 i;

	xor(pair[0], s->s[3], (const u8 *)bits);
	memcpy(pair[1], pair[0], BLOCK);
	absorb(s, pair[0], 0, 3);
	absorb_one(s, pair[0]);
	memcpy(tag, s->s[0], BLOCK);
	for (i = 1; i < 5; i++)
		xor(tag, tag, s->s[i]);
	memzero_explicit(s, sizeof(*s));
}

/* Process the rest of a text, less than two blocks. */
static void rest(struct state *s, const u8 *from, u8 *to, u32 size, bool open)
{
	u8 key[BLOCK], block[BLOCK];
	u32 n;

	for (; size; size -= n, from += n, to += n) {
		u8 in[BLOCK] = {};

		n = min_t(u32, size, BLOCK);
		memcpy(in, from, n);
		keystream(s, key);
		xor(block, in, key);
		memcpy(to, block, n);
		memset(block + n, 0, BLOCK - n);
		absorb_one(s, open ? block : in);
	}
}

bool acp_aegis_able(void)
{
	return boot_cpu_has(X86_FEATURE_AES) && boot_cpu_has(X86_FEATURE_AVX) &&
	       cpu_has_xfeatures(XFEATURE_MASK_SSE | XFEATURE_MASK_YMM, NULL);
}

static __always_inline void crypt(const struct acp_aegis *a, u8 tag[BLOCK], bool open)
{
	u32 size = round_down(a->size, 2 * BLOCK);
	struct state s;

	kernel_fpu_begin();
	begin(&s, a);
	if (size && open)
		PAIRS(OPEN, &s, a->from, a->to, size);
	else if (size)
		PAIRS(CLOSE, &s, a->from, a->to, size);
	rest(&s, a->from + size, a->to + size, a->size - size, open);
	end(&s, a, tag);
	kernel_fpu_end();
}

void acp_aegis_close(const struct acp_aegis *a, u8 tag[ACP_AEGIS_BLOCK])
{
	crypt(a, tag, false);
}

void acp_aegis_open(const struct acp_aegis *a, u8 tag[ACP_AEGIS_BLOCK])
{
	crypt(a, tag, true);
}
#else
bool acp_aegis_able(void)
{
	return false;
}

void acp_aegis_close(const struct acp_aegis *a, u8 tag[ACP_AEGIS_BLOCK])
{
}

void acp_aegis_open(const struct acp_aegis *a, u8 tag[ACP_AEGIS_BLOCK])
{
}
#endif
