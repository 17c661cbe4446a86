/* SPDX-License-Identifier: MIT */
/*
 * A journaled lock in global memory, which survives the failure of its holder.
 *
 * Its words may be anywhere in global memory and are initially zero:
 *
 *	lock	0, or the mark of the holder: a unique stamp of this hold, and rank + 1
 *	commit	identifies the owner of a complete journal
 *	count	number of stores in the journal
 *	journal	address and value of each store, words of 8 bytes
 *
 * The holder changes nothing until it leaves, or commits in between: it stages its stores. To
 * leave, it writes the journal, commits, executes the stores and unlocks. A rank that finds the
 * mark of a dead rank waits until none of its accesses can be in flight, takes over the lock, and
 * repeats the stores if commit says that all of them are known. Otherwise none of them was
 * executed.
 *
 * A holder that can access the words directly ("near") commits by writing its mark after the
 * journal. A remote holder ("far") writes commit, count and journal in one put, because two would
 * cost another access. As the bytes of a put arrive in any order, it writes to commit a digest
 * (SipHash) of its mark, count and journal, which matches only if all of it has arrived.
 *
 * A hold of a remote lock takes two round trips: lock and read; journal, stores and unlock. A hold
 * of a lock that acp_query_address() can access needs no system call.
 *
 * Times: a remote holder issues no changes after LEASE. The lock of a rank that left is taken over
 * after GRACE. The lock of a rank that may be alive on another node than the lock is taken over
 * after FORSAKEN: its node is silent or was restarted, its path to the lock is broken, or it is
 * stopped. By then its lease has long expired, and accesses in flight have arrived or failed. A
 * rank that waits for longer than PATIENCE gives up.
 */
#ifndef LIBACP_TXLOCK_H
#define LIBACP_TXLOCK_H

#include <stdint.h>

#include "core/internal.h"
#include "middle/scratch.h"

#define LIBACP_TXLOCK_STORES	20u	/* maximum between entering and leaving or committing */
#define LIBACP_TXLOCK_READS	3u	/* maximum when entering */

/* Value of a lock that cannot be taken: entering fails with -ENXIO. */
#define LIBACP_TXLOCK_NEVER	(1ull << 25)

/* Size in bytes of a lock for at most that many staged stores. */
#define LIBACP_TXLOCK_BYTES(stores)	(8u * (3u + 2u * (stores)))

struct libacp_txlock_times {
	uint64_t lease, grace, forsaken, patience;	/* ns */
};

struct libacp_store {
	acp_ga_t ga;
	uint64_t value;
};

/* Memory to read after the lock was taken. */
struct libacp_fetch {
	acp_ga_t ga;
	uint32_t size;
	const void *bytes;	/* output: valid until the next fetch or the end of the hold */
};

struct libacp_txlock {
	acp_ga_t at;			/* address of the words */
	acp_ga_t low;			/* memory of the same rank around the words, which is */
	uint64_t span;			/* accessed in the same way, and its size in bytes */
	bool open;			/* holding the lock */
	/* address of low if this process can access it, else NULL */
	char *near;
	uint64_t mark;
	uint64_t own;			/* mark under which another hold is being ended; else 0 */
	uint64_t commit;		/* last value written to commit */
	struct libacp_txlock *next;	/* list of remote holds of this process */
	uint64_t since;			/* start of a remote hold */
	char *scratch;			/* staging memory and its global address */
	acp_ga_t scratch_ga;
	acp_handle_t link;		/* last access of the chain */
	bool broken;			/* the chain could not be issued completely */
	unsigned int count;
	/* staged stores: in the journal itself if it is near, else in far */
	struct libacp_store *stores;
	struct libacp_store far[LIBACP_TXLOCK_STORES];
};

#pragma GCC visibility push(hidden)

/* 1 s, 2 s, 2 s + 3 x ACP_TIMEOUT and 10 s more, at least 20 s and 30 s. Only tests change them. */
extern struct libacp_txlock_times libacp_txlock_times;

/* Initialize the marks and times of this process after the join. */
void libacp_txlock_open(void);

/*
 * Take the lock at @at, a global address aligned to 8, and fetch @n pieces of together up to 256
 * bytes. Words and pieces are within [low, low + span). Returns 0, or a negative errno if the lock
 * was not taken: -ETIMEDOUT after PATIENCE, else the failure of accesses to the rank that has the
 * words. Threads of a process exclude each other like ranks; a struct libacp_txlock belongs to one
 * thread.
 */
int libacp_txlock_enter(struct libacp_txlock *s, acp_ga_t at, acp_ga_t low, uint64_t span,
			struct libacp_fetch *fetches, unsigned int n);

/* As libacp_txlock_enter(), for callers that know @near already: acp_query_address(low). */
int libacp_txlock_enter_near(struct libacp_txlock *s, acp_ga_t at, acp_ga_t low, uint64_t span,
			     char *near, struct libacp_fetch *fetches, unsigned int n);

/*
 * Fetch another piece while holding the lock. Returns 0 or -errno; the lock must be released in
 * both cases.
 */
int libacp_txlock_fetch(struct libacp_txlock *s, struct libacp_fetch *fetch);

/*
 * Stage a store of 8 aligned bytes to memory of any rank, which is executed when committing or
 * leaving.
 */
static inline void libacp_txlock_store(struct libacp_txlock *s, acp_ga_t ga, uint64_t value)
{
	s->stores[s->count++] = (struct libacp_store){ ga, value };
}

/*
 * Execute the staged stores and release the lock. Returns 0; -EAGAIN: nothing was stored because it
 * took too long, enter again; or another error: all or none of the stores are executed, now or
 * later by the rank that takes over the lock.
 */
int libacp_txlock_leave(struct libacp_txlock *s);

/*
 * Execute the staged stores and keep the lock. Returns 0, or -errno if the lock was released.
 * -EAGAIN: enter again and check whether the stores were executed.
 */
int libacp_txlock_commit(struct libacp_txlock *s);

/* Release the lock, if it is held, without further stores. */
void libacp_txlock_drop(struct libacp_txlock *s);

#pragma GCC visibility pop

#endif /* LIBACP_TXLOCK_H */
