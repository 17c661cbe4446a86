/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Congestion window: how many frames may be in flight. It knows no frames, only how many were
 * acknowledged, marked or lost, and the round-trip time.
 *
 * - Marks (ECN): the window shrinks by half the share of marked frames, once per window, as in
 *   DCTCP (RFC 8257). A window does not grow on marked frames, so that many flows can shrink to one
 *   frame each.
 * - Delay: a share of 1 - shortest / present round-trip time of the frames in flight is queued, as
 *   in TCP Vegas (Brakmo and Peterson, 1995). A few queued frames end slow start; some more make
 *   the window shrink. Their number is large enough that no flow starves if its shortest round-trip
 *   time is wrong. Frames that jitter accounts for are added: interrupt moderation and stalled
 *   machines are not a queue, and these frames keep the rest of the path busy meanwhile. If the
 *   shortest round-trip time has not been seen again for a long time, the flow drains its part of
 *   the queue, as BBR does (Cardwell and others, 2016). It adopts the round-trip time that it
 *   measures then only step by step, because other flows may fill the queue.
 * - Loss: if there is a queue on the path, or if losses are frequent, the window is halved (RFC
 *   5681) and grows slowly afterwards, as in CUBIC near the last loss (RFC 9438). Otherwise the
 *   loss is damage and not congestion, and the window shrinks by little more than the number of
 *   lost frames.
 * - Time-out: the window becomes 1. If the time-out proves wrong, the former window is restored, as
 *   in Eifel (RFC 4015).
 *
 * The window grows with acknowledged frames only if it was the limit.
 */
#ifndef ACP_CONG_H
#define ACP_CONG_H

#include "port.h"

struct acp_cong {
	u32 window;		/* frames */
	u32 acked;		/* frames of this round, which ends with a window of them */
	u64 least;		/* shortest round-trip time not yet in rtt_min, ~0: none */
	u32 threshold;		/* below it: slow start */
	u32 max;
	u32 credit;		/* towards the next increment above the threshold */
	u32 marked, lost;	/* frames of this round */
	u32 marks, losses;	/* averages of their shares in former rounds, of 16,384 */
	u32 excess;		/* the window is too large by this, in 1/32,768 of a frame */
	u32 age;		/* rounds since a round-trip time near the shortest */
	u64 rtt_min;		/* ns, 0: none yet */
	u64 jitter;		/* ns by which round trips may exceed the average */
	struct {
		u32 window, threshold, lost, losses;
	} before;		/* values before a time-out that may be taken back */
};

void acp_cong_init(struct acp_cong *c, u32 max);

/* A round-trip time was measured; jitter: present value for struct acp_cong. */
static inline void acp_cong_sample(struct acp_cong *c, u64 rtt, u64 jitter)
{
	c->jitter = jitter;
	if (rtt < c->least)
		c->least = rtt;
}

bool acp_cong_react(struct acp_cong *c, u32 frames, u32 flight, bool marks, u64 rtt);

/*
 * "frames" frames were acknowledged, "flight" others are in flight; marks: some frames were marked
 * on the path; rtt: average in ns, 0: unknown. Returns true if marks reduced the window.
 */
static inline bool acp_cong_acked(struct acp_cong *c, u32 frames, u32 flight, bool marks, u64 rtt)
{
	c->acked += frames;
	/* Usually the window does not limit the sender. */
	if (!marks && 2 * (frames + flight) < c->window && c->acked < c->window)
		return false;
	return acp_cong_react(c, frames, flight, marks, rtt);
}

/* Frames were lost and will be retransmitted. At most once per round trip. */
void acp_cong_lost(struct acp_cong *c, u32 frames, u64 rtt);

/* A time-out passed without an acknowledgement. again: an earlier one is still in doubt. */
void acp_cong_timeout(struct acp_cong *c, bool again);

/* The time-outs in doubt were wrong. */
void acp_cong_take_back(struct acp_cong *c);

#endif /* ACP_CONG_H */
