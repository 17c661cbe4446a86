// SPDX-License-Identifier: MIT
/*
 * A4: mailboxes and match lists by the library, over a network: three nodes of two ranks. Rank 0
 * receives, and waits by poll(): a wake-up that is lost hangs.
 */
#include "../dev/isolated.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "members.h"

#define RANKS		6
#define PER_NODE	2
#define MESSAGES	(test_short() ? 60U : 400U)
#define BYTES		4096		/* of memory for messages: it is full at times */

/* Offsets in starter memory. */
enum { INBOX = 0, OWN = 64, BUFFER = 1024 };

static acp_ga_t inbox_of_0(void)
{
	CHECK_EQ(acp_sync(), 0);
	CHECK_EQ(member_status(acp_copy(member_at(acp_rank(), INBOX), member_at(0, INBOX), 8,
					ACP_HANDLE_NULL)), 0);
	return *member_word(INBOX);
}

/* Numbers in their order, with pauses, of which some are long enough for rank 0 to sleep. */
static void send_numbers_like(acp_ga_t to, int flags)
{
	uint64_t seed = (uint64_t)acp_rank() + 1;
	acp_handle_t handle;
	uint64_t i;

	for (i = 0; i < MESSAGES; i++) {
		*member_word(OWN) = i;
		handle = acpx_send(to, member_at(acp_rank(), OWN), 8, (uint64_t)acp_rank(), flags,
				   ACP_HANDLE_NULL);
		CHECK_EQ(member_status(handle), 0);
		if (next_random(&seed) % 8 == 0)
			sleep_ms(1 + (unsigned int)(next_random(&seed) % 5));
	}
}

static void send_numbers(acp_ga_t to)
{
	send_numbers_like(to, ACPX_RETRY);
}

/* Each is sent when a receive has matched it. */
static void send_when_matched(acp_ga_t to)
{
	send_numbers_like(to, ACPX_RETRY | ACPX_RENDEZVOUS);
}

/* ---- poll() ---- */

static unsigned int take_all(acpx_mailbox_t *boxes, uint64_t *expected)
{
	struct acpx_message message;
	unsigned int taken = 0, i;
	uint64_t number;
	int64_t size;

	for (i = 0; i < 2; i++)
		while ((size = acpx_recv(boxes[i], &number, 8, &message, 0)) != -ETIMEDOUT) {
			CHECK(size == 8 && message.tag == (uint64_t)message.rank);
			CHECK_EQ(number, expected[message.rank]++);
			CHECK_EQ((unsigned int)message.rank % 2, i);
			taken++;
		}
	return taken;
}

static bool is_readable(void)
{
	struct pollfd p = { acpx_event_fd(), POLLIN, 0 };

	return poll(&p, 1, 0) == 1;
}

static void receive_by_poll(acpx_mailbox_t *boxes)
{
	uint64_t expected[RANKS] = { 0 };
	unsigned int taken = 0, polls = 0;
	int armed;

	while (taken < (RANKS - 1) * MESSAGES) {
		armed = acpx_mailbox_arm(boxes, 2);
		CHECK(armed == 0 || armed == 1);
		if (!armed) {
			CHECK(patience_poll(acpx_event_fd(), POLLIN, PATIENCE_SOON));
			polls++;
		}
		taken += take_all(boxes, expected);
	}
	CHECK(polls > 0);
	/* Nothing is left, and nothing is reported. */
	CHECK_EQ(acpx_mailbox_arm(boxes, 2), 0);
	CHECK(!is_readable());
}

/* Odd ranks send to one mailbox, even ones to another. */
static void polled(void)
{
	acpx_mailbox_t boxes[2] = { NULL, NULL };
	acp_ga_t to;
	int i;

	member_init();
	for (i = 0; i < 2 && !acp_rank(); i++) {
		CHECK_EQ(acpx_mailbox_create(BYTES, 0, &boxes[i]), 0);
		member_word(INBOX)[i] = acpx_mailbox_ga(boxes[i]);
	}
	CHECK_EQ(acp_sync(), 0);
	CHECK_EQ(member_status(acp_copy(member_at(acp_rank(), INBOX), member_at(0, INBOX), 16,
					ACP_HANDLE_NULL)), 0);
	to = member_word(INBOX)[acp_rank() % 2];
	if (acp_rank())
		send_numbers(to);
	else
		receive_by_poll(boxes);
	CHECK_EQ(acp_sync(), 0);
	for (i = 0; i < 2 && !acp_rank(); i++)
		CHECK_EQ(acpx_mailbox_free(boxes[i]), 0);
	CHECK_EQ(acp_finalize(), 0);
}

TEST(A4_poll_reports_messages)
{
	members_run(RANKS, PER_NODE, polled);
}

/* What is armed no longer, and what is armed when the job has ended. */
static void disarmed(void)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	acpx_mailbox_t box, none = NULL;

	member_init();
	if (acp_rank()) {
		CHECK_EQ(acp_sync(), 0);
		acp_abort("on purpose");
	}
	CHECK_EQ(acpx_mailbox_create(BYTES, 0, &box), 0);
	CHECK_EQ(acpx_mailbox_arm(NULL, 1), -EINVAL);
	CHECK_EQ(acpx_mailbox_arm(&none, 1), -EINVAL);
	CHECK_EQ(acpx_mailbox_arm(&box, 1), 0);
	CHECK_EQ(acpx_mailbox_arm(NULL, 0), 0);
	CHECK_EQ(member_status(acpx_send(acpx_mailbox_ga(box), member_at(acp_rank(), OWN), 8, 1, 0,
					 ACP_HANDLE_NULL)), 0);
	CHECK(!is_readable());
	CHECK_EQ(acpx_mailbox_arm(&box, 1), 1);
	CHECK_EQ(acpx_recv(box, NULL, 0, NULL, 0), -EMSGSIZE);
	CHECK_EQ(acpx_recv(box, member_word(BUFFER), 8, NULL, 0), 8);
	CHECK_EQ(acpx_mailbox_arm(&box, 1), 0);
	acp_sync();		/* fails if the end of the job comes first */
	while (!is_readable())
		CHECK(!patience_over(&p));
	CHECK_EQ(acpx_mailbox_arm(&box, 1), -ECANCELED);
}

TEST(A4_poll_ends_with_the_job)
{
	struct members m;

	members_open(&m, 2, 1);
	members_start_all(&m, disarmed);
	CHECK_EQ(members_wait(&m, 0), 0);
	CHECK_EQ(members_wait(&m, 1), 255);
}

/* ---- Match lists ---- */

#define WINDOW	8U

/* One receive of each rank at a time, and of none in particular for the rest. */
static void receive_matched(acpx_match_t match)
{
	const uint64_t all = (RANKS - 1) * MESSAGES;
	acpx_receive_t posted[WINDOW];
	uint64_t expected[RANKS] = { 0 }, begun, ended;
	struct acpx_message message;

	for (begun = 0, ended = 0; ended < all; ended++) {
		for (; begun < all && begun < ended + WINDOW; begun++) {
			const size_t at = BUFFER + 8 * (begun % WINDOW);

			CHECK_EQ(acpx_post(match, ACPX_ANY_RANK, 0, ~0ULL, member_at(0, at), 8,
					   &posted[begun % WINDOW]), 0);
		}
		CHECK_EQ(acpx_receive_wait(posted[ended % WINDOW], &message, ACPX_FOREVER), 8);
		CHECK(message.rank > 0 && message.tag == (uint64_t)message.rank);
		CHECK_EQ(*member_word(BUFFER + 8 * (ended % WINDOW)), expected[message.rank]++);
	}
}

/* As long as none of the receives has ended, the process sleeps in poll(). */
static void receive_polled(acpx_match_t match)
{
	uint64_t got[RANKS] = { 0 }, left = (RANKS - 1) * MESSAGES;
	acpx_receive_t posted[RANKS - 1];
	unsigned int polls = 0;
	int64_t size;
	int i, armed;

	for (i = 0; i < RANKS - 1; i++)
		CHECK_EQ(acpx_post(match, i + 1, (uint64_t)i + 1, 0,
				   member_at(0, BUFFER + 8 * (size_t)i), 8, &posted[i]), 0);
	while (left) {
		armed = acpx_receive_arm(posted, RANKS - 1);
		CHECK(armed == 0 || armed == 1);
		if (!armed) {
			CHECK(patience_poll(acpx_event_fd(), POLLIN, PATIENCE_SOON));
			polls++;
		}
		for (i = 0; i < RANKS - 1; i++) {
			size = acpx_receive_wait(posted[i], NULL, 0);
			if (size == -ETIMEDOUT)
				continue;
			CHECK_EQ(size, 8);
			CHECK_EQ(*member_word(BUFFER + 8 * (size_t)i), got[i]++);
			left--;
			CHECK_EQ(acpx_post(match, i + 1, (uint64_t)i + 1, 0,
					   member_at(0, BUFFER + 8 * (size_t)i), 8, &posted[i]), 0);
		}
	}
	CHECK(polls > 0);
	CHECK_EQ(acpx_receive_arm(posted, RANKS - 1), 0);
	CHECK(!is_readable());
}

static void receive_by_rank(acpx_match_t match)
{
	struct acpx_message message;
	acpx_receive_t receive;
	uint64_t i, number;
	int rank;

	for (i = 0; i < MESSAGES; i++)
		for (rank = 1; rank < RANKS; rank++) {
			if ((i + (uint64_t)rank) % 3) {
				CHECK_EQ(acpx_post(match, rank, (uint64_t)rank, 0,
						   member_at(0, BUFFER), 8, &receive), 0);
				CHECK_EQ(acpx_receive_wait(receive, &message, ACPX_FOREVER), 8);
				CHECK_EQ(*member_word(BUFFER), i);
			} else {
				CHECK_EQ(acpx_mprobe(match, rank, 0, ~0ULL, &message,
						     ACPX_FOREVER), 0);
				CHECK_EQ(acpx_mrecv(match, &message, &number, 8), 8);
				CHECK_EQ(number, i);
			}
			CHECK_EQ(message.rank, rank);
		}
}

/* Rank 0 receives with a match list, to which the others send. */
static void matched(const struct acpx_match_limits *limits, void (*receive)(acpx_match_t match),
		    void (*send)(acp_ga_t to))
{
	acpx_match_t match = NULL;
	acp_ga_t to;

	member_init();
	if (!acp_rank()) {
		CHECK_EQ(acpx_match_create(limits, &match), 0);
		*member_word(INBOX) = acpx_match_ga(match);
	}
	to = inbox_of_0();
	if (acp_rank())
		send(to);
	else
		receive(match);
	CHECK_EQ(acp_sync(), 0);
	if (match)
		CHECK_EQ(acpx_match_free(match), 0);
	CHECK_EQ(acp_finalize(), 0);
}

/* A wait for a message that is kept needs room for all that come before it. */
static void matched_by(void (*receive)(acpx_match_t match), uint32_t messages,
		       void (*send)(acp_ga_t to))
{
	const struct acpx_match_limits limits = {
		.bytes = 8 * messages, .receives = 16, .messages = messages, .masks = 2,
		.mask = { 0, ~0ULL },
	};

	matched(&limits, receive, send);
}

static void matched_any(void)
{
	matched_by(receive_matched, 8, send_numbers);
}

static void matched_polled(void)
{
	matched_by(receive_polled, 8, send_numbers);
}

static void matched_by_rank(void)
{
	matched_by(receive_by_rank, (RANKS - 1) * MESSAGES, send_numbers);
}

static void rendezvous_any(void)
{
	matched_by(receive_matched, 8, send_when_matched);
}

/* One message of each sender waits at a time. */
static void rendezvous_by_rank(void)
{
	matched_by(receive_by_rank, RANKS - 1, send_when_matched);
}

TEST(A4_posted_receives_of_any_rank)
{
	members_run(RANKS, PER_NODE, matched_any);
}

TEST(A4_poll_reports_receives)
{
	members_run(RANKS, PER_NODE, matched_polled);
}

TEST(A4_posted_receives_and_probes_by_rank)
{
	members_run(RANKS, PER_NODE, matched_by_rank);
}

TEST(A4_rendezvous_of_any_rank)
{
	members_run(RANKS, PER_NODE, rendezvous_any);
}

TEST(A4_rendezvous_and_probes_by_rank)
{
	members_run(RANKS, PER_NODE, rendezvous_by_rank);
}

/* ---- A receiver that computes ---- */

#define SENDERS	3		/* rank 1 is on the node of the receiver */
#define LONG	2500U		/* bytes: two frames */
#define TURNS	1000		/* of a loop, between two looks at memory */

/* Offsets in starter memory. */
enum { OVER = 128, SHORTS = 1024, LONGS = 2048 };

/* No call, not even for the time, until all words differ from 0: the harness ends what hangs. */
static void compute(const uint64_t *words, unsigned int n)
{
	volatile uint64_t x = 1;
	int i;

	while (n > 0) {
		for (i = 0; i < TURNS; i++)
			x = x * 6364136223846793005ULL + 1;
		if (__atomic_load_n(&words[n - 1], __ATOMIC_ACQUIRE))
			n--;
	}
}

static void expect(acpx_receive_t receive, int rank, size_t at, size_t size)
{
	struct acpx_message message;

	CHECK_EQ(acpx_receive_wait(receive, &message, 0), (int64_t)size);
	CHECK_EQ(message.rank, rank);
	CHECK(filled(member_word(at), size, (uint64_t)rank));
}

/* When all senders have completed their messages, their results are there at once. */
static void compute_and_receive(acpx_match_t match)
{
	acpx_receive_t first[SENDERS], second[SENDERS];
	int i;

	for (i = 0; i < SENDERS; i++) {
		CHECK_EQ(acpx_post(match, i + 1, 0, 0, member_at(0, SHORTS + 8 * (size_t)i), 8,
				   &first[i]), 0);
		CHECK_EQ(acpx_post(match, i + 1, 1, 0, member_at(0, LONGS + LONG * (size_t)i), LONG,
				   &second[i]), 0);
	}
	CHECK_EQ(acp_sync(), 0);
	compute(member_word(OVER), SENDERS);
	for (i = 0; i < SENDERS; i++) {
		expect(first[i], i + 1, SHORTS + 8 * (size_t)i, 8);
		expect(second[i], i + 1, LONGS + LONG * (size_t)i, LONG);
	}
}

/* Only when both are complete does the receiver hear that it is over. */
static void send_and_say(acp_ga_t to)
{
	const acp_ga_t own = member_at(acp_rank(), LONGS);
	const size_t over = OVER + 8 * ((size_t)acp_rank() - 1);

	fill(member_word(LONGS), LONG, (uint64_t)acp_rank());
	CHECK_EQ(acp_sync(), 0);
	CHECK_EQ(member_status(acpx_send(to, own, 8, 0, 0, ACP_HANDLE_NULL)), 0);
	CHECK_EQ(member_status(acpx_send(to, own, LONG, 1, 0, ACP_HANDLE_NULL)), 0);
	*member_word(OWN) = 1;
	CHECK_EQ(member_status(acp_copy(member_at(0, over), member_at(acp_rank(), OWN), 8,
					ACP_HANDLE_NULL)), 0);
}

static void computing(void)
{
	const struct acpx_match_limits limits = {
		.bytes = BYTES, .receives = 2 * SENDERS, .messages = 1, .masks = 1,
	};

	matched(&limits, compute_and_receive, send_and_say);
}

TEST(A4_a_receiver_that_computes_delays_nobody)
{
	members_run(1 + SENDERS, PER_NODE, computing);
}
