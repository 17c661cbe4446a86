// SPDX-License-Identifier: MIT
/*
 * A4: messages whose bytes are not sent before a receive has matched them (ACP_SQE_RENDEZVOUS):
 * between nodes and within one, over bad networks, with senders and receivers that go at any step.
 */
#include "../dev/isolated.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "lists.h"

static const size_t sizes[] = { 0, 1, 8, 9, 128, 129, 1400, 1500, 5000, 70001, 300000 };

#define SIZES	(sizeof(sizes) / sizeof(sizes[0]))

static uint64_t ask(uint32_t by, uint64_t size, uint64_t tag)
{
	fill(r[by].heap + SOURCE, size, tag);
	return send_like(by, heap_ga(&r[by], SOURCE), size, tag, ACP_SQE_RENDEZVOUS);
}

/* The message is known at the list, where nothing of its bytes is. */
static void await_asked(int rank, uint64_t tag, uint64_t size)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	struct acp_post found;

	while (look(ACP_POST_PROBE, rank, tag, &found)) {
		CHECK(!patience_over(&p));
		sleep_ms(1);
	}
	CHECK_EQ(found.message_size, size);
}

/* ... and some time later no more. */
static void await_gone(int rank, uint64_t tag)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	struct acp_post found;

	while (!look(ACP_POST_PROBE, rank, tag, &found)) {
		CHECK(!patience_over(&p));
		sleep_ms(10);
	}
}

/* Receive 7 has got it in its buffer, and no more of it than there is room for. */
static void check_received(uint32_t by, size_t size, uint64_t tag, size_t room)
{
	const size_t wanted = size < room ? size : room;
	const char *there = r[1].heap + BUFFERS;

	await_state(7, ACP_RESULT_DONE);
	check(7, by, size, tag);
	CHECK(filled(there, wanted, tag));
	CHECK_EQ(there[wanted], 0x55);
}

static void one(uint32_t by, size_t size, size_t room, bool expected)
{
	const long long asked = nodes_counter(&n, 1, "messages_asked");
	static uint64_t tag = 5000;
	uint64_t ticket = 0;

	tag++;
	memset(r[1].heap + BUFFERS, 0x55, size + 64);
	if (!expected) {
		ticket = ask(by, size, tag);
		await_asked((int)by, tag, size);
		CHECK(rank_completed(&r[by]) < ticket);
	}
	CHECK_EQ(post(7, tag % 2 ? -1 : (int)by, tag, 0, BUFFERS, room), 0);
	if (expected)
		ticket = ask(by, size, tag);
	CHECK_EQ(rank_await(&r[by], ticket, PATIENCE_WORK), ACP_ST_OK);
	check_received(by, size, tag, room);
	CHECK_EQ(nodes_counter(&n, 1, "messages_asked"), asked + 1);
}

static void all(void)
{
	uint32_t by;
	size_t i;

	for (i = 0; i < SIZES; i++)
		for (by = 0; by < 2; by++) {
			one(by, sizes[i], HEAP / 4, true);
			one(by, sizes[i], HEAP / 4, false);
			one(by, sizes[i], sizes[i] / 2, false);
		}
	CHECK_EQ(unpost(ACP_UNPOST_LIST, 0), 0);
}

TEST(A4_bytes_of_a_message_wait_for_a_receive)
{
	begin(NULL);
	all();
}

TEST(A4_bytes_of_a_message_wait_for_a_receive_over_a_bad_network)
{
	begin_like("loss 5% duplicate 5% delay 1ms 1ms", &usual, 60000);
	all();
}

/* Both processes may sleep: the nodes do it all. */
TEST(A4_no_process_takes_part)
{
	uint64_t ticket;

	begin(NULL);
	memset(r[1].heap + BUFFERS, 0x55, 300064);
	ticket = ask(0, 300000, 9);
	await_asked(0, 9, 300000);
	CHECK_EQ(post(7, 0, 9, 0, BUFFERS, HEAP / 4), 0);
	/* Neither rank makes a system call from here on. */
	while (!state(7) || rank_completed(&r[0]) < ticket)
		sleep_ms(1);
	check_received(0, 300000, 9, HEAP / 4);
	CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_SOON), ACP_ST_OK);
}

/* It takes an entry of the list, but none of its memory. */
TEST(A4_a_message_may_be_longer_than_the_memory_of_the_list)
{
	struct acp_match small = usual;
	struct acp_post p;
	uint64_t ticket;

	small.bytes = 4096;
	small.messages = 2;
	begin_like(NULL, &small, 0);
	ticket = ask(0, 300000, 1);
	await_asked(0, 1, 300000);
	CHECK_EQ(look(ACP_POST_TAKE, 0, 1, &p), -EMSGSIZE);
	/* The other entry is free. */
	CHECK_EQ(run(2, heap_ga(&r[2], SOURCE), 100, 2), ACP_ST_OK);
	CHECK_EQ(rank_await(&r[2], ask(2, 100, 3), PATIENCE_SOON), ACP_ST_AGAIN);
	memset(r[1].heap + BUFFERS, 0x55, 300064);
	CHECK_EQ(post(7, 0, 1, 0, BUFFERS, HEAP / 4), 0);
	CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_WORK), ACP_ST_OK);
	check_received(0, 300000, 1, HEAP / 4);
}

/* An owner that takes it before it has a buffer gets it in the memory of the list. */
static void take(uint32_t by, size_t size, uint64_t ticket)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	struct acp_post found;

	result(3)->state = 0;
	for (;;) {
		found = (struct acp_post){
			.flags = ACP_POST_TAKE | ACP_POST_ANY_RANK, .tag = 4, .result = 3,
		};
		if (!do_post(&found))
			break;
		CHECK(!patience_over(&p));
		sleep_ms(1);
	}
	CHECK_EQ(rank_await(&r[by], ticket, PATIENCE_SOON), ACP_ST_OK);
	await_state(3, ACP_RESULT_KEPT);
	check(3, by, size, 4);
	CHECK(filled(r[1].heap + MEMORY + result(3)->at, size, 4));
	CHECK_EQ(unpost(ACP_UNPOST_MESSAGE, result(3)->message), 0);
}

static void taken(uint32_t by, size_t size)
{
	const uint64_t ticket = ask(by, size, 4);

	await_asked((int)by, 4, size);
	take(by, size, ticket);
}

TEST(A4_a_message_that_waits_can_be_taken)
{
	begin(NULL);
	taken(0, 100);
	taken(0, 70001);
	taken(1, 100);
	taken(1, 70001);
	CHECK_EQ(unpost(ACP_UNPOST_LIST, 0), 0);
}

/* Room for its bytes comes late: a thread that looks for it is woken. */
TEST(A4_a_message_that_waits_can_be_taken_when_there_is_room)
{
	struct acp_match small = usual;
	struct acp_post found;
	uint64_t before, ticket;

	small.bytes = 4096;
	begin_like(NULL, &small, 0);
	CHECK_EQ(run(0, heap_ga(&r[0], SOURCE), 4000, 1), ACP_ST_OK);
	result(0)->state = 0;
	CHECK_EQ(post(0, 0, 1, 0, BUFFERS, 8), 0);
	CHECK_EQ(state(0), ACP_RESULT_KEPT);
	ticket = ask(0, 2000, 4);
	await_asked(0, 4, 2000);
	CHECK_EQ(look(ACP_POST_TAKE, 0, 4, &found), -EAGAIN);
	before = complete();
	CHECK_EQ(unpost(ACP_UNPOST_MESSAGE, result(0)->message), 0);
	CHECK(complete() > before);
	take(0, 2000, ticket);
}

/* ---- order ---- */

#define MANY	200U

/* Messages of all sizes, some of which wait for their receive: they are matched in their order. */
static void *send_many(void *arg)
{
	const uint32_t by = *(const uint32_t *)arg;
	uint64_t ticket = 0;
	uint32_t i;

	for (i = 0; i < MANY; i++) {
		const size_t size = 8 + i % 7 * 700;
		uint64_t *number = (uint64_t *)(void *)(r[by].heap + SOURCE + i % 64 * 8192);

		/* The one 64 messages ago has been sent. */
		if (i >= 64)
			CHECK_EQ(rank_await(&r[by], ticket - 63, PATIENCE_WORK), ACP_ST_OK);
		*number = i;
		ticket = send_like(by, heap_ga(&r[by], SOURCE + i % 64 * 8192), size, 3,
				   i % 3 ? ACP_SQE_RETRY : ACP_SQE_RETRY | ACP_SQE_RENDEZVOUS);
	}
	CHECK_EQ(rank_await(&r[by], ticket, PATIENCE_WORK), ACP_ST_OK);
	return NULL;
}

static uint64_t number_of(uint32_t receive)
{
	const bool kept = state(receive) == ACP_RESULT_KEPT;
	const char *at = kept ? r[1].heap + MEMORY + result(receive)->at :
				r[1].heap + BUFFERS + (receive - 1) * 8192;
	const uint64_t number = *(const uint64_t *)(const void *)at;

	if (kept)
		CHECK_EQ(unpost(ACP_UNPOST_MESSAGE, result(receive)->message), 0);
	else
		CHECK_EQ(state(receive), ACP_RESULT_DONE);
	return number;
}

static void in_order(const char *netem, const struct acp_match *like)
{
	const uint32_t senders[] = { 0, 1, 2 };
	uint64_t next[RANKS] = { 0 }, number;
	pthread_t threads[RANKS];
	uint32_t i, k;

	begin_like(netem, like, 60000);
	for (i = 0; i < RANKS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, send_many, (void *)&senders[i]), 0);
	/* Four at a time. */
	for (i = 0; i < RANKS * MANY; i += 4) {
		for (k = 1; k <= 4; k++)
			CHECK_EQ(post(k, -1, 3, 0, BUFFERS + (k - 1) * 8192, 8192), 0);
		for (k = 1; k <= 4; k++) {
			struct patience p = patience_begin(PATIENCE_WORK);

			while (!state(k))
				CHECK(!patience_over(&p));
			number = number_of(k);
			if (number != next[result(k)->rank])
				FAIL("rank %u: %llu, not %llu", result(k)->rank,
				     (unsigned long long)number,
				     (unsigned long long)next[result(k)->rank]);
			next[result(k)->rank]++;
		}
	}
	for (i = 0; i < RANKS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK_EQ(unpost(ACP_UNPOST_LIST, 0), 0);
}

TEST(A4_messages_that_wait_keep_their_order)
{
	in_order(NULL, &usual);
}

TEST(A4_messages_that_wait_keep_their_order_over_a_bad_network)
{
	in_order("loss 2% duplicate 5% delay 500us 500us", &usual);
}

TEST(A4_messages_that_wait_keep_their_order_in_a_small_list)
{
	struct acp_match small = usual;

	small.messages = 5;
	small.bytes = 8192;
	in_order("delay 200us", &small);
}

/* Commands that are ordered behind such a message start when its bytes are there. */
TEST(A4_what_is_ordered_behind_waits_for_the_bytes)
{
	struct acp_sqe put = { .op = ACP_OP_COPY, .size = 8 };
	uint64_t *word, ticket;

	begin(NULL);
	word = (uint64_t *)(void *)(r[1].heap + MEMORY - 64);
	*word = 0;
	*(uint64_t *)(void *)r[0].heap = 1;
	ticket = ask(0, 5000, 9);
	put.dst = heap_ga(&r[1], MEMORY - 64);
	put.src = heap_ga(&r[0], 0);
	put.order = ticket;
	rank_submit(&r[0], &put);
	await_asked(0, 9, 5000);
	sleep_ms(50);
	CHECK_EQ(__atomic_load_n(word, __ATOMIC_ACQUIRE), 0);
	memset(r[1].heap + BUFFERS, 0x55, 8192);
	CHECK_EQ(post(7, 0, 9, 0, BUFFERS, SLOT * 4), 0);
	CHECK_EQ(rank_await(&r[0], ticket + 1, PATIENCE_SOON), ACP_ST_OK);
	CHECK_EQ(__atomic_load_n(word, __ATOMIC_ACQUIRE), 1);
	check_received(0, 5000, 9, SLOT * 4);
}

/*
 * One that was refused, and then waits for its receive, does not hold back others behind it: those
 * for which there is room.
 */
static void behind_one_that_waits(uint32_t by)
{
	struct acp_match small = usual;
	uint64_t tickets[3];
	uint32_t i;

	small.messages = 2;
	begin_like(NULL, &small, 60000);
	for (i = 0; i < 2; i++)
		CHECK_EQ(run(2, heap_ga(&r[2], SOURCE), 8, 100 + i), ACP_ST_OK);
	for (i = 0; i < 3; i++)
		tickets[i] = send_like(by, heap_ga(&r[by], SOURCE), 8, i, i ? ACP_SQE_RETRY :
				       ACP_SQE_RETRY | ACP_SQE_RENDEZVOUS);
	sleep_ms(20);
	CHECK_EQ(nodes_counter(&n, 1, "messages_asked"), 0);
	/* Room for the first, and then for the second. */
	for (i = 0; i < 2; i++) {
		CHECK_EQ(post(i, 2, 100 + i, 0, BUFFERS, 8), 0);
		CHECK_EQ(state(i), ACP_RESULT_KEPT);
		CHECK_EQ(unpost(ACP_UNPOST_MESSAGE, result(i)->message), 0);
	}
	CHECK(rank_completed(&r[by]) < tickets[0]);
	CHECK_EQ(post(2, (int)by, 2, 0, BUFFERS, 8), 0);
	/* Well before the time-out of 60 s. */
	await_state(2, ACP_RESULT_DONE);
	CHECK_EQ(post(3, (int)by, 0, 0, BUFFERS, 8), 0);
	CHECK_EQ(rank_await(&r[by], tickets[2], PATIENCE_SOON), ACP_ST_OK);
}

TEST(A4_a_message_that_waits_does_not_hold_back_others)
{
	behind_one_that_waits(0);
}

TEST(A4_a_message_that_waits_does_not_hold_back_others_of_its_node)
{
	behind_one_that_waits(1);
}

/* What ACP_CQ_ENDED says of a ticket. */
static uint8_t shown(const struct rank *rank, uint64_t ticket)
{
	return __atomic_load_n(&rank->cq->status[ticket & (rank->join.depth - 1)],
			       __ATOMIC_ACQUIRE);
}

/* The sender of a message that has ended, and others before it wait, need not wait for these. */
static void end_is_seen(uint32_t by)
{
	const size_t size = 70001;
	struct patience p;
	uint64_t tickets[2];

	begin(NULL);
	tickets[0] = ask(by, size, 1);
	tickets[1] = ask(by, size, 2);
	await_asked((int)by, 2, size);
	CHECK(!(shown(&r[by], tickets[1]) & ACP_CQ_ENDED));
	CHECK_EQ(post(7, (int)by, 2, 0, BUFFERS, size), 0);
	await_state(7, ACP_RESULT_DONE);
	p = patience_begin(PATIENCE_SOON);
	while (shown(&r[by], tickets[1]) != (ACP_ST_OK | ACP_CQ_ENDED))
		CHECK(!patience_over(&p));
	CHECK(!(shown(&r[by], tickets[0]) & ACP_CQ_ENDED));
	CHECK(rank_completed(&r[by]) < tickets[0]);
	CHECK_EQ(post(8, (int)by, 1, 0, BUFFERS, size), 0);
	CHECK_EQ(rank_await(&r[by], tickets[1], PATIENCE_SOON), ACP_ST_OK);
	CHECK_EQ(shown(&r[by], tickets[0]), ACP_ST_OK);
	CHECK_EQ(shown(&r[by], tickets[1]), ACP_ST_OK);
}

TEST(A4_the_end_of_a_message_is_seen_behind_one_that_waits)
{
	end_is_seen(0);
}

TEST(A4_the_end_of_a_message_is_seen_behind_one_that_waits_on_its_node)
{
	end_is_seen(1);
}

/*
 * What has ended and what waits use the same slots of the completion area: what is ordered behind
 * an early one learns of its failure, or of its success, all the same.
 */
static void slot_is_shown(uint32_t by, bool fails)
{
	const struct acp_sqe bad = { .op = ACP_OP_COPY, .size = 8 };
	struct acp_sqe put = { .op = ACP_OP_COPY, .size = 8 };
	struct patience p = patience_begin(PATIENCE_WORK);
	uint64_t first, waits, last, ends;

	begin(NULL);
	put.dst = heap_ga(&r[by], SOURCE + 65536);
	put.src = heap_ga(&r[by], SOURCE);
	first = rank_submit(&r[by], fails ? &bad : &put);
	CHECK_EQ(rank_await(&r[by], first, PATIENCE_SOON) == ACP_ST_OK, !fails);
	waits = ask(by, 5000, 1);
	put.seen = first - 1;
	put.order = waits;
	last = rank_submit(&r[by], &put);
	put.seen = 0;
	put.order = 0;
	/* A failure that "last" must not notice. */
	rank_submit(&r[by], &bad);
	while (r[by].sq->tail < first + r[by].join.depth - 1)
		rank_submit(&r[by], &put);
	ends = ask(by, 5000, 2);
	CHECK_EQ(ends, first + r[by].join.depth);
	await_asked((int)by, 2, 5000);
	CHECK_EQ(post(7, (int)by, 2, 0, BUFFERS, 5000), 0);
	await_state(7, ACP_RESULT_DONE);
	while (shown(&r[by], ends) != (ACP_ST_OK | ACP_CQ_ENDED))
		CHECK(!patience_over(&p));
	CHECK_EQ(post(8, (int)by, 1, 0, BUFFERS, 5000), 0);
	CHECK_EQ(rank_await(&r[by], last, PATIENCE_SOON), fails ? ACP_ST_ORDER : ACP_ST_OK);
	CHECK_EQ(rank_await(&r[by], ends, PATIENCE_SOON), ACP_ST_OK);
}

TEST(A4_the_end_that_is_seen_hides_no_failure)
{
	slot_is_shown(0, true);
}

TEST(A4_the_end_that_is_seen_is_no_failure)
{
	slot_is_shown(0, false);
}

TEST(A4_the_end_that_is_seen_on_its_node_is_no_failure)
{
	slot_is_shown(1, false);
}

/* What is ordered behind one that is refused ends, though nothing else happens. */
TEST(A4_what_is_ordered_behind_ends_with_the_list)
{
	struct acp_sqe put = { .op = ACP_OP_COPY, .size = 8 };
	uint64_t ticket;

	begin(NULL);
	ticket = ask(1, 5000, 9);
	put.dst = heap_ga(&r[1], MEMORY - 64);
	put.src = heap_ga(&r[1], 0);
	put.order = ticket;
	rank_submit(&r[1], &put);
	await_asked(1, 9, 5000);
	CHECK_EQ(unpost(ACP_UNPOST_LIST, 0), 0);
	while (rank_completed(&r[1]) < ticket + 1)
		sleep_ms(1);
	CHECK_EQ(rank_await(&r[1], ticket, PATIENCE_SOON), ACP_ST_AGAIN);
	CHECK_EQ(rank_await(&r[1], ticket + 1, PATIENCE_SOON), ACP_ST_ORDER);
}

TEST(A4_bytes_of_a_message_wait_for_a_receive_encrypted)
{
	const struct acp_join wish = { .heap_size = HEAP, .integrity = ACP_INTEGRITY_AEAD };

	nodes_open(&n, RANKS, 1, true);
	nodes_ranks_like(&n, r, RANKS, &wish);
	open_like(&usual);
	all();
}

/* ---- other receivers ---- */

/* A mailbox without a list has no receives. */
TEST(A4_a_mailbox_without_a_list_refuses_it)
{
	uint32_t by;

	begin(NULL);
	memset(mailbox(), 0, 4096);
	mailbox()->units = 400;
	mailbox()->room = ACP_MAILBOX_ROOM(0, 400);
	for (by = 0; by < 2; by++)
		CHECK_EQ(rank_await(&r[by], ask(by, 1000, 77), PATIENCE_SOON), ACP_ST_OP);
	CHECK_EQ(mailbox()->room, ACP_MAILBOX_ROOM(0, 400));
	mailbox()->list = list + 1;
	for (by = 0; by < 2; by++)
		CHECK_EQ(rank_await(&r[by], ask(by, 1000, 77), PATIENCE_SOON), ACP_ST_AGAIN);
}

/* A node that only forwards a message cannot wait: it is as one without the flag. */
TEST(A4_a_source_on_a_third_node_does_not_wait)
{
	begin(NULL);
	fill(r[2].heap + SOURCE, 1000, 5);
	CHECK_EQ(rank_await(&r[0], send_like(0, heap_ga(&r[2], SOURCE), 1000, 5,
					     ACP_SQE_RENDEZVOUS), PATIENCE_SOON), ACP_ST_OK);
	CHECK_EQ(nodes_counter(&n, 1, "messages_asked"), 0);
	CHECK_EQ(nodes_counter(&n, 1, "messages_kept"), 1);
}

TEST(A4_wrong_addresses_end_at_once)
{
	struct acp_sqe e = { .op = ACP_OP_COPY, .flags = ACP_SQE_RENDEZVOUS, .size = 8 };
	uint32_t by;

	begin(NULL);
	e.dst = heap_ga(&r[1], MAILBOX);
	e.src = heap_ga(&r[0], SOURCE);
	CHECK_EQ(rank_await(&r[0], rank_submit(&r[0], &e), PATIENCE_SOON), ACP_ST_OP);
	for (by = 0; by < 2; by++) {
		e.op = ACP_OP_SEND;
		e.src = heap_ga(&r[by], HEAP);
		CHECK_EQ(rank_await(&r[by], rank_submit(&r[by], &e), PATIENCE_SOON),
			 ACP_ST_RANGE);
		e.src = heap_ga(&r[by], SOURCE);
		e.dst = heap_ga(&r[1], HEAP);
		CHECK_EQ(rank_await(&r[by], rank_submit(&r[by], &e), PATIENCE_SOON),
			 ACP_ST_RANGE);
		e.dst = heap_ga(&r[1], MAILBOX);
	}
	/* The source goes while the message waits. */
	for (by = 0; by < 2; by++) {
		struct memory m;
		uint64_t ticket;

		memory_open(&r[by], &m, 1 << 20);
		ticket = send_like(by, memory_ga(&m, 0), 100000, 1, ACP_SQE_RENDEZVOUS);
		await_asked((int)by, 1, 100000);
		CHECK_EQ(rank_unregister(&r[by], m.reg.key, NULL), 0);
		CHECK_EQ(post(0, (int)by, 1, 0, BUFFERS, 1 << 20), 0);
		CHECK_EQ(rank_await(&r[by], ticket, PATIENCE_SOON), ACP_ST_STAG);
		/* The receive gets the next one. */
		ticket = ask(by, 300, 1);
		CHECK_EQ(rank_await(&r[by], ticket, PATIENCE_SOON), ACP_ST_OK);
		await_state(0, ACP_RESULT_DONE);
		check(0, by, 300, 1);
	}
}

/* ---- ranks and nodes that go ---- */

/* The list goes: those that wait are refused. */
TEST(A4_messages_that_wait_end_with_the_list)
{
	uint64_t tickets[RANKS];
	uint32_t by;

	begin(NULL);
	for (by = 0; by < RANKS; by++) {
		tickets[by] = ask(by, 5000, 1);
		await_asked((int)by, 1, 5000);
	}
	CHECK_EQ(unpost(ACP_UNPOST_LIST, 0), 0);
	for (by = 0; by < RANKS; by++)
		CHECK_EQ(rank_await(&r[by], tickets[by], PATIENCE_SOON), ACP_ST_AGAIN);
}

/* Those that try again do so until their time is over, and no longer. */
TEST(A4_messages_that_try_again_end_although_the_list_has_gone)
{
	uint64_t tickets[RANKS];
	uint32_t by;

	begin_like(NULL, &usual, 2000);
	for (by = 0; by < RANKS; by++) {
		fill(r[by].heap + SOURCE, 5000, 1);
		tickets[by] = send_like(by, heap_ga(&r[by], SOURCE), 5000, 1,
					ACP_SQE_RENDEZVOUS | ACP_SQE_RETRY);
		await_asked((int)by, 1, 5000);
	}
	CHECK_EQ(unpost(ACP_UNPOST_LIST, 0), 0);
	for (by = 0; by < RANKS; by++)
		CHECK_EQ(rank_await(&r[by], tickets[by], PATIENCE_WORK), ACP_ST_AGAIN);
}

TEST(A4_P4_messages_that_wait_end_with_the_rank)
{
	uint64_t tickets[RANKS];
	uint32_t by;

	begin(NULL);
	for (by = 0; by < RANKS; by += 2) {
		tickets[by] = ask(by, 5000, 1);
		await_asked((int)by, 1, 5000);
	}
	rank_close(&r[1]);
	for (by = 0; by < RANKS; by += 2)
		CHECK_EQ(rank_await(&r[by], tickets[by], PATIENCE_SOON), ACP_ST_RANK);
	rank_works(&r[0]);
}

/* A sender goes: the receive that its message has matched gets the next one. */
static void sender_goes(uint32_t by, uint32_t next)
{
	ask(by, 5000, 1);
	await_asked((int)by, 1, 5000);
	rank_close(&r[by]);
	memset(r[1].heap + BUFFERS, 0x55, 8192);
	CHECK_EQ(post(7, -1, 1, 0, BUFFERS, 8192), 0);
	CHECK_EQ(rank_await(&r[next], ask(next, 3000, 1), PATIENCE_SOON), ACP_ST_OK);
	check_received(next, 3000, 1, 8192);
	CHECK_EQ(unpost(ACP_UNPOST_LIST, 0), 0);
}

TEST(A4_P4_a_receive_outlives_the_sender_that_it_has_matched)
{
	begin(NULL);
	sender_goes(0, 2);
}

/* Several of them, one after the other, before one that lives. */
TEST(A4_P4_a_receive_outlives_many_messages_of_a_sender)
{
	uint32_t i;

	begin(NULL);
	for (i = 0; i < 20; i++)
		ask(0, 5000 + i, 1);
	ask(0, 5020, 2);
	await_asked(0, 2, 5020);
	CHECK_EQ(nodes_counter(&n, 1, "messages_asked"), 21);
	sender_goes(0, 2);
}

/* The network goes while a message waits: the sender learns of it within the time-out. */
TEST(A4_P5_a_message_that_waits_ends_when_the_receiver_is_unplugged)
{
	uint64_t ticket;

	begin_like(NULL, &usual, 1000);
	ticket = ask(0, 5000, 1);
	await_asked(0, 1, 5000);
	nodes_run(&n, NODES_HUB, "ip link set port0.1 down");
	CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_SOON), ACP_ST_TIMEOUT);
}

/* ... or just when it has been granted its receive, which then gets another one. */
TEST(A4_P5_a_receive_outlives_a_sender_that_is_unplugged)
{
	begin_like(NULL, &usual, 1000);
	ask(0, 5000, 1);
	await_asked(0, 1, 5000);
	nodes_run(&n, NODES_HUB, "ip link set port0.0 down");
	memset(r[1].heap + BUFFERS, 0x55, 8192);
	CHECK_EQ(post(7, -1, 1, 0, BUFFERS, 8192), 0);
	CHECK_EQ(unpost(ACP_UNPOST_RECEIVE, 7), -ENOENT);
	CHECK_EQ(rank_await(&r[2], ask(2, 3000, 1), PATIENCE_SOON), ACP_ST_OK);
	check_received(2, 3000, 1, 8192);
	await_list_empty();
}

/* Many messages of it wait: none of them holds up the receive for a time-out. */
TEST(A4_P5_a_receive_outlives_many_messages_of_a_sender_that_is_unplugged)
{
	uint32_t i;

	begin_like(NULL, &usual, 1000);
	for (i = 0; i < 20; i++)
		ask(0, 5000 + i, 1);
	ask(0, 5020, 2);
	await_asked(0, 2, 5020);
	nodes_run(&n, NODES_HUB, "ip link set port0.0 down");
	memset(r[1].heap + BUFFERS, 0x55, 8192);
	CHECK_EQ(post(7, -1, 1, 0, BUFFERS, 8192), 0);
	/* One time-out later, all of them are gone, also the one that nobody wanted. */
	CHECK_EQ(rank_await(&r[2], ask(2, 3000, 1), PATIENCE_SOON), ACP_ST_OK);
	check_received(2, 3000, 1, 8192);
	CHECK_EQ(nodes_counter(&n, 1, "messages_matched"), 2);
	await_gone(0, 2);
	await_list_empty();
}

/* Many of them at once, and the rank goes in the midst of it: nothing is left behind. */
TEST(A4_P4_messages_that_wait_leave_nothing_behind)
{
	uint32_t i;

	begin("delay 1ms");
	for (i = 0; i < 50; i++)
		ask(0, 20000, i);
	for (i = 0; i < 50; i += 2)
		CHECK_EQ(post(i, 0, i, 0, BUFFERS + i * SLOT, SLOT), 0);
	rank_close(&r[0]);
	rank_works(&r[2]);
	/* Those that were not granted yet, and those whose bytes have begun. */
	await_list_empty();
}
