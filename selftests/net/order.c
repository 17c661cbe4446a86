// SPDX-License-Identifier: MIT
/*
 * Order across nodes: a command that waits for others is executed after them, on whatever node, and
 * not at all if one of them failed, wherever that was.
 */
#include "../dev/isolated.h"

#include <errno.h>
#include <pthread.h>

#include "nodes.h"

#define LONG	(1UL << 20)

static struct nodes n;
static struct rank r[3];

static void begin(uint32_t count)
{
	const struct acp_join wish = { .heap_size = 4 * LONG };
	uint32_t i;

	nodes_open(&n, count, 1, false);
	nodes_ranks_like(&n, r, count, &wish);
	/* Open the flows first, because the first message of a flow waits for that. */
	for (i = 1; i < count; i++)
		CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[i], 0), heap_ga(&r[0], 0), 8), ACP_ST_OK);
}

static volatile uint64_t *word(struct rank *rank, unsigned int i)
{
	return (volatile uint64_t *)rank->heap + i;
}

static uint64_t at(struct rank *rank, unsigned int i)
{
	return heap_ga(rank, 8 * i);
}

/* Return an address in an unregistered region. */
static uint64_t nowhere(struct rank *rank)
{
	return rank_ga(&r[0], rank->join.rank, ACP_STAG_USER + 7, 0);
}

static uint64_t put(struct rank *rank, uint64_t dst, uint64_t src, uint64_t size, uint64_t order)
{
	struct acp_sqe e = { .op = ACP_OP_COPY, .dst = dst, .src = src, .size = size,
			     .order = order };

	return rank_push(rank, &e);
}

/* The flag, ordered after "order", must fail and must not be written, now or later. */
static void flag_fails(uint64_t failing, uint8_t status, uint64_t flag, volatile uint64_t *where)
{
	rank_await(&r[0], flag, PATIENCE_WORK);
	CHECK_EQ(r[0].cq->status[failing & (r[0].join.depth - 1)], status);
	CHECK_EQ(r[0].cq->status[flag & (r[0].join.depth - 1)], ACP_ST_ORDER);
	sleep_ms(20);
	CHECK_EQ(*where, 0);
}

static void ring(void)
{
	ioctl(r[0].fd, ACP_IOC_DOORBELL);
}

/* A copy to an unregistered region, then a flag: word 1 of a rank to word 2. */
static void flag_behind(struct rank *bad_dst, uint64_t bad_src, uint64_t size,
			struct rank *dst, struct rank *src)
{
	uint64_t bad, flag;

	*word(src, 1) = 1;
	bad = put(&r[0], nowhere(bad_dst), bad_src, size, 0);
	flag = put(&r[0], at(dst, 2), at(src, 1), 8, bad);
	ring();
	flag_fails(bad, ACP_ST_STAG, flag, word(dst, 2));
}

TEST(A5_failure_at_the_origin_before_earlier_ones_end)
{
	uint64_t bad, flag;

	begin(2);
	*word(&r[0], 1) = 1;
	put(&r[0], at(&r[1], 100), at(&r[0], 0), LONG, 0);
	bad = put(&r[0], at(&r[1], 1), nowhere(&r[0]), 8, 0);
	flag = put(&r[0], at(&r[1], 2), at(&r[0], 1), 8, bad);
	ring();
	flag_fails(bad, ACP_ST_STAG, flag, word(&r[1], 2));
}

TEST(A5_failure_far_ahead_of_the_dependent)
{
	uint64_t bad, flag;

	begin(2);
	*word(&r[0], 1) = 1;
	bad = put(&r[0], nowhere(&r[1]), at(&r[0], 1), 8, 0);
	put(&r[0], at(&r[1], 100), at(&r[0], 0), LONG, 0);
	flag = put(&r[0], at(&r[1], 2), at(&r[0], 1), 8, bad + 1);
	ring();
	flag_fails(bad, ACP_ST_STAG, flag, word(&r[1], 2));
}

/*
 * A copy of more frames than the receiver remembers a failure for: the origin stops sending its
 * data when it learns of the failure.
 */
TEST(A5_failure_while_a_long_dependent_is_sent)
{
	uint64_t bad, copy;
	char *there;
	unsigned int i;

	begin(2);
	there = r[1].heap;
	fill(r[0].heap + 64, 3 * LONG, 5);
	nodes_impair_all(&n, "delay 3ms");	/* the failure is known after the first pieces */
	for (i = 0; i < 3; i++) {
		memset(there, 0, 4 * LONG);
		bad = put(&r[0], nowhere(&r[1]), at(&r[0], 1), 8, 0);
		copy = put(&r[0], at(&r[1], 8), at(&r[0], 8), 3 * LONG, bad);
		ring();
		flag_fails(bad, ACP_ST_STAG, copy, word(&r[1], 8));
		CHECK(!there[0] && !memcmp(there, there + 1, 4 * LONG - 1));
	}
}

TEST(A5_failure_of_a_long_copy_within_another_node)
{
	begin(2);
	flag_behind(&r[1], at(&r[1], 1000), 100000, &r[1], &r[0]);
}

TEST(A5_failure_at_a_third_node)
{
	begin(3);
	flag_behind(&r[2], at(&r[1], 1), 8, &r[2], &r[1]);
}

TEST(A5_failure_where_a_result_comes_home)
{
	begin(2);
	flag_behind(&r[0], at(&r[1], 1), 8, &r[0], &r[1]);
}

/* Put, gather locally by a long copy, put the gathered data. */
TEST(N3_put_of_what_a_long_copy_here_gathers)
{
	uint64_t last = 0;
	unsigned int i;

	begin(2);
	for (i = 1; i <= 20; i++) {
		fill(r[0].heap, LONG, i);
		put(&r[0], at(&r[1], 0), heap_ga(&r[0], 3 * LONG), 8, 0);
		last = put(&r[0], heap_ga(&r[0], LONG), heap_ga(&r[0], 0), LONG, 0);
		last = put(&r[0], heap_ga(&r[1], LONG), heap_ga(&r[0], LONG), LONG, last);
		ring();
		CHECK_EQ(rank_await(&r[0], last, PATIENCE_WORK), ACP_ST_OK);
		CHECK(filled(r[1].heap + LONG, LONG, i));
	}
}

/* Commands delegated to node 1 reach memory of node 2 in the requested order. */
TEST(N3_chain_through_three_nodes)
{
	uint64_t last = 0;
	unsigned int i;

	begin(3);
	nodes_impair_all(&n, "loss 2% delay 1ms 1ms");
	for (i = 1; i <= 50; i++) {
		*word(&r[0], 1) = i;
		last = put(&r[0], at(&r[1], 2), at(&r[0], 1), 8, 0);
		last = put(&r[0], at(&r[2], 3), at(&r[1], 2), 8, last);
		last = put(&r[0], at(&r[1], 4), at(&r[2], 3), 8, last);
		last = put(&r[0], at(&r[0], 5), at(&r[1], 4), 8, last);
		ring();
		CHECK_EQ(rank_await(&r[0], last, PATIENCE_WORK), ACP_ST_OK);
		CHECK_EQ(*word(&r[0], 5), i);
	}
}

/* More gets in flight, in both directions, than a node answers at once. */
TEST_LONG(A2_gets_in_both_directions_beyond_the_limit, PATIENCE_LONG_TEST)
{
	const struct acp_join wish = { .heap_size = LONG / 4, .depth = 1024 };
	static struct rank many[16];	/* eight on each node */
	unsigned int i, k;

	nodes_open(&n, 2, 1, false);
	nodes_ranks_like(&n, many, 16, &wish);
	for (k = 0; k < (test_short() ? 256 : 512); k++) {
		for (i = 0; i < 16; i++) {
			struct rank *me = &many[i], *other = &many[(i + 8) % 16];

			put(me, heap_ga(me, 16384 + 256 * k), heap_ga(other, 8 * k), 200, 0);
		}
	}
	for (i = 0; i < 16; i++)
		ioctl(many[i].fd, ACP_IOC_DOORBELL);
	for (i = 0; i < 16; i++)
		CHECK_EQ(rank_await(&many[i], many[i].last, 4 * PATIENCE_WORK), ACP_ST_OK);
	CHECK_EQ(nodes_counters(&n, "flows_failed"), 0);
	CHECK_EQ(nodes_counters(&n, "drop_busy"), 0);
}

static void *sync_rank(void *arg)
{
	struct acp_sync s = { .size = sizeof(s), .timeout_ns = PATIENCE_WORK };
	struct rank *rank = arg;

	return (void *)(long)(ioctl(rank->fd, ACP_IOC_SYNC, &s) ? errno : 0);
}

/* Two ranks wait in the barrier for a third one, whose node is gone: they detect it in time. */
TEST(P1_barrier_notices_a_node_that_is_gone)
{
	const struct acp_join wish = { .timeout_ms = 1500, .open_timeout_ms = 1500 };
	pthread_t thread[2];
	struct patience p;
	uint32_t i;
	void *err;

	nodes_open(&n, 3, 1, false);
	nodes_ranks_like(&n, r, 3, &wish);
	nodes_run(&n, 2, "ip link set eth0 down");
	p = patience_begin(PATIENCE_SOON);
	for (i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, sync_rank, &r[i]);
	for (i = 0; i < 2; i++) {
		pthread_join(thread[i], &err);
		CHECK_EQ((long)err, EPIPE);
	}
	CHECK(!patience_over(&p));
}

#define LEAVING	5		/* ranks on a node; the first LEAVING - 1 leave */
#define GETS	256		/* in flight, as many as a rank may have */

/*
 * What ranks expected of another node when they left is expected no more: else nobody on their node
 * could have anything executed there.
 */
TEST(P1_what_ranks_expected_that_leave_does_not_hold_back_others)
{
	static struct rank all[2 * LEAVING];
	struct rank *stays = &all[LEAVING - 1], *other = &all[LEAVING];
	struct patience p = patience_begin(PATIENCE_WORK);
	const struct acp_join wish = { .heap_size = 65536, .depth = 1024 };
	uint32_t i, k;

	nodes_open(&n, 2, 1, false);
	nodes_ranks_like(&n, all, 2 * LEAVING, &wish);
	r[0] = *stays;
	CHECK_EQ(rank_do_copy(stays, heap_ga(stays, 0), heap_ga(other, 0), 8), ACP_ST_OK);
	nodes_impair(&n, 0, "loss 100%");
	for (i = 0; i < LEAVING - 1; i++) {
		for (k = 0; k < GETS; k++)
			put(&all[i], heap_ga(&all[i], 8 * k), heap_ga(other, 0), 8, 0);
		ioctl(all[i].fd, ACP_IOC_DOORBELL);
	}
	while (nodes_counter(&n, 0, "commands") < (LEAVING - 1) * GETS) {
		CHECK(!patience_over(&p));
		sleep_ms(1);
	}
	for (i = 0; i < LEAVING - 1; i++)
		rank_close(&all[i]);
	nodes_impair(&n, 0, "");
	CHECK_EQ(rank_do_copy(stays, heap_ga(stays, 0), heap_ga(other, 0), 8), ACP_ST_OK);
}
