// SPDX-License-Identifier: MIT
/*
 * The cost of registering memory and of giving it back, over sizes.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "perf_mode.h"

#define SAMPLES	200

static const struct perf_list default_sizes = { 4, { 4096, 65536, 1048576, 4194304 } };

/* True if the registered memory can be read through its global address, both ends of it. */
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

static void report(struct perf_run *run, struct perf_row *row, struct perf_samples *samples)
{
	row->time = perf_samples_close(samples);
	if (row->time.median > 0) {
		row->mb_per_s = 1e3 * (double)row->size / row->time.median;
		row->ops_per_s = 1e9 / row->time.median;
	}
	perf_report_row(&run->report, row);
}

static void measure(struct perf_run *run, size_t size)
{
	struct registration r = {
		.begin = { .mode = "register", .op = "register", .size = size },
		.end = { .mode = "register", .op = "unregister", .size = size },
	};
	struct perf_pace pace;
	bool accepted = true;
	char *memory;

	memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (memory == MAP_FAILED) {
		perf_report_skip(&run->report, "register", "register", size, strerror(errno));
		return;
	}
	memset(memory, 0x5a, size);
	pace = perf_pace_start(run->options, SAMPLES);
	while (accepted && perf_pace_more(&pace, r.begin_time.n))
		accepted = measure_once(run, memory, size, &r);
	munmap(memory, size);
	if (!accepted)
		perf_report_skip(&run->report, "register", "register", size,
				 "refused (see ulimit -l)");
	if (r.begin_time.n == 0)
		return;
	report(run, &r.begin, &r.begin_time);
	report(run, &r.end, &r.end_time);
}

void perf_register(struct perf_run *run)
{
	const struct perf_list *sizes = perf_list_or(&run->options->sizes, &default_sizes);
	size_t i;

	for (i = 0; i < sizes->n; i++) {
		perf_report_progress(&run->report, "register", "register", sizes->value[i]);
		if (sizes->value[i] == 0)
			perf_report_skip(&run->report, "register", "register", 0, "no memory");
		else
			measure(run, sizes->value[i]);
	}
}
