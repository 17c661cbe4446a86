/* SPDX-License-Identifier: MIT */
/*
 * Hash tables over the heaps of several ranks: what sets, multisets and maps
 * share.
 *
 *	table.c			whole tables
 *	table_key.c		what is done with one key
 *	table_desk.c		what a call works with
 *	table_slot.c		one slot: its lock, its chain
 *	table_scan.c		walks from slot to slot
 *	table_iterator.c	... and from element to element
 *	table_transfer.c	from table to table
 *	set.c multiset.c map.c	the public names
 *
 * In memory (64-bit words; directory, slots and elements as in ACP 3.0.0):
 *
 *	directory	GA of the slots of each member
 *	slots		0, GA of the first element, of the last, their number, each; behind the
 *			last one the stripes
 *	stripe		a section (section.h), which is the lock of several slots; removal count
 *	element		next, previous, (count | 8 + key + value bytes,) key bytes; key; value
 *			before it: the mark of its slot; at least LIBACP_TABLE_PEEK bytes in all
 *
 * How ranks get along with each other, and with those that die:
 *
 * - Changes are made in the section, so they are made whole or not at all.
 *   What the dead had allocated and not yet linked, or unlinked and not yet
 *   freed, is lost until its heap ends.
 * - New elements go to the front, complete before the store that links them.
 *   Who unlinks one raises the removal count before its memory is freed.  So
 *   who looks for a key needs no lock: it reads the count, walks, reads the
 *   count again with every element, and begins again if it has changed.
 * - The mark is gone when an element is freed; by it an iterator sees that
 *   its element is there no more.
 *
 * All functions return 0 (or what they say) or -errno, and leave errno alone.
 */
#ifndef LIBACP_TABLE_H
#define LIBACP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acp.h"
#include "section.h"

#pragma GCC visibility push(hidden)

enum libacp_table_kind { LIBACP_SET, LIBACP_MULTISET, LIBACP_MAP };

struct libacp_table {
	acp_ga_t ga;
	uint64_t members, slots;	/* slots: of each member */
	enum libacp_table_kind kind;
};

#define LIBACP_TABLE_PEEK	64u	/* bytes of an element read at once, with its mark */
#define LIBACP_TABLE_MOST	((uint64_t)1 << 45)	/* bytes of a key or a value */

/* Words of an element, mark included. */
enum { LIBACP_MARK, LIBACP_NEXT, LIBACP_PREVIOUS, LIBACP_EXTRA };

/* Where the number of key bytes is, and the key. */
static inline unsigned int libacp_table_size_word(const struct libacp_table *t)
{
	return t->kind == LIBACP_SET ? 3 : 4;
}

static inline uint64_t libacp_table_key_at(const struct libacp_table *t)
{
	return 8 * (libacp_table_size_word(t) + 1);
}

/* ---- table_desk.c ---- */

/* Can it be a table at all? */
bool libacp_table_possible(const struct libacp_table *t);

/* Registered memory of a call. */
struct libacp_desk_memory {
	uint64_t blank[3];		/* zeros */
	uint64_t slots_ga;		/* of the directory */
	uint64_t removals, again;	/* the stripe's removal count: at first, and later */
	uint64_t lock, first, last, number;	/* of the slot, as there */
	uint64_t out[4];		/* words to be stored */
	uint64_t peek[LIBACP_TABLE_PEEK / 8];	/* the first of an element */
	uint64_t image[];		/* the element at hand; then room to compare */
};

#define LIBACP_DESK_MOST	4u

struct libacp_desk_copy {
	acp_ga_t dst, src;
	uint64_t size;
	acp_handle_t handle;
	bool aside;
};

struct libacp_desk {
	const struct libacp_table *table;
	struct libacp_desk_memory *m;
	acp_ga_t ga;			/* of *m */
	uint64_t key_size, value_size;
	uint64_t staged;		/* bytes of the value that are in the image: all or none */
	const char *value;		/* where the others are: in this process, or ... */
	acp_ga_t value_ga;		/* ... if that is NULL, there */
	uint64_t image_size;		/* bytes up to the end of what is staged */
	uint64_t room;			/* ... and of memory for it; another key fits behind */
	struct libacp_desk_copy chain[LIBACP_DESK_MOST];	/* copies, one behind the other */
	unsigned int count;
	bool quiet;			/* what was said before */
	int saved_errno;
};

/*
 * Begin a call on a table with an element of that size at hand, and end it.
 * -EINVAL for a table that cannot be one.
 */
int libacp_desk_open(struct libacp_desk *d, const struct libacp_table *table, uint64_t key_size,
		     uint64_t value_size);
void libacp_desk_close(struct libacp_desk *d);

/* Copy the key, and a value that is not long, into the image. */
int libacp_desk_load(struct libacp_desk *d, acp_element_t key, acp_element_t value);

/* The same with what lies in this process. */
void libacp_desk_fill(struct libacp_desk *d, const void *key, const void *value, uint64_t count);

/* Bytes of the element, mark and all. */
uint64_t libacp_desk_bytes(const struct libacp_desk *d);

/* Write a value that is too long for the image to an element at elem. */
int libacp_desk_write_value(const struct libacp_desk *d, acp_ga_t elem);

/* The GA of a member of *m. */
#define LIBACP_DESK_GA(d, member)	((d)->ga + offsetof(struct libacp_desk_memory, member))

char *libacp_desk_key(const struct libacp_desk *d);

/*
 * A chain of at most LIBACP_DESK_MOST copies: each goes behind those before
 * it and has no effect if one of them failed.  libacp_desk_wait() does them, and
 * waits; perhaps more than once.
 */
void libacp_desk_copy(struct libacp_desk *d, acp_ga_t dst, acp_ga_t src, uint64_t size);
int libacp_desk_wait(struct libacp_desk *d);

/* One more to wait for, that is no part of the order.  It comes last. */
void libacp_desk_aside(struct libacp_desk *d, acp_ga_t dst, acp_ga_t src, uint64_t size);

/* The same as a chain of one copy, without a desk. */
int libacp_desk_transfer(acp_ga_t dst, acp_ga_t src, uint64_t size);

/* ---- table_slot.c ---- */

#define LIBACP_SLOT_STORES	6u	/* most words that a change stores */

struct libacp_slot {
	acp_ga_t ga, stripe;
	int rank;
	uint64_t member, number, mark;
	acp_ga_t guess;			/* where the member's slots may be; or not a guess */
	bool locked;
	struct libacp_section section;
};

/* What a look without lock came upon. */
struct libacp_seen {
	acp_ga_t first, elem;		/* elem: ACP_GA_NULL if the key is not there */
	uint64_t removals;
};

/* Mark of the elements of a slot. */
uint64_t libacp_slot_mark(const struct libacp_table *t, uint64_t member, uint64_t number);

/* Bytes of the slots of a member, removal counts included. */
uint64_t libacp_slot_bytes(const struct libacp_table *t);

/* Find out where a slot is; or guess, which the first look at it will find out. */
int libacp_slot_open(struct libacp_desk *d, struct libacp_slot *s, uint64_t member,
		     uint64_t number);
int libacp_slot_guess(struct libacp_desk *d, struct libacp_slot *s, uint64_t member,
		      uint64_t number);

/* The same, where the slots of the member are known to be. */
void libacp_slot_at(const struct libacp_desk *d, struct libacp_slot *s, acp_ga_t slots,
		    uint64_t member, uint64_t number);

/* Look for the image's key.  If it is there, its first bytes are in d->m->peek. */
int libacp_slot_look(struct libacp_desk *d, struct libacp_slot *s, struct libacp_seen *seen);

/*
 * Lock it, and read its words.  What a look saw is looked for again as far
 * as need be: seen->elem, with d->m->peek, is how it is now.
 */
int libacp_slot_lock(struct libacp_desk *d, struct libacp_slot *s, struct libacp_seen *seen);

/* Lock it, and read its words, without looking for anything. */
int libacp_slot_take(struct libacp_desk *d, struct libacp_slot *s);

/*
 * To read a chain, without lock or with it: the slot's words; then element by
 * element, d->m->peek; and at the end.  -EAGAIN: something was removed meanwhile, or the
 * lock was taken away, begin again.  With it, steps go on for longer than a lease.  No chain is
 * a ring, but programs can write everywhere, and a walk must end: steps, zero at first,
 * find that out.
 */
struct libacp_steps {
	acp_ga_t mark;
	uint64_t count, next;
};

int libacp_slot_read(struct libacp_desk *d, struct libacp_slot *s);
int libacp_slot_step(struct libacp_desk *d, struct libacp_slot *s, acp_ga_t elem,
		     struct libacp_steps *steps);
int libacp_slot_unchanged(struct libacp_desk *d, struct libacp_slot *s);

/*
 * With the lock held; all of them release it, whatever they return.  -EAGAIN: the
 * lock was held too long and nothing has changed, begin again with the look.
 *	unlock	no change
 *	link	put in the element at elem (its mark is at elem - 8), which is complete
 *	unlink	take out the element whose first bytes are in d->m->peek
 *	count	change the count of an element
 *	replace	first element, last, number of another chain
 */
void libacp_slot_unlock(struct libacp_slot *s);
int libacp_slot_link(struct libacp_desk *d, struct libacp_slot *s, acp_ga_t elem);
int libacp_slot_unlink(struct libacp_desk *d, struct libacp_slot *s, acp_ga_t elem);
int libacp_slot_count(struct libacp_slot *s, acp_ga_t elem, uint64_t count);
int libacp_slot_replace(struct libacp_desk *d, struct libacp_slot *s, const uint64_t chain[3]);

/*
 * Without the lock: begin to write the image to where it will be linked, if
 * nothing comes in between; to be waited for.  With it, before linking: make sure
 * that it is there (written, so far as is known) and leads to what is the first
 * element by now; releases the lock if that fails.
 */
int libacp_slot_complete(struct libacp_desk *d, struct libacp_slot *s, acp_ga_t elem,
			 bool written);
acp_handle_t libacp_slot_prepare(struct libacp_desk *d, const struct libacp_slot *s,
				 const struct libacp_seen *seen, acp_ga_t elem);

/*
 * Read the first bytes of an element into d->m->peek.  -ESTALE if it is not
 * (any more) one of that slot.
 */
int libacp_slot_peek(struct libacp_desk *d, const struct libacp_slot *s, acp_ga_t elem);

/* ---- table.c ---- */

/*
 * Is it to be tried again, after -EAGAIN?  Not for ever: *since, zero at first, is
 * when it was tried first.  What is to be told if not: -ETIMEDOUT, or the error.
 */
bool libacp_table_again(uint64_t *since, int error);
int libacp_table_told(int error);

/* acp_malloc() that says why not. */
int libacp_table_allocate(uint64_t size, int rank, acp_ga_t *ga);

struct libacp_table libacp_table_create(enum libacp_table_kind kind, int members,
					const int *ranks, int slots, int rank);
int libacp_table_destroy(const struct libacp_table *t);

/* An empty one on the ranks that another one is on, with as many slots. */
int libacp_table_create_like(const struct libacp_table *t, struct libacp_table *new);

/* Free the elements of a chain that nobody else can reach. */
int libacp_table_free_chain(struct libacp_desk *d, const struct libacp_slot *s, acp_ga_t elem);

/* Number of keys, of members on that rank or (-1) all. */
int libacp_table_size(const struct libacp_table *t, int rank, uint64_t *size);
int libacp_table_empty(const struct libacp_table *t, int rank, bool *empty);
int libacp_table_clear(const struct libacp_table *t, int rank);

/* ---- table_scan.c ---- */

#define LIBACP_SCAN_SLOTS	256u	/* read at once, at most */
#define LIBACP_SCAN_MEMBERS	64u

struct libacp_scan_memory {
	uint64_t directory[LIBACP_SCAN_MEMBERS];
	uint64_t slots[LIBACP_SCAN_SLOTS][4];
};

/* A walk over the slots that hold something. */
struct libacp_scan {
	const struct libacp_table *table;
	int rank;			/* of the members; -1: all */
	uint64_t member, number;	/* the next slot to look at */
	uint64_t slots_member, slots_from, slots_count;	/* what was read */
	uint64_t directory_from, directory_count;
	uint64_t batch;			/* slots to read next time */
	int error;			/* of a member that was left out */
	bool quiet;			/* what was said before */
	int saved_errno;
	struct libacp_scan_memory *m;
	acp_ga_t ga;
};

/* A slot with something in it, as it was read. */
struct libacp_found_slot {
	uint64_t member, number;
	acp_ga_t slots;			/* of the member */
	const uint64_t *words;		/* 0, first, last, number; until the next call */
};

/* Begin with a slot: 0 or -errno.  The end tells why members were left out, if any. */
int libacp_scan_open(struct libacp_scan *scan, const struct libacp_table *t, int rank,
		     uint64_t member, uint64_t number);
int libacp_scan_close(struct libacp_scan *scan);

/* The next one; false at the end.  Members that are out of reach are left out. */
bool libacp_scan_next(struct libacp_scan *scan, struct libacp_found_slot *found);

/* ---- table_iterator.c ---- */

/*
 * As the public ones.  An iterator over the members on one rank has -1 - number for the
 * slot, so that who goes on with it knows.  Members that are out of reach are left out.
 */
struct libacp_table_it {
	struct libacp_table table;
	int rank, slot;			/* member; number of the slot, or -1 - number */
	acp_ga_t elem;
};

struct libacp_table_it libacp_table_end(const struct libacp_table *t);

/* *it is the end if there is nothing (more), and when -errno is returned. */
int libacp_table_begin(const struct libacp_table *t, int rank, struct libacp_table_it *it);
int libacp_table_next(struct libacp_table_it *it);

/* The element of an iterator: key and value, or count; -ESTALE if it is there no more. */
struct libacp_table_content {
	acp_pair_t pair;
	uint64_t count;
};

int libacp_table_content(const struct libacp_table_it *it, struct libacp_table_content *content);

/* ---- table_key.c ---- */

/*
 * What the image says.  insert: 1 if the key is new, 0 if not (a multiset then
 * counts).  remove: so many copies, of a multiset.
 */
int libacp_table_insert(struct libacp_desk *d);
int libacp_table_remove(struct libacp_desk *d, uint64_t count);

/* Look for a key: d->m->peek holds the element at seen->elem, if that is not ACP_GA_NULL. */
int libacp_table_look(struct libacp_desk *d, struct libacp_slot *s, struct libacp_seen *seen);

/* The same as calls; an empty key is -EINVAL.  What is not there has count or size 0. */
int libacp_table_put(const struct libacp_table *t, acp_element_t key, acp_element_t value);
int libacp_table_delete(const struct libacp_table *t, acp_element_t key, uint64_t count);
int libacp_table_find(const struct libacp_table *t, acp_element_t key, struct libacp_table_it *it);
int libacp_table_count(const struct libacp_table *t, acp_element_t key, uint64_t *count);

/* The value, or its first bytes, to where it is wanted: *size are copied. */
int libacp_table_value(const struct libacp_table *t, acp_element_t key, acp_element_t to,
		       uint64_t *size);

/* ---- table_transfer.c ---- */

/* from: those of its members that are on that rank, or (-1) all. */
int libacp_table_merge(const struct libacp_table *to, const struct libacp_table *from, int rank);
int libacp_table_move(const struct libacp_table *to, const struct libacp_table *from, int rank);
int libacp_table_assign(const struct libacp_table *to, const struct libacp_table *from, int rank);
int libacp_table_swap(const struct libacp_table *a, const struct libacp_table *b);

#pragma GCC visibility pop

#endif /* LIBACP_TABLE_H */
