// SPDX-License-Identifier: MIT
/* The fake basic layer: effects of accesses on memory. */
#include <stdlib.h>
#include <string.h>

#include "fake_access.h"

static void write_unit(char *there, const char *here, uint64_t unit)
{
	uint64_t word = 0;

	memcpy(&word, here, unit);
	if (unit == 8)
		__atomic_store_n((uint64_t *)(void *)there, word, __ATOMIC_RELEASE);
	else if (unit == 4)
		__atomic_store_n((uint32_t *)(void *)there, (uint32_t)word, __ATOMIC_RELEASE);
	else
		__atomic_store_n(there, *here, __ATOMIC_RELEASE);
}

static void read_unit(const char *there, char *here, uint64_t unit)
{
	uint64_t word;

	if (unit == 8)
		word = __atomic_load_n((const uint64_t *)(const void *)there, __ATOMIC_ACQUIRE);
	else if (unit == 4)
		word = __atomic_load_n((const uint32_t *)(const void *)there, __ATOMIC_ACQUIRE);
	else
		word = (unsigned char)__atomic_load_n(there, __ATOMIC_ACQUIRE);
	memcpy(here, &word, unit);
}

static bool in_part(const struct fake_access *x, uint64_t at, enum fake_part part)
{
	return part == FAKE_ALL || (x->halves >> at / 8 % 64 & 1) == (part == FAKE_REST);
}

/*
 * Copy bytes between memory and the data of an access. Aligned words are not torn. False: not
 * registered any more.
 */
static bool move(struct fake_access *x, const struct fake_place *place, bool write,
		 enum fake_part part)
{
	uint64_t at = 0, room, unit;
	char *there;

	while (at < x->size) {
		there = fake_bytes(place, at, &room);
		if (!there)
			return false;
		room = room < x->size - at ? room : x->size - at;
		for (; room; at += unit, there += unit, room -= unit) {
			unit = room >= 8 && (uintptr_t)there % 8 == 0 ? 8 :
			       room >= 4 && (uintptr_t)there % 4 == 0 ? 4 : 1;
			if (!in_part(x, at, part))
				continue;
			if (write)
				write_unit(there, x->data + at, unit);
			else
				read_unit(there, x->data + at, unit);
		}
	}
	return true;
}

static uint64_t change8(enum acp_op op, uint64_t *word, uint64_t a, uint64_t b)
{
	uint64_t old = __atomic_load_n(word, __ATOMIC_SEQ_CST), new;

	do {
		new = op == ACP_OP_CAS8 ? (old == a ? b : old) : op == ACP_OP_SWAP8 ? a :
		      op == ACP_OP_ADD8 ? old + a : op == ACP_OP_XOR8 ? old ^ a :
		      op == ACP_OP_OR8 ? old | a : old & a;
	} while (!__atomic_compare_exchange_n(word, &old, new, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_SEQ_CST));
	return old;
}

static uint32_t change4(enum acp_op op, uint32_t *word, uint32_t a, uint32_t b)
{
	uint32_t old = __atomic_load_n(word, __ATOMIC_SEQ_CST), new;

	do {
		new = op == ACP_OP_CAS4 ? (old == a ? b : old) : op == ACP_OP_SWAP4 ? a :
		      op == ACP_OP_ADD4 ? old + a : op == ACP_OP_XOR4 ? old ^ a :
		      op == ACP_OP_OR4 ? old | a : old & a;
	} while (!__atomic_compare_exchange_n(word, &old, new, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_SEQ_CST));
	return old;
}

bool fake_local_rank(int rank)
{
	return acpx_query_node(rank) == acpx_query_node(fake_rank);
}

/* Check whether the address can be reached. */
static int reach(acp_ga_t ga, uint64_t size, unsigned int access, struct fake_place *place)
{
	int status = fake_where(ga, size, access, place);

	if (status)
		return status;
	if (fake_is_cut(fake_rank, place->rank))
		return ACPX_ETIMEOUT;
	if (fake_is_dead(place->rank) && !(fake_local_rank(place->rank) && place->fixed))
		return ACPX_ERANK;
	return 0;
}

int fake_read_source(struct fake_access *x, enum fake_part part)
{
	bool atomic = x->op != ACP_OP_COPY;
	struct fake_place place, dst;
	uint64_t room;
	char *word;
	int status = reach(x->src, x->size, atomic ? ACPX_ACCESS_ATOMIC : ACPX_ACCESS_READ, &place);

	if (!status)
		status = fake_where(x->dst, x->size, ACPX_ACCESS_WRITE, &dst);
	if (!status && atomic && (x->src % x->size || x->dst % x->size))
		status = ACPX_EALIGN;
	if (status)
		return status;
	if (!x->data)
		x->data = malloc(x->size + 1);
	if (!x->data)
		abort();
	if (!atomic)
		return move(x, &place, false, part) ? 0 : ACPX_ESTAG;
	word = fake_bytes(&place, 0, &room);
	if (!word)
		return ACPX_ESTAG;
	if (x->size == 8)
		*(uint64_t *)(void *)x->data = change8(x->op, (uint64_t *)(void *)word, x->a,
						       x->b);
	else
		*(uint32_t *)(void *)x->data = change4(x->op, (uint32_t *)(void *)word,
						       (uint32_t)x->a, (uint32_t)x->b);
	return 0;
}

int fake_write_destination(struct fake_access *x, enum fake_part part)
{
	struct fake_place place;
	int status = reach(x->dst, x->size, ACPX_ACCESS_WRITE, &place);

	if (status)
		return status;
	return move(x, &place, true, part) ? 0 : ACPX_ESTAG;
}
