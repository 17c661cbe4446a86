// SPDX-License-Identifier: MIT
/*
 * Operations on two tables: merge, move, assign, swap.
 *
 * Slots are copied into this process one at a time, and their elements are inserted one by one. As
 * no more than one lock is held at a time, tables cannot deadlock, and both tables may be the same.
 * Assign and swap make complete copies before they change anything.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/internal.h"
#include "middle/scratch.h"
#include "containers/table.h"

#define READS	8	/* attempts without lock */
#define PIECE	((uint64_t)65536 - 4096)	/* bytes of a long element to read at a time */

/* Copies of the elements of a slot, including marks, each padded to a multiple of 8 bytes. */
struct copies {
	char *bytes;
	uint64_t used, room;
};

/* ---- Reading a slot ---- */

static uint64_t size_of(const struct libacp_table *t, const uint64_t *element)
{
	uint64_t key = element[libacp_table_size_word(t)];
	uint64_t both = t->kind == LIBACP_MAP ? element[LIBACP_EXTRA] - 8 : key;

	if (key > LIBACP_TABLE_MAX || both < key || both - key > LIBACP_TABLE_MAX)
		return 0;
	return libacp_table_key_at(t) + both;
}

static char *room_for(struct copies *c, uint64_t size)
{
	uint64_t need = c->used + ((size + 7) & ~(uint64_t)7);
	char *bytes;

	if (need > c->room) {
		bytes = realloc(c->bytes, 2 * need);
		if (!bytes)
			return NULL;
		c->bytes = bytes;
		c->room = 2 * need;
	}
	bytes = c->bytes + c->used;
	c->used = need;
	return bytes;
}

/* Read the rest of a long element. Reads in pieces, because registered memory is scarce. */
static int fetch_rest(acp_ga_t from, uint64_t size, char *to)
{
	uint64_t piece = size < PIECE ? size : PIECE, at;
	acp_ga_t ga;
	void *block = libacp_scratch_get(piece, &ga);
	int error = 0;

	if (!block)
		return -ENOMEM;
	for (at = 0; at < size && !error; at += piece) {
		piece = size - at < piece ? size - at : piece;
		error = libacp_staging_transfer(ga, from + at, piece);
		if (!error)
			memcpy(to + at, block, piece);
	}
	libacp_scratch_put(block);
	return error;
}

/* Copy the element whose first bytes are in d->m->peek. */
static int copy_element(struct libacp_staging *d, acp_ga_t elem, struct copies *c)
{
	uint64_t size = size_of(d->table, d->m->peek), peek = LIBACP_TABLE_PEEK;
	char *to = size ? room_for(c, size) : NULL;

	if (!to)
		return size ? -ENOMEM : -EUCLEAN;
	memcpy(to, d->m->peek, size < peek ? size : peek);
	return size > peek ? fetch_rest(elem - 8 + peek, size - peek, to + peek) : 0;
}

/* Copy a chain. -EAGAIN if it changed meanwhile. */
static int copy_chain(struct libacp_staging *d, struct libacp_slot *s, struct copies *c)
{
	struct libacp_steps steps = { 0 };
	acp_ga_t elem;
	int error = 0;

	c->used = 0;
	for (elem = d->m->first; elem != ACP_GA_NULL && !error; elem = d->m->peek[LIBACP_NEXT]) {
		error = libacp_slot_step(d, s, elem, &steps);
		if (!error)
			error = copy_element(d, elem, c);
	}
	return error ? error : libacp_slot_unchanged(d, s);
}

static int copy_locked(struct libacp_staging *d, struct libacp_slot *s, struct copies *c)
{
	int error = libacp_slot_take(d, s);

	if (error)
		return error;
	error = copy_chain(d, s, c);
	libacp_slot_unlock(s);
	return error;
}

static int copy_slot(struct libacp_staging *d, struct libacp_slot *s, struct copies *c)
{
	uint64_t since = 0;
	int error, reads;

	for (reads = 0; reads < READS; reads++) {
		error = libacp_slot_read(d, s);
		if (!error)
			error = copy_chain(d, s, c);
		if (error != -EAGAIN)
			return error;
	}
	do {
		error = copy_locked(d, s, c);
	} while (libacp_table_again(&since, error));
	return libacp_table_told(error);
}

/* ---- Merging and moving ---- */

static int put(const struct libacp_table *to, const uint64_t *element)
{
	const uint64_t key_size = element[libacp_table_size_word(to)];
	const uint64_t size = size_of(to, element), at = libacp_table_key_at(to);
	const char *key = (const char *)element + at;
	struct libacp_staging d;
	int error = libacp_staging_open(&d, to, key_size, size - at - key_size);

	if (error)
		return error;
	libacp_staging_fill(&d, key, key + key_size, element[LIBACP_EXTRA]);
	error = libacp_table_insert(&d);
	libacp_staging_close(&d);
	return error;
}

static int take_away(const struct libacp_table *from, const uint64_t *element)
{
	const uint64_t key_size = element[libacp_table_size_word(from)];
	struct libacp_staging d;
	int error = libacp_staging_open(&d, from, key_size, 0);

	if (error)
		return error;
	libacp_staging_fill(&d, (const char *)element + libacp_table_key_at(from), NULL, 1);
	error = libacp_table_remove(&d, element[LIBACP_EXTRA]);
	libacp_staging_close(&d);
	return error;
}

static int transfer_copies(const struct libacp_table *to, const struct libacp_table *from,
			   const struct copies *c, bool move)
{
	const char *at;
	int error;

	for (at = c->bytes; at != c->bytes + c->used;) {
		const uint64_t *element = (const uint64_t *)(const void *)at;

		error = put(to, element);
		if (error >= 0 && move)
			error = take_away(from, element);
		if (error < 0)
			return error;
		at += (size_of(from, element) + 7) & ~(uint64_t)7;
	}
	return 0;
}

static int transfer(const struct libacp_table *to, const struct libacp_table *from, int rank,
		    bool move)
{
	struct copies c = { NULL, 0, 0 };
	struct libacp_found_slot found;
	struct libacp_scan scan;
	struct libacp_staging d;
	struct libacp_slot s;
	int error = libacp_staging_open(&d, from, 0, 0), left_out;

	if (error)
		return error;
	error = libacp_scan_open(&scan, from, rank, 0, 0);
	if (error)
		goto close;
	while (!error && libacp_scan_next(&scan, &found)) {
		libacp_slot_at(&d, &s, found.slots, found.member, found.number);
		error = copy_slot(&d, &s, &c);
		if (!error)
			error = transfer_copies(to, from, &c, move);
	}
	free(c.bytes);
	left_out = libacp_scan_close(&scan);
	error = error ? error : left_out;
close:
	libacp_staging_close(&d);
	return error;
}

int libacp_table_merge(const struct libacp_table *to, const struct libacp_table *from, int rank)
{
	return transfer(to, from, rank, false);
}

int libacp_table_move(const struct libacp_table *to, const struct libacp_table *from, int rank)
{
	if (to->ga == from->ga)
		return 0;
	return transfer(to, from, rank, true);
}

/* ---- Assign and swap ---- */

/* Create a table with the structure of another one, and copy some members of @from into it. */
static int copy_table(const struct libacp_table *shape, const struct libacp_table *from, int rank,
		      struct libacp_table *copy)
{
	int error = libacp_table_create_like(shape, copy);

	if (error)
		return error;
	error = transfer(copy, from, rank, false);
	if (error)
		libacp_table_destroy(copy);
	return error;
}

/*
 * Move the chain of a slot, which no other rank knows, to the same slot of d->table if that is
 * empty.
 */
static int install_slot(struct libacp_staging *d, const struct libacp_found_slot *found)
{
	struct libacp_slot to, s;
	int error = libacp_slot_open(d, &to, found->member, found->number);

	if (error)
		return error;
	error = libacp_slot_take(d, &to);
	if (error)
		return error;
	if (d->m->first != ACP_GA_NULL) {
		libacp_slot_unlock(&to);
		return 0;
	}
	error = libacp_slot_replace(d, &to, found->words + 1);
	if (error)
		return error;
	libacp_slot_at(d, &s, found->slots, found->member, found->number);
	libacp_staging_copy(d, s.ga + 8, LIBACP_STAGING_GA(d, blank), 24);
	return libacp_staging_wait(d);
}

static int install(const struct libacp_table *to, const struct libacp_table *from)
{
	struct libacp_found_slot found;
	struct libacp_scan scan;
	struct libacp_staging d;
	uint64_t since;
	int error = libacp_staging_open(&d, to, 0, 0);

	if (error)
		return error;
	error = libacp_scan_open(&scan, from, -1, 0, 0);
	if (error)
		goto close;
	while (libacp_scan_next(&scan, &found)) {
		since = 0;
		do {
			error = install_slot(&d, &found);
		} while (libacp_table_again(&since, error));
		if (error)
			scan.error = libacp_table_told(error);
	}
	error = libacp_scan_close(&scan);
close:
	libacp_staging_close(&d);
	return error;
}

/*
 * Replace the contents by those of a copy, which is destroyed. Elements that others inserted
 * meanwhile stay, and the rest of the copy is added to them. If it is unknown to which table a
 * chain belongs, because members were lost, the copy is not freed, and its memory leaks.
 */
static int replace(const struct libacp_table *t, const struct libacp_table *copy)
{
	int error = libacp_table_clear(t, -1), e;

	e = install(t, copy);
	if (e)
		return e;
	e = transfer(t, copy, -1, false);
	libacp_table_destroy(copy);
	return error ? error : e;
}

int libacp_table_assign(const struct libacp_table *to, const struct libacp_table *from, int rank)
{
	struct libacp_table copy;
	int error = 0;

	if (to->ga == from->ga && rank < 0)
		return 0;
	error = copy_table(to, from, rank, &copy);
	return error ? error : replace(to, &copy);
}

int libacp_table_swap(const struct libacp_table *a, const struct libacp_table *b)
{
	struct libacp_table of_a, of_b;
	int error, e;

	if (a->ga == b->ga)
		return 0;
	error = copy_table(b, a, -1, &of_a);
	if (error)
		return error;
	error = copy_table(a, b, -1, &of_b);
	if (error) {
		libacp_table_destroy(&of_a);
		return error;
	}
	error = replace(a, &of_b);
	e = replace(b, &of_a);
	return error ? error : e;
}
