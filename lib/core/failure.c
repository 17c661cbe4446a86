// SPDX-License-Identifier: MIT
/*
 * Failed accesses of the library itself.
 *
 * Unreported failures end the job (complete.c), unless the library handles them itself
 * (libacp_quiet()). Quiet accesses use the queue of the process.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>

#include "acp.h"
#include "core/errors.h"
#include "core/failure.h"
#include "core/internal.h"
#include "core/process.h"
#include "core/queue.h"
#include "core/rings.h"
#include "core/wait.h"

uint8_t *libacp_quiet_marks;
_Thread_local bool libacp_quiet_now LIBACP_QUICK;
_Thread_local uint64_t libacp_chain_since LIBACP_QUICK;

/* Statuses of quiet failures whose slots were reused: the library needs them later. */
#define LOST_MAX	1024u
static struct lost {
	uint64_t ticket;
	int status;
} lost[LOST_MAX];
static uint64_t lost_count;

int libacp_gma_open(void)
{
	libacp_quiet_marks = calloc(libacp_main.rings.depth, sizeof(*libacp_quiet_marks));
	if (!libacp_quiet_marks)
		return -ENOMEM;
	lost_count = 0;
	return 0;
}

void libacp_gma_close(void)
{
	free(libacp_quiet_marks);
	libacp_quiet_marks = NULL;
}

/* Record the status of a failure whose slot is about to be reused. The lock excludes judge(). */
void __attribute__((noinline)) libacp_lose_status(struct libacp_queue *queue, uint64_t former,
						  int status)
{
	bool quiet = libacp_queue_shared(queue) && libacp_quiet_marks[former & queue->rings.mask];

	if (!libacp_queue_shared(queue))
		pthread_mutex_lock(&queue->lock);
	if (former > queue->judged) {
		queue->failures_gone++;
		queue->loud_gone = queue->loud_gone || (!quiet && status != ACPX_EAGAIN);
		/*
		 * All failures before it have been recorded in the same way, so nothing is left to
		 * evaluate.
		 */
		queue->judged = former;
	}
	if (quiet)
		lost[lost_count++ % LOST_MAX] = (struct lost){ former, status };
	if (!libacp_queue_shared(queue))
		pthread_mutex_unlock(&queue->lock);
}

/* ---- The library's own accesses ---- */

bool libacp_quiet(bool quiet)
{
	bool former = libacp_quiet_now;

	libacp_quiet_now = quiet;
	libacp_chain_since = UINT64_MAX;
	libacp_queue_quiet(quiet);
	return former;
}

void libacp_chain(void)
{
	libacp_chain_since = libacp_rings_newest(&libacp_main.rings);
}

/*
 * Return the status of a quiet ticket whose slot was reused. It is unknown only after LOST_MAX
 * later failures.
 */
static int lost_status(uint64_t ticket)
{
	int status = 0;
	unsigned int i;

	pthread_mutex_lock(&libacp_main.lock);
	if (lost_count > LOST_MAX && lost[lost_count % LOST_MAX].ticket > ticket)
		status = ACPX_EUNKNOWN;
	for (i = 0; i < LOST_MAX && i < lost_count; i++)
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

	return -libacp_errno(status);
}

int libacp_finish(acp_handle_t handle)
{
	int error = 0;

	if (handle & 1)
		return 0;	/* executed by the calling thread */
	if (libacp_in() && handle != (acp_handle_t)ACP_HANDLE_NULL)
		error = libacp_gma_wait(handle);
	return error ? error : libacp_ended(handle);
}
