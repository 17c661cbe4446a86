// SPDX-License-Identifier: MIT
/* Barriers of all ranks. Threads of a process take turns. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sys/ioctl.h>

#include "acp.h"
#include "acp_abi.h"
#include "core/barrier.h"
#include "core/gone.h"
#include "core/internal.h"
#include "core/process.h"

static pthread_mutex_t barrier = PTHREAD_MUTEX_INITIALIZER;

/* Enter the barrier until @end: of each call that a signal ends, the next one has the rest. */
static int enter(struct acp_sync *sync, uint64_t end)
{
	int error;

	do {
		sync->node = UINT32_MAX;
		sync->timeout_ns = libacp_left(end);
		error = ioctl(libacp.fd, ACP_IOC_SYNC, sync) < 0 ? errno : 0;
	} while (error == EINTR && sync->timeout_ns);
	return error == EINTR ? ETIMEDOUT : error;
}

int libacp_barrier_wait(struct acp_sync *sync, uint64_t end)
{
	int error;

	pthread_mutex_lock(&barrier);
	error = enter(sync, end);
	if (!error && sync->node != libacp.node)
		error = -libacp_no_answer();
	pthread_mutex_unlock(&barrier);
	return -error;
}

int libacp_barrier(uint32_t flags)
{
	struct acp_sync sync = { .size = sizeof(sync), .flags = flags };

	return libacp_barrier_wait(&sync, UINT64_MAX);
}

void libacp_barrier_failed(const char *call, int error)
{
	if (error == -ECANCELED)
		libacp_job_aborted();
	if (error == -EPIPE &&
	    __atomic_load_n(&libacp.error_mode, __ATOMIC_RELAXED) == ACPX_ERRORS_ABORT)
		libacp_die_of_absence(call);
}

int libacp_barrier_in(const char *call, uint32_t flags)
{
	int error = libacp_barrier(flags);

	libacp_barrier_failed(call, error);
	errno = -error;
	return error ? -1 : 0;
}

int acp_sync(void)
{
	return libacp_in() ? libacp_barrier_in("acp_sync", 0) : -1;
}
