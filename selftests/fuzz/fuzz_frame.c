// SPDX-License-Identifier: MIT
/*
 * Fuzzer of kernel/core/frame.c: the input is a datagram.
 *
 * The rules of PROTOCOL.md are implemented a second time, in terms of bytes and offsets. The
 * decoder must accept exactly what they allow (N5: lengths, N6: types, flags, reserved bits), read
 * no byte beyond its input, and encoding a decoded frame must give the same bytes.
 */
#include "fuzz.h"
#include "frame.h"

#define HEADER		48
#define MSG_HEADER	24
#define LONGEST		80		/* bytes of a body that are decoded with each truncation */

static_assert(ACP_OP_END == 27);	/* the rules of a new operation belong here */

/* A big-endian number in a datagram. */
static u64 number(const u8 *p, u32 bytes)
{
	struct input in = { p, bytes };

	return take(&in, bytes);
}

/* ---- The rules ---- */

#define REASON(error)	(1u << (error))

/* Size of the nonce block and the AEAD tag. */
static u32 encrypted(const u8 *p)
{
	return p[10] & 32 ? 32 : 0;
}

static u32 reasons_of_length(const u8 *p, u32 length)
{
	static const u32 bulk[] = { 0, 32, 0, 40, 0, 56, 0, 64 };	/* by BULK, CRC, MORE / 2 */
	bool good = p[9] == 1 ? length >= 24 && length > bulk[p[10] >> 1 & 7] :
		    p[9] == 2 ? length == 0 || length == 64 : length == 16;

	return good ? 0 : REASON(ACP_FRAME_BAD_LEN);
}

static u32 reasons_of_flags(const u8 *p)
{
	static const u8 known[] = { 0, 1 | 2 | 4 | 8 | 16 | 32 | 192, 32 | 192, 8 | 32 };
	u64 src = number(p + 24, 4), dst = number(p + 28, 4), seq = number(p + 32, 8);
	/* A HELLO that asks may have a time; one that answers repeats it. */
	bool numbers = p[9] == 3 ? !(p[10] & 8 ? number(p + 40, 8) : seq) : !seq == (p[9] != 1);
	bool good = !(p[10] & ~known[p[9]]) && (p[10] & 6) != 4 && (p[10] & 34) != 34 &&
		    (p[9] != 1 || (p[10] & 10) != 8) && src &&
		    (dst || p[9] == 3) && numbers;

	return good ? 0 : REASON(ACP_FRAME_BAD_FLAGS);
}

/* The reasons for which a datagram of @len bytes may be rejected; 0: it must be accepted. */
static u32 reasons(const u8 *p, u32 len)
{
	if (p[8] != 1)
		return REASON(ACP_FRAME_BAD_VERSION);
	if (p[9] < 1 || p[9] > 3)
		return REASON(ACP_FRAME_BAD_TYPE);
	if (len < HEADER + encrypted(p) || number(p + 18, 2) != len - HEADER)
		return REASON(ACP_FRAME_BAD_LEN);
	return reasons_of_length(p, len - HEADER - encrypted(p)) | reasons_of_flags(p);
}

/* The length of a message without payload; 0: no such type or operation. */
static u32 head_rule(const u8 *p)
{
	switch ((enum acp_msg_type)p[0]) {	/* no default: a new type belongs here */
	case ACP_MSG_DATA:
		return p[2] ? 56 : 32;
	case ACP_MSG_CMD:
		if (p[2] < 1 || (p[2] > 21 && p[2] < 24) || p[2] > 26)
			return 0;
		if (p[2] > 13)
			return 64;
		return p[2] == 2 || p[2] == 3 ? 56 : 48;
	case ACP_MSG_WORDS:
		return p[2] ? 32 : 24;
	case ACP_MSG_ASK:
		return 48;
	case ACP_MSG_GRANT:
		return 40;
	case ACP_MSG_DONE:
	case ACP_MSG_BARRIER:
	case ACP_MSG_PING:
		return 24;
	}
	return 0;
}

/* Blocks: at least two, and not empty. */
static bool desc_rule(const u8 *p)
{
	return number(p, 4) > 1 && number(p + 4, 4);
}

/* The size of a number that is combined; 0: there is no such operation, or more in these bytes. */
static u32 width_rule(u64 what)
{
	u64 op = what & 0xff, type = what >> 8;

	if (op > 7 || type > 5 || (type > 3 && op > 3 && op < 7))
		return 0;
	return type % 2 ? 8 : 4;
}

/* DATA with numbers. */
static bool numbers_rule(const u8 *p)
{
	u64 length = number(p + 12, 4), width = width_rule(number(p + 48, 8));

	if (!width || !length || length > 4096 || length % width || number(p + 24, 8) % width)
		return false;
	return p[2] == 24 ? !number(p + 32, 8) && !number(p + 40, 8) : p[1] & 1;
}

/* The fields of DATA with an operation, of which all 24 bytes are present. */
static bool more_rule(const u8 *p)
{
	u64 size = number(p + 40, 4) * number(p + 44, 4), position = number(p + 48, 8);
	u64 length = number(p + 12, 4), whole = number(p + 32, 8), before = number(p + 40, 8);

	if (p[1] & 2)
		return false;
	if (p[2] >= 24 && p[2] <= 26)
		return numbers_rule(p);
	if (p[2] == 19 && !whole)
		return !before && !length && (p[1] & 1);
	if (p[2] >= 17 && p[2] <= 20)
		return length && (!position || p[2] == 19) && whole <= 1ULL << 62 &&
		       before < whole &&
		       length <= whole - before && (p[1] & 1) == (length == whole - before);
	if (p[2] == 14)
		return length && desc_rule(p + 40) && position < size &&
		       length <= size - position;
	return (p[2] == 15 || p[2] == 16) && (p[1] & 1) && !position;
}

/* The turn of a message into a mailbox: ORDERED, and with it BEHIND, for exactly one other. */
static bool turn_rule(const u8 *p)
{
	if (p[1] & 4 && !(p[1] & 2) && p[2] != 19)
		return false;
	return !(p[1] & 8) ||
	       (p[1] & 4 && number(p + 4, 2) && number(p + 4, 2) == number(p + 6, 2));
}

/* What a message depends on. */
static bool depends_rule(const u8 *p)
{
	u64 depends = number(p + 4, 2), upto = number(p + 6, 2);

	return depends ? upto >= 1 && upto <= depends : !upto;
}

/* DATA that was granted its place: of a message, or failed. */
static bool granted_rule(const u8 *p)
{
	return !(p[1] & 16) || (!(p[1] & 4) && (p[2] == 19 || p[1] & 2));
}

/* Words: puts, or messages that are behind an older one at most. */
static bool words_rule(const u8 *p)
{
	bool depends = number(p + 4, 2);
	u64 length = number(p + 12, 4);

	if (p[3] || length <= 16 || length % 16)
		return false;
	return p[2] == 19 ? !(p[1] & ~12) && turn_rule(p) && depends_rule(p) &&
			    (!depends || p[1] & 8) :
			    !p[1] && !p[2] && !depends && depends_rule(p);
}

/* True if the fields of a message may have these values. */
static bool fields_rule(const u8 *p)
{
	u64 depends = number(p + 4, 2), upto = number(p + 6, 2), length = number(p + 12, 4);
	bool fail = p[1] & 2;

	switch (p[0]) {
	case 1:
		return !(p[1] & ~31) && turn_rule(p) && granted_rule(p) &&
		       (!p[2] || more_rule(p)) && fail == !!p[3] && (!fail || !length) &&
		       depends_rule(p);
	case 2:
		return !(p[1] & ~6) && fail == !!p[3] && !length &&
		       (p[2] != 14 || desc_rule(p + 40)) &&
		       (p[2] < 24 || (width_rule(number(p + 40, 8) & 0xffff) &&
				      number(p + 40, 8) >> 16)) &&
		       depends_rule(p);
	case 3:
		return !p[1] && !p[2] && !depends && !upto && !length;
	case 6:
		return words_rule(p);
	case 7:
		return !(p[1] & ~14) && p[2] == 19 && turn_rule(p) && fail == !!p[3] &&
		       !length && number(p + 32, 8) <= 1ULL << 62 && depends_rule(p);
	case 8:
		return !(p[1] & ~2) && !p[2] && fail == !!p[3] && !depends && !upto && !length;
	case 5:
		return !(p[1] & ~64) && !p[2] && !p[3] && !depends && !upto && length <= 128;
	default:
		return !(p[1] & ~56) && !p[2] && !p[3] && !depends && !upto && !length;
	}
}

/* The size of a message on the wire, @room bytes before the end; 0: it must be rejected. */
static u64 size_rule(const u8 *p, u32 room, u32 have)
{
	u64 size;

	if (have < MSG_HEADER || !head_rule(p) || have < head_rule(p) || !fields_rule(p))
		return 0;
	size = head_rule(p) + (number(p + 12, 4) + 7) / 8 * 8;
	return size <= room && (p[0] < 5 || size <= have) ? size : 0;
}

/* ---- Checks ---- */

/* ... of the operation, and the place of a piece. */
static void operands_of_copy(const struct acp_msg *m, const u8 *p, u32 head)
{
	bool cmd = p[0] == 2, strided = (cmd || p[0] == 1) && p[2] == 14, signal = p[2] > 14;
	const u8 *at = p + (cmd ? 40 : 32);	/* where operands begin */

	ENSURE(m->src == (cmd ? number(p + 32, 8) : 0));
	if (strided) {
		ENSURE(m->c == number(cmd ? at : at + 8, 8));
		ENSURE(m->a == number(cmd ? at + 8 : at, 8) && m->b == number(at + 16, 8));
		ENSURE(m->size == (cmd ? (m->c >> 32) * (u32)m->c : 0));
	} else if (signal && p[2] > 23) {
		u64 numbers = number(cmd ? at : at + 16, 8);

		ENSURE(m->a == (numbers & 0xffff));
		ENSURE(m->size == (cmd ? (numbers >> 16) * width_rule(m->a) : 0));
		ENSURE(m->c == number(cmd ? at + 8 : at, 8));
		ENSURE(m->b == number(cmd ? at + 16 : at + 8, 8));
	} else if (signal) {
		ENSURE(m->size == (cmd ? number(at, 8) : 0));
		ENSURE(m->a == (!cmd && p[2] == 19 ? number(at + 16, 8) : 0));
		ENSURE(m->c == number(cmd ? at + 8 : at, 8));
		ENSURE(m->b == number(cmd ? at + 16 : at + 8, 8));
	} else {
		ENSURE(m->size == (cmd && p[2] == 1 ? number(at, 8) : 0) && !m->c);
		ENSURE(m->a == (cmd && p[2] != 1 ? number(at, 8) : 0));
		ENSURE(m->b == (head == 56 ? number(at + 8, 8) : 0));
	}
}

/* ... of what has none. */
static void operands(const struct acp_msg *m, const u8 *p, u32 head)
{
	if (p[0] > 2) {
		ENSURE(m->size == (p[0] == 7 ? number(p + 32, 8) : 0));
		ENSURE(m->a == (p[0] == 8 ? number(p + 32, 8) : 0));
		ENSURE(m->b == (p[0] == 7 ? number(p + 40, 8) : 0) && !m->c && !m->src);
		return;
	}
	operands_of_copy(m, p, head);
}

/* The decoded message must equal the bytes on the wire, and encode to the same bytes. */
static void same_message(const struct acp_msg *m, const u8 *p)
{
	u32 head = head_rule(p);
	u8 *out = calloc(1, head);

	ENSURE(acp_msg_head(m) == head);
	ENSURE(m->type == p[0] && m->flags == p[1] && m->op == p[2] && m->status == p[3]);
	ENSURE(m->depends == number(p + 4, 2) && m->upto == number(p + 6, 2));
	ENSURE(m->origin == number(p + 8, 4) && m->length == number(p + 12, 4));
	ENSURE(m->ticket == number(p + 16, 8));
	ENSURE(m->dst == (head > 24 ? number(p + 24, 8) : 0));
	operands(m, p, head);
	acp_msg_encode(out, m);
	ENSURE(!memcmp(out, p, head));
	free(out);
}

/* Decode a message of which @have bytes can be read. Return its size. */
static u32 message(const u8 *p, u32 room, u32 have)
{
	u8 *copy = exactly(p, have);
	struct acp_msg m;
	u32 size;

	memset(&m, 0xa5, sizeof(m));
	size = acp_msg_decode(&m, copy, room, have);
	ENSURE(size == size_rule(copy, room, have));
	if (size) {
		ENSURE(!(size & 7) && size <= room && size == acp_msg_size(&m));
		same_message(&m, copy);
	}
	free(copy);
	return size;
}

/* The messages of a body, of which the first @tagged bytes are protected. */
static void body(const u8 *p, u32 length, u32 tagged)
{
	u32 at, size, count = 0;

	for (at = 0; at < tagged && count < ACP_FRAME_MSGS; at += size, count++) {
		size = message(p + at, length - at, tagged - at);
		if (!size)
			return;
	}
}

/* The beginning of a body, truncated at every byte. */
static void truncated(const u8 *p, u32 length)
{
	u32 have, most = min_t(u32, length, LONGEST);

	for (have = 0; have <= most; have++) {
		message(p, have, have);
		message(p, length, have);
	}
}

static void checksum(const u8 *datagram, u32 tagged)
{
	u8 *copy = exactly(datagram, tagged);
	u32 crc = 0;

	ENSURE(acp_frame_crc(copy, &crc) == !number(copy + tagged - 4, 4));
	ENSURE(crc == number(copy + tagged - 8, 4));
	free(copy);
}

static void same_frame(const struct acp_frame *f, const struct acp_frame_hdr *h)
{
	struct acp_frame_hdr *out = calloc(1, sizeof(*out));

	out->tag = h->tag;
	acp_frame_encode(out, f);
	ENSURE(!memcmp(out, h, sizeof(*h)));
	free(out);
}

/*
 * Only the last four bits may be set, the first and the third of these not both, and neither in a
 * HELLO.
 */
static void nonce_block(const u8 *datagram, u8 type)
{
	u32 cipher, is = (u32)number(datagram + 60, 4);
	bool right = acp_frame_nonce(datagram, &cipher);

	ENSURE(cipher == is);
	ENSURE(right == (is < 16 && (is & 5) != 5 && !(type == ACP_FRAME_HELLO && (is & 5))));
}

/* Decode the header as that of a datagram of @len bytes. */
static bool header(const u8 *datagram, u32 len, struct acp_frame *f)
{
	struct acp_frame_hdr *h = exactly(datagram, HEADER);
	enum acp_frame_error error = acp_frame_decode(f, h, len);
	u32 why = reasons(datagram, len);

	ENSURE(error ? why & REASON(error) : !why);
	if (!error)
		same_frame(f, h);
	free(h);
	return !error;
}

/* Whatever values a frame and a message have, encoding stays in bounds. */
static void encode(struct input in)
{
	u8 fill = take(&in, 1);
	struct acp_frame f;
	struct acp_msg m;
	void *p;

	memset(&m, fill, sizeof(m));
	m.type = take(&in, 1);
	m.op = take(&in, 1);
	m.length = take(&in, 4);
	p = malloc(acp_msg_head(&m));
	acp_msg_encode(p, &m);
	free(p);
	memset(&f, fill, sizeof(f));
	p = malloc(HEADER);
	acp_frame_encode(p, &f);
	free(p);
}

int fuzz_one(const u8 *data, size_t size)
{
	struct acp_frame f, other;
	u32 tagged, at;

	encode((struct input){ data, size });
	if (size < HEADER)
		return 0;
	truncated(data + HEADER, size - HEADER);
	header(data, size - 1, &other);
	header(data, size + 1, &other);
	header(data, HEADER - 1, &other);
	header(data, ~0u, &other);
	if (!header(data, size, &f))
		return 0;
	tagged = acp_frame_tagged(&f);
	ENSURE(tagged >= HEADER && tagged <= size);
	ENSURE(tagged == size || (f.flags & (ACP_FRAME_BULK | ACP_FRAME_AEAD)));
	at = acp_frame_body(&f);
	ENSURE(at + f.length <= size);
	if (f.type == ACP_FRAME_DATA)
		body(data + at, f.length, f.flags & ACP_FRAME_BULK ? tagged - at : f.length);
	if (f.flags & ACP_FRAME_AEAD)
		nonce_block(data, f.type);
	if (f.flags & ACP_FRAME_CRC)
		checksum(data, tagged);
	return 0;
}
