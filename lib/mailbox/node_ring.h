/* SPDX-License-Identifier: MIT */
/*
 * A ring behind the records of a mailbox, into which ranks of the owner's node write messages
 * without the kernel. It needs no access and no wait; the caller of the owner's functions
 * serializes them.
 *
 * A writer takes the lock if it is free, writes the message, and then shows it by advancing "tail".
 * So it can die or be stopped at any instant: nothing of its message is visible before, and all of
 * it afterwards. Nobody waits for the lock: a writer that does not get it, or finds no room, sends
 * by the kernel. The lock of a rank that has left is taken over; the next message overwrites what
 * that rank had begun.
 *
 * A message of the ring has a stamp: where the records of the mailbox began that kernels had not
 * reserved yet. The owner receives it behind all records before its stamp, and before the others.
 * That keeps the messages of a sender in order, since it writes to the ring only when what it has
 * sent by the kernel is complete.
 *
 * Other ranks can write to all of it. What a writer reads is checked by it, and what the owner
 * reads by the owner, whose positions are in private memory.
 */
#ifndef LIBACP_NODE_RING_H
#define LIBACP_NODE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acp_cmd.h"

#pragma GCC visibility push(hidden)

/* Words of acp_mailbox.owner: where the ring is (0: there is none), and laps: see below. */
#define LIBACP_OWNER_RING	0
#define LIBACP_OWNER_LAP	1

#define LIBACP_RING_BITS_MIN	7u	/* units, as a power of two: 1 KiB */
#define LIBACP_RING_BITS_MAX	17u	/* 1 MiB */
#define LIBACP_RING_CLOSED	UINT64_MAX
#define LIBACP_RING_RECORD	(sizeof(struct libacp_ring_record) / 8)

struct libacp_node_ring {
	uint64_t lock;			/* 0, a rank plus 1, or LIBACP_RING_CLOSED */
	uint64_t tail;			/* units of 8 bytes that were written so far */
	uint64_t unused[6];		/* what follows is written by the owner */
	uint64_t head;			/* units that may be overwritten */
	uint64_t waits;			/* not 0: the owner may sleep until there is a message */
	uint64_t unused_too[6];
};

/* A message in the ring; its bytes follow. It does not pass the end of the ring. */
struct libacp_ring_record {
	struct acp_record record;	/* READY; or VOID: go on at the beginning of the ring */
	uint64_t stamp;			/* lap << 32 | next */
};

/* A record of a mailbox that is not consumed although those behind it may be. */
struct libacp_lent {
	struct libacp_lent *prev, *next;
	uint64_t at, length, lap;
	const void *data;
	bool ring;		/* it is in the ring */
	bool taken;		/* by the thread that is going to return it */
};

/* In the order of the records. */
struct libacp_lents {
	struct libacp_lent *first, *last;
};

/* A complete record. Its memory may change at any time, these do not. */
struct libacp_record {
	uint64_t at, length;		/* with the record itself, in units */
	uint64_t size, tag;		/* size in bytes */
	void *data;
	uint32_t rank;
	bool ring;			/* it is in the ring */
};

/* The owner's side. */
struct libacp_ring_reader {
	struct libacp_node_ring *ring;	/* NULL: the mailbox has none */
	uint64_t units;			/* a power of two */
	uint64_t read;			/* the next record, counted as "tail" is */
	struct libacp_lents lents;
	bool closed;
};

static inline uint64_t libacp_node_ring_bytes(unsigned int bits)
{
	return sizeof(struct libacp_node_ring) + ((uint64_t)8 << bits);
}

/*
 * Laps of a mailbox, each of which begins with the first record: twice their number, and one more
 * while the owner may be about to begin the next one.
 */
static inline uint64_t *libacp_lap_word(struct acp_mailbox *box)
{
	return (uint64_t *)(void *)&box->owner[LIBACP_OWNER_LAP];
}

/* ---- The owner ---- */

/* Set up a ring of 2^@bits units, @offset bytes behind the mailbox: both are multiples of 64. */
void libacp_node_ring_open(struct libacp_ring_reader *r, struct acp_mailbox *box, uint64_t offset,
			   unsigned int bits);

/*
 * Find the next message, which remains the next one until it is consumed or lent. Returns 0,
 * -EAGAIN if there is none, or -EBADMSG if the ring is broken.
 */
int libacp_node_ring_find(struct libacp_ring_reader *r, uint32_t ranks,
			  struct libacp_record *record, uint64_t *stamp);

void libacp_node_ring_consume(struct libacp_ring_reader *r, const struct libacp_record *record);

/* Pass over a record that is in the list of those that are lent. */
void libacp_node_ring_pass(struct libacp_ring_reader *r, const struct libacp_record *record);

/* A lent record was removed from the list: offer its room. */
void libacp_node_ring_free(const struct libacp_ring_reader *r);

/* Writers must wake the owner, or need not. A message that is not found afterwards wakes it. */
void libacp_node_ring_wait(const struct libacp_ring_reader *r, bool waits);

/*
 * Let no further message in. @gone: has the rank left? False as long as a writer has the lock; call
 * it again.
 */
bool libacp_node_ring_close(struct libacp_ring_reader *r, bool (*gone)(uint32_t rank));

/* True if there is no ring, or it was closed and all its records are consumed or lent. */
bool libacp_node_ring_drained(const struct libacp_ring_reader *r);

/* ---- Writers ---- */

struct libacp_ring_message {
	const void *data;
	uint64_t size, tag;		/* size in bytes */
	uint32_t rank;			/* of the writer */
};

/* Where is the ring of a mailbox? False: there is none that could be used. @offset in bytes. */
bool libacp_node_ring_of(const struct acp_mailbox *box, uint64_t *offset, unsigned int *bits);

/*
 * Write a message. @gone: has the rank left? False, without any effect that could be seen, if that
 * is not possible now: the kernel must do it.
 */
bool libacp_node_ring_write(struct acp_mailbox *box, struct libacp_node_ring *ring,
			    unsigned int bits, const struct libacp_ring_message *message,
			    bool (*gone)(uint32_t rank));

/* Must the owner be woken? Called after a fence behind libacp_node_ring_write(). */
static inline bool libacp_node_ring_waits(const struct libacp_node_ring *ring)
{
	return __atomic_load_n(&ring->waits, __ATOMIC_RELAXED);
}

#pragma GCC visibility pop

#endif /* LIBACP_NODE_RING_H */
