// SPDX-License-Identifier: MIT
/*
 * kernel/core/reduce.c: float and double bit for bit as the processor computes them, for all pairs
 * of special numbers and for random ones; integers as C defines them.
 */
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include "test.h"
#include "reduce.h"

#define RANDOM	10000000u	/* pairs per operation and type */

static u64 random_state = 88172645463325252ULL;

static u64 rnd(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 0x2545f4914f6cdd1d;
}

static u64 reduce(u32 op, u32 type, u64 a, u64 b)
{
	const u64 what = ACP_REDUCE(op, type);
	u32 low_a = (u32)a, low_b = (u32)b;

	if (acp_reduce_width(what) == 8) {
		acp_reduce_run(what, &a, &b, 8);
		return a;
	}
	acp_reduce_run(what, &low_a, &low_b, 4);
	return low_a;
}

/* ---- What the processor computes ---- */

static float to_float(u64 x)
{
	const u32 low = (u32)x;
	float f;

	memcpy(&f, &low, sizeof(f));
	return f;
}

static u64 of_float(float f)
{
	u32 x;

	memcpy(&x, &f, sizeof(x));
	return x;
}

static double to_double(u64 x)
{
	double d;

	memcpy(&d, &x, sizeof(d));
	return d;
}

static u64 of_double(double d)
{
	u64 x;

	memcpy(&x, &d, sizeof(x));
	return x;
}

#ifdef __x86_64__
/* The compiler might exchange operands, and which NaN is the result depends on their order. */
#define COMPUTE(instruction, a, b)	__asm__(instruction " %1, %0" : "+x" (a) : "x" (b))
#define EXACT_NANS	true
#else
#define COMPUTE(instruction, a, b)	\
	((a) = (instruction)[0] == 'a' ? (a) + (b) : (a) * (b))
#define EXACT_NANS	false
#endif

static u64 processor(u32 op, u32 type, u64 a, u64 b)
{
	double x = to_double(a), y = to_double(b);
	float v = to_float(a), w = to_float(b);

	if (type == ACP_REDUCE_F64 && op == ACP_REDUCE_SUM)
		COMPUTE("addsd", x, y);
	else if (type == ACP_REDUCE_F64)
		COMPUTE("mulsd", x, y);
	else if (op == ACP_REDUCE_SUM)
		COMPUTE("addss", v, w);
	else
		COMPUTE("mulss", v, w);
	return type == ACP_REDUCE_F64 ? of_double(x) : of_float(v);
}

static bool is_nan(u32 type, u64 x)
{
	return type == ACP_REDUCE_F64 ? isnan(to_double(x)) : isnan(to_float(x));
}

/* IEEE 754-2019, minimum and maximum. */
static u64 extreme(u32 op, u32 type, u64 a, u64 b)
{
	const u64 quiet = type == ACP_REDUCE_F64 ? 1ULL << 51 : 1ULL << 22;
	const double x = type == ACP_REDUCE_F64 ? to_double(a) : (double)to_float(a);
	const double y = type == ACP_REDUCE_F64 ? to_double(b) : (double)to_float(b);
	bool first;

	if (is_nan(type, a))
		return a | quiet;
	if (is_nan(type, b))
		return b | quiet;
	if (x == y)
		first = !!signbit(x) == (op == ACP_REDUCE_MIN);
	else
		first = (x < y) == (op == ACP_REDUCE_MIN);
	return first ? a : b;
}

static void compare(u32 op, u32 type, u64 a, u64 b)
{
	const u64 mask = type == ACP_REDUCE_F64 ? ~0ULL : ~0u;
	u64 got, want;

	a &= mask;
	b &= mask;
	got = reduce(op, type, a, b);
	want = op <= ACP_REDUCE_PROD ? processor(op, type, a, b) : extreme(op, type, a, b);
	if (!EXACT_NANS && is_nan(type, want) && is_nan(type, got))
		return;
	if (got != want)
		FAIL("op %u type %u: %llx, %llx: %llx instead of %llx", op, type,
		     (unsigned long long)a, (unsigned long long)b, (unsigned long long)got,
		     (unsigned long long)want);
}

/* ---- Floating-point numbers ---- */

static u32 digits_of_type(u32 type)
{
	return type == ACP_REDUCE_F64 ? 52 : 23;
}

/* Numbers at whose sides something changes, and their neighbours. */
static u32 special(u32 type, u64 *list)
{
	const u32 digits = digits_of_type(type), width = type == ACP_REDUCE_F64 ? 64 : 32;
	const u64 one = 1ULL << digits, max = (1ULL << (width - 1 - digits)) - 1, bias = max / 2;
	const u64 exponents[] = {
		0, 1, 2, digits, digits + 1, bias / 2, bias / 2 + 1, bias - digits - 2,
		bias - digits - 1, bias - digits, bias - 2, bias - 1, bias, bias + 1,
		bias + digits, bias + digits + 1, bias + digits + 2, max - digits, max - 2, max - 1,
		max,
	};
	const u64 fractions[] = {
		0, 1, 2, 3, one / 2 - 1, one / 2, one / 2 + 1, one - 2, one - 1, one / 3,
	};
	u32 n = 0, i, j;

	for (i = 0; i < sizeof(exponents) / sizeof(exponents[0]); i++)
		for (j = 0; j < sizeof(fractions) / sizeof(fractions[0]); j++) {
			list[n] = exponents[i] << digits | fractions[j];
			list[n + 1] = list[n] | 1ULL << (width - 1);
			n += 2;
		}
	return n;
}

#define SPECIAL_MAX	1000

TEST(reduce__all_pairs_of_special_numbers_as_the_processor)
{
	static u64 list[SPECIAL_MAX];
	u32 type, op, n, i, j;

	for (type = ACP_REDUCE_F32; type <= ACP_REDUCE_F64; type++) {
		n = special(type, list);
		CHECK(n > 400 && n < SPECIAL_MAX);
		for (op = ACP_REDUCE_SUM; op <= ACP_REDUCE_MAX; op++)
			for (i = 0; i < n; i++)
				for (j = 0; j < n; j++)
					compare(op, type, list[i], list[j]);
	}
}

/* A random number whose exponent is near that of another one, or that is near it, or any. */
static u64 near(u32 type, u64 other)
{
	const u32 digits = digits_of_type(type);
	u64 x = rnd();

	switch (rnd() % 4) {
	case 0:
		return x;
	case 1:
		return other ^ (x & 15) ^ x >> 63 << (type == ACP_REDUCE_F64 ? 63 : 31);
	case 2:		/* subnormal, or little larger */
		return x & ~(type == ACP_REDUCE_F64 ? 0x7fcULL << 52 : 0x7eULL << 24);
	default:
		return (other & -1ULL << digits) + (x & ((1ULL << digits) - 1)) +
		       ((x >> 56) % (2 * digits) << digits);
	}
}

static void random_pairs(u32 op, u32 type)
{
	u64 a = 1;
	u32 i;

	for (i = 0; i < RANDOM; i++) {
		const u64 b = near(type, a);

		compare(op, type, a, b);
		a = i % 3 ? rnd() : b;
	}
}

TEST(reduce__random_sums_of_float_as_the_processor)
{
	random_pairs(ACP_REDUCE_SUM, ACP_REDUCE_F32);
}

TEST(reduce__random_sums_of_double_as_the_processor)
{
	random_pairs(ACP_REDUCE_SUM, ACP_REDUCE_F64);
}

TEST(reduce__random_products_of_float_as_the_processor)
{
	random_pairs(ACP_REDUCE_PROD, ACP_REDUCE_F32);
}

TEST(reduce__random_products_of_double_as_the_processor)
{
	random_pairs(ACP_REDUCE_PROD, ACP_REDUCE_F64);
}

TEST(reduce__random_extremes_as_ieee_754)
{
	u32 type;

	for (type = ACP_REDUCE_F32; type <= ACP_REDUCE_F64; type++) {
		random_pairs(ACP_REDUCE_MIN, type);
		random_pairs(ACP_REDUCE_MAX, type);
	}
}

/* For a processor that is not the reference. */
TEST(reduce__known_results)
{
	CHECK_EQ(reduce(ACP_REDUCE_SUM, ACP_REDUCE_F64, of_double(0.1), of_double(0.2)),
		 0x3fd3333333333334ULL);
	CHECK_EQ(reduce(ACP_REDUCE_PROD, ACP_REDUCE_F64, 1, of_double(0.5)), 0);
	CHECK_EQ(reduce(ACP_REDUCE_PROD, ACP_REDUCE_F64, 3, of_double(0.5)), 2);
	CHECK_EQ(reduce(ACP_REDUCE_SUM, ACP_REDUCE_F64, of_double(1), of_double(-1)), 0);
	CHECK_EQ(reduce(ACP_REDUCE_SUM, ACP_REDUCE_F32, of_float(-0.f), of_float(-0.f)),
		 0x80000000u);
	CHECK_EQ(reduce(ACP_REDUCE_SUM, ACP_REDUCE_F32, 0x7f7fffff, 0x73000000), 0x7f800000);
	CHECK_EQ(reduce(ACP_REDUCE_SUM, ACP_REDUCE_F32, 0x7f7fffff, 0x72ffffff), 0x7f7fffff);
	CHECK_EQ(reduce(ACP_REDUCE_SUM, ACP_REDUCE_F32, 0x7f800000, 0xff800000), 0xffc00000);
	CHECK_EQ(reduce(ACP_REDUCE_PROD, ACP_REDUCE_F64, 0, 0xfff0000000000000ULL),
		 0xfff8000000000000ULL);
	CHECK_EQ(reduce(ACP_REDUCE_SUM, ACP_REDUCE_F32, 0x3f800000, 0x7f800001), 0x7fc00001);
	CHECK_EQ(reduce(ACP_REDUCE_MAX, ACP_REDUCE_F32, 0xff800005, 0x7f800001), 0xffc00005);
	CHECK_EQ(reduce(ACP_REDUCE_MIN, ACP_REDUCE_F32, 0, 0x80000000), 0x80000000);
	CHECK_EQ(reduce(ACP_REDUCE_MAX, ACP_REDUCE_F64, 1ULL << 63, 0), 0);
	/* It is the second operand, whatever it is: not even a NaN is made quiet. */
	CHECK_EQ(reduce(ACP_REDUCE_REPLACE, ACP_REDUCE_F32, 0x7f800005, 0x7f800001), 0x7f800001);
}

/* ---- Integers ---- */

static u64 whole(u32 op, u32 type, u64 a, u64 b)
{
	const bool is_signed = type <= ACP_REDUCE_S64, wide = type % 2;
	const __int128 x = is_signed ? (wide ? (int64_t)a : (int32_t)a) : (__int128)a;
	const __int128 y = is_signed ? (wide ? (int64_t)b : (int32_t)b) : (__int128)b;
	u64 low;

	switch (op) {
	case ACP_REDUCE_SUM:
		low = (u64)(x + y);
		break;
	case ACP_REDUCE_PROD:
		low = (u64)x * (u64)y;
		break;
	case ACP_REDUCE_MIN:
		low = (u64)(x < y ? x : y);
		break;
	case ACP_REDUCE_MAX:
		low = (u64)(x > y ? x : y);
		break;
	case ACP_REDUCE_AND:
		low = a & b;
		break;
	case ACP_REDUCE_OR:
		low = a | b;
		break;
	case ACP_REDUCE_XOR:
		low = a ^ b;
		break;
	default:
		low = b;
	}
	return wide ? low : (u32)low;
}

TEST(reduce__integers)
{
	const u64 list[] = {
		0, 1, 2, -1ULL, -2ULL, 1ULL << 63, (1ULL << 63) - 1, 1ULL << 31, (1ULL << 31) - 1,
		1ULL << 32, 0x5555555555555555ULL,
	};
	const u32 n = sizeof(list) / sizeof(list[0]);
	u32 type, op, i;

	for (type = ACP_REDUCE_S32; type <= ACP_REDUCE_U64; type++)
		for (op = 0; op < ACP_REDUCE_OP_END; op++)
			for (i = 0; i < 100000; i++) {
				u64 a = i < n * n ? list[i / n] : rnd();
				u64 b = i < n * n ? list[i % n] : rnd() >> rnd() % 64;

				a = type % 2 ? a : (u32)a;
				b = type % 2 ? b : (u32)b;
				CHECK_EQ(reduce(op, type, a, b), whole(op, type, a, b));
			}
}

/* ---- Commands ---- */

TEST(reduce__which_operations_exist)
{
	u64 what;
	u32 bit;

	for (what = 0; what < 1 << 16; what++) {
		const u32 op = what & 0xff, type = (u32)(what >> 8);
		const bool bits = op >= ACP_REDUCE_AND && op <= ACP_REDUCE_XOR;
		const bool exists = op < 8 && type < 6 && !(bits && type >= 4);

		CHECK_EQ(acp_reduce_width(what), !exists ? 0 : type % 2 ? 8 : 4);
	}
	for (bit = 16; bit < 64; bit++)
		CHECK(!acp_reduce_width(1ULL << bit) && !acp_reduce_width(1ULL << bit | 0x0501));
}

/* Many numbers: all of them, none beyond, each by itself; dst may be src. */
TEST(reduce__many_numbers)
{
	u64 *dst, *src, sum[64];
	u32 n, i;

	for (n = 0; n <= 64; n++) {
		/* The sanitizer watches their ends. */
		dst = malloc(n * 8);
		src = malloc(n * 8);
		for (i = 0; i < n; i++) {
			dst[i] = rnd();
			src[i] = rnd();
			sum[i] = dst[i] + src[i];
		}
		acp_reduce_run(ACP_REDUCE(ACP_REDUCE_SUM, ACP_REDUCE_S64), dst, src, n * 8);
		CHECK(!n || !memcmp(dst, sum, n * 8));
		acp_reduce_run(ACP_REDUCE(ACP_REDUCE_SUM, ACP_REDUCE_U64), dst, dst, n * 8);
		for (i = 0; i < n; i++)
			CHECK_EQ(dst[i], 2 * sum[i]);
		if (n) {
			acp_reduce_run(ACP_REDUCE(ACP_REDUCE_MAX, ACP_REDUCE_U32), dst, src,
				       n * 8 - 4);
			CHECK_EQ(dst[n - 1] >> 32, 2 * sum[n - 1] >> 32);
		}
		free(dst);
		free(src);
	}
}

TEST_MAIN

/* ---- Atomically ---- */

/* The same results, one by one or many; the numbers around do not change. */
TEST(atomic__as_all_at_once)
{
	u64 all[40], each[40], from[32];
	u32 op, type, round, i;

	for (type = 0; type < ACP_REDUCE_TYPE_END; type++)
		for (op = 0; op < ACP_REDUCE_OP_END; op++)
			for (round = 0; round < 50; round++) {
				const u64 what = ACP_REDUCE(op, type);
				const u32 width = acp_reduce_width(what);
				const u32 size = 256 - round % 8 * width;

				if (!width)
					continue;
				for (i = 0; i < 40; i++) {
					all[i] = rnd();
					from[i % 32] = rnd();
				}
				memcpy(each, all, sizeof(all));
				acp_reduce_run(what, all + 4, from, size);
				acp_reduce_atomic(what, each + 4, from, size);
				CHECK(!memcmp(all, each, sizeof(all)));
			}
}

static u64 shared[16];

/* 16 numbers of 8 bytes, and 32 of 4 bytes, which are others. */
static void *add_shared(void *state)
{
	u64 ones[8], doubles[4];
	u32 small[8], i;

	for (i = 0; i < 8; i++) {
		ones[i] = 1;
		small[i] = 1;
		doubles[i % 4] = of_double(1);
	}
	for (i = 0; i < 20000; i++) {
		acp_reduce_atomic(ACP_REDUCE(ACP_REDUCE_SUM, ACP_REDUCE_S64), shared, ones, 64);
		acp_reduce_atomic(ACP_REDUCE(ACP_REDUCE_SUM, ACP_REDUCE_F64), shared + 8, doubles,
				  32);
		acp_reduce_atomic(ACP_REDUCE(ACP_REDUCE_SUM, ACP_REDUCE_U32), shared + 12, small,
				  32);
		__atomic_fetch_add(&shared[i % 8], 1, __ATOMIC_RELAXED);
	}
	return state;
}

TEST(atomic__nothing_is_lost)
{
	pthread_t thread[3];
	u32 i;

	for (i = 0; i < 3; i++)
		CHECK(!pthread_create(&thread[i], NULL, add_shared, NULL));
	for (i = 0; i < 3; i++)
		CHECK(!pthread_join(thread[i], NULL));
	for (i = 0; i < 16; i++)
		CHECK_EQ(shared[i], i < 8 ? 3 * 22500 : i < 12 ? of_double(60000) :
			 60000ULL << 32 | 60000);
}
