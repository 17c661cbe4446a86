// SPDX-License-Identifier: MIT
/*
 * gups - random updates of a table that is distributed over the ranks
 *
 * Shows: remote atomics (acp_xor8) issued one after the other, without waiting for each; and short
 * collectives, each by one call: acpx_allgather tells all ranks where the parts of the table are,
 * acpx_barrier lets them start together, acpx_allreduce adds up results.
 *
 * The table is checked twice. After the updates, the exclusive or of all its words must be that of
 * the first words and of all updates. Then all updates are made once more: each undoes itself, so
 * the table must be as in the beginning. A lost or doubled update is found.
 *
 * Run (here two ranks on this machine; arguments: words of the table per rank, updates per rank,
 * default 4096 16384):
 *
 *     ACP_NPROCS=2 ACP_RANK=0 ./gups & ACP_NPROCS=2 ACP_RANK=1 ./gups; wait
 *
 * Exit status: 0 if the table is right, 1 if not, 2 for invalid arguments.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "acp.h"

#define WORDS_MAX	(UINT64_C(1) << 26)
#define UPDATES_MAX	(UINT64_C(1) << 32)

/* Registered memory of each rank: this, the addresses of all tables, and the own table. */
struct memory {
	uint64_t former;	/* destination of atomics: previous values, not used */
	acp_ga_t own;		/* address of the own table */
	union {
		uint64_t number[2];
		double seconds;
	} mine, all;		/* of this rank, and combined */
	acp_ga_t table[];	/* of each rank */
};

static int rank, procs;
static acpx_group_t world;
static struct memory *memory;
static uint64_t *table, words;
static acp_ga_t memory_ga;

static void give_up(const char *what, const char *why)
{
	char text[160];

	snprintf(text, sizeof(text), "gups: rank %d: %s: %s", rank, what, why);
	acp_abort(text);
	exit(EXIT_FAILURE);
}

/* A function of a group has returned 0 or -errno. */
static void need(int result, const char *what)
{
	if (result < 0)
		give_up(what, strerror(-result));
}

static acp_ga_t address(const void *place)
{
	return memory_ga + (acp_ga_t)((const char *)place - (const char *)memory);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void combine(size_t count, int op, int type)
{
	need(acpx_allreduce(world, address(&memory->all), address(&memory->mine), count, op, type),
	     "acpx_allreduce");
}

static uint64_t initial(uint64_t word)
{
	return (uint64_t)rank * words + word;
}

static void make_table(void)
{
	const size_t head = sizeof(*memory) + (size_t)procs * sizeof(acp_ga_t);
	const size_t size = head + words * sizeof(*table);
	acp_atkey_t key;
	uint64_t i;

	memory = calloc(1, size);
	if (memory == NULL)
		give_up("memory", "not enough");
	key = acp_register_memory(memory, size, 0);
	if (key == ACP_ATKEY_NULL)
		give_up("the table", "cannot be registered (see ulimit -l)");
	memory_ga = acp_query_ga(key, memory);
	table = (uint64_t *)(memory->table + procs);
	for (i = 0; i < words; i++)
		table[i] = initial(i);
	memory->own = address(table);
	need(acpx_allgather(world, address(memory->table), address(&memory->own), sizeof(acp_ga_t)),
	     "acpx_allgather");
}

/* A generator of random numbers by Marsaglia; another sequence for each rank. */
static uint64_t next(uint64_t x)
{
	x ^= x << 13;
	x ^= x >> 7;
	return x ^ x << 17;
}

/* Issue all updates of this rank, and wait for them. Returns their exclusive or. */
static uint64_t update(uint64_t updates)
{
	uint64_t x = UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(rank + 1), sum = 0, word, i;

	for (i = 0; i < updates; i++) {
		x = next(x);
		word = (x >> 16) % (words * (uint64_t)procs);
		if (acp_xor8(address(&memory->former),
			     memory->table[word / words] + word % words * sizeof(*table), x,
			     ACP_HANDLE_NULL) == ACP_HANDLE_NULL)
			give_up("acp_xor8", "not accepted");
		sum ^= x;
	}
	acp_complete(ACP_HANDLE_ALL);	/* a failed access ends the job */
	return sum;
}

/* Update in parallel. Returns the time of the slowest rank; *sum is that of this rank. */
static double update_together(uint64_t updates, uint64_t *sum)
{
	double begin;

	need(acpx_barrier(world), "acpx_barrier");
	begin = now();
	*sum = update(updates);
	memory->mine.seconds = now() - begin;
	combine(1, ACPX_MAX, ACPX_DOUBLE);
	return memory->all.seconds;
}

/* All ranks have made their updates, @sum is the exclusive or of the own ones. */
static bool sums_agree(uint64_t sum)
{
	uint64_t is = 0, was = 0, i;

	for (i = 0; i < words; i++) {
		is ^= table[i];
		was ^= initial(i);
	}
	memory->mine.number[0] = is;
	memory->mine.number[1] = was ^ sum;
	combine(2, ACPX_XOR, ACPX_UINT64);
	return memory->all.number[0] == memory->all.number[1];
}

static uint64_t count_wrong(void)
{
	uint64_t i;

	memory->mine.number[0] = 0;
	for (i = 0; i < words; i++)
		memory->mine.number[0] += table[i] != initial(i);
	combine(1, ACPX_SUM, ACPX_UINT64);
	return memory->all.number[0];
}

static int run(uint64_t updates)
{
	uint64_t sum, wrong;
	double seconds;
	bool agree;

	need(acpx_group_world(&world), "acpx_group_world");
	make_table();
	seconds = update_together(updates, &sum);
	agree = sums_agree(sum);
	update_together(updates, &sum);
	wrong = count_wrong();
	if (rank == 0) {
		printf("gups: %" PRIu64 " updates of %" PRIu64 " words on %d ranks in %.3f s, "
		       "%.0f per second\n", updates * (uint64_t)procs, words * (uint64_t)procs,
		       procs, seconds, (double)updates * procs / seconds);
		printf("gups: %s, %" PRIu64 " words wrong\n", agree ? "sums agree" : "SUMS DIFFER",
		       wrong);
	}
	acpx_group_free(world);
	return agree && wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static bool argument(int argc, char **argv, int index, uint64_t most, uint64_t *value)
{
	char *end;

	if (index >= argc)
		return true;
	*value = strtoull(argv[index], &end, 10);
	return *end == '\0' && end != argv[index] && *value > 0 && *value <= most;
}

int main(int argc, char **argv)
{
	uint64_t updates = 16384;
	int status = 2;

	words = 4096;
	if (acp_init(&argc, &argv) != 0)
		return EXIT_FAILURE;
	rank = acp_rank();
	procs = acp_procs();
	if (argc <= 3 && argument(argc, argv, 1, WORDS_MAX, &words) &&
	    argument(argc, argv, 2, UPDATES_MAX, &updates))
		status = run(updates);
	else if (rank == 0)
		fprintf(stderr, "usage: gups [WORDS [UPDATES]], each per rank\n");
	if (acp_finalize() != 0)
		status = EXIT_FAILURE;
	free(memory);
	return status;
}
