// SPDX-License-Identifier: MIT
/*
 * Bursts of 8-byte accesses and messages, which share messages of the protocol (WORDS): each has
 * its own effect, completion and status, as if it were alone.
 */
#include "../dev/isolated.h"

#include <pthread.h>

#include "frame.h"
#include "nodes.h"

#define MOST	200		/* of a burst: several frames */

static struct nodes n;
static struct rank r[4];

static void begin(uint32_t count)
{
	const struct acp_join wish = { .depth = 1024 };
	uint32_t i;

	nodes_open(&n, count, 1, false);
	nodes_ranks_like(&n, r, count, &wish);
	/* Open the flows first, because the first message of a flow waits for that. */
	for (i = 1; i < count; i++)
		CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[i], 0), heap_ga(&r[0], 0), 8), ACP_ST_OK);
}

static uint64_t push(unsigned int op, uint64_t dst, uint64_t src, uint64_t a)
{
	struct acp_sqe e = { .op = (uint8_t)op, .dst = dst, .src = src, .a = a,
			     .size = op == ACP_OP_COPY ? 8 : 0, .seen = rank_completed(&r[0]) };

	return rank_push(&r[0], &e);
}

static void ring(void)
{
	CHECK_EQ(ioctl(r[0].fd, ACP_IOC_DOORBELL), 0);
}

static uint8_t status_of(uint64_t ticket)
{
	return r[0].cq->status[ticket & (r[0].join.depth - 1)];
}

/* Address at an offset of a heap; words of a burst are 24 bytes apart, and may be unaligned. */
static uint64_t get(struct rank *rank, uint64_t at)
{
	uint64_t word;

	memcpy(&word, rank->heap + at, sizeof(word));
	return word;
}

static void set(struct rank *rank, uint64_t at, uint64_t word)
{
	memcpy(rank->heap + at, &word, sizeof(word));
}

#define HERE(i)		(8192 + 8 * (i))
#define THERE(i)	(512 + 24 * (i) + (i) % 3)

static uint64_t value(unsigned int row, unsigned int i)
{
	return (uint64_t)row << 32 | (i + 1);
}

/* Bursts of all lengths; memory between the words is unchanged. */
TEST(bursts_of_puts)
{
	unsigned int row, i;

	begin(2);
	for (row = 1; row <= MOST; row += row < 70 ? 1 : 13) {
		memset(r[1].heap, 0x5a, 8192);
		for (i = 0; i < row; i++) {
			set(&r[0], HERE(i), value(row, i));
			push(ACP_OP_COPY, heap_ga(&r[1], THERE(i)), heap_ga(&r[0], HERE(i)), 0);
		}
		ring();
		CHECK_EQ(rank_await(&r[0], r[0].last, PATIENCE_WORK), ACP_ST_OK);
		for (i = 0; i < row; i++) {
			CHECK_EQ(get(&r[1], THERE(i)), value(row, i));
			CHECK_EQ(r[1].heap[THERE(i) + 8], 0x5a);
			CHECK_EQ(r[1].heap[THERE(i) - 1], 0x5a);
		}
	}
}

/* Destination and status of the i-th access of a mixed burst. */
static uint64_t mixed(unsigned int i, uint8_t *status)
{
	*status = ACP_ST_OK;
	switch (i % 7) {
	case 2:
		*status = ACP_ST_STAG;
		return rank_ga(&r[0], 1, ACP_STAG_USER + 7, 0);
	case 3:
		*status = ACP_ST_RANGE;
		return heap_ga(&r[1], r[1].join.heap_size - 7);
	case 5:
		*status = ACP_ST_RANGE;
		return heap_ga(&r[1], r[1].join.heap_size + 4096);
	default:
		return heap_ga(&r[1], THERE(i));
	}
}

static void check_mixed(unsigned int rows)
{
	uint64_t first;
	unsigned int row, i;
	uint8_t status;

	for (row = 1; row <= rows; row++) {
		first = r[0].last + 1;
		for (i = 0; i < MOST; i++) {
			set(&r[0], HERE(i), value(row, i));
			push(ACP_OP_COPY, mixed(i, &status), heap_ga(&r[0], HERE(i)), 0);
		}
		ring();
		rank_await(&r[0], r[0].last, PATIENCE_WORK);
		CHECK_EQ(rank_completed(&r[0]), r[0].last);
		for (i = 0; i < MOST; i++) {
			mixed(i, &status);
			CHECK_EQ(status_of(first + i), status);
			if (status == ACP_ST_OK)
				CHECK_EQ(get(&r[1], THERE(i)), value(row, i));
		}
	}
}

TEST(some_of_a_burst_fail_and_the_others_do_not)
{
	begin(2);
	check_mixed(20);
}

TEST(some_of_a_burst_fail_under_loss)
{
	begin(2);
	nodes_impair_all(&n, "loss 5% duplicate 5% delay 1ms 1ms");
	check_mixed(test_short() ? 10 : 30);
}

/* Results arrive in bursts as well: all are different, and none is lost or executed twice. */
TEST(bursts_of_adds_under_loss)
{
	unsigned int row, i, seen;
	bool found[MOST];

	begin(2);
	nodes_impair_all(&n, "loss 5% duplicate 5% delay 1ms 1ms");
	for (row = 0; row < (test_short() ? 5 : 20); row++) {
		set(&r[1], 0, 1000);
		for (i = 0; i < MOST; i++)
			push(ACP_OP_ADD8, heap_ga(&r[0], HERE(i)), heap_ga(&r[1], 0), 1);
		ring();
		CHECK_EQ(rank_await(&r[0], r[0].last, PATIENCE_WORK), ACP_ST_OK);
		CHECK_EQ(get(&r[1], 0), 1000 + MOST);
		memset(found, 0, sizeof(found));
		for (seen = 0, i = 0; i < MOST; i++) {
			uint64_t former = get(&r[0], HERE(i)) - 1000;

			CHECK(former < MOST && !found[former]);
			found[former] = true;
			seen++;
		}
		CHECK_EQ(seen, MOST);
	}
}

/* From node 1 to node 2 on behalf of node 0, which receives each status. */
TEST(bursts_between_two_others)
{
	unsigned int row, i;
	uint64_t first;
	uint8_t status;

	begin(3);
	for (row = 1; row <= 10; row++) {
		first = r[0].last + 1;
		for (i = 0; i < MOST; i++) {
			uint64_t dst = heap_ga(&r[2], THERE(i));

			if (i % 9 == 4)
				dst = rank_ga(&r[0], 2, ACP_STAG_USER + 7, 0);
			set(&r[1], HERE(i), value(row, i));
			push(ACP_OP_COPY, dst, heap_ga(&r[1], HERE(i)), 0);
		}
		ring();
		rank_await(&r[0], r[0].last, PATIENCE_WORK);
		CHECK_EQ(rank_completed(&r[0]), r[0].last);
		for (i = 0; i < MOST; i++) {
			status = i % 9 == 4 ? ACP_ST_STAG : ACP_ST_OK;
			CHECK_EQ(status_of(first + i), status);
			if (status == ACP_ST_OK)
				CHECK_EQ(get(&r[2], THERE(i)), value(row, i));
		}
	}
}

/* A burst of which each access is for another of three nodes than the one before. */
static void push_to_three(unsigned int row)
{
	struct rank *to;
	unsigned int i;

	for (i = 0; i < MOST; i++) {
		to = &r[1 + i % 3];
		set(&r[0], HERE(i), value(row, i));
		if (i % 5 == 4)		/* delegated; the former value comes back */
			push(ACP_OP_ADD8, heap_ga(&r[0], 4096 + 8 * (i % 3)), heap_ga(to, 0), 1);
		else
			push(ACP_OP_COPY, heap_ga(to, THERE(i)), heap_ga(&r[0], HERE(i)), 0);
	}
	ring();
	CHECK_EQ(rank_await(&r[0], r[0].last, PATIENCE_WORK), ACP_ST_OK);
	for (i = 0; i < MOST; i++)
		if (i % 5 != 4)
			CHECK_EQ(get(&r[1 + i % 3], THERE(i)), value(row, i));
}

static void check_sums(unsigned int rows)
{
	unsigned int i, sums[3] = { 0 };

	for (i = 4; i < MOST; i += 5)
		sums[i % 3] += rows;
	for (i = 0; i < 3; i++)
		CHECK_EQ(get(&r[1 + i], 0), sums[i]);
}

/* Those for one node share frames, whatever is between them. */
TEST(bursts_to_three_others_share_frames)
{
	long long frames;
	unsigned int row;

	begin(4);
	for (row = 1; row <= 10; row++) {
		frames = nodes_counter(&n, 0, "tx_frames");
		push_to_three(row);
		frames = nodes_counter(&n, 0, "tx_frames") - frames;
		if (frames > MOST / 2)
			FAIL("%lld frames for %d accesses", frames, MOST);
	}
	check_sums(10);
}

TEST(bursts_to_three_others_under_loss)
{
	unsigned int row, rows = test_short() ? 5 : 20;

	begin(4);
	nodes_impair_all(&n, "loss 5% duplicate 5% delay 1ms 1ms");
	for (row = 1; row <= rows; row++)
		push_to_three(row);
	check_sums(rows);
}

/* One of them has no such rank any more: the accesses of the others succeed. */
TEST(P1_bursts_to_three_others_of_which_one_is_gone)
{
	uint64_t first = 0;
	unsigned int i;

	begin(4);
	push_to_three(1);
	rank_close(&r[2]);
	first = r[0].last + 1;
	for (i = 0; i < MOST; i++) {
		set(&r[0], HERE(i), value(2, i));
		push(ACP_OP_COPY, heap_ga(&r[1 + i % 3], THERE(i)), heap_ga(&r[0], HERE(i)), 0);
	}
	ring();
	rank_await(&r[0], r[0].last, PATIENCE_WORK);
	CHECK_EQ(rank_completed(&r[0]), r[0].last);
	for (i = 0; i < MOST; i++) {
		CHECK_EQ(status_of(first + i) == ACP_ST_OK, i % 3 != 1);
		if (i % 3 != 1)
			CHECK_EQ(get(&r[1 + i % 3], THERE(i)), value(2, i));
	}
}

/* ---- Messages ---- */

#define BOX	heap_ga(&r[1], 0)	/* a mailbox in the heap of rank 1 */
#define EACH	(sizeof(struct acp_record) + 8)

static struct acp_mailbox *mailbox(void)
{
	return (struct acp_mailbox *)(void *)r[1].heap;
}

/*
 * An empty mailbox with room for so many messages of 8 bytes. There was none before, or it is full:
 * then messages may come meanwhile, and find no room yet.
 */
static void offer(uint32_t messages)
{
	const uint32_t units = messages * (uint32_t)EACH / 8;

	memset(r[1].heap + sizeof(struct acp_mailbox), 0, MOST * EACH + 64);
	mailbox()->units = MOST * (uint32_t)EACH / 8;
	__atomic_store_n(&mailbox()->room, ACP_MAILBOX_ROOM(0, units), __ATOMIC_RELEASE);
}

static void send_row(struct rank *src, unsigned int row, unsigned int count, uint8_t flags)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		const struct acp_sqe e = {
			.op = ACP_OP_SEND, .flags = flags, .dst = BOX, .src = heap_ga(src, HERE(i)),
			.size = 8, .b = ~value(row, i), .seen = rank_completed(&r[0]),
		};

		set(src, HERE(i), value(row, i));
		rank_push(&r[0], &e);
	}
	ring();
}

/* Record number "at" has message number i of a row. */
static bool is_message(unsigned int at, unsigned int row, unsigned int i)
{
	const char *p = r[1].heap + sizeof(struct acp_mailbox) + at * EACH;
	const struct acp_record *record = (const void *)p;
	uint64_t word;

	memcpy(&word, p + sizeof(*record), sizeof(word));
	return __atomic_load_n(&record->state, __ATOMIC_ACQUIRE) == (8 << 2 | ACP_RECORD_READY) &&
	       record->tag == ~value(row, i) && !record->rank && !record->reserved &&
	       word == value(row, i);
}

/* Each message is there once; those whose source is on the sender's node are in their order. */
static void check_row(unsigned int row, bool in_order)
{
	bool seen[MOST] = { false };
	unsigned int i, k;

	for (i = 0; i < row; i++) {
		for (k = in_order ? i : 0; k < row && !is_message(i, row, k); k++)
			if (in_order)
				FAIL("message %u of %u is not there", i, row);
		CHECK(k < row && !seen[k]);
		seen[k] = true;
	}
}

static void all_rows(struct rank *src, uint8_t flags, unsigned int most)
{
	unsigned int row;

	for (row = 1; row <= most; row += row < 70 ? 1 : 13) {
		offer(MOST);
		send_row(src, row, row, flags);
		CHECK_EQ(rank_await(&r[0], r[0].last, PATIENCE_WORK), ACP_ST_OK);
		CHECK_EQ(rank_completed(&r[0]), r[0].last);
		check_row(row, src == &r[0]);
		CHECK_EQ((uint32_t)mailbox()->room, row * EACH / 8);
		CHECK_EQ(get(&r[1], sizeof(struct acp_mailbox) + row * EACH), 0);
	}
}

TEST(A4_bursts_of_messages)
{
	begin(2);
	all_rows(&r[0], 0, MOST);
}

TEST(A4_bursts_of_messages_that_may_wait)
{
	begin(2);
	all_rows(&r[0], ACP_SQE_RETRY, MOST);
}

/* They share frames, so there are few of these. */
TEST(A4_bursts_of_messages_share_frames)
{
	long long frames;

	begin(2);
	frames = nodes_counter(&n, 0, "tx_frames");
	offer(MOST);
	send_row(&r[0], 1, MOST, 0);
	CHECK_EQ(rank_await(&r[0], r[0].last, PATIENCE_WORK), ACP_ST_OK);
	frames = nodes_counter(&n, 0, "tx_frames") - frames -
		 nodes_counter(&n, 0, "tx_retransmits");
	printf("# %lld frames\n", frames);
	CHECK(frames <= MOST / 32);	/* each alone in 64 bytes: 22 in a frame, so 10 */
}

/* Do not let datagrams of that many bytes, from the IP header on, arrive; 0: let all. */
static void swallow(unsigned int bytes)
{
	if (bytes)
		nodes_run(&n, NODES_HUB, "tc filter add dev port0.1 egress protocol ip u32 "
			  "match u16 %u 0xffff at 2 action drop", bytes);
	else
		nodes_run(&n, NODES_HUB, "tc filter del dev port0.1 egress");
}

/* Bytes of a datagram with messages that share WORDS. */
static unsigned int bytes_of(unsigned int messages)
{
	return 28 + (unsigned int)(sizeof(struct acp_frame_hdr) + sizeof(struct acp_msg_data) +
				   messages * sizeof(struct acp_msg_word));
}

/* Send them, but let their datagram not arrive until a path has been found too narrow, or not. */
static void send_swallowed(unsigned int messages, bool narrow)
{
	long long before = nodes_counter(&n, 0, "timeouts"), late;

	offer(MOST);
	swallow(bytes_of(messages));
	send_row(&r[0], messages, messages, 0);
	do {
		sleep_ms(10);
		late = nodes_counter(&n, 0, "timeouts") - before;
	} while (rank_completed(&r[0]) != r[0].last && late < 25);
	/* Then it is sent in fragments, which arrive. */
	CHECK_EQ(late < 25, narrow);
	CHECK_EQ(nodes_counter(&n, 0, "narrowed") > 0, narrow);
	swallow(0);
	CHECK_EQ(rank_await(&r[0], r[0].last, PATIENCE_WORK), ACP_ST_OK);
	check_row(messages, true);
}

/* All paths carry 576 bytes: one that seems to carry less is not narrow. */
TEST(A4_N16_the_size_of_frames_of_messages_is_known)
{
	unsigned int fit = 1;

	begin(2);
	nodes_run(&n, NODES_HUB, "tc qdisc add dev port0.1 clsact");
	while (bytes_of(fit + 1) <= 576)
		fit++;
	send_swallowed(fit, false);
	send_swallowed(fit + 1, true);
}

TEST(A4_bursts_of_messages_over_a_bad_network)
{
	begin(2);
	nodes_impair_all(&n, "loss 5% duplicate 5% delay 1ms 1ms");
	all_rows(&r[0], 0, 40);
	all_rows(&r[0], ACP_SQE_RETRY, 40);
}

/* The messages are another node's, which sends them on behalf of node 0. */
TEST(A4_bursts_of_messages_of_another_node)
{
	begin(3);
	all_rows(&r[2], 0, MOST);
}

/* Those for which there is room are there, the others have failed: as one by one. */
TEST(A4_bursts_of_messages_into_a_mailbox_with_room_for_some)
{
	unsigned int row, i;
	uint64_t first;

	begin(2);
	for (row = 0; row < MOST; row += 7) {
		offer(row);
		first = r[0].last + 1;
		send_row(&r[0], row, MOST, 0);
		rank_await(&r[0], r[0].last, PATIENCE_WORK);
		CHECK_EQ(rank_completed(&r[0]), r[0].last);
		for (i = 0; i < MOST; i++)
			CHECK_EQ(status_of(first + i), i < row ? ACP_ST_OK : ACP_ST_AGAIN);
		for (i = 0; i < row; i++)
			CHECK(is_message(i, row, i));
		CHECK_EQ(get(&r[1], sizeof(struct acp_mailbox) + row * EACH), 0);
	}
}

/* Wait until a row's messages from number "from" on are there; "room" fit. Returns the next one. */
static unsigned int take_some(unsigned int row, unsigned int from, unsigned int room)
{
	struct patience p = patience_begin(PATIENCE_WORK);
	unsigned int i, most = from + room < MOST ? room : MOST - from;

	for (i = 0; i < most; i++)
		while (!is_message(i, row, from + i)) {
			if (patience_over(&p))
				FAIL("message %u of row %u is not there", from + i, row);
			sleep_ms(1);
		}
	return from + most;
}

static void wait_for_room(const char *netem)
{
	unsigned int row, done, room;

	begin(2);
	if (netem)
		nodes_impair_all(&n, netem);
	for (row = 1; row <= 5; row++) {
		room = row * 9;
		offer(room);
		send_row(&r[0], row, MOST, ACP_SQE_RETRY);
		for (done = 0; done < MOST; offer(room))
			done = take_some(row, done, room);
		CHECK_EQ(rank_await(&r[0], r[0].last, PATIENCE_WORK), ACP_ST_OK);
		CHECK_EQ(rank_completed(&r[0]), r[0].last);
	}
}

TEST(A4_bursts_of_messages_that_wait_for_room_stay_in_order)
{
	wait_for_room(NULL);
}

TEST(A4_bursts_of_messages_that_wait_for_room_stay_in_order_over_a_bad_network)
{
	wait_for_room("loss 3% duplicate 3% delay 1ms 1ms");
}

/* No mailbox there: each message fails. */
TEST(A4_bursts_of_messages_to_nowhere)
{
	uint64_t first;
	unsigned int i;

	begin(2);
	first = r[0].last + 1;
	for (i = 0; i < MOST; i++) {
		const struct acp_sqe e = {
			.op = ACP_OP_SEND, .dst = rank_ga(&r[0], 1, ACP_STAG_USER + 7, 0),
			.src = heap_ga(&r[0], HERE(i)), .size = 8, .seen = rank_completed(&r[0]),
		};

		rank_push(&r[0], &e);
	}
	ring();
	rank_await(&r[0], r[0].last, PATIENCE_WORK);
	CHECK_EQ(rank_completed(&r[0]), r[0].last);
	for (i = 0; i < MOST; i++)
		CHECK_EQ(status_of(first + i), ACP_ST_STAG);
}

/* ---- Words that change while they are read ---- */

static volatile bool over;

static void *flip(void *word)
{
	while (!over) {
		__atomic_store_n((uint64_t *)word, 0, __ATOMIC_RELAXED);
		__atomic_store_n((uint64_t *)word, ~0ULL, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Copy a word that is being written, by all operations: the value is never torn. */
static void never_half(uint64_t size)
{
	const struct { struct rank *src, *dst; } ways[] = {
		{ &r[0], &r[1] }, { &r[1], &r[0] }, { &r[0], &r[0] },
	};
	uint64_t all = size == 8 ? ~0ULL : ~0U, seen;
	pthread_t thread;
	uint32_t i, way;

	begin(2);
	for (way = 0; way < 3; way++) {
		struct rank *src = ways[way].src, *dst = ways[way].dst;

		over = false;
		CHECK_EQ(pthread_create(&thread, NULL, flip, src->heap + 4096), 0);
		for (i = 0; i < 2000; i++) {
			set(dst, 8192, 0);
			CHECK_EQ(rank_do_copy(&r[0], heap_ga(dst, 8192), heap_ga(src, 4096), size),
				 ACP_ST_OK);
			seen = get(dst, 8192);
			if (seen && seen != all)
				FAIL("way %u: 0x%llx", way, (unsigned long long)seen);
		}
		over = true;
		CHECK_EQ(pthread_join(thread, NULL), 0);
	}
}

TEST(words_of_8_bytes_are_never_half_read)
{
	never_half(8);
}

TEST(words_of_4_bytes_are_never_half_read)
{
	never_half(4);
}
