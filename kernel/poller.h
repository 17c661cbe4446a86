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

/* The parts of these, for further queues.  Before all others. */
void acp_poller_prepare(struct acp_context *ctx);

/* It is marked as closed, and not looked at any more but by who looks already (RCU). */
void acp_poller_unlink(struct acp_node *node, struct acp_context *ctx);

/*
 * Nothing of it changes any more.  Who adds up what queues have done sees it as one of them
 * until now, and as gone from now on.
 */
void acp_poller_gone(struct acp_node *node, struct acp_context *ctx);

/* Its timer, which who still looks can start again. */
void acp_poller_stop(struct acp_context *ctx);

/* A doorbell rang: are they so frequent that the thread, or a timer, should look?  BH on. */
void acp_poller_bell(struct acp_context *ctx);

/* There is more in a ring than softirq may do.  Any context. */
void acp_poller_more(struct acp_context *ctx);

#endif /* ACP_POLLER_H */
