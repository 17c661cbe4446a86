// SPDX-License-Identifier: MIT
/* selftest: gate=uml */
/*
 * Numbers that a node sends which is played by the test (ACP_OP_ACCUMULATE): what is malformed has
 * no effect; what is sent again is combined once; what cannot be combined fails, and its sender is
 * told why.
 */
#include "../dev/isolated.h"

#include <string.h>

#include "played_sender.h"

#define NUMBERS	(VICTIM_SIZE / 2)	/* offset in the target */
#define ADD	ACP_REDUCE(ACP_REDUCE_SUM, ACP_REDUCE_S64)

static uint64_t *number(uint32_t i)
{
	return (uint64_t *)(void *)(target.addr + NUMBERS) + i;
}

static struct acp_msg numbers_of(uint64_t ticket, uint32_t count, uint8_t flags)
{
	return (struct acp_msg){
		.type = ACP_MSG_DATA, .op = ACP_OP_ACCUMULATE, .flags = flags, .origin = 2,
		.ticket = ticket, .dst = memory_ga(&target, NUMBERS), .length = 8 * count, .a = ADD,
	};
}

/* Build the frame of a message whose payload are ones. */
static size_t build(char *out, const struct acp_msg *m, struct acp_frame *f)
{
	static uint64_t ones[8192];
	static char body[INJECT_MAX];
	uint32_t i;

	for (i = 0; i < 8192; i++)
		ones[i] = 1;
	if (m->length > ACP_FRAME_SHORT && !x.encrypted)
		f->flags |= ACP_FRAME_BULK | ACP_FRAME_MORE;
	return inject_build(&x, out, f, body, inject_message(body, m, m->length ? ones : NULL));
}

/* Send it so many times. Returns its number. */
static uint64_t send_again(const struct acp_msg *m, uint8_t flags, unsigned int times)
{
	static char datagram[INJECT_MAX];
	struct acp_frame f = inject_header(&x, ACP_FRAME_DATA);
	size_t size;

	f.flags |= flags;
	size = build(datagram, m, &f);
	while (times--)
		inject_send(&x, datagram, size);
	return f.seq;
}

static void all_are(uint32_t count, uint64_t value, const char *text)
{
	uint32_t i;

	for (i = 0; i < VICTIM_SIZE / 16; i++)
		if (*number(i) != (i < count ? value : 0))
			FAIL("%s: number %u is %lu", text, i, *number(i));
}

/* A frame that is malformed is counted, acknowledged, and has no effect. */
static void malformed(const struct acp_msg *m, const char *text)
{
	struct count bad = nodes_count(&n, 0, "drop_bad_msg");

	inject_applied(&x, send_again(m, 0, 1));
	nodes_counted(&bad, 1);
	all_are(0, 0, text);
}

static void wrong_numbers(void)
{
	static const struct {
		uint8_t op, flags;
		uint32_t length, shift;
		uint64_t what, flag, operand;
		const char *text;
	} wrong[] = {
		{ .length = 0, .text = "no numbers" }, { .length = 4, .text = "half a number" },
		{ .length = 12, .text = "one and a half" },
		{ .length = 4104, .text = "too many" }, { .length = 12000, .text = "far too many" },
		{ .length = 8, .shift = 4, .text = "not aligned" },
		{ .length = 8, .shift = 1, .text = "at an odd address" },
		{ .length = 8, .what = ACP_REDUCE(8, 1), .text = "no such operation" },
		{ .length = 8, .what = ACP_REDUCE(255, 1), .text = "no such operation at all" },
		{ .length = 8, .what = ACP_REDUCE(1, 6), .text = "no such type" },
		{ .length = 8, .what = ACP_REDUCE(1, 255), .text = "no such type at all" },
		{ .length = 8, .what = ACP_REDUCE(4, 5), .text = "bits of double" },
		{ .length = 8, .what = ACP_REDUCE(6, 4), .text = "bits of float" },
		{ .length = 8, .what = ADD | 1 << 16, .text = "a count" },
		{ .length = 8, .what = ADD | 1ULL << 63, .text = "reserved bits" },
		{ .length = 8, .flag = 8, .text = "a flag without a signal" },
		{ .length = 8, .operand = 1, .text = "an operand without a signal" },
		{ .op = ACP_OP_ACCUMULATE_ADD, .length = 8, .text = "a signal before the end" },
		{ .op = ACP_OP_ACCUMULATE_SET, .length = 8, .text = "the same to set it" },
		{ .op = ACP_OP_ACCUMULATE_ADD, .flags = ACP_MSG_LAST, .length = 0,
		  .text = "a signal alone" },
		{ .op = ACP_OP_REDUCE, .flags = ACP_MSG_LAST, .length = 8, .text = "REDUCE" },
		{ .op = ACP_OP_END, .flags = ACP_MSG_LAST, .length = 8, .text = "the next one" },
		{ .flags = ACP_MSG_LAST | ACP_MSG_ORDERED, .length = 8, .text = "a turn" },
		{ .flags = ACP_MSG_LAST | ACP_MSG_GRANTED, .length = 8, .text = "a grant" },
	};
	struct acp_msg m;
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		m = numbers_of(1000 + i, 0, wrong[i].flags);
		m.op = wrong[i].op ? wrong[i].op : ACP_OP_ACCUMULATE;
		m.length = wrong[i].length;
		m.dst += wrong[i].shift;
		m.a = wrong[i].what ? wrong[i].what : ADD;
		m.c = wrong[i].flag;
		m.b = wrong[i].operand;
		malformed(&m, wrong[i].text);
	}
}

TEST(N6_numbers_that_are_malformed)
{
	play(ACP_INTEGRITY_TAG);
	wrong_numbers();
}

TEST(N6_numbers_that_are_malformed_encrypted)
{
	play(ACP_INTEGRITY_AEAD);
	wrong_numbers();
}

/* A command for numbers: it must have some, and an operation on them. */
TEST(N6_commands_for_numbers_that_are_malformed)
{
	static const uint64_t sizes[] = { 0, 1 << 16 | 8, 1 << 16 | 0x600, 1 << 16 | 0x504, ADD,
					  ~0ULL };
	struct acp_frame f;
	char body[64];
	size_t i, size;

	play(ACP_INTEGRITY_TAG);
	*number(0) = 1;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct count bad = nodes_count(&n, 0, "drop_bad_msg");
		struct acp_msg m = numbers_of(2000 + i, 0, 0);

		m.type = ACP_MSG_CMD;
		m.src = m.dst;
		m.size = 8;
		f = inject_header(&x, ACP_FRAME_DATA);
		size = inject_message(body, &m, NULL);
		((struct acp_msg_cmd *)(void *)body)->args[0] = cpu_to_be64(sizes[i]);
		inject_frame(&x, &f, body, size);
		inject_applied(&x, f.seq);
		nodes_counted(&bad, 1);
	}
	all_are(1, 1, "commands");
}

/* ---- once ---- */

static void repeated(uint32_t count)
{
	uint32_t i;

	for (i = 1; i <= 10; i++) {
		const struct acp_msg m = numbers_of(3000 + i, count, ACP_MSG_LAST);

		inject_applied(&x, send_again(&m, 0, i));
		all_are(count, i, "repeated");
	}
	inject_drain(&x);
	all_are(count, 10, "repeated");
	memset(number(0), 0, 8 * count);
}

TEST(a_frame_that_is_repeated_is_combined_once)
{
	play(ACP_INTEGRITY_TAG);
	repeated(1);
	repeated(16);
	repeated(17);
	repeated(512);
}

TEST(a_frame_that_is_repeated_is_combined_once_encrypted)
{
	play(ACP_INTEGRITY_AEAD);
	repeated(1);
	repeated(512);
}

/* Pieces of one command arrive in any order, again and again, the last one first. */
TEST(pieces_are_combined_once_in_any_order)
{
	static char datagram[4][9000];
	struct acp_frame f;
	size_t size[4];
	uint32_t i, k;

	play(ACP_INTEGRITY_TAG);
	for (i = 0; i < 4; i++) {
		struct acp_msg m = numbers_of(4000, 200, i < 3 ? 0 : ACP_MSG_LAST);

		m.dst += (uint64_t)i * 1600;
		f = inject_header(&x, ACP_FRAME_DATA);
		if (i == 3) {
			f.flags |= ACP_FRAME_FENCE;
			m.op = ACP_OP_ACCUMULATE_ADD;
			m.b = 5;
			m.c = heap_ga(&second, 64);
		}
		size[i] = build(datagram[i], &m, &f);
	}
	for (k = 0; k < 30; k++) {
		i = 3 - k % 4;
		inject_send(&x, datagram[i], size[i]);
	}
	inject_applied(&x, f.seq);
	all_are(800, 1, "pieces");
	CHECK_EQ(*(uint64_t *)(void *)(second.heap + 64), 5);
}

/* Many of them in one frame; and with other messages. */
TEST(numbers_share_frames)
{
	static const uint64_t ones[2] = { 1, 1 };
	static char body[64 * 80];
	struct acp_frame f;
	struct acp_msg m;
	size_t size = 0;

	play(ACP_INTEGRITY_TAG);
	m = numbers_of(5000, 2, ACP_MSG_LAST);
	f = inject_header(&x, ACP_FRAME_DATA);
	for (; m.ticket < 5064; m.ticket++)
		size += inject_message(body + size, &m, ones);
	inject_frame(&x, &f, body, size);
	inject_frame(&x, &f, body, size);
	inject_applied(&x, f.seq);
	all_are(2, 64, "shared");
}

/* ---- what fails ---- */

static void fails(uint64_t dst, int status)
{
	static uint64_t ticket = 6000;
	struct acp_msg m = numbers_of(++ticket, 2, ACP_MSG_LAST);

	m.dst = dst;
	send_again(&m, 0, 3);
	CHECK_EQ(inject_done(&x, ticket), status);
	inject_applied(&x, x.seq - 1);
	all_are(0, 0, "fails");
}

TEST(numbers_to_where_no_memory_is)
{
	struct memory constant;

	play(ACP_INTEGRITY_TAG);
	fails(0, ACP_ST_GA);
	fails(~7ULL, ACP_ST_GA);
	fails(rank_ga(&victim, 0, 99, 0), ACP_ST_STAG);
	fails(rank_ga(&victim, 2, ACP_STAG_HEAP, 0), ACP_ST_RANK);
	fails(memory_ga(&target, VICTIM_SIZE), ACP_ST_RANGE);
	fails(memory_ga(&target, VICTIM_SIZE - 8), ACP_ST_RANGE);
	CHECK_EQ(rank_register(&victim, &constant, pages(PAGE, PROT_READ | PROT_WRITE), PAGE,
			       ACP_ACCESS_READ | ACP_ACCESS_WRITE), 0);
	fails(memory_ga(&constant, 0), ACP_ST_ACCESS);
	CHECK(!*(uint64_t *)(void *)constant.addr);
}

/* The flag fails when the numbers have been combined: what comes again changes nothing. */
TEST(numbers_are_combined_once_if_the_flag_fails)
{
	static const struct {
		uint64_t flag;
		int status;
	} wrong[] = { { 0, ACP_ST_GA }, { 4, ACP_ST_ALIGN }, { VICTIM_SIZE, ACP_ST_RANGE } };
	struct acp_msg m;
	uint32_t i;

	play(ACP_INTEGRITY_TAG);
	for (i = 0; i < 3; i++) {
		m = numbers_of(7000 + i, 3, ACP_MSG_LAST);
		m.op = ACP_OP_ACCUMULATE_SET;
		m.c = wrong[i].flag ? memory_ga(&target, wrong[i].flag) : 0;
		send_again(&m, 0, 20);
		CHECK_EQ(inject_done(&x, m.ticket), wrong[i].status);
		all_are(3, i + 1, "the flag fails");
	}
	inject_applied(&x, x.seq - 1);
}

/* If an earlier piece has failed, the command has, and its flag does not change. */
TEST(a_piece_that_fails_fails_the_command)
{
	struct acp_msg m;

	play(ACP_INTEGRITY_TAG);
	m = numbers_of(8000, 4, 0);
	m.dst = memory_ga(&target, VICTIM_SIZE);
	send_again(&m, 0, 3);
	m = numbers_of(8000, 4, ACP_MSG_LAST);
	m.op = ACP_OP_ACCUMULATE_ADD;
	m.b = 1;
	m.c = heap_ga(&second, 64);
	send_again(&m, ACP_FRAME_FENCE, 3);
	CHECK_EQ(inject_done(&x, 8000), ACP_ST_RANGE);
	inject_applied(&x, x.seq - 1);
	CHECK(*number(0) <= 1 && !*(uint64_t *)(void *)(second.heap + 64));
}
