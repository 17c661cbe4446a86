// SPDX-License-Identifier: MIT
/*
 * Cost of registering and unregistering memory while a number of other regions are registered. The
 * others have 8 bytes each, many of them in one page: they count one page each towards the limits,
 * but need hardly any memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mode.h"

#define SAMPLES	200
#define PAGE	4096
#define STEP	16	/* distance of two regions in bytes */

static const struct perf_list default_counts = { 4, { 100, 4000, 32000, 100000 } };

/* The other regions: @count words of @memory are registered. */
struct crowd {
	char *memory;
	uint64_t count;
	acp_atkey_t *keys;
};

static bool grow(struct crowd *c, uint64_t count)
{
	for (; c->count < count; c->count++) {
		acp_atkey_t key = acp_register_memory(c->memory + STEP * c->count, 8, 0);

		if (key == ACP_ATKEY_NULL)
			return false;
		c->keys[c->count] = key;
	}
	return true;
}

static void shrink(struct crowd *c)
{
	while (c->count)
		if (acp_unregister_memory(c->keys[--c->count]) != 0)
			perf_fatal("cannot unregister memory");
}

/* Register a page between theirs. */
static bool measure_once(char *page, struct perf_samples *begin, struct perf_samples *end)
{
	uint64_t t0 = perf_now(), t1;
	acp_atkey_t key = acp_register_memory(page, PAGE, 0);

	t1 = perf_now();
	if (key == ACP_ATKEY_NULL)
		return false;
	perf_samples_add(begin, (double)(t1 - t0));
	t0 = perf_now();
	if (acp_unregister_memory(key) != 0)
		perf_fatal("cannot unregister memory");
	perf_samples_add(end, (double)(perf_now() - t0));
	return true;
}

static void report(struct perf_run *run, const char *op, struct perf_samples *samples,
		   uint64_t count)
{
	struct perf_row row = { .mode = "regions", .op = op, .size = PAGE };
	char note[64];

	row.time = perf_samples_close(samples);
	if (row.time.median > 0)
		row.ops_per_s = 1e9 / row.time.median;
	snprintf(note, sizeof(note), "%llu other regions", (unsigned long long)count);
	row.note = note;
	perf_report_row(&run->report, &row);
}

static bool measure(struct perf_run *run, struct crowd *c, uint64_t count)
{
	struct perf_samples begin = { 0 }, end = { 0 };
	struct perf_pace pace;
	bool accepted;

	perf_report_progress(&run->report, "regions", "register", PAGE);
	accepted = grow(c, count);
	pace = perf_pace_start(run->options, SAMPLES);
	while (accepted && perf_pace_more(&pace, begin.n))
		accepted = measure_once(c->memory + c->count / 2 * STEP / PAGE * PAGE, &begin,
					&end);
	if (!accepted)
		perf_report_skip(&run->report, "regions", "register", PAGE,
				 "refused (see ulimit -l)");
	if (begin.n == 0)
		return false;
	report(run, "register", &begin, count);
	report(run, "unregister", &end, count);
	return accepted;
}

static uint64_t most(const struct perf_list *counts)
{
	uint64_t count = 0;
	size_t i;

	for (i = 0; i < counts->n; i++)
		if (counts->value[i] > count)
			count = counts->value[i];
	return count;
}

void perf_regions(struct perf_run *run)
{
	const struct perf_list *counts = perf_list_or(&run->options->sizes, &default_counts);
	size_t bytes = (most(counts) * STEP / PAGE + 2) * PAGE, i;
	struct crowd c = { .keys = calloc(most(counts) + 1, sizeof(*c.keys)) };

	c.memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (c.memory == MAP_FAILED || c.keys == NULL)
		perf_fatal("no memory for so many regions");
	memset(c.memory, 0x5a, bytes);
	for (i = 0; i < counts->n; i++) {
		if (counts->value[i] < c.count)
			shrink(&c);
		if (!measure(run, &c, counts->value[i]))
			break;
	}
	shrink(&c);
	munmap(c.memory, bytes);
	free(c.keys);
}
