// SPDX-License-Identifier: MIT
/* selftest: cpus=2 */
/*
 * Contexts over a network: concurrent threads of each rank, each with its own queue; contexts that
 * are destroyed with accesses in flight; a peer that is killed meanwhile.
 */
#include "../dev/isolated.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "members.h"

#define THREADS	4
#define MOST	20000		/* maximum size of a piece */
#define ROOM	(4 * MOST)	/* memory of a thread: for sending, fetching and receiving */

/* Offsets in starter memory. */
enum { BUFFER = 0, COUNTER = 8, FORMER = 16, FLAG = 512, THERE = 576 };

static struct members m;
static char *memory;		/* registered memory of THREADS * ROOM bytes */
static acp_ga_t own, there;	/* its address, and that of the neighbour */
static unsigned int rounds;

static void rendezvous(void)
{
	CHECK_EQ(acp_sync(), 0);
}

static int neighbour(void)
{
	return (acp_rank() + 1) % acp_procs();
}

/* Allocate memory, and get the address of that of the neighbour. */
static void begin(void)
{
	acp_atkey_t key;

	member_init();
	memory = pages(THREADS * ROOM, PROT_READ | PROT_WRITE);
	key = acp_register_memory(memory, THREADS * ROOM, 0);
	own = acp_query_ga(key, memory);
	CHECK(own != ACP_GA_NULL);
	*member_word(BUFFER) = own;
	rendezvous();
	CHECK_EQ(member_status(acp_copy(member_at(acp_rank(), THERE),
					member_at(neighbour(), BUFFER), 8, ACP_HANDLE_NULL)), 0);
	there = *member_word(THERE);
	rendezvous();
}

static void take_context(acpx_context_t *c)
{
	CHECK_EQ(acpx_context_create(64, c), 0);
	CHECK_EQ(acpx_context_bind(*c), 0);
}

/*
 * Copy to the neighbour and, ordered after that, back: the data is unchanged, whatever others do.
 */
static void round_trip(size_t n, size_t size, uint64_t seed, acpx_context_t *c, bool change)
{
	acp_handle_t h;

	fill(memory + n * ROOM, size, seed);
	memset(memory + n * ROOM + MOST, 0, size);
	h = acp_copy(there + n * ROOM + 2 * MOST, own + n * ROOM, size, ACP_HANDLE_NULL);
	if (change) {
		/* Destroying the context waits for accesses in flight, and none is lost. */
		CHECK_EQ(acpx_context_destroy(*c), 0);
		CHECK_EQ(acp_inquire(h), 0);
		take_context(c);
	}
	h = acp_copy(own + n * ROOM + MOST, there + n * ROOM + 2 * MOST, size, h);
	acp_complete(h);
	CHECK_EQ(acpx_status(h), 0);
	CHECK(filled(memory + n * ROOM + MOST, size, seed));
}

static void *work(void *arg)
{
	size_t n = (uintptr_t)arg;
	uint64_t state = 16 * (uint64_t)acp_rank() + n + 1;
	acpx_context_t c;
	acp_handle_t h;
	unsigned int i;

	take_context(&c);
	for (i = 0; i < rounds; i++) {
		size_t size = 1 + next_random(&state) % (i % 4 ? 100 : MOST);

		round_trip(n, size, next_random(&state), &c, i % 16 == 15);
		h = acp_add8(member_at(acp_rank(), FORMER + 8 * n), member_at(neighbour(), COUNTER),
			     1, ACP_HANDLE_NULL);
		if (i % 8 == 0)
			CHECK_EQ(member_status(h), 0);
	}
	CHECK_EQ(acpx_context_destroy(c), 0);
	return NULL;
}

static void in_threads(void *(*body)(void *arg))
{
	pthread_t thread[THREADS];
	uintptr_t i;

	for (i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, body, (void *)i), 0);
	for (i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
}

static void all_at_once(void)
{
	rounds = test_short() ? 48 : 112;
	begin();
	in_threads(work);
	rendezvous();
	CHECK_EQ(*member_word(COUNTER), THREADS * rounds);
	CHECK_EQ(acp_finalize(), 0);
}

TEST(threads_put_get_and_add_at_once)
{
	members_run(2, 1, all_at_once);
}

/* The neighbour of each rank is on another node or on its own. */
TEST(threads_of_several_ranks_of_a_node)
{
	members_run(4, 2, all_at_once);
}

TEST(threads_in_spite_of_losses)
{
	members_open(&m, 2, 1);
	nodes_impair_all(&m.nodes, "loss 2%");
	members_start_all(&m, all_at_once);
	members_expect(&m, 0);
}

/* ---- Order ---- */

static acp_handle_t data;
static pthread_barrier_t step;

/*
 * The flag is put by one context, its data by another one: all of the data is visible with the
 * flag.
 */
static void *put_flag(void *arg)
{
	acpx_context_t c;
	unsigned int i;

	take_context(&c);
	for (i = 1; i <= rounds; i++) {
		pthread_barrier_wait(&step);
		*member_word(FORMER) = i;
		CHECK_EQ(member_status(acp_copy(member_at(1, FLAG), member_at(0, FORMER), 8,
						__atomic_load_n(&data, __ATOMIC_ACQUIRE))), 0);
		pthread_barrier_wait(&step);
	}
	CHECK_EQ(acpx_context_destroy(c), 0);
	return arg;
}

static void put_data(void)
{
	pthread_t thread;
	acpx_context_t c;
	unsigned int i;

	CHECK_EQ(pthread_barrier_init(&step, NULL, 2), 0);
	CHECK_EQ(pthread_create(&thread, NULL, put_flag, NULL), 0);
	take_context(&c);
	for (i = 1; i <= rounds; i++) {
		fill(memory, ROOM, i);
		__atomic_store_n(&data, acp_copy(there, own, ROOM, ACP_HANDLE_NULL),
				 __ATOMIC_RELEASE);
		pthread_barrier_wait(&step);
		pthread_barrier_wait(&step);
		CHECK_EQ(acpx_wait_until(member_word(FLAG), 8, ACPX_CMP_EQ, i, ACPX_FOREVER), 0);
	}
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(acpx_context_destroy(c), 0);
}

static void flag_behind_data(void)
{
	unsigned int i;

	rounds = test_short() ? 20 : 60;
	begin();
	if (acp_rank() == 0)
		put_data();
	for (i = 1; acp_rank() == 1 && i <= rounds; i++) {
		CHECK_EQ(acpx_wait_until(member_word(FLAG), 8, ACPX_CMP_EQ, i, ACPX_FOREVER), 0);
		CHECK(filled(memory, ROOM, i));
		*member_word(FORMER) = i;
		CHECK_EQ(member_status(acp_copy(member_at(0, FLAG), member_at(1, FORMER), 8,
						ACP_HANDLE_NULL)), 0);
	}
	rendezvous();
	CHECK_EQ(acp_finalize(), 0);
}

TEST(order_between_contexts)
{
	members_run(2, 1, flag_behind_data);
}

/* ---- Idle queues ---- */

/*
 * A queue that was idle while many answers arrived for others: a command that waits there for an
 * access to the neighbour continues when that is complete, without a call.
 */
static void rest_and_go_on(acpx_context_t c, unsigned int answers, uint64_t seed)
{
	acp_handle_t h;

	CHECK_EQ(acpx_context_bind(NULL), 0);
	while (answers--)
		CHECK_EQ(member_status(acp_copy(there, own, 8, ACP_HANDLE_NULL)), 0);
	CHECK_EQ(acpx_context_bind(c), 0);
	fill(memory, 64, seed);
	memset(memory + MOST, 0, 64);
	h = acp_copy(there + MOST, own, 64, ACP_HANDLE_NULL);
	h = acp_copy(own + 2 * MOST, there + MOST, 64, h);
	h = acp_copy(own + MOST, own + 2 * MOST, 64, h);
	CHECK_EQ(member_status(h), 0);
	CHECK(filled(memory + MOST, 64, seed));
}

static void rest(void)
{
	static const unsigned int answers[] = { 0, 1, 10, 63, 64, 65, 66, 67, 100, 200 };
	acpx_context_t c[40];
	size_t i, k;

	begin();
	if (acp_rank() == 0) {
		for (i = 0; i < 40; i++)
			CHECK_EQ(acpx_context_create(64, &c[i]), 0);
		for (k = 0; k < sizeof(answers) / sizeof(answers[0]); k++)
			for (i = 0; i < 40; i += k % 4 ? 13 : 5)
				rest_and_go_on(c[i], i ? answers[k] / 8 : answers[k], 100 * k + i);
		for (i = 0; i < 40; i++)
			CHECK_EQ(acpx_context_destroy(c[i]), 0);
	}
	rendezvous();
	CHECK_EQ(acp_finalize(), 0);
}

TEST(queues_that_rested_go_on)
{
	members_run(2, 1, rest);
}

/* ---- Ends ---- */

static bool failed[THREADS];

/*
 * Put until a failure, with many puts in flight; then the context is finished, and everything else
 * continues.
 */
static void *put_until_it_fails(void *arg)
{
	size_t n = (uintptr_t)arg;
	acp_handle_t last = ACP_HANDLE_NULL;
	acpx_context_t c;
	int i;

	take_context(&c);
	while (!failed[n]) {
		for (i = 0; i < 50; i++)
			last = acp_copy(there + n * ROOM, own + n * ROOM, 1 + 100 * (size_t)i,
					ACP_HANDLE_NULL);
		acp_complete(last);
		failed[n] = acpx_status(last) != 0;
	}
	CHECK(acp_copy(there + n * ROOM, own + n * ROOM, MOST, ACP_HANDLE_NULL));
	CHECK_EQ(acpx_context_destroy(c), 0);
	return NULL;
}

static int ready[2];

static void begin_and_tell(void)
{
	begin();
	if (acp_rank() != 1)
		CHECK_EQ(write(ready[1], "", 1), 1);
}

/* Start all, until they are in the middle of their work. */
static void start_work(void (*body)(void))
{
	int others = m.count - 1;
	char c;

	CHECK_EQ(pipe(ready), 0);
	members_start_all(&m, body);
	while (others--)
		CHECK_EQ(read(ready[0], &c, 1), 1);
	sleep_ms(500);
}

static void outlive(void)
{
	acpx_context_t c;

	begin_and_tell();
	if (acp_rank() == 1)
		for (;;)
			pause();
	if (acp_rank() == 0) {
		in_threads(put_until_it_fails);
		take_context(&c);
		*member_word(FORMER) = 1;
		CHECK_EQ(member_status(acp_copy(member_at(2, FLAG), member_at(0, FORMER), 8,
						ACP_HANDLE_NULL)), 0);
		CHECK_EQ(acpx_context_destroy(c), 0);
	} else {
		CHECK_EQ(acpx_wait_until(member_word(FLAG), 8, ACPX_CMP_EQ, 1, ACPX_FOREVER), 0);
	}
	CHECK_EQ(acp_finalize(), -1);
}

TEST(P1_peer_killed_under_all_contexts)
{
	members_open(&m, 3, 1);
	start_work(outlive);
	CHECK_EQ(kill(m.pid[1], SIGKILL), 0);
	CHECK_EQ(members_wait(&m, 0), 0);
	CHECK_EQ(members_wait(&m, 1), DIED - SIGKILL);
	CHECK_EQ(members_wait(&m, 2), 0);
}

/* The node itself becomes silent. */
static void outlive_silence(void)
{
	setenv("ACP_TIMEOUT", "2000", 1);
	begin_and_tell();
	if (acp_rank() == 1)
		for (;;)
			pause();
	in_threads(put_until_it_fails);
	CHECK_EQ(acp_finalize(), -1);
}

TEST(P1_peer_silent_under_all_contexts)
{
	members_open(&m, 2, 1);
	start_work(outlive_silence);
	nodes_run(&m.nodes, 1, "ip link set eth0 down");
	CHECK_EQ(members_wait(&m, 0), 0);
	CHECK_EQ(kill(m.pid[1], SIGKILL), 0);
	CHECK_EQ(members_wait(&m, 1), DIED - SIGKILL);
}

static void reset_with_contexts(void)
{
	acpx_context_t c[3];
	int round, i;

	begin();
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 3; i++) {
			take_context(&c[i]);
			CHECK(acp_copy(member_at(neighbour(), FORMER),
				       member_at(acp_rank(), FORMER), 8, ACP_HANDLE_NULL));
		}
		CHECK_EQ(round < 2 ? acp_reset(neighbour()) : acp_finalize(), 0);
		CHECK(acpx_context_bind(c[0]) == (round < 2 ? -EINVAL : -ENOTCONN));
	}
}

TEST(reset_and_finalize_end_contexts)
{
	members_run(2, 1, reset_with_contexts);
}
