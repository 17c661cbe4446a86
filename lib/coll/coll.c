// SPDX-License-Identifier: MIT
/* Rounds of a collective: starting, testing, waiting; and freeing it. */
#include <errno.h>
#include <stdlib.h>

#include "acp.h"
#include "coll/coll.h"
#include "coll/failure.h"
#include "coll/pool.h"
#include "coll/step.h"
#include "core/process.h"

/* Is the process still, or again, the rank that has created the collective? */
static bool is_current(const struct acpx_coll *c)
{
	return libacp_in() && c->joins == libacp.joins;
}

/* ---- Starting ---- */

static void push(struct libacp_round *round, const struct acp_sqe *entry,
		 const struct libacp_peer *peer)
{
	struct acpx_coll *c = round->coll;
	struct acp_sqe e = *entry;

	(void)peer;
	e.seen = c->base;
	e.order = e.order ? c->base + e.order : 0;
	c->last = libacp_pool_push(c->queue, &e);
}

static void write_round(struct acpx_coll *c)
{
	struct libacp_round round = { .coll = c, .number = c->round, .take = push };

	c->base = libacp_pool_newest(c->queue);
	c->last = c->base;
	libacp_round_run(&round);
	libacp_pool_ring(c->queue);
}

int acpx_coll_start(acpx_coll_t coll)
{
	int error = 0;

	if (!coll)
		return -EINVAL;
	if (!is_current(coll))
		return -ENOTCONN;
	if (coll->state != LIBACP_COLL_IDLE)
		return coll->state == LIBACP_COLL_ACTIVE ? -EBUSY : coll->error;
	if (coll->entries)
		error = libacp_pool_get(coll, coll->entries, &coll->queue);
	if (error)
		return error;
	coll->round++;
	coll->state = LIBACP_COLL_ACTIVE;
	if (coll->entries)
		write_round(coll);
	return 0;
}

/* ---- The end of a round ---- */

/* All entries are complete: evaluate the round. Returns 0 or -errno. */
static int finish(struct acpx_coll *c)
{
	if (c->queue) {
		libacp_coll_judge(c);
		if (c->state == LIBACP_COLL_FAILED)
			return c->error;
		libacp_pool_put(c->queue);
		c->queue = NULL;
	}
	c->state = LIBACP_COLL_IDLE;
	return 0;
}

static bool is_complete(const struct acpx_coll *c)
{
	return !c->queue || libacp_pool_reached(c->queue, c->last);
}

int acpx_coll_test(acpx_coll_t coll)
{
	int error;

	if (!coll)
		return -EINVAL;
	if (coll->state == LIBACP_COLL_IDLE)
		return 1;
	if (coll->state == LIBACP_COLL_FAILED)
		return coll->error;
	if (!is_current(coll))
		return -ENOTCONN;
	if (!is_complete(coll))
		return 0;
	error = finish(coll);
	return error ? error : 1;
}

int acpx_coll_wait(acpx_coll_t coll, uint64_t timeout_ns)
{
	int result = acpx_coll_test(coll), error;

	if (result)
		return result < 0 ? result : 0;
	error = libacp_pool_wait(coll->queue, coll->last, timeout_ns);
	if (error && !is_complete(coll))
		return error;
	return finish(coll);
}

/* ---- Freeing ---- */

void libacp_coll_release(struct acpx_coll *c)
{
	if (c->area_key != ACP_ATKEY_NULL && is_current(c))
		acp_unregister_memory(c->area_key);
	free(c->area);
	free(c->expected);
	if (c->runs != &c->run)
		free(c->runs);
	free(c->targets);
	free(c->edges);
	free(c->copy);
	acpx_group_free(c->group);
}

int acpx_coll_free(acpx_coll_t coll)
{
	if (!coll)
		return -EINVAL;
	if (coll->state == LIBACP_COLL_ACTIVE && is_current(coll) && !acpx_coll_test(coll))
		return -EBUSY;
	/* What tells the others of the failure uses the area. */
	if (coll->queue && is_current(coll))
		libacp_coll_told(coll);
	libacp_coll_release(coll);
	free(coll);
	return 0;
}
