// SPDX-License-Identifier: MIT
/* selftest: gate=uml */
/*
 * What a member sends at the end of its round may arrive, or fail, when the round has ended there.
 */
#include "coll_play.h"

#include <dirent.h>
#include <unistd.h>

#define BARRIERS	40

static unsigned int *step;		/* shared by all ranks */

static void await_step(unsigned int n)
{
	struct patience p = patience_begin(PATIENCE_WORK);

	while (__atomic_load_n(step, __ATOMIC_ACQUIRE) < n) {
		CHECK(!patience_over(&p));
		sleep_ms(2);
	}
}

static void next_step(void)
{
	__atomic_add_fetch(step, 1, __ATOMIC_RELEASE);
}

static void share_step(void)
{
	step = mmap(NULL, sizeof(*step), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(step != MAP_FAILED);
	*step = 0;
}

/* ---- A message that does not arrive ---- */

/* Rank 1 has started when its node falls silent; then the root ends its round at once. */
static void lose_the_last_message(bool start_again)
{
	acpx_coll_t coll;
	int error = 0;

	begin();
	CHECK_EQ(acpx_coll_barrier_create(world(), &coll), 0);
	run_once(coll);
	if (acp_rank() == 1) {
		CHECK_EQ(acpx_coll_start(coll), 0);
		/* What was sent before has arrived when this has. */
		CHECK_EQ(member_status(acp_copy(member_at(0, 0), src_ga, 8, ACP_HANDLE_NULL)), 0);
		next_step();
		CHECK_EQ(acpx_coll_wait(coll, ACPX_FOREVER), -EHOSTDOWN);
		CHECK_EQ(acpx_coll_failed_rank(coll), 0);
	} else {
		await_step(2);
		CHECK_EQ(acpx_coll_start(coll), 0);
		CHECK_EQ(acpx_coll_wait(coll, ACPX_FOREVER), 0);
		while (start_again && !error) {
			error = acpx_coll_start(coll);
			error = error ? error : acpx_coll_wait(coll, ACPX_FOREVER);
		}
		CHECK_EQ(error, start_again ? -EHOSTDOWN : 0);
	}
	CHECK_EQ(acpx_coll_free(coll), 0);
}

static void then_start(void)
{
	lose_the_last_message(true);
}

static void then_free(void)
{
	lose_the_last_message(false);
}

static void cut_before_the_root_starts(void (*body)(void))
{
	struct members m;

	setenv("ACP_TIMEOUT", "3000", 1);
	share_step();
	members_open(&m, 2, 1);
	members_start_all(&m, body);
	await_step(1);
	nodes_impair(&m.nodes, 0, "loss 100%");
	nodes_impair(&m.nodes, 1, "loss 100%");
	next_step();
	members_expect(&m, 0);
}

TEST(P3_the_last_message_of_a_round_is_lost_the_next_start_says_so)
{
	cut_before_the_root_starts(then_start);
}

TEST(P3_the_last_message_of_a_round_is_lost_free_does_not_hang)
{
	cut_before_the_root_starts(then_free);
}

/* ---- The collective goes before the message has arrived ---- */

/* The root comes last, frees the collective at once, and then ends. */
static void free_at_once(void)
{
	const bool finalize = *step & 0x100;
	acpx_coll_t coll;
	int i;

	begin();
	for (i = 0; i < 20; i++) {
		CHECK_EQ(acpx_coll_allreduce_create(world(), dst_ga, src_ga, 1, ACPX_SUM,
						    ACPX_INT64, &coll), 0);
		*(int64_t *)(void *)src = acp_rank() + i;
		if (!acp_rank())
			sleep_ms(5);
		run_once(coll);
		CHECK_EQ(*(int64_t *)(void *)dst, 3 + 3 * i);
		*(int64_t *)(void *)dst = -1;
		if (finalize && i == 19)
			break;
		CHECK_EQ(acpx_coll_free(coll), 0);
	}
	CHECK_EQ(acp_finalize(), 0);
	if (finalize)
		CHECK_EQ(acpx_coll_free(coll), 0);
}

TEST(free_after_a_round_loses_nothing)
{
	share_step();
	members_run(3, 1, free_at_once);
	members_run_over("loss 10%", 3, 1, free_at_once);
}

TEST(finalize_after_a_round_loses_nothing)
{
	share_step();
	*step = 0x100;
	members_run(3, 1, free_at_once);
	members_run_over("loss 10%", 3, 1, free_at_once);
}

/* ---- Queues ---- */

static int open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Each has left a queue when its round has ended; the others take it. */
static void many_barriers(void)
{
	acpx_coll_t coll[BARRIERS];
	int i, round, before;

	begin();
	for (i = 0; i < BARRIERS; i++)
		CHECK_EQ(acpx_coll_barrier_create(world(), &coll[i]), 0);
	before = open_files();
	for (round = 0; round < 5; round++) {
		for (i = 0; i < BARRIERS; i++)
			run_once(coll[i]);
		sleep_ms(20);
	}
	if (open_files() > before + BARRIERS / 2)
		FAIL("%d files, then %d", before, open_files());
	for (i = 0; i < BARRIERS; i++)
		CHECK_EQ(acpx_coll_free(coll[i]), 0);
	end();
}

TEST(collectives_whose_rounds_have_ended_share_queues)
{
	members_run(3, 1, many_barriers);
}
