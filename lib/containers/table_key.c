// SPDX-License-Identifier: MIT
/* Operations on one key of a table: search, insert, remove, retrieve. */
#include <errno.h>

#include "middle/hash.h"
#include "core/internal.h"
#include "containers/table.h"

#define READS	8	/* attempts to read a long value without lock */

/* Determine the slot of the key in the image. */
static int open_slot(struct libacp_staging *d, struct libacp_slot *s)
{
	const struct libacp_table *t = d->table;
	uint64_t hash = libacp_hash(LIBACP_HASH_KEY, libacp_staging_key(d), d->key_size);

	return libacp_slot_guess(d, s, hash / t->slots % t->members, hash % t->slots);
}

int libacp_table_look(struct libacp_staging *d, struct libacp_slot *s, struct libacp_seen *seen)
{
	int error = open_slot(d, s);

	return error ? error : libacp_slot_look(d, s, seen);
}

/* The key was found, and its slot is locked. Counts saturate, so that none wraps to 0. */
static int count_it(struct libacp_staging *d, struct libacp_slot *s, acp_ga_t elem)
{
	const uint64_t more = d->m->image[LIBACP_EXTRA], count = d->m->peek[LIBACP_EXTRA] + more;

	if (d->table->kind == LIBACP_MULTISET)
		return libacp_slot_count(s, elem, count < more ? UINT64_MAX : count);
	libacp_slot_unlock(s);
	return 0;
}

/*
 * Insert with memory in *block for a key that was not found, or ACP_GA_NULL for one that was.
 * Returns 1: linked; 0: the key was found; -EAGAIN: the key was removed meanwhile, or restart.
 * *block is ACP_GA_NULL afterwards if it is in the table, or may be.
 */
static int insert_locked(struct libacp_staging *d, struct libacp_slot *s, struct libacp_seen *seen,
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

/* Memory is allocated without the lock, so the slot may have changed afterwards. */
static int insert_once(struct libacp_staging *d, acp_ga_t *block)
{
	struct libacp_seen seen;
	struct libacp_slot s;
	int error = libacp_table_look(d, &s, &seen);

	if (error || (seen.elem != ACP_GA_NULL && d->table->kind != LIBACP_MULTISET))
		return error;
	if (seen.elem == ACP_GA_NULL && *block == ACP_GA_NULL) {
		error = libacp_table_allocate(libacp_staging_bytes(d), s.rank, block);
		if (!error)
			error = libacp_staging_write_value(d, *block + 8);
		if (error)
			return error;
	}
	return insert_locked(d, &s, &seen, block);
}

int libacp_table_insert(struct libacp_staging *d)
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

static int remove_once(struct libacp_staging *d, uint64_t count)
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

int libacp_table_remove(struct libacp_staging *d, uint64_t count)
{
	uint64_t since = 0;
	int error;

	do {
		error = remove_once(d, count);
	} while (libacp_table_again(&since, error));
	return libacp_table_told(error);
}

/* ---- Complete calls ---- */

static const acp_element_t none;

/* Open staging memory with a key and a value. Returns 0 or -errno; an empty key is invalid. */
static int open_staging(struct libacp_staging *d, const struct libacp_table *t, acp_element_t key,
			acp_element_t value)
{
	int error = key.size ? libacp_staging_open(d, t, key.size, value.size) : -EINVAL;

	if (error)
		return error;
	error = libacp_staging_load(d, key, value);
	if (error)
		libacp_staging_close(d);
	return error;
}

int libacp_table_put(const struct libacp_table *t, acp_element_t key, acp_element_t value)
{
	struct libacp_staging d;
	int result = open_staging(&d, t, key, value);

	if (result)
		return result;
	result = libacp_table_insert(&d);
	libacp_staging_close(&d);
	return result;
}

int libacp_table_delete(const struct libacp_table *t, acp_element_t key, uint64_t count)
{
	struct libacp_staging d;
	int error = open_staging(&d, t, key, none);

	if (error)
		return error;
	error = libacp_table_remove(&d, count);
	libacp_staging_close(&d);
	return error;
}

int libacp_table_find(const struct libacp_table *t, acp_element_t key, struct libacp_table_it *it)
{
	struct libacp_seen seen;
	struct libacp_staging d;
	struct libacp_slot s;
	int error = open_staging(&d, t, key, none);

	*it = libacp_table_end(t);
	if (error)
		return error;
	error = libacp_table_look(&d, &s, &seen);
	if (!error && seen.elem != ACP_GA_NULL) {
		it->rank = (int)s.member;
		it->slot = (int)s.number;
		it->elem = seen.elem;
	}
	libacp_staging_close(&d);
	return error;
}

int libacp_table_count(const struct libacp_table *t, acp_element_t key, uint64_t *count)
{
	struct libacp_seen seen;
	struct libacp_staging d;
	struct libacp_slot s;
	int error = open_staging(&d, t, key, none);

	*count = 0;
	if (error)
		return error;
	error = libacp_table_look(&d, &s, &seen);
	if (!error && seen.elem != ACP_GA_NULL)
		*count = d.m->peek[LIBACP_EXTRA];
	libacp_staging_close(&d);
	return error;
}

/* ---- Values ---- */

/* Copy the first bytes of the value of the element in d->m->peek to @to. */
static int copy_value(struct libacp_staging *d, struct libacp_slot *s, acp_ga_t elem,
		      acp_element_t to, uint64_t *size)
{
	uint64_t at = libacp_table_key_at(d->table) + d->key_size, whole;

	whole = d->m->peek[LIBACP_EXTRA] - 8 - d->key_size;
	if (whole > LIBACP_TABLE_MAX)
		return -EUCLEAN;
	*size = whole < to.size ? whole : to.size;
	if (!*size)
		return 0;
	if (at + *size <= LIBACP_TABLE_PEEK) {
		libacp_staging_copy(d, to.ga, LIBACP_STAGING_GA(d, peek) + at, *size);
		return libacp_staging_wait(d);
	}
	libacp_staging_copy(d, to.ga, elem - 8 + at, *size);
	return libacp_slot_unchanged(d, s);
}

static int value_once(struct libacp_staging *d, acp_element_t to, uint64_t *size)
{
	struct libacp_seen seen;
	struct libacp_slot s;
	int error = libacp_table_look(d, &s, &seen);

	if (error || seen.elem == ACP_GA_NULL)
		return error;
	return copy_value(d, &s, seen.elem, to, size);
}

static int value_locked(struct libacp_staging *d, acp_element_t to, uint64_t *size)
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
	struct libacp_staging d;
	int reads, error = open_staging(&d, t, key, none);

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
	libacp_staging_close(&d);
	return libacp_table_told(error);
}
