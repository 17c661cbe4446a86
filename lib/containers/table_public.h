/* SPDX-License-Identifier: MIT */
/*
 * The public functions that sets, multisets and maps have in common; the implementation is in
 * table*.c. set.c, multiset.c and map.c include this file once, after they have defined
 *
 *	CONTAINER, ITERATOR	types: acp_set_t, acp_set_it_t
 *	MEMBER			name of the container in its iterator: set
 *	KIND			LIBACP_SET
 *	ACP(verb)		name of a function: acp_##verb##_set
 *	ACP_IT(verb)		name of a function of iterators: acp_##verb##_set_it
 */
#include <errno.h>

#include "core/internal.h"
#include "containers/table.h"

static struct libacp_table table_of(CONTAINER c)
{
	return (struct libacp_table){ c.ga, c.num_ranks, c.num_slots, KIND };
}

static ITERATOR public_it(const struct libacp_table_it *it)
{
	return (ITERATOR){
		{ it->table.ga, it->table.members, it->table.slots }, it->rank, it->slot, it->elem,
	};
}

static struct libacp_table_it private_it(ITERATOR it)
{
	return (struct libacp_table_it){ table_of(it.MEMBER), it.rank, it.slot, it.elem };
}

/* Set errno on failure. True if there is none. */
static bool well(int error)
{
	if (error < 0)
		errno = -error;
	return error >= 0;
}

/* ---- The whole container ---- */

CONTAINER ACP(create)(int num_ranks, const int *ranks, int num_slots, int rank)
{
	struct libacp_table t = libacp_table_create(KIND, num_ranks, ranks, num_slots, rank);

	return (CONTAINER){ t.ga, t.members, t.slots };
}

void ACP(destroy)(CONTAINER c)
{
	struct libacp_table t = table_of(c);

	well(libacp_table_destroy(&t));
}

static void clear(CONTAINER c, int rank)
{
	struct libacp_table t = table_of(c);

	well(libacp_table_clear(&t, rank));
}

void ACP(clear)(CONTAINER c)
{
	clear(c, -1);
}

void ACP(clear_local)(CONTAINER c)
{
	clear(c, acp_rank());
}

static size_t size(CONTAINER c, int rank)
{
	struct libacp_table t = table_of(c);
	uint64_t number;

	well(libacp_table_size(&t, rank, &number));
	return number;
}

size_t ACP(size)(CONTAINER c)
{
	return size(c, -1);
}

size_t ACP(size_local)(CONTAINER c)
{
	return size(c, acp_rank());
}

static int empty(CONTAINER c, int rank)
{
	struct libacp_table t = table_of(c);
	bool empty;

	well(libacp_table_empty(&t, rank, &empty));
	return empty;
}

int ACP(empty)(CONTAINER c)
{
	return empty(c, -1);
}

int ACP(empty_local)(CONTAINER c)
{
	return empty(c, acp_rank());
}

/* ---- Two containers ---- */

static void assign(CONTAINER c1, CONTAINER c2, int rank)
{
	struct libacp_table to = table_of(c1), from = table_of(c2);

	well(libacp_table_assign(&to, &from, rank));
}

void ACP(assign)(CONTAINER c1, CONTAINER c2)
{
	assign(c1, c2, -1);
}

void ACP(assign_local)(CONTAINER c1, CONTAINER c2)
{
	assign(c1, c2, acp_rank());
}

static void merge(CONTAINER c1, CONTAINER c2, int rank)
{
	struct libacp_table to = table_of(c1), from = table_of(c2);

	well(libacp_table_merge(&to, &from, rank));
}

void ACP(merge)(CONTAINER c1, CONTAINER c2)
{
	merge(c1, c2, -1);
}

void ACP(merge_local)(CONTAINER c1, CONTAINER c2)
{
	merge(c1, c2, acp_rank());
}

static void move(CONTAINER c1, CONTAINER c2, int rank)
{
	struct libacp_table to = table_of(c1), from = table_of(c2);

	well(libacp_table_move(&to, &from, rank));
}

void ACP(move)(CONTAINER c1, CONTAINER c2)
{
	move(c1, c2, -1);
}

void ACP(move_local)(CONTAINER c1, CONTAINER c2)
{
	move(c1, c2, acp_rank());
}

void ACP(swap)(CONTAINER c1, CONTAINER c2)
{
	struct libacp_table a = table_of(c1), b = table_of(c2);

	well(libacp_table_swap(&a, &b));
}

/* ---- Iterators ---- */

static ITERATOR begin(CONTAINER c, int rank)
{
	struct libacp_table t = table_of(c);
	struct libacp_table_it it;

	well(libacp_table_begin(&t, rank, &it));
	return public_it(&it);
}

ITERATOR ACP(begin)(CONTAINER c)
{
	return begin(c, -1);
}

ITERATOR ACP(begin_local)(CONTAINER c)
{
	return begin(c, acp_rank());
}

ITERATOR ACP(end)(CONTAINER c)
{
	struct libacp_table t = table_of(c);
	struct libacp_table_it it = libacp_table_end(&t);

	return public_it(&it);
}

ITERATOR ACP(end_local)(CONTAINER c)
{
	return ACP(end)(c);
}

ITERATOR ACP_IT(increment)(ITERATOR it)
{
	struct libacp_table_it next = private_it(it);

	well(libacp_table_next(&next));
	return public_it(&next);
}

ITERATOR ACP(find)(CONTAINER c, acp_element_t key)
{
	struct libacp_table t = table_of(c);
	struct libacp_table_it it;

	well(libacp_table_find(&t, key, &it));
	return public_it(&it);
}

/* ---- Single keys ---- */

void ACP(remove)(CONTAINER c, acp_element_t key)
{
	struct libacp_table t = table_of(c);

	well(libacp_table_delete(&t, key, 1));
}
