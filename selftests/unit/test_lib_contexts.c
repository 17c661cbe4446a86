// SPDX-License-Identifier: MIT
/*
 * Contexts: queues of single threads, with a fake device. Ranks 0 and 1 are on the node of rank 0,
 * 2 and 3 on another one.
 */
#define _GNU_SOURCE
#include <sys/wait.h>

#include "acp.h"
#include "acp_ga.h"
#include "acp_abi.h"
#include "core/internal.h"
#include "core/queue.h"
#include "core/rings.h"
#include "test.h"
#include "test_lib_device.h"

#define THREADS	4
#define ROUNDS	3000
#define ALL	((acp_handle_t)ACP_HANDLE_ALL)
#define NONE	((acp_handle_t)ACP_HANDLE_NULL)

static acpx_context_t c[3];

static int start_in(int mode)
{
	setenv("ACP_RANK", "0", 1);
	setenv("ACP_NPROCS", "4", 1);
	setenv("ACP_NODES", "10.0.0.1 10.0.0.2", 1);
	setenv("ACP_INSECURE", "1", 1);
	setenv("ACP_QUEUE_DEPTH", "64", 1);
	acpx_set_error_mode(mode);
	return acp_init(NULL, NULL);
}

/* Start a rank with contexts; the caller is bound to the first. */
static void start(void)
{
	int i;

	CHECK(start_in(ACPX_ERRORS_RETURN) == 0);
	for (i = 0; i < 3; i++)
		CHECK(acpx_context_create(0, &c[i]) == 0);
	CHECK(acpx_context_bind(c[0]) == 0);
}

static acp_ga_t at(int rank, size_t offset)
{
	return acp_query_starter_ga(rank) + offset;
}

static uint64_t *word(int rank, size_t offset)
{
	return (uint64_t *)(void *)(fake.memory[ACP_STAG_STARTER][rank] + offset);
}

static int queue_of(acp_handle_t handle)
{
	return (int)(handle >> (ACP_TICKET_BITS + 1));
}

static acp_handle_t put(size_t offset, uint64_t value, acp_handle_t order)
{
	*word(0, offset) = value;
	return acp_copy(at(2, offset), at(0, offset), 8, order);
}

/* Run a function in another thread, which is bound to the second context. */
static void *bind_and_run(void *arg)
{
	void (*body)(void) = (void (*)(void))(uintptr_t)arg;

	CHECK(acpx_context_bind(c[1]) == 0);
	body();
	return NULL;
}

static pthread_t begin_other(void (*body)(void))
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, bind_and_run, (void *)(uintptr_t)body) == 0);
	return thread;
}

static void in_other(void (*body)(void))
{
	CHECK(pthread_join(begin_other(body), NULL) == 0);
}

/* ---- Creation ---- */

TEST(context__before_init)
{
	acpx_context_t context = NULL;

	CHECK(acpx_context_create(0, &context) == -ENOTCONN && !context);
	CHECK(acpx_context_bind(NULL) == -ENOTCONN && acpx_context_destroy(context) == -ENOTCONN);
}

TEST(context__arguments)
{
	static const unsigned int depths[] = { 1, 63, 65, 131072, ~0u };
	acpx_context_t context = NULL, none;
	static uint64_t something[100];
	size_t i;

	none = (acpx_context_t)(void *)something;
	CHECK(start_in(ACPX_ERRORS_RETURN) == 0);
	for (i = 0; i < sizeof(depths) / sizeof(depths[0]); i++)
		CHECK(acpx_context_create(depths[i], &context) == -EINVAL);
	CHECK(acpx_context_create(0, NULL) == -EINVAL);
	fake.attach_error = ENOSPC;
	CHECK(acpx_context_create(0, &context) == -ENOSPC);
	fake.attach_error = EDQUOT;
	CHECK(acpx_context_create(0, &context) == -EDQUOT);
	fake.attach_error = 0;
	CHECK(!context);
	CHECK(acpx_context_bind(none) == -EINVAL && acpx_context_destroy(none) == -EINVAL);
	CHECK(acpx_context_destroy(NULL) == -EINVAL && acpx_context_bind(NULL) == 0);
	CHECK(acpx_context_create(128, &context) == 0 && acpx_context_bind(context) == 0);
	CHECK(acpx_context_bind(context) == 0);
	CHECK(acpx_context_destroy(context) == 0);
	CHECK(acpx_context_bind(context) == -EINVAL);
	CHECK(acp_finalize() == 0);
}

TEST(context__has_handles_of_its_own)
{
	acp_handle_t mine, other;

	start();
	mine = put(0, 1, NONE);
	CHECK(queue_of(mine) == 1 && !(mine & 1));
	acp_complete(mine);
	CHECK(*word(2, 0) == 1 && acpx_status(mine) == 0);
	/* Also accesses that the caller executes itself. */
	other = acp_copy(at(0, 16), at(0, 0), 8, NONE);
	CHECK(queue_of(other) == 1 && (other & 1) && acp_inquire(other) == 0);
	CHECK(acpx_context_bind(NULL) == 0);
	other = put(8, 2, NONE);
	CHECK(queue_of(other) == 0);
	acp_complete(other);
	CHECK(acp_inquire(mine) == 0 && acpx_status(mine) == 0);
	CHECK(acpx_context_bind(c[2]) == 0);
	CHECK(queue_of(acpx_copy_strided(at(2, 0), at(0, 0), 8, 2, 16, 32, NONE)) == 3);
	CHECK(queue_of(acpx_copyv(&(struct acpx_iov){ at(2, 0), at(0, 0), 8 }, 1, NONE)) == 3);
	CHECK(queue_of(acp_add8(at(0, 32), at(2, 0), 1, NONE)) == 3);
	acp_complete(ALL);
	CHECK(acp_finalize() == 0);
}

/* ---- Independence ---- */

TEST(context__waits_for_its_own_only)
{
	acp_handle_t held, mine;

	start();
	CHECK(acpx_context_bind(NULL) == 0);
	fake_set_held(1);
	held = put(0, 1, NONE);
	CHECK(acpx_context_bind(c[0]) == 0);
	mine = put(8, 2, NONE);
	acp_complete(mine);
	/* ALL refers to what this context has issued. */
	acp_complete(ALL);
	CHECK(acp_inquire(ALL) == 0 && *word(2, 8) == 2);
	CHECK(acp_inquire(held) == 1 && acpx_status(held) == ACPX_EPENDING && *word(2, 0) == 0);
	CHECK(acpx_context_bind(NULL) == 0);
	CHECK(acp_inquire(ALL) == 1);
	fake_set_held(0);
	CHECK(acp_finalize() == 0);
}

static acp_handle_t stuck;

static void fill_own_ring(void)
{
	int i;

	for (i = 0; i < 65; i++)
		__atomic_store_n(&stuck, put(0, 1, NONE), __ATOMIC_RELEASE);
}

static void *fill_ring(void *arg)
{
	fill_own_ring();
	return arg;
}

/*
 * A thread that waits for a slot in the queue of the process holds its lock, which others do not
 * need.
 */
TEST(context__takes_no_lock)
{
	pthread_t thread;
	int i;

	start();
	fake_set_held(1);
	CHECK(pthread_create(&thread, NULL, fill_ring, NULL) == 0);
	while (!(__atomic_load_n(&stuck, __ATOMIC_ACQUIRE) >> 1 >= 65))
		usleep(1000);
	usleep(50000);
	CHECK(pthread_mutex_trylock(&libacp_main.lock) == EBUSY);
	for (i = 0; i < 300; i++) {
		acp_complete(put(8, 2, NONE));
		acp_complete(acp_add8(at(0, 24), at(2, 16), 1, NONE));
	}
	CHECK(*word(2, 16) == 300);
	fake_set_held(0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(acp_finalize() == 0);
}

static acp_handle_t of_first;

static void look_at_first(void)
{
	CHECK(acp_inquire(of_first) == 1 && acpx_status(of_first) == ACPX_EPENDING);
	fake_set_held(0);
	acp_complete(of_first);
	CHECK(acp_inquire(of_first) == 0 && acpx_status(of_first) == 0 && *word(2, 0) == 7);
}

TEST(context__handles_in_other_threads)
{
	start();
	fake_set_held(1 << 1);
	of_first = put(0, 7, NONE);
	in_other(look_at_first);
	CHECK(acp_finalize() == 0);
}

static unsigned int sleeps(void)
{
	unsigned int waits;

	pthread_mutex_lock(&fake.lock);
	waits = fake.waits;
	pthread_mutex_unlock(&fake.lock);
	return waits;
}

/* Run another thread, which sleeps until held commands complete: then release them. */
static void run_behind_first(void (*body)(void))
{
	unsigned int before = sleeps();
	pthread_t thread = begin_other(body);

	while (sleeps() == before)
		usleep(1000);
	CHECK(*word(2, 8) == 0);
	fake_set_held(0);
	CHECK(pthread_join(thread, NULL) == 0);
}

static void put_behind_first(void)
{
	/* The word has arrived when the next command is issued. */
	acp_handle_t behind = put(8, 8, of_first);

	CHECK(*word(2, 0) == 7 && queue_of(behind) == 2);
	acp_complete(behind);
	CHECK(*word(2, 8) == 8);
	/* The same for an access that the thread executes itself. */
	CHECK(acp_copy(at(0, 64), at(0, 8), 8, of_first) & 1);
}

TEST(context__order_behind_another)
{
	start();
	fake_set_held(1 << 1);
	of_first = put(0, 7, NONE);
	run_behind_first(put_behind_first);
	CHECK(acp_finalize() == 0);
}

static void put_behind_failure(void)
{
	struct acpx_iov v = { at(2, 8), at(0, 8), 8 };

	CHECK(put(8, 8, of_first) == NONE);
	CHECK(*word(2, 8) == 0 && acpx_status(of_first) == ACPX_ERANGE);
	/* From now on it is no condition. */
	CHECK(put(8, 8, of_first) != NONE && acpx_copyv(&v, 1, of_first) != NONE);
	acp_complete(ALL);
	CHECK(*word(2, 8) == 8);
}

TEST(context__order_behind_a_failure_of_another)
{
	start();
	fake_set_held(1 << 1);
	of_first = acp_copy(at(2, 20000), at(0, 0), 8, NONE);
	run_behind_first(put_behind_failure);
	CHECK(acp_finalize() == 0);
}

/* Accesses of the library itself use the queue of the process, which all threads know. */
TEST(context__not_for_the_library)
{
	acp_handle_t own;
	bool former;

	start();
	former = libacp_quiet(true);
	own = put(0, 3, NONE);
	CHECK(queue_of(own) == 0 && libacp_finish(own) == 0);
	own = acp_copy(at(2, 20000), at(0, 0), 8, NONE);
	CHECK(libacp_finish(own) == -EFAULT);
	libacp_quiet(former);
	CHECK(queue_of(put(0, 4, NONE)) == 1);
	acp_complete(ALL);
	CHECK(acp_finalize() == 0);
}

/* ---- Binding and destruction ---- */

static void try_to_take_first(void)
{
	CHECK(acpx_context_bind(c[0]) == -EBUSY && acpx_context_destroy(c[0]) == -EBUSY);
	/* It still has its own. */
	CHECK(queue_of(put(0, 1, NONE)) == 2);
	acp_complete(ALL);
}

TEST(context__of_one_thread_at_a_time)
{
	start();
	in_other(try_to_take_first);
	/* That thread has ended. */
	CHECK(acpx_context_bind(c[1]) == 0);
	CHECK(acpx_context_bind(c[0]) == 0);
	in_other(try_to_take_first);
	CHECK(acp_finalize() == 0);
}

static void release_soon(void)
{
	usleep(50000);
	fake_set_held(0);
}

TEST(context__destroyed_with_accesses_under_way)
{
	pthread_t thread;
	acp_handle_t h;

	start();
	fake_set_held(1 << 1);
	h = put(0, 9, NONE);
	thread = begin_other(release_soon);
	CHECK(acpx_context_destroy(c[0]) == 0);
	CHECK(*word(2, 0) == 9);
	CHECK(pthread_join(thread, NULL) == 0);
	/*
	 * It is complete, its status is not known any more, and the thread continues without
	 * context.
	 */
	CHECK(acp_inquire(h) == 0 && acpx_status(h) == ACPX_EUNKNOWN);
	acp_complete(h);
	CHECK(queue_of(put(0, 10, h)) == 0);
	acp_complete(ALL);
	/* Destroying another context does not affect that of the caller. */
	CHECK(acpx_context_bind(c[2]) == 0 && acpx_context_destroy(c[1]) == 0);
	CHECK(queue_of(put(0, 10, NONE)) == 3);
	CHECK(acp_finalize() == 0);
}

static int stage;

static void wait_for_stage(int n)
{
	while (__atomic_load_n(&stage, __ATOMIC_ACQUIRE) < n)
		usleep(1000);
}

static void set_stage(int n)
{
	__atomic_store_n(&stage, n, __ATOMIC_RELEASE);
}

static void outlive_its_context(void)
{
	acp_handle_t h = put(0, 1, NONE);

	set_stage(1);
	wait_for_stage(2);
	/* The rank has joined again. */
	CHECK(queue_of(put(0, 2, NONE)) == 0);
	CHECK(acp_copy(at(0, 8), at(0, 0), 8, NONE) & 1);
	acp_complete(ALL);
	acp_complete(h);
	CHECK(acpx_context_bind(c[1]) == 0 && queue_of(put(0, 3, NONE)) == 2);
}

static void outlive_and_copy(void)
{
	set_stage(1);
	wait_for_stage(2);
	CHECK(queue_of(acp_copy(at(0, 8), at(0, 0), 8, NONE)) == 0);
	acp_complete(5);
	CHECK(acp_inquire(5) == 0 && acpx_status(1ull << 62) == ACPX_EUNKNOWN);
}

static void outlive_and_end(void)
{
	set_stage(1);
	wait_for_stage(2);
}

/* acp_finalize and acp_reset destroy all of them, even if they are bound. */
TEST(context__ends_with_the_rank)
{
	static void (*const bodies[])(void) = {
		outlive_its_context, outlive_and_copy, outlive_and_end
	};
	pthread_t thread;
	size_t i;

	for (i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		stage = 0;
		start();
		put(8, 1, NONE);
		thread = begin_other(bodies[i]);
		wait_for_stage(1);
		CHECK(acp_finalize() == 0);
		start();
		set_stage(2);
		CHECK(pthread_join(thread, NULL) == 0);
		CHECK(acp_finalize() == 0);
	}
}

/* But not if the rank stays. */
TEST(context__stays_when_a_reset_is_refused)
{
	acp_handle_t h;

	start();
	h = put(8, 1, NONE);
	CHECK(acp_reset(1) == -1);
	CHECK(acp_inquire(h) == 0 && *word(2, 8) == 1);
	CHECK(queue_of(put(8, 2, NONE)) == 1);
	CHECK(acpx_context_destroy(c[0]) == 0 && queue_of(put(8, 3, NONE)) == 0);
	CHECK(acp_reset(1) == -1 && queue_of(put(8, 4, NONE)) == 0);
	CHECK(acp_finalize() == 0);
}

static void call_in_child(void)
{
	int i;

	CHECK(put(0, 1, NONE) == NONE && acpx_context_bind(c[1]) == -ENOTCONN);
	CHECK(acpx_context_destroy(c[0]) == -ENOTCONN);
	for (i = 0; i < FAKE_QUEUES; i++)
		CHECK(fake.further[i].fd <= 0 || fcntl(fake.further[i].fd, F_GETFD) < 0);
}

TEST(context__not_for_children)
{
	int status = -1;
	pid_t pid;

	start();
	pid = fork();
	if (!pid) {
		call_in_child();
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(queue_of(put(0, 1, NONE)) == 1);
	CHECK(acp_finalize() == 0);
}

/* ---- Failures ---- */

TEST(context__failures_that_are_asked_for)
{
	acp_handle_t bad, good;
	int i;

	start();
	bad = acp_copy(at(2, 20000), at(0, 0), 8, NONE);
	good = put(0, 1, NONE);
	acp_complete(good);
	CHECK(acpx_status(bad) == ACPX_ERANGE && acpx_status(good) == 0);
	for (i = 0; i < 100; i++)
		acp_copy(at(2, 20000), at(0, 0), 8, NONE);
	acp_complete(ALL);
	CHECK(acpx_status(bad) == ACPX_EUNKNOWN);
	CHECK(acp_finalize() == 0);
}

#define TURNS	4000

static int turn;

/* Query an access of a context of another thread once in each round. */
static void *ask_about_first(void *arg)
{
	int i;

	for (i = 1; i <= TURNS; i++) {
		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) < i)
			sched_yield();
		acp_complete(of_first);
	}
	return arg;
}

/* Each failure is counted once, even if its slot is reused while another thread counts. */
TEST(context__failures_are_counted_once)
{
	pthread_t thread;
	int i, k;

	start();
	of_first = put(0, 1, NONE);
	CHECK(pthread_create(&thread, NULL, ask_about_first, NULL) == 0);
	for (i = 1; i <= TURNS; i++) {
		for (k = 0; k < 64; k++) {
			if (k == 2)
				__atomic_store_n(&turn, i, __ATOMIC_RELEASE);
			acp_copy(at(2, 20000), at(0, 0), 8, NONE);
		}
		while (acp_inquire(ALL))
			sched_yield();
	}
	CHECK(pthread_join(thread, NULL) == 0);
	acp_complete(ALL);
	CHECK(libacp_bound->failures_seen == 64 * TURNS);
	CHECK(libacp_rings_failed(&libacp_bound->rings) == 64 * TURNS);
	CHECK(acp_finalize() == 0);
}

static void fail_in_context(void)
{
	acp_complete(acp_copy(at(2, 20000), at(0, 0), 8, NONE));
}

static void fail_and_destroy(void)
{
	acp_copy(at(2, 20000), at(0, 0), 8, NONE);
	acpx_context_destroy(c[0]);
}

static void fail_and_finalize(void)
{
	int i;

	/* Its slot is reused. */
	acp_copy(at(2, 20000), at(0, 0), 8, NONE);
	for (i = 0; i < 200; i++)
		put(0, 1, NONE);
	acp_finalize();
}

static void see_abort(void)
{
	fake_abort();
	put(0, 1, NONE);
	acp_complete(ALL);
}

static void fail_and_be_waited_for(void)
{
	of_first = acp_copy(at(2, 20000), at(0, 0), 8, NONE);
	CHECK(acpx_context_bind(NULL) == 0);
	acp_complete(of_first);
}

TEST(context__failures_end_the_job_by_default)
{
	static void (*const bodies[])(void) = {
		fail_in_context, fail_and_destroy, fail_and_finalize, fail_and_be_waited_for,
		see_abort,
	};
	size_t i;

	for (i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		int status = -1;
		pid_t pid = fork();

		if (!pid) {
			test_limit(PATIENCE_SOON);
			start();
			acpx_set_error_mode(ACPX_ERRORS_ABORT);
			bodies[i]();
			_exit(0);
		}
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 255);
	}
}

/* ---- Stress ---- */

static acp_handle_t latest[THREADS];

/* Put to a word that is not read any more: those of the previous six puts may be in flight. */
static acp_handle_t put_next(size_t n, uint64_t i)
{
	size_t from = 512 + 64 * n + i % 7 * 8;

	*word(0, from) = i;
	return acp_copy(at(2, 64 * n + 8), at(0, from), 8, NONE);
}

static void *work(void *arg)
{
	size_t n = (size_t)(uintptr_t)arg, i;
	acpx_context_t own = NULL;
	acp_handle_t h;

	for (i = 1; i <= ROUNDS; i++) {
		if (n && i % 500 == 1) {
			CHECK(!own || acpx_context_destroy(own) == 0);
			CHECK(acpx_context_create(64, &own) == 0 && acpx_context_bind(own) == 0);
		}
		h = put_next(n, i);
		__atomic_store_n(&latest[n], h, __ATOMIC_RELEASE);
		h = acp_add8(at(0, 64 * n + 16), at(2, 0), 1, h);
		if (i % 7 == 0) {
			acp_complete(h);
			if (*word(2, 64 * n + 8) != i || acpx_status(h))
				FAIL("%zu: %zu is %llu, status %d", n, i,
				     (unsigned long long)*word(2, 64 * n + 8), acpx_status(h));
		}
		if (i % 50 == 0) {
			/* Query accesses of other threads, whose contexts may be gone. */
			h = __atomic_load_n(&latest[(n + i) % THREADS], __ATOMIC_ACQUIRE);
			acp_inquire(h);
			acp_complete(h);
			CHECK(acp_inquire(h) == 0);
			h = acp_add8(at(0, 64 * n + 24), at(2, 40), 1, h);
		}
		/* Later accesses would fail as well otherwise. */
		if (i % 50 == 25)
			acp_complete(acp_copy(at(2, 20000), at(0, 0), 8, NONE));
	}
	acp_complete(ALL);
	CHECK(!own || acpx_context_destroy(own) == 0);
	return NULL;
}

/* One thread without a context, the others with contexts that are created one after the other. */
TEST(contexts__of_threads)
{
	pthread_t thread[THREADS];
	uintptr_t i;

	CHECK(start_in(ACPX_ERRORS_RETURN) == 0);
	for (i = 0; i < THREADS; i++)
		CHECK(pthread_create(&thread[i], NULL, work, (void *)i) == 0);
	for (i = 0; i < THREADS; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
	CHECK(*word(2, 0) == THREADS * ROUNDS);
	CHECK(acp_finalize() == 0);
}

TEST_MAIN
