// SPDX-License-Identifier: MIT
/* Multisets: the public functions. The implementation is in table*.c. */
#include <errno.h>

#include "core/internal.h"
#include "containers/table.h"

static struct libacp_table table_of(acp_multiset_t set)
{
	return (struct libacp_table){ set.ga, set.num_ranks, set.num_slots, LIBACP_MULTISET };
}

static acp_multiset_it_t public_it(const struct libacp_table_it *it)
{
	return (acp_multiset_it_t){
		{ it->table.ga, it->table.members, it->table.slots }, it->rank, it->slot, it->elem,
	};
}

static struct libacp_table_it private_it(acp_multiset_it_t it)
{
	return (struct libacp_table_it){ table_of(it.set), it.rank, it.slot, it.elem };
}

/* Set errno on failure. True if there is none. */
static bool well(int error)
{
	if (error < 0)
		errno = -error;
	return error >= 0;
}

/* ---- The whole multiset ---- */

acp_multiset_t acp_create_multiset(int num_ranks, const int *ranks, int num_slots, int rank)
{
	struct libacp_table t = libacp_table_create(LIBACP_MULTISET, num_ranks, ranks, num_slots,
						    rank);

	return (acp_multiset_t){ t.ga, t.members, t.slots };
}

void acp_destroy_multiset(acp_multiset_t set)
{
	struct libacp_table t = table_of(set);

	well(libacp_table_destroy(&t));
}

static void clear(acp_multiset_t set, int rank)
{
	struct libacp_table t = table_of(set);

	well(libacp_table_clear(&t, rank));
}

void acp_clear_multiset(acp_multiset_t set)
{
	clear(set, -1);
}

void acp_clear_local_multiset(acp_multiset_t set)
{
	clear(set, acp_rank());
}

static size_t size(acp_multiset_t set, int rank)
{
	struct libacp_table t = table_of(set);
	uint64_t number;

	well(libacp_table_size(&t, rank, &number));
	return number;
}

size_t acp_size_multiset(acp_multiset_t set)
{
	return size(set, -1);
}

size_t acp_size_local_multiset(acp_multiset_t set)
{
	return size(set, acp_rank());
}

static int empty(acp_multiset_t set, int rank)
{
	struct libacp_table t = table_of(set);
	bool empty;

	well(libacp_table_empty(&t, rank, &empty));
	return empty;
}

int acp_empty_multiset(acp_multiset_t set)
{
	return empty(set, -1);
}

int acp_empty_local_multiset(acp_multiset_t set)
{
	return empty(set, acp_rank());
}

/* ---- Two multisets ---- */

static void assign(acp_multiset_t set1, acp_multiset_t set2, int rank)
{
	struct libacp_table to = table_of(set1), from = table_of(set2);

	well(libacp_table_assign(&to, &from, rank));
}

void acp_assign_multiset(acp_multiset_t set1, acp_multiset_t set2)
{
	assign(set1, set2, -1);
}

void acp_assign_local_multiset(acp_multiset_t set1, acp_multiset_t set2)
{
	assign(set1, set2, acp_rank());
}

static void merge(acp_multiset_t set1, acp_multiset_t set2, int rank)
{
	struct libacp_table to = table_of(set1), from = table_of(set2);

	well(libacp_table_merge(&to, &from, rank));
}

void acp_merge_multiset(acp_multiset_t set1, acp_multiset_t set2)
{
	merge(set1, set2, -1);
}

void acp_merge_local_multiset(acp_multiset_t set1, acp_multiset_t set2)
{
	merge(set1, set2, acp_rank());
}

static void move(acp_multiset_t set1, acp_multiset_t set2, int rank)
{
	struct libacp_table to = table_of(set1), from = table_of(set2);

	well(libacp_table_move(&to, &from, rank));
}

void acp_move_multiset(acp_multiset_t set1, acp_multiset_t set2)
{
	move(set1, set2, -1);
}

void acp_move_local_multiset(acp_multiset_t set1, acp_multiset_t set2)
{
	move(set1, set2, acp_rank());
}

void acp_swap_multiset(acp_multiset_t set1, acp_multiset_t set2)
{
	struct libacp_table a = table_of(set1), b = table_of(set2);

	well(libacp_table_swap(&a, &b));
}

/* ---- Iterators ---- */

static acp_multiset_it_t begin(acp_multiset_t set, int rank)
{
	struct libacp_table t = table_of(set);
	struct libacp_table_it it;

	well(libacp_table_begin(&t, rank, &it));
	return public_it(&it);
}

acp_multiset_it_t acp_begin_multiset(acp_multiset_t set)
{
	return begin(set, -1);
}

acp_multiset_it_t acp_begin_local_multiset(acp_multiset_t set)
{
	return begin(set, acp_rank());
}

acp_multiset_it_t acp_end_multiset(acp_multiset_t set)
{
	struct libacp_table t = table_of(set);
	struct libacp_table_it it = libacp_table_end(&t);

	return public_it(&it);
}

acp_multiset_it_t acp_end_local_multiset(acp_multiset_t set)
{
	return acp_end_multiset(set);
}

acp_multiset_it_t acp_increment_multiset_it(acp_multiset_it_t it)
{
	struct libacp_table_it next = private_it(it);

	well(libacp_table_next(&next));
	return public_it(&next);
}

acp_multiset_it_t acp_find_multiset(acp_multiset_t set, acp_element_t key)
{
	struct libacp_table t = table_of(set);
	struct libacp_table_it it;

	well(libacp_table_find(&t, key, &it));
	return public_it(&it);
}

acp_element_t acp_dereference_multiset_it(acp_multiset_it_t it)
{
	struct libacp_table_it private = private_it(it);
	struct libacp_table_content content;

	well(libacp_table_content(&private, &content));
	return content.pair.first;
}

/* ---- Single keys ---- */

int acp_insert_multiset(acp_multiset_t set, acp_element_t key)
{
	struct libacp_table t = table_of(set);

	return well(libacp_table_put(&t, key, (acp_element_t){ ACP_GA_NULL, 0 }));
}

void acp_remove_multiset(acp_multiset_t set, acp_element_t key)
{
	struct libacp_table t = table_of(set);

	well(libacp_table_delete(&t, key, 1));
}

void acp_remove_all_multiset(acp_multiset_t set, acp_element_t key)
{
	struct libacp_table t = table_of(set);

	well(libacp_table_delete(&t, key, UINT64_MAX));
}

uint64_t acp_retrieve_multiset(acp_multiset_t set, acp_element_t key)
{
	struct libacp_table t = table_of(set);
	uint64_t count;

	well(libacp_table_count(&t, key, &count));
	return count;
}
