// SPDX-License-Identifier: GPL-2.0-only
/* Mailboxes: see mailbox.h. */
#include "mailbox.h"
#include "matching.h"

#define TRIES	64	/* to reserve a record while others do the same */

static_assert(sizeof(struct acp_mailbox) == 64);
static_assert(sizeof(struct acp_record) == 24);

/* Units of 8 bytes that a message takes; more than any mailbox has if that is no 32 bits. */
static u64 units_of(u64 size)
{
	return (sizeof(struct acp_record) + ALIGN(size, 8)) / 8;
}

/* There is no room.  Could there be some? */
static u8 no_room(struct acp_region *r, u64 mailbox, u64 units)
{
	u32 most;

	acp_region_read(r, mailbox + offsetof(struct acp_mailbox, units), &most, sizeof(most));
	return units > most ? ACP_ST_RANGE : ACP_ST_AGAIN;
}

/* Advance "next".  *at: offset of the record in the region. */
static u8 take_room(struct acp_region *r, u64 mailbox, u64 units, bool own, u64 *at)
{
	u64 room = acp_region_read_word(r, mailbox), seen;
	u8 status;
	int i;

	for (i = 0; i < TRIES; i++) {
		u64 next = (u32)room, limit = room >> 32;

		if (next + units > limit)
			return no_room(r, mailbox, units);
		*at = mailbox + sizeof(struct acp_mailbox) + 8 * next;
		status = acp_region_check(r, *at, 8 * units, own, ACP_ACCESS_WRITE);
		if (status)
			return status;
		seen = acp_region_atomic(r, mailbox, ACP_OP_CAS8, room, room + units);
		if (seen == room)
			return ACP_ST_OK;
		room = seen;
	}
	return ACP_ST_AGAIN;
}

/* The match list that the messages of a mailbox go to, or 0. */
static u32 list_of(struct acp_region *r, u64 mailbox)
{
	u32 list;

	acp_region_read(r, mailbox + offsetof(struct acp_mailbox, list), &list, sizeof(list));
	return list;
}

static struct acp_region *region_of(struct acp_job *job, const struct acp_msg *m, u8 *status)
{
	if (m->dst & 7) {
		*status = ACP_ST_ALIGN;
		return NULL;
	}
	return acp_region_cached(job, m->dst, sizeof(struct acp_mailbox), m->origin,
				 ACP_ACCESS_ATOMIC) ?:
	       acp_region_get_bh(job, m->dst, sizeof(struct acp_mailbox), m->origin,
				 ACP_ACCESS_ATOMIC, status);
}

struct acp_region *acp_mailbox_reserve(struct acp_job *job, const struct acp_msg *m, u64 size,
				       u64 *offset, u8 *status)
{
	u64 mailbox = acp_ga_offset(&job->ga, m->dst), list;
	struct acp_region *r = region_of(job, m, status);

	if (!r)
		return NULL;
	list = list_of(r, mailbox);
	if (unlikely(list)) {
		acp_region_put(r);
		*offset = list;
		*status = ACP_ST_OK;
		return NULL;
	}
	/* What was granted an entry of a list takes no record. */
	if (unlikely(m->flags & ACP_MSG_GRANTED)) {
		acp_region_put(r);
		*status = ACP_ST_AGAIN;
		return NULL;
	}
	*status = take_room(r, mailbox, units_of(size),
			    acp_ga_rank(&job->ga, m->dst) == m->origin, offset);
	if (*status) {
		acp_region_put(r);
		return NULL;
	}
	*offset += sizeof(struct acp_record);
	return r;
}

#define BLOCK	8	/* records that are written at a time */

/* A message of 8 bytes, as it is in a mailbox. */
struct short_record {
	struct acp_record head;
	u8 data[8];
};

static_assert(sizeof(struct short_record) == 32);

static void fill_records(struct short_record *to, const struct acp_msg_word *w, u32 count, u32 rank)
{
	u32 i;

	for (i = 0; i < count; i++) {
		to[i].head = (struct acp_record){
			.state = sizeof(w->data) << 2 | ACP_RECORD_READY,
			.tag = be64_to_cpu(w[i].tag), .rank = rank,
		};
		memcpy(to[i].data, w[i].data, sizeof(w->data));
	}
}

static void set_state(struct acp_region *r, u64 record, u64 state)
{
	/* A reader that sees the state sees what was written before. */
	smp_wmb();
	acp_region_write_word(r, record + offsetof(struct acp_record, state), state);
}

bool acp_mailbox_put_words(struct acp_job *job, const struct acp_msg *m,
			   const struct acp_msg_word *w, u32 count)
{
	const u64 each = sizeof(struct short_record), head = sizeof(struct acp_record);
	struct short_record block[BLOCK];
	u64 first, at, state;
	struct acp_region *r;
	u8 status;
	u32 n;

	r = acp_mailbox_reserve(job, m, count * each - head, &first, &status);
	if (!r)
		return false;
	first -= head;
	for (at = first; count; count -= n, w += n, at += n * each) {
		n = min_t(u32, count, BLOCK);
		fill_records(block, w, n, m->origin);
		/* Readers look at the others after the first one, which comes last. */
		state = block[0].head.state;
		if (at == first)
			block[0].head.state = 0;
		acp_region_write(r, at, block, n * each);
	}
	set_state(r, first, state);
	acp_region_put(r);
	return true;
}

void acp_mailbox_describe(struct acp_region *r, u64 offset, u32 rank, u64 tag, u64 state)
{
	const struct acp_record head = { .tag = tag, .rank = rank };
	const size_t first = offsetof(struct acp_record, tag);
	u64 record = offset - sizeof(head);

	acp_region_write(r, record + first, &head.tag, sizeof(head) - first);
	set_state(r, record, state);
}

u8 acp_mailbox_end(struct acp_job *job, const struct acp_place *place, u32 rank, u64 size,
		   u8 status)
{
	u64 state = size << 2 | (status ? ACP_RECORD_VOID : ACP_RECORD_READY);
	u64 record = place->dst - sizeof(struct acp_record);
	struct acp_region *r;
	u8 gone;

	if (place->list)
		return acp_matching_end(acp_matching_find(job, place->dst, place->list), place,
					status);
	r = acp_region_get_bh(job, record, sizeof(struct acp_record), rank, ACP_ACCESS_WRITE,
			      &gone);
	if (!r)
		return status ?: gone;
	set_state(r, acp_ga_offset(&job->ga, record), state);
	acp_region_put(r);
	return status;
}

u8 acp_mailbox_begin(struct acp_job *job, const struct acp_msg *m, u64 size, u64 tag,
		     struct acp_place *place)
{
	struct acp_region *r;
	u64 offset;
	u8 status;

	r = acp_mailbox_reserve(job, m, size, &offset, &status);
	if (!r)
		return status ?: acp_matching_begin(acp_matching_find(job, m->dst, offset), m, size,
						    tag, place);
	acp_mailbox_describe(r, offset, m->origin, tag, size << 2 | ACP_RECORD_ARRIVING);
	*place = (struct acp_place){
		.dst = m->dst - acp_ga_offset(&job->ga, m->dst) + offset, .room = size,
	};
	acp_region_put(r);
	return ACP_ST_OK;
}

u8 acp_mailbox_ask(struct acp_job *job, const struct acp_msg *m, u32 epoch)
{
	struct acp_region *r;
	u32 list;
	u8 status;

	if (!acp_ga_valid(&job->ga, m->dst))
		return ACP_ST_GA;
	r = region_of(job, m, &status);
	if (!r)
		return status;
	list = list_of(r, acp_ga_offset(&job->ga, m->dst));
	acp_region_put(r);
	return list ? acp_matching_ask(acp_matching_find(job, m->dst, list), m, epoch) : ACP_ST_OP;
}
