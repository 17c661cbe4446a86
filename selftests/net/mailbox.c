// SPDX-License-Identifier: MIT
/*
 * A4: messages into a mailbox: short and in many frames, from other nodes and from the own one,
 * over networks that lose and duplicate, into full, hostile and wrong mailboxes, and of senders
 * that die.
 */
#include "../dev/isolated.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "nodes.h"

#define RANKS	3			/* each on a node of its own; rank 1 has the mailbox */
#define HEAP	(4U << 20)
#define SOURCE	(HEAP / 2)		/* offset of what is sent */
#define HEAD	sizeof(struct acp_mailbox)
#define RECORD	sizeof(struct acp_record)
#define UNITS	((SOURCE - HEAD) / 8)	/* of the mailbox, at the start of the heap */

static struct nodes n;
static struct rank r[RANKS];

static void begin_like(const char *netem, const struct acp_join *wish)
{
	nodes_open(&n, RANKS, 1, false);
	nodes_ranks_like(&n, r, RANKS, wish);
	if (netem)
		nodes_impair_all(&n, netem);
}

static struct acp_mailbox *mailbox(void)
{
	return (struct acp_mailbox *)(void *)r[1].heap;
}

/* An empty mailbox with so many units, of which "limit" are offered. */
static void offer(uint32_t units, uint32_t limit)
{
	memset(r[1].heap, 0, HEAD + 8UL * units);
	mailbox()->units = units;
	__atomic_store_n(&mailbox()->room, ACP_MAILBOX_ROOM(0, limit), __ATOMIC_RELEASE);
}

static void begin(const char *netem)
{
	const struct acp_join wish = { .heap_size = HEAP };

	begin_like(netem, &wish);
	offer(UNITS, UNITS);
}

static uint64_t next(void)
{
	return (uint32_t)__atomic_load_n(&mailbox()->room, __ATOMIC_ACQUIRE);
}

static struct acp_record *record(uint64_t unit)
{
	return (struct acp_record *)(void *)(r[1].heap + HEAD + 8 * unit);
}

static uint64_t state(uint64_t unit)
{
	return __atomic_load_n(&record(unit)->state, __ATOMIC_ACQUIRE);
}

static uint64_t units_of(uint64_t size)
{
	return (RECORD + size + 7) / 8;
}

static uint64_t send_to(uint32_t by, uint64_t to, uint64_t src, uint64_t size, uint64_t tag,
			uint8_t flags)
{
	const struct acp_sqe e = {
		.op = ACP_OP_SEND, .flags = flags, .dst = to, .src = src, .size = size, .b = tag,
		.seen = rank_completed(&r[by]),
	};

	return rank_submit(&r[by], &e);
}

static uint64_t send(uint32_t by, uint64_t src, uint64_t size, uint64_t tag)
{
	return send_to(by, heap_ga(&r[1], 0), src, size, tag, 0);
}

static int run(uint32_t by, uint64_t to, uint64_t src, uint64_t size)
{
	return rank_await(&r[by], send_to(by, to, src, size, 5, 0), PATIENCE_SOON);
}

/* Is the message in the record? */
static void check(uint64_t unit, uint32_t by, uint64_t size, uint64_t tag)
{
	CHECK_EQ(state(unit), size << 2 | ACP_RECORD_READY);
	CHECK_EQ(record(unit)->tag, tag);
	CHECK_EQ(record(unit)->rank, by);
	CHECK_EQ(record(unit)->reserved, 0);
}

static bool is_zero(const char *p, size_t size)
{
	return !size || (!p[0] && !memcmp(p, p + 1, size - 1));
}

/* Rank "by" sends memory of rank "from"; the mailbox is empty. */
static void one_message(uint32_t by, uint32_t from, size_t size)
{
	static uint64_t seed;
	const char *there = r[1].heap + HEAD + RECORD;

	seed++;
	offer(UNITS, UNITS);
	fill(r[from].heap + SOURCE, size, seed);
	CHECK_EQ(rank_await(&r[by], send(by, heap_ga(&r[from], SOURCE), size, ~seed),
			    PATIENCE_SOON), ACP_ST_OK);
	check(0, by, size, ~seed);
	CHECK(filled(there, size, seed));
	CHECK(is_zero(there + size, 64));
	CHECK_EQ(next(), units_of(size));
}

static void all_messages(void)
{
	static const size_t sizes[] = {
		0, 1, 4, 8, 9, 100, 128, 129, 1300, 1400, 1500, 5000, 70001, 300000,
	};
	uint32_t by, from;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (by = 0; by < 2; by++)
			for (from = 0; from < RANKS; from++)
				one_message(by, from, sizes[i]);
}

TEST(A4_messages_arrive_with_tag_and_sender)
{
	begin(NULL);
	all_messages();
}

TEST(A4_messages_arrive_over_a_bad_network)
{
	begin("loss 5% duplicate 5% delay 1ms 1ms");
	all_messages();
}

/* The source of a message without bytes is not looked at. */
TEST(A4_messages_without_bytes_need_no_source)
{
	begin(NULL);
	CHECK_EQ(run(0, heap_ga(&r[1], 0), 0, 0), ACP_ST_OK);
	CHECK_EQ(run(0, heap_ga(&r[1], 0), ~0ULL, 0), ACP_ST_OK);
	check(3, 0, 0, 5);
	CHECK_EQ(next(), 6);
}

/* ---- many senders ---- */

#define MESSAGES	(test_short() ? 400U : 2500U)

/* Some are longer than a frame. */
static uint32_t size_of(uint32_t by, uint32_t number)
{
	uint64_t seed = by * 1000003 + number;

	return (uint32_t)(next_random(&seed) % (number % 20 ? 150 : 5000));
}

static const char *source(uint32_t by, uint32_t number)
{
	return r[by].heap + SOURCE + 8 * (number % 1000);
}

struct sender {
	uint32_t by;
	uint8_t flags;
};

/* At most 100 are in flight. */
static void *send_all(void *arg)
{
	const struct sender *s = arg;
	const uint32_t by = s->by;
	uint64_t ticket = 0;
	uint32_t i;

	for (i = 0; i < MESSAGES; i++) {
		ticket = send_to(by, heap_ga(&r[1], 0),
				 heap_ga(&r[by], (uint64_t)(source(by, i) - r[by].heap)),
				 size_of(by, i), i, s->flags);
		if (i % 100 == 99)
			CHECK_EQ(rank_await(&r[by], ticket, PATIENCE_WORK), ACP_ST_OK);
	}
	CHECK_EQ(rank_await(&r[by], ticket, PATIENCE_WORK), ACP_ST_OK);
	CHECK_EQ(r[by].cq->failed, 0);
	return NULL;
}

static void start(pthread_t *threads, struct sender *senders, uint8_t flags)
{
	uint32_t i;

	for (i = 0; i < RANKS; i++) {
		senders[i] = (struct sender){ i, flags };
		fill(r[i].heap + SOURCE, 16000, i);
		CHECK_EQ(pthread_create(&threads[i], NULL, send_all, &senders[i]), 0);
	}
}

static void join(const pthread_t *threads)
{
	uint32_t i;

	for (i = 0; i < RANKS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

/* Check one message.  Returns the units that it takes. */
static uint64_t take(uint64_t unit, uint32_t *by, uint64_t *number)
{
	uint64_t size = state(unit) >> 2;

	*by = record(unit)->rank;
	*number = record(unit)->tag;
	CHECK(*by < RANKS && *number < MESSAGES);
	check(unit, *by, size_of(*by, (uint32_t)*number), *number);
	CHECK(!memcmp(record(unit) + 1, source(*by, (uint32_t)*number), size));
	return units_of(size);
}

/* Each message is in the mailbox once, those of one sender in their order. */
static void in_order(const char *netem)
{
	uint64_t expected[RANKS] = { 0 }, unit, number;
	struct sender senders[RANKS];
	pthread_t threads[RANKS];
	uint32_t by;

	begin(netem);
	start(threads, senders, 0);
	join(threads);
	for (unit = 0; unit < next(); unit += take(unit, &by, &number))
		CHECK_EQ(record(unit)->tag, expected[record(unit)->rank]++);
	CHECK_EQ(unit, next());
	for (by = 0; by < RANKS; by++)
		CHECK_EQ(expected[by], MESSAGES);
}

TEST(A4_messages_of_a_sender_stay_in_order)
{
	in_order(NULL);
}

TEST(A4_messages_of_a_sender_stay_in_order_over_a_bad_network)
{
	in_order("loss 3% duplicate 5% delay 1ms 1ms");
}

#define SMALL	2000			/* units */

/*
 * Take what is in a small mailbox, and offer it again when it is empty.  Those of a sender come in
 * their order.
 */
static void take_all(void)
{
	struct patience p = patience_begin(PATIENCE_TEST / 2);
	uint64_t expected[RANKS] = { 0 }, unit = 0, number, units;
	uint32_t count = 0, by;
	__u64 room;

	while (count < RANKS * MESSAGES) {
		CHECK(!patience_over(&p));
		room = ACP_MAILBOX_ROOM(unit, SMALL);
		if (unit && __atomic_compare_exchange_n(&mailbox()->room, &room,
							ACP_MAILBOX_ROOM(0, SMALL), false,
							__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			unit = 0;
		if (unit == next() || (state(unit) & 3) != ACP_RECORD_READY)
			continue;
		units = take(unit, &by, &number);
		CHECK_EQ(number, expected[by]);
		expected[by]++;
		memset(record(unit), 0, 8 * units);
		unit += units;
		count++;
	}
}

/* The mailbox is full most of the time: each message gets in, once, and in its turn. */
static void in_turn(const char *netem)
{
	const struct acp_join wish = { .heap_size = HEAP, .timeout_ms = 60000 };
	struct patience p = patience_begin(PATIENCE_SOON);
	struct sender senders[RANKS];
	pthread_t threads[RANKS];
	uint32_t by;

	begin_like(netem, &wish);
	offer(SMALL, SMALL);
	start(threads, senders, ACP_SQE_RETRY);
	/* Nobody takes any: it becomes full. */
	for (by = 0; by < RANKS; by++)
		while (!nodes_counter(&n, by, "commands_retried")) {
			CHECK(!patience_over(&p));
			sleep_ms(1);
		}
	take_all();
	join(threads);
}

TEST(A4_messages_that_wait_for_room_come_once_and_in_order)
{
	in_turn("delay 200us");
}

TEST(A4_messages_that_wait_for_room_come_in_order_over_a_bad_network)
{
	in_turn("delay 500us 500us loss 2% duplicate 3%");
}

#define SOME		12U		/* messages of 8 bytes */

/* A third of them come from another node than the sender's: for these there is no order. */
static bool from_elsewhere(uint64_t number)
{
	return number % 3 == 1;
}

/* The mailbox gets room while messages are under way to it. */
static void one_round_with(uint64_t *seed)
{
	uint64_t ticket = 0, unit, last = 0;
	uint32_t i;

	offer(100, 0);
	for (i = 0; i < SOME; i++)
		ticket = send_to(0, heap_ga(&r[1], 0),
				 heap_ga(&r[from_elsewhere(i) ? 2 : 0], SOURCE), 8, i,
				 ACP_SQE_RETRY);
	usleep((useconds_t)(next_random(seed) % 1000));
	__atomic_store_n(&mailbox()->room, ACP_MAILBOX_ROOM(0, 100), __ATOMIC_RELEASE);
	CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_SOON), ACP_ST_OK);
	CHECK_EQ(next(), SOME * units_of(8));
	for (unit = 0; unit < next(); unit += units_of(8)) {
		uint64_t number = record(unit)->tag;

		check(unit, 0, 8, number);
		CHECK(from_elsewhere(number) || !number || number > last);
		last = from_elsewhere(number) ? last : number;
	}
}

TEST(A4_messages_stay_in_order_around_those_from_elsewhere)
{
	uint64_t seed = now_ns();
	uint32_t i;

	printf("# seed %llu\n", (unsigned long long)seed);
	begin("delay 200us");
	for (i = 0; i < (test_short() ? 100U : 1000U); i++)
		one_round_with(&seed);
	CHECK(nodes_counter(&n, 0, "commands_retried") > 0);
	CHECK_EQ(r[0].cq->failed, 0);
}

/* Many mailboxes are full; none of those that wait there is in the way of one that gets room. */
TEST(A4_a_message_waits_for_its_own_mailbox_only)
{
	const struct acp_join wish = { .heap_size = HEAP, .timeout_ms = 60000 };
	const uint32_t boxes = 20, last = boxes - 1, apart = 1024;
	uint64_t before, ticket = 0;
	uint32_t i;

	begin_like(NULL, &wish);
	before = rank_completed(&r[0]);
	memset(r[1].heap, 0, (size_t)boxes * apart);
	for (i = 0; i < boxes; i++)
		((struct acp_mailbox *)(void *)(r[1].heap + i * apart))->units = 100;
	for (i = 0; i < boxes; i++)
		ticket = send_to(0, heap_ga(&r[1], i * apart), heap_ga(&r[0], SOURCE), 8, i,
				 ACP_SQE_RETRY);
	sleep_ms(10);
	CHECK_EQ(rank_completed(&r[0]), before);
	for (i = last; i > 0; i--) {
		__u64 *room = &((struct acp_mailbox *)(void *)(r[1].heap + i * apart))->room;
		struct patience p = patience_begin(PATIENCE_SOON);

		__atomic_store_n(room, ACP_MAILBOX_ROOM(0, 100), __ATOMIC_RELEASE);
		while ((uint32_t)__atomic_load_n(room, __ATOMIC_ACQUIRE) != units_of(8)) {
			CHECK(!patience_over(&p));
			sleep_ms(1);
		}
	}
	CHECK_EQ(rank_completed(&r[0]), before);
	__atomic_store_n(&mailbox()->room, ACP_MAILBOX_ROOM(0, 100), __ATOMIC_RELEASE);
	CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_SOON), ACP_ST_OK);
	CHECK_EQ(r[0].cq->failed, 0);
}

/* More messages in pieces than a window has numbers, one behind the other. */
TEST(A4_many_messages_in_pieces_at_once)
{
	uint64_t ticket = 0;
	uint32_t i;

	begin("delay 1ms 1ms loss 1%");
	fill(r[0].heap + SOURCE, 2000, 1);
	for (i = 0; i < 200; i++)
		ticket = send(0, heap_ga(&r[0], SOURCE), 2000, i);
	CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_SOON), ACP_ST_OK);
	CHECK_EQ(r[0].cq->failed, 0);
	for (i = 0; i < 200; i++) {
		check(i * units_of(2000), 0, 2000, i);
		CHECK(filled(record(i * units_of(2000)) + 1, 2000, 1));
	}
}

/* ---- notifications ---- */

#define NOTES		(test_short() ? 60U : 200U)
#define NOTED		3000		/* bytes of each; more than two frames */
#define THERE		(HEAP / 4)	/* offset of the first, in the heap of rank 1 */

/* A copy, and behind it a message without bytes, as acpx_copy_notify() issues them. */
static uint64_t notify(uint32_t number)
{
	const uint64_t seen = rank_completed(&r[0]), at = THERE + (uint64_t)number * NOTED;
	const struct acp_sqe data = {
		.op = ACP_OP_COPY, .flags = ACP_SQE_MORE, .dst = heap_ga(&r[1], at), .size = NOTED,
		.src = heap_ga(&r[0], SOURCE + number), .seen = seen,
	};
	struct acp_sqe message = {
		.op = ACP_OP_SEND, .dst = heap_ga(&r[1], 0), .b = number,
	};

	message.order = rank_submit(&r[0], &data);
	message.seen = message.order - 1;
	return rank_submit(&r[0], &message);
}

/* Each message that is there says that its data are. */
static void all_notes(const char *netem)
{
	struct patience p = patience_begin(PATIENCE_WORK);
	uint64_t ticket = 0;
	uint32_t i;

	begin(netem);
	offer(10 * NOTES, 10 * NOTES);
	fill(r[0].heap + SOURCE, NOTED + NOTES, 3);
	for (i = 0; i < NOTES; i++)
		ticket = notify(i);
	for (i = 0; i < NOTES; i++) {
		while (!state(3 * i))
			CHECK(!patience_over(&p));
		check(3 * i, 0, 0, i);
		CHECK(!memcmp(r[1].heap + THERE + (size_t)i * NOTED, r[0].heap + SOURCE + i,
			      NOTED));
	}
	CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_SOON), ACP_ST_OK);
	CHECK_EQ(r[0].cq->failed, 0);
	/* None has waited for those before it. */
	CHECK(!netem || nodes_counter(&n, 0, "fenced") >= NOTES / 2);
}

TEST(A4_a_notification_says_that_its_data_are_there)
{
	all_notes(NULL);
}

TEST(A4_a_notification_follows_its_data_over_a_bad_network)
{
	all_notes("delay 500us 500us loss 3% duplicate 3%");
}

TEST(A4_a_copy_that_fails_notifies_nobody)
{
	struct acp_sqe data = {
		.op = ACP_OP_COPY, .flags = ACP_SQE_MORE, .size = 8,
	}, message = {
		.op = ACP_OP_SEND, .b = 1,
	};

	begin(NULL);
	data.dst = heap_ga(&r[1], HEAP);
	data.src = heap_ga(&r[0], SOURCE);
	message.dst = heap_ga(&r[1], 0);
	message.order = rank_submit(&r[0], &data);
	CHECK_EQ(rank_await(&r[0], rank_submit(&r[0], &message), PATIENCE_SOON), ACP_ST_RANGE);
	CHECK_EQ(next(), 0);
	CHECK_EQ(run(0, heap_ga(&r[1], 0), heap_ga(&r[0], SOURCE), 8), ACP_ST_OK);
	check(0, 0, 8, 5);
}

/* The copy waits for the end of the message. */
TEST(A4_what_is_behind_a_refused_message_fails)
{
	const uint64_t there = THERE, before = 0x1122334455667788;
	uint64_t first, ticket;
	uint32_t i;

	begin("delay 5ms");
	offer(10, (uint32_t)units_of(8));
	memcpy(r[1].heap + there, &before, sizeof(before));
	for (i = 0; i < 2; i++) {
		struct acp_sqe put = {
			.op = ACP_OP_COPY, .dst = heap_ga(&r[1], there), .size = 8,
			.src = heap_ga(&r[0], SOURCE), .seen = rank_completed(&r[0]),
		};

		first = send(0, heap_ga(&r[0], SOURCE), 8, i);
		put.order = first;
		put.dst += 8 * i;
		ticket = rank_submit(&r[0], &put);
		CHECK_EQ(rank_await(&r[0], first, PATIENCE_SOON), i ? ACP_ST_AGAIN : ACP_ST_OK);
		CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_SOON), i ? ACP_ST_ORDER : ACP_ST_OK);
	}
	CHECK(memcmp(r[1].heap + there, &before, 8));
	CHECK(is_zero(r[1].heap + there + 8, 8));
}

/* ---- full, and wrong ---- */

/* With all lengths, from other nodes and from the own one. */
static void ends(uint64_t to, uint64_t size, int status)
{
	uint32_t by;

	for (by = 0; by < 2; by++)
		CHECK_EQ(run(by, to, heap_ga(&r[by], SOURCE), size), status);
}

TEST(A4_a_full_mailbox_is_said_and_nothing_is_written)
{
	static const uint64_t sizes[] = { 0, 1, 41, 1500, 100000 };
	size_t i;

	begin(NULL);
	for (i = 0; i < 5; i++) {
		offer(UNITS, (uint32_t)units_of(sizes[i]) - 1);
		ends(heap_ga(&r[1], 0), sizes[i], ACP_ST_AGAIN);
		CHECK_EQ(next(), 0);
		CHECK(is_zero(r[1].heap + HEAD, 8 * UNITS));
		/* It is longer than the mailbox: it needs not be tried again. */
		mailbox()->units = (uint32_t)units_of(sizes[i]) - 1;
		ends(heap_ga(&r[1], 0), sizes[i], ACP_ST_RANGE);
		CHECK_EQ(next(), 0);
		/* What fits exactly is taken. */
		offer(UNITS, (uint32_t)units_of(sizes[i]));
		CHECK_EQ(run(0, heap_ga(&r[1], 0), heap_ga(&r[0], SOURCE), sizes[i]), ACP_ST_OK);
		CHECK_EQ(run(0, heap_ga(&r[1], 0), heap_ga(&r[0], SOURCE), 0), ACP_ST_AGAIN);
	}
}

/* The owner writes anything to its words: nothing beyond its memory is touched. */
TEST(A4_hostile_mailboxes_have_named_ends)
{
	static const uint64_t sizes[] = { 8, 1500, 100000 };
	uint64_t last = (HEAP - HEAD) / 8;
	size_t i;

	begin(NULL);
	for (i = 0; i < 3; i++) {
		mailbox()->room = ACP_MAILBOX_ROOM(last - units_of(sizes[i]) + 1, ~0U);
		ends(heap_ga(&r[1], 0), sizes[i], ACP_ST_RANGE);
		mailbox()->room = ACP_MAILBOX_ROOM(~0U - 20000, ~0U);
		ends(heap_ga(&r[1], 0), sizes[i], ACP_ST_RANGE);
		mailbox()->room = ACP_MAILBOX_ROOM(~0U, ~0U);
		ends(heap_ga(&r[1], 0), sizes[i], ACP_ST_AGAIN);
		mailbox()->room = ACP_MAILBOX_ROOM(9, 0);
		ends(heap_ga(&r[1], 0), sizes[i], ACP_ST_AGAIN);
		mailbox()->units = 1;
		ends(heap_ga(&r[1], 0), sizes[i], ACP_ST_RANGE);
		mailbox()->units = UNITS;
	}
	rank_works(&r[1]);
}

TEST(A4_wrong_mailboxes_have_named_ends)
{
	struct memory writable, atomic;

	begin(NULL);
	ends(0, 8, ACP_ST_GA);
	ends(0, 0, ACP_ST_GA);
	ends(heap_ga(&r[1], 4), 8, ACP_ST_ALIGN);
	ends(heap_ga(&r[1], HEAP - 56), 8, ACP_ST_RANGE);
	ends(heap_ga(&r[1], HEAP), 0, ACP_ST_RANGE);
	ends(rank_ga(&r[1], 1, ACP_STAG_USER + 7, 0), 8, ACP_ST_STAG);
	CHECK_EQ(rank_register(&r[1], &writable, pages(PAGE, PROT_READ | PROT_WRITE), PAGE,
			       ACP_ACCESS_WRITE | ACP_ACCESS_READ), 0);
	CHECK_EQ(rank_register(&r[1], &atomic, pages(PAGE, PROT_READ | PROT_WRITE), PAGE,
			       ACP_ACCESS_ATOMIC | ACP_ACCESS_READ), 0);
	((struct acp_mailbox *)(void *)atomic.addr)->room = ACP_MAILBOX_ROOM(0, 100);
	((struct acp_mailbox *)(void *)writable.addr)->room = ACP_MAILBOX_ROOM(0, 100);
	CHECK_EQ(run(0, memory_ga(&writable, 0), heap_ga(&r[0], SOURCE), 8), ACP_ST_ACCESS);
	CHECK_EQ(run(0, memory_ga(&atomic, 0), heap_ga(&r[0], SOURCE), 8), ACP_ST_ACCESS);
	/* Its owner may do anything with it. */
	CHECK_EQ(run(1, memory_ga(&atomic, 0), heap_ga(&r[1], SOURCE), 8), ACP_ST_OK);
}

/* A source that cannot be read takes no room, wherever the ends of the message are. */
TEST(A4_a_bad_source_takes_no_record)
{
	static const uint64_t sizes[] = { 8, 1000, 100000 };
	uint32_t i, by, from;

	begin(NULL);
	for (i = 0; i < 3; i++)
		for (by = 0; by < RANKS; by++)
			for (from = 0; from < RANKS; from++)
				CHECK_EQ(run(by, heap_ga(&r[1], 0),
					     rank_ga(&r[0], from, ACP_STAG_USER + 7, 0), sizes[i]),
					 ACP_ST_STAG);
	CHECK_EQ(next(), 0);
}

/* ---- senders that fail half-way ---- */

static void wait_for_state(uint64_t unit, uint64_t wanted)
{
	struct patience p = patience_begin(PATIENCE_SOON);

	while (state(unit) != wanted) {
		CHECK(!patience_over(&p));
		sleep_ms(1);
	}
}

/* The record says so, and does not hold back others. */
TEST(A4_a_message_whose_source_vanishes_is_void)
{
	const uint64_t size = 1 << 20;
	struct memory m;
	uint64_t ticket;

	begin("rate 5mbit");
	memory_open(&r[0], &m, size);
	ticket = send(0, memory_ga(&m, 0), size, 1);
	wait_for_state(0, size << 2 | ACP_RECORD_ARRIVING);
	CHECK(record(0)->tag == 1 && record(0)->rank == 0);
	CHECK_EQ(rank_unregister(&r[0], m.reg.key, NULL), 0);
	nodes_impair_all(&n, "");
	CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_WORK), ACP_ST_STAG);
	CHECK_EQ(state(0), size << 2 | ACP_RECORD_VOID);
	CHECK_EQ(run(0, heap_ga(&r[1], 0), heap_ga(&r[0], SOURCE), 8), ACP_ST_OK);
	check(units_of(size), 0, 8, 5);
}

/* Within a node, too. */
TEST(A4_a_long_message_within_a_node_is_void_if_its_source_is_bad)
{
	const uint64_t size = 100000;

	begin(NULL);
	CHECK_EQ(run(1, heap_ga(&r[1], 0), heap_ga(&r[1], HEAP - 1000), size), ACP_ST_RANGE);
	CHECK_EQ(next(), 0);
	CHECK_EQ(run(1, heap_ga(&r[1], 0), heap_ga(&r[1], SOURCE), size), ACP_ST_OK);
	check(0, 1, size, 5);
}

/* The receiver's node has nothing to send, and yet notices that the sender is gone. */
TEST(A4_P5_a_message_whose_sender_is_unplugged_is_void)
{
	const struct acp_join wish = { .heap_size = HEAP, .timeout_ms = 1000 };
	const uint64_t size = 1 << 20;
	uint64_t ticket;

	begin_like("rate 5mbit", &wish);
	offer(UNITS, UNITS);
	ticket = send(0, heap_ga(&r[0], SOURCE), size, 1);
	wait_for_state(0, size << 2 | ACP_RECORD_ARRIVING);
	nodes_run(&n, NODES_HUB, "ip link set port0.0 down");
	wait_for_state(0, size << 2 | ACP_RECORD_VOID);
	CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_SOON), ACP_ST_TIMEOUT);
	/* Others are not held back. */
	CHECK_EQ(run(2, heap_ga(&r[1], 0), heap_ga(&r[2], SOURCE), 8), ACP_ST_OK);
	check(units_of(size), 2, 8, 5);
}

/* The mailbox vanishes while messages arrive: nothing is written any more. */
TEST(A4_a_mailbox_that_vanishes)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	const uint64_t size = 1 << 20;
	struct acp_mailbox *b;
	struct memory m;
	uint64_t ticket;

	begin("rate 5mbit");
	memory_open(&r[1], &m, 2 * size);
	b = (struct acp_mailbox *)(void *)m.addr;
	b->units = (uint32_t)(size / 4 - HEAD / 8);
	b->room = ACP_MAILBOX_ROOM(0, b->units);
	ticket = send_to(0, memory_ga(&m, 0), heap_ga(&r[0], SOURCE), size, 1, 0);
	while (!__atomic_load_n(&((struct acp_record *)(void *)(b + 1))->state, __ATOMIC_ACQUIRE)) {
		CHECK(!patience_over(&p));
		sleep_ms(1);
	}
	CHECK_EQ(rank_unregister(&r[1], m.reg.key, NULL), 0);
	memset(m.addr, 0, 2 * size);
	nodes_impair_all(&n, "");
	CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_WORK), ACP_ST_STAG);
	CHECK(is_zero(m.addr, 2 * size));
}
