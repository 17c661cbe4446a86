/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Received GSO batches.  Only BULK frames and encrypted frames are processed in place.  Any other
 * frame is copied to an skb of its own and handled as if it had been received alone.
 */
#ifndef ACP_GSO_RX_H
#define ACP_GSO_RX_H

#include "udp.h"

/* Process the datagrams of one skb, which begins at the first frame.  Takes @skb.  Softirq. */
void acp_gso_received(struct acp_node *node, struct acp_socket *socket, struct sk_buff *skb);

/**
 * acp_gso_rx_exit() - free the memory for copies of payloads
 *
 * Called when nothing is received any more.
 *
 * Context: process context.
 */
void acp_gso_rx_exit(void);

#endif /* ACP_GSO_RX_H */
