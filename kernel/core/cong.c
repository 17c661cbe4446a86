// SPDX-License-Identifier: GPL-2.0-only
/* The congestion window: see cong.h. */
#include "cong.h"

#define INITIAL	32
#define LEAST	4

void acp_cong_init(struct acp_cong *c, u32 max)
{
	c->window = min_t(u32, INITIAL, max);
	c->threshold = max;
	c->credit = 0;
	c->max = max;
	c->rtt_min = 0;
}

/* Is there a queue on the way: a round trip over 5/4 of the shortest? */
static bool queued(const struct acp_cong *c, u64 rtt)
{
	return rtt > c->rtt_min + c->rtt_min / 4;
}

/* rtt_ns: the smoothed round trip, 0 if unknown. */
void acp_cong_acked(struct acp_cong *c, u32 frames, u64 rtt_ns)
{
	if (rtt_ns && (!c->rtt_min || rtt_ns < c->rtt_min))
		c->rtt_min = rtt_ns;
	if (c->window < c->threshold) {
		c->window += frames;
	} else {
		c->credit += frames;
		if (c->credit >= c->window) {
			c->credit -= c->window;
			c->window++;
		}
	}
	c->window = min_t(u32, c->window, c->max);
}

/* A loss that repetition mends; at most once per round trip. */
void acp_cong_lost(struct acp_cong *c, u64 rtt_ns)
{
	u32 keep = queued(c, rtt_ns) ? 7 : 9;

	c->window = max_t(u32, c->window * keep / 10, LEAST);
	c->threshold = c->window;
	c->credit = 0;
}

/* Nothing came back for a whole time-out. */
void acp_cong_timeout(struct acp_cong *c)
{
	c->threshold = max_t(u32, c->window / 2, LEAST);
	c->window = LEAST;
	c->credit = 0;
}
