/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Further queues of a rank (ACP_IOC_ATTACH): each is an open file and a
 * context with rings, commands and waiters of its own.  Regions, events,
 * barrier and membership are those of the rank's own context, "main".
 *
 * Its number is in the upper bits of its tickets, and is no other's as long as
 * the rank lives: answers that come late find nothing.  Others need not know
 * that there are several, for a command is named by rank and ticket.
 *
 * Lifetime: the file holds a reference, each command under way another one, and
 * each of them holds main, which so is there for who completes.  When main
 * leaves, its further queues are closed: what was under way has ended, and
 * nothing is taken any more; their files stay open, and are of no use.
 */
#ifndef ACP_ATTACH_H
#define ACP_ATTACH_H

#include "context.h"

/*
 * One more queue of a rank, whose file the caller holds.  May sleep.  Fills in what
 * the caller is told, or ERR_PTR(-EINVAL, -ENOSPC, -ENOMEM, acp_over()).
 */
struct acp_context *acp_attach(struct acp_context *main, struct acp_attach *a);

/* Its file is closed: the caller's reference is given up.  Sleeps. */
void acp_attach_leave(struct acp_context *ctx);

/* The rank leaves, and is marked as closed: so are its further queues.  Sleeps. */
void acp_attach_end(struct acp_context *main);

#endif /* ACP_ATTACH_H */
