/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Mailboxes: messages take records in memory of the receiver, see ACP_OP_SEND in acp_cmd.h.
 *
 * The owner of a mailbox can write anything to it at any time.  So each of its words is read once,
 * and every record is checked against the bounds of the region: only the owner is harmed.
 */
#ifndef ACP_MAILBOX_H
#define ACP_MAILBOX_H

#include "../core/landing.h"
#include "../job/job.h"
#include "../mem/region.h"

/*
 * Reserve the record of a message of @size bytes in the mailbox at m->dst, for which the caller has
 * called acp_ga_valid().  Returns the region, with a reference, and in *offset where the bytes of
 * the message go.  Returns NULL with *status set if there is no room or no mailbox; or ACP_ST_OK if
 * the message goes to the match list with the number *offset.  BH off.
 */
struct acp_region *acp_mailbox_reserve(struct acp_job *job, const struct acp_msg *m, u64 size,
				       u64 *offset, u8 *status);

/*
 * Put @count messages of 8 bytes into the mailbox at m->dst, for which the caller has called
 * acp_ga_valid(); @w has their tags and bytes.  Returns false, with nothing done, if there is not
 * room for all of them, or no mailbox, or if they go to a match list.  BH off.
 */
bool acp_mailbox_put_words(struct acp_job *job, const struct acp_msg *m,
			   const struct acp_msg_word *w, u32 count);

/*
 * Write the record whose bytes are at @offset: tag and rank, then the state, ACP_RECORD_ARRIVING or
 * ACP_RECORD_READY.
 */
void acp_mailbox_describe(struct acp_region *r, u64 offset, u32 rank, u64 tag, u64 state);

/*
 * A message of acp_mailbox_begin() has ended.  Returns @status, or why the record of a message that
 * succeeded cannot be written any more.  BH off.
 */
u8 acp_mailbox_end(struct acp_job *job, const struct acp_place *place, u32 rank, u64 size,
		   u8 status);

/*
 * Reserve a record for a message whose bytes come later, or find where it goes by a match list.
 * Return a status.  BH off.
 */
u8 acp_mailbox_begin(struct acp_job *job, const struct acp_msg *m, u64 size, u64 tag,
		     struct acp_place *place);

/*
 * A message asks for a receive before its bytes are sent, in an incarnation of its flow: see
 * acp_matching_ask().  Return a status; ACP_ST_OP if the mailbox has no match list.  BH off.
 */
u8 acp_mailbox_ask(struct acp_job *job, const struct acp_msg *m, u32 epoch);

#endif /* ACP_MAILBOX_H */
