/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The poller: a thread of a node that looks at the rings while there is
 * traffic, so that submitting needs no system call, and sleeps otherwise.
 * It is woken when doorbells come fast, and never on a machine with one CPU,
 * where the doorbell itself is the quicker way.
 */
#ifndef ACP_POLLER_H
#define ACP_POLLER_H

#include "node.h"

void acp_poller_init(struct acp_node *node);
void acp_poller_exit(struct acp_node *node);

/* Make the thread, when the first rank of the node joins.  Under node->lock. */
int acp_poller_start(struct acp_node *node);

/* A context's ring is to be looked at, or no longer (waits for the look). */
void acp_poller_add(struct acp_node *node, struct acp_context *ctx);
void acp_poller_remove(struct acp_node *node, struct acp_context *ctx);

/*
 * The two parts of the latter; a grace period is to pass between them.  The first one marks
 * the context as closed: who adds up what queues have done sees it as one of them, or as gone.
 */
void acp_poller_unlink(struct acp_node *node, struct acp_context *ctx);
void acp_poller_stop(struct acp_context *ctx);

/* A doorbell rang: are they so frequent that the thread, or a timer, should look?  BH on. */
void acp_poller_bell(struct acp_context *ctx);

/* There is more in a ring than softirq may do.  Any context. */
void acp_poller_more(struct acp_context *ctx);

#endif /* ACP_POLLER_H */
