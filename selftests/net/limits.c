// SPDX-License-Identifier: MIT
/* selftest: cpus=2 */
/* Limits set by an administrator, between nodes and with the library. */
#include "../dev/isolated.h"

#include <pthread.h>

#include "members.h"

static struct nodes net;
static struct rank r[3];

/*
 * Three nodes with a rank each and a timeout of three seconds. Barriers use node 0, where no rank
 * has joined: only messages between the others count.
 */
static void begin(void)
{
	const struct acp_join wish = { .timeout_ms = 3000, .open_timeout_ms = 3000 };
	uint32_t i;

	nodes_open(&net, 4, 1, false);
	for (i = 0; i < 3; i++)
		nodes_join_like(&net, &r[i], i + 1, 4, &wish);
}

/* Set a limit on the node of r[i]. */
static void set(uint32_t i, const char *name, unsigned long value)
{
	nodes_enter(&net, i + 1);
	limit_set(name, value);
	nodes_leave(&net);
}

static long long limited(uint32_t i)
{
	return nodes_counter(&net, i + 1, "limit_peers");
}

static int put(int from, int to)
{
	return rank_do_copy(&r[from], heap_ga(&r[to], 64), heap_ga(&r[from], 0), 64);
}

TEST(K1_job_peers_limit)
{
	begin();
	set(0, "job_peers", 1);
	CHECK_EQ(put(0, 1), ACP_ST_OK);
	CHECK_EQ(limited(0), 0);
	CHECK_EQ(put(0, 2), ACP_ST_NOMEM);
	CHECK_EQ(limited(0), 1);
	CHECK_EQ(put(1, 0), ACP_ST_OK);
	CHECK_EQ(put(1, 2), ACP_ST_OK);
	set(0, "job_peers", 0);		/* the existing flow stays */
	CHECK_EQ(put(0, 1), ACP_ST_OK);
	CHECK_EQ(put(0, 2), ACP_ST_NOMEM);
	set(0, "job_peers", 2);
	CHECK_EQ(put(0, 2), ACP_ST_OK);
	CHECK_EQ(put(2, 0), ACP_ST_OK);
	CHECK_EQ(limited(0), 2);
	CHECK_EQ(limited(1), 0);
}

/* A rank that accesses a node at its limit of flows gets no answer until one is free. */
TEST(K1_job_peers_limit_at_the_target)
{
	begin();
	set(0, "job_peers", 1);
	CHECK_EQ(put(1, 0), ACP_ST_OK);
	CHECK_EQ(put(2, 0), ACP_ST_TIMEOUT);
	CHECK(limited(0) > 0);
	CHECK_EQ(put(1, 0), ACP_ST_OK);
	set(0, "job_peers", 2);
	CHECK_EQ(put(2, 0), ACP_ST_OK);
	CHECK_EQ(put(0, 2), ACP_ST_OK);
}

/* A node that executes a command of another one, with the result at a third one. */
TEST(K1_job_peers_limit_of_a_delegate)
{
	begin();
	set(1, "job_peers", 1);
	CHECK_EQ(put(0, 1), ACP_ST_OK);
	CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[2], 0), heap_ga(&r[1], 0), 64), ACP_ST_NOMEM);
	CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[0], 0), heap_ga(&r[1], 0), 64), ACP_ST_OK);
	set(1, "job_peers", 2);
	CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[2], 0), heap_ga(&r[1], 0), 64), ACP_ST_OK);
}

/* Each job is counted separately. */
TEST(K1_job_peers_limit_of_two_jobs)
{
	struct rank other[2];
	struct setup s;
	int i;

	begin();
	set(0, "job_peers", 1);
	CHECK_EQ(put(0, 1), ACP_ST_OK);
	CHECK_EQ(put(0, 2), ACP_ST_NOMEM);
	for (i = 0; i < 2; i++) {
		nodes_setup(&net, &s, i ? 3 : 1, 4);
		s.join.job++;
		nodes_join(&net, &other[i], &s);
	}
	CHECK_EQ(rank_do_copy(&other[0], heap_ga(&other[1], 0), heap_ga(&other[0], 0), 64),
		 ACP_ST_OK);
}

/* ---- Two CPUs that create the same flows ---- */

#define CROWD		17	/* nodes, two ranks on each; those of node 4 have joined */
#define SOURCE		4	/* of its neighbours in the barrier tree, only node 0 is present */
#define TARGETS		(CROWD - 2)

static struct rank pair[2];
static uint32_t turn[2];

static uint32_t target(uint32_t i)
{
	return i + (i + 1 >= SOURCE ? 2 : 1);
}

/* Both ring the doorbell for the same target at the same time. */
static void *put_to_all(void *arg)
{
	uint32_t me = arg != NULL, i;
	struct rank *from = &pair[me];

	stay_on((int)me);
	for (i = 0; i < TARGETS; i++) {
		__atomic_store_n(&turn[me], i + 1, __ATOMIC_SEQ_CST);
		while (__atomic_load_n(&turn[!me], __ATOMIC_SEQ_CST) <= i)
			;
		rank_copy(from, rank_ga(from, 2 * target(i), ACP_STAG_HEAP, 0), heap_ga(from, 0),
			  8, 0);
	}
	/* No rank is present: all fail only for that reason. */
	for (i = 1; i <= TARGETS; i++)
		CHECK_EQ(rank_await(from, from->last - TARGETS + i, PATIENCE_SOON), ACP_ST_TIMEOUT);
	return NULL;
}

TEST(K1_job_peers_limit_is_exact_on_two_processors)
{
	int rounds = test_short() ? 5 : 20, i;
	pthread_t other;
	struct setup s;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP("one processor");
	nodes_open(&net, CROWD, 1, false);
	nodes_enter(&net, SOURCE);
	limit_set("job_peers", TARGETS);
	nodes_leave(&net);
	while (rounds--) {
		for (i = 0; i < 2; i++) {
			nodes_setup(&net, &s, 2 * SOURCE + (uint32_t)i, 2 * CROWD);
			s.join.job += (uint32_t)rounds << 22;
			s.join.timeout_ms = 200;
			s.join.open_timeout_ms = 200;
			nodes_join(&net, &pair[i], &s);
		}
		turn[0] = 0;
		turn[1] = 0;
		CHECK_EQ(pthread_create(&other, NULL, put_to_all, &pair[1]), 0);
		put_to_all(NULL);
		CHECK_EQ(pthread_join(other, NULL), 0);
		rank_close(&pair[0]);
		rank_close(&pair[1]);
	}
	CHECK_EQ(nodes_counter(&net, SOURCE, "limit_peers"), 0);
}

/* ---- Messages of the library ---- */

static struct members m;

/* Neither the start of a job nor its barriers count for job_peers. */
static void rendezvous(void)
{
	member_init();
	CHECK_EQ(acp_sync(), 0);
	CHECK_EQ(acp_sync(), 0);
	CHECK_EQ(acp_finalize(), 0);
}

TEST(K1_job_peers_limit_leaves_barriers_alone)
{
	uint32_t i;

	members_open(&m, 7, 1);
	setenv("ACP_INIT_TIMEOUT", "20000", 1);
	for (i = 0; i < 7; i++)
		nodes_run(&m.nodes, i, "echo 0 >/proc/sys/net/acp/job_peers");
	members_start_all(&m, rendezvous);
	members_expect(&m, 0);
	CHECK_EQ(nodes_counters(&m.nodes, "limit_peers"), 0);
}

static void fail_to_init(void)
{
	CHECK_EQ(acp_init(NULL, NULL), -1);
}

/* A single rank reaches a limit, and its message names it. */
static void limit_is_named(const char *name, unsigned int value, void (*body)(void))
{
	char said[40];

	members_open(&m, 1, 1);
	nodes_run(&m.nodes, 0, "echo %u >/proc/sys/net/acp/%s", value, name);
	members_start_all(&m, body);
	members_expect(&m, 0);
	snprintf(said, sizeof(said), "net.acp.%s", name);
	CHECK(members_said(&m, 0, said));
}

TEST(K1_limit_of_ranks_is_named)
{
	limit_is_named("user_ranks", 0, fail_to_init);
}

TEST(K1_off_switch_is_named)
{
	limit_is_named("enable", 0, fail_to_init);
}

static void register_too_many(void)
{
	static char a[100], b[100], c[100];
	acp_atkey_t key[2];
	int i;

	member_init();
	key[0] = acp_register_memory(a, sizeof(a), 0);
	key[1] = acp_register_memory(b, sizeof(b), 0);
	CHECK(key[0] != ACP_ATKEY_NULL && key[1] != ACP_ATKEY_NULL);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(acp_register_memory(c, sizeof(c), 0), ACP_ATKEY_NULL);
		CHECK_EQ(errno, EDQUOT);
	}
	CHECK_EQ(acp_unregister_memory(key[1]), 0);
	CHECK(acp_register_memory(c, sizeof(c), 0) != ACP_ATKEY_NULL);
	CHECK_EQ(acp_finalize(), 0);
}

TEST(M4_limit_of_regions_is_named)
{
	limit_is_named("user_regions", 2, register_too_many);
}

/* At the limit of jobs, one may run after the other, and be restarted. */
static void twice(void)
{
	member_init();
	CHECK_EQ(acp_finalize(), 0);
	member_init();
	CHECK_EQ(acp_reset(acp_rank()), 0);
	CHECK_EQ(acp_finalize(), 0);
}

TEST(K1_limit_of_jobs_is_waited_for)
{
	members_open(&m, 2, 1);
	nodes_run(&m.nodes, 0, "echo 1 >/proc/sys/net/acp/user_jobs");
	nodes_run(&m.nodes, 1, "echo 1 >/proc/sys/net/acp/jobs");
	members_start_all(&m, twice);
	members_expect(&m, 0);
}
