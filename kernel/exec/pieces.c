// SPDX-License-Identifier: GPL-2.0-only
/* Pieces of one copy that arrive together: acp_station_pieces() in upcall.h. */
#include "../mem/region.h"
#include "../upcall.h"
#include "indirect.h"

/*
 * Where do pieces of an indirect copy go, @size bytes, and is there room for all of them, or for
 * none?  None of them is the last one.
 */
static noinline bool find_place(struct acp_peer *peer, u32 epoch, const struct acp_msg *m, u64 size,
				struct acp_place *place)
{
	bool busy = false;

	if (m->b + size >= m->c || acp_indirect_landing(peer, epoch, m, place, &busy) || busy)
		return false;
	place->dst += m->b;
	place->room = place->room > m->b ? place->room - m->b : 0;
	return !place->room || place->room >= size;
}

bool acp_station_pieces(struct acp_peer *peer, u32 epoch, const struct acp_msg *m,
			const struct sk_buff *skb, const struct acp_pieces *pieces)
{
	u64 size = (u64)pieces->count * pieces->length;
	struct acp_place place = { .dst = m->dst, .room = size };
	struct acp_job *job = peer->job;
	struct acp_region *r;
	u8 status;
	int err;

	if (m->origin >= job->ga.nprocs || !acp_ga_valid(&job->ga, m->dst))
		return false;
	if (unlikely(m->op) && !find_place(peer, epoch, m, size, &place))
		return false;
	/* What exceeds the buffer of a receive is dropped. */
	if (unlikely(!place.room))
		return true;
	r = acp_region_get(job, place.dst, size, m->origin, ACP_ACCESS_WRITE, &status);
	if (!r)
		return false;
	err = acp_region_write_pieces(r, acp_ga_offset(&job->ga, place.dst), skb, *pieces);
	acp_region_put(r);
	return !err;
}
