// SPDX-License-Identifier: MIT
/*
 * kmer - count the occurrences of each word of k letters in a genome
 *
 * Shows: a map over all ranks with many small keys (counts.h). A word of up to 31 of the letters A,
 * C, G and T is encoded as a number with 2 bits per letter, which is its key. Each rank takes the
 * words that begin in its part of every sequence, sorts them, and inserts each distinct one into
 * the map, or adds to the existing count. Then each rank prints the words that it holds.
 *
 * Run (here two ranks on this machine; genome generates a file):
 *
 *     ./genome 20000 > g.fasta
 *     ACP_NPROCS=2 ACP_RANK=0 ./kmer 11 g.fasta & ACP_NPROCS=2 ACP_RANK=1 ./kmer 11 g.fasta; wait
 *
 * Every rank must be able to read the file, in FASTA format. Words with other letters (N) are
 * ignored. Writes lines "count word" to standard output; kmer-check compares them with a serial
 * count.
 *
 * Exit status: 0, or 1 if something failed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counts.h"

#define LETTERS_MAX	31
#define WORDS_PER_SLOT	2
#define SLOTS_MAX	65536		/* per rank */

/* The part of this rank, and the number of letters in total. */
struct words {
	uint64_t *list;
	size_t count, room, all;
};

/* Text between two lines that begin with >. */
struct sequence {
	char *letters;
	size_t size, room;
};

static int letters;

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

/* Add the words of one sequence that begin in the part of this rank. */
static void cut(struct words *words, const char *sequence, size_t size)
{
	size_t begin = size * (size_t)counts.rank / (size_t)counts.procs;
	size_t end = size * ((size_t)counts.rank + 1) / (size_t)counts.procs, at;
	const uint64_t mask = (1ULL << 2 * letters) - 1;
	uint64_t word = 0;
	int known = 0, code;		/* number of valid letters up to here */

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

/* Read lines of letters; a line that begins with > starts the next sequence. */
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

/* Equal words are adjacent. */
static void put_range(const struct words *words, size_t first, size_t end)
{
	size_t i;

	for (i = first + 1; i <= end; i++) {
		if (i < end && words->list[i] == words->list[first])
			continue;
		counts_add(&words->list[first], sizeof(words->list[first]), i - first);
		first = i;
	}
}

/*
 * Each rank begins at another position, because two ranks with the same word wait for each other.
 */
static void put_all(const struct words *words)
{
	size_t start = words->count * (size_t)counts.rank / (size_t)counts.procs;

	while (start > 0 && words->list[start - 1] == words->list[start])
		start--;
	put_range(words, start, words->count);
	put_range(words, 0, start);
}

static void print_word(const void *word, size_t size, uint64_t count)
{
	char text[LETTERS_MAX + 1];
	uint64_t number;
	int i;

	(void)size;
	memcpy(&number, word, sizeof(number));
	for (i = letters; i--; number >>= 2)
		text[i] = "ACGT"[number & 3];
	text[letters] = '\0';
	printf("%llu %s\n", (unsigned long long)count, text);
}

static void run(const char *name)
{
	struct words words = { NULL, 0, 0, 0 };
	size_t slots, number;

	read_sequences(&words, name);
	if (words.count)
		qsort(words.list, words.count, sizeof(*words.list), compare);
	slots = words.all / WORDS_PER_SLOT / (size_t)counts.procs + 1;
	counts_create(slots < SLOTS_MAX ? (int)slots : SLOTS_MAX);
	put_all(&words);
	number = counts_print_all(print_word);
	if (counts.rank == 0)
		fprintf(stderr, "kmer: %zu letters, %zu words on %d ranks\n", words.all, number,
			counts.procs);
	free(words.list);
}

int main(int argc, char **argv)
{
	counts_open("kmer", &argc, &argv);
	if (argc == 3)
		letters = atoi(argv[1]);
	if (letters < 1 || letters > LETTERS_MAX)
		give_up("usage", "kmer LETTERS FILE, with 1 to 31 letters");
	run(argv[2]);
	return counts_close();
}
