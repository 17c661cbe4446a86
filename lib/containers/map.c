// SPDX-License-Identifier: MIT
/* Maps: the public functions. The implementation is in table*.c. */
#include <errno.h>

#include "core/internal.h"
#include "containers/table.h"

static struct libacp_table table_of(acp_map_t map)
{
	return (struct libacp_table){ map.ga, map.num_ranks, map.num_slots, LIBACP_MAP };
}

static acp_map_it_t public_it(const struct libacp_table_it *it)
{
	return (acp_map_it_t){
		{ it->table.ga, it->table.members, it->table.slots }, it->rank, it->slot, it->elem,
	};
}

static struct libacp_table_it private_it(acp_map_it_t it)
{
	return (struct libacp_table_it){ table_of(it.map), it.rank, it.slot, it.elem };
}

/* Set errno on failure. True if there is none. */
static bool well(int error)
{
	if (error < 0)
		errno = -error;
	return error >= 0;
}

/* ---- The whole map ---- */

acp_map_t acp_create_map(int num_ranks, const int *ranks, int num_slots, int rank)
{
	struct libacp_table t = libacp_table_create(LIBACP_MAP, num_ranks, ranks, num_slots, rank);

	return (acp_map_t){ t.ga, t.members, t.slots };
}

void acp_destroy_map(acp_map_t map)
{
	struct libacp_table t = table_of(map);

	well(libacp_table_destroy(&t));
}

static void clear(acp_map_t map, int rank)
{
	struct libacp_table t = table_of(map);

	well(libacp_table_clear(&t, rank));
}

void acp_clear_map(acp_map_t map)
{
	clear(map, -1);
}

void acp_clear_local_map(acp_map_t map)
{
	clear(map, acp_rank());
}

static size_t size(acp_map_t map, int rank)
{
	struct libacp_table t = table_of(map);
	uint64_t number;

	well(libacp_table_size(&t, rank, &number));
	return number;
}

size_t acp_size_map(acp_map_t map)
{
	return size(map, -1);
}

size_t acp_size_local_map(acp_map_t map)
{
	return size(map, acp_rank());
}

static int empty(acp_map_t map, int rank)
{
	struct libacp_table t = table_of(map);
	bool empty;

	well(libacp_table_empty(&t, rank, &empty));
	return empty;
}

int acp_empty_map(acp_map_t map)
{
	return empty(map, -1);
}

int acp_empty_local_map(acp_map_t map)
{
	return empty(map, acp_rank());
}

/* ---- Two maps ---- */

static void assign(acp_map_t map1, acp_map_t map2, int rank)
{
	struct libacp_table to = table_of(map1), from = table_of(map2);

	well(libacp_table_assign(&to, &from, rank));
}

void acp_assign_map(acp_map_t map1, acp_map_t map2)
{
	assign(map1, map2, -1);
}

void acp_assign_local_map(acp_map_t map1, acp_map_t map2)
{
	assign(map1, map2, acp_rank());
}

static void merge(acp_map_t map1, acp_map_t map2, int rank)
{
	struct libacp_table to = table_of(map1), from = table_of(map2);

	well(libacp_table_merge(&to, &from, rank));
}

void acp_merge_map(acp_map_t map1, acp_map_t map2)
{
	merge(map1, map2, -1);
}

void acp_merge_local_map(acp_map_t map1, acp_map_t map2)
{
	merge(map1, map2, acp_rank());
}

static void move(acp_map_t map1, acp_map_t map2, int rank)
{
	struct libacp_table to = table_of(map1), from = table_of(map2);

	well(libacp_table_move(&to, &from, rank));
}

void acp_move_map(acp_map_t map1, acp_map_t map2)
{
	move(map1, map2, -1);
}

void acp_move_local_map(acp_map_t map1, acp_map_t map2)
{
	move(map1, map2, acp_rank());
}

void acp_swap_map(acp_map_t map1, acp_map_t map2)
{
	struct libacp_table a = table_of(map1), b = table_of(map2);

	well(libacp_table_swap(&a, &b));
}

/* ---- Iterators ---- */

static acp_map_it_t begin(acp_map_t map, int rank)
{
	struct libacp_table t = table_of(map);
	struct libacp_table_it it;

	well(libacp_table_begin(&t, rank, &it));
	return public_it(&it);
}

acp_map_it_t acp_begin_map(acp_map_t map)
{
	return begin(map, -1);
}

acp_map_it_t acp_begin_local_map(acp_map_t map)
{
	return begin(map, acp_rank());
}

acp_map_it_t acp_end_map(acp_map_t map)
{
	struct libacp_table t = table_of(map);
	struct libacp_table_it it = libacp_table_end(&t);

	return public_it(&it);
}

acp_map_it_t acp_end_local_map(acp_map_t map)
{
	return acp_end_map(map);
}

acp_map_it_t acp_increment_map_it(acp_map_it_t it)
{
	struct libacp_table_it next = private_it(it);

	well(libacp_table_next(&next));
	return public_it(&next);
}

acp_map_it_t acp_find_map(acp_map_t map, acp_element_t key)
{
	struct libacp_table t = table_of(map);
	struct libacp_table_it it;

	well(libacp_table_find(&t, key, &it));
	return public_it(&it);
}

acp_pair_t acp_dereference_map_it(acp_map_it_t it)
{
	struct libacp_table_it private = private_it(it);
	struct libacp_table_content content;

	well(libacp_table_content(&private, &content));
	return content.pair;
}

/* ---- Single keys ---- */

int acp_insert_map(acp_map_t map, acp_pair_t pair)
{
	struct libacp_table t = table_of(map);
	int result = libacp_table_put(&t, pair.first, pair.second);

	return well(result) && result == 1;
}

void acp_remove_map(acp_map_t map, acp_element_t key)
{
	struct libacp_table t = table_of(map);

	well(libacp_table_delete(&t, key, 1));
}

size_t acp_retrieve_map(acp_map_t map, acp_pair_t pair)
{
	struct libacp_table t = table_of(map);
	uint64_t size;

	well(libacp_table_value(&t, pair.first, pair.second, &size));
	return size;
}
