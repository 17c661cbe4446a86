// SPDX-License-Identifier: GPL-2.0-only
/* One reliable, unordered flow of frames: see flow.h. */
#include "flow.h"

#define WINDOW		ACP_FRAME_WINDOW
#define HELLO_FIRST	1000000ULL	/* ns until a HELLO is repeated; doubled each time */
#define HELLO_MAX	ACP_FLOW_RTO_MAX
#define BACKOFF_MAX	10
#define NO_PROGRESS	3		/* limits without progress, even if the peer is alive */
#define QUESTIONS	16		/* probes per limit while frames are in flight, at most */

/* A new incarnation of this end: numbers start at 1, nothing is known of the path. */
static void begin(struct acp_flow *f)
{
	u32 i;

	f->state = ACP_FLOW_CLOSED;
	f->backoff = 0;
	f->ack_due = false;
	f->probing = false;
	f->late = 0;
	f->marked = false;
	f->marks = 0;
	f->marks_peer = 0;
	f->ack_at = 0;
	f->next = 1;
	f->una = 1;
	f->prompt = 0;
	f->flight = 0;
	f->lost = 0;
	f->expect = 0;
	f->recover = 0;
	f->doubt = 0;
	f->rack = 0;
	f->srtt = 0;
	f->rttvar = 0;
	f->shortest = 0;
	f->probe = 0;
	f->begun = 0;
	f->asked = 0;
	f->question = 0;
	f->answered = 0;
	f->rto = ACP_FLOW_RTO_INIT;
	f->rcv = 1;
	f->beyond = 0;
	f->n_held = 0;
	for (i = 0; i < WINDOW / 64; i++) {
		f->accepted[i] = 0;
		f->applied[i] = 0;
		f->held[i] = 0;
	}
	acp_cong_init(&f->cong, WINDOW - ACP_FLOW_ANSWERS);
}

void acp_flow_init(struct acp_flow *f, u32 epoch, u32 epoch_next, u64 limit, u64 open_limit)
{
	begin(f);
	f->epoch = epoch;
	f->epoch_next = epoch_next;
	f->epoch_peer = 0;
	f->limit = limit;
	f->open_limit = open_limit;
	f->heard = 0;
	f->progress = 0;
	f->rearm = 0;
}

/* ---- opening, epochs ---- */

void acp_flow_open(struct acp_flow *f, u64 now)
{
	if (f->state != ACP_FLOW_CLOSED)
		return;
	f->state = ACP_FLOW_OPENING;
	f->backoff = 0;
	f->heard = now;
	f->rearm = now;
}

static void hello(struct acp_frame *fr, u8 flags, u32 src, u32 dst)
{
	fr->type = ACP_FRAME_HELLO;
	fr->flags = flags;
	fr->epoch_src = src;
	fr->epoch_dst = dst;
	fr->seq = 0;
	fr->ack = 0;
}

/*
 * A HELLO of the peer's present incarnation. It is a sign of life only if it answers a later probe
 * than all that were answered before: others may be replays. An answer that was delayed on the path
 * shows that the peer was alive when it was probed, and perhaps not much longer.
 */
static void answered(struct acp_flow *f, const struct acp_frame *fr, u64 now)
{
	u64 asked = f->begun + fr->ack - 1;

	if (fr->ack <= f->question || !f->asked || fr->ack - 1 > f->asked - f->begun)
		return;
	f->question = fr->ack;
	f->answered = now;
	acp_flow_heard(f, max_t(u64, f->heard, min_t(u64, now, asked + f->limit / 2)));
}

u32 acp_flow_hello(struct acp_flow *f, const struct acp_frame *fr, struct acp_frame *reply,
		   u64 now)
{
	u32 verdict = ACP_FLOW_PASS;

	if (f->state == ACP_FLOW_OPEN && fr->epoch_src != f->epoch_peer) {
		if (fr->epoch_dst == f->epoch_next)
			return ACP_FLOW_PASS | ACP_FLOW_RESTART;
		/* To an earlier incarnation of this end: the echo of a replay, not a new peer. */
		if (fr->epoch_dst && fr->epoch_dst != f->epoch)
			return ACP_FLOW_DROP;
		hello(reply, ACP_FRAME_ASK, f->epoch_next, fr->epoch_src);
		return ACP_FLOW_REPLY;
	}
	if (fr->epoch_dst == f->epoch) {
		if (f->state == ACP_FLOW_OPEN) {
			answered(f, fr, now);
		} else {
			acp_flow_opened(f, fr->epoch_src, now);
			verdict |= ACP_FLOW_OPENED;
		}
	}
	if (fr->flags & ACP_FRAME_ASK) {
		hello(reply, 0, f->epoch, fr->epoch_src);
		reply->ack = fr->seq;
		verdict |= ACP_FLOW_REPLY;
	}
	return verdict;
}

u32 acp_flow_hello_mismatched(const struct acp_flow *f, const struct acp_frame *fr,
			      struct acp_frame *reply)
{
	u32 verdict = ACP_FLOW_DROP;

	if (fr->flags & ACP_FRAME_ASK) {
		hello(reply, 0, f->epoch, fr->epoch_src);
		verdict |= ACP_FLOW_REPLY;
	}
	if (f->state != ACP_FLOW_OPEN && fr->epoch_dst == f->epoch)
		verdict |= ACP_FLOW_REFUSED;
	return verdict;
}

void acp_flow_restart(struct acp_flow *f, u32 epoch_peer, u32 epoch_next, u64 now)
{
	begin(f);
	f->epoch = f->epoch_next;
	f->epoch_next = epoch_next;
	acp_flow_opened(f, epoch_peer, now);
}

void acp_flow_ask(struct acp_flow *f, struct acp_frame *fr, u64 now)
{
	bool open = f->state == ACP_FLOW_OPEN;

	hello(fr, ACP_FRAME_ASK, f->epoch, open ? f->epoch_peer : 0);
	if (!open)
		return;
	f->asked = max_t(u64, now, f->begun);
	fr->seq = f->asked - f->begun + 1;
}

/* ---- sending ---- */

u64 acp_flow_send_answer(struct acp_flow *f, void *token, u64 now)
{
	u64 seq = acp_flow_send(f, token, now);

	acp_flow_slot_of(f, seq)->answer = true;
	return seq;
}

u64 acp_flow_next_lost(const struct acp_flow *f)
{
	bool full = f->flight && f->flight >= f->cong.window;
	u64 seq;

	for (seq = f->una; seq < f->next; seq++)
		if (acp_flow_slot_of(f, seq)->state == ACP_SLOT_LOST &&
		    (!full || seq == f->una || acp_flow_slot_of(f, seq)->answer))
			return seq;
	return 0;
}

void *acp_flow_token(const struct acp_flow *f, u64 seq)
{
	return acp_flow_slot_of(f, seq)->token;
}

void acp_flow_resend(struct acp_flow *f, u64 seq, u64 now)
{
	struct acp_flow_slot *s = acp_flow_slot_of(f, seq);

	s->state = ACP_SLOT_FLIGHT;
	s->sent = now;
	if (s->tries < 255)
		s->tries++;
	f->lost--;
	f->flight++;
}

static bool in_ack(const struct acp_flow_ack *a, u64 seq)
{
	u64 i;

	if (seq < a->ack)
		return true;
	if (seq == a->ack)
		return false;
	i = seq - a->ack - 1;
	return a->map[i / 64] >> (i % 64) & 1;
}

/*
 * Does the acknowledgement of a frame that was lost by time-out belong to its first transmission? A
 * receiver that holds a fenced frame acknowledges it when earlier frames arrive, so this shows
 * nothing.
 */
static bool had_arrived(const struct acp_flow *f, const struct acp_flow_slot *s, u64 now)
{
	if (s->fenced)
		return false;
	if (s->state == ACP_SLOT_LOST)
		return s->tries == 1;
	return s->tries == 2 && acp_flow_since(s->sent, now) < f->shortest / 2;
}

/*
 * How long after its retransmission a frame must be acknowledged to show that earlier ones are
 * lost. After a time-out was taken back, srtt includes the stall.
 */
static u64 least(const struct acp_flow *f, u64 seq)
{
	return (seq == f->probe ? f->shortest : f->srtt) / 2;
}

void *acp_flow_ack_take(struct acp_flow *f, struct acp_flow_ack *a, u64 now)
{
	for (; a->pos < a->end; a->pos++) {
		struct acp_flow_slot *s = acp_flow_slot_of(f, a->pos);
		void *token = s->token;

		if (s->state == ACP_SLOT_ACKED || !in_ack(a, a->pos))
			continue;
		if (a->pos < f->doubt)
			a->arrived |= had_arrived(f, s, now);
		if (s->state == ACP_SLOT_LOST)
			f->lost--;
		else
			f->flight--;
		s->state = ACP_SLOT_ACKED;
		s->token = NULL;
		if (s->tries == 1) {
			a->sample = acp_flow_since(s->sent, now);
			a->late = a->pos > f->prompt;
			f->rack = max_t(u64, f->rack, s->sent);
		} else if (acp_flow_since(s->sent, now) >= least(f, a->pos)) {
			f->rack = max_t(u64, f->rack, s->sent);
		}
		a->count++;
		a->pos++;
		return token;
	}
	return NULL;
}

/* Jacobson's estimator. The time-out stays within the limits of the protocol. */
static void measure(struct acp_flow *f, u64 rtt)
{
	u64 diff = rtt > f->srtt ? rtt - f->srtt : f->srtt - rtt;

	if (!f->srtt) {
		f->srtt = rtt;
		f->rttvar = rtt / 2;
	} else {
		f->rttvar += (diff >> 2) - (f->rttvar >> 2);
		f->srtt += (rtt >> 3) - (f->srtt >> 3);
	}
	f->rto = f->srtt + max_t(u64, 4 * f->rttvar, f->srtt / 2);
	f->rto = min_t(u64, max_t(u64, f->rto, ACP_FLOW_RTO_MIN), ACP_FLOW_RTO_MAX);
}

/*
 * Update the estimate of the path. An acknowledgement that may have been delayed is no measure,
 * unless it shows that the path has become slower. Only a sample ends the back-off (Karn):
 * retransmitted frames give none, and without the back-off each of them would be retransmitted on a
 * path that has become slower.
 */
static void sampled(struct acp_flow *f, u64 rtt, bool late)
{
	f->backoff = 0;
	f->shortest = f->shortest ? min_t(u64, f->shortest, rtt) : rtt;
	if (late && f->srtt && rtt > f->srtt) {
		if (rtt - f->srtt <= ACP_FLOW_ACK_DELAY)
			return;
		rtt -= ACP_FLOW_ACK_DELAY;
	}
	measure(f, rtt);
}

/*
 * Frames sent before "before" are lost. Returns how many, but 0 if all of them were sent before the
 * last reaction to a loss.
 */
static u32 mark_lost(struct acp_flow *f, u64 before)
{
	bool fresh = false;
	u32 count = 0;
	u64 seq;

	for (seq = f->una; seq < f->next; seq++) {
		struct acp_flow_slot *s = acp_flow_slot_of(f, seq);

		if (s->state != ACP_SLOT_FLIGHT || s->sent >= before)
			continue;
		s->state = ACP_SLOT_LOST;
		f->flight--;
		f->lost++;
		count++;
		fresh |= seq >= f->recover;
	}
	return fresh ? count : 0;
}

/*
 * Has the peer seen marks that are not known here yet? Called only for an acknowledgement of
 * something new: one that was overtaken on the path has an old count.
 */
static bool marks(struct acp_flow *f, const struct acp_flow_ack *a)
{
	if (a->marks == f->marks_peer)
		return false;
	f->marks_peer = a->marks;
	return true;
}

/*
 * Frames lost by time-out had arrived: those that are missing will be detected as if there had been
 * no time-out. The oldest frame is retransmitted nevertheless, because perhaps no other frame is
 * sent that could reveal what is missing. What the retransmission seemed to show about earlier
 * frames was wrong, too.
 */
static void take_back(struct acp_flow *f, const struct acp_flow_ack *a, u64 now)
{
	u64 seq;

	for (seq = f->una + 1; seq < f->doubt; seq++) {
		struct acp_flow_slot *s = acp_flow_slot_of(f, seq);

		if (s->state != ACP_SLOT_LOST)
			continue;
		s->state = ACP_SLOT_FLIGHT;
		f->lost--;
		f->flight++;
	}
	f->probe = f->una;
	f->recover = f->before.recover;
	f->rack = f->before.rack;
	if (a->sample)
		f->rack = max_t(u64, f->rack, now - min_t(u64, a->sample, now));
	f->doubt = 0;
	acp_cong_take_back(&f->cong);
}

/* Process the losses that an acknowledgement reveals. */
static void overtaken(struct acp_flow *f)
{
	u64 slack = max_t(u64, f->srtt / 4, 10000);
	u32 lost;

	if (!f->flight || f->rack <= slack)
		return;
	lost = mark_lost(f, f->rack - slack);
	if (!lost)
		return;
	acp_cong_lost(&f->cong, lost, f->srtt);
	f->recover = f->next;
	f->doubt = 0;
}

u32 acp_flow_ack_end(struct acp_flow *f, struct acp_flow_ack *a, u64 now)
{
	u32 events = 0;
	u64 una;

	if (!a->count)
		return 0;
	for (una = f->una; una < f->next; una++) {
		struct acp_flow_slot *s = acp_flow_slot_of(f, una);

		if (s->state != ACP_SLOT_ACKED)
			break;
		s->state = ACP_SLOT_FREE;
	}
	f->una = una;
	if (a->sample) {
		sampled(f, a->sample, a->late);
		acp_cong_sample(&f->cong, a->sample, 4 * f->rttvar);
	}
	f->rearm = now;
	f->progress = now;
	acp_flow_heard(f, now);
	if (a->arrived) {
		take_back(f, a, now);
		events |= ACP_FLOW_TAKEN_BACK;
	} else if (f->una >= f->doubt) {
		f->doubt = 0;
	}
	if (acp_cong_acked(&f->cong, a->count, f->flight, marks(f, a), f->srtt))
		events |= ACP_FLOW_REDUCED;
	overtaken(f);
	return events;
}

/* ---- receiving ---- */

/*
 * Bits are by number modulo the window. A frame whose number was applied from another copy and
 * which is still held can be mistaken for a later one, which is then retransmitted.
 */
enum acp_flow_hold acp_flow_hold(struct acp_flow *f, u64 seq)
{
	if (acp_flow_test(f->held, seq))
		return ACP_HOLD_TWICE;
	if (f->n_held == ACP_FLOW_HELD)
		return ACP_HOLD_FULL;
	acp_flow_set(f->held, seq);
	f->n_held++;
	return ACP_HOLD_KEPT;
}

void acp_flow_unhold(struct acp_flow *f, u64 seq)
{
	acp_flow_clear(f->held, seq);
	f->n_held--;
}

void acp_flow_refuse(struct acp_flow *f, u64 seq)
{
	acp_flow_clear(f->accepted, seq);
}

/*
 * The bits of "count" numbers (at least 1) from seq on that are in one word of a map. *n: how many.
 */
static u64 bits(u64 seq, u32 count, u32 *n)
{
	u32 shift = seq % 64;

	*n = min_t(u32, count, 64 - shift);
	return ~0ULL >> (64 - *n) << shift;
}

static bool test_any(const u64 *map, u64 seq, u32 count)
{
	u32 n;

	for (; count; seq += n, count -= n)
		if (map[seq / 64 % (WINDOW / 64)] & bits(seq, count, &n))
			return true;
	return false;
}

static void set_all(u64 *map, u64 seq, u32 count)
{
	u32 n;

	for (; count; seq += n, count -= n)
		map[seq / 64 % (WINDOW / 64)] |= bits(seq, count, &n);
}

static void clear_all(u64 *map, u64 seq, u32 count)
{
	u32 n;

	for (; count; seq += n, count -= n)
		map[seq / 64 % (WINDOW / 64)] &= ~bits(seq, count, &n);
}

bool acp_flow_accept_all(struct acp_flow *f, u64 seq, u32 count)
{
	if (seq < f->rcv || count > WINDOW || seq - f->rcv > WINDOW - count ||
	    test_any(f->accepted, seq, count))
		return false;
	set_all(f->accepted, seq, count);
	return true;
}

void acp_flow_applied_all(struct acp_flow *f, u64 seq, u32 count)
{
	f->ack_due = true;
	if (seq != f->rcv) {
		set_all(f->applied, seq, count);
		f->beyond += count;
		return;
	}
	clear_all(f->accepted, seq, count);
	f->rcv += count;
	acp_flow_close_gap(f);
}

void acp_flow_refuse_all(struct acp_flow *f, u64 seq, u32 count)
{
	clear_all(f->accepted, seq, count);
}

/* 64 bits of the applied map, from number "seq" on. */
static u64 window_bits(const struct acp_flow *f, u64 seq)
{
	u32 word = seq / 64 % (WINDOW / 64), shift = seq % 64;
	u64 low = f->applied[word] >> shift;

	if (!shift)
		return low;
	return low | f->applied[(word + 1) % (WINDOW / 64)] << (64 - shift);
}

void acp_flow_fill_map(const struct acp_flow *f, struct acp_frame_ack *map)
{
	u32 i;

	/* Number rcv itself has never been applied, so the last bit, which wraps to it, is 0. */
	for (i = 0; i < WINDOW / 64; i++)
		map->map[i] = cpu_to_be64(window_bits(f, f->rcv + 1 + 64 * i));
}

/* ---- time ---- */

/* How long the acknowledgement of all frames in flight may be delayed. */
static u64 leeway(const struct acp_flow *f)
{
	return f->una > f->prompt ? ACP_FLOW_ACK_DELAY : 0;
}

static u64 timeout(const struct acp_flow *f)
{
	if (f->state == ACP_FLOW_OPENING)
		return min_t(u64, HELLO_FIRST << f->backoff, HELLO_MAX);
	return min_t(u64, (f->rto << f->backoff) + leeway(f), ACP_FLOW_RTO_MAX);
}

/* If there is nothing to retransmit, a silent peer that owes answers is probed. */
static u64 probe_interval(const struct acp_flow *f)
{
	return max_t(u64, f->limit / 4, ACP_FLOW_RTO_MAX / 2);
}

/* When to retransmit frames or probe the peer; ~0: never. */
static u64 repeat_at(const struct acp_flow *f)
{
	if (f->state == ACP_FLOW_OPENING || f->next != f->una)
		return f->rearm + timeout(f);
	if (f->state == ACP_FLOW_OPEN && f->expect)
		return max_t(u64, f->rearm, f->heard) + probe_interval(f);
	return ~0ULL;
}

u64 acp_flow_deadline(const struct acp_flow *f)
{
	u64 at = repeat_at(f);

	return f->ack_at ? min_t(u64, at, f->ack_at) : at;
}

bool acp_flow_ask_due(const struct acp_flow *f, u64 now)
{
	return f->state == ACP_FLOW_OPEN && acp_flow_since(f->heard, now) >= f->limit / 4 &&
	       acp_flow_since(f->asked, now) >= f->limit / QUESTIONS;
}

static enum acp_flow_tick probe(struct acp_flow *f, u64 now)
{
	if (f->probing && acp_flow_since(f->heard, now) > f->limit)
		return ACP_FLOW_FAILED;
	f->rearm = now;
	f->probing = true;
	return ACP_FLOW_ASK;
}

/* Do not count as silence of the peer the time for which this machine was paused or too busy. */
static void overslept(struct acp_flow *f, u64 late, u64 now)
{
	if (late < ACP_FLOW_RTO_MAX)
		return;
	f->heard = min_t(u64, now, f->heard + late);
	f->progress = min_t(u64, now, f->progress + late);
}

static void timed_out(struct acp_flow *f)
{
	acp_cong_timeout(&f->cong, f->doubt);
	if (!f->doubt) {
		f->doubt = f->next;
		f->before.recover = f->recover;
		f->before.rack = f->rack;
	}
	f->recover = f->next;
}

enum acp_flow_tick acp_flow_tick(struct acp_flow *f, u64 now)
{
	u64 oldest = min_t(u64, f->rto + leeway(f), ACP_FLOW_RTO_MAX), due = repeat_at(f);

	if (f->ack_at && now >= f->ack_at) {
		f->ack_due = true;
		f->ack_at = 0;
	}
	if (now < due)
		return ACP_FLOW_QUIET;
	overslept(f, now - due, now);
	if (f->state == ACP_FLOW_OPENING) {
		if (acp_flow_since(f->heard, now) > f->open_limit)
			return ACP_FLOW_FAILED;
		f->rearm = now;
		if (f->backoff < BACKOFF_MAX)
			f->backoff++;
		return ACP_FLOW_ASK;
	}
	if (f->next == f->una)
		return probe(f, now);
	if (acp_flow_since(f->heard, now) > f->limit ||
	    acp_flow_since(f->progress, now) > NO_PROGRESS * f->limit)
		return ACP_FLOW_FAILED;
	f->rearm = now;
	if (f->backoff < BACKOFF_MAX)
		f->backoff++;
	if (mark_lost(f, now - min_t(u64, oldest, now) + 1) || f->lost)
		timed_out(f);
	return ACP_FLOW_RESEND;
}

void acp_flow_expect(struct acp_flow *f, int n, u64 now)
{
	if (!f->expect && n > 0) {
		f->probing = false;
		/* If frames are in flight, the wait has begun, and their time-out continues. */
		if (f->next == f->una) {
			f->heard = max_t(u64, f->heard, now);
			f->rearm = now;
		}
	}
	f->expect += n;
}

void acp_flow_expect_sent(struct acp_flow *f)
{
	if (!f->expect++)
		f->probing = false;
}
