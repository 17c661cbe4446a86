// SPDX-License-Identifier: GPL-2.0-only
/* Copies along a chain of descriptors: see chain.h. */
#include <linux/slab.h>
#include "../job/job.h"
#include "../job/limits.h"
#include "chain.h"
#include "strided.h"

struct memory {
	struct acp_chain chain;
	struct acp_job *job;	/* exists longer than what has the chain */
	struct rcu_head rcu;
};

#define KIB	2	/* what the allocator takes for it */

static u32 need_of(u8 op)
{
	return op == ACP_OP_SCATTER ? ACP_ACCESS_WRITE : ACP_ACCESS_READ;
}

/* The region of all blocks of a part. */
static struct acp_region *region_of(struct acp_job *job, const struct acp_chain_part *p,
				    u32 origin, u32 need, u8 *status)
{
	u64 first, size;

	if (acp_strided_span(&job->ga, p->ga, p->stride, p->desc, &first, &size))
		return acp_region_get(job, first, size, origin, need, status);
	*status = ACP_ST_RANGE;
	return NULL;
}

/* May the blocks of this part be accessed? */
static u8 check_part(struct acp_job *job, const struct acp_chain_part *p, u32 origin, u32 need)
{
	struct acp_region *r;
	u8 status;

	r = region_of(job, p, origin, need, &status);
	if (r)
		acp_region_put(r);
	return status;
}

/* ---- reading a chain ---- */

static u8 read_descriptor(struct acp_job *job, u64 at, u32 origin, struct acp_descriptor *d)
{
	struct acp_region *r;
	u8 status;

	r = acp_region_get_bh(job, at, sizeof(*d), origin, ACP_ACCESS_READ, &status);
	if (!r)
		return status;
	acp_region_read(r, acp_ga_offset(&job->ga, at), d, sizeof(*d));
	acp_region_put(r);
	return ACP_ST_OK;
}

/* Read the next descriptor, the only time. */
static u8 next_part(struct acp_job *job, struct acp_chain *c, struct acp_chain_walk *w,
		    const struct acp_msg *m)
{
	bool scatter = m->op == ACP_OP_SCATTER;
	struct acp_descriptor d;
	u8 status;

	status = acp_chain_visit(c, w, &job->ga);
	if (!status)
		status = read_descriptor(job, w->at, m->origin, &d);
	if (!status)
		status = acp_chain_add(c, w, &job->ga, &d,
				       scatter ? ACP_CHAIN_SCATTER : ACP_CHAIN_GATHER);
	return status ?: check_part(job, &c->e[c->count - 1], m->origin, need_of(m->op));
}

static struct acp_chain *allocate(struct acp_job *job)
{
	struct memory *memory;

	BUILD_BUG_ON(sizeof(*memory) > KIB * SZ_1K);
	if (acp_user_charge(job->user, ACP_LIMIT_USER_MEMORY, KIB))
		return NULL;
	memory = kmalloc(sizeof(*memory), GFP_ATOMIC | __GFP_NOWARN);
	if (!memory) {
		acp_user_uncharge(job->user, ACP_LIMIT_USER_MEMORY, KIB);
		return NULL;
	}
	memory->job = job;
	return &memory->chain;
}

void acp_chain_close(struct acp_chain *c)
{
	struct memory *memory = container_of(c, struct memory, chain);

	acp_user_uncharge(memory->job->user, ACP_LIMIT_USER_MEMORY, KIB);
	kfree_rcu(memory, rcu);
}

struct acp_chain *acp_chain_open(struct acp_job *job, const struct acp_msg *m, u64 size,
				 u8 *status)
{
	u64 first = m->op == ACP_OP_SCATTER ? m->dst : m->src;
	struct acp_chain *c = allocate(job);
	struct acp_chain_walk w;

	*status = ACP_ST_NOMEM;
	if (!c)
		return NULL;
	acp_chain_begin(c, &w, &job->ga, first, size);
	do {
		*status = next_part(job, c, &w, m);
	} while (!*status && w.left);
	if (!*status)
		return c;
	acp_chain_close(c);
	return NULL;
}

/* ---- pieces of a copy to or from another node ---- */

u8 acp_chain_read(struct acp_job *job, const struct acp_chain *c, u32 origin, u64 position,
		  void *to, u32 size)
{
	const struct acp_chain_part *p = acp_chain_find(c, &position);
	struct acp_region *r;
	u8 status;
	u32 n;

	for (; size; size -= n, to += n, position = 0, p++) {
		struct acp_msg m = { .src = p->ga, .b = p->stride, .c = p->desc };

		n = min_t(u64, size, acp_strided_size(p->desc) - position);
		r = region_of(job, p, origin, ACP_ACCESS_READ, &status);
		if (!r)
			return status;
		acp_strided_read(r, &job->ga, &m, position, to, n);
		acp_region_put(r);
	}
	return ACP_ST_OK;
}

static u8 write_part(struct acp_job *job, const struct acp_chain_part *p, u32 origin,
		     u64 position, u32 size, struct sk_buff *skb, u32 at)
{
	const struct acp_msg m = {
		.dst = p->ga, .a = p->stride, .c = p->desc, .b = position, .length = size,
	};
	struct acp_region *r;
	u8 status;

	r = region_of(job, p, origin, ACP_ACCESS_WRITE, &status);
	if (!r)
		return status;
	status = acp_strided_write_skb(r, &job->ga, &m, skb, at);
	acp_region_put(r);
	return status;
}

u8 acp_chain_apply(struct acp_job *job, struct acp_chain *c, const struct acp_msg *m,
		   struct sk_buff *skb, u32 at)
{
	u64 position = m->b;
	const struct acp_chain_part *p = acp_chain_find(c, &position);
	u32 left = m->length, n;
	u8 status = ACP_ST_OK;

	for (; left && !status; left -= n, at += n, position = 0, p++) {
		n = min_t(u64, left, acp_strided_size(p->desc) - position);
		status = write_part(job, p, m->origin, position, n, skb, at);
	}
	if (m->length == m->c)
		acp_chain_close(c);
	return status;
}

/* ---- copies within a node ---- */

/* The end of such a copy that has no chain. */
static struct acp_region *plain_end(struct acp_job *job, const struct acp_msg *m, u64 position,
				    u64 size, u8 *status)
{
	bool scatter = m->op == ACP_OP_SCATTER;

	return acp_region_get(job, (scatter ? m->src : m->dst) + position, size, m->origin,
			      scatter ? ACP_ACCESS_READ : ACP_ACCESS_WRITE, status);
}

u8 acp_chain_direct(struct acp_job *job, struct acp_msg *m)
{
	struct acp_region *r;
	struct acp_chain *c;
	u8 status;

	r = plain_end(job, m, 0, m->size, &status);
	if (!r)
		return status;
	acp_region_put(r);
	c = acp_chain_open(job, m, m->size, &status);
	m->b = (unsigned long)c;
	return status;
}

/* Copy @size bytes between a part, from @position on, and the offset @at of the other end. */
static u8 copy_part(struct acp_job *job, const struct acp_chain_part *p, const struct acp_msg *m,
		    u64 position, struct acp_region *other, u64 at, u64 size)
{
	struct acp_walk w acp_uncleared;
	struct acp_region *r;
	u8 status;
	u32 n;

	r = region_of(job, p, m->origin, need_of(m->op), &status);
	if (!r)
		return status;
	acp_walk_begin(&w, acp_ga_offset(&job->ga, p->ga), p->stride, p->desc, position);
	for (; size; size -= n, at += n) {
		n = acp_walk_run(&w, size);
		if (m->op == ACP_OP_SCATTER)
			acp_region_copy(r, w.at, other, at, n);
		else
			acp_region_copy(other, at, r, w.at, n);
		acp_walk_skip(&w, n);
	}
	acp_region_put(r);
	return ACP_ST_OK;
}

static u8 copy_parts(struct acp_job *job, const struct acp_msg *m, u64 position,
		     struct acp_region *other, u64 at, u64 size)
{
	const struct acp_chain_part *p = acp_chain_find(acp_chain_of(m), &position);
	u8 status = ACP_ST_OK;
	u64 n;

	for (; size && !status; size -= n, at += n, position = 0, p++) {
		n = min(size, acp_strided_size(p->desc) - position);
		status = copy_part(job, p, m, position, other, at, n);
	}
	return status;
}

static u8 check_parts(struct acp_job *job, const struct acp_msg *m)
{
	const struct acp_chain *c = acp_chain_of(m);
	u8 status = ACP_ST_OK;
	u32 i;

	for (i = 0; i < c->count && !status; i++)
		status = check_part(job, &c->e[i], m->origin, need_of(m->op));
	return status;
}

u8 acp_chain_local(struct acp_job *job, const struct acp_msg *m, u64 position, u64 size)
{
	u64 plain = m->op == ACP_OP_SCATTER ? m->src : m->dst;
	struct acp_region *other;
	u8 status;

	other = plain_end(job, m, position, size ?: m->size, &status);
	if (!other)
		return status;
	if (size)
		status = copy_parts(job, m, position, other,
				    acp_ga_offset(&job->ga, plain) + position, size);
	else
		status = check_parts(job, m);
	acp_region_put(other);
	return status;
}
