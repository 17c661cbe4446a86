// SPDX-License-Identifier: MIT
/*
 * wordcount - how often does each word occur in some files?
 *
 * Shows: a map over all ranks, used by all of them at once. Each rank reads its part of every
 * file and counts the words in it. Then it puts them into the map: a new word with its count as
 * the value; for a word that is there, it finds where the value lies and adds to it there, by a
 * remote atomic. Words are padded with zeros to multiples of 8 bytes, so that values are
 * aligned. At last each rank prints what it holds, straight from its memory, when it is its turn.
 *
 * Run (here two ranks on this machine; without files as arguments it takes the licences and
 * copyright notices that every Debian has):
 *
 *     ACP_NPROCS=2 ACP_RANK=0 ./wordcount & ACP_NPROCS=2 ACP_RANK=1 ./wordcount; wait
 *
 * Every rank must be able to read the files, and they must be the same for all. Writes lines
 * "count word" to standard output. wordcount-check compares them with what sort | uniq -c says.
 *
 * Exit status: 0, or 1 if something failed.
 */
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "acp.h"

#define HEAP_SIZE	"4M"		/* of each rank, if the user does not say */
#define SLOTS		4096		/* of each rank */
#define WORD_MOST	256		/* letters; a longer word is one of its first 256 */

/* What accesses begin and end in. */
struct desk {
	char key[WORD_MOST];
	uint64_t count;			/* of the word at hand: the value */
	uint64_t former;		/* where atomics end */
	acp_map_t map;			/* rank 0 tells the others */
};

/* The words of this rank's part, each as often as it occurs. */
struct words {
	char **list;
	size_t count, room;
};

static const char *const corpus[] = {
	"/usr/share/common-licenses/*", "/usr/share/doc/*/copyright",
};

static int rank, procs;
static struct desk *desk;
static acp_ga_t desk_ga;

static void give_up(const char *what, const char *why)
{
	char text[512];

	snprintf(text, sizeof(text), "wordcount: %s: %s", what, why);
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

static void add_word(struct words *words, const char *letters, size_t length)
{
	size_t i;
	char *word;

	if (words->count == words->room) {
		words->room = words->room ? 2 * words->room : 1024;
		words->list = realloc(words->list, words->room * sizeof(*words->list));
	}
	if (length > WORD_MOST)
		length = WORD_MOST;
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
	size_t at = size * (size_t)rank / (size_t)procs;
	size_t end = size * ((size_t)rank + 1) / (size_t)procs, begin;

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

/* One map over all ranks; the others get the reference from rank 0's desk. */
static acp_map_t create_map(void)
{
	int *ranks = calloc((size_t)procs, sizeof(*ranks)), i;

	if (ranks == NULL)
		give_up("memory", strerror(errno));
	for (i = 0; i < procs; i++)
		ranks[i] = i;
	if (rank == 0) {
		desk->map = acp_create_map(procs, ranks, SLOTS, 0);
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

/* The word is there: add to its count where it lies. */
static void add_to(acp_map_t map, acp_element_t key)
{
	acp_map_it_t it = acp_find_map(map, key);
	acp_pair_t there = acp_dereference_map_it(it);

	if (there.second.ga == ACP_GA_NULL)
		give_up(desk->key, "was there and is not found");
	finish(acp_add8(desk_ga + offsetof(struct desk, former), there.second.ga, desk->count,
			ACP_HANDLE_NULL), "add");
}

static void put(acp_map_t map, const char *word, uint64_t count)
{
	size_t length = strlen(word);
	acp_pair_t pair = {
		{ desk_ga + offsetof(struct desk, key), (length + 7) & ~(size_t)7 },
		{ desk_ga + offsetof(struct desk, count), sizeof(desk->count) },
	};

	memset(desk->key, 0, sizeof(desk->key));
	memcpy(desk->key, word, length);
	desk->count = count;
	errno = 0;
	if (acp_insert_map(map, pair))
		return;
	if (errno != 0)
		give_up_map("acp_insert_map");
	add_to(map, pair.first);
}

/* Equal words are side by side. */
static void put_all(acp_map_t map, const struct words *words)
{
	size_t i, first = 0;

	for (i = 1; i <= words->count; i++) {
		if (i < words->count && strcmp(words->list[i], words->list[first]) == 0)
			continue;
		put(map, words->list[first], i - first);
		first = i;
	}
}

/* What lies here; local iterators lead to addresses that this process can reach itself. */
static void print_part(acp_map_t map)
{
	acp_map_it_t it;

	for (it = acp_begin_local_map(map); it.elem != ACP_GA_NULL;
	     it = acp_increment_map_it(it)) {
		acp_pair_t pair = acp_dereference_map_it(it);
		const char *word = acp_query_address(pair.first.ga);
		const uint64_t *count = acp_query_address(pair.second.ga);

		if (word == NULL || count == NULL)
			give_up("iterator", "leads nowhere");
		printf("%" PRIu64 " %.*s\n", *count, (int)pair.first.size, word);
	}
	if (fflush(stdout) != 0)
		give_up("standard output", strerror(errno));
}

static void print_all(acp_map_t map)
{
	int turn;

	for (turn = 0; turn < procs; turn++) {
		sync_all();
		if (turn == rank)
			print_part(map);
	}
}

static void run(int files, char **names)
{
	struct words words = { NULL, 0, 0 };
	acp_map_t map;
	size_t i;
	int f;

	for (f = 0; f < files; f++)
		read_file(&words, names[f]);
	if (files == 0)
		read_corpus(&words);
	if (words.count)
		qsort(words.list, words.count, sizeof(*words.list), compare);
	map = create_map();
	put_all(map, &words);
	print_all(map);
	sync_all();
	if (rank == 0) {
		fprintf(stderr, "wordcount: %zu words on %d ranks\n", acp_size_map(map), procs);
		acp_destroy_map(map);
	}
	for (i = 0; i < words.count; i++)
		free(words.list[i]);
	free(words.list);
}

int main(int argc, char **argv)
{
	setenv("ACP_HEAP_SIZE", HEAP_SIZE, 0);
	if (acp_init(&argc, &argv) != 0) {
		fprintf(stderr, "wordcount: acp_init failed\n");
		return EXIT_FAILURE;
	}
	rank = acp_rank();
	procs = acp_procs();
	desk_ga = acp_query_starter_ga(rank);
	desk = acp_query_address(desk_ga);
	if (desk == NULL || acpx_starter_size() < sizeof(*desk))
		give_up("starter memory", "too little (ACP_STARTER_SIZE)");
	acpx_set_error_mode(ACPX_ERRORS_RETURN);
	run(argc - 1, argv + 1);
	if (acp_finalize() != 0) {
		fprintf(stderr, "wordcount: acp_finalize failed\n");
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}
