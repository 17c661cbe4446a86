// SPDX-License-Identifier: MIT
/*
 * Global memory access: handles, submission, completion.
 *
 * A handle is ticket * 2 + local.  local = 1 says that the calling thread
 * did the access before it returned; the ticket is then the newest that had
 * been given out, for completion is in order.
 *
 * A thread uses one lane (context.c): the process's, whose lock it takes to
 * submit, or one of its own.  The number of the lane is in the ticket.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <time.h>
#if __has_include("sys/single_threaded.h")
#include <sys/single_threaded.h>
#define IS_ALONE	__libc_single_threaded
#else
#define IS_ALONE	0
#endif

#include "libacp.h"
#include "middle.h"

#define SPIN_NS		1000000		/* time before sleeping on a completion or a full ring */
#define ROOM_ALONE_NS	50000		/* ... on a ring, when the kernel has only our CPU */
#define LOOKS		64		/* looks between two looks at the clock */
#define REST_MOST	15		/* waits without a look, after some that were in vain */
#define REST_CROWDED	1023		/* ... when others need the only processor */
#define CROWDED_NS	3000000		/* what only a program that computes takes it for */

/*
 * Failures that nobody was told of end the job, unless the library deals with
 * them itself (libacp_quiet).  What is quiet goes by the process's lane.
 */
static uint8_t *quiet_marks;	/* of the ticket in each slot there; by who submits */

/* Quiet failures whose slots were taken: an answer to the library is never "unknown". */
#define LOST_MOST	1024u
static struct lost {
	uint64_t ticket;
	int status;
} lost[LOST_MOST];
static uint64_t lost_count;
static _Thread_local bool quiet_now LIBACP_QUICK;
static _Thread_local uint64_t chain_since LIBACP_QUICK;	/* the newest when the chain began */

int libacp_gma_open(void)
{
	quiet_marks = calloc(libacp_main.queue.depth, sizeof(*quiet_marks));
	if (!quiet_marks)
		return -ENOMEM;
	lost_count = 0;
	return 0;
}

void libacp_gma_close(void)
{
	free(quiet_marks);
	quiet_marks = NULL;
}

/* ---- Handles ---- */

static acp_handle_t make_handle(uint64_t ticket, bool local)
{
	return (acp_handle_t)(ticket << 1 | local);
}

/* The lane that a handle is of; what is no handle is of the one that is asked about it. */
static uint32_t handle_lane(const struct libacp_lane *lane, acp_handle_t handle)
{
	return handle > 0 ? (uint32_t)(handle >> (ACP_TICKET_BITS + 1)) : lane->number;
}

/*
 * The ticket of this lane that a handle waits for: 0, which is always complete,
 * for what is no handle or was never issued.
 */
static uint64_t handle_ticket(const struct libacp_lane *lane, acp_handle_t handle)
{
	uint64_t newest = libacp_queue_newest(&lane->queue);
	uint64_t ticket = (uint64_t)handle >> 1;

	if (handle == (acp_handle_t)ACP_HANDLE_ALL || handle == (acp_handle_t)ACP_HANDLE_CONT)
		return newest;
	return ticket <= newest ? ticket : 0;
}

/* ---- Issuing ---- */

static uint64_t time_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t libacp_now(void)
{
	return time_of(CLOCK_MONOTONIC);
}

/* Sleep until a ticket is complete: 0 or -errno. */
static int sleep_for(const struct libacp_lane *lane, uint64_t ticket)
{
	struct acp_wait wait = {
		.size = sizeof(wait), .ticket = ticket, .timeout_ns = UINT64_MAX,
	};

	while (ioctl(lane->fd, ACP_IOC_WAIT, &wait) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* Look for room while the kernel works on the ring; false after some time. */
static bool spin_for_room(const struct libacp_queue *q)
{
	uint64_t end = libacp_now() + (libacp.spin ? SPIN_NS : ROOM_ALONE_NS);
	unsigned int looks = 0;

	while (!libacp_queue_asleep(q)) {
		if (libacp_queue_room(q, libacp_queue_completed(q)))
			return true;
		if (++looks % LOOKS == 0 && libacp_now() > end)
			return false;
		libacp_pause();
	}
	return false;
}

/*
 * Wait until the ring has room, as who submits; returns what was complete
 * then, or 0 if there will never be room.  After a sleep a quarter of the
 * ring is free, so that the sleeps of a busy queue are few.
 */
static uint64_t __attribute__((noinline)) wait_for_room(const struct libacp_lane *lane)
{
	const struct libacp_queue *q = &lane->queue;
	uint64_t completed = libacp_queue_completed(q);

	while (!libacp_queue_room(q, completed)) {
		if (!spin_for_room(q) &&
		    sleep_for(lane, libacp_queue_newest(q) - q->depth + q->depth / 4) < 0)
			return 0;
		completed = libacp_queue_completed(q);
	}
	return completed;
}

/* The same; mostly there is some. */
static inline uint64_t find_room(const struct libacp_lane *lane)
{
	uint64_t completed = libacp_queue_completed(&lane->queue);

	return libacp_queue_room(&lane->queue, completed) ? completed : wait_for_room(lane);
}

/* Translate the order condition, as who submits. */
static void set_order(const struct libacp_lane *lane, struct acp_sqe *entry, acp_handle_t order)
{
	entry->order = handle_ticket(lane, order);
	if (entry->order <= entry->seen) {
		entry->order = 0;	/* met already */
		return;
	}
	/* CONT continues the previous GMA; if the caller did that one, it is like ALL. */
	if (order == (acp_handle_t)ACP_HANDLE_CONT &&
	    !__atomic_load_n(&lane->last_was_local, __ATOMIC_RELAXED))
		entry->flags = ACP_SQE_CONT;
}

/* Has anything failed in the chain that an access continues?  Given what was complete then. */
static bool chain_broken(const struct libacp_lane *lane, acp_handle_t order, uint64_t completed)
{
	uint64_t ticket, last;

	if (!quiet_now || order == (acp_handle_t)ACP_HANDLE_NULL)
		return false;
	last = handle_ticket(lane, order);
	last = last < completed ? last : completed;
	for (ticket = chain_since; ticket < last;)
		if (libacp_queue_status(&lane->queue, ++ticket))
			return true;
	return false;
}

/* Several threads submit to the process's lane, one to each of the others. */
static bool is_shared(const struct libacp_lane *lane)
{
	return lane == &libacp_main;
}

/*
 * True: it was locked.  A process with one thread now still has one at the end: this does not
 * start any, and what it calls does not.
 */
static bool begin_submit(struct libacp_lane *lane)
{
	if (!is_shared(lane) || IS_ALONE)
		return false;
	pthread_mutex_lock(&lane->lock);
	return true;
}

static void end_submit(struct libacp_lane *lane, bool locked)
{
	if (locked)
		pthread_mutex_unlock(&lane->lock);
}

/* The status of a failure is lost with its slot; nobody judges meanwhile. */
static void __attribute__((noinline)) lose_status(struct libacp_lane *lane, uint64_t former,
						  int status)
{
	bool quiet = is_shared(lane) && quiet_marks[former & lane->queue.mask];

	if (!is_shared(lane))
		pthread_mutex_lock(&lane->lock);
	if (former > lane->judged) {
		lane->failures_gone++;
		lane->loud_gone = lane->loud_gone || !quiet;
		/* Of those before it each was lost, too; this one is still there to be judged. */
		lane->judged = former;
	}
	if (quiet)
		lost[lost_count++ % LOST_MOST] = (struct lost){ former, status };
	if (!is_shared(lane))
		pthread_mutex_unlock(&lane->lock);
}

/* The next ticket takes a slot, as who submits. */
static void take_slot(struct libacp_lane *lane)
{
	const struct libacp_queue *q = &lane->queue;
	uint64_t ticket = libacp_queue_newest(q) + 1, former = ticket - q->depth;
	int status = ticket - q->first > q->depth ? libacp_queue_status(q, former) : 0;

	if (status > 0)
		lose_status(lane, former, status);
	if (is_shared(lane))
		quiet_marks[ticket & q->mask] = quiet_now;
}

/* The shortest system call that does it; a module that does not know it takes the ioctl. */
static void ring_doorbell(const struct libacp_lane *lane)
{
	if (syscall(SYS_fdatasync, lane->fd) < 0)
		ioctl(lane->fd, ACP_IOC_DOORBELL);
}

/* ---- Handles of other lanes ---- */

static int wait_for(const struct libacp_lane *lane, uint64_t ticket);

static bool is_elsewhere(const struct libacp_lane *lane, acp_handle_t handle)
{
	return handle_lane(lane, handle) != lane->number;
}

static bool reached_elsewhere(acp_handle_t handle)
{
	struct libacp_lane *other = libacp_lane_hold(handle_lane(&libacp_main, handle));
	bool reached;

	if (!other)
		return true;		/* gone: all of it is complete */
	reached = handle_ticket(other, handle) <= libacp_queue_completed(&other->queue);
	libacp_lane_release(other);
	return reached;
}

/*
 * The kernel knows no order between queues: wait here.  False if anything that the
 * caller's access has to come after failed meanwhile.
 */
static bool __attribute__((noinline)) came_before(acp_handle_t order)
{
	struct libacp_lane *other = libacp_lane_hold(handle_lane(&libacp_main, order));
	uint64_t ticket, seen;
	bool good;

	if (!other)
		return true;
	ticket = handle_ticket(other, order);
	seen = libacp_queue_completed(&other->queue);
	good = wait_for(other, ticket) == 0;
	while (good && seen < ticket)
		good = libacp_queue_status(&other->queue, ++seen) <= 0;
	libacp_lane_release(other);
	return good;
}

static acp_handle_t submit(struct acp_sqe *entry, acp_handle_t order)
{
	struct libacp_lane *lane = libacp_lane_now();
	uint64_t ticket = 0;
	bool locked;

	if (is_elsewhere(lane, order) && !came_before(order))
		return ACP_HANDLE_NULL;
	locked = begin_submit(lane);
	entry->seen = find_room(lane);
	if (entry->seen && !chain_broken(lane, order, entry->seen)) {
		set_order(lane, entry, order);
		take_slot(lane);
		ticket = libacp_queue_push(&lane->queue, entry);
		__atomic_store_n(&lane->last_was_local, false, __ATOMIC_RELAXED);
	}
	end_submit(lane, locked);
	if (!ticket)
		return ACP_HANDLE_NULL;
	if (libacp_queue_must_ring(&lane->queue))
		ring_doorbell(lane);
	return make_handle(ticket, false);
}

/* Has it ended because of what it waited for?  Asked before each push, "no" after depth of them. */
static bool was_refused(const struct libacp_lane *lane, uint64_t ticket, uint64_t completed)
{
	return ticket && ticket <= completed &&
	       libacp_queue_status(&lane->queue, ticket) == ACP_ST_ORDER;
}

/*
 * As set_order(), for one that is not the first: it waits for what the first one does, or for the
 * one before, whose failure alone counts then.
 */
static void set_turn(struct acp_sqe *entry, const struct acp_sqe *first, uint64_t former)
{
	bool behind = entry->order == LIBACP_BEHIND;

	entry->order = behind ? former : first->order;
	entry->seen = behind ? former - 1 : first->seen;
}

/*
 * Where they are more than the ring has places, the kernel may have forgotten how what they wait
 * for ended: the first one has not.
 */
acp_handle_t libacp_submit(size_t n, libacp_next_t *next, void *state, acp_handle_t order)
{
	struct libacp_lane *lane = libacp_lane_now();
	uint64_t ticket = 0, head = 0, room;
	struct acp_sqe first = { 0 };
	bool refused = false, locked;
	size_t i;

	if (is_elsewhere(lane, order) && !came_before(order))
		return ACP_HANDLE_NULL;
	locked = begin_submit(lane);
	for (i = 0; i < n; i++) {
		struct acp_sqe e = { 0 };

		next(&e, state);
		room = find_room(lane);
		if (!room || (!i && chain_broken(lane, order, room)))
			break;
		refused = refused || was_refused(lane, head, room);
		if (refused)	/* then it copies nothing, and ends as the first one */
			e = (struct acp_sqe){
				.op = ACP_OP_COPY, .dst = libacp_own_nothing(),
				.src = libacp_own_nothing(), .order = e.order,
			};
		if (!i) {
			e.seen = room;
			set_order(lane, &e, order);
			first = e;
		} else {
			set_turn(&e, &first, ticket);
		}
		if (i < n - 1)
			e.flags |= ACP_SQE_MORE;
		take_slot(lane);
		ticket = libacp_queue_push(&lane->queue, &e);
		head = head ? head : ticket;
	}
	__atomic_store_n(&lane->last_was_local, false, __ATOMIC_RELAXED);
	end_submit(lane, locked);
	if (i && libacp_queue_must_ring(&lane->queue))
		ring_doorbell(lane);
	return i == n ? make_handle(ticket, false) : (acp_handle_t)ACP_HANDLE_NULL;
}

static bool __attribute__((noinline)) may_start_behind(const struct libacp_lane *lane,
						       acp_handle_t order)
{
	if (is_elsewhere(lane, order))
		return reached_elsewhere(order);
	return handle_ticket(lane, order) <= libacp_queue_completed(&lane->queue) &&
	       !chain_broken(lane, order, UINT64_MAX);
}

/* May an access with this order start now, in the calling thread?  A closed lane looks aborted. */
static bool may_start(const struct libacp_lane *lane, acp_handle_t order)
{
	if (libacp_queue_aborted(&lane->queue))
		return false;		/* the kernel fails it */
	return order == (acp_handle_t)ACP_HANDLE_NULL || may_start_behind(lane, order);
}

static acp_handle_t done_in(struct libacp_lane *lane)
{
	if (!__atomic_load_n(&lane->last_was_local, __ATOMIC_RELAXED))
		__atomic_store_n(&lane->last_was_local, true, __ATOMIC_RELAXED);
	return make_handle(libacp_queue_newest(&lane->queue), true);
}

acp_handle_t libacp_submit_one(struct acp_sqe *entry, acp_handle_t order)
{
	return submit(entry, order);
}

bool libacp_may_start(acp_handle_t order)
{
	return may_start(libacp_lane, order);
}

acp_handle_t libacp_done_locally(void)
{
	return done_in(libacp_lane);
}

static acp_handle_t __attribute__((noinline)) copy(acp_ga_t dst, acp_ga_t src, size_t size,
						   acp_handle_t order)
{
	struct libacp_lane *lane = libacp_lane;

	if (!libacp_in())
		return ACP_HANDLE_NULL;
	if (may_start(lane, order) && libacp_local_copy(dst, src, size))
		return done_in(lane);
	return submit(&(struct acp_sqe){
		.op = ACP_OP_COPY, .dst = dst, .src = src, .size = size,
	}, order);
}

/* A word was copied to where somebody may sleep until it changes. */
static acp_handle_t __attribute__((noinline)) copied_word(acp_ga_t dst, const void *to)
{
	libacp_watch_wake(libacp.watch, dst, to, sizeof(uint64_t));
	return done_in(libacp_lane);
}

/*
 * A word within own memory takes as long as what is around it, so there is little: all calls
 * of others are at an end, so that nothing has to be kept over them.
 */
acp_handle_t acp_copy(acp_ga_t dst, acp_ga_t src, size_t size, acp_handle_t order)
{
	struct libacp_lane *lane = libacp_lane;
	char *to;

	if (size != sizeof(uint64_t) || order != (acp_handle_t)ACP_HANDLE_NULL || !libacp_in() ||
	    libacp_queue_aborted(&lane->queue) || !libacp_local_copy_word(dst, src, &to))
		return copy(dst, src, size, order);
	if (libacp_watch_armed(libacp.watch))
		return copied_word(dst, to);
	return done_in(lane);
}

static acp_handle_t atomic(enum acp_op op, acp_ga_t dst, acp_ga_t src, uint64_t a, uint64_t b,
			   acp_handle_t order)
{
	struct libacp_lane *lane = libacp_lane;

	if (!libacp_in())
		return ACP_HANDLE_NULL;
	if (may_start(lane, order) && libacp_local_atomic(op, dst, src, a, b))
		return done_in(lane);
	return submit(&(struct acp_sqe){
		.op = (uint8_t)op, .dst = dst, .src = src, .a = a, .b = b,
	}, order);
}

acp_handle_t acp_cas4(acp_ga_t dst, acp_ga_t src, uint32_t oldval, uint32_t newval,
		      acp_handle_t order)
{
	return atomic(ACP_OP_CAS4, dst, src, oldval, newval, order);
}

acp_handle_t acp_cas8(acp_ga_t dst, acp_ga_t src, uint64_t oldval, uint64_t newval,
		      acp_handle_t order)
{
	return atomic(ACP_OP_CAS8, dst, src, oldval, newval, order);
}

acp_handle_t acp_swap4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order)
{
	return atomic(ACP_OP_SWAP4, dst, src, value, 0, order);
}

acp_handle_t acp_swap8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order)
{
	return atomic(ACP_OP_SWAP8, dst, src, value, 0, order);
}

acp_handle_t acp_add4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order)
{
	return atomic(ACP_OP_ADD4, dst, src, value, 0, order);
}

acp_handle_t acp_add8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order)
{
	return atomic(ACP_OP_ADD8, dst, src, value, 0, order);
}

acp_handle_t acp_xor4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order)
{
	return atomic(ACP_OP_XOR4, dst, src, value, 0, order);
}

acp_handle_t acp_xor8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order)
{
	return atomic(ACP_OP_XOR8, dst, src, value, 0, order);
}

acp_handle_t acp_or4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order)
{
	return atomic(ACP_OP_OR4, dst, src, value, 0, order);
}

acp_handle_t acp_or8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order)
{
	return atomic(ACP_OP_OR8, dst, src, value, 0, order);
}

acp_handle_t acp_and4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order)
{
	return atomic(ACP_OP_AND4, dst, src, value, 0, order);
}

acp_handle_t acp_and8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order)
{
	return atomic(ACP_OP_AND8, dst, src, value, 0, order);
}

/* ---- Completion ---- */

static bool reached(const struct libacp_lane *lane, uint64_t ticket)
{
	return ticket <= libacp_queue_completed(&lane->queue);
}

/*
 * Is it a ticket of this lane, and complete?  That of another lane is too far away, in
 * either direction; what is long ago is not known here.
 */
static bool reached_lately(const struct libacp_lane *lane, uint64_t ticket)
{
	return (libacp_queue_completed(&lane->queue) - ticket) >> (ACP_TICKET_BITS - 8) == 0;
}

/*
 * Where a thread has one processor, it looks only as long as that is of use and costs nobody time.
 * After a look that took too long come 1, 3, 7, and then always 15 waits without.  After one that
 * others had the processor during come a thousand: who yields to a program that computes gets it
 * back when that program's time slice ends, milliseconds later; who sleeps is woken in its midst.
 */
static _Thread_local struct {
	uint32_t rest;		/* so many waits do not look */
	uint32_t vain;		/* the rest after the last look, if that took too long */
} alone LIBACP_QUICK;

static bool look(const struct libacp_lane *lane, uint64_t ticket)
{
	unsigned int looks;

	for (looks = 0; looks < LOOKS; looks++) {
		libacp_pause();
		if (reached(lane, ticket))
			return true;
	}
	return false;
}

/* Look for the completion of a ticket; false after some time. */
static bool look_for(const struct libacp_lane *lane, uint64_t ticket)
{
	uint64_t end = libacp_now() + SPIN_NS;
	bool found;

	do
		found = look(lane, ticket);
	while (!found && libacp_now() < end);
	return found;
}

/* A look took too long; others had the processor for others_ns, about: clocks are read in turn. */
static void rest(int64_t others_ns)
{
	alone.vain = alone.vain < REST_MOST ? 2 * alone.vain + 1 : REST_MOST;
	alone.rest = others_ns > CROWDED_NS ? REST_CROWDED : alone.vain;
}

/* Look on the only processor, for as long as it takes to another machine and back. */
static bool look_alone(const struct libacp_lane *lane, uint64_t ticket)
{
	const uint64_t begin = libacp_now(), ran = time_of(CLOCK_THREAD_CPUTIME_ID);
	uint64_t took;
	bool found;

	do {
		found = look(lane, ticket);
		if (!found)
			sched_yield();
		took = libacp_now() - begin;
	} while (!found && took < SPIN_NS);
	if (took < SPIN_NS)
		alone.vain = 0;
	else
		rest((int64_t)(took - (time_of(CLOCK_THREAD_CPUTIME_ID) - ran)));
	return found || reached(lane, ticket);
}

/*
 * Look before sleeping, if that is worth while.  On the only processor it is while the command is
 * on its way: what the kernel has not taken from the ring yet it takes when we sleep, and sooner.
 */
static bool look_first(const struct libacp_lane *lane, uint64_t ticket)
{
	if (libacp_queue_aborted(&lane->queue))
		return false;
	if (libacp.spin)
		return look_for(lane, ticket);
	if (!libacp_queue_asleep(&lane->queue))
		return false;
	if (alone.rest) {
		alone.rest--;
		return false;
	}
	return look_alone(lane, ticket);
}

static int wait_for(const struct libacp_lane *lane, uint64_t ticket)
{
	if (reached(lane, ticket) || look_first(lane, ticket))
		return 0;
	return sleep_for(lane, ticket);
}

int libacp_lane_wait(const struct libacp_lane *lane)
{
	return wait_for(lane, libacp_queue_newest(&lane->queue));
}

int libacp_gma_wait(acp_handle_t handle)
{
	struct libacp_lane *lane = libacp_lane_now(), *other;
	int error;

	if (!is_elsewhere(lane, handle))
		return wait_for(lane, handle_ticket(lane, handle));
	other = libacp_lane_hold(handle_lane(lane, handle));
	if (!other)
		return 0;
	error = wait_for(other, handle_ticket(other, handle));
	libacp_lane_release(other);
	return error;
}

static const char *const op_names[ACP_OP_END] = {
	[ACP_OP_COPY] = "acp_copy",
	[ACP_OP_CAS4] = "acp_cas4", [ACP_OP_CAS8] = "acp_cas8",
	[ACP_OP_SWAP4] = "acp_swap4", [ACP_OP_SWAP8] = "acp_swap8",
	[ACP_OP_ADD4] = "acp_add4", [ACP_OP_ADD8] = "acp_add8",
	[ACP_OP_XOR4] = "acp_xor4", [ACP_OP_XOR8] = "acp_xor8",
	[ACP_OP_OR4] = "acp_or4", [ACP_OP_OR8] = "acp_or8",
	[ACP_OP_AND4] = "acp_and4", [ACP_OP_AND8] = "acp_and8",
	[ACP_OP_STRIDED] = "acpx_copy_strided",
	[ACP_OP_COPY_SET] = "acpx_copy_signal", [ACP_OP_COPY_ADD] = "acpx_copy_signal",
};

#define PLACE "0x%016" PRIx64 " of rank %d on node %d"

static int node_of(acp_ga_t ga)
{
	return acpx_query_node(acp_query_rank(ga));
}

static bool is_quiet(const struct libacp_lane *lane, uint64_t ticket)
{
	return is_shared(lane) && quiet_marks[ticket & lane->queue.mask];
}

/* End the job because of a failure among the completed tickets: name the oldest one kept. */
static void __attribute__((noreturn)) die_of_failure(const struct libacp_lane *lane,
						     uint64_t completed)
{
	const struct libacp_queue *q = &lane->queue;
	struct acp_sqe entry;
	uint64_t ticket = completed - q->first > q->depth ? completed - q->depth + 1 : q->first;
	int status;

	for (; ticket <= completed; ticket++) {
		status = libacp_queue_status(q, ticket);
		if (status <= 0 || is_quiet(lane, ticket))
			continue;
		if (!libacp_queue_entry(q, ticket, &entry) || entry.op >= ACP_OP_END ||
		    !op_names[entry.op])
			libacp_die("a global memory access failed: %s", acpx_strerror(status));
		libacp_die("%s failed: %s (dst " PLACE ", src " PLACE ")", op_names[entry.op],
			   acpx_strerror(status), (uint64_t)entry.dst, acp_query_rank(entry.dst),
			   node_of(entry.dst), (uint64_t)entry.src, acp_query_rank(entry.src),
			   node_of(entry.src));
	}
	libacp_die("a global memory access failed");
}

/* Look at the statuses of what is complete by now: has anything failed that is not quiet? */
static bool judge(struct libacp_lane *lane)
{
	const struct libacp_queue *q = &lane->queue;
	uint64_t completed, ticket, count;
	bool loud;

	pthread_mutex_lock(&lane->lock);
	completed = libacp_queue_completed(q);
	count = lane->failures_gone;
	loud = lane->loud_gone;
	ticket = libacp_queue_newest(q) > q->depth ? libacp_queue_newest(q) - q->depth : 0;
	for (ticket = ticket > lane->judged ? ticket : lane->judged; ticket++ < completed;) {
		/* Of a failure the slot is not taken meanwhile: lose_status(). */
		if (libacp_queue_status(q, ticket) <= 0)
			continue;
		count++;
		loud = loud || !is_quiet(lane, ticket);
	}
	lane->judged = lane->judged > completed ? lane->judged : completed;
	lane->failures_gone = 0;
	lane->loud_gone = false;
	__atomic_store_n(&lane->failures_seen, lane->failures_seen + count, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lane->lock);
	return loud;
}

/*
 * Has anything failed that nobody was told of?  In the default mode that
 * ends the job, as soon as somebody waits for anything.
 */
static void __attribute__((noinline)) tell_of_failures(struct libacp_lane *lane)
{
	uint64_t completed = libacp_queue_completed(&lane->queue);

	if (!judge(lane) ||
	    __atomic_load_n(&libacp.error_mode, __ATOMIC_RELAXED) != ACPX_ERRORS_ABORT)
		return;
	if (libacp_queue_aborted(&lane->queue))
		libacp_job_aborted();
	die_of_failure(lane, completed);
}

static inline void check_failures(struct libacp_lane *lane)
{
	if (libacp_queue_failed(&lane->queue) !=
	    __atomic_load_n(&lane->failures_seen, __ATOMIC_RELAXED))
		tell_of_failures(lane);
}

void libacp_lane_check(struct libacp_lane *lane)
{
	check_failures(lane);
}

void libacp_gma_check(void)
{
	struct libacp_lane *lane = libacp_lane_now();

	check_failures(&libacp_main);
	if (!is_shared(lane))
		check_failures(lane);
}

/* Of the lane that the handle is of, and the caller's own. */
static void __attribute__((noinline)) wait_and_check(acp_handle_t handle)
{
	struct libacp_lane *lane = libacp_lane_now(), *other = NULL;
	int error = 0;

	if (is_elsewhere(lane, handle))
		other = libacp_lane_hold(handle_lane(lane, handle));
	else
		error = wait_for(lane, handle_ticket(lane, handle));
	if (other) {
		error = wait_for(other, handle_ticket(other, handle));
		check_failures(other);
		libacp_lane_release(other);
	}
	if (error == -ECANCELED)
		libacp_job_aborted();
	check_failures(lane);
}

void acp_complete(acp_handle_t handle)
{
	struct libacp_lane *lane = libacp_lane;

	if (!libacp_in() || handle == (acp_handle_t)ACP_HANDLE_NULL)
		return;
	/* ALL and CONT are negative: no ticket is as high. */
	if (reached_lately(lane, (uint64_t)handle >> 1))
		check_failures(lane);
	else
		wait_and_check(handle);
}

int acp_inquire(acp_handle_t handle)
{
	const struct libacp_lane *lane;

	if (!libacp_in())
		return 0;
	lane = libacp_lane_now();
	if (is_elsewhere(lane, handle) ? reached_elsewhere(handle) :
					 reached(lane, handle_ticket(lane, handle)))
		return 0;
	return !libacp_queue_aborted(&libacp_main.queue);
}

static int status_in(const struct libacp_lane *lane, acp_handle_t handle)
{
	uint64_t ticket = (uint64_t)handle >> 1;
	int status;

	if (handle <= 0 || ticket > libacp_queue_newest(&lane->queue))
		return libacp_queue_aborted(&lane->queue) ? ACPX_EABORT : ACPX_EOP;
	if (handle & 1)
		return 0;
	if (!reached(lane, ticket))
		return libacp_queue_aborted(&lane->queue) ? ACPX_EABORT : ACPX_EPENDING;
	status = libacp_queue_status(&lane->queue, ticket);
	return status < 0 ? ACPX_EUNKNOWN : status;
}

int acpx_status(acp_handle_t handle)
{
	struct libacp_lane *lane, *other;
	int status;

	if (!libacp_in())
		return ACPX_EABORT;
	lane = libacp_lane_now();
	if (!is_elsewhere(lane, handle))
		return status_in(lane, handle);
	other = libacp_lane_hold(handle_lane(lane, handle));
	if (!other)
		return handle & 1 ? 0 : ACPX_EUNKNOWN;
	status = status_in(other, handle);
	libacp_lane_release(other);
	return status;
}

bool libacp_quiet(bool quiet)
{
	bool former = quiet_now;

	quiet_now = quiet;
	chain_since = UINT64_MAX;
	libacp_lane_quiet(quiet);
	return former;
}

void libacp_chain(void)
{
	chain_since = libacp_queue_newest(&libacp_main.queue);
}

static const int errors[ACP_ST_END] = {
	[ACPX_EOP] = EINVAL, [ACPX_EGA] = EFAULT, [ACPX_ESTAG] = EFAULT, [ACPX_ERANGE] = EFAULT,
	[ACPX_EACCESS] = EACCES, [ACPX_EALIGN] = EINVAL, [ACPX_ERANK] = EHOSTDOWN,
	[ACPX_ENOMEM] = ENOMEM, [ACPX_ETIMEOUT] = ETIMEDOUT, [ACPX_EPEER] = ECONNRESET,
	[ACPX_EROUTE] = EHOSTUNREACH, [ACPX_EORDER] = EIO, [ACPX_EABORT] = ECANCELED,
};

/* The status of a quiet ticket that has lost its slot; unknown only after very many failures. */
static int lost_status(uint64_t ticket)
{
	int status = 0;
	unsigned int i;

	pthread_mutex_lock(&libacp_main.lock);
	if (lost_count > LOST_MOST && lost[lost_count % LOST_MOST].ticket > ticket)
		status = ACPX_EUNKNOWN;
	for (i = 0; i < LOST_MOST && i < lost_count; i++)
		if (lost[i].ticket == ticket)
			status = lost[i].status;
	pthread_mutex_unlock(&libacp_main.lock);
	return status;
}

int libacp_ended(acp_handle_t handle)
{
	int status = handle == (acp_handle_t)ACP_HANDLE_NULL ? ACPX_EABORT : acpx_status(handle);

	if (status == ACPX_EUNKNOWN)
		status = lost_status((uint64_t)handle >> 1);

	return status < ACP_ST_END ? -errors[status] : -EIO;
}

int libacp_finish(acp_handle_t handle)
{
	int error = 0;

	if (handle & 1)
		return 0;	/* done by its caller */
	if (libacp_in() && handle != (acp_handle_t)ACP_HANDLE_NULL)
		error = libacp_gma_wait(handle);
	return error ? error : libacp_ended(handle);
}

_Static_assert((int)ACPX_EOP == ACP_ST_OP && (int)ACPX_EABORT == ACP_ST_ABORT,
	       "the statuses of the library are those of the device");

const char *acpx_strerror(int status)
{
	static const char *const texts[] = {
		[ACP_ST_OK] = "success",
		[ACPX_EOP] = "impossible argument",
		[ACPX_EGA] = "not a global address of any rank",
		[ACPX_ESTAG] = "no such memory: never registered, or no longer",
		[ACPX_ERANGE] = "reaches beyond the registered memory",
		[ACPX_EACCESS] = "the memory was not registered for this kind of access",
		[ACPX_EALIGN] = "address of an atomic not aligned to its size",
		[ACPX_ERANK] = "that rank is not there (any more)",
		[ACPX_ENOMEM] = "out of memory",
		[ACPX_ETIMEOUT] = "the other node has been silent too long",
		[ACPX_EPEER] = "the other node was restarted, or has another set-up of the job",
		[ACPX_EROUTE] = "no route to the other node",
		[ACPX_EORDER] = "an access that this one waited for failed",
		[ACPX_EABORT] = "the job was ended",
	};

	if (status == ACPX_EUNKNOWN)
		return "status no longer kept";
	if (status == ACPX_EPENDING)
		return "not complete yet";
	if (status == ACPX_ECORRUPT)
		return "somebody has written where only the library does";
	if (status < 0 || (size_t)status >= sizeof(texts) / sizeof(texts[0]))
		return "unknown status";
	return texts[status];
}
