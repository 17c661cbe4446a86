/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A transport delivers messages to peers, reliably and in any order.  The station gives it items;
 * the transport reports arrivals and the fate of items through the calls in upcall.h.
 */
#ifndef ACP_TRANSPORT_H
#define ACP_TRANSPORT_H

#include <linux/list.h>
#include <linux/skbuff.h>
#include "bytes.h"
#include "../core/cmd.h"
#include "../core/flow.h"

struct acp_peer;
struct acp_queue;
struct acp_arrival;

/*
 * A unit of work for a transport: one message, or a transfer that is cut into DATA messages.  Owned
 * by the transport from acp_peer_send() or acp_peer_send_burst() until acp_station_done() or
 * acp_station_delivered().
 */
struct acp_item {
	struct list_head link;
	struct acp_out out;
	struct acp_queue *queue;	/* of the item's command; NULL: allocated separately */
	struct acp_peer *requester;	/* peer that delegated the command and counts it */
	struct acp_arrival *arrival;	/* frame that is not applied before delivery */
	u32 frames;			/* in flight that carry a piece of it; under peer->lock */
	u8 status;			/* ACP_ST_ code; valid when done */
	bool joined;			/* in one WORDS message with the preceding item */
	bool lazy;			/* of a command that nothing waits for; ACP_SQE_LAZY */
};

/*
 * Items are on lists of their peer, under its lock, or on local lists.  On kernels with
 * CONFIG_DEBUG_LIST, as Debian's, the list checks would take longer than all other work on an item
 * here.  So lists are only checked in debug kernels.
 */
#define ACP_ITEMS_CHECKED	IS_ENABLED(CONFIG_KASAN)

/**
 * acp_items_add() - append an item to a list
 * @list: list of items
 * @item: item that is on no list
 *
 * Context: as @list requires: peer->lock, or a local list.
 */
static inline void acp_items_add(struct list_head *list, struct acp_item *item)
{
	struct list_head *link = &item->link, *last = list->prev;

	if (ACP_ITEMS_CHECKED) {
		list_add_tail(link, list);
		return;
	}
	link->next = list;
	link->prev = last;
	last->next = link;
	list->prev = link;
}

/* Remove an item from its list.  Its link keeps its old pointers. */
static inline void acp_items_del(struct acp_item *item)
{
	if (ACP_ITEMS_CHECKED)
		__list_del_entry(&item->link);
	else
		__list_del(item->link.prev, item->link.next);
}

/**
 * acp_item_is_put() - ask whether the delivery of an item completes a command of this node
 * @item: the item
 *
 * Context: any.
 * Return: true if @item is the data of a put that has not failed and has no memory of its own.
 */
static inline bool acp_item_is_put(const struct acp_item *item)
{
	return item->queue && item->out.m.type == ACP_MSG_DATA &&
	       !(item->out.failed | item->out.chained);
}

/* A received frame whose messages are being executed. */
struct acp_arrival {
	struct acp_peer *peer;
	u64 seq;
	u32 epoch;		/* incarnation of the flow */
	refcount_t refs;	/* outstanding effects; 0: applied */
};

/*
 * State of a frame that is kept in its skb's cb[]. In a GSO batch it is that of the frame that is
 * being processed.
 */
struct acp_frame_cb {
	const u8 *body;		/* messages, right after the header, as far as tagged */
	struct acp_bytes at;	/* where they begin, relative to skb->data */
	u64 seq;
	u32 length;
	u32 tagged;
	u32 size;		/* in a GSO batch: of the frame, set before it is parsed */
	bool fence;
	bool lazy;
};

#endif /* ACP_TRANSPORT_H */
