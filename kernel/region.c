// SPDX-License-Identifier: GPL-2.0-only
/* Regions: see region.h. */
#include <linux/capability.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "job.h"
#include "limits.h"
#include "region.h"
#include "watch.h"
#include "wide.h"

#define LOOK_BATCH 1024	/* pages looked at under one hold of mmap_lock */
#define WIDE_LEAST SZ_32K	/* bytes that are worth saving registers for */

/* ---- access, any context ---- */

static struct acp_region *find(struct acp_context *ctx, u32 stag)
{
	struct acp_region *r = acp_near_look(&ctx->near_regions, stag);

	return r && r->stag == stag ? r : xa_load(&ctx->regions, stag);
}

struct acp_region *acp_region_get_bh(struct acp_job *job, u64 ga, u64 size, u32 rank, u32 need,
				     u8 *status)
{
	u32 owner = acp_ga_rank(&job->ga, ga);
	struct acp_context *ctx = acp_job_context(job, owner);
	struct acp_region *r = NULL;

	*status = ACP_ST_RANK;
	if (ctx) {
		*status = ACP_ST_STAG;
		r = find(ctx, acp_ga_stag(&job->ga, ga));
		if (r && (r->color != acp_ga_color(&job->ga, ga) ||
			  !refcount_inc_not_zero(&r->users)))
			r = NULL;
	}
	if (!r)
		return NULL;
	*status = acp_region_check(r, acp_ga_offset(&job->ga, ga), size, owner == rank, need);
	if (*status == ACP_ST_OK)
		return r;
	acp_region_put(r);
	return NULL;
}

struct acp_region *acp_region_get(struct acp_job *job, u64 ga, u64 size, u32 rank, u32 need,
				  u8 *status)
{
	struct acp_region *r;

	rcu_read_lock();
	r = acp_region_get_bh(job, ga, size, rank, need, status);
	rcu_read_unlock();
	return r;
}

static __always_inline struct page *user_page(struct acp_region *r, u64 offset, size_t *size)
{
	unsigned long together;
	struct page *page = acp_pages_at(&r->pages, offset >> PAGE_SHIFT, &together);

	*size = min_t(size_t, *size, (together << PAGE_SHIFT) - offset_in_page(offset));
	return page;
}

struct page *acp_region_piece(struct acp_region *r, u64 offset, size_t *size)
{
	if (!r->kaddr)
		return user_page(r, offset, size);
	*size = min_t(size_t, *size, PAGE_SIZE - offset_in_page(offset));
	return vmalloc_to_page(r->kaddr + offset);
}

/* Address of an offset, which *size bytes follow at: that many, or less than wished. */
static __always_inline void *map(struct acp_region *r, u64 offset, size_t *size)
{
	if (r->kaddr)
		return r->kaddr + offset;
	return kmap_local_page(user_page(r, offset, size)) + offset_in_page(offset);
}

static void unmap(struct acp_region *r, void *p)
{
	if (!r->kaddr)
		kunmap_local(p);
}

void acp_region_read(struct acp_region *r, u64 offset, void *to, size_t size)
{
	while (size) {
		size_t n = size;
		void *p = map(r, offset, &n);

		acp_bytes_move(to, p, n);
		unmap(r, p);
		offset += n;
		to += n;
		size -= n;
	}
}

void acp_region_write(struct acp_region *r, u64 offset, const void *from, size_t size)
{
	u64 first = offset;

	while (size) {
		size_t n = size;
		void *p = map(r, offset, &n);

		acp_bytes_move(p, from, n);
		unmap(r, p);
		offset += n;
		from += n;
		size -= n;
	}
	acp_watch_written(r, first, offset - first);
}

/*
 * Memory to memory, as memmove(), but a word at once.  Whole pages by what the kernel copies its
 * own by: eight bytes at a time, where memmove() may go by single ones.
 */
static noinline void move(void *to, const void *from, size_t size)
{
	bool pages = PAGE_ALIGNED(to) && PAGE_ALIGNED(from) && (to <= from || to >= from + size);

	if (acp_bytes_word(to, from, size))
		return;
	for (; pages && size >= PAGE_SIZE; size -= PAGE_SIZE) {
		copy_page(to, (void *)from);
		to += PAGE_SIZE;
		from += PAGE_SIZE;
	}
	if (size)
		memmove(to, from, size);
}

/* Much of it by vector registers, if they are ours (wide). */
static __always_inline void move_wide(void *to, const void *from, size_t size, bool wide)
{
	size_t n = 0;

	if (wide && (to <= from || to >= from + size))
		n = round_down(size, ACP_WIDE);
	acp_wide_copy(to, from, n);
	if (size != n)
		move(to + n, from + n, size - n);
}

/* What these do most, in fewer steps: an aligned word is in one page, and not half written. */
u64 acp_region_read_word(struct acp_region *r, u64 offset)
{
	size_t size = sizeof(u64);
	u64 word, *p;

	if (likely(IS_ALIGNED(offset, sizeof(word)))) {
		p = map(r, offset, &size);
		word = READ_ONCE(*p);
		unmap(r, p);
	} else {
		acp_region_read(r, offset, &word, sizeof(word));
	}
	return word;
}

void acp_region_write_word(struct acp_region *r, u64 offset, u64 word)
{
	size_t size = sizeof(u64);
	u64 *p;

	if (likely(IS_ALIGNED(offset, sizeof(word)))) {
		p = map(r, offset, &size);
		WRITE_ONCE(*p, word);
		unmap(r, p);
		acp_watch_written(r, offset, sizeof(word));
	} else {
		acp_region_write(r, offset, &word, sizeof(word));
	}
}

void acp_region_copy(struct acp_region *to, u64 to_offset, struct acp_region *from,
		     u64 from_offset, size_t size)
{
	bool wide = size >= WIDE_LEAST && acp_wide_begin();
	u64 first = to_offset;

	while (size) {
		size_t n = size;
		void *p = map(from, from_offset, &n);
		void *q = map(to, to_offset, &n);

		move_wide(q, p, n, wide);
		unmap(to, q);
		unmap(from, p);
		to_offset += n;
		from_offset += n;
		size -= n;
	}
	if (wide)
		acp_wide_end();
	acp_watch_written(to, first, to_offset - first);
}

static __always_inline int write_skb(struct acp_region *r, u64 offset, const struct sk_buff *skb,
				     struct acp_bytes *from, size_t size)
{
	int err = 0;

	while (size && !err) {
		size_t n = size;
		void *p = map(r, offset, &n);

		err = acp_bytes_copy(skb, from, p, n);
		unmap(r, p);
		offset += n;
		size -= n;
	}
	return err;
}

int acp_region_write_skb(struct acp_region *r, u64 offset, const struct sk_buff *skb,
			 struct acp_bytes from, size_t size)
{
	int err = write_skb(r, offset, skb, &from, size);

	acp_watch_written(r, offset, size);
	return err;
}

int acp_region_write_pieces(struct acp_region *r, u64 offset, const struct sk_buff *skb,
			    struct acp_pieces from)
{
	u64 first = offset;
	int err = 0;

	for (; from.count && !err; from.count--) {
		err = write_skb(r, offset, skb, &from.at, from.length);
		offset += from.length;
		from.at.at += from.distance - from.length;
	}
	acp_watch_written(r, first, offset - first);
	return err;
}

u64 acp_region_atomic(struct acp_region *r, u64 offset, u8 op, u64 a, u64 b)
{
	size_t n = acp_op_width(op);
	void *p = map(r, offset, &n);
	u64 old, seen;

	if (n == 8) {
		for (old = READ_ONCE(*(u64 *)p);; old = seen) {
			seen = cmpxchg((u64 *)p, old, acp_op_result(op, old, a, b));
			if (seen == old)
				break;
		}
	} else {
		for (old = READ_ONCE(*(u32 *)p);; old = seen) {
			seen = cmpxchg((u32 *)p, (u32)old, (u32)acp_op_result(op, old, a, b));
			if (seen == old)
				break;
		}
	}
	unmap(r, p);
	acp_watch_written(r, offset, acp_op_width(op));
	return old;
}

/* ---- accounting ---- */

static int charge_process(struct mm_struct *mm, unsigned long pages)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	unsigned long now = atomic64_add_return(pages, &mm->pinned_vm);

	if (now <= limit || capable(CAP_IPC_LOCK))
		return 0;
	atomic64_sub(pages, &mm->pinned_vm);
	return -ENOMEM;
}

static unsigned long pages_kib(unsigned long pages)
{
	return pages * (PAGE_SIZE >> 10);
}

/* Count it for the process and the user: wholly or not at all. */
static int charge(struct acp_context *ctx, struct acp_region *r)
{
	int err = charge_process(r->mm, r->npages);

	if (err)
		return err;
	if (!r->registered) {
		ctx->paid -= pages_kib(r->npages);
		return 0;
	}
	err = acp_user_charge(r->user, ACP_LIMIT_USER_MEMORY, pages_kib(r->npages));
	if (err)
		goto process;
	err = acp_user_charge(r->user, ACP_LIMIT_USER_REGIONS, 1);
	if (!err)
		return 0;
	acp_user_uncharge(r->user, ACP_LIMIT_USER_MEMORY, pages_kib(r->npages));
process:
	atomic64_sub(r->npages, &r->mm->pinned_vm);
	return err;
}

static void uncharge(struct acp_region *r)
{
	if (r->registered)
		acp_user_uncharge(r->user, ACP_LIMIT_USER_REGIONS, 1);
	acp_user_uncharge(r->user, ACP_LIMIT_USER_MEMORY, pages_kib(r->npages));
	atomic64_sub(r->npages, &r->mm->pinned_vm);
}

/* ---- lifetime ---- */

/* One that is charged for; acp_region_release() takes the charge back. */
static struct acp_region *new_region(struct acp_context *ctx, u32 access, unsigned long npages,
				     bool registered)
{
	struct acp_region *r = kzalloc(sizeof(*r), GFP_KERNEL_ACCOUNT);
	int err;

	if (!r)
		return ERR_PTR(-ENOMEM);
	r->npages = npages;
	r->registered = registered;
	r->mm = ctx->mm;
	r->owner = ctx;
	r->user = ctx->user;
	err = charge(ctx, r);
	if (err) {
		kfree(r);
		return ERR_PTR(err);
	}
	refcount_set(&r->users, 1);
	refcount_set(&r->holders, 1);
	init_completion(&r->idle);
	r->access = access;
	r->count = 1;
	mmgrab(r->mm);
	acp_user_hold(r->user);
	return r;
}

void acp_region_hold(struct acp_region *r)
{
	refcount_inc(&r->holders);
}

/* The last holder gives the memory back; nobody can find the region any more. */
void acp_region_release(struct acp_region *r)
{
	if (!refcount_dec_and_test(&r->holders))
		return;
	if (r->kaddr)
		vfree(r->kaddr);
	uncharge(r);
	acp_user_put(r->user);
	mmdrop(r->mm);
	kfree_rcu(r, rcu);
}

/* It is in the table from now on, or is not any more. */
static void set_near(struct acp_context *ctx, struct acp_region *r)
{
	const struct acp_ga_layout *l = &ctx->job->ga;

	r->key = acp_ga_make(l, ctx->rank, r->color, r->stag, 0);
	acp_near_set(&ctx->near_regions, r->stag, r);
	acp_near_set(&ctx->job->near_regions, acp_region_number(l, r->key), r);
}

static void clear_near(struct acp_context *ctx, struct acp_region *r)
{
	acp_near_clear(&ctx->near_regions, r->stag, r);
	acp_near_clear(&ctx->job->near_regions, acp_region_number(&ctx->job->ga, r->key), r);
}

/* ---- kernel-allocated memory ---- */

void *acp_region_pages(size_t bytes)
{
	return __vmalloc(bytes, GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN |
				__GFP_RETRY_MAYFAIL);
}

static u64 allocated(u64 bytes)
{
	return PAGE_ALIGN(max_t(u64, bytes, 1));
}

int acp_region_price(const struct acp_job *job, u64 bytes, unsigned long *kib)
{
	if (bytes > (1ULL << job->ga.offset_bits) || bytes > LONG_MAX / 2)
		return -ENOMEM;
	*kib += allocated(bytes) >> 10;
	return 0;
}

int acp_region_allocate(struct acp_context *ctx, u32 stag, u64 bytes)
{
	u64 size = allocated(bytes);
	struct acp_region *r;
	int err;

	r = new_region(ctx, ACP_ACCESS_ALL, size >> PAGE_SHIFT, false);
	if (IS_ERR(r))
		return PTR_ERR(r);
	r->stag = stag;
	r->end = bytes;
	r->bytes = size;
	r->kaddr = acp_region_pages(size);
	err = r->kaddr ? xa_insert(&ctx->regions, stag, r, GFP_KERNEL_ACCOUNT) : -ENOMEM;
	if (err) {
		acp_region_release(r);
		return err;
	}
	if (stag == ACP_STAG_LIBRARY)
		ctx->watch = r->kaddr + ACP_WATCH_OFFSET;
	set_near(ctx, r);
	WRITE_ONCE(ctx->region_pages, ctx->region_pages + r->npages);
	return 0;
}

/* ---- user memory ---- */

/* These pages may be others now.  True: a worker may look at once. */
static bool note_change(struct acp_region *r, const struct mmu_notifier_range *range)
{
	unsigned long first = (max(range->start, r->start) - r->start) >> PAGE_SHIFT;
	unsigned long end = min(PAGE_ALIGN(range->end - r->start) >> PAGE_SHIFT, r->npages);
	bool ready;

	spin_lock(&r->changed_lock);
	if (r->changed == r->changed_end) {
		r->changed = first;
		r->changed_end = end;
	} else {
		r->changed = min(r->changed, first);
		r->changed_end = max(r->changed_end, end);
	}
	ready = r->ready;
	spin_unlock(&r->changed_lock);
	return ready;
}

/*
 * The mapping changed.  Unmapping ends the region at once.  Other changes can
 * be harmless (migration tried, write-protection by fork), so a worker looks
 * whether the program still sees the pages we hold.  They are pinned: until
 * then nobody else can get them.
 */
static bool invalidate(struct mmu_interval_notifier *n, const struct mmu_notifier_range *range,
		       unsigned long seq)
{
	struct acp_region *r = container_of(n, struct acp_region, notifier);

	mmu_interval_set_seq(n, seq);
	switch (range->event) {
	case MMU_NOTIFY_UNMAP:
	case MMU_NOTIFY_RELEASE:
		WRITE_ONCE(r->revoked, true);
		break;
	case MMU_NOTIFY_CLEAR:
		if (note_change(r, range))
			queue_work(system_unbound_wq, &r->recheck);
		break;
	default:
		break;
	}
	return true;
}

static const struct mmu_interval_notifier_ops notifier_ops = {
	.invalidate = invalidate,
};

/*
 * The notifier calls before the change is made: look when it has been made.
 * One that begins after this wait is noted, and queues us again.
 */
static void recheck(struct work_struct *work)
{
	struct acp_region *r = container_of(work, struct acp_region, recheck);
	unsigned long i, end;

	if (!mmget_not_zero(r->mm))
		return;
	spin_lock(&r->changed_lock);
	i = r->changed;
	end = r->changed_end;
	r->changed = end;
	spin_unlock(&r->changed_lock);
	mmu_interval_read_begin(&r->notifier);
	for (; i < end && !READ_ONCE(r->revoked); i += LOOK_BATCH)
		if (!acp_pages_same(&r->pages, r->mm, i, min(end, i + LOOK_BATCH)))
			WRITE_ONCE(r->revoked, true);
	mmput(r->mm);
}

static bool covers(const struct acp_region *r, const struct acp_reg *reg)
{
	return r->color == reg->color && r->access == reg->access && !READ_ONCE(r->revoked) &&
	       r->count < U32_MAX && reg->addr >= r->start + r->base &&
	       reg->addr - r->start + reg->length <= r->end;
}

/* An existing registration that this one lies in.  If it is in doubt, that is settled first. */
static struct acp_region *find_cover(struct acp_context *ctx, const struct acp_reg *reg)
{
	struct acp_region *r;
	unsigned long stag;

	xa_for_each_start(&ctx->regions, stag, r, ACP_STAG_USER) {
		if (!covers(r, reg))
			continue;
		flush_work(&r->recheck);
		if (!READ_ONCE(r->revoked))
			return r;
	}
	return NULL;
}

static int check_reg(struct acp_context *ctx, const struct acp_reg *reg)
{
	u64 first = offset_in_page(reg->addr);

	if (!reg->addr || !reg->length || reg->reserved || reg->color >= ctx->job->colors ||
	    (reg->access & ~(ACP_ACCESS_ALL | ACP_ACCESS_RO)))
		return -EINVAL;
	if ((reg->access & ACP_ACCESS_RO) && (reg->access & (ACP_ACCESS_WRITE | ACP_ACCESS_ATOMIC)))
		return -EINVAL;
	if (reg->addr + reg->length < reg->addr)
		return -EINVAL;
	if (reg->length > (1ULL << ctx->job->ga.offset_bits) - first)
		return -EOVERFLOW;
	if (!access_ok(u64_to_user_ptr(reg->addr), reg->length))
		return -EFAULT;
	return 0;
}

/* From here on recheck() may look.  True: something has changed since we watch. */
static bool set_ready(struct acp_region *r)
{
	bool changed;

	spin_lock(&r->changed_lock);
	r->ready = true;
	changed = r->changed != r->changed_end;
	spin_unlock(&r->changed_lock);
	return changed;
}

/* Watch first, wait for changes under way, then pin: what changes meanwhile is noted. */
static int attach(struct acp_region *r)
{
	int err;

	INIT_WORK(&r->recheck, recheck);
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
	if (set_ready(r))
		recheck(&r->recheck);
	return READ_ONCE(r->revoked) ? -EFAULT : 0;
}

static void detach(struct acp_region *r)
{
	if (r->notified) {
		mmu_interval_notifier_remove(&r->notifier);
		cancel_work_sync(&r->recheck);
	}
	acp_pages_drop(&r->pages);
}

static int give_stag(struct acp_context *ctx, struct acp_region *r)
{
	u32 max = (1u << ctx->job->ga.stag_bits) - 1;
	int err = xa_alloc_cyclic(&ctx->regions, &r->stag, r, XA_LIMIT(ACP_STAG_USER, max),
				  &ctx->next_stag, GFP_KERNEL_ACCOUNT);

	if (err < 0)
		return err == -EBUSY ? -ENOSPC : err;
	set_near(ctx, r);
	WRITE_ONCE(ctx->region_pages, ctx->region_pages + r->npages);
	WRITE_ONCE(ctx->n_regions, ctx->n_regions + 1);
	acp_job_changed(ctx->job);
	return 0;
}

static struct acp_region *pin_new(struct acp_context *ctx, const struct acp_reg *reg)
{
	u64 first = offset_in_page(reg->addr);
	unsigned long npages = PAGE_ALIGN(first + reg->length) >> PAGE_SHIFT;
	struct acp_region *r = new_region(ctx, reg->access, npages, true);
	int err;

	if (IS_ERR(r))
		return r;
	r->color = reg->color;
	r->start = reg->addr - first;
	r->base = first;
	r->end = first + reg->length;
	err = attach(r);
	if (!err)
		err = give_stag(ctx, r);
	if (!err)
		return r;
	detach(r);
	acp_region_release(r);
	return ERR_PTR(err);
}

/* Take a region out of the table and out of use: waits for copies only. */
static void remove(struct acp_context *ctx, struct acp_region *r)
{
	xa_erase(&ctx->regions, r->stag);
	clear_near(ctx, r);
	WRITE_ONCE(ctx->region_pages, ctx->region_pages - r->npages);
	WRITE_ONCE(ctx->n_regions, ctx->n_regions - r->registered);
	acp_job_changed(ctx->job);
	acp_region_put(r);
	wait_for_completion(&r->idle);
	detach(r);
	acp_region_release(r);
}

int acp_region_register(struct acp_context *ctx, struct acp_reg *reg)
{
	struct acp_region *r;
	int err = check_reg(ctx, reg);

	if (err)
		return err;
	mutex_lock(&ctx->reg_lock);
	r = find_cover(ctx, reg);
	if (r)
		r->count++;
	else
		r = pin_new(ctx, reg);
	if (!IS_ERR(r)) {
		reg->key = acp_ga_make(&ctx->job->ga, ctx->rank, r->color, r->stag, 0);
		reg->start = r->start;
		reg->base = r->start + r->base;
		reg->end = r->start + r->end;
	}
	mutex_unlock(&ctx->reg_lock);
	return PTR_ERR_OR_ZERO(r);
}

int acp_region_unregister(struct acp_context *ctx, u64 key, u32 *left)
{
	const struct acp_ga_layout *l = &ctx->job->ga;
	struct acp_region *r = NULL;
	int err = -ENOENT;

	mutex_lock(&ctx->reg_lock);
	if (acp_ga_valid(l, key) && acp_ga_rank(l, key) == ctx->rank && !acp_ga_offset(l, key) &&
	    acp_ga_stag(l, key) >= ACP_STAG_USER)
		r = xa_load(&ctx->regions, acp_ga_stag(l, key));
	if (r && r->color == acp_ga_color(l, key)) {
		*left = --r->count;
		if (!r->count)
			remove(ctx, r);
		err = 0;
	}
	mutex_unlock(&ctx->reg_lock);
	return err;
}

void acp_region_remove_all(struct acp_context *ctx)
{
	struct acp_region *r;
	unsigned long stag;

	mutex_lock(&ctx->reg_lock);
	xa_for_each(&ctx->regions, stag, r)
		if (stag != ACP_STAG_LIBRARY)
			remove(ctx, r);
	/* Last: who writes to the others looks at ctx->watch in there. */
	r = xa_load(&ctx->regions, ACP_STAG_LIBRARY);
	if (r)
		remove(ctx, r);
	xa_destroy(&ctx->regions);
	mutex_unlock(&ctx->reg_lock);
}
