// SPDX-License-Identifier: GPL-2.0-only
/* Match lists of ranks: see matching.h. */
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>
#include "matching.h"
#include "../core/match.h"
#include "../job/limits.h"
#include "../job/node.h"
#include "../mem/region.h"

#define KEPT	0x80000000u	/* in acp_place.entry: a kept message, not a receive */

struct acp_match_list {
	spinlock_t lock;	/* BH; guards all below but what is constant */
	struct acp_matcher m;
	bool closed;		/* no further messages */
	/* constant */
	struct acp_job *job;
	u32 owner, number;
	u64 mailbox, results, memory;	/* global addresses */
	unsigned long kib;	/* charged to the user */
};

/* ---- memory of the owner ---- */

/* Can these bytes be memory of the rank, in one region? */
static bool may_be_own(const struct acp_rank *rank, u64 ga, u64 bytes)
{
	const struct acp_ga_layout *l = &rank->job->ga;

	return acp_ga_valid(l, ga) && acp_ga_rank(l, ga) == rank->number &&
	       bytes <= (1ULL << l->offset_bits) - acp_ga_offset(l, ga);
}

static void write_result(struct acp_match_list *l, u32 number, const struct acp_result *result)
{
	const size_t first = offsetof(struct acp_result, size);
	u64 ga = l->results + (u64)number * sizeof(*result), offset;
	struct acp_region *r;
	u8 status;

	r = acp_region_cached(l->job, ga, sizeof(*result), l->owner, ACP_ACCESS_WRITE) ?:
	    acp_region_get_bh(l->job, ga, sizeof(*result), l->owner, ACP_ACCESS_WRITE, &status);
	if (!r)
		return;
	offset = acp_ga_offset(&l->job->ga, ga);
	acp_region_write(r, offset + first, &result->size, sizeof(*result) - first);
	/* Whoever sees the state sees what was written before. */
	smp_wmb();
	acp_region_write_word(r, offset, result->state);
	acp_region_put(r);
}

/* A look for kept messages may find another one: those wake up who wait for that. */
static void count_kept(struct acp_match_list *l)
{
	struct acp_region *r;
	u8 status;

	r = acp_region_get_bh(l->job, l->mailbox, sizeof(u64), l->owner, ACP_ACCESS_ATOMIC,
			      &status);
	if (!r)
		return;
	acp_region_atomic(r, acp_ga_offset(&l->job->ga, l->mailbox), ACP_OP_ADD8, 1, 0);
	acp_region_put(r);
}

/* A receive has got a message that was kept, or that has failed on its way. */
static void give(struct acp_match_list *l, const struct acp_kept *kept, u32 number, u8 status)
{
	const struct acp_result result = {
		.state = status ? ACP_RESULT_FAILED : ACP_RESULT_KEPT, .size = kept->size,
		.tag = kept->tag, .rank = kept->rank, .message = kept - l->m.kept, .at = kept->at,
		.status = status,
	};

	write_result(l, number, &result);
}

/* ---- messages ---- */

static u8 begin(struct acp_match_list *l, const struct acp_msg *m, u64 size, u64 tag,
		struct acp_place *place)
{
	u32 i = acp_matcher_match(&l->m, m->origin, tag, size);
	const struct acp_receive *r;
	u8 status;

	place->list = l->number;
	if (i != ACP_MATCH_NONE) {
		acp_stat_inc(l->job->node, messages_matched);
		r = &l->m.receive[i];
		place->room = min(size, r->room);
		place->dst = place->room ? r->buffer : l->mailbox;
		place->entry = i;
		return ACP_ST_OK;
	}
	status = acp_matcher_keep(&l->m, m->origin, tag, size, &i);
	if (status)
		return status;
	acp_stat_inc(l->job->node, messages_kept);
	place->room = size;
	place->dst = l->memory + l->m.kept[i].at;
	place->entry = i | KEPT;
	return ACP_ST_OK;
}

struct acp_match_list *acp_matching_find(struct acp_job *job, u64 ga, u32 number)
{
	struct acp_rank *rank = acp_job_rank(job, acp_ga_rank(&job->ga, ga));

	return rank ? xa_load(&rank->lists, number) : NULL;
}

u8 acp_matching_begin(struct acp_match_list *l, const struct acp_msg *m, u64 size, u64 tag,
		      struct acp_place *place)
{
	u8 status = ACP_ST_AGAIN;

	if (!l || l->mailbox != m->dst)
		return status;
	spin_lock(&l->lock);
	if (!l->closed)
		status = begin(l, m, size, tag, place);
	spin_unlock(&l->lock);
	return status;
}

static void end_receive(struct acp_match_list *l, u32 i, u8 status)
{
	const struct acp_receive *r = &l->m.receive[i];
	const struct acp_result result = {
		.state = status ? ACP_RESULT_FAILED : ACP_RESULT_DONE, .size = r->size,
		.tag = r->tag, .rank = r->rank, .status = status,
	};

	write_result(l, i, &result);
	acp_matcher_done(&l->m, i);
}

static void end_kept(struct acp_match_list *l, u32 i, u8 status)
{
	u32 number = acp_matcher_kept(&l->m, i, status);

	/* What it was is still there, even if it is free now. */
	if (number != ACP_MATCH_NONE)
		give(l, &l->m.kept[i], number, status);
	else
		count_kept(l);
}

u8 acp_matching_end(struct acp_match_list *l, const struct acp_place *place, u8 status)
{
	if (!l)
		return status ?: ACP_ST_RANK;
	spin_lock(&l->lock);
	if (place->entry & KEPT)
		end_kept(l, place->entry & ~KEPT, status);
	else
		end_receive(l, place->entry, status);
	spin_unlock(&l->lock);
	return status;
}

/* A message that it accepts may have been kept meanwhile. */
static void post_again(struct acp_match_list *l, u32 number)
{
	struct acp_matcher *m = &l->m;
	u32 i;

	acp_matcher_return(m, number);
	i = acp_matcher_find(m, &m->by_receive.e[number].key);
	if (i == ACP_MATCH_NONE)
		return;
	acp_matcher_withdraw(m, number);
	if (acp_matcher_take(m, i, number))
		give(l, &m->kept[i], number, ACP_ST_OK);
}

void acp_matching_undo(struct acp_match_list *l, const struct acp_place *place)
{
	spin_lock(&l->lock);
	if (place->entry & KEPT)
		end_kept(l, place->entry & ~KEPT, ACP_ST_NOMEM);
	else
		post_again(l, place->entry);
	spin_unlock(&l->lock);
}

/* ---- posting ---- */

static int check_post(const struct acp_rank *rank, const struct acp_post *p)
{
	bool any = p->flags & ACP_POST_ANY_RANK;
	u32 how = p->flags & (ACP_POST_TAKE | ACP_POST_PROBE);

	if ((p->flags & ~ACP_POST_FLAGS) || how == (ACP_POST_TAKE | ACP_POST_PROBE))
		return -EINVAL;
	if (any ? p->rank : p->rank >= rank->job->ga.nprocs)
		return -EINVAL;
	if (how && (p->buffer || p->room))
		return -EINVAL;
	if (p->room && !may_be_own(rank, p->buffer, p->room))
		return -EINVAL;
	return p->result && how == ACP_POST_PROBE ? -EINVAL : 0;
}

/* Returns 1 if a message has been kept, which is described. */
static int post(struct acp_match_list *l, struct acp_post *p)
{
	u32 mask = acp_matcher_mask(&l->m, p->ignore), i;
	struct acp_matcher *m = &l->m;
	struct acp_key key;

	if (mask == ACP_MATCH_NONE || p->result >= m->receives)
		return -EINVAL;
	if (!(p->flags & ACP_POST_PROBE) && m->receive[p->result].state != ACP_RECEIVE_FREE)
		return -EBUSY;
	key = acp_matcher_key(m, p->flags & ACP_POST_ANY_RANK ? ~0u : p->rank, p->tag, mask);
	i = acp_matcher_find(m, &key);
	if ((p->flags & ~ACP_POST_ANY_RANK) && (i == ACP_MATCH_NONE || m->kept[i].arriving))
		return -EAGAIN;
	if (i == ACP_MATCH_NONE) {
		acp_matcher_post(m, p->result, &key, p->buffer, p->room);
		return 0;
	}
	p->message_rank = m->kept[i].rank;
	p->message_tag = m->kept[i].tag;
	p->message_size = m->kept[i].size;
	if (p->flags & ACP_POST_PROBE)
		return 1;
	if (acp_matcher_take(m, i, p->result))
		give(l, &m->kept[i], p->result, ACP_ST_OK);
	else
		count_kept(l);
	return 1;
}

int acp_matching_post(struct acp_rank *rank, struct acp_post *p)
{
	struct acp_match_list *l;
	int err = check_post(rank, p);

	if (err)
		return err;
	rcu_read_lock();
	l = xa_load(&rank->lists, p->list);
	if (l) {
		spin_lock_bh(&l->lock);
		err = l->closed ? -ENOENT : post(l, p);
		spin_unlock_bh(&l->lock);
	}
	rcu_read_unlock();
	return l ? err : -ENOENT;
}

static int unpost(struct acp_match_list *l, const struct acp_unpost *u)
{
	struct acp_matcher *m = &l->m;

	if (u->what == ACP_UNPOST_RECEIVE && u->number < m->receives &&
	    m->receive[u->number].state == ACP_RECEIVE_POSTED) {
		acp_matcher_withdraw(m, u->number);
		return 0;
	}
	if (u->what == ACP_UNPOST_MESSAGE && u->number < m->messages &&
	    m->kept[u->number].state == ACP_KEPT_GIVEN) {
		acp_matcher_release(m, u->number);
		return 0;
	}
	return -ENOENT;
}

/* ---- begin and end ---- */

static void list_free(struct acp_rank *rank, struct acp_match_list *l)
{
	acp_user_uncharge(rank->user, ACP_LIMIT_USER_MEMORY, l->kib);
	kvfree(l);
}

/* The caller holds queues_lock. */
static int list_remove(struct acp_rank *rank, u32 number)
{
	struct acp_match_list *l = xa_load(&rank->lists, number);
	bool busy;

	if (!l)
		return -ENOENT;
	spin_lock_bh(&l->lock);
	l->closed = true;
	busy = l->m.busy;
	spin_unlock_bh(&l->lock);
	if (busy)
		return -EBUSY;
	xa_erase(&rank->lists, number);
	rank->n_lists--;
	synchronize_rcu();
	list_free(rank, l);
	return 0;
}

int acp_matching_unpost(struct acp_rank *rank, const struct acp_unpost *u)
{
	struct acp_match_list *l;
	int err = -ENOENT;

	if (!u->what || u->what > ACP_UNPOST_LIST ||
	    (u->what == ACP_UNPOST_LIST && u->number))
		return -EINVAL;
	if (u->what == ACP_UNPOST_LIST) {
		mutex_lock(&rank->queues_lock);
		err = list_remove(rank, u->list);
		mutex_unlock(&rank->queues_lock);
		return err;
	}
	rcu_read_lock();
	l = xa_load(&rank->lists, u->list);
	if (l) {
		spin_lock_bh(&l->lock);
		err = unpost(l, u);
		spin_unlock_bh(&l->lock);
	}
	rcu_read_unlock();
	return err;
}

static bool masks_ok(const struct acp_match *a)
{
	u32 i, j;

	if (!a->masks || a->masks > ACP_MASKS_MAX)
		return false;
	for (i = 0; i < a->masks; i++)
		for (j = 0; j < i; j++)
			if (a->mask[i] == a->mask[j])
				return false;
	for (; i < ACP_MASKS_MAX; i++)
		if (a->mask[i])
			return false;
	return true;
}

static bool request_ok(const struct acp_rank *rank, const struct acp_match *a)
{
	return !a->flags && !a->reserved && masks_ok(a) && a->receives && a->messages &&
	       a->receives <= ACP_RECEIVES_MAX && a->messages <= ACP_RECEIVES_MAX &&
	       !(a->bytes & 7) && !((a->mailbox | a->results | a->memory) & 7) &&
	       may_be_own(rank, a->mailbox, sizeof(struct acp_mailbox)) &&
	       may_be_own(rank, a->results, (u64)a->receives * sizeof(struct acp_result)) &&
	       may_be_own(rank, a->memory, a->bytes);
}

static struct acp_match_list *list_alloc(struct acp_rank *rank, const struct acp_match *a)
{
	struct acp_matcher m = {
		.receives = a->receives, .messages = a->messages, .masks = a->masks,
		.bytes = a->bytes,
	};
	size_t bytes = sizeof(struct acp_match_list) + acp_matcher_bytes(&m);
	unsigned long kib = DIV_ROUND_UP(bytes, 1024);
	int err = acp_user_charge(rank->user, ACP_LIMIT_USER_MEMORY, kib);
	struct acp_match_list *l;
	u64 secret[2];

	if (err)
		return ERR_PTR(err);
	l = kvzalloc(bytes, GFP_KERNEL_ACCOUNT);
	if (!l) {
		acp_user_uncharge(rank->user, ACP_LIMIT_USER_MEMORY, kib);
		return ERR_PTR(-ENOMEM);
	}
	memcpy(m.mask, a->mask, sizeof(m.mask));
	get_random_bytes(secret, sizeof(secret));
	spin_lock_init(&l->lock);
	l->m = m;
	acp_matcher_init(&l->m, l + 1, secret);
	l->kib = kib;
	return l;
}

/* The caller holds queues_lock. */
static int list_add_to(struct acp_rank *rank, struct acp_match *a)
{
	struct acp_match_list *l;
	int err;

	if (rank->n_lists == ACP_LISTS_MAX || rank->last_list == ACP_LIST_LAST)
		return -ENOSPC;
	l = list_alloc(rank, a);
	if (IS_ERR(l))
		return PTR_ERR(l);
	l->job = rank->job;
	l->owner = rank->number;
	l->number = rank->last_list + 1;
	l->mailbox = a->mailbox;
	l->results = a->results;
	l->memory = a->memory;
	a->list = l->number;
	err = xa_insert(&rank->lists, l->number, l, GFP_KERNEL_ACCOUNT);
	if (err) {
		list_free(rank, l);
		return err;
	}
	rank->last_list++;
	rank->n_lists++;
	return 0;
}

int acp_matching_create(struct acp_rank *rank, struct acp_match *a)
{
	int err;

	if (!request_ok(rank, a))
		return -EINVAL;
	mutex_lock(&rank->queues_lock);
	err = list_add_to(rank, a);
	mutex_unlock(&rank->queues_lock);
	return err;
}

void acp_matching_leave(struct acp_rank *rank)
{
	struct acp_match_list *l;
	unsigned long i;

	xa_for_each(&rank->lists, i, l)
		list_free(rank, l);
	xa_destroy(&rank->lists);
}
