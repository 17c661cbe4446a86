// SPDX-License-Identifier: MIT
/*
 * kernel/core/flow.c, case by case: two ends in one process; the test delivers frames or not, and
 * controls time. The simulation (test_sim.c) combines all cases.
 */
#include "test.h"
#include "flow.h"

#define US	1000ULL
#define MS	1000000ULL
#define LIMIT	(1000 * MS)
#define OPEN_LIMIT (3000 * MS)

/* One end of a flow. */
struct end {
	struct acp_flow f;
	struct acp_flow_slot slots[ACP_FRAME_WINDOW];
};

static u64 now;
static u32 next_epoch = 100;
static char tokens[100000];	/* the address of an element is the token of a frame */

static void end_init(struct end *e)
{
	memset(e, 0, sizeof(*e));
	acp_flow_init(&e->f, next_epoch, next_epoch + 1, LIMIT, OPEN_LIMIT);
	e->f.slots = e->slots;
	next_epoch += 2;
}

static struct acp_frame hello_of(struct end *e)
{
	struct acp_frame fr = { 0 };

	acp_flow_ask(&e->f, &fr, now);
	return fr;
}

/* Return a DATA frame as this end sends it. */
static struct acp_frame data_of(struct end *e, u64 seq)
{
	struct acp_frame fr = { .type = ACP_FRAME_DATA, .seq = seq };

	acp_flow_fill(&e->f, &fr);
	return fr;
}

static struct acp_frame ack_of(struct end *e)
{
	struct acp_frame fr = { .type = ACP_FRAME_ACK };

	acp_flow_fill(&e->f, &fr);
	return fr;
}

/* Deliver a HELLO; replies are exchanged until there are none. */
static u32 hand_hello(struct end *from, struct end *to, struct acp_frame fr)
{
	struct acp_frame reply = { 0 };
	u32 verdict = acp_flow_hello(&to->f, &fr, &reply, now);

	if (verdict & ACP_FLOW_RESTART) {
		acp_flow_restart(&to->f, fr.epoch_src, next_epoch, now);
		next_epoch++;
	}
	if (verdict & ACP_FLOW_REPLY)
		verdict |= hand_hello(to, from, reply);
	return verdict;
}

/* Open from "a"; then send one ACK, so that "b" is open too. */
static void open_both(struct end *a, struct end *b)
{
	struct acp_frame fr;

	acp_flow_open(&a->f, now);
	hand_hello(a, b, hello_of(a));
	CHECK_EQ(a->f.state, ACP_FLOW_OPEN);
	fr = ack_of(a);
	CHECK(acp_flow_admit(&b->f, &fr, now) & ACP_FLOW_PASS);
	CHECK_EQ(b->f.state, ACP_FLOW_OPEN);
}

static void pair_init(struct end *a, struct end *b)
{
	now = 1000 * MS;
	end_init(a);
	end_init(b);
	open_both(a, b);
}

static u64 send_frame(struct end *e, bool lazy)
{
	u64 seq = acp_flow_send(&e->f, &tokens[e->f.next], now);

	CHECK_EQ(acp_flow_lazy(&e->f, seq, lazy), lazy && 2 * e->f.flight < e->f.cong.window);
	return seq;
}

static u64 send_one(struct end *e)
{
	return send_frame(e, false);
}

static u64 send_lazy(struct end *e)
{
	return send_frame(e, true);
}

/* Accept a frame and apply it immediately. */
static enum acp_flow_verdict take(struct end *e, u64 seq, bool fence)
{
	enum acp_flow_verdict v = acp_flow_accept(&e->f, seq, fence);

	if (v == ACP_FLOW_NEW) {
		acp_flow_heard(&e->f, now);
		acp_flow_applied(&e->f, seq);
	}
	return v;
}

/* Process an acknowledgement. Returns how many tokens it released, or -1. */
static int give_ack(struct end *e, struct acp_frame fr, const struct acp_frame_ack *map)
{
	struct acp_flow_ack a;
	int count = 0;

	if (!acp_flow_ack_begin(&e->f, &a, &fr, map))
		return -1;
	while (acp_flow_ack_next(&e->f, &a, now))
		count++;
	acp_flow_ack_end(&e->f, &a, now);
	return count;
}

/* Deliver the full acknowledgement of one end to the other. */
static int ack_from(struct end *from, struct end *to)
{
	struct acp_frame_ack map;
	struct acp_frame fr = ack_of(from);

	acp_flow_fill_map(&from->f, &map);
	return give_ack(to, fr, &map);
}

/* Execute one round trip that takes "rtt". */
static void round_trip(struct end *a, struct end *b, u64 rtt)
{
	u64 seq = send_one(a);

	CHECK_EQ(take(b, seq, false), ACP_FLOW_NEW);
	now += rtt;
	CHECK_EQ(ack_from(b, a), 1);
}

/* ---- receiving ---- */

TEST(accept__duplicate)
{
	struct end a, b;

	pair_init(&a, &b);
	CHECK_EQ(acp_flow_accept(&b.f, 1, false), ACP_FLOW_NEW);
	CHECK(!b.f.ack_due);
	CHECK_EQ(acp_flow_accept(&b.f, 1, false), ACP_FLOW_DUPLICATE);
	CHECK(b.f.ack_due);	/* a keep-alive while it is being applied */
	ack_of(&b);
	acp_flow_applied(&b.f, 1);
	CHECK(b.f.ack_due);
	ack_of(&b);
	CHECK(!b.f.ack_due);
	CHECK_EQ(acp_flow_accept(&b.f, 1, false), ACP_FLOW_DUPLICATE);
	CHECK(b.f.ack_due);
	CHECK_EQ(take(&b, 3, false), ACP_FLOW_NEW);
	ack_of(&b);
	CHECK_EQ(acp_flow_accept(&b.f, 3, false), ACP_FLOW_DUPLICATE);
	CHECK(b.f.ack_due);
}

TEST(accept__hold_until_all_earlier_are_applied)
{
	struct end a, b;

	pair_init(&a, &b);
	CHECK_EQ(acp_flow_accept(&b.f, 3, true), ACP_FLOW_HOLD);
	CHECK_EQ(acp_flow_accept(&b.f, 1, false), ACP_FLOW_NEW);
	CHECK_EQ(acp_flow_accept(&b.f, 2, false), ACP_FLOW_NEW);
	CHECK_EQ(acp_flow_accept(&b.f, 3, true), ACP_FLOW_HOLD);
	CHECK(!acp_flow_applied(&b.f, 2));
	CHECK_EQ(acp_flow_accept(&b.f, 3, true), ACP_FLOW_HOLD);
	CHECK(acp_flow_applied(&b.f, 1));
	CHECK_EQ(acp_flow_accept(&b.f, 3, true), ACP_FLOW_NEW);
	CHECK(acp_flow_applied(&b.f, 3));
	CHECK_EQ(b.f.rcv, 4);
}

/* A fence holds back only its own frame. */
TEST(accept__later_frames_pass_a_held_one)
{
	struct end a, b;

	pair_init(&a, &b);
	CHECK_EQ(acp_flow_accept(&b.f, 2, true), ACP_FLOW_HOLD);
	CHECK_EQ(take(&b, 3, false), ACP_FLOW_NEW);
	CHECK_EQ(take(&b, 1, false), ACP_FLOW_NEW);
	CHECK_EQ(take(&b, 2, true), ACP_FLOW_NEW);
	CHECK_EQ(b.f.rcv, 4);
}

TEST(accept__so_many_are_held)
{
	struct end a, b;
	u64 seq;

	pair_init(&a, &b);
	for (seq = 2; seq < 2 + ACP_FLOW_HELD; seq++) {
		CHECK_EQ(acp_flow_hold(&b.f, seq), ACP_HOLD_KEPT);
		CHECK_EQ(acp_flow_hold(&b.f, seq), ACP_HOLD_TWICE);
	}
	CHECK_EQ(acp_flow_hold(&b.f, seq), ACP_HOLD_FULL);
	CHECK(!acp_flow_turn_came(&b.f, 2));
	CHECK_EQ(take(&b, 1, false), ACP_FLOW_NEW);
	CHECK(acp_flow_turn_came(&b.f, 2) && !acp_flow_turn_came(&b.f, 3));
	acp_flow_unhold(&b.f, 2);
	CHECK_EQ(acp_flow_hold(&b.f, seq), ACP_HOLD_KEPT);
	acp_flow_unhold(&b.f, seq);
	CHECK_EQ(acp_flow_hold(&b.f, 2), ACP_HOLD_KEPT);
}

static struct acp_flow_taken taken_of(struct end *e, u64 seq, u32 count, bool lazy)
{
	return (struct acp_flow_taken){ .seq = seq, .epoch = e->f.epoch, .count = count,
					.lazy = lazy };
}

TEST(arrived__what_is_refused_tells_nothing)
{
	struct acp_flow_taken t;
	struct end a, b;
	u64 heard;

	pair_init(&a, &b);
	heard = b.f.heard;
	now += MS;
	CHECK_EQ(acp_flow_accept(&b.f, 1, false), ACP_FLOW_NEW);
	t = taken_of(&b, 1, 1, false);
	CHECK(acp_flow_arrived(&b.f, &t, ACP_REFUSED, now));
	CHECK(b.f.heard == heard && b.f.rcv == 1 && !b.f.ack_due);
	CHECK_EQ(acp_flow_accept(&b.f, 1, false), ACP_FLOW_NEW);
	CHECK(acp_flow_arrived(&b.f, &t, ACP_APPLIED, now));
	CHECK(b.f.heard == now && b.f.rcv == 2 && b.f.ack_due);
}

TEST(arrived__pending_until_settled)
{
	struct acp_flow_taken t;
	struct end a, b;

	pair_init(&a, &b);
	CHECK_EQ(acp_flow_accept(&b.f, 1, false), ACP_FLOW_NEW);
	t = taken_of(&b, 1, 1, true);
	CHECK(acp_flow_arrived(&b.f, &t, ACP_PENDING, now));
	CHECK(b.f.rcv == 1 && !b.f.ack_due && !b.f.ack_at);
	CHECK(!acp_flow_settled(&b.f, t.epoch + 1, 1));
	CHECK_EQ(b.f.rcv, 1);
	CHECK(acp_flow_settled(&b.f, t.epoch, 1));
	CHECK(b.f.rcv == 2 && b.f.ack_due);
}

TEST(arrived__in_another_incarnation)
{
	struct acp_flow_taken t;
	struct end a, b;

	pair_init(&a, &b);
	CHECK_EQ(acp_flow_accept(&b.f, 1, false), ACP_FLOW_NEW);
	t = taken_of(&b, 1, 1, false);
	acp_flow_restart(&b.f, next_epoch, next_epoch + 1, now);
	next_epoch += 2;
	CHECK(!acp_flow_arrived(&b.f, &t, ACP_APPLIED, now));
	CHECK(b.f.rcv == 1 && !b.f.ack_due);
}

TEST(arrived__a_row_may_be_acknowledged_later)
{
	struct acp_flow_taken t;
	struct end a, b;

	pair_init(&a, &b);
	CHECK(acp_flow_accept_all(&b.f, 1, 3));
	t = taken_of(&b, 1, 3, true);
	CHECK(acp_flow_arrived(&b.f, &t, ACP_APPLIED, now));
	CHECK(b.f.rcv == 4 && !b.f.ack_due && b.f.ack_at == now + ACP_FLOW_ACK_DELAY);
	CHECK(!acp_flow_ack_now(&b.f));
	CHECK(acp_flow_quiet(&b.f, b.f.ack_at, now) && !acp_flow_quiet(&b.f, ~0ULL, now));
	CHECK_EQ(acp_flow_arm(&b.f, ~0ULL), b.f.ack_at);
	CHECK_EQ(acp_flow_arm(&b.f, b.f.ack_at), ~0ULL);
	CHECK_EQ(acp_flow_arm(&b.f, b.f.ack_at + 1), b.f.ack_at);
}

TEST(round__lost_frames_go_before_answers_and_these_before_others)
{
	struct end a, b;
	u64 seq;

	pair_init(&a, &b);
	CHECK_EQ(acp_flow_turn(&a.f, false, false, &seq), ACP_TURN_NONE);
	CHECK_EQ(acp_flow_turn(&a.f, true, true, &seq), ACP_TURN_ANSWER);
	while (acp_flow_turn(&a.f, false, true, &seq) == ACP_TURN_NEW)
		send_one(&a);
	CHECK_EQ(acp_flow_turn(&a.f, true, true, &seq), ACP_TURN_ANSWER);
	now = acp_flow_deadline(&a.f);
	CHECK_EQ(acp_flow_tick(&a.f, now), ACP_FLOW_RESEND);
	CHECK_EQ(acp_flow_turn(&a.f, true, true, &seq), ACP_TURN_LOST);
	CHECK_EQ(seq, a.f.una);
}

TEST(round__a_closed_flow_opens_for_somebody)
{
	struct end a;

	now = 1000 * MS;
	end_init(&a);
	CHECK(!acp_flow_open_wanted(&a.f, false, now));
	acp_flow_expect(&a.f, 1, now);
	CHECK(acp_flow_open_wanted(&a.f, false, now));
	CHECK(!acp_flow_open_wanted(&a.f, true, now));
	CHECK_EQ(a.f.state, ACP_FLOW_OPENING);
}

TEST(round__a_silent_peer_is_asked_beside_repetitions)
{
	struct end a, b;

	pair_init(&a, &b);
	send_one(&a);
	CHECK(acp_flow_asks(&a.f, ACP_FLOW_ASK, now));
	CHECK(!acp_flow_asks(&a.f, ACP_FLOW_RESEND, now));
	now += LIMIT / 2;
	CHECK(acp_flow_asks(&a.f, ACP_FLOW_RESEND, now));
	CHECK(!acp_flow_asks(&a.f, ACP_FLOW_QUIET, now));
}

TEST(accept__refused_and_again)
{
	struct end a, b;

	pair_init(&a, &b);
	CHECK_EQ(acp_flow_accept(&b.f, 1, false), ACP_FLOW_NEW);
	acp_flow_refuse(&b.f, 1);
	CHECK_EQ(b.f.rcv, 1);
	CHECK_EQ(take(&b, 2, false), ACP_FLOW_NEW);
	CHECK_EQ(b.f.rcv, 1);
	CHECK_EQ(take(&b, 1, false), ACP_FLOW_NEW);
	CHECK_EQ(b.f.rcv, 3);
}

TEST(accept__N12_window_edges)
{
	struct end a, b;

	pair_init(&a, &b);
	CHECK_EQ(acp_flow_accept(&b.f, 1 + ACP_FRAME_WINDOW, false), ACP_FLOW_FUTURE);
	CHECK_EQ(acp_flow_accept(&b.f, ~0ULL, false), ACP_FLOW_FUTURE);
	CHECK_EQ(acp_flow_accept(&b.f, 1ULL << 63, true), ACP_FLOW_FUTURE);
	CHECK_EQ(b.f.rcv, 1);
	CHECK_EQ(take(&b, ACP_FRAME_WINDOW, false), ACP_FLOW_NEW);
	CHECK_EQ(take(&b, 1, false), ACP_FLOW_NEW);
	CHECK_EQ(acp_flow_accept(&b.f, 1 + ACP_FRAME_WINDOW, false), ACP_FLOW_NEW);
	CHECK_EQ(acp_flow_accept(&b.f, 2 + ACP_FRAME_WINDOW, false), ACP_FLOW_FUTURE);
}

TEST(applied__full_window_backwards)
{
	struct end a, b;
	u64 round, seq, base = 1;

	pair_init(&a, &b);
	for (round = 0; round < 3; round++) {
		for (seq = base + ACP_FRAME_WINDOW - 1; seq > base; seq--)
			CHECK_EQ(take(&b, seq, false), ACP_FLOW_NEW);
		CHECK_EQ(b.f.rcv, base);
		CHECK_EQ(take(&b, base, false), ACP_FLOW_NEW);
		base += ACP_FRAME_WINDOW;
		CHECK_EQ(b.f.rcv, base);
	}
}

TEST(applied__sequence_far_along)
{
	struct end a, b;
	u64 i;

	pair_init(&a, &b);
	b.f.rcv = ~0ULL - 5000;
	for (i = 0; i < 1000; i++)
		CHECK_EQ(take(&b, b.f.rcv, true), ACP_FLOW_NEW);
	CHECK_EQ(b.f.rcv, ~0ULL - 4000);
}

/* ---- acknowledgements ---- */

TEST(ack__map_says_exactly_what_was_applied)
{
	static const u64 applied[] = { 2, 5, 64, 65, 66, 67, 128, 129, 200, 256 };
	struct acp_frame_ack map;
	struct acp_frame fr;
	struct end a, b;
	u64 i, seq, bit;

	pair_init(&a, &b);
	for (seq = 1; seq < 68; seq++)
		CHECK_EQ(take(&b, seq, false), ACP_FLOW_NEW);
	for (i = 0; i < sizeof(applied) / sizeof(applied[0]); i++)
		CHECK_EQ(take(&b, 67 + applied[i], false), ACP_FLOW_NEW);
	fr = ack_of(&b);
	acp_flow_fill_map(&b.f, &map);
	CHECK_EQ(fr.ack, 68);
	for (bit = 0; bit < ACP_FRAME_WINDOW; bit++) {
		bool want = false;

		for (i = 0; i < sizeof(applied) / sizeof(applied[0]); i++)
			want |= 67 + applied[i] == 68 + 1 + bit;
		CHECK_EQ(be64_to_cpu(map.map[bit / 64]) >> bit % 64 & 1, want);
	}
}

/* DATA has no room for the bit map: frames beyond a gap are acknowledged immediately, in an ACK. */
TEST(ack__of_what_is_beyond_a_gap_is_due_at_once)
{
	struct end a, b;

	pair_init(&a, &b);
	take(&b, 1, false);
	data_of(&b, 1);
	CHECK(!b.f.ack_due);
	take(&b, 3, false);
	data_of(&b, 2);
	CHECK(b.f.ack_due);
	ack_of(&b);
	CHECK(!b.f.ack_due);
	take(&b, 4, false);
	b.f.ack_due = false;
	acp_flow_ack_later(&b.f, 1, now);
	CHECK(b.f.ack_due);
}

TEST(ack__gives_each_token_once)
{
	struct acp_flow_ack work;
	struct acp_frame_ack map;
	struct acp_frame fr;
	struct end a, b;
	u64 seq;

	pair_init(&a, &b);
	for (seq = 1; seq <= 5; seq++)
		send_one(&a);
	take(&b, 2, false);
	take(&b, 4, false);
	fr = ack_of(&b);
	acp_flow_fill_map(&b.f, &map);
	CHECK(acp_flow_ack_begin(&a.f, &work, &fr, &map));
	CHECK(acp_flow_ack_next(&a.f, &work, now) == &tokens[2]);
	CHECK(acp_flow_ack_next(&a.f, &work, now) == &tokens[4]);
	CHECK(!acp_flow_ack_next(&a.f, &work, now));
	acp_flow_ack_end(&a.f, &work, now);
	CHECK_EQ(a.f.una, 1);
	CHECK_EQ(give_ack(&a, fr, &map), 0);
	take(&b, 1, false);
	take(&b, 3, false);
	CHECK_EQ(ack_from(&b, &a), 2);
	CHECK_EQ(a.f.una, 5);
	CHECK_EQ(a.f.flight, 1);
	take(&b, 5, false);
	CHECK_EQ(ack_from(&b, &a), 1);
	CHECK(a.f.una == 6 && !a.f.flight && !a.f.lost);
	b.f.ack_due = false;
	CHECK(acp_flow_idle(&a.f));
}

/* An acknowledgement that may be late is sent with other traffic, or soon by itself. */
TEST(ack__late_but_in_time)
{
	struct end a, b;
	u64 i;

	pair_init(&a, &b);
	ack_of(&b);
	take(&b, 1, false);
	acp_flow_ack_later(&b.f, 1, now);
	CHECK(!b.f.ack_due && !acp_flow_idle(&b.f));
	CHECK_EQ(acp_flow_deadline(&b.f), now + ACP_FLOW_ACK_DELAY);
	now += ACP_FLOW_ACK_DELAY;
	CHECK_EQ(acp_flow_tick(&b.f, now), ACP_FLOW_QUIET);
	CHECK(b.f.ack_due);
	ack_of(&b);
	CHECK(!b.f.ack_due && acp_flow_idle(&b.f));
	CHECK_EQ(acp_flow_deadline(&b.f), ~0ULL);
	for (i = 0; i < ACP_FLOW_ACK_EVERY; i++) {
		CHECK(!b.f.ack_due);
		take(&b, 2 + i, false);
		acp_flow_ack_later(&b.f, 1, now);
	}
	CHECK(b.f.ack_due);
}

TEST(ack__N13_of_never_sent)
{
	struct acp_frame fr = { .type = ACP_FRAME_ACK };
	struct acp_frame_ack map;
	struct end a, b;

	pair_init(&a, &b);
	send_one(&a);
	send_one(&a);
	fr.ack = 4;
	CHECK_EQ(give_ack(&a, fr, NULL), -1);
	fr.ack = ~0ULL;
	CHECK_EQ(give_ack(&a, fr, NULL), -1);
	fr.ack = 0;
	CHECK_EQ(give_ack(&a, fr, NULL), -1);
	CHECK(a.f.una == 1 && a.f.flight == 2);
	memset(&map, 0xff, sizeof(map));
	fr.ack = 2;
	CHECK_EQ(give_ack(&a, fr, &map), 1);
	CHECK(a.f.una == 2 && a.f.flight == 1 && a.f.next == 3);
	fr.ack = 3;
	CHECK_EQ(give_ack(&a, fr, &map), 1);
	CHECK(a.f.una == 3 && a.f.flight == 0 && a.f.next == 3);
	CHECK_EQ(give_ack(&a, fr, &map), 0);
}

TEST(ack__N13_going_backwards)
{
	struct acp_frame_ack map;
	struct acp_frame old;
	struct end a, b;
	u64 seq;

	pair_init(&a, &b);
	for (seq = 1; seq <= 3; seq++)
		send_one(&a);
	take(&b, 2, false);
	old = ack_of(&b);
	acp_flow_fill_map(&b.f, &map);
	take(&b, 1, false);
	take(&b, 3, false);
	CHECK_EQ(ack_from(&b, &a), 3);
	CHECK_EQ(give_ack(&a, old, &map), 0);
	CHECK(a.f.una == 4 && a.f.flight == 0 && a.f.lost == 0);
}

/* Old bits must not be mistaken for those of the numbers that use the slots now. */
TEST(ack__N13_backwards_by_more_than_a_window)
{
	struct acp_frame_ack map;
	struct acp_frame old = { .type = ACP_FRAME_ACK, .ack = 1 };
	struct end a, b;
	int i;

	pair_init(&a, &b);
	for (i = 0; i < 2 * ACP_FRAME_WINDOW; i++)
		round_trip(&a, &b, 10 * US);
	memset(&map, 0xff, sizeof(map));
	for (i = 0; i < 10; i++)
		send_one(&a);
	CHECK_EQ(give_ack(&a, old, &map), 0);
	CHECK_EQ(a.f.flight, 10);
}

/* ---- losses and time ---- */

TEST(rto__stays_within_the_limits)
{
	struct end a, b;
	int i;

	pair_init(&a, &b);
	CHECK(a.f.rto >= ACP_FLOW_RTO_MIN && a.f.rto <= ACP_FLOW_RTO_MAX);
	for (i = 0; i < 200; i++) {
		round_trip(&a, &b, 1 * US);
		CHECK(a.f.rto >= ACP_FLOW_RTO_MIN);
	}
	CHECK_EQ(a.f.rto, ACP_FLOW_RTO_MIN);
	for (i = 0; i < 200; i++) {
		round_trip(&a, &b, 300 * MS);
		CHECK(a.f.rto <= ACP_FLOW_RTO_MAX);
	}
	CHECK_EQ(a.f.rto, ACP_FLOW_RTO_MAX);
}

TEST(rto__follows_the_round_trip)
{
	struct end a, b;
	int i;

	pair_init(&a, &b);
	for (i = 0; i < 300; i++)
		round_trip(&a, &b, 2 * MS);
	CHECK(a.f.srtt > 1990 * US && a.f.srtt < 2010 * US);
	CHECK(a.f.rto > 2 * MS && a.f.rto <= 4 * MS);
}

/* A frame that was sent twice gives no sample of the round-trip time. */
TEST(rto__no_sample_from_a_repeated_frame)
{
	struct end a, b;
	u64 srtt;
	int i;

	pair_init(&a, &b);
	for (i = 0; i < 50; i++)
		round_trip(&a, &b, 200 * US);
	srtt = a.f.srtt;
	send_one(&a);
	now = acp_flow_deadline(&a.f);
	CHECK_EQ(acp_flow_tick(&a.f, now), ACP_FLOW_RESEND);
	acp_flow_resend(&a.f, acp_flow_lost(&a.f), now);
	take(&b, a.f.una, false);
	now += 1 * US;
	CHECK_EQ(ack_from(&b, &a), 1);
	CHECK_EQ(a.f.srtt, srtt);
}

/* A timeout, and one frame is retransmitted. */
static void go_again(struct end *a, u64 seq)
{
	now = acp_flow_deadline(&a->f);
	CHECK_EQ(acp_flow_tick(&a->f, now), ACP_FLOW_RESEND);
	acp_flow_resend(&a->f, seq, now);
}

/* Send a number of frames, all of which a timeout treats as lost; retransmit the first one. */
static void time_out(struct end *a, u32 frames)
{
	u32 i;

	for (i = 0; i < frames; i++)
		send_one(a);
	now = acp_flow_deadline(&a->f);
	CHECK_EQ(acp_flow_tick(&a->f, now), ACP_FLOW_RESEND);
	CHECK_EQ(a->f.lost, frames);
	CHECK_EQ(a->f.cong.window, 1);
	acp_flow_resend(&a->f, a->f.una, now);
	CHECK(!acp_flow_lost(&a->f));
}

/* Return the events caused by an acknowledgement of the current state of the peer. */
static u32 events_of_ack(struct end *from, struct end *to)
{
	struct acp_frame fr = ack_of(from);
	struct acp_flow_ack work;

	CHECK(acp_flow_ack_begin(&to->f, &work, &fr, NULL));
	while (acp_flow_ack_next(&to->f, &work, now))
		;
	return acp_flow_ack_end(&to->f, &work, now);
}

/* Create a pair that knows its round-trip time, and has a congestion window of 20 frames. */
static void pair_with_window(struct end *a, struct end *b, u64 rtt)
{
	int i;

	pair_init(a, b);
	for (i = 0; i < 20; i++)
		round_trip(a, b, rtt);
	a->f.cong.window = 20;
	a->f.cong.threshold = 20;
}

/* The original is acknowledged late, after the first retransmission was sent. */
static void first_comes_late(struct end *a, struct end *b, u32 frames)
{
	u32 i;

	time_out(a, frames);
	now += 500 * US;
	take(b, a->f.una, false);
	CHECK_EQ(events_of_ack(b, a), 0);
	for (i = 0; i < 2; i++)
		acp_flow_resend(&a->f, acp_flow_lost(&a->f), now);
	CHECK(!acp_flow_lost(&a->f));
}

/* The peer was stopped. Frames that it acknowledges now arrived before their retransmission. */
TEST(rto__N1_taken_back_when_answers_come_before_they_can)
{
	struct end a, b;
	u64 seq;

	pair_with_window(&a, &b, 200 * US);
	first_comes_late(&a, &b, 20);
	now += 10 * US;
	take(&b, a.f.una, false);
	CHECK_EQ(events_of_ack(&b, &a), ACP_FLOW_TAKEN_BACK);
	CHECK_EQ(a.f.lost, 0);
	CHECK_EQ(a.f.flight, 18);
	CHECK(a.f.cong.window >= 20 && a.f.cong.threshold >= 20);
	for (seq = a.f.una; seq < a.f.next; seq++)
		take(&b, seq, false);
	now += 10 * US;
	CHECK_EQ(events_of_ack(&b, &a), 0);
	CHECK_EQ(a.f.flight + a.f.lost, 0);
	CHECK(a.f.rto > 700 * US);
	CHECK(a.f.cong.window >= 20);
}

/* A fenced frame may have waited at the peer for the lost one. */
TEST(rto__N1_not_taken_back_for_fenced_frames)
{
	struct acp_frame fr;
	struct end a, b;

	pair_with_window(&a, &b, 200 * US);
	first_comes_late(&a, &b, 20);
	fr = (struct acp_frame){ .type = ACP_FRAME_DATA, .flags = ACP_FRAME_FENCE, .seq = a.f.una };
	acp_flow_fill(&a.f, &fr);
	now += 10 * US;
	take(&b, a.f.una, false);
	CHECK_EQ(events_of_ack(&b, &a), 0);
	CHECK(a.f.cong.window <= 4);
	CHECK(a.f.lost > 0);
}

/* Frames that it acknowledges together with the first one were not lost either. */
TEST(rto__N1_taken_back_when_several_are_acknowledged_at_once)
{
	struct acp_frame fr;
	struct end a, b;
	u64 seq;
	int i;

	for (i = 0; i < 2; i++) {
		pair_with_window(&a, &b, 200 * US);
		time_out(&a, 20);
		now += 500 * US;
		for (seq = a.f.una; seq < a.f.una + 5; seq++) {
			fr = (struct acp_frame){ .type = ACP_FRAME_DATA, .seq = seq };
			fr.flags = i ? ACP_FRAME_FENCE : 0;
			acp_flow_fill(&a.f, &fr);
			take(&b, seq, false);
		}
		CHECK_EQ(events_of_ack(&b, &a), i ? 0 : ACP_FLOW_TAKEN_BACK);
		CHECK_EQ(a.f.lost, i ? 15 : 1);
		CHECK_EQ(acp_flow_lost(&a.f), a.f.una);
		CHECK_EQ(a.f.cong.window >= 20, !i);
	}
}

/*
 * However often the first frame was retransmitted, the window of before the first timeout is
 * restored.
 */
TEST(rto__N1_several_in_a_row_are_taken_back)
{
	struct end a, b;
	int i;

	pair_with_window(&a, &b, 200 * US);
	time_out(&a, 20);
	for (i = 0; i < 3; i++)
		go_again(&a, a.f.una);
	now += 300 * US;
	take(&b, a.f.una, false);
	CHECK_EQ(events_of_ack(&b, &a), 0);
	acp_flow_resend(&a.f, acp_flow_lost(&a.f), now);
	now += 10 * US;
	take(&b, a.f.una, false);
	CHECK_EQ(events_of_ack(&b, &a), ACP_FLOW_TAKEN_BACK);
	CHECK_EQ(a.f.lost, 1);
	CHECK(a.f.cong.window >= 20);
}

/* The first retransmission is acknowledged soon after the second one. */
TEST(rto__N1_not_taken_back_when_only_the_second_was_wrong)
{
	struct end a, b;

	pair_with_window(&a, &b, 200 * US);
	time_out(&a, 20);
	go_again(&a, a.f.una);
	now += 20 * US;
	take(&b, a.f.una, false);
	CHECK_EQ(events_of_ack(&b, &a), 0);
	CHECK(a.f.cong.window <= 4);
	CHECK_EQ(a.f.lost, 19);
}

/*
 * Everything that was sent arrives, except frames that were treated as lost and not retransmitted.
 */
static void take_flight(struct end *a, struct end *b)
{
	u64 seq;

	for (seq = a->f.una; seq < a->f.next; seq++)
		if (a->slots[seq % ACP_FRAME_WINDOW].state == ACP_SLOT_FLIGHT)
			take(b, seq, false);
}

/*
 * Frames were lost: retransmissions are answered one round trip later, and the window stays small.
 */
TEST(rto__N1_not_taken_back_after_losses)
{
	struct end a, b;
	u64 seq;
	int i;

	pair_with_window(&a, &b, 200 * US);
	time_out(&a, 20);
	for (i = 0; a.f.una < a.f.next; i++) {
		now += 200 * US;
		take_flight(&a, &b);
		CHECK_EQ(events_of_ack(&b, &a), 0);
		while ((seq = acp_flow_lost(&a.f)))
			acp_flow_resend(&a.f, seq, now);
	}
	CHECK(i > 3);
	CHECK(a.f.cong.window < 20);
	CHECK_EQ(a.f.doubt, 0);
}

/* Some frames arrived and some did not: missing ones are detected by later ones. */
TEST(rto__N1_losses_beside_frames_that_arrived_are_found)
{
	struct end a, b;
	u64 seq, first;
	int i;

	pair_with_window(&a, &b, 200 * US);
	first = a.f.una;
	for (i = 0; i < 10; i++, now += 20 * US)
		send_one(&a);
	for (i = 0; i < 2; i++)
		go_again(&a, first);
	CHECK_EQ(a.f.lost, 9);
	now += 500 * US;
	take(&b, first, false);
	CHECK_EQ(ack_from(&b, &a), 1);
	acp_flow_resend(&a.f, first + 1, now);
	now += 10 * US;
	for (seq = first; seq < first + 10; seq++)
		if (seq != first + 3)
			take(&b, seq, false);
	CHECK_EQ(ack_from(&b, &a), 8);
	CHECK_EQ(a.f.una, first + 3);
	CHECK_EQ(a.f.flight + a.f.lost, 1);
	CHECK_EQ(acp_flow_lost(&a.f), first + 3);
	acp_flow_resend(&a.f, first + 3, now);
	take(&b, first + 3, false);
	now += 200 * US;
	ack_from(&b, &a);
	CHECK_EQ(a.f.flight + a.f.lost, 0);
}

/*
 * The first frames arrived, but not their acknowledgements, nor the last frames, and no more are
 * sent.
 */
TEST(rto__N1_lost_end_after_an_outage_is_found_within_a_round_trip)
{
	struct end a, b;
	u64 seq, first;
	int i;

	pair_with_window(&a, &b, 200 * US);
	first = a.f.una;
	time_out(&a, 20);
	for (i = 0; i < 5; i++)
		go_again(&a, first);
	for (seq = first; seq < first + 12; seq++)
		take(&b, seq, false);
	now += 200 * US;
	CHECK_EQ(events_of_ack(&b, &a), ACP_FLOW_TAKEN_BACK);
	CHECK_EQ(acp_flow_lost(&a.f), first + 12);
	acp_flow_resend(&a.f, first + 12, now);
	CHECK(!acp_flow_lost(&a.f));
	take(&b, first + 12, false);
	now += 200 * US;
	CHECK_EQ(events_of_ack(&b, &a), 0);
	CHECK_EQ(a.f.lost, 7);
}

/* Frames whose acknowledgement may be late get more time, but only if there are no others. */
TEST(rto__longer_while_only_late_acknowledgements_are_due)
{
	struct end a, b;
	u64 rto;
	int i;

	pair_init(&a, &b);
	for (i = 0; i < 50; i++)
		round_trip(&a, &b, 200 * US);
	rto = a.f.rto;
	send_lazy(&a);
	CHECK_EQ(acp_flow_deadline(&a.f), now + rto + ACP_FLOW_ACK_DELAY);
	send_one(&a);
	CHECK_EQ(acp_flow_deadline(&a.f), now + rto);
	send_lazy(&a);
	CHECK_EQ(acp_flow_deadline(&a.f), now + rto);
	now += rto;
	CHECK_EQ(acp_flow_tick(&a.f, now), ACP_FLOW_RESEND);
	for (i = 0; i < 3; i++) {
		u64 seq = acp_flow_lost(&a.f);

		CHECK(!acp_flow_lazy(&a.f, seq, true));
		acp_flow_resend(&a.f, seq, now);
		take(&b, seq, false);
		now += 200 * US;
		CHECK_EQ(ack_from(&b, &a), 1);
	}
	CHECK(!acp_flow_lost(&a.f));
}

/* They only give an upper bound of the round-trip time. */
TEST(rto__late_acknowledgements_never_raise_it)
{
	struct end a, b;
	u64 srtt, rto;

	pair_init(&a, &b);
	take(&b, send_lazy(&a), false);
	now += ACP_FLOW_ACK_DELAY;
	CHECK_EQ(ack_from(&b, &a), 1);
	srtt = a.f.srtt;
	rto = a.f.rto;
	CHECK_EQ(srtt, ACP_FLOW_ACK_DELAY);
	take(&b, send_lazy(&a), false);
	now += ACP_FLOW_ACK_DELAY + 100 * US;
	CHECK_EQ(ack_from(&b, &a), 1);
	CHECK_EQ(a.f.srtt, srtt);
	CHECK_EQ(a.f.rto, rto);
	take(&b, send_lazy(&a), false);
	now += 20 * US;
	CHECK_EQ(ack_from(&b, &a), 1);
	CHECK(a.f.srtt < srtt);
}

TEST(rto__doubles_up_to_the_limit)
{
	u64 last, wait, first = 0;
	struct end a, b;
	int i;

	pair_init(&a, &b);
	for (i = 0; i < 100; i++)
		round_trip(&a, &b, 50 * US);
	send_one(&a);
	last = now;
	for (i = 0; i < 14; i++) {
		now = acp_flow_deadline(&a.f) - 1;
		CHECK_EQ(acp_flow_tick(&a.f, now), ACP_FLOW_QUIET);
		now++;
		CHECK_EQ(acp_flow_tick(&a.f, now), ACP_FLOW_RESEND);
		CHECK_EQ(acp_flow_lost(&a.f), a.f.una);
		acp_flow_resend(&a.f, a.f.una, now);
		wait = now - last;
		last = now;
		if (!first)
			first = wait;
		CHECK(first >= ACP_FLOW_RTO_MIN);
		CHECK_EQ(wait, first << i < ACP_FLOW_RTO_MAX ? first << i : ACP_FLOW_RTO_MAX);
	}
	/* It ends with a sample, which a retransmitted frame does not give. */
	take(&b, a.f.una, false);
	CHECK_EQ(ack_from(&b, &a), 1);
	take(&b, send_one(&a), false);
	CHECK_EQ(acp_flow_deadline(&a.f) - now, ACP_FLOW_RTO_MAX);
	now += first / 2;
	CHECK_EQ(ack_from(&b, &a), 1);
	send_one(&a);
	CHECK(acp_flow_deadline(&a.f) - now <= 2 * first);
}

/*
 * Send frames one by one, acknowledged after rtt. Returns how often each of the last ones was sent.
 */
static u64 sent_each(struct end *a, struct end *b, u64 rtt, bool lazy)
{
	u64 seq, sent, count = 0, at;
	int i;

	for (i = 0; i < 100; i++) {
		count = 1;
		seq = lazy ? send_lazy(a) : send_one(a);
		take(b, seq, false);
		at = now + rtt;
		while (acp_flow_deadline(&a->f) < at) {
			now = acp_flow_deadline(&a->f);
			CHECK_EQ(acp_flow_tick(&a->f, now), ACP_FLOW_RESEND);
			for (; (sent = acp_flow_lost(&a->f)); count++)
				acp_flow_resend(&a->f, sent, now);
		}
		now = at;
		CHECK_EQ(ack_from(b, a), 1);
	}
	return count;
}

TEST(rto__of_a_path_that_becomes_slower_is_learned)
{
	struct end a, b;
	int lazy;

	for (lazy = 0; lazy < 2; lazy++) {
		pair_init(&a, &b);
		CHECK_EQ(sent_each(&a, &b, 20 * US, lazy), 1);
		CHECK_EQ(sent_each(&a, &b, 5 * MS, lazy), 1);
	}
}

TEST(loss__seen_by_later_frames)
{
	struct end a, b;
	u64 lost;
	int i;

	pair_init(&a, &b);
	for (i = 0; i < 50; i++)
		round_trip(&a, &b, 100 * US);
	lost = send_one(&a);
	for (i = 0; i < 3; i++) {
		now += 100 * US;
		take(&b, send_one(&a), false);
		ack_from(&b, &a);
	}
	CHECK_EQ(a.f.lost, 1);
	CHECK(!acp_flow_room(&a.f));
	CHECK_EQ(acp_flow_lost(&a.f), lost);
	CHECK(acp_flow_token(&a.f, lost) == &tokens[lost]);
	acp_flow_resend(&a.f, lost, now);
	CHECK(acp_flow_room(&a.f));
	CHECK_EQ(acp_flow_lost(&a.f), 0);
	take(&b, lost, false);
	CHECK_EQ(ack_from(&b, &a), 1);
	CHECK_EQ(a.f.una, a.f.next);
}

/* Later frames may be held until it arrives: it is not limited by the window. */
TEST(loss__oldest_is_sent_again_at_once)
{
	struct end a, b;
	u64 lost, i;

	pair_init(&a, &b);
	for (i = 0; i < 50; i++)
		round_trip(&a, &b, 50 * US);
	lost = send_one(&a);
	now += 20 * US;
	CHECK_EQ(acp_flow_accept(&b.f, send_one(&a), true), ACP_FLOW_HOLD);
	now = acp_flow_deadline(&a.f);
	CHECK_EQ(acp_flow_tick(&a.f, now), ACP_FLOW_RESEND);
	CHECK_EQ(a.f.cong.window, 1);
	CHECK_EQ(a.f.flight, 1);
	CHECK_EQ(acp_flow_lost(&a.f), lost);
	acp_flow_resend(&a.f, lost, now);
	CHECK_EQ(acp_flow_lost(&a.f), 0);
}

/* With half of the window in flight, late acknowledgements would delay congestion control. */
TEST(lazy__up_to_half_of_the_window)
{
	struct end a, b;
	u32 i, half;

	pair_init(&a, &b);
	half = a.f.cong.window / 2;
	for (i = 1; i < 2 * half; i++) {
		u64 seq = acp_flow_send(&a.f, &tokens[a.f.next], now);

		CHECK_EQ(acp_flow_lazy(&a.f, seq, true), i < half);
	}
}

TEST(loss__reordering_within_a_burst_is_none)
{
	struct end a, b;
	int i;

	pair_init(&a, &b);
	for (i = 0; i < 50; i++)
		round_trip(&a, &b, 100 * US);
	for (i = 0; i < 8; i++)
		send_one(&a);
	now += 100 * US;
	for (i = 7; i >= 0; i--) {
		take(&b, a.f.una + i, false);
		if (i)
			ack_from(&b, &a);
		CHECK_EQ(a.f.lost, 0);
	}
}

TEST(room__window_is_never_exceeded)
{
	struct end a, b;
	int i;

	pair_init(&a, &b);
	for (i = 0; i < 200; i++) {
		while (acp_flow_room(&a.f))
			take(&b, send_one(&a), false);
		now += 10 * US;
		ack_from(&b, &a);
	}
	for (i = 0; acp_flow_room(&a.f); i++)
		send_one(&a);
	CHECK_EQ(i, ACP_FRAME_WINDOW - ACP_FLOW_ANSWERS);
	take(&b, a.f.una + 1, false);
	ack_from(&b, &a);
	CHECK(!acp_flow_room(&a.f));
	take(&b, a.f.una, false);
	ack_from(&b, &a);
	CHECK(acp_flow_room(&a.f));
}

/* Answers are sent and retransmitted regardless of what waits. */
TEST(room__answers_are_not_held_back)
{
	struct end a, b;
	u64 first, seq;
	int i;

	pair_init(&a, &b);
	while (acp_flow_room(&a.f))
		send_one(&a);
	first = a.f.next;
	for (i = 0; i < ACP_FLOW_ANSWERS; i++) {
		CHECK(acp_flow_room_answer(&a.f));
		acp_flow_send_answer(&a.f, &tokens[a.f.next], now);
	}
	now = acp_flow_deadline(&a.f);
	CHECK_EQ(acp_flow_tick(&a.f, now), ACP_FLOW_RESEND);
	for (i = 0; (seq = acp_flow_lost(&a.f)); i += seq >= first)
		acp_flow_resend(&a.f, seq, now);
	CHECK_EQ(i, ACP_FLOW_ANSWERS);
	CHECK(a.f.lost > 0);
	while (acp_flow_room_answer(&a.f))
		acp_flow_send_answer(&a.f, &tokens[a.f.next], now);
	CHECK_EQ(a.f.next, a.f.una + ACP_FRAME_WINDOW);
}

/* ---- congestion: see test_cong.c for its results ---- */

/* Deliver a frame of "a" to "b", optionally marked; not acknowledged yet. */
static void deliver(struct end *a, struct end *b, bool marked)
{
	u64 seq = send_one(a);
	struct acp_frame fr = data_of(a, seq);

	CHECK_EQ(acp_flow_admit(&b->f, &fr, now), ACP_FLOW_PASS);
	CHECK_EQ(take(b, seq, false), ACP_FLOW_NEW);
	if (marked)
		acp_flow_marked(&b->f);
}

static u32 marks_of(struct acp_frame fr)
{
	return fr.flags / ACP_FRAME_MARK;
}

TEST(ecn__each_acknowledgement_with_marks_counts_one)
{
	struct end a, b;
	u32 i;

	pair_init(&a, &b);
	for (i = 0; i < 6; i++) {
		deliver(&a, &b, true);
		deliver(&a, &b, true);
		CHECK_EQ(marks_of(ack_of(&b)), (i + 1) % 4);
		CHECK_EQ(marks_of(ack_of(&b)), (i + 1) % 4);
		deliver(&a, &b, false);
		CHECK_EQ(marks_of(data_of(&b, send_one(&b))), (i + 1) % 4);
		CHECK_EQ(marks_of(ack_of(&a)), 0);
	}
}

TEST(ecn__lost_acknowledgements_lose_no_mark)
{
	struct acp_frame fr;
	struct end a, b;
	u32 lost, i;

	for (lost = 0; lost < 3; lost++) {
		pair_init(&a, &b);
		for (i = 0; i < lost; i++) {
			deliver(&a, &b, true);
			fr = ack_of(&b);
		}
		deliver(&a, &b, true);
		CHECK_EQ(give_ack(&a, ack_of(&b), NULL), lost + 1);
		CHECK_EQ(a.f.cong.marked, lost + 1);
		deliver(&a, &b, false);
		fr = ack_of(&b);
		CHECK_EQ(give_ack(&a, fr, NULL), 1);
		CHECK_EQ(a.f.cong.marked, lost + 1);
	}
}

TEST(ecn__overtaken_acknowledgement_tells_nothing)
{
	struct acp_frame former;
	struct end a, b;

	pair_init(&a, &b);
	deliver(&a, &b, false);
	former = ack_of(&b);
	deliver(&a, &b, true);
	CHECK_EQ(give_ack(&a, ack_of(&b), NULL), 2);
	CHECK_EQ(a.f.cong.marked, 2);
	CHECK_EQ(give_ack(&a, former, NULL), 0);
	deliver(&a, &b, false);
	CHECK_EQ(give_ack(&a, ack_of(&b), NULL), 1);
	CHECK_EQ(a.f.cong.marked, 2);
}

/* All frames are marked: the window shrinks to one frame. */
TEST(ecn__marks_take_the_window_away)
{
	struct end a, b;
	u32 i, before;

	pair_init(&a, &b);
	before = a.f.cong.window;
	for (i = 0; i < 50; i++) {
		while (acp_flow_room(&a.f))
			deliver(&a, &b, true);
		now += 20 * US;
		ack_from(&b, &a);
		CHECK(a.f.cong.window <= before);
		before = a.f.cong.window;
	}
	CHECK_EQ(before, 1);
	for (i = 0; i < 200; i++) {
		while (acp_flow_room(&a.f))
			deliver(&a, &b, false);
		now += 20 * US;
		ack_from(&b, &a);
	}
	CHECK(a.f.cong.window > 32);
}

TEST(window__grows_only_if_it_is_the_limit)
{
	struct end a, b;
	u32 i, before;

	pair_init(&a, &b);
	before = a.f.cong.window;
	for (i = 0; i < 1000; i++) {
		deliver(&a, &b, false);
		now += 20 * US;
		ack_from(&b, &a);
	}
	CHECK_EQ(a.f.cong.window, before);
	while (acp_flow_room(&a.f))
		deliver(&a, &b, false);
	now += 20 * US;
	ack_from(&b, &a);
	CHECK_EQ(a.f.cong.window, 2 * before);
}

TEST(tick__failure_after_the_limit)
{
	struct end a, b;
	u64 begin;

	pair_init(&a, &b);
	send_one(&a);
	begin = now;
	for (;;) {
		enum acp_flow_tick t;

		now = acp_flow_deadline(&a.f);
		t = acp_flow_tick(&a.f, now);
		if (t == ACP_FLOW_FAILED)
			break;
		CHECK_EQ(t, ACP_FLOW_RESEND);
		if (acp_flow_lost(&a.f))
			acp_flow_resend(&a.f, acp_flow_lost(&a.f), now);
		CHECK(now - begin <= LIMIT);
	}
	CHECK(now - begin > LIMIT && now - begin <= LIMIT + 2 * ACP_FLOW_RTO_MAX);
}

/* A peer that is alive but never accepts our frames fails too, later. */
TEST(tick__failure_without_progress)
{
	struct end a, b;
	u64 begin;
	int asked = 0;

	pair_init(&a, &b);
	send_one(&a);
	begin = now;
	for (;;) {
		now = acp_flow_deadline(&a.f);
		if (acp_flow_tick(&a.f, now) == ACP_FLOW_FAILED)
			break;
		if (acp_flow_lost(&a.f))
			acp_flow_resend(&a.f, acp_flow_lost(&a.f), now);
		if (acp_flow_ask_due(&a.f, now)) {
			hand_hello(&a, &b, hello_of(&a));
			asked++;
		}
		CHECK(now - begin < 4 * LIMIT);
	}
	CHECK(now - begin > 2 * LIMIT);
	CHECK(asked >= 9 && asked <= 48);
}

/* Frames of b that an attacker has recorded, all of the present incarnation of b. */
struct recorded {
	struct acp_frame data, ack, ask, answer;
};

/* Replay all of them to a. They were processed when they were recorded. */
static void replay(struct end *a, const struct recorded *r)
{
	struct acp_frame reply = { 0 };

	CHECK_EQ(acp_flow_admit(&a->f, &r->data, now), ACP_FLOW_PASS);
	CHECK_EQ(give_ack(a, r->data, NULL), 0);
	CHECK_EQ(take(a, r->data.seq, false), ACP_FLOW_DUPLICATE);
	CHECK_EQ(acp_flow_admit(&a->f, &r->ack, now), ACP_FLOW_PASS);
	CHECK_EQ(give_ack(a, r->ack, NULL), 0);
	CHECK_EQ(acp_flow_hello(&a->f, &r->answer, &reply, now), ACP_FLOW_PASS);
	CHECK_EQ(acp_flow_hello(&a->f, &r->ask, &reply, now), ACP_FLOW_PASS | ACP_FLOW_REPLY);
}

/* Record one of each type; a question of a is answered. */
static void record(struct end *a, struct end *b, struct recorded *r)
{
	struct acp_frame reply = { 0 }, ask;

	r->data = data_of(b, send_one(b));
	CHECK_EQ(take(a, r->data.seq, false), ACP_FLOW_NEW);
	CHECK_EQ(take(b, send_one(a), false), ACP_FLOW_NEW);
	r->ack = ack_of(b);
	CHECK_EQ(give_ack(a, r->ack, NULL), 1);
	ask = hello_of(a);
	CHECK(acp_flow_hello(&b->f, &ask, &r->answer, now) & ACP_FLOW_REPLY);
	CHECK_EQ(acp_flow_hello(&a->f, &r->answer, &reply, now), ACP_FLOW_PASS);
	r->ask = hello_of(b);
}

TEST(tick__N11_replayed_frames_keep_no_dead_peer_alive)
{
	struct recorded r = { 0 };
	struct end a, b;
	u64 begin;

	pair_init(&a, &b);
	record(&a, &b, &r);
	send_one(&a);
	begin = now;
	do {
		replay(&a, &r);
		if (acp_flow_lost(&a.f))
			acp_flow_resend(&a.f, acp_flow_lost(&a.f), now);
		if (acp_flow_ask_due(&a.f, now))
			hello_of(&a);
		now = acp_flow_deadline(&a.f);
		CHECK(now - begin <= LIMIT + 2 * ACP_FLOW_RTO_MAX);
	} while (acp_flow_tick(&a.f, now) != ACP_FLOW_FAILED);
	CHECK(now - begin > LIMIT);
}

/* The same while no frame is in flight: only an answer is awaited. */
TEST(tick__N11_replayed_frames_keep_no_awaited_peer_alive)
{
	struct recorded r = { 0 };
	enum acp_flow_tick t;
	struct end a, b;
	u64 begin;

	pair_init(&a, &b);
	record(&a, &b, &r);
	acp_flow_expect(&a.f, 1, now);
	begin = now;
	do {
		u64 until = acp_flow_deadline(&a.f);

		for (; now < until; now += LIMIT / 100)
			replay(&a, &r);
		CHECK_EQ(acp_flow_deadline(&a.f), until);
		now = until;
		t = acp_flow_tick(&a.f, now);
		if (t == ACP_FLOW_ASK)
			hello_of(&a);
		CHECK(now - begin < 2 * LIMIT);
	} while (t != ACP_FLOW_FAILED);
	CHECK(now - begin > LIMIT);
}

/* New expectations do not extend the timeout of a peer that accepts no frames. */
TEST(tick__new_expectations_put_off_no_time_out)
{
	struct end a, b;
	u64 begin, due;

	pair_init(&a, &b);
	send_one(&a);
	begin = now;
	do {
		due = acp_flow_deadline(&a.f);
		now = due - 1;
		acp_flow_expect(&a.f, 1, now);
		acp_flow_expect(&a.f, -1, now);
		CHECK_EQ(acp_flow_deadline(&a.f), due);
		now = due;
		if (acp_flow_lost(&a.f))
			acp_flow_resend(&a.f, acp_flow_lost(&a.f), now);
		CHECK(now - begin <= LIMIT + 2 * ACP_FLOW_RTO_MAX);
	} while (acp_flow_tick(&a.f, now) != ACP_FLOW_FAILED);
}

/* A delayed answer proves that the peer was alive when it was asked. */
TEST(hello__N11_answer_that_is_held_back)
{
	struct acp_frame ask, late = { 0 }, prompt = { 0 }, reply = { 0 };
	struct end a, b;
	u64 asked;

	pair_init(&a, &b);
	now += LIMIT;
	asked = now;
	ask = hello_of(&a);
	CHECK(acp_flow_hello(&b.f, &ask, &late, now) & ACP_FLOW_REPLY);
	now += US;
	ask = hello_of(&a);
	CHECK(acp_flow_hello(&b.f, &ask, &prompt, now) & ACP_FLOW_REPLY);
	now += 10 * LIMIT;
	CHECK_EQ(acp_flow_hello(&a.f, &late, &reply, now), ACP_FLOW_PASS);
	CHECK_EQ(a.f.heard, asked + LIMIT / 2);
	CHECK_EQ(acp_flow_hello(&a.f, &prompt, &reply, now), ACP_FLOW_PASS);
	CHECK_EQ(a.f.heard, asked + US + LIMIT / 2);
	/* Not in the other order: a later answer has arrived. */
	CHECK_EQ(acp_flow_hello(&a.f, &late, &reply, now), ACP_FLOW_PASS);
	CHECK_EQ(a.f.answered, now);
	/*
	 * Answers to questions that were never asked, or asked by another incarnation, do not
	 * count.
	 */
	prompt.ack += LIMIT;
	CHECK_EQ(acp_flow_hello(&a.f, &prompt, &reply, now), ACP_FLOW_PASS);
	CHECK_EQ(a.f.heard, asked + US + LIMIT / 2);
	prompt.ack = ~0ULL;
	CHECK_EQ(acp_flow_hello(&a.f, &prompt, &reply, now), ACP_FLOW_PASS);
	CHECK_EQ(a.f.heard, asked + US + LIMIT / 2);
}

TEST(tick__opening_repeats_and_fails)
{
	u64 begin, last = 0;
	struct end a;
	int hellos = 0;

	now = 5 * MS;
	end_init(&a);
	CHECK_EQ(acp_flow_deadline(&a.f), ~0ULL);
	acp_flow_open(&a.f, now);
	begin = now;
	for (;;) {
		enum acp_flow_tick t;

		last = now;
		now = acp_flow_deadline(&a.f);
		CHECK(now - last <= ACP_FLOW_RTO_MAX);
		t = acp_flow_tick(&a.f, now);
		if (t == ACP_FLOW_FAILED)
			break;
		CHECK_EQ(t, ACP_FLOW_ASK);
		hellos++;
	}
	CHECK(now - begin > OPEN_LIMIT && now - begin <= OPEN_LIMIT + ACP_FLOW_RTO_MAX);
	CHECK(hellos > 20 && hellos < 60);
}

TEST(tick__silent_peer_is_probed_and_fails)
{
	struct end a, b;
	u64 begin;
	int asked = 0;

	pair_init(&a, &b);
	CHECK_EQ(acp_flow_deadline(&a.f), ~0ULL);
	acp_flow_expect(&a.f, 1, now);
	begin = now;
	for (;;) {
		enum acp_flow_tick t;

		now = acp_flow_deadline(&a.f);
		t = acp_flow_tick(&a.f, now);
		if (t == ACP_FLOW_FAILED)
			break;
		CHECK_EQ(t, ACP_FLOW_ASK);
		asked++;
	}
	CHECK(asked >= 3);
	CHECK(now - begin > LIMIT && now - begin < 2 * LIMIT);
}

/*
 * The answer to a frame is expected from the time when the frame is sent; the frame itself is
 * retransmitted.
 */
TEST(tick__answer_to_what_is_sent)
{
	struct end a, b;

	pair_init(&a, &b);
	now += 3600 * 1000000000ULL;
	a.f.probing = true;
	acp_flow_expect_sent(&a.f);
	CHECK_EQ(a.f.expect, 1);
	acp_flow_send(&a.f, &a, now);
	CHECK(acp_flow_deadline(&a.f) > now);
	CHECK(acp_flow_not_before(&a.f) <= acp_flow_deadline(&a.f));
	CHECK_EQ(acp_flow_tick(&a.f, now), ACP_FLOW_QUIET);
	now = acp_flow_deadline(&a.f);
	CHECK_EQ(acp_flow_tick(&a.f, now), ACP_FLOW_RESEND);
	CHECK(acp_flow_not_before(&a.f) <= acp_flow_deadline(&a.f));
	acp_flow_expect(&a.f, -1, 0);
	CHECK_EQ(a.f.expect, 0);
}

/* However short the limit is, a peer is probed before it fails. */
TEST(tick__no_peer_fails_without_being_asked)
{
	struct end a, b;

	pair_init(&a, &b);
	a.f.limit = 20000000;
	acp_flow_expect(&a.f, 1, now);
	now = acp_flow_deadline(&a.f);
	CHECK_EQ(acp_flow_tick(&a.f, now), ACP_FLOW_ASK);
	now = acp_flow_deadline(&a.f);
	CHECK_EQ(acp_flow_tick(&a.f, now), ACP_FLOW_FAILED);
}

/* A late acknowledgement that cannot be sent: no deadline remains in the past. */
TEST(tick__N17_late_acknowledgement_without_a_route)
{
	struct end a, b;

	pair_init(&a, &b);
	CHECK_EQ(take(&b, 1, false), ACP_FLOW_NEW);
	ack_of(&b);
	CHECK_EQ(acp_flow_accept(&b.f, 2, false), ACP_FLOW_NEW);
	acp_flow_applied(&b.f, 2);
	b.f.ack_due = false;
	acp_flow_ack_later(&b.f, 1, now);
	CHECK(acp_flow_deadline(&b.f) != ~0ULL);
	now = acp_flow_deadline(&b.f);
	CHECK_EQ(acp_flow_tick(&b.f, now), ACP_FLOW_QUIET);
	CHECK(b.f.ack_due);
	CHECK_EQ(acp_flow_deadline(&b.f), ~0ULL);
}

/* A machine that was suspended: its peers get the rest of their time. */
TEST(tick__time_slept_through_is_no_silence)
{
	struct end a, b;
	const u64 slept = 100 * LIMIT;
	u64 begin;

	pair_init(&a, &b);
	send_one(&a);
	begin = now;
	while (now - begin < LIMIT / 2) {
		now = acp_flow_deadline(&a.f);
		CHECK_EQ(acp_flow_tick(&a.f, now), ACP_FLOW_RESEND);
	}
	now = acp_flow_deadline(&a.f) + slept;
	CHECK_EQ(acp_flow_tick(&a.f, now), ACP_FLOW_RESEND);
	CHECK(a.f.heard <= now);
	do {
		now = acp_flow_deadline(&a.f);
		CHECK(now - begin - slept <= 2 * LIMIT);
	} while (acp_flow_tick(&a.f, now) == ACP_FLOW_RESEND);
	CHECK(now - begin - slept > LIMIT);
}

/* Two CPUs, one lock: the one that read the clock first may take the lock second. */
TEST(tick__time_older_than_the_last_sign_of_life_is_no_silence)
{
	struct end a, b;
	struct acp_frame fr;
	u64 late;

	pair_init(&a, &b);
	send_one(&a);
	late = acp_flow_deadline(&a.f);
	now = late + 10 * US;
	fr = ack_of(&b);
	CHECK_EQ(acp_flow_admit(&a.f, &fr, now), ACP_FLOW_PASS);
	CHECK_EQ(acp_flow_tick(&a.f, late), ACP_FLOW_RESEND);
}

TEST(ack__time_older_than_the_frame_is_no_round_trip)
{
	struct end a, b;

	pair_init(&a, &b);
	CHECK_EQ(take(&b, send_one(&a), false), ACP_FLOW_NEW);
	now -= 10 * US;
	CHECK_EQ(ack_from(&b, &a), 1);
	CHECK_EQ(a.f.srtt, 0);
	CHECK_EQ(a.f.rto, ACP_FLOW_RTO_INIT);
}

TEST(tick__probed_peer_that_answers_does_not_fail)
{
	struct end a, b;
	int i;

	pair_init(&a, &b);
	acp_flow_expect(&a.f, 2, now);
	for (i = 0; i < 100; i++) {
		now = acp_flow_deadline(&a.f);
		CHECK_EQ(acp_flow_tick(&a.f, now), ACP_FLOW_ASK);
		CHECK(a.f.probing);
		hand_hello(&a, &b, hello_of(&a));
		CHECK(!a.f.probing);
	}
	acp_flow_expect(&a.f, -1, now);
	CHECK(!acp_flow_idle(&a.f));
	acp_flow_expect(&a.f, -1, now);
	CHECK_EQ(acp_flow_deadline(&a.f), ~0ULL);
}

/* ---- opening, epochs ---- */

TEST(open__by_one_side)
{
	struct end a, b;

	now = MS;
	end_init(&a);
	end_init(&b);
	CHECK(!acp_flow_room(&a.f));
	open_both(&a, &b);
	CHECK_EQ(a.f.epoch_peer, b.f.epoch);
	CHECK_EQ(b.f.epoch_peer, a.f.epoch);
	CHECK(acp_flow_room(&a.f) && acp_flow_room(&b.f));
}

TEST(open__by_both_at_once)
{
	struct acp_frame from_a, from_b;
	struct end a, b;

	now = MS;
	end_init(&a);
	end_init(&b);
	acp_flow_open(&a.f, now);
	acp_flow_open(&b.f, now);
	from_a = hello_of(&a);
	from_b = hello_of(&b);
	hand_hello(&a, &b, from_a);
	hand_hello(&b, &a, from_b);
	CHECK(a.f.state == ACP_FLOW_OPEN && b.f.state == ACP_FLOW_OPEN);
	CHECK(a.f.epoch_peer == b.f.epoch && b.f.epoch_peer == a.f.epoch);
}

TEST(open__N1_lost_reply)
{
	struct acp_frame ask, reply = { 0 };
	struct end a, b;

	now = MS;
	end_init(&a);
	end_init(&b);
	acp_flow_open(&a.f, now);
	ask = hello_of(&a);
	CHECK(acp_flow_hello(&b.f, &ask, &reply, now) & ACP_FLOW_REPLY);
	now = acp_flow_deadline(&a.f);
	CHECK_EQ(acp_flow_tick(&a.f, now), ACP_FLOW_ASK);
	hand_hello(&a, &b, hello_of(&a));
	CHECK_EQ(a.f.state, ACP_FLOW_OPEN);
	CHECK_EQ(a.f.epoch_peer, b.f.epoch);
}

/* A HELLO alone opens nothing: the number chosen by the receiver must be returned. */
TEST(open__N11_hello_alone_opens_nothing)
{
	struct acp_frame ask = { .type = ACP_FRAME_HELLO, .flags = ACP_FRAME_ASK, .epoch_src = 77 };
	struct acp_frame reply = { 0 };
	struct end b;

	now = MS;
	end_init(&b);
	CHECK_EQ(acp_flow_hello(&b.f, &ask, &reply, now), ACP_FLOW_PASS | ACP_FLOW_REPLY);
	CHECK_EQ(b.f.state, ACP_FLOW_CLOSED);
	CHECK(reply.epoch_src == b.f.epoch && reply.epoch_dst == 77);
	CHECK(!(reply.flags & ACP_FRAME_ASK));
}

/*
 * A peer with different parameters is told ours. It ends a flow that is not open, if it answers us.
 */
TEST(mismatched__N11_only_an_answer_counts)
{
	struct acp_frame ask = { .type = ACP_FRAME_HELLO, .flags = ACP_FRAME_ASK, .epoch_src = 77 };
	struct acp_frame reply = { 0 };
	struct end a, b, c;

	pair_init(&a, &b);
	end_init(&c);
	CHECK_EQ(acp_flow_hello_mismatched(&c.f, &ask, &reply), ACP_FLOW_REPLY);
	acp_flow_open(&c.f, now);
	CHECK_EQ(acp_flow_hello_mismatched(&c.f, &ask, &reply), ACP_FLOW_REPLY);
	CHECK(reply.epoch_src == c.f.epoch && reply.epoch_dst == 77 && !reply.flags);
	ask.epoch_dst = c.f.epoch;
	CHECK_EQ(acp_flow_hello_mismatched(&c.f, &ask, &reply), ACP_FLOW_REPLY | ACP_FLOW_REFUSED);
	ask.flags = 0;
	CHECK_EQ(acp_flow_hello_mismatched(&c.f, &ask, &reply), ACP_FLOW_REFUSED);
	ask.epoch_dst = c.f.epoch_next;
	CHECK_EQ(acp_flow_hello_mismatched(&c.f, &ask, &reply), ACP_FLOW_DROP);
	ask.epoch_dst = a.f.epoch;
	CHECK_EQ(acp_flow_hello_mismatched(&a.f, &ask, &reply), ACP_FLOW_DROP);
	ask.epoch_dst = a.f.epoch_next;
	CHECK_EQ(acp_flow_hello_mismatched(&a.f, &ask, &reply), ACP_FLOW_DROP);
}

/* The peer restarted while idle: it opens again, which is accepted after its answer. */
TEST(restart__peer_opens_anew)
{
	struct end a, b, b2;
	u32 old;

	pair_init(&a, &b);
	old = a.f.epoch;
	send_one(&a);
	end_init(&b2);
	acp_flow_open(&b2.f, now);
	CHECK(hand_hello(&b2, &a, hello_of(&b2)) & ACP_FLOW_RESTART);
	CHECK(a.f.state == ACP_FLOW_OPEN && b2.f.state == ACP_FLOW_OPEN);
	CHECK(a.f.epoch != old && a.f.epoch == b2.f.epoch_peer && a.f.epoch_peer == b2.f.epoch);
	CHECK(a.f.next == 1 && a.f.rcv == 1 && !a.f.flight);
}

/* Its last HELLO is lost; its first DATA has the same effect. */
TEST(restart__seen_by_data)
{
	struct acp_frame ask, challenge = { 0 }, reply = { 0 }, data;
	struct end a, b, b2;

	pair_init(&a, &b);
	end_init(&b2);
	acp_flow_open(&b2.f, now);
	ask = hello_of(&b2);
	CHECK_EQ(acp_flow_hello(&a.f, &ask, &challenge, now), ACP_FLOW_REPLY);
	CHECK(acp_flow_hello(&b2.f, &challenge, &reply, now) & ACP_FLOW_OPENED);
	data = data_of(&b2, send_one(&b2));
	CHECK_EQ(acp_flow_admit(&a.f, &data, now), ACP_FLOW_PASS | ACP_FLOW_RESTART);
	acp_flow_restart(&a.f, data.epoch_src, next_epoch++, now);
	CHECK_EQ(acp_flow_admit(&a.f, &data, now), ACP_FLOW_PASS);
	CHECK_EQ(take(&a, 1, false), ACP_FLOW_NEW);
	CHECK_EQ(ack_from(&a, &b2), 1);
}

/* The end that waits for answers detects it by a probe. */
TEST(restart__seen_by_a_probe)
{
	struct end a, b, b2;
	struct acp_frame probe;

	pair_init(&a, &b);
	acp_flow_expect(&a.f, 1, now);
	end_init(&b2);
	now = acp_flow_deadline(&a.f);
	CHECK_EQ(acp_flow_tick(&a.f, now), ACP_FLOW_ASK);
	probe = hello_of(&a);
	CHECK(hand_hello(&a, &b2, probe) & ACP_FLOW_RESTART);
	CHECK(a.f.state == ACP_FLOW_OPEN && a.f.epoch_peer == b2.f.epoch);
}

/* Both ends restarted and refer to earlier incarnations of the other: this must not persist. */
TEST(restart__both_sides)
{
	struct end a, b, a2, b2;

	pair_init(&a, &b);
	end_init(&a2);
	end_init(&b2);
	acp_flow_open(&a2.f, now);
	acp_flow_open(&b2.f, now);
	hand_hello(&a2, &b2, hello_of(&a2));
	hand_hello(&b2, &a2, hello_of(&b2));
	CHECK(a2.f.state == ACP_FLOW_OPEN && b2.f.state == ACP_FLOW_OPEN);
	CHECK(a2.f.epoch_peer == b2.f.epoch && b2.f.epoch_peer == a2.f.epoch);
}

/* Frames of an earlier incarnation have no effect. */
TEST(epoch__N11_replay_of_an_earlier_life)
{
	struct acp_frame hello, probe, data, ack, reply = { 0 };
	struct end a, b, a2;
	struct acp_flow before;

	pair_init(&a, &b);
	acp_flow_open(&a.f, now);
	hello = hello_of(&a);
	hello.epoch_dst = 0;
	probe = hello_of(&a);
	data = data_of(&a, send_one(&a));
	ack = ack_of(&a);
	end_init(&a2);
	acp_flow_open(&a2.f, now);
	hand_hello(&a2, &b, hello_of(&a2));
	ack_from(&a2, &b);
	CHECK_EQ(b.f.epoch_peer, a2.f.epoch);
	before = b.f;
	CHECK_EQ(acp_flow_admit(&b.f, &data, now), ACP_FLOW_DROP);
	CHECK_EQ(acp_flow_admit(&b.f, &ack, now), ACP_FLOW_DROP);
	CHECK(!(acp_flow_hello(&b.f, &hello, &reply, now) & (ACP_FLOW_RESTART | ACP_FLOW_OPENED)));
	CHECK(!(acp_flow_hello(&b.f, &probe, &reply, now) & (ACP_FLOW_RESTART | ACP_FLOW_OPENED)));
	CHECK(b.f.epoch == before.epoch && b.f.epoch_peer == before.epoch_peer);
	CHECK(b.f.rcv == before.rcv && b.f.state == before.state);
}

/* The reaction to a replayed HELLO reaches the living peer: no end may restart because of it. */
TEST(epoch__N11_replayed_hello_does_not_end_a_living_flow)
{
	struct acp_frame first, probe, reply;
	struct end a, b, a2;
	u32 epoch_a, epoch_b;

	pair_init(&a, &b);
	probe = hello_of(&a);
	first = probe;
	first.epoch_dst = 0;
	reply = first;
	reply.flags = 0;
	reply.epoch_dst = b.f.epoch;
	end_init(&a2);
	acp_flow_open(&a2.f, now);
	hand_hello(&a2, &b, hello_of(&a2));
	epoch_a = a2.f.epoch;
	epoch_b = b.f.epoch;
	CHECK_EQ(a2.f.epoch_peer, epoch_b);
	CHECK(!(hand_hello(&a2, &b, first) & ACP_FLOW_RESTART));
	CHECK(!(hand_hello(&a2, &b, probe) & ACP_FLOW_RESTART));
	CHECK(!(hand_hello(&a2, &b, reply) & ACP_FLOW_RESTART));
	CHECK(a2.f.epoch == epoch_a && b.f.epoch == epoch_b);
	CHECK(a2.f.epoch_peer == epoch_b && b.f.epoch_peer == epoch_a);
	CHECK(a2.f.state == ACP_FLOW_OPEN && b.f.state == ACP_FLOW_OPEN);
}

TEST(epoch__N11_replay_within_a_life)
{
	struct acp_frame data, ask;
	struct end a, b;
	u64 i;

	pair_init(&a, &b);
	ask = hello_of(&a);
	ask.epoch_dst = 0;
	data = data_of(&a, send_one(&a));
	CHECK_EQ(take(&b, 1, false), ACP_FLOW_NEW);
	CHECK_EQ(ack_from(&b, &a), 1);
	for (i = 0; i < 1000; i++)
		round_trip(&a, &b, 10 * US);
	CHECK_EQ(acp_flow_admit(&b.f, &data, now), ACP_FLOW_PASS);
	CHECK_EQ(acp_flow_accept(&b.f, data.seq, false), ACP_FLOW_DUPLICATE);
	CHECK(!(hand_hello(&a, &b, ask) & ACP_FLOW_RESTART));
	CHECK_EQ(b.f.rcv, 1002);
	round_trip(&a, &b, 10 * US);
}

TEST(epoch__N12_forged_numbers)
{
	struct acp_frame fr;
	struct end a, b;

	pair_init(&a, &b);
	fr = data_of(&a, 1);
	fr.epoch_src++;
	CHECK_EQ(acp_flow_admit(&b.f, &fr, now), ACP_FLOW_DROP);
	fr = data_of(&a, 1);
	fr.epoch_dst ^= 0x40000000;
	CHECK_EQ(acp_flow_admit(&b.f, &fr, now), ACP_FLOW_DROP);
	fr = data_of(&a, 1);
	CHECK_EQ(acp_flow_admit(&b.f, &fr, now), ACP_FLOW_PASS);
}

/* ---- batches of frames ---- */

/* True if a frame with this number would be accepted now. */
static bool is_new(const struct acp_flow *f, u64 seq)
{
	struct acp_flow copy = *f;

	return acp_flow_accept(&copy, seq, false) == ACP_FLOW_NEW;
}

static bool same_state(const struct acp_flow *a, const struct acp_flow *b)
{
	return a->rcv == b->rcv && a->beyond == b->beyond &&
	       !memcmp(a->accepted, b->accepted, sizeof(a->accepted)) &&
	       !memcmp(a->applied, b->applied, sizeof(a->applied));
}

/* A batch of frames has the same effect as its frames one by one. */
TEST(all__as_one_by_one)
{
	u32 rows = 0, refused = 0, none = 0, n, i, round, all;
	u64 x = 1, seq;
	struct end a, b;

	pair_init(&a, &b);
	a.f = b.f;
	for (round = 0; round < 200000; round++) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		n = 1 + (x >> 33) % ((x >> 60) ? 6 : ACP_FRAME_WINDOW + 1);
		seq = b.f.rcv + (x >> 45) % 3 * ((x >> 50) % (ACP_FRAME_WINDOW / 2));
		seq -= !((x >> 41) % 16);
		for (all = 0; all < n && is_new(&b.f, seq + all); all++)
			;
		CHECK_EQ(acp_flow_accept_all(&a.f, seq, n), all == n);
		if (all < n) {
			CHECK(same_state(&a.f, &b.f));
			none++;
			continue;
		}
		for (i = 0; i < n; i++)
			CHECK_EQ(acp_flow_accept(&b.f, seq + i, false), ACP_FLOW_NEW);
		CHECK(same_state(&a.f, &b.f));
		if (!((x >> 55) % 4)) {
			acp_flow_refuse_all(&a.f, seq, n);
			for (i = 0; i < n; i++)
				acp_flow_refuse(&b.f, seq + i);
			refused++;
		} else {
			acp_flow_applied_all(&a.f, seq, n);
			for (i = 0; i < n; i++)
				acp_flow_applied(&b.f, seq + n - 1 - i);
			CHECK(a.f.ack_due);
			rows++;
		}
		CHECK(same_state(&a.f, &b.f));
	}
	CHECK(rows > 1000 && refused > 1000 && none > 1000);
	CHECK(!acp_flow_accept_all(&a.f, ~0ULL, 2));
	CHECK(!acp_flow_accept_all(&a.f, ~0ULL - 1, 2));
}

/* ---- reuse of a failed end ---- */

TEST(failed__opens_again)
{
	struct end a, b;

	pair_init(&a, &b);
	send_one(&a);
	end_init(&a);
	acp_flow_open(&a.f, now);
	hand_hello(&a, &b, hello_of(&a));
	CHECK_EQ(a.f.state, ACP_FLOW_OPEN);
	CHECK_EQ(a.f.epoch_peer, b.f.epoch);
	round_trip(&a, &b, 10 * US);
}

TEST_MAIN
