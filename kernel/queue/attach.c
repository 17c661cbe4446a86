// SPDX-License-Identifier: GPL-2.0-only
/* Additional queues of a rank: see attach.h. */
#include <linux/slab.h>
#include "attach.h"
#include "../job/job.h"
#include "../job/node.h"
#include "../exec/poller.h"
#include "queue.h"

/*
 * The rings of a closed queue are freed a grace period later, and not charged to the user
 * meanwhile: a rank that has closed this much waits for a grace period.
 */
#define FREED_KIB_MAX	(16 << 10)

/* ---- attaching ---- */

static void init_queue(struct acp_queue *queue, struct acp_rank *rank)
{
	queue->rank = rank;
	queue->job = rank->job;
	queue->origin = rank->number;
	kref_init(&queue->refs);
	spin_lock_init(&queue->lock);
	INIT_LIST_HEAD(&queue->copies);
	init_waitqueue_head(&queue->wait);
	acp_poller_prepare(queue);
}

void acp_attach_init(struct acp_rank *rank, struct acp_job *job, u32 number)
{
	static struct lock_class_key queues_key;	/* BH off, unlike the lock of regions */

	rank->job = job;
	refcount_inc(&job->refs);
	rank->number = number;
	rank->mm = current->mm;
	init_queue(&rank->own, rank);
	init_waitqueue_head(&rank->watchers);
	mutex_init(&rank->queues_lock);
	xa_init_flags(&rank->queues, XA_FLAGS_LOCK_BH);
	lockdep_set_class(&rank->queues.xa_lock, &queues_key);
	xa_init(&rank->lists);
	acp_worker_prepare(rank);
	acp_poller_prepare_rank(rank);
	mutex_init(&rank->reg_lock);
	xa_init_flags(&rank->regions, XA_FLAGS_ALLOC);
}

static struct acp_queue *create(struct acp_rank *rank, u32 depth, u32 number)
{
	struct acp_queue *queue;
	unsigned long kib = 0;
	int err = acp_queue_price(rank->job->node, depth, &kib);

	err = err ?: acp_user_charge(rank->user, ACP_LIMIT_USER_MEMORY, kib);
	if (err)
		return ERR_PTR(err);
	queue = kzalloc(sizeof(*queue), GFP_KERNEL_ACCOUNT);
	if (!queue) {
		acp_user_uncharge(rank->user, ACP_LIMIT_USER_MEMORY, kib);
		return ERR_PTR(-ENOMEM);
	}
	acp_rank_get(rank);
	init_queue(queue, rank);
	err = acp_queue_create(queue, depth, number);
	if (!err)
		err = xa_insert_bh(&rank->queues, number, queue, GFP_KERNEL_ACCOUNT);
	if (!err)
		return queue;
	acp_queue_put(queue);
	return ERR_PTR(err);
}

/* The caller holds queues_lock. */
static struct acp_queue *add(struct acp_rank *rank, u32 depth)
{
	struct acp_queue *queue;

	if (rank->n_queues == ACP_QUEUES_MAX || rank->last_queue == ACP_QUEUE_LAST)
		return ERR_PTR(-ENOSPC);
	queue = create(rank, depth, rank->last_queue + 1);
	if (IS_ERR(queue))
		return queue;
	rank->last_queue++;
	WRITE_ONCE(rank->n_queues, rank->n_queues + 1);
	smp_mb();	/* pairs with xchg() in acp_barrier_abort(): it finds us, or we see it */
	if (READ_ONCE(rank->job->aborted))
		acp_queue_abort(queue);
	acp_poller_add(rank->job->node, queue);
	acp_rank_changed(rank);
	return queue;
}

struct acp_queue *acp_attach(struct acp_rank *rank, struct acp_attach *a)
{
	struct acp_queue *queue;

	mutex_lock(&rank->queues_lock);
	queue = add(rank, a->depth);
	mutex_unlock(&rank->queues_lock);
	if (IS_ERR(queue))
		return queue;
	a->queue = acp_queue_number(queue);
	a->first = queue->first;
	a->sq_bytes = queue->sq_bytes;
	a->cq_bytes = queue->cq_bytes;
	return queue;
}

/* ---- closing ---- */

/* End the commands in flight; late completions find them ended, or find no queue. */
static void shut(struct acp_queue *queue)
{
	struct acp_rank *rank = queue->rank;
	struct acp_node *node = queue->job->node;

	acp_poller_unlink(node, queue);
	acp_queue_cut(queue);
	acp_poller_gone(node, queue);
	xa_erase_bh(&rank->queues, acp_queue_number(queue));
	WRITE_ONCE(rank->n_queues, rank->n_queues - 1);
	acp_poller_stop(queue);
	acp_rank_changed(rank);
}

/* The caller holds queues_lock. */
static void wait_for_rings(struct acp_rank *rank, u32 kib)
{
	rank->freed_kib += kib;
	if (rank->freed_kib < FREED_KIB_MAX)
		return;
	rank->freed_kib = 0;
	synchronize_rcu();
}

void acp_attach_leave(struct acp_queue *queue)
{
	struct acp_rank *rank = queue->rank;

	mutex_lock(&rank->queues_lock);
	if (!queue->closed) {
		shut(queue);
		wait_for_rings(rank, queue->ring_kib);
	}
	mutex_unlock(&rank->queues_lock);
	/*
	 * Even if it was closed before: a doorbell that was in progress may have begun moderation.
	 */
	acp_poller_stop(queue);
	acp_queue_put(queue);
}

void acp_attach_end(struct acp_rank *rank)
{
	struct acp_queue *queue;
	unsigned long i;

	mutex_lock(&rank->queues_lock);
	xa_for_each(&rank->queues, i, queue)
		shut(queue);
	mutex_unlock(&rank->queues_lock);
}
