/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copying with vector registers, as memcpy() of the C library does for long copies.  The state of
 * the process in these registers must be saved first, and preemption is disabled meanwhile: use
 * this for long copies only, where the FPU may be used, and not on PREEMPT_RT.
 */
#ifndef ACP_WIDE_H
#define ACP_WIDE_H

#include <linux/types.h>

#define ACP_WIDE	512	/* bytes in all registers: acp_wide_copy() copies a multiple */

/* False: the CPU has no such registers, or they are not available now.  True: do not sleep. */
bool acp_wide_begin(void);
void acp_wide_end(void);

#define ACP_WIDE_LOAD(n)	"vmovdqu 32*" #n "(%[from], %[at]), %%ymm" #n "\n\t"
#define ACP_WIDE_STORE(n)	"vmovdqu %%ymm" #n ", 32*" #n "(%[to], %[at])\n\t"
#define ACP_WIDE_ALL(what) \
	what(0) what(1) what(2) what(3) what(4) what(5) what(6) what(7) \
	what(8) what(9) what(10) what(11) what(12) what(13) what(14) what(15)

/* Copy forward, "each" bytes at a time.  All of these are loaded before any is stored. */
#define ACP_WIDE_LOOP(to, from, size, each, load, store) do { \
	long at = -(long)(size);	/* offset from the end, counts up to 0 */ \
	asm volatile("1:\n\t" \
		     load \
		     store \
		     "addq %[step], %[at]\n\t" \
		     "jnz 1b" \
		     : [at] "+r" (at) \
		     : [from] "r" ((from) + (size)), [to] "r" ((to) + (size)), [step] "i" (each) \
		     : "memory", "cc"); \
} while (0)

static __always_inline void acp_wide_copy(void *to, const void *from, size_t size)
{
#ifdef CONFIG_X86_64
	if (size)
		ACP_WIDE_LOOP(to, from, size, ACP_WIDE, ACP_WIDE_ALL(ACP_WIDE_LOAD),
			      ACP_WIDE_ALL(ACP_WIDE_STORE));
#endif
}

/* The same for the rest: a multiple of one register. */
#define ACP_WIDE_SOME	32

static __always_inline void acp_wide_copy_some(void *to, const void *from, size_t size)
{
#ifdef CONFIG_X86_64
	if (size)
		ACP_WIDE_LOOP(to, from, size, ACP_WIDE_SOME, ACP_WIDE_LOAD(0), ACP_WIDE_STORE(0));
#endif
}

#endif /* ACP_WIDE_H */
