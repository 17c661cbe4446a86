// SPDX-License-Identifier: MIT
/* Iteration over the elements of a table. */
#include <errno.h>

#include "core/internal.h"
#include "containers/table.h"

struct libacp_table_it libacp_table_end(const struct libacp_table *t)
{
	return (struct libacp_table_it){ .table = *t, .rank = (int)t->members };
}

static bool at_end(const struct libacp_table_it *it)
{
	return it->elem == ACP_GA_NULL || it->rank < 0 || (uint64_t)it->rank >= it->table.members;
}

static uint64_t number_of(const struct libacp_table_it *it)
{
	return (uint64_t)(it->slot < 0 ? -1 - it->slot : it->slot);
}

/* Find the first element from a slot on. */
static int seek(struct libacp_table_it *it, int rank, uint64_t member, uint64_t number)
{
	const struct libacp_table t = it->table;
	struct libacp_found_slot found;
	struct libacp_scan scan;
	int error = libacp_scan_open(&scan, &t, rank, member, number);

	*it = libacp_table_end(&t);
	if (error)
		return error;
	if (libacp_scan_next(&scan, &found)) {
		it->rank = (int)found.member;
		it->slot = rank < 0 ? (int)found.number : -1 - (int)found.number;
		it->elem = found.words[1];
	}
	return libacp_scan_close(&scan);
}

int libacp_table_begin(const struct libacp_table *t, int rank, struct libacp_table_it *it)
{
	it->table = *t;
	return seek(it, rank, 0, 0);
}

/* Read the first bytes of the element of an iterator into d->m->peek. */
static int peek(struct libacp_staging *d, const struct libacp_table_it *it)
{
	struct libacp_slot s = {
		.rank = acp_query_rank(it->elem),
		.mark = libacp_slot_mark(&it->table, (uint64_t)it->rank, number_of(it)),
	};

	return libacp_slot_peek(d, &s, it->elem);
}

int libacp_table_next(struct libacp_table_it *it)
{
	const struct libacp_table_it former = *it;
	struct libacp_staging d;
	acp_ga_t next;
	int error;

	*it = libacp_table_end(&former.table);
	if (at_end(&former))
		return 0;
	error = libacp_staging_open(&d, &former.table, 0, 0);
	if (error)
		return error;
	error = peek(&d, &former);
	next = d.m->peek[LIBACP_NEXT];
	libacp_staging_close(&d);
	if (error)
		return error;
	if (next == ACP_GA_NULL)
		return seek(it, former.slot < 0 ? acp_query_rank(former.elem) : -1,
			    (uint64_t)former.rank, number_of(&former) + 1);
	*it = former;
	it->elem = next;
	return 0;
}

int libacp_table_content(const struct libacp_table_it *it, struct libacp_table_content *content)
{
	const struct libacp_table *t = &it->table;
	struct libacp_staging d;
	uint64_t size;
	int error;

	*content = (struct libacp_table_content){ 0 };
	if (at_end(it))
		return -EINVAL;
	error = libacp_staging_open(&d, t, 0, 0);
	if (error)
		return error;
	error = peek(&d, it);
	if (!error) {
		size = d.m->peek[libacp_table_size_word(t)];
		content->count = d.m->peek[LIBACP_EXTRA];
		content->pair.first = (acp_element_t){
			it->elem - 8 + libacp_table_key_at(t), size };
		if (t->kind == LIBACP_MAP)
			content->pair.second = (acp_element_t){
				content->pair.first.ga + size, content->count - 8 - size };
	}
	libacp_staging_close(&d);
	return error;
}
