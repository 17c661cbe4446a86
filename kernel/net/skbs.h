/* SPDX-License-Identifier: GPL-2.0-only */
/* Socket buffers of frames; each CPU keeps some used ones for the next frames. */
#ifndef ACP_SKBS_H
#define ACP_SKBS_H

#include <linux/skbuff.h>

/*
 * Return an empty skb with room for @size bytes, which may be a used one; NULL if there is no
 * memory.  BH off.
 */
struct sk_buff *acp_skb_new(u32 size);

/* Free an skb, or keep it for the next frame.  NULL is ignored.  BH off. */
void acp_skb_free(struct sk_buff *skb);

/*
 * Return an empty skb with the IP and UDP headers of @batch and room for @size bytes after them;
 * NULL if there is no memory.  BH off.
 */
struct sk_buff *acp_skb_like(const struct sk_buff *batch, u32 size);

/* The same, with @size bytes of the batch from @at on copied to it. */
struct sk_buff *acp_skb_part(const struct sk_buff *batch, u32 at, u32 size);

/**
 * acp_skbs_exit() - free the skbs that the CPUs keep
 *
 * Called when nothing is sent or received any more.
 *
 * Context: process context.
 */
void acp_skbs_exit(void);

#endif /* ACP_SKBS_H */
