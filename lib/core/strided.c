// SPDX-License-Identifier: MIT
/*
 * Copies of several pieces as one access: strided and vectored.
 *
 * The calling thread copies what it can access itself, as in local.c. The rest is submitted as one
 * command, or as several commands that belong together.
 */
#include <string.h>

#include "acp.h"
#include "acp_abi.h"
#include "acp_ga.h"
#include "core/local.h"
#include "core/process.h"
#include "core/submit.h"

/* ---- Strided copies ---- */

/* Range from the first to the last byte of all blocks, and the offset of block 0 in it. */
struct end {
	acp_ga_t first;
	uint64_t size, at;
};

/*
 * Compute the range; @count is not 0. False: blocks overlap, or the range exceeds the offset of a
 * global address.
 */
static bool span(struct end *e, acp_ga_t ga, uint64_t block, uint64_t count, int64_t stride)
{
	uint64_t offset = acp_ga_offset(&libacp.layout, ga), room = libacp.offset_mask + 1 - offset;
	uint64_t step = stride < 0 ? -(uint64_t)stride : (uint64_t)stride, far;

	if (count > 1 && step < block)
		return false;
	if (__builtin_mul_overflow(step, count - 1, &far) || block > room ||
	    far > (stride < 0 ? offset : room - block))
		return false;
	e->at = stride < 0 ? far : 0;
	e->first = ga - e->at;
	e->size = far + block;
	return true;
}

/* Copy a block. Aligned words are not torn. */
static void copy_block(char *dst, const char *src, uint64_t size)
{
	const uintptr_t alignment = ((uintptr_t)dst | (uintptr_t)src) & (size - 1);

	if (size == 8 && !alignment)
		__atomic_store_n((uint64_t *)(void *)dst,
				 __atomic_load_n((const uint64_t *)(const void *)src,
						 __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	else if (size == 4 && !alignment)
		__atomic_store_n((uint32_t *)(void *)dst,
				 __atomic_load_n((const uint32_t *)(const void *)src,
						 __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	else
		memmove(dst, src, size);
}

static bool strided_here(acp_ga_t dst, acp_ga_t src, uint64_t block, uint64_t count,
			 int64_t dst_stride, int64_t src_stride)
{
	struct end in, out;
	const char *from;
	char *to;

	if (!span(&in, src, block, count, src_stride) ||
	    !span(&out, dst, block, count, dst_stride))
		return false;
	from = libacp_local_reach(in.first, in.size, false);
	to = from ? libacp_local_reach(out.first, out.size, true) : NULL;
	if (!to)
		return false;
	from += in.at;
	to += out.at;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	while (count--) {
		copy_block(to, from, block);
		if (count) {
			to += dst_stride;
			from += src_stride;
		}
	}
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	libacp_local_written(out.first, out.size);
	return true;
}

acp_handle_t acpx_copy_strided(acp_ga_t dst, acp_ga_t src, size_t block, size_t count,
			       int64_t dst_stride, int64_t src_stride, acp_handle_t order)
{
	uint64_t desc = ACP_BLOCKS(block, count);

	if (!block || !count)
		return acp_copy(dst, src, 0, order);
	if (!libacp_in())
		return ACP_HANDLE_NULL;
	if (block > UINT32_MAX || count > UINT32_MAX)
		desc = UINT64_MAX;		/* too large: the kernel reports the error */
	else if (libacp_may_start(order) &&
		 strided_here(dst, src, block, count, dst_stride, src_stride))
		return libacp_done_locally();
	return libacp_submit_one(&(struct acp_sqe){
		.op = ACP_OP_STRIDED, .dst = dst, .src = src, .size = desc,
		.a = (uint64_t)dst_stride, .b = (uint64_t)src_stride,
	}, order);
}

/* ---- Vectored copies ---- */

#define BITS	64

/* The pieces of a vector that are left for the kernel. */
struct pieces {
	const struct acpx_iov *v;
	uint64_t done[ACPX_COPYV_MAX / BITS];	/* bit mask: copied by the calling thread */
	size_t i;
};

static void next_piece(struct acp_sqe *entry, void *state)
{
	struct pieces *p = state;

	while (p->done[p->i / BITS] >> p->i % BITS & 1)
		p->i++;
	entry->op = ACP_OP_COPY;
	entry->dst = p->v[p->i].dst;
	entry->src = p->v[p->i].src;
	entry->size = p->v[p->i].size;
	p->i++;
}

/* Copy the pieces that the calling thread can access. Returns the number of pieces left. */
static size_t do_pieces(struct pieces *p, size_t n)
{
	size_t i, left = n;

	for (i = 0; i < n; i++) {
		if (p->v[i].size &&
		    !libacp_local_copy(p->v[i].dst, p->v[i].src, p->v[i].size))
			continue;
		p->done[i / BITS] |= 1ull << i % BITS;
		left--;
	}
	return left;
}

acp_handle_t acpx_copyv(const struct acpx_iov *v, size_t n, acp_handle_t order)
{
	struct pieces p = { .v = v };
	size_t left = n;

	if (!libacp_in())
		return ACP_HANDLE_NULL;
	if (n > ACPX_COPYV_MAX || (n && !v))
		return libacp_submit_one(&(struct acp_sqe){ 0 }, order);	/* fails */
	if (!n)
		return acp_copy(libacp_own_nothing(), libacp_own_nothing(), 0, order);
	if (libacp_may_start(order))
		left = do_pieces(&p, n);
	return left ? libacp_submit(left, next_piece, &p, order) : libacp_done_locally();
}
