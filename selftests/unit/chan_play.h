/* SPDX-License-Identifier: MIT */
/* Functions shared by tests of channels on the fake basic layer. */
#ifndef CHAN_PLAY_H
#define CHAN_PLAY_H

#include <time.h>

#include "acp.h"
#include "channel/chan.h"
#include "fake_acp.h"
#include "messages.h"
#include "test.h"

/*
 * Return the seed of the first of several rounds; each round uses the next seed. On failure the
 * seed of the round is printed. To repeat that round, set $ACP_TEST_SEED to it; the repetition is
 * exact if ranks run in turns.
 */
static inline uint64_t play_seed(void)
{
	const char *text = getenv("ACP_TEST_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL) * 1000000 +
							 (uint64_t)getpid() % 1000 * 1000;

	printf("# seeds from %llu on\n", (unsigned long long)seed);
	return seed;
}

/* Do what acp_finalize() does for channels, because the fake one does not. */
static inline void play_leave(void)
{
	struct acpx_heap_stats stats;

	libacp_rendezvous_settle();
	acp_sync();
	libacp_chan_close();
	CHECK_EQ(acp_sync(), 0);
	CHECK_EQ(acpx_heap_stats(acp_rank(), &stats), 0);
	CHECK_EQ(stats.blocks, 0);
	CHECK(fake_regions() <= 2);	/* scratch memory of the heap */
}

#endif /* CHAN_PLAY_H */
