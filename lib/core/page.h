/* SPDX-License-Identifier: MIT */
/* The library page of a rank. */
#ifndef LIBACP_PAGE_H
#define LIBACP_PAGE_H

#include <stddef.h>
#include <stdint.h>

#include "acp.h"
#include "acp_abi.h"
#include "acp_ga.h"

#pragma GCC visibility push(hidden)

/*
 * Library page of a rank: memory through which the libraries of the ranks communicate. Only its
 * owner writes it, except "ready", "connections", "failures" and the state of "exchange". All ranks
 * read the page of rank 0.
 */
#define LIBACP_CONNECTIONS	64
/* opens no more ends; all its connection requests have been written */
#define LIBACP_LEAVING	1
#define LIBACP_LEFT	2	/* waits for the last barrier only */

/* What a rank tells when it takes part in an exchange of a group: see group/exchange.h. */
struct libacp_record {
	uint64_t state;			/* changed by the first rank of the group */
	uint64_t group;
	uint64_t words[4];
};

struct libacp_page {
	uint64_t table;			/* global address of the new numbers, indexed by old rank */
	uint64_t runs;			/* global address of the new rank runs */
	uint32_t run_count;		/* 0: the new numbers are rejected */
	/* counter of ranks that can continue, incremented by those ranks */
	uint32_t ready;
	uint32_t number;		/* new rank of the owner */
	/* destination of the previous values of atomics of the owner */
	uint32_t former;
	uint64_t piece[384];		/* buffer for data that the owner reads from other ranks */

	/* rendezvous.c */
	uint64_t connections[LIBACP_CONNECTIONS];	/* written by other ranks; 0: free */
	uint64_t leaving;		/* written by the owner: LIBACP_LEAVING, then LIBACP_LEFT */
	/* ws.c */
	uint64_t workspace;		/* address of the owner's share of a new workspace */
	/* rank 0 only: number of ranks that failed to create one, added by all */
	uint64_t failures;
	uint64_t failures_seen;		/* the owner: value of failures after the last creation */
	uint64_t failures_fetched;	/* destination for reading failures */

	uint64_t here;			/* missing.c: set to 1 by the owner */

	struct libacp_record exchange;
};

_Static_assert(sizeof(struct libacp_page) <= ACP_WATCH_OFFSET, "one page, with acp_watch");

/**
 * libacp_page_ga() - compute the global address of a place in the library page of a rank
 * @rank: number of the rank, less than acp_procs()
 * @offset: offset of the place in bytes, in struct libacp_page
 *
 * Context: any thread of a rank; does not block.
 * Return: the global address, of color 0.
 */
static inline acp_ga_t libacp_page_ga(int rank, size_t offset)
{
	const struct acp_ga_layout l = acp_ga_layout((uint32_t)acp_procs());

	return acp_ga_make(&l, (uint32_t)rank, 0, ACP_STAG_LIBRARY, offset);
}

#pragma GCC visibility pop

#endif /* LIBACP_PAGE_H */
