// SPDX-License-Identifier: GPL-2.0-only
/* The wire format: see frame.h. */
#include "frame.h"
#include "reduce.h"
#include "strided_desc.h"

/* What each frame type may have, in addition to AEAD. */
static const struct {
	u8 flags;
	u32 min, max;		/* bytes of the body */
} frame_rules[] = {
	[ACP_FRAME_DATA] = { ACP_FRAME_FENCE | ACP_FRAME_BULK | ACP_FRAME_CRC |
			     ACP_FRAME_MORE | ACP_FRAME_LAZY | ACP_FRAME_MARKS,
			     sizeof(struct acp_msg_hdr), 65535 },
	[ACP_FRAME_ACK] = { ACP_FRAME_MARKS, 0, sizeof(struct acp_frame_ack) },
	[ACP_FRAME_HELLO] = { ACP_FRAME_ASK, sizeof(struct acp_frame_hello),
			      sizeof(struct acp_frame_hello) },
};

/* The fields of the first word of a message, in host order. */
#define TYPE		(0xffULL << 56)
#define FLAGS(flags)	((u64)(flags) << 48)
#define OP		(0xffULL << 40)
#define STATUS		(0xffULL << 32)
#define DEPENDS		0xffffffffULL	/* and upto */

/* The fields of the first word that each message type may have; all others must be zero. */
static const u64 msg_rules[] = {
	[ACP_MSG_DATA] = TYPE | FLAGS(ACP_MSG_LAST | ACP_MSG_FAIL | ACP_MSG_ORDERED |
				      ACP_MSG_BEHIND | ACP_MSG_GRANTED) |
			 OP | STATUS | DEPENDS,
	[ACP_MSG_CMD] = TYPE | FLAGS(ACP_MSG_ORDERED | ACP_MSG_FAIL) | OP | STATUS | DEPENDS,
	[ACP_MSG_DONE] = TYPE | STATUS,
	[ACP_MSG_BARRIER] = TYPE | FLAGS(ACP_MSG_RELEASE | ACP_MSG_ABORT | ACP_MSG_BROKEN),
	[ACP_MSG_PING] = TYPE | FLAGS(ACP_MSG_ANSWER),
	[ACP_MSG_WORDS] = TYPE | FLAGS(ACP_MSG_ORDERED | ACP_MSG_BEHIND) | OP | DEPENDS,
	[ACP_MSG_ASK] = TYPE | FLAGS(ACP_MSG_FAIL | ACP_MSG_ORDERED | ACP_MSG_BEHIND) |
			OP | STATUS | DEPENDS,
	[ACP_MSG_GRANT] = TYPE | FLAGS(ACP_MSG_FAIL) | STATUS,
};

#define NTYPES(t) (sizeof(t) / sizeof((t)[0]))

static enum acp_frame_error check(const struct acp_frame *f)
{
	if (f->length < frame_rules[f->type].min || f->length > frame_rules[f->type].max)
		return ACP_FRAME_BAD_LEN;
	if (f->type == ACP_FRAME_ACK && f->length % sizeof(struct acp_frame_ack))
		return ACP_FRAME_BAD_LEN;
	if (f->flags & ~(frame_rules[f->type].flags | ACP_FRAME_AEAD))
		return ACP_FRAME_BAD_FLAGS;
	if (f->flags & (ACP_FRAME_BULK | ACP_FRAME_CRC | ACP_FRAME_MORE | ACP_FRAME_AEAD)) {
		bool bulk = f->flags & ACP_FRAME_BULK;

		if (bulk ? f->flags & ACP_FRAME_AEAD : f->flags & ACP_FRAME_CRC)
			return ACP_FRAME_BAD_FLAGS;
		if (!bulk && f->type == ACP_FRAME_DATA && (f->flags & ACP_FRAME_MORE))
			return ACP_FRAME_BAD_FLAGS;
		if (bulk && sizeof(struct acp_frame_hdr) + f->length <= acp_frame_tagged(f))
			return ACP_FRAME_BAD_LEN;
	}
	if (f->type == ACP_FRAME_HELLO) {
		if (f->flags & ACP_FRAME_ASK ? f->ack : f->seq)
			return ACP_FRAME_BAD_FLAGS;
	} else if ((f->type == ACP_FRAME_DATA) != (f->seq != 0)) {
		return ACP_FRAME_BAD_FLAGS;
	}
	if (!f->epoch_src || (f->type != ACP_FRAME_HELLO && !f->epoch_dst))
		return ACP_FRAME_BAD_FLAGS;
	return ACP_FRAME_OK;
}

enum acp_frame_error acp_frame_decode(struct acp_frame *f, const struct acp_frame_hdr *h, u32 len)
{
	if (h->version != ACP_FRAME_VERSION)
		return ACP_FRAME_BAD_VERSION;
	if (!h->type || h->type >= NTYPES(frame_rules))
		return ACP_FRAME_BAD_TYPE;
	f->type = h->type;
	f->flags = h->flags;
	f->color = h->color;
	f->job = be32_to_cpu(h->job);
	f->generation = be16_to_cpu(h->generation);
	f->length = be16_to_cpu(h->length);
	f->node = be32_to_cpu(h->node);
	f->epoch_src = be32_to_cpu(h->epoch_src);
	f->epoch_dst = be32_to_cpu(h->epoch_dst);
	f->seq = be64_to_cpu(h->seq);
	f->ack = be64_to_cpu(h->ack);
	if (len < sizeof(*h) || f->length != len - sizeof(*h) ||
	    f->length < acp_frame_encrypted(f->flags))
		return ACP_FRAME_BAD_LEN;
	f->length -= acp_frame_encrypted(f->flags);
	return check(f);
}

bool acp_frame_nonce(const void *frame, u32 *cipher)
{
	const struct acp_frame_hdr *h = frame;
	const struct acp_frame_nonce *block = frame + sizeof(*h);

	*cipher = be32_to_cpu(block->cipher);
	if (*cipher & ~(ACP_CIPHER_BY | ACP_CIPHER_WISHES) ||
	    (*cipher & ACP_CIPHER_BY) == ACP_CIPHER_BY)
		return false;
	return !(*cipher & ACP_CIPHER_BY) || h->type != ACP_FRAME_HELLO;
}

bool acp_frame_crc(const void *frame, u32 *crc)
{
	const struct acp_frame_hdr *h = frame;
	const struct acp_frame_crc *c = frame + sizeof(*h) + sizeof(struct acp_msg_data) +
		(h->flags & ACP_FRAME_MORE ? sizeof(struct acp_msg_more) : 0);

	*crc = be32_to_cpu(c->crc);
	return !c->reserved;
}

void acp_frame_key(struct acp_frame_key *k, u32 cipher, u32 job, u16 generation, u32 from, u32 to,
		   u16 color)
{
	const char *label = "acp-aead";

	if (cipher & ACP_CIPHER_BY)
		label = cipher & ACP_CIPHER_AES ? "acp-aes " : "acpaegis";
	memcpy(k->label, label, sizeof(k->label));
	k->job = cpu_to_be32(job);
	k->generation = cpu_to_be16(generation);
	k->color = cpu_to_be16(color);
	k->from = cpu_to_be32(from);
	k->to = cpu_to_be32(to);
}

/* Both structures begin with type, flags, operation and status, in this order. */
#define MSG_BYTES offsetof(struct acp_msg_hdr, depends)

static_assert(offsetof(struct acp_msg, type) == offsetof(struct acp_msg_hdr, type));
static_assert(offsetof(struct acp_msg, flags) == offsetof(struct acp_msg_hdr, flags));
static_assert(offsetof(struct acp_msg, op) == offsetof(struct acp_msg_hdr, op));
static_assert(offsetof(struct acp_msg, status) == offsetof(struct acp_msg_hdr, status));
static_assert(offsetof(struct acp_msg, depends) == MSG_BYTES);

/* The operands of operations >= ACP_OP_STRIDED; out of line, to keep the others fast. */
static noinline void encode_strided(struct acp_msg_cmd *c, const struct acp_msg *m)
{
	bool strided = m->op == ACP_OP_STRIDED;
	u64 size = strided ? m->c : m->size;

	if (acp_op_accumulates(m->op))
		size = acp_numbers(m->a, m->size);
	c->args[0] = cpu_to_be64(size);
	c->args[1] = cpu_to_be64(strided ? m->a : m->c);
	c->args[2] = cpu_to_be64(m->b);
}

/* Returns whether it is well formed. */
static noinline bool decode_strided(struct acp_msg *m, const struct acp_msg_cmd *c)
{
	u64 first = be64_to_cpu(c->args[0]), second = be64_to_cpu(c->args[1]);

	m->b = be64_to_cpu(c->args[2]);
	if (m->op != ACP_OP_STRIDED) {
		m->size = first;
		m->c = second;
		return !acp_op_accumulates(m->op) ||
		       (acp_numbers_split(first, &m->a, &m->size) && m->size);
	}
	m->c = first;
	m->size = acp_strided_size(first);
	m->a = second;
	return acp_strided_wanted(first);
}

static void encode_cmd(struct acp_msg_cmd *c, const struct acp_msg *m)
{
	c->dst = cpu_to_be64(m->dst);
	c->src = cpu_to_be64(m->src);
	if (m->op >= ACP_OP_STRIDED) {
		encode_strided(c, m);
		return;
	}
	c->args[0] = cpu_to_be64(m->op == ACP_OP_COPY ? m->size : m->a);
	if (acp_op_args(m->op) == 2)
		c->args[1] = cpu_to_be64(m->b);
}

static bool decode_cmd(struct acp_msg *m, const struct acp_msg_cmd *c)
{
	m->dst = be64_to_cpu(c->dst);
	m->src = be64_to_cpu(c->src);
	if (m->op >= ACP_OP_STRIDED)
		return decode_strided(m, c);
	if (m->op == ACP_OP_COPY)
		m->size = be64_to_cpu(c->args[0]);
	else
		m->a = be64_to_cpu(c->args[0]);
	if (acp_op_args(m->op) == 2)
		m->b = be64_to_cpu(c->args[1]);
	return true;
}

static noinline void encode_more(struct acp_msg_more *more, const struct acp_msg *m)
{
	if (m->op == ACP_OP_STRIDED) {
		more->stride = cpu_to_be64(m->a);
		more->desc = cpu_to_be64(m->c);
		more->position = cpu_to_be64(m->b);
	} else {
		more->flag = cpu_to_be64(m->c);
		more->operand = cpu_to_be64(m->b);
		more->numbers = cpu_to_be64(m->op == ACP_OP_SEND || acp_op_accumulates(m->op) ?
					    m->a : 0);
	}
}

/*
 * Is it a piece of an indirect copy of m->c bytes, and the last one if it says so?  Only a message
 * may have no bytes.
 */
static bool is_piece(const struct acp_msg *m)
{
	if (m->op == ACP_OP_SEND && !m->c)
		return !m->b && !m->length && (m->flags & ACP_MSG_LAST);
	return m->c <= ACP_COPY_MAX && m->b < m->c && m->length && m->length <= m->c - m->b &&
	       (m->length == m->c - m->b) == !!(m->flags & ACP_MSG_LAST);
}

/* Has it whole numbers, for which there is such an operation, and an aligned place? */
static bool is_vector(const struct acp_msg *m)
{
	u32 width = acp_reduce_width(m->a);

	return width && m->length && m->length <= ACP_ACCUMULATE_MAX &&
	       !((m->length | m->dst) & (width - 1)) &&
	       (m->op != ACP_OP_ACCUMULATE || !(m->b | m->c));
}

/* Returns whether it is well formed, as far as is needed to find a piece's place in its blocks. */
static noinline bool decode_more(struct acp_msg *m, const struct acp_msg_more *more)
{
	if (m->op != ACP_OP_STRIDED) {
		m->c = be64_to_cpu(more->flag);
		m->b = be64_to_cpu(more->operand);
		m->a = be64_to_cpu(more->numbers);
		if (acp_op_accumulates(m->op))
			return is_vector(m);
		if (m->a && m->op != ACP_OP_SEND)
			return false;
		return !acp_op_indirect(m->op) || is_piece(m);
	}
	m->a = be64_to_cpu(more->stride);
	m->c = be64_to_cpu(more->desc);
	m->b = be64_to_cpu(more->position);
	return acp_strided_wanted(m->c) && m->b < acp_strided_size(m->c) &&
	       m->length <= acp_strided_size(m->c) - m->b;
}

static noinline void encode_ask(struct acp_msg_ask *ask, const struct acp_msg *m)
{
	ask->dst = cpu_to_be64(m->dst);
	if (m->type == ACP_MSG_GRANT) {
		ask->args[0] = cpu_to_be64(m->a);
		return;
	}
	ask->args[0] = cpu_to_be64(m->size);
	ask->args[1] = cpu_to_be64(m->b);
}

/* Returns whether it is well formed. */
static noinline bool decode_ask(struct acp_msg *m, const struct acp_msg_ask *ask)
{
	m->dst = be64_to_cpu(ask->dst);
	if (m->type == ACP_MSG_GRANT) {
		m->a = be64_to_cpu(ask->args[0]);
		return true;
	}
	m->size = be64_to_cpu(ask->args[0]);
	m->b = be64_to_cpu(ask->args[1]);
	return m->size <= ACP_COPY_MAX;
}

void acp_msg_encode(void *p, const struct acp_msg *m)
{
	struct acp_msg_hdr *h = p;

	memcpy(h, m, MSG_BYTES);
	h->depends = cpu_to_be16(m->depends);
	h->upto = cpu_to_be16(m->upto);
	h->origin = cpu_to_be32(m->origin);
	h->length = cpu_to_be32(m->length);
	h->ticket = cpu_to_be64(m->ticket);
	if (m->type == ACP_MSG_DATA) {
		((struct acp_msg_data *)p)->dst = cpu_to_be64(m->dst);
		if (m->op)
			encode_more(p + sizeof(struct acp_msg_data), m);
	} else if (m->type == ACP_MSG_CMD) {
		encode_cmd(p, m);
	} else if (m->type == ACP_MSG_WORDS && m->op) {
		((struct acp_msg_data *)p)->dst = cpu_to_be64(m->dst);
	} else if (m->type == ACP_MSG_ASK || m->type == ACP_MSG_GRANT) {
		encode_ask(p, m);
	}
}

/*
 * May DATA have its op? Pieces of strided copies have data, and a flag changes only at the end of a
 * copy that succeeded.
 */
static noinline bool op_of_data(const struct acp_msg *m)
{
	if (m->flags & ACP_MSG_FAIL)
		return false;
	if (m->op == ACP_OP_STRIDED)
		return m->length;
	if (acp_op_indirect(m->op) || m->op == ACP_OP_ACCUMULATE)
		return true;	/* see is_piece(), is_vector() */
	return acp_op_signals(m->op) && (m->flags & ACP_MSG_LAST);
}

static bool length_right(const struct acp_msg *m)
{
	switch (m->type) {
	case ACP_MSG_DATA:
		return !m->length || !(m->flags & ACP_MSG_FAIL);
	case ACP_MSG_PING:
		return m->length <= ACP_PING_MAX;
	case ACP_MSG_WORDS:
		return m->length >= 2 * sizeof(struct acp_msg_word) &&
		       !(m->length % sizeof(struct acp_msg_word));
	default:
		return !m->length;
	}
}

/* Words are puts that depend on nothing, or messages that depend on an older one at most. */
static bool words_right(const struct acp_msg *m)
{
	if (m->op != ACP_OP_SEND)
		return !m->op && !m->flags && !m->depends;
	return !m->depends || (m->flags & ACP_MSG_BEHIND);
}

/* Reserved fields must be zero, so that later versions can define them. */
static bool well_formed(u64 word, const struct acp_msg *m)
{
	bool fail = m->flags & ACP_MSG_FAIL;

	if (word & ~msg_rules[m->type])
		return false;
	if ((word & DEPENDS) && (!m->upto || m->upto > m->depends))
		return false;
	if (!length_right(m))
		return false;
	if (m->type == ACP_MSG_CMD && !acp_op_travels(m->op))
		return false;
	if (m->type == ACP_MSG_DATA && m->op && !op_of_data(m))
		return false;
	if (m->type == ACP_MSG_WORDS && !words_right(m))
		return false;
	if (m->type == ACP_MSG_ASK && m->op != ACP_OP_SEND)
		return false;
	/* Its place is known already. */
	if (m->type == ACP_MSG_DATA && (m->flags & ACP_MSG_GRANTED) &&
	    ((!fail && m->op != ACP_OP_SEND) || acp_msg_in_turn(m)))
		return false;
	if (acp_msg_in_turn(m) && !fail && m->op != ACP_OP_SEND)
		return false;
	if (acp_msg_is_behind(m) && (!acp_msg_in_turn(m) || !m->upto || m->upto != m->depends))
		return false;
	return m->type == ACP_MSG_DONE || fail == !!m->status;
}

u32 acp_msg_decode(struct acp_msg *m, const void *p, u32 room, u32 have)
{
	const struct acp_msg_hdr *h = p;
	u32 size;

	if (have < sizeof(*h) || !h->type || h->type >= NTYPES(msg_rules))
		return 0;
	memcpy(m, h, MSG_BYTES);
	m->depends = be16_to_cpu(h->depends);
	m->upto = be16_to_cpu(h->upto);
	m->origin = be32_to_cpu(h->origin);
	m->length = be32_to_cpu(h->length);
	m->ticket = be64_to_cpu(h->ticket);
	m->dst = 0;
	m->src = 0;
	m->size = 0;
	m->a = 0;
	m->b = 0;
	m->c = 0;
	size = acp_msg_size(m);
	if (have < acp_msg_head(m) || m->length > room || size > room)
		return 0;
	if (!well_formed(be64_to_cpu(h->word), m))
		return 0;
	if (m->type == ACP_MSG_DATA) {
		m->dst = be64_to_cpu(((const struct acp_msg_data *)p)->dst);
		if (m->op && !decode_more(m, p + sizeof(struct acp_msg_data)))
			return 0;
	} else if (m->type == ACP_MSG_CMD) {
		if (!decode_cmd(m, p))
			return 0;
	} else if (have < size) {
		return 0;	/* only DATA may have a payload that the tag does not cover */
	} else if (m->type == ACP_MSG_WORDS && m->op) {
		m->dst = be64_to_cpu(((const struct acp_msg_data *)p)->dst);
	} else if (m->type == ACP_MSG_ASK || m->type == ACP_MSG_GRANT) {
		if (!decode_ask(m, p))
			return 0;
	}
	return size;
}
