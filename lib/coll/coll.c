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
	uint64_t ticket;

	(void)peer;
	if (c->eager)
		e.flags &= (uint8_t)~ACP_SQE_LAZY;
	e.seen = c->base;
	e.order = e.order ? c->base + e.order : 0;
	ticket = libacp_pool_push(c->queue, &e);
	if (!(e.flags & ACP_SQE_LAZY))
		c->last = ticket;
}

static void write_round(struct acpx_coll *c)
{
	struct libacp_round round = { .coll = c, .number = c->round, .take = push };

	c->base = libacp_pool_newest(c->queue);
	c->last = c->base;
	libacp_round_run(&round);
	libacp_pool_ring(c->queue);
}

/* Lazy entries at the end of a round may be complete after it. */
static int judge(struct acpx_coll *c)
{
	const uint64_t newest = libacp_pool_newest(c->queue);

	libacp_coll_judge(c, libacp_pool_reached(c->queue, newest) ? newest : c->last);
	return c->error;
}

/* Return to the queue of the last round, the end of which may have failed; or take another one. */
static int take_queue(struct acpx_coll *c)
{
	int error;

	if (c->rests) {
		c->rests = false;
		c->queue = libacp_pool_resume(c);
		if (c->queue)
			return judge(c);
	}
	error = libacp_pool_get(c, c->entries + LIBACP_RADIX_MAX, &c->queue);
	if (!error)
		c->first = libacp_pool_newest(c->queue) + 1;
	return error;
}

static void leave_queue(struct acpx_coll *c)
{
	if (c->first > libacp_pool_newest(c->queue)) {
		libacp_pool_put(c->queue);
	} else {
		libacp_pool_rest(c->queue, c->first);
		c->rests = true;
	}
	c->queue = NULL;
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
		error = take_queue(coll);
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
		if (judge(c))
			return c->error;
		leave_queue(c);
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

/* What the last round has sent must arrive before its queue goes. */
static void end_rest(struct acpx_coll *c)
{
	c->rests = false;
	c->queue = libacp_pool_resume(c);
	if (!c->queue)
		return;
	libacp_pool_wait(c->queue, libacp_pool_newest(c->queue), UINT64_MAX);
	if (!judge(c))
		leave_queue(c);
}

int acpx_coll_free(acpx_coll_t coll)
{
	if (!coll)
		return -EINVAL;
	if (coll->state == LIBACP_COLL_ACTIVE && is_current(coll) && !acpx_coll_test(coll))
		return -EBUSY;
	if (coll->rests && is_current(coll))
		end_rest(coll);
	/* What tells the others of the failure uses the area. */
	if (coll->queue && is_current(coll))
		libacp_coll_told(coll);
	libacp_coll_release(coll);
	free(coll);
	return 0;
}
