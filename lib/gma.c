// SPDX-License-Identifier: MIT
/*
 * Global memory access: handles, submission, completion.
 *
 * A handle is ticket * 2 + local.  local = 1 says that the calling thread
 * did the access before it returned; the ticket is then the newest that had
 * been given out, for completion is in order.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <time.h>

#include "libacp.h"
#include "middle.h"

#define SPIN_NS		1000000		/* time before sleeping on a completion or a full ring */
#define ROOM_ALONE_NS	50000		/* ... on a ring, when the kernel has only our CPU */
#define LOOKS		64		/* looks between two looks at the clock */

static pthread_mutex_t submit_lock = PTHREAD_MUTEX_INITIALIZER;
static bool last_was_local;	/* the newest GMA was done by its caller; a hint, atomic */

/*
 * Failures that nobody was told of end the job, unless the library deals with
 * them itself (libacp_quiet).  Guarded by the submit lock, but failures_seen.
 */
static uint8_t *quiet_marks;	/* of the ticket in each slot */
static uint64_t judged;		/* tickets up to this one were looked at */
static uint64_t failures_seen;	/* failures among these; atomic */
static uint64_t failures_gone;	/* later ones whose slots were taken by others */
static bool loud_gone;		/* some of these were not quiet */

/* Quiet failures whose slots were taken: an answer to the library is never "unknown". */
#define LOST_MOST	1024u
static struct lost {
	uint64_t ticket;
	int status;
} lost[LOST_MOST];
static uint64_t lost_count;
static _Thread_local bool quiet_now;
static _Thread_local uint64_t chain_since;	/* the newest when the chain began */

int libacp_gma_open(void)
{
	quiet_marks = calloc(libacp.queue.depth, sizeof(*quiet_marks));
	if (!quiet_marks)
		return -ENOMEM;
	last_was_local = false;
	judged = libacp_queue_newest(&libacp.queue);
	failures_seen = 0;
	failures_gone = 0;
	loud_gone = false;
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

/*
 * The ticket that a handle waits for: 0, which is always complete, for what
 * is no handle or was never issued.
 */
static uint64_t handle_ticket(acp_handle_t handle)
{
	uint64_t newest = libacp_queue_newest(&libacp.queue);
	uint64_t ticket = (uint64_t)handle >> 1;

	if (handle == (acp_handle_t)ACP_HANDLE_ALL || handle == (acp_handle_t)ACP_HANDLE_CONT)
		return newest;
	return ticket <= newest ? ticket : 0;
}

/* ---- Issuing ---- */

uint64_t libacp_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Sleep until a ticket is complete: 0 or -errno. */
static int sleep_for(uint64_t ticket)
{
	struct acp_wait wait = {
		.size = sizeof(wait), .ticket = ticket, .timeout_ns = UINT64_MAX,
	};

	while (ioctl(libacp.fd, ACP_IOC_WAIT, &wait) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* Look for room while the kernel works on the ring; false after some time. */
static bool spin_for_room(void)
{
	const struct libacp_queue *q = &libacp.queue;
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
 * Wait until the ring has room, submit lock held; returns what was complete
 * then, or 0 if there will never be room.  After a sleep a quarter of the
 * ring is free, so that the sleeps of a busy queue are few.
 */
static uint64_t wait_for_room(void)
{
	const struct libacp_queue *q = &libacp.queue;
	uint64_t completed = libacp_queue_completed(q);

	while (!libacp_queue_room(q, completed)) {
		if (!spin_for_room() &&
		    sleep_for(libacp_queue_newest(q) - q->depth + q->depth / 4) < 0)
			return 0;
		completed = libacp_queue_completed(q);
	}
	return completed;
}

/* Translate the order condition; submit lock held. */
static void set_order(struct acp_sqe *entry, acp_handle_t order)
{
	entry->order = handle_ticket(order);
	if (entry->order <= entry->seen) {
		entry->order = 0;	/* met already */
		return;
	}
	/* CONT continues the previous GMA; if the caller did that one, it is like ALL. */
	if (order == (acp_handle_t)ACP_HANDLE_CONT &&
	    !__atomic_load_n(&last_was_local, __ATOMIC_RELAXED))
		entry->flags = ACP_SQE_CONT;
}

/* Has anything failed in the chain that an access continues?  Given what was complete then. */
static bool chain_broken(acp_handle_t order, uint64_t completed)
{
	uint64_t ticket, last = handle_ticket(order);

	if (!quiet_now || order == (acp_handle_t)ACP_HANDLE_NULL)
		return false;
	last = last < completed ? last : completed;
	for (ticket = chain_since; ticket < last;)
		if (libacp_queue_status(&libacp.queue, ++ticket))
			return true;
	return false;
}

/* The next ticket takes a slot, whose status is lost with it; submit lock held. */
static void take_slot(void)
{
	const struct libacp_queue *q = &libacp.queue;
	uint64_t ticket = libacp_queue_newest(q) + 1, former = ticket - q->depth;
	uint8_t *quiet = &quiet_marks[ticket & q->mask];
	int status = ticket > q->depth ? libacp_queue_status(q, former) : 0;

	if (status > 0 && former > judged) {
		failures_gone++;
		loud_gone = loud_gone || !*quiet;
	}
	if (status > 0 && *quiet)
		lost[lost_count++ % LOST_MOST] = (struct lost){ former, status };
	*quiet = quiet_now;
}

/* The shortest system call that does it; a module that does not know it takes the ioctl. */
static void ring_doorbell(void)
{
	if (syscall(SYS_fdatasync, libacp.fd) < 0)
		ioctl(libacp.fd, ACP_IOC_DOORBELL);
}

static acp_handle_t submit(struct acp_sqe *entry, acp_handle_t order)
{
	struct libacp_queue *q = &libacp.queue;
	uint64_t ticket = 0;

	pthread_mutex_lock(&submit_lock);
	entry->seen = wait_for_room();
	if (entry->seen && !chain_broken(order, entry->seen)) {
		set_order(entry, order);
		take_slot();
		ticket = libacp_queue_push(q, entry);
		__atomic_store_n(&last_was_local, false, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&submit_lock);
	if (!ticket)
		return ACP_HANDLE_NULL;
	if (libacp_queue_must_ring(q))
		ring_doorbell();
	return make_handle(ticket, false);
}

/* Has it ended because of what it waited for?  Asked before each push, "no" after depth of them. */
static bool was_refused(uint64_t ticket, uint64_t completed)
{
	return ticket && ticket <= completed &&
	       libacp_queue_status(&libacp.queue, ticket) == ACP_ST_ORDER;
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
	struct libacp_queue *q = &libacp.queue;
	uint64_t ticket = 0, head = 0, room;
	struct acp_sqe first = { 0 };
	bool refused = false;
	size_t i;

	pthread_mutex_lock(&submit_lock);
	for (i = 0; i < n; i++) {
		struct acp_sqe e = { 0 };

		next(&e, state);
		room = wait_for_room();
		if (!room || (!i && chain_broken(order, room)))
			break;
		refused = refused || was_refused(head, room);
		if (refused)	/* then it copies nothing, and ends as the first one */
			e = (struct acp_sqe){
				.op = ACP_OP_COPY, .dst = libacp_own_nothing(),
				.src = libacp_own_nothing(), .order = e.order,
			};
		if (!i) {
			e.seen = room;
			set_order(&e, order);
			first = e;
		} else {
			set_turn(&e, &first, ticket);
		}
		if (i < n - 1)
			e.flags |= ACP_SQE_MORE;
		take_slot();
		ticket = libacp_queue_push(q, &e);
		head = head ? head : ticket;
	}
	__atomic_store_n(&last_was_local, false, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&submit_lock);
	if (i && libacp_queue_must_ring(q))
		ring_doorbell();
	return i == n ? make_handle(ticket, false) : (acp_handle_t)ACP_HANDLE_NULL;
}

static bool __attribute__((noinline)) may_start_behind(acp_handle_t order)
{
	return handle_ticket(order) <= libacp_queue_completed(&libacp.queue) &&
	       !chain_broken(order, UINT64_MAX);
}

/* May an access with this order start now, in the calling thread? */
static bool may_start(acp_handle_t order)
{
	const struct libacp_queue *q = &libacp.queue;

	if (libacp_queue_aborted(q))
		return false;		/* the kernel fails it */
	return order == (acp_handle_t)ACP_HANDLE_NULL || may_start_behind(order);
}

static acp_handle_t done_locally(void)
{
	if (!__atomic_load_n(&last_was_local, __ATOMIC_RELAXED))
		__atomic_store_n(&last_was_local, true, __ATOMIC_RELAXED);
	return make_handle(libacp_queue_newest(&libacp.queue), true);
}

acp_handle_t libacp_submit_one(struct acp_sqe *entry, acp_handle_t order)
{
	return submit(entry, order);
}

bool libacp_may_start(acp_handle_t order)
{
	return may_start(order);
}

acp_handle_t libacp_done_locally(void)
{
	return done_locally();
}

static acp_handle_t __attribute__((noinline)) copy(acp_ga_t dst, acp_ga_t src, size_t size,
						   acp_handle_t order)
{
	if (!libacp_in())
		return ACP_HANDLE_NULL;
	if (may_start(order) && libacp_local_copy(dst, src, size))
		return done_locally();
	return submit(&(struct acp_sqe){
		.op = ACP_OP_COPY, .dst = dst, .src = src, .size = size,
	}, order);
}

/* A word within own memory takes as long as what is around it, so there is little. */
acp_handle_t acp_copy(acp_ga_t dst, acp_ga_t src, size_t size, acp_handle_t order)
{
	if (size == sizeof(uint64_t) && order == (acp_handle_t)ACP_HANDLE_NULL && libacp_in() &&
	    !libacp_queue_aborted(&libacp.queue) && libacp_local_copy_word(dst, src))
		return done_locally();
	return copy(dst, src, size, order);
}

static acp_handle_t atomic(enum acp_op op, acp_ga_t dst, acp_ga_t src, uint64_t a, uint64_t b,
			   acp_handle_t order)
{
	if (!libacp_in())
		return ACP_HANDLE_NULL;
	if (may_start(order) && libacp_local_atomic(op, dst, src, a, b))
		return done_locally();
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

static bool reached(uint64_t ticket)
{
	return ticket <= libacp_queue_completed(&libacp.queue);
}

/* Look for the completion of a ticket; false after some time. */
static bool spin_for(uint64_t ticket)
{
	uint64_t end = libacp_now() + SPIN_NS;
	unsigned int looks = 0;

	do {
		libacp_pause();
		if (reached(ticket))
			return true;
	} while (++looks % LOOKS || libacp_now() < end);
	return false;
}

int libacp_gma_wait(acp_handle_t handle)
{
	uint64_t ticket = handle_ticket(handle);

	if (reached(ticket) || (libacp.spin && spin_for(ticket)))
		return 0;
	return sleep_for(ticket);
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

/* End the job because of a failure among the completed tickets: name the oldest one kept. */
static void __attribute__((noreturn)) die_of_failure(uint64_t completed)
{
	const struct libacp_queue *q = &libacp.queue;
	struct acp_sqe entry;
	uint64_t ticket = completed > q->depth ? completed - q->depth + 1 : 1;
	int status;

	for (; ticket <= completed; ticket++) {
		status = libacp_queue_status(q, ticket);
		if (status <= 0 || quiet_marks[ticket & q->mask])
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
static bool judge(void)
{
	const struct libacp_queue *q = &libacp.queue;
	uint64_t completed, ticket, count;
	bool loud;

	pthread_mutex_lock(&submit_lock);
	completed = libacp_queue_completed(q);
	count = failures_gone;
	loud = loud_gone;
	ticket = libacp_queue_newest(q) > q->depth ? libacp_queue_newest(q) - q->depth : 0;
	for (ticket = ticket > judged ? ticket : judged; ticket++ < completed;) {
		if (libacp_queue_status(q, ticket) <= 0)
			continue;
		count++;
		loud = loud || !quiet_marks[ticket & q->mask];
	}
	judged = judged > completed ? judged : completed;
	failures_gone = 0;
	loud_gone = false;
	__atomic_store_n(&failures_seen, failures_seen + count, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&submit_lock);
	return loud;
}

/*
 * Has anything failed that nobody was told of?  In the default mode that
 * ends the job, as soon as somebody waits for anything.
 */
static void __attribute__((noinline)) tell_of_failures(void)
{
	uint64_t completed = libacp_queue_completed(&libacp.queue);

	if (!judge() ||
	    __atomic_load_n(&libacp.error_mode, __ATOMIC_RELAXED) != ACPX_ERRORS_ABORT)
		return;
	if (libacp_queue_aborted(&libacp.queue))
		libacp_job_aborted();
	die_of_failure(completed);
}

static void check_failures(void)
{
	if (libacp_queue_failed(&libacp.queue) !=
	    __atomic_load_n(&failures_seen, __ATOMIC_RELAXED))
		tell_of_failures();
}

void libacp_gma_check(void)
{
	check_failures();
}

static void __attribute__((noinline)) wait_and_check(acp_handle_t handle)
{
	if (libacp_gma_wait(handle) == -ECANCELED)
		libacp_job_aborted();
	check_failures();
}

void acp_complete(acp_handle_t handle)
{
	if (!libacp_in() || handle == (acp_handle_t)ACP_HANDLE_NULL)
		return;
	/* ALL and CONT are negative: no ticket is as high. */
	if (reached((uint64_t)handle >> 1))
		check_failures();
	else
		wait_and_check(handle);
}

int acp_inquire(acp_handle_t handle)
{
	if (!libacp_in() || reached(handle_ticket(handle)))
		return 0;
	return !libacp_queue_aborted(&libacp.queue);
}

int acpx_status(acp_handle_t handle)
{
	uint64_t ticket = (uint64_t)handle >> 1;
	int status;

	if (!libacp_in())
		return ACPX_EABORT;
	if (handle <= 0 || ticket > libacp_queue_newest(&libacp.queue))
		return libacp_queue_aborted(&libacp.queue) ? ACPX_EABORT : ACPX_EOP;
	if (handle & 1)
		return 0;
	if (!reached(ticket))
		return libacp_queue_aborted(&libacp.queue) ? ACPX_EABORT : ACPX_EPENDING;
	status = libacp_queue_status(&libacp.queue, ticket);
	return status < 0 ? ACPX_EUNKNOWN : status;
}

bool libacp_quiet(bool quiet)
{
	bool former = quiet_now;

	quiet_now = quiet;
	chain_since = UINT64_MAX;
	return former;
}

void libacp_chain(void)
{
	chain_since = libacp_queue_newest(&libacp.queue);
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

	pthread_mutex_lock(&submit_lock);
	if (lost_count > LOST_MOST && lost[lost_count % LOST_MOST].ticket > ticket)
		status = ACPX_EUNKNOWN;
	for (i = 0; i < LOST_MOST && i < lost_count; i++)
		if (lost[i].ticket == ticket)
			status = lost[i].status;
	pthread_mutex_unlock(&submit_lock);
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
