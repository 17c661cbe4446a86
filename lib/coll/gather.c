// SPDX-License-Identifier: MIT
/*
 * Gather, scatter, allgather. The root tells all, through the tree, that it has started; each
 * member copies its block to or from the buffer of the root; and all tell the root, through the
 * tree, that this is done. Of an allgather, the root is member 0, which then sends its buffer to
 * all.
 */
#include <errno.h>
#include <stdlib.h>

#include "acp.h"
#include "coll/create.h"
#include "coll/pieces.h"
#include "coll/step.h"

#define SPREAD	(64u << 10)		/* bytes of a piece of an allgather */

static void gather_round(struct libacp_round *round)
{
	struct acpx_coll *c = round->coll;
	const uint32_t at = libacp_round_down(round, 0);

	libacp_step_copy(round, c->root.buffer + c->block.offset, c->src, c->block.size, at);
	libacp_round_up(round, round->count);
}

static void scatter_round(struct libacp_round *round)
{
	struct acpx_coll *c = round->coll;
	const uint32_t at = libacp_round_down(round, 0);

	libacp_step_copy(round, c->dst, c->root.buffer + c->block.offset, c->block.size, at);
	libacp_round_up(round, round->count);
}

static void allgather_round(struct libacp_round *round)
{
	gather_round(round);
	libacp_round_spread_behind(round, round->coll->dst, round->count);
}

/* ---- Creation: all blocks have the same size ---- */

/* The size of all blocks; sets that of the caller. */
static size_t same_blocks(struct libacp_creation *n, size_t size)
{
	struct acpx_coll *c = n->coll;
	size_t all;

	libacp_creation_agree(n, size);
	if (__builtin_mul_overflow(size, (size_t)c->tree.size, &all)) {
		libacp_creation_fail(n, -EINVAL);
		return 0;
	}
	c->block = (struct acpx_block){ (size_t)c->number * size, size };
	return all;
}

int acpx_coll_gather_create(acpx_group_t group, int root, acp_ga_t dst, acp_ga_t src, size_t size,
			    acpx_coll_t *coll)
{
	struct libacp_creation n;
	int error = libacp_creation_begin(&n, group, "gather", gather_round, coll);
	size_t all;

	if (error)
		return error;
	all = same_blocks(&n, size);
	n.coll->buffer = dst;
	n.coll->src = src;
	libacp_creation_memory(&n, src, size, false);
	if (n.coll->number == root)
		libacp_creation_memory(&n, dst, all, true);
	libacp_creation_tree(&n, root, LIBACP_RADIX_MAX);
	return libacp_creation_end(&n, coll);
}

int acpx_coll_scatter_create(acpx_group_t group, int root, acp_ga_t dst, acp_ga_t src, size_t size,
			     acpx_coll_t *coll)
{
	struct libacp_creation n;
	int error = libacp_creation_begin(&n, group, "scatter", scatter_round, coll);
	size_t all;

	if (error)
		return error;
	all = same_blocks(&n, size);
	n.coll->buffer = src;
	n.coll->dst = dst;
	libacp_creation_memory(&n, dst, size, true);
	if (n.coll->number == root)
		libacp_creation_memory(&n, src, all, false);
	libacp_creation_tree(&n, root, LIBACP_RADIX_MAX);
	return libacp_creation_end(&n, coll);
}

/* Member 0 sends its whole buffer to all. */
static int end_allgather(struct libacp_creation *n, acpx_coll_t *coll)
{
	if (!n->error)
		n->coll->lines += libacp_round_pieces(n->coll);
	libacp_creation_tree(n, 0, libacp_creation_radix(n->coll, SPREAD));
	return libacp_creation_end(n, coll);
}

int acpx_coll_allgather_create(acpx_group_t group, acp_ga_t dst, acp_ga_t src, size_t size,
			       acpx_coll_t *coll)
{
	struct libacp_creation n;
	int error = libacp_creation_begin(&n, group, "allgather", allgather_round, coll);
	size_t all;

	if (error)
		return error;
	all = same_blocks(&n, size);
	libacp_creation_whole(&n, dst, all, SPREAD);
	n.coll->src = src;
	libacp_creation_memory(&n, src, size, false);
	libacp_creation_memory(&n, dst, all, true);
	return end_allgather(&n, coll);
}

/* ---- Creation: each block has a size ---- */

/* Check blocks in memory of the caller. Returns where they end, in bytes. */
static size_t check_blocks(struct libacp_creation *n, acp_ga_t ga, const struct acpx_block *blocks,
			   bool write)
{
	size_t end = 0;

	if (blocks)
		end = libacp_blocks_end(blocks, (size_t)n->coll->tree.size);
	else
		libacp_creation_fail(n, -EINVAL);
	libacp_creation_memory(n, ga, end, write);
	return end;
}

/* Read the own block from the list of the root. */
static int learn_block(struct libacp_creation *n, struct libacp_exchange *x)
{
	struct acpx_coll *c = n->coll;
	struct libacp_told told;
	struct acpx_block block = { 0, 0 };
	int error = libacp_creation_told(x, c->tree.root, &told);

	if (!error)
		error = libacp_exchange_read(&block,
					     told.list + (size_t)c->number * sizeof(block),
					     sizeof(block));
	if (!error && block.size != c->block.size)
		error = -EPROTO;
	c->block.offset = block.offset;
	return error;
}

/* The buffer of the root has blocks, which are read by the others. */
static int end_blocks(struct libacp_creation *n, int root, const struct acpx_block *blocks,
		      size_t size, acpx_coll_t *coll)
{
	struct acpx_coll *c = n->coll;

	c->block = (struct acpx_block){ 0, size };
	libacp_creation_tree(n, root, LIBACP_RADIX_MAX);
	if (c->number == root)
		libacp_creation_list(n, blocks, (size_t)c->tree.size * sizeof(*blocks));
	n->learn = learn_block;
	return libacp_creation_end(n, coll);
}

int acpx_coll_gatherv_create(acpx_group_t group, int root, acp_ga_t dst,
			     const struct acpx_block *blocks, acp_ga_t src, size_t size,
			     acpx_coll_t *coll)
{
	struct libacp_creation n;
	int error = libacp_creation_begin(&n, group, "gatherv", gather_round, coll);

	if (error)
		return error;
	n.coll->buffer = dst;
	n.coll->src = src;
	libacp_creation_memory(&n, src, size, false);
	if (n.coll->number == root)
		check_blocks(&n, dst, blocks, true);
	return end_blocks(&n, root, blocks, size, coll);
}

int acpx_coll_scatterv_create(acpx_group_t group, int root, acp_ga_t dst, size_t size,
			      acp_ga_t src, const struct acpx_block *blocks, acpx_coll_t *coll)
{
	struct libacp_creation n;
	int error = libacp_creation_begin(&n, group, "scatterv", scatter_round, coll);

	if (error)
		return error;
	n.coll->buffer = src;
	n.coll->dst = dst;
	libacp_creation_memory(&n, dst, size, true);
	if (n.coll->number == root)
		check_blocks(&n, src, blocks, false);
	return end_blocks(&n, root, blocks, size, coll);
}

/* What member 0 sends to all: the blocks, and not what is between them. */
static void use_runs(struct libacp_creation *n, const struct acpx_block *blocks)
{
	struct acpx_coll *c = n->coll;
	const size_t size = (size_t)c->tree.size;
	struct acpx_block *runs = calloc(size, sizeof(*runs));

	if (!runs || !blocks) {
		free(runs);
		libacp_creation_fail(n, -ENOMEM);
		return;
	}
	c->run_count = libacp_blocks_join(runs, blocks, size);
	c->runs = runs;
	if (c->run_count <= 1) {
		c->run = runs[0];
		c->runs = &c->run;
		free(runs);
	}
	c->block = blocks[c->number];
}

int acpx_coll_allgatherv_create(acpx_group_t group, acp_ga_t dst, const struct acpx_block *blocks,
				acp_ga_t src, acpx_coll_t *coll)
{
	struct libacp_creation n;
	int error = libacp_creation_begin(&n, group, "allgatherv", allgather_round, coll);
	size_t end;

	if (error)
		return error;
	end = check_blocks(&n, dst, blocks, true);
	libacp_creation_whole(&n, dst, end, SPREAD);
	n.coll->src = src;
	if (blocks) {
		libacp_creation_agree_bytes(&n, blocks,
					    (size_t)n.coll->tree.size * sizeof(*blocks));
		use_runs(&n, blocks);
	}
	libacp_creation_memory(&n, src, n.coll->block.size, false);
	return end_allgather(&n, coll);
}
