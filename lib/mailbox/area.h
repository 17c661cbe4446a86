/* SPDX-License-Identifier: MIT */
/*
 * The owner's side of the memory of a mailbox, without waiting, locks, or accesses; acp_cmd.h
 * (ACP_OP_SEND) has the senders' side.
 *
 * Positions and lengths are numbers of 8 bytes, as in struct acp_mailbox. Senders advance "next" up
 * to "limit", and the owner reads the records behind it, in order. A consumed record is zeroed, and
 * what precedes the first record that is not consumed is free. The owner gives free memory back to
 * the senders by changing "room" in one step:
 *
 *	reset	all records are consumed: next = 0, limit = units; a new lap
 *	wrap	the part that is free is larger than what is left: next = 0, limit = its end;
 *		a new lap
 *	raise	senders are a lap ahead of the first record that is not consumed: limit is where
 *		that is, and the units again as soon as it is in the senders' lap
 *
 * Laps are counted in the mailbox, for ranks of this node, which write to a ring of their own
 * (node_ring.h). A message of the ring is found behind the records that had been reserved before.
 *
 * Consumption offers room if there is a quarter of the memory to be won (when raising: an eighth),
 * so that a receiver that keeps up seldom writes to the word that senders write. A receiver that is
 * about to sleep or to report an empty mailbox offers all there is.
 *
 * Other ranks can write to this memory. Everything read from it is checked; positions, and what is
 * lent, are known from private memory. If something there cannot be, the area is broken for ever.
 *
 * The caller serializes the functions of an area, except libacp_area_clear().
 */
#ifndef LIBACP_AREA_H
#define LIBACP_AREA_H

#include <stdbool.h>
#include <stdint.h>

#include "acp_cmd.h"
#include "mailbox/node_ring.h"

#pragma GCC visibility push(hidden)

#define LIBACP_AREA_RECORD	(sizeof(struct acp_record) / 8)
#define LIBACP_AREA_UNITS_MAX	UINT32_MAX

struct libacp_area {
	struct acp_mailbox *box;	/* others write to it */
	uint32_t ranks;			/* of the job */
	uint64_t units;
	uint64_t next;			/* as last seen: it has not been less since */
	uint64_t limit;
	uint64_t lap;			/* of senders */
	uint64_t read, read_lap;	/* the next record; read_lap: lap, or lap - 1 */
	uint64_t end;			/* of the records of the previous lap */
	struct libacp_lents lents;
	struct libacp_ring_reader ring;	/* what ranks of this node have written */
	bool closed, broken;
};

/* Set up a mailbox for records of @units, at least LIBACP_AREA_RECORD. Clears the memory. */
void libacp_area_open(struct libacp_area *a, void *memory, uint64_t units, uint32_t ranks);

/* Add a ring of 2^@bits units, @offset bytes behind the mailbox: see node_ring.h. */
void libacp_area_add_ring(struct libacp_area *a, uint64_t offset, unsigned int bits);

/*
 * Find the next complete record, which remains the next one until it is consumed or lent. Records
 * of failed messages are consumed. @all: if there is none, offer all room to senders. Returns 0,
 * -EAGAIN if there is none yet, or -EBADMSG if the area is broken.
 */
int libacp_area_find(struct libacp_area *a, bool all, struct libacp_record *record);

/*
 * Return the word that changes if libacp_area_find() may find more than before. Messages in the
 * ring change none: see libacp_area_wait().
 */
const void *libacp_area_word(const struct libacp_area *a);

/* True: a message in the ring that libacp_area_find() does not find afterwards wakes the owner. */
void libacp_area_wait(const struct libacp_area *a, bool waits);

/* Consume the record that was found. */
void libacp_area_consume(struct libacp_area *a, const struct libacp_record *record);

/* Lend the record that was found. @lent is part of the area until the record is returned. */
void libacp_area_lend(struct libacp_area *a, const struct libacp_record *record,
		      struct libacp_lent *lent);

/* Take the lent record with this data, to return it. NULL: there is none that is not taken. */
struct libacp_lent *libacp_area_reclaim(const struct libacp_area *a, const void *data);

/* Zero a lent record, before its return. The caller need not serialize it with other functions. */
void libacp_area_clear(const struct libacp_area *a, const struct libacp_lent *lent);

/* Take back a lent record, which has been zeroed. @all: offer all room to senders. */
void libacp_area_return(struct libacp_area *a, struct libacp_lent *lent, bool all);

/* True if records are lent. */
bool libacp_area_is_lent(const struct libacp_area *a);

/*
 * Let no further messages in. Those whose records are there can still be found. False if a rank is
 * writing to the ring: call it again. @gone: has the rank left?
 */
bool libacp_area_close(struct libacp_area *a, bool (*gone)(uint32_t rank));

/* True if the area was closed and all its records are consumed or lent. */
bool libacp_area_drained(const struct libacp_area *a);

#pragma GCC visibility pop

#endif /* LIBACP_AREA_H */
