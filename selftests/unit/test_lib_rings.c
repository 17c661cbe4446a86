// SPDX-License-Identifier: MIT
/*
 * The rings of lib/core/rings.h against a kernel simulated by a thread: order (A)..(D), reuse of
 * slots, and the doorbell that must not be lost.
 *
 * Most useful under ThreadSanitizer, which detects a missing release or acquire immediately. It
 * cannot detect a missing full fence, so that is tested without it, by sleeping as often as
 * possible.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/rings.h"
#include "test.h"

#define DEPTH		64
#define COMMANDS	200000
#define PRODUCERS	3

/* A pair of rings with both sides. */
struct rings {
	struct libacp_rings user;	/* view of the user */
	struct acp_sq *sq;
	struct acp_cq *cq;
	uint64_t head;			/* kernel: last ticket executed */
	uint64_t sum;			/* kernel: sum of all entries, for comparison */
	uint64_t sleeps;		/* kernel: number of sleeps */
	/* kernel: slept although there was work, and the doorbell was not rung */
	bool lost;
	bool bad_entry;
	sem_t doorbell;
	pthread_mutex_t lock;		/* users: for submission */
	uint64_t submitted_sum;		/* users */
};

static bool rings_open(struct rings *r)
{
	memset(r, 0, sizeof(*r));
	r->sq = calloc(1, sizeof(*r->sq) + DEPTH * sizeof(struct acp_sqe));
	r->cq = calloc(1, sizeof(*r->cq) + DEPTH);
	if (!r->sq || !r->cq)
		return false;
	r->sq->tail = 1;
	r->cq->completed = 1;
	r->head = 1;
	libacp_rings_init(&r->user, r->sq, r->cq, DEPTH);
	sem_init(&r->doorbell, 0, 0);
	pthread_mutex_init(&r->lock, NULL);
	return true;
}

static void rings_close(struct rings *r)
{
	free(r->sq);
	free(r->cq);
	sem_destroy(&r->doorbell);
	pthread_mutex_destroy(&r->lock);
}

/* ---- Kernel side, as described in acp_abi.h ---- */

static uint64_t entry_sum(const struct acp_sqe *e)
{
	return e->op + e->dst * 3 + e->src * 5 + e->size * 7 + e->order * 11 + e->seen * 13;
}

static void kernel_execute(struct rings *r, uint64_t tail)
{
	while (r->head < tail) {
		struct acp_sqe entry = r->user.entries[(r->head + 1) & (DEPTH - 1)];
		uint64_t ticket = ++r->head;

		if (entry.dst != ticket || entry.src != ~ticket)
			r->bad_entry = true;
		r->sum += entry_sum(&entry);
		__atomic_store_n(&r->cq->status[ticket & (DEPTH - 1)],
				 (uint8_t)(ticket % ACP_ST_END), __ATOMIC_RELAXED);
		__atomic_store_n(&r->cq->completed, ticket, __ATOMIC_RELEASE);	/* (C) */
	}
}

static uint64_t kernel_tail(struct rings *r)
{
	return __atomic_load_n(&r->sq->tail, __ATOMIC_ACQUIRE);		/* (B) */
}

/*
 * Sleep until the doorbell rings. A long sleep with work in the ring means that the doorbell was
 * lost.
 */
static void kernel_sleep(struct rings *r)
{
	struct timespec until;

	r->sleeps++;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 10;
	while (sem_timedwait(&r->doorbell, &until) != 0) {
		if (kernel_tail(r) != r->head)
			r->lost = true;
		return;
	}
}

static void *kernel(void *arg)
{
	struct rings *r = arg;

	while (r->head < COMMANDS + 1 && !r->lost) {
		uint64_t tail = kernel_tail(r);

		if (tail != r->head) {
			kernel_execute(r, tail);
			continue;
		}
		__atomic_fetch_or(&r->cq->flags, ACP_CQ_NEED_WAKEUP, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (kernel_tail(r) == r->head)
			kernel_sleep(r);
		__atomic_fetch_and(&r->cq->flags, ~ACP_CQ_NEED_WAKEUP, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* ---- User side ---- */

static void push_one(struct rings *r)
{
	struct acp_sqe entry = { .op = ACP_OP_COPY };
	uint64_t completed, ticket;

	do {
		completed = libacp_rings_completed(&r->user);
	} while (!libacp_rings_room(&r->user, completed));
	entry.dst = libacp_rings_newest(&r->user) + 1;
	entry.src = ~entry.dst;
	entry.order = entry.dst - 1;
	entry.seen = completed;
	r->submitted_sum += entry_sum(&entry);
	ticket = libacp_rings_push(&r->user, &entry);
	if (ticket != entry.dst)
		__atomic_store_n(&r->bad_entry, true, __ATOMIC_RELAXED);
}

static void ring_if_needed(struct rings *r)
{
	if (libacp_rings_must_ring(&r->user))
		sem_post(&r->doorbell);
}

static void submit_one(struct rings *r)
{
	pthread_mutex_lock(&r->lock);
	push_one(r);
	pthread_mutex_unlock(&r->lock);
	ring_if_needed(r);
}

static void *producer(void *arg)
{
	struct rings *r = arg;

	while (libacp_rings_newest(&r->user) < COMMANDS + 1 - PRODUCERS)
		submit_one(r);
	return NULL;
}

/*
 * Statuses are those that the kernel wrote, or unknown; never those of another ticket. Queries
 * statuses that are about to be overwritten.
 */
static void *asker(void *arg)
{
	struct rings *r = arg;
	uint64_t completed, ticket;
	int status;

	do {
		completed = libacp_rings_completed(&r->user);
		ticket = completed < DEPTH ? completed : completed - DEPTH + 1 + completed % 4;
		status = ticket > 1 ? libacp_rings_status(&r->user, ticket) : -1;
		if (status >= 0 && status != (int)(ticket % ACP_ST_END))
			__atomic_store_n(&r->bad_entry, true, __ATOMIC_RELAXED);
	} while (completed < COMMANDS + 1 - PRODUCERS);
	return NULL;
}

TEST(ring__many_threads_and_a_kernel)
{
	pthread_t threads[PRODUCERS + 2];
	struct rings r;
	int i;

	CHECK(rings_open(&r));
	pthread_create(&threads[PRODUCERS], NULL, kernel, &r);
	pthread_create(&threads[PRODUCERS + 1], NULL, asker, &r);
	for (i = 0; i < PRODUCERS; i++)
		pthread_create(&threads[i], NULL, producer, &r);
	for (i = 0; i < PRODUCERS; i++)
		pthread_join(threads[i], NULL);
	while (libacp_rings_newest(&r.user) < COMMANDS + 1)
		submit_one(&r);
	pthread_join(threads[PRODUCERS], NULL);
	pthread_join(threads[PRODUCERS + 1], NULL);
	printf("# the kernel slept %llu times\n", (unsigned long long)r.sleeps);
	CHECK(!r.lost && !r.bad_entry);
	CHECK(r.sum == r.submitted_sum && r.head == COMMANDS + 1);
	CHECK(libacp_rings_completed(&r.user) == COMMANDS + 1);
	rings_close(&r);
}

/*
 * One command at a time, so that the kernel goes to sleep between any two, with all distances to
 * the previous one. No lock here, because it would hide a missing fence.
 */
TEST(ring__no_wake_up_is_lost)
{
	struct rings r;
	pthread_t thread;
	uint64_t ticket, delay;

	CHECK(rings_open(&r));
	pthread_create(&thread, NULL, kernel, &r);
	for (ticket = 2; ticket <= COMMANDS + 1 && !__atomic_load_n(&r.lost, __ATOMIC_RELAXED);
	     ticket++) {
		push_one(&r);
		ring_if_needed(&r);
		while (libacp_rings_completed(&r.user) < ticket &&
		       !__atomic_load_n(&r.lost, __ATOMIC_RELAXED))
			;
		for (delay = ticket % 128; delay; delay--)
			__atomic_signal_fence(__ATOMIC_SEQ_CST);
	}
	pthread_join(thread, NULL);
	printf("# the kernel slept %llu times\n", (unsigned long long)r.sleeps);
	CHECK(!r.lost && !r.bad_entry && r.head == COMMANDS + 1);
	rings_close(&r);
}

TEST(queue__starts_with_one_complete)
{
	struct acp_sqe entry = { .op = ACP_OP_COPY };
	struct rings r;

	CHECK(rings_open(&r));
	CHECK(libacp_rings_newest(&r.user) == 1 && libacp_rings_completed(&r.user) == 1);
	CHECK(libacp_rings_push(&r.user, &entry) == 2);
	CHECK(r.sq->tail == 2 && r.user.entries[2].op == ACP_OP_COPY);
	rings_close(&r);
}

TEST(queue__room_is_depth)
{
	struct acp_sqe entry = { .op = ACP_OP_COPY };
	struct rings r;
	int i;

	CHECK(rings_open(&r));
	for (i = 0; i < DEPTH; i++) {
		CHECK(libacp_rings_room(&r.user, libacp_rings_completed(&r.user)));
		libacp_rings_push(&r.user, &entry);
	}
	CHECK(!libacp_rings_room(&r.user, libacp_rings_completed(&r.user)));
	r.cq->completed = 2;
	CHECK(libacp_rings_room(&r.user, libacp_rings_completed(&r.user)));
	rings_close(&r);
}

TEST(queue__status_is_kept_for_depth)
{
	struct acp_sqe entry = { .op = ACP_OP_COPY }, old;
	struct rings r;
	int i;

	CHECK(rings_open(&r));
	entry.dst = 77;
	libacp_rings_push(&r.user, &entry);
	entry.dst = 78;
	r.cq->completed = 2;
	r.cq->status[2] = ACP_ST_RANGE;
	for (i = 1; i < DEPTH; i++) {
		CHECK(libacp_rings_status(&r.user, 2) == ACP_ST_RANGE);
		CHECK(libacp_rings_entry(&r.user, 2, &old) && old.dst == 77);
		libacp_rings_push(&r.user, &entry);
	}
	CHECK(libacp_rings_status(&r.user, 2) == ACP_ST_RANGE);
	libacp_rings_push(&r.user, &entry);
	CHECK(libacp_rings_status(&r.user, 2) == -1 && !libacp_rings_entry(&r.user, 2, &old));
	rings_close(&r);
}

TEST(queue__flags)
{
	struct rings r;

	CHECK(rings_open(&r));
	CHECK(!libacp_rings_must_ring(&r.user) && !libacp_rings_aborted(&r.user));
	r.cq->flags = ACP_CQ_NEED_WAKEUP;
	CHECK(libacp_rings_must_ring(&r.user) && libacp_rings_asleep(&r.user));
	CHECK(!libacp_rings_aborted(&r.user));
	r.cq->flags = ACP_CQ_ABORTED;
	CHECK(!libacp_rings_must_ring(&r.user) && libacp_rings_aborted(&r.user));
	r.cq->failed = 5;
	CHECK(libacp_rings_failed(&r.user) == 5);
	rings_close(&r);
}

TEST_MAIN
