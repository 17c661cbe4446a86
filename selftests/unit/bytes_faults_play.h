/* SPDX-License-Identifier: MIT */
/* Failures and costs of vectors and deques: tests shared by both, see bytes_play.h. */
#ifndef BYTES_FAULTS_PLAY_H
#define BYTES_FAULTS_PLAY_H

#include <limits.h>
#include <pthread.h>

#include "bytes_play.h"

/* ---- Bad arguments ---- */

static void check_nowhere(IT_T it)
{
	CHECK_EQ(it.TYPE.ga, ACP_GA_NULL);
	CHECK_EQ(it.index, 0);
}

/* Objects that are no container. */
static void check_invalid(TYPE_T bad, int error)
{
	IT_T it = { bad, 0 };
	acp_ga_t ga = stage_ga();
	struct model *m = &models[0];

	FAILS(error, CHECK_EQ(CALL(size)(bad), 0));
	FAILS(error, CHECK_EQ(CALL(capacity)(bad), 0));
	FAILS(error, CHECK_EQ(CALL(empty)(bad), 1));
	FAILS(error, CHECK_EQ(CALL(at)(bad, 0), ACP_GA_NULL));
	FAILS(error, check_nowhere(CALL(end)(bad)));
	FAILS(error, CALL(clear)(bad));
	FAILS(error, CALL(destroy)(bad));
	FAILS(error, CALL(reserve)(bad, 100));
	FAILS(error, CALL(push_back)(bad, ga, 1));
	FAILS(error, CALL(pop_back)(bad, 1));
	FAILS(error, check_nowhere(CALL(insert)(it, ga, 1)));
	FAILS(error, check_nowhere(CALL(erase)(it, 1)));
	FAILS(error, check_nowhere(CALL(erase_range)(it, it)));
	FAILS(error, check_nowhere(CALL(insert_range)(it, place(m, 0), place(m, 1))));
	FAILS(error, check_nowhere(CALL(insert_range)(place(m, 0), it, it)));
	FAILS(error, CALL(assign)(bad, m->at));
	FAILS(error, CALL(assign)(m->at, bad));
	FAILS(error, CALL(assign_range)(bad, place(m, 0), place(m, 1)));
	FAILS(error, CALL(assign_range)(m->at, it, it));
	FAILS(error, CALL(swap)(bad, m->at));
	FAILS(error, CALL(swap)(m->at, bad));
#if RING
	FAILS(error, CALL(push_front)(bad, ga, 1));
	FAILS(error, CALL(pop_front)(bad, 1));
	FAILS(error, CHECK_EQ(acp_dereference_deque_it(it, 1).first.size, 0));
#else
	FAILS(error, CHECK_EQ(IT_CALL(dereference)(it), ACP_GA_NULL));
#endif
}

/* A header with these words is rejected. */
static void check_damaged(uint64_t data, uint64_t first, uint64_t size, uint64_t capacity)
{
	uint64_t words[4] = { data, first, size, capacity };

	if (!RING) {
		words[1] = size;
		words[2] = capacity;
	}
	memcpy(stage(), words, sizeof(words));
	check_invalid((TYPE_T){ stage_ga() }, EUCLEAN);
}

static void check_ranges(struct model *m)
{
	IT_T it = place(m, 0), end = CALL(end)(m->at), far = place(m, m->size + 1);
	IT_T other = CALL(begin)(models[1].at), before = { m->at, -1 };
	int distance = 77;

	FAILS(EINVAL, check_nowhere(CALL(insert)(far, stage_ga(), 1)));
	FAILS(EINVAL, check_nowhere(CALL(insert)(before, stage_ga(), 1)));
	FAILS(EINVAL, check_nowhere(CALL(erase)(far, 1)));
	FAILS(EINVAL, check_nowhere(CALL(erase)(before, 1)));
	FAILS(EINVAL, check_nowhere(CALL(erase_range)(end, it)));
	FAILS(EINVAL, check_nowhere(CALL(erase_range)(before, it)));
	FAILS(EINVAL, check_nowhere(CALL(erase_range)(it, far)));
	FAILS(EINVAL, check_nowhere(CALL(erase_range)(it, other)));
	FAILS(EINVAL, check_nowhere(CALL(insert_range)(it, it, other)));
	FAILS(EINVAL, check_nowhere(CALL(insert_range)(it, it, far)));
	FAILS(EINVAL, check_nowhere(CALL(insert_range)(far, it, end)));
	FAILS(EINVAL, CALL(assign_range)(models[1].at, it, far));
	FAILS(EINVAL, CALL(assign_range)(models[1].at, end, it));
	FAILS(EINVAL, CALL(assign_range)(models[1].at, it, other));
	FAILS(EINVAL, CHECK_EQ(IT_CALL(distance)(it, other), 0));
	end.index = INT_MAX;
	FAILS(EOVERFLOW, check_nowhere(IT_CALL(advance)(end, 1)));
	before.index = INT_MIN;
	FAILS(EOVERFLOW, check_nowhere(IT_CALL(advance)(before, -1)));
	FAILS(EOVERFLOW, distance = IT_CALL(distance)(before, end));
	CHECK_EQ(distance, 0);
}

static void check_sizes(struct model *m)
{
	FAILS(EOVERFLOW, CALL(reserve)(m->at, (size_t)INT_MAX + 1));
	FAILS(EOVERFLOW, CALL(reserve)(m->at, SIZE_MAX));
	FAILS(ENOMEM, CALL(reserve)(m->at, INT_MAX - 100));
	FAILS(EOVERFLOW, CALL(push_back)(m->at, stage_ga(), SIZE_MAX));
	FAILS(EOVERFLOW, CALL(push_back)(m->at, stage_ga(), (size_t)INT_MAX));
	FAILS(EOVERFLOW, CALL(insert)(place(m, 1), stage_ga(), SIZE_MAX - 3));
	FAILS(EOVERFLOW, CHECK_EQ(CALL(create)(SIZE_MAX, 0).ga, ACP_GA_NULL));
	FAILS(EOVERFLOW, CHECK_EQ(CALL(create)((size_t)INT_MAX + 1, 0).ga, ACP_GA_NULL));
	FAILS(ENOMEM, CHECK_EQ(CALL(create)(1 << 30, 0).ga, ACP_GA_NULL));
	FAILS(EINVAL, CHECK_EQ(CALL(create)(8, -1).ga, ACP_GA_NULL));
	FAILS(EINVAL, CHECK_EQ(CALL(create)(8, acp_procs()).ga, ACP_GA_NULL));
}

/* Sources that cannot be read, with and without sufficient capacity: nothing changes. */
static void check_sources(struct model *m)
{
	acp_ga_t bad[] = { ACP_GA_NULL, stage_ga() + 2 * (acp_ga_t)STAGE - 5,
			   acpx_query_heap_ga(acp_procs() - 1) + (1 << 20) - 5 };
	unsigned int i, at;

	for (i = 0; i < 6; i++) {
		if (i == 3)
			CALL(reserve)(m->at, m->size + 200);
		for (at = 0; at <= m->size; at += (unsigned int)m->size / 4) {
			FAILS(EFAULT, check_nowhere(CALL(insert)(place(m, at), bad[i % 3], 30)));
			check_model(m);
		}
		FAILS(EFAULT, CALL(push_back)(m->at, bad[i % 3], 30));
		check_model(m);
#if RING
		FAILS(EFAULT, CALL(push_front)(m->at, bad[i % 3], 30));
		check_model(m);
#endif
	}
}

static void play_bad_arguments(void *arg)
{
	acp_ga_t data, heap = acpx_query_heap_ga(acp_procs() - 1);
	struct model *m = &models[0];
	unsigned int i;

	begin_models(arg);
	step_push_back(0, m);
	draw_fresh(100);
	if (!acp_rank()) {
		CALL(push_back)(m->at, stage_ga(), 100);
		CALL(push_back)(models[1].at, stage_ga(), 100);
		model_insert(m, m->size, fresh, 100);
		model_insert(&models[1], models[1].size, fresh, 100);
		/* Check the last ones first, so that the staging area is free. */
		check_ranges(m);
		check_sizes(m);
		for (i = 0; i < 2; i++)
			check_sources(&models[i]);
		check_invalid((TYPE_T){ ACP_GA_NULL }, EINVAL);
		check_invalid((TYPE_T){ m->at.ga + 4 }, EINVAL);
		check_invalid((TYPE_T){ heap + (1 << 20) }, EFAULT);
		check_invalid((TYPE_T){ 8 }, EFAULT);
		data = CALL(at)(m->at, 0);
		check_damaged(ACP_GA_NULL, 0, 0, 8);
		check_damaged(data, 0, 0, 0);
		check_damaged(data, 0, 16, 8);
		check_damaged(data, 0, 0, (uint64_t)1 << 31);
		check_damaged(data, 0, UINT64_MAX, UINT64_MAX);
#if RING
		check_damaged(data, 8, 0, 8);
#endif
		for (i = 0; i < OBJECTS; i++)
			check_model(&models[i]);
		check_blocks();
		for (i = 0; i < OBJECTS; i++)
			FAILS(FINE, CALL(destroy)(models[i].at));
		CHECK_EQ(live(), 0);
	}
	rendezvous();
}

/* ---- Failures before dependent accesses are issued ---- */

/* The header of a remote container does not change if its data did not arrive. */
static void play_late_dependents(void *arg)
{
	struct model *m = &models[1];
	acp_ga_t bad = acp_query_starter_ga(1) + 2 * (acp_ga_t)STAGE - 5;
	int i;

	begin_models(arg);
	while (m->size < 50)
		step_push_back(1, m);
	if (!acp_rank()) {
		CALL(reserve)(m->at, m->size + 200);
		play_late = true;
		for (i = 0; i < 20; i++) {
			FAILS(EFAULT, CALL(push_back)(m->at, bad, 30));
			FAILS(EFAULT, check_nowhere(CALL(insert)(place(m, m->size / 2), bad, 30)));
		}
		play_late = false;
		CHECK(play_late_failures > 0);
		check_model(m);
	}
	rendezvous();
	end_models();
}

/* ---- Round trips ---- */

/* Round trips of operations on another rank with local data. */
static void play_trips(void *arg)
{
	TYPE_T v, w;
	IT_T it;

	(void)arg;
	if (acp_rank())
		return;
	v = CALL(create)(100, 1);	/* the first calls allocate scratch memory, among others */
	w = CALL(create)(100, 1);
	CALL(push_back)(v, stage_ga(), 100);
	CALL(push_back)(w, stage_ga(), 100);
	TRIPS(1, CALL(size)(v));
	TRIPS(1, CALL(at)(v, 50));
	TRIPS(1, CALL(end)(v));
	TRIPS(0, it = IT_CALL(advance)(CALL(begin)(v), 50));
	TRIPS(2 + 2 * HEAP_TRIPS, CALL(reserve)(v, 1000));
	TRIPS(2, CALL(push_back)(v, stage_ga(), 100));
	TRIPS(2 + 2 * HEAP_TRIPS, CALL(insert)(it, stage_ga(), 10));
	it = IT_CALL(advance)(CALL(end)(v), -10);
	TRIPS(2, CALL(insert)(it, stage_ga(), 10));
	TRIPS(2, CALL(erase)(it, 10));
	TRIPS(2, CALL(pop_back)(v, 10));
	TRIPS(2, CALL(assign)(v, w));
	TRIPS(2, CALL(swap)(v, w));
	it = CALL(begin)(v);
	CALL(reserve)(v, 2000);
	TRIPS(3, CALL(insert_range)(it, CALL(begin)(w), IT_CALL(advance)(CALL(begin)(w), 100)));
	TRIPS(2, CALL(clear)(v));
	TRIPS(2 + 2 * HEAP_TRIPS, CALL(destroy)(w));
	TRIPS(1 + 2 * HEAP_TRIPS, w = CALL(create)(100, 1));
}

/* ---- Lost ranks ---- */

/* Set the model to the contents of a container, if it is consistent. */
static void believe(struct model *m)
{
	errno = FINE;
	m->size = CALL(size)(m->at);
	CHECK_EQ(errno, FINE);
	CHECK(m->size <= MODEL_MAX);
	read_bytes(m, 0, m->size, m->bytes);
	check_model(m);
}

/* Execute up to n steps of this rank, until it dies. */
static void steps_alone(unsigned int n)
{
	int me = acp_rank();

	for (; n; n--)
		CHECK_EQ(step(me), 0);
}

/* Rank 1 dies during an operation; the others find consistent containers and continue. */
static void play_death(void *arg)
{
	unsigned int i;

	begin_models_on(arg, true);
	rendezvous();
	play_alone = true;
	if (acp_rank() == 1) {
		play_state += 1000;
		fake_die_at(draw(400));
		steps_alone(1000000);
	}
	wait_for_the_end_of(1);
	usleep(100000);		/* its accesses in flight are executed now or never */
	if (acp_rank() != 2)
		return;
	for (i = 0; i < OBJECTS; i++)
		believe(&models[i]);
	steps_alone(100);
	for (i = 0; i < OBJECTS; i++)
		check_model(&models[i]);
	/* No container has data of another one. */
	for (i = 0; i < OBJECTS; i++) {
		FAILS(FINE, CALL(destroy)(models[i].at));
		CHECK_EQ(acpx_heap_check(models[i].rank), 0);
	}
}

static void play_deaths(int nodes)
{
	unsigned int i, n = steps(6);

	for (i = 0; i < n; i++) {
		play_job = (struct fake_acp){
			.ranks = 3, .nodes = nodes, .starter_size = 2 * (uint64_t)STAGE,
			.speed = 100,
		};
		fake_run(&play_job, play_death, &play_job);
		CHECK_EQ(play_job.dead, 1);
	}
}

/*
 * A node that cannot be reached: operations that need it fail, in the default error mode as well,
 * and change nothing; others work.
 */
static void play_cut(void *arg)
{
	struct model *m = &models[0], *lost = &models[1];
	TYPE_T none;
	IT_T it;
	unsigned int i;

	begin_models(arg);
	while (lost->size < 50)
		step_push_back(0, lost);
	rendezvous();
	if (!acp_rank()) {
		fake_cut(1, true);
		FAILS(ETIMEDOUT, CHECK_EQ(CALL(size)(lost->at), 0));
		FAILS(ETIMEDOUT, check_nowhere(CALL(end)(lost->at)));
		FAILS(ETIMEDOUT, CALL(push_back)(lost->at, stage_ga(), 10));
		FAILS(ETIMEDOUT, CALL(clear)(lost->at));
		FAILS(ETIMEDOUT, CALL(destroy)(lost->at));
		FAILS(ETIMEDOUT, CALL(swap)(lost->at, m->at));
		FAILS(ETIMEDOUT, CALL(assign)(m->at, lost->at));
		it = place(lost, 0);
		FAILS(ETIMEDOUT, check_nowhere(CALL(insert_range)(place(m, 0), it, it)));
		errno = FINE;
		none = CALL(create)(10, 1);
		CHECK(none.ga == ACP_GA_NULL && errno != FINE);
		/* Only the source is lost. */
		for (i = 0; i < 2; i++) {
			errno = FINE;
			check_nowhere(CALL(insert)(place(m, m->size / 2),
						   acp_query_starter_ga(1), 10));
			CHECK_EQ(errno, ETIMEDOUT);
			CALL(reserve)(m->at, m->size + 100);
			check_model(m);
		}
		fake_cut(1, false);
		for (i = 0; i < OBJECTS; i++)
			check_model(&models[i]);
		check_blocks();
	}
	rendezvous();
	end_models();
}

/* ---- Other threads ---- */

static bool others_stop;

/* Issue failing accesses continuously, which others are occasionally ordered after. */
static void *fail_always(void *arg)
{
	acp_ga_t nowhere = acp_query_starter_ga(1) + 4 * (acp_ga_t)STAGE;

	while (!__atomic_load_n(&others_stop, __ATOMIC_RELAXED)) {
		acp_complete(acp_copy(nowhere, stage_ga(), 8, ACP_HANDLE_NULL));
		usleep((unsigned int)(fake_random() % 100));
	}
	return arg;
}

/* Operations are not affected by them. */
static void play_failing_thread(void *arg)
{
	unsigned int i, n = steps(300), look;
	pthread_t thread;

	begin_models(arg);
	rendezvous();
	play_alone = true;
	if (acp_rank())
		return;
	CHECK(!pthread_create(&thread, NULL, fail_always, NULL));
	for (i = 0; i < n; i++) {
		CHECK_EQ(step(0), 0);
		look = (unsigned int)draw(OBJECTS);
		check_model(&models[look]);
	}
	__atomic_store_n(&others_stop, true, __ATOMIC_RELAXED);
	CHECK(!pthread_join(thread, NULL));
	check_blocks();
}

#define THREADS		4
#define THREAD_BYTES	2000u

/* Thread function: each thread has its own staging area and container. */
static void *use_own(void *arg)
{
	size_t slice = *(const size_t *)arg, size = 0, n;
	acp_ga_t at = stage_ga() + slice * 2 * THREAD_BYTES;
	unsigned char *here = (unsigned char *)stage() + slice * 2 * THREAD_BYTES;
	unsigned char model[THREAD_BYTES];
	TYPE_T mine = CALL(create)(0, (int)slice % acp_procs());
	unsigned int i, steps_left = steps(200);

	for (errno = FINE; steps_left; steps_left--) {
		n = fake_random() % 100;
		if (n <= THREAD_BYTES - size && fake_random() % 4) {
			for (i = 0; i < n; i++)
				here[i] = (unsigned char)fake_random();
			memcpy(model + size, here, n);
			CALL(push_back)(mine, at, n);
			size += n;
		} else {
			n = n < size ? n : size;
			CALL(pop_back)(mine, n);
			size -= n;
		}
		CHECK_EQ(CALL(size)(mine), size);
		if (size) {
			n = fake_random() % size;
			acp_complete(acp_copy(at + THREAD_BYTES, CALL(at)(mine, (int)n), 1,
					      ACP_HANDLE_NULL));
			CHECK_EQ(here[THREAD_BYTES], model[n]);
		}
		CHECK_EQ(errno, FINE);
	}
	CALL(destroy)(mine);
	CHECK_EQ(errno, FINE);
	return NULL;
}

/* Threads of two ranks, each with its own container. */
static void play_threads(void *arg)
{
	pthread_t threads[THREADS];
	size_t slices[THREADS], i;

	(void)arg;
	for (i = 0; i < THREADS; i++) {
		slices[i] = i;
		CHECK(!pthread_create(&threads[i], NULL, use_own, &slices[i]));
	}
	for (i = 0; i < THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	rendezvous();
	CHECK_EQ(live(), 0);
}

static void play_with_failing_thread(void)
{
	play_job = (struct fake_acp){
		.ranks = 2, .starter_size = 2 * (uint64_t)STAGE, .errors_return = true,
	};
	fake_run(&play_job, play_failing_thread, &play_job);
}

#endif /* BYTES_FAULTS_PLAY_H */
