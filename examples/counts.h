/* SPDX-License-Identifier: MIT */
/*
 * Counting words: functions shared by wordcount and kmer.
 *
 * Shows: a map over all ranks, used by all of them concurrently. A new word is inserted into the
 * map with its count as the value. If it exists, its value is located, and the count is added there
 * by a remote atomic. Words are padded with zeros to multiples of 8 bytes, so that values are
 * aligned. The ranks take turns to print the words they hold, directly from their memory.
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

#define COUNTS_HEAP	"4M"		/* of each rank, unless the user sets it */
#define COUNTS_WORD	256		/* maximum size of a word, bytes */

/* In starter memory: source and destination of accesses. */
struct counts_board {
	char word[COUNTS_WORD];
	uint64_t count;			/* of the current word: the value */
	uint64_t former;		/* previous values of atomics */
	acp_map_t map;			/* rank 0 publishes it */
};

static struct {
	const char *program;
	int rank, procs;
	struct counts_board *board;
	acp_ga_t board_ga;
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

/* Wait for an access, which must succeed. */
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
	counts.board_ga = acp_query_starter_ga(counts.rank);
	counts.board = acp_query_address(counts.board_ga);
	if (counts.board == NULL || acpx_starter_size() < sizeof(*counts.board))
		give_up("starter memory", "too little (ACP_STARTER_SIZE)");
	acpx_set_error_mode(ACPX_ERRORS_RETURN);
}

/* Create a map over all ranks; the others get the reference from rank 0. */
static inline void counts_create(int slots_of_each)
{
	const size_t map = offsetof(struct counts_board, map);
	int *ranks = calloc((size_t)counts.procs, sizeof(*ranks)), i;

	if (ranks == NULL)
		give_up("memory", strerror(errno));
	for (i = 0; i < counts.procs; i++)
		ranks[i] = i;
	if (counts.rank == 0) {
		counts.board->map = acp_create_map(counts.procs, ranks, slots_of_each, 0);
		if (counts.board->map.ga == ACP_GA_NULL)
			give_up_map("acp_create_map");
	}
	free(ranks);
	sync_all();
	finish(acp_copy(counts.board_ga + map, acp_query_starter_ga(0) + map, sizeof(acp_map_t),
			ACP_HANDLE_NULL), "get of the map's reference");
}

/* The word exists: add to its count in place. */
static inline void counts_add_to(acp_element_t word)
{
	acp_pair_t there = acp_dereference_map_it(acp_find_map(counts.board->map, word));

	if (there.second.ga == ACP_GA_NULL)
		give_up("a word", "was there and is not found");
	finish(acp_add8(counts.board_ga + offsetof(struct counts_board, former), there.second.ga,
			counts.board->count, ACP_HANDLE_NULL), "add");
}

/* Add to the count of a word, from any rank. */
static inline void counts_add(const void *word, size_t size, uint64_t count)
{
	const acp_pair_t pair = {
		{ counts.board_ga + offsetof(struct counts_board, word), (size + 7) & ~(size_t)7 },
		{ counts.board_ga + offsetof(struct counts_board, count), sizeof(count) },
	};

	memset(counts.board->word, 0, sizeof(counts.board->word));
	memcpy(counts.board->word, word, size);
	counts.board->count = count;
	errno = 0;
	if (acp_insert_map(counts.board->map, pair))
		return;
	if (errno != 0)
		give_up_map("acp_insert_map");
	counts_add_to(pair.first);
}

/*
 * Print the words of this rank. Local iterators return addresses that this process can access
 * directly.
 */
static inline void counts_print_own(counts_print print)
{
	acp_map_it_t it;

	for (it = acp_begin_local_map(counts.board->map); it.elem != ACP_GA_NULL;
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

/* All ranks print in turn. Returns the number of words. */
static inline size_t counts_print_all(counts_print print)
{
	int turn;

	for (turn = 0; turn < counts.procs; turn++) {
		sync_all();
		if (turn == counts.rank)
			counts_print_own(print);
	}
	sync_all();
	return counts.rank == 0 ? acp_size_map(counts.board->map) : 0;
}

/* Leave the job. Returns the exit status of the program. */
static inline int counts_close(void)
{
	if (counts.rank == 0)
		acp_destroy_map(counts.board->map);
	if (acp_finalize() == 0)
		return EXIT_SUCCESS;
	fprintf(stderr, "%s: acp_finalize failed\n", counts.program);
	return EXIT_FAILURE;
}

#endif /* COUNTS_H */
