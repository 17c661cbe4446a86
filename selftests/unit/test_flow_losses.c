// SPDX-License-Identifier: MIT
/* kernel/core/flow.c: lost frames, and time. */
#include "flow_play.h"

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

TEST_MAIN
