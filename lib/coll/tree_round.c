// SPDX-License-Identifier: MIT
/* Ways through a tree: from all members to the root, and from the root to all. */
#include "coll/pieces.h"
#include "coll/step.h"

uint32_t libacp_round_await(struct libacp_round *round, uint32_t order)
{
	struct acpx_coll *c = round->coll;

	if (!c->child_count)
		return order;
	return libacp_step_wait(round, LIBACP_LINE_UP, (uint64_t)c->child_count, c->children,
				c->child_count);
}

uint32_t libacp_round_up(struct libacp_round *round, uint32_t order)
{
	const uint32_t at = libacp_round_await(round, order);

	if (round->coll->parent.number >= 0)
		libacp_step_add(round, &round->coll->parent, LIBACP_LINE_UP, at);
	return at;
}

uint32_t libacp_round_up_promptly(struct libacp_round *round, uint32_t order)
{
	const uint32_t at = libacp_round_await(round, order);

	if (round->coll->parent.number >= 0)
		libacp_step_add_promptly(round, &round->coll->parent, LIBACP_LINE_UP, at);
	return at;
}

uint32_t libacp_round_down(struct libacp_round *round, uint32_t order)
{
	struct acpx_coll *c = round->coll;
	uint32_t at = order;
	int i;

	if (c->parent.number >= 0)
		at = libacp_step_wait(round, LIBACP_LINE_DOWN, 1, &c->parent, 1);
	for (i = 0; i < c->child_count; i++)
		libacp_step_add(round, &c->children[i], LIBACP_LINE_DOWN, at);
	return at;
}

/* Send a piece to all children. */
static void send_piece(struct libacp_round *round, acp_ga_t buffer, const struct acpx_block *piece,
		       uint32_t line, uint32_t order)
{
	struct acpx_coll *c = round->coll;
	int i;

	for (i = 0; i < c->child_count; i++)
		libacp_step_send(round, &c->children[i], c->children[i].buffer + piece->offset,
				 buffer + piece->offset, piece->size, line, order);
}

/* How pieces are ordered: piece q behind orders[q], or behind first + q * step. */
struct order {
	const uint32_t *orders;
	uint32_t first, step;
};

static void send_all(struct libacp_round *round, acp_ga_t buffer, const struct order *order)
{
	struct acpx_coll *c = round->coll;
	struct acpx_block piece;
	uint32_t n = 0;
	size_t run, q;

	for (run = 0; run < c->run_count; run++) {
		for (q = 0; q * c->piece < c->runs[run].size; q++, n++) {
			piece = libacp_piece_at(&c->runs[run], c->piece, q);
			send_piece(round, buffer, &piece, LIBACP_LINE_MORE + n,
				   order->orders ? order->orders[n] :
				   order->first + n * order->step);
		}
	}
}

uint32_t libacp_round_pieces(const struct acpx_coll *c)
{
	size_t i, n = 0;

	for (i = 0; i < c->run_count; i++)
		n += libacp_piece_count(c->runs[i].size, c->piece);
	return (uint32_t)n;
}

/*
 * Waits come first, so that a piece is sent on as soon as it has arrived, whatever has become of
 * those before it.
 */
static void spread(struct libacp_round *round, acp_ga_t buffer, const struct order *of_root)
{
	struct acpx_coll *c = round->coll;
	const struct order order = { .first = round->count + 1, .step = 1 };
	const bool root = c->parent.number < 0;
	const uint32_t count = root ? 0 : libacp_round_pieces(c);
	uint32_t i;

	for (i = 0; i < count; i++)
		libacp_step_wait(round, LIBACP_LINE_MORE + i, 1, &c->parent, 1);
	send_all(round, buffer, root ? of_root : &order);
}

/*
 * The only piece is short: the children get it from a copy, so that the buffer may change before
 * they have acknowledged it. Each round has the same copy: all algorithms wait for the children
 * before, so these have what the round before has sent.
 */
static void spread_copy(struct libacp_round *round, acp_ga_t buffer, uint32_t order)
{
	struct acpx_coll *c = round->coll;
	const acp_ga_t copy = c->area_ga + c->scratch_at;
	int i;

	if (c->parent.number >= 0)
		order = libacp_step_wait(round, LIBACP_LINE_MORE, 1, &c->parent, 1);
	if (c->child_count)
		order = libacp_step_copy(round, copy, buffer, c->run.size, order);
	for (i = 0; i < c->child_count; i++)
		libacp_step_send_lazily(round, &c->children[i], c->children[i].buffer, copy,
					c->run.size, LIBACP_LINE_MORE, order);
}

void libacp_round_spread(struct libacp_round *round, acp_ga_t buffer, const uint32_t *orders)
{
	if (round->coll->brief)
		spread_copy(round, buffer, orders[0]);
	else
		spread(round, buffer, &(struct order){ .orders = orders });
}

void libacp_round_spread_behind(struct libacp_round *round, acp_ga_t buffer, uint32_t order)
{
	if (round->coll->brief)
		spread_copy(round, buffer, order);
	else
		spread(round, buffer, &(struct order){ .first = order });
}
