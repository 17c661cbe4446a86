/* SPDX-License-Identifier: MIT */
/*
 * Transfers: the persistent collectives of the papers, of which each round has another part of an
 * array (direct), or another array (buffered). See acp_create_bcast_direct(3).
 *
 *	transfer.c		what is special about rounds
 *	transfer_create.c	creation
 *	transfer_send.c		sending
 *	transfer_calls.c	the calls of the papers, with errno
 *
 * A round is that of a broadcast or of an allgather. It transfers what the caller asks for, so all
 * members must ask for the same. To notice if they do not, messages to some counters add 2^16 and
 * the change of a tag: after round k the counter is 2^16 k + tag. These are the counters of slots,
 * one for each child, which is ready, and that counter of the child by which its parent answers.
 * A member compares its counters with its own tag when its round has ended; one that is a round
 * ahead has found that the tags were the same.
 *
 * If the root drives, it copies between any two members itself; the counter of a member is how many
 * bytes have arrived. A receiver waits for it by a round of its own, which is one wait.
 */
#ifndef LIBACP_TRANSFER_H
#define LIBACP_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acp.h"

#pragma GCC visibility push(hidden)

struct acpx_coll;

enum libacp_transfer_type {
	LIBACP_NO_TRANSFER,
	LIBACP_BCAST_DIRECT,
	LIBACP_BCAST_BUFFERED,
	LIBACP_ALLGATHER_DIRECT,
	LIBACP_ALLGATHER_BUFFERED,
};

struct libacp_transfer {
	enum libacp_transfer_type type;
	bool driven;			/* by roots, with copies between others */
	size_t part;			/* bytes: of the array, or of the part of a member */
	acp_atkey_t key;		/* of the array, if that is direct */

	/* the send */
	size_t offset, size;		/* bytes; size 0: no send so far */
	char *array;			/* buffered */
	size_t done, chunk;		/* buffered: bytes of earlier rounds, and of this one */
	uint64_t tag;			/* of the last round */

	/* driven */
	acp_ga_t *areas, *arrays;	/* of all members, if the caller sends */
	uint64_t arrived;		/* bytes, as seen by the last wait */
};

static inline bool libacp_is_transfer(const struct libacp_transfer *t)
{
	return t->type != LIBACP_NO_TRANSFER;
}

static inline bool libacp_is_bcast(const struct libacp_transfer *t)
{
	return t->type == LIBACP_BCAST_DIRECT || t->type == LIBACP_BCAST_BUFFERED;
}

static inline bool libacp_is_buffered(const struct libacp_transfer *t)
{
	return t->type == LIBACP_BCAST_BUFFERED || t->type == LIBACP_ALLGATHER_BUFFERED;
}

/* ---- Rounds, as libacp_algorithm_t ---- */

struct libacp_round;

void libacp_bcast_transfer(struct libacp_round *round);
void libacp_allgather_transfer(struct libacp_round *round);
void libacp_bcast_driven(struct libacp_round *round);
void libacp_allgather_driven(struct libacp_round *round);

/* ---- Sending: for the calls; 0 or -errno ---- */

int libacp_transfer_send(struct acpx_coll *c, enum libacp_transfer_type type, size_t offset,
			 size_t size);
int libacp_transfer_send_array(struct acpx_coll *c, enum libacp_transfer_type type, void *array,
			       size_t size);

/* Set what the next round transfers: bytes of the array, or of the part of each member. */
void libacp_transfer_set(struct acpx_coll *c, size_t offset, size_t size);

/* Put the next chunk into the buffer, and let the next round transfer it. */
void libacp_transfer_fill(struct acpx_coll *c);

/* ---- Called for all collectives ---- */

/* A round has ended: use what has arrived. Returns true if the send has another round. */
bool libacp_transfer_more(struct acpx_coll *c);

/* Has a neighbour in the tree sent something else in the round that has ended? */
bool libacp_transfer_differs(const struct acpx_coll *c);

/* Let the next round be the largest one: that has all counters. */
void libacp_transfer_widen(struct acpx_coll *c);

/* ---- A receiver of a broadcast that the root drives ---- */

bool libacp_transfer_arrives(const struct acpx_coll *c);

/* Take what has arrived since the last time. Returns false if the counter is revoked. */
bool libacp_transfer_take(struct acpx_coll *c);

/* Test a collective that is not active. Returns 1, also for others; 0: nothing is new; -errno. */
int libacp_transfer_test(struct acpx_coll *c);

/* The same as a result: 0 or -errno. The collective has failed then. */
int libacp_transfer_receive(struct acpx_coll *c);

/* The time is over. Returns 0: something has arrived after all; -ETIMEDOUT. */
int libacp_transfer_give_up(struct acpx_coll *c);

#pragma GCC visibility pop

#endif /* LIBACP_TRANSFER_H */
