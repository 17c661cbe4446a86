/* SPDX-License-Identifier: MIT */
/*
 * How two ends find each other: channels and segmented buffers.
 *
 * An end that sends has a block of global memory that begins with an offer.
 * It puts the address of it, its letter, into the library page of the
 * receiving rank: one of LIBACP_LETTERS words, taken by compare-and-swap, so
 * that nobody who dies leaves anything half done there.  The receiving rank
 * collects letters whenever it is in a call, fetches the offers, and finds the
 * own end that is meant: the k-th of that kind from that rank.  That end
 * answers into the block of the sender, and both know each other.
 *
 *	sender				receiving rank
 *	offer in own block
 *	letter -> library page		(any time later:)
 *					fetch the offer
 *					answer -> block of the sender
 *
 * What arrived for ends that do not exist yet is kept, 128 bytes each.
 *
 * Nothing here runs by itself: progress is made inside calls, under one lock.
 */
#ifndef LIBACP_MEET_H
#define LIBACP_MEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acp.h"

#pragma GCC visibility push(hidden)

/* ---- block.c: memory with a global address ---- */

/* Of the rank's heap, else of the process and registered. */
struct libacp_block {
	void *memory;			/* NULL: none */
	acp_ga_t ga;
	acp_atkey_t key;		/* ACP_ATKEY_NULL: of the heap */
};

/* Zeroed memory of the caller's rank.  0 or -ENOMEM. */
int libacp_block_get(struct libacp_block *block, size_t size);

/* Give it back; nobody else may know it any more, unless it was registered. */
void libacp_block_put(struct libacp_block *block);

/* ---- meet.c ---- */

enum libacp_end_kind {
	LIBACP_CHANNEL = 1,
	LIBACP_SEGBUF = 2,
	LIBACP_KINDS
};

/* The first word of any block, and what it is when the end was lost. */
#define LIBACP_LOST	0x6c6f737420656e64ull

/* The first thing in the block of a sending end. */
struct libacp_offer {
	uint64_t state;			/* 0, or LIBACP_LOST */
	uint64_t kind, ordinal;		/* enum libacp_end_kind; from 1, of a pair of ranks */
	uint64_t data[2];		/* of the kind */
	uint64_t answer[2];		/* of the receiver: its block, and a word; 0: not yet */
	uint64_t former;		/* where the compare-and-swap ends */
};

#define LIBACP_REFUSED	1u		/* in place of both words: there is no such end */

enum libacp_end_state {
	LIBACP_END_ALONE,		/* the other one is not known yet */
	LIBACP_END_MET,			/* it is: a receiver has the offer, a sender the answer */
	LIBACP_END_LOST			/* there is no other one any more; final */
};

/* What progress of an end led to. */
enum libacp_progress {
	LIBACP_IDLE,			/* nothing to do until a call asks for something */
	LIBACP_BUSY,			/* look again */
	LIBACP_GONE			/* nothing left: release it */
};

struct libacp_partner;

/* One end of anything.  Guarded by the lock. */
struct libacp_end {
	struct libacp_end *next, **link;	/* all ends of the process */
	struct libacp_end *next_busy;
	bool busy;
	bool gone;			/* not looked at any more */

	/* set by the kind before libacp_end_open() */
	enum libacp_end_kind kind;
	bool sending;
	enum libacp_progress (*progress)(struct libacp_end *end);
	bool (*wanted)(const struct libacp_end *end);	/* does a request pend? */
	void (*leave)(struct libacp_end *end);	/* no more requests: say so, now or later */
	void (*release)(struct libacp_end *end);	/* free it and what it has */

	enum libacp_end_state state;
	struct libacp_partner *partner;
	uint32_t losses;		/* of the partner, when this was opened */
	uint64_t ordinal;
	struct libacp_block block;
	acp_ga_t there;			/* the other end's block, when MET */
	struct libacp_offer offer;	/* of the other end, for receivers */

	/* a sender's letter */
	acp_handle_t posting;
	unsigned int tries;
	uint64_t pause, again;		/* ns; when to try once more */
	bool posted;

	/* the first word of the other end's block, fetched now and then while waited for */
	struct libacp_offer *probe;	/* where it comes, NULL: none is under way */
	acp_handle_t probing;
	uint64_t probe_at;		/* ns, 0: not waited for */

	bool exposed;			/* the partner may write to the block */
	uint64_t lost_at;		/* ns: the end was lost, nobody here needs it */
};

/*
 * The lock.  While it is held, failures are the library's own.  Ends that are
 * gone are released after it: that may wait for the lock of a heap.
 */
void libacp_meet_lock(void);
void libacp_meet_unlock(void);

/*
 * A new end, with its block there and all words zero; a sender's data filled
 * in.  Takes the next ordinal.  0 or -errno; lock held, as for all here.
 */
int libacp_end_open(struct libacp_end *end, int partner);

/* Have it looked at in the calls of this process from now on. */
void libacp_end_wake(struct libacp_end *end);

/* Look for the other end, and whether it is still there. */
void libacp_end_meet(struct libacp_end *end);

/* Give up: nothing is to be expected of the other end. */
void libacp_end_lose(struct libacp_end *end);

/* Ask at once whether the partner is still what it was. */
bool libacp_end_is_there(struct libacp_end *end);

/*
 * What to do with an end that is LOST and that nobody here needs: its partner
 * may not know and still write to the block.  If the partner is dead it is
 * kept until all that was under way has ended, else until the rank leaves.
 */
enum libacp_progress libacp_end_linger(struct libacp_end *end);

/*
 * What has come of an access to the other end: 1 done, 0 not yet, or -errno;
 * that it failed makes the end LOST.
 */
int libacp_end_ended(struct libacp_end *end, acp_handle_t handle);

/* Count in a word of the other end's block; nobody here waits for it. */
acp_handle_t libacp_end_add(struct libacp_end *end, size_t offset, uint64_t value);

/* One look at this end, or at all that are busy and at the letters; then GONE ones are gone. */
void libacp_end_progress(struct libacp_end *end);
void libacp_meet_progress(void);

/*
 * Waiting without the lock: look, and sleep more and more.  All zero at first.
 * What is waited for may be an access of this process (else ACP_HANDLE_NULL),
 * or may be known to take long.
 */
struct libacp_patience {
	uint64_t since, sleep;
	unsigned int looks;
};

void libacp_meet_wait(struct libacp_patience *patience, acp_handle_t access, bool long_one);

/*
 * Before the last barrier of a rank: finish what was asked for, as far as the
 * others do their part; each says when it will ask for no more, and when it
 * has ended, so that nobody waits for somebody who waits there.
 */
void libacp_meet_settle(void);

/* After it: all ends are gone. */
void libacp_meet_forget(void);

#pragma GCC visibility pop

#endif /* LIBACP_MEET_H */
