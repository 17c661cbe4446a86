// SPDX-License-Identifier: MIT
/* Failed rounds: what failed, which rank was lost, and telling others. See failure.h. */
#include <errno.h>

#include "acp.h"
#include "acp_abi.h"
#include "coll/failure.h"
#include "coll/pool.h"
#include "coll/step.h"
#include "core/errors.h"
#include "core/internal.h"
#include "core/page.h"
#include "core/process.h"
#include "middle/backoff.h"

#define WINDOW	64			/* members that are asked at a time */
#define SEARCH_NS	2000000000ull
#define PAUSE_MIN	1000000u	/* ns */
#define PAUSE_MAX	50000000u
#define TOLD	8			/* counters that were revoked last */

/* ---- What failed ---- */

/* Does an entry access memory of another rank? */
static bool is_remote(const struct acp_sqe *e)
{
	return e->op != ACP_OP_WAIT && (acp_query_rank(e->dst) != acp_rank() ||
					acp_query_rank(e->src) != acp_rank());
}

/*
 * A lost rank is one error, however it was found out: also if another member has learnt of it, and
 * has freed the collective. The others are those of accesses.
 */
static int error_of(int status, const struct acp_sqe *e)
{
	if (status == ACP_ST_RANK || status == ACP_ST_TIMEOUT || status == ACP_ST_ORDER ||
	    (status == ACP_ST_STAG && is_remote(e)))
		return -EHOSTDOWN;
	return -libacp_errno(status);
}

/* Which of the ranks that a wait names was lost? */
static int lost_of_wait(const struct acp_sqe *e)
{
	int i, rank, last = -ENOENT, count = 0;

	for (i = 0; i < 6; i++) {
		rank = libacp_wait_name(e, i);
		if (rank < 0)
			continue;
		if (acpx_peer_state(rank) == ACPX_PEER_DOWN)
			return rank;
		last = rank;
		count++;
	}
	return count == 1 ? last : -ENOENT;
}

static int lost_of(const struct acp_sqe *e)
{
	int dst, src;

	if (e->op == ACP_OP_WAIT)
		return lost_of_wait(e);
	dst = acp_query_rank(e->dst);
	src = acp_query_rank(e->src);
	if (src != acp_rank() && acpx_peer_state(src) == ACPX_PEER_DOWN)
		return src;
	return dst == acp_rank() ? src : dst;
}

/*
 * Find the cause: a lost rank, or else the first failure. Those after a revoked counter are no
 * cause: the members that are told of it may have freed the collective.
 */
static void find_cause(struct acpx_coll *c, uint64_t end)
{
	struct acp_sqe entry;
	uint64_t ticket;
	int status;

	for (ticket = c->first; ticket <= end; ticket++) {
		status = libacp_pool_status(c->queue, ticket, &entry);
		if (status <= 0 || (c->error && !libacp_is_loss(status)))
			continue;
		c->error = error_of(status, &entry);
		if (libacp_is_loss(status))
			c->lost = lost_of(&entry);
		if (status != ACP_ST_ORDER)
			break;
	}
	c->first = end + 1;
}

/* ---- Telling others ---- */

struct told {
	acp_ga_t counters[TOLD];
	unsigned int count;
	bool there;			/* tell those that seem to be there, or the others */
};

/* Has this counter just been revoked? */
static bool is_told(struct told *told, acp_ga_t counter)
{
	unsigned int i;

	for (i = 0; i < TOLD && i < told->count; i++)
		if (told->counters[i] == counter)
			return true;
	told->counters[told->count++ % TOLD] = counter;
	return false;
}

static bool is_there(const struct acpx_coll *c, int rank)
{
	return rank != c->lost && acpx_peer_state(rank) != ACPX_PEER_DOWN;
}

/* Revoke the counter that an entry adds to, and say which rank was lost. */
static void revoke(struct libacp_round *round, const struct acp_sqe *entry,
		   const struct libacp_peer *peer)
{
	struct acpx_coll *c = round->coll;
	struct told *told = round->state;
	const uint64_t newest = libacp_pool_newest(c->queue);
	struct acp_sqe e = {
		.op = ACP_OP_CAS8, .dst = libacp_line_ga(c->area_ga, LIBACP_LINE_SINK),
		.src = peer ? libacp_line_ga(peer->area, LIBACP_LINE_LOST) : 0, .seen = newest,
		.b = (uint64_t)c->lost + 1,
	};
	acp_ga_t counter = entry->op == ACP_OP_ADD8 ? entry->src : entry->a;

	if (!peer || is_told(told, counter) || is_there(c, peer->rank) != told->there ||
	    !libacp_pool_room(c->queue, 2))
		return;
	if (c->lost >= 0)
		libacp_pool_push(c->queue, &e);
	e.op = ACP_OP_OR8;
	e.src = counter;
	e.a = ACP_WORD_REVOKED;
	e.b = 0;
	libacp_pool_push(c->queue, &e);
}

/* Others may be some rounds ahead, and slots alternate: revoke what any round adds to. */
static void tell(struct acpx_coll *c, bool there)
{
	struct told told = { .there = there };
	struct libacp_round round = { .coll = c, .take = revoke, .state = &told };
	const unsigned int slots = libacp_is_transfer(&c->transfer) ? 1 : LIBACP_SLOTS;
	unsigned int i;

	for (i = 0; i < slots; i++) {
		round.number = LIBACP_ROUND_LATER + i;
		libacp_round_run(&round);
	}
}

/* A rank that seems to be lost may be back, or come back, and begin the round. */
static void tell_others(struct acpx_coll *c)
{
	tell(c, true);
	c->told = libacp_pool_newest(c->queue);
	tell(c, false);
	libacp_pool_ring(c->queue);
}

static int fail(struct acpx_coll *c)
{
	c->state = LIBACP_COLL_FAILED;
	libacp_transfer_widen(c);
	tell_others(c);
	return c->error;
}

int libacp_coll_judge(struct acpx_coll *c)
{
	const uint64_t newest = libacp_pool_newest(c->queue);

	find_cause(c, libacp_pool_reached(c->queue, newest) ? newest : c->last);
	if (libacp_transfer_differs(c)) {
		c->error = -EPROTO;
		c->lost = -ENOENT;
	}
	if (!c->error && libacp_transfer_arrives(c) && !libacp_transfer_take(c))
		c->error = -EHOSTDOWN;
	return c->error ? fail(c) : 0;
}

int libacp_coll_judge_tail(struct acpx_coll *c)
{
	const uint64_t newest = libacp_pool_newest(c->queue);

	if (libacp_pool_reached(c->queue, newest))
		find_cause(c, newest);
	return c->error ? fail(c) : 0;
}

void libacp_coll_told(struct acpx_coll *c)
{
	libacp_pool_wait(c->queue, c->told, UINT64_MAX);
	if (libacp_pool_reached(c->queue, libacp_pool_newest(c->queue)))
		libacp_pool_put(c->queue);
	else
		libacp_pool_remove(c->queue);
	c->queue = NULL;
}

void libacp_coll_abandon(struct acpx_coll *c)
{
	if (!c->entries || libacp_pool_get(c, c->entries, &c->queue))
		return;
	tell_others(c);
	libacp_coll_told(c);
}

/* ---- Which rank was lost ---- */

/* What another member has said. */
static int said(const struct acpx_coll *c)
{
	const char *line = (const char *)c->area + (size_t)LIBACP_LINE_LOST * 64;
	const uint64_t word = __atomic_load_n((const uint64_t *)(const void *)line,
					      __ATOMIC_ACQUIRE);

	return word && word <= (uint64_t)acp_procs() ? (int)word - 1 : -ENOENT;
}

static acp_ga_t sign_of(int rank)
{
	return libacp_page_ga(rank, offsetof(struct libacp_page, here));
}

/* Read a word of some members. Returns the rank of one that cannot be read, or -ENOENT. */
static int ask(const struct acpx_coll *c, int first, int count)
{
	acp_handle_t handles[WINDOW];
	int i, rank, lost = -ENOENT;

	for (i = 0; i < count; i++) {
		rank = libacp_group_at(c->group, first + i);
		handles[i] = acp_copy(libacp_line_ga(c->area_ga, LIBACP_LINE_SINK), sign_of(rank),
				      sizeof(uint64_t), ACP_HANDLE_NULL);
	}
	for (i = 0; i < count; i++) {
		rank = libacp_group_at(c->group, first + i);
		if ((libacp_finish(handles[i]) || acpx_peer_state(rank) == ACPX_PEER_DOWN) &&
		    lost < 0)
			lost = rank;
	}
	return lost;
}

static int ask_all(const struct acpx_coll *c)
{
	const int size = c->tree.size;
	int first, lost = said(c);

	for (first = 0; first < size && lost < 0; first += WINDOW) {
		lost = ask(c, first, size - first < WINDOW ? size - first : WINDOW);
		if (lost < 0)
			lost = said(c);
	}
	return lost;
}

/* The caller may have learnt of the loss before the memory of the rank is gone. */
static int search(const struct acpx_coll *c)
{
	const bool quiet = libacp_quiet(true);
	const uint64_t end = libacp_end_of(SEARCH_NS);
	uint64_t pause = 0;
	int lost = ask_all(c);

	while (lost < 0 && libacp_left(end)) {
		libacp_sleep(libacp_backoff(&pause, PAUSE_MIN, PAUSE_MAX));
		lost = ask_all(c);
	}
	libacp_quiet(quiet);
	return lost;
}

int acpx_coll_failed_rank(acpx_coll_t coll)
{
	if (!coll)
		return -EINVAL;
	if (coll->state != LIBACP_COLL_FAILED || coll->error == -ECANCELED ||
	    coll->error == -EPROTO)
		return -ENOENT;
	if (coll->lost < 0 && libacp_coll_is_current(coll))
		coll->lost = search(coll);
	return coll->lost;
}
