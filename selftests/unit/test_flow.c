// SPDX-License-Identifier: MIT
/*
 * kernel/core/flow.c, case by case: two ends in one process; the test delivers frames or not, and
 * controls time. The simulation (test_sim.c) combines all cases.
 */
#include "flow_play.h"

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
