// SPDX-License-Identifier: MIT
/* Deques: rings of bytes. An iterator is an index, counted from the first byte. See sequence.c. */
#include <errno.h>

#include "containers/sequence.h"

/* Result of failed calls. */
static const acp_deque_it_t nowhere = { { ACP_GA_NULL }, 0 };

static acp_deque_it_t iterator(acp_deque_t deque, int index)
{
	return (acp_deque_it_t){ deque, index };
}

/* Check that both belong to the same deque. */
static bool same(acp_deque_it_t a, acp_deque_it_t b)
{
	if (a.deque.ga == b.deque.ga)
		return true;
	errno = EINVAL;
	return false;
}

acp_deque_t acp_create_deque(size_t size, int rank)
{
	acp_deque_t deque;

	libacp_sequence_create(LIBACP_DEQUE, size, rank, &deque.ga);
	return deque;
}

void acp_destroy_deque(acp_deque_t deque)
{
	libacp_sequence_destroy(LIBACP_DEQUE, deque.ga);
}

size_t acp_size_deque(acp_deque_t deque)
{
	struct libacp_bytes b;

	libacp_sequence_load(LIBACP_DEQUE, deque.ga, &b);
	return b.size;
}

size_t acp_capacity_deque(acp_deque_t deque)
{
	struct libacp_bytes b;

	libacp_sequence_load(LIBACP_DEQUE, deque.ga, &b);
	return b.capacity;
}

int acp_empty_deque(acp_deque_t deque)
{
	return acp_size_deque(deque) == 0;
}

void acp_reserve_deque(acp_deque_t deque, size_t size)
{
	libacp_sequence_reserve(LIBACP_DEQUE, deque.ga, size);
}

void acp_clear_deque(acp_deque_t deque)
{
	libacp_sequence_erase(LIBACP_DEQUE, deque.ga, 0, SIZE_MAX);
}

acp_ga_t acp_at_deque(acp_deque_t deque, int index)
{
	struct libacp_bytes b;

	if (!libacp_sequence_load(LIBACP_DEQUE, deque.ga, &b))
		return ACP_GA_NULL;
	if (index >= 0 && (uint64_t)index < b.size)
		return libacp_bytes_pieces(&b, (uint64_t)index, 1).first.ga;
	errno = EINVAL;
	return ACP_GA_NULL;
}

/* ---- Changing ---- */

void acp_push_back_deque(acp_deque_t deque, const acp_ga_t ga, size_t size)
{
	libacp_sequence_insert(LIBACP_DEQUE, deque.ga, LIBACP_SEQUENCE_BACK, ga, size);
}

void acp_push_front_deque(acp_deque_t deque, const acp_ga_t ga, size_t size)
{
	libacp_sequence_insert(LIBACP_DEQUE, deque.ga, 0, ga, size);
}

void acp_pop_back_deque(acp_deque_t deque, size_t size)
{
	libacp_sequence_pop_back(LIBACP_DEQUE, deque.ga, size);
}

void acp_pop_front_deque(acp_deque_t deque, size_t size)
{
	libacp_sequence_erase(LIBACP_DEQUE, deque.ga, 0, size);
}

acp_deque_it_t acp_insert_deque(acp_deque_it_t it, const acp_ga_t ga, size_t size)
{
	return libacp_sequence_insert(LIBACP_DEQUE, it.deque.ga, it.index, ga, size) ?
	       it : nowhere;
}

acp_deque_it_t acp_insert_range_deque(acp_deque_it_t it, acp_deque_it_t start,
				      acp_deque_it_t end)
{
	return same(start, end) &&
	       libacp_sequence_insert_range(LIBACP_DEQUE, it.deque.ga, it.index,
					    start.deque.ga, start.index, end.index) ?
	       it : nowhere;
}

acp_deque_it_t acp_erase_deque(acp_deque_it_t it, size_t size)
{
	return libacp_sequence_erase(LIBACP_DEQUE, it.deque.ga, it.index, size) ? it : nowhere;
}

acp_deque_it_t acp_erase_range_deque(acp_deque_it_t start, acp_deque_it_t end)
{
	return same(start, end) &&
	       libacp_sequence_erase_range(LIBACP_DEQUE, start.deque.ga, start.index,
					   end.index) ?
	       start : nowhere;
}

void acp_assign_deque(acp_deque_t deque1, acp_deque_t deque2)
{
	libacp_sequence_assign(LIBACP_DEQUE, deque1.ga, deque2.ga);
}

void acp_assign_range_deque(acp_deque_t deque, acp_deque_it_t start, acp_deque_it_t end)
{
	if (same(start, end))
		libacp_sequence_assign_range(LIBACP_DEQUE, deque.ga, start.deque.ga,
					     start.index, end.index);
}

void acp_swap_deque(acp_deque_t deque1, acp_deque_t deque2)
{
	libacp_sequence_swap(LIBACP_DEQUE, deque1.ga, deque2.ga);
}

/* ---- Iterators ---- */

acp_deque_it_t acp_begin_deque(acp_deque_t deque)
{
	return iterator(deque, 0);
}

acp_deque_it_t acp_end_deque(acp_deque_t deque)
{
	struct libacp_bytes b;

	return libacp_sequence_load(LIBACP_DEQUE, deque.ga, &b) ?
	       iterator(deque, (int)b.size) : nowhere;
}

acp_deque_it_t acp_advance_deque_it(acp_deque_it_t it, int n)
{
	return libacp_sequence_advance(&it.index, n) ? it : nowhere;
}

acp_pair_t acp_dereference_deque_it(acp_deque_it_t it, size_t size)
{
	static const acp_pair_t nothing = { { ACP_GA_NULL, 0 }, { ACP_GA_NULL, 0 } };
	struct libacp_bytes b;
	uint64_t behind;

	if (!libacp_sequence_load(LIBACP_DEQUE, it.deque.ga, &b))
		return nothing;
	if (it.index < 0) {
		errno = EINVAL;
		return nothing;
	}
	if ((uint64_t)it.index >= b.size)
		return nothing;
	behind = b.size - (uint64_t)it.index;
	return libacp_bytes_pieces(&b, (uint64_t)it.index, size < behind ? size : behind);
}

int acp_distance_deque_it(acp_deque_it_t first, acp_deque_it_t last)
{
	int distance;

	return same(first, last) &&
	       libacp_sequence_distance(first.index, last.index, &distance) ? distance : 0;
}
