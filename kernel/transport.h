/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A transport moves messages to peers, reliably and in no order; the station
 * gives it items and is told what arrived and what became of them.
 *
 * The calls upward come in softirq context or with bottom halves off, without
 * any lock held unless said.
 */
#ifndef ACP_TRANSPORT_H
#define ACP_TRANSPORT_H

#include <linux/list.h>
#include <linux/skbuff.h>
#include "bytes.h"
#include "core/cmd.h"

struct acp_job;
struct acp_peer;
struct acp_context;
struct acp_arrival;

/*
 * Something to be sent to a peer: one message, or a transfer cut into DATA
 * messages.  Owned by the transport from acp_peer_send() or
 * acp_peer_send_row() to acp_station_done() or acp_station_delivered().
 */
struct acp_item {
	struct list_head link;
	struct acp_out out;
	struct acp_context *context;	/* whose command it is part of; NULL: allocated by itself */
	struct acp_peer *requester;	/* who delegated the command; counted there */
	struct acp_arrival *arrival;	/* frame that is not applied before this is delivered */
	u32 frames;			/* in flight with a piece of it; under the peer's lock */
	u8 status;			/* ACP_ST_, valid when done */
	bool joined;			/* in a message of WORDS with the item before it */
};

/*
 * Items are on lists of their peer's, under its lock, or of one function.  Kernels that look
 * whether each list is sound (CONFIG_DEBUG_LIST, as Debian's) take longer for that than all else
 * that is done to an item here: so only one that is for finding faults does.
 */
#define ACP_ITEMS_CHECKED	IS_ENABLED(CONFIG_KASAN)

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

/* What the link says is left as it was. */
static inline void acp_items_del(struct acp_item *item)
{
	if (ACP_ITEMS_CHECKED)
		__list_del_entry(&item->link);
	else
		__list_del(item->link.prev, item->link.next);
}

/* Part of a command of ours that ends, well, when it is delivered? */
static inline bool acp_item_is_put(const struct acp_item *item)
{
	return item->context && item->out.m.type == ACP_MSG_DATA && !item->out.failed;
}

/* A received frame on its way into memory. */
struct acp_arrival {
	struct acp_peer *peer;
	u64 seq;
	u32 epoch;		/* life of the flow it belongs to */
	refcount_t refs;	/* effects still to come; 0: applied */
};

/*
 * What is kept of a frame beside its skb.  In a train, it is kept of the frame
 * that is looked at.
 */
struct acp_frame_cb {
	const u8 *body;		/* its messages: as much of them as is tagged, behind its header */
	struct acp_bytes at;	/* where they begin, from skb->data on */
	u64 seq;
	u32 length;
	u32 tagged;
	u32 size;		/* in a train: of the frame, before anything is known of it */
	bool fence;
	bool lazy;
};

/* What the station made of a frame. */
enum acp_arrived {
	ACP_APPLIED,	/* it had its effect */
	ACP_REFUSED,	/* it had none: forget it, the peer sends it again */
	ACP_PENDING,	/* acp_peer_applied() will be called */
	ACP_MALFORMED,	/* it had none and never will: count it as applied */
};

/*
 * Messages of a DATA frame: cb->length bytes of the skb from cb->at on;
 * cb->tagged of them are authenticated by the tag, and in one piece at
 * cb->body; if that is not all of them, the payload of the only message begins
 * behind these.  cb->seq and epoch are for acp_peer_applied().
 */
enum acp_arrived acp_station_arrived(struct acp_peer *peer, u32 epoch, struct sk_buff *skb,
				     const struct acp_frame_cb *cb);

/*
 * Consecutive pieces of one copy, none of them the last, that frames of a train brought; m is
 * the first one's message.  False: some of them may not be written there, or could not be.
 */
bool acp_station_pieces(struct acp_peer *peer, const struct acp_msg *m, const struct sk_buff *skb,
			const struct acp_pieces *pieces);

/*
 * The first message of an item is cut.  False: it must not have its effect
 * any more, it is sent as failed (ACP_ST_ORDER).  Under the peer's lock.
 */
bool acp_station_due(const struct acp_item *item);

/* An item was delivered (status ACP_ST_OK), or will never be. */
void acp_station_done(struct acp_item *item);

/* Several items, by their link, were delivered; the list is used up. */
void acp_station_delivered(struct list_head *items);

/* All that was expected of a peer will not come: its life has ended. */
void acp_station_lost(struct acp_peer *peer, u8 status);

/* End of a pass over a peer's events: rings of this node may be drained. */
void acp_station_idle(struct acp_job *job);

#endif /* ACP_TRANSPORT_H */
