/* SPDX-License-Identifier: MIT */
/*
 * A round: accesses of one operation that are under way together, and one
 * wait for all of them.  Operations of vectors, deques and lists are a few
 * rounds one after the other:
 *
 *	err = libacp_round_begin(&r);
 *	if (err)
 *		return err;
 *	words = libacp_round_read(&r, header, 3);
 *	err = libacp_round_wait(&r);
 *	... words[0] ...
 *	libacp_round_copy(&r, there, here, size);
 *	libacp_round_store(&r, stores, count, true);
 *	err = libacp_round_wait(&r);
 *	libacp_round_end(&r);
 *
 * Failures are told by libacp_round_wait(), and by nothing else: while a
 * round is open, the calling thread's failures do not end the job.  A round
 * belongs to one thread, and costs no memory but its staging words.
 *
 * Accesses that failed only because one of another thread did, before which
 * they had been told to wait, are done again; so a round's accesses must be
 * such that it does no harm if one is done after a later one, or twice.  What
 * cannot stand that is issued by libacp_round_move().
 */
#ifndef LIBACP_ROUND_H
#define LIBACP_ROUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acp.h"

#pragma GCC visibility push(hidden)

/* Fewer than the statuses that are kept (ACP_QUEUE_DEPTH, at least 64). */
#define LIBACP_ROUND_MOST	32u

struct libacp_round {
	struct libacp_access {
		acp_handle_t handle;
		acp_ga_t dst, src;
		uint64_t size;
		bool once;		/* not to be done twice */
	} accesses[LIBACP_ROUND_MOST];
	unsigned int count;		/* accesses that nobody waited for */
	unsigned int known;		/* the first of them, whose end is known */
	int error;			/* of the first that failed since the last wait, or 0 */
	unsigned int issued;		/* accesses since the last wait */
	unsigned int failed;		/* number of the first that failed, counted from 0 */
	uint64_t *words;		/* staging words: of this process, and their address */
	acp_ga_t words_ga;
	unsigned int used;		/* of them, since the last wait */
	int saved_errno;
	bool quiet;			/* what was said before */
};

/* A word of global memory, aligned, with what it holds and what it shall hold. */
struct libacp_word {
	acp_ga_t ga;
	uint64_t former, value;
};

/*
 * 0, -ENOMEM or, if this is no rank, -ECANCELED; after 0 libacp_round_end() is due,
 * which leaves errno as it was here.
 */
int libacp_round_begin(struct libacp_round *r);
void libacp_round_end(struct libacp_round *r);

/* Copy: at once. */
void libacp_round_copy(struct libacp_round *r, acp_ga_t dst, acp_ga_t src, uint64_t size);

/* Copy, behind everything that was added since the last wait; not if some of that fails. */
void libacp_round_then(struct libacp_round *r, acp_ga_t dst, acp_ga_t src, uint64_t size);

/*
 * Copy what may be the source of an earlier access, or overlap itself: when
 * everything before it is complete, and not at all if some of that failed.
 */
void libacp_round_move(struct libacp_round *r, acp_ga_t dst, acp_ga_t src, uint64_t size);

/*
 * Read up to 8 words, at once.  They are there after the next wait, until
 * something is read or stored after that.  Never more than 16 reads a wait.
 */
const uint64_t *libacp_round_read(struct libacp_round *r, acp_ga_t ga, unsigned int words);

/*
 * Store words; those next to each other go as one access.  In order: behind
 * everything that was added since the last wait, as libacp_round_then(), and
 * behind each other; else at once.
 */
void libacp_round_store(struct libacp_round *r, const struct libacp_word *stores, size_t count,
			bool order);

/* Wait for all: 0, or the -errno of the first one that failed (r->failed). */
int libacp_round_wait(struct libacp_round *r);

/* Is an address out of reach?  To be asked after a failure, so that not each has a time-out. */
bool libacp_round_is_lost(acp_ga_t ga);

/*
 * Give words their former values, after a failure that left open which of
 * them were stored.  Waits.  False: some memory is out of reach, and nobody
 * knows what is there.
 */
bool libacp_round_undo(struct libacp_round *r, const struct libacp_word *stores, size_t count);

/* Store words at once and wait; all of them, or (false in *undone: if possible) none. */
int libacp_round_exchange(struct libacp_round *r, const struct libacp_word *stores, size_t count,
			  bool *undone);

/* acp_malloc() that tells why not: 0 or -errno. */
int libacp_round_allocate(uint64_t size, int rank, acp_ga_t *ga);

#pragma GCC visibility pop

#endif /* LIBACP_ROUND_H */
