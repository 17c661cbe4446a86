/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Strided copies on regions: the blocks of core/shape.h, gathered from one end,
 * scattered to the other one.  The region of an end has all of its blocks: it is
 * looked for, and its rights are checked, with the range of all of them.
 */
#ifndef ACP_STRIDED_H
#define ACP_STRIDED_H

#include "core/shape.h"
#include "region.h"

/* The regions of a command's (or an item's) ends: see acp_region_get(). */
struct acp_region *acp_strided_src(struct acp_job *job, const struct acp_msg *m, u8 *status);
struct acp_region *acp_strided_dst(struct acp_job *job, const struct acp_msg *m, u8 *status);

/* With references, any context; positions are those in the stream: */
void acp_strided_read(struct acp_region *r, const struct acp_ga_layout *l,
		      const struct acp_msg *m, u64 position, void *to, u32 size);
u8 acp_strided_write_skb(struct acp_region *r, const struct acp_ga_layout *l,
			 const struct acp_msg *m, struct sk_buff *skb, u32 at);

/* Copy a part of the stream, both ends being here; 0 bytes: see whether all of it may be. */
u8 acp_strided_local(struct acp_job *job, const struct acp_msg *m, u64 position, u64 size);

#endif /* ACP_STRIDED_H */
