// SPDX-License-Identifier: MIT
/* selftest: gate=uml */
/*
 * A4: messages into a mailbox of the same node, which ranks write themselves: without system calls,
 * in order with those that the kernel writes, and of ranks that are killed while they write.
 */
#include "../dev/isolated.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mailbox/node_ring.h"
#include "members.h"

#define LONGEST		1500U		/* bytes: more than a ring of 2 KiB takes */
#define BYTES		8192U		/* of the mailbox */

/* Offsets in starter memory. */
enum { INBOX = 0, STEP = 8, SOURCE = 64 };

static bool by_process(acp_handle_t handle)
{
	return handle & 1;
}

/* Rank 0 creates the mailbox. */
static acp_ga_t begin(size_t bytes, acpx_mailbox_t *box)
{
	member_init();
	if (!acp_rank()) {
		CHECK_EQ(acpx_mailbox_create(bytes, 0, box), 0);
		*member_word(INBOX) = acpx_mailbox_ga(*box);
	}
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank())
		CHECK_EQ(member_status(acp_copy(member_at(acp_rank(), INBOX), member_at(0, INBOX),
						8, ACP_HANDLE_NULL)), 0);
	return *member_word(INBOX);
}

/* Tell a rank, without a system call if it is on this node, that a step is done. */
static void say(int rank, uint64_t step)
{
	*member_word(STEP + 8) = step;
	CHECK_EQ(member_status(acp_copy(member_at(rank, STEP), member_at(acp_rank(), STEP + 8), 8,
					ACP_HANDLE_NULL)), 0);
}

static void await(uint64_t step)
{
	CHECK_EQ(acpx_wait_until(member_word(STEP), 8, ACPX_CMP_GE, step, ACPX_FOREVER), 0);
}

/* ---- Without system calls ---- */

#define QUIET	800U		/* messages */

/* Kill the thread's process for a call that reaches the device. */
static void forbid_calls(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fdatasync, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

static void *send_quietly(void *arg)
{
	const acp_ga_t to = *(const acp_ga_t *)arg, own = member_at(acp_rank(), SOURCE);
	uint64_t i;

	forbid_calls();
	for (i = 0; i < QUIET; i++) {
		*member_word(SOURCE) = i;
		CHECK(by_process(acpx_send(to, own, 8, i, i % 2 ? ACPX_RETRY : 0,
					   ACP_HANDLE_NULL)));
		CHECK(by_process(acpx_copy_notify(member_at(0, SOURCE), own, 8, to, ~i, 0,
						  ACP_HANDLE_NULL)));
	}
	say(0, 1);
	return NULL;
}

/* It computes until all are there, and then calls nothing to find them. */
static void receive_quietly(acpx_mailbox_t box)
{
	struct acpx_message message;
	uint64_t i, number;

	while (!__atomic_load_n(member_word(STEP), __ATOMIC_ACQUIRE))
		;
	CHECK_EQ(*member_word(SOURCE), QUIET - 1);
	for (i = 0; i < QUIET; i++) {
		CHECK_EQ(acpx_recv(box, &number, 8, &message, 0), 8);
		CHECK(number == i && message.tag == i && message.rank == 1);
		CHECK_EQ(acpx_recv(box, NULL, 0, &message, 0), 0);
		CHECK(message.tag == ~i && message.rank == 1);
	}
	CHECK_EQ(acpx_recv(box, &number, 8, &message, 0), -ETIMEDOUT);
}

static void quiet(void)
{
	acpx_mailbox_t box = NULL;
	acp_ga_t to = begin(400000, &box);
	pthread_t thread;

	/* The heap is mapped by the first access. */
	if (acp_rank()) {
		CHECK(by_process(acpx_send(to, 0, 0, 0, 0, ACP_HANDLE_NULL)));
		say(0, 0);
	} else {
		CHECK_EQ(acpx_recv(box, NULL, 0, NULL, ACPX_FOREVER), 0);
	}
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank()) {
		CHECK(!pthread_create(&thread, NULL, send_quietly, &to));
		CHECK(!pthread_join(thread, NULL));
	} else {
		receive_quietly(box);
	}
	CHECK_EQ(acp_sync(), 0);
	if (box)
		CHECK_EQ(acpx_mailbox_free(box), 0);
	CHECK_EQ(acp_finalize(), 0);
}

TEST(A4_a_message_on_the_same_node_needs_no_system_call)
{
	members_run(2, 2, quiet);
}

/* ---- Order ---- */

#define RANKS		6		/* two on each node */
#define MESSAGES	(test_short() ? 300U : 3000U)
#define HELD		3U

static uint32_t size_of(int rank, uint64_t number)
{
	uint64_t seed = (uint64_t)rank * 1000003 + number;

	return (uint32_t)(next_random(&seed) % (number % 8 ? 100 : LONGEST + 1));
}

/* How many it has written itself. */
static uint64_t send_numbers(acp_ga_t to, uint64_t count)
{
	const acp_ga_t own = member_at(acp_rank(), SOURCE);
	uint64_t seed = (uint64_t)acp_rank(), i, own_ones = 0;
	acp_handle_t handle;

	for (i = 0; i < count; i++) {
		fill(member_word(SOURCE), size_of(acp_rank(), i), i);
		handle = acpx_send(to, own, size_of(acp_rank(), i), i, ACPX_RETRY, ACP_HANDLE_NULL);
		own_ones += by_process(handle);
		CHECK_EQ(member_status(handle), 0);
		if (next_random(&seed) % 32 == 0)
			sleep_ms(1 + (unsigned int)(next_random(&seed) % 3));
	}
	return own_ones;
}

static void check(const struct acpx_message *m, uint64_t *expected)
{
	CHECK(m->rank > 0 && m->rank < RANKS);
	CHECK_EQ(m->tag, expected[m->rank]++);
	CHECK_EQ(m->size, size_of(m->rank, m->tag));
	CHECK(filled(m->data, m->size, m->tag));
}

/* Some are lent, and returned later. */
static void receive_numbers(acpx_mailbox_t box, uint64_t count)
{
	struct acpx_message held[HELD], m;
	uint64_t expected[RANKS] = { 0 }, seed = 1, i;
	char buffer[LONGEST];
	unsigned int n = 0;

	for (i = 0; i < count; i++) {
		if (n < HELD && next_random(&seed) % 4 == 0) {
			CHECK_EQ(acpx_recv_lend(box, &held[n], ACPX_FOREVER), 0);
			check(&held[n++], expected);
		} else {
			CHECK(acpx_recv(box, buffer, LONGEST, &m, ACPX_FOREVER) >= 0);
			check(&m, expected);
		}
		while (n && (next_random(&seed) % 2 || n == HELD)) {
			const unsigned int which = (unsigned int)(next_random(&seed) % n);

			CHECK_EQ(acpx_recv_return(box, &held[which]), 0);
			held[which] = held[--n];
		}
	}
	while (n)
		CHECK_EQ(acpx_recv_return(box, &held[--n]), 0);
	CHECK_EQ(acpx_recv(box, buffer, LONGEST, NULL, 0), -ETIMEDOUT);
}

static void mixed(void)
{
	acpx_mailbox_t box = NULL;
	acp_ga_t to = begin(BYTES, &box);
	uint64_t own_ones;

	if (acp_rank()) {
		own_ones = send_numbers(to, MESSAGES);
		CHECK(acp_rank() == 1 ? own_ones > MESSAGES / 10 && own_ones < MESSAGES :
					!own_ones);
	} else {
		receive_numbers(box, (RANKS - 1) * (uint64_t)MESSAGES);
	}
	CHECK_EQ(acp_sync(), 0);
	if (box)
		CHECK_EQ(acpx_mailbox_free(box), 0);
	CHECK_EQ(acp_finalize(), 0);
}

TEST(A4_messages_of_both_ways_stay_in_order)
{
	members_run(RANKS, 2, mixed);
}

TEST(A4_messages_of_both_ways_stay_in_order_beside_a_bad_network)
{
	members_run_over("loss 2% duplicate 2%", RANKS, 2, mixed);
}

/* ---- Ranks that are killed ---- */

static struct libacp_node_ring *ring_of(acp_ga_t to)
{
	struct acp_mailbox *box = acp_query_address(to);
	unsigned int bits;
	uint64_t offset;

	CHECK(box && libacp_node_ring_of(box, &offset, &bits));
	return (void *)((char *)box + offset);
}

/* Rank 1 is in the midst of writing. */
static void stop_in_the_midst(acp_ga_t to)
{
	struct libacp_node_ring *ring = ring_of(to);

	CHECK(by_process(acpx_send(to, 0, 0, 1, 0, ACP_HANDLE_NULL)));
	__atomic_store_n(&ring->lock, (uint64_t)acp_rank() + 1, __ATOMIC_SEQ_CST);
	memset((uint64_t *)(void *)(ring + 1) + ring->tail, 0xff, 1000);
	say(2, 1);
	await(1);
	raise(SIGKILL);
}

/* Rank 2 sends nevertheless, and later by the ring again, without hearing of the death. */
static void send_nevertheless(acp_ga_t to)
{
	acp_handle_t handle;
	int i;

	await(1);
	for (i = 0; i < 100; i++) {
		handle = acpx_send(to, 0, 0, 2, ACPX_RETRY, ACP_HANDLE_NULL);
		CHECK(!by_process(handle));
		CHECK_EQ(member_status(handle), 0);
	}
	say(1, 1);
	do {
		handle = acpx_send(to, 0, 0, 3, ACPX_RETRY, ACP_HANDLE_NULL);
		CHECK_EQ(member_status(handle), 0);
	} while (!by_process(handle));
	CHECK_EQ(member_status(acpx_send(to, 0, 0, 4, ACPX_RETRY, ACP_HANDLE_NULL)), 0);
}

/* The lock was free when the last one came. */
static void receive_from_both(acpx_mailbox_t box)
{
	uint64_t tag = 0, count[5] = { 0 };
	struct acpx_message m;

	while (tag != 4) {
		CHECK_EQ(acpx_recv(box, NULL, 0, &m, ACPX_FOREVER), 0);
		CHECK(m.tag >= tag && m.rank == (m.tag == 1 ? 1 : 2));
		tag = m.tag;
		count[tag]++;
	}
	CHECK(count[1] == 1 && count[2] == 100 && count[3] > 0 && count[4] == 1);
	CHECK_EQ(acpx_mailbox_free(box), 0);
}

static void stopped(void)
{
	acpx_mailbox_t box = NULL;
	acp_ga_t to = begin(BYTES, &box);

	if (acp_rank() == 1)
		stop_in_the_midst(to);
	else if (acp_rank() == 2)
		send_nevertheless(to);
	else
		receive_from_both(box);
}

TEST(A4_a_rank_that_stops_and_dies_with_the_lock_blocks_nobody)
{
	struct members m;

	members_open(&m, 3, 3);
	members_start_all(&m, stopped);
	CHECK_EQ(members_wait(&m, 2), 0);
	CHECK_EQ(members_wait(&m, 0), 0);
	CHECK_EQ(members_wait(&m, 1), DIED - SIGKILL);
}

static int all_send[2];		/* a pipe */

/* Tell the parent when something of each has come. */
static void look_if_all_send(const uint64_t *expected)
{
	static bool told;
	int r;

	for (r = 1; r < RANKS && !told; r++)
		if (!expected[r])
			return;
	if (!told)
		CHECK_EQ(write(all_send[1], "", 1), 1);
	told = true;
}

/* Rank 1 sends until it is killed, the others as much as they have. */
static void killed(void)
{
	const uint64_t count = 100;
	acpx_mailbox_t box = NULL;
	acp_ga_t to = begin(BYTES, &box);
	uint64_t expected[RANKS] = { 0 }, left = (RANKS - 2) * count;
	char buffer[LONGEST];
	struct acpx_message m;
	int64_t size;

	if (acp_rank()) {
		send_numbers(to, acp_rank() == 1 ? UINT64_MAX : count);
		return;
	}
	while (left || acpx_peer_state(1) != ACPX_PEER_DOWN) {
		size = acpx_recv(box, buffer, LONGEST, &m, 1000000);
		if (size == -ETIMEDOUT)
			continue;
		CHECK(size >= 0);
		check(&m, expected);
		look_if_all_send(expected);
		left -= m.rank != 1;
	}
}

TEST(A4_a_rank_is_killed_while_it_sends)
{
	unsigned int i, rounds = test_short() ? 4 : 30;
	uint64_t seed = (uint64_t)getpid();
	struct members m;
	char byte;
	int r;

	CHECK(!pipe(all_send));
	for (i = 0; i < rounds; i++) {
		members_open(&m, RANKS, 3);
		members_start_all(&m, killed);
		CHECK_EQ(read(all_send[0], &byte, 1), 1);
		sleep_ms((unsigned int)(next_random(&seed) % 60));
		kill(m.pid[1], SIGKILL);
		for (r = 2; r < RANKS; r++)
			CHECK_EQ(members_wait(&m, r), 0);
		CHECK_EQ(members_wait(&m, 0), 0);
		CHECK_EQ(members_wait(&m, 1), DIED - SIGKILL);
	}
}
