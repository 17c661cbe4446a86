// SPDX-License-Identifier: GPL-2.0-only
/* Frames from other nodes: their messages are validated and executed, see station.h. */
#include <linux/slab.h>
#include "answer.h"
#include "barrier.h"
#include "chain.h"
#include "copies.h"
#include "execute.h"
#include "grant.h"
#include "indirect.h"
#include "mailbox.h"
#include "matching.h"
#include "ping.h"
#include "poller.h"
#include "../queue/queue.h"
#include "strided.h"
#include "../drop.h"

/* A command of a rank of this node has ended somewhere.  BH is off, so no queue goes away (RCU). */
static void complete_own(struct acp_job *job, u32 rank, u64 ticket, u8 status)
{
	struct acp_queue *queue = acp_job_queue(job, rank, ticket);

	if (!queue || !acp_queue_complete(queue, ticket, status))
		acp_stat_inc(job->node, stray_done);
}

void acp_station_copied(struct acp_job *job, const struct acp_msg *m, u8 status,
			struct acp_item *done, struct acp_peer *peer)
{
	status = acp_execute_end(job, m, status);
	if (done)
		acp_answer(NULL, peer, done, m, status);
	else
		complete_own(job, m->origin, m->ticket, status);
	acp_station_idle(job);
}

/*
 * Did a command fail that this message depends on?  Of a message into a mailbox, only the first
 * piece asks: the others follow it.
 */
static bool depends_failed(struct acp_arriving *f, const struct acp_msg *m)
{
	struct acp_queue *queue;
	u64 first, last;
	bool failed;

	if (!acp_msg_waits(m, &first, &last) ||
	    (acp_msg_is_behind(m) && m->b && m->type == ACP_MSG_DATA))
		return false;
	if (acp_job_node_of(f->job, m->origin) != f->job->me)
		return acp_peer_depends(f->peer, f->epoch, m);
	rcu_read_lock();
	queue = acp_job_queue(f->job, m->origin, m->ticket);
	/* Bound the loop: no more commands can be in flight. */
	if (m->depends > ACP_INFLIGHT)
		first = m->ticket - ACP_INFLIGHT;
	failed = queue && acp_queue_failed(queue, first, last);
	rcu_read_unlock();
	return failed;
}

/* Write a payload that may be in many fragments. */
static u8 apply_bytes(struct acp_region *r, u64 offset, struct sk_buff *skb,
		      const struct acp_frame_cb *cb, u32 at, u32 length)
{
	struct acp_bytes from = cb->at;
	u32 word;

	from.at += at;
	if (length != sizeof(word))
		return acp_region_write_skb(r, offset, skb, from, length) ? ACP_ST_RANGE :
									    ACP_ST_OK;
	/* They are in the skb, but perhaps in memory of a device. */
	if (acp_bytes_copy(skb, &from, &word, sizeof(word)))
		return ACP_ST_RANGE;
	acp_region_write(r, offset, &word, sizeof(word));
	return ACP_ST_OK;
}

/* Write a payload: tagged bytes are contiguous. */
static u8 write_payload(struct acp_arriving *f, struct acp_region *r, u64 offset,
			struct sk_buff *skb, u32 at, u32 length)
{
	if (at + length > f->cb->tagged)
		return apply_bytes(r, offset, skb, f->cb, at, length);
	acp_region_write(r, offset, f->cb->body + at, length);
	return ACP_ST_OK;
}

/* Write what there is room for of the bytes of a message, or of a piece of an indirect copy. */
static u8 apply_to_place(struct acp_arriving *f, const struct acp_msg *m, struct sk_buff *skb,
			 u32 at, const struct acp_place *place, u64 from)
{
	u64 room = place->room > from ? place->room - from : 0;
	u32 length = min_t(u64, m->length, room);
	struct acp_job *job = f->job;
	struct acp_region *r;
	u8 status;
	u64 dst;

	if (!length)
		return ACP_ST_OK;
	dst = place->dst + from;
	r = acp_region_cached(job, dst, length, m->origin, ACP_ACCESS_WRITE) ?:
	    acp_region_get_bh(job, dst, length, m->origin, ACP_ACCESS_WRITE, &status);
	if (!r)
		return status;
	status = write_payload(f, r, acp_ga_offset(&job->ga, dst), skb, at, length);
	acp_region_put(r);
	return status;
}

/* A message that is in one piece, and goes to a match list. */
static noinline u8 apply_matched(struct acp_arriving *f, const struct acp_msg *m,
				 struct sk_buff *skb, u32 at, u32 number)
{
	struct acp_match_list *list = acp_matching_find(f->job, m->dst, number);
	struct acp_place place;
	u8 status;

	/* It cannot come again: its entry would not be granted any more. */
	if ((m->flags & ACP_MSG_GRANTED) && f->lone_put && !acp_answer_can(f)) {
		f->refused = true;
		return ACP_ST_NOMEM;
	}
	status = acp_matching_begin(list, m, m->c, m->a, &place);
	if (status)
		return status;
	status = apply_to_place(f, m, skb, at, &place, 0);
	/* Without memory for the answer, it has no effect: it comes again. */
	if (unlikely(status) && f->lone_put && !acp_answer_can(f)) {
		acp_matching_undo(list, &place);
		f->refused = true;
		return status;
	}
	return acp_matching_end(list, &place, status);
}

/* A message that is in one piece. */
static u8 apply_message(struct acp_arriving *f, const struct acp_msg *m, struct sk_buff *skb,
			u32 at)
{
	struct acp_region *r;
	u64 offset;
	u8 status;

	r = acp_mailbox_reserve(f->job, m, m->c, &offset, &status);
	if (!r)
		return status ?: apply_matched(f, m, skb, at, offset);
	status = write_payload(f, r, offset, skb, at, m->length);
	acp_mailbox_describe(r, offset, m->origin, m->a,
			     m->c << 2 | (status ? ACP_RECORD_VOID : ACP_RECORD_READY));
	acp_region_put(r);
	return status;
}

/* A piece of a copy to where a pointer of the receiver says. */
static noinline u8 apply_indirect(struct acp_arriving *f, const struct acp_msg *m,
				  struct sk_buff *skb, u32 at)
{
	struct acp_place place;
	bool busy = false;
	u8 status;

	if (m->op == ACP_OP_SEND && m->length == m->c)
		return apply_message(f, m, skb, at);
	status = acp_indirect_landing(f->peer, f->epoch, m, &place, &busy);
	/* Only a piece that is the single message of its frame can be refused. */
	if (busy && f->count > 1)
		return ACP_ST_NOMEM;
	if (busy)
		f->refused = true;
	if (busy || status)
		return status;
	if (m->op == ACP_OP_SCATTER)
		return acp_chain_apply(f->job, place.chain, m, skb, f->cb->at.at + at);
	return apply_to_place(f, m, skb, at, &place, m->b);
}

/* Can a piece that has been applied make the end of its command fail? */
static bool may_fail_later(const struct acp_arriving *f, const struct acp_msg *m)
{
	return (m->flags & ACP_MSG_LAST) && f->lone_put &&
	       (acp_op_signals(m->op) || READ_ONCE(f->peer->failures.known));
}

/*
 * Numbers that are combined.  Their frame must not be refused once it has changed them: they would
 * be combined again when it comes again.
 */
static noinline u8 apply_numbers(struct acp_arriving *f, const struct acp_msg *m,
				 struct sk_buff *skb, u32 at)
{
	const struct acp_frame_cb *cb = f->cb;
	struct acp_pieces from = { .at = cb->at, .length = m->length };
	struct acp_job *job = f->job;
	struct acp_region *r;
	u8 status;
	int err;

	if (may_fail_later(f, m) && !acp_answer_can(f)) {
		f->refused = true;
		return ACP_ST_NOMEM;
	}
	r = acp_region_get_bh(job, m->dst, m->length, m->origin, ACP_ACCESS_ATOMIC, &status);
	if (!r)
		return status;
	from.at.at += at;
	if (at + m->length <= cb->tagged)
		from.data = cb->body + at;
	err = acp_region_accumulate(r, acp_ga_offset(&job->ga, m->dst), skb, from, m->a);
	acp_region_put(r);
	return err ? ACP_ST_RANGE : ACP_ST_OK;
}

static u8 apply_data(struct acp_arriving *f, const struct acp_msg *m, struct sk_buff *skb, u32 at)
{
	const struct acp_frame_cb *cb = f->cb;
	struct acp_job *job = f->job;
	struct acp_region *r;
	u64 word;
	u8 status;

	/* First: what is behind a message must not pass those that this one is behind. */
	if (acp_msg_is_behind(m) && depends_failed(f, m))
		return ACP_ST_AGAIN;
	if (m->flags & ACP_MSG_FAIL)
		return m->status;
	if (!acp_msg_is_behind(m) && depends_failed(f, m))
		return ACP_ST_ORDER;
	if (!acp_ga_valid(&job->ga, m->dst))
		return ACP_ST_GA;
	if (unlikely(m->op)) {
		if (m->op == ACP_OP_STRIDED)
			return acp_strided_apply(job, m, skb, cb->at.at + at);
		if (acp_op_indirect(m->op))
			return apply_indirect(f, m, skb, at);
		if (acp_op_accumulates(m->op))
			return apply_numbers(f, m, skb, at);
	}
	if (unlikely(!m->length))
		return ACP_ST_OK;
	r = acp_region_get_bh(job, m->dst, m->length, m->origin, ACP_ACCESS_WRITE, &status);
	if (!r)
		return status;
	if (m->length == sizeof(word) && at + sizeof(word) <= cb->tagged) {
		memcpy(&word, cb->body + at, sizeof(word));
		acp_region_write_word(r, acp_ga_offset(&job->ga, m->dst), word);
	} else {
		status = apply_bytes(r, acp_ga_offset(&job->ga, m->dst), skb, cb, at, m->length);
	}
	acp_region_put(r);
	return status;
}

/* All data of a command has arrived, or will not arrive: end the command. */
static void end_command(struct acp_arriving *f, const struct acp_msg *m, u32 origin, u8 status)
{
	struct acp_job *job = f->job;
	struct acp_peer *to;

	if (unlikely(m->op) && !status)
		status = acp_execute_flag(job, m);
	if (unlikely(acp_msg_in_turn(m)) && !status)
		acp_peer_found_room(f->peer, f->epoch, m);
	switch (acp_end_tell(job->me, f->peer->node, origin, status)) {
	case ACP_TELL_US:
		complete_own(job, m->origin, m->ticket, status);
		break;
	case ACP_TELL_FAILED:
		acp_answer_failure(f, m, status);
		break;
	case ACP_TELL_ORIGIN:
		to = acp_peer_find(job, origin, f->peer->color);
		if (to)
			acp_answer(f, to, acp_answer_item(f), m, status);
		break;
	case ACP_TELL_NOBODY:
		break;
	}
}

/* Can the last piece of a copy end the memory of where an indirect copy went? */
static bool may_have_landed(const struct acp_msg *m)
{
	return acp_op_indirect(m->op) ? m->b : m->flags & ACP_MSG_FAIL;
}

static bool take_data(struct acp_arriving *f, const struct acp_msg *m, struct sk_buff *skb, u32 at)
{
	u8 status = apply_data(f, m, skb, at);
	bool landed;

	if (f->refused)
		return false;
	if (m->flags & ACP_MSG_LAST) {
		status = acp_peer_take_fail(f->peer, f->epoch, m) ?: status;
		landed = unlikely(may_have_landed(m));
		/* The receiver must see a message before the sender learns that it is there. */
		if (landed && !status) {
			status = acp_indirect_end(f->peer, f->epoch, m, status);
			landed = false;
		}
		end_command(f, m, f->count == 1 ? f->end_node :
			    acp_job_node_of(f->job, m->origin), status);
		/* If the frame is refused, its piece comes again, and goes to the same place. */
		if (landed && !f->refused)
			acp_indirect_end(f->peer, f->epoch, m, status);
		return !f->refused;
	}
	if (status)
		return acp_peer_fail(f->peer, f->epoch, m, status, 0);
	return true;
}

/* Words of many commands.  They have no earlier pieces and depend on nothing. */
static void take_words(struct acp_arriving *f, struct acp_msg *m, const struct acp_msg_word *w)
{
	u32 count = acp_msg_count(m), origin = acp_job_node_of(f->job, m->origin);
	const struct acp_ga_layout *l = &f->job->ga;
	struct acp_region *kept = NULL, *r;
	u64 word;
	u8 status;

	for (; count--; w++, m->ticket++) {
		m->dst = be64_to_cpu(w->dst);
		status = ACP_ST_GA;
		r = NULL;
		if (acp_ga_valid(l, m->dst))
			r = acp_region_of_word(f->job, m->dst, m->origin, ACP_ACCESS_WRITE, &kept,
					       &status);
		if (r) {
			memcpy(&word, w->data, sizeof(word));
			acp_region_write_word(r, acp_ga_offset(l, m->dst), word);
		}
		end_command(f, m, origin, status);
	}
	if (kept)
		acp_region_put(kept);
}

/*
 * Short messages of one rank into one mailbox, together or one by one.  None is refused: there are
 * two or more in the frame.
 */
static noinline void take_messages(struct acp_arriving *f, const struct acp_msg *m,
				   const struct acp_msg_word *w, struct sk_buff *skb, u32 at)
{
	u32 count = acp_msg_count(m), origin = acp_job_node_of(f->job, m->origin), i;
	struct acp_msg one = *m;
	bool done;

	one.type = ACP_MSG_DATA;
	one.flags |= ACP_MSG_LAST;
	one.length = sizeof(w->data);
	one.c = sizeof(w->data);
	done = acp_ga_valid(&f->job->ga, m->dst) &&
	       !(acp_msg_is_behind(m) && depends_failed(f, &one)) &&
	       acp_mailbox_put_words(f->job, m, w, count);
	for (i = 0; i < count; i++) {
		one.a = be64_to_cpu(w[i].tag);
		if (done)
			end_command(f, &one, origin, ACP_ST_OK);
		else
			take_data(f, &one, skb, at + i * sizeof(*w) + sizeof(w->tag));
		one.ticket++;
		if (!(one.flags & ACP_MSG_ORDERED))
			continue;
		one.flags |= ACP_MSG_BEHIND;
		one.depends = 1;
		one.upto = 1;
	}
}

static u8 check_cmd(struct acp_arriving *f, const struct acp_msg *m)
{
	struct acp_job *job = f->job;
	u8 status = m->flags & ACP_MSG_FAIL ? m->status :
					      acp_cmd_check(&job->ga, job->colors, m);

	if (!status && acp_job_ga_node(job, m->src) != job->me)
		status = ACP_ST_RANK;
	if (unlikely(m->op >= ACP_OP_STRIDED) && !status)
		status = acp_job_check_nodes(job, m);
	if (!status && depends_failed(f, m))
		status = ACP_ST_ORDER;
	return status;
}

/* A delegated command whose result stays on this node. */
static void take_local(struct acp_arriving *f, struct acp_msg *m)
{
	struct acp_item *item;
	u8 status = ACP_ST_OK;

	if (unlikely(m->op >= ACP_OP_INDIRECT) && m->op < ACP_OP_REDUCE)
		status = acp_indirect_direct(f->job, m);
	if (!status && !acp_cmd_long(m))
		status = acp_execute_local(f->job, m);
	if (status) {
		acp_answer_failure(f, m, status);
		return;
	}
	item = acp_answer_item(f);
	item->requester = f->peer;
	atomic_inc(&f->peer->delegated);
	if (!acp_cmd_long(m))
		acp_answer(f, f->peer, item, m, ACP_ST_OK);
	else if (!acp_copies_start(f->job, m, NULL, item, f->peer))
		acp_answer(f, f->peer, item, m, acp_execute_end(f->job, m, ACP_ST_NOMEM));
}

static void take_cmd(struct acp_arriving *f, struct acp_msg *m)
{
	struct acp_job *job = f->job;
	u8 status = check_cmd(f, m);
	struct acp_peer *to;
	struct acp_item *item;
	u32 dst;

	acp_stat_inc(job->node, delegated);
	if (status) {
		acp_answer_failure(f, m, status);
		return;
	}
	/* Once a message has taken a posted receive, its frame cannot be refused. */
	if (unlikely(m->op == ACP_OP_SEND) && !acp_answer_can(f)) {
		f->refused = true;
		return;
	}
	dst = acp_job_ga_node(job, m->dst);
	if (dst == job->me) {
		take_local(f, m);
		return;
	}
	to = acp_peer_get(job, dst, acp_ga_color(&job->ga, m->dst));
	if (!to) {
		acp_answer_failure(f, m, ACP_ST_NOMEM);
		return;
	}
	item = acp_answer_item(f);
	acp_out_forward(&item->out, m);
	status = acp_execute_data(job, &item->out, &f->batch);
	if (status) {
		acp_item_free(item);
		f->spare++;
		acp_answer_failure(f, m, status);
		return;
	}
	item->requester = f->peer;
	atomic_inc(&f->peer->delegated);
	acp_peer_send(to, item, 0);
	acp_answer_soon(f, to);
}

/* A message asks whether its bytes may be sent.  Without effect, if it is refused. */
static void take_ask(struct acp_arriving *f, const struct acp_msg *m)
{
	u8 status = m->flags & ACP_MSG_FAIL ? m->status : ACP_ST_OK;

	/* As in apply_data(). */
	if ((acp_msg_is_behind(m) || !status) && depends_failed(f, m))
		status = acp_msg_is_behind(m) ? ACP_ST_AGAIN : ACP_ST_ORDER;
	if (!status)
		status = acp_mailbox_ask(f->job, m, f->epoch);
	if (status)
		acp_answer_failure(f, m, status);
	else if (acp_msg_in_turn(m))
		acp_peer_found_room(f->peer, f->epoch, m);
}

static void take_grant(struct acp_arriving *f, const struct acp_msg *m)
{
	struct acp_item *item;

	f->refused = !(m->flags & ACP_MSG_FAIL) && !acp_answer_can(f);
	if (m->flags & ACP_MSG_FAIL)
		acp_matching_gone(f->job, m);
	if ((m->flags & ACP_MSG_FAIL) || f->refused || acp_grant_take(f->job, m))
		return;
	item = acp_answer_return(f, m, ACP_MSG_FAIL, ACP_ST_RANK);
	acp_answer_hold(f, item);
	acp_peer_send(f->peer, item, 0);
}

/* A probe.  The answer counts as a command in flight for the peer. */
static void take_ping(struct acp_arriving *f, const struct acp_msg *m)
{
	struct acp_item *item;

	if (m->flags & ACP_MSG_ANSWER) {
		acp_ping_answered(f->peer, m);
		return;
	}
	item = acp_answer_return(f, m, ACP_MSG_ANSWER, ACP_ST_OK);
	item->out.m.origin = f->job->me;
	item->requester = f->peer;
	atomic_inc(&f->peer->delegated);
	acp_peer_send(f->peer, item, 0);
}

static bool message_ok(struct acp_arriving *f, const struct acp_msg *m)
{
	struct acp_job *job = f->job;
	u32 node;

	if (m->type == ACP_MSG_BARRIER || m->type == ACP_MSG_PING)
		return m->origin == f->peer->node;
	if (m->origin >= job->ga.nprocs)
		return false;
	if (m->type == ACP_MSG_GRANT)
		return acp_grant_ok(job, m, f->peer->node);
	node = acp_job_node_of(job, m->origin);
	if (m->type == ACP_MSG_DONE)
		return node == job->me;
	return m->type == ACP_MSG_DATA || m->type == ACP_MSG_WORDS || node == f->peer->node;
}

/* Does the message cause one to be sent that counts as in flight for the peer? */
static bool is_work(const struct acp_msg *m)
{
	return m->type == ACP_MSG_CMD ||
	       (m->type == ACP_MSG_PING && !(m->flags & ACP_MSG_ANSWER));
}

/* Number of items needed at most to report the ends of this message's commands to their origin. */
static int end_needs(struct acp_arriving *f, const struct acp_msg *m)
{
	u32 node;

	if (m->type == ACP_MSG_DATA && !(m->flags & ACP_MSG_LAST))
		return 0;
	node = acp_job_node_of(f->job, m->origin);
	f->end_node = node;
	if (node == f->job->me)
		return 0;
	f->lone_put = node == f->peer->node;
	if (!f->lone_put)
		f->refused |= !acp_peer_get(f->job, node, f->peer->color);
	return acp_msg_count(m);
}

/*
 * Check that all messages are well formed.  Returns the number of items they may need, or -1;
 * *cmds: how many are commands.
 */
static int validate(struct acp_arriving *f, u32 length, u32 tagged, u32 *cmds)
{
	struct acp_msg *m = &f->first, other acp_uncleared;
	u32 at, n;
	bool piece = false;
	int needs = 0;

	for (at = 0; at < length; at += n, m = &other) {
		if (tagged <= at)
			return -1;
		n = acp_msg_decode(m, f->cb->body + at, length - at, tagged - at);
		if (!n || !message_ok(f, m))
			return -1;
		f->count += acp_msg_count(m);
		if (f->count > ACP_FRAME_MSGS)
			return -1;
		/* The payload begins where the tagged bytes end. */
		if (tagged < length && acp_msg_head(m) != tagged)
			return -1;
		if (!at)
			f->first_size = n;
		piece |= m->type == ACP_MSG_DATA && !(m->flags & ACP_MSG_LAST);
		if (m->type == ACP_MSG_DATA || m->type == ACP_MSG_WORDS) {
			needs += end_needs(f, m);
		} else if (is_work(m)) {
			++*cmds;
			needs++;
		} else if (m->type == ACP_MSG_ASK || m->type == ACP_MSG_GRANT) {
			needs++;
		}
	}
	/* A piece is alone in its frame: if it fails, the frame may be refused. */
	if (piece && f->count > 1)
		return -1;
	/* It needs an answer only if it fails, and then has no effect. */
	f->lone_put &= f->count == 1;
	return f->lone_put ? 0 : needs;
}

static const struct acp_msg_word *words_of(const struct acp_arriving *f, const struct acp_msg *m,
					   u32 at)
{
	return (const void *)f->cb->body + at + acp_msg_head(m);
}

static bool apply(struct acp_arriving *f, struct sk_buff *skb, u32 length, u32 tagged)
{
	struct acp_msg *m = &f->first, other acp_uncleared;
	u32 at, n = f->first_size;

	for (at = 0; at < length; at += n) {
		if (at) {
			m = &other;
			n = acp_msg_decode(m, f->cb->body + at, length - at, tagged - at);
		}
		switch (m->type) {
		case ACP_MSG_DATA:
			if (!take_data(f, m, skb, at + acp_msg_head(m) + f->gap))
				return false;
			break;
		case ACP_MSG_CMD:
			take_cmd(f, m);
			break;
		case ACP_MSG_DONE:
			complete_own(f->job, m->origin, m->ticket, m->status);
			break;
		case ACP_MSG_BARRIER:
			acp_barrier_arrived(f->job, m);
			break;
		case ACP_MSG_PING:
			take_ping(f, m);
			break;
		case ACP_MSG_ASK:
			take_ask(f, m);
			break;
		case ACP_MSG_GRANT:
			take_grant(f, m);
			break;
		case ACP_MSG_WORDS:
			if (unlikely(m->op))
				take_messages(f, m, words_of(f, m, at), skb, at + acp_msg_head(m));
			else
				take_words(f, m, words_of(f, m, at));
			break;
		}
		if (f->refused)
			return false;
	}
	return true;
}

/*
 * A lone DATA message that succeeds, of a command of the sending node, or of one of ours that asked
 * for the data.  Returns false, with nothing done, for anything else.
 */
static bool take_lone(struct acp_peer *peer, const struct acp_frame_cb *cb)
{
	const struct acp_msg_lone *lone = (const void *)cb->body;
	struct acp_job *job = peer->job;
	u32 origin, node;
	struct acp_region *r;
	u64 dst, ticket, word;

	if (cb->length != sizeof(*lone) || cb->tagged != sizeof(*lone) ||
	    lone->h.word != ACP_MSG_LONE || lone->h.length != cpu_to_be32(sizeof(lone->data)) ||
	    READ_ONCE(peer->failures.known))
		return false;
	origin = be32_to_cpu(lone->h.origin);
	dst = be64_to_cpu(lone->dst);
	if (origin >= job->ga.nprocs)
		return false;
	node = acp_job_node_of(job, origin);
	if (node != peer->node && node != job->me)
		return false;
	r = acp_region_cached(job, dst, sizeof(word), origin, ACP_ACCESS_WRITE);
	if (!r)
		return false;
	ticket = be64_to_cpu(lone->h.ticket);
	memcpy(&word, lone->data, sizeof(word));
	acp_region_write_word(r, acp_ga_offset(&job->ga, dst), word);
	acp_region_put(r);
	if (node == job->me)
		complete_own(job, origin, ticket, ACP_ST_OK);
	return true;
}

/* Any other frame, or one that fails. */
static noinline enum acp_arrived take_any(struct acp_peer *peer, u32 epoch, struct sk_buff *skb,
					  const struct acp_frame_cb *cb)
{
	u32 length = cb->length, tagged = cb->tagged;
	enum acp_arrived verdict = ACP_APPLIED;
	struct acp_arriving f acp_uncleared;
	u32 cmds = 0;
	int needs;

	/* The rest, which is mostly the first message, is filled later. */
	memset(&f, 0, offsetof(struct acp_arriving, batch));
	acp_batch_init(&f.batch);
	f.peer = peer;
	f.job = peer->job;
	f.cb = cb;
	f.epoch = epoch;
	/* The payload of a lone message begins behind the tagged bytes and possibly a checksum. */
	if (tagged < length) {
		f.gap = (tagged - sizeof(struct acp_msg_data)) % sizeof(struct acp_msg_more);
		tagged -= f.gap;
		length -= f.gap;
	}
	needs = validate(&f, length, tagged, &cmds);
	if (needs < 0)
		return ACP_MALFORMED;
	if (!acp_delegated_fit(atomic_read(&peer->delegated), cmds)) {
		acp_drop(f.job->node, skb, NULL, ACP_STAT_drop_busy);
		return ACP_REFUSED;
	}
	/* Only the single message of a frame is refused by apply(), without effect. */
	if (f.refused || !acp_peer_pays_delegated(peer, cmds) || !acp_answer_reserve(&f, needs) ||
	    !apply(&f, skb, length, tagged)) {
		acp_drop(f.job->node, skb, NULL, ACP_STAT_drop_nomem);
		verdict = ACP_REFUSED;
	} else if (f.pending) {
		verdict = ACP_PENDING;
		acp_arrival_put(f.arrival);
		f.arrival = NULL;
	}
	kfree(f.arrival);
	acp_batch_flush(&f.batch);
	return verdict;
}

enum acp_arrived acp_station_arrived(struct acp_peer *peer, u32 epoch, struct sk_buff *skb,
				     const struct acp_frame_cb *cb)
{
	return take_lone(peer, cb) ? ACP_APPLIED : take_any(peer, epoch, skb, cb);
}
