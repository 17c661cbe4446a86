/* SPDX-License-Identifier: MIT */
/* Declarations shared by the files of journaled locks; see txlock.h. */
#ifndef LIBACP_TXLOCK_PART_H
#define LIBACP_TXLOCK_PART_H

#include "middle/txlock.h"

/* A mark consists of a number, two bits, and rank + 1. */
#define RANK_MASK	0xffffffull
#define REDO		(1ull << 24)	/* the journal is complete, regardless of its author */
#define FAR		(1ull << 25)	/* the holder is remote */
#define STAMP_SHIFT	26

/* Offsets of the words in bytes. */
#define LOCK		0u
#define COMMIT		8u
#define JOURNAL		16u		/* count, then stores */

/* Layout of the scratch memory. */
#define FOUND		0u		/* previous value of the lock */
#define HEAD		8u		/* lock, commit and count, as read */
#define ZERO		32u
#define FETCHED		64u
#define FETCH_MAX	256u
#define OWN_COMMIT	(FETCHED + FETCH_MAX)	/* commit, count and stores, to be written */
#define OWN_STORES	(OWN_COMMIT + 16u)
#define VALUES		(OWN_STORES + 16u * LIBACP_TXLOCK_STORES)

#define SCRATCH_BYTES	(VALUES + 8u * LIBACP_TXLOCK_STORES)

static inline uint64_t *near_word(const struct libacp_txlock *s, acp_ga_t ga)
{
	return (uint64_t *)(void *)(s->near + (ga - s->low));
}

static inline uint64_t *scratch_word(const struct libacp_txlock *s, unsigned int at)
{
	return (uint64_t *)(void *)(s->scratch + at);
}

#pragma GCC visibility push(hidden)

/* ---- txlock_store.c ---- */

/*
 * Replace the lock if it has the expected value. *found is the previous value. Returns 0 or -errno.
 */
int libacp_txlock_change_lock(struct libacp_txlock *s, uint64_t expected, uint64_t mark,
			      uint64_t *found);

/* Execute the staged stores one by one. Returns 0 or -errno (-ETIME: the lease has expired). */
int libacp_txlock_do_stores(struct libacp_txlock *s);

/* Return the value of commit of a remote hold: a digest of mark, count and stores. */
uint64_t libacp_txlock_digest(const uint64_t *words, unsigned int stores);

/* True if the lease of a remote hold has expired. */
bool libacp_txlock_late(const struct libacp_txlock *s);

/* ---- txlock_recover.c ---- */

extern uint64_t libacp_txlock_stamp;

/* Return a unique mark for a hold. */
static inline uint64_t new_mark(const struct libacp_txlock *s)
{
	uint64_t number = __atomic_add_fetch(&libacp_txlock_stamp, 1, __ATOMIC_RELAXED);

	return number << STAMP_SHIFT | (s->near ? 0 : FAR) | (uint64_t)(acp_rank() + 1);
}

/* Set a mark that is going to be tried, for the hold itself or to end another one. */
void libacp_txlock_set_mark(struct libacp_txlock *s, uint64_t *which, uint64_t mark);

/* Enter a remote hold into the list before it begins, and remove it after its end. */
void libacp_txlock_join(struct libacp_txlock *s);
void libacp_txlock_part(struct libacp_txlock *s);

/*
 * Determine the result of an own hold after some of its accesses failed. Returns 0 if its stores
 * were executed, -EAGAIN if none was, or -errno if this is unknown.
 */
int libacp_txlock_settle(struct libacp_txlock *s);

/* State of waiting for another holder; initially zero. */
struct libacp_txlock_turn {
	uint64_t begin;
	uint64_t seen, since;		/* mark found, and since when */
	uint64_t left_since;		/* when the holder was found dead; 0: it was not */
	uint64_t probed, pause;
	bool left;			/* result of the last probe */
	unsigned int spins;
};

/*
 * Called when another holder was found: wait a little, or take over the lock. Returns 0 (try again)
 * or -errno.
 */
int libacp_txlock_wait(struct libacp_txlock *s, struct libacp_txlock_turn *t, uint64_t found);

#pragma GCC visibility pop

#endif /* LIBACP_TXLOCK_PART_H */
