/* SPDX-License-Identifier: MIT */
/*
 * How often does each word occur? What wordcount and kmer have in common.
 *
 * Shows: a map over all ranks, used by all of them at once. A word that is new goes into the map
 * with its count as the value; for one that is there, it is found where the value lies, and the
 * count is added there, by a remote atomic. Words are padded with zeros to multiples of 8 bytes,
 * so that values are aligned. Each rank prints what it holds, straight from its memory, when it
 * is its turn.
 */
#ifndef COUNTS_H
#define COUNTS_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acp.h"

#define COUNTS_HEAP	"4M"		/* of each rank, if the user does not say */
#define COUNTS_WORD	256		/* bytes of a word, at most */

/* In starter memory: what accesses begin and end in. */
struct counts_desk {
	char word[COUNTS_WORD];
	uint64_t count;			/* of the word at hand: the value */
	uint64_t former;		/* where atomics end */
	acp_map_t map;			/* rank 0 tells the others */
};

static struct {
	const char *program;
	int rank, procs;
	struct counts_desk *desk;
	acp_ga_t desk_ga;
} counts;

typedef void (*counts_print)(const void *word, size_t size, uint64_t count);

static inline void give_up(const char *what, const char *why)
{
	char text[512];

	snprintf(text, sizeof(text), "%s: %s: %s", counts.program, what, why);
	acp_abort(text);
	exit(EXIT_FAILURE);
}

/* A function of the map has failed. */
static inline void give_up_map(const char *what)
{
	give_up(what, errno == ENOMEM ? "a heap is full: give all ranks a larger ACP_HEAP_SIZE ("
		COUNTS_HEAP " if not set)" : strerror(errno));
}

static inline void sync_all(void)
{
	if (acp_sync() != 0)
		give_up("acp_sync", strerror(errno));
}

/* Wait for an access, and insist that it went well. */
static inline void finish(acp_handle_t handle, const char *what)
{
	int status;

	if (handle == ACP_HANDLE_NULL)
		give_up(what, "not accepted");
	acp_complete(handle);
	status = acpx_status(handle);
	if (status != 0)
		give_up(what, acpx_strerror(status));
}

/* Become a rank. */
static inline void counts_open(const char *program, int *argc, char ***argv)
{
	counts.program = program;
	setenv("ACP_HEAP_SIZE", COUNTS_HEAP, 0);
	if (acp_init(argc, argv) != 0) {
		fprintf(stderr, "%s: acp_init failed\n", program);
		exit(EXIT_FAILURE);
	}
	counts.rank = acp_rank();
	counts.procs = acp_procs();
	counts.desk_ga = acp_query_starter_ga(counts.rank);
	counts.desk = acp_query_address(counts.desk_ga);
	if (counts.desk == NULL || acpx_starter_size() < sizeof(*counts.desk))
		give_up("starter memory", "too little (ACP_STARTER_SIZE)");
	acpx_set_error_mode(ACPX_ERRORS_RETURN);
}

/* One map over all ranks; the others get the reference from rank 0's desk. */
static inline void counts_create(int slots_of_each)
{
	const size_t map = offsetof(struct counts_desk, map);
	int *ranks = calloc((size_t)counts.procs, sizeof(*ranks)), i;

	if (ranks == NULL)
		give_up("memory", strerror(errno));
	for (i = 0; i < counts.procs; i++)
		ranks[i] = i;
	if (counts.rank == 0) {
		counts.desk->map = acp_create_map(counts.procs, ranks, slots_of_each, 0);
		if (counts.desk->map.ga == ACP_GA_NULL)
			give_up_map("acp_create_map");
	}
	free(ranks);
	sync_all();
	finish(acp_copy(counts.desk_ga + map, acp_query_starter_ga(0) + map, sizeof(acp_map_t),
			ACP_HANDLE_NULL), "get of the map's reference");
}

/* The word is there: add to its count where it lies. */
static inline void counts_add_to(acp_element_t word)
{
	acp_pair_t there = acp_dereference_map_it(acp_find_map(counts.desk->map, word));

	if (there.second.ga == ACP_GA_NULL)
		give_up("a word", "was there and is not found");
	finish(acp_add8(counts.desk_ga + offsetof(struct counts_desk, former), there.second.ga,
			counts.desk->count, ACP_HANDLE_NULL), "add");
}

/* Any rank, at any time. */
static inline void counts_add(const void *word, size_t size, uint64_t count)
{
	const acp_pair_t pair = {
		{ counts.desk_ga + offsetof(struct counts_desk, word), (size + 7) & ~(size_t)7 },
		{ counts.desk_ga + offsetof(struct counts_desk, count), sizeof(count) },
	};

	memset(counts.desk->word, 0, sizeof(counts.desk->word));
	memcpy(counts.desk->word, word, size);
	counts.desk->count = count;
	errno = 0;
	if (acp_insert_map(counts.desk->map, pair))
		return;
	if (errno != 0)
		give_up_map("acp_insert_map");
	counts_add_to(pair.first);
}

/* What lies here; local iterators lead to addresses that this process can reach itself. */
static inline void counts_print_own(counts_print print)
{
	acp_map_it_t it;

	for (it = acp_begin_local_map(counts.desk->map); it.elem != ACP_GA_NULL;
	     it = acp_increment_map_it(it)) {
		acp_pair_t pair = acp_dereference_map_it(it);
		const void *word = acp_query_address(pair.first.ga);
		const uint64_t *count = acp_query_address(pair.second.ga);

		if (word == NULL || count == NULL)
			give_up("iterator", "leads nowhere");
		print(word, pair.first.size, *count);
	}
	if (fflush(stdout) != 0)
		give_up("standard output", strerror(errno));
}

/* All ranks together, one after the other; returns how many words there are. */
static inline size_t counts_print_all(counts_print print)
{
	int turn;

	for (turn = 0; turn < counts.procs; turn++) {
		sync_all();
		if (turn == counts.rank)
			counts_print_own(print);
	}
	sync_all();
	return counts.rank == 0 ? acp_size_map(counts.desk->map) : 0;
}

/* The exit status of the program. */
static inline int counts_close(void)
{
	if (counts.rank == 0)
		acp_destroy_map(counts.desk->map);
	if (acp_finalize() == 0)
		return EXIT_SUCCESS;
	fprintf(stderr, "%s: acp_finalize failed\n", counts.program);
	return EXIT_FAILURE;
}

#endif /* COUNTS_H */
