// SPDX-License-Identifier: MIT
/*
 * Iteration over the slots of a table, which are read in batches: small ones first, for callers
 * that need the next element only, then larger ones.
 */
#include <errno.h>

#include "core/internal.h"
#include "middle/scratch.h"
#include "containers/table.h"

#define FIRST_BATCH	8u

int libacp_scan_open(struct libacp_scan *scan, const struct libacp_table *t, int rank,
		     uint64_t member, uint64_t number)
{
	*scan = (struct libacp_scan){
		.table = t, .rank = rank, .member = member, .number = number,
		.batch = FIRST_BATCH, .saved_errno = errno,
	};
	if (!libacp_table_possible(t))
		return -EINVAL;
	scan->m = libacp_scratch_get(sizeof(*scan->m), &scan->ga);
	if (!scan->m)
		return -ENOMEM;
	scan->quiet = libacp_quiet(true);
	return 0;
}

int libacp_scan_close(struct libacp_scan *scan)
{
	libacp_quiet(scan->quiet);
	libacp_scratch_put(scan->m);
	errno = scan->saved_errno;
	return scan->error;
}

static int fetch(struct libacp_scan *scan, size_t to, acp_ga_t from, uint64_t size)
{
	return libacp_staging_transfer(scan->ga + to, from, size);
}

/* Return the address of the slots of the member, or ACP_GA_NULL if it cannot be read. */
static acp_ga_t slots_of(struct libacp_scan *scan)
{
	uint64_t at = scan->member - scan->directory_from, left;
	int error;

	if (at >= scan->directory_count) {
		left = scan->table->members - scan->member;
		scan->directory_from = scan->member;
		scan->directory_count = left < LIBACP_SCAN_MEMBERS ? left : LIBACP_SCAN_MEMBERS;
		at = 0;
		error = fetch(scan, offsetof(struct libacp_scan_memory, directory),
			      scan->table->ga + 8 * scan->member, 8 * scan->directory_count);
		if (error) {
			scan->member = scan->table->members;	/* nothing can be found */
			scan->directory_count = 0;
			scan->error = error;
			return ACP_GA_NULL;
		}
	}
	return scan->m->directory[at];
}

/* Return the words of the slot, which is read with those behind it; NULL on failure. */
static const uint64_t *words_of(struct libacp_scan *scan, acp_ga_t slots)
{
	uint64_t at = scan->number - scan->slots_from, left;
	int error;

	if (scan->slots_member == scan->member && at < scan->slots_count)
		return scan->m->slots[at];
	left = scan->table->slots - scan->number;
	scan->slots_member = scan->member;
	scan->slots_from = scan->number;
	scan->slots_count = left < scan->batch ? left : scan->batch;
	if (scan->batch < LIBACP_SCAN_SLOTS)
		scan->batch *= 2;
	error = fetch(scan, offsetof(struct libacp_scan_memory, slots),
		      slots + sizeof(scan->m->slots[0]) * scan->number,
		      sizeof(scan->m->slots[0]) * scan->slots_count);
	if (!error)
		return scan->m->slots[0];
	scan->slots_count = 0;
	scan->error = error;
	return NULL;
}

static bool wanted(const struct libacp_scan *scan, acp_ga_t slots)
{
	int rank = acp_query_rank(slots);

	return slots % 8 == 0 && rank >= 0 && (scan->rank < 0 || scan->rank == rank);
}

static void next_member(struct libacp_scan *scan)
{
	scan->member++;
	scan->number = 0;
}

bool libacp_scan_next(struct libacp_scan *scan, struct libacp_found_slot *found)
{
	while (scan->member < scan->table->members) {
		acp_ga_t slots = slots_of(scan);
		const uint64_t *words;

		if (scan->number >= scan->table->slots || !wanted(scan, slots)) {
			next_member(scan);
			continue;
		}
		words = words_of(scan, slots);
		if (!words) {
			next_member(scan);
			continue;
		}
		*found = (struct libacp_found_slot){ scan->member, scan->number++, slots, words };
		if (words[1] != ACP_GA_NULL)
			return true;
	}
	return false;
}
