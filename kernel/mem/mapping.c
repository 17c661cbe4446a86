// SPDX-License-Identifier: GPL-2.0-only
/* Does the process still have the registered pages: see mapping.h. */
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include "mapping.h"
#include "region.h"
#include "watch.h"

#define LOOK_BATCH	1024	/* pages compared before mmap_lock is dropped */
#define LATER_MAX	13	/* looks are repeated after at most 2^13 ms, ... */
#define LATER_SHARE	8	/* ... or after so many times the duration of the last one */

/*
 * All users share these workers. They do not wait for a process that changes its mapping: it can
 * take as long as a file system in user space likes.
 */
static struct workqueue_struct *looks;

/* Numbers of pages. */
struct span {
	unsigned long first, end;
};

/* ---- the notifier ---- */

/* Record pages to be compared.  Under changed_lock. */
static void add(struct acp_region *r, struct span more)
{
	if (r->changed == r->changed_end) {
		r->changed = more.first;
		r->changed_end = more.end;
	} else {
		r->changed = min(r->changed, more.first);
		r->changed_end = max(r->changed_end, more.end);
	}
}

/* The mapping of these pages may change: have them compared as soon as possible. */
static void note_change(struct acp_region *r, const struct mmu_notifier_range *range)
{
	struct span change = {
		(max(range->start, r->start) - r->start) >> PAGE_SHIFT,
		min(PAGE_ALIGN(range->end - r->start) >> PAGE_SHIFT, r->npages),
	};
	bool ready;

	spin_lock(&r->changed_lock);
	add(r, change);
	ready = r->ready;
	r->unseen = min_t(u8, r->unseen, 1);	/* should it still not be seen, look again soon */
	spin_unlock(&r->changed_lock);
	if (ready)	/* its timer may be running, or begin to just now */
		mod_delayed_work(looks, &r->recheck, 0);
}

static void revoke(struct acp_region *r)
{
	WRITE_ONCE(r->revoked, true);
	acp_watch_gone(r->owner);
}

/*
 * The mapping changes.  Unmapping revokes the region at once.  Other changes can
 * be harmless (reclaim, an attempted migration, write protection by fork), so a
 * worker checks whether the process still has our pages.  They are pinned: nobody
 * else can get them until then.  Changes of protection leave the pages as they are.
 *
 * Context: any that may take a lock; it may not sleep if the range is not blockable.
 */
static bool invalidate(struct mmu_interval_notifier *n, const struct mmu_notifier_range *range,
		       unsigned long seq)
{
	struct acp_region *r = container_of(n, struct acp_region, notifier);

	spin_lock(&r->changed_lock);
	mmu_interval_set_seq(n, seq);
	spin_unlock(&r->changed_lock);
	switch (range->event) {
	case MMU_NOTIFY_UNMAP:
	case MMU_NOTIFY_RELEASE:
		revoke(r);
		break;
	case MMU_NOTIFY_CLEAR:
		note_change(r, range);
		break;
	default:
		break;
	}
	return true;
}

static const struct mmu_interval_notifier_ops notifier_ops = {
	.invalidate = invalidate,
};

/* ---- the worker ---- */

static struct span take_changes(struct acp_region *r)
{
	struct span changes;

	spin_lock(&r->changed_lock);
	changes = (struct span){ r->changed, r->changed_end };
	r->changed = r->changed_end;
	spin_unlock(&r->changed_lock);
	return changes;
}

/* Has a change of the mapping begun since mmu_interval_read_begin() returned this number? */
static bool changed_since(struct acp_region *r, unsigned long seq)
{
	bool changed;

	spin_lock(&r->changed_lock);
	changed = mmu_interval_read_retry(&r->notifier, seq);
	spin_unlock(&r->changed_lock);
	return changed;
}

/*
 * Compare a batch of pages.  The notifier is called before the mapping changes: wait until changes
 * are complete.  A change that begins after the wait is recorded and queues the work again.  It can
 * hide pages for a moment: a page that is missing then proves nothing.  wait: also for mmap_lock.
 *
 * Returns true if all pages were seen, or one is known to be lost.
 */
static bool compare(struct acp_region *r, struct span batch, bool wait)
{
	unsigned long seq = mmu_interval_read_begin(&r->notifier);

	switch (acp_pages_look(&r->pages, r->mm, batch.first, batch.end, wait, &r->revoked)) {
	case ACP_PAGES_SAME:
		return true;
	case ACP_PAGES_UNSEEN:
		return false;
	case ACP_PAGES_MISSING:
		if (changed_since(r, seq))
			return false;
		fallthrough;
	case ACP_PAGES_OTHER:
		revoke(r);
	}
	return true;
}

/* Compare pages, until one is known to be lost.  Returns those that could not be seen. */
static struct span compare_all(struct acp_region *r, struct span todo, bool wait)
{
	struct span unseen = {}, batch = todo;

	for (; batch.first < todo.end && !READ_ONCE(r->revoked); batch.first = batch.end) {
		batch.end = min(todo.end, batch.first + LOOK_BATCH);
		if (compare(r, batch, wait))
			continue;
		if (!unseen.end)
			unseen.first = batch.first;
		unseen.end = batch.end;
	}
	return unseen;
}

/*
 * Look again at pages that could not be seen, less and less often: a user may have many regions
 * that stay so.
 */
static void look_later(struct acp_region *r, struct span unseen, unsigned long begun)
{
	unsigned long delay, spent = jiffies - begun;

	spin_lock(&r->changed_lock);
	add(r, unseen);
	if (r->unseen <= LATER_MAX)
		r->unseen++;
	delay = max(msecs_to_jiffies(1 << (r->unseen - 1)), spent * LATER_SHARE);
	spin_unlock(&r->changed_lock);
	queue_delayed_work(looks, &r->recheck, delay);
}

static void none_unseen(struct acp_region *r)
{
	spin_lock(&r->changed_lock);
	r->unseen = 0;
	spin_unlock(&r->changed_lock);
}

/*
 * Accesses go on meanwhile, to the pinned pages.  Until a page is known to be lost it is the page
 * that the process has, or would get at its next access.
 */
static void look(struct acp_region *r, bool wait)
{
	unsigned long begun = jiffies;
	struct span unseen;

	if (!mmget_not_zero(r->mm))
		return;
	unseen = compare_all(r, take_changes(r), wait);
	if (unseen.end && !READ_ONCE(r->revoked))
		look_later(r, unseen, begun);
	else
		none_unseen(r);
	mmput(r->mm);
}

static void recheck(struct work_struct *work)
{
	look(container_of(to_delayed_work(work), struct acp_region, recheck), false);
}

static bool has_changes(struct acp_region *r)
{
	bool changed;

	spin_lock(&r->changed_lock);
	changed = r->changed != r->changed_end;
	spin_unlock(&r->changed_lock);
	return changed;
}

/* Allow the worker to run. */
static void set_ready(struct acp_region *r)
{
	spin_lock(&r->changed_lock);
	r->ready = true;
	spin_unlock(&r->changed_lock);
}

/* ---- for regions ---- */

int acp_mapping_init(void)
{
	looks = alloc_workqueue("acp_mapping", WQ_UNBOUND, 0);
	return looks ? 0 : -ENOMEM;
}

void acp_mapping_exit(void)
{
	destroy_workqueue(looks);
}

int acp_mapping_attach(struct acp_region *r)
{
	int err;

	INIT_DELAYED_WORK(&r->recheck, recheck);
	spin_lock_init(&r->changed_lock);
	err = acp_pages_make(&r->pages, r->start, r->npages, !(r->access & ACP_ACCESS_RO));
	if (err)
		return err;
	err = mmu_interval_notifier_insert(&r->notifier, r->mm, r->start,
					   r->npages << PAGE_SHIFT, &notifier_ops);
	if (err)
		return err;
	r->notified = true;
	mmu_interval_read_begin(&r->notifier);
	err = acp_pages_pin(&r->pages);
	if (err)
		return err;
	set_ready(r);
	if (has_changes(r))
		look(r, true);
	return READ_ONCE(r->revoked) ? -EFAULT : 0;
}

void acp_mapping_settle(struct acp_region *r)
{
	flush_work(&r->recheck.work);
	if (has_changes(r))
		look(r, true);
}

void acp_mapping_detach(struct acp_region *r)
{
	if (r->notified) {
		mmu_interval_notifier_remove(&r->notifier);
		cancel_delayed_work_sync(&r->recheck);
	}
	acp_pages_drop(&r->pages);
}
