/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints, the events acp:* of perf, trace-cmd, bpftrace and tracefs: what
 * becomes of a command, of its frames, and of peers.
 *
 *	acp_submit	a command was taken from a ring
 *	acp_complete	its user can see that it ended, and so did all before it
 *	acp_xmit	a frame goes out, for the first time or again
 *	acp_retransmit	this one was taken for lost, and goes out again
 *	acp_receive	a frame came that is authentic
 *	acp_ack		a frame of ours was acknowledged
 *	acp_peer_state	the flow to a peer begins to open, is open, was lost, began anew
 *	acp_drop	a frame was dropped; the reason is the name of its counter (which also
 *			counts messages of barriers that are dropped: those have no event)
 *
 * They only look: what happens is counted in stats.h.  One that is off costs an
 * instruction that does nothing.  Fields that have the same name mean the same:
 *
 *	job, gen	id and generation of the job
 *	node		number of this node in the job; peer: that of the other one
 *	rank, ticket	who issued the command, and its number
 *	color		of both ends of the flow
 *	seq		number of a DATA frame in its flow, 0: it is none
 *	bytes		of a command: what it copies or operates on; of a frame: the body
 *	times		ns
 *
 * Which messages are in a frame is for captures to tell: tools/acp.lua.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM acp

#if !defined(ACP_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define ACP_TRACE_H

#include <linux/tracepoint.h>
#include "node.h"

#ifndef ACP_TRACE_ONCE
#define ACP_TRACE_ONCE
enum acp_trace_state {
	ACP_PEER_OPENING,
	ACP_PEER_OPEN,
	ACP_PEER_LOST,		/* status says why */
	ACP_PEER_RESTARTED,	/* and open */
};

#define ACP_PLAN_REFUSED	255	/* beside enum acp_plan: the entry makes no sense */
#endif

#define ACP_TRACE_OPS						\
	E(ACP_OP_COPY, "copy") E(ACP_OP_CAS4, "cas4") E(ACP_OP_CAS8, "cas8")	\
	E(ACP_OP_SWAP4, "swap4") E(ACP_OP_SWAP8, "swap8")			\
	E(ACP_OP_ADD4, "add4") E(ACP_OP_ADD8, "add8")				\
	E(ACP_OP_XOR4, "xor4") E(ACP_OP_XOR8, "xor8")				\
	E(ACP_OP_OR4, "or4") E(ACP_OP_OR8, "or8")				\
	E(ACP_OP_AND4, "and4") E(ACP_OP_AND8, "and8")				\
	E(ACP_OP_STRIDED, "strided") E(ACP_OP_COPY_SET, "copy_set")		\
	LAST(ACP_OP_COPY_ADD, "copy_add")

#define ACP_TRACE_STATUSES						\
	E(ACP_ST_OK, "ok") E(ACP_ST_OP, "op") E(ACP_ST_GA, "ga") E(ACP_ST_STAG, "stag")	\
	E(ACP_ST_RANGE, "range") E(ACP_ST_ACCESS, "access") E(ACP_ST_ALIGN, "align")	\
	E(ACP_ST_RANK, "rank") E(ACP_ST_NOMEM, "nomem") E(ACP_ST_TIMEOUT, "timeout")	\
	E(ACP_ST_PEER, "peer") E(ACP_ST_ROUTE, "route") E(ACP_ST_ORDER, "order")	\
	LAST(ACP_ST_ABORT, "abort")

#define ACP_TRACE_PLANS							\
	E(ACP_PLAN_LOCAL, "local") E(ACP_PLAN_SEND, "send")		\
	E(ACP_PLAN_DELEGATE, "delegate") LAST(ACP_PLAN_REFUSED, "refused")

#define ACP_TRACE_TYPES							\
	E(ACP_FRAME_DATA, "data") E(ACP_FRAME_ACK, "ack") LAST(ACP_FRAME_HELLO, "hello")

#define ACP_TRACE_STATES						\
	E(ACP_PEER_OPENING, "opening") E(ACP_PEER_OPEN, "open")		\
	E(ACP_PEER_LOST, "lost") LAST(ACP_PEER_RESTARTED, "restarted")

/* What tools know the names by that a format has. */
#undef E
#undef LAST
#define E(value, name) TRACE_DEFINE_ENUM(value);
#define LAST(value, name) TRACE_DEFINE_ENUM(value);
ACP_TRACE_OPS
ACP_TRACE_STATUSES
ACP_TRACE_PLANS
ACP_TRACE_TYPES
ACP_TRACE_STATES
#define ACP_TRACE_STAT(name, text) TRACE_DEFINE_ENUM(ACP_STAT_##name);
ACP_STATS(ACP_TRACE_STAT)
#undef ACP_TRACE_STAT

#undef E
#undef LAST
#define E(value, name) { value, name },
#define LAST(value, name) { value, name }
#define ACP_TRACE_REASON(name, text) { ACP_STAT_##name, #name },

TRACE_EVENT(acp_submit,
	TP_PROTO(const struct acp_context *ctx, const struct acp_cmd *cmd, u8 status),
	TP_ARGS(ctx, cmd, status),
	TP_STRUCT__entry(
		__field(u64, ticket)
		__field(u64, bytes)
		__field(u64, dst)
		__field(u64, src)
		__field(u64, order)
		__field(u32, job)
		__field(u32, node)
		__field(u32, rank)
		__field(u32, peer)
		__field(u16, gen)
		__field(u8, op)
		__field(u8, plan)
		__field(u8, color)
	),
	TP_fast_assign(
		const struct acp_msg *m = &cmd->item.out.m;
		bool far = !status && cmd->step.plan != ACP_PLAN_LOCAL;

		__entry->ticket = m->ticket;
		__entry->bytes = acp_op_width(m->op) ? max(acp_op_width(m->op), 0) : m->size;
		__entry->dst = m->dst;
		__entry->src = m->src;
		__entry->order = cmd->order;
		__entry->job = ctx->job->id;
		__entry->node = ctx->job->me;
		__entry->rank = ctx->rank;
		__entry->peer = far ? cmd->step.node : ctx->job->me;
		__entry->gen = ctx->job->generation;
		__entry->op = m->op;
		__entry->plan = status ? ACP_PLAN_REFUSED : cmd->step.plan;
		__entry->color = far ? cmd->step.color : 0;
	),
	TP_printk("job=%u gen=%u node=%u rank=%u ticket=%llu op=%s bytes=%llu dst=0x%llx src=0x%llx order=%llu plan=%s peer=%u color=%u",
		  __entry->job, __entry->gen, __entry->node, __entry->rank, __entry->ticket,
		  __print_symbolic(__entry->op, ACP_TRACE_OPS), __entry->bytes, __entry->dst,
		  __entry->src, __entry->order,
		  __print_symbolic(__entry->plan, ACP_TRACE_PLANS), __entry->peer,
		  __entry->color)
);

TRACE_EVENT(acp_complete,
	TP_PROTO(const struct acp_context *ctx, u64 ticket, u8 status),
	TP_ARGS(ctx, ticket, status),
	TP_STRUCT__entry(
		__field(u64, ticket)
		__field(u32, job)
		__field(u32, node)
		__field(u32, rank)
		__field(u16, gen)
		__field(u8, status)
	),
	TP_fast_assign(
		__entry->ticket = ticket;
		__entry->job = ctx->job->id;
		__entry->node = ctx->job->me;
		__entry->rank = ctx->rank;
		__entry->gen = ctx->job->generation;
		__entry->status = status;
	),
	TP_printk("job=%u gen=%u node=%u rank=%u ticket=%llu status=%s",
		  __entry->job, __entry->gen, __entry->node, __entry->rank, __entry->ticket,
		  __print_symbolic(__entry->status, ACP_TRACE_STATUSES))
);

/* The flags but for MARKS, which are two bits of a count. */
DECLARE_EVENT_CLASS(acp_frame,
	TP_PROTO(const struct acp_peer *peer, const struct acp_frame *f),
	TP_ARGS(peer, f),
	TP_STRUCT__entry(
		__field(u64, seq)
		__field(u64, ack)
		__field(u32, job)
		__field(u32, node)
		__field(u32, peer)
		__field(u32, bytes)
		__field(u16, gen)
		__field(u8, color)
		__field(u8, type)
		__field(u8, flags)
		__field(u8, marks)
	),
	TP_fast_assign(
		__entry->seq = f->seq;
		__entry->ack = f->ack;
		__entry->job = peer->job->id;
		__entry->node = peer->job->me;
		__entry->peer = peer->node;
		__entry->bytes = f->length;
		__entry->gen = peer->job->generation;
		__entry->color = peer->color;
		__entry->type = f->type;
		__entry->flags = f->flags & ~ACP_FRAME_MARKS;
		__entry->marks = f->flags / ACP_FRAME_MARK;
	),
	TP_printk("job=%u gen=%u node=%u peer=%u color=%u type=%s flags=%s seq=%llu ack=%llu bytes=%u marks=%u",
		  __entry->job, __entry->gen, __entry->node, __entry->peer, __entry->color,
		  __print_symbolic(__entry->type, ACP_TRACE_TYPES),
		  __print_flags(__entry->flags, "|",
				{ ACP_FRAME_FENCE, "fence" }, { ACP_FRAME_BULK, "bulk" },
				{ ACP_FRAME_CRC, "crc" }, { ACP_FRAME_ASK, "ask" },
				{ ACP_FRAME_LAZY, "lazy" }, { ACP_FRAME_AEAD, "aead" }),
		  __entry->seq, __entry->ack, __entry->bytes, __entry->marks)
);

DEFINE_EVENT(acp_frame, acp_xmit,
	TP_PROTO(const struct acp_peer *peer, const struct acp_frame *f),
	TP_ARGS(peer, f)
);

DEFINE_EVENT(acp_frame, acp_receive,
	TP_PROTO(const struct acp_peer *peer, const struct acp_frame *f),
	TP_ARGS(peer, f)
);

/* Under the peer's lock, and so is acp_ack.  tries: how often it was sent, this time included. */
TRACE_EVENT(acp_retransmit,
	TP_PROTO(const struct acp_peer *peer, u64 seq),
	TP_ARGS(peer, seq),
	TP_STRUCT__entry(
		__field(u64, seq)
		__field(u64, oldest)
		__field(u64, rto)
		__field(u32, job)
		__field(u32, node)
		__field(u32, peer)
		__field(u32, window)
		__field(u32, flight)
		__field(u16, gen)
		__field(u8, color)
		__field(u8, tries)
		__field(u8, backoff)
	),
	TP_fast_assign(
		const struct acp_flow *flow = &peer->flow;

		__entry->seq = seq;
		__entry->oldest = flow->una;
		__entry->rto = flow->rto;
		__entry->job = peer->job->id;
		__entry->node = peer->job->me;
		__entry->peer = peer->node;
		__entry->window = flow->cong.window;
		__entry->flight = flow->flight;
		__entry->gen = peer->job->generation;
		__entry->color = peer->color;
		__entry->tries = flow->slots[seq % ACP_FRAME_WINDOW].tries;
		__entry->backoff = flow->backoff;
	),
	TP_printk("job=%u gen=%u node=%u peer=%u color=%u seq=%llu tries=%u oldest=%llu rto=%llu backoff=%u window=%u flight=%u",
		  __entry->job, __entry->gen, __entry->node, __entry->peer, __entry->color,
		  __entry->seq, __entry->tries, __entry->oldest, __entry->rto,
		  __entry->backoff, __entry->window, __entry->flight)
);

/* age: since the frame was last sent.  srtt: the smoothed round trip before this one. */
TRACE_EVENT(acp_ack,
	TP_PROTO(const struct acp_peer *peer, u64 seq, u64 now),
	TP_ARGS(peer, seq, now),
	TP_STRUCT__entry(
		__field(u64, seq)
		__field(u64, age)
		__field(u64, srtt)
		__field(u32, job)
		__field(u32, node)
		__field(u32, peer)
		__field(u32, window)
		__field(u32, flight)
		__field(u16, gen)
		__field(u8, color)
		__field(u8, tries)
	),
	TP_fast_assign(
		const struct acp_flow *flow = &peer->flow;
		const struct acp_flow_slot *slot = &flow->slots[seq % ACP_FRAME_WINDOW];

		__entry->seq = seq;
		__entry->age = now > slot->sent ? now - slot->sent : 0;
		__entry->srtt = flow->srtt;
		__entry->job = peer->job->id;
		__entry->node = peer->job->me;
		__entry->peer = peer->node;
		__entry->window = flow->cong.window;
		__entry->flight = flow->flight;
		__entry->gen = peer->job->generation;
		__entry->color = peer->color;
		__entry->tries = slot->tries;
	),
	TP_printk("job=%u gen=%u node=%u peer=%u color=%u seq=%llu tries=%u age=%llu srtt=%llu window=%u flight=%u",
		  __entry->job, __entry->gen, __entry->node, __entry->peer, __entry->color,
		  __entry->seq, __entry->tries, __entry->age, __entry->srtt, __entry->window,
		  __entry->flight)
);

TRACE_EVENT(acp_peer_state,
	TP_PROTO(const struct acp_peer *peer, u8 state, u8 status),
	TP_ARGS(peer, state, status),
	TP_STRUCT__entry(
		__field(u32, job)
		__field(u32, node)
		__field(u32, peer)
		__field(u16, gen)
		__field(u8, color)
		__field(u8, state)
		__field(u8, status)
	),
	TP_fast_assign(
		__entry->job = peer->job->id;
		__entry->node = peer->job->me;
		__entry->peer = peer->node;
		__entry->gen = peer->job->generation;
		__entry->color = peer->color;
		__entry->state = state;
		__entry->status = status;
	),
	TP_printk("job=%u gen=%u node=%u peer=%u color=%u state=%s status=%s",
		  __entry->job, __entry->gen, __entry->node, __entry->peer, __entry->color,
		  __print_symbolic(__entry->state, ACP_TRACE_STATES),
		  __print_symbolic(__entry->status, ACP_TRACE_STATUSES))
);

/*
 * What the frame says of itself, which need not be true: it is from a datagram (skb) or from a
 * header that was read (f); one of them may be NULL.  netns: inode of the network namespace
 * that dropped it.  size: of the datagram.  addr: where it came from, :: if only f is known.
 */
TRACE_EVENT(acp_drop,
	TP_PROTO(const struct acp_node *node, const struct sk_buff *skb,
		 const struct acp_frame *f, u8 reason),
	TP_ARGS(node, skb, f, reason),
	TP_STRUCT__entry(
		__field(u64, seq)
		__field(u32, netns)
		__field(u32, job)
		__field(u32, peer)
		__field(u32, size)
		__field(u16, gen)
		__field(u8, color)
		__field(u8, type)
		__field(u8, flags)
		__field(u8, reason)
		__array(u8, addr, 16)
	),
	TP_fast_assign(
		const struct acp_frame_hdr *h = skb ? header_in(skb) : NULL;

		__entry->netns = node->net->ns.inum;
		__entry->reason = reason;
		__entry->seq = h ? be64_to_cpu(h->seq) : f ? f->seq : 0;
		__entry->job = h ? be32_to_cpu(h->job) : f ? f->job : 0;
		__entry->peer = h ? be32_to_cpu(h->node) : f ? f->node : 0;
		__entry->gen = h ? be16_to_cpu(h->generation) : f ? f->generation : 0;
		__entry->color = h ? h->color : f ? f->color : 0;
		__entry->type = h ? h->type : f ? f->type : 0;
		__entry->flags = h ? h->flags : f ? f->flags : 0;
		__entry->size = skb ? size_in(skb) : acp_frame_size(f);
		if (skb)
			sender_of(skb, __entry->addr);
		else
			memset(__entry->addr, 0, sizeof(__entry->addr));
	),
	TP_printk("netns=%u job=%u gen=%u peer=%u color=%u addr=%pI6c type=%u flags=0x%x seq=%llu size=%u reason=%s",
		  __entry->netns, __entry->job, __entry->gen, __entry->peer, __entry->color,
		  __entry->addr, __entry->type, __entry->flags, __entry->seq, __entry->size,
		  __print_symbolic(__entry->reason, ACP_STATS(ACP_TRACE_REASON)
				   { 255, "" }))
);

#endif /* ACP_TRACE_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
