/* SPDX-License-Identifier: GPL-2.0-only */
/* Received frames that are dropped: one call counts the reason and traces it. */
#ifndef ACP_DROP_H
#define ACP_DROP_H

#include "job/node.h"

/**
 * acp_drop() - count and trace a received frame that is dropped
 * @node: node that received it
 * @skb: the datagram; NULL if it is not known here any more
 * @f: the decoded frame; NULL if it was dropped before it was decoded
 * @reason: counter that names the reason
 *
 * Does not free the skb.
 *
 * Context: BH off.
 */
__cold void acp_drop(const struct acp_node *node, const struct sk_buff *skb,
		     const struct acp_frame *f, enum acp_stat reason);

#endif /* ACP_DROP_H */
