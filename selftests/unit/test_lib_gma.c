// SPDX-License-Identifier: MIT
/*
 * Joining, accesses, order, completion and failures, with a fake device. Ranks 0 and 1 are on the
 * node of rank 0, 2 and 3 on another one.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "acp.h"
#include "acp_abi.h"
#include "acp_ga.h"
#include "core/internal.h"
#include "core/queue.h"
#include "core/rings.h"
#include "test.h"
#include "test_lib_device.h"

#define DEPTH	64
#define THREADS	6
#define ROUNDS	3000

static int start_as(const char *rank)
{
	setenv("ACP_RANK", rank, 1);
	setenv("ACP_NPROCS", "4", 1);
	setenv("ACP_NODES", "10.0.0.1 10.0.0.2", 1);
	setenv("ACP_INSECURE", "1", 1);
	setenv("ACP_QUEUE_DEPTH", "64", 1);
	acpx_set_error_mode(ACPX_ERRORS_RETURN);
	return acp_init(NULL, NULL);
}

static int start(void)
{
	return start_as("0");
}

static acp_ga_t at(int rank, size_t offset)
{
	return acp_query_starter_ga(rank) + offset;
}

static char *starter(int rank)
{
	return fake.memory[ACP_STAG_STARTER][rank];
}

static uint64_t *word(int rank, size_t offset)
{
	return (uint64_t *)(void *)(starter(rank) + offset);
}

static bool is_local(acp_handle_t handle)
{
	return handle & 1;
}

static const struct acp_sqe *entry_of(acp_handle_t handle)
{
	return (struct acp_sqe *)(fake.sq + 1) + ((handle >> 1) & (DEPTH - 1));
}

/* ---- Joining and leaving ---- */

TEST(calls__before_init)
{
	CHECK(acp_rank() == -1 && acp_procs() == -1 && acp_colors() == -1);
	CHECK(acp_sync() == -1 && acp_finalize() == -1 && acp_reset(0) == -1);
	CHECK(acp_copy(1, 2, 3, 0) == (acp_handle_t)ACP_HANDLE_NULL);
	CHECK(acp_add8(1, 2, 3, 0) == (acp_handle_t)ACP_HANDLE_NULL);
	CHECK(acpx_copy_strided(1, 2, 3, 4, 5, 6, 0) == (acp_handle_t)ACP_HANDLE_NULL);
	CHECK(acpx_copyv(NULL, 0, 0) == (acp_handle_t)ACP_HANDLE_NULL);
	CHECK(acpx_copy_signal(1, 2, 3, 8, 5, 0, 0) == (acp_handle_t)ACP_HANDLE_NULL);
	CHECK(acp_inquire((acp_handle_t)ACP_HANDLE_ALL) == 0);
	acp_complete((acp_handle_t)ACP_HANDLE_ALL);
	CHECK(acpx_status(4) == ACPX_EABORT);
	CHECK(acp_query_address(1) == NULL);
}

TEST(init__twice_and_again)
{
	uint32_t generation;

	CHECK(start() == 0 && acp_rank() == 0 && acp_procs() == 4);
	generation = fake.join.generation;
	CHECK(fake.join.node_runs == 1 && fake.join.nodes == 2 && fake.join.colors == 1);
	CHECK(start() == -1 && acp_rank() == 0);
	CHECK(acp_sync() == 0 && !fake.final);
	CHECK(acp_finalize() == 0 && fake.final && acp_finalize() == -1 && acp_rank() == -1);
	CHECK(start() == 0 && fake.join.generation == generation + 1);
	CHECK(acp_finalize() == 0);
}

TEST(init__fails_cleanly)
{
	static const int errors[] = {
		ENOMEM, EEXIST, ESTALE, EADDRNOTAVAIL, EADDRINUSE, EACCES, EPROTO, EAFNOSUPPORT,
		EOPNOTSUPP, EDQUOT, EINVAL,
	};
	size_t i;

	fake.open_error = ENOENT;
	CHECK(start() == -1);
	fake.open_error = EACCES;
	CHECK(start() == -1);
	fake.open_error = 0;
	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		fake.join_error = errors[i];
		CHECK(start() == -1 && fake.fd == -1);
	}
	fake.join_error = 0;
	fake.sync_error = ETIMEDOUT;
	CHECK(start() == -1 && fake.fd == -1 && acp_rank() == -1);
	fake.sync_error = 0;
	CHECK(start() == 0 && acp_finalize() == 0);
}

TEST(init__waits_for_those_who_leave)
{
	fake.join_error = ESTALE;
	fake.join_errors = 3;
	CHECK(start() == 0 && acp_finalize() == 0);
	fake.join_error = EEXIST;
	fake.join_errors = 3;
	CHECK(start() == 0 && acp_finalize() == 0);
}

TEST(init__goes_on_after_a_signal)
{
	fake.join_error = EINTR;
	fake.join_errors = 3;
	CHECK(start() == 0 && acp_finalize() == 0);
}

/* Each signal used to start the whole time again. */
TEST(init__has_one_end_however_many_signals_come)
{
	uint64_t begin = libacp_now();

	setenv("ACP_INIT_TIMEOUT", "100", 1);
	fake.alarm_ns = 20000000;
	CHECK(start() == -1);
	CHECK(fake.syncs >= 2 && fake.syncs <= 8);
	CHECK(libacp_now() - begin >= 100000000);
	fake.alarm_ns = 0;
	unsetenv("ACP_INIT_TIMEOUT");
	CHECK(start() == 0 && acp_finalize() == 0);
}

static void ignore(int number)
{
	(void)number;
}

static void ring_often(int flags)
{
	const struct sigaction action = { .sa_handler = ignore, .sa_flags = flags };
	const struct itimerval often = { { 0, 1000 }, { 0, 1000 } };

	CHECK(!sigaction(SIGALRM, &action, NULL) && !setitimer(ITIMER_REAL, &often, NULL));
}

TEST(sleep__is_as_long_however_many_signals_come)
{
	static const int flags[] = { 0, SA_RESTART };
	uint64_t begin;
	int i;

	for (i = 0; i < 2; i++) {
		ring_often(flags[i]);
		begin = libacp_now();
		libacp_sleep(50000000);
		CHECK(libacp_now() - begin >= 50000000);
	}
}

TEST(reset__keeps_the_job_when_refused)
{
	uint32_t generation;

	CHECK(start() == 0);
	generation = fake.join.generation;
	*word(0, 0) = 42;
	/* Only rank 0 writes its number here, so this is no permutation. */
	CHECK(acp_reset(1) == -1 && acp_reset(-1) == -1 && acp_reset(4) == -1);
	CHECK(acp_rank() == 0 && fake.join.generation == generation && *word(0, 0) == 42);
	CHECK(acp_finalize() == 0);
}

/* Rank 2, with rank 0 on another node. The device executes no 4-byte atomics for it. */
static int start_far_from_rank_0(void)
{
	int result;

	setenv("ACP_PLACEMENT", "0+2@1,2+2@0", 1);
	result = start_as("2");
	unsetenv("ACP_PLACEMENT");
	return result;
}

TEST(reset__meets_to_the_end_whatever_fails)
{
	CHECK(start_far_from_rank_0() == 0);
	fake.syncs = 0;
	CHECK(acp_reset(2) == -1);
	CHECK(fake.syncs == 5 && !fake.final && fake.aborts == 0);
	CHECK(acp_finalize() == 0);
}

TEST(reset__ends_the_job_if_rank_0_is_lost)
{
	CHECK(start_far_from_rank_0() == 0);
	fake.syncs = 0;
	fake.lost_after = 4;
	CHECK(acp_reset(2) == -1);
	CHECK(fake.syncs == 4 && fake.aborts == 1);
	fake.lost_after = 0;
	fake.aborts = 0;
	CHECK(acp_finalize() == 0);
}

TEST(reset__alone)
{
	uint32_t generation;

	setenv("ACP_NPROCS", "1", 1);
	setenv("ACP_RANK", "0", 1);
	CHECK(acp_init(NULL, NULL) == 0);
	generation = fake.join.generation;
	*word(0, 0) = 42;
	CHECK(acp_reset(0) == 0 && fake.join.generation == generation + 1);
	CHECK(acp_rank() == 0 && acp_procs() == 1 && *word(0, 0) == 0);
	CHECK(acp_finalize() == 0);
}

/* ---- Registration ---- */

#define APART	(ACPX_ACCESS_READ | ACPX_ACCESS_WRITE | ACPX_ACCESS_ATOMIC | ACPX_ACCESS_DONTFORK)

/* Return which of 8 pages a child has, as a mask. */
static int pages_of_child(char *pages)
{
	int i, status, mask = 0;
	pid_t child = fork();

	if (!child) {
		for (i = 0; i < 8; i++)
			mask |= (msync(pages + i * FAKE_PAGE, FAKE_PAGE, MS_ASYNC) == 0) << i;
		_exit(mask);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(register__dontfork_keeps_whole_pages_from_children)
{
	char *pages = mmap(NULL, 8 * FAKE_PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	acp_atkey_t key, other, plain;

	CHECK(pages != MAP_FAILED && start() == 0);
	plain = acp_register_memory(pages, 8 * FAKE_PAGE, 0);
	CHECK(plain && pages_of_child(pages) == 0xff);
	CHECK(acp_unregister_memory(plain) == 0);

	/* Bytes 100 to 3 pages + 100: pages 1 and 2 have nothing else. */
	key = acpx_register_memory(pages + 100, 3 * FAKE_PAGE, 0, APART);
	CHECK(key && pages_of_child(pages) == 0xf9);
	CHECK(acpx_register_memory(pages + 100, 3 * FAKE_PAGE, 0, APART) == key);
	other = acpx_register_memory(pages + 2 * FAKE_PAGE, 3 * FAKE_PAGE, 0, APART);
	CHECK(other && other != key && pages_of_child(pages) == 0xe1);

	CHECK(acp_unregister_memory(key) == 0 && pages_of_child(pages) == 0xe1);
	CHECK(acp_unregister_memory(key) == 0 && pages_of_child(pages) == 0xe3);
	CHECK(acp_finalize() == 0 && pages_of_child(pages) == 0xff);
}

TEST(register__dontfork_of_a_part_of_registered_memory)
{
	char *pages = mmap(NULL, 8 * FAKE_PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	acp_atkey_t key;

	CHECK(pages != MAP_FAILED && start() == 0);
	key = acp_register_memory(pages, 8 * FAKE_PAGE, 0);
	CHECK(acpx_register_memory(pages + 4 * FAKE_PAGE, 2 * FAKE_PAGE, 0, APART) == key);
	CHECK(pages_of_child(pages) == 0xcf);
	CHECK(acp_unregister_memory(key) == 0 && pages_of_child(pages) == 0xcf);
	CHECK(acp_unregister_memory(key) == 0 && pages_of_child(pages) == 0xff);
	CHECK(acp_finalize() == 0);
}

/* ---- Accesses by the calling thread ---- */

TEST(local__copies)
{
	unsigned int i, doorbells, waits;
	acp_handle_t handle;

	CHECK(start() == 0);
	doorbells = fake.doorbells;
	waits = fake.waits;
	for (i = 0; i < 1000; i++)
		starter(0)[i] = (char)(i * 7);
	handle = acp_copy(at(1, 3), at(0, 0), 1000, ACP_HANDLE_NULL);
	CHECK(is_local(handle) && acp_inquire(handle) == 0 && acpx_status(handle) == 0);
	CHECK(memcmp(starter(1) + 3, starter(0), 1000) == 0);
	CHECK(is_local(acp_copy(at(1, 4), at(1, 3), 1000, (acp_handle_t)ACP_HANDLE_ALL)));
	CHECK(memcmp(starter(1) + 4, starter(0), 1000) == 0);	/* overlapping */
	CHECK(is_local(acp_copy(at(0, 0), at(0, 8), 8, (acp_handle_t)ACP_HANDLE_CONT)));
	CHECK(starter(0)[0] == 56);
	CHECK(is_local(acp_copy(at(0, 0), at(0, 1), 4, handle)) && starter(0)[0] == 63);
	CHECK(is_local(acp_copy(at(0, 10240), at(0, 0), 0, ACP_HANDLE_NULL)));
	acp_complete(handle);
	CHECK(fake.doorbells == doorbells && fake.waits == waits);
	CHECK(acp_finalize() == 0);
}

TEST(local__atomics)
{
	uint32_t *low;

	CHECK(start() == 0);
	low = (uint32_t *)(void *)starter(1);
	*word(1, 0) = 0xffffffff00000005;
#define DO(call, former, after)	do {							\
		CHECK(is_local(call));							\
		CHECK(*word(0, 0) == (former) && *word(1, 0) == (after));		\
	} while (0)
	DO(acp_cas8(at(0, 0), at(1, 0), 1, 2, 0), 0xffffffff00000005, 0xffffffff00000005);
	DO(acp_cas8(at(0, 0), at(1, 0), 0xffffffff00000005, 2, 0), 0xffffffff00000005, 2u);
	DO(acp_swap8(at(0, 0), at(1, 0), 10, 0), 2u, 10u);
	DO(acp_add8(at(0, 0), at(1, 0), ~0ull, 0), 10u, 9u);
	DO(acp_xor8(at(0, 0), at(1, 0), 3, 0), 9u, 10u);
	DO(acp_or8(at(0, 0), at(1, 0), 0xf00000000, 0), 10u, 0xf0000000au);
	DO(acp_and8(at(0, 0), at(1, 0), 0x100000002, 0), 0xf0000000au, 0x100000002u);
	*word(0, 0) = 0;
	DO(acp_cas4(at(0, 0), at(1, 0), 2, 0xffffffff, 0), 2u, 0x1ffffffffu);
	DO(acp_add4(at(0, 0), at(1, 0), 1, 0), 0xffffffffu, 0x100000000u);
	DO(acp_swap4(at(0, 0), at(1, 0), 12, 0), 0u, 0x10000000cu);
	DO(acp_xor4(at(0, 0), at(1, 0), 5, 0), 12u, 0x100000009u);
	DO(acp_or4(at(0, 0), at(1, 0), 6, 0), 9u, 0x10000000fu);
	DO(acp_and4(at(0, 0), at(1, 0), 3, 0), 15u, 0x100000003u);
#undef DO
	CHECK(*low == 3);
	CHECK(acp_finalize() == 0);
}

/* Invalid accesses are not executed here; the kernel reports the error. */
TEST(local__mistakes_go_to_the_kernel)
{
	acp_handle_t handle;

	CHECK(start() == 0);
	handle = acp_copy(at(0, 10239), at(1, 0), 2, ACP_HANDLE_NULL);
	CHECK(!is_local(handle));
	acp_complete(handle);
	CHECK(acpx_status(handle) == ACPX_ERANGE && starter(0)[10239] == 0);
	CHECK(!is_local(acp_copy(at(1, 0), at(1, 10239), 2, ACP_HANDLE_NULL)));
	CHECK(!is_local(acp_copy(at(1, 0), at(0, 0), SIZE_MAX, ACP_HANDLE_NULL)));
	CHECK(!is_local(acp_add8(at(0, 0), at(1, 4), 1, ACP_HANDLE_NULL)));
	CHECK(!is_local(acp_add8(at(0, 1), at(1, 8), 1, ACP_HANDLE_NULL)));
	CHECK(!is_local(acp_add8(at(0, 0), at(1, 10240), 1, ACP_HANDLE_NULL)));
	handle = acp_copy(ACP_GA_NULL, at(0, 0), 1, ACP_HANDLE_NULL);
	CHECK(!is_local(handle));
	acp_complete(handle);
	CHECK(acpx_status(handle) == ACPX_EGA);
	CHECK(acp_finalize() == 0);
}

/* With 0 bytes addresses are ignored, but the access has its place in the order. */
TEST(zero__E4_no_address_is_looked_at)
{
	const acp_ga_t none[] = { ACP_GA_NULL, ~0ull, at(2, 1 << 20), 5, at(0, 99999), at(3, 0) };
	struct acpx_iov v[3] = { { 0 } };
	acp_handle_t h, bad;
	unsigned int i;

	CHECK(start() == 0);
	for (i = 0; i < 36; i++) {
		acp_ga_t dst = none[i / 6], src = none[i % 6];

		CHECK(is_local(acp_copy(dst, src, 0, ACP_HANDLE_NULL)));
		CHECK(is_local(acpx_copy_strided(dst, src, 0, 7, 8, -8, ACP_HANDLE_NULL)));
		CHECK(is_local(acpx_copy_strided(dst, src, 7, 0, 1, 0, ACP_HANDLE_NULL)));
		v[1] = (struct acpx_iov){ .dst = dst, .src = src };
		CHECK(is_local(acpx_copyv(v, 3, ACP_HANDLE_NULL)));
		h = acpx_copy_signal(dst, src, 0, at(i % 4, 64), 1, ACPX_SIGNAL_ADD,
				     ACP_HANDLE_NULL);
		acp_complete(h);
		CHECK(is_local(h) == (i % 4 < 2) && acpx_status(h) == 0);
		CHECK(*word((int)(i % 4), 64) == i / 4 + 1);
	}
	h = acpx_copy_signal(0, 0, 0, 0, 1, ACPX_SIGNAL_ADD, ACP_HANDLE_NULL);
	acp_complete(h);
	CHECK(acpx_status(h) == ACPX_EGA);
	fake_set_hold(true);
	bad = acp_copy(at(2, 0), at(2, 20000), 8, ACP_HANDLE_NULL);
	h = acp_copy(0, 0, 0, bad);
	CHECK(!is_local(h) && acp_inquire(h) == 1);
	fake_set_hold(false);
	acp_complete(h);
	CHECK(acpx_status(bad) == ACPX_ERANGE && acpx_status(h) == ACPX_EORDER);
	CHECK(acp_finalize() == 0);
}

/* Words have a fast path: at each offset of a region it has the same limits as other accesses. */
TEST(local__words_at_the_edges)
{
	static const size_t offsets[] = { 0, 1, 4, 8, 10224, 10231, 10232 };
	static const size_t beyond[] = { 10233, 10239, 10240, 10241, 1 << 20 };
	const uint64_t value = 0x1122334455667788;
	uint64_t found;
	size_t i, rank;

	CHECK(start() == 0);
	for (rank = 0; rank < 3; rank += 1) {
		if (acpx_query_node((int)rank) != acpx_query_node(0))
			continue;
		for (i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
			*word(0, 64) = value;
			CHECK(is_local(acp_copy(at((int)rank, offsets[i]), at(0, 64), 8, 0)));
			memcpy(&found, starter((int)rank) + offsets[i], sizeof(found));
			CHECK(found == value);
			memset(starter((int)rank) + offsets[i], 0, sizeof(found));
		}
		for (i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
			CHECK(!is_local(acp_copy(at((int)rank, beyond[i]), at(0, 64), 8, 0)));
			CHECK(!is_local(acp_copy(at(0, 64), at((int)rank, beyond[i]), 8, 0)));
		}
		CHECK(!is_local(acp_copy(at((int)rank, 0) - 1, at(0, 64), 8, 0)));
	}
	CHECK(acp_finalize() == 0);
}

/* Cached neighbours, alternating: each address refers to the right memory. */
TEST(local__words_of_many)
{
	acp_ga_t there;
	int rank, kind;

	setenv("ACP_PLACEMENT", "0+4@0", 1);
	CHECK(start() == 0);
	unsetenv("ACP_PLACEMENT");
	for (int turn = 0; turn < 3; turn++) {
		for (rank = 0; rank < 4; rank++) {
			for (kind = 0; kind < 2; kind++) {
				uint64_t value = (uint64_t)(turn * 100 + rank * 10 + kind + 1);

				there = acp_ga_make(&fake.layout, (uint32_t)rank, 0,
						    kind ? ACP_STAG_HEAP : ACP_STAG_STARTER, 128);
				*word(0, 64) = value;
				CHECK(is_local(acp_copy(there, at(0, 64), 8, ACP_HANDLE_NULL)));
				CHECK(memcmp(fake.memory[kind ? ACP_STAG_HEAP : ACP_STAG_STARTER]
					     [rank] + 128, &value, 8) == 0);
				CHECK(acp_query_address(there) != NULL);
			}
		}
	}
	CHECK(acp_finalize() == 0);
}

/* ---- Accesses through the ring ---- */

TEST(ring__copy)
{
	acp_handle_t handle;

	CHECK(start() == 0);
	*word(0, 0) = 0x1234;
	handle = acp_copy(at(2, 8), at(0, 0), 8, ACP_HANDLE_NULL);
	CHECK(handle > 0 && !is_local(handle));
	acp_complete(handle);
	CHECK(acp_inquire(handle) == 0 && acpx_status(handle) == 0 && *word(2, 8) == 0x1234);
	handle = acp_add8(at(0, 8), at(3, 0), 5, ACP_HANDLE_NULL);
	acp_complete(handle);
	CHECK(*word(3, 0) == 5 && *word(0, 8) == 0);
	CHECK(acp_finalize() == 0);
}

TEST(ring__pending)
{
	acp_handle_t first, second, local;

	CHECK(start() == 0);
	fake_set_hold(true);
	first = acp_copy(at(2, 0), at(0, 0), 8, ACP_HANDLE_NULL);
	second = acp_copy(at(2, 0), at(0, 0), 8, ACP_HANDLE_NULL);
	CHECK(second == first + 2 && acp_inquire(first) == 1);
	CHECK(acpx_status(first) == ACPX_EPENDING);
	CHECK(acp_inquire((acp_handle_t)ACP_HANDLE_ALL) == 1);
	CHECK(acp_inquire(ACP_HANDLE_NULL) == 0);
	local = acp_copy(at(1, 0), at(0, 0), 8, ACP_HANDLE_NULL);
	CHECK(local == (second | 1) && acp_inquire(local) == 1 && acpx_status(local) == 0);
	fake_set_hold(false);
	acp_complete(local);
	CHECK(acp_inquire(first) == 0 && acp_inquire(second) == 0 && acp_inquire(local) == 0);
	CHECK(acp_finalize() == 0);
}

/* ---- Several pieces as one access ---- */

static acp_handle_t done(acp_handle_t handle)
{
	acp_complete(handle);
	return handle;
}

/* Copy two columns of a matrix of 16 by 8 words; the other end is contiguous, or reversed. */
static void check_strided(int rank, bool local)
{
	acp_handle_t h;
	size_t i;

	for (i = 0; i < 128; i++)
		*word(0, 8 * i) = i;
	h = done(acpx_copy_strided(at(rank, 4096), at(0, 8), 16, 16, 16, 64, ACP_HANDLE_NULL));
	CHECK(is_local(h) == local && acpx_status(h) == 0);
	for (i = 0; i < 16; i++)
		CHECK(*word(rank, 4096 + 16 * i) == 8 * i + 1 &&
		      *word(rank, 4104 + 16 * i) == 8 * i + 2);
	CHECK(*word(rank, 4096 + 256) == 0);
	h = done(acpx_copy_strided(at(rank, 8192 - 4), at(0, 8 * 8), 4, 5, -12, 8,
				   ACP_HANDLE_NULL));
	CHECK(is_local(h) == local && acpx_status(h) == 0);
	for (i = 0; i < 5; i++)
		CHECK(*(uint32_t *)(void *)(starter(rank) + 8188 - 12 * i) == 8 + i &&
		      *(uint32_t *)(void *)(starter(rank) + 8192 - 12 * i) == 0);
	h = done(acpx_copy_strided(at(rank, 0), at(0, 0), 0, SIZE_MAX, 1, 1, ACP_HANDLE_NULL));
	CHECK(acpx_status(h) == 0);
	h = done(acpx_copy_strided(at(rank, 0), at(0, 0), SIZE_MAX, 0, 1, 1, ACP_HANDLE_NULL));
	CHECK(acpx_status(h) == 0);
}

TEST(acpx__strided)
{
	CHECK(start() == 0);
	check_strided(1, true);
	check_strided(2, false);
	CHECK(acp_finalize() == 0);
}

/*
 * Accesses that the calling thread cannot execute: passed to the kernel, with a descriptor that it
 * can reject.
 */
TEST(acpx__strided_beyond_memory)
{
	static const struct { size_t block, count; int64_t stride; } bad[] = {
		{ 8, 2, 10233 }, { 8, 2, -1 }, { 8, 1u << 31, INT64_MAX }, { 8, 3, INT64_MIN },
		{ 8, 1025, 10 }, { 10241, 2, 10241 }, { 16, 2, 15 },
		{ 8, 2, 0 }, { 8, 3, -7 }, { 1, 2, 1ll << 40 }, { 4, 2, -(1ll << 40) },
	};
	size_t i;

	CHECK(start() == 0);
	memset(starter(1), 7, 10240);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK(!is_local(acpx_copy_strided(at(1, 0), at(0, 0), bad[i].block, bad[i].count,
						  bad[i].stride, (int64_t)bad[i].block,
						  ACP_HANDLE_NULL)));
		CHECK(!is_local(acpx_copy_strided(at(0, 0), at(1, 0), bad[i].block, bad[i].count,
						  (int64_t)bad[i].block, bad[i].stride,
						  ACP_HANDLE_NULL)));
	}
	acp_complete((acp_handle_t)ACP_HANDLE_ALL);
	for (i = 0; i < 2; i++) {
		acp_handle_t h = acpx_copy_strided(at(1, 0), at(0, 0), i ? 1 : 1ull << 32,
						   i ? 1ull << 32 : 1, 1, 1, ACP_HANDLE_NULL);

		CHECK(entry_of(h)->size == UINT64_MAX);
		acp_complete(h);
		CHECK(acpx_status(h) != 0);
	}
	CHECK(acp_finalize() == 0);
}

TEST(acpx__signal)
{
	acp_handle_t h;
	int rank;

	CHECK(start() == 0);
	*word(0, 0) = 77;
	for (rank = 1; rank < 3; rank++) {
		h = done(acpx_copy_signal(at(rank, 8), at(0, 0), 8, at(rank, 64), 5,
					  ACPX_SIGNAL_SET, ACP_HANDLE_NULL));
		CHECK(is_local(h) == (rank == 1) && acpx_status(h) == 0);
		CHECK(*word(rank, 8) == 77 && *word(rank, 64) == 5);
		h = done(acpx_copy_signal(at(rank, 16), at(0, 0), 0, at(rank, 64), 3,
					  ACPX_SIGNAL_ADD, ACP_HANDLE_NULL));
		CHECK(acpx_status(h) == 0 && *word(rank, 16) == 0 && *word(rank, 64) == 8);
		h = done(acpx_copy_signal(at(rank, 10240), at(0, 0), 8, at(rank, 64), 3,
					  ACPX_SIGNAL_ADD, ACP_HANDLE_NULL));
		CHECK(acpx_status(h) == ACPX_ERANGE && *word(rank, 64) == 8);
		h = done(acpx_copy_signal(at(rank, 8), at(0, 0), 8, at(rank, 10240), 3,
					  ACPX_SIGNAL_ADD, ACP_HANDLE_NULL));
		CHECK(acpx_status(h) == ACPX_ERANGE);
		h = acpx_copy_signal(at(rank, 8), at(0, 0), 8, at(rank, 65), 3, ACPX_SIGNAL_ADD,
				     ACP_HANDLE_NULL);
		CHECK(!is_local(h));		/* the kernel rejects it */
		acp_complete(h);
		h = done(acpx_copy_signal(at(rank, 8), at(0, 0), 8, at(rank, 64), 3, 2,
					  ACP_HANDLE_NULL));
		CHECK(acpx_status(h) == ACPX_EOP);
	}
	CHECK(acp_finalize() == 0);
}

/* Data and flag on different nodes: two commands, one handle, and the flag waits. */
TEST(acpx__signal_elsewhere)
{
	const struct acp_sqe *data, *flag;
	acp_handle_t h;

	CHECK(start() == 0);
	*word(0, 0) = 9;
	fake_set_hold(true);
	h = acpx_copy_signal(at(2, 8), at(0, 0), 8, at(0, 64), 1, ACPX_SIGNAL_ADD,
			     ACP_HANDLE_NULL);
	flag = entry_of(h);
	data = entry_of(h - 2);
	CHECK(data->op == ACP_OP_COPY && data->flags == ACP_SQE_MORE && data->order == 0);
	CHECK(data->size == 8 && !data->a && !data->b);
	CHECK(flag->op == ACP_OP_COPY_ADD && !flag->flags && !flag->size && flag->b == 1);
	CHECK(flag->order == (uint64_t)(h - 2) >> 1 && flag->seen == flag->order - 1);
	fake_set_hold(false);
	acp_complete(h);
	CHECK(acpx_status(h) == 0 && *word(2, 8) == 9 && *word(0, 64) == 1);
	CHECK(acp_finalize() == 0);
}

/* It waits for the data only, and fails only with that: not with earlier failures. */
TEST(acpx__signal_elsewhere_after_a_failure)
{
	acp_handle_t h[3];

	CHECK(start() == 0);
	*word(0, 0) = 9;
	fake_set_hold(true);
	acp_copy(at(2, 0), at(2, 20000), 8, ACP_HANDLE_NULL);
	h[0] = acpx_copy_signal(at(2, 8), at(0, 0), 8, at(0, 64), 1, ACPX_SIGNAL_ADD,
				ACP_HANDLE_NULL);
	h[1] = acpx_copy_signal(at(2, 20000), at(0, 0), 8, at(0, 64), 1, ACPX_SIGNAL_ADD,
				ACP_HANDLE_NULL);
	h[2] = acpx_copy_signal(at(2, 16), at(0, 0), 8, at(0, 64), 1, ACPX_SIGNAL_ADD,
				(acp_handle_t)ACP_HANDLE_ALL);
	fake_set_hold(false);
	acp_complete(h[2]);
	CHECK(acpx_status(h[0]) == 0 && acpx_status(h[1]) == ACPX_ERANGE);
	CHECK(acpx_status(h[2]) == ACPX_EORDER);
	CHECK(*word(2, 8) == 9 && *word(2, 16) == 0 && *word(0, 64) == 1);
	CHECK(acp_finalize() == 0);
}

/* Signals without data work without starter memory as well. */
TEST(acpx__without_starter_memory)
{
	struct acpx_iov none;
	acp_handle_t h;

	setenv("ACP_STARTER_SIZE", "0", 1);
	setenv("ACP_HEAP_SIZE", "4096", 1);
	CHECK(start() == 0 && acpx_starter_size() == 0);
	fake.memory[ACP_STAG_HEAP][0][1024] = 9;
	h = done(acpx_copy_signal(acpx_query_heap_ga(2), acpx_query_heap_ga(0) + 1024, 8,
				  acpx_query_heap_ga(1) + 2048, 1, ACPX_SIGNAL_ADD,
				  ACP_HANDLE_NULL));
	CHECK(acpx_status(h) == 0 && fake.memory[ACP_STAG_HEAP][1][2048] == 1);
	CHECK(fake.memory[ACP_STAG_HEAP][2][0] == 9);
	CHECK(acpx_status(done(acpx_copyv(&none, 0, ACP_HANDLE_NULL))) == 0);
	CHECK(acp_finalize() == 0);
	unsetenv("ACP_STARTER_SIZE");
	unsetenv("ACP_HEAP_SIZE");
}

/* Local and remote pieces, more than the ring has slots; one handle for all. */
TEST(acpx__vector)
{
	static struct acpx_iov v[ACPX_COPYV_MAX + 1];
	acp_handle_t h;
	size_t i;

	CHECK(start() == 0);
	for (i = 0; i < 1000; i++) {
		*word(0, 8 * i) = i + 1;
		v[i] = (struct acpx_iov){ at(1 + (int)(i % 3), 8 * i), at(0, 8 * i), 8 };
	}
	h = acpx_copyv(v, 1000, ACP_HANDLE_NULL);
	CHECK(!is_local(h) && h > 0);
	acp_complete(h);
	CHECK(acpx_status(h) == 0);
	for (i = 0; i < 1000; i++)
		CHECK(*word(1 + (int)(i % 3), 8 * i) == i + 1);
	CHECK(libacp_rings_newest(&libacp_main.rings) == 1 + 666);
	for (i = 0; i < 1000; i += 111) {
		v[i].dst = at(2, 10240);
		h = done(acpx_copyv(v, 1000, ACP_HANDLE_NULL));
		CHECK(acpx_status(h) == ACPX_ERANGE);
		v[i].dst = at(2, 0);
	}
	h = done(acpx_copyv(v, 1000, ACP_HANDLE_NULL));
	CHECK(acpx_status(h) == 0);
	for (i = 0; i < 10; i++)
		v[i].dst = at(1, 8 * i);
	CHECK(is_local(acpx_copyv(v, 10, ACP_HANDLE_NULL)));
	CHECK(acpx_status(done(acpx_copyv(NULL, 0, ACP_HANDLE_NULL))) == 0);
	CHECK(acpx_status(done(acpx_copyv(NULL, 1, ACP_HANDLE_NULL))) == ACPX_EOP);
	CHECK(acpx_status(done(acpx_copyv(v, ACPX_COPYV_MAX + 1, ACP_HANDLE_NULL))) == ACPX_EOP);
	CHECK(acp_finalize() == 0);
}

static void *release_later(void *arg)
{
	usleep(20000);
	fake_set_hold(false);
	return arg;
}

/*
 * What it waits for fails: nothing is copied, not even by pieces submitted after the status was
 * lost.
 */
TEST(acpx__vector_behind_a_failure)
{
	static struct acpx_iov v[10 * DEPTH];
	pthread_t thread;
	acp_handle_t bad, h;
	size_t i;

	CHECK(start() == 0);
	for (i = 0; i < 10 * DEPTH; i++) {
		*word(0, 8 * i) = 5;
		v[i] = (struct acpx_iov){ at(2, 8 * i), at(0, 8 * i), 8 };
	}
	fake_set_hold(true);
	bad = acp_copy(at(2, 0), at(2, 20000), 8, ACP_HANDLE_NULL);
	pthread_create(&thread, NULL, release_later, NULL);
	h = done(acpx_copyv(v, 10 * DEPTH, bad));
	pthread_join(thread, NULL);
	CHECK(acpx_status(h) == ACPX_EORDER);
	for (i = 0; i < 10 * DEPTH; i++)
		CHECK(*word(2, 8 * i) == 0);
	CHECK(acpx_status(done(acpx_copyv(v, 10 * DEPTH, h))) == 0);
	CHECK(acp_finalize() == 0);
}

TEST(acpx__vector_waits_for_one_access)
{
	struct acpx_iov v[3] = { { 0, 0, 8 }, { 0, 0, 8 }, { 0, 0, 8 } };
	acp_handle_t first, h;
	int i;

	CHECK(start() == 0);
	for (i = 0; i < 3; i++)
		v[i] = (struct acpx_iov){ at(1 + i, 8), at(0, 0), 8 };
	fake_set_hold(true);
	first = acp_copy(at(2, 0), at(0, 0), 8, ACP_HANDLE_NULL);
	h = acpx_copyv(v, 3, (acp_handle_t)ACP_HANDLE_ALL);
	CHECK(h == first + 6);			/* none completes early */
	for (i = 0; i < 3; i++) {
		CHECK(entry_of(h - 2 * i)->order == (uint64_t)first >> 1);
		CHECK(entry_of(h - 2 * i)->flags == (i ? ACP_SQE_MORE : 0));
	}
	fake_set_hold(false);
	acp_complete(h);
	CHECK(acp_finalize() == 0);
}

TEST(handle__never_issued)
{
	acp_handle_t last;

	CHECK(start() == 0);
	last = acp_copy(at(2, 0), at(0, 0), 8, ACP_HANDLE_NULL);
	acp_complete(last + 2);
	CHECK(acp_inquire(last + 2) == 0 && acpx_status(last + 2) == ACPX_EOP);
	acp_complete(0x7fffffffffffffff);
	acp_complete(-3);
	CHECK(acp_inquire(-3) == 0 && acpx_status(-3) == ACPX_EOP);
	CHECK(acpx_status(ACP_HANDLE_NULL) == ACPX_EOP);
	acp_complete((acp_handle_t)ACP_HANDLE_CONT);
	CHECK(acp_inquire(last) == 0);
	CHECK(acp_finalize() == 0);
}

/* The flags of an indirect copy choose operation and flags of the entry; the kernel checks them. */
TEST(order__A4_flags_of_indirect_copies)
{
	static const struct {
		int wish;
		uint8_t op, flags;
	} cases[] = {
		{ 0, ACP_OP_INDIRECT, 0 }, { ACPX_ADVANCE, ACP_OP_APPEND, 0 },
		{ ACPX_ADVANCE | ACPX_RETRY, ACP_OP_APPEND, ACP_SQE_RETRY },
		{ ACPX_RETRY, ACP_OP_INDIRECT, ACP_SQE_RETRY }, { 4, 0, 0 },
		{ -1, 0, ACP_SQE_RETRY },
	};
	const struct acp_sqe *e;
	size_t i;

	CHECK(start() == 0);
	fake_set_hold(true);
	acp_copy(at(2, 0), at(0, 0), 8, ACP_HANDLE_NULL);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		e = entry_of(acpx_copy_indirect(at(2, 0), at(0, 0), 8, cases[i].wish,
						ACP_HANDLE_NULL));
		CHECK(e->op == cases[i].op && e->flags == cases[i].flags && e->size == 8);
		e = entry_of(acpx_copy_indirect(at(2, 0), at(0, 0), 8, cases[i].wish,
						(acp_handle_t)ACP_HANDLE_CONT));
		CHECK(e->op == cases[i].op && e->flags == (cases[i].flags | ACP_SQE_CONT));
	}
	fake_set_hold(false);
}

/* Copies along chains are left to the kernel, wherever the chain is. */
TEST(order__A4_copies_along_chains)
{
	const struct acp_sqe *e;

	CHECK(start() == 0);
	fake_set_hold(true);
	acp_copy(at(2, 0), at(0, 0), 8, ACP_HANDLE_NULL);
	e = entry_of(acpx_copy_scatter(at(0, 64), at(0, 0), 8, ACP_HANDLE_NULL));
	CHECK(e->op == ACP_OP_SCATTER && !e->flags && e->size == 8);
	CHECK(e->dst == at(0, 64) && e->src == at(0, 0) && !e->a && !e->b);
	e = entry_of(acpx_copy_gather(at(0, 0), at(2, 64), 16, (acp_handle_t)ACP_HANDLE_CONT));
	CHECK(e->op == ACP_OP_GATHER && e->flags == ACP_SQE_CONT && e->size == 16);
	CHECK(e->dst == at(0, 0) && e->src == at(2, 64) && !e->a && !e->b);
	fake_set_hold(false);
}

/* Arguments that no field of an entry can express become what the kernel refuses. */
TEST(order__combinations_of_numbers)
{
	static const struct {
		size_t count, size;
		int op, type;
		uint64_t a;
	} all[] = {
		{ 3, 12, ACPX_SUM, ACPX_INT32, 0 }, { 3, 24, ACPX_PROD, ACPX_INT64, 0x101 },
		{ 0, 0, ACPX_REPLACE, ACPX_DOUBLE, 0x507 }, { 1, 4, ACPX_XOR, ACPX_FLOAT, 0x406 },
		{ SIZE_MAX / 4, SIZE_MAX / 4 * 4, ACPX_MIN, ACPX_UINT32, 0x202 },
		{ SIZE_MAX / 4 + 1, SIZE_MAX, ACPX_MAX, ACPX_UINT32, 0x203 },
		{ SIZE_MAX / 8 + 1, SIZE_MAX, ACPX_AND, ACPX_UINT64, 0x304 },
		{ 1, 4, -1, ACPX_INT32, UINT64_MAX }, { 1, 4, 8, ACPX_INT32, UINT64_MAX },
		{ 1, 4, 256, ACPX_INT32, UINT64_MAX }, { 1, 4, ACPX_OR, 6, UINT64_MAX },
		{ 1, 8, ACPX_OR, -1, UINT64_MAX },
	};
	const struct acp_sqe *e;
	size_t i;

	CHECK(start() == 0);
	fake_set_hold(true);
	acp_copy(at(2, 0), at(0, 0), 8, ACP_HANDLE_NULL);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		e = entry_of(acpx_reduce(at(0, 64), at(1, 8), all[i].count, all[i].op, all[i].type,
					 (acp_handle_t)ACP_HANDLE_CONT));
		CHECK(e->op == ACP_OP_REDUCE && e->flags == ACP_SQE_CONT && !e->b);
		CHECK(e->dst == at(0, 64) && e->src == at(1, 8));
		CHECK(e->size == all[i].size && e->a == all[i].a);
	}
	fake_set_hold(false);
}

/* The same for numbers of other ranks, and their signals. */
TEST(order__accumulations_of_numbers)
{
	static const struct {
		size_t count;
		int op, type;
		uint64_t size;
	} all[] = {
		{ 3, ACPX_SUM, ACPX_INT32, 3 << 16 }, { 3, ACPX_PROD, ACPX_INT64, 0x30101 },
		{ 0, ACPX_REPLACE, ACPX_DOUBLE, 0x507 }, { 1, ACPX_XOR, ACPX_FLOAT, 0x10406 },
		{ (1ull << 48) - 1, ACPX_MIN, ACPX_UINT32, ~0xffffull | 0x202 },
		{ 1ull << 48, ACPX_MAX, ACPX_UINT32, UINT64_MAX },
		{ SIZE_MAX, ACPX_AND, ACPX_UINT64, UINT64_MAX },
		{ 1, -1, ACPX_INT32, UINT64_MAX }, { 1, 8, ACPX_INT32, UINT64_MAX },
		{ 1, 256, ACPX_INT32, UINT64_MAX }, { 1, ACPX_OR, 6, UINT64_MAX },
		{ 1, ACPX_OR, -1, UINT64_MAX },
	};
	const struct acp_sqe *e;
	size_t i;

	CHECK(start() == 0);
	fake_set_hold(true);
	acp_copy(at(2, 0), at(0, 0), 8, ACP_HANDLE_NULL);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		e = entry_of(acpx_accumulate(at(2, 64), at(1, 8), all[i].count, all[i].op,
					     all[i].type, (acp_handle_t)ACP_HANDLE_CONT));
		CHECK(e->op == ACP_OP_ACCUMULATE && e->flags == ACP_SQE_CONT && !e->b && !e->a);
		CHECK(e->dst == at(2, 64) && e->src == at(1, 8) && e->size == all[i].size);
	}
	e = entry_of(acpx_accumulate_signal(at(2, 64), at(1, 8), 3, ACPX_MAX, ACPX_DOUBLE,
					    at(2, 8), 7, ACPX_SIGNAL_ADD, ACP_HANDLE_NULL));
	CHECK(e->op == ACP_OP_ACCUMULATE_ADD && e->a == at(2, 8) && e->b == 7);
	CHECK(e->size == 0x30503);
	e = entry_of(acpx_accumulate_signal(at(2, 64), at(1, 8), 3, ACPX_MAX, ACPX_DOUBLE,
					    at(2, 8), 7, ACPX_SIGNAL_SET, ACP_HANDLE_NULL));
	CHECK(e->op == ACP_OP_ACCUMULATE_SET && !e->flags);
	e = entry_of(acpx_accumulate_signal(at(2, 64), at(1, 8), 3, ACPX_MAX, ACPX_DOUBLE,
					    at(2, 8), 7, ACPX_SIGNAL_REVOKE, ACP_HANDLE_NULL));
	CHECK(!e->op);
	/* A flag on another node is changed behind the numbers. */
	e = entry_of(acpx_accumulate_signal(at(2, 64), at(1, 8), 3, ACPX_MAX, ACPX_DOUBLE,
					    at(0, 8), 7, ACPX_SIGNAL_ADD, ACP_HANDLE_NULL));
	CHECK(e->op == ACP_OP_COPY_ADD && !e->size && e->dst == at(0, 8) && e->a == at(0, 8));
	fake_set_hold(false);
}

TEST(order__as_the_kernel_sees_it)
{
	acp_handle_t a, b, c;
	const struct acp_sqe *e;

	CHECK(start() == 0);
	fake_set_hold(true);
	a = acp_copy(at(2, 0), at(0, 0), 8, (acp_handle_t)ACP_HANDLE_ALL);
	e = entry_of(a);
	CHECK(e->order == 0 && e->flags == 0);		/* nothing was outstanding */
	b = acp_copy(at(2, 0), at(0, 0), 8, ACP_HANDLE_NULL);
	e = entry_of(b);
	CHECK(e->order == 0 && e->flags == 0 && e->seen < (uint64_t)a >> 1);
	c = acp_copy(at(2, 0), at(0, 0), 8, a);
	CHECK(entry_of(c)->order == (uint64_t)a >> 1 && entry_of(c)->flags == 0);
	c = acp_copy(at(2, 0), at(0, 0), 8, (acp_handle_t)ACP_HANDLE_ALL);
	CHECK(entry_of(c)->order == ((uint64_t)c >> 1) - 1 && entry_of(c)->flags == 0);
	c = acp_copy(at(2, 0), at(0, 0), 8, (acp_handle_t)ACP_HANDLE_CONT);
	CHECK(entry_of(c)->order == ((uint64_t)c >> 1) - 1 && entry_of(c)->flags == ACP_SQE_CONT);
	c = acp_copy(at(2, 0), at(0, 0), 8, 0x7fffffff);
	CHECK(entry_of(c)->order == 0);			/* never issued: no condition */
	/* Local accesses whose condition is not satisfied yet are submitted as well. */
	c = acp_copy(at(1, 0), at(0, 0), 8, b);
	CHECK(!is_local(c) && entry_of(c)->order == (uint64_t)b >> 1);
	/* CONT after an access that the caller executed is like ALL. */
	CHECK(is_local(acp_copy(at(1, 0), at(0, 0), 8, ACP_HANDLE_NULL)));
	c = acp_copy(at(2, 0), at(0, 0), 8, (acp_handle_t)ACP_HANDLE_CONT);
	CHECK(entry_of(c)->order == ((uint64_t)c >> 1) - 1 && entry_of(c)->flags == 0);
	fake_set_hold(false);
	acp_complete(c);
	c = acp_copy(at(2, 0), at(0, 0), 8, b);
	CHECK(entry_of(c)->order == 0);			/* complete already */
	CHECK(acp_finalize() == 0);
}

TEST(ring__full)
{
	pthread_t thread;
	acp_handle_t handle = 0;
	int i;

	CHECK(start() == 0);
	fake_set_hold(true);
	pthread_create(&thread, NULL, release_later, NULL);
	for (i = 0; i < 5 * DEPTH; i++) {
		handle = acp_add8(at(0, 8), at(2, 0), 1, ACP_HANDLE_NULL);
		CHECK(handle > 0);
	}
	pthread_join(thread, NULL);
	acp_complete(handle);
	CHECK(*word(2, 0) == 5 * DEPTH);
	CHECK(acp_finalize() == 0);
}

/* ---- Failure ---- */

TEST(status__kept_for_depth)
{
	acp_handle_t bad, last = 0;
	int i;

	CHECK(start() == 0);
	bad = acp_copy(at(2, 0), at(2, 20000), 8, ACP_HANDLE_NULL);
	acp_complete(bad);
	for (i = 1; i < DEPTH; i++)
		last = acp_copy(at(2, 0), at(0, 0), 8, ACP_HANDLE_NULL);
	acp_complete(last);
	CHECK(acpx_status(bad) == ACPX_ERANGE && acpx_status(last) == 0);
	acp_complete(acp_copy(at(2, 0), at(0, 0), 8, ACP_HANDLE_NULL));
	CHECK(acpx_status(bad) == ACPX_EUNKNOWN && acp_inquire(bad) == 0);
	CHECK(acp_finalize() == 0);
}

TEST(strerror__all)
{
	int i;

	CHECK(strcmp(acpx_strerror(0), "success") == 0);
	for (i = 1; i <= ACPX_ECHAIN; i++)
		CHECK(acpx_strerror(i) && strcmp(acpx_strerror(i), "unknown status") != 0);
	CHECK(strcmp(acpx_strerror(ACPX_ECHAIN + 1), "unknown status") == 0);
	CHECK(strcmp(acpx_strerror(-1), "unknown status") == 0);
	CHECK(strcmp(acpx_strerror(ACPX_EUNKNOWN), "unknown status") != 0);
	CHECK(strcmp(acpx_strerror(ACPX_EPENDING), "unknown status") != 0);
}

TEST(error_mode__values)
{
	CHECK(acpx_set_error_mode(ACPX_ERRORS_ABORT) >= 0);
	CHECK(acpx_set_error_mode(ACPX_ERRORS_RETURN) == ACPX_ERRORS_ABORT);
	CHECK(acpx_set_error_mode(2) == -1 && acpx_set_error_mode(-1) == -1);
	CHECK(acpx_set_error_mode(ACPX_ERRORS_RETURN) == ACPX_ERRORS_RETURN);
}

/* Run a child that is a rank. Returns its exit status, and its standard error. */
static int child(void (*body)(void), char *said, size_t room)
{
	int pipes[2], status = -1;
	size_t length = 0;
	ssize_t got;
	pid_t pid;

	fflush(stdout);
	if (pipe(pipes) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		test_limit(PATIENCE_SOON);
		dup2(pipes[1], 2);
		body();
		_exit(0);
	}
	close(pipes[1]);
	while ((got = read(pipes[0], said + length, room - 1 - length)) > 0)
		length += (size_t)got;
	said[length] = '\0';
	close(pipes[0]);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void fail_in_abort_mode(void)
{
	if (start() != 0)
		_exit(1);
	acpx_set_error_mode(ACPX_ERRORS_ABORT);
	acp_complete(acp_copy(at(2, 20000), at(0, 0), 8, ACP_HANDLE_NULL));
}

static void fail_unasked(void)
{
	if (start() != 0)
		_exit(1);
	acpx_set_error_mode(ACPX_ERRORS_ABORT);
	acp_add8(at(0, 0), at(2, 20000), 8, ACP_HANDLE_NULL);
	acp_finalize();
}

/* That a mailbox is full is no failure to die of. */
static void fail_behind_a_full_mailbox(void)
{
	struct acp_mailbox *box;

	if (start() != 0)
		_exit(1);
	box = acp_query_address(at(0, 64));
	box->units = 100;
	acpx_set_error_mode(ACPX_ERRORS_ABORT);
	acpx_send(at(0, 64), at(0, 0), 8, 0, 0, ACP_HANDLE_NULL);
	acp_complete(ACP_HANDLE_ALL);
	acp_add8(at(0, 0), at(2, 20000), 8, ACP_HANDLE_NULL);
	acp_finalize();
}

static void abort_job(void)
{
	if (start() != 0)
		_exit(1);
	acp_abort("out of luck");
}

static void see_abort(void)
{
	if (start() != 0)
		_exit(1);
	acpx_set_error_mode(ACPX_ERRORS_ABORT);
	fake_abort();
	acp_sync();
}

TEST(errors__end_the_job_by_default)
{
	char said[2000];

	CHECK(child(fail_in_abort_mode, said, sizeof(said)) == 255);
	CHECK(strstr(said, "acp: rank 0: acp_copy failed: reaches beyond"));
	CHECK(child(fail_unasked, said, sizeof(said)) == 255);
	CHECK(strstr(said, "acp: rank 0: acp_add8 failed: reaches beyond"));
	CHECK(child(fail_behind_a_full_mailbox, said, sizeof(said)) == 255);
	CHECK(strstr(said, "acp: rank 0: acp_add8 failed: reaches beyond"));
	CHECK(child(abort_job, said, sizeof(said)) == 255);
	CHECK(strstr(said, "acp_abort: rank 0: out of luck\n"));
	CHECK(child(see_abort, said, sizeof(said)) == 255);
	CHECK(strstr(said, "acp: rank 0: the job was aborted\n"));
}

/* Failures of the library itself, before, between and after which that of a program is found. */
static void fail_quietly(void)
{
	acp_handle_t bad;
	int i, round;

	if (start() != 0)
		_exit(1);
	acpx_set_error_mode(ACPX_ERRORS_ABORT);
	for (round = 0; round < 3; round++) {
		libacp_quiet(true);
		bad = acp_copy(at(2, 0), at(2, 20000), 8, ACP_HANDLE_NULL);
		if (round && libacp_finish(bad) != -EFAULT)
			_exit(2);
		if (libacp_quiet(false) != true)
			_exit(3);
		for (i = 0; i < 3 * DEPTH; i++)
			acp_copy(at(2, 0), at(0, 0), 8, ACP_HANDLE_NULL);
		acp_complete(ACP_HANDLE_ALL);
		if (acpx_status(bad) != ACPX_EUNKNOWN || libacp_ended(bad) != -EFAULT)
			_exit(4);
	}
	if (getenv("LOUD"))
		acp_copy(at(2, 0), at(2, 20000), 8, ACP_HANDLE_NULL);
	for (i = 0; i < 3 * DEPTH; i++)
		acp_copy(at(2, 0), at(0, 0), 8, ACP_HANDLE_NULL);
	acp_finalize();
}

TEST(errors__of_the_library_do_not)
{
	char said[2000];

	CHECK_EQ(child(fail_quietly, said, sizeof(said)), 0);
	setenv("LOUD", "1", 1);
	CHECK_EQ(child(fail_quietly, said, sizeof(said)), 255);
	CHECK(strstr(said, "acp: rank 0: a global memory access failed"));
}

/*
 * An access that continues a chain is not executed if a previous one failed, even if that is
 * complete.
 */
TEST(chain__broken)
{
	acp_handle_t bad, good;
	int wait;

	CHECK(start() == 0);
	*word(0, 0) = 7;
	libacp_quiet(true);
	for (wait = 0; wait < 2; wait++) {
		*word(2, 0) = 0;
		libacp_chain();
		fake_set_hold(!wait);
		bad = acp_copy(at(2, 0), at(2, 20000), 8, ACP_HANDLE_NULL);
		if (wait)
			CHECK_EQ(libacp_finish(bad), -EFAULT);
		good = acp_copy(at(2, 8), at(0, 0), 8, ACP_HANDLE_NULL);
		if (wait) {
			acp_complete(good);
			CHECK_EQ(acp_copy(at(2, 0), at(0, 0), 8, good), ACP_HANDLE_NULL);
			CHECK_EQ(acp_copy(at(1, 0), at(0, 0), 8, bad), ACP_HANDLE_NULL);
		}
		fake_set_hold(false);
		CHECK_EQ(*word(2, 0), 0);
		acp_complete(good);
		libacp_chain();
		good = acp_copy(at(2, 0), at(0, 0), 8, ACP_HANDLE_NULL);
		CHECK_EQ(libacp_finish(acp_copy(at(1, 0), at(2, 0), 8, good)), 0);
		CHECK_EQ(*word(1, 0), 7);
		*word(1, 0) = 0;
	}
	libacp_quiet(false);
	CHECK(acp_copy(at(2, 0), at(0, 0), 8, bad) != (acp_handle_t)ACP_HANDLE_NULL);
	CHECK(acp_finalize() == 0);
}

TEST(abort__returns_when_asked_to)
{
	acp_handle_t pending, after;

	CHECK(start() == 0);
	fake_set_hold(true);
	pending = acp_copy(at(2, 0), at(0, 0), 8, ACP_HANDLE_NULL);
	fake_abort();
	CHECK(acp_sync() == -1);
	acp_complete(pending);
	CHECK(acp_inquire(pending) == 0 && acpx_status(pending) == ACPX_EABORT);
	after = acp_copy(at(1, 0), at(0, 0), 8, ACP_HANDLE_NULL);
	CHECK(!is_local(after) && acpx_status(after) == ACPX_EABORT);
	CHECK(acp_finalize() == -1 && acp_rank() == -1);
	CHECK(start() == 0 && acp_finalize() == 0);
}

/* ---- Processes and threads ---- */

static void child_of_rank(void)
{
	if (acp_rank() != -1 || acp_sync() != -1 || acp_finalize() != -1)
		_exit(1);
	if (acp_copy(1, 2, 3, ACP_HANDLE_NULL) || acp_query_starter_ga(0))
		_exit(2);
	if (acp_register_memory(child_of_rank, 1, 0) || acp_reset(0) != -1)
		_exit(3);
	acp_complete((acp_handle_t)ACP_HANDLE_ALL);
	if (acp_inquire(4) || acpx_status(4) != ACPX_EABORT || acp_init(NULL, NULL) != -1)
		_exit(4);
}

TEST(fork__child_is_nobody)
{
	char said[2000];
	acp_handle_t handle;

	CHECK(start() == 0);
	handle = acp_copy(at(2, 0), at(0, 0), 8, ACP_HANDLE_NULL);
	CHECK(child(child_of_rank, said, sizeof(said)) == 0);
	acp_complete(handle);
	CHECK(acpx_status(handle) == 0 && acp_sync() == 0);
	CHECK(acp_finalize() == 0);
}

struct worker {
	pthread_t thread;
	size_t former;			/* destination of previous values */
	bool good;
};

static void *storm(void *arg)
{
	struct worker *w = arg;
	acp_handle_t handle = 0;
	int i, status;

	w->good = true;
	for (i = 0; i < ROUNDS && w->good; i++) {
		handle = acp_add8(at(0, w->former), at(2 + i % 2, 0), 1, i % 3 ? 0 : handle);
		acp_add8(at(0, w->former + 8), at(1, 0), 1, ACP_HANDLE_NULL);
		w->good = handle > 0;
		if (i % 16)
			continue;
		acp_complete(handle);
		status = acpx_status(handle);	/* other threads may have refilled the ring */
		w->good = w->good && acp_inquire(handle) == 0 &&
			  (status == 0 || status == ACPX_EUNKNOWN);
	}
	acp_complete(handle);
	return NULL;
}

static void *registrar(void *arg)
{
	static char memory[4 * FAKE_PAGE] __attribute__((aligned(FAKE_PAGE)));
	struct worker *w = arg;
	acp_atkey_t key;
	int i;

	w->good = true;
	for (i = 0; i < ROUNDS && w->good; i++) {
		key = acp_register_memory(memory + i % 100, FAKE_PAGE, 0);
		w->good = key && acp_query_ga(key, memory + i % 100) && !acp_unregister_memory(key);
	}
	return NULL;
}

TEST(threads__storm)
{
	struct worker workers[THREADS + 2];
	int i;

	CHECK(start() == 0);
	for (i = 0; i < THREADS + 2; i++) {
		workers[i].former = 64 + 16 * (size_t)i;
		pthread_create(&workers[i].thread, NULL, i < THREADS ? storm : registrar,
			       &workers[i]);
	}
	for (i = 0; i < THREADS + 2; i++)
		pthread_join(workers[i].thread, NULL);
	for (i = 0; i < THREADS + 2; i++)
		CHECK(workers[i].good);
	acp_complete((acp_handle_t)ACP_HANDLE_ALL);
	CHECK(*word(2, 0) + *word(3, 0) == THREADS * ROUNDS && *word(1, 0) == THREADS * ROUNDS);
	CHECK(acp_finalize() == 0);
}

TEST_MAIN
