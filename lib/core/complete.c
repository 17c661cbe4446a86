// SPDX-License-Identifier: MIT
/* acp_complete(): waiting for accesses, and ending the job because of unreported failures. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "acp.h"
#include "acp_abi.h"
#include "core/blame.h"
#include "core/complete.h"
#include "core/failure.h"
#include "core/handle.h"
#include "core/process.h"
#include "core/queue.h"
#include "core/rings.h"
#include "core/wait.h"

/*
 * True if the ticket belongs to this queue and completed recently. Tickets of other queues are too
 * far away in either direction. False for old tickets.
 */
static bool reached_lately(const struct libacp_queue *queue, uint64_t ticket)
{
	return (libacp_rings_completed(&queue->rings) - ticket) >> (ACP_TICKET_BITS - 8) == 0;
}

static bool is_quiet(const struct libacp_queue *queue, uint64_t ticket)
{
	return libacp_queue_shared(queue) && libacp_quiet_marks[ticket & queue->rings.mask];
}

/*
 * End the job because of a failure among the completed tickets. Reports the oldest one that is
 * still known.
 */
static void __attribute__((noreturn)) die_of_failure(const struct libacp_queue *queue,
						     uint64_t completed)
{
	const struct libacp_rings *r = &queue->rings;
	struct acp_sqe entry;
	uint64_t ticket = completed - r->first > r->depth ? completed - r->depth + 1 : r->first;
	int status;

	for (; ticket <= completed; ticket++) {
		status = libacp_rings_status(r, ticket);
		/* As in judge(). */
		if (status <= 0 || status == ACPX_EAGAIN || is_quiet(queue, ticket))
			continue;
		libacp_die_of_access(libacp_rings_entry(r, ticket, &entry) ? &entry : NULL,
				     status);
	}
	libacp_die("a global memory access failed");
}

/* Evaluate the statuses of completed tickets. True if any failure is not quiet. */
static bool judge(struct libacp_queue *queue)
{
	const struct libacp_rings *r = &queue->rings;
	uint64_t completed, ticket, count;
	bool loud;

	pthread_mutex_lock(&queue->lock);
	completed = libacp_rings_completed(r);
	count = queue->failures_gone;
	loud = queue->loud_gone;
	ticket = libacp_rings_newest(r) > r->depth ? libacp_rings_newest(r) - r->depth : 0;
	for (ticket = ticket > queue->judged ? ticket : queue->judged; ticket++ < completed;) {
		/* The slot of a failed ticket is not reused meanwhile, see libacp_lose_status(). */
		if (libacp_rings_status(r, ticket) <= 0)
			continue;
		count++;
		/* A full buffer is no fault of the program: it asks for the status. */
		loud = loud || (!is_quiet(queue, ticket) &&
				libacp_rings_status(r, ticket) != ACPX_EAGAIN);
	}
	queue->judged = queue->judged > completed ? queue->judged : completed;
	queue->failures_gone = 0;
	queue->loud_gone = false;
	__atomic_store_n(&queue->failures_seen, queue->failures_seen + count, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&queue->lock);
	return loud;
}

/*
 * Evaluate new failures. In the default error mode they end the job as soon as a thread waits for
 * any access.
 */
static void __attribute__((noinline)) tell_of_failures(struct libacp_queue *queue)
{
	uint64_t completed = libacp_rings_completed(&queue->rings);

	if (!judge(queue) ||
	    __atomic_load_n(&libacp.error_mode, __ATOMIC_RELAXED) != ACPX_ERRORS_ABORT)
		return;
	if (libacp_rings_aborted(&queue->rings))
		libacp_job_aborted();
	die_of_failure(queue, completed);
}

static inline void check_failures(struct libacp_queue *queue)
{
	if (libacp_rings_failed(&queue->rings) !=
	    __atomic_load_n(&queue->failures_seen, __ATOMIC_RELAXED))
		tell_of_failures(queue);
}

void libacp_queue_check(struct libacp_queue *queue)
{
	check_failures(queue);
}

void libacp_gma_check(void)
{
	struct libacp_queue *queue = libacp_queue_now();

	check_failures(&libacp_main);
	if (!libacp_queue_shared(queue))
		check_failures(queue);
}

/* Wait on the queue of the handle and check it as well as the queue of the caller. */
static void __attribute__((noinline)) wait_and_check(acp_handle_t handle)
{
	struct libacp_queue *queue = libacp_queue_now(), *other = NULL;
	int error = 0;

	if (libacp_handle_elsewhere(queue, handle))
		other = libacp_queue_hold(libacp_handle_queue(queue, handle));
	else
		error = libacp_wait_for(queue, libacp_handle_ticket(queue, handle));
	if (other) {
		error = libacp_wait_for(other, libacp_handle_ticket(other, handle));
		check_failures(other);
		libacp_queue_release(other);
	}
	if (error == -ECANCELED)
		libacp_job_aborted();
	if (error && acp_inquire(handle))
		libacp_die("cannot wait for accesses: %s", strerror(-error));
	check_failures(queue);
}

void acp_complete(acp_handle_t handle)
{
	struct libacp_queue *queue = libacp_queue;

	if (!libacp_in() || handle == (acp_handle_t)ACP_HANDLE_NULL)
		return;
	/* ALL and CONT are negative; no ticket is that large. */
	if (reached_lately(queue, (uint64_t)handle >> 1))
		check_failures(queue);
	else
		wait_and_check(handle);
}
