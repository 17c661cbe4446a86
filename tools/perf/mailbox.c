// SPDX-License-Identifier: MIT
/*
 * Messages into the mailbox of the target, and puts that a message follows: beside puts of the same
 * size while the target waits in acp_sync() and receives nothing, one at a time and WINDOW at once;
 * and messages answered by the target, whose receiver sleeps until each message comes.
 */
#include <errno.h>

#include "mode.h"

#define SAMPLES		1000
#define WARM_UP		16
#define WINDOW		256
#define BYTES_MAX	(4U << 20)	/* of a mailbox */
#define RECORD		24		/* bytes that a message takes beside its own */
#define LAST		1		/* tag of the last message */

static const struct perf_list default_sizes = { 3, { 8, 1024, 16384 } };

struct exchange {
	struct perf_run *run;
	acpx_mailbox_t own;
	acp_ga_t there;
	size_t bytes;			/* of a mailbox */
};

static acp_handle_t post(const struct exchange *x, size_t size, uint64_t tag)
{
	return acpx_send(x->there, x->run->job.area[PERF_OWN].ga, size, tag, 0, ACP_HANDLE_NULL);
}

static acp_handle_t put(const struct exchange *x, size_t size, uint64_t tag)
{
	const struct perf_job *job = &x->run->job;

	(void)tag;
	return acp_copy(job->area[PERF_TARGET].ga, job->area[PERF_OWN].ga, size, ACP_HANDLE_NULL);
}

static acp_handle_t notify(const struct exchange *x, size_t size, uint64_t tag)
{
	const struct perf_job *job = &x->run->job;

	return acpx_copy_notify(job->area[PERF_TARGET].ga, job->area[PERF_OWN].ga, size, x->there,
				tag, 0, ACP_HANDLE_NULL);
}

typedef acp_handle_t issue_t(const struct exchange *x, size_t size, uint64_t tag);

struct what {
	const char *op;
	issue_t *issue;
	bool inside;	/* its bytes are in the mailbox */
};

static const struct what kinds[] = { { "send", post, true }, { "notify", notify, false } };

static uint64_t time_some(const struct exchange *x, issue_t *issue, size_t size, uint64_t n)
{
	uint64_t begin = perf_now(), i;
	acp_handle_t handle = ACP_HANDLE_NULL;

	for (i = 0; i < n; i++)
		handle = issue(x, size, 0);
	perf_finish(handle, "message");
	return (perf_now() - begin) / n;
}

/* Return the number of messages for which an empty mailbox has room. */
static uint64_t room_for(const struct exchange *x, size_t size)
{
	return x->bytes / (RECORD + (size + 7) / 8 * 8);
}

/* Measure them beside puts, "window" at once; as many as the empty mailbox has room for. */
static void measure(const struct exchange *x, const struct what *what, size_t size,
		    uint64_t window)
{
	struct perf_row row = { .mode = "mailbox", .op = what->op, .size = size, .window = window,
				.ratio_to = "put" };
	struct perf_samples sends = { 0 }, puts = { 0 };
	struct perf_pace pace = perf_pace_start(x->run->options, SAMPLES);
	uint64_t room = room_for(x, what->inside ? size : 0);
	uint64_t used = window > WARM_UP ? window : WARM_UP;

	if (room < used + window) {
		perf_report_skip(&x->run->report, row.mode, row.op, size,
				 "the mailbox is too small: raise ACP_HEAP_SIZE");
		return;
	}
	perf_report_progress(&x->run->report, row.mode, row.op, size);
	time_some(x, put, size, used);
	time_some(x, what->issue, size, used);
	for (room -= used; room >= window && perf_pace_more(&pace, sends.n); room -= window) {
		perf_samples_add(&sends, (double)time_some(x, what->issue, size, window));
		perf_samples_add(&puts, (double)time_some(x, put, size, window));
	}
	row.time = perf_samples_close(&sends);
	row.ratio = row.time.median / perf_samples_close(&puts).median;
	perf_report_row(&x->run->report, &row);
}

/* All senders have completed their messages. */
static void empty(const struct exchange *x)
{
	struct acpx_message message;
	int error;

	while (!(error = acpx_recv_lend(x->own, &message, 0)))
		acpx_recv_return(x->own, &message);
	if (error != -ETIMEDOUT)
		perf_fatal("acpx_recv_lend failed");
}

/* A part of a measurement in which the target executes nothing. */
static void measure_alone(const struct exchange *x, const struct what *what, size_t size,
			  uint64_t window)
{
	const struct perf_job *job = &x->run->job;

	perf_sync();
	if (job->rank == 0)
		measure(x, what, size, window);
	perf_sync();
	if (job->rank == job->target)
		empty(x);
	perf_sync();
}

/* ---- answered messages ---- */

static uint64_t receive(const struct exchange *x)
{
	struct acpx_message message;

	if (acpx_recv_lend(x->own, &message, ACPX_FOREVER))
		perf_fatal("acpx_recv_lend failed");
	acpx_recv_return(x->own, &message);
	return message.tag;
}

static void answer(const struct exchange *x)
{
	acp_ga_t own = acp_query_starter_ga(x->run->job.rank) + offsetof(struct perf_board, sent);
	uint64_t tag;

	do {
		tag = receive(x);
		perf_finish(acpx_send(x->there, own, 8, tag, 0, ACP_HANDLE_NULL), "answer");
	} while (tag != LAST);
}

static uint64_t round_trip(const struct exchange *x, size_t size, uint64_t tag)
{
	uint64_t begin = perf_now();

	perf_finish(post(x, size, tag), "message");
	receive(x);
	return perf_now() - begin;
}

static void measure_answered(const struct exchange *x, size_t size)
{
	struct perf_row row = { .mode = "mailbox", .op = "round_trip", .size = size,
				.note = "answered by 8 bytes" };
	struct perf_samples samples = { 0 };
	struct perf_pace pace;
	int i;

	perf_report_progress(&x->run->report, row.mode, row.op, size);
	for (i = 0; i < WARM_UP; i++)
		round_trip(x, size, 0);
	pace = perf_pace_start(x->run->options, SAMPLES);
	while (perf_pace_more(&pace, samples.n))
		perf_samples_add(&samples, (double)round_trip(x, size, 0));
	round_trip(x, size, LAST);
	row.time = perf_samples_close(&samples);
	perf_report_row(&x->run->report, &row);
}

/* ---- the measurement ---- */

/* Rank 0 and the target create mailboxes for each other. */
static void open_mailboxes(struct exchange *x)
{
	const struct perf_job *job = &x->run->job;
	bool takes_part = job->rank == 0 || job->rank == job->target;
	int error = 0;

	x->bytes = acpx_heap_size() / 2;
	if (x->bytes > BYTES_MAX)
		x->bytes = BYTES_MAX;
	if (takes_part)
		error = acpx_mailbox_create(x->bytes, 0, &x->own);
	if (error)
		perf_fatal("no memory for a mailbox: raise ACP_HEAP_SIZE");
	job->board->mailbox = takes_part ? acpx_mailbox_ga(x->own) : ACP_GA_NULL;
	perf_sync();
	if (takes_part)
		x->there = perf_job_fetch(job, job->rank ? 0 : job->target)->mailbox;
}

void perf_mailbox(struct perf_run *run)
{
	const struct perf_list *sizes = perf_list_or(&run->options->sizes, &default_sizes);
	const struct perf_job *job = &run->job;
	struct exchange x = { .run = run };
	size_t i, k;

	if (job->procs == 1) {
		perf_report_skip(&run->report, "mailbox", "send", 8, "one rank");
		return;
	}
	open_mailboxes(&x);
	for (i = 0; i < sizes->n; i++) {
		for (k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
			measure_alone(&x, &kinds[k], sizes->value[i], 1);
			measure_alone(&x, &kinds[k], sizes->value[i], WINDOW);
		}
		if (job->rank == job->target && room_for(&x, sizes->value[i]))
			answer(&x);
		if (job->rank == 0 && room_for(&x, sizes->value[i]))
			measure_answered(&x, sizes->value[i]);
	}
	perf_sync();
	if (x.own)
		acpx_mailbox_free(x.own);
}
