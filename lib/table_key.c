// SPDX-License-Identifier: MIT
/* What is done with one key of a table: look, insert, remove, retrieve. */
#include <errno.h>

#include "hash.h"
#include "middle.h"
#include "table.h"

#define READS	8	/* of a long value without lock, before who reads takes it */

/* Which slot the image's key belongs to. */
static int open_slot(struct libacp_desk *d, struct libacp_slot *s)
{
	const struct libacp_table *t = d->table;
	uint64_t hash = libacp_hash(LIBACP_HASH_KEY, libacp_desk_key(d), d->key_size);

	return libacp_slot_guess(d, s, hash / t->slots % t->members, hash % t->slots);
}

int libacp_table_look(struct libacp_desk *d, struct libacp_slot *s, struct libacp_seen *seen)
{
	int error = open_slot(d, s);

	return error ? error : libacp_slot_look(d, s, seen);
}

/* The key is there, and its slot locked.  No count comes back to 0 from above. */
static int count_it(struct libacp_desk *d, struct libacp_slot *s, acp_ga_t elem)
{
	const uint64_t more = d->m->image[LIBACP_EXTRA], count = d->m->peek[LIBACP_EXTRA] + more;

	if (d->table->kind == LIBACP_MULTISET)
		return libacp_slot_count(s, elem, count < more ? UINT64_MAX : count);
	libacp_slot_unlock(s);
	return 0;
}

/*
 * With memory in *block for a key that was not there, or ACP_GA_NULL for one that
 * was.  1: it is linked, 0: the key was there, -EAGAIN: it is there no more, or as
 * ever.  *block is ACP_GA_NULL afterwards if it is in the table, or may be.
 */
static int insert_locked(struct libacp_desk *d, struct libacp_slot *s, struct libacp_seen *seen,
			 acp_ga_t *block)
{
	const acp_ga_t elem = *block + 8;
	acp_handle_t image = ACP_HANDLE_NULL;
	int error, written = 0;

	if (*block != ACP_GA_NULL)
		image = libacp_slot_prepare(d, s, seen, elem);
	error = libacp_slot_lock(d, s, seen);
	if (*block != ACP_GA_NULL)
		written = libacp_finish(image);
	if (error)
		return error;
	if (seen->elem != ACP_GA_NULL)
		return count_it(d, s, seen->elem);
	if (*block == ACP_GA_NULL) {
		libacp_slot_unlock(s);
		return -EAGAIN;
	}
	error = libacp_slot_complete(d, s, elem, !written);
	if (error)
		return error;
	error = libacp_slot_link(d, s, elem);
	if (error != -EAGAIN)
		*block = ACP_GA_NULL;
	return error ? error : 1;
}

/* Memory is got without the lock, so all may be otherwise when that is there. */
static int insert_once(struct libacp_desk *d, acp_ga_t *block)
{
	struct libacp_seen seen;
	struct libacp_slot s;
	int error = libacp_table_look(d, &s, &seen);

	if (error || (seen.elem != ACP_GA_NULL && d->table->kind != LIBACP_MULTISET))
		return error;
	if (seen.elem == ACP_GA_NULL && *block == ACP_GA_NULL) {
		error = libacp_table_allocate(libacp_desk_bytes(d), s.rank, block);
		if (!error)
			error = libacp_desk_write_value(d, *block + 8);
		if (error)
			return error;
	}
	return insert_locked(d, &s, &seen, block);
}

int libacp_table_insert(struct libacp_desk *d)
{
	acp_ga_t block = ACP_GA_NULL;
	uint64_t since = 0;
	int result;

	do {
		result = insert_once(d, &block);
	} while (libacp_table_again(&since, result));
	if (block != ACP_GA_NULL)
		acp_free(block);
	return libacp_table_told(result);
}

static int remove_once(struct libacp_desk *d, uint64_t count)
{
	struct libacp_seen seen;
	struct libacp_slot s;
	int error = libacp_table_look(d, &s, &seen);

	if (error || seen.elem == ACP_GA_NULL)
		return error;
	error = libacp_slot_lock(d, &s, &seen);
	if (error)
		return error;
	if (seen.elem == ACP_GA_NULL) {
		libacp_slot_unlock(&s);
		return 0;
	}
	if (d->table->kind == LIBACP_MULTISET && d->m->peek[LIBACP_EXTRA] > count)
		return libacp_slot_count(&s, seen.elem, d->m->peek[LIBACP_EXTRA] - count);
	error = libacp_slot_unlink(d, &s, seen.elem);
	if (!error)
		acp_free(seen.elem - 8);
	return error;
}

int libacp_table_remove(struct libacp_desk *d, uint64_t count)
{
	uint64_t since = 0;
	int error;

	do {
		error = remove_once(d, count);
	} while (libacp_table_again(&since, error));
	return libacp_table_told(error);
}

/* ---- Whole calls ---- */

static const acp_element_t none;

/* A desk with a key and a value on it.  0 or -errno; an empty key is nobody's. */
static int open_desk(struct libacp_desk *d, const struct libacp_table *t, acp_element_t key,
		     acp_element_t value)
{
	int error = key.size ? libacp_desk_open(d, t, key.size, value.size) : -EINVAL;

	if (error)
		return error;
	error = libacp_desk_load(d, key, value);
	if (error)
		libacp_desk_close(d);
	return error;
}

int libacp_table_put(const struct libacp_table *t, acp_element_t key, acp_element_t value)
{
	struct libacp_desk d;
	int result = open_desk(&d, t, key, value);

	if (result)
		return result;
	result = libacp_table_insert(&d);
	libacp_desk_close(&d);
	return result;
}

int libacp_table_delete(const struct libacp_table *t, acp_element_t key, uint64_t count)
{
	struct libacp_desk d;
	int error = open_desk(&d, t, key, none);

	if (error)
		return error;
	error = libacp_table_remove(&d, count);
	libacp_desk_close(&d);
	return error;
}

int libacp_table_find(const struct libacp_table *t, acp_element_t key, struct libacp_table_it *it)
{
	struct libacp_seen seen;
	struct libacp_desk d;
	struct libacp_slot s;
	int error = open_desk(&d, t, key, none);

	*it = libacp_table_end(t);
	if (error)
		return error;
	error = libacp_table_look(&d, &s, &seen);
	if (!error && seen.elem != ACP_GA_NULL) {
		it->rank = (int)s.member;
		it->slot = (int)s.number;
		it->elem = seen.elem;
	}
	libacp_desk_close(&d);
	return error;
}

int libacp_table_count(const struct libacp_table *t, acp_element_t key, uint64_t *count)
{
	struct libacp_seen seen;
	struct libacp_desk d;
	struct libacp_slot s;
	int error = open_desk(&d, t, key, none);

	*count = 0;
	if (error)
		return error;
	error = libacp_table_look(&d, &s, &seen);
	if (!error && seen.elem != ACP_GA_NULL)
		*count = d.m->peek[LIBACP_EXTRA];
	libacp_desk_close(&d);
	return error;
}

/* ---- Values ---- */

/* The value of the element in d->m->peek to where it is wanted: its first bytes. */
static int copy_value(struct libacp_desk *d, struct libacp_slot *s, acp_ga_t elem,
		      acp_element_t to, uint64_t *size)
{
	uint64_t at = libacp_table_key_at(d->table) + d->key_size, whole;

	whole = d->m->peek[LIBACP_EXTRA] - 8 - d->key_size;
	if (whole > LIBACP_TABLE_MOST)
		return -EUCLEAN;
	*size = whole < to.size ? whole : to.size;
	if (!*size)
		return 0;
	if (at + *size <= LIBACP_TABLE_PEEK) {
		libacp_desk_copy(d, to.ga, LIBACP_DESK_GA(d, peek) + at, *size);
		return libacp_desk_wait(d);
	}
	libacp_desk_copy(d, to.ga, elem - 8 + at, *size);
	return libacp_slot_unchanged(d, s);
}

static int value_once(struct libacp_desk *d, acp_element_t to, uint64_t *size)
{
	struct libacp_seen seen;
	struct libacp_slot s;
	int error = libacp_table_look(d, &s, &seen);

	if (error || seen.elem == ACP_GA_NULL)
		return error;
	return copy_value(d, &s, seen.elem, to, size);
}

static int value_locked(struct libacp_desk *d, acp_element_t to, uint64_t *size)
{
	struct libacp_seen seen;
	struct libacp_slot s;
	int error = libacp_table_look(d, &s, &seen);

	*size = 0;
	if (!error)
		error = libacp_slot_lock(d, &s, &seen);
	if (error)
		return error;
	if (seen.elem != ACP_GA_NULL)
		error = copy_value(d, &s, seen.elem, to, size);
	libacp_slot_unlock(&s);
	return error;
}

int libacp_table_value(const struct libacp_table *t, acp_element_t key, acp_element_t to,
		       uint64_t *size)
{
	uint64_t since = 0;
	struct libacp_desk d;
	int reads, error = open_desk(&d, t, key, none);

	*size = 0;
	if (error)
		return error;
	for (reads = 0, error = -EAGAIN; reads < READS && error == -EAGAIN; reads++) {
		*size = 0;
		error = value_once(&d, to, size);
	}
	while (libacp_table_again(&since, error))
		error = value_locked(&d, to, size);
	if (error)
		*size = 0;
	libacp_desk_close(&d);
	return libacp_table_told(error);
}
