// SPDX-License-Identifier: GPL-2.0-only
/* Long copies within a node: see copies.h. */
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include <linux/workqueue.h>
#include "chain.h"
#include "copies.h"
#include "../mem/region.h"
#include "reduce.h"
#include "station.h"
#include "strided.h"

#define STEP	65536	/* bytes copied between two calls of cond_resched() */
#define LEAST	4096	/* minimum number of bytes charged for a copy */

static struct workqueue_struct *worker;

struct long_copy {
	struct work_struct work;
	struct list_head link;		/* in queue->copies while it waits; under its lock */
	refcount_t refs;		/* one until it has ended, one while its work is queued */
	struct acp_job *job;
	struct acp_queue *queue;
	struct acp_msg m;
	u64 offset;			/* bytes done so far */
	struct acp_item *done;
	struct acp_peer *peer;
};

/* ---- copying ---- */

/* Part of what is no plain copy, or with a size of 0 the check of all of it. */
static noinline u8 others_now(struct acp_job *job, const struct acp_msg *m, u64 offset, u64 size)
{
	if (m->op == ACP_OP_STRIDED)
		return acp_strided_local(job, m, offset, size);
	if (m->op >= ACP_OP_REDUCE)
		return acp_reduce_local(job, m, offset, size);
	return acp_chain_local(job, m, offset, size);
}

/* Has it more than two ranges, or are numbers combined? */
static bool is_other(const struct acp_msg *m)
{
	return m->op >= ACP_OP_STRIDED &&
	       (m->op == ACP_OP_STRIDED || m->op >= ACP_OP_REDUCE || acp_op_chain(m->op));
}

u8 acp_copies_now(struct acp_job *job, const struct acp_msg *m, u64 offset, u64 size)
{
	struct acp_region *src, *dst;
	u8 status;

	if (unlikely(is_other(m)))
		return others_now(job, m, offset, size);
	if (!size)
		return ACP_ST_OK;
	src = acp_region_get(job, m->src + offset, size, m->origin, ACP_ACCESS_READ, &status);
	if (!src)
		return status;
	dst = acp_region_get(job, m->dst + offset, size, m->origin, ACP_ACCESS_WRITE, &status);
	if (dst) {
		acp_region_copy(dst, acp_ga_offset(&job->ga, m->dst + offset), src,
				acp_ga_offset(&job->ga, m->src + offset), size);
		acp_region_put(dst);
	}
	acp_region_put(src);
	return status;
}

/* The whole range must be valid before the first byte is written. */
static u8 check(struct acp_job *job, const struct acp_msg *m)
{
	struct acp_region *r;
	u8 status;

	if (unlikely(is_other(m)))
		return others_now(job, m, 0, 0);
	r = acp_region_get(job, m->src, m->size, m->origin, ACP_ACCESS_READ, &status);
	if (!r)
		return status;
	acp_region_put(r);
	r = acp_region_get(job, m->dst, m->size, m->origin, ACP_ACCESS_WRITE, &status);
	if (r)
		acp_region_put(r);
	return status;
}

static void put(struct long_copy *c)
{
	struct acp_job *job = c->job;

	if (!refcount_dec_and_test(&c->refs))
		return;
	if (c->queue)
		acp_queue_put(c->queue);
	kfree(c);
	if (atomic_dec_and_test(&job->copies))
		wake_up_var(&job->copies);
	acp_job_put(job);
}

static void end(struct long_copy *c, u8 status)
{
	local_bh_disable();
	acp_station_copied(c->job, &c->m, status, c->done, c->peer);
	local_bh_enable();
	put(c);
}

/*
 * Copy at most "most" bytes, rounded up to whole steps, and return how many were copied.  *ended:
 * the copy has ended, and may be freed.
 */
static u64 proceed(struct long_copy *c, u64 most, bool *ended)
{
	u8 status = c->offset ? ACP_ST_OK : check(c->job, &c->m);
	u64 done = 0, n;

	while (!status && done < most && c->offset < c->m.size) {
		n = min_t(u64, STEP, c->m.size - c->offset);
		status = acp_copies_now(c->job, &c->m, c->offset, n);
		c->offset += n;
		done += n;
		cond_resched();
	}
	*ended = status || c->offset == c->m.size;
	if (*ended)
		end(c, status);
	return done;
}

/* ---- doing copies ---- */

static void work(struct work_struct *work)
{
	struct long_copy *c = container_of(work, struct long_copy, work);
	struct acp_queue *queue = c->queue;
	bool mine = !queue, ended;

	if (queue) {
		spin_lock_bh(&queue->lock);
		mine = !list_empty(&c->link);
		list_del_init(&c->link);
		spin_unlock_bh(&queue->lock);
	}
	if (mine)
		proceed(c, U64_MAX, &ended);
	put(c);
}

static void to_worker(struct long_copy *c)
{
	refcount_inc(&c->refs);
	if (!queue_work(worker, &c->work))
		refcount_dec(&c->refs);
}

static void wait_in_list(struct long_copy *c, bool first)
{
	struct acp_queue *queue = c->queue;

	spin_lock_bh(&queue->lock);
	if (first)
		list_add(&c->link, &queue->copies);
	else
		list_add_tail(&c->link, &queue->copies);
	smp_mb();	/* in the list, before reading helpers: pairs with acp_copies_leave() */
	/* Nobody takes it while we hold the lock. */
	if (first || !atomic_read(&queue->helpers))
		to_worker(c);
	spin_unlock_bh(&queue->lock);
}

bool acp_copies_start(struct acp_job *job, const struct acp_msg *m, struct acp_queue *queue,
		      struct acp_item *done, struct acp_peer *peer)
{
	struct long_copy *c = kmalloc(sizeof(*c), GFP_ATOMIC | __GFP_NOWARN);

	if (!c)
		return false;
	INIT_WORK(&c->work, work);
	INIT_LIST_HEAD(&c->link);
	refcount_set(&c->refs, 1);
	refcount_inc(&job->refs);
	atomic_inc(&job->copies);
	c->job = job;
	c->queue = queue;
	c->m = *m;
	c->offset = 0;
	c->done = done;
	c->peer = peer;
	if (queue) {
		acp_queue_get(queue);
		wait_in_list(c, false);
	} else {
		/*
		 * The first reference is dropped at the end of the copy, this one after its work.
		 */
		to_worker(c);
	}
	return true;
}

static struct long_copy *take(struct acp_queue *queue)
{
	struct long_copy *c;

	spin_lock_bh(&queue->lock);
	c = list_first_entry_or_null(&queue->copies, struct long_copy, link);
	if (c)
		list_del_init(&c->link);
	spin_unlock_bh(&queue->lock);
	return c;
}

void acp_copies_take(struct acp_queue *queue, u64 *room)
{
	struct long_copy *c;
	bool ended;

	while (*room && !signal_pending(current) && (c = take(queue))) {
		/*
		 * Charge copies that fail at once, too: they could follow each other without end.
		 */
		*room -= min(*room, max_t(u64, proceed(c, *room, &ended), LEAST));
		if (!ended)
			wait_in_list(c, true);
	}
}

/* Give the copies that are left to the workqueue. */
void acp_copies_give(struct acp_queue *queue)
{
	struct long_copy *c;

	spin_lock_bh(&queue->lock);
	list_for_each_entry(c, &queue->copies, link)
		to_worker(c);
	spin_unlock_bh(&queue->lock);
}

/* ---- the workqueue ---- */

/*
 * Does not flush the workqueue: copies of other jobs may be very long, and the caller holds
 * node->lock.
 */
void acp_copies_flush(struct acp_job *job)
{
	wait_var_event(&job->copies, !atomic_read_acquire(&job->copies));
}

int acp_copies_init(void)
{
	worker = alloc_workqueue("acp", WQ_UNBOUND, 0);
	return worker ? 0 : -ENOMEM;
}

void acp_copies_exit(void)
{
	destroy_workqueue(worker);
}
