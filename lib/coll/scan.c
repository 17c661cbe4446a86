// SPDX-License-Identifier: MIT
/*
 * Scans: a chain in the order of numbers. A member gets the combination of all before it in a slot,
 * combines it with its own numbers, and sends that on. Slots are used again by credits, which are
 * given as in reduce.c.
 */
#include "acp.h"
#include "coll/create.h"
#include "coll/pieces.h"
#include "coll/step.h"

#define PIECE	4096u			/* bytes */

/* A piece on its way through the caller. */
struct part {
	struct libacp_round *round;
	struct acpx_block piece;
	uint64_t number;		/* over all rounds */
	bool last;			/* of those that use the slot in this round */
	acp_ga_t slot;			/* that of the caller */
};

static acp_ga_t slot_at(const struct acpx_coll *c, acp_ga_t area, uint64_t number)
{
	return area + c->slots_at + number % LIBACP_SLOTS * c->piece;
}

static uint32_t slot_line(uint64_t number)
{
	return LIBACP_LINE_SLOT + number % LIBACP_SLOTS;
}

static uint32_t credit_line(uint64_t number)
{
	return LIBACP_LINE_CREDIT + number % LIBACP_SLOTS;
}

static bool is_first(const struct acpx_coll *c)
{
	return c->parent.number < 0;
}

static uint32_t await_slot(const struct part *p)
{
	struct acpx_coll *c = p->round->coll;

	return libacp_step_wait(p->round, slot_line(p->number), 1, &c->parent, 1);
}

/* Send a piece on, and let the member before the caller use the slot again. */
static void pass_on(const struct part *p, acp_ga_t from, uint32_t order)
{
	struct acpx_coll *c = p->round->coll;
	uint32_t at = order;

	if (c->child_count) {
		if (p->number >= LIBACP_SLOTS)
			at = libacp_step_wait(p->round, credit_line(p->number), 1, &c->children[0],
					      1);
		libacp_step_send(p->round, &c->children[0],
				 slot_at(c, c->children[0].area, p->number), from, p->piece.size,
				 slot_line(p->number), at);
	}
	if (!is_first(c) && !p->last)
		libacp_step_add(p->round, &c->parent, credit_line(p->number), p->round->count);
}

static void scan_part(const struct part *p)
{
	struct acpx_coll *c = p->round->coll;
	const acp_ga_t src = c->src + p->piece.offset, dst = c->dst + p->piece.offset;
	uint32_t at;

	if (is_first(c)) {
		libacp_step_copy(p->round, dst, src, p->piece.size, 0);
		pass_on(p, src, 0);
		return;
	}
	at = libacp_step_reduce(p->round, p->slot, src, p->piece.size, await_slot(p));
	at = libacp_step_copy(p->round, dst, p->slot, p->piece.size, at);
	pass_on(p, p->slot, at);
}

/* dst may be src, so it is written after the combination. */
static void exscan_part(const struct part *p)
{
	struct acpx_coll *c = p->round->coll;
	const acp_ga_t src = c->src + p->piece.offset, dst = c->dst + p->piece.offset;
	const acp_ga_t next = c->area_ga + c->scratch_at;
	uint32_t at;

	if (is_first(c)) {
		pass_on(p, src, 0);
		return;
	}
	at = await_slot(p);
	if (c->child_count) {
		at = libacp_step_copy(p->round, next, p->slot, p->piece.size, at);
		at = libacp_step_reduce(p->round, next, src, p->piece.size, at);
	}
	at = libacp_step_copy(p->round, dst, p->slot, p->piece.size, at);
	pass_on(p, next, at);
}

static void for_parts(struct libacp_round *round, void (*what)(const struct part *p))
{
	struct acpx_coll *c = round->coll;
	const struct acpx_block all = { 0, c->size };
	const size_t count = libacp_piece_count(c->size, c->piece);
	const uint64_t first = (round->number - 1) * count;
	struct part p = { .round = round };
	size_t q;

	for (q = 0; q < LIBACP_SLOTS && q < count && !is_first(c); q++)
		if (first + q >= LIBACP_SLOTS)
			libacp_step_add(round, &c->parent, credit_line(first + q), 0);
	for (q = 0; q < count; q++) {
		p.piece = libacp_piece_at(&all, c->piece, q);
		p.number = first + q;
		p.last = q + LIBACP_SLOTS >= count;
		p.slot = slot_at(c, c->area_ga, p.number);
		what(&p);
	}
}

static void scan_round(struct libacp_round *round)
{
	for_parts(round, scan_part);
}

static void exscan_round(struct libacp_round *round)
{
	for_parts(round, exscan_part);
}

/* ---- Creation ---- */

struct scan {
	acp_ga_t dst, src;
	size_t count;
	int op, type;
	bool exclusive;
};

static int create(struct libacp_creation *n, const struct scan *s, acpx_coll_t *coll)
{
	struct acpx_coll *c = n->coll;

	libacp_creation_vector(n, s->count, 1, s->op, s->type);
	libacp_creation_whole(n, s->dst, c->size, PIECE);
	c->src = s->src;
	libacp_creation_memory(n, s->src, c->size, false);
	if (!s->exclusive || c->number)
		libacp_creation_memory(n, s->dst, c->size, true);
	libacp_creation_tree(n, 0, 1);
	n->slot_users = !is_first(c);
	if (s->exclusive)
		c->scratch_bytes = c->piece;
	return libacp_creation_end(n, coll);
}

int acpx_coll_scan_create(acpx_group_t group, acp_ga_t dst, acp_ga_t src, size_t count, int op,
			  int type, acpx_coll_t *coll)
{
	const struct scan s = { dst, src, count, op, type, false };
	struct libacp_creation n;
	int error = libacp_creation_begin(&n, group, "scan", scan_round, coll);

	return error ? error : create(&n, &s, coll);
}

int acpx_coll_exscan_create(acpx_group_t group, acp_ga_t dst, acp_ga_t src, size_t count, int op,
			    int type, acpx_coll_t *coll)
{
	const struct scan s = { dst, src, count, op, type, true };
	struct libacp_creation n;
	int error = libacp_creation_begin(&n, group, "exscan", exscan_round, coll);

	return error ? error : create(&n, &s, coll);
}
