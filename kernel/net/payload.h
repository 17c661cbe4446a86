/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tags that cover a frame's long payload: jobs with integrity tag.  The payload stays where it is
 * in the skb; it is neither copied nor changed.
 */
#ifndef ACP_PAYLOAD_H
#define ACP_PAYLOAD_H

#include "bytes.h"
#include "../core/frame.h"
#include "../job/job.h"

/* Does the tag of the frame cover a long payload? */
static inline bool acp_payload_tagged(const struct acp_job *job, const struct acp_frame *f)
{
	return (f->flags & ACP_FRAME_BULK) && job->integrity == ACP_INTEGRITY_TAG;
}

/*
 * Return the tag of a BULK frame: @h has everything before the payload, which begins at @at in the
 * skb.  BH off.
 */
u64 acp_payload_tag(const struct acp_job *job, const struct acp_frame_hdr *h,
		    const struct acp_frame *f, const struct sk_buff *skb, struct acp_bytes at);

/* The same for a payload that is contiguous at @data. */
u64 acp_payload_tag_of(const struct acp_job *job, const struct acp_frame_hdr *h,
		       const struct acp_frame *f, const void *data);

/*
 * May others write to the payload while it is received?  Its pages may belong to a process on this
 * machine: a rank that sends, or a process without the key that sends by splice(2).  Such a payload
 * may change between check and use, so the receiver must copy it, check the copy, and use that.
 */
static inline bool acp_payload_shared(const struct acp_job *job, const struct acp_frame *f,
				      const struct sk_buff *skb)
{
	return acp_payload_tagged(job, f) && (skb_has_shared_frag(skb) || skb_has_frag_list(skb));
}

#endif /* ACP_PAYLOAD_H */
