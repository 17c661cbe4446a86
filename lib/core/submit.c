// SPDX-License-Identifier: MIT
/*
 * Issuing accesses: executed by the calling thread if it can access both ends, otherwise by the
 * kernel.
 *
 * A thread uses one queue (queue.c): that of the process, whose lock it takes to submit, or its
 * own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#if __has_include("sys/single_threaded.h")
#include <sys/single_threaded.h>
#define IS_ALONE	__libc_single_threaded
#else
#define IS_ALONE	0
#endif

#include "acp.h"
#include "acp_abi.h"
#include "core/failure.h"
#include "core/handle.h"
#include "core/local.h"
#include "core/process.h"
#include "core/queue.h"
#include "core/rings.h"
#include "core/submit.h"
#include "core/wait.h"
#include "core/watch.h"

/* Translate the order condition; the caller holds the right to submit. */
static void set_order(const struct libacp_queue *queue, struct acp_sqe *entry, acp_handle_t order)
{
	entry->order = libacp_handle_ticket(queue, order);
	if (entry->order <= entry->seen) {
		entry->order = 0;	/* already complete */
		return;
	}
	/*
	 * CONT continues the previous access. If the calling thread executed that one, CONT equals
	 * ALL.
	 */
	if (order == (acp_handle_t)ACP_HANDLE_CONT &&
	    !__atomic_load_n(&queue->last_was_local, __ATOMIC_RELAXED))
		entry->flags |= ACP_SQE_CONT;
}

/*
 * The access that the order names counts even if it is complete: the kernel looks whether it has
 * failed. One that a thread executed itself has not; the ticket in its handle is that of another
 * one. The caller holds the right to submit.
 */
static void set_strict_order(const struct libacp_queue *queue, struct acp_sqe *entry,
			     acp_handle_t order)
{
	if (libacp_handle_is_local(order)) {
		set_order(queue, entry, order);
		return;
	}
	entry->order = libacp_handle_ticket(queue, order);
	if (entry->order && entry->order <= entry->seen)
		entry->seen = entry->order - 1;
}

/*
 * True if the lock was taken. The result of IS_ALONE is valid until the end of the submission,
 * which does not start threads.
 */
static bool begin_submit(struct libacp_queue *queue)
{
	if (!libacp_queue_shared(queue) || IS_ALONE)
		return false;
	pthread_mutex_lock(&queue->lock);
	return true;
}

static void end_submit(struct libacp_queue *queue, bool locked)
{
	if (locked)
		pthread_mutex_unlock(&queue->lock);
}

/*
 * A filter may reject fdatasync() to speed up programs that need no durability: use ioctl() then.
 * Without a doorbell, the kernel never polls the ring.
 */
static void __attribute__((noinline, cold)) ring_by_ioctl(const struct libacp_queue *queue)
{
	bool rung = ioctl(queue->fd, ACP_IOC_DOORBELL) == 0;

	if (rung ? libacp_is_answered() : errno == ENOTCONN || errno == EBADF)
		return;
	if (libacp_rings_aborted(&queue->rings))
		return;
	libacp_die("the module cannot be told of accesses: fdatasync(2) and ioctl(2) of " ACP_DEVICE
		   " do not reach it, a seccomp filter or the like is in the way");
}

/* fdatasync() is the shortest system call that reaches the module. */
static void ring_doorbell(const struct libacp_queue *queue)
{
	if (syscall(SYS_fdatasync, queue->fd) != ACP_RUNG)
		ring_by_ioctl(queue);
}

/*
 * The kernel does not order commands of different queues, so wait here. False if any command of the
 * other queue up to @order failed while waiting.
 */
static bool __attribute__((noinline)) came_before(acp_handle_t order)
{
	struct libacp_queue *other = libacp_queue_hold(libacp_handle_queue(&libacp_main, order));
	uint64_t ticket, seen;
	bool good;

	if (!other)
		return true;
	ticket = libacp_handle_ticket(other, order);
	seen = libacp_rings_completed(&other->rings);
	good = libacp_wait_for(other, ticket) == 0;
	while (good && seen < ticket)
		good = libacp_rings_status(&other->rings, ++seen) <= 0;
	libacp_queue_release(other);
	return good;
}

static acp_handle_t submit(struct acp_sqe *entry, acp_handle_t order)
{
	struct libacp_queue *queue = libacp_queue_now();
	uint64_t ticket = 0;
	bool locked;

	if (libacp_handle_elsewhere(queue, order) && !came_before(order))
		return ACP_HANDLE_NULL;
	locked = begin_submit(queue);
	entry->seen = libacp_find_room(queue);
	if (entry->seen && !libacp_chain_broken(queue, order, entry->seen)) {
		set_order(queue, entry, order);
		libacp_take_slot(queue);
		ticket = libacp_rings_push(&queue->rings, entry);
		__atomic_store_n(&queue->last_was_local, false, __ATOMIC_RELAXED);
	}
	end_submit(queue, locked);
	if (!ticket)
		return ACP_HANDLE_NULL;
	if (libacp_rings_must_ring(&queue->rings))
		ring_doorbell(queue);
	return libacp_handle_make(ticket, false);
}

/*
 * True if the ticket failed because of its order condition. Called before each push, i.e. before
 * its slot is reused; false once it may have been reused.
 */
static bool was_refused(const struct libacp_queue *queue, uint64_t ticket, uint64_t completed)
{
	return ticket && ticket <= completed &&
	       libacp_rings_status(&queue->rings, ticket) == ACP_ST_ORDER;
}

/*
 * As set_order(), for an entry after the first: it waits for the same tickets as the first entry,
 * or for the previous entry, in which case only failures of that one count.
 */
static void set_turn(struct acp_sqe *entry, const struct acp_sqe *first, uint64_t former)
{
	bool behind = entry->order == LIBACP_BEHIND;

	entry->order = behind ? former : first->order;
	entry->seen = behind ? former - 1 : first->seen;
}

/*
 * If there are more entries than the ring has slots, the status of what they wait for may be lost
 * meanwhile. The status of the first entry tells.
 */
acp_handle_t libacp_submit(size_t n, libacp_next_t *next, void *state, acp_handle_t order)
{
	struct libacp_queue *queue = libacp_queue_now();
	uint64_t ticket = 0, head = 0, room;
	struct acp_sqe first = { 0 };
	bool refused = false, locked;
	size_t i;

	if (libacp_handle_elsewhere(queue, order) && !came_before(order))
		return ACP_HANDLE_NULL;
	locked = begin_submit(queue);
	for (i = 0; i < n; i++) {
		struct acp_sqe e = { 0 };

		next(&e, state);
		room = libacp_find_room(queue);
		if (!room || (!i && libacp_chain_broken(queue, order, room)))
			break;
		refused = refused || was_refused(queue, head, room);
		/* One that revokes is pushed: the status of the previous entry is there still. */
		if (refused && !(e.flags & ACP_SQE_REVOKE))
			/* copies nothing, and fails like the first entry */
			e = (struct acp_sqe){
				.op = ACP_OP_COPY, .dst = libacp_own_nothing(),
				.src = libacp_own_nothing(), .order = e.order,
			};
		if (!i) {
			bool strict = e.seen == LIBACP_STRICT;

			e.seen = room;
			if (strict)
				set_strict_order(queue, &e, order);
			else
				set_order(queue, &e, order);
			first = e;
		} else {
			set_turn(&e, &first, ticket);
		}
		if (i < n - 1)
			e.flags |= ACP_SQE_MORE;
		libacp_take_slot(queue);
		ticket = libacp_rings_push(&queue->rings, &e);
		head = head ? head : ticket;
	}
	__atomic_store_n(&queue->last_was_local, false, __ATOMIC_RELAXED);
	end_submit(queue, locked);
	if (i && libacp_rings_must_ring(&queue->rings))
		ring_doorbell(queue);
	return i == n ? libacp_handle_make(ticket, false) : (acp_handle_t)ACP_HANDLE_NULL;
}

static bool __attribute__((noinline)) may_start_behind(const struct libacp_queue *queue,
						       acp_handle_t order)
{
	if (libacp_handle_elsewhere(queue, order))
		return libacp_handle_reached(order);
	return libacp_handle_ticket(queue, order) <= libacp_rings_completed(&queue->rings) &&
	       !libacp_chain_broken(queue, order, UINT64_MAX);
}

/*
 * True if the calling thread may execute an access with this order now. A closed queue looks
 * aborted.
 */
static bool may_start(const struct libacp_queue *queue, acp_handle_t order)
{
	if (libacp_rings_aborted(&queue->rings))
		return false;		/* the kernel fails it */
	return order == (acp_handle_t)ACP_HANDLE_NULL || may_start_behind(queue, order);
}

static acp_handle_t done_in(struct libacp_queue *queue)
{
	if (!__atomic_load_n(&queue->last_was_local, __ATOMIC_RELAXED))
		__atomic_store_n(&queue->last_was_local, true, __ATOMIC_RELAXED);
	return libacp_handle_make(libacp_rings_newest(&queue->rings), true);
}

acp_handle_t libacp_submit_one(struct acp_sqe *entry, acp_handle_t order)
{
	return submit(entry, order);
}

/* Several threads may submit to the queue of the process. */
acp_handle_t libacp_note_message(acp_handle_t handle)
{
	uint64_t *newest = &libacp_queue->messages, ticket = (uint64_t)handle >> 1;
	uint64_t former = __atomic_load_n(newest, __ATOMIC_RELAXED);

	while (handle > 0 && former < ticket &&
	       !__atomic_compare_exchange_n(newest, &former, ticket, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
	return handle;
}

bool libacp_messages_complete(void)
{
	const struct libacp_queue *queue = libacp_queue;

	return __atomic_load_n(&queue->messages, __ATOMIC_RELAXED) <=
	       libacp_rings_completed(&queue->rings);
}

void libacp_ring(const struct libacp_queue *queue)
{
	if (libacp_rings_must_ring(&queue->rings))
		ring_doorbell(queue);
}

bool libacp_may_start(acp_handle_t order)
{
	return may_start(libacp_queue, order);
}

acp_handle_t libacp_done_locally(void)
{
	return done_in(libacp_queue);
}

/* ---- The public functions ---- */

static acp_handle_t __attribute__((noinline)) copy(acp_ga_t dst, acp_ga_t src, size_t size,
						   acp_handle_t order)
{
	struct libacp_queue *queue = libacp_queue;

	if (!libacp_in())
		return ACP_HANDLE_NULL;
	if (!size) {		/* addresses are ignored */
		dst = libacp_own_nothing();
		src = dst;
	}
	if (may_start(queue, order) && libacp_local_copy(dst, src, size))
		return done_in(queue);
	return submit(&(struct acp_sqe){
		.op = ACP_OP_COPY, .dst = dst, .src = src, .size = size,
	}, order);
}

/* Wake a thread that may wait for the word that was copied. */
static acp_handle_t __attribute__((noinline)) copied_word(acp_ga_t dst, const void *to)
{
	libacp_watch_wake(libacp.watch, dst, to, sizeof(uint64_t));
	return done_in(libacp_queue);
}

/*
 * A copy of a word within own memory is so short that the surrounding code matters: all other calls
 * are tail calls, so that no registers need to be saved.
 */
acp_handle_t acp_copy(acp_ga_t dst, acp_ga_t src, size_t size, acp_handle_t order)
{
	struct libacp_queue *queue = libacp_queue;
	char *to;

	if (size != sizeof(uint64_t) || order != (acp_handle_t)ACP_HANDLE_NULL || !libacp_in() ||
	    libacp_rings_aborted(&queue->rings) || !libacp_local_copy_word(dst, src, &to))
		return copy(dst, src, size, order);
	if (libacp_watch_armed(libacp.watch))
		return copied_word(dst, to);
	return done_in(queue);
}

static acp_handle_t atomic(enum acp_op op, acp_ga_t dst, acp_ga_t src, uint64_t a, uint64_t b,
			   acp_handle_t order)
{
	struct libacp_queue *queue = libacp_queue;

	if (!libacp_in())
		return ACP_HANDLE_NULL;
	if (may_start(queue, order) && libacp_local_atomic(op, dst, src, a, b))
		return done_in(queue);
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
