// SPDX-License-Identifier: MIT
/* selftest: gate=uml */
/*
 * The provider of libfabric where something is full, missing or waiting: full completion queues,
 * endpoints without one, polling programs, messages behind one that waits, remains of buffers.
 */
#include "../dev/isolated.h"

#include <poll.h>
#include <pthread.h>

#include <rdma/fi_tagged.h>

#include "fabric_play.h"
#include "said.h"

#define CAPS	(FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV)
#define LONG	200000U

static struct play p;
static char context[4];			/* their addresses are what matters */

static void run(int count, void (*body)(void))
{
	play_prepare();
	members_run(count, 1, body);
}

static void open_with(uint64_t caps, size_t cq_size, enum fi_wait_obj wait)
{
	const struct play_wish wish = { .caps = caps, .cq_size = cq_size, .wait = wait };

	play_open(&p, &wish);
	cq = p.cq;
}

static void close_all(void)
{
	play_meet();
	play_close(&p);
}

/* ---- Completion queues ---- */

/* An endpoint that has counters only. */
static void counted(void)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr, *none;
	char name[PLAY_NAME], buffer[8];
	size_t size = sizeof(name);
	struct fid_ep *ep;
	fi_addr_t self;

	open_with(CAPS, 64, 0);
	CHECK_EQ(fi_cntr_open(p.domain, &attr, &cntr, NULL), 0);
	ep = play_endpoint(&p, NULL, 0);
	CHECK_EQ(fi_ep_bind(ep, &cntr->fid, FI_SEND | FI_RECV), 0);
	CHECK_EQ(fi_enable(ep), 0);
	CHECK_EQ(fi_getname(&ep->fid, name, &size), 0);
	CHECK_EQ(fi_av_insert(p.av, name, 1, &self, 0, NULL), 1);
	CHECK_EQ(fi_trecv(ep, buffer, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	CHECK_EQ(fi_trecv(ep, buffer, 1, NULL, FI_ADDR_UNSPEC, 2, 0, NULL), 0);
	CHECK_EQ(fi_tinject(ep, "1234567", 8, self, 1), 0);
	CHECK_EQ(fi_cntr_wait(cntr, 2, -1), 0);
	CHECK(!strcmp(buffer, "1234567"));
	CHECK_EQ(fi_tinject(ep, "1234567", 8, self, 2), 0);
	CHECK_EQ(fi_cntr_wait(cntr, 4, -1), -FI_EAVAIL);
	CHECK_EQ(fi_close(&ep->fid), 0);
	CHECK_EQ(fi_close(&cntr->fid), 0);
	attr.wait_obj = FI_WAIT_FD;
	CHECK_EQ(fi_cntr_open(p.domain, &attr, &none, NULL), -FI_ENOSYS);
	close_all();
}

TEST(messages_and_errors_are_counted_without_a_cq)
{
	run(1, counted);
}

/* The places of those that have ended become free without a look at the queue. */
static void unread(void)
{
	struct patience patience = patience_begin(PATIENCE_SOON);
	uint64_t i = 0;
	ssize_t error;

	open_with(FI_RMA, 4, 0);
	while (i < 100 && !p.rank) {
		error = fi_inject_write(p.ep, &i, 8, p.peer[1], play_at(&p, 1, 0), play_key(1));
		CHECK(!error || error == -FI_EAGAIN);
		CHECK(!patience_over(&patience));
		i += !error;
	}
	close_all();
}

TEST(injects_go_on_whether_or_not_a_program_reads_its_cq)
{
	run(2, unread);
}

static void peek(uint64_t flags, ssize_t result)
{
	const struct fi_msg_tagged m = {
		.addr = FI_ADDR_UNSPEC, .tag = 1, .context = &context[0],
	};

	CHECK_EQ(fi_trecvmsg(p.ep, &m, FI_PEEK | flags), result);
}

/* A message is not taken if the queue has no room to tell of it. */
static void full(void)
{
	struct patience patience = patience_begin(PATIENCE_SOON);

	open_with(CAPS, 1, 0);
	PLAY_RETRY(fi_tinject(p.ep, "x", 1, p.peer[0], 1));
	PLAY_RETRY(fi_tsend(p.ep, "x", 1, NULL, p.peer[0], 9, &context[1]));
	while (fi_cq_read(cq, NULL, 0))
		CHECK(!patience_over(&patience));
	peek(FI_DISCARD, -FI_EAGAIN);
	peek(FI_CLAIM, -FI_EAGAIN);
	CHECK_EQ(play_of(&context[1]).error, 0);
	peek(FI_DISCARD, 0);
	CHECK_EQ(play_of(&context[0]).error, 0);
	peek(0, 0);
	CHECK_EQ(play_of(&context[0]).error, FI_ENOMSG);
	close_all();
}

TEST(a_peek_that_is_refused_takes_no_message)
{
	run(1, full);
}

/* ---- Waiting ---- */

static struct fid_cq *other;

static void *wait_for_other(void *arg)
{
	struct fi_cq_tagged_entry e;

	(void)arg;
	CHECK_EQ(fi_cq_sread(other, &e, 1, NULL, -1), -FI_EAGAIN);
	return NULL;
}

/* One thread waits for a queue, while data wait for another thread, whose queue is full. */
static void two_queues(void)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC };
	pthread_t thread;
	uint64_t i;

	open_with(FI_RMA, 1, 0);
	for (i = 1; i <= 3 && !p.rank; i++)
		PLAY_RETRY(fi_inject_writedata(p.ep, "x", 1, i, p.peer[1], play_at(&p, 1, 0),
					       play_key(1)));
	for (i = 0; i < 3 && !p.rank; i++)
		PLAY_RETRY(fi_inject_write(p.ep, "x", 1, p.peer[1], play_at(&p, 1, 0),
					   play_key(1)));
	play_meet();
	if (p.rank) {
		CHECK_EQ(fi_cq_open(p.domain, &attr, &other, NULL), 0);
		CHECK(!pthread_create(&thread, NULL, wait_for_other, NULL));
		sleep_ms(100);
		for (i = 1; i <= 3; i++)
			CHECK_EQ(play_next().e.data, i);
		CHECK_EQ(fi_cq_signal(other), 0);
		pthread_join(thread, NULL);
		CHECK_EQ(fi_close(&other->fid), 0);
	}
	close_all();
}

TEST(a_thread_that_waits_lets_others_read_their_full_queue)
{
	run(2, two_queues);
}

/* Poll the descriptor until there is a completion. */
static struct said polled(void)
{
	struct fid *fid = &cq->fid;
	struct said s;
	int fd;

	CHECK_EQ(fi_control(fid, FI_GETWAIT, &fd), 0);
	while (!play_read(&s))
		if (!fi_trywait(p.fabric, &fid, 1))
			CHECK(patience_poll(fd, POLLIN, PATIENCE_SOON));
	return s;
}

static void poll_for(void)
{
	char buffer[8];

	open_with(CAPS | FI_RMA, 64, FI_WAIT_FD);
	if (!p.rank) {
		PLAY_RETRY(fi_tsend(p.ep, "1234567", 8, NULL, p.peer[1], 1, &context[0]));
		CHECK(polled().e.op_context == &context[0]);
		play_meet();
		sleep_ms(300);
		PLAY_RETRY(fi_inject_writedata(p.ep, "x", 1, 5, p.peer[1], play_at(&p, 1, 0),
					       play_key(1)));
	} else {
		PLAY_RETRY(fi_trecv(p.ep, buffer, 8, NULL, p.peer[0], 1, 0, &context[1]));
		CHECK(polled().e.op_context == &context[1]);
		PLAY_RETRY(fi_trecv(p.ep, buffer, 8, NULL, p.peer[0], 2, 0, &context[1]));
		play_meet();
		CHECK_EQ(polled().e.data, 5);
	}
	close_all();
}

TEST(poll_wakes_for_sends_receives_and_remote_data)
{
	play_prepare();
	members_run_over("delay 100ms", 2, 1, poll_for);
}

/* ---- Messages behind one that waits for its receive ---- */

/* The second one ends when it is received, also if it is sent from a region. */
static void behind(void)
{
	char *const out = p.memory, *const in = p.memory + PLAY_BYTES / 2;

	if (p.rank) {
		fill(out, LONG, 1);
		PLAY_RETRY(fi_tsend(p.ep, out, LONG, NULL, p.peer[0], 1, &context[0]));
		PLAY_RETRY(fi_tsend(p.ep, out, 4000, fi_mr_desc(p.mr), p.peer[0], 2, &context[1]));
		CHECK_EQ(play_of(&context[1]).error, 0);
		PLAY_RETRY(fi_tinject(p.ep, "x", 1, p.peer[0], 3));
		CHECK_EQ(play_of(&context[0]).error, 0);
		return;
	}
	PLAY_RETRY(fi_trecv(p.ep, in, 4000, NULL, p.peer[1], 2, 0, &context[2]));
	CHECK_EQ(play_of(&context[2]).error, 0);
	CHECK(filled(in, 4000, 1));
	PLAY_RETRY(fi_trecv(p.ep, in, 1, NULL, p.peer[1], 3, 0, &context[2]));
	CHECK_EQ(play_of(&context[2]).error, 0);
	PLAY_RETRY(fi_trecv(p.ep, in, LONG, NULL, p.peer[1], 1, 0, &context[2]));
	CHECK_EQ(play_of(&context[2]).error, 0);
	CHECK(filled(in, LONG, 1));
}

static void behind_body(void)
{
	open_with(CAPS, 64, 0);
	behind();
	close_all();
}

TEST(a_short_message_ends_though_a_long_one_waits_before_it)
{
	run(2, behind_body);
	play_prepare();
	members_run(2, 2, behind_body);
}

/* Long messages to several ranks are under way, and their endpoint is closed. */
static void closed(void)
{
	int r;

	open_with(CAPS, 64, 0);
	for (r = 0; r < acp_procs(); r++)
		PLAY_RETRY(fi_tsend(p.ep, p.memory, LONG, NULL, p.peer[r], 1, &context[r]));
	close_all();
}

TEST(an_endpoint_is_closed_with_messages_that_nobody_receives)
{
	run(3, closed);
}

/* What is posted behind a fence sees what was written before it. */
static void fenced(void)
{
	const size_t size = PLAY_BYTES / 2;
	char *const out = p.memory, *const in = p.memory + size;
	const struct iovec iov = { out, 8 };
	const struct fi_rma_iov remote = { play_at(&p, 1, size), 8, play_key(1) };
	const struct fi_msg_rma m = {
		.msg_iov = &iov, .iov_count = 1, .addr = p.peer[1], .rma_iov = &remote,
		.rma_iov_count = 1, .context = &context[1],
	};
	uint64_t zero = 0, last = 1, i;
	struct said s;

	fill(out, size, 1);
	PLAY_RETRY(fi_write(p.ep, out, size, fi_mr_desc(p.mr), p.peer[1], play_at(&p, 1, 0),
			    play_key(1), &context[0]));
	PLAY_RETRY(fi_writemsg(p.ep, &m, FI_FENCE));
	PLAY_RETRY(fi_read(p.ep, in, 8, fi_mr_desc(p.mr), p.peer[1], play_at(&p, 1, size - 8),
			   play_key(1), &context[2]));
	PLAY_RETRY(fi_fetch_atomic(p.ep, &zero, 1, NULL, &last, NULL, p.peer[1],
				   play_at(&p, 1, size - 16), play_key(1), FI_UINT64, FI_SUM,
				   &context[3]));
	for (i = 0; i < 4; i++) {
		s = play_next();
		CHECK_EQ(s.error, 0);
	}
	CHECK(!memcmp(in, out + size - 8, 8));
	CHECK(!memcmp(&last, out + size - 16, 8));
}

static void fenced_body(void)
{
	open_with(FI_RMA | FI_ATOMIC, 64, 0);
	if (!p.rank)
		fenced();
	close_all();
}

TEST(what_is_posted_behind_a_fence_sees_what_was_before_it)
{
	play_prepare();
	members_run_over("delay 10ms", 2, 1, fenced_body);
}

/* ---- Calls ---- */

/* What is left of the buffer is too short to be of use: it goes back. */
static void remains(void)
{
	const struct iovec iov = { .iov_base = p.memory, .iov_len = 100 };
	const struct fi_msg m = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &context[0],
	};
	const struct fi_msg pieces = { .iov_count = 2, .addr = FI_ADDR_UNSPEC };
	struct fi_msg_tagged fenced = { .addr = p.peer[0], .context = &context[1] };
	struct said s;

	PLAY_RETRY(fi_recvmsg(p.ep, &m, FI_MULTI_RECV));
	PLAY_RETRY(fi_inject(p.ep, p.memory + 200, 80, p.peer[0]));
	s = play_of(&context[0]);
	CHECK_EQ(s.error, 0);
	CHECK_EQ(s.e.flags, FI_MSG | FI_RECV | FI_MULTI_RECV);
	CHECK_EQ(fi_tsendmsg(p.ep, &fenced, FI_FENCE), -FI_EBADFLAGS);
	CHECK_EQ(fi_recvmsg(p.ep, &pieces, FI_MULTI_RECV), -FI_EINVAL);
}

static void remains_body(void)
{
	const struct play_wish wish = { .caps = CAPS, .bind = FI_SELECTIVE_COMPLETION };

	play_open(&p, &wish);
	cq = p.cq;
	remains();
	close_all();
}

TEST(a_buffer_goes_back_before_its_rest_is_too_short)
{
	run(1, remains_body);
}
