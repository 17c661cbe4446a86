/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The wire format: what a frame looks like, and the only code that encodes
 * and decodes one.  PROTOCOL.md says the same for people.
 *
 * A frame is one UDP datagram: a header of 48 bytes and, by its type,
 *	DATA	one or more messages, covered by one sequence number;
 *	ACK	the full bitmap of frames received beyond "ack";
 *	HELLO	the sender's set-up of the job, to open a flow.
 * A message is a header of 24 bytes and a body by its type, padded to 8.
 *
 * In a job with integrity aead, the body is encrypted: a seal is before it and
 * a code behind it.
 *
 * Everything is big-endian and of fixed width; all lengths are checked here,
 * so that what decode accepts needs no further look at sizes.
 */
#ifndef ACP_FRAME_H
#define ACP_FRAME_H

#include "port.h"
#include "acp_abi.h"

#define ACP_FRAME_VERSION	1
#define ACP_FRAME_EDITION	1	/* of the messages: goes into the digest of a HELLO */
#define ACP_FRAME_WINDOW	512	/* frames a sender may have beyond "ack" */
#define ACP_FRAME_SHORT		128	/* payloads up to this are under the tag */
#define ACP_FRAME_MSGS		64	/* messages in one frame, at most */

enum acp_frame_type {
	ACP_FRAME_DATA	= 1,
	ACP_FRAME_ACK	= 2,
	ACP_FRAME_HELLO	= 3,
};

/* acp_frame_hdr.flags */
#define ACP_FRAME_FENCE	1	/* DATA: apply only when all earlier frames were */
#define ACP_FRAME_BULK	2	/* DATA: one message whose payload the tag does not cover */
#define ACP_FRAME_CRC	4	/* BULK: a struct acp_frame_crc is before the payload */
#define ACP_FRAME_ASK	8	/* HELLO: please answer */
#define ACP_FRAME_MORE	8	/* BULK: the message has a struct acp_msg_more */
#define ACP_FRAME_LAZY	16	/* DATA: nobody waits for its acknowledgement, it may be late */
#define ACP_FRAME_AEAD	32	/* the body is encrypted: never with BULK */
/*
 * DATA, ACK: counts, modulo 4, acknowledgements that say: since the one before
 * it, a frame came that the network has marked (ECN).  Two bits, MARK counts one.
 */
#define ACP_FRAME_MARKS	192
#define ACP_FRAME_MARK	64

struct acp_frame_hdr {
	__be64 tag;		/* SipHash-2-4 of what follows, see acp_frame_tagged() */
	__u8   version;
	__u8   type;		/* enum acp_frame_type */
	__u8   flags;
	__u8   color;		/* which of the sender's and receiver's addresses */
	__be32 job;
	__be16 generation;	/* of the job */
	__be16 length;		/* bytes after this header */
	__be32 node;		/* the sender */
	__be32 epoch_src;	/* random, one per life of the sender's flow */
	__be32 epoch_dst;	/* as the receiver told it; 0 in a first HELLO */
	__be64 seq;		/* DATA: its number, counted from 1; else 0 */
	__be64 ack;		/* all frames before this one were applied */
};

static_assert(sizeof(struct acp_frame_hdr) == 48);

/* ACK body: bit i of word w says that frame ack + 1 + 64 w + i was applied. */
struct acp_frame_ack {
	__be64 map[ACP_FRAME_WINDOW / 64];
};

/* HELLO body: peers that differ in any of it do not belong together. */
struct acp_frame_hello {
	__be32 nprocs;
	__be32 nodes;
	__be64 digest;		/* of rank and node runs, colors, integrity, edition */
};

/* With ACP_FRAME_CRC, between the DATA message and its payload. */
struct acp_frame_crc {
	__be32 crc;		/* crc32c of the payload without padding */
	__be32 reserved;	/* 0 */
};

static_assert(sizeof(struct acp_frame_crc) == 8);

#define ACP_FRAME_NONCE	12
#define ACP_FRAME_CODE	16	/* Poly1305, behind the body */

/* With ACP_FRAME_AEAD, between header and body. */
struct acp_frame_seal {
	__u8   nonce[ACP_FRAME_NONCE];
	__be32 reserved;	/* 0 */
};

static_assert(sizeof(struct acp_frame_seal) == 16);

#define ACP_FRAME_SEALED (sizeof(struct acp_frame_seal) + ACP_FRAME_CODE)

/* What a key is derived from: keyed BLAKE2s of it, with the job's key, is the frames' key. */
struct acp_frame_key {
	char   label[8];	/* "acp-aead" */
	__be32 job;
	__be16 generation;
	__be16 color;
	__be32 from, to;	/* nodes */
};

static_assert(sizeof(struct acp_frame_key) == 24);

enum acp_msg_type {
	ACP_MSG_DATA	= 1,	/* put this at dst */
	ACP_MSG_CMD	= 2,	/* execute this where src lives */
	ACP_MSG_DONE	= 3,	/* command "ticket" of rank "origin" ended with "status" */
	ACP_MSG_BARRIER	= 4,	/* ticket: number of the barrier; origin: sending node */
	ACP_MSG_PING	= 5,	/* send it back; ticket: the sender's; origin: sending node */
	ACP_MSG_WORDS	= 6,	/* a DATA of 8 bytes each for ticket, ticket + 1, ... */
};

/* acp_msg_hdr.flags */
#define ACP_MSG_LAST	1	/* DATA: the command's last piece; now its status is known */
#define ACP_MSG_FAIL	2	/* DATA, CMD: it failed with "status" at the sender */
#define ACP_MSG_ORDERED	4	/* CMD: its DATA must not overtake earlier frames */
#define ACP_MSG_RELEASE	8	/* BARRIER: down the tree; without: arrival, up the tree */
#define ACP_MSG_ABORT	16	/* BARRIER: the job has ended */
/*
 * BARRIER: none will complete any more.  ticket, lower half: the node, counted
 * from 1, that runs another set-up of the job, or 0; upper half: the rank,
 * counted from 1, that left, or 0.
 */
#define ACP_MSG_BROKEN	32
#define ACP_MSG_ANSWER	64	/* PING: it is sent back */

#define ACP_PING_MOST	128	/* bytes of its payload: it shares frames */

struct acp_msg_hdr {
	union {
		struct {
			__u8   type;	/* enum acp_msg_type */
			__u8   flags;
			__u8   op;	/* CMD: enum acp_op; DATA: see acp_msg_more; else 0 */
			__u8   status;	/* DONE, and with FAIL: enum acp_status; else 0 */
			/*
			 * DATA, CMD behind a fence: it fails if one of the origin's commands
			 * ticket - depends .. ticket - upto failed; else 0
			 */
			__be16 depends, upto;
		};
		__be64 word;	/* all of these at once */
	};
	__be32 origin;		/* rank that issued the command */
	__be32 length;		/* DATA, PING, WORDS: bytes of payload; else 0 */
	__be64 ticket;		/* the command, at its origin */
};

/*
 * DATA with an op: a piece of a strided copy, or what is done when all of a copy
 * is in memory (with LAST).
 */
struct acp_msg_more {
	union {
		struct {			/* ACP_OP_STRIDED */
			__be64 stride;		/* block i begins at dst + i * stride */
			__be64 shape;		/* as in ACP_BLOCKS */
			__be64 position;	/* of the payload in the blocks, end to end */
		};
		struct {			/* ACP_OP_COPY_SET, ACP_OP_COPY_ADD */
			__be64 flag;		/* its address */
			__be64 operand;
			__be64 reserved;	/* 0 */
		};
	};
};

struct acp_msg_data {
	struct acp_msg_hdr h;
	__be64 dst;
	/* with an op: struct acp_msg_more */
	/* in a frame with ACP_FRAME_CRC: struct acp_frame_crc */
	/* payload, padded with zeros to 8 bytes */
};

struct acp_msg_cmd {
	struct acp_msg_hdr h;
	__be64 dst, src;	/* as in struct acp_sqe, and so is ... */
	/* COPY: size; STRIDED, COPY_SET, COPY_ADD: size, a, b; CAS4, CAS8: a, b; others: a */
	__be64 args[];
};

/* The payload of WORDS is two or more of these; each counts as a message of the frame. */
struct acp_msg_word {
	__be64 dst;
	__u8   data[8];
};

/*
 * What most frames have: one DATA of 8 bytes, which is all of its command, and waits for nothing.
 * Who makes or reads such a frame may do so in fewer steps; on the wire it is like any other.
 */
struct acp_msg_lone {
	struct acp_msg_hdr h;	/* its word is ACP_MSG_LONE, its length 8 */
	__be64 dst;
	__u8   data[8];
};

#define ACP_MSG_LONE	cpu_to_be64((u64)ACP_MSG_DATA << 56 | (u64)ACP_MSG_LAST << 48)

static_assert(sizeof(struct acp_msg_word) == 16);
static_assert(sizeof(struct acp_msg_lone) == 40);
static_assert(sizeof(struct acp_msg_hdr) == 24);
static_assert(sizeof(struct acp_msg_data) == 32);
static_assert(sizeof(struct acp_msg_more) == 24);
static_assert(sizeof(struct acp_msg_cmd) == 40);

/* A header in host order. */
struct acp_frame {
	u8  type, flags, color;
	u16 generation;
	u32 job, node;
	u32 epoch_src, epoch_dst;
	u64 seq, ack;
	u32 length;		/* of the body, seal and code not counted */
};

/*
 * A message in host order, 0 what is not on the wire; payload is where it stands in the frame.
 *
 *	op of a command		size	a		b		c
 *	COPY			bytes	0		0		0
 *	STRIDED			bytes	dst's stride	src's stride	shape, as in ACP_BLOCKS
 *	COPY_SET, COPY_ADD	bytes	0		operand		flag's address
 *	atomics			0	operand		operand		0
 *
 * DATA has them in the same places, but for STRIDED: there b is the position.
 */
struct acp_msg {
	union {
		struct {
			u8  type, flags, op, status;
			u16 depends, upto;
		};
		u64 word;	/* all of these at once */
	};
	u32 origin;
	u32 length;
	u64 ticket;
	u64 dst, src, size, a, b, c;
};

/* Why a frame was refused; each is a counter. */
enum acp_frame_error {
	ACP_FRAME_OK = 0,
	ACP_FRAME_BAD_LEN,
	ACP_FRAME_BAD_VERSION,
	ACP_FRAME_BAD_TYPE,
	ACP_FRAME_BAD_FLAGS,
};

/* Bytes of seal and code. */
static inline u32 acp_frame_sealed(u8 flags)
{
	return flags & ACP_FRAME_AEAD ? ACP_FRAME_SEALED : 0;
}

/* Write all but the tag. */
static inline void acp_frame_encode(struct acp_frame_hdr *h, const struct acp_frame *f)
{
	h->version = ACP_FRAME_VERSION;
	h->type = f->type;
	h->flags = f->flags;
	h->color = f->color;
	h->job = cpu_to_be32(f->job);
	h->generation = cpu_to_be16(f->generation);
	h->length = cpu_to_be16(f->length + acp_frame_sealed(f->flags));
	h->node = cpu_to_be32(f->node);
	h->epoch_src = cpu_to_be32(f->epoch_src);
	h->epoch_dst = cpu_to_be32(f->epoch_dst);
	h->seq = cpu_to_be64(f->seq);
	h->ack = cpu_to_be64(f->ack);
}

/*
 * Decode and check a header of a datagram of "len" bytes, "h" being its
 * first 48 (the caller makes sure of those).  Looks at nothing behind it,
 * and not at the tag.
 */
enum acp_frame_error acp_frame_decode(struct acp_frame *f, const struct acp_frame_hdr *h, u32 len);

/*
 * Where the tagged part of a decoded frame ends: the tag covers all from
 * behind itself to there.  In a BULK frame, the payload begins there; with
 * AEAD, the seal.
 */
static inline u32 acp_frame_tagged(const struct acp_frame *f)
{
	u32 body = f->length;

	if (f->flags & (ACP_FRAME_BULK | ACP_FRAME_AEAD))
		body = f->flags & ACP_FRAME_AEAD ? 0 : sizeof(struct acp_msg_data) +
		       (f->flags & ACP_FRAME_MORE ? sizeof(struct acp_msg_more) : 0) +
		       (f->flags & ACP_FRAME_CRC ? sizeof(struct acp_frame_crc) : 0);
	return sizeof(struct acp_frame_hdr) + body;
}

/* Where the body of a decoded frame begins. */
static inline u32 acp_frame_body(const struct acp_frame *f)
{
	return sizeof(struct acp_frame_hdr) +
	       (f->flags & ACP_FRAME_AEAD ? sizeof(struct acp_frame_seal) : 0);
}

/* All of a frame: bytes of its datagram's payload. */
static inline u32 acp_frame_size(const struct acp_frame *f)
{
	return sizeof(struct acp_frame_hdr) + f->length + acp_frame_sealed(f->flags);
}

/* How much of the body is authentic once tag and code are right: but for a BULK frame, all. */
static inline u32 acp_frame_covered(const struct acp_frame *f)
{
	if (f->flags & ACP_FRAME_AEAD)
		return f->length;
	return acp_frame_tagged(f) - sizeof(struct acp_frame_hdr);
}

/* Is the seal of a frame with ACP_FRAME_AEAD, which begins at "frame", as it must be? */
bool acp_frame_seal(const void *frame);

/*
 * The checksum in a frame with ACP_FRAME_CRC, which begins at "frame".
 * False: what must be 0 is not.
 */
bool acp_frame_crc(const void *frame, u32 *crc);

/* Write what the key of frames "from" a node "to" another is derived from. */
void acp_frame_key(struct acp_frame_key *k, u32 job, u16 generation, u32 from, u32 to, u16 color);

/* Numbers that a CMD has behind its addresses. */
static inline u32 acp_op_args(u8 op)
{
	if (op >= ACP_OP_STRIDED)
		return 3;
	return op == ACP_OP_CAS4 || op == ACP_OP_CAS8 ? 2 : 1;
}

/* Does it change a flag when a copy is done? */
static inline bool acp_op_signals(u8 op)
{
	return op == ACP_OP_COPY_SET || op == ACP_OP_COPY_ADD;
}

/* Bytes of a DATA message before its payload (or checksum), or of all of another one. */
static inline u32 acp_msg_head(const struct acp_msg *m)
{
	switch (m->type) {
	case ACP_MSG_DATA:
		return sizeof(struct acp_msg_data) + (m->op ? sizeof(struct acp_msg_more) : 0);
	case ACP_MSG_CMD:
		return sizeof(struct acp_msg_cmd) + acp_op_args(m->op) * sizeof(__be64);
	default:
		return sizeof(struct acp_msg_hdr);
	}
}

/* Size of a message on the wire, padding included, a checksum not. */
static inline u32 acp_msg_size(const struct acp_msg *m)
{
	return acp_msg_head(m) + ((m->length + 7) & ~7u);
}

/* How many messages it counts as. */
static inline u32 acp_msg_count(const struct acp_msg *m)
{
	return m->type == ACP_MSG_WORDS ? m->length / sizeof(struct acp_msg_word) : 1;
}

/* Write the fixed part of a message; the caller adds payload and padding. */
void acp_msg_encode(void *p, const struct acp_msg *m);

/*
 * Decode the message at "p", "room" bytes before the end of the frame.
 * "have" (<= room) are readable: at least the fixed part must be.
 * Returns its size on the wire, or 0 if it is malformed.
 */
u32 acp_msg_decode(struct acp_msg *m, const void *p, u32 room, u32 have);

#endif /* ACP_FRAME_H */
