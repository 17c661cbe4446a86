/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the protocol core needs of its surroundings: fixed-width types,
 * byte order, memcpy.  In the module the kernel has them; in user-space
 * tests these few lines stand in for it.
 */
#ifndef ACP_PORT_H
#define ACP_PORT_H

#include <linux/types.h>
#include <asm/byteorder.h>

#ifdef __KERNEL__
#include <linux/string.h>
#include <linux/minmax.h>
#include <linux/bitops.h>
#include <linux/build_bug.h>
#else
#include <stdbool.h>
#include <string.h>
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
#ifndef __force
#define __force
#endif
#define be16_to_cpu __be16_to_cpu
#define be32_to_cpu __be32_to_cpu
#define be64_to_cpu __be64_to_cpu
#define cpu_to_be16 __cpu_to_be16
#define cpu_to_be32 __cpu_to_be32
#define cpu_to_be64 __cpu_to_be64
#define noinline	/* as the compiler likes */
#define min_t(t, a, b) ((t)(a) < (t)(b) ? (t)(a) : (t)(b))
#define max_t(t, a, b) ((t)(a) > (t)(b) ? (t)(a) : (t)(b))
#define static_assert(x) _Static_assert(x, #x)
#endif

/*
 * For a variable that is filled before it is used, where the kernel's habit of
 * clearing all of them first is a good part of what the function costs.
 */
#if __has_attribute(__uninitialized__)
#define acp_uncleared __attribute__((__uninitialized__))
#else
#define acp_uncleared
#endif

#endif /* ACP_PORT_H */
