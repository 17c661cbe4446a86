/* SPDX-License-Identifier: MIT */
/* Random frames, and what tests of the wire format share. */
#ifndef FRAME_PLAY_H
#define FRAME_PLAY_H

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

static inline u64 rnd(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 0x2545f4914f6cdd1d;
}

/* Return a valid header. */
static inline struct acp_frame good_frame(u8 type, u32 length)
{
	return (struct acp_frame){
		.type = type, .color = 1, .generation = 7, .job = 42, .node = 3,
		.epoch_src = 0x11111111, .epoch_dst = 0x22222222,
		.seq = type == ACP_FRAME_DATA ? 5 : 0, .ack = type == ACP_FRAME_HELLO ? 0 : 9,
		.length = length,
	};
}

static inline u32 smallest(u8 type)
{
	if (type == ACP_FRAME_DATA)
		return sizeof(struct acp_msg_hdr);
	return type == ACP_FRAME_ACK ? sizeof(struct acp_frame_ack) :
				       sizeof(struct acp_frame_hello);
}

/* Return the size of the datagram of a frame. */
static inline u32 datagram(const struct acp_frame *f)
{
	return HEADER + f->length + (f->flags & ACP_FRAME_AEAD ? 32 : 0);
}

/* Encode and decode a header as part of a datagram of "len" bytes. */
static inline enum acp_frame_error decode(const struct acp_frame *f, u32 len)
{
	struct acp_frame_hdr *h = malloc(sizeof(*h));
	enum acp_frame_error error;
	struct acp_frame out;

	acp_frame_encode(h, f);
	error = acp_frame_decode(&out, h, len);
	free(h);
	return error;
}

static inline bool same_frame(const struct acp_frame *a, const struct acp_frame *b)
{
	return a->type == b->type && a->flags == b->flags && a->color == b->color &&
	       a->generation == b->generation && a->job == b->job && a->node == b->node &&
	       a->epoch_src == b->epoch_src && a->epoch_dst == b->epoch_dst && a->seq == b->seq &&
	       a->ack == b->ack && a->length == b->length;
}

static inline bool same_msg(const struct acp_msg *a, const struct acp_msg *b)
{
	return a->type == b->type && a->flags == b->flags && a->op == b->op &&
	       a->status == b->status && a->depends == b->depends && a->upto == b->upto &&
	       a->origin == b->origin && a->length == b->length && a->ticket == b->ticket &&
	       a->dst == b->dst && a->src == b->src && a->size == b->size && a->a == b->a &&
	       a->b == b->b && a->c == b->c;
}

/* Convert a random DATA message to one with an operation. */
static inline void random_more(struct acp_msg *m)
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
static inline void random_cmd(struct acp_msg *m)
{
	m->flags = rnd() & (ACP_MSG_ORDERED | ACP_MSG_FAIL);
	m->status = m->flags & ACP_MSG_FAIL ? 1 + rnd() % (ACP_ST_END - 1) : 0;
	m->op = 1 + rnd() % ACP_OP_GATHER;
	if (rnd() % 8 == 0)
		m->op = ACP_OP_ACCUMULATE + rnd() % 3;
	m->src = rnd();
	if (m->op == ACP_OP_COPY || m->op > ACP_OP_STRIDED)
		m->size = rnd();
	else
		m->a = rnd();
	if (m->op == ACP_OP_CAS4 || m->op == ACP_OP_CAS8 || m->op >= ACP_OP_STRIDED)
		m->b = rnd();
	if (m->op >= ACP_OP_STRIDED)
		m->c = m->op == ACP_OP_STRIDED ? rnd() | 1 | 1ULL << 40 : rnd();
	if (m->op == ACP_OP_STRIDED)
		m->size = (m->c >> 32) * (u32)m->c;
	if (acp_op_accumulates(m->op)) {
		m->a = ACP_REDUCE(rnd() % 4, rnd() % 6);
		m->size = (1 + rnd() % ((1ULL << 48) - 1)) * acp_reduce_width(m->a);
	}
}

static inline void random_words(struct acp_msg *m)
{
	m->length = (2 + rnd() % 63) * 16;
	if (rnd() % 2)
		return;
	m->op = ACP_OP_SEND;
	m->dst = rnd();
	m->flags = rnd() % 2 ? ACP_MSG_ORDERED : 0;
	if (!m->flags || rnd() % 2)
		return;
	m->flags |= ACP_MSG_BEHIND;
	m->depends = 1 + rnd() % 65535;
	m->upto = m->depends;
}

static inline struct acp_msg random_msg(void)
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
		random_cmd(&m);
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
		random_words(&m);
		break;
	default:
		m.flags = rnd() & (ACP_MSG_RELEASE | ACP_MSG_ABORT | ACP_MSG_BROKEN);
	}
	return m;
}

/* Decode a message from a buffer that contains exactly "have" bytes of it. */
static inline u32 decode_msg(const struct acp_msg *m, u32 room, u32 have, struct acp_msg *out)
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

#endif /* FRAME_PLAY_H */
