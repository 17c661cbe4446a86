/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copying by the processor's vector registers, as memcpy() of the C library copies what is long.
 * They hold what the process has there, which must be saved first, and nobody else may run
 * meanwhile: so only for long copies, where that is allowed, and not on kernels for real time.
 */
#ifndef ACP_WIDE_H
#define ACP_WIDE_H

#include <linux/types.h>

#define ACP_WIDE	512	/* bytes in all registers: acp_wide_copy() copies a multiple */

/* False: there are none, or not here and now.  True: until acp_wide_end() nothing sleeps. */
bool acp_wide_begin(void);
void acp_wide_end(void);

#define ACP_WIDE_LOAD(n)	"vmovdqu 32*" #n "(%[from], %[at]), %%ymm" #n "\n\t"
#define ACP_WIDE_STORE(n)	"vmovdqu %%ymm" #n ", 32*" #n "(%[to], %[at])\n\t"
#define ACP_WIDE_ALL(what) \
	what(0) what(1) what(2) what(3) what(4) what(5) what(6) what(7) \
	what(8) what(9) what(10) what(11) what(12) what(13) what(14) what(15)

/* From the front, ACP_WIDE bytes at a time, all of which are loaded before one is stored. */
static __always_inline void acp_wide_copy(void *to, const void *from, size_t size)
{
#ifdef CONFIG_X86_64
	long at = -(long)size;	/* up to 0, from the end */

	if (!size)
		return;
	asm volatile("1:\n\t"
		     ACP_WIDE_ALL(ACP_WIDE_LOAD)
		     ACP_WIDE_ALL(ACP_WIDE_STORE)
		     "addq %[step], %[at]\n\t"
		     "jnz 1b"
		     : [at] "+r" (at)
		     : [from] "r" (from + size), [to] "r" (to + size), [step] "i" (ACP_WIDE)
		     : "memory", "cc");
#endif
}

#endif /* ACP_WIDE_H */
