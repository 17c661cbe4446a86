// SPDX-License-Identifier: GPL-2.0-only
/* CRC-32C: see crc.h. */
#include <linux/kernel.h>
#include "../compat.h"
#include "crc.h"

#ifdef CONFIG_X86_64
static u32 by_instruction(u32 crc, const u8 *p, size_t size)
{
	u64 sum = crc, word;

	for (; size >= sizeof(word); p += sizeof(word), size -= sizeof(word)) {
		__builtin_memcpy(&word, p, sizeof(word));
		asm("crc32q %1, %0" : "+r" (sum) : "rm" (word));
	}
	for (; size; p++, size--)
		asm("crc32b %1, %k0" : "+r" (sum) : "qm" (*p));
	return (u32)sum;
}

u32 acp_crc32c(u32 crc, const void *data, size_t size)
{
	if (acp_cpu_has(X86_FEATURE_XMM4_2))
		return by_instruction(crc, data, size);
	return crc32c(crc, data, size);
}
#else
u32 acp_crc32c(u32 crc, const void *data, size_t size)
{
	return crc32c(crc, data, size);
}
#endif
