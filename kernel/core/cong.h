/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many frames may be in flight.  Knows no frames, only how many were
 * acknowledged, marked or lost, and how long the round trip takes.
 *
 * - Marks (ECN): the window shrinks by half the share of frames that were
 *   marked, once per window, as in DCTCP (RFC 8257).  What was marked is no
 *   reason to grow, so that many flows come down to one frame each.
 * - Delay: of the frames in flight, a share of 1 - shortest / present round
 *   trip is in a queue, as in TCP Vegas (Brakmo and Peterson, 1995).  With a few
 *   of them, slow start ends; with some more, the window shrinks.  So many that
 *   a wrong idea of the shortest round trip makes no flow starve, and besides as
 *   many as jitter accounts for: cards that interrupt seldom and machines that
 *   stand still now and then are no queue, and so many more under way keep the
 *   rest of the way busy meanwhile.  If the shortest was not seen again for long,
 *   the flow lets its part of the queue run dry, as BBR does (Cardwell and
 *   others, 2016), but takes what it sees then for the way's length by and by
 *   only: others may fill the queue.
 * - Loss: with a queue on the way, or if losses are many, the window is halved
 *   (RFC 5681), and grows slowly afterwards, as CUBIC does near the last loss
 *   (RFC 9438).  Else it is damage, not congestion, and the window shrinks by
 *   little more than what was lost.
 * - Time-out: the window is 1.  If the time-out proves wrong, it is again what
 *   it was, as with Eifel (RFC 4015).
 *
 * It grows with what is acknowledged only if it was the limit.
 */
#ifndef ACP_CONG_H
#define ACP_CONG_H

#include "port.h"

struct acp_cong {
	u32 window;		/* frames */
	u32 acked;		/* frames of this round, which ends with a window of them */
	u64 least;		/* the shortest one that rtt_min knows nothing of, ~0: none */
	u32 threshold;		/* below it: one more per acknowledged frame */
	u32 max;
	u32 credit;		/* towards the next step above it */
	u32 marked, lost;	/* frames of this round, too */
	u32 marks, losses;	/* their shares in former rounds, averaged, out of 16,384 */
	u32 excess;		/* by so much the window is too big, in 1/32,768 of a frame */
	u32 age;		/* rounds since a round trip like the shortest */
	u64 rtt_min;		/* ns, 0: none yet */
	u64 jitter;		/* ns by which round trips are longer than on average, at most */
	struct {
		u32 window, threshold, lost, losses;
	} before;		/* a time-out that may be taken back */
};

void acp_cong_init(struct acp_cong *c, u32 max);

/* The round trip of a frame was so long; jitter: as in struct acp_cong, by now. */
static inline void acp_cong_sample(struct acp_cong *c, u64 rtt, u64 jitter)
{
	c->jitter = jitter;
	if (rtt < c->least)
		c->least = rtt;
}

bool acp_cong_react(struct acp_cong *c, u32 frames, u32 flight, bool marks, u64 rtt);

/*
 * So many frames were acknowledged, others are in flight; marks: some were
 * marked on the way.  rtt: averaged, ns, 0: unknown.  True: marks have made the
 * window smaller.
 */
static inline bool acp_cong_acked(struct acp_cong *c, u32 frames, u32 flight, bool marks, u64 rtt)
{
	c->acked += frames;
	/* Most often the window is not what limits the sender. */
	if (!marks && 2 * (frames + flight) < c->window && c->acked < c->window)
		return false;
	return acp_cong_react(c, frames, flight, marks, rtt);
}

/* So many were lost, which repetition mends; at most once per round trip. */
void acp_cong_lost(struct acp_cong *c, u32 frames, u64 rtt);

/* Nothing came back for a whole time-out.  again: one before it is still in doubt. */
void acp_cong_timeout(struct acp_cong *c, bool again);

/* They were wrong. */
void acp_cong_take_back(struct acp_cong *c);

#endif /* ACP_CONG_H */
