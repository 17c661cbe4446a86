// SPDX-License-Identifier: MIT
/* kernel/core/flow.c: opening, incarnations. */
#include "flow_play.h"

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

TEST_MAIN
