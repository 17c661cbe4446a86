// SPDX-License-Identifier: GPL-2.0-only
/*
 * A peer: its flow (core/flow), what waits to be sent, what came too early.
 * Items become frames (build.h), and frames become arrivals at the station.
 *
 * What a pass over the network's events leaves to do (acknowledge, send what
 * the window now allows, time-outs) is done at the end of a frame, or by the
 * peer's tasklet, once for all frames of a train.
 *
 * Locking: peer->lock (bh) guards the flow and the queues of a peer.  It is
 * dropped around every call to the station and before a datagram is handed
 * to the network, and nests inside nothing but the barrier's lock.  Where
 * bottom halves are off anyway it is taken with spin_lock().
 */
#include <linux/net.h>
#include <linux/slab.h>
#include <net/inet_ecn.h>
#include "build.h"
#include "event.h"
#include "node.h"
#include "notice.h"
#include "trace.h"
#include "train.h"

#define SEND_BUDGET	64	/* frames built in one go */
#define AT_ONCE		256	/* bytes of messages */
#define HELD_MAX	64	/* fenced frames of a peer that wait */
#define RETRY_NS	(2 * NSEC_PER_MSEC)
#define DOUBTS		6	/* until a frame is too long for its path */
#define IDLE_NS		(10ULL * NSEC_PER_SEC)	/* until an idle peer gives its slots back */

static noinline bool get_slots(struct acp_peer *peer)
{
	struct acp_user *user = peer->job->user;

	if (acp_user_charge(user, ACP_LIMIT_USER_MEMORY, ACP_SLOTS_KIB)) {
		acp_stat_inc(peer->job->node, tx_nomem);
		return false;
	}
	peer->slots = kcalloc(ACP_FRAME_WINDOW, sizeof(*peer->slots), GFP_ATOMIC | __GFP_NOWARN);
	peer->sent = kcalloc(ACP_FRAME_WINDOW, sizeof(*peer->sent), GFP_ATOMIC | __GFP_NOWARN);
	if (peer->slots && peer->sent) {
		peer->flow.slots = peer->slots;
		atomic_inc(&peer->job->n_slots);
		return true;
	}
	kfree(peer->slots);
	kfree(peer->sent);
	peer->slots = NULL;
	peer->sent = NULL;
	acp_user_uncharge(user, ACP_LIMIT_USER_MEMORY, ACP_SLOTS_KIB);
	acp_stat_inc(peer->job->node, tx_nomem);
	return false;
}

static bool need_slots(struct acp_peer *peer)
{
	return likely(peer->slots) || get_slots(peer);
}

/* A new frame.  False: no memory or route. */
static bool send_new(struct acp_peer *peer, struct list_head *from, struct acp_outbox *out,
		     u64 now)
{
	return need_slots(peer) && acp_build_new(peer, from, out, now);
}

/* Has it so much left that a row may be worth a look? */
static bool is_long(const struct acp_peer *peer, const struct acp_item *item)
{
	return unlikely(item->out.m.size - item->out.cut > 2 * peer->mtu);
}

/* New frames, one or a row.  Returns how many; -ENOMEM: or no route. */
static int send_some(struct acp_peer *peer, struct acp_outbox *out, int budget, u64 now)
{
	int n = 0;

	if (is_long(peer, list_first_entry(&peer->pending, struct acp_item, link)) &&
	    need_slots(peer))
		n = acp_build_row(peer, out, budget, now);
	if (n)
		return n;
	return send_new(peer, &peer->pending, out, now) ? 1 : -ENOMEM;
}

/* What the window allows: lost frames first, then new ones.  False: no memory. */
static bool transmit(struct acp_peer *peer, struct acp_outbox *out, u64 now)
{
	struct acp_flow *flow = &peer->flow;
	int budget = SEND_BUDGET;
	u64 seq;

	peer->train = NULL;
	peer->measured = false;
	while (budget && (seq = acp_flow_lost(flow))) {
		acp_udp_route(peer);
		if (!acp_build_again(peer, out, acp_flow_token(flow, seq), seq))
			return false;
		acp_flow_resend(flow, seq, now);
		peer->traffic.tx_again++;
		acp_stat_inc(peer->job->node, tx_again);
		trace_acp_retransmit(peer, seq);
		budget--;
	}
	while (budget && !list_empty(&peer->answers) && acp_flow_room_answer(flow)) {
		if (!send_new(peer, &peer->answers, out, now))
			return false;
		budget--;
	}
	while (budget && !list_empty(&peer->pending) && acp_flow_room(flow)) {
		int n = send_some(peer, out, budget, now);

		if (n < 0)
			return false;
		budget -= n;
	}
	if (!budget)
		tasklet_schedule(&peer->work);
	return true;
}

/* One frame less has a piece of it; the last one gives it to a list. */
static void piece_through(struct acp_item *item, struct list_head *to)
{
	if (!--item->frames && item->out.finished)
		acp_items_add(to, item);
}

/* ---- the end of a flow's life, under the lock ---- */

/* An item is in one place only: pending, or in the slots; collect each once. */
static void drop_frame(struct acp_peer *peer, struct acp_sent *s)
{
	if (s->piece)
		piece_through(s->piece, &peer->dropped);
	else
		list_splice_tail(&s->items, &peer->dropped);
}

static void drop_all(struct acp_peer *peer, u8 status)
{
	struct acp_flow *flow = &peer->flow;
	u64 seq;

	for (seq = flow->una; seq < flow->next; seq++)
		if (flow->slots[seq % ACP_FRAME_WINDOW].state != ACP_SLOT_ACKED)
			drop_frame(peer, acp_flow_token(flow, seq));
	list_splice_tail_init(&peer->pending, &peer->dropped);
	list_splice_tail_init(&peer->answers, &peer->dropped);
	__skb_queue_purge(&peer->held);
	if (peer->fails)
		memset(peer->fails, 0, sizeof(*peer->fails));
	peer->blind = 0;
	peer->doubted = 0;	/* numbers begin anew, with 1 */
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

static void set_lost(struct acp_peer *peer, u8 status)
{
	/* Who tries again and again is told once. */
	peer->tell_lost |= peer->fate != ACP_FATE_LOST;
	WRITE_ONCE(peer->lost_status, status);
	WRITE_ONCE(peer->fate, ACP_FATE_LOST);
}

static void set_open(struct acp_peer *peer)
{
	if (peer->fate != ACP_FATE_LOST)
		return;
	WRITE_ONCE(peer->fate, ACP_FATE_BACK);
	peer->tell_back = true;
	tasklet_schedule(&peer->work);
}

/* Tell the ranks here what became of the peer.  Without the lock. */
static void tell(struct acp_peer *peer, bool lost, bool back)
{
	struct acp_news news = { .node = peer->node, .color = peer->color };

	if (lost) {
		news.type = ACP_EVENT_DOWN;
		news.status = peer->lost_status;
		acp_event_add(peer->job, &news);
		acp_nl_tell_node(peer, ACP_NL_EVENT_NODE_LOST);
	}
	if (back) {
		news.type = ACP_EVENT_UP;
		news.status = ACP_ST_OK;
		acp_event_add(peer->job, &news);
		acp_nl_tell_node(peer, ACP_NL_EVENT_NODE_BACK);
	}
}

static void flow_failed(struct acp_peer *peer, u8 status)
{
	u32 epoch = new_epoch(peer->flow.epoch);

	drop_all(peer, status);
	set_lost(peer, status);
	acp_flow_init(&peer->flow, epoch, new_epoch(epoch), peer->job->limit,
		      acp_job_open_limit(peer->job));
	peer->traffic.failed++;
	acp_stat_inc(peer->job->node, flows_failed);
	trace_acp_peer_state(peer, ACP_PEER_LOST, status);
}

static void flow_restarted(struct acp_peer *peer, u32 epoch_peer, u64 now)
{
	drop_all(peer, ACP_ST_PEER);
	set_lost(peer, ACP_ST_PEER);
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

/* ---- the pass over a peer ---- */

static void arm(struct acp_peer *peer, u64 now)
{
	u64 when;

	/* Mostly the timer is set for something earlier, and will be set anew when it fires. */
	if (acp_flow_not_before(&peer->flow) >= peer->armed && !peer->retry)
		return;
	when = acp_flow_deadline(&peer->flow);
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

void acp_peer_give_back_slots(struct acp_peer *peer)
{
	if (!peer->slots)
		return;
	kfree(peer->slots);
	kfree(peer->sent);
	peer->slots = NULL;
	peer->sent = NULL;
	peer->flow.slots = NULL;
	atomic_dec(&peer->job->n_slots);
	acp_user_uncharge(peer->job->user, ACP_LIMIT_USER_MEMORY, ACP_SLOTS_KIB);
}

static void give_back(struct acp_peer *peer)
{
	acp_peer_give_back_slots(peer);
	if (!peer->fails || peer->fails->count || peer->fails->blind >= peer->flow.rcv)
		return;
	kfree(peer->fails);
	peer->fails = NULL;
}

static void ask(struct acp_peer *peer, struct acp_outbox *out)
{
	struct acp_frame f = {};

	acp_flow_ask(&peer->flow, &f);
	acp_build_hello(peer, &f, out);
}

/* Is there one more reason to believe so?  One each time that the frame was sent. */
static bool doubted_again(struct acp_peer *peer, const struct acp_flow_slot *slot)
{
	if (peer->doubted != peer->flow.una) {
		peer->doubted = peer->flow.una;
		peer->doubted_at = slot->sent;
		peer->doubts = 0;
		peer->blameless = false;
	} else if (peer->answered > slot->sent && peer->doubted_at != slot->sent) {
		peer->doubted_at = slot->sent;
		peer->doubts++;
	}
	return peer->doubts >= DOUBTS;
}

/*
 * Does the path swallow what is long?  The oldest frame was sent several times, and since it was
 * last sent the peer has answered a short one.  (To be heard of is not enough: it may repeat what
 * it has to say because nothing gets through.)  If the shortest do not get through either, their
 * length was not the reason.
 */
static void doubt(struct acp_peer *peer, struct acp_outbox *out, u64 now)
{
	const struct acp_flow_slot *slot = &peer->slots[peer->flow.una % ACP_FRAME_WINDOW];
	u32 width;

	if (slot->tries < 2)
		return;
	acp_udp_measure(peer);
	width = acp_udp_narrower(peer, acp_build_size(peer, slot->token));
	if (!width && !peer->narrow)
		return;
	if (!doubted_again(peer, slot)) {
		ask(peer, out);
		return;
	}
	peer->doubts = 0;
	if (!width) {
		peer->blameless = true;
		peer->narrow = 0;
		acp_udp_measure(peer);
	} else if (!peer->blameless) {
		acp_udp_narrow(peer, width, now);
	}
}

/*
 * A short time-out ends the flow before there are so many doubts: some will do, if the peer
 * has answered since the frame was last sent.  The next flow begins with shorter ones.
 */
static void doubt_at_the_end(struct acp_peer *peer, u64 now)
{
	const struct acp_flow *flow = &peer->flow;
	const struct acp_flow_slot *slot;
	u32 width;

	if (flow->una == flow->next || peer->doubted != flow->una || peer->doubts < DOUBTS / 3 ||
	    peer->blameless)
		return;
	slot = &peer->slots[flow->una % ACP_FRAME_WINDOW];
	width = acp_udp_narrower(peer, acp_build_size(peer, slot->token));
	if (width && peer->answered > slot->sent)
		acp_udp_narrow(peer, width, now);
}

static void tick(struct acp_peer *peer, struct acp_outbox *out, u64 now)
{
	switch (acp_flow_tick(&peer->flow, now)) {
	case ACP_FLOW_QUIET:
		break;
	case ACP_FLOW_RESEND:
		peer->traffic.timeouts++;
		acp_stat_inc(peer->job->node, timeouts);
		doubt(peer, out, now);
		break;
	case ACP_FLOW_ASK:
		ask(peer, out);
		break;
	case ACP_FLOW_FAILED:
		doubt_at_the_end(peer, now);
		flow_failed(peer, peer->dst ? ACP_ST_TIMEOUT : ACP_ST_ROUTE);
		break;
	}
}

/* Everything that a peer's state asks to be sent.  Under the lock. */
static void pass(struct acp_peer *peer, struct acp_outbox *out, u64 now)
{
	if (peer->dead)
		return;
	if (now >= peer->armed) {
		peer->armed = ~0ULL;
		tick(peer, out, now);
	}
	if (peer->flow.state == ACP_FLOW_OPEN)
		peer->wanted = false;
	if (peer->flow.state == ACP_FLOW_CLOSED &&
	    (peer->wanted || !acp_peer_idle(peer))) {
		acp_flow_open(&peer->flow, now);
		trace_acp_peer_state(peer, ACP_PEER_OPENING, ACP_ST_OK);
		ask(peer, out);
	}
	peer->retry = !transmit(peer, out, now);
	if (peer->flow.ack_due && peer->flow.state == ACP_FLOW_OPEN)
		peer->retry |= !acp_build_ack(peer, out);
	arm(peer, now);
}

u32 acp_peer_send(struct acp_peer *peer, struct acp_item *item, u32 life)
{
	u32 epoch;

	spin_lock(&peer->lock);
	epoch = peer->flow.epoch;
	if (peer->dead) {
		acp_items_add(&peer->dropped, item);
		peer->dropped_status = ACP_ST_ABORT;
	} else if (life && life != epoch) {
		acp_items_add(&peer->dropped, item);
		tasklet_schedule(&peer->work);
		/* It went with that life: so does what is fenced behind it. */
		epoch = life;
	} else {
		if (item->context && item->out.m.type == ACP_MSG_CMD)
			acp_flow_expect_sent(&peer->flow);
		acp_items_add(item->arrival ? &peer->answers : &peer->pending, item);
	}
	spin_unlock(&peer->lock);
	return epoch;
}

/*
 * As if they had been sent when their life was looked at: if it has ended meanwhile, they
 * would have been dropped with it.
 */
static void add_row(struct acp_peer *peer, struct list_head *items, u32 life)
{
	if (likely(!peer->dead && life == peer->flow.epoch)) {
		list_splice_tail(items, &peer->pending);
		return;
	}
	list_splice_tail(items, &peer->dropped);
	if (peer->dead)
		peer->dropped_status = ACP_ST_ABORT;
	else
		tasklet_schedule(&peer->work);
}

void acp_peer_send_row(struct acp_peer *peer, struct list_head *items, u32 life)
{
	spin_lock(&peer->lock);
	add_row(peer, items, life);
	spin_unlock(&peer->lock);
}

/* Let go out what waits, and before that a row, if there is one. */
static __always_inline void flush(struct acp_peer *peer, struct list_head *row, u32 life)
{
	struct acp_outbox out = {};

	spin_lock(&peer->lock);
	if (row)
		add_row(peer, row, life);
	pass(peer, &out, acp_now());
	spin_unlock(&peer->lock);
	acp_udp_xmit(peer, &out);
}

void acp_peer_flush_row(struct acp_peer *peer, struct list_head *items, u32 life)
{
	flush(peer, items, life);
}

void acp_peer_flush(struct acp_peer *peer)
{
	flush(peer, NULL, 0);
}

u32 acp_peer_expect(struct acp_peer *peer)
{
	u32 life;

	spin_lock(&peer->lock);
	acp_flow_expect(&peer->flow, 1, peer->flow.expect ? 0 : acp_now());
	life = peer->flow.epoch;
	/* Silence is noticed by time, and only on a flow that is open. */
	if (peer->flow.state == ACP_FLOW_CLOSED ||
	    acp_flow_deadline(&peer->flow) < peer->armed)
		tasklet_schedule(&peer->work);
	spin_unlock(&peer->lock);
	return life;
}

void acp_peer_unexpect(struct acp_peer *peer, u32 life)
{
	spin_lock(&peer->lock);
	if (peer->flow.epoch == life && peer->flow.expect)
		acp_flow_expect(&peer->flow, -1, 0);
	spin_unlock(&peer->lock);
}

bool acp_peer_ready(struct acp_peer *peer, u32 *life, u8 *status)
{
	bool known = true;

	spin_lock(&peer->lock);
	if (peer->dead) {
		*status = ACP_ST_ABORT;
	} else if (*life && *life != peer->flow.epoch) {
		*status = peer->dropped_status;
	} else {
		*life = peer->flow.epoch;
		known = peer->flow.state == ACP_FLOW_OPEN;
		if (!known && !peer->wanted) {
			peer->wanted = true;
			tasklet_schedule(&peer->work);
		}
	}
	spin_unlock(&peer->lock);
	return known;
}

static void report_dropped(struct acp_peer *peer, struct list_head *dropped, u8 status)
{
	struct acp_item *item, *next;

	/* They are not taken off one by one: the list ends here. */
	list_for_each_entry_safe(item, next, dropped, link) {
		item->frames = 0;
		item->status = status;
		acp_station_done(item);
	}
}

/* ---- receiving ---- */

/* A frame that waits has an skb of its own.  NULL: no memory. */
static struct sk_buff *out_of_train(struct sk_buff *skb)
{
	const struct acp_frame_cb *cb = acp_frame_cb(skb);
	struct sk_buff *copy = acp_train_single(skb, cb->at.at, cb->length);

	if (!copy)
		return NULL;
	/* What was checked, whatever else is there by now. */
	memcpy(copy->data, cb->body, cb->tagged);
	*acp_frame_cb(copy) = *cb;
	acp_frame_cb(copy)->body = copy->data;
	acp_frame_cb(copy)->at = acp_bytes_first(copy);
	return copy;
}

/* A fenced frame that came too early.  The skb stays the caller's if it is not held. */
static bool hold(struct acp_peer *peer, struct sk_buff *skb)
{
	struct sk_buff *own = skb, *other;

	skb_queue_walk(&peer->held, other)
		if (acp_frame_cb(other)->seq == acp_frame_cb(skb)->seq)
			return false;
	if (skb_queue_len(&peer->held) >= HELD_MAX) {
		acp_stat_inc(peer->job->node, drop_held_full);
		trace_acp_drop(peer->job->node, skb, NULL, ACP_STAT_drop_held_full);
		return false;
	}
	if (skb_is_gso(skb))
		own = out_of_train(skb);
	if (!own) {
		acp_stat_inc(peer->job->node, drop_nomem);
		trace_acp_drop(peer->job->node, skb, NULL, ACP_STAT_drop_nomem);
		return false;
	}
	if (own != skb)
		consume_skb(skb);
	__skb_queue_tail(&peer->held, own);
	acp_stat_inc(peer->job->node, rx_held);
	return true;
}

/* Give an accepted frame to the station.  Drops the lock meanwhile. */
static void apply(struct acp_peer *peer, struct sk_buff *skb, u64 now)
{
	const struct acp_frame_cb *cb = acp_frame_cb(skb);
	u32 epoch = peer->flow.epoch;
	enum acp_arrived verdict;
	bool due, lazy = cb->lazy;
	u64 seq = cb->seq;

	spin_unlock(&peer->lock);
	verdict = acp_station_arrived(peer, epoch, skb, cb);
	spin_lock(&peer->lock);
	if (verdict == ACP_MALFORMED) {
		acp_stat_inc(peer->job->node, drop_bad_msg);
		trace_acp_drop(peer->job->node, skb, NULL, ACP_STAT_drop_bad_msg);
	} else if (verdict != ACP_REFUSED) {
		acp_stat_inc(peer->job->node, rx_frames);
	}
	acp_udp_free(skb);
	if (epoch != peer->flow.epoch || verdict == ACP_PENDING)
		return;
	if (verdict == ACP_REFUSED) {
		acp_flow_refuse(&peer->flow, seq);
		return;
	}
	due = peer->flow.ack_due;
	acp_flow_applied(&peer->flow, seq);
	if (lazy && !due)
		acp_flow_ack_later(&peer->flow, 1, now);
}

/*
 * Has the network marked it: Congestion Experienced?  That is in a part that no
 * tag covers, so it counts in new frames only: a replay would count again and again.
 */
static bool is_marked(const struct sk_buff *skb)
{
	if (skb->protocol == htons(ETH_P_IP))
		return INET_ECN_is_ce(ip_hdr(skb)->tos);
	return INET_ECN_is_ce(ipv6_get_dsfield(ipv6_hdr(skb)));
}

/* A DATA frame.  Under the lock; takes the skb. */
static void data(struct acp_peer *peer, struct sk_buff *skb, u64 now)
{
	const struct acp_frame_cb *cb = acp_frame_cb(skb);

	switch (acp_flow_accept(&peer->flow, cb->seq, cb->fence)) {
	case ACP_FLOW_NEW:
		if (unlikely(is_marked(skb))) {
			acp_flow_marked(&peer->flow);
			acp_stat_inc(peer->job->node, rx_marked);
		}
		apply(peer, skb, now);
		return;
	case ACP_FLOW_HOLD:
		if (hold(peer, skb))
			return;
		break;
	case ACP_FLOW_DUPLICATE:
		peer->traffic.rx_duplicates++;
		acp_stat_inc(peer->job->node, drop_duplicate);
		trace_acp_drop(peer->job->node, skb, NULL, ACP_STAT_drop_duplicate);
		break;
	case ACP_FLOW_FUTURE:
		acp_stat_inc(peer->job->node, drop_future);
		trace_acp_drop(peer->job->node, skb, NULL, ACP_STAT_drop_future);
		break;
	}
	kfree_skb(skb);
}

/* Fenced frames whose turn has come. */
static void release_held(struct acp_peer *peer)
{
	struct sk_buff *skb, *next;
	bool again;

	do {
		again = false;
		skb_queue_walk_safe(&peer->held, skb, next) {
			if (acp_frame_cb(skb)->seq > peer->flow.rcv)
				continue;
			__skb_unlink(skb, &peer->held);
			data(peer, skb, acp_now());
			again = true;
			break;
		}
	} while (again);
}

static void work(struct tasklet_struct *t)
{
	struct acp_peer *peer = from_tasklet(peer, t, work);
	struct acp_outbox out = {};
	bool lost, tell_lost, tell_back;
	LIST_HEAD(dropped);
	u8 status;

	spin_lock(&peer->lock);
	/* Not once acp_copies_flush() has waited for what this may start. */
	if (!READ_ONCE(peer->job->dead))
		release_held(peer);
	pass(peer, &out, acp_now());
	list_splice_init(&peer->dropped, &dropped);
	status = peer->dropped_status;
	lost = peer->lost;
	tell_lost = peer->tell_lost;
	tell_back = peer->tell_back && peer->fate == ACP_FATE_BACK;
	peer->lost = false;
	peer->tell_lost = false;
	peer->tell_back = false;
	spin_unlock(&peer->lock);
	acp_udp_xmit(peer, &out);
	report_dropped(peer, &dropped, status);
	if (lost)
		acp_station_lost(peer, status);
	tell(peer, tell_lost, tell_back);
	acp_station_idle(peer->job);
}

/* One frame was acknowledged: which items are complete with it? */
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
	u32 news;

	if (!peer->slots || !acp_flow_ack_begin(&peer->flow, &ack, f, map)) {
		acp_stat_inc(peer->job->node, drop_bad_ack);
		trace_acp_drop(peer->job->node, NULL, f, ACP_STAT_drop_bad_ack);
		return;
	}
	while ((s = acp_flow_ack_next(&peer->flow, &ack, now))) {
		trace_acp_ack(peer, ack.pos - 1, now);
		acked(s, done);
		WRITE_ONCE(peer->confirmed, true);
	}
	news = acp_flow_ack_end(&peer->flow, &ack, now);
	if (news & ACP_FLOW_REDUCED)
		acp_stat_inc(peer->job->node, window_marks);
	if (news & ACP_FLOW_TAKEN_BACK)
		acp_stat_inc(peer->job->node, timeouts_wrong);
}

static __always_inline void acknowledgement(struct acp_peer *peer, const struct acp_frame *f,
					    const struct acp_frame_ack *map,
					    struct list_head *done, u64 now)
{
	/* Mostly one end sends: nothing is under way, and the peer agrees. */
	if (peer->flow.una != peer->flow.next || f->ack != peer->flow.next)
		acknowledged(peer, f, map, done, now);
}

/*
 * Does the peer run the job as we do?  If it encrypts and we do not, or the
 * other way round, its header says so, and the body says nothing.
 */
static bool same_setup(struct acp_peer *peer, const struct acp_frame *f,
		       const struct acp_frame_hello *h)
{
	const struct acp_job *job = peer->job;
	bool aead = f->flags & ACP_FRAME_AEAD;

	if (aead == acp_job_sealed(job) &&
	    be32_to_cpu(h->nprocs) == job->ga.nprocs && be32_to_cpu(h->nodes) == job->nodes &&
	    be64_to_cpu(h->digest) == job->digest)
		return true;
	acp_stat_inc(job->node, drop_mismatch);
	trace_acp_drop(job->node, NULL, f, ACP_STAT_drop_mismatch);
	net_warn_ratelimited("acp: job %u: node %u runs another set-up of the job\n", job->id,
			     peer->node);
	return false;
}

/*
 * A HELLO of another set-up.  It is answered, so that both ends hear of it;
 * but only what answers a HELLO of ours, as no replay does and no frame of an
 * earlier run, ends anything.  So a node of a job that has not met yet asks.
 */
static void hello_of_stranger(struct acp_peer *peer, const struct acp_frame *f,
			      struct acp_outbox *out)
{
	struct acp_job *job = peer->job;
	struct acp_frame reply = {};
	u32 verdict = acp_flow_hello_stranger(&peer->flow, f, &reply);

	if (verdict & ACP_FLOW_REPLY)
		acp_build_hello(peer, &reply, out);
	if (verdict & ACP_FLOW_REFUSED) {
		acp_job_set_stranger(job, peer->node);
		flow_failed(peer, ACP_ST_PEER);
	} else if (!acp_job_met(job) && !READ_ONCE(job->stranger)) {
		peer->wanted = true;
	}
}

/* Not inline: other frames do not pay for its variables. */
static noinline void hello(struct acp_peer *peer, const struct acp_frame *f,
			   const struct acp_frame_hello *h, struct acp_outbox *out, u64 now)
{
	struct acp_frame reply = {};
	u32 verdict;

	/* Not before a rank has come for good: one that fails may begin the job anew. */
	if (list_empty(&peer->job->contexts) && f->epoch_src != peer->flow.epoch_peer) {
		acp_stat_inc(peer->job->node, drop_no_job);
		trace_acp_drop(peer->job->node, NULL, f, ACP_STAT_drop_no_job);
		return;
	}
	if (!same_setup(peer, f, h)) {
		hello_of_stranger(peer, f, out);
		return;
	}
	verdict = acp_flow_hello(&peer->flow, f, &reply, now);
	if (verdict & ACP_FLOW_RESTART)
		flow_restarted(peer, f->epoch_src, now);
	if (verdict & ACP_FLOW_OPENED)
		flow_opened(peer);
	if (!(f->flags & ACP_FRAME_ASK) && f->epoch_dst == peer->flow.epoch)
		peer->answered = now;
	if (verdict & ACP_FLOW_REPLY)
		acp_build_hello(peer, &reply, out);
}

/* Is it a piece of something long? */
static bool in_train(const struct acp_frame *f)
{
	return (f->flags & (ACP_FRAME_BULK | ACP_FRAME_AEAD)) &&
	       ((f->flags & ACP_FRAME_BULK) || f->length > AT_ONCE);
}

/*
 * Is there nothing that pass() would do?  Then all is acknowledged both ways, or will be
 * when the timer fires, which is set: that is how an exchange ends.
 */
static bool quiet(const struct acp_peer *peer, u64 now)
{
	const struct acp_flow *flow = &peer->flow;

	return flow->state == ACP_FLOW_OPEN && flow->una == flow->next && !flow->expect &&
	       !flow->ack_due && (!flow->ack_at || flow->ack_at >= peer->armed) &&
	       now < peer->armed && !peer->wanted && !peer->retry &&
	       list_empty(&peer->pending) && list_empty(&peer->answers);
}

/* A frame that is authentic.  The skb's data begins at its body. */
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
		acp_stat_inc(peer->job->node, drop_bad_epoch);
		trace_acp_drop(peer->job->node, skb, f, ACP_STAT_drop_bad_epoch);
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
	/* A train is answered once, at the end of the pass; all else at once. */
	if (in_train(f) || peer->lost || !skb_queue_empty(&peer->held)) {
		tasklet_schedule(&peer->work);
	} else {
		/* The lock was dropped; what is short is done in no time. */
		if (f->length > AT_ONCE)
			now = acp_now();
		if (!quiet(peer, now))
			pass(peer, &out, now);
	}
drop:
	spin_unlock(&peer->lock);
	if (skb)
		acp_udp_free(skb);
	acp_udp_xmit(peer, &out);
	if (!list_empty(&done))
		acp_station_delivered(&done);
	acp_station_idle(peer->job);
}

/* All of them are accepted.  Drops the lock meanwhile.  False: they are not, any more. */
static bool apply_pieces(struct acp_peer *peer, struct sk_buff *skb, const struct acp_frame *f,
			 const struct acp_msg *m, const struct acp_pieces *pieces, u64 now)
{
	u32 epoch = peer->flow.epoch, count = pieces->count;
	bool ok, due;

	spin_unlock(&peer->lock);
	ok = acp_station_pieces(peer, m, skb, pieces);
	spin_lock(&peer->lock);
	if (epoch != peer->flow.epoch)
		return true;
	if (!ok) {
		acp_flow_refuse_all(&peer->flow, f->seq, count);
		return false;
	}
	peer->traffic.rx_frames += count;
	peer->traffic.rx_bytes += (u64)count * acp_frame_size(f);
	acp_stat_add(peer->job->node, rx_frames, count);
	if (unlikely(is_marked(skb))) {
		acp_flow_marked(&peer->flow);
		acp_stat_add(peer->job->node, rx_marked, count);
	}
	due = peer->flow.ack_due;
	acp_flow_applied_all(&peer->flow, f->seq, count);
	if ((f->flags & ACP_FRAME_LAZY) && !due)
		acp_flow_ack_later(&peer->flow, count, now);
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
	if (epoch == peer->flow.epoch && !peer->dead) {
		acp_flow_applied(&peer->flow, seq);
		tasklet_schedule(&peer->work);
	}
	spin_unlock(&peer->lock);
}

/* ---- failures ---- */

bool acp_peer_fail(struct acp_peer *peer, u32 origin, u64 ticket, u8 status, u64 until)
{
	bool ok = false;

	spin_lock(&peer->lock);
	if (!peer->fails)
		peer->fails = kzalloc(sizeof(*peer->fails), GFP_ATOMIC | __GFP_NOWARN);
	if (peer->fails) {
		ok = acp_fails_add(peer->fails, origin, ticket, status, until);
	} else if (until) {
		peer->blind = max(peer->blind, until);
		ok = true;
	}
	spin_unlock(&peer->lock);
	return ok;
}

u8 acp_peer_find_fail(struct acp_peer *peer, u32 origin, u64 ticket)
{
	u8 status = ACP_ST_OK;

	spin_lock(&peer->lock);
	if (peer->fails)
		status = acp_fails_take(peer->fails, origin, ticket);
	spin_unlock(&peer->lock);
	return status;
}

bool acp_peer_depends(struct acp_peer *peer, const struct acp_msg *m)
{
	bool found = false;

	if (!READ_ONCE(peer->fails) && !READ_ONCE(peer->blind))
		return false;
	spin_lock(&peer->lock);
	if (peer->fails)
		found = acp_fails_depends(peer->fails, m, peer->flow.rcv);
	found |= peer->flow.rcv <= peer->blind;
	spin_unlock(&peer->lock);
	return found;
}

/* ---- peers ---- */

void acp_peer_init(struct acp_peer *peer)
{
	hrtimer_init(&peer->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	peer->timer.function = timer_fired;
	peer->armed = ~0ULL;
	peer->mtu = 1400;
	tasklet_setup(&peer->work, work);
}

/* An idle peer keeps its flow's numbers and gives back the rest. */
void acp_peer_reclaim(struct acp_peer *peer)
{
	spin_lock_bh(&peer->lock);
	if (peer->slots && acp_peer_idle(peer) &&
	    acp_now() - peer->used >= IDLE_NS)
		give_back(peer);
	spin_unlock_bh(&peer->lock);
}

/* No more frames, timers, tasklets; all items come back.  Sleeps. */
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
