/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Regions: pinned or kernel-allocated memory that has an STag.
 *
 * A region is looked up by (rank, STag) under RCU, also in softirq.  A reference
 * is held for the time of a copy only.  acp_region_unregister() and
 * acp_region_remove_all() wait for these references, so that afterwards no byte
 * can change.  They never wait for the network: frames in flight contain the
 * address of a region but hold no reference.
 *
 * An MMU notifier watches user memory: when the mapping goes away, the region is
 * revoked, and accesses fail as if it had been unregistered.
 */
#ifndef ACP_REGION_H
#define ACP_REGION_H

#include <linux/completion.h>
#include <linux/mmu_notifier.h>
#include <linux/refcount.h>
#include <linux/workqueue.h>
#include "../net/bytes.h"
#include "../job/rank.h"
#include "cover.h"
#include "../job/job.h"
#include "memlock.h"
#include "pages.h"

struct acp_region {
	refcount_t users;	/* one for the table, one for each copy in progress */
	bool revoked;		/* its mapping is gone */
	struct acp_rank *owner;	/* exists while there are users */
	u32 access;		/* ACP_ACCESS_ */
	u32 stag;
	u64 key;		/* global address of offset 0 */
	u64 base, end;		/* valid offsets: [base, end), base less than a page */
	struct acp_pages pages;	/* user memory */
	void *kaddr;		/* kernel-allocated memory */
	size_t bytes;		/* of kernel-allocated memory, whole pages */

	unsigned long npages;
	struct acp_user *user;	/* charged for memory and, if registered, for a region */
	struct acp_memlock memlock;	/* charge for its pages */
	u32 color;
	u32 count;		/* registrations; under reg_lock */
	unsigned long start;	/* user address of offset 0 */
	struct mm_struct *mm;	/* memlock holds it */
	struct mmu_interval_notifier notifier;
	struct delayed_work recheck;	/* is the mapping still the same? */
	spinlock_t changed_lock;	/* guards the next four, and setting notifier's number */
	unsigned long changed;	/* pages [changed, changed_end) are to be checked */
	unsigned long changed_end;
	u8 unseen;		/* times in a row that pages could not be looked at */
	bool ready;		/* all pages are pinned: recheck may run */
	bool notified;		/* the notifier is inserted */
	bool registered;
	struct completion idle;	/* users reached 0 */
	refcount_t holders;	/* the rank, and mappings of kernel memory */
	struct acp_cover cover;	/* in the rank's tree, under reg_lock */
	struct rcu_head rcu;
};

/**
 * acp_region_pages() - allocate zeroed pages that user space may map
 * @bytes: size
 *
 * They are charged to the caller's control group.  vfree() frees them.
 *
 * Context: process, may sleep.
 * Return: the pages, NULL if there is no memory.
 */
void *acp_region_pages(size_t bytes);

/**
 * acp_region_price() - the memory that acp_region_allocate() will need
 * @job: the job
 * @bytes: size of the region
 * @kib: increased by the KiB that the region will take
 *
 * Context: any.
 * Return: 0, or -ENOMEM if the region is too large for the job's global addresses or the machine.
 */
int acp_region_price(const struct acp_job *job, u64 bytes, unsigned long *kib);

/**
 * acp_region_allocate() - give a rank kernel-allocated memory under a reserved STag
 * @rank: the rank, which is joining
 * @stag: ACP_STAG_STARTER, ACP_STAG_HEAP or ACP_STAG_LIBRARY
 * @bytes: size of the region
 *
 * The memory counts as locked.  Its charge is taken from rank->paid and rank->locked.
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int acp_region_allocate(struct acp_rank *rank, u32 stag, u64 bytes);

/**
 * acp_region_register() - register user memory of the calling process
 * @rank: its rank
 * @reg: the request, which receives the region's key and bounds
 * @steps: increased by the number of regions that the search for a covering region visited
 *
 * If a registration with the same color and access covers the memory, that region is counted once
 * more.
 *
 * Context: process, may sleep.  Takes rank->reg_lock.
 * Return: 0; an error of ACP_IOC_REG or of acp_over().
 */
int acp_region_register(struct acp_rank *rank, struct acp_reg *reg, u32 *steps);

/**
 * acp_region_unregister() - take back one registration
 * @rank: the rank
 * @key: the key that acp_region_register() returned
 * @left: receives the number of registrations that the region still has
 *
 * With the last registration the region is removed, and copies in progress are waited for.
 *
 * Context: process, may sleep.  Takes rank->reg_lock.
 * Return: 0; -ENOENT if there is no such region.
 */
int acp_region_unregister(struct acp_rank *rank, u64 key, u32 *left);

/**
 * acp_region_remove_all() - remove all regions of a rank that leaves
 * @rank: the rank
 *
 * Waits for copies in progress.
 *
 * Context: process, may sleep.  Takes rank->reg_lock.
 */
void acp_region_remove_all(struct acp_rank *rank);

/**
 * acp_region_hold() - keep a region's memory for another mapping of it
 * @r: a region of kernel-allocated memory, to which the caller has a reference in r->holders
 *
 * Context: any.
 */
void acp_region_hold(struct acp_region *r);

/**
 * acp_region_release() - give up a reference in r->holders
 * @r: the region
 *
 * The last holder frees the memory and takes back its charges.
 *
 * Context: process, may sleep.
 */
void acp_region_release(struct acp_region *r);

/**
 * acp_region_check() - check an access to a region
 * @r: the region; the caller has a reference in r->users
 * @offset: offset in the region
 * @size: bytes
 * @own: the rank that accesses the region owns it
 * @need: ACP_ACCESS_READ, ACP_ACCESS_WRITE or ACP_ACCESS_ATOMIC
 *
 * Context: any.
 * Return: ACP_ST_OK, ACP_ST_STAG, ACP_ST_RANGE or ACP_ST_ACCESS.
 */
static inline u8 acp_region_check(const struct acp_region *r, u64 offset, u64 size, bool own,
				  u32 need)
{
	if (READ_ONCE(r->revoked))
		return ACP_ST_STAG;
	if (offset < r->base || offset > r->end || size > r->end - offset)
		return ACP_ST_RANGE;
	if ((r->access & ACP_ACCESS_RO) && need != ACP_ACCESS_READ)
		return ACP_ST_ACCESS;
	if (!own && !(r->access & need))
		return ACP_ST_ACCESS;
	return ACP_ST_OK;
}

/**
 * acp_region_put() - give up a reference in r->users
 * @r: the region
 *
 * Context: any.
 */
static inline void acp_region_put(struct acp_region *r)
{
	if (refcount_dec_and_test(&r->users))
		complete(&r->idle);
}

/* The index of a global address in the job's region cache: its rank, color and STag. */
static inline unsigned long acp_region_number(const struct acp_ga_layout *l, u64 ga)
{
	return ga >> l->offset_bits ^ ga >> (64 - l->rank_bits);
}

/**
 * acp_region_cached() - find a region in the cache and take a reference
 * @job: the job
 * @ga: global address
 * @size: bytes from @ga on that are accessed
 * @rank: the rank that accesses them
 * @need: ACP_ACCESS_READ, ACP_ACCESS_WRITE or ACP_ACCESS_ATOMIC
 *
 * Regions are in the cache before their rank has joined and after it has left.  So the rank must
 * be in its cache, too.
 *
 * Context: RCU read side, or BH off.
 * Return: the region, with a reference in r->users; NULL: call acp_region_get_bh().
 */
static inline struct acp_region *acp_region_cached(const struct acp_job *job, u64 ga, u64 size,
						   u32 rank, u32 need)
{
	struct acp_region *r = acp_cache_get(&job->region_cache, acp_region_number(&job->ga, ga));
	u64 offset = acp_ga_offset(&job->ga, ga);
	u32 owner = acp_ga_rank(&job->ga, ga);

	if (!r || r->key != ga - offset || acp_cache_get(&job->rank_cache, owner) != r->owner ||
	    !refcount_inc_not_zero(&r->users))
		return NULL;
	if (!acp_region_check(r, offset, size, owner == rank, need))
		return r;
	acp_region_put(r);
	return NULL;
}

/**
 * acp_region_get() - find a region, check the access and take a reference
 * @job: the job
 * @ga: global address, of a rank less than job->ga.nprocs
 * @size: bytes from @ga on that are accessed
 * @rank: the rank that accesses them
 * @need: ACP_ACCESS_READ, ACP_ACCESS_WRITE or ACP_ACCESS_ATOMIC
 * @status: receives ACP_ST_OK, ACP_ST_RANK (the owner is not on this node), ACP_ST_STAG,
 *	ACP_ST_RANGE or ACP_ST_ACCESS
 *
 * Context: any.
 * Return: the region, with a reference in r->users; NULL if @status is not ACP_ST_OK.
 */
struct acp_region *acp_region_get(struct acp_job *job, u64 ga, u64 size, u32 rank, u32 need,
				  u8 *status);

/**
 * acp_region_get_bh() - acp_region_get() for callers that RCU waits for
 * @job: as in acp_region_get()
 * @ga: as in acp_region_get()
 * @size: as in acp_region_get()
 * @rank: as in acp_region_get()
 * @need: as in acp_region_get()
 * @status: as in acp_region_get()
 *
 * Context: RCU read side, or BH off.
 * Return: as acp_region_get().
 */
struct acp_region *acp_region_get_bh(struct acp_job *job, u64 ga, u64 size, u32 rank, u32 need,
				     u8 *status);

/*
 * For all functions below: the caller has a reference in r->users, and offsets and sizes are
 * within the bounds that acp_region_check() has checked.  Writes wake waiters, see watch.h.
 */

/**
 * acp_region_read() - copy from a region
 * @r: the region
 * @offset: offset in the region
 * @to: receives the bytes
 * @size: bytes, 0 allowed
 *
 * An aligned word of 4 or 8 bytes is read at once.
 *
 * Context: any.
 */
void acp_region_read(struct acp_region *r, u64 offset, void *to, size_t size);

/**
 * acp_region_read_long() - acp_region_read() for many bytes, with vector registers if possible
 * @r: the region
 * @offset: offset in the region
 * @to: receives the bytes
 * @size: bytes, 0 allowed
 *
 * Context: any.
 */
void acp_region_read_long(struct acp_region *r, u64 offset, void *to, size_t size);

/**
 * acp_region_write() - copy to a region
 * @r: the region
 * @offset: offset in the region
 * @from: the bytes
 * @size: bytes, 0 allowed
 *
 * An aligned word of 4 or 8 bytes is written at once.
 *
 * Context: any.
 */
void acp_region_write(struct acp_region *r, u64 offset, const void *from, size_t size);

/**
 * acp_region_read_word() - read a word of 8 bytes
 * @r: the region
 * @offset: offset in the region; if it is aligned, the word is read at once
 *
 * Context: any.
 * Return: the word.
 */
u64 acp_region_read_word(struct acp_region *r, u64 offset);

/**
 * acp_region_write_word() - write a word of 8 bytes
 * @r: the region
 * @offset: offset in the region; if it is aligned, the word is written at once
 * @word: the word
 *
 * Context: any.
 */
void acp_region_write_word(struct acp_region *r, u64 offset, u64 word);

/**
 * acp_region_copy() - copy from one region to another
 * @to: the destination
 * @to_offset: offset in @to
 * @from: the source; may be @to
 * @from_offset: offset in @from
 * @size: bytes, 0 allowed
 *
 * An aligned word of 4 or 8 bytes is copied at once.
 *
 * Context: any.
 */
void acp_region_copy(struct acp_region *to, u64 to_offset, struct acp_region *from,
		     u64 from_offset, size_t size);

/**
 * acp_region_reduce() - combine the numbers of a region with those of another one
 * @to: the region of the first operands, which the results replace
 * @to_offset: offset in @to, a multiple of the size of the numbers
 * @from: the region of the second operands; may be @to
 * @from_offset: offset in @from, likewise
 * @size: bytes, likewise; 0 allowed
 * @what: what to do, see acp_reduce_run()
 * @atomic: each number atomically
 *
 * Context: any.
 */
void acp_region_reduce(struct acp_region *to, u64 to_offset, struct acp_region *from,
		       u64 from_offset, size_t size, u64 what, bool atomic);

/**
 * acp_region_accumulate() - combine numbers of a region with those of a frame, atomically
 * @r: the region
 * @offset: offset in the region, a multiple of the size of the numbers
 * @skb: the skb; unused if from.data is not NULL
 * @from: the numbers, one piece; its length is a multiple of the size of the numbers
 * @what: what to do, see acp_reduce_run()
 *
 * Context: any.
 * Return: 0; -EFAULT if the skb has no such bytes, and then some numbers may have been combined.
 */
int acp_region_accumulate(struct acp_region *r, u64 offset, const struct sk_buff *skb,
			  struct acp_pieces from, u64 what);

/**
 * acp_region_write_skb() - copy from an skb to a region
 * @r: the region
 * @offset: offset in the region
 * @skb: the skb
 * @from: where the bytes begin in @skb
 * @size: bytes
 *
 * Context: any.
 * Return: 0; -EFAULT if the skb has no such bytes, and then some may have been written.
 */
int acp_region_write_skb(struct acp_region *r, u64 offset, const struct sk_buff *skb,
			 struct acp_bytes from, size_t size);

/**
 * acp_region_write_pieces() - copy several pieces of an skb to contiguous offsets of a region
 * @r: the region
 * @offset: offset of the first piece in the region
 * @skb: the skb; unused if from.data is not NULL
 * @from: the pieces
 *
 * Context: any.
 * Return: 0; -EFAULT if the skb has no such bytes, and then some may have been written.
 */
int acp_region_write_pieces(struct acp_region *r, u64 offset, const struct sk_buff *skb,
			    struct acp_pieces from);

/**
 * acp_region_atomic() - execute an atomic operation
 * @r: the region
 * @offset: offset in the region, aligned to the operation's width
 * @op: the operation, see acp_op_result()
 * @a: first operand
 * @b: second operand
 *
 * Context: any.
 * Return: the value before the operation.
 */
u64 acp_region_atomic(struct acp_region *r, u64 offset, u8 op, u64 a, u64 b);

/**
 * acp_region_piece() - the page of an offset
 * @r: the region
 * @offset: offset in the region
 * @size: bytes wanted from @offset on; reduced to the bytes that are contiguous
 *
 * The contiguous bytes are in the returned page and the pages after it.  A reference to the page
 * holds all of these pages, so one fragment of a datagram can contain all the bytes.
 *
 * Context: any.
 * Return: the page, to which no reference is taken.
 */
struct page *acp_region_piece(struct acp_region *r, u64 offset, size_t *size);

#endif /* ACP_REGION_H */
