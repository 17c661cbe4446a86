// SPDX-License-Identifier: MIT
/* selftest: cpus=2 */
/*
 * Fenced frames that a gap holds, from a node that is played by the test. Their turn comes at once:
 * one budget of them is processed in softirq, the rest by the worker of the rank that they are for,
 * in their order, and each once.
 */
#include "../dev/isolated.h"

#include "played_sender.h"
#include "workers.h"

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

/* All frames but one: they are held. */
static void hold_all(void)
{
	struct count held = nodes_count(&n, 0, "rx_held");
	char payload[EACH];
	uint32_t i;

	for (i = 0; i < FRAMES; i++) {
		fill(payload, EACH, i);
		fenced_put(i, payload);
	}
	nodes_counted(&held, FRAMES);
}

/* The frame of that number, which was missing. */
static void fill_gap(uint64_t seq)
{
	char payload[8] = { 0 };

	x.seq = seq;
	inject_put(&x, 2, 999, memory_ga(&target, EACH), payload, 8);
	x.seq = seq + FRAMES + 1;
}

static void hold_and_release(void)
{
	uint64_t seq = x.seq++;

	hold_all();
	fill_gap(seq);
	inject_applied(&x, x.seq - 1);
	CHECK(filled(target.addr, EACH, FRAMES - 1));
}

static uint32_t integrity;

/* How many of the frames fit into a budget. */
#define ONE_BUDGET	(65536 / EACH - 1)

/*
 * While nothing but this process and softirqs runs, a budget of them is processed: the last frame
 * has written the payload that is in memory.
 */
static void without_worker(void)
{
	struct patience p = patience_begin(PATIENCE_WORK);
	struct count goes;
	uint64_t seq;

	play(integrity);
	hold_and_release();
	take_processor(1);
	seq = x.seq++;
	hold_all();
	goes = nodes_count(&n, 0, "rx_held_goes");
	fill_gap(seq);
	/* Without sleeping, which would let the worker run. */
	while (nodes_counter(&n, 0, "rx_held_goes") == goes.before)
		CHECK(!patience_over(&p));
	CHECK(filled(target.addr, EACH, ONE_BUDGET - 1));
	give_processor();
	inject_applied(&x, x.seq - 1);
	CHECK(filled(target.addr, EACH, FRAMES - 1));
}

TEST(K8_held_frames_take_one_budget_in_softirq)
{
	integrity = ACP_INTEGRITY_TAG;
	with_settings(without_worker);
}

TEST(K8_held_frames_take_one_budget_in_softirq_encrypted)
{
	integrity = ACP_INTEGRITY_AEAD;
	with_settings(without_worker);
}

/* The rest counts for the process whose memory they are for. */
TEST(K8_held_frames_are_charged_to_the_process)
{
	struct count wakeups;
	struct patience p;
	int times = 0;

	group_open();
	write_number(GROUP "/group/cgroup.procs", getpid());
	play(ACP_INTEGRITY_TAG);
	wakeups = nodes_count(&n, 0, "worker_wakeups");
	p = patience_begin(PATIENCE_WORK);
	do {
		CHECK(!patience_over(&p));
		hold_and_release();
		times++;
	} while (!worker_in_group());
	printf("# after %d times\n", times);
	CHECK(nodes_counter(&n, 0, "worker_wakeups") > wakeups.before);
	write_number(GROUP "/cgroup.procs", getpid());
	rank_close(&victim);
	rank_close(&second);
	group_close();
}

/* A rank leaves that was to process them: another one does, or nobody is left who needs it. */
TEST(K8_a_rank_leaves_with_held_frames)
{
	uint64_t seq;

	play(ACP_INTEGRITY_TAG);
	hold_and_release();
	seq = x.seq++;
	hold_all();
	fill_gap(seq);
	rank_close(&victim);
	inject_applied(&x, x.seq - 1);
	seq = x.seq++;
	hold_all();
	fill_gap(seq);
	rank_close(&second);
}
