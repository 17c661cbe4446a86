// SPDX-License-Identifier: MIT
/*
 * Bursts of messages: the pieces of a long message share datagrams of the kernel (UDP GSO), and
 * those that arrive together are processed together, in the order that their fences want.
 */
#include "../dev/isolated.h"

#include <string.h>
#include <sys/socket.h>

#include "batches.h"
#include "played_sender.h"

#define KB		1024UL
#define LONG		(256 * KB)
#define TAG		0x123456789abcdefULL

static struct acp_record *record_of(struct memory *m)
{
	return (void *)(m->addr + HEAD);
}

static uint64_t state_of(struct memory *m)
{
	return __atomic_load_n(&record_of(m)->state, __ATOMIC_ACQUIRE);
}

/* ---- sent by the kernel ---- */

static struct rank r[2];
static struct memory from, to;

static void begin(bool ipv6, uint32_t integrity)
{
	const struct acp_join wish = { .integrity = integrity, .timeout_ms = 30000 };

	nodes_open(&n, 2, 1, ipv6);
	nodes_ranks_like(&n, r, 2, &wish);
	memory_open(&r[0], &from, LONG + 4096);
	memory_open(&r[1], &to, LONG + 8192);
	/* A sender batches frames to a peer that it knows. */
	CHECK_EQ(rank_do_copy(&r[0], memory_ga(&to, 0), memory_ga(&from, 0), 8), ACP_ST_OK);
}

static void one_message(size_t size, size_t at, uint64_t seed, unsigned int late_ms)
{
	struct acp_sqe e = {
		.op = ACP_OP_SEND, .dst = memory_ga(&to, 0), .src = memory_ga(&from, at),
		.size = size, .b = TAG + seed, .seen = rank_completed(&r[0]),
	};
	const char *there = to.addr + HEAD + RECORD;

	sleep_ms(late_ms);
	offer(&to, LONG + 4096);
	fill(from.addr + at, size, seed);
	CHECK_EQ(rank_await(&r[0], rank_submit(&r[0], &e), PATIENCE_SOON), ACP_ST_OK);
	CHECK_EQ(state_of(&to), size << 2 | ACP_RECORD_READY);
	CHECK_EQ(record_of(&to)->tag, TAG + seed);
	CHECK_EQ(record_of(&to)->rank, 0);
	CHECK(filled(there, size, seed));
	CHECK(!there[size] && !there[size + 1]);
}

static long long frames_per_datagram(unsigned int late_ms)
{
	static const size_t sizes[] = { LONG, LONG - 1, 100000, 20001, 4096, 3000 };
	long long frames = nodes_counter(&n, 1, "rx_frames"), units = batches_datagrams(&n, 1);
	long long again = nodes_counter(&n, 0, "tx_retransmits");
	uint32_t i;

	for (i = 0; i < 12; i++)
		one_message(sizes[i % 6], i * 397 % 4096, i, late_ms);
	frames = nodes_counter(&n, 1, "rx_frames") - frames;
	units = batches_datagrams(&n, 1) - units;
	/* Those that are sent again go one by one. */
	again = nodes_counter(&n, 0, "tx_retransmits") - again;
	CHECK(frames > 500);
	CHECK_EQ(nodes_counters(&n, "drop_bad_msg"), 0);
	CHECK_EQ(nodes_counters(&n, "flows_failed"), 0);
	printf("# %lld frames in %lld datagrams, %lld sent again\n", frames, units, again);
	return units > again ? 100 * (frames - again) / (units - again) : 0;
}

static const struct batches messages = { &n, begin, frames_per_datagram };

static void together(bool ipv6, uint32_t integrity)
{
	bool bursts = integrity != ACP_INTEGRITY_CRC32C;

	begin(ipv6, integrity);
	batches_share_datagrams(&messages);
	/* All but the last piece of a message are built together, and most arrive so. */
	CHECK_EQ(nodes_counter(&n, 0, "tx_burst") > 400, bursts);
	CHECK_EQ(nodes_counter(&n, 1, "rx_burst") > 400, bursts);
}

TEST(A4_pieces_of_messages_share_datagrams)
{
	together(false, ACP_INTEGRITY_TAG);
}

TEST(A4_pieces_of_messages_share_datagrams_ipv6)
{
	together(true, ACP_INTEGRITY_TAG);
}

TEST(A4_pieces_of_messages_share_datagrams_encrypted)
{
	together(false, ACP_INTEGRITY_AEAD);
}

TEST(A4_pieces_of_messages_share_datagrams_without_tags)
{
	together(false, ACP_INTEGRITY_UDP);
}

TEST(A4_pieces_of_messages_with_checksums)
{
	together(false, ACP_INTEGRITY_CRC32C);
}

TEST(A4_bursts_of_messages_with_loss)
{
	batches_lost(&messages, ACP_INTEGRITY_TAG);
}

TEST(A4_bursts_of_messages_with_loss_of_frames)
{
	batches_impaired(&messages, "loss 2%", ACP_INTEGRITY_TAG, true);
	CHECK(nodes_counters(&n, "tx_retransmits") > 0);
}

TEST(A4_bursts_of_messages_with_loss_encrypted)
{
	batches_lost(&messages, ACP_INTEGRITY_AEAD);
}

TEST(A4_bursts_of_messages_twice_and_out_of_order)
{
	batches_disordered(&messages, ACP_INTEGRITY_TAG);
}

/*
 * The first piece is lost, several times, and the others wait for it. When it has come at last, the
 * time-outs are not taken for spurious ones because of those that had waited. Returns how many
 * were.
 */
static long long first_piece_is_lost(void)
{
	long long wrong = nodes_counter(&n, 0, "timeouts_wrong");
	long long held = nodes_counter(&n, 1, "rx_held");
	struct patience p = patience_begin(PATIENCE_SOON);
	struct acp_sqe e = {
		.op = ACP_OP_SEND, .dst = memory_ga(&to, 0), .src = memory_ga(&from, 0),
		.size = 60000, .seen = rank_completed(&r[0]),
	};

	/* From the IP header on: operation of the message, and lower half of its position. */
	nodes_run(&n, NODES_HUB, "tc filter add dev port0.1 egress protocol ip u32 "
		  "match u8 %d 0xff at 78 match u32 0 0xffffffff at 120 action drop", ACP_OP_SEND);
	offer(&to, LONG);
	rank_submit(&r[0], &e);
	while (nodes_counter(&n, 1, "rx_held") == held)
		CHECK(!patience_over(&p));
	sleep_ms(50);
	nodes_run(&n, NODES_HUB, "tc filter del dev port0.1 egress");
	CHECK_EQ(rank_await(&r[0], r[0].last, PATIENCE_SOON), ACP_ST_OK);
	CHECK_EQ(state_of(&to), 60000ULL << 2 | ACP_RECORD_READY);
	return nodes_counter(&n, 0, "timeouts_wrong") - wrong;
}

TEST(A4_N1_pieces_that_wait_for_a_lost_one_are_no_sign_that_it_was_late)
{
	int tries = 5;

	begin(false, ACP_INTEGRITY_TAG);
	nodes_run(&n, 0, "ip link set eth0 gso_max_segs 1");
	nodes_run(&n, NODES_HUB, "tc qdisc add dev port0.1 clsact");
	/* On a machine that pauses, others may be. */
	while (first_piece_is_lost())
		CHECK(--tries);
}

/* ---- sent by the test ---- */

#define PIECE		256U		/* bytes of a payload */
#define ROW		9U		/* pieces before the last one */
#define TOTAL		((ROW + 1) * PIECE)
#define EACH		(sizeof(struct acp_frame_hdr) + sizeof(struct acp_msg_data) + \
			 sizeof(struct acp_msg_more) + PIECE)

static char batch[60000];
static size_t filled_up;		/* bytes used */

static size_t each(void)
{
	return EACH + (x.encrypted ? ACP_FRAME_ENCRYPTED : 0);
}

/* Add piece number i of a message of "total" bytes, all of value i + 1. */
static void add_piece(uint64_t ticket, uint32_t i, uint64_t total, uint8_t flags)
{
	struct acp_frame f = inject_header(&x, ACP_FRAME_DATA);
	struct acp_msg m = {
		.type = ACP_MSG_DATA, .op = ACP_OP_SEND, .flags = flags, .origin = 2,
		.ticket = ticket, .dst = memory_ga(&target, 0), .length = PIECE, .a = TAG,
		.b = i * PIECE, .c = total,
	};
	char body[PIECE + 100], data[PIECE];

	memset(data, (int)i + 1, sizeof(data));
	f.flags |= ACP_FRAME_FENCE;
	if (!x.encrypted)
		f.flags |= ACP_FRAME_BULK | ACP_FRAME_MORE;
	filled_up += inject_build(&x, batch + filled_up, &f, body, inject_message(body, &m, data));
}

/* Send what was added, in one datagram, which arrives as such, or one by one. */
static void leave(bool together)
{
	int size = (int)each(), none = 0;
	size_t at;

	if (together) {
		CHECK_EQ(setsockopt(x.fd, SOL_UDP, UDP_SEGMENT, &size, sizeof(size)), 0);
		inject_send(&x, batch, filled_up);
		CHECK_EQ(setsockopt(x.fd, SOL_UDP, UDP_SEGMENT, &none, sizeof(none)), 0);
	}
	for (at = 0; at < filled_up && !together; at += each())
		inject_send(&x, batch + at, each());
	filled_up = 0;
}

static bool is_there(uint32_t i)
{
	const char *p = target.addr + HEAD + RECORD + i * PIECE;
	uint32_t b, count = 0;

	for (b = 0; b < PIECE; b++)
		count += p[b] == (char)(i + 1);
	CHECK(!count || count == PIECE);
	return count;
}

static void only_there(uint32_t first, uint32_t end)
{
	uint32_t i;

	for (i = 0; i <= ROW; i++)
		CHECK_EQ(is_there(i), i >= first && i < end);
}

static void await_piece(uint32_t i)
{
	struct patience p = patience_begin(PATIENCE_SOON);

	while (!is_there(i)) {
		if (patience_over(&p))
			FAIL("piece %u is not there", i);
		sleep_ms(1);
	}
}

/* All pieces but the last one, from number "first" on. */
static void add_row(uint64_t ticket, uint32_t first)
{
	uint32_t i;

	for (i = first; i < ROW; i++)
		add_piece(ticket, i, TOTAL, 0);
}

static void add_last(uint64_t ticket)
{
	add_piece(ticket, ROW, TOTAL, ACP_MSG_LAST);
}

static void is_complete(void)
{
	inject_applied(&x, x.seq - 1);
	CHECK_EQ(state_of(&target), (uint64_t)TOTAL << 2 | ACP_RECORD_READY);
	CHECK_EQ(record_of(&target)->tag, TAG);
	CHECK_EQ(record_of(&target)->rank, 2);
	only_there(0, ROW + 1);
	offer(&target, VICTIM_SIZE - HEAD);
}

static void in_order(uint32_t integrity)
{
	uint64_t ticket;

	play(integrity);
	for (ticket = 1000; ticket < 1010; ticket++) {
		add_row(ticket, 0);
		leave(ticket % 2);
		inject_applied(&x, x.seq - 1);
		CHECK_EQ(state_of(&target), (uint64_t)TOTAL << 2 | ACP_RECORD_ARRIVING);
		only_there(0, ROW);
		add_last(ticket);
		leave(false);
		is_complete();
		/* With the last one in the same datagram. */
		add_row(ticket + 100, 0);
		add_last(ticket + 100);
		leave(true);
		is_complete();
	}
}

TEST(A4_a_burst_of_a_message)
{
	in_order(ACP_INTEGRITY_TAG);
}

TEST(A4_a_burst_of_a_message_encrypted)
{
	in_order(ACP_INTEGRITY_AEAD);
}

/* Before the first piece is there, the others have no effect: older messages may need the room. */
static void first_is_late(uint32_t integrity)
{
	char first[EACH + ACP_FRAME_ENCRYPTED];
	struct count held;

	play(integrity);
	held = nodes_count(&n, 0, "rx_held");
	add_piece(1000, 0, TOTAL, 0);
	memcpy(first, batch, each());
	filled_up = 0;
	add_row(1000, 1);
	leave(true);
	nodes_counted(&held, ROW - 1);
	CHECK_EQ((uint32_t)((struct acp_mailbox *)(void *)target.addr)->room, 0);
	only_there(0, 0);
	inject_send(&x, first, each());
	inject_applied(&x, x.seq - 1);
	only_there(0, ROW);
	add_last(1000);
	leave(false);
	is_complete();
}

TEST(A4_a_burst_waits_for_the_first_piece_of_its_message)
{
	first_is_late(ACP_INTEGRITY_TAG);
}

TEST(A4_a_burst_waits_for_the_first_piece_of_its_message_encrypted)
{
	first_is_late(ACP_INTEGRITY_AEAD);
}

/* Behind the first piece, what is lost holds back none but the last one. */
static void one_is_lost(uint32_t integrity)
{
	char lost[EACH + ACP_FRAME_ENCRYPTED];
	struct count held;

	play(integrity);
	held = nodes_count(&n, 0, "rx_held");
	add_piece(1000, 0, TOTAL, 0);
	leave(false);
	inject_applied(&x, x.seq - 1);
	add_piece(1000, 1, TOTAL, 0);
	memcpy(lost, batch, each());
	filled_up = 0;
	add_row(1000, 2);
	leave(true);
	await_piece(ROW - 1);
	CHECK(is_there(2) && !is_there(1));
	add_last(1000);
	leave(false);
	nodes_counted(&held, 1);
	CHECK_EQ(state_of(&target), (uint64_t)TOTAL << 2 | ACP_RECORD_ARRIVING);
	inject_send(&x, lost, each());
	is_complete();
}

TEST(A4_a_burst_need_not_wait_for_lost_pieces)
{
	one_is_lost(ACP_INTEGRITY_TAG);
}

TEST(A4_a_burst_need_not_wait_for_lost_pieces_encrypted)
{
	one_is_lost(ACP_INTEGRITY_AEAD);
}

/* Errors in a burst have the same effect as errors in single frames. */
static void refused(bool together, uint32_t integrity)
{
	struct count bad;

	play(integrity);
	bad = nodes_count(&n, 0, "drop_bad_msg");
	/* There is no room for it; it is longer than the mailbox. */
	offer(&target, TOTAL);
	add_row(1000, 0);
	leave(together);
	add_last(1000);
	leave(false);
	CHECK_EQ(inject_done(&x, 1000), ACP_ST_RANGE);
	offer(&target, VICTIM_SIZE - HEAD);
	((struct acp_mailbox *)(void *)target.addr)->room = ACP_MAILBOX_ROOM(0, TOTAL / 8);
	add_row(1001, 0);
	leave(together);
	add_last(1001);
	leave(false);
	CHECK_EQ(inject_done(&x, 1001), ACP_ST_AGAIN);
	only_there(0, 0);
	/* Its size is another one later. */
	offer(&target, VICTIM_SIZE - HEAD);
	add_piece(1002, 0, TOTAL, 0);
	add_piece(1002, 1, TOTAL, 0);
	leave(together);
	add_piece(1002, 2, TOTAL + PIECE, 0);
	add_piece(1002, 3, TOTAL + PIECE, 0);
	leave(together);
	add_last(1002);
	leave(false);
	CHECK_EQ(inject_done(&x, 1002), ACP_ST_RANGE);
	inject_applied(&x, x.seq - 1);
	CHECK_EQ(state_of(&target), (uint64_t)TOTAL << 2 | ACP_RECORD_VOID);
	CHECK(!is_there(2) && !is_there(3));
	nodes_counted(&bad, 0);
	/* One that is the last, but does not say so. */
	offer(&target, VICTIM_SIZE - HEAD);
	add_row(1003, ROW - 2);
	add_piece(1003, ROW, TOTAL, 0);
	leave(together);
	nodes_counted(&bad, 1);
	inject_applied(&x, x.seq - 1);
	only_there(ROW - 2, ROW);
}

TEST(A4_a_burst_that_is_refused)
{
	refused(true, ACP_INTEGRITY_TAG);
}

TEST(A4_a_burst_that_is_refused_frame_by_frame)
{
	refused(false, ACP_INTEGRITY_TAG);
}

TEST(A4_a_burst_that_is_refused_encrypted)
{
	refused(true, ACP_INTEGRITY_AEAD);
}

/*
 * A checksum in a job without checksums, in the first 8 bytes of each payload, and something in its
 * reserved field: a burst of them is read no further than a single one.
 */
TEST(N6_a_burst_with_checksums_that_the_job_has_not)
{
	const size_t tagged = EACH - PIECE + sizeof(struct acp_frame_crc);
	struct count bad;
	size_t at;

	play(ACP_INTEGRITY_TAG);
	bad = nodes_count(&n, 0, "drop_bad_flags");
	add_row(1000, 0);
	for (at = 0; at < filled_up; at += EACH) {
		struct acp_frame_hdr *h = (void *)(batch + at);

		h->flags |= ACP_FRAME_CRC;
		inject_sign(&x, h, tagged, EACH);
	}
	leave(true);
	nodes_counted(&bad, ROW);
	CHECK(!state_of(&target));
	only_there(0, 0);
}
