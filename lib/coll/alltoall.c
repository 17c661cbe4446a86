// SPDX-License-Identifier: MIT
/*
 * Each member sends a block to each other one: when all have started, which a way up and down the
 * tree tells, it copies them at once, and then all tell each other that it is done. Members learn
 * where their blocks go when they create the collective: 8 bytes per member.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "acp.h"
#include "coll/create.h"
#include "coll/pieces.h"
#include "coll/step.h"

/* The block of a buffer that belongs to a member. */
static struct acpx_block block_of(const struct acpx_coll *c, const struct acpx_block *blocks,
				  int number)
{
	if (blocks)
		return blocks[number];
	return (struct acpx_block){ (size_t)number * c->size, c->size };
}

static void alltoall_round(struct libacp_round *round)
{
	struct acpx_coll *c = round->coll;
	const bool in_place = c->scratch_bytes > 0;
	const acp_ga_t from = in_place ? c->area_ga + c->scratch_at : c->src;
	const int size = c->tree.size;
	struct acpx_block block;
	uint32_t at;
	int i, to;

	if (in_place)
		libacp_step_copy(round, from, c->src, c->scratch_bytes, 0);
	at = libacp_round_down(round, libacp_round_up(round, round->count));
	for (i = 0; i < size; i++) {
		to = c->number < size - i ? c->number + i : c->number + i - size;
		block = block_of(c, c->from, to);
		libacp_step_copy(round, c->targets[to], from + block.offset, block.size, at);
	}
	libacp_round_down(round, libacp_round_up(round, round->count));
}

/* Where does a member want the block that the caller sends to it? */
static int learn_target(struct libacp_creation *n, const struct libacp_told *told, int number)
{
	const struct acpx_coll *c = n->coll;
	struct acpx_block in = block_of(c, NULL, c->number);
	int error = 0;

	if (c->from)
		error = libacp_exchange_read(&in, told->list + (size_t)c->number * sizeof(in),
					     sizeof(in));
	if (!error && in.size != block_of(c, c->from, number).size)
		error = -EPROTO;
	c->targets[number] = told->buffer + in.offset;
	return error;
}

static int learn(struct libacp_creation *n, struct libacp_exchange *x)
{
	struct acpx_coll *c = n->coll;
	struct libacp_told told;
	int error = 0, i;

	c->targets = calloc((size_t)c->tree.size, sizeof(*c->targets));
	if (!c->targets)
		return -ENOMEM;
	for (i = 0; i < c->tree.size && !error; i++) {
		error = libacp_creation_told(x, i, &told);
		if (!error)
			error = learn_target(n, &told, i);
	}
	return error;
}

static int end(struct libacp_creation *n, acp_ga_t dst, acp_ga_t src, size_t bytes,
	       acpx_coll_t *coll)
{
	struct acpx_coll *c = n->coll;

	c->buffer = dst;
	c->src = src;
	if (dst == src)
		c->scratch_bytes = bytes;
	libacp_creation_tree(n, 0, LIBACP_RADIX_MAX);
	n->learn = learn;
	return libacp_creation_end(n, coll);
}

int acpx_coll_alltoall_create(acpx_group_t group, acp_ga_t dst, acp_ga_t src, size_t size,
			      acpx_coll_t *coll)
{
	struct libacp_creation n;
	int error = libacp_creation_begin(&n, group, "alltoall", alltoall_round, coll);
	size_t all;

	if (error)
		return error;
	libacp_creation_agree(&n, size);
	n.coll->size = size;
	if (__builtin_mul_overflow(size, (size_t)n.coll->tree.size, &all)) {
		libacp_creation_fail(&n, -EINVAL);
		all = 0;
	}
	libacp_creation_memory(&n, src, all, false);
	libacp_creation_memory(&n, dst, all, true);
	return end(&n, dst, src, all, coll);
}

/* Keep the blocks of src, and let the others read those of dst. */
static void use_blocks(struct libacp_creation *n, const struct acpx_block *to,
		       const struct acpx_block *from)
{
	const size_t bytes = (size_t)n->coll->tree.size * sizeof(*from);

	n->coll->copy = malloc(bytes);
	if (n->coll->copy)
		memcpy(n->coll->copy, from, bytes);
	else
		libacp_creation_fail(n, -ENOMEM);
	n->coll->from = n->coll->copy;
	libacp_creation_list(n, to, bytes);
}

int acpx_coll_alltoallv_create(acpx_group_t group, acp_ga_t dst, const struct acpx_block *to,
			       acp_ga_t src, const struct acpx_block *from, acpx_coll_t *coll)
{
	struct libacp_creation n;
	int error = libacp_creation_begin(&n, group, "alltoallv", alltoall_round, coll);
	size_t count, bytes = 0;

	if (error)
		return error;
	if (to && from) {
		count = (size_t)n.coll->tree.size;
		bytes = libacp_blocks_end(from, count);
		libacp_creation_memory(&n, src, bytes, false);
		libacp_creation_memory(&n, dst, libacp_blocks_end(to, count), true);
		use_blocks(&n, to, from);
	} else {
		libacp_creation_fail(&n, -EINVAL);
	}
	return end(&n, dst, src, n.error ? 0 : bytes, coll);
}
