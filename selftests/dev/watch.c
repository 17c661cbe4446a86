// SPDX-License-Identifier: MIT
/*
 * Sleeping until memory of the rank is written (struct acp_watch): what wakes, what does not, and
 * that no wake-up is lost. Sleeps in these tests have no timeout, or a long one.
 */
#include "isolated.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "rank.h"

#define RANKS	2
#define PLAY_MS	1000			/* how long ranks send numbers to each other */
#define ROUNDS	20			/* at the least */
#define LAST	(1ULL << 63)

static struct rank r[RANKS];
static struct acp_watch *watch[RANKS];

static void begin(void)
{
	uint32_t i;

	rank_open_local(r, RANKS);
	for (i = 0; i < RANKS; i++) {
		char *page = rank_map(r[i].fd, ACP_MAP_LIBRARY, i, PAGE, PROT_READ | PROT_WRITE);

		watch[i] = (struct acp_watch *)(void *)(page + ACP_WATCH_OFFSET);
	}
}

static int watch_for(const struct rank *rank, uint64_t wakes, uint64_t timeout_ns)
{
	struct acp_watch_wait w = {
		.size = sizeof(w), .wakes = wakes, .timeout_ns = timeout_ns,
	};

	return ioctl(rank->fd, ACP_IOC_WATCH, &w);
}

static int wake(const struct rank *rank, uint32_t whom)
{
	struct acp_wake w = { .size = sizeof(w), .rank = whom };

	return ioctl(rank->fd, ACP_IOC_WAKE, &w);
}

/* Arm the watch line of an address of this rank. Return the number of wake-ups so far. */
static uint64_t arm(uint32_t rank)
{
	uint64_t wakes = __atomic_load_n(&watch[rank]->wakes, __ATOMIC_ACQUIRE);

	__atomic_store_n(&watch[rank]->armed, 1, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return wakes;
}

static void look_at(uint32_t rank, uint64_t offset, uint32_t by)
{
	__atomic_fetch_add(&watch[rank]->lines[ACP_WATCH_LINE(offset)], by, __ATOMIC_SEQ_CST);
}

/* True if @what wakes a rank that watches this offset, or the same offset in other pages. */
static bool wakes(uint32_t rank, uint64_t offset, int (*what)(void))
{
	uint64_t before;
	bool woken;

	look_at(rank, offset, 1);
	before = arm(rank);
	CHECK_EQ(what(), 0);
	woken = watch[rank]->wakes != before;
	CHECK_EQ(watch[rank]->armed, !woken);
	CHECK_EQ(watch_for(&r[rank], before, 0), woken ? 0 : -1);
	look_at(rank, offset, UINT32_MAX);
	watch[rank]->armed = 0;
	return woken;
}

/* ---- What wakes ---- */

static struct memory m;

/* From rank 0 to offset 200 of the memory of rank 1. */
static int put_word(void)
{
	return rank_do_copy(&r[0], heap_ga(&r[1], 200), heap_ga(&r[0], 0), 8);
}

static int put_nothing(void)
{
	return rank_do_copy(&r[0], heap_ga(&r[1], 200), heap_ga(&r[0], 0), 0);
}

static int put_page(void)
{
	return rank_do_copy(&r[0], heap_ga(&r[1], 200), heap_ga(&r[0], 0), 3900);
}

static int put_registered(void)
{
	return rank_do_copy(&r[0], memory_ga(&m, 200), heap_ga(&r[0], 0), 8);
}

static int put_starter(void)
{
	return rank_do_copy(&r[0], starter_ga(&r[1], 200), heap_ga(&r[0], 0), 8);
}

static int put_long(void)
{
	return rank_do_copy(&r[0], heap_ga(&r[1], 0), heap_ga(&r[0], 0), 32768);
}

static int get_word(void)
{
	return rank_do_copy(&r[0], heap_ga(&r[0], 200), heap_ga(&r[1], 200), 8);
}

static int add_word(void)
{
	return rank_do_atomic(&r[0], ACP_OP_ADD8, heap_ga(&r[0], 64), heap_ga(&r[1], 200), 1, 0);
}

static int put_too_far(void)
{
	return rank_do_copy(&r[0], heap_ga(&r[1], r[1].join.heap_size - 56), heap_ga(&r[0], 0),
			    64) == ACP_ST_RANGE ? 0 : 1;
}

static int wake_by_call(void)
{
	return wake(&r[0], 1);
}

TEST(wakes_who_looks_there)
{
	begin();
	memory_open(&r[1], &m, 2 * PAGE);
	CHECK(wakes(1, 200, put_word));
	CHECK(wakes(1, 192 + 4096, put_word));
	CHECK(wakes(1, 200, put_page));
	CHECK(wakes(1, 0, put_page));		/* its last bytes are in the next page */
	CHECK(wakes(1, 200, put_registered));
	CHECK(wakes(1, 200, put_starter));
	CHECK(wakes(1, 1000, put_long));
	CHECK(wakes(1, 200, add_word));
	CHECK(wakes(0, 200, get_word));
	CHECK(wakes(0, 64, add_word));		/* the former value */
	CHECK(wakes(1, 1000, wake_by_call));
}

static int poll_from(uint64_t wakes)
{
	struct acp_watch_wait w = { .size = sizeof(w), .flags = ACP_WATCH_ARM, .wakes = wakes };

	return ioctl(r[1].fd, ACP_IOC_WATCH, &w);
}

static bool is_readable(void)
{
	struct pollfd p = { r[1].fd, POLLIN, 0 };

	return poll(&p, 1, 0) == 1 && p.revents == POLLIN;
}

static void *put_soon(void *arg)
{
	(void)arg;
	sleep_ms(20);
	CHECK_EQ(put_word(), 0);
	return NULL;
}

TEST(poll_reports_wake_ups)
{
	struct epoll_event e = { .events = EPOLLIN };
	int set = epoll_create1(0), i;
	pthread_t thread;

	begin();
	look_at(1, 200, 1);
	CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, r[1].fd, &e), 0);
	CHECK(!is_readable());
	CHECK_EQ(put_word(), 0);
	CHECK(!is_readable());
	for (i = 0; i < 2; i++) {
		CHECK_EQ(poll_from(arm(1)), 0);
		CHECK(!is_readable());
		CHECK_EQ(put_word(), 0);
		CHECK(is_readable());
		CHECK(is_readable());
	}
	/* It is reported, too, if it was armed too late. */
	CHECK_EQ(poll_from(arm(1) - 1), 0);
	CHECK_EQ(epoll_wait(set, &e, 1, 0), 1);
	CHECK_EQ(poll_from(arm(1)), 0);
	CHECK_EQ(epoll_wait(set, &e, 1, 0), 0);
	CHECK_EQ(pthread_create(&thread, NULL, put_soon, NULL), 0);
	CHECK(patience_poll(set, POLLIN, PATIENCE_SOON));
	CHECK_EQ(epoll_wait(set, &e, 1, 0), 1);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	look_at(1, 200, UINT32_MAX);
}

TEST(does_not_wake_others)
{
	begin();
	memory_open(&r[1], &m, 2 * PAGE);
	CHECK(!wakes(1, 256, put_word));
	CHECK(!wakes(1, 191, put_word));
	CHECK(!wakes(1, 200, put_nothing));
	CHECK(!wakes(1, 128, put_page));
	CHECK(!wakes(1, 256, put_registered));
	CHECK(!wakes(1, 256, add_word));
	CHECK(!wakes(1, 200, get_word));
	CHECK(!wakes(0, 200, put_word));
	CHECK(!wakes(0, 1000, wake_by_call));
	CHECK(!wakes(1, 4095, put_too_far));
}

/* Nobody sleeps: nothing is written to the page. */
TEST(leaves_alone_what_is_not_armed)
{
	begin();
	look_at(1, 200, 1);
	CHECK_EQ(put_word(), 0);
	CHECK_EQ(watch[1]->wakes, 0);
	CHECK_EQ(watch[1]->armed, 0);
}

/* A failed command may be the reason why nothing arrives. */
TEST(failure_wakes_its_own_rank)
{
	begin();
	CHECK(wakes(0, 3000, put_too_far));
}

TEST(wake_of_ranks_that_are_not_there)
{
	struct setup s;

	setup_local(&s, 0, 3);
	rank_open(&r[0], &s);
	CHECK_EQ(wake(&r[0], 0), 0);
	CHECK_ERRNO(wake(&r[0], 1), ESRCH);
	CHECK_ERRNO(wake(&r[0], 3), EINVAL);
	CHECK_ERRNO(wake(&r[0], UINT32_MAX), EINVAL);
}

/* ---- Ends of a sleep ---- */

TEST(times_out_and_costs_nothing)
{
	struct rusage before, after;
	uint64_t start;

	begin();
	CHECK_ERRNO(watch_for(&r[0], 0, 0), ETIMEDOUT);
	CHECK_EQ(watch_for(&r[0], 1, 0), 0);
	start = now_ns();
	getrusage(RUSAGE_SELF, &before);
	CHECK_ERRNO(watch_for(&r[0], 0, 2000 * MS), ETIMEDOUT);
	getrusage(RUSAGE_SELF, &after);
	CHECK(now_ns() - start >= 2000 * MS);
	CHECK(after.ru_nvcsw - before.ru_nvcsw <= 5);
	CHECK_ERRNO(watch_for(&r[0], 0, 1), ETIMEDOUT);
}

static void nothing(int signal)
{
	(void)signal;
}

TEST(P8_watch_is_interrupted)
{
	static const int flags[] = { 0, SA_RESTART };
	pid_t parent = getpid();
	int i;

	begin();
	for (i = 0; i < 2; i++) {
		struct sigaction a = { .sa_handler = nothing, .sa_flags = flags[i] };

		CHECK_EQ(sigaction(SIGUSR1, &a, NULL), 0);
		if (!fork()) {
			wait_asleep(parent, 1);
			kill(parent, SIGUSR1);
			_exit(0);
		}
		CHECK_ERRNO(watch_for(&r[0], 0, FOREVER), EINTR);
	}
}

static void *watch_in_thread(void *arg)
{
	CHECK_EQ(watch_for(arg, 0, FOREVER), 0);
	return NULL;
}

static void *watch_canceled(void *arg)
{
	CHECK_ERRNO(watch_for(arg, 0, FOREVER), ECANCELED);
	return NULL;
}

TEST(abort_wakes_who_watches)
{
	pthread_t thread;

	begin();
	CHECK_EQ(pthread_create(&thread, NULL, watch_canceled, &r[0]), 0);
	wait_asleep(getpid(), 1);
	CHECK_EQ(ioctl(r[1].fd, ACP_IOC_ABORT), 0);
	pthread_join(thread, NULL);
	CHECK_ERRNO(watch_for(&r[0], 0, 0), ECANCELED);
}

TEST(P8_many_threads_watch)
{
	pthread_t thread[32];
	int i;

	begin();
	for (i = 0; i < 32; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, watch_in_thread, &r[0]), 0);
	wait_asleep(getpid(), 32);
	CHECK_EQ(wake(&r[1], 0), 0);
	for (i = 0; i < 32; i++)
		pthread_join(thread[i], NULL);
}

/* It may have been killed between its write and its call. */
TEST(P1_a_rank_that_leaves_wakes_its_neighbours)
{
	pthread_t thread;

	begin();
	CHECK_EQ(pthread_create(&thread, NULL, watch_in_thread, &r[0]), 0);
	wait_asleep(getpid(), 1);
	munmap((char *)watch[1] - ACP_WATCH_OFFSET, PAGE);	/* the mapping holds the file */
	rank_close(&r[1]);
	pthread_join(thread, NULL);
	CHECK_ERRNO(wake(&r[0], 1), ESRCH);
}

TEST(P8_descriptor_closed_while_watching)
{
	pthread_t thread;

	begin();
	CHECK_EQ(pthread_create(&thread, NULL, watch_in_thread, &r[0]), 0);
	wait_asleep(getpid(), 1);
	CHECK_EQ(close(r[0].fd), 0);
	CHECK_EQ(wake(&r[1], 0), 0);
	pthread_join(thread, NULL);
}

TEST(P1_killed_while_watching)
{
	pid_t child = fork();
	int status = 0;

	if (!child) {
		begin();
		watch_for(&r[0], 0, FOREVER);
		_exit(0);
	}
	sleep_ms(500);
	CHECK_EQ(kill(child, SIGKILL), 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFSIGNALED(status));
}

/* Random bytes in the page: calls end, nothing else happens. */
TEST(K1_nonsense_in_the_page)
{
	uint64_t state = 1;
	uint32_t i, k;

	begin();
	for (i = 0; i < 2000; i++) {
		for (k = 0; k < sizeof(*watch[1]) / 4; k++)
			((volatile uint32_t *)watch[1])[k] = (uint32_t)next_random(&state);
		CHECK_EQ(put_word(), 0);
		CHECK_EQ(wake(&r[0], 1), 0);
		CHECK_EQ(watch_for(&r[1], next_random(&state), 1000), 0);
	}
}

/* ---- Lost wake-ups ---- */

/* Two ranks send numbers to each other, and sleep until they arrive. */
struct player {
	pthread_t thread;
	uint32_t me;
	bool far;		/* through the kernel; otherwise written by a neighbour */
};

static uint64_t *word_of(uint32_t rank)
{
	return (uint64_t *)(void *)(r[rank].heap + 512);
}

static void send_number(struct player *p, uint64_t i)
{
	uint32_t other = !p->me;

	if (p->far) {
		*(uint64_t *)(void *)r[p->me].heap = i;
		CHECK_EQ(rank_do_copy(&r[p->me], heap_ga(&r[other], 512), heap_ga(&r[p->me], 0), 8),
			 ACP_ST_OK);
		return;
	}
	__atomic_store_n(word_of(other), i, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&watch[other]->armed, __ATOMIC_RELAXED) &&
	    __atomic_load_n(&watch[other]->lines[ACP_WATCH_LINE(512)], __ATOMIC_RELAXED))
		CHECK_EQ(wake(&r[p->me], other), 0);
}

/* Not in short waits, which would hide that a wake-up was lost. */
static void await_change(uint32_t me, uint64_t seen)
{
	struct patience p = patience_begin(PATIENCE_WORK);

	while (watch_for(&r[me], seen, patience_left(&p))) {
		CHECK_EQ(errno, ETIMEDOUT);
		CHECK(!patience_over(&p));
	}
}

/* Wait for the i-th number or the last one, and return it. */
static uint64_t await_number(struct player *p, uint64_t i)
{
	uint64_t seen = arm(p->me), number;

	while ((number = __atomic_load_n(word_of(p->me), __ATOMIC_ACQUIRE)) < i) {
		await_change(p->me, seen);
		seen = arm(p->me);
	}
	return number;
}

static void *play(void *arg)
{
	uint64_t i, number, end = in_ms(PLAY_MS);
	struct player *p = arg;

	look_at(p->me, 512, 1);
	for (i = 1; ; i++) {
		number = now_ns() < end || i <= ROUNDS ? i : i | LAST;
		if (p->me)
			number = await_number(p, i);
		send_number(p, number);
		if (!p->me)
			number = await_number(p, i);
		if (number & LAST)
			return NULL;
	}
}

static void play_both(bool far0, bool far1)
{
	struct player p[RANKS] = { { .me = 0, .far = far0 }, { .me = 1, .far = far1 } };
	int i;

	begin();
	for (i = 0; i < RANKS; i++)
		CHECK_EQ(pthread_create(&p[i].thread, NULL, play, &p[i]), 0);
	for (i = 0; i < RANKS; i++)
		pthread_join(p[i].thread, NULL);
	CHECK(*word_of(0) & LAST);
	printf("# %llu rounds\n", (unsigned long long)(*word_of(0) & ~LAST));
}

TEST(no_wake_up_of_the_kernel_is_lost)
{
	play_both(true, true);
}

TEST(no_wake_up_of_neighbours_is_lost)
{
	play_both(false, false);
}

TEST(no_wake_up_of_either_is_lost)
{
	play_both(true, false);
}
