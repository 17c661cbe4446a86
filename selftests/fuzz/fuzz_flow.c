// SPDX-License-Identifier: MIT
/*
 * Fuzzer of kernel/core/flow.c and cong.c: the input is a program. The two ends of a flow send,
 * lose, retransmit, delay and duplicate frames, restart, sleep and change their setup of the job,
 * as the input says. A model without windows, slots and timeouts records which sequence numbers
 * were accepted and applied, and which tokens were returned; after every step the flows must agree
 * with it. At the end the network becomes reliable, and everything in flight must complete.
 *
 * If the input asks for it, authenticated peers also send false frames: with any sequence number,
 * acknowledgement and epoch (N12, N13). Then the statements of one end about the other no longer
 * count, but each end must remain consistent.
 */
#include "fuzz.h"
#include "flow.h"

#define WINDOW		((u64)ACP_FRAME_WINDOW)
#define NUMBERS		2048		/* used by an end in one incarnation */
#define SPACE		(NUMBERS + 3 * WINDOW)
#define PACKETS		128		/* in flight at the same time; more are lost */
#define MS		1000000ULL
#define ROUNDS		20000		/* maximum number until everything has ended */

/* @sent of an incarnation */
#define OUT		1		/* the token has not been returned */
#define BACK		2
#define FENCE		4
#define LAZY		8

/* @got and @there of an incarnation */
#define TAKEN		1
#define APPLIED		2

/* One incarnation of an end: from epoch to epoch. */
struct incarnation {
	struct incarnation *older;
	u32 epoch;
	u64 base;		/* the first number, of both directions */
	u64 rcv;		/* the first number that was not applied here */
	bool marked;		/* by the network, since the last acknowledgement */
	u8 marks;		/* number of acknowledgements that reported it */
	u8 sent[SPACE];		/* own numbers; a frame's token points here */
	u8 there[SPACE];	/* the same, as processed by the other end */
	u8 got[SPACE];		/* the other end's numbers */
};

struct packet {
	struct packet *next;
	struct acp_frame f;
	struct acp_frame_ack map;
	bool mapped, ce;
	u32 setup;
	struct incarnation *from;	/* NULL: a false frame */
	struct end *to;
};

/* A frame that was accepted, but not applied yet. */
struct pending {
	u64 seq;
	bool lazy;
	struct incarnation *from;
};

struct end {
	struct acp_flow *f;
	struct end *other;
	struct incarnation *own;
	u32 setup;
	u64 heard, progress;	/* not later than those of the flow */
	struct pending pending[ACP_FRAME_WINDOW];
	u32 pendings;
};

struct world {
	struct end e[2];
	struct packet *first, **last;
	u32 packets;
	u32 epochs;
	u64 now, skew;
	bool lies, mended;
	struct incarnation *incarnations;
};

/* The time of a caller that read the clock before it got the lock. */
static u64 now(const struct world *w)
{
	return w->now - min_t(u64, w->skew, w->now);
}

static u64 place(const struct incarnation *l, u64 seq)
{
	ENSURE(seq - l->base < SPACE);
	return seq - l->base;
}

/* ---- Incarnations ---- */

static void new_life(struct world *w, struct end *e)
{
	struct incarnation *l = calloc(1, sizeof(*l));

	l->older = w->incarnations;
	w->incarnations = l;
	l->epoch = e->f->epoch;
	l->base = 1;
	l->rcv = 1;
	e->own = l;
	e->pendings = 0;
}

/* The caller takes back what was not acknowledged. */
static void take_back(struct end *e)
{
	u64 seq;

	for (seq = e->f->una; seq < e->f->next; seq++) {
		u8 *sent = &e->own->sent[place(e->own, seq)];

		if (e->f->slots[seq % WINDOW].state == ACP_SLOT_ACKED) {
			ENSURE(*sent & BACK);
			continue;
		}
		ENSURE(*sent & OUT && acp_flow_token(e->f, seq) == sent);
		*sent = BACK;
	}
}

static void begin(struct world *w, struct end *e)
{
	take_back(e);
	acp_flow_init(e->f, w->epochs, w->epochs + 1, e->f->limit, e->f->open_limit);
	w->epochs += 2;
	new_life(w, e);
}

/* True if both ends are open, each with the other's incarnation. */
static bool joined(const struct end *e)
{
	const struct acp_flow *f = e->f, *g = e->other->f;

	return f->state == ACP_FLOW_OPEN && g->state == ACP_FLOW_OPEN &&
	       f->epoch_peer == g->epoch && g->epoch_peer == f->epoch;
}

/* Old frames must not make two active ends restart. */
static void restart(struct world *w, struct end *e, u32 epoch_peer)
{
	u32 epoch = e->f->epoch_next;

	ENSURE(w->lies || !joined(e));
	take_back(e);
	acp_flow_restart(e->f, epoch_peer, w->epochs++, now(w));
	ENSURE(e->f->state == ACP_FLOW_OPEN && e->f->epoch == epoch);
	new_life(w, e);
	e->heard = now(w);
	e->progress = now(w);
}

/* ---- The network ---- */

static void put(struct world *w, const struct packet *p)
{
	if (w->packets == PACKETS)
		return;
	*w->last = exactly(p, sizeof(*p));
	w->last = &(*w->last)->next;
	*w->last = NULL;
	w->packets++;
}

/* Take a packet from the network. */
static struct packet *pull(struct world *w, u32 which)
{
	struct packet **at = &w->first, *p;

	for (; which; which--)
		at = &(*at)->next;
	p = *at;
	*at = p->next;
	if (!*at)
		w->last = at;
	w->packets--;
	return p;
}

static struct packet packet_of(struct end *e, u8 type)
{
	return (struct packet){ .f.type = type, .setup = e->setup, .from = e->own,
				.to = e->other };
}

/* An acknowledgement reports exactly what was applied and marked. */
static void ack_rule(struct end *e, const struct packet *p)
{
	u64 i;

	ENSURE(p->f.epoch_src == e->own->epoch && p->f.epoch_dst == e->f->epoch_peer);
	ENSURE(p->f.ack == e->own->rcv);
	e->own->marks += e->own->marked;
	e->own->marked = false;
	ENSURE(p->f.flags / ACP_FRAME_MARK == e->own->marks % 4);
	for (i = 0; i < WINDOW && p->mapped; i++) {
		bool bit = be64_to_cpu(p->map.map[i / 64]) >> (i % 64) & 1;

		ENSURE(bit == !!(e->own->got[place(e->own, p->f.ack + 1 + i)] & APPLIED));
	}
}

static void send_ack(struct world *w, struct end *e)
{
	struct packet p = packet_of(e, ACP_FRAME_ACK);

	if (e->f->state != ACP_FLOW_OPEN)
		return;
	p.mapped = acp_flow_map_needed(e->f);
	acp_flow_fill_map(e->f, &p.map);
	acp_flow_fill(e->f, &p.f);
	ENSURE(!e->f->ack_due && !e->f->ack_at);
	ack_rule(e, &p);
	put(w, &p);
}

static void send_hello(struct world *w, struct end *e, const struct acp_frame *f)
{
	struct packet p = packet_of(e, ACP_FRAME_HELLO);

	if (f)
		p.f = *f;
	else
		acp_flow_ask(e->f, &p.f, now(w));
	ENSURE(p.f.type == ACP_FRAME_HELLO && p.f.epoch_src);
	put(w, &p);
}

/* Build the frame of a number, as it would be sent now. */
static void build(struct world *w, struct end *e, u64 seq)
{
	struct packet p = packet_of(e, ACP_FRAME_DATA);
	u8 how = e->own->sent[place(e->own, seq)];
	bool due = e->f->ack_due, beyond = acp_flow_map_needed(e->f);

	p.f.seq = seq;
	if (acp_flow_lazy(e->f, seq, how & LAZY)) {
		ENSURE(how & LAZY && e->f->slots[seq % WINDOW].tries == 1);
		p.f.flags |= ACP_FRAME_LAZY;
	}
	if (how & FENCE)
		p.f.flags |= ACP_FRAME_FENCE;
	acp_flow_fill(e->f, &p.f);
	ENSURE(e->f->ack_due == (due && beyond));
	ack_rule(e, &p);
	put(w, &p);
}

static void send_new(struct world *w, struct end *e, u8 how, bool answer)
{
	bool first = e->f->next == e->f->una;
	u8 *sent;
	u64 seq;

	if (!(answer ? acp_flow_room_answer(e->f) : acp_flow_room(e->f)) ||
	    e->f->next - e->own->base >= NUMBERS)
		return;
	sent = &e->own->sent[place(e->own, e->f->next)];
	ENSURE(!*sent);
	*sent = OUT | how;
	if (answer)
		seq = acp_flow_send_answer(e->f, sent, now(w));
	else
		seq = acp_flow_send(e->f, sent, now(w));
	ENSURE(sent == &e->own->sent[place(e->own, seq)]);
	ENSURE(answer || e->f->flight <= e->f->cong.window);
	ENSURE(seq - e->f->una < (answer ? WINDOW : WINDOW - ACP_FLOW_ANSWERS));
	if (first)
		e->progress = now(w);
	build(w, e, seq);
}

static void send_lost(struct world *w, struct end *e)
{
	u64 seq;

	while ((seq = acp_flow_lost(e->f))) {
		const u8 *sent = &e->own->sent[place(e->own, seq)];

		ENSURE(*sent & OUT && acp_flow_token(e->f, seq) == sent);
		build(w, e, seq);
		acp_flow_resend(e->f, seq, now(w));
	}
}

/* ---- Reception ---- */

static bool covers(const struct packet *p, u64 seq)
{
	u64 i = seq - p->f.ack - 1;

	if (seq < p->f.ack)
		return true;
	return seq > p->f.ack && p->mapped && i < WINDOW &&
	       be64_to_cpu(p->map.map[i / 64]) >> (i % 64) & 1;
}

/* Each token is returned once, if its frame was acknowledged and therefore applied. */
static u32 take_tokens(struct world *w, struct end *e, struct acp_flow_ack *a,
		       const struct packet *p)
{
	u32 count = 0;
	u64 i;
	u8 *sent;

	while ((sent = acp_flow_ack_next(e->f, a, now(w)))) {
		i = sent - e->own->sent;
		ENSURE(i < SPACE && *sent & OUT);
		*sent = BACK;
		ENSURE(covers(p, e->own->base + i));
		ENSURE(w->lies || e->own->there[i] & APPLIED);
		count++;
	}
	return count;
}

static void acknowledgement(struct world *w, struct end *e, const struct packet *p)
{
	struct acp_flow before = *e->f;
	struct acp_flow_ack a;
	u64 seq;

	if (!acp_flow_ack_begin(e->f, &a, &p->f, p->mapped ? &p->map : NULL)) {
		ENSURE(w->lies && (p->f.ack > e->f->next || !p->f.ack));
		ENSURE(!memcmp(&before, e->f, sizeof(before)));
		return;
	}
	ENSURE(p->f.ack && p->f.ack <= e->f->next);
	if (take_tokens(w, e, &a, p)) {
		e->progress = now(w);
		e->heard = now(w);
	}
	acp_flow_ack_end(e->f, &a, now(w));
	ENSURE(e->f->una >= before.una && e->f->next == before.next);
	ENSURE(e->f->una >= p->f.ack);
	for (seq = e->f->una; p->mapped && seq < e->f->next; seq++)
		ENSURE(e->own->sent[place(e->own, seq)] & BACK || !covers(p, seq));
}

static void applied(struct world *w, struct end *e, const struct pending *x)
{
	struct incarnation *l = e->own;
	bool due = e->f->ack_due, first = x->seq == l->rcv;

	if (x->from)
		x->from->there[place(x->from, x->seq)] |= APPLIED;
	l->got[place(l, x->seq)] |= APPLIED;
	while (l->got[place(l, l->rcv)] & APPLIED)
		l->rcv++;
	ENSURE(acp_flow_applied(e->f, x->seq) == first && e->f->ack_due);
	if (!x->lazy || due)
		return;
	acp_flow_ack_later(e->f, 1, now(w));
	ENSURE(e->f->ack_due || (e->f->late < ACP_FLOW_ACK_EVERY && !e->f->beyond));
	ENSURE(e->f->ack_at);
}

static void refused(struct end *e, const struct pending *x)
{
	acp_flow_refuse(e->f, x->seq);
	e->own->got[place(e->own, x->seq)] = 0;
	if (x->from)
		x->from->there[place(x->from, x->seq)] = 0;
}

/* The fate of a frame that is accepted. */
enum fate { NOW, LATER, REFUSED };

static void taken(struct world *w, struct end *e, const struct packet *p, enum fate fate)
{
	struct pending x = { p->f.seq, p->f.flags & ACP_FRAME_LAZY, p->from };
	u8 *there = x.from ? &x.from->there[place(x.from, x.seq)] : NULL;

	if (fate != REFUSED) {
		acp_flow_heard(e->f, now(w));
		e->heard = now(w);
		if (p->ce)
			acp_flow_marked(e->f);
		e->own->marked |= p->ce;
	}
	e->own->got[place(e->own, x.seq)] |= TAKEN;
	if (there && !w->lies) {
		ENSURE(!(*there & TAKEN));	/* in no incarnation of this end */
		*there |= TAKEN;
	}
	if (fate == NOW)
		applied(w, e, &x);
	else if (fate == LATER)
		e->pending[e->pendings++] = x;
	else
		refused(e, &x);
}

static void data(struct world *w, struct end *e, const struct packet *p, enum fate fate)
{
	const struct incarnation *l = e->own;
	bool fence = p->f.flags & ACP_FRAME_FENCE;
	enum acp_flow_verdict want = ACP_FLOW_NEW;

	if (p->f.seq < l->rcv)
		want = ACP_FLOW_DUPLICATE;
	else if (p->f.seq - l->rcv >= WINDOW)
		want = ACP_FLOW_FUTURE;
	else if (p->f.seq - l->base >= NUMBERS)
		return;		/* the limit of the model is below that of the flow */
	else if (l->got[place(l, p->f.seq)] & TAKEN)
		want = ACP_FLOW_DUPLICATE;
	else if (fence && p->f.seq != l->rcv)
		want = ACP_FLOW_HOLD;
	ENSURE(acp_flow_accept(e->f, p->f.seq, fence) == want);
	ENSURE(want != ACP_FLOW_FUTURE || w->lies);
	ENSURE(want != ACP_FLOW_DUPLICATE || e->f->ack_due);
	if (want == ACP_FLOW_NEW)
		taken(w, e, p, fate);
	else if (want == ACP_FLOW_HOLD && !w->mended)
		put(w, p);	/* kept; or dropped, and it will be retransmitted */
}

/* A HELLO counts as a sign of life if it is the first answer to a question that was asked. */
static void answered(struct world *w, struct end *e, const struct packet *p,
		     const struct acp_flow *before)
{
	ENSURE(before->state == ACP_FLOW_OPEN && p->f.epoch_src == before->epoch_peer &&
	       p->f.epoch_dst == before->epoch);
	ENSURE(p->f.ack == e->f->question && p->f.ack > before->question);
	ENSURE(before->asked && p->f.ack <= before->asked - before->begun + 1);
	ENSURE(e->f->heard >= before->heard && e->f->answered == now(w));
	e->heard = e->f->heard;
}

static void hello(struct world *w, struct end *e, const struct packet *p)
{
	const struct acp_flow before = *e->f;
	struct acp_frame reply = { 0 };
	bool ours = p->f.epoch_dst == e->f->epoch, open = e->f->state == ACP_FLOW_OPEN;
	u32 verdict;

	if (p->setup != e->setup) {
		verdict = acp_flow_hello_mismatched(e->f, &p->f, &reply);
		ENSURE(!(verdict & ~(ACP_FLOW_REPLY | ACP_FLOW_REFUSED)));
		ENSURE(!(verdict & ACP_FLOW_REFUSED) || (!open && ours));
	} else {
		verdict = acp_flow_hello(e->f, &p->f, &reply, now(w));
		ENSURE(!(verdict & ACP_FLOW_REFUSED));
	}
	if (verdict & ACP_FLOW_OPENED)
		e->heard = now(w);
	if (e->f->question != before.question)
		answered(w, e, p, &before);
	else
		ENSURE(!open || e->f->heard == before.heard || verdict & ACP_FLOW_OPENED);
	ENSURE(!(verdict & ACP_FLOW_OPENED) || (!open && ours));
	if (verdict & ACP_FLOW_OPENED)
		e->progress = now(w);
	if (verdict & ACP_FLOW_RESTART)
		restart(w, e, p->f.epoch_src);
	if (verdict & ACP_FLOW_REPLY)
		send_hello(w, e, &reply);
	if (verdict & ACP_FLOW_REFUSED)
		begin(w, e);
}

static void arrive(struct world *w, const struct packet *p, enum fate fate)
{
	struct end *e = p->to;
	u32 verdict;

	if (p->f.type == ACP_FRAME_HELLO) {
		hello(w, e, p);
		return;
	}
	verdict = acp_flow_admit(e->f, &p->f, now(w));
	if (verdict == ACP_FLOW_DROP) {
		ENSURE(p->f.epoch_src != e->f->epoch_peer || p->f.epoch_dst != e->f->epoch);
		return;
	}
	if (verdict & ACP_FLOW_RESTART)
		restart(w, e, p->f.epoch_src);
	if (verdict & ACP_FLOW_OPENED) {
		e->progress = now(w);
		e->heard = now(w);
	}
	ENSURE(e->f->state == ACP_FLOW_OPEN);
	ENSURE(p->f.epoch_src == e->f->epoch_peer && p->f.epoch_dst == e->f->epoch);
	acknowledgement(w, e, p);
	if (p->f.type == ACP_FRAME_DATA)
		data(w, e, p, fate);
}

/* Deliver everything that is in flight now. */
static void deliver_all(struct world *w)
{
	u32 count;

	for (count = w->packets; count; count--) {
		struct packet *p = pull(w, 0);

		arrive(w, p, NOW);
		free(p);
	}
}

/* ---- Time ---- */

static void tick(struct world *w, struct end *e)
{
	u64 due = acp_flow_deadline(e->f), silent, stuck, t = now(w);
	bool opening = e->f->state == ACP_FLOW_OPENING;
	enum acp_flow_tick what = acp_flow_tick(e->f, t);

	ENSURE(t >= due || what == ACP_FLOW_QUIET);
	if (what == ACP_FLOW_FAILED) {
		silent = t - min_t(u64, t, e->heard);
		stuck = t - min_t(u64, t, e->progress);
		ENSURE(silent > (opening ? e->f->open_limit : e->f->limit) ||
		       (!opening && stuck > 3 * e->f->limit));
		begin(w, e);
	}
	ENSURE(what != ACP_FLOW_RESEND || e->f->next != e->f->una);
	if (what == ACP_FLOW_ASK || (what == ACP_FLOW_RESEND && acp_flow_ask_due(e->f, t)))
		send_hello(w, e, NULL);
	ENSURE(acp_flow_deadline(e->f) > t);
}

/* ---- Invariants ---- */

static void check_limits(const struct acp_flow *f)
{
	ENSURE(f->state <= ACP_FLOW_OPEN && f->backoff <= 10);
	ENSURE(f->rto >= ACP_FLOW_RTO_MIN && f->rto <= ACP_FLOW_RTO_MAX);
	ENSURE(f->cong.window >= 1 && f->cong.window <= f->cong.max);
	ENSURE(f->cong.threshold >= 1 && f->cong.threshold <= f->cong.max);
	ENSURE(f->una <= f->next && f->next - f->una <= WINDOW);
	ENSURE(f->state == ACP_FLOW_OPEN || f->una == f->next);
	ENSURE(f->late <= ACP_FLOW_ACK_EVERY || f->beyond || f->ack_due);
}

static void check_sending(const struct end *e)
{
	const struct acp_flow *f = e->f;
	u32 flight = 0, lost = 0;
	u64 seq;

	for (seq = f->una; seq < f->next; seq++) {
		const struct acp_flow_slot *s = &f->slots[seq % WINDOW];
		const u8 *sent = &e->own->sent[place(e->own, seq)];

		ENSURE(s->state != ACP_SLOT_FREE);
		ENSURE(s->state == ACP_SLOT_ACKED ? *sent & BACK && !s->token && seq > f->una :
						    *sent & OUT && s->token == sent);
		flight += s->state == ACP_SLOT_FLIGHT;
		lost += s->state == ACP_SLOT_LOST;
	}
	ENSURE(f->una == e->own->base || e->own->sent[place(e->own, f->una - 1)] & BACK);
	ENSURE(f->flight == flight && f->lost == lost);
	seq = acp_flow_lost(f);
	ENSURE(!seq || f->slots[seq % WINDOW].state == ACP_SLOT_LOST);
	ENSURE(!seq || flight < f->cong.window || seq == f->una ||
	       f->slots[seq % WINDOW].answer);
	ENSURE(seq || !lost || flight);
}

static void check_receiving(const struct end *e)
{
	const struct acp_flow *f = e->f;
	u32 beyond = 0;
	u64 seq;

	ENSURE(f->rcv == e->own->rcv);
	for (seq = f->rcv; seq < f->rcv + WINDOW; seq++) {
		u8 got = e->own->got[place(e->own, seq)];
		u32 word = seq % WINDOW / 64, bit = seq % 64;

		ENSURE((f->accepted[word] >> bit & 1) == !!(got & TAKEN));
		ENSURE((f->applied[word] >> bit & 1) == !!(got & APPLIED));
		beyond += !!(got & APPLIED);
	}
	ENSURE(f->beyond == beyond && !(e->own->got[place(e->own, f->rcv)] & APPLIED));
}

static void check_time(const struct acp_flow *f)
{
	bool waits = f->state == ACP_FLOW_OPENING || f->next != f->una || f->ack_at ||
		     (f->state == ACP_FLOW_OPEN && f->expect);

	ENSURE((acp_flow_deadline(f) != ~0ULL) == waits);
	ENSURE(!acp_flow_idle(f) || f->state != ACP_FLOW_OPENING);
}

static void check(const struct world *w)
{
	u32 i;

	for (i = 0; i < 2; i++) {
		const struct end *e = &w->e[i];

		ENSURE(e->own->epoch == e->f->epoch && e->f->epoch != e->f->epoch_next);
		check_limits(e->f);
		check_sending(e);
		check_receiving(e);
		check_time(e->f);
	}
}

/* ---- The program ---- */

static void do_send(struct world *w, struct end *e, struct input *in)
{
	u32 how = take(in, 1), count = 1 + how % 32;

	send_lost(w, e);
	for (; count; count--)
		send_new(w, e, (how & 32 ? FENCE : 0) | (how & 64 ? LAZY : 0), how & 128);
}

/* One frame arrives, in any order, possibly marked, and possibly again later. */
static void do_deliver(struct world *w, struct end *e, struct input *in)
{
	u32 which = take(in, 1), how = take(in, 1);
	struct packet *p;

	(void)e;
	if (!w->packets)
		return;
	p = pull(w, which % w->packets);
	p->ce |= how & 128;
	if (how & 1)
		put(w, p);
	if (!(how & 2))
		arrive(w, p, how / 4 % 3);
	free(p);
}

static void do_deliver_all(struct world *w, struct end *e, struct input *in)
{
	(void)e;
	(void)in;
	deliver_all(w);
}

static void do_end_pending(struct world *w, struct end *e, struct input *in)
{
	u32 which = take(in, 1);
	struct pending x;

	if (!e->pendings)
		return;
	x = e->pending[which / 2 % e->pendings];
	e->pending[which / 2 % e->pendings] = e->pending[e->pendings - 1];
	e->pendings--;
	if (which & 1)
		refused(e, &x);
	else
		applied(w, e, &x);
}

static void do_ack(struct world *w, struct end *e, struct input *in)
{
	(void)in;
	send_ack(w, e);
}

static void do_open(struct world *w, struct end *e, struct input *in)
{
	(void)in;
	if (e->f->state == ACP_FLOW_CLOSED) {
		acp_flow_open(e->f, now(w));
		e->heard = now(w);
	}
	acp_flow_open(e->f, now(w));
	send_hello(w, e, NULL);
}

static void do_wait(struct world *w, struct end *e, struct input *in)
{
	(void)e;
	w->now += take(in, 1) * 10000;
}

static void do_jump(struct world *w, struct end *e, struct input *in)
{
	(void)e;
	w->now += take_number(in) % (1ULL << 40);
}

static void do_tick(struct world *w, struct end *e, struct input *in)
{
	u64 due = acp_flow_deadline(e->f);
	u32 how = take(in, 1);

	if (how & 1 && due != ~0ULL)
		w->now = max_t(u64, w->now, due) + how / 2;
	tick(w, e);
}

static void do_expect(struct world *w, struct end *e, struct input *in)
{
	if (!(take(in, 1) & 1))
		acp_flow_expect(e->f, 1, e->f->expect ? 0 : now(w));
	else if (e->f->expect)
		acp_flow_expect(e->f, -1, 0);
}

static void do_crash(struct world *w, struct end *e, struct input *in)
{
	e->setup = take(in, 1) % 8 == 7;
	begin(w, e);
}

static void do_skew(struct world *w, struct end *e, struct input *in)
{
	(void)e;
	w->skew = take_number(in) % (4 * MS);
}

/* A period without faults. */
static void do_traffic(struct world *w, struct end *e, struct input *in)
{
	u32 how = take(in, 1), rounds = how % 64;

	for (; rounds; rounds--) {
		send_lost(w, e);
		send_new(w, e, how & 64 ? LAZY : 0, false);
		send_new(w, e, how & 128 ? FENCE : 0, false);
		w->now += 20000;
		deliver_all(w);
		if (e->other->f->ack_due)
			send_ack(w, e->other);
		deliver_all(w);
	}
}

/* A current, former or arbitrary epoch. */
static u32 take_epoch(struct input *in, const struct end *e)
{
	u32 which = take(in, 1);

	switch (which % 4) {
	case 0:
		return e->f->epoch;
	case 1:
		return e->f->epoch_next;
	case 2:
		return e->f->epoch_peer;
	default:
		return which / 4;
	}
}

/* A frame that only a faulty peer, or an attacker with the key, sends. */
static void do_lie(struct world *w, struct end *e, struct input *in)
{
	struct packet p = { .setup = e->setup, .to = e };
	u32 how = take(in, 1), i;

	if (!w->lies)
		return;
	p.f.type = ACP_FRAME_DATA + how % 3;
	p.f.flags = how & 4 ? ACP_FRAME_ASK | ACP_FRAME_FENCE | ACP_FRAME_LAZY | how : 0;
	p.f.epoch_dst = how & 8 ? take_epoch(in, e) : e->f->epoch;
	p.f.epoch_src = how & 8 ? take_epoch(in, e->other) : e->f->epoch_peer;
	p.f.ack = how & 16 ? take_number(in) : e->f->una + take(in, 1) - 1;
	if (p.f.type == ACP_FRAME_DATA)
		p.f.seq = how & 32 ? take_number(in) : e->f->rcv + take(in, 2) % 600;
	p.mapped = p.f.type == ACP_FRAME_ACK && how & 64;
	for (i = 0; p.mapped && i < WINDOW / 64; i++)
		p.map.map[i] = cpu_to_be64(how & 128 ? take_number(in) : ~0ULL);
	if (!p.f.epoch_src || (p.f.type != ACP_FRAME_HELLO && !p.f.epoch_dst) ||
	    (p.f.type == ACP_FRAME_DATA && !p.f.seq))
		return;		/* rejected before it gets here */
	arrive(w, &p, how & 64 ? LATER : NOW);
}

static void run(struct world *w, struct input *in)
{
	static void (*const what[])(struct world *, struct end *, struct input *) = {
		do_send, do_deliver, do_deliver_all, do_end_pending, do_ack, do_open, do_wait,
		do_jump, do_tick, do_expect, do_crash, do_skew, do_traffic, do_lie,
	};

	while (in->left) {
		u32 op = take(in, 1);

		what[op / 2 % (sizeof(what) / sizeof(what[0]))](w, &w->e[op & 1], in);
		check(w);
	}
}

/* ---- Start and end ---- */

static void number_from(struct end *e, u64 base)
{
	e->own->base = base;
	e->own->rcv = base;
	e->f->next = base;
	e->f->una = base;
	e->f->rcv = base;
}

static void start(struct world *w, struct input *in)
{
	u32 how = take(in, 1), i;

	w->lies = how & 1;
	w->last = &w->first;
	w->epochs = 1;
	w->now = take_number(in) >> 2;
	for (i = 0; i < 2; i++) {
		struct end *e = &w->e[i];

		e->other = &w->e[!i];
		e->f = calloc(1, sizeof(*e->f));
		e->f->slots = calloc(WINDOW, sizeof(*e->f->slots));
		e->f->limit = (10 + take(in, 2) % 1024) * MS;
		e->f->open_limit = (10 + take(in, 2) % 1024) * MS;
		begin(w, e);
	}
	if (how & 2) {
		do_open(w, &w->e[0], in);
		deliver_all(w);
		deliver_all(w);
		send_ack(w, &w->e[0]);
		if (how & 4) {
			free(pull(w, 0));
			number_from(&w->e[0], ~0ULL - 2 * SPACE + how);
			number_from(&w->e[1], ~0ULL - 2 * SPACE + how);
			send_ack(w, &w->e[0]);
		}
		deliver_all(w);
		ENSURE(w->e[0].f->state == ACP_FLOW_OPEN && w->e[1].f->state == ACP_FLOW_OPEN);
	}
}

static void mend(struct world *w, struct end *e)
{
	for (; e->pendings; e->pendings--)
		applied(w, e, &e->pending[e->pendings - 1]);
	send_lost(w, e);
	if (e->f->ack_due)
		send_ack(w, e);
}

/* From now on nothing is lost: everything must complete, and nobody may wait any more. */
static void finish(struct world *w)
{
	u32 round;
	u64 due;

	w->skew = 0;
	w->mended = true;
	for (round = 0; round < ROUNDS; round++) {
		deliver_all(w);
		mend(w, &w->e[0]);
		mend(w, &w->e[1]);
		if (w->packets)
			continue;
		due = min_t(u64, acp_flow_deadline(w->e[0].f), acp_flow_deadline(w->e[1].f));
		if (due == ~0ULL)
			break;
		w->now = max_t(u64, w->now, due);
		tick(w, &w->e[0]);
		tick(w, &w->e[1]);
	}
	check(w);
	ENSURE(round < ROUNDS);
	ENSURE(acp_flow_idle(w->e[0].f) && acp_flow_idle(w->e[1].f));
}

int fuzz_one(const u8 *bytes, size_t size)
{
	struct input in = { bytes, size };
	struct world *w = calloc(1, sizeof(*w));
	struct incarnation *l;
	u32 i;

	start(w, &in);
	check(w);
	run(w, &in);
	for (i = 0; i < 2; i++)
		while (w->e[i].f->expect)
			acp_flow_expect(w->e[i].f, -1, 0);
	if (!w->lies)
		finish(w);
	while ((l = w->incarnations)) {
		w->incarnations = l->older;
		free(l);
	}
	while (w->packets)
		free(pull(w, 0));
	for (i = 0; i < 2; i++) {
		free(w->e[i].f->slots);
		free(w->e[i].f);
	}
	free(w);
	return 0;
}
