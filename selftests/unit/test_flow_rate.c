// SPDX-License-Identifier: MIT
/* kernel/core/flow.c: what it sends at once. See test_cong.c for results of congestion control. */
#include "flow_play.h"

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

TEST_MAIN
