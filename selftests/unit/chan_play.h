/* SPDX-License-Identifier: MIT */
/* What the tests of channels on the played basic layer share. */
#ifndef CHAN_PLAY_H
#define CHAN_PLAY_H

#include "acp.h"
#include "chan.h"
#include "fake_acp.h"
#include "messages.h"
#include "test.h"

/* What acp_finalize does for channels; the played one does not. */
static inline void play_leave(void)
{
	struct acpx_heap_stats stats;

	libacp_meet_settle();
	acp_sync();
	libacp_chan_close();
	CHECK_EQ(acp_sync(), 0);
	CHECK_EQ(acpx_heap_stats(acp_rank(), &stats), 0);
	CHECK_EQ(stats.blocks, 0);
	CHECK(fake_regions() <= 2);	/* scratch of the heap */
}

#endif /* CHAN_PLAY_H */
