/* SPDX-License-Identifier: MIT */
/*
 * Connection of two ends of channels and segmented buffers.
 *
 * A sending end has a block of global memory that begins with an offer. It writes the address of
 * the block, a connection request, to the library page of the receiving rank: to one of
 * LIBACP_CONNECTIONS words, by compare-and-swap, so that a rank that dies leaves no incomplete
 * state there. The receiving rank collects the requests in any call, fetches the offers, and finds
 * its own matching end: the k-th of that kind for that rank. That end answers into the block of the
 * sender, and then both ends are connected.
 *
 *	sender				receiving rank
 *	offer in own block
 *	request -> library page		(any time later:)
 *					fetch the offer
 *					answer -> block of the sender
 *
 * Requests for ends that do not exist yet are kept, 128 bytes each.
 *
 * There is no background thread: progress is made inside calls, under one lock.
 */
#ifndef LIBACP_RENDEZVOUS_H
#define LIBACP_RENDEZVOUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acp.h"

#pragma GCC visibility push(hidden)

/* ---- block.c ---- */

/* Memory with a global address: from the heap of this rank, or else registered. */
struct libacp_block {
	void *memory;			/* NULL: none */
	acp_ga_t ga;
	acp_atkey_t key;		/* ACP_ATKEY_NULL: from the heap */
};

/* Allocate zeroed memory of this rank, @size in bytes. Returns 0 or -ENOMEM. Thread-safe. */
int libacp_block_get(struct libacp_block *block, size_t size);

/* Free the memory. No other rank may access it any more, unless it was registered. */
void libacp_block_put(struct libacp_block *block);

/* ---- rendezvous.c ---- */

enum libacp_end_kind {
	LIBACP_CHANNEL = 1,
	LIBACP_SEGBUF = 2,
	LIBACP_KINDS
};

/* First word of any block of an end that was lost. */
#define LIBACP_LOST	0x6c6f737420656e64ull

/* Start of the block of a sending end. */
struct libacp_offer {
	uint64_t state;			/* 0, or LIBACP_LOST */
	/* enum libacp_end_kind; counted from 1 for a pair of ranks */
	uint64_t kind, ordinal;
	uint64_t data[2];		/* depends on the kind */
	uint64_t answer[2];		/* by the receiver: its block, and a word; 0: none yet */
	uint64_t former;		/* destination of the compare-and-swap */
};

/* value of both words of the answer: there is no such end */
#define LIBACP_REFUSED	1u

enum libacp_end_state {
	LIBACP_END_OPEN,		/* not connected yet */
	LIBACP_END_CONNECTED,		/* a receiver has the offer, a sender has the answer */
	LIBACP_END_LOST			/* the other end is gone; final */
};

/* Result of making progress on an end. */
enum libacp_progress {
	LIBACP_IDLE,			/* nothing to do until the next request */
	LIBACP_BUSY,			/* poll again */
	LIBACP_GONE			/* finished: release it */
};

struct libacp_partner;

/* An end of a channel or segmented buffer. Guarded by the lock. */
struct libacp_end {
	struct libacp_end *next, **link;	/* list of all ends of the process */
	struct libacp_end *next_busy;
	bool busy;
	bool gone;			/* finished, waiting for its accesses */

	/* set by the caller before libacp_end_open() */
	enum libacp_end_kind kind;
	bool sending;
	enum libacp_progress (*progress)(struct libacp_end *end);
	bool (*wanted)(const struct libacp_end *end);	/* true if a request is pending */
	/* no more requests will follow: tell the other end, now or later */
	void (*leave)(struct libacp_end *end);
	void (*release)(struct libacp_end *end);	/* free the end and what it owns */

	enum libacp_end_state state;
	struct libacp_partner *partner;
	uint32_t losses;		/* value of the partner when the end was opened */
	uint64_t ordinal;
	struct libacp_block block;
	acp_ga_t there;			/* block of the other end, when CONNECTED */
	struct libacp_offer offer;	/* of the other end, for receivers */

	/* connection request of a sender */
	acp_handle_t posting;
	unsigned int tries;
	uint64_t pause, again;		/* ns: pause, and time of the next attempt */
	bool posted;

	/* periodic probe of the first word of the block of the other end, while waiting for it */
	struct libacp_offer *probe;	/* destination of the probe in flight; NULL: none */
	acp_handle_t probing;
	uint64_t probe_at;		/* ns; 0: not waited for */

	bool exposed;			/* the partner may write to the block */
	acp_handle_t last;		/* when gone: completes after all accesses of this end */
	uint64_t lost_at;		/* ns: when the end was lost and not needed any more */
};

/*
 * Take and release the lock. While it is held, the library handles failures of accesses
 * (libacp_quiet()). Ends that are finished are released after unlocking, because that may wait for
 * the lock of a heap.
 */
void libacp_rendezvous_lock(void);
void libacp_rendezvous_unlock(void);

/*
 * Open an end, whose block must exist and be zero except for the data of a sender. Assigns the next
 * ordinal. Returns 0 or -errno. This function and those below are called with the lock held.
 */
int libacp_end_open(struct libacp_end *end, int partner);

/* Enter the end into the list of those that are polled by any call. */
void libacp_end_wake(struct libacp_end *end);

/* Try to connect the end, and check whether the other end is still there. */
void libacp_end_connect(struct libacp_end *end);

/* Mark the end as lost. */
void libacp_end_lose(struct libacp_end *end);

/* Check immediately whether the partner is still there. False: the end is lost. */
bool libacp_end_is_there(struct libacp_end *end);

/*
 * Return what to do with an end that is LOST and not needed any more. Its partner may not know and
 * may still write to the block. If the partner is dead, the block is kept until its accesses have
 * ended, otherwise until this rank leaves.
 */
enum libacp_progress libacp_end_linger(struct libacp_end *end);

/*
 * Check an access to the other end. Returns 1: done, 0: pending, or -errno; a failure makes the end
 * LOST.
 */
int libacp_end_ended(struct libacp_end *end, acp_handle_t handle);

/* Add to a word of the block of the other end, without waiting. */
acp_handle_t libacp_end_add(struct libacp_end *end, size_t offset, uint64_t value);

/*
 * Make progress on one end, or on all busy ends and connection requests, and close finished ends.
 */
void libacp_end_progress(struct libacp_end *end);
void libacp_rendezvous_progress(void);

/**
 * libacp_rendezvous_settle() - complete the pending requests before the last barrier of a rank
 *
 * Completes them as far as the other ranks cooperate. Each rank announces when it will make no more
 * requests and when it is finished, so that ranks do not wait for each other forever.
 *
 * Context: the thread that leaves, while the process is a rank; may block; takes the lock of
 * rendezvous.c repeatedly.
 */
void libacp_rendezvous_settle(void);

/* Called after it: free all ends. */
void libacp_rendezvous_forget(void);

/* ---- patience.c ---- */

/* State of a wait: polling first, then sleeping with increasing intervals. Initially zero. */
struct libacp_patience {
	uint64_t since, sleep;
	unsigned int looks;
};

/*
 * Wait a little, without holding the lock. @access: access of this process that the caller waits
 * for, or ACP_HANDLE_NULL. @long_one: the wait is expected to take long.
 */
void libacp_rendezvous_wait(struct libacp_patience *patience, acp_handle_t access, bool long_one);

#pragma GCC visibility pop

#endif /* LIBACP_RENDEZVOUS_H */
