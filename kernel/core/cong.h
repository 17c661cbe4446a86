/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many frames may be in flight: a window that grows by acknowledgement
 * and shrinks by loss, once per round trip, less when the round trip shows
 * no queue (loss by damage, not by congestion).  Knows no frames.
 */
#ifndef ACP_CONG_H
#define ACP_CONG_H

#include "port.h"

struct acp_cong {
	u32 window;		/* frames */
	u32 threshold;		/* below it: one more per acknowledged frame */
	u32 credit;		/* acknowledged frames since the last step above it */
	u32 max;
	u64 rtt_min;		/* ns, 0: none yet */
};

void acp_cong_init(struct acp_cong *c, u32 max);
void acp_cong_acked(struct acp_cong *c, u32 frames, u64 rtt_ns);
void acp_cong_lost(struct acp_cong *c, u64 rtt_ns);
void acp_cong_timeout(struct acp_cong *c);

#endif /* ACP_CONG_H */
