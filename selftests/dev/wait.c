// SPDX-License-Identifier: MIT
/*
 * Waiting: for commands, with poll and epoll, in the barrier; timeouts, signals, abort, and
 * descriptors that are closed meanwhile.
 */
#include "isolated.h"

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "rank.h"

static struct rank r;

/* A job with a node that never answers: commands to it fail after @ms. */
static void begin(uint32_t ms)
{
	static const char *const addresses[] = { "127.0.0.1", "127.0.0.2", NULL };
	struct setup s;

	setup_nodes(&s, 0, 2, 2, addresses);
	s.join.open_timeout_ms = ms;
	rank_open(&r, &s);
}

static uint64_t pending(void)
{
	return rank_copy(&r, rank_ga(&r, 1, ACP_STAG_HEAP, 0), heap_ga(&r, 0), 8, 0);
}

static int wait_for(uint64_t ticket, uint64_t timeout_ns)
{
	struct acp_wait w = { .size = sizeof(w), .ticket = ticket, .timeout_ns = timeout_ns };

	return ioctl(r.fd, ACP_IOC_WAIT, &w);
}

static void arm(uint64_t ticket)
{
	struct acp_wait w = { .size = sizeof(w), .flags = ACP_WAIT_ARM, .ticket = ticket };

	CHECK_EQ(ioctl(r.fd, ACP_IOC_WAIT, &w), 0);
}

/* ---- ACP_IOC_WAIT ---- */

TEST(wait_for_what_is_complete)
{
	begin(1000);
	CHECK_EQ(wait_for(0, 0), 0);
	CHECK_EQ(wait_for(1, FOREVER), 0);
	CHECK_EQ(rank_do_copy(&r, heap_ga(&r, 8), heap_ga(&r, 0), 8), ACP_ST_OK);
	CHECK_EQ(wait_for(2, FOREVER), 0);
}

TEST(wait_times_out)
{
	uint64_t ticket, start;

	begin(60000);
	ticket = pending();
	CHECK_ERRNO(wait_for(ticket, 0), ETIMEDOUT);
	start = now_ns();
	CHECK_ERRNO(wait_for(ticket, 200 * MS), ETIMEDOUT);
	CHECK(now_ns() - start >= 200 * MS);
	CHECK_ERRNO(wait_for(ticket, 1), ETIMEDOUT);
	CHECK_ERRNO(wait_for(1000, 100 * MS), ETIMEDOUT);	/* never issued */
}

TEST(wait_ends_with_the_command)
{
	uint64_t start;

	begin(700);
	start = now_ns();
	CHECK_EQ(wait_for(pending(), FOREVER), 0);
	CHECK(now_ns() - start >= 700 * MS);
	CHECK_EQ(r.cq->status[2], ACP_ST_TIMEOUT);
	CHECK_EQ(r.cq->completed, 2);
}

/* It also takes commands from the ring: no doorbell is needed before. */
TEST(wait_submits)
{
	struct acp_sqe e = { .op = ACP_OP_COPY, .size = 8 };

	begin(1000);
	e.dst = heap_ga(&r, 8);
	e.src = heap_ga(&r, 0);
	CHECK_EQ(wait_for(rank_push(&r, &e), FOREVER), 0);
}

static void nothing(int signal)
{
	(void)signal;
}

/* A signal from a child, while the test sleeps. */
static void signal_asleep(int flags)
{
	struct sigaction a = { .sa_handler = nothing, .sa_flags = flags };
	pid_t parent = getpid();

	CHECK_EQ(sigaction(SIGUSR1, &a, NULL), 0);
	if (fork())
		return;
	wait_asleep(parent, 1);
	kill(parent, SIGUSR1);
	_exit(0);
}

TEST(P8_wait_is_interrupted)
{
	begin(5000);
	pending();
	signal_asleep(0);
	CHECK_ERRNO(wait_for(2, FOREVER), EINTR);
	/* A call that the kernel starts again would have its whole time again. */
	signal_asleep(SA_RESTART);
	CHECK_ERRNO(wait_for(2, FOREVER), EINTR);
	CHECK_EQ(wait_for(2, FOREVER), 0);
	CHECK_EQ(r.cq->status[2], ACP_ST_TIMEOUT);
}

static void *wait_in_thread(void *arg)
{
	(void)arg;
	CHECK_EQ(wait_for(2, FOREVER), 0);
	return NULL;
}

TEST(P8_many_threads_wait)
{
	pthread_t thread[32];
	int i;

	begin(700);
	pending();
	for (i = 0; i < 32; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, wait_in_thread, NULL), 0);
	for (i = 0; i < 32; i++)
		pthread_join(thread[i], NULL);
}

/* The waiting call holds a reference to the file: it completes, and the rank leaves afterwards. */
TEST(P8_descriptor_closed_while_waiting)
{
	struct setup s;
	pthread_t thread;

	begin(3000);
	pending();
	CHECK_EQ(pthread_create(&thread, NULL, wait_in_thread, NULL), 0);
	wait_asleep(getpid(), 1);
	CHECK_EQ(close(r.fd), 0);
	pthread_join(thread, NULL);
	munmap(r.sq, r.join.sq_bytes);
	munmap((void *)r.cq, r.join.cq_bytes);
	munmap(r.heap, r.join.heap_size);
	munmap(r.starter, r.join.starter_size);
	CHECK_EQ(status_kib("VmPin"), 0);
	setup_local(&s, 0, 1);
	s.join.generation = 1;
	rank_open(&r, &s);
}

TEST(P1_killed_while_waiting)
{
	pid_t child = fork();
	int status = 0;

	if (!child) {
		begin(60000);
		wait_for(pending(), FOREVER);
		_exit(0);
	}
	sleep_ms(500);
	CHECK_EQ(kill(child, SIGKILL), 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFSIGNALED(status));
}

/* ---- poll, epoll ---- */

static int events(int timeout_ms)
{
	struct pollfd p = { .fd = r.fd, .events = POLLIN | POLLOUT };

	CHECK(poll(&p, 1, timeout_ms) >= 0);
	return p.revents;
}

TEST(poll_reports_completion)
{
	uint64_t ticket, start;

	begin(3000);
	CHECK_EQ(events(0), POLLOUT);		/* nothing armed */
	arm(1);
	CHECK_EQ(events(0), POLLIN | POLLOUT);	/* already complete */
	start = now_ns();
	ticket = pending();
	arm(ticket);
	CHECK_EQ(events(0), POLLOUT);
	CHECK(patience_poll(r.fd, POLLIN, PATIENCE_SOON));
	CHECK_EQ(events(0), POLLIN | POLLOUT);
	CHECK(now_ns() - start > 300 * MS);
	CHECK_EQ(rank_completed(&r), ticket);
}

TEST(poll_reports_room)
{
	int i;

	begin(60000);
	for (i = 0; i < 63; i++)
		pending();
	CHECK_EQ(events(0), POLLOUT);
	pending();
	CHECK_EQ(events(0), 0);
}

static void await_event(int epoll, struct epoll_event *e)
{
	struct patience p = patience_begin(PATIENCE_SOON);

	while (epoll_wait(epoll, e, 1, (int)(patience_left(&p) / MS)) != 1)
		CHECK(!patience_over(&p));
}

TEST(epoll_reports_completion)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };
	int epoll = epoll_create1(0);

	begin(3000);
	CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, r.fd, &e), 0);
	arm(pending());
	CHECK_EQ(epoll_wait(epoll, &e, 1, 100), 0);
	await_event(epoll, &e);
	CHECK_EQ(e.events, EPOLLIN);
	CHECK_EQ(epoll_wait(epoll, &e, 1, 100), 0);
	arm(pending());
	await_event(epoll, &e);
}

/* The wake-up occurred while nothing was armed: arming makes epoll check again. */
TEST(epoll_armed_for_what_is_complete)
{
	struct epoll_event e = { .events = EPOLLIN };
	int epoll = epoll_create1(0);

	rank_open_local(&r, 1);
	CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, r.fd, &e), 0);
	CHECK_EQ(rank_do_copy(&r, heap_ga(&r, 8), heap_ga(&r, 0), 8), ACP_ST_OK);
	CHECK_EQ(epoll_wait(epoll, &e, 1, 100), 0);
	arm(r.last);
	await_event(epoll, &e);
}

TEST(poll_without_a_job)
{
	struct pollfd p = { .fd = device_open(), .events = POLLIN | POLLOUT };

	CHECK_EQ(poll(&p, 1, 0), 1);
	CHECK(p.revents & POLLERR);
}

/* ---- Idle ---- */

/* The rings of an idle job are no longer polled, and the flag soon says so. */
TEST(poller_goes_to_sleep)
{
	struct patience p;
	int i;

	begin(1000);
	for (i = 0; i < 10000; i++)
		rank_copy(&r, heap_ga(&r, 8), heap_ga(&r, 0), 8, 0);
	p = patience_begin(PATIENCE_SOON);
	while (!(r.cq->flags & ACP_CQ_NEED_WAKEUP)) {
		CHECK(!patience_over(&p));
		sleep_ms(10);
	}
}

/* ---- The barrier ---- */

static int sync_rank(const struct rank *rank, uint32_t flags, uint64_t timeout_ns)
{
	struct acp_sync s = { .size = sizeof(s), .flags = flags, .timeout_ns = timeout_ns };

	return ioctl(rank->fd, ACP_IOC_SYNC, &s);
}

#define ROUNDS	200

struct runner {
	struct rank *rank;
	uint32_t *rounds;		/* of all three; atomic */
	pthread_t thread;
};

/* No rank is a round ahead of another one when it leaves a barrier. */
static void *run_rounds(void *arg)
{
	struct runner *me = arg;
	uint32_t round, i;

	for (round = 1; round <= ROUNDS; round++) {
		__atomic_store_n(&me->rounds[me->rank->join.rank], round, __ATOMIC_SEQ_CST);
		CHECK_EQ(sync_rank(me->rank, 0, FOREVER), 0);
		for (i = 0; i < 3; i++) {
			uint32_t other = __atomic_load_n(&me->rounds[i], __ATOMIC_SEQ_CST);

			CHECK(other == round || other == round + 1);
		}
	}
	return NULL;
}

TEST(barrier)
{
	struct runner runner[3];
	uint32_t rounds[3] = { 0 }, i;
	struct rank rank[3];

	rank_open_local(rank, 3);
	for (i = 0; i < 3; i++) {
		runner[i] = (struct runner){ &rank[i], rounds, 0 };
		CHECK_EQ(pthread_create(&runner[i].thread, NULL, run_rounds, &runner[i]), 0);
	}
	for (i = 0; i < 3; i++)
		pthread_join(runner[i].thread, NULL);
}

TEST(barrier_times_out_and_counts_once)
{
	struct rank rank[2];

	rank_open_local(rank, 2);
	CHECK_ERRNO(sync_rank(&rank[0], 0, 0), ETIMEDOUT);
	CHECK_ERRNO(sync_rank(&rank[0], 0, 100 * MS), ETIMEDOUT);
	CHECK_ERRNO(sync_rank(&rank[0], 0, 100 * MS), ETIMEDOUT);
	CHECK_EQ(sync_rank(&rank[1], 0, 1000 * MS), 0);
	CHECK_EQ(sync_rank(&rank[0], 0, 0), 0);
	CHECK_ERRNO(sync_rank(&rank[1], 0, 100 * MS), ETIMEDOUT);
}

TEST(P8_barrier_is_interrupted)
{
	struct rank rank[2];

	rank_open_local(rank, 2);
	signal_asleep(0);
	CHECK_ERRNO(sync_rank(&rank[0], 0, FOREVER), EINTR);
	signal_asleep(SA_RESTART);
	CHECK_ERRNO(sync_rank(&rank[0], 0, FOREVER), EINTR);
	CHECK_EQ(sync_rank(&rank[1], 0, FOREVER), 0);
	CHECK_EQ(sync_rank(&rank[0], 0, FOREVER), 0);
}

static void *sync_in_thread(void *arg)
{
	CHECK_EQ(sync_rank(arg, 0, FOREVER), 0);
	return NULL;
}

TEST(barrier_is_busy)
{
	struct rank rank[2];
	pthread_t thread;

	rank_open_local(rank, 2);
	CHECK_EQ(pthread_create(&thread, NULL, sync_in_thread, &rank[0]), 0);
	wait_asleep(getpid(), 1);
	CHECK_ERRNO(sync_rank(&rank[0], 0, FOREVER), EBUSY);
	CHECK_EQ(sync_rank(&rank[1], 0, FOREVER), 0);
	pthread_join(thread, NULL);
}

static void *sync_broken(void *arg)
{
	CHECK_ERRNO(sync_rank(arg, 0, FOREVER), EPIPE);
	return NULL;
}

TEST(P1_barrier_breaks_when_a_rank_leaves)
{
	struct rank rank[2];
	pthread_t thread;

	rank_open_local(rank, 2);
	CHECK_EQ(pthread_create(&thread, NULL, sync_broken, &rank[0]), 0);
	wait_asleep(getpid(), 1);
	rank_close(&rank[1]);
	pthread_join(thread, NULL);
	CHECK_ERRNO(sync_rank(&rank[0], 0, FOREVER), EPIPE);
	CHECK_EQ(rank_do_copy(&rank[0], heap_ga(&rank[0], 8), heap_ga(&rank[0], 0), 8),
		 ACP_ST_OK);
}

static int state_of(const struct rank *asker, uint32_t rank)
{
	struct acp_rank_state s = { .size = sizeof(s), .rank = rank };

	CHECK_EQ(ioctl(asker->fd, ACP_IOC_STATE, &s), 0);
	return (int)s.state;
}

static void *close_in_thread(void *arg)
{
	sleep_ms(50);
	rank_close(arg);
	return NULL;
}

/* Leaving takes a while; meanwhile the state of the rank is not "not joined yet". */
TEST(P1_state_of_a_rank_that_leaves)
{
	struct rank rank[2];
	pthread_t thread;
	int state;

	rank_open_local(rank, 2);
	CHECK_EQ(state_of(&rank[0], 1), ACP_RANK_UP);
	CHECK_EQ(pthread_create(&thread, NULL, close_in_thread, &rank[1]), 0);
	do {
		state = state_of(&rank[0], 1);
	} while (state == ACP_RANK_UP);
	CHECK_EQ(state, ACP_RANK_DOWN);
	pthread_join(thread, NULL);
	CHECK_EQ(state_of(&rank[0], 1), ACP_RANK_DOWN);
}

/* Other ranks do not see a join whose result cannot be written. */
TEST(K1_barrier_and_a_join_that_fails_at_its_end)
{
	void *p = pages(PAGE, PROT_READ | PROT_WRITE);
	struct rank rank[2];
	pthread_t thread;
	struct setup s;
	int fd;

	setup_local(&s, 0, 2);
	rank_open(&rank[0], &s);
	CHECK_EQ(pthread_create(&thread, NULL, sync_in_thread, &rank[0]), 0);
	setup_local(&s, 1, 2);
	memcpy(p, &s.join, sizeof(s.join));
	CHECK_EQ(mprotect(p, PAGE, PROT_READ), 0);
	fd = device_open();
	CHECK_ERRNO(ioctl(fd, ACP_IOC_JOIN, p), EFAULT);
	rank_open(&rank[1], &s);
	CHECK_EQ(sync_rank(&rank[1], 0, FOREVER), 0);
	pthread_join(thread, NULL);
}

static void *sync_final(void *arg)
{
	CHECK_EQ(sync_rank(arg, ACP_SYNC_FINAL, FOREVER), 0);
	return NULL;
}

TEST(barrier_before_leaving)
{
	struct rank rank[2];
	pthread_t thread;

	rank_open_local(rank, 2);
	CHECK_EQ(pthread_create(&thread, NULL, sync_final, &rank[0]), 0);
	CHECK_EQ(sync_rank(&rank[1], ACP_SYNC_FINAL, FOREVER), 0);
	rank_close(&rank[1]);
	pthread_join(thread, NULL);
	rank_close(&rank[0]);
}

/* ---- The end of a job ---- */

TEST(abort_ends_all)
{
	struct setup s;
	struct rank rank[2];
	struct pollfd p;

	rank_open_local(rank, 2);
	r = rank[0];
	CHECK_EQ(ioctl(rank[1].fd, ACP_IOC_ABORT), 0);
	CHECK(rank[0].cq->flags & ACP_CQ_ABORTED);
	CHECK_ERRNO(sync_rank(&rank[0], 0, FOREVER), ECANCELED);
	CHECK_ERRNO(wait_for(100, FOREVER), ECANCELED);
	CHECK_EQ(rank_do_copy(&r, heap_ga(&r, 8), heap_ga(&r, 0), 8), ACP_ST_ABORT);
	p = (struct pollfd){ .fd = rank[0].fd, .events = POLLIN };
	CHECK_EQ(poll(&p, 1, 0), 1);
	CHECK(p.revents & POLLERR);
	CHECK_EQ(ioctl(rank[0].fd, ACP_IOC_ABORT), 0);
	rank_close(&rank[0]);
	rank_close(&rank[1]);
	setup_local(&s, 0, 2);
	rank_open(&rank[0], &s);		/* the next incarnation is independent */
	CHECK_EQ(rank_do_copy(&rank[0], heap_ga(&rank[0], 8), heap_ga(&rank[0], 0), 8),
		 ACP_ST_OK);
}

static void *wait_canceled(void *arg)
{
	(void)arg;
	CHECK_ERRNO(wait_for(2, FOREVER), ECANCELED);
	return NULL;
}

TEST(abort_wakes_who_waits)
{
	pthread_t thread;

	begin(60000);
	pending();
	CHECK_EQ(pthread_create(&thread, NULL, wait_canceled, NULL), 0);
	wait_asleep(getpid(), 1);
	CHECK_EQ(ioctl(r.fd, ACP_IOC_ABORT), 0);
	pthread_join(thread, NULL);
}
