// SPDX-License-Identifier: MIT
/*
 * The functions of match lists, with a fake device whose matching is played. This is rank 0 of two
 * ranks of a node; messages of both are played. If the device is "deaf", only a wake-up ends a
 * sleep: a lost one hangs.
 */
#define _GNU_SOURCE
#include <sys/wait.h>

#include "acp.h"
#include "acp_abi.h"
#include "core/internal.h"
#include "core/process.h"
#include "test.h"
#include "test_lib_device.h"
#include "match_play.h"

#define MS	1000000ULL	/* ns */
#define LOW	0xffULL		/* mask of tags */

static const struct acpx_match_limits limits = {
	.bytes = 4096, .receives = 8, .messages = 8, .masks = 3, .mask = { 0, LOW, UINT64_MAX },
};

static int join(void)
{
	setenv("ACP_RANK", "0", 1);
	setenv("ACP_NPROCS", "2", 1);
	setenv("ACP_STARTER_SIZE", "65536", 1);
	setenv("ACP_INSECURE", "1", 1);
	acpx_set_error_mode(ACPX_ERRORS_RETURN);
	play_start();
	test_limit(PATIENCE_WORK);
	return acp_init(NULL, NULL);
}

/* Join, and create a list. */
static acpx_match_t start(void)
{
	acpx_match_t match;

	CHECK(join() == 0);
	CHECK_EQ(acpx_match_create(&limits, &match), 0);
	return match;
}

static void end(acpx_match_t match)
{
	CHECK_EQ(acpx_match_free(match), 0);
	CHECK_EQ(acp_finalize(), 0);
}

static acp_ga_t starter_ga(size_t offset)
{
	return acp_query_starter_ga(0) + offset;
}

static char *starter(size_t offset)
{
	return fake.memory[ACP_STAG_STARTER][0] + offset;
}

static void lock(void)
{
	pthread_mutex_lock(&fake.lock);
}

static void unlock(void)
{
	pthread_mutex_unlock(&fake.lock);
}

/* A message of a rank. Returns an ACP_ST_. */
static uint8_t arrive(uint32_t rank, uint64_t tag, const char *data, size_t size)
{
	uint8_t status;

	lock();
	status = play_arrive(play.last, rank, tag, data, size);
	unlock();
	return status;
}

/* A message that is not complete yet. */
static struct play_message *begin(uint32_t rank, uint64_t tag, size_t size)
{
	struct play_message *m;

	lock();
	CHECK_EQ(play_keep(rank, tag, size, &m), 0);
	unlock();
	return m;
}

static void complete(struct play_message *m, const char *data)
{
	lock();
	play_complete(m, data);
	unlock();
}

/* Post a receive of any rank, with a buffer at an offset of the starter memory. */
static acpx_receive_t post(acpx_match_t match, uint64_t tag, size_t offset, size_t room)
{
	acpx_receive_t receive = NULL;

	CHECK_EQ(acpx_post(match, ACPX_ANY_RANK, tag, 0, starter_ga(offset), room, &receive), 0);
	CHECK(receive);
	return receive;
}

static bool is(const struct acpx_message *m, const void *data, size_t size, uint64_t tag, int rank)
{
	return m->data == data && m->size == size && m->tag == tag && m->rank == rank;
}

static unsigned int kept_messages(void)
{
	unsigned int n = 0, i;

	lock();
	for (i = 0; i < PLAY_MESSAGES; i++)
		n += play.messages[i].state != PLAY_FREE;
	unlock();
	return n;
}

/* ---- Begin and end, arguments ---- */

TEST(match__before_init)
{
	struct acpx_message m = { .data = &m };
	acpx_receive_t receive = NULL;
	acpx_match_t match = NULL;

	CHECK(acpx_match_create(&limits, &match) == -ENOTCONN && !match);
	CHECK(acpx_match_ga(NULL) == ACP_GA_NULL);
	CHECK_EQ(acpx_match_free(NULL), -EINVAL);
	CHECK_EQ(acpx_post(NULL, 0, 0, 0, 0, 0, &receive), -EINVAL);
	CHECK_EQ(acpx_receive_wait(NULL, &m, 0), -EINVAL);
	CHECK_EQ(acpx_receive_cancel(NULL), -EINVAL);
	CHECK_EQ(acpx_match_probe(NULL, 0, 0, 0, &m, 0), -EINVAL);
	CHECK_EQ(acpx_mprobe(NULL, 0, 0, 0, &m, 0), -EINVAL);
	CHECK_EQ(acpx_mrecv(NULL, &m, NULL, 0), -EINVAL);
}

TEST(create__arguments)
{
	static const struct acpx_match_limits wrong[] = {
		{ 64, 0, 1, 0, { 0 } }, { 64, 65537, 1, 0, { 0 } }, { 64, 1, 0, 0, { 0 } },
		{ 64, 1, 65537, 0, { 0 } }, { 64, 1, 1, 5, { 0 } },
	};
	struct acpx_match_limits l = limits;
	acpx_match_t match = NULL;
	size_t i;

	CHECK(join() == 0);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK_EQ(acpx_match_create(&wrong[i], &match), -EINVAL);
	CHECK_EQ(acpx_match_create(NULL, &match), -EINVAL);
	CHECK_EQ(acpx_match_create(&limits, NULL), -EINVAL);
	l.bytes = SIZE_MAX;
	CHECK_EQ(acpx_match_create(&l, &match), -ENOMEM);
	l.bytes = acpx_heap_size();
	CHECK_EQ(acpx_match_create(&l, &match), -ENOMEM);
	CHECK(!match && !play.matches);
	CHECK_EQ(acp_finalize(), 0);
}

/* What fails leaves nothing behind. */
TEST(create__failures_of_the_kernel)
{
	static const int errors[] = { EINVAL, ENOSPC, ENOMEM, EDQUOT, EDQUOT };
	struct acpx_heap_stats before, after;
	acpx_match_t match = NULL;
	size_t i;

	CHECK(join() == 0);
	CHECK_EQ(acpx_heap_stats(0, &before), 0);
	fake.limit = ACP_LIMIT_USER_MEMORY;
	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		play.match_error = errors[i];
		CHECK_EQ(acpx_match_create(&limits, &match), -errors[i]);
	}
	play.match_error = 0;
	play.silent = true;
	CHECK_EQ(acpx_match_create(&limits, &match), -EIO);
	CHECK(!match);
	CHECK_EQ(acpx_heap_stats(0, &after), 0);
	CHECK(after.used == before.used && after.blocks == before.blocks);
	CHECK_EQ(acp_finalize(), 0);
}

TEST(create__as_the_kernel_sees_it)
{
	const struct acp_match *a = &play.match;
	struct acpx_match_limits l = limits;
	acpx_match_t match = start();
	struct acp_mailbox *box = acp_query_address(acpx_match_ga(match));

	CHECK(acpx_match_ga(match) % 64 == 0 && acp_query_rank(acpx_match_ga(match)) == 0);
	CHECK(box->list == play.last && !box->room && !box->units);
	CHECK(a->size == sizeof(*a) && !a->flags && !a->reserved);
	CHECK(a->mailbox == acpx_match_ga(match) && a->results == a->mailbox + 64);
	CHECK(a->memory == a->results + 8 * 64 && a->bytes == 4096);
	CHECK(a->receives == 8 && a->messages == 8 && a->masks == 3);
	CHECK(!a->mask[0] && a->mask[1] == LOW && a->mask[2] == UINT64_MAX && !a->mask[3]);
	CHECK_EQ(acpx_match_free(match), 0);
	CHECK(play.unpost.what == ACP_UNPOST_LIST && !play.unpost.number);
	CHECK(play.unpost.size == sizeof(play.unpost) && play.unpost.list == 1);
	/* Without masks, no bits are ignored. */
	l = (struct acpx_match_limits){ .bytes = 9, .receives = 1, .messages = 1, .mask = { 7 } };
	CHECK_EQ(acpx_match_create(&l, &match), 0);
	CHECK(a->masks == 1 && !a->mask[0] && a->bytes == 16);
	end(match);
}

TEST(free__returns_all_memory)
{
	struct acpx_heap_stats before, after;
	struct acpx_message m;
	acpx_match_t match;

	CHECK(join() == 0);
	CHECK_EQ(acpx_heap_stats(0, &before), 0);
	CHECK_EQ(acpx_match_create(&limits, &match), 0);
	CHECK_EQ(acpx_heap_stats(0, &after), 0);
	CHECK(after.used >= before.used + 64 + 8 * 64 + 4096);
	post(match, 1, 0, 8);
	CHECK_EQ(arrive(1, 2, "kept", 5), 0);
	CHECK_EQ(acpx_mprobe(match, 1, 2, 0, &m, 0), 0);
	CHECK_EQ(acpx_match_free(match), 0);
	CHECK_EQ(acpx_heap_stats(0, &after), 0);
	CHECK(after.used == before.used && after.blocks == before.blocks);
	CHECK_EQ(acp_finalize(), 0);
}

TEST(free__not_while_a_message_arrives)
{
	acpx_match_t match = start();
	struct play_message *message = begin(1, 1, 8);
	acpx_receive_t receive = post(match, 1, 0, 8), other = NULL;

	CHECK_EQ(acpx_match_free(match), -EBUSY);
	CHECK_EQ(acpx_post(match, 1, 1, 0, starter_ga(8), 8, &other), -ENOENT);
	CHECK_EQ(acpx_match_probe(match, 1, 1, 0, NULL, ACPX_FOREVER), -ENOENT);
	CHECK_EQ(arrive(1, 1, "", 1), ACP_ST_AGAIN);
	complete(message, "abcdefg");
	CHECK_EQ(acpx_receive_wait(receive, NULL, 0), 8);
	CHECK(!strcmp(starter(0), "abcdefg"));
	end(match);
}

TEST(post__arguments)
{
	acpx_match_t match = start();
	acpx_receive_t receive = NULL;
	acp_ga_t last = starter_ga(65536 - 8);

	CHECK_EQ(acpx_post(match, 0, 0, 0, last, 8, NULL), -EINVAL);
	CHECK_EQ(acpx_post(match, -2, 0, 0, last, 8, &receive), -EINVAL);
	CHECK_EQ(acpx_post(match, 2, 0, 0, last, 8, &receive), -EINVAL);
	CHECK_EQ(acpx_post(match, 0, 0, 0, ACP_GA_NULL, 8, &receive), -EINVAL);
	CHECK_EQ(acpx_post(match, 0, 0, 0, acp_query_starter_ga(1), 8, &receive), -EINVAL);
	CHECK_EQ(acpx_post(match, 0, 0, 0, last, 9, &receive), -EINVAL);
	CHECK_EQ(acpx_post(match, 0, 0, 0, last, SIZE_MAX, &receive), -EINVAL);
	CHECK_EQ(acpx_match_probe(match, 2, 0, 0, NULL, 0), -EINVAL);
	CHECK_EQ(acpx_mprobe(match, -2, 0, 0, &(struct acpx_message){ 0 }, 0), -EINVAL);
	CHECK_EQ(acpx_mprobe(match, 0, 0, 0, NULL, 0), -EINVAL);
	CHECK(!play.posts && !receive);
	CHECK_EQ(acpx_post(match, 0, 0, 0, last, 8, &receive), 0);
	CHECK_EQ(acpx_post(match, 0, 0, 0, ACP_GA_NULL, 0, &receive), 0);
	end(match);
}

TEST(post__as_the_kernel_sees_it)
{
	const struct acp_post *p = &play.post;
	acpx_match_t match = start();
	acpx_receive_t receive;

	CHECK_EQ(acpx_post(match, 1, 1ull << 63, LOW, starter_ga(64), 100, &receive), 0);
	CHECK(p->size == sizeof(*p) && p->list == play.last && !p->flags && p->rank == 1);
	CHECK(p->tag == 1ull << 63 && p->ignore == LOW && !p->result);
	CHECK(p->buffer == starter_ga(64) && p->room == 100);
	CHECK_EQ(acpx_post(match, ACPX_ANY_RANK, 7, 0, starter_ga(64), 0, &receive), 0);
	CHECK(p->flags == ACP_POST_ANY_RANK && !p->rank && !p->buffer && !p->room);
	CHECK_EQ(p->result, 1);
	CHECK_EQ(acpx_match_probe(match, 1, 8, 0, NULL, 0), -ETIMEDOUT);
	CHECK(p->flags == ACP_POST_PROBE && p->rank == 1 && !p->result && !p->room);
	CHECK_EQ(acpx_mprobe(match, ACPX_ANY_RANK, 8, 0, &(struct acpx_message){ 0 }, 0),
		 -ETIMEDOUT);
	CHECK(p->flags == (ACP_POST_ANY_RANK | ACP_POST_TAKE) && p->result == 2 && !p->room);
	end(match);
}

/* Errors of the kernel: the receive is not posted, and can be used again. */
TEST(post__failures_of_the_kernel)
{
	static const struct {
		int kernel, wanted;
	} errors[] = { { EINVAL, -EINVAL }, { ENOENT, -ENOENT }, { EBUSY, -EBADMSG } };
	acpx_match_t match = start();
	acpx_receive_t receive = NULL;
	struct acpx_message m;
	size_t i, k;

	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		play.post_error = errors[i].kernel;
		for (k = 0; k <= limits.receives; k++) {
			CHECK_EQ(acpx_post(match, 0, 0, 0, starter_ga(0), 8, &receive),
				 errors[i].wanted);
			CHECK_EQ(acpx_mprobe(match, 0, 0, 0, &m, 0), errors[i].wanted);
		}
	}
	CHECK(!receive);
	play.post_error = 0;
	end(match);
}

TEST(post__as_many_as_there_may_be)
{
	acpx_receive_t receives[8], other = NULL;
	acpx_match_t match = start();
	struct acpx_message m;
	uint64_t i;

	for (i = 0; i < 8; i++)
		receives[i] = post(match, i, 8 * i, 8);
	CHECK_EQ(acpx_post(match, 0, 9, 0, starter_ga(64), 8, &other), -ENOSPC);
	CHECK_EQ(arrive(1, 100, "", 1), 0);
	CHECK_EQ(acpx_mprobe(match, 1, 100, 0, &m, 0), -ENOSPC);
	CHECK_EQ(acpx_match_probe(match, 1, 100, 0, &m, 0), 0);
	CHECK_EQ(acpx_receive_cancel(receives[3]), 0);
	CHECK_EQ(acpx_mprobe(match, 1, 100, 0, &m, 0), 0);
	CHECK_EQ(acpx_post(match, 0, 9, 0, starter_ga(64), 8, &other), -ENOSPC);
	CHECK_EQ(acpx_mrecv(match, &m, NULL, 0), 1);
	receives[3] = post(match, 3, 24, 8);
	for (i = 8; i--; ) {
		CHECK_EQ(arrive(1, i, "abcdefg", 1 + i), 0);
		CHECK_EQ(acpx_receive_wait(receives[i], &m, ACPX_FOREVER), 1 + i);
		CHECK(is(&m, starter(8 * i), 1 + i, i, 1));
	}
	CHECK_EQ(kept_messages(), 0);
	end(match);
}

/* ---- Receives ---- */

/* By a send of this rank, as the kernel of its node executes it. */
TEST(receive__what_is_sent)
{
	acpx_match_t match = start();
	acpx_receive_t receive = post(match, 7, 64, 16);
	struct acpx_message m = { 0 };
	acp_handle_t handle;

	CHECK_EQ(acpx_receive_wait(receive, &m, 0), -ETIMEDOUT);
	CHECK_EQ(acpx_receive_wait(receive, &m, MS), -ETIMEDOUT);
	strcpy(starter(0), "one message");
	handle = acpx_send(acpx_match_ga(match), starter_ga(0), 12, 7, 0, ACP_HANDLE_NULL);
	acp_complete(handle);
	CHECK_EQ(acpx_status(handle), 0);
	CHECK_EQ(acpx_receive_wait(receive, &m, 0), 12);
	CHECK(is(&m, starter(64), 12, 7, 0) && !strcmp(starter(64), "one message"));
	CHECK_EQ(acpx_receive_wait(receive, &m, 0), -EINVAL);
	CHECK_EQ(acpx_receive_cancel(receive), -EINVAL);
	end(match);
}

/* Of messages that come before their receive is posted, and behind it. */
TEST(receive__sizes)
{
	static const struct {
		size_t room, size;
	} cases[] = { { 8, 8 }, { 8, 5 }, { 5, 8 }, { 0, 8 }, { 8, 0 }, { 0, 0 } };
	acpx_match_t match = start();
	struct acpx_message m;
	acpx_receive_t receive;
	bool early;
	size_t i;

	for (i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		const size_t room = cases[i / 2].room, size = cases[i / 2].size;
		const size_t written = room < size ? room : size;

		early = i % 2;
		strcpy(starter(0), "........");
		if (early)
			CHECK_EQ(arrive(1, 1, "abcdefgh", size), 0);
		receive = post(match, 1, 0, room);
		if (!early)
			CHECK_EQ(arrive(1, 1, "abcdefgh", size), 0);
		CHECK_EQ(acpx_receive_wait(receive, &m, 0), size);
		CHECK(is(&m, room ? starter(0) : NULL, size, 1, 1));
		CHECK(!memcmp(starter(0), "abcdefgh", written));
		CHECK(!memcmp(starter(written), "........", 8 - written));
		CHECK_EQ(kept_messages(), 0);
	}
	end(match);
}

/* Its result comes when the message is complete. */
TEST(receive__a_message_that_is_arriving)
{
	acpx_match_t match = start();
	struct play_message *message = begin(1, 5, 3);
	acpx_receive_t receive = post(match, 5, 0, 8);

	CHECK_EQ(acpx_receive_wait(receive, NULL, 0), -ETIMEDOUT);
	CHECK_EQ(acpx_receive_cancel(receive), -EBUSY);
	complete(message, "abc");
	CHECK_EQ(acpx_receive_cancel(receive), -EBUSY);
	CHECK_EQ(acpx_receive_wait(receive, NULL, 0), 3);
	CHECK(!memcmp(starter(0), "abc", 3));
	end(match);
}

TEST(receive__failures)
{
	static const struct {
		uint8_t status;
		int error;
	} cases[] = {
		{ ACP_ST_PEER, -ECONNRESET }, { ACP_ST_TIMEOUT, -ECONNRESET },
		{ ACP_ST_ROUTE, -ECONNRESET }, { ACP_ST_RANK, -ECONNRESET },
		{ ACP_ST_ABORT, -ECONNRESET }, { ACP_ST_STAG, -EFAULT }, { ACP_ST_RANGE, -EFAULT },
		{ ACP_ST_ACCESS, -EFAULT }, { ACP_ST_NOMEM, -ENOMEM }, { 200, -EFAULT },
	};
	struct acpx_message m = { .size = 99 };
	acpx_match_t match = start();
	acpx_receive_t receive;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		receive = post(match, 1, 0, 8);
		lock();
		play.receives[0].posted = false;
		play_fail(0, cases[i].status);
		unlock();
		CHECK_EQ(acpx_receive_wait(receive, &m, ACPX_FOREVER), cases[i].error);
		CHECK_EQ(acpx_receive_wait(receive, &m, 0), -EINVAL);
	}
	CHECK_EQ(m.size, 99);
	end(match);
}

/* Other ranks write to results. */
TEST(receive__damaged_results)
{
	static const struct acp_result cases[] = {
		{ .state = 4 }, { .state = UINT64_MAX },
		{ .state = ACP_RESULT_DONE, .rank = 2 },
		{ .state = ACP_RESULT_DONE, .size = 1ull << 63 },
		{ .state = ACP_RESULT_KEPT, .size = 4097 },
		{ .state = ACP_RESULT_KEPT, .size = UINT64_MAX, .at = 8 },
		{ .state = ACP_RESULT_KEPT, .size = 8, .at = 4089 },
		{ .state = ACP_RESULT_KEPT, .size = 8, .at = UINT64_MAX },
		{ .state = ACP_RESULT_KEPT, .size = 8, .message = 3 },
		{ .state = ACP_RESULT_KEPT, .size = 8, .rank = UINT32_MAX },
	};
	acpx_match_t match = start();
	acpx_receive_t receive;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		receive = post(match, 1, 0, 8);
		lock();
		play_result(0, &cases[i]);
		play.receives[0].posted = cases[i].state > ACP_RESULT_FAILED;
		unlock();
		CHECK_EQ(acpx_receive_wait(receive, NULL, ACPX_FOREVER), -EBADMSG);
	}
	end(match);
}

/* No system call if the result is there. */
TEST(receive__is_cheap)
{
	acpx_match_t match = start();
	acpx_receive_t receive = post(match, 1, 0, 8);
	unsigned int calls;

	CHECK_EQ(arrive(1, 1, "", 1), 0);
	calls = play.posts + play.unposts + fake.watches;
	CHECK_EQ(acpx_receive_wait(receive, NULL, ACPX_FOREVER), 1);
	CHECK_EQ(play.posts + play.unposts + fake.watches, calls);
	end(match);
}

TEST(cancel__or_too_late)
{
	acpx_match_t match = start();
	acpx_receive_t receive = post(match, 1, 0, 8), other;

	CHECK_EQ(acpx_receive_cancel(receive), 0);
	CHECK(play.unpost.what == ACP_UNPOST_RECEIVE && !play.unpost.number);
	CHECK_EQ(acpx_receive_cancel(receive), -EINVAL);
	CHECK_EQ(acpx_receive_wait(receive, NULL, 0), -EINVAL);
	other = post(match, 1, 0, 8);
	CHECK_EQ(arrive(1, 1, "", 1), 0);
	CHECK_EQ(acpx_receive_cancel(other), -EBUSY);
	CHECK_EQ(acpx_receive_wait(other, NULL, 0), 1);
	end(match);
}

/* ---- poll() ---- */

TEST(arm__arguments)
{
	acpx_receive_t receives[2] = { NULL, NULL };
	acpx_match_t match;

	CHECK_EQ(acpx_receive_arm(receives, 0), -ENOTCONN);
	match = start();
	receives[0] = post(match, 1, 0, 8);
	CHECK_EQ(acpx_receive_arm(NULL, 1), -EINVAL);
	CHECK_EQ(acpx_receive_arm(receives, 2), -EINVAL);
	CHECK_EQ(acpx_receive_arm(receives, 1), 0);
	CHECK_EQ(acpx_receive_arm(NULL, 0), 0);
	CHECK_EQ(acpx_receive_cancel(receives[0]), 0);
	CHECK_EQ(acpx_receive_arm(receives, 1), -EINVAL);
	CHECK(!fake_readable());
	end(match);
}

TEST(arm__reports_the_end_of_receives)
{
	acpx_match_t match = start();
	acpx_receive_t receives[2];
	uint64_t i;

	for (i = 0; i < 2; i++) {
		receives[0] = post(match, 0, 0, 8);
		receives[1] = post(match, 1, 8, 8);
		CHECK_EQ(acpx_receive_arm(receives, 2), 0);
		/* One that none of them accepts. */
		CHECK_EQ(arrive(1, 2, "", 1), 0);
		CHECK(!fake_readable());
		CHECK_EQ(arrive(1, i, "abc", 3), 0);
		CHECK(fake_readable());
		CHECK_EQ(acpx_receive_arm(receives, 2), 1);
		CHECK_EQ(acpx_receive_wait(receives[i], NULL, 0), 3);
		CHECK_EQ(acpx_receive_arm(&receives[!i], 1), 0);
		CHECK_EQ(acpx_receive_cancel(receives[!i]), 0);
	}
	/* A kept message; a failure. */
	receives[0] = post(match, 2, 0, 8);
	CHECK_EQ(acpx_receive_arm(receives, 1), 1);
	CHECK_EQ(acpx_receive_wait(receives[0], NULL, 0), 1);
	receives[0] = post(match, 3, 0, 8);
	CHECK_EQ(acpx_receive_arm(receives, 1), 0);
	lock();
	play.receives[play.post.result].posted = false;
	play_fail(play.post.result, ACP_ST_PEER);
	unlock();
	CHECK(fake_readable());
	CHECK_EQ(acpx_receive_arm(receives, 1), 1);
	CHECK_EQ(acpx_receive_wait(receives[0], NULL, 0), -ECONNRESET);
	end(match);
}

/* acpx_receive_wait() says what is wrong with it. */
TEST(arm__reports_a_damaged_result)
{
	const struct acp_result wrong = { .state = 4 };
	acpx_match_t match = start();
	acpx_receive_t receive = post(match, 1, 0, 8);

	CHECK_EQ(acpx_receive_arm(&receive, 1), 0);
	lock();
	play_result(0, &wrong);
	unlock();
	CHECK(fake_readable());
	CHECK_EQ(acpx_receive_arm(&receive, 1), 1);
	CHECK_EQ(acpx_receive_wait(receive, NULL, 0), -EBADMSG);
	end(match);
}

TEST(arm__ends_with_the_job)
{
	acpx_match_t match = start();
	acpx_receive_t receive = post(match, 1, 0, 8);

	CHECK_EQ(acpx_receive_arm(&receive, 1), 0);
	fake_abort();
	CHECK_EQ(acpx_receive_arm(&receive, 1), -ECANCELED);
	CHECK_EQ(acpx_match_free(match), 0);
	CHECK(acp_finalize() == -1);
	CHECK_EQ(acpx_receive_arm(&receive, 0), -ENOTCONN);
}

/* ---- Kept messages ---- */

TEST(probe__leaves_the_message)
{
	acpx_match_t match = start();
	struct acpx_message m = { .data = &m };
	struct play_message *arriving;

	CHECK_EQ(acpx_match_probe(match, ACPX_ANY_RANK, 0, UINT64_MAX, &m, 0), -ETIMEDOUT);
	CHECK_EQ(acpx_match_probe(match, ACPX_ANY_RANK, 0, UINT64_MAX, NULL, MS), -ETIMEDOUT);
	CHECK_EQ(arrive(0, 0x101, "first", 6), 0);
	CHECK_EQ(arrive(1, 0x102, "second", 7), 0);
	CHECK_EQ(acpx_match_probe(match, ACPX_ANY_RANK, 0x100, LOW, &m, 0), 0);
	CHECK(is(&m, NULL, 6, 0x101, 0));
	CHECK_EQ(acpx_match_probe(match, 1, 0x100, LOW, &m, ACPX_FOREVER), 0);
	CHECK(is(&m, NULL, 7, 0x102, 1));
	CHECK_EQ(acpx_match_probe(match, 1, 0x101, 0, &m, 0), -ETIMEDOUT);
	CHECK_EQ(acpx_match_probe(match, 0, 0x101, 0, NULL, 0), 0);
	arriving = begin(0, 0x200, 8);
	CHECK_EQ(acpx_match_probe(match, 0, 0x200, 0, &m, 0), -ETIMEDOUT);
	complete(arriving, "abcdefg");
	CHECK_EQ(acpx_match_probe(match, 0, 0x200, 0, &m, 0), 0);
	CHECK_EQ(kept_messages(), 3);
	end(match);
}

/* A thread that polls makes no system calls as long as no message has been kept. */
TEST(probe__is_cheap)
{
	acpx_match_t match = start();

	CHECK_EQ(acpx_match_probe(match, 0, 0, 0, NULL, 0), -ETIMEDOUT);
	CHECK_EQ(play.posts, 1);
	libacp.spin = true;
	CHECK_EQ(acpx_match_probe(match, 0, 0, 0, NULL, 20 * MS), -ETIMEDOUT);
	CHECK(play.posts >= 2 && play.posts <= fake.watches + 6);
	end(match);
}

TEST(mprobe__takes_the_message)
{
	acpx_match_t match = start();
	struct acpx_message m[3], other = { .data = "" };
	char buffer[16] = "";
	int i;

	for (i = 0; i < 3; i++)
		CHECK_EQ(arrive(1, 5, i ? "later" : "first message", i ? 6 : 14), 0);
	for (i = 0; i < 3; i++)
		CHECK_EQ(acpx_mprobe(match, 1, 5, 0, &m[i], 0), 0);
	CHECK_EQ(acpx_mprobe(match, 1, 5, 0, &other, 0), -ETIMEDOUT);
	CHECK_EQ(acpx_mrecv(match, &other, buffer, 16), -EINVAL);
	CHECK_EQ(acpx_mrecv(match, NULL, buffer, 16), -EINVAL);
	CHECK_EQ(acpx_mrecv(match, &m[0], NULL, 16), -EINVAL);
	CHECK(is(&m[0], m[0].data, 14, 5, 1) && !strcmp(m[0].data, "first message"));
	CHECK((uintptr_t)m[0].data % 8 == 0 && (uintptr_t)m[1].data % 8 == 0);
	CHECK_EQ(acpx_mrecv(match, &m[1], buffer, 16), 6);
	CHECK(!strcmp(buffer, "later"));
	CHECK_EQ(acpx_mrecv(match, &m[1], buffer, 16), -EINVAL);
	CHECK_EQ(acpx_mrecv(match, &m[0], buffer, 5), 14);
	CHECK(!strcmp(buffer, "first"));
	CHECK_EQ(acpx_mrecv(match, &m[2], NULL, 0), 6);
	CHECK_EQ(kept_messages(), 0);
	end(match);
}

TEST(mprobe__empty_messages)
{
	acpx_match_t match = start();
	struct acpx_message m[2];

	CHECK_EQ(arrive(1, 1, NULL, 0), 0);
	CHECK_EQ(arrive(1, 2, NULL, 0), 0);
	CHECK_EQ(acpx_mprobe(match, 1, 1, 0, &m[0], 0), 0);
	CHECK_EQ(acpx_mprobe(match, 1, 2, 0, &m[1], 0), 0);
	CHECK_EQ(acpx_mrecv(match, &m[1], NULL, 0), 0);
	CHECK_EQ(play.messages[1].state, PLAY_FREE);
	CHECK_EQ(acpx_mrecv(match, &m[0], NULL, 0), 0);
	end(match);
}

/* The kernel does not have the message whose number others have written. */
TEST(mrecv__a_damaged_list)
{
	acpx_match_t match = start();
	struct acpx_message m;

	CHECK_EQ(arrive(1, 1, "", 1), 0);
	CHECK_EQ(acpx_mprobe(match, 1, 1, 0, &m, 0), 0);
	lock();
	play.messages[0].state = PLAY_FREE;
	unlock();
	CHECK_EQ(acpx_mrecv(match, &m, NULL, 0), -EBADMSG);
	CHECK_EQ(acpx_mrecv(match, &m, NULL, 0), -EINVAL);
	end(match);
}

/* The kernel has released the message, but its result says something else. */
static int post_and_damage(unsigned long request, void *arg)
{
	const int error = play_call(request, arg);

	if (!error && request == ACP_IOC_POST)
		play_result(play.post.result, &(struct acp_result){ .at = 8, .state = 2 });
	return error;
}

TEST(mprobe__a_damaged_result)
{
	acpx_match_t match = start();
	struct acpx_message m;

	CHECK_EQ(arrive(1, 1, "", 1), 0);
	play.messages[0].size = 4090;
	fake.match = post_and_damage;
	CHECK_EQ(acpx_mprobe(match, 1, 1, 0, &m, 0), -EBADMSG);
	fake.match = play_call;
	CHECK_EQ(acpx_mrecv(match, &m, NULL, 0), -EINVAL);
	end(match);
}

/* ---- Waiting ---- */

struct waiter {
	pthread_t thread;
	acpx_match_t match;
	acpx_receive_t receive;		/* to be waited for; NULL: messages are taken */
	bool probes;			/* ... or looked for */
	int64_t result;
	unsigned int received;
	uint64_t sum;			/* of tags */
};

/* Take messages until an error, or one with tag 0. */
static void *take(void *arg)
{
	struct waiter *w = arg;
	struct acpx_message m;
	char buffer[64];

	for (;;) {
		w->result = acpx_mprobe(w->match, ACPX_ANY_RANK, 0, UINT64_MAX, &m, ACPX_FOREVER);
		if (!w->result)
			w->result = acpx_mrecv(w->match, &m, buffer, sizeof(buffer));
		if (w->result < 0 || !m.tag)
			return NULL;
		w->received++;
		w->sum += m.tag;
	}
}

static void *wait_or_probe(void *arg)
{
	struct waiter *w = arg;

	if (w->probes)
		w->result = acpx_match_probe(w->match, 1, 1, 0, NULL, ACPX_FOREVER);
	else
		w->result = acpx_receive_wait(w->receive, NULL, ACPX_FOREVER);
	return NULL;
}

/* Start a thread; on return it sleeps, or is about to. */
static void waiter_start(struct waiter *w, acpx_match_t match, acpx_receive_t receive, bool probes)
{
	*w = (struct waiter){ .match = match, .receive = receive, .probes = probes };
	fake_start_sleeper(&w->thread, receive || probes ? wait_or_probe : take, w);
}

static int64_t waiter_end(struct waiter *w)
{
	CHECK(pthread_join(w->thread, NULL) == 0);
	return w->result;
}

TEST(wait__is_woken)
{
	acpx_match_t match = start();
	acpx_receive_t receive = post(match, 1, 0, 8), other = post(match, 2, 8, 8);
	struct waiter w[2];

	fake.deaf = true;
	waiter_start(&w[0], match, receive, false);
	waiter_start(&w[1], match, other, false);
	CHECK_EQ(arrive(1, 2, "ab", 2), 0);
	CHECK_EQ(waiter_end(&w[1]), 2);
	CHECK_EQ(arrive(1, 1, "abc", 3), 0);
	CHECK_EQ(waiter_end(&w[0]), 3);
	CHECK(libacp.watch->armed == 0);
	end(match);
}

TEST(wait__for_a_kept_message)
{
	acpx_match_t match = start();
	struct acpx_message m;
	struct waiter w[2];

	fake.deaf = true;
	waiter_start(&w[0], match, NULL, true);
	waiter_start(&w[1], match, NULL, false);
	CHECK_EQ(arrive(1, 2, "ab", 2), 0);
	CHECK_EQ(arrive(0, 0, NULL, 0), 0);
	CHECK_EQ(waiter_end(&w[1]), 0);
	CHECK_EQ(w[1].sum, 2);
	CHECK_EQ(arrive(1, 1, "ab", 2), 0);
	CHECK_EQ(waiter_end(&w[0]), 0);
	CHECK_EQ(acpx_mprobe(match, 1, 1, 0, &m, 0), 0);
	end(match);
}

TEST(wait__for_a_message_that_arrives_slowly)
{
	acpx_match_t match = start();
	struct play_message *message;
	struct waiter w[2];

	fake.deaf = true;
	message = begin(1, 1, 8);
	waiter_start(&w[0], match, NULL, true);
	complete(message, "abcdefg");
	CHECK_EQ(waiter_end(&w[0]), 0);
	message = begin(1, 2, 8);
	waiter_start(&w[1], match, post(match, 2, 0, 8), false);
	complete(message, "abcdefg");
	CHECK_EQ(waiter_end(&w[1]), 8);
	end(match);
}

/* Some threads take messages, and some receive others. */
TEST(wait__of_four_threads)
{
	enum { MANY = 1500 };
	acpx_match_t match = start();
	struct acpx_message m;
	acpx_receive_t receive;
	struct waiter w[4];
	uint64_t i, sum = 0;
	uint8_t status;

	fake.deaf = true;
	for (i = 0; i < 4; i++)
		waiter_start(&w[i], match, NULL, false);
	for (i = 1; i <= MANY + 4; i++) {
		receive = post(match, 1ull << 40, 8 * (i % 8), 8);
		do
			status = arrive(1, i <= MANY ? i : 0, "abcdefg", i % 8);
		while (status == ACP_ST_AGAIN);
		CHECK_EQ(status, 0);
		CHECK_EQ(arrive(1, 1ull << 40, "abcdefg", 8), 0);
		CHECK_EQ(acpx_receive_wait(receive, &m, 0), 8);
	}
	for (i = 0; i < 4; i++) {
		CHECK(waiter_end(&w[i]) >= 0);
		sum += w[i].sum;
	}
	CHECK_EQ(sum, (uint64_t)MANY * (MANY + 1) / 2);
	CHECK_EQ(kept_messages(), 0);
	for (i = 0; i < ACP_WATCH_LINES; i++)
		CHECK(libacp.watch->lines[i] == 0);
	end(match);
}

TEST(free__not_while_threads_wait)
{
	acpx_match_t match = start();
	struct waiter w;

	fake.deaf = true;
	waiter_start(&w, match, post(match, 1, 0, 8), false);
	CHECK_EQ(acpx_match_free(match), -EBUSY);
	CHECK(play.open);
	CHECK_EQ(arrive(1, 1, "", 1), 0);
	CHECK_EQ(waiter_end(&w), 1);
	end(match);
}

TEST(wait__ends_when_the_job_is_aborted)
{
	acpx_match_t match = start();
	acpx_receive_t receive = post(match, 1, 0, 8), other = NULL;
	struct waiter w[2];

	fake.deaf = true;
	waiter_start(&w[0], match, receive, false);
	waiter_start(&w[1], match, NULL, false);
	fake_abort();
	CHECK_EQ(waiter_end(&w[0]), -ECANCELED);
	CHECK_EQ(waiter_end(&w[1]), -ECANCELED);
	CHECK_EQ(acpx_receive_wait(receive, NULL, ACPX_FOREVER), -ECANCELED);
	CHECK_EQ(acpx_post(match, 0, 1, 0, starter_ga(0), 8, &other), -ECANCELED);
	CHECK_EQ(acpx_receive_cancel(receive), -ECANCELED);
	CHECK_EQ(acpx_match_free(match), 0);
	CHECK(acp_finalize() == -1);
}

TEST(wait__ends_when_the_rank_leaves)
{
	acpx_match_t match = start(), next;
	acpx_receive_t receive = post(match, 1, 0, 8), other = NULL;
	struct acpx_message m;
	struct waiter w[2];

	fake.deaf = true;
	waiter_start(&w[0], match, receive, false);
	waiter_start(&w[1], match, NULL, false);
	CHECK_EQ(acp_finalize(), 0);
	CHECK_EQ(waiter_end(&w[0]), -ENOTCONN);
	CHECK_EQ(waiter_end(&w[1]), -ENOTCONN);
	CHECK_EQ(acpx_receive_wait(receive, NULL, 0), -ENOTCONN);
	/* Its memory belongs to another job now. */
	CHECK_EQ(join(), 0);
	CHECK_EQ(acpx_match_create(&limits, &next), 0);
	CHECK_EQ(acpx_receive_wait(receive, NULL, 0), -ENOTCONN);
	CHECK_EQ(acpx_receive_cancel(receive), -ENOTCONN);
	CHECK_EQ(acpx_post(match, 0, 1, 0, starter_ga(0), 8, &other), -ENOTCONN);
	CHECK_EQ(acpx_match_probe(match, 0, 0, 0, NULL, 0), -ENOTCONN);
	CHECK_EQ(acpx_mprobe(match, 0, 0, 0, &m, 0), -ENOTCONN);
	CHECK_EQ(acpx_mrecv(match, &m, NULL, 0), -ENOTCONN);
	CHECK_EQ(acpx_match_free(match), 0);
	CHECK(play.open);
	end(next);
}

TEST(fork__child_has_no_match_list)
{
	acpx_match_t match = start();
	acpx_receive_t receive = post(match, 1, 0, 8);
	unsigned int calls = play.unposts;
	int status;
	pid_t pid;

	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		CHECK_EQ(acpx_receive_wait(receive, NULL, 0), -ENOTCONN);
		CHECK_EQ(acpx_receive_cancel(receive), -ENOTCONN);
		CHECK_EQ(acpx_match_free(match), 0);
		CHECK_EQ(play.unposts, calls);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK_EQ(arrive(1, 1, "", 1), 0);
	CHECK_EQ(acpx_receive_wait(receive, NULL, 0), 1);
	end(match);
}

TEST_MAIN
