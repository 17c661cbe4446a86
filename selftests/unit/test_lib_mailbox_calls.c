// SPDX-License-Identifier: MIT
/* The functions of mailboxes: arguments, receiving, waiting, the end of the job. */
#define _GNU_SOURCE
#include "mailbox_calls.h"

/* ---- Arguments ---- */

TEST(mailbox__before_init)
{
	struct acpx_message m = { .data = &m };
	acpx_mailbox_t box = NULL;

	CHECK(acpx_mailbox_create(100, 0, &box) == -ENOTCONN && !box);
	CHECK(acpx_send(64, 64, 8, 1, 0, NONE) == NONE);
	CHECK(acpx_mailbox_ga(NULL) == ACP_GA_NULL && acpx_mailbox_free(NULL) == -EINVAL);
	CHECK(acpx_recv(NULL, &m, 8, &m, 0) == -EINVAL && acpx_peek(NULL, &m, 8, &m, 0) == -EINVAL);
	CHECK(acpx_probe(NULL, &m, 0) == -EINVAL && acpx_recv_lend(NULL, &m, 0) == -EINVAL);
	CHECK(acpx_recv_return(NULL, &m) == -EINVAL);
}

TEST(mailbox__arguments)
{
	acpx_mailbox_t box = NULL;

	CHECK(join() == 0);
	CHECK_EQ(acpx_mailbox_create(100, 1, &box), -EINVAL);
	CHECK_EQ(acpx_mailbox_create(100, 0, NULL), -EINVAL);
	CHECK_EQ(acpx_mailbox_create(0, 0, &box), -EINVAL);
	CHECK_EQ(acpx_mailbox_create(23, 0, &box), -EINVAL);
	CHECK_EQ(acpx_mailbox_create(8ull * UINT32_MAX + 1, 0, &box), -EINVAL);
	CHECK_EQ(acpx_mailbox_create(SIZE_MAX, 0, &box), -EINVAL);
	CHECK_EQ(acpx_mailbox_create(8ull * UINT32_MAX, 0, &box), -ENOMEM);
	CHECK(!box);
	CHECK_EQ(acpx_mailbox_create(25, 0, &box), 0);
	CHECK(acp_query_rank(acpx_mailbox_ga(box)) == 0 && acpx_mailbox_ga(box) % 64 == 0);
	CHECK_EQ(memory_of(box)->units, 4);
	CHECK_EQ(memory_of(box)->room, ACP_MAILBOX_ROOM(0, 4));
	CHECK_EQ(acpx_recv(box, NULL, 8, NULL, 0), -EINVAL);
	CHECK_EQ(acpx_peek(box, NULL, 8, NULL, 0), -EINVAL);
	CHECK_EQ(acpx_recv_lend(box, NULL, 0), -EINVAL);
	CHECK_EQ(acpx_recv_return(box, NULL), -EINVAL);
	end(box);
}

TEST(mailbox__returns_its_memory)
{
	struct acpx_heap_stats before, after;
	acpx_mailbox_t box;

	CHECK(join() == 0);
	CHECK_EQ(acpx_heap_stats(0, &before), 0);
	CHECK_EQ(acpx_mailbox_create(4000, 0, &box), 0);
	CHECK_EQ(acpx_heap_stats(0, &after), 0);
	CHECK(after.used >= before.used + 4064);
	CHECK_EQ(send(box, 0, 100, 1), 0);
	CHECK_EQ(acpx_mailbox_free(box), 0);
	CHECK_EQ(acpx_heap_stats(0, &after), 0);
	CHECK(after.used == before.used && after.blocks == before.blocks);
	CHECK_EQ(acp_finalize(), 0);
}

/* The kernel checks everything in the entry. */
TEST(send__A4_as_the_kernel_sees_it)
{
	static const struct {
		int wish;
		uint8_t op, flags;
	} cases[] = {
		{ 0, ACP_OP_SEND, 0 }, { ACPX_RETRY, ACP_OP_SEND, ACP_SQE_RETRY },
		{ ACPX_RENDEZVOUS, ACP_OP_SEND, ACP_SQE_RENDEZVOUS },
		{ ACPX_RENDEZVOUS | ACPX_RETRY, ACP_OP_SEND, ACP_SQE_RENDEZVOUS | ACP_SQE_RETRY },
		{ ACPX_ADVANCE, 0, 0 }, { 8, 0, 0 },
		{ -1, 0, ACP_SQE_RETRY | ACP_SQE_RENDEZVOUS },
	};
	const struct acp_sqe *e;
	acp_handle_t handle;
	size_t i;

	CHECK(join() == 0);
	fake_set_hold(true);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		handle = acpx_send(64, 0, 0, 1ull << 63, cases[i].wish, NONE);
		e = (struct acp_sqe *)(fake.sq + 1) + ((handle >> 1) & (DEPTH - 1));
		CHECK(e->op == cases[i].op && e->flags == cases[i].flags);
		CHECK(e->dst == 64 && !e->src && !e->size && !e->a && e->b == 1ull << 63);
	}
	fake_set_hold(false);
	acp_complete(ACP_HANDLE_ALL);
	CHECK_EQ(acp_finalize(), 0);
}

/* A copy, and behind it the message, which fails if the copy does. */
TEST(notify__A4_as_the_kernel_sees_it)
{
	static const struct {
		int wish;
		uint8_t op, flags;
	} cases[] = {
		{ 0, ACP_OP_SEND, ACP_SQE_CONT }, { 8, 0, ACP_SQE_CONT },
		{ ACPX_RENDEZVOUS, 0, ACP_SQE_RENDEZVOUS | ACP_SQE_CONT },
		{ ACPX_RETRY, ACP_OP_SEND, ACP_SQE_RETRY | ACP_SQE_CONT },
	};
	const struct acp_sqe *entries, *copy, *message;
	acp_handle_t handle;
	size_t i;

	CHECK(join() == 0);
	entries = (const struct acp_sqe *)(fake.sq + 1);
	fake_set_hold(true);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		handle = acpx_copy_notify(8, 16, 100, 64, 1ull << 63, cases[i].wish, NONE);
		message = &entries[(handle >> 1) & (DEPTH - 1)];
		copy = &entries[((handle >> 1) - 1) & (DEPTH - 1)];
		CHECK_EQ(copy->op, cases[i].op && ACP_OP_COPY == 1);
		CHECK_EQ(copy->flags, ACP_SQE_MORE);
		CHECK(copy->dst == 8 && copy->src == 16 && copy->size == 100);
		CHECK(!copy->a && !copy->b && !copy->order);
		CHECK(message->op == cases[i].op);
		CHECK((message->flags | ACP_SQE_CONT) == cases[i].flags);
		CHECK(message->dst == 64 && !message->size && message->b == 1ull << 63);
		CHECK(!message->a && message->order == (uint64_t)(handle >> 1) - 1);
	}
	fake_set_hold(false);
	acp_complete(ACP_HANDLE_ALL);
	CHECK_EQ(acp_finalize(), 0);
}

static int notify(acpx_mailbox_t box, acp_ga_t dst, size_t size, uint64_t tag)
{
	acp_handle_t handle = acpx_copy_notify(dst, acp_query_starter_ga(0), size,
					       acpx_mailbox_ga(box), tag, 0, NONE);

	acp_complete(handle);
	return acpx_status(handle);
}

TEST(notify__comes_after_the_data_or_not_at_all)
{
	acpx_mailbox_t box = start(4096);
	struct acpx_message m;

	strcpy(starter(), "data");
	CHECK_EQ(notify(box, acp_query_starter_ga(0) + 64, 5, 7), 0);
	CHECK_EQ(acpx_recv(box, NULL, 0, &m, 0), 0);
	CHECK(is(&m, 0, 7) && !strcmp(starter() + 64, "data"));
	CHECK_EQ(notify(box, acp_query_starter_ga(0), 0, 8), 0);
	CHECK_EQ(acpx_recv(box, NULL, 0, &m, 0), 0);
	CHECK(is(&m, 0, 8));
	CHECK(notify(box, acp_query_starter_ga(0) + (1ull << 30), 5, 9) != 0);
	CHECK_EQ(acpx_recv(box, NULL, 0, &m, 0), -ETIMEDOUT);
	end(box);
}

/* ---- Receiving ---- */

TEST(recv__in_every_way)
{
	acpx_mailbox_t box = start(4096);
	struct acpx_message m = { 0 };
	char buffer[16] = "";

	strcpy(starter(), "one message");
	CHECK_EQ(acpx_recv(box, buffer, 16, &m, 0), -ETIMEDOUT);
	CHECK_EQ(acpx_probe(box, NULL, 0), -ETIMEDOUT);
	CHECK_EQ(acpx_peek(box, buffer, 16, NULL, MS), -ETIMEDOUT);
	CHECK_EQ(acpx_recv_lend(box, &m, MS), -ETIMEDOUT);
	CHECK_EQ(send(box, 0, 12, 7), 0);
	CHECK_EQ(send(box, 4, 8, 8), 0);
	CHECK_EQ(send(box, 0, 0, UINT64_MAX), 0);
	CHECK_EQ(acpx_probe(box, NULL, ACPX_FOREVER), 0);
	CHECK_EQ(acpx_probe(box, &m, 0), 0);
	CHECK(is(&m, 12, 7) && !strcmp(m.data, "one message"));
	CHECK_EQ(acpx_peek(box, buffer, 3, &m, 0), 12);
	CHECK(is(&m, 12, 7) && !strcmp(buffer, "one"));
	m = (struct acpx_message){ 0 };
	CHECK_EQ(acpx_recv(box, buffer, 11, &m, 0), -EMSGSIZE);
	CHECK(is(&m, 12, 7) && !strcmp(buffer, "one"));
	CHECK_EQ(acpx_recv(box, buffer, 12, &m, 0), 12);
	CHECK(is(&m, 12, 7) && m.data == buffer && !strcmp(buffer, "one message"));
	CHECK_EQ(acpx_recv(box, buffer, 16, NULL, 0), 8);
	CHECK(!strcmp(buffer, "message"));
	CHECK_EQ(acpx_peek(box, NULL, 0, NULL, 0), 0);
	CHECK_EQ(acpx_recv(box, NULL, 0, &m, 0), 0);
	CHECK(is(&m, 0, UINT64_MAX));
	CHECK_EQ(acpx_recv(box, NULL, 0, &m, 0), -ETIMEDOUT);
	end(box);
}

TEST(recv__lends)
{
	acpx_mailbox_t box = start(4096);
	struct acpx_message m[3], other;
	char buffer[8];
	int i;

	for (i = 0; i < 4; i++) {
		starter()[0] = (char)i;
		CHECK_EQ(send(box, 0, 1, (uint64_t)i), 0);
	}
	for (i = 0; i < 3; i++)
		CHECK_EQ(acpx_recv_lend(box, &m[i], 0), 0);
	CHECK_EQ(acpx_recv(box, buffer, 8, NULL, 0), 1);
	CHECK(buffer[0] == 3);
	CHECK_EQ(acpx_mailbox_free(box), -EBUSY);
	for (i = 2; i >= 0; i--) {
		CHECK(is(&m[i], 1, (uint64_t)i) && *(const char *)m[i].data == i);
		CHECK_EQ(acpx_recv_return(box, &m[i]), 0);
		CHECK_EQ(acpx_recv_return(box, &m[i]), -EINVAL);
	}
	CHECK_EQ(send(box, 0, 1, 4), 0);
	CHECK_EQ(acpx_probe(box, &other, 0), 0);
	CHECK_EQ(acpx_recv_return(box, &other), -EINVAL);
	end(box);
}

/* A message that the mailbox has room for only if it is empty, and is copied without the lock. */
TEST(recv__a_message_as_large_as_the_mailbox)
{
	acpx_mailbox_t box = start(24 + 20000);
	static char buffer[20000];
	uint64_t timeout_ns;
	int i;

	CHECK_EQ(send_by_kernel(box, 0, 20001, 0), ACPX_ERANGE);
	for (i = 0; i < 10; i++) {
		memset(starter(), 'a' + i, 20000);
		CHECK_EQ(send_by_kernel(box, 0, 20000, (uint64_t)i), 0);
		CHECK_EQ(send_by_kernel(box, 0, 0, 0), ACPX_EAGAIN);
		CHECK_EQ(acpx_recv(box, buffer, 20000, NULL, 0), 20000);
		CHECK(!memcmp(buffer, starter(), 20000));
	}
	for (timeout_ns = 0; timeout_ns < 2; timeout_ns++) {
		CHECK_EQ(send_by_kernel(box, 0, 1, 0), 0);
		CHECK_EQ(acpx_recv(box, buffer, 1, NULL, 0), 1);
		CHECK_EQ(send_by_kernel(box, 0, 20000, 0), ACPX_EAGAIN);
		CHECK_EQ(acpx_recv(box, buffer, 1, NULL, timeout_ns), -ETIMEDOUT);
		CHECK_EQ(send_by_kernel(box, 0, 20000, 0), 0);
		CHECK_EQ(acpx_recv(box, buffer, 20000, NULL, 0), 20000);
	}
	end(box);
}

/* ---- Waiting ---- */

struct receiver {
	pthread_t thread;
	acpx_mailbox_t box;
	bool lends;
	int64_t result;
	unsigned int received;
	uint64_t sum;		/* of tags */
};

/* Receive until an error, or a message with tag 0. */
static void *receive(void *arg)
{
	struct receiver *r = arg;
	struct acpx_message m;
	char buffer[5000];

	for (;;) {
		r->result = r->lends ? acpx_recv_lend(r->box, &m, ACPX_FOREVER) :
				       acpx_recv(r->box, buffer, sizeof(buffer), &m, ACPX_FOREVER);
		if (r->result >= 0 && r->lends)
			CHECK_EQ(acpx_recv_return(r->box, &m), 0);
		if (r->result < 0 || !m.tag)
			return NULL;
		r->received++;
		r->sum += m.tag;
	}
}

/* Start a receiver; on return it sleeps, or is about to. */
static void receiver_start(struct receiver *r, acpx_mailbox_t box, bool lends)
{
	*r = (struct receiver){ .box = box, .lends = lends };
	fake_start_sleeper(&r->thread, receive, r);
}

static int64_t receiver_end(struct receiver *r)
{
	CHECK(pthread_join(r->thread, NULL) == 0);
	return r->result;
}

TEST(wait__is_woken)
{
	acpx_mailbox_t box = start(4096);
	struct receiver r;

	fake.deaf = true;
	receiver_start(&r, box, false);
	CHECK_EQ(send(box, 0, 8, 5), 0);
	CHECK_EQ(send(box, 0, 8, 0), 0);
	CHECK_EQ(receiver_end(&r), 8);
	CHECK_EQ(r.sum, 5);
	CHECK(libacp.watch->armed == 0);
	end(box);
}

/* Several threads receive; the record that one of them waits for is received by another one. */
static void share(unsigned int threads, unsigned int messages, size_t bytes)
{
	acpx_mailbox_t box = start(bytes);
	struct receiver r[4];
	unsigned int i, received = 0, status, seed = 1;
	uint64_t sum = 0;

	fake.deaf = true;
	for (i = 0; i < threads; i++)
		receiver_start(&r[i], box, i % 2);
	for (i = 1; i <= messages; i++) {
		do {
			status = (unsigned int)send(box, 0, rand_r(&seed) % 64 ? i % 64 : 4500, i);
			CHECK(!status || status == ACPX_EAGAIN);
		} while (status);
	}
	for (i = 0; i < threads; i++)
		while (send(box, 0, 0, 0))
			;
	for (i = 0; i < threads; i++) {
		CHECK(receiver_end(&r[i]) >= 0);
		received += r[i].received;
		sum += r[i].sum;
	}
	CHECK_EQ(received, messages);
	CHECK_EQ(sum, (uint64_t)messages * (messages + 1) / 2);
	CHECK_EQ(acpx_recv(box, NULL, 0, NULL, 0), -ETIMEDOUT);
	CHECK_EQ(memory_of(box)->room, ACP_MAILBOX_ROOM(0, bytes / 8));
	for (i = 0; i < ACP_WATCH_LINES; i++)
		CHECK(libacp.watch->lines[i] == 0);
	end(box);
}

TEST(wait__A4_of_two_threads)
{
	share(2, 1500, 4800);
}

TEST(wait__A4_of_four_threads)
{
	share(4, 1500, 16000);
}

/* With all messages lent, there may be no place for another one: then room is waited for. */
TEST(wait__until_a_lent_message_is_returned)
{
	acpx_mailbox_t box = start(24);
	struct acpx_message m;
	struct receiver r;

	fake.deaf = true;
	CHECK_EQ(send(box, 0, 0, 1), 0);
	CHECK_EQ(acpx_recv_lend(box, &m, 0), 0);
	CHECK_EQ(send(box, 0, 0, 2), ACPX_EAGAIN);	/* a failure wakes */
	receiver_start(&r, box, false);
	CHECK_EQ(acpx_mailbox_free(box), -EBUSY);
	CHECK_EQ(acpx_recv_return(box, &m), 0);
	CHECK_EQ(send(box, 0, 0, 0), 0);
	CHECK_EQ(receiver_end(&r), 0);
	end(box);
}

/* Threads that sleep have no chance to offer what is returned meanwhile. */
TEST(wait__A4_everything_returned_is_offered)
{
	acpx_mailbox_t box = start(1024);
	struct acpx_message m;
	struct receiver r;

	fake.deaf = true;
	CHECK_EQ(send(box, 0, 0, 1), 0);
	CHECK_EQ(acpx_recv_lend(box, &m, 0), 0);
	CHECK_EQ(send(box, 0, 1000, 2), ACPX_EAGAIN);
	receiver_start(&r, box, false);
	CHECK_EQ(acpx_recv_return(box, &m), 0);
	CHECK_EQ(send(box, 0, 1000, 2), 0);
	while (send(box, 0, 0, 0))
		;
	CHECK_EQ(receiver_end(&r), 0);
	CHECK_EQ(r.sum, 2);
	end(box);
}

/* ---- poll() ---- */

static unsigned int lines(void)
{
	unsigned int sum = 0;
	int i;

	for (i = 0; i < ACP_WATCH_LINES; i++)
		sum += libacp.watch->lines[i];
	return sum;
}

TEST(arm__reports_messages)
{
	acpx_mailbox_t box[2], none = NULL;
	int i;

	CHECK_EQ(acpx_mailbox_arm(NULL, 0), -ENOTCONN);
	box[0] = start(4096);
	CHECK_EQ(acpx_mailbox_create(4096, 0, &box[1]), 0);
	CHECK_EQ(acpx_mailbox_arm(NULL, 1), -EINVAL);
	CHECK_EQ(acpx_mailbox_arm(&none, 1), -EINVAL);
	for (i = 0; i < 2; i++) {
		CHECK_EQ(acpx_mailbox_arm(box, 2), 0);
		CHECK(!fake_readable() && lines() == 2);
		CHECK_EQ(send(box[i], 0, 8, 1), 0);
		CHECK(fake_readable());
		CHECK_EQ(acpx_mailbox_arm(box, 2), 1);
		CHECK_EQ(lines(), 0);
		CHECK_EQ(acpx_recv(box[i], starter(), 8, NULL, 0), 8);
	}
	/* One that is armed no longer reports nothing. */
	CHECK_EQ(acpx_mailbox_arm(box, 2), 0);
	CHECK_EQ(acpx_mailbox_arm(NULL, 0), 0);
	CHECK_EQ(lines(), 0);
	CHECK_EQ(send(box[0], 0, 8, 1), 0);
	CHECK(!fake_readable());
	CHECK_EQ(acpx_recv(box[0], starter(), 8, NULL, 0), 8);
	CHECK_EQ(acpx_mailbox_free(box[1]), 0);
	end(box[0]);
}

/* The record that is armed is received by somebody else: there may be another one behind it. */
TEST(arm__A4_looks_again_when_others_receive)
{
	acpx_mailbox_t box = start(4096);

	CHECK_EQ(acpx_mailbox_arm(&box, 1), 0);
	CHECK_EQ(send(box, 0, 8, 1), 0);
	CHECK_EQ(acpx_mailbox_arm(&box, 1), 1);
	CHECK_EQ(acpx_recv(box, starter(), 8, NULL, 0), 8);
	CHECK_EQ(acpx_mailbox_arm(&box, 1), 0);
	CHECK_EQ(send(box, 0, 8, 1), 0);
	CHECK_EQ(acpx_recv(box, starter(), 8, NULL, 0), 8);
	CHECK(fake_readable());
	end(box);
}

/* A process in poll() has no chance to offer what is returned meanwhile. */
TEST(arm__A4_everything_returned_is_offered)
{
	acpx_mailbox_t box = start(1024);
	struct acpx_message m;

	CHECK_EQ(send(box, 0, 1, 1), 0);
	CHECK_EQ(acpx_recv_lend(box, &m, 0), 0);
	CHECK_EQ(send(box, 0, 1000, 2), ACPX_EAGAIN);
	CHECK_EQ(acpx_mailbox_arm(&box, 1), 0);
	CHECK_EQ(acpx_recv_return(box, &m), 0);
	CHECK_EQ(send(box, 0, 1000, 2), 0);
	CHECK(fake_readable());
	CHECK_EQ(acpx_recv(box, starter(), 1000, NULL, 0), 1000);
	end(box);
}

TEST(arm__fails_when_the_job_is_aborted)
{
	acpx_mailbox_t box = start(4096);

	CHECK_EQ(acpx_mailbox_arm(&box, 1), 0);
	fake_abort();
	CHECK_EQ(acpx_mailbox_arm(&box, 1), -ECANCELED);
	CHECK_EQ(acpx_mailbox_free(box), 0);
	CHECK(acp_finalize() == -1);
}

/* ---- the end of the job ---- */

TEST(wait__ends_when_the_job_is_aborted)
{
	acpx_mailbox_t box = start(4096);
	struct receiver r;

	fake.deaf = true;
	receiver_start(&r, box, false);
	fake_abort();
	CHECK_EQ(receiver_end(&r), -ECANCELED);
	CHECK_EQ(acpx_recv(box, NULL, 0, NULL, ACPX_FOREVER), -ECANCELED);
	CHECK_EQ(acpx_mailbox_free(box), 0);
	CHECK(acp_finalize() == -1);
}

TEST(wait__ends_when_the_rank_leaves)
{
	acpx_mailbox_t box = start(4096), other;
	struct acpx_message m;
	struct receiver r[2];
	int i;

	fake.deaf = true;
	CHECK_EQ(send(box, 0, 0, 1), 0);
	CHECK_EQ(acpx_recv_lend(box, &m, 0), 0);
	for (i = 0; i < 2; i++)
		receiver_start(&r[i], box, i);
	CHECK_EQ(acp_finalize(), 0);
	for (i = 0; i < 2; i++)
		CHECK_EQ(receiver_end(&r[i]), -ENOTCONN);
	CHECK_EQ(acpx_recv(box, NULL, 0, NULL, 0), -ENOTCONN);
	/* Its memory belongs to another job now. */
	CHECK_EQ(join(), 0);
	CHECK_EQ(acpx_mailbox_create(4096, 0, &other), 0);
	CHECK_EQ(acpx_probe(box, NULL, 0), -ENOTCONN);
	CHECK_EQ(acpx_recv_return(box, &m), -ENOTCONN);
	CHECK_EQ(acpx_mailbox_free(box), 0);
	end(other);
}

TEST(fork__child_has_no_mailbox)
{
	acpx_mailbox_t box = start(4096);
	int status;
	pid_t pid;

	CHECK_EQ(send(box, 0, 0, 1), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		CHECK_EQ(acpx_recv(box, NULL, 0, NULL, 0), -ENOTCONN);
		CHECK_EQ(acpx_mailbox_free(box), 0);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK_EQ(acpx_recv(box, NULL, 0, NULL, 0), 0);
	end(box);
}

/* ---- Messages that take their time ---- */

static struct acp_record *reserve(acpx_mailbox_t box, size_t size)
{
	struct acp_record *r;

	CHECK_EQ(play_reserve(memory_of(box), size, &r), 0);
	return r;
}

/* Set the state of a record, as the kernel does. */
static void set_state(acpx_mailbox_t box, struct acp_record *r, size_t size, unsigned int state)
{
	const size_t at = (size_t)((char *)r - (char *)memory_of(box));

	play_describe(r, 3, 9);
	play_state(r, size, state);
	pthread_mutex_lock(&fake.lock);
	fake_written(acpx_mailbox_ga(box) + at, 8);
	pthread_mutex_unlock(&fake.lock);
}

TEST(wait__A4_behind_messages_that_arrive_or_fail)
{
	acpx_mailbox_t box = start(4096);
	struct acp_record *first, *second;
	struct acpx_message m;
	struct receiver r;

	fake.deaf = true;
	first = reserve(box, 100);
	second = reserve(box, 200);
	CHECK_EQ(send(box, 0, 0, 0), 0);
	CHECK_EQ(acpx_probe(box, &m, 0), -ETIMEDOUT);
	set_state(box, second, 200, ACP_RECORD_READY);
	set_state(box, first, 100, ACP_RECORD_ARRIVING);
	CHECK_EQ(acpx_probe(box, &m, 0), -ETIMEDOUT);
	receiver_start(&r, box, false);
	set_state(box, first, 100, ACP_RECORD_VOID);
	CHECK_EQ(receiver_end(&r), 0);
	CHECK(r.received == 1 && r.sum == 9);
	end(box);
}

struct late {
	acpx_mailbox_t box;
	struct acp_record *record;
	unsigned int watches;
	unsigned int state;
};

/* Complete a message as soon as a thread sleeps. */
static void *complete_late(void *arg)
{
	const struct late *l = arg;

	fake_await_watch(l->watches);
	set_state(l->box, l->record, 64, l->state);
	return NULL;
}

TEST(free__A4_waits_for_messages_that_arrive)
{
	static const unsigned int states[] = { ACP_RECORD_READY, ACP_RECORD_VOID };
	struct late l;
	pthread_t thread;
	size_t i;

	CHECK(join() == 0);
	fake.deaf = true;
	for (i = 0; i < 2; i++) {
		CHECK_EQ(acpx_mailbox_create(4096, 0, &l.box), 0);
		CHECK_EQ(send(l.box, 0, 8, 1), 0);
		l.record = reserve(l.box, 64);
		set_state(l.box, l.record, 64, ACP_RECORD_ARRIVING);
		CHECK_EQ(send(l.box, 0, 8, 2), 0);
		l.state = states[i];
		l.watches = fake_watches();
		CHECK(pthread_create(&thread, NULL, complete_late, &l) == 0);
		CHECK_EQ(acpx_mailbox_free(l.box), 0);
		CHECK(pthread_join(thread, NULL) == 0);
	}
	CHECK_EQ(acp_finalize(), 0);
}

/* It is not freed as long as something may be written to it. */
TEST(free__A4_does_not_wait_for_ever)
{
	struct acpx_heap_stats before, after;
	struct acp_record *r;
	acpx_mailbox_t box;

	setenv("ACP_TIMEOUT", "10", 1);
	box = start(4096);
	CHECK_EQ(acpx_heap_stats(0, &before), 0);
	r = reserve(box, 64);
	CHECK_EQ(acpx_mailbox_free(box), -EBUSY);
	set_state(box, r, 64, ACP_RECORD_ARRIVING);
	CHECK_EQ(acpx_mailbox_free(box), -EBUSY);
	CHECK_EQ(send(box, 0, 8, 1), ACPX_EAGAIN);
	CHECK_EQ(acpx_heap_stats(0, &after), 0);
	CHECK(after.used == before.used);
	set_state(box, r, 64, ACP_RECORD_READY);
	CHECK_EQ(acpx_mailbox_free(box), 0);
	CHECK_EQ(acpx_heap_stats(0, &after), 0);
	CHECK(after.used < before.used);
	CHECK_EQ(acp_finalize(), 0);
}

/* Other ranks have written to the mailbox: its memory is not used again. */
TEST(recv__A4_from_a_damaged_mailbox)
{
	acpx_mailbox_t box = start(4096);
	struct acpx_heap_stats before, after;
	struct acpx_message m;
	char buffer[8];

	CHECK_EQ(send_by_kernel(box, 0, 8, 1), 0);
	CHECK_EQ(send_by_kernel(box, 0, 8, 2), 0);
	CHECK_EQ(acpx_recv_lend(box, &m, 0), 0);
	CHECK_EQ(acpx_heap_stats(0, &before), 0);
	*play_unit(memory_of(box), 4) = UINT64_MAX;
	CHECK_EQ(acpx_recv(box, buffer, 8, NULL, 0), -EBADMSG);
	CHECK_EQ(acpx_peek(box, buffer, 8, NULL, ACPX_FOREVER), -EBADMSG);
	CHECK_EQ(acpx_probe(box, NULL, ACPX_FOREVER), -EBADMSG);
	CHECK_EQ(acpx_mailbox_free(box), -EBUSY);
	CHECK_EQ(acpx_recv_return(box, &m), 0);
	CHECK_EQ(acpx_mailbox_free(box), -EBADMSG);
	CHECK_EQ(acpx_heap_stats(0, &after), 0);
	CHECK(after.used == before.used);
	CHECK_EQ(acp_finalize(), 0);
}

TEST_MAIN
