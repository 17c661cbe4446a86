/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Landings: where the indirect copies of a flow go whose pieces are arriving.  The first piece that
 * arrives reads the pointer, or the chain, all others use what it found, whatever memory says by
 * then.  A landing is forgotten with the last piece, which is fenced behind the others.
 *
 * At most one per number of the window, in which answers have no pieces, has its last piece on the
 * way, and the one from which the sender cuts pieces is not cut completely.
 */
#ifndef ACP_LANDING_H
#define ACP_LANDING_H

#include "flow.h"

#define ACP_LANDINGS	(ACP_FRAME_WINDOW - ACP_FLOW_ANSWERS + 1)

/* Where a copy goes. */
struct acp_place {
	union {
		u64 dst;	/* global address of the first byte */
		struct acp_chain *chain;	/* ACP_OP_SCATTER: read and checked */
	};
	u64 room;	/* bytes that are written; the rest of a message is dropped */
	u32 list;	/* of a message: the match list that it goes to; 0: a mailbox */
	u32 entry;	/* its entry there */
};

struct acp_landing {
	u64 ticket;
	struct acp_place place;	/* valid if status is ACP_ST_OK */
	u64 size;	/* bytes of the whole copy */
	u32 origin;
	u8 op;		/* of all pieces: it says what the place is */
	u8 status;
	bool known;	/* place and status are valid */
	bool message;	/* what has the place waits for the end of the copy */
	bool chain;	/* place.chain is to be released at the end of the copy */
};

struct acp_landings {
	u32 count;
	struct acp_landing e[ACP_LANDINGS];
};

/**
 * acp_landing_find() - find the landing of a copy
 * @t: landings of a flow
 * @origin: rank that issued the command
 * @ticket: the command
 *
 * Context: The caller serializes calls on one table.
 * Return: The landing, valid until the next call on the table; NULL if there is none.
 */
static inline struct acp_landing *acp_landing_find(struct acp_landings *t, u32 origin, u64 ticket)
{
	u32 i;

	for (i = 0; i < t->count; i++)
		if (t->e[i].origin == origin && t->e[i].ticket == ticket)
			return &t->e[i];
	return NULL;
}

/**
 * acp_landing_add() - add a landing that is not known yet
 * @t: landings of a flow
 * @origin: rank that issued the command
 * @ticket: the command, which has no landing
 * @op: its operation
 * @size: bytes of the whole copy
 *
 * Context: The caller serializes calls on one table.
 * Return: False if the table is full, as no correct sender makes it.
 */
static inline bool acp_landing_add(struct acp_landings *t, u32 origin, u64 ticket, u8 op, u64 size)
{
	if (t->count == ACP_LANDINGS)
		return false;
	t->e[t->count++] = (struct acp_landing){
		.ticket = ticket, .origin = origin, .op = op, .size = size,
	};
	return true;
}

/**
 * acp_landing_forget() - remove the landing of a copy, if there is one
 * @t: landings of a flow
 * @origin: rank that issued the command
 * @ticket: the command
 *
 * Context: The caller serializes calls on one table.
 */
static inline void acp_landing_forget(struct acp_landings *t, u32 origin, u64 ticket)
{
	struct acp_landing *l = acp_landing_find(t, origin, ticket);

	if (l)
		*l = t->e[--t->count];
}

#endif /* ACP_LANDING_H */
