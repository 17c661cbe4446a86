// SPDX-License-Identifier: GPL-2.0-only
/*
 * A peer: its flow (core/flow), items that wait to be sent, and frames that came too early.  Items
 * become frames (build.h), and frames become arrivals at the station.
 *
 * The work that a poll round over the network's events leaves (acknowledgements, sending what the
 * window now allows, timeouts) is done after a frame; or, once for all frames of a GSO batch, by
 * the peer's tasklet.
 *
 * Locking: peer->lock (bh) protects the flow and the queues of a peer.  It is dropped around every
 * call to the station and before a datagram is handed to the network, and nests only in that of a
 * match list, which sends grants.
 * Where bottom halves are off anyway it is taken with spin_lock().
 */
#include <linux/net.h>
#include <net/inet_ecn.h>
#include "build.h"
#include "../compat.h"
#include "../exec/event.h"
#include "../job/node.h"
#include "../netlink/notify.h"
#include "../queue/budget.h"
#include "../drop.h"
#include "../trace.h"
#include "peer.h"
#include "skbs.h"
#include "tx.h"
#include "../upcall.h"

#define AT_ONCE		256	/* bytes of messages */

/* Report to the ranks here what became of the peer.  Without the lock. */
static void tell(struct acp_peer *peer, struct acp_fates told)
{
	struct acp_event_record record = { .node = peer->node, .color = peer->color };

	if (told.lost) {
		record.type = ACP_EVENT_DOWN;
		record.status = told.status;
		acp_event_add(peer->job, &record);
		acp_nl_tell_node(peer, ACP_NL_EVENT_NODE_LOST);
	}
	if (told.back) {
		record.type = ACP_EVENT_UP;
		record.status = ACP_ST_OK;
		acp_event_add(peer->job, &record);
		acp_nl_tell_node(peer, ACP_NL_EVENT_NODE_BACK);
	}
}

static enum hrtimer_restart timer_fired(struct hrtimer *timer)
{
	struct acp_peer *peer = container_of(timer, struct acp_peer, timer);

	tasklet_schedule(&peer->work);
	return HRTIMER_NORESTART;
}

u32 acp_peer_send(struct acp_peer *peer, struct acp_item *item, u32 within)
{
	u32 epoch;

	spin_lock(&peer->lock);
	epoch = peer->flow.epoch;
	if (peer->dead) {
		acp_items_add(&peer->dropped, item);
		peer->dropped_status = ACP_ST_ABORT;
	} else if (!acp_flow_lasts(&peer->flow, within)) {
		acp_items_add(&peer->dropped, item);
		tasklet_schedule(&peer->work);
		/* The item belonged to that incarnation, and so does what is fenced behind it. */
		epoch = within;
	} else {
		if (item->queue && item->out.m.type == ACP_MSG_CMD)
			acp_flow_expect_sent(&peer->flow);
		acp_items_add(item->arrival ? &peer->answers : &peer->pending, item);
	}
	spin_unlock(&peer->lock);
	return epoch;
}

/*
 * Queue items as if they had been sent when the caller read @epoch: if that incarnation has ended
 * since, it would have dropped them.
 */
static void add_burst(struct acp_peer *peer, struct list_head *items, u32 epoch)
{
	if (likely(!peer->dead && epoch == peer->flow.epoch)) {
		list_splice_tail(items, &peer->pending);
		return;
	}
	list_splice_tail(items, &peer->dropped);
	if (peer->dead)
		peer->dropped_status = ACP_ST_ABORT;
	else
		tasklet_schedule(&peer->work);
}

void acp_peer_send_burst(struct acp_peer *peer, struct list_head *items, u32 epoch)
{
	spin_lock(&peer->lock);
	add_burst(peer, items, epoch);
	spin_unlock(&peer->lock);
}

/* Send what is waiting, after adding a burst of items, if there is one. */
static __always_inline void flush(struct acp_peer *peer, struct list_head *burst, u32 epoch)
{
	struct acp_outbox out = {};

	spin_lock(&peer->lock);
	if (burst)
		add_burst(peer, burst, epoch);
	acp_peer_process(peer, &out, acp_now());
	spin_unlock(&peer->lock);
	acp_tx(peer, &out);
}

void acp_peer_flush_burst(struct acp_peer *peer, struct list_head *items, u32 epoch)
{
	flush(peer, items, epoch);
}

void acp_peer_flush(struct acp_peer *peer)
{
	flush(peer, NULL, 0);
}

u32 acp_peer_expect(struct acp_peer *peer)
{
	u32 epoch;

	spin_lock(&peer->lock);
	acp_flow_expect(&peer->flow, 1, peer->flow.expect ? 0 : acp_now());
	epoch = peer->flow.epoch;
	/* Only a timer notices silence, and only on an open flow. */
	if (peer->flow.state == ACP_FLOW_CLOSED ||
	    acp_flow_deadline(&peer->flow) < peer->armed)
		tasklet_schedule(&peer->work);
	spin_unlock(&peer->lock);
	return epoch;
}

void acp_peer_unexpect(struct acp_peer *peer, u32 epoch)
{
	spin_lock(&peer->lock);
	acp_flow_unexpect(&peer->flow, epoch);
	spin_unlock(&peer->lock);
}

/* Request that the flow opens. */
static void want(struct acp_peer *peer)
{
	if (peer->wanted)
		return;
	peer->wanted = true;
	tasklet_schedule(&peer->work);
}

bool acp_peer_ready(struct acp_peer *peer, u32 *epoch, u8 *status)
{
	bool known = true;

	spin_lock(&peer->lock);
	if (peer->dead) {
		*status = ACP_ST_ABORT;
	} else {
		switch (acp_flow_ready(&peer->flow, epoch)) {
		case ACP_READY_OPEN:
			break;
		case ACP_READY_NOT_YET:
			known = false;
			want(peer);
			break;
		case ACP_READY_ENDED:
			*status = peer->dropped_status;
			break;
		}
	}
	spin_unlock(&peer->lock);
	return known;
}

static void report_dropped(struct acp_peer *peer, struct list_head *dropped, u8 status)
{
	struct acp_item *item, *next;

	/* The items are not unlinked one by one: the list ends here. */
	list_for_each_entry_safe(item, next, dropped, link) {
		item->frames = 0;
		item->status = status;
		acp_station_done(item);
	}
}

/* ---- receiving ---- */

/* Copy a frame to an skb of its own, in which it waits.  Return NULL if there is no memory. */
static struct sk_buff *out_of_batch(struct sk_buff *skb)
{
	const struct acp_frame_cb *cb = acp_frame_cb(skb);
	struct sk_buff *copy = acp_skb_part(skb, cb->at.at, cb->length);

	if (!copy)
		return NULL;
	/* Use the bytes that were checked: those in the skb may have changed since. */
	memcpy(copy->data, cb->body, cb->tagged);
	*acp_frame_cb(copy) = *cb;
	acp_frame_cb(copy)->body = copy->data;
	acp_frame_cb(copy)->at = acp_bytes_first(copy);
	return copy;
}

/* Return the skb in which a frame waits, charged to the job's user; NULL if there is no memory. */
static struct sk_buff *held_skb(struct acp_peer *peer, struct sk_buff *skb)
{
	struct sk_buff *own = skb_is_gso(skb) ? out_of_batch(skb) : skb;

	if (own && acp_peer_take_kib(peer, acp_peer_held_kib(own)))
		return own;
	if (own && own != skb)
		consume_skb(own);
	return NULL;
}

/* Hold a fenced frame that came too early.  The caller keeps the skb if that fails. */
static bool hold(struct acp_peer *peer, struct sk_buff *skb)
{
	struct sk_buff *own;

	switch (acp_flow_hold(&peer->flow, acp_frame_cb(skb)->seq)) {
	case ACP_HOLD_TWICE:
		return false;
	case ACP_HOLD_FULL:
		acp_drop(peer->job->node, skb, NULL, ACP_STAT_drop_held_full);
		return false;
	case ACP_HOLD_KEPT:
		break;
	}
	own = held_skb(peer, skb);
	if (!own) {
		acp_flow_unhold(&peer->flow, acp_frame_cb(skb)->seq);
		acp_drop(peer->job->node, skb, NULL, ACP_STAT_drop_nomem);
		return false;
	}
	if (own != skb)
		consume_skb(skb);
	__skb_queue_tail(&peer->held, own);
	acp_stat_inc(peer->job->node, rx_held);
	return true;
}

/*
 * Has the network marked the frame (Congestion Experienced)?  No tag covers the mark, so it counts
 * in new frames only: a replay could count any number of times.
 */
static bool is_marked(const struct sk_buff *skb)
{
	if (skb->protocol == htons(ETH_P_IP))
		return INET_ECN_is_ce(ip_hdr(skb)->tos);
	return INET_ECN_is_ce(ipv6_get_dsfield(ipv6_hdr(skb)));
}

/* Give an accepted frame to the station.  Drops the lock meanwhile. */
static void apply(struct acp_peer *peer, struct sk_buff *skb, u64 now)
{
	const struct acp_frame_cb *cb = acp_frame_cb(skb);
	const struct acp_flow_taken taken = {
		.seq = cb->seq, .epoch = peer->flow.epoch, .count = 1, .lazy = cb->lazy,
		.marked = is_marked(skb),
	};
	enum acp_arrived what;

	spin_unlock(&peer->lock);
	what = acp_station_arrived(peer, taken.epoch, skb, cb);
	spin_lock(&peer->lock);
	if (what == ACP_MALFORMED)
		acp_drop(peer->job->node, skb, NULL, ACP_STAT_drop_bad_msg);
	else if (what != ACP_REFUSED)
		acp_stat_inc(peer->job->node, rx_frames);
	acp_skb_free(skb);
	if (acp_flow_arrived(&peer->flow, &taken, what, now) && unlikely(taken.marked) &&
	    what != ACP_REFUSED)
		acp_stat_inc(peer->job->node, rx_marked);
}

/* Process a DATA frame.  Under the lock; takes the skb. */
static void data(struct acp_peer *peer, struct sk_buff *skb, u64 now)
{
	const struct acp_frame_cb *cb = acp_frame_cb(skb);

	switch (acp_flow_accept(&peer->flow, cb->seq, cb->fence)) {
	case ACP_FLOW_NEW:
		apply(peer, skb, now);
		return;
	case ACP_FLOW_HOLD:
		if (hold(peer, skb))
			return;
		break;
	case ACP_FLOW_DUPLICATE:
		peer->traffic.rx_duplicates++;
		acp_drop(peer->job->node, skb, NULL, ACP_STAT_drop_duplicate);
		break;
	case ACP_FLOW_FUTURE:
		acp_drop(peer->job->node, skb, NULL, ACP_STAT_drop_future);
		break;
	}
	kfree_skb(skb);
}

static struct sk_buff *held_frame_in_turn(struct acp_peer *peer)
{
	struct sk_buff *skb;

	skb_queue_walk(&peer->held, skb)
		if (acp_flow_turn_came(&peer->flow, acp_frame_cb(skb)->seq))
			return skb;
	return NULL;
}

/* Does the budget suffice for a frame? */
static bool pay(struct acp_budget *budget, const struct sk_buff *skb)
{
	return acp_budget_entry(budget) &&
	       acp_budget_pay(budget, min_t(u32, skb->len, ACP_BUDGET_BYTES));
}

/*
 * Process held frames whose turn has come, as far as the budget suffices.  Return the next one that
 * is left, or NULL.
 */
static struct sk_buff *release_held(struct acp_peer *peer)
{
	struct acp_budget own acp_uncleared, *budget;
	struct sk_buff *skb = held_frame_in_turn(peer);

	if (likely(!skb))
		return NULL;
	budget = acp_budget_of_softirq(&own);
	do {
		if (!pay(budget, skb)) {
			acp_stat_inc(peer->job->node, rx_held_goes);
			return skb;
		}
		acp_peer_unhold(peer, skb);
		data(peer, skb, acp_now());
	} while ((skb = held_frame_in_turn(peer)));
	return NULL;
}

/* Return the address that the first message of a frame is for; 0: unknown. */
static u64 target_of(struct sk_buff *skb)
{
	const struct acp_frame_cb *cb = acp_frame_cb(skb);
	struct acp_msg m acp_uncleared;

	return acp_msg_decode(&m, cb->body, cb->length, cb->tagged) ? m.dst : 0;
}

/*
 * The same in the tasklet.  Return true if frames are left, which a worker is to process; *target:
 * of the next one.
 */
static bool release_at_once(struct acp_peer *peer, u64 *target)
{
	struct sk_buff *skb;

	/*
	 * Held frames may start copies, which acp_copies_flush() may no longer wait for if the job
	 * is dead.
	 */
	if (peer->behind || READ_ONCE(peer->job->dead))
		return false;
	skb = release_held(peer);
	if (likely(!skb))
		return false;
	WRITE_ONCE(peer->behind, true);
	*target = target_of(skb);
	return true;
}

bool acp_peer_release(struct acp_peer *peer)
{
	struct acp_outbox out = {};
	bool more;

	spin_lock(&peer->lock);
	more = !READ_ONCE(peer->job->dead) && release_held(peer);
	WRITE_ONCE(peer->behind, more);
	acp_peer_process(peer, &out, acp_now());
	spin_unlock(&peer->lock);
	acp_tx(peer, &out);
	acp_station_idle(peer->job);
	return more;
}

void acp_peer_release_here(struct acp_peer *peer)
{
	spin_lock(&peer->lock);
	WRITE_ONCE(peer->behind, false);
	spin_unlock(&peer->lock);
	tasklet_schedule(&peer->work);
}

static void work(struct tasklet_struct *t)
{
	struct acp_peer *peer = from_tasklet(peer, t, work);
	struct acp_outbox out = {};
	struct acp_fates told;
	bool lost, opened, late;
	LIST_HEAD(dropped);
	u64 target;
	u8 status;

	spin_lock(&peer->lock);
	late = release_at_once(peer, &target);
	acp_peer_process(peer, &out, acp_now());
	list_splice_init(&peer->dropped, &dropped);
	status = peer->dropped_status;
	lost = peer->lost;
	opened = peer->opened;
	peer->lost = false;
	peer->opened = false;
	told = acp_fates_tell(&peer->fates);
	spin_unlock(&peer->lock);
	acp_tx(peer, &out);
	report_dropped(peer, &dropped, status);
	if (lost)
		acp_station_lost(peer, status);
	if (unlikely(opened))
		acp_station_opened(peer);
	tell(peer, told);
	if (unlikely(late) && !acp_station_late(peer, target))
		acp_peer_release_here(peer);
	acp_station_idle(peer->job);
}

/* A frame was acknowledged: move the items that are complete to @done. */
static void acked(struct acp_sent *s, struct list_head *done)
{
	struct acp_item *item;

	if (s->piece) {
		acp_peer_piece_done(s->piece, done);
		return;
	}
	list_for_each_entry(item, &s->items, link)
		item->frames--;
	list_splice_tail(&s->items, done);
}

static void acknowledged(struct acp_peer *peer, const struct acp_frame *f,
			 const struct acp_frame_ack *map, struct list_head *done, u64 now)
{
	struct acp_flow_ack ack acp_uncleared;
	struct acp_sent *s;
	u32 events;

	if (!peer->slots || !acp_flow_ack_begin(&peer->flow, &ack, f, map)) {
		acp_drop(peer->job->node, NULL, f, ACP_STAT_drop_bad_ack);
		return;
	}
	while ((s = acp_flow_ack_next(&peer->flow, &ack, now))) {
		trace_acp_ack(peer, ack.pos - 1, now);
		acked(s, done);
		WRITE_ONCE(peer->confirmed, true);
	}
	events = acp_flow_ack_end(&peer->flow, &ack, now);
	if (events & ACP_FLOW_REDUCED)
		acp_stat_inc(peer->job->node, window_marks);
	if (events & ACP_FLOW_TAKEN_BACK)
		acp_stat_inc(peer->job->node, timeouts_wrong);
}

static __always_inline void acknowledgement(struct acp_peer *peer, const struct acp_frame *f,
					    const struct acp_frame_ack *map,
					    struct list_head *done, u64 now)
{
	if (acp_flow_ack_tells(&peer->flow, f))
		acknowledged(peer, f, map, done, now);
}

/* The peer runs another set-up of the job: count that and warn. */
static void is_other(struct acp_peer *peer, const struct acp_frame *f)
{
	const struct acp_job *job = peer->job;

	acp_drop(job->node, NULL, f, ACP_STAT_drop_mismatch);
	net_warn_ratelimited("acp: job %u: node %u runs another set-up of the job\n", job->id,
			     peer->node);
}

static void is_refused(struct acp_peer *peer)
{
	acp_job_set_mismatched(peer->job, peer->node);
	acp_peer_failed(peer, ACP_ST_PEER);
}

static u32 take_hello(struct acp_peer *peer, const struct acp_frame *f,
		      const struct acp_frame_hello *h, struct acp_frame *reply, u64 now)
{
	const struct acp_job *job = peer->job;
	const struct acp_setup setup = acp_job_setup(job);
	const struct acp_presence us = {
		.here = !list_empty(&job->rank_list),
		.assembling = !acp_job_assembled(job) && !READ_ONCE(job->mismatched),
	};

	return acp_hello_take(&peer->flow, &setup, us, f, h, reply, now);
}

/* noinline: other frames do not pay for its variables. */
static noinline void hello(struct acp_peer *peer, const struct acp_frame *f,
			   const struct acp_frame_hello *h, struct acp_outbox *out, u64 now)
{
	struct acp_frame reply = {};
	u32 verdict = take_hello(peer, f, h, &reply, now);

	if (verdict & ACP_HELLO_ABSENT)
		acp_drop(peer->job->node, NULL, f, ACP_STAT_drop_no_job);
	if (verdict & ACP_HELLO_OTHER)
		is_other(peer, f);
	if (verdict & ACP_HELLO_ASK)
		peer->wanted = true;
	if (verdict & ACP_FLOW_RESTART)
		acp_peer_restarted(peer, f->epoch_src, now);
	if (verdict & ACP_FLOW_OPENED)
		acp_peer_opened(peer);
	if (verdict & ACP_FLOW_REPLY) {
		/*
		 * A peer that is answered, but not acknowledged, suspects the length of its frames
		 * (doubt.h).  The acknowledgement may be waiting for the tasklet.
		 */
		if (acp_flow_ack_now(&peer->flow))
			peer->retry |= !acp_build_ack(peer, out);
		acp_build_hello(peer, &reply, out);
	}
	if (verdict & ACP_FLOW_REFUSED)
		is_refused(peer);
}

/* Is it a piece of a long transfer? */
static bool in_batch(const struct acp_frame *f)
{
	return (f->flags & (ACP_FRAME_BULK | ACP_FRAME_AEAD)) &&
	       ((f->flags & ACP_FRAME_BULK) || f->length > AT_ONCE);
}

/* Would acp_peer_process() have nothing to do? */
static bool quiet(const struct acp_peer *peer, u64 now)
{
	return acp_flow_quiet(&peer->flow, peer->armed, now) && !peer->wanted && !peer->retry &&
	       !acp_peer_has_items(peer);
}

/* The skb's data begins at the body of the frame, unless it is a GSO batch. */
void acp_peer_frame(struct acp_peer *peer, struct sk_buff *skb, const struct acp_frame *f)
{
	struct acp_outbox out = {};
	LIST_HEAD(done);
	u32 verdict;
	u64 now;

	spin_lock(&peer->lock);
	now = acp_now();
	if (peer->dead)
		goto drop;
	peer->traffic.rx_frames++;
	peer->traffic.rx_bytes += acp_frame_size(f);
	if (f->type == ACP_FRAME_HELLO) {
		hello(peer, f, (const void *)acp_frame_cb(skb)->body, &out, now);
		tasklet_schedule(&peer->work);
		goto drop;
	}
	verdict = acp_flow_admit(&peer->flow, f, now);
	if (verdict == ACP_FLOW_DROP) {
		acp_drop(peer->job->node, skb, f, ACP_STAT_drop_bad_epoch);
		goto drop;
	}
	if (verdict & ACP_FLOW_RESTART)
		acp_peer_restarted(peer, f->epoch_src, now);
	if (verdict & ACP_FLOW_OPENED)
		acp_peer_opened(peer);
	acknowledgement(peer, f, f->type == ACP_FRAME_ACK && f->length ?
			(const void *)acp_frame_cb(skb)->body : NULL,
			&done, now);
	if (f->type == ACP_FRAME_DATA) {
		data(peer, skb, now);
		skb = NULL;
	}
	/* Answer pieces once, at the end of the poll round, and all other frames now. */
	if (in_batch(f) || peer->lost || !skb_queue_empty(&peer->held)) {
		tasklet_schedule(&peer->work);
	} else {
		/* The lock was dropped; short frames took hardly any time. */
		if (f->length > AT_ONCE)
			now = acp_now();
		if (!quiet(peer, now))
			acp_peer_process(peer, &out, now);
	}
drop:
	spin_unlock(&peer->lock);
	if (skb)
		acp_skb_free(skb);
	acp_tx(peer, &out);
	if (!list_empty(&done))
		acp_station_delivered(&done);
	acp_station_idle(peer->job);
}

/*
 * Give accepted pieces to the station.  Drops the lock meanwhile.  Return false if they were
 * refused.
 */
static bool apply_pieces(struct acp_peer *peer, struct sk_buff *skb, const struct acp_frame *f,
			 const struct acp_msg *m, const struct acp_pieces *pieces, u64 now)
{
	const struct acp_flow_taken taken = {
		.seq = f->seq, .epoch = peer->flow.epoch, .count = pieces->count,
		.lazy = f->flags & ACP_FRAME_LAZY, .marked = is_marked(skb),
	};
	bool ok;

	spin_unlock(&peer->lock);
	ok = acp_station_pieces(peer, taken.epoch, m, skb, pieces);
	spin_lock(&peer->lock);
	if (!acp_flow_arrived(&peer->flow, &taken, ok ? ACP_APPLIED : ACP_REFUSED, now))
		return true;
	if (!ok)
		return false;
	peer->traffic.rx_frames += taken.count;
	peer->traffic.rx_bytes += (u64)taken.count * acp_frame_size(f);
	acp_stat_add(peer->job->node, rx_frames, taken.count);
	acp_stat_add(peer->job->node, rx_burst, taken.count);
	if (unlikely(taken.marked))
		acp_stat_add(peer->job->node, rx_marked, taken.count);
	return true;
}

/* Pieces of a message follow its first one; they need not wait for what was lost behind that. */
static bool may_pass(const struct acp_peer *peer, const struct acp_frame *f,
		     const struct acp_msg *m)
{
	return !(f->flags & ACP_FRAME_FENCE) || f->seq == peer->flow.rcv ||
	       (m->b && acp_peer_has_landed(peer, m));
}

bool acp_peer_pieces(struct acp_peer *peer, struct sk_buff *skb, const struct acp_frame *f,
		     const struct acp_msg *m, const struct acp_pieces *pieces)
{
	struct acp_flow *flow = &peer->flow;
	bool taken = false;
	LIST_HEAD(done);
	u64 now;

	spin_lock(&peer->lock);
	now = acp_now();
	if (!peer->dead && flow->state == ACP_FLOW_OPEN && f->epoch_dst == flow->epoch &&
	    acp_flow_admit(flow, f, now) == ACP_FLOW_PASS && may_pass(peer, f, m) &&
	    acp_flow_accept_all(flow, f->seq, pieces->count)) {
		acknowledgement(peer, f, NULL, &done, now);
		taken = apply_pieces(peer, skb, f, m, pieces, now);
		tasklet_schedule(&peer->work);
	}
	spin_unlock(&peer->lock);
	acp_station_delivered(&done);
	acp_station_idle(peer->job);
	return taken;
}

void acp_peer_applied(struct acp_peer *peer, u64 seq, u32 epoch)
{
	spin_lock(&peer->lock);
	if (!peer->dead && acp_flow_settled(&peer->flow, epoch, seq))
		tasklet_schedule(&peer->work);
	spin_unlock(&peer->lock);
}

/* ---- failures ---- */

bool acp_peer_fail(struct acp_peer *peer, u32 epoch, const struct acp_msg *m, u8 status, u64 until)
{
	struct acp_failures *failures = acp_peer_failures_of(peer, m);
	bool ok = true;

	spin_lock(&peer->lock);
	if (epoch != peer->flow.epoch)
		goto out;
	if (!failures->known)
		acp_peer_get_fails(peer, failures);
	ok = acp_failures_add(failures, m->origin, m->ticket, status, until, peer->flow.rcv);
out:
	spin_unlock(&peer->lock);
	return ok;
}

u8 acp_peer_find_fail(struct acp_peer *peer, u32 epoch, const struct acp_msg *m)
{
	const struct acp_failures *failures = acp_peer_failures_of(peer, m);
	u8 status = ACP_ST_OK;

	spin_lock(&peer->lock);
	if (epoch != peer->flow.epoch)
		status = ACP_ST_PEER;	/* nobody knows any more */
	else if (failures->known)
		status = acp_fails_take(failures->known, m->origin, m->ticket);
	spin_unlock(&peer->lock);
	return status;
}

bool acp_peer_depends(struct acp_peer *peer, u32 epoch, const struct acp_msg *m)
{
	struct acp_failures *failures = acp_msg_is_behind(m) ? &peer->refusals : &peer->failures;
	bool found;

	if (!READ_ONCE(failures->known) && !READ_ONCE(failures->blind))
		return false;
	spin_lock(&peer->lock);
	/* Of an incarnation that has ended nobody knows any more. */
	found = epoch != peer->flow.epoch ||
		acp_failures_depends(failures, m, peer->flow.rcv);
	spin_unlock(&peer->lock);
	return found;
}

void acp_peer_found_room(struct acp_peer *peer, u32 epoch, const struct acp_msg *m)
{
	if (!READ_ONCE(peer->refusals.known))
		return;
	spin_lock(&peer->lock);
	if (epoch == peer->flow.epoch && peer->refusals.known)
		acp_fails_forget(peer->refusals.known, m->origin, m->ticket);
	spin_unlock(&peer->lock);
}

/* ---- peers ---- */

void acp_peer_init(struct acp_peer *peer)
{
	hrtimer_setup(&peer->timer, timer_fired, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	peer->armed = ~0ULL;
	peer->mtu = 1400;
	tasklet_setup(&peer->work, work);
}

/* Stop frames, timer and tasklet, and drop all items.  Sleeps. */
void acp_peer_stop(struct acp_peer *peer)
{
	LIST_HEAD(dropped);

	spin_lock_bh(&peer->lock);
	acp_peer_drop_all(peer, ACP_ST_ABORT);
	peer->flow.una = peer->flow.next;
	peer->dead = true;
	list_splice_init(&peer->dropped, &dropped);
	spin_unlock_bh(&peer->lock);
	hrtimer_cancel(&peer->timer);
	tasklet_kill(&peer->work);
	local_bh_disable();
	report_dropped(peer, &dropped, ACP_ST_ABORT);
	local_bh_enable();
}
