/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Strided copies on regions: the blocks of core/strided_desc.h are gathered at the source and
 * scattered at the destination.  All blocks of one end are in one region; its rights are checked
 * for the range from the first to the last byte of all blocks.
 */
#ifndef ACP_STRIDED_H
#define ACP_STRIDED_H

#include "../core/strided_desc.h"
#include "../mem/region.h"

/**
 * acp_strided_src() - find the source region of a strided copy
 * @job: the job
 * @m: the command
 * @status: filled in if NULL is returned: ACP_ST_
 *
 * The caller releases the region with acp_region_put().
 *
 * Context: any, as acp_region_get().
 * Return: the region, or NULL.
 */
struct acp_region *acp_strided_src(struct acp_job *job, const struct acp_msg *m, u8 *status);

/* The destination region, likewise. */
struct acp_region *acp_strided_dst(struct acp_job *job, const struct acp_msg *m, u8 *status);

/**
 * acp_strided_read() - gather bytes of the source
 * @r: the source region, of which the caller holds a reference
 * @l: layout of the job's global addresses
 * @m: the command
 * @position: of the first byte in the stream of all blocks
 * @to: kernel memory to copy to
 * @size: bytes; @position + @size is within the stream
 *
 * Context: any.
 */
void acp_strided_read(struct acp_region *r, const struct acp_ga_layout *l,
		      const struct acp_msg *m, u64 position, void *to, u32 size);

/*
 * Scatter the payload of a DATA message, which begins at "at" in the skb.  The caller holds a
 * reference to the region.  Any context.
 */
u8 acp_strided_write_skb(struct acp_region *r, const struct acp_ga_layout *l,
			 const struct acp_msg *m, struct sk_buff *skb, u32 at);

/*
 * Scatter the payload of a DATA message, which begins at "at" in the skb, if the whole copy may be
 * written.  Returns a status.  BH off.
 */
u8 acp_strided_apply(struct acp_job *job, const struct acp_msg *m, struct sk_buff *skb, u32 at);

/*
 * Copy a part of the stream, with both ends on this node.  With a size of 0 only the regions and
 * rights of the whole copy are checked.
 */
u8 acp_strided_local(struct acp_job *job, const struct acp_msg *m, u64 position, u64 size);

#endif /* ACP_STRIDED_H */
