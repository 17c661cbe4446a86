// SPDX-License-Identifier: MIT
/* selftest: gate=6.12 kernels=6.1,6.12,rt,debug */
/*
 * Memory that the kernel allocates for flows of a user is charged to that user, and little more
 * than that.
 */
#include "../dev/isolated.h"

#include "ask.h"
#include "nodes.h"

#define JOBS	96
#define ATTEMPTS 4

static struct nodes n;
static struct rank r[ATTEMPTS * JOBS][2];

static struct ask q;
static uint32_t delegated;

static void open_at(uint32_t node)
{
	nodes_enter(&n, node);
	ask_open(&q);
	nodes_leave(&n);
}

static void note(const struct answer *flow)
{
	delegated += answer_u32(flow, ACP_NL_A_DELEGATED);
}

/* Return the number of commands that a node executes for others. */
static long long delegated_to(uint32_t node)
{
	open_at(node);
	delegated = 0;
	ask_begin(&q, ACP_NL_CMD_FLOW_GET, NLM_F_DUMP);
	CHECK(ask_dump(&q, note) > 0);
	close(q.fd);
	return delegated;
}

/* Return the KiB charged to this user in the network namespace of a node. */
static long long charged(uint32_t node)
{
	static struct answer got;

	open_at(node);
	ask_begin(&q, ACP_NL_CMD_LIMIT_GET, 0);
	ask_text(&q, ACP_NL_A_NAME, "user_memory");
	CHECK_EQ(ask_do(&q, &got), 0);
	close(q.fd);
	return (long long)answer_u64(&got, ACP_NL_A_USED);
}

/* Pages in lists of processors are neither free nor used: compaction empties these lists. */
static long taken_now(void)
{
	write_file("/proc/sys/vm/drop_caches", "3");
	write_file("/proc/sys/vm/compact_memory", "1");
	return meminfo_kib("MemTotal") - meminfo_kib("MemFree");
}

/*
 * Return the used memory of the machine in KiB, as far as one number can tell. Namespaces of
 * former tests are freed in the background: it must have stayed the same for a second.
 */
static long taken(void)
{
	long now = taken_now(), former;
	struct patience p = patience_begin(PATIENCE_SOON);
	int calm = 0;

	while (calm < 5 && !patience_over(&p)) {
		former = now;
		sleep_ms(200);
		now = taken_now();
		calm = labs(now - former) < 128 ? calm + 1 : 0;
	}
	return now;
}

/* Join further jobs: each has a rank on two nodes, and so a flow on each of them. */
static void join_jobs(uint32_t first, uint32_t end)
{
	struct setup s;
	uint32_t i, k;

	for (i = first; i < end; i++)
		for (k = 0; k < 2; k++) {
			nodes_setup(&n, &s, k, 2);
			s.join.job += i;
			s.join.heap_size = 4096;
			nodes_join(&n, &r[i][k], &s);
		}
}

static void open_flows(uint32_t first, uint32_t end)
{
	uint32_t i, k;

	for (i = first; i < end; i++)
		for (k = 0; k < 2; k++)
			CHECK_EQ(rank_do_copy(&r[i][k], heap_ga(&r[i][!k], 0),
					      heap_ga(&r[i][k], 0), 8), ACP_ST_OK);
}

/*
 * Measure flows of further jobs. False if the machine used more or less than they count: it also
 * uses and frees memory for other purposes.
 */
static bool flows_take_what_they_count(uint32_t first)
{
	long long counted, used;

	join_jobs(first, first + JOBS);
	/* The first job also allocates what is allocated once, and the pages of the processes. */
	open_flows(first, first + 1);
	counted = charged(0) + charged(1);
	used = taken();
	open_flows(first + 1, first + JOBS);
	counted = charged(0) + charged(1) - counted;
	used = taken() - used;
	printf("# %lld KiB counted, %lld KiB used by %d flows\n", counted, used, 2 * (JOBS - 1));
	CHECK(counted > 2 * (JOBS - 1) * 16);
	return used < counted + counted / 10 + 512 && counted < 2 * used;
}

/* What the machine does besides spoils single measurements, but not all of them. */
TEST(M4_flows_count_what_they_take)
{
	uint32_t i;

	nodes_open(&n, 2, 1, false);
	for (i = 0; i < ATTEMPTS; i++)
		if (flows_take_what_they_count(i * JOBS))
			return;
	FAIL("flows did not take what they count, in %d measurements", ATTEMPTS);
}

static void falls_to(uint32_t node, long long kib)
{
	struct patience p = patience_begin(PATIENCE_SOON);

	while (charged(node) > kib) {
		CHECK(!patience_over(&p));
		sleep_ms(100);
	}
}

/*
 * Commands that a node executes for another one wait for a third one, which the network has lost:
 * their memory is charged where they are executed, until the flow is idle.
 */
TEST(M4_delegated_commands_count_where_they_are_executed)
{
	const struct acp_join wish = { .timeout_ms = 8000, .depth = 256 };
	long long before, waiting = 0;
	struct rank ranks[3];
	uint32_t i;

	nodes_open(&n, 3, 1, false);
	nodes_ranks_like(&n, ranks, 3, &wish);
	CHECK_EQ(rank_do_copy(&ranks[0], heap_ga(&ranks[2], 0), heap_ga(&ranks[1], 0), 8),
		 ACP_ST_OK);
	before = charged(1);
	nodes_impair(&n, 2, "loss 100%");
	for (i = 0; i < 200; i++)
		rank_copy(&ranks[0], heap_ga(&ranks[2], 0), heap_ga(&ranks[1], 0), 8, 0);
	for (i = 0; i < 100 && waiting < 200; i++) {
		sleep_ms(20);
		waiting = delegated_to(1);
	}
	printf("# %lld KiB for %lld commands\n", charged(1) - before, waiting);
	/* Each takes at least 200 bytes; some were charged before. */
	CHECK(waiting > 100);
	CHECK(charged(1) - before + 16 * 512 / 1024 >= waiting * 200 / 1024);
	for (i = 0; i < 200; i++)
		CHECK(rank_await(&ranks[0], ranks[0].last - i, PATIENCE_SOON) > 0);
	falls_to(1, before);
}

/* A node that only receives keeps no memory for the indirect copies of a peer that is idle. */
TEST(M4_landings_count_until_the_flow_is_idle)
{
	struct acp_sqe copy = { .op = ACP_OP_INDIRECT, .size = 5000 };
	struct rank ranks[2];
	long long before;

	nodes_open(&n, 2, 1, false);
	nodes_ranks(&n, ranks, 2);
	CHECK_EQ(rank_do_copy(&ranks[0], heap_ga(&ranks[1], 0), heap_ga(&ranks[0], 0), 8),
		 ACP_ST_OK);
	before = charged(1);
	*(uint64_t *)(void *)ranks[1].heap = heap_ga(&ranks[1], 64);
	copy.dst = heap_ga(&ranks[1], 0);
	copy.src = heap_ga(&ranks[0], 0);
	CHECK_EQ(rank_await(&ranks[0], rank_submit(&ranks[0], &copy), PATIENCE_SOON), ACP_ST_OK);
	CHECK(charged(1) > before);
	falls_to(1, before);
}

/* What was read of a chain is charged where it was read, until its copy has ended. */
TEST(M4_chains_count_until_their_copies_have_ended)
{
	struct acp_sqe scatter = { .op = ACP_OP_SCATTER, .size = 30000 };
	struct acp_sqe gather = { .op = ACP_OP_GATHER, .size = 30000 };
	struct acp_descriptor *d;
	struct rank ranks[2];
	long long before, most = 0;
	uint32_t i;

	nodes_open(&n, 2, 1, false);
	nodes_ranks(&n, ranks, 2);
	CHECK_EQ(rank_do_copy(&ranks[0], heap_ga(&ranks[1], 0), heap_ga(&ranks[0], 0), 8),
		 ACP_ST_OK);
	nodes_impair_all(&n, "delay 50ms 5ms");
	before = charged(1);
	d = (void *)ranks[1].heap;
	*d = (struct acp_descriptor){
		.address = heap_ga(&ranks[1], 4096), .block = 30000, .count = 1,
		.flags = ACP_CHAIN_FLAGS,
	};
	scatter.dst = heap_ga(&ranks[1], 0);
	scatter.src = heap_ga(&ranks[0], 0);
	gather.dst = heap_ga(&ranks[0], 0);
	gather.src = heap_ga(&ranks[1], 0);
	for (i = 0; i < 40; i++)
		rank_submit(&ranks[0], i & 1 ? &scatter : &gather);
	while (rank_completed(&ranks[0]) < ranks[0].last) {
		const long long now = charged(1);

		most = now > most ? now : most;
	}
	CHECK_EQ(rank_await(&ranks[0], ranks[0].last, PATIENCE_WORK), ACP_ST_OK);
	CHECK_EQ(ranks[0].cq->failed, 0);
	printf("# %lld KiB at most\n", most - before);
	CHECK(most - before >= 2 * 20);
	falls_to(1, before);
}

/* A command waits if the limit of the node that executes it is reached. */
TEST(M4_delegated_commands_wait_for_the_limit)
{
	const struct acp_join wish = { .timeout_ms = 20000 };
	long long limit, full, dropped;
	struct rank ranks[3];
	uint64_t ticket;
	uint32_t i;

	nodes_open(&n, 3, 1, false);
	nodes_ranks_like(&n, ranks, 3, &wish);
	for (i = 0; i < 9; i++)
		if (i / 3 != i % 3)
			CHECK_EQ(rank_do_copy(&ranks[i / 3], heap_ga(&ranks[i % 3], 0),
					      heap_ga(&ranks[i / 3], 0), 8), ACP_ST_OK);
	dropped = nodes_counter(&n, 1, "drop_nomem");
	full = charged(1);
	nodes_enter(&n, 1);
	limit = limit_get("user_memory");
	limit_set("user_memory", (unsigned long)full);
	nodes_leave(&n);
	ticket = rank_copy(&ranks[0], heap_ga(&ranks[2], 0), heap_ga(&ranks[1], 0), 8, 0);
	CHECK_EQ(rank_wait(&ranks[0], ticket, 500 * MS), -1);
	CHECK(nodes_counter(&n, 1, "drop_nomem") > dropped);
	nodes_enter(&n, 1);
	limit_set("user_memory", (unsigned long)limit);
	nodes_leave(&n);
	CHECK_EQ(rank_await(&ranks[0], ticket, PATIENCE_SOON), ACP_ST_OK);
}
