/* SPDX-License-Identifier: MIT */
/* Two ends of a flow in one process: the test delivers frames or not, and controls time. */
#ifndef FLOW_PLAY_H
#define FLOW_PLAY_H

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

static inline void end_init(struct end *e)
{
	memset(e, 0, sizeof(*e));
	acp_flow_init(&e->f, next_epoch, next_epoch + 1, LIMIT, OPEN_LIMIT);
	e->f.slots = e->slots;
	next_epoch += 2;
}

static inline struct acp_frame hello_of(struct end *e)
{
	struct acp_frame fr = { 0 };

	acp_flow_ask(&e->f, &fr, now);
	return fr;
}

/* Return a DATA frame as this end sends it. */
static inline struct acp_frame data_of(struct end *e, u64 seq)
{
	struct acp_frame fr = { .type = ACP_FRAME_DATA, .seq = seq };

	acp_flow_fill(&e->f, &fr);
	return fr;
}

static inline struct acp_frame ack_of(struct end *e)
{
	struct acp_frame fr = { .type = ACP_FRAME_ACK };

	acp_flow_fill(&e->f, &fr);
	return fr;
}

/* Deliver a HELLO; replies are exchanged until there are none. */
static inline u32 hand_hello(struct end *from, struct end *to, struct acp_frame fr)
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
static inline void open_both(struct end *a, struct end *b)
{
	struct acp_frame fr;

	acp_flow_open(&a->f, now);
	hand_hello(a, b, hello_of(a));
	CHECK_EQ(a->f.state, ACP_FLOW_OPEN);
	fr = ack_of(a);
	CHECK(acp_flow_admit(&b->f, &fr, now) & ACP_FLOW_PASS);
	CHECK_EQ(b->f.state, ACP_FLOW_OPEN);
}

static inline void pair_init(struct end *a, struct end *b)
{
	now = 1000 * MS;
	end_init(a);
	end_init(b);
	open_both(a, b);
}

static inline u64 send_frame(struct end *e, bool lazy)
{
	u64 seq = acp_flow_send(&e->f, &tokens[e->f.next], now);

	CHECK_EQ(acp_flow_lazy(&e->f, seq, lazy), lazy && 2 * e->f.flight < e->f.cong.window);
	return seq;
}

static inline u64 send_one(struct end *e)
{
	return send_frame(e, false);
}

static inline u64 send_lazy(struct end *e)
{
	return send_frame(e, true);
}

/* Accept a frame and apply it immediately. */
static inline enum acp_flow_verdict take(struct end *e, u64 seq, bool fence)
{
	enum acp_flow_verdict v = acp_flow_accept(&e->f, seq, fence);

	if (v == ACP_FLOW_NEW) {
		acp_flow_heard(&e->f, now);
		acp_flow_applied(&e->f, seq);
	}
	return v;
}

/* Process an acknowledgement. Returns how many tokens it released, or -1. */
static inline int give_ack(struct end *e, struct acp_frame fr, const struct acp_frame_ack *map)
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
static inline int ack_from(struct end *from, struct end *to)
{
	struct acp_frame_ack map;
	struct acp_frame fr = ack_of(from);

	acp_flow_fill_map(&from->f, &map);
	return give_ack(to, fr, &map);
}

/* Execute one round trip that takes "rtt". */
static inline void round_trip(struct end *a, struct end *b, u64 rtt)
{
	u64 seq = send_one(a);

	CHECK_EQ(take(b, seq, false), ACP_FLOW_NEW);
	now += rtt;
	CHECK_EQ(ack_from(b, a), 1);
}

#endif /* FLOW_PLAY_H */
