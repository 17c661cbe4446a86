/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note OR MIT */
/*
 * Commands: the entries that a process writes to a ring of /dev/acp (acp_abi.h), what they read and
 * write in the memory of ranks, and how they end.
 */
#ifndef ACP_CMD_ABI_H
#define ACP_CMD_ABI_H

#include <linux/types.h>

/* Operations.  src is the word operated on, dst receives its former value. */
enum acp_op {
	ACP_OP_COPY	= 1,	/* dst := src, size bytes; addresses are not checked if size is 0 */
	ACP_OP_CAS4	= 2,	/* if src == a then src := b */
	ACP_OP_CAS8	= 3,
	ACP_OP_SWAP4	= 4,	/* src := a */
	ACP_OP_SWAP8	= 5,
	ACP_OP_ADD4	= 6,
	ACP_OP_ADD8	= 7,
	ACP_OP_XOR4	= 8,
	ACP_OP_XOR8	= 9,
	ACP_OP_OR4	= 10,
	ACP_OP_OR8	= 11,
	ACP_OP_AND4	= 12,
	ACP_OP_AND8	= 13,
	ACP_OP_STRIDED	= 14,	/* blocks of dst := blocks of src, see ACP_BLOCKS */
	ACP_OP_COPY_SET	= 15,	/* a copy, then the 8 bytes at address a := b */
	ACP_OP_COPY_ADD	= 16,	/* a copy, then the 8 bytes at address a += b */
	ACP_OP_INDIRECT	= 17,	/* a copy to the address in the word at dst */
	ACP_OP_APPEND	= 18,	/* a copy to the end of a buffer, whose descriptor is at dst */
	ACP_OP_SEND	= 19,	/* a message of size bytes into the mailbox at dst; b: its tag */
	ACP_OP_SCATTER	= 20,	/* a copy along the chain of descriptors that begins at dst */
	ACP_OP_GATHER	= 21,	/* a copy of what the chain that begins at src describes */
	ACP_OP_WAIT	= 22,	/* nothing; completes when the 8 bytes at src have reached a */
	ACP_OP_REDUCE	= 23,	/* dst[i] := dst[i] op src[i], for all numbers in size bytes */
	ACP_OP_ACCUMULATE = 24,	/* the same on any nodes, each number atomically */
	ACP_OP_ACCUMULATE_SET = 25,	/* ... then the 8 bytes at address a := b */
	ACP_OP_ACCUMULATE_ADD = 26,	/* ... then the 8 bytes at address a += b */
	ACP_OP_END
};

/*
 * ACP_OP_STRIDED: block i < count is copied from src + i * b to dst + i * a.  a
 * and b are signed, and blocks must not overlap.  size is ACP_BLOCKS(bytes of a
 * block, count); if either is 0, nothing is copied.
 *
 * ACP_OP_COPY_SET, COPY_ADD: address a is on dst's node, aligned, and permits
 * atomics.  Its word changes, atomically, when the whole copy is in memory; it
 * does not change if a part of the copy failed.
 *
 * ACP_OP_INDIRECT: dst is aligned to 8.  Its word is read once, when the first
 * bytes have arrived at its node, and must be the global address of memory of
 * the same rank, which is written.  a and b are 0.
 *
 * ACP_OP_APPEND: dst is the address of two words, aligned, that permits atomics:
 * the next free address of a buffer of the same rank, and the address of its
 * end.  The first word is advanced by size, rounded up to a multiple of 8, in
 * one step; the bytes are written to where it was.  If they do not fit, nothing
 * is written, and the command ends with ACP_ST_AGAIN; with ACP_SQE_RETRY only if
 * there is still no room when the time-out of the job (acp_join.timeout_ms) has
 * passed.  Until then it is tried again after 50 us, 100 us, and so on up to 12.8
 * ms, and a ns per byte more, since each try sends all bytes; but only when no
 * older command of the queue with RETRY waits for room at the same dst.
 *
 * ACP_OP_WAIT: src is the address of a word in memory of the caller's own rank,
 * aligned to 8.  The command ends when the word, a counter that only grows, is a
 * or has passed it: (s64)(word - a) >= 0.  It looks at the word when all earlier
 * commands of the queue are complete, and then after each write that the kernel
 * does or is told of (struct acp_watch).  It has no time-out.
 * dst, size and b name up to six ranks that the caller expects to write to the word:
 * ACP_WAIT_RANKS(r, s), with r or s -1 for none.  If the word is not reached, the command ends
 * with ACP_ST_RANK when one of them has left, and with ACP_ST_TIMEOUT, ACP_ST_PEER or
 * ACP_ST_ROUTE when its node is lost.  While the command looks at the word, the nodes of these
 * ranks are checked as if commands for them were under way, on the color of src.  A node that
 * was lost before the command was taken from the ring, and one that has not started yet, gets
 * the same time to answer as for other commands; one that is lost between these moments counts
 * as lost, even if it is back, since what it sent may be lost.  ACP_ST_NOMEM: there is no flow
 * to one of the nodes, and none can be made.
 * The command ends with ACP_ST_ORDER if the word is revoked: ACP_WORD_REVOKED_FOR(word, a).
 * ACP_ST_ACCESS: the word is memory of another rank.  ACP_ST_RANK also: a name is no rank.
 *
 * ACP_OP_REDUCE: a is ACP_REDUCE(operation, type), b is 0.  Both addresses and size are multiples
 * of the size of the type.  Each number at dst is combined with that of src: the other one is the
 * second operand.  A number of dst that others write meanwhile has any value.  If the command
 * fails, some numbers may have been combined.  The result of float and double is that of IEEE
 * 754, rounded to nearest, ties to even, including subnormal numbers; minimum and maximum are
 * those of IEEE 754-2019 (minimum, maximum: -0 is less than 0).  If an operand is a NaN, the
 * result is the first one that is, made quiet; invalid operations give the NaN with sign and
 * quiet bit.
 *
 * ACP_OP_ACCUMULATE: as ACP_OP_REDUCE, but dst and src may be memory of any nodes, as those of a
 * copy, and size is ACP_NUMBERS(operation, type, count).  The node of dst combines the numbers.
 * The memory at dst permits atomics.  Each number changes once and atomically with respect to all
 * atomics on the same 4 or 8 bytes, of this and of all other operations, and to stores of them as a
 * whole; not to ACP_OP_REDUCE.  The vector is not atomic as a whole.  ACCUMULATE: a and b are 0;
 * ACCUMULATE_SET, ACCUMULATE_ADD: as COPY_SET, COPY_ADD.
 */
#define ACP_WAIT_RANKS(r, s)	((__u64)((__u32)(s) + 1u) << 32 | ((__u32)(r) + 1u))
#define ACP_WORD_REVOKED	(1ULL << 62)	/* what a revoked word was set to */
#define ACP_WORD_REVOKED_FOR(word, a)	\
	((__s64)((__u64)(word) - (__u64)(a)) >= (__s64)(ACP_WORD_REVOKED / 2))

enum acp_reduce_op {
	ACP_REDUCE_SUM	= 0,
	ACP_REDUCE_PROD	= 1,
	ACP_REDUCE_MIN	= 2,
	ACP_REDUCE_MAX	= 3,
	ACP_REDUCE_AND	= 4,	/* AND, OR, XOR: of integers only */
	ACP_REDUCE_OR	= 5,
	ACP_REDUCE_XOR	= 6,
	ACP_REDUCE_REPLACE = 7,	/* the second operand */
	ACP_REDUCE_OP_END
};

enum acp_reduce_type {
	ACP_REDUCE_S32	= 0,
	ACP_REDUCE_S64	= 1,
	ACP_REDUCE_U32	= 2,
	ACP_REDUCE_U64	= 3,
	ACP_REDUCE_F32	= 4,
	ACP_REDUCE_F64	= 5,
	ACP_REDUCE_TYPE_END
};

#define ACP_REDUCE(op, type)	((__u64)(type) << 8 | (op))
#define ACP_NUMBERS(op, type, count)	((__u64)(count) << 16 | ACP_REDUCE(op, type))

#define ACP_BLOCKS(bytes, count)	((__u64)(count) << 32 | (__u32)(bytes))

/*
 * ACP_OP_SCATTER, ACP_OP_GATHER: dst (of GATHER: src) is the address of a descriptor, aligned to 8,
 * in memory that permits reading.  The bytes of the copy are those of block 0 of the first
 * descriptor, then of block 1, and so on, then those of the next descriptor, until there are size
 * bytes.  Descriptors and blocks are memory of one rank, and all blocks of a descriptor are in one
 * region that permits it.  Each descriptor is read once: for SCATTER, when the first bytes have
 * arrived at its node; for GATHER, when the copy starts at its node.  Nothing is copied unless all
 * of them are valid; later descriptors are not read.  The copy ends with ACP_ST_CHAIN if
 * ACP_CHAIN_MAX descriptors have fewer bytes than size, or the last one is reached, or one for the
 * second time; or if one has no bytes, blocks that overlap, other flags, or a reserved field that
 * is not 0; and with ACP_ST_ACCESS if it has not the flag of the copy.  a and b are 0.
 */
struct acp_descriptor {
	__u64 address;		/* global address of block 0 */
	__s64 stride;		/* block i begins at address + i * stride */
	__u32 block;		/* bytes of a block, not 0 */
	__u32 count;		/* number of blocks, not 0 */
	__u64 next;		/* global address of the next descriptor, aligned to 8; 0: none */
	__u32 flags;		/* ACP_CHAIN_ */
	__u32 reserved;		/* 0 */
};

#define ACP_CHAIN_SCATTER	1u	/* ACP_OP_SCATTER may write to the blocks */
#define ACP_CHAIN_GATHER	2u	/* ACP_OP_GATHER may read them */
#define ACP_CHAIN_FLAGS		(ACP_CHAIN_SCATTER | ACP_CHAIN_GATHER)
#define ACP_CHAIN_MAX		64	/* descriptors that one copy uses */

/*
 * ACP_OP_SEND: dst is the address of a mailbox, aligned to 8, in memory that
 * permits writing and atomics.  It begins with this structure, followed by
 * the records of messages.  A message takes a record and size bytes, rounded
 * up to a multiple of 8, at "next", if that ends not beyond "limit": "room" is
 * advanced in one step.  Otherwise nothing is written, and the command ends with
 * ACP_ST_AGAIN, or is tried again (ACP_SQE_RETRY) as ACP_OP_APPEND; a message that
 * is longer than the mailbox ends with ACP_ST_RANGE.  Messages of a queue whose
 * source is memory of the node that sends them, by one color, take their records
 * in the order in which they start: that of their tickets, but for those that
 * have to wait for their "order", and those without RETRY that are refused, or
 * pass others that wait for room.
 *
 * With ACP_SQE_RENDEZVOUS, and if the source is memory of the node that sends, the bytes of a
 * message to a match list (ACP_IOC_MATCH) are not sent before a receive has matched it, however
 * long that takes.  Until then it takes one of the list's "messages", but none of its bytes.  A
 * mailbox without a list refuses it with ACP_ST_OP.
 *
 * The owner alone changes limit, and sets next back.  All bytes between next and
 * limit are 0 before "room" says so.
 */
struct acp_mailbox {
	__u64 room;		/* ACP_MAILBOX_ROOM(next, limit) */
	__u32 units;		/* bytes of all records / 8: the largest limit */
	__u32 list;		/* 0, or the match list (ACP_IOC_MATCH) that gets the messages */
	__u64 owner[6];		/* the kernel does not look at them */
};

/* Numbers of 8 bytes, counted from the end of struct acp_mailbox. */
#define ACP_MAILBOX_ROOM(next, limit)	((__u64)(limit) << 32 | (__u32)(next))

/*
 * A message; its bytes follow.  Records are valid in their order: those behind one whose state is 0
 * mean nothing yet, whatever they say.
 */
struct acp_record {
	__u64 state;		/* size << 2 | ACP_RECORD_; written last.  0: not written yet */
	__u64 tag;
	__u32 rank;		/* the sender: the origin of the command */
	__u32 reserved;		/* 0 */
};

#define ACP_RECORD_ARRIVING	1	/* tag, rank and size are valid */
#define ACP_RECORD_READY	2	/* all bytes are there */
#define ACP_RECORD_VOID		3	/* the message failed on its way */

/* acp_sqe.flags */
#define ACP_SQE_CONT	1u	/* order: continue the previous command, "order" = that ticket */
#define ACP_SQE_MORE	2u	/* if this command fails, the next one ends with its status */
#define ACP_SQE_RETRY	4u	/* APPEND, SEND: if there is no room, try again, see above */
#define ACP_SQE_RENDEZVOUS	8u	/* SEND: send the bytes to a matching receive only */
#define ACP_SQE_REVOKE	16u	/* ADD8, COPY_ADD, ACCUMULATE_ADD: revoke if the order failed */
#define ACP_SQE_LAZY	32u	/* COPY, ACCUMULATE, _SET, _ADD: may be complete later, see below */
#define ACP_SQE_FLAGS	(ACP_SQE_CONT | ACP_SQE_MORE | ACP_SQE_RETRY | ACP_SQE_RENDEZVOUS | \
			 ACP_SQE_REVOKE | ACP_SQE_LAZY)

/*
 * One command.  It may start when all commands up to ticket "order" are
 * complete (0: immediately).  It fails with ACP_ST_ORDER, without effect, if
 * one of these commands with a ticket above "seen" failed.
 *
 * With ACP_SQE_REVOKE, it then sets the word that it would have added to (ADD8: at src; others:
 * at a) to ACP_WORD_REVOKED, has no other effect, and its status is that of this.  So commands
 * that wait for the word (ACP_OP_WAIT) end, whatever is added to it before or afterwards, as long
 * as these counters begin at 0 and stay below ACP_WORD_REVOKED / 2.  A command with this flag
 * starts only when all of its order is complete.
 *
 * With ACP_SQE_LAZY, nothing waits for the end of the command: it takes effect as soon as without,
 * but may be complete up to 500 us later, when the target acknowledges it with something else that
 * it sends.
 */
struct acp_sqe {
	__u8  op;		/* enum acp_op */
	__u8  flags;		/* ACP_SQE_ */
	__u8  reserved[6];	/* must be zero */
	__u64 dst, src;		/* global addresses */
	__u64 size;		/* of copies: bytes, ACP_BLOCKS, or ACP_NUMBERS; otherwise 0 */
	__u64 order;		/* ticket, less than the command's own */
	__u64 seen;		/* "completed" when the caller issued this, or any other ticket */
	__u64 a, b;		/* operands; 0 if unused */
};

/* Status of a complete command.  Only ACP_ST_OK guarantees an effect. */
enum acp_status {
	ACP_ST_OK	= 0,
	ACP_ST_OP	= 1,	/* invalid operation, flag, size or order in the entry */
	ACP_ST_GA	= 2,	/* the address belongs to no rank, or to an unused color */
	ACP_ST_STAG	= 3,	/* the region was never registered, or is no longer */
	ACP_ST_RANGE	= 4,	/* exceeds the region */
	ACP_ST_ACCESS	= 5,	/* the region does not grant this access */
	ACP_ST_ALIGN	= 6,	/* the address of an atomic is not aligned to its size */
	ACP_ST_RANK	= 7,	/* the rank does not exist, or no longer exists */
	ACP_ST_NOMEM	= 8,	/* out of memory, or the job has reached its limit of flows */
	ACP_ST_TIMEOUT	= 9,	/* a peer was silent for the time-out */
	ACP_ST_PEER	= 10,	/* a peer was restarted, or its settings of the job differ */
	ACP_ST_ROUTE	= 11,	/* no route to the peer */
	ACP_ST_ORDER	= 12,	/* a command this one waited for failed */
	ACP_ST_ABORT	= 13,	/* the job or the rank was ended */
	ACP_ST_AGAIN	= 14,	/* the buffer is full */
	ACP_ST_CHAIN	= 15,	/* a chain is too short, too long, a loop, or not well formed */
	ACP_ST_END
};

#endif /* ACP_CMD_ABI_H */
