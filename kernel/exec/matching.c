// SPDX-License-Identifier: GPL-2.0-only
/* Match lists of ranks: see matching.h. */
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include "grant.h"
#include "matching.h"
#include "../core/match.h"
#include "../job/limits.h"
#include "../job/node.h"
#include "../mem/region.h"
#include "../upcall.h"

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
	/* A reader that sees the state sees what was written before. */
	smp_wmb();
	acp_region_write_word(r, offset, result->state);
	acp_region_put(r);
}

/* A search of kept messages may find another one: wake up the threads that wait for that. */
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

static void to_receive(const struct acp_match_list *l, u32 i, u64 size, struct acp_place *place)
{
	const struct acp_receive *r = &l->m.receive[i];

	place->room = min(size, r->room);
	place->dst = place->room ? r->buffer : l->mailbox;
	place->entry = i;
}

static void to_memory(const struct acp_match_list *l, u32 i, u64 size, struct acp_place *place)
{
	place->room = size;
	place->dst = l->memory + l->m.kept[i].at;
	place->entry = i | KEPT;
}

static u8 begin(struct acp_match_list *l, const struct acp_msg *m, u64 size, u64 tag,
		struct acp_place *place)
{
	u32 i = acp_matcher_match(&l->m, m->origin, tag, size);
	u8 status;

	place->list = l->number;
	if (i != ACP_MATCH_NONE) {
		acp_stat_inc(l->job->node, messages_matched);
		to_receive(l, i, size, place);
		return ACP_ST_OK;
	}
	status = acp_matcher_keep(&l->m, m->origin, tag, size, &i);
	if (status)
		return status;
	acp_stat_inc(l->job->node, messages_kept);
	to_memory(l, i, size, place);
	return ACP_ST_OK;
}

struct acp_match_list *acp_matching_find(struct acp_job *job, u64 ga, u32 number)
{
	struct acp_rank *rank = acp_job_rank(job, acp_ga_rank(&job->ga, ga));

	return rank ? xa_load(&rank->lists, number) : NULL;
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

/* ---- messages that ask ---- */

/*
 * What has the entry, a receive or a kept message, been granted to?  *rank: the sender, *size: the
 * bytes of the message.  NULL: there is no such entry, or bytes have arrived.
 */
static struct acp_ask *granted_to(struct acp_match_list *l, u64 entry, u32 *rank, u64 *size)
{
	u32 i = entry & ~KEPT;
	struct acp_receive *r = &l->m.receive[i];
	struct acp_kept *kept = &l->m.kept[i];

	if (entry > U32_MAX || i >= (entry & KEPT ? l->m.messages : l->m.receives))
		return NULL;
	*rank = entry & KEPT ? kept->rank : r->rank;
	*size = entry & KEPT ? kept->size : r->size;
	if (entry & KEPT)
		return kept->granted ? &kept->ask : NULL;
	return r->granted ? &r->ask : NULL;
}

/* The first bytes are here, or none will come. */
static void end_grant(struct acp_match_list *l, u32 entry)
{
	u32 i = entry & ~KEPT;

	if (entry & KEPT)
		l->m.kept[i].granted = false;
	else
		l->m.receive[i].granted = false;
	l->m.granted--;
	atomic_dec(&l->job->grants);
	atomic_dec(&l->job->asks);
}

static void send_grant(struct acp_match_list *l, u32 entry)
{
	struct acp_msg m = { .type = ACP_MSG_GRANT, .dst = l->mailbox, .a = entry };
	u64 size;
	struct acp_ask *ask = granted_to(l, entry, &m.origin, &size);

	m.ticket = ask->ticket;
	ask->when = acp_grant_send(l->job, &m, ask->color, ask->epoch) ? acp_now() : 0;
	if (!ask->when)
		acp_station_tend(l->job, true);
}

/* The entry is granted from now on. */
static void grant(struct acp_match_list *l, u32 entry)
{
	atomic_inc(&l->job->grants);
	send_grant(l, entry);
	acp_station_tend(l->job, false);
}

/* Remove a message that asks. */
static void refuse(struct acp_match_list *l, u32 i)
{
	acp_matcher_refuse(&l->m, i);
	atomic_dec(&l->job->asks);
}

static bool is_gone(const struct acp_match_list *l, u32 i)
{
	const struct acp_kept *kept = &l->m.kept[i];

	return kept->asks && acp_grant_gone(l->job, kept->rank, kept->ask.ticket, l->mailbox,
					    kept->ask.color, kept->ask.epoch);
}

#define GONE_MAX	64	/* messages that are removed in one look */

/* The oldest kept message that a receive accepts.  Those whose senders have gone are removed. */
static u32 find_kept(struct acp_match_list *l, const struct acp_key *key)
{
	u32 i = acp_matcher_find(&l->m, key), n;

	for (n = 0; n < GONE_MAX && i != ACP_MATCH_NONE && is_gone(l, i); n++) {
		refuse(l, i);
		i = acp_matcher_find(&l->m, key);
	}
	return i;
}

/* A receive that is POSTED gets the kept message. */
static void accept(struct acp_match_list *l, u32 i, u32 number)
{
	struct acp_matcher *m = &l->m;

	if (m->kept[i].asks) {
		acp_stat_inc(l->job->node, messages_matched);
		acp_matcher_grant(m, i, number);
		grant(l, number);
		return;
	}
	acp_matcher_withdraw(m, number);
	if (acp_matcher_take(m, i, number))
		give(l, &m->kept[i], number, ACP_ST_OK);
}

/* A message that it accepts may have been kept meanwhile. */
static void post_again(struct acp_match_list *l, u32 number)
{
	struct acp_matcher *m = &l->m;
	u32 i;

	acp_matcher_return(m, number);
	i = find_kept(l, &m->by_receive.e[number].key);
	if (i != ACP_MATCH_NONE)
		accept(l, i, number);
}

/* The message that the entry was granted to will not come. */
static void take_back(struct acp_match_list *l, u32 entry)
{
	end_grant(l, entry);
	if (entry & KEPT)
		end_kept(l, entry & ~KEPT, ACP_ST_PEER);
	else
		post_again(l, entry);
}

/* The first bytes of a message that was granted an entry. */
static u8 begin_granted(struct acp_match_list *l, const struct acp_msg *m, u64 size, u64 entry,
			struct acp_place *place)
{
	u64 asked = 0;
	u32 rank = 0;
	const struct acp_ask *ask = granted_to(l, entry, &rank, &asked);

	if (!ask || rank != m->origin || ask->ticket != m->ticket)
		return ACP_ST_AGAIN;
	if (size != asked) {
		take_back(l, entry);
		return ACP_ST_RANGE;
	}
	end_grant(l, entry);
	place->list = l->number;
	if (entry & KEPT)
		to_memory(l, entry & ~KEPT, size, place);
	else
		to_receive(l, entry, size, place);
	return ACP_ST_OK;
}

u8 acp_matching_begin(struct acp_match_list *l, const struct acp_msg *m, u64 size, u64 tag,
		      struct acp_place *place)
{
	u8 status = ACP_ST_AGAIN;

	if (!l || l->mailbox != m->dst)
		return status;
	spin_lock(&l->lock);
	if (m->flags & ACP_MSG_GRANTED)
		status = begin_granted(l, m, size, tag, place);
	else if (!l->closed)
		status = begin(l, m, size, tag, place);
	spin_unlock(&l->lock);
	return status;
}

static u8 ask(struct acp_match_list *l, const struct acp_msg *m, u32 epoch)
{
	const struct acp_ask ask = {
		.ticket = m->ticket, .epoch = epoch, .color = acp_ga_color(&l->job->ga, m->dst),
	};
	u32 i = acp_matcher_match(&l->m, m->origin, m->b, m->size);
	u8 status;

	if (i != ACP_MATCH_NONE) {
		acp_stat_inc(l->job->node, messages_matched);
		acp_matcher_promise(&l->m, i, &ask);
		atomic_inc(&l->job->asks);
		grant(l, i);
		return ACP_ST_OK;
	}
	status = acp_matcher_ask(&l->m, m->origin, m->b, m->size, &ask);
	if (status)
		return status;
	atomic_inc(&l->job->asks);
	count_kept(l);
	return ACP_ST_OK;
}

u8 acp_matching_ask(struct acp_match_list *l, const struct acp_msg *m, u32 epoch)
{
	u8 status = ACP_ST_AGAIN;

	if (!l || l->mailbox != m->dst)
		return status;
	spin_lock(&l->lock);
	if (!l->closed)
		status = ask(l, m, epoch);
	spin_unlock(&l->lock);
	if (!status)
		acp_stat_inc(l->job->node, messages_asked);
	return status;
}

void acp_matching_gone(struct acp_job *job, const struct acp_msg *m)
{
	struct acp_rank *owner = acp_job_rank(job, acp_ga_rank(&job->ga, m->dst));
	struct acp_match_list *l;
	const struct acp_ask *ask;
	unsigned long i;
	u32 rank;
	u64 size;

	if (!owner)
		return;
	xa_for_each(&owner->lists, i, l) {
		if (l->mailbox != m->dst)
			continue;
		spin_lock(&l->lock);
		ask = granted_to(l, m->a, &rank, &size);
		if (ask && rank == m->origin && ask->ticket == m->ticket)
			take_back(l, m->a);
		spin_unlock(&l->lock);
	}
}

/* A grant is repeated: the answer that the command has gone may never have been sent. */
#define REPEAT_NS	NSEC_PER_SEC

static void tend_entry(struct acp_match_list *l, u32 entry)
{
	const struct acp_ask *ask;
	u32 rank;
	u64 size;

	ask = granted_to(l, entry, &rank, &size);
	if (!ask)
		return;
	if (acp_grant_gone(l->job, rank, ask->ticket, l->mailbox, ask->color, ask->epoch))
		take_back(l, entry);
	else if (acp_now() - ask->when >= REPEAT_NS)
		send_grant(l, entry);
}

#define TEND_ENTRIES	32	/* with BH off */

static void tend_list(struct acp_match_list *l)
{
	u32 count = max(l->m.receives, l->m.messages), i = 0, until;

	while (i < count && READ_ONCE(l->m.granted) + READ_ONCE(l->m.asking)) {
		spin_lock_bh(&l->lock);
		for (until = i + TEND_ENTRIES; i < min(until, count); i++) {
			tend_entry(l, i);
			tend_entry(l, i | KEPT);
			if (i < l->m.messages && is_gone(l, i))
				refuse(l, i);
		}
		spin_unlock_bh(&l->lock);
	}
}

void acp_matching_tend(struct acp_job *job)
{
	struct acp_match_list *l;
	struct acp_rank *rank;
	unsigned long i;

	rcu_read_lock();
	list_for_each_entry_rcu(rank, &job->rank_list, link)
		xa_for_each(&rank->lists, i, l)
			tend_list(l);
	rcu_read_unlock();
}

/* The grant of an entry may not have been sent. */
static void refuse_granted(struct acp_match_list *l, u32 entry, u8 status)
{
	u32 rank;
	u64 size;
	const struct acp_ask *ask = granted_to(l, entry, &rank, &size);

	if (!ask)
		return;
	acp_grant_refuse(l->job, rank, ask->ticket, ask->color, status);
	end_grant(l, entry);
}

/* The list is removed: all that have asked are told so.  Nobody else finds the list. */
static void refuse_all(struct acp_match_list *l, u8 status)
{
	u32 count = max(l->m.receives, l->m.messages), i;

	for (i = 0; i < count && l->m.asking + l->m.granted; i++) {
		const struct acp_kept *kept = &l->m.kept[i];

		refuse_granted(l, i, status);
		refuse_granted(l, i | KEPT, status);
		if (i >= l->m.messages || !kept->asks)
			continue;
		acp_grant_refuse(l->job, kept->rank, kept->ask.ticket, kept->ask.color, status);
		refuse(l, i);
	}
	/* Commands of this node may be ordered behind those that have ended. */
	local_bh_disable();
	acp_station_idle(l->job);
	local_bh_enable();
}

/* ---- messages that come again ---- */

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

/* The owner wants a message of which only the sender has the bytes. */
static int admit(struct acp_match_list *l, u32 i)
{
	u8 status = acp_matcher_admit(&l->m, i);

	if (!status)
		grant(l, i | KEPT);
	return status == ACP_ST_RANGE ? -EMSGSIZE : -EAGAIN;
}

#define LEARN_STEPS	64	/* with BH off */

/* Returns 1 if a message has been kept, which is described; -EINPROGRESS: call it again. */
static int post(struct acp_match_list *l, struct acp_post *p)
{
	struct acp_matcher *m = &l->m;
	struct acp_key key;
	u32 mask, i;

	if (p->result >= m->receives)
		return -EINVAL;
	if (!(p->flags & ACP_POST_PROBE) && m->receive[p->result].state != ACP_RECEIVE_FREE)
		return -EBUSY;
	mask = acp_matcher_learn(m, p->ignore, LEARN_STEPS);
	if (mask == ACP_MATCH_NONE)
		return -EINVAL;
	if (unlikely(mask == ACP_MATCH_LATER))
		return -EINPROGRESS;
	key = acp_matcher_key(m, p->flags & ACP_POST_ANY_RANK ? ~0u : p->rank, p->tag, mask);
	i = find_kept(l, &key);
	if ((p->flags & ~ACP_POST_ANY_RANK) && (i == ACP_MATCH_NONE || m->kept[i].arriving))
		return -EAGAIN;
	if ((p->flags & ACP_POST_TAKE) && m->kept[i].asks)
		return admit(l, i);
	if (i == ACP_MATCH_NONE || (m->kept[i].asks && !(p->flags & ACP_POST_PROBE))) {
		acp_matcher_post(m, p->result, &key, p->buffer, p->room);
		if (i == ACP_MATCH_NONE)
			return 0;
		accept(l, i, p->result);
		count_kept(l);
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

static int post_in(struct acp_rank *rank, struct acp_post *p)
{
	struct acp_match_list *l;
	int err = -ENOENT;

	rcu_read_lock();
	l = xa_load(&rank->lists, p->list);
	if (l) {
		spin_lock_bh(&l->lock);
		if (!l->closed)
			err = post(l, p);
		spin_unlock_bh(&l->lock);
	}
	rcu_read_unlock();
	return err;
}

int acp_matching_post(struct acp_rank *rank, struct acp_post *p)
{
	int err = check_post(rank, p);

	if (err)
		return err;
	/* Messages are listed for a new mask. */
	while ((err = post_in(rank, p)) == -EINPROGRESS) {
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return err;
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
		/* There may be a place now for one that asks. */
		if (m->asking)
			count_kept(l);
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
	refuse_all(l, ACP_ST_AGAIN);
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
	if ((a->flags & ACP_MATCH_LEARN) && (a->masks != 1 || ~a->mask[0]))
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
	return !(a->flags & ~ACP_MATCH_LEARN) && !a->reserved && masks_ok(a) &&
	       a->receives && a->messages &&
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
		.masks_max = a->flags & ACP_MATCH_LEARN ? ACP_MASKS_MAX : a->masks,
		.bytes = a->bytes,
	};
	size_t bytes = sizeof(struct acp_match_list) + acp_matcher_bytes(&m);
	unsigned long kib = DIV_ROUND_UP(bytes, 1024);
	int err = acp_user_charge(rank->user, ACP_LIMIT_USER_MEMORY, kib);
	struct acp_match_list *matches;
	u64 secret[2];

	if (err)
		return ERR_PTR(err);
	matches = kvzalloc(bytes, GFP_KERNEL_ACCOUNT);
	if (!matches) {
		acp_user_uncharge(rank->user, ACP_LIMIT_USER_MEMORY, kib);
		return ERR_PTR(-ENOMEM);
	}
	memcpy(m.mask, a->mask, sizeof(m.mask));
	get_random_bytes(secret, sizeof(secret));
	spin_lock_init(&matches->lock);
	matches->m = m;
	acp_matcher_init(&matches->m, matches + 1, secret);
	matches->kib = kib;
	return matches;
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

	xa_for_each(&rank->lists, i, l) {
		refuse_all(l, ACP_ST_RANK);
		list_free(rank, l);
	}
	xa_destroy(&rank->lists);
}
