// SPDX-License-Identifier: MIT
/* Hash tables over the heaps of several ranks: creation, destruction, size. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/internal.h"
#include "middle/scratch.h"
#include "containers/table.h"

#define BLANK	((uint64_t)65536)	/* bytes to clear at a time */

int libacp_table_allocate(uint64_t size, int rank, acp_ga_t *ga)
{
	errno = 0;
	*ga = acp_malloc(size, rank);
	if (*ga != ACP_GA_NULL)
		return 0;
	return errno ? -errno : -ENOMEM;
}

/* ---- Creation and destruction ---- */

static int zero(acp_ga_t ga, uint64_t size)
{
	uint64_t piece = size < BLANK ? size : BLANK, at;
	acp_ga_t blank;
	void *block = libacp_scratch_get(piece, &blank);
	int error = 0;

	if (!block)
		return -ENOMEM;
	memset(block, 0, piece);
	for (at = 0; at < size && !error; at += piece) {
		piece = size - at < piece ? size - at : piece;
		error = libacp_staging_transfer(ga + at, blank, piece);
	}
	libacp_scratch_put(block);
	return error;
}

static int create_slots(const struct libacp_table *t, int rank, acp_ga_t *slots)
{
	int error = libacp_table_allocate(libacp_slot_bytes(t), rank, slots);

	if (error)
		return error;
	error = zero(*slots, libacp_slot_bytes(t));
	if (error)
		acp_free(*slots);
	return error;
}

/* Create the slots on all ranks and return their addresses in @words. */
static int create_members(const struct libacp_table *t, const int *ranks, acp_ga_t *words)
{
	uint64_t i;
	int error = 0;

	for (i = 0; i < t->members && !error; i++)
		error = create_slots(t, ranks[i], &words[i]);
	if (!error)
		return 0;
	for (i--; i--;)
		acp_free(words[i]);
	return error;
}

/* @ranks has t->members entries. */
static int create(struct libacp_table *t, const int *ranks, int rank)
{
	acp_ga_t words_ga, *words = libacp_scratch_get(8 * t->members, &words_ga);
	uint64_t i;
	int error;

	if (!words)
		return -ENOMEM;
	error = create_members(t, ranks, words);
	if (error)
		goto put;
	error = libacp_table_allocate(8 * t->members, rank, &t->ga);
	if (!error)
		error = libacp_staging_transfer(t->ga, words_ga, 8 * t->members);
	if (!error)
		goto put;
	acp_free(t->ga);
	t->ga = ACP_GA_NULL;
	for (i = 0; i < t->members; i++)
		acp_free(words[i]);
put:
	libacp_scratch_put(words);
	return error;
}

static bool all_ranks(const int *ranks, int count)
{
	int i, procs = acp_procs();

	if (!ranks || count < 1)
		return false;
	for (i = 0; i < count; i++)
		if (ranks[i] < 0 || ranks[i] >= procs)
			return false;
	return true;
}

struct libacp_table libacp_table_create(enum libacp_table_kind kind, int members,
					const int *ranks, int slots, int rank)
{
	struct libacp_table t = { .kind = kind };
	int error = -EINVAL, saved_errno = errno;
	bool quiet;

	if (all_ranks(ranks, members) && all_ranks(&rank, 1) && slots > 0) {
		t.members = (uint64_t)members;
		t.slots = (uint64_t)slots;
		quiet = libacp_quiet(true);
		error = create(&t, ranks, rank);
		libacp_quiet(quiet);
	}
	errno = error ? -error : saved_errno;
	return error ? (struct libacp_table){ .kind = kind } : t;
}

/* Read the whole directory into scratch memory. */
static int read_directory(const struct libacp_table *t, acp_ga_t **words)
{
	acp_ga_t ga;
	int error;

	*words = libacp_scratch_get(8 * t->members, &ga);
	if (!*words)
		return -ENOMEM;
	error = libacp_staging_transfer(ga, t->ga, 8 * t->members);
	if (error)
		libacp_scratch_put(*words);
	return error;
}

int libacp_table_create_like(const struct libacp_table *t, struct libacp_table *new)
{
	int *ranks = calloc(t->members, sizeof(*ranks)), error;
	acp_ga_t *words;
	uint64_t i;

	if (!ranks)
		return -ENOMEM;
	error = read_directory(t, &words);
	if (error)
		goto free;
	for (i = 0; i < t->members; i++)
		ranks[i] = acp_query_rank(words[i]);
	libacp_scratch_put(words);
	*new = *t;
	error = all_ranks(ranks, (int)t->members) ? create(new, ranks, acp_query_rank(t->ga))
						  : -EINVAL;
free:
	free(ranks);
	return error;
}

int libacp_table_free_chain(struct libacp_staging *d, const struct libacp_slot *s, acp_ga_t elem)
{
	int error = 0;

	while (elem != ACP_GA_NULL && !error) {
		error = libacp_slot_peek(d, s, elem);
		if (error)
			break;
		libacp_staging_copy(d, elem - 8, LIBACP_STAGING_GA(d, blank), 8);
		error = libacp_staging_wait(d);
		acp_free(elem - 8);
		elem = d->m->peek[LIBACP_NEXT];
	}
	return error;
}

static int destroy_members(struct libacp_staging *d, const acp_ga_t *words)
{
	const struct libacp_table *t = d->table;
	struct libacp_found_slot found;
	struct libacp_scan scan;
	struct libacp_slot s;
	uint64_t i;
	int error = libacp_scan_open(&scan, t, -1, 0, 0);

	if (error)
		return error;
	while (libacp_scan_next(&scan, &found)) {
		libacp_slot_at(d, &s, found.slots, found.member, found.number);
		error = libacp_table_free_chain(d, &s, found.words[1]);
		if (error)
			scan.error = error;
	}
	error = libacp_scan_close(&scan);
	/* So that later uses find nothing, as long as the memory is not reused. */
	zero(t->ga, 8 * t->members);
	for (i = 0; i < t->members; i++)
		acp_free(words[i]);
	acp_free(t->ga);
	return error;
}

int libacp_table_destroy(const struct libacp_table *t)
{
	struct libacp_staging d;
	acp_ga_t *words;
	int error = libacp_staging_open(&d, t, 0, 0);

	if (error)
		return error;
	error = read_directory(t, &words);
	if (!error) {
		error = destroy_members(&d, words);
		libacp_scratch_put(words);
	}
	libacp_staging_close(&d);
	return error;
}

/* ---- All keys ---- */

int libacp_table_size(const struct libacp_table *t, int rank, uint64_t *size)
{
	struct libacp_found_slot found;
	struct libacp_scan scan;
	int error = libacp_scan_open(&scan, t, rank, 0, 0);

	*size = 0;
	if (error)
		return error;
	while (libacp_scan_next(&scan, &found))
		*size += found.words[3];
	return libacp_scan_close(&scan);
}

int libacp_table_empty(const struct libacp_table *t, int rank, bool *empty)
{
	struct libacp_found_slot found;
	struct libacp_scan scan;
	int error = libacp_scan_open(&scan, t, rank, 0, 0);

	*empty = true;
	if (error)
		return error;
	*empty = !libacp_scan_next(&scan, &found);
	return libacp_scan_close(&scan);
}

static int clear_slot(struct libacp_staging *d, const struct libacp_found_slot *found)
{
	static const uint64_t nothing[3];
	struct libacp_slot s;
	uint64_t since = 0;
	acp_ga_t first;
	int error;

	libacp_slot_at(d, &s, found->slots, found->member, found->number);
	do {
		error = libacp_slot_take(d, &s);
		if (error)
			return error;
		first = d->m->first;
		error = libacp_slot_replace(d, &s, nothing);
	} while (libacp_table_again(&since, error));
	return error ? libacp_table_told(error) : libacp_table_free_chain(d, &s, first);
}

int libacp_table_clear(const struct libacp_table *t, int rank)
{
	struct libacp_found_slot found;
	struct libacp_scan scan;
	struct libacp_staging d;
	int error = libacp_staging_open(&d, t, 0, 0);

	if (error)
		return error;
	error = libacp_scan_open(&scan, t, rank, 0, 0);
	if (error)
		goto close;
	while (libacp_scan_next(&scan, &found)) {
		error = clear_slot(&d, &found);
		if (error)
			scan.error = error;
	}
	error = libacp_scan_close(&scan);
close:
	libacp_staging_close(&d);
	return error;
}
