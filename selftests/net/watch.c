// SPDX-License-Identifier: MIT
/*
 * acpx_wait_until() over a network: three nodes of two ranks. A waiting rank is asleep and must be
 * woken, so each wait has to end long before the library would check again by itself (a second).
 */
#include "../dev/isolated.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "members.h"

#define RANKS		6
#define PER_NODE	2
#define FAR		2	/* on another node than rank 0 */
#define THIRD		4	/* ... and on a third one */
#define ROUNDS		100
#define THREADS		4

/* Offsets in starter memory. */
enum { FLAG = 0, TURN = 64, OWN = 128, FORMER = 192, FLAGS = 1024 };

static struct members m;

static void leave(void)
{
	CHECK_EQ(acp_finalize(), 0);
}

static int wait_ge(size_t offset, uint64_t value, uint64_t timeout_ns)
{
	return acpx_wait_until(member_word(offset), 8, ACPX_CMP_GE, value, timeout_ns);
}

/* A few waits may take longer than half a second, on a loaded machine. */
static unsigned int late;

static void wait_promptly(size_t offset, uint64_t value)
{
	uint64_t begin = now_ns();

	CHECK_EQ(wait_ge(offset, value, ACPX_FOREVER), 0);
	late += now_ns() - begin > 500 * MS;
}

static void put_word(int rank, size_t offset, uint64_t value)
{
	*member_word(OWN) = value;
	CHECK_EQ(member_status(acp_copy(member_at(rank, offset), member_at(acp_rank(), OWN), 8,
					ACP_HANDLE_NULL)), 0);
}

static void add_word(int rank, size_t offset)
{
	CHECK_EQ(member_status(acp_add8(member_at(acp_rank(), FORMER), member_at(rank, offset), 1,
					ACP_HANDLE_NULL)), 0);
}

/* ---- Writers ---- */

/* Rank 0 and another one take turns; "answer" is how the other one answers. */
static void take_turns(int other, void (*answer)(uint64_t round))
{
	uint64_t i;

	member_init();
	CHECK_EQ(acp_sync(), 0);
	for (i = 1; i <= ROUNDS; i++) {
		if (acp_rank() == 0) {
			put_word(other, TURN, i);
			wait_promptly(FLAG, i);
		} else if (acp_rank() == other) {
			wait_promptly(TURN, i);
			answer(i);
		}
	}
	CHECK(late <= ROUNDS / 20);
	CHECK_EQ(acp_sync(), 0);
	leave();
}

static void answer_by_put(uint64_t round)
{
	put_word(0, FLAG, round);
}

static void answer_by_atomic(uint64_t round)
{
	(void)round;
	add_word(0, FLAG);
}

/* A copy from rank THIRD to rank 0, issued by another rank. */
static void answer_by_third_party(uint64_t round)
{
	put_word(THIRD, FLAG, round);
	CHECK_EQ(member_status(acp_copy(member_at(0, FLAG), member_at(THIRD, FLAG), 8,
					ACP_HANDLE_NULL)), 0);
}

static void far_put(void)
{
	take_turns(FAR, answer_by_put);
}

static void far_atomic(void)
{
	take_turns(FAR, answer_by_atomic);
}

static void third_party(void)
{
	take_turns(FAR, answer_by_third_party);
}

static void near_put(void)
{
	take_turns(1, answer_by_put);
}

static void near_atomic(void)
{
	take_turns(1, answer_by_atomic);
}

TEST(woken_by_puts_of_another_node)
{
	members_run(RANKS, PER_NODE, far_put);
}

TEST(woken_by_atomics_of_another_node)
{
	members_run(RANKS, PER_NODE, far_atomic);
}

TEST(woken_by_third_parties)
{
	members_run(RANKS, PER_NODE, third_party);
}

TEST(woken_by_a_neighbour)
{
	members_run(RANKS, PER_NODE, near_put);
	members_run(RANKS, PER_NODE, near_atomic);
}

TEST(woken_in_spite_of_losses)
{
	members_run_over("loss 2%", RANKS, PER_NODE, far_atomic);
}

/* ---- Arrays, registered memory, several threads ---- */

struct watcher {
	pthread_t thread;
	int number;
	uint32_t *flags;
	unsigned int late;
};

/* Each thread waits for the word of each rank, in memory that it registered. */
static void *wait_for_all_ranks(void *arg)
{
	struct watcher *w = arg;
	struct acpx_condition c[RANKS];
	size_t indices[RANKS];
	struct patience p = patience_begin(PATIENCE_SOON);
	int64_t found;
	int left = RANKS, i;

	for (i = 0; i < RANKS; i++)
		c[i] = (struct acpx_condition){
			.flag = &w->flags[32 * (w->number * RANKS + i)], .size = 4,
			.compare = ACPX_CMP_EQ, .value = 7,
		};
	if (w->number % 2)
		CHECK_EQ(acpx_wait_until_all(c, RANKS, ACPX_FOREVER), 0);
	while (left) {
		if (w->number % 3) {
			found = acpx_wait_until_any(c, RANKS, ACPX_FOREVER);
			CHECK(found >= 0 && c[found].flag);
			c[found].flag = NULL;
			left--;
			continue;
		}
		found = acpx_wait_until_some(c, RANKS, indices, ACPX_FOREVER);
		CHECK(found > 0);
		left -= (int)found;
		while (found--)
			c[indices[found]].flag = NULL;
	}
	w->late = patience_over(&p);
	return NULL;
}

/* Every rank sets its words in all ranks, in random order and slowly. */
static void set_all(const acp_ga_t *flags)
{
	uint64_t state = (uint64_t)acp_rank() + 1;
	int i, k, start = (int)(next_random(&state) % RANKS);

	*(uint32_t *)(void *)member_word(OWN) = 7;
	for (i = 0; i < RANKS; i++)
		for (k = 0; k < THREADS; k++) {
			int rank = (start + i) % RANKS;
			acp_ga_t to = flags[rank] + 128 * (uint64_t)(k * RANKS + acp_rank());

			sleep_ms((unsigned int)(next_random(&state) % 30));
			CHECK_EQ(member_status(acp_copy(to, member_at(acp_rank(), OWN), 4,
							ACP_HANDLE_NULL)), 0);
		}
}

static void arrays(void)
{
	struct watcher w[THREADS];
	acp_ga_t flags[RANKS];
	void *memory;
	acp_atkey_t key;
	int i;

	member_init();
	memory = pages(4 * PAGE, PROT_READ | PROT_WRITE);
	key = acp_register_memory(memory, 4 * PAGE, 0);
	CHECK(key);
	*member_word(FLAGS) = acp_query_ga(key, memory);
	CHECK_EQ(acp_sync(), 0);
	for (i = 0; i < RANKS; i++) {
		CHECK_EQ(member_status(acp_copy(member_at(acp_rank(), FORMER), member_at(i, FLAGS),
						8, ACP_HANDLE_NULL)), 0);
		flags[i] = *member_word(FORMER);
	}
	for (i = 0; i < THREADS; i++) {
		w[i] = (struct watcher){ .number = i, .flags = memory };
		CHECK_EQ(pthread_create(&w[i].thread, NULL, wait_for_all_ranks, &w[i]), 0);
	}
	set_all(flags);
	for (i = 0; i < THREADS; i++) {
		pthread_join(w[i].thread, NULL);
		CHECK_EQ(w[i].late, 0);
	}
	CHECK_EQ(acp_sync(), 0);
	leave();
}

TEST(arrays_of_several_threads)
{
	members_run(RANKS, PER_NODE, arrays);
}

/* ---- No writers ---- */

static void idle(void)
{
	struct rusage before, after;
	uint64_t begin;

	member_init();
	CHECK_EQ(acp_sync(), 0);
	begin = now_ns();
	getrusage(RUSAGE_SELF, &before);
	CHECK_EQ(wait_ge(FLAG, 1, 3000 * MS), -ETIMEDOUT);
	getrusage(RUSAGE_SELF, &after);
	CHECK(now_ns() - begin >= 3000 * MS);
	/* One check at the beginning, one per second, one at the end. */
	CHECK(after.ru_nvcsw - before.ru_nvcsw <= 20);
	CHECK_EQ(acp_sync(), 0);
	leave();
}

TEST(an_idle_wait_sleeps)
{
	members_run(RANKS, PER_NODE, idle);
}

static int ready[2];

/* The peer is killed: the wait continues to its end; the surviving rank can find the reason. */
static void killed(void)
{
	struct patience p;
	uint64_t begin;

	member_init();
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank()) {
		add_word(0, TURN);
		wait_ge(FLAG, 1, ACPX_FOREVER);
		return;
	}
	wait_promptly(TURN, 1);
	CHECK_EQ(write(ready[1], "", 1), 1);
	begin = now_ns();
	CHECK_EQ(wait_ge(FLAG, 1, 2000 * MS), -ETIMEDOUT);
	CHECK(now_ns() - begin >= 2000 * MS);
	p = patience_begin(PATIENCE_WORK);
	while (acpx_peer_state(1) != ACPX_PEER_DOWN) {
		CHECK(!patience_over(&p));
		sleep_ms(10);
	}
	CHECK_EQ(acp_finalize(), -1);
}

TEST(P1_timeout_when_the_peer_is_killed)
{
	char c;

	members_open(&m, 2, 2);
	CHECK_EQ(pipe(ready), 0);
	members_start_all(&m, killed);
	CHECK_EQ(read(ready[0], &c, 1), 1);
	sleep_ms(300);
	CHECK_EQ(kill(m.pid[1], SIGKILL), 0);
	CHECK_EQ(members_wait(&m, 0), 0);
	CHECK_EQ(members_wait(&m, 1), DIED - SIGKILL);
}

static void aborted(void)
{
	member_init();
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() == RANKS - 1) {
		sleep_ms(500);
		acp_abort("enough");
	}
	CHECK_EQ(wait_ge(FLAG, 1, ACPX_FOREVER), -ECANCELED);
	_exit(3);
}

TEST(P1_abort_ends_waits_on_all_nodes)
{
	int i;

	members_open(&m, RANKS, PER_NODE);
	members_start_all(&m, aborted);
	for (i = 0; i < RANKS; i++)
		CHECK_EQ(members_wait(&m, i), i == RANKS - 1 ? 255 : 3);
}

static void *wait_to_the_end(void *arg)
{
	CHECK_EQ(wait_ge(FLAG, 1, ACPX_FOREVER), -ENOTCONN);
	return arg;
}

static void left_waiting(void)
{
	pthread_t thread[THREADS];
	int round, i;

	member_init();
	for (round = 0; round < 3; round++) {
		for (i = 0; i < THREADS; i++)
			CHECK_EQ(pthread_create(&thread[i], NULL, wait_to_the_end, NULL), 0);
		wait_asleep(getpid(), THREADS);
		CHECK_EQ(round < 2 ? acp_reset((acp_rank() + 1) % RANKS) : acp_finalize(), 0);
		for (i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
	}
}

TEST(P6_reset_and_finalize_end_waits)
{
	members_run(RANKS, PER_NODE, left_waiting);
}
