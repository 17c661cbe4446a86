// SPDX-License-Identifier: MIT
/* Waiting for tickets and for free slots of a ring: polling for some time, then sleeping. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <time.h>

#include "acp.h"
#include "acp_abi.h"
#include "core/handle.h"
#include "core/internal.h"
#include "core/process.h"
#include "core/queue.h"
#include "core/rings.h"
#include "core/wait.h"

#define SPIN_NS		1000000		/* polling time before sleeping */
#define ROOM_ALONE_NS	50000		/* ... for a free slot, when the kernel has only our CPU */
#define LOOKS		64		/* polls between two reads of the clock */
/* maximum number of waits without polling after unsuccessful polling */
#define REST_MAX	15
#define REST_CROWDED	1023		/* ... when other programs need the only CPU */
/* longer than other tasks keep the CPU unless they compute */
#define CROWDED_NS	3000000

static uint64_t thread_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Sleep until a ticket is complete, or a time has passed. Returns 0 or -errno. */
static int sleep_until(const struct libacp_queue *queue, uint64_t ticket, uint64_t end)
{
	struct acp_wait wait = { .size = sizeof(wait), .ticket = ticket };

	for (;;) {
		wait.timeout_ns = libacp_left(end);
		if (ioctl(queue->fd, ACP_IOC_WAIT, &wait) == 0)
			break;
		if (errno != EINTR)
			return -errno;
	}
	return ticket <= libacp_rings_completed(&queue->rings) ? 0 : libacp_no_answer();
}

/* Sleep until a ticket is complete. Returns 0 or -errno. */
static int sleep_for(const struct libacp_queue *queue, uint64_t ticket)
{
	return sleep_until(queue, ticket, UINT64_MAX);
}

/* ---- Free slots ---- */

/* Poll for a free slot while the kernel processes the ring. False after some time. */
static bool spin_for_room(const struct libacp_rings *r)
{
	uint64_t end = libacp_now() + (libacp.spin ? SPIN_NS : ROOM_ALONE_NS);
	unsigned int looks = 0;

	while (!libacp_rings_asleep(r)) {
		if (libacp_rings_room(r, libacp_rings_completed(r)))
			return true;
		if (++looks % LOOKS == 0 && libacp_now() > end)
			return false;
		libacp_pause();
	}
	return false;
}

/*
 * Wait until the ring has a free slot; the caller holds the right to submit. Returns the newest
 * completed ticket, or 0 if there will never be a free slot. After a sleep a quarter of the ring is
 * free, so that a busy queue sleeps seldom.
 */
uint64_t __attribute__((noinline)) libacp_wait_for_room(const struct libacp_queue *queue)
{
	const struct libacp_rings *r = &queue->rings;
	uint64_t completed = libacp_rings_completed(r);

	while (!libacp_rings_room(r, completed)) {
		if (!spin_for_room(r) &&
		    sleep_for(queue, libacp_rings_newest(r) - r->depth + r->depth / 4) < 0)
			return 0;
		completed = libacp_rings_completed(r);
	}
	return completed;
}

/* ---- Completion ---- */

/*
 * With a single CPU, a thread polls only while this helps and takes no time from others. After
 * polling for too long, it does not poll in the next 1, 3, 7, and from then on 15 waits. If other
 * tasks used the CPU meanwhile, it does not poll in the next thousand: a thread that yields to a
 * program that computes gets the CPU back only at the end of that program's time slice,
 * milliseconds later, whereas a thread that sleeps preempts it when it is woken.
 */
static _Thread_local struct {
	uint32_t rest;		/* number of waits that do not poll */
	/* value of rest after the last unsuccessful polling; 0 after a successful one */
	uint32_t vain;
} alone LIBACP_QUICK;

static bool look(const struct libacp_queue *queue, uint64_t ticket)
{
	unsigned int looks;

	for (looks = 0; looks < LOOKS; looks++) {
		libacp_pause();
		if (libacp_queue_reached(queue, ticket))
			return true;
	}
	return false;
}

/* Poll for completion of a ticket. False after some time. */
static bool look_for(const struct libacp_queue *queue, uint64_t ticket)
{
	uint64_t end = libacp_now() + SPIN_NS;
	bool found;

	do
		found = look(queue, ticket);
	while (!found && libacp_now() < end);
	return found;
}

/*
 * Polling took too long. @others_ns: approximate time that other tasks had the CPU, from two
 * clocks.
 */
static void rest(int64_t others_ns)
{
	alone.vain = alone.vain < REST_MAX ? 2 * alone.vain + 1 : REST_MAX;
	alone.rest = others_ns > CROWDED_NS ? REST_CROWDED : alone.vain;
}

/* Poll on the only CPU, for about one network round trip at most. */
static bool look_alone(const struct libacp_queue *queue, uint64_t ticket)
{
	const uint64_t begin = libacp_now(), ran = thread_time();
	uint64_t took;
	bool found;

	do {
		found = look(queue, ticket);
		if (!found)
			sched_yield();
		took = libacp_now() - begin;
	} while (!found && took < SPIN_NS);
	if (took < SPIN_NS)
		alone.vain = 0;
	else
		rest((int64_t)(took - (thread_time() - ran)));
	return found || libacp_queue_reached(queue, ticket);
}

/*
 * Poll before sleeping, if it helps. On the only CPU it helps only after the kernel has taken the
 * command from the ring: otherwise the sleep itself makes the kernel take it sooner.
 */
static bool look_first(const struct libacp_queue *queue, uint64_t ticket)
{
	if (libacp_rings_aborted(&queue->rings))
		return false;
	if (libacp.spin)
		return look_for(queue, ticket);
	if (!libacp_rings_asleep(&queue->rings))
		return false;
	if (alone.rest) {
		alone.rest--;
		return false;
	}
	return look_alone(queue, ticket);
}

int libacp_wait_for(const struct libacp_queue *queue, uint64_t ticket)
{
	if (libacp_queue_reached(queue, ticket) || look_first(queue, ticket))
		return 0;
	return sleep_for(queue, ticket);
}

int libacp_wait_some(const struct libacp_queue *queue, uint64_t ticket, uint64_t timeout_ns)
{
	const uint64_t end = libacp_end_of(timeout_ns);

	if (libacp_queue_reached(queue, ticket) ||
	    (timeout_ns && libacp.spin && look_first(queue, ticket)))
		return 0;
	return sleep_until(queue, ticket, end);
}

/* Only the queue of the process has the descriptor that programs poll. */
int acpx_access_arm(acp_handle_t handle)
{
	struct acp_wait wait = {
		.size = sizeof(wait), .flags = ACP_WAIT_ARM, .ticket = UINT64_MAX,
	};
	const struct libacp_queue *queue = &libacp_main;
	const bool none = handle == (acp_handle_t)ACP_HANDLE_NULL;

	if (!libacp_in())
		return -ENOTCONN;
	if (libacp_handle_elsewhere(queue, handle))
		return -EINVAL;
	if (!none)
		wait.ticket = libacp_handle_ticket(queue, handle);
	if (!none && libacp_queue_reached(queue, wait.ticket))
		return 1;
	if (ioctl(queue->fd, ACP_IOC_WAIT, &wait) < 0)
		return -errno;
	return !none && libacp_queue_reached(queue, wait.ticket);
}

int libacp_queue_wait(const struct libacp_queue *queue)
{
	return libacp_wait_for(queue, libacp_rings_newest(&queue->rings));
}

int libacp_gma_wait(acp_handle_t handle)
{
	struct libacp_queue *queue = libacp_queue_now(), *other;
	int error;

	if (!libacp_handle_elsewhere(queue, handle))
		return libacp_wait_for(queue, libacp_handle_ticket(queue, handle));
	other = libacp_queue_hold(libacp_handle_queue(queue, handle));
	if (!other)
		return 0;
	error = libacp_wait_for(other, libacp_handle_ticket(other, handle));
	libacp_queue_release(other);
	return error;
}
