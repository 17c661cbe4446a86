// SPDX-License-Identifier: MIT
/* Vectors: growable arrays of bytes. An iterator is an index. See sequence.c. */
#include <errno.h>

#include "containers/sequence.h"

/* Result of failed calls. */
static const acp_vector_it_t nowhere = { { ACP_GA_NULL }, 0 };

static acp_vector_it_t iterator(acp_vector_t vector, int index)
{
	return (acp_vector_it_t){ vector, index };
}

/* Check that both belong to the same vector. */
static bool same(acp_vector_it_t a, acp_vector_it_t b)
{
	if (a.vector.ga == b.vector.ga)
		return true;
	errno = EINVAL;
	return false;
}

acp_vector_t acp_create_vector(size_t size, int rank)
{
	acp_vector_t vector;

	libacp_sequence_create(LIBACP_VECTOR, size, rank, &vector.ga);
	return vector;
}

void acp_destroy_vector(acp_vector_t vector)
{
	libacp_sequence_destroy(LIBACP_VECTOR, vector.ga);
}

size_t acp_size_vector(acp_vector_t vector)
{
	struct libacp_bytes b;

	libacp_sequence_load(LIBACP_VECTOR, vector.ga, &b);
	return b.size;
}

size_t acp_capacity_vector(acp_vector_t vector)
{
	struct libacp_bytes b;

	libacp_sequence_load(LIBACP_VECTOR, vector.ga, &b);
	return b.capacity;
}

int acp_empty_vector(acp_vector_t vector)
{
	return acp_size_vector(vector) == 0;
}

void acp_reserve_vector(acp_vector_t vector, size_t size)
{
	libacp_sequence_reserve(LIBACP_VECTOR, vector.ga, size);
}

void acp_clear_vector(acp_vector_t vector)
{
	libacp_sequence_erase(LIBACP_VECTOR, vector.ga, 0, SIZE_MAX);
}

acp_ga_t acp_at_vector(acp_vector_t vector, int index)
{
	struct libacp_bytes b;

	if (!libacp_sequence_load(LIBACP_VECTOR, vector.ga, &b))
		return ACP_GA_NULL;
	if (index >= 0 && (uint64_t)index < b.size)
		return b.data + (uint64_t)index;
	errno = EINVAL;
	return ACP_GA_NULL;
}

/* ---- Changing ---- */

void acp_push_back_vector(acp_vector_t vector, const acp_ga_t ga, size_t size)
{
	libacp_sequence_insert(LIBACP_VECTOR, vector.ga, LIBACP_SEQUENCE_BACK, ga, size);
}

void acp_pop_back_vector(acp_vector_t vector, size_t size)
{
	libacp_sequence_pop_back(LIBACP_VECTOR, vector.ga, size);
}

acp_vector_it_t acp_insert_vector(acp_vector_it_t it, const acp_ga_t ga, size_t size)
{
	return libacp_sequence_insert(LIBACP_VECTOR, it.vector.ga, it.index, ga, size) ?
	       it : nowhere;
}

acp_vector_it_t acp_insert_range_vector(acp_vector_it_t it, acp_vector_it_t start,
					acp_vector_it_t end)
{
	return same(start, end) &&
	       libacp_sequence_insert_range(LIBACP_VECTOR, it.vector.ga, it.index,
					    start.vector.ga, start.index, end.index) ?
	       it : nowhere;
}

acp_vector_it_t acp_erase_vector(acp_vector_it_t it, size_t size)
{
	return libacp_sequence_erase(LIBACP_VECTOR, it.vector.ga, it.index, size) ? it : nowhere;
}

acp_vector_it_t acp_erase_range_vector(acp_vector_it_t start, acp_vector_it_t end)
{
	return same(start, end) &&
	       libacp_sequence_erase_range(LIBACP_VECTOR, start.vector.ga, start.index,
					   end.index) ?
	       start : nowhere;
}

void acp_assign_vector(acp_vector_t vector1, acp_vector_t vector2)
{
	libacp_sequence_assign(LIBACP_VECTOR, vector1.ga, vector2.ga);
}

void acp_assign_range_vector(acp_vector_t vector, acp_vector_it_t start, acp_vector_it_t end)
{
	if (same(start, end))
		libacp_sequence_assign_range(LIBACP_VECTOR, vector.ga, start.vector.ga,
					     start.index, end.index);
}

void acp_swap_vector(acp_vector_t vector1, acp_vector_t vector2)
{
	libacp_sequence_swap(LIBACP_VECTOR, vector1.ga, vector2.ga);
}

/* ---- Iterators ---- */

acp_vector_it_t acp_begin_vector(acp_vector_t vector)
{
	return iterator(vector, 0);
}

acp_vector_it_t acp_end_vector(acp_vector_t vector)
{
	struct libacp_bytes b;

	return libacp_sequence_load(LIBACP_VECTOR, vector.ga, &b) ?
	       iterator(vector, (int)b.size) : nowhere;
}

acp_vector_it_t acp_advance_vector_it(acp_vector_it_t it, int n)
{
	return libacp_sequence_advance(&it.index, n) ? it : nowhere;
}

acp_ga_t acp_dereference_vector_it(acp_vector_it_t it)
{
	return acp_at_vector(it.vector, it.index);
}

int acp_distance_vector_it(acp_vector_it_t first, acp_vector_it_t last)
{
	int distance;

	return same(first, last) &&
	       libacp_sequence_distance(first.index, last.index, &distance) ? distance : 0;
}
