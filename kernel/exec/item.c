// SPDX-License-Identifier: GPL-2.0-only
/* Items: see item.h. */
#include <linux/slab.h>
#include "chain.h"
#include "item.h"
#include "ping.h"
#include "../job/node.h"
#include "../queue/queue.h"

#define STOCK_MAX	64		/* items per CPU */

static struct kmem_cache *items;

/* ---- the stock ---- */

/* Items without an owner: a chain by link.next. */
static void chain_add(struct list_head **first, struct acp_item *item)
{
	item->link.next = *first;
	*first = &item->link;
}

static struct acp_item *chain_take(struct list_head **first)
{
	struct acp_item *item = list_entry(*first, struct acp_item, link);

	*first = item->link.next;
	return item;
}

/* A stock of unused items per CPU: the slab allocator costs more than the items are used for. */
struct stock {
	struct list_head *first;
	u32 count;
};

static DEFINE_PER_CPU(struct stock, stock);

bool acp_item_reserve(u32 count)
{
	struct stock *s = this_cpu_ptr(&stock);

	while (s->count < count) {
		struct acp_item *item = kmem_cache_alloc(items, GFP_ATOMIC | __GFP_NOWARN);

		if (!item)
			return false;
		chain_add(&s->first, item);
		s->count++;
	}
	return true;
}

struct acp_item *acp_item_new(void)
{
	struct stock *s = this_cpu_ptr(&stock);
	struct acp_item *item = chain_take(&s->first);
	const size_t from = offsetofend(struct acp_item, out.m);

	s->count--;
	memset((void *)item + from, 0, sizeof(*item) - from);
	return item;
}

struct acp_item *acp_item_alloc(gfp_t gfp)
{
	return kmem_cache_zalloc(items, gfp);
}

void acp_item_free(struct acp_item *item)
{
	struct stock *s = this_cpu_ptr(&stock);

	if (s->count == STOCK_MAX) {
		kmem_cache_free(items, item);
		return;
	}
	chain_add(&s->first, item);
	s->count++;
}

int acp_items_init(void)
{
	items = KMEM_CACHE(acp_item, SLAB_ACCOUNT);
	return items ? 0 : -ENOMEM;
}

void acp_items_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct stock *s = per_cpu_ptr(&stock, cpu);

		for (; s->count; s->count--)
			kmem_cache_free(items, chain_take(&s->first));
	}
	kmem_cache_destroy(items);
}

/* ---- items that were sent ---- */

void acp_arrival_put(struct acp_arrival *a)
{
	if (!refcount_dec_and_test(&a->refs))
		return;
	acp_peer_applied(a->peer, a->seq, a->epoch);
	kfree(a);
}

/* An item of a command of ours. */
static void own_done(struct acp_item *item)
{
	struct acp_cmd *cmd = container_of(item, struct acp_cmd, item);
	struct acp_queue *queue = item->queue;
	u8 status;

	if (acp_out_ends(&item->out, item->status, &status))
		acp_queue_complete(queue, item->out.m.ticket, status);
	else if (item->out.m.type == ACP_MSG_ASK)
		acp_queue_accepted(queue, cmd);
	item->queue = NULL;
	acp_queue_item_back(queue, cmd);
}

/* If the result of a delegated command could not be delivered, report that to the origin. */
static bool report(struct acp_item *item)
{
	struct acp_peer *requester = item->requester;
	struct acp_msg m = item->out.m;

	if (!requester)
		return false;
	atomic_dec(&requester->delegated);
	item->requester = NULL;
	if (!acp_out_lost(&item->out, item->status) || READ_ONCE(requester->job->dead))
		return false;
	acp_out_done(&item->out, &m, item->status);
	acp_peer_send(requester, item, 0);
	acp_peer_kick(requester);
	return true;
}

static __always_inline void item_done(struct acp_item *item)
{
	struct acp_arrival *arrival = item->arrival;

	item->arrival = NULL;
	if (arrival)
		acp_arrival_put(arrival);
	if (unlikely(item->out.chained)) {
		acp_chain_close(acp_chain_of(&item->out.m));
		item->out.chained = false;
	}
	if (item->queue)
		own_done(item);
	else if (item->out.m.type == ACP_MSG_BARRIER)
		kfree(item);
	else if (item->out.m.type == ACP_MSG_PING && !(item->out.m.flags & ACP_MSG_ANSWER))
		acp_ping_sent(item);
	else if (!report(item))
		acp_item_free(item);
}

void acp_station_done(struct acp_item *item)
{
	item_done(item);
}

void acp_station_delivered(struct list_head *items)
{
	struct list_head *link = items->next;

	while (link != items) {
		struct acp_item *item = list_entry(link, struct acp_item, link);

		if (acp_item_is_put(item)) {
			link = acp_queue_delivered(item->queue, link, items);
			continue;
		}
		link = link->next;
		item->frames = 0;
		item->status = ACP_ST_OK;
		item_done(item);
	}
}
