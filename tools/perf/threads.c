// SPDX-License-Identifier: MIT
/*
 * Rate of several concurrent threads of rank 0, with the queue of the process or a context each.
 *
 * The threads persist for a line of results; pthread barriers begin and end a burst. A burst takes
 * from the first operation of the first thread until the last operation of all threads is complete.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mode.h"

#define SAMPLES		50
#define CHECK_EVERY	16
#define SHARE_BYTES	4096	/* of an area, per thread: no false sharing */
#define BURST		1024	/* operations of a thread, */
#define BURST_MIN	4	/* but at least this many windows */

struct thread {
	pthread_t id;
	struct load *load;
	size_t offset;		/* of its share */
	acp_handle_t *handle;	/* the outstanding operations: "window" entries */
	uint64_t begin, end;	/* of its part of the last burst */
};

/* What all threads do. */
struct load {
	const struct perf_job *job;
	const struct perf_op *op;
	size_t size;
	uint64_t window, burst;
	uint64_t slots;		/* positions in a share, used in turn */
	uint64_t threads;
	bool contexts;
	bool over;		/* written between barriers */
	pthread_barrier_t start, stop;
	struct thread thread[PERF_THREADS_MAX];
};

static void burst(struct thread *t)
{
	const struct load *l = t->load;
	uint64_t i, slot = 0, place = 0;

	t->begin = perf_now();
	for (i = 0; i < l->burst; i++) {
		if (i >= l->window)
			perf_finish(t->handle[place], l->op->name);
		t->handle[place] = perf_op_issue(l->op, l->job, l->size,
						 t->offset + slot * l->size);
		if (++place == l->window)
			place = 0;
		if (++slot == l->slots)
			slot = 0;
	}
	for (i = 0; i < l->window; i++)
		perf_finish(t->handle[i], l->op->name);
	t->end = perf_now();
}

static void *work(void *arg)
{
	struct thread *t = arg;
	struct load *l = t->load;
	acpx_context_t context = NULL;
	int error = 0;

	if (l->contexts)
		error = acpx_context_create(0, &context);
	if (!error && l->contexts)
		error = acpx_context_bind(context);
	if (error)
		perf_fatal("a context for a thread: %s", strerror(-error));
	for (;;) {
		pthread_barrier_wait(&l->start);
		if (l->over)
			break;
		burst(t);
		pthread_barrier_wait(&l->stop);
	}
	if (context != NULL && acpx_context_destroy(context) != 0)
		perf_fatal("cannot destroy a context");
	return NULL;
}

/* Execute a burst on all threads. Returns nanoseconds. */
static uint64_t run_burst(struct load *l)
{
	uint64_t begin = UINT64_MAX, end = 0, i;

	pthread_barrier_wait(&l->start);
	pthread_barrier_wait(&l->stop);
	for (i = 0; i < l->threads; i++) {
		begin = l->thread[i].begin < begin ? l->thread[i].begin : begin;
		end = l->thread[i].end > end ? l->thread[i].end : end;
	}
	return end - begin;
}

static uint64_t run_sample(struct perf_run *run, struct load *l, uint64_t index,
			   struct perf_row *row)
{
	bool check = run->options->check && index % CHECK_EVERY == 0;
	size_t size = l->op->width ? l->size : l->threads * l->slots * l->size;
	uint64_t time;

	if (check)
		perf_op_prepare(l->op, &run->job, size, index);
	time = run_burst(l);
	if (check) {
		row->checks++;
		row->wrong += !perf_op_verify(l->op, &run->job, size, index,
					      l->threads * l->burst, false);
	}
	return time;
}

static void start(struct load *l)
{
	uint64_t i;

	l->over = false;
	if (pthread_barrier_init(&l->start, NULL, (unsigned int)l->threads + 1) != 0 ||
	    pthread_barrier_init(&l->stop, NULL, (unsigned int)l->threads + 1) != 0)
		perf_fatal("no barrier for %llu threads", (unsigned long long)l->threads);
	for (i = 0; i < l->threads; i++) {
		struct thread *t = &l->thread[i];

		t->load = l;
		t->offset = l->op->width ? 0 : i * l->slots * l->size;
		t->handle = calloc(l->window, sizeof(*t->handle));
		if (t->handle == NULL || pthread_create(&t->id, NULL, work, t) != 0)
			perf_fatal("cannot start thread %llu", (unsigned long long)i);
	}
}

static void stop(struct load *l)
{
	uint64_t i;

	l->over = true;
	pthread_barrier_wait(&l->start);
	for (i = 0; i < l->threads; i++) {
		pthread_join(l->thread[i].id, NULL);
		free(l->thread[i].handle);
	}
	pthread_barrier_destroy(&l->start);
	pthread_barrier_destroy(&l->stop);
}

static void measure(struct perf_run *run, struct load *l, const char *note)
{
	struct perf_row row = { .mode = "rate", .op = l->op->name, .size = l->size,
				.window = l->window, .note = note };
	struct perf_samples samples = { 0 };
	struct perf_pace pace;

	l->burst = BURST_MIN * l->window;
	l->burst = l->burst < BURST ? BURST : l->burst;
	start(l);
	run_burst(l);
	pace = perf_pace_start(run->options, SAMPLES);
	while (perf_pace_more(&pace, samples.n))
		perf_samples_add(&samples, (double)run_sample(run, l, samples.n, &row) /
					   (double)(l->threads * l->burst));
	stop(l);
	row.time = perf_samples_close(&samples);
	if (row.time.median > 0) {
		row.mb_per_s = 1e3 * (double)l->size / row.time.median;
		row.ops_per_s = 1e9 / row.time.median;
	}
	perf_report_row(&run->report, &row);
}

/* Compute the positions of a thread, all of which are written in a burst. Atomics share one. */
static void set_share(struct load *l)
{
	l->slots = l->op->width || l->size == 0 || l->size >= SHARE_BYTES ?
		   1 : SHARE_BYTES / l->size;
	l->slots = l->slots < BURST ? l->slots : BURST;
}

void perf_threads(struct perf_run *run, const struct perf_op *op, size_t size,
		  const struct perf_list *windows)
{
	struct load l = { .job = &run->job, .op = op, .size = size,
			  .threads = run->options->threads, .contexts = run->options->contexts };
	const char *why;
	char note[60];
	size_t i;

	set_share(&l);
	why = perf_op_obstacle(op, &run->job, op->width ? size : l.threads * l.slots * size);
	if (op->copy != NULL)
		why = "is not for several threads";
	if (why != NULL) {
		perf_report_skip(&run->report, "rate", op->name, size, why);
		return;
	}
	snprintf(note, sizeof(note), "%llu thread%s, %s", (unsigned long long)l.threads,
		 l.threads == 1 ? "" : "s", l.contexts ? "a context each" : "one queue");
	for (i = 0; i < windows->n; i++) {
		l.window = windows->value[i] ? windows->value[i] : 1;
		perf_report_progress(&run->report, "rate", op->name, size);
		measure(run, &l, note);
	}
}
