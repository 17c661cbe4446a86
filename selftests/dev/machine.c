// SPDX-License-Identifier: MIT
/*
 * K7: processors that go and come, a machine of one, calls of 32-bit programs.
 * K8: work without end, and everybody else still gets the processor.
 */
#include "isolated.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

#include "traffic.h"

#define MB	(1UL << 20)

static bool stop;

/* ---- K7 ---- */

static void *switch_processor(void *arg)
{
	int i;

	for (i = 0; i < 10; i++) {
		CHECK(set_processor(false));
		sleep_ms(50);
		CHECK(set_processor(true));
		sleep_ms(50);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	return arg;
}

/* The ranks and what they check belong to a child: the processor comes back whatever it finds. */
static void with_processor_back(void (*run)(void))
{
	int status;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2 || !set_processor(false) || !set_processor(true))
		SKIP("no processor that can be taken away");
	status = child_status(run);
	set_processor(true);
	CHECK_EQ(status, 0);
}

static void traffic_while_switching(void)
{
	pthread_t thread;
	struct traffic t;
	struct rank r[3];

	rank_open_local(r, 3);
	traffic_open(&t, r, 3, MB, 0);
	CHECK_EQ(pthread_create(&thread, NULL, switch_processor, NULL), 0);
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		traffic_random(&t, 1, 60, 50000);
	pthread_join(thread, NULL);
	traffic_close(&t);
}

TEST(K7_processor_goes_and_comes)
{
	with_processor_back(traffic_while_switching);
}

static void traffic_on_one_processor(void)
{
	struct traffic t;
	struct rank r[3];

	CHECK(set_processor(false));
	rank_open_local(r, 3);
	traffic_open(&t, r, 3, MB, 0);
	traffic_random(&t, test_short() ? 5 : 30, 60, 50000);
	traffic_count(&t, 1, 1000);
	traffic_close(&t);
	/* Nobody could serve a ring that another one's poller has to look at. */
	CHECK(r[0].cq->flags & ACP_CQ_NEED_WAKEUP);
}

TEST(K7_one_processor)
{
	with_processor_back(traffic_on_one_processor);
}

#ifdef __x86_64__

#define IOCTL_32	54

/* ioctl() as a 32-bit program calls it: 0 or -errno. */
static int ioctl_32(int fd, unsigned int call, void *argument)
{
	int result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(IOCTL_32), "b"(fd), "c"(call), "d"(argument)
			 : "memory", "r8", "r9", "r10", "r11");
	return result;
}

/* Structures are the same for both; but mmap() wants offsets that a 32-bit program cannot say. */
TEST(K7_calls_of_32_bit_programs)
{
	struct {
		struct setup setup;
		struct acp_reg reg;
		struct acp_wait wait;
	} *low = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	char *p = pages(PAGE, PROT_READ | PROT_WRITE);
	struct acp_unreg unreg = { .size = sizeof(unreg) };
	int fd = device_open();

	CHECK(low != MAP_FAILED);
	setup_local(&low->setup, 0, 1);
	CHECK_EQ(ioctl_32(fd, ACP_IOC_DOORBELL, NULL), -ENOTCONN);
	CHECK_EQ(ioctl_32(fd, ACP_IOC_JOIN, &low->setup.join), 0);
	CHECK(low->setup.join.sq_bytes);
	low->reg = (struct acp_reg){
		.size = sizeof(low->reg), .access = ACP_ACCESS_ALL,
		.addr = (uintptr_t)p, .length = PAGE,
	};
	CHECK_EQ(ioctl_32(fd, ACP_IOC_REG, &low->reg), 0);
	low->wait = (struct acp_wait){ .size = sizeof(low->wait), .ticket = 1 };
	CHECK_EQ(ioctl_32(fd, ACP_IOC_WAIT, &low->wait), 0);
	CHECK_EQ(ioctl_32(fd, ACP_IOC_DOORBELL, NULL), 0);
	CHECK_EQ(ioctl_32(fd, ACP_IOC_REG + 100, &low->reg), -ENOTTY);
	unreg.key = low->reg.key;
	CHECK_EQ(ioctl(fd, ACP_IOC_UNREG, &unreg), 0);	/* the file is the same for both */
}

#endif

/* ---- K8 ---- */

/* How many commands ran at most while a thread that wants to run every millisecond did not. */
struct watch {
	const uint64_t *done;		/* counts the commands */
	uint64_t most, seen;
};

static void *watch(void *arg)
{
	struct watch *w = arg;
	uint64_t last = __atomic_load_n(w->done, __ATOMIC_RELAXED);

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		uint64_t now;

		sleep_ms(1);
		now = __atomic_load_n(w->done, __ATOMIC_RELAXED);
		if (now - last > __atomic_load_n(&w->most, __ATOMIC_RELAXED))
			__atomic_store_n(&w->most, now - last, __ATOMIC_RELAXED);
		last = now;
		__atomic_store_n(&w->seen, now, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void a_million_commands(void)
{
	struct acp_sqe e = { .op = ACP_OP_ADD8, .a = 1 };
	uint64_t i, rounds = test_short() ? 3 : 16, least = ACP_DEPTH_MAX;
	struct watch w = { 0 };
	pthread_t thread;
	struct setup s;
	struct rank r;

	CHECK(set_processor(false));
	setup_local(&s, 0, 1);
	s.join.depth = ACP_DEPTH_MAX;
	rank_open(&r, &s);
	e.src = heap_ga(&r, 0);
	e.dst = heap_ga(&r, 8);
	w.done = (uint64_t *)r.heap;
	CHECK_EQ(pthread_create(&thread, NULL, watch, &w), 0);
	while (rounds--) {
		for (i = 0; i < ACP_DEPTH_MAX; i++)
			rank_push(&r, &e);
		__atomic_store_n(&w.most, 0, __ATOMIC_RELAXED);
		CHECK_EQ(ioctl(r.fd, ACP_IOC_DOORBELL), 0);
		CHECK_EQ(rank_wait(&r, r.last, 30000 * MS), ACP_ST_OK);
		while (__atomic_load_n(&w.seen, __ATOMIC_ACQUIRE) != *w.done)
			sleep_ms(1);
		if (w.most < least)
			least = w.most;
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	CHECK_EQ(*w.done, r.last - 1);
	printf("# at most %llu of %u commands in one go\n", (unsigned long long)least,
	       ACP_DEPTH_MAX);
	/* In the best round: in any of them an emulated machine's timer may be late. */
	CHECK(least < ACP_DEPTH_MAX / 2);
}

/* As many commands as there can be, on one processor with the thread that watches. */
TEST(K8_a_million_commands)
{
	with_processor_back(a_million_commands);
}
