// SPDX-License-Identifier: MIT
/*
 * Samples of time and their summary.
 */
#include "sample.h"

#include <math.h>
#include <stdlib.h>

#include "job.h"

#define MIN_SAMPLES	5
#define MAX_SAMPLES	1000000
#define DEFAULT_SECONDS	1.0

struct perf_pace perf_pace_start(const struct perf_options *o, uint64_t samples)
{
	struct perf_pace pace = {
		.least = MIN_SAMPLES,
		.most = samples,
		.limit = 1e9 * (o->seconds > 0 ? o->seconds : DEFAULT_SECONDS),
	};

	if (o->iters != 0) {
		pace.most = o->iters;
		if (o->seconds == 0)
			pace.limit = INFINITY;
	} else if (o->seconds > 0) {
		pace.most = MAX_SAMPLES;
	}
	if (pace.least > pace.most)
		pace.least = pace.most;
	pace.begin = perf_now();
	return pace;
}

bool perf_pace_more(const struct perf_pace *pace, uint64_t done)
{
	if (done < pace->least)
		return true;
	return done < pace->most && (double)(perf_now() - pace->begin) < pace->limit;
}

void perf_samples_add(struct perf_samples *s, double value)
{
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 1024;
		s->value = realloc(s->value, s->room * sizeof(*s->value));
		if (s->value == NULL)
			perf_fatal("out of memory for samples");
	}
	s->value[s->n++] = value;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct perf_summary perf_samples_close(struct perf_samples *s)
{
	struct perf_summary sum = { .n = s->n };
	size_t n = s->n;

	if (n > 0) {
		qsort(s->value, n, sizeof(*s->value), compare);
		sum.min = s->value[0];
		sum.median = (s->value[(n - 1) / 2] + s->value[n / 2]) / 2;
		sum.p99 = s->value[(n * 99 + 99) / 100 - 1];
		sum.max = s->value[n - 1];
	}
	free(s->value);
	*s = (struct perf_samples){ 0 };
	return sum;
}
