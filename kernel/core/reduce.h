/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Combination of numbers: ACP_OP_REDUCE of acp_cmd.h.
 *
 * The kernel must not use floating-point registers in softirq, so float and double are computed
 * with integers. Each result is the one that IEEE 754 defines, bit for bit.
 */
#ifndef ACP_REDUCE_H
#define ACP_REDUCE_H

#include "port.h"
#include "acp_abi.h"

/* Local combinations of more bytes are not done at once; it is a multiple of the size of types. */
#define ACP_REDUCE_LONG		4096

/*
 * A byte counts as so many in a budget (queue/budget.h). Two commands of ACP_REDUCE_LONG bytes use
 * it up; with float, which takes longest, they take as long as 64 short commands.
 */
#define ACP_REDUCE_PRICE	8

/**
 * acp_reduce_width() - get the size of the numbers that a command combines
 * @what: ACP_REDUCE(operation, type), any value
 *
 * Context: Any context.
 * Return: 4 or 8, or 0 if there is no such operation on this type.
 */
static inline u32 acp_reduce_width(u64 what)
{
	u64 op = what & 0xff, type = what >> 8;

	if (op >= ACP_REDUCE_OP_END || type >= ACP_REDUCE_TYPE_END)
		return 0;
	if (type >= ACP_REDUCE_F32 && op >= ACP_REDUCE_AND && op <= ACP_REDUCE_XOR)
		return 0;
	return type & 1 ? 8 : 4;
}

/**
 * acp_reduce_run() - combine numbers
 * @what: ACP_REDUCE(operation, type), for which acp_reduce_width() is not 0
 * @dst: first operands, aligned, which the results replace
 * @src: second operands, aligned
 * @size: bytes, a multiple of the width
 *
 * Each number is read once and written once, in the order of addresses; others may read and write
 * them meanwhile.
 *
 * Context: Any context.
 */
void acp_reduce_run(u64 what, void *dst, const void *src, size_t size);

#endif /* ACP_REDUCE_H */
