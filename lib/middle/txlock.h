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

/**
 * libacp_txlock_open() - initialize the marks and times of this process
 *
 * Context: the thread that joins, before any thread takes a lock.
 */
void libacp_txlock_open(void);

/**
 * libacp_txlock_enter() - take a lock, and fetch memory under it
 * @s: receives the state of the hold; uninitialized before
 * @at: global address of the lock, aligned to 8
 * @low: start of memory of the same rank that has the words of the lock and all pieces
 * @span: size of that memory in bytes
 * @fetches: the pieces to fetch, of together up to 256 bytes
 * @n: number of pieces, at most LIBACP_TXLOCK_READS
 *
 * Threads of a process exclude each other like ranks; a struct libacp_txlock belongs to one thread.
 * A lock whose holder does not continue is taken over.
 *
 * Context: any thread of a rank; may block, and gives up after libacp_txlock_times.patience.
 * Return: 0, or a negative errno if the lock was not taken: -ETIMEDOUT after PATIENCE; -ENOMEM if
 * there is no scratch memory; -ENXIO if the lock is LIBACP_TXLOCK_NEVER; -EUCLEAN if its words were
 * overwritten; else the failure of accesses to the rank that has the words.
 */
int libacp_txlock_enter(struct libacp_txlock *s, acp_ga_t at, acp_ga_t low, uint64_t span,
			struct libacp_fetch *fetches, unsigned int n);

/**
 * libacp_txlock_enter_near() - take a lock, as libacp_txlock_enter(), if its address is known
 * @s: receives the state of the hold; uninitialized before
 * @at: global address of the lock, aligned to 8
 * @low: start of memory of the same rank that has the words of the lock and all pieces
 * @span: size of that memory in bytes
 * @near: acp_query_address() of @low, which may be NULL
 * @fetches: the pieces to fetch, of together up to 256 bytes
 * @n: number of pieces, at most LIBACP_TXLOCK_READS
 *
 * Context: as libacp_txlock_enter().
 * Return: as libacp_txlock_enter().
 */
int libacp_txlock_enter_near(struct libacp_txlock *s, acp_ga_t at, acp_ga_t low, uint64_t span,
			     char *near, struct libacp_fetch *fetches, unsigned int n);

/**
 * libacp_txlock_fetch() - fetch another piece of memory while holding the lock
 * @s: the hold
 * @fetch: the piece, of up to 256 bytes, within the memory named when entering
 *
 * Context: the thread that holds the lock; may block if the lock is remote.
 * Return: 0 or -errno (-EAGAIN: others have taken over the lock); the lock must be released in both
 * cases.
 */
int libacp_txlock_fetch(struct libacp_txlock *s, struct libacp_fetch *fetch);

/**
 * libacp_txlock_store() - stage a store, which is executed when committing or leaving
 * @s: the hold; fewer stores are staged in it than LIBACP_TXLOCK_STORES, and than the lock has room
 *	for (LIBACP_TXLOCK_BYTES())
 * @ga: global address of 8 aligned bytes of any rank
 * @value: value to store
 *
 * Context: the thread that holds the lock; does not block.
 */
static inline void libacp_txlock_store(struct libacp_txlock *s, acp_ga_t ga, uint64_t value)
{
	s->stores[s->count++] = (struct libacp_store){ ga, value };
}

/**
 * libacp_txlock_leave() - execute the staged stores, and release the lock
 * @s: the hold, which has ended when the function returns
 *
 * Context: the thread that holds the lock; may block if the lock or a store is remote.
 * Return: 0; -EAGAIN: nothing was stored because it took too long, enter again; or another negative
 * errno: all or none of the stores are executed, now or later by the rank that takes over the lock.
 */
int libacp_txlock_leave(struct libacp_txlock *s);

/**
 * libacp_txlock_commit() - execute the staged stores, and keep the lock
 * @s: the hold, which has ended if the function fails
 *
 * Context: the thread that holds the lock; may block if the lock or a store is remote.
 * Return: 0, or a negative errno if the lock was released; -EAGAIN: enter again and check whether
 * the stores were executed.
 */
int libacp_txlock_commit(struct libacp_txlock *s);

/**
 * libacp_txlock_drop() - release the lock, if it is held, without further stores
 * @s: the hold, or one that has ended
 *
 * Context: the thread that holds the lock; may block if the lock is remote.
 */
void libacp_txlock_drop(struct libacp_txlock *s);

#pragma GCC visibility pop

#endif /* LIBACP_TXLOCK_H */
