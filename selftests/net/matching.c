// SPDX-License-Identifier: MIT
/*
 * A4: match lists: messages into buffers of posted receives, or kept until a receive matches them;
 * from other nodes and from the own one, over networks that lose and duplicate, into hostile lists,
 * and of senders that die.
 */
#include "../dev/isolated.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lists.h"

/* The kept message of a result, which is released. */
static void check_kept(uint32_t number, uint32_t by, uint64_t size, uint64_t tag, uint64_t seed)
{
	await_state(number, ACP_RESULT_KEPT);
	check(number, by, size, tag);
	CHECK(result(number)->at + size <= MEMORY);
	CHECK(filled(r[1].heap + MEMORY + result(number)->at, size, seed));
	CHECK_EQ(unpost(ACP_UNPOST_MESSAGE, result(number)->message), 0);
	CHECK_EQ(unpost(ACP_UNPOST_MESSAGE, result(number)->message), -ENOENT);
}

static const size_t sizes[] = { 0, 1, 8, 9, 100, 128, 129, 1300, 1400, 1500, 5000, 70001, 300000 };

#define SIZES	(sizeof(sizes) / sizeof(sizes[0]))

/* Rank "by" sends memory of rank "from"; the receive is posted before. */
static void one_expected(uint32_t by, uint32_t from, size_t size, size_t room)
{
	const size_t wanted = size < room ? size : room;
	static uint64_t seed;
	char *there = r[1].heap + BUFFERS;

	seed++;
	memset(there, 0x55, size + 64);
	fill(r[from].heap + SOURCE, size, seed);
	CHECK_EQ(post(7, seed % 2 ? -1 : (int)by, seed, 0, BUFFERS, room), 0);
	CHECK_EQ(run(by, heap_ga(&r[from], SOURCE), size, seed), ACP_ST_OK);
	CHECK_EQ(state(7), ACP_RESULT_DONE);
	check(7, by, size, seed);
	CHECK(filled(there, wanted, seed));
	CHECK_EQ(there[wanted], 0x55);
	CHECK(!memcmp(there + wanted, there + wanted + 1, size + 63 - wanted));
}

static void one_unexpected(uint32_t by, uint32_t from, size_t size)
{
	static uint64_t seed = 1000;
	const uint64_t before = complete();

	seed++;
	fill(r[from].heap + SOURCE, size, seed);
	CHECK_EQ(run(by, heap_ga(&r[from], SOURCE), size, seed), ACP_ST_OK);
	CHECK_EQ(complete(), before + 1);
	CHECK_EQ(post(7, seed % 2 ? -1 : (int)by, seed, 0, BUFFERS, 8), 0);
	check_kept(7, by, size, seed, seed);
}

static void all_messages(void)
{
	uint32_t by, from;
	size_t i;

	for (i = 0; i < SIZES; i++)
		for (by = 0; by < 2; by++)
			for (from = 0; from < RANKS; from++) {
				one_expected(by, from, sizes[i], HEAP / 4);
				one_expected(by, from, sizes[i], sizes[i] / 2);
				one_unexpected(by, from, sizes[i]);
			}
}

TEST(A4_messages_go_to_posted_receives_or_are_kept)
{
	begin(NULL);
	all_messages();
	CHECK_EQ(unpost(ACP_UNPOST_LIST, 0), 0);
}

TEST(A4_messages_are_matched_over_a_bad_network)
{
	begin("loss 5% duplicate 5% delay 1ms 1ms");
	all_messages();
}

/* Rank, tag, mask: the oldest that matches, as in MPI. */
TEST(A4_the_oldest_receive_that_matches_gets_a_message)
{
	begin(NULL);
	CHECK_EQ(post(0, 0, 0x100, 0xff00, BUFFERS, 8), 0);
	CHECK_EQ(post(1, -1, 0x101, 0, BUFFERS, 8), 0);
	CHECK_EQ(post(2, -1, 0x001, 0xff00, BUFFERS, 8), 0);
	CHECK_EQ(post(3, 0, 0x101, 0, BUFFERS, 8), 0);
	CHECK_EQ(run(0, 0, 0, 0x201), ACP_ST_OK);	/* only number 2 */
	CHECK(state(2) == ACP_RESULT_DONE && !state(0) && !state(1) && !state(3));
	CHECK_EQ(run(2, 0, 0, 0x101), ACP_ST_OK);	/* 1 */
	CHECK(state(1) == ACP_RESULT_DONE && !state(0) && !state(3));
	CHECK_EQ(run(0, 0, 0, 0x500), ACP_ST_OK);	/* 0 */
	CHECK(state(0) == ACP_RESULT_DONE && !state(3));
	CHECK_EQ(run(2, 0, 0, 0x101), ACP_ST_OK);	/* none: kept */
	CHECK_EQ(run(0, 0, 0, 0x101), ACP_ST_OK);	/* 3 */
	CHECK_EQ(state(3), ACP_RESULT_DONE);
	CHECK_EQ(complete(), 1);
	CHECK_EQ(post(4, -1, 0x001, 0xff00, BUFFERS, 8), 0);
	check_kept(4, 2, 0, 0x101, 0);
}

/* ---- many senders ---- */

#define MESSAGES	(test_short() ? 300U : 2000U)
#define TAGS		4U

/* Some are longer than a frame. */
static uint32_t size_of(uint32_t by, uint32_t number)
{
	uint64_t seed = by * 1000003 + number;

	return 4 + (uint32_t)(next_random(&seed) % (number % 20 ? 150 : 5000));
}

/* The first bytes of a message are its number. */
static uint32_t slot_of(uint32_t number)
{
	return SOURCE + 6000 * (number % 64);
}

struct sender {
	uint32_t by;
	uint8_t flags;
};

/* At most 64 are in flight. */
static void *send_all(void *arg)
{
	const struct sender *s = arg;
	struct rank *me = &r[s->by];
	uint64_t ticket = 0;
	uint32_t i;

	for (i = 0; i < MESSAGES; i++) {
		uint32_t size = size_of(s->by, i);

		if (i && i % 64 == 0)
			CHECK_EQ(rank_await(me, ticket, PATIENCE_TEST), ACP_ST_OK);
		fill(me->heap + slot_of(i), size, i);
		memcpy(me->heap + slot_of(i), &i, sizeof(i));
		ticket = send_like(s->by, heap_ga(me, slot_of(i)), size, i % TAGS, s->flags);
	}
	CHECK_EQ(rank_await(me, ticket, PATIENCE_TEST), ACP_ST_OK);
	return NULL;
}

/* The messages of a rank and tag come in their order, each once. */
static void check_number(const char *bytes, uint32_t by, uint64_t size, uint64_t tag,
			 uint32_t (*expected)[TAGS])
{
	static char copy[6000];
	uint32_t number;

	memcpy(&number, bytes, sizeof(number));
	CHECK(by < RANKS && tag < TAGS);
	CHECK_EQ(number, expected[by][tag]);
	CHECK_EQ(size, size_of(by, number));
	expected[by][tag] += TAGS;
	fill(copy, size, number);
	CHECK(!memcmp(bytes + 4, copy + 4, (size < SLOT ? size : SLOT) - 4));
}

/* A receive has ended: check its message. */
static void take(uint32_t number, uint32_t (*expected)[TAGS])
{
	const struct acp_result *a = result(number);
	const char *kept = r[1].heap + MEMORY + a->at;
	const char *buffer = r[1].heap + BUFFERS + SLOT * number;

	CHECK(state(number) == ACP_RESULT_DONE || state(number) == ACP_RESULT_KEPT);
	check_number(state(number) == ACP_RESULT_KEPT ? kept : buffer, a->rank, a->size, a->tag,
		     expected);
	if (state(number) == ACP_RESULT_KEPT)
		CHECK_EQ(unpost(ACP_UNPOST_MESSAGE, a->message), 0);
}

#define WINDOW	48U		/* receives that are posted at a time */

/*
 * Receives of any rank, and of any rank and tag, alternately for each tag: they are waited for in
 * the order in which they were posted.
 */
static void receive_all(void)
{
	uint32_t expected[RANKS][TAGS], posted = 0, taken = 0, i;
	struct patience p = patience_begin(PATIENCE_TEST / 2);

	for (i = 0; i < RANKS * TAGS; i++)
		expected[i / TAGS][i % TAGS] = i % TAGS;
	while (taken < RANKS * MESSAGES) {
		CHECK(!patience_over(&p));
		if (posted < RANKS * MESSAGES && posted - taken < WINDOW) {
			uint32_t number = posted % RECEIVES;

			CHECK_EQ(post(number, -1, posted % TAGS, 0, BUFFERS + SLOT * number, SLOT),
				 0);
			posted++;
		} else if (state(taken % RECEIVES)) {
			take(taken++ % RECEIVES, expected);
		}
	}
}

/* Senders, receives and kept messages at the same time. */
static void in_order(const char *netem, const struct acp_match *like, uint8_t flags)
{
	struct sender senders[RANKS];
	pthread_t threads[RANKS];
	uint32_t i;

	begin_like(netem, like, 60000);
	for (i = 0; i < RANKS; i++) {
		senders[i] = (struct sender){ i, flags };
		CHECK_EQ(pthread_create(&threads[i], NULL, send_all, &senders[i]), 0);
	}
	receive_all();
	for (i = 0; i < RANKS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK_EQ(unpost(ACP_UNPOST_LIST, 0), 0);
}

TEST(A4_messages_of_a_sender_are_matched_in_order)
{
	in_order(NULL, &usual, ACP_SQE_RETRY);
}

TEST(A4_messages_of_a_sender_are_matched_in_order_over_a_bad_network)
{
	in_order("loss 2% duplicate 5% delay 500us 500us", &usual, ACP_SQE_RETRY);
}

/* Most of the time the list has no room for messages that no receive expects. */
TEST(A4_messages_that_wait_for_a_receive_are_matched_in_order)
{
	struct acp_match small = usual;

	small.messages = 5;
	small.bytes = 8192;
	in_order("delay 200us", &small, ACP_SQE_RETRY);
	CHECK(nodes_counter(&n, 0, "commands_retried") > 0);
}

/* ---- looking, taking, withdrawing ---- */

TEST(A4_kept_messages_can_be_looked_at_and_taken)
{
	struct acp_post p;

	begin(NULL);
	fill(r[0].heap + SOURCE, 200, 3);
	CHECK_EQ(look(ACP_POST_PROBE, -1, 1, &p), -EAGAIN);
	CHECK_EQ(look(ACP_POST_TAKE, -1, 1, &p), -EAGAIN);
	CHECK_EQ(run(0, heap_ga(&r[0], SOURCE), 200, 1), ACP_ST_OK);
	CHECK_EQ(look(ACP_POST_PROBE, 2, 1, &p), -EAGAIN);
	CHECK_EQ(look(ACP_POST_PROBE, 0, 1, &p), 0);
	CHECK(p.message_rank == 0 && p.message_tag == 1 && p.message_size == 200);
	result(0)->state = 0;
	CHECK_EQ(look(ACP_POST_TAKE, -1, 1, &p), 0);
	CHECK(p.message_rank == 0 && p.message_tag == 1 && p.message_size == 200);
	CHECK_EQ(look(ACP_POST_PROBE, 0, 1, &p), -EAGAIN);
	check_kept(0, 0, 200, 1, 3);
}

/* Short ones that are sent at once: half of them find a receive, the others are kept. */
static void many_at_once(uint8_t flags)
{
	const uint32_t many = 50;	/* as the ring has room for */
	uint32_t i;

	for (i = 0; i < many / 2; i++)
		CHECK_EQ(post(i, 0, 2 * i, 0, BUFFERS + i * SLOT, SLOT), 0);
	for (i = 0; i < many; i++) {
		const struct acp_sqe e = {
			.op = ACP_OP_SEND, .flags = flags, .dst = heap_ga(&r[1], MAILBOX),
			.src = heap_ga(&r[0], SOURCE + 8 * i), .size = 8, .b = i,
			.seen = rank_completed(&r[0]),
		};

		fill(r[0].heap + SOURCE + 8 * i, 8, 50 + i);
		rank_push(&r[0], &e);
	}
	CHECK_EQ(ioctl(r[0].fd, ACP_IOC_DOORBELL), 0);
	CHECK_EQ(rank_await(&r[0], r[0].last, PATIENCE_WORK), ACP_ST_OK);
	CHECK_EQ(rank_completed(&r[0]), r[0].last);
	for (i = 0; i < many; i += 2) {
		CHECK_EQ(state(i / 2), ACP_RESULT_DONE);
		check(i / 2, 0, 8, i);
		CHECK(filled(r[1].heap + BUFFERS + i / 2 * SLOT, 8, 50 + i));
	}
	for (i = 1; i < many; i += 2) {
		CHECK_EQ(post(i, -1, i, 0, BUFFERS, SLOT), 0);
		check_kept(i, 0, 8, i, 50 + i);
	}
}

TEST(A4_many_short_messages_at_once_are_matched)
{
	begin(NULL);
	many_at_once(0);
	many_at_once(ACP_SQE_RETRY);
}

TEST(A4_a_receive_that_is_withdrawn_gets_nothing)
{
	begin(NULL);
	CHECK_EQ(post(3, -1, 1, 0, BUFFERS, 8), 0);
	CHECK_EQ(post(3, -1, 2, 0, BUFFERS, 8), -EBUSY);
	CHECK_EQ(unpost(ACP_UNPOST_RECEIVE, 3), 0);
	CHECK_EQ(unpost(ACP_UNPOST_RECEIVE, 3), -ENOENT);
	CHECK_EQ(run(0, heap_ga(&r[0], SOURCE), 8, 1), ACP_ST_OK);
	CHECK_EQ(state(3), 0);
	CHECK_EQ(post(3, -1, 1, 0, BUFFERS, 8), 0);
	CHECK_EQ(state(3), ACP_RESULT_KEPT);
	CHECK_EQ(unpost(ACP_UNPOST_RECEIVE, 3), -ENOENT);
}

/* ---- full, and wrong ---- */

TEST(A4_a_full_list_is_said)
{
	struct acp_match small = usual;
	uint32_t i;

	small.messages = 4;
	small.bytes = 64;
	begin_like(NULL, &small, 0);
	CHECK_EQ(run(0, heap_ga(&r[0], SOURCE), 65, 1), ACP_ST_RANGE);
	CHECK_EQ(run(0, heap_ga(&r[0], SOURCE), 64, 1), ACP_ST_OK);
	CHECK_EQ(run(0, heap_ga(&r[0], SOURCE), 0, 1), ACP_ST_AGAIN);
	CHECK_EQ(run(1, heap_ga(&r[1], SOURCE), 1, 1), ACP_ST_AGAIN);
	CHECK_EQ(post(0, -1, 1, 0, BUFFERS, 8), 0);
	CHECK_EQ(unpost(ACP_UNPOST_MESSAGE, result(0)->message), 0);
	for (i = 0; i < 4; i++)
		CHECK_EQ(run(i % 2, heap_ga(&r[i % 2], SOURCE), 8, 1), ACP_ST_OK);
	CHECK_EQ(run(0, heap_ga(&r[0], SOURCE), 8, 1), ACP_ST_AGAIN);
	/* A posted receive needs no room. */
	CHECK_EQ(post(1, -1, 2, 0, BUFFERS, 1500), 0);
	CHECK_EQ(run(0, heap_ga(&r[0], SOURCE), 1500, 2), ACP_ST_OK);
	CHECK_EQ(state(1), ACP_RESULT_DONE);
}

/* A list that learns its masks finds by each of them what was kept before. */
TEST(A4_masks_are_learned_when_receives_use_them)
{
	struct acp_match learns = usual;
	uint32_t i;

	learns.flags = ACP_MATCH_LEARN;
	learns.masks = 1;
	memset(learns.mask, 0, sizeof(learns.mask));
	learns.mask[0] = ~0ULL;
	begin_like(NULL, &learns, 0);
	for (i = 0; i < ACP_MASKS_MAX - 1; i++)
		CHECK_EQ(run(0, heap_ga(&r[0], SOURCE), 8, 0x10000 | 1 << i), ACP_ST_OK);
	/* A receive ignores one bit, so it finds the message of this bit only. */
	for (i = ACP_MASKS_MAX - 1; i--;) {
		CHECK_EQ(post(i, i % 2 ? -1 : 0, 0x10000, 1 << i, BUFFERS, 8), 0);
		CHECK_EQ(state(i), ACP_RESULT_KEPT);
		CHECK_EQ(result(i)->tag, 0x10000 | 1 << i);
	}
	CHECK_EQ(post(100, -1, 0, 1 << 20, BUFFERS, 8), -EINVAL);
	/* The first one was there from the beginning, and those that were learned match, too. */
	CHECK_EQ(post(100, -1, 0, ~0ULL, BUFFERS, 8), 0);
	CHECK_EQ(post(101, -1, 5, 1 << 4, BUFFERS, 8), 0);
	CHECK_EQ(run(2, heap_ga(&r[2], SOURCE), 8, 5), ACP_ST_OK);
	CHECK_EQ(state(100), ACP_RESULT_DONE);
	CHECK_EQ(run(2, heap_ga(&r[2], SOURCE), 8, 5 | 1 << 4), ACP_ST_OK);
	CHECK_EQ(state(101), ACP_RESULT_DONE);
}

/* Many are kept: they are listed for the mask in several turns, and stay in order. */
TEST(A4_a_mask_is_learned_for_many_messages)
{
	struct acp_match learns = usual;
	uint32_t i;

	learns.flags = ACP_MATCH_LEARN;
	learns.masks = 1;
	memset(learns.mask, 0, sizeof(learns.mask));
	learns.mask[0] = ~0ULL;
	begin_like(NULL, &learns, 0);
	for (i = 0; i < KEPT; i++)
		CHECK_EQ(run(0, heap_ga(&r[0], SOURCE), 8, i), ACP_ST_OK);
	/* Those with an even number of the last 16, and then with odd ones. */
	for (i = 0; i < 16; i++) {
		CHECK_EQ(post(i, i % 3 ? -1 : 0, (KEPT - 16) | i / 8, 14, BUFFERS, 8), 0);
		CHECK_EQ(state(i), ACP_RESULT_KEPT);
		CHECK_EQ(result(i)->tag, KEPT - 16 + i % 8 * 2 + i / 8);
	}
	CHECK_EQ(post(100, 0, KEPT - 16, 14, BUFFERS, 8), 0);
	CHECK_EQ(state(100), 0);
}

/* The calls with wrong arguments. */
TEST(A4_wrong_lists_have_named_ends)
{
	static const struct acp_match zero;
	struct acp_match a;
	struct acp_post p;

	begin(NULL);
#define REFUSED(field, value) \
	do { \
		a = usual; \
		a.field = value; \
		CHECK_EQ(create(&a), -EINVAL); \
	} while (0)
	REFUSED(flags, 2);
	REFUSED(flags, ACP_MATCH_LEARN);
	REFUSED(reserved, 1);
	REFUSED(receives, 0);
	REFUSED(receives, ACP_RECEIVES_MAX + 1);
	REFUSED(messages, 0);
	REFUSED(messages, ACP_RECEIVES_MAX + 1);
	REFUSED(masks, 0);
	REFUSED(masks, ACP_MASKS_MAX + 1);
	REFUSED(mask[1], 0);
	REFUSED(mask[2], 1);
	REFUSED(mask[ACP_MASKS_MAX - 1], 1);
	REFUSED(bytes, 7);
	REFUSED(bytes, ~7ULL);
#undef REFUSED
	a = usual;
	a.memory = heap_ga(&r[0], 0);
	a.mailbox = heap_ga(&r[1], 0);
	a.results = heap_ga(&r[1], 0);
	CHECK(ioctl(r[1].fd, ACP_IOC_MATCH, &a) && errno == EINVAL);
	/* With fewer masks, "list" would be elsewhere. */
	a = usual;
	a.size = 96;
	CHECK(ioctl(r[1].fd, _IOC(_IOC_READ | _IOC_WRITE, ACP_IOC_MAGIC, _IOC_NR(ACP_IOC_MATCH),
				  96), &a) && errno == EINVAL);
	a = zero;
	CHECK(ioctl(r[1].fd, ACP_IOC_MATCH, &a) && errno == EINVAL);
	CHECK_EQ(post(RECEIVES, -1, 0, 0, BUFFERS, 8), -EINVAL);
	CHECK_EQ(post(0, RANKS, 0, 0, BUFFERS, 8), -EINVAL);
	CHECK_EQ(post(0, -1, 0, 1, BUFFERS, 8), -EINVAL);
	CHECK_EQ(post(0, -1, 0, 0, BUFFERS, ~0ULL), -EINVAL);
	p = (struct acp_post){ .room = 8, .buffer = heap_ga(&r[0], 0) };
	CHECK_EQ(do_post(&p), -EINVAL);
	p = (struct acp_post){ .flags = 8 };
	CHECK_EQ(do_post(&p), -EINVAL);
	p = (struct acp_post){ .flags = ACP_POST_TAKE | ACP_POST_PROBE };
	CHECK_EQ(do_post(&p), -EINVAL);
	CHECK_EQ(unpost(0, 0), -EINVAL);
	CHECK_EQ(unpost(4, 0), -EINVAL);
	CHECK_EQ(unpost(ACP_UNPOST_LIST, 1), -EINVAL);
	CHECK_EQ(unpost(ACP_UNPOST_MESSAGE, 0), -ENOENT);
	CHECK_EQ(unpost(ACP_UNPOST_MESSAGE, ~0U), -ENOENT);
	CHECK_EQ(unpost(ACP_UNPOST_RECEIVE, ~0U), -ENOENT);
	list++;
	CHECK_EQ(post(0, -1, 0, 0, BUFFERS, 8), -ENOENT);
	CHECK_EQ(unpost(ACP_UNPOST_LIST, 0), -ENOENT);
	CHECK_EQ(unpost(ACP_UNPOST_RECEIVE, 0), -ENOENT);
}

/* The mailbox names no list, or that of another mailbox: there is no room. */
TEST(A4_a_list_that_does_not_exist_has_no_room)
{
	begin(NULL);
	memcpy(r[1].heap + 512, r[1].heap, sizeof(struct acp_mailbox));
	mailbox()->list = list + 1;
	CHECK_EQ(run(0, heap_ga(&r[0], SOURCE), 8, 1), ACP_ST_AGAIN);
	CHECK_EQ(run(0, heap_ga(&r[0], SOURCE), 80000, 1), ACP_ST_AGAIN);
	CHECK_EQ(run(1, heap_ga(&r[1], SOURCE), 8, 1), ACP_ST_AGAIN);
	mailbox()->list = ~0U;
	CHECK_EQ(run(0, heap_ga(&r[0], SOURCE), 8, 1), ACP_ST_AGAIN);
	mailbox()->list = list;
	CHECK_EQ(run(0, heap_ga(&r[0], SOURCE), 8, 1), ACP_ST_OK);
	CHECK_EQ(unpost(ACP_UNPOST_LIST, 0), 0);
	CHECK_EQ(run(0, heap_ga(&r[0], SOURCE), 8, 1), ACP_ST_AGAIN);
	rank_works(&r[1]);
}

/* Its memory, results or a buffer vanish: both ends know, and only this list is harmed. */
TEST(A4_a_list_whose_memory_vanishes_harms_itself_only)
{
	struct acp_match a = usual;
	struct memory m;

	begin(NULL);
	memory_open(&r[1], &m, 1 << 20);
	CHECK_EQ(unpost(ACP_UNPOST_LIST, 0), 0);
	a.bytes = 1 << 19;
	a.mailbox = heap_ga(&r[1], MAILBOX);
	a.results = memory_ga(&m, 1 << 19);
	a.memory = memory_ga(&m, 0);
	CHECK_EQ(ioctl(r[1].fd, ACP_IOC_MATCH, &a), 0);
	list = a.list;
	mailbox()->list = list;
	CHECK_EQ(post(0, -1, 1, 0, BUFFERS, 8), 0);
	CHECK_EQ(rank_unregister(&r[1], m.reg.key, NULL), 0);
	CHECK_EQ(run(0, heap_ga(&r[0], SOURCE), 8, 1), ACP_ST_OK);
	CHECK_EQ(run(0, heap_ga(&r[0], SOURCE), 8, 1), ACP_ST_STAG);
	CHECK_EQ(run(0, heap_ga(&r[0], SOURCE), 30000, 1), ACP_ST_STAG);
	CHECK_EQ(run(1, heap_ga(&r[1], SOURCE), 30000, 1), ACP_ST_STAG);
	CHECK_EQ(unpost(ACP_UNPOST_LIST, 0), 0);
	rank_works(&r[1]);
}

TEST(A4_a_buffer_that_vanishes_ends_both_ends)
{
	static const uint64_t lengths[] = { 8, 1000, 100000 };
	struct memory m;
	uint32_t i, by;

	begin(NULL);
	for (i = 0; i < 3; i++)
		for (by = 0; by < 2; by++) {
			struct acp_post p = { .flags = ACP_POST_ANY_RANK, .room = 1 << 20 };

			memory_open(&r[1], &m, 1 << 20);
			p.buffer = memory_ga(&m, 0);
			result(0)->state = 0;
			CHECK_EQ(do_post(&p), 0);
			CHECK_EQ(rank_unregister(&r[1], m.reg.key, NULL), 0);
			CHECK_EQ(run(by, heap_ga(&r[by], SOURCE), lengths[i], 0), ACP_ST_STAG);
			CHECK_EQ(state(0), ACP_RESULT_FAILED);
			CHECK_EQ(result(0)->status, ACP_ST_STAG);
		}
	CHECK_EQ(unpost(ACP_UNPOST_LIST, 0), 0);
}

/* ---- senders that fail half-way ---- */

/* A message with a receive, and one that is kept and then matched. */
TEST(A4_P5_receives_end_when_the_sender_is_unplugged)
{
	const uint64_t size = 1 << 19;
	struct patience p;
	uint64_t ticket;

	begin_like("rate 5mbit", &usual, 1000);
	CHECK_EQ(post(0, 0, 1, 0, BUFFERS, size), 0);
	send(0, heap_ga(&r[0], SOURCE), size, 1);
	ticket = send(0, heap_ga(&r[0], SOURCE), size, 2);
	/* The second one is arriving: a receive matches it. */
	p = patience_begin(PATIENCE_SOON);
	while (!state(0))
		CHECK(!patience_over(&p));
	sleep_ms(100);
	CHECK_EQ(post(1, 0, 2, 0, BUFFERS, size), 0);
	CHECK_EQ(state(1), 0);
	nodes_run(&n, NODES_HUB, "ip link set port0.0 down");
	CHECK_EQ(unpost(ACP_UNPOST_LIST, 0), -EBUSY);
	p = patience_begin(PATIENCE_SOON);
	while (!state(1))
		CHECK(!patience_over(&p));
	CHECK(rank_await(&r[0], ticket, PATIENCE_SOON) != ACP_ST_OK);
	CHECK_EQ(state(0), ACP_RESULT_DONE);
	CHECK_EQ(state(1), ACP_RESULT_FAILED);
	CHECK_EQ(result(1)->status, ACP_ST_PEER);
	await_list_empty();
}

/* The process with the list is gone, with messages on their way to it. */
TEST(A4_P4_a_rank_leaves_with_messages_arriving)
{
	const uint64_t size = 1 << 19;
	uint64_t ticket;

	begin("rate 5mbit");
	CHECK_EQ(post(0, 0, 1, 0, BUFFERS, size), 0);
	send(0, heap_ga(&r[0], SOURCE), size, 1);
	ticket = send(2, heap_ga(&r[2], SOURCE), size, 2);
	sleep_ms(100);
	rank_close(&r[1]);
	nodes_impair_all(&n, "");
	CHECK(rank_await(&r[2], ticket, PATIENCE_SOON) != ACP_ST_OK);
	rank_works(&r[0]);
}

/* ---- memory ---- */

TEST(A4_lists_are_bounded_and_give_back_what_they_take)
{
	struct acp_match a = usual;
	uint32_t numbers[ACP_LISTS_MAX], i, round;
	long long limit;
	int err;

	begin(NULL);
	numbers[0] = list;
	for (round = 0; round < 2; round++) {
		for (i = 1; i < ACP_LISTS_MAX; i++) {
			a = usual;
			CHECK_EQ(create(&a), 0);
			numbers[i] = a.list;
			CHECK(a.list > numbers[i - 1]);
		}
		CHECK_EQ(create(&a), -ENOSPC);
		for (i = 1; i < ACP_LISTS_MAX; i++) {
			list = numbers[i];
			CHECK_EQ(unpost(ACP_UNPOST_LIST, 0), 0);
		}
	}
	limit = limit_get("user_memory");
	limit_set("user_memory", 1);
	a = usual;
	err = create(&a);
	limit_set("user_memory", (unsigned long)limit);
	CHECK_EQ(err, -EDQUOT);
	CHECK_EQ(a.limit, ACP_LIMIT_USER_MEMORY);
}
