/* SPDX-License-Identifier: MIT */
/* The senders' side of mailboxes, as the kernel does it: see ACP_OP_SEND in acp_cmd.h. */
#ifndef MAILBOX_PLAY_H
#define MAILBOX_PLAY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "acp_cmd.h"

#define PLAY_RECORD	(sizeof(struct acp_record) / 8)

static inline uint64_t play_length(uint64_t size)
{
	return PLAY_RECORD + (size + 7) / 8;
}

static inline uint64_t *play_unit(struct acp_mailbox *box, uint64_t at)
{
	return (uint64_t *)(void *)(box + 1) + at;
}

/* Reserve a record; *r: where it is. Returns an ACP_ST_. */
static inline uint8_t play_reserve(struct acp_mailbox *box, uint64_t size, struct acp_record **r)
{
	uint64_t room = __atomic_load_n((uint64_t *)(void *)&box->room, __ATOMIC_ACQUIRE), next;

	do {
		next = (uint32_t)room;
		if (next + play_length(size) > room >> 32)
			return play_length(size) > box->units ? ACP_ST_RANGE : ACP_ST_AGAIN;
	} while (!__atomic_compare_exchange_n((uint64_t *)(void *)&box->room, &room,
					      room + play_length(size), false, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	*r = (struct acp_record *)(void *)play_unit(box, next);
	return ACP_ST_OK;
}

static inline void play_state(struct acp_record *r, uint64_t size, unsigned int state)
{
	__atomic_store_n((uint64_t *)(void *)&r->state, size << 2 | state, __ATOMIC_RELEASE);
}

/* Write the record, but for its state. */
static inline void play_describe(struct acp_record *r, uint32_t rank, uint64_t tag)
{
	r->tag = tag;
	r->rank = rank;
}

/* Write a message whose record is reserved. */
static inline void play_write(struct acp_record *r, uint32_t rank, uint64_t tag, const void *data,
			      uint64_t size)
{
	if (size)
		memcpy(r + 1, data, size);
	play_describe(r, rank, tag);
	play_state(r, size, ACP_RECORD_READY);
}

/* Are all bytes of a record that has just been reserved 0? */
static inline bool play_is_zero(const struct acp_record *r, uint64_t size)
{
	const uint64_t *unit = (const void *)r;
	uint64_t i;

	for (i = 0; i < play_length(size); i++)
		if (unit[i])
			return false;
	return true;
}

#endif /* MAILBOX_PLAY_H */
