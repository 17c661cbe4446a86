// SPDX-License-Identifier: MIT
/* selftest: cpus=2 */
/*
 * K7: processors that go offline and online, a machine with one processor, calls of 32-bit
 * programs. K8: continuous work must not starve others of the processor.
 */
#include "isolated.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
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

/*
 * The ranks and their checks run in a child: the processor is set online again whatever the result.
 */
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
	struct patience p;
	struct traffic t;
	struct rank r[3];

	CHECK(set_processor(false));
	rank_open_local(r, 3);
	traffic_open(&t, r, 3, MB, 0);
	traffic_random(&t, test_short() ? 5 : 30, 60, 50000);
	traffic_count(&t, 1, 1000);
	traffic_close(&t);
	/*
	 * No processor could poll this ring while another is being polled; but the moderation of
	 * doorbells may still do it.
	 */
	p = patience_begin(PATIENCE_SOON);
	while (!(__atomic_load_n(&r[0].cq->flags, __ATOMIC_ACQUIRE) & ACP_CQ_NEED_WAKEUP))
		CHECK(!patience_over(&p));
}

TEST(K7_one_processor)
{
	with_processor_back(traffic_on_one_processor);
}

#ifdef __x86_64__

#define IOCTL_32	54
#define GETTID_32	224

/* ioctl() as a 32-bit program calls it. Return 0 or -errno. */
static int ioctl_32(int fd, unsigned int call, void *argument)
{
	int result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(IOCTL_32), "b"(fd), "c"(call), "d"(argument)
			 : "memory", "r8", "r9", "r10", "r11");
	return result;
}

/* False where "int $0x80" makes a 64-bit call: that of this number knows nothing of threads. */
static bool has_calls_32(void)
{
	int id;

	__asm__ volatile("int $0x80" : "=a"(id) : "a"(GETTID_32) : "memory", "r8", "r9", "r10", "r11");
	return id == syscall(SYS_gettid);
}

/* Counters are 64-bit words, and mmap() needs offsets that a 32-bit program cannot express. */
TEST(K7_calls_of_32_bit_programs_are_refused)
{
	struct setup *low = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	struct rank r;
	int fd = device_open();

	if (!has_calls_32())
		SKIP("this kernel has no 32-bit calls");
	CHECK(low != MAP_FAILED);
	setup_local(low, 0, 1);
	CHECK_EQ(ioctl_32(fd, ACP_IOC_DOORBELL, NULL), -ENOTTY);
	CHECK_EQ(ioctl_32(fd, ACP_IOC_JOIN, &low->join), -ENOTTY);
	CHECK_EQ(low->join.sq_bytes, 0);
	rank_open_local(&r, 1);
	CHECK_EQ(ioctl_32(r.fd, ACP_IOC_DOORBELL, NULL), -ENOTTY);
	CHECK_EQ(ioctl_32(r.fd, ACP_IOC_ABORT, NULL), -ENOTTY);
}

#endif

/* ---- K8 ---- */

/*
 * The maximum number of commands that were executed while a thread was due to run, which wakes up
 * every millisecond.
 */
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
		CHECK_EQ(rank_await(&r, r.last, PATIENCE_WORK), ACP_ST_OK);
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
	/* In the best round: in any round the timer of an emulated machine may be late. */
	CHECK(least < ACP_DEPTH_MAX / 2);
}

/* The maximum number of commands, on the same processor as the watching thread. */
TEST(K8_a_million_commands)
{
	with_processor_back(a_million_commands);
}
