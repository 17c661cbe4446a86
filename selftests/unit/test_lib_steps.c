// SPDX-License-Identifier: MIT
/*
 * Number of instructions of an access that the calling thread executes: counted by single-stepping
 * in a parent that traces the rank. Built like the library.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "acp.h"
#include "test.h"
#include "test_lib_device.h"

#define MAX_OWN	150	/* a copy of 8 bytes within the process */
#define MAX_NEIGHBOUR	250	/* ... from the starter memory of a rank on the node */
#define MAX_MESSAGE	600	/* 8 bytes into a mailbox on the node */
#define MAX_HEAP	1000	/* an allocation or free in a heap on the node */
#define HEAP_CALLS	12

static char memory[2 * FAKE_PAGE] __attribute__((aligned(FAKE_PAGE)));

static void mark(void)
{
	raise(SIGUSR1);
}

/* Different cases of allocations and frees, each between two markers. */
static void use_heaps(void)
{
	acp_ga_t ga[HEAP_CALLS / 2];
	int i, rank;

	/* Initialize the heap of the neighbour, which does not run: a copy of the own empty one. */
	memcpy(acp_query_address(acpx_query_heap_ga(1)), acp_query_address(acpx_query_heap_ga(0)),
	       acpx_heap_size());
	for (rank = 0; rank < 2; rank++) {
		acp_free(acp_malloc(8, rank));
		for (i = 0; i < HEAP_CALLS / 2; i++) {
			mark();
			ga[i] = acp_malloc(100 * (size_t)i, rank);
			mark();
			if (ga[i] == ACP_GA_NULL)
				_exit(1);
		}
		/* Isolated; after a free area; before one; between two; ... */
		for (i = 0; i < HEAP_CALLS / 2; i++) {
			mark();
			acp_free(ga[(i * 5 + 1) % (HEAP_CALLS / 2)]);
			mark();
		}
	}
}

/* Between markers: nothing, a local copy, a copy from a neighbour, a message. */
static void rank(void)
{
	acp_ga_t own, other;
	acpx_mailbox_t box;

	setenv("ACP_RANK", "0", 1);
	setenv("ACP_NPROCS", "4", 1);
	setenv("ACP_NODES", "10.0.0.1 10.0.0.2", 1);
	setenv("ACP_INSECURE", "1", 1);
	if (acp_init(NULL, NULL) < 0)
		_exit(1);
	own = acp_query_ga(acp_register_memory(memory, sizeof(memory), 0), memory);
	other = acp_query_starter_ga(1);
	acp_copy(own, other, 8, ACP_HANDLE_NULL);
	mark();
	mark();
	mark();
	acp_copy(own, own + FAKE_PAGE, 8, ACP_HANDLE_NULL);
	mark();
	mark();
	acp_copy(own, other, 8, ACP_HANDLE_NULL);
	mark();
	if (acpx_mailbox_create(4096, 0, &box) < 0 ||
	    !(acpx_send(acpx_mailbox_ga(box), own, 8, 1, 0, ACP_HANDLE_NULL) & 1))
		_exit(1);
	mark();
	acpx_send(acpx_mailbox_ga(box), own, 8, 1, 0, ACP_HANDLE_NULL);
	mark();
	acpx_mailbox_free(box);
	use_heaps();
}

/* Return the number of instructions until the next marker; -1 if the rank ended. */
static long count_steps(pid_t pid)
{
	long steps = 0;
	int status;

	do {
		if (ptrace(PTRACE_SINGLESTEP, pid, 0, 0) < 0 || waitpid(pid, &status, 0) < 0 ||
		    !WIFSTOPPED(status))
			return -1;
		steps++;
	} while (WSTOPSIG(status) != SIGUSR1);
	return steps;
}

static bool run_to_mark(pid_t pid)
{
	int status, signal = 0;

	for (;;) {
		if (waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status))
			return false;
		if (WSTOPSIG(status) == SIGUSR1)
			return true;
		signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
		ptrace(PTRACE_CONT, pid, 0, signal);
	}
}

/* Return the maximum of several measurements, and their sum. */
static long count_max(pid_t pid, int calls, long nothing, long *sum)
{
	long most = 0, steps;

	for (*sum = 0; calls--; *sum += steps) {
		if (count_steps(pid) < 0)
			return -1;
		steps = count_steps(pid) - nothing;
		most = steps > most ? steps : most;
	}
	return most;
}

TEST(copy__instructions)
{
	long nothing, own, neighbour, message, allocate[2], release[2], sum[4];
	pid_t pid = fork();

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
			_exit(2);
		rank();
		_exit(0);
	}
	if (!run_to_mark(pid))
		SKIP("ptrace is not allowed here");
	nothing = count_steps(pid);
	count_steps(pid);
	own = count_steps(pid) - nothing;
	count_steps(pid);
	neighbour = count_steps(pid) - nothing;
	count_steps(pid);
	message = count_steps(pid) - nothing;
	for (int i = 0; i < 2; i++) {
		allocate[i] = count_max(pid, HEAP_CALLS / 2, nothing, &sum[i]);
		release[i] = count_max(pid, HEAP_CALLS / 2, nothing, &sum[i + 2]);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	printf("# 8 bytes: own %ld, neighbour %ld, message %ld instructions\n", own, neighbour,
	       message);
	printf("# own heap: acp_malloc at most %ld, mean %ld; acp_free %ld, %ld\n", allocate[0],
	       sum[0] * 2 / HEAP_CALLS, release[0], sum[2] * 2 / HEAP_CALLS);
	printf("# neighbour's: acp_malloc %ld, %ld; acp_free %ld, %ld\n", allocate[1],
	       sum[1] * 2 / HEAP_CALLS, release[1], sum[3] * 2 / HEAP_CALLS);
	CHECK(nothing > 0 && own > 0 && own <= MAX_OWN);
	CHECK(neighbour > 0 && neighbour <= MAX_NEIGHBOUR);
	CHECK(message > 0 && message <= MAX_MESSAGE);
	CHECK(allocate[0] > 0 && allocate[0] <= MAX_HEAP);
	CHECK(allocate[1] > 0 && allocate[1] <= MAX_HEAP);
	CHECK(release[0] > 0 && release[0] <= MAX_HEAP);
	CHECK(release[1] > 0 && release[1] <= MAX_HEAP);
}

TEST_MAIN
