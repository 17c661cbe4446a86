/* SPDX-License-Identifier: MIT */
/*
 * A critical section in global memory that survives who is inside.
 *
 * Its words may be anywhere in global memory and are zero at first:
 *
 *	lock	0, or the mark of who is inside: a stamp that tells this stay
 *		from all others, and its rank + 1
 *	commit	says whose journal is there, and complete
 *	count	stores in the journal
 *	journal	address and value of each store, words of 8 bytes
 *
 * Who is inside changes nothing until it leaves (or commits in between): it
 * stages its stores.  Leaving writes the journal and commits, then does the
 * stores, then unlocks.  Who finds the mark of a rank that is dead waits until
 * nothing of it can be under way, takes the lock over, and does the stores
 * again if commit says that they are all known; otherwise none of them was done.
 *
 * Who can reach the words commits by writing its mark behind the journal.  Who
 * cannot puts commit, count and journal at once, as that is one access and not
 * two; but the bytes of a put come in any order.  So what it writes to commit is
 * a digest (SipHash) of its mark, count and journal: right if all of it is there.
 *
 * A stay at a remote section takes two round trips: lock and read; journal,
 * stores and unlock.  One at a section that acp_query_address() can reach
 * needs no system call.
 *
 * How long: who is inside a remote section issues nothing that changes it
 * when it has been there for LEASE.  The lock of a rank that has left for GRACE
 * is taken over, and that of one which may be alive, on another node than the
 * section, after FORSAKEN: its node is silent, or was restarted, or its way to
 * the section is broken, or it is stopped.  By then its lease is long over, and
 * what was under way has arrived or failed.  Who waits in vain for PATIENCE
 * gives up.
 */
#ifndef LIBACP_SECTION_H
#define LIBACP_SECTION_H

#include <stdint.h>

#include "middle.h"
#include "scratch.h"

#define LIBACP_SECTION_STORES	20u	/* most between entering and leaving, or commits */
#define LIBACP_SECTION_READS	3u	/* most when entering */

/* A lock that nobody can take: entering fails with -ENXIO. */
#define LIBACP_SECTION_NEVER	(1ull << 25)

/* Bytes of a section that at most so many stores are staged in. */
#define LIBACP_SECTION_BYTES(stores)	(8u * (3u + 2u * (stores)))

struct libacp_section_times {
	uint64_t lease, grace, forsaken, patience;	/* ns */
};

struct libacp_store {
	acp_ga_t ga;
	uint64_t value;
};

/* What to read when the section has been entered. */
struct libacp_fetch {
	acp_ga_t ga;
	uint32_t size;
	const void *bytes;	/* where it is then, until the next fetch or the end */
};

struct libacp_section {
	acp_ga_t at;			/* the words */
	acp_ga_t low;			/* memory of that rank around them, that is reached in */
	uint64_t span;			/* the same way, and its size */
	bool open;			/* inside */
	char *near;			/* where low is, if this process can reach it; else NULL */
	uint64_t mark;
	uint64_t own;			/* while it ends another stay; else 0 */
	uint64_t commit;		/* what was last written there */
	struct libacp_section *next;	/* of this process's, that are remote */
	uint64_t since;			/* when it was entered, if remote */
	char *scratch;			/* staging memory, and its address */
	acp_ga_t scratch_ga;
	acp_handle_t link;		/* of a chain: the last one issued */
	bool broken;			/* that was not all */
	unsigned int count;
	struct libacp_store *stores;	/* staged: where the journal is, if that is near, or: */
	struct libacp_store far[LIBACP_SECTION_STORES];
};

#pragma GCC visibility push(hidden)

/* 1, 2, 2 + 3 x ACP_TIMEOUT and 10 more seconds, at least 20 and 30; only tests change them. */
extern struct libacp_section_times libacp_section_times;

void libacp_section_open(void);

/*
 * Enter the section whose words are at a GA aligned to 8, and fetch n pieces
 * (together up to 256 bytes, within [low, low + span), as the words are).
 * 0; or a negative errno and the section was not entered: -ETIMEDOUT for
 * patience, else whatever became of the rank that has the words.
 */
int libacp_section_enter(struct libacp_section *s, acp_ga_t at, acp_ga_t low, uint64_t span,
			 struct libacp_fetch *fetches, unsigned int n);

/* The same for who knows already where low is: acp_query_address(low). */
int libacp_section_enter_near(struct libacp_section *s, acp_ga_t at, acp_ga_t low, uint64_t span,
			      char *near, struct libacp_fetch *fetches, unsigned int n);

/* Fetch something more.  0 or -errno; the section is still to be left. */
int libacp_section_fetch(struct libacp_section *s, struct libacp_fetch *fetch);

/* Store a word of 8 bytes (aligned, any rank's) when committing or leaving. */
static inline void libacp_section_store(struct libacp_section *s, acp_ga_t ga, uint64_t value)
{
	s->stores[s->count++] = (struct libacp_store){ ga, value };
}

/*
 * Do what is staged and leave.  0, or -EAGAIN: nothing was stored, it had
 * taken too long; enter again.  Other errors: stored, now or later by whoever
 * takes the section over, or not; all or nothing.
 */
int libacp_section_leave(struct libacp_section *s);

/*
 * Do what is staged, and stay.  0, or -errno: the section was left.  -EAGAIN
 * means to enter again, and to look whether it was stored.
 */
int libacp_section_commit(struct libacp_section *s);

/* Leave, if still inside, without storing anything more. */
void libacp_section_drop(struct libacp_section *s);

#pragma GCC visibility pop

#endif /* LIBACP_SECTION_H */
