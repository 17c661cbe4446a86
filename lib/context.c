// SPDX-License-Identifier: MIT
/*
 * Contexts: queues of single threads.
 *
 * A thread is bound to one at most, and a context to one thread.  Whoever else
 * has to do with it holds it, so that it is not unmapped meanwhile.  A context
 * that ends while a thread is bound to it (acp_finalize, acp_reset) looks to
 * that thread like a queue that was aborted, until it has looked closer.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libacp.h"

#define LINE	64

struct acpx_context {
	struct libacp_lane lane;
};

struct libacp_lane libacp_main = { .lock = PTHREAD_MUTEX_INITIALIZER };
_Thread_local struct libacp_lane *libacp_lane LIBACP_QUICK = &libacp_main;
_Thread_local struct libacp_lane *libacp_bound LIBACP_QUICK;

/* Guards those that there are, who is bound to them, and who holds them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static struct libacp_lane *contexts;

static pthread_key_t ending;	/* what the thread is bound to, for when it ends */
static bool have_key;		/* under the lock */

/* ---- Lanes ---- */

int libacp_lane_open(struct libacp_lane *lane, int fd, uint32_t depth, uint64_t first,
		     uint64_t sq_bytes, uint64_t cq_bytes)
{
	lane->sq_bytes = sq_bytes;
	lane->cq_bytes = cq_bytes;
	lane->sq = mmap(NULL, sq_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			(off_t)ACP_MAP(ACP_MAP_SQ, 0));
	lane->cq = mmap(NULL, cq_bytes, PROT_READ, MAP_SHARED, fd, (off_t)ACP_MAP(ACP_MAP_CQ, 0));
	if (lane->sq == MAP_FAILED || lane->cq == MAP_FAILED)
		return -errno;
	lane->fd = fd;
	lane->number = (uint32_t)(first >> ACP_TICKET_BITS);
	libacp_queue_init(&lane->queue, lane->sq, lane->cq, depth);
	lane->queue.first = first;
	lane->queue.newest = first;
	lane->last_was_local = false;
	lane->loud_gone = false;
	lane->judged = first;
	lane->failures_seen = 0;
	lane->failures_gone = 0;
	return 0;
}

void libacp_lane_unmap(struct libacp_lane *lane)
{
	if (lane->sq && lane->sq != MAP_FAILED)
		munmap(lane->sq, lane->sq_bytes);
	if (lane->cq && lane->cq != MAP_FAILED)
		munmap(lane->cq, lane->cq_bytes);
	lane->sq = NULL;
	lane->cq = NULL;
}

/* ---- Who is there: under the lock ---- */

static struct libacp_lane **find(const struct libacp_lane *lane)
{
	struct libacp_lane **p = &contexts;

	while (*p && *p != lane)
		p = &(*p)->next;
	return p;
}

/* Nobody is bound to it any more: nor is the caller; what is closed was there for that only. */
static void let_go(struct libacp_lane *lane)
{
	if (lane == libacp_bound) {
		libacp_bound = NULL;
		libacp_lane = &libacp_main;
	}
	lane->bound = false;
	if (lane->closed)
		free(lane);
}

/* Nobody finds it any more, nobody holds it: it is over. */
static void close_context(struct libacp_lane *lane)
{
	static struct acp_cq gone = { .flags = ACP_CQ_ABORTED };

	*find(lane) = lane->next;
	while (lane->users)
		pthread_cond_wait(&released, &lock);
	libacp_lane_unmap(lane);
	close(lane->fd);
	pthread_mutex_destroy(&lane->lock);
	lane->queue.cq = &gone;
	__atomic_store_n(&lane->closed, true, __ATOMIC_RELEASE);
	if (lane == libacp_bound || !lane->bound)
		let_go(lane);
}

struct libacp_lane *libacp_lane_hold(uint32_t number)
{
	struct libacp_lane *lane;

	if (!number)
		return &libacp_main;
	pthread_mutex_lock(&lock);
	for (lane = contexts; lane && lane->number != number; lane = lane->next)
		;
	if (lane)
		lane->users++;
	pthread_mutex_unlock(&lock);
	return lane;
}

void libacp_lane_release(struct libacp_lane *lane)
{
	if (lane == &libacp_main)
		return;
	pthread_mutex_lock(&lock);
	if (!--lane->users)
		pthread_cond_broadcast(&released);
	pthread_mutex_unlock(&lock);
}

struct libacp_lane *libacp_lane_fall_back(void)
{
	pthread_mutex_lock(&lock);
	if (libacp_bound) {
		pthread_setspecific(ending, NULL);
		let_go(libacp_bound);
	}
	pthread_mutex_unlock(&lock);
	return libacp_lane;
}

/* ---- All of them ---- */

static void complete(struct libacp_lane *lane)
{
	if (libacp_lane_wait(lane) == -ECANCELED)
		libacp_job_aborted();
	libacp_lane_check(lane);
}

struct libacp_lane *libacp_contexts_complete(void)
{
	struct libacp_lane *bound = libacp_bound, *lane;
	uint32_t numbers[ACP_QUEUES_MAX], n = 0;

	acpx_context_bind(NULL);
	pthread_mutex_lock(&lock);
	for (lane = contexts; lane && n < ACP_QUEUES_MAX; lane = lane->next)
		numbers[n++] = lane->number;
	pthread_mutex_unlock(&lock);
	while (n--) {
		lane = libacp_lane_hold(numbers[n]);
		if (!lane)
			continue;
		complete(lane);
		libacp_lane_release(lane);
	}
	return bound;
}

void libacp_contexts_close(void)
{
	pthread_mutex_lock(&lock);
	while (contexts)
		close_context(contexts);
	pthread_mutex_unlock(&lock);
}

/* A child of fork has one thread, and locks of others that are not there. */
void libacp_contexts_forget(void)
{
	struct libacp_lane *lane;

	for (lane = contexts; lane; lane = lane->next)
		close(lane->fd);
	contexts = NULL;
	libacp_bound = NULL;
	libacp_lane = &libacp_main;
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	if (have_key)
		pthread_setspecific(ending, NULL);
}

/* ---- The public functions ---- */

static int attach(struct libacp_lane *lane, unsigned int depth)
{
	struct acp_attach a = { .size = sizeof(a), .fd = libacp.fd, .depth = depth };
	int fd = open(ACP_DEVICE, O_RDWR | O_CLOEXEC), error;

	if (fd < 0)
		return -errno;
	error = ioctl(fd, ACP_IOC_ATTACH, &a) < 0 ? -errno : 0;
	if (!error)
		error = libacp_lane_open(lane, fd, depth, a.first, a.sq_bytes, a.cq_bytes);
	if (error) {
		libacp_lane_unmap(lane);
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
	/* Its thread shares no cache line with others'. */
	c = aligned_alloc(LINE, (sizeof(*c) + LINE - 1) / LINE * LINE);
	if (!c)
		return -ENOMEM;
	*c = (struct acpx_context){ .lane.fd = -1 };
	error = attach(&c->lane, depth ? depth : libacp.boot.depth);
	if (error) {
		free(c);
		return error;
	}
	pthread_mutex_init(&c->lane.lock, NULL);
	pthread_mutex_lock(&lock);
	c->lane.next = contexts;
	contexts = &c->lane;
	pthread_mutex_unlock(&lock);
	*context = c;
	return 0;
}

static void thread_ends(void *lane)
{
	pthread_mutex_lock(&lock);
	if (libacp_bound == lane)
		let_go(lane);
	pthread_mutex_unlock(&lock);
}

/* Under the lock. */
static int bind_to(struct libacp_lane *lane)
{
	if (!have_key && pthread_key_create(&ending, thread_ends))
		return -ENOMEM;
	have_key = true;
	if (lane && !*find(lane))
		return -EINVAL;
	if (lane == libacp_bound)
		return 0;
	if (lane && lane->bound)
		return -EBUSY;
	if (pthread_setspecific(ending, lane))
		return -ENOMEM;
	if (libacp_bound)
		let_go(libacp_bound);
	if (!lane)
		return 0;
	lane->bound = true;
	libacp_bound = lane;
	libacp_lane = lane;
	return 0;
}

int libacp_lane_bind(struct libacp_lane *lane)
{
	int error;

	pthread_mutex_lock(&lock);
	error = bind_to(lane);
	pthread_mutex_unlock(&lock);
	return error;
}

int acpx_context_bind(acpx_context_t context)
{
	if (!libacp_in())
		return -ENOTCONN;
	return libacp_lane_bind(context ? &context->lane : NULL);
}

/* It is the caller's from now on. */
static int seize(struct libacp_lane *lane)
{
	int error = 0;

	pthread_mutex_lock(&lock);
	if (!lane || !*find(lane))
		error = -EINVAL;
	else if (lane->bound && lane != libacp_bound)
		error = -EBUSY;
	else
		lane->bound = true;
	pthread_mutex_unlock(&lock);
	return error;
}

int acpx_context_destroy(acpx_context_t context)
{
	struct libacp_lane *lane = context ? &context->lane : NULL;
	int error;

	if (!libacp_in())
		return -ENOTCONN;
	error = seize(lane);
	if (error)
		return error;
	complete(lane);
	pthread_mutex_lock(&lock);
	if (lane == libacp_bound)
		pthread_setspecific(ending, NULL);
	else
		lane->bound = false;
	close_context(lane);
	pthread_mutex_unlock(&lock);
	return 0;
}
