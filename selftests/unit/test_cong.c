// SPDX-License-Identifier: MIT
/*
 * Congestion control on a shared bottleneck: senders, each with one flow (the real
 * kernel/core/flow.c and cong.c) and always data to send, one link with a queue, and
 * acknowledgements on an unlimited return path.
 *
 *	sender 0 --+                       +-- receiver 0
 *	sender 1 --+-- queue, link, loss --+-- receiver 1      round trip without a queue: "base"
 *	  ...                                    ...
 *
 * All frames have the same size. Measurements exclude the start (a fifth of the run). Goodput:
 * frames that arrived for the first time, relative to the capacity of the link, or to the windows
 * that the protocol allows, if that is less. The seed determines everything.
 */
#include "test.h"
#include "flow.h"

#define US		1000ULL
#define MS		1000000ULL
#define S		1000000000ULL
#define FLOWS		64
#define QUEUE		1024	/* frames; maximum that a test can set */
#define EVENTS		65536
#define FRAME_BITS	12000ULL
#define RUN		400000	/* frames that the link transmits in a run */
#define SHARE		100000u	/* denominator of probabilities */
#define ROUNDS		100	/* minimum length of a run in round trips with a full queue */
#define HELD_MAX	64
#define NUMBERS		(ACP_FRAME_WINDOW - ACP_FLOW_ANSWERS)	/* for data, per flow */
#define SEED		1

/* Parameters of the simulation. */
struct path {
	u32 flows;
	u64 gbits, base;	/* ns */
	u32 queue;		/* capacity in frames */
	u32 mark;		/* length from which on frames are marked (ECN); 0: never */
	u32 loss;		/* random losses in both directions, out of SHARE */
	u32 fixed;		/* constant window in frames; 0: congestion control */
	u64 base_later;		/* ns, after a tenth of the run; 0: unchanged */
	u64 pause, every;	/* ns for which the link stops, and the interval; 0: never */
	bool back;		/* the return path or the receiver stops instead */
	u32 fence;		/* every n-th frame is fenced; 0: none */
	bool lazy;		/* acknowledgements may be late */
	bool in_turn;		/* flows begin one by one, within a tenth of the run */
};

/* Results, excluding the start. */
struct figures {
	double goodput;		/* 1: the maximum possible */
	double queue;		/* frames, average over time */
	double again;		/* fraction of transmissions that were retransmissions */
	double least, most;	/* goodput of a flow, relative to the average */
	double jain;		/* fairness: 1: all are equal, 1 / flows: one flow has everything */
	u32 longest;		/* maximum queue length */
	u64 overflows, marked;
	u64 timeouts, wrong;	/* number of timeouts, and of those that were undone */
};

struct end {
	struct acp_flow flow;
	struct acp_flow_slot slots[ACP_FRAME_WINDOW];
	bool held[ACP_FRAME_WINDOW];
	u32 holds;
};

struct pair {
	struct end sender, receiver;
	u64 armed;		/* time of the next tick */
	u64 delivered;
};

/* A frame in flight, in either direction. */
struct packet {
	struct acp_frame frame;
	struct acp_frame_ack map;
	bool has_map, ce;
	u32 flow;
};

enum what { LEAVES, ARRIVES, RETURNS, TICK, DUE };

struct event {
	u64 time, serial;
	enum what what;
	u32 flow;
	struct packet packet;
};

static struct path path;
static struct pair pairs[FLOWS];
static struct event *heap;
static u32 events;
static u64 now, serial, seed;
static struct packet waiting[QUEUE];
static u32 head, length;
static bool measuring;
static u64 sent, again, measured_from, area, changed;
static struct figures figures;

static u64 draw(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static bool chance(u32 share)
{
	return draw() % SHARE < share;
}

/* ---- events, ordered by time ---- */

static bool before(const struct event *a, const struct event *b)
{
	return a->time < b->time || (a->time == b->time && a->serial < b->serial);
}

static void put_at(u32 i, const struct event *e)
{
	for (; i && before(e, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = *e;
}

static void after(u64 delay, enum what what, u32 flow, const struct packet *p)
{
	struct event e = { .time = now + delay, .serial = serial++, .what = what, .flow = flow };

	CHECK(events < EVENTS);
	if (p)
		e.packet = *p;
	put_at(events++, &e);
}

static struct event next_event(void)
{
	struct event first = heap[0], last = heap[--events];
	u32 i = 0, child;

	while ((child = 2 * i + 1) < events) {
		if (child + 1 < events && before(&heap[child + 1], &heap[child]))
			child++;
		if (!before(&heap[child], &last))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
	return first;
}

/* ---- the link ---- */

static u64 frame_time(void)
{
	return FRAME_BITS / path.gbits;
}

/* Return how long the link, or the return path, remains stopped. */
static u64 standstill(bool back)
{
	u64 since = path.every && path.back == back ? now % path.every : path.pause;

	return since < path.pause ? path.pause - since : 0;
}

static void queue_changes(u32 to)
{
	if (measuring)
		area += length * (now - changed);
	changed = now;
	length = to;
	if (measuring && length > figures.longest)
		figures.longest = length;
}

static void enqueue(struct packet *p)
{
	if (length == path.queue) {
		figures.overflows += measuring;
		return;
	}
	if (path.mark && length >= path.mark) {
		p->ce = true;
		figures.marked += measuring;
	}
	waiting[(head + length) % QUEUE] = *p;
	queue_changes(length + 1);
	if (length == 1)
		after(standstill(false) + frame_time(), LEAVES, 0, NULL);
}

static void leaves(void)
{
	struct packet *p = &waiting[head];

	if (!chance(path.loss))
		after(path.base / 2, ARRIVES, p->flow, p);
	head = (head + 1) % QUEUE;
	queue_changes(length - 1);
	if (length)
		after(standstill(false) + frame_time(), LEAVES, 0, NULL);
}

/* ---- the ends ---- */

static void transmit(u32 i, u64 seq)
{
	struct packet p = { .flow = i, .frame = { .type = ACP_FRAME_DATA, .seq = seq } };

	if (acp_flow_lazy(&pairs[i].sender.flow, seq, path.lazy))
		p.frame.flags = ACP_FRAME_LAZY;
	if (path.fence && seq % path.fence == 0)
		p.frame.flags |= ACP_FRAME_FENCE;
	acp_flow_fill(&pairs[i].sender.flow, &p.frame);
	sent += measuring;
	enqueue(&p);
}

static void arm(u32 i)
{
	u64 when = acp_flow_deadline(&pairs[i].sender.flow);

	if (when >= pairs[i].armed)
		return;
	pairs[i].armed = when;
	after(when > now ? when - now : 0, TICK, i, NULL);
}

static void pass(u32 i)
{
	struct acp_flow *f = &pairs[i].sender.flow;
	u64 seq;

	if (path.fixed)
		f->cong.window = path.fixed;
	while ((seq = acp_flow_lost(f))) {
		acp_flow_resend(f, seq, now);
		again += measuring;
		transmit(i, seq);
	}
	while (acp_flow_room(f))
		transmit(i, acp_flow_send(f, &pairs[i], now));
	arm(i);
}

static void tick(u32 i, u64 when)
{
	if (when != pairs[i].armed)
		return;
	pairs[i].armed = ~0ULL;
	switch (acp_flow_tick(&pairs[i].sender.flow, now)) {
	case ACP_FLOW_RESEND:
		figures.timeouts += measuring;
		break;
	default:
		CHECK(pairs[i].sender.flow.state == ACP_FLOW_OPEN);
	}
	pass(i);
}

/* Slightly irregular, because otherwise the same flow would be hit by drops repeatedly. */
static void acknowledge(u32 i)
{
	struct acp_flow *f = &pairs[i].receiver.flow;
	struct packet p = { .flow = i, .frame = { .type = ACP_FRAME_ACK } };

	p.has_map = acp_flow_map_needed(f);
	if (p.has_map)
		acp_flow_fill_map(f, &p.map);
	acp_flow_fill(f, &p.frame);
	if (!chance(path.loss))
		after(standstill(true) + path.base - path.base / 2 + draw() % frame_time(),
		      RETURNS, i, &p);
}

/* Hold a fenced frame that is early; if there are many, one is dropped. */
static void hold(struct end *e, u64 seq)
{
	if (e->holds == HELD_MAX || e->held[seq % ACP_FRAME_WINDOW])
		return;
	e->held[seq % ACP_FRAME_WINDOW] = true;
	e->holds++;
}

static void release(u32 i)
{
	struct end *e = &pairs[i].receiver;
	bool *held;

	while (*(held = &e->held[e->flow.rcv % ACP_FRAME_WINDOW])) {
		*held = false;
		e->holds--;
		if (acp_flow_accept(&e->flow, e->flow.rcv, true) != ACP_FLOW_NEW)
			break;
		acp_flow_applied(&e->flow, e->flow.rcv);
		pairs[i].delivered += measuring;
	}
}

static void arrives(u32 i, const struct packet *p)
{
	struct acp_flow *f = &pairs[i].receiver.flow;
	bool due;

	CHECK(acp_flow_admit(f, &p->frame, now) & ACP_FLOW_PASS);
	due = f->ack_due;
	switch (acp_flow_accept(f, p->frame.seq, p->frame.flags & ACP_FRAME_FENCE)) {
	case ACP_FLOW_HOLD:
		hold(&pairs[i].receiver, p->frame.seq);
		return;
	case ACP_FLOW_NEW:
		if (p->ce)
			acp_flow_marked(f);
		acp_flow_applied(f, p->frame.seq);
		if (p->frame.flags & ACP_FRAME_LAZY && !due)
			acp_flow_ack_later(f, 1, now);
		pairs[i].delivered += measuring;
		release(i);
		break;
	default:
		break;
	}
	if (f->ack_due)
		acknowledge(i);
	else
		after(f->ack_at - now, DUE, i, NULL);
}

static void due(u32 i)
{
	struct acp_flow *f = &pairs[i].receiver.flow;

	if (!f->ack_at || now < f->ack_at)
		return;
	acp_flow_tick(f, now);
	acknowledge(i);
}

static void returns(u32 i, const struct packet *p)
{
	struct acp_flow *f = &pairs[i].sender.flow;
	struct acp_flow_ack a;

	CHECK(acp_flow_admit(f, &p->frame, now) & ACP_FLOW_PASS);
	CHECK(acp_flow_ack_begin(f, &a, &p->frame, p->has_map ? &p->map : NULL));
	while (acp_flow_ack_next(f, &a, now))
		;
	if (acp_flow_ack_end(f, &a, now) & ACP_FLOW_TAKEN_BACK)
		figures.wrong += measuring;
	pass(i);
}

static void open_pair(u32 i)
{
	struct end *s = &pairs[i].sender, *r = &pairs[i].receiver;
	struct acp_frame ask = { 0 }, reply = { 0 };

	memset(&pairs[i], 0, sizeof(pairs[i]));
	acp_flow_init(&s->flow, 4 * i + 1, 4 * i + 2, 10 * S, 10 * S);
	acp_flow_init(&r->flow, 4 * i + 3, 4 * i + 4, 10 * S, 10 * S);
	s->flow.slots = s->slots;
	r->flow.slots = r->slots;
	acp_flow_open(&s->flow, now);
	acp_flow_ask(&s->flow, &ask, now);
	CHECK(acp_flow_hello(&r->flow, &ask, &reply, now) & ACP_FLOW_REPLY);
	CHECK(acp_flow_hello(&s->flow, &reply, &ask, now) & ACP_FLOW_OPENED);
	pairs[i].armed = ~0ULL;
}

/* ---- a run ---- */

static void step(void)
{
	struct event e = next_event();

	now = e.time;
	switch (e.what) {
	case LEAVES:
		leaves();
		break;
	case ARRIVES:
		arrives(e.flow, &e.packet);
		break;
	case RETURNS:
		returns(e.flow, &e.packet);
		break;
	case TICK:
		tick(e.flow, e.time);
		break;
	case DUE:
		due(e.flow);
		break;
	}
}

static void evaluate_fairness(double mean)
{
	double squares = 0;
	u32 i;

	figures.least = path.flows;
	for (i = 0; i < path.flows; i++) {
		double share = pairs[i].delivered / mean;

		figures.least = share < figures.least ? share : figures.least;
		figures.most = share > figures.most ? share : figures.most;
		squares += share * share;
	}
	figures.jain = path.flows / squares;
}

static void evaluate(void)
{
	double time = now - measured_from, delivered = 0;
	double paused = path.every && !path.back ? (double)path.pause / path.every : 0;
	double link = time / frame_time() * (1 - paused);
	double windows = (double)path.flows * NUMBERS * time / (path.base + frame_time());
	u32 i;

	for (i = 0; i < path.flows; i++)
		delivered += pairs[i].delivered;
	CHECK(delivered > 0);
	evaluate_fairness(delivered / path.flows);
	figures.goodput = delivered / (windows < link ? windows : link);
	figures.queue = area / time;
	figures.again = (double)again / sent;
}

static void report(void)
{
	printf("# seed %u %2u flows %3llu Gbit/s %4llu us", SEED, path.flows,
	       (unsigned long long)path.gbits, (unsigned long long)(path.base / US));
	if (path.mark)
		printf(" mark %3u", path.mark);
	if (path.loss)
		printf(" loss %.1f%%", 100. * path.loss / SHARE);
	if (path.fixed)
		printf(" fixed %u", path.fixed);
	if (path.pause)
		printf(" pause %llu us%s", (unsigned long long)(path.pause / US),
		       path.back ? " back" : "");
	if (path.fence)
		printf(" fence %u", path.fence);
	if (figures.timeouts)
		printf(" time-outs %llu wrong %llu", (unsigned long long)figures.timeouts,
		       (unsigned long long)figures.wrong);
	if (path.lazy)
		printf(" late");
	printf(": goodput %5.1f%% queue %5.1f (most %3u) again %5.2f%% fair %.3f (%.2f-%.2f)\n",
	       100 * figures.goodput, figures.queue, figures.longest, 100 * figures.again,
	       figures.jain, figures.least, figures.most);
}

static void start(u64 duration)
{
	u32 i;

	for (i = 0; i < path.flows; i++) {
		open_pair(i);
		pairs[i].armed = now + draw() % (path.in_turn ? duration / 10 : path.base);
		after(pairs[i].armed - now, TICK, i, NULL);
	}
}

static void measure_from_now(void)
{
	measuring = true;
	measured_from = now;
	changed = now;
}

static struct figures run(const struct path *p)
{
	u64 begin = S, duration, round;

	if (!heap)
		heap = calloc(EVENTS, sizeof(*heap));
	CHECK(heap);
	path = *p;
	seed = SEED;
	now = begin;
	events = 0;
	head = 0;
	length = 0;
	sent = 0;
	again = 0;
	area = 0;
	measuring = false;
	memset(&figures, 0, sizeof(figures));
	round = path.base + path.queue * frame_time();
	duration = RUN * frame_time();
	if (duration < ROUNDS * round)
		duration = ROUNDS * round;
	start(duration);
	while (now < begin + duration) {
		if (path.base_later && now > begin + duration / 10)
			path.base = path.base_later;
		if (!measuring && now > begin + duration / 5)
			measure_from_now();
		step();
	}
	evaluate();
	report();
	return figures;
}

/* ---- tests ---- */

#define ALL(a) (sizeof(a) / sizeof((a)[0]))

static const u32 counts[] = { 1, 2, 4, 8, 16, 32, 64 };

/* Return the number of frames in flight that fill the link without a queue. */
static u32 pipe_frames(const struct path *p)
{
	return p->base * p->gbits / FRAME_BITS;
}

static const struct path links[] = {
	{ .gbits = 1, .base = 20 * US, .queue = 256 },
	{ .gbits = 1, .base = 1000 * US, .queue = 256 },
	{ .gbits = 10, .base = 100 * US, .queue = 256 },
	{ .gbits = 25, .base = 200 * US, .queue = 256 },
	{ .gbits = 100, .base = 20 * US, .queue = 256 },
};

/* Return the queue that congestion control leaves: a few frames per flow, at most the capacity. */
static double queue_bound(const struct path *p)
{
	return p->flows * 16 < p->queue ? p->flows * 16 : p->queue;
}

/* One link with any number of flows. */
static void fill(const struct path *link)
{
	struct path p = *link;
	struct figures f;
	u32 i;

	for (i = 0; i < ALL(counts); i++) {
		p.flows = counts[i];
		f = run(&p);
		CHECK(f.goodput >= 0.95);
		CHECK(f.queue <= queue_bound(&p));
		CHECK(f.again <= 0.05);
		CHECK(f.jain >= 0.7);
		CHECK(p.flows > 8 || (f.least >= 0.8 && f.most <= 1.2));
	}
}

TEST(shared__1_gbit_20_us)
{
	fill(&links[0]);
}

TEST(shared__1_gbit_1_ms)
{
	fill(&links[1]);
}

TEST(shared__10_gbit_100_us)
{
	fill(&links[2]);
}

TEST(shared__25_gbit_200_us)
{
	fill(&links[3]);
}

TEST(shared__100_gbit_20_us)
{
	fill(&links[4]);
}

/* A bandwidth-delay product of 1,666 frames; a switch with a buffer of 256. */
TEST(shared__10_gbit_2_ms)
{
	struct path p = { .gbits = 10, .base = 2 * MS, .queue = 256 };

	fill(&p);
}

/* Later flows find a queue, and mistake it for the length of the path. */
TEST(shared__flows_come_one_by_one)
{
	struct path p = links[2];
	struct figures f;
	u32 i;

	p.in_turn = true;
	for (i = 0; i < ALL(counts); i++) {
		p.flows = counts[i];
		f = run(&p);
		CHECK(f.goodput >= 0.95);
		CHECK(f.again <= 0.05);
		CHECK(f.jain >= 0.7);
	}
}

/*
 * A switch that marks frames from a queue length on: no losses, and the queue stays at that length.
 * It cannot become shorter than one frame per flow.
 */
TEST(ecn__marks_instead_of_losses)
{
	struct figures f;
	u32 i, l;

	for (l = 0; l < ALL(links); l++) {
		struct path p = links[l];

		p.mark = p.gbits == 25 ? 64 : 32;
		for (i = 0; i < ALL(counts); i++) {
			p.flows = counts[i];
			f = run(&p);
			CHECK(f.goodput >= 0.9);
			CHECK_EQ(f.overflows, 0);
			CHECK(f.queue <= (p.flows > p.mark ? p.flows : p.mark + p.flows / 4));
			CHECK(f.longest <= p.mark + 2 * p.flows + 28);
			CHECK(f.again <= 0.04);
			CHECK(f.jain >= 0.95);
		}
	}
}

/*
 * Random losses. A loss stops the window: for a flow that needs more than half of its window to
 * fill the link, no congestion window can be better than the constant one.
 */
TEST(loss__1_percent_by_accident)
{
	u32 i, l;

	for (l = 0; l < ALL(links); l += 2) {
		for (i = 0; i < ALL(counts); i++) {
			struct path p = links[l];
			struct figures without, with;
			double goal;

			p.flows = counts[i];
			without = run(&p);
			p.loss = SHARE / 100;
			with = run(&p);
			goal = 0.7 * without.goodput;
			if (pipe_frames(&p) > p.flows * NUMBERS / 2) {
				goal = pipe_frames(&p) > p.flows * NUMBERS ? 0.85 : 0.9;
				p.fixed = NUMBERS;
				goal *= run(&p).goodput;
			}
			CHECK(with.goodput >= goal);
			CHECK(with.again <= 0.05);
		}
	}
}

/* Without congestion control: the window of sequence numbers. */
TEST(fixed__window_of_all_numbers)
{
	u32 i, l;

	for (l = 0; l < ALL(links); l += 2) {
		for (i = 0; i < ALL(counts); i++) {
			struct path p = links[l];
			struct figures fixed, ours;

			p.flows = counts[i];
			ours = run(&p);
			p.fixed = NUMBERS;
			fixed = run(&p);
			CHECK(ours.goodput >= 0.95 * fixed.goodput);
			CHECK(ours.queue <= fixed.queue + 16);
			if (fixed.overflows)
				CHECK(ours.again < fixed.again / 4);
		}
	}
}

/* Acknowledgements of answers may be late, but congestion control needs them. */
TEST(late__acknowledgements_that_nobody_awaits)
{
	u32 i, k;

	for (i = 0; i < ALL(counts); i++) {
		for (k = 0; k < 3; k++) {
			struct path p = links[2];
			struct figures f;

			p.flows = counts[i];
			p.mark = k == 1 ? 32 : 0;
			p.loss = k == 2 ? SHARE / 100 : 0;
			p.lazy = true;
			f = run(&p);
			CHECK(f.goodput >= 0.9);
			CHECK(f.queue <= queue_bound(&p));
			CHECK(f.again <= 0.05);
			CHECK(f.jain >= 0.7);
		}
	}
}

/* The path becomes five times longer; three searches for the minimum round-trip time find it. */
TEST(delay__way_becomes_longer)
{
	struct path p = { .flows = 1, .gbits = 10, .base = 20 * US, .queue = 256,
			  .base_later = 100 * US };

	CHECK(run(&p).goodput >= 0.9);
	p.flows = 8;
	CHECK(run(&p).goodput >= 0.95);
}

/*
 * No losses, but sometimes the path or the peer stops for longer than a timeout: a machine whose
 * CPU is busy. This is no congestion.
 */
TEST(pause__longer_than_a_time_out)
{
	static const u64 pauses[] = { 300 * US, 1 * MS, 4 * MS, 20 * MS };
	u32 i, k;

	for (i = 0; i < ALL(pauses); i++) {
		for (k = 0; k < 3; k++) {
			struct path p = { .flows = 1 << 2 * k, .gbits = 10, .base = 100 * US,
					  .queue = 1024, .pause = pauses[i],
					  .every = 5 * pauses[i] + 4 * MS };
			struct figures f = run(&p);

			CHECK(f.goodput >= 0.9);
			CHECK(f.again <= 0.02);
		}
	}
}

/*
 * Acknowledgements arrive in bursts: delayed sometimes, or by a network device that interrupts only
 * 20,000 times per second. This is no queue, and the link must not become idle.
 */
TEST(pause__of_acknowledgements)
{
	u32 i;

	for (i = 0; i < 4; i++) {
		struct path p = { .flows = 1 << i, .gbits = 10, .base = 30 * US, .queue = 256,
				  .pause = 48 * US, .every = 50 * US, .back = true };
		struct figures f = run(&p);

		CHECK(f.goodput >= 0.95);
		CHECK(f.queue <= 64 + 16 * p.flows);
		CHECK(f.again <= 0.01);
		p.base = 100 * US;
		p.every = 300 * US;
		f = run(&p);
		CHECK(f.goodput >= 0.8);
		CHECK(f.queue <= 64 + 16 * p.flows);
		CHECK(f.again <= 0.01);
	}
}

/*
 * Fenced frames after a lost one are acknowledged late, and all at once. So are frames that had to
 * wait for a timeout, which was correct nevertheless.
 */
TEST(fence__held_frames_do_not_make_a_time_out_wrong)
{
	u32 i;

	for (i = 0; i < 6; i++) {
		struct path p = { .flows = i < 3 ? 1 : 4, .gbits = 10, .base = 100 * US,
				  .queue = 256, .loss = SHARE / 1000, .fence = 1 + i % 3 };
		struct figures f = run(&p);

		CHECK(p.fence > 1 || f.timeouts > 20);
		CHECK_EQ(f.wrong, 0);
		CHECK(f.goodput >= 0.3);
		CHECK(f.again <= 0.05);
	}
}

TEST_MAIN
