// SPDX-License-Identifier: MIT
/*
 * Networks with loss, duplication, reordering and corruption: every command takes effect exactly
 * once, and no flag is visible before its data.
 */
#include "../dev/isolated.h"

#include "../dev/traffic.h"
#include "nodes.h"

#define KB	1024UL

static const size_t sizes[] = { 0, 1, 8, 100, 129, 1400, 5000, 60000 };

static struct nodes n;
static struct rank r[3];
static struct traffic t;

/* Amount of traffic; 0: for networks that hardly work. */
static void traffic(uint32_t much)
{
	if (test_short() && much > 1)
		much = 1;
	if (!much) {
		traffic_random(&t, test_short() ? 1 : 2, 40, 5000);
		traffic_count(&t, 1, 10);
		traffic_flags(&t, TRAFFIC_HANDLE, 1400, 1);
		traffic_check(&t);
		return;
	}
	traffic_every_copy(&t, sizes, much > 1 ? 8 : 7);
	traffic_every_atomic(&t);
	traffic_random(&t, 3 * much, 40, 20000);
	traffic_count(&t, 1, 100 * much);
	traffic_flags(&t, TRAFFIC_HANDLE, 5000, much);
	traffic_flags(&t, TRAFFIC_CONT, 5000, much);
	traffic_flags(&t, TRAFFIC_ATOMIC, 300, much);
	traffic_check(&t);
}

static void begin_with(bool ipv6, uint32_t integrity)
{
	const struct acp_join wish = {
		.integrity = integrity, .timeout_ms = 30000, .open_timeout_ms = 30000,
	};

	nodes_open(&n, 3, 1, ipv6);
	nodes_ranks_like(&n, r, 3, &wish);
	traffic_open(&t, r, 3, 256 * KB, 0);
}

static void begin(uint32_t integrity)
{
	begin_with(false, integrity);
}

static void all_impaired(const char *netem, uint32_t much)
{
	begin(ACP_INTEGRITY_TAG);
	if (strstr(netem, "delay"))
		t.late_ms = 20;
	nodes_impair_all(&n, netem);
	traffic(much);
}

static void one_impaired(uint32_t node, const char *netem, uint32_t much)
{
	begin(ACP_INTEGRITY_TAG);
	nodes_impair(&n, node, netem);
	traffic(much);
}

/* Lost frames were retransmitted; duplicates were dropped. */
static void again_and_dropped(void)
{
	CHECK(nodes_counters(&n, "tx_retransmits") > 0);
	CHECK(nodes_counters(&n, "drop_duplicate") > 0);
	CHECK_EQ(nodes_counters(&n, "drop_bad_mac"), 0);
	CHECK_EQ(nodes_counters(&n, "flows_failed"), 0);
}

TEST(N1_loss_of_a_thousandth)
{
	all_impaired("loss 0.1%", 2);
	CHECK_EQ(nodes_counters(&n, "flows_failed"), 0);
}

TEST(N1_loss_1_percent)
{
	all_impaired("loss 1%", 3);
	CHECK(nodes_counters(&n, "tx_retransmits") > 0);
	CHECK_EQ(nodes_counters(&n, "flows_failed"), 0);
}

TEST(N1_loss_10_percent)
{
	all_impaired("loss 10%", 2);
	again_and_dropped();
}

TEST_LONG(N1_loss_50_percent, PATIENCE_LONG_TEST)
{
	all_impaired("loss 50%", 0);
	again_and_dropped();
}

/* Node 0 loses incoming frames: data to it, and acknowledgements for its own data. */
TEST(N1_loss_50_percent_from_one_node)
{
	one_impaired(0, "loss 50%", 0);
	again_and_dropped();
}

TEST(N1_loss_50_percent_to_one_node)
{
	begin(ACP_INTEGRITY_TAG);
	nodes_impair(&n, 1, "loss 50%");
	nodes_impair(&n, 2, "loss 50%");
	traffic(0);
	again_and_dropped();
}

TEST(N1_loss_in_bursts)
{
	all_impaired("loss gemodel 5% 30% 80% 0.1%", 1);
	again_and_dropped();
}

TEST(N1_loss_with_delay)
{
	all_impaired("delay 2ms loss 5%", 1);
	again_and_dropped();
}

/* Node 1 receives everything, and much of what it answers is lost. */
TEST(N1_only_acknowledgements_are_lost)
{
	uint64_t value, ticket;

	begin(ACP_INTEGRITY_TAG);
	traffic(0);
	nodes_impair(&n, 1, "loss 50%");
	for (value = 0; value < 8 || !nodes_counter(&n, 1, "drop_duplicate"); value++) {
		CHECK(value < 100);
		fill(t.memory[0].addr, 20000, value);
		ticket = rank_copy(&r[0], memory_ga(&t.memory[1], t.half),
				   memory_ga(&t.memory[0], 0), 20000, 0);
		CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_WORK), ACP_ST_OK);
		CHECK(filled(t.memory[1].addr + t.half, 20000, value));
	}
	CHECK(nodes_counter(&n, 0, "tx_retransmits") > 0);
	CHECK_EQ(nodes_counters(&n, "flows_failed"), 0);
}

/*
 * Of the very first command: its HELLOs, then its data, with no later frames that would reveal the
 * loss.
 */
TEST(N1_first_frames_lost)
{
	const struct acp_join wish = { .open_timeout_ms = 30000 };
	uint64_t ticket;

	nodes_open(&n, 2, 1, false);
	nodes_ranks_like(&n, r, 2, &wish);
	nodes_impair(&n, 0, "loss 100%");
	fill(r[0].heap, 20000, 4);
	ticket = rank_copy(&r[0], heap_ga(&r[1], 0), heap_ga(&r[0], 0), 20000, 0);
	while (nodes_counter(&n, 0, "tx_frames") < 4)
		sleep_ms(1);
	CHECK_EQ(nodes_counter(&n, 1, "rx_frames"), 0);
	nodes_impair(&n, 0, "");
	CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_WORK), ACP_ST_OK);
	CHECK(filled(r[1].heap, 20000, 4));
}

TEST(N2_duplication_1_percent)
{
	all_impaired("duplicate 1%", 4);
	CHECK(nodes_counters(&n, "drop_duplicate") > 0);
}

TEST(N2_everything_twice)
{
	all_impaired("duplicate 100%", 3);
	CHECK(nodes_counters(&n, "drop_duplicate") > 1000);
}

/*
 * Each rank adds to a word of the next one, with results at the rank after that. Half of the frames
 * are duplicated, and some of the others are lost (netem does not lose duplicated frames). Each add
 * is executed once, and each result is different.
 */
TEST(N2_atomics_through_third_nodes_twice)
{
	static char seen[3][400];
	uint32_t i, k, each = test_short() ? 50 : 400;
	uint64_t former;

	begin(ACP_INTEGRITY_TAG);
	nodes_impair_all(&n, "duplicate 50% loss 10%");
	traffic_every_atomic(&t);
	for (i = 0; i < 3; i++)
		memset(r[i].heap, 0, 8);
	for (k = 0; k < each; k++)
		for (i = 0; i < 3; i++)
			rank_atomic(&r[i], ACP_OP_ADD8, heap_ga(&r[(i + 2) % 3], 8 + 8 * k),
				    heap_ga(&r[(i + 1) % 3], 0), 1, 0, 0);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(rank_await(&r[i], r[i].last, PATIENCE_WORK), ACP_ST_OK);
		CHECK_EQ(r[i].cq->failed, 0);
	}
	for (i = 0; i < 3; i++) {
		CHECK_EQ(*(uint64_t *)r[i].heap, each);
		for (k = 0; k < each; k++) {
			former = *(uint64_t *)(r[i].heap + 8 + 8 * k);
			CHECK(former < each && !seen[i][former]);
			seen[i][former] = 1;
		}
	}
	again_and_dropped();
}

TEST(N2_duplication_and_loss)
{
	all_impaired("duplicate 50% loss 10%", 2);
	again_and_dropped();
}

TEST(N3_reordering)
{
	all_impaired("delay 1ms reorder 50% 50%", 2);
}

TEST(N3_reordering_by_jitter)
{
	all_impaired("delay 2ms 2ms", 1);
}

/* A flag that overtakes most of its data must wait for it. */
TEST(N3_flags_overtake_data)
{
	begin(ACP_INTEGRITY_TAG);
	nodes_impair_all(&n, "delay 1ms 1ms");
	traffic_flags(&t, TRAFFIC_HANDLE, 20000, 1);
	traffic_flags(&t, TRAFFIC_CONT, 20000, test_short() ? 1 : 2);
	traffic_flags(&t, TRAFFIC_ATOMIC, 20000, 1);
	nodes_impair_all(&n, "delay 1ms 1ms loss 10%");
	traffic_flags(&t, TRAFFIC_CONT, 20000, 1);
	traffic_flags(&t, TRAFFIC_HANDLE, 20000, 1);
}

TEST(N3_everything_at_once)
{
	all_impaired("delay 1ms 1ms loss 5% duplicate 5%", 1);
	again_and_dropped();
}

/*
 * Put with duplicated datagrams, up to 90 ms apart. Returns the number of datagrams with a wrong
 * tag.
 */
static long long late_duplicates(bool changes)
{
	const long long before = nodes_counters(&n, "drop_bad_mac");
	char *source = t.memory[0].addr, *target = t.memory[1].addr + t.half;
	uint32_t i;

	for (i = 0; i < 20; i++) {
		if (changes)
			fill(source, 1300, i);
		CHECK_EQ(rank_do_copy(&r[0], memory_ga(&t.memory[1], t.half),
				      memory_ga(&t.memory[0], 0), 1300), ACP_ST_OK);
		CHECK(!memcmp(target, source, 1300));
	}
	sleep_ms(200);
	CHECK(!memcmp(target, source, 1300));
	return nodes_counters(&n, "drop_bad_mac") - before;
}

/*
 * A duplicate shares the pages of the source. The owner may change these when the first one is
 * acknowledged: then the tag of the duplicate is wrong. It is dropped, and nothing is lost.
 */
TEST(N3_late_duplicate_of_a_source_that_changes)
{
	begin(ACP_INTEGRITY_TAG);
	nodes_acquaint(&n);
	nodes_impair(&n, 0, "delay 50ms 45ms duplicate 100%");
	CHECK_EQ(late_duplicates(false), 0);
	CHECK(late_duplicates(true) > 0);
	CHECK_EQ(nodes_counters(&n, "flows_failed"), 0);
}

TEST(N4_corruption)
{
	begin(ACP_INTEGRITY_CRC32C);
	nodes_acquaint(&n);
	nodes_impair_all(&n, "corrupt 5%");
	traffic(2);
	CHECK(nodes_counters(&n, "tx_retransmits") > 0);
	CHECK_EQ(nodes_counters(&n, "flows_failed"), 0);
}

TEST(N4_corruption_with_the_udp_checksum)
{
	begin(ACP_INTEGRITY_TAG);
	nodes_acquaint(&n);
	nodes_impair_all(&n, "corrupt 2%");
	traffic(2);
	CHECK(nodes_counters(&n, "tx_retransmits") > 0);
}

/*
 * A network that marks frames instead of dropping them (ECN). It drops pure acknowledgements, which
 * causes some retransmissions, but hides no mark.
 */
static void marks_are_honoured(bool ipv6)
{
	begin_with(ipv6, ACP_INTEGRITY_TAG);
	traffic(1);
	CHECK_EQ(nodes_counters(&n, "rx_marked"), 0);
	CHECK_EQ(nodes_counters(&n, "window_marks"), 0);
	nodes_impair_all(&n, "loss 10% ecn");
	traffic(2);
	CHECK(nodes_counters(&n, "rx_marked") > 100);
	CHECK(nodes_counters(&n, "window_marks") > 10);
	CHECK_EQ(nodes_counters(&n, "flows_failed"), 0);
}

TEST(ECN_marks_are_honoured)
{
	marks_are_honoured(false);
}

TEST(ECN_marks_are_honoured_ipv6)
{
	marks_are_honoured(true);
}

/* Nothing in flight, nothing expected: only the timeout of unsendable frames ends it. */
TEST(N17_route_goes_for_good)
{
	const struct acp_join wish = { .timeout_ms = 1000 };
	uint64_t ticket;

	nodes_open(&n, 3, 1, false);
	nodes_ranks_like(&n, r, 3, &wish);
	traffic_open(&t, r, 3, 256 * KB, 0);
	traffic(0);
	nodes_run(&n, 0, "ip link set eth0 down");
	ticket = rank_copy(&r[0], memory_ga(&t.memory[1], t.half), memory_ga(&t.memory[0], 0),
			   8, 0);
	CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_WORK), ACP_ST_ROUTE);
}

/* A link failure of one second is tolerated. */
TEST(N17_link_down_for_a_second)
{
	uint64_t ticket;

	begin(ACP_INTEGRITY_TAG);
	traffic(1);
	nodes_run(&n, 1, "ip link set eth0 down");
	ticket = rank_copy(&r[0], memory_ga(&t.memory[1], t.half), memory_ga(&t.memory[0], 0),
			   50000, 0);
	CHECK_EQ(rank_wait(&r[0], ticket, 1000 * MS), -1);
	nodes_run(&n, 1, "ip link set eth0 up");
	CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_SOON), ACP_ST_OK);
	CHECK(!memcmp(t.memory[1].addr + t.half, t.memory[0].addr, 50000));
	memcpy(t.model[1] + t.half, t.memory[0].addr, 50000);
	traffic(1);
}
