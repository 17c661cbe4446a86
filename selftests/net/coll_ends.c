// SPDX-License-Identifier: MIT
/* selftest: gate=uml leaks */
/*
 * The end of collectives and groups: members that call acp_reset() or acp_finalize() while a round
 * is active, or before it begins, and what is given back when all is freed.
 */
#include "coll_all.h"

#include <dirent.h>
#include <malloc.h>
#include <unistd.h>

#include "ask.h"

#define TIMEOUT		3000u		/* ms, of the job */
#define LATE		2		/* the member that does not start */

/* What the C library caches for a thread counts as allocated: it must not. */
__attribute__((constructor)) static void without_caches(int argc, char **argv)
{
	static const char tunables[] = "glibc.malloc.tcache_count=0";

	(void)argc;
	if (getenv("GLIBC_TUNABLES"))
		return;
	setenv("GLIBC_TUNABLES", tunables, 1);
	execv("/proc/self/exe", argv);
}

/* ---- What a process and its node use ---- */

#define SLACK	500			/* bytes, of what the C library allocates */

struct usage {
	long pinned;			/* KiB */
	size_t bytes;			/* allocated */
	int files;
	uint32_t regions, queues;	/* of the ranks of the node */
	uint64_t charged;		/* bytes, for the jobs of the node */
};

static struct usage *counted;

static void add_rank(const struct answer *rank)
{
	counted->regions += answer_u32(rank, ACP_NL_A_REGIONS);
	counted->queues += answer_u32(rank, ACP_NL_A_QUEUES);
}

static void add_job(const struct answer *job)
{
	counted->charged += answer_u64(job, ACP_NL_A_MEMORY);
}

/* A job that all its ranks have left ends some time later. */
static void ask_node(struct usage *u)
{
	struct patience p = patience_begin(PATIENCE_WORK);
	static struct ask q;

	counted = u;
	ask_open(&q);
	ask_begin(&q, ACP_NL_CMD_RANK_GET, NLM_F_DUMP);
	CHECK_EQ(ask_dump(&q, add_rank), PER_NODE);
	for (;;) {
		u->charged = 0;
		ask_begin(&q, ACP_NL_CMD_JOB_GET, NLM_F_DUMP);
		if (ask_dump(&q, add_job) == 1)
			break;
		CHECK(!patience_over(&p));
		sleep_ms(100);
	}
	close(q.fd);
}

/* Lines "Vm...: n kB" of the kernel. */
static long pinned(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	long kb, sum = 0;
	char line[200];

	CHECK(status);
	while (fgets(line, sizeof(line), status))
		if (sscanf(line, "VmLck: %ld", &kb) == 1 || sscanf(line, "VmPin: %ld", &kb) == 1)
			sum += kb;
	fclose(status);
	return sum;
}

static int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	CHECK(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* So that there is a flow between any two nodes. */
static void reach_all(void)
{
	int r;

	for (r = 0; r < RANKS; r++)
		CHECK_EQ(member_status(acp_copy(member_at(acp_rank(), 8), member_at(r, 0), 8,
						ACP_HANDLE_NULL)), 0);
}

/* What is used while no rank does anything. */
static struct usage usage(void)
{
	struct usage u = { 0 };

	reach_all();
	CHECK_EQ(acp_sync(), 0);
	ask_node(&u);
	u.pinned = pinned();
	u.files = open_files();
	u.bytes = mallinfo2().uordblks;
	CHECK_EQ(acp_sync(), 0);
	return u;
}

/* Not more than before, but for bytes of the process. */
static void check_back(const struct usage *before, size_t more)
{
	const struct usage now = usage();

	CHECK_EQ(now.pinned, before->pinned);
	CHECK_EQ(now.files, before->files);
	CHECK_EQ(now.regions, before->regions);
	CHECK_EQ(now.queues, before->queues);
	if (now.charged > before->charged)
		FAIL("rank %d: %llu bytes charged, then %llu", acp_rank(),
		     (unsigned long long)before->charged, (unsigned long long)now.charged);
	if (now.bytes > before->bytes + more)
		FAIL("rank %d: %zu bytes, then %zu", acp_rank(), before->bytes, now.bytes);
}

/* ---- Leaving while a round is active ---- */

static void reset(void)
{
	CHECK_EQ(acp_reset((acp_rank() + 3) % RANKS), 0);
}

static void return_by_init(void)
{
	CHECK_EQ(acp_finalize(), 0);
	CHECK_EQ(acp_init(NULL, NULL), 0);
}

static void prepare(void)
{
	dst = buffer(&dst_ga);
	src = buffer(&src_ga);
}

static void give_back(void)
{
	free(dst);
	free(src);
}

/* After the end of the membership it can only be freed. */
static void check_ended(acpx_coll_t coll, int result)
{
	if (acpx_coll_test(coll) != result)
		FAIL("rank %d: %d, not %d", acp_rank(), acpx_coll_test(coll), result);
	CHECK_EQ(acpx_coll_wait(coll, ACPX_FOREVER), result < 0 ? result : 0);
	CHECK_EQ(acpx_coll_failed_rank(coll), -ENOENT);
	if (acpx_coll_start(coll) != -ENOTCONN)
		FAIL("rank %d: started", acp_rank());
	CHECK_EQ(acpx_coll_free(coll), 0);
}

static bool needs_all(create_t *create)
{
	return create == barrier || create == allreduce || create == alltoall ||
	       create == allgather;
}

/* One member has started nothing, when all leave and return. */
static void abandon(void (*leave_and_return)(void))
{
	acpx_coll_t colls[ALL], ended;
	bool late, alone;
	acpx_group_t group;
	size_t i;

	prepare();
	group = world();
	late = acp_rank() == LATE;
	CHECK_EQ(allreduce(group, &ended), 0);
	CHECK_EQ(acpx_coll_start(ended), 0);
	for (i = 0; i < ALL; i++) {
		CHECK_EQ(all[i](group, &colls[i]), 0);
		CHECK_EQ(late ? 0 : acpx_coll_start(colls[i]), 0);
	}
	CHECK_EQ(acpx_group_free(group), 0);
	leave_and_return();
	check_ended(ended, 1);
	for (i = 0; i < ALL; i++) {
		/* Some members of trees need nothing of the one that is late. */
		alone = !late && acpx_coll_test(colls[i]) == 1;
		if (alone && needs_all(all[i]))
			FAIL("rank %d: collective %zu has ended without a member", acp_rank(), i);
		check_ended(colls[i], late || alone ? 1 : -ECANCELED);
	}
	give_back();
}

static void run_all_once(acpx_group_t group)
{
	acpx_coll_t colls[ALL];
	size_t i;

	for (i = 0; i < ALL; i++)
		CHECK_EQ(all[i](group, &colls[i]), 0);
	for (i = 0; i < ALL; i++)
		CHECK_EQ(acpx_coll_start(colls[i]), 0);
	for (i = 0; i < ALL; i++)
		CHECK_EQ(acpx_coll_wait(colls[i], ACPX_FOREVER), 0);
	for (i = 0; i < ALL; i++)
		CHECK_EQ(acpx_coll_free(colls[i]), 0);
}

static void leave_with_active_rounds(void)
{
	struct usage before;
	acpx_group_t group;

	member_init();
	abandon(reset);
	before = usage();
	abandon(reset);
	check_back(&before, SLACK);
	abandon(return_by_init);
	check_back(&before, SLACK);
	prepare();
	group = world();
	run_all_once(group);
	CHECK_EQ(acpx_group_free(group), 0);
	end();
}

TEST(P2_reset_and_finalize_end_active_rounds_and_give_all_back)
{
	setenv("ACP_TIMEOUT", "3000", 1);
	members_run(RANKS, PER_NODE, leave_with_active_rounds);
}

/* One member starts its parts and leaves at once; the others start later, and need it. */
static void leave_first(int first, void (*leave_and_return)(void))
{
	acpx_coll_t colls[ALL];
	acpx_group_t group;
	bool leaves;
	size_t i;

	prepare();
	group = world();
	leaves = acp_rank() == first;
	for (i = 0; i < ALL; i++)
		CHECK_EQ(all[i](group, &colls[i]), 0);
	CHECK_EQ(acp_sync(), 0);
	if (!leaves)
		sleep_ms(200);
	for (i = 0; i < ALL; i++)
		CHECK_EQ(acpx_coll_start(colls[i]), 0);
	for (i = 0; i < ALL && !leaves; i++)
		CHECK_EQ(acpx_coll_wait(colls[i], ACPX_FOREVER), 0);
	leave_and_return();
	for (i = 0; i < ALL; i++)
		check_ended(colls[i], 1);
	CHECK_EQ(acpx_group_free(group), 0);
	give_back();
}

static void leave_in_turn(void)
{
	member_init();
	leave_first(0, reset);
	leave_first(1, return_by_init);
	leave_first(RANKS - 1, reset);
	CHECK_EQ(acp_finalize(), 0);
}

TEST(P1_a_member_that_leaves_at_once_does_its_part_for_those_that_start_later)
{
	setenv("ACP_TIMEOUT", "20000", 1);
	members_run(RANKS, PER_NODE, leave_in_turn);
}

/* The others have ended the round: one that begins it waits for a limited time, and goes on. */
static void begin_too_late(void)
{
	acpx_group_t group;
	acpx_coll_t coll;
	bool late;

	begin();
	group = world();
	late = acp_rank() == LATE;
	CHECK_EQ(barrier(group, &coll), 0);
	CHECK_EQ(acp_sync(), 0);
	if (late)
		sleep_ms(3 * TIMEOUT);
	CHECK_EQ(acpx_coll_start(coll), 0);
	CHECK_EQ(late ? acpx_coll_wait(coll, 500000000) : -ETIMEDOUT, -ETIMEDOUT);
	CHECK_EQ(acp_reset(acp_rank()), 0);
	check_ended(coll, -ECANCELED);
	CHECK_EQ(acpx_group_free(group), 0);
	group = world();
	CHECK_EQ(acpx_barrier(group), 0);
	CHECK_EQ(acpx_group_free(group), 0);
	end();
}

TEST(P1_a_member_that_starts_what_others_have_left_is_not_held_up)
{
	setenv("ACP_TIMEOUT", "3000", 1);
	members_run(RANKS, PER_NODE, begin_too_late);
}

/* ---- Memory ---- */

static void create_group(acpx_group_t whole, int which)
{
	static const int mixed[] = { 5, 0, 7, 2, 3 };
	acpx_group_t group = NULL;

	if (which == 0)
		CHECK_EQ(acpx_group_strided(RANKS - 1, -2, RANKS / 2, &group), 0);
	else if (which == 1)
		CHECK_EQ(acpx_group_list(mixed, 5, &group), 0);
	else
		CHECK_EQ(acpx_group_split(whole, acp_rank() % 3, -acp_rank(), &group), 0);
	CHECK_EQ(acpx_group_size(group), which == 0 ? RANKS / 2 : which == 1 ? 5 :
		 acp_rank() % 3 == 2 ? 2 : 3);
	CHECK_EQ(acpx_group_free(group), 0);
}

/* To split takes communication: brief tests do that less often. */
static void many_groups(void)
{
	struct usage before;
	acpx_group_t whole;
	int i;

	member_init();
	whole = world();
	for (i = 0; i < 30; i++)
		create_group(whole, i % 3);
	before = usage();
	for (i = 0; i < 1000; i++)
		create_group(whole, test_short() && i % 5 ? i % 2 : i % 3);
	check_back(&before, SLACK);
	CHECK_EQ(acpx_group_free(whole), 0);
	CHECK_EQ(acp_finalize(), 0);
}

TEST_LONG(memory_comes_back_when_a_thousand_groups_are_freed, PATIENCE_LONG_TEST)
{
	members_run(RANKS, PER_NODE, many_groups);
}

/* The table of STags grows by 8 KiB for 128 collectives, until all have been used. */
static void many_collectives(void)
{
	const int turns = test_short() ? 6 : 100;
	struct usage before;
	acpx_group_t group;
	int i;

	begin();
	group = world();
	for (i = 0; i < 3; i++)
		run_all_once(group);
	before = usage();
	for (i = 0; i < turns; i++)
		run_all_once(group);
	check_back(&before, ((size_t)turns * ALL / 128 + 1) * 8300 + SLACK);
	CHECK_EQ(acpx_group_free(group), 0);
	end();
}

TEST_LONG(memory_comes_back_when_collectives_are_freed, PATIENCE_LONG_TEST)
{
	members_run(RANKS, PER_NODE, many_collectives);
}
