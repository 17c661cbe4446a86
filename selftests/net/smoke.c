// SPDX-License-Identifier: MIT
/* selftest: gate=6.1,6.12-1cpu,rt */
/*
 * Little of all, for kernels on which the gate runs nothing else: two ranks on two nodes put, get,
 * add and synchronize; then one is killed.
 */
#include "../dev/isolated.h"

#include <signal.h>

#include "members.h"

#define SIZE	100000UL

/* Offsets in starter memory. */
enum { COUNTER = 0, BEFORE = 8, TO = 4096, FROM = TO + SIZE };

static struct members m;

static char *starter(size_t offset)
{
	return (char *)member_word(offset);
}

static void move(int to, size_t there, int from, size_t here)
{
	CHECK_EQ(member_status(acp_copy(member_at(to, there), member_at(from, here), SIZE,
					ACP_HANDLE_NULL)), 0);
}

static void work(void)
{
	int me, peer;

	member_init();
	me = acp_rank();
	peer = !me;
	fill(starter(FROM), SIZE, me);
	CHECK_EQ(acp_sync(), 0);
	move(peer, TO, me, FROM);
	CHECK_EQ(acp_sync(), 0);
	CHECK(filled(starter(TO), SIZE, peer));
	memset(starter(TO), 0, SIZE);
	move(me, TO, peer, FROM);
	CHECK(filled(starter(TO), SIZE, peer));
	CHECK_EQ(member_status(acp_add8(member_at(me, BEFORE), member_at(0, COUNTER), 5,
					ACP_HANDLE_NULL)), 0);
	CHECK_EQ(acp_sync(), 0);
	if (!me)
		CHECK_EQ(*member_word(COUNTER), 10);
	CHECK_EQ(acp_finalize(), 0);
}

TEST(put_get_atomic_and_barrier_between_two_nodes)
{
	setenv("ACP_STARTER_SIZE", "300000", 1);
	members_run(2, 1, work);
}

/* Rank 1 waits until it is killed; rank 0 accesses its memory until that fails. */
static void outlive(void)
{
	struct patience p = patience_begin(PATIENCE_WORK);
	int status = 0;

	member_init();
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() == 1) {
		raise(SIGKILL);
		FAIL("survived");
	}
	while (!status) {
		status = member_status(acp_add8(member_at(0, BEFORE), member_at(1, COUNTER), 1,
						ACP_HANDLE_NULL));
		CHECK(!patience_over(&p));
	}
	CHECK_EQ(status, ACPX_ERANK);
}

TEST(P1_accesses_to_a_killed_rank_fail)
{
	members_open(&m, 2, 1);
	members_start_all(&m, outlive);
	CHECK_EQ(members_wait(&m, 1), DIED - SIGKILL);
	CHECK_EQ(members_wait(&m, 0), 0);
}
