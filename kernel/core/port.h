/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the protocol core needs from its environment: fixed-width types, byte order, memcpy, the
 * rounds of SipHash. In the module the kernel provides them; this header defines them for tests in
 * user space.
 */
#ifndef ACP_PORT_H
#define ACP_PORT_H

#include <linux/types.h>
#include <asm/byteorder.h>

#ifdef __KERNEL__
#include <linux/atomic.h>
#include <linux/string.h>
#include <linux/minmax.h>
#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/nospec.h>
#include <linux/siphash.h>
#else
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
#ifndef __force
#define __force
#endif
#define be16_to_cpu __be16_to_cpu
#define be32_to_cpu __be32_to_cpu
#define be64_to_cpu __be64_to_cpu
#define cpu_to_be16 __cpu_to_be16
#define cpu_to_be32 __cpu_to_be32
#define cpu_to_be64 __cpu_to_be64
#define le64_to_cpu __le64_to_cpu
#define noinline	/* left to the compiler */
#define min_t(t, a, b) ((t)(a) < (t)(b) ? (t)(a) : (t)(b))
#define max_t(t, a, b) ((t)(a) > (t)(b) ? (t)(a) : (t)(b))
#define static_assert(x) _Static_assert(x, #x)
#define fls64(x) (64 - __builtin_clzll(x))	/* not for 0 */
#define READ_ONCE(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, value) __atomic_store_n(&(x), (value), __ATOMIC_RELAXED)
#define array_index_nospec(i, n) (i)
#define try_cmpxchg(p, old, new) __atomic_compare_exchange_n(p, old, new, false, \
							     __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)
#define rol64(w, n) ((w) << (n) | (w) >> (64 - (n)))
#define SIPHASH_CONST_0 0x736f6d6570736575ULL
#define SIPHASH_CONST_1 0x646f72616e646f6dULL
#define SIPHASH_CONST_2 0x6c7967656e657261ULL
#define SIPHASH_CONST_3 0x7465646279746573ULL
#define SIPHASH_PERMUTATION(a, b, c, d) siphash_round(&(a), &(b), &(c), &(d))

/* One addition, rotation and exclusive or. */
static inline void siphash_mix(u64 *sum, u64 *word, int turn)
{
	*sum += *word;
	*word = rol64(*word, turn) ^ *sum;
}

static inline void siphash_round(u64 *v0, u64 *v1, u64 *v2, u64 *v3)
{
	siphash_mix(v0, v1, 13);
	siphash_mix(v2, v3, 16);
	*v0 = rol64(*v0, 32);
	siphash_mix(v2, v1, 17);
	siphash_mix(v0, v3, 21);
	*v2 = rol64(*v2, 32);
}
#endif

/*
 * For a variable that is filled before use, where the kernel's automatic initialization of
 * variables takes a substantial part of the function's time.
 */
#if __has_attribute(__uninitialized__)
#define acp_uncleared __attribute__((__uninitialized__))
#else
#define acp_uncleared
#endif

/* Make the compiler forget what it knows of this variable. */
#define acp_unknown(var)	__asm__("" : "+r" (var))

#endif /* ACP_PORT_H */
