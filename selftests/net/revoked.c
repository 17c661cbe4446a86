// SPDX-License-Identifier: MIT
/* selftest: cpus=2 leaks */
/*
 * Commands that wait for a word (ACP_OP_WAIT) and name the ranks that write to it end when one of
 * these is lost, and words that will not be reached are revoked (ACP_SQE_REVOKE): the failure runs
 * through all ranks of a schedule, without their processes.
 */
#include "../dev/isolated.h"

#include <sys/wait.h>

#include "nodes.h"

#define WORD	256			/* offset of the word in each heap */
#define DATA	4096
#define SIZE	3000			/* of a piece: more than a frame */
#define TIMEOUT	800			/* ms of silence */
#define CHAIN	4
#define NOBODY	(-1)

static struct nodes n;
static struct rank r[12];

static const struct acp_join wish = {
	.heap_size = 1 << 20, .depth = 512, .timeout_ms = TIMEOUT, .open_timeout_ms = 12 * TIMEOUT,
};

/* So many ranks on each of three nodes. */
static void begin(uint32_t per_node)
{
	nodes_open(&n, 3, 1, false);
	nodes_ranks_like(&n, r, 3 * per_node, &wish);
}

static uint64_t *word_of(const struct rank *q)
{
	return (uint64_t *)(void *)(q->heap + WORD);
}

/* Wait for an own word; the rank of number "by" is expected to write to it. */
static uint64_t wait_by(struct rank *q, uint64_t value, int by, uint64_t order)
{
	const struct acp_sqe e = {
		.op = ACP_OP_WAIT, .src = rank_ga(q, q->join.rank, ACP_STAG_HEAP, WORD),
		.a = value, .order = order, .seen = rank_completed(q),
		.size = ACP_WAIT_RANKS(NOBODY, by),
	};

	return rank_submit(q, &e);
}

static int completes(struct rank *q, uint64_t ticket)
{
	return rank_await(q, ticket, PATIENCE_WORK);
}

/* One more queue of a rank of node 1. */
static void attach(struct rank *further, const struct rank *q)
{
	nodes_enter(&n, 1);
	rank_attach(further, q);
	nodes_leave(&n);
}

static bool is_pending(struct rank *q, uint64_t ticket)
{
	sleep_ms(20);
	return rank_wait(q, ticket, 0) == -1;
}

static int add_to(struct rank *by, const struct rank *to, uint64_t value)
{
	return rank_do_atomic(by, ACP_OP_ADD8, heap_ga(by, 8192), heap_ga(to, WORD), value, 0);
}

static int reach(struct rank *by, const struct rank *to)
{
	return rank_do_copy(by, heap_ga(to, 64), heap_ga(by, 64), 8);
}

/* What was sent is acknowledged before, so that nothing but a wait looks for the node. */
static void unplug(uint32_t node)
{
	sleep_ms(TIMEOUT / 2);
	nodes_impair(&n, node, "loss 100%");
}

/* ---- Nodes that are lost ---- */

static void lose_node_0(bool known)
{
	struct rank other;
	uint64_t lost, kept;

	begin(1);
	if (known)
		CHECK_EQ(reach(&r[1], &r[0]), ACP_ST_OK);
	CHECK_EQ(reach(&r[1], &r[2]), ACP_ST_OK);
	attach(&other, &r[1]);
	kept = wait_by(&other, 1, 2, 0);
	lost = wait_by(&r[1], 1, 0, 0);
	CHECK(is_pending(&r[1], lost));
	unplug(0);
	CHECK_EQ(completes(&r[1], lost), ACP_ST_TIMEOUT);
	CHECK(is_pending(&other, kept));
	CHECK_EQ(add_to(&r[2], &r[1], 1), ACP_ST_OK);
	CHECK_EQ(completes(&other, kept), ACP_ST_OK);
	CHECK_EQ(nodes_counter(&n, 1, "words_lost"), 1);
}

TEST(a_silent_node_is_found_while_its_rank_is_expected)
{
	lose_node_0(true);
}

TEST(a_silent_node_is_found_that_never_spoke_before)
{
	lose_node_0(false);
}

TEST(nobody_looks_for_nodes_that_are_not_named)
{
	uint64_t t;

	begin(1);
	CHECK_EQ(reach(&r[1], &r[0]), ACP_ST_OK);
	CHECK_EQ(reach(&r[1], &r[2]), ACP_ST_OK);
	t = wait_by(&r[1], 1, 2, 0);
	unplug(0);
	sleep_ms(5 * TIMEOUT);
	CHECK(is_pending(&r[1], t));
	CHECK_EQ(nodes_counter(&n, 1, "flows_failed"), 0);
	CHECK_EQ(add_to(&r[2], &r[1], 1), ACP_ST_OK);
	CHECK_EQ(completes(&r[1], t), ACP_ST_OK);
	/* It is over: nobody looks for node 2 any more, either. */
	unplug(2);
	sleep_ms(5 * TIMEOUT);
	CHECK_EQ(nodes_counter(&n, 1, "flows_failed"), 0);
}

TEST(a_queue_that_is_closed_expects_nothing)
{
	struct rank other;
	uint64_t t;

	begin(1);
	attach(&other, &r[1]);
	t = wait_by(&other, 1, 0, 0);
	CHECK_EQ(reach(&r[1], &r[0]), ACP_ST_OK);
	CHECK(is_pending(&other, t));
	rank_detach(&other);
	unplug(0);
	sleep_ms(5 * TIMEOUT);
	CHECK_EQ(nodes_counter(&n, 1, "flows_failed"), 0);
}

/* What was lost before gets another chance, as it does for other commands. */
TEST(a_node_that_was_lost_before_may_come_back)
{
	struct rank other;
	uint64_t t;

	begin(1);
	attach(&other, &r[1]);
	CHECK_EQ(reach(&r[1], &r[0]), ACP_ST_OK);
	unplug(0);
	CHECK_EQ(reach(&r[1], &r[0]), ACP_ST_TIMEOUT);
	t = wait_by(&r[1], 1, 0, 0);
	CHECK(is_pending(&r[1], t));
	nodes_impair(&n, 0, "");
	CHECK_EQ(reach(&other, &r[0]), ACP_ST_OK);
	CHECK_EQ(add_to(&r[0], &r[1], 1), ACP_ST_OK);
	CHECK_EQ(completes(&r[1], t), ACP_ST_OK);
}

TEST(a_node_that_was_lost_before_and_stays_so)
{
	struct acp_join soon = wish;

	soon.open_timeout_ms = TIMEOUT;
	nodes_open(&n, 3, 1, false);
	nodes_ranks_like(&n, r, 3, &soon);
	unplug(0);
	CHECK_EQ(reach(&r[1], &r[0]), ACP_ST_TIMEOUT);
	CHECK_EQ(completes(&r[1], wait_by(&r[1], 1, 0, 0)), ACP_ST_TIMEOUT);
	CHECK_EQ(completes(&r[1], wait_by(&r[1], 0, 0, 0)), ACP_ST_OK);
}

/* What it has sent before may be lost; so it is lost, unless the word says otherwise. */
static uint64_t lose_meanwhile(struct rank *other)
{
	uint64_t t;

	begin(1);
	CHECK_EQ(reach(&r[1], &r[0]), ACP_ST_OK);
	attach(other, &r[1]);
	wait_by(&r[1], 1, NOBODY, 0);
	t = wait_by(&r[1], 2, 0, 0);
	CHECK(is_pending(&r[1], t));
	unplug(0);
	CHECK_EQ(reach(other, &r[0]), ACP_ST_TIMEOUT);
	nodes_impair(&n, 0, "");
	CHECK_EQ(reach(other, &r[0]), ACP_ST_OK);
	CHECK(is_pending(&r[1], t));
	return t;
}

TEST(a_node_is_lost_and_back_before_the_turn_of_the_wait)
{
	struct rank other;
	uint64_t t = lose_meanwhile(&other);

	CHECK_EQ(add_to(&other, &r[1], 1), ACP_ST_OK);
	CHECK_EQ(completes(&r[1], t), ACP_ST_TIMEOUT);
}

TEST(a_word_that_was_reached_counts_whoever_is_lost)
{
	struct rank other;
	uint64_t t = lose_meanwhile(&other);

	CHECK_EQ(add_to(&other, &r[1], 2), ACP_ST_OK);
	CHECK_EQ(completes(&r[1], t), ACP_ST_OK);
}

/* ---- Ranks that leave, of the own node and of others ---- */

/* Rank 2, on node 1, waits for one that leaves. */
static void leaves(uint32_t rank, bool before)
{
	uint64_t t = 0;

	begin(2);
	CHECK_EQ(reach(&r[2], &r[rank]), ACP_ST_OK);
	if (!before) {
		t = wait_by(&r[2], 1, (int)rank, 0);
		CHECK(is_pending(&r[2], t));
	}
	rank_close(&r[rank]);
	if (before)
		t = wait_by(&r[2], 1, (int)rank, 0);
	CHECK_EQ(completes(&r[2], t), ACP_ST_RANK);
}

TEST(a_rank_of_another_node_leaves)
{
	leaves(0, false);
}

TEST(a_rank_of_another_node_has_left)
{
	leaves(0, true);
}

TEST(a_rank_of_this_node_leaves)
{
	leaves(3, false);
}

TEST(a_rank_of_this_node_has_left)
{
	leaves(3, true);
}

TEST(a_rank_leaves_that_is_not_named)
{
	uint64_t t;

	begin(2);
	t = wait_by(&r[2], 1, 1, 0);
	rank_close(&r[0]);
	rank_close(&r[3]);
	sleep_ms(3 * TIMEOUT);
	CHECK(is_pending(&r[2], t));
	CHECK_EQ(add_to(&r[1], &r[2], 1), ACP_ST_OK);
	CHECK_EQ(completes(&r[2], t), ACP_ST_OK);
}

/* The tree of nodes by which this is told has lost the node between: 1, the parent of 5. */
TEST(a_rank_of_another_node_leaves_behind_a_lost_one)
{
	struct rank *waits = &r[4], *mortal = &r[10];	/* on nodes 2 and 5 */
	uint64_t t;

	nodes_open(&n, 6, 1, false);
	nodes_ranks_like(&n, r, 12, &wish);
	t = wait_by(waits, 1, 10, 0);
	CHECK_EQ(reach(mortal, waits), ACP_ST_OK);
	unplug(1);
	rank_close(mortal);
	CHECK_EQ(completes(waits, t), ACP_ST_RANK);
}

/* The same, and its node has not spoken with that of the wait before. */
TEST(a_rank_of_another_node_has_left_behind_a_lost_one)
{
	struct rank *waits = &r[4], *mortal = &r[10];	/* on nodes 2 and 5 */

	nodes_open(&n, 6, 1, false);
	nodes_ranks_like(&n, r, 12, &wish);
	unplug(1);
	rank_close(mortal);
	sleep_ms(TIMEOUT);
	CHECK_EQ(completes(waits, wait_by(waits, 1, 10, 0)), ACP_ST_RANK);
}

static void start_late(uint32_t rank)
{
	uint64_t t;

	nodes_open(&n, 2, 1, false);
	nodes_join_like(&n, &r[2], 2, 4, &wish);
	t = wait_by(&r[2], 1, (int)rank, 0);
	sleep_ms(2 * TIMEOUT);
	CHECK(is_pending(&r[2], t));
	nodes_join_like(&n, &r[rank], rank, 4, &wish);
	CHECK(is_pending(&r[2], t));
	CHECK_EQ(add_to(&r[rank], &r[2], 1), ACP_ST_OK);
	CHECK_EQ(completes(&r[2], t), ACP_ST_OK);
}

TEST(a_rank_of_another_node_starts_late)
{
	start_late(0);
}

TEST(a_rank_of_this_node_starts_late)
{
	start_late(3);
}

/* All six names count, and several of one rank. */
TEST(each_of_six_names_counts)
{
	uint64_t t[6];
	struct rank q[6];
	int i;

	begin(1);
	for (i = 0; i < 6; i++) {
		uint64_t name[3];

		name[0] = ACP_WAIT_RANKS(i == 0 ? 0 : 2, i == 1 ? 0 : 2);
		name[1] = ACP_WAIT_RANKS(i == 2 ? 0 : 1, i == 3 ? 0 : 2);
		name[2] = ACP_WAIT_RANKS(i == 4 ? 0 : 2, i == 5 ? 0 : 2);
		attach(&q[i], &r[1]);
		t[i] = rank_submit(&q[i], &(struct acp_sqe){
			.op = ACP_OP_WAIT, .src = heap_ga(&r[1], WORD), .a = 1, .dst = name[0],
			.size = name[1], .b = name[2], .seen = rank_completed(&q[i]) });
		CHECK(is_pending(&q[i], t[i]));
	}
	unplug(0);
	for (i = 0; i < 6; i++)
		CHECK_EQ(completes(&q[i], t[i]), ACP_ST_TIMEOUT);
}

/* ---- Words that are revoked ---- */

enum manner { ADD, COPY, WAYS };

/* Behind a ticket, add 1 to the word of a rank, or revoke it. */
static uint64_t add_or_revoke(struct rank *by, const struct rank *to, enum manner how,
			      uint64_t order)
{
	struct acp_sqe e = {
		.op = ACP_OP_ADD8, .flags = ACP_SQE_REVOKE, .dst = heap_ga(by, 8192),
		.src = heap_ga(to, WORD), .a = 1, .order = order, .seen = order - 1,
	};

	if (how == COPY) {
		e.op = ACP_OP_COPY_ADD;
		e.a = e.src;
		e.b = 1;
		e.dst = heap_ga(to, DATA);
		e.src = heap_ga(by, DATA);
		e.size = SIZE;
	}
	return rank_submit(by, &e);
}

/* The source and the destination of a copy by rank 1 that takes some time, or fails. */
struct leg {
	uint32_t from, to;
};

static uint64_t copy_leg(const struct leg *leg, bool fails)
{
	return rank_copy(&r[1], heap_ga(&r[leg->to], fails ? wish.heap_size : 3 * DATA),
			 heap_ga(&r[leg->from], 3 * DATA), 5 * SIZE, 0);
}

/* Puts and atomics to one node are fenced, gets are delegated: all must be known before. */
TEST(what_failed_is_known_before_the_word_changes)
{
	static const struct leg legs[] = {
		{ 1, 0 }, { 1, 2 }, { 0, 1 }, { 2, 1 }, { 0, 2 }, { 2, 0 }, { 0, 0 }, { 1, 1 },
	};
	uint32_t to;
	size_t i, k;

	begin(1);
	for (i = 0; i < 4 * sizeof(legs) / sizeof(legs[0]); i++) {
		const bool fails = i & 1;
		const struct leg *leg = &legs[i / 4];
		const enum manner how = i / 2 % WAYS;
		uint64_t t[3];

		for (to = 0; to < 3; to++) {
			*word_of(&r[to]) = 0;
			memset(r[to].heap + DATA, 1, SIZE);
			memset(r[1].heap + DATA, 2, SIZE);
			for (k = 0; k < 20; k++) {
				t[0] = copy_leg(leg, fails);
				t[1] = copy_leg(leg, false);
				t[2] = add_or_revoke(&r[1], &r[to], how, t[1]);
				CHECK_EQ(completes(&r[1], t[1]), ACP_ST_OK);
				CHECK_EQ(completes(&r[1], t[2]), ACP_ST_OK);
			}
			CHECK_EQ(*word_of(&r[to]), k);
			*word_of(&r[to]) = 0;
			for (k = 0; k < 20; k++) {
				t[0] = copy_leg(leg, fails);
				t[1] = add_or_revoke(&r[1], &r[to], how, t[0]);
				CHECK_EQ(completes(&r[1], t[0]), fails ? ACP_ST_RANGE : ACP_ST_OK);
				CHECK_EQ(completes(&r[1], t[1]), ACP_ST_OK);
			}
			CHECK_EQ(*word_of(&r[to]), fails ? ACP_WORD_REVOKED : k);
		}
	}
}

/* Whatever was sent or revoked before: what waits ends, and later messages change nothing. */
TEST(a_word_may_be_revoked_any_number_of_times)
{
	uint64_t failed, t, wait;
	int i;

	begin(1);
	failed = rank_copy(&r[0], heap_ga(&r[1], wish.heap_size), heap_ga(&r[0], 0), 8, 0);
	CHECK_EQ(completes(&r[0], failed), ACP_ST_RANGE);
	for (i = 1; i <= 9; i++) {
		wait = wait_by(&r[1], 1000, i % 2 ? 0 : NOBODY, 0);
		t = add_or_revoke(&r[0], &r[1], i % WAYS, failed);
		CHECK_EQ(completes(&r[0], t), ACP_ST_OK);
		CHECK_EQ(completes(&r[1], wait), ACP_ST_ORDER);
		CHECK_EQ(add_to(&r[2], &r[1], 7), ACP_ST_OK);
		CHECK_EQ(completes(&r[1], wait_by(&r[1], 5, 0, 0)), ACP_ST_ORDER);
	}
	CHECK_EQ(nodes_counter(&n, 0, "words_revoked"), 9);
}

/* A revocation has no effect but that, and needs only the right to change the word. */
TEST(only_the_word_is_revoked)
{
	struct acp_sqe e;
	uint64_t failed;

	begin(1);
	failed = rank_copy(&r[0], heap_ga(&r[1], wish.heap_size), heap_ga(&r[0], 0), 8, 0);
	CHECK_EQ(completes(&r[0], failed), ACP_ST_RANGE);
	fill(r[0].heap + DATA, SIZE, 1);
	fill(r[1].heap + DATA, SIZE, 2);
	fill(r[0].heap + 8192, 8, 3);
	CHECK_EQ(completes(&r[0], add_or_revoke(&r[0], &r[1], COPY, failed)), ACP_ST_OK);
	CHECK_EQ(completes(&r[0], add_or_revoke(&r[0], &r[1], ADD, failed)), ACP_ST_OK);
	CHECK(filled(r[1].heap + DATA, SIZE, 2) && filled(r[0].heap + 8192, 8, 3));
	e = (struct acp_sqe){
		.op = ACP_OP_ADD8, .flags = ACP_SQE_REVOKE, .dst = heap_ga(&r[0], 0), .a = 1,
		.src = heap_ga(&r[1], wish.heap_size), .order = failed, .seen = failed - 1,
	};
	CHECK_EQ(rank_await(&r[0], rank_submit(&r[0], &e), PATIENCE_SOON), ACP_ST_RANGE);
	e.src = rank_ga(&r[0], 1, ACP_STAG_USER, 0);
	CHECK_EQ(rank_await(&r[0], rank_submit(&r[0], &e), PATIENCE_SOON), ACP_ST_STAG);
	e.op = ACP_OP_COPY;
	e.a = 0;
	CHECK_EQ(rank_await(&r[0], rank_submit(&r[0], &e), PATIENCE_SOON), ACP_ST_OP);
}

/* The status of a chain (MORE) is that of its first failure; the word is revoked all the same. */
TEST(the_last_of_a_chain_revokes_and_tells_of_the_failure)
{
	struct acp_sqe e;
	uint64_t t;

	begin(1);
	e = (struct acp_sqe){
		.op = ACP_OP_COPY, .flags = ACP_SQE_MORE, .dst = heap_ga(&r[1], wish.heap_size),
		.src = heap_ga(&r[0], 0), .size = 8, .seen = rank_completed(&r[0]),
	};
	t = rank_submit(&r[0], &e);
	t = add_or_revoke(&r[0], &r[2], COPY, t);
	CHECK_EQ(completes(&r[0], t), ACP_ST_RANGE);
	CHECK_EQ(*word_of(&r[2]), ACP_WORD_REVOKED);
}

/* ---- Through a chain of ranks whose processes are stopped ---- */

static uint32_t job;

static void setup_chain(struct setup *s, uint32_t rank)
{
	nodes_setup(&n, s, rank, CHAIN + 1);
	s->join.timeout_ms = TIMEOUT;
	s->join.open_timeout_ms = wish.open_timeout_ms;
	if (rank)
		s->join.job = job;
	nodes_join(&n, &r[rank], s);
}

/* Three rounds of it, all issued before; and then another wait for the same word. */
static void be_stopped(uint32_t rank)
{
	struct rank *q = &r[rank];
	struct rank next;
	struct setup s;
	uint64_t round, t;

	rank_close(&r[0]);		/* only its own process has its file open */
	setup_chain(&s, rank);
	next = *q;
	next.join.rank = rank + 1;
	for (round = 1; round <= 3; round++) {
		t = wait_by(q, round, (int)rank - 1, 0);
		add_or_revoke(q, &next, round % WAYS, t);
	}
	raise(SIGSTOP);
	_exit(0);
}

static pid_t start_stopped(uint32_t rank)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (!child)
		be_stopped(rank);
	CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
	CHECK(WIFSTOPPED(status));
	return child;
}

static void end(pid_t child)
{
	int status;

	CHECK_EQ(waitpid(child, &status, WNOHANG | WCONTINUED), 0);	/* it is still stopped */
	kill(child, SIGKILL);
	CHECK_EQ(waitpid(child, &status, 0), child);
}

/*
 * Rank 0 sends a message, then is lost. Ranks 1 to 3 are stopped. Rank 4 gets the first message;
 * the second one will not come: only rank 1 knows rank 0.
 */
static void fail_through(const char *netem, void (*lose)(void))
{
	struct rank *last = &r[CHAIN];
	pid_t child[CHAIN];
	struct setup s;
	uint64_t t;
	uint32_t i;

	nodes_open(&n, CHAIN + 1, 1, false);
	setup_chain(&s, 0);
	job = r[0].join.job;
	for (i = 1; i < CHAIN; i++)
		child[i] = start_stopped(i);
	setup_chain(&s, CHAIN);
	t = wait_by(last, 1, CHAIN - 1, 0);
	if (netem)
		nodes_impair_all(&n, netem);
	CHECK_EQ(rank_do_atomic(&r[0], ACP_OP_ADD8, heap_ga(&r[0], 8192),
				rank_ga(&r[0], 1, ACP_STAG_HEAP, WORD), 1, 0), ACP_ST_OK);
	CHECK_EQ(completes(last, t), ACP_ST_OK);
	t = wait_by(last, 2, CHAIN - 1, 0);
	CHECK(is_pending(last, t));
	lose();
	CHECK_EQ(completes(last, t), ACP_ST_ORDER);
	CHECK_EQ(completes(last, wait_by(last, 3, CHAIN - 1, 0)), ACP_ST_ORDER);
	for (i = 1; i < CHAIN; i++)
		end(child[i]);
}

static void lose_network(void)
{
	unplug(0);
}

static void lose_rank(void)
{
	rank_close(&r[0]);
}

TEST(a_lost_node_is_told_through_a_chain_of_stopped_processes)
{
	fail_through(NULL, lose_network);
}

TEST(a_rank_that_left_is_told_through_a_chain_of_stopped_processes)
{
	fail_through(NULL, lose_rank);
}

TEST(a_lost_node_is_told_over_a_network_that_loses)
{
	fail_through("loss 10% duplicate 5%", lose_network);
}

/* ---- All ends whenever a node is lost, and nothing goes on without its data ---- */

#define RING	4
#define TURNS	40
#define PIECE	640			/* bytes; of another content in each turn */

static uint64_t piece(uint64_t turn)
{
	return DATA + turn * PIECE;
}

/* The wait for a turn, and the message to the next rank behind it. */
static void take_turn(struct rank *q, uint64_t turn, uint64_t *wait)
{
	const uint32_t me = q->join.rank, next = (me + 1) % RING;
	const struct rank *to = &r[next];
	const uint64_t seen = rank_completed(q);

	*wait = wait_by(q, turn, (int)((me + RING - 1) % RING), 0);
	rank_submit(q, &(struct acp_sqe){
		.op = ACP_OP_COPY_ADD, .flags = ACP_SQE_REVOKE, .size = PIECE,
		.dst = heap_ga(to, piece(turn + !next)), .src = heap_ga(q, piece(turn)),
		.a = heap_ga(to, WORD), .b = 1, .order = *wait,
		.seen = seen < *wait ? seen : *wait - 1,
	});
}

/* One end of a flow may learn later than the other one that it was lost. */
static void meet_again(void)
{
	uint32_t i, k;

	for (i = 0; i < RING; i++)
		for (k = 1; k < RING; k += 2)
			while (reach(&r[i], &r[(i + k) % RING]) != ACP_ST_OK)
				sleep_ms(10);
}

static void begin_turns(uint64_t wait[RING][TURNS + 1])
{
	uint64_t turn;
	uint32_t i;

	meet_again();
	for (i = 0; i < RING; i++) {
		memset(r[i].heap, 0, piece(TURNS + 2));
		fill(r[i].heap + piece(1), PIECE, i ? 1 : 77);
	}
	for (turn = 1; turn <= TURNS; turn++)
		for (i = 0; i < RING; i++)
			take_turn(&r[i], turn, &wait[i][turn]);
	*word_of(&r[0]) = 1;
	CHECK_EQ(ioctl(r[0].fd, ACP_IOC_WAKE, &(struct acp_wake){
		.size = sizeof(struct acp_wake), .rank = 0 }), 0);
}

/* Number of waits that have failed. */
static unsigned int end_turns(uint64_t wait[RING][TURNS + 1])
{
	unsigned int failed = 0;
	uint64_t turn;
	uint32_t i;

	for (i = 0; i < RING; i++)
		CHECK(rank_await(&r[i], r[i].last, PATIENCE_WORK) >= 0);
	for (i = 0; i < RING; i++) {
		for (turn = 1; turn <= TURNS; turn++) {
			if (rank_wait(&r[i], wait[i][turn], 0))
				failed++;
			else
				CHECK(filled(r[i].heap + piece(turn), PIECE, 77));
		}
	}
	return failed;
}

TEST_LONG(all_ends_whenever_a_node_is_lost, PATIENCE_LONG_TEST)
{
	const unsigned int rounds = test_short() ? 8 : 60;
	uint64_t wait[RING][TURNS + 1], seed = 5, begun;
	unsigned int i, failed, partly = 0;
	uint32_t node;
	bool brief;

	nodes_open(&n, RING, 1, false);
	nodes_ranks_like(&n, r, RING, &wish);
	nodes_impair_all(&n, "delay 1ms loss 1%");
	for (i = 0; i < rounds; i++) {
		brief = i % 4 == 3;
		node = next_random(&seed) % RING;
		begin_turns(wait);
		sleep_ms(next_random(&seed) % 300);
		begun = now_ns();
		nodes_impair(&n, node, "loss 100%");
		sleep_ms(brief ? TIMEOUT / 8 : 3 * TIMEOUT);
		nodes_impair(&n, node, "delay 1ms loss 1%");
		/* On a slow machine it may have been long enough. */
		brief = brief && now_ns() - begun < TIMEOUT / 2 * MS;
		failed = end_turns(wait);
		CHECK(!brief || !failed);
		partly += failed && failed < RING * TURNS;
	}
	printf("# in %u of %u rounds, a node was lost in the middle\n", partly, rounds);
	CHECK(partly);
}
