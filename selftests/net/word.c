// SPDX-License-Identifier: MIT
/* selftest: cpus=2 leaks */
/*
 * Commands that wait for a word (ACP_OP_WAIT) which other nodes write: what is ordered behind them
 * goes out without the process, no write is missed, and the work per write is bounded.
 */
#include "../dev/isolated.h"

#include <pthread.h>
#include <sys/wait.h>

#include "nodes.h"

#define NODES	3
#define WORD	256			/* offset of the word in each heap */
#define DATA	4096
#define SIZE	3000			/* of a piece: more than a frame */
#define CROWD	32

static struct nodes n;
static struct rank r[NODES];

static void begin(const char *netem)
{
	const struct acp_join wish = { .heap_size = 1 << 20, .depth = 2048 };

	nodes_open(&n, NODES, 1, false);
	nodes_ranks_like(&n, r, NODES, &wish);
	if (netem)
		nodes_impair_all(&n, netem);
}

static uint64_t *word(uint32_t rank, uint64_t offset)
{
	return (uint64_t *)(void *)(r[rank].heap + offset);
}

static uint64_t wait_word(struct rank *q, uint64_t value, uint64_t order)
{
	const struct acp_sqe e = {
		.op = ACP_OP_WAIT, .src = heap_ga(q, WORD), .a = value, .order = order,
		.seen = rank_completed(q),
	};

	return rank_submit(q, &e);
}

/* Add to the word of another rank; the former value goes to the end of the own heap. */
static uint64_t add_to(struct rank *by, const struct rank *to, uint64_t value, uint64_t order)
{
	return rank_atomic(by, ACP_OP_ADD8, heap_ga(by, 8192), heap_ga(to, WORD), value, 0, order);
}

static int completes(struct rank *q, uint64_t ticket)
{
	struct patience p = patience_begin(PATIENCE_WORK);

	while (rank_completed(q) < ticket)
		CHECK(!patience_over(&p));
	return q->cq->status[ticket & (q->join.depth - 1)];
}

/* ---- Which writes end it ---- */

static int put_word(void)
{
	*word(0, 0) = 7;
	return rank_do_copy(&r[0], heap_ga(&r[1], WORD), heap_ga(&r[0], 0), 8);
}

static int put_much(void)
{
	*word(0, WORD) = 7;
	return rank_do_copy(&r[0], heap_ga(&r[1], 0), heap_ga(&r[0], 0), 60000);
}

static int add_word(void)
{
	return rank_await(&r[0], add_to(&r[0], &r[1], 7, 0), PATIENCE_SOON);
}

static int signal_word(void)
{
	const struct acp_sqe e = {
		.op = ACP_OP_COPY_ADD, .dst = heap_ga(&r[1], DATA), .src = heap_ga(&r[0], DATA),
		.size = SIZE, .a = heap_ga(&r[1], WORD), .b = 7, .seen = rank_completed(&r[0]),
	};

	return rank_await(&r[0], rank_submit(&r[0], &e), PATIENCE_SOON);
}

/* Rank 2 has the data, rank 0 asks it to copy them. */
static int third_party(void)
{
	*word(2, 0) = 7;
	return rank_do_copy(&r[0], heap_ga(&r[1], WORD), heap_ga(&r[2], 0), 8);
}

static int words_together(void)
{
	uint64_t i, t = 0;

	for (i = 0; i < 16; i++) {
		*word(0, 8 * i) = 7;
		t = rank_copy(&r[0], heap_ga(&r[1], WORD - 64 + 8 * i), heap_ga(&r[0], 8 * i), 8,
			      0);
	}
	return rank_await(&r[0], t, PATIENCE_SOON);
}

TEST(ends_after_each_way_to_write_the_word)
{
	static int (*const ways[])(void) = {
		put_word, put_much, add_word, signal_word, third_party, words_together,
	};
	uint64_t ticket;
	size_t i;

	begin(NULL);
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		__atomic_store_n(word(1, WORD), 0, __ATOMIC_SEQ_CST);
		ticket = wait_word(&r[1], 7, 0);
		CHECK_EQ(rank_wait(&r[1], ticket, 0), -1);
		CHECK_EQ(ways[i](), ACP_ST_OK);
		CHECK_EQ(completes(&r[1], ticket), ACP_ST_OK);
	}
}

/* ---- Without the process ---- */

static void be_stopped(void)
{
	struct setup s;
	uint64_t t;

	nodes_setup(&n, &s, 1, NODES);
	s.join.job = r[0].join.job;
	nodes_join(&n, &r[1], &s);
	fill(r[1].heap + DATA, SIZE, 5);
	t = wait_word(&r[1], 1, 0);
	t = rank_copy(&r[1], rank_ga(&r[1], 2, ACP_STAG_HEAP, DATA), heap_ga(&r[1], DATA), SIZE, t);
	rank_atomic(&r[1], ACP_OP_ADD8, heap_ga(&r[1], 0),
		    rank_ga(&r[1], 2, ACP_STAG_HEAP, WORD), 1, 0, t);
	raise(SIGSTOP);
	_exit(0);
}

static void join(uint32_t rank)
{
	struct setup s;

	nodes_setup(&n, &s, rank, NODES);
	if (rank)
		s.join.job = r[0].join.job;
	nodes_join(&n, &r[rank], &s);
}

static pid_t start_stopped(void)
{
	pid_t child;
	int status;

	nodes_open(&n, NODES, 1, false);
	join(0);
	join(2);
	child = fork();
	CHECK(child >= 0);
	if (!child)
		be_stopped();
	CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
	CHECK(WIFSTOPPED(status));
	return child;
}

TEST(a_stopped_process_forwards)
{
	pid_t child = start_stopped();
	uint64_t arrived = wait_word(&r[2], 1, 0);
	int status;

	CHECK_EQ(rank_wait(&r[2], arrived, 0), -1);
	CHECK_EQ(rank_do_atomic(&r[0], ACP_OP_ADD8, heap_ga(&r[0], 0),
				rank_ga(&r[0], 1, ACP_STAG_HEAP, WORD), 1, 0), ACP_ST_OK);
	CHECK_EQ(completes(&r[2], arrived), ACP_ST_OK);
	CHECK(filled(r[2].heap + DATA, SIZE, 5));
	CHECK_EQ(waitpid(child, &status, WNOHANG | WCONTINUED), 0);	/* it is still stopped */
	kill(child, SIGKILL);
	CHECK_EQ(waitpid(child, &status, 0), child);
}

/* It dies while its word is written, or before. */
TEST(a_process_is_killed_while_it_waits)
{
	pid_t child = start_stopped();
	uint64_t t = rank_atomic(&r[0], ACP_OP_ADD8, heap_ga(&r[0], 0),
				 rank_ga(&r[0], 1, ACP_STAG_HEAP, WORD), 0, 0, 0);
	int status;

	kill(child, SIGKILL);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(rank_await(&r[0], t, PATIENCE_SOON) >= 0);
	CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[2], 0), heap_ga(&r[0], 0), 8), ACP_ST_OK);
}

/* All is issued before the first counter moves: pieces go round, with their counter behind them. */
static void go_round(uint64_t rounds)
{
	uint64_t i, k, t, last[NODES] = { 0 };

	for (k = 1; k <= rounds; k++) {
		for (i = 0; i < NODES; i++) {
			struct rank *q = &r[i], *to = &r[(i + 1) % NODES];

			t = wait_word(q, k, last[i]);
			t = rank_copy(q, heap_ga(to, DATA), heap_ga(q, DATA), SIZE, t);
			last[i] = add_to(q, to, 1, t);
		}
	}
	fill(r[0].heap + DATA, SIZE, 9);
	for (i = 0; i < NODES; i++)
		CHECK(rank_wait(&r[i], 2, 0) == -1);
	CHECK(add_to(&r[2], &r[0], 1, 0) > last[2]);	/* not ordered behind what waits */
	for (i = 0; i < NODES; i++) {
		CHECK_EQ(completes(&r[i], last[i]), ACP_ST_OK);
		CHECK_EQ(r[i].cq->failed, 0);
		CHECK(filled(r[i].heap + DATA, SIZE, 9));
	}
	CHECK_EQ(*word(0, WORD), rounds + 1);
}

TEST(a_chain_through_three_nodes)
{
	begin(NULL);
	go_round(60);
}

TEST_LONG(a_chain_over_a_network_that_loses, PATIENCE_LONG_TEST)
{
	begin("loss 5% duplicate 5%");
	go_round(30);
}

/* ---- No write is missed ---- */

static uint64_t goal;

static void *count_up(void *arg)
{
	struct rank *by = arg;
	uint64_t i, t = 0;

	for (i = 0; i < goal / 2; i++) {
		t = add_to(by, &r[1], 1, 0);
		if (i % 8 == 7)
			CHECK_EQ(rank_await(by, t, PATIENCE_WORK), ACP_ST_OK);
	}
	CHECK_EQ(rank_await(by, t, PATIENCE_WORK), ACP_ST_OK);
	return NULL;
}

TEST_LONG(no_write_is_missed, PATIENCE_LONG_TEST)
{
	uint64_t seed = 3, value = 0, ticket = 0, i = 0;
	pthread_t writers[2];

	goal = getenv("ACP_TEST_SHORT") ? 4000 : 40000;
	begin(NULL);
	CHECK_EQ(pthread_create(&writers[0], NULL, count_up, &r[0]), 0);
	CHECK_EQ(pthread_create(&writers[1], NULL, count_up, &r[2]), 0);
	while (value < goal) {
		value += next_random(&seed) % 4;
		value = value < goal ? value : goal;
		ticket = wait_word(&r[1], value, 0);
		if (++i % 64)
			continue;
		CHECK_EQ(completes(&r[1], ticket), ACP_ST_OK);
		CHECK(*word(1, WORD) >= value);
	}
	CHECK_EQ(completes(&r[1], ticket), ACP_ST_OK);
	CHECK_EQ(pthread_join(writers[0], NULL), 0);
	CHECK_EQ(pthread_join(writers[1], NULL), 0);
	CHECK_EQ(r[1].cq->failed, 0);
}

/* ---- Others ---- */

static struct rank crowd[CROWD], putter, target;

static void join_crowd(struct rank *q, uint32_t rank)
{
	struct setup s;

	nodes_setup(&n, &s, rank, 2 * (CROWD + 1));
	s.join.depth = 1024;
	nodes_join(&n, q, &s);
}

/*
 * Ranks with rings full of waits, whose words are written: a write costs a look per queue, not one
 * per command; and poll rounds for a rank beside them neither look at words nor start anything.
 */
TEST(full_rings_of_waits_cost_a_look_per_write)
{
	const uint64_t puts = 200;
	struct count looks, commands, workers;
	uint64_t i, t, before;
	long long looked;

	nodes_open(&n, 2, 1, false);
	for (i = 0; i < CROWD; i++) {
		join_crowd(&crowd[i], i);
		for (t = 1; t < 1000; t++)
			wait_word(&crowd[i], 1000 + t, 0);
	}
	join_crowd(&putter, CROWD);
	join_crowd(&target, CROWD + 1);
	CHECK_EQ(rank_do_copy(&putter, heap_ga(&target, 0), heap_ga(&putter, 0), 8), ACP_ST_OK);
	looks = nodes_count(&n, 0, "words_checked");
	commands = nodes_count(&n, 0, "rounds_commands");
	workers = nodes_count(&n, 0, "worker_wakeups");
	for (i = 0; i < puts; i++)
		CHECK_EQ(rank_do_copy(&putter, heap_ga(&target, 0), heap_ga(&putter, 0), 8),
			 ACP_ST_OK);
	CHECK_EQ(nodes_counter(&n, 0, "words_checked"), looks.before);
	CHECK_EQ(nodes_counter(&n, 0, "worker_wakeups"), workers.before);
	before = (uint64_t)nodes_counter(&n, 0, "commands");
	for (i = 0; i < puts; i++)
		CHECK_EQ(rank_await(&target, add_to(&target, &crowd[i % CROWD], 1, 0),
				    PATIENCE_SOON), ACP_ST_OK);
	looked = nodes_counter(&n, 0, "words_checked") - looks.before;
	CHECK(looked > 0 && looked <= (long long)puts);
	CHECK_EQ(nodes_counter(&n, 0, "commands"), before);
	CHECK(nodes_counter(&n, 0, "rounds_commands") - commands.before <= (long long)puts);
	for (i = 0; i < CROWD; i++)
		CHECK_EQ(rank_completed(&crowd[i]), 1);
	/* One write ends 1,000 commands, in steps. */
	CHECK_EQ(rank_await(&target, add_to(&target, &crowd[0], 1 << 20, 0), PATIENCE_SOON),
		 ACP_ST_OK);
	CHECK_EQ(completes(&crowd[0], crowd[0].last), ACP_ST_OK);
	CHECK_EQ(crowd[0].cq->failed, 0);
}
