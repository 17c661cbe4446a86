// SPDX-License-Identifier: MIT
/* selftest: cpus=2 leaks */
/*
 * Commands that wait for a word of their rank's memory (ACP_OP_WAIT): which writes end them, what
 * is ordered behind them, what is refused, and what ends them otherwise.
 */
#include "isolated.h"

#include <pthread.h>
#include <sys/wait.h>

#include "rank.h"

#define RANKS	3
#define WORD	256			/* offset of the word in the heap of rank 1 */
#define LONG	32768			/* bytes: copied by the workqueue */
#define MANY	1000
#define DEPTH	2048

static struct rank r[RANKS];
static struct acp_watch *watch[RANKS];

static struct acp_watch *map_watch(uint32_t i)
{
	char *page = rank_map(r[i].fd, ACP_MAP_LIBRARY, i, PAGE, PROT_READ | PROT_WRITE);

	return (struct acp_watch *)(void *)(page + ACP_WATCH_OFFSET);
}

static void open_rank(uint32_t i, uint32_t nprocs)
{
	struct setup s;

	setup_local(&s, i, nprocs);
	s.join.depth = DEPTH;
	if (i)
		s.join.job = r[0].join.job;	/* also in a child process */
	rank_open(&r[i], &s);
}

static void begin(void)
{
	uint32_t i;

	for (i = 0; i < RANKS; i++) {
		open_rank(i, RANKS);
		watch[i] = map_watch(i);
	}
}

/* Nothing is left of waits. */
static void check_marks(void)
{
	uint32_t i, j;

	for (i = 0; i < RANKS; i++) {
		CHECK_EQ(watch[i]->waits, 0);
		for (j = 0; j < ACP_WATCH_LINES; j++)
			CHECK_EQ(watch[i]->lines[j], 0);
	}
}

static uint64_t *word(uint64_t offset)
{
	return (uint64_t *)(void *)(r[1].heap + offset);
}

static void store(uint64_t offset, uint64_t value)
{
	__atomic_store_n(word(offset), value, __ATOMIC_SEQ_CST);
}

static uint64_t wait_word(struct rank *q, uint64_t ga, uint64_t value, uint64_t order)
{
	const struct acp_sqe e = {
		.op = ACP_OP_WAIT, .src = ga, .a = value, .order = order,
		.seen = rank_completed(q),
	};

	return rank_submit(q, &e);
}

static uint64_t wait_here(uint64_t value)
{
	return wait_word(&r[1], heap_ga(&r[1], WORD), value, 0);
}

static bool is_pending(struct rank *q, uint64_t ticket)
{
	return rank_wait(q, ticket, 0) == -1 && rank_completed(q) < ticket;
}

static int wake(const struct rank *by)
{
	struct acp_wake w = { .size = sizeof(w), .rank = 1 };

	return ioctl(by->fd, ACP_IOC_WAKE, &w);
}

/* Wait until the command is complete, without a call on its queue. */
static int completes(struct rank *q, uint64_t ticket)
{
	struct patience p = patience_begin(PATIENCE_SOON);

	while (rank_completed(q) < ticket)
		CHECK(!patience_over(&p));
	return q->cq->status[ticket & (q->join.depth - 1)];
}

/* ---- When it ends ---- */

TEST(ends_at_once_if_the_word_has_reached_the_value)
{
	static const struct {
		uint64_t word, value;
		bool ends;
	} all[] = {
		{ 0, 0, true }, { 5, 5, true }, { 6, 5, true }, { 4, 5, false },
		{ 0, ~0ULL, true }, { 2, ~0ULL - 7, true }, { ~0ULL, 0, false },
		{ ~0ULL - 7, 2, false }, { 1ULL << 61, 1, true }, { 0, 1ULL << 63, false },
		{ (1ULL << 63) + 1, 1, false },
		{ (1ULL << 61) - 1, 0, true }, { 1ULL << 63, (1ULL << 63) - 1, true },
	};
	uint64_t ticket;
	size_t i;

	begin();
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		store(WORD, all[i].word);
		ticket = wait_here(all[i].value);
		if (!all[i].ends) {
			CHECK(is_pending(&r[1], ticket));
			CHECK_EQ(watch[1]->waits, 1);
			store(WORD, all[i].value);
			CHECK_EQ(wake(&r[0]), 0);
		}
		CHECK_EQ(completes(&r[1], ticket), ACP_ST_OK);
	}
	check_marks();
}

static struct memory m;

static int put_word(void)
{
	*(uint64_t *)(void *)r[0].heap = 7;
	return rank_do_copy(&r[0], heap_ga(&r[1], WORD), heap_ga(&r[0], 0), 8);
}

static int put_long(void)
{
	*(uint64_t *)(void *)(r[0].heap + WORD) = 7;
	return rank_do_copy(&r[0], heap_ga(&r[1], 0), heap_ga(&r[0], 0), LONG);
}

static int put_strided(void)
{
	const struct acp_sqe e = {
		.op = ACP_OP_STRIDED, .dst = heap_ga(&r[1], WORD - 64), .src = heap_ga(&r[0], 0),
		.size = ACP_BLOCKS(8, 4), .a = 64, .b = 8, .seen = rank_completed(&r[0]),
	};

	*(uint64_t *)(void *)(r[0].heap + 8) = 7;
	return rank_await(&r[0], rank_submit(&r[0], &e), PATIENCE_SOON);
}

static int signal_word(void)
{
	const struct acp_sqe e = {
		.op = ACP_OP_COPY_ADD, .dst = heap_ga(&r[1], 0), .src = heap_ga(&r[0], 0),
		.size = 64, .a = heap_ga(&r[1], WORD), .b = 7, .seen = rank_completed(&r[0]),
	};

	return rank_await(&r[0], rank_submit(&r[0], &e), PATIENCE_SOON);
}

static int get_word(void)
{
	struct rank further;
	int status;

	*(uint64_t *)(void *)r[0].heap = 7;
	rank_attach(&further, &r[1]);
	status = rank_do_copy(&further, heap_ga(&r[1], WORD), heap_ga(&r[0], 0), 8);
	rank_detach(&further);
	return status;
}

static int add_word(void)
{
	return rank_do_atomic(&r[0], ACP_OP_ADD8, heap_ga(&r[0], 64), heap_ga(&r[1], WORD), 7, 0);
}

static int result_of_atomic(void)
{
	*(uint64_t *)(void *)(r[0].heap + 64) = 7;
	return rank_do_atomic(&r[0], ACP_OP_ADD8, heap_ga(&r[1], WORD), heap_ga(&r[0], 64), 1, 0);
}

static int store_and_wake(void)
{
	store(WORD, 7);
	return wake(&r[0]);
}

static int own_store_and_wake(void)
{
	store(WORD, 7);
	return wake(&r[1]);
}

TEST(ends_after_each_way_to_write_the_word)
{
	static int (*const ways[])(void) = {
		put_word, put_long, put_strided, signal_word, get_word, add_word, result_of_atomic,
		store_and_wake, own_store_and_wake,
	};
	uint64_t ticket, i;

	begin();
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		store(WORD, 0);
		ticket = wait_here(7);
		CHECK(is_pending(&r[1], ticket));
		CHECK_EQ(ways[i](), 0);
		CHECK_EQ(completes(&r[1], ticket), ACP_ST_OK);
		check_marks();
	}
}

/* Every wait learns it, whether it names ranks or not, at once or later. */
TEST(a_revoked_word_ends_it)
{
	struct acp_sqe e = { .op = ACP_OP_WAIT, .a = 1, .size = ACP_WAIT_RANKS(0, 2) };
	uint64_t ticket;

	begin();
	e.src = heap_ga(&r[1], WORD);
	store(WORD, ACP_WORD_REVOKED);
	CHECK_EQ(completes(&r[1], wait_here(1)), ACP_ST_ORDER);
	CHECK_EQ(completes(&r[1], rank_submit(&r[1], &e)), ACP_ST_ORDER);
	store(WORD, 0);
	ticket = wait_here(1);
	CHECK(is_pending(&r[1], ticket));
	store(WORD, ACP_WORD_REVOKED + 3);
	CHECK_EQ(wake(&r[0]), 0);
	CHECK_EQ(completes(&r[1], ticket), ACP_ST_ORDER);
	check_marks();
}

/* The word of a rank of this node, revoked here. */
TEST(a_failure_within_the_node_revokes)
{
	uint64_t failed, ticket = 0, i;
	struct acp_sqe e;

	begin();
	failed = rank_copy(&r[0], heap_ga(&r[0], r[0].join.heap_size), heap_ga(&r[0], 0), 8, 0);
	CHECK_EQ(completes(&r[0], failed), ACP_ST_RANGE);
	for (i = 0; i < 2; i++) {
		store(WORD, 0);
		ticket = wait_here(1);
		CHECK(is_pending(&r[1], ticket));
		e = (struct acp_sqe){
			.op = i ? ACP_OP_COPY_ADD : ACP_OP_ADD8, .flags = ACP_SQE_REVOKE,
			.dst = heap_ga(&r[0], 64), .src = heap_ga(i ? &r[0] : &r[1], WORD),
			.size = i ? 64 : 0, .a = i ? heap_ga(&r[1], WORD) : 1, .b = i,
			.order = failed, .seen = failed - 1,
		};
		CHECK_EQ(completes(&r[0], rank_submit(&r[0], &e)), ACP_ST_OK);
		CHECK_EQ(completes(&r[1], ticket), ACP_ST_ORDER);
	}
	check_marks();
}

/* Nobody need tell the kernel before: it looks when an earlier command ends, too. */
TEST(looks_when_its_turn_comes)
{
	uint64_t first, second;

	begin();
	first = wait_word(&r[1], heap_ga(&r[1], WORD), 1, 0);
	second = wait_word(&r[1], heap_ga(&r[1], WORD + 128), 1, 0);
	CHECK(is_pending(&r[1], first));
	store(WORD + 128, 1);
	store(WORD, 1);
	CHECK_EQ(wake(&r[0]), 0);
	CHECK_EQ(completes(&r[1], first), ACP_ST_OK);
	CHECK_EQ(completes(&r[1], second), ACP_ST_OK);
	check_marks();
}

/* Writes to other lines, and to the word but not to the value, leave it. */
TEST(other_writes_do_not_end_it)
{
	uint64_t ticket;

	begin();
	*(uint64_t *)(void *)r[0].heap = 6;
	ticket = wait_here(7);
	CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[1], WORD), heap_ga(&r[0], 0), 8), ACP_ST_OK);
	CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[1], WORD + 8), heap_ga(&r[0], 0), 56), ACP_ST_OK);
	CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[1], 0), heap_ga(&r[0], 0), 64), ACP_ST_OK);
	CHECK(is_pending(&r[1], ticket));
	CHECK_EQ(rank_do_atomic(&r[0], ACP_OP_ADD8, heap_ga(&r[0], 64), heap_ga(&r[1], WORD), 1,
				0), ACP_ST_OK);
	CHECK_EQ(completes(&r[1], ticket), ACP_ST_OK);
}

/* ---- What is refused ---- */

static int refused(struct acp_sqe e)
{
	e.op = ACP_OP_WAIT;
	e.seen = rank_completed(&r[1]);
	return rank_await(&r[1], rank_submit(&r[1], &e), PATIENCE_SOON);
}

TEST(wrong_entries_are_refused)
{
	uint64_t good, heap;

	begin();
	good = heap_ga(&r[1], WORD);
	heap = r[1].join.heap_size;
	CHECK_EQ(refused((struct acp_sqe){ .src = good }), ACP_ST_OK);
	CHECK_EQ(refused((struct acp_sqe){ .src = good, .dst = good }), ACP_ST_RANK);
	CHECK_EQ(refused((struct acp_sqe){ .src = good, .size = r[1].layout.nprocs + 1 }),
		 ACP_ST_RANK);
	CHECK_EQ(refused((struct acp_sqe){ .src = good, .b = ACP_WAIT_RANKS(-1, 1000) }),
		 ACP_ST_RANK);
	CHECK_EQ(refused((struct acp_sqe){ .src = good, .b = ACP_WAIT_RANKS(0, 2) }), ACP_ST_OK);
	CHECK_EQ(refused((struct acp_sqe){ .src = good, .flags = ACP_SQE_REVOKE }), ACP_ST_OP);
	CHECK_EQ(refused((struct acp_sqe){ .src = good, .flags = ACP_SQE_RETRY }), ACP_ST_OP);
	CHECK_EQ(refused((struct acp_sqe){ .src = 0 }), ACP_ST_GA);
	CHECK_EQ(refused((struct acp_sqe){ .src = good + 4 }), ACP_ST_ALIGN);
	CHECK_EQ(refused((struct acp_sqe){ .src = heap_ga(&r[0], WORD) }), ACP_ST_ACCESS);
	CHECK_EQ(refused((struct acp_sqe){ .src = heap_ga(&r[1], heap) }), ACP_ST_RANGE);
	CHECK_EQ(refused((struct acp_sqe){ .src = heap_ga(&r[1], heap - 8) }), ACP_ST_OK);
	CHECK_EQ(refused((struct acp_sqe){ .src = rank_ga(&r[1], 1, ACP_STAG_USER, 0) }),
		 ACP_ST_STAG);
	check_marks();
}

TEST(registered_memory_needs_no_rights)
{
	struct rank *q = &r[1];
	uint64_t ticket;

	begin();
	CHECK_EQ(rank_register(q, &m, pages(PAGE, PROT_READ), PAGE, ACP_ACCESS_RO), 0);
	CHECK_EQ(rank_await(q, wait_word(q, memory_ga(&m, 8), 0, 0), PATIENCE_SOON), ACP_ST_OK);
	CHECK_EQ(rank_register(q, &m, pages(PAGE, PROT_READ | PROT_WRITE), PAGE, 0), 0);
	ticket = wait_word(q, memory_ga(&m, 8), 3, 0);
	CHECK(is_pending(q, ticket));
	__atomic_store_n((uint64_t *)(void *)m.addr + 1, 3, __ATOMIC_SEQ_CST);
	CHECK_EQ(wake(q), 0);
	CHECK_EQ(completes(q, ticket), ACP_ST_OK);
}

/* ---- Order ---- */

TEST(what_is_ordered_behind_it_starts_when_it_ends)
{
	uint64_t wait, behind, free;

	begin();
	store(8, 1);
	wait = wait_here(1);
	behind = rank_copy(&r[1], heap_ga(&r[2], 0), heap_ga(&r[1], 8), 8, wait);
	free = rank_copy(&r[1], heap_ga(&r[2], 64), heap_ga(&r[1], 8), 8, 0);
	CHECK(is_pending(&r[1], wait));
	CHECK_EQ(*(uint64_t *)(void *)(r[2].heap + 64), 1);	/* it has started, and ended */
	CHECK_EQ(*(uint64_t *)(void *)r[2].heap, 0);
	store(8, 2);
	CHECK_EQ(add_word(), ACP_ST_OK);
	CHECK_EQ(completes(&r[1], free), ACP_ST_OK);
	CHECK(rank_completed(&r[1]) >= behind);
	CHECK_EQ(*(uint64_t *)(void *)r[2].heap, 2);
}

/* The commands of all ranks are there before the first counter moves. */
TEST(a_chain_through_three_ranks)
{
	const uint64_t rounds = 50;
	uint64_t i, round, t, last[RANKS] = { 0 };

	begin();
	for (round = 1; round <= rounds; round++) {
		for (i = 0; i < RANKS; i++) {
			struct rank *q = &r[i], *to = &r[(i + 1) % RANKS];

			t = wait_word(q, heap_ga(q, WORD), round, last[i]);
			t = rank_copy(q, heap_ga(to, 1024), heap_ga(q, 1024), 512, t);
			last[i] = rank_atomic(q, ACP_OP_ADD8, heap_ga(q, 0), heap_ga(to, WORD), 1,
					      0, t);
		}
	}
	fill(r[0].heap + 1024, 512, 7);
	CHECK_EQ(rank_completed(&r[1]), 1);
	/* Rank 0 begins the first round; the others are begun by its predecessor. */
	__atomic_store_n((uint64_t *)(void *)(r[0].heap + WORD), 1, __ATOMIC_SEQ_CST);
	rank_await(&r[0], 1, 0);
	CHECK_EQ(ioctl(r[1].fd, ACP_IOC_WAKE, &(struct acp_wake){ .size = 8, .rank = 0 }), 0);
	for (i = 0; i < RANKS; i++) {
		CHECK_EQ(completes(&r[i], last[i]), ACP_ST_OK);
		CHECK_EQ(r[i].cq->failed, 0);
		CHECK(filled(r[i].heap + 1024, 512, 7));
	}
	CHECK_EQ(*(uint64_t *)(void *)(r[0].heap + WORD), rounds + 1);
	check_marks();
}

/* ---- Many ---- */

/* Each ends at its value, not earlier; the ring has more than the kernel takes at a time. */
TEST(many_waits_for_one_counter_end_at_their_values)
{
	uint64_t first, i;

	begin();
	first = wait_here(1);
	for (i = 2; i <= MANY; i++)
		CHECK_EQ(wait_here(i), first + i - 1);
	for (i = 1; i <= MANY; i++) {
		CHECK(is_pending(&r[1], first + i - 1));
		CHECK_EQ(rank_do_atomic(&r[0], ACP_OP_ADD8, heap_ga(&r[0], 64),
					heap_ga(&r[1], WORD), 1, 0), ACP_ST_OK);
		CHECK_EQ(completes(&r[1], first + i - 1), ACP_ST_OK);
		CHECK_EQ(rank_completed(&r[1]), first + i - 1);
	}
	CHECK_EQ(r[1].cq->failed, 0);
	check_marks();
}

TEST(queues_of_a_rank_wait_for_one_word)
{
	struct rank further[8];
	uint64_t ticket[8], own, i;

	begin();
	own = wait_here(2);
	for (i = 0; i < 8; i++) {
		rank_attach(&further[i], &r[1]);
		ticket[i] = wait_word(&further[i], heap_ga(&r[1], WORD), 1 + i % 2, 0);
		CHECK(is_pending(&further[i], ticket[i]));
	}
	CHECK_EQ(watch[1]->waits, 9);
	CHECK_EQ(watch[1]->lines[ACP_WATCH_LINE(WORD)], 9);
	store(WORD, 1);
	CHECK_EQ(wake(&r[0]), 0);
	for (i = 0; i < 8; i++)
		CHECK(i % 2 ? is_pending(&further[i], ticket[i]) :
			      completes(&further[i], ticket[i]) == ACP_ST_OK);
	CHECK_EQ(watch[1]->waits, 5);
	store(WORD, 2);
	CHECK_EQ(wake(&r[0]), 0);
	for (i = 1; i < 8; i += 2)
		CHECK_EQ(completes(&further[i], ticket[i]), ACP_ST_OK);
	CHECK_EQ(completes(&r[1], own), ACP_ST_OK);
	check_marks();
}

/* ---- Other ends ---- */

TEST(memory_that_goes_ends_it)
{
	struct rank *q = &r[1];
	uint64_t wait, behind;
	uint32_t left;

	begin();
	memory_open(q, &m, PAGE);
	wait = wait_word(q, memory_ga(&m, 0), 1, 0);
	behind = rank_copy(q, heap_ga(q, 0), heap_ga(q, 8), 8, wait);
	CHECK(is_pending(q, wait));
	CHECK_EQ(rank_unregister(q, m.reg.key, &left), 0);
	CHECK_EQ(completes(q, wait), ACP_ST_STAG);
	CHECK_EQ(completes(q, behind), ACP_ST_ORDER);
	check_marks();
}

TEST(memory_that_is_unmapped_ends_it)
{
	struct rank *q = &r[1];
	uint64_t wait;

	begin();
	memory_open(q, &m, PAGE);
	wait = wait_word(q, memory_ga(&m, 0), 1, 0);
	CHECK(is_pending(q, wait));
	CHECK_EQ(munmap(m.addr, m.size), 0);
	CHECK_EQ(completes(q, wait), ACP_ST_STAG);
	check_marks();
}

TEST(a_queue_that_is_closed_leaves_no_mark)
{
	struct rank further;
	uint64_t ticket;

	begin();
	rank_attach(&further, &r[1]);
	wait_word(&further, heap_ga(&r[1], WORD), 1, 0);
	wait_word(&further, heap_ga(&r[1], WORD), 2, 0);
	CHECK_EQ(watch[1]->waits, 1);
	rank_detach(&further);
	check_marks();
	ticket = wait_here(1);
	CHECK_EQ(add_word(), ACP_ST_OK);
	CHECK_EQ(completes(&r[1], ticket), ACP_ST_OK);
}

TEST(an_abort_ends_it)
{
	uint64_t wait;

	begin();
	wait = wait_here(1);
	CHECK(is_pending(&r[1], wait));
	CHECK_EQ(ioctl(r[0].fd, ACP_IOC_ABORT), 0);
	CHECK_EQ(completes(&r[1], wait), ACP_ST_ABORT);
	CHECK(r[1].cq->flags & ACP_CQ_ABORTED);
}

static void fill_with_waits(struct rank *q)
{
	uint64_t i;

	for (i = 1; i <= MANY; i++) {
		uint64_t t = wait_word(q, heap_ga(q, WORD), i, 0);

		if (i < MANY / 2)
			rank_copy(q, heap_ga(q, 0), heap_ga(q, 64), 8, t);
	}
}

/* A rank leaves, and a process is killed; neighbours write meanwhile, and go on. */
TEST(ranks_leave_with_waits)
{
	pid_t child;
	int status;

	open_rank(0, 2);
	child = fork();
	if (!child) {
		open_rank(1, 2);
		fill_with_waits(&r[1]);
		raise(SIGSTOP);
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
	CHECK(WIFSTOPPED(status));
	CHECK_EQ(rank_do_atomic(&r[0], ACP_OP_ADD8, heap_ga(&r[0], 64),
				rank_ga(&r[0], 1, ACP_STAG_HEAP, WORD), 1, 0), ACP_ST_OK);
	kill(child, SIGKILL);
	CHECK_EQ(waitpid(child, &status, 0), child);
	fill_with_waits(&r[0]);
	rank_close(&r[0]);
}

/* ---- No wake-up is lost ---- */

static uint64_t goal;

/* Half of the writers store and wake, as neighbours do; the others use the kernel. */
static void *count_up(void *arg)
{
	struct rank *by = arg;
	uint64_t i;

	for (i = 0; i < goal / 2; i++) {
		if (by == &r[0]) {
			CHECK_EQ(rank_do_atomic(by, ACP_OP_ADD8, heap_ga(by, 64),
						heap_ga(&r[1], WORD), 1, 0), ACP_ST_OK);
			continue;
		}
		__atomic_fetch_add(word(WORD), 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&watch[1]->waits, __ATOMIC_SEQ_CST))
			CHECK_EQ(wake(by), 0);
	}
	return NULL;
}

TEST(no_wake_up_is_lost)
{
	pthread_t writers[2];
	uint64_t i, seed = 1, next = 0, ticket = 0, value = 0;

	goal = getenv("ACP_TEST_SHORT") ? 4000 : 40000;
	begin();
	for (i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&writers[i], NULL, count_up, &r[2 * i]), 0);
	while (value < goal) {
		value += next_random(&seed) % 4;
		value = value < goal ? value : goal;
		ticket = wait_here(value);
		if (!(++next % 32))
			CHECK_EQ(completes(&r[1], ticket), ACP_ST_OK);
		if (!(next % 32))
			CHECK(*word(WORD) >= value);
	}
	CHECK_EQ(completes(&r[1], ticket), ACP_ST_OK);
	for (i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(writers[i], NULL), 0);
	CHECK_EQ(r[1].cq->failed, 0);
	check_marks();
}
