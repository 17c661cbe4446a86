// SPDX-License-Identifier: MIT
/*
 * wordcount - count the occurrences of each word in some files
 *
 * Shows: a map over all ranks, used by all of them concurrently (counts.h). Each rank reads its
 * part of every file and counts the words in it. Then it inserts them into the map, and prints
 * those it holds.
 *
 * Run (here two ranks on this machine; without arguments it reads the licences and copyright
 * notices that every Debian system has):
 *
 *     ACP_NPROCS=2 ACP_RANK=0 ./wordcount & ACP_NPROCS=2 ACP_RANK=1 ./wordcount; wait
 *
 * Every rank must be able to read the files, and they must be the same for all. Writes lines "count
 * word" to standard output. wordcount-check compares them with the output of sort | uniq -c.
 *
 * Exit status: 0, or 1 if something failed.
 */
#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "counts.h"

#define SLOTS		4096		/* per rank */
#define WORD_MAX	COUNTS_WORD	/* letters; longer words are truncated to 256 */

/* The words in the part of this rank, one entry per occurrence. */
struct words {
	char **list;
	size_t count, room;
};

static const char *const corpus[] = {
	"/usr/share/common-licenses/*", "/usr/share/doc/*/copyright",
};

/* ---- Reading ---- */

static void add_word(struct words *words, const char *letters, size_t length)
{
	size_t i;
	char *word;

	if (words->count == words->room) {
		words->room = words->room ? 2 * words->room : 1024;
		words->list = realloc(words->list, words->room * sizeof(*words->list));
	}
	if (length > WORD_MAX)
		length = WORD_MAX;
	word = malloc(length + 1);
	if (words->list == NULL || word == NULL)
		give_up("memory", strerror(errno));
	for (i = 0; i < length; i++)
		word[i] = (char)(letters[i] | 0x20);
	word[length] = '\0';
	words->list[words->count++] = word;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* A word belongs to the rank in whose part it begins. */
static void split(struct words *words, const char *text, size_t size)
{
	size_t at = size * (size_t)counts.rank / (size_t)counts.procs;
	size_t end = size * ((size_t)counts.rank + 1) / (size_t)counts.procs, begin;

	if (at > 0 && is_letter(text[at - 1]))
		while (at < size && is_letter(text[at]))
			at++;
	while (at < end) {
		begin = at;
		while (at < size && is_letter(text[at]))
			at++;
		if (at > begin)
			add_word(words, text + begin, at - begin);
		else
			at++;
	}
}

static void read_file(struct words *words, const char *name)
{
	FILE *file = fopen(name, "rb");
	struct stat st;
	char *text;

	if (file == NULL || fstat(fileno(file), &st) != 0)
		give_up(name, strerror(errno));
	if (!S_ISREG(st.st_mode))
		give_up(name, "is not a regular file");
	text = malloc((size_t)st.st_size + 1);
	if (text == NULL)
		give_up(name, strerror(errno));
	if (fread(text, 1, (size_t)st.st_size, file) != (size_t)st.st_size)
		give_up(name, "cannot be read");
	split(words, text, (size_t)st.st_size);
	free(text);
	fclose(file);
}

static void read_corpus(struct words *words)
{
	struct stat st;
	glob_t names;
	size_t i;

	for (i = 0; i < sizeof(corpus) / sizeof(corpus[0]); i++)
		if (glob(corpus[i], i ? GLOB_APPEND : 0, NULL, &names) == GLOB_NOSPACE)
			give_up(corpus[i], strerror(ENOMEM));
	for (i = 0; i < names.gl_pathc; i++)
		if (stat(names.gl_pathv[i], &st) == 0 && S_ISREG(st.st_mode))
			read_file(words, names.gl_pathv[i]);
	globfree(&names);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* ---- The map ---- */

/* Equal words are adjacent. */
static void put_range(const struct words *words, size_t first, size_t end)
{
	size_t i;

	for (i = first + 1; i <= end; i++) {
		if (i < end && strcmp(words->list[i], words->list[first]) == 0)
			continue;
		counts_add(words->list[first], strlen(words->list[first]), i - first);
		first = i;
	}
}

/*
 * Each rank begins at another position, because two ranks with the same word wait for each other.
 */
static void put_all(const struct words *words)
{
	size_t start = words->count * (size_t)counts.rank / (size_t)counts.procs;

	while (start > 0 && strcmp(words->list[start - 1], words->list[start]) == 0)
		start--;
	put_range(words, start, words->count);
	put_range(words, 0, start);
}

static void print_word(const void *word, size_t size, uint64_t count)
{
	printf("%llu %.*s\n", (unsigned long long)count, (int)size, (const char *)word);
}

static void run(int files, char **names)
{
	struct words words = { NULL, 0, 0 };
	size_t i, number;
	int f;

	for (f = 0; f < files; f++)
		read_file(&words, names[f]);
	if (files == 0)
		read_corpus(&words);
	if (words.count)
		qsort(words.list, words.count, sizeof(*words.list), compare);
	counts_create(SLOTS);
	put_all(&words);
	number = counts_print_all(print_word);
	if (counts.rank == 0)
		fprintf(stderr, "wordcount: %zu words on %d ranks\n", number, counts.procs);
	for (i = 0; i < words.count; i++)
		free(words.list[i]);
	free(words.list);
}

int main(int argc, char **argv)
{
	counts_open("wordcount", &argc, &argv);
	run(argc - 1, argv + 1);
	return counts_close();
}
