/* SPDX-License-Identifier: MIT */
/* What tests of collectives share: groups, buffers, and what must be in them. */
#ifndef COLL_PLAY_H
#define COLL_PLAY_H

#include "../dev/isolated.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "members.h"

#define RANKS		8
#define PER_NODE	2
#define ROOM		((size_t)1 << 20)	/* bytes of a buffer */

static unsigned char *dst, *src;
static acp_ga_t dst_ga, src_ga;

static inline unsigned char *buffer(acp_ga_t *ga)
{
	unsigned char *memory = aligned_alloc(4096, ROOM);
	acp_atkey_t key;

	CHECK(memory);
	memset(memory, 0, ROOM);
	key = acp_register_memory(memory, ROOM, 0);
	CHECK(key != ACP_ATKEY_NULL);
	*ga = acp_query_ga(key, memory);
	return memory;
}

static inline void begin(void)
{
	member_init();
	dst = buffer(&dst_ga);
	src = buffer(&src_ga);
}

static inline void end(void)
{
	CHECK_EQ(acp_sync(), 0);
	CHECK_EQ(acp_finalize(), 0);
	free(dst);
	free(src);
}

static inline acpx_group_t world(void)
{
	acpx_group_t group;

	CHECK_EQ(acpx_group_world(&group), 0);
	return group;
}

static inline acpx_group_t all_but(int rank)
{
	int ranks[RANKS], i, count = 0;
	acpx_group_t group;

	for (i = 0; i < RANKS; i++)
		if (i != rank)
			ranks[count++] = i;
	CHECK_EQ(acpx_group_list(ranks, count, &group), 0);
	return group;
}

/* What a round may return when a member was lost. */
static inline bool is_loss(int error)
{
	return error == -EHOSTDOWN || error == -ECONNRESET || error == -EHOSTUNREACH;
}

/* The first ranks, in their order, in the reverse order, and mixed. */
static inline acpx_group_t group_of(int size, int order)
{
	int ranks[RANKS], i;
	acpx_group_t group;

	for (i = 0; i < size; i++)
		ranks[i] = order == 0 ? i : order == 1 ? RANKS - 1 - i : (3 * i + 1) % RANKS;
	CHECK_EQ(acpx_group_list(ranks, size, &group), 0);
	return group;
}

/* Byte i of what a member sends to another one in a round. */
static inline unsigned char byte_of(uint64_t round, int from, int to, size_t i)
{
	return (unsigned char)(round * 101 + (uint64_t)from * 31 + (uint64_t)to * 7 + i +
			       i / 251);
}

static inline void put_bytes(unsigned char *at, size_t size, uint64_t round, int from, int to)
{
	size_t i;

	for (i = 0; i < size; i++)
		at[i] = byte_of(round, from, to, i);
}

static inline void check_bytes(const unsigned char *at, size_t size, uint64_t round, int from,
			       int to)
{
	size_t i;

	for (i = 0; i < size; i++)
		if (at[i] != byte_of(round, from, to, i))
			FAIL("rank %d, round %llu, from %d to %d: byte %zu of %zu is %u, not %u",
			     acp_rank(), (unsigned long long)round, from, to, i, size, at[i],
			     byte_of(round, from, to, i));
}

static inline void run_once(acpx_coll_t coll)
{
	CHECK_EQ(acpx_coll_start(coll), 0);
	CHECK_EQ(acpx_coll_wait(coll, ACPX_FOREVER), 0);
}

/* Do something with groups of several sizes, in several orders of ranks. */
static inline void for_groups(void (*what)(acpx_group_t group, int number, int size))
{
	static const int sizes[] = { 1, 2, 3, 5, 8 };
	acpx_group_t group;
	int order, number;
	size_t i;

	for (order = 0; order < 3; order++) {
		for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			group = group_of(sizes[i], order);
			number = acpx_group_rank(group);
			if (number >= 0)
				what(group, number, sizes[i]);
			CHECK_EQ(acpx_group_free(group), 0);
		}
	}
}

#endif /* COLL_PLAY_H */
