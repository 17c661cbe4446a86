/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The wire format, and the only code that encodes and decodes it. PROTOCOL.md specifies it.
 *
 * A frame is one UDP datagram: a header of 48 bytes and a body that depends on its type:
 *	DATA	one or more messages, covered by one sequence number;
 *	ACK	the full bitmap of frames received beyond "ack";
 *	HELLO	the sender's settings of the job, to open a flow.
 * A message is a header of 24 bytes and a body that depends on its type, padded to 8.
 *
 * In a job with integrity aead, the body is encrypted: a nonce block precedes it, an authentication
 * tag follows it.
 *
 * All fields are big-endian and of fixed width. All lengths are validated here, so users of decoded
 * frames and messages need not check sizes again.
 */
#ifndef ACP_FRAME_H
#define ACP_FRAME_H

#include "port.h"
#include "acp_abi.h"

#define ACP_FRAME_VERSION	1
#define ACP_FRAME_EDITION	8	/* of messages and tags; part of the digest of a HELLO */
#define ACP_FRAME_WINDOW	512	/* frames that a sender may have beyond "ack" */
#define ACP_FRAME_SHORT		128	/* payloads up to this share frames */
#define ACP_FRAME_MSGS		64	/* messages in one frame, at most */

enum acp_frame_type {
	ACP_FRAME_DATA	= 1,
	ACP_FRAME_ACK	= 2,
	ACP_FRAME_HELLO	= 3,
};

/* acp_frame_hdr.flags */
#define ACP_FRAME_FENCE	1	/* DATA: apply after all earlier frames */
#define ACP_FRAME_BULK	2	/* DATA: one message with a long payload; see acp_frame_tagged() */
#define ACP_FRAME_CRC	4	/* BULK: a struct acp_frame_crc precedes the payload */
#define ACP_FRAME_ASK	8	/* HELLO: the sender requests an answer */
#define ACP_FRAME_MORE	8	/* BULK: the message has a struct acp_msg_more */
#define ACP_FRAME_LAZY	16	/* DATA: the acknowledgement may be delayed, nothing waits for it */
#define ACP_FRAME_AEAD	32	/* the body is encrypted: never with BULK */
/*
 * DATA, ACK: a counter, modulo 4, of acknowledgements that report frames marked by the network
 * (ECN) since the previous acknowledgement. Two bits; MARK counts one.
 */
#define ACP_FRAME_MARKS	192
#define ACP_FRAME_MARK	64

struct acp_frame_hdr {
	__be64 tag;		/* SipHash-2-4 of what follows, see acp_frame_tagged(), nh.h */
	__u8   version;
	__u8   type;		/* enum acp_frame_type */
	__u8   flags;
	__u8   color;		/* selects the addresses of sender and receiver */
	__be32 job;
	__be16 generation;	/* of the job */
	__be16 length;		/* bytes after this header */
	__be32 node;		/* the sender */
	__be32 epoch_src;	/* random, one per incarnation of the sender's flow */
	__be32 epoch_dst;	/* as received from the receiver; 0 in a first HELLO */
	__be64 seq;		/* DATA: number from 1; HELLO with ASK: a time, or 0; otherwise 0 */
	__be64 ack;		/* all earlier frames were applied; HELLO: "seq" that it answers */
};

static_assert(sizeof(struct acp_frame_hdr) == 48);

/* ACK body: bit i of word w means that frame ack + 1 + 64 w + i was applied. */
struct acp_frame_ack {
	__be64 map[ACP_FRAME_WINDOW / 64];
};

/* HELLO body: peers whose bodies differ do not belong to the same job. */
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
#define ACP_FRAME_AEAD_TAG	16	/* authentication tag of the cipher, after the body */

/* With ACP_FRAME_AEAD, between header and body. AEGIS-128 uses all of it as the nonce. */
struct acp_frame_nonce {
	__u8   nonce[ACP_FRAME_NONCE];
	__be32 cipher;		/* ACP_CIPHER_ */
};

/* If neither of these two is set, the cipher is ChaCha20-Poly1305. A HELLO has neither. */
#define ACP_CIPHER_AES		1	/* AES-256-GCM */
#define ACP_CIPHER_AEGIS		4	/* AEGIS-128 */
/* The sender has CPU instructions for that cipher and prefers to receive frames encrypted by it. */
#define ACP_CIPHER_WANTS		2	/* AES-256-GCM */
#define ACP_CIPHER_WANTS_AEGIS	8

#define ACP_CIPHER_BY	(ACP_CIPHER_AES | ACP_CIPHER_AEGIS)
#define ACP_CIPHER_WISHES	(ACP_CIPHER_WANTS | ACP_CIPHER_WANTS_AEGIS)

static_assert(sizeof(struct acp_frame_nonce) == 16);

#define ACP_FRAME_ENCRYPTED (sizeof(struct acp_frame_nonce) + ACP_FRAME_AEAD_TAG)

/*
 * Input of key derivation: the key of frames is the BLAKE2s of it, keyed with the key of the job.
 */
struct acp_frame_key {
	char   label[8];	/* "acp-aead"; "acp-aes "; "acpaegis" */
	__be32 job;
	__be16 generation;
	__be16 color;
	__be32 from, to;	/* nodes */
};

static_assert(sizeof(struct acp_frame_key) == 24);

enum acp_msg_type {
	ACP_MSG_DATA	= 1,	/* write the payload to dst */
	ACP_MSG_CMD	= 2,	/* execute it on the node of src */
	ACP_MSG_DONE	= 3,	/* command "ticket" of rank "origin" ended with "status" */
	ACP_MSG_BARRIER	= 4,	/* ticket: number of the barrier; origin: sending node */
	ACP_MSG_PING	= 5,	/* return it; ticket: the sender's; origin: sending node */
	ACP_MSG_WORDS	= 6,	/* DATA of 8 bytes each for ticket, ticket + 1, ... */
	ACP_MSG_ASK	= 7,	/* SEND: may its bytes be sent?  Answered by GRANT, or DONE */
	ACP_MSG_GRANT	= 8,	/* yes, to this entry; with FAIL: the command has gone */
};

/* acp_msg_hdr.flags */
#define ACP_MSG_LAST	1	/* DATA: the last piece; the status of the command is known */
#define ACP_MSG_FAIL	2	/* DATA, CMD, ASK, GRANT: it failed at the sender, with "status" */
/*
 * CMD: its DATA must not overtake earlier frames.  ASK, DATA of a SEND, or DATA that failed: if it
 * finds no room, it is tried again, and those sent behind it must find none.
 */
#define ACP_MSG_ORDERED	4
#define ACP_MSG_RELEASE	8	/* BARRIER: down the tree; without: arrival, up the tree */
/* ASK, DATA with ORDERED: it finds no room if the one command on which it depends has found none */
#define ACP_MSG_BEHIND	8
#define ACP_MSG_ABORT	16	/* BARRIER: the job has ended */
/*
 * BARRIER: no further barrier will complete. ticket, lower half: the node, counted from 1, whose
 * settings of the job differ, or 0; upper half: the rank, counted from 1, that left, or 0.
 */
#define ACP_MSG_BROKEN	32
#define ACP_MSG_ANSWER	64	/* PING: it is returned */
#define ACP_MSG_GRANTED	16	/* DATA of a SEND that was granted: its tag is the entry */

#define ACP_PING_MAX	128	/* most bytes of its payload, which shares frames */

struct acp_msg_hdr {
	union {
		struct {
			__u8   type;	/* enum acp_msg_type */
			__u8   flags;
			__u8   op;	/* CMD: enum acp_op; DATA: see acp_msg_more, WORDS; or 0 */
			__u8   status;	/* DONE, and with FAIL: enum acp_status; otherwise 0 */
			/*
			 * DATA, CMD behind a fence: it fails if one of the origin's commands from
			 * ticket - depends to ticket - upto failed; otherwise 0.  With
			 * BEHIND, both are the same
			 */
			__be16 depends, upto;
		};
		__be64 word;	/* all of the above */
	};
	__be32 origin;		/* rank that issued the command */
	__be32 length;		/* DATA, PING, WORDS: bytes of payload; otherwise 0 */
	__be64 ticket;		/* the command, at its origin */
};

/*
 * DATA with an op: a piece of a strided copy; or of an indirect one or of a message, whose dst is
 * that of the pointer, of the chain or of the mailbox; or numbers that are combined with those at
 * dst; or what to do when a copy is complete in memory (with LAST).
 */
struct acp_msg_more {
	union {
		struct {			/* ACP_OP_STRIDED */
			__be64 stride;		/* block i begins at dst + i * stride */
			__be64 desc;		/* descriptor, as in ACP_BLOCKS */
			__be64 position;	/* of the payload in the concatenated blocks */
		};
		struct {			/* COPY_SET, COPY_ADD, ACCUMULATE, _SET, _ADD */
			__be64 flag;		/* its global address; ACCUMULATE: 0 */
			__be64 operand;		/* ACCUMULATE: 0 */
			__be64 numbers;		/* as in ACP_REDUCE; COPY_SET, COPY_ADD: 0 */
		};
		struct {			/* ACP_OP_INDIRECT, APPEND, SEND, SCATTER */
			__be64 total;		/* bytes of the whole copy */
			__be64 offset;		/* of the payload in it */
			__be64 tag;		/* SEND; otherwise 0 */
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
	__be64 dst, src;	/* as in struct acp_sqe, as are ... */
	/* COPY: size; op >= STRIDED: size, a, b; CAS4, CAS8: a, b; others: a */
	__be64 args[];
};

/*
 * The payload of WORDS is two or more of these. Each counts as a message of the frame. With SEND,
 * they have tags, dst is in a struct acp_msg_data, as in DATA, and flags and depends are those of
 * the first one; if it has ORDERED, each other one is BEHIND the one before it.
 */
struct acp_msg_word {
	union {
		__be64 dst;
		__be64 tag;
	};
	__u8   data[8];
};

/* ASK: size, tag; its op is SEND.  GRANT: entry. */
struct acp_msg_ask {
	struct acp_msg_hdr h;
	__be64 dst;		/* the mailbox */
	__be64 args[];
};

/*
 * The most frequent content of a frame: one DATA of 8 bytes that is all of its command and depends
 * on nothing. It can be encoded and decoded in fewer steps; on the wire it is an ordinary DATA.
 */
struct acp_msg_lone {
	struct acp_msg_hdr h;	/* word: ACP_MSG_LONE; length: 8 */
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
static_assert(sizeof(struct acp_msg_ask) == 32);

/* A header in host order. */
struct acp_frame {
	u8  type, flags, color;
	u16 generation;
	u32 job, node;
	u32 epoch_src, epoch_dst;
	u64 seq, ack;
	u32 length;		/* of the body, without nonce block and authentication tag */
};

/*
 * A message in host order. Fields that are not on the wire are 0. The payload stays in the frame.
 *
 *	op of a command		size	a		b		c
 *	COPY			bytes	0		0		0
 *	STRIDED			bytes	dst's stride	src's stride	blocks, as in ACP_BLOCKS
 *	COPY_SET, COPY_ADD	bytes	0		operand		flag's address
 *	INDIRECT, APPEND,
 *	SCATTER, GATHER		bytes	0		0		0
 *	SEND			bytes	0		tag		0
 *	ACCUMULATE, _SET, _ADD	bytes	as ACP_REDUCE	operand or 0	flag's address or 0
 *	atomics			0	operand		operand		0
 *
 * DATA uses the same fields, except that b is the position if it has STRIDED, INDIRECT, APPEND,
 * SEND or SCATTER; with the latter four, c is the bytes of the whole copy, with SEND, a is the tag.
 * ASK has dst, size and b of its SEND, GRANT has dst, and the entry in a.
 */
struct acp_msg {
	union {
		struct {
			u8  type, flags, op, status;
			u16 depends, upto;
		};
		u64 word;	/* all of the above */
	};
	u32 origin;
	u32 length;
	u64 ticket;
	u64 dst, src, size, a, b, c;
};

/* Why a frame was refused. Each has a counter. */
enum acp_frame_error {
	ACP_FRAME_OK = 0,
	ACP_FRAME_BAD_LEN,
	ACP_FRAME_BAD_VERSION,
	ACP_FRAME_BAD_TYPE,
	ACP_FRAME_BAD_FLAGS,
};

/* Bytes of nonce block and authentication tag. */
static inline u32 acp_frame_encrypted(u8 flags)
{
	return flags & ACP_FRAME_AEAD ? ACP_FRAME_ENCRYPTED : 0;
}

/**
 * acp_frame_encode() - write the header of a frame, except the tag
 * @h: header to write
 * @f: header in host order
 *
 * Context: Any context.
 */
static inline void acp_frame_encode(struct acp_frame_hdr *h, const struct acp_frame *f)
{
	h->version = ACP_FRAME_VERSION;
	h->type = f->type;
	h->flags = f->flags;
	h->color = f->color;
	h->job = cpu_to_be32(f->job);
	h->generation = cpu_to_be16(f->generation);
	h->length = cpu_to_be16(f->length + acp_frame_encrypted(f->flags));
	h->node = cpu_to_be32(f->node);
	h->epoch_src = cpu_to_be32(f->epoch_src);
	h->epoch_dst = cpu_to_be32(f->epoch_dst);
	h->seq = cpu_to_be64(f->seq);
	h->ack = cpu_to_be64(f->ack);
}

/**
 * acp_frame_decode() - decode and validate the header of a datagram
 * @f: header in host order; valid only if ACP_FRAME_OK is returned
 * @h: the first 48 bytes of the datagram, which must be readable
 * @len: bytes of the datagram
 *
 * Does not read the body and does not check the tag.
 *
 * Context: Any context.
 * Return: ACP_FRAME_OK, or the reason to drop the datagram.
 */
enum acp_frame_error acp_frame_decode(struct acp_frame *f, const struct acp_frame_hdr *h, u32 len);

/**
 * acp_frame_tagged() - get the end of the part of a frame that its tag covers directly
 * @f: decoded header
 *
 * The part begins after the tag. In a BULK frame it ends at the payload, of which the tag covers a
 * hash (nh.h) or, depending on the integrity of the job, nothing. With AEAD it ends at the nonce
 * block.
 *
 * Context: Any context.
 * Return: Offset in the frame.
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

/**
 * acp_frame_body() - get the start of the body of a frame
 * @f: decoded header
 *
 * Context: Any context.
 * Return: Offset in the frame.
 */
static inline u32 acp_frame_body(const struct acp_frame *f)
{
	return sizeof(struct acp_frame_hdr) +
	       (f->flags & ACP_FRAME_AEAD ? sizeof(struct acp_frame_nonce) : 0);
}

/**
 * acp_frame_size() - get the size of a frame
 * @f: decoded header
 *
 * Context: Any context.
 * Return: Bytes of the payload of its datagram.
 */
static inline u32 acp_frame_size(const struct acp_frame *f)
{
	return sizeof(struct acp_frame_hdr) + f->length + acp_frame_encrypted(f->flags);
}

/**
 * acp_frame_covered() - get the part of the body that is authentic after verification
 * @f: decoded header
 *
 * Context: Any context.
 * Return: Bytes from the start of the body: all of it, in a BULK frame those before the payload.
 */
static inline u32 acp_frame_covered(const struct acp_frame *f)
{
	if (f->flags & ACP_FRAME_AEAD)
		return f->length;
	return acp_frame_tagged(f) - sizeof(struct acp_frame_hdr);
}

/**
 * acp_frame_nonce() - read and validate the nonce block of a frame
 * @frame: start of a frame with ACP_FRAME_AEAD, readable up to its body
 * @cipher: set to the ACP_CIPHER_ flags of the nonce block
 *
 * Context: Any context.
 * Return: True if the flags are valid.
 */
bool acp_frame_nonce(const void *frame, u32 *cipher);

/**
 * acp_frame_crc() - read and validate the checksum of a frame
 * @frame: start of a frame with ACP_FRAME_CRC, readable up to its payload
 * @crc: set to the checksum
 *
 * Context: Any context.
 * Return: True if the reserved field is zero.
 */
bool acp_frame_crc(const void *frame, u32 *crc);

/**
 * acp_frame_key() - fill the input of key derivation
 * @k: input to fill
 * @cipher: ACP_CIPHER_AES, ACP_CIPHER_AEGIS or 0; other flags are ignored
 * @job: id of the job
 * @generation: generation of the job
 * @from: node that encrypts
 * @to: node that decrypts
 * @color: color of the flow
 *
 * Context: Any context.
 */
void acp_frame_key(struct acp_frame_key *k, u32 cipher, u32 job, u16 generation, u32 from, u32 to,
		   u16 color);

/* Operands that a CMD has after its addresses. */
static inline u32 acp_op_args(u8 op)
{
	if (op >= ACP_OP_STRIDED)
		return 3;
	return op == ACP_OP_CAS4 || op == ACP_OP_CAS8 ? 2 : 1;
}

/**
 * acp_op_accumulates() - test whether an operation combines numbers where its destination is
 * @op: operation, any value
 *
 * Context: Any context.
 * Return: True for ACP_OP_ACCUMULATE, ACP_OP_ACCUMULATE_SET and ACP_OP_ACCUMULATE_ADD.
 */
static inline bool acp_op_accumulates(u8 op)
{
	return op >= ACP_OP_ACCUMULATE && op <= ACP_OP_ACCUMULATE_ADD;
}

/**
 * acp_op_travels() - test whether a CMD may contain an operation
 * @op: operation, any value
 *
 * Context: Any context.
 * Return: True for all operations except those that only their own node executes: ACP_OP_WAIT and
 * ACP_OP_REDUCE.
 */
static inline bool acp_op_travels(u8 op)
{
	return (op >= ACP_OP_COPY && op <= ACP_OP_GATHER) || acp_op_accumulates(op);
}

/**
 * acp_op_signals() - test whether an operation changes a flag when its copy is complete
 * @op: operation, any value
 *
 * Context: Any context.
 * Return: True for ACP_OP_COPY_SET, COPY_ADD, ACCUMULATE_SET and ACCUMULATE_ADD.
 */
static inline bool acp_op_signals(u8 op)
{
	return op == ACP_OP_COPY_SET || op == ACP_OP_COPY_ADD || op == ACP_OP_ACCUMULATE_SET ||
	       op == ACP_OP_ACCUMULATE_ADD;
}

/**
 * acp_op_needs_one_node() - test whether some memory of a command must be on one node
 * @op: operation, any value
 *
 * Context: Any context.
 * Return: True if acp_job_check_nodes() must be asked.
 */
static inline bool acp_op_needs_one_node(u8 op)
{
	return acp_op_signals(op) || op == ACP_OP_REDUCE;
}

/**
 * acp_op_indirect() - test whether the receiver decides where the data lands
 * @op: operation, any value
 *
 * Context: Any context.
 * Return: True for ACP_OP_INDIRECT, ACP_OP_APPEND, ACP_OP_SEND and ACP_OP_SCATTER.
 */
static inline bool acp_op_indirect(u8 op)
{
	return op >= ACP_OP_INDIRECT && op <= ACP_OP_SCATTER;
}

/**
 * acp_op_chain() - test whether an operation copies along a chain of descriptors
 * @op: operation, any value
 *
 * Context: Any context.
 * Return: True for ACP_OP_SCATTER and ACP_OP_GATHER.
 */
static inline bool acp_op_chain(u8 op)
{
	return op == ACP_OP_SCATTER || op == ACP_OP_GATHER;
}

/* Can a message of this type be one to a mailbox that keeps its turn? */
static inline bool acp_msg_takes_turns(const struct acp_msg *m)
{
	return m->type == ACP_MSG_DATA || m->type == ACP_MSG_WORDS || m->type == ACP_MSG_ASK;
}

/**
 * acp_msg_in_turn() - test whether a message is for a mailbox, and tried again if that is full
 * @m: message
 *
 * Context: Any context.
 * Return: True for DATA, WORDS and ASK with ACP_MSG_ORDERED.
 */
static inline bool acp_msg_in_turn(const struct acp_msg *m)
{
	return (m->flags & ACP_MSG_ORDERED) && acp_msg_takes_turns(m);
}

/**
 * acp_msg_is_behind() - test whether a message must not overtake an older one that finds no room
 * @m: message
 *
 * Context: Any context.
 * Return: True for DATA, WORDS and ASK with ACP_MSG_BEHIND.
 */
static inline bool acp_msg_is_behind(const struct acp_msg *m)
{
	return (m->flags & ACP_MSG_BEHIND) && acp_msg_takes_turns(m);
}

/**
 * acp_op_takes_room() - test whether an operation ends with ACP_ST_AGAIN if there is no room
 * @op: operation, any value
 *
 * Context: Any context.
 * Return: True for ACP_OP_APPEND and ACP_OP_SEND.
 */
static inline bool acp_op_takes_room(u8 op)
{
	return op == ACP_OP_APPEND || op == ACP_OP_SEND;
}

/**
 * acp_msg_in_run() - test whether a piece can be processed together with those that follow it
 * @m: message
 * @fence: its frame has ACP_FRAME_FENCE
 *
 * These are pieces of a copy that depends on nothing, or of a message, whose pieces are fenced, but
 * not the last piece.  The first piece of a message behind another one is processed alone.
 *
 * Context: Any context.
 * Return: True if the others differ from it in dst or, if it has an operation, in the position.
 */
static inline bool acp_msg_in_run(const struct acp_msg *m, bool fence)
{
	if (m->type != ACP_MSG_DATA || (m->flags & (ACP_MSG_LAST | ACP_MSG_FAIL)) ||
	    fence != (m->op == ACP_OP_SEND))
		return false;
	if (acp_msg_is_behind(m))
		return m->b;
	return !m->depends && (!m->op || (acp_op_indirect(m->op) && m->op != ACP_OP_SCATTER));
}

/**
 * acp_msg_head() - get the size of the fixed part of a message
 * @m: message; only type and op are read
 *
 * Context: Any context.
 * Return: Bytes before the payload, or before the checksum if there is one.
 */
static inline u32 acp_msg_head(const struct acp_msg *m)
{
	switch (m->type) {
	case ACP_MSG_DATA:
		return sizeof(struct acp_msg_data) + (m->op ? sizeof(struct acp_msg_more) : 0);
	case ACP_MSG_CMD:
		return sizeof(struct acp_msg_cmd) + acp_op_args(m->op) * sizeof(__be64);
	case ACP_MSG_WORDS:
		return m->op ? sizeof(struct acp_msg_data) : sizeof(struct acp_msg_hdr);
	case ACP_MSG_ASK:
		return sizeof(struct acp_msg_ask) + 2 * sizeof(__be64);
	case ACP_MSG_GRANT:
		return sizeof(struct acp_msg_ask) + sizeof(__be64);
	default:
		return sizeof(struct acp_msg_hdr);
	}
}

/**
 * acp_msg_size() - get the size of a message on the wire
 * @m: message; only type, op and length are read
 *
 * Context: Any context.
 * Return: Bytes including padding, without a checksum.
 */
static inline u32 acp_msg_size(const struct acp_msg *m)
{
	return acp_msg_head(m) + ((m->length + 7) & ~7u);
}

/**
 * acp_msg_count() - get the number of messages that a message counts as
 * @m: message; only type and length are read
 *
 * Context: Any context.
 * Return: Number of words for WORDS, otherwise 1.
 */
static inline u32 acp_msg_count(const struct acp_msg *m)
{
	return m->type == ACP_MSG_WORDS ? m->length / sizeof(struct acp_msg_word) : 1;
}

/**
 * acp_msg_encode() - write the fixed part of a message
 * @p: where to write acp_msg_head() bytes
 * @m: message; the caller writes payload and padding
 *
 * Context: Any context.
 */
void acp_msg_encode(void *p, const struct acp_msg *m);

/**
 * acp_msg_decode() - decode and validate a message
 * @m: message to fill; valid only if the result is not 0
 * @p: start of the message
 * @room: bytes from there to the end of the frame
 * @have: readable bytes, at most @room; a message whose fixed part is longer is malformed
 *
 * PING and WORDS must be readable completely, because only DATA may have a payload that the tag of
 * the frame does not cover.
 *
 * Context: Any context.
 * Return: Size on the wire, or 0 if the message is malformed.
 */
u32 acp_msg_decode(struct acp_msg *m, const void *p, u32 room, u32 have);

#endif /* ACP_FRAME_H */
