// SPDX-License-Identifier: MIT
/*
 * Reductions through a tree. A member combines, piece by piece, what its children have put into
 * its slots: its own numbers first, then those of child 0, of child 1, and so on. A leaf sends its
 * own numbers. The slot of a child is used again when the member has told the child, by a credit,
 * that it has combined what was there. Credits for what was sent in former rounds are given at the
 * beginning of the round in which the child waits for them: no member writes to a child that has
 * ended its last round, and may have freed its area.
 *
 * A piece is sent to the parent after the next one has been combined: the wait for a piece then
 * does not wait for the end of sending the piece before it.
 */
#include <errno.h>

#include "acp.h"
#include "coll/create.h"
#include "coll/pieces.h"
#include "coll/step.h"

#define PIECE	4096u			/* bytes; the kernel combines so many at once */

/* The way of a vector to the root. */
struct way {
	struct libacp_round *round;
	acp_ga_t result;		/* of the caller: a whole vector, or ACP_GA_NULL: scratch */
	uint64_t first;			/* number of the first piece, over all rounds */
	uint32_t sent;			/* the last entry that has sent a piece */
	uint32_t done[LIBACP_PIECES_MAX];	/* entries: the pieces are combined */
};

static bool is_leaf(const struct acpx_coll *c)
{
	return !c->child_count && c->parent.number >= 0;
}

static struct acpx_block piece_at(const struct acpx_coll *c, size_t q)
{
	const struct acpx_block all = { 0, c->size };

	return libacp_piece_at(&all, c->piece, q);
}

/* The address of the slot of a child, in the area of its parent. */
static acp_ga_t slot_at(const struct acpx_coll *c, acp_ga_t area, int child, uint64_t piece)
{
	const uint64_t slot = (uint64_t)child * LIBACP_SLOTS + piece % LIBACP_SLOTS;

	return area + c->slots_at + slot * c->piece;
}

/* The counter of that slot. */
static uint32_t slot_line(int child, uint64_t piece)
{
	return LIBACP_LINE_SLOT + (uint32_t)child * LIBACP_SLOTS + piece % LIBACP_SLOTS;
}

static uint32_t credit_line(uint64_t piece)
{
	return LIBACP_LINE_CREDIT + piece % LIBACP_SLOTS;
}

/* Where the caller combines piece q, or has it. */
static acp_ga_t result_at(const struct way *w, size_t q)
{
	const struct acpx_coll *c = w->round->coll;

	if (is_leaf(c))
		return c->src + q * c->piece;
	if (w->result != ACP_GA_NULL)
		return w->result + q * c->piece;
	return c->area_ga + c->scratch_at + q % 2 * c->piece;
}

/* Must a child wait for a credit before it sends piece q? */
static bool needs_credit(const struct way *w, size_t q)
{
	return q >= LIBACP_SLOTS || (w->round->coll->loose && w->first + q >= LIBACP_SLOTS);
}

static void give_credits(struct way *w, size_t q, uint32_t order)
{
	struct acpx_coll *c = w->round->coll;
	int i;

	for (i = 0; i < c->child_count; i++)
		libacp_step_add(w->round, &c->children[i], credit_line(w->first + q), order);
}

static void combine(struct way *w, size_t q)
{
	struct libacp_round *round = w->round;
	struct acpx_coll *c = round->coll;
	const struct acpx_block piece = piece_at(c, q);
	const acp_ga_t result = result_at(w, q);
	uint32_t at;
	int i;

	at = w->sent;
	if (!c->seeded)
		at = libacp_step_copy(round, result, c->src + piece.offset, piece.size, at);
	for (i = 0; i < c->child_count; i++) {
		libacp_step_wait(round, slot_line(i, w->first + q), 1, &c->children[i], 1);
		at = libacp_step_reduce(round, result,
					slot_at(c, c->area_ga, i, w->first + q), piece.size,
					round->count);
	}
	w->done[q] = at;
}

static void send_up(struct way *w, size_t q)
{
	struct libacp_round *round = w->round;
	struct acpx_coll *c = round->coll;
	const uint64_t number = w->first + q;
	uint32_t at = w->done[q];
	libacp_send_t *send;

	if (c->parent.number < 0)
		return;
	if (needs_credit(w, q))
		at = libacp_step_wait(round, credit_line(number), 1, &c->parent, 1);
	/* What the parent sends acknowledges it: so the end of the round waits for that, too. */
	send = c->brief ? libacp_step_send_lazily : libacp_step_send;
	w->sent = send(round, &c->parent, slot_at(c, c->parent.area, c->child_index, number),
		       result_at(w, q), piece_at(c, q).size, slot_line(c->child_index, number),
		       at);
}

static void go_up(struct way *w)
{
	struct acpx_coll *c = w->round->coll;
	const size_t count = libacp_piece_count(c->size, c->piece);
	size_t q;

	w->first = (w->round->number - 1) * count;
	w->sent = 0;
	for (q = 0; q < LIBACP_SLOTS && q < count; q++)
		if (needs_credit(w, q))
			give_credits(w, q, 0);
	for (q = 0; q < count; q++) {
		combine(w, q);
		if (q + LIBACP_SLOTS < count)
			give_credits(w, q + LIBACP_SLOTS, w->done[q]);
		if (q)
			send_up(w, q - 1);
	}
	if (count)
		send_up(w, count - 1);
}

/* ---- Rounds ---- */

static void reduce_round(struct libacp_round *round)
{
	const struct acpx_coll *c = round->coll;
	struct way w = {
		.round = round, .result = c->parent.number < 0 ? c->dst : ACP_GA_NULL,
	};

	go_up(&w);
}

/* A child has sent all its pieces before it gets one, so the parent may write to its dst. */
static void allreduce_round(struct libacp_round *round)
{
	struct way w = { .round = round, .result = round->coll->dst };

	go_up(&w);
	libacp_round_spread(round, round->coll->dst, w.done);
}

/* The root combines in its area, from where all fetch their blocks. */
static void reduce_scatter_round(struct libacp_round *round)
{
	struct acpx_coll *c = round->coll;
	struct way w = {
		.round = round, .result = c->parent.number < 0 ? c->buffer : ACP_GA_NULL,
	};
	uint32_t at;

	go_up(&w);
	at = libacp_round_down(round, round->count);
	libacp_step_copy(round, c->dst, c->root.buffer + c->block.offset, c->block.size, at);
	/* In the next round, the parent waits for the caller, which waits for its children. */
	libacp_round_up_promptly(round, round->count);
}

/* ---- Creation ---- */

/* A vector goes to the root in pieces through slots. */
static void use_slots(struct libacp_creation *n, int root, bool scratch)
{
	struct acpx_coll *c = n->coll;

	libacp_creation_tree(n, root, libacp_creation_radix(c, PIECE));
	n->slot_users = (uint32_t)c->child_count;
	if (c->child_count && c->parent.number >= 0 && scratch)
		c->scratch_bytes = 2 * c->piece;
}

int acpx_coll_reduce_create(acpx_group_t group, int root, acp_ga_t dst, acp_ga_t src,
			    size_t count, int op, int type, acpx_coll_t *coll)
{
	struct libacp_creation n;
	int error = libacp_creation_begin(&n, group, "reduce", reduce_round, coll);

	if (error)
		return error;
	libacp_creation_vector(&n, count, 1, op, type);
	libacp_creation_whole(&n, dst, n.coll->size, PIECE);
	n.coll->src = src;
	n.coll->loose = true;
	libacp_creation_memory(&n, src, n.coll->size, false);
	if (n.coll->number == root)
		libacp_creation_memory(&n, dst, n.coll->size, true);
	use_slots(&n, root, true);
	return libacp_creation_end(&n, coll);
}

int acpx_coll_allreduce_create(acpx_group_t group, acp_ga_t dst, acp_ga_t src, size_t count,
			       int op, int type, acpx_coll_t *coll)
{
	struct libacp_creation n;
	int error = libacp_creation_begin(&n, group, "allreduce", allreduce_round, coll);
	struct acpx_coll *c = n.coll;

	if (error)
		return error;
	libacp_creation_vector(&n, count, 1, op, type);
	libacp_creation_whole(&n, dst, c->size, PIECE);
	c->src = src;
	libacp_creation_memory(&n, src, c->size, false);
	libacp_creation_memory(&n, dst, c->size, true);
	c->lines += libacp_round_pieces(c);
	use_slots(&n, 0, false);
	libacp_creation_brief(&n);
	c->seeds = c->child_count > 0;
	return libacp_creation_end(&n, coll);
}

int acpx_coll_reduce_scatter_create(acpx_group_t group, acp_ga_t dst, acp_ga_t src, size_t count,
				    int op, int type, acpx_coll_t *coll)
{
	struct libacp_creation n;
	int error = libacp_creation_begin(&n, group, "reduce_scatter", reduce_scatter_round, coll);
	struct acpx_coll *c = n.coll;
	size_t share;

	if (error)
		return error;
	libacp_creation_vector(&n, count, (size_t)c->tree.size, op, type);
	share = c->size / (size_t)c->tree.size;
	libacp_creation_whole(&n, ACP_GA_NULL, c->size, PIECE);
	c->dst = dst;
	c->src = src;
	c->block = (struct acpx_block){ (size_t)c->number * share, share };
	libacp_creation_memory(&n, src, c->size, false);
	libacp_creation_memory(&n, dst, share, true);
	use_slots(&n, 0, true);
	n.told_scratch = c->number == 0;
	if (n.told_scratch)
		c->scratch_bytes = c->size;
	return libacp_creation_end(&n, coll);
}
