// SPDX-License-Identifier: MIT
/* Contexts: creation, binding and destruction of queues of single threads. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "acp.h"
#include "acp_abi.h"
#include "core/complete.h"
#include "core/context.h"
#include "core/process.h"
#include "core/queue.h"
#include "core/wait.h"

#define LINE	64

struct acpx_context {
	struct libacp_queue queue;
};

/* ---- All contexts ---- */

static void complete(struct libacp_queue *queue)
{
	if (libacp_queue_wait(queue) == -ECANCELED)
		libacp_job_aborted();
	libacp_queue_check(queue);
}

struct libacp_queue *libacp_contexts_complete(void)
{
	struct libacp_queue *bound = libacp_bound, *queue;
	uint32_t numbers[ACP_QUEUES_MAX], n;

	acpx_context_bind(NULL);
	n = libacp_queue_numbers(numbers, ACP_QUEUES_MAX);
	while (n--) {
		queue = libacp_queue_hold(numbers[n]);
		if (!queue)
			continue;
		complete(queue);
		libacp_queue_release(queue);
	}
	return bound;
}

struct libacp_queue *libacp_context_queue(acpx_context_t context)
{
	return &context->queue;
}

/* ---- The public functions ---- */

static int attach(struct libacp_queue *queue, unsigned int depth)
{
	struct acp_attach a = { .size = sizeof(a), .fd = libacp.fd, .depth = depth };
	int fd = open(ACP_DEVICE, O_RDWR | O_CLOEXEC), error;

	if (fd < 0)
		return -errno;
	error = ioctl(fd, ACP_IOC_ATTACH, &a) < 0 ? -errno : a.sq_bytes ? 0 : libacp_no_answer();
	if (!error)
		error = libacp_queue_open(queue, fd, depth, a.first, a.sq_bytes, a.cq_bytes);
	if (error) {
		libacp_queue_unmap(queue);
		close(fd);
	}
	return error;
}

int acpx_context_create(unsigned int depth, acpx_context_t *context)
{
	struct acpx_context *c;
	int error;

	if (!libacp_in())
		return -ENOTCONN;
	if (!context)
		return -EINVAL;
	/* Avoid false sharing with memory of other threads. */
	c = aligned_alloc(LINE, (sizeof(*c) + LINE - 1) / LINE * LINE);
	if (!c)
		return -ENOMEM;
	*c = (struct acpx_context){ .queue.fd = -1 };
	error = attach(&c->queue, depth ? depth : libacp.boot.depth);
	if (error) {
		free(c);
		return error;
	}
	libacp_queue_add(&c->queue);
	*context = c;
	return 0;
}

int acpx_context_bind(acpx_context_t context)
{
	if (!libacp_in())
		return -ENOTCONN;
	return libacp_queue_bind(context ? &context->queue : NULL);
}

int acpx_context_destroy(acpx_context_t context)
{
	struct libacp_queue *queue = context ? &context->queue : NULL;
	int error;

	if (!libacp_in())
		return -ENOTCONN;
	error = libacp_queue_seize(queue);
	if (error)
		return error;
	complete(queue);
	libacp_queue_remove(queue);
	return 0;
}
