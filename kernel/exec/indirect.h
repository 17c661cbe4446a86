/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Indirect copies: the address to write to is in memory of the receiver, see ACP_OP_INDIRECT and
 * ACP_OP_APPEND in acp_cmd.h.
 */
#ifndef ACP_INDIRECT_H
#define ACP_INDIRECT_H

#include "../job/node.h"

/*
 * Find where a copy of @size bytes goes.  With ACP_OP_INDIRECT, read the pointer at m->dst; with
 * ACP_OP_APPEND, advance it by @size bytes, too; with ACP_OP_SEND, reserve a record with @tag, or
 * find the entry @tag that the message was granted; with ACP_OP_SCATTER, read the chain.
 * *place is set if the status is ACP_ST_OK: memory of one region of the same rank that may be
 * written, at least now; that of a posted receive has not been checked.  The owner of the pointer
 * can change it at any time, so each word is read once.  BH off.
 */
u8 acp_indirect_resolve(struct acp_job *job, const struct acp_msg *m, u64 size, u64 tag,
			struct acp_place *place);

/* May the source of a command be read?  Returns a status.  BH off. */
u8 acp_indirect_source(struct acp_job *job, const struct acp_msg *m);

/*
 * Make an ordinary copy of an indirect one with both ends here.  A message keeps ACP_OP_SEND;
 * acp_mailbox_end() must follow its bytes.  A copy with a chain keeps its operation, see
 * acp_chain_direct().  BH off.
 */
u8 acp_indirect_direct(struct acp_job *job, struct acp_msg *m);

/*
 * Find the place of a piece's copy; the first piece of it reads the pointer.  *busy: the
 * frame must be refused, since there is no memory, or another CPU is reading the pointer.  BH off.
 */
u8 acp_indirect_landing(struct acp_peer *peer, u32 epoch, const struct acp_msg *m,
			struct acp_place *place, bool *busy);

/*
 * The last piece of a copy is here, which ends with @status: forget where it went.  Returns the
 * status; a message fails if its flow has ended meanwhile.  BH off.
 */
u8 acp_indirect_end(struct acp_peer *peer, u32 epoch, const struct acp_msg *m, u8 status);

#endif /* ACP_INDIRECT_H */
