// SPDX-License-Identifier: MIT
/*
 * Fuzzer of kernel/core/chain.c: chains of descriptors as their owner could write them while they
 * are read (A4). An input is the bytes that a node would find in memory, in the order in which it
 * reads them. What was accepted must obey the rules of acp_cmd.h.
 */
#include <stdint.h>
#include "fuzz.h"
#include "chain.h"

static struct acp_ga_layout l;

/* A block that the kernel would access, computed with sufficiently wide integers. */
static void block_rule(const struct acp_chain *c, const struct acp_chain_part *p, u64 i)
{
	__int128 offset = p->ga & ((1ULL << l.offset_bits) - 1);

	offset += (__int128)(int64_t)p->stride * i;
	ENSURE(offset >= 0 && offset + (u32)p->desc <= (__int128)1 << l.offset_bits);
	ENSURE(acp_ga_valid(&l, p->ga) && acp_ga_rank(&l, p->ga) == c->rank);
}

/* Byte @position is in the part where the sizes of the former ones say. */
static void place_rule(const struct acp_chain *c, u64 position)
{
	u64 inside = position, before = 0;
	const struct acp_chain_part *p = acp_chain_find(c, &inside);
	u32 i;

	ENSURE(p >= c->e && p < c->e + c->count);
	for (i = 0; c->e + i < p; i++)
		before += acp_strided_size(c->e[i].desc);
	ENSURE(before + inside == position && inside < acp_strided_size(p->desc));
}

static void chain_rules(const struct acp_chain *c, u64 size)
{
	u64 sum = 0;
	u32 i;

	ENSURE(c->count >= 1 && c->count <= ACP_CHAIN_MAX && c->size == size);
	for (i = 0; i < c->count; i++) {
		const struct acp_chain_part *p = &c->e[i];
		u64 stride = p->stride >> 63 ? -p->stride : p->stride;

		ENSURE(sum < size);
		ENSURE((u32)p->desc && p->desc >> 32);
		ENSURE(p->desc >> 32 == 1 || stride >= (u32)p->desc);
		block_rule(c, p, 0);
		block_rule(c, p, (p->desc >> 32) - 1);
		sum += acp_strided_size(p->desc);
	}
	ENSURE(sum >= size);
	place_rule(c, 0);
	place_rule(c, size - 1);
	place_rule(c, size / 2);
}

int fuzz_one(const u8 *data, size_t size)
{
	struct input in = { data, size };
	struct acp_chain *c = malloc(sizeof(*c));
	struct acp_chain_walk *w = malloc(sizeof(*w));
	u64 rest = take(&in, 2), bytes = 1 + take_number(&in) % ACP_COPY_MAX, before;
	u32 reads = 0, use = 1 + take(&in, 1) % 2;
	struct acp_descriptor d;
	u8 status;

	l = acp_ga_layout(1 + take_number(&in) % ACP_RANKS_MAX);
	acp_chain_begin(c, w, &l, acp_ga_make(&l, 0, 0, ACP_STAG_USER, 0) + rest, bytes);
	do {
		status = acp_chain_visit(c, w, &l);
		if (status)
			break;
		ENSURE(reads++ < ACP_CHAIN_MAX);
		ENSURE(!(w->at & 7) && acp_ga_valid(&l, w->at));
		ENSURE(acp_ga_rank(&l, w->at) == c->rank);
		memset(&d, 0, sizeof(d));
		d.address = acp_ga_make(&l, take(&in, 1) % 2, 0, ACP_STAG_USER, 0) +
			    take_number(&in);
		d.stride = (__s64)take_number(&in);
		d.block = (u32)take_number(&in);
		d.count = (u32)take_number(&in);
		d.flags = (u32)take(&in, 1) % 5;
		d.reserved = take(&in, 1) == 1;
		d.next = acp_ga_make(&l, 0, 0, ACP_STAG_USER, 0) + take(&in, 2) * 8;
		if (take(&in, 1) % 16 == 1)
			d.next = take_number(&in);
		before = w->left;
		status = acp_chain_add(c, w, &l, &d, use);
		ENSURE(status || w->left < before);
	} while (!status && w->left);
	ENSURE(status < ACP_ST_END);
	if (!status)
		chain_rules(c, bytes);
	free(w);
	free(c);
	return 0;
}
