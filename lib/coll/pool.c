// SPDX-License-Identifier: MIT
/* Queues for rounds of collectives: see pool.h. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "acp.h"
#include "coll/pool.h"
#include "core/context.h"
#include "core/failure.h"
#include "core/internal.h"
#include "core/queue.h"
#include "core/rings.h"
#include "core/submit.h"
#include "core/wait.h"

#define KEPT_MAX	8u		/* free queues */

struct libacp_pool_queue {
	struct libacp_pool_queue *next;
	struct libacp_queue *queue;
	acpx_context_t context;
	struct acpx_coll *owner;	/* NULL: free */
	bool resting;			/* the owner does not use it: its round has ended */
	uint64_t tail;			/* resting: the first ticket not judged */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct libacp_pool_queue *queues;	/* all; guarded by the lock, as the following */
static unsigned int kept;			/* free ones */

/* ---- The pool ---- */

static uint32_t depth_of(uint32_t entries)
{
	uint32_t depth = ACP_DEPTH_MIN;

	while (depth < entries)
		depth *= 2;
	return depth;
}

/* Have all commands of a resting queue succeeded, so that its owner need not know of them? */
static bool is_over(const struct libacp_pool_queue *q)
{
	const struct libacp_rings *r = &q->queue->rings;
	uint64_t ticket = q->tail;

	if (!q->resting || !libacp_queue_reached(q->queue, libacp_rings_newest(r)))
		return false;
	while (ticket <= libacp_rings_newest(r) && libacp_rings_status(r, ticket) == ACP_ST_OK)
		ticket++;
	return ticket > libacp_rings_newest(r);
}

/* Find the smallest queue that has room, among free or among resting ones. */
static struct libacp_pool_queue *find(uint32_t entries, bool resting)
{
	struct libacp_pool_queue *q, *best = NULL;

	for (q = queues; q; q = q->next)
		if (q->queue->rings.depth >= entries && (resting ? is_over(q) : !q->owner) &&
		    (!best || q->queue->rings.depth < best->queue->rings.depth))
			best = q;
	return best;
}

static struct libacp_pool_queue *take(struct acpx_coll *owner, uint32_t entries)
{
	struct libacp_pool_queue *q;

	pthread_mutex_lock(&lock);
	q = find(entries, false);
	if (q)
		kept--;
	else
		q = find(entries, true);
	if (q) {
		q->owner = owner;
		q->resting = false;
	}
	pthread_mutex_unlock(&lock);
	return q;
}

static int create(struct acpx_coll *owner, uint32_t depth, struct libacp_pool_queue **queue)
{
	struct libacp_pool_queue *q = malloc(sizeof(*q));
	int error = q ? acpx_context_create(depth, &q->context) : -ENOMEM;

	if (error) {
		free(q);
		return error;
	}
	q->queue = libacp_context_queue(q->context);
	q->owner = owner;
	q->resting = false;
	pthread_mutex_lock(&lock);
	q->next = queues;
	queues = q;
	pthread_mutex_unlock(&lock);
	*queue = q;
	return 0;
}

int libacp_pool_get(struct acpx_coll *owner, uint32_t entries, struct libacp_pool_queue **queue)
{
	if (entries > ACP_DEPTH_MAX)
		return -E2BIG;
	*queue = take(owner, entries);
	return *queue ? 0 : create(owner, depth_of(entries), queue);
}

/* Commands that are not complete end: failures of them are nobody's. */
static void destroy(struct libacp_pool_queue *q)
{
	if (!libacp_queue_seize(q->queue))
		libacp_queue_remove(q->queue);
	free(q);
}

static void unlink_queue(struct libacp_pool_queue *q)
{
	struct libacp_pool_queue **p = &queues;

	while (*p != q)
		p = &(*p)->next;
	*p = q->next;
}

void libacp_pool_put(struct libacp_pool_queue *queue)
{
	bool keep;

	pthread_mutex_lock(&lock);
	keep = kept < KEPT_MAX;
	if (keep) {
		queue->owner = NULL;
		kept++;
	} else {
		unlink_queue(queue);
	}
	pthread_mutex_unlock(&lock);
	if (!keep)
		destroy(queue);
}

void libacp_pool_rest(struct libacp_pool_queue *queue, uint64_t tail)
{
	pthread_mutex_lock(&lock);
	queue->tail = tail;
	queue->resting = true;
	pthread_mutex_unlock(&lock);
}

struct libacp_pool_queue *libacp_pool_resume(const struct acpx_coll *owner)
{
	struct libacp_pool_queue *q;

	pthread_mutex_lock(&lock);
	for (q = queues; q && !(q->resting && q->owner == owner); q = q->next)
		;
	if (q)
		q->resting = false;
	pthread_mutex_unlock(&lock);
	return q;
}

void libacp_pool_remove(struct libacp_pool_queue *queue)
{
	pthread_mutex_lock(&lock);
	unlink_queue(queue);
	pthread_mutex_unlock(&lock);
	destroy(queue);
}

struct acpx_coll *libacp_pool_owner(void)
{
	const struct libacp_pool_queue *q;
	struct acpx_coll *owner;

	pthread_mutex_lock(&lock);
	for (q = queues; q && !q->owner; q = q->next)
		;
	owner = q ? q->owner : NULL;
	pthread_mutex_unlock(&lock);
	return owner;
}

void libacp_pool_clear(void)
{
	struct libacp_pool_queue *q;

	while ((q = queues)) {
		queues = q->next;
		destroy(q);
	}
	kept = 0;
}

void libacp_pool_forget(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	queues = NULL;
	kept = 0;
}

/* ---- A queue ---- */

uint64_t libacp_pool_newest(const struct libacp_pool_queue *queue)
{
	return libacp_rings_newest(&queue->queue->rings);
}

uint64_t libacp_pool_push(struct libacp_pool_queue *queue, const struct acp_sqe *entry)
{
	libacp_take_slot(queue->queue);
	return libacp_rings_push(&queue->queue->rings, entry);
}

void libacp_pool_ring(struct libacp_pool_queue *queue)
{
	libacp_ring(queue->queue);
}

bool libacp_pool_room(const struct libacp_pool_queue *queue, uint32_t n)
{
	const struct libacp_rings *r = &queue->queue->rings;

	return libacp_rings_newest(r) - libacp_rings_completed(r) + n <= r->depth;
}

bool libacp_pool_reached(const struct libacp_pool_queue *queue, uint64_t ticket)
{
	return libacp_queue_reached(queue->queue, ticket);
}

int libacp_pool_wait(struct libacp_pool_queue *queue, uint64_t ticket, uint64_t timeout_ns)
{
	return libacp_wait_some(queue->queue, ticket, timeout_ns);
}

int libacp_pool_status(const struct libacp_pool_queue *queue, uint64_t ticket,
		       struct acp_sqe *entry)
{
	libacp_rings_entry(&queue->queue->rings, ticket, entry);
	return libacp_rings_status(&queue->queue->rings, ticket);
}
