// SPDX-License-Identifier: MIT
/* The generic netlink family: dumps during changes, events, pings. */
#include "netlink_play.h"

/* ---- dumps during changes ---- */

#define MANY	60

static volatile bool stop;

/* Ranks and jobs come and go. */
static void *come_and_go(void *arg)
{
	struct setup s;
	uint32_t i = 0;

	nodes_enter(&net, 0);
	while (!stop) {
		struct rank other;

		nodes_setup(&net, &s, 0, 1);
		s.join.job += 1000 + i++ % 16;
		s.join.heap_size = PAGE;
		s.join.starter_size = PAGE;
		s.join.depth = ACP_DEPTH_MIN;
		rank_open(&other, &s);
		rank_close(&other);
	}
	return arg;
}

static uint32_t stayed;

static void note_stayed(const struct answer *a)
{
	uint32_t id = answer_u32(a, ACP_NL_A_JOB);

	stayed += id >= job() && id < job() + MANY;
}

/* Those that stay are listed exactly once; changes are indicated. */
TEST(netlink_dumps_while_jobs_come_and_go)
{
	uint32_t i, rounds = test_short() ? 20 : 100, changed = 0;
	pthread_t thread;
	struct setup s;

	nodes_open(&net, 1, 1, false);
	nodes_enter(&net, 0);
	ask_open(&q);
	for (i = 0; i < MANY; i++) {
		nodes_setup(&net, &s, 0, 1);
		if (!i)
			r[0].join.job = s.join.job;
		s.join.job = job() + i;
		s.join.heap_size = PAGE;
		s.join.starter_size = PAGE;
		s.join.depth = ACP_DEPTH_MIN;
		CHECK(setup_join(&s) >= 0);
	}
	CHECK_EQ(dump_of(ACP_NL_CMD_JOB_GET, 0, NULL), MANY);
	CHECK(!q.interrupted);
	CHECK_EQ(dump_of(ACP_NL_CMD_REGION_GET, 0, NULL), 3 * MANY);
	CHECK_EQ(pthread_create(&thread, NULL, come_and_go, NULL), 0);
	for (i = 0; i < rounds || (!changed && i < 50 * rounds); i++) {
		stayed = 0;
		CHECK(dump_of(ACP_NL_CMD_JOB_GET, 0, note_stayed) >= MANY);
		CHECK_EQ(stayed, MANY);
		changed += q.interrupted;
		stayed = 0;
		CHECK(dump_of(ACP_NL_CMD_RANK_GET, 0, note_stayed) >= MANY);
		CHECK_EQ(stayed, MANY);
		stayed = 0;
		CHECK(dump_of(ACP_NL_CMD_REGION_GET, 0, note_stayed) >= 3 * MANY);
		CHECK_EQ(stayed, 3 * MANY);
		CHECK(dump_of(ACP_NL_CMD_FLOW_GET, 0, NULL) >= 0);
	}
	stop = true;
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK(changed);
}

/* ---- events ---- */

/* Expect this event next. */
static void heard(struct ask *e, uint32_t event)
{
	CHECK(ask_hear(e, &got));
	CHECK_EQ(got.cmd, ACP_NL_CMD_EVENT);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_EVENT), event);
	CHECK(answer_u64(&got, ACP_NL_A_TIME) > 0);
}

/* Expect this event after any others. */
static void heard_at_last(struct ask *e, uint32_t event)
{
	do {
		if (!ask_hear(e, &got))
			FAIL("event %u does not come", event);
	} while (answer_u32(&got, ACP_NL_A_EVENT) != event);
}

TEST(netlink_events_of_a_job)
{
	static struct ask e;
	struct setup s;

	nodes_open(&net, 1, 1, false);
	nodes_enter(&net, 0);
	ask_open(&q);
	ask_open(&e);
	CHECK_EQ(ask_join(&e), 0);
	nodes_setup(&net, &s, 0, 1);
	rank_open(&r[0], &s);
	heard(&e, ACP_NL_EVENT_JOB_BEGUN);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_JOB), s.join.job);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_UID), 0);
	heard(&e, ACP_NL_EVENT_RANK_JOINED);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_RANK), 0);
	CHECK_EQ(of_job(ACP_NL_CMD_JOB_ABORT, s.join.job), 0);
	heard(&e, ACP_NL_EVENT_JOB_ABORTED);
	rank_close(&r[0]);
	heard(&e, ACP_NL_EVENT_RANK_LEFT);
	CHECK(!answer_has(&got, ACP_NL_A_FINISHED));
	heard(&e, ACP_NL_EVENT_JOB_ENDED);
	CHECK_EQ(limit_to("user_ranks", 0), 0);
	heard(&e, ACP_NL_EVENT_SETTING);
	CHECK(!strcmp(answer_text(&got, ACP_NL_A_NAME), "user_ranks"));
	s.join.job++;
	CHECK_EQ(setup_join(&s), -EDQUOT);
	heard(&e, ACP_NL_EVENT_LIMIT_REACHED);
	CHECK(!strcmp(answer_text(&got, ACP_NL_A_NAME), "user_ranks"));
	CHECK_EQ(color(ACP_NL_CMD_COLOR_ADD, 2, "10.9.0.1"), 0);
	heard(&e, ACP_NL_EVENT_SETTING);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_COLOR), 2);
	CHECK(ask_silent(&e, 50));
}

/* A rank with much memory, which another process may kill. */
static void join_and_stay(struct setup *s, int told)
{
	struct memory m;

	rank_open(&r[0], s);
	memory_open(&r[0], &m, 32 << 20);
	CHECK_EQ(write(told, "", 1), 1);
	for (;;)
		pause();
}

static pid_t rank_of_another_process(struct setup *s)
{
	int pipes[2];
	pid_t pid;
	char c;

	CHECK_EQ(pipe(pipes), 0);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		join_and_stay(s, pipes[1]);
	}
	CHECK(pid > 0);
	close(pipes[1]);
	CHECK_EQ(read(pipes[0], &c, 1), 1);
	close(pipes[0]);
	return pid;
}

/* Its place, memory and charges are free before its leave event is sent. */
TEST(netlink_nothing_is_left_of_a_rank_that_is_said_to_have_left)
{
	static struct ask e;
	struct setup s;
	int i, status, fd;
	pid_t pid;

	nodes_open(&net, 1, 2, false);
	nodes_enter(&net, 0);
	ask_open(&q);
	ask_open(&e);
	CHECK_EQ(limit_to("user_ranks", 1), 0);
	CHECK_EQ(ask_join(&e), 0);
	for (i = 0; i < 5; i++) {
		nodes_setup(&net, &s, 0, 2);
		s.join.job += (uint32_t)i;
		pid = rank_of_another_process(&s);
		CHECK_EQ(kill(pid, SIGKILL), 0);
		heard_at_last(&e, ACP_NL_EVENT_RANK_LEFT);
		s.join.rank = 1;
		fd = setup_join(&s);
		CHECK(fd >= 0);
		close(fd);
		heard_at_last(&e, ACP_NL_EVENT_RANK_LEFT);
		CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	}
}

TEST(netlink_events_of_a_node_that_is_lost)
{
	static struct ask e;

	begin(1000);
	ask_open(&e);
	CHECK_EQ(ask_join(&e), 0);
	CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[1], 0), heap_ga(&r[0], 0), 8), ACP_ST_OK);
	nodes_impair(&net, 1, "loss 100%");
	CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[1], 0), heap_ga(&r[0], 0), 8), ACP_ST_TIMEOUT);
	heard_at_last(&e, ACP_NL_EVENT_NODE_LOST);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_NODE), 1);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_STATUS), ACP_ST_TIMEOUT);
	CHECK_EQ(dump_of(ACP_NL_CMD_FLOW_GET, job(), note_flow), 1);
	CHECK_EQ(answer_u32(&flow, ACP_NL_A_FLOW_FATE), ACP_NL_FATE_LOST);
	CHECK_EQ(answer_u32(&flow, ACP_NL_A_STATUS), ACP_ST_TIMEOUT);
	nodes_impair(&net, 1, "");
	while (rank_do_copy(&r[0], heap_ga(&r[1], 0), heap_ga(&r[0], 0), 8) != ACP_ST_OK)
		sleep_ms(10);
	heard_at_last(&e, ACP_NL_EVENT_NODE_BACK);
}

static int can_filter;

static void other_listener(void)
{
	struct setup s;
	int fd;

	become_other();
	if (!can_filter) {
		CHECK_EQ(ask_join(&q), -EPERM);
		return;
	}
	CHECK_EQ(ask_join(&q), 0);
	nodes_setup(&net, &s, 0, 1);
	s.join.job += 77;
	s.join.heap_size = PAGE;
	s.join.starter_size = PAGE;
	fd = setup_join(&s);
	CHECK(fd >= 0);
	/*
	 * It receives nothing about the job of the other user, which the parent starts and ends
	 * repeatedly.
	 */
	heard(&q, ACP_NL_EVENT_JOB_BEGUN);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_UID), OTHER);
	heard(&q, ACP_NL_EVENT_RANK_JOINED);
	sleep_ms(300);
	CHECK(ask_silent(&q, 50));
}

TEST(netlink_events_are_for_the_owner)
{
	int major = 0, minor = 0, status;
	FILE *f = popen("uname -r", "r");
	pid_t busy;

	CHECK(f && fscanf(f, "%d.%d", &major, &minor) == 2);
	pclose(f);
	can_filter = major > 6 || (major == 6 && minor >= 8);
	nodes_open(&net, 1, 1, false);
	nodes_enter(&net, 0);
	CHECK_EQ(chmod("/dev/acp", 0666), 0);
	/* Not a thread, because the child would inherit the file that is open at that moment. */
	fflush(NULL);
	busy = fork();
	if (!busy) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		come_and_go(NULL);
	}
	CHECK(busy > 0);
	in_child(other_listener);
	CHECK(!kill(busy, SIGKILL) && waitpid(busy, &status, 0) == busy);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* ---- pings ---- */

/* The result may arrive before the acknowledgement, and is then in "got". */
static int ping_by(struct ask *asker, uint32_t rank, uint32_t size, uint32_t timeout_ms)
{
	got.cmd = 0;
	ask_begin(asker, ACP_NL_CMD_PING, 0);
	ask_u32(asker, ACP_NL_A_JOB, job());
	ask_u32(asker, ACP_NL_A_RANK, rank);
	ask_u32(asker, ACP_NL_A_SIZE, size);
	ask_u32(asker, ACP_NL_A_TIMEOUT, timeout_ms);
	return ask_do(asker, &got);
}

static int ping(uint32_t rank, uint32_t size, uint32_t timeout_ms)
{
	return ping_by(&q, rank, size, timeout_ms);
}

static void ping_result(void)
{
	CHECK(got.cmd || ask_hear(&q, &got));
	CHECK_EQ(got.cmd, ACP_NL_CMD_PING);
	CHECK_EQ(got.seq, q.seq);
}

TEST(netlink_ping)
{
	uint32_t size;

	begin(10000);
	for (size = 0; size <= ACP_NL_PING_SIZE_MAX; size++) {
		CHECK_EQ(ping(1, size, 10000), 0);
		ping_result();
		CHECK(answer_u64(&got, ACP_NL_A_RTT) > 0 && !answer_has(&got, ACP_NL_A_ERROR));
		CHECK_EQ(answer_u32(&got, ACP_NL_A_SIZE), size);
		CHECK_EQ(answer_u32(&got, ACP_NL_A_NODE), 1);
		CHECK_EQ(answer_u32(&got, ACP_NL_A_RANK), 1);
		CHECK_EQ(answer_has(&got, ACP_NL_A_OPENED), size == 0);
	}
	CHECK_EQ(ping(1, ACP_NL_PING_SIZE_MAX + 1, 1000), -ERANGE);
	CHECK_EQ(ping(1, 0, 0), -ERANGE);
	CHECK_EQ(ping(2, 0, 1000), -EINVAL);
	CHECK_EQ(ping(0, 0, 1000), -EINVAL);
	CHECK_EQ(nodes_counters(&net, "drop_bad_msg"), 0);
	CHECK(ask_silent(&q, 20));
}

static int ping_address(const char *address)
{
	uint8_t addr[4];

	CHECK_EQ(inet_pton(AF_INET, address, addr), 1);
	got.cmd = 0;
	ask_begin(&q, ACP_NL_CMD_PING, 0);
	ask_u32(&q, ACP_NL_A_JOB, job());
	ask_put(&q, ACP_NL_A_ADDRESS, addr, 4);
	ask_u32(&q, ACP_NL_A_TIMEOUT, 10000);
	return ask_do(&q, &got);
}

TEST(netlink_ping_an_address)
{
	begin(10000);
	CHECK_EQ(ping_address("10.9.0.2"), 0);
	ping_result();
	CHECK(answer_u64(&got, ACP_NL_A_RTT) > 0);
	CHECK_EQ(ping_address("10.9.0.3"), -EHOSTUNREACH);
	CHECK_EQ(ping_address("10.9.0.0"), -EHOSTUNREACH);
	CHECK_EQ(ping_address("10.8.255.255"), -EHOSTUNREACH);
	CHECK_EQ(ping_address("10.9.0.1"), -EINVAL);	/* local address */
}

/* It uses the flow of the job, which retransmits lost frames. */
TEST(netlink_ping_with_loss)
{
	int i;

	begin(30000);
	nodes_impair_all(&net, "loss 30%");
	for (i = 0; i < 20; i++) {
		CHECK_EQ(ping(1, 56, 30000), 0);
		ping_result();
		CHECK(answer_u64(&got, ACP_NL_A_RTT) > 0);
	}
}

/* Encrypted, over IPv6. */
TEST(netlink_ping_encrypted)
{
	const struct acp_join wish = { .integrity = ACP_INTEGRITY_AEAD, .timeout_ms = 10000,
				       .open_timeout_ms = 10000 };
	int i;

	nodes_open(&net, 2, 1, true);
	nodes_ranks_like(&net, r, 2, &wish);
	nodes_enter(&net, 0);
	ask_open(&q);
	for (i = 0; i < 5; i++) {
		CHECK_EQ(ping(1, ACP_NL_PING_SIZE_MAX, 20000), 0);
		ping_result();
		CHECK(answer_u64(&got, ACP_NL_A_RTT) > 0);
	}
}

/*
 * A node that does not answer: the timeout is observed; later the flow fails, before the timeout.
 */
TEST(netlink_ping_to_a_dead_node)
{
	struct patience soon;
	uint64_t since;
	uint32_t i;

	begin(5000);
	nodes_impair(&net, 1, "loss 100%");
	since = now_ns();
	soon = patience_begin(PATIENCE_SOON);
	CHECK_EQ(ping(1, 0, 300), 0);
	ping_result();
	CHECK_EQ(answer_u32(&got, ACP_NL_A_ERROR), ETIMEDOUT);
	CHECK(now_ns() - since >= 300 * MS && !patience_over(&soon));
	CHECK_EQ(ping(1, 0, 60000), 0);
	ping_result();
	CHECK_EQ(answer_u32(&got, ACP_NL_A_ERROR), EHOSTDOWN);
	/* The maximum number of pings waits for a missing node, and no more. */
	for (i = 0; i < ACP_NL_PINGS_MAX; i++)
		CHECK_EQ(ping(1, 0, 60000), 0);
	CHECK_EQ(ping(1, 0, 60000), -EBUSY);
	for (i = 0; i < ACP_NL_PINGS_MAX; i++) {
		CHECK(ask_hear(&q, &got));
		CHECK_EQ(answer_u32(&got, ACP_NL_A_ERROR), EHOSTDOWN);
	}
	nodes_impair(&net, 1, "");
	CHECK_EQ(ping(1, 0, 30000), 0);
	ping_result();
	CHECK(answer_u64(&got, ACP_NL_A_RTT) > 0);
}

/*
 * The maximum number repeatedly, first to a node that answers: after a result has arrived, another
 * ping can be sent at once.
 */
TEST(netlink_ping_told_of_makes_room)
{
	static struct ask each[ACP_NL_PINGS_MAX];
	static bool heard[ACP_NL_PINGS_MAX];
	int i, round;

	begin(1000);
	for (i = 0; i < ACP_NL_PINGS_MAX; i++)
		ask_open(&each[i]);
	for (round = 0; round < 50; round++) {
		if (round == 47)
			nodes_impair(&net, 1, "loss 100%");
		for (i = 0; i < ACP_NL_PINGS_MAX; i++) {
			if (round > 0)
				CHECK(heard[i] || ask_hear(&each[i], &got));
			CHECK_EQ(ping_by(&each[i], 1, 0, 60000), 0);
			heard[i] = got.cmd;
		}
	}
}

/* The requester ends, or the job does: nothing hangs or leaks. */
TEST(netlink_ping_and_go)
{
	static struct ask gone;
	uint32_t i;

	begin(30000);
	nodes_impair(&net, 1, "loss 100%");
	nodes_enter(&net, 0);
	for (i = 0; i < 5; i++) {
		ask_open(&gone);
		ask_begin(&gone, ACP_NL_CMD_PING, 0);
		ask_u32(&gone, ACP_NL_A_JOB, job());
		ask_u32(&gone, ACP_NL_A_RANK, 1);
		CHECK_EQ(ask_do(&gone, NULL), 0);
		close(gone.fd);
	}
	CHECK_EQ(ping(1, 0, 60000), 0);
	rank_close(&r[0]);
	sleep_ms(50);
	nodes_leave(&net);
}
