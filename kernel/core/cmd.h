/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The life of a command: where it executes, which messages it needs, when it
 * may start, how it ends.
 *
 * One rule: a command executes where its source lives, its result is put to
 * its destination, its completion comes back to its origin.
 *
 *	source is at	destination is at	the origin's node
 *	origin		origin			does it at once
 *	origin		elsewhere		sends DATA; done when all is acknowledged
 *	elsewhere	anywhere		sends CMD; the source's node sends DATA;
 *						done when the last DATA arrives here,
 *						or DONE from whoever wrote the last byte
 *
 * The last DATA message of a command says LAST and, if there were several,
 * is fenced: when it is applied, all others were, and the status is known.
 * A failure of an earlier one is remembered in the flow until then.
 */
#ifndef ACP_CMD_H
#define ACP_CMD_H

#include "port.h"
#include "frame.h"
#include "shape.h"
#include "acp_abi.h"
#include "acp_ga.h"

/* ---- checking ---- */

/* Bytes an atomic works on: 4 or 8; 0: a copy of some kind; negative: no such operation. */
static inline int acp_op_width(u8 op)
{
	if (op == ACP_OP_COPY)
		return 0;
	if (op < ACP_OP_CAS4 || op > ACP_OP_AND8)
		return op >= ACP_OP_STRIDED && op < ACP_OP_END ? 0 : -1;
	return (op - ACP_OP_CAS4) & 1 ? 8 : 4;
}

/* The word that an atomic leaves behind (4-byte operations: low 32 bits). */
u64 acp_op_result(u8 op, u64 old, u64 a, u64 b);

/* ACP_ST_OK, or what is wrong with an entry of the ring besides its command. */
static inline u8 acp_sqe_check(const struct acp_sqe *e, u64 ticket)
{
	static const u8 none[sizeof(e->reserved)];

	if (memcmp(e->reserved, none, sizeof(none)) || (e->flags & ~ACP_SQE_FLAGS) ||
	    e->order >= ticket)
		return ACP_ST_OP;
	return ACP_ST_OK;
}

/*
 * A command with one of the operations from ACP_OP_STRIDED on has the numbers of its entry of the
 * ring: put them where they belong in a message.  A strided copy whose bytes are in one piece at
 * both ends becomes an ordinary one.
 */
void acp_cmd_shape(struct acp_msg *m);

/* ACP_ST_OK, or what is wrong with a command whatever the regions are. */
u8 acp_cmd_check(const struct acp_ga_layout *l, u32 colors, const struct acp_msg *m);

/* ---- where ---- */

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

#define ACP_COPY_LONG	16384	/* a copy within a node of more bytes is not done at once ... */
#define ACP_COPY_BLOCKS	512	/* ... nor one of more blocks */
#define ACP_DELEGATED	1024	/* commands that the nodes of a flow ask of each other at once */

/* ---- when: order at the remote side ---- */

/* Is it, within a node, a copy that is not done at once? */
static inline bool acp_cmd_long(const struct acp_msg *m)
{
	return m->size > ACP_COPY_LONG ||
	       (m->op == ACP_OP_STRIDED && acp_shape_count(m->c) > ACP_COPY_BLOCKS);
}

/* What a command is for the order: the flow it uses and where its result goes. */
struct acp_step {
	u8 plan;		/* enum acp_plan */
	bool atomic;
	bool home;		/* DELEGATE: the result comes here, on dst_color */
	bool third;		/* DELEGATE: the result goes to dst_node, neither here nor node */
	bool later;		/* it ends at a time that no fence of ours can wait for */
	u8 color, dst_color;
	u32 node, dst_node;	/* SEND, DELEGATE: the flow's peer; result */
};

/* The step of a command; nodes of its source and destination are the caller's to find. */
void acp_step_set(struct acp_step *s, const struct acp_ga_layout *l, const struct acp_msg *m,
		  u32 me, u32 src_node, u32 dst_node);

/*
 * The run: commands first .. last of one origin, consecutive, all started,
 * all on one flow in such a way that a fence orders the next one after them.
 * A result on its way to a third node is out of reach of any fence, and so is
 * a long copy within a node: what is ordered after them waits.
 */
struct acp_run {
	u64 first, last;	/* tickets; empty: first > last */
	u32 life;		/* of the flow, that all of them were sent in */
	u32 node;
	u8 color, dst_color;
	bool results;		/* results come home from the peer, on dst_color */
};

enum acp_start {
	ACP_START_NOW,		/* its condition is met */
	ACP_START_FENCED,	/* send it behind a fence */
	ACP_START_WAIT,
};

/* All tickets up to "completed" are complete. */
enum acp_start acp_run_ask(const struct acp_run *r, u64 completed, u64 order,
			   const struct acp_step *s);
void acp_run_started(struct acp_run *r, u64 completed, u64 ticket, const struct acp_step *s);

/* ... and was sent in this life of the flow: a fence reaches no earlier one. */
void acp_run_sent(struct acp_run *r, u64 ticket, u32 life);

/* ---- what goes out ---- */

/* A message to be sent, or a transfer to be cut into DATA messages. */
struct acp_out {
	struct acp_msg m;	/* DATA: op, src, size, dst .. of the whole transfer */
	u64 cut;		/* bytes already cut off */
	bool fence;		/* every frame of it is fenced */
	bool inline_data;	/* DATA: the bytes to send are in m.a, 8 at most, 0 behind them */
	bool finished;		/* the last message was cut */
	u8 failed;		/* the source, or what it waited for, failed so: no more data */
};

/* Nothing of it went out; the caller fills in its message. */
static inline void acp_out_begin(struct acp_out *o)
{
	o->cut = 0;
	o->fence = false;
	o->inline_data = false;
	o->finished = false;
	o->failed = 0;
}

/* Bytes of a DATA message before its payload, at most. */
static inline u32 acp_out_head(const struct acp_out *o)
{
	return sizeof(struct acp_msg_data) + (o->m.op ? sizeof(struct acp_msg_more) : 0);
}

/* Does it go out as one message of at most "payload" bytes of data? */
static inline bool acp_out_single(const struct acp_out *o, u32 payload)
{
	return o->m.type != ACP_MSG_DATA || o->m.size <= payload;
}

/* Cut the next message off (payload: most bytes of data): its length, from the old o->cut on. */
static inline u32 acp_out_cut(struct acp_out *o, u32 payload)
{
	u32 length = 0;

	if (o->m.type == ACP_MSG_DATA && !o->failed)
		length = min_t(u64, payload, o->m.size - o->cut);
	o->cut += length;
	o->finished = o->m.type != ACP_MSG_DATA || o->failed || o->cut == o->m.size;
	return length;
}

/* The message that was cut off at an offset; *fence: of its frame. */
void acp_out_piece(const struct acp_out *o, u64 offset, u32 length, struct acp_msg *m,
		   bool *fence);

/*
 * The source failed: what is left becomes one DATA with FAIL and LAST, and
 * what must be sent again carries FAIL in place of data.
 */
static inline void acp_out_fail(struct acp_out *o, u8 status)
{
	o->failed = status;
}

/* ---- failures a receiving flow remembers ---- */

#define ACP_FAILS	256

/*
 * Failed pieces until their LAST comes, and failed commands for as long as
 * frames that were sent without knowing of the failure can arrive.
 */
struct acp_fails {
	u32 count;
	u64 blind;		/* more failed than fit: all that depends, up to this rcv, fails */
	struct acp_fail {
		u64 ticket;
		u64 until;	/* 0: until LAST; else forget when rcv is beyond */
		u32 origin;
		u8 status;
	} e[ACP_FAILS];
};

/* False: no room for a failed piece (until 0); its frame must be refused. */
bool acp_fails_add(struct acp_fails *t, u32 origin, u64 ticket, u8 status, u64 until);

/* Status of the command's earlier pieces, forgetting them. */
u8 acp_fails_take(struct acp_fails *t, u32 origin, u64 ticket);

/* Does a message depend on a command that failed?  Also drops old entries. */
bool acp_fails_depends(struct acp_fails *t, const struct acp_msg *m, u64 rcv);

#endif /* ACP_CMD_H */
