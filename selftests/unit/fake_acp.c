// SPDX-License-Identifier: MIT
/*
 * The fake basic layer: ranks are forked processes; how they begin, synchronize and end. Their
 * memory is in fake_mem.c, their accesses in fake_gma.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <time.h>

#include "fake_rank.h"
#include "heap/heap.h"
#include "middle/scratch.h"
#include "middle/txlock.h"
#include "test.h"

#define STARTER_SIZE	65536
#define HEAP_SIZE	(1u << 20)
#define LOOK_US		50

#pragma weak libacp_txlock_times

struct fake_shared *fake_shared;
int fake_rank = -1;
static int error_mode;

/* Tests of the basic layer alone do not link this function. */
__attribute__((weak)) void libacp_txlock_open(void)
{
}

__attribute__((weak)) int libacp_heap_open(void)
{
	return 0;
}

__attribute__((weak)) void libacp_scratch_close(void)
{
}

static struct fake_member *self(void)
{
	return &fake_shared->members[fake_rank];
}

/* ---- Queries ---- */

bool libacp_in(void)
{
	return fake_rank >= 0;
}

int acp_rank(void)
{
	return fake_rank;
}

int acp_procs(void)
{
	return libacp_in() ? fake_shared->ranks : -1;
}

int acp_colors(void)
{
	return libacp_in() ? fake_shared->colors : -1;
}

int acpx_query_node(int rank)
{
	return libacp_in() && rank >= 0 && rank < fake_shared->ranks ? rank % fake_shared->nodes
								     : -1;
}

int acpx_set_error_mode(int mode)
{
	if (mode != ACPX_ERRORS_ABORT && mode != ACPX_ERRORS_RETURN)
		return -1;
	return __atomic_exchange_n(&error_mode, mode, __ATOMIC_RELAXED);
}

bool fake_errors_abort(void)
{
	return __atomic_load_n(&error_mode, __ATOMIC_RELAXED) == ACPX_ERRORS_ABORT;
}

/* ---- States of ranks ---- */

bool fake_is_dead(int rank)
{
	return __atomic_load_n(&fake_shared->members[rank].dead, __ATOMIC_ACQUIRE);
}

bool fake_is_cut(int a, int b)
{
	const struct fake_shared *s = fake_shared;

	a %= s->nodes;
	b %= s->nodes;
	return a != b && (__atomic_load_n(&s->cut[a], __ATOMIC_ACQUIRE) == 1 ||
			  __atomic_load_n(&s->cut[b], __ATOMIC_ACQUIRE) == 1);
}

int acpx_peer_state(int rank)
{
	const struct fake_shared *s = fake_shared;
	int state;

	if (!libacp_in() || rank < 0 || rank >= s->ranks)
		return -1;
	fake_pause(0);
	state = __atomic_load_n(&s->members[rank].state, __ATOMIC_ACQUIRE);
	if (state >= 0)
		return state;
	if (fake_is_dead(rank) || fake_is_cut(fake_rank, rank))
		return ACPX_PEER_DOWN;
	if (rank % s->nodes != fake_rank % s->nodes &&
	    (s->cut[rank % s->nodes] || s->cut[fake_rank % s->nodes]))
		return ACPX_PEER_BACK;
	return ACPX_PEER_UP;
}

void fake_set_state(int rank, int state)
{
	__atomic_store_n(&fake_shared->members[rank].state, state, __ATOMIC_RELEASE);
}

/* 1: disconnected, 2: was disconnected. */
void fake_cut(int rank, bool cut)
{
	__atomic_store_n(&fake_shared->cut[rank % fake_shared->nodes], cut ? 1 : 2,
			 __ATOMIC_RELEASE);
}

int acpx_event_fd(void)
{
	return -1;
}

int acpx_next_event(struct acpx_event *event)
{
	return libacp_in() && event ? 0 : -1;
}

static uint64_t count_of(int rank, size_t counter)
{
	const void *word = (char *)&fake_shared->members[rank] + counter;

	return __atomic_load_n((const uint64_t *)word, __ATOMIC_ACQUIRE);
}

/* Wait until all ranks reach the same count. False if one of them never will. */
static bool rendezvous(size_t counter, bool with_the_dead)
{
	uint64_t *own = (uint64_t *)(void *)((char *)self() + counter), number = *own + 1;
	int r;

	__atomic_store_n(own, number, __ATOMIC_RELEASE);
	for (r = 0; r < fake_shared->ranks; r++) {
		while (count_of(r, counter) < number) {
			/* It may have come since it was looked at, and have died then. */
			if (fake_is_dead(r) && count_of(r, counter) < number) {
				if (with_the_dead)
					return false;
				break;
			}
			if (fake_in_turns())
				fake_pause(LOOK_US * 1000);
			else
				usleep(LOOK_US);
		}
	}
	return true;
}

int acp_sync(void)
{
	if (!libacp_in())
		return -1;
	return rendezvous(offsetof(struct fake_member, syncs), true) ? 0 : -1;
}

/* ---- Begin and end of ranks ---- */

int acp_init(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return -1;	/* ranks begin in fake_run() */
}

int acp_finalize(void)
{
	if (!libacp_in())
		return -1;
	acp_complete(ACP_HANDLE_ALL);
	rendezvous(offsetof(struct fake_member, ends), false);
	libacp_scratch_close();
	return 0;
}

int acp_reset(int rank)
{
	(void)rank;
	return -1;
}

void acp_abort(const char *str)
{
	FAIL("rank %d: acp_abort: %s", fake_rank, str ? str : "");
}

void libacp_error(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "# rank %d: ", fake_rank);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
}

uint64_t fake_clock(void)
{
	struct timespec t;

	if (fake_in_turns())
		return fake_shared->turns.now;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return ((uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec) * fake_shared->speed;
}

uint64_t fake_timeout_ms = 10000;

uint64_t libacp_timeout_ms(void)
{
	return fake_timeout_ms;
}

/* The clock does not advance while accesses of a dead rank that were due earlier are executed. */
uint64_t libacp_now(void)
{
	fake_pause(0);
	while (__atomic_load_n(&fake_shared->haunting, __ATOMIC_SEQ_CST))
		sched_yield();
	return fake_clock();
}

void libacp_sleep(uint64_t ns)
{
	struct timespec t;

	if (fake_in_turns()) {
		fake_pause(ns);
		return;
	}
	ns /= fake_shared->speed;
	t = (struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
	nanosleep(&t, NULL);
}

uint64_t *fake_word(unsigned int number)
{
	if (number >= FAKE_WORDS)
		abort();
	return &fake_shared->words[number];
}

void fake_kill(int rank)
{
	__atomic_store_n(&fake_shared->members[rank].condemned, true, __ATOMIC_RELEASE);
	kill(fake_shared->members[rank].pid, SIGKILL);
	while (!fake_is_dead(rank))
		usleep(LOOK_US);
}

static void __attribute__((noreturn)) run_rank(const struct fake_acp *f, int rank,
					       void (*function)(void *), void *arg)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	test_limit(2 * PATIENCE_WORK);
	fake_rank = rank;
	fake_turns_enter();
	fake_mem_open();
	error_mode = f->errors_return ? ACPX_ERRORS_RETURN : ACPX_ERRORS_ABORT;
	fake_gma_open(f->seed + 1000003 * (uint64_t)rank);
	libacp_txlock_open();
	if (libacp_heap_open() < 0)
		FAIL("rank %d: libacp_heap_open", rank);
	/* Increase the timeouts, so that a slow machine does not make living ranks appear dead. */
	if (&libacp_txlock_times) {
		libacp_txlock_times.forsaken *= f->speed;
		libacp_txlock_times.patience *= f->speed;
	}
	rendezvous(offsetof(struct fake_member, begins), false);
	if (f->die[rank])
		fake_die_at(f->die[rank]);
	function(arg);
	acp_finalize();
	fake_gma_close();
	fake_mem_close();
	fake_turns_leave();
	exit(0);
}

static void create_shared(const struct fake_acp *f)
{
	struct fake_shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED |
				     MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int r;

	if (s == MAP_FAILED)
		abort();
	s->ranks = f->ranks;
	s->nodes = f->nodes;
	s->colors = f->colors;
	s->speed = f->speed;
	s->delay_us = f->delay_us;
	s->starter_size = f->starter_size;
	s->layout = acp_ga_layout((uint32_t)f->ranks);
	for (r = 0; r < f->ranks; r++) {
		s->members[r].state = -1;
		s->members[r].heap_size = f->heap_sizes[r] ? f->heap_sizes[r] : f->heap_size;
	}
	fake_shared = s;
	if (f->turns)
		fake_turns_create(f->seed);
	fake_mem_create();
}

static void destroy_shared(void)
{
	fake_mem_destroy();
	munmap(fake_shared, sizeof(*fake_shared));
	fake_shared = NULL;
}

static void set_defaults(struct fake_acp *f)
{
	const char *text = getenv("ACP_TEST_SEED");

	f->ranks = f->ranks ? f->ranks : 1;
	f->nodes = f->nodes ? f->nodes : f->ranks;
	f->colors = f->colors ? f->colors : 1;
	f->starter_size = f->starter_size ? f->starter_size : STARTER_SIZE;
	f->heap_size = f->heap_size ? f->heap_size : HEAP_SIZE;
	f->speed = f->speed ? f->speed : 1;
	if (!f->seed && text)
		f->seed = strtoull(text, NULL, 0);
	else if (!f->seed)
		f->seed = (uint64_t)time(NULL) * 1000 + (uint64_t)getpid() % 1000;
	f->dead = 0;
	if (f->ranks > FAKE_RANKS)
		abort();
}

/* A rank has ended: return whether that was expected. */
static bool buried(struct fake_acp *f, int rank, int status)
{
	struct fake_member *m = &fake_shared->members[rank];

	f->status[rank] = status;
	if (!status)
		return true;
	__atomic_store_n(&m->dead, true, __ATOMIC_RELEASE);
	f->dead++;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && m->condemned)
		return true;
	if (f->may_fail && WIFEXITED(status) && !test_state.end->failed)
		return true;
	printf("# seed %llu\n", (unsigned long long)f->seed);
	for (int r = 0; r < f->ranks; r++)
		if (!f->status[r] && fake_shared->members[r].pid)
			kill(fake_shared->members[r].pid, SIGKILL);
	FAIL("rank %d ended with status 0x%x, seed %llu", rank, status,
	     (unsigned long long)f->seed);
	return false;
}

void fake_run(struct fake_acp *f, void (*rank)(void *arg), void *arg)
{
	int r, left, status;
	pid_t pid;

	set_defaults(f);
	create_shared(f);
	fflush(NULL);
	for (r = 0; r < f->ranks; r++) {
		f->status[r] = 0;
		pid = fork();
		if (pid == 0)
			run_rank(f, r, rank, arg);
		if (pid < 0)
			abort();
		fake_shared->members[r].pid = pid;
	}
	for (left = f->ranks; left; left--) {
		pid = wait(&status);
		for (r = 0; r < f->ranks && fake_shared->members[r].pid != pid; r++)
			;
		if (r == f->ranks) {
			left++;
			continue;
		}
		fake_shared->members[r].pid = 0;
		buried(f, r, status);
	}
	while (__atomic_load_n(&fake_shared->ghosts, __ATOMIC_ACQUIRE))
		usleep(LOOK_US);
	f->trace = fake_shared->turns.trace;
	destroy_shared();
}
