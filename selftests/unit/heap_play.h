/* SPDX-License-Identifier: MIT */
/*
 * A user of the global heap: allocates and frees randomly, from any rank, fills its blocks and
 * verifies them. For the real and the fake basic layer. Needs CHECK and FAIL from test.h or
 * isolated.h.
 */
#ifndef HEAP_PLAY_H
#define HEAP_PLAY_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "acp.h"

#define HEAP_PLAY_BLOCKS	256
#define HEAP_PLAY_PAGE		4096

struct heap_play_block {
	acp_ga_t ga;		/* 0: none */
	uint64_t size, mark;
	int rank;
};

struct heap_play {
	/* set by the test */
	uint64_t seed;
	uint64_t most;		/* maximum size of a block, up to HEAP_PLAY_PAGE */
	int first, ranks;	/* ranks of the heaps: [first, first + ranks) */
	unsigned int blocks;	/* maximum number at a time */
	/* results for the test */
	uint64_t used[64];	/* bytes requested, by rank */
	unsigned int mallocs, failures, frees, uncertain;
	struct heap_play_block block[HEAP_PLAY_BLOCKS];
	char *page;		/* two registered pages, for writing and verifying */
	acp_atkey_t key;
	acp_ga_t ga;
};

static inline uint64_t heap_play_draw(struct heap_play *p, uint64_t below)
{
	uint64_t z = p->seed += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (z ^ (z >> 31)) % below;
}

static inline void heap_play_open(struct heap_play *p)
{
	p->page = aligned_alloc(HEAP_PLAY_PAGE, 2 * HEAP_PLAY_PAGE);
	CHECK(p->page);
	p->key = acp_register_memory(p->page, 2 * HEAP_PLAY_PAGE, 0);
	CHECK(p->key != ACP_ATKEY_NULL);
	p->ga = acp_query_ga(p->key, p->page);
}

static inline void heap_play_pattern(char *bytes, const struct heap_play_block *b)
{
	uint64_t i, word = b->mark;

	for (i = 0; i < b->size; i++) {
		if (i % 8 == 0)
			word = word * 0x5851f42d4c957f2du + b->ga;
		bytes[i] = (char)(word >> (i % 8 * 8));
	}
}

/* Write all bytes of a block. False if its rank is gone. */
static inline int heap_play_fill(struct heap_play *p, const struct heap_play_block *b)
{
	acp_handle_t h;

	heap_play_pattern(p->page, b);
	h = acp_copy(b->ga, p->ga, b->size, ACP_HANDLE_NULL);
	acp_complete(h);
	return acpx_status(h) == 0;
}

/* Verify all bytes of a block. True if its rank is gone. */
static inline int heap_play_intact(struct heap_play *p, const struct heap_play_block *b)
{
	acp_handle_t h;

	h = acp_copy(p->ga + HEAP_PLAY_PAGE, b->ga, b->size, ACP_HANDLE_NULL);
	acp_complete(h);
	heap_play_pattern(p->page, b);
	return acpx_status(h) != 0 ||
	       memcmp(p->page, p->page + HEAP_PLAY_PAGE, b->size) == 0;
}

static inline void heap_play_malloc(struct heap_play *p, struct heap_play_block *b)
{
	b->rank = p->first + (int)heap_play_draw(p, (uint64_t)p->ranks);
	b->size = heap_play_draw(p, heap_play_draw(p, 4) ? p->most / 8 + 1 : p->most + 1);
	b->mark = heap_play_draw(p, UINT64_MAX);
	b->ga = acp_malloc(b->size, b->rank);
	if (b->ga == ACP_GA_NULL) {
		p->failures++;
		return;
	}
	CHECK_EQ(b->ga % 8, 0);
	CHECK_EQ(acp_query_rank(b->ga), b->rank);
	p->mallocs++;
	if (!heap_play_fill(p, b))
		b->size = 0;	/* its contents are unknown */
	p->used[b->rank] += b->size;
}

/* Free a block and forget it. Returns the result of acpx_free(). */
static inline int heap_play_free(struct heap_play *p, struct heap_play_block *b)
{
	int error;

	if (!heap_play_intact(p, b))
		FAIL("rank %d: block 0x%llx of %llu bytes was changed", acp_rank(),
		     (unsigned long long)b->ga, (unsigned long long)b->size);
	error = acpx_free(b->ga);
	p->frees += !error;
	p->uncertain += error != 0;
	p->used[b->rank] -= b->size;
	b->ga = ACP_GA_NULL;
	return error;
}

/* Execute one step. Returns 0, or the result of acpx_free(). */
static inline int heap_play_step(struct heap_play *p)
{
	struct heap_play_block *b = &p->block[heap_play_draw(p, p->blocks)];

	if (b->ga != ACP_GA_NULL)
		return heap_play_free(p, b);
	heap_play_malloc(p, b);
	return 0;
}

static inline void heap_play_free_all(struct heap_play *p)
{
	unsigned int i;

	for (i = 0; i < p->blocks; i++)
		if (p->block[i].ga != ACP_GA_NULL)
			heap_play_free(p, &p->block[i]);
}

static inline void heap_play_close(struct heap_play *p)
{
	acp_unregister_memory(p->key);
	free(p->page);
}

/* Check that nothing is allocated in the heap of a rank, and that it can become one block. */
static inline void heap_play_check_empty(int rank)
{
	struct acpx_heap_stats stats;
	acp_ga_t all;

	CHECK_EQ(acpx_heap_check(rank), 0);
	CHECK_EQ(acpx_heap_stats(rank, &stats), 0);
	CHECK_EQ(stats.used, 0);
	CHECK_EQ(stats.blocks, 0);
	CHECK_EQ(acp_malloc(stats.size - 15, rank), ACP_GA_NULL);
	all = acp_malloc(stats.size - 16, rank);
	CHECK(all != ACP_GA_NULL);
	CHECK_EQ(acpx_heap_stats(rank, &stats), 0);
	CHECK_EQ(stats.used, stats.size);
	CHECK_EQ(acp_malloc(0, rank), ACP_GA_NULL);
	CHECK_EQ(acpx_free(all), 0);
	CHECK_EQ(acpx_heap_check(rank), 0);
}

#endif /* HEAP_PLAY_H */
