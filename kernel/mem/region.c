// SPDX-License-Identifier: GPL-2.0-only
/* Regions: see region.h. */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "../job/job.h"
#include "../job/limits.h"
#include "mapping.h"
#include "region.h"
#include "watch.h"
#include "wide.h"

#define WIDE_MIN SZ_32K	/* bytes; shorter copies do not pay for saving registers */

/* ---- access, any context ---- */

static struct acp_region *find(struct acp_rank *rank, u32 stag)
{
	struct acp_region *r = acp_cache_get(&rank->region_cache, stag);

	return r && r->stag == stag ? r : xa_load(&rank->regions, stag);
}

struct acp_region *acp_region_get_bh(struct acp_job *job, u64 ga, u64 size, u32 rank, u32 need,
				     u8 *status)
{
	u32 owner = acp_ga_rank(&job->ga, ga);
	struct acp_rank *holder = acp_job_rank(job, owner);
	struct acp_region *r = NULL;

	*status = ACP_ST_RANK;
	if (holder) {
		*status = ACP_ST_STAG;
		r = find(holder, acp_ga_stag(&job->ga, ga));
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

/* Map an offset.  *size: bytes wanted; reduced to the bytes that are mapped contiguously. */
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
 * Like memmove(), but an aligned word is copied at once.  Whole pages are copied by copy_page(),
 * which copies eight bytes at a time; memmove() may copy single bytes.
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

/* Like move(), with vector registers if the caller has called acp_wide_begin() (wide). */
static __always_inline void move_wide(void *to, const void *from, size_t size, bool wide)
{
	size_t n = 0;

	if (wide && (to <= from || to >= from + size)) {
		n = round_down(size, ACP_WIDE);
		acp_wide_copy(to, from, n);
		acp_wide_copy_some(to + n, from + n, round_down(size - n, ACP_WIDE_SOME));
		n = round_down(size, ACP_WIDE_SOME);
	}
	if (size != n)
		move(to + n, from + n, size - n);
}

/* The fast path of acp_region_read(): an aligned word is in one page and is read at once. */
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
	bool wide = size >= WIDE_MIN && acp_wide_begin();
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

static void combine(u64 what, void *dst, const void *src, size_t size, bool atomic)
{
	if (atomic)
		acp_reduce_atomic(what, dst, src, size);
	else
		acp_reduce_run(what, dst, src, size);
}

void acp_region_reduce(struct acp_region *to, u64 to_offset, struct acp_region *from,
		       u64 from_offset, size_t size, u64 what, bool atomic)
{
	u64 first = to_offset;

	/* No number is in two pages. */
	while (size) {
		size_t n = size;
		void *p = map(from, from_offset, &n);
		void *q = map(to, to_offset, &n);

		combine(what, q, p, n, atomic);
		unmap(to, q);
		unmap(from, p);
		to_offset += n;
		from_offset += n;
		size -= n;
	}
	acp_watch_written(to, first, to_offset - first);
}

int acp_region_accumulate(struct acp_region *r, u64 offset, const struct sk_buff *skb,
			  struct acp_pieces from, u64 what)
{
	u64 first = offset, numbers[64];
	u32 done = 0;
	int err = 0;

	while (done < from.length && !err) {
		size_t n = min_t(size_t, from.length - done, sizeof(numbers));
		void *p = map(r, offset, &n);

		/* The numbers of a frame need not be aligned, nor each in one fragment. */
		if (from.data)
			memcpy(numbers, from.data + done, n);
		else
			err = acp_bytes_copy(skb, &from.at, numbers, n);
		if (!err)
			acp_reduce_atomic(what, p, numbers, n);
		unmap(r, p);
		offset += n;
		done += n;
	}
	acp_watch_written(r, first, offset - first);
	return err;
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

void acp_region_read_long(struct acp_region *r, u64 offset, void *to, size_t size)
{
	bool wide = acp_wide_begin();

	while (size) {
		size_t n = size;
		void *p = map(r, offset, &n);

		move_wide(to, p, n, wide);
		unmap(r, p);
		offset += n;
		to += n;
		size -= n;
	}
	if (wide)
		acp_wide_end();
}

static void write_own(struct acp_region *r, u64 offset, const struct acp_pieces *from)
{
	bool wide = acp_wide_begin();
	u32 i;

	for (i = 0; i < from->count; i++) {
		const u8 *p = from->data + i * from->distance;
		size_t size = from->length, n;

		for (; size; size -= n, p += n, offset += n) {
			void *q;

			n = size;
			q = map(r, offset, &n);
			move_wide(q, p, n, wide);
			unmap(r, q);
		}
	}
	if (wide)
		acp_wide_end();
}

int acp_region_write_pieces(struct acp_region *r, u64 offset, const struct sk_buff *skb,
			    struct acp_pieces from)
{
	u64 first = offset;
	int err = 0;

	if (from.data) {
		write_own(r, offset, &from);
		acp_watch_written(r, first, (u64)from.count * from.length);
		return 0;
	}

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

static unsigned long pages_kib(unsigned long pages)
{
	return pages * (PAGE_SIZE >> 10);
}

/* Charge the user for the memory and for a region, or for neither. */
static int charge_user(struct acp_region *r)
{
	int err;

	err = acp_user_charge(r->user, ACP_LIMIT_USER_MEMORY, pages_kib(r->npages));
	if (err)
		return err;
	err = acp_user_charge(r->user, ACP_LIMIT_USER_REGIONS, 1);
	if (err)
		acp_user_uncharge(r->user, ACP_LIMIT_USER_MEMORY, pages_kib(r->npages));
	return err;
}

/*
 * Charge for locked memory, too.  Kernel-allocated memory takes over its part of what the rank was
 * charged when it joined.
 */
static int charge(struct acp_rank *rank, struct acp_region *r)
{
	int err;

	if (!r->registered) {
		rank->paid -= pages_kib(r->npages);
		acp_memlock_split(&rank->locked, &r->memlock, r->npages);
		return 0;
	}
	err = acp_memlock_charge(&r->memlock, rank->mm, r->user, r->npages);
	if (err)
		return err;
	err = charge_user(r);
	if (err)
		acp_memlock_uncharge(&r->memlock);
	return err;
}

static void uncharge(struct acp_region *r)
{
	if (r->registered)
		acp_user_uncharge(r->user, ACP_LIMIT_USER_REGIONS, 1);
	acp_user_uncharge(r->user, ACP_LIMIT_USER_MEMORY, pages_kib(r->npages));
	acp_memlock_uncharge(&r->memlock);
}

/* ---- lifetime ---- */

/* Create a region and charge for it.  acp_region_release() takes the charge back. */
static struct acp_region *new_region(struct acp_rank *rank, u32 access, unsigned long npages,
				     bool registered)
{
	struct acp_region *r = kzalloc(sizeof(*r), GFP_KERNEL_ACCOUNT);
	int err;

	if (!r)
		return ERR_PTR(-ENOMEM);
	r->npages = npages;
	r->registered = registered;
	r->mm = rank->mm;
	r->owner = rank;
	r->user = rank->user;
	err = charge(rank, r);
	if (err) {
		kfree(r);
		return ERR_PTR(err);
	}
	refcount_set(&r->users, 1);
	refcount_set(&r->holders, 1);
	init_completion(&r->idle);
	acp_cover_init(&r->cover);
	r->access = access;
	r->count = 1;
	acp_user_hold(r->user);
	return r;
}

void acp_region_hold(struct acp_region *r)
{
	refcount_inc(&r->holders);
}

/* When the last holder releases the region, it is in no table any more. */
void acp_region_release(struct acp_region *r)
{
	if (!refcount_dec_and_test(&r->holders))
		return;
	vfree(r->kaddr);
	uncharge(r);
	acp_user_put(r->user);
	kfree_rcu(r, rcu);
}

/* Call it after the region was added to the table. */
static void set_cached(struct acp_rank *rank, struct acp_region *r)
{
	const struct acp_ga_layout *l = &rank->job->ga;

	r->key = acp_ga_make(l, rank->number, r->color, r->stag, 0);
	acp_cache_set(&rank->region_cache, r->stag, r);
	acp_cache_set(&rank->job->region_cache, acp_region_number(l, r->key), r);
}

static void clear_cached(struct acp_rank *rank, struct acp_region *r)
{
	acp_cache_clear(&rank->region_cache, r->stag, r);
	acp_cache_clear(&rank->job->region_cache, acp_region_number(&rank->job->ga, r->key), r);
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

int acp_region_allocate(struct acp_rank *rank, u32 stag, u64 bytes)
{
	u64 size = allocated(bytes);
	struct acp_region *r;
	int err;

	r = new_region(rank, ACP_ACCESS_ALL, size >> PAGE_SHIFT, false);
	if (IS_ERR(r))
		return PTR_ERR(r);
	r->stag = stag;
	r->end = bytes;
	r->bytes = size;
	r->kaddr = acp_region_pages(size);
	err = r->kaddr ? xa_insert(&rank->regions, stag, r, GFP_KERNEL_ACCOUNT) : -ENOMEM;
	if (err) {
		acp_region_release(r);
		return err;
	}
	if (stag == ACP_STAG_LIBRARY)
		rank->watch = r->kaddr + ACP_WATCH_OFFSET;
	set_cached(rank, r);
	WRITE_ONCE(rank->region_pages, rank->region_pages + r->npages);
	return 0;
}

/* ---- user memory ---- */

/*
 * Find an existing region that covers this registration, and count it once more; or NULL.  Pending
 * checks of the region are completed first.  A region that is revoked, or whose count is at its
 * maximum, is removed from the tree, so that it is not found again.
 */
static struct acp_region *count_cover(struct acp_rank *rank, const struct acp_reg *reg,
				      u32 *steps)
{
	u64 class = acp_cover_class(reg->color, reg->access);
	struct acp_region *r = NULL;
	struct acp_cover *c;

	while (!r && (c = acp_cover_find(&rank->covers, class, reg->addr,
					 reg->addr + reg->length, steps))) {
		r = container_of(c, struct acp_region, cover);
		if (!READ_ONCE(r->revoked))
			acp_mapping_settle(r);
		if (!READ_ONCE(r->revoked) && r->count < U32_MAX) {
			r->count++;
		} else {
			acp_cover_remove(&rank->covers, c);
			r = NULL;
		}
	}
	return r;
}

static int check_reg(struct acp_rank *rank, const struct acp_reg *reg)
{
	u64 first = offset_in_page(reg->addr);

	if (!reg->addr || !reg->length || reg->reserved || reg->color >= rank->job->colors ||
	    (reg->access & ~(ACP_ACCESS_ALL | ACP_ACCESS_RO)))
		return -EINVAL;
	if ((reg->access & ACP_ACCESS_RO) && (reg->access & (ACP_ACCESS_WRITE | ACP_ACCESS_ATOMIC)))
		return -EINVAL;
	if (reg->addr + reg->length < reg->addr)
		return -EINVAL;
	if (reg->length > (1ULL << rank->job->ga.offset_bits) - first)
		return -EOVERFLOW;
	if (!access_ok(u64_to_user_ptr(reg->addr), reg->length))
		return -EFAULT;
	return 0;
}

/* Free a region that is in no table. */
static void drop(struct acp_region *r)
{
	acp_mapping_detach(r);
	acp_region_release(r);
}

static int give_stag(struct acp_rank *rank, struct acp_region *r)
{
	u32 max = (1u << rank->job->ga.stag_bits) - 1;
	int err = xa_alloc_cyclic(&rank->regions, &r->stag, r, XA_LIMIT(ACP_STAG_USER, max),
				  &rank->next_stag, GFP_KERNEL_ACCOUNT);

	if (err < 0)
		return err == -EBUSY ? -ENOSPC : err;
	r->cover.class = acp_cover_class(r->color, r->access);
	r->cover.first = r->start + r->base;
	r->cover.end = r->start + r->end;
	acp_cover_add(&rank->covers, &r->cover);
	set_cached(rank, r);
	WRITE_ONCE(rank->region_pages, rank->region_pages + r->npages);
	WRITE_ONCE(rank->n_regions, rank->n_regions + 1);
	acp_rank_changed(rank);
	return 0;
}

static struct acp_region *pin_new(struct acp_rank *rank, const struct acp_reg *reg)
{
	u64 first = offset_in_page(reg->addr);
	unsigned long npages = PAGE_ALIGN(first + reg->length) >> PAGE_SHIFT;
	struct acp_region *r = new_region(rank, reg->access, npages, true);
	int err;

	if (IS_ERR(r))
		return r;
	r->color = reg->color;
	r->start = reg->addr - first;
	r->base = first;
	r->end = first + reg->length;
	err = acp_mapping_attach(r);
	if (!err)
		return r;
	drop(r);
	return ERR_PTR(err);
}

/* Remove a region from all tables.  Under reg_lock; drop_removed() must follow. */
static void remove(struct acp_rank *rank, struct acp_region *r)
{
	xa_erase(&rank->regions, r->stag);
	acp_cover_remove(&rank->covers, &r->cover);
	clear_cached(rank, r);
	WRITE_ONCE(rank->region_pages, rank->region_pages - r->npages);
	WRITE_ONCE(rank->n_regions, rank->n_regions - r->registered);
	acp_watch_gone(rank);
	acp_rank_changed(rank);
}

/* Free a removed region.  Waits for copies in progress, and for nothing else. */
static void drop_removed(struct acp_region *r)
{
	acp_region_put(r);
	wait_for_completion(&r->idle);
	drop(r);
}

/* Add a new region to the tables, unless a region that covers it was added meanwhile. */
static int enter(struct acp_rank *rank, const struct acp_reg *reg, struct acp_region **new,
		 u32 *steps)
{
	struct acp_region *r = count_cover(rank, reg, steps);
	int err;

	if (r) {
		swap(r, *new);
		drop(r);
		return 0;
	}
	err = give_stag(rank, *new);
	if (err)
		drop(*new);
	return err;
}

int acp_region_register(struct acp_rank *rank, struct acp_reg *reg, u32 *steps)
{
	struct acp_region *r;
	int err = check_reg(rank, reg);

	if (err)
		return err;
	mutex_lock(&rank->reg_lock);
	r = count_cover(rank, reg, steps);
	if (!r) {
		mutex_unlock(&rank->reg_lock);
		r = pin_new(rank, reg);
		if (IS_ERR(r))
			return PTR_ERR(r);
		mutex_lock(&rank->reg_lock);
		err = enter(rank, reg, &r, steps);
	}
	if (!err) {
		reg->key = acp_ga_make(&rank->job->ga, rank->number, r->color, r->stag, 0);
		reg->start = r->start;
		reg->base = r->start + r->base;
		reg->end = r->start + r->end;
	}
	mutex_unlock(&rank->reg_lock);
	return err;
}

int acp_region_unregister(struct acp_rank *rank, u64 key, u32 *left)
{
	const struct acp_ga_layout *l = &rank->job->ga;
	struct acp_region *r = NULL, *gone = NULL;

	mutex_lock(&rank->reg_lock);
	if (acp_ga_valid(l, key) && acp_ga_rank(l, key) == rank->number && !acp_ga_offset(l, key) &&
	    acp_ga_stag(l, key) >= ACP_STAG_USER)
		r = xa_load(&rank->regions, acp_ga_stag(l, key));
	if (r && r->color != acp_ga_color(l, key))
		r = NULL;
	if (r) {
		*left = --r->count;
		if (!r->count) {
			remove(rank, r);
			gone = r;
		}
	}
	mutex_unlock(&rank->reg_lock);
	if (gone)
		drop_removed(gone);
	return r ? 0 : -ENOENT;
}

void acp_region_remove_all(struct acp_rank *rank)
{
	struct acp_region *r;
	unsigned long stag;

	mutex_lock(&rank->reg_lock);
	xa_for_each(&rank->regions, stag, r) {
		if (stag == ACP_STAG_LIBRARY)
			continue;
		remove(rank, r);
		drop_removed(r);
		cond_resched();
	}
	/* Last: writers to the other regions read rank->watch, which is in this one. */
	r = xa_load(&rank->regions, ACP_STAG_LIBRARY);
	if (r) {
		remove(rank, r);
		drop_removed(r);
	}
	xa_destroy(&rank->regions);
	mutex_unlock(&rank->reg_lock);
}
