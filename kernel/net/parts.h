/* SPDX-License-Identifier: GPL-2.0-only */
/* Parts of frames, for those that build frames: build.c and burst.c. */
#ifndef ACP_PARTS_H
#define ACP_PARTS_H

#include "../mem/region.h"
#include "gso_tx.h"

/* Attach the pages of the payload as fragments. */
static inline void acp_part_attach(struct sk_buff *skb, struct acp_region *r, u64 offset,
				   u32 length)
{
	while (length) {
		size_t n = length;
		struct page *page = acp_region_piece(r, offset, &n);

		acp_gso_attach(skb, page, offset_in_page(offset), n);
		offset += n;
		length -= n;
	}
}

/* Bytes of the checksum of a long payload. */
static inline u32 acp_part_crc(const struct acp_peer *peer)
{
	return peer->job->integrity == ACP_INTEGRITY_CRC32C ? sizeof(struct acp_frame_crc) : 0;
}

#define MANY_PIECES	8	/* from so many on */

/*
 * Most bytes of a piece.  The hash of a payload (nh.h) is quicker if the parts of it that are on
 * different pages are multiples of what it takes at a time; that pays off if pieces are many.
 */
static inline u32 acp_part_max(const struct acp_peer *peer, const struct acp_out *out)
{
	u32 unit = out->m.size > MANY_PIECES * peer->mtu ? ACP_NH_PAIR : 8;
	u32 room = peer->mtu - sizeof(struct acp_frame_hdr) - acp_out_head(out) -
		   acp_part_crc(peer);

	if (unlikely(acp_op_accumulates(out->m.op)))
		room = min_t(u32, room, ACP_ACCUMULATE_MAX);
	return room & ~(unit - 1);
}

/* Does something wait for the acknowledgement of the item? */
static inline bool acp_part_awaited(const struct acp_item *item)
{
	return item->arrival ||
	       (item->queue && item->out.m.type == ACP_MSG_DATA && !item->lazy) ||
	       item->out.m.type == ACP_MSG_PING;
}

#endif /* ACP_PARTS_H */
