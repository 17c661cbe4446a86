/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CRC-32C with the CPU instruction where available.  The kernel's crc32c() uses the instruction
 * only while the module of that driver is loaded, which nothing ensures; __crc32c_le() uses a table
 * on x86.  The instruction works on general registers and may be used in any context.
 */
#ifndef ACP_CRC_H
#define ACP_CRC_H

#include <linux/types.h>

/* Continue from @crc, as __crc32c_le() does: without initial value and final XOR. */
u32 acp_crc32c(u32 crc, const void *data, size_t size);

#endif /* ACP_CRC_H */
