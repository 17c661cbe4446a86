// SPDX-License-Identifier: MIT
/*
 * Cost of registering and unregistering memory by size: with small pages, and with both kinds of
 * huge pages. The cost per page is printed, because the time should be proportional to the number
 * of pages. Huge pages are compared with small ones of the same size.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mode.h"

#define SAMPLES	200
#define HUGE	(UINT64_C(2) << 20)

static const struct perf_list default_sizes = { 4, { 4096, 65536, 1048576, 4194304 } };

enum { SMALL, TRANSPARENT, HUGETLB, KINDS };

static const struct kind {
	const char *begin, *end;	/* names of its rows */
	uint64_t page;			/* bytes */
	int flags, advice;		/* of mmap(), of madvise() */
} kinds[KINDS] = {
	[SMALL] = { "register", "unregister", 4096, 0, MADV_NOHUGEPAGE },
	[TRANSPARENT] = { "thp", "unthp", HUGE, 0, MADV_HUGEPAGE },
	[HUGETLB] = { "hugetlb", "unhugetlb", HUGE, MAP_HUGETLB, 0 },
};

/* Medians of small pages of the current size; 0: none. */
struct small_pages {
	double begin, end;
};

/* ---- Memory ---- */

/* Return KiB from the line "NAME: ..." of a file, after a line that begins with @from; or 0. */
static uint64_t proc_kib(const char *file, const char *from, const char *name)
{
	unsigned long long kib = 0;
	size_t n = strlen(name);
	bool seen = !*from;
	char line[256];
	FILE *f = fopen(file, "re");

	if (f == NULL)
		return 0;
	while (fgets(line, sizeof(line), f) != NULL) {
		seen = seen || strncmp(line, from, strlen(from)) == 0;
		if (seen && strncmp(line, name, n) == 0 && line[n] == ':' &&
		    sscanf(line + n + 1, "%llu", &kib) == 1)
			break;
	}
	fclose(f);
	return kib;
}

/* True if all of it is in huge pages. It must be a mapping of its own. */
static bool all_huge(const char *memory, size_t size)
{
	char start[32];

	snprintf(start, sizeof(start), "%lx-", (unsigned long)memory);
	return proc_kib("/proc/self/smaps", start, "AnonHugePages") >= size >> 10;
}

/* Return memory of a kind, after writing to it; or NULL and the reason. */
static char *get_memory(const struct kind *k, size_t size, const char **why)
{
	size_t extra = k->flags ? 0 : HUGE;
	char *p, *memory;

	*why = "not so much memory";
	if (!k->flags && proc_kib("/proc/meminfo", "", "MemAvailable") < size / 1024 / 8 * 9)
		return NULL;
	p = mmap(NULL, size + extra, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | k->flags, -1, 0);
	if (p == MAP_FAILED) {
		*why = k->flags ? "not so many huge pages (see vm.nr_hugepages)" : strerror(errno);
		return NULL;
	}
	/* Align to huge pages, and unmap the rest. */
	memory = extra ? (char *)(((uintptr_t)p + HUGE - 1) & ~(uintptr_t)(HUGE - 1)) : p;
	if (memory > p)
		munmap(p, (size_t)(memory - p));
	if (extra)
		munmap(memory + size, (size_t)(p + extra - memory));
	if (k->advice != 0)
		madvise(memory, size, k->advice);
	memset(memory, 0x5a, size);
	if (k->page == HUGE && !k->flags && !all_huge(memory, size)) {
		*why = "the kernel gave small pages (see transparent_hugepage)";
		munmap(memory, size);
		return NULL;
	}
	return memory;
}

/* True if both ends of the registered memory can be read through its global address. */
static bool reachable(const struct perf_job *job, const char *memory, size_t size, acp_ga_t ga)
{
	size_t n = size < sizeof(uint64_t) ? size : sizeof(uint64_t);

	if (ga == ACP_GA_NULL)
		return false;
	memset(job->scratch, 0, 2 * sizeof(uint64_t));
	perf_finish(acp_copy(job->scratch_ga, ga, n, ACP_HANDLE_NULL), "reading its begin");
	perf_finish(acp_copy(job->scratch_ga + sizeof(uint64_t), ga + size - n, n,
			     ACP_HANDLE_NULL), "reading its end");
	return memcmp(job->scratch, memory, n) == 0 &&
	       memcmp(job->scratch + sizeof(uint64_t), memory + size - n, n) == 0;
}

/* ---- Time ---- */

struct registration {
	struct perf_row begin, end;
	struct perf_samples begin_time, end_time;
};

static bool measure_once(struct perf_run *run, char *memory, size_t size, struct registration *r)
{
	uint64_t t0 = perf_now(), t1;
	acp_atkey_t key = acp_register_memory(memory, size, 0);

	t1 = perf_now();
	if (key == ACP_ATKEY_NULL)
		return false;
	perf_samples_add(&r->begin_time, (double)(t1 - t0));
	if (run->options->check) {
		r->begin.checks++;
		r->begin.wrong += !reachable(&run->job, memory, size, acp_query_ga(key, memory));
	}
	t0 = perf_now();
	if (acp_unregister_memory(key) != 0)
		perf_fatal("cannot unregister memory");
	perf_samples_add(&r->end_time, (double)(perf_now() - t0));
	return true;
}

static void report(struct perf_run *run, const struct kind *k, struct perf_row *row,
		   struct perf_samples *samples, double *small)
{
	uint64_t pages = (row->size + k->page - 1) / k->page;
	char note[64];

	row->time = perf_samples_close(samples);
	if (row->time.median > 0) {
		row->mb_per_s = 1e3 * (double)row->size / row->time.median;
		row->ops_per_s = 1e9 / row->time.median;
	}
	if (k == &kinds[SMALL]) {
		*small = row->time.median;
	} else if (*small > 0) {
		row->ratio = row->time.median / *small;
		row->ratio_to = "small pages";
	}
	snprintf(note, sizeof(note), "%.1f ns per page of %s", row->time.median / (double)pages,
		 k->page == HUGE ? "2 MiB" : "4 KiB");
	row->note = note;
	perf_report_row(&run->report, row);
}

static void measure(struct perf_run *run, const struct kind *k, size_t size,
		    struct small_pages *small)
{
	struct registration r = {
		.begin = { .mode = "register", .op = k->begin, .size = size },
		.end = { .mode = "register", .op = k->end, .size = size },
	};
	struct perf_pace pace;
	bool accepted = true;
	const char *why;
	char *memory;

	memory = get_memory(k, size, &why);
	if (memory == NULL) {
		perf_report_skip(&run->report, "register", k->begin, size, why);
		return;
	}
	pace = perf_pace_start(run->options, SAMPLES);
	while (accepted && perf_pace_more(&pace, r.begin_time.n))
		accepted = measure_once(run, memory, size, &r);
	munmap(memory, size);
	if (!accepted)
		perf_report_skip(&run->report, "register", k->begin, size,
				 "refused (see ulimit -l)");
	if (r.begin_time.n == 0)
		return;
	report(run, k, &r.begin, &r.begin_time, &small->begin);
	report(run, k, &r.end, &r.end_time, &small->end);
}

/* Huge pages only if the size fills them. */
static void measure_size(struct perf_run *run, size_t size)
{
	struct small_pages small = { 0 };
	int i;

	for (i = 0; i < KINDS; i++) {
		if (size % kinds[i].page != 0 && kinds[i].page == HUGE)
			continue;
		perf_report_progress(&run->report, "register", kinds[i].begin, size);
		measure(run, &kinds[i], size, &small);
	}
}

void perf_register(struct perf_run *run)
{
	const struct perf_list *sizes = perf_list_or(&run->options->sizes, &default_sizes);
	size_t i;

	for (i = 0; i < sizes->n; i++) {
		if (sizes->value[i] == 0)
			perf_report_skip(&run->report, "register", "register", 0, "no memory");
		else
			measure_size(run, sizes->value[i]);
	}
}
