/* SPDX-License-Identifier: MIT */
/*
 * Hash tables over the heaps of several ranks: the implementation of sets, multisets and maps.
 *
 *	table.c			whole tables
 *	table_key.c		operations on one key
 *	table_staging.c		staging memory of a call
 *	table_slot.c		one slot: its lock, its chain
 *	table_scan.c		iteration over slots
 *	table_iterator.c	iteration over elements
 *	table_transfer.c	from table to table
 *	set.c multiset.c map.c	the public functions; table_public.h: those in common
 *
 * Layout in memory (64-bit words; directory, slots and elements as in ACP 3.0.0):
 *
 *	directory	GA of the slots of each member
 *	slots		each: 0, GA of the first element, GA of the last, their number;
 *			followed by the stripes
 *	stripe		a journaled lock (txlock.h) of several slots; removal count
 *	element		next, previous, (count | 8 + key + value bytes,) key bytes; key; value;
 *			preceded by the mark of its slot; at least LIBACP_TABLE_PEEK bytes in all
 *
 * Concurrency and failures of ranks:
 *
 * - Changes are made under the lock, so they are made completely or not at all. Memory that a
 *   failed rank had allocated but not linked, or unlinked but not freed, is leaked.
 * - New elements are inserted at the front, and are complete before they are linked. Unlinking an
 *   element increments the removal count before its memory is freed. Therefore a search needs no
 *   lock: it reads the count, walks the chain, reads the count again with every element, and
 *   restarts if the count has changed.
 * - The mark is cleared when an element is freed. It tells an iterator that its element is gone.
 *
 * All functions return -errno on failure, and otherwise 0 unless stated otherwise. They preserve
 * errno. Different threads may use the same table.
 */
#ifndef LIBACP_TABLE_H
#define LIBACP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acp.h"
#include "middle/txlock.h"

#pragma GCC visibility push(hidden)

enum libacp_table_kind { LIBACP_SET, LIBACP_MULTISET, LIBACP_MAP };

struct libacp_table {
	acp_ga_t ga;
	uint64_t members, slots;	/* slots: per member */
	enum libacp_table_kind kind;
};

#define LIBACP_TABLE_PEEK	64u	/* bytes of an element to read at once, with its mark */
#define LIBACP_TABLE_MAX	((uint64_t)1 << 45)	/* maximum size of a key or a value */

/* Indices of the words of an element, including the mark. */
enum { LIBACP_MARK, LIBACP_NEXT, LIBACP_PREVIOUS, LIBACP_EXTRA };

/* Return the index of the word with the size of the key, and the offset of the key. */
static inline unsigned int libacp_table_size_word(const struct libacp_table *t)
{
	return t->kind == LIBACP_SET ? 3 : 4;
}

static inline uint64_t libacp_table_key_at(const struct libacp_table *t)
{
	return 8 * (libacp_table_size_word(t) + 1);
}

/* ---- table_staging.c ---- */

/* True if @t may be a table. */
bool libacp_table_possible(const struct libacp_table *t);

/* Registered memory of a call. */
struct libacp_staging_memory {
	uint64_t blank[3];		/* zeros */
	uint64_t slots_ga;		/* entry of the directory */
	uint64_t removals, again;	/* removal count of the stripe: first, and read again */
	uint64_t lock, first, last, number;	/* words of the slot */
	uint64_t out[4];		/* words to store */
	uint64_t peek[LIBACP_TABLE_PEEK / 8];	/* first words of an element */
	/* the element to insert; followed by memory for comparisons */
	uint64_t image[];
};

#define LIBACP_STAGING_MAX	4u

struct libacp_staging_copy {
	acp_ga_t dst, src;
	uint64_t size;
	acp_handle_t handle;
	bool aside;
};

struct libacp_staging {
	const struct libacp_table *table;
	struct libacp_staging_memory *m;
	acp_ga_t ga;			/* of *m */
	uint64_t key_size, value_size;
	uint64_t staged;		/* bytes of the value that are in the image: all or none */
	/* otherwise the address of the value in this process, or ... */
	const char *value;
	acp_ga_t value_ga;		/* ... if that is NULL, its global address */
	uint64_t image_size;		/* bytes up to the end of the staged value */
	/* ... and of the memory for it; another key fits behind it */
	uint64_t room;
	/* copies, each ordered after the previous one */
	struct libacp_staging_copy chain[LIBACP_STAGING_MAX];
	unsigned int count;
	bool quiet;			/* previous setting */
	int saved_errno;
};

/*
 * Begin a call on a table with an element of the given sizes, and end it. Returns -EINVAL if @table
 * is invalid.
 */
int libacp_staging_open(struct libacp_staging *d, const struct libacp_table *table,
			uint64_t key_size, uint64_t value_size);
void libacp_staging_close(struct libacp_staging *d);

/* Copy the key, and a short value, into the image. */
int libacp_staging_load(struct libacp_staging *d, acp_element_t key, acp_element_t value);

/* As libacp_staging_load(), from memory of this process. */
void libacp_staging_fill(struct libacp_staging *d, const void *key, const void *value,
			 uint64_t count);

/* Return the size of the element in bytes, including its mark. */
uint64_t libacp_staging_bytes(const struct libacp_staging *d);

/* Write a value that is too long for the image to the element at @elem. */
int libacp_staging_write_value(const struct libacp_staging *d, acp_ga_t elem);

/* Return the global address of a member of *m. */
#define LIBACP_STAGING_GA(d, member)	((d)->ga + offsetof(struct libacp_staging_memory, member))

/* Return the key in the image. */
char *libacp_staging_key(const struct libacp_staging *d);

/*
 * Add a copy to the chain of at most LIBACP_STAGING_MAX copies. Each is ordered after the previous
 * ones, and has no effect if one of them failed. libacp_staging_wait() issues the chain, perhaps
 * repeatedly, and waits.
 */
void libacp_staging_copy(struct libacp_staging *d, acp_ga_t dst, acp_ga_t src, uint64_t size);
int libacp_staging_wait(struct libacp_staging *d);

/* Add a last copy to the wait, without order. */
void libacp_staging_aside(struct libacp_staging *d, acp_ga_t dst, acp_ga_t src, uint64_t size);

/* Execute a single copy, without staging memory. */
int libacp_staging_transfer(acp_ga_t dst, acp_ga_t src, uint64_t size);

/*
 * True if an operation should be repeated after -EAGAIN, which is limited in time: *since,
 * initially zero, is the time of the first attempt. libacp_table_told() returns the final error:
 * -ETIMEDOUT instead of -EAGAIN.
 */
bool libacp_table_again(uint64_t *since, int error);
int libacp_table_told(int error);

/* ---- table_slot.c ---- */

#define LIBACP_SLOT_STORES	6u	/* maximum number of words that a change stores */

struct libacp_slot {
	acp_ga_t ga, stripe;
	int rank;
	uint64_t member, number, mark;
	/* presumed address of the slots of the member; ACP_GA_NULL: known */
	acp_ga_t guess;
	bool locked;
	struct libacp_txlock txlock;
};

/* Result of a search without lock. */
struct libacp_seen {
	acp_ga_t first, elem;		/* elem: ACP_GA_NULL if the key was not found */
	uint64_t removals;
};

/* Return the mark of the elements of a slot. */
uint64_t libacp_slot_mark(const struct libacp_table *t, uint64_t member, uint64_t number);

/* Return the size of the slots of a member in bytes, including the stripes. */
uint64_t libacp_slot_bytes(const struct libacp_table *t);

/* Determine the address of a slot; or use a presumed one, which the first read verifies. */
int libacp_slot_open(struct libacp_staging *d, struct libacp_slot *s, uint64_t member,
		     uint64_t number);
int libacp_slot_guess(struct libacp_staging *d, struct libacp_slot *s, uint64_t member,
		      uint64_t number);

/* Set the address of a slot, when that of the slots of the member is known. */
void libacp_slot_at(const struct libacp_staging *d, struct libacp_slot *s, acp_ga_t slots,
		    uint64_t member, uint64_t number);

/* Search for the key of the image. If found, the first bytes of the element are in d->m->peek. */
int libacp_slot_look(struct libacp_staging *d, struct libacp_slot *s, struct libacp_seen *seen);

/*
 * Lock the slot and read its words. Repeats the search as far as necessary: seen->elem and
 * d->m->peek are current.
 */
int libacp_slot_lock(struct libacp_staging *d, struct libacp_slot *s, struct libacp_seen *seen);

/* Lock the slot and read its words, without a search. */
int libacp_slot_take(struct libacp_staging *d, struct libacp_slot *s);

/*
 * Read a chain, with or without lock: first the words of the slot; then each element, into
 * d->m->peek; finally check that nothing changed. -EAGAIN: an element was removed meanwhile, or the
 * lock was taken over; restart. With the lock, each step extends the lease if necessary. Chains
 * have no cycles, but programs can write anywhere, and a walk must end: struct libacp_steps,
 * initially zero, detects cycles.
 */
struct libacp_steps {
	acp_ga_t mark;
	uint64_t count, next;
};

int libacp_slot_read(struct libacp_staging *d, struct libacp_slot *s);
int libacp_slot_step(struct libacp_staging *d, struct libacp_slot *s, acp_ga_t elem,
		     struct libacp_steps *steps);
int libacp_slot_unchanged(struct libacp_staging *d, struct libacp_slot *s);

/*
 * Change a slot with the lock held; all of them release it, regardless of their result. -EAGAIN:
 * the lock was held for too long and nothing has changed; restart with the search.
 *	unlock	no change
 *	link	insert the complete element at @elem (its mark is at @elem - 8)
 *	unlink	remove the element whose first bytes are in d->m->peek
 *	count	change the count of an element
 *	replace	set first element, last element and number to those of another chain
 */
void libacp_slot_unlock(struct libacp_slot *s);
int libacp_slot_link(struct libacp_staging *d, struct libacp_slot *s, acp_ga_t elem);
int libacp_slot_unlink(struct libacp_staging *d, struct libacp_slot *s, acp_ga_t elem);
int libacp_slot_count(struct libacp_slot *s, acp_ga_t elem, uint64_t count);
int libacp_slot_replace(struct libacp_staging *d, struct libacp_slot *s, const uint64_t chain[3]);

/*
 * libacp_slot_prepare(), without the lock: start writing the image to its place in the expected
 * order; the caller waits for the handle. libacp_slot_complete(), with the lock and before linking:
 * ensure that the image is there (@written: it is known to be) and refers to the element that is
 * the first one now; releases the lock on failure.
 */
int libacp_slot_complete(struct libacp_staging *d, struct libacp_slot *s, acp_ga_t elem,
			 bool written);
acp_handle_t libacp_slot_prepare(struct libacp_staging *d, const struct libacp_slot *s,
				 const struct libacp_seen *seen, acp_ga_t elem);

/*
 * Read the first bytes of an element into d->m->peek. Returns -ESTALE if it is not, or no longer,
 * an element of that slot.
 */
int libacp_slot_peek(struct libacp_staging *d, const struct libacp_slot *s, acp_ga_t elem);

/* ---- table.c ---- */

/* As acp_malloc(). Returns 0 or -errno. */
int libacp_table_allocate(uint64_t size, int rank, acp_ga_t *ga);

/*
 * Create a table with @slots slots on each of the ranks, and its directory on @rank. On failure,
 * errno is set and ga is ACP_GA_NULL.
 */
struct libacp_table libacp_table_create(enum libacp_table_kind kind, int members,
					const int *ranks, int slots, int rank);

/* Free all elements, the slots and the directory. */
int libacp_table_destroy(const struct libacp_table *t);

/* Create an empty table on the same ranks as another one, with as many slots. */
int libacp_table_create_like(const struct libacp_table *t, struct libacp_table *new);

/* Free the elements of a chain that is not linked any more. */
int libacp_table_free_chain(struct libacp_staging *d, const struct libacp_slot *s, acp_ga_t elem);

/* Count the keys of the members on @rank, or of all members (-1). */
int libacp_table_size(const struct libacp_table *t, int rank, uint64_t *size);

/* True in *empty if the members on @rank, or all members (-1), have no key. */
int libacp_table_empty(const struct libacp_table *t, int rank, bool *empty);

/* Remove all keys of the members on @rank, or of all members (-1). */
int libacp_table_clear(const struct libacp_table *t, int rank);

/* ---- table_scan.c ---- */

#define LIBACP_SCAN_SLOTS	256u	/* maximum number of slots to read at once */
#define LIBACP_SCAN_MEMBERS	64u

struct libacp_scan_memory {
	uint64_t directory[LIBACP_SCAN_MEMBERS];
	uint64_t slots[LIBACP_SCAN_SLOTS][4];
};

/* An iteration over the slots that are not empty. */
struct libacp_scan {
	const struct libacp_table *table;
	int rank;			/* of the members; -1: all */
	uint64_t member, number;	/* the next slot */
	uint64_t slots_member, slots_from, slots_count;	/* slots that have been read */
	uint64_t directory_from, directory_count;
	uint64_t batch;			/* number of slots to read next time */
	int error;			/* of a member that was skipped */
	bool quiet;			/* previous setting */
	int saved_errno;
	struct libacp_scan_memory *m;
	acp_ga_t ga;
};

/* A slot that is not empty, as it was read. */
struct libacp_found_slot {
	uint64_t member, number;
	acp_ga_t slots;			/* of the member */
	const uint64_t *words;		/* 0, first, last, number; valid until the next call */
};

/*
 * Begin an iteration with a slot. libacp_scan_close() returns the error of a skipped member, if
 * any.
 */
int libacp_scan_open(struct libacp_scan *scan, const struct libacp_table *t, int rank,
		     uint64_t member, uint64_t number);
int libacp_scan_close(struct libacp_scan *scan);

/* Get the next slot. False at the end. Members that cannot be reached are skipped. */
bool libacp_scan_next(struct libacp_scan *scan, struct libacp_found_slot *found);

/* ---- table_iterator.c ---- */

/*
 * As the public iterators. An iterator over the members on one rank has slot = -1 - number, so that
 * incrementing it stays on that rank. Members that cannot be reached are skipped.
 */
struct libacp_table_it {
	struct libacp_table table;
	int rank, slot;			/* member; number of the slot, or -1 - number */
	acp_ga_t elem;
};

/* Return the iterator behind the last element. */
struct libacp_table_it libacp_table_end(const struct libacp_table *t);

/* Get the first or the next element. *it is the end if there is none, and on failure. */
int libacp_table_begin(const struct libacp_table *t, int rank, struct libacp_table_it *it);
int libacp_table_next(struct libacp_table_it *it);

/* Content of the element of an iterator: key and value, or count. -ESTALE: it was removed. */
struct libacp_table_content {
	acp_pair_t pair;
	uint64_t count;
};

int libacp_table_content(const struct libacp_table_it *it, struct libacp_table_content *content);

/* ---- table_key.c ---- */

/*
 * Insert or remove the key in the image. insert: returns 1 if the key is new, 0 if not (then a
 * multiset increments its count). remove: @count copies, of a multiset.
 */
int libacp_table_insert(struct libacp_staging *d);
int libacp_table_remove(struct libacp_staging *d, uint64_t count);

/*
 * Search for the key in the image. If seen->elem is not ACP_GA_NULL, d->m->peek holds its first
 * bytes.
 */
int libacp_table_look(struct libacp_staging *d, struct libacp_slot *s, struct libacp_seen *seen);

/* Complete calls. An empty key is -EINVAL. A key that is not found has count or size 0. */
int libacp_table_put(const struct libacp_table *t, acp_element_t key, acp_element_t value);
int libacp_table_delete(const struct libacp_table *t, acp_element_t key, uint64_t count);
int libacp_table_find(const struct libacp_table *t, acp_element_t key, struct libacp_table_it *it);
int libacp_table_count(const struct libacp_table *t, acp_element_t key, uint64_t *count);

/* Copy the value, or its first bytes, to @to. *size: number of bytes copied. */
int libacp_table_value(const struct libacp_table *t, acp_element_t key, acp_element_t to,
		       uint64_t *size);

/* ---- table_transfer.c ---- */

/* Transfer elements of the members of @from that are on @rank, or of all members (-1). */
int libacp_table_merge(const struct libacp_table *to, const struct libacp_table *from, int rank);
int libacp_table_move(const struct libacp_table *to, const struct libacp_table *from, int rank);
int libacp_table_assign(const struct libacp_table *to, const struct libacp_table *from, int rank);
int libacp_table_swap(const struct libacp_table *a, const struct libacp_table *b);

#pragma GCC visibility pop

#endif /* LIBACP_TABLE_H */
