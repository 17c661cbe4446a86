// SPDX-License-Identifier: MIT
/*
 * Messages that are matched with posted receives: beside puts of the same size while the target
 * waits in acp_sync(), with and without many other receives that are older, and while the target
 * computes; what posting costs; and round trips between rank 0 and the target, each of which sleeps
 * until a message of the other one is in the buffer of its receive, which was posted before, or
 * after the message had been kept.
 */
#include "mode.h"

#define SAMPLES		1000
#define WARM_UP		16
#define ROUND		64		/* receives that are posted at a time */
#define OTHERS		1000		/* receives that match no message */
#define KEPT		16		/* messages at a time */
#define TURNS		1000		/* of a loop, between two looks at a word */
#define BYTES_MAX	(1U << 20)	/* of a message */

/* Tags of messages; receives ignore the low bits. */
#define NEXT	0
#define LAST	1
#define LOW	1ULL
#define OTHER	(1ULL << 32)

static const struct perf_list default_sizes = { 3, { 8, 1024, 16384 } };

struct exchange {
	struct perf_run *run;
	acpx_match_t own;
	acp_ga_t there, buffer;
	size_t bytes;			/* of the buffer, and for messages that are kept */
	acpx_receive_t others[OTHERS], posted[ROUND];
};

struct what {
	const char *op, *note;
	size_t others;		/* receives that the target has posted before */
	bool computes;		/* the target, until the round of rank 0 is over */
	bool kept;		/* it posts a receive when its message is there */
	int flags;		/* of acpx_send() */
};

static const struct what one_way[] = {
	{ .op = "send" },
	{ .op = "busy", .note = "the target computes", .computes = true },
	{ .op = "among", .note = "1000 other receives are older", .others = OTHERS },
	{ .op = "rendezvous", .note = "it asks for its receive first", .flags = ACPX_RENDEZVOUS },
};

static const struct what answered[] = {
	{ .op = "round_trip", .note = "answered by 8 bytes" },
	{ .op = "kept", .note = "posted when the message is there", .kept = true },
};

static bool takes_part(const struct perf_job *job)
{
	return job->rank == 0 || job->rank == job->target;
}

static acpx_receive_t post(const struct exchange *x, size_t room)
{
	acpx_receive_t receive;

	if (acpx_post(x->own, ACPX_ANY_RANK, NEXT, LOW, x->buffer, room, &receive))
		perf_fatal("acpx_post failed");
	return receive;
}

static uint64_t receive(acpx_receive_t posted)
{
	struct acpx_message message;

	if (acpx_receive_wait(posted, &message, ACPX_FOREVER) < 0)
		perf_fatal("acpx_receive_wait failed");
	return message.tag;
}

/* ---- one way ---- */

static void post_others(struct exchange *x, const struct what *what)
{
	size_t i;

	for (i = 0; i < what->others; i++)
		if (acpx_post(x->own, ACPX_ANY_RANK, OTHER + i, 0, ACP_GA_NULL, 0, &x->others[i]))
			perf_fatal("acpx_post failed");
}

static void cancel_others(const struct exchange *x, const struct what *what)
{
	size_t i;

	for (i = 0; i < what->others; i++)
		if (acpx_receive_cancel(x->others[i]))
			perf_fatal("acpx_receive_cancel failed");
}

static double time_of(const struct exchange *x, size_t size, bool put, int flags)
{
	const struct perf_job *job = &x->run->job;
	const acp_ga_t source = job->area[PERF_OWN].ga;
	uint64_t begin = perf_now();

	perf_finish(put ? acp_copy(job->area[PERF_TARGET].ga, source, size, ACP_HANDLE_NULL) :
			  acpx_send(x->there, source, size, NEXT, flags, ACP_HANDLE_NULL),
		    put ? "put" : "message");
	return (double)(perf_now() - begin);
}

static void post_round(struct exchange *x)
{
	size_t i;

	for (i = 0; i < ROUND; i++)
		x->posted[i] = post(x, x->bytes);
}

/* Without any call, until rank 0 has written a word of ours. */
static void compute(const uint64_t *word)
{
	volatile uint64_t x = 1;
	int i;

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0)
		for (i = 0; i < TURNS; i++)
			x = x * 6364136223846793005ULL + 1;
}

static void say_round_is_over(const struct perf_job *job)
{
	acp_ga_t word = acp_query_starter_ga(job->target) + offsetof(struct perf_board, word);
	acp_ga_t own = acp_query_starter_ga(job->rank) + offsetof(struct perf_board, sent);

	job->board->sent = 1;
	perf_finish(acp_copy(word, own, 8, ACP_HANDLE_NULL), "word");
}

/* The part of a round in which only rank 0 has something to say. */
static void play_round(struct exchange *x, const struct what *what, size_t size,
		       struct perf_samples *samples)
{
	const struct perf_job *job = &x->run->job;
	size_t i, put;

	for (i = 0; i < ROUND && job->rank == 0; i++)
		for (put = 0; put < 2; put++)
			perf_samples_add(&samples[put], time_of(x, size, put, what->flags));
	if (what->computes && job->rank == 0)
		say_round_is_over(job);
	if (what->computes && job->rank == job->target)
		compute(&job->board->word);
}

/* The rounds of rank 0, or of the target. @samples: of messages, and of puts. */
static void play_rounds(struct exchange *x, const struct what *what, size_t size,
			struct perf_samples *samples)
{
	const uint64_t iters = x->run->options->iters;
	const struct perf_job *job = &x->run->job;
	uint64_t rounds = ((iters ? iters : SAMPLES) + ROUND - 1) / ROUND, i;

	while (rounds--) {
		if (job->rank == job->target)
			post_round(x);
		job->board->word = 0;
		perf_sync();
		play_round(x, what, size, samples);
		perf_sync();
		for (i = 0; i < ROUND && job->rank == job->target; i++)
			receive(x->posted[i]);
	}
}

static void measure_one_way(struct exchange *x, const struct what *what, size_t size)
{
	struct perf_row row = { .mode = "tag", .op = what->op, .size = size, .window = 1,
				.note = what->note, .ratio_to = "put" };
	struct perf_samples samples[2] = { { 0 } };
	const struct perf_job *job = &x->run->job;

	if (job->rank == 0)
		perf_report_progress(&x->run->report, row.mode, row.op, size);
	if (job->rank == job->target)
		post_others(x, what);
	play_rounds(x, what, size, samples);
	if (job->rank == job->target)
		cancel_others(x, what);
	if (job->rank)
		return;
	row.time = perf_samples_close(&samples[0]);
	row.ratio = row.time.median / perf_samples_close(&samples[1]).median;
	perf_report_row(&x->run->report, &row);
}

/* What a receive costs the process that posts it. */
static void measure_post(struct exchange *x)
{
	struct perf_row row = { .mode = "tag", .op = "post", .note = "a system call" };
	struct perf_samples samples = { 0 };
	struct perf_pace pace = perf_pace_start(x->run->options, SAMPLES);
	uint64_t begin;
	int i;

	while (perf_pace_more(&pace, samples.n)) {
		begin = perf_now();
		post_round(x);
		perf_samples_add(&samples, (double)((perf_now() - begin) / ROUND));
		for (i = 0; i < ROUND; i++)
			if (acpx_receive_cancel(x->posted[i]))
				perf_fatal("acpx_receive_cancel failed");
	}
	row.time = perf_samples_close(&samples);
	perf_report_row(&x->run->report, &row);
}

/* ---- answered messages: the target ---- */

static void await_kept(const struct exchange *x)
{
	if (acpx_match_probe(x->own, ACPX_ANY_RANK, NEXT, LOW, NULL, ACPX_FOREVER))
		perf_fatal("acpx_match_probe failed");
}

/* @posted: the first receive; the next one is posted before its message can come. */
static void answer(const struct exchange *x, const struct what *what, acpx_receive_t posted)
{
	acp_ga_t own = acp_query_starter_ga(x->run->job.rank) + offsetof(struct perf_board, sent);
	uint64_t tag;

	do {
		if (what->kept) {
			await_kept(x);
			posted = post(x, x->bytes);
		}
		tag = receive(posted);
		if (!what->kept && tag != LAST)
			posted = post(x, x->bytes);
		perf_finish(acpx_send(x->there, own, 8, tag, 0, ACP_HANDLE_NULL), "answer");
	} while (tag != LAST);
}

/* ---- answered messages: rank 0 ---- */

static uint64_t round_trip(const struct exchange *x, size_t size, uint64_t tag)
{
	acp_ga_t source = x->run->job.area[PERF_OWN].ga;
	acpx_receive_t posted = post(x, 8);
	uint64_t begin = perf_now();

	perf_finish(acpx_send(x->there, source, size, tag, 0, ACP_HANDLE_NULL), "message");
	receive(posted);
	return perf_now() - begin;
}

static void measure(const struct exchange *x, const struct what *what, size_t size)
{
	struct perf_row row = { .mode = "tag", .op = what->op, .size = size, .note = what->note };
	struct perf_samples samples = { 0 };
	struct perf_pace pace;
	int i;

	perf_report_progress(&x->run->report, row.mode, row.op, size);
	for (i = 0; i < WARM_UP; i++)
		round_trip(x, size, NEXT);
	pace = perf_pace_start(x->run->options, SAMPLES);
	while (perf_pace_more(&pace, samples.n))
		perf_samples_add(&samples, (double)round_trip(x, size, NEXT));
	round_trip(x, size, LAST);
	row.time = perf_samples_close(&samples);
	perf_report_row(&x->run->report, &row);
}

/* ---- the measurement ---- */

static void measure_all(struct exchange *x, const struct what *what, size_t size)
{
	const struct perf_job *job = &x->run->job;
	acpx_receive_t posted = NULL;

	if (size > x->bytes) {
		if (job->rank == 0)
			perf_report_skip(&x->run->report, "tag", what->op, size,
					 "longer than 1M, or than a quarter of ACP_HEAP_SIZE");
		return;
	}
	if (job->rank == job->target)
		posted = what->kept ? NULL : post(x, x->bytes);
	perf_sync();
	if (job->rank == job->target)
		answer(x, what, posted);
	if (job->rank == 0)
		measure(x, what, size);
}

static void measure_size(struct exchange *x, size_t size)
{
	size_t k;

	for (k = 0; k < sizeof(one_way) / sizeof(one_way[0]); k++)
		if (size <= x->bytes)
			measure_one_way(x, &one_way[k], size);
	for (k = 0; k < sizeof(answered) / sizeof(answered[0]); k++)
		measure_all(x, &answered[k], size);
}

/* Rank 0 and the target create match lists for each other. */
static void open_lists(struct exchange *x)
{
	const struct perf_job *job = &x->run->job;
	struct acpx_match_limits limits = {
		.receives = OTHERS + ROUND + 2, .messages = KEPT, .masks = 2, .mask = { 0, LOW },
	};

	x->bytes = acpx_heap_size() / 4;
	if (x->bytes > BYTES_MAX)
		x->bytes = BYTES_MAX;
	limits.bytes = x->bytes;
	job->board->mailbox = ACP_GA_NULL;
	if (takes_part(job)) {
		x->buffer = acp_malloc(x->bytes, job->rank);
		if (x->buffer == ACP_GA_NULL || acpx_match_create(&limits, &x->own))
			perf_fatal("no memory for a match list: raise ACP_HEAP_SIZE");
		job->board->mailbox = acpx_match_ga(x->own);
	}
	perf_sync();
	if (takes_part(job))
		x->there = perf_job_fetch(job, job->rank ? 0 : job->target)->mailbox;
}

void perf_tag(struct perf_run *run)
{
	const struct perf_list *sizes = perf_list_or(&run->options->sizes, &default_sizes);
	struct exchange x = { .run = run };
	size_t i;

	if (run->job.procs == 1) {
		perf_report_skip(&run->report, "tag", "round_trip", 8, "one rank");
		return;
	}
	open_lists(&x);
	if (run->job.rank == 0)
		measure_post(&x);
	for (i = 0; i < sizes->n; i++)
		measure_size(&x, sizes->value[i]);
	perf_sync();
	if (!takes_part(&run->job))
		return;
	acpx_match_free(x.own);
	acp_free(x.buffer);
}
