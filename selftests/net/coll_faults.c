// SPDX-License-Identifier: MIT
/* selftest: gate=uml */
/*
 * Collectives when members are late, stopped, killed, or ask for something else: nobody waits for
 * ever, all that are left learn which rank was lost, and other groups go on.
 */
#include "coll_all.h"

#include <signal.h>
#include <unistd.h>

#define ROUNDS	8			/* until which all have learnt of a loss */

/* ---- Members that are late, or stopped ---- */

static void late(void)
{
	acpx_group_t group;
	acpx_coll_t coll;
	size_t i;

	begin();
	group = world();
	for (i = 0; i < ALL; i++) {
		CHECK_EQ(all[i](group, &coll), 0);
		if (acp_rank() == (int)i % RANKS)
			sleep_ms(100);
		CHECK_EQ(acpx_coll_start(coll), 0);
		while (!acpx_coll_test(coll))
			CHECK(acpx_coll_wait(coll, 1000000) != -EBUSY);
		CHECK_EQ(acpx_coll_wait(coll, 0), 0);
		CHECK_EQ(acpx_coll_failed_rank(coll), -ENOENT);
		CHECK_EQ(acpx_coll_free(coll), 0);
	}
	CHECK_EQ(acpx_barrier(group), 0);
	CHECK_EQ(acpx_coll_barrier_create(group, &coll), 0);
	if (acp_rank()) {
		CHECK_EQ(acpx_coll_start(coll), 0);
		CHECK_EQ(acpx_coll_start(coll), -EBUSY);
		CHECK_EQ(acpx_coll_wait(coll, 1000000), -ETIMEDOUT);
		CHECK_EQ(acpx_coll_free(coll), -EBUSY);
	}
	CHECK_EQ(acp_sync(), 0);
	if (!acp_rank())
		CHECK_EQ(acpx_coll_start(coll), 0);
	CHECK_EQ(acpx_coll_wait(coll, ACPX_FOREVER), 0);
	CHECK_EQ(acpx_coll_free(coll), 0);
	CHECK_EQ(acpx_group_free(group), 0);
	end();
}

TEST(late_members_are_waited_for)
{
	members_run(RANKS, PER_NODE, late);
}

static int stopped;

/* Members 1 and 0 have children. The others end their rounds although that one is stopped. */
static void stop(void)
{
	acpx_coll_t colls[ALL];
	size_t i;

	begin();
	for (i = 0; i < ALL; i++)
		CHECK_EQ(all[i](world(), &colls[i]), 0);
	CHECK_EQ(acp_sync(), 0);
	for (i = 0; i < ALL; i++)
		CHECK_EQ(acpx_coll_start(colls[i]), 0);
	if (acp_rank() == stopped)
		raise(SIGSTOP);
	for (i = 0; i < ALL; i++)
		CHECK_EQ(acpx_coll_wait(colls[i], ACPX_FOREVER), 0);
}

TEST(P1_a_member_that_is_stopped_holds_up_nobody)
{
	struct members m;
	int r;

	for (stopped = 0; stopped < 2; stopped++) {
		members_open(&m, RANKS, PER_NODE);
		members_start_all(&m, stop);
		for (r = 0; r < RANKS; r++)
			if (r != stopped)
				CHECK_EQ(members_wait(&m, r), 0);
		kill(m.pid[stopped], SIGCONT);
		CHECK_EQ(members_wait(&m, stopped), 0);
	}
}

/* ---- Members that are lost ---- */

enum when { BEFORE, DURING, AFTER };

static int mortal;
static enum when when;
static create_t *tried;

/* One more round. Returns 0 or the error of it. */
static int go(acpx_coll_t coll, int round)
{
	const bool dies = acp_rank() == mortal && round == 3;
	int error;

	if (dies && when == BEFORE)
		kill(getpid(), SIGKILL);
	error = acpx_coll_start(coll);
	if (dies && when == DURING)
		kill(getpid(), SIGKILL);
	if (!error)
		error = acpx_coll_wait(coll, ACPX_FOREVER);
	if (dies && when == AFTER)
		kill(getpid(), SIGKILL);
	return error;
}

/* All that are left end with an error; another group goes on meanwhile, and afterwards. */
static void survive(void)
{
	acpx_group_t group, rest;
	acpx_coll_t coll, other = NULL;
	int round, error = 0;

	begin();
	group = world();
	rest = all_but(mortal);
	CHECK_EQ(tried(group, &coll), 0);
	if (acp_rank() != mortal)
		CHECK_EQ(allgather(rest, &other), 0);
	for (round = 1; round < ROUNDS; round++) {
		if (other)
			CHECK_EQ(acpx_coll_start(other), 0);
		error = error ? error : go(coll, round);
		if (other)
			CHECK_EQ(acpx_coll_wait(other, ACPX_FOREVER), 0);
	}
	if (!is_loss(error))
		FAIL("rank %d: error %d", acp_rank(), error);
	CHECK_EQ(acpx_coll_test(coll), error);
	CHECK_EQ(acpx_coll_wait(coll, 0), error);
	CHECK_EQ(acpx_coll_start(coll), error);
	CHECK_EQ(acpx_coll_failed_rank(coll), mortal);
	CHECK_EQ(acpx_coll_free(coll), 0);
	CHECK_EQ(acpx_coll_free(other), 0);
	CHECK_EQ(acpx_barrier(rest), 0);
	CHECK_EQ(acpx_allreduce(rest, dst_ga, src_ga, 5, ACPX_SUM, ACPX_UINT64), 0);
	CHECK_EQ(acpx_group_free(rest), 0);
	CHECK_EQ(acpx_group_free(group), 0);
}

/* Each collective is a job of its own, on the same nodes. */
static void lose(enum when then, int first, int step)
{
	struct members m;
	char job[12];
	int i, r;

	when = then;
	members_open(&m, RANKS, PER_NODE);
	for (i = 0; i < (int)ALL; i++) {
		mortal = (i * step + first) % RANKS;
		tried = all[i];
		snprintf(job, sizeof(job), "%d", i + 1);
		setenv("ACP_JOB", job, 1);
		members_start_all(&m, survive);
		for (r = 0; r < RANKS; r++)
			CHECK_EQ(members_wait(&m, r), r == mortal ? DIED - SIGKILL : 0);
	}
}

TEST_LONG(P1_a_member_is_killed_before_its_part, PATIENCE_LONG_TEST)
{
	lose(BEFORE, 1, 3);
}

TEST_LONG(P1_a_member_is_killed_during_its_part, PATIENCE_LONG_TEST)
{
	lose(DURING, 2, 5);
}

TEST_LONG(P1_a_member_is_killed_after_its_part, PATIENCE_LONG_TEST)
{
	lose(AFTER, 0, 7);
}

static unsigned int *begun;		/* members that have the collective; shared by all */

/* Rounds until an error, which also those on the silent node get. */
static void fall_silent(void)
{
	acpx_coll_t coll;
	int error = 0;

	begin();
	CHECK_EQ(tried(world(), &coll), 0);
	__atomic_add_fetch(begun, 1, __ATOMIC_RELAXED);
	while (!error) {
		error = acpx_coll_start(coll);
		if (!error)
			error = acpx_coll_wait(coll, ACPX_FOREVER);
	}
	CHECK(is_loss(error));
	CHECK(acpx_coll_failed_rank(coll) >= 0);
	CHECK_EQ(acpx_coll_free(coll), 0);
}

static void await_begun(void)
{
	struct patience p = patience_begin(PATIENCE_WORK);

	while (__atomic_load_n(begun, __ATOMIC_RELAXED) < RANKS) {
		CHECK(!patience_over(&p));
		sleep_ms(10);
	}
}

TEST_LONG(P3_a_node_falls_silent, PATIENCE_LONG_TEST)
{
	create_t *const which[] = { barrier, allreduce, alltoall };
	struct members m;
	size_t i;

	setenv("ACP_TIMEOUT", "3000", 1);
	begun = mmap(NULL, sizeof(*begun), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	CHECK(begun != MAP_FAILED);
	for (i = 0; i < 3; i++) {
		*begun = 0;
		tried = which[i];
		members_open(&m, RANKS, PER_NODE);
		members_start_all(&m, fall_silent);
		await_begun();
		nodes_impair(&m.nodes, 2, "loss 100%");
		members_expect(&m, 0);
	}
}

/* ---- Members that ask for something else ---- */

static void disagree(void)
{
	const int odd = acp_rank() == 3;
	const struct acpx_block blocks[RANKS] = { { 0, 8 }, { 8, 8 }, { 16, 8 }, { 24, 8 } };
	struct acpx_neighbour list[] = { { -1, { 0, 8 }, { 0, 8 } } };
	acpx_coll_t coll = NULL;
	acpx_group_t group = world();

	CHECK_EQ(acpx_coll_bcast_create(group, 0, dst_ga, odd ? 8 : 16, &coll), -EPROTO);
	CHECK_EQ(acpx_coll_bcast_create(group, odd, dst_ga, 8, &coll), -EPROTO);
	CHECK_EQ(odd ? acpx_coll_barrier_create(group, &coll) :
		 acpx_coll_bcast_create(group, 0, dst_ga, 8, &coll), -EPROTO);
	CHECK_EQ(acpx_coll_allreduce_create(group, dst_ga, src_ga, 4, odd ? ACPX_MAX : ACPX_MIN,
					    ACPX_INT32, &coll), -EPROTO);
	CHECK_EQ(acpx_coll_allreduce_create(group, dst_ga, src_ga, 4, ACPX_MIN,
					    odd ? ACPX_INT32 : ACPX_UINT32, &coll), -EPROTO);
	CHECK_EQ(acpx_coll_allreduce_create(group, dst_ga, src_ga, 4, ACPX_XOR,
					    odd ? ACPX_FLOAT : ACPX_INT32, &coll), -EINVAL);
	CHECK_EQ(acpx_coll_bcast_create(group, 0, odd ? dst_ga + ROOM : dst_ga, 16, &coll),
		 -EFAULT);
	CHECK_EQ(acpx_coll_bcast_create(group, 0, odd ? member_at(0, 0) : dst_ga, 16, &coll),
		 -EINVAL);
	CHECK_EQ(acpx_coll_bcast_create(group, RANKS, dst_ga, 16, &coll), -EINVAL);
	CHECK_EQ(acpx_coll_gather_create(group, 0, dst_ga, src_ga, SIZE_MAX / 2, &coll), -EINVAL);
	CHECK_EQ(acpx_coll_gatherv_create(group, 1, dst_ga, blocks, src_ga, blocks[acp_rank()].size
					  + (size_t)odd, &coll), -EPROTO);
	CHECK_EQ(acpx_coll_allgatherv_create(group, dst_ga, odd ? NULL : blocks, src_ga, &coll),
		 -EINVAL);
	list[0].member = odd ? 0 : -1;
	CHECK_EQ(acpx_coll_neighbours_create(group, dst_ga, src_ga, list, 1, &coll), -EPROTO);
	CHECK(!coll);
	CHECK_EQ(acpx_coll_barrier_create(group, NULL), -EINVAL);
	CHECK_EQ(acpx_coll_barrier_create(NULL, &coll), -EINVAL);
	CHECK_EQ(acpx_barrier(group), 0);
	CHECK_EQ(acpx_group_free(group), 0);
}

static void mistakes(void)
{
	begin();
	disagree();
	CHECK_EQ(acpx_coll_start(NULL), -EINVAL);
	CHECK_EQ(acpx_coll_test(NULL), -EINVAL);
	CHECK_EQ(acpx_coll_wait(NULL, 0), -EINVAL);
	CHECK_EQ(acpx_coll_free(NULL), -EINVAL);
	CHECK_EQ(acpx_coll_failed_rank(NULL), -EINVAL);
	CHECK_EQ(acpx_coll_describe(NULL, NULL, 0), -EINVAL);
	end();
}

TEST(members_that_disagree_all_get_an_error)
{
	members_run(RANKS, PER_NODE, mistakes);
}

/* Each of three groups of two has a member that creates for another one first. */
static void circle(void)
{
	int ranks[2] = { acp_rank(), (acp_rank() + 1) % 3 };
	acpx_group_t group;
	acpx_coll_t coll;
	int error;

	member_init();
	ranks[0] = acp_rank();
	ranks[1] = (acp_rank() + 1) % 3;
	CHECK_EQ(acpx_group_list(ranks, 2, &group), 0);
	error = acpx_coll_barrier_create(group, &coll);
	if (error != -EDEADLK)
		FAIL("rank %d: %d", acp_rank(), error);
	CHECK_EQ(acpx_group_free(group), 0);
	CHECK_EQ(acp_sync(), 0);
	CHECK_EQ(acp_finalize(), 0);
}

TEST(members_that_create_in_a_circle_get_an_error)
{
	setenv("ACP_TIMEOUT", "3000", 1);
	members_run(3, 1, circle);
}

/* ---- The end ---- */

/* All but one have started a barrier, and nobody waits for it. */
static void leave(void)
{
	acpx_coll_t coll, ended;
	int rank;

	begin();
	rank = acp_rank();
	CHECK_EQ(barrier(world(), &ended), 0);
	CHECK_EQ(barrier(world(), &coll), 0);
	CHECK_EQ(acpx_coll_start(ended), 0);
	if (acp_rank() != 2)
		CHECK_EQ(acpx_coll_start(coll), 0);
	CHECK_EQ(acp_finalize(), 0);
	CHECK_EQ(acpx_coll_start(coll), -ENOTCONN);
	if (rank != 2 && acpx_coll_test(coll) >= 0)
		FAIL("rank %d: %d", rank, acpx_coll_test(coll));
	CHECK_EQ(acpx_coll_free(coll), 0);
	CHECK_EQ(acpx_coll_free(ended), 0);
}

TEST(finalize_ends_what_is_active)
{
	setenv("ACP_TIMEOUT", "5000", 1);
	members_run(RANKS, PER_NODE, leave);
}
