// SPDX-License-Identifier: MIT
/* selftest: gate=uml */
/*
 * N15: many nodes put to one node concurrently, through a link that is slower than their total
 * rate; and a node with a slow link. No node starves, queues are bounded, and uninvolved nodes are
 * not affected.
 */
#include "../dev/isolated.h"

#include "nodes.h"

#define SIZE	8000UL		/* bytes of a put */
#define AT_ONCE	16		/* puts in flight per sender */

static struct nodes n;
static struct rank r[NODES_MAX];
static struct memory sink[NODES_MAX];	/* memory of node 0, per sender */

/* Node 0 has an area for each other node. */
static void begin(uint32_t count)
{
	const struct acp_join wish = { .timeout_ms = 30000, .open_timeout_ms = 30000 };
	uint32_t i;

	nodes_open(&n, count, 1, false);
	nodes_ranks_like(&n, r, count, &wish);
	for (i = 1; i < count; i++) {
		memory_open(&r[0], &sink[i], SIZE);
		fill(r[i].heap, SIZE, i);
	}
	/* Open all flows. */
	for (i = 1; i < count; i++)
		CHECK_EQ(rank_do_copy(&r[i], memory_ga(&sink[i], 0), heap_ga(&r[i], 0), SIZE),
			 ACP_ST_OK);
}

/* Fill up all senders to that many puts in flight, in fair turns. */
static void push(void)
{
	uint32_t i, k;

	for (k = 0; k < AT_ONCE; k++)
		for (i = 1; i < n.count; i++)
			if (r[i].last - rank_completed(&r[i]) < AT_ONCE)
				rank_copy(&r[i], memory_ga(&sink[i], 0), heap_ga(&r[i], 0), SIZE,
					  0);
	usleep(500);
}

/* Run until one of them has completed "enough" more; add the number of each to "done". */
static void race(uint64_t enough, uint64_t done[])
{
	uint64_t before[NODES_MAX], now;
	bool over = false;
	uint32_t i;

	for (i = 1; i < n.count; i++)
		before[i] = rank_completed(&r[i]);
	while (!over) {
		push();
		for (i = 1; i < n.count; i++)
			over |= rank_completed(&r[i]) - before[i] >= enough;
	}
	printf("# puts done:");
	for (i = 1; i < n.count; i++) {
		now = rank_completed(&r[i]);
		done[i] += now - before[i];
		printf(" %llu", (unsigned long long)(now - before[i]));
	}
	printf("\n");
}

/* The first puts find the queue empty, and do not count. */
static void warm_up(void)
{
	uint64_t before[NODES_MAX];
	uint32_t i, slow;

	for (i = 1; i < n.count; i++)
		before[i] = rank_completed(&r[i]);
	do {
		push();
		for (slow = 0, i = 1; i < n.count; i++)
			slow += rank_completed(&r[i]) - before[i] < AT_ONCE;
	} while (slow);
}

/* Return the variance of the shares, in percent of their mean. *low: the smallest share. */
static uint64_t variance(const uint64_t done[], uint64_t *low)
{
	uint64_t sum = 0, squares = 0, high = 0, share;
	uint32_t i, senders = n.count - 1;

	*low = ~0ULL;
	for (i = 1; i <= senders; i++)
		sum += done[i];
	for (i = 1; i <= senders; i++) {
		share = done[i] * 100 * senders / sum;
		squares += (share - 100) * (share - 100);
		*low = share < *low ? share : *low;
		high = share > high ? share : high;
	}
	printf("# %u senders, shares of %llu to %llu %% of the mean, variance %llu\n", senders,
	       (unsigned long long)*low, (unsigned long long)high,
	       (unsigned long long)squares / senders);
	return squares / senders;
}

/*
 * Fair within "apart" percent (standard deviation of shares), and none starves. In a short time one
 * sender may be luckier, for example when the machine stops: luck does not last, so only what is
 * done after it counts.
 */
static void judge(uint64_t done[], uint32_t apart)
{
	uint64_t low;
	int more = 4;

	while (variance(done, &low) > apart * apart || low < 50) {
		CHECK(more--);
		memset(done, 0, NODES_MAX * sizeof(*done));
		race(test_short() ? 100 : 150, done);
	}
}

static void incast(uint32_t count, uint32_t queue)
{
	long long frames, again;
	uint64_t done[NODES_MAX] = { 0 };
	uint32_t i, rounds = 2;
	long slab;

	begin(count);
	slab = meminfo_kib("Slab");
	nodes_run(&n, NODES_HUB, "tc qdisc add dev port0.0 root netem rate %ukbit limit %u",
		  test_short() ? 10000 : 20000, queue);
	frames = nodes_counters(&n, "tx_frames");
	again = nodes_counters(&n, "tx_retransmits");
	warm_up();
	while (rounds--)
		race(test_short() ? 100 : 150, done);
	judge(done, 20);
	for (i = 1; i < count; i++)
		CHECK_EQ(rank_await(&r[i], r[i].last, 2 * PATIENCE_WORK), ACP_ST_OK);
	frames = nodes_counters(&n, "tx_frames") - frames;
	again = nodes_counters(&n, "tx_retransmits") - again;
	printf("# %lld frames, of which %lld again; %ld KiB more in slabs\n", frames, again,
	       meminfo_kib("Slab") - slab);
	CHECK(again < frames / 2);	/* no collapse: most transmissions are new data */
	CHECK(meminfo_kib("Slab") - slab < 64 * 1024);
	CHECK_EQ(nodes_counters(&n, "flows_failed"), 0);
	CHECK_EQ(nodes_counters(&n, "commands_failed"), 0);
	for (i = 1; i < count; i++)
		CHECK(filled(sink[i].addr, SIZE, i));
}

/*
 * The link must be slower than the machine, however slow or busy that is; otherwise the fairness of
 * the machine would be measured. The queue holds a quarter of the initial windows of all senders.
 */
TEST_LONG(N15_incast, PATIENCE_LONG_TEST)
{
	incast(test_short() ? 9 : NODES_MAX, 128);
}

/* ... a tenth. */
TEST_LONG(N15_incast_into_a_short_queue, PATIENCE_LONG_TEST)
{
	incast(test_short() ? 9 : NODES_MAX, 50);
}

/* A node with 2 Mbit/s: the ring of the sender fills up and waits, without using more memory. */
TEST(N15_slow_receiver)
{
	uint64_t i, others = 0;
	long slab;

	begin(3);
	slab = meminfo_kib("Slab");
	nodes_run(&n, NODES_HUB, "tc qdisc add dev port0.0 root tbf rate 2mbit burst 10kb "
		  "limit 100kb");
	while (r[1].last - rank_completed(&r[1]) < r[1].join.depth)
		rank_copy(&r[1], memory_ga(&sink[1], 0), heap_ga(&r[1], 0), SIZE, 0);
	/* The path from it to node 2 is not affected. */
	for (i = r[1].last; rank_completed(&r[1]) < i; others++)
		CHECK_EQ(rank_do_copy(&r[2], heap_ga(&r[1], SIZE), heap_ga(&r[2], SIZE), 100),
			 ACP_ST_OK);
	CHECK_EQ(rank_wait(&r[1], i, 0), ACP_ST_OK);
	printf("# %llu commands of others meanwhile; %lld frames again of %lld\n",
	       (unsigned long long)others, nodes_counter(&n, 1, "tx_retransmits"),
	       nodes_counter(&n, 1, "tx_frames"));
	CHECK(others > 100);
	CHECK(nodes_counter(&n, 1, "tx_retransmits") < nodes_counter(&n, 1, "tx_frames") / 2);
	CHECK(meminfo_kib("Slab") - slab < 32 * 1024);
	CHECK_EQ(nodes_counters(&n, "flows_failed"), 0);
	CHECK(filled(sink[1].addr, SIZE, 1));
}
