// SPDX-License-Identifier: MIT
/*
 * Cost of protecting a long payload on this CPU, in TSC cycles per byte: the function of the module
 * (kernel/core/nh.c, the same file), and alternatives that were considered.
 *
 *	make -C selftests/unit speed && selftests/unit/speed_tag [bytes of a payload]...
 *
 * The minimum of many runs is printed, so that other load of the machine does not matter.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nh.h"
#include "siphash.h"

#define MOST	65536
#define RUNS	400

static struct acp_nh_key nh_key;
static struct acp_tag_start start;
static const u64 job_key[2] = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 };
static u8 head[72], data[MOST], other[MOST];
static volatile u64 sink;

static void tag_whole(u32 size)
{
	struct acp_nh t;

	acp_nh_begin(&t, &nh_key, &start, head, sizeof(head));
	acp_nh_add(&t, data, size);
	sink = acp_nh_end(&t);
}

static void tag_head(u32 size)
{
	(void)size;
	sink = acp_tag(&start, head, sizeof(head));
}

static void siphash_all(u32 size)
{
	const struct siphash_key key = { { job_key[0], job_key[1] } };

	sink = siphash24(&key, data, size);
}

static void copy(u32 size)
{
	memcpy(other, data, size);
	__asm__ volatile("" : : : "memory");
}

#ifdef __x86_64__
#include <immintrin.h>
#include <x86intrin.h>

static u64 cycles(void)
{
	unsigned int cpu;

	return __rdtscp(&cpu);
}

__attribute__((target("sse4.2")))
static void crc32c_instruction(u32 size)
{
	u64 crc = ~0u;
	u32 i;

	for (i = 0; i < size; i += 8)
		crc = _mm_crc32_u64(crc, *(const u64 *)(data + i));
	sink = crc;
}

/* Add one product without reduction to three sums (Karatsuba would need three as well). */
#define CLMUL	__attribute__((target("pclmul,sse4.1")))

struct sums {
	__m128i low, middle, high;
};

CLMUL static inline void multiply(struct sums *s, __m128i a, __m128i b)
{
	s->low = _mm_xor_si128(s->low, _mm_clmulepi64_si128(a, b, 0x00));
	s->high = _mm_xor_si128(s->high, _mm_clmulepi64_si128(a, b, 0x11));
	s->middle = _mm_xor_si128(s->middle, _mm_clmulepi64_si128(a, b, 0x01));
	s->middle = _mm_xor_si128(s->middle, _mm_clmulepi64_si128(a, b, 0x10));
}

/* Reduce modulo x^128 + x^127 + x^126 + x^121 + 1, as in POLYVAL. */
CLMUL static inline __m128i reduce(struct sums s)
{
	const __m128i poly = _mm_set_epi64x(0, -0x3e00000000000000LL);
	__m128i low = _mm_xor_si128(s.low, _mm_slli_si128(s.middle, 8));
	__m128i high = _mm_xor_si128(s.high, _mm_srli_si128(s.middle, 8));
	__m128i t = _mm_clmulepi64_si128(low, poly, 0x00);

	low = _mm_xor_si128(_mm_shuffle_epi32(low, 0x4e), t);
	t = _mm_clmulepi64_si128(low, poly, 0x00);
	low = _mm_xor_si128(_mm_shuffle_epi32(low, 0x4e), t);
	return _mm_xor_si128(high, low);
}

/* POLYVAL, with one reduction per eight blocks. */
CLMUL static void polyval(u32 size)
{
	static __m128i powers[8];
	__m128i sum = _mm_setzero_si128();
	u32 i, k;

	if (!_mm_cvtsi128_si64(powers[0]))
		for (k = 0; k < 8; k++)
			powers[k] = _mm_set_epi64x((long long)nh_key.words[k],
						   (long long)nh_key.words[k + 8]);
	for (i = 0; i + 128 <= size; i += 128) {
		struct sums s = { _mm_setzero_si128(), _mm_setzero_si128(), _mm_setzero_si128() };

		for (k = 0; k < 8; k++) {
			__m128i m = _mm_loadu_si128((const void *)(data + i + 16 * k));

			multiply(&s, k ? m : _mm_xor_si128(m, sum), powers[k]);
		}
		sum = reduce(s);
	}
	sink = (u64)_mm_cvtsi128_si64(sum);
}

/*
 * NH by AVX2 with words of 32 bits in two passes, which is as safe as one with 64 bits: as in
 * UMAC-64.
 */
__attribute__((target("avx2")))
static void nh_avx2(u32 size)
{
	const u8 *key = (const u8 *)nh_key.words;
	__m256i a = _mm256_setzero_si256(), b = a;
	u32 i, k;

	for (i = 0; i + 32 <= size; i += 32) {
		__m256i m = _mm256_loadu_si256((const void *)(data + i)), x, y;

		k = i % (ACP_NH_BLOCK - 64);
		x = _mm256_add_epi32(m, _mm256_loadu_si256((const void *)(key + k)));
		y = _mm256_add_epi32(m, _mm256_loadu_si256((const void *)(key + k + 16)));
		a = _mm256_add_epi64(a, _mm256_mul_epu32(x, _mm256_shuffle_epi32(x, 0x4e)));
		b = _mm256_add_epi64(b, _mm256_mul_epu32(y, _mm256_shuffle_epi32(y, 0x4e)));
	}
	sink = (u64)_mm256_extract_epi64(_mm256_xor_si256(a, b), 0);
}
#endif

static const struct {
	const char *name;
	void (*run)(u32 size);
} ways[] = {
	{ "tag of header and message alone", tag_head },
	{ "tag of the whole frame: NH, SipHash-2-4", tag_whole },
#ifdef __x86_64__
	{ "POLYVAL by PCLMULQDQ, of the payload", polyval },
	{ "NH by AVX2, 32 bits twice", nh_avx2 },
	{ "CRC-32C by its instruction", crc32c_instruction },
#endif
	{ "SipHash-2-4 of the payload", siphash_all },
	{ "memcpy() of the payload", copy },
};

#ifndef __x86_64__
#include <time.h>

static u64 cycles(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec;
}
#endif

static double least(void (*run)(u32 size), u32 size)
{
	u64 best = ~0ULL;
	int i, k;

	for (i = 0; i < RUNS; i++) {
		u64 before = cycles(), took;

		for (k = 0; k < 16; k++)
			run(size);
		took = cycles() - before;
		if (took < best)
			best = took;
	}
	return (double)best / 16;
}

static void measure(u32 size)
{
	size_t i;

	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		double all = least(ways[i].run, size);

		printf("%6u bytes  %9.0f  %6.3f a byte  %s\n", size, all, all / size, ways[i].name);
	}
}

int main(int argc, char **argv)
{
	int i;

	for (i = 0; i < MOST; i++)
		data[i] = (u8)(i * 7 + i / 256);
	head[0] = 1;
	acp_nh_derive(&nh_key, job_key);
	acp_tag_begin(&start, job_key, head);
	if (argc < 2) {
		measure(1376);
		measure(8192);
	}
	for (i = 1; i < argc; i++)
		measure((u32)strtoul(argv[i], NULL, 0) % (MOST + 1) & ~127u);
	return 0;
}
