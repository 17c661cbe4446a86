// SPDX-License-Identifier: MIT
/*
 * Channels between rank 0 and the target: round trips and streams of messages, each compared with
 * puts of the same size that are measured just before.
 *
 * Both ranks know the options and therefore the sequence of measurements.
 */
#include <stdlib.h>
#include <string.h>

#include "mode.h"

#define PINGS		1000
#define STREAM_BYTES	(UINT64_C(16) << 20)
#define STREAM_MAX	2000		/* messages of a stream */
#define STREAM_MIN	64
#define WINDOW		8		/* messages or puts outstanding */

static const struct perf_list default_sizes = { 4, { 8, 1024, 65536, 1048576 } };

/* Both channel ends of a rank, and its buffers. */
struct ends {
	acp_ch_t out, in;
	char *buffer[WINDOW];
	uint64_t wrong;
};

/* Write the number of a message at its start and end; the rest is arbitrary. */
static void stamp(char *buffer, size_t size, uint64_t n)
{
	size_t length = size < sizeof(n) ? size : sizeof(n);

	memcpy(buffer, &n, length);
	memcpy(buffer + size - length, &n, length);
}

static bool is_stamped(const char *buffer, size_t size, uint64_t n)
{
	size_t length = size < sizeof(n) ? size : sizeof(n);

	return memcmp(buffer + size - length, &n, length) == 0 &&
	       (size < 2 * sizeof(n) || memcmp(buffer, &n, length) == 0);
}

static void finish(acp_request_t request, size_t expected)
{
	if (acp_wait_ch(request) != expected)
		perf_fatal("a channel failed");
}

static acp_request_t must(acp_request_t request)
{
	if (request == NULL)
		perf_fatal("a channel takes no request");
	return request;
}

static uint64_t pings(const struct perf_run *run)
{
	return run->options->iters ? run->options->iters : PINGS;
}

static uint64_t stream_length(size_t size)
{
	uint64_t n = STREAM_BYTES / (size ? size : 1);

	return n > STREAM_MAX ? STREAM_MAX : n < STREAM_MIN ? STREAM_MIN : n;
}

/* ---- Puts, for comparison ---- */

static double time_put(struct perf_run *run, size_t size)
{
	const struct perf_job *job = &run->job;
	struct perf_samples samples = { 0 };
	uint64_t i, begin;

	for (i = 0; i < pings(run); i++) {
		begin = perf_now();
		perf_finish(acp_copy(job->area[PERF_TARGET].ga, job->area[PERF_OWN].ga, size,
				     ACP_HANDLE_NULL), "put");
		perf_samples_add(&samples, (double)(perf_now() - begin));
	}
	return perf_samples_close(&samples).median;
}

/* Return nanoseconds per put. */
static double time_puts(struct perf_run *run, size_t size)
{
	const struct perf_job *job = &run->job;
	uint64_t n = stream_length(size), i, begin = perf_now();
	acp_handle_t handles[WINDOW] = { ACP_HANDLE_NULL };

	for (i = 0; i < n; i++) {
		acp_complete(handles[i % WINDOW]);
		handles[i % WINDOW] = acp_copy(job->area[PERF_TARGET].ga, job->area[PERF_OWN].ga,
					       size, ACP_HANDLE_NULL);
	}
	perf_finish(handles[(n - 1) % WINDOW], "puts");
	return (double)(perf_now() - begin) / (double)n;
}

/* ---- Round trips ---- */

static void ping(struct ends *e, size_t size, uint64_t n)
{
	acp_request_t there = must(acp_nbsend_ch(e->out, e->buffer[0], size));

	finish(must(acp_nbrecv_ch(e->in, e->buffer[1], size)), size);
	finish(there, 0);
	e->wrong += !is_stamped(e->buffer[1], size, n);
}

static void pong(struct ends *e, size_t size)
{
	finish(must(acp_nbrecv_ch(e->in, e->buffer[0], size)), size);
	finish(must(acp_nbsend_ch(e->out, e->buffer[0], size)), 0);
}

static void measure_pings(struct perf_run *run, struct ends *e, size_t size)
{
	struct perf_row row = { .mode = "channel", .op = "ping", .size = size };
	struct perf_samples samples = { 0 };
	uint64_t i, begin, before = e->wrong;
	double put = time_put(run, size);

	for (i = 0; i < pings(run); i++) {
		stamp(e->buffer[0], size, i);
		begin = perf_now();
		ping(e, size, i);
		perf_samples_add(&samples, (double)(perf_now() - begin) / 2);
	}
	row.time = perf_samples_close(&samples);
	row.checks = pings(run);
	row.wrong = e->wrong - before;
	row.ratio = row.time.median / put;
	row.ratio_to = "put";
	row.note = "half of the round trip";
	perf_report_row(&run->report, &row);
}

/* ---- Streams ---- */

/*
 * Send with up to WINDOW messages in flight. The receiver answers with the number of wrong
 * messages.
 */
static uint64_t send_stream(struct ends *e, size_t size)
{
	acp_request_t requests[WINDOW] = { NULL };
	uint64_t n = stream_length(size), i;

	for (i = 0; i < n; i++) {
		if (i >= WINDOW)
			finish(requests[i % WINDOW], 0);
		stamp(e->buffer[i % WINDOW], size, i);
		requests[i % WINDOW] = must(acp_nbsend_ch(e->out, e->buffer[i % WINDOW], size));
	}
	for (i = n; i < n + WINDOW; i++)
		finish(requests[i % WINDOW], 0);
	finish(must(acp_nbrecv_ch(e->in, e->buffer[0], sizeof(i))), sizeof(i));
	memcpy(&i, e->buffer[0], sizeof(i));
	return i;
}

static void receive_stream(struct ends *e, size_t size)
{
	acp_request_t requests[WINDOW];
	uint64_t n = stream_length(size), i, wrong = 0;

	for (i = 0; i < WINDOW; i++)
		requests[i] = must(acp_nbrecv_ch(e->in, e->buffer[i], size));
	for (i = 0; i < n; i++) {
		finish(requests[i % WINDOW], size);
		wrong += !is_stamped(e->buffer[i % WINDOW], size, i);
		if (i + WINDOW < n)
			requests[i % WINDOW] = must(acp_nbrecv_ch(e->in, e->buffer[i % WINDOW],
								  size));
	}
	memcpy(e->buffer[0], &wrong, sizeof(wrong));
	finish(must(acp_nbsend_ch(e->out, e->buffer[0], sizeof(wrong))), 0);
}

static void measure_stream(struct perf_run *run, struct ends *e, size_t size)
{
	struct perf_row row = { .mode = "channel", .op = "stream", .size = size, .window = WINDOW };
	double put = time_puts(run, size), each;
	uint64_t begin = perf_now();

	row.wrong = send_stream(e, size);
	row.checks = stream_length(size);
	each = (double)(perf_now() - begin) / (double)row.checks;
	row.time.n = row.checks;
	row.mb_per_s = 1e3 * (double)size / each;
	row.ops_per_s = 1e9 / each;
	row.ratio = put / each;
	row.ratio_to = "puts";
	perf_report_row(&run->report, &row);
}

/* ---- Both ends ---- */

static size_t largest(const struct perf_list *sizes)
{
	size_t i, most = sizeof(uint64_t);

	for (i = 0; i < sizes->n; i++)
		most = sizes->value[i] > most ? sizes->value[i] : most;
	return most;
}

static void open_ends(struct ends *e, int me, int other, size_t size)
{
	int i;

	*e = (struct ends){ 0 };
	/* Both sides need not create them in the same order, because their directions differ. */
	e->out = acp_create_ch(me, other);
	e->in = acp_create_ch(other, me);
	if (e->out == NULL || e->in == NULL)
		perf_fatal("no channel");
	for (i = 0; i < WINDOW; i++) {
		e->buffer[i] = calloc(1, size);
		if (e->buffer[i] == NULL)
			perf_fatal("no memory");
	}
}

static void close_ends(struct ends *e)
{
	int i;

	if (acp_free_ch(e->out) != 0 || acp_free_ch(e->in) != 0)
		perf_fatal("a channel does not close");
	for (i = 0; i < WINDOW; i++)
		free(e->buffer[i]);
}

static void drive(struct perf_run *run, struct ends *e, size_t size)
{
	perf_report_progress(&run->report, "channel", "ping", size);
	measure_pings(run, e, size);
	perf_report_progress(&run->report, "channel", "stream", size);
	measure_stream(run, e, size);
}

static void follow(const struct perf_run *run, struct ends *e, size_t size)
{
	uint64_t i;

	for (i = 0; i < pings(run); i++)
		pong(e, size);
	receive_stream(e, size);
}

void perf_channel(struct perf_run *run)
{
	const struct perf_list *sizes = perf_list_or(&run->options->sizes, &default_sizes);
	int me = run->job.rank, target = run->job.target;
	struct ends e;
	size_t i;

	if ((me != 0 && me != target) || target == 0) {
		if (me == 0)
			perf_report_skip(&run->report, "channel", "ping", 0, "needs 2 ranks");
		return;
	}
	open_ends(&e, me, me == 0 ? target : 0, largest(sizes));
	for (i = 0; i < sizes->n; i++) {
		if (sizes->value[i] == 0)
			continue;
		if (me == 0)
			drive(run, &e, sizes->value[i]);
		else
			follow(run, &e, sizes->value[i]);
	}
	close_ends(&e);
}
