// SPDX-License-Identifier: MIT
/* selftest: gate=none */
/* Collectives after a failure: members that are in a later round, or have not begun the round. */
#include "coll_play.h"

#include <signal.h>
#include <unistd.h>

/* Rounds until an error; most rounds: then it is 0. */
static int rounds(acpx_coll_t coll, int count)
{
	int error = 0;

	while (!error && count--) {
		error = acpx_coll_start(coll);
		if (!error)
			error = acpx_coll_wait(coll, ACPX_FOREVER);
	}
	return error;
}

/* Tell ranks below "ranks" that the caller has got its error. */
static void tell_ended(int ranks)
{
	int r;

	*member_word(512) = 1;
	for (r = 0; r < ranks; r++)
		CHECK_EQ(member_status(acp_add8(member_at(acp_rank(), 520), member_at(r, 256), 1,
						ACP_HANDLE_NULL)), 0);
}

/* Stay, and keep the collective, until so many have told that. */
static void await_ended(uint64_t count)
{
	int ms;

	for (ms = 0; __atomic_load_n(member_word(256), __ATOMIC_ACQUIRE) < count; ms++) {
		if (ms > 12000)
			FAIL("rank %d: others have not ended", acp_rank());
		sleep_ms(1);
	}
}

/* Rank 2 is lost before the first round. The root does not free the collective. */
static void reduce_first(void)
{
	acpx_coll_t coll;
	int error;

	member_init();
	CHECK_EQ(acpx_coll_reduce_create(world(), 0, member_at(acp_rank(), 64),
					 member_at(acp_rank(), 128), 1, ACPX_SUM, ACPX_INT64,
					 &coll), 0);
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() == 2)
		kill(getpid(), SIGKILL);
	if (acp_rank() == 1)
		sleep_ms(1000);
	error = rounds(coll, 10);
	if (!is_loss(error))
		FAIL("rank %d: %d", acp_rank(), error);
	tell_ended(2);
	await_ended(2);
}

TEST(members_of_a_reduction_that_are_ahead_end)
{
	struct members m;
	int r;

	members_open(&m, 3, 1);
	members_start_all(&m, reduce_first);
	for (r = 0; r < 3; r++)
		CHECK_EQ(members_wait(&m, r), r == 2 ? DIED - SIGKILL : 0);
}

/* The last member of a scan is lost; those before it are ahead. */
static void scan_last(void)
{
	acpx_coll_t coll;
	int error;

	member_init();
	CHECK_EQ(acpx_coll_scan_create(world(), member_at(acp_rank(), 64),
				       member_at(acp_rank(), 128), 1, ACPX_SUM, ACPX_INT64,
				       &coll), 0);
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() == 3)
		kill(getpid(), SIGKILL);
	if (acp_rank() < 2)
		sleep_ms(1000);
	error = rounds(coll, 10);
	if (!is_loss(error))
		FAIL("rank %d: %d", acp_rank(), error);
	tell_ended(3);
	await_ended(3);
}

TEST(members_of_a_scan_that_are_ahead_end)
{
	struct members m;
	int r;

	members_open(&m, 4, 1);
	members_start_all(&m, scan_last);
	for (r = 0; r < 4; r++)
		CHECK_EQ(members_wait(&m, r), r == 3 ? DIED - SIGKILL : 0);
}

/* Rank 5 is a child of 1, which ends and frees before the root tells it of the failure. */
static void free_at_once(void)
{
	acpx_coll_t coll;
	int error;

	member_init();
	CHECK_EQ(acpx_coll_barrier_create(world(), &coll), 0);
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() == 5)
		kill(getpid(), SIGKILL);
	error = rounds(coll, 10);
	CHECK_EQ(acpx_coll_free(coll), 0);
	if (!is_loss(error))
		FAIL("rank %d: %d", acp_rank(), error);
}

TEST(members_that_free_at_once_do_not_change_the_error_of_others)
{
	struct members m;
	int r;

	members_open(&m, 6, 1);
	nodes_impair_all(&m.nodes, "delay 40ms");
	members_start_all(&m, free_at_once);
	for (r = 0; r < 6; r++)
		CHECK_EQ(members_wait(&m, r), r == 5 ? DIED - SIGKILL : 0);
}

/* Rank 1 begins the round when the network, which has failed, is back. */
static void come_back(void)
{
	acpx_coll_t coll;
	int error;

	member_init();
	CHECK_EQ(acpx_coll_barrier_create(world(), &coll), 0);
	CHECK_EQ(rounds(coll, 1), 0);
	if (acp_rank() == 1)
		sleep_ms(7000);
	else
		sleep_ms(1000);
	if (acp_rank() == 0) {
		CHECK_EQ(acpx_coll_start(coll), 0);
		sleep_ms(5000);
		error = acpx_coll_wait(coll, ACPX_FOREVER);
		fprintf(stderr, "rank 0: %d, state of 1: %d\n", error, acpx_peer_state(1));
	} else {
		error = rounds(coll, 2);
	}
	if (!is_loss(error))
		FAIL("rank %d: %d", acp_rank(), error);
	tell_ended(2);
	await_ended(2);
}

TEST_LONG(members_begin_a_round_that_has_failed_elsewhere, PATIENCE_LONG_TEST)
{
	struct members m;
	int r;

	setenv("ACP_TIMEOUT", "1000", 1);
	members_open(&m, 2, 1);
	members_start_all(&m, come_back);
	sleep_ms(800);
	nodes_impair(&m.nodes, 1, "loss 100%");
	sleep_ms(3500);
	nodes_impair(&m.nodes, 1, "");
	for (r = 0; r < 2; r++)
		CHECK_EQ(members_wait(&m, r), 0);
}
