// SPDX-License-Identifier: MIT
/* The job of which this process is a rank: joined by the first domain, left by the last one. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "acp_fi.h"

#define MS		1000000ULL	/* ns */
#define DEPTH_DEFAULT	4096u		/* of the queue of a process, without ACP_QUEUE_DEPTH */
#define CAP_MS		1000		/* of one poll() */
#define CAP_BOTH_MS	10		/* ... if not everything can wake it */

struct fi_acp_job fi_acp_job = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.wake_fd = -1,
	.timer_fd = -1,
};

/* ---- Memory and operations ---- */

/*
 * libacp keeps the status of as many accesses as its queue is deep. Each operation is one access,
 * or two with a notification.
 */
static unsigned int count_ops(void)
{
	const char *text = getenv("ACP_QUEUE_DEPTH");
	unsigned long depth = text ? strtoul(text, NULL, 0) : 0;

	if (!depth)
		depth = DEPTH_DEFAULT;
	return depth / 4 < FI_ACP_OPS ? (unsigned int)depth / 4 : FI_ACP_OPS;
}

static void free_memory(struct fi_acp_job *job)
{
	if (job->memory_key != ACP_ATKEY_NULL)
		acp_unregister_memory(job->memory_key);
	if (job->memory)
		munmap(job->memory, job->memory_size);
	free(job->ops);
	job->memory_key = ACP_ATKEY_NULL;
	job->memory = NULL;
	job->ops = NULL;
	job->free_ops = NULL;
}

static void fill_pool(struct fi_acp_job *job)
{
	const acp_ga_t ga = acp_query_ga(job->memory_key, job->memory);
	unsigned int i;

	job->free_ops = NULL;
	for (i = 0; i < job->op_count; i++) {
		struct fi_acp_op *op = &job->ops[i];

		op->scratch = job->memory + (size_t)i * FI_ACP_INJECT;
		op->scratch_ga = ga + (acp_ga_t)i * FI_ACP_INJECT;
		op->next = job->free_ops;
		job->free_ops = op;
	}
	job->free_count = job->op_count;
	job->free_bounces = UINT64_MAX >> (64 - FI_ACP_BOUNCES);
}

static int make_memory(struct fi_acp_job *job)
{
	void *memory;

	job->op_count = count_ops();
	job->ops = calloc(job->op_count, sizeof(*job->ops));
	if (!job->ops)
		return -FI_ENOMEM;
	job->memory_size = (size_t)job->op_count * FI_ACP_INJECT +
			   (size_t)FI_ACP_BOUNCES * FI_ACP_BOUNCE;
	memory = mmap(NULL, job->memory_size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -FI_ENOMEM;
	job->memory = memory;
	/* Children get none of it: an access that is under way must not miss a page. */
	job->memory_key = acpx_register_memory(memory, job->memory_size, 0,
					       ACPX_ACCESS_DONTFORK);
	if (job->memory_key == ACP_ATKEY_NULL)
		return fi_acp_failed(errno);
	fill_pool(job);
	return 0;
}

/* ---- Joining and leaving ---- */

static void leave(struct fi_acp_job *job)
{
	free_memory(job);
	if (job->wake_fd >= 0)
		close(job->wake_fd);
	if (job->timer_fd >= 0)
		close(job->timer_fd);
	job->wake_fd = -1;
	job->timer_fd = -1;
	/* Failures have been reported to the program: they must not end it now. */
	if (job->joined && acp_finalize() < 0)
		fi_acp_warn(DOMAIN, "not all ranks of the job have ended it\n");
	acpx_set_error_mode(job->error_mode);
}

static int join(struct fi_acp_job *job)
{
	int error;

	job->joined = acp_rank() < 0;
	if (job->joined && acp_init(NULL, NULL) < 0) {
		fi_acp_warn(DOMAIN, "acp_init() failed: its message is on standard error\n");
		return -FI_ENODEV;
	}
	job->error_mode = acpx_set_error_mode(ACPX_ERRORS_RETURN);
	job->rank = (uint32_t)acp_rank();
	job->procs = (uint32_t)acp_procs();
	job->queue = (struct fi_acp_queue){ .last = &job->queue.first };
	job->registrations = 0;
	job->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (job->wake_fd >= 0)
		job->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	error = job->timer_fd < 0 ? fi_acp_failed(errno) : make_memory(job);
	if (error)
		leave(job);
	return error;
}

int fi_acp_job_join(void)
{
	int error = 0;

	fi_acp_lock();
	if (!fi_acp_job.domains)
		error = join(&fi_acp_job);
	if (!error)
		fi_acp_job.domains++;
	fi_acp_unlock();
	return error;
}

int fi_acp_job_leave(void)
{
	fi_acp_lock();
	if (!--fi_acp_job.domains) {
		acp_complete(ACP_HANDLE_ALL);
		fi_acp_progress();
		leave(&fi_acp_job);
	}
	fi_acp_unlock();
	return 0;
}

/* ---- Sleeping ---- */

uint64_t fi_acp_now(void)
{
	struct timespec t = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t fi_acp_end(int timeout_ms)
{
	return timeout_ms < 0 ? UINT64_MAX : fi_acp_now() + (uint64_t)timeout_ms * MS;
}

/*
 * One call arms receives, another mailboxes, each instead of the other. *cap: how long a sleep may
 * take if some of them cannot wake it.
 */
static bool arm_arrivals(int *cap)
{
	acpx_mailbox_t boxes[FI_ACP_EPS];
	size_t i, count = 0, messages = 0;

	for (i = 0; i < fi_acp_job.ep_end; i++) {
		struct fi_acp_ep *ep = fi_acp_job.eps[i];

		if (ep && ep->notify)
			boxes[count++] = ep->notify;
		messages += ep && ep->messages;
	}
	if (messages > 1 || (messages && count))
		*cap = CAP_BOTH_MS;
	if (!messages)
		return acpx_mailbox_arm(boxes, count) != 0;
	for (i = 0; i < fi_acp_job.ep_end; i++) {
		struct fi_acp_ep *ep = fi_acp_job.eps[i];

		if (ep && ep->messages && fi_acp_messages_arm(ep))
			return true;
	}
	return false;
}

static bool arm_all(int *cap)
{
	const struct fi_acp_op *first = fi_acp_job.queue.first;
	const struct fi_acp_queue *queue;

	for (queue = fi_acp_job.queue.next; queue; queue = queue->next)
		if (queue->first)
			*cap = CAP_BOTH_MS;
	if (arm_arrivals(cap))
		return true;
	return acpx_access_arm(first ? first->handle : (acp_handle_t)ACP_HANDLE_NULL) != 0;
}

/* The program may poll without limit: it is woken after a short time for what cannot wake it. */
bool fi_acp_arm(void)
{
	struct itimerspec timer = { .it_value = { 0, 0 } };
	int cap = CAP_MS;

	if (arm_all(&cap))
		return true;
	if (cap < CAP_MS)
		timer.it_value.tv_nsec = (long)(cap * MS);
	timerfd_settime(fi_acp_job.timer_fd, 0, &timer, NULL);
	return false;
}

static int left_ms(uint64_t end, int cap)
{
	uint64_t now, left;

	if (end == UINT64_MAX)
		return cap;
	now = fi_acp_now();
	left = end > now ? (end - now + MS - 1) / MS : 0;
	return left < (uint64_t)cap ? (int)left : cap;
}

void fi_acp_sleep(uint64_t end)
{
	struct fi_acp_job *job = &fi_acp_job;
	struct pollfd fds[] = {
		{ .fd = acpx_event_fd(), .events = POLLIN },
		{ .fd = job->wake_fd, .events = POLLIN },
	};
	int cap = CAP_MS;
	uint64_t count;

	/* What has arrived may wait for another thread, which must get the lock. */
	if (arm_all(&cap)) {
		fi_acp_unlock();
		sched_yield();
		fi_acp_lock();
		return;
	}
	job->sleepers++;
	fi_acp_unlock();
	poll(fds, sizeof(fds) / sizeof(fds[0]), left_ms(end, cap));
	fi_acp_lock();
	/* The last one that wakes takes the signal away. */
	if (!--job->sleepers && read(job->wake_fd, &count, sizeof(count)) < 0)
		return;
}
