// SPDX-License-Identifier: MIT
/* selftest: gate=uml */
/*
 * Faults of the papers' persistent collectives: members that ask for something else, calls with
 * wrong arguments, members that are killed: nobody waits for ever, and all learn of it.
 */
#include "coll_play.h"

#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#define BUFFER	3000			/* bytes */
#define BYTES	10000			/* of a send */

/* ---- All transfers ---- */

struct transfer {
	const char *name;
	bool driven, gathers;
	int (*create)(acpx_group_t group, acpx_coll_t *coll);
	int (*send)(acp_coll_t handle, size_t offset, size_t size);
};

static int bcast_direct(acpx_group_t group, acpx_coll_t *coll)
{
	return acpx_coll_bcast_direct_create(group, dst, ROOM, 0, coll);
}

static int bcast_driven(acpx_group_t group, acpx_coll_t *coll)
{
	return acpx_coll_bcast_direct_create(group, dst, ROOM, ACPX_ROOT_DRIVEN, coll);
}

static int bcast_buffered(acpx_group_t group, acpx_coll_t *coll)
{
	return acpx_coll_bcast_buffered_create(group, BUFFER, coll);
}

static int gather_direct(acpx_group_t group, acpx_coll_t *coll)
{
	const size_t members = (size_t)acpx_group_size(group);

	return acpx_coll_allgather_direct_create(group, dst, ROOM / members * members, 0, coll);
}

static int gather_driven(acpx_group_t group, acpx_coll_t *coll)
{
	const size_t members = (size_t)acpx_group_size(group);

	return acpx_coll_allgather_direct_create(group, dst, ROOM / members * members,
						 ACPX_ROOT_DRIVEN, coll);
}

static int gather_buffered(acpx_group_t group, acpx_coll_t *coll)
{
	return acpx_coll_allgather_buffered_create(group, BUFFER, coll);
}

static int send_bcast(acp_coll_t handle, size_t offset, size_t size)
{
	return acp_send_bcast_buffered(handle, src + offset, size);
}

static int send_gather(acp_coll_t handle, size_t offset, size_t size)
{
	return acp_send_allgather_buffered(handle, src + offset, size);
}

static const struct transfer all[] = {
	{ "bcast_direct", false, false, bcast_direct, acp_send_bcast_direct },
	{ "bcast_buffered", false, false, bcast_buffered, send_bcast },
	{ "allgather_direct", false, true, gather_direct, acp_send_allgather_direct },
	{ "allgather_buffered", false, true, gather_buffered, send_gather },
	{ "bcast_driven", true, false, bcast_driven, acp_send_bcast_direct },
	{ "allgather_driven", true, true, gather_driven, acp_send_allgather_direct },
};

#define ALL	(sizeof(all) / sizeof(all[0]))

/* Does the caller send, or does it only wait? */
static bool sends(const struct transfer *t)
{
	return !t->driven || t->gathers || !acp_rank();
}

/* One more send. Returns 0 or -errno. */
static int go(const struct transfer *t, acp_coll_t coll, size_t offset, size_t size)
{
	if (sends(t) && t->send(coll, offset, size))
		return -errno;
	return acp_wait_coll(coll) == (size_t)-1 ? -errno : 0;
}

/* ---- Members that ask for something else ---- */

static const struct transfer *tried;
static int odd_rank;
static size_t odd_offset, odd_size;

/*
 * One member asks for something else in the second send: it and its neighbours in the tree notice
 * that, all others in one of the next sends.
 */
static void ask_for_other(void)
{
	acpx_group_t group;
	acpx_coll_t coll;
	int round, error;
	bool odd;

	begin();
	odd = acp_rank() == odd_rank;
	group = world();
	CHECK_EQ(tried->create(group, &coll), 0);
	error = go(tried, coll, 0, BYTES);
	CHECK_EQ(error, 0);
	error = go(tried, coll, odd ? odd_offset : 0, odd ? odd_size : BYTES);
	if (odd)
		CHECK_EQ(error, -EPROTO);
	for (round = 0; round < 8 && !error; round++)
		error = go(tried, coll, 0, BYTES);
	if (error != -EPROTO && error != -EHOSTDOWN)
		FAIL("rank %d, %s: %d", acp_rank(), tried->name, error);
	CHECK_EQ(tried->send(coll, 0, BYTES), -1);
	CHECK_EQ(errno, -error);
	if (error == -EPROTO)
		CHECK_EQ(acpx_coll_failed_rank(coll), -ENOENT);
	CHECK_EQ(acp_free_coll(coll), 0);
	CHECK_EQ(acpx_barrier(group), 0);
	CHECK_EQ(acpx_group_free(group), 0);
	end();
}

static void disagree(const struct transfer *t, int rank, size_t offset, size_t size)
{
	tried = t;
	odd_rank = rank;
	odd_offset = offset;
	odd_size = size;
	members_run(RANKS, PER_NODE, ask_for_other);
}

#define TREES	4			/* of all, those that are not driven */

TEST_LONG(a_member_sends_less_than_the_others, PATIENCE_LONG_TEST)
{
	size_t i;

	for (i = 0; i < TREES; i++)
		disagree(&all[i], 5 - (int)i, 0, i % 2 ? 8 : BYTES - 1);
}

TEST_LONG(a_member_sends_more_than_the_others, PATIENCE_LONG_TEST)
{
	size_t i;

	for (i = 0; i < TREES; i++) {
		disagree(&all[i], 0, 0, 100000);
		disagree(&all[i], 1 + (int)i * 2, 0, ROOM / RANKS);
	}
}

TEST_LONG(a_member_sends_another_part, PATIENCE_LONG_TEST)
{
	disagree(&all[0], 3, 64, BYTES);
	disagree(&all[2], 6, 64, BYTES);
}

/* ---- Wrong arguments ---- */

static void refused(int result, int error)
{
	CHECK_EQ(result, -1);
	CHECK_EQ(errno, error);
}

static void no_handle(acp_coll_t handle, int error)
{
	CHECK(!handle);
	CHECK_EQ(errno, error);
}

/* Creation fails at all members. */
static void create_wrong(void)
{
	static const int same[] = { 0, 1, 2, 3, 4, 5, 6, 0 };
	const bool odd = acp_rank() == 3;
	acpx_group_t group = world();
	acpx_coll_t coll = NULL;
	int ranks[RANKS], i;

	for (i = 0; i < RANKS; i++)
		ranks[i] = i;
	no_handle(acp_create_bcast_direct(RANKS, ranks, dst, odd ? 8 : 16), EPROTO);
	no_handle(odd ? acp_create_bcast_buffered(RANKS, ranks, 16) :
		  acp_create_bcast_direct(RANKS, ranks, dst, 16), EPROTO);
	no_handle(odd ? acp_create_allgather_buffered(RANKS, ranks, 16) :
		  acp_create_bcast_buffered(RANKS, ranks, 16), EPROTO);
	CHECK_EQ(acpx_coll_bcast_direct_create(group, dst, 16, odd ? ACPX_ROOT_DRIVEN : 0, &coll),
		 -EPROTO);
	CHECK_EQ(acpx_coll_bcast_direct_create(group, dst, 16, odd ? 6 : 0, &coll), -EINVAL);
	no_handle(acp_create_bcast_direct(RANKS, ranks, odd ? NULL : dst, 16), EINVAL);
	no_handle(acp_create_bcast_direct(RANKS, ranks, dst, odd ? 0 : 16), EINVAL);
	no_handle(acp_create_allgather_direct(RANKS, ranks, dst, 8 * RANKS + 1), EINVAL);
	no_handle(acp_create_allgather_buffered(RANKS, ranks, RANKS - 1), EINVAL);
	no_handle(acp_create_bcast_buffered(RANKS, same, 16), EINVAL);
	no_handle(acp_create_bcast_buffered(0, ranks, 16), EINVAL);
	no_handle(acp_create_bcast_buffered(RANKS, NULL, 16), EINVAL);
	CHECK(!coll);
	CHECK_EQ(acpx_barrier(group), 0);
	CHECK_EQ(acpx_group_free(group), 0);
}

static void wrong_handle(acp_coll_t handle)
{
	refused(acp_send_bcast_direct(handle, 0, 8), EINVAL);
	refused(acp_send_bcast_buffered(handle, src, 8), EINVAL);
	refused(acp_send_allgather_buffered(handle, src, 8), EINVAL);
}

static void send_wrong(void)
{
	acpx_group_t group = world();
	const size_t part = ROOM / RANKS;
	acpx_coll_t coll, barrier, driven;

	CHECK_EQ(gather_direct(group, &coll), 0);
	CHECK_EQ(bcast_driven(group, &driven), 0);
	CHECK_EQ(acpx_coll_barrier_create(group, &barrier), 0);
	wrong_handle(coll);
	wrong_handle(barrier);
	wrong_handle(NULL);
	refused(acp_inquire_coll(barrier), EINVAL);
	refused(acp_inquire_coll(NULL), EINVAL);
	refused(acp_free_coll(NULL), EINVAL);
	CHECK_EQ(acp_wait_coll(NULL), (size_t)-1);
	CHECK_EQ(acpx_coll_receive(barrier, 0), -EINVAL);
	CHECK_EQ(acpx_coll_start(coll), -EINVAL);
	refused(acp_send_allgather_direct(coll, part + 1, 0), EINVAL);
	refused(acp_send_allgather_direct(coll, 1, part), EINVAL);
	refused(acp_send_allgather_direct(coll, 8, SIZE_MAX), EINVAL);
	refused(acp_send_allgather_direct(coll, SIZE_MAX, 8), EINVAL);
	if (acp_rank())
		refused(acp_send_bcast_direct(driven, 0, 8), EINVAL);
	CHECK_EQ(acp_free_coll(coll), 0);
	CHECK_EQ(acp_free_coll(driven), 0);
	CHECK_EQ(acp_free_coll(barrier), 0);
	CHECK_EQ(acpx_group_free(group), 0);
}

static void mistakes(void)
{
	begin();
	create_wrong();
	send_wrong();
	end();
}

TEST(wrong_arguments_and_handles_are_refused)
{
	members_run(RANKS, PER_NODE, mistakes);
}

/* ---- Members that are late: what is active can be neither freed nor sent again ---- */

static void late(void)
{
	acpx_group_t group;
	acpx_coll_t coll;
	size_t i;

	begin();
	group = world();
	for (i = 0; i < ALL; i++) {
		CHECK_EQ(all[i].create(group, &coll), 0);
		if (acp_rank() && sends(&all[i])) {
			CHECK_EQ(all[i].send(coll, 0, BYTES), 0);
			if (all[i].gathers)
				CHECK_EQ(acp_inquire_coll(coll), 1);
			refused(all[i].send(coll, 0, BYTES), EBUSY);
			refused(acp_free_coll(coll), EBUSY);
		}
		if (acp_rank())
			CHECK_EQ(acpx_coll_receive(coll, 1000000), -ETIMEDOUT);
		CHECK_EQ(acp_sync(), 0);
		if (!acp_rank())
			CHECK_EQ(all[i].send(coll, 0, BYTES), 0);
		CHECK_EQ(acp_wait_coll(coll), BYTES);
		CHECK_EQ(acp_sync(), 0);
		CHECK_EQ(acp_free_coll(coll), 0);
	}
	CHECK_EQ(acpx_group_free(group), 0);
	end();
}

TEST(free_and_send_while_active_are_refused)
{
	members_run(RANKS, PER_NODE, late);
}

/* ---- Members that are lost ---- */

static int mortal;

static void survive(void)
{
	acpx_group_t rest;
	acpx_coll_t coll;
	int round, error = 0;

	begin();
	rest = all_but(mortal);
	CHECK_EQ(tried->create(world(), &coll), 0);
	for (round = 1; round < 1000 && !error; round++) {
		if (acp_rank() == mortal && round == 3)
			kill(getpid(), SIGKILL);
		error = go(tried, coll, 0, BYTES);
	}
	if (!is_loss(error))
		FAIL("rank %d, %s: %d in round %d", acp_rank(), tried->name, error, round);
	CHECK_EQ(acp_inquire_coll(coll), -1);
	CHECK_EQ(errno, -error);
	CHECK_EQ(acp_wait_coll(coll), (size_t)-1);
	CHECK_EQ(acpx_coll_failed_rank(coll), mortal);
	CHECK_EQ(acp_free_coll(coll), 0);
	CHECK_EQ(acpx_barrier(rest), 0);
	CHECK_EQ(tried->create(rest, &coll), 0);
	CHECK_EQ(acpx_barrier(rest), 0);
	CHECK_EQ(acp_free_coll(coll), 0);
	CHECK_EQ(acpx_group_free(rest), 0);
}

static void lose(const struct transfer *t, int rank)
{
	struct members m;
	int r;

	mortal = rank;
	tried = t;
	members_open(&m, RANKS, PER_NODE);
	members_start_all(&m, survive);
	for (r = 0; r < RANKS; r++)
		CHECK_EQ(members_wait(&m, r), r == rank ? DIED - SIGKILL : 0);
}

/* Lose the root, a member that passes on, or one without children. */
static void lose_one(size_t which)
{
	static const int victims[] = { 0, 1, 7 };
	size_t i;

	for (i = 0; i < ALL; i++)
		if (!test_short() || i % 3 == which || i == ALL - 2)
			lose(&all[i], victims[which]);
}

TEST_LONG(P1_the_root_is_killed, PATIENCE_LONG_TEST)
{
	lose_one(0);
}

TEST_LONG(P1_a_member_that_passes_on_is_killed, PATIENCE_LONG_TEST)
{
	lose_one(1);
}

TEST_LONG(P1_a_member_without_children_is_killed, PATIENCE_LONG_TEST)
{
	lose_one(2);
}

/* ---- The end ---- */

static void leave(void)
{
	acpx_coll_t colls[ALL];
	acpx_group_t group;
	size_t i;

	begin();
	group = world();
	for (i = 0; i < ALL; i++)
		CHECK_EQ(all[i].create(group, &colls[i]), 0);
	CHECK_EQ(acp_sync(), 0);
	CHECK_EQ(acp_finalize(), 0);
	for (i = 0; i < ALL; i++) {
		CHECK_EQ(all[i].send(colls[i], 0, 8), -1);
		CHECK(errno == ENOTCONN || (all[i].driven && errno == EINVAL));
		CHECK_EQ(acp_free_coll(colls[i]), 0);
	}
}

TEST(after_finalize_they_can_only_be_freed)
{
	members_run(RANKS, PER_NODE, leave);
}

static void many(void)
{
	acpx_group_t group;
	size_t before = 0, after, i;
	acpx_coll_t coll;
	int n, count = test_short() ? 6 : 60;

	begin();
	group = world();
	for (n = -3; n < count; n++) {
		if (!n)
			before = mallinfo2().uordblks;
		for (i = 0; i < ALL; i++) {
			CHECK_EQ(all[i].create(group, &coll), 0);
			CHECK_EQ(go(&all[i], coll, 0, BYTES), 0);
			CHECK_EQ(acpx_barrier(group), 0);
			CHECK_EQ(acp_free_coll(coll), 0);
		}
	}
	/* The table of STags grows by 65 bytes for each, until all have been used. */
	after = mallinfo2().uordblks;
	if (after > before + (size_t)count * ALL * 300)
		FAIL("%d times: %zu bytes, then %zu", count, before, after);
	CHECK_EQ(acpx_group_free(group), 0);
	end();
}

TEST_LONG(memory_comes_back_when_transfers_are_freed, PATIENCE_LONG_TEST)
{
	members_run(RANKS, PER_NODE, many);
}
