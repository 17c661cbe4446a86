// SPDX-License-Identifier: GPL-2.0-only
/* The flow of a peer: what is sent and when, and the ends of its incarnations.  See peer.h. */
#include "build.h"
#include "../compat.h"
#include "../job/node.h"
#include "../trace.h"
#include "peer.h"
#include "route.h"

#define SEND_BUDGET	64	/* frames built at a time */
#define RETRY_NS	(2 * NSEC_PER_MSEC)

/* Send a new frame.  Return false if there is no memory or route. */
static bool send_new(struct acp_peer *peer, struct list_head *from, struct acp_outbox *out,
		     u64 now)
{
	return acp_peer_need_slots(peer) && acp_build_new(peer, from, out, now);
}

/* Does the item have so much left that a burst may pay off? */
static bool is_long(const struct acp_peer *peer, const struct acp_item *item)
{
	return unlikely(item->out.m.size - item->out.cut > 2 * peer->mtu);
}

/* Send new frames, one or a burst.  Return their number; -ENOMEM if there is no memory or route. */
static int send_some(struct acp_peer *peer, struct acp_outbox *out, int budget, u64 now)
{
	int n = 0;

	if (is_long(peer, list_first_entry(&peer->pending, struct acp_item, link)) &&
	    acp_peer_need_slots(peer))
		n = acp_build_burst(peer, out, budget, now);
	if (n)
		return n;
	return send_new(peer, &peer->pending, out, now) ? 1 : -ENOMEM;
}

/* Retransmit a lost frame.  Return false if there is no memory or route. */
static noinline bool send_again(struct acp_peer *peer, u64 seq, struct acp_outbox *out, u64 now)
{
	acp_route_check(peer);
	if (!acp_build_again(peer, out, acp_flow_token(&peer->flow, seq), seq))
		return false;
	acp_flow_resend(&peer->flow, seq, now);
	peer->traffic.tx_retransmits++;
	acp_stat_inc(peer->job->node, tx_retransmits);
	trace_acp_retransmit(peer, seq);
	return true;
}

/* Send the next frames.  Return their number; 0 if nothing may be sent; or -ENOMEM. */
static __always_inline int send_next(struct acp_peer *peer, struct acp_outbox *out, int budget,
				     u64 now)
{
	u64 seq;

	switch (acp_flow_turn(&peer->flow, !list_empty(&peer->answers),
			      !list_empty(&peer->pending), &seq)) {
	case ACP_TURN_LOST:
		return send_again(peer, seq, out, now) ? 1 : -ENOMEM;
	case ACP_TURN_ANSWER:
		return send_new(peer, &peer->answers, out, now) ? 1 : -ENOMEM;
	case ACP_TURN_NEW:
		return send_some(peer, out, budget, now);
	default:
		return 0;
	}
}

/* Send what the window allows.  Return false if there is no memory or route. */
static bool transmit(struct acp_peer *peer, struct acp_outbox *out, u64 now)
{
	int budget = SEND_BUDGET, n = 1;

	peer->batch = NULL;
	peer->measured = false;
	while (budget && n) {
		n = send_next(peer, out, budget, now);
		if (n < 0)
			return false;
		budget -= n;
	}
	if (!budget)
		tasklet_schedule(&peer->work);
	return true;
}

/* ---- the end of a flow's incarnation ---- */

/*
 * Collect each item once: with its last frame, unless it is not yet cut completely and so on a
 * list.
 */
static void drop_frame(struct acp_peer *peer, struct acp_sent *s)
{
	if (s->piece)
		acp_peer_piece_done(s->piece, &peer->dropped);
	else
		list_splice_tail(&s->items, &peer->dropped);
}

void acp_peer_drop_all(struct acp_peer *peer, u8 status)
{
	struct acp_flow *flow = &peer->flow;
	struct sk_buff *skb;
	u64 seq;

	for (seq = flow->una; seq < flow->next; seq++)
		if (flow->slots[seq % ACP_FRAME_WINDOW].state != ACP_SLOT_ACKED)
			drop_frame(peer, acp_flow_token(flow, seq));
	list_splice_tail_init(&peer->pending, &peer->dropped);
	list_splice_tail_init(&peer->answers, &peer->dropped);
	while ((skb = skb_peek(&peer->held))) {
		acp_peer_unhold(peer, skb);
		kfree_skb(skb);
	}
	acp_failures_begin(&peer->failures);
	acp_failures_begin(&peer->refusals);
	acp_peer_free_landings(peer);
	acp_doubt_begin(&peer->doubt);
	peer->dropped_status = status;
	peer->lost = true;
	peer->wanted = false;
	tasklet_schedule(&peer->work);
}

static u32 new_epoch(u32 other)
{
	u32 epoch;

	do {
		epoch = get_random_u32();
	} while (!epoch || epoch == other);
	return epoch;
}

/* An incarnation has ended: commands that wait for what it might have brought learn of it. */
static void set_lost(struct acp_peer *peer, u8 status)
{
	acp_fates_lost(&peer->fates, status);
	/* The status first: pairs with is_lost() in word.c. */
	smp_store_release(&peer->loss, atomic64_inc_return(&peer->job->losses));
}

static void set_open(struct acp_peer *peer)
{
	acp_fates_open(&peer->fates);
	peer->opened = true;
	tasklet_schedule(&peer->work);
}

void acp_peer_failed(struct acp_peer *peer, u8 status)
{
	u32 epoch = new_epoch(peer->flow.epoch);

	acp_peer_drop_all(peer, status);
	set_lost(peer, status);
	acp_flow_init(&peer->flow, epoch, new_epoch(epoch), peer->job->limit,
		      acp_job_open_limit(peer->job));
	peer->traffic.failed++;
	acp_stat_inc(peer->job->node, flows_failed);
	trace_acp_peer_state(peer, ACP_PEER_LOST, status);
}

void acp_peer_restarted(struct acp_peer *peer, u32 epoch_peer, u64 now)
{
	acp_peer_drop_all(peer, ACP_ST_PEER);
	set_lost(peer, ACP_ST_PEER);
	acp_flow_restart(&peer->flow, epoch_peer, new_epoch(peer->flow.epoch_next), now);
	set_open(peer);
	peer->traffic.restarted++;
	acp_stat_inc(peer->job->node, flows_restarted);
	trace_acp_peer_state(peer, ACP_PEER_RESTARTED, ACP_ST_PEER);
}

void acp_peer_opened(struct acp_peer *peer)
{
	set_open(peer);
	peer->traffic.opened++;
	acp_stat_inc(peer->job->node, flows_opened);
	trace_acp_peer_state(peer, ACP_PEER_OPEN, ACP_ST_OK);
}

/* ---- the poll round over a peer ---- */

static void arm(struct acp_peer *peer, u64 now)
{
	u64 when = acp_flow_arm(&peer->flow, peer->armed);

	if (peer->retry)
		when = min_t(u64, when, now + RETRY_NS);
	if (when >= peer->armed || peer->dead)
		return;
	peer->armed = when;
	hrtimer_start(&peer->timer, ns_to_ktime(when), HRTIMER_MODE_ABS_SOFT);
}

static void ask(struct acp_peer *peer, struct acp_outbox *out, u64 now)
{
	struct acp_frame f = {};

	acp_flow_ask(&peer->flow, &f, now);
	acp_build_hello(peer, &f, out);
}

/* Return the next smaller datagram size to try for the oldest frame, or 0. */
static u32 narrower(const struct acp_peer *peer)
{
	const struct acp_flow *flow = &peer->flow;

	return acp_route_narrower(peer, acp_build_size(peer, acp_flow_token(flow, flow->una)));
}

/* Check whether the path drops long datagrams. */
static void doubt(struct acp_peer *peer, struct acp_outbox *out, u64 now)
{
	u32 width;

	if (!acp_doubt_due(&peer->flow))
		return;
	acp_route_measure(peer);
	width = narrower(peer);
	switch (acp_doubt_think(&peer->doubt, &peer->flow, width, peer->narrow)) {
	case ACP_DOUBT_NOTHING:
		break;
	case ACP_DOUBT_ASK:
		ask(peer, out, now);
		break;
	case ACP_DOUBT_NARROW:
		acp_route_narrow(peer, width, now);
		break;
	case ACP_DOUBT_WIDEN:
		peer->narrow = 0;
		acp_route_measure(peer);
		break;
	}
}

static void doubt_at_the_end(struct acp_peer *peer, u64 now)
{
	u32 width = acp_doubt_ends(&peer->doubt, &peer->flow) ? narrower(peer) : 0;

	if (width)
		acp_route_narrow(peer, width, now);
}

static void tick(struct acp_peer *peer, struct acp_outbox *out, u64 now)
{
	enum acp_flow_tick what = acp_flow_tick(&peer->flow, now);

	if (what == ACP_FLOW_RESEND) {
		peer->traffic.timeouts++;
		acp_stat_inc(peer->job->node, timeouts);
		doubt(peer, out, now);
	}
	if (acp_flow_asks(&peer->flow, what, now))
		ask(peer, out, now);
	if (what == ACP_FLOW_FAILED) {
		doubt_at_the_end(peer, now);
		acp_peer_failed(peer, peer->dst ? ACP_ST_TIMEOUT : ACP_ST_ROUTE);
	}
}

void acp_peer_process(struct acp_peer *peer, struct acp_outbox *out, u64 now)
{
	if (peer->dead)
		return;
	if (now >= peer->armed) {
		peer->armed = ~0ULL;
		tick(peer, out, now);
	}
	if (peer->flow.state == ACP_FLOW_OPEN)
		peer->wanted = false;
	if (acp_flow_open_wanted(&peer->flow, peer->wanted || acp_peer_has_items(peer), now)) {
		trace_acp_peer_state(peer, ACP_PEER_OPENING, ACP_ST_OK);
		ask(peer, out, now);
	}
	peer->retry = !transmit(peer, out, now);
	if (acp_flow_ack_now(&peer->flow))
		peer->retry |= !acp_build_ack(peer, out);
	arm(peer, now);
}
