/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Items: what peers are given to send.  Those that are not part of a command come from a stock of
 * each CPU.  item.c also receives them when they were delivered or dropped (upcall.h).
 */
#ifndef ACP_ITEM_H
#define ACP_ITEM_H

#include "../upcall.h"

/* Refill this CPU's stock to @count items.  They stay reserved while BH are off. */
bool acp_item_reserve(u32 count);

/* Take a reserved item from the stock, cleared except for its message and link.  BH off. */
struct acp_item *acp_item_new(void);

/* Allocate an item that is not reserved, cleared.  NULL: there is no memory. */
struct acp_item *acp_item_alloc(gfp_t gfp);

/* BH off. */
void acp_item_free(struct acp_item *item);

/* Release a frame that waits for items; the last one acknowledges it.  BH off. */
void acp_arrival_put(struct acp_arrival *a);

/* Create what all namespaces share, and free it.  Process context; may sleep.  0 or -ENOMEM. */
int acp_items_init(void);
void acp_items_exit(void);

#endif /* ACP_ITEM_H */
