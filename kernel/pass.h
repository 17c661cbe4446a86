/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What follows a pass over events of a peer: commands that waited for these may start.
 *
 * Ranks' own queues are looked at, all of them; of the further ones (attach.h) those
 * alone that had something under way lately, which are marked in the table of the
 * rank's queues.  So it costs nothing that a rank has many, which rest.
 *
 * A mark stays for some passes longer than it is needed: a queue with one command at a
 * time does not take the table's lock for each.
 */
#ifndef ACP_PASS_H
#define ACP_PASS_H

#include "context.h"

/*
 * A further queue may have taken something.  By its drainer, before it looks what can go
 * on: what becomes possible later is seen by a pass.  BH off.
 */
void acp_pass_mark(struct acp_context *ctx);

#endif /* ACP_PASS_H */
