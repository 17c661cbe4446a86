// SPDX-License-Identifier: MIT
/*
 * Sources that their owner changes while they are on their way, which is permitted: old or new
 * bytes arrive. Payloads that stay in their pages may then not match their tag or checksum. What is
 * retransmitted is copied first, so that it does: progress is guaranteed with each integrity.
 */
#include "../dev/isolated.h"

#include <pthread.h>

#include "nodes.h"

#define KB	1024UL
#define SIZE	(512 * KB)
#define TIMES	20

static struct nodes n;
static struct rank r[2];
static struct memory source, sink;

static void begin(uint32_t integrity, size_t size)
{
	const struct acp_join wish = { .integrity = integrity, .timeout_ms = 30000 };

	nodes_open(&n, 2, 1, false);
	nodes_ranks_like(&n, r, 2, &wish);
	memory_open(&r[0], &source, size);
	memory_open(&r[1], &sink, size);
	/* A sender batches frames to a peer that it knows. */
	CHECK_EQ(rank_do_copy(&r[0], memory_ga(&sink, 0), memory_ga(&source, 0), 8), ACP_ST_OK);
	CHECK_EQ(rank_do_copy(&r[0], memory_ga(&source, 0), memory_ga(&sink, 0), 8), ACP_ST_OK);
}

static long long wrong_frames(void)
{
	return nodes_counter(&n, 1, "drop_bad_mac") + nodes_counter(&n, 1, "drop_bad_crc") +
	       nodes_counter(&n, 1, "drop_bad_aead");
}

/* ---- On a slow path ---- */

/* Does the receiver notice changes of what stays in its pages? */
static bool is_noticed(uint32_t integrity)
{
	return integrity == ACP_INTEGRITY_TAG || integrity == ACP_INTEGRITY_CRC32C;
}

static void change_all(uint8_t k)
{
	size_t i;

	for (i = 0; i < source.size; i += 64)
		*(volatile char *)(source.addr + i) = (char)k;
}

/* Change the source until the command is complete. */
static void change_until(uint64_t ticket)
{
	struct patience p = patience_begin(PATIENCE_WORK);
	static uint8_t k;

	while (rank_completed(&r[0]) < ticket) {
		if (patience_over(&p))
			FAIL("starved: %lld wrong frames", wrong_frames());
		change_all(++k);
	}
	CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_SOON), ACP_ST_OK);
}

/*
 * Frames are on their way for some milliseconds, in which all of the source changes. Each frame is
 * wrong once at most, since it is copied before the tag of a retransmission is computed.
 */
static void slow(uint32_t integrity, const struct acp_sqe *e)
{
	long long frames = nodes_counter(&n, 1, "rx_frames"), wrong = wrong_frames();
	int i;

	nodes_acquaint(&n);
	nodes_impair(&n, 0, "delay 5ms");
	for (i = 0; i < TIMES; i++)
		change_until(rank_submit(&r[0], e));
	frames = nodes_counter(&n, 1, "rx_frames") - frames;
	wrong = wrong_frames() - wrong;
	printf("# %lld frames, %lld wrong\n", frames, wrong);
	CHECK(wrong <= frames);
	CHECK_EQ(wrong > 0, is_noticed(integrity));
	CHECK_EQ(nodes_counters(&n, "flows_failed"), 0);
}

static void slow_copy(uint32_t integrity, size_t size)
{
	struct acp_sqe e = { .op = ACP_OP_COPY, .size = size };

	begin(integrity, SIZE);
	e.dst = memory_ga(&sink, 0);
	e.src = memory_ga(&source, 0);
	slow(integrity, &e);
}

/* Blocks of that many bytes, with gaps as long. */
static void slow_blocks(uint32_t integrity, uint64_t block)
{
	struct acp_sqe e = { .op = ACP_OP_STRIDED, .size = ACP_BLOCKS(block, SIZE / 4 / block) };

	begin(integrity, SIZE);
	e.dst = memory_ga(&sink, 0);
	e.src = memory_ga(&source, 0);
	e.a = 2 * block;
	e.b = 2 * block;
	slow(integrity, &e);
}

/* A message, which arrives at a mailbox in several frames. */
static void slow_message(uint32_t integrity)
{
	struct acp_sqe e = { .op = ACP_OP_SEND, .size = 8 * KB, .b = 1 };
	struct acp_mailbox *box;

	begin(integrity, SIZE);
	box = (void *)sink.addr;
	memset(box, 0, sink.size);
	box->units = (SIZE - sizeof(*box)) / 8;
	__atomic_store_n(&box->room, ACP_MAILBOX_ROOM(0, box->units), __ATOMIC_RELEASE);
	e.dst = memory_ga(&sink, 0);
	e.src = memory_ga(&source, 0);
	slow(integrity, &e);
}

TEST(N4_frame_that_changes_on_a_slow_path)
{
	slow_copy(ACP_INTEGRITY_TAG, 1 * KB);
}

TEST(N4_batch_that_changes_on_a_slow_path)
{
	slow_copy(ACP_INTEGRITY_TAG, 64 * KB);
}

TEST(N4_blocks_that_change_on_a_slow_path)
{
	slow_blocks(ACP_INTEGRITY_TAG, 4 * KB);
}

TEST(N4_message_that_changes_on_a_slow_path)
{
	slow_message(ACP_INTEGRITY_TAG);
}

TEST(N4_frame_that_changes_on_a_slow_path_crc32c)
{
	slow_copy(ACP_INTEGRITY_CRC32C, 1 * KB);
}

TEST(N4_batch_that_changes_on_a_slow_path_crc32c)
{
	slow_copy(ACP_INTEGRITY_CRC32C, 64 * KB);
}

TEST(N4_blocks_that_change_on_a_slow_path_crc32c)
{
	slow_blocks(ACP_INTEGRITY_CRC32C, 4 * KB);
}

TEST(N4_message_that_changes_on_a_slow_path_crc32c)
{
	slow_message(ACP_INTEGRITY_CRC32C);
}

TEST(N4_frame_that_changes_on_a_slow_path_encrypted)
{
	slow_copy(ACP_INTEGRITY_AEAD, 1 * KB);
}

TEST(N4_batch_that_changes_on_a_slow_path_encrypted)
{
	slow_copy(ACP_INTEGRITY_AEAD, 64 * KB);
}

TEST(N4_blocks_that_change_on_a_slow_path_encrypted)
{
	slow_blocks(ACP_INTEGRITY_AEAD, 4 * KB);
}

TEST(N4_message_that_changes_on_a_slow_path_encrypted)
{
	slow_message(ACP_INTEGRITY_AEAD);
}

TEST(N4_frame_that_changes_on_a_slow_path_udp)
{
	slow_copy(ACP_INTEGRITY_UDP, 1 * KB);
}

TEST(N4_batch_that_changes_on_a_slow_path_udp)
{
	slow_copy(ACP_INTEGRITY_UDP, 64 * KB);
}

TEST(N4_blocks_that_change_on_a_slow_path_udp)
{
	slow_blocks(ACP_INTEGRITY_UDP, 4 * KB);
}

TEST(N4_message_that_changes_on_a_slow_path_udp)
{
	slow_message(ACP_INTEGRITY_UDP);
}

/* ---- On a quick path ---- */

static volatile bool enough;
static pthread_t scribbler;

/* The owner writes to all of it continuously. */
static void *scribble(void *memory)
{
	struct memory *m = memory;
	size_t i;
	uint8_t k;

	for (k = 1; !enough; k++)
		for (i = 0; i < m->size; i += 64)
			*(volatile char *)(m->addr + i) = (char)k;
	return NULL;
}

static void begin_to_scribble(uint32_t integrity, size_t size)
{
	begin(integrity, size);
	CHECK_EQ(pthread_create(&scribbler, NULL, scribble, &source), 0);
}

static void end_to_scribble(void)
{
	enough = true;
	CHECK_EQ(pthread_join(scribbler, NULL), 0);
	CHECK_EQ(nodes_counters(&n, "flows_failed"), 0);
}

static void changing(uint32_t integrity)
{
	const size_t size = (test_short() ? 4 : 64) * KB * KB;
	long long frames, again;
	uint64_t begun;

	begin_to_scribble(integrity, size);
	begun = now_ns();
	CHECK_EQ(rank_do_copy(&r[0], memory_ga(&sink, 0), memory_ga(&source, 0), size), ACP_ST_OK);
	printf("# %zu MiB in %llu ms\n", size / KB / KB,
	       (unsigned long long)((now_ns() - begun) / MS));
	end_to_scribble();
	/* Each is retransmitted once, or twice for other reasons. */
	frames = nodes_counter(&n, 1, "rx_frames");
	again = nodes_counters(&n, "tx_retransmits");
	printf("# %lld frames, %lld again, %lld wrong\n", frames, again,
	       wrong_frames());
	CHECK(again < 2 * frames + 1000);
}

TEST(N4_source_that_changes_on_the_way)
{
	changing(ACP_INTEGRITY_TAG);
}

TEST(N4_source_that_changes_on_the_way_crc32c)
{
	changing(ACP_INTEGRITY_CRC32C);
}

TEST(N4_source_that_changes_on_the_way_udp)
{
	changing(ACP_INTEGRITY_UDP);
}

/* Encrypted data is copied first: no errors, and no retransmissions because of them. */
TEST(N4_source_that_changes_on_the_way_encrypted)
{
	const size_t size = (test_short() ? 1 : 4) * KB * KB;

	begin_to_scribble(ACP_INTEGRITY_AEAD, size);
	CHECK_EQ(rank_do_copy(&r[0], memory_ga(&sink, 0), memory_ga(&source, 0), size), ACP_ST_OK);
	end_to_scribble();
	CHECK_EQ(nodes_counters(&n, "drop_bad_aead"), 0);
	CHECK_EQ(nodes_counters(&n, "drop_bad_mac"), 0);
}

#define SMALL	1024UL		/* one frame */

/*
 * The owner changes all of the source while its frame is in flight, so few first transmissions are
 * valid.
 */
TEST(N4_small_source_that_changes_all_the_time)
{
	long long before, wrong, first = 0;
	int i;

	begin_to_scribble(ACP_INTEGRITY_TAG, SMALL);
	for (i = 0; i < 300; i++) {
		before = nodes_counter(&n, 1, "drop_bad_mac");
		CHECK_EQ(rank_do_copy(&r[0], memory_ga(&sink, 0), memory_ga(&source, 0), SMALL),
			 ACP_ST_OK);
		wrong = nodes_counter(&n, 1, "drop_bad_mac") - before;
		/* Retransmissions are copied before the tag is computed. */
		CHECK(wrong <= 1);
		first += wrong;
	}
	end_to_scribble();
	printf("# %lld of %d were wrong at first\n", first, i);
}
