// SPDX-License-Identifier: MIT
/*
 * kernel/core/frame.c: encoding of messages, and rejection of everything else. Buffers end where
 * the message ends, so that AddressSanitizer detects any read beyond.
 */
#include "frame_play.h"

/* ---- messages ---- */

TEST(msg__round_trip)
{
	struct acp_msg in, out;
	int i;

	for (i = 0; i < 100000; i++) {
		u32 size, have;

		in = random_msg();
		size = acp_msg_size(&in);
		have = acp_msg_head(&in);
		CHECK_EQ(size & 7, 0);
		CHECK_EQ(size, have + (in.length + 7) / 8 * 8);
		if (in.type == ACP_MSG_PING || in.type == ACP_MSG_WORDS)
			have = size;
		CHECK_EQ(decode_msg(&in, size + rnd() % 100, have, &out), size);
		CHECK(same_msg(&in, &out));
	}
}

TEST(msg__N5_every_length)
{
	struct acp_msg in, out;
	u32 i, room, have;

	for (i = 0; i < 300; i++) {
		in = random_msg();
		in.length = in.type == ACP_MSG_WORDS ? 32 + i % 2 * 16 : in.length % 64;
		if (in.type == ACP_MSG_DATA && acp_op_indirect(in.op)) {
			in.length |= 1;
			in.c = in.b + in.length + !(in.flags & ACP_MSG_LAST);
		}
		for (room = 0; room < acp_msg_size(&in) + 16; room++) {
			for (have = 0; have <= room; have++) {
				bool whole = in.type == ACP_MSG_PING || in.type == ACP_MSG_WORDS;
				bool good = room >= acp_msg_size(&in) &&
					    have >= (whole ? acp_msg_size(&in) :
							     acp_msg_head(&in));

				CHECK_EQ(decode_msg(&in, room, have, &out),
					 good ? acp_msg_size(&in) : 0);
			}
		}
	}
}

TEST(msg__N5_huge_length)
{
	struct acp_msg in = { .type = ACP_MSG_DATA, .flags = ACP_MSG_LAST }, out;
	u32 i;

	for (i = 0; i < 100; i++) {
		in.length = ~0u - i;
		CHECK_EQ(decode_msg(&in, 65535, 32, &out), 0);
		in.length = 0x80000000u - 50 + i;
		CHECK_EQ(decode_msg(&in, 65535, 32, &out), 0);
	}
}

TEST(msg__N6_type)
{
	u8 raw[64] __attribute__((aligned(8))) = { 0 };
	struct acp_msg out;
	u32 type;

	for (type = 0; type < 256; type++) {
		raw[0] = type;
		raw[2] = type == ACP_MSG_CMD ? ACP_OP_COPY : type == ACP_MSG_ASK ? ACP_OP_SEND : 0;
		CHECK_EQ(acp_msg_decode(&out, raw, 64, 64) != 0,
			 type >= ACP_MSG_DATA && type <= ACP_MSG_GRANT && type != ACP_MSG_WORDS);
	}
}

TEST(msg__N6_flags)
{
	static const u8 known[] = { 0, ACP_MSG_LAST | ACP_MSG_FAIL | ACP_MSG_ORDERED |
				       ACP_MSG_GRANTED,
				    ACP_MSG_ORDERED | ACP_MSG_FAIL, 0,
				    ACP_MSG_RELEASE | ACP_MSG_ABORT | ACP_MSG_BROKEN,
				    ACP_MSG_ANSWER };
	u32 type, flags;

	for (type = ACP_MSG_DATA; type <= ACP_MSG_PING; type++) {
		for (flags = 0; flags < 256; flags++) {
			struct acp_msg in = { .type = type, .flags = flags }, out;

			if (type == ACP_MSG_CMD)
				in.op = ACP_OP_COPY;
			if (type <= ACP_MSG_CMD && (flags & ACP_MSG_FAIL))
				in.status = ACP_ST_STAG;
			/*
			 * Only a message into a mailbox waits for its turn or is granted a receive,
			 * but not both, or one that failed.
			 */
			const u8 either = flags & (ACP_MSG_ORDERED | ACP_MSG_GRANTED);
			bool bad = (flags & ~known[type]) ||
				   (type == ACP_MSG_DATA && either &&
				    (!(flags & ACP_MSG_FAIL) ||
				     either == (ACP_MSG_ORDERED | ACP_MSG_GRANTED)));

			CHECK_EQ(decode_msg(&in, 64, 64, &out) != 0, !bad);
		}
	}
}

/* A message that is behind another one says so of one only, and is tried again itself. */
TEST(msg__N6_turns)
{
	static const struct {
		u8 op, flags;
		u16 depends, upto;
		bool ok;
	} t[] = {
		{ ACP_OP_SEND, ACP_MSG_ORDERED, 0, 0, true },
		{ ACP_OP_SEND, ACP_MSG_ORDERED, 9, 2, true },
		{ ACP_OP_SEND, ACP_MSG_ORDERED | ACP_MSG_BEHIND, 9, 9, true },
		{ ACP_OP_SEND, ACP_MSG_ORDERED | ACP_MSG_BEHIND, 9, 8, false },
		{ ACP_OP_SEND, ACP_MSG_ORDERED | ACP_MSG_BEHIND, 0, 0, false },
		{ ACP_OP_SEND, ACP_MSG_BEHIND, 9, 9, false },
		{ ACP_OP_APPEND, ACP_MSG_ORDERED, 0, 0, false },
		{ ACP_OP_APPEND, ACP_MSG_ORDERED | ACP_MSG_BEHIND, 9, 9, false },
		{ 0, ACP_MSG_FAIL | ACP_MSG_ORDERED | ACP_MSG_BEHIND, 9, 9, true },
		{ 0, ACP_MSG_FAIL | ACP_MSG_BEHIND, 9, 9, false },
		{ 0, ACP_MSG_BEHIND, 9, 9, false },
	};
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct acp_msg in = { .type = ACP_MSG_DATA, .op = t[i].op, .length = 8, .c = 8,
				      .flags = t[i].flags | ACP_MSG_LAST, .depends = t[i].depends,
				      .upto = t[i].upto }, out;

		if (in.flags & ACP_MSG_FAIL) {
			in.status = ACP_ST_AGAIN;
			in.length = 0;
		}
		CHECK_EQ(decode_msg(&in, 200, 200, &out) != 0, t[i].ok);
	}
}

/* Return the size of a CMD; 0: no such operation. */
static u32 size_of_cmd(u32 op)
{
	if (op == ACP_OP_CAS4 || op == ACP_OP_CAS8)
		return 56;
	if (op >= ACP_OP_STRIDED && acp_op_travels(op))
		return 64;
	return op >= ACP_OP_COPY && op <= ACP_OP_AND8 ? 48 : 0;
}

TEST(msg__N6_operations)
{
	struct acp_msg in = { .type = ACP_MSG_CMD, .size = 8 }, out;
	u32 op;

	for (op = 0; op < 256; op++) {
		in.op = op;
		in.flags = 0;
		in.status = 0;
		in.c = ACP_BLOCKS(1, 2);
		CHECK_EQ(decode_msg(&in, 100, 100, &out), size_of_cmd(op));
		in.flags = ACP_MSG_FAIL;
		in.status = ACP_ST_ORDER;
		CHECK_EQ(decode_msg(&in, 100, 100, &out), size_of_cmd(op));
		CHECK(!size_of_cmd(op) || out.status == ACP_ST_ORDER);
	}
}

/* A CMD contains the arguments of its operation; others are decoded as 0. */
TEST(msg__N5_length_of_a_command)
{
	struct acp_msg in = { .type = ACP_MSG_CMD, .dst = 1, .src = 2, .size = 3, .a = 4, .b = 5,
			      .c = ACP_BLOCKS(6, 7) };
	struct acp_msg out;
	u32 op, have;

	for (op = ACP_OP_COPY; op <= ACP_OP_GATHER; op++) {
		u32 size = size_of_cmd(op);

		in.op = op;
		CHECK_EQ(acp_msg_head(&in), size);
		CHECK_EQ(acp_msg_size(&in), size);
		for (have = 0; have < size; have++)
			CHECK_EQ(decode_msg(&in, have, have, &out), 0);
		CHECK_EQ(decode_msg(&in, size - 1, size, &out), 0);
		CHECK_EQ(decode_msg(&in, size, size - 1, &out), 0);
		CHECK_EQ(decode_msg(&in, size, size, &out), size);
		CHECK(out.dst == 1 && out.src == 2);
		CHECK_EQ(out.size, op == ACP_OP_COPY || op > ACP_OP_STRIDED ? 3 :
				   op == ACP_OP_STRIDED ? 42 : 0);
		CHECK_EQ(out.a, op == ACP_OP_COPY || op > ACP_OP_STRIDED ? 0 : 4);
		CHECK_EQ(out.b, size >= 56 ? 5 : 0);
		CHECK_EQ(out.c, size == 64 ? ACP_BLOCKS(6, 7) : 0);
	}
}

/* True if a message of the type with a field that only some types have is encoded and decoded. */
static bool takes(struct acp_msg m, u8 type)
{
	struct acp_msg out;

	m.type = type;
	if (type == ACP_MSG_CMD)
		m.op = ACP_OP_COPY;
	return decode_msg(&m, 128, 128, &out) != 0;
}

TEST(msg__N6_fields_of_other_types)
{
	struct acp_msg op = { .op = 1 }, status = { .status = 1 }, length = { .length = 1 };
	struct acp_msg depends = { .depends = 2, .upto = 1 };

	CHECK(!takes(op, ACP_MSG_DATA) && takes(op, ACP_MSG_CMD));
	CHECK(!takes(op, ACP_MSG_DONE) && !takes(op, ACP_MSG_BARRIER) && !takes(op, ACP_MSG_PING));
	CHECK(!takes(status, ACP_MSG_DATA) && !takes(status, ACP_MSG_CMD));
	CHECK(takes(status, ACP_MSG_DONE) && !takes(status, ACP_MSG_BARRIER));
	CHECK(!takes(status, ACP_MSG_PING) && takes(length, ACP_MSG_PING));
	CHECK(takes(length, ACP_MSG_DATA) && !takes(length, ACP_MSG_CMD));
	CHECK(!takes(length, ACP_MSG_DONE) && !takes(length, ACP_MSG_BARRIER));
	CHECK(takes(depends, ACP_MSG_DATA) && takes(depends, ACP_MSG_CMD));
	CHECK(!takes(depends, ACP_MSG_DONE) && !takes(depends, ACP_MSG_BARRIER));
	CHECK(!takes(depends, ACP_MSG_PING));
}

/* It must be complete, covered by the tag, and short. */
TEST(msg__N5_length_of_a_ping)
{
	struct acp_msg in = { .type = ACP_MSG_PING, .origin = 3, .ticket = 4 }, out;
	u32 length, have;

	for (length = 0; length <= ACP_PING_MAX + 8; length++) {
		u32 size = 24 + (length + 7) / 8 * 8;

		in.length = length;
		CHECK_EQ(decode_msg(&in, 1400, 1400, &out), length > ACP_PING_MAX ? 0 : size);
		for (have = 0; have < size; have++) {
			CHECK_EQ(decode_msg(&in, have, have, &out), 0);
			CHECK_EQ(decode_msg(&in, 1400, have, &out), 0);
		}
	}
	for (in.length = 0x7ffffff0; in.length < 0x80000010; in.length++)
		CHECK_EQ(decode_msg(&in, 65535, 65535, &out), 0);
	for (in.length = 0xfffffff0; in.length; in.length++)
		CHECK_EQ(decode_msg(&in, 65535, 65535, &out), 0);
}

/* Two or more words, complete and covered by the tag; each counts. */
TEST(msg__N5_length_of_words)
{
	struct acp_msg in = { .type = ACP_MSG_WORDS, .origin = 3, .ticket = 4 }, out;
	u32 have, good = 0;

	for (in.length = 0; in.length <= 1376; in.length++) {
		bool right = in.length >= 32 && in.length % 16 == 0;

		CHECK_EQ(decode_msg(&in, 1400, 1400, &out), right ? 24 + in.length : 0);
		if (!right)
			continue;
		good++;
		CHECK_EQ(acp_msg_count(&out), in.length / 16);
		for (have = 0; have < 24 + in.length; have += 8) {
			CHECK_EQ(decode_msg(&in, have, have, &out), 0);
			CHECK_EQ(decode_msg(&in, 1400, have, &out), 0);
		}
	}
	CHECK_EQ(good, 85);
	for (in.length = 0x7fffff00; in.length < 0x80000100; in.length++)
		CHECK_EQ(decode_msg(&in, 65535, 65535, &out), 0);
	for (in.length = 0xffffff00; in.length; in.length++)
		CHECK_EQ(decode_msg(&in, 65535, 65535, &out), 0);
}

TEST(msg__N6_fields_of_words)
{
	struct acp_msg good = { .type = ACP_MSG_WORDS, .length = 32 }, m, out;
	u32 bit;

	CHECK_EQ(decode_msg(&good, 128, 128, &out), 56);
	for (bit = 0; bit < 8; bit++) {
		m = good;
		m.flags = 1u << bit;
		CHECK_EQ(decode_msg(&m, 128, 128, &out), 0);
		m = good;
		m.op = 1u << bit;
		CHECK_EQ(decode_msg(&m, 128, 128, &out), 0);
		m = good;
		m.status = 1u << bit;
		CHECK_EQ(decode_msg(&m, 128, 128, &out), 0);
	}
	m = good;
	m.depends = 1;
	m.upto = 1;
	CHECK_EQ(decode_msg(&m, 128, 128, &out), 0);
}

/* Words that are messages: a mailbox, and what they are behind, or nothing. */
TEST(msg__N6_fields_of_words_that_are_messages)
{
	const u8 behind = ACP_MSG_ORDERED | ACP_MSG_BEHIND;
	struct acp_msg good = { .type = ACP_MSG_WORDS, .op = ACP_OP_SEND, .length = 32 }, m, out;
	u32 i;

	CHECK_EQ(decode_msg(&good, 128, 128, &out), 64);
	CHECK_EQ(decode_msg(&good, 63, 63, &out), 0);
	CHECK_EQ(decode_msg(&good, 128, 56, &out), 0);
	for (i = 1; i < 256; i++) {
		m = good;
		m.op = (u8)i;
		CHECK_EQ(decode_msg(&m, 128, 128, &out), i == ACP_OP_SEND ? 64 : 0);
		m = good;
		m.flags = (u8)i;
		CHECK_EQ(decode_msg(&m, 128, 128, &out), i == ACP_MSG_ORDERED ? 64 : 0);
		m.depends = 5;
		m.upto = 5;
		CHECK_EQ(decode_msg(&m, 128, 128, &out), i == behind ? 64 : 0);
		m.upto = 4;
		CHECK_EQ(decode_msg(&m, 128, 128, &out), 0);
		m = good;
		m.status = (u8)i;
		CHECK_EQ(decode_msg(&m, 128, 128, &out), 0);
	}
	m = good;
	m.depends = 1;
	m.upto = 1;
	CHECK_EQ(decode_msg(&m, 128, 128, &out), 0);
}

/* Of a message that asks, and of what it is granted. */
TEST(msg__N6_fields_of_asks_and_grants)
{
	const u8 behind = ACP_MSG_ORDERED | ACP_MSG_BEHIND;
	const struct acp_msg ask = { .type = ACP_MSG_ASK, .op = ACP_OP_SEND, .size = 5, .b = 6 };
	const struct acp_msg grant = { .type = ACP_MSG_GRANT, .dst = 7, .a = 8 };
	struct acp_msg m = ask, out;
	u32 i;

	CHECK_EQ(decode_msg(&ask, 48, 48, &out), 48);
	CHECK_EQ(decode_msg(&ask, 48, 47, &out), 0);
	CHECK_EQ(decode_msg(&grant, 40, 40, &out), 40);
	CHECK_EQ(decode_msg(&grant, 40, 39, &out), 0);
	m.size = ACP_COPY_MAX;
	CHECK_EQ(decode_msg(&m, 48, 48, &out), 48);
	m.size++;
	CHECK_EQ(decode_msg(&m, 48, 48, &out), 0);
	for (i = 0; i < 256; i++) {
		m = ask;
		m.op = (u8)i;
		CHECK_EQ(decode_msg(&m, 48, 48, &out), i == ACP_OP_SEND ? 48 : 0);
		m = ask;
		m.flags = (u8)i;
		m.status = i & ACP_MSG_FAIL ? ACP_ST_AGAIN : 0;
		CHECK_EQ(decode_msg(&m, 48, 48, &out),
			 i & ~(u8)(ACP_MSG_FAIL | ACP_MSG_ORDERED) ? 0 : 48);
		m.depends = 5;
		m.upto = 5;
		CHECK_EQ(decode_msg(&m, 48, 48, &out),
			 i & ~(u8)(ACP_MSG_FAIL | behind) || (i & behind) == ACP_MSG_BEHIND ?
			 0 : 48);
		m = grant;
		m.flags = (u8)i;
		m.status = i & ACP_MSG_FAIL ? ACP_ST_RANK : 0;
		CHECK_EQ(decode_msg(&m, 40, 40, &out), i & ~(u8)ACP_MSG_FAIL ? 0 : 40);
		m = grant;
		m.status = (u8)i;
		CHECK_EQ(decode_msg(&m, 40, 40, &out), i ? 0 : 40);
		m = grant;
		m.op = (u8)i;
		CHECK_EQ(decode_msg(&m, 40, 40, &out), i ? 0 : 40);
	}
	m = grant;
	m.length = 8;
	CHECK_EQ(decode_msg(&m, 48, 48, &out), 0);
}

/* DATA that was granted its place is of a message, and has no turn. */
TEST(msg__N6_granted_data)
{
	struct acp_msg m = {
		.type = ACP_MSG_DATA, .flags = ACP_MSG_GRANTED | ACP_MSG_LAST, .op = ACP_OP_SEND,
		.length = 8, .c = 8, .a = 3,
	}, out;

	CHECK_EQ(decode_msg(&m, 64, 64, &out), 64);
	m.flags |= ACP_MSG_ORDERED;
	CHECK_EQ(decode_msg(&m, 64, 64, &out), 0);
	m.flags &= ~ACP_MSG_ORDERED;
	m.op = ACP_OP_APPEND;
	m.a = 0;
	CHECK_EQ(decode_msg(&m, 64, 64, &out), 0);
	m.op = 0;
	CHECK_EQ(decode_msg(&m, 64, 64, &out), 0);
	m.flags |= ACP_MSG_FAIL;
	m.status = ACP_ST_RANGE;
	m.length = 0;
	CHECK_EQ(decode_msg(&m, 32, 32, &out), 32);
}

/* DATA of a strided copy is not empty, and within its blocks. */
TEST(msg__N5_place_of_a_strided_piece)
{
	struct acp_msg in = { .type = ACP_MSG_DATA, .op = ACP_OP_STRIDED, .length = 10, .a = 7,
			      .c = ACP_BLOCKS(5, 4) }, out;
	u32 have;

	for (in.b = 0; in.b < 30; in.b++)
		CHECK_EQ(decode_msg(&in, 72, 72, &out), in.b > 10 ? 0 : 72);
	for (in.b = -20; in.b; in.b++)
		CHECK_EQ(decode_msg(&in, 72, 72, &out), 0);
	for (have = 0; have < 56; have++)
		CHECK_EQ(decode_msg(&in, 72, have, &out), 0);
	CHECK_EQ(decode_msg(&in, 72, 56, &out), 72);
	CHECK_EQ(decode_msg(&in, 71, 56, &out), 0);
	in.c = ACP_BLOCKS(~0u, ~0u);
	in.b = (u64)~0u * ~0u - 10;
	CHECK_EQ(decode_msg(&in, 72, 72, &out), 72);
	in.b++;
	CHECK_EQ(decode_msg(&in, 72, 72, &out), 0);
	in.b = 0;
	in.c = ACP_BLOCKS(20, 1);
	CHECK_EQ(decode_msg(&in, 72, 72, &out), 0);
	in.c = ACP_BLOCKS(0, 20);
	CHECK_EQ(decode_msg(&in, 72, 72, &out), 0);
	in.c = ACP_BLOCKS(5, 4);
	in.length = 0;
	CHECK_EQ(decode_msg(&in, 56, 56, &out), 0);
}

/* A flag is changed by the last piece of a copy that did not fail, by a known operation. */
TEST(msg__N6_ops_of_data)
{
	struct acp_msg in = { .type = ACP_MSG_DATA, .b = 1, .c = 8 }, out;
	u64 wire[8] = { 0 };
	u32 op;

	for (op = 0; op < 256; op++) {
		in.op = op;
		in.flags = ACP_MSG_LAST;
		CHECK_EQ(decode_msg(&in, 56, 56, &out),
			 !op ? 32 : op == ACP_OP_COPY_SET || op == ACP_OP_COPY_ADD ? 56 : 0);
		in.flags = 0;
		CHECK_EQ(decode_msg(&in, 56, 56, &out), op ? 0 : 32);
		in.flags = ACP_MSG_LAST | ACP_MSG_FAIL;
		in.status = ACP_ST_STAG;
		CHECK_EQ(decode_msg(&in, 56, 56, &out), op ? 0 : 32);
		in.status = 0;
	}
	in.op = ACP_OP_COPY_ADD;
	in.flags = ACP_MSG_LAST;
	acp_msg_encode(wire, &in);
	CHECK_EQ(acp_msg_decode(&out, wire, 64, 64), 56);
	CHECK(out.b == 1 && out.c == 8 && !out.a);
	wire[6] = 1;
	CHECK_EQ(acp_msg_decode(&out, wire, 64, 64), 0);
}

/* DATA with numbers: aligned, whole numbers, not too many, and an operation on them. */
TEST(msg__N6_numbers)
{
	struct acp_msg in = { .type = ACP_MSG_DATA, .length = 16, .dst = 32 }, out;
	u32 op, type, i;

	for (i = 0; i < 3; i++) {
		in.op = ACP_OP_ACCUMULATE + i;
		in.flags = i ? ACP_MSG_LAST : 0;
		for (op = 0; op < 256; op++)
			for (type = 0; type < 256; type++) {
				in.a = ACP_REDUCE(op, type);
				CHECK_EQ(decode_msg(&in, 72, 56, &out),
					 acp_reduce_width(in.a) ? 72 : 0);
			}
		in.a = 1ULL << 40;
		CHECK_EQ(decode_msg(&in, 72, 72, &out), 0);
	}
	in.flags = 0;
	CHECK_EQ(decode_msg(&in, 72, 72, &out), 0);	/* a signal before the end */
	in.op = ACP_OP_ACCUMULATE;
	for (i = 0; i < 9; i++) {
		in.a = ACP_REDUCE(ACP_REDUCE_SUM, ACP_REDUCE_U32);
		in.dst = 32 + i;
		CHECK_EQ(decode_msg(&in, 72, 72, &out) != 0, i % 4 == 0);
		in.a = ACP_REDUCE(ACP_REDUCE_SUM, ACP_REDUCE_F64);
		CHECK_EQ(decode_msg(&in, 72, 72, &out) != 0, i % 8 == 0);
		in.dst = 32;
		in.length = 8 + i;
		CHECK_EQ(decode_msg(&in, 72, 72, &out) != 0, i % 8 == 0);
		in.a = ACP_REDUCE(ACP_REDUCE_SUM, ACP_REDUCE_U32);
		CHECK_EQ(decode_msg(&in, 72, 72, &out) != 0, i % 4 == 0);
		in.length = 16;
		in.b = i;
		CHECK_EQ(decode_msg(&in, 72, 72, &out) != 0, i == 0);
		in.b = 0;
		in.c = i;
		CHECK_EQ(decode_msg(&in, 72, 72, &out) != 0, i == 0);
		in.c = 0;
	}
	in.length = 0;
	CHECK_EQ(decode_msg(&in, 72, 72, &out), 0);
	in.length = ACP_ACCUMULATE_MAX;
	CHECK_EQ(decode_msg(&in, 10000, 56, &out), 56 + ACP_ACCUMULATE_MAX);
	in.length += 4;
	CHECK_EQ(decode_msg(&in, 10000, 56, &out), 0);
}

/* A CMD that combines numbers has some, and an operation on them. */
TEST(msg__N6_numbers_of_a_command)
{
	struct acp_msg in = { .type = ACP_MSG_CMD, .op = ACP_OP_ACCUMULATE_ADD, .size = 80,
			      .b = 7, .c = 9 }, out;
	u32 op, type;

	for (op = 0; op < 256; op++)
		for (type = 0; type < 256; type++) {
			in.a = ACP_REDUCE(op, type);
			CHECK_EQ(decode_msg(&in, 64, 64, &out), acp_reduce_width(in.a) ? 64 : 0);
			CHECK(!acp_reduce_width(in.a) || same_msg(&in, &out));
		}
	in.a = 0;
	in.size = 0;
	CHECK_EQ(decode_msg(&in, 64, 64, &out), 0);
	in.size = ((1ULL << 48) - 1) * 4;
	CHECK_EQ(decode_msg(&in, 64, 64, &out), 64);
	CHECK(same_msg(&in, &out));
}

/* A piece of an indirect copy lies within it, and is the last one exactly if it ends there. */
TEST(msg__A4_pieces_of_indirect_copies)
{
	static const struct {
		u8 flags;
		u32 length;
		u64 at, size;
		bool good;
	} cases[] = {
		{ ACP_MSG_LAST, 8, 0, 8, true }, { 0, 8, 0, 9, true }, { 0, 8, 0, 8, false },
		{ ACP_MSG_LAST, 8, 0, 9, false }, { ACP_MSG_LAST, 8, 1, 9, true },
		{ 0, 8, 2, 9, false }, { ACP_MSG_LAST, 8, 2, 9, false },
		{ ACP_MSG_LAST, 8, 9, 9, false }, { ACP_MSG_LAST, 8, ~0ULL, 7, false },
		{ ACP_MSG_LAST, 0, 0, 0, false }, { 0, 0, 0, 8, false },
		{ ACP_MSG_LAST, 8, (1ULL << 62) - 8, 1ULL << 62, true },
		{ ACP_MSG_LAST, 8, (1ULL << 62) - 7, (1ULL << 62) + 1, false },
		{ ACP_MSG_LAST, 8, ~0ULL - 8, ~0ULL, false },
	};
	struct acp_msg in = { .type = ACP_MSG_DATA }, out;
	u32 i;

	for (i = 0; i < 4 * sizeof(cases) / sizeof(cases[0]); i++) {
		in.op = ACP_OP_INDIRECT + i % 4;
		in.flags = cases[i / 4].flags;
		in.length = cases[i / 4].length;
		in.b = cases[i / 4].at;
		in.c = cases[i / 4].size;
		CHECK_EQ(decode_msg(&in, 64, 64, &out) != 0, cases[i / 4].good ||
			 (in.op == ACP_OP_SEND && !in.c));
	}
}

/* A message has a tag, and may have no bytes; then it is one piece. */
TEST(msg__A4_tag_and_no_bytes_of_messages)
{
	struct acp_msg in = { .type = ACP_MSG_DATA, .op = ACP_OP_SEND, .a = ~0ULL }, out;

	CHECK_EQ(decode_msg(&in, 64, 64, &out), 0);
	in.flags = ACP_MSG_LAST;
	CHECK_EQ(decode_msg(&in, 64, 64, &out), 56);
	CHECK(out.a == ~0ULL && !out.b && !out.c && !out.length);
	in.b = 1;
	CHECK_EQ(decode_msg(&in, 64, 64, &out), 0);
	in.b = 0;
	in.op = ACP_OP_APPEND;
	CHECK_EQ(decode_msg(&in, 64, 64, &out), 0);
}

/* A CMD of a strided copy with an invalid descriptor is not sent. */
TEST(msg__N6_descriptor_of_a_command)
{
	struct acp_msg in = { .type = ACP_MSG_CMD, .op = ACP_OP_STRIDED }, out;

	for (in.c = 0; in.c < 10; in.c++)
		CHECK_EQ(decode_msg(&in, 64, 64, &out), 0);
	in.c = ACP_BLOCKS(0, 9);
	CHECK_EQ(decode_msg(&in, 64, 64, &out), 0);
	in.c = ACP_BLOCKS(9, 1);
	CHECK_EQ(decode_msg(&in, 64, 64, &out), 0);
	in.c = ACP_BLOCKS(1, 2);
	CHECK_EQ(decode_msg(&in, 64, 64, &out), 64);
}

TEST(msg__N6_depends)
{
	static const struct { u16 depends, upto; bool good; } cases[] = {
		{ 0, 0, true }, { 1, 1, true }, { 65535, 1, true }, { 65535, 65535, true },
		{ 0, 1, false }, { 1, 0, false }, { 1, 2, false }, { 5, 65535, false },
	};
	u32 i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct acp_msg m = { .depends = cases[i].depends, .upto = cases[i].upto };

		CHECK_EQ(takes(m, ACP_MSG_DATA), cases[i].good);
		CHECK_EQ(takes(m, ACP_MSG_CMD), cases[i].good);
	}
}

TEST(msg__N6_fail_has_a_status_and_no_data)
{
	struct acp_msg m = { .flags = ACP_MSG_FAIL, .status = ACP_ST_STAG };

	CHECK(takes(m, ACP_MSG_DATA));
	m.length = 1;
	CHECK(!takes(m, ACP_MSG_DATA));
	m.length = 0;
	m.status = 0;
	CHECK(!takes(m, ACP_MSG_DATA));
}

TEST(msg__random_bytes)
{
	struct acp_msg out;
	u32 i, j, len;
	u64 *p;

	for (i = 0; i < 200000; i++) {
		len = rnd() % 100;
		p = malloc(len ? len : 1);
		for (j = 0; j < len; j++)
			((u8 *)p)[j] = rnd() % 4 ? 0 : rnd();
		if (len)
			((u8 *)p)[0] = rnd() % 7;
		CHECK(acp_msg_decode(&out, p, len, len) <= len);
		free(p);
	}
}

TEST_MAIN
