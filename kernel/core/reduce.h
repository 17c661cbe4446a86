/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Combination of numbers: ACP_OP_REDUCE and ACP_OP_ACCUMULATE of acp_cmd.h.
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

/* Bytes of numbers that a frame brings at most: so much work it is to receive it. */
#define ACP_ACCUMULATE_MAX	4096

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
 * acp_numbers() - describe the numbers that a command combines: ACP_NUMBERS of acp_cmd.h
 * @what: ACP_REDUCE(operation, type), for which acp_reduce_width() is not 0
 * @size: bytes
 *
 * Context: Any context.
 * Return: What acp_numbers_split() splits.
 */
static inline u64 acp_numbers(u64 what, u64 size)
{
	return size / (acp_reduce_width(what) ?: 1) << 16 | what;
}

/**
 * acp_numbers_split() - get operation, type and size of numbers
 * @numbers: ACP_NUMBERS(operation, type, count), any value
 * @what: set to ACP_REDUCE(operation, type)
 * @size: set to the bytes of all numbers; if there is no such operation, to 1
 *
 * Context: Any context.
 * Return: False if there is no such operation on this type.
 */
static inline bool acp_numbers_split(u64 numbers, u64 *what, u64 *size)
{
	u32 width = acp_reduce_width(numbers & 0xffff);

	*what = numbers & 0xffff;
	*size = width ? (numbers >> 16) * width : 1;
	return width;
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

/**
 * acp_reduce_atomic() - combine numbers, each of them atomically
 * @what: as for acp_reduce_run()
 * @dst: as for acp_reduce_run()
 * @src: as for acp_reduce_run()
 * @size: as for acp_reduce_run()
 *
 * Each second operand is read once. No change that others make to a first operand, atomically or
 * by storing all of it, is lost.
 *
 * Context: Any context.
 */
void acp_reduce_atomic(u64 what, void *dst, const void *src, size_t size);

#endif /* ACP_REDUCE_H */
