/* SPDX-License-Identifier: MIT */
/* What the two files of sections share; what it is all about is in section.h. */
#ifndef LIBACP_SECTION_PART_H
#define LIBACP_SECTION_PART_H

#include "section.h"

/* A mark: a number, two bits, rank + 1. */
#define RANK_MASK	0xffffffull
#define REDO		(1ull << 24)	/* the journal is complete, whoever wrote it */
#define FAR		(1ull << 25)	/* who has it is not near the section */
#define STAMP_SHIFT	26

/* The words, as bytes from the first one. */
#define LOCK		0u
#define COMMIT		8u
#define JOURNAL		16u		/* count, then stores */

/* What is where in the piece of scratch memory. */
#define FOUND		0u		/* former value of the lock */
#define HEAD		8u		/* lock, commit and count, as read */
#define ZERO		32u
#define FETCHED		64u
#define FETCH_MOST	256u
#define OWN_COMMIT	(FETCHED + FETCH_MOST)	/* commit, count, stores, as they go out */
#define OWN_STORES	(OWN_COMMIT + 16u)
#define VALUES		(OWN_STORES + 16u * LIBACP_SECTION_STORES)

#define SCRATCH_BYTES	(VALUES + 8u * LIBACP_SECTION_STORES)

static inline uint64_t *near_word(const struct libacp_section *s, acp_ga_t ga)
{
	return (uint64_t *)(void *)(s->near + (ga - s->low));
}

static inline uint64_t *scratch_word(const struct libacp_section *s, unsigned int at)
{
	return (uint64_t *)(void *)(s->scratch + at);
}

#pragma GCC visibility push(hidden)

/* ---- section.c ---- */

/* Replace the lock if it is as expected; *found is what it was.  0 or -errno. */
int libacp_section_change_lock(struct libacp_section *s, uint64_t expected, uint64_t mark,
			       uint64_t *found);

/* What is staged, one by one, wherever it goes: 0, or -errno (-ETIME: the lease is over). */
int libacp_section_do_stores(struct libacp_section *s);

/* What a far stay commits with: of these words, mark, count and stores. */
uint64_t libacp_section_digest(const uint64_t *words, unsigned int stores);

/* Has a far stay had its time? */
bool libacp_section_late(const struct libacp_section *s);

/* ---- section_turn.c ---- */

extern uint64_t libacp_section_stamp;

static inline uint64_t new_mark(const struct libacp_section *s)
{
	uint64_t number = __atomic_add_fetch(&libacp_section_stamp, 1, __ATOMIC_RELAXED);

	return number << STAMP_SHIFT | (s->near ? 0 : FAR) | (uint64_t)(acp_rank() + 1);
}

/* A mark that is going to be tried: of the stay, or to end another one. */
void libacp_section_set_mark(struct libacp_section *s, uint64_t *which, uint64_t mark);

/* A far stay is about to begin, and is over. */
void libacp_section_join(struct libacp_section *s);
void libacp_section_part(struct libacp_section *s);

/*
 * What became of a stay of our own, some of whose accesses failed: 0 if its
 * stores are done, -EAGAIN if none was, -errno if that cannot be said.
 */
int libacp_section_settle(struct libacp_section *s);

/* Waiting for somebody else; zero at first. */
struct libacp_section_turn {
	uint64_t begin;
	uint64_t seen, since;		/* whose mark, since when */
	uint64_t left_since;		/* known to be gone; 0: it is not */
	uint64_t probed, pause;
	bool left;			/* what the last probe said */
	unsigned int spins;
};

/* Somebody is inside: wait a little, or take over.  0: try again; or -errno. */
int libacp_section_wait(struct libacp_section *s, struct libacp_section_turn *t, uint64_t found);

#pragma GCC visibility pop

#endif /* LIBACP_SECTION_PART_H */
