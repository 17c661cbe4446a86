// SPDX-License-Identifier: MIT
/*
 * Queues: that of the process, and those of single threads (context.c).
 *
 * A thread is bound to at most one context, and a context to at most one thread. Other users hold a
 * reference, which keeps the queue mapped. A queue that is closed while a thread is bound to it
 * (acp_finalize, acp_reset) appears as aborted to that thread until libacp_queue_now() detects that
 * it is closed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "acp_abi.h"
#include "core/process.h"
#include "core/queue.h"
#include "core/rings.h"

struct libacp_queue libacp_main = { .lock = PTHREAD_MUTEX_INITIALIZER };
_Thread_local struct libacp_queue *libacp_queue LIBACP_QUICK = &libacp_main;
_Thread_local struct libacp_queue *libacp_bound LIBACP_QUICK;

/* Guards the list of queues, their bindings and their references. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static struct libacp_queue *queues;

/* value: the queue to which a thread is bound; its destructor runs at the end of the thread */
static pthread_key_t ending;
static bool have_key;		/* guarded by the lock */

int libacp_queue_open(struct libacp_queue *queue, int fd, uint32_t depth, uint64_t first,
		      uint64_t sq_bytes, uint64_t cq_bytes)
{
	queue->sq_bytes = sq_bytes;
	queue->cq_bytes = cq_bytes;
	queue->sq = mmap(NULL, sq_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			 (off_t)ACP_MAP(ACP_MAP_SQ, 0));
	queue->cq = mmap(NULL, cq_bytes, PROT_READ, MAP_SHARED, fd, (off_t)ACP_MAP(ACP_MAP_CQ, 0));
	if (queue->sq == MAP_FAILED || queue->cq == MAP_FAILED)
		return -errno;
	if (!queue->sq || !queue->cq)
		return libacp_no_answer();
	queue->fd = fd;
	queue->number = (uint32_t)(first >> ACP_TICKET_BITS);
	libacp_rings_init(&queue->rings, queue->sq, queue->cq, depth);
	queue->rings.first = first;
	queue->rings.newest = first;
	queue->last_was_local = false;
	queue->loud_gone = false;
	queue->judged = first;
	queue->messages = first;
	queue->failures_seen = 0;
	queue->failures_gone = 0;
	return 0;
}

void libacp_queue_unmap(struct libacp_queue *queue)
{
	if (queue->sq && queue->sq != MAP_FAILED)
		munmap(queue->sq, queue->sq_bytes);
	if (queue->cq && queue->cq != MAP_FAILED)
		munmap(queue->cq, queue->cq_bytes);
	queue->sq = NULL;
	queue->cq = NULL;
}

/* ---- List of queues: called with the lock held ---- */

static struct libacp_queue **find(const struct libacp_queue *queue)
{
	struct libacp_queue **p = &queues;

	while (*p && *p != queue)
		p = &(*p)->next;
	return p;
}

/* Unbind a queue from its thread. A closed queue was kept only for its thread and is freed. */
static void let_go(struct libacp_queue *queue)
{
	if (queue == libacp_bound) {
		libacp_bound = NULL;
		libacp_queue = &libacp_main;
	}
	queue->bound = false;
	if (queue->closed)
		free(queue);
}

/* Close a queue: remove it from the list, wait until all references are released, unmap it. */
static void close_queue(struct libacp_queue *queue)
{
	static struct acp_cq gone = { .flags = ACP_CQ_ABORTED };

	*find(queue) = queue->next;
	while (queue->users)
		pthread_cond_wait(&released, &lock);
	libacp_queue_unmap(queue);
	close(queue->fd);
	pthread_mutex_destroy(&queue->lock);
	queue->rings.cq = &gone;
	__atomic_store_n(&queue->closed, true, __ATOMIC_RELEASE);
	if (queue == libacp_bound || !queue->bound)
		let_go(queue);
}

void libacp_queue_add(struct libacp_queue *queue)
{
	pthread_mutex_init(&queue->lock, NULL);
	pthread_mutex_lock(&lock);
	queue->next = queues;
	queues = queue;
	pthread_mutex_unlock(&lock);
}

struct libacp_queue *libacp_queue_hold(uint32_t number)
{
	struct libacp_queue *queue;

	if (!number)
		return &libacp_main;
	pthread_mutex_lock(&lock);
	for (queue = queues; queue && queue->number != number; queue = queue->next)
		;
	if (queue)
		queue->users++;
	pthread_mutex_unlock(&lock);
	return queue;
}

void libacp_queue_release(struct libacp_queue *queue)
{
	if (queue == &libacp_main)
		return;
	pthread_mutex_lock(&lock);
	if (!--queue->users)
		pthread_cond_broadcast(&released);
	pthread_mutex_unlock(&lock);
}

/* ---- Queue of the calling thread ---- */

struct libacp_queue *libacp_queue_fall_back(void)
{
	pthread_mutex_lock(&lock);
	if (libacp_bound) {
		pthread_setspecific(ending, NULL);
		let_go(libacp_bound);
	}
	pthread_mutex_unlock(&lock);
	return libacp_queue;
}

static void thread_ends(void *queue)
{
	pthread_mutex_lock(&lock);
	if (libacp_bound == queue)
		let_go(queue);
	pthread_mutex_unlock(&lock);
}

/* Called with the lock held. */
static int bind_to(struct libacp_queue *queue)
{
	if (!have_key && pthread_key_create(&ending, thread_ends))
		return -ENOMEM;
	have_key = true;
	if (queue && !*find(queue))
		return -EINVAL;
	if (queue == libacp_bound)
		return 0;
	if (queue && queue->bound)
		return -EBUSY;
	if (pthread_setspecific(ending, queue))
		return -ENOMEM;
	if (libacp_bound)
		let_go(libacp_bound);
	if (!queue)
		return 0;
	queue->bound = true;
	libacp_bound = queue;
	libacp_queue = queue;
	return 0;
}

int libacp_queue_bind(struct libacp_queue *queue)
{
	int error;

	pthread_mutex_lock(&lock);
	error = bind_to(queue);
	pthread_mutex_unlock(&lock);
	return error;
}

/* Reserve a queue for the caller, which is going to remove it. */
int libacp_queue_seize(struct libacp_queue *queue)
{
	int error = 0;

	pthread_mutex_lock(&lock);
	if (!queue || !*find(queue))
		error = -EINVAL;
	else if (queue->bound && queue != libacp_bound)
		error = -EBUSY;
	else
		queue->bound = true;
	pthread_mutex_unlock(&lock);
	return error;
}

void libacp_queue_remove(struct libacp_queue *queue)
{
	pthread_mutex_lock(&lock);
	if (queue == libacp_bound)
		pthread_setspecific(ending, NULL);
	else
		queue->bound = false;
	close_queue(queue);
	pthread_mutex_unlock(&lock);
}

/* ---- All queues ---- */

uint32_t libacp_queue_numbers(uint32_t *numbers, uint32_t most)
{
	struct libacp_queue *queue;
	uint32_t n = 0;

	pthread_mutex_lock(&lock);
	for (queue = queues; queue && n < most; queue = queue->next)
		numbers[n++] = queue->number;
	pthread_mutex_unlock(&lock);
	return n;
}

void libacp_queues_close(void)
{
	pthread_mutex_lock(&lock);
	while (queues)
		close_queue(queues);
	pthread_mutex_unlock(&lock);
}

/* The child has one thread only, and locks may be held by threads that do not exist in it. */
void libacp_queues_forget(void)
{
	struct libacp_queue *queue;

	for (queue = queues; queue; queue = queue->next)
		close(queue->fd);
	queues = NULL;
	libacp_bound = NULL;
	libacp_queue = &libacp_main;
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	if (have_key)
		pthread_setspecific(ending, NULL);
}
