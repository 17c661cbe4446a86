/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Regions: pinned or kernel-allocated memory that has an STag.
 *
 * Found by (rank, STag) under RCU from softirq, used under a reference that
 * is held for the time of a copy only.  acp_region_remove() waits for those
 * references, so that afterwards no byte can change; it never waits for the
 * network, since frames in flight name a region, they do not hold it.
 *
 * User memory is watched by an MMU notifier: when the mapping goes away the
 * region is revoked, and accesses fail as if it had been unregistered.
 */
#ifndef ACP_REGION_H
#define ACP_REGION_H

#include <linux/completion.h>
#include <linux/mmu_notifier.h>
#include <linux/refcount.h>
#include <linux/workqueue.h>
#include "bytes.h"
#include "context.h"
#include "job.h"
#include "pages.h"

struct acp_region {
	refcount_t users;	/* 1 while it is in the table, and each copy under way */
	bool revoked;		/* its mapping is gone */
	struct acp_context *owner;	/* whose it is; there while users are */
	u32 access;		/* ACP_ACCESS_ */
	u32 stag;
	u64 key;		/* its global addresses without their offsets */
	u64 base, end;		/* valid offsets: [base, end), base less than a page */
	struct acp_pages pages;	/* user memory */
	void *kaddr;		/* kernel-allocated memory */
	size_t bytes;		/* of kernel-allocated memory, whole pages */

	unsigned long npages;
	struct acp_user *user;	/* whom it counts for, as memory and if registered as a region */
	u32 color;
	u32 count;		/* registrations; under reg_lock */
	unsigned long start;	/* user address of offset 0 */
	struct mm_struct *mm;
	struct mmu_interval_notifier notifier;
	struct work_struct recheck;	/* is the mapping still the same? */
	spinlock_t changed_lock;	/* guards the next three */
	unsigned long changed;	/* pages [changed, changed_end): to be looked at */
	unsigned long changed_end;
	bool ready;		/* pages are filled in: recheck may look */
	bool notified;		/* the notifier is inserted */
	bool registered;
	struct completion idle;	/* users reached 0 */
	refcount_t holders;	/* the context, and mappings of kernel memory */
	struct rcu_head rcu;
};

/* Zeroed pages that users may map, charged to the caller's control group; vfree() frees them. */
void *acp_region_pages(size_t bytes);

/*
 * Kernel-allocated memory under a reserved STag; accounted to ctx->mm.  For the
 * user it is ctx->paid: price adds the KiB to *kib, or says -ENOMEM.
 */
int acp_region_price(const struct acp_job *job, u64 bytes, unsigned long *kib);
int acp_region_allocate(struct acp_context *ctx, u32 stag, u64 bytes);

/* Registration and its end, from ioctls. */
int acp_region_register(struct acp_context *ctx, struct acp_reg *reg);
int acp_region_unregister(struct acp_context *ctx, u64 key, u32 *left);

/* All regions of a rank that leaves. */
void acp_region_remove_all(struct acp_context *ctx);

void acp_region_hold(struct acp_region *r);
void acp_region_release(struct acp_region *r);

/* May "rank" do "need" (ACP_ACCESS_) to so many bytes at an offset?  ACP_ST_.  With a reference. */
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

static inline void acp_region_put(struct acp_region *r)
{
	if (refcount_dec_and_test(&r->users))
		complete(&r->idle);
}

/* Number of a global address in the job's near regions: of its rank, color and STag. */
static inline unsigned long acp_region_number(const struct acp_ga_layout *l, u64 ga)
{
	return ga >> l->offset_bits ^ ga >> (64 - l->rank_bits);
}

/*
 * The region of [ga, ga + size) in job, with a user's reference, if "rank" may do "need"
 * (ACP_ACCESS_READ, WRITE, ATOMIC) there.  NULL: ask acp_region_get_bh().  RCU, or BH off.
 * Regions are in their tables before their rank has joined, and after it has left: so it is
 * looked for, too.
 */
static inline struct acp_region *acp_region_near(const struct acp_job *job, u64 ga, u64 size,
						 u32 rank, u32 need)
{
	struct acp_region *r = acp_near_look(&job->near_regions, acp_region_number(&job->ga, ga));
	u64 offset = acp_ga_offset(&job->ga, ga);
	u32 owner = acp_ga_rank(&job->ga, ga);

	if (!r || r->key != ga - offset || acp_near_look(&job->near_ranks, owner) != r->owner ||
	    !refcount_inc_not_zero(&r->users))
		return NULL;
	if (!acp_region_check(r, offset, size, owner == rank, need))
		return r;
	acp_region_put(r);
	return NULL;
}

/* The same; else NULL and *status.  Any context. */
struct acp_region *acp_region_get(struct acp_job *job, u64 ga, u64 size, u32 rank, u32 need,
				  u8 *status);

/* The same with BH off, which RCU waits for as for its readers. */
struct acp_region *acp_region_get_bh(struct acp_job *job, u64 ga, u64 size, u32 rank, u32 need,
				     u8 *status);

/* With a reference, within bounds, any context: */
void acp_region_read(struct acp_region *r, u64 offset, void *to, size_t size);
void acp_region_write(struct acp_region *r, u64 offset, const void *from, size_t size);
u64 acp_region_read_word(struct acp_region *r, u64 offset);
void acp_region_write_word(struct acp_region *r, u64 offset, u64 word);
void acp_region_copy(struct acp_region *to, u64 to_offset, struct acp_region *from,
		     u64 from_offset, size_t size);
int acp_region_write_skb(struct acp_region *r, u64 offset, const struct sk_buff *skb,
			 struct acp_bytes from, size_t size);
/* Several pieces of an skb, one behind the other. */
int acp_region_write_pieces(struct acp_region *r, u64 offset, const struct sk_buff *skb,
			    struct acp_pieces from);
u64 acp_region_atomic(struct acp_region *r, u64 offset, u8 op, u64 a, u64 b);

/*
 * The page that an offset is in; *size becomes smaller, unless so many bytes
 * from there on are one behind the other, in that page and those behind it,
 * all held with it: a fragment of a datagram may have them all.
 */
struct page *acp_region_piece(struct acp_region *r, u64 offset, size_t *size);

#endif /* ACP_REGION_H */
