// SPDX-License-Identifier: MIT
/*
 * kernel/core/frame.c: encoding, and rejection of everything else.
 *
 * Buffers end where the message ends, so that AddressSanitizer detects any read beyond. The vectors
 * at the end are those of VECTORS.md.
 */
#include "test.h"
#include "frame.h"
#include "reduce.h"
#include "tag.h"
#include "acp_abi.h"
#include "aead.h"
#include "crc32c.h"
#include "aegis.h"
#include "gcm.h"
#include "siphash.h"

#define HEADER	((u32)sizeof(struct acp_frame_hdr))

static u64 random_state = 0x9e3779b97f4a7c15;

static u64 rnd(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 0x2545f4914f6cdd1d;
}

/* Return a valid header. */
static struct acp_frame good_frame(u8 type, u32 length)
{
	return (struct acp_frame){
		.type = type, .color = 1, .generation = 7, .job = 42, .node = 3,
		.epoch_src = 0x11111111, .epoch_dst = 0x22222222,
		.seq = type == ACP_FRAME_DATA ? 5 : 0, .ack = type == ACP_FRAME_HELLO ? 0 : 9,
		.length = length,
	};
}

static u32 smallest(u8 type)
{
	if (type == ACP_FRAME_DATA)
		return sizeof(struct acp_msg_hdr);
	return type == ACP_FRAME_ACK ? sizeof(struct acp_frame_ack) :
				       sizeof(struct acp_frame_hello);
}

/* Return the size of the datagram of a frame. */
static u32 datagram(const struct acp_frame *f)
{
	return HEADER + f->length + (f->flags & ACP_FRAME_AEAD ? 32 : 0);
}

/* Encode and decode a header as part of a datagram of "len" bytes. */
static enum acp_frame_error decode(const struct acp_frame *f, u32 len)
{
	struct acp_frame_hdr *h = malloc(sizeof(*h));
	enum acp_frame_error error;
	struct acp_frame out;

	acp_frame_encode(h, f);
	error = acp_frame_decode(&out, h, len);
	free(h);
	return error;
}

static bool same_frame(const struct acp_frame *a, const struct acp_frame *b)
{
	return a->type == b->type && a->flags == b->flags && a->color == b->color &&
	       a->generation == b->generation && a->job == b->job && a->node == b->node &&
	       a->epoch_src == b->epoch_src && a->epoch_dst == b->epoch_dst && a->seq == b->seq &&
	       a->ack == b->ack && a->length == b->length;
}

static bool same_msg(const struct acp_msg *a, const struct acp_msg *b)
{
	return a->type == b->type && a->flags == b->flags && a->op == b->op &&
	       a->status == b->status && a->depends == b->depends && a->upto == b->upto &&
	       a->origin == b->origin && a->length == b->length && a->ticket == b->ticket &&
	       a->dst == b->dst && a->src == b->src && a->size == b->size && a->a == b->a &&
	       a->b == b->b && a->c == b->c;
}

/* Convert a random DATA message to one with an operation. */
static void random_more(struct acp_msg *m)
{
	if (rnd() % 4 == 0) {
		m->op = ACP_OP_ACCUMULATE + (m->flags & ACP_MSG_LAST ? rnd() % 3 : 0);
		m->a = ACP_REDUCE(rnd() % 4, rnd() % 6);
		m->length = 8 + rnd() % 170 * 8;
		m->dst &= ~7ULL;
		m->b = m->op == ACP_OP_ACCUMULATE ? 0 : rnd();
		m->c = m->op == ACP_OP_ACCUMULATE ? 0 : rnd();
	} else if (rnd() % 2) {
		m->op = ACP_OP_STRIDED;
		m->length = 1 + rnd() % 1400;
		m->a = rnd();
		m->c = ACP_BLOCKS(1 + rnd() % 5000, 1500 + rnd() % 1000000);
		m->b = rnd() % ((m->c >> 32) * (u32)m->c - m->length + 1);
	} else if (rnd() % 2) {
		m->op = ACP_OP_COPY_SET + rnd() % 2;
		m->flags |= ACP_MSG_LAST;
		m->b = rnd();
		m->c = rnd();
	} else {
		m->op = ACP_OP_INDIRECT + rnd() % 4;
		m->a = m->op == ACP_OP_SEND ? rnd() : 0;
		m->flags |= m->op == ACP_OP_SEND && rnd() % 2 ? ACP_MSG_GRANTED : 0;
		m->length = 1 + rnd() % 1400;
		m->b = rnd() % (ACP_COPY_MAX - 10000);
		m->c = m->b + m->length + (m->flags & ACP_MSG_LAST ? 0 : 1 + rnd() % 5000);
	}
}

/* Return a random valid message. */
static struct acp_msg random_msg(void)
{
	struct acp_msg m = { .type = ACP_MSG_DATA + rnd() % 8, .origin = rnd(), .ticket = rnd() };

	if (m.type == ACP_MSG_DATA || m.type == ACP_MSG_CMD || m.type == ACP_MSG_ASK) {
		m.depends = rnd() % 3 ? rnd() : 0;
		m.upto = m.depends ? 1 + rnd() % m.depends : 0;
		m.dst = rnd();
	}
	switch (m.type) {
	case ACP_MSG_DATA:
		m.flags = rnd() & (ACP_MSG_LAST | ACP_MSG_FAIL);
		if (m.flags & ACP_MSG_FAIL)
			m.status = 1 + rnd() % (ACP_ST_END - 1);
		else
			m.length = rnd() % 1400;
		if (!m.status && rnd() % 3 == 0)
			random_more(&m);
		break;
	case ACP_MSG_CMD:
		m.flags = rnd() & (ACP_MSG_ORDERED | ACP_MSG_FAIL);
		m.status = m.flags & ACP_MSG_FAIL ? 1 + rnd() % (ACP_ST_END - 1) : 0;
		m.op = 1 + rnd() % ACP_OP_GATHER;
		if (rnd() % 8 == 0)
			m.op = ACP_OP_ACCUMULATE + rnd() % 3;
		m.src = rnd();
		if (m.op == ACP_OP_COPY || m.op > ACP_OP_STRIDED)
			m.size = rnd();
		else
			m.a = rnd();
		if (m.op == ACP_OP_CAS4 || m.op == ACP_OP_CAS8 || m.op >= ACP_OP_STRIDED)
			m.b = rnd();
		if (m.op >= ACP_OP_STRIDED)
			m.c = m.op == ACP_OP_STRIDED ? rnd() | 1 | 1ULL << 40 : rnd();
		if (m.op == ACP_OP_STRIDED)
			m.size = (m.c >> 32) * (u32)m.c;
		if (acp_op_accumulates(m.op)) {
			m.a = ACP_REDUCE(rnd() % 4, rnd() % 6);
			m.size = (1 + rnd() % ((1ULL << 48) - 1)) * acp_reduce_width(m.a);
		}
		break;
	case ACP_MSG_DONE:
		m.status = rnd() % ACP_ST_END;
		break;
	case ACP_MSG_ASK:
		m.flags = rnd() & (ACP_MSG_ORDERED | ACP_MSG_FAIL);
		m.status = m.flags & ACP_MSG_FAIL ? 1 + rnd() % (ACP_ST_END - 1) : 0;
		m.op = ACP_OP_SEND;
		m.size = rnd() % ACP_COPY_MAX;
		m.b = rnd();
		break;
	case ACP_MSG_GRANT:
		m.flags = rnd() & ACP_MSG_FAIL;
		m.status = m.flags ? 1 + rnd() % (ACP_ST_END - 1) : 0;
		m.dst = rnd();
		m.a = rnd();
		break;
	case ACP_MSG_PING:
		m.flags = rnd() & ACP_MSG_ANSWER;
		m.length = rnd() % (ACP_PING_MAX + 1);
		break;
	case ACP_MSG_WORDS:
		m.length = (2 + rnd() % 63) * 16;
		if (rnd() % 2)
			break;
		m.op = ACP_OP_SEND;
		m.dst = rnd();
		m.flags = rnd() % 2 ? ACP_MSG_ORDERED : 0;
		if (!m.flags || rnd() % 2)
			break;
		m.flags |= ACP_MSG_BEHIND;
		m.depends = 1 + rnd() % 65535;
		m.upto = m.depends;
		break;
	default:
		m.flags = rnd() & (ACP_MSG_RELEASE | ACP_MSG_ABORT | ACP_MSG_BROKEN);
	}
	return m;
}

/* Decode a message from a buffer that contains exactly "have" bytes of it. */
static u32 decode_msg(const struct acp_msg *m, u32 room, u32 have, struct acp_msg *out)
{
	u8 whole[128] __attribute__((aligned(8))) = { 0 };
	u8 *p = malloc(have);
	u32 size;

	acp_msg_encode(whole, m);
	memset(p, 0, have);
	memcpy(p, whole, have < sizeof(whole) ? have : sizeof(whole));
	size = acp_msg_decode(out, p, room, have);
	free(p);
	return size;
}

/* ---- frames ---- */

TEST(frame__round_trip)
{
	struct acp_frame in, out;
	struct acp_frame_hdr h;
	int i;

	for (i = 0; i < 100000; i++) {
		in = (struct acp_frame){
			.type = ACP_FRAME_DATA + i % 3, .color = rnd(), .generation = rnd(),
			.job = rnd(), .node = rnd(), .epoch_src = rnd() | 1, .epoch_dst = rnd() | 1,
			.ack = rnd(),
		};
		in.length = smallest(in.type);
		if (in.type == ACP_FRAME_DATA) {
			in.seq = rnd() | 1;
			in.length += rnd() % 1000;
			in.flags = rnd() & (ACP_FRAME_FENCE | ACP_FRAME_LAZY | ACP_FRAME_MARKS);
		}
		in.flags |= rnd() & ACP_FRAME_AEAD;
		acp_frame_encode(&h, &in);
		CHECK_EQ(acp_frame_decode(&out, &h, datagram(&in)), ACP_FRAME_OK);
		CHECK(same_frame(&in, &out));
	}
}

TEST(frame__layout)
{
	struct acp_frame f = good_frame(ACP_FRAME_DATA, 0x1234);
	struct acp_frame_hdr h = { .tag = cpu_to_be64(0x0102030405060708) };
	const u8 *p = (const u8 *)&h;

	acp_frame_encode(&h, &f);
	CHECK_EQ(sizeof(h), 48);
	CHECK_EQ(p[0], 1);		/* the tag is computed by the caller */
	CHECK_EQ(p[7], 8);
	CHECK_EQ(p[8], ACP_FRAME_VERSION);
	CHECK_EQ(p[9], ACP_FRAME_DATA);
	CHECK_EQ(p[11], 1);
	CHECK_EQ(p[15], 42);
	CHECK_EQ(p[17], 7);
	CHECK_EQ(p[18], 0x12);
	CHECK_EQ(p[19], 0x34);
	CHECK_EQ(p[23], 3);
	CHECK_EQ(p[27], 0x11);
	CHECK_EQ(p[31], 0x22);
	CHECK_EQ(p[39], 5);
	CHECK_EQ(p[47], 9);
}

TEST(frame__N5_length_of_the_datagram)
{
	u32 type, len, least;

	for (type = ACP_FRAME_DATA; type <= ACP_FRAME_HELLO; type++) {
		struct acp_frame f = good_frame(type, smallest(type));

		least = sizeof(struct acp_frame_hdr) + f.length;
		for (len = 0; len < 2000; len++)
			CHECK_EQ(decode(&f, len), len == least ? ACP_FRAME_OK : ACP_FRAME_BAD_LEN);
		CHECK_EQ(decode(&f, ~0u), ACP_FRAME_BAD_LEN);
	}
}

TEST(frame__N5_length_in_the_header)
{
	u32 type, length;

	for (type = ACP_FRAME_DATA; type <= ACP_FRAME_HELLO; type++) {
		for (length = 0; length < 70000; length++) {
			struct acp_frame f = good_frame(type, length);
			bool good = length == smallest(type) ||
				    (type == ACP_FRAME_ACK && !length) ||
				    (type == ACP_FRAME_DATA && length >= smallest(type) &&
				     length <= 65535);

			CHECK_EQ(decode(&f, HEADER + length),
				 good ? ACP_FRAME_OK : ACP_FRAME_BAD_LEN);
		}
	}
	for (length = ~0u; length > ~0u - 200; length--) {
		struct acp_frame f = good_frame(ACP_FRAME_DATA, length);

		CHECK_EQ(decode(&f, HEADER + length), ACP_FRAME_BAD_LEN);
	}
}

/* An encrypted frame has 32 bytes more. */
TEST(frame__N5_length_of_an_encrypted_frame)
{
	u32 type, len, most = 65535 - 32;

	for (type = ACP_FRAME_DATA; type <= ACP_FRAME_HELLO; type++) {
		struct acp_frame f = good_frame(type, smallest(type)), out;
		struct acp_frame_hdr h;

		f.flags = ACP_FRAME_AEAD;
		for (len = 0; len < 2000; len++)
			CHECK_EQ(decode(&f, len), len == HEADER + 32 + f.length ?
				 ACP_FRAME_OK : ACP_FRAME_BAD_LEN);
		acp_frame_encode(&h, &f);
		for (len = 0; len < 65536; len++) {
			bool good = len == 32 + smallest(type) ||
				    (type == ACP_FRAME_ACK && len == 32) ||
				    (type == ACP_FRAME_DATA && len >= 32 + smallest(type));

			h.length = cpu_to_be16(len);
			CHECK_EQ(acp_frame_decode(&out, &h, HEADER + len),
				 good ? ACP_FRAME_OK : ACP_FRAME_BAD_LEN);
			CHECK(!good || out.length == len - 32);
		}
	}
	for (len = most - 10; len < most + 10; len++) {
		struct acp_frame f = good_frame(ACP_FRAME_DATA, len);

		f.flags = ACP_FRAME_AEAD;
		CHECK_EQ(decode(&f, datagram(&f)), len <= most ? ACP_FRAME_OK : ACP_FRAME_BAD_LEN);
	}
}

TEST(frame__N6_version)
{
	struct acp_frame f = good_frame(ACP_FRAME_DATA, 24), out;
	struct acp_frame_hdr h;
	u32 version;

	acp_frame_encode(&h, &f);
	for (version = 0; version < 256; version++) {
		h.version = version;
		CHECK_EQ(acp_frame_decode(&out, &h, sizeof(h) + 24),
			 version == ACP_FRAME_VERSION ? ACP_FRAME_OK : ACP_FRAME_BAD_VERSION);
	}
}

TEST(frame__N6_type)
{
	u32 type;

	for (type = 0; type < 256; type++) {
		struct acp_frame f = good_frame(type, smallest(type));
		bool known = type >= ACP_FRAME_DATA && type <= ACP_FRAME_HELLO;

		CHECK_EQ(decode(&f, HEADER + f.length),
			 known ? ACP_FRAME_OK : ACP_FRAME_BAD_TYPE);
	}
}

static bool flags_are_good(u32 type, u32 flags)
{
	if ((flags & ACP_FRAME_AEAD) && (flags & ACP_FRAME_BULK))
		return false;
	flags &= ~ACP_FRAME_AEAD;
	if (type == ACP_FRAME_HELLO)
		return !(flags & ~ACP_FRAME_ASK);
	if (type == ACP_FRAME_ACK)
		return !(flags & ~ACP_FRAME_MARKS);
	if (flags & ~(ACP_FRAME_FENCE | ACP_FRAME_BULK | ACP_FRAME_CRC | ACP_FRAME_MORE |
		      ACP_FRAME_LAZY | ACP_FRAME_MARKS))
		return false;
	return !(flags & (ACP_FRAME_CRC | ACP_FRAME_MORE)) || (flags & ACP_FRAME_BULK);
}

TEST(frame__N6_flags)
{
	u32 type, flags;

	for (type = ACP_FRAME_DATA; type <= ACP_FRAME_HELLO; type++) {
		for (flags = 0; flags < 256; flags++) {
			u32 length = type == ACP_FRAME_DATA ? 72 : smallest(type);
			struct acp_frame f = good_frame(type, length);

			f.flags = flags;
			CHECK_EQ(decode(&f, datagram(&f)),
				 flags_are_good(type, flags) ? ACP_FRAME_OK : ACP_FRAME_BAD_FLAGS);
		}
	}
}

TEST(frame__N6_fields_of_other_types)
{
	struct acp_frame f = good_frame(ACP_FRAME_DATA, 24);

	f.seq = 0;
	CHECK_EQ(decode(&f, HEADER + 24), ACP_FRAME_BAD_FLAGS);
	f = good_frame(ACP_FRAME_ACK, sizeof(struct acp_frame_ack));
	f.seq = 1;
	CHECK_EQ(decode(&f, HEADER + sizeof(struct acp_frame_ack)), ACP_FRAME_BAD_FLAGS);
	f = good_frame(ACP_FRAME_HELLO, 16);
	f.seq = 1;
	CHECK_EQ(decode(&f, HEADER + 16), ACP_FRAME_BAD_FLAGS);
	f.flags = ACP_FRAME_ASK;
	CHECK_EQ(decode(&f, HEADER + 16), ACP_FRAME_OK);
	f.ack = 1;
	CHECK_EQ(decode(&f, HEADER + 16), ACP_FRAME_BAD_FLAGS);
	f.seq = 0;
	f.flags = 0;
	CHECK_EQ(decode(&f, HEADER + 16), ACP_FRAME_OK);
	f = good_frame(ACP_FRAME_DATA, 24);
	f.epoch_src = 0;
	CHECK_EQ(decode(&f, HEADER + 24), ACP_FRAME_BAD_FLAGS);
	f = good_frame(ACP_FRAME_ACK, sizeof(struct acp_frame_ack));
	f.epoch_dst = 0;
	CHECK_EQ(decode(&f, HEADER + sizeof(struct acp_frame_ack)), ACP_FRAME_BAD_FLAGS);
	f = good_frame(ACP_FRAME_HELLO, 16);
	f.epoch_dst = 0;
	CHECK_EQ(decode(&f, HEADER + 16), ACP_FRAME_OK);
}

/* The payload of a BULK frame follows the tagged part. */
TEST(frame__N5_length_of_a_bulk_frame)
{
	u32 length;

	for (length = 24; length < 100; length++) {
		struct acp_frame f = good_frame(ACP_FRAME_DATA, length);

		f.flags = ACP_FRAME_BULK;
		CHECK_EQ(decode(&f, HEADER + length),
			 length > 32 ? ACP_FRAME_OK : ACP_FRAME_BAD_LEN);
		f.flags = ACP_FRAME_BULK | ACP_FRAME_CRC;
		CHECK_EQ(decode(&f, HEADER + length),
			 length > 40 ? ACP_FRAME_OK : ACP_FRAME_BAD_LEN);
	}
}

TEST(frame__tagged_bytes)
{
	struct acp_frame f = good_frame(ACP_FRAME_DATA, 1000);

	CHECK_EQ(acp_frame_tagged(&f), 1048);
	CHECK_EQ(acp_frame_covered(&f), 1000);
	CHECK_EQ(acp_frame_body(&f), 48);
	f.flags = ACP_FRAME_BULK;
	CHECK_EQ(acp_frame_tagged(&f), 80);
	CHECK_EQ(acp_frame_covered(&f), 32);
	f.flags = ACP_FRAME_BULK | ACP_FRAME_CRC;
	CHECK_EQ(acp_frame_tagged(&f), 88);
	CHECK_EQ(acp_frame_covered(&f), 40);
	f.flags = ACP_FRAME_AEAD;
	CHECK_EQ(acp_frame_tagged(&f), 48);
	CHECK_EQ(acp_frame_covered(&f), 1000);
	CHECK_EQ(acp_frame_body(&f), 64);
}

TEST(frame__N6_reserved_field_of_the_nonce_block)
{
	u8 *frame = malloc(64);
	u32 bit, cipher;

	memset(frame, 0xff, 60);
	memset(frame + 60, 0, 4);
	CHECK(acp_frame_nonce(frame, &cipher) && !cipher);
	for (bit = 0; bit < 32; bit++) {
		frame[60 + bit / 8] = 1u << bit % 8;
		CHECK_EQ(acp_frame_nonce(frame, &cipher), bit >= 24 && bit < 28);
		CHECK_EQ(cipher, 1u << (24 - bit / 8 * 8 + bit % 8));
		frame[60 + bit / 8] = 0;
	}
	/* Only one cipher at a time. */
	frame[63] = ACP_CIPHER_BY;
	CHECK(!acp_frame_nonce(frame, &cipher));
	/* The receiver of a HELLO may not support either. */
	frame[9] = ACP_FRAME_HELLO;
	frame[63] = ACP_CIPHER_AES;
	CHECK(!acp_frame_nonce(frame, &cipher));
	frame[63] = ACP_CIPHER_AEGIS;
	CHECK(!acp_frame_nonce(frame, &cipher));
	frame[63] = ACP_CIPHER_WISHES;
	CHECK(acp_frame_nonce(frame, &cipher));
	free(frame);
}

TEST(frame__N6_reserved_field_of_the_crc)
{
	u8 *frame = calloc(1, 88);
	u32 bit, crc;

	memcpy(frame + 80, "\x12\x34\x56\x78", 4);
	CHECK(acp_frame_crc(frame, &crc));
	CHECK_EQ(crc, 0x12345678);
	for (bit = 0; bit < 32; bit++) {
		frame[84 + bit / 8] = 1u << bit % 8;
		CHECK(!acp_frame_crc(frame, &crc));
		frame[84 + bit / 8] = 0;
	}
	free(frame);
}

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

/* ---- test vectors ---- */

#define KEY	"000102030405060708090a0b0c0d0e0f"
#define NONCE	"f0f1f2f3f4f5f6f700000000"	/* of encrypted frames; to node 1 */

struct vector {
	const char *name;
	struct acp_frame frame;
	struct acp_msg msg;	/* type 0: none */
	const char *body;	/* hex: payload, or body of an ACK or HELLO */
	const char *wire;	/* hex: all of it */
	u32 cipher;		/* ACP_CIPHER_ */
};

static u32 unhex(const char *hex, u8 *out)
{
	u32 n;

	for (n = 0; hex[2 * n]; n++) {
		char digits[3] = { hex[2 * n], hex[2 * n + 1] };

		out[n] = strtoul(digits, NULL, 16);
	}
	return n;
}

/* Vectors, written by hand, compared byte by byte. */
#include "vectors.h"

/* Encrypt the body after the nonce block, and append the AEAD tag. */
static void encrypt(u8 *wire, const struct acp_frame *f, u32 cipher)
{
	u8 base[16], key[32], *block = wire + HEADER, *body = wire + acp_frame_body(f);
	struct acp_frame_key k;

	acp_frame_key(&k, cipher, f->job, f->generation, f->node, 1, f->color);
	unhex(KEY, base);
	blake2s(key, base, sizeof(base), &k, sizeof(k));
	unhex(NONCE, block);
	block[15] = (u8)cipher;
	(cipher & ACP_CIPHER_AEGIS ? aegis_close : cipher & ACP_CIPHER_AES ? gcm_close : aead_close)
		(key, block, wire + 8, (size_t)(body - wire) - 8, body, f->length,
		 body + f->length);
}

/* Build the datagram of a vector. Returns its length. */
static u32 build(const struct vector *v, u8 *wire)
{
	struct acp_frame_hdr *h = (void *)wire;
	struct acp_frame_crc *c = NULL;
	struct acp_frame f = v->frame;
	struct siphash_key key;
	u32 first = acp_frame_body(&f), len = first, body;
	u8 bytes[16];

	if (v->msg.type) {
		acp_msg_encode(wire + len, &v->msg);
		len += acp_msg_head(&v->msg);
	}
	if (f.flags & ACP_FRAME_CRC) {
		c = (void *)(wire + len);
		len += sizeof(*c);
	}
	body = unhex(v->body, wire + len);
	if (c)
		c->crc = cpu_to_be32(crc32c(wire + len, body));
	len += (body + 7) / 8 * 8;
	f.length = len - first;
	acp_frame_encode(h, &f);
	unhex(KEY, bytes);
	key = siphash_key_of(bytes);
	h->tag = cpu_to_be64(siphash24(&key, wire + 8, acp_frame_tagged(&f) - 8));
	if (f.flags & ACP_FRAME_AEAD)
		encrypt(wire, &f, v->cipher);
	return datagram(&f);
}

TEST(vectors__siphash)
{
	u8 key_bytes[16], data[15];
	struct siphash_key key;
	u32 i;

	for (i = 0; i < 16; i++)
		key_bytes[i] = i;
	for (i = 0; i < 15; i++)
		data[i] = i;
	key = siphash_key_of(key_bytes);
	CHECK_EQ(siphash24(&key, data, 15), 0xa129ca6149be45e5);
	CHECK_EQ(siphash24(&key, data, 0), 0x726fdb47dd0e0e31);
	CHECK_EQ(siphash24(&key, data, 8), 0x93f5f5799a932462);
}

/* With the cached state, the tag is SipHash-2-4 of each frame. */
TEST(tag__is_siphash)
{
	struct acp_tag_start starts[2] = {};
	struct siphash_key keys[2];
	u8 data[200], bytes[16];
	u32 i, round;

	for (i = 0; i < 2; i++) {
		memset(bytes, 7 + (int)i, sizeof(bytes));
		keys[i] = siphash_key_of(bytes);
	}
	for (i = 0; i < sizeof(data); i++)
		data[i] = 1 + (u8)rnd() / 2;
	for (round = 0; round < 20000; round++) {
		u32 size = 8 * (ACP_TAG_WORDS + 1 + (u32)(rnd() % 21));
		u32 which = rnd() % 16 == 0;
		const struct siphash_key *key = &keys[which];

		/* Mostly bytes after the first words change. */
		data[rnd() % 8 ? 24 + rnd() % 176 : rnd() % 24] = 1 + (u8)rnd() / 2;
		if (rnd() % 4 == 0)
			memset(data + 24, 0, 8);
		if (!acp_tag_begins(&starts[which], data))
			acp_tag_begin(&starts[which], (u64[]){ key->k[0], key->k[1] }, data);
		CHECK_EQ(acp_tag(&starts[which], data, size), siphash24(key, data, size));
	}
}

TEST(vectors__crc32c)
{
	CHECK_EQ(crc32c("123456789", 9), 0xe3069283);
	CHECK_EQ(crc32c("", 0), 0);
}

static bool is(const u8 *found, const char *hex)
{
	u8 want[200];

	return !memcmp(found, want, unhex(hex, want));
}

/* RFC 7693, appendix B; and one with a key, from the reference implementation. */
TEST(vectors__blake2s)
{
	u8 hash[32], key[32];
	u32 i;

	blake2s(hash, "", 0, "abc", 3);
	CHECK(is(hash, "508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982"));
	for (i = 0; i < 32; i++)
		key[i] = i;
	blake2s(hash, key, sizeof(key), "", 0);
	CHECK(is(hash, "48a8997da407876b3d79c0d92325ad3b89cbb754d86ab71aee047ad345fd2c49"));
}

/* RFC 8439, section 2.8.2. */
TEST(vectors__chacha20_poly1305)
{
	char text[] = "Ladies and Gentlemen of the class of '99: If I could offer you only one tip "
		      "for the future, sunscreen would be it.", copy[sizeof(text)];
	u8 key[32], nonce[12], clear[12], tag[16];
	u32 n = sizeof(text) - 1;

	memcpy(copy, text, sizeof(text));
	unhex("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f", key);
	unhex("070000004041424344454647", nonce);
	unhex("50515253c0c1c2c3c4c5c6c7", clear);
	aead_close(key, nonce, clear, sizeof(clear), text, n, tag);
	CHECK(is((u8 *)text, "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6"
		 "3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36"
		 "92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc"
		 "3ff4def08e4b7a9de576d26586cec64b6116"));
	CHECK(is(tag, "1ae10b594f09e26a7e902ecbd0600691"));
	CHECK(aead_open(key, nonce, clear, sizeof(clear), text, n, tag));
	CHECK(!memcmp(text, copy, sizeof(text)));
	tag[0]++;
	CHECK(!aead_open(key, nonce, clear, sizeof(clear), text, n, tag));
}

/*
 * "The Galois/Counter Mode of Operation", test case 16; and test case 14, with whole blocks only.
 */
TEST(vectors__aes_256_gcm)
{
	u8 key[32], nonce[12], clear[20], text[60], tag[16];

	unhex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", key);
	unhex("cafebabefacedbaddecaf888", nonce);
	unhex("feedfacedeadbeeffeedfacedeadbeefabaddad2", clear);
	unhex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
	      "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39", text);
	gcm_close(key, nonce, clear, sizeof(clear), text, sizeof(text), tag);
	CHECK(is(text, "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
		       "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"));
	CHECK(is(tag, "76fc6ece0f4e1768cddf8853bb2d551b"));
	CHECK(gcm_open(key, nonce, clear, sizeof(clear), text, sizeof(text), tag));
	CHECK_EQ(text[0], 0xd9);
	tag[15]++;
	CHECK(!gcm_open(key, nonce, clear, sizeof(clear), text, sizeof(text), tag));
	memset(key, 0, sizeof(key));
	memset(nonce, 0, sizeof(nonce));
	memset(text, 0, 16);
	gcm_close(key, nonce, NULL, 0, text, 16, tag);
	CHECK(is(text, "cea7403d4d606b6e074ec5d3baf39d18"));
	CHECK(is(tag, "d0d1c8a799996bf0265b98b5d48ab919"));
}

/* From crypto/testmgr.h of the kernel: empty; a partial block; a whole block. */
TEST(vectors__aegis_128)
{
	u8 key[16], nonce[16], text[16], tag[16];

	unhex("0fc98e67449eaa8620362c24fec93081", key);
	unhex("1e921ccf883d540d406d5948fc926103", nonce);
	aegis_close(key, nonce, NULL, 0, text, 0, tag);
	CHECK(is(tag, "07a511f29d40b86ddab812344c53d972"));
	unhex("881201a66496fbbe22ea9047f211b58e", key);
	unhex("97db900ea835a5454221bd6bf0dae60f", nonce);
	unhex("b56eaddd3072fa53828e16b4ed6d47", text);
	aegis_close(key, nonce, NULL, 0, text, 15, tag);
	CHECK(is(text, "c38083045faa61c7cadd6fac8508b5"));
	CHECK(is(tag, "352bc23e0b1b39372b7a2116b3e66766"));
	unhex("c4373b457411a4daa2c542d8ec367894", key);
	unhex("d300c9adb8b04e61c3fb6ffdeaffa915", nonce);
	unhex("f292e67d40eea36f0368c845e7910a18", text);
	aegis_close(key, nonce, NULL, 0, text, 16, tag);
	CHECK(is(text, "232530e56ab6367d38fd3ad2c258a911"));
	CHECK(is(tag, "1ea8309c16a4db6551101627709b6429"));
	CHECK(aegis_open(key, nonce, NULL, 0, text, 16, tag));
	CHECK(is(text, "f292e67d40eea36f0368c845e7910a18"));
	tag[15]++;
	CHECK(!aegis_open(key, nonce, NULL, 0, text, 16, tag));
}

TEST(vectors__frames)
{
	u8 wire[1024] __attribute__((aligned(8))), want[1024];
	u32 i, j, len;

	for (i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		memset(wire, 0, sizeof(wire));
		len = build(&vectors[i], wire);
		if (len == unhex(vectors[i].wire, want) && !memcmp(wire, want, len))
			continue;
		printf("# %s is", vectors[i].name);
		for (j = 0; j < len; j++)
			printf("%s%02x", j % 16 ? "" : "\n# ", wire[j]);
		printf("\n");
		FAIL("%s differs", vectors[i].name);
	}
}

TEST_MAIN
