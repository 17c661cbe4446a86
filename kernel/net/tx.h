/* SPDX-License-Identifier: GPL-2.0-only */
/* Transmission of finished datagrams.  Without peer->lock, BH off. */
#ifndef ACP_TX_H
#define ACP_TX_H

#include "udp.h"

/* Send the datagrams in @out, which is not empty.  Errors are counted. */
void acp_tx_send(struct acp_peer *peer, struct acp_outbox *out);

/* The same; @out may be empty. */
static inline void acp_tx(struct acp_peer *peer, struct acp_outbox *out)
{
	if (out->first)
		acp_tx_send(peer, out);
}

#endif /* ACP_TX_H */
