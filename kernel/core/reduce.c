// SPDX-License-Identifier: GPL-2.0-only
/* Combination of numbers: see reduce.h. */
#include "reduce.h"

static_assert(ACP_REDUCE_S32 % 2 == 0 && ACP_REDUCE_U32 % 2 == 0 && ACP_REDUCE_F32 % 2 == 0);
static_assert(ACP_REDUCE_S64 % 2 && ACP_REDUCE_U64 % 2 && ACP_REDUCE_F64 % 2);

/* ---- floating-point numbers ---- */

/* A format of IEEE 754. Functions get it as a constant, and the compiler removes it. */
struct format {
	u32 digits;		/* bits of the fraction */
	u64 infinity;
};

#define SINGLE	((struct format){ 23, 0xffULL << 23 })
#define DOUBLE	((struct format){ 52, 0x7ffULL << 52 })

static __always_inline u64 sign_of(const struct format f)
{
	return f.infinity + (1ULL << f.digits);
}

static __always_inline u64 size_of(const struct format f, u64 x)
{
	return x & (sign_of(f) - 1);
}

static __always_inline u64 quiet_of(const struct format f)
{
	return 1ULL << (f.digits - 1);
}

/* The result of an invalid operation. */
static __always_inline u64 invalid(const struct format f)
{
	return sign_of(f) | f.infinity | quiet_of(f);
}

static __always_inline bool any_nan(const struct format f, u64 a, u64 b)
{
	return size_of(f, a) > f.infinity || size_of(f, b) > f.infinity;
}

/* The first operand that is a NaN, made quiet. */
static __always_inline u64 first_nan(const struct format f, u64 a, u64 b)
{
	return (size_of(f, a) > f.infinity ? a : b) | quiet_of(f);
}

/* The exponent of a finite number as stored, but 1 for subnormal ones, whose scale is the same. */
static __always_inline int exponent(const struct format f, u64 x)
{
	int e = size_of(f, x) >> f.digits;

	return e ?: 1;
}

/* The significand of a finite number. */
static __always_inline u64 digits_of(const struct format f, u64 x)
{
	u64 fraction = x & ((1ULL << f.digits) - 1);

	return size_of(f, x) >> f.digits ? fraction | 1ULL << f.digits : fraction;
}

/* Shift right; the lowest bit of the result is set if a bit is lost. */
static __always_inline u64 shift_sticky(u64 m, u32 n)
{
	if (n > 63)
		return m != 0;
	return m >> n | (m & ((1ULL << n) - 1) ? 1 : 0);
}

#define GUARD	3	/* bits of a significand below those of the result */

/*
 * Round to nearest, ties to even. @m has GUARD bits more than a significand, the last one of which
 * is set if bits were lost, and its leading bit in its place, or further right if @e is 1 or less.
 */
static __always_inline u64 rounded(const struct format f, u64 sign, int e, u64 m)
{
	u64 low, bits;

	if (e < 1) {
		m = shift_sticky(m, 1 - e);
		e = 1;
	}
	low = m & ((1 << GUARD) - 1);
	/* The leading bit adds 1 to the exponent, and so does the carry of a fraction of ones. */
	bits = ((u64)(e - 1) << f.digits) + (m >> GUARD);
	bits += low > 4 || (low == 4 && (bits & 1));
	return sign | min_t(u64, bits, f.infinity);
}

/* Bring the leading bit of @m, which is not 0, to its place, as far as exponents allow. */
static __always_inline u64 normalized(const struct format f, u64 sign, int e, u64 m)
{
	int left = (int)f.digits + GUARD + 1 - fls64(m);

	if (left < 0)
		return rounded(f, sign, e + 1, shift_sticky(m, 1));
	left = min_t(int, left, e - 1);
	return rounded(f, sign, e - left, m << left);
}

/* @a is not less than @b, but for the sign, and both are finite. */
static __always_inline u64 add_finite(const struct format f, u64 a, u64 b)
{
	int e = exponent(f, a);
	u64 large = digits_of(f, a) << GUARD;
	u64 small = shift_sticky(digits_of(f, b) << GUARD, e - exponent(f, b));
	bool same = !((a ^ b) & sign_of(f));
	u64 m = same ? large + small : large - small;

	if (!m)
		return same ? a & sign_of(f) : 0;
	return normalized(f, a & sign_of(f), e, m);
}

static __always_inline u64 add(const struct format f, u64 a, u64 b)
{
	if (any_nan(f, a, b))
		return first_nan(f, a, b);
	if (size_of(f, a) < size_of(f, b))
		return size_of(f, b) == f.infinity ? b : add_finite(f, b, a);
	if (size_of(f, a) < f.infinity)
		return add_finite(f, a, b);
	return size_of(f, b) == f.infinity && a != b ? invalid(f) : a;
}

/* The upper 64 bits of a product; the lowest bit is set if a lower one is lost. */
static __always_inline u64 product(u64 a, u64 b)
{
	u64 low = (u64)(u32)a * (u32)b;
	u64 left = (a >> 32) * (u32)b + (low >> 32);
	u64 right = (u64)(u32)a * (b >> 32) + (u32)left;
	u64 high = (a >> 32) * (b >> 32) + (left >> 32) + (right >> 32);

	return high | ((u32)low || (u32)right);
}

/* Both are finite, and not 0. */
static __always_inline u64 multiply_finite(const struct format f, u64 a, u64 b)
{
	u64 x = digits_of(f, a), y = digits_of(f, b), m;
	int e = exponent(f, a) + exponent(f, b) - (int)(f.infinity >> f.digits >> 1);
	int up = 64 - fls64(x), left = (int)f.digits + 1 - fls64(y);

	/* The leading bits of x and y to bits 63 and digits + 4. */
	e -= up - (63 - (int)f.digits) + left;
	m = product(x << up, y << left << (GUARD + 1));
	if (m >> (f.digits + GUARD + 1))
		return rounded(f, (a ^ b) & sign_of(f), e + 1, shift_sticky(m, 1));
	return rounded(f, (a ^ b) & sign_of(f), e, m);
}

static __always_inline u64 multiply(const struct format f, u64 a, u64 b)
{
	u64 sign = (a ^ b) & sign_of(f), x = size_of(f, a), y = size_of(f, b);

	if (any_nan(f, a, b))
		return first_nan(f, a, b);
	if (x == f.infinity || y == f.infinity)
		return x && y ? sign | f.infinity : invalid(f);
	return x && y ? multiply_finite(f, a, b) : sign;
}

/* A number that is less if the floating-point number is less; -0 is less than 0. */
static __always_inline u64 rank_of(const struct format f, u64 x)
{
	return x & sign_of(f) ? ~x & (2 * sign_of(f) - 1) : x | sign_of(f);
}

static __always_inline u64 smaller(const struct format f, u64 a, u64 b)
{
	if (any_nan(f, a, b))
		return first_nan(f, a, b);
	return rank_of(f, b) < rank_of(f, a) ? b : a;
}

static __always_inline u64 larger(const struct format f, u64 a, u64 b)
{
	if (any_nan(f, a, b))
		return first_nan(f, a, b);
	return rank_of(f, b) > rank_of(f, a) ? b : a;
}

/* ---- many numbers ---- */

typedef void run_t(void *dst, const void *src, size_t size);

/* A function that combines numbers of the type: a with b. */
#define RUN(name, word, result)						\
	static void name(void *dst, const void *src, size_t size)	\
	{								\
		size_t n = size / sizeof(word), i;			\
		const __typeof__(word) *from = src;			\
		__typeof__(word) *to = dst;				\
									\
		for (i = 0; i < n; i++) {				\
			const word a = READ_ONCE(to[i]);		\
			const word b = READ_ONCE(from[i]);		\
									\
			WRITE_ONCE(to[i], result);			\
		}							\
	}

RUN(sum_32, u32, a + b)
RUN(sum_64, u64, a + b)
RUN(prod_32, u32, a * b)
RUN(prod_64, u64, a * b)
RUN(min_s32, s32, b < a ? b : a)
RUN(min_s64, s64, b < a ? b : a)
RUN(min_u32, u32, b < a ? b : a)
RUN(min_u64, u64, b < a ? b : a)
RUN(max_s32, s32, b > a ? b : a)
RUN(max_s64, s64, b > a ? b : a)
RUN(max_u32, u32, b > a ? b : a)
RUN(max_u64, u64, b > a ? b : a)
RUN(and_32, u32, a & b)
RUN(and_64, u64, a & b)
RUN(or_32, u32, a | b)
RUN(or_64, u64, a | b)
RUN(xor_32, u32, a ^ b)
RUN(xor_64, u64, a ^ b)
RUN(replace_32, u32, ((void)a, b))
RUN(replace_64, u64, ((void)a, b))
RUN(sum_f32, u32, add(SINGLE, a, b))
RUN(sum_f64, u64, add(DOUBLE, a, b))
RUN(prod_f32, u32, multiply(SINGLE, a, b))
RUN(prod_f64, u64, multiply(DOUBLE, a, b))
RUN(min_f32, u32, smaller(SINGLE, a, b))
RUN(min_f64, u64, smaller(DOUBLE, a, b))
RUN(max_f32, u32, larger(SINGLE, a, b))
RUN(max_f64, u64, larger(DOUBLE, a, b))

static run_t *const runs[ACP_REDUCE_OP_END][ACP_REDUCE_TYPE_END] = {
	[ACP_REDUCE_SUM] = { sum_32, sum_64, sum_32, sum_64, sum_f32, sum_f64 },
	[ACP_REDUCE_PROD] = { prod_32, prod_64, prod_32, prod_64, prod_f32, prod_f64 },
	[ACP_REDUCE_MIN] = { min_s32, min_s64, min_u32, min_u64, min_f32, min_f64 },
	[ACP_REDUCE_MAX] = { max_s32, max_s64, max_u32, max_u64, max_f32, max_f64 },
	[ACP_REDUCE_AND] = { and_32, and_64, and_32, and_64 },
	[ACP_REDUCE_OR] = { or_32, or_64, or_32, or_64 },
	[ACP_REDUCE_XOR] = { xor_32, xor_64, xor_32, xor_64 },
	[ACP_REDUCE_REPLACE] = { replace_32, replace_64, replace_32, replace_64, replace_32,
				 replace_64 },
};

static run_t *find_run(u64 what)
{
	/* A CPU that mispredicts the check of the command calls nothing beyond the table. */
	u32 op = array_index_nospec(what & 0xff, ACP_REDUCE_OP_END);
	u32 type = array_index_nospec(what >> 8, ACP_REDUCE_TYPE_END);

	return runs[op][type];
}

void acp_reduce_run(u64 what, void *dst, const void *src, size_t size)
{
	find_run(what)(dst, src, size);
}

static void atomic_32(run_t *one, u32 *to, const u32 *from, size_t n)
{
	for (; n; n--, to++, from++) {
		u32 b = READ_ONCE(*from), old = READ_ONCE(*to), a;

		do {
			a = old;
			one(&a, &b, sizeof(a));
		} while (!try_cmpxchg(to, &old, a));
	}
}

static void atomic_64(run_t *one, u64 *to, const u64 *from, size_t n)
{
	for (; n; n--, to++, from++) {
		u64 b = READ_ONCE(*from), old = READ_ONCE(*to), a;

		do {
			a = old;
			one(&a, &b, sizeof(a));
		} while (!try_cmpxchg(to, &old, a));
	}
}

void acp_reduce_atomic(u64 what, void *dst, const void *src, size_t size)
{
	run_t *one = find_run(what);

	if (acp_reduce_width(what) == sizeof(u32))
		atomic_32(one, dst, src, size / sizeof(u32));
	else
		atomic_64(one, dst, src, size / sizeof(u64));
}
