// SPDX-License-Identifier: GPL-2.0-only
/* Strided copies on regions: see strided.h. */
#include <linux/highmem.h>
#include <linux/skbuff.h>
#include "../job/job.h"
#include "strided.h"
#include "../mem/watch.h"

static struct acp_region *get(struct acp_job *job, const struct acp_msg *m, u64 ga, u64 stride,
			      u32 need, u8 *status)
{
	u64 first, size;

	if (acp_strided_span(&job->ga, ga, stride, m->c, &first, &size))
		return acp_region_get(job, first, size, m->origin, need, status);
	*status = ACP_ST_RANGE;
	return NULL;
}

struct acp_region *acp_strided_src(struct acp_job *job, const struct acp_msg *m, u8 *status)
{
	return get(job, m, m->src, m->b, ACP_ACCESS_READ, status);
}

struct acp_region *acp_strided_dst(struct acp_job *job, const struct acp_msg *m, u8 *status)
{
	return get(job, m, m->dst, m->a, ACP_ACCESS_WRITE, status);
}

/* The page of a region that is mapped: blocks are short, and many of them are in one page. */
struct view {
	struct acp_region *r;
	u64 page;		/* index of the page in the region */
	u8 *at;			/* NULL: none is mapped */
};

static void end_view(struct view *v)
{
	if (v->at && !v->r->kaddr)
		kunmap_local(v->at);
	v->at = NULL;
}

static void open_page(struct view *v, u64 page)
{
	size_t one = 1;

	end_view(v);
	v->page = page;
	if (v->r->kaddr)
		v->at = v->r->kaddr + (page << PAGE_SHIFT);
	else
		v->at = kmap_local_page(acp_region_piece(v->r, page << PAGE_SHIFT, &one));
}

/* Map an offset and return its address.  *n: bytes wanted; reduced to those within the page. */
static inline u8 *look(struct view *v, u64 offset, u32 *n)
{
	if (v->page != offset >> PAGE_SHIFT || !v->at)
		open_page(v, offset >> PAGE_SHIFT);
	*n = min_t(u32, *n, PAGE_SIZE - offset_in_page(offset));
	return v->at + offset_in_page(offset);
}

void acp_strided_read(struct acp_region *r, const struct acp_ga_layout *l,
		      const struct acp_msg *m, u64 position, void *to, u32 size)
{
	struct acp_walk w acp_uncleared;
	struct view v = { .r = r };
	u32 n;

	acp_walk_begin(&w, acp_ga_offset(l, m->src), m->b, m->c, position);
	for (; size; size -= n, to += n) {
		u8 *p;

		n = acp_walk_run(&w, size);
		p = look(&v, w.at, &n);
		acp_bytes_move(to, p, n);
		acp_walk_skip(&w, n);
	}
	end_view(&v);
}

/* Scatter bytes that are contiguous in memory. */
static void scatter(struct acp_region *r, struct acp_walk *w, const u8 *from, u32 size)
{
	struct view v = { .r = r };
	u32 n;

	for (; size; size -= n, from += n) {
		u8 *p;

		n = acp_walk_run(w, size);
		p = look(&v, w->at, &n);
		acp_bytes_move(p, from, n);
		acp_walk_skip(w, n);
	}
	end_view(&v);
}

u8 acp_strided_write_skb(struct acp_region *r, const struct acp_ga_layout *l,
			 const struct acp_msg *m, struct sk_buff *skb, u32 at)
{
	struct skb_seq_state pieces;
	struct acp_walk w acp_uncleared;
	u32 done = 0, n;
	const u8 *p;

	acp_walk_begin(&w, acp_ga_offset(l, m->dst), m->a, m->c, m->b);
	skb_prepare_seq_read(skb, at, at + m->length, &pieces);
	while (done < m->length && (n = skb_seq_read(done, &p, &pieces))) {
		n = min(n, m->length - done);
		scatter(r, &w, p, n);
		done += n;
	}
	skb_abort_seq_read(&pieces);
	acp_watch_scattered(r);
	return done == m->length ? ACP_ST_OK : ACP_ST_RANGE;
}

u8 acp_strided_apply(struct acp_job *job, const struct acp_msg *m, struct sk_buff *skb, u32 at)
{
	struct acp_region *r;
	u8 status;

	r = acp_strided_dst(job, m, &status);
	if (!r)
		return status;
	status = acp_strided_write_skb(r, &job->ga, m, skb, at);
	acp_region_put(r);
	return status;
}

static void copy(struct acp_region *to, struct acp_region *from, const struct acp_ga_layout *l,
		 const struct acp_msg *m, u64 position, u64 size)
{
	struct acp_walk in acp_uncleared, out acp_uncleared;
	u32 n;

	acp_walk_begin(&in, acp_ga_offset(l, m->src), m->b, m->c, position);
	acp_walk_begin(&out, acp_ga_offset(l, m->dst), m->a, m->c, position);
	for (; size; size -= n) {
		n = acp_walk_run(&in, size);
		acp_region_copy(to, out.at, from, in.at, n);
		acp_walk_skip(&in, n);
		acp_walk_skip(&out, n);
	}
}

u8 acp_strided_local(struct acp_job *job, const struct acp_msg *m, u64 position, u64 size)
{
	struct acp_region *src, *dst;
	u8 status;

	src = acp_strided_src(job, m, &status);
	if (!src)
		return status;
	dst = acp_strided_dst(job, m, &status);
	if (dst) {
		copy(dst, src, &job->ga, m, position, size);
		acp_region_put(dst);
	}
	acp_region_put(src);
	return status;
}
