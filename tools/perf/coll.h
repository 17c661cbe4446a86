/* SPDX-License-Identifier: MIT */
/* The collectives to measure. */
#ifndef PERF_COLL_H
#define PERF_COLL_H

#include <stdbool.h>
#include <stddef.h>

#include "acp.h"

/* What a collective is created with. */
struct perf_coll_memory {
	acpx_group_t group;
	acp_ga_t dst, src;
	size_t size;		/* bytes of a block */
};

/* A block of the destination of a member. */
struct perf_coll_place {
	int member, members, block;
};

/* What is stored there: the sum of block @block of the source of members @first to @end - 1. */
struct perf_coll_origin {
	int first, end, block;
};

struct perf_coll {
	const char *name, *what;
	int (*create)(const struct perf_coll_memory *memory, acpx_coll_t *coll);
	/* Returns false if nothing is stored there. */
	bool (*origin)(struct perf_coll_place at, struct perf_coll_origin *origin);
	int src_blocks, dst_blocks;	/* -1: as many as members */
	bool numbers;			/* it adds numbers of type double */
	/* Starts a round, if acpx_coll_start() does not. */
	int (*start)(const struct perf_coll_memory *memory, acpx_coll_t coll);
};

extern const struct perf_coll perf_coll_table[];
extern const size_t perf_coll_count;

/* Return the index in the table, or -1. */
int perf_coll_find(const char *name);

#endif
