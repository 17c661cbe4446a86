// SPDX-License-Identifier: GPL-2.0-only
/* The congestion window: see cong.h. */
#include "cong.h"

#define INITIAL		16
#define LEAST		1
#define DRAINED		2	/* frames that cause no queue */
#define QUEUE_START	8	/* own frames in the queue that end slow start ... */
#define QUEUE_MAX	8	/* ... and that shrink the window */
#define JITTER_MAX	64	/* additional frames for jitter, at most */
#define SLACK		10000	/* ns by which round trips differ by chance */
#define FEW		4	/* frames in flight that suffice to detect losses by later frames */
#define SLOW		4	/* rounds per step while there is a queue */
#define PATIENCE	128	/* rounds until the shortest round-trip time is measured again */
#define WHOLE		16384	/* the unit of shares */
#define MANY		(WHOLE / 50)	/* share of lost frames that is no accident */
#define MEMORY		16	/* rounds over which averages extend */

void acp_cong_init(struct acp_cong *c, u32 max)
{
	c->window = min_t(u32, INITIAL, max);
	c->threshold = max;
	c->max = max;
	c->credit = 0;
	c->acked = 0;
	c->least = ~0ULL;
	c->marked = 0;
	c->lost = 0;
	c->marks = WHOLE;
	c->losses = 0;
	c->excess = 0;
	c->age = 0;
	c->rtt_min = 0;
	c->jitter = 0;
}

/* Update the shortest round-trip time from the samples since the last call. */
static void renew_shortest(struct acp_cong *c)
{
	if (c->least == ~0ULL)
		return;
	if (c->least < c->rtt_min + c->rtt_min / 8)
		c->age = 0;
	if (c->least < c->rtt_min || !c->rtt_min)
		c->rtt_min = c->least;
	c->least = ~0ULL;
}

/* Is there a queue on the path, that is, a round trip clearly longer than the shortest? */
static bool queued(const struct acp_cong *c, u64 rtt)
{
	return rtt > c->rtt_min + max_t(u64, c->rtt_min / 4, SLACK);
}

/* Are more than "frames" of the frames in flight queued, those that jitter explains not counted? */
static bool queues(const struct acp_cong *c, u32 flight, u32 frames, u64 rtt)
{
	if (flight <= frames || rtt <= c->rtt_min)
		return false;
	frames += min_t(u64, flight * c->jitter / rtt, JITTER_MAX);
	return flight * (rtt - c->rtt_min) > frames * rtt;
}

static void shrink(struct acp_cong *c, u32 frames)
{
	c->window = c->window > frames + LEAST ? c->window - frames : LEAST;
	c->threshold = c->window;
	c->credit = 0;
}

/* One frame more per window of acknowledged frames; more with few marks, fewer if slow. */
static void step(struct acp_cong *c, u32 frames, bool slow)
{
	c->credit += slow ? frames : SLOW * frames;
	if (c->credit < SLOW * c->window)
		return;
	c->credit = 0;
	c->window++;
	if (!slow && c->marks < WHOLE / 16)
		c->window += c->window / 16;
}

static void grow(struct acp_cong *c, u32 frames, u32 flight, u64 rtt)
{
	if (c->window >= c->threshold)
		step(c, frames, queued(c, rtt) || c->losses > MANY);
	else if (queues(c, flight, QUEUE_START, rtt))
		c->threshold = c->window;
	else
		c->window += frames;
	c->window = min_t(u32, c->window, c->max);
}

/* Reduce the window by marks or, without them, by delay. Returns true if marks reduced it. */
static bool reduce(struct acp_cong *c, u32 flight, u64 rtt)
{
	u32 frames;

	if (c->marked)
		c->excess += c->window * c->marks;
	else if (queues(c, flight, QUEUE_MAX, rtt))
		c->excess += c->window * (WHOLE / 4);
	frames = c->excess / (2 * WHOLE);
	c->excess %= 2 * WHOLE;
	if (frames)
		shrink(c, frames);
	return frames && c->marked;
}

/*
 * For one round trip, queue next to nothing; then restore the window. The path may have become
 * longer, but more likely other flows fill the queue. A flow that adopted the new round-trip time
 * at once would not detect a queue any more.
 */
static void drain(struct acp_cong *c, u64 rtt)
{
	c->age = 0;
	c->rtt_min = min_t(u64, rtt, 2 * c->rtt_min);
	c->threshold = c->window;
	c->window = min_t(u32, c->window, DRAINED);
}

/* The average after a round in which "frames" frames were marked or lost. */
static u32 averaged(const struct acp_cong *c, u32 former, u32 frames)
{
	u32 share = frames ? min_t(u32, frames * WHOLE / c->acked, WHOLE) : 0;

	return former - former / MEMORY + share / MEMORY;
}

/* A window of frames was acknowledged. */
static bool round_ended(struct acp_cong *c, u32 flight, u64 rtt)
{
	bool reduced;

	c->losses = averaged(c, c->losses, c->lost);
	c->marks = averaged(c, c->marks, c->marked);
	reduced = reduce(c, flight, rtt);
	if (c->marked)
		c->age = 0;	/* marks keep the queue short */
	else if (++c->age >= PATIENCE)
		drain(c, rtt);
	c->acked = 0;
	c->marked = 0;
	c->lost = 0;
	return reduced;
}

/* The part of acp_cong_acked() that is not inline. */
bool acp_cong_react(struct acp_cong *c, u32 frames, u32 flight, bool marks, u64 rtt)
{
	flight += frames;
	renew_shortest(c);
	if (marks) {
		c->marked += frames;
		c->threshold = min_t(u32, c->threshold, c->window);
	} else if (2 * flight >= c->window && flight <= c->window) {
		grow(c, frames, flight, rtt);
	}
	return c->acked >= c->window && round_ended(c, flight, rtt);
}

void acp_cong_lost(struct acp_cong *c, u32 frames, u64 rtt)
{
	bool many = c->window > FEW && (frames > 1 + c->window / 16 || c->losses > MANY);

	renew_shortest(c);
	c->lost += frames;
	shrink(c, max_t(u32, frames, many || queued(c, rtt) ? (c->window + 1) / 2 :
							      c->window / 16));
}

void acp_cong_timeout(struct acp_cong *c, bool again)
{
	u32 half = c->window / 2;

	if (!again) {
		c->before.window = c->window;
		c->before.threshold = c->threshold;
		c->before.lost = c->lost;
		c->before.losses = c->losses;
	}
	c->lost++;
	shrink(c, c->window);
	c->threshold = max_t(u32, half, FEW);
}

void acp_cong_take_back(struct acp_cong *c)
{
	c->window = max_t(u32, c->window, c->before.window);
	c->threshold = max_t(u32, c->threshold, c->before.threshold);
	c->lost = c->before.lost;
	c->losses = c->before.losses;
}
