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
 * call to the station and before a datagram is handed to the network, and nests only inside the
 * barrier's lock.  Where bottom halves are off anyway it is taken with spin_lock().
 */
#include <linux/net.h>
#include <linux/slab.h>
#include <net/inet_ecn.h>
#include "build.h"
#include "../compat.h"
#include "../exec/event.h"
#include "../job/node.h"
#include "../netlink/notify.h"
#include "../drop.h"
#include "../trace.h"
#include "route.h"
#include "skbs.h"
#include "tx.h"
#include "../upcall.h"

#define SEND_BUDGET	64	/* frames built at a time */
#define RELEASE_BYTES	65536	/* of held frames processed at a time */
#define AT_ONCE		256	/* bytes of messages */
#define RETRY_NS	(2 * NSEC_PER_MSEC)
#define IDLE_NS		(10ULL * NSEC_PER_SEC)	/* until an idle peer frees its slots */

/* Charge a flow's memory to the job's user.  Under the lock. */
static bool take_kib(struct acp_peer *peer, u32 kib)
{
	if (acp_user_charge(peer->job->user, ACP_LIMIT_USER_MEMORY, kib))
		return false;
	atomic_add(kib, &peer->job->flow_kib);
	return true;
}

static void give_kib(struct acp_peer *peer, u32 kib)
{
	atomic_sub(kib, &peer->job->flow_kib);
	acp_user_uncharge(peer->job->user, ACP_LIMIT_USER_MEMORY, kib);
}

/* Zeroed pages, only as many as needed: kmalloc() would round up to a power of two. */
static void *get_pages(size_t bytes)
{
	return alloc_pages_exact(bytes, GFP_ATOMIC | __GFP_ZERO | __GFP_NOWARN);
}

static void free_slots(struct acp_peer *peer)
{
	if (peer->slots)
		free_pages_exact(peer->slots, ACP_SLOTS_BYTES);
	if (peer->sent)
		free_pages_exact(peer->sent, ACP_SENT_BYTES);
	peer->slots = NULL;
	peer->sent = NULL;
	peer->flow.slots = NULL;
	give_kib(peer, ACP_SLOTS_KIB);
}

static noinline bool get_slots(struct acp_peer *peer)
{
	if (take_kib(peer, ACP_SLOTS_KIB)) {
		peer->slots = get_pages(ACP_SLOTS_BYTES);
		peer->sent = get_pages(ACP_SENT_BYTES);
		if (peer->slots && peer->sent) {
			peer->flow.slots = peer->slots;
			return true;
		}
		free_slots(peer);
	}
	acp_stat_inc(peer->job->node, tx_nomem);
	return false;
}

static bool need_slots(struct acp_peer *peer)
{
	return likely(peer->slots) || get_slots(peer);
}

/* Send a new frame.  Return false if there is no memory or route. */
static bool send_new(struct acp_peer *peer, struct list_head *from, struct acp_outbox *out,
		     u64 now)
{
	return need_slots(peer) && acp_build_new(peer, from, out, now);
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
	    need_slots(peer))
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

/* A frame that carried a piece of the item is done; after the last one, move the item to @to. */
static void piece_through(struct acp_item *item, struct list_head *to)
{
	if (!--item->frames && item->out.finished)
		acp_items_add(to, item);
}

/* ---- the end of a flow's incarnation, under the lock ---- */

/*
 * Collect each item once: with its last frame, unless it is not yet cut completely and so on a
 * list.
 */
static void drop_frame(struct acp_peer *peer, struct acp_sent *s)
{
	if (s->piece)
		piece_through(s->piece, &peer->dropped);
	else
		list_splice_tail(&s->items, &peer->dropped);
}

/* The memory of a held frame. */
static u32 held_kib(const struct sk_buff *skb)
{
	return DIV_ROUND_UP(skb->truesize, SZ_1K);
}

/* Take a frame off the held ones; it then belongs to the caller. */
static void unhold(struct acp_peer *peer, struct sk_buff *skb)
{
	acp_flow_unhold(&peer->flow, acp_frame_cb(skb)->seq);
	give_kib(peer, held_kib(skb));
	__skb_unlink(skb, &peer->held);
}

static void drop_all(struct acp_peer *peer, u8 status)
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
		unhold(peer, skb);
		kfree_skb(skb);
	}
	acp_failures_begin(&peer->failures);
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

static void set_open(struct acp_peer *peer)
{
	if (acp_fates_open(&peer->fates))
		tasklet_schedule(&peer->work);
}

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

static void flow_failed(struct acp_peer *peer, u8 status)
{
	u32 epoch = new_epoch(peer->flow.epoch);

	drop_all(peer, status);
	acp_fates_lost(&peer->fates, status);
	acp_flow_init(&peer->flow, epoch, new_epoch(epoch), peer->job->limit,
		      acp_job_open_limit(peer->job));
	peer->traffic.failed++;
	acp_stat_inc(peer->job->node, flows_failed);
	trace_acp_peer_state(peer, ACP_PEER_LOST, status);
}

static void flow_restarted(struct acp_peer *peer, u32 epoch_peer, u64 now)
{
	drop_all(peer, ACP_ST_PEER);
	acp_fates_lost(&peer->fates, ACP_ST_PEER);
	acp_flow_restart(&peer->flow, epoch_peer, new_epoch(peer->flow.epoch_next), now);
	set_open(peer);
	peer->traffic.restarted++;
	acp_stat_inc(peer->job->node, flows_restarted);
	trace_acp_peer_state(peer, ACP_PEER_RESTARTED, ACP_ST_PEER);
}

static void flow_opened(struct acp_peer *peer)
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

static enum hrtimer_restart timer_fired(struct hrtimer *timer)
{
	struct acp_peer *peer = container_of(timer, struct acp_peer, timer);

	tasklet_schedule(&peer->work);
	return HRTIMER_NORESTART;
}

static void give_back_slots(struct acp_peer *peer)
{
	if (peer->slots)
		free_slots(peer);
}

/* Free the record of failures, if any. */
static void forget_fails(struct acp_peer *peer)
{
	if (!peer->failures.known)
		return;
	kfree(peer->failures.known);
	peer->failures.known = NULL;
	give_kib(peer, ACP_FAILS_KIB);
}

static void give_back_delegated(struct acp_peer *peer)
{
	give_kib(peer, peer->delegated_paid / ACP_DELEGATED_STEP * ACP_DELEGATED_KIB);
	peer->delegated_paid = 0;
}

void acp_peer_give_back(struct acp_peer *peer)
{
	give_back_slots(peer);
	forget_fails(peer);
	give_back_delegated(peer);
}

static void give_back(struct acp_peer *peer)
{
	give_back_slots(peer);
	if (peer->failures.known && acp_failures_over(&peer->failures, peer->flow.rcv))
		forget_fails(peer);
	if (!atomic_read(&peer->delegated))
		give_back_delegated(peer);
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
		flow_failed(peer, peer->dst ? ACP_ST_TIMEOUT : ACP_ST_ROUTE);
	}
}

/* Is anything waiting to be sent? */
static bool has_items(const struct acp_peer *peer)
{
	return !list_empty(&peer->pending) || !list_empty(&peer->answers);
}

/* Do all that is due for a peer, and build the frames for it.  Under the lock. */
static void process(struct acp_peer *peer, struct acp_outbox *out, u64 now)
{
	if (peer->dead)
		return;
	if (now >= peer->armed) {
		peer->armed = ~0ULL;
		tick(peer, out, now);
	}
	if (peer->flow.state == ACP_FLOW_OPEN)
		peer->wanted = false;
	if (acp_flow_open_wanted(&peer->flow, peer->wanted || has_items(peer), now)) {
		trace_acp_peer_state(peer, ACP_PEER_OPENING, ACP_ST_OK);
		ask(peer, out, now);
	}
	peer->retry = !transmit(peer, out, now);
	if (acp_flow_ack_now(&peer->flow))
		peer->retry |= !acp_build_ack(peer, out);
	arm(peer, now);
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
	process(peer, &out, acp_now());
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

	if (own && take_kib(peer, held_kib(own)))
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

/*
 * Process held frames whose turn has come, up to RELEASE_BYTES at a time: the last one can exceed
 * them.
 */
static void release_held(struct acp_peer *peer)
{
	struct sk_buff *skb;
	u32 bytes = 0;

	while ((skb = held_frame_in_turn(peer))) {
		if (bytes >= RELEASE_BYTES) {
			tasklet_schedule(&peer->work);
			return;
		}
		bytes += skb->len;
		unhold(peer, skb);
		data(peer, skb, acp_now());
	}
}

static void work(struct tasklet_struct *t)
{
	struct acp_peer *peer = from_tasklet(peer, t, work);
	struct acp_outbox out = {};
	struct acp_fates told;
	LIST_HEAD(dropped);
	bool lost;
	u8 status;

	spin_lock(&peer->lock);
	/*
	 * Held frames may start copies, which acp_copies_flush() may no longer wait for if the job
	 * is dead.
	 */
	if (!READ_ONCE(peer->job->dead))
		release_held(peer);
	process(peer, &out, acp_now());
	list_splice_init(&peer->dropped, &dropped);
	status = peer->dropped_status;
	lost = peer->lost;
	peer->lost = false;
	told = acp_fates_tell(&peer->fates);
	spin_unlock(&peer->lock);
	acp_tx(peer, &out);
	report_dropped(peer, &dropped, status);
	if (lost)
		acp_station_lost(peer, status);
	tell(peer, told);
	acp_station_idle(peer->job);
}

/* A frame was acknowledged: move the items that are complete to @done. */
static void acked(struct acp_sent *s, struct list_head *done)
{
	struct acp_item *item;

	if (s->piece) {
		piece_through(s->piece, done);
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
	flow_failed(peer, ACP_ST_PEER);
}

static u32 take_hello(struct acp_peer *peer, const struct acp_frame *f,
		      const struct acp_frame_hello *h, struct acp_frame *reply, u64 now)
{
	const struct acp_job *job = peer->job;
	const struct acp_setup setup = acp_job_setup(job);
	const struct acp_presence us = {
		.here = !list_empty(&job->rank_list),
		.meeting = !acp_job_met(job) && !READ_ONCE(job->mismatched),
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
		flow_restarted(peer, f->epoch_src, now);
	if (verdict & ACP_FLOW_OPENED)
		flow_opened(peer);
	if (verdict & ACP_FLOW_REPLY)
		acp_build_hello(peer, &reply, out);
	if (verdict & ACP_FLOW_REFUSED)
		is_refused(peer);
}

/* Is it a piece of a long transfer? */
static bool in_batch(const struct acp_frame *f)
{
	return (f->flags & (ACP_FRAME_BULK | ACP_FRAME_AEAD)) &&
	       ((f->flags & ACP_FRAME_BULK) || f->length > AT_ONCE);
}

/* Would process() have nothing to do? */
static bool quiet(const struct acp_peer *peer, u64 now)
{
	return acp_flow_quiet(&peer->flow, peer->armed, now) && !peer->wanted && !peer->retry &&
	       !has_items(peer);
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
		flow_restarted(peer, f->epoch_src, now);
	if (verdict & ACP_FLOW_OPENED)
		flow_opened(peer);
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
			process(peer, &out, now);
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
	ok = acp_station_pieces(peer, m, skb, pieces);
	spin_lock(&peer->lock);
	if (!acp_flow_arrived(&peer->flow, &taken, ok ? ACP_APPLIED : ACP_REFUSED, now))
		return true;
	if (!ok)
		return false;
	peer->traffic.rx_frames += taken.count;
	peer->traffic.rx_bytes += (u64)taken.count * acp_frame_size(f);
	acp_stat_add(peer->job->node, rx_frames, taken.count);
	if (unlikely(taken.marked))
		acp_stat_add(peer->job->node, rx_marked, taken.count);
	return true;
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
	    acp_flow_admit(flow, f, now) == ACP_FLOW_PASS &&
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

bool acp_peer_pay_delegated(struct acp_peer *peer, u32 count)
{
	bool ok = true;

	spin_lock(&peer->lock);
	while (ok && peer->delegated_paid < count) {
		ok = !peer->dead && take_kib(peer, ACP_DELEGATED_KIB);
		if (ok)
			peer->delegated_paid += ACP_DELEGATED_STEP;
	}
	spin_unlock(&peer->lock);
	return ok;
}

/* ---- failures ---- */

static void get_fails(struct acp_peer *peer)
{
	struct acp_fails *known;

	if (!take_kib(peer, ACP_FAILS_KIB))
		return;
	known = kzalloc(sizeof(*known), GFP_ATOMIC | __GFP_NOWARN);
	if (!known)
		give_kib(peer, ACP_FAILS_KIB);
	peer->failures.known = known;
}

bool acp_peer_fail(struct acp_peer *peer, u32 origin, u64 ticket, u8 status, u64 until)
{
	bool ok;

	spin_lock(&peer->lock);
	if (!peer->failures.known)
		get_fails(peer);
	ok = acp_failures_add(&peer->failures, origin, ticket, status, until);
	spin_unlock(&peer->lock);
	return ok;
}

u8 acp_peer_find_fail(struct acp_peer *peer, u32 origin, u64 ticket)
{
	u8 status = ACP_ST_OK;

	spin_lock(&peer->lock);
	if (peer->failures.known)
		status = acp_fails_take(peer->failures.known, origin, ticket);
	spin_unlock(&peer->lock);
	return status;
}

bool acp_peer_depends(struct acp_peer *peer, const struct acp_msg *m)
{
	bool found;

	if (!READ_ONCE(peer->failures.known) && !READ_ONCE(peer->failures.blind))
		return false;
	spin_lock(&peer->lock);
	found = acp_failures_depends(&peer->failures, m, peer->flow.rcv);
	spin_unlock(&peer->lock);
	return found;
}

/* ---- peers ---- */

void acp_peer_init(struct acp_peer *peer)
{
	hrtimer_setup(&peer->timer, timer_fired, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	peer->armed = ~0ULL;
	peer->mtu = 1400;
	tasklet_setup(&peer->work, work);
}

/* Free the memory of an idle peer, which keeps only its flow's numbers. */
void acp_peer_reclaim(struct acp_peer *peer)
{
	spin_lock_bh(&peer->lock);
	if ((peer->slots || peer->delegated_paid) && acp_peer_idle(peer) &&
	    acp_now() - peer->used >= IDLE_NS)
		give_back(peer);
	spin_unlock_bh(&peer->lock);
}

/* Stop frames, timer and tasklet, and drop all items.  Sleeps. */
void acp_peer_stop(struct acp_peer *peer)
{
	LIST_HEAD(dropped);

	spin_lock_bh(&peer->lock);
	drop_all(peer, ACP_ST_ABORT);
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
