// SPDX-License-Identifier: GPL-2.0-only
/* Indirect copies: see indirect.h. */
#include "chain.h"
#include "indirect.h"
#include "mailbox.h"
#include "../mem/region.h"
#include "../upcall.h"

#define TRIES	64	/* to advance a pointer that others advance at the same time */

/* May all of the copy be written to @dst, which is memory of the same rank as the pointer? */
static u8 check_target(struct acp_job *job, const struct acp_msg *m, u64 size, u64 dst)
{
	struct acp_region *r;
	u8 status;

	if (!acp_ga_valid(&job->ga, dst) ||
	    acp_ga_rank(&job->ga, dst) != acp_ga_rank(&job->ga, m->dst))
		return ACP_ST_GA;
	r = acp_region_get_bh(job, dst, size, m->origin, ACP_ACCESS_WRITE, &status);
	if (r)
		acp_region_put(r);
	return status;
}

/*
 * Reserve @size bytes at the end of the buffer, if they may be written.  *next is what its first
 * word, at @offset of @r, was; it is set to their address.
 */
static u8 reserve(struct acp_job *job, const struct acp_msg *m, struct acp_region *r, u64 size,
		  u64 *next)
{
	u64 offset = acp_ga_offset(&job->ga, m->dst), room = ALIGN(size, 8), end, seen;
	u8 status;
	int i;

	for (i = 0; i < TRIES; i++) {
		/* The owner changes buffers: end to 0, next, end.  So next is read before end. */
		smp_rmb();
		end = acp_region_read_word(r, offset + sizeof(u64));
		if (*next > end || end - *next < room)
			return ACP_ST_AGAIN;
		status = check_target(job, m, size, *next);
		if (status)
			return status;
		seen = acp_region_atomic(r, offset, ACP_OP_CAS8, *next, *next + room);
		if (seen == *next)
			return ACP_ST_OK;
		*next = seen;
	}
	return ACP_ST_AGAIN;
}

u8 acp_indirect_resolve(struct acp_job *job, const struct acp_msg *m, u64 size, u64 tag,
			struct acp_place *place)
{
	bool append = m->op == ACP_OP_APPEND;
	struct acp_region *r;
	u8 status;

	*place = (struct acp_place){ .room = size };
	if (!acp_ga_valid(&job->ga, m->dst))
		return ACP_ST_GA;
	if (m->dst & 7)
		return ACP_ST_ALIGN;
	if (m->op == ACP_OP_SEND)
		return acp_mailbox_begin(job, m, size, tag, place);
	if (m->op == ACP_OP_SCATTER) {
		place->chain = acp_chain_open(job, m, size, &status);
		return status;
	}
	r = acp_region_get_bh(job, m->dst, append ? 2 * sizeof(u64) : sizeof(u64), m->origin,
			      append ? ACP_ACCESS_ATOMIC : ACP_ACCESS_READ, &status);
	if (!r)
		return status;
	place->dst = acp_region_read_word(r, acp_ga_offset(&job->ga, m->dst));
	status = append ? reserve(job, m, r, size, &place->dst) :
			  check_target(job, m, size, place->dst);
	acp_region_put(r);
	return status;
}

u8 acp_indirect_source(struct acp_job *job, const struct acp_msg *m)
{
	struct acp_region *r;
	u8 status;

	r = acp_region_get_bh(job, m->src, m->size, m->origin, ACP_ACCESS_READ, &status);
	if (r)
		acp_region_put(r);
	return status;
}

u8 acp_indirect_direct(struct acp_job *job, struct acp_msg *m)
{
	struct acp_place place;
	u8 status;

	if (acp_op_chain(m->op))
		return acp_chain_direct(job, m);
	status = acp_indirect_source(job, m);
	if (!status)
		status = acp_indirect_resolve(job, m, m->size, acp_out_tag(m), &place);
	if (status)
		return status;
	m->dst = place.dst;
	m->size = place.room;
	m->c = 0;
	if (m->op == ACP_OP_SEND)
		m->a = (u64)place.list << 32 | place.entry;
	else
		m->op = ACP_OP_COPY;
	return status;
}

u8 acp_indirect_landing(struct acp_peer *peer, u32 epoch, const struct acp_msg *m,
			struct acp_place *place, bool *busy)
{
	u8 status = ACP_ST_OK;

	/* All of it is here. */
	if (m->length == m->c)
		return acp_indirect_resolve(peer->job, m, m->c, 0, place);
	switch (acp_peer_landing(peer, epoch, m, place, &status)) {
	case ACP_LANDING_KNOWN:
		break;
	case ACP_LANDING_FIRST:
		status = acp_indirect_resolve(peer->job, m, m->c, m->a, place);
		if (acp_peer_land(peer, epoch, m, place, status) || status)
			break;
		/* The flow has ended meanwhile. */
		status = ACP_ST_PEER;
		if (m->op == ACP_OP_SEND)
			acp_mailbox_end(peer->job, place, m->origin, m->c, status);
		else if (m->op == ACP_OP_SCATTER)
			acp_chain_close(place->chain);
		break;
	case ACP_LANDING_BUSY:
		*busy = true;
		break;
	}
	return status;
}

u8 acp_indirect_end(struct acp_peer *peer, u32 epoch, const struct acp_msg *m, u8 status)
{
	struct acp_landing l;

	/* The record will say that the message is void: see acp_station_abandon(). */
	if (!acp_peer_forget_landing(peer, epoch, m, &l))
		return status || m->op != ACP_OP_SEND ? status : ACP_ST_PEER;
	if (l.chain)
		acp_chain_close(l.place.chain);
	if (!l.message)
		return status;
	return acp_mailbox_end(peer->job, &l.place, m->origin, l.size, status);
}

void acp_station_abandon(struct acp_job *job, const struct acp_landing *l)
{
	if (l->message)
		acp_mailbox_end(job, &l->place, l->origin, l->size, ACP_ST_PEER);
	else if (l->chain)
		acp_chain_close(l->place.chain);
}
