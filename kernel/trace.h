/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints, the events acp:* of perf, trace-cmd, bpftrace and tracefs.  They trace commands,
 * their frames, and peers.
 *
 *	acp_submit	a command was taken from a ring
 *	acp_complete	the user can see that the command and all earlier ones have ended
 *	acp_xmit	a frame is sent, for the first time or again
 *	acp_retransmit	a frame is considered lost and is sent again
 *	acp_receive	an authentic frame was received
 *	acp_ack		a frame of ours was acknowledged
 *	acp_peer_state	the flow to a peer is opening, open, lost, or restarted
 *	acp_drop	a frame was dropped; the reason is the name of its counter (which also
 *			counts dropped messages of barriers: those have no event)
 *
 * Tracepoints only observe: stats.h has the counters.  A disabled tracepoint costs one no-op
 * instruction.  Fields with the same name have the same meaning:
 *
 *	job, gen	id and generation of the job
 *	node		number of this node in the job; peer: number of the other node
 *	rank, ticket	rank that issued the command, and number of the command
 *	color		color of both ends of the flow
 *	seq		number of a DATA frame in its flow; 0 for other frames
 *	bytes		of a command: bytes that it copies or operates on; of a frame: the body
 *	times		ns
 *
 * Tracepoints do not show the messages of a frame; captures do: tools/observe/acp.lua.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM acp

#if !defined(ACP_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define ACP_TRACE_H

#include <linux/tracepoint.h>
#include "job/node.h"

#ifndef ACP_TRACE_ONCE
#define ACP_TRACE_ONCE
enum acp_trace_state {
	ACP_PEER_OPENING,
	ACP_PEER_OPEN,
	ACP_PEER_LOST,		/* status has the reason */
	ACP_PEER_RESTARTED,	/* and open again */
};

#define ACP_PLAN_REFUSED	255	/* beside enum acp_plan: the entry is invalid */
#endif

#define ACP_TRACE_OPS						\
	E(ACP_OP_COPY, "copy") E(ACP_OP_CAS4, "cas4") E(ACP_OP_CAS8, "cas8")	\
	E(ACP_OP_SWAP4, "swap4") E(ACP_OP_SWAP8, "swap8")			\
	E(ACP_OP_ADD4, "add4") E(ACP_OP_ADD8, "add8")				\
	E(ACP_OP_XOR4, "xor4") E(ACP_OP_XOR8, "xor8")				\
	E(ACP_OP_OR4, "or4") E(ACP_OP_OR8, "or8")				\
	E(ACP_OP_AND4, "and4") E(ACP_OP_AND8, "and8")				\
	E(ACP_OP_STRIDED, "strided") E(ACP_OP_COPY_SET, "copy_set")		\
	E(ACP_OP_COPY_ADD, "copy_add") E(ACP_OP_INDIRECT, "indirect")		\
	E(ACP_OP_APPEND, "append") E(ACP_OP_SEND, "send")			\
	E(ACP_OP_SCATTER, "scatter") E(ACP_OP_GATHER, "gather")			\
	E(ACP_OP_WAIT, "wait") E(ACP_OP_REDUCE, "reduce")			\
	E(ACP_OP_ACCUMULATE, "accumulate")					\
	E(ACP_OP_ACCUMULATE_SET, "accumulate_set")				\
	LAST(ACP_OP_ACCUMULATE_ADD, "accumulate_add")

#define ACP_TRACE_STATUSES						\
	E(ACP_ST_OK, "ok") E(ACP_ST_OP, "op") E(ACP_ST_GA, "ga") E(ACP_ST_STAG, "stag")	\
	E(ACP_ST_RANGE, "range") E(ACP_ST_ACCESS, "access") E(ACP_ST_ALIGN, "align")	\
	E(ACP_ST_RANK, "rank") E(ACP_ST_NOMEM, "nomem") E(ACP_ST_TIMEOUT, "timeout")	\
	E(ACP_ST_PEER, "peer") E(ACP_ST_ROUTE, "route") E(ACP_ST_ORDER, "order")	\
	E(ACP_ST_ABORT, "abort") E(ACP_ST_AGAIN, "again") LAST(ACP_ST_CHAIN, "chain")

#define ACP_TRACE_PLANS							\
	E(ACP_PLAN_LOCAL, "local") E(ACP_PLAN_SEND, "send")		\
	E(ACP_PLAN_DELEGATE, "delegate") LAST(ACP_PLAN_REFUSED, "refused")

#define ACP_TRACE_TYPES							\
	E(ACP_FRAME_DATA, "data") E(ACP_FRAME_ACK, "ack") LAST(ACP_FRAME_HELLO, "hello")

#define ACP_TRACE_STATES						\
	E(ACP_PEER_OPENING, "opening") E(ACP_PEER_OPEN, "open")		\
	E(ACP_PEER_LOST, "lost") LAST(ACP_PEER_RESTARTED, "restarted")

/* Export the enum values: tools need them to decode the symbolic names in formats. */
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
	TP_PROTO(const struct acp_queue *queue, const struct acp_cmd *cmd, u8 status),
	TP_ARGS(queue, cmd, status),
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
		__entry->job = queue->job->id;
		__entry->node = queue->job->me;
		__entry->rank = queue->origin;
		__entry->peer = far ? cmd->step.node : queue->job->me;
		__entry->gen = queue->job->generation;
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
	TP_PROTO(const struct acp_queue *queue, u64 ticket, u8 status),
	TP_ARGS(queue, ticket, status),
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
		__entry->job = queue->job->id;
		__entry->node = queue->job->me;
		__entry->rank = queue->origin;
		__entry->gen = queue->job->generation;
		__entry->status = status;
	),
	TP_printk("job=%u gen=%u node=%u rank=%u ticket=%llu status=%s",
		  __entry->job, __entry->gen, __entry->node, __entry->rank, __entry->ticket,
		  __print_symbolic(__entry->status, ACP_TRACE_STATUSES))
);

/* flags has all flags but ACP_FRAME_MARKS, which are a 2-bit count: marks. */
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

/*
 * acp_retransmit and acp_ack: peer->lock is held. tries: transmissions so far, including this one.
 */
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

/* age: time since the last transmission of the frame. srtt: smoothed RTT before this sample. */
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
 * The fields show what the frame claims, which may be false.  They come from a datagram (skb) or
 * from a decoded header (f); one of them may be NULL. netns: inode of the network namespace that
 * dropped the frame. size: bytes of the datagram's payload. addr: source address, or :: if only f
 * is known.
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
