// SPDX-License-Identifier: MIT
/* selftest: cpus=2 */
/*
 * States of other ranks and events of libacp, on a descriptor for poll(). Three nodes of two ranks.
 */
#include "../dev/isolated.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>

#include "members.h"

#define RANKS		6
#define PER_NODE	2
#define NODES		(RANKS / PER_NODE)

/* Offsets in starter memory. */
enum { WORD = 0, FORMER = 8, DONE = 16 };

#define KEPT		64	/* events, see acpx_next_event(3) */

static struct members m;
static int turn[RANKS][2];	/* pipes: the test tells a rank to continue */
static int said[2];		/* ... and is told that it has */

/* ---- actions of ranks ---- */

static int status_of_access(int rank)
{
	return member_status(acp_add8(member_at(acp_rank(), FORMER), member_at(rank, WORD), 1,
				      ACP_HANDLE_NULL));
}

static int node_of(int rank)
{
	return rank / PER_NODE;
}

/* Access all ranks, so that all nodes know each other. */
static void meet_all(void)
{
	int r;

	member_init();
	CHECK_EQ(acp_sync(), 0);
	for (r = 0; r < RANKS; r++)
		CHECK_EQ(status_of_access(r), 0);
	CHECK_EQ(acp_sync(), 0);
}

/* Return the next event, after poll() has reported it. */
static struct acpx_event wait_event(void)
{
	struct pollfd p = { .fd = acpx_event_fd(), .events = POLLPRI };
	struct acpx_event e;

	CHECK(patience_poll(p.fd, POLLPRI, PATIENCE_WORK));
	CHECK_EQ(poll(&p, 1, 0), 1);
	CHECK_EQ(p.revents, POLLPRI);
	CHECK_EQ(acpx_next_event(&e), 1);
	CHECK_EQ(e.missed, 0);
	return e;
}

static void no_more_events(void)
{
	struct pollfd p = { .fd = acpx_event_fd(), .events = POLLPRI };
	struct acpx_event e;

	CHECK_EQ(acpx_next_event(&e), 0);
	CHECK_EQ(poll(&p, 1, 0), 0);
}

static void expect_broken(void)
{
	struct acpx_event e = wait_event();

	CHECK_EQ(e.type, ACPX_EVENT_BROKEN);
	CHECK_EQ(e.node, -1);
	CHECK_EQ(e.rank, -1);
}

static void expect_left(int rank)
{
	struct acpx_event e = wait_event();

	CHECK_EQ(e.type, ACPX_EVENT_LEFT);
	CHECK_EQ(e.rank, rank);
	CHECK_EQ(e.node, node_of(rank));
	CHECK_EQ(acpx_peer_state(rank), ACPX_PEER_DOWN);
}

/* Wait until all surviving ranks have reached this point; they are counted at the first one. */
static void meet_survivors(int survivors)
{
	static uint64_t round;

	round++;
	CHECK_EQ(member_status(acp_add8(member_at(acp_rank(), FORMER), member_at(0, DONE), 1,
					ACP_HANDLE_NULL)), 0);
	do {
		CHECK_EQ(member_status(acp_copy(member_at(acp_rank(), FORMER), member_at(0, DONE),
						8, ACP_HANDLE_NULL)), 0);
	} while (*member_word(FORMER) < round * (uint64_t)survivors);
}

/* ---- test and ranks ---- */

static void open_pipes(void)
{
	int i;

	CHECK_EQ(pipe(said), 0);
	for (i = 0; i < RANKS; i++)
		CHECK_EQ(pipe(turn[i]), 0);
}

static void say_so_and_wait(void)
{
	char c = 0;

	CHECK_EQ(write(said[1], &c, 1), 1);
	CHECK_EQ(read(turn[acp_rank()][0], &c, 1), 1);
}

static void await(int ranks)
{
	char c;

	while (ranks--)
		CHECK_EQ(read(said[0], &c, 1), 1);
}

static void go_on(int node)
{
	int i;

	for (i = 0; i < PER_NODE; i++)
		CHECK_EQ(write(turn[PER_NODE * node + i][1], "", 1), 1);
}

/* ---- states ---- */

static void know_all(void)
{
	int me, r;

	CHECK_EQ(acpx_peer_state(0), -1);
	CHECK_EQ(acpx_query_node(0), -1);
	CHECK_EQ(acpx_event_fd(), -1);
	CHECK_EQ(acpx_next_event(&(struct acpx_event){}), -1);
	meet_all();
	me = acp_rank();
	for (r = 0; r < RANKS; r++) {
		CHECK_EQ(acpx_peer_state(r), ACPX_PEER_UP);
		CHECK_EQ(acpx_query_node(r), node_of(r));
	}
	CHECK_EQ(acpx_peer_state(-1), -1);
	CHECK_EQ(acpx_peer_state(RANKS), -1);
	CHECK_EQ(acpx_query_node(-1), -1);
	CHECK_EQ(acpx_query_node(RANKS), -1);
	CHECK_EQ(acpx_next_event(NULL), -1);
	no_more_events();
	CHECK_EQ(acp_finalize(), 0);
	CHECK_EQ(acpx_peer_state(me), -1);
	CHECK_EQ(acpx_event_fd(), -1);
}

TEST(states_of_ranks_that_are_well)
{
	members_run(RANKS, PER_NODE, know_all);
}

/* Nodes are known after an access: the last one accesses only its neighbour in the tree. */
static void know_neighbours(void)
{
	int r;

	member_init();
	if (acp_rank() == RANKS - 1)
		for (r = 0; r < RANKS; r++)
			CHECK_EQ(acpx_peer_state(r), node_of(r) == 1 ? ACPX_PEER_UNKNOWN :
						     ACPX_PEER_UP);
	CHECK_EQ(acp_sync(), 0);
	CHECK_EQ(acp_finalize(), 0);
}

TEST(state_of_a_node_never_spoken_to)
{
	members_run(RANKS, PER_NODE, know_neighbours);
}

/* ---- ranks that leave ---- */

static void hear_of_two(void)
{
	int me;

	meet_all();
	me = acp_rank();
	if (me == 4)
		raise(SIGKILL);
	expect_broken();
	expect_left(4);
	CHECK_EQ(acpx_peer_state(5), ACPX_PEER_UP);
	meet_survivors(RANKS - 1);
	if (me == 1)
		_exit(0);
	expect_left(1);
	CHECK_EQ(acpx_peer_state(4), ACPX_PEER_DOWN);
	/* On its own node, its memory is still mapped and accessed in user space. */
	if (node_of(me) != node_of(1))
		CHECK_EQ(status_of_access(1), ACPX_ERANK);
	no_more_events();
	CHECK_EQ(acpx_peer_state(0), ACPX_PEER_UP);
	say_so_and_wait();
	CHECK_EQ(acp_finalize(), -1);
}

TEST(P1_ranks_that_leave_are_told_to_all)
{
	int r;

	open_pipes();
	members_open(&m, RANKS, PER_NODE);
	members_start_all(&m, hear_of_two);
	await(RANKS - 2);
	for (r = 0; r < NODES; r++)
		go_on(r);
	for (r = 0; r < RANKS; r++)
		CHECK_EQ(members_wait(&m, r), r == 4 ? DIED - SIGKILL : 0);
}

/* More events than are kept: the oldest are dropped, and their number is reported. */
TEST(events_that_were_not_read_in_time)
{
	struct acp_event e = { .size = sizeof(e) };
	unsigned int i, read = 0, missed = 0;
	struct setup s;
	struct rank r;
	int fd;

	setup_local(&s, 0, 100);
	rank_open(&r, &s);
	for (i = 1; i < 100; i++) {
		s.join.rank = i;
		fd = setup_join(&s);
		CHECK(fd >= 0);
		close(fd);
	}
	for (; !ioctl(r.fd, ACP_IOC_EVENT, &e); read++) {
		missed += e.missed;
		CHECK_EQ(e.type, ACP_EVENT_LEFT);
		CHECK_EQ(e.rank, 100 - KEPT + read);
	}
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(read, KEPT);
	/* The event of broken barriers came first. */
	CHECK_EQ(missed, 1 + 99 - KEPT);
}

TEST(K1_event_that_cannot_be_told_is_not_lost)
{
	struct acp_event e = { .size = sizeof(e) };
	struct rank r[2];
	struct acp_event *end;
	struct setup s;

	setup_local(&s, 0, 2);
	rank_open(&r[0], &s);
	CHECK_ERRNO(ioctl(r[0].fd, ACP_IOC_EVENT, &e), EAGAIN);
	setup_local(&s, 1, 2);
	rank_open(&r[1], &s);
	rank_close(&r[1]);
	end = before_hole(sizeof(e.size));
	end->size = sizeof(e);
	CHECK_ERRNO(ioctl(r[0].fd, ACP_IOC_EVENT, end), EFAULT);
	e.size = sizeof(e) + 1;
	CHECK_ERRNO(ioctl(r[0].fd, ACP_IOC_EVENT, &e), EINVAL);
	e.size = sizeof(e);
	CHECK_EQ(ioctl(r[0].fd, ACP_IOC_EVENT, &e), 0);
	CHECK_EQ(e.type, ACP_EVENT_BROKEN);
	CHECK_EQ(ioctl(r[0].fd, ACP_IOC_EVENT, &e), 0);
	CHECK_EQ(e.type, ACP_EVENT_LEFT);
	CHECK_EQ(e.rank, 1);
	CHECK_ERRNO(ioctl(r[0].fd, ACP_IOC_EVENT, &e), EAGAIN);
}

/* ---- nodes that are lost ---- */

/* Expect all of these events, each once, in any order, and no others. */
static void expect_events(const struct acpx_event *wanted, unsigned int count)
{
	unsigned int i, seen = 0;

	while (seen != (1u << count) - 1) {
		struct acpx_event e = wait_event();

		for (i = 0; i < count; i++)
			if (e.type == wanted[i].type && e.node == wanted[i].node)
				break;
		if (i == count || (seen & 1u << i))
			FAIL("event %d of node %d", e.type, e.node);
		CHECK_EQ(e.reason, wanted[i].reason);
		CHECK_EQ(e.color, e.type == ACPX_EVENT_BROKEN ? -1 : 0);
		seen |= 1u << i;
	}
	no_more_events();
}

/* Ranks that lose a node for longer than the timeout of its flows. */
static void survive(void)
{
	static const struct acpx_event lost[] = {
		{ .type = ACPX_EVENT_BROKEN, .node = -1 },
		{ .type = ACPX_EVENT_DOWN, .node = 2, .reason = ACPX_ETIMEOUT },
	};
	struct acpx_event e;
	int status;

	CHECK_EQ(status_of_access(4), ACPX_ETIMEOUT);
	expect_events(lost, 2);
	CHECK_EQ(acpx_peer_state(4), ACPX_PEER_DOWN);
	CHECK_EQ(acpx_peer_state(5), ACPX_PEER_DOWN);
	CHECK_EQ(acpx_peer_state(acp_rank() < 2 ? 2 : 0), ACPX_PEER_UP);
	/* Another attempt causes no new event. */
	CHECK_EQ(status_of_access(5), ACPX_ETIMEOUT);
	no_more_events();
	say_so_and_wait();
	/* Earlier accesses may still fail. */
	do {
		status = status_of_access(4);
	} while (status == ACPX_ETIMEOUT || status == ACPX_EPEER);
	CHECK_EQ(status, 0);
	e = wait_event();
	CHECK_EQ(e.type, ACPX_EVENT_UP);
	CHECK_EQ(e.node, 2);
	CHECK_EQ(acpx_peer_state(4), ACPX_PEER_BACK);
	no_more_events();
}

/* A rank on that node, which notices nothing until the others start again. */
static void come_back(void)
{
	static const struct acpx_event back[] = {
		{ .type = ACPX_EVENT_BROKEN, .node = -1 },
		{ .type = ACPX_EVENT_DOWN, .node = 0, .reason = ACPX_EPEER },
		{ .type = ACPX_EVENT_UP, .node = 0 },
		{ .type = ACPX_EVENT_DOWN, .node = 1, .reason = ACPX_EPEER },
		{ .type = ACPX_EVENT_UP, .node = 1 },
	};

	expect_events(back, 5);
	CHECK_EQ(acpx_peer_state(0), ACPX_PEER_BACK);
	CHECK_EQ(acpx_peer_state(2), ACPX_PEER_BACK);
	CHECK_EQ(status_of_access(0), 0);
}

static void be_cut_off(void)
{
	setenv("ACP_TIMEOUT", "3000", 1);
	meet_all();
	say_so_and_wait();
	if (node_of(acp_rank()) == NODES - 1)
		come_back();
	else
		survive();
	say_so_and_wait();
	CHECK_EQ(acp_finalize(), -1);
}

TEST(N17_P3_a_node_is_down_and_not_up_again_in_silence)
{
	int i;

	open_pipes();
	members_open(&m, RANKS, PER_NODE);
	members_start_all(&m, be_cut_off);
	await(RANKS);
	nodes_run(&m.nodes, 2, "ip link set eth0 down");
	go_on(0);
	go_on(1);
	await(2 * PER_NODE);
	nodes_run(&m.nodes, 2, "ip link set eth0 up");
	go_on(0);
	go_on(1);
	go_on(2);
	await(RANKS);
	for (i = 0; i < NODES; i++)
		go_on(i);
	members_expect(&m, 0);
}

/* ---- Two colors ---- */

static struct nodes net;
static struct rank pair[2];

static int state_of_other(void)
{
	struct acp_rank_state s = { .size = sizeof(s), .rank = 1 };

	CHECK_EQ(ioctl(pair[0].fd, ACP_IOC_STATE, &s), 0);
	return (int)s.state;
}

static int put(struct memory *to)
{
	return rank_do_copy(&pair[0], memory_ga(to, 0), heap_ga(&pair[0], 0), 8);
}

/*
 * A node that can be reached by one color is not down, but the loss of the other color is still
 * reported.
 */
TEST(state_of_a_node_lost_on_one_color)
{
	const struct acp_join wish = { .timeout_ms = 1000 };
	struct memory to[2];
	uint32_t i;

	nodes_open(&net, 2, 2, false);
	nodes_ranks_like(&net, pair, 2, &wish);
	for (i = 0; i < 2; i++)
		CHECK_EQ(rank_register_color(&pair[1], &to[i],
					     pages(PAGE, PROT_READ | PROT_WRITE), PAGE,
					     ACP_ACCESS_ALL, i), 0);
	CHECK_EQ(state_of_other(), ACP_RANK_UNKNOWN);
	CHECK_EQ(put(&to[0]), ACP_ST_OK);
	CHECK_EQ(state_of_other(), ACP_RANK_UP);
	nodes_run(&net, 1, "tc qdisc add dev eth0 root netem loss 100%%");
	CHECK_EQ(put(&to[0]), ACP_ST_TIMEOUT);
	CHECK_EQ(state_of_other(), ACP_RANK_DOWN);
	CHECK_EQ(put(&to[1]), ACP_ST_OK);
	CHECK_EQ(state_of_other(), ACP_RANK_BACK);
	nodes_run(&net, 1, "tc qdisc del dev eth0 root");
	CHECK_EQ(put(&to[0]), ACP_ST_OK);
	CHECK_EQ(state_of_other(), ACP_RANK_BACK);
}

/* ---- An access that poll() waits for ---- */

static bool is_readable(void)
{
	struct pollfd p = { .fd = acpx_event_fd(), .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* A wait for a word of the own memory is an access that the test completes when it wants to. */
static void arm_accesses(void)
{
	const acp_ga_t word = member_at(acp_rank(), WORD), done = member_at(acp_rank(), DONE);
	acp_handle_t first, second;

	*member_word(DONE) = 2;
	first = acpx_wait_word(word, 1, ACP_HANDLE_NULL);
	second = acpx_wait_word(word, 2, ACP_HANDLE_NULL);
	CHECK_EQ(acpx_access_arm(first), 0);
	CHECK(!is_readable());
	CHECK_EQ(acpx_access_arm(ACP_HANDLE_ALL), 0);
	CHECK(!is_readable());
	*member_word(FORMER) = 1;
	acp_copy(word, member_at(acp_rank(), FORMER), 8, ACP_HANDLE_NULL);
	CHECK_EQ(acpx_access_arm(second), 0);
	CHECK(!is_readable());
	acp_copy(word, done, 8, ACP_HANDLE_NULL);
	CHECK(patience_poll(acpx_event_fd(), POLLIN, PATIENCE_SOON));
	CHECK_EQ(acpx_access_arm(second), 1);
	CHECK(is_readable());
	CHECK_EQ(acpx_access_arm(ACP_HANDLE_NULL), 0);
	CHECK(!is_readable());
	CHECK_EQ(acpx_access_arm(first), 1);
}

static void arm_elsewhere(void)
{
	acpx_context_t context;
	acp_handle_t handle;

	CHECK_EQ(acpx_context_create(64, &context), 0);
	CHECK_EQ(acpx_context_bind(context), 0);
	handle = acp_add8(member_at(acp_rank(), FORMER), member_at((acp_rank() + 1) % 2, WORD), 0,
			  ACP_HANDLE_NULL);
	CHECK_EQ(acpx_access_arm(handle), -EINVAL);
	CHECK_EQ(acpx_context_destroy(context), 0);
}

static void wait_by_poll(void)
{
	CHECK_EQ(acpx_access_arm(ACP_HANDLE_NULL), -ENOTCONN);
	member_init();
	arm_accesses();
	CHECK_EQ(acp_sync(), 0);
	arm_elsewhere();
	CHECK_EQ(acp_finalize(), 0);
	CHECK_EQ(acpx_access_arm(ACP_HANDLE_NULL), -ENOTCONN);
}

TEST(poll_tells_when_an_access_is_complete)
{
	members_run(2, 1, wait_by_poll);
}
