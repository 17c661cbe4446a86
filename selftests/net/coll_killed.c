// SPDX-License-Identifier: MIT
/* selftest: gate=uml */
/* A member is killed at any time, mostly while a collective is created: all others end. */
#include "../dev/isolated.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "members.h"

#define RANKS		8

static int victim;
static unsigned int after_us;

static void tell_ended(void)
{
	int r;

	for (r = 0; r < RANKS; r++)
		if (r != victim)
			CHECK_EQ(member_status(acp_add8(member_at(acp_rank(), 520),
							member_at(r, 256), 1, ACP_HANDLE_NULL)),
				 0);
}

static void await_ended(const char *what, int error)
{
	int ms;

	for (ms = 0; __atomic_load_n(member_word(256), __ATOMIC_ACQUIRE) < RANKS - 1; ms++) {
		if (ms > 25000)
			FAIL("victim %d after %u us: rank %d: %s %d: %llu have ended", victim,
			     after_us, acp_rank(), what, error,
			     (unsigned long long)*member_word(256));
		sleep_ms(1);
	}
}

static void *killer(void *arg)
{
	const struct timespec t = { 0, after_us * 1000 };

	(void)arg;
	nanosleep(&t, NULL);
	kill(getpid(), SIGKILL);
	return NULL;
}

static int once(acpx_group_t group, const char **what)
{
	acpx_coll_t coll;
	int error = acpx_coll_barrier_create(group, &coll);

	*what = "create";
	if (error)
		return error;
	*what = "start";
	error = acpx_coll_start(coll);
	if (!error) {
		*what = "wait";
		error = acpx_coll_wait(coll, ACPX_FOREVER);
	}
	CHECK_EQ(acpx_coll_free(coll), 0);
	return error;
}

static void body(void)
{
	acpx_group_t group;
	const char *what = "";
	pthread_t thread;
	int error;

	member_init();
	CHECK_EQ(acpx_group_world(&group), 0);
	CHECK_EQ(acpx_barrier(group), 0);
	if (acp_rank() == victim)
		CHECK_EQ(pthread_create(&thread, NULL, killer, NULL), 0);
	do
		error = once(group, &what);
	while (!error);
	if (error != -EHOSTDOWN && error != -ECONNRESET && error != -EHOSTUNREACH)
		FAIL("victim %d after %u us: rank %d: %s: %d", victim, after_us, acp_rank(), what,
		     error);
	tell_ended();
	await_ended(what, error);
}

static void kill_at(int rank, unsigned int us)
{
	struct members m;
	int r;

	victim = rank;
	after_us = us;
	members_open(&m, RANKS, 2);
	members_start_all(&m, body);
	for (r = 0; r < RANKS; r++)
		CHECK_EQ(members_wait(&m, r), r == rank ? DIED - SIGKILL : 0);
}

TEST_LONG(all_end_when_a_member_is_killed_at_any_time, PATIENCE_LONG_TEST)
{
	uint64_t seed = (uint64_t)time(NULL);
	int i, count = getenv("COUNT") ? atoi(getenv("COUNT")) : 10;

	for (i = 0; i < count; i++)
		kill_at(i % 3 ? 0 : (int)(next_random(&seed) % RANKS),
			5000 + (unsigned int)(next_random(&seed) % 60000));
}
