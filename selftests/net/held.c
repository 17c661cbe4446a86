// SPDX-License-Identifier: MIT
/*
 * Fenced frames that a gap holds, from a node that is played by the test: those whose turn comes at
 * once are processed in several goes, in their order, and each once.
 */
#include "../dev/isolated.h"

#include "played_sender.h"

#define FRAMES	48U
#define EACH	8192U		/* bytes of a payload: 384 KiB together */

/* A fenced put to the same place: the last one wins if they are applied in their order. */
static void fenced_put(uint32_t number, const void *payload)
{
	static char body[INJECT_MAX];
	struct acp_frame f = inject_header(&x, ACP_FRAME_DATA);
	const struct acp_msg m = {
		.type = ACP_MSG_DATA, .flags = ACP_MSG_LAST, .origin = 2, .ticket = 1000 + number,
		.dst = memory_ga(&target, 0), .length = EACH,
	};

	f.flags |= ACP_FRAME_FENCE | (x.encrypted ? 0 : ACP_FRAME_BULK);
	inject_frame(&x, &f, body, inject_message(body, &m, payload));
}

static void hold_and_release(uint32_t integrity)
{
	struct count held, goes;
	char payload[EACH];
	uint64_t seq;
	uint32_t i;

	play(integrity);
	held = nodes_count(&n, 0, "rx_held");
	goes = nodes_count(&n, 0, "rx_held_goes");
	seq = x.seq++;
	for (i = 0; i < FRAMES; i++) {
		fill(payload, EACH, i);
		fenced_put(i, payload);
	}
	nodes_counted(&held, FRAMES);
	nodes_counted(&goes, 0);
	/* The frame that was missing. */
	x.seq = seq;
	inject_put(&x, 2, 999, memory_ga(&target, EACH), payload, 8);
	x.seq = seq + FRAMES + 1;
	inject_applied(&x, x.seq - 1);
	CHECK(filled(target.addr, EACH, FRAMES - 1));
	/* 64 KiB at a time, and one frame more. */
	nodes_counted(&goes, FRAMES * EACH / (65536 + EACH));
}

TEST(K8_held_frames_are_processed_64_KiB_at_a_time)
{
	hold_and_release(ACP_INTEGRITY_TAG);
}

TEST(K8_held_frames_are_processed_64_KiB_at_a_time_encrypted)
{
	hold_and_release(ACP_INTEGRITY_AEAD);
}
