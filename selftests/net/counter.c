// SPDX-License-Identifier: MIT
/* selftest: gate=uml */
/* Counters: all ranks add to them, behind their data; their owner waits, or lets accesses wait. */
#include "coll_play.h"

#include <signal.h>

#define WORD	64			/* offset of an address in starter memory */
#define PART	3000			/* bytes */
#define ROUNDS	20

static acpx_counter_t mine;

/* Create a mine, and learn where that of a rank is. */
static acp_ga_t share(acp_ga_t word, int rank)
{
	CHECK_EQ(acpx_counter_create(word, &mine), 0);
	*member_word(WORD) = acpx_counter_ga(mine);
	CHECK_EQ(acp_sync(), 0);
	CHECK_EQ(member_status(acp_copy(member_at(acp_rank(), 0), member_at(rank, WORD), 8,
					ACP_HANDLE_NULL)), 0);
	return *member_word(0);
}

static uint64_t value(void)
{
	uint64_t now = 0;

	CHECK_EQ(acpx_counter_read(mine, &now), 0);
	return now;
}

/* Each round, all copy to rank 0 and count; rank 0 has all data when the counter says so. */
static void collect(acp_ga_t word)
{
	const acp_ga_t first = share(word, 0);
	acp_handle_t copied;
	uint64_t round;
	acp_ga_t at;
	int r;

	*member_word(WORD + 8) = dst_ga;
	CHECK_EQ(acp_sync(), 0);
	CHECK_EQ(member_status(acp_copy(member_at(acp_rank(), 0), member_at(0, WORD + 8), 8,
					ACP_HANDLE_NULL)), 0);
	at = *member_word(0) + (acp_ga_t)acp_rank() * PART;
	for (round = 1; round <= ROUNDS; round++) {
		put_bytes(src, PART, round, acp_rank(), 0);
		copied = acp_copy(at, src_ga, PART, ACP_HANDLE_NULL);
		CHECK_EQ(member_status(acpx_counter_add(first, 1, copied)), 0);
		if (!acp_rank()) {
			CHECK_EQ(acpx_counter_wait(mine, round * RANKS, ACPX_FOREVER), 0);
			CHECK_EQ(value(), round * RANKS);
			for (r = 0; r < RANKS; r++)
				check_bytes(dst + r * PART, PART, round, r, 0);
		}
		CHECK_EQ(acp_sync(), 0);
	}
	CHECK_EQ(acpx_counter_free(mine), 0);
}

static void collect_all(void)
{
	begin();
	collect(ACP_GA_NULL);
	collect(member_at(acp_rank(), 256));
	collect(src_ga + ROOM - 8);
	end();
}

TEST(a_counter_says_that_data_are_there)
{
	members_run(RANKS, PER_NODE, collect_all);
}

TEST_LONG(counters_over_a_bad_network, PATIENCE_LONG_TEST)
{
	members_run_over("loss 3% duplicate 3%", RANKS, PER_NODE, collect_all);
}

/* A copy waits for the counter of each rank, and passes on to the next one. */
static void pass_on(void)
{
	acp_ga_t next, data;
	acp_handle_t h;

	begin();
	next = share(ACP_GA_NULL, (acp_rank() + 1) % RANKS);
	data = member_at((acp_rank() + 1) % RANKS, 512);
	*member_word(512) = acp_rank() ? 0 : 4711;
	CHECK_EQ(acp_sync(), 0);
	h = acpx_wait_word(acpx_counter_ga(mine), 5, ACP_HANDLE_NULL);
	h = acp_copy(data, member_at(acp_rank(), 512), 8, h);
	h = acpx_counter_add(next, 5, h);
	if (!acp_rank()) {
		CHECK_EQ(acpx_counter_wait(mine, 1, 1000000), -ETIMEDOUT);
		acpx_counter_add(acpx_counter_ga(mine), 5, ACP_HANDLE_NULL);
	}
	CHECK_EQ(member_status(h), 0);
	CHECK_EQ(acpx_counter_wait(mine, acp_rank() ? 5 : 10, ACPX_FOREVER), 0);
	CHECK_EQ(*member_word(512), 4711);
	CHECK_EQ(acp_sync(), 0);
	CHECK_EQ(acpx_counter_free(mine), 0);
	end();
}

TEST(accesses_wait_for_a_counter)
{
	members_run(RANKS, PER_NODE, pass_on);
}

/* All add while the owner takes what is there: nothing is lost. */
static void take_all(void)
{
	const uint64_t all = (RANKS - 1) * 200;
	uint64_t sum = 0, got;
	acp_ga_t first;
	int i;

	begin();
	first = share(ACP_GA_NULL, 0);
	for (i = 0; i < 200 && acp_rank(); i++)
		CHECK_EQ(member_status(acpx_counter_add(first, 1, ACP_HANDLE_NULL)), 0);
	while (!acp_rank() && sum < all) {
		CHECK_EQ(acpx_counter_wait(mine, 1, ACPX_FOREVER), 0);
		CHECK_EQ(acpx_counter_reset(mine, &got), 0);
		CHECK(got);
		sum += got;
	}
	CHECK_EQ(acp_sync(), 0);
	CHECK_EQ(value(), 0);
	CHECK(acp_rank() || sum == all);
	CHECK_EQ(acpx_counter_reset(mine, NULL), 0);
	CHECK_EQ(acpx_counter_free(mine), 0);
	end();
}

TEST(reset_takes_what_was_added)
{
	members_run(RANKS, PER_NODE, take_all);
}

static void mistakes(void)
{
	const acp_ga_t other = member_at(0, 0);
	uint64_t now;
	size_t used;
	struct acpx_heap_stats stats;

	CHECK_EQ(acpx_counter_create(ACP_GA_NULL, NULL), -EINVAL);
	CHECK_EQ(acpx_counter_create(member_at(acp_rank(), 4), &mine), -EINVAL);
	CHECK_EQ(acpx_counter_create(src_ga + ROOM, &mine), -EFAULT);
	if (acp_rank())
		CHECK_EQ(acpx_counter_create(other, &mine), -EINVAL);
	CHECK_EQ(acpx_heap_stats(acp_rank(), &stats), 0);
	used = stats.used;
	CHECK_EQ(acpx_counter_create(ACP_GA_NULL, &mine), 0);
	CHECK_EQ(acpx_counter_ga(mine) % 64, 0);
	CHECK_EQ(acpx_counter_read(mine, NULL), -EINVAL);
	CHECK_EQ(acpx_counter_read(NULL, &now), -EINVAL);
	CHECK_EQ(acpx_counter_wait(NULL, 0, 0), -EINVAL);
	CHECK_EQ(acpx_counter_reset(NULL, NULL), -EINVAL);
	CHECK_EQ(acpx_counter_free(NULL), -EINVAL);
	CHECK_EQ(acpx_counter_ga(NULL), ACP_GA_NULL);
	CHECK_EQ(acpx_counter_wait(mine, 0, 0), 0);
	CHECK_EQ(acpx_counter_wait(mine, 1, 0), -ETIMEDOUT);
	CHECK_EQ(acpx_counter_free(mine), 0);
	CHECK_EQ(acpx_heap_stats(acp_rank(), &stats), 0);
	CHECK_EQ(stats.used, used);
}

/* An access before the addition fails: with ACPX_SIGNAL_REVOKE, the owner learns of it. */
static void revoked(void)
{
	const acp_ga_t own = member_at(acp_rank(), 0);
	acp_handle_t h;
	uint64_t now;

	CHECK_EQ(acpx_counter_create(ACP_GA_NULL, &mine), 0);
	h = acp_copy(own, src_ga + ROOM, 8, ACP_HANDLE_NULL);
	h = acpx_copy_signal(own, own, 0, acpx_counter_ga(mine), 1,
			     ACPX_SIGNAL_ADD | ACPX_SIGNAL_REVOKE, h);
	CHECK_EQ(acpx_counter_wait(mine, 1, ACPX_FOREVER), -EIO);
	CHECK_EQ(acpx_counter_read(mine, &now), -EIO);
	member_status(h);
	CHECK_EQ(acpx_counter_reset(mine, NULL), 0);
	CHECK_EQ(value(), 0);
}

static void wrong(void)
{
	uint64_t now;

	begin();
	mistakes();
	revoked();
	end();
	CHECK_EQ(acpx_counter_ga(mine), ACP_GA_NULL);
	CHECK_EQ(acpx_counter_read(mine, &now), -ENOTCONN);
	CHECK_EQ(acpx_counter_wait(mine, 1, 0), -ENOTCONN);
	CHECK_EQ(acpx_counter_reset(mine, NULL), -ENOTCONN);
	CHECK_EQ(acpx_counter_create(ACP_GA_NULL, &mine), -ENOTCONN);
	CHECK_EQ(acpx_counter_free(mine), 0);
}

TEST(wrong_uses_of_counters_are_refused)
{
	members_run(RANKS, PER_NODE, wrong);
}
