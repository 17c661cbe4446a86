// SPDX-License-Identifier: MIT
/* Creation of a collective: see create.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "acp.h"
#include "coll/create.h"
#include "coll/failure.h"
#include "coll/pieces.h"
#include "coll/pool.h"
#include "coll/step.h"
#include "core/mem.h"
#include "core/process.h"
#include "middle/hash.h"
#include "middle/scratch.h"

#define PAGE		4096u

_Static_assert(sizeof(struct libacp_told) == LIBACP_EXCHANGE_WORDS * sizeof(uint64_t),
	       "it is what an exchange tells");

static const struct libacp_peer nobody = { .number = -1, .rank = -1 };

int libacp_creation_begin(struct libacp_creation *n, acpx_group_t group, const char *name,
			  libacp_algorithm_t *algorithm, acpx_coll_t *coll)
{
	const int number = acpx_group_rank(group);

	n->coll = NULL;
	if (number < 0)
		return number == -ENOENT ? -EINVAL : number;
	if (!coll)
		return -EINVAL;
	*n = (struct libacp_creation){ .coll = malloc(sizeof(*n->coll)) };
	if (!n->coll) {
		n->coll = &n->spare;
		n->error = -ENOMEM;
	}
	*n->coll = (struct acpx_coll){
		.name = name, .algorithm = algorithm, .group = libacp_group_hold(group),
		.joins = libacp.joins, .number = number, .parent = nobody, .root = nobody,
		.tree = { .size = group->count, .radix = 1 }, .lines = LIBACP_LINES,
		.lost = -ENOENT,
	};
	libacp_creation_agree(n, libacp_hash(LIBACP_HASH_KEY, name, strlen(name)));
	return 0;
}

void libacp_creation_fail(struct libacp_creation *n, int error)
{
	n->error = n->error ? n->error : error;
}

void libacp_creation_agree(struct libacp_creation *n, uint64_t value)
{
	n->agreed[n->agreed_count++] = value;
}

void libacp_creation_agree_bytes(struct libacp_creation *n, const void *bytes, size_t size)
{
	libacp_creation_agree(n, libacp_hash(LIBACP_HASH_KEY, bytes, size));
}

void libacp_creation_memory(struct libacp_creation *n, acp_ga_t ga, size_t size, bool write)
{
	if (!size)
		return;
	if (acp_query_rank(ga) != acp_rank())
		libacp_creation_fail(n, -EINVAL);
	else if (!libacp_mem_find(ga, size, write))
		libacp_creation_fail(n, -EFAULT);
}

void libacp_creation_tree(struct libacp_creation *n, int root, int radix)
{
	struct acpx_coll *c = n->coll;
	struct libacp_tree *tree = &c->tree;
	int i, child;

	libacp_creation_agree(n, (uint64_t)root);
	if (root < 0 || root >= tree->size) {
		libacp_creation_fail(n, -EINVAL);
		return;
	}
	tree->root = root;
	tree->radix = radix;
	c->root.number = root;
	c->parent.number = libacp_tree_parent(tree, c->number);
	c->child_index = c->parent.number < 0 ? 0 : libacp_tree_index(tree, c->number);
	for (i = 0; i < radix; i++) {
		child = libacp_tree_child(tree, c->number, i);
		c->children[i] = nobody;
		c->children[i].number = child;
		c->child_count += child >= 0;
	}
}

static size_t type_size(int type)
{
	static const unsigned char sizes[] = {
		[ACPX_INT32] = 4, [ACPX_INT64] = 8, [ACPX_UINT32] = 4, [ACPX_UINT64] = 8,
		[ACPX_FLOAT] = 4, [ACPX_DOUBLE] = 8,
	};

	return type >= 0 && (size_t)type < sizeof(sizes) ? sizes[type] : 0;
}

static bool is_operation(int op, int type)
{
	if (op < ACPX_SUM || op > ACPX_REPLACE)
		return false;
	return type < ACPX_FLOAT || (op != ACPX_AND && op != ACPX_OR && op != ACPX_XOR);
}

void libacp_creation_vector(struct libacp_creation *n, size_t count, size_t factor, int op,
			    int type)
{
	const size_t size = type_size(type);
	size_t bytes;

	libacp_creation_agree(n, count);
	libacp_creation_agree(n, (uint64_t)op << 32 | (uint32_t)type);
	if (!size || !is_operation(op, type) || __builtin_mul_overflow(count, size, &bytes) ||
	    __builtin_mul_overflow(bytes, factor, &n->coll->size))
		libacp_creation_fail(n, -EINVAL);
	else
		n->coll->reduce = ACP_REDUCE((uint64_t)op, type);
}

void libacp_creation_whole(struct libacp_creation *n, acp_ga_t buffer, size_t size, size_t least)
{
	struct acpx_coll *c = n->coll;

	c->dst = buffer;
	c->buffer = buffer;
	c->size = size;
	c->piece = libacp_piece_size(size, least);
	c->run = (struct acpx_block){ 0, size };
	c->runs = &c->run;
	c->run_count = size > 0;
}

void libacp_creation_brief(struct libacp_creation *n)
{
	struct acpx_coll *c = n->coll;

	c->brief = c->run_count && c->run.size <= LIBACP_BRIEF_MAX;
	if (c->brief && c->child_count)
		c->scratch_bytes = LIBACP_BRIEF_MAX;
}

int libacp_creation_radix(const struct acpx_coll *c, size_t small)
{
	if (c->size <= small)
		return LIBACP_RADIX_MAX;
	return (size_t)c->tree.size <= libacp_piece_count(c->size, c->piece) ? 1 : 2;
}

void libacp_creation_list(struct libacp_creation *n, const void *from, size_t size)
{
	if (n->error)
		return;
	n->list = libacp_scratch_get(size ? size : 1, &n->list_ga);
	if (n->list)
		memcpy(n->list, from, size);
	else
		libacp_creation_fail(n, -ENOMEM);
}

/* ---- The area ---- */

static size_t round_up(size_t size, size_t unit)
{
	return (size + unit - 1) / unit * unit;
}

static void make_area(struct libacp_creation *n)
{
	struct acpx_coll *c = n->coll;
	const size_t slots = (size_t)n->slot_users * LIBACP_SLOTS * c->piece;

	c->slots_at = round_up(libacp_line_offset(c->lines), LIBACP_LINE);
	c->scratch_at = c->slots_at + round_up(slots, LIBACP_LINE);
	c->area_bytes = round_up(c->scratch_at + c->scratch_bytes, PAGE);
	c->expected = calloc(c->lines, sizeof(*c->expected));
	c->area = aligned_alloc(PAGE, c->area_bytes);
	if (!c->area || !c->expected) {
		libacp_creation_fail(n, -ENOMEM);
		return;
	}
	memset(c->area, 0, c->scratch_at);
	c->area_key = acp_register_memory(c->area, c->area_bytes, 0);
	if (c->area_key == ACP_ATKEY_NULL)
		libacp_creation_fail(n, -ENOMEM);
	else
		c->area_ga = acp_query_ga(c->area_key, c->area);
	if (n->told_scratch)
		c->buffer = c->area_ga + c->scratch_at;
}

/* ---- The exchange ---- */

static int fill(struct libacp_exchange *x, void *state)
{
	struct libacp_told *table = x->table;
	int i;

	(void)state;
	for (i = 0; i < x->group->count; i++)
		memcpy(&table[x->members[i].number], x->members[i].words, sizeof(*table));
	return 0;
}

int libacp_creation_told(const struct libacp_exchange *x, int number, struct libacp_told *told)
{
	return libacp_exchange_read(told, libacp_exchange_at(x, number), sizeof(*told));
}

int libacp_creation_peer(struct libacp_creation *n, const struct libacp_exchange *x,
			 struct libacp_peer *peer, int number)
{
	struct libacp_told told;
	int error;

	if (number < 0)
		return 0;
	error = libacp_creation_told(x, number, &told);
	*peer = (struct libacp_peer){
		.number = number, .rank = libacp_group_at(n->coll->group, number),
		.area = told.area, .buffer = told.buffer,
	};
	return error;
}

static int learn(struct libacp_creation *n, struct libacp_exchange *x)
{
	struct acpx_coll *c = n->coll;
	int error = libacp_creation_peer(n, x, &c->parent, c->parent.number), i;

	if (!error)
		error = libacp_creation_peer(n, x, &c->root, c->root.number);
	for (i = 0; i < c->child_count && !error; i++)
		error = libacp_creation_peer(n, x, &c->children[i], c->children[i].number);
	if (!error && n->learn)
		error = n->learn(n, x);
	return error;
}

static void pass(struct libacp_round *round, const struct acp_sqe *entry,
		 const struct libacp_peer *peer)
{
	(void)round;
	(void)entry;
	(void)peer;
}

/* Is there a queue for a round? Returns 0 or -errno. */
static int try_queue(struct acpx_coll *c)
{
	struct libacp_round round = { .coll = c, .number = LIBACP_ROUND_LATER, .take = pass };
	struct libacp_pool_queue *queue = NULL;
	int error;

	libacp_round_run(&round);
	memset(c->expected, 0, c->lines * sizeof(*c->expected));
	c->entries = round.count ? round.count + c->telling + LIBACP_RADIX_MAX : 0;
	if (!c->entries)
		return 0;
	error = libacp_pool_get(c, c->entries, &queue);
	if (!error)
		libacp_pool_put(queue);
	return error;
}

static void exchange(struct libacp_creation *n)
{
	struct acpx_coll *c = n->coll;
	struct libacp_exchange x = {
		.group = c->group, .number = c->number, .entry = sizeof(struct libacp_told),
		.fill = fill,
		.words = { libacp_hash(LIBACP_HASH_KEY, n->agreed,
				       (size_t)n->agreed_count * sizeof(n->agreed[0])) | 1,
			   c->area_ga, c->buffer, n->list_ga },
	};
	int error;

	if (n->error) {
		x.words[0] = 0;
		x.words[1] = (uint64_t)-n->error;
	}
	error = libacp_exchange_begin(&x);
	if (error) {
		libacp_creation_fail(n, error);
		return;
	}
	error = learn(n, &x);
	if (!error)
		error = try_queue(c);
	libacp_creation_fail(n, libacp_exchange_confirm(&x, error));
	if (!error && n->error && x.unanswered)
		libacp_coll_abandon(c);
}

int libacp_creation_end(struct libacp_creation *n, acpx_coll_t *coll)
{
	if (!n->error)
		make_area(n);
	exchange(n);
	libacp_scratch_put(n->list);
	if (!n->error) {
		*coll = n->coll;
		return 0;
	}
	libacp_coll_release(n->coll);
	if (n->coll != &n->spare)
		free(n->coll);
	return n->error;
}
