// SPDX-License-Identifier: MIT
/*
 * kmer - how often does each word of k letters occur in a genome?
 *
 * Shows: a map over all ranks with many small keys. A word of up to 31 of the letters A, C, G and T
 * is a number, 2 bits a letter, and that is its key. Each rank takes the words that begin in its
 * part of every sequence, sorts them, and puts each different one into the map with its count
 * as the value, or adds to the count that is there, by a remote atomic. Then each rank prints
 * those it holds, when it is its turn.
 *
 * Run (here two ranks on this machine; genome makes a file):
 *
 *     ./genome 20000 > g.fasta
 *     ACP_NPROCS=2 ACP_RANK=0 ./kmer 11 g.fasta & ACP_NPROCS=2 ACP_RANK=1 ./kmer 11 g.fasta; wait
 *
 * Every rank must be able to read the file, in FASTA format. Words with other letters (N) do not
 * count. Writes lines "count word" to standard output; kmer-check compares them with a serial
 * count.
 *
 * Exit status: 0, or 1 if something failed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acp.h"

#define HEAP_SIZE	"4M"		/* of each rank, if the user does not say */
#define LETTERS_MOST	31
#define WORDS_PER_SLOT	2

/* What accesses begin and end in. */
struct desk {
	uint64_t key;			/* the word at hand */
	uint64_t count;			/* and its value */
	uint64_t former;		/* where atomics end */
	acp_map_t map;			/* rank 0 tells the others */
};

/* This rank's part, and how many letters there are in all. */
struct words {
	uint64_t *list;
	size_t count, room, all;
};

/* What a file says between two lines that begin with >. */
struct sequence {
	char *letters;
	size_t size, room;
};

static int rank, procs, letters;
static struct desk *desk;
static acp_ga_t desk_ga;

static void give_up(const char *what, const char *why)
{
	char text[512];

	snprintf(text, sizeof(text), "kmer: %s: %s", what, why);
	acp_abort(text);
	exit(EXIT_FAILURE);
}

/* A function of the map has failed. */
static void give_up_map(const char *what)
{
	give_up(what, errno == ENOMEM ? "a heap is full: give all ranks a larger ACP_HEAP_SIZE ("
		HEAP_SIZE " if not set)" : strerror(errno));
}

static void sync_all(void)
{
	if (acp_sync() != 0)
		give_up("acp_sync", strerror(errno));
}

/* Wait for an access, and insist that it went well. */
static void finish(acp_handle_t handle, const char *what)
{
	int status;

	if (handle == ACP_HANDLE_NULL)
		give_up(what, "not accepted");
	acp_complete(handle);
	status = acpx_status(handle);
	if (status != 0)
		give_up(what, acpx_strerror(status));
}

/* ---- Reading ---- */

static void add_word(struct words *words, uint64_t word)
{
	if (words->count == words->room) {
		words->room = words->room ? 2 * words->room : 4096;
		words->list = realloc(words->list, words->room * sizeof(*words->list));
		if (words->list == NULL)
			give_up("memory", strerror(errno));
	}
	words->list[words->count++] = word;
}

/* 0 .. 3, or -1 */
static int code_of(char letter)
{
	const char *found = strchr("AaCcGgTt", letter);

	return letter && found ? (int)(found - "AaCcGgTt") / 2 : -1;
}

/* The words of one sequence; those that begin in this rank's part are its own. */
static void cut(struct words *words, const char *sequence, size_t size)
{
	size_t begin = size * (size_t)rank / (size_t)procs;
	size_t end = size * ((size_t)rank + 1) / (size_t)procs, at;
	const uint64_t mask = (1ULL << 2 * letters) - 1;
	uint64_t word = 0;
	int known = 0, code;		/* letters of the word */

	words->all += size;
	for (at = begin; at < size && at < end + (size_t)letters - 1; at++) {
		code = code_of(sequence[at]);
		known = code < 0 ? 0 : known + 1;
		word = (word << 2 | (uint64_t)(code & 3)) & mask;
		if (known >= letters)
			add_word(words, word);
	}
}

static void append(struct sequence *sequence, const char *line, size_t length)
{
	if (length == 0)
		return;
	if (sequence->size + length > sequence->room) {
		sequence->room = 2 * (sequence->size + length);
		sequence->letters = realloc(sequence->letters, sequence->room);
		if (sequence->letters == NULL)
			give_up("memory", strerror(errno));
	}
	memcpy(sequence->letters + sequence->size, line, length);
	sequence->size += length;
}

/* Lines of letters; one that begins with > begins the next sequence. */
static void read_sequences(struct words *words, const char *name)
{
	struct sequence sequence = { NULL, 0, 0 };
	FILE *file = fopen(name, "r");
	char *line = NULL;
	size_t room = 0;
	ssize_t length;

	if (file == NULL)
		give_up(name, strerror(errno));
	while ((length = getline(&line, &room, file)) >= 0) {
		if (line[0] == '>') {
			cut(words, sequence.letters, sequence.size);
			sequence.size = 0;
			continue;
		}
		while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
			length--;
		append(&sequence, line, (size_t)length);
	}
	if (ferror(file))
		give_up(name, strerror(errno));
	cut(words, sequence.letters, sequence.size);
	free(sequence.letters);
	free(line);
	fclose(file);
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* ---- The map ---- */

/* One map over all ranks; the others get the reference from rank 0's desk. */
static acp_map_t create_map(size_t words)
{
	int *ranks = calloc((size_t)procs, sizeof(*ranks)), i;
	size_t slots = words / WORDS_PER_SLOT / (size_t)procs + 1;

	if (ranks == NULL)
		give_up("memory", strerror(errno));
	for (i = 0; i < procs; i++)
		ranks[i] = i;
	if (rank == 0) {
		desk->map = acp_create_map(procs, ranks, slots < 65536 ? (int)slots : 65536, 0);
		if (desk->map.ga == ACP_GA_NULL)
			give_up_map("acp_create_map");
	}
	free(ranks);
	sync_all();
	finish(acp_copy(desk_ga + offsetof(struct desk, map),
			acp_query_starter_ga(0) + offsetof(struct desk, map), sizeof(desk->map),
			ACP_HANDLE_NULL), "get of the map's reference");
	return desk->map;
}

static void put(acp_map_t map, uint64_t word, uint64_t count)
{
	const acp_pair_t pair = {
		{ desk_ga + offsetof(struct desk, key), sizeof(desk->key) },
		{ desk_ga + offsetof(struct desk, count), sizeof(desk->count) },
	};
	acp_pair_t there;

	desk->key = word;
	desk->count = count;
	errno = 0;
	if (acp_insert_map(map, pair))
		return;
	if (errno != 0)
		give_up_map("acp_insert_map");
	there = acp_dereference_map_it(acp_find_map(map, pair.first));
	if (there.second.ga == ACP_GA_NULL)
		give_up("a word", "was there and is not found");
	finish(acp_add8(desk_ga + offsetof(struct desk, former), there.second.ga, count,
			ACP_HANDLE_NULL), "add");
}

/* Equal words are side by side. */
static void put_all(acp_map_t map, const struct words *words)
{
	size_t i, first = 0;

	for (i = 1; i <= words->count; i++) {
		if (i < words->count && words->list[i] == words->list[first])
			continue;
		put(map, words->list[first], i - first);
		first = i;
	}
}

static void print_word(uint64_t word, uint64_t count)
{
	char text[LETTERS_MOST + 1];
	int i;

	for (i = letters; i--; word >>= 2)
		text[i] = "ACGT"[word & 3];
	text[letters] = '\0';
	printf("%" PRIu64 " %s\n", count, text);
}

/* What lies here; local iterators lead to addresses that this process can reach itself. */
static void print_part(acp_map_t map)
{
	acp_map_it_t it;

	for (it = acp_begin_local_map(map); it.elem != ACP_GA_NULL;
	     it = acp_increment_map_it(it)) {
		acp_pair_t pair = acp_dereference_map_it(it);
		const uint64_t *word = acp_query_address(pair.first.ga);
		const uint64_t *count = acp_query_address(pair.second.ga);

		if (word == NULL || count == NULL)
			give_up("iterator", "leads nowhere");
		print_word(*word, *count);
	}
	if (fflush(stdout) != 0)
		give_up("standard output", strerror(errno));
}

static void run(const char *name)
{
	struct words words = { NULL, 0, 0, 0 };
	acp_map_t map;
	int turn;

	read_sequences(&words, name);
	if (words.count)
		qsort(words.list, words.count, sizeof(*words.list), compare);
	map = create_map(words.all);
	put_all(map, &words);
	for (turn = 0; turn < procs; turn++) {
		sync_all();
		if (turn == rank)
			print_part(map);
	}
	sync_all();
	if (rank == 0) {
		fprintf(stderr, "kmer: %zu letters, %zu words on %d ranks\n", words.all,
			acp_size_map(map), procs);
		acp_destroy_map(map);
	}
	free(words.list);
}

int main(int argc, char **argv)
{
	setenv("ACP_HEAP_SIZE", HEAP_SIZE, 0);
	if (acp_init(&argc, &argv) != 0) {
		fprintf(stderr, "kmer: acp_init failed\n");
		return EXIT_FAILURE;
	}
	rank = acp_rank();
	procs = acp_procs();
	if (argc == 3)
		letters = atoi(argv[1]);
	if (letters < 1 || letters > LETTERS_MOST)
		give_up("usage", "kmer LETTERS FILE, with 1 to 31 letters");
	desk_ga = acp_query_starter_ga(rank);
	desk = acp_query_address(desk_ga);
	if (desk == NULL || acpx_starter_size() < sizeof(*desk))
		give_up("starter memory", "too little (ACP_STARTER_SIZE)");
	acpx_set_error_mode(ACPX_ERRORS_RETURN);
	run(argv[2]);
	if (acp_finalize() != 0) {
		fprintf(stderr, "kmer: acp_finalize failed\n");
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}
