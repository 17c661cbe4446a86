// SPDX-License-Identifier: MIT
/*
 * A map over all ranks: all ranks concurrently insert words under unique keys, then look up the
 * keys of other ranks. For comparison, one rank alone, and the hash table of the C library.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* hsearch_r */
#endif

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mode.h"

#define KEYS		1000		/* per rank, unless --iters specifies it */
#define SLOTS		1024		/* per rank */

/* Words that the calls read and write, after the boards in starter memory. */
struct words {
	uint64_t key, value;
};

struct table {
	acp_map_t map;
	struct words *words;
	acp_ga_t key_ga, value_ga;
	uint64_t keys, wrong;
};

static uint64_t key_of(int rank, uint64_t i)
{
	return (uint64_t)rank << 32 | i;
}

static acp_pair_t pair(const struct table *t)
{
	return (acp_pair_t){ { t->key_ga, sizeof(uint64_t) }, { t->value_ga, sizeof(uint64_t) } };
}

static void insert_all(struct table *t, int rank)
{
	uint64_t i;

	for (i = 0; i < t->keys; i++) {
		t->words->key = key_of(rank, i);
		t->words->value = ~t->words->key;
		if (acp_insert_map(t->map, pair(t)) != 1)
			perf_fatal("a map takes no key: is the heap too small (ACP_HEAP_SIZE=4M)?");
	}
}

static void find_all(struct table *t, int rank)
{
	uint64_t i;

	for (i = 0; i < t->keys; i++) {
		t->words->key = key_of(rank, i);
		t->words->value = 0;
		if (acp_retrieve_map(t->map, pair(t)) != sizeof(uint64_t) ||
		    t->words->value != ~t->words->key)
			t->wrong++;
	}
}

static void report(struct perf_run *run, const char *op, uint64_t ranks, const struct table *t,
		   uint64_t ns)
{
	struct perf_row row = { .mode = "map", .op = op, .window = ranks };

	row.time.n = ranks * t->keys;
	row.ops_per_s = 1e9 * (double)row.time.n / (double)ns;
	row.checks = row.time.n;
	row.wrong = t->wrong;
	row.note = ranks > 1 ? "ranks at once, by the window" : NULL;
	perf_report_row(&run->report, &row);
}

/* Return the number of wrong results of all ranks on rank 0; 0 on others. */
static uint64_t sum_wrong(struct perf_job *job, uint64_t wrong)
{
	int rank;

	job->board->count = wrong;
	perf_sync();
	if (job->rank == 0)
		for (rank = 1; rank < job->procs; rank++)
			wrong += perf_job_fetch(job, rank)->count;
	perf_sync();
	return wrong;
}

/* Let @count ranks insert and look up; the others wait. */
static void measure(struct perf_run *run, struct table *t, int count)
{
	int me = run->job.rank;
	uint64_t begin, ns;

	perf_sync();
	begin = perf_now();
	if (me < count)
		insert_all(t, me);
	perf_sync();
	ns = perf_now() - begin;
	if (me == 0)
		report(run, "insert", (uint64_t)count, t, ns);
	begin = perf_now();
	if (me < count)
		find_all(t, (me + 1) % count);
	perf_sync();
	ns = perf_now() - begin;
	t->wrong = sum_wrong(&run->job, t->wrong);
	if (me == 0)
		report(run, "find", (uint64_t)count, t, ns);
	t->wrong = 0;
	if (me == 0)
		acp_clear_map(t->map);
	perf_sync();
}

/* Measure a hash table in the memory of one process. */
static void measure_libc(struct perf_run *run, struct table *t)
{
	struct hsearch_data table = { 0 };
	char (*names)[20] = calloc(t->keys, sizeof(*names));
	uint64_t i, begin;
	ENTRY *found;

	if (names == NULL || hcreate_r(2 * t->keys, &table) == 0)
		perf_fatal("no memory");
	for (i = 0; i < t->keys; i++)
		snprintf(names[i], sizeof(names[i]), "%lu", (unsigned long)i);
	begin = perf_now();
	for (i = 0; i < t->keys; i++)
		if (hsearch_r((ENTRY){ names[i], names[i] }, ENTER, &found, &table) == 0)
			perf_fatal("no memory");
	report(run, "hsearch in", 1, t, perf_now() - begin);
	begin = perf_now();
	for (i = 0; i < t->keys; i++)
		t->wrong += hsearch_r((ENTRY){ names[i], NULL }, FIND, &found, &table) == 0;
	report(run, "hsearch", 1, t, perf_now() - begin);
	t->wrong = 0;
	hdestroy_r(&table);
	free(names);
}

/*
 * Rank 0 creates the map over all ranks. The others read it from the starter memory behind its
 * board.
 */
static void open_table(struct perf_run *run, struct table *t)
{
	size_t at = 2 * sizeof(struct perf_board);
	acp_map_t *shared;
	int *ranks, i;

	*t = (struct table){ .keys = run->options->iters ? run->options->iters : KEYS };
	if (acpx_starter_size() < at + sizeof(acp_map_t) + sizeof(struct words))
		perf_fatal("needs more starter memory (ACP_STARTER_SIZE)");
	shared = (acp_map_t *)((char *)run->job.board + at);
	if (run->job.rank == 0) {
		ranks = calloc((size_t)run->job.procs, sizeof(*ranks));
		if (ranks == NULL)
			perf_fatal("no memory");
		for (i = 0; i < run->job.procs; i++)
			ranks[i] = i;
		*shared = acp_create_map(run->job.procs, ranks, SLOTS, 0);
		free(ranks);
		if (shared->ga == ACP_GA_NULL)
			perf_fatal("no map: is the heap too small (ACP_HEAP_SIZE=4M)?");
	}
	perf_sync();
	if (run->job.rank != 0)
		perf_finish(acp_copy(acp_query_starter_ga(run->job.rank) + at,
				     acp_query_starter_ga(0) + at, sizeof(acp_map_t),
				     ACP_HANDLE_NULL), "get of the map");
	t->map = *shared;
	t->words = (struct words *)(shared + 1);
	t->key_ga = acp_query_starter_ga(run->job.rank) + at + sizeof(acp_map_t);
	t->value_ga = t->key_ga + sizeof(uint64_t);
}

void perf_map(struct perf_run *run)
{
	struct table t;
	int count;

	open_table(run, &t);
	if (run->job.rank == 0)
		measure_libc(run, &t);
	for (count = 1; count < run->job.procs; count *= 2)
		measure(run, &t, count);
	measure(run, &t, run->job.procs);
	if (run->job.rank == 0)
		acp_destroy_map(t.map);
	perf_sync();
}
