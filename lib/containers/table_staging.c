// SPDX-License-Identifier: MIT
/* Staging memory of a call on a table, and chains of accesses. */
#include <errno.h>
#include <string.h>

#include "core/internal.h"
#include "middle/scratch.h"
#include "containers/table.h"

/*
 * -EIO: an access of another thread failed before this one, or the status was lost because others
 * issued very many accesses. Copies can be repeated.
 */
#define TRIES	16

#define STAGED	4096u			/* maximum size of a value in the image */
#define PIECE	((uint64_t)65536 - 4096)	/* bytes of a longer value to send at a time */

bool libacp_table_possible(const struct libacp_table *t)
{
	return t->ga != ACP_GA_NULL && t->ga % 8 == 0 && acp_query_rank(t->ga) >= 0 &&
	       t->members && t->members <= INT32_MAX && t->slots && t->slots <= INT32_MAX;
}

int libacp_staging_open(struct libacp_staging *d, const struct libacp_table *table,
			uint64_t key_size, uint64_t value_size)
{
	const uint64_t staged = value_size <= STAGED ? value_size : 0;
	uint64_t size, room;

	if (!libacp_table_possible(table))
		return -EINVAL;
	if (key_size > LIBACP_TABLE_MAX || value_size > LIBACP_TABLE_MAX)
		return -ENOMEM;
	size = libacp_table_key_at(table) + key_size + staged;
	room = size < LIBACP_TABLE_PEEK ? LIBACP_TABLE_PEEK : (size + 7) & ~(uint64_t)7;
	*d = (struct libacp_staging){
		.table = table, .key_size = key_size, .value_size = value_size, .staged = staged,
		.image_size = size, .room = room, .saved_errno = errno,
	};
	d->m = libacp_scratch_get(sizeof(*d->m) + room + key_size, &d->ga);
	if (!d->m)
		return -ENOMEM;
	memset(d->m->blank, 0, sizeof(d->m->blank));
	d->quiet = libacp_quiet(true);
	return 0;
}

void libacp_staging_close(struct libacp_staging *d)
{
	libacp_quiet(d->quiet);
	libacp_scratch_put(d->m);
	errno = d->saved_errno;
}

char *libacp_staging_key(const struct libacp_staging *d)
{
	return (char *)d->m->image + libacp_table_key_at(d->table);
}

/* Set the sizes in the image for key and value. */
static void set_sizes(struct libacp_staging *d)
{
	const struct libacp_table *t = d->table;
	uint64_t *image = d->m->image;

	if (t->kind == LIBACP_MULTISET)
		image[LIBACP_EXTRA] = 1;
	else if (t->kind == LIBACP_MAP)
		image[LIBACP_EXTRA] = 8 + d->key_size + d->value_size;
	image[libacp_table_size_word(t)] = d->key_size;
}

int libacp_staging_load(struct libacp_staging *d, acp_element_t key, acp_element_t value)
{
	acp_ga_t image = LIBACP_STAGING_GA(d, image) + libacp_table_key_at(d->table);

	memset(d->m->image, 0, d->room);
	set_sizes(d);
	d->value_ga = value.ga;
	libacp_staging_copy(d, image, key.ga, d->key_size);
	if (d->staged)
		libacp_staging_aside(d, image + d->key_size, value.ga, d->staged);
	return libacp_staging_wait(d);
}

void libacp_staging_fill(struct libacp_staging *d, const void *key, const void *value,
			 uint64_t count)
{
	memset(d->m->image, 0, d->room);
	set_sizes(d);
	if (d->table->kind == LIBACP_MULTISET)
		d->m->image[LIBACP_EXTRA] = count;
	memcpy(libacp_staging_key(d), key, d->key_size);
	d->value = value;
	if (d->staged)
		memcpy(libacp_staging_key(d) + d->key_size, value, d->staged);
}

uint64_t libacp_staging_bytes(const struct libacp_staging *d)
{
	return d->room + d->value_size - d->staged;
}

/* Copy a value from this process, piece by piece, because registered memory is scarce. */
static int write_near_value(const struct libacp_staging *d, acp_ga_t to)
{
	acp_ga_t ga;
	char *piece = libacp_scratch_get(PIECE, &ga);
	uint64_t at, size;
	int error = 0;

	if (!piece)
		return -ENOMEM;
	for (at = 0; at < d->value_size && !error; at += size) {
		size = d->value_size - at < PIECE ? d->value_size - at : PIECE;
		memcpy(piece, d->value + at, size);
		error = libacp_staging_transfer(to + at, ga, size);
	}
	libacp_scratch_put(piece);
	return error;
}

int libacp_staging_write_value(const struct libacp_staging *d, acp_ga_t elem)
{
	const acp_ga_t to = elem - 8 + libacp_table_key_at(d->table) + d->key_size;

	if (d->staged == d->value_size)
		return 0;
	if (d->value)
		return write_near_value(d, to);
	return libacp_staging_transfer(to, d->value_ga, d->value_size);
}

int libacp_staging_transfer(acp_ga_t dst, acp_ga_t src, uint64_t size)
{
	const bool quiet = libacp_quiet(true);
	int error, tries;

	for (tries = 0; tries < TRIES; tries++) {
		error = libacp_finish(acp_copy(dst, src, size, ACP_HANDLE_NULL));
		if (error != -EIO)
			break;
	}
	libacp_quiet(quiet);
	return error;
}

void libacp_staging_copy(struct libacp_staging *d, acp_ga_t dst, acp_ga_t src, uint64_t size)
{
	d->chain[d->count++] =
		(struct libacp_staging_copy){ dst, src, size, ACP_HANDLE_NULL, false };
}

void libacp_staging_aside(struct libacp_staging *d, acp_ga_t dst, acp_ga_t src, uint64_t size)
{
	d->chain[d->count++] =
		(struct libacp_staging_copy){ dst, src, size, ACP_HANDLE_NULL, true };
}

/*
 * Issue the chain until a copy is refused. Returns 0 or -errno; -EIO if a previous access has
 * failed.
 */
static int issue(struct libacp_staging *d)
{
	acp_handle_t last = ACP_HANDLE_NULL;
	unsigned int i;

	libacp_chain();
	for (i = 0; i < d->count; i++) {
		struct libacp_staging_copy *c = &d->chain[i];

		c->handle = acp_copy(c->dst, c->src, c->size,
				     c->aside ? (acp_handle_t)ACP_HANDLE_NULL : last);
		if (c->handle == (acp_handle_t)ACP_HANDLE_NULL)
			return i ? -EIO : -ECANCELED;
		if (!c->aside)
			last = c->handle;
	}
	return 0;
}

/*
 * Wait for all copies that were issued. Returns the error of the first one that failed, which
 * caused later failures.
 */
static int finish(const struct libacp_staging *d, int issued)
{
	unsigned int i;
	int error = issued;

	for (i = d->count; i--;) {
		int e;

		if (d->chain[i].handle == (acp_handle_t)ACP_HANDLE_NULL)
			continue;
		e = libacp_finish(d->chain[i].handle);
		error = e ? e : error;
	}
	return error;
}

int libacp_staging_wait(struct libacp_staging *d)
{
	int error, tries;
	unsigned int i;

	for (tries = 0; tries < TRIES; tries++) {
		for (i = 0; i < d->count; i++)
			d->chain[i].handle = ACP_HANDLE_NULL;
		error = issue(d);
		error = finish(d, error);
		if (error != -EIO)
			break;
	}
	d->count = 0;
	return error;
}

/* ---- Repetition ---- */

bool libacp_table_again(uint64_t *since, int error)
{
	uint64_t now;

	if (error != -EAGAIN)
		return false;
	now = libacp_now();
	if (!*since)
		*since = now;
	return now - *since < libacp_txlock_times.patience;
}

int libacp_table_told(int error)
{
	return error == -EAGAIN ? -ETIMEDOUT : error;
}
