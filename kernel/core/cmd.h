/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The life cycle of a command: where it executes, which messages it needs, when it may start, and
 * how it ends.
 *
 * A command executes on the node of its source. Its result is put to its destination. Its
 * completion is reported to its origin.
 *
 *	source		destination	what the origin's node does
 *	origin		origin		executes it at once
 *	origin		elsewhere	sends DATA; done when all of it is acknowledged
 *	elsewhere	anywhere	sends CMD; the source's node sends DATA; done when
 *					the last DATA arrives here, or a DONE from the
 *					node that wrote the last byte
 *
 * The last DATA message of a command has the flag LAST. If there were several, it is also fenced:
 * when it is applied, all others have been applied, and the status is known. Until then, the flow
 * records the failures of earlier pieces.
 */
#ifndef ACP_CMD_H
#define ACP_CMD_H

#include "port.h"
#include "frame.h"
#include "reduce.h"
#include "strided_desc.h"
#include "acp_abi.h"
#include "acp_ga.h"

/* ---- validation ---- */

/**
 * acp_op_width() - get the operand width of an operation
 * @op: operation, any value
 *
 * Context: Any context.
 * Return: 4 or 8 for an atomic, 0 for a copy of any kind, ACP_OP_WAIT, ACP_OP_REDUCE and
 * accumulations, -1 if there is no such operation.
 */
static inline int acp_op_width(u8 op)
{
	if (op == ACP_OP_COPY)
		return 0;
	if (op < ACP_OP_CAS4 || op > ACP_OP_AND8)
		return op >= ACP_OP_STRIDED && op < ACP_OP_END ? 0 : -1;
	return (op - ACP_OP_CAS4) & 1 ? 8 : 4;
}

/**
 * acp_op_result() - compute the word that an atomic stores
 * @op: ACP_OP_CAS4 .. ACP_OP_AND8
 * @old: present value of the word
 * @a: first operand; CAS: the value to compare with
 * @b: second operand; CAS: the new value
 *
 * Context: Any context.
 * Return: The new value; for 4-byte operations, only the low 32 bits are valid.
 */
u64 acp_op_result(u8 op, u64 old, u64 a, u64 b);

/**
 * acp_op_copies() - get the copy that changes the same flag as an accumulation
 * @op: ACP_OP_ACCUMULATE, ACP_OP_ACCUMULATE_SET or ACP_OP_ACCUMULATE_ADD
 *
 * Context: Any context.
 * Return: ACP_OP_COPY, ACP_OP_COPY_SET or ACP_OP_COPY_ADD.
 */
static inline u8 acp_op_copies(u8 op)
{
	if (op == ACP_OP_ACCUMULATE)
		return ACP_OP_COPY;
	return op == ACP_OP_ACCUMULATE_SET ? ACP_OP_COPY_SET : ACP_OP_COPY_ADD;
}

/**
 * acp_op_of_flag() - get the atomic that changes the flag of a copy
 * @op: operation for which acp_op_signals() is true
 *
 * The operand of the atomic is &acp_msg.b.
 *
 * Context: Any context.
 * Return: ACP_OP_SWAP8 or ACP_OP_ADD8.
 */
static inline u8 acp_op_of_flag(u8 op)
{
	return op == ACP_OP_COPY_ADD || op == ACP_OP_ACCUMULATE_ADD ? ACP_OP_ADD8 : ACP_OP_SWAP8;
}

/**
 * acp_sqe_check() - validate the fields of a ring entry that are not part of its command
 * @e: copy of the entry; users can write the ring itself at any time
 * @ticket: number of the entry
 *
 * Context: Any context.
 * Return: ACP_ST_OK or ACP_ST_OP.
 */
static inline u8 acp_sqe_check(const struct acp_sqe *e, u64 ticket)
{
	static const u8 none[sizeof(e->reserved)];

	if (memcmp(e->reserved, none, sizeof(none)) || (e->flags & ~ACP_SQE_FLAGS) ||
	    e->order >= ticket)
		return ACP_ST_OP;
	if (!(e->flags & (ACP_SQE_RETRY | ACP_SQE_RENDEZVOUS | ACP_SQE_REVOKE | ACP_SQE_LAZY)))
		return ACP_ST_OK;
	if ((e->flags & ACP_SQE_RETRY) && !acp_op_takes_room(e->op))
		return ACP_ST_OP;
	if ((e->flags & ACP_SQE_RENDEZVOUS) && e->op != ACP_OP_SEND)
		return ACP_ST_OP;
	if ((e->flags & ACP_SQE_REVOKE) && e->op != ACP_OP_ADD8 && e->op != ACP_OP_COPY_ADD &&
	    e->op != ACP_OP_ACCUMULATE_ADD)
		return ACP_ST_OP;
	if ((e->flags & ACP_SQE_LAZY) && e->op != ACP_OP_COPY && !acp_op_signals(e->op) &&
	    e->op != ACP_OP_ACCUMULATE)
		return ACP_ST_OP;
	return ACP_ST_OK;
}

/**
 * acp_cmd_from_entry() - convert the operands of a ring entry to those of a message
 * @m: command with an operation >= ACP_OP_STRIDED and the numbers of its ring entry
 *
 * A strided copy that is contiguous at both ends becomes an ordinary copy.
 *
 * Context: Any context.
 */
void acp_cmd_from_entry(struct acp_msg *m);

/**
 * acp_cmd_no_bytes() - replace the addresses of a copy of 0 bytes
 * @l: layout of global addresses of the job
 * @m: command of size 0, after acp_cmd_from_entry()
 *
 * A copy of 0 bytes reads and writes nothing, so its addresses are not validated. With the new ones
 * the command stays on the node of its origin, or goes only to the node of its flag. Atomics are
 * not changed.
 *
 * Context: Any context.
 */
void acp_cmd_no_bytes(const struct acp_ga_layout *l, struct acp_msg *m);

/**
 * acp_cmd_revoke() - let a command revoke the word that it would have added to
 * @l: layout of global addresses of the job
 * @m: valid ACP_OP_ADD8 or ACP_OP_COPY_ADD, after acp_cmd_no_bytes()
 *
 * It becomes an ACP_OP_COPY_SET of 0 bytes, which writes no former value anywhere.
 *
 * Context: Any context.
 */
void acp_cmd_revoke(const struct acp_ga_layout *l, struct acp_msg *m);

/**
 * acp_cmd_check() - validate a command as far as possible without the regions
 * @l: layout of global addresses of the job
 * @colors: number of colors of the job
 * @m: command
 *
 * Context: Any context.
 * Return: ACP_ST_OK, ACP_ST_OP, ACP_ST_GA, ACP_ST_ALIGN or ACP_ST_RANGE.
 */
u8 acp_cmd_check(const struct acp_ga_layout *l, u32 colors, const struct acp_msg *m);

/* ---- where a command executes ---- */

enum acp_plan {
	ACP_PLAN_LOCAL,		/* both ends here */
	ACP_PLAN_SEND,		/* source here: DATA to the destination's node */
	ACP_PLAN_DELEGATE,	/* CMD to the source's node */
};

static inline enum acp_plan acp_cmd_plan(u32 me, u32 src_node, u32 dst_node)
{
	if (src_node != me)
		return ACP_PLAN_DELEGATE;
	return dst_node == me ? ACP_PLAN_LOCAL : ACP_PLAN_SEND;
}

#define ACP_COPY_LONG	16384	/* local copies of more bytes are not done at once ... */
#define ACP_COPY_BLOCKS	512	/* ... nor are those of more blocks */
#define ACP_DELEGATED	1024	/* delegated commands under way, per flow and direction */

/* ---- when a command starts: order at the remote side ---- */

/**
 * acp_cmd_long() - test whether a local copy is too long to be done at once
 * @m: command whose source and destination are on one node
 *
 * Context: Any context.
 * Return: True if the copy is long.
 */
static inline bool acp_cmd_long(const struct acp_msg *m)
{
	if (m->size > ACP_COPY_LONG)
		return true;
	if (m->op < ACP_OP_SCATTER)
		return m->op == ACP_OP_STRIDED && acp_strided_count(m->c) > ACP_COPY_BLOCKS;
	if (m->op >= ACP_OP_REDUCE)
		return m->size > ACP_REDUCE_LONG;
	/* A chain may have blocks of one byte. */
	return m->size > ACP_COPY_BLOCKS;
}

/**
 * acp_delegates() - test whether one more command may be delegated to a peer
 * @awaited: answers that the peer owes
 *
 * Context: Any context.
 * Return: True if it may.
 */
static inline bool acp_delegates(u32 awaited)
{
	return awaited < ACP_DELEGATED;
}

/**
 * acp_delegated_fit() - test whether a peer may delegate more commands
 * @under_way: commands of the peer that are under way here
 * @more: further commands in one frame
 *
 * A peer delegates at most ACP_DELEGATED commands, but it may learn a little earlier than this node
 * that one has ended. Therefore twice as many are accepted.
 *
 * Context: Any context.
 * Return: True if the frame may be accepted.
 */
static inline bool acp_delegated_fit(u32 under_way, u32 more)
{
	return !more || under_way + more <= 2 * ACP_DELEGATED;
}

struct acp_out;

/* What ordering needs to know of a command: the flow it uses and where its result goes. */
struct acp_step {
	u8 plan;		/* enum acp_plan */
	bool atomic;
	bool home;		/* DELEGATE: the result comes here, on dst_color */
	bool third;		/* DELEGATE: the result goes to dst_node, neither here nor node */
	bool later;		/* no fence of this node can wait for its end */
	u8 color, dst_color;
	u32 node, dst_node;	/* SEND, DELEGATE: the flow's peer; node of the result */
};

/**
 * acp_step_set() - describe a command for ordering
 * @s: step to fill, all fields
 * @l: layout of global addresses of the job
 * @m: command
 * @me: this node
 * @src_node: node of the source, found by the caller
 * @dst_node: node of the destination, found by the caller
 *
 * Context: Any context.
 */
void acp_step_set(struct acp_step *s, const struct acp_ga_layout *l, const struct acp_msg *m,
		  u32 me, u32 src_node, u32 dst_node);

/*
 * The run: consecutive commands first .. last of one origin. All have been started, and all use one
 * flow in such a way that a fence orders the next command after them. No fence reaches a result on
 * its way to a third node, or a long local copy; commands ordered after these have to wait.
 */
struct acp_run {
	u64 first, last;	/* tickets; empty: first > last */
	u32 epoch;		/* incarnation of the flow in which all were sent */
	u32 node;
	u8 color, dst_color;
	bool results;		/* results come from the peer to this node, on dst_color */
};

enum acp_start {
	ACP_START_NOW,		/* its order is satisfied */
	ACP_START_FENCED,	/* send it behind a fence */
	ACP_START_WAIT,
};

/**
 * acp_run_ask() - decide whether a command may start
 * @r: run of the command's queue
 * @completed: all tickets up to this one are complete
 * @order: the command must take effect after all tickets up to this one
 * @s: the command
 *
 * Context: The caller serializes calls on one run.
 * Return: ACP_START_NOW, ACP_START_FENCED (call acp_step_fence()) or ACP_START_WAIT.
 */
enum acp_start acp_run_ask(const struct acp_run *r, u64 completed, u64 order,
			   const struct acp_step *s);

/**
 * acp_run_started() - add a command that starts to the run, or begin a new run
 * @r: run of the command's queue
 * @completed: all tickets up to this one are complete
 * @ticket: the command
 * @s: the command
 *
 * Context: The caller serializes calls on one run.
 */
void acp_run_started(struct acp_run *r, u64 completed, u64 ticket, const struct acp_step *s);

/**
 * acp_step_fence() - put a command behind a fence
 * @o: the command; sets fence, &acp_msg.depends, &acp_msg.upto and ACP_MSG_ORDERED
 * @s: the command
 * @completed: all tickets up to this one are complete
 * @seen: the issuer has seen all commands up to this ticket succeed
 * @order: as for acp_run_ask(), which returned ACP_START_FENCED
 *
 * Context: Any context.
 */
void acp_step_fence(struct acp_out *o, const struct acp_step *s, u64 completed, u64 seen,
		    u64 order);

/**
 * acp_msg_waits() - get the commands on which a message depends
 * @m: message
 * @first: set to the ticket of the first one; valid only if true is returned
 * @last: set to the ticket of the last one; valid only if true is returned
 *
 * Context: Any context.
 * Return: True if the message depends on commands of its origin.
 */
static inline bool acp_msg_waits(const struct acp_msg *m, u64 *first, u64 *last)
{
	*first = m->ticket - m->depends;
	*last = m->ticket - m->upto;
	return m->depends;
}

/**
 * acp_run_sent() - record the incarnation in which a started command was sent
 * @r: run of the command's queue
 * @ticket: the command
 * @epoch: incarnation of the flow
 *
 * If the incarnation is a new one, earlier commands leave the run, because a fence does not reach
 * them.
 *
 * Context: The caller serializes calls on one run.
 */
void acp_run_sent(struct acp_run *r, u64 ticket, u32 epoch);

/* ---- items to be sent ---- */

/* A message to be sent, or a transfer to be cut into DATA messages. */
struct acp_out {
	/* DATA: op, src, size, dst .. of the whole transfer; with GRANTED, c is the entry */
	struct acp_msg m;
	u64 cut;		/* bytes that have been cut off */
	bool fence;		/* all of its frames are fenced */
	bool inline_data;	/* DATA: the data is in m.a, at most 8 bytes, then zeros */
	bool finished;		/* the last message has been cut */
	u8 failed;		/* status of its source or predecessors: no more data */
	bool chained;		/* its source is a chain of descriptors, to which m.b points */
};

/**
 * acp_out_begin() - initialize an item of which nothing has been sent
 * @o: item; its message is left to the caller
 *
 * Context: Any context.
 */
static inline void acp_out_begin(struct acp_out *o)
{
	o->cut = 0;
	o->fence = false;
	o->inline_data = false;
	o->finished = false;
	o->failed = 0;
	o->chained = false;
}

/**
 * acp_out_head() - get the most bytes that precede the payload of a DATA message
 * @o: item
 *
 * Context: Any context.
 * Return: Bytes, a checksum not included.
 */
static inline u32 acp_out_head(const struct acp_out *o)
{
	return sizeof(struct acp_msg_data) + (o->m.op ? sizeof(struct acp_msg_more) : 0);
}

/**
 * acp_out_data() - turn a command whose source is local into DATA for its destination
 * @o: item with the command
 *
 * Context: Any context.
 */
static inline void acp_out_data(struct acp_out *o)
{
	o->m.type = ACP_MSG_DATA;
	if (o->m.op < ACP_OP_STRIDED)
		o->m.op = 0;
	else if (acp_op_indirect(o->m.op) && !(o->m.flags & ACP_MSG_GRANTED))
		o->m.c = o->m.size;
}

/**
 * acp_out_word() - put the data of an item inline
 * @o: item
 * @size: bytes, at most 8
 * @word: the data, as stored in memory, followed by zeros
 *
 * Context: Any context.
 */
static inline void acp_out_word(struct acp_out *o, u32 size, u64 word)
{
	o->m.size = size;
	o->m.a = word;
	o->inline_data = true;
}

/**
 * acp_out_forward() - start a delegated command whose result goes to a third node
 * @o: item to fill
 * @m: CMD as received
 *
 * The fence of the CMD is kept only if the CMD has ACP_MSG_ORDERED; without a fence, nothing
 * depends on other commands.
 *
 * Context: Any context.
 */
static inline void acp_out_forward(struct acp_out *o, const struct acp_msg *m)
{
	o->m = *m;
	o->m.flags = 0;
	o->fence = m->flags & ACP_MSG_ORDERED;
	if (!o->fence) {
		o->m.depends = 0;
		o->m.upto = 0;
	}
}

/**
 * acp_out_done() - fill the DONE that reports the end of a command to its origin
 * @o: item to fill
 * @m: message of the command
 * @status: enum acp_status
 *
 * Context: Any context.
 */
static inline void acp_out_done(struct acp_out *o, const struct acp_msg *m, u8 status)
{
	*o = (struct acp_out){ };
	o->m.type = ACP_MSG_DONE;
	o->m.origin = m->origin;
	o->m.ticket = m->ticket;
	o->m.status = status;
}

/* Does it fit into one message with at most "payload" bytes of data? */
static inline bool acp_out_single(const struct acp_out *o, u32 payload)
{
	return o->m.type != ACP_MSG_DATA || o->m.size <= payload;
}

/**
 * acp_out_cut() - cut off the next message of an item
 * @o: item; not finished
 * @payload: most bytes of data
 *
 * The message begins at the value of &acp_out.cut before the call. acp_out_piece() fills it.
 *
 * Context: Any context.
 * Return: Bytes of data in the message.
 */
static inline u32 acp_out_cut(struct acp_out *o, u32 payload)
{
	u32 length = 0;

	if (o->m.type == ACP_MSG_DATA && !o->failed)
		length = min_t(u64, payload, o->m.size - o->cut);
	o->cut += length;
	o->finished = o->m.type != ACP_MSG_DATA || o->failed || o->cut == o->m.size;
	return length;
}

/**
 * acp_out_tag() - get the tag that the DATA of a SEND have
 * @m: the message, as its item has it
 *
 * Context: Any context.
 * Return: The tag, or the entry that was granted.
 */
static inline u64 acp_out_tag(const struct acp_msg *m)
{
	return m->flags & ACP_MSG_GRANTED ? m->c : m->b;
}

/**
 * acp_out_piece() - fill a message that was cut off, also to retransmit it
 * @o: item
 * @offset: where the message begins
 * @length: bytes of data, as returned by acp_out_cut()
 * @m: message to fill
 * @fence: set to true if its frame must be fenced
 *
 * Context: Any context.
 */
void acp_out_piece(const struct acp_out *o, u64 offset, u32 length, struct acp_msg *m,
		   bool *fence);

/**
 * acp_out_fail() - record that the source of an item failed
 * @o: item
 * @status: enum acp_status, not ACP_ST_OK
 *
 * What has not been cut becomes one DATA with FAIL and LAST. Retransmissions of earlier pieces
 * carry FAIL instead of data.
 *
 * Context: Any context.
 */
static inline void acp_out_fail(struct acp_out *o, u8 status)
{
	o->failed = status;
}

/* ---- completion ---- */

#define ACP_EXPECT_SOURCE	1	/* from step.node, which executes the command */
#define ACP_EXPECT_RESULT	2	/* from step.dst_node: the result has arrived */

/**
 * acp_expect_lost() - find the answers that a new incarnation of a flow makes impossible
 * @s: the command
 * @expected: ACP_EXPECT_ flags of the answers that are still awaited
 * @epoch: incarnations in which they are awaited, index ACP_EXPECT_ - 1
 * @node: peer of the flow
 * @color: color of the flow
 * @now: present incarnation of the flow
 *
 * Context: Any context.
 * Return: The flags in @expected whose answers will not come.
 */
u8 acp_expect_lost(const struct acp_step *s, u8 expected, const u32 *epoch, u32 node, u32 color,
		   u32 now);

/**
 * acp_out_ends() - decide whether a local command ends when its item leaves the transport
 * @o: item of the command
 * @delivered: ACP_ST_OK if all of it was delivered, otherwise the reason
 * @status: set to the status of the command, if it ends
 *
 * Context: Any context.
 * Return: True if the command has ended.
 */
static inline bool acp_out_ends(const struct acp_out *o, u8 delivered, u8 *status)
{
	*status = delivered ? delivered : o->failed;
	return o->m.type == ACP_MSG_DATA || *status;
}

/**
 * acp_out_lost() - decide whether to report that a delegated command's item failed
 * @o: item, sent for a command of another node
 * @delivered: ACP_ST_OK if all of it was delivered, otherwise the reason
 *
 * Context: Any context.
 * Return: True if a DONE with @delivered must be sent to the origin.
 */
static inline bool acp_out_lost(const struct acp_out *o, u8 delivered)
{
	return delivered && o->m.type != ACP_MSG_DONE && o->m.type != ACP_MSG_PING;
}

enum acp_tell {
	ACP_TELL_US,		/* the command is local */
	ACP_TELL_NOBODY,	/* the acknowledgement of the frame suffices */
	ACP_TELL_FAILED,	/* a DONE must arrive before that acknowledgement */
	ACP_TELL_ORIGIN,	/* a DONE is sent to a third node */
};

/**
 * acp_end_tell() - decide to whom the end of a command is reported
 * @me: this node
 * @from: node that sent the last data of the command
 * @origin: node of the command's origin
 * @status: enum acp_status, status of the command
 *
 * Context: Any context.
 * Return: A value of enum acp_tell.
 */
static inline enum acp_tell acp_end_tell(u32 me, u32 from, u32 origin, u8 status)
{
	if (origin == me)
		return ACP_TELL_US;
	if (origin != from)
		return ACP_TELL_ORIGIN;
	return status ? ACP_TELL_FAILED : ACP_TELL_NOBODY;
}

/* ---- failures that a receiving flow records ---- */

#define ACP_FAILS	256

/*
 * Failed pieces, until the LAST of their command arrives; and failed commands, as long as frames
 * can arrive that were sent before the sender knew of the failure.
 */
struct acp_fails {
	u32 count;
	u64 blind;		/* entries were lost: dependents fail while rcv is not above this */
	struct acp_fail {
		u64 ticket;
		u64 until;	/* 0: until LAST; otherwise until rcv is above it */
		u32 origin;
		u8 status;
	} e[ACP_FAILS];
};

/*
 * Add a failed command (or, if "until" is 0, a failed piece). Returns false if there is no room for
 * a failed piece; its frame must be refused then.
 */
bool acp_fails_add(struct acp_fails *t, u32 origin, u64 ticket, u8 status, u64 until);

/**
 * acp_fails_see() - find the failures of earlier pieces of a command
 * @t: table
 * @origin: rank that issued the command
 * @ticket: the command
 *
 * Context: The caller serializes calls on one table.
 * Return: Status of the first piece that failed, or ACP_ST_OK.
 */
u8 acp_fails_see(const struct acp_fails *t, u32 origin, u64 ticket);

/**
 * acp_fails_take() - remove the failures of earlier pieces of a command
 * @t: table
 * @origin: rank that issued the command
 * @ticket: the command
 *
 * Context: The caller serializes calls on one table.
 * Return: Status of the first piece that failed, or ACP_ST_OK.
 */
u8 acp_fails_take(struct acp_fails *t, u32 origin, u64 ticket);

/**
 * acp_fails_expire() - remove the failures that no message can depend on any more
 * @t: table
 * @rcv: &acp_flow.rcv
 *
 * Context: The caller serializes calls on one table.
 */
void acp_fails_expire(struct acp_fails *t, u64 rcv);

/**
 * acp_fails_forget() - remove a command that has succeeded when it was tried again
 * @t: table; failed pieces of the command stay in it
 * @origin: rank that issued the command
 * @ticket: the command
 *
 * Context: The caller serializes calls on one table.
 */
void acp_fails_forget(struct acp_fails *t, u32 origin, u64 ticket);

/* Does a message depend on a command that failed? Removes entries that have expired. */
bool acp_fails_depends(struct acp_fails *t, const struct acp_msg *m, u64 rcv);

/*
 * The failures that a flow records. If there is no memory for the table, it is not known what
 * failed: everything that depends on other commands fails while rcv is not above "blind".
 */
struct acp_failures {
	struct acp_fails *known;
	u64 blind;
};

/**
 * acp_failures_add() - record a failed command or a failed piece
 * @p: failures of the flow
 * @origin: rank that issued the command
 * @ticket: the command
 * @status: enum acp_status, not ACP_ST_OK
 * @until: acp_fails_until(); 0 for a piece that is not the last one
 * @rcv: &acp_flow.rcv
 *
 * If a failed command cannot be recorded, all messages that depend on other commands fail until the
 * flow has passed @until.
 *
 * Context: The caller serializes calls on one flow.
 * Return: False if there is no room for a failed piece; its frame must be refused then.
 */
static inline bool acp_failures_add(struct acp_failures *p, u32 origin, u64 ticket, u8 status,
				    u64 until, u64 rcv)
{
	if (p->known) {
		acp_fails_expire(p->known, rcv);
		return acp_fails_add(p->known, origin, ticket, status, until);
	}
	p->blind = max_t(u64, p->blind, until);
	return until;
}

/**
 * acp_failures_depends() - test whether a command on which a message depends has failed
 * @p: failures of the flow
 * @m: message for which acp_msg_waits() is true
 * @rcv: &acp_flow.rcv
 *
 * Removes entries that have expired.
 *
 * Context: The caller serializes calls on one flow.
 * Return: True if one has failed or may have failed.
 */
static inline bool acp_failures_depends(struct acp_failures *p, const struct acp_msg *m, u64 rcv)
{
	bool found = p->known && acp_fails_depends(p->known, m, rcv);

	return found || rcv <= p->blind;
}

/**
 * acp_failures_begin() - forget all failures, for a new incarnation of the flow
 * @p: failures of the flow
 *
 * Context: The caller serializes calls on one flow.
 */
static inline void acp_failures_begin(struct acp_failures *p)
{
	if (p->known)
		memset(p->known, 0, sizeof(*p->known));
	p->blind = 0;
}

/**
 * acp_failures_over() - test whether the table can be freed
 * @p: failures of the flow; their table must exist
 * @rcv: &acp_flow.rcv
 *
 * Context: The caller serializes calls on one flow.
 * Return: True if no entry is left that still counts, and none was lost.
 */
static inline bool acp_failures_over(struct acp_failures *p, u64 rcv)
{
	acp_fails_expire(p->known, rcv);
	return !p->known->count && p->known->blind < rcv;
}

/**
 * acp_fails_until() - get the end of the range in which dependents of a failure can arrive
 * @seq: number of the frame with the command that failed
 *
 * Context: Any context.
 * Return: The first number that no frame has that was sent before its sender knew of the failure.
 */
static inline u64 acp_fails_until(u64 seq)
{
	return seq + ACP_FRAME_WINDOW;
}

#endif /* ACP_CMD_H */
