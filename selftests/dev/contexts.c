// SPDX-License-Identifier: MIT
/* selftest: cpus=2 leaks */
/*
 * Additional contexts of a rank (ACP_IOC_ATTACH): which calls they accept, and from which process;
 * that each has its own commands; and all orders of closing files, ending processes and completing
 * commands.
 */
#include "isolated.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

#include "rank.h"

#define TICKETS		(1ULL << ACP_TICKET_BITS)
#define COMMANDS	256	/* that the kernel takes from a queue at once */
#define LONG		(8UL << 20)

static struct rank r;

/* A job with a node that never answers: commands to it fail after @ms. */
static void begin_beside_silence(uint32_t ms)
{
	static const char *const addresses[] = { "127.0.0.1", "127.0.0.2", NULL };
	struct setup s;

	setup_nodes(&s, 0, 2, 2, addresses);
	s.join.open_timeout_ms = ms;
	s.join.depth = 1024;
	rank_open(&r, &s);
}

static uint64_t ask_silence(struct rank *from)
{
	return rank_copy(from, heap_ga(from, 0), rank_ga(from, 1, ACP_STAG_HEAP, 0), 8, 0);
}

static uint8_t status(const struct rank *from, uint64_t ticket)
{
	return __atomic_load_n(&from->cq->status[ticket & (from->join.depth - 1)],
			       __ATOMIC_ACQUIRE);
}

static int attach(int fd, struct acp_attach *a)
{
	return ioctl(fd, ACP_IOC_ATTACH, a);
}

static struct acp_attach good(void)
{
	return (struct acp_attach){ .size = sizeof(struct acp_attach), .fd = r.fd, .depth = 64 };
}

/* ---- The call ---- */

TEST(attach_says_what_to_map)
{
	int fd[3], i;

	rank_open_local(&r, 1);
	for (i = 0; i < 3; i++) {
		struct acp_attach a = good();

		fd[i] = device_open();
		a.depth = 64u << i;
		CHECK_EQ(attach(fd[i], &a), 0);
		CHECK_EQ(a.queue, i + 1);
		CHECK_EQ(a.first, (uint64_t)(i + 1) * TICKETS + 1);
		CHECK(a.sq_bytes >= 64 + (64u << i) * 64 && a.sq_bytes % PAGE == 0);
		CHECK(a.cq_bytes >= 64 + (64u << i) && a.cq_bytes % PAGE == 0);
	}
	/* Numbers are not reused. */
	CHECK_EQ(close(fd[2]), 0);
	fd[2] = device_open();
	struct acp_attach a = good();

	CHECK_EQ(attach(fd[2], &a), 0);
	CHECK_EQ(a.queue, 4);
}

TEST(K1_attach_arguments)
{
	static const uint32_t depths[] = { 0, 1, 32, 63, 65, 100, 131072, 1u << 31, ~0u };
	static const uint32_t sizes[] = { 0, 1, 40, 47, 49, 96, 4096, ~0u };
	struct acp_attach a;
	int fd, i;

	rank_open_local(&r, 1);
	fd = device_open();
	for (i = 0; i < (int)(sizeof(depths) / sizeof(depths[0])); i++) {
		a = good();
		a.depth = depths[i];
		CHECK_ERRNO(attach(fd, &a), EINVAL);
	}
	for (i = 0; i < (int)(sizeof(sizes) / sizeof(sizes[0])); i++) {
		a = good();
		a.size = sizes[i];
		CHECK_ERRNO(attach(fd, &a), EINVAL);
	}
	for (i = 0; i < 32; i++) {
		a = good();
		a.flags = 1u << i;
		CHECK_ERRNO(attach(fd, &a), EINVAL);
		a = good();
		a.reserved = 1u << i;
		CHECK_ERRNO(attach(fd, &a), EINVAL);
	}
	/* None of these consumed any resource. */
	a = good();
	CHECK_EQ(attach(fd, &a), 0);
	CHECK_EQ(a.queue, 1);
}

TEST(K1_attach_pointers)
{
	struct acp_attach a, *p = pages(PAGE, PROT_READ | PROT_WRITE);
	size_t i;
	int fd;

	rank_open_local(&r, 1);
	fd = device_open();
	CHECK_ERRNO(attach(fd, NULL), EFAULT);
	CHECK_ERRNO(attach(fd, (struct acp_attach *)-8UL), EFAULT);
	CHECK_ERRNO(attach(fd, (struct acp_attach *)0xffff888000001000UL), EFAULT);
	a = good();
	for (i = 1; i < sizeof(a); i++)
		CHECK_ERRNO(attach(fd, memcpy(before_hole(i), &a, i)), EFAULT);
	/* If the result cannot be written, the queue must not remain. */
	*p = a;
	CHECK_EQ(mprotect(p, PAGE, PROT_READ), 0);
	for (i = 0; i < 2 * ACP_QUEUES_MAX / 64; i++)
		CHECK_ERRNO(attach(fd, p), EFAULT);
	CHECK_EQ(attach(fd, memcpy(before_hole(sizeof(a)), &a, sizeof(a))), 0);
}

TEST(K1_attach_to_what)
{
	int fd = device_open(), other = device_open(), null = open("/dev/null", O_RDWR);
	struct rank added;
	struct acp_attach a;
	struct setup s;

	rank_open_local(&r, 1);
	rank_attach(&added, &r);
	a = good();
	a.fd = -1;
	CHECK_ERRNO(attach(fd, &a), EBADF);
	a.fd = 1000000;
	CHECK_ERRNO(attach(fd, &a), EBADF);
	a.fd = null;
	CHECK_ERRNO(attach(fd, &a), EINVAL);
	a.fd = other;
	CHECK_ERRNO(attach(fd, &a), ENOTCONN);
	a.fd = fd;
	CHECK_ERRNO(attach(fd, &a), ENOTCONN);
	a.fd = added.fd;
	CHECK_ERRNO(attach(fd, &a), EINVAL);
	a = good();
	CHECK_ERRNO(attach(r.fd, &a), EALREADY);
	CHECK_ERRNO(attach(added.fd, &a), EALREADY);
	setup_local(&s, 0, 1);
	s.join.job++;
	CHECK_ERRNO(ioctl(added.fd, ACP_IOC_JOIN, &s.join), EALREADY);
	rank_works(&added);
	/* The file can still be attached after so many failures. */
	CHECK_EQ(attach(fd, &a), 0);
}

TEST(attach_from_another_namespace)
{
	struct acp_attach a;
	int fd;

	rank_open_local(&r, 1);
	CHECK_EQ(unshare(CLONE_NEWNET), 0);
	fd = device_open();
	a = good();
	CHECK_ERRNO(attach(fd, &a), EXDEV);
}

/* ---- Calls on an additional context ---- */

TEST(additional_queue_submits_and_waits_and_nothing_else)
{
	static const unsigned long refused[] = {
		ACP_IOC_REG, ACP_IOC_UNREG, ACP_IOC_SYNC, ACP_IOC_PEER, ACP_IOC_ABORT,
		ACP_IOC_STATE, ACP_IOC_EVENT, ACP_IOC_WATCH, ACP_IOC_WAKE,
		ACP_IOC_WRONG_KEY, ACP_IOC_MATCH, ACP_IOC_POST, ACP_IOC_UNPOST,
	};
	struct acp_wait w = { .size = sizeof(w) };
	struct rank added;
	uint32_t kind;
	size_t i;

	rank_open_local(&r, 1);
	rank_attach(&added, &r);
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		CHECK_ERRNO(ioctl(added.fd, refused[i], NULL), EOPNOTSUPP);
	for (kind = ACP_MAP_STARTER; kind <= ACP_MAP_LIBRARY; kind++) {
		CHECK_EQ(rank_map(added.fd, kind, 0, PAGE, PROT_READ), MAP_FAILED);
		CHECK_EQ(errno, EINVAL);
	}
	CHECK_EQ(rank_map(added.fd, ACP_MAP_CQ, 0, PAGE, PROT_WRITE), MAP_FAILED);
	CHECK_EQ(errno, EACCES);
	CHECK_EQ(ioctl(added.fd, ACP_IOC_DOORBELL), 0);
	CHECK_EQ(fdatasync(added.fd), ACP_RUNG);
	w.ticket = added.last;
	CHECK_EQ(ioctl(added.fd, ACP_IOC_WAIT, &w), 0);
	w.ticket++;
	CHECK_ERRNO(ioctl(added.fd, ACP_IOC_WAIT, &w), ETIMEDOUT);
	rank_works(&added);
	rank_works(&r);
}

TEST(poll_of_an_additional_queue)
{
	struct acp_wait w = { .size = sizeof(w), .flags = ACP_WAIT_ARM };
	struct pollfd p = { .events = POLLIN | POLLOUT };
	struct rank added;

	begin_beside_silence(2000);
	rank_attach(&added, &r);
	p.fd = added.fd;
	w.ticket = ask_silence(&added);
	CHECK_EQ(ioctl(added.fd, ACP_IOC_WAIT, &w), 0);
	p.events = POLLIN;
	CHECK_EQ(poll(&p, 1, 50), 0);
	CHECK(patience_poll(added.fd, POLLIN, PATIENCE_SOON));
	CHECK_EQ(status(&added, w.ticket), ACP_ST_TIMEOUT);
}

/* Each queue completes independently of the others. */
TEST(queues_do_not_wait_for_each_other)
{
	struct rank a, b;
	uint64_t waits;

	begin_beside_silence(60000);
	rank_attach(&a, &r);
	rank_attach(&b, &r);
	waits = ask_silence(&a);
	rank_works(&b);
	rank_works(&r);
	CHECK_EQ(rank_wait(&a, waits, 0), -1);
	/* Nor is anything after it published. */
	rank_copy(&a, heap_ga(&a, 8), heap_ga(&a, 0), 8, 0);
	sleep_ms(20);
	CHECK_EQ(rank_completed(&a), waits - 1);
}

/* Order is per queue: a failed command cancels those in the same queue that wait for it. */
TEST(order_within_a_queue)
{
	struct rank a;
	uint64_t first, second, third;

	begin_beside_silence(2000);
	rank_attach(&a, &r);
	fill(r.heap, 64, 5);
	first = ask_silence(&a);
	second = rank_copy(&a, heap_ga(&a, 100), heap_ga(&a, 0), 64, first);
	third = rank_copy(&a, heap_ga(&a, 200), heap_ga(&a, 0), 64, 0);
	CHECK_EQ(rank_await(&a, third, PATIENCE_WORK), ACP_ST_OK);
	CHECK_EQ(status(&a, first), ACP_ST_TIMEOUT);
	CHECK_EQ(status(&a, second), ACP_ST_ORDER);
	CHECK_EQ(r.heap[100], 0);
	CHECK(filled(r.heap + 200, 64, 5));
	/*
	 * Tickets of lower-numbered queues count as complete for this one; those of higher-numbered
	 * ones are invalid.
	 */
	first = rank_copy(&a, heap_ga(&a, 300), heap_ga(&a, 0), 64, 7);
	CHECK_EQ(rank_await(&a, first, PATIENCE_WORK), ACP_ST_OK);
	first = rank_copy(&a, heap_ga(&a, 300), heap_ga(&a, 0), 64, 2 * TICKETS + 2);
	CHECK_EQ(rank_await(&a, first, PATIENCE_WORK), ACP_ST_OP);
}

/* ---- Concurrency ---- */

#define THREADS	4
#define ROUNDS	3000

static void *work_in_queue(void *arg)
{
	struct rank q;
	uint64_t i, n = (uintptr_t)arg;
	uint64_t *own;

	rank_attach(&q, &r);
	own = (uint64_t *)(q.heap + 1024 * n);
	for (i = 1; i <= ROUNDS; i++) {
		own[0] = i;
		CHECK_EQ(rank_do_copy(&q, heap_ga(&q, 1024 * n + 8), heap_ga(&q, 1024 * n), 8), 0);
		CHECK_EQ(own[1], i);
		CHECK_EQ(rank_do_atomic(&q, ACP_OP_ADD8, heap_ga(&q, 1024 * n + 16),
					heap_ga(&q, 0), 1, 0), 0);
		if (i % 500 == 0) {
			rank_detach(&q);
			rank_attach(&q, &r);
			own = (uint64_t *)(q.heap + 1024 * n);
		}
	}
	rank_detach(&q);
	return NULL;
}

TEST(queues_of_threads)
{
	pthread_t thread[THREADS];
	uintptr_t i;

	rank_open_local(&r, 1);
	for (i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, work_in_queue, (void *)(i + 1)), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	CHECK_EQ(*(uint64_t *)r.heap, THREADS * ROUNDS);
}

TEST(as_many_as_may_be)
{
	static int fd[ACP_QUEUES_MAX + 1];
	struct acp_attach a;
	int i;

	rank_open_local(&r, 1);
	for (i = 0; i < ACP_QUEUES_MAX; i++) {
		fd[i] = device_open();
		a = good();
		CHECK_EQ(attach(fd[i], &a), 0);
	}
	fd[i] = device_open();
	CHECK_ERRNO(attach(fd[i], &a), ENOSPC);
	CHECK_EQ(close(fd[7]), 0);
	CHECK_EQ(attach(fd[i], &a), 0);
	CHECK_EQ(a.queue, ACP_QUEUES_MAX + 1);
	rank_works(&r);
	rank_close(&r);
}

TEST(numbers_are_used_up)
{
	uint32_t i, last = test_short() ? 600 : ACP_QUEUE_LAST;

	rank_open_local(&r, 1);
	for (i = 1; i <= last; i++) {
		struct acp_attach a = good();
		int fd = device_open();

		CHECK_EQ(attach(fd, &a), 0);
		CHECK_EQ(a.queue, i);
		CHECK_EQ(close(fd), 0);
	}
	struct acp_attach a = good();

	if (last == ACP_QUEUE_LAST)
		CHECK_ERRNO(attach(device_open(), &a), ENOSPC);
	rank_works(&r);
}

/* ---- Limits ---- */

static unsigned long kib_of(const struct acp_attach *a)
{
	return (a->sq_bytes + a->cq_bytes) >> 10;
}

/* Rings are charged to the user: the limit can be reached exactly, and everything is uncharged. */
TEST(K1_rings_count)
{
	struct patience p;
	struct acp_attach a;
	unsigned long limit;
	int fd, i;

	CHECK_EQ(unshare(CLONE_NEWNET), 0);
	CHECK_EQ(system("ip link set lo up"), 0);
	rank_open_local(&r, 1);
	fd = device_open();
	a = good();
	a.depth = 4096;
	CHECK_EQ(attach(fd, &a), 0);
	CHECK(kib_of(&a) >= 256);
	limit_set("depth", 2048);
	CHECK_ERRNO(attach(device_open(), &(struct acp_attach){
		.size = sizeof(a), .fd = r.fd, .depth = 4096 }), EDQUOT);
	limit_set("depth", 65536);
	CHECK_EQ(close(fd), 0);
	/* Find the smallest sufficient limit. */
	for (limit = 64; ; limit += 4) {
		limit_set("user_memory", limit);
		fd = device_open();
		a = good();
		a.depth = 4096;
		if (!attach(fd, &a))
			break;
		CHECK_EQ(errno, EDQUOT);
		CHECK_EQ(a.limit, ACP_LIMIT_USER_MEMORY);
		CHECK_EQ(a.queue, 0);
		CHECK_EQ(close(fd), 0);
	}
	for (i = 0; i < 3; i++) {
		struct acp_attach b = good();
		int other = device_open();

		b.depth = 4096;
		CHECK_ERRNO(attach(other, &b), EDQUOT);
		CHECK_EQ(close(fd), 0);
		/* It is uncharged after a grace period. */
		p = patience_begin(PATIENCE_SOON);
		while (attach(other, &b)) {
			CHECK_EQ(errno, EDQUOT);
			CHECK(!patience_over(&p));
			sleep_ms(10);
		}
		fd = other;
	}
	rank_works(&r);
}

/* ---- Termination ---- */

static void *wait_for_the_end(void *arg)
{
	struct rank *q = arg;
	struct acp_wait w = {
		.size = sizeof(w), .ticket = q->last + 1000, .timeout_ns = PATIENCE_WORK,
	};

	CHECK_ERRNO(ioctl(q->fd, ACP_IOC_WAIT, &w), ENOTCONN);
	return NULL;
}

/* When the rank is closed, its queues end, whoever has them open. */
TEST(rank_closed_before_its_queues)
{
	struct acp_sqe e = { .op = ACP_OP_COPY, .size = 8 };
	struct acp_wait w = { .size = sizeof(w) };
	struct pollfd p = { .events = POLLIN };
	struct acp_attach a;
	struct rank q;
	uint64_t first, i;
	pthread_t thread;
	int fd;

	begin_beside_silence(60000);
	rank_attach(&q, &r);
	first = ask_silence(&q);
	for (i = 1; i < COMMANDS + 20; i++)
		ask_silence(&q);
	/* Some commands have started, some wait for others, some have not been taken. */
	CHECK_EQ(pthread_create(&thread, NULL, wait_for_the_end, &q), 0);
	wait_asleep(getpid(), 1);
	a = good();
	rank_close(&r);
	pthread_join(thread, NULL);
	CHECK_EQ(rank_completed(&q), first + COMMANDS - 1);
	for (i = 0; i < COMMANDS; i++)
		CHECK_EQ(status(&q, first + i), ACP_ST_ABORT);
	CHECK_EQ(q.cq->flags, ACP_CQ_ABORTED | ACP_CQ_NEED_WAKEUP);
	CHECK_EQ(q.cq->failed, COMMANDS);
	rank_push(&q, &e);
	CHECK_ERRNO(ioctl(q.fd, ACP_IOC_DOORBELL), ENOTCONN);
	CHECK_ERRNO(fdatasync(q.fd), ENOTCONN);
	CHECK_ERRNO(ioctl(q.fd, ACP_IOC_WAIT, &w), ENOTCONN);
	CHECK_EQ(rank_map(q.fd, ACP_MAP_SQ, 0, PAGE, PROT_READ), MAP_FAILED);
	CHECK_EQ(errno, ENOTCONN);
	p.fd = q.fd;
	CHECK_EQ(poll(&p, 1, 0), 1);
	CHECK(p.revents & POLLERR);
	CHECK_EQ(rank_completed(&q), first + COMMANDS - 1);
	fd = device_open();
	a.fd = q.fd;
	CHECK_ERRNO(attach(fd, &a), ENOTCONN);
	rank_detach(&q);
}

/*
 * Commands in flight end with their queue, and nobody waits for their responses. Otherwise the
 * limit on requests to the peer would soon be reached.
 */
TEST(queue_closed_with_commands_under_way)
{
	struct rank q;
	int i, k;

	begin_beside_silence(3000);
	for (i = 0; i < 6; i++) {
		rank_attach(&q, &r);
		for (k = 0; k < COMMANDS + 10; k++)
			ask_silence(&q);
		rank_detach(&q);
		rank_works(&r);
	}
	CHECK_EQ(rank_await(&r, ask_silence(&r), PATIENCE_WORK), ACP_ST_TIMEOUT);
	rank_works(&r);
}

/* The worker is executing a long copy for a queue that is closed. */
TEST(queue_closed_with_a_copy_under_way)
{
	struct rank q, other;
	struct setup s;
	int i;

	setup_local(&s, 0, 2);
	s.join.heap_size = LONG;
	rank_open(&r, &s);
	setup_local(&s, 1, 2);
	s.join.heap_size = LONG;
	rank_open(&other, &s);
	memset(r.heap, 1, LONG);
	for (i = 0; i < 8; i++) {
		rank_attach(&q, &r);
		rank_copy(&q, heap_ga(&other, 0), heap_ga(&q, 0), LONG, 0);
		rank_copy(&q, heap_ga(&other, 0), heap_ga(&q, 0), LONG, 0);
		rank_detach(&q);
	}
	rank_works(&r);
	rank_attach(&q, &r);
	rank_copy(&q, heap_ga(&other, 0), heap_ga(&q, 0), LONG, 0);
	rank_close(&r);
	CHECK(rank_completed(&q) <= q.last);
	rank_detach(&q);
	rank_works(&other);
}

TEST(abort_reaches_all_queues)
{
	struct rank q, late;
	uint64_t ticket;

	begin_beside_silence(60000);
	rank_attach(&q, &r);
	ticket = ask_silence(&q);
	CHECK_EQ(ioctl(r.fd, ACP_IOC_ABORT), 0);
	CHECK(q.cq->flags & ACP_CQ_ABORTED);
	struct acp_wait w = { .size = sizeof(w), .ticket = ticket, .timeout_ns = PATIENCE_WORK };

	/* What has started completes; new commands fail. */
	if (rank_completed(&q) < ticket)
		CHECK_ERRNO(ioctl(q.fd, ACP_IOC_WAIT, &w), ECANCELED);
	rank_attach(&late, &r);
	CHECK(late.cq->flags & ACP_CQ_ABORTED);
	ticket = rank_copy(&late, heap_ga(&r, 8), heap_ga(&r, 0), 8, 0);
	CHECK_EQ(ioctl(late.fd, ACP_IOC_DOORBELL), 0);
	CHECK_EQ(rank_completed(&late), ticket);
	CHECK_EQ(status(&late, ticket), ACP_ST_ABORT);
}

TEST(P4_forked_child_may_do_nothing)
{
	struct rank q;
	int fd, state;
	pid_t child;

	rank_open_local(&r, 1);
	rank_attach(&q, &r);
	fd = device_open();
	child = fork();
	if (!child) {
		struct acp_wait w = { .size = sizeof(w), .ticket = 1 };
		struct acp_attach a = good();

		CHECK_ERRNO(ioctl(q.fd, ACP_IOC_DOORBELL), EPERM);
		CHECK_ERRNO(fdatasync(q.fd), EPERM);
		CHECK_ERRNO(ioctl(q.fd, ACP_IOC_WAIT, &w), EPERM);
		CHECK_ERRNO(attach(q.fd, &a), EPERM);
		CHECK_ERRNO(attach(fd, &a), EPERM);
		CHECK_EQ(rank_map(q.fd, ACP_MAP_SQ, 0, PAGE, PROT_READ), MAP_FAILED);
		CHECK_EQ(errno, EPERM);
		/* it has inherited all of them when its parent closes them */
		sleep_ms(300);
		_exit(0);
	}
	CHECK_EQ(close(q.fd), 0);
	rank_works(&r);
	CHECK_EQ(close(r.fd), 0);
	CHECK_EQ(waitpid(child, &state, 0), child);
	CHECK_EQ(state, 0);
}

TEST(P1_killed_with_queues)
{
	int i;

	for (i = 0; i < 10; i++) {
		pid_t child = fork();

		if (!child) {
			struct rank q[4];
			int k;

			begin_beside_silence(60000);
			for (k = 0; k < 4; k++)
				rank_attach(&q[k], &r);
			for (k = 0; ; k++) {
				ask_silence(&q[k % 3]);
				rank_works(&q[3]);
				if (k > 3 * COMMANDS)
					pause();
			}
		}
		sleep_ms(100 + 20 * i);
		CHECK_EQ(kill(child, SIGKILL), 0);
		CHECK_EQ(waitpid(child, NULL, 0), child);
	}
	rank_open_local(&r, 1);
	rank_works(&r);
}

/* The maximum number of queues, all with commands in flight, of a process that is killed. */
TEST(P1_killed_with_all_queues)
{
	uint64_t began;
	pid_t child;
	int ready[2];
	char c;

	CHECK_EQ(pipe(ready), 0);
	child = fork();
	if (!child) {
		static struct rank q[ACP_QUEUES_MAX];
		int i;

		begin_beside_silence(60000);
		for (i = 0; i < ACP_QUEUES_MAX; i++) {
			rank_attach(&q[i], &r);
			ask_silence(&q[i]);
			ask_silence(&q[i]);
		}
		CHECK_EQ(write(ready[1], "", 1), 1);
		pause();
	}
	CHECK_EQ(read(ready[0], &c, 1), 1);
	began = now_ns();
	CHECK_EQ(kill(child, SIGKILL), 0);
	CHECK_EQ(waitpid(child, NULL, 0), child);
	printf("# gone after %llu ms\n", (unsigned long long)(now_ns() - began) / MS);
	rank_open_local(&r, 1);
	rank_works(&r);
}

/* ---- All operations at once ---- */

static bool stop;
static int files[2];		/* of a rank that is opened and closed repeatedly */

static bool stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static void *attach_always(void *arg)
{
	unsigned long *attached = arg;

	while (!stopped()) {
		struct acp_attach a = good();
		int fd = device_open(), k;

		a.fd = __atomic_load_n(&files[0], __ATOMIC_RELAXED);
		if (!attach(fd, &a)) {
			++*attached;
			for (k = 0; k < 3; k++)
				if (ioctl(fd, ACP_IOC_DOORBELL))
					CHECK_EQ(errno, ENOTCONN);
		} else {
			CHECK(errno == EBADF || errno == ENOTCONN || errno == EINVAL ||
			      errno == ENOSPC);
		}
		CHECK_EQ(close(fd), 0);
	}
	return NULL;
}

/*
 * The file of the rank is closed while other threads attach to it, ring the doorbell, and close
 * their files.
 */
TEST(K4_attach_while_the_rank_leaves)
{
	unsigned long attached[3] = { 0 };
	uint32_t generation = 1, joined = 0;
	pthread_t thread[3];
	uint64_t end;
	int i;

	for (i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, attach_always, &attached[i]), 0);
	end = in_ms(test_short() ? 1500 : 3000);
	while (now_ns() < end) {
		struct setup s;
		int fd;

		setup_local(&s, 0, 1);
		s.join.generation = generation++;
		fd = setup_join(&s);
		CHECK(fd >= 0);
		joined++;
		__atomic_store_n(&files[0], fd, __ATOMIC_RELAXED);
		sleep_ms(5);
		CHECK_EQ(close(fd), 0);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	printf("# %u ranks, %lu queues\n", joined, attached[0] + attached[1] + attached[2]);
	CHECK(attached[0] + attached[1] + attached[2]);
}

static void *ring_always(void *arg)
{
	struct rank *q = arg;

	/* Frequent doorbells start moderation: its timer must not outlive the queue. */
	while (!stopped()) {
		struct acp_sqe e = { .op = ACP_OP_COPY, .dst = heap_ga(q, 8), .src = heap_ga(q, 0),
				     .size = 8 };

		if (q->last - rank_completed(q) < q->join.depth)
			rank_push(q, &e);
		if (ioctl(q->fd, ACP_IOC_DOORBELL)) {
			CHECK_EQ(errno, ENOTCONN);
			break;
		}
	}
	return NULL;
}

TEST(K4_doorbells_while_the_rank_leaves)
{
	pthread_t thread[2];
	struct rank q[2];
	uint32_t i;
	int k;

	for (i = 1; i < 20; i++) {
		struct setup s;

		setup_local(&s, 0, 1);
		s.join.generation = i;
		rank_open(&r, &s);
		for (k = 0; k < 2; k++) {
			rank_attach(&q[k], &r);
			CHECK_EQ(pthread_create(&thread[k], NULL, ring_always, &q[k]), 0);
		}
		sleep_ms(10 + i);
		rank_close(&r);
		for (k = 0; k < 2; k++) {
			pthread_join(thread[k], NULL);
			CHECK(q[k].cq->flags & ACP_CQ_ABORTED);
			rank_detach(&q[k]);
		}
	}
	CHECK_EQ(status_kib("VmPin"), 0);
}
