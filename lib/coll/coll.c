// SPDX-License-Identifier: MIT
/* Rounds of a collective: starting, testing, waiting; and freeing it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "acp.h"
#include "coll/coll.h"
#include "coll/failure.h"
#include "coll/pool.h"
#include "coll/step.h"
#include "core/internal.h"
#include "core/mem.h"

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

/*
 * Copy src to dst: a command would cost more than all of a short copy. False if they are no longer
 * registered: then there is a command, which fails.
 */
static bool seed(const struct acpx_coll *c)
{
	const void *src = libacp_mem_find(c->src, c->size, false);
	void *dst = libacp_mem_find(c->dst, c->size, true);

	if (src && dst)
		memmove(dst, src, c->size);
	return src && dst;
}

static void write_round(struct acpx_coll *c)
{
	struct libacp_round round = { .coll = c, .number = c->round, .take = push };

	c->base = libacp_pool_newest(c->queue);
	c->last = c->base;
	c->seeded = c->seeds && c->brief && seed(c);
	libacp_round_run(&round);
	libacp_pool_ring(c->queue);
}

/* Return to the queue of the last round, the end of which may have failed; or take another one. */
static int take_queue(struct acpx_coll *c)
{
	int error;

	if (c->rests) {
		c->rests = false;
		c->queue = libacp_pool_resume(c);
		if (c->queue)
			return libacp_coll_judge_tail(c);
	}
	error = libacp_pool_get(c, c->entries, &c->queue);
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

int libacp_coll_begin(struct acpx_coll *c)
{
	int error = 0;

	if (!libacp_coll_is_current(c))
		return -ENOTCONN;
	if (c->state != LIBACP_COLL_IDLE)
		return c->state == LIBACP_COLL_ACTIVE ? -EBUSY : c->error;
	if (c->entries)
		error = take_queue(c);
	if (error)
		return error;
	c->round++;
	c->state = LIBACP_COLL_ACTIVE;
	if (c->entries)
		write_round(c);
	return 0;
}

int acpx_coll_start(acpx_coll_t coll)
{
	if (!coll || libacp_is_transfer(&coll->transfer))
		return -EINVAL;
	return libacp_coll_begin(coll);
}

/* ---- The end of a round ---- */

/* All entries are complete: evaluate the round. Returns 1, 0: another one has begun, or -errno. */
static int finish(struct acpx_coll *c)
{
	int error;

	if (c->queue) {
		error = libacp_coll_judge(c);
		if (error)
			return error;
	}
	if (libacp_transfer_more(c)) {
		c->round++;
		if (c->queue)
			write_round(c);
		return 0;
	}
	if (c->queue)
		leave_queue(c);
	c->state = LIBACP_COLL_IDLE;
	return 1;
}

static bool is_complete(const struct acpx_coll *c)
{
	return !c->queue || libacp_pool_reached(c->queue, c->last);
}

int acpx_coll_test(acpx_coll_t coll)
{
	if (!coll)
		return -EINVAL;
	if (coll->state == LIBACP_COLL_IDLE)
		return libacp_transfer_test(coll);
	if (coll->state == LIBACP_COLL_FAILED)
		return coll->error;
	if (!libacp_coll_is_current(coll))
		return -ENOTCONN;
	return is_complete(coll) ? finish(coll) : 0;
}

/* Wait for all rounds of a collective that is active. */
static int wait_for(struct acpx_coll *c, uint64_t timeout_ns)
{
	const uint64_t end = libacp_end_of(timeout_ns);
	int result, error;

	while (!(result = acpx_coll_test(c))) {
		error = is_complete(c) ? 0 : libacp_pool_wait(c->queue, c->last, libacp_left(end));
		if (error && !is_complete(c))
			return error;
	}
	return result < 0 ? result : 0;
}

/* Wait for what the root of a broadcast sends that it drives itself. */
static int wait_for_more(struct acpx_coll *c, uint64_t timeout_ns)
{
	int result = libacp_transfer_test(c);

	if (result)
		return result < 0 ? result : libacp_transfer_receive(c);
	result = libacp_coll_begin(c);
	if (!result)
		result = wait_for(c, timeout_ns);
	return result == -ETIMEDOUT && c->queue ? libacp_transfer_give_up(c) : result;
}

int acpx_coll_wait(acpx_coll_t coll, uint64_t timeout_ns)
{
	if (!coll)
		return -EINVAL;
	if (libacp_transfer_arrives(coll) && coll->state == LIBACP_COLL_IDLE)
		return wait_for_more(coll, timeout_ns);
	return wait_for(coll, timeout_ns);
}

/* ---- Freeing ---- */

void libacp_coll_release(struct acpx_coll *c)
{
	if (c->area_key != ACP_ATKEY_NULL && libacp_coll_is_current(c))
		acp_unregister_memory(c->area_key);
	if (c->transfer.key != ACP_ATKEY_NULL && libacp_coll_is_current(c))
		acp_unregister_memory(c->transfer.key);
	free(c->transfer.areas);
	free(c->area);
	free(c->expected);
	if (c->runs != &c->run)
		free(c->runs);
	free(c->targets);
	free(c->edges);
	free(c->copy);
	acpx_group_free(c->group);
}

/*
 * What the last round has sent must arrive before its queue goes; libacp_coll_told() returns that,
 * also if waiting fails, as the job was aborted.
 */
static void end_rest(struct acpx_coll *c)
{
	c->rests = false;
	c->queue = libacp_pool_resume(c);
	if (!c->queue)
		return;
	c->told = libacp_pool_newest(c->queue);
	libacp_pool_wait(c->queue, c->told, UINT64_MAX);
	libacp_coll_judge_tail(c);
}

int acpx_coll_free(acpx_coll_t coll)
{
	if (!coll)
		return -EINVAL;
	if (coll->state == LIBACP_COLL_ACTIVE && libacp_coll_is_current(coll) &&
	    !acpx_coll_test(coll))
		return -EBUSY;
	if (coll->rests && libacp_coll_is_current(coll))
		end_rest(coll);
	/* What tells the others of the failure uses the area. */
	if (coll->queue && libacp_coll_is_current(coll))
		libacp_coll_told(coll);
	libacp_coll_release(coll);
	free(coll);
	return 0;
}
