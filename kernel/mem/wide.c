// SPDX-License-Identifier: GPL-2.0-only
/* When copies may use vector registers: see wide.h. */
#include <linux/kernel.h>
#include "wide.h"

#if defined(CONFIG_X86_64) && !defined(CONFIG_UML)
#include <asm/cpufeature.h>
#include <asm/fpu/api.h>
#include <asm/simd.h>

bool acp_wide_begin(void)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT) || !boot_cpu_has(X86_FEATURE_AVX) ||
	    !cpu_has_xfeatures(XFEATURE_MASK_SSE | XFEATURE_MASK_YMM, NULL) || !may_use_simd())
		return false;
	kernel_fpu_begin();
	return true;
}

void acp_wide_end(void)
{
	kernel_fpu_end();
}
#else
bool acp_wide_begin(void)
{
	return false;
}

void acp_wide_end(void)
{
}
#endif
