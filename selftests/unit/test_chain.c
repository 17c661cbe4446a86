// SPDX-License-Identifier: MIT
/* Unit tests of kernel/core/chain.c: walks over random lists, against a model. */
#include <stdint.h>
#include "test.h"
#include "chain.h"

#define RANK	3
#define LISTS	(ACP_CHAIN_MAX + 8)	/* descriptors in memory */

static struct acp_ga_layout layout;
static struct acp_descriptor memory[LISTS];	/* at offset 0 of rank 3's region */
static u64 seed = 99;

static u64 draw(u64 most)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (seed >> 20) % most;
}

static u64 ga(u32 rank, u64 offset)
{
	return acp_ga_make(&layout, rank, 0, ACP_STAG_USER, offset);
}

static u64 at(u32 i)
{
	return ga(RANK, i * sizeof(struct acp_descriptor));
}

/* Descriptor i of the list, valid, with the next one behind it. */
static void good(u32 i, u32 block, u32 count, __s64 stride)
{
	memory[i] = (struct acp_descriptor){
		.address = ga(RANK, (1ULL << 24) + ((u64)i << 20)), .block = block, .count = count,
		.stride = stride, .next = at(i + 1), .flags = ACP_CHAIN_SCATTER,
	};
}

static u32 reads;

/* Walk as the kernel does. */
static u8 walk(struct acp_chain *c, u64 first, u64 size)
{
	struct acp_chain_walk w;
	u8 status;

	reads = 0;
	acp_chain_begin(c, &w, &layout, first, size);
	do {
		status = acp_chain_visit(c, &w, &layout);
		if (status)
			return status;
		reads++;
		status = acp_chain_add(c, &w, &layout,
				       &memory[acp_ga_offset(&layout, w.at) / sizeof(memory[0])],
				       ACP_CHAIN_SCATTER);
	} while (!status && w.left);
	return status;
}

static void begin(void)
{
	u32 i;

	layout = acp_ga_layout(10);
	for (i = 0; i < LISTS; i++)
		good(i, 10, 2, 16);
}

/* What the end of a walk over these lists must be, by the rules of acp_cmd.h. */
static u8 model(u32 first, u64 size, u32 *visited)
{
	bool seen[LISTS] = { false };
	u64 sum = 0, next = at(first);
	u32 i;

	for (*visited = 0; sum < size; ++*visited) {
		i = acp_ga_offset(&layout, next) / sizeof(memory[0]);
		if (!next || *visited == ACP_CHAIN_MAX || seen[i])
			return ACP_ST_CHAIN;
		seen[i] = true;
		sum += (u64)memory[i].block * memory[i].count;
		next = memory[i].next;
	}
	return ACP_ST_OK;
}

/* The offset of byte @position, and that of the model, which goes from block to block. */
static u64 model_place(u32 first, u64 position)
{
	u32 i = first, block = 0;

	while (position >= memory[i].block) {
		position -= memory[i].block;
		if (++block == memory[i].count) {
			i = acp_ga_offset(&layout, memory[i].next) / sizeof(memory[0]);
			block = 0;
		}
	}
	return memory[i].address + (u64)(block * memory[i].stride) + position;
}

static u64 place(const struct acp_chain *c, u64 position)
{
	const struct acp_chain_part *p = acp_chain_find(c, &position);
	struct acp_walk w;

	CHECK(p >= c->e && p < c->e + c->count);
	acp_walk_begin(&w, p->ga, p->stride, p->desc, position);
	return w.at;
}

/* Random lists, with loops and ends anywhere. */
TEST(chain__A4_random_lists)
{
	u32 i, k, round, first, visited, ends[2] = { 0, 0 };
	struct acp_chain c;
	u64 size, position;
	u8 status;

	begin();
	for (round = 0; round < 20000; round++) {
		for (i = 0; i < LISTS; i++) {
			good(i, 1 + draw(30), 1 + draw(20), 0);
			memory[i].stride = draw(2) ? 30 + (__s64)draw(100) : -30 - (__s64)draw(100);
			if (draw(100) < round % 20)
				memory[i].next = draw(8) ? at(draw(LISTS)) : 0;
		}
		memory[LISTS - 1].next = 0;
		first = draw(LISTS);
		size = 1 + draw(1U << draw(15));
		status = walk(&c, at(first), size);
		CHECK_EQ(status, model(first, size, &visited));
		CHECK_EQ(reads, visited);
		ends[!status]++;
		if (status)
			continue;
		CHECK_EQ(c.count, visited);
		CHECK_EQ(c.size, size);
		for (k = 0; k < 20; k++) {
			position = k ? draw(size) : size - 1;
			CHECK_EQ(place(&c, position), model_place(first, position));
		}
	}
	CHECK(ends[0] > 1000 && ends[1] > 1000);
}

/* One field of one descriptor is wrong. */
TEST(chain__A4_every_field)
{
	struct acp_chain c;
	u32 i;

	for (i = 0; i < 4; i++) {
		begin();
		CHECK_EQ(walk(&c, at(0), 80), ACP_ST_OK);
#define WRONG(field, value, status) \
	begin(); memory[i].field = (value); CHECK_EQ(walk(&c, at(0), 80), status)
		WRONG(block, 0, ACP_ST_CHAIN);
		WRONG(count, 0, ACP_ST_CHAIN);
		WRONG(flags, ACP_CHAIN_FLAGS + 1, ACP_ST_CHAIN);
		WRONG(flags, ACP_CHAIN_SCATTER | 1U << 31, ACP_ST_CHAIN);
		WRONG(reserved, 1, ACP_ST_CHAIN);
		WRONG(stride, 9, ACP_ST_CHAIN);
		WRONG(stride, -9, ACP_ST_CHAIN);
		WRONG(stride, 0, ACP_ST_CHAIN);
		WRONG(flags, 0, ACP_ST_ACCESS);
		WRONG(flags, ACP_CHAIN_GATHER, ACP_ST_ACCESS);
		WRONG(address, 0, ACP_ST_GA);
		WRONG(address, ~0ULL, ACP_ST_GA);
		WRONG(address, ga(RANK + 1, 0), ACP_ST_GA);
		WRONG(stride, 1LL << 62, ACP_ST_RANGE);
		WRONG(stride, INT64_MIN, ACP_ST_RANGE);
		WRONG(address, ga(RANK, (1ULL << layout.offset_bits) - 25), ACP_ST_RANGE);
		if (i == 3)
			break;
		WRONG(next, 0, ACP_ST_CHAIN);
		WRONG(next, at(i), ACP_ST_CHAIN);
		WRONG(next, at(0), ACP_ST_CHAIN);
		WRONG(next, at(i + 1) + 4, ACP_ST_ALIGN);
		WRONG(next, ga(RANK + 1, 0), ACP_ST_GA);
		WRONG(next, ~7ULL, ACP_ST_GA);
	}
	/* What is not needed is not read: the list has an end, whatever it says. */
	begin();
	memory[3].next = ~0ULL;
	memory[4].block = 0;
	CHECK_EQ(walk(&c, at(0), 80), ACP_ST_OK);
	CHECK_EQ(reads, 4);
	CHECK_EQ(walk(&c, at(0), 81), ACP_ST_GA);
}

/* One block has no neighbours that it may overlap, so its stride means nothing. */
TEST(chain__a_single_block_needs_no_stride)
{
	struct acp_chain c;

	begin();
	good(0, ~0U, 1, 0);
	CHECK_EQ(walk(&c, at(0), ~0U), ACP_ST_OK);
	good(0, 100, 1, 50);
	CHECK_EQ(walk(&c, at(0), 100), ACP_ST_OK);
}

/* The bytes of descriptors may add up to more than 64 bits; the copy has at most 2^62. */
TEST(chain__very_long_blocks)
{
	struct acp_chain c;
	u32 i;

	begin();
	for (i = 0; i < LISTS; i++) {
		good(i, 1U << 10, 1U << 10, 1 << 10);
		memory[i].address = ga(RANK, 0);
	}
	CHECK_EQ(walk(&c, at(0), (u64)ACP_CHAIN_MAX << 20), ACP_ST_OK);
	CHECK_EQ(c.count, ACP_CHAIN_MAX);
	CHECK_EQ(place(&c, ((u64)ACP_CHAIN_MAX << 20) - 1), ga(RANK, (1 << 20) - 1));
	CHECK_EQ(walk(&c, at(0), ((u64)ACP_CHAIN_MAX << 20) + 1), ACP_ST_CHAIN);
	CHECK_EQ(reads, ACP_CHAIN_MAX);
	CHECK_EQ(walk(&c, at(0), ACP_COPY_MAX), ACP_ST_CHAIN);
}

TEST_MAIN
