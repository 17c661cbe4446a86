// SPDX-License-Identifier: GPL-2.0-only
/* The wire format: see frame.h. */
#include "frame.h"

/* What each frame type may carry. */
static const struct {
	u8 flags;
	u32 min, max;		/* bytes after the header */
} frame_rules[] = {
	[ACP_FRAME_DATA] = { ACP_FRAME_FENCE | ACP_FRAME_BULK | ACP_FRAME_CRC |
			     ACP_FRAME_LAZY,
			     sizeof(struct acp_msg_hdr), 65535 },
	[ACP_FRAME_ACK] = { 0, 0, sizeof(struct acp_frame_ack) },
	[ACP_FRAME_HELLO] = { ACP_FRAME_ASK, sizeof(struct acp_frame_hello),
			      sizeof(struct acp_frame_hello) },
};

/* What each message type may carry; every field not named must be 0. */
static const struct {
	u8 flags;
	bool op, status, depends, length;
} msg_rules[] = {
	[ACP_MSG_DATA] = { ACP_MSG_LAST | ACP_MSG_FAIL, .status = true, .depends = true, .length = true },
	[ACP_MSG_CMD] = { ACP_MSG_ORDERED | ACP_MSG_FAIL, .op = true, .status = true, .depends = true },
	[ACP_MSG_DONE] = { .status = true },
	[ACP_MSG_BARRIER] = { ACP_MSG_RELEASE | ACP_MSG_ABORT | ACP_MSG_BROKEN },
};

#define NTYPES(t) (sizeof(t) / sizeof((t)[0]))

void acp_frame_encode(struct acp_frame_hdr *h, const struct acp_frame *f)
{
	h->version = ACP_FRAME_VERSION;
	h->type = f->type;
	h->flags = f->flags;
	h->color = f->color;
	h->job = cpu_to_be32(f->job);
	h->generation = cpu_to_be16(f->generation);
	h->reserved = 0;
	h->node = cpu_to_be32(f->node);
	h->epoch_src = cpu_to_be32(f->epoch_src);
	h->epoch_dst = cpu_to_be32(f->epoch_dst);
	h->seq = cpu_to_be64(f->seq);
	h->ack = cpu_to_be64(f->ack);
	h->sack = cpu_to_be64(f->sack);
	h->crc = cpu_to_be32(f->crc);
	h->length = cpu_to_be32(f->length);
	h->tag = cpu_to_be64(f->tag);
}

static enum acp_frame_error check(const struct acp_frame *f)
{
	if (f->length < frame_rules[f->type].min || f->length > frame_rules[f->type].max)
		return ACP_FRAME_BAD_LEN;
	if (f->type == ACP_FRAME_ACK && f->length % sizeof(struct acp_frame_ack))
		return ACP_FRAME_BAD_LEN;
	if (f->flags & ~frame_rules[f->type].flags)
		return ACP_FRAME_BAD_FLAGS;
	if ((f->flags & ACP_FRAME_CRC) && !(f->flags & ACP_FRAME_BULK))
		return ACP_FRAME_BAD_FLAGS;
	if ((f->flags & ACP_FRAME_BULK) && f->length < sizeof(struct acp_msg_data))
		return ACP_FRAME_BAD_LEN;
	if (!(f->flags & ACP_FRAME_CRC) && f->crc)
		return ACP_FRAME_BAD_FLAGS;
	if ((f->type == ACP_FRAME_DATA) != (f->seq != 0))
		return ACP_FRAME_BAD_FLAGS;
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
	if (h->reserved)
		return ACP_FRAME_BAD_FLAGS;
	f->type = h->type;
	f->flags = h->flags;
	f->color = h->color;
	f->job = be32_to_cpu(h->job);
	f->generation = be16_to_cpu(h->generation);
	f->node = be32_to_cpu(h->node);
	f->epoch_src = be32_to_cpu(h->epoch_src);
	f->epoch_dst = be32_to_cpu(h->epoch_dst);
	f->seq = be64_to_cpu(h->seq);
	f->ack = be64_to_cpu(h->ack);
	f->sack = be64_to_cpu(h->sack);
	f->crc = be32_to_cpu(h->crc);
	f->length = be32_to_cpu(h->length);
	f->tag = be64_to_cpu(h->tag);
	if (len < sizeof(*h) || f->length != len - sizeof(*h))
		return ACP_FRAME_BAD_LEN;
	return check(f);
}

void acp_msg_encode(void *p, const struct acp_msg *m)
{
	struct acp_msg_hdr *h = p;

	h->type = m->type;
	h->flags = m->flags;
	h->op = m->op;
	h->status = m->status;
	h->depends = cpu_to_be16(m->depends);
	h->upto = cpu_to_be16(m->upto);
	h->origin = cpu_to_be32(m->origin);
	h->length = cpu_to_be32(m->length);
	h->ticket = cpu_to_be64(m->ticket);
	if (m->type == ACP_MSG_DATA) {
		((struct acp_msg_data *)p)->dst = cpu_to_be64(m->dst);
	} else if (m->type == ACP_MSG_CMD) {
		struct acp_msg_cmd *c = p;

		c->dst = cpu_to_be64(m->dst);
		c->src = cpu_to_be64(m->src);
		c->size = cpu_to_be64(m->size);
		c->a = cpu_to_be64(m->a);
		c->b = cpu_to_be64(m->b);
	}
}

/* Fields that the type does not use are 0, so that they can be used later. */
static bool well_formed(const struct acp_msg *m)
{
	u8 fail = m->flags & ACP_MSG_FAIL;

	if (m->flags & ~msg_rules[m->type].flags)
		return false;
	if (m->op && !msg_rules[m->type].op)
		return false;
	if (m->status && !msg_rules[m->type].status)
		return false;
	if (m->depends && !msg_rules[m->type].depends)
		return false;
	if (!m->depends != !m->upto || m->upto > m->depends)
		return false;
	if (m->length && !msg_rules[m->type].length)
		return false;
	if (m->type != ACP_MSG_DONE && !fail != !m->status)
		return false;
	if (fail && m->length)
		return false;
	return true;
}

u32 acp_msg_decode(struct acp_msg *m, const void *p, u32 room, u32 have)
{
	const struct acp_msg_hdr *h = p;

	if (have < sizeof(*h) || !h->type || h->type >= NTYPES(msg_rules))
		return 0;
	if (have < acp_msg_head(h->type))
		return 0;
	m->type = h->type;
	m->flags = h->flags;
	m->op = h->op;
	m->status = h->status;
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
	if (m->type == ACP_MSG_DATA) {
		m->dst = be64_to_cpu(((const struct acp_msg_data *)p)->dst);
	} else if (m->type == ACP_MSG_CMD) {
		const struct acp_msg_cmd *c = p;

		m->dst = be64_to_cpu(c->dst);
		m->src = be64_to_cpu(c->src);
		m->size = be64_to_cpu(c->size);
		m->a = be64_to_cpu(c->a);
		m->b = be64_to_cpu(c->b);
	}
	if (!well_formed(m) || m->length > room || acp_msg_size(m) > room)
		return 0;
	return acp_msg_size(m);
}
