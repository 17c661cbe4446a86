// SPDX-License-Identifier: MIT
/* Transfers: see transfer.h. */
#include <errno.h>
#include <string.h>

#include "acp.h"
#include "acp_abi.h"
#include "coll/pieces.h"
#include "coll/pool.h"
#include "coll/step.h"
#include "middle/hash.h"

#define UNIT		((uint64_t)1 << 16)	/* of tagged counters */
#define PIECE		(64u << 10)		/* bytes */

/* ---- The tree: all ask for the same ---- */

/* Where a member has what it transfers. */
static acp_ga_t base_of(const struct acpx_coll *c)
{
	return libacp_is_buffered(&c->transfer) ? c->area_ga + c->scratch_at : c->dst;
}

/* Wait until all children are ready, as the counters of their slots tell. */
static uint32_t await_slots(struct libacp_round *round, uint32_t order)
{
	struct acpx_coll *c = round->coll;
	uint32_t at = order;
	int i;

	for (i = 0; i < c->child_count; i++)
		at = libacp_step_wait(round, LIBACP_LINE_SLOT + LIBACP_SLOTS * (uint32_t)i, 1,
				      &c->children[i], 1);
	return at;
}

static void tell_parent(struct libacp_round *round, uint32_t order)
{
	struct acpx_coll *c = round->coll;

	if (c->parent.number >= 0)
		libacp_step_add(round, &c->parent,
				LIBACP_LINE_SLOT + LIBACP_SLOTS * (uint32_t)c->child_index, order);
}

void libacp_bcast_transfer(struct libacp_round *round)
{
	tell_parent(round, 0);
	libacp_round_spread_behind(round, base_of(round->coll), await_slots(round, 0));
}

/* Send the parts of all members, with gaps, from the root to all. */
static void spread_parts(struct libacp_round *round, acp_ga_t base, uint32_t order)
{
	struct acpx_coll *c = round->coll;
	const struct libacp_transfer *t = &c->transfer;
	uint32_t at = order;
	int i;

	if (c->parent.number >= 0)
		at = libacp_step_wait(round, LIBACP_LINE_MORE, 1, &c->parent, 1);
	for (i = 0; i < c->child_count; i++)
		libacp_step_blocks(round, c->children[i].buffer + t->offset, base + t->offset,
				   t->size, c->tree.size, t->part, at);
	at = round->count;
	/* Promptly: in the next round, children send nothing before the caller has told them. */
	for (i = 0; i < c->child_count; i++)
		libacp_step_add_promptly(round, &c->children[i], LIBACP_LINE_MORE, at);
}

void libacp_allgather_transfer(struct libacp_round *round)
{
	struct acpx_coll *c = round->coll;
	const acp_ga_t base = base_of(c);
	const uint32_t at = libacp_round_down(round, 0);

	libacp_step_copy(round, c->root.buffer + c->block.offset, base + c->block.offset,
			 c->block.size, at);
	await_slots(round, round->count);
	tell_parent(round, round->count);
	if (c->run.size)
		libacp_round_spread_behind(round, base, round->count);
	else
		spread_parts(round, base, round->count);
}

/* ---- Roots that drive: copies between any two members, along a binary tree ---- */

/* Entry i of the round is the copy to member i, counted from the caller. */
static void drive(struct libacp_round *round, size_t offset)
{
	struct acpx_coll *c = round->coll;
	const struct libacp_transfer *t = &c->transfer;
	const int size = c->tree.size;
	const struct libacp_tree tree = { .size = size, .root = c->number, .radix = 2 };
	struct libacp_peer peer;
	int i, number;

	for (i = 1; i < size; i++) {
		number = libacp_tree_number(&tree, i);
		peer = (struct libacp_peer){
			number, libacp_group_at(c->group, number), t->areas[number],
			t->arrays[number],
		};
		number = libacp_tree_parent(&tree, number);
		libacp_step_send(round, &peer, peer.buffer + offset, t->arrays[number] + offset,
				 t->size, c->tagged, (uint32_t)(i - 1) / 2);
	}
}

void libacp_bcast_driven(struct libacp_round *round)
{
	struct acpx_coll *c = round->coll;
	const struct libacp_peer from[] = { c->root, c->parent };

	if (c->transfer.areas)
		drive(round, c->transfer.offset);
	else
		libacp_step_wait(round, LIBACP_LINE_DOWN, 1, from, 2);
}

void libacp_allgather_driven(struct libacp_round *round)
{
	struct acpx_coll *c = round->coll;
	const struct libacp_transfer *t = &c->transfer;
	struct libacp_peer peer = { .number = -1 };
	int i;

	drive(round, (size_t)c->number * t->part + t->offset);
	for (i = 0; i < c->tree.size; i++) {
		if (i == c->number)
			continue;
		peer.number = i;
		peer.rank = libacp_group_at(c->group, i);
		libacp_step_wait(round, LIBACP_LINE_MORE + (uint32_t)i, t->size, &peer, 1);
	}
}

/* ---- What a round transfers ---- */

static void set_tag(struct acpx_coll *c)
{
	struct libacp_transfer *t = &c->transfer;
	const uint64_t what[] = { t->offset, t->size, t->done };
	uint64_t hash = libacp_hash(LIBACP_HASH_KEY, what, sizeof(what));

	hash ^= hash >> 32;
	hash = (hash ^ hash >> 16) & (UNIT - 1);
	c->unit = UNIT;
	c->step = UNIT + hash - t->tag;
	t->tag = hash;
}

void libacp_transfer_set(struct acpx_coll *c, size_t offset, size_t size)
{
	struct libacp_transfer *t = &c->transfer;
	const size_t part = libacp_is_buffered(t) ? size : t->part;
	const bool whole = size == part;

	if (libacp_is_bcast(t)) {
		c->run = (struct acpx_block){ offset, size };
	} else {
		c->block = (struct acpx_block){ (size_t)c->number * part + offset, size };
		c->run = (struct acpx_block){ 0, whole ? size * (size_t)c->tree.size : 0 };
	}
	c->piece = libacp_piece_size(c->run.size, PIECE);
	if (t->driven) {
		c->unit = 1;
		c->step = size;
	} else {
		set_tag(c);
	}
}

/* Bytes that a round of a buffered transfer takes of each array or part. */
static size_t chunk_of(const struct acpx_coll *c)
{
	const struct libacp_transfer *t = &c->transfer;
	const size_t left = t->size - t->done;

	return left < t->part ? left : t->part;
}

void libacp_transfer_fill(struct acpx_coll *c)
{
	struct libacp_transfer *t = &c->transfer;
	char *buffer = (char *)c->area + c->scratch_at;
	const size_t own = (size_t)c->number;

	t->chunk = chunk_of(c);
	if (!libacp_is_bcast(t))
		memcpy(buffer + own * t->chunk, t->array + own * t->size + t->done, t->chunk);
	else if (c->parent.number < 0)
		memcpy(buffer, t->array + t->done, t->chunk);
	libacp_transfer_set(c, 0, t->chunk);
}

/* Take what has arrived out of the buffer. */
static void empty(struct acpx_coll *c)
{
	struct libacp_transfer *t = &c->transfer;
	const char *buffer = (const char *)c->area + c->scratch_at;
	int i;

	for (i = 0; i < c->tree.size && !libacp_is_bcast(t); i++)
		if (i != c->number)
			memcpy(t->array + (size_t)i * t->size + t->done,
			       buffer + (size_t)i * t->chunk, t->chunk);
	if (libacp_is_bcast(t) && c->parent.number >= 0)
		memcpy(t->array + t->done, buffer, t->chunk);
}

/* ---- The end of a round ---- */

static uint64_t counter(const struct acpx_coll *c, uint32_t line)
{
	const char *word = (const char *)c->area + libacp_line_offset(line);

	return __atomic_load_n((const uint64_t *)(const void *)word, __ATOMIC_ACQUIRE);
}

bool libacp_transfer_more(struct acpx_coll *c)
{
	struct libacp_transfer *t = &c->transfer;

	if (!libacp_is_buffered(t))
		return false;
	empty(c);
	t->done += t->chunk;
	if (t->done == t->size)
		return false;
	libacp_transfer_fill(c);
	return true;
}

/* Is another tag in a counter? Not if the other member is further. It may have revoked it since. */
static bool differs(const struct acpx_coll *c, uint32_t line)
{
	const uint64_t value = counter(c, line) & ~ACP_WORD_REVOKED, expected = c->expected[line];

	return value >= expected && value - expected < UNIT && value - expected != c->transfer.tag;
}

bool libacp_transfer_differs(const struct acpx_coll *c)
{
	int i;

	if (!libacp_is_transfer(&c->transfer) || c->transfer.driven)
		return false;
	for (i = 0; i < c->child_count; i++)
		if (differs(c, LIBACP_LINE_SLOT + LIBACP_SLOTS * (uint32_t)i))
			return true;
	return c->parent.number >= 0 && differs(c, c->tagged);
}

void libacp_transfer_widen(struct acpx_coll *c)
{
	if (!libacp_is_transfer(&c->transfer) || c->transfer.driven)
		return;
	c->run = (struct acpx_block){ 0, c->size };
	c->piece = libacp_piece_size(c->size, PIECE);
}

/* ---- A receiver of a broadcast that the root drives ---- */

bool libacp_transfer_arrives(const struct acpx_coll *c)
{
	return c->transfer.type == LIBACP_BCAST_DIRECT && c->transfer.driven &&
	       c->parent.number >= 0;
}

bool libacp_transfer_take(struct acpx_coll *c)
{
	const uint64_t value = counter(c, LIBACP_LINE_DOWN);
	struct libacp_transfer *t = &c->transfer;

	if (ACP_WORD_REVOKED_FOR(value, t->arrived))
		return false;
	t->size = value - t->arrived;
	t->arrived = value;
	c->expected[LIBACP_LINE_DOWN] = value;
	return true;
}

static int fail(struct acpx_coll *c, int lost)
{
	c->state = LIBACP_COLL_FAILED;
	c->error = -EHOSTDOWN;
	c->lost = lost;
	return c->error;
}

int libacp_transfer_test(struct acpx_coll *c)
{
	uint64_t value;
	bool down;

	if (!libacp_transfer_arrives(c))
		return 1;
	if (!libacp_coll_is_current(c))
		return -ENOTCONN;
	down = acpx_peer_state(c->root.rank) == ACPX_PEER_DOWN;
	value = counter(c, LIBACP_LINE_DOWN);
	if (ACP_WORD_REVOKED_FOR(value, c->transfer.arrived))
		return fail(c, -ENOENT);
	if (value != c->transfer.arrived)
		return 1;
	return down ? fail(c, c->root.rank) : 0;
}

int libacp_transfer_receive(struct acpx_coll *c)
{
	return libacp_transfer_take(c) ? 0 : fail(c, -ENOENT);
}

int libacp_transfer_give_up(struct acpx_coll *c)
{
	int result;

	libacp_pool_remove(c->queue);
	c->queue = NULL;
	c->state = LIBACP_COLL_IDLE;
	c->expected[LIBACP_LINE_DOWN] = c->transfer.arrived;
	result = libacp_transfer_test(c);
	if (result <= 0)
		return result ? result : -ETIMEDOUT;
	return libacp_transfer_receive(c);
}
