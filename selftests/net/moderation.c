// SPDX-License-Identifier: MIT
/* selftest: cpus=2 */
/*
 * Doorbell moderation: with a single CPU, doorbells are suppressed if they are frequent; a timer
 * polls the ring. Commands submitted without doorbell are sent and complete although their owner
 * does nothing more, in all situations.
 *
 * "Nothing" means: it reads memory, and makes no calls that involve the device.
 */
#include "../dev/isolated.h"

#include <sys/wait.h>

#include "nodes.h"

#define MODERATION_US	"1000"	/* so that a slow machine makes progress meanwhile */
#define TRIES		200000
#define ROUNDS		100

static struct nodes n;
static struct rank r[2];
static const struct acp_join usual;

static bool set_moderation(const char *us)
{
	return write_file("/sys/module/acp/parameters/moderation_us", us);
}

/* Run in a child, so that CPU affinity and setting are restored in any case. */
static void on_one_processor(void (*run)(void))
{
	int status;

	if (sysconf(_SC_NPROCESSORS_ONLN) > 1 && !set_processor(false))
		SKIP("no processor that can be taken away");
	CHECK(set_moderation(MODERATION_US));
	status = child_status(run);
	set_processor(true);
	CHECK(set_moderation("40"));
	CHECK_EQ(status, 0);
}

static void begin(const struct acp_join *wish)
{
	nodes_open(&n, 2, 1, false);
	nodes_ranks_like(&n, r, 2, wish);
	CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[1], 0), heap_ga(&r[0], 0), 8), ACP_ST_OK);
}

static bool must_ring(const struct rank *rank)
{
	return __atomic_load_n(&rank->cq->flags, __ATOMIC_RELAXED) & ACP_CQ_NEED_WAKEUP;
}

/* Ring for copies within own memory until it is not necessary any more. Returns how often. */
static unsigned int begin_moderation(struct rank *rank)
{
	unsigned int i;

	for (i = 0; i < TRIES && must_ring(rank); i++)
		rank_copy(rank, heap_ga(rank, 64), heap_ga(rank, 72), 8, 0);
	CHECK(!must_ring(rank));
	return i;
}

static uint64_t push(struct rank *rank, uint64_t dst, uint64_t src)
{
	struct acp_sqe e = { .op = ACP_OP_COPY, .dst = dst, .src = src, .size = 8,
			     .seen = rank_completed(rank) };

	return rank_push(rank, &e);
}

/* Put a number to words 16 .. of the other rank, without doorbell if none is needed. */
static uint64_t put_burst(unsigned int count, uint64_t value, bool *unrung)
{
	uint64_t ticket = 0;
	unsigned int i;

	__atomic_store_n((uint64_t *)r[0].heap + 1, value, __ATOMIC_RELAXED);
	for (i = 0; i < count; i++)
		ticket = push(&r[0], heap_ga(&r[1], 128 + 8 * i), heap_ga(&r[0], 8));
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*unrung = !must_ring(&r[0]);
	if (!*unrung)
		CHECK_EQ(ioctl(r[0].fd, ACP_IOC_DOORBELL), 0);
	return ticket;
}

static void ends_by_itself(const struct rank *rank, uint64_t ticket)
{
	struct patience p = patience_begin(PATIENCE_SOON);

	while (rank_completed(rank) < ticket)
		CHECK(!patience_over(&p));
}

static uint8_t status_of(const struct rank *rank, uint64_t ticket)
{
	return rank->cq->status[ticket & (rank->join.depth - 1)];
}

/* Bursts of 1 .. 16 puts, each started during moderation; some without doorbell, all arrive. */
static void bursts(unsigned int rounds)
{
	unsigned int i, k, unrung = 0;

	for (i = 1; i <= rounds; i++) {
		unsigned int count = 1 + i % 16;
		uint64_t ticket;
		bool was;

		begin_moderation(&r[0]);
		ticket = put_burst(count, i, &was);
		unrung += was;
		ends_by_itself(&r[0], ticket);
		CHECK_EQ(status_of(&r[0], ticket), ACP_ST_OK);
		for (k = 0; k < count; k++)
			CHECK_EQ(((volatile uint64_t *)r[1].heap)[16 + k], i);
	}
	printf("# %u of %u bursts without a doorbell\n", unrung, rounds);
	CHECK(unrung >= rounds / 10);
}

static void unrung_puts(void)
{
	begin(&usual);
	bursts(ROUNDS);
}

TEST(puts_without_a_doorbell_arrive)
{
	on_one_processor(unrung_puts);
}

static void unrung_puts_under_loss(void)
{
	begin(&usual);
	nodes_impair_all(&n, "loss 10% delay 1ms 1ms");
	bursts(ROUNDS / 2);
}

TEST(puts_without_a_doorbell_arrive_under_loss)
{
	on_one_processor(unrung_puts_under_loss);
}

/*
 * Few doorbells for many commands is the purpose of moderation. A slow machine may stop for longer
 * than moderation lasts, so there are several attempts; and reading a counter takes it longer than
 * moderation waits for commands.
 */
static void few_bells(void)
{
	long long before, bells = 200;
	uint64_t ticket = 0;
	unsigned int i, tries;

	begin(&usual);
	for (tries = 0; tries < 50 && bells >= 20; tries++) {
		before = nodes_counter(&n, 0, "doorbells");
		before += begin_moderation(&r[0]);
		for (i = 0; i < 200; i++)
			ticket = rank_copy(&r[0], heap_ga(&r[1], 128), heap_ga(&r[0], 8), 8, 0);
		ends_by_itself(&r[0], ticket);
		bells = nodes_counter(&n, 0, "doorbells") - before;
	}
	printf("# %lld doorbells for 200 puts, in try %u\n", bells, tries);
	CHECK(bells < 20);
}

TEST(many_puts_need_few_doorbells)
{
	on_one_processor(few_bells);
}

/* A ring that is always full: slots become free without doorbell. */
static void full_ring(void)
{
	const struct acp_join wish = { .depth = ACP_DEPTH_MIN };
	unsigned int i;
	bool was;

	begin(&wish);
	begin_moderation(&r[0]);
	for (i = 0; i < (test_short() ? 500 : 2000); i++) {
		ends_by_itself(&r[0], r[0].last + 1 - ACP_DEPTH_MIN / 2);
		put_burst(ACP_DEPTH_MIN / 2, i, &was);
	}
	ends_by_itself(&r[0], r[0].last);
}

TEST(room_in_a_full_ring_comes_by_itself)
{
	on_one_processor(full_ring);
}

/* The peer is gone: all commands end with a timeout, in time, with or without doorbell. */
static void dead_peer(void)
{
	const struct acp_join wish = { .timeout_ms = 1000, .open_timeout_ms = 1000 };
	uint64_t first, second;
	bool was;

	begin(&wish);
	nodes_run(&n, 1, "ip link set eth0 down");
	begin_moderation(&r[0]);
	first = put_burst(16, 1, &was);
	second = put_burst(16, 2, &was);
	ends_by_itself(&r[0], second);
	CHECK_EQ(status_of(&r[0], first), ACP_ST_TIMEOUT);
	CHECK_EQ(status_of(&r[0], second), ACP_ST_TIMEOUT);
	begin_moderation(&r[0]);
}

TEST(commands_without_a_doorbell_end_if_the_peer_is_dead)
{
	on_one_processor(dead_peer);
}

/* A child inherits the ring, and ends: this does not affect moderation. */
static void with_a_child(void)
{
	uint64_t ticket;
	unsigned int i;
	bool was;

	begin(&usual);
	for (i = 1; i <= 20; i++) {
		int status;
		pid_t child;

		begin_moderation(&r[0]);
		ticket = put_burst(8, i, &was);
		child = fork();
		if (!child)
			_exit(ioctl(r[0].fd, ACP_IOC_DOORBELL) == -1 && errno == EPERM ? 0 : 1);
		ends_by_itself(&r[0], ticket);
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK_EQ(status, 0);
		CHECK_EQ(((volatile uint64_t *)r[1].heap)[23], i);
	}
}

TEST(fork_in_moderation)
{
	on_one_processor(with_a_child);
}

/* A rank leaves during moderation, with commands that were not taken. */
static void leave(void)
{
	struct rank mine;
	unsigned int i;

	for (i = 0; i < 50; i++) {
		rank_open_local(&mine, 1);
		begin_moderation(&mine);
		push(&mine, heap_ga(&mine, 8), heap_ga(&mine, 16));
		rank_close(&mine);
	}
	sleep_ms(10);
}

TEST(leaving_in_moderation)
{
	on_one_processor(leave);
}

/* The second CPU becomes available meanwhile: the poller may take over. */
static void processor_comes(void)
{
	uint64_t ticket;
	unsigned int i;
	bool was;

	begin(&usual);
	for (i = 1; i <= 5; i++) {
		begin_moderation(&r[0]);
		put_burst(4, i, &was);
		set_processor(true);
		ticket = put_burst(8, i, &was);
		ends_by_itself(&r[0], ticket);
		CHECK_EQ(((volatile uint64_t *)r[1].heap)[23], i);
		set_processor(false);
	}
}

TEST(a_processor_comes_in_moderation)
{
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP("no second processor");
	on_one_processor(processor_comes);
}
