/* SPDX-License-Identifier: MIT */
/*
 * A round: accesses of an operation that are in flight together, and one wait for all of them.
 * Operations of vectors, deques and lists consist of a few rounds:
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
 * Failures are reported only by libacp_round_wait(): while a round is open, failed accesses of the
 * calling thread do not end the job. A round belongs to one thread, and needs no memory except for
 * its staging words.
 *
 * Accesses that failed only because an access of another thread failed, which they had to follow,
 * are repeated. Therefore the accesses of a round must tolerate that one is executed after a later
 * one, or twice. Others are issued by libacp_round_move().
 */
#ifndef LIBACP_ROUND_H
#define LIBACP_ROUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acp.h"

#pragma GCC visibility push(hidden)

/* Less than the number of statuses that are kept (ACP_QUEUE_DEPTH, at least 64). */
#define LIBACP_ROUND_MAX	32u

struct libacp_round {
	struct libacp_access {
		acp_handle_t handle;
		acp_ga_t dst, src;
		uint64_t size;
		bool once;		/* must not be executed twice */
	} accesses[LIBACP_ROUND_MAX];
	unsigned int count;		/* accesses that were not waited for */
	unsigned int known;		/* index of the first access whose result is unknown */
	/* of the first access that failed since the last wait, or 0 */
	int error;
	unsigned int issued;		/* accesses since the last wait */
	unsigned int failed;		/* number of the first access that failed, counted from 0 */
	/* staging words of this process, and their global address */
	uint64_t *words;
	acp_ga_t words_ga;
	unsigned int used;		/* words used since the last wait */
	int saved_errno;
	bool quiet;			/* previous setting */
};

/* An aligned word of global memory, with its previous and its new value. */
struct libacp_word {
	acp_ga_t ga;
	uint64_t former, value;
};

/*
 * Begin a round. Returns 0, -ENOMEM or, if this process is no rank, -ECANCELED. After success,
 * libacp_round_end() must be called, which restores errno.
 */
int libacp_round_begin(struct libacp_round *r);

/* Wait for all accesses and end the round. */
void libacp_round_end(struct libacp_round *r);

/* Issue a copy without order. */
void libacp_round_copy(struct libacp_round *r, acp_ga_t dst, acp_ga_t src, uint64_t size);

/*
 * Issue a copy that follows all accesses added since the last wait, and is not executed if one of
 * them fails.
 */
void libacp_round_then(struct libacp_round *r, acp_ga_t dst, acp_ga_t src, uint64_t size);

/*
 * Copy memory that may be the source of an earlier access or overlap the destination: after all
 * previous accesses have completed, and only if all succeeded.
 */
void libacp_round_move(struct libacp_round *r, acp_ga_t dst, acp_ga_t src, uint64_t size);

/*
 * Issue a read of up to 8 words, without order. They are valid after the next wait, until the next
 * read or store after it. At most 16 reads between two waits.
 */
const uint64_t *libacp_round_read(struct libacp_round *r, acp_ga_t ga, unsigned int words);

/*
 * Issue stores of words; adjacent ones are one access. @order: they follow all accesses added since
 * the last wait, as in libacp_round_then(), and each other.
 */
void libacp_round_store(struct libacp_round *r, const struct libacp_word *stores, size_t count,
			bool order);

/* Wait for all accesses. Returns 0, or the -errno of the first one that failed (r->failed). */
int libacp_round_wait(struct libacp_round *r);

/*
 * True if an address cannot be reached. Called after a failure, to avoid a timeout for each access.
 */
bool libacp_round_is_lost(acp_ga_t ga);

/*
 * Restore the previous values of words after a failure that left open which of them were stored.
 * Waits. False: some memory cannot be reached, and its contents are unknown.
 */
bool libacp_round_undo(struct libacp_round *r, const struct libacp_word *stores, size_t count);

/* Store words and wait. All are stored or, unless *undone is false, none. Returns 0 or -errno. */
int libacp_round_exchange(struct libacp_round *r, const struct libacp_word *stores, size_t count,
			  bool *undone);

/* As acp_malloc(). Returns 0 or -errno. */
int libacp_round_allocate(uint64_t size, int rank, acp_ga_t *ga);

#pragma GCC visibility pop

#endif /* LIBACP_ROUND_H */
