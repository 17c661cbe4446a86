// SPDX-License-Identifier: MIT
/* Barrier and broadcast. */
#include "acp.h"
#include "coll/create.h"
#include "coll/pieces.h"
#include "coll/step.h"

#define SHORT	(64u << 10)		/* bytes: one piece, to four children */

/* ---- Barrier: all tell their parents, the root tells its children, and so on ---- */

static void barrier_round(struct libacp_round *round)
{
	libacp_round_down(round, libacp_round_up(round, 0));
}

int acpx_coll_barrier_create(acpx_group_t group, acpx_coll_t *coll)
{
	struct libacp_creation n;
	int error = libacp_creation_begin(&n, group, "barrier", barrier_round, coll);

	if (error)
		return error;
	libacp_creation_tree(&n, 0, LIBACP_RADIX_MAX);
	return libacp_creation_end(&n, coll);
}

/* ---- Broadcast: a member sends pieces when all its children have started ---- */

static void bcast_round(struct libacp_round *round)
{
	struct acpx_coll *c = round->coll;

	if (c->parent.number >= 0)
		libacp_step_add(round, &c->parent, LIBACP_LINE_UP, 0);
	libacp_round_spread_behind(round, c->dst, libacp_round_await(round, 0));
}

int acpx_coll_bcast_create(acpx_group_t group, int root, acp_ga_t buffer, size_t size,
			   acpx_coll_t *coll)
{
	struct libacp_creation n;
	int error = libacp_creation_begin(&n, group, "bcast", bcast_round, coll);

	if (error)
		return error;
	libacp_creation_agree(&n, size);
	libacp_creation_whole(&n, buffer, size, SHORT);
	n.coll->lines += libacp_round_pieces(n.coll);
	libacp_creation_memory(&n, buffer, size, true);
	libacp_creation_tree(&n, root, libacp_creation_radix(n.coll, SHORT));
	libacp_creation_brief(&n);
	return libacp_creation_end(&n, coll);
}
